# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a plan of LVM caches do: one class for each operation. Paths are as the user wrote them; sizes are bytes."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec


#: What the kernel needs for a RAID1 of LVM.
MIRROR_MODULES = ("dm-raid", "raid1")


@frozen
class CachedVolume:
    """The volume that is cached, or will be.

    :param flush_timeout: seconds that a flush of it may take, or None.
    :param public: see :attr:`LvmCacheSpec.public`.
    """

    vg: str
    lv: str
    flush_timeout: int | None = None
    public: str = ""

    @classmethod
    def of(cls, spec: LvmCacheSpec) -> CachedVolume:
        return cls(spec.vg, spec.lv, spec.flush_timeout, spec.public)

    @property
    def full_name(self) -> str:
        return f"{self.vg}/{self.lv}"

    @property
    def command_name(self) -> str:
        """What lvconvert, ``lvchange --activate`` and ``lvchange --refresh`` get; ``--cachemode`` and ``--cachesettings`` need the full name."""
        return f"{self.vg}/{self.public or self.lv}"

    @property
    def path(self) -> str:
        """Its device. A hidden volume has none in the folder of its group."""
        return f"/dev/mapper/{self.device_name}" if self.public else f"/dev/{self.full_name}"

    @property
    def device_name(self) -> str:
        """Its name in device-mapper; with a snapshot the cache is in the layer below it (:func:`dm.layer_of`)."""
        return dm.device_name(self.vg, self.lv)


@frozen
class VolumeOperation(Operation):
    """An operation on behalf of a volume, which is resumed if a command that fails leaves it suspended."""

    needs_commands = ("dmsetup", "lvchange", "lvconvert", "lvcreate", "lvremove", "sync")
    cached: CachedVolume


# -- devices


@frozen
class CreatePhysicalVolume(Operation):
    """Make an empty device a physical volume."""

    needs_commands = ("pvcreate",)
    path: str


@frozen
class ExtendVolumeGroup(Operation):
    """Add a physical volume to a volume group."""

    needs_commands = ("vgextend",)
    vg: str
    path: str


@frozen
class ReleaseDevice(Operation):
    """Take a device that holds nothing out of its volume group and make it no physical volume."""

    needs_commands = ("vgreduce", "pvremove", "udevadm")
    vg: str
    path: str


@frozen
class ForgetMissing(VolumeOperation):
    """Remove missing devices that hold nothing from the volume group."""


# -- the fast volume


@frozen
class CreateVolume(VolumeOperation):
    """Create the fast volume, or of a mirrored cache pool its data.

    :param volume: its name.
    :param paths: the physical volumes.
    :param extents: its size.
    :param metadata: size of the metadata of a pool.
    :param fill: whether the size is a share of what is free, and may be an extent smaller on a device that became a physical volume just now.
    """

    volume: str
    paths: tuple[str, ...]
    kind: str
    mirror: bool
    extents: int
    metadata: int
    chunk_size: int | None
    fill: bool

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return MIRROR_MODULES if self.mirror else ()


@frozen
class CreateMetadata(VolumeOperation):
    """Create the metadata of a mirrored cache pool. Fields as of :class:`CreateVolume`."""

    needs_modules = MIRROR_MODULES
    volume: str
    paths: tuple[str, ...]
    extents: int


@frozen
class JoinPool(VolumeOperation):
    """Make a cache pool of its mirrored data and metadata."""

    volume: str
    metadata_volume: str
    chunk_size: int | None


@frozen
class RemoveVolume(VolumeOperation):
    """Remove a fast volume that is attached to nothing."""

    volume: str


# -- the cache


@frozen
class Attach(VolumeOperation):
    """Attach the fast volume.

    :param volume: its name.
    """

    volume: str
    kind: str
    mode: str
    chunk_size: int | None
    settings: t.Mapping[str, int]

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return dm.MODULES["writecache" if self.kind == "writecache" else "cache"]


@frozen
class SetMode(VolumeOperation):
    """Change the mode; from writeback to another one after a flush."""

    mode: str


@frozen
class LeaveCleaner(VolumeOperation):
    """Leave the policy in which an interrupted flush left the cache.

    :param stored: the mode that LVM has stored, which is in effect afterwards.
    """

    stored: str


@frozen
class SetSetting(VolumeOperation):
    """Change one setting of dm-cache; ``default`` removes it."""

    key: str
    value: str


@frozen
class SetSettings(VolumeOperation):
    """Change settings of a writecache.

    :param settings: what they become.
    :param reset: those that are removed.
    :param kept: those that are stored and stay.
    """

    settings: t.Mapping[str, str]
    reset: tuple[str, ...]
    kept: t.Mapping[str, str]


@frozen
class SetCleaner(VolumeOperation):
    """Set ``cleaner`` of a writecache, 0 or 1: whether it only writes back."""

    cleaner: int


@frozen
class Refresh(VolumeOperation):
    """Load the table again, as LVM has it stored.

    :param mode: the mode that is in effect afterwards; None if it does not prove that the table was loaded.
    """

    mode: str | None


@frozen
class GoOn(VolumeOperation):
    """Resume devices of device-mapper that an interrupted command left suspended, in this order."""

    names: tuple[str, ...]


@frozen
class ActivateUnused(VolumeOperation):
    """Activate a volume whose cache was being attached when the host went down, and holds nothing: LVM's check rejects its metadata."""


@frozen
class FlushWritecache(VolumeOperation):
    """Let a writecache only write back, and wait until it is empty."""


@frozen
class ProveClean(VolumeOperation):
    """Bring the cache to where nothing is dirty in it and nothing can become so, and prove that."""


@frozen
class Detach(VolumeOperation):
    """Detach a clean cache and remove the fast volume."""


@frozen
class Drop(VolumeOperation):
    """Remove a cache that misses its device or has failed, and that wrote through."""


@frozen
class FinishDetaching(VolumeOperation):
    """Finish a detachment that was interrupted.

    :param dead: the name of the cached volume that no longer serves.
    :param pool: the name of its fast volume, or empty.
    """

    dead: str
    pool: str


#: Operations after which the same devices lie on the same devices: they need not be examined again.
WITHIN = (SetMode, SetSetting, SetSettings, SetCleaner, Refresh, LeaveCleaner, GoOn, ProveClean, FlushWritecache)
