# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the LVM that is there to the caches that are wanted: pure, and the place of every refusal."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, UNMIRRORED, require_mirrored
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import CacheStatus
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import names as lvm_names
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.attach import AttachPlan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.devices import Earlier, Placement
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import (
    ActivateUnused,
    Detach,
    Drop,
    FlushWritecache,
    GoOn,
    LeaveCleaner,
    ProveClean,
    Refresh,
    SetCleaner,
    SetMode,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.settings import setting_steps
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import GONE, LAYER, TAG, LvmState, given_name, kind_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import require_no_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import round_up

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec

__all__ = ["LAYER", "TAG", "LvmState", "plan", "problems"]

problems = lvm_health.problems


def plan(state: LvmState, specs: t.Sequence[LvmCacheSpec]) -> list[Step]:
    """The steps for every cache of the list, in its order.

    :raises BadInput: if the request is invalid on this host.
    :raises DeviceMissing: if the origin or the cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or the manual action.
    :raises ToolMissing: if a cache is to be attached and cache_check is not installed.
    """
    earlier = Earlier()
    steps: list[Step] = []
    for cache in specs:
        steps += _CachePlan(state, cache, earlier).steps()
    return steps


def kept_devices(state: LvmState, specs: t.Sequence[LvmCacheSpec]) -> list[str]:
    """Why a cache device that was to be given back is still in the volume group, one sentence each."""
    found = []
    for cache in specs:
        if cache.state != "absent" or not cache.release_devices:
            continue
        place = Placement(state, cache, Earlier())
        for path in cache.cache_devices:
            with contextlib.suppress(DeviceMissing):
                used = place.still_used(state.devices.resolve(path, cache.name))
                if used:
                    found.append(f"{cache.name}: {path} stays in volume group {cache.vg}, because {', '.join(sorted(used))} is on it.")
    return found


class _CachePlan(AttachPlan):
    """The plan of one cache, after those of the caches before it in the list."""

    def steps(self) -> list[Step]:
        if self.origin is not None and self.origin.cached:
            return self._steps_of_cached(self.origin)
        if not self.spec.present:
            return self._steps_without_cache()
        origin = self.require_origin()
        if self.spec.mode == "writeback":
            self._require_permission(self.place.redundancy())
        return self.attach(origin)

    def _steps_without_cache(self) -> list[Step]:
        """Nothing is flushed that was not found, and a cache is absent only if it is known that the volume has none."""
        unfinished = self.finish_detaching()
        if not unfinished:
            require_no_cache(self.spec, self._found_origin(), LAYER)
        return [*unfinished, *self.remove_leftovers(), *self.place.release()]

    def _found_origin(self) -> Origin:
        if self.origin is not None:
            return self.state.origins.get(self.spec.name, Origin())
        missing = self.no_origin()
        if isinstance(missing, Refused):
            raise missing
        unlisted = lvm_names.unlisted_devices(set(self.state.pv_devices.values()), self.state.devices)
        if unlisted:
            raise self.refused(
                f"was not found, and LVM does not show {' and '.join(unlisted)} here, which has the label of a physical volume (filter, devices file or system"
                " ID): make LVM show it, or wipe it if nothing on it is needed"
            )
        return Origin(missing=missing.message)

    # -- a cache is there

    def _steps_of_cached(self, cached: LogicalVolume) -> list[Step]:
        if cached.suspended:
            # The input of the rest of the plan is the volume as it goes on.
            return [self._go_on_step(cached), *self._steps_of_cached(_activated(cached))]
        if not cached.active and cached.full_name in self.state.unused:
            return [self._activate_step(), *self._steps_of_cached(_activated(cached))]
        pool = self.state.pool_of(cached)
        drop = lvm_health.droppable(self.state, cached)
        state, reason = lvm_health.diagnose(self.state, cached)
        if state not in ("ok", "inactive") and not drop:
            raise self.refused(reason)
        if drop and self.spec.state == "flushed":
            # It wrote through, and nothing can be written back from a device that is not there.
            return []
        if drop and self.spec.present and self.place.names()[1]:
            # What is to be done here and now, and not only that a device is not there.
            raise self.refused(reason)
        steps = self._planned(cached, pool, drop)
        if steps and not isinstance(steps[0].operation, Drop):
            self._require_changeable(cached, pool)
            return [*self.forget_missing(), *steps]
        return steps

    def _planned(self, cached: LogicalVolume, pool: LogicalVolume | None, drop: bool) -> list[Step]:
        if self.spec.state == "flushed":
            return self._flush(cached)
        if self.spec.state == "absent":
            steps = self._detach(cached, pool, drop)
            return [*steps, *self.remove_leftovers(), *self.place.release()]
        return self._replace(cached, pool, drop) if drop else self._adjust(cached, pool)

    def _require_changeable(self, cached: LogicalVolume, pool: LogicalVolume | None) -> None:
        """LVM changes nothing of a volume that misses a device, and what is not active cannot be read back."""
        hidden = lvm_health.hidden_device(self.state, cached.vg, certain=True)
        if hidden:
            raise self.refused(hidden)
        if cached.partial and pool is not None and any(self.state.out_of_step(mirror) for mirror in self.state.mirrors(pool)):
            advice = lvm_health.mend_advice(self.state, pool).rstrip(".")
            raise self.refused(f"misses a device of its mirrored cache, and LVM changes nothing of it before that is repaired. {advice}")
        if cached.partial:
            origin = f"{cached.vg}/{next(iter(cached.devices), '')}"
            raise self.refused(f"misses a device under its cache, and LVM changes nothing of it before that is repaired: run lvconvert --repair {origin}")
        self._require_active(cached)

    def _require_active(self, cached: LogicalVolume) -> None:
        if not cached.active:
            raise self.refused(lvm_health.inactive_advice(self.state, cached))

    def _adjust(self, cached: LogicalVolume, pool: LogicalVolume | None) -> list[Step]:
        if self._differences(cached, pool):
            return self._replace(cached, pool, False)
        steps, mode = self._finish_flush(cached)
        if self.spec.mode == "writeback":
            redundancy = UNMIRRORED if pool is None else self.state.redundancy(self.state.devices_under(pool), pool)
            # A mirror that degraded under a write-back cache is no reason to fail a play that changes nothing: problems() reports it.
            if redundancy != DEGRADED or steps or mode != "writeback":
                self._require_permission(redundancy)
        if mode != self.spec.mode:
            steps.append(self._mode_step(mode, self.spec.mode))
        return steps + setting_steps(self.state, self.spec, cached)

    def _finish_flush(self, cached: LogicalVolume) -> tuple[list[Step], str]:
        """The steps after which LVM and the kernel agree, and the mode they then agree on.

        A flush of LVM that was killed leaves ``cleaner = 1`` in LVM's metadata, which no report shows, and state: flushed may leave the
        policy in the kernel alone: it writes through and cleans for ever.
        """
        if cached.writecache:
            return self._finish_writecache_flush(cached), "writeback"
        stored = cached.mode
        if cached.kernel_policy == "cleaner" and cached.policy != "cleaner":
            if stored != self.spec.mode and (stored == "writeback" or self.spec.mode == "writethrough"):
                return [], stored
            action = f"Load the cache of {self.target} with policy {cached.policy} again, after a flush"
            return [self.step("policy", "cleaner", cached.policy, action, LeaveCleaner(self.volume, stored))], stored
        return self._agree_on_mode(cached)

    def _finish_writecache_flush(self, cached: LogicalVolume) -> list[Step]:
        """A writecache that is flushed, or whose detaching was interrupted, has a setting that lets nothing new in."""
        table = self.state.tables.get(cached.full_name)
        if (cached.settings or {}).get("cleaner") == "1" or (table is not None and table.cleaner):
            action = f"Allow writes to the writecache of {self.target} again"
            return [self.step("cleaner", True, False, action, SetCleaner(self.volume, 0))]
        return []

    def _agree_on_mode(self, cached: LogicalVolume) -> tuple[list[Step], str]:
        """The kernel does not do what LVM has stored, because a command was killed between the two (and no flush is the reason).

        :returns: the steps after which they agree, and the mode they then agree on.
        """
        kernel = self.state.kernel.get(cached.full_name, CacheStatus())
        if kernel.mode in (None, cached.mode) or cached.kernel_policy == "cleaner":
            return [], cached.mode
        if cached.mode == "passthrough":
            # The kernel may have refused it, and would again.
            action = f"Set the cache of {self.target} to writethrough in LVM too: the kernel rejected passthrough"
            return [self.step("mode", kernel.mode, "writethrough", action, SetMode(self.volume, "writethrough"))], "writethrough"
        action = f"Load the cache of {self.target} again in mode {cached.mode}, as LVM has it"
        return [self.step("mode", kernel.mode, cached.mode, action, Refresh(self.volume, cached.mode))], cached.mode

    def _differences(self, cached: LogicalVolume, pool: LogicalVolume | None) -> dict[str, tuple[t.Any, t.Any]]:
        """What of the cache that is there can only be had by another one, as ``{attribute: (found, wanted)}``.

        A size that is a share, or none, is what it was when the cache was made, and is not compared.
        """
        spec = self.spec
        found: dict[str, tuple[t.Any, t.Any]] = {}
        devices, missing = self.place.names()
        under = self.state.devices_under(pool) if pool is not None else set()
        # The lost side of a mirror shows no name: it is the wanted device that is not there.
        same = under - {GONE} == devices and (not missing or (spec.mirror and GONE in under))
        if not same:
            self.place.devices()
            found["devices"] = (sorted(self._spell(name) for name in under), list(spec.cache_devices))
        if kind_of(cached, pool) != spec.kind:
            found["kind"] = (kind_of(cached, pool), spec.kind)
        if pool is not None and bool(self.state.mirrors(pool)) != spec.mirror:
            found["mirror"] = (not spec.mirror, spec.mirror)
        chunk = spec.settings.get(BLOCK_SIZE) if spec.kind == "writecache" else spec.chunk_size
        # That of a writecache that is not active is not known to an older LVM.
        if chunk is not None and cached.chunk_size is not None and cached.chunk_size != chunk:
            found["chunk_size"] = (cached.chunk_size, chunk)
        if spec.size is not None and pool is not None and pool.size != round_up(spec.size, self.extent_size):
            found["size"] = (pool.size, spec.size)
        return found

    def _replace(self, cached: LogicalVolume, pool: LogicalVolume | None, drop: bool) -> list[Step]:
        """Another cache in the place of this one: everything that could refuse the new one is checked before the old one is taken away."""
        if self.spec.mode == "writeback":
            self._require_permission(self.place.redundancy())
        steps = self._detach(cached, pool, drop)
        return steps + self.attach(cached)

    def _flush(self, cached: LogicalVolume) -> list[Step]:
        """The steps after which the cache holds nothing that the origin does not have, and nothing can become dirty in it."""
        kernel = self.state.kernel.get(cached.full_name, CacheStatus())
        self._require_active(cached)
        if cached.writecache:
            table = self.state.tables.get(cached.full_name)
            cleaning = (cached.settings or {}).get("cleaner") == "1" and table is not None and table.cleaner
            if cleaning and kernel.dirty == 0:
                return []
            return self._flush_writecache()
        steps, mode = self._agree_on_mode(cached)
        if mode == "writeback":
            steps.append(self._mode_step("writeback", "writethrough"))
        # With the policy cleaner the kernel may still write back, whatever LVM has stored.
        if steps or kernel.dirty != 0 or kernel.mode == "writeback":
            steps.append(self._prove_step())
        return steps

    def _flush_writecache(self) -> list[Step]:
        action = f"Set the writecache of {self.target} to write back only, and wait until it is empty"
        return [self.step("cleaner", False, True, action, FlushWritecache(self.volume)), self._prove_step()]

    def _detach(self, cached: LogicalVolume, pool: LogicalVolume | None, drop: bool) -> list[Step]:
        before = {"kind": kind_of(cached, pool), "volume": given_name(cached), "size": pool.size if pool else None, "chunk_size": cached.chunk_size}
        what = f"{before['kind']} {cached.vg}/{before['volume']}"
        if pool is not None:
            self.place.forget(pool)
        # LVM flushes nothing of a mirror that has lost a side either, and refuses every command but this one.
        if drop or (cached.partial and lvm_health.writes_through(self.state, cached)):
            action = f"Remove {what} of {self.target}, which misses its device or has failed, and wrote through, so that nothing is lost"
            return [self.step("cache", before, None, action, Drop(self.volume))]
        if cached.writecache:
            steps = self._flush_writecache()
        else:
            steps, mode = self._agree_on_mode(cached)
            if mode == "writeback":
                steps.append(self._mode_step("writeback", "writethrough"))
            steps.append(self._prove_step())
        return [*steps, self.step("cache", before, None, f"Detach the cache from {self.target} and remove {what}", Detach(self.volume))]

    # -- shared

    def _go_on_step(self, cached: LogicalVolume) -> Step:
        action = f"Resume {self.target}, which an interrupted command left suspended"
        pool = self.state.pool_of(cached)
        parts = [*self.state.parts(cached), *(self.state.parts(pool) if pool is not None else [])]
        # A volume stands before what it is made of.
        names = [dm.device_name(part.vg, part.name) for part in reversed(parts) if part is not cached]
        top = dm.device_name(cached.vg, cached.name)
        # With a snapshot the cache is in a layer of its own below the volume.
        names += [*(device.dm_name for device in self.state.devices if device.dm_name == f"{top}{dm.REAL}"), top]
        return self.step("suspended", True, False, action, GoOn(self.volume, tuple(names)))

    def _activate_step(self) -> Step:
        why = "because the host went down while the cache was attached, and it holds nothing"
        action = f"Activate {self.target} without the check of its cache metadata, {why}, and mount what /etc/fstab mounts of it at boot"
        return self.step("active", False, True, action, ActivateUnused(self.volume))

    def _prove_step(self) -> Step:
        return self.step("dirty", "not proven", 0, f"Verify that no block of the cache of {self.target} is dirty", ProveClean(self.volume))

    def _require_permission(self, redundancy: str) -> None:
        spec = self.spec
        require_mirrored(redundancy, spec.cache_devices, spec.name, spec.origin, allowed=spec.allow_unmirrored_writeback)

    def _mode_step(self, before: str, after: str) -> Step:
        flush = " and flush it" if before == "writeback" else ""
        action = f"Switch the cache of {self.target} from {before} to {after}{flush}"
        return self.step("mode", before, after, action, SetMode(self.volume, after))

    def _spell(self, name: str) -> str:
        device = self.state.devices.get(name)
        return (device.stable_path or device.path) if device is not None else name


def _activated(volume: LogicalVolume) -> LogicalVolume:
    return dataclasses.replace(volume, attr=f"{volume.attr[:4]}a{volume.attr[5:]}")
