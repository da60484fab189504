# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What simulated storcli and perccli say about a controller: from the state and its faults to "Response Data".

Here it is decided what is *effective*: a card whose protection failed writes through although its volumes are configured to write
back, and shows the configured value only as ``Write Cache(initial setting)``. The labels are those of ``templates/storcli.txt``.
"""

from __future__ import annotations

import functools
import types
import typing as t

from .simulator import State
from .templates import entries, filled, names, scalar

Response = t.Dict[str, t.Any]

_SECTOR = 512
#: The clock of the simulated host stands still, so that answers can be compared.
_CLOCK = {"date": "11/21/2026", "time": "09:00:00"}
_NEXT_LEARN = "2026/12/12  04:00:00"

#: The columns of the tables and flags of the templates.
_LAYOUTS = ("sas3108", "sas3908", "sas2108", "hpe", "perc", "hba9400", "hba9500")
_FLAGS = {"Y": "Yes", "N": "No", "-": "NA", ".": None}
#: How many columns each value of a row stands for, by the number of values.
_SPREAD = {1: (7,), 2: (5, 2), 3: (5, 1, 1), 5: (1, 1, 1, 1, 1), 6: (1, 1, 1, 1, 1, 2), 7: (1,) * 7}

_TOPOLOGY_POLICY = {"Default": "dflt", "On": "enbl", "Off": "dsbl"}
_DISK_CACHE = {"Default": "Disk's Default", "On": "Enabled", "Off": "Disabled"}
_INITIAL = {"WB": "WriteBack", "WT": "WriteThrough", "AWB": "AlwaysWriteBack"}
_SOFTWARE = {"sas3108": ("FastPath", "RAID6", "RAID5"), "sas3908": ("FastPath", "SafeStore", "RAID6", "RAID5"), "hpe": ("FastPath", "SafeStore")}


class Protection(t.NamedTuple):
    """How the battery or CacheVault of a card is: the words in the different places where the tool prints it.

    :param bits: "BBU Status", a bit field of the firmware.
    :param firmware: rows of the firmware status that differ from those of a healthy unit.
    """

    fault: str | None = None
    state: str = "Optimal"
    overview: str = "Opt"
    bits: int = 0
    protects: bool = True
    attention: bool = False
    firmware: t.Mapping[str, str] = types.MappingProxyType({})


_REPLACE = {"Battery Replacement required": "Yes", "Replacement required": "Yes", "Pack is about to fail & should be replaced": "Yes"}
_PROTECTION_FAULTS = (
    Protection("battery_missing", "Missing", "Msng", 1, False, True, {"Battery Pack Missing": "Yes"}),
    Protection("battery_failed", "Failed", "Fld", 1024, False, True, _REPLACE),
    Protection("battery_degraded", "Degraded(Need Attention)", "Dgd", 32, False, True, {"Learn Cycle Requested": "Yes"}),
    Protection("learn_cycle", "Learning", "Unkwn", 64, False, False, {"Learn Cycle Active": "Yes", "Charging Status": "Discharging"}),
    Protection("capacitor_charging", "Charging", "Chrg", 8, False, False, {"Charging Status": "Charging"}),
)


class View(t.NamedTuple):
    """One controller as it is now.

    :param faults: the faults of this controller: name to details, or ``True``.
    """

    number: int
    state: State
    faults: t.Mapping[str, t.Any]

    @property
    def layout(self) -> str:
        return self.state["layout"]

    @property
    def without_raid(self) -> bool:
        """A card with RAID that was put into the mode in which it has none."""
        return not self.state["hba"] and bool(self.faults.get("hba_mode"))

    @property
    def protection(self) -> Protection | None:
        """With several faults the gravest counts; ``None`` where the card never had a unit."""
        unit = self.state["protection"]
        if not unit:
            return None
        told = next((told for told in _PROTECTION_FAULTS if self.faults.get(told.fault or "")), Protection())
        if told.fault == "learn_cycle" and unit["kind"] == "battery":
            return told._replace(state="Unknown")  # the word of a battery that was watched in its learn cycle
        return told

    @property
    def volumes(self) -> list[State]:
        return [] if self.without_raid else self.state["volumes"]

    @property
    def health(self) -> str:
        """Word of "Controller Status"."""
        if any(self.volume_state(volume) == "OfLn" for volume in self.volumes):
            return "Degraded"
        return "Needs Attention" if self.protection and self.protection.attention else "Optimal"

    @property
    def values(self) -> Response:
        """What the sections about the card itself name."""
        sections = card_sections(self.layout)
        return {
            **sections["Version"],
            **sections["PCI Version" if self.state["hba"] else "Bus"],
            **self.state,
            **_CLOCK,
            "number": self.number,
            "pci": f"00:{self.state['bus']:02x}:{self.state.get('device', 0):02x}:00",
            "personality": "HBA-Mode " if self.without_raid else "JBOD-Mode " if self.layout == "hpe" else "RAID-Mode ",
            "slot": 1 + self.number if self.layout == "hpe" else None,
        }

    def named(self, fault: str, volume: State) -> bool:
        """Whether a fault is asked for that concerns this volume: all volumes unless its details name some."""
        details = self.faults.get(fault)
        return bool(details) and (not isinstance(details, dict) or volume["id"] in details.get("volumes", [volume["id"]]))

    def volume_state(self, volume: State) -> str:
        return "OfLn" if self.named("vd_offline", volume) else "Optl"

    def effective_write(self, volume: State) -> str:
        """Write-back lasts only as long as something protects the cache; always-write-back does not ask."""
        if volume["write"] != "WB":
            return volume["write"]
        return "WB" if self.protection and self.protection.protects else "WT"

    def drives_of(self, volume: State) -> list[State]:
        return [drive for drive in self.state["drives"] if drive["group"] == volume["group"]]

    def has_ssd(self, volume: State) -> bool:
        return any(drive["media"] == "SSD" for drive in self.drives_of(volume))

    def fill(self, template: str, **values: t.Any) -> Response:
        return filled("storcli", template, {**self.values, **values})


# -- what depends only on the generation of the card


def _column(name: str, layout: str) -> Response:
    """A label may stand twice, where the generations have it at different places."""
    place = _LAYOUTS.index(layout)
    section = {}
    for entry in entries("storcli", name):
        if name.startswith("flags: "):
            label, _blank, flags = entry.rpartition(" ")
            row = [_FLAGS[flag] for flag in flags]
        else:
            label, _equals, text = entry.partition(" = ")
            values = text.split("|")
            row = [scalar(value) for value, count in zip(values, _SPREAD[len(values)]) for _column in range(count)]
        if place < len(row) and row[place] is not None:
            section[label] = row[place]
    return section


@functools.lru_cache(maxsize=None)
def card_sections(layout: str) -> t.Mapping[str, t.Any]:
    """Sections of a card between the basics and the drive groups or enclosures, in the order in which they are printed."""
    hba = layout.startswith("hba")
    if hba:
        place = _LAYOUTS.index(layout) - 5
        pairs = ((label, value.split("|")) for label, value in (entry.split(" = ") for entry in entries("storcli", "Version hba")))
        version = {label: scalar(values[place if len(values) > 1 else 0]) for label, values in pairs}
        sections: Response = {"Version": {label: value for label, value in version.items() if value is not None}}
    else:
        sections = {"Version": filled("storcli", f"Version {layout}", {})}
    for name in names("storcli"):
        kind, colon, title = name.partition(": ")
        if colon and kind in ("table", "flags"):
            if hba and title == "Bus":
                title = "PCI Version"
            elif layout == "hpe" and title == "Supported PD Operations":
                title = "Supported Drive Operations"
            sections[title] = "NA" if hba and title == "Scheduled Tasks" else _column(name, layout)
    return {title: section for title, section in sections.items() if section}


def _policies_table(layout: str, flush_interval: str) -> list[Response]:
    """The table with which the section "Policies" begins; the name of a rate differs at HPE."""
    rows = []
    for entry in entries("storcli", "policies table"):
        label, _equals, text = entry.partition(" = ")
        raid, plain, default = text.split("|")
        rows.append({"Policy": label, "Current": plain if layout.startswith("hba") else raid, "Default": default})
    if layout == "hpe":
        rows[0]["Current"] = "60 sec"
        rows[-1]["Policy"] = "Transformation Rate"
    return [*rows, {"Policy": "Cache Flush Interval", "Current": flush_interval, "Default": ""}]


# -- volumes and drives


def size_text(size: int, decimal: bool = False) -> str:
    """A size as the tool writes it: whole MiB in GB and whole GiB in TB, cut and not rounded after three places; HPE's drives are decimal."""
    if decimal:
        unit, word = (10**9, "GB") if size < 10**12 else (10**12, "TB")
        return f"{size * 100 // unit / 100:.2f} {word}"
    whole, word = (size >> 20, "GB") if size < 1 << 40 else (size >> 30, "TB")
    return f"{whole * 1000 // 1024 / 1000:.3f} {word}"


