# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users write about raw caches."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.modules.dm_cache import CACHE_OPTIONS

ITEM = {"name": "images", "origin": "/dev/disk/by-id/a", "cache_devices": ["/dev/disk/by-id/b"]}


def test_item_and_defaults():
    (cache,) = read_items([ITEM])
    assert (cache.kind, cache.mode, cache.state, cache.path) == ("cache", "writethrough", "present", "/dev/mapper/images")
    (cache,) = read_items([{**ITEM, "kind": "writecache", "mode": None}])
    assert cache.mode == "writeback"


def test_settings_are_numbers_and_default_removes_one():
    (cache,) = read_items([{**ITEM, "settings": {"migration_threshold": "4096"}}])
    assert cache.settings == {"migration_threshold": 4096}
    (cache,) = read_items([{**ITEM, "kind": "writecache", "settings": {"metadata_only": False, "max_age": "default", "pause_writeback": 0}}])
    assert cache.settings == {"metadata_only": None, "max_age": None, "pause_writeback": 0}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "control"}, "reserved for device-mapper"),
        ({"name": "cachefleet-x"}, "reserved for device-mapper"),
        ({"name": "a" * 101}, "may have 100 characters"),
        ({"name": "a/b"}, "use only letters, digits"),
        ({"name": ""}, "^Invalid cache name ''"),
        ({"size": "big"}, "^images: size 'big' is not a size"),
        ({"chunk_size": "big"}, "^images: chunk_size 'big' is not a size"),
        ({"flush_timeout": 0}, "^images: flush_timeout is 0 and must be at least 1 second"),
        ({"flush_timeout": -5}, "flush_timeout is -5"),
        ({"origin": "vg0/images"}, "path of a device below /dev"),
        ({"origin": "/dev/disk/by-id/b"}, "origin and cache device at once"),
        ({"kind": "writecache", "mode": "writethrough"}, "mode writethrough is not supported for kind writecache; set mode: writeback"),
        ({"kind": "writecache", "chunk_size": "64k"}, r"chunk_size is not supported for kind writecache; set settings.block_size \(512 or 4096\)"),
        ({"chunk_size": "48k"}, "multiples of 32 KiB"),
        ({"chunk_size": "2g"}, "multiples of 32 KiB"),
        ({"settings": {"high_watermark": 5}}, "no setting high_watermark"),
        ({"settings": {"migration_threshold": 0}}, "must be a whole number between 1 and"),
        ({"settings": {"migration_threshold": True}}, "must be a whole number between 1 and"),
        ({"kind": "writecache", "settings": {"fua": True}}, "persistent memory only"),
        ({"kind": "writecache", "settings": {"sequential": 1}}, "use high_watermark"),
        ({"kind": "writecache", "settings": {"high_watermark": 101}}, "between 0 and 100"),
        ({"kind": "writecache", "settings": {"high_watermark": 40, "low_watermark": "default"}}, "low_watermark would be 45 and high_watermark 40"),
        ({"kind": "writecache", "settings": {"metadata_only": 2}}, "must be true or false"),
    ],
)
def test_invalid_options_are_rejected(fields, text):
    with pytest.raises(BadInput, match=text):
        read_items([{**ITEM, **fields}])


def test_duplicate_origins_are_rejected():
    with pytest.raises(BadInput, match="Two caches have the origin"):
        read_items([ITEM, {**ITEM, "name": "mail"}])


def test_module_accepts_all_common_options():
    assert {"name", "origin", "cache_devices", "mirror", "size", "chunk_size", "settings", "state", "release_devices", "flush_timeout"} < set(CACHE_OPTIONS)
