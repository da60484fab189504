# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers for the simulator of arcconf, one function per model. All serial numbers and names are invented.

Options of every function: ``volumes``, ``drives`` (data drives; two per volume when not given), ``names`` of the volumes,
``os_devices`` (per volume ``{"path": "/dev/sdb", "wwn": "6…", "size": bytes}``: the real disk that a simulated volume stands
for), ``number`` (makes the serial numbers of several controllers differ). Controllers with maxCache take ``ssds`` and
``maxcache`` (false: no maxCache volume is there yet); ``location`` says where drives are.
"""

from __future__ import annotations

import copy
import functools
import typing as t

from .simulator import State
from .templates import filled

_MEBIBYTE = 1 << 20
_HDD_SIZE, _SSD_SIZE = 953869, 228936


def drive(
    index: int, *, device: int, slot: int, ssd: bool = False, bus: str = "SATA", size: int | None = None, state: str = "Online", number: int = 1
) -> State:
    """One drive. ``index`` is the number of ``Device #``; ``device`` is what commands want."""
    return {
        "index": index,
        "channel": 0,
        "device": device,
        "slot": slot,
        "ssd": ssd,
        "bus": bus,
        "size": size or (_SSD_SIZE if ssd else _HDD_SIZE),
        "block": 512,
        "vendor": "ATA" if bus == "SATA" else "SIMULATE",
        "model": f"SIMULATED {'SSD' if ssd else 'HDD'}",
        "firmware": "SIM1",
        "serial": f"SIM{number:02d}{'S' if ssd else 'H'}{index:04d}",
        "wwn": f"5000{number:04X}{index:08X}",
        "state": state,
        "write_cache": "wb",
        "supports_cache": True,
        "pool": False,
        "os_path": None,
    }


