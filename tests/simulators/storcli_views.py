# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What simulated storcli and perccli say about a controller: pure functions from the state and its faults to "Response Data".

Here it is decided what is *effective*: a card whose protection failed writes through although its volumes are configured to write
back, and shows the configured value only as ``Write Cache(initial setting)``.
"""

from __future__ import annotations

import typing as t

from . import storcli_labels as labels
from .simulator import State
from .storcli_protection import Protection, summary, told_protection

Response = t.Dict[str, t.Any]

_TIB = 1 << 40
_SECTOR = 512
#: The clock of the simulated host stands still, so that answers can be compared.
_DATE, _TIME = "11/21/2026", "09:00:00"

_TOPOLOGY_POLICY = {"Default": "dflt", "On": "enbl", "Off": "dsbl"}
_DISK_CACHE = {"Default": "Disk's Default", "On": "Enabled", "Off": "Disabled"}
_INITIAL = {"WB": "WriteBack", "WT": "WriteThrough", "AWB": "AlwaysWriteBack"}


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
        return told_protection(self.state["protection"], self.faults)

    @property
    def volumes(self) -> list[State]:
        return [] if self.without_raid else self.state["volumes"]

    @property
    def health(self) -> str:
        """Word of "Controller Status"."""
        if any(self.volume_state(volume) == "OfLn" for volume in self.volumes):
            return "Degraded"
        return "Needs Attention" if self.protection and self.protection.attention else "Optimal"

    def named(self, fault: str, volume: State) -> bool:
        """Whether a fault is asked for that concerns this volume: all volumes unless its details name some."""
        details = self.faults.get(fault)
        return bool(details) and (not isinstance(details, dict) or volume["id"] in details.get("volumes", [volume["id"]]))

    def pinned(self, volume: State) -> bool:
        """Whether the cache keeps data of this volume that cannot be written."""
        return self.named("pinned_cache", volume) and not volume.get("discarded")

    def volume_state(self, volume: State) -> str:
        return "OfLn" if self.named("vd_offline", volume) or self.pinned(volume) else "Optl"

    def effective_write(self, volume: State) -> str:
        """Write-back lasts only as long as something protects the cache; always-write-back does not ask."""
        if volume["write"] != "WB":
            return volume["write"]
        return "WB" if self.protection and self.protection.protects else "WT"

    def drives_of(self, volume: State) -> list[State]:
        return [drive for drive in self.state["drives"] if drive["group"] == volume["group"]]

    def has_ssd(self, volume: State) -> bool:
        return any(drive["media"] == "SSD" for drive in self.drives_of(volume))


def size_text(size: int, decimal: bool = False) -> str:
    """A size as the tool writes it: whole MiB in GB and whole GiB in TB, cut and not rounded after three places; HPE's drives are decimal."""
    if decimal:
        unit, word = (10**9, "GB") if size < 10**12 else (10**12, "TB")
        return f"{size * 100 // unit / 100:.2f} {word}"
    whole, word = (size >> 20, "GB") if size < _TIB else (size >> 30, "TB")
    return f"{whole * 1000 // 1024 / 1000:.3f} {word}"


def _volume_size(view: View, size: int) -> str:
    return size_text(size).replace("B", "iB") if view.layout == "hpe" else size_text(size)


def _drive_size(view: View, size: int) -> str:
    return size_text(size, decimal=view.layout == "hpe")


def volume_row(view: View, volume: State) -> Response:
    """Row of a volume in "VD LIST", "Virtual Drives" and "/cx/vx"."""
    cache = ("R" if volume["read"] == "RA" else "NR") + view.effective_write(volume) + volume["io"][0]
    return {
        "DG/VD": f"{volume['group']}/{volume['id']}",
        "TYPE": volume["level"],
        "State": view.volume_state(volume),
        "Access": "RW",
        "Consist": volume["consistent"],
        "Cache": cache,
        "Cac": "Y" if volume["ssd_caching"] else "-",
        "sCC": volume["check"],
        "Size": _volume_size(view, volume["size"]),
        "Name": volume["name"],
    }


