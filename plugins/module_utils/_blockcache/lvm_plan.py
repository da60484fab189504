# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""From the LVM that is there to the caches that are wanted: pure, and the place of every refusal."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import CacheStatus
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_device import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_report import LogicalVolume, PhysicalVolume
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_wanted import MIGRATION_THRESHOLD, WantedCache, require_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import PACKAGES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, round_up
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

LAYER = "lvm_cache"
#: On every volume that this layer made: without it an unattached volume might hold somebody's data and is left alone.
TAG = "cachefleet.storage"
#: What protects the blocks that are only in a write-back cache.
MIRRORED, DEGRADED, UNMIRRORED = "mirrored", "degraded", "none"
#: Volumes that dm-cache can sit on. Thin pools, snapshots and mirrors of the old kind are other stories.
CACHEABLE = ("linear", "striped", "raid0", "raid0_meta", "raid1", "raid10", "raid10_near", "raid4", "raid5", "raid6")


@dataclass(frozen=True)
class Present:
    """LVM as it is.

    :param pv_devices: kernel name of the device behind each physical volume, by the path LVM reports.
    :param kernel: what the kernel says of each cache, by the full name of the volume. LVM's own ``cache_mode`` and
        ``cache_policy`` are what it has stored, and after a command that was killed the kernel does something else.
    :param findings: what each wanted cache device that is no physical volume yet contains and is used by, by kernel name.
        udev does not know it all: after pvremove it was seen to miss the file system that was made next.
    :param redundant: kernel names of MD arrays that survive the loss of a member.
    :param degraded: kernel names of MD arrays that would, if they had all their members.
    :param cache_check: whether the checker of cache metadata is installed: without it LVM activates caches unchecked.
    """

    volumes: tuple[LogicalVolume, ...]
    physical: tuple[PhysicalVolume, ...]
    devices: Devices
    pv_devices: t.Mapping[str, str] = field(default_factory=dict)
    kernel: t.Mapping[str, CacheStatus] = field(default_factory=dict)
    findings: t.Mapping[str, Finding] = field(default_factory=dict)
    redundant: frozenset[str] = frozenset()
    degraded: frozenset[str] = frozenset()
    cache_check: bool = True

    def volume(self, vg: str, name: str) -> LogicalVolume | None:
        return next((volume for volume in self.volumes if volume.vg == vg and volume.name == name), None)

    def physical_of(self, device: BlockDevice) -> PhysicalVolume | None:
        return next((pv for pv in self.physical if self.pv_devices.get(pv.path) == device.name), None)

    def paths_under(self, volume: LogicalVolume) -> set[str]:
        """The paths of the physical volumes that a volume lies on, through every hidden volume in between."""
        paths: set[str] = set()
        for name in volume.devices:
            below = self.volume(volume.vg, name)
            paths |= {name} if below is None or below is volume else self.paths_under(below)
        return paths

    def devices_under(self, volume: LogicalVolume) -> set[str]:
        """The kernel names of those; a path that LVM does not know a device for stays as it is."""
        return {self.pv_devices.get(path, path) for path in self.paths_under(volume)}

    def spare(self, vg: str) -> int:
        """The size of the volume group's spare for pool metadata."""
        return max((volume.size for volume in self.volumes if volume.vg == vg and volume.name.endswith("_pmspare")), default=0)

    def redundancy(self, devices: t.AbstractSet[str], pool: LogicalVolume | None = None) -> str:
        """``mirrored`` if what lies on these devices survives the loss of one, ``degraded`` if it no longer does, or ``none``.

        :param pool: the fast volume, which LVM itself may keep twice.
        """
        if devices and devices <= self.redundant | self.degraded:
            return DEGRADED if devices & self.degraded else MIRRORED
        if pool is None:
            return UNMIRRORED
        parts = [self.volume(pool.vg, f"{pool.name}_{part}") for part in ("cdata", "cmeta")] if pool.segtype == "cache-pool" else [pool]
        mirrors = [part for part in parts if part is not None and part.segtype in ("raid1", "raid10", "raid10_near")]
        if len(mirrors) < len(parts):
            return UNMIRRORED
        return DEGRADED if any(mirror.partial or mirror.health for mirror in mirrors) else MIRRORED