def _volume(number: int, array: int, name: str, raid: str, members: t.Sequence[State], os_device: t.Mapping[str, t.Any], owner: int, *, smart: bool) -> State:
    data = {"0": len(members), "1": 1, "5": len(members) - 1, "6": len(members) - 2, "10": len(members) // 2}.get(raid, 1)
    size = int(os_device["size"]) // _MEBIBYTE if "size" in os_device else max(data, 1) * (min(member["size"] for member in members) - 1024)
    return {
        "id": number,
        "name": name,
        "raid": raid,
        "size": size,
        "status": "Optimal",
        "members": [[member["channel"], member["device"]] for member in members],
        "array": array,
        "disk_name": os_device.get("path", f"/dev/sd{chr(98 + number % 24)}" if smart else None),
        "wwn": str(os_device.get("wwn", f"600508B1001C{owner:04X}{number:016X}")).upper(),
        "read": True,
        "write": "wbb",
        "caching": True,
        "ssd_bypass": False,
        "maxcache": {"read": False, "write": False, "policy": "WB", "flush_left": 0, "used": False},
    }


#: Settings of maxCache 2 and 3.0, and what is made of it.
_SETTINGS: t.Mapping[str, t.Any] = {"flush_rate": 100, "balance": [3, 1], "threshold": 75, "containers": []}


def _controller(
    name: str,
    *,
    volumes: int = 1,
    drives: int | None = None,
    names: t.Sequence[str] = (),
    os_devices: t.Sequence[t.Mapping[str, t.Any]] = (),
    number: int = 1,
    first_device: int = 0,
    first_slot: int = 0,
    raid: str | None = None,
    ssds: int = 0,
    maxcache: t.Mapping[str, t.Any] | None = None,
    **more: t.Any,
) -> State:
    """A controller as ``model …`` of the templates says, with other values where there are some in ``more``."""
    card = {
        "mode": None,
        "protection": None,
        "global_drive_cache": None,
        "bus": "SATA",
        "location": "enclosure",
        **filled("arcconf", f"model {name}", {}),
        **more,
    }
    bus, smart = card.pop("bus"), card["layout"].startswith(("smart", "hba"))
    volumes = max(volumes, len(os_devices))
    count = 2 * volumes if drives is None else drives
    # What GETCONFIG calls Device #0 is not what commands call 0 on cards with an expander; on SmartRAID it is.
    all_drives = [
        drive(
            index + (first_device if smart else 0),
            device=index + first_device,
            slot=index + first_slot,
            ssd=index >= count,
            bus=bus,
            number=number,
            state="Ready" if index >= count else "Online",
        )
        for index in range(count + ssds)
    ]
    data = all_drives[:count]
    share = count // volumes if volumes and count >= volumes else 1
    made: list[State] = []
    arrays: dict[tuple[int, ...], int] = {}
    for index in range(volumes if count else 0):
        owned = data[index * share : (index + 1) * share] or [data[index % count]]
        level = raid or ("0" if len(owned) == 1 else "1" if len(owned) == 2 else "10" if len(owned) % 2 == 0 else "5")
        name = names[index] if index < len(names) else f"volume{index}"
        array = arrays.setdefault(tuple(member["device"] for member in owned), len(arrays))
        made.append(_volume(index, array, name, level, owned, os_devices[index] if index < len(os_devices) else {}, number, smart=smart))
    used = {tuple(address) for volume in made for address in volume["members"]}
    for one in data:
        if (one["channel"], one["device"]) not in used:
            one["state"] = "Ready"
    for one in all_drives:
        if smart and one["state"] == "Ready":
            one["os_path"] = f"/dev/sd{chr(98 + (len(made) + one['index']) % 24)}"
    return {
        "generation": "smart" if smart else "aacraid",
        "serial": f"SIMULATED{number:04d}",
        "wwn": f"50000D1{number:09X}",
        "slot": number,
        "drive_policy": {"Configured": 0, "Unconfigured": 0, "HBA": 0} if smart else None,
        "cache": {"memory": 3644, "read": 10, "write": 90, "no_battery": False, "wait_for_room": False, "bypass_threshold": 1040} if smart else None,
        "maxcache": {**copy.deepcopy(maxcache)} if maxcache else {"kind": None},
        "connectors": 1 if smart else 2,
        "enclosure": {"vendor": "ADAPTEC", "model": "Virtual SGPIO", "firmware": "0102" if smart else "   1"} if card["location"] != "connector" else None,
        # How many readings still say Dirty after write caching was switched off.
        "flush_reads": 3,
        "facts": {},
        "volumes": made,
        "drives": all_drives,
        **card,
    }


def _add_container(controller: State, ssds: t.Sequence[State], raid: str = "1") -> None:
    """The maxCache 3.0 volume: a container of SSDs, always number 100."""
    for one in ssds:
        one["state"] = "Online"
    controller["maxcache"]["containers"] = [
        {
            "id": 100,
            "name": "MaxCache 0",
            "raid": raid,
            "size": min(one["size"] for one in ssds) - 24000,
            "status": "Optimal",
            "members": [[one["channel"], one["device"]] for one in ssds],
            "data": None,
            "line": 64,
        }
    ]


def adaptec_6805(*, build: str = "old", **options: t.Any) -> State:
    """Series 6 with a zero-maintenance module. ``build``: ``old`` (wording until about 2012), ``middle``, or ``new`` (2016 and later)."""
    layout = {"old": "series6 old", "middle": "series6", "new": "series6 new"}[build]
    return _controller("Adaptec ASR-6805", layout=layout, driver="1.2-1 (50877)" if build == "new" else "1.1-7 (28000)", **options)


def adaptec_6805q(*, ssds: int = 1, maxcache: bool = True, **options: t.Any) -> State:
    """Series 6 with maxCache 2: a pool of SSDs. With ``maxcache`` the SSDs are in the pool and every volume is read through it."""
    controller = _controller("Adaptec 6805Q", ssds=ssds, maxcache={"kind": "pool", "write_feature": False, **_SETTINGS}, **options)
    for one in controller["drives"]:
        one["pool"] = maxcache and one["ssd"]
        if one["pool"]:
            one["state"] = "Online"
    for volume in controller["volumes"]:
        volume["maxcache"]["read"] = maxcache and ssds > 0
    return controller


def _plain(name: str, *, backup: bool = False, **options: t.Any) -> State:
    """Series 7 and 8 without maxCache; without ``backup`` there is no cache backup unit and volumes write back unprotected."""
    controller = _controller(name, protection="backup_unit" if backup else None, **options)
    for volume in controller["volumes"]:
        volume["write"] = "wbb" if backup else "wb"
    return controller


def asr_8805(*, build: str = "old", **options: t.Any) -> State:
    """Series 8 without maxCache; ``build`` is ``old`` (arcconf 1.x) or ``new`` (2.x and 3.x)."""
    return _plain("Adaptec ASR-8805", layout={"old": "series8", "new": "series8 new"}[build], **options)


def _with_container(name: str, *, ssds: int = 2, maxcache: bool = True, **options: t.Any) -> State:
    """Series 7 and 8 with maxCache 3.0. The capture of the 7805Q prints no global drive cache policy; the policy is still there."""
    controller = _controller(name, ssds=ssds, first_device=8, maxcache={"kind": "container", **_SETTINGS}, **options)
    if maxcache and ssds:
        _add_container(controller, [one for one in controller["drives"] if one["ssd"]][:2], "1" if ssds > 1 else "0")
    return controller


def serveraid_8k(**options: t.Any) -> State:
    """A card with a battery: the only section that tells of charge and maintenance mode."""
    controller = _controller("IBM ServeRAID 8k", **options)
    controller["enclosure"] = {"vendor": "IBM-ESXS", "model": "VSC7160", "firmware": "1.07"}
    return controller


def smartraid_3154(*, ssds: int = 2, caching: bool = True, **options: t.Any) -> State:
    """SmartRAID with green backup and maxCache 4; the SSDs are free."""
    controller = _controller("Adaptec SmartRAID 3154-8i", ssds=ssds, first_device=8, maxcache={"kind": "smart", "containers": []}, **options)
    return _cached(controller, caching)


def smartraid_3204(*, caching: bool = False, backup: bool = False, **options: t.Any) -> State:
    """SmartRAID as captured: no capacitor, no maxCache, nothing cached; ``backup`` gives it a capacitor."""
    return _cached(_controller("Adaptec SmartRAID 3204-8i", first_device=8, protection="green_backup" if backup else None, **options), caching)


def _cached(controller: State, caching: bool) -> State:
    for volume in controller["volumes"]:
        volume["caching"] = caching
    return controller


def cisco_m1(**options: t.Any) -> State:
    """A SmartRAID card under a server maker's name."""
    return _controller("Cisco UCSC-RAID-M1L16", first_slot=1, maxcache={"kind": "smart", "containers": []}, **options)


def hba_1100(*, volumes: int = 0, drives: int | None = 4, shows_drive_cache: bool = True, **options: t.Any) -> State:
    """An HBA. The captured build prints no ``Write Cache`` lines (``shows_drive_cache=False``), others are said to."""
    options.pop("os_devices", None)
    controller = _controller("Adaptec HBA 1100-16i", volumes=0, drives=drives or 0, first_device=1, first_slot=1, **options)
    controller.update(connectors=4, cache=None, shows_drive_cache=shows_drive_cache, drive_policy=None)
    controller["enclosure"] = {"vendor": "MSCC    ", "model": "Virtual SGPIO", "firmware": "1.32"}
    for index, one in enumerate(controller["drives"]):
        one.update(ssd=True, model="SIMULATED SSD", state="Raw (Pass Through)", vendor="ATA     ", os_path=f"/dev/sd{chr(97 + index % 26)}")
    return controller


MODELS: t.Mapping[str, t.Callable[..., State]] = {
    "Adaptec ASR-6805": adaptec_6805,
    "Adaptec 6805Q": adaptec_6805q,
    "Adaptec ASR-71605": functools.partial(_plain, "Adaptec ASR-71605"),
    "Adaptec ASR-7805Q": functools.partial(_with_container, "Adaptec ASR-7805Q"),
    "Adaptec ASR-8805": asr_8805,
    "Adaptec ASR-81605ZQ": functools.partial(_with_container, "Adaptec ASR-81605ZQ"),
    "IBM ServeRAID 8k": serveraid_8k,
    "Adaptec SmartRAID 3154-8i": smartraid_3154,
    "Adaptec SmartRAID 3204-8i": smartraid_3204,
    "Cisco UCSC-RAID-M1L16": cisco_m1,
    "Adaptec HBA 1100-16i": hba_1100,
}