def _volume_size(view: View, size: int) -> str:
    return size_text(size).replace("B", "iB") if view.layout == "hpe" else size_text(size)


def _drive_size(view: View, size: int) -> str:
    return size_text(size, decimal=view.layout == "hpe")


def volume_row(view: View, volume: State) -> Response:
    """Row of a volume in "VD LIST", "Virtual Drives" and "/cx/vx"."""
    made = {
        **volume,
        "state": view.volume_state(volume),
        "cache": ("R" if volume["read"] == "RA" else "NR") + view.effective_write(volume) + volume["io"][0],
        "cac": "Y" if volume["ssd_caching"] else "-",
        "space": _volume_size(view, volume["size"]),
    }
    return filled("storcli", "volume row", made)


def drive_row(view: View, drive: State) -> Response:
    """Row of a drive in "PD LIST", "PDs for VD", "Drive Information" and "Drive /cx/ex/sx"."""
    hba = view.state["hba"]
    made = {
        "sector": "512B",
        **drive,
        "shelf": " " if view.state.get("ir") else view.state["enclosure"],
        "state": drive_state(view, drive),
        "dg": "-" if drive["group"] is None or view.without_raid else drive["group"],
        "space": _drive_size(view, drive["size"]),
        "unknown": "-" if hba else "N",
        "padded": _padded_model(drive),
        "spun": "-" if hba else "U",
        "type": None if hba else "JBOD" if drive.get("jbod") and view.layout == "hpe" else "-",
    }
    return filled("storcli", "drive row", made)


