# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers of the simulator of ssacli: what each model is, as plain data.

Without options a model has the volumes and drives of the public capture it was taken from. The H240 in its two modes and
version 4 of the tool are known from outputs in public code, the E208i is assumed. Every serial number and address is invented.
"""

from __future__ import annotations

import typing as t

from .simulator import State
from .ssacli_drives import SAS_HDD_146, SAS_HDD_6000, SAS_SSD_800, SATA_100, SATA_250, SATA_HDD_1000, SATA_SSD_1900, SSD_960

#: Lines that are the same on every card.
_EVERYWHERE = {
    "Bus Interface": "PCI",
    "Controller Status": "OK",
    "Expand Priority": "Medium",
    "Surface Scan Mode": "Idle",
    "Elevator Sort": "Enabled",
    "Wait for Cache Room": "Disabled",
    "Surface Analysis Inconsistency Notification": "Disabled",
    "SATA NCQ Supported": "True",
    "Port Max Phy Rate Limiting Supported": "False",
    "Primary Boot Volume": "None",
    "Secondary Boot Volume": "None",
}
_HPSA = {
    **_EVERYWHERE,
    "Rebuild Priority": "Medium",
    "Surface Scan Delay": "15 secs",
    "Parallel Surface Scan Supported": "No",
    "Queue Depth": "Automatic",
    "Monitor and Performance Delay": "60  min",
    "Degraded Performance Optimization": "Disabled",
    "Post Prompt Timeout": "0 secs",
    "Number of Ports": "2 Internal only",
    "Driver Name": "hpsa",
    "Driver Supports SSD Smart Path": "True",
    "Sanitize Erase Supported": "False",
}
_PARALLEL_SCAN = {"Parallel Surface Scan Supported": "Yes", "Max Parallel Surface Scan Count": "16"}
_NO_SPDM = {
    "SPDM Supports Get Slot Certificate Chain": "no",
    "SPDM Supports Get Controller Info       ": "no",
    "SPDM Supports Get Slot Info             ": "no",
    "SPDM Supports Set Import Certificate    ": "no",
    "SPDM Supports Set Invalidate Slot       ": "no",
}
_GEN10 = {
    **_EVERYWHERE,
    **_PARALLEL_SCAN,
    **_NO_SPDM,
    "RAID 6 Status": "Enabled",
    "Firmware Supports Online Firmware Activation": "False",
    "Rebuild Priority": "Medium",
    "Surface Scan Delay": "3 secs",
    "Current Parallel Surface Scan Count": "1",
    "Queue Depth": "Automatic",
    "Monitor and Performance Delay": "60  min",
    "Degraded Performance Optimization": "Disabled",
    "Inconsistency Repair Policy": "Disabled",
    "Write Cache Bypass Threshold Size": "1040 KiB",
    "Post Prompt Timeout": "15 secs",
    "Spare Activation Mode": "Activate on physical drive failure (default)",
    "Encryption": "Not Set",
    "Express Local Encryption": "False",
    "Driver Name": "smartpqi",
    "PCI Address (Domain:Bus:Device.Function)": "0000:5C:00.0",
    "Negotiated PCIe Data Rate": "PCIe 3.0 x8 (7880 MB/s)",
    "Controller Mode": "Mixed",
    "Latency Scheduler Setting": "Disabled",
    "Current Power Mode": "MaxPerformance",
    "Survival Mode": "Enabled",
    "Sanitize Erase Supported": "True",
    "Sanitize Lock": "None",
    "Persistent Event Log Policy Change Supported": "False",
}
_P440AR = {
    **_HPSA,
    **_PARALLEL_SCAN,
    "RAID 6 (ADG) Status": "Enabled",
    "Hardware Revision": "B",
    "Firmware Version": "3.56-0",
    "Rebuild Priority": "Low",
    "Current Parallel Surface Scan Count": "4",
    "Inconsistency Repair Policy": "Disabled",
    "Spare Activation Mode": "Activate on physical drive failure (default)",
    "Controller Temperature (C)": "47",
    "Cache Module Temperature (C)": "41",
    "Encryption": "Disabled",
    "Express Local Encryption": "False",
    "Driver Version": "3.4.4",
    "PCI Address (Domain:Bus:Device.Function)": "0000:03:00.0",
    "Negotiated PCIe Data Rate": "PCIe 3.0 x8 (7880 MB/s)",
    "Controller Mode": "RAID",
    "Pending Controller Mode": "RAID",
    "Latency Scheduler Setting": "Disabled",
    "Current Power Mode": "MaxPerformance",
    "Survival Mode": "Enabled",
}

#: How the tool of the capture prints: digits behind the point, which lines there are, what comes first, blanks.
_STYLE_OLD = {"decimals": 1, "unused": "0  MB (0.0%)", "gap": 0, "ports_first": True, "cage_power": True, "strip": 256, "os_status": True}
_STYLE_MIDDLE = {**_STYLE_OLD, "decimals": 2, "unused": "0 MB (0.00%)", "gap": 1, "ports_first": False, "media_errors": True}
_STYLE_GEN10 = {
    "decimals": 2,
    "unused": "0 MB (0.00%)",
    "gap": 2,
    "ports_first": False,
    "cage_power": False,
    "strip": 256,
    "media_errors": True,
    "multidomain": True,
    "partitions": True,
    "smart_path": True,
    "smart_path_text": "Smart Path",
    "port_mode": True,
    "per_class": True,
}


def _drive(place: str, kind: State, number: int) -> State:
    port, box, bay = place.split(":")
    unique = f"50000000534900{number:02X}"
    return {
        "port": port,
        "box": int(box),
        "bay": int(bay),
        "status": "OK",
        "media": kind["media"],
        "interface": kind["interface"],
        "size_text": kind["text"],
        "usable": kind["usable"],
        "lines": {
            **{label: text.replace("{unique}", unique) for label, text in kind["lines"].items()},
            "Serial Number": f"SIMULATED{number:04d}",
            "WWID": unique,
        },
    }


def _data_drives(level: str, drives: int) -> int:
    return {"0": drives, "1": drives // 2, "1+0": drives // 2, "5": drives - 1, "6": drives - 2}[level]


def _letter(number: int) -> str:
    """The name of the array with this number: A … Z, then AA."""
    return chr(ord("A") + number) if number < 26 else chr(ord("A") + number // 26 - 1) + chr(ord("A") + number % 26)


def device_name(number: int) -> str:
    """The kernel's name of the disk with this number."""
    return f"/dev/sd{_letter(number).lower()}"


