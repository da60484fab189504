# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What block caches hold while fio runs, and whether they are clean: cheap readings of what the kernel reports.

``dmsetup status`` covers dm-cache and dm-writecache, and so lvmcache; bcache and EnhanceIO are read from sysfs and /proc, flashcache from
its own folder, ZFS from ``arcstats``, which counts for all pools of the host.
"""

from __future__ import annotations

import contextlib
import functools
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import READERS
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES, CacheType
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import ARC, KSTATS, L2ARC, is_in_pool, parse_kstat

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

_COUNTERS = ("read_hits", "read_misses", "write_hits", "write_misses", "bypassed_reads", "bypassed_writes")
#: Likewise, after the size. bcache prints what it wrote and bypassed with three digits: too coarse for what one cell adds.
_MORE_COUNTERS = ("promotions", "written_back_bytes")
#: Commands that are kept for a message.
_REMEMBERED = 50
_DM_TARGETS = frozenset({"cache", "writecache"})

#: Caches of ZFS: what of ``arcstats`` are their hits, misses, bytes in use and size. Hits on data that is still being read have a counter of their own
#: since OpenZFS 2.2; reads ahead and metadata are not counted. The size of the L2ARC is not among them.
_ZFS: t.Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str, str]] = {
    ARC: (("demand_data_hits", "demand_data_iohits"), ("demand_data_misses",), "size", "c_max"),
    L2ARC: (("l2_hits",), ("l2_misses",), "l2_asize", ""),
}
_ARCSTATS = frozenset(name for hits, misses, *amounts in _ZFS.values() for name in (*hits, *misses, *amounts))


class Sample(t.NamedTuple):
    """One cache now. Amounts in bytes; ``None`` is not known."""

    name: str
    dirty: int | None
    used: int | None
    counters: t.Mapping[str, int]
    size: int | None = None

    @property
    def row(self) -> str:
        """Without the time, as a line of ``cache_series.log``; what is not known is empty."""
        values = [self.dirty, self.used, *map(self.counters.get, _COUNTERS), self.size, *map(self.counters.get, _MORE_COUNTERS)]
        return ",".join([self.name, *("" if value is None else str(value) for value in values)])


class CacheSamples:
    """The block caches among some devices of a host.

    :param devices: of the host, as they were when the order began.
    """

    def __init__(self, devices: Devices, runner: Runner, root: Path = Path("/")) -> None:
        self.devices = devices
        self.runner = runner
        self.root = root

    def read(self, names: t.Collection[str]) -> list[Sample]:
        """Every cache among these kernel names. One that cannot be read now is left out: the next reading may have it."""
        return [*self._read(names)[0], *self._zfs(names)]

    def rows(self, names: t.Collection[str]) -> list[str]:
        """The same as lines of ``cache_series.log``."""
        return [sample.row for sample in self.read(names) if sample.used is not None or sample.dirty is not None or sample.counters]

    def request_sizes(self, names: t.Collection[str]) -> dict[str, dict[int, int]]:
        """Requests by size in bytes, of each cache among these kernel names that counts them. Of several that are counted together, of none."""
        found: dict[str, dict[int, int]] = {}
        for kind in (kind for kind in CACHE_TYPES.values() if kind.counts_sizes):
            if kind.kernel_kind and not any(device.kind == kind.kernel_kind for device in map(self.devices.get, names) if device is not None):
                continue
            with contextlib.suppress(StorageError, OSError, ValueError):
                caches = {one.device_name: dict(one.histogram) for one in READERS[kind.name](self.devices, self.runner, self.root) if one.device_name}
                if len(caches) == 1 or not kind.shared_histogram:
                    found.update({name: counts for name, counts in caches.items() if name in names})
        return found

    def dirty(self, names: t.Collection[str]) -> int | None:
        """Bytes that the caches among these devices have not written back; ``None`` if one does not report it or cannot be read."""
        found, complete = self._read(names)
        amounts = [sample.dirty for sample in found]
        return sum(t.cast(t.List[int], amounts)) if complete and None not in amounts else None

    def _read(self, names: t.Collection[str]) -> tuple[list[Sample], bool]:
        chosen = [device for device in map(self.devices.get, names) if device is not None]
        found: list[Sample] = []
        complete = True
        surveyed = [functools.partial(self._surveyed, kind) for kind in CACHE_TYPES.values() if not kind.targets & _DM_TARGETS]
        for reader in (self._mapped, *surveyed):
            try:
                found += reader(chosen)
            except (StorageError, OSError, ValueError):
                complete = False
        # A runner runs for hours: its history of commands must not grow with them.
        del self.runner.history[:-_REMEMBERED]
        return found, complete

    def _zfs(self, names: t.Collection[str]) -> t.Iterator[Sample]:
        """The caches of ZFS, if one of these devices is in a pool. What they have not written is not reported."""
        if not any(map(is_in_pool, names)):
            return
        try:
            values = parse_kstat(read_file(self.root / KSTATS / "arcstats"), _ARCSTATS)
        except StorageError:
            return
        for name, (hits, misses, used, size) in _ZFS.items():
            found = {"read_hits": [values[one] for one in hits if one in values], "read_misses": [values[one] for one in misses if one in values]}
            counters = {key: sum(numbers) for key, numbers in found.items() if numbers}
            # Without a cache device all of the L2ARC is 0.
            if name != L2ARC or values.get(used) or any(counters.values()):
                yield Sample(name, None, values.get(used), counters, values.get(size))

    def _mapped(self, chosen: t.Sequence[BlockDevice]) -> list[Sample]:
        mapped = {device.dm_name: device for device in chosen if device.dm_name and _DM_TARGETS & set(device.dm_targets)}
        if not mapped:
            return []
        reported = dm.read_status(self.runner)
        # The status of a dm-writecache counts blocks and does not report their size: its table does.
        sizes = {name: table.block_size for name, table in dm.read_tables(self.runner).items()} if any(s.block_size is None for s in reported.values()) else {}
        found = []
        for name, device in mapped.items():
            status = reported.get(name)
            if status is None or status.failed:
                found.append(Sample(device.name, None, None, {}))
                continue
            block = status.block_size or sizes.get(name)
            counters = {key: getattr(status, key) for key in _COUNTERS[:4] if getattr(status, key) is not None}
            counters.update(status.series)
            found.append(Sample(device.name, _bytes(status.dirty, block), _bytes(status.used, block), counters, _bytes(status.total, block)))
        return found

    def _surveyed(self, kind: CacheType, chosen: t.Sequence[BlockDevice]) -> list[Sample]:
        """Caches that are read like in any survey: where the kernel shows one among the devices, or shows their type with no device of its own."""
        if kind.kernel_kind and not any(device.kind == kind.kernel_kind for device in chosen):
            return []
        return self._of(READERS[kind.name](self.devices, self.runner, self.root), chosen)

    @staticmethod
    def _of(caches: t.Iterable[CacheState], chosen: t.Sequence[BlockDevice]) -> list[Sample]:
        names = {device.name for device in chosen}
        return [Sample(one.device_name or one.name, one.dirty, one.used, one.counters, one.size) for one in caches if one.device_name in names]


def _bytes(blocks: int | None, size: int | None) -> int | None:
    return None if blocks is None or size is None else blocks * size
