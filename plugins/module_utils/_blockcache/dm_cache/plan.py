# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the device-mapper that is there to the specified caches: pure, and the place of every refusal.

What is mounted stays one mapping from the first day to the last. A cache is put under it and taken from under it while it is
in use: it becomes a cache, or a plain way to the origin, by one exchange of tables.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm, fast_device, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import require_mirrored
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import facts as dm_cache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.attach import AttachPlan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.facts import Attached, Mapping
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.operations import (
    FlushCache,
    LoadTable,
    ProveClean,
    RemoveMapping,
    ResumeMapping,
    StartUnit,
    WriteUnit,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import DmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.state import OUR_METADATA, DmCacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable, Layout, LinearTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import left_by
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import FastDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import require_no_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import MISSING
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size


def plan(state: DmCacheState, specs: t.Sequence[DmCacheSpec]) -> list[Step]:
    """The steps for every cache of the list, in its order.

    :raises BadInput: if the specification is invalid on this host.
    :raises DeviceMissing: if the origin or the cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or the manual action.
    :raises ToolMissing: if a cache is to be attached and cache_check is not installed.
    """
    taken: dict[str, str] = {}
    steps: list[Step] = []
    for spec in specs:
        planned = _CachePlan(state, spec, taken).steps()
        steps += planned
        if not spec.present:
            state = state.without(left_by(LAYER, {spec.name: spec.origin}, planned, state.devices))
    return steps


class _CachePlan(AttachPlan):
    """The plan of one cache, after those of the caches before it in the list."""

    def steps(self) -> list[Step]:
        steps = self._recover()
        if self.top is None and self.record is not None and self.record.table is not None:
            return [*steps, *self._known(self.record)]
        if self.top is None:
            return [*steps, *self._plan_uncached()]
        self._require_same_origin()
        attached = dm_cache_facts.attached_of(self.top, self.state.kernel, self.state.devices)
        return [*steps, *(self._attached(attached) if attached is not None else self._plan_uncached())]

    def _recover(self) -> list[Step]:
        """What a command that was killed left behind."""
        top = self.top
        if top is None:
            return []
        if tables.parse_uuid(top.uuid) != ("top", self.name):
            raise self._refused(f"cannot be cached as {self.spec.path}, because another device-mapper device has that name: use another name")
        if not top.rows:
            self.top = None
            return [self._step("mapping", "without a table", None, f"Remove what is left of {self.spec.path} from an interrupted run", RemoveMapping())]
        if top.table is None:
            raise self._refused(f"has a table under {self.spec.path} that was not written by this collection: it was changed manually, so undo that change")
        if not (top.suspended or top.waiting):
            return []
        before = {"suspended": top.suspended, "waiting_table": top.waiting}
        after = {"suspended": False, "waiting_table": False}
        action = f"Resume {self.spec.path} with its current table" if top.suspended else f"Drop the table of {self.spec.path} that waits and is not wanted"
        return [self._step("mapping", before, after, action, ResumeMapping())]

    # -- a cache is loaded

    def _attached(self, found: Attached) -> list[Step]:
        spec = self.spec
        status = self.state.kernel.status.get(self.name, dm.CacheStatus(found.table.kind))
        state, problem = dm_cache_facts.judge(self.name, found, status)
        if state != "ok":
            return self._unhealthy(found, state, problem)
        if spec.state == "absent":
            return [*self._flushed(found, status, keep=False), *self._detach(found)]
        if spec.state == "flushed":
            return self._flushed(found, status, keep=True)
        fast = fast_device.choose(self.state.ground, spec, LAYER, taken=self.taken, check_empty=False)
        if fast.device is not None and fast.device.name == found.cache_name and not self._differences(found):
            self._take(fast)
            return [*self._adjust(found, status, fast), *fast_device.retire(self.state.ground, spec, LAYER)]
        return self._rebuild(found, status)

    def _unhealthy(self, found: Attached, state: str, problem: str) -> list[Step]:
        harmless = found.table.settled and not (self.record is not None and self.record.may_be_dirty)
        if self.spec.state == "absent" and harmless:
            return self._detach(found, broken=True)
        if state == "inconsistent":
            way = "a cache that writes through may then be removed with state: absent" if harmless else "nothing was changed"
        elif harmless:
            way = "it wrote through, so nothing is lost: run with state: absent, after which the origin serves alone, then again with a good device"
        else:
            way = "decide manually what becomes of blocks that were not written back; nothing was changed"
        raise self._refused(f"has a cache in state {state}. {problem.rstrip('.')}; {way}")

    def _adjust(self, found: Attached, status: dm.CacheStatus, fast: FastDevice) -> list[Step]:
        """The same cache on the same device: its mode and settings, by one exchange of tables."""
        spec, layout = self.spec, found.layout
        if layout is None:
            raise self._refused(f"has a table under {spec.path} that was not written by this collection: it was changed manually, so undo that change")
        target = self._table(layout, found.table.length, self._merged(self._settings(found.table)))
        record = self._record(fast.path, layout, target)
        loaded = _same(found.table, target)
        waiting = [] if self._stored(record) else [self._unit_step(record)]
        if target.settled:
            # Passthrough is entered clean or not at all, and writing back is left clean.
            leaves = not found.table.settled or (self.record is not None and self.record.may_be_dirty)
            flush = leaves or (target.mode == tables.PASSTHROUGH and not loaded and status.dirty != 0)
            steps = self._flush_steps(found, status) if flush else []
            reached = found.table.clean() if steps else found.table
            return [*steps, *([] if _same(reached, target) else self._load_steps(reached, target)), *waiting]
        if found.table.settled:
            starters.require_kept_away(self.state.starters, spec.name)
        if waiting or not loaded:
            require_mirrored(fast.redundancy, spec.cache_devices, spec.name, spec.origin, allowed=spec.allow_unmirrored_writeback)
        return [*waiting, *([] if loaded else self._load_steps(found.table, target))]

    def _differences(self, found: Attached) -> list[str]:
        """What cannot be changed while the cache is there."""
        spec, layout = self.spec, found.layout
        if layout is None:
            return []
        differences = []
        if found.table.kind != spec.kind:
            differences.append("kind")
        if spec.chunk_size is not None and spec.chunk_size != found.table.block_size:
            differences.append("chunk_size")
        expected = None if spec.size is None else spec.size - spec.size % (4096 if spec.kind == tables.WRITECACHE else found.table.block_size)
        if expected is not None and expected != layout.data:
            differences.append("size")
        if found.table.length != self._origin().size:
            differences.append("origin")
        return differences

    def _rebuild(self, found: Attached, status: dm.CacheStatus) -> list[Step]:
        """Another device, size, chunk size or kind: flushed, proven, taken from under what is mounted, and put there anew."""
        away = [*self._flushed(found, status, keep=False), *self._take_away(found)]
        return [*away, *self._attach(found.cache_name, gone=True)]

    # -- flushing and taking away

    def _flushed(self, found: Attached, status: dm.CacheStatus, *, keep: bool) -> list[Step]:
        """The steps after which nothing is dirty and nothing can become so, and the record contains this if the cache is kept."""
        clean = found.table.settled and status.dirty == 0
        steps = [] if clean else self._flush_steps(found, status)
        if keep and found.layout is not None:
            # Where every load makes all blocks dirty again, after a crash, only the cleaner keeps it clean.
            record = self._record(self._spell_cache(found), found.layout, self._by_path(found.table.settle()))
            steps += [] if self._stored(record) else [self._unit_step(record)]
        else:
            steps = steps or [self._prove_step()]
        return steps

    def _flush_steps(self, found: Attached, status: dm.CacheStatus) -> list[Step]:
        table = self._by_path(found.table)
        amount = f" ({format_size(status.dirty * found.table.block_size)} dirty)" if status.dirty else ""
        action = f"Flush the cache of {self.spec.path}{amount}"
        before = {"mode": found.table.mode, "dirty_blocks": "not proven" if status.dirty is None else "some" if status.dirty else 0}
        after = {"mode": table.settle().mode, "dirty_blocks": 0}
        flush = self._step("flush", before, after, action, FlushCache(table.clean().render(), self.spec.flush_timeout))
        return [flush, self._prove_step()]

    def _prove_step(self) -> Step:
        action = f"Verify that no block of the cache of {self.spec.path} is dirty and none can become so"
        return self._step("dirty", "not proven", 0, action, ProveClean())

    def _detach(self, found: Attached, *, broken: bool = False) -> list[Step]:
        steps = self._take_away(found, broken=broken)
        # What could not be made empty is recorded, so that it can be when it is back.
        kept = Record(self.name, self._origin_path(), found.table.length, *((self._spell_cache(found), found.layout) if found.cache_name is None else ()))
        return [*steps, *self._finish_absence(kept)]

    def _take_away(self, found: Attached, *, broken: bool = False) -> list[Step]:
        """From under what is mounted: the record first, so that an outdated cache is never loaded."""
        fast = self._spell_cache(found)
        alone = Record(self.name, self._origin_path(), found.table.length, fast, found.layout)
        steps = [] if self._stored(alone) else [self._unit_step(alone)]
        before = {"kind": found.table.kind, "cache_device": fast, "chunk_size": found.table.block_size, "size": found.layout.data if found.layout else None}
        linear = LinearTable(found.table.length, self._origin_path())
        action = f"Map {self.spec.path} to {self._origin_path()} without the cache"
        steps.append(self._step("cache", before, None, action, LoadTable(linear.render())))
        return [*steps, self._clear_step(fast, readable=found.cache_name is not None and not broken, maybe=broken)]

    def _finish_absence(self, alone: Record) -> list[Step]:
        """The mapping itself goes when it is unused, else it stays without a cache."""
        if self._in_use():
            action = f"Keep {self.spec.path} as a linear mapping of {alone.origin}, because it is in use, also after a reboot"
            # The record that the cache is taken away with has the same content while its device is recorded.
            return [*([] if alone.cache_device else [self._unit_step(alone, action)]), *self._released()]
        unit = self._step("unit", "enabled", None, f"Remove the unit of {self.spec.path}", WriteUnit(None, kept=alone))
        return [self._step("mapping", self.spec.path, None, f"Remove {self.spec.path}", RemoveMapping()), unit, *self._released()]

    def _released(self) -> list[Step]:
        return fast_device.release(self.state.ground, self.spec, LAYER) if self.spec.release_devices else []

    # -- no cache is loaded

    def _known(self, record: Record) -> list[Step]:
        """A cache of before that is not up, as when its device was not there at boot.

        The origin may have been used without it since. What wrote through is therefore made anew; what wrote back has to be used.
        """
        if not record.may_be_dirty:
            return self._plan_uncached()
        table = t.cast(CacheTable, record.table)
        head = self.state.heads.get(record.cache_device)
        if head is None or not set(head) & OUR_METADATA:
            missing = "is not there" if head is None else "does not carry the metadata of the cache any more"
            raise self._refused(
                f"has a cache that is not running, because {record.cache_device} {missing}, and the newest data may be only on that device:"
                " reconnect it; if it is permanently lost, decide manually about the data"
            )
        origin, fast = self._resolve(record.origin), self._resolve(record.cache_device)
        self._require_unused(origin)
        action = f"Start the cache of {self.spec.path}, which is known and does not run"
        unit = [] if self.unit_text == dm_cache_record.render_unit(record, self.state.tools) else [self._unit_step(record)]
        step = self._step("cache", "not running", "running", action, StartUnit(table.kind))
        # The kernel's figure is not there yet: it is read later.
        status = dm.CacheStatus(table.kind, dirty=None)
        return [*unit, step, *self._attached_later(Attached(table, origin.name, fast.name, record.layout), status)]

    def _attached_later(self, found: Attached, status: dm.CacheStatus) -> list[Step]:
        if self.spec.state == "absent":
            return [*self._flush_steps(found, status), *self._detach(found)]
        if self.spec.state == "flushed":
            return self._flushed(found, status, keep=True)
        fast = fast_device.choose(self.state.ground, self.spec, LAYER, taken=self.taken, check_empty=False)
        if fast.device is not None and fast.device.name == found.cache_name and not self._differences(found):
            self._take(fast)
            return self._adjust(found, dataclasses.replace(status, dirty=0), fast)
        return self._rebuild(found, status)

    def _plan_uncached(self) -> list[Step]:
        if self.spec.state == "present":
            return self._attach(None)
        record = self.record
        if self.spec.state == "flushed" and record is not None and record.table is not None:
            # It is known and does not run, and its record says that it wrote through.
            return []
        require_no_cache(self.spec, self.state.found.get(self.name, Origin()), LAYER)
        return self._forget()

    def _forget(self) -> list[Step]:
        """Whatever is left of a cache that was taken away, or never came to be."""
        record = self.record
        fast = record.cache_device if record is not None else ""
        head = self.state.heads.get(fast)
        steps = []
        theirs = bool(self._known_on(fast))
        if self._helpers() or (set(head or ()) & OUR_METADATA and not theirs):
            steps.append(self._clear_step(fast, readable=False, maybe=not theirs))
        if self.top is None:
            gone = self.name in self.state.units
            unit = [self._step("unit", "enabled", None, f"Remove the unit of {self.spec.path}", WriteUnit(None))] if gone else []
            return [*steps, *unit, *self._released()]
        alone = Record(self.name, self._origin_path(), t.cast(LinearTable, self.top.table).length)
        missing = dataclasses.replace(record, table=None) if record is not None and fast and head is None else alone
        if self._in_use() and not steps and (self._stored(alone) or self._stored(missing)):
            return self._released()
        return [*steps, *self._finish_absence(alone)]

    # -- shared

    def _require_same_origin(self) -> None:
        top = t.cast(Mapping, self.top)
        table = top.table
        number = table.origin if isinstance(table, CacheTable) else table.device if isinstance(table, LinearTable) else ""
        found = next((device for device in self.state.devices if device.number == number), None)
        try:
            origin = self.state.devices.resolve(self.spec.origin, self.name)
        except DeviceMissing:
            # Of a cache whose origin is gone the name is enough.
            if self.spec.present or (found is not None and MISSING not in self.spec.expect):
                raise
            return
        if found is None or found.name != origin.name:
            spelled = (found.stable_path or found.path) if found is not None else "a device that is gone"
            raise self._refused(f"is not what {self.spec.path} caches, which is {spelled}: use another name, or that origin")

    def _spell_cache(self, found: Attached) -> str:
        """The path of the device that a cache lies on, as it was written when it was made."""
        if self.record is not None and self.record.cache_device:
            return self.record.cache_device
        device = self.state.devices.get(found.cache_name) if found.cache_name is not None else None
        if device is None:
            return ""
        array = self.state.ground.arrays.get(device.name)
        return array.path if array is not None else device.stable_path or device.path

    def _helpers(self) -> list[str]:
        names = [tables.helper_name(role, self.name) for role in ("meta", "data")]
        return [name for name in names if name in self.state.kernel.mappings]

    def _by_path(self, table: CacheTable) -> CacheTable:
        """A table that was read, with paths in the place of numbers."""
        layout = Layout(0, 0, table.block_size)
        named = dm_cache_record.table_of(self.name, table.kind, table.length, self._origin_path(), layout, table.mode, self._settings(table))
        return dataclasses.replace(named, cleaner=table.cleaner)

    def _settings(self, table: CacheTable) -> tables.Settings:
        """What was requested for a cache that is loaded; its table also holds what only follows from the size of its blocks."""
        noted = self.record.table if self.record is not None else None
        return noted.settings if noted is not None and noted.kind == table.kind else table.settings


def _same(found: CacheTable, target: CacheTable) -> bool:
    """Whether a table that was read matches another; devices are compared elsewhere."""
    if (found.kind, found.mode, found.cleaner, found.block_size, found.length) != (target.kind, target.mode, target.cleaner, target.block_size, target.length):
        return False
    if found.kind == tables.WRITECACHE:
        return {key: int(value) for key, value in found.settings.items()} == {key: int(value) for key, value in target.settings.items()}
    values = [table.settings.get(tables.MIGRATION_THRESHOLD) for table in (found, target)]
    effective = [tables.effective_migration_threshold(t.cast("int | None", value), found.block_size) for value in values]
    return effective[0] == effective[1]