def drive_row(view: View, drive: State) -> Response:
    """Row of a drive in "PD LIST", "PDs for VD", "Drive Information" and "Drive /cx/ex/sx"."""
    unknown = "-" if view.state["hba"] else "N"
    row: Response = {
        "EID:Slt": f"{' ' if view.state.get('ir') else view.state['enclosure']}:{drive['slot']}",
        "DID": drive["id"],
        "State": drive_state(view, drive),
        "DG": "-" if drive["group"] is None or view.without_raid else drive["group"],
        "Size": _drive_size(view, drive["size"]),
        "Intf": drive["interface"],
        "Med": drive["media"],
        "SED": unknown,
        "PI": unknown,
        "SeSz": drive.get("sector", "512B"),
        "Model": _padded_model(drive),
        "Sp": "-" if view.state["hba"] else "U",
    }
    passed = drive.get("jbod") and view.layout == "hpe"
    return row if view.state["hba"] else {**row, "Type": "JBOD" if passed else "-"}


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
    members = len(view.drives_of(volume))
    spans = 2 if volume["level"] == "RAID10" else 1
    old = view.layout == "sas2108"
    properties: Response = {
        "Strip Size": volume["strip"],
        "Number of Blocks": volume["size"] // volume.get("block", _SECTOR),
        "VD has Emulated PD": "No",
        "Span Depth": spans,
        "Number of Drives Per Span": members // spans,
        "Write Cache(initial setting)": _INITIAL[volume["write"]],
        "Disk Cache Policy": _DISK_CACHE[volume["disk_cache"]],
        "Encryption": "None",
        "Data Protection": "Disabled" if old else "None",
        "Active Operations": "None",
        "Exposed to OS": "Yes",
        "OS Drive Name": volume["os_path"],
        "Creation Date": volume["created"][0],
        "Creation Time": volume["created"][1],
        "Emulation type": "None" if old else "default",
        "Cachebypass size": "Cachebypass-64k",
        "Cachebypass Mode": "Cachebypass Intelligent",
        "Is LD Ready for OS Requests": "Yes",
        "SCSI NAA Id": volume["wwn"],
        "Unmap Enabled": "N/A" if old or view.layout == "perc" else "No",
    }
    absent = [*(("Cachebypass size", "Cachebypass Mode") if old else ()), *view.state["absent_labels"]]
    return {label: value for label, value in properties.items() if label not in absent}


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
        common = {"BT": "N"}
        size = sum(volume["size"] for volume in volumes)
        policy = {"PDC": _TOPOLOGY_POLICY[volumes[0]["disk_cache"]], "PI": "N", "SED": "N", "DS3": view.state["dimmer"]}
        state = view.volume_state(volumes[0])
        for array in ("-", 0):
            head = {"DG": group, "Arr": array, "Row": "-", "EID:Slot": "-", "DID": "-", "Type": volumes[0]["level"], "State": state}
            rows.append({**head, **common, "Size": _volume_size(view, size), **policy, "FSpace": "N", "TR": "N"})
        for drive in view.drives_of(volumes[0]):
            place = {"DG": group, "Arr": 0, "Row": drive["row"], "EID:Slot": f"{view.state['enclosure']}:{drive['slot']}", "DID": drive["id"]}
            own = {"Type": "DRIVE", "State": drive_state(view, drive), **common, "Size": _drive_size(view, drive["size"])}
            rows.append({**place, **own, **policy, "FSpace": "-", "TR": "N"})
    return rows


def _enclosures(view: View) -> list[Response]:
    row: Response = {"EID": view.state["enclosure"], "State": "OK", "Slots": view.state["slots"], "PD": len(view.state["drives"])}
    row.update({"PS": 0, "Fans": 0, "TSs": 0, "Alms": 0, "SIM": 0})
    if view.state["hba"]:
        return [{**row, "ProdID": "VirtualSES", "VendorSpecific": " "}]
    if view.layout == "hpe":
        return [{**row, "Port#": "2I"}]
    return [{**row, "SIM": 1 if view.layout in ("sas3108", "sas2108") else 0, "Port#": "-", "ProdID": "SGPIO", "VendorSpecific": " "}]


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
    response.update({"Enclosures": len(enclosures), "Enclosure LIST": enclosures, **summary(view.state["protection"], view.protection)})
    return response


