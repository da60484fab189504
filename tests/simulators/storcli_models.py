# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers that the simulators of storcli and perccli can be given: each function makes the state of one controller.

State of a controller (plain data)::

    model, product, overview    the name one asks for, the product name, and the name in the overview (without blanks)
    layout                      which labels it prints, see storcli_labels
    hba                         true for an adapter without RAID (driver mpt3sas)
    ir                          true for an adapter whose firmware makes volumes, which have a number and no group; unlisted: it prints none of them
    serial, sas_address, ...    what identifies the card; invented
    protection                  null, or {"kind": "cachevault" | "battery", "model": "CVPM02", ...}
    abilities                   {"write_back", "cached_io", "ssd_association", "jbod_write_cache", "change_ssd_cache"}
    settings                    {"cacheflushint": seconds, "jbodwritecache": "Default", "batterywarning": "ON", ...}
    enclosure, slots            number of the enclosure and of its slots
    absent_labels               labels of volumes that this card does not print
    drives                      [{"slot", "id", "group", "row", "jbod", "size", "interface", "media", "model", "serial", "wwn", ...}]
    volumes                     [{"id", "group", "level", "size", "name", "read", "write", "io", "disk_cache", "os_path", "wwn", ...}]

What is configured is in the state, never what is effective: that follows from the state and the faults when it is printed.
"""

from __future__ import annotations

import functools
import typing as t

from .simulator import State, letters

_GIB = 1 << 30
_HARD_DISK = {"interface": "SAS", "media": "HDD", "model": "SIM-HDD4000SAS", "manufacturer": "SIMULATE", "firmware": "SIM1", "size": 3725 * _GIB}
_SATA_HARD_DISK = {"interface": "SATA", "media": "HDD", "model": "SIM-HDD4000SATA", "manufacturer": "ATA", "firmware": "SIM1", "size": 3725 * _GIB}
_SATA_SSD = {"interface": "SATA", "media": "SSD", "model": "SIM-SSD960SATA", "manufacturer": "ATA", "firmware": "SIM2", "size": 893 * _GIB}
_NVME_SSD = {"interface": "NVMe", "media": "SSD", "model": "SIM-SSD800NVME", "manufacturer": "NVMe", "firmware": "SIM3", "size": 745 * _GIB}


def _drive(kind: State, index: int, slot: int, group: int | None, row: int | None) -> State:
    return {
        **kind,
        "slot": slot,
        "id": index + 8,
        "group": group,
        "row": row,
        "serial": f"SIMULATEDDRIVE{index:04d}",
        "wwn": f"5000CACE5EED{index:04X}",
        "write_cache": "Enabled" if kind["media"] == "SSD" else "Disabled",
    }


def _level(members: int) -> str:
    return {1: "RAID0", 2: "RAID1", 3: "RAID5"}.get(members, "RAID6")


def _usable(level: str, members: int, size: int) -> int:
    return size * {"RAID0": members, "RAID1": 1, "RAID5": members - 1}.get(level, members - 2)


def _cachevault(model: str) -> State:
    return {"kind": "cachevault", "model": model, "temperature": 29, "made": "2026/01/15", "energy": 332, "capacitance": 98, "reserve": 96}


def _megaraid(
    model: str,
    product: str,
    layout: str,
    protection: State | None,
    *,
    volumes: int = 2,
    drives: int | None = None,
    unconfigured: int = 0,
    os_devices: t.Sequence[State] | None = None,
    media: str = "HDD",
    index: int = 0,
    jbod_write_cache: bool = False,
    jbod: bool = False,
    abilities: t.Mapping[str, bool] | None = None,
    disk: State | None = None,
    ssd: State | None = None,
    enclosure: int = 252,
    first_slot: int = 0,
    counting_down: bool = False,
    dimmer: str = "dflt",
    absent_labels: t.Sequence[str] = (),
    policy: t.Mapping[str, t.Any] | None = None,
    overview: t.Mapping[str, t.Any] | None = None,
) -> State:
    """A card with RAID.

    :param volumes: how many volumes; 64 on the older cards, 240 on the newer ones at most.
    :param drives: how many drives; two per volume unless told.
    :param unconfigured: how many of the drives belong to no volume.
    :param os_devices: per volume the disk of the operating system that it stands for: path, wwn, size, and name if wanted.
    :param media: what the drives are: HDD, SSD, or mixed (the first drive group of SSDs).
    :param index: makes the identifiers of several controllers of one host differ.
    :param jbod: the unconfigured drives are passed through, each with a cache that is on.
    :param jbod_write_cache: the card can set the cache of drives without RAID (``Support JBOD Write cache``).
    """
    disk, ssd = disk or _HARD_DISK, ssd or _SATA_SSD
    policies = {"read": "RA", "write": "WB", "io": "Direct", "disk_cache": "Default", **(policy or {})}
    volumes = min(volumes, 240 if counting_down else 64)
    drives = 2 * volumes if drives is None else drives
    # The drives are dealt out to the volumes evenly; with fewer drives than volumes several volumes are slices of one drive group.
    configured = max(drives - unconfigured, 0)
    groups = min(volumes, configured)
    members = configured // groups if groups else 0
    kinds = [ssd if media == "SSD" or (media == "mixed" and group == 0) else disk for group in range(groups)] or [disk]
    made_drives, made_volumes = [], []
    for number in range(drives):
        group = number // members if members and number < groups * members else None
        made_drives.append(_drive(kinds[group or 0], number, first_slot + number, group, None if group is None else number % members))
    for number in range(volumes if groups else 0):
        group, level = number % groups, _level(members)
        slices = len(range(group, volumes, groups))
        given = dict(os_devices[number]) if os_devices and number < len(os_devices) else {}
        made_volumes.append(
            {
                "id": 239 - number if counting_down else number,
                "group": group,
                "level": level,
                "size": given.get("size", _usable(level, members, kinds[group]["size"]) // slices),
                "name": given.get("name", ""),
                "strip": "256 KB",
                "os_path": given.get("path", f"/dev/sd{letters(number)}"),
                "wwn": given.get("wwn", f"600062b2cacef1ee7{number:015x}"),
                "consistent": "Yes",
                "check": "ON",
                "created": ["21-11-2026", "09:00:00 AM"],
                "ssd_caching": False,
                **policies,
            }
        )
    for drive in made_drives:
        if jbod and drive["group"] is None:
            drive.update(jbod=True, write_cache="Enabled")
    return {
        "model": model,
        "product": product,
        "overview": {"Ports": 8, "sPR": "On", "DS": "1&2", "EHS": "Y", "ASOs": 3, **(overview or {})},
        "layout": layout,
        "hba": False,
        "serial": f"SIMULATED{index + 1:04d}",
        "sas_address": f"5000cace5e0000{index:02x}",
        "bus": 1 + index,
        "dimmer": dimmer,
        "protection": protection,
        "abilities": {
            "write_back": True,
            "cached_io": True,
            "ssd_association": False,
            "change_ssd_cache": True,
            "jbod_write_cache": jbod_write_cache,
            **(abilities or {}),
        },
        "settings": {"cacheflushint": 4, "jbodwritecache": "Default", "batterywarning": "ON" if protection else "OFF", "bootwithpinnedcache": "OFF"},
        "enclosure": enclosure,
        "slots": max(8, len(made_drives) + first_slot),
        "absent_labels": list(absent_labels),
        "drives": made_drives,
        "volumes": made_volumes,
    }


def megaraid_9361(**options: t.Any) -> State:
    """MegaRAID 9361-8i: SAS3108, 1 GiB, CacheVault; the cache of SSDs cannot be changed, CacheCade."""
    abilities = {"change_ssd_cache": False, "ssd_association": True}
    product = "AVAGO MegaRAID SAS 9361-8i"
    return _megaraid("MegaRAID 9361-8i", product, "sas3108", _cachevault("CVPM02"), abilities=abilities, **options)


def megaraid_9560(**options: t.Any) -> State:
    """MegaRAID 9560-8i: SAS3908, 4 GiB, CacheVault; volumes count down from 239, no cached I/O."""
    settings = {"abilities": {"cached_io": False}, "counting_down": True, "enclosure": 251, "first_slot": 1, "overview": {"ASOs": 4}}
    return _megaraid("MegaRAID 9560-8i", "MegaRAID 9560-8i 4GB", "sas3908", _cachevault("CVPM05"), **settings, **options)


def serveraid_m5015(**options: t.Any) -> State:
    """ServeRAID M5015: SAS2108, 512 MiB, battery iBBU08 with a learn cycle that takes the protection away."""
    battery = {"kind": "battery", "model": "iBBU08", "temperature": 34, "made": "2026/01/15", "retention": "48 hours +", "mode": "4", "learn": True}
    settings = {"abilities": {"ssd_association": True}, "disk": _SATA_HARD_DISK, "dimmer": "none", "overview": {"ASOs": 0}}
    return _megaraid("ServeRAID M5015", "ServeRAID M5015 SAS/SATA Controller", "sas2108", battery, **settings, **options)


def hpe_mr216i(**options: t.Any) -> State:
    """HPE MR216i-a: no write cache and no energy pack; HPE's own words (Arrays, Energy Pack, Transformation)."""
    settings = {
        "abilities": {"write_back": False, "cached_io": False, "change_ssd_cache": False},
        "counting_down": True,
        "enclosure": 251,
        "first_slot": 1,
        "dimmer": "none",
        "ssd": _NVME_SSD,
        "policy": {"read": "NoRA", "write": "WT"},
        "overview": {"Ports": 16, "EHS": "N", "ASOs": 2},
    }
    return _megaraid("HPE MR216i-a", "HPE MR216i-a Gen10+", "hpe", None, **{"media": "SSD", **settings, **options})