#: An array of a model as captured: the RAID level, the kind of its drives, the bays they are in.
_Plan = t.Tuple[str, State, t.Tuple[str, ...]]


def _controller(
    card: State, plan: t.Sequence[_Plan], spare: tuple[State, tuple[str, ...]] | None, volumes: int | None, drives: int | None, os_devices: t.Any
) -> State:
    devices = list(os_devices or [])
    if volumes is not None or drives is not None or devices:
        plan, spare = _even_plan(card, plan, max(volumes or 0, len(devices)), drives)
    made: State = {**card, "arrays": [], "volumes": [], "drives": []}
    first_device = int(card.get("first_device", 0))
    for number, (level, kind, places) in enumerate(plan):
        made["drives"] += [_drive(place, kind, len(made["drives"]) + index + 1) for index, place in enumerate(places)]
        device = devices[number] if number < len(devices) else {}
        unused = int(card.get("unused", {}).get(str(number), 0))
        usable = kind["usable"] - unused // len(places)
        made["arrays"].append({"letter": _letter(number), "drives": list(places), "used": usable * len(places), "unused": unused, "smart_path": False})
        made["volumes"].append(
            {
                "id": number + 1,
                "array": _letter(number),
                "level": level,
                "size": int(device.get("size") or usable * _data_drives(level, len(places))),
                "caching": True,
                "wwn": str(device.get("wwn") or f"60000000534D4F4B4500000000{number + 1:06X}").upper(),
                "path": str(device.get("path") or device_name(first_device + number)),
                "mounts": "None",
                "label": f"SIMULATED VOLUME {number + 1}",
            }
        )
    if spare:
        # Drives that the host sees were found before the volumes where there is room for their names, else behind them.
        first = 0 if first_device >= len(spare[1]) else first_device + len(plan)
        for index, place in enumerate(spare[1]):
            made["drives"].append({**_drive(place, spare[0], len(made["drives"]) + 1), "path": device_name(first + index)})
    return made


