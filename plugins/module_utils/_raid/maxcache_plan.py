# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""From the present SSD caches of controllers to the steps towards the wanted ones; pure.

The order is always the same: what shall go is emptied (write caching off, wait until the controller says clean) and deleted, then
what shall come is created, then the settings of the controller, then those of its volumes. Whatever is impossible, or dangerous
without a permission, is said before the first step.
"""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import arcconf_maxcache as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import maxcache_rules as rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf_maxcache import CONTAINER, POOL, SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache_wanted import CacheVolumeWish, MaxCacheWish
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.model import (
    CLEAN,
    DISABLED,
    UNKNOWN,
    WRITETHROUGH,
    CacheVolume,
    Controller,
    MaxCache,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.wanted import choose_controllers, expand_volumes, plain_address

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import Host, Seen

LAYER = "raid_maxcache"
SEND, WAIT = "send", "wait"
_ALLOW = "allow_unprotected: true"
#: Ends every refusal.
NOTHING = "Nothing was changed."


@dataclass(frozen=True)
class Use:
    """How one volume shall use the cache.

    :param settings: ``read`` (a boolean) and ``write``, only what is wished or has to be set back.
    :param allowed: whether its entry permits to keep its newest data on SSDs without redundancy.
    :param named: whether it was meant by name, and not as one of all.
    """

    volume: Volume
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    allowed: bool = False
    named: bool = True


@dataclass(frozen=True)
class Change:
    """One cache volume: what is there, and what shall be.

    :param present: ``None`` if there is none.
    :param wish: ``None`` if it is left as it is.
    :param data: the volume it caches, with maxCache 4.
    """

    present: CacheVolume | None
    wish: CacheVolumeWish | None
    data: Volume | None = None
    rebuild: bool = False

    @property
    def removes(self) -> bool:
        return self.present is not None and self.wish is not None and (self.rebuild or not self.wish.present)

    @property
    def creates(self) -> bool:
        return self.wish is not None and self.wish.present and (self.present is None or self.rebuild)

    @property
    def stays(self) -> bool:
        """Whether there is a cache volume in the end."""
        return self.wish.present if self.wish is not None else self.present is not None

    @property
    def level(self) -> str:
        """The RAID level in the end."""
        if self.wish is not None and self.wish.present:
            return self.wish.raid_level or UNKNOWN
        return self.present.raid_level if self.present is not None else UNKNOWN


@dataclass(frozen=True)
class Target:
    """One controller and everything that is wished of its SSD cache."""

    seen: Seen
    wish: MaxCacheWish

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

    def cache_item(self, change: Change) -> str:
        return self.item if change.data is None else f"{self.item} of volume {change.data.id}"

    def called(self, volume: Volume) -> str:
        return f"volume {volume.name or volume.id} of {self.controller.called}"

    def refuse(self, reason: str, volume: Volume | None = None) -> t.NoReturn:
        """
        :raises BadInput: for what is impossible: a clause after the name of the controller or of a volume.
        """
        called = self.controller.called if volume is None else self.called(volume)
        raise BadInput(f"{called} {reason}. {NOTHING}", item=self.item if volume is None else self.item_of(volume))


def plan(host: Host, wanted: t.Sequence[MaxCacheWish]) -> tuple[list[Step], list[str]]:
    """The steps, and what is left out of ``all`` because it cannot be done, one sentence each.

    :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
    """
    targets, left_out = targets_of(host, wanted)
    steps: list[Step] = []
    for target in targets:
        more, sentences = _plan_target(target)
        steps += more
        left_out += sentences
    return steps, left_out


def targets_of(host: Host, wanted: t.Sequence[MaxCacheWish]) -> tuple[list[Target], list[str]]:
    """Every controller that is meant and has maxCache, and a sentence for each of ``all`` that has none.

    :raises BadInput: if a controller that is named, or every one of all, has none; if two entries are for one controller.
    """
    found: list[Target] = []
    left_out: list[str] = []
    for wish in wanted:
        chosen = [Target(seen, wish) for seen in choose_controllers(host, wish)]
        if wish.empty:
            continue
        without = {id(target): reason for target in chosen for reason in [rules.no_maxcache(target.controller)] if reason is not None}
        if without and (wish.named or len(without) == len(chosen)):
            target = next(target for target in chosen if id(target) in without)
            target.refuse(without[id(target)])
        left_out += [f"Left as it is: {target.controller.called} {without[id(target)]}." for target in chosen if id(target) in without]
        found += [target for target in chosen if id(target) not in without]
    keys = [target.item for target in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise BadInput(f"Two entries are for {twice}: join them into one.", item=twice)
    return found, left_out


def _plan_target(target: Target) -> tuple[list[Step], list[str]]:
    changes = _changes(target)
    _check_creations(target, changes)
    pool = _PoolChange.of(target)
    uses, left_out = _uses(target, changes, pool)
    _check_settings(target)
    for use in uses:
        _check_danger(target, use, changes)
    steps = _empty_and_delete(target, changes, pool)
    steps += [_create(target, change, uses) for change in changes if change.creates]
    steps += pool.steps(target)
    steps += _settings(target)
    for use in uses:
        steps += _use_steps(target, use, changes, pool)
    return steps, left_out


# -- cache volumes


def _changes(target: Target) -> list[Change]:
    """Every cache volume that is there or wished.

    :raises BadInput: for wishes that this generation cannot have, or that contradict each other.
    """
    wished = target.wish.cache_volumes
    if target.generation == POOL:
        if any(wish.present for wish in wished):
            target.refuse("has a pool of SSDs and no cache volumes (maxCache 1 or 2): write pool_drives instead of cache_volumes")
        if wished and target.wish.pool_drives:
            target.refuse("has pool_drives and state: absent in cache_volumes: write one of them")
        return []
    if target.wish.pool_drives:
        target.refuse(f"has no pool of SSDs ({rules.GENERATION_NAMES[target.generation]}): write cache_volumes instead of pool_drives")
    if target.generation == CONTAINER:
        return _container_change(target, wished)
    return _smart_changes(target, wished)


def _container_change(target: Target, wished: t.Sequence[CacheVolumeWish]) -> list[Change]:
    if len(wished) > 1:
        target.refuse("has one maxCache volume at most (maxCache 3.0), and cache_volumes has several entries")
    present = next(iter(target.maxcache.volumes), None)
    wish = wished[0] if wished else None
    return [_judged(target, Change(present, wish))] if present is not None or wish is not None else []


def _smart_changes(target: Target, wished: t.Sequence[CacheVolumeWish]) -> list[Change]:
    by_data: dict[str, CacheVolumeWish] = {}
    for wish in wished:
        volume = _data_volume(target, wish)
        if volume.id in by_data:
            target.refuse("is named as data_volume of two cache volumes, and a volume has one maxCache", volume)
        by_data[volume.id] = wish
    volumes = {volume.id: volume for volume in target.controller.volumes}
    changes = []
    for present in target.maxcache.volumes:
        data = volumes.get(present.data_volume or "")
        own = by_data.pop(data.id, None) if data is not None else None
        changes.append(_judged(target, Change(present, own, data)))
    return changes + [_judged(target, Change(None, wish, volumes[key])) for key, wish in by_data.items()]


def _data_volume(target: Target, wish: CacheVolumeWish) -> Volume:
    if wish.data_volume is None:
        target.refuse("has one maxCache volume per volume (maxCache 4): write the data_volume that each of cache_volumes is for")
    found = [volume for volume in target.controller.volumes if wish.data_volume in (volume.id, volume.name)]
    if not found:
        there = ", ".join(f"{volume.id} ({volume.name})" if volume.name else volume.id for volume in target.controller.volumes) or "none"
        raise DeviceMissing(f"{target.controller.called} has no volume with id or name {wish.data_volume}; it has: {there}.", item=target.item)
    if len(found) > 1:
        target.refuse(f"has {len(found)} volumes that are called {wish.data_volume}: write the id of one that no other has as its name")
    return found[0]


def _judged(target: Target, change: Change) -> Change:
    """The change with whether what is there has to be replaced."""
    wish, present = change.wish, change.present
    if wish is None or not wish.present or present is None:
        return change
    members = {plain_address(member) for member in present.members}
    level = rules.plain_level(target.generation, present.raid_level)
    if not members or level == UNKNOWN:
        raise NotUnderstood(
            f"{target.controller.called} does not tell of which SSDs or of which RAID level its maxCache volume {present.id} is made, "
            f"so that it cannot be compared with the wanted one. {NOTHING}",
            item=target.cache_item(change),
        )
    same = members == set(wish.drives) and level == rules.plain_level(target.generation, wish.raid_level or "")
    if same and wish.size is not None and present.size is not None:
        same = rules.same_size(wish.size, present.size)
    return dataclasses.replace(change, rebuild=not same)


def _check_creations(target: Target, changes: t.Sequence[Change]) -> None:
    """
    :raises BadInput: if a cache volume cannot be made.
    """
    freed = {plain_address(member) for change in changes if change.removes and change.present for member in change.present.members}
    taken: list[str] = []
    for change in changes:
        wish = change.wish
        if wish is None or not wish.present:
            continue
        taken += wish.drives
        reason = _objection_to_limit(target, wish) if not change.creates else _objection(target, change, wish, changes, freed)
        if reason is not None:
            target.refuse(reason)
    twice = next((drive for drive in taken if taken.count(drive) > 1), None)
    if twice is not None:
        target.refuse(f"cannot give drive {twice} to two cache volumes")


def _objection_to_limit(target: Target, wish: CacheVolumeWish) -> str | None:
    limit = target.maxcache.limit
    return f"allows {limit} SSDs in its maxCache, and {len(wish.drives)} are wanted" if limit is not None and len(wish.drives) > limit else None


def _objection(target: Target, change: Change, wish: CacheVolumeWish, changes: t.Sequence[Change], freed: t.Container[str]) -> str | None:
    controller = target.controller
    reason = commands.objection(controller, "create", rules.tool_level(target.generation, wish.raid_level or ""))
    reason = reason or rules.objection_to_drives(controller, wish.drives, freed)
    if reason is not None:
        return reason
    if change.data is None:
        return rules.objection_to_container(controller, wish)
    others = sum(other.present.size or 0 for other in changes if other.present is not None and other is not change and not other.removes)
    return rules.objection_to_smart(controller, change.data, wish, change.present is not None, others)


# -- the pool of maxCache 1 and 2


@dataclass(frozen=True)
class _PoolChange:
    """SSDs that enter and leave the pool."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: Target) -> _PoolChange:
        present = tuple(plain_address(drive) for drive in target.maxcache.pool)
        wanted = target.wish.pool_drives
        # Without cache volumes, the cache that shall be absent is the pool.
        if not wanted and not (target.generation == POOL and target.wish.cache_volumes):
            return cls(after=present)
        if target.maxcache.assigned is not None and target.maxcache.assigned != len(present):
            raise NotUnderstood(
                f"{target.controller.called} says that {target.maxcache.assigned} SSDs are in its maxCache pool, and names {len(present)}. {NOTHING}",
                item=target.item,
            )
        added = tuple(drive for drive in wanted if drive not in present)
        reason = rules.objection_to_drives(target.controller, wanted, present)
        if reason is not None:
            target.refuse(reason)
        return cls(added, tuple(drive for drive in present if drive not in wanted), wanted)

    def steps(self, target: Target) -> list[Step]:
        controller = target.controller
        before = sorted(plain_address(drive) for drive in target.maxcache.pool)
        kept = [drive for drive in before if drive not in self.removed]
        steps = []
        if self.removed:
            words = commands.remove_from_pool(controller, self.removed)
            text = f"Remove {', '.join(self.removed)} from the maxCache pool of {controller.called}"
            steps.append(_send(target, target.item, "pool_drives", before, kept, text, words))
        if self.added:
            words = commands.add_to_pool(controller, self.added)
            text = f"Add {', '.join(self.added)} to the maxCache pool of {controller.called}"
            steps.append(_send(target, target.item, "pool_drives", kept, sorted(self.after), text, words))
        return steps


