# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ssacli prints: functions from a controller's state to text.

The labels are those of ``templates/ssacli.txt``.
"""

from __future__ import annotations

import typing as t

from .simulator import State
from .ssacli_models import data_drives, device_name
from .templates import entries, rows

#: Cache status and its details by fault, the strongest first. Details of a failed battery and a charging one are captured, as
#: are those of a cache that is off for good; that of a cable error is quoted in a bug report, its cache status is assumed.
_CACHE_FAULTS = (
    ("permanently_disabled", "Permanently Disabled", "Cache disabled; backup power source failed to charge to an acceptable level"),
    ("cable_error", "Permanently Disabled", "Cable Error"),
    ("battery_failed", "Temporarily Disabled", "Cache disabled; low batteries."),
    ("capacitor_charging", "Temporarily Disabled", "Cache disabled; battery/capacitor charge is low."),
)
_DISABLE_REASON = (
    "Permanent disable condition. The posted write cache has been disabled because the backup power source "
    "attached to the flash-backed write cache module has failed to charge."
)


def _block(template: str, indent: int, values: t.Mapping[str, t.Any], **parts: t.Sequence[str]) -> list[str]:
    """The lines of one template; a label whose value is ``None`` is not printed."""
    lines: list[str] = []
    for label, value in rows("ssacli", template, values, default=None):
        if label.startswith("<"):
            lines += parts[label[1:-1]]
        elif value is not None:
            lines.append(f"{label}: {value}")
    return [" " * indent + line for line in lines]


def in_hba_mode(state: State, controller: State) -> bool:
    """Whether the card shows plain drives: by nature or by fault."""
    return controller.get("mode") == "HBA" or bool(state.get("faults", {}).get("hba_mode"))


def cache_status(state: State, controller: State) -> tuple[str, str | None]:
    """Status of the cache and its details. No-battery write cache keeps it on while the battery is bad (captured on a P800)."""
    faults = state.get("faults", {})
    for fault, status, details in _CACHE_FAULTS:
        if faults.get(fault):
            if status == "Temporarily Disabled" and controller["no_battery_write_cache"]:
                return "OK", None
            return status, details
    return ("OK", None) if controller["volumes"] else ("Not Configured", None)


def battery_status(state: State, controller: State) -> str | None:
    """The word for the battery; None where there is no such line."""
    faults = state.get("faults", {})
    if not controller["power"] or faults.get("cable_error"):
        return None
    if faults.get("battery_failed") or faults.get("permanently_disabled"):
        return "Failed (Replace Batteries)"
    return "Recharging" if faults.get("capacitor_charging") else "OK"


def headline(state: State, controller: State) -> str:
    """The first line about a controller."""
    embedded = " (Embedded)" if controller["embedded"] else ""
    mode = " (HBA Mode)" if in_hba_mode(state, controller) else " (RAID Mode)" if controller.get("mode") == "RAID" else ""
    return f"{controller['product']} in Slot {controller['slot']}{embedded}{mode}"


def details(state: State, controller: State) -> str:
    """``ctrl slot=N show detail``."""
    return "\n" + "\n".join(_controller_lines(state, controller)) + "\n\n\n"


def _controller_lines(state: State, controller: State) -> list[str]:
    hba = in_hba_mode(state, controller)
    values = {**controller["lines"], "Slot": str(controller["slot"])}
    if hba:
        values.update({"HBA Mode Enabled": "True", "Controller Mode": "HBA", "Controller Mode Reboot": "Not Required"})
    lines = [headline(state, controller)]
    for label in entries("ssacli", "controller in HBA mode" if hba else "controller"):
        if label == "<cache>":
            lines += _cache_lines(state, controller)
        elif label == "<sensors>":
            lines += _sensor_lines(controller)
        elif label in values:
            lines.append(f"   {label}: {values[label]}")
    return lines


def _cache_lines(state: State, controller: State) -> list[str]:
    cache = controller["cache"]
    names = ("word", "reason", "disabled", "ratio", "nothing", "memory", "size", "available", "backed", "no_battery", "caching", "version", "power", "count")
    known: State = {**dict.fromkeys((*names, "battery", "all", "configured", "unconfigured", "hba")), **controller["drive_write_cache"], "there": bool(cache)}
    if not cache:
        return _block("cache", 3, {**known, "memory": controller.get("memory")})
    word, reason = cache_status(state, controller)
    known.update(cache, word=word, reason=reason, power=controller["power"], count=1 if controller["power"] else None)
    if state.get("faults", {}).get("permanently_disabled"):
        known["disabled"] = _DISABLE_REASON
    if word not in ("Permanently Disabled", "Not Configured"):
        known["ratio"] = f"{cache['read']}% Read / {100 - cache['read']}% Write"
    elif word == "Not Configured" and not controller["style"].get("per_class"):
        known.update(ratio="100% Read / 0% Write", nothing="0 MB")
    if cache.get("ssd_caching"):
        known.update(caching="True", version=2)
    known.update(no_battery="Enabled" if controller["no_battery_write_cache"] else "Disabled", battery=battery_status(state, controller))
    return _block("cache", 3, known)


def _sensor_lines(controller: State) -> list[str]:
    lines = []
    for number, (place, now, most) in enumerate(controller.get("sensors", [])):
        lines += [
            f"   Sensor ID: {number}",
            f"      Location: {place}",
            f"      Current Value (C): {now}",
            f"      Max Value Since Power On: {most}",
        ]
    return lines


def config_details(state: State, controller: State) -> str:
    """``ctrl … show config detail``: the controller, its ports and cages, arrays with volumes and drives, the rest."""
    style = controller["style"]
    ports = "\n\n".join("\n".join(_port_lines(controller, number, port)) for number, port in enumerate(controller["ports"]))
    cages = "\n\n\n\n".join("\n".join(_cage_lines(controller, cage)) for cage in controller["cages"])
    text = details(state, controller) + "\n" * style["gap"]
    text += f"{ports}\n\n\n{cages}\n\n\n" if style["ports_first"] else f"{cages}\n\n\n{ports}\n\n"
    if in_hba_mode(state, controller):
        return text + "   HBA Drives\n\n" + _drive_blocks(state, controller, controller["drives"]) + "\n"
    arrays = []
    for array in controller["arrays"]:
        head = "\n".join([f"   Array: {array['letter']}", *_array_lines(controller, array)])
        volumes = "\n\n\n".join("\n".join(_volume_lines(controller, volume)) for volume in controller["volumes"] if volume["array"] == array["letter"])
        arrays.append(f"{head}\n\n\n{volumes}\n\n\n" + _drive_blocks(state, controller, members(controller, array)) + "\n")
    text += "\n".join(arrays)
    free = unassigned(controller)
    if free:
        text += "   Unassigned\n\n" + _drive_blocks(state, controller, free) + "\n"
    if controller["sep"]:
        vendor, title, model, number, firmware = controller["sep"]
        text += f"   SEP (Vendor ID {vendor}, Model {title}) {number}\n      Device Number: {number}\n      Firmware Version: {firmware}\n"
        text += f"      WWID: {controller['ports'][0][1]}\n      Vendor ID: {vendor}\n      Model: {model}\n\n"
    return text


def _port_lines(controller: State, number: int, port: t.Sequence[t.Any]) -> list[str]:
    style = controller["style"]
    mode, cable = style.get("port_mode"), style.get("managed_cable")
    known = {"number": number, "address": port[1], "mode": "Mixed" if mode else None, "phys": port[2] if mode else None, "cable": "False" if cable else None}
    return [f"   Port Name: {port[0]}", *_block("port", 9, known)]


def _cage_lines(controller: State, cage: State) -> list[str]:
    lines = [f"   Internal Drive Cage at Port {cage['port']}, Box {cage['box']}, OK", ""]
    if controller["style"]["cage_power"]:
        lines.append("      Power Supply Status: Not Redundant")
    lines += [
        f"      Drive Bays: {cage['bays']}",
        f"      Port: {cage['port']}",
        f"      Box: {cage['box']}",
        "      Location: Internal",
        "",
        "   Physical Drives",
    ]
    inside = [drive for drive in controller["drives"] if (drive["port"], drive["box"]) == (cage["port"], cage["box"])]
    rows = [f"      {drive_row(drive)}" for drive in sorted(inside, key=lambda drive: drive["bay"])]
    return lines + (rows or ["      None attached"])


def _array_lines(controller: State, array: State) -> list[str]:
    style = controller["style"]
    known = {
        "interface": members(controller, array)[0]["interface"],
        "unused_text": style["unused"].replace("0 ", f"{array['unused'] // 2**20} ", 1),
        "space": size_text(array["used"], style["decimals"]),
        "full": "100.00" if style["decimals"] == 2 else "100.0",
        "multidomain": "OK" if style.get("multidomain") else None,
        "smart_path_word": None if not style.get("smart_path") else "enable" if array["smart_path"] else "disable",
    }
    return _block("array", 6, known)


def members(controller: State, array: State) -> list[State]:
    """The drives of an array."""
    return [drive for drive in controller["drives"] if place(drive) in array["drives"]]


def size_text(size: int, decimals: int) -> str:
    """A size in the tool's GB and TB, which are powers of 1024; older tools print two blanks behind less than 100 GB."""
    unit, power = next(((unit, power) for unit, power in (("TB", 40), ("GB", 30)) if size >= 2**power), ("MB", 20))
    number = f"{size / 2**power:.{decimals}f}"
    wide = decimals == 1 and unit == "GB" and len(number) < 5
    return f"{number} {' ' if wide else ''}{unit}"