def problems(present: Present) -> list[str]:
    """What a person should know of caches that are left as they are: write-back on a mirror that has lost its redundancy."""
    found = []
    for cached in present.volumes:
        pool = present.volume(cached.vg, cached.pool or "") if cached.cached and cached.cache_mode == "writeback" else None
        if pool is not None and present.redundancy(present.devices_under(pool), pool) == DEGRADED:
            found.append(
                f"{cached.full_name} has a write-back cache on a mirror that is degraded: its newest data is only on what is left of the mirror."
                " Replace the member that failed, or change to mode writethrough, which flushes."
            )
    return found


def plan(present: Present, wanted: t.Sequence[WantedCache]) -> list[Step]:
    """The steps for every cache of the list, in its order.

    :raises BadInput: if what is asked for cannot be meant on this host.
    :raises DeviceMissing: if the origin or the cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or what a person has to do.
    :raises ToolMissing: if a cache is to be attached and cache_check is not installed.
    """
    earlier = _Earlier()
    steps: list[Step] = []
    for cache in wanted:
        steps += _CachePlan(present, cache, earlier).steps()
    return steps


@dataclass
class _Earlier:
    """What earlier caches of the same list did with devices, by kernel name.

    :param rooms: what they left free on a device.
    :param groups: the volume group that they add a device to.
    """

    rooms: dict[str, lvm_layout.Room] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)