def _even_plan(card: State, plan: t.Sequence[_Plan], volumes: int, drives: int | None) -> tuple[list[_Plan], tuple[State, tuple[str, ...]] | None]:
    """Equal shares of as many drives as asked for: RAID 0 of one, 1 of two, 5 of three, 6 of more; the rest is unassigned."""
    kind = plan[0][1] if plan else card["kind"]
    drives = max(volumes, drives if drives is not None else volumes)
    bays = [f"{cage['port']}:{cage['box']}:{bay}" for cage in card["cages"] for bay in range(cage["first"], cage["first"] + cage["bays"])]
    # More drives than bays: as if the last cage were longer.
    last = card["cages"][-1]
    beyond = last["first"] + last["bays"]
    bays += [f"{last['port']}:{last['box']}:{beyond + number}" for number in range(drives - len(bays))]
    share = drives // volumes if volumes else 0
    level = {1: "0", 2: "1", 3: "5"}.get(share, "6")
    made: list[_Plan] = [(level, kind, tuple(bays[number * share : (number + 1) * share])) for number in range(volumes)]
    rest = tuple(bays[volumes * share : drives])
    return made, (kind, rest) if rest else None


def _cages(*cages: tuple[str, int, int, int]) -> list[State]:
    """Cages: port, box, bays, number of the first bay."""
    return [{"port": port, "box": box, "bays": bays, "first": first} for port, box, bays, first in cages]


def p408i(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None, no_battery_write_cache: bool = False) -> State:
    """An HPE Smart Array P408i-a SR Gen10 with four SATA SSDs in a RAID 6."""
    card = {
        "model": "HPE Smart Array P408i-a SR Gen10",
        "product": "HPE Smart Array P408i-a SR Gen10",
        "slot": 0,
        "embedded": True,
        "style": {**_STYLE_GEN10, "surface_scan": "True"},
        "lines": {
            **_GEN10,
            "Serial Number": "SIMULATED0408",
            "Hardware Revision": "B",
            "Firmware Version": "6.52",
            "Controller Temperature (C)": "52",
            "Number of Ports": "2 Internal only",
            "SED Encryption": "Off",
            "Driver Version": "Linux 2.1.18-045",
            "WWN Port": "5000000053490000",
            "Host Serial Number": "SIMULATEDHOST",
            "Surface Scan Completion Supported": "True",
        },
        "sensors": [["Inlet Ambient", 45, 45], ["ASIC", 52, 53], ["Top", 48, 48]],
        "cache": {"size": "2.0", "available": "1.8", "backed": "1.8", "read": 20, "ssd_caching": True},
        "no_battery_write_cache": no_battery_write_cache,
        "drive_write_cache": {"configured": "Default", "unconfigured": "Default"},
        "power": "Batteries",
        "ports": [["1I", "5000000053490000", 4], ["2I", "5000000053490004", 4]],
        "cages": _cages(("1I", 0, 4, 1), ("2I", 1, 4, 1)),
        "sep": ["HPE", "Smart Adapter", "Smart Adapter", 379, "6.52"],
    }
    return _controller(card, [("6", SSD_960, ("2I:1:1", "2I:1:2", "2I:1:3", "2I:1:4"))], None, volumes, drives, os_devices)


