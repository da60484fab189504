# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers of the simulator of ssacli: each model is a card of ``templates/ssacli.txt`` with drives and volumes.

Without options a model has the volumes and drives of the public capture it was taken from. The H240 in its two modes and
version 4 of the tool are known from outputs in public code, the E208i is assumed. Every serial number and address is invented.
Options of all: ``volumes``, ``drives``, ``os_devices`` (per volume path, wwn and size of a disk), and where there is a cache
``no_battery_write_cache``.
"""

from __future__ import annotations

import typing as t

from .simulator import State, letters
from .templates import filled

#: How the tool of the capture prints: digits behind the point, which lines there are, what comes first, blanks.
_STYLE_OLD: State = {"decimals": 1, "unused": "0  MB (0.0%)", "gap": 0, "ports_first": True, "cage_power": True, "strip": 256, "os_status": True}
_STYLE_MIDDLE = {**_STYLE_OLD, "decimals": 2, "unused": "0 MB (0.00%)", "gap": 1, "ports_first": False, "media_errors": True}
_STYLE_GEN10 = {
    "decimals": 2,
    "unused": "0 MB (0.00%)",
    "gap": 2,
    "ports_first": False,
    "cage_power": False,
    "strip": 256,
    "media_errors": True,
    "multidomain": True,
    "partitions": True,
    "smart_path": True,
    "smart_path_text": "Smart Path",
    "port_mode": True,
    "per_class": True,
}


def _lines(name: str, **values: t.Any) -> dict[str, str]:
    return {label: str(value) for label, value in filled("ssacli", name, values).items()}


def _drive(place: str, kind: str, number: int) -> State:
    port, box, bay = place.split(":")
    unique = f"50000000534900{number:02X}"
    known = filled("ssacli", f"drive {kind}", {})
    return {
        "port": port,
        "box": int(box),
        "bay": int(bay),
        "status": "OK",
        "media": known["media"],
        "interface": known["interface"],
        "size_text": known["text"],
        "usable": known["usable"],
        "lines": {**_lines(f"lines {kind}", unique=unique), "Serial Number": f"SIMULATED{number:04d}", "WWID": unique},
    }


def data_drives(level: str, drives: int) -> int:
    """How many of so many drives hold data at this RAID level."""
    return {"0": drives, "1": drives // 2, "1+0": drives // 2, "5": drives - 1, "6": drives - 2}[level]


def device_name(number: int) -> str:
    """The kernel's name of the disk with this number."""
    return f"/dev/sd{letters(number)}"


#: An array of a model as captured: the RAID level, the kind of its drives (a template), the bays they are in.
_Plan = t.Tuple[str, str, t.Tuple[str, ...]]


def _controller(
    card: State,
    plan: t.Sequence[_Plan],
    spare: tuple[str, tuple[str, ...]] | None = None,
    *,
    volumes: int | None = None,
    drives: int | None = None,
    os_devices: t.Sequence[State] | None = None,
) -> State:
    devices = list(os_devices or [])
    if volumes is not None or drives is not None or devices:
        plan, spare = _even_plan(card, plan, max(volumes or 0, len(devices)), drives)
    made: State = {**card, "arrays": [], "volumes": [], "drives": []}
    first_device = int(card.get("first_device", 0))
    for number, (level, kind, places) in enumerate(plan):
        made["drives"] += [_drive(place, kind, len(made["drives"]) + index + 1) for index, place in enumerate(places)]
        device = devices[number] if number < len(devices) else {}
        unused = int(card.get("unused", {}).get(str(number), 0))
        usable = filled("ssacli", f"drive {kind}", {})["usable"] - unused // len(places)
        made["arrays"].append({"letter": letters(number).upper(), "drives": list(places), "used": usable * len(places), "unused": unused, "smart_path": False})
        made["volumes"].append(
            {
                "id": number + 1,
                "array": letters(number).upper(),
                "level": level,
                "size": int(device.get("size") or usable * data_drives(level, len(places))),
                "caching": True,
                "wwn": str(device.get("wwn") or f"60000000534D4F4B4500000000{number + 1:06X}").upper(),
                "path": str(device.get("path") or device_name(first_device + number)),
                "mounts": "None",
                "label": f"SIMULATED VOLUME {number + 1}",
            }
        )
    if spare:
        # Drives that the host sees were found before the volumes where there is room for their names, else behind them.
        first = 0 if first_device >= len(spare[1]) else first_device + len(plan)
        for index, place in enumerate(spare[1]):
            made["drives"].append({**_drive(place, spare[0], len(made["drives"]) + 1), "path": device_name(first + index)})
    return made