def _version(view: View) -> Response:
    sections = labels.hba_sections(view.layout) if view.state["hba"] else labels.megaraid_sections(view.layout)
    bus = dict(sections["PCI Version" if view.state["hba"] else "Bus"], **{"Bus Number": view.state["bus"]})
    return {"Version": sections["Version"], "Bus": bus}


def _personality(view: View) -> str:
    if view.without_raid:
        return "HBA-Mode "
    return "JBOD-Mode " if view.layout == "hpe" else "RAID-Mode "


def controller_brief(view: View) -> Response:
    """Answer to ``/cx show``."""
    about, state = _version(view), view.state
    version, bus = about["Version"], about["Bus"]
    identity = {"Product Name": state["product"], "Serial Number": state["serial"], "SAS Address": f" {state['sas_address']}"}
    place = {"PCI Address": _pci_address(state), "System Time": f"{_DATE} {_TIME}"}
    ids = {label: bus[label] for label in ("Vendor Id", "Device Id", "SubVendor Id", "SubDevice Id")}
    numbers = {label: bus[label] for label in ("Bus Number", "Device Number", "Function Number", "Domain ID")}
    driver = {label: version[label] for label in ("Driver Name", "Driver Version")}
    package = {"FW Package Build": version["Firmware Package Build"]}
    if state["hba"]:
        rows = [drive_row(view, drive) for drive in state["drives"]]
        firmware = {"FW Version": version["Firmware Version"], "BIOS Version": version["Bios Version"], "NVDATA Version": version["NVDATA Version"]}
        board = {"Board Name": state["product"], "Board Assembly": "N/A", "Board Tracer Number": state["serial"], "Security Protocol": "None"}
        if state.get("ir"):
            return {**identity, **place, "FW Version": "15.00.03.00", "Driver Name": "mpt3sas", **_ir_lists(view)}
        head = {**identity, **place, **package, **firmware, **driver, **numbers, **ids, **board}
        return {**head, "Physical Drives": len(rows), **({"PD LIST": rows} if rows else {}), "Requested Boot Drive": "Not Set"}
    clock = {"Mfg. Date": "01/15/26", "Controller Time": f"{_DATE} {_TIME}"}
    firmware = {"BIOS Version": version["Bios Version"], "FW Version": version["Firmware Version"]}
    personality = {"Current Personality": _personality(view)} if _prints_personality(view) else {}
    interfaces = {label: bus[label] for label in ("Host Interface", "Device Interface")}
    head = {**identity, **place, **clock, **package, **firmware, **driver, **personality, **ids, **interfaces, **numbers}
    return {**head, "Security Protocol": "None", **_lists(view)}


def _prints_personality(view: View) -> bool:
    return "Current Personality" in labels.megaraid_sections(view.layout)["Status"]