# -- volumes


def _cache_of(target: Target, changes: t.Sequence[Change], volume: Volume) -> Change | None:
    """The cache volume that serves a volume, or shall."""
    if target.generation == SMART:
        return next((change for change in changes if change.data is not None and change.data.id == volume.id), None)
    return next(iter(changes), None)


def _emptied(target: Target, change: Change) -> list[Volume]:
    """The volumes whose data may be in a cache volume."""
    if change.data is not None:
        return [change.data]
    return [volume for volume in target.controller.volumes if volume.maxcache is not None]


def _uses(target: Target, changes: t.Sequence[Change], pool: _PoolChange) -> tuple[list[Use], list[str]]:
    """How every volume that matters shall use the cache, and who is left out of ``all``.

    :raises BadInput: for what is impossible for a volume that is named, or for every one of all.
    """
    uses = [Use(volume, own.settings, own.allow_unprotected, not own.for_all) for volume, own in expand_volumes(target.controller, target.wish.volumes)]
    uses = _with_policies_of_cache_volumes(target, changes, uses)
    reasons = {use.volume.id: reason for use in uses for reason in [_objection_to_use(target, use, changes, pool)] if reason is not None}
    general = [use for use in uses if not use.named]
    for use in uses:
        if use.volume.id in reasons and (use.named or all(other.volume.id in reasons for other in general)):
            target.refuse(reasons[use.volume.id], use.volume)
    left_out = [f"Left as it is: {target.called(use.volume)} {reasons[use.volume.id]}." for use in uses if use.volume.id in reasons]
    settable = [use for use in uses if use.volume.id not in reasons]
    return _with_what_was_there(target, changes, pool, settable), left_out


