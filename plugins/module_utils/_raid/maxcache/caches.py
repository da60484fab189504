# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSD caches of one controller: what is there, what is specified, and the steps that empty, delete and create them.

A cache that goes is emptied first: write caching off, then a wait until the controller reports that everything is clean.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    BadInput,
    DeviceMissing,
    NotEffective,
    NotUnderstood,
    Refused,
    StorageError,
    TimedOut,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import CONTAINER, POOL, SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.commands import RaidLayer, RaidOperation, SendCommand
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CLEAN,
    DIRTY,
    DISABLED,
    UNKNOWN,
    WRITETHROUGH,
    CacheVolume,
    Controller,
    MaxCache,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import CacheVolumeSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import choose_controllers, plain_address

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen

LAYER = "raid_maxcache"
#: Ends every refusal.
NOTHING = "Nothing was changed."
#: Seconds between two polls of a flush, at first and at most: it takes seconds or hours, and each poll is a whole reading.
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
#: Consecutive polls that may fail before the wait is given up: a busy controller answers late, and outputs are cut.
PATIENCE = 3


class Interrupted(StorageError):
    """The run was ended while it waited."""

    kind = "interrupted"


@frozen
class MaxCacheTarget:
    """One controller and everything that is specified for its SSD cache."""

    seen: Seen
    spec: MaxCacheSpec

    @property
    def controller(self) -> Controller:
        return self.seen.controller

    @property
    def maxcache(self) -> MaxCache:
        return self.controller.maxcache or MaxCache()

    @property
    def generation(self) -> str:
        return self.maxcache.generation

    @property
    def item(self) -> str:
        """The key in diffs: no two things of a host share it."""
        return f"{self.controller.provider} controller {self.controller.id} maxcache"

    def item_of(self, volume: Volume) -> str:
        return f"{self.controller.provider} controller {self.controller.id} volume {volume.id}"

    def cache_item(self, data: Volume | None) -> str:
        """The key of a cache volume: of the controller, or of the volume it caches (maxCache 4)."""
        return self.item if data is None else f"{self.item} of volume {data.id}"

    def label(self, volume: Volume) -> str:
        return f"volume {volume.name or volume.id} of {self.controller.label}"

    def refuse(self, reason: str, volume: Volume | None = None) -> t.NoReturn:
        """
        :raises BadInput: for what is impossible: a clause after the name of the controller or of a volume.
        """
        label = self.controller.label if volume is None else self.label(volume)
        raise BadInput(f"{label} {reason}. {NOTHING}", item=self.item if volume is None else self.item_of(volume))