def _even_plan(card: State, plan: t.Sequence[_Plan], volumes: int, drives: int | None) -> tuple[list[_Plan], tuple[str, tuple[str, ...]] | None]:
    """Equal shares of as many drives as asked for: RAID 0 of one, 1 of two, 5 of three, 6 of more; the rest is unassigned."""
    kind = plan[0][1] if plan else card["kind"]
    drives = max(volumes, drives if drives is not None else volumes)
    bays = [f"{cage['port']}:{cage['box']}:{bay}" for cage in card["cages"] for bay in range(cage["first"], cage["first"] + cage["bays"])]
    # More drives than bays: as if the last cage were longer.
    last = card["cages"][-1]
    beyond = last["first"] + last["bays"]
    bays += [f"{last['port']}:{last['box']}:{beyond + number}" for number in range(drives - len(bays))]
    share = drives // volumes if volumes else 0
    level = {1: "0", 2: "1", 3: "5"}.get(share, "6")
    made: list[_Plan] = [(level, kind, tuple(bays[number * share : (number + 1) * share])) for number in range(volumes)]
    rest = tuple(bays[volumes * share : drives])
    return made, (kind, rest) if rest else None


def _cages(*cages: tuple[str, int, int, int]) -> list[State]:
    """Cages: port, box, bays, number of the first bay."""
    return [{"port": port, "box": box, "bays": bays, "first": first} for port, box, bays, first in cages]


def _card(
    model: str,
    style: State,
    ports: t.Sequence[t.Sequence[t.Any]],
    cages: list[State],
    *,
    cache: State | None,
    policies: t.Mapping[str, str],
    power: str | None = "Batteries",
    sep: list[t.Any] | None = None,
    slot: int = 0,
    no_battery_write_cache: bool = False,
    **more: t.Any,
) -> State:
    return {
        "model": model,
        "product": model.partition(" (")[0],
        "slot": slot,
        "embedded": slot == 0,
        "style": style,
        "lines": _lines(f"card {model}"),
        "cache": cache,
        "no_battery_write_cache": no_battery_write_cache,
        "drive_write_cache": dict(policies),
        "power": power,
        "ports": [list(port) for port in ports],
        "cages": cages,
        "sep": sep,
        **more,
    }


def p408i(no_battery_write_cache: bool = False, **options: t.Any) -> State:
    """An HPE Smart Array P408i-a SR Gen10 with four SATA SSDs in a RAID 6."""
    card = _card(
        "HPE Smart Array P408i-a SR Gen10",
        {**_STYLE_GEN10, "surface_scan": "True"},
        [["1I", "5000000053490000", 4], ["2I", "5000000053490004", 4]],
        _cages(("1I", 0, 4, 1), ("2I", 1, 4, 1)),
        cache={"size": "2.0", "available": "1.8", "backed": "1.8", "read": 20, "ssd_caching": True},
        policies={"configured": "Default", "unconfigured": "Default"},
        sep=["HPE", "Smart Adapter", "Smart Adapter", 379, "6.52"],
        no_battery_write_cache=no_battery_write_cache,
        sensors=[["Inlet Ambient", 45, 45], ["ASIC", 52, 53], ["Top", 48, 48]],
    )
    return _controller(card, [("6", "SSD 960", ("2I:1:1", "2I:1:2", "2I:1:3", "2I:1:4"))], **options)


