# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What storcli2 prints: from a controller's state to the data of an answer. The labels are those of ``templates/storcli2.txt``.

Where nothing was captured (``show`` of a volume without ``all``, an energy pack that is not optimal) the
docstring of the function says so.
"""

from __future__ import annotations

import typing as t

from .simulator import State
from .storcli2_models import CLI_2023, size_text
from .templates import filled, names

Data = t.Dict[str, t.Any]

#: Status of the energy pack by fault. "Critical" is in Broadcom's guide of storcli2; the other words are assumed.
PACK_FAULTS = {
    "pack_missing": "Missing",
    "battery_failed": "Critical",
    "learn_cycle": "Learning",
    "capacitor_charging": "Charging",
}
_DRIVE_CACHE_SHORT = {"Disabled": "dsbl", "Enabled": "enbl", "Default": "dflt"}


def command_status(state: State, controller: str | int | None, success: bool, description: str, rows: t.Sequence[Data] = ()) -> Data:
    """The head of every answer; the number of a controller is text, except in the answer that there is none."""
    head: Data = {"CLI Version": cli_version(state), "Operating system": operating_system(state)}
    if controller is not None:
        head["Controller"] = controller
    head["Status"] = "Success" if success else "Failure"
    head["Description"] = description
    if rows:
        head["Detailed Status"] = list(rows)
    return head


def cli_version(state: State) -> str:
    """The version of the tool: as the state says, or as belongs to the first card."""
    cards = state.get("controllers") or [{}]
    return str(state.get("cli") or cards[0].get("cli") or CLI_2023)


def operating_system(state: State) -> str:
    """The kernel as the tool prints it, without a blank behind the word Linux."""
    return str(state.get("operating_system") or "Linux6.1.0-simulated-amd64")


def library_version(state: State) -> str:
    """The version of the storage library."""
    cards = state.get("controllers") or [{}]
    return str(cards[0].get("library") or "08.0507.0000")


def newer(state: State) -> bool:
    """Whether this is a tool that prints the columns ``SerialNumber`` and ``Index``."""
    return cli_version(state) >= "008.0011"


def pack_status(state: State) -> str:
    """What the energy pack says about itself."""
    faults = state.get("faults", {})
    return next((word for fault, word in PACK_FAULTS.items() if faults.get(fault)), "Optimal")


def in_hba_mode(state: State) -> bool:
    """Whether the card shows plain drives."""
    return bool(state.get("faults", {}).get("hba_mode"))


def volumes_of(state: State, controller: State) -> list[State]:
    """The volumes that the card shows: none in HBA mode."""
    return [] if in_hba_mode(state) else controller["volumes"]


def members_of(controller: State, volume: State) -> list[State]:
    """The drives of a volume."""
    return [drive for drive in controller["drives"] if drive_id(drive) in volume["drives"]]


def effective_write(state: State, volume: State) -> str:
    """The write policy in effect: WB needs a good energy pack, AWB does not."""
    return "WT" if volume["write"] == "WB" and pack_status(state) != "Optimal" else volume["write"]


def drive_id(drive: State) -> str:
    """The name of a drive: enclosure and slot."""
    return f"{drive['eid']}:{drive['slot']}"


# -- controllers


def _card_values(state: State, controller: State) -> Data:
    """What the sections about a card name.

    That a pack leads to the word "Need Attention" of Broadcom's guide is assumed, as is the word for HBA mode.
    """
    hba, pack = in_hba_mode(state), pack_status(state)
    return {
        **controller,
        "none": "",
        "library_version": library_version(state),
        "personality": "HBA" if hba else controller["personality"],
        "status": "Optimal" if pack == "Optimal" or hba else "Need Attention",
        "pack_status": pack,
        "pack_there": "Absent" if pack == "Missing" else "Present",
        "volume_count": len(volumes_of(state, controller)),
        "drive_count": len(controller["drives"]),
        "device_count": len(controller["drives"]) + len(controller["enclosures"]),
        "address": controller["sas_address"].upper(),
        "long_serial": controller["serial"].ljust(32) if newer(state) else None,
    }


def overview(state: State) -> Data:
    """``show``: all controllers in a row each; no row and no list when there is none."""
    controllers = state.get("controllers", [])
    data: Data = {
        "Number of Controllers": len(controllers),
        "Host Name": str(state.get("host_name") or "simulated-host"),
        "Operating System ": operating_system(state),
        "SL8 Library Version": library_version(state),
    }
    if not controllers:
        return data
    data["System Overview"] = [
        filled("storcli2", "overview row", {**_card_values(state, controller), "number": number}) for number, controller in enumerate(controllers)
    ]
    if not newer(state):
        options = ("RP", "R0/00", "R1/10", "R5/50", "R6/60", "JBOD")
        data["ASO"] = [{"Ctrl": number, **dict.fromkeys(options, "U")} for number in range(len(controllers))]
    return data


def _sections(state: State, controller: State) -> dict[str, Data]:
    values = _card_values(state, controller)
    return {title: filled("storcli2", f"section: {title}", values) for title in names("storcli2", "section: ")}


def controller_summary(state: State, controller: State) -> Data:
    """``/cx show``: one flat list, then the tables."""
    known = {label: value for section in _sections(state, controller).values() for label, value in section.items()}
    head = filled("storcli2", "summary", controller, default="")
    return {**{label: value or known[label] for label, value in head.items()}, **tables(state, controller)}


def controller_details(state: State, controller: State) -> Data:
    """``/cx show all``: the sections, then the same tables as ``/cx show``."""
    return {**_sections(state, controller), **tables(state, controller)}


def tables(state: State, controller: State) -> Data:
    """The tables behind ``/cx show`` and ``/cx show all``. That a table without rows is left out is assumed (storcli does so)."""
    volumes = volumes_of(state, controller)
    data: Data = {}
    if volumes:
        data["Drive Groups"] = len({volume["group"] for volume in volumes})
        data["TOPOLOGY"] = [row for volume in volumes for row in _topology(controller, volume)]
        data["Virtual Drives"] = len(volumes)
        data["VD LIST"] = [volume_row(state, volume) for volume in volumes]
    if controller["drives"]:
        data["Physical Drives"] = len(controller["drives"])
        data["PD LIST"] = [drive_row(state, drive) for drive in controller["drives"]]
        data["LU/NS LIST"] = [_unit_row(state, drive, newer(state)) for drive in controller["drives"]]
    data["Enclosures"] = len(controller["enclosures"])
    data["Enclosure List"] = [
        filled("storcli2", "enclosure row", {**shelf, "count": sum(drive["eid"] == shelf["eid"] for drive in controller["drives"])})
        for shelf in controller["enclosures"]
    ]
    status = pack_status(state)
    if status != "Missing":
        data["Energy Pack Info"] = [filled("storcli2", "pack row", {**controller["energy_pack"], "status": status})]
    return data


def _topology(controller: State, volume: State) -> list[Data]:
    common = {"group": volume["group"], "policy": _DRIVE_CACHE_SHORT[volume["drive_cache"]]}
    head = {"row": "-", "name": "-", "pid": "-", "type": volume["level"], "state": "-", "status": "-", "space": size_text(volume["size"]), "free": "N"}
    rows = [{**head, "span": span} for span in ("-", 0)]
    for number, drive in enumerate(members_of(controller, volume)):
        rows.append({**drive, "span": 0, "row": number, "name": drive_id(drive), "type": "DRIVE", "space": size_text(drive["size"]), "free": "-"})
    return [filled("storcli2", "topology row", {**row, **common}) for row in rows]


# -- volumes and drives


def volume_row(state: State, volume: State) -> Data:
    """The row of a volume: what it is set to, and what is in effect while the energy pack is as it is."""
    words = {"read_word": {"RA": "RA", "NoRA": "NR"}[volume["read"]], "effective": effective_write(state, volume)}
    return filled("storcli2", "volume row", {**volume, **words, "space": size_text(volume["size"])})


def volume_details(state: State, controller: State, volume: State) -> Data:
    """``/cx/vx show all``: one entry of the list ``Virtual Drives``.

    The serial number is made of the bytes of the NAA id from behind, without the first, filled with zero in front.
    """
    members = members_of(controller, volume)
    pairs = [volume["wwn"][place : place + 2] for place in range(0, len(volume["wwn"]), 2)]
    made = {
        **volume,
        "blocks": volume["size"] // 4096,
        "emulated_word": "Yes" if volume["emulated"] else None,
        "members": len(members),
        "swapped": "00" + "".join(reversed(pairs[1:])),
    }
    properties = filled("storcli2", "volume properties", made)
    return {"VD Info": volume_row(state, volume), "PDs": [drive_row(state, drive) for drive in members], "VD Properties": properties}


def drive_row(state: State, drive: State) -> Data:
    """The row of a drive. That a drive is a JBOD in HBA mode is assumed."""
    made = {**drive, "dg": "-" if drive["group"] is None else drive["group"], "space": size_text(drive["size"])}
    if in_hba_mode(state):
        made.update(state="JBOD", status="Online", dg="-")
    return filled("storcli2", "drive row", made)


def _unit_row(state: State, drive: State, with_index: bool) -> Data:
    made = {**drive, "index": 255 if with_index else None, "space": size_text(drive["size"])}
    return filled("storcli2", "unit row", {**made, "status": "Online"} if in_hba_mode(state) else made)


def drive_details(state: State, controller: State, drive: State) -> Data:
    """``/cx/ex/sx show all``: one entry of ``Drives List``; a drive of a volume has a place, a free one has erase types."""
    row = drive_row(state, drive)
    place = next((number for number, shelf in enumerate(controller["enclosures"]) if shelf["eid"] == drive["eid"]), 0)
    volume = next((volume for volume in controller["volumes"] if drive_id(drive) in volume["drives"]), None)
    configured = row["State"] == "Conf"
    made = {**drive, "raw": _sectors(drive["size"] + 2**29), "coerced": _sectors(drive["size"])}
    made["position"] = f"DriveGroup:{drive['group']}, Span:0, Row:{volume['drives'].index(drive_id(drive))}" if configured and volume else None
    made["erase"] = None if configured else "Sanitize Overwrite"
    made["rpm"] = 7200 if drive["medium"] == "HDD" else None
    made["paths"] = [filled("storcli2", "path row", {**drive, "address": f"0x{int(drive['wwn'], 16) + 1:016x}", "connector": 2 * place + 1})]
    made["connectors"] = [{"ConnId": place + 1, "Name": f"C{place}.{lane}", "Location": "Internal", "Type": "SFF-8654 8I"} for lane in (0, 1)]
    made["unit"] = filled("storcli2", "unit properties", made)
    made["inquiry"] = "00 " * 144
    details = filled("storcli2", "drive details", made, default="No")
    return {"Drive Information": row, "LU/NS Information": [_unit_row(state, drive, False)], "Drive Detailed Information": details}


def _sectors(size: int) -> str:
    return f"{size_text(size)} [0x{size // 512:x} Sectors]"
