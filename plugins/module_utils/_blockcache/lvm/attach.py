# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that make a cache where there is none, and what an interrupted run left of one. Pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import sizes as lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.devices import Earlier, Placement
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.settings import settings_at_attach, steps_after_attach
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import GONE, LAYER, TAG, kind_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import PACKAGES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, round_up

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState

#: Volumes that a cache can sit on. Thin pools, snapshots and mirrors of the old kind are other stories.
CACHEABLE = ("linear", "striped", "raid0", "raid0_meta", "raid1", "raid10", "raid10_near", "raid4", "raid5", "raid6")


class AttachPlan:
    """What the plan of one cache needs to make it."""

    def __init__(self, present: LvmState, wanted: LvmCacheSpec, earlier: Earlier) -> None:
        self.present = present
        self.wanted = wanted
        self.earlier = earlier
        self.place = Placement(present, wanted, earlier)
        self.origin = present.volume(wanted.vg, wanted.lv)

    def attach(self, origin: LogicalVolume) -> list[Step]:
        """The steps from empty devices, or from what a run that was cut off left, to a cache that is attached.

        :param origin: the volume, with another cache still on it if the plan takes that away first.
        """
        wanted = self.wanted
        self._require_cache_check()
        self._require_block_size()
        settings = settings_at_attach(wanted)
        steps = [*self.finish_detaching(), *self.forget_missing(), *self.place.own(origin)]
        created, size, chunk = self._create()
        steps += created
        after = {
            "kind": wanted.kind,
            "volume": wanted.volume,
            "size": size,
            "chunk_size": chunk,
            "devices": list(wanted.cache_devices),
            "mirror": wanted.mirror,
            "mode": wanted.mode,
            "settings": settings,
        }
        action = f"Attach {wanted.kind} {wanted.vg}/{wanted.volume} to {origin.full_name} in mode {wanted.mode}"
        steps.append(self.step("cache", None, after, action, "attach", chunk_size=chunk, kind=wanted.kind, mode=wanted.mode, settings=settings))
        return steps + steps_after_attach(wanted)

    def require_origin(self) -> LogicalVolume:
        """The volume to cache.

        :raises DeviceMissing: if it is not there.
        :raises BadInput: if it cannot be cached.
        :raises Refused: if it is not active or not whole.
        """
        origin = self.origin
        if origin is None:
            raise self._no_origin()
        if self.present.lost(origin) or origin.partial:
            raise self.refused("belongs to a volume group that misses a device: bring it back, or let a person repair the volume group")
        if origin.hidden:
            raise self.bad(f"is an inner part of another volume: name the volume it serves, not {origin.name}")
        if origin.attr[:1] in ("s", "S") or "snapshot" in origin.roles:
            raise self.bad("is a snapshot, which cannot be cached: name the volume that the snapshot was taken of")
        if origin.segtype not in CACHEABLE and not origin.segtype.startswith(("raid5_", "raid6_")):
            raise self.bad(f"is of type {origin.segtype}, which this role does not cache: name a linear, striped or raid volume")
        if not origin.active:
            raise self.refused(lvm_health.inactive_advice(origin))
        return origin

    def _no_origin(self) -> DeviceMissing:
        groups = sorted({pv.vg for pv in self.present.physical if pv.vg})
        if self.wanted.vg not in groups:
            return DeviceMissing(
                f"{self.wanted.name}: there is no volume group {self.wanted.vg} on this host (there is {', '.join(groups) or 'none'}):"
                " create it, or correct origin.",
                item=self.wanted.name,
            )
        names = sorted(volume.name for volume in self.present.volumes if volume.vg == self.wanted.vg and not volume.hidden)
        return DeviceMissing(
            f"{self.wanted.name}: volume group {self.wanted.vg} has no logical volume {self.wanted.lv} (it has {', '.join(names) or 'none'}):"
            " create it, or correct origin.",
            item=self.wanted.name,
        )

    def forget_missing(self) -> list[Step]:
        """LVM changes nothing in a volume group that misses a device. One that holds nothing can be forgotten without ``--force``.

        :raises Refused: if something of the group lies on it.
        """
        vg = self.wanted.vg
        if not self.present.missing(vg) or vg in self.earlier.mended:
            return []
        if self.place.needed(volume for volume in self.present.volumes if volume.vg == vg and GONE in volume.devices):
            raise self.refused("belongs to a volume group that misses a device: bring it back, or let a person repair the volume group")
        self.earlier.mended.add(vg)
        action = f"Forget the devices that volume group {vg} misses and that hold nothing of it"
        return [self.step("volume_group", "misses devices", "whole", action, "forget_missing")]

    # -- the fast volume

    def _create(self) -> tuple[list[Step], int, int | None]:
        """The steps that make the fast volume, its size, and the size of its chunks (of a writecache: of its blocks, if asked for)."""
        return self._create_mirrored_pool() if self.wanted.kind == "cachepool" and self.wanted.mirror else self._create_one()

    def _create_one(self) -> tuple[list[Step], int, int | None]:
        wanted = self.wanted
        leftover = self._leftover(wanted.volume)
        if leftover is not None and self._fits(leftover):
            return self._remove_others(leftover), leftover.size, self._chunk(leftover.size, leftover.chunk_size)
        steps = self.remove_leftovers()
        layout = self.place.lay_out()
        size = layout.extents * self.extent_size
        step = self._create_step("create_volume", wanted.volume, size, layout.extents, layout)
        return [*steps, step], size, self._chunk(size, layout.chunk_size)

    def _create_mirrored_pool(self) -> tuple[list[Step], int, int | None]:
        """LVM makes no pool of two RAID1 volumes at once: metadata, data, and one pool of both."""
        wanted = self.wanted
        pool, metadata = self._leftover(wanted.volume), self._leftover(wanted.metadata_volume)
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
            steps.append(self._create_step("create_metadata", wanted.metadata_volume, layout.metadata, extents, layout))
            steps.append(self._create_step("create_volume", wanted.volume, size, layout.extents, layout))
        action = f"Make the cache pool {wanted.vg}/{wanted.volume} of the two mirrored volumes"
        steps.append(self.step("cache_volume", None, {"kind": "cachepool", "volume": wanted.volume}, action, "join_pool", chunk_size=chunk))
        return steps, size, chunk

    def _create_step(self, operation: str, name: str, size: int, extents: int, layout: lvm_layout.Layout) -> Step:
        wanted = self.wanted
        paths = list(wanted.cache_devices)
        what = "metadata volume" if operation == "create_metadata" else wanted.kind
        mirrored = "mirrored " if wanted.mirror else ""
        return self.step(
            "cache_metadata" if operation == "create_metadata" else "cache_volume",
            None,
            {"kind": wanted.kind, "volume": name, "size": size, "devices": paths},
            f"Create {mirrored}{what} {wanted.vg}/{name} of {format_size(size)} on {' and '.join(paths)}",
            operation,
            paths=paths,
            kind=wanted.kind,
            mirror=wanted.mirror,
            extents=extents,
            metadata=layout.metadata,
            chunk_size=layout.chunk_size,
            # A device that becomes a physical volume in this very run may turn out an extent smaller than computed.
            fill=wanted.size is None and operation == "create_volume",
        )

    def _chunk(self, size: int, found: int | None) -> int | None:
        if self.wanted.kind == "writecache":
            return self.wanted.settings.get(BLOCK_SIZE)
        return found or lvm_layout.choose_chunk(size, self.wanted.chunk_size, self.wanted.name)

    # -- what an earlier run left

    def finish_detaching(self) -> list[Step]:
        """What an ``lvconvert --uncache`` that was killed leaves: the origin serves alone, and the cached volume lies over it, dead.

        The layers have changed places by then, nothing is in the cache any more, and the fast volume hangs on the dead one.
        """
        dead = self.present.volume(self.wanted.vg, f"{self.wanted.lv}_corig")
        if dead is None or not dead.cached or dead.devices != (self.wanted.lv,) or dead.full_name in self.earlier.removed:
            return []
        self.earlier.removed.add(dead.full_name)
        pool = self.present.pool_of(dead)
        if pool is not None:
            self.place.forget(pool)
        action = f"Finish detaching the cache of {self.target}, which was broken off"
        before = {"kind": kind_of(dead, pool), "volume": dead.pool}
        return [self.step("detaching", before, None, action, "finish_detaching", dead=dead.name, pool=dead.pool or "")]

    def remove_leftovers(self) -> list[Step]:
        """The steps that remove the fast volumes of an earlier run which are attached to nothing."""
        return [self._remove_step(volume) for volume in self._leftovers()]

    def _remove_others(self, kept: LogicalVolume) -> list[Step]:
        return [self._remove_step(volume) for volume in self._leftovers() if volume.name != kept.name]

    def _remove_step(self, volume: LogicalVolume) -> Step:
        self.place.forget(volume)
        before = {"kind": kind_of(None, volume), "volume": volume.name, "size": volume.size}
        action = f"Remove the unattached cache volume {volume.full_name}"
        return self.step(f"unattached.{volume.name}", before, None, action, "remove_volume", remove=volume.name)

    def _leftovers(self) -> list[LogicalVolume]:
        """Everything unattached that bears the names of this cache's volumes and is ours."""
        names = (self.wanted.volume, self.wanted.metadata_volume)
        parts = tuple(f"{name}_{part}_" for name in names for part in ("rimage", "rmeta"))
        found = []
        for volume in self.present.volumes:
            if volume.vg != self.wanted.vg or volume.hidden:
                continue
            if volume.name in names and self._ours(volume):
                found.append(volume)
        # An lvcreate that was killed may leave the images of a mirror standing alone; those of one that is there go with it.
        with_them = tuple(f"{volume.name}_r" for volume in found)
        alone = [volume for volume in self.present.volumes if volume.vg == self.wanted.vg and not volume.hidden and volume.name.startswith(parts)]
        return found + [volume for volume in alone if not volume.name.startswith(with_them or ("/",))]

    def _leftover(self, name: str) -> LogicalVolume | None:
        """An unattached volume of that name.

        :raises Refused: if it is not ours.
        """
        volume = self.present.volume(self.wanted.vg, name)
        if volume is not None and not self._ours(volume):
            raise self.refused(
                f"would get a cache volume named {name}, and a volume of that name that is not ours is already there:"
                f" if nothing on it is needed, remove it with lvremove {volume.full_name}"
            )
        return volume

    def _ours(self, volume: LogicalVolume) -> bool:
        """LVM moves the tag of what becomes a pool to the data inside it."""
        return any(TAG in part.tags for part in self.present.parts(volume))

    def _fits(self, volume: LogicalVolume, *, part: bool = False) -> bool:
        """Whether an unattached volume is the one that would be made; ``part``: whether it is to become the data of a pool."""
        wanted = self.wanted
        pool = volume.segtype == "cache-pool"
        if pool != (wanted.kind == "cachepool" and not part) or not self._lies_right(volume):
            return False
        if wanted.size is not None and volume.size != round_up(wanted.size, self.extent_size):
            return False
        return not pool or wanted.chunk_size is None or volume.chunk_size == wanted.chunk_size

    def _lies_right(self, volume: LogicalVolume) -> bool:
        mirrored = bool(self.present.mirrors(volume))
        if not self._finished(volume):
            return False
        names = {device.name for device in self.place.devices()}
        return mirrored == self.wanted.mirror and self.present.devices_under(volume) == names

    def _finished(self, volume: LogicalVolume) -> bool:
        """Whether LVM came to the end of making it: a mirror whose making was killed is not to be activated, or shows its metadata."""
        parts = self.present.parts(volume)
        unfinished = volume.attr[9:10] == "k" or volume.attr[4:5] == "X"
        return not unfinished and not any(part.name.rpartition("_")[0].endswith("_rmeta") and not part.hidden for part in parts)

    # -- what is asked before

    def _require_cache_check(self) -> None:
        if self.wanted.kind != "writecache" and not self.present.cache_check:
            raise ToolMissing(
                f"{self.wanted.name}: the command cache_check is missing on this host, and LVM needs it to check a cache before it is used:"
                f" install the package {PACKAGES['cache_check']}.",
                item=self.wanted.name,
            )

    def _require_block_size(self) -> None:
        """A file system whose sectors are smaller than the blocks of the writecache would not mount any more, or break."""
        sector, block = self.present.sectors.get(self.wanted.origin), self.wanted.settings.get(BLOCK_SIZE)
        if sector is not None and block is not None and sector < block:
            raise self.refused(
                f"carries a file system that writes in units of {sector} bytes, which a writecache with block_size {block} does not take:"
                f" set block_size to 512, or leave it out"
            )

    # -- shared

    def step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: str, **arguments: t.Any) -> Step:
        wanted = self.wanted
        common = {
            "vg": wanted.vg,
            "lv": wanted.lv,
            "volume": wanted.volume,
            "metadata_volume": wanted.metadata_volume,
            "flush_timeout": wanted.flush_timeout,
        }
        return Step(LAYER, wanted.name, attribute, before, after, action, operation, {**common, **arguments})

    @property
    def extent_size(self) -> int:
        return self.present.extent_size(self.wanted.vg)

    @property
    def target(self) -> str:
        return self.wanted.origin

    def refused(self, reason: str) -> Refused:
        return Refused(f"{self.wanted.name}: {self.wanted.origin} {reason}.", item=self.wanted.name)

    def bad(self, reason: str) -> BadInput:
        return BadInput(f"{self.wanted.name}: {self.wanted.origin} {reason}.", item=self.wanted.name)