def drive_state(view: View, drive: State) -> str:
    if view.state.get("ir"):
        return "Online" if drive["slot"] < 2 * len(view.volumes) and not view.state["unlisted"] else "UGood"
    if drive.get("jbod"):
        # HPE's builds say so in the column Type.
        return "Onln" if view.layout == "hpe" else "JBOD"
    if view.state["hba"] or view.without_raid:
        return "JBOD"
    return "UGood" if drive["group"] is None else "Onln"


def _padded_model(drive: State) -> str:
    """SCSI gives a model 16 characters, NVMe 40; the tool prints the blanks."""
    return drive["model"].ljust({"SAS": 16, "NVMe": 40}.get(drive["interface"], 0))


def volume_properties(view: View, volume: State) -> Response:
    """Section "VDn Properties"."""
    spans, old = 2 if volume["level"] == "RAID10" else 1, view.layout == "sas2108"
    made = {
        **volume,
        "blocks": volume["size"] // volume.get("block", _SECTOR),
        "spans": spans,
        "per_span": len(view.drives_of(volume)) // spans,
        "initial": _INITIAL[volume["write"]],
        "policy": _DISK_CACHE[volume["disk_cache"]],
        "data_protection": "Disabled" if old else "None",
        "emulation": "None" if old else "default",
        "bypass_size": None if old else "Cachebypass-64k",
        "bypass_mode": None if old else "Cachebypass Intelligent",
        "unmap": "N/A" if old or view.layout == "perc" else "No",
    }
    return {label: value for label, value in filled("storcli", "volume properties", made).items() if label not in view.state["absent_labels"]}


