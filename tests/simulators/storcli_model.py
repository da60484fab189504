# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a controller of storcli or storcli2 in the words of the model behind it (``model_port``)."""

from __future__ import annotations

import typing as t

from .simulator import State

_POLICIES = {"WT": "writethrough", "WB": "writeback", "AWB": "writeback_always"}
_WORDS = {policy: word for word, policy in _POLICIES.items()}
#: The policy for the drives of a volume in the states of the two tools; what forces a drive.
_DRIVE_POLICIES = ("disk_cache", "drive_cache")
_FORCES = {"On": True, "Enabled": True, "Off": False, "Disabled": False}


def settings(controller: State) -> State:
    """What is set now."""
    volumes = [{"write": _POLICIES[volume["write"]], "read_ahead": volume["read"] == "RA"} for volume in controller["volumes"]]
    return {"volumes": volumes, "drives": [_is_enabled(controller, drive) for drive in controller["drives"]]}


def take(controller: State, volumes: t.Sequence[State], drives: t.Sequence[bool]) -> None:
    """Make the state say what the model does."""
    for volume, found in zip(controller["volumes"], volumes):
        volume.update(write=_WORDS[found["policy"]], read="RA" if found["read_ahead"] else "NoRA")
    for drive, enabled in zip(controller["drives"], drives):
        drive["write_cache"] = {True: "On", False: "Off"}[enabled] if "write_cache_changeable" in drive else {True: "Enabled", False: "Disabled"}[enabled]
        if _is_enabled(controller, drive) != enabled:
            # The drive was set past its policy, which therefore leaves drives alone.
            _set_policy(controller, drive)


def _is_enabled(controller: State, drive: State) -> bool:
    return _FORCES.get(_policy(controller, drive), _FORCES[drive["write_cache"]])


def _policy(controller: State, drive: State) -> str:
    volume = _volume_of(controller, drive)
    if volume is None:
        return str(controller.get("settings", {}).get("jbodwritecache", "")).capitalize()
    return str(next(volume[key] for key in _DRIVE_POLICIES if key in volume))


def _set_policy(controller: State, drive: State) -> None:
    volume = _volume_of(controller, drive)
    if volume is None:
        controller["settings"]["jbodwritecache"] = "Default"
    else:
        volume.update({key: "Default" for key in _DRIVE_POLICIES if key in volume})


def _volume_of(controller: State, drive: State) -> State | None:
    return next((volume for volume in controller["volumes"] if drive["group"] is not None and volume.get("group") == drive["group"]), None)
