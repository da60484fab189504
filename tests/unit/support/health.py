# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caches, readings and drives to look at."""

from __future__ import annotations

import dataclasses

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import CacheReading, Readings, Traffic, key_of

GIB = 1024**3
CACHE = CacheState(
    type="lvm_cache",
    name="vg0/images",
    kind="cachepool",
    device="/dev/vg0/images",
    device_name="dm-5",
    origin="/dev/vg0/images",
    origin_name="dm-3",
    cache_devices=("/dev/disk/by-id/ata-SSD0",),
    cache_device_names=("sdb",),
    mode="writethrough",
    block_size=65536,
    size=100 * GIB,
    used=50 * GIB,
    dirty=0,
    redundancy="none",
    counters={"read_hits": 0, "read_misses": 0, "write_hits": 0, "write_misses": 0},
)
#: Field case C: reads and writes over frames of 8704 bytes.
CASE_C = {512: 117531108, 1024: 61124866, 1536: 83563623, 2048: 89738119, 2560: 43968876, 3072: 51713913, 3584: 83726471, 4096: 41667452}
FLASHCACHE = dataclasses.replace(CACHE, type="flashcache", name="images", kind="flashcache", mode="writeback", block_size=4096, histogram=CASE_C)
BCACHE = dataclasses.replace(
    CACHE, type="bcache", name="bcache0", kind="bcache", device_name="bcache0", block_size=512, settings={"sequential_cutoff": 4 << 20}
)
DRIVE = DriveHealth("sdb", "/dev/disk/by-id/ata-SSD0", protocol="ata", media="ssd", model="TESTSSD", serial="S1", passed=True)


def cache(base=CACHE, **changes):
    return dataclasses.replace(base, **changes)


def drive(**changes):
    return dataclasses.replace(DRIVE, **changes)


def readings(state, when, *, boot="b1", counters=None, histogram=None, traffic=None, shares=()):
    """One look at one cache."""
    look = CacheReading(
        counters=dict(state.counters if counters is None else counters),
        histogram=dict(state.histogram if histogram is None else histogram),
        traffic=traffic or {},
        dirty_shares=shares,
    )
    return Readings(when, boot, {key_of(state): look})


def traffic(reads=0, read_bytes=0, writes=0, written_bytes=0, merged=0):
    return Traffic(reads, merged, read_bytes, writes, 0, written_bytes)
