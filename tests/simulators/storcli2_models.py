# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers of the simulators of storcli2 and perccli2: each model is a card of ``templates/storcli2.txt`` with drives and volumes."""

from __future__ import annotations

import typing as t

from .simulator import State, letters
from .templates import filled

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

#: Version of the tool; the newer one adds columns (``SerialNumber``, ``Index``).
CLI_2023 = "008.0005.0000.0010 Feb 22, 2023"
CLI_2024 = "008.0011.0000.0014 Sep 26, 2024"

_Shelves = t.Callable[[int, State], "tuple[list[State], list[State]]"]


def size_text(size: int) -> str:
    """A size as the tool prints it: whole units of the next smaller kind, divided by 1024, cut (not rounded) after three digits."""
    power = 0
    while power < len(_UNITS) - 1 and size >= 1024 ** (power + 1):
        power += 1
    if power == 0:
        return f"{size} B"
    thousandths = (size // 1024 ** (power - 1)) * 1000 // 1024
    return f"{thousandths // 1000}.{thousandths % 1000:03d} {_UNITS[power]}"


def _drive(number: int, enclosure: State, slot: int, pid: int, kind: State) -> State:
    return {
        "eid": enclosure["eid"],
        "slot": slot,
        "pid": pid,
        "state": "UConf",
        "status": "Good",
        "group": None,
        "size": kind["size"],
        "interface": kind["interface"],
        "medium": kind["medium"],
        "vendor": kind["vendor"],
        "product": kind["product"],
        "firmware": kind["firmware"],
        "serial": f"SIMULATED{number:04d}",
        "wwn": f"500000005349{number:04X}",
        "temperature": 40,
        "default_write_cache": "On",
        "write_cache": "Off",
        "write_cache_changeable": "Yes",
    }


def _shelves(drives: int, kind: State) -> tuple[list[State], list[State]]:
    """Enclosures of twelve with their drives, numbered as the 9660 numbers them (drives first, then the enclosure)."""
    enclosures: list[State] = []
    members: list[State] = []
    for first in range(0, max(drives, 1), 12):
        start = 293 + 14 * len(enclosures)
        enclosure = {"eid": start + 13, "type": "Enclosure", "slots": 12, "product": "380-23710-3001", "supplies": 1, "sensors": 3, "alarms": 1}
        enclosures.append(enclosure)
        members += [_drive(number + 1, enclosure, number - first, start + number - first, kind) for number in range(first, min(first + 12, drives))]
    return enclosures, members


def _virtual_shelf(drives: int, kind: State) -> tuple[list[State], list[State]]:
    """The one logical enclosure of a card without expander."""
    enclosure = {
        "eid": 322,
        "type": "Logical Enclosure",
        "slots": max(10, drives + 2),
        "product": "VirtualSES",
        "supplies": 0,
        "sensors": 0,
        "alarms": 0,
    }
    return [enclosure], [_drive(number + 1, enclosure, number + 2, 312 + number, kind) for number in range(drives)]


def _volumes(members: list[State], volumes: int, kind: State, os_devices: t.Sequence[State]) -> list[State]:
    """As many volumes as asked for, from equal shares of the drives: one drive is a RAID0, two a RAID1, more a RAID5."""
    made = []
    share = len(members) // volumes if volumes else 0
    for number in range(volumes):
        own = members[number * share : (number + 1) * share]
        device = os_devices[number] if number < len(os_devices) else {}
        level = {1: "RAID0", 2: "RAID1"}.get(share, "RAID5")
        data = {"RAID0": share, "RAID1": 1, "RAID5": share - 1}[level]
        for drive in own:
            drive.update(state="Conf", status="Online", group=number)
        made.append(
            {
                "id": number + 1,
                "group": number,
                "level": level,
                "state": "Optl",
                "read": "NoRA",
                "write": "WB",
                "drive_cache": kind["drive_cache"],
                "size": int(device.get("size", own[0]["size"] * data)),
                "name": "",
                "strip": kind["strip"],
                "emulated": kind["emulated"],
                "wwn": str(device.get("wwn") or f"6000000053494d00000000000000{number + 1:04x}"),
                "path": str(device.get("path") or f"/dev/sd{letters(number + 1)}"),
                "created": "2026/05/06 09:43:32",
                "drives": [f"{drive['eid']}:{drive['slot']}" for drive in own],
            }
        )
    return made


def _controller(
    model: str, shelves: _Shelves, disk: str, drive_cache: str, strip: str, volumes: int, drives: int | None = None, os_devices: t.Sequence[State] | None = None
) -> State:
    devices = list(os_devices or [])
    volumes = max(volumes, len(devices))
    enclosures, members = shelves(max(volumes, drives if drives is not None else volumes), filled("storcli2", f"drive {disk}", {}))
    card = {
        **filled("storcli2", "card", {}),
        **filled("storcli2", f"card {model}", {}),
        "energy_pack": filled("storcli2", f"pack {model}", {}),
        "volume_kind": {"drive_cache": drive_cache, "strip": strip, "emulated": shelves is _shelves},
    }
    return {**card, "enclosures": enclosures, "drives": members, "volumes": _volumes(members, volumes, card["volume_kind"], devices)}


def megaraid_9660(volumes: int = 2, **options: t.Any) -> State:
    """A Broadcom MegaRAID 9660-16i with hard disks in shelves of twelve and a supercapacitor."""
    return _controller("MegaRAID 9660-16i", _shelves, "hard disk", "Disabled", "256 KiB", volumes, **options)


def cisco_trimode(volumes: int = 1, **options: t.Any) -> State:
    """A Cisco Tri-Mode 24G SAS RAID controller with 4 GB of cache and SATA SSDs, driven by a newer tool."""
    return _controller("Cisco Tri-Mode 24G", _virtual_shelf, "SATA SSD", "Default", "64 KiB", volumes, **options)


def perc_h965i(volumes: int = 2, **options: t.Any) -> State:
    """A Dell PERC H965i (PERC 12). Assumed from the 9660 and Dell's data: no output of perccli2 was published."""
    return _controller("PERC H965i", _virtual_shelf, "NVMe SSD", "Disabled", "64 KiB", volumes, **options)


MODELS: dict[str, t.Callable[..., State]] = {
    "MegaRAID 9660-16i": megaraid_9660,
    "Cisco Tri-Mode 24G": cisco_trimode,
    "PERC H965i": perc_h965i,
}
