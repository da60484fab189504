# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of ZFS: ARC in memory, L2ARC on cache devices, and the intent log on log devices (SLOG). Nothing of a pool is changed.

Sources: ``kstat`` of the SPL (a line of numbers, ``name type data``, then one line for each value), ``arcstats`` and ``zil`` of OpenZFS 0.8
to 2.3, zpool-iostat(8) (``-H``: tabs, no headings; ``-p``: exact numbers). The statistics are those of all pools of a host together.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import zfs

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import Pool, Vdev

LOGS, CACHE = "logs", "cache"
_KSTATS = "proc/spl/kstat/zfs"
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
        """For a module's return values."""
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


def parse_kstat(text: str, names: t.Container[str]) -> dict[str, int]:
    """The values of a kstat by name; other lines are passed over, for each version of OpenZFS has its own."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[0] in names and row[2].isdigit()}


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
            values[name] = parse_kstat(read_file(root / _KSTATS / name), wanted)
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
