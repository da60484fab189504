# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIGJSON of SmartRAID builds. No capture exists.

Known, from the command reference and from two programs that read it: one JSON document on the second line; ``Controller`` with
``Array``, ``LogicalDrive`` (``Chunk``), ``Channel`` (``HardDrive``) inside; the names of the keys about caches and the numbers
they take; ``writeCacheEnable`` 0 for write-back and 1 for write-through. Guessed: every other key and the order.
"""

from __future__ import annotations

import json
import typing as t

from . import arcconf_state as now
from .simulator import State

_MODE_NUMBERS = {words: number for number, words in now.MODES.items()}
_GLOBAL_POLICIES = {"disable": 0, "enable": 1, "drivespecific": 2}
_BACKUP = {"good": "Ok", "failed": "Failed", "learning": "Recharging", "charging": "Not Fully Charged", "missing": "Not Applicable"}
_MAXCACHE_POLICIES = {"WB": 1, "INSTWB": 2, "WT": 3, "WBWITHWT": 4}


def document(controller: State, number: int, faults: now.Faults) -> str:
    """The second line of the output."""
    return json.dumps({"Controller": _controller(controller, number, faults)})


def _controller(controller: State, number: int, faults: now.Faults) -> dict[str, t.Any]:
    volumes = now.volumes(controller, faults)
    found: dict[str, t.Any] = {
        "controllerID": number,
        "deviceVendor": controller["model"].split(" ")[0],
        "deviceName": controller["model"].partition(" ")[2],
        "controllerStatus": 0,
        "controllerState": 0,
        "serialNumber": controller["serial"],
        "wwn": controller["wwn"],
        "physicalSlot": controller["slot"],
        "firmwareVersion": controller["firmware"],
        "driverVersion": controller["driver"],
        "functionalMode": _MODE_NUMBERS.get(now.mode(controller, faults) or "", 0),
    }
    cache = controller["cache"]
    if cache:
        status, state, details = now.cache_module(controller, faults)
        found.update(
            {
                "cacheStatus": status,
                "cacheState": state or "Not Applicable",
                "cacheStateDisabledReasonString": details.partition("Reason: ")[2].rstrip(")") if details else "Not Applicable",
                "cacheMemory": cache["memory"],
                "readCachePercentage": cache["read"],
                "writeCachePercentage": cache["write"],
                "noBatteryWriteCache": int(cache["no_battery"]),
                "waitForCacheRoom": int(cache["wait_for_room"]),
                "batteryOrCapacitorCount": int(bool(controller["protection"])),
                "batteryOrCapacitorStatus": _BACKUP[now.unit_health(controller, faults)],
            }
        )
    policy = controller["drive_policy"]
    if policy:
        found.update(
            {
                "configuredDrivesWCPolicySetting": policy["Configured"],
                "unConfiguredDrivesWCPolicySetting": policy["Unconfigured"],
                "hbaDrivesWCPolicySetting": policy["HBA"],
            }
        )
    found["globalPhysicalDevicesWriteCachePolicy"] = _GLOBAL_POLICIES.get(controller.get("global_drive_cache") or "", 3)
    found["TemperatureSensor"] = [{"temperatureSensorID": 0, "temperatureSensorLocation": 0, "currentValue": 29, "maxValueSincePoweredOn": 30}]
    found["Array"] = [_array(controller, number_of_array, volumes) for number_of_array in sorted({volume["array"] for volume in volumes})]
    found["LogicalDrive"] = [_volume(controller, volume, faults) for volume in volumes]
    found["Channel"] = [{"channelID": 0, "HardDrive": [_drive(controller, drive, faults) for drive in controller["drives"]]}]
    return found


def _array(controller: State, number: int, volumes: t.Sequence[State]) -> dict[str, t.Any]:
    drives = now.members(controller, next(volume for volume in volumes if volume["array"] == number))
    return {
        "arrayID": number,
        "arrayName": chr(65 + number % 26),
        "blockSize": drives[0]["block"],
        "totalSize": sum(drive["size"] for drive in drives) * (1 << 20) // drives[0]["block"],
        "unUsedSpace": 0,
    }


def _volume(controller: State, volume: State, faults: now.Faults) -> dict[str, t.Any]:
    caching = 2 if volume["caching"] else 1
    cached_by_ssds = now.container_of(controller, volume) is not None
    return {
        "logicalDriveID": volume["id"],
        "name": volume["name"],
        "raidLevel": int(volume["raid"]) if volume["raid"].isdigit() else 0,
        "state": 2,
        "status": 2,
        "volumeUniqueID": volume["wwn"],
        "volumeName": volume["disk_name"],
        "BlockSize": 512,
        "size": volume["size"],
        "dataSpace": volume["size"] * 2048,
        "StripeSize": 256,
        "fullStripeSize": 256,
        "readCacheSetting": caching,
        "writeCacheSetting": caching,
        "maxCacheWriteCachePolicySetting": _MAXCACHE_POLICIES[volume["maxcache"]["policy"]] if cached_by_ssds else 0,
        "logicalDeviceAccelerationMethod": "maxCache" if cached_by_ssds else "Controller Cache" if volume["caching"] else "None",
        "Chunk": [
            {"consumerArrayID": volume["array"], "channelID": drive["channel"], "deviceID": drive["device"]} for drive in now.members(controller, volume)
        ],
    }


def _drive(controller: State, drive: State, faults: now.Faults) -> dict[str, t.Any]:
    state = now.drive_state(controller, drive, faults)
    exposed = state != "Online"
    found: dict[str, t.Any] = {
        "channelID": drive["channel"],
        "deviceID": drive["device"],
        "id": drive["index"],
        "fsaSlotNum": drive["slot"],
        "slotID": drive["slot"],
        "enclosureID": 0,
        "vendor": drive["vendor"],
        "model": drive["model"],
        "firmwareLevel": drive["firmware"],
        "serialNumber": drive["serial"],
        "wwn": drive["wwn"],
        "state": 1 if state == "Online" else 0,
        "blockSize": drive["block"],
        "physicalBlockSize": 4096,
        "numOfUsableBlocks": drive["size"] * (1 << 20) // drive["block"],
        "physicalDriveName": drive["os_path"] if exposed and drive["os_path"] else "Not Applicable",
        "rotationalSpeed": 0 if drive["ssd"] else 7200,
        "nonSpinning": bool(drive["ssd"]),
    }
    if not faults.get("drive_write_cache_unknown"):
        found["writeCacheEnable"] = 0 if now.drive_cache(controller, drive, faults) == now.WRITE_BACK else 1
    return found
