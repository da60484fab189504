# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIG PD: drives and enclosures."""

from __future__ import annotations

import typing as t

from . import arcconf_state as now
from .arcconf_layouts import Layout
from .arcconf_lines import WRITE_CACHE, Lines, block, layout_of, line, places, section
from .simulator import State

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
        "reported location": places(controller, drive)[0],
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
        values.update(_smart_drive_values(controller, drive, state))
    return {**values, **drive.get("facts", {})}


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
    return WRITE_CACHE[now.drive_cache(controller, drive, faults)]
