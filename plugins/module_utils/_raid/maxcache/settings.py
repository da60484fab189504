# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of an SSD cache as a whole: rate, threshold and balance; pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.target import MaxCacheTarget, plain, send, shown

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step

_CALLED = {"flush_and_fetch_rate": "flush and fetch rate", "dirty_page_threshold": "dirty page threshold", "read_write_balance": "read/write balance"}


def check_settings(target: MaxCacheTarget) -> None:
    """
    :raises BadInput: if the controller does not have a setting, or does not tell it.
    """
    for name, value in target.wish.settings.items():
        reason = commands.objection(target.controller, name, value)
        if reason is None and getattr(target.maxcache, name) is None:
            reason = f"does not tell its maxCache {_CALLED[name]}, so that a change could not be proved"
        if reason is not None:
            target.refuse(reason)


def setting_steps(target: MaxCacheTarget) -> list[Step]:
    controller = target.controller
    steps = []
    for name, value in target.wish.settings.items():
        before = getattr(target.maxcache, name)
        if before == value:
            continue
        # SETMAXCACHE changes one setting per call.
        words = commands.read_write_balance(controller, *value) if name == "read_write_balance" else getattr(commands, name)(controller, value)
        text = f"Set the maxCache {_CALLED[name]} of {controller.called} to {shown(value)} (was {shown(before)})"
        steps.append(send(target, target.item, name, plain(before), plain(value), text, words))
    return steps
