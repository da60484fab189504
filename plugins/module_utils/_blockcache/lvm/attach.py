# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that make a cache where there is none, and what an interrupted run left of one. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import names as lvm_names
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import sizes as lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.devices import Earlier, Placement
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import (
    Attach,
    CachedVolume,
    CreateMetadata,
    CreateVolume,
    FinishDetaching,
    ForgetMissing,
    JoinPool,
    RemoveVolume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.settings import settings_at_attach, steps_after_attach
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import GONE, LAYER, TAG, kind_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, round_up

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState

#: Volumes that a cache can sit on. Thin pools, snapshots and mirrors of the old kind are other stories.
CACHEABLE = ("linear", "striped", "raid0", "raid0_meta", "raid1", "raid10", "raid10_near", "raid4", "raid5", "raid6")


class AttachPlan:
    """What the plan of one cache needs to make it."""

    def __init__(self, state: LvmState, spec: LvmCacheSpec, earlier: Earlier) -> None:
        self.state = state
        self.spec = spec
        self.earlier = earlier
        self.place = Placement(state, spec, earlier)
        self.volume = CachedVolume.of(spec)
        self.origin = state.volume(spec.vg, spec.lv)

    def attach(self, origin: LogicalVolume) -> list[Step]:
        """The steps from empty devices, or from what a run that was cut off left, to a cache that is attached.

        :param origin: the volume, with another cache still on it if the plan takes that away first.
        """
        spec = self.spec
        self._require_no_integrity(origin)
        self._require_cache_check()
        self._require_bootable()
        self._require_block_size()
        settings = settings_at_attach(spec)
        steps = [*self.finish_detaching(), *self.forget_missing(), *self.place.own(origin)]
        created, size, chunk = self._create()
        steps += created
        after = {
            "kind": spec.kind,
            "volume": spec.volume,
            "size": size,
            "chunk_size": chunk,
            "devices": list(spec.cache_devices),
            "mirror": spec.mirror,
            "mode": spec.mode,
            "settings": settings,
        }
        action = f"Attach {spec.kind} {spec.vg}/{spec.volume} to {origin.full_name} in mode {spec.mode}"
        steps.append(self.step("cache", None, after, action, Attach(self.volume, spec.volume, spec.kind, spec.mode, chunk, settings)))
        return steps + steps_after_attach(spec)

    def require_origin(self) -> LogicalVolume:
        """The volume to cache.

        :raises DeviceMissing: if it is not there.
        :raises BadInput: if it cannot be cached.
        :raises Refused: if it is not active or not whole.
        """
        origin = self.origin
        if origin is None:
            raise self.no_origin()
        if self.state.lost(origin) or origin.partial:
            raise self.refused(lvm_health.missing_device_advice(self.state, origin.vg))
        if origin.hidden and not self.spec.public:
            raise self.bad(f"is an inner part of another volume: name the volume it serves, not {origin.name}")
        if origin.attr[:1] in ("s", "S") or "snapshot" in origin.roles:
            raise self.bad("is a snapshot, which cannot be cached: name the volume that the snapshot was taken of")
        if origin.segtype in ("thin", "vdo"):
            raise self.bad(f"is a volume of the pool {origin.vg}/{origin.pool}, whose cache serves all of them: name the pool")
        if origin.segtype not in CACHEABLE and not origin.segtype.startswith(("raid5_", "raid6_")):
            raise self.bad(f"is of type {origin.segtype}, which this role does not cache: name a linear, striped or raid volume, or a thin pool")
        if not origin.active:
            raise self.refused(lvm_health.inactive_advice(self.state, origin))
        return origin

    def no_origin(self) -> DeviceMissing | Refused:
        """Why there is no such volume."""
        hidden = lvm_names.not_shown(self.spec, self.state.volumes, self.state.devices)
        if hidden:
            return self.refused(f"{hidden}, or run this on the host that owns it")
        groups = sorted({pv.vg for pv in self.state.physical if pv.vg})
        if self.spec.vg not in groups:
            return DeviceMissing(
                f"{self.spec.name}: there is no volume group {self.spec.vg} on this host (there is {', '.join(groups) or 'none'}):"
                " create it, or correct origin.",
                item=self.spec.name,
            )
        names = sorted(volume.name for volume in self.state.volumes if volume.vg == self.spec.vg and not volume.hidden)
        return DeviceMissing(
            f"{self.spec.name}: volume group {self.spec.vg} has no logical volume {self.spec.lv} (it has {', '.join(names) or 'none'}):"
            " create it, or correct origin.",
            item=self.spec.name,
        )

    def forget_missing(self) -> list[Step]:
        """LVM changes nothing in a volume group that misses a device. One that holds nothing can be removed without ``--force``.

        :raises Refused: if something of the group lies on it.
        """
        vg = self.spec.vg
        if not self.state.missing(vg) or vg in self.earlier.mended:
            return []
        if self.place.needed(volume for volume in self.state.volumes if volume.vg == vg and GONE in volume.devices):
            hidden = lvm_health.hidden_device(self.state, vg)
            raise self.refused(hidden or "belongs to a volume group that misses a device: reconnect it, or repair the volume group manually")
        hidden = lvm_health.hidden_device(self.state, vg, certain=True)
        if hidden:
            raise self.refused(hidden)
        self.earlier.mended.add(vg)
        action = f"Remove the missing devices without data from volume group {vg}"
        return [self.step("volume_group", "misses devices", "whole", action, ForgetMissing(self.volume))]

    # -- the fast volume

    def _create(self) -> tuple[list[Step], int, int | None]:
        """The steps that make the fast volume, its size, and the size of its chunks (of a writecache: of its blocks, if requested)."""
        return self._create_mirrored_pool() if self.spec.kind == "cachepool" and self.spec.mirror else self._create_one()

    def _create_one(self) -> tuple[list[Step], int, int | None]:
        spec = self.spec
        leftover = self._leftover(spec.volume)
        if leftover is not None and self._fits(leftover):
            return self._remove_others(leftover), leftover.size, self._chunk(leftover.size, leftover.chunk_size)
        steps = self.remove_leftovers()
        layout = self.place.lay_out()
        size = layout.extents * self.extent_size
        return [*steps, self._create_volume(size, layout)], size, self._chunk(size, layout.chunk_size)

    def _create_mirrored_pool(self) -> tuple[list[Step], int, int | None]:
        """LVM makes no pool of two RAID1 volumes at once: metadata, data, and one pool of both."""
        spec = self.spec
        pool, metadata = self._leftover(spec.volume), self._leftover(spec.metadata_volume)
        if pool is not None and pool.segtype == "cache-pool" and self._fits(pool):
            return self._remove_others(pool), pool.size, self._chunk(pool.size, pool.chunk_size)
        steps: list[Step] = []
        reusable = pool is not None and metadata is not None and pool.segtype == "raid1" and self._fits(pool, part=True) and self._lies_right(metadata)
        if pool is not None and metadata is not None and reusable:
            size, chunk = pool.size, self._chunk(pool.size, None)
            reusable = metadata.size >= lvm_layout.metadata_size(size, chunk or lvm_layout.DEFAULT_CHUNK)
        if not reusable:
            steps = self.remove_leftovers()
            layout = self.place.lay_out()
            size, chunk = layout.extents * self.extent_size, layout.chunk_size
            extents = layout.metadata // self.extent_size
            operation = CreateMetadata(self.volume, spec.metadata_volume, tuple(spec.cache_devices), extents)
            steps.append(self._create_step("cache_metadata", "metadata volume", layout.metadata, operation))
            steps.append(self._create_volume(size, layout))
        action = f"Create the cache pool {spec.vg}/{spec.volume} of the two mirrored volumes"
        after = {"kind": "cachepool", "volume": spec.volume}
        steps.append(self.step("cache_volume", None, after, action, JoinPool(self.volume, spec.volume, spec.metadata_volume, chunk)))
        return steps, size, chunk

    def _create_volume(self, size: int, layout: lvm_layout.Layout) -> Step:
        spec = self.spec
        operation = CreateVolume(
            self.volume,
            spec.volume,
            tuple(spec.cache_devices),
            kind=spec.kind,
            mirror=spec.mirror,
            extents=layout.extents,
            metadata=layout.metadata,
            chunk_size=layout.chunk_size,
            # A device that becomes a physical volume in this very run may turn out an extent smaller than computed.
            fill=spec.size is None,
        )
        return self._create_step("cache_volume", spec.kind, size, operation)

    def _create_step(self, attribute: str, what: str, size: int, operation: CreateVolume | CreateMetadata) -> Step:
        spec = self.spec
        after = {"kind": spec.kind, "volume": operation.volume, "size": size, "devices": list(spec.cache_devices)}
        mirrored = "mirrored " if spec.mirror else ""
        action = f"Create {mirrored}{what} {spec.vg}/{operation.volume} of {format_size(size)} on {' and '.join(spec.cache_devices)}"
        return self.step(attribute, None, after, action, operation)

    def _chunk(self, size: int, found: int | None) -> int | None:
        if self.spec.kind == "writecache":
            return self.spec.settings.get(BLOCK_SIZE)
        return found or lvm_layout.choose_chunk(size, self.spec.chunk_size, self.spec.name)

    # -- what an earlier run left

    def finish_detaching(self) -> list[Step]:
        """What an ``lvconvert --uncache`` that was killed leaves: the origin serves alone, and the unusable cached volume lies over it.

        The layers have changed places by then, nothing is in the cache any more, and the fast volume is attached to the unusable one.
        """
        dead = self.state.volume(self.spec.vg, f"{self.spec.lv}_corig")
        if dead is None or not dead.cached or dead.devices != (self.spec.lv,) or dead.full_name in self.earlier.removed:
            return []
        self.earlier.removed.add(dead.full_name)
        pool = self.state.pool_of(dead)
        if pool is not None:
            self.place.forget(pool)
        action = f"Finish detaching the cache of {self.target}, which was interrupted"
        before = {"kind": kind_of(dead, pool), "volume": dead.pool}
        return [self.step("detaching", before, None, action, FinishDetaching(self.volume, dead.name, dead.pool or ""))]

    def remove_leftovers(self) -> list[Step]:
        """The steps that remove the fast volumes of an earlier run which are attached to nothing."""
        return [self._remove_step(volume) for volume in self._leftovers()]

    def _remove_others(self, kept: LogicalVolume) -> list[Step]:
        return [self._remove_step(volume) for volume in self._leftovers() if volume.name != kept.name]

    def _remove_step(self, volume: LogicalVolume) -> Step:
        self.place.forget(volume)
        before = {"kind": kind_of(None, volume), "volume": volume.name, "size": volume.size}
        action = f"Remove the unattached cache volume {volume.full_name}"
        return self.step(f"unattached.{volume.name}", before, None, action, RemoveVolume(self.volume, volume.name))

    def _leftovers(self) -> list[LogicalVolume]:
        """Everything unattached that bears the names of this cache's volumes and is ours."""
        names = (self.spec.volume, self.spec.metadata_volume)
        parts = tuple(f"{name}_{part}_" for name in names for part in ("rimage", "rmeta"))
        found = []
        for volume in self.state.volumes:
            if volume.vg != self.spec.vg or volume.hidden:
                continue
            if volume.name in names and self._ours(volume):
                found.append(volume)
        # An lvcreate that was killed may leave the images of a mirror standing alone; those of one that is there go with it.
        with_them = tuple(f"{volume.name}_r" for volume in found)
        alone = [volume for volume in self.state.volumes if volume.vg == self.spec.vg and not volume.hidden and volume.name.startswith(parts)]
        return found + [volume for volume in alone if not volume.name.startswith(with_them or ("/",))]

    def _leftover(self, name: str) -> LogicalVolume | None:
        """An unattached volume of that name.

        :raises Refused: if it is not ours.
        """
        volume = self.state.volume(self.spec.vg, name)
        if volume is not None and not self._ours(volume):
            raise self.refused(
                f"would get a cache volume named {name}, and a volume of that name that is not ours is already there:"
                f" if nothing on it is needed, remove it with lvremove {volume.full_name}"
            )
        return volume

    def _ours(self, volume: LogicalVolume) -> bool:
        """LVM moves the tag of what becomes a pool to the data inside it."""
        return any(TAG in part.tags for part in self.state.parts(volume))

    def _fits(self, volume: LogicalVolume, *, part: bool = False) -> bool:
        """Whether an unattached volume is the one that would be made; ``part``: whether it is to become the data of a pool."""
        spec = self.spec
        pool = volume.segtype == "cache-pool"
        if pool != (spec.kind == "cachepool" and not part) or not self._lies_right(volume):
            return False
        if spec.size is not None and volume.size != round_up(spec.size, self.extent_size):
            return False
        return not pool or spec.chunk_size is None or volume.chunk_size == spec.chunk_size

    def _lies_right(self, volume: LogicalVolume) -> bool:
        mirrored = bool(self.state.mirrors(volume))
        if not self._finished(volume):
            return False
        names = {device.name for device in self.place.devices()}
        return mirrored == self.spec.mirror and self.state.devices_under(volume) == names

    def _finished(self, volume: LogicalVolume) -> bool:
        """Whether LVM came to the end of making it: a mirror whose making was killed is not to be activated, or shows its metadata."""
        parts = self.state.parts(volume)
        unfinished = volume.attr[9:10] == "k" or volume.attr[4:5] == "X"
        return not unfinished and not any(part.name.rpartition("_")[0].endswith("_rmeta") and not part.hidden for part in parts)

    # -- what is checked before

    def _require_bootable(self) -> None:
        """A volume that the host boots from gets a cache only if that is allowed, and if the initramfs can activate it."""
        spec, booted = self.spec, self.state.boot.get(self.spec.full_name)
        if booted is None:
            return
        if not spec.allow_boot_volume:
            way = f"; before that, {booted.way}, as {booted.lacking}" if booted.lacking else ""
            raise self.refused(
                f"{' and '.join(booted.roles)}: the host boots from it, so that it does not boot if its initramfs lacks a driver or the cache device is lost,"
                f" and a boot loader that reads /boot from it reads past the cache: set allow_boot_volume: true for this cache to allow it{way}"
            )
        if booted.lacking:
            raise Refused(booted.sentence(spec), item=spec.name)

    def _require_no_integrity(self, origin: LogicalVolume) -> None:
        """An LVM that does not cache it would leave the attachment half made."""
        if self.state.caches_integrity:
            return
        for volume in self.place.origin_parts(origin):
            if self.state.has_integrity(volume):
                raise self.refused(
                    f"is a RAID volume with integrity, to which this LVM attaches no cache (2.03.31 does): remove the integrity (lvconvert --raidintegrity"
                    f" n {volume.full_name}), or cache another volume; what is on it stays, and checksums cannot be added while it has a cache"
                )

    def _require_cache_check(self) -> None:
        if self.spec.kind != "writecache" and not self.state.cache_check:
            from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import package_advice

            raise ToolMissing(
                f"{self.spec.name}: the command cache_check is missing on this host, and LVM needs it to check a cache before it is used:"
                f" {package_advice('cache_check')}.",
                item=self.spec.name,
            )

    def _require_block_size(self) -> None:
        """A file system whose sectors are smaller than the blocks of the writecache would not mount any more, or break."""
        sector, block = self.state.sectors.get(self.spec.full_name), self.spec.settings.get(BLOCK_SIZE)
        if sector is not None and block is not None and sector < block:
            raise self.refused(
                f"carries a file system that writes in units of {sector} bytes, which a writecache with block_size {block} does not support:"
                f" set block_size to 512, or leave it out"
            )

    # -- shared

    def step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
        return Step(LAYER, self.spec.name, attribute, before, after, action, operation)

    @property
    def extent_size(self) -> int:
        return self.state.extent_size(self.spec.vg)

    @property
    def target(self) -> str:
        return self.spec.origin

    def refused(self, reason: str) -> Refused:
        return Refused(f"{self.spec.name}: {self.spec.origin} {reason}.", item=self.spec.name)

    def bad(self, reason: str) -> BadInput:
        return BadInput(f"{self.spec.name}: {self.spec.origin} {reason}.", item=self.spec.name)
