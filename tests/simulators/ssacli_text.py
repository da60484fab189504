# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ssacli prints: functions from a controller's state to text.

Labels, order, indents and blank lines are those of public captures of ``ctrl all show config detail``, ``ctrl slot=0 show
detail`` and ``ctrl slot=0 ld all show detail``. Each card has only some of the labels; the order is the same for all.
"""

from __future__ import annotations

import typing as t

from .simulator import State
from .ssacli_models import device_name

#: Lines of a controller in the order of the tool. ``@`` names a block that is computed from the state.
CONTROLLER_LINES = (
    "Bus Interface",
    "Slot",
    "Serial Number",
    "Cache Serial Number",
    "RAID 6 (ADG) Status",
    "RAID 6 Status",
    "Controller Status",
    "Hardware Revision",
    "Firmware Version",
    "Firmware Supports Online Firmware Activation",
    "Rebuild Priority",
    "Expand Priority",
    "Surface Scan Delay",
    "Surface Scan Mode",
    "Parallel Surface Scan Supported",
    "Current Parallel Surface Scan Count",
    "Max Parallel Surface Scan Count",
    "Queue Depth",
    "Monitor and Performance Delay",
    "Elevator Sort",
    "Degraded Performance Optimization",
    "Inconsistency Repair Policy",
    "Write Cache Bypass Threshold Size",
    "Wait for Cache Room",
    "Surface Analysis Inconsistency Notification",
    "Post Prompt Timeout",
    "@cache",
    "SATA NCQ Supported",
    "Spare Activation Mode",
    "Spare Spindown Policy Supported",
    "Controller Temperature (C)",
    "Cache Module Temperature (C)",
    "Capacitor Temperature  (C)",
    "Number of Ports",
    "Encryption",
    "Express Local Encryption",
    "SED Based Encryption Supported",
    "SED Encryption",
    "Driver Name",
    "Driver Version",
    "HBA Mode Enabled",
    "Driver Supports SSD Smart Path",
    "WWN Port",
    "PCI Address (Domain:Bus:Device.Function)",
    "Negotiated PCIe Data Rate",
    "Controller Mode",
    "Controller Mode Reboot",
    "Pending Controller Mode",
    "Port Max Phy Rate Limiting Supported",
    "Latency Scheduler Setting",
    "Current Power Mode",
    "Survival Mode",
    "Host Serial Number",
    "Sanitize Erase Supported",
    "Sanitize Lock",
    "@sensors",
    "Primary Boot Volume",
    "Secondary Boot Volume",
    "SPDM Supports Get Slot Certificate Chain",
    "SPDM Supports Get Controller Info       ",
    "SPDM Supports Get Slot Info             ",
    "SPDM Supports Set Import Certificate    ",
    "SPDM Supports Set Invalidate Slot       ",
    "Surface Scan Completion Supported",
    "Persistent Event Log Policy Change Supported",
    "UEFI Health Reporting Mode Supported",
    "Firmware Supports NVMe Log Pages",
    "Firmware Supports NAND Field",
    "Firmware Supports NOR Field",
)
#: What is left of them in HBA mode (captured from cards of generation 9; newer ones are assumed to do likewise).
HBA_LINES = frozenset(
    {
        "Bus Interface",
        "Slot",
        "Serial Number",
        "Cache Serial Number",
        "Controller Status",
        "Hardware Revision",
        "Firmware Version",
        "Controller Temperature (C)",
        "Cache Module Temperature (C)",
        "Number of Ports",
        "Driver Name",
        "Driver Version",
        "HBA Mode Enabled",
        "PCI Address (Domain:Bus:Device.Function)",
        "Negotiated PCIe Data Rate",
        "Controller Mode",
        "Controller Mode Reboot",
        "Current Power Mode",
        "Host Serial Number",
    }
)
#: Lines of a drive behind those that every drive has.
DRIVE_LINES = (
    "Logical/Physical Block Size",
    "Rotational Speed",
    "Firmware Revision",
    "Serial Number",
    "WWID",
    "Model",
    "SATA NCQ Capable",
    "SATA NCQ Enabled",
    "Current Temperature (C)",
    "Maximum Temperature (C)",
    "Usage remaining",
    "Power On Hours",
    "Estimated Life Remaining based on workload to date",
    "SSD Smart Trip Wearout",
    "PHY Count",
    "PHY Transfer Rate",
    "PHY Physical Link Rate",
    "PHY Maximum Link Rate",
    "Drive Authentication Status",
    "Carrier Application Version",
    "Carrier Bootloader Version",
    "Disk Name",
    "Mount Points",
    "Sanitize Erase Supported",
    "Sanitize Freeze Lock Supported",
    "Sanitize Anti-Freeze Lock Supported",
    "Sanitize Lock",
    "Sanitize Estimated Max Erase Time",
    "Unrestricted Sanitize Supported",
    "Shingled Magnetic Recording Support",
    "Drive Unique ID",
    "Multi-Actuator Drive",
)

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
_POLICY_LABELS = {
    "all": "Drive Write Cache",
    "configured": "Configured Drive Write Cache Policy",
    "unconfigured": "Unconfigured Drive Write Cache Policy",
    "hba": "HBA Drive Write Cache Policy",
}


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


def listed(state: State, controllers: t.Sequence[State]) -> str:
    """``ctrl all show``."""
    return "".join(f"\n{headline(state, card)}  (sn: {card['lines']['Serial Number']})\n" for card in controllers) + "\n"


def status(state: State, controller: State) -> str:
    """``ctrl … show status``."""
    lines = [headline(state, controller), "   Controller Status: OK"]
    if controller["cache"] and not in_hba_mode(state, controller):
        lines.append(f"   Cache Status: {cache_status(state, controller)[0]}")
        battery = battery_status(state, controller)
        if battery:
            lines.append(f"   Battery/Capacitor Status: {battery}")
    return "\n" + "\n".join(lines) + "\n\n"


def details(state: State, controller: State) -> str:
    """``ctrl slot=N show [detail]``."""
    return "\n" + "\n".join(_controller_lines(state, controller)) + "\n\n\n"


def _controller_lines(state: State, controller: State) -> list[str]:
    hba = in_hba_mode(state, controller)
    values = {**controller["lines"], "Slot": str(controller["slot"])}
    if hba:
        values.update({"HBA Mode Enabled": "True", "Controller Mode": "HBA", "Controller Mode Reboot": "Not Required"})
    lines = [headline(state, controller)]
    for label in CONTROLLER_LINES:
        if hba and label not in HBA_LINES:
            continue
        if label == "@cache":
            lines += [f"   {line}" for line in _cache_lines(state, controller)]
        elif label == "@sensors":
            lines += _sensor_lines(controller)
        elif label in values:
            lines.append(f"   {label}: {values[label]}")
    return lines


def _cache_lines(state: State, controller: State) -> list[str]:
    cache = controller["cache"]
    policies = [f"{_POLICY_LABELS[kind]}: {value}" for kind, value in controller["drive_write_cache"].items()]
    if not cache:
        memory = controller.get("memory")
        return ["Cache Board Present: False", *policies, *([f"Controller Memory Size: {memory}"] if memory else [])]
    word, reason = cache_status(state, controller)
    lines = ["Cache Board Present: True", f"Cache Status: {word}"]
    if reason:
        lines.append(f"Cache Status Details: {reason}")
    if state.get("faults", {}).get("permanently_disabled"):
        lines.append(f"Cache Disable Reason: {_DISABLE_REASON}")
    if word not in ("Permanently Disabled", "Not Configured"):
        lines.append(f"Cache Ratio: {cache['read']}% Read / {100 - cache['read']}% Write")
    elif word == "Not Configured" and not controller["style"].get("per_class"):
        lines += ["Cache Ratio: 100% Read / 0% Write", "Read Cache Size: 0 MB", "Write Cache Size: 0 MB"]
    lines += [*policies, f"Total Cache Size: {cache['size']}", f"Total Cache Memory Available: {cache['available']}"]
    if cache.get("backed"):
        lines.append(f"Battery Backed Cache Size: {cache['backed']}")
    lines.append(f"No-Battery Write Cache: {'Enabled' if controller['no_battery_write_cache'] else 'Disabled'}")
    if cache.get("ssd_caching"):
        lines += ["SSD Caching RAID5 WriteBack Enabled: True", "SSD Caching Version: 2"]
    battery = battery_status(state, controller)
    if controller["power"]:
        lines += [f"Cache Backup Power Source: {controller['power']}", "Battery/Capacitor Count: 1"]
    if battery:
        lines.append(f"Battery/Capacitor Status: {battery}")
    return lines


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
        members = [drive for drive in controller["drives"] if place(drive) in array["drives"]]
        arrays.append(f"{head}\n\n\n{volumes}\n\n\n" + _drive_blocks(state, controller, members) + "\n")
    text += "\n".join(arrays)
    free = unassigned(controller)
    if free:
        text += "   Unassigned\n\n" + _drive_blocks(state, controller, free) + "\n"
    if controller["sep"]:
        vendor, title, model, number, firmware = controller["sep"]
        text += f"   SEP (Vendor ID {vendor}, Model {title}) {number}\n      Device Number: {number}\n      Firmware Version: {firmware}\n"
        text += f"      WWID: {controller['ports'][0][1]}\n      Vendor ID: {vendor}\n      Model: {model}\n\n"
    return text


def config(state: State, controller: State) -> str:
    """``ctrl … show config``."""
    text = f"\n{headline(state, controller)}  (sn: {controller['lines']['Serial Number']})\n\n\n\n"
    cages = [
        f"   Internal Drive Cage at Port {cage['port']}, Box {cage['box']}{f' (Index {number})' if 'per_class' in controller['style'] else ''}, OK\n"
        for number, cage in enumerate(controller["cages"])
    ]
    text += "\n\n\n".join(cages) + "\n\n"
    mode = " (Mixed)" if controller["style"].get("port_mode") else ""
    text += "\n".join(f"   Port Name: {port[0]}{mode}\n" for port in controller["ports"]) + "\n"
    if in_hba_mode(state, controller):
        return text + "   HBA Drives\n\n" + "".join(f"      {drive_row(drive)}\n" for drive in controller["drives"]) + "\n"
    blocks = []
    for array in controller["arrays"]:
        members = [drive for drive in controller["drives"] if place(drive) in array["drives"]]
        block = f"   Array {array['letter']} ({members[0]['interface']}, Unused Space: {array['unused'] // 2**20}  MB)\n\n"
        block += "".join(f"      {volume_row(controller, volume)}\n" for volume in controller["volumes"] if volume["array"] == array["letter"])
        blocks.append(block + "\n" + "".join(f"      {drive_row(drive)}\n" for drive in members))
    text += "\n\n".join(blocks) + "\n"
    free = unassigned(controller)
    if free:
        text += "   Unassigned\n\n" + "".join(f"      {drive_row(drive)}\n" for drive in free) + "\n"
    if controller["sep"]:
        vendor, title, _model, number, _firmware = controller["sep"]
        text += f"   SEP (Vendor ID {vendor}, Model {title}) {number}  (WWID: {controller['ports'][0][1]})\n\n"
    return text


def _port_lines(controller: State, number: int, port: t.Sequence[t.Any]) -> list[str]:
    lines = [f"   Port Name: {port[0]}", f"         Port ID: {number}"]
    if controller["style"].get("port_mode"):
        lines.append("         Port Mode: Mixed")
    lines += [f"         Port Connection Number: {number}", f"         SAS Address: {port[1]}", "         Port Location: Internal"]
    if controller["style"].get("port_mode"):
        lines.append(f"         Port Phy Count: {port[2]}")
    if controller["style"].get("managed_cable"):
        lines.append("         Managed Cable Connected: False")
    return lines


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
    members = [drive for drive in controller["drives"] if place(drive) in array["drives"]]
    full = "100.00" if style["decimals"] == 2 else "100.0"
    unused = style["unused"].replace("0 ", f"{array['unused'] // 2**20} ", 1)
    lines = [
        f"Interface Type: {members[0]['interface']}",
        f"Unused Space: {unused}",
        f"Used Space: {size_text(array['used'], style['decimals'])} ({full}%)",
        "Status: OK",
    ]
    if style.get("multidomain"):
        lines.append("MultiDomain Status: OK")
    lines.append("Array Type: Data")
    if style.get("smart_path"):
        lines.append(f"Smart Path: {'enable' if array['smart_path'] else 'disable'}")
    return [f"      {line}" for line in lines]


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
    style = controller["style"]
    array = next(array for array in controller["arrays"] if array["letter"] == volume["array"])
    members = [drive for drive in controller["drives"] if place(drive) in array["drives"]]
    share = {"0": len(members), "1": 1, "1+0": len(members) // 2, "5": len(members) - 1, "6": len(members) - 2}[volume["level"]]
    redundant = volume["level"] != "0"
    lines = [
        f"Size: {size_text(volume['size'], style['decimals'])}",
        f"Fault Tolerance: {volume['level']}",
        "Heads: 255",
        "Sectors Per Track: 32",
        f"Cylinders: {min(volume['size'] // (255 * 32 * 512), 65535)}",
        f"Strip Size: {style['strip']} KB",
        f"Full Stripe Size: {style['strip'] * share} KB",
        "Status: OK",
    ]
    if style.get("media_errors") and redundant:
        lines.append("Unrecoverable Media Errors: None")
    if style.get("multidomain"):
        lines.append("MultiDomain Status: OK")
    lines.append(f"Caching:  {'Enabled' if volume['caching'] else 'Disabled'}")
    if volume["level"] in ("5", "6"):
        lines.append("Parity Initialization Status: Initialization Completed")
    scanned = style.get("surface_scan")
    if scanned:
        lines.append(f"Last Surface Scan Completed: {scanned}")
    if scanned == "True":
        lines += ["Last Surface Scan Completion Timestamp: 2024-05-15 14:14:19", "Last Surface Scan Duration: 1 hr 26 mins 52 secs"]
    lines += [
        f"Unique Identifier: {volume['wwn']}",
        f"Disk Name: {volume['path']}{' ' if style.get('device_blank') else ''}",
        f"Mount Points: {volume['mounts']}",
    ]
    if volume.get("partitions"):
        lines += ["Disk Partition Information", *(f"   {partition}" for partition in volume["partitions"])]
    if style.get("os_status") and volume["mounts"] != "None":
        lines.append("OS Status: LOCKED")
    if volume.get("boot"):
        lines.append(f"Boot Volume: {volume['boot']}")
    if volume["label"]:
        lines.append(f"Logical Drive Label: {volume['label']}")
    if volume["level"] in ("1", "1+0"):
        half = len(members) // 2
        for group, drives in enumerate((members[:half], members[half:]), start=1):
            lines.append(f"Mirror Group {group}:")
            lines += [f"   {drive_row(drive)}" for drive in drives]
    lines += ["Drive Type: Data", f"LD Acceleration Method: {acceleration(controller, volume)}"]
    return [f"      Logical Drive: {volume['id']}", *(f"         {line}" for line in lines)]


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
    lines = [
        f"      physicaldrive {place(drive)}",
        f"         Port: {drive['port']}",
        f"         Box: {drive['box']}",
        f"         Bay: {drive['bay']}",
        f"         Status: {drive['status']}",
        f"         Drive Type: {'HBA Mode Drive' if hba else 'Data Drive' if used else 'Unassigned Drive'}",
        f"         Interface Type: {drive['interface']}",
        f"         Size: {drive['size_text']}",
        f"         Drive exposed to OS: {exposed}",
    ]
    return lines + [f"         {label}: {values[label]}" for label in DRIVE_LINES if label in values]


def place(drive: State) -> str:
    """The name of a drive: port, box and bay."""
    return f"{drive['port']}:{drive['box']}:{drive['bay']}"


def drive_row(drive: State) -> str:
    """A drive in a line."""
    where = f"port {drive['port']}:box {drive['box']}:bay {drive['bay']}"
    return f"physicaldrive {place(drive)} ({where}, {drive['media']}, {drive['size_text']}, {drive['status']})"


def volume_row(controller: State, volume: State) -> str:
    """A volume in a line."""
    return f"logicaldrive {volume['id']} ({size_text(volume['size'], controller['style']['decimals'])}, RAID {volume['level']}, OK)"


def unassigned(controller: State) -> list[State]:
    """The drives that belong to no array."""
    used = {name for array in controller["arrays"] for name in array["drives"]}
    return [drive for drive in controller["drives"] if place(drive) not in used]


def volumes_details(state: State, controller: State, volumes: t.Sequence[State]) -> str:
    """``ctrl slot=N ld … show detail``."""
    blocks = [f"   Array {volume['array']}\n\n" + "\n".join(_volume_lines(controller, volume)) + "\n\n\n" for volume in volumes]
    return f"\n{headline(state, controller)}\n\n" + "".join(blocks)


def volumes_listed(state: State, controller: State, volumes: t.Sequence[State]) -> str:
    """``ctrl slot=N ld all show``."""
    blocks = [f"   Array {volume['array']}\n\n      {volume_row(controller, volume)}\n\n" for volume in volumes]
    return f"\n{headline(state, controller)}\n\n" + "".join(blocks)


def volumes_status(controller: State, volumes: t.Sequence[State]) -> str:
    """``ctrl slot=N ld … show status``."""
    size = controller["style"]["decimals"]
    rows = [f"   logicaldrive {volume['id']} ({size_text(volume['size'], size)}, RAID {volume['level']}): OK\n" for volume in volumes]
    return "\n" + "".join(rows) + "\n"


def drives_listed(state: State, controller: State, drives: t.Sequence[State], in_full: bool) -> str:
    """``ctrl slot=N pd … show [detail]``."""
    text = f"\n{headline(state, controller)}\n\n"
    hba = in_hba_mode(state, controller)
    groups = [] if hba else [(f"Array {array['letter']}", set(array["drives"])) for array in controller["arrays"]]
    groups.append(("HBA Drives" if hba else "Unassigned", {place(drive) for drive in (controller["drives"] if hba else unassigned(controller))}))
    for title, names in groups:
        chosen = [drive for drive in drives if place(drive) in names]
        if chosen:
            body = _drive_blocks(state, controller, chosen) if in_full else "".join(f"      {drive_row(drive)}\n" for drive in chosen)
            text += f"   {title}\n\n{body}\n"
    return text


def drives_status(drives: t.Sequence[State]) -> str:
    """``ctrl slot=N pd … show status``."""
    rows = [
        f"   physicaldrive {place(drive)} (port {drive['port']}:box {drive['box']}:bay {drive['bay']}, {drive['size_text']}): {drive['status']}\n"
        for drive in drives
    ]
    return "\n" + "".join(rows) + "\n"


def arrays_details(state: State, controller: State, arrays: t.Sequence[State]) -> str:
    """``ctrl slot=N array … show [detail]`` (not captured on its own; the lines are those of the full configuration)."""
    blocks = ["\n".join([f"   Array: {array['letter']}", *_array_lines(controller, array)]) + "\n\n\n" for array in arrays]
    return f"\n{headline(state, controller)}\n\n" + "".join(blocks)
