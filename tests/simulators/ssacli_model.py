# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a simulated Smart Array controller in the words of the model behind it (``model_port``)."""

from __future__ import annotations

import typing as t

from . import ssacli_text as text
from .simulator import State


def settings(controller: State) -> State:
    """What is set now."""
    written = "writeback_always" if controller["no_battery_write_cache"] else "writeback"
    volumes = [{"write": written if volume["caching"] else "writethrough"} for volume in controller["volumes"]]
    return {"volumes": volumes, "drives": [_is_enabled(controller, drive) for drive in controller["drives"]]}


def take(controller: State, volumes: t.Sequence[State], drives: t.Sequence[bool]) -> None:
    """Make the state say what the model does."""
    for volume, found in zip(controller["volumes"], volumes):
        volume["caching"] = found["policy"] != "writethrough"
        if volume["caching"]:
            controller["no_battery_write_cache"] = found["policy"] == "writeback_always"
    for drive, enabled in zip(controller["drives"], drives):
        drive["write_cache"] = enabled
    for drive in controller["drives"]:
        if _is_enabled(controller, drive) != drive["write_cache"]:
            _follow(controller, _usage(controller, drive))


def _usage(controller: State, drive: State) -> str:
    policies = controller["drive_write_cache"]
    used = any(text.place(drive) in array["drives"] for array in controller["arrays"])
    return "all" if "all" in policies else "hba" if "hba" in policies and controller.get("mode") == "HBA" else "configured" if used else "unconfigured"


def _is_enabled(controller: State, drive: State) -> bool:
    """A policy that forces a cache, or what the drive came with."""
    policy = controller["drive_write_cache"].get(_usage(controller, drive), "Default")
    return {"Enable": True, "Disable": False}.get(policy.removesuffix("d"), bool(drive.get("write_cache")))


def _follow(controller: State, usage: str) -> None:
    """The policy that the drives of a kind seem to have; an old tool has no word for drives that differ."""
    found = {drive["write_cache"] for drive in controller["drives"] if _usage(controller, drive) == usage}
    if usage == "all":
        controller["drive_write_cache"]["all"] = "Enabled" if True in found else "Disabled"
    else:
        controller["drive_write_cache"][usage] = {(True,): "Enable", (False,): "Disable"}.get(tuple(found), "Default")
