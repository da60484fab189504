# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What GETCONFIG prints: pure functions from the state of one controller to lines of text.

A section is a list of lines and ends with the blank lines that stand before the next section.
"""

from __future__ import annotations

import functools
import typing as t

from . import arcconf_state as now
from .arcconf_layouts import LAYOUTS, Layout
from .simulator import State

Lines = list[str]
Values = t.Mapping[str, "str | None"]

SUCCESS = "Command completed successfully."
MAIN_RULE = "-" * 70
SHORT_RULE = "-" * 56

_WRITE_CACHE = {"wb": "Enabled (write-back)", "wt": "Disabled (write-through)"}
_MAXCACHE_POLICIES = {"WB": "Write Back", "INSTWB": "Instant Write Back", "WT": "Write Through", "WBWITHWT": "Write Back with Write Through"}
_COUNTERS = [
    "Aborted Commands",
    "Bad Target Errors",
    "Ecc Recovered Read Errors",
    "Failed Read Recovers",
    "Failed Write Recovers",
    "Format Errors",
    "Hardware Errors",
    "Hard Read Errors",
    "Hard Write Errors",
    "Hot Plug Count",
    "Media Failures",
    "Not Ready Errors",
    "Other Time Out Errors",
    "Predictive Failures",
    "Retry Recovered Read Errors",
    "Retry Recovered Write Errors",
    "Scsi Bus Faults",
    "Sectors Reads",
    "Sectors Written",
    "Service Hours",
]
_RUNTIME_COUNTERS = ("Hardware Error Count", "Medium Error Count", "Parity Error Count", "Link Failure Count", "Aborted Command Count", "SMART Warning Count")


def layout_of(controller: State) -> Layout:
    return LAYOUTS[controller["layout"]]


def line(layout: Layout, indent: int, label: str, value: str) -> str:
    """``Label      : value``. Empty values end at the colon, on SmartRAID after one more blank."""
    text = f"{' ' * indent}{label}".ljust(layout.column) + ":"
    return f"{text} {value}" if value or layout.smart else text


@functools.lru_cache(maxsize=None)
def _entries(template: str) -> tuple[tuple[str, str, str | None], ...]:
    """``(kind, label, constant)`` of every entry of a template."""
    found: list[tuple[str, str, str | None]] = []
    for entry in template.splitlines():
        if not entry:
            continue
        if entry[0] in "[<":
            found.append(("title" if entry[0] == "[" else "part", entry[1:-1], None))
            continue
        label, equals, constant = entry.partition(" = ")
        found.append(("label", label, constant.replace("{blank}", "") if equals else None))
    return tuple(found)


def block(layout: Layout, template: str, indent: int, values: Values, parts: t.Mapping[str, t.Callable[[], Lines]] | None = None) -> Lines:
    """The lines of one template. A label whose value is ``None`` is not printed."""
    printed: Lines = []
    for kind, label, constant in _entries(template):
        if kind == "title":
            printed += titled(layout, label)
        elif kind == "part":
            printed += [""] if label == "blank" else (parts or {})[label]()
        else:
            value = values.get(label.casefold(), constant)
            if value is not None:
                printed.append(line(layout, indent, label, value))
    return printed


def titled(layout: Layout, title: str) -> Lines:
    """A title inside the adapter section."""
    rule = "   " + "-" * layout.rule
    text = f"   {title}"
    return [rule, text.ljust(layout.column) if layout.padded_adapter_titles else text, rule]


def section(title: str, *, rule: str = MAIN_RULE) -> Lines:
    return [rule, title, rule]


def _places(controller: State, drive: State) -> tuple[str, str]:
    """Where a drive is, in the words of the drives and in the words of the volumes."""
    slot, smart = drive["slot"], controller["generation"] == "smart"
    connector = "CN2" if controller["location"] == "backplane" else "CN0"
    if controller["location"] == "connector":
        return f"Connector {slot // 4}, Device {slot % 4}", f"Connector:{slot // 4},Device:{slot % 4}"
    if controller["location"] == "backplane":
        return f"Backplane 0, Slot {slot}(Connector 0:{connector})", f"Connector:{connector},Backplane:0,Slot:{slot}"
    if controller["location"] == "direct":
        return f"Enclosure Direct Attached, Slot {slot}(Connector {slot // 4}:CN{slot // 4})", f"Connector:CN{slot // 4},Slot:{slot}"
    if smart:
        return f"Enclosure 1, Slot {slot}(Connector 0:{connector})", f"Connector:{connector},Enclosure:1,Slot:{slot}"
    after = "(Connector 0)" if layout_of(controller).segments == "size" else ""
    return f"Enclosure 0, Slot {slot}{after}", f"Enclosure:0,Slot:{slot}"


def _media(drive: State) -> str:
    return "SSD" if drive["ssd"] else "HDD"


def _member(layout: Layout, number: int, controller: State, drive: State) -> str:
    """``Present (…) SERIAL``."""
    place = _places(controller, drive)[1]
    serial = drive["serial"].rjust(20) if layout.padded_serials and drive["serial"] else drive["serial"]
    word = "Missing" if drive["state"] == "Failed" else "Present"
    if layout.segments == "address":
        return f"{word} ({drive['channel']},{drive['device']}) "
    if layout.segments == "place":
        return f"{word} (Controller:{number},{place}) {serial}"
    return f"{word} ({drive['size']}MB, {drive['bus']}, {_media(drive)}, {place.replace(',', ', ')}) {serial}"


# ---------------------------------------------------------------------------------------------------------------- adapter


def adapter(controller: State, number: int, faults: now.Faults) -> Lines:
    """``GETCONFIG n AD``."""
    layout = layout_of(controller)
    parts = {
        "protection": lambda: protection(controller, faults),
        "maxcache properties": lambda: _maxcache_properties(controller),
        "sensors": lambda: _sensors(layout, controller),
        "connectors": lambda: _connectors_in_adapter(controller, faults),
    }
    printed = section("Controller information") + block(layout, layout.adapter, 3, adapter_values(controller, faults), parts)
    return [*printed, ""]


def cache_properties(controller: State, faults: now.Faults) -> Lines:
    """``GETCONFIG n AD CACHE``: only the cache properties (no capture of this form)."""
    layout = layout_of(controller)
    values = adapter_values(controller, faults)
    labels = [label for kind, label, _constant in _entries(layout.adapter) if kind == "label" and ("cache" in label.casefold())]
    found = [line(layout, 3, label, value) for label in labels if (value := values.get(label.casefold())) is not None]
    return [*section("Controller information"), *titled(layout, "Cache Properties"), *found, ""]


def adapter_values(controller: State, faults: now.Faults) -> dict[str, str | None]:
    """Every changing line of the adapter section, by its label in lower case."""
    volumes = now.volumes(controller, faults)
    maxcache = controller["maxcache"]
    failed = sum(volume["status"] in ("Failed", "Offline") for volume in volumes)
    degraded = sum("egraded" in volume["status"] for volume in volumes)
    pool = [drive for drive in controller["drives"] if drive["pool"]]
    values: dict[str, str | None] = {
        "controller status": "Optimal",
        "controller mode": now.mode(controller, faults),
        "controller model": controller["model"],
        "controller serial number": controller["serial"],
        "controller world wide name": controller["wwn"],
        "physical slot": str(controller["slot"]),
        "logical devices/failed/degraded": f"{len(volumes)}/{failed}/{degraded}",
        "firmware": controller["firmware"],
        "bios": controller["firmware"],
        "boot flash": controller["firmware"],
        "driver": controller["driver"],
        "number of ports": str(controller["connectors"]),
        "internal port count": str(controller["connectors"]),
        "reboot required reasons": "Controller mode change" if controller["pending_mode"] else "Not Available",
        "ssds assigned to maxcache pool": str(len(pool)),
        "maxcache read cache pool size": f"{sum(drive['size'] for drive in pool) / 1026:.3f} GB",
    }
    if now.maxcache_kind(controller) in ("pool", "container"):
        values |= {
            "maxcache flush and fetch rate": str(maxcache["flush_rate"]),
            "maxcache read, write balance factor": "{},{}".format(*maxcache["balance"]),
            "maxcache dirty page threshold": str(maxcache["threshold"]),
        }
    policy = controller.get("global_drive_cache")
    if policy is not None:
        values["global physical device write cache policy"] = {"enable": "Enabled", "disable": "Disabled", "drivespecific": "Drive Specific"}[policy]
    if controller["generation"] == "smart":
        values |= _smart_adapter_values(controller, faults)
    return values | controller["facts"]


def _smart_adapter_values(controller: State, faults: now.Faults) -> dict[str, str | None]:
    active = bool(now.volumes(controller, faults))
    words = {
        "queue depth": "Automatic",
        "monitor and performance delay": "60 minutes",
        "elevator sort": "Enabled",
        "degraded mode performance optimization": "Disabled",
        "latency": "Disabled",
        "background consistency check": "Idle",
        "consistency check delay": "3 seconds",
        "parallel consistency check supported": "Enabled",
        "parallel consistency check count": "1",
        "inconsistency repair policy": "Disabled",
        "consistency check inconsistency notify": "Disabled",
        "rebuild priority": "High",
    }
    values: dict[str, str | None] = {label: value if active else "Not Applicable" for label, value in words.items()}
    cache = controller["cache"]
    if cache:
        status, state, details = now.cache_module(controller, faults)
        switch = {True: "Enabled", False: "Disabled"}
        values |= {
            "cache status": status,
            "cache state": state,
            "cache state details": details,
            "cache memory": f"{cache['memory']} MB",
            "read cache percentage": f"{cache['read']} percent" if active else "Not Applicable",
            "write cache percentage": f"{cache['write']} percent" if active else "Not Applicable",
            "no-battery write cache": switch[cache["no_battery"]],
            "wait for cache room": switch[cache["wait_for_room"]],
            "write cache bypass threshold size": f"{cache['bypass_threshold']} KB",
        }
    for kind, policy in (controller["drive_policy"] or {}).items():
        values[f"{kind} drives".casefold()] = now.POLICY_WORDS[policy]
    return values


def protection(controller: State, faults: now.Faults) -> Lines:
    """The section about battery, ZMM, cache backup unit or green backup."""
    layout, health = layout_of(controller), now.unit_health(controller, faults)
    if controller["generation"] == "smart":
        return [] if health == "missing" and not controller["protection"] else _green_backup(layout, health)
    if controller["protection"] == "battery":
        return _battery(layout, health)
    if controller["series"] in ("7", "8"):
        return _backup_unit(layout, health)
    word = {
        "good": "ZMM Optimal",
        "failed": "ZMM Failed",
        "learning": "ZMM Charging / Not Ready",
        "charging": "ZMM Charging / Not Ready",
        "missing": "ZMM not installed",
    }[health]
    return [*titled(layout, "Controller ZMM Information"), line(layout, 3, "Status", word)]


def _battery(layout: Layout, health: str) -> Lines:
    word = {"good": "Optimal", "failed": "Failed", "learning": "Maintenance mode", "charging": "Charging", "missing": "Not Installed"}[health]
    printed = [*titled(layout, "Controller Battery Information"), line(layout, 3, "Status", word)]
    if health in ("failed", "missing"):
        return printed
    charge, left = {"good": (100, "3 days, 16 hours"), "learning": (62, "2 days, 4 hours"), "charging": (35, "1 days, 6 hours")}[health]
    return [
        *printed,
        line(layout, 3, "Over temperature", "No"),
        line(layout, 3, "Capacity remaining", f"{charge} percent"),
        line(layout, 3, "Time remaining (at current draw)", f"{left}, 0 minutes"),
    ]


def _backup_unit(layout: Layout, health: str) -> Lines:
    overall = {"good": "Ready", "failed": "Not Ready", "learning": "Not Ready", "charging": "Charging", "missing": "Not Present"}[health]
    printed = [*titled(layout, "Controller Cache Backup Unit Information"), "", line(layout, 4, "Overall Backup Unit Status", overall)]
    if health == "missing":
        return printed
    supercap = {"good": "Ready", "failed": "Fatal", "learning": "Not Ready", "charging": "Charging"}[health]
    printed += [
        "",
        line(layout, 9, "Backup Unit Type", "AFM-700/700LP"),
        line(layout, 9, "Non-Volatile Storage Status", "Ready"),
        line(layout, 9, "Supercap Status", supercap),
    ]
    if health == "failed":
        return printed
    rule = " " * 9 + "-" * 35
    charge = {"good": "100", "learning": "48", "charging": "35"}[health]
    printed += [
        "",
        rule,
        "         Supercap Information".ljust(layout.column),
        rule,
        line(layout, 9, "Current Temperature", "27 deg C"),
        line(layout, 9, "Threshold Temperature", "51 deg C"),
        "         Life-time Temperature Recorded".ljust(layout.column),
        line(layout, 9, "(Min/Max)", "22 deg C/ 34 deg C"),
        "",
        line(layout, 9, "Voltage(Present/Max)", "4962 mV/ 5302 mV"),
        line(layout, 9, "Life-time Max Voltage Recorded", "5510 mV"),
        "",
        line(layout, 9, "Current Drawn(Present/Max)", "0 mA/ 560 mA"),
        line(layout, 9, "Health", "100 percent"),
        line(layout, 9, "Charge Level", f"{charge} percent"),
        line(layout, 9, "Estimated Life-time", "5 Years, 0 Month"),
        line(layout, 9, "Serial Number", "SIMULATED"),
    ]
    if layout.capital or health == "learning":
        printed += [
            "",
            line(layout, 9, "Learn Status", "Active" if health == "learning" else "Idle"),
            line(layout, 9, "Next Scheduled Learn Cycle", "281 hours"),
            "",
            line(layout, 9, "Present Capacitance", "288 farads"),
        ]
    return printed


def _green_backup(layout: Layout, health: str) -> Lines:
    status = {
        "good": "Ok",
        "failed": "Failed (Replace Batteries/Capacitors)",
        "learning": "Recharging",
        "charging": "Not Fully Charged",
        "missing": "No Battery Connected",
    }[health]
    charge = {"good": "100", "failed": "0", "learning": "62", "charging": "0", "missing": "0"}[health]
    wear = "0" if health in ("failed", "missing") else "100"
    values = (
        ("Backup Power Status", status),
        ("Battery/Capacitor Pack Count", "0" if health == "missing" else "1"),
        ("Hardware Error", "Charge Start Error" if health == "failed" else "No Error"),
        ("Power Type", "Supercap"),
        ("Current Temperature", "19 deg C"),
        ("Maximum Temperature", "60 deg C"),
        ("Threshold Temperature", "50 deg C"),
        ("Voltage", "5208 milliVolts" if health == "good" else "3885 milliVolts"),
        ("Maximum Voltage", "5208 milliVolts"),
        ("Current", "0 milliAmps"),
        ("Health Status", f"{wear} percent"),
        ("Relative Charge", f"{charge} percent"),
    )
    return titled(layout, "Green Backup Information") + [line(layout, 3, label, value) for label, value in values]


def _maxcache_properties(controller: State) -> Lines:
    layout = layout_of(controller)
    if now.maxcache_kind(controller) != "smart":
        return []
    return [*titled(layout, "maxCache Properties"), line(layout, 3, "maxCache Version", "4"), line(layout, 3, "maxCache RAID5 WriteBack Enabled", "Enabled")]


def _sensors(layout: Layout, controller: State) -> Lines:
    places = ("Inlet Ambient", "ASIC", "Top", "Bottom") if controller["series"] != "hba" else ("Inlet Ambient", "ASIC")
    printed: Lines = []
    for index, place in enumerate(places):
        for label, value in (("Sensor ID", str(index)), ("Current Value", "29 deg C"), ("Max Value Since Powered On", "30 deg C"), ("Location", place)):
            printed.append(line(layout, 3, label, value))
        printed.append("")
    return printed


# ------------------------------------------------------------------------------------------------------------- connectors


def _connectors_in_adapter(controller: State, faults: now.Faults) -> Lines:
    layout = layout_of(controller)
    padded = layout.padded_adapter_titles
    rule = "   " + "-" * layout.rule
    title = [rule, "   Connector information".ljust(layout.column if padded else 0), *([] if padded else [" " * 19]), rule]
    return title + _connectors(controller, faults, indent=3)


def connectors(controller: State, faults: now.Faults) -> Lines:
    """``GETCONFIG n CN`` and, in some builds, the last section of ``AL``."""
    return section("Connector information") + _connectors(controller, faults, indent=0)


def _connectors(controller: State, faults: now.Faults, *, indent: int) -> Lines:
    layout = layout_of(controller)
    printed: Lines = []
    lanes = layout.connectors.endswith("lanes")
    for index in range(controller["connectors"]):
        title = f"{' ' * indent}Connector #{index}"
        # Titles are filled with blanks where they stand in the adapter section, and on cards with names for their connectors.
        printed.append(title if lanes and indent == 0 else title.ljust(layout.column))
        name = "CN2" if controller["location"] == "backplane" else f"CN{index}"
        mode = now.mode(controller, faults) or ""
        if lanes:
            printed += [line(layout, indent + 3, "Connector Name", name), "", *_lanes(controller, index, indent=indent), ""]
            continue
        wide = layout.column == 46
        values = [("Connector name" if wide else "Connector Name", name)]
        values += [("Connection Number", str(index))] if wide else []
        values += [("Functional Mode", mode), ("Connector Location", "Internal"), ("SAS Address", f"{controller['wwn'][:-1]}{index:X}")]
        values += [("Current Discovery Protocol", "AutoDetect"), ("Pending Discovery Protocol", "Not Applicable")] if wide else []
        printed += [line(layout, indent + 3, label, value) for label, value in values] + ["", ""]
    return printed


def _lanes(controller: State, connector: int, *, indent: int) -> Lines:
    layout = layout_of(controller)
    inner = 6 if indent else 3
    outer = " " * inner + "-" * (38 if indent else 67)
    printed = [outer, "   Lane Information".ljust(layout.column), outer]
    for lane in range(4):
        device = connector * 4 + lane
        printed.append(f"{' ' * inner}Lane #{lane}".ljust(layout.column))
        for label, value in (("Channel ID", "0"), ("Device ID", str(device)), ("SAS Address", controller["wwn"]), ("PHY Identifier", str(device ^ 3))):
            printed.append(line(layout, inner + 3, label, value))
        rule = " " * (inner + 3) + "-" * 35 if indent else " " * 6 + "-" * 64
        printed += [rule, f"{' ' * (inner + 3)}Lane SAS Phy Information".ljust(layout.column), rule]
        if indent:
            printed.append(f"            No SAS Phy information available for lane #{lane}        ")
        else:
            values = (("SAS Address", controller["wwn"]), ("Attached PHY Identifier", "0"), ("Attached SAS Address", f"3{controller['wwn'][1:-1]}{device:X}"))
            printed += [line(layout, 9, label, value) for label, value in values]
            printed.append(line(layout, 9, "Negotiated Logical Link Rate", "PHY enabled - 6 Gbps"))
        printed.append("")
    return printed


# ---------------------------------------------------------------------------------------------------------------- volumes


def logical(controller: State, number: int, faults: now.Faults, only: int | None = None) -> Lines:
    """``GETCONFIG n LD [ld]``."""
    layout = layout_of(controller)
    rule = SHORT_RULE if layout.column == 46 else MAIN_RULE
    printed = section("Logical device information", rule=rule)
    chosen = [volume for volume in now.volumes(controller, faults) if only in (None, volume["id"])]
    if not chosen:
        printed.append("   No logical devices configured")
    for volume in chosen:
        printed += _volume(layout, controller, number, volume, faults)
    # The oldest builds end at once when one volume was asked for.
    return printed if only is not None and layout.words == "mode" else [*printed, ""]


def _volume(layout: Layout, controller: State, number: int, volume: State, faults: now.Faults) -> Lines:
    device = "Device" if layout.capital else "device"
    printed = [f"Logical {device} number {volume['id']}", *block(layout, layout.volume, 3, volume_values(controller, volume, faults))]
    drives = now.members(controller, volume)
    if layout.column == 46 or layout.smart:
        return printed + _smart_members(layout, controller, number, volume, drives)
    rule = "   " + SHORT_RULE
    printed += [rule, f"   Logical {device} segment information", rule]
    grouped = volume["raid"] in ("10", "50", "60")
    for index, drive in enumerate(drives):
        segment = f"Group {index // 2}, Segment {index % 2}" if grouped else f"Segment {index}"
        printed.append(line(layout, 3, segment, _member(layout, number, controller, drive)))
    return [*printed, ""]


def _smart_members(layout: Layout, controller: State, number: int, volume: State, drives: t.Sequence[State]) -> Lines:
    printed: Lines = []
    if layout.extra_volume_sections:
        printed += [SHORT_RULE, "   Consistency Check Information", SHORT_RULE]
        for label in ("Consistency Check Status", "Last Consistency Check Completion Time", "Last Consistency Check Duration"):
            printed.append(line(layout, 3, label, "Not Applicable"))
    grouped = volume["raid"] in ("10", "50", "60")
    title, head = ("Logical Device segment information", "Segment") if grouped else ("Array Physical Device Information", "Device ID")
    columns = "Availability (SizeMB, Protocol, Type, Connector ID, Location) Serial Number"
    printed += [SHORT_RULE, f"   {title}", SHORT_RULE, line(layout, 3, head, columns), SHORT_RULE]
    for index, drive in enumerate(drives):
        label = f"Group {index // 2}, Segment {index % 2}" if grouped else f"Device {drive['index']}"
        printed.append(line(layout, 3, label, _member(layout, number, controller, drive)))
    return [*printed, "", ""]


def volume_values(controller: State, volume: State, faults: now.Faults) -> dict[str, str | None]:
    """Every line of a volume, by its label in lower case."""
    drives = now.members(controller, volume)
    ssd, sas = all(drive["ssd"] for drive in drives), any(drive["bus"] == "SAS" for drive in drives)
    block4k = any(drive["block"] == 4096 for drive in drives)
    values: dict[str, str | None] = {
        "logical device name": volume["name"],
        "disk name": volume["disk_name"],
        "block size of member drives": "4K Bytes" if block4k else "512 Bytes",
        "raid level": "6 Reed-Solomon" if volume["raid"] == "6" and controller["generation"] == "aacraid" else volume["raid"],
        "array": str(volume["array"]),
        "unique identifier": volume["wwn"][-8:],
        "volume unique identifier": volume["wwn"],
        "status of logical device": volume["status"],
        "parity initialization status": "Completed" if volume["raid"] in ("5", "6", "50", "60") else None,
        "size": f"{volume['size']} MB",
        "parity space": "0 MB" if volume["raid"] == "0" else f"{volume['size'] + 10} MB",
        "stripe-unit size": None if volume["raid"] == "1" and controller["generation"] == "aacraid" else "256 KB",
        "full stripe size": "256 KB",
        "interface type": "SAS 4K" if block4k else "Serial Attached SCSI" if sas else "Serial ATA",
        "device type": "SSD" if ssd else "HDD",
        "bootable": "Yes" if volume["id"] == 0 else "No",
    }
    if controller["generation"] == "smart":
        values["device type"] = "Data"
        values["caching"] = "Enabled" if volume["caching"] else "Disabled"
        cached_by_ssds = now.container_of(controller, volume) is not None
        method = "Controller Cache" if volume["caching"] else "I/O Bypass" if volume["ssd_bypass"] else "None"
        values["ld acceleration method"] = "maxCache" if cached_by_ssds else method
    else:
        values |= _aacraid_cache_values(controller, volume, faults)
    return values | volume.get("facts", {})


def _aacraid_cache_values(controller: State, volume: State, faults: now.Faults) -> dict[str, str | None]:
    on = now.writes_back(controller, volume, faults)
    values: dict[str, str | None] = {"write-cache status": "On" if on else "Off"}
    if layout_of(controller).words == "mode":
        guard = "battery" if controller["protection"] == "battery" else "battery/ZMM"
        values |= {
            "read-cache mode": "Enabled" if volume["read"] else "Disabled",
            "write-cache mode": _WRITE_CACHE["wb" if on else "wt"],
            "write-cache setting": {"wt": _WRITE_CACHE["wt"], "wb": _WRITE_CACHE["wb"], "wbb": f"{_WRITE_CACHE['wb']} when protected by {guard}"}[
                volume["write"]
            ],
        }
    else:
        values |= {
            "read-cache setting": "Enabled" if volume["read"] else "Disabled",
            "read-cache status": "On" if volume["read"] else "Off",
            "write-cache setting": {"wt": "Disabled", "wb": "Enabled", "wbb": "On when protected by battery/ZMM"}[volume["write"]],
        }
    kind, settings = now.maxcache_kind(controller), volume["maxcache"]
    if kind not in ("pool", "container"):
        return values
    there = bool(controller["maxcache"]["containers"]) if kind == "container" else any(drive["pool"] for drive in controller["drives"])
    dirty = now.is_dirty(controller, volume)
    values |= {
        "maxcache read cache setting": "Enabled" if settings["read"] else "Disabled",
        "maxcache read cache status": "On" if settings["read"] and there else "Off",
    }
    if kind == "container" or controller["maxcache"]["write_feature"]:
        values |= {
            "maxcache write cache setting": "Enabled" if settings["write"] else "Disabled",
            "maxcache write cache status": "On" if settings["write"] and there else "Off",
            "maxcache write cache policy": _MAXCACHE_POLICIES[settings["policy"]] if settings["write"] else None,
            "maxcache status": "Dirty" if dirty else "Clean" if settings["used"] or settings["write"] else None,
        }
    return values


def arrays(controller: State, number: int, faults: now.Faults, only: int | None = None) -> Lines:
    """``GETCONFIG n AR [ar]``."""
    layout = layout_of(controller)
    printed = section("Array Information")
    numbers = sorted({volume["array"] for volume in now.volumes(controller, faults)} & ({only} if only is not None else set(range(1 << 16))))
    if not numbers:
        printed.append("   No arrays configured")
    for array in numbers:
        printed += _array(layout, controller, number, array, [volume for volume in controller["volumes"] if volume["array"] == array], faults)
    return [*printed, ""]


def array_name(array: int) -> str:
    return chr(65 + array) if array < 26 else array_name(array // 26 - 1) + chr(65 + array % 26)


def _array(layout: Layout, controller: State, number: int, array: int, volumes: t.Sequence[State], faults: now.Faults) -> Lines:
    drives = now.members(controller, volumes[0])
    block4k = any(drive["block"] == 4096 for drive in drives)
    ssd = all(drive["ssd"] for drive in drives)
    bypass = ("Enabled" if volumes[0]["ssd_bypass"] else "Disabled") if ssd or volumes[0]["ssd_bypass"] else "Not Applicable"
    values = [
        ("Name", array_name(array)),
        ("Status", "Ok"),
        ("Interface", f"{drives[0]['bus']}{' 4K' if block4k else ''}"),
        ("Total Size", f"{sum(drive['size'] - 32 for drive in drives)} MB"),
        ("Unused Size", "0 MB"),
        ("Block Size", "4K Bytes" if block4k else "512 Bytes"),
        ("Array Utilization", "100.00% Used, 0.00% Unused"),
        ("Type", "Data"),
        ("Transformation Status", "Not Applicable"),
        ("Spare Rebuild Mode", "Dedicated"),
        ("SSD I/O Bypass", bypass),
    ]
    values += [("SED Encryption", "Disabled")] if layout.extra_volume_sections else []
    printed = [f"Array Number {array}", *(line(layout, 3, label, value) for label, value in values)]
    printed += [
        SHORT_RULE,
        "   Array Logical Device Information",
        SHORT_RULE,
        line(layout, 3, "Logical ID", "Status (RAID, Interface, SizeMB) Name"),
        SHORT_RULE,
    ]
    for volume in volumes:
        printed.append(line(layout, 3, f"Logical {volume['id']}", f"{volume['status']} ({volume['raid']}, Data, {volume['size']} MB) {volume['name']}"))
    columns = "Availability (SizeMB, Protocol, Type, Connector ID, Location) Serial Number"
    printed += [SHORT_RULE, "   Array Physical Device Information", SHORT_RULE, line(layout, 3, "Device ID", columns), SHORT_RULE]
    printed += [line(layout, 3, f"Device {drive['index']}", _member(layout, number, controller, drive)) for drive in drives]
    return [*printed, "", ""]


def maxcache(controller: State, number: int, faults: now.Faults) -> Lines:
    """``GETCONFIG n MC``: the maxCache volumes. Only the container of series 7 and the words for "none" have captures."""
    layout, kind = layout_of(controller), now.maxcache_kind(controller)
    containers = controller["maxcache"].get("containers") or []
    if kind != "smart":
        printed = section("MaxCache 3.0 information")
        if not containers:
            return [*printed, "   No maxCache 3.0 found", ""]
        for container in containers:
            printed += _container(layout, controller, number, container)
        return [*printed, ""]
    printed = section("maxCache information")
    if not containers:
        return [*printed, "   No maxCache Array found", ""]
    for container in containers:
        printed += _smart_container(layout, controller, number, container)
    return [*printed, ""]


def _container(layout: Layout, controller: State, number: int, container: State) -> Lines:
    values = (
        ("Maxcache device name", container["name"]),
        ("MaxCache Dirty Status", "Dirty" if now.container_is_dirty(controller, container) else "Clean"),
        ("RAID level", container["raid"]),
        ("Background Coherency Check", "Inactive"),
        ("Status of MaxCache", container["status"]),
        ("Size", f"{container['size']} MB"),
        ("MaxCache write cache status", "On" if container["raid"] in now.REDUNDANT else "Off"),
        ("Protected by Hot-Spare", "No"),
        ("Failed stripes", "No"),
    )
    rule = "   " + SHORT_RULE
    printed = [f"Maxcache device number {container['id']}", *(line(layout, 3, label, value) for label, value in values)]
    printed += [rule, "   Logical device segment information", rule]
    for index, drive in enumerate(now.members(controller, container)):
        printed.append(line(layout, 3, f"Segment {index}", _member(layout, number, controller, drive)))
    return [*printed, ""]


def _smart_container(layout: Layout, controller: State, number: int, container: State) -> Lines:
    volume = next(volume for volume in controller["volumes"] if volume["id"] == container["data"])
    values = (
        ("maxCache Logical Device name", container["name"]),
        ("Associated Logical Device ID", str(container["data"])),
        ("Array", str(container["array"])),
        ("RAID level", container["raid"]),
        ("Status of maxCache", container["status"]),
        ("maxCache state", "Dirty" if now.container_is_dirty(controller, container) else "Clean"),
        ("Size", f"{container['size']} MB"),
        ("Cache Line Size", f"{container['line']} KB"),
        ("maxCache write cache policy", _MAXCACHE_POLICIES[volume["maxcache"]["policy"]]),
        ("maxCache write policy status", "On" if now.caches_writes(controller, volume) else "Off"),
    )
    printed = [f"maxCache Logical Device number {container['id']}", *(line(layout, 3, label, value) for label, value in values)]
    columns = "Availability (SizeMB, Protocol, Type, Connector ID, Location) Serial Number"
    printed += [SHORT_RULE, "   maxCache Array Physical Device Information", SHORT_RULE, line(layout, 3, "Device ID", columns), SHORT_RULE]
    printed += [line(layout, 3, f"Device {drive['index']}", _member(layout, number, controller, drive)) for drive in now.members(controller, container)]
    return [*printed, "", ""]


# ----------------------------------------------------------------------------------------------------------------- drives


def physical(controller: State, number: int, faults: now.Faults, only: t.Collection[tuple[int, int]] | None = None) -> Lines:
    """``GETCONFIG n PD [channel device …]``; with drives named, devices are counted anew and channels have no title."""
    layout = layout_of(controller)
    printed = section("Physical Device information")
    chosen = [drive for drive in controller["drives"] if only is None or (drive["channel"], drive["device"]) in only]
    if layout.shows_channels and only is None and chosen:
        printed.append("   Channel #0:")
    for position, drive in enumerate(chosen):
        printed += _drive(layout, controller, drive, position if only is not None else drive["index"], faults)
    if controller["enclosure"] and (only is None or (2, 0) in only):
        printed += _enclosure(layout, controller, only is None)
    return printed + [""] * layout.drives_tail


def _drive(layout: Layout, controller: State, drive: State, number: int, faults: now.Faults) -> Lines:
    printed = [f"      Device #{number}", "         Device is a Hard drive", *block(layout, layout.drive, 9, drive_values(controller, drive, faults))]
    details = {"phy": _phy, "runtime counters": _runtime_counters, "smart phys": _smart_phys, "smart counters": _smart_counters}
    for name in layout.device_details:
        printed += details[name](layout, controller, drive)
    if layout.device_details == ("phy",):
        printed.append("")
    return printed


def _detail_title(layout: Layout, title: str) -> Lines:
    rule = "      " + "-" * 64
    text = f"      {title}"
    return [rule, text.ljust(layout.column) if layout.padded_titles else text, rule]


def _phy(layout: Layout, controller: State, drive: State) -> Lines:
    values = (("PHY Identifier", "0"), ("SAS Address", f"3{drive['wwn'][1:]}"), ("Attached PHY Identifier", "0"), ("Attached SAS Address", controller["wwn"]))
    return [*_detail_title(layout, "Device Phy Information"), "         Phy #0", *(line(layout, 12, label, value) for label, value in values)]


def _runtime_counters(layout: Layout, controller: State, drive: State) -> Lines:
    return [*_detail_title(layout, "Runtime Error Counters"), *(line(layout, 9, label, "0") for label in _RUNTIME_COUNTERS), ""]


def _smart_phys(layout: Layout, controller: State, drive: State) -> Lines:
    printed = _detail_title(layout, "Device Phy Information")
    rate = "12 Gbps " if drive["bus"] == "SAS" else "6 Gbps "
    for phy in range(_phys(drive)):
        used = rate if phy == 0 else "unknown "
        printed.append(f"         Phy #{phy}")
        for label, value in (("Negotiated Physical Link Rate", used), ("Negotiated Logical Link Rate", used), ("Maximum Link Rate", rate)):
            printed.append(line(layout, 12, label, value))
    return [*printed, ""]


def _smart_counters(layout: Layout, controller: State, drive: State) -> Lines:
    return [*_detail_title(layout, "Device Error Counters"), *(line(layout, 9, label, "0") for label in _COUNTERS), ""]


def _phys(drive: State) -> int:
    return 2 if drive["bus"] == "SAS" else 1


def _enclosure(layout: Layout, controller: State, with_channel: bool) -> Lines:
    enclosure, capital = controller["enclosure"], layout.capital
    kind = "Enclosure Services Device" if capital else "Enclosure services device"
    number = len(controller["drives"]) if not layout.smart else 0
    values = {
        "reported channel,device(t:l)": "2,0(0:0)",
        "reported channel,device": "2,0",
        "enclosure id": "0",
        "enclosure logical identifier": f"{controller['wwn'][:-1]}8",
        "vendor": enclosure["vendor"],
        "model": enclosure["model"],
        "firmware": enclosure["firmware"],
    }
    printed = ["   Channel #2:"] if layout.shows_channels and with_channel else []
    printed += [f"      Device #{number}", f"         Device is an {kind}", *block(layout, layout.enclosure, 9, values), f"         Status of {kind}"]
    if controller["layout"] == "battery":
        printed.append(line(layout, 12, "Temperature", "Normal"))
    elif controller["series"] != "6":
        printed.append(line(layout, 12, "Speaker status", "Not Available" if capital else "Not available"))
    return printed


def drive_values(controller: State, drive: State, faults: now.Faults) -> dict[str, str | None]:
    """Every line of a drive, by its label in lower case."""
    state = now.drive_state(controller, drive, faults)
    smart, ssd, sata = controller["generation"] == "smart", drive["ssd"], drive["bus"] == "SATA"
    old_speed = controller["layout"] == "battery"
    speed = f"{drive['bus']} {'3.0' if old_speed else '12.0' if smart and not sata else '6.0'} Gb/s"
    used = state == "Online"
    yes = {True: "Yes", False: "No"}
    values: dict[str, str | None] = {
        "state": state,
        "block size": "4K Bytes" if drive["block"] == 4096 else "512 Bytes",
        "physical block size": "4K Bytes",
        "transfer speed": speed,
        "programmed max speed": speed,
        "reported channel,device(t:l)": f"{drive['channel']},{drive['device']}({drive['device']}:0)",
        "reported channel,device": f"{drive['channel']},{drive['device']}",
        "reported location": _places(controller, drive)[0],
        "reported esd(t:l)": "2,0(0:0)" if controller["location"] == "enclosure" and controller["enclosure"] else None,
        "vendor": drive["vendor"],
        "model": drive["model"],
        "firmware": drive["firmware"],
        "serial number": drive["serial"],
        "world-wide name": drive["wwn"] or None,
        "size": f"{drive['size']} MB",
        "reserved size": "538264 KB",
        "used size": f"{drive['size'] - 525} MB" if used else "0 MB",
        "unused size": "64 KB",
        "total size": f"{drive['size']} MB",
        "write cache": _drive_cache_line(controller, drive, faults),
        "ssd": yes[ssd],
        "maxcache capable": yes[ssd],
        "maxcache assigned": yes[bool(drive["pool"])],
        "ncq status": "Enabled" if sata else None,
    }
    if smart:
        values |= _smart_drive_values(controller, drive, state)
    return values | drive.get("facts", {})


def _smart_drive_values(controller: State, drive: State, state: str) -> dict[str, str | None]:
    ssd, sata = drive["ssd"], drive["bus"] == "SATA"
    volume = next((volume for volume in controller["volumes"] if [drive["channel"], drive["device"]] in volume["members"]), None)
    raw = state.startswith("Raw")
    exposed = raw or state == "Ready"
    usable = drive["size"] - 32
    in_maxcache = any([drive["channel"], drive["device"]] in container["members"] for container in controller["maxcache"].get("containers") or [])
    role = "HBA" if raw else "Unassigned" if state == "Ready" else "maxCache" if in_maxcache else "Data"
    return {
        "disk name": drive["os_path"] if exposed else None,
        "array": str(volume["array"]) if volume and not exposed else None,
        "reserved size": "32768 KB",
        "used size": None if raw else "0 MB" if exposed else f"{usable} MB",
        "unused size": None if raw else f"{usable} MB" if exposed else "0 MB",
        "ncq supported": "Supported" if sata else None,
        "rotational speed": None if ssd else "7200 RPM",
        "phy count": str(_phys(drive)),
        "drive configuration type": role,
        "mount point(s)": "Not Mounted" if exposed else None,
        "drive exposed to os": "True" if exposed else "False",
        "usage remaining": "100 percent" if ssd else None,
        "estimated life remaining": "Not Applicable" if ssd else None,
        "ssd smart trip wearout": "False" if ssd else None,
        "56 day warning present": "False" if ssd else None,
        "drive unique id": f"{drive['wwn']}{drive['wwn']}",
    }


def _drive_cache_line(controller: State, drive: State, faults: now.Faults) -> str | None:
    hidden = faults.get("drive_write_cache_unknown")
    if not controller.get("shows_drive_cache", True) or (hidden and hidden != "unknown"):
        return None
    if hidden or drive["state"] == "Failed" or not drive["supports_cache"]:
        return "Unknown"
    return _WRITE_CACHE[now.drive_cache(controller, drive, faults)]
