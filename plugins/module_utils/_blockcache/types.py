# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of SSD caches: what is particular to each, as data.

Code of a type is in its folder; ``survey/host_caches.py`` has what reads its caches, ``_host/cache_types.py`` its specification and its layer. Nothing else
names a type, so that this table is what a new one is added to. It imports none of them: what only needs the table does not send their code to a host.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import FoundCache
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.enhanceio_devices import read_enhanceio_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, real_path

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_BY_NAME = "/dev/mapper/{name}"
_DM_CACHE = frozenset({"cache", "writecache"})
_NO_CACHE = "no cache"


def leads_to(devices: Devices, path: str, names: t.Container[str]) -> bool:
    """Whether a path is one of some devices."""
    try:
        return devices.resolve(path).name in names
    except DeviceMissing:
        return False


def _bcache_of(_devices: Devices, device: BlockDevice, root: Path) -> t.Iterator[FoundCache]:
    """A backing device with a cache, one that waits for it, a cache device of a set, and what is not registered (Documentation/admin-guide/bcache.rst)."""
    folder = root / "sys/class/block" / device.name / BCACHE.kernel_kind
    if device.kind == BCACHE.kernel_kind:
        # Its backing device is below it.
        return
    if (folder / "cache_mode").exists():
        if read_attribute(folder / "state") != _NO_CACHE:
            yield FoundCache(BCACHE.name, real_path(folder / "dev").name if (folder / "dev").is_symlink() else device.path)
    elif (folder / "set").exists():
        yield FoundCache(BCACHE.name, f"set on {device.path}")
    elif device.signature is not None and device.signature.type == BCACHE.kernel_kind:
        yield FoundCache(BCACHE.name, f"on {device.stable_path or device.path}", running=False)


def _enhanceio_of(devices: Devices, device: BlockDevice, root: Path) -> t.Iterator[FoundCache]:
    for name, paths in read_enhanceio_devices(root).items():
        # One that cannot be read may be of any device.
        if len(paths) < 2 or any(leads_to(devices, path, (device.name,)) for path in paths.values()):
            yield FoundCache(ENHANCEIO.name, name)


@frozen
class CacheType:
    """One type.

    :param name: as in ``block_cache_caches``, and that of the module.
    :param device: the path of the cached device, by the name of the cache; empty if the origin keeps its own path.
    :param mapping: the attribute of the step that removes the cached device, where this may come later than the removal of the cache; empty if they are one.
    :param targets: of device-mapper that its cached devices have.
    :param kernel_kind: the kind of its cached devices, where it has one of its own.
    :param found_on: the caches that a device belongs to, where the kernel does not show them as a mapping on it.
    :param has_unit: whether a systemd unit of this collection, which names its devices, starts a cache.
    :param has_tools: whether it needs tools and a kernel module that neither the kernel nor a distribution has, and declarations of the drives below.
    :param shares_devices: whether several caches may be on one cache device: parts of one volume group, or one set of caches.
    :param named_by_volume: whether a cache is named by the volume that it caches, and not by a name of its own.
    :param hides_data: whether the data of the origin are behind a header of its own, so that no other type can take its place.
    :param passes_flushes: whether a flush of the cached device reaches the drives below it in any mode.
    :param removed_in_use: whether it can be removed while the cached device is in use.
    :param whole_blocks: whether only requests of whole blocks are cached; the others cache any page.
    :param moves_blocks: whether a whole block is cached whatever the size of the request, and nothing is counted as bypassed.
    :param why_bypassed: what it bypasses, as the rest of a sentence; ``{cutoff}`` is the value of the setting ``cutoff``.
    :param cutoff_in_bytes: whether that is a size.
    :param counts_sizes: whether it counts requests by size.
    :param shared_histogram: whether its counts of sizes are one for all caches of the host.
    :param counts_late: whether its counters are some seconds old.
    :param counts_sectors: whether it counts hits and misses in sectors.
    :param dirty_at_most: part of a cache that may be dirty until writes wait for the origin.
    """

    name: str
    device: str = ""
    mapping: str = ""
    targets: frozenset[str] = frozenset()
    kernel_kind: str = ""
    found_on: t.Callable[[Devices, BlockDevice, Path], t.Iterable[FoundCache]] | None = None
    has_unit: bool = False
    has_tools: bool = False
    shares_devices: bool = False
    named_by_volume: bool = False
    hides_data: bool = False
    passes_flushes: bool = True
    removed_in_use: bool = True
    whole_blocks: bool = False
    moves_blocks: bool = False
    why_bypassed: str = ""
    cutoff: str = ""
    cutoff_in_bytes: bool = False
    counts_sizes: bool = False
    shared_histogram: bool = False
    counts_late: bool = False
    counts_sectors: bool = False
    dirty_at_most: float = 1.0

    @property
    def in_mapper(self) -> bool:
        """Whether the cached device is another one than the origin and has the name of the cache in ``/dev/mapper``."""
        return self.device == _BY_NAME


BCACHE = CacheType(
    "bcache",
    device="/dev/bcache/by-label/{name}",
    kernel_kind="bcache",
    found_on=_bcache_of,
    shares_devices=True,
    hides_data=True,
    why_bypassed="it bypasses what is read or written in sequence beyond sequential_cutoff{cutoff}, and everything while the cache device is slower than"
    " congested_read_threshold_us and congested_write_threshold_us; the kernel does not count which of these it was",
    cutoff="sequential_cutoff",
    cutoff_in_bytes=True,
    counts_late=True,
    # CUTOFF_WRITEBACK_SYNC of drivers/md/bcache/writeback.h: beyond it writes go to the origin.
    dirty_at_most=0.7,
)
ENHANCEIO = CacheType(
    "enhanceio",
    found_on=_enhanceio_of,
    has_unit=True,
    has_tools=True,
    whole_blocks=True,
    why_bypassed="it bypasses requests that are not whole blocks",
    counts_sizes=True,
    counts_sectors=True,
)
#: In the order in which caches of several types are configured.
CACHE_TYPES: t.Mapping[str, CacheType] = {
    kind.name: kind
    for kind in (
        CacheType("lvm_cache", targets=_DM_CACHE, shares_devices=True, named_by_volume=True, moves_blocks=True),
        CacheType("dm_cache", device=_BY_NAME, mapping="mapping", targets=_DM_CACHE, has_unit=True, moves_blocks=True),
        BCACHE,
        CacheType(
            "flashcache",
            device=_BY_NAME,
            mapping="cache",
            targets=frozenset({"flashcache"}),
            kernel_kind="flashcache",
            has_unit=True,
            has_tools=True,
            passes_flushes=False,
            removed_in_use=False,
            whole_blocks=True,
            why_bypassed="it bypasses every request that is not a whole block, and what is sequential beyond skip_seq_thresh_kb{cutoff}",
            cutoff="skip_seq_thresh_kb",
            counts_sizes=True,
            shared_histogram=True,
        ),
        ENHANCEIO,
    )
}
TYPES = tuple(CACHE_TYPES)
#: Those that need their own tools.
WITH_TOOLS = tuple(kind.name for kind in CACHE_TYPES.values() if kind.has_tools)
#: What the kernel calls cached devices: targets of device-mapper, and kinds of their own.
TARGETS = frozenset().union(*(kind.targets for kind in CACHE_TYPES.values()))
KERNEL_KINDS = frozenset(kind.kernel_kind for kind in CACHE_TYPES.values() if kind.kernel_kind)


def type_of(name: str) -> CacheType:
    """A type by its name, which may come from elsewhere: of one that is not known, nothing is particular."""
    return CACHE_TYPES.get(name) or CacheType(name)
