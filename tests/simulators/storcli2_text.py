# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What storcli2 prints: functions from a controller's state to the data of an answer, and from that data to its JSON.

Labels, their order and their types are those of the public captures of storcli2 008.0005 and 008.0011. Where nothing was
captured (``show`` of a volume without ``all``, the text without ``J``, an energy pack that is not optimal) the docstring of
the function says so.
"""

from __future__ import annotations

import json
import typing as t

from .simulator import State
from .storcli2_models import CLI_2023, size_text

Data = t.Dict[str, t.Any]

#: Status of the energy pack by fault. "Critical" is in Broadcom's guide of storcli2; the other words are assumed.
PACK_FAULTS = {
    "pack_missing": "Missing",
    "battery_failed": "Critical",
    "learn_cycle": "Learning",
    "capacitor_charging": "Charging",
}
_DRIVE_CACHE_SHORT = {"Disabled": "dsbl", "Enabled": "enbl", "Default": "dflt"}


def rendered(answers: t.Sequence[Data], blank: bool = True) -> str:
    """The tool's JSON: tabs, ``"key" : value``, one controller after the other, and an empty line behind it."""
    blocks = ["{\n" + _members(answer, 1) + "\n}" for answer in answers]
    return '{\n"Controllers":[\n' + ",\n".join(blocks) + "\n]\n}\n" + ("\n" if blank else "")


def _members(values: Data, depth: int) -> str:
    tabs = "\t" * depth
    return ",\n".join(f"{tabs}{json.dumps(key)} : {_value(value, depth)}" for key, value in values.items())


def _value(value: t.Any, depth: int) -> str:
    tabs = "\t" * depth
    if isinstance(value, dict):
        return "{\n" + _members(value, depth + 1) + f"\n{tabs}}}"
    if isinstance(value, list):
        if not value:
            return "[]"
        rows = ",\n".join(f"{tabs}\t{_value(row, depth + 1)}" for row in value)
        return f"[\n{rows}\n{tabs}]"
    return json.dumps(value, ensure_ascii=False)


def as_text(answers: t.Sequence[Data]) -> str:
    """The same without ``J``. Only the head of this form is known from captures; the body is assumed."""
    lines: list[str] = []
    for answer in answers:
        status = answer["Command Status"]
        lines += [f"{key} = {value}" for key, value in status.items() if not isinstance(value, list)] + [""]
        lines += _text_lines({**{k: v for k, v in status.items() if isinstance(v, list)}, **answer.get("Response Data", {})})
        lines.append("")
    return "\n".join(lines) + "\n"


def _text_lines(values: Data) -> list[str]:
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += ["", f"{key} :", "=" * len(f"{key} :"), "", *_text_lines(value)]
        elif isinstance(value, list):
            lines += ["", f"{key} :", "=" * len(f"{key} :"), ""]
            for row in value:
                lines += _text_lines(row) if isinstance(row, dict) else [str(row)]
        else:
            lines.append(f"{key} = {value}")
    return lines


def table(text: str, default: str = "Yes", numbers: bool = False) -> Data:
    """Lines ``label`` or ``label = value`` as a section; a label alone has the default."""
    section: Data = {}
    for line in text.strip().splitlines():
        label, equals, value = line.partition(" =")
        value = value.strip() if equals else default
        section[label] = int(value) if numbers and value.isdigit() else value
    return section


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


def controller_status(state: State) -> str:
    """The word for the whole controller. "Need Attention" is in Broadcom's guide; that a pack leads to it is assumed."""
    return "Optimal" if pack_status(state) == "Optimal" or in_hba_mode(state) else "Need Attention"


def volumes_of(state: State, controller: State) -> list[State]:
    """The volumes that the card shows: none in HBA mode."""
    return [] if in_hba_mode(state) else controller["volumes"]


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
    data["System Overview"] = [_overview_row(state, number, controller) for number, controller in enumerate(controllers)]
    if not newer(state):
        options = ("RP", "R0/00", "R1/10", "R5/50", "R6/60", "JBOD")
        data["ASO"] = [{"Ctrl": number, **dict.fromkeys(options, "U")} for number in range(len(controllers))]
    return data


