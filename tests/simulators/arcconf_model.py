# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a simulated Adaptec controller in the words of the model behind it (``model_port``)."""

from __future__ import annotations

import typing as t

from . import arcconf_state as now
from .simulator import State

_POLICIES = {"wt": "writethrough", "wbb": "writeback", "wb": "writeback_always"}
_WORDS = {policy: word for word, policy in _POLICIES.items()}
_MAXCACHE = {"WT": "writethrough", "WB": "writeback", "INSTWB": "instant_writeback"}
_MAXCACHE_WORDS = {policy: word for word, policy in _MAXCACHE.items()}


def settings(controller: State) -> State:
    """What is set now."""
    return {
        "volumes": [_volume(controller, volume) for volume in controller["volumes"]],
        "drives": [now.drive_cache(controller, drive, {}) == now.WRITE_BACK for drive in controller["drives"]],
    }


def _volume(controller: State, volume: State) -> State:
    cache = volume["maxcache"]
    writes = _MAXCACHE[cache["policy"]] if cache["write"] else "disabled"
    made: State = {"max_cache": {"read": cache["read"], "write": writes, "rate": controller["maxcache"].get("flush_rate")}}
    if controller["generation"] == "aacraid":
        return {**made, "write": _POLICIES[volume["write"]], "read_ahead": volume["read"]}
    word = "wt" if not volume["caching"] else "wb" if controller["cache"]["no_battery"] else "wbb"
    return {**made, "write": _POLICIES[word]}


def take(controller: State, volumes: t.Sequence[State], drives: t.Sequence[bool]) -> None:
    """Make the state say what the model does."""
    smart = controller["generation"] == "smart"
    for volume, found in zip(controller["volumes"], volumes):
        word = _WORDS[found["policy"]]
        if smart:
            volume["caching"] = word != "wt"
            controller["cache"]["no_battery"] = controller["cache"]["no_battery"] if word == "wt" else word == "wb"
        else:
            volume.update(read=found["read_ahead"], write=word)
        if found["max_cache"]:
            _take_max_cache(controller, volume["maxcache"], found["max_cache"])
    for drive, enabled in zip(controller["drives"], drives):
        drive["write_cache"] = now.WRITE_BACK if enabled else now.WRITE_THROUGH
    for drive in controller["drives"]:
        if now.drive_cache(controller, drive, {}) != drive["write_cache"]:
            _lift_policy(controller, drive)


def _take_max_cache(controller: State, cache: State, found: State) -> None:
    policy = found["write_policy"]
    cache.update(read=found["read_enabled"], write=policy != "disabled", flush_left=int(bool(found["dirty_blocks"] or found["changing"])))
    cache["policy"] = _MAXCACHE_WORDS.get(policy, cache["policy"])
    controller["maxcache"]["flush_rate"] = found["rate"]


def _lift_policy(controller: State, drive: State) -> None:
    """The drive was set past the policy of its controller, which therefore leaves drives alone."""
    if controller["global_drive_cache"]:
        controller["global_drive_cache"] = "drivespecific"
    else:
        kind = now.drive_class(controller, drive, {})
        controller["drive_policy"][kind] = now.UNCHANGED_POLICY if kind == "Configured" else now.DEFAULT_POLICY
