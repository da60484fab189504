# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIGJSON of arcconf, read into the model; pure, and never raises.

The second line of the output is one JSON document. No capture of a real one was at hand: the keys are those inside an arcconf
build of 2023 and those that libstoragemgmt uses. What is doubtful stays unknown; above all ``writeCacheEnable`` of a drive, whose
own comment in that build turns its name around. The provider reads the text form, which has more.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    DEFAULT,
    DISABLED,
    ENABLED,
    NONE,
    PER_DRIVE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITETHROUGH,
    CacheModule,
    Controller,
    Drive,
    Policy,
    Reading,
    Volume,
    VolumeMaxCache,
)

_MODES = {0: "raid", 2: "hba", 3: "raid", 5: "mixed"}
#: ``configuredDrivesWCPolicySetting`` and its sisters: the numbers of the command DRIVEWRITECACHEPOLICY.
_CLASSES = {"configured": "configuredDrivesWCPolicySetting", "unconfigured": "unConfiguredDrivesWCPolicySetting", "hba": "hbaDrivesWCPolicySetting"}
_CLASS_POLICIES = {0: DEFAULT, 1: ENABLED, 2: DISABLED}
_GLOBAL = {0: DISABLED, 1: ENABLED, 2: PER_DRIVE}
_WRITE = {1: WRITETHROUGH, 2: WRITEBACK_ALWAYS, 3: WRITEBACK}
_READ = {1: NONE, 2: READ_AHEAD}
_MAXCACHE_WRITE = {1: "writeback", 2: "instant_writeback", 3: "writethrough", 4: "writeback_with_writethrough"}
_VOLUME_STATES = {1: "offline", 2: "optimal", 3: "degraded"}
_DRIVE_STATES = {0: "ready", 1: "online", 10: "raw"}
_INTERFACES = {1: "sata", 4: "sas"}
_USAGE = {0: "unconfigured", 1: "configured"}


def payload_of(text: str) -> str | None:
    """The JSON line of an output; ``None`` if this is the text form or not arcconf's."""
    lines = text.lstrip().splitlines()[:2]
    if len(lines) == 2 and lines[0].lower().startswith("controllers found") and lines[1].lstrip().startswith("{"):
        return lines[1]
    return None


def parse_payload(payload: str) -> Reading:
    """Read the document of one controller."""
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError) as error:
        return Reading(not_understood=(f"line 2: no JSON document ({error})"[:200],), complete=False)
    controller = data.get("Controller")
    if not isinstance(controller, dict):
        return Reading(not_understood=("line 2: a JSON document without a Controller",), complete=True)
    return Reading((_controller(_Object(controller)),))


class _Object:
    """A JSON object of which nothing is certain."""

    def __init__(self, data: t.Any) -> None:
        self.data: dict[str, t.Any] = data if isinstance(data, dict) else {}

    def text(self, *keys: str) -> str | None:
        for key in keys:
            value = self.data.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
                return str(value).strip()
        return None

    def number(self, key: str) -> int | None:
        value = self.data.get(key)
        if isinstance(value, str) and value.isdecimal() and len(value) < 20:
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def word(self, key: str, table: t.Mapping[int, str]) -> str:
        number = self.number(key)
        return UNKNOWN if number is None else table.get(number, UNKNOWN)

    def each(self, key: str) -> list[_Object]:
        value = self.data.get(key)
        return [_Object(one) for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _controller(data: _Object) -> Controller:
    driver = (data.text("driverName") or "").lower()
    smart = driver == "smartpqi" or any(data.number(key) is not None for key in _CLASSES.values())
    policies = {name: data.word(key, _CLASS_POLICIES) for name, key in _CLASSES.items() if data.number(key) is not None}
    if data.number("globalPhysicalDevicesWriteCachePolicy") in _GLOBAL:
        policies["all"] = data.word("globalPhysicalDevicesWriteCachePolicy", _GLOBAL)
    reason = data.text("cacheStateDisabledReasonString") or ""
    model = " ".join(piece for piece in (data.text("deviceVendor"), data.text("deviceName")) if piece)
    return Controller(
        "arcconf",
        id=data.text("controllerID") or UNKNOWN,
        model=model or None,
        serial=data.text("serialNumber"),
        firmware=data.text("firmwareVersion"),
        driver=driver or None,
        mode=data.word("functionalMode", _MODES),
        status="optimal" if data.number("controllerStatus") == 0 else UNKNOWN,
        cache=CacheModule(reason="" if reason.lower() == "not applicable" else reason),
        drive_cache=policies,
        cache_ratio=data.number("readCachePercentage"),
        volumes=tuple(_volume(one, smart) for one in data.each("LogicalDrive")),
        drives=tuple(drive for channel in data.each("Channel") for one in channel.each("HardDrive") for drive in [_drive(one)] if drive is not None),
        traits={"generation": "smart" if smart else "aacraid" if driver == "aacraid" else UNKNOWN},
    )


def _volume(data: _Object, smart: bool) -> Volume:
    blocks, block = data.number("dataSpace"), data.number("BlockSize")
    written = data.word("maxCacheWriteCachePolicySetting", _MAXCACHE_WRITE)
    return Volume(
        id=data.text("logicalDriveID") or UNKNOWN,
        name=data.text("name"),
        wwn=(data.text("volumeUniqueID") or "").lower() or None,
        raid_level=(data.text("raidLevel") or UNKNOWN).replace("1+0", "10"),
        status=data.word("state", _VOLUME_STATES),
        size=blocks * block if blocks is not None and block is not None else None,
        read=Policy(data.word("readCacheSetting", _READ)),
        # SmartRAID has one switch; whether it needs protection is reported elsewhere, in a number whose meaning is not certain.
        write=Policy(data.word("writeCacheSetting", {**_WRITE, 2: WRITEBACK} if smart else _WRITE)),
        maxcache=VolumeMaxCache(write_policy=written) if written != UNKNOWN else None,
    )


def _drive(data: _Object) -> Drive | None:
    channel, device = data.number("channelID"), data.number("deviceID")
    if channel is None or device is None:
        return None
    blocks, block = data.number("numOfUsableBlocks"), data.number("blockSize")
    solid = data.data.get("nonSpinning")
    return Drive(
        address=f"{channel},{device}",
        model=data.text("model"),
        serial=data.text("serialNumber"),
        firmware=data.text("firmwareLevel", "firmwareVersion"),
        size=blocks * block if blocks is not None and block is not None else None,
        media={True: "ssd", False: "hdd"}.get(solid, UNKNOWN) if isinstance(solid, bool) else UNKNOWN,
        interface=data.word("interfaceType", _INTERFACES),
        usage=data.word("state", _USAGE),
        state=data.word("state", _DRIVE_STATES),
    )
