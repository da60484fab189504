# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the device-mapper that is there to the caches that are wanted: pure, and the place of every refusal.

What is mounted stays one mapping from the first day to the last. A cache is put under it and taken from under it while it is
in use: it becomes a cache, or a plain way to the origin, by one exchange of tables.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm, fast_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import (
    DeviceUse,
    require_mirrored,
    resolve_stable,
    uses_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import facts as dm_cache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.facts import Attached, Mapping
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import DmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.state import OUR_METADATA, DmCacheState, OriginContent
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable, Layout, LinearTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import FastDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import sizes as lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import PACKAGES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


def plan(present: DmCacheState, wanted: t.Sequence[DmCacheSpec]) -> list[Step]:
    """The steps for every cache of the list, in its order.

    :raises BadInput: if what is asked for cannot be meant on this host.
    :raises DeviceMissing: if the origin or the cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or what a person has to do.
    :raises ToolMissing: if a cache is to be attached and cache_check is not installed.
    """
    taken: dict[str, str] = {}
    steps: list[Step] = []
    for cache in wanted:
        steps += _CachePlan(present, cache, taken).steps()
    return steps


class _CachePlan:
    """The plan of one cache, after those of the caches before it in the list."""

    def __init__(self, present: DmCacheState, wanted: DmCacheSpec, taken: dict[str, str]) -> None:
        self.present = present
        self.wanted = wanted
        self.taken = taken
        self.name = wanted.name
        self.record = present.records.get(wanted.name)
        self.top = present.kernel.mappings.get(wanted.name)
        self.unit_text = present.units.get(wanted.name, "")

    def steps(self) -> list[Step]:
        steps = self._mend()
        if self.top is None and self.record is not None and self.record.table is not None:
            return [*steps, *self._known(self.record)]
        if self.top is None:
            return [*steps, *self._bare()]
        self._require_same_origin()
        attached = dm_cache_facts.attached_of(self.top, self.present.kernel, self.present.devices)
        return [*steps, *(self._attached(attached) if attached is not None else self._bare())]

    def _mend(self) -> list[Step]:
        """What a command that was killed left behind."""
        top = self.top
        if top is None:
            return []
        if tables.parse_uuid(top.uuid) != ("top", self.name):
            raise self._refused(f"cannot be cached as {self.wanted.path}, because somebody else has a mapping of that name: write another name")
        if not top.rows:
            self.top = None
            return [self._step("mapping", "without a table", None, f"Remove what is left of {self.wanted.path} from a run that was broken off", "remove_top")]
        if top.table is None:
            raise self._refused(f"has a table under {self.wanted.path} that is not one of ours: a person changed it and must change it back")
        if not (top.suspended or top.waiting):
            return []
        before = {"suspended": top.suspended, "waiting_table": top.waiting}
        after = {"suspended": False, "waiting_table": False}
        action = (
            f"Let {self.wanted.path} go on with the table it has" if top.suspended else f"Drop the table of {self.wanted.path} that waits and is not wanted"
        )
        return [self._step("mapping", before, after, action, "go_on")]

    # -- a cache is loaded

    def _attached(self, found: Attached) -> list[Step]:
        wanted = self.wanted
        status = self.present.kernel.status.get(self.name, dm.CacheStatus(found.table.kind))
        state, problem = dm_cache_facts.judge(self.name, found, status)
        if state != "ok":
            return self._unhealthy(found, state, problem)
        if wanted.state == "absent":
            return [*self._flushed(found, status, keep=False), *self._detach(found)]
        if wanted.state == "flushed":
            return self._flushed(found, status, keep=True)
        fast = fast_device.choose(self.present.ground, wanted, LAYER, taken=self.taken, check_empty=False)
        if fast.device is not None and fast.device.name == found.cache_name and not self._differences(found):
            self._take(fast)
            return [*self._adjust(found, status, fast), *fast_device.retire(self.present.ground, wanted, LAYER)]
        return self._rebuild(found, status)

    def _unhealthy(self, found: Attached, state: str, problem: str) -> list[Step]:
        harmless = found.table.settled and not (self.record is not None and self.record.may_be_dirty)
        if self.wanted.state == "absent" and harmless:
            return self._detach(found, broken=True)
        if harmless:
            way = "it wrote through, so nothing is lost: run with state: absent, after which the origin serves alone, then again with a good device"
        else:
            way = "a person must decide what becomes of blocks that were not written back; nothing was changed"
        raise self._refused(f"has a cache in state {state}. {problem.rstrip('.')}; {way}")

    def _adjust(self, found: Attached, status: dm.CacheStatus, fast: FastDevice) -> list[Step]:
        """The same cache on the same device: its mode and settings, by one exchange of tables."""
        wanted, layout = self.wanted, found.layout
        if layout is None:
            raise self._refused(f"has a table under {wanted.path} that is not one of ours: a person changed it and must change it back")
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
        if waiting or not loaded:
            require_mirrored(fast.redundancy, wanted.cache_devices, wanted.name, wanted.origin, allowed=wanted.allow_unmirrored_writeback)
        return [*waiting, *([] if loaded else self._load_steps(found.table, target))]

    def _merged(self, settings: tables.Settings) -> dict[str, t.Any]:
        """Settings that are not named stay; those of the kernel's own choice are taken away."""
        merged = {**settings, **self.wanted.settings}
        return {key: value for key, value in merged.items() if value is not None}

    def _differences(self, found: Attached) -> list[str]:
        """What cannot be changed while the cache is there."""
        wanted, layout = self.wanted, found.layout
        if layout is None:
            return []
        differences = []
        if found.table.kind != wanted.kind:
            differences.append("kind")
        if wanted.chunk_size is not None and wanted.chunk_size != found.table.block_size:
            differences.append("chunk_size")
        expected = None if wanted.size is None else wanted.size - wanted.size % (4096 if wanted.kind == tables.WRITECACHE else found.table.block_size)
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
        """The steps after which nothing is dirty and nothing can become so, and the record says it if the cache is kept."""
        clean = found.table.settled and status.dirty == 0
        steps = [] if clean else self._flush_steps(found, status)
        if keep and found.layout is not None:
            # Where every load makes all blocks dirty again, after a crash, only the cleaner keeps it clean.
            record = self._record(self._spell_cache(found), found.layout, self._by_path(found.table.settle()))
            steps += [] if self._stored(record) else [self._unit_step(record)]
        else:
            steps = steps or [self._prove_step(found)]
        return steps

    def _flush_steps(self, found: Attached, status: dm.CacheStatus) -> list[Step]:
        table = self._by_path(found.table)
        amount = f" ({format_size(status.dirty * found.table.block_size)} dirty)" if status.dirty else ""
        action = f"Flush the cache of {self.wanted.path}{amount}"
        before = {"mode": found.table.mode, "dirty_blocks": "not proven" if status.dirty is None else "some" if status.dirty else 0}
        after = {"mode": table.settle().mode, "dirty_blocks": 0}
        flush = self._step("flush", before, after, action, "flush", clean=table.clean().render(), kind=table.kind)
        return [flush, self._prove_step(found)]

    def _prove_step(self, found: Attached) -> Step:
        action = f"Prove that no block of the cache of {self.wanted.path} is dirty and none can become so"
        return self._step("dirty", "not proven", 0, action, "prove_clean", kind=found.table.kind)

    def _detach(self, found: Attached, *, broken: bool = False) -> list[Step]:
        steps = self._take_away(found, broken=broken)
        # What could not be made empty is remembered, so that it can be when it comes back.
        kept = Record(self.name, self._origin_path(), found.table.length, *((self._spell_cache(found), found.layout) if found.cache_name is None else ()))
        return [*steps, *self._finish_absence(kept)]

    def _take_away(self, found: Attached, *, broken: bool = False) -> list[Step]:
        """From under what is mounted: the record first, so that nobody ever loads what is out of date."""
        fast = self._spell_cache(found)
        alone = Record(self.name, self._origin_path(), found.table.length, fast, found.layout)
        steps = [] if self._stored(alone) else [self._unit_step(alone)]
        before = {"kind": found.table.kind, "cache_device": fast, "chunk_size": found.table.block_size, "size": found.layout.data if found.layout else None}
        linear = LinearTable(found.table.length, self._origin_path())
        action = f"Let {self.wanted.path} go to {self._origin_path()} without the cache"
        steps.append(self._step("cache", before, None, action, "load", table=linear.render(), device=self._origin_path()))
        return [*steps, self._clear_step(fast, readable=found.cache_name is not None and not broken, maybe=broken)]

    def _clear_step(self, fast: str, *, readable: bool, maybe: bool = False) -> Step:
        action = f"Leave {fast or 'the cache device'} empty" if readable else f"Let go of {fast or 'the cache device that is gone'}"
        return self._step("cache_device", fast, None, action, "clear", device=fast, erase=readable or maybe, must=readable)

    def _finish_absence(self, alone: Record) -> list[Step]:
        """The mapping itself goes when nobody uses it, else it stays without a cache."""
        if self._in_use():
            action = f"Keep {self.wanted.path} as a plain way to {alone.origin}, because it is in use, also after a reboot"
            # The record that the cache is taken away with says the same while its device is remembered.
            return [*([] if alone.cache_device else [self._unit_step(alone, action)]), *self._released()]
        unit = self._step("unit", "enabled", None, f"Take the unit of {self.wanted.path} away", "write_unit", record=None)
        return [self._step("mapping", self.wanted.path, None, f"Remove {self.wanted.path}", "remove_top"), unit, *self._released()]

    def _released(self) -> list[Step]:
        return fast_device.release(self.present.ground, self.wanted, LAYER) if self.wanted.release_devices else []

    def _in_use(self) -> bool:
        return self.top is not None and self.top.opens > 0

    # -- no cache is loaded

    def _known(self, record: Record) -> list[Step]:
        """A cache of before that is not up, as when its device was not there at boot.

        Somebody may have used the origin without it since. What wrote through is therefore made anew; what wrote back has to be used.
        """
        if not record.may_be_dirty:
            return self._bare()
        table = t.cast(CacheTable, record.table)
        head = self.present.heads.get(record.cache_device)
        if head is None or not set(head) & OUR_METADATA:
            missing = "is not there" if head is None else "does not carry the metadata of the cache any more"
            raise self._refused(
                f"has a cache that is not running, because {record.cache_device} {missing}, and the newest data may be only on that device:"
                " bring it back; if it is lost for good, a person must decide about the data"
            )
        origin, fast = self._resolve(record.origin), self._resolve(record.cache_device)
        self._require_unused(origin)
        action = f"Start the cache of {self.wanted.path}, which is known and does not run"
        unit = [] if self.unit_text == dm_cache_record.render_unit(record, self.present.tools) else [self._unit_step(record)]
        step = self._step("cache", "not running", "running", action, "start")
        # The kernel's figure is not there yet: it is asked when it is.
        status = dm.CacheStatus(table.kind, dirty=None)
        return [*unit, step, *self._attached_later(Attached(table, origin.name, fast.name, record.layout), status)]

    def _attached_later(self, found: Attached, status: dm.CacheStatus) -> list[Step]:
        if self.wanted.state == "absent":
            return [*self._flush_steps(found, status), *self._detach(found)]
        if self.wanted.state == "flushed":
            return self._flushed(found, status, keep=True)
        fast = fast_device.choose(self.present.ground, self.wanted, LAYER, taken=self.taken, check_empty=False)
        if fast.device is not None and fast.device.name == found.cache_name and not self._differences(found):
            self._take(fast)
            return self._adjust(found, dataclasses.replace(status, dirty=0), fast)
        return self._rebuild(found, status)

    def _bare(self) -> list[Step]:
        if self.wanted.state == "present":
            return self._attach(None)
        if self.wanted.state == "flushed":
            return []
        return self._forget()

    def _forget(self) -> list[Step]:
        """Whatever is left of a cache that was taken away, or never came to be."""
        record = self.record
        fast = record.cache_device if record is not None else ""
        head = self.present.heads.get(fast)
        steps = []
        theirs = bool(self._known_on(fast))
        if self._helpers() or (set(head or ()) & OUR_METADATA and not theirs):
            steps.append(self._clear_step(fast, readable=False, maybe=not theirs))
        if self.top is None:
            gone = self.name in self.present.units
            unit = [self._step("unit", "enabled", None, f"Take the unit of {self.wanted.path} away", "write_unit", record=None)] if gone else []
            return [*steps, *unit, *self._released()]
        alone = Record(self.name, self._origin_path(), t.cast(LinearTable, self.top.table).length)
        missing = dataclasses.replace(record, table=None) if record is not None and fast and head is None else alone
        if self._in_use() and not steps and (self._stored(alone) or self._stored(missing)):
            return self._released()
        return [*steps, *self._finish_absence(alone)]

    def _attach(self, before: str | None, *, gone: bool = False) -> list[Step]:
        """A cache where there is none.

        :param before: the kernel name of the device whose cache is taken away by the steps before.
        :param gone: whether there is such a cache.
        """
        wanted, present = self.wanted, self.present
        origin = self._origin()
        if origin.name in self.taken:
            raise BadInput(f"{self.name}: {wanted.origin} is taken by the cache {self.taken[origin.name]} of the list: cache a device once.", item=self.name)
        if self.top is None:
            self._require_unused(origin)
        fast = self._choose(before)
        if fast.device is not None and fast.device.name in {origin.name, *(device.name for device in present.devices.parents(origin))}:
            raise BadInput(f"{self.name}: {wanted.origin} already lies on {wanted.cache_devices[0]}: name another cache device.", item=self.name)
        if wanted.kind == tables.CACHE and not present.tools.cache_check:
            raise ToolMissing(
                f"{self.name}: the command cache_check is missing on this host, and the cache is checked with it at every boot:"
                f" install the package {PACKAGES['cache_check']}.",
                item=self.name,
            )
        if wanted.mode == tables.WRITEBACK:
            require_mirrored(fast.redundancy, wanted.cache_devices, self.name, wanted.origin, allowed=wanted.allow_unmirrored_writeback)
        layout = self._lay_out(fast, origin)
        target = self._table(layout, origin.size, self._merged({}))
        self._take(fast)
        old = self.record.cache_device if self.record is not None and not gone else ""
        left = [self._clear_step(old, readable=False, maybe=not self._known_on(old))] if old not in ("", fast.path) else []
        # A mirror that another cache of this host is known to lie on is not this one's to take apart.
        freed = bool(left) and not self._known_on(old) and present.heads.get(old) is not None
        leaving = {before or ""} | ({self._resolve(old).name} if freed else set())
        retired = fast_device.retire(present.ground, wanted, LAYER, leaving)
        return [*left, *retired, *fast.steps, *self._attach_steps(fast, layout, target, replaces=gone, new=not self._was_ours(fast, before))]

    def _attach_steps(self, fast: FastDevice, layout: Layout, target: CacheTable, *, replaces: bool, new: bool) -> list[Step]:
        record = self._record(fast.path, layout, target)
        pending = dataclasses.replace(record, table=None)
        steps = [] if self._stored(pending) and not replaces else [self._unit_step(pending, f"Note that {fast.path} is prepared for {self.wanted.path}")]
        helpers = [[role, part.render()] for role, part in record.helpers().items()]
        about = f"{format_size(layout.data)} of data" + (f" and {format_size(layout.metadata)} of metadata" if layout.metadata else "")
        size = {"size": layout.data, "metadata": layout.metadata, "chunk_size": layout.block_size}
        action = f"Prepare {fast.path} for {about}"
        steps.append(self._step("cache_device", None, fast.path, action, "prepare", helpers=helpers, device=fast.path, new=new))
        after = {"kind": target.kind, "cache_device": fast.path, "mode": target.mode, "settings": dict(target.settings), **size}
        memory = (
            f", which takes about {format_size(tables.writecache_memory(layout.data, layout.block_size))} of memory" if target.kind == tables.WRITECACHE else ""
        )
        action = f"Attach a {target.kind} on {fast.path} to {self.wanted.origin} as {self.wanted.path} in mode {target.mode}{memory}"
        settled = target.settle()
        steps.append(self._step("cache", None, after, action, "load", table=settled.render(), device=self.wanted.origin))
        steps.append(self._unit_step(record))
        if settled != target:
            steps += self._load_steps(settled, target)
        return steps

    def _choose(self, before: str | None) -> FastDevice:
        """The device to lie on: empty, or carrying nothing but what this very cache left there."""
        present, wanted = self.present, self.wanted
        fast = fast_device.choose(present.ground, wanted, LAYER, taken=self.taken, check_empty=False)
        if fast.device is None or not self._was_ours(fast, before):
            return fast_device.choose(present.ground, wanted, LAYER, taken=self.taken)
        theirs = self._known_on(fast.path)
        if theirs:
            raise self._refused(f"cannot get its cache on {fast.path}, on which the cache {' and '.join(theirs)} of this host lies: name another device")
        ours = {device.name for device in present.devices if (tables.parse_uuid(device.dm_uuid) or ("", ""))[1] == self.name}
        others = dataclasses.replace(fast.device, holders=tuple(name for name in fast.device.holders if name not in ours))
        held = bool(set(fast.device.holders) & ours)
        finding = present.ground.findings.get(fast.device.name, DeviceUse())
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
        records = [record for name, record in self.present.records.items() if name != self.name and record.table is not None and path]
        return [record.name for record in records if record.cache_device == path or self._is_one(record.cache_device, path)]

    def _is_one(self, *paths: str) -> bool:
        with contextlib.suppress(DeviceMissing):
            return len({self._resolve(path).name for path in paths}) == 1
        return False

    def _lay_out(self, fast: FastDevice, origin: BlockDevice) -> Layout:
        wanted = self.wanted
        layout = tables.lay_out(wanted.kind, fast.size, lambda size: self._block_size(size, origin), wanted.size, wanted.share)
        if layout is None:
            asked = f"{format_size(wanted.size)} of data do" if wanted.size is not None else "a cache does"
            raise BadInput(
                f"{self.name}: {asked} not fit on {fast.path}, which has {format_size(fast.size)}, with the metadata beside it: write a smaller size, or"
                " name a larger device.",
                item=self.name,
            )
        return layout

    def _block_size(self, size: int, origin: BlockDevice) -> int:
        asked = self.wanted.chunk_size
        if self.wanted.kind == tables.CACHE:
            return lvm_layout.choose_chunk(size, asked, self.name)
        # What is on the origin, or has the mapping open, counts on its smallest block: a larger one would break it.
        content = self.present.origins.get(self.wanted.origin, OriginContent())
        least = max(origin.logical_block, 512)
        largest = 512 if self._in_use() or content.block_size not in (0, 4096) else 4096
        block = asked if asked is not None else max(least, largest)
        if block < least:
            raise BadInput(
                f"{self.name}: chunk_size is {block}, and {self.wanted.origin} has sectors of {least} bytes: write chunk_size: {least}.", item=self.name
            )
        if asked is not None and self._in_use() and asked > least:
            raise self._refused(
                f"is in use as {self.wanted.path} with sectors of {least} bytes, which chunk_size: {asked} would break: write chunk_size: {least}"
            )
        return block

    def _require_unused(self, origin: BlockDevice) -> None:
        ours = {device.name for device in self.present.devices if (tables.parse_uuid(device.dm_uuid) or ("", ""))[1] == self.name}
        rest = dataclasses.replace(origin, holders=tuple(name for name in origin.holders if name not in ours))
        content = self.present.origins.get(self.wanted.origin, OriginContent())
        users = list(dict.fromkeys([*uses_of(rest), *(() if set(origin.holders) & ours else content.users)]))
        if users:
            raise self._refused(f"{' and '.join(users)}: stop that, and mount {self.wanted.path} in its place once the cache is there")

    # -- shared

    def _require_same_origin(self) -> None:
        top = t.cast(Mapping, self.top)
        table = top.table
        number = table.origin if isinstance(table, CacheTable) else table.device if isinstance(table, LinearTable) else ""
        found = next((device for device in self.present.devices if device.number == number), None)
        try:
            wanted = self.present.devices.resolve(self.wanted.origin, self.name)
        except DeviceMissing:
            if self.wanted.state == "present":
                raise
            return
        if found is None or found.name != wanted.name:
            spelled = (found.stable_path or found.path) if found is not None else "a device that is gone"
            raise self._refused(f"is not what {self.wanted.path} caches, which is {spelled}: write another name, or that origin")

    def _origin(self) -> BlockDevice:
        return resolve_stable(self.present.devices, self.wanted.origin, self.name)

    def _origin_path(self) -> str:
        """Where the origin is, in the words that were used when the cache was made."""
        return self.record.origin if self.record is not None else self.wanted.origin

    def _resolve(self, path: str) -> BlockDevice:
        return self.present.devices.resolve(path, self.name)

    def _take(self, fast: FastDevice) -> None:
        if fast.device is not None:
            self.taken[fast.device.name] = self.name
        for path in (self.wanted.origin, *self.wanted.cache_devices):
            try:
                self.taken[self._resolve(path).name] = self.name
            except DeviceMissing:
                continue

    def _spell_cache(self, found: Attached) -> str:
        """The path of the device that a cache lies on, as it was written when it was made."""
        if self.record is not None and self.record.cache_device:
            return self.record.cache_device
        device = self.present.devices.get(found.cache_name) if found.cache_name is not None else None
        if device is None:
            return ""
        array = self.present.ground.arrays.get(device.name)
        return array.path if array is not None else device.stable_path or device.path

    def _helpers(self) -> list[str]:
        names = [tables.helper_name(role, self.name) for role in ("meta", "data")]
        return [name for name in names if name in self.present.kernel.mappings]

    def _table(self, layout: Layout, length: int, settings: tables.Settings) -> CacheTable:
        wanted = self.wanted
        return dm_cache_record.table_of(
            self.name, wanted.kind, length, self._origin_path() if self.top is not None else wanted.origin, layout, wanted.mode, settings
        )

    def _by_path(self, table: CacheTable) -> CacheTable:
        """A table that was read, with paths in the place of numbers."""
        layout = Layout(0, 0, table.block_size)
        named = dm_cache_record.table_of(self.name, table.kind, table.length, self._origin_path(), layout, table.mode, self._settings(table))
        return dataclasses.replace(named, cleaner=table.cleaner)

    def _settings(self, table: CacheTable) -> tables.Settings:
        """What was asked for of a cache that is loaded; its table also holds what only follows from the size of its blocks."""
        noted = self.record.table if self.record is not None else None
        return noted.settings if noted is not None and noted.kind == table.kind else table.settings

    def _record(self, fast: str, layout: Layout, table: CacheTable) -> Record:
        return Record(self.name, table.origin, table.length, fast, layout, table)

    def _stored(self, record: Record) -> bool:
        """Whether the unit says so already, and is enabled."""
        return self.unit_text == dm_cache_record.render_unit(record, self.present.tools)

    def _unit_step(self, record: Record, action: str = "") -> Step:
        what = "without a cache" if record.table is None else f"with its {record.table.kind} in mode {record.table.mode}"
        action = action or f"Have {self.wanted.path} brought up at boot {what}, before file systems are mounted"
        before = None if self.record is None else self.record.table.mode if self.record.table is not None else "no cache"
        after = record.table.mode if record.table is not None else "no cache"
        return self._step("unit", before, after, action, "write_unit", record=record.as_text())

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
        action = f"Load the cache of {self.wanted.path} again with {', '.join(changes) or 'its table'}"
        passthrough = after.mode == tables.PASSTHROUGH
        through = dataclasses.replace(after, mode=tables.WRITETHROUGH).render()
        return [self._step("table", plain[0], plain[1], action, "load", table=after.render(), device=after.origin, passthrough=passthrough, through=through)]

    def _step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: str, **arguments: t.Any) -> Step:
        common = {"name": self.name, "flush_timeout": self.wanted.flush_timeout}
        return Step(LAYER, self.name, attribute, before, after, action, operation, {**common, **arguments})

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.name}: {self.wanted.origin} {reason}.", item=self.name)


def _same(found: CacheTable, target: CacheTable) -> bool:
    """Whether a table that was read does what another says; devices are compared elsewhere."""
    if (found.kind, found.mode, found.cleaner, found.block_size, found.length) != (target.kind, target.mode, target.cleaner, target.block_size, target.length):
        return False
    if found.kind == tables.WRITECACHE:
        return {key: int(value) for key, value in found.settings.items()} == {key: int(value) for key, value in target.settings.items()}
    values = [table.settings.get(tables.MIGRATION_THRESHOLD) for table in (found, target)]
    effective = [tables.effective_migration_threshold(t.cast("int | None", value), found.block_size) for value in values]
    return effective[0] == effective[1]
