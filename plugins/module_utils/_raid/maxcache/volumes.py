# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cache volumes of a controller (maxCache 3.0 and 4): what is there beside what is specified, and what follows from that; pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import CONTAINER, POOL, SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, WRITETHROUGH, CacheVolume, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import CacheVolumeSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.target import NOTHING, MaxCacheTarget, send
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import plain_address

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.uses import Use


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


def creation(target: MaxCacheTarget, change: Change, uses: t.Sequence[Use]) -> Step:
    spec = change.spec or CacheVolumeSpec()
    level = spec.raid_level or UNKNOWN
    policy = None
    if change.data is not None:
        # The tool's own default is write-back: never leave it to that.
        own = next((use for use in uses if use.volume.id == change.data.id), None)
        policy = (own.settings.get("write") if own is not None else None) or WRITETHROUGH
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