def _with_policies_of_cache_volumes(target: Target, changes: t.Sequence[Change], uses: t.Sequence[Use]) -> list[Use]:
    """The write policy that stands beside a cache volume belongs to the volume that it caches."""
    found = list(uses)
    for change in changes:
        policy = change.wish.write if change.wish is not None and change.wish.present else None
        if policy is None or change.data is None:
            continue
        place = next((index for index, use in enumerate(found) if use.volume.id == change.data.id), None)
        if place is None:
            found.append(Use(change.data, {"write": policy}, target.wish.allow_unprotected))
            continue
        own = found[place]
        if own.named and own.settings.get("write", policy) != policy:
            target.refuse(f"has write: {own.settings['write']} in volumes and write: {policy} in cache_volumes: write it once", change.data)
        allowed = own.allowed if own.named else target.wish.allow_unprotected
        found[place] = dataclasses.replace(own, settings={**own.settings, "write": policy}, allowed=allowed, named=True)
    return found


def _with_what_was_there(target: Target, changes: t.Sequence[Change], pool: _PoolChange, uses: t.Sequence[Use]) -> list[Use]:
    """Volumes whose cache is rebuilt get back what they had, unless something else is wished of them.

    :raises BadInput: if what they had cannot be set back.
    """
    own = {use.volume.id: use for use in uses}
    rebuilt = [volume for change in changes if change.rebuild for volume in _emptied(target, change)]
    if pool.removed and pool.after:
        rebuilt = [volume for volume in target.controller.volumes if volume.maxcache is not None]
    for volume in rebuilt:
        use = own.get(volume.id, Use(volume, {}, target.wish.allow_unprotected))
        settings = {**_to_set_back(target, volume, use.settings), **use.settings}
        reason = _objection_to_write_caching(target, _cache_of(target, changes, volume), settings.get("write"))
        if reason is not None:
            target.refuse(reason, volume)
        if settings:
            own[volume.id] = dataclasses.replace(use, settings=settings)
    return [own[volume.id] for volume in target.controller.volumes if volume.id in own]