def volumes_brief(view: View, volumes: t.Sequence[State]) -> Response:
    """Answer to ``/cx/vx show``."""
    return {"Virtual Drives": [volume_row(view, volume) for volume in volumes]}


def volumes_full(view: View, volumes: t.Sequence[State]) -> Response:
    """Answer to ``/cx/vx show all``."""
    response: Response = {}
    for volume in volumes:
        response[f"/c{view.number}/v{volume['id']}"] = [volume_row(view, volume)]
        response[f"PDs for VD {volume['id']}"] = [drive_row(view, drive) for drive in view.drives_of(volume)]
        response[f"VD{volume['id']} Properties"] = volume_properties(view, volume)
    return response


def topology(view: View) -> list[Response]:
    """The list "TOPOLOGY": each drive group, its array and its drives."""
    rows = []
    for group in sorted({volume["group"] for volume in view.volumes}):
        volumes = [volume for volume in view.volumes if volume["group"] == group]
        common = {"group": group, "policy": _TOPOLOGY_POLICY[volumes[0]["disk_cache"]], "dimmer": view.state["dimmer"]}
        size = _volume_size(view, sum(volume["size"] for volume in volumes))
        head = {"row": "-", "place": "-", "id": "-", "type": volumes[0]["level"], "state": view.volume_state(volumes[0]), "space": size, "free": "N"}
        rows += [{**common, **head, "array": array} for array in ("-", 0)]
        for drive in view.drives_of(volumes[0]):
            own = {"array": 0, "row": drive["row"], "place": f"{view.state['enclosure']}:{drive['slot']}", "id": drive["id"], "type": "DRIVE"}
            rows.append({**common, **own, "state": drive_state(view, drive), "space": _drive_size(view, drive["size"]), "free": "-"})
    return [filled("storcli", "topology row", row) for row in rows]


def _enclosures(view: View) -> list[Response]:
    hpe, hba = view.layout == "hpe", view.state["hba"]
    own = {
        "sim": 1 if view.layout in ("sas3108", "sas2108") else 0,
        "port": None if hba else "2I" if hpe else "-",
        "model": "VirtualSES" if hba else None if hpe else "SGPIO",
        "vendor": None if hpe else " ",
    }
    return [view.fill("enclosure row", count=len(view.state["drives"]), slots=view.state["slots"], **own)]


def _lists(view: View) -> Response:
    """What both ``/cx show`` and ``/cx show all`` of a card with RAID end with."""
    response: Response = {}
    rows = [drive_row(view, drive) for drive in view.state["drives"]]
    if view.volumes:
        response["Arrays" if view.layout == "hpe" else "Drive Groups"] = len({volume["group"] for volume in view.volumes})
        response["TOPOLOGY"] = topology(view)
        response["Virtual Drives"] = len(view.volumes)
        response["VD LIST"] = [volume_row(view, volume) for volume in view.volumes]
    passed = rows if view.without_raid else [drive_row(view, drive) for drive in view.state["drives"] if drive.get("jbod")]
    if passed:
        response.update({"JBOD Drives": len(passed), "JBOD LIST": passed})
    response["Physical Drives"] = len(rows)
    if rows:
        response["Drive LIST" if passed and view.layout == "hpe" else "PD LIST"] = rows
    enclosures = _enclosures(view)
    return {**response, "Enclosures": len(enclosures), "Enclosure LIST": enclosures, **unit_summary(view)}


# -- controllers


def controller_brief(view: View) -> Response:
    """Answer to ``/cx show``."""
    if not view.state["hba"]:
        shown = "Current Personality" in card_sections(view.layout)["Status"]
        return {**view.fill("brief with RAID", **({} if shown else {"personality": None})), **_lists(view)}
    if view.state.get("ir"):
        return {**view.fill("brief of IR"), **_ir_lists(view)}
    rows = [drive_row(view, drive) for drive in view.state["drives"]]
    lists = {"Physical Drives": len(rows), **({"PD LIST": rows} if rows else {}), "Requested Boot Drive": "Not Set"}
    return {**view.fill("brief without RAID"), **lists}