def p816i(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None, no_battery_write_cache: bool = False) -> State:
    """An HPE Smart Array P816i-a SR Gen10: a mirror of two SAS SSDs with Smart Path, ten hard disks alone, two unassigned."""
    lines = {
        **_GEN10,
        "Serial Number": "SIMULATED0816",
        "Hardware Revision": "A",
        "Firmware Version": "5.00",
        "Rebuild Priority": "High",
        "Monitor and Performance Delay": "60 min",
        "Spare Spindown Policy Supported": "False",
        "Controller Temperature (C)": "60",
        "Capacitor Temperature  (C)": "48",
        "Number of Ports": "4 Internal only",
        "SED Based Encryption Supported": "False",
        "Driver Version": "Linux 2.1.24-046",
        "WWN Port": "5000000053490010",
        "Host Serial Number": "SIMULATEDHOST",
        "Surface Scan Completion Supported": "False",
        "UEFI Health Reporting Mode Supported": "False",
        "Firmware Supports NVMe Log Pages": "False",
        "Firmware Supports NAND Field": "False",
        "Firmware Supports NOR Field": "False",
    }
    card = {
        "model": "HPE Smart Array P816i-a SR Gen10",
        "product": "HPE Smart Array P816i-a SR Gen10",
        "slot": 0,
        "embedded": True,
        "style": {**_STYLE_GEN10, "surface_scan": "False", "device_blank": True},
        "lines": lines,
        "sensors": [["Capacitor", 48, 52], ["ASIC", 60, 66], ["Unknown", 46, 51]],
        "cache": {"size": "4.0", "available": "3.8", "backed": "3.8", "read": 10, "ssd_caching": True},
        "no_battery_write_cache": no_battery_write_cache,
        "drive_write_cache": {"configured": "Disable", "unconfigured": "Default"},
        "power": "Batteries",
        "ports": [[f"{number}I", f"50000000534900{16 + 4 * number:02X}", 4] for number in (1, 2, 3, 4)],
        "cages": _cages(("1I", 1, 4, 1), ("2I", 2, 4, 1), ("3I", 3, 4, 1), ("4I", 6, 4, 1)),
        "sep": ["HPE", "Smart Adapter", "Smart Adapter", 379, "5.00"],
        "first_device": 2,
    }
    bays = ("1I:1:3", "1I:1:4", "2I:2:1", "2I:2:2", "2I:2:3", "2I:2:4", "3I:3:1", "3I:3:2", "3I:3:3", "3I:3:4")
    plan: list[_Plan] = [("1", SAS_SSD_800, ("4I:6:1", "4I:6:2")), *(("0", SAS_HDD_6000, (bay,)) for bay in bays)]
    made = _controller(card, plan, (SAS_HDD_6000, ("1I:1:1", "1I:1:2")), volumes, drives, os_devices)
    if len(made["volumes"]) == len(plan) and made["arrays"][0]["drives"] == ["4I:6:1", "4I:6:2"]:
        made["arrays"][0]["smart_path"] = True
        made["volumes"][0]["caching"] = False
    return made


def p410i(
    volumes: int | None = None,
    drives: int | None = None,
    os_devices: t.Sequence[State] | None = None,
    battery: bool = False,
    no_battery_write_cache: bool = False,
) -> State:
    """An old Smart Array P410i with SAS hard disks; as captured it has no battery, and so no write cache."""
    card = {
        "model": "Smart Array P410i",
        "product": "Smart Array P410i",
        "slot": 0,
        "embedded": True,
        "style": {**_STYLE_MIDDLE, "smart_path": True, "smart_path_text": "HP SSD Smart Path"},
        "lines": {
            **_HPSA,
            "Serial Number": "SIMULATED0410",
            "Cache Serial Number": "SIMULATEDCACHE0410",
            "Hardware Revision": "C",
            "Firmware Version": "6.40-0",
            "Encryption": "Not Set",
            "Driver Version": "3.4.20",
            "PCI Address (Domain:Bus:Device.Function)": "0000:04:00.0",
            "Host Serial Number": "SIMULATEDHOST",
        },
        "cache": {"size": "0.2", "available": "0.1", "read": 25 if battery else 100},
        "no_battery_write_cache": no_battery_write_cache,
        "drive_write_cache": {"all": "Disabled"},
        "power": "Batteries" if battery else None,
        "ports": [["1I", "5000000053490030"], ["2I", "5000000053490034"]],
        "cages": _cages(("1I", 1, 4, 1), ("2I", 1, 4, 5)),
        "sep": ["PMCSIERA", " SRC 8x6G", "SRC 8x6G", 250, "RevC"],
        "unused": {"0": 6 * 2**20},
    }
    plan: list[_Plan] = [
        ("1", SAS_HDD_146, ("2I:1:5", "2I:1:6")),
        ("1+0", SAS_HDD_146, ("1I:1:1", "1I:1:2", "1I:1:3", "1I:1:4")),
    ]
    return _controller(card, plan, None, volumes, drives, os_devices)