def _to_set_back(target: Target, volume: Volume, wished: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    had: dict[str, t.Any] = {}
    if target.generation != SMART and rules.reads_cached(volume) is True:
        had["read"] = True
    policy = rules.write_policy(target.generation, volume)
    if policy == rules.off_word(target.generation) or (target.generation == POOL and volume.maxcache and volume.maxcache.write.configured == UNKNOWN):
        return had
    if "write" not in wished and commands.objection(target.controller, "write_policy", policy) is not None:
        target.refuse(f"caches writes with a policy that could not be set back afterwards ({policy}): say in volumes which write it shall have", volume)
    return {**had, "write": policy}


def _objection_to_use(target: Target, use: Use, changes: t.Sequence[Change], pool: _PoolChange) -> str | None:
    """Why a volume cannot use the cache as wished, or why it could not be proved."""
    change = _cache_of(target, changes, use.volume)
    there = change is not None and change.stays
    if target.generation == POOL:
        there = bool(pool.after) or (bool(target.maxcache.assigned) and not pool.removed)
    for attribute, value in use.settings.items():
        reason = _objection_to_setting(target, attribute, value)
        if reason is None and not there and value not in (False, DISABLED):
            what = "in its maxCache pool: write pool_drives" if target.generation == POOL else "in a maxCache volume: describe one in cache_volumes"
            reason = f"cannot have maxCache {attribute}: {_shown(value)}, since there are no SSDs {what}"
        if reason is None and there and not (change is not None and change.creates) and _value(target, use.volume, attribute) is None:
            what = f"maxCache {attribute} cache"
            reason = f"does not tell its {what}, so that a change could not be proved ({target.controller.provider} prints none)"
        if reason is None and attribute == "write":
            reason = _objection_to_write_caching(target, change, value)
        if reason is not None:
            return reason
    return None


def _objection_to_setting(target: Target, attribute: str, value: t.Any) -> str | None:
    if attribute == "read":
        return commands.objection(target.controller, "read_cache")
    if value != DISABLED:
        return commands.objection(target.controller, "write_policy", value)
    return commands.objection(target.controller, "write_cache")


def _objection_to_write_caching(target: Target, change: Change | None, value: str | None) -> str | None:
    """What maxCache 3.0 refuses itself, whoever permits it."""
    if target.generation != CONTAINER or value in (None, DISABLED) or change is None or not change.stays:
        return None
    level = rules.plain_level(CONTAINER, change.level)
    if level == UNKNOWN or rules.is_redundant(level):
        return None
    return f"cannot cache writes: the maxCache volume is {_level_text(level)}, and maxCache 3.0 caches writes only on a redundant one (RAID 1, 1E or 5)"


def _level_text(level: str) -> str:
    return "a single SSD" if level == "simple" else f"RAID {level}"


def _value(target: Target, volume: Volume, attribute: str) -> t.Any:
    """What a volume has now; ``None`` if the controller prints no such line. ``unknown`` is a line that tells nothing."""
    cached = volume.maxcache
    if cached is None:
        return None
    if attribute == "read":
        found = rules.reads_cached(volume)
        return None if found == UNKNOWN else found
    if target.generation != SMART and cached.write.configured == UNKNOWN:
        return None
    return rules.write_policy(target.generation, volume)


def _check_danger(target: Target, use: Use, changes: t.Sequence[Change]) -> None:
    """
    :raises Refused: if the newest data of a volume would be on SSDs without redundancy, and its entry does not allow that.
    """
    policy = use.settings.get("write")
    if use.allowed or not rules.needs_protection(policy):
        return
    change = _cache_of(target, changes, use.volume)
    reason = None
    if target.generation == POOL:
        reason = "is a pool of SSDs that does not tell of any redundancy"
    elif change is not None and rules.plain_level(target.generation, change.level) == UNKNOWN:
        reason = "does not tell its RAID level"
    elif change is not None and not rules.is_redundant(rules.plain_level(target.generation, change.level)):
        reason = f"is {_level_text(rules.plain_level(target.generation, change.level))}"
    elif change is not None and change.present is not None and not change.creates and rules.is_degraded(change.present):
        # One that degrades later is a warning: switching it off is no repair.
        now = rules.write_policy(target.generation, use.volume)
        reason = f"is {change.present.status.replace('_', ' ')} now" if now != policy else None
    if reason is not None:
        raise Refused(
            f"{target.called(use.volume)}: with write: {policy} its newest data is only on the SSDs, and its maxCache {reason}: when an SSD fails it is lost. "
            f"Set {_ALLOW} on this entry only if its data may be lost. {NOTHING}",
            item=target.item_of(use.volume),
        )


# -- settings of the whole cache

_CALLED = {"flush_and_fetch_rate": "flush and fetch rate", "dirty_page_threshold": "dirty page threshold", "read_write_balance": "read/write balance"}


def _check_settings(target: Target) -> None:
    """
    :raises BadInput: if the controller does not have a setting, or does not tell it.
    """
    for name, value in target.wish.settings.items():
        reason = commands.objection(target.controller, name, value)
        if reason is None and getattr(target.maxcache, name) is None:
            reason = f"does not tell its maxCache {_CALLED[name]}, so that a change could not be proved"
        if reason is not None:
            target.refuse(reason)


def _settings(target: Target) -> list[Step]:
    controller = target.controller
    steps = []
    for name, value in target.wish.settings.items():
        before = getattr(target.maxcache, name)
        if before == value:
            continue
        # SETMAXCACHE changes one setting per call.
        words = commands.read_write_balance(controller, *value) if name == "read_write_balance" else getattr(commands, name)(controller, value)
        text = f"Set the maxCache {_CALLED[name]} of {controller.called} to {_shown(value)} (was {_shown(before)})"
        steps.append(_send(target, target.item, name, _plain(before), _plain(value), text, words))
    return steps


# -- steps


def _empty_and_delete(target: Target, changes: t.Sequence[Change], pool: _PoolChange) -> list[Step]:
    """Write caching off, wait until everything is clean, delete.

    :raises Refused: if the controller would not say that it is clean.
    """
    doomed = [change for change in changes if change.removes]
    steps: list[Step] = []
    for change in doomed:
        steps += _empty(target, target.cache_item(change), change.present, _emptied(target, change))
    if pool.removed:
        steps += _empty(target, target.item, None, [volume for volume in target.controller.volumes if volume.maxcache is not None])
    # Every wait comes before the first deletion: an SSD may go from one cache volume to another.
    return steps + [_delete(target, change) for change in doomed]


def _empty(target: Target, item: str, cache: CacheVolume | None, volumes: t.Sequence[Volume]) -> list[Step]:
    if not rules.tells_dirtiness(cache, volumes):
        what = "its maxCache pool" if cache is None else f"its maxCache volume {cache.id}"
        raise Refused(
            f"{target.controller.called} does not tell whether {what} is clean, so that nothing would show that its data is on the disks: "
            f"it cannot be taken away safely. {NOTHING}",
            item=item,
        )
    writing = [volume for volume in volumes if not rules.is_off(target.generation, volume) and _can_switch(target, volume)]
    silent = next((volume for volume in writing if volume.maxcache is None or volume.maxcache.write.configured == UNKNOWN), None)
    if silent is not None:
        raise Refused(
            f"{target.called(silent)} does not tell whether its writes are cached, so that nothing would show that they are not any more: "
            f"its maxCache cannot be taken away safely. {NOTHING}",
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
            action=f"Wait until {target.controller.called} says that its maxCache is clean",
            operation=WAIT,
            arguments={
                **_who(target),
                "controller": target.controller.id,
                "serial": target.controller.serial,
                "cache_volume": cache.id if cache is not None else None,
                "volumes": [volume.id for volume in volumes],
                "switched_off": [volume.name or volume.id for volume in writing],
                "flush_timeout": target.wish.flush_timeout,
            },
        )
    )
    return steps