def controller_full(view: View) -> Response:
    """Answer to ``/cx show all``."""
    if view.state.get("ir"):
        return controller_brief(view)
    return _hba_full(view) if view.state["hba"] else _megaraid_full(view)


def _ir_lists(view: View) -> Response:
    """Drives and volumes of an adapter with IR firmware, which has no groups."""
    rows = [drive_row(view, drive) for drive in view.state["drives"]]
    response: Response = {"Physical Drives": len(rows), "PD LIST": rows}
    if view.volumes and not view.state["unlisted"]:
        listed = [view.fill("volume row of IR", number=str(one["id"]), space=_volume_size(view, one["size"]), none="") for one in view.volumes]
        response.update({"Virtual Drives": len(listed), "VD LIST": listed})
    return response


def without_rows(response: Response, details: t.Any) -> Response:
    """An answer that has lost the last row of its lists, or of one list; the numbers above them stay.

    :param details: ``True``, or ``{"list": "VD LIST"}``.
    """
    only = details.get("list") if isinstance(details, dict) else None
    return {key: value[:-1] if isinstance(value, list) and key.endswith("LIST") and only in (None, key) else value for key, value in response.items()}


def _megaraid_full(view: View) -> Response:
    state, settings = view.state, view.state["settings"]
    told, abilities = view.protection, state["abilities"]
    words = {True: "Yes", False: "No"}
    changes: dict[str, Response] = {
        "Bus": {"Bus Number": state["bus"], "Device Number": state.get("device", 0)},
        "Status": {
            "Controller Status": view.health,
            "BBU Status": told.bits if told else "NA",
            "Current Personality": view.values["personality"],
        },
        "Supported Adapter Operations": {
            "Block SSD Write Disk Cache Change": words[not abilities["change_ssd_cache"]],
            "Support JBOD Write cache": words[bool(abilities["jbod_write_cache"])],
        },
        "Supported VD Operations": {"Support SSC Association": words[bool(abilities["ssd_association"])]},
        "HwCfg": {"BBU": "Present" if told and told.fault != "battery_missing" else "Absent"},
        "Policies": {"Battery Warning": settings["batterywarning"].capitalize()},
        "Boot": {"Allow Boot with Preserved Cache": settings["bootwithpinnedcache"].capitalize()},
        "Capabilities": {"Enable JBOD": words[view.without_raid], "Enable SystemPD": words[view.without_raid]},
    }
    response: Response = {"Basics": view.fill("basics with RAID")}
    for title, section in card_sections(view.layout).items():
        changed = {**section, **{label: value for label, value in changes.get(title, {}).items() if label in section}}
        if title == "Policies":
            changed = {"Policies Table": _policies_table(view.layout, f"{settings['cacheflushint']}s"), **changed}
        if title == "HwCfg" and view.layout in _SOFTWARE:
            options = [{"Adv S/W Opt": f"MegaRAID {name}", " Time Remaining": " Unlimited", " Mode": " -"} for name in _SOFTWARE[view.layout]]
            response.update({"Advanced Software Option": options, "Safe ID": f" SIMULATED{view.number:031d}"})
        response[title] = changed
    return {**response, **_lists(view)}


def _hba_full(view: View) -> Response:
    sections = dict(card_sections(view.layout))
    sections["PCI Version"] = {**sections["PCI Version"], "Bus Number": view.state["bus"]}
    sections["Policies"] = {"Policies Table": _policies_table(view.layout, "0s"), **sections["Policies"]}
    basics = view.fill("basics without RAID", commands=sections["Capabilities"]["Max Parallel Commands"])
    return {"Basics": basics, **sections, "Enclosure Information": _enclosures(view), "Physical Device Information": drives_full(view, view.state["drives"])}