def _overview_row(state: State, number: int, controller: State) -> Data:
    row = {
        "Ctrl": number,
        "Product Name": controller["product"],
        "SASAddress": controller["sas_address"].upper(),
        "Personality": personality(state, controller),
        "Status": controller_status(state),
        "PD(s)": len(controller["drives"]),
        "VD(s)": len(volumes_of(state, controller)),
        "VNOpt": 0,
        "EPack": pack_status(state),
    }
    if newer(state):
        row["SerialNumber"] = controller["serial"].ljust(32)
    return row


def personality(state: State, controller: State) -> str:
    """RAID as captured; the word for HBA mode is assumed."""
    return "HBA" if in_hba_mode(state) else controller["personality"]


def controller_summary(state: State, controller: State) -> Data:
    """``/cx show``: one flat list, then the tables."""
    clock = controller["time"]
    head: Data = {
        "Product Name": controller["product"],
        "Board Name": controller["board"].ljust(32),
        "Board Assembly": controller["assembly"].ljust(32),
        "Board Tracer Number": controller["serial"].ljust(32),
        "Board Revision": controller["board_revision"].ljust(8),
        "Chip Name": controller["chip"].ljust(32),
        "Chip Revision": controller["chip_revision"].ljust(8),
        "Package Version": controller["package"],
        "Firmware Version": controller["firmware"],
        "Firmware Security Version Number": controller["firmware_security"],
        "NVDATA Version": controller["nvdata"],
        "Driver Name": controller["driver_name"],
        "Driver Version": controller["driver"],
        "SAS Address": controller["sas_address"],
        "Serial Number": controller["serial"].ljust(32),
        "Controller Time(LocalTime yyyy/mm/dd hh:mm:sec)": clock,
        "System Time(LocalTime yyyy/mm/dd hh:mm:sec)": clock,
        "Board Mfg Date(yyyy/mm/dd)": controller["manufactured"],
        "Controller Personality": personality(state, controller),
        "Max PCIe Link Rate": controller["max_link_rate"],
        "Max PCIe Port Width": controller["port_width"],
        "PCI Address": controller["pci_address"],
        "PCIe Link Width": f"X{controller['port_width']} Lane(s)",
        "Current Max PCI Link Speed": "16GT/s",
        "Current PCIe Port Width": controller["port_width"],
        "SAS/SATA": controller["sas"],
        "PCIe": controller["pcie"],
        "PCI Vendor ID": controller["pci_vendor"],
        "PCI Device ID": controller["pci_device"],
        "PCI Subsystem Vendor ID": controller["pci_subvendor"],
        "PCI Subsystem ID": controller["pci_subdevice"],
        "Security Protocol": controller["security_protocol"],
        "PCI Slot Number": controller["pci_slot"],
    }
    return {**head, **tables(state, controller)}


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
    data["Enclosure List"] = [_enclosure_row(controller, enclosure) for enclosure in controller["enclosures"]]
    status = pack_status(state)
    if status != "Missing":
        pack = controller["energy_pack"]
        data["Energy Pack Info"] = [
            {
                "Type": pack["type"],
                "SubType": pack["subtype"],
                "Voltage(mV)": pack["voltage"],
                "Temperature(C)": pack["temperature"],
                "Status": status,
            }
        ]
    return data


def _topology(controller: State, volume: State) -> list[Data]:
    members = [drive for drive in controller["drives"] if drive_id(drive) in volume["drives"]]
    short = _DRIVE_CACHE_SHORT[volume["drive_cache"]]

    def row(span: t.Any, number: t.Any, drive: State | None) -> Data:
        return {
            "DG": volume["group"],
            "Span": span,
            "Row": number,
            "EID:Slot": drive_id(drive) if drive else "-",
            "PID": drive["pid"] if drive else "-",
            "Type": "DRIVE" if drive else volume["level"],
            "State": drive["state"] if drive else "-",
            "Status": drive["status"] if drive else "-",
            "BT": "N",
            "Size": size_text(drive["size"] if drive else volume["size"]),
            "PDC": short,
            "Secured": "N",
            "FSpace": "-" if drive else "N",
        }

    return [row("-", "-", None), row(0, "-", None), *(row(0, number, drive) for number, drive in enumerate(members))]