def _can_switch(target: Target, volume: Volume) -> bool:
    """A pool that only reads has no switch for writing, and prints none."""
    cached = volume.maxcache
    return not (target.generation == POOL and cached is not None and cached.write.configured == UNKNOWN)


def _switch_off(target: Target, volume: Volume) -> Step:
    off = rules.off_word(target.generation)
    if target.generation == SMART:
        words = commands.write_policy(target.controller, [volume.id], WRITETHROUGH)
    else:
        words = commands.write_cache(target.controller, [volume.id], False)
    before = rules.write_policy(target.generation, volume)
    text = f"Stop caching writes of {target.called(volume)} in maxCache (write: {off}, was {before})"
    return _send(target, target.item_of(volume), "maxcache_write", before, off, text, words)


def _delete(target: Target, change: Change) -> Step:
    present = change.present or CacheVolume(UNKNOWN)
    text = f"Delete maxCache volume {present.id} ({_made_of(present.members, present.raid_level)}) of {target.controller.called}"
    words = commands.delete(target.controller, present.id)
    return _send(target, target.cache_item(change), "cache_volume", _described(target, present.members, present.raid_level), None, text, words)


def _create(target: Target, change: Change, uses: t.Sequence[Use]) -> Step:
    wish = change.wish or CacheVolumeWish()
    level = wish.raid_level or UNKNOWN
    policy = None
    if change.data is not None:
        # The tool's own default is write-back: never leave it to that.
        own = next((use for use in uses if use.volume.id == change.data.id), None)
        policy = (own.settings.get("write") if own is not None else None) or WRITETHROUGH
    words = commands.create(
        target.controller,
        wish.drives,
        rules.tool_level(target.generation, level),
        size=wish.size,
        data_volume=change.data.id if change.data is not None else None,
        policy=policy,
        cache_line_size=wish.line_size,
    )
    where = f" for {target.called(change.data)} with write: {policy}" if change.data is not None else f" on {target.controller.called}"
    text = f"Create a maxCache volume ({_made_of(wish.drives, level)}){where}"
    return _send(target, target.cache_item(change), "cache_volume", None, _described(target, wish.drives, level), text, words)


