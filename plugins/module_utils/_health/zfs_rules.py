# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings about the caches of ZFS. Pure.

A log device (SLOG) holds the newest synchronous writes until their transaction group is on the data devices; it is read only after a crash.
A cache device (L2ARC) holds copies only: what it loses costs time and no data.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import CACHE, LOGS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import PREFIX

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import ZfsHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import Pool, Vdev

_ONLINE = "ONLINE"
_DEGRADED = "DEGRADED"
_ERRORS = ("read", "write", "checksum")


def zfs_findings(zfs: ZfsHealth | None, before: Readings | None, boot: str, limits: Limits) -> t.Iterator[Finding]:
    """The findings about ZFS on a host.

    :param before: an earlier reading; it counts only if it is of the same run of the kernel.
    :param boot: which run of the kernel this is.
    """
    if zfs is None:
        return
    for pool in zfs.pools:
        yield from _pool(pool)
    for pool, _class, vdev in zfs.vdevs(LOGS):
        yield from _log(pool, vdev)
    for pool, _class, vdev in zfs.vdevs(CACHE):
        yield from _cache_device(pool, vdev)
    for pool, word, vdev in zfs.vdevs(LOGS, CACHE):
        yield from _device_errors(pool, word, vdev)
    if any(True for _one in zfs.vdevs(CACHE)):
        earlier = before.zfs if before is not None and before.boot == boot else {}
        passed = {name: value - earlier[name] for name, value in zfs.counters.items() if name in earlier}
        yield from _l2arc_errors(zfs, {} if any(value < 0 for value in passed.values()) else passed)
        yield from _l2arc_hits(passed, limits)


def _pool(pool: Pool) -> t.Iterator[Finding]:
    if pool.state == _ONLINE:
        return
    replacing = [vdev.name for found in pool.vdevs.values() for top in found for vdev in (top, *top.children) if vdev.name.startswith(("replacing", "spare-"))]
    rebuilding = pool.state == _DEGRADED and bool(replacing)
    now = "a device is being replaced" if rebuilding else "see zpool status and replace or reconnect the devices that are not ONLINE"
    words = f"The ZFS pool {pool.name} is {pool.state}: {now}."
    yield Finding("warning" if rebuilding else "critical", PREFIX + pool.name, "zfs_pool_state", words, pool.state, _ONLINE)


def _log(pool: Pool, vdev: Vdev) -> t.Iterator[Finding]:
    """What holds the newest synchronous writes: like a write-back cache, it must not be on one device only."""
    devices = " and ".join(leaf.name for leaf in vdev.leaves)
    gone = [leaf.name for leaf in vdev.leaves if leaf.state != _ONLINE]
    label = f"The log of the ZFS pool {pool.name} on {devices}"
    subject = f"{PREFIX}{pool.name} {vdev.name}"
    if vdev.state not in (_ONLINE, _DEGRADED):
        words = (
            f"{label} is {vdev.state}: synchronous writes go to the data devices and are slower, and writes that only it holds since a crash are lost. "
            "Replace the device with zpool replace."
        )
        yield Finding("critical", subject, "zfs_log_state", words, vdev.state, _ONLINE)
    elif gone:
        left = vdev.parity - vdev.missing
        after = "the newest synchronous writes are on one device only" if left < 1 else f"{left + 1} of its devices are left"
        words = f"{label} lacks {' and '.join(gone)}: {after}. Replace the device with zpool replace."
        yield Finding("critical" if left < 1 else "warning", subject, "zfs_log_state", words, vdev.state, _ONLINE)
    elif vdev.parity < 1:
        words = f"{label} is not mirrored: if it fails in a power failure, the newest synchronous writes are lost. Mirror it with zpool attach."
        yield Finding("warning", subject, "zfs_log_redundancy", words, "none", "mirrored")


def _cache_device(pool: Pool, vdev: Vdev) -> t.Iterator[Finding]:
    if vdev.state != _ONLINE:
        words = f"The cache device {vdev.name} of the ZFS pool {pool.name} is {vdev.state}: reads are slower, and no data is lost. Replace the device."
        yield Finding("warning", f"{PREFIX}{pool.name} {vdev.name}", "zfs_cache_state", words, vdev.state, _ONLINE)


def _device_errors(pool: Pool, word: str, vdev: Vdev) -> t.Iterator[Finding]:
    for leaf in vdev.leaves:
        counted = [(count, kind) for count, kind in zip(leaf.errors, _ERRORS) if count]
        if counted:
            what = " and ".join(f"{count} {kind} error{'' if count == 1 else 's'}" for count, kind in counted)
            role = "log" if word == LOGS else "cache"
            words = f"The {role} device {leaf.name} of the ZFS pool {pool.name} has had {what}: check its health, then run zpool clear."
            yield Finding("warning", f"{PREFIX}{pool.name} {leaf.name}", "zfs_device_errors", words, sum(count for count, _kind in counted), 0)


def _l2arc_errors(zfs: ZfsHealth, passed: t.Mapping[str, int]) -> t.Iterator[Finding]:
    for name, what in (("l2_io_error", "read error"), ("l2_cksum_bad", "checksum error")):
        since = "the last reading" if name in passed else "ZFS was loaded"
        count = passed.get(name, zfs.arc.get(name, 0))
        if count:
            errors = f"{count} {what}{'' if count == 1 else 's'} since {since}"
            words = f"The cache devices of ZFS (L2ARC) had {errors}: the data was read from the pool instead. Check these devices."
            yield Finding("warning", "zfs l2arc", "zfs_l2arc_errors", words, count, 0)


def _l2arc_hits(passed: t.Mapping[str, int], limits: Limits) -> t.Iterator[Finding]:
    if "l2_hits" not in passed or "l2_misses" not in passed or min(passed.values()) < 0:
        return
    lookups = passed["l2_hits"] + passed["l2_misses"]
    if lookups < max(limits.requests, 1):
        return
    percent = round(100 * passed["l2_hits"] / lookups, 1)
    if percent < limits.read_hits:
        words = (
            f"The cache devices of ZFS (L2ARC) served {percent:g}% of {lookups} reads that the ARC missed since the last reading (the limit is"
            f" {limits.read_hits}%): they need memory and endurance for little."
        )
        yield Finding("warning", "zfs l2arc", "zfs_l2arc_hits", words, percent, limits.read_hits)