def _perc_battery() -> State:
    return {"kind": "battery", "model": "BBU", "temperature": 24, "made": "0/00/00", "retention": "0 hour(s)", "mode": "-", "learn": False}


def perc_h740p(**options: t.Any) -> State:
    """PERC H740P Adapter: SAS3508, 8 GiB, battery; printed with the labels of the H755, which is the nearest card with a capture."""
    settings = {"enclosure": 64, "overview": {"DS": "3", "EHS": "N", "ASOs": 0}}
    return _megaraid("PERC H740P", "PERC H740P Adapter", "perc", _perc_battery(), **settings, **options)


def perc_h755(**options: t.Any) -> State:
    """PERC H755 Front: SAS3916, 8 GiB, battery; volumes count down from 239, no cached I/O."""
    settings = {"abilities": {"cached_io": False}, "counting_down": True, "overview": {"Ports": 16, "DS": "3", "EHS": "N", "ASOs": 0}}
    settings["absent_labels"] = ["VD has Emulated PD"]
    return _megaraid("PERC H755", "PERC H755 Front", "perc", _perc_battery(), **settings, **options)


def _hba(
    model: str,
    layout: str,
    adapter: str,
    *,
    volumes: int = 0,
    drives: int = 8,
    os_devices: t.Sequence[State] | None = None,
    media: str = "HDD",
    index: int = 0,
) -> State:
    """An adapter without RAID: the operating system sees the drives, there are no volumes (the option is taken and ignored)."""
    kinds = [_SATA_SSD if media == "SSD" or (media == "mixed" and slot == 0) else _SATA_HARD_DISK for slot in range(drives)]
    made = [_drive(kind, slot, slot, None, None) for slot, kind in enumerate(kinds)]
    for drive, device in zip(made, os_devices or ()):
        drive.update({"size": device.get("size", drive["size"]), "wwn": str(device.get("wwn", drive["wwn"])).upper()})
    return {
        "model": model,
        "product": model,
        "layout": layout,
        "hba": True,
        "adapter": adapter,
        "serial": f"SIMULATED{index + 1:04d}",
        "sas_address": f"5000cace5e0000{index:02x}",
        "bus": 1 + index,
        "protection": None,
        "abilities": {},
        "settings": {},
        "enclosure": 0,
        "slots": max(16, drives),
        "drives": made,
        "volumes": [],
    }


