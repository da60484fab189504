# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an origin without a cache to one that has one: which device it lies on, how it is laid out, and the steps that make it."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import (
    DeviceUse,
    require_mirrored,
    require_whole_unit,
    resolve_stable,
    uses_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.operations import (
    ClearDevice,
    EnterPassthrough,
    LoadTable,
    PrepareDevice,
    WriteUnit,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import DmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.state import OUR_METADATA, DmCacheState, OriginContent
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable, Layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import FastDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import sizes as lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import users_past
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


class AttachPlan:
    """What the plan of one cache needs to make it, after the plans of the caches before it in the list.

    :param taken: the name of the cache by the kernel name of each device that one before it in the list has taken; grows.
    """

    def __init__(self, state: DmCacheState, spec: DmCacheSpec, taken: dict[str, str]) -> None:
        self.state = state
        self.spec = spec
        self.taken = taken
        self.name = spec.name
        self.record = state.records.get(spec.name)
        self.top = state.kernel.mappings.get(spec.name)
        self.unit_text = state.units.get(spec.name, "")

    def _attach(self, before: str | None, *, gone: bool = False) -> list[Step]:
        """A cache where there is none.

        :param before: the kernel name of the device whose cache is taken away by the steps before.
        :param gone: whether there is such a cache.
        """
        spec, state = self.spec, self.state
        origin = self._origin()
        if origin.name in self.taken:
            raise BadInput(f"{self.name}: {spec.origin} is used by the cache {self.taken[origin.name]} of the list: cache a device once.", item=self.name)
        if self.top is None:
            require_whole_unit(state.devices, origin, spec.origin, self.name)
            self._require_unused(origin)
        else:
            self._require_not_used_past(origin)
        fast = self._choose(before)
        if fast.device is not None and fast.device.name in {origin.name, *(device.name for device in state.devices.parents(origin))}:
            raise BadInput(f"{self.name}: {spec.origin} is already on {spec.cache_devices[0]}: name another cache device.", item=self.name)
        if spec.kind == tables.CACHE and not state.tools.cache_check:
            from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import package_advice

            raise ToolMissing(
                f"{self.name}: the command cache_check is missing on this host, and the cache is checked with it at every boot:"
                f" {package_advice('cache_check')}.",
                item=self.name,
            )
        if spec.mode == tables.WRITEBACK:
            starters.require_kept_away(state.starters, self.name)
            require_mirrored(fast.redundancy, spec.cache_devices, self.name, spec.origin, allowed=spec.allow_unmirrored_writeback)
        layout = self._lay_out(fast, origin)
        target = self._table(layout, origin.size, self._merged({}))
        self._take(fast)
        old = self.record.cache_device if self.record is not None and not gone else ""
        left = [self._clear_step(old, readable=False, maybe=not self._known_on(old))] if old not in ("", fast.path) else []
        # A mirror that another cache of this host is known to lie on is not this one's to take apart.
        freed = bool(left) and not self._known_on(old) and state.heads.get(old) is not None
        leaving = {before or ""} | ({self._resolve(old).name} if freed else set())
        retired = fast_device.retire(state.ground, spec, LAYER, leaving)
        return [*left, *retired, *fast.steps, *self._attach_steps(fast, layout, target, replaces=gone, new=not self._was_ours(fast, before))]

    def _attach_steps(self, fast: FastDevice, layout: Layout, target: CacheTable, *, replaces: bool, new: bool) -> list[Step]:
        record = self._record(fast.path, layout, target)
        pending = dataclasses.replace(record, table=None)
        steps = [] if self._stored(pending) and not replaces else [self._unit_step(pending, f"Note that {fast.path} is prepared for {self.spec.path}")]
        helpers = tuple((role, part.render()) for role, part in record.helpers().items())
        about = f"{format_size(layout.data)} of data" + (f" and {format_size(layout.metadata)} of metadata" if layout.metadata else "")
        size = {"size": layout.data, "metadata": layout.metadata, "chunk_size": layout.block_size}
        action = f"Prepare {fast.path} for {about}"
        steps.append(self._step("cache_device", None, fast.path, action, PrepareDevice(fast.path, helpers, new)))
        after = {"kind": target.kind, "cache_device": fast.path, "mode": target.mode, "settings": dict(target.settings), **size}
        memory = (
            f", which takes about {format_size(tables.writecache_memory(layout.data, layout.block_size))} of memory" if target.kind == tables.WRITECACHE else ""
        )
        action = f"Attach a {target.kind} on {fast.path} to {self.spec.origin} as {self.spec.path} in mode {target.mode}{memory}"
        settled = target.settle()
        steps.append(self._step("cache", None, after, action, LoadTable(settled.render())))
        steps.append(self._unit_step(record))
        if settled != target:
            steps += self._load_steps(settled, target)
        return steps

    def _choose(self, before: str | None) -> FastDevice:
        """The device to lie on: empty, or carrying nothing but what this very cache left there."""
        state, spec = self.state, self.spec
        fast = fast_device.choose(state.ground, spec, LAYER, taken=self.taken, check_empty=False)
        if fast.device is None or not self._was_ours(fast, before):
            return fast_device.choose(state.ground, spec, LAYER, taken=self.taken)
        theirs = self._known_on(fast.path)
        if theirs:
            raise self._refused(f"cannot get its cache on {fast.path}, which the cache {' and '.join(theirs)} of this host is on: name another device")
        ours = self._ours()
        others = dataclasses.replace(fast.device, holders=tuple(name for name in fast.device.holders if name not in ours))
        held = bool(set(fast.device.holders) & ours)
        finding = state.ground.findings.get(fast.device.name, DeviceUse())
        foreign = tuple(name for name in finding.cache_metadata if name not in OUR_METADATA)
        reasons = [*uses_of(others), *DeviceUse(finding.signatures, foreign, () if held else finding.users).reasons]
        if reasons:
            raise self._refused(f"cannot get its cache on {fast.path}, which {' and '.join(reasons)}: {finding.advice(fast.path)}")
        return fast

    def _was_ours(self, fast: FastDevice, before: str | None) -> bool:
        """Whether this very cache lay on a device, or was about to."""
        noted = self.record is not None and self.record.cache_device == fast.path
        return noted or (fast.device is not None and fast.device.name == before)

    def _known_on(self, path: str) -> list[str]:
        """Other caches that are known to lie on a device, whether they run or not: what is there is theirs."""
        records = [record for name, record in self.state.records.items() if name != self.name and record.table is not None and path]
        return [record.name for record in records if record.cache_device == path or self._is_one(record.cache_device, path)]

    def _is_one(self, *paths: str) -> bool:
        with contextlib.suppress(DeviceMissing):
            return len({self._resolve(path).name for path in paths}) == 1
        return False

    def _lay_out(self, fast: FastDevice, origin: BlockDevice) -> Layout:
        spec = self.spec
        layout = tables.lay_out(spec.kind, fast.size, lambda size: self._block_size(size, origin), spec.size, spec.share)
        if layout is None:
            requested = f"{format_size(spec.size)} of data do" if spec.size is not None else "a cache does"
            raise BadInput(
                f"{self.name}: {requested} not fit on {fast.path}, which has {format_size(fast.size)}, with the metadata next to it: use a smaller size, or"
                " name a larger device.",
                item=self.name,
            )
        return layout

    def _block_size(self, size: int, origin: BlockDevice) -> int:
        requested = self.spec.chunk_size
        if self.spec.kind == tables.CACHE:
            return lvm_layout.choose_chunk(size, requested, self.name)
        # What is on the origin, or has the mapping open, counts on its smallest block: a larger one would break it.
        content = self.state.origins.get(self.spec.origin, OriginContent())
        low = max(origin.logical_block, 512)
        largest = 512 if self._in_use() or content.block_size not in (0, 4096) else 4096
        block = requested if requested is not None else max(low, largest)
        if block < low:
            raise BadInput(
                f"{self.name}: settings.block_size is {block}, and {self.spec.origin} has sectors of {low} bytes: set settings.block_size to {low}.",
                item=self.name,
            )
        if requested is not None and self._in_use() and requested > low:
            raise self._refused(
                f"is in use as {self.spec.path} with sectors of {low} bytes, which settings.block_size: {requested} would break: set it to {low}"
            )
        return block

    def _ours(self) -> set[str]:
        return {device.name for device in self.state.devices if (tables.parse_uuid(device.dm_uuid) or ("", ""))[1] == self.name}

    def _require_not_used_past(self, origin: BlockDevice) -> None:
        """Of an origin that serves alone under the mapping of the cache: nothing else may use it."""
        users = users_past(self.state.devices, origin.name, self._ours())
        if users:
            raise self._refused(f"{' and '.join(users)}, past {self.spec.path}: stop that before it gets a cache")

    def _require_unused(self, origin: BlockDevice) -> None:
        ours = self._ours()
        rest = dataclasses.replace(origin, holders=tuple(name for name in origin.holders if name not in ours))
        content = self.state.origins.get(self.spec.origin, OriginContent())
        users = list(dict.fromkeys([*uses_of(rest), *(() if set(origin.holders) & ours else content.users)]))
        if users:
            raise self._refused(f"{' and '.join(users)}: stop that, and mount {self.spec.path} in its place once the cache is there")

    # -- shared

    def _merged(self, settings: tables.Settings) -> dict[str, t.Any]:
        """Settings that are not named stay; those of the kernel's own choice are taken away."""
        merged = {**settings, **self.spec.settings}
        return {key: value for key, value in merged.items() if value is not None}

    def _clear_step(self, fast: str, *, readable: bool, maybe: bool = False) -> Step:
        action = f"Wipe {fast or 'the cache device'}" if readable else f"Release {fast or 'the cache device that is gone'}"
        return self._step("cache_device", fast, None, action, ClearDevice(fast, erase=readable or maybe, must=readable))

    def _in_use(self) -> bool:
        return self.top is not None and self.top.opens > 0

    def _origin(self) -> BlockDevice:
        return resolve_stable(self.state.devices, self.spec.origin, self.name)

    def _origin_path(self) -> str:
        """Where the origin is, in the words that were used when the cache was made."""
        return self.record.origin if self.record is not None else self.spec.origin

    def _resolve(self, path: str) -> BlockDevice:
        return self.state.devices.resolve(path, self.name)

    def _take(self, fast: FastDevice) -> None:
        if fast.device is not None:
            self.taken[fast.device.name] = self.name
        for path in (self.spec.origin, *self.spec.cache_devices):
            try:
                self.taken[self._resolve(path).name] = self.name
            except DeviceMissing:
                continue

    def _table(self, layout: Layout, length: int, settings: tables.Settings) -> CacheTable:
        spec = self.spec
        return dm_cache_record.table_of(self.name, spec.kind, length, self._origin_path() if self.top is not None else spec.origin, layout, spec.mode, settings)

    def _record(self, fast: str, layout: Layout, table: CacheTable) -> Record:
        return Record(self.name, table.origin, table.length, fast, layout, table)

    def _stored(self, record: Record) -> bool:
        """Whether the unit has this content already, and is enabled."""
        return self.unit_text == dm_cache_record.render_unit(record, self.state.tools)

    def _unit_step(self, record: Record, action: str = "") -> Step:
        what = "without a cache" if record.table is None else f"with its {record.table.kind} in mode {record.table.mode}"
        action = action or f"Start {self.spec.path} at boot {what}, before file systems are mounted"
        before = None if self.record is None else self.record.table.mode if self.record.table is not None else "no cache"
        after = record.table.mode if record.table is not None else "no cache"
        return self._step("unit", before, after, action, WriteUnit(record))

    def _load_steps(self, before: CacheTable, after: CacheTable) -> list[Step]:
        changes = []
        if before.mode != after.mode:
            changes.append(f"mode {after.mode}")
        changes += [
            f"{key} {after.settings.get(key, 'as the kernel has it')}"
            for key in {**before.settings, **after.settings}
            if before.settings.get(key) != after.settings.get(key)
        ]
        if before.cleaner != after.cleaner:
            changes.append("only emptying itself" if after.cleaner else "caching")
        plain = [{"mode": table.mode, "settings": dict(table.settings), "only_empties_itself": table.cleaner} for table in (before, after)]
        action = f"Load the cache of {self.spec.path} again with {', '.join(changes) or 'its table'}"
        operation: Operation = LoadTable(after.render())
        if after.mode == tables.PASSTHROUGH:
            operation = EnterPassthrough(after.render(), dataclasses.replace(after, mode=tables.WRITETHROUGH).render())
        return [self._step("table", plain[0], plain[1], action, operation)]

    def _step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
        return Step(LAYER, self.name, attribute, before, after, action, operation)

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.name}: {self.spec.origin} {reason}.", item=self.name)