def volume_row(state: State, volume: State) -> Data:
    """The row of a volume: what it is set to, and what is in effect while the energy pack is as it is."""
    read = {"RA": "RA", "NoRA": "NR"}[volume["read"]]
    return {
        "DG/VD": f"{volume['group']}/{volume['id']}",
        "TYPE": volume["level"],
        "State": volume["state"],
        "Access": "RW",
        "CurrentCache": f"{read},{effective_write(state, volume)}",
        "DefaultCache": f"{read},{volume['write']}",
        "Size": size_text(volume["size"]),
        "Name": volume["name"],
    }


def effective_write(state: State, volume: State) -> str:
    """The write policy in effect: WB needs a good energy pack, AWB does not."""
    return "WT" if volume["write"] == "WB" and pack_status(state) != "Optimal" else volume["write"]


def volume_details(state: State, controller: State, volume: State) -> Data:
    """``/cx/vx show all``: one entry of the list ``Virtual Drives``."""
    members = [drive for drive in controller["drives"] if drive_id(drive) in volume["drives"]]
    bypass = "Cachebypass Not Performed For Any IOs"
    properties: Data = {"Strip Size": volume["strip"], "Block Size": 4096, "Number of Blocks": volume["size"] // 4096}
    if volume["emulated"]:
        properties["VD has Emulated PD"] = "Yes"
    properties.update(
        {
            "Span Depth": 1,
            "Number of Drives": len(members),
            "Drive Write Cache Policy": volume["drive_cache"],
            "Default Power Save Policy": "Default",
            "Current Power Save Policy": "Default",
            "Access Policy Status": "VD has desired access",
            "Auto BGI": "Off",
            "Secured": "No",
            "Init State": "No Init",
            "Consistent": "Yes",
            "Morphing": "No",
            "Cache Preserved": "No",
            "Bad Block Exists": "No",
            "VD Ready for OS Requests": "Yes",
            "Reached LD BBM failure threshold": "No",
            "Supported Erase Types": "Simple, Normal, Thorough",
            "Exposed to OS": "Yes",
            "Creation Time(LocalTime yyyy/mm/dd hh:mm:sec)": volume["created"],
            "Default Cachebypass Mode": bypass,
            "Current Cachebypass Mode": bypass,
            "SCSI NAA Id": volume["wwn"],
            "OS Drive Name": volume["path"],
            "Current Unmap Status": "No",
            "Current WriteSame Unmap Status": "No",
            "LU/NS Count used per PD": 1,
            "Data Format for I/O": "None",
            "Serial Number": _swapped(volume["wwn"]),
        }
    )
    return {"VD Info": volume_row(state, volume), "PDs": [drive_row(state, drive) for drive in members], "VD Properties": properties}


def _swapped(wwn: str) -> str:
    """The serial number of a volume: the bytes of its NAA id from behind, without the first, filled with zero in front."""
    pairs = [wwn[place : place + 2] for place in range(0, len(wwn), 2)]
    return "00" + "".join(reversed(pairs[1:]))


def drive_id(drive: State) -> str:
    """The name of a drive: enclosure and slot."""
    return f"{drive['eid']}:{drive['slot']}"


def drive_row(state: State, drive: State) -> Data:
    """The row of a drive. That a drive is a JBOD in HBA mode is assumed."""
    hba = in_hba_mode(state)
    return {
        "EID:Slt": drive_id(drive),
        "PID": drive["pid"],
        "State": "JBOD" if hba else drive["state"],
        "Status": "Online" if hba else drive["status"],
        "DG": "-" if hba or drive["group"] is None else drive["group"],
        "Size": size_text(drive["size"]),
        "Intf": drive["interface"],
        "Med": drive["medium"],
        "SED_Type": "-",
        "SeSz": "512B",
        "Model": drive["product"].ljust(16),
        "Sp": "U",
        "LU/NS Count": 1,
        "Alt-EID": "-",
    }


def _unit_row(state: State, drive: State, with_index: bool) -> Data:
    row: Data = {"PID": drive["pid"], "LUN/NSID": "0/-"}
    if with_index:
        row["Index"] = 255
    return {**row, "Status": "Online" if in_hba_mode(state) else drive["status"], "Size": size_text(drive["size"])}


def _enclosure_row(controller: State, enclosure: State) -> Data:
    return {
        "EID": enclosure["eid"],
        "State": "OK",
        "DeviceType": enclosure["type"],
        "Slots": enclosure["slots"],
        "PD": sum(drive["eid"] == enclosure["eid"] for drive in controller["drives"]),
        "Partner-EID": "-",
        "Multipath": "No",
        "PS": enclosure["supplies"],
        "Fans": 0,
        "TSs": enclosure["sensors"],
        "Alms": enclosure["alarms"],
        "SIM": 0,
        "ProdID": enclosure["product"].ljust(16),
    }


def drive_details(state: State, controller: State, drive: State) -> Data:
    """``/cx/ex/sx show all``: one entry of ``Drives List``; a drive of a volume has a place, a free one has erase types."""
    row = drive_row(state, drive)
    place = next((number for number, shelf in enumerate(controller["enclosures"]) if shelf["eid"] == drive["eid"]), 0)
    raw = drive["size"] + 2**29
    sizes = {
        "Logical Sector Size": "512B",
        "Physical Sector Size": "4 KiB",
        "Raw size": _sectors(raw),
        "Coerced size": _sectors(drive["size"]),
    }
    details: Data = {
        "Shield Counter": 0,
        "Temperature(C)": drive["temperature"],
        "Serial Number": drive["serial"],
        "Vendor": drive["vendor"].ljust(8),
        "Model": drive["product"].ljust(16),
        "WWN": drive["wwn"],
        "Firmware Revision Level": drive["firmware"],
        "Firmware Release Number": "01110618",
        **sizes,
        "Capable Speed": "12.0Gb/s",
        "Capable Link Width": "x1",
        "Negotiated Link Width": "x1",
    }
    volume = next((volume for volume in controller["volumes"] if drive_id(drive) in volume["drives"]), None)
    configured = row["State"] == "Conf"
    if configured and volume:
        details["Drive position"] = f"DriveGroup:{drive['group']}, Span:0, Row:{volume['drives'].index(drive_id(drive))}"
    details.update(
        table(
            """
Sequence Number = 2
Commissioned Spare
Emergency Spare
Successful Shield Diagnostics completed on(Localtime yyyy/mm/dd hh:mm:sec) = NA
SED Capable
ISE Capable
""",
            "No",
            numbers=True,
        )
    )
    if not configured:
        details.update({"Supported Erase Types": "Sanitize Overwrite", "Aue Supported Erase Types": "Sanitize Overwrite"})
    for prefix in ("Unmap Capable", "Writesame Unmap Capable"):
        for level in (" for Single Drive RAID 0 VDs", " for RAID 0 VDs", " for RAID 1 VDs", " for RAID 5/6 VDs", ""):
            details[prefix + level] = "No"
    details.update(
        {
            "T10 Power Mode": "Yes",
            "Needs EKM Attention": "No",
            "Secured By EKM": "No",
            "Certified": "Yes",
            "Supported Data Format": "None",
        }
    )
    if drive["medium"] == "HDD":
        details["Hard Disk Drive RPM"] = 7200
    details.update(
        {
            "Device port count": 1,
            "Path Information": [
                {
                    "SASAddress": f"0x{int(drive['wwn'], 16) + 1:016x}",
                    "DevicePID": drive["pid"],
                    "Path": "Primary",
                    "ConnectorIndex": 2 * place + 1,
                    "Negotiated Speed": "12.0Gb/s",
                    "Num Phys/Lanes used": 1,
                }
            ],
            "Connector Information": [{"ConnId": place + 1, "Name": f"C{place}.{lane}", "Location": "Internal", "Type": "SFF-8654 8I"} for lane in (0, 1)],
            "LU/NS Properties": {
                "Media Error Count": 0,
                "Other Error Count": 0,
                "Predictive Failure Count": 0,
                "Last Predictive Failure Event Sequence Number": 0,
                **sizes,
                "FW managed drive security": "No",
                "Secured": "No",
                "Locked": "No",
                "PI Formatted": "No",
                "PI type": 1,
                "Number of bytes of user data in LBA": "512B",
                "Current Write Cache": drive["write_cache"],
                "Default Write Cache": drive["default_write_cache"],
                "Write Cache Changeable": drive["write_cache_changeable"],
            },
            "Inquiry Data": "00 " * 144,
        }
    )
    return {"Drive Information": row, "LU/NS Information": [_unit_row(state, drive, False)], "Drive Detailed Information": details}


def _sectors(size: int) -> str:
    return f"{size_text(size)} [0x{size // 512:x} Sectors]"
