# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a simulated Adaptec controller does with what it was told: configured values and faults in, effective values out.

Nothing here changes a state. ``faults`` is the mapping of the faults that one controller has.
"""

from __future__ import annotations

import typing as t

from .simulator import State

Faults = t.Mapping[str, t.Any]

WRITE_BACK, WRITE_THROUGH = "wb", "wt"
#: Number of SETCONTROLLERMODE, and the words of GETCONFIG.
MODES = {0: "RAID (Expose RAW)", 1: "Auto Volume", 2: "HBA", 3: "RAID (Hide RAW)", 4: "Simple Volume", 5: "Mixed"}
#: The numbers of DRIVEWRITECACHEPOLICY.
DEFAULT_POLICY, ENABLE_POLICY, DISABLE_POLICY, UNCHANGED_POLICY = range(4)
POLICY_WORDS = {DEFAULT_POLICY: "Default", ENABLE_POLICY: "Enabled", DISABLE_POLICY: "Disabled", UNCHANGED_POLICY: "Unchanged"}
REDUNDANT = ("1", "1e", "5", "6", "10", "50", "60")

_LOW_CHARGE = "Charge level of capacitor attached to cache module is low"


def faults_of(state: State, number: int) -> dict[str, t.Any]:
    """The faults of one controller. A fault whose value is a list of numbers belongs to these controllers only."""
    return {
        name: value for name, value in state.get("faults", {}).items() if value and (not isinstance(value, list) or number in value or str(number) in value)
    }


def mode(controller: State, faults: Faults) -> str | None:
    """The words of ``Controller Mode``; ``None`` for cards that know only one."""
    if controller["mode"] is None:
        return None
    return MODES[2] if faults.get("hba_mode") else str(controller["mode"])


def in_hba_mode(controller: State, faults: Faults) -> bool:
    return mode(controller, faults) == MODES[2]


def volumes(controller: State, faults: Faults) -> list[State]:
    """In HBA mode there are none; the configuration comes back with the mode."""
    return [] if in_hba_mode(controller, faults) else controller["volumes"]


def unit_health(controller: State, faults: Faults) -> str:
    """``good``, ``failed``, ``learning``, ``charging`` or ``missing``: the battery, ZMM, backup unit or green backup."""
    if not controller["protection"] or faults.get("zmm_not_installed"):
        return "missing"
    for fault, health in (("battery_failed", "failed"), ("learn_cycle", "learning"), ("capacitor_charging", "charging")):
        if faults.get(fault):
            return health
    return "good"


def protected(controller: State, faults: Faults) -> bool:
    return unit_health(controller, faults) == "good"


def writes_back(controller: State, volume: State, faults: Faults) -> bool:
    """The effective write cache of an aacraid volume."""
    if volume["status"] in ("Failed", "Offline"):
        return False
    return volume["write"] == "wb" or (volume["write"] == "wbb" and protected(controller, faults))


def cache_module(controller: State, faults: Faults) -> tuple[str, str | None, str | None]:
    """``Cache Status``, ``Cache State`` and ``Cache State Details`` of a SmartRAID card; the last two only when something is wrong."""
    if faults.get("cache_permanently_disabled"):
        return "Permanently Disabled", "Disabled Cache Module Error", "Permanently Disabled(Reason: Cache module hardware error)"
    if not any(volume["caching"] for volume in volumes(controller, faults)) and not controller["maxcache"].get("containers"):
        return "Not Configured", None, None
    if controller["cache"]["no_battery"]:
        return "Ok", None, None
    health = unit_health(controller, faults)
    if health == "good":
        return "Ok", None, None
    state, reason = {
        "charging": ("Disabled Flashlight Capacitor Charge Is Low", _LOW_CHARGE),
        "learning": ("Disabled Flashlight Capacitor Charge Is Low", _LOW_CHARGE),
        "failed": ("Disabled Flashlight Capacitor Charge Failed", "Charging of capacitor attached to cache module has failed"),
        "missing": ("Disabled Flashlight Capacitor Not Attached", "Capacitor is not attached to cache module"),
    }[health]
    return "Temporarily Disabled", state, f"Temporarily Disabled(Reason: {reason})"


def has_ratio(controller: State, faults: Faults) -> bool:
    """Whether the cache of a SmartRAID card is divided: as long as no volume uses it, both shares are Not Applicable."""
    return cache_module(controller, faults)[0] != "Not Configured"


def drive_class(controller: State, drive: State, faults: Faults) -> str:
    if in_hba_mode(controller, faults) or drive["state"].startswith("Raw"):
        return "HBA"
    return "Unconfigured" if drive["state"] == "Ready" else "Configured"


def drive_state(controller: State, drive: State, faults: Faults) -> str:
    return "Raw (Pass Through)" if in_hba_mode(controller, faults) else str(drive["state"])


def drive_cache(controller: State, drive: State, faults: Faults) -> str:
    """``wb`` or ``wt``: what the drive does now."""
    everywhere = controller.get("global_drive_cache")
    if everywhere in ("enable", "disable"):
        return WRITE_BACK if everywhere == "enable" else WRITE_THROUGH
    policy = (controller.get("drive_policy") or {}).get(drive_class(controller, drive, faults), UNCHANGED_POLICY)
    if policy == ENABLE_POLICY:
        return WRITE_BACK
    if policy == DISABLE_POLICY:
        return WRITE_THROUGH
    # Default on drives of arrays: the firmware decides, and decides for no cache; elsewhere it leaves the drive alone.
    if policy == DEFAULT_POLICY and drive_class(controller, drive, faults) == "Configured":
        return WRITE_THROUGH
    return str(drive["write_cache"])


def maxcache_kind(controller: State) -> str | None:
    """``pool`` (maxCache 2), ``container`` (maxCache 3.0), ``smart`` (maxCache 4) or ``None``."""
    kind = controller["maxcache"].get("kind")
    return str(kind) if kind else None


def caches_writes(controller: State, volume: State) -> bool:
    """Whether writes of this volume go to the SSDs first, by its settings."""
    return bool(volume["maxcache"]["write"]) and volume["maxcache"]["policy"] != "WT"


def is_dirty(controller: State, volume: State) -> bool:
    """Write caching on: always; off: until it has been flushed (``flush_left`` is counted down by reads)."""
    return caches_writes(controller, volume) or volume["maxcache"]["flush_left"] > 0


def container_of(controller: State, volume: State) -> State | None:
    """The maxCache volume that caches this one."""
    containers: list[State] = controller["maxcache"].get("containers") or []
    if maxcache_kind(controller) == "smart":
        return next((container for container in containers if container["data"] == volume["id"]), None)
    return containers[0] if containers else None


def container_is_dirty(controller: State, container: State) -> bool:
    return any(is_dirty(controller, volume) for volume in controller["volumes"] if container["data"] in (None, volume["id"]))


def drive_at(controller: State, channel: int, device: int) -> State | None:
    return next((drive for drive in controller["drives"] if (drive["channel"], drive["device"]) == (channel, device)), None)


def volume_numbered(controller: State, number: int, faults: Faults) -> State | None:
    return next((volume for volume in volumes(controller, faults) if volume["id"] == number), None)


def members(controller: State, owner: State) -> list[State]:
    """The drives of a volume, an array or a maxCache container, in its order."""
    return [drive for drive in (drive_at(controller, *address) for address in owner["members"]) if drive is not None]
