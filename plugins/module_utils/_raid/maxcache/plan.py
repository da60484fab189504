# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the present SSD caches of controllers to the steps towards the specification; pure.

The order is always the same: what should go is emptied (write caching off, wait until the controller reports clean) and deleted, then
what should come is created, then the settings of the controller, then those of its volumes. Whatever is impossible, or dangerous
without a permission, is reported before the first step.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import CONTAINER, POOL, SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import DISABLED, UNKNOWN, CacheVolume, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import Settings
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.caches import (
    NOTHING,
    Change,
    MaxCacheTarget,
    PoolChange,
    cache_of,
    changes_of,
    check_creations,
    creation,
    deletion,
    emptied_by,
    emptying,
    plain,
    send,
    shown,
    targets_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import expand_volumes

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState

ALLOW = "allow_unprotected: true"


@frozen
class Use:
    """How one volume should use the cache.

    :param settings: ``read`` (a boolean) and ``write``, only what is specified or has to be set back.
    :param allowed: whether its entry permits to keep its newest data on SSDs without redundancy.
    :param named: whether it was selected by name, and not as one of all.
    """

    volume: Volume
    settings: Settings = field(default_factory=dict)
    allowed: bool = False
    named: bool = True


def uses_of(target: MaxCacheTarget, changes: t.Sequence[Change], pool: PoolChange) -> tuple[list[Use], list[str]]:
    """How every volume that matters should use the cache, and who is left out of ``all``.

    :raises BadInput: for what is impossible for a volume that is named, or for every one of all.
    """
    uses = [Use(volume, own.settings, own.allow_unprotected, not own.for_all) for volume, own in expand_volumes(target.controller, target.spec.volumes)]
    uses = _with_policies_of_cache_volumes(target, changes, uses)
    reasons = {use.volume.id: reason for use in uses for reason in [_objection_to_use(target, use, changes, pool)] if reason is not None}
    general = [use for use in uses if not use.named]
    for use in uses:
        if use.volume.id in reasons and (use.named or all(other.volume.id in reasons for other in general)):
            target.refuse(reasons[use.volume.id], use.volume)
    left_out = [f"Unchanged: {target.label(use.volume)} {reasons[use.volume.id]}." for use in uses if use.volume.id in reasons]
    settable = [use for use in uses if use.volume.id not in reasons]
    return _with_what_was_there(target, changes, pool, settable), left_out


def _with_policies_of_cache_volumes(target: MaxCacheTarget, changes: t.Sequence[Change], uses: t.Sequence[Use]) -> list[Use]:
    """The write policy that stands beside a cache volume belongs to the volume that it caches."""
    found = list(uses)
    for change in changes:
        policy = change.spec.write if change.spec is not None and change.spec.present else None
        if policy is None or change.data is None:
            continue
        place = next((index for index, use in enumerate(found) if use.volume.id == change.data.id), None)
        if place is None:
            found.append(Use(change.data, {"write": policy}, target.spec.allow_unprotected))
            continue
        own = found[place]
        if own.named and own.settings.get("write", policy) != policy:
            target.refuse(f"has write: {own.settings['write']} in volumes and write: {policy} in cache_volumes: list it once", change.data)
        allowed = own.allowed if own.named else target.spec.allow_unprotected
        found[place] = dataclasses.replace(own, settings={**own.settings, "write": policy}, allowed=allowed, named=True)
    return found


def _with_what_was_there(target: MaxCacheTarget, changes: t.Sequence[Change], pool: PoolChange, uses: t.Sequence[Use]) -> list[Use]:
    """Volumes whose cache is rebuilt get back what they had, unless something else is specified for them.

    :raises BadInput: if what they had cannot be set back.
    """
    own = {use.volume.id: use for use in uses}
    rebuilt = [volume for change in changes if change.rebuild for volume in emptied_by(target, change)]
    if pool.removed and pool.after:
        rebuilt = list(target.controller.volumes)
    for volume in rebuilt:
        use = own.get(volume.id, Use(volume, {}, target.spec.allow_unprotected))
        settings = {**_to_set_back(target, volume, use.settings), **use.settings}
        reason = _objection_to_write_caching(target, cache_of(target, changes, volume), settings.get("write"))
        if reason is not None:
            target.refuse(reason, volume)
        if settings:
            own[volume.id] = dataclasses.replace(use, settings=settings)
    return [own[volume.id] for volume in target.controller.volumes if volume.id in own]


def _to_set_back(target: MaxCacheTarget, volume: Volume, settings: Settings) -> dict[str, t.Any]:
    had: dict[str, t.Any] = {}
    if volume.maxcache is None:
        # Its cache is not taken away either.
        return had
    if target.generation != SMART and rules.reads_cached(volume) is True:
        had["read"] = True
    policy = rules.write_policy(target.generation, volume)
    if policy == rules.off_word(target.generation) or (target.generation == POOL and volume.maxcache and volume.maxcache.write.configured == UNKNOWN):
        return had
    if "write" not in settings and commands.objection(target.controller, "write_policy", policy) is not None:
        target.refuse(f"caches writes with a policy that could not be set back afterwards ({policy}): set its write in volumes", volume)
    return {**had, "write": policy}


def _objection_to_use(target: MaxCacheTarget, use: Use, changes: t.Sequence[Change], pool: PoolChange) -> str | None:
    """Why a volume cannot use the cache as specified, or why it could not be proved."""
    change = cache_of(target, changes, use.volume)
    there = change is not None and change.stays
    if target.generation == POOL:
        there = bool(pool.after) or (bool(target.maxcache.assigned) and not pool.removed)
    for attribute, value in use.settings.items():
        reason = _objection_to_setting(target, attribute, value)
        if reason is None and not there and value not in (False, DISABLED):
            what = "in its maxCache pool: set pool_drives" if target.generation == POOL else "in a maxCache volume: describe one in cache_volumes"
            reason = f"cannot have maxCache {attribute}: {shown(value)}, since there are no SSDs {what}"
        if reason is None and there and not (change is not None and change.creates) and _value(target, use.volume, attribute) is None:
            what = f"maxCache {attribute} cache"
            reason = f"does not report its {what}, so that a change could not be verified ({target.controller.provider} prints none)"
        if reason is None and attribute == "write":
            reason = _objection_to_write_caching(target, change, value)
        if reason is not None:
            return reason
    return None


def _objection_to_setting(target: MaxCacheTarget, attribute: str, value: t.Any) -> str | None:
    if attribute == "read":
        return commands.objection(target.controller, "read_cache")
    if value != DISABLED:
        return commands.objection(target.controller, "write_policy", value)
    return commands.objection(target.controller, "write_cache")


def _objection_to_write_caching(target: MaxCacheTarget, change: Change | None, value: str | None) -> str | None:
    """What maxCache 3.0 refuses itself, whatever the permission."""
    if target.generation != CONTAINER or value in (None, DISABLED) or change is None or not change.stays:
        return None
    level = rules.plain_level(CONTAINER, change.level)
    if level == UNKNOWN or rules.is_redundant(level):
        return None
    return f"cannot cache writes: the maxCache volume is {_level_text(level)}, and maxCache 3.0 caches writes only on a redundant one (RAID 1, 1E or 5)"


def _level_text(level: str) -> str:
    return "a single SSD" if level == "simple" else f"RAID {level}"


def _value(target: MaxCacheTarget, volume: Volume, attribute: str) -> t.Any:
    """What a volume has now; ``None`` if the controller prints no such line. ``unknown`` is a line without information."""
    cached = volume.maxcache
    if cached is None:
        return None
    if attribute == "read":
        found = rules.reads_cached(volume)
        return None if found == UNKNOWN else found
    if target.generation != SMART and cached.write.configured == UNKNOWN:
        return None
    return rules.write_policy(target.generation, volume)


def check_danger(target: MaxCacheTarget, use: Use, changes: t.Sequence[Change]) -> None:
    """
    :raises Refused: if the newest data of a volume would be on SSDs without redundancy, and its entry does not allow that.
    """
    policy = use.settings.get("write")
    if use.allowed or not rules.needs_protection(policy):
        return
    change = cache_of(target, changes, use.volume)
    reason = None
    if target.generation == POOL:
        reason = "is a pool of SSDs that does not report any redundancy"
    elif change is not None and rules.plain_level(target.generation, change.level) == UNKNOWN:
        reason = "does not report its RAID level"
    elif change is not None and not rules.is_redundant(rules.plain_level(target.generation, change.level)):
        reason = f"is {_level_text(rules.plain_level(target.generation, change.level))}"
    elif change is not None and change.present is not None and not change.creates and rules.is_degraded(change.present):
        # One that degrades later is a warning: switching it off is no repair.
        now = rules.write_policy(target.generation, use.volume)
        reason = f"is {change.present.status.replace('_', ' ')} now" if now != policy else None
    if reason is not None:
        raise Refused(
            f"{target.label(use.volume)}: with write: {policy} its newest data is only on the SSDs, and its maxCache {reason}: when an SSD fails it is lost. "
            f"Set {ALLOW} on this entry only if its data may be lost. {NOTHING}",
            item=target.item_of(use.volume),
        )


def use_steps(target: MaxCacheTarget, use: Use, changes: t.Sequence[Change], pool: PoolChange) -> list[Step]:
    """Reading, then writing, of one volume, from what the steps before leave behind."""
    change = cache_of(target, changes, use.volume)
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
        # Whether a volume keeps its setting for reading while its cache volume is rebuilt is not documented: it is set again.
        again = attribute == "read" and fresh and value is True
        if before is None:
            before = UNKNOWN if value not in (False, DISABLED) else value
        if before == value and not again:
            continue
        text = f"Set maxCache {attribute} of {target.label(use.volume)} to {shown(value)} (was {shown(before)})"
        words = _use_words(target, use.volume, attribute, value, before)
        steps.append(
            send(target, target.item_of(use.volume), f"maxcache_{attribute}", before, value, text, words, must_succeed=not (fresh and attribute == "read"))
        )
    return steps


def _use_words(target: MaxCacheTarget, volume: Volume, attribute: str, value: t.Any, before: t.Any) -> list[str]:
    controller, ids = target.controller, [volume.id]
    if attribute == "read":
        return commands.read_cache(controller, ids, value)
    if value == DISABLED:
        return commands.write_cache(controller, ids, False)
    if target.generation == SMART or before not in (DISABLED, UNKNOWN):
        return commands.write_policy(controller, ids, value)
    return commands.write_cache(controller, ids, True, value)


#: Settings of an SSD cache as a whole.
_SETTING_NAMES = {"flush_and_fetch_rate": "flush and fetch rate", "dirty_page_threshold": "dirty page threshold", "read_write_balance": "read/write balance"}


def plan(host: RaidState, specs: t.Sequence[MaxCacheSpec]) -> tuple[list[Step], list[str]]:
    """The steps, and what is left out of ``all`` because it cannot be done, one sentence each.

    :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
    """
    targets, left_out = targets_of(host, specs)
    steps: list[Step] = []
    for target in targets:
        more, sentences = _plan_target(target)
        steps += more
        left_out += sentences
    return steps, left_out


def _plan_target(target: MaxCacheTarget) -> tuple[list[Step], list[str]]:
    changes = changes_of(target)
    pool = PoolChange.of(target)
    _check_whole(target, changes, pool)
    check_creations(target, changes)
    uses, left_out = uses_of(target, changes, pool)
    _check_settings(target)
    for use in uses:
        check_danger(target, use, changes)
    steps = _empty_and_delete(target, changes, pool)
    written = {use.volume.id: use.settings.get("write") for use in uses}
    steps += [creation(target, change, written.get(change.data.id) if change.data is not None else None) for change in changes if change.creates]
    steps += pool.steps(target)
    steps += _setting_steps(target)
    for use in uses:
        steps += use_steps(target, use, changes, pool)
    return steps, left_out


def _check_whole(target: MaxCacheTarget, changes: t.Sequence[Change], pool: PoolChange) -> None:
    """
    :raises NotUnderstood: if something of the controller could not be read, and the entry needs all of it: a volume that is not
        seen may have its newest data on the SSDs that should go, and an SSD that should be used may be its own.
    """
    lost = target.seen.source.reading.lost_for(target.controller.id)
    remade = any(change.removes or change.creates for change in changes) or bool(pool.added or pool.removed)
    absent = any(not spec.present for spec in target.spec.cache_volumes)
    if lost and (remade or absent or any(own.for_all for own in target.spec.volumes)):
        raise NotUnderstood(
            f"{target.controller.label}: {target.seen.source.provider.name} did not report everything ({lost[0]}), so that "
            f"nothing can be done that concerns the whole cache or all volumes. {NOTHING}",
            item=target.item,
        )


def _check_settings(target: MaxCacheTarget) -> None:
    """
    :raises BadInput: if the controller does not have a setting, or does not report it.
    """
    for name, value in target.spec.settings.items():
        reason = commands.objection(target.controller, name, value)
        if reason is None and getattr(target.maxcache, name) is None:
            reason = f"does not report its maxCache {_SETTING_NAMES[name]}, so that a change could not be verified"
        if reason is not None:
            target.refuse(reason)


def _setting_steps(target: MaxCacheTarget) -> list[Step]:
    controller = target.controller
    steps = []
    for name, value in target.spec.settings.items():
        before = getattr(target.maxcache, name)
        if before == value:
            continue
        # SETMAXCACHE changes one setting per call.
        words = commands.whole(controller, name, value)
        text = f"Set the maxCache {_SETTING_NAMES[name]} of {controller.label} to {shown(value)} (was {shown(before)})"
        steps.append(send(target, target.item, name, plain(before), plain(value), text, words))
    return steps


def _empty_and_delete(target: MaxCacheTarget, changes: t.Sequence[Change], pool: PoolChange) -> list[Step]:
    """Write caching off, wait until everything is clean, delete.

    :raises Refused: if the controller would not report that it is clean.
    """
    doomed = [change for change in changes if change.removes]
    steps: list[Step] = []
    for change in doomed:
        steps += emptying(target, target.cache_item(change.data), change.present, emptied_by(target, change))
    if pool.removed:
        steps += emptying(target, target.item, None, target.controller.volumes)
    # Every wait comes before the first deletion: an SSD may go from one cache volume to another.
    return steps + [deletion(target, change) for change in doomed]


def warnings(host: RaidState, specs: t.Sequence[MaxCacheSpec]) -> list[str]:
    """What is not in order although everything is set as specified, one sentence each."""
    found = []
    for target in targets_of(host, specs)[0]:
        cache_volumes = target.maxcache.volumes
        for cache in cache_volumes:
            writing = [volume for volume in target.controller.volumes if _depends_on(target, cache, volume)]
            if rules.is_degraded(cache) and writing:
                names = ", ".join(volume.name or volume.id for volume in writing)
                found.append(
                    f"{target.controller.label}: its maxCache volume {cache.id} is {cache.status.replace('_', ' ')} and has the newest data of {names}: "
                    "replace the SSD."
                )
        for volume, own in expand_volumes(target.controller, target.spec.volumes):
            for attribute in own.settings:
                policy = getattr(volume.maxcache, attribute, None)
                if policy is not None and UNKNOWN not in (policy.configured, policy.effective) and policy.configured != policy.effective:
                    found.append(
                        f"{target.label(volume)}: maxCache {attribute} caching is set to {policy.configured}, but {policy.effective} is in effect: "
                        "the tool reports no reason."
                    )
    return found


def _depends_on(target: MaxCacheTarget, cache: CacheVolume, volume: Volume) -> bool:
    if volume.maxcache is None or cache.data_volume not in (None, volume.id):
        return False
    return rules.needs_protection(rules.write_policy(target.generation, volume))
