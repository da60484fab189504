# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import require_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": ["/dev/disk/by-id/ata-SSD0"]}


def read(**fields):
    return read_items([{**ITEM, **fields}])[0]


def test_minimal_item():
    cache = read()
    assert (cache.kind, cache.mode, cache.size, cache.share, cache.chunk_size, cache.present) == ("cachepool", "writethrough", None, 1.0, None, True)
    assert (cache.origin, cache.volume, cache.allow_unmirrored_writeback) == ("vg/data", "data_cache", False)


def test_origin_may_be_given_as_device_path():
    assert read(origin="/dev/vg/data").origin == "vg/data"


@pytest.mark.parametrize(
    "origin", ["data", "vg/", "/dev/mapper/vgdata", "/dev/mapper/vg-data-real", "vg/data/more", "vg/-data", "vg/da ta", "", "vg/data;reboot"]
)
def test_invalid_origins_are_rejected(origin):
    with pytest.raises(BadInput, match="use it as volume group and logical volume"):
        read(origin=origin)


@pytest.mark.parametrize(("size", "expected"), [("200M", (200 << 20, 1.0)), ("50%", (None, 0.5)), ("100%", (None, 1.0)), ("12.5 %", (None, 0.125))])
def test_sizes_and_percentages(size, expected):
    cache = read(size=size)
    assert (cache.size, cache.share) == expected


@pytest.mark.parametrize("size", ["0", "0%", "101%", "much", "-5M", "200 apples"])
def test_invalid_sizes_are_rejected(size):
    with pytest.raises(BadInput):
        read(size=size)


@pytest.mark.parametrize("chunk", ["48k", "16k", "2G", "0", "a lot"])
def test_invalid_chunk_sizes_are_rejected(chunk):
    with pytest.raises(BadInput):
        read(chunk_size=chunk)


def test_settings_are_parsed_and_default_removes_one():
    assert read(settings={"migration_threshold": 16384}).settings == {"migration_threshold": 16384}
    assert read(settings={"migration_threshold": "16384"}).settings == {"migration_threshold": 16384}
    assert read(settings={"migration_threshold": "default"}).settings == {"migration_threshold": None}


@pytest.mark.parametrize("value", ["", "many", "-1", 0, True, 1.5, None])
def test_invalid_thresholds_are_rejected(value):
    with pytest.raises(BadInput, match=r"must be a whole number between 1 and .*sectors of 512 bytes"):
        read(settings={"migration_threshold": value})


def test_ineffective_setting_is_rejected():
    with pytest.raises(BadInput, match="random_threshold cannot be set: the kernel accepts and ignores it"):
        read(settings={"random_threshold": 4})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cache_devices": ["/dev/disk/by-id/a", "/dev/disk/by-id/b"]}, "set mirror: true"),
        ({"mirror": True}, "a mirror needs two cache devices"),
        ({"mirror": True, "cache_devices": ["/dev/disk/by-id/a", "/dev/disk/by-id/a"]}, "twice"),
    ],
)
def test_mirror_requires_two_devices(fields, message):
    with pytest.raises(BadInput, match=message):
        read(**fields)


def test_cache_devices_are_required_except_for_absent():
    with pytest.raises(BadInput, match="cache_devices is empty"):
        read(cache_devices=[])
    assert read(cache_devices=[], state="absent").present is False


def test_cache_device_must_be_a_path():
    with pytest.raises(BadInput, match="not a path below /dev"):
        read(cache_devices=["sdb"])


@pytest.mark.parametrize(("second", "attribute"), [({"name": "images", "origin": "vg/other"}, "name"), ({"name": "other", "origin": "/dev/vg/data"}, "origin")])
def test_duplicate_items_are_rejected(second, attribute):
    with pytest.raises(BadInput, match=f"Two caches have the {attribute}"):
        read_items([ITEM, {**ITEM, **second}])


@pytest.mark.parametrize("path", ["/dev/sdb", "/dev/nvme0n1", "/dev/vdb1", "/dev/dm-3"])
def test_unstable_path_is_rejected_and_stable_path_is_suggested(path):
    with pytest.raises(BadInput, match="use /dev/disk/by-id/ata-SSD0, which is the same device"):
        require_stable(path, "/dev/disk/by-id/ata-SSD0", "images")
    with pytest.raises(BadInput, match="it has no stable path"):
        require_stable(path, None, "images")


def test_stable_path_is_accepted():
    require_stable("/dev/disk/by-id/ata-SSD0", None, "images")


def writecache(**fields):
    return read(kind="writecache", **fields)


def test_writecache_supports_only_writeback():
    assert writecache().mode == writecache(mode="writeback").mode == "writeback"
    for mode in ("writethrough", "passthrough"):
        with pytest.raises(BadInput, match=f"mode {mode} is not supported for kind writecache; set mode: writeback"):
            writecache(mode=mode)


def test_lvm_mirror_is_not_supported_for_writecache():
    devices = {"mirror": True, "cache_devices": ["/dev/disk/by-id/a", "/dev/disk/by-id/b"]}
    with pytest.raises(BadInput, match="name one MD RAID1 device"):
        writecache(**devices)
    assert writecache(state="absent", **devices).state == "absent"


def test_writecache_has_block_size_instead_of_chunk_size():
    assert writecache(settings={"block_size": "512"}).settings == {"block_size": 512}
    with pytest.raises(BadInput, match=r"chunk_size is not supported for kind writecache; set settings.block_size \(512 or 4096\)"):
        writecache(chunk_size="64k")
    with pytest.raises(BadInput, match="must be 512 or 4096"):
        writecache(settings={"block_size": 1024})


@pytest.mark.parametrize(
    ("key", "least", "largest"),
    [
        ("high_watermark", 45, 100),
        ("low_watermark", 0, 50),
        ("writeback_jobs", 0, 2**32 - 1),
        ("autocommit_blocks", 1, 2**32 - 1),
        ("autocommit_time", 1, 3_600_000),
        ("max_age", 1, 86_400_000),
        ("pause_writeback", 0, 60_000),
    ],
)
def test_writecache_setting_bounds(key, least, largest):
    for value in (least, largest):
        assert writecache(settings={key: value}).settings == {key: value}
    assert writecache(settings={key: "default"}).settings == {key: None}
    over = 100 if key.endswith("watermark") else largest
    for value in (-1, over + 1, "many", True, 1.5, None):
        with pytest.raises(BadInput, match=f"{key} is '"):
            writecache(settings={key: value})


@pytest.mark.parametrize(("key", "message"), [("cleaner", "set state: flushed"), ("migration_threshold", "has no setting"), ("fua", "persistent memory only")])
def test_settings_unsupported_for_writecache_are_rejected(key, message):
    with pytest.raises(BadInput, match=message):
        writecache(settings={key: 1})


def test_release_devices_requires_cache_devices():
    with pytest.raises(BadInput, match="release_devices releases cache_devices"):
        read(state="absent", cache_devices=[], release_devices=True)
    assert read(state="absent", release_devices=True).cache_devices == ("/dev/disk/by-id/ata-SSD0",)


def test_flushed_requires_no_cache_devices():
    cache = read(state="flushed", cache_devices=[])
    assert (cache.state, cache.present) == ("flushed", False)
