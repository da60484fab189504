# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import (
    SETTINGS,
    chosen,
    has_value,
    parse_printed,
    parse_value,
    printed,
    read_settings,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

MIB = 1024**2


@pytest.mark.parametrize(
    ("count", "text"),
    # Written to sequential_cutoff and read back on Linux 6.1, and sizes seen in captures.
    [(5000000, "4.7M"), (4294967295, "3.9G"), (4 * MIB, "4.0M"), (0, "0.0k"), (512, "0.5k"), (512 * 1024, "512.0k"), (1000 * 1024, "0.9M"), (1024**4, "1.0T")],
)
def test_sizes_in_kernel_format(count, text):
    assert printed(count) == text
    assert parse_printed(text) <= count <= parse_printed(text) + 1024 ** ("kMGT".index(text[-1]) + 1) // 10
    assert printed(parse_printed(text)) == text


@pytest.mark.parametrize(("text", "count"), [("-2.0M", -2 * MIB), ("512", 512), ("", None), (None, None), ("4M", None), ("four", None)])
def test_other_and_invalid_sizes(text, count):
    assert parse_printed(text) == count


def test_selected_choice_is_read():
    assert chosen("writethrough [writeback] writearound none") == "writeback"
    assert chosen("") is None
    assert chosen(None) is None


@pytest.mark.parametrize(
    ("key", "text", "requested", "same"),
    [
        ("sequential_cutoff", "4.7M", 5000000, True),
        ("sequential_cutoff", "4.0M", 5000000, False),
        ("writeback_percent", "20", 20, True),
        ("writeback_percent", "20", 10, False),
        ("cache_replacement_policy", "lru [fifo] random", "fifo", True),
        ("cache_replacement_policy", "[lru] fifo random", "fifo", False),
        ("discard", "1", 1, True),
        ("discard", None, 1, False),
    ],
)
def test_requested_values_are_compared_with_printed_values(key, text, requested, same):
    assert has_value(key, text, requested) is same


def test_default_keyword_resolves_to_default_of_each_setting():
    assert read_settings(dict.fromkeys(SETTINGS, "default"), "x") == {key: known.default for key, known in SETTINGS.items()}


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("sequential_cutoff", "8M", 8 * MIB),
        ("discard", True, 1),
        ("discard", "no", 0),
        ("writeback_delay", "0", 0),
        ("readahead_cache_policy", "meta-only", "meta-only"),
    ],
)
def test_setting_values_are_parsed(key, value, read):
    assert read_settings({key: value}, "x") == {key: read}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sequential_cutoff", "4G"),
        ("sequential_cutoff", "many"),
        ("writeback_percent", 41),
        ("writeback_percent", "10%"),
        ("writeback_percent", True),
        ("writeback_delay", 501),
        ("writeback_rate_minimum", 0),
        ("writeback_rate_update_seconds", 61),
        ("cache_replacement_policy", "mru"),
        ("discard", 2),
        ("stop_when_cache_set_failed", "never"),
        ("running", 1),
    ],
)
def test_values_the_kernel_would_alter_are_rejected(key, value):
    with pytest.raises(BadInput):
        read_settings({key: value}, "x")


def test_printed_kernel_values_are_parsed():
    assert parse_value("sequential_cutoff", "4.0M") == 4 * MIB
    assert parse_value("stop_when_cache_set_failed", "auto [always]") == "always"
    assert parse_value("writeback_delay", "30") == 30
    assert parse_value("writeback_delay", None) is None


# -- the udev rules

ONE, TWO = "b608ddc5-a95d-4405-9906-04c5cb56b7ef", "113c21e5-487f-49cf-804d-289d6fa47d4b"