def overview_row(view: View) -> Response:
    """Row of a card in "System Overview", or without RAID in "IT System Overview"."""
    if view.state["hba"]:
        return view.fill("overview without RAID")
    told, volumes = view.protection, view.volumes
    off = [volume for volume in volumes if view.volume_state(volume) != "Optl"]
    counts = {"drives": len(view.state["drives"]), "volumes": len(volumes), "bad_volumes": len(off)}
    groups = {"groups": len({volume["group"] for volume in volumes}), "bad_groups": len({volume["group"] for volume in off})}
    words = {"bbu": told.overview if told else "N/A", "health": {"Optimal": "Opt", "Degraded": "Dgd"}.get(view.health, "NdAtn")}
    return view.fill("overview with RAID", short=view.state["product"].replace(" ", ""), **view.state["overview"], **counts, **groups, **words)


def options_row(view: View) -> Response:
    """Row of a card with RAID in "ASO", the licences for advanced options: U unlimited, X not there."""
    return filled("storcli", "options row", {"number": view.number})


# -- drives in full


def drives_brief(view: View, drives: t.Sequence[State]) -> Response:
    """Answer to ``/cx/ex/sx show``."""
    return {"Drive Information": [drive_row(view, drive) for drive in drives]}


def drives_full(view: View, drives: t.Sequence[State]) -> Response:
    """Answer to ``/cx/ex/sx show all``: the row of each drive and its detailed information."""
    response: Response = {}
    for drive in drives:
        path = f"Drive /c{view.number}/e{view.state['enclosure']}/s{drive['slot']}"
        response[path] = [drive_row(view, drive)]
        response[f"{path} - Detailed Information"] = {
            f"{path} State": _drive_health(view),
            f"{path} Device attributes": _drive_attributes(view, drive),
            f"{path} Policies/Settings": _drive_settings(view, drive),
            "Inquiry Data": _inquiry(drive),
        }
    return response


def _drive_health(view: View) -> Response:
    if view.state["hba"]:
        return filled("storcli", "drive health", {"none": "N/A", "alert": "N/A", "bad_blocks": None, "temperature": None})
    known = {"none": 0, "alert": "No", "bad_blocks": 0 if view.layout == "sas2108" else None, "temperature": " 30C (86.00 F)"}
    return filled("storcli", "drive health", known)


def drive_write_cache(view: View, drive: State) -> str:
    """Word of "Write Cache": the policy of the volumes on it, or what the drive came with; older cards do not know."""
    if view.layout in ("sas2108", "sas3108"):
        return "N/A"
    if view.without_raid or drive["group"] is None:
        policy = view.state["settings"]["jbodwritecache"].capitalize() if view.without_raid else "Default"
    else:
        policy = next((volume["disk_cache"] for volume in view.volumes if volume["group"] == drive["group"]), "Default")
    return {"On": "Enabled", "Off": "Disabled"}.get(policy, drive["write_cache"])


def _sectors(count: int) -> str:
    return f"{size_text(count * _SECTOR)} [0x{count:x} Sectors]"


def _speed(drive: State) -> str:
    return {"SAS": "12.0Gb/s", "NVMe": "8.0GT/s"}.get(drive["interface"], "6.0Gb/s")


def _drive_attributes(view: View, drive: State) -> Response:
    count, sata = drive["size"] // _SECTOR, drive["interface"] == "SATA"
    if view.state["hba"]:
        return filled("storcli", "drive attributes without RAID", {**drive, "coerced": _sectors(count), "last": count - 1})
    made = {
        **drive,
        "padded": _padded_model(drive),
        "padded_firmware": drive["firmware"].ljust(8) if sata else drive["firmware"],
        "release": None if sata else "N/A",
        "raw": _sectors(count + (1 << 21)),
        "coerced": _sectors(count),
        "speed": _speed(drive),
        "ncq": None if not sata else "N/A" if view.layout == "sas2108" else "Enabled",
        "cache": drive_write_cache(view, drive),
    }
    return filled("storcli", "drive attributes", made)


