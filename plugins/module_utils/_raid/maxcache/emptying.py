# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Getting the newest data from SSDs to the disks: write caching off, then waiting until the controller reports clean; pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CLEAN,
    DISABLED,
    UNKNOWN,
    WRITETHROUGH,
    CacheVolume,
    Controller,
    MaxCache,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.target import LAYER, NOTHING, MaxCacheTarget, send


@frozen
class WaitForClean(Operation):
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