class _CachePlan:
    """The plan of one cache, after those of the caches before it in the list."""

    def __init__(self, present: Present, wanted: WantedCache, earlier: _Earlier) -> None:
        self.present = present
        self.wanted = wanted
        self.earlier = earlier
        self.origin = present.volume(wanted.vg, wanted.lv)

    def steps(self) -> list[Step]:
        if self.origin is not None and self.origin.segtype == "writecache":
            raise self._refused("has a dm-writecache, which lvm_cache does not touch: take it away with lvconvert --uncache first")
        if self.origin is not None and self.origin.cached:
            return self._steps_of_cached(self.origin)
        if not self.wanted.present:
            return self._forget_leftover()
        origin = self._require_origin()
        if self.wanted.mode == "writeback":
            self._require_permission(self.present.redundancy({self._device().name}))
        return self._attach(origin)

    # -- a cache is there

    def _steps_of_cached(self, cached: LogicalVolume) -> list[Step]:
        pool = self.present.volume(cached.vg, cached.pool or "")
        self._require_healthy(cached, pool)
        steps = self._adjust(cached, pool) if self.wanted.present else self._detach(cached, pool)
        if steps and not cached.active:
            raise self._refused(f"is not active, so that its cache cannot be read back: activate it with lvchange -ay {self.wanted.origin} first")
        return steps

    def _require_healthy(self, cached: LogicalVolume, pool: LogicalVolume | None) -> None:
        partial = cached.partial or (pool is not None and pool.partial) or any(pv.missing and pv.vg == cached.vg for pv in self.present.physical)
        if partial:
            raise self._refused(
                "belongs to a volume group that misses a device, and with write-back its newest data may lie only there:"
                " bring the device back; if it is lost for good, a person must decide about lvconvert --uncache --force, which drops what was dirty"
            )
        kernel = self.present.kernel.get(cached.full_name, CacheStatus())
        if kernel.failed:
            raise self._refused("has a cache that the kernel reports as failed, so that it cannot be flushed: look at dmesg; a person must decide")
        if cached.check_needed == "check needed" or kernel.needs_check or kernel.read_only:
            how = (
                f"lvconvert --repair {cached.vg}/{pool.name}"
                if _kind(pool) == "cachepool" and pool
                else "a restore from backup (a cachevol cannot be repaired)"
            )
            raise self._refused(f"has cache metadata that the kernel marked as needing a check: deactivate it, then a person runs {how}")

    def _adjust(self, cached: LogicalVolume, pool: LogicalVolume | None) -> list[Step]:
        self._require_same_cache(cached, pool)
        steps, mode = self._finish_flush(cached)
        if self.wanted.mode == "writeback":
            redundancy = UNMIRRORED if pool is None else self.present.redundancy(self.present.devices_under(pool), pool)
            # A mirror that degraded under a write-back cache is no reason to fail a play that changes nothing: problems() tells it.
            if redundancy != DEGRADED or steps or mode != "writeback":
                self._require_permission(redundancy)
        if mode != self.wanted.mode:
            steps.append(self._mode_step(mode, self.wanted.mode))
        return steps + [self._setting_step(cached, key, value) for key, value in self.wanted.settings.items() if not _has_setting(cached, key, value)]

    def _finish_flush(self, cached: LogicalVolume) -> tuple[list[Step], str]:
        """The steps after which LVM and the kernel agree, and the mode they then agree on.

        A flush that was killed leaves ``cleaner = 1`` in LVM's metadata, which no report shows: the kernel writes through and
        cleans for ever. ``--refresh``, the same mode and the same policy all end with 0 and change nothing; only a flush
        that comes to its end takes it away, so the mode goes by way of another.
        """
        stored = cached.cache_mode or "writethrough"
        if cached.kernel_policy == "cleaner" and cached.policy != "cleaner":
            if stored == "writeback" and self.wanted.mode != "writeback":
                return [], stored
            way = "passthrough" if stored == "writethrough" else "writethrough"
            action = f"Finish the flush of the cache of {self._target} that was broken off, by way of mode {way}"
            return [self._step("policy", "cleaner", cached.policy, action, "set_mode", mode=way)], way
        return self._agree_on_mode(cached), stored

    def _agree_on_mode(self, cached: LogicalVolume) -> list[Step]:
        """The kernel does not do what LVM has stored, because a command was killed between the two (and no flush is the reason)."""
        kernel = self.present.kernel.get(cached.full_name, CacheStatus())
        if kernel.mode in (None, cached.cache_mode) or cached.kernel_policy == "cleaner":
            return []
        action = f"Load the cache of {self._target} again in mode {cached.cache_mode}, as LVM has it"
        return [self._step("mode", kernel.mode, cached.cache_mode, action, "refresh")]

    def _require_same_cache(self, cached: LogicalVolume, pool: LogicalVolume | None) -> None:
        wanted = self.wanted
        device = self._device()
        found = self.present.devices_under(pool) if pool is not None else set()
        extent_size = self._extent_size()
        differences = []
        if found != {device.name}:
            differences.append(f"lies on {', '.join(sorted(self._spell(name) for name in found))} and not on {wanted.cache_devices[0]}")
        if _kind(pool) != wanted.kind:
            differences.append(f"is a {_kind(pool)} and not a {wanted.kind}")
        if wanted.chunk_size is not None and cached.chunk_size != wanted.chunk_size:
            differences.append(f"has chunks of {format_size(cached.chunk_size or 0)} and not of {format_size(wanted.chunk_size)}")
        if wanted.size is not None and pool is not None and pool.size != round_up(wanted.size, extent_size):
            differences.append(f"is {format_size(pool.size)} large and not {format_size(wanted.size)}")
        if differences:
            raise self._refused(f"has a cache that {' and '.join(differences)}: run once with state: absent, which flushes and detaches it, then again")

    def _detach(self, cached: LogicalVolume, pool: LogicalVolume | None) -> list[Step]:
        steps = self._agree_on_mode(cached)
        if cached.cache_mode == "writeback":
            steps.append(self._mode_step("writeback", "writethrough"))
        steps.append(self._step("dirty", "not proven", 0, f"Prove that no block of the cache of {self._target} is dirty", "prove_clean"))
        before = {"kind": _kind(pool), "volume": _given_name(cached), "size": pool.size if pool else None, "chunk_size": cached.chunk_size}
        action = f"Detach the cache from {self._target} and remove {_kind(pool)} {cached.vg}/{before['volume']}"
        steps.append(self._step("cache", before, None, action, "detach"))
        return steps

    # -- no cache is there

    def _attach(self, origin: LogicalVolume) -> list[Step]:
        device = self._device()
        physical = self.present.physical_of(device)
        steps = self._own_device(device, physical)
        leftover = self.present.volume(self.wanted.vg, self.wanted.volume)
        if leftover is not None:
            self._require_fitting(leftover, device)
            size, chunk = leftover.size, leftover.chunk_size or lvm_layout.choose_chunk(leftover.size, self.wanted.chunk_size, self.wanted.name)
        else:
            layout = self._lay_out(device, physical)
            size, chunk = layout.extents * self._extent_size(), layout.chunk_size
            steps.append(self._create_step(layout, size))
        if not self.present.cache_check:
            raise ToolMissing(
                f"{self.wanted.name}: the command cache_check is missing on this host, and LVM needs it to check a cache before it is used:"
                f" install the package {PACKAGES['cache_check']}.",
                item=self.wanted.name,
            )
        settings = {key: value for key, value in self.wanted.settings.items() if value is not None}
        after = {
            "kind": self.wanted.kind,
            "volume": self.wanted.volume,
            "size": size,
            "chunk_size": chunk,
            "device": self.wanted.cache_devices[0],
            "mode": self.wanted.mode,
            "settings": settings,
        }
        action = f"Attach {self.wanted.kind} {self.wanted.vg}/{self.wanted.volume} to {origin.full_name} in mode {self.wanted.mode}"
        steps.append(self._step("cache", None, after, action, "attach", chunk_size=chunk, kind=self.wanted.kind, mode=self.wanted.mode, settings=settings))
        return steps

    def _require_origin(self) -> LogicalVolume:
        origin = self.origin
        if origin is None:
            groups = sorted({pv.vg for pv in self.present.physical if pv.vg})
            if self.wanted.vg not in groups:
                raise DeviceMissing(
                    f"{self.wanted.name}: there is no volume group {self.wanted.vg} on this host (there is {', '.join(groups) or 'none'}):"
                    " create it, or correct origin.",
                    item=self.wanted.name,
                )
            names = sorted(volume.name for volume in self.present.volumes if volume.vg == self.wanted.vg and not volume.hidden)
            raise DeviceMissing(
                f"{self.wanted.name}: volume group {self.wanted.vg} has no logical volume {self.wanted.lv} (it has {', '.join(names) or 'none'}):"
                " create it, or correct origin.",
                item=self.wanted.name,
            )
        if origin.partial or any(pv.missing and pv.vg == origin.vg for pv in self.present.physical):
            raise self._refused("belongs to a volume group that misses a device: bring it back, or let a person repair the volume group")
        if origin.hidden:
            raise self._bad(f"is an inner part of another volume: name the volume it serves, not {origin.name}")
        if origin.attr[:1] in ("s", "S") or "snapshot" in origin.roles:
            raise self._bad("is a snapshot, which cannot be cached: name the volume that the snapshot was taken of")
        if origin.segtype not in CACHEABLE and not origin.segtype.startswith(("raid5_", "raid6_")):
            raise self._bad(f"is of type {origin.segtype}, which this role does not cache: name a linear, striped or raid volume")
        if not origin.active:
            raise self._refused(f"is not active, so that its cache could not be read back: activate it with lvchange -ay {origin.full_name} first")
        return origin

    def _own_device(self, device: BlockDevice, physical: PhysicalVolume | None) -> list[Step]:
        """The steps that make the cache device part of the volume group."""
        wanted, path = self.wanted, self.wanted.cache_devices[0]
        if self.origin is not None and device.name in self.present.devices_under(self.origin):
            raise self._bad(f"already lies on {path}: a cache on the same device as its origin makes nothing faster; name another device")
        if physical is not None and physical.vg == wanted.vg:
            if not physical.allocatable:
                raise self._refused(f"cannot take a cache on {path}: that physical volume is closed for allocation; open it with pvchange -x y")
            return []
        if physical is not None and physical.vg is not None:
            raise BadInput(
                f"{wanted.name}: {path} belongs to volume group {physical.vg}, and a cache must be in {wanted.vg} like its origin.", item=wanted.name
            )
        taken = self.earlier.groups.get(device.name)
        if taken == wanted.vg:
            return []
        if taken is not None:
            raise BadInput(
                f"{wanted.name}: {path} cannot be added to volume group {wanted.vg}, because a cache before it in the list adds it to {taken}:"
                " a device belongs to one volume group, so name another device.",
                item=wanted.name,
            )
        self.earlier.groups[device.name] = wanted.vg
        steps = []
        if physical is None:
            self._require_empty(device)
            steps.append(self._step("physical_volume", None, path, f"Make {path} a physical volume of LVM", "create_physical_volume", path=path))
        steps.append(self._step("volume_group", None, wanted.vg, f"Add {path} to volume group {wanted.vg}", "extend_volume_group", path=path))
        return steps

    def _require_empty(self, device: BlockDevice) -> None:
        path = self.wanted.cache_devices[0]
        finding = self.present.findings.get(device.name, Finding())
        if device.signature is not None:
            finding = finding.with_signatures(device.signature.type, device.signature.partition_table)
        reasons = []
        if device.mountpoints:
            reasons.append(f"is mounted on {device.mountpoints[0]}")
        if device.swap:
            reasons.append("is swap space")
        if device.holders:
            reasons.append(f"is used by {', '.join(device.holders)}")
        if device.partitions:
            reasons.append(f"has the partitions {', '.join(device.partitions)}")
        if device.read_only:
            reasons.append("is read-only")
        reasons += finding.reasons
        if reasons:
            raise Refused(
                f"{self.wanted.name}: {path} {' and '.join(reasons)}, so that it is not taken for a cache: {finding.advice(path)}.", item=self.wanted.name
            )

    def _lay_out(self, device: BlockDevice, physical: PhysicalVolume | None) -> lvm_layout.Layout:
        extent_size = self._extent_size()
        room = self.earlier.rooms.get(device.name)
        if room is None:
            in_group = physical is not None and physical.vg is not None
            free = physical.free // extent_size if in_group and physical is not None else lvm_layout.extents_of_new_device(device.size, extent_size)
            room = lvm_layout.Room(free, extent_size, self.present.spare(self.wanted.vg))
        layout = lvm_layout.lay_out(
            self.wanted.kind, room, size=self.wanted.size, share=self.wanted.share, chunk_size=self.wanted.chunk_size, item=self.wanted.name
        )
        self.earlier.rooms[device.name] = lvm_layout.Room(room.free - layout.footprint, extent_size, max(room.spare, layout.metadata))
        return layout

    def _create_step(self, layout: lvm_layout.Layout, size: int) -> Step:
        wanted, path = self.wanted, self.wanted.cache_devices[0]
        return self._step(
            "cache_volume",
            None,
            {"kind": wanted.kind, "volume": wanted.volume, "size": size, "device": path},
            f"Create {wanted.kind} {wanted.vg}/{wanted.volume} of {format_size(size)} on {path}",
            "create_volume",
            path=path,
            kind=wanted.kind,
            extents=layout.extents,
            metadata=layout.metadata,
            chunk_size=layout.chunk_size,
            # A device that becomes a physical volume in this very run may turn out an extent smaller than computed.
            fill=wanted.size is None,
        )

    def _require_fitting(self, leftover: LogicalVolume, device: BlockDevice) -> None:
        """A volume of the cache's name is there and attached to nothing: after an interrupted run, or somebody's."""
        wanted = self.wanted
        remove = f"if nothing on it is needed, remove it with lvremove {leftover.full_name}"
        if TAG not in leftover.tags:
            raise self._refused(f"would get a cache volume named {leftover.name}, and a volume of that name that is not ours is already there: {remove}")
        kind = "cachepool" if leftover.segtype == "cache-pool" else "cachevol"
        fits = kind == wanted.kind and self.present.devices_under(leftover) == {device.name}
        fits = fits and (wanted.size is None or leftover.size == round_up(wanted.size, self._extent_size()))
        fits = fits and (wanted.chunk_size is None or leftover.chunk_size in (None, wanted.chunk_size))
        if not fits:
            raise self._refused(f"has an unattached cache volume {leftover.name} from an earlier run that is not the one wanted now: {remove}")

    def _forget_leftover(self) -> list[Step]:
        leftover = self.present.volume(self.wanted.vg, self.wanted.volume)
        if leftover is None or TAG not in leftover.tags:
            return []
        before = {"kind": "cachepool" if leftover.segtype == "cache-pool" else "cachevol", "volume": leftover.name, "size": leftover.size}
        return [self._step("cache_volume", before, None, f"Remove the unattached cache volume {leftover.full_name}", "remove_volume")]

    # -- shared

    def _device(self) -> BlockDevice:
        path = self.wanted.cache_devices[0]
        devices = self.present.devices
        device = devices.resolve(path, self.wanted.name)
        require_stable(path, device.stable_path, self.wanted.name)
        # A multipath device and its paths carry the same links, and udev gives them to the one on top.
        own = {device.name, *(below.name for below in devices.parents(device))}
        rivals = [other for other in devices.claimants(path) if other.name not in own]
        if rivals:
            raise BadInput(
                f"{self.wanted.name}: {path} is claimed by {device.path} and by {', '.join(rival.path for rival in rivals)}, and may name the other after the"
                " next reboot: write a link that only one of them has, for example its WWN (/dev/disk/by-id/wwn-…) or its place (/dev/disk/by-path/…).",
                item=self.wanted.name,
            )
        return device

    def _require_permission(self, redundancy: str) -> None:
        """No write-back on a device whose loss would be a loss of data, unless it was allowed for this cache."""
        if redundancy == MIRRORED or self.wanted.allow_unmirrored_writeback:
            return
        path = self.wanted.cache_devices[0]
        if redundancy == DEGRADED:
            raise self._refused(
                f"would lose data at the next failure of a drive, because write-back keeps the newest data only on {path} and that mirror is degraded:"
                " replace the member that failed, use mode writethrough, or set allow_unmirrored_writeback: true for this cache"
            )
        raise self._refused(
            f"would lose data if {path} failed, because write-back keeps the newest data only there and it is not mirrored:"
            " use a mirrored device or mode writethrough, or set allow_unmirrored_writeback: true for this cache"
        )

    def _mode_step(self, before: str, after: str) -> Step:
        flush = " and flush it" if before == "writeback" else ""
        action = f"Switch the cache of {self._target} from {before} to {after}{flush}"
        return self._step("mode", before, after, action, "set_mode", mode=after)

    def _setting_step(self, cached: LogicalVolume, key: str, value: int | None) -> Step:
        before = (cached.settings or {}).get(key)
        text = "default" if value is None else str(value)
        action = f"Set {key} of the cache of {self._target} to {text}"
        return self._step(f"settings.{key}", int(before) if before and before.isdigit() else before, value, action, "set_setting", key=key, value=text)

    def _step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: str, **arguments: t.Any) -> Step:
        wanted = self.wanted
        common = {"vg": wanted.vg, "lv": wanted.lv, "volume": wanted.volume, "flush_timeout": wanted.flush_timeout}
        return Step(LAYER, wanted.name, attribute, before, after, action, operation, {**common, **arguments})

    def _extent_size(self) -> int:
        return next(pv.extent_size for pv in self.present.physical if pv.vg == self.wanted.vg)

    def _spell(self, name: str) -> str:
        device = self.present.devices.get(name)
        return (device.stable_path or device.path) if device is not None else name

    @property
    def _target(self) -> str:
        return self.wanted.origin

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.wanted.name}: {self.wanted.origin} {reason}.", item=self.wanted.name)

    def _bad(self, reason: str) -> BadInput:
        return BadInput(f"{self.wanted.name}: {self.wanted.origin} {reason}.", item=self.wanted.name)


def _kind(pool: LogicalVolume | None) -> str:
    return "cachepool" if pool is not None and pool.segtype == "cache-pool" else "cachevol"


def _given_name(cached: LogicalVolume) -> str:
    """The name of the fast volume without the suffix that LVM gave it when it was attached."""
    name = cached.pool or ""
    return name[: -len("_cpool")] if name.endswith("_cpool") else name[: -len("_cvol")] if name.endswith("_cvol") else name


def _has_setting(cached: LogicalVolume, key: str, value: int | None) -> bool:
    """Whether LVM has stored a setting and the kernel uses it; the kernel never goes below eight chunks."""
    stored = (cached.settings or {}).get(key)
    if value is None or stored is None:
        return value is None and stored is None
    used = (cached.kernel_settings or {}).get(key)
    if key != MIGRATION_THRESHOLD:
        return stored == str(value) and used in (None, stored)
    asked = lvm_layout.effective_migration_threshold(value, cached.chunk_size or 0)
    return lvm_layout.effective_migration_threshold(int(stored), cached.chunk_size or 0) == asked and (used is None or int(used) == asked)
