# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SETCACHE of the simulated arcconf: volumes, drives, drive classes, and the cache memory of SmartRAID cards."""

from __future__ import annotations

import typing as t

from . import arcconf_state as now
from .arcconf_call import NOT_SUPPORTED, AbortedError, Call, InvalidArgumentsError, number, switch
from .simulator import State

_IGNORED = "The selected parameter will be ignored."
_NOTHING_LEFT = "No new supported cache settings have been specified."
_ALL_HBA = "All connectors are in HBA mode, Set cache operation is invalid."
_NO_RATIO = "The specified operation cannot be performed as the controller cache is not configured."
_DATA_LOSS = ("WARNING: Power failure without battery/ZMM support will lead to data loss.", "Do you wish to continue?")
_DRIVE_DATA_LOSS = "WARNING: Data loss can happen on power outage if write-back caching is enabled on a drive."
_DRIVE_PERFORMANCE = "WARNING: Performance could be impacted if write-back caching is disabled on a drive."
_SWITCH = {True: "Enabled", False: "Disabled"}
_DRIVE_WORDS = {"wb": "Enabled (write-back)", "wt": "Disabled (write-through)"}
_GLOBAL_WORDS = {"enable": "Enabled", "disable": "Disabled", "drivespecific": "Drive Specific"}
_CLASSES = {"configured": "Configured", "unconfigured": "Unconfigured", "hba": "HBA"}


def set_cache(call: Call) -> None:
    """Changes the state of the controller, or ends with one of the exceptions of ``arcconf_call``."""
    if not call.words:
        raise InvalidArgumentsError
    form = call.words[0].upper()
    rest = call.words[1:]
    if form == "LOGICALDRIVE":
        _logical_drive(call, rest)
    elif form == "DEVICEALL" and call.controller["generation"] == "aacraid" and not call.knows(form) and not call.old:
        raise AbortedError(f"Controller #{call.number} does not support setting global physical device cache.")
    elif form not in _FORMS or not call.knows(form):
        raise InvalidArgumentsError
    else:
        _FORMS[form](call, rest)


def _logical_drive(call: Call, rest: list[str]) -> None:
    if call.controller["series"] == "hba":
        raise AbortedError(NOT_SUPPORTED)
    if len(rest) != 2:
        raise InvalidArgumentsError
    smart = call.controller["generation"] == "smart"
    mode = rest[1].lower()
    if mode not in (("con", "coff") if smart else ("ron", "roff", "wt", "wb", "wbb")):
        raise InvalidArgumentsError
    number(rest[0])
    if now.in_hba_mode(call.controller, call.faults):
        raise AbortedError(_ALL_HBA)
    if smart:
        _controller_cache(call, rest[0], on=mode == "con")
    else:
        _volume_mode(call, call.volume(rest[0]), mode)


def _volume_mode(call: Call, volume: State, mode: str) -> None:
    kind = "read" if mode in ("ron", "roff") else "write"
    wanted: t.Any = mode == "ron" if kind == "read" else mode
    if volume[kind] == wanted:
        raise AbortedError(f"New {kind} cache mode is the same as the old {kind} cache mode.", _IGNORED, _NOTHING_LEFT)
    if mode == "wb" and not now.protected(call.controller, call.faults):
        call.confirm(*_DATA_LOSS)
    volume[kind] = wanted


def _controller_cache(call: Call, which: str, *, on: bool) -> None:
    controller = call.controller
    volume = call.volume(which)
    if now.container_of(controller, volume) is not None:
        raise AbortedError("maxCache is enabled on the logical drive, controller cache cannot be modified.")
    if volume["caching"] is on:
        raise AbortedError(f"Cache mode is already set to {_SWITCH[on]}.")
    if on and volume["ssd_bypass"]:
        raise AbortedError(f"The specified operation cannot be performed as SSD I/O bypass has been enabled on array {volume['array']}.")
    if on and not now.protected(controller, call.faults) and not controller["cache"]["no_battery"]:
        raise AbortedError("The specified operation cannot be performed as battery status is not Ok and No Battery Write Cache is disabled.")
    volume["caching"] = on


def _device(call: Call, rest: list[str]) -> None:
    if len(rest) != 3 or rest[2].lower() not in ("wb", "wt"):
        raise InvalidArgumentsError
    (drive,), mode, controller = call.drives(rest[:2]), rest[2].lower(), call.controller
    if drive["pool"]:
        raise AbortedError("Disk specified cannot be used as it is assigned to MaxCache pool")
    if not drive["supports_cache"] or drive["state"] == "Failed":
        raise AbortedError("Write cache not supported on this device.")
    if controller["global_drive_cache"] not in (None, "drivespecific"):
        raise AbortedError(
            "Please modify the controller Global Physical Devices Cache policy to Drivespecific for updating the write cache on a specific drive"
        )
    if mode == "wb" and drive["state"].startswith("Raw") and controller["generation"] == "aacraid":
        raise AbortedError("Write-back caching is not supported on RAW devices.")
    if now.drive_cache(controller, drive, call.faults) == mode:
        if controller["series"] in ("7", "8", "hba"):
            raise AbortedError(f"Write Cache mode is already set to {_DRIVE_WORDS[mode]}.")
        raise AbortedError("New write cache mode is the same as the old write cache mode.", _IGNORED)
    if controller["generation"] == "smart":
        call.printed.append(_DRIVE_DATA_LOSS if mode == "wb" else _DRIVE_PERFORMANCE)
    drive["write_cache"] = mode