def p816i(no_battery_write_cache: bool = False, **options: t.Any) -> State:
    """An HPE Smart Array P816i-a SR Gen10: a mirror of two SAS SSDs with Smart Path, ten hard disks alone, two unassigned."""
    card = _card(
        "HPE Smart Array P816i-a SR Gen10",
        {**_STYLE_GEN10, "surface_scan": "False", "device_blank": True},
        [[f"{number}I", f"50000000534900{16 + 4 * number:02X}", 4] for number in (1, 2, 3, 4)],
        _cages(("1I", 1, 4, 1), ("2I", 2, 4, 1), ("3I", 3, 4, 1), ("4I", 6, 4, 1)),
        cache={"size": "4.0", "available": "3.8", "backed": "3.8", "read": 10, "ssd_caching": True},
        policies={"configured": "Disable", "unconfigured": "Default"},
        sep=["HPE", "Smart Adapter", "Smart Adapter", 379, "5.00"],
        no_battery_write_cache=no_battery_write_cache,
        sensors=[["Capacitor", 48, 52], ["ASIC", 60, 66], ["Unknown", 46, 51]],
        first_device=2,
    )
    bays = ("1I:1:3", "1I:1:4", "2I:2:1", "2I:2:2", "2I:2:3", "2I:2:4", "3I:3:1", "3I:3:2", "3I:3:3", "3I:3:4")
    plan: list[_Plan] = [("1", "SAS SSD 800", ("4I:6:1", "4I:6:2")), *(("0", "SAS HDD 6000", (bay,)) for bay in bays)]
    made = _controller(card, plan, ("SAS HDD 6000", ("1I:1:1", "1I:1:2")), **options)
    if len(made["volumes"]) == len(plan) and made["arrays"][0]["drives"] == ["4I:6:1", "4I:6:2"]:
        made["arrays"][0]["smart_path"] = True
        made["volumes"][0]["caching"] = False
    return made


def p410i(battery: bool = False, no_battery_write_cache: bool = False, **options: t.Any) -> State:
    """An old Smart Array P410i with SAS hard disks; as captured it has no battery, and so no write cache."""
    card = _card(
        "Smart Array P410i",
        {**_STYLE_MIDDLE, "smart_path": True, "smart_path_text": "HP SSD Smart Path"},
        [["1I", "5000000053490030"], ["2I", "5000000053490034"]],
        _cages(("1I", 1, 4, 1), ("2I", 1, 4, 5)),
        cache={"size": "0.2", "available": "0.1", "read": 25 if battery else 100},
        policies={"all": "Disabled"},
        power="Batteries" if battery else None,
        sep=["PMCSIERA", " SRC 8x6G", "SRC 8x6G", 250, "RevC"],
        no_battery_write_cache=no_battery_write_cache,
        unused={"0": 6 * 2**20},
    )
    return _controller(card, [("1", "SAS HDD 146", ("2I:1:5", "2I:1:6")), ("1+0", "SAS HDD 146", ("1I:1:1", "1I:1:2", "1I:1:3", "1I:1:4"))], **options)


def p440ar(no_battery_write_cache: bool = False, **options: t.Any) -> State:
    """A Smart Array P440ar: six SATA SSDs as RAID 1+0, two hard disks as a mirror."""
    card = _card(
        "Smart Array P440ar",
        {**_STYLE_OLD, "multidomain": True, "smart_path": True, "smart_path_text": "HPE SSD Smart Path", "managed_cable": True},
        [["1I", "5000000053490040"], ["2I", "5000000053490044"]],
        _cages(("1I", 1, 4, 1), ("2I", 1, 4, 5)),
        cache={"size": "2.0 GB", "available": "1.8 GB", "read": 10, "ssd_caching": True},
        policies={"all": "Disabled"},
        no_battery_write_cache=no_battery_write_cache,
    )
    ssds = ("1I:1:1", "1I:1:2", "1I:1:3", "2I:1:5", "2I:1:6", "2I:1:7")
    return _controller(card, [("1+0", "SATA SSD 1900", ssds), ("1", "SATA HDD 1000", ("1I:1:4", "2I:1:8"))], **options)


