# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.settings import SETTINGS, VOCABULARY, read_numbers
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import FLAG
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

ITEM = {"name": "fc0", "origin": "/dev/disk/by-id/wwn-0x5", "cache_devices": ["/dev/disk/by-id/ata-S.1"]}


def read(**fields):
    return read_items([{**ITEM, **fields}])[0]


def test_defaults():
    requested = read()
    assert (requested.mode, requested.block_size, requested.metadata_block_size, requested.associativity, requested.disk_associativity) == (
        "writethrough",
        4096,
        4096,
        512,
        0,
    )
    assert requested.numbers == {"cache_all": 1}


def test_logical_volume_may_be_given_in_lvm_notation():
    assert read(origin="vg0/images").origin == "/dev/vg0/images"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "passthrough"}, "mode passthrough is not supported for flashcache; set mode: writethrough or writeback or writearound"),
        ({"write_only": True}, "write_only caches writes alone, and in mode writethrough no write stays in the cache"),
        ({"chunk_size": "3k"}, "chunk_size is 3 KiB: use a power of two from 1 KiB to 1 MiB"),
        ({"chunk_size": "512"}, "chunk_size is 512 B"),
        ({"metadata_block_size": "128k"}, "metadata_block_size is 128 KiB"),
        ({"metadata_block_size": "16k"}, "describes 1024 blocks, more than a set has with associativity 512: use at most 8 KiB"),
        ({"associativity": 500}, "associativity is 500: use a power of two from 256 to 8192"),
        ({"associativity": 128}, "associativity is 128"),
        ({"disk_associativity": "64k"}, "disk_associativity is 64 KiB"),
        ({"disk_associativity": "512k"}, "needs an associativity of 1024 or more"),
        ({"origin": "/dev/disk/by-id/" + "x" * 112}, "has 128 characters, and flashcache keeps 127 in its superblock"),
        ({"origin": "/dev/disk/by-id/$(reboot)"}, "would give to a shell"),
        ({"cache_devices": ["/dev/disk/by-id/a b"]}, "would give to a shell"),
        ({"cache_devices": []}, "cache_devices is empty"),
        ({"settings": {"fast_remove": 1}}, "fast_remove cannot be set: it removes a cache while the origin does not have everything"),
        ({"settings": {"do_sync": 1}}, "set state: flushed"),
        ({"settings": {"zero_stats": 1}}, "clears the counters"),
        ({"settings": {"colour": 1}}, "flashcache has no setting colour: use cache_all"),
        ({"settings": {"dirty_thresh_pct": 20}}, "dirty_thresh_pct is supported in mode writeback only"),
        ({"settings": {"reclaim_policy": 2}}, "reclaim_policy is '2' and must be true or false"),
        ({"settings": {"lru_hot_pct": "many"}}, "lru_hot_pct is 'many'"),
        ({"settings": {"max_pids": True}}, "max_pids is 'True'"),
        ({"settings": {"max_pids": -1}}, "max_pids is '-1'"),
        ({"settings": {"max_pids": 1.5}}, "max_pids is '1.5'"),
    ],
)
def test_invalid_options_are_rejected(fields, message):
    with pytest.raises(BadInput) as caught:
        read(**fields)
    assert message in str(caught.value)
    assert str(caught.value).startswith("fc0: ")


@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_every_setting_has_bounds_and_default(key):
    setting = SETTINGS[key]
    for value in (setting.low, setting.high, str(setting.high)):
        assert read_numbers({key: value}, "writeback", "fc0")[key] == int(value)
    accepted = "true or false" if setting.kind == FLAG else f"a whole number between {setting.low} and {setting.high}"
    for value in (setting.low - 1, setting.high + 1):
        with pytest.raises(BadInput, match=f"{key} is '{value}' and must be {accepted}.*, or default"):
            read_numbers({key: value}, "writeback", "fc0")
    assert read_numbers({key: "default"}, "writeback", "fc0")[key] == setting.default
    assert setting.low <= setting.default <= setting.high


def test_write_only_cache_disables_cleaning_of_idle_blocks():
    assert read(mode="writeback", write_only=True, settings={"fallow_delay": "default"}).numbers["fallow_delay"] == 0


@pytest.mark.parametrize(("value", "number"), [(True, 1), (False, 0), ("yes", 1), ("no", 0), ("1", 1), (0, 0)])
def test_switches_accept_words(value, number):
    assert read_numbers({"reclaim_policy": value}, "writethrough", "fc0")["reclaim_policy"] == number


def test_settings_match_captured_sysctls(shared_samples):
    refused = set(VOCABULARY.refused)
    for mode in ("back", "thru", "around"):
        shown = {}
        for line in (shared_samples / f"cache/flashcache-sysctl.{mode}.txt").read_text().splitlines():
            name, value = line.rsplit(" = ", 1)
            shown[name.rsplit(".", 1)[1]] = int(value)
        known = {key: setting.default for key, setting in SETTINGS.items() if mode == "back" or not setting.mode}
        assert {key: value for key, value in shown.items() if key not in refused} == known


def test_caches_with_the_same_proc_folder_are_rejected():
    items = [{**ITEM, "origin": f"/dev/vg{number}/data", "name": f"c{number}", "cache_devices": [f"/dev/ssd{number}/fast"]} for number in (0, 1)]
    with pytest.raises(BadInput, match=r"c1: flashcache would show it below /proc as fast\+data, like c0"):
        read_items(items)
    with pytest.raises(BadInput, match="Two caches have the origin"):
        read_items([ITEM, {**ITEM, "name": "other"}])
