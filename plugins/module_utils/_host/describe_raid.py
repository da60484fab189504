# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RAID controllers of a host as ``raid_cache_controllers``: their policies and the SSD caches inside of them."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Entry, Values, Variable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import RAID_DRIVERS
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.description import RaidHost, describe_controller, identity_of
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.description import describe_maxcache

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState

VARIABLE = "raid_cache_controllers"


def describe(
    runner: Runner, devices: Devices, *, every: bool = False, by_match: bool = False, tool_paths: t.Mapping[str, str] | None = None
) -> tuple[Variable, tuple[Controller, ...]]:
    """Every controller that a tool of this host sees, and the controllers themselves; without a tool, only that there are some.

    :param tool_paths: of tools by provider, which their entries have.
    :raises ToolMissing: if there is no tool at such a path.
    """
    paths = tool_paths or {}
    providers = registry.find_tools(runner, paths)
    state = registry.read_host(providers, tolerant=True)
    host = RaidHost(runner, state, providers)
    notes = [*_unseen(state, devices), *state.problems]
    entries: list[Entry] = []
    for seen in state.controllers:
        entry, left_out = _describe_one(host, seen.controller, every, by_match)
        if entry is not None:
            own = {"tool_path": paths[seen.controller.provider]} if seen.controller.provider in paths else {}
            entries.append(Entry({**entry.values, **own}, entry.notes))
        notes += left_out
    return Variable(VARIABLE, tuple(entries), notes=tuple(notes)), tuple(seen.controller for seen in state.controllers)


def _unseen(state: RaidState, devices: Devices) -> list[str]:
    drivers = sorted({str(device.driver) for device in devices if device.transport == "raid" and device.driver in RAID_DRIVERS})
    if state.controllers or not drivers:
        return []
    return [f"The controllers of the driver {' and '.join(drivers)} could not be read: no RAID tool of this host sees them."]


def _describe_one(host: RaidHost, controller: Controller, every: bool, by_match: bool) -> tuple[Entry | None, list[str]]:
    who = identity_of(controller)
    entry, notes = describe_controller(host, controller, every=every, by_match=by_match)
    maxcache, more = describe_maxcache(host, controller, who)
    if entry is not None and maxcache:
        entry = Entry(joined(entry.values, maxcache.values), (*entry.notes, *maxcache.notes))
    if entry is None or set(entry.values) <= {*who, "require_effective"}:
        return None, [*notes, *more]
    return entry, [*notes, *more]


def joined(entry: Values, maxcache: Values) -> Values:
    """The SSD cache beside the policies, in the shape that the role divides among its modules again."""
    volumes = [dict(volume) for volume in entry.get("volumes", [])]
    for volume in maxcache.get("volumes", []):
        who = {key: volume[key] for key in ("wwn", "name", "id") if key in volume}
        known = next((one for one in volumes if who.items() <= one.items()), None)
        if known is None:
            known = dict(who)
            volumes.append(known)
        known["maxcache"] = {key: value for key, value in volume.items() if key not in who}
    own = {key: value for key, value in maxcache.items() if key != "volumes"}
    return {**entry, **({"volumes": volumes} if volumes else {}), **({"maxcache": own} if own else {})}