def _pci_address(state: State) -> str:
    return f"00:{state['bus']:02x}:{state.get('device', 0):02x}:00"


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
        plain = {"TYPE": "RAID1", "State": "Optl", "Access": "RW", "Consist": "No", "Cache": "NRWTD"}
        listed = [{"VD": str(volume["id"]), **plain, "Size": _volume_size(view, volume["size"]), "Name": ""} for volume in view.volumes]
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
    basics: Response = {"Controller": view.number, "Model": state["product"], "Serial Number": state["serial"]}
    if view.layout == "hpe":
        basics["PCI Slot Number"] = 1 + view.number
    clock = f"{_DATE}, {_TIME}"
    basics.update({"Current Controller Date/Time": clock, "Current System Date/time": clock, "SAS Address": state["sas_address"]})
    basics.update({"PCI Address": _pci_address(state), "Mfg Date": "01/15/26", "Rework Date": "00/00/00", "Revision No": "01A"})
    changes: dict[str, Response] = {
        "Bus": {"Bus Number": state["bus"], "Device Number": state.get("device", 0)},
        "Status": {
            "Controller Status": view.health,
            "Any Offline VD Cache Preserved": "Yes" if any(view.pinned(volume) for volume in view.volumes) else "No",
            "BBU Status": told.bits if told else "NA",
            "Current Personality": _personality(view),
        },
        "Supported Adapter Operations": {
            "Block SSD Write Disk Cache Change": "No" if abilities["change_ssd_cache"] else "Yes",
            "Support JBOD Write cache": "Yes" if abilities["jbod_write_cache"] else "No",
        },
        "Supported VD Operations": {"Support SSC Association": "Yes" if abilities["ssd_association"] else "No"},
        "HwCfg": {"BBU": "Present" if told and told.fault != "battery_missing" else "Absent"},
        "Policies": {"Battery Warning": settings["batterywarning"].capitalize()},
        "Boot": {"Allow Boot with Preserved Cache": settings["bootwithpinnedcache"].capitalize()},
        "Capabilities": {"Enable JBOD": "Yes" if view.without_raid else "No", "Enable SystemPD": "Yes" if view.without_raid else "No"},
    }
    response: Response = {"Basics": basics}
    for title, section in labels.megaraid_sections(view.layout).items():
        changed = {**section, **{label: value for label, value in changes.get(title, {}).items() if label in section}}
        if title == "Policies":
            changed = {"Policies Table": labels.policies_table(view.layout, f"{settings['cacheflushint']}s"), **changed}
        if title == "HwCfg":
            response.update(_software_options(view))
        response[title] = changed
    return {**response, **_lists(view)}


def _software_options(view: View) -> Response:
    names = {"sas3108": ("FastPath", "RAID6", "RAID5"), "sas3908": ("FastPath", "SafeStore", "RAID6", "RAID5"), "hpe": ("FastPath", "SafeStore")}.get(
        view.layout
    )
    if not names:
        return {}
    options = [{"Adv S/W Opt": f"MegaRAID {name}", " Time Remaining": " Unlimited", " Mode": " -"} for name in names]
    return {"Advanced Software Option": options, "Safe ID": f" SIMULATED{view.number:031d}"}


def _hba_full(view: View) -> Response:
    state = view.state
    basics: Response = {"Controller": view.number, "Adapter Type": state["adapter"], "Model": state["product"], "Serial Number": state["serial"]}
    basics.update({"Current System Date/time": f"{_DATE} {_TIME}"})
    sections = labels.hba_sections(view.layout)
    basics.update({"Concurrent commands supported": sections["Capabilities"]["Max Parallel Commands"], "SAS Address": f" {state['sas_address']}"})
    basics.update({"PCI Address": _pci_address(state)})
    sections["PCI Version"]["Bus Number"] = state["bus"]
    sections["Policies"] = {"Policies Table": labels.policies_table(view.layout, "0s"), **sections["Policies"]}
    devices: Response = {}
    for drive in state["drives"]:
        devices.update(drive_details(view, drive))
    return {"Basics": basics, **sections, "Enclosure Information": _enclosures(view), "Physical Device Information": devices}


def drives_brief(view: View, drives: t.Sequence[State]) -> Response:
    """Answer to ``/cx/ex/sx show``."""
    return {"Drive Information": [drive_row(view, drive) for drive in drives]}


def drives_full(view: View, drives: t.Sequence[State]) -> Response:
    """Answer to ``/cx/ex/sx show all``."""
    response: Response = {}
    for drive in drives:
        response.update(drive_details(view, drive))
    return response


def drive_details(view: View, drive: State) -> Response:
    """The row of a drive and its detailed information."""
    path = f"Drive /c{view.number}/e{view.state['enclosure']}/s{drive['slot']}"
    details = {
        f"{path} State": _drive_health(view),
        f"{path} Device attributes": _hba_drive_attributes(drive) if view.state["hba"] else _drive_attributes(view, drive),
        f"{path} Policies/Settings": _drive_settings(view, drive),
        "Inquiry Data": _inquiry(drive),
    }
    return {path: [drive_row(view, drive)], f"{path} - Detailed Information": details}


