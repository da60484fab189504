# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One controller, the specification of its SSD cache, and the steps that are one command to it; pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, MaxCache, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import choose_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.target import SendCommand

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen

LAYER = "raid_maxcache"
#: Ends every refusal.
NOTHING = "Nothing was changed."


@frozen
class SendMaxCacheCommand(SendCommand):
    """Run one command of the tool.

    :param must_succeed: whether a refusal ends the run; if not, what is read back decides.
    """

    must_succeed: bool = True


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
    return Step(LAYER, item, attribute, before, after, text, SendMaxCacheCommand(provider.name, provider.tool, tuple(words), must_succeed))


def plain(value: t.Any) -> t.Any:
    return dict(zip(("read", "write"), value)) if isinstance(value, tuple) else value


def shown(value: t.Any) -> str:
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    return ",".join(str(one) for one in value) if isinstance(value, tuple) else str(value)
