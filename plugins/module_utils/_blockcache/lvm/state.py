# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM and its caches as they are on a host: what lies on what, what is missing, what is kept twice."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, MIRRORED, UNMIRRORED, DeviceUse
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import CacheStatus, CacheTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume, PhysicalVolume
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin

LAYER = "lvm_cache"
#: In LVM's list of settings, and no setting of the user: it is how a writecache is flushed.
CLEANER = "cleaner"
#: On every volume that this layer made: without it an unattached volume might hold other data and is not touched.
TAG = "cachefleet.storage"
#: What LVM prints in place of the path of a device that is not there.
GONE = "[unknown]"
#: The segment type of an image of a RAID volume with integrity (lvmraid(7), Data Integrity).
INTEGRITY = "integrity"
#: How many of its images a RAID volume can do without; of raid10 more, if they are the right ones.
_SPARED = {"raid1": None, "raid10": 1, "raid4": 1, "raid5": 1, "raid6": 2}


@frozen
class BootVolume:
    """A volume that the host boots from.

    :param roles: what it is for, each as the rest of a sentence about it.
    :param lacking: what images lack, or why that is not known; empty if they can activate its cache.
    :param way: what to do about it.
    """

    roles: tuple[str, ...]
    lacking: str = ""
    way: str = ""

    def sentence(self, spec: LvmCacheSpec) -> str:
        """Why it must not be left so."""
        return f"{spec.name}: {spec.origin} {' and '.join(self.roles)}, and {self.lacking}: {self.way}, or the host may not boot."