def _drive_health(view: View) -> Response:
    if view.state["hba"]:
        counters = ("Shield Counter", "Media Error Count", "Other Error Count", "Predictive Failure Count", "S.M.A.R.T alert flagged by drive")
        return dict.fromkeys(counters, "N/A")
    health: Response = {"Shield Counter": 0, "Media Error Count": 0, "Other Error Count": 0}
    if view.layout == "sas2108":
        health["BBM Error Count"] = 0
    return {**health, "Drive Temperature": " 30C (86.00 F)", "Predictive Failure Count": 0, "S.M.A.R.T alert flagged by drive": "No"}


def drive_write_cache(view: View, drive: State) -> str:
    """Word of "Write Cache": the policy of the volumes on it, or what the drive came with; older cards do not know."""
    if view.layout in ("sas2108", "sas3108"):
        return "N/A"
    if view.without_raid or drive["group"] is None:
        policy = view.state["settings"]["jbodwritecache"].capitalize() if view.without_raid else "Default"
    else:
        policy = next((volume["disk_cache"] for volume in view.volumes if volume["group"] == drive["group"]), "Default")
    return {"On": "Enabled", "Off": "Disabled"}.get(policy, drive["write_cache"])


def _sizes(view: View, drive: State) -> Response:
    sectors = drive["size"] // _SECTOR
    raw = sectors if view.state["hba"] else sectors + (1 << 21)
    texts = [f"{size_text(count * _SECTOR)} [0x{count:x} Sectors]" for count in (raw, sectors, sectors)]
    return dict(zip(("Raw size", "Coerced size", "Non Coerced size"), texts))


def _speed(drive: State) -> str:
    return {"SAS": "12.0Gb/s", "NVMe": "8.0GT/s"}.get(drive["interface"], "6.0Gb/s")


def _drive_attributes(view: View, drive: State) -> Response:
    attributes: Response = {
        "SN": drive["serial"],
        "Manufacturer Id": drive["manufacturer"].ljust(8),
        "Model Number": _padded_model(drive),
        "NAND Vendor": "NA",
        "WWN": drive["wwn"],
        "Firmware Revision": drive["firmware"].ljust(8) if drive["interface"] == "SATA" else drive["firmware"],
    }
    if drive["interface"] != "SATA":
        attributes["Firmware Release Number"] = "N/A"
    attributes.update({**_sizes(view, drive), "Device Speed": _speed(drive), "Link Speed": _speed(drive)})
    if drive["interface"] == "SATA":
        attributes["NCQ setting"] = "N/A" if view.layout == "sas2108" else "Enabled"
    attributes.update({"Write Cache": drive_write_cache(view, drive), "Logical Sector Size": "512B", "Physical Sector Size": "4 KB"})
    return {**attributes, "Connector Name": "C0.0 x1"}


def _hba_drive_attributes(drive: State) -> Response:
    attributes: Response = {"Manufacturer Id": drive["manufacturer"].ljust(8), "Model Number": drive["model"], "NAND Vendor": "NA"}
    attributes.update({"SN": drive["serial"].rjust(20), "WWN": drive["wwn"], "Firmware Revision": drive["firmware"].ljust(8)})
    sectors = drive["size"] // _SECTOR
    text = f"{size_text(drive['size'])} [0x{sectors:x} Sectors]"
    attributes.update(dict.fromkeys(("Raw size", "Coerced size", "Non Coerced size"), text))
    attributes.update({"Device Speed": "6.0Gb/s", "Link Speed": "6.0Gb/s", "NCQ setting": "N/A", "Sector Size": "512B", "Config ID": "NA"})
    return {**attributes, "Number of Blocks": sectors - 1, "Connector Name": "C0   x1"}


def _ports(drive: State) -> list[Response]:
    port = {"Port": 0, "Status": "Active", "Linkspeed": _speed(drive), "SAS address": f"0x{drive['wwn'].lower()}"}
    second = {"Port": 1, "Status": "Active", "Linkspeed": _speed(drive), "SAS address": "0x0"}
    return [port, second] if drive["interface"] == "SAS" else [port]


