# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of SSD caches inside controllers: as that of controller caches, and waiting until a cache is clean."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.commands import RaidLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import caches
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import plan as maxcache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import MAXCACHE_TOOL

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState


class RaidMaxCacheLayer(RaidLayer[MaxCacheSpec]):
    """The SSD caches inside the controllers of one host."""

    name = caches.LAYER
    only_tool = MAXCACHE_TOOL

    def plan(self, state: RaidState) -> list[Step]:
        """See :func:`maxcache_plan.plan`.

        :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
        """
        try:
            return maxcache_plan.plan(state, self.spec)[0]
        except StorageError as error:
            if not self.sent:
                raise
            # The same plan serves for reading back.
            text = error.message.replace(f" {caches.NOTHING}", "")
            if isinstance(error, NotUnderstood):
                raise NotUnderstood(f"{self.name}: everything was sent, and what was read back does not prove it: {text}", item=error.item) from error
            raise NotEffective(f"{self.name}: what was read back does not agree with what was set: {text}", item=error.item) from error

    def ignored(self, difference: Difference, completed: Completed) -> str:  # noqa: ARG002
        return f" ({completed.last_words})"

    def left_out(self, state: RaidState) -> list[str]:
        return maxcache_plan.plan(state, self.spec)[1]

    def check_settled(self, state: RaidState) -> None:
        """Degraded cache volumes, and settings that are stored and not in effect."""
        self.warn_all([*maxcache_plan.warnings(state, self.spec), *self.problems(state)])

    def facts(self, state: RaidState) -> dict[str, t.Any]:
        return {**super().facts(state), "progress": list(self.progress)}

    def apply(self, step: Step) -> None:
        """Carry one step out; an error has the progress so far in its facts."""
        try:
            super().apply(step)
        except StorageError as error:
            error.facts.setdefault("progress", list(self.progress))
            raise
