# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIGJSON of SmartRAID builds: the templates ``json: …`` of ``templates/arcconf.txt``, which says what of them is known."""

from __future__ import annotations

import json
import typing as t

from . import arcconf_state as now
from .simulator import State, letters
from .templates import filled

_MODE_NUMBERS = {words: number for number, words in now.MODES.items()}
_GLOBAL_POLICIES = {"disable": 0, "enable": 1, "drivespecific": 2}
_BACKUP = {"good": "Ok", "failed": "Failed", "learning": "Recharging", "charging": "Not Fully Charged", "missing": "Not Applicable"}
_MAXCACHE_POLICIES = {"WB": 1, "INSTWB": 2, "WT": 3, "WBWITHWT": 4}
_OF_CACHE = ("status", "state", "reason", "memory", "read", "write", "no_battery", "wait_for_room", "units", "health", "Configured", "Unconfigured", "HBA")


def document(controller: State, number: int, faults: now.Faults) -> str:
    """The second line of the output."""
    return json.dumps({"Controller": _controller(controller, number, faults)})


def _filled(name: str, *values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return filled("arcconf", f"json: {name}", {key: value for mapping in values for key, value in mapping.items()})


def _controller(controller: State, number: int, faults: now.Faults) -> dict[str, t.Any]:
    volumes = now.volumes(controller, faults)
    vendor, _blank, name = controller["model"].partition(" ")
    made = {
        **controller,
        **dict.fromkeys(_OF_CACHE),
        **(controller["drive_policy"] or {}),
        "number": number,
        "vendor": vendor,
        "name": name,
        "functional": _MODE_NUMBERS.get(now.mode(controller, faults) or "", 0),
        "policy": _GLOBAL_POLICIES.get(controller.get("global_drive_cache") or "", 3),
        "sensors": [_filled("sensor", {})],
        "arrays": [_array(controller, array, volumes) for array in sorted({volume["array"] for volume in volumes})],
        "volumes": [_volume(controller, volume) for volume in volumes],
        "channels": [{"channelID": 0, "HardDrive": [_drive(controller, drive, faults) for drive in controller["drives"]]}],
    }
    cache = controller["cache"]
    if cache:
        status, state, details = now.cache_module(controller, faults)
        made.update(
            cache,
            status=status,
            state=state or "Not Applicable",
            reason=details.partition("Reason: ")[2].rstrip(")") if details else "Not Applicable",
            no_battery=int(cache["no_battery"]),
            wait_for_room=int(cache["wait_for_room"]),
            units=int(bool(controller["protection"])),
            health=_BACKUP[now.unit_health(controller, faults)],
        )
    return _filled("controller", made)


def _array(controller: State, number: int, volumes: t.Sequence[State]) -> dict[str, t.Any]:
    drives = now.members(controller, next(volume for volume in volumes if volume["array"] == number))
    size, block = sum(drive["size"] for drive in drives), drives[0]["block"]
    return _filled("array", {"number": number, "name": letters(number % 26).upper(), "block": block, "total": size * (1 << 20) // block})


def _volume(controller: State, volume: State) -> dict[str, t.Any]:
    cached_by_ssds = now.container_of(controller, volume) is not None
    own = {
        "caching": 2 if volume["caching"] else 1,
        "level": int(volume["raid"]) if volume["raid"].isdigit() else 0,
        "blocks": volume["size"] * 2048,
        "policy": _MAXCACHE_POLICIES[volume["maxcache"]["policy"]] if cached_by_ssds else 0,
        "method": "maxCache" if cached_by_ssds else "Controller Cache" if volume["caching"] else "None",
    }
    drives = now.members(controller, volume)
    own["chunks"] = [{"consumerArrayID": volume["array"], "channelID": drive["channel"], "deviceID": drive["device"]} for drive in drives]
    return _filled("volume", volume, own)


def _drive(controller: State, drive: State, faults: now.Faults) -> dict[str, t.Any]:
    online = now.drive_state(controller, drive, faults) == "Online"
    own = {
        "online": int(online),
        "blocks": drive["size"] * (1 << 20) // drive["block"],
        "path": "Not Applicable" if online or not drive["os_path"] else drive["os_path"],
        "rotation": 0 if drive["ssd"] else 7200,
        "ssd": bool(drive["ssd"]),
        "cache": None if faults.get("drive_write_cache_unknown") else int(now.drive_cache(controller, drive, faults) != now.WRITE_BACK),
    }
    return _filled("drive", drive, own)
