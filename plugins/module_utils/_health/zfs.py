# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of ZFS: ARC in memory, L2ARC on cache devices, and the intent log on log devices (SLOG). Nothing of a pool is changed.

Sources: ``arcstats`` and ``zil`` of OpenZFS 0.8 to 2.3, zpool-iostat(8) (``-H``: tabs, no headings; ``-p``: exact numbers). The statistics are
those of all pools of a host together.

Findings about the caches of ZFS. Pure.

A log device (SLOG) holds the newest synchronous writes until their transaction group is on the data devices; it is read only after a crash.
A cache device (L2ARC) holds copies only: what it loses costs time and no data.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._health.prometheus import Family, Labels, family, states
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import zfs
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import KSTATS, PREFIX, parse_kstat

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import Pool, Vdev

#: zpoolconcepts(7), "Device Failure and Recovery"; SUSPENDED is a state of pools only.
_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")

#: Names of metrics with their kind, and for each value of a label the kstat that it is taken from.
_ARC: tuple[tuple[str, str, str, str, dict[str, str]], ...] = (
    ("arc_size_bytes", "gauge", "Size of the ARC.", "", {"": "size"}),
    ("arc_target_bytes", "gauge", "Size that the ARC aims at.", "", {"": "c"}),
    ("arc_max_bytes", "gauge", "Maximum size of the ARC.", "", {"": "c_max"}),
    ("arc_lookups_total", "counter", "Lookups in the ARC, by result.", "result", {"hit": "hits", "miss": "misses"}),
    ("arc_memory_throttles_total", "counter", "Writes that were delayed because memory was short.", "", {"": "memory_throttle_count"}),
    ("l2arc_lookups_total", "counter", "Lookups in the cache devices, by result.", "result", {"hit": "l2_hits", "miss": "l2_misses"}),
    ("l2arc_read_bytes_total", "counter", "Data read from the cache devices.", "", {"": "l2_read_bytes"}),
    ("l2arc_written_bytes_total", "counter", "Data written to the cache devices.", "", {"": "l2_write_bytes"}),
    ("l2arc_errors_total", "counter", "Errors of the cache devices, by kind.", "kind", {"io": "l2_io_error", "checksum": "l2_cksum_bad"}),
    ("l2arc_size_bytes", "gauge", "Data in the cache devices, uncompressed.", "", {"": "l2_size"}),
    ("l2arc_allocated_bytes", "gauge", "Used part of the cache devices.", "", {"": "l2_asize"}),
    ("l2arc_header_bytes", "gauge", "Memory that the headers of the data in the cache devices use.", "", {"": "l2_hdr_size"}),
)
_ZIL: tuple[tuple[str, str, str, str, dict[str, str]], ...] = (
    ("zil_commits_total", "counter", "Commits to the intent log.", "", {"": "zil_commit_count"}),
    (
        "zil_transactions_total",
        "counter",
        "Transactions in the intent log, by where it was written.",
        "to",
        {"log": "zil_itx_metaslab_slog_count", "data": "zil_itx_metaslab_normal_count"},
    ),
    (
        "zil_written_bytes_total",
        "counter",
        "Data in the intent log, by where it was written.",
        "to",
        {"log": "zil_itx_metaslab_slog_bytes", "data": "zil_itx_metaslab_normal_bytes"},
    ),
)


def zfs_families(zfs: ZfsHealth) -> t.Iterator[Family]:
    """All metrics about ZFS. A value that is not known has no sample."""
    for rows, values in ((_ARC, zfs.arc), (_ZIL, zfs.zil)):
        for name, kind, about, label, of in rows:
            samples = [(((label, choice),) if label else (), values.get(kstat)) for choice, kstat in of.items()]
            yield family(f"cachefleet_zfs_{name}", kind, about, samples)
    pools = [sample for pool in zfs.pools for sample in states((("pool", pool.name),), "state", pool.state, _STATES)]
    yield family("cachefleet_zfs_pool_state", "gauge", "1 for the present state of the pool.", pools)
    tops = [(_vdev(pool.name, vdev.name), word, vdev) for pool, word, vdev in zfs.vdevs(LOGS, CACHE)]
    known = {labels for labels, _word, _top in tops}
    present = [sample for labels, _word, vdev in tops for sample in states(labels, "state", vdev.state, _STATES)]
    yield family("cachefleet_zfs_vdev_state", "gauge", "1 for the present state of a log or cache device.", present)
    for name, about in (("allocated", "Used part of a log or cache device."), ("free", "Free part of a log or cache device.")):
        rows = [(labels, getattr(space, name)) for labels, space in ((_vdev(*key), space) for key, space in zfs.space.items()) if labels in known]
        yield family(f"cachefleet_zfs_vdev_{name}_bytes", "gauge", about, rows)
    errors = [
        ((*_vdev(pool.name, leaf.name), ("kind", kind)), count)
        for pool, _word, vdev in zfs.vdevs(LOGS, CACHE)
        for leaf in vdev.leaves
        for kind, count in zip(("read", "write", "checksum"), leaf.errors)
    ]
    yield family("cachefleet_zfs_vdev_errors_total", "counter", "Errors of a log or cache device, since the pool was imported or cleared.", errors)
    info = [((*labels, ("class", word), ("redundancy", redundancy_of(vdev))), 1.0) for labels, word, vdev in tops]
    yield family("cachefleet_zfs_vdev_info", "gauge", "Class and redundancy of a log or cache device.", info)