def test_rules_round_trip():
    rules = {ONE: {"sequential_cutoff": "0", "readahead_cache_policy": "meta-only"}, TWO: {"congested_read_threshold_us": "0"}}
    text = bcache_rules.render(rules)
    assert bcache_rules.parse(text) == rules
    assert (
        f'ACTION!="remove", SUBSYSTEM=="block", ENV{{ID_FS_TYPE}}=="bcache", ENV{{ID_FS_UUID}}=="{TWO}",'
        " RUN+=\"/bin/sh -c 'cd /sys%p/bcache/set && { echo 0 >congested_read_threshold_us; }'\""
    ) in text.splitlines()
    assert bcache_rules.render({ONE: {}}) == ""


@pytest.mark.parametrize("rules", [{"$(reboot)": {"sequential_cutoff": "0"}}, {ONE: {"sequential_cutoff": "0; reboot"}}, {ONE: {"label": "0"}}])
def test_unsafe_words_in_rule_are_rejected(rules):
    with pytest.raises(BadInput, match="cannot be written into a udev rule"):
        bcache_rules.render(rules)


def test_expected_values_in_rule():
    requested = {"sequential_cutoff": 0, "writeback_percent": 10, "congested_read_threshold_us": 5, "discard": 1}
    assert bcache_rules.kept(requested, "backing", {"writeback_percent": "20", "writeback_delay": "5"}) == {"sequential_cutoff": "0", "writeback_delay": "5"}
    assert bcache_rules.kept(requested, "set", {}) == {"congested_read_threshold_us": "5"}


# -- what users write

ITEM = {"name": "images", "origin": "/dev/disk/by-id/ata-HDD0", "cache_devices": ["/dev/disk/by-id/ata-SSD0"]}


def test_minimal_item():
    (cache,) = read_items([ITEM])
    assert (cache.mode, cache.kind, cache.label, cache.bucket_size, cache.block_size, cache.present) == ("writethrough", "bcache", "images", None, None, True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"size": "100G"}, "size is not supported for bcache, which uses the whole cache device"),
        ({"chunk_size": "64K"}, "chunk_size is not supported for bcache; set bucket_size"),
        ({"origin": "vg/data"}, "not a path below /dev"),
        ({"origin": "/dev/disk/by-id/ata-SSD0"}, "origin and a cache device at once"),
        ({"mode": "passthrough"}, "mode passthrough is not supported for bcache; set mode: writethrough or writeback or writearound or none"),
        ({"bucket_size": "100K"}, "power of two"),
        ({"bucket_size": "16M"}, "power of two"),
        ({"block_size": "8K"}, "power of two"),
        ({"settings": {"readahead": 0}}, "has no setting readahead"),
        ({"cache_devices": []}, "cache_devices is empty"),
        ({"name": "a b"}, "use only letters, digits"),
    ],
)
def test_invalid_options_are_rejected(fields, words):
    with pytest.raises(BadInput, match=words):
        read_items([{**ITEM, **fields}])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"settings": {"congested_read_threshold_us": 5}}, "congested_read_threshold_us is 5, and images"),
        ({"bucket_size": "1M"}, "bucket_size is 1048576, and images"),
        ({"cache_devices": ["/dev/disk/by-id/ata-SSD1", "/dev/disk/by-id/ata-SSD0"]}, "set mirror: true"),
    ],
)
def test_conflicting_specs_for_shared_cache_device_are_rejected(fields, words):
    first = {**ITEM, "bucket_size": "512K", "settings": {"congested_read_threshold_us": 0, "sequential_cutoff": 0}}
    other = {**ITEM, "name": "archive", "origin": "/dev/disk/by-id/ata-HDD1"}
    read_items([first, {**other, "settings": {"sequential_cutoff": 5, "congested_read_threshold_us": 0}}])
    with pytest.raises(BadInput, match=words):
        read_items([first, {**other, **fields}])


def test_labels_that_collide_after_truncation_are_rejected():
    with pytest.raises(BadInput, match="bcache keeps no more of a name"):
        read_items([{**ITEM, "name": "x" * 33}, {**ITEM, "name": "x" * 34, "origin": "/dev/disk/by-id/ata-HDD1"}])
