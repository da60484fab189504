# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the flashcache devices of a host to the specification: the steps, and what is refused, before anything is changed.

Nothing but sysctls can be changed while a cache runs. Everything else is flushed, removed, emptied and made again, and
``dmsetup remove`` takes only an unused device.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, require_whole_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import left_by
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import remains as flashcache_remains
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import unit as flashcache_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.diff import Diff
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import name_behind
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.operations import (
    LAYER,
    ClearDevice,
    CreateCache,
    FlushCache,
    ForgetRemains,
    LoadCache,
    RemoveCache,
    SetSysctl,
    StartUnit,
    WriteUnit,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.settings import default_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import FlashcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import FlashcacheState, Running
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import FlashcacheSuperblock
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

#: What the tool calls the modes.
_TOOL_MODES = {"writeback": "back", "writethrough": "thru", "writearound": "around"}


def plan(state: FlashcacheState, specs: t.Sequence[FlashcacheSpec]) -> list[Step]:
    """The steps of every cache, in the order of the list.

    :raises StorageError: if one of them cannot or must not be.
    """
    taken: set[str] = set()
    steps: list[Step] = []
    for spec in specs:
        planned = CachePlan(state, spec, taken).steps()
        steps += planned
        if not spec.present:
            state = state.without(left_by(LAYER, {spec.name: spec.origin}, planned, state.ground.devices))
    return steps


class CachePlan(Diff):
    def steps(self) -> list[Step]:
        if not self.running and self.candidates & self.state.removing:
            raise self._refused(
                "is still being removed by another process, which writes back what is dirty: wait until that has ended (check dmesg), and run again"
            )
        self._require_in_sight()
        self._require_not_used_past()
        if self.spec.state == "absent":
            return self._absent()
        if self.spec.state == "flushed":
            return self._flushed()
        return self._plan_cache()

    # -- the three states

    def _plan_cache(self) -> list[Step]:
        self._require_module()
        origin = self._origin()
        self._require_own_name(origin)
        fast = fast_device.choose(self._ground_without_it(), self.spec, LAYER, taken=self.taken, check_empty=not self._ours())
        self._require_fast(fast, origin)
        steps: list[Step] = [*fast.steps]
        if self.running is not None:
            changed = self._changed(self.running, fast)
            if not changed:
                return [*self._settle(self.running, fast)]
            steps = [*self._take_down(self.running, f"recreate it with another {' and '.join(changed)}"), *steps]
        elif self.stored_on is not None:
            stored = self.state.stored[self.stored_on]
            if self._stored_as_specified(stored, fast):
                return [*self._load_for_use(stored, fast)]
            steps = [*self._empty_stored(stored, self._path_of(self.stored_on)), *steps]
        else:
            steps = [*(self._go_on_emptying() or self._forget_steps("which is missing")), *steps]
        if fast.device is None or name_behind(self.state.ground.devices, flashcache_unit.ssd_of(self.unit)) != fast.device.name:
            steps = self._without_maker(steps)
        require_whole_unit(self.state.ground.devices, origin, self.spec.origin, self.spec.name)
        self._require_safe(fast, origin)
        self._require_kernel("flashcache_create")
        return [*steps, *self._make(fast, origin)]

    def _flushed(self) -> list[Step]:
        if self.running is not None:
            self._require_own_name(None)
            return [] if self.running.flushed else [self._flush_step(self.running.table.dirty)]
        if self.stored_on is None and not self.unit:
            self._require_no_cache()
        if self.stored_on is None or self.state.stored[self.stored_on].clean:
            return []
        stored = self.state.stored[self.stored_on]
        return [self._load_step(stored, self._path_of(self.stored_on)), self._flush_step(None)]

    def _absent(self) -> list[Step]:
        spec, state = self.spec, self.state
        steps: list[Step] = []
        if self.running is not None:
            self._require_own_name(None)
            steps = self._take_down(self.running, "remove it")
        elif self.stored_on is not None:
            steps = self._empty_stored(state.stored[self.stored_on], self._path_of(self.stored_on))
        else:
            self._require_no_cache()
            steps = self._go_on_emptying()
        steps = self._without_maker(steps)
        if self.unit:
            steps.append(self._unit_away_step())
        if spec.release_devices:
            steps += fast_device.release(state.ground, spec, LAYER)
        return steps

    # -- parts of a plan

    def _take_down(self, running: Running, purpose: str) -> list[Step]:
        """Flush, remove and empty a cache that runs."""
        self._require_unused(running, purpose)
        table = running.table
        if running.ssd_name is None and table.dirty:
            raise self._refused(
                f"has {table.dirty} dirty blocks on {table.ssd}, which is missing: reconnect that SSD, or restore {table.disk} from a backup and remove the"
                " cache manually"
            )
        # The path it was made with may be another device after a reboot.
        place = "" if running.ssd_name is None else table.ssd if is_stable(table.ssd) else self._path_of(running.ssd_name)
        steps = [] if running.flushed else [self._flush_step(table.dirty)]
        steps.append(
            self._step(
                "cache",
                _described(table.mode, table.ssd),
                None,
                f"Remove the flashcache device {running.name}",
                RemoveCache(table.ssd, table.disk, table.mode, _lasting(place)),
            )
        )
        if running.ssd_name is None:
            return steps
        if table.mode == "writeback":
            self._require_tool("flashcache_destroy")
        return [*steps, self._clear_step(place)]

    def _without_maker(self, steps: list[Step]) -> list[Step]:
        """A unit that makes the cache anew at boot must not find an SSD that is free for others; one that loads it stays until nothing is dirty for sure."""
        clear = next((place for place, step in enumerate(steps) if isinstance(step.operation, ClearDevice)), None)
        if not self.unit or flashcache_unit.loads(self.unit) or clear is None:
            return steps
        away, self.unit = self._unit_away_step(), ""
        return [*steps[:clear], away, *steps[clear:]]

    def _unit_away_step(self) -> Step:
        return self._step("unit", self.unit, None, f"Remove the unit of {self.spec.name}", WriteUnit(""))

    def _go_on_emptying(self) -> list[Step]:
        """The SSD that an earlier run was about to empty, if it is in sight."""
        item, ground = self.spec.name, self.state.ground
        path = self.state.emptied.get(item, "")
        name = name_behind(ground.devices, path) if path else None
        if name is None:
            return []
        finding = ground.findings.get(name)
        if item in self.state.altered and finding is not None and finding.reasons:
            raise Refused(flashcache_remains.altered_sentence(item, path, finding.reasons), item=item)
        return [self._clear_step(path)]

    def _forget_steps(self, why: str) -> list[Step]:
        path = self.state.emptied.get(self.spec.name)
        return [self._step("cache_device", "to be wiped", None, f"Drop the record that {path}, {why}, must be wiped", ForgetRemains())] if path else []

    def _empty_stored(self, stored: FlashcacheSuperblock, path: str) -> list[Step]:
        """Empty an SSD with a cache that does not run; one with dirty blocks is loaded and flushed first."""
        self._require_tool("flashcache_destroy")
        if stored.clean:
            return [self._clear_step(path)]
        load = self._load_step(stored, path)
        remove = self._step(
            "cache",
            _described("writeback", path),
            None,
            f"Remove the flashcache device {self.spec.name}",
            RemoveCache(path, stored.disk, "writeback", _lasting(path)),
        )
        return [load, self._flush_step(None), remove, self._clear_step(path)]

    def _load_for_use(self, stored: FlashcacheSuperblock, fast: fast_device.FastDevice) -> list[Step]:
        self._require_permission(fast)
        self._require_durable(fast)
        load = self._load_step(stored, fast.path)
        unit = self._unit_steps(fast.path, stored.disk)
        return [*unit, load, *self._start_steps(), *self._new_settings(), *self._forget_steps("which is in use again")]

    def _make(self, fast: fast_device.FastDevice, origin: BlockDevice) -> list[Step]:
        spec = self.spec
        create = self._step(
            "cache",
            None,
            _described(spec.mode, fast.path),
            f"Create the flashcache device {spec.name} of {spec.origin} in mode {spec.mode} on {fast.path}",
            CreateCache(fast.path, tuple(self._create_command(fast, origin))),
        )
        # The unit first: a cache with dirty blocks that no unit loads would leave a stale disk after a crash.
        return [*self._unit_steps(fast.path, spec.origin, self._create_command(fast, origin)), create, *self._start_steps(), *self._new_settings()]

    def _settle(self, running: Running, fast: fast_device.FastDevice) -> list[Step]:
        """A cache that runs as wanted but for what can be changed while it runs."""
        spec = self.spec
        # An earlier run was about to remove it and did not come to it.
        steps = self._forget_steps("which is in use")
        if not running.sysctls:
            raise self._refused(f"has no folder {running.table.folder} below /proc/sys/dev/flashcache: releases without sysctls for each cache are not managed")
        for key, value in sorted(spec.numbers.items()):
            if key not in running.sysctls:
                raise BadInput(f"{spec.name}: the flashcache of this host has no setting {key}: leave it out.", item=spec.name)
            if running.sysctls[key] != value:
                steps.append(self._setting_step(key, running.sysctls[key], value))
        # The paths it was made with name its folder of sysctls, also at boot; one that may change then is replaced.
        ssd = running.table.ssd if is_stable(running.table.ssd) else fast.path
        disk = running.table.disk if is_stable(running.table.disk) or spec.mode == "writeback" else spec.origin
        create = () if spec.mode == "writeback" else [*self._create_command(fast, self._origin())[:-2], ssd, disk]
        steps += self._unit_steps(ssd, disk, create)
        steps += self._start_steps()
        if spec.mode == "writeback" and (steps or fast.redundancy != DEGRADED):
            self._require_permission(fast)
        return steps

    def _new_settings(self) -> list[Step]:
        """The sysctls of a cache that was just made or loaded: all are at their defaults."""
        return [self._setting_step(key, None, value) for key, value in sorted(self._unusual().items())]

    def _unusual(self) -> dict[str, int]:
        return {key: value for key, value in self.spec.numbers.items() if value != default_of(key, write_only=self.spec.write_only)}

    def _unit_steps(self, ssd: str, disk: str, create: t.Sequence[str] = ()) -> list[Step]:
        spec, places = self.spec, self.state.places
        make = [places["flashcache_load"], ssd, spec.name] if spec.mode == "writeback" else [places[create[0]], *create[1:]]
        text = flashcache_unit.render(spec.name, ssd, disk, make, self._unusual(), places)
        before = self.unit
        if before == text:
            return []
        verb = "Change" if before else "Write"
        return [self._step("unit", before or None, text, f"{verb} the unit that starts {spec.name} at boot", WriteUnit(text))]

    def _start_steps(self) -> list[Step]:
        if self.spec.name in self.state.started:
            return []
        action = f"Notify systemd that {self.spec.name} is active, so that it is stopped at shutdown"
        return [self._step("unit_started", False, True, action, StartUnit())]

    def _create_command(self, fast: fast_device.FastDevice, origin: BlockDevice) -> list[str]:
        spec = self.spec
        size = self._size(fast)
        command = ["flashcache_create", "-p", _TOOL_MODES[spec.mode]]
        # Older releases prompt for an SSD larger than the disk, however small the cache; that is checked here.
        command += ["-f"] if fast.size > origin.size else []
        command += ["-w"] if spec.write_only else []
        command += ["-b", str(spec.block_size // SECTOR)]
        command += ["-m", str(spec.metadata_block_size // SECTOR)] if spec.mode == "writeback" else []
        command += ["-s", str(size // SECTOR)] if spec.size is not None or spec.share < 1 else []
        command += ["-a", str(spec.associativity)]
        command += ["-d", str(spec.disk_associativity // SECTOR)] if spec.disk_associativity else []
        return [*command, spec.name, fast.path, spec.origin]

    # -- steps

    def _load_step(self, stored: FlashcacheSuperblock, path: str) -> Step:
        self._require_loadable(stored, path)
        self._require_kernel("flashcache_load")
        action = f"Load the flashcache device {self.spec.name} from {path} ({stored.state_name})"
        return self._step("cache", None, _described("writeback", path), action, LoadCache(path))

    def _flush_step(self, dirty: int | None) -> Step:
        if self.running is not None and self.running.whitelist:
            self._require_tool("flashcache_setioctl")
        action = f"Flush the flashcache device {self.spec.name} and cache no more writes"
        return self._step("dirty_blocks", dirty, 0, action, FlushCache(self.spec.flush_timeout))

    def _clear_step(self, path: str) -> Step:
        return self._step("cache_device", path, None, f"Verify that nothing is dirty on {path} and wipe it", ClearDevice(path, _lasting(path)))

    def _setting_step(self, key: str, before: int | None, value: int) -> Step:
        return self._step(f"settings.{key}", before, value, f"Set {key} of {self.spec.name} to {value}", SetSysctl(key, value))

    def _step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
        return Step(LAYER, self.spec.name, attribute, before, after, action, operation)


def _lasting(path: str) -> str:
    """A path as it may be noted for a run after the next reboot; empty if it may then be another device."""
    return path if is_stable(path) else ""


def _described(mode: str, ssd: str) -> dict[str, str]:
    return {"mode": mode, "cache_device": ssd}
