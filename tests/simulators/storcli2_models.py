# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers of the simulators of storcli2 and perccli2: what each model is, as plain data.

The MegaRAID 9660-16i is told as its public captures tell it (``/c0 show all``), the Cisco card as its capture of
``/c0 show`` tells it. No output of a PERC 12 card is public: that one is the 9660 with what Dell publishes about the H965i,
the rest is assumed. Every serial number and address is invented.
"""

from __future__ import annotations

import typing as t

from .simulator import State

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

#: What the tool's version is with each card; the newer one adds columns (``SerialNumber``, ``Index``).
CLI_2023 = "008.0005.0000.0010 Feb 22, 2023"
CLI_2024 = "008.0011.0000.0014 Sep 26, 2024"

_COMMON: State = {
    "board_revision": "00004",
    "chip_revision": "B0",
    "firmware_security": "00.00.00.00",
    "driver_name": "mpi3mr",
    "personality": "RAID",
    "max_link_rate": "0x08 (16GT/s)",
    "sas": "SAS/SATA-6G, SAS-12G, SAS-22.5G",
    "pcie": "PCIE-2.5GT, PCIE-5GT, PCIE-8GT, PCIE-16GT",
    "pci_vendor": "0x1000",
    "pci_device": "0x00A5",
    "time": "2026/05/29 14:06:17",
    "manufactured": "2024/12/12",
    "chip_temperature": 62,
    "board_temperature": 46,
}


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


_HARD_DISK: State = {
    "size": 10000294477824,
    "interface": "SAS",
    "medium": "HDD",
    "vendor": "SEAGATE",
    "product": "ST10000NM018B",
    "firmware": "E001",
}
_SATA_SSD: State = {
    "size": 958999298048,
    "interface": "SATA",
    "medium": "SSD",
    "vendor": "ATA",
    "product": "SAMSUNG MZ7L3960HCJR-00AK1",
    "firmware": "JXTC304Q",
}
_NVME: State = {
    "size": 3840755982336,
    "interface": "NVMe",
    "medium": "SSD",
    "vendor": "NVMe",
    "product": "Dell NVMe PM9A3 RI U.2 3.84TB",
    "firmware": "1.2.3",
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
                "path": str(device.get("path") or f"/dev/sd{_letters(number + 1)}"),
                "created": "2026/05/06 09:43:32",
                "drives": [f"{drive['eid']}:{drive['slot']}" for drive in own],
            }
        )
    return made


def _letters(number: int) -> str:
    """The kernel's letters of the disk with this number: 0 is a, 26 is aa."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def _controller(
    card: State,
    shelves: t.Callable[[int, State], tuple[list[State], list[State]]],
    disk: State,
    volumes: int,
    drives: int | None,
    os_devices: t.Sequence[State] | None,
) -> State:
    devices = list(os_devices or [])
    volumes = max(volumes, len(devices))
    enclosures, members = shelves(max(volumes, drives if drives is not None else volumes), disk)
    return {
        **_COMMON,
        **card,
        "enclosures": enclosures,
        "drives": members,
        "volumes": _volumes(members, volumes, card["volume_kind"], devices),
    }


def megaraid_9660(volumes: int = 2, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """A Broadcom MegaRAID 9660-16i with hard disks in shelves of twelve and a supercapacitor."""
    card = {
        "model": "MegaRAID 9660-16i",
        "cli": CLI_2023,
        "library": "08.0507.0000",
        "product": "MegaRAID 9660-16i Tri-Mode Storage Adapter",
        "board": "MR 9660-16i",
        "assembly": "03-50107-00004",
        "chip": "SAS4116",
        "oem": "Broadcom",
        "serial": "SIMULATED9660",
        "sas_address": "0x5000000053490000",
        "package": "8.12.1.0-00000-00003",
        "firmware": "8.12.1.0-00000-00003",
        "nvdata": "0C.0B.00.58",
        "driver": "8.5.0.0.50",
        "port_width": 8,
        "pci_address": "00:16:00:0",
        "pci_subvendor": "0x1000",
        "pci_subdevice": "0x4620",
        "security_protocol": "SPDM-1.2.0,1.1.0,1.0.0",
        "pci_slot": 19,
        "memory": 4096,
        "cache": 3877,
        "energy_pack": {"type": "Supercap", "subtype": "FBU345", "voltage": 9184, "temperature": 38},
        "volume_kind": {"drive_cache": "Disabled", "strip": "256 KiB", "emulated": True},
    }
    return _controller(card, _shelves, _HARD_DISK, volumes, drives, os_devices)


def cisco_trimode(volumes: int = 1, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """A Cisco Tri-Mode 24G SAS RAID controller with 4 GB of cache and SATA SSDs, driven by a newer tool."""
    card = {
        "model": "Cisco Tri-Mode 24G",
        "cli": CLI_2024,
        "library": "08.1113.0000",
        "product": "Cisco Tri-Mode 24G SAS RAID Controller w/4GB Cache",
        "board": "UCSC-RAID-HP",
        "assembly": "03-50146-00006",
        "board_revision": "00006",
        "chip": "SAS4116W",
        "oem": "Cisco",
        "serial": "SIMULATED0024",
        "sas_address": "0x5000000053490001",
        "package": "8.6.2.0-00065-00001",
        "firmware": "8.6.2.0-00000-00001",
        "nvdata": "06.0B.00.0D",
        "driver": "8.9.1.0.51",
        "port_width": 16,
        "pci_address": "00:01:00:0",
        "pci_subvendor": "0x1137",
        "pci_subdevice": "0x2EB",
        "security_protocol": "SPDM-1.1.0,1.0.0",
        "pci_slot": 11,
        "memory": 4096,
        "cache": 3877,
        "energy_pack": {"type": "Supercap", "subtype": "FBU345", "voltage": 8937, "temperature": 23},
        "volume_kind": {"drive_cache": "Default", "strip": "64 KiB", "emulated": False},
    }
    return _controller(card, _virtual_shelf, _SATA_SSD, volumes, drives, os_devices)


def perc_h965i(volumes: int = 2, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """A Dell PERC H965i (PERC 12). Assumed from the 9660 and Dell's data: no output of perccli2 was published."""
    card = {
        "model": "PERC H965i",
        "cli": CLI_2024,
        "library": "08.1113.0000",
        "product": "PERC H965i Front",
        "board": "PERC H965i Front",
        "assembly": "00-00000-00000",
        "chip": "SAS4116",
        "oem": "DELL",
        "serial": "SIMULATED0965",
        "sas_address": "0x5000000053490002",
        "package": "8.4.0.0-18-29",
        "firmware": "8.4.0.0-00000-00005",
        "nvdata": "04.0E.00.29",
        "driver": "8.9.1.0.51",
        "port_width": 16,
        "pci_address": "00:52:00:0",
        "pci_subvendor": "0x1028",
        "pci_subdevice": "0x2114",
        "security_protocol": "SPDM-1.1.0,1.0.0",
        "pci_slot": 2,
        "memory": 8192,
        "cache": 7973,
        "energy_pack": {"type": "BBU", "subtype": "BBU", "voltage": 8937, "temperature": 30},
        "volume_kind": {"drive_cache": "Disabled", "strip": "64 KiB", "emulated": False},
    }
    return _controller(card, _virtual_shelf, _NVME, volumes, drives, os_devices)


MODELS: dict[str, t.Callable[..., State]] = {
    "MegaRAID 9660-16i": megaraid_9660,
    "Cisco Tri-Mode 24G": cisco_trimode,
    "PERC H965i": perc_h965i,
}