def p440ar(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None, no_battery_write_cache: bool = False) -> State:
    """A Smart Array P440ar: six SATA SSDs as RAID 1+0, two hard disks as a mirror."""
    card = {
        "model": "Smart Array P440ar",
        "product": "Smart Array P440ar",
        "slot": 0,
        "embedded": True,
        "style": {**_STYLE_OLD, "multidomain": True, "smart_path": True, "smart_path_text": "HPE SSD Smart Path", "managed_cable": True},
        "lines": {**_P440AR, "Serial Number": "SIMULATED0440", "Cache Serial Number": "SIMULATEDCACHE0440", "Host Serial Number": "SIMULATEDHOST"},
        "cache": {"size": "2.0 GB", "available": "1.8 GB", "read": 10, "ssd_caching": True},
        "no_battery_write_cache": no_battery_write_cache,
        "drive_write_cache": {"all": "Disabled"},
        "power": "Batteries",
        "ports": [["1I", "5000000053490040"], ["2I", "5000000053490044"]],
        "cages": _cages(("1I", 1, 4, 1), ("2I", 1, 4, 5)),
        "sep": None,
    }
    plan: list[_Plan] = [
        ("1+0", SATA_SSD_1900, ("1I:1:1", "1I:1:2", "1I:1:3", "2I:1:5", "2I:1:6", "2I:1:7")),
        ("1", SATA_HDD_1000, ("1I:1:4", "2I:1:8")),
    ]
    return _controller(card, plan, None, volumes, drives, os_devices)


def p400i(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None, no_battery_write_cache: bool = False) -> State:
    """A very old Smart Array P400i under the driver cciss: one mirror and two unassigned drives."""
    lines = {
        **_HPSA,
        "RAID 6 (ADG) Status": "Enabled",
        "Serial Number": "SIMULATED0400",
        "Cache Serial Number": "SIMULATEDCACHE0400",
        "Hardware Revision": "E",
        "Firmware Version": "7.24-0",
        "Driver Name": "cciss",
        "Driver Version": "3.6.26",
        "PCI Address (Domain:Bus:Device.Function)": "0000:06:00.0",
        "Host Serial Number": "SIMULATEDHOST",
    }
    for label in ("Queue Depth", "Monitor and Performance Delay", "Degraded Performance Optimization", "Driver Supports SSD Smart Path"):
        del lines[label]
    card = {
        "model": "Smart Array P400i",
        "product": "Smart Array P400i",
        "slot": 0,
        "embedded": True,
        "style": {**_STYLE_OLD, "strip": 128},
        "lines": lines,
        "cache": {"size": "256 MB", "available": "208 MB", "read": 25},
        "no_battery_write_cache": no_battery_write_cache,
        "drive_write_cache": {"all": "Disabled"},
        "power": "Batteries",
        "ports": [["1I", "5000000053490050"], ["2I", "5000000053490054"]],
        "cages": _cages(("1I", 1, 4, 1), ("2I", 1, 2, 5)),
        "sep": None,
    }
    return _controller(card, [("1", SATA_100, ("1I:1:3", "1I:1:4"))], (SATA_250, ("1I:1:1", "1I:1:2")), volumes, drives, os_devices)