def _made_of(drives: t.Iterable[str], level: str) -> str:
    return f"SSDs {' and '.join(drives)}, raid_level {level}"


def _described(target: Target, drives: t.Iterable[str], level: str) -> dict[str, t.Any]:
    return {"drives": sorted(plain_address(drive) for drive in drives), "raid_level": rules.plain_level(target.generation, level)}


def _use_steps(target: Target, use: Use, changes: t.Sequence[Change], pool: _PoolChange) -> list[Step]:
    """Reading, then writing, of one volume, from what the steps before leave behind."""
    change = _cache_of(target, changes, use.volume)
    fresh = change is not None and (change.removes or change.creates)
    steps = []
    for attribute in ("read", "write"):
        if attribute not in use.settings or (attribute == "write" and target.generation == SMART and change is not None and change.creates):
            # A cache volume of maxCache 4 is created with its policy.
            continue
        value, before = use.settings[attribute], _value(target, use.volume, attribute)
        emptied = bool(pool.removed) and before is not None
        if attribute == "write" and (fresh or emptied) and before not in (None, rules.off_word(target.generation)):
            before = rules.off_word(target.generation)
        # Whether a volume keeps its setting for reading while its cache volume is rebuilt is not known: it is said again.
        again = attribute == "read" and fresh and value is True
        if before is None:
            before = UNKNOWN if value not in (False, DISABLED) else value
        if before == value and not again:
            continue
        text = f"Set maxCache {attribute} of {target.called(use.volume)} to {_shown(value)} (was {_shown(before)})"
        words = _use_words(target, use.volume, attribute, value, before)
        steps.append(
            _send(target, target.item_of(use.volume), f"maxcache_{attribute}", before, value, text, words, must_succeed=not (fresh and attribute == "read"))
        )
    return steps