def _vdev(pool: str, name: str) -> Labels:
    return (("pool", pool), ("vdev", name))


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


LOGS, CACHE = "logs", "cache"
#: What is kept of ``arcstats`` and ``zil``: amounts in bytes, and counters since the module was loaded.
ARC = (
    "hits",
    "misses",
    "size",
    "c",
    "c_max",
    "memory_throttle_count",
    "l2_hits",
    "l2_misses",
    "l2_read_bytes",
    "l2_write_bytes",
    "l2_io_error",
    "l2_cksum_bad",
    "l2_size",
    "l2_asize",
    "l2_hdr_size",
)
ZIL = (
    "zil_commit_count",
    "zil_itx_metaslab_normal_count",
    "zil_itx_metaslab_normal_bytes",
    "zil_itx_metaslab_slog_count",
    "zil_itx_metaslab_slog_bytes",
)
#: Those of them that only grow; a reading keeps them for the next one.
COUNTERS = ("hits", "misses", "l2_hits", "l2_misses", "l2_io_error", "l2_cksum_bad")


@frozen
class Space:
    """Bytes of one vdev that are allocated and free."""

    allocated: int
    free: int


@frozen
class ZfsHealth:
    """ZFS on one host.

    :param arc: values of :data:`ARC`; ``zil``: of :data:`ZIL`. What a version does not have is left out.
    :param space: by pool and vdev.
    :param problems: what could not be read, one sentence each.
    """

    pools: tuple[Pool, ...] = ()
    arc: t.Mapping[str, int] = field(default_factory=dict)
    zil: t.Mapping[str, int] = field(default_factory=dict)
    space: t.Mapping[tuple[str, str], Space] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def counters(self) -> dict[str, int]:
        """What a later reading is compared with."""
        return {name: self.arc[name] for name in COUNTERS if name in self.arc}

    def vdevs(self, *classes: str) -> t.Iterator[tuple[Pool, str, Vdev]]:
        """Every top-level vdev of these classes, with its pool and class."""
        for pool in self.pools:
            for word in classes:
                for vdev in pool.vdevs.get(word, ()):
                    yield pool, word, vdev

    def to_dict(self) -> dict[str, t.Any]:
        return {"arc": dict(self.arc), "zil": dict(self.zil), "pools": [self._plain_pool(pool) for pool in self.pools]}

    def _plain_pool(self, pool: Pool) -> dict[str, t.Any]:
        vdevs = []
        for _pool, word, vdev in dataclasses.replace(self, pools=(pool,)).vdevs(LOGS, CACHE):
            space = self.space.get((pool.name, vdev.name))
            row = {"class": word, "name": vdev.name, "state": vdev.state, "devices": list(vdev.disks), "redundancy": redundancy_of(vdev)}
            vdevs.append({**row, "allocated": space.allocated if space else None, "free": space.free if space else None})
        return {"name": pool.name, "state": pool.state, "size": pool.size, "vdevs": vdevs}


def redundancy_of(vdev: Vdev) -> str:
    """``mirrored``, ``degraded`` or ``none``, as of SSD caches: whether what is on it survives the loss of one device."""
    if vdev.parity == 0:
        return "none"
    return "mirrored" if vdev.parity > vdev.missing else "degraded"


def parse_iostat(text: str, pools: t.Container[str]) -> dict[tuple[str, str], Space]:
    """``zpool iostat -v -H -p``: the space of every vdev, by pool. A member of a mirror has none of its own (``-``)."""
    found, pool = {}, ""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3:
            continue
        # A vdev cannot have the name of a pool: names that begin as those of vdevs are reserved.
        if words[0] in pools:
            pool = words[0]
        elif pool and words[1].isdigit() and words[2].isdigit():
            found[pool, words[0]] = Space(int(words[1]), int(words[2]))
    return found


def read_zfs(devices: Devices, runner: Runner, root: Path) -> ZfsHealth | None:
    """ZFS on this host; None without it. A host without a trace of ZFS costs no command."""
    pools = zfs.read_pools(devices, runner, root)
    problems = list(pools.problems)
    values = {}
    for name, wanted in (("arcstats", ARC), ("zil", ZIL)):
        try:
            values[name] = parse_kstat(read_file(root / KSTATS / name), wanted)
        except StorageError as error:
            values[name] = {}
            problems.append(error.message)
    if not pools.pools and not problems:
        # The ARC of a module without pools is empty.
        return None
    space: dict[tuple[str, str], Space] = {}
    if any(pool.vdevs.get(word) for pool in pools.pools for word in (LOGS, CACHE)):
        try:
            space = parse_iostat(runner.run(["zpool", "iostat", "-v", "-H", "-p", "-P", "-L"]).stdout, {pool.name for pool in pools.pools})
        except StorageError as error:
            problems.append(f"The space of the log and cache devices of ZFS could not be read: {error.message}")
    return ZfsHealth(pools.pools, values["arcstats"], values["zil"], space, tuple(problems))
