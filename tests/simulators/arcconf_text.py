# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What GETCONFIG prints: pure functions from the state of one controller to lines of text, one function per section.

A section is a list of lines and ends with the blank lines that stand before the next section. The labels are those of
``templates/arcconf.txt``, of which ``arcconf_layouts`` says which belong to which build.
"""

from __future__ import annotations

import typing as t

from . import arcconf_state as now
from .arcconf_layouts import MAIN_RULE, SHORT_RULE, WRITE_CACHE, Layout, Lines, block, labels, layout_of, line, places, section
from .simulator import State, letters
from .templates import entries

SUCCESS = "Command completed successfully."
_MAXCRYPTO_COLUMN = 59
_MAXCACHE_POLICIES = {"WB": "Write Back", "INSTWB": "Instant Write Back", "WT": "Write Through", "WBWITHWT": "Write Back with Write Through"}
_COLUMNS = "Availability (SizeMB, Protocol, Type, Connector ID, Location) Serial Number"
_SWITCH = {True: "Enabled", False: "Disabled"}
_STATUS = {True: "On", False: "Off"}
_YES = {True: "Yes", False: "No"}
_GROUPED = ("10", "50", "60")
_GLOBAL_POLICIES = {"enable": "Enabled", "disable": "Disabled", "drivespecific": "Drive Specific", None: None}


# -- the card, its cache and what protects it, its connectors


def adapter(controller: State, faults: now.Faults) -> Lines:
    """``GETCONFIG n AD``."""
    layout = layout_of(controller)
    parts = {
        "protection": lambda: protection(controller, faults),
        "maxcache properties": lambda: block(layout, "maxcache properties", 3) if now.maxcache_kind(controller) == "smart" else [],
        "sensors": lambda: _sensors(layout, controller),
        "maxcrypto": lambda: block(layout._replace(column=_MAXCRYPTO_COLUMN), "maxcrypto", 3),
        "connectors": lambda: _connectors_in_adapter(controller, faults),
    }
    return [*section("Controller information"), *block(layout, f"adapter {layout.adapter}", 3, adapter_values(controller, faults), parts), ""]


def adapter_values(controller: State, faults: now.Faults) -> dict[str, str | None]:
    """Every changing line of the adapter section, by its label in lower case."""
    volumes, maxcache = now.volumes(controller, faults), controller["maxcache"]
    pool = [drive for drive in controller["drives"] if drive["pool"]]
    cached = now.maxcache_kind(controller) in ("pool", "container")
    made = {
        **controller,
        "mode_word": now.mode(controller, faults),
        "count": len(volumes),
        "failed": sum(volume["status"] in ("Failed", "Offline") for volume in volumes),
        "degraded": sum("egraded" in volume["status"] for volume in volumes),
        "reboot": "Not Available",
        "pool": len(pool),
        "pool_size": f"{sum(drive['size'] for drive in pool) / 1026:.3f}",
        "flush_rate": maxcache["flush_rate"] if cached else None,
        "balance_words": "{},{}".format(*maxcache["balance"]) if cached else None,
        "threshold": maxcache["threshold"] if cached else None,
        "global_word": _GLOBAL_POLICIES[controller.get("global_drive_cache")],
        **dict.fromkeys(("Configured", "Unconfigured", "HBA")),
    }
    if controller["generation"] == "smart":
        made.update({kind: now.POLICY_WORDS[policy] for kind, policy in (controller["drive_policy"] or {}).items()})
    values = labels("adapter", made)
    if controller["generation"] == "smart":
        if not volumes:
            values.update(dict.fromkeys((label.casefold() for label in entries("arcconf", "without volumes")), "Not Applicable"))
        values.update(_cache_values(controller, faults))
    return {**values, **controller["facts"]}


def _cache_values(controller: State, faults: now.Faults) -> dict[str, str | None]:
    cache = controller["cache"]
    if not cache:
        return {}
    status, state, details = now.cache_module(controller, faults)
    divided = now.has_ratio(controller, faults)
    shares = {f"{kind}_share": f"{cache[kind]} percent" if divided else "Not Applicable" for kind in ("read", "write")}
    words = {"no_battery_word": _SWITCH[cache["no_battery"]], "room_word": _SWITCH[cache["wait_for_room"]]}
    return labels("cache of SmartRAID", {**cache, **shares, **words, "status": status, "state": state, "details": details})


def protection(controller: State, faults: now.Faults) -> Lines:
    """The section about battery, ZMM, cache backup unit or green backup."""
    layout, health = layout_of(controller), now.unit_health(controller, faults)
    if controller["generation"] == "smart":
        return [] if health == "missing" and not controller["protection"] else _green_backup(layout, health)
    if controller["protection"] == "battery":
        return _battery(layout, health)
    if controller["series"] in ("7", "8"):
        return _backup_unit(layout, health)
    charging = "ZMM Charging / Not Ready"
    words = {"good": "ZMM Optimal", "failed": "ZMM Failed", "learning": charging, "charging": charging, "missing": "ZMM not installed"}
    return block(layout, "ZMM", 3, word=words[health])


def _battery(layout: Layout, health: str) -> Lines:
    word = {"good": "Optimal", "failed": "Failed", "learning": "Maintenance mode", "charging": "Charging", "missing": "Not Installed"}[health]
    known = {"good": (100, "3 days, 16 hours"), "learning": (62, "2 days, 4 hours"), "charging": (35, "1 days, 6 hours")}.get(health)
    if not known:
        return block(layout, "battery", 3, word=word, fine=None, charge=None, left=None)
    return block(layout, "battery", 3, word=word, fine="No", charge=f"{known[0]} percent", left=f"{known[1]}, 0 minutes")


def _backup_unit(layout: Layout, health: str) -> Lines:
    overall = {"good": "Ready", "failed": "Not Ready", "learning": "Not Ready", "charging": "Charging", "missing": "Not Present"}[health]
    printed = block(layout, "backup unit", 3) + block(layout, "backup unit: status", 4, overall=overall)
    if health == "missing":
        return printed
    supercap = {"good": "Ready", "failed": "Fatal", "learning": "Not Ready", "charging": "Charging"}[health]
    printed += block(layout, "backup unit: type", 9, supercap=supercap)
    if health == "failed":
        return printed
    rule = " " * 9 + "-" * 35
    parts = {
        "supercap": lambda: [rule, "         Supercap Information".ljust(layout.column), rule],
        "lifetime": lambda: ["         Life-time Temperature Recorded".ljust(layout.column)],
    }
    printed += block(layout, "backup unit: supercap", 9, parts=parts, charge={"good": "100", "learning": "48", "charging": "35"}[health])
    if layout.capital or health == "learning":
        printed += block(layout, "backup unit: learning", 9, learning="Active" if health == "learning" else "Idle")
    return printed


def _green_backup(layout: Layout, health: str) -> Lines:
    words = {
        "good": "Ok",
        "failed": "Failed (Replace Batteries/Capacitors)",
        "learning": "Recharging",
        "charging": "Not Fully Charged",
        "missing": "No Battery Connected",
    }
    return block(
        layout,
        "green backup",
        3,
        word=words[health],
        count=0 if health == "missing" else 1,
        error="Charge Start Error" if health == "failed" else "No Error",
        voltage=5208 if health == "good" else 3885,
        wear=0 if health in ("failed", "missing") else 100,
        charge={"good": 100, "learning": 62}.get(health, 0),
    )


def _sensors(layout: Layout, controller: State) -> Lines:
    found = ("Inlet Ambient", "ASIC", "Top", "Bottom") if controller["series"] != "hba" else ("Inlet Ambient", "ASIC")
    return [text for index, place in enumerate(found) for text in (*block(layout, "sensor", 3, index=index, place=place), "")]


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
        if lanes:
            printed += [line(layout, indent + 3, "Connector Name", name), "", *_lanes(controller, index, indent=indent), ""]
            continue
        template = "connector" if layout.column == 46 else "connector of HBA"
        address = f"{controller['wwn'][:-1]}{index:X}"
        printed += [*block(layout, template, indent + 3, name=name, index=index, mode=now.mode(controller, faults) or "", address=address), "", ""]
    return printed


def _lanes(controller: State, connector: int, *, indent: int) -> Lines:
    layout, wwn = layout_of(controller), controller["wwn"]
    inner = 6 if indent else 3
    outer = " " * inner + "-" * (38 if indent else 67)
    printed = [outer, "   Lane Information".ljust(layout.column), outer]
    for lane in range(4):
        device = connector * 4 + lane
        printed.append(f"{' ' * inner}Lane #{lane}".ljust(layout.column))
        printed += block(layout, "lane", inner + 3, device=device, wwn=wwn, phy=device ^ 3)
        rule = " " * (inner + 3) + "-" * 35 if indent else " " * 6 + "-" * 64
        printed += [rule, f"{' ' * (inner + 3)}Lane SAS Phy Information".ljust(layout.column), rule]
        if indent:
            printed.append(f"            No SAS Phy information available for lane #{lane}        ")
        else:
            printed += block(layout, "lane phy", 9, wwn=wwn, middle=wwn[1:-1], digit=f"{device:X}")
        printed.append("")
    return printed


# -- drives and enclosures


def physical(controller: State, faults: now.Faults, only: t.Collection[tuple[int, int]] | None = None) -> Lines:
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
    printed = [
        f"      Device #{number}",
        "         Device is a Hard drive",
        *block(layout, f"drive {layout.drive}", 9, drive_values(controller, drive, faults)),
    ]
    details: dict[str, t.Callable[[], Lines]] = {
        "phy": lambda: [
            *_detail_title(layout, "Device Phy Information"),
            "         Phy #0",
            *block(layout, "phy", 12, tail=drive["wwn"][1:], wwn=controller["wwn"]),
        ],
        "runtime counters": lambda: [*_detail_title(layout, "Runtime Error Counters"), *_zeros(layout, "runtime counters"), ""],
        "smart phys": lambda: _smart_phys(layout, drive),
        "smart counters": lambda: [*_detail_title(layout, "Device Error Counters"), *_zeros(layout, "error counters"), ""],
    }
    for name in layout.device_details:
        printed += details[name]()
    if layout.device_details == ("phy",):
        printed.append("")
    return printed


def _zeros(layout: Layout, name: str) -> Lines:
    return [line(layout, 9, label, "0") for label in entries("arcconf", name)]


def _detail_title(layout: Layout, title: str) -> Lines:
    rule = "      " + "-" * 64
    text = f"      {title}"
    return [rule, text.ljust(layout.column) if layout.padded_titles else text, rule]


def _smart_phys(layout: Layout, drive: State) -> Lines:
    printed = _detail_title(layout, "Device Phy Information")
    rate = "12 Gbps" if drive["bus"] == "SAS" else "6 Gbps"
    for phy in range(_phys(drive)):
        printed += [f"         Phy #{phy}", *block(layout, "smart phy", 12, used=rate if phy == 0 else "unknown", rate=rate)]
    return [*printed, ""]


def _phys(drive: State) -> int:
    return 2 if drive["bus"] == "SAS" else 1


def _enclosure(layout: Layout, controller: State, with_channel: bool) -> Lines:
    kind = "Enclosure Services Device" if layout.capital else "Enclosure services device"
    number = len(controller["drives"]) if not layout.smart else 0
    known = labels("enclosure", {**controller["enclosure"], "short_wwn": controller["wwn"][:-1]})
    printed = ["   Channel #2:"] if layout.shows_channels and with_channel else []
    printed += [f"      Device #{number}", f"         Device is an {kind}", *block(layout, f"enclosure {layout.enclosure}", 9, known)]
    printed.append(f"         Status of {kind}")
    if controller["layout"] == "battery":
        printed.append(line(layout, 12, "Temperature", "Normal"))
    elif controller["series"] != "6":
        printed.append(line(layout, 12, "Speaker status", "Not Available" if layout.capital else "Not available"))
    return printed


def drive_values(controller: State, drive: State, faults: now.Faults) -> dict[str, str | None]:
    """Every line of a drive, by its label in lower case."""
    state = now.drive_state(controller, drive, faults)
    smart, sata, size = controller["generation"] == "smart", drive["bus"] == "SATA", drive["size"]
    raw, used = state.startswith("Raw"), state == "Online"
    exposed = raw or state == "Ready"
    made = {
        **drive,
        "state_word": state,
        "block_word": "4K Bytes" if drive["block"] == 4096 else "512 Bytes",
        "speed": f"{drive['bus']} {'3.0' if controller['layout'] == 'battery' else '12.0' if smart and not sata else '6.0'} Gb/s",
        "place": places(controller, drive)[0],
        "shelf": "2,0(0:0)" if controller["location"] == "enclosure" and controller["enclosure"] else None,
        "wwn_word": drive["wwn"] or None,
        "reserved": 32768 if smart else 538264,
        "used": f"{size - 525} MB" if used else "0 MB",
        "unused": "64 KB",
        "cache": _drive_cache_line(controller, drive, faults),
        "ssd_word": _YES[drive["ssd"]],
        "pool_word": _YES[bool(drive["pool"])],
        "ncq": "Enabled" if sata else None,
    }
    if smart:
        made["used"] = None if raw else "0 MB" if exposed else f"{size - 32} MB"
        made["unused"] = None if raw else f"{size - 32} MB" if exposed else "0 MB"
    values = labels("drive", made)
    if smart:
        values.update(labels("drive of SmartRAID", {**made, **_smart_drive(controller, drive, raw, exposed)}))
    return {**values, **drive.get("facts", {})}


def _smart_drive(controller: State, drive: State, raw: bool, exposed: bool) -> dict[str, t.Any]:
    ssd, address = drive["ssd"], [drive["channel"], drive["device"]]
    volume = next((volume for volume in controller["volumes"] if address in volume["members"]), None)
    in_maxcache = any(address in container["members"] for container in controller["maxcache"].get("containers") or [])
    return {
        "path": drive["os_path"] if exposed else None,
        "array": volume["array"] if volume and not exposed else None,
        "ncq_supported": "Supported" if drive["bus"] == "SATA" else None,
        "rotation": None if ssd else "7200 RPM",
        "phys": _phys(drive),
        "role": "HBA" if raw else "Unassigned" if exposed else "maxCache" if in_maxcache else "Data",
        "mount": "Not Mounted" if exposed else None,
        "exposed": str(exposed),
        "usage": "100 percent" if ssd else None,
        "life": "Not Applicable" if ssd else None,
        "worn": "False" if ssd else None,
    }


def _drive_cache_line(controller: State, drive: State, faults: now.Faults) -> str | None:
    hidden = faults.get("drive_write_cache_unknown")
    if not controller.get("shows_drive_cache", True) or (hidden and hidden != "unknown"):
        return None
    if hidden or drive["state"] == "Failed" or not drive["supports_cache"]:
        return "Unknown"
    return WRITE_CACHE[now.drive_cache(controller, drive, faults)]


# -- volumes, arrays and maxCache volumes


def _member(layout: Layout, number: int, controller: State, drive: State) -> str:
    """``Present (…) SERIAL``."""
    place = places(controller, drive)[1]
    serial = drive["serial"].rjust(20) if layout.padded_serials and drive["serial"] else drive["serial"]
    word = "Missing" if drive["state"] == "Failed" else "Present"
    if layout.segments == "address":
        return f"{word} ({drive['channel']},{drive['device']}) "
    if layout.segments == "place":
        return f"{word} (Controller:{number},{place}) {serial}"
    return f"{word} ({drive['size']}MB, {drive['bus']}, {'SSD' if drive['ssd'] else 'HDD'}, {place.replace(',', ', ')}) {serial}"


def _members(layout: Layout, number: int, controller: State, drives: t.Sequence[State], title: str = "", head: str = "Device ID") -> Lines:
    """The drives of something, below a title on SmartRAID."""
    titles = [SHORT_RULE, f"   {title}", SHORT_RULE, line(layout, 3, head, _COLUMNS), SHORT_RULE] if title else []
    return [*titles, *(line(layout, 3, f"Device {drive['index']}", _member(layout, number, controller, drive)) for drive in drives)]


def logical(controller: State, number: int, faults: now.Faults, only: int | None = None) -> Lines:
    """``GETCONFIG n LD [ld]``."""
    layout = layout_of(controller)
    printed = section("Logical device information", rule=SHORT_RULE if layout.column == 46 else MAIN_RULE)
    chosen = [volume for volume in now.volumes(controller, faults) if only in (None, volume["id"])]
    if not chosen:
        printed.append("   No logical devices configured")
    for volume in chosen:
        printed += _volume(layout, controller, number, volume, faults)
    # The oldest builds end at once when one volume was asked for.
    return printed if only is not None and layout.words == "mode" else [*printed, ""]


def _volume(layout: Layout, controller: State, number: int, volume: State, faults: now.Faults) -> Lines:
    device = "Device" if layout.capital else "device"
    printed = [f"Logical {device} number {volume['id']}", *block(layout, f"volume {layout.volume}", 3, volume_values(controller, volume, faults))]
    drives, grouped = now.members(controller, volume), volume["raid"] in _GROUPED
    segments = [
        line(layout, 3, _group(volume, index) if grouped else f"Segment {index}", _member(layout, number, controller, drive))
        for index, drive in enumerate(drives)
    ]
    if not layout.smart:
        rule = "   " + SHORT_RULE
        return [*printed, rule, f"   Logical {device} segment information", rule, *segments, ""]
    if layout.extra_volume_sections:
        printed += [SHORT_RULE, "   Consistency Check Information", SHORT_RULE]
        printed += [line(layout, 3, label, "Not Applicable") for label in entries("arcconf", "consistency check")]
    if grouped:
        return [*printed, *_members(layout, number, controller, (), "Logical Device segment information", "Segment"), *segments, "", ""]
    return [*printed, *_members(layout, number, controller, drives, "Array Physical Device Information"), "", ""]


def _group(volume: State, index: int) -> str:
    """``group``: how many drives make one; two, if the volume does not say."""
    group, segment = divmod(index, volume.get("group", 2))
    return f"Group {group}, Segment {segment}"


def volume_values(controller: State, volume: State, faults: now.Faults) -> dict[str, str | None]:
    """Every line of a volume, by its label in lower case."""
    drives, old, raid = now.members(controller, volume), controller["generation"] == "aacraid", volume["raid"]
    block4k, sas = any(drive["block"] == 4096 for drive in drives), any(drive["bus"] == "SAS" for drive in drives)
    made = {
        **volume,
        "disk": volume["disk_name"],
        "block_word": "4K Bytes" if block4k else "512 Bytes",
        "raid_word": "6 Reed-Solomon" if raid == "6" and old else raid,
        "short_wwn": volume["wwn"][-8:],
        "parity_status": "Completed" if raid in ("5", "6", "50", "60") else None,
        "parity": 0 if raid == "0" else volume["size"] + 10,
        "stripe": None if raid == "1" and old else "256 KB",
        "interface": "SAS 4K" if block4k else "Serial Attached SCSI" if sas else "Serial ATA",
        "device_type": "Data" if not old else "SSD" if all(drive["ssd"] for drive in drives) else "HDD",
        "boot": _YES[volume["id"] == 0],
        "caching_word": None,
        "method": None,
    }
    if old:
        return {**labels("volume", made), **_aacraid_cache_values(controller, volume, faults), **volume.get("facts", {})}
    if layout_of(controller).extra_volume_sections:
        made["disk"] = f"{volume['disk_name']} (Disk0) (Bus: 1, Target: 0, Lun: {volume['id']})"
    made["caching_word"] = _SWITCH[volume["caching"]]
    method = "Controller Cache" if volume["caching"] else "I/O Bypass" if volume["ssd_bypass"] else "None"
    made["method"] = "maxCache" if now.container_of(controller, volume) is not None else method
    return {**labels("volume", made), **volume.get("facts", {})}


def _aacraid_cache_values(controller: State, volume: State, faults: now.Faults) -> dict[str, str | None]:
    on, settings, kind = now.writes_back(controller, volume, faults), volume["maxcache"], now.maxcache_kind(controller)
    made: dict[str, t.Any] = {
        "write_status": _STATUS[on],
        "read_word": _SWITCH[bool(volume["read"])],
        "read_status": _STATUS[bool(volume["read"])],
        "write_mode": WRITE_CACHE["wb" if on else "wt"],
        "write_setting": {"wt": "Disabled", "wb": "Enabled", "wbb": "On when protected by battery/ZMM"}[volume["write"]],
        **dict.fromkeys(("max_read", "max_read_status", "max_write", "max_write_status", "max_policy", "max_status")),
    }
    if layout_of(controller).words == "mode":
        guard = "battery" if controller["protection"] == "battery" else "battery/ZMM"
        made["write_setting"] = {**WRITE_CACHE, "wbb": f"{WRITE_CACHE['wb']} when protected by {guard}"}[volume["write"]]
    if kind in ("pool", "container"):
        there = bool(controller["maxcache"]["containers"]) if kind == "container" else any(drive["pool"] for drive in controller["drives"])
        made.update(max_read=_SWITCH[settings["read"]], max_read_status=_STATUS[bool(settings["read"] and there)])
        if kind == "container" or controller["maxcache"]["write_feature"]:
            made.update(max_write=_SWITCH[settings["write"]], max_write_status=_STATUS[bool(settings["write"] and there)])
            made["max_policy"] = _MAXCACHE_POLICIES[settings["policy"]] if settings["write"] else None
            used = settings["used"] or settings["write"]
            made["max_status"] = "Dirty" if now.is_dirty(controller, volume) else "Clean" if used else None
    return labels("cache of a volume", made)


def arrays(controller: State, number: int, faults: now.Faults, only: int | None = None) -> Lines:
    """``GETCONFIG n AR [ar]``."""
    layout = layout_of(controller)
    printed = section("Array Information")
    numbers = sorted({volume["array"] for volume in now.volumes(controller, faults) if only in (None, volume["array"])})
    if not numbers:
        printed.append("   No arrays configured")
    for array in numbers:
        printed += _array(layout, controller, number, array, [volume for volume in controller["volumes"] if volume["array"] == array])
    return [*printed, ""]


def _array(layout: Layout, controller: State, number: int, array: int, volumes: t.Sequence[State]) -> Lines:
    drives = now.members(controller, volumes[0])
    block4k = any(drive["block"] == 4096 for drive in drives)
    known = all(drive["ssd"] for drive in drives) or volumes[0]["ssd_bypass"]
    printed = [f"Array Number {array}"]
    printed += block(
        layout,
        "array",
        3,
        name=letters(array).upper(),
        interface=f"{drives[0]['bus']}{' 4K' if block4k else ''}",
        total=sum(drive["size"] - 32 for drive in drives),
        block_word="4K Bytes" if block4k else "512 Bytes",
        bypass=_SWITCH[volumes[0]["ssd_bypass"]] if known else "Not Applicable",
        encryption="Disabled" if layout.extra_volume_sections else None,
    )
    printed += [SHORT_RULE, "   Array Logical Device Information", SHORT_RULE]
    printed += [line(layout, 3, "Logical ID", "Status (RAID, Interface, SizeMB) Name"), SHORT_RULE]
    for volume in volumes:
        printed.append(line(layout, 3, f"Logical {volume['id']}", f"{volume['status']} ({volume['raid']}, Data, {volume['size']} MB) {volume['name']}"))
    return [*printed, *_members(layout, number, controller, drives, "Array Physical Device Information"), "", ""]


def maxcache(controller: State, number: int) -> Lines:
    """``GETCONFIG n MC``: the maxCache volumes. Only the container of series 7 and the words for "none" have captures."""
    layout, smart = layout_of(controller), now.maxcache_kind(controller) == "smart"
    containers = controller["maxcache"].get("containers") or []
    printed = section("maxCache information" if smart else "MaxCache 3.0 information")
    if not containers:
        return [*printed, "   No maxCache Array found" if smart else "   No maxCache 3.0 found", ""]
    for container in containers:
        printed += (_smart_container if smart else _container)(layout, controller, number, container)
    return [*printed, ""]


def _dirty_word(controller: State, container: State) -> str:
    return "Dirty" if now.container_is_dirty(controller, container) else "Clean"


def _container(layout: Layout, controller: State, number: int, container: State) -> Lines:
    words = {"dirty": _dirty_word(controller, container), "redundant": _STATUS[container["raid"] in now.REDUNDANT]}
    rule = "   " + SHORT_RULE
    printed = [f"Maxcache device number {container['id']}", *block(layout, "container", 3, **{**container, **words})]
    printed += [rule, "   Logical device segment information", rule]
    for index, drive in enumerate(now.members(controller, container)):
        printed.append(line(layout, 3, f"Segment {index}", _member(layout, number, controller, drive)))
    return [*printed, ""]


def _smart_container(layout: Layout, controller: State, number: int, container: State) -> Lines:
    volume = next(volume for volume in controller["volumes"] if volume["id"] == container["data"])
    words = {"policy": _MAXCACHE_POLICIES[volume["maxcache"]["policy"]], "written": _STATUS[now.caches_writes(controller, volume)]}
    printed = [f"maxCache Logical Device number {container['id']}"]
    printed += block(layout, "smart container", 3, **{**container, **words, "dirty": _dirty_word(controller, container)})
    return [*printed, *_members(layout, number, controller, now.members(controller, container), "maxCache Array Physical Device Information"), "", ""]
