# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIG LD, AR and MC: volumes, arrays and maxCache volumes."""

from __future__ import annotations

import typing as t

from . import arcconf_state as now
from .arcconf_layouts import Layout
from .arcconf_lines import MAIN_RULE, SHORT_RULE, WRITE_CACHE, Lines, block, layout_of, line, places, section
from .simulator import State

_MAXCACHE_POLICIES = {"WB": "Write Back", "INSTWB": "Instant Write Back", "WT": "Write Through", "WBWITHWT": "Write Back with Write Through"}


def _media(drive: State) -> str:
    return "SSD" if drive["ssd"] else "HDD"


def _member(layout: Layout, number: int, controller: State, drive: State) -> str:
    """``Present (…) SERIAL``."""
    place = places(controller, drive)[1]
    serial = drive["serial"].rjust(20) if layout.padded_serials and drive["serial"] else drive["serial"]
    word = "Missing" if drive["state"] == "Failed" else "Present"
    if layout.segments == "address":
        return f"{word} ({drive['channel']},{drive['device']}) "
    if layout.segments == "place":
        return f"{word} (Controller:{number},{place}) {serial}"
    return f"{word} ({drive['size']}MB, {drive['bus']}, {_media(drive)}, {place.replace(',', ', ')}) {serial}"


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
        segment = _group(volume, index) if grouped else f"Segment {index}"
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
        label = _group(volume, index) if grouped else f"Device {drive['index']}"
        printed.append(line(layout, 3, label, _member(layout, number, controller, drive)))
    return [*printed, "", ""]


def _group(volume: State, index: int) -> str:
    """``group``: how many drives make one; two, if the volume does not say."""
    group, segment = divmod(index, volume.get("group", 2))
    return f"Group {group}, Segment {segment}"


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
        if layout_of(controller).extra_volume_sections:
            values["disk name"] = f"{volume['disk_name']} (Disk0) (Bus: 1, Target: 0, Lun: {volume['id']})"
        values["caching"] = "Enabled" if volume["caching"] else "Disabled"
        cached_by_ssds = now.container_of(controller, volume) is not None
        method = "Controller Cache" if volume["caching"] else "I/O Bypass" if volume["ssd_bypass"] else "None"
        values["ld acceleration method"] = "maxCache" if cached_by_ssds else method
    else:
        values.update(_aacraid_cache_values(controller, volume, faults))
    return {**values, **volume.get("facts", {})}


def _aacraid_cache_values(controller: State, volume: State, faults: now.Faults) -> dict[str, str | None]:
    on = now.writes_back(controller, volume, faults)
    values: dict[str, str | None] = {"write-cache status": "On" if on else "Off"}
    if layout_of(controller).words == "mode":
        guard = "battery" if controller["protection"] == "battery" else "battery/ZMM"
        values.update(
            {
                "read-cache mode": "Enabled" if volume["read"] else "Disabled",
                "write-cache mode": WRITE_CACHE["wb" if on else "wt"],
                "write-cache setting": {"wt": WRITE_CACHE["wt"], "wb": WRITE_CACHE["wb"], "wbb": f"{WRITE_CACHE['wb']} when protected by {guard}"}[
                    volume["write"]
                ],
            }
        )
    else:
        values.update(
            {
                "read-cache setting": "Enabled" if volume["read"] else "Disabled",
                "read-cache status": "On" if volume["read"] else "Off",
                "write-cache setting": {"wt": "Disabled", "wb": "Enabled", "wbb": "On when protected by battery/ZMM"}[volume["write"]],
            }
        )
    kind, settings = now.maxcache_kind(controller), volume["maxcache"]
    if kind not in ("pool", "container"):
        return values
    there = bool(controller["maxcache"]["containers"]) if kind == "container" else any(drive["pool"] for drive in controller["drives"])
    dirty = now.is_dirty(controller, volume)
    values.update(
        {
            "maxcache read cache setting": "Enabled" if settings["read"] else "Disabled",
            "maxcache read cache status": "On" if settings["read"] and there else "Off",
        }
    )
    if kind == "container" or controller["maxcache"]["write_feature"]:
        values.update(
            {
                "maxcache write cache setting": "Enabled" if settings["write"] else "Disabled",
                "maxcache write cache status": "On" if settings["write"] and there else "Off",
                "maxcache write cache policy": _MAXCACHE_POLICIES[settings["policy"]] if settings["write"] else None,
                "maxcache status": "Dirty" if dirty else "Clean" if settings["used"] or settings["write"] else None,
            }
        )
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