def p400i(no_battery_write_cache: bool = False, **options: t.Any) -> State:
    """A very old Smart Array P400i under the driver cciss: one mirror and two unassigned drives."""
    card = _card(
        "Smart Array P400i",
        {**_STYLE_OLD, "strip": 128},
        [["1I", "5000000053490050"], ["2I", "5000000053490054"]],
        _cages(("1I", 1, 4, 1), ("2I", 1, 2, 5)),
        cache={"size": "256 MB", "available": "208 MB", "read": 25},
        policies={"all": "Disabled"},
        no_battery_write_cache=no_battery_write_cache,
    )
    return _controller(card, [("1", "SATA 100", ("1I:1:3", "1I:1:4"))], ("SATA 250", ("1I:1:1", "1I:1:2")), **options)


def h240(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """A Smart HBA H240 in HBA mode: it has no volumes, whatever is asked for; the drives belong to the host."""
    card = _card(
        "Smart HBA H240",
        {**_STYLE_OLD, "multidomain": True},
        [["1I", "5000000053490060"], ["2I", "5000000053490064"]],
        _cages(("1I", 1, 4, 1), ("2I", 1, 4, 5)),
        cache=None,
        policies={},
        power=None,
        slot=1,
        mode="HBA",
        kind="SATA HDD 1000",
    )
    made = _controller(card, [], volumes=0, drives=max(drives or 0, volumes or 0, len(os_devices or [])) or 8)
    given = [str(device["path"]) for device in os_devices or []]
    others = [path for path in (drive["path"] for drive in made["drives"]) if path not in given]
    for drive, path in zip(made["drives"], [*given, *others]):
        drive["path"] = path
    return made


def h240_raid(**options: t.Any) -> State:
    """A Smart HBA H240 in RAID mode: volumes, but no cache."""
    card = _card(
        "Smart HBA H240 (RAID Mode)",
        {
            **_STYLE_MIDDLE,
            "cage_power": False,
            "os_status": False,
            "multidomain": True,
            "partitions": True,
            "smart_path": True,
            "smart_path_text": "Smart Path",
        },
        [["1I", "5000000053490070"], ["2I", "5000000053490074"]],
        _cages(("1I", 1, 4, 1)),
        cache=None,
        policies={"all": "Disabled"},
        power=None,
        slot=1,
        mode="RAID",
        memory="0.2",
    )
    return _uncached(_controller(card, [("0", "SATA HDD 1000", ("1I:1:1",))], **options))


def e208i(volumes: int | None = None, drives: int | None = None, os_devices: t.Sequence[State] | None = None) -> State:
    """An HPE Smart Array E208i-a SR Gen10: no cache. Its lines are assumed from the P408i and, about the cache, the H240."""
    if volumes is None and drives is None and not os_devices:
        volumes, drives = 1, 2
    made = _uncached(p408i(volumes=volumes, drives=drives, os_devices=os_devices))
    made["lines"]["Serial Number"] = "SIMULATED0208"
    return {**made, "model": "HPE Smart Array E208i-a SR Gen10", "product": "HPE Smart Array E208i-a SR Gen10", "cache": None, "power": None}


def _uncached(made: State) -> State:
    for volume in made["volumes"]:
        volume["caching"] = False
    return made


MODELS: dict[str, t.Callable[..., State]] = {
    "HPE Smart Array P408i-a SR Gen10": p408i,
    "HPE Smart Array P816i-a SR Gen10": p816i,
    "Smart Array P410i": p410i,
    "Smart Array P440ar": p440ar,
    "Smart Array P400i": p400i,
    "Smart HBA H240": h240,
    "Smart HBA H240 (RAID Mode)": h240_raid,
    "HPE Smart Array E208i-a SR Gen10": e208i,
}