def _device_all(call: Call, rest: list[str]) -> None:
    if len(rest) != 1 or rest[0].lower() not in _GLOBAL_WORDS:
        raise InvalidArgumentsError
    policy, controller = rest[0].lower(), call.controller
    if not any(drive["supports_cache"] for drive in controller["drives"]):
        raise AbortedError(f"Controller #{call.number} does not have Hard Drive Cache support.")
    if controller["global_drive_cache"] is None:
        _every_drive(call, policy)
        return
    if controller["global_drive_cache"] == policy:
        raise AbortedError(f"Controller Global Physical Devices Cache policy is already {_GLOBAL_WORDS[policy]}")
    call.confirm(*_warning(policy))
    if policy == "drivespecific":
        # The drives stay as the global policy had set them.
        for drive in controller["drives"]:
            drive["write_cache"] = now.drive_cache(controller, drive, call.faults)
    controller["global_drive_cache"] = policy


def _warning(policy: str) -> tuple[str, str]:
    first = {"enable": _DRIVE_DATA_LOSS, "disable": _DRIVE_PERFORMANCE, "drivespecific": "WARNING: The Cache mode will be set to Drive-specific."}[policy]
    return first, "Do you wish to continue?"


def _every_drive(call: Call, policy: str) -> None:
    """DEVICEALL on a card that keeps no global policy (an HBA)."""
    if policy == "drivespecific":
        raise AbortedError(f"Controller #{call.number} does not support setting global drivespecific device cache.")
    mode = "wb" if policy == "enable" else "wt"
    drives = [drive for drive in call.controller["drives"] if drive["supports_cache"]]
    if all(drive["write_cache"] == mode for drive in drives):
        raise AbortedError(f"Controller Global Physical Devices Cache policy is already {_GLOBAL_WORDS[policy]}")
    call.confirm(*_warning(policy))
    for drive in drives:
        drive["write_cache"] = mode


def _drive_policies(call: Call, rest: list[str]) -> None:
    if not rest or len(rest) % 2:
        raise InvalidArgumentsError
    policies, wanted = call.controller["drive_policy"], {}
    for word, value in zip(rest[::2], rest[1::2]):
        kind = _CLASSES.get(word.lower())
        policy = number(value, 0, 3)
        if kind is None or kind in wanted or (policy == now.UNCHANGED_POLICY and kind != "Configured"):
            raise InvalidArgumentsError
        wanted[kind] = policy
    if all(policies[kind] == policy for kind, policy in wanted.items()):
        raise AbortedError("Drive write cache already in desired mode.")
    if now.ENABLE_POLICY in wanted.values():
        call.confirm(_DRIVE_DATA_LOSS, "Do you wish to continue?")
    elif now.DISABLE_POLICY in wanted.values():
        call.confirm(_DRIVE_PERFORMANCE, "Do you wish to continue?")
    for drive in call.controller["drives"]:
        # A forced mode stays in the drive when the policy is taken back to one that leaves it alone.
        drive["write_cache"] = now.drive_cache(call.controller, drive, call.faults)
    policies.update(wanted)


def _ratio(call: Call, rest: list[str]) -> None:
    if len(rest) != 2:
        raise InvalidArgumentsError
    read, write = (number(word, 0, 100) for word in rest)
    if read + write != 100:
        raise InvalidArgumentsError
    cache = _cache(call)
    if not now.has_ratio(call.controller, call.faults):
        # No capture has this refusal; the words are a guess.
        raise AbortedError(_NO_RATIO)
    if cache["read"] == read:
        raise AbortedError(f"Cache Ratio is already set to {read} % Read : {write} % Write.")
    cache.update(read=read, write=write)


def _no_battery(call: Call, rest: list[str]) -> None:
    if len(rest) != 1:
        raise InvalidArgumentsError
    on, cache = switch(rest[0]), _cache(call)
    if cache["no_battery"] is on:
        raise AbortedError(f"No Battery Write Cache is already set to {_SWITCH[on]}.")
    if on:
        call.confirm(*_DATA_LOSS)
    cache["no_battery"] = on


def _cache(call: Call) -> State:
    if now.in_hba_mode(call.controller, call.faults):
        raise AbortedError(_ALL_HBA)
    cache: State = call.controller["cache"]
    return cache


_FORMS: t.Mapping[str, t.Callable[[Call, list[str]], None]] = {
    "DEVICE": _device,
    "DEVICEALL": _device_all,
    "DRIVEWRITECACHEPOLICY": _drive_policies,
    "CACHERATIO": _ratio,
    "NOBATTERYWRITECACHE": _no_battery,
}