def lsi_3008_ir(*, volumes: int = 1, drives: int | None = None, unlisted: bool = False, **options: t.Any) -> State:
    """LSI 9300-8i with IR firmware: mirrors of two drives each, whose rows have the number of a volume and no group.

    :param unlisted: as some builds print it: no list of volumes at all, and every drive as good.
    """
    state = _hba("LSI3008-IR", "hba9400", "  SAS3008(C0)", drives=max(2 * volumes, drives or 0), **options)
    state.update({"ir": True, "unlisted": unlisted, "volumes": [{"id": number, "size": state["drives"][0]["size"]} for number in range(volumes)]})
    return state


hba_9400 = functools.partial(_hba, "HBA 9400-16i", "hba9400", "  SAS3416(B0)")
hba_9500 = functools.partial(_hba, "HBA 9500-8i", "hba9500", "  SAS3808(A0)")

#: What storcli is given; the first is the default.
BROADCOM: t.Mapping[str, t.Callable[..., State]] = {
    "MegaRAID 9361-8i": megaraid_9361,
    "MegaRAID 9560-8i": megaraid_9560,
    "ServeRAID M5015": serveraid_m5015,
    "HPE MR216i-a": hpe_mr216i,
    "HBA 9400-16i": hba_9400,
    "HBA 9500-8i": hba_9500,
    "LSI3008-IR": lsi_3008_ir,
}
#: What perccli is given; the first is the default.
DELL: t.Mapping[str, t.Callable[..., State]] = {"PERC H740P": perc_h740p, "PERC H755": perc_h755}
