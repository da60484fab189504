# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the present SSD caches of controllers to the steps towards the specification; pure.

The order is always the same: what should go is emptied (write caching off, wait until the controller reports clean) and deleted, then
what should come is created, then the settings of the controller, then those of its volumes. Whatever is impossible, or dangerous
without a permission, is reported before the first step.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, CacheVolume, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.emptying import emptying
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.pool import PoolChange
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.target import NOTHING, MaxCacheTarget, plain, send, shown, targets_of
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.uses import check_danger, use_steps, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.volumes import (
    Change,
    changes_of,
    check_creations,
    creation,
    deletion,
    emptied_by,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import expand_volumes

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState

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
    steps += [creation(target, change, uses) for change in changes if change.creates]
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
        words = commands.read_write_balance(controller, *value) if name == "read_write_balance" else getattr(commands, name)(controller, value)
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