def h240(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """A Smart HBA H240 in HBA mode: it has no volumes, whatever is asked for; the drives belong to the host."""
    count = max(drives or 0, volumes or 0, len(os_devices or [])) or 8
    card = {
        "model": "Smart HBA H240",
        "product": "Smart HBA H240",
        "slot": 1,
        "embedded": False,
        "mode": "HBA",
        "style": {**_STYLE_OLD, "multidomain": True},
        "lines": {**_P440AR, "Serial Number": "SIMULATED0240", "Cache Serial Number": "SIMULATED0240", "Host Serial Number": "SIMULATEDHOST"},
        "cache": None,
        "no_battery_write_cache": False,
        "drive_write_cache": {},
        "power": None,
        "ports": [["1I", "5000000053490060"], ["2I", "5000000053490064"]],
        "cages": _cages(("1I", 1, 4, 1), ("2I", 1, 4, 5)),
        "sep": None,
        "kind": SATA_HDD_1000,
    }
    made = _controller(card, [], None, 0, count, None)
    given = [str(device["path"]) for device in os_devices or []]
    others = [path for path in (drive["path"] for drive in made["drives"]) if path not in given]
    for drive, path in zip(made["drives"], [*given, *others]):
        drive["path"] = path
    return made


def h240_raid(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """A Smart HBA H240 in RAID mode: volumes, but no cache."""
    lines = {
        **_P440AR,
        "Serial Number": "SIMULATED0241",
        "Cache Serial Number": "SIMULATED0241",
        "Firmware Version": "4.52-0",
        "Firmware Supports Online Firmware Activation": "False",
        "Rebuild Priority": "High",
        "Surface Scan Delay": "3 secs",
        "Current Parallel Surface Scan Count": "1",
        "Post Prompt Timeout": "15 secs",
        "Encryption": "Not Set",
        "Driver Version": "3.4.20",
        "Controller Mode": "RAID Mode",
        "Host Serial Number": "SIMULATEDHOST",
        "Sanitize Erase Supported": "True",
    }
    for label in ("RAID 6 (ADG) Status", "Inconsistency Repair Policy", "Cache Module Temperature (C)"):
        del lines[label]
    card = {
        "model": "Smart HBA H240 (RAID Mode)",
        "product": "Smart HBA H240",
        "slot": 1,
        "embedded": False,
        "mode": "RAID",
        "style": {
            **_STYLE_MIDDLE,
            "cage_power": False,
            "os_status": False,
            "multidomain": True,
            "partitions": True,
            "smart_path": True,
            "smart_path_text": "Smart Path",
        },
        "lines": lines,
        "cache": None,
        "memory": "0.2",
        "no_battery_write_cache": False,
        "drive_write_cache": {"all": "Disabled"},
        "power": None,
        "ports": [["1I", "5000000053490070"], ["2I", "5000000053490074"]],
        "cages": _cages(("1I", 1, 4, 1)),
        "sep": None,
    }
    made = _controller(card, [("0", SATA_HDD_1000, ("1I:1:1",))], None, volumes, drives, os_devices)
    for volume in made["volumes"]:
        volume["caching"] = False
    return made


def e208i(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """An HPE Smart Array E208i-a SR Gen10: no cache. Its lines are assumed from the P408i and, about the cache, the H240."""
    if volumes is None and drives is None and not os_devices:
        volumes, drives = 1, 2
    made = p408i(volumes, drives, os_devices)
    made["lines"]["Serial Number"] = "SIMULATED0208"
    made.update({"model": "HPE Smart Array E208i-a SR Gen10", "product": "HPE Smart Array E208i-a SR Gen10", "cache": None, "power": None})
    for volume in made["volumes"]:
        volume["caching"] = False
    return made


MODELS: dict[str, t.Callable[..., State]] = {
    "HPE Smart Array P408i-a SR Gen10": p408i,
    "HPE Smart Array P816i-a SR Gen10": p816i,
    "Smart Array P410i": p410i,
    "Smart Array P440ar": p440ar,
    "Smart Array P400i": p400i,
    "Smart HBA H240": h240,
    "Smart HBA H240 (RAID Mode)": h240_raid,
    "HPE Smart Array E208i-a SR Gen10": e208i,
}