def _drive_settings(view: View, drive: State) -> Response:
    hba = view.state["hba"]
    unknown = "N/A" if hba else "No"
    settings: Response = {}
    if not hba and not view.without_raid and drive["group"] is not None:
        settings["Drive position"] = f"DriveGroup:{drive['group']}, Span:0, Row:{drive['row']}"
    settings.update({"Enclosure position": "0" if hba else "1", "Connected Port Number": f"{drive['slot'] % 8}(path0) "})
    settings.update({"Sequence Number": 0 if hba else 2, "Commissioned Spare": "No", "Emergency Spare": "No"})
    settings.update({"Last Predictive Failure Event Sequence Number": "N/A" if hba else 0, "Successful diagnostics completion on": "N/A"})
    if not hba:
        settings["FDE Type"] = "None"
    settings.update({"SED Capable": unknown, "SED Enabled": unknown, "Secured": unknown})
    if not hba:
        settings.update({"Cryptographic Erase Capable": "No", "Sanitize Support": "Not supported", "Locked": "No"})
    settings.update({"Needs EKM Attention": unknown, "PI Eligible": unknown})
    if view.layout == "perc":
        formatted = drive["interface"] == "SAS"
        settings.update({"Drive is formatted for PI": "Yes" if formatted else "No", "PI type": 2 if formatted else "No PI"})
        settings["Number of bytes of user data in LBA"] = "0 KB"
    elif view.layout == "sas2108":
        settings.update({"Drive is formatted for PI": "No", "PI type": "No PI", "Number of bytes of user data in LBA": "512B"})
    settings.update({"Certified": unknown, "Wide Port Capable": unknown})
    if view.layout in ("sas3908", "hpe"):
        settings.update({"Unmap capable": "No", "Unmap capable for LDs": "No"})
    return {**settings, "Multipath": "No", "Port Information": _ports(drive)}


def _inquiry(drive: State) -> str:
    """A standard inquiry answer with the names of the drive in it, as bytes with a blank after each."""
    text = f"{drive['manufacturer']:8.8}{drive['model']:16.16}{drive['firmware']:4.4}{drive['serial']:20.20}".encode("ascii", "replace")
    return "".join(f"{byte:02x} " for byte in (b"\x00\x00\x07\x12\x8b\x01\x10\x02" + text).ljust(128, b"\x00"))


def overview_row(view: View) -> Response:
    """Row of a card with RAID in "System Overview"."""
    told, extra, volumes = view.protection, view.state["overview"], view.volumes
    off = [volume for volume in volumes if view.volume_state(volume) != "Optl"]
    return {
        "Ctl": view.number,
        "Model": view.state["product"].replace(" ", ""),
        "Ports": extra["Ports"],
        "PDs": len(view.state["drives"]),
        "DGs": len({volume["group"] for volume in volumes}),
        "DNOpt": len({volume["group"] for volume in off}),
        "VDs": len(volumes),
        "VNOpt": len(off),
        "BBU": told.overview if told else "N/A",
        "sPR": extra["sPR"],
        "DS": extra["DS"],
        "EHS": extra["EHS"],
        "ASOs": extra["ASOs"],
        "Hlth": {"Optimal": "Opt", "Degraded": "Dgd"}.get(view.health, "NdAtn"),
    }


def options_row(view: View) -> Response:
    """Row of a card with RAID in "ASO", the licences for advanced options: U unlimited, X not there."""
    options = ("Cl", "SAS", "MD", "R6", "WC", "R5", "SS", "FP", "Re", "CR", "RF", "CO", "CW", "HA", "SSHA")
    return {"Ctl": view.number, **{option: "U" if option in ("SAS", "R6", "WC", "R5", "SS", "FP") else "X" for option in options}}


def hba_overview_row(view: View) -> Response:
    """Row of an adapter without RAID in "IT System Overview"."""
    bus = _version(view)["Bus"]
    ids = zip(("VendId", "DevId", "SubVendId", "SubDevId"), ("Vendor Id", "Device Id", "SubVendor Id", "SubDevice Id"))
    head = {"Ctl": view.number, "Model": view.state["product"], "AdapterType": view.state["adapter"]}
    return {**head, **{short: bus[long] for short, long in ids}, "PCI Address": _pci_address(view.state)}