def _ports(drive: State) -> list[Response]:
    port = {"Port": 0, "Status": "Active", "Linkspeed": _speed(drive), "SAS address": f"0x{drive['wwn'].lower()}"}
    return [port, {**port, "Port": 1, "SAS address": "0x0"}] if drive["interface"] == "SAS" else [port]


def _drive_settings(view: View, drive: State) -> Response:
    hba, perc, old = view.state["hba"], view.layout == "perc", view.layout == "sas2108"
    configured = not hba and not view.without_raid and drive["group"] is not None
    sas = drive["interface"] == "SAS"
    made = {
        "position": f"DriveGroup:{drive['group']}, Span:0, Row:{drive['row']}" if configured else None,
        "shelf": "0" if hba else "1",
        "port": drive["slot"] % 8,
        "sequence": 0 if hba else 2,
        "event": "N/A" if hba else 0,
        "fde": None if hba else "None",
        "unknown": "N/A" if hba else "No",
        "no": None if hba else "No",
        "sanitize": None if hba else "Not supported",
        "formatted": ("Yes" if sas else "No") if perc else "No" if old else None,
        "pi": (2 if sas else "No PI") if perc else "No PI" if old else None,
        "user_data": "0 KB" if perc else "512B" if old else None,
        "unmap": "No" if view.layout in ("sas3908", "hpe") else None,
        "ports": _ports(drive),
    }
    return filled("storcli", "drive settings", made)


def _inquiry(drive: State) -> str:
    """A standard inquiry answer with the names of the drive in it, as bytes with a blank after each."""
    text = f"{drive['manufacturer']:8.8}{drive['model']:16.16}{drive['firmware']:4.4}{drive['serial']:20.20}".encode("ascii", "replace")
    return "".join(f"{byte:02x} " for byte in (b"\x00\x00\x07\x12\x8b\x01\x10\x02" + text).ljust(128, b"\x00"))


# -- what protects the cache


def unit_summary(view: View) -> Response:
    """The row table "BBU_Info" or "Cachevault_Info" in the summary of a controller; nothing where there is no unit."""
    unit, told = view.state["protection"], view.protection
    if not unit or not told or told.fault == "battery_missing":
        return {}
    title = "Cachevault_Info" if unit["kind"] == "cachevault" else "BBU_Info"
    return {title: [filled("storcli", f"{unit['kind']}: row", {**unit, "state": told.state, "next": _NEXT_LEARN if unit.get("learn") else None})]}


def unit_details(view: View, told: Protection) -> Response:
    """Answer to ``/cx/cv show all`` or ``/cx/bbu show all``."""
    unit = view.state["protection"]
    charge = {None: 96, "capacitor_charging": 40, "learn_cycle": 35, "battery_degraded": 60}.get(told.fault, 5)
    made = {
        **unit,
        "number": 1 + view.number,
        "state": told.state,
        "learn": _NEXT_LEARN,
        "learn_time": f"{_NEXT_LEARN} (850363200 seconds)" if unit.get("learn") else "None",
        "learn_mode": "Enabled" if unit.get("learn") else "Transparent",
        "joules": unit.get("energy", 0) // (4 if told.fault == "capacitor_charging" else 1),
        "percent": 0 if told.fault == "battery_failed" else unit.get("capacitance"),
        "low": "Yes" if charge < 10 else "No",
        "full": "Yes" if charge > 95 else "No",
        "discharging": "Yes" if told.fault == "learn_cycle" else "No",
        "charge": charge,
        "absolute": charge - 4,
        "capacity": charge * 14,
    }
    response = {}
    for title in names("storcli", f"{unit['kind']}: "):
        rows = filled("storcli", f"{unit['kind']}: {title}", made) if title != "row" else {}
        if title.endswith("Firmware_Status"):
            rows = {label: told.firmware.get(label, value) for label, value in rows.items()}
        if rows:
            response[title] = [{"Property": label, "Value": value} for label, value in rows.items()]
    return response
