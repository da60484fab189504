# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pool of SSDs of a controller (maxCache 1 and 2): who enters and who leaves; pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import POOL
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.target import NOTHING, MaxCacheTarget, send
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import plain_address

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step


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
        controller = target.controller
        before = sorted(plain_address(drive) for drive in target.maxcache.pool)
        kept = [drive for drive in before if drive not in self.removed]
        steps = []
        if self.removed:
            words = commands.remove_from_pool(controller, self.removed)
            text = f"Remove {', '.join(self.removed)} from the maxCache pool of {controller.label}"
            steps.append(send(target, target.item, "pool_drives", before, kept, text, words))
        if self.added:
            words = commands.add_to_pool(controller, self.added)
            text = f"Add {', '.join(self.added)} to the maxCache pool of {controller.label}"
            steps.append(send(target, target.item, "pool_drives", kept, sorted(self.after), text, words))
        return steps
