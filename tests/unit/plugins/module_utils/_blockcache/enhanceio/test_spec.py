# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import settings as enhanceio_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.settings import SETTINGS, VOCABULARY
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

ITEM = {"name": "images", "origin": "/dev/disk/by-id/ata-HDD_1", "cache_devices": ["/dev/disk/by-id/ata-SSD_1"]}


def read(**fields):
    return read_items([{**ITEM, **fields}])[0]


def test_defaults():
    expected = read()
    assert (expected.mode, expected.policy, expected.chunk_size, expected.state, expected.settings) == ("writethrough", None, None, "present", {})
    assert not expected.allow_ignored_flushes
    assert not expected.allow_unmirrored_writeback


def test_all_options_are_parsed():
    expected = read(
        mode="writeback",
        policy="fifo",
        chunk_size="8k",
        settings={"dirty_high_threshold": "60", "mem_limit_pct": 0, "cache_wronly": "default"},
        allow_ignored_flushes=True,
        flush_timeout=60,
        size="100%",
    )
    assert (expected.mode, expected.policy, expected.chunk_size, expected.flush_timeout) == ("writeback", "fifo", 8192, 60)
    assert expected.settings == {"dirty_high_threshold": 60, "mem_limit_pct": 0, "cache_wronly": None}
    assert expected.allow_ignored_flushes


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a-b"}, "at most 31 letters, digits and underscores"),
        ({"name": "a" * 32}, "at most 31 letters"),
        ({"origin": "/dev/sda"}, "may be another device after the next reboot"),
        ({"origin": "vg0/images"}, "use a path below /dev"),
        ({"origin": "/dev/disk/by-id/a b"}, "use a path below /dev"),
        ({"origin": '/dev/disk/by-id/a"b'}, "use a path below /dev"),
        ({"origin": "/dev/disk/by-id/a*"}, "use a path below /dev"),
        ({"origin": "/dev/disk/by-id/" + "a" * 113}, "of at most 127"),
        ({"cache_devices": ["/dev/nvme0n1"]}, "may be another device after the next reboot"),
        ({"cache_devices": []}, "cache_devices is empty"),
        ({"size": "10G"}, "size is not supported for EnhanceIO, which uses the whole cache device"),
        ({"size": "50%"}, "size is not supported for EnhanceIO, which uses the whole cache device"),
        ({"chunk_size": "64k"}, "blocks of 2048, 4096, 8192 bytes only"),
        ({"settings": {"do_clean": 1}}, "EnhanceIO has no setting do_clean: use mem_limit_pct"),
        ({"settings": {"dirty_high_threshold": 50}}, "dirty_high_threshold is supported in mode writeback only"),
        ({"settings": {"mem_limit_pct": 101}}, r"must be a whole number between 0 and 100 \(percent\), or default"),
        ({"settings": {"mem_limit_pct": True}}, "must be a whole number between 0 and 100"),
        ({"settings": {"mem_limit_pct": "-1"}}, "must be a whole number between 0 and 100"),
        ({"mode": "writeback", "settings": {"time_based_clean_interval": 721}}, "between 0 and 720"),
        (
            {"mode": "writeback", "settings": {"dirty_low_threshold": 60, "dirty_high_threshold": 50}},
            "dirty_low_threshold must not exceed dirty_high_threshold, and dirty_low_threshold would be 60 and dirty_high_threshold 50",
        ),
    ],
)
def test_invalid_options_are_rejected(fields, message):
    with pytest.raises(BadInput, match=message):
        read(**fields)


def test_maximum_path_and_name_length():
    assert read(name="a" * 31, origin="/dev/disk/by-id/" + "a" * 111).name == "a" * 31


def test_writeback_settings_are_accepted_for_absent_and_flushed():
    for state in ("absent", "flushed"):
        assert read(state=state, settings={"dirty_high_threshold": 50}).settings == {"dirty_high_threshold": 50}


def test_duplicate_names_or_origins_are_rejected():
    with pytest.raises(BadInput, match="Two caches have the name images"):
        read_items([ITEM, {**ITEM, "origin": "/dev/disk/by-id/x"}])
    with pytest.raises(BadInput, match="Two caches have the origin"):
        read_items([ITEM, {**ITEM, "name": "other"}])


def test_setting_values_are_converted_to_numbers():
    requested = {"time_based_clean_interval": None, "dirty_high_threshold": None, "mem_limit_pct": 5}
    assert enhanceio_settings.values(requested, "writeback", 400 << 30) == {"time_based_clean_interval": 25, "dirty_high_threshold": 30, "mem_limit_pct": 5}
    assert enhanceio_settings.values(requested, "writeback", 1 << 30)["time_based_clean_interval"] == 1
    assert enhanceio_settings.values(requested, "writethrough", 1 << 30) == {"mem_limit_pct": 5}


def test_settings_existing_in_a_mode():
    known = {"mem_limit_pct": 75, "dirty_high_threshold": 30}
    assert enhanceio_settings.existing("writeback", known) == known
    assert enhanceio_settings.existing("writearound", known) == {"mem_limit_pct": 75}


PAIRS = VOCABULARY.pairs
PERCENT = st.integers(0, 100)
THRESHOLDS = [key for pair in PAIRS for key in pair]


@given(
    st.tuples(*(st.tuples(PERCENT, PERCENT).map(sorted) for _pair in PAIRS)),
    st.fixed_dictionaries({}, optional=dict.fromkeys(THRESHOLDS, PERCENT)),
    st.permutations(THRESHOLDS),
)
def test_every_intermediate_setting_is_accepted_by_the_driver(known, values, order):
    known = {key: value for pair, both in zip(PAIRS, known) for key, value in zip(pair, both)}
    requested = {key: values[key] for key in order if key in values}
    final = {**known, **requested}
    try:
        changes = enhanceio_settings.changes(requested, known, "images")
    except BadInput:
        assert any(final[low] > final[high] for low, high in PAIRS)
        return
    now = dict(known)
    for key, was, value in changes:
        assert was == now[key] != value
        now[key] = value
        assert all(now[low] <= now[high] for low, high in PAIRS)
    assert now == final


def test_new_cache_is_assumed_to_have_default_values():
    """Nothing is known of it, and a low threshold above the usual high one goes after that."""
    changes = enhanceio_settings.changes({"dirty_low_threshold": 50, "dirty_high_threshold": 60}, {}, "images")
    assert changes == [("dirty_high_threshold", None, 60), ("dirty_low_threshold", None, 50)]
    changes = enhanceio_settings.changes({"dirty_low_threshold": 1, "dirty_high_threshold": 5}, {}, "images")
    assert changes == [("dirty_low_threshold", None, 1), ("dirty_high_threshold", None, 5)]
    with pytest.raises(BadInput, match="dirty_low_threshold would be 31 and dirty_high_threshold 30"):
        enhanceio_settings.changes({"dirty_low_threshold": 31}, {}, "images")


def test_limits_match_the_driver():
    assert all(limits.low <= (limits.default or 0) <= limits.high for limits in SETTINGS.values())
    assert all(SETTINGS[low].default <= SETTINGS[high].default for low, high in PAIRS)