def acceleration(controller: State, volume: State) -> str:
    """The acceleration method of a volume: what is set, which stays while the cache is disabled."""
    array = next(array for array in controller["arrays"] if array["letter"] == volume["array"])
    if array["smart_path"]:
        return str(controller["style"]["smart_path_text"])
    return "Controller Cache" if volume["caching"] else "All disabled"


def _volume_lines(controller: State, volume: State) -> list[str]:
    style, level, scanned = controller["style"], volume["level"], controller["style"].get("surface_scan")
    drives = members(controller, next(array for array in controller["arrays"] if array["letter"] == volume["array"]))
    half = len(drives) // 2
    mirrors: list[str] = []
    if level in ("1", "1+0"):
        for group, mirrored in enumerate((drives[:half], drives[half:]), start=1):
            mirrors += [f"Mirror Group {group}:", *(f"   {drive_row(drive)}" for drive in mirrored)]
    known = {
        **volume,
        "space": size_text(volume["size"], style["decimals"]),
        "cylinders": min(volume["size"] // (255 * 32 * 512), 65535),
        "strip": style["strip"],
        "full_stripe": style["strip"] * data_drives(level, len(drives)),
        "media_errors": "None" if style.get("media_errors") and level != "0" else None,
        "multidomain": "OK" if style.get("multidomain") else None,
        "caching_word": "Enabled" if volume["caching"] else "Disabled",
        "parity": "Initialization Completed" if level in ("5", "6") else None,
        "scanned": scanned,
        "scan_time": "2024-05-15 14:14:19" if scanned == "True" else None,
        "scan_duration": "1 hr 26 mins 52 secs" if scanned == "True" else None,
        "path_text": f"{volume['path']}{' ' if style.get('device_blank') else ''}",
        "os_status": "LOCKED" if style.get("os_status") and volume["mounts"] != "None" else None,
        "boot_word": volume.get("boot") or None,
        "label_word": volume["label"] or None,
        "method": acceleration(controller, volume),
    }
    partitions = ["Disk Partition Information", *(f"   {partition}" for partition in volume["partitions"])] if volume.get("partitions") else []
    return [f"      Logical Drive: {volume['id']}", *_block("volume", 9, known, partitions=partitions, mirrors=mirrors)]


def _drive_blocks(state: State, controller: State, drives: t.Sequence[State]) -> str:
    return "".join("\n".join(drive_lines(state, controller, drive)) + "\n\n" for drive in drives)


def drive_lines(state: State, controller: State, drive: State) -> list[str]:
    """A drive in full. The words for a drive of an HBA are those of a public capture."""
    hba = in_hba_mode(state, controller)
    used = any(place(drive) in array["drives"] for array in controller["arrays"])
    exposed = hba or (not used and bool(controller["style"].get("per_class")))
    values = dict(drive["lines"])
    if exposed:
        known = drive.get("path") if not hba or controller.get("mode") == "HBA" else None
        path = known or device_name(controller["drives"].index(drive))
        values.update({"Disk Name": f"{path}{' ' if controller['style'].get('device_blank') else ''}", "Mount Points": "None"})
    kind = "HBA Mode Drive" if hba else "Data Drive" if used else "Unassigned Drive"
    lines = [f"      physicaldrive {place(drive)}", *_block("drive", 9, {**drive, "kind": kind, "exposed": exposed})]
    return lines + [f"         {label}: {values[label]}" for label in entries("ssacli", "lines of a drive") if label in values]


def place(drive: State) -> str:
    """The name of a drive: port, box and bay."""
    return f"{drive['port']}:{drive['box']}:{drive['bay']}"


def drive_row(drive: State) -> str:
    """A drive in a line."""
    where = f"port {drive['port']}:box {drive['box']}:bay {drive['bay']}"
    return f"physicaldrive {place(drive)} ({where}, {drive['media']}, {drive['size_text']}, {drive['status']})"


def unassigned(controller: State) -> list[State]:
    """The drives that belong to no array."""
    used = {name for array in controller["arrays"] for name in array["drives"]}
    return [drive for drive in controller["drives"] if place(drive) not in used]


def volumes_details(state: State, controller: State, volumes: t.Sequence[State]) -> str:
    """``ctrl slot=N ld … show detail``."""
    blocks = [f"   Array {volume['array']}\n\n" + "\n".join(_volume_lines(controller, volume)) + "\n\n\n" for volume in volumes]
    return f"\n{headline(state, controller)}\n\n" + "".join(blocks)