def targets_of(host: RaidState, specs: t.Sequence[MaxCacheSpec]) -> tuple[list[MaxCacheTarget], list[str]]:
    """Every selected controller that has maxCache, and a sentence for each of ``all`` that has none.

    :raises BadInput: if a controller that is named, or every one of all, has none; if two entries are for one controller.
    """
    found: list[MaxCacheTarget] = []
    left_out: list[str] = []
    for spec in specs:
        chosen = [MaxCacheTarget(seen, spec) for seen in choose_controllers(host, spec)]
        if spec.empty:
            continue
        without = {id(target): reason for target in chosen for reason in [rules.no_maxcache(target.controller)] if reason is not None}
        if without and (spec.named or len(without) == len(chosen)):
            target = next(target for target in chosen if id(target) in without)
            target.refuse(without[id(target)])
        left_out += [f"Unchanged: {target.controller.label} {without[id(target)]}." for target in chosen if id(target) in without]
        found += [target for target in chosen if id(target) not in without]
    keys = [target.item for target in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise BadInput(f"Two entries are for {twice}: join them into one.", item=twice)
    return found, left_out


def send(
    target: MaxCacheTarget,
    item: str,
    attribute: str,
    before: t.Any,
    after: t.Any,
    text: str,
    words: t.Sequence[str],
    *,
    must_succeed: bool = True,
) -> Step:
    """A step that is one command. ``must_succeed``: whether a refusal ends the run; if not, what is read back decides."""
    provider = target.seen.source.provider
    return Step(LAYER, item, attribute, before, after, text, SendCommand(provider.name, provider.tool, tuple(words), must_succeed))


def plain(value: t.Any) -> t.Any:
    return dict(zip(("read", "write"), value)) if isinstance(value, tuple) else value


def shown(value: t.Any) -> str:
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    return ",".join(str(one) for one in value) if isinstance(value, tuple) else str(value)


@frozen
class WaitForClean(RaidOperation):
    """Poll until the controller reports that everything in the cache is on the disks.

    :param provider: the name of the provider; ``tool`` is the path of its tool.
    :param controller: the id of the controller; ``serial`` distinguishes it from another one with that id.
    :param cache_volume: the id of the cache volume; ``None`` for a pool.
    :param volumes: ids of those whose newest data may be on the SSDs.
    :param switched_off: name by id of the volumes for which write caching was switched off before the wait.
    :param flush_timeout: seconds; ``None`` for no limit.
    """

    provider: str
    tool: str
    controller: str
    serial: str | None
    cache_volume: str | None
    volumes: tuple[str, ...]
    switched_off: t.Mapping[str, str]
    flush_timeout: int | None

    def carry_out(self, layer: RaidLayer[t.Any], step: Step) -> None:
        """No deadline but the user's own.

        :raises NotEffective: if write caching is on again.
        :raises NotUnderstood: if the controller does not report it any more.
        :raises TimedOut: after ``flush_timeout``.
        :raises Interrupted: if the run is interrupted.
        """
        try:
            self._wait(layer, step.item)
        except KeyboardInterrupt:
            raise Interrupted(f"{step.item}: the wait for a clean maxCache was interrupted: {self._kept}", item=step.item) from None

    def _wait(self, layer: RaidLayer[t.Any], item: str) -> None:
        started, pause, limit = layer.clock(), FIRST_PAUSE, self.flush_timeout
        while True:
            controller = self._read(layer, item)
            state, writing = flush_state(controller, self)
            waited = layer.clock() - started
            if writing:
                names = ", ".join(writing)
                raise NotEffective(f"{item}: write caching of {names} is still enabled although it was disabled: {self._kept}", item=item)
            if state == CLEAN:
                layer.note(f"{item}: clean after {waited:.0f} s")
                return
            if state != DIRTY:
                raise NotUnderstood(f"{item}: {controller.label} does not report any more whether its maxCache is clean: {self._kept}", item=item)
            layer.note(f"{item}: still dirty after {waited:.0f} s")
            if limit is not None and waited >= limit:
                raise TimedOut(f"{item}: still dirty after flush_timeout ({limit} seconds): {self._kept}", item=item)
            layer.sleep(pause if limit is None else min(pause, limit - waited))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _read(self, layer: RaidLayer[t.Any], item: str) -> Controller:
        """The controller now; a reading that fails is repeated.

        :raises StorageError: if it fails several times in a row.
        """
        for attempt in range(1, PATIENCE + 1):
            try:
                return self._controller_in(layer.provider_of(self), item)
            except StorageError as error:
                layer.note(f"{item}: reading {attempt} of {PATIENCE} failed: {error.message}")
                if attempt == PATIENCE:
                    text = f"{item}: {error.message.rstrip('.')}, {PATIENCE} times in a row: {self._kept}"
                    raise type(error)(text, item=item, completed=error.completed, **error.facts) from error
                layer.sleep(FIRST_PAUSE)
        raise NotUnderstood(f"{item}: nothing was read: {self._kept}", item=item)

    def _controller_in(self, provider: RaidProvider, item: str) -> Controller:
        """
        :raises NotUnderstood: if the output is damaged or the controller is not in it.
        """
        reading = provider.read()
        if not reading.complete:
            what = reading.not_understood[0] if reading.not_understood else "it ends too early"
            raise NotUnderstood(f"the output of {provider.tool} is damaged ({what})", item=item)
        lost = reading.lost_for(self.controller)
        if lost:
            raise NotUnderstood(f"{provider.tool} did not report everything ({lost[0]})", item=item)
        for controller in reading.controllers:
            if controller.id == self.controller and controller.serial == self.serial:
                return controller
        raise NotUnderstood(f"{provider.tool} does not show controller {self.controller} any more", item=item)

    @property
    def _kept(self) -> str:
        """What a wait that ended without success leaves behind."""
        volumes = ", ".join(self.switched_off.values())
        off = f"write caching was disabled for {volumes}, and " if volumes else ""
        return f"{off}the cache was not removed. Run again to continue."


def emptying(target: MaxCacheTarget, item: str, cache: CacheVolume | None, volumes: t.Sequence[Volume]) -> list[Step]:
    """Write caching off for every volume that writes, and the wait.

    :param cache: ``None`` for a pool.
    :param volumes: those whose newest data may be on the SSDs.
    :raises Refused: if the controller would not report that write caching is off, or that everything is clean.
    """
    if not rules.tells_dirtiness(cache, volumes):
        what = "its maxCache pool" if cache is None else f"its maxCache volume {cache.id}"
        raise Refused(
            f"{target.controller.label} does not report whether {what} is clean, so that nothing would show that its data is on the disks: "
            f"it cannot be removed safely. {NOTHING}",
            item=item,
        )
    writing = [volume for volume in volumes if not rules.is_off(target.generation, volume)]
    silent = next((volume for volume in writing if volume.maxcache is None or volume.maxcache.write.configured == UNKNOWN), None)
    if silent is not None:
        raise Refused(
            f"{target.label(silent)} does not report whether its writes are cached, so that nothing would show that they are not any more: "
            f"its maxCache cannot be removed safely. {NOTHING}",
            item=target.item_of(silent),
        )
    steps = [_switch_off(target, volume) for volume in writing]
    steps.append(
        Step(
            layer=LAYER,
            item=item,
            attribute="dirty",
            before=rules.dirtiness(target.generation, cache, volumes),
            after=CLEAN,
            action=f"Wait until {target.controller.label} reports that its maxCache is clean",
            operation=WaitForClean(
                provider=target.seen.source.provider.name,
                tool=target.seen.source.provider.tool,
                controller=target.controller.id,
                serial=target.controller.serial,
                cache_volume=cache.id if cache is not None else None,
                volumes=tuple(volume.id for volume in volumes),
                switched_off={volume.id: volume.name or volume.id for volume in writing},
                flush_timeout=target.spec.flush_timeout,
            ),
        )
    )
    return steps


def _switch_off(target: MaxCacheTarget, volume: Volume) -> Step:
    off = rules.off_word(target.generation)
    if target.generation == SMART:
        words = commands.write_policy(target.controller, [volume.id], WRITETHROUGH)
    else:
        words = commands.write_cache(target.controller, [volume.id], False)
    before = rules.write_policy(target.generation, volume)
    text = f"Stop caching writes of {target.label(volume)} in maxCache (write: {off}, was {before})"
    return send(target, target.item_of(volume), "maxcache_write", before, off, text, words)


def flush_state(controller: Controller, operation: WaitForClean) -> tuple[str, list[str]]:
    """How far a flush is: ``clean``, ``dirty`` or ``unknown``, and the volumes that still cache writes."""
    maxcache = controller.maxcache or MaxCache()
    switched_off = operation.switched_off
    volumes = [volume for volume in controller.volumes if volume.id in operation.volumes]
    cache = next((one for one in maxcache.volumes if one.id == operation.cache_volume), None)
    if len(volumes) != len(operation.volumes) or (operation.cache_volume is not None and cache is None):
        return UNKNOWN, []
    switched = [volume for volume in volumes if volume.id in switched_off]
    writing = [switched_off[volume.id] for volume in switched if not rules.is_off(maxcache.generation, volume) and not _still_ending(volume)]
    # A volume added during the wait may use a cache that is for all volumes.
    concerned = volumes if maxcache.generation == SMART else controller.volumes
    return rules.dirtiness(maxcache.generation, cache, concerned), writing


def _still_ending(volume: Volume) -> bool:
    """Write caching is configured off, and in effect until the flush ends."""
    return volume.maxcache is not None and volume.maxcache.write.configured == DISABLED


@frozen
class PoolChange:
    """SSDs that enter and leave the pool."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: MaxCacheTarget) -> PoolChange:
        present = tuple(plain_address(drive) for drive in target.maxcache.pool)
        drives = target.spec.pool_drives
        # Without cache volumes, the cache that should be absent is the pool.
        if not drives and not (target.generation == POOL and target.spec.cache_volumes):
            return cls(after=present)
        if target.maxcache.assigned is not None and target.maxcache.assigned != len(present):
            raise NotUnderstood(
                f"{target.controller.label} reports {target.maxcache.assigned} SSDs in its maxCache pool, and lists {len(present)}. {NOTHING}",
                item=target.item,
            )
        added = tuple(drive for drive in drives if drive not in present)
        reason = rules.objection_to_drives(target.controller, drives, present)
        if reason is not None:
            target.refuse(reason)
        return cls(added, tuple(drive for drive in present if drive not in drives), drives)

    def steps(self, target: MaxCacheTarget) -> list[Step]:
        before = sorted(plain_address(drive) for drive in target.maxcache.pool)
        kept = [drive for drive in before if drive not in self.removed]
        steps = []
        for action, drives, old, new in (("Remove {} from", self.removed, before, kept), ("Add {} to", self.added, kept, sorted(self.after))):
            if drives:
                text = f"{action.format(', '.join(drives))} the maxCache pool of {target.controller.label}"
                words = commands.pool(target.controller, drives, add=drives is self.added)
                steps.append(send(target, target.item, "pool_drives", old, new, text, words))
        return steps


@frozen
class Change:
    """One cache volume: what is there, and what should be.

    :param present: ``None`` if there is none.
    :param spec: ``None`` if it is left as it is.
    :param data: the volume it caches, with maxCache 4.
    """

    present: CacheVolume | None
    spec: CacheVolumeSpec | None
    data: Volume | None = None
    rebuild: bool = False

    @property
    def removes(self) -> bool:
        return self.present is not None and self.spec is not None and (self.rebuild or not self.spec.present)

    @property
    def creates(self) -> bool:
        return self.spec is not None and self.spec.present and (self.present is None or self.rebuild)

    @property
    def stays(self) -> bool:
        """Whether there is a cache volume in the end."""
        return self.spec.present if self.spec is not None else self.present is not None

    @property
    def level(self) -> str:
        """The RAID level in the end."""
        if self.spec is not None and self.spec.present:
            return self.spec.raid_level or UNKNOWN
        return self.present.raid_level if self.present is not None else UNKNOWN


def changes_of(target: MaxCacheTarget) -> list[Change]:
    """Every cache volume that is there or specified.

    :raises BadInput: for specifications that this generation cannot have, or that contradict each other.
    """
    specs = target.spec.cache_volumes
    if target.generation == POOL:
        if any(spec.present for spec in specs):
            target.refuse("has a pool of SSDs and no cache volumes (maxCache 1 or 2): set pool_drives instead of cache_volumes")
        if specs and target.spec.pool_drives:
            target.refuse("has pool_drives and state: absent in cache_volumes: use one of them")
        return []
    if target.spec.pool_drives:
        target.refuse(f"has no pool of SSDs ({rules.GENERATION_NAMES[target.generation]}): set cache_volumes instead of pool_drives")
    if target.generation == CONTAINER:
        return _container_change(target, specs)
    return _smart_changes(target, specs)


def _container_change(target: MaxCacheTarget, specs: t.Sequence[CacheVolumeSpec]) -> list[Change]:
    if len(specs) > 1:
        target.refuse("has one maxCache volume at most (maxCache 3.0), and cache_volumes has several entries")
    present = next(iter(target.maxcache.volumes), None)
    spec = specs[0] if specs else None
    return [_judged(target, Change(present, spec))] if present is not None or spec is not None else []


def _smart_changes(target: MaxCacheTarget, specs: t.Sequence[CacheVolumeSpec]) -> list[Change]:
    by_data: dict[str, CacheVolumeSpec] = {}
    for spec in specs:
        volume = _data_volume(target, spec)
        if volume.id in by_data:
            target.refuse("is named as data_volume of two cache volumes, and a volume has one maxCache", volume)
        by_data[volume.id] = spec
    volumes = {volume.id: volume for volume in target.controller.volumes}
    changes = []
    for present in target.maxcache.volumes:
        data = volumes.get(present.data_volume or "")
        own = by_data.pop(data.id, None) if data is not None else None
        changes.append(_judged(target, Change(present, own, data)))
    return changes + [_judged(target, Change(None, spec, volumes[key])) for key, spec in by_data.items()]


def _data_volume(target: MaxCacheTarget, spec: CacheVolumeSpec) -> Volume:
    if spec.data_volume is None:
        target.refuse("has one maxCache volume per volume (maxCache 4): set the data_volume that each of cache_volumes is for")
    found = [volume for volume in target.controller.volumes if spec.data_volume in (volume.id, volume.name)]
    if not found:
        there = ", ".join(f"{volume.id} ({volume.name})" if volume.name else volume.id for volume in target.controller.volumes) or "none"
        raise DeviceMissing(f"{target.controller.label} has no volume with id or name {spec.data_volume}; it has: {there}.", item=target.item)
    if len(found) > 1:
        target.refuse(f"has {len(found)} volumes that are called {spec.data_volume}: use the id of one that no other has as its name")
    return found[0]


def _judged(target: MaxCacheTarget, change: Change) -> Change:
    """The change with whether what is there has to be replaced."""
    spec, present = change.spec, change.present
    if spec is None or not spec.present or present is None:
        return change
    members = {plain_address(member) for member in present.members}
    level = rules.plain_level(target.generation, present.raid_level)
    if not members or level == UNKNOWN:
        raise NotUnderstood(
            f"{target.controller.label} does not report the SSDs or the RAID level of its maxCache volume {present.id}, "
            f"so that it cannot be compared with the requested one. {NOTHING}",
            item=target.cache_item(change.data),
        )
    same = members == set(spec.drives) and level == rules.plain_level(target.generation, spec.raid_level or "")
    if same and spec.size is not None and present.size is not None:
        same = rules.same_size(spec.size, present.size)
    return dataclasses.replace(change, rebuild=not same)


def check_creations(target: MaxCacheTarget, changes: t.Sequence[Change]) -> None:
    """
    :raises BadInput: if a cache volume cannot be made.
    """
    freed = {plain_address(member) for change in changes if change.removes and change.present for member in change.present.members}
    taken: list[str] = []
    for change in changes:
        spec = change.spec
        if spec is None or not spec.present:
            continue
        taken += spec.drives
        reason = _objection_to_limit(target, spec) if not change.creates else _objection(target, change, spec, changes, freed)
        if reason is not None:
            target.refuse(reason)
    twice = next((drive for drive in taken if taken.count(drive) > 1), None)
    if twice is not None:
        target.refuse(f"cannot give drive {twice} to two cache volumes")


def _objection_to_limit(target: MaxCacheTarget, spec: CacheVolumeSpec) -> str | None:
    limit = target.maxcache.limit
    return f"allows {limit} SSDs in its maxCache, and {len(spec.drives)} are wanted" if limit is not None and len(spec.drives) > limit else None


def _objection(target: MaxCacheTarget, change: Change, spec: CacheVolumeSpec, changes: t.Sequence[Change], freed: t.Container[str]) -> str | None:
    controller = target.controller
    reason = commands.objection(controller, "create", rules.tool_level(target.generation, spec.raid_level or ""))
    reason = reason or rules.objection_to_drives(controller, spec.drives, freed)
    if reason is not None:
        return reason
    if change.data is None:
        return rules.objection_to_container(controller, spec)
    others = sum(other.present.size or 0 for other in changes if other.present is not None and other is not change and not other.removes)
    return rules.objection_to_smart(controller, change.data, spec, change.present is not None, others)


def cache_of(target: MaxCacheTarget, changes: t.Sequence[Change], volume: Volume) -> Change | None:
    """The cache volume that serves a volume, or should."""
    if target.generation == SMART:
        return next((change for change in changes if change.data is not None and change.data.id == volume.id), None)
    return next(iter(changes), None)


def emptied_by(target: MaxCacheTarget, change: Change) -> list[Volume]:
    """The volumes whose data may be in a cache volume; one that reports nothing about it is one of them."""
    return [change.data] if change.data is not None else list(target.controller.volumes)


def deletion(target: MaxCacheTarget, change: Change) -> Step:
    present = change.present or CacheVolume(UNKNOWN)
    text = f"Delete maxCache volume {present.id} ({_made_of(present.members, present.raid_level)}) of {target.controller.label}"
    words = commands.delete(target.controller, present.id)
    return send(target, target.cache_item(change.data), "cache_volume", _described(target, present.members, present.raid_level), None, text, words)


def creation(target: MaxCacheTarget, change: Change, write: str | None) -> Step:
    """:param write: the write policy that is specified for the volume that it caches."""
    spec = change.spec or CacheVolumeSpec()
    level = spec.raid_level or UNKNOWN
    # The tool's own default is write-back: never leave it to that.
    policy = None if change.data is None else write or WRITETHROUGH
    words = commands.create(
        target.controller,
        spec.drives,
        rules.tool_level(target.generation, level),
        size=spec.size,
        data_volume=change.data.id if change.data is not None else None,
        policy=policy,
        cache_line_size=spec.line_size,
    )
    where = f" for {target.label(change.data)} with write: {policy}" if change.data is not None else f" on {target.controller.label}"
    text = f"Create a maxCache volume ({_made_of(spec.drives, level)}){where}"
    return send(target, target.cache_item(change.data), "cache_volume", None, _described(target, spec.drives, level), text, words)


def _made_of(drives: t.Iterable[str], level: str) -> str:
    return f"SSDs {' and '.join(drives)}, raid_level {level}"


def _described(target: MaxCacheTarget, drives: t.Iterable[str], level: str) -> dict[str, t.Any]:
    return {"drives": sorted(plain_address(drive) for drive in drives), "raid_level": rules.plain_level(target.generation, level)}