def _use_words(target: Target, volume: Volume, attribute: str, value: t.Any, before: t.Any) -> list[str]:
    controller, ids = target.controller, [volume.id]
    if attribute == "read":
        return commands.read_cache(controller, ids, value)
    if value == DISABLED:
        return commands.write_cache(controller, ids, False)
    if target.generation == SMART or before not in (DISABLED, UNKNOWN):
        return commands.write_policy(controller, ids, value)
    return commands.write_cache(controller, ids, True, value)


def _who(target: Target) -> dict[str, str]:
    return {"provider": target.seen.source.provider.name, "tool": target.seen.source.provider.tool}


def _send(
    target: Target,
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
    arguments = {**_who(target), "words": list(words), "must_succeed": must_succeed}
    return Step(LAYER, item, attribute, before, after, text, SEND, arguments)


def _plain(value: t.Any) -> t.Any:
    return dict(zip(("read", "write"), value)) if isinstance(value, tuple) else value


def _shown(value: t.Any) -> str:
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    return ",".join(str(one) for one in value) if isinstance(value, tuple) else str(value)


# -- while waiting, and afterwards


def flush_state(controller: Controller, arguments: t.Mapping[str, t.Any]) -> tuple[str, list[str]]:
    """How far a flush is: ``clean``, ``dirty`` or ``unknown``, and the volumes that still cache writes.

    :param arguments: of the step that waits.
    """
    maxcache = controller.maxcache or MaxCache()
    volumes = [volume for volume in controller.volumes if volume.id in arguments["volumes"]]
    cache = next((one for one in maxcache.volumes if one.id == arguments["cache_volume"]), None)
    if len(volumes) != len(arguments["volumes"]) or (arguments["cache_volume"] is not None and cache is None):
        return UNKNOWN, []
    switched = [volume for volume in volumes if (volume.name or volume.id) in arguments["switched_off"]]
    writing = [volume.name or volume.id for volume in switched if not rules.is_off(maxcache.generation, volume) and not _still_ending(volume)]
    return rules.dirtiness(maxcache.generation, cache, volumes), writing


def _still_ending(volume: Volume) -> bool:
    """Write caching is configured off, and in force until the flush ends."""
    return volume.maxcache is not None and volume.maxcache.write.configured == DISABLED


def concerns(host: Host, wanted: t.Sequence[MaxCacheWish]) -> list[str]:
    """What a person should know although everything is set as wished, one sentence each."""
    found = []
    for target in targets_of(host, wanted)[0]:
        cache_volumes = target.maxcache.volumes
        for cache in cache_volumes:
            writing = [volume for volume in target.controller.volumes if _depends_on(target, cache, volume)]
            if rules.is_degraded(cache) and writing:
                names = ", ".join(volume.name or volume.id for volume in writing)
                found.append(
                    f"{target.controller.called}: its maxCache volume {cache.id} is {cache.status.replace('_', ' ')} and has the newest data of {names}: "
                    "replace the SSD."
                )
        for volume, own in expand_volumes(target.controller, target.wish.volumes):
            for attribute in own.settings:
                policy = getattr(volume.maxcache, attribute, None)
                if policy is not None and UNKNOWN not in (policy.configured, policy.effective) and policy.configured != policy.effective:
                    found.append(
                        f"{target.called(volume)}: maxCache {attribute} caching is set to {policy.configured}, but {policy.effective} is in force: "
                        "the tool does not say why."
                    )
    return found


def _depends_on(target: Target, cache: CacheVolume, volume: Volume) -> bool:
    if volume.maxcache is None or cache.data_volume not in (None, volume.id):
        return False
    return rules.needs_protection(rules.write_policy(target.generation, volume))