@frozen
class LvmState:
    """LVM as it is.

    :param pv_devices: kernel name of the device behind each physical volume, by the path LVM reports.
    :param kernel: the kernel's status of each cache, by the full name of the volume. LVM's own ``cache_mode`` and
        ``cache_policy`` are what it has stored, and after a command that was killed the kernel does something else.
    :param tables: the kernel's table, for each writecache and each cache that shows no figures any more.
    :param findings: what each wanted cache device that is no physical volume yet contains and is used by, by kernel name.
        udev does not report all of it: after pvremove it was observed to miss the file system that was made next.
    :param redundant: kernel names of MD arrays that survive the loss of a member.
    :param degraded: kernel names of MD arrays that would, if they had all their members.
    :param sectors: size in bytes of the sectors of the file system on an origin, where it was requested.
    :param memory: bytes of memory of the host, None if not known.
    :param unused: full names of cached volumes that are not active because the host went down while LVM attached their cache, which holds nothing.
    :param origins: what the origins of items that need not have a cache belong to, by the name of the item.
    :param boot: the origins that the host boots from, by full name.
    :param cache_check: whether the checker of cache metadata is installed: without it LVM activates caches unchecked.
    :param caches_integrity: whether this LVM attaches a cache to a RAID volume with integrity.
    """

    volumes: tuple[LogicalVolume, ...]
    physical: tuple[PhysicalVolume, ...]
    devices: Devices
    pv_devices: t.Mapping[str, str] = field(default_factory=dict)
    kernel: t.Mapping[str, CacheStatus] = field(default_factory=dict)
    tables: t.Mapping[str, CacheTable] = field(default_factory=dict)
    findings: t.Mapping[str, DeviceUse] = field(default_factory=dict)
    redundant: frozenset[str] = frozenset()
    degraded: frozenset[str] = frozenset()
    sectors: t.Mapping[str, int] = field(default_factory=dict)
    memory: int | None = None
    unused: frozenset[str] = frozenset()
    boot: t.Mapping[str, BootVolume] = field(default_factory=dict)
    cache_check: bool = True
    caches_integrity: bool = False
    origins: t.Mapping[str, Origin] = field(default_factory=dict)

    @functools.cached_property
    def _by_name(self) -> dict[tuple[str, str], LogicalVolume]:
        return {(volume.vg, volume.name): volume for volume in self.volumes}

    def volume(self, vg: str, name: str) -> LogicalVolume | None:
        return self._by_name.get((vg, name))

    def pool_of(self, cached: LogicalVolume) -> LogicalVolume | None:
        """The fast volume of a cached one, as LVM calls it while it is attached."""
        return self.volume(cached.vg, cached.pool or "")

    def physical_of(self, device: BlockDevice) -> PhysicalVolume | None:
        return next((pv for pv in self.physical if self.pv_devices.get(pv.path) == device.name), None)

    def extent_size(self, vg: str) -> int:
        return next((pv.extent_size for pv in self.physical if pv.vg == vg), 0)

    # -- what lies on what

    def parts(self, volume: LogicalVolume) -> list[LogicalVolume]:
        """A volume and every hidden one that it is made of."""
        found = [volume]
        for name in self._below(volume):
            below = self.volume(volume.vg, name)
            if below is not None and below is not volume:
                found += self.parts(below)
        return found

    def _below(self, volume: LogicalVolume) -> list[str]:
        """The names of what a volume lies on; LVM's reports do not show that a pool, a RAID volume and an image with integrity have metadata too."""
        names = list(volume.devices)
        if volume.segtype == "cache-pool":
            names.append(f"{volume.name}_cmeta")
        if volume.segtype.startswith("raid"):
            names += [name.replace("_rimage_", "_rmeta_") for name in volume.devices]
        if volume.segtype == INTEGRITY:
            names.append(f"{volume.name}_imeta")
        return names

    def has_integrity(self, volume: LogicalVolume) -> bool:
        """Whether the images of a RAID volume have checksums (``--raidintegrity y``): each lies on ``_iorig``, with ``_imeta`` beside it."""
        return any(part.segtype == INTEGRITY for part in self.parts(volume))

    def paths_under(self, volume: LogicalVolume) -> set[str]:
        """The paths of the physical volumes that a volume lies on, through every hidden volume in between."""
        return {path for part in self.parts(volume) for path in part.devices if self.volume(part.vg, path) is None}

    def devices_under(self, volume: LogicalVolume) -> set[str]:
        """The kernel names of those; a path for which LVM has no device (:data:`GONE`) stays as it is."""
        return {self.pv_devices.get(path, path) for path in self.paths_under(volume)}

    def spares(self, vg: str) -> list[LogicalVolume]:
        """The volume group's spare for the repair of pool metadata."""
        return [volume for volume in self.volumes if volume.vg == vg and volume.name.endswith("_pmspare")]

    def spare(self, vg: str) -> int:
        """The size of that spare."""
        return max((volume.size for volume in self.spares(vg)), default=0)

    def leaves_on(self, device: BlockDevice, vg: str) -> list[LogicalVolume]:
        """The volumes of a group that lie directly on a device, hidden ones included."""
        paths = {path for path, name in self.pv_devices.items() if name == device.name}
        return [volume for volume in self.volumes if volume.vg == vg and paths & set(volume.devices)]

    # -- what is missing

    def missing(self, vg: str) -> bool:
        """Whether a volume group misses a device."""
        return any(pv.missing and pv.vg == vg for pv in self.physical)

    def missing_and_needed(self, vg: str) -> bool:
        """Whether a volume of the group lies on a device that is missing."""
        return any(GONE in volume.devices for volume in self.volumes if volume.vg == vg)

    def lost(self, volume: LogicalVolume) -> bool:
        """Whether a volume cannot be read whole, because too much of what it lies on is missing."""
        below = {name: self.volume(volume.vg, name) for name in self._below(volume)}
        inner = {name: part for name, part in below.items() if part is not None and part is not volume}
        if not volume.segtype.startswith("raid"):
            return GONE in below or any(self.lost(part) for part in inner.values())
        images = [name for name in inner if "_rimage_" in name]
        broken = [name for name in images if any(self.lost(inner[twin]) for twin in (name, name.replace("_rimage_", "_rmeta_")) if twin in inner)]
        spared = _SPARED.get(volume.segtype.split("_")[0], 0)
        return len(broken) > (len(images) - 1 if spared is None else spared)

    # -- what is kept twice

    def redundancy(self, devices: t.AbstractSet[str], pool: LogicalVolume | None = None) -> str:
        """``mirrored`` if what lies on these devices survives the loss of one, ``degraded`` if it no longer does, or ``none``.

        :param pool: the fast volume, which LVM itself may keep twice.
        """
        if devices and devices <= self.redundant | self.degraded:
            return DEGRADED if devices & self.degraded else MIRRORED
        mirrors = self.mirrors(pool) if pool is not None else []
        if not mirrors:
            return UNMIRRORED
        return DEGRADED if any(self.out_of_step(mirror) for mirror in mirrors) else MIRRORED

    def mirrors(self, pool: LogicalVolume) -> list[LogicalVolume]:
        """The RAID1 volumes that a fast volume consists of; none if any part of it is kept only once."""
        parts = [self.volume(pool.vg, f"{pool.name}_{part}") for part in ("cdata", "cmeta")] if pool.segtype == "cache-pool" else [pool]
        mirrors = [part for part in parts if part is not None and part.segtype in ("raid1", "raid10", "raid10_near")]
        return mirrors if len(mirrors) == len(parts) else []

    def out_of_step(self, mirror: LogicalVolume) -> bool:
        """Whether a RAID volume has lost an image, or one that came back does not hold everything yet."""
        lost = any(self.lost(part) for part in self.parts(mirror)[1:])
        return lost or mirror.partial or bool(mirror.health) or (mirror.synced is not None and mirror.synced < 100)


def kind_of(cached: LogicalVolume | None, pool: LogicalVolume | None) -> str:
    """The construction of a cache, or of a fast volume that is not attached (``cached`` None)."""
    if cached is not None and cached.writecache:
        return "writecache"
    return "cachepool" if pool is not None and pool.segtype == "cache-pool" else "cachevol"


def given_name(cached: LogicalVolume) -> str:
    """The name of the fast volume without the suffix that LVM gave it when it was attached."""
    name = cached.pool or ""
    return next((name[: -len(suffix)] for suffix in ("_cpool", "_cvol") if name.endswith(suffix)), name)
