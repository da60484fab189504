# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIG AD and CN: the card, its cache and what protects it, its connectors."""

from __future__ import annotations

from . import arcconf_state as now
from .arcconf_layouts import Layout
from .arcconf_layouts_smart import MAXCRYPTO, MAXCRYPTO_COLUMN
from .arcconf_lines import Lines, block, entries, layout_of, line, section, titled
from .simulator import State


def adapter(controller: State, number: int, faults: now.Faults) -> Lines:
    """``GETCONFIG n AD``."""
    layout = layout_of(controller)
    parts = {
        "protection": lambda: protection(controller, faults),
        "maxcache properties": lambda: _maxcache_properties(controller),
        "sensors": lambda: _sensors(layout, controller),
        "maxcrypto": lambda: block(layout._replace(column=MAXCRYPTO_COLUMN), MAXCRYPTO, 3, {}),
        "connectors": lambda: _connectors_in_adapter(controller, faults),
    }
    printed = section("Controller information") + block(layout, layout.adapter, 3, adapter_values(controller, faults), parts)
    return [*printed, ""]


def cache_properties(controller: State, faults: now.Faults) -> Lines:
    """``GETCONFIG n AD CACHE``: only the cache properties (no capture of this form)."""
    layout = layout_of(controller)
    values = adapter_values(controller, faults)
    labels = [label for kind, label, _constant in entries(layout.adapter) if kind == "label" and ("cache" in label.casefold())]
    found = [line(layout, 3, label, value) for label in labels if (value := values.get(label.casefold())) is not None]
    return [*section("Controller information"), *titled(layout, "Cache Properties"), *found, ""]


def adapter_values(controller: State, faults: now.Faults) -> dict[str, str | None]:
    """Every changing line of the adapter section, by its label in lower case."""
    volumes = now.volumes(controller, faults)
    maxcache = controller["maxcache"]
    failed = sum(volume["status"] in ("Failed", "Offline") for volume in volumes)
    degraded = sum("egraded" in volume["status"] for volume in volumes)
    pool = [drive for drive in controller["drives"] if drive["pool"]]
    values: dict[str, str | None] = {
        "controller status": "Optimal",
        "controller mode": now.mode(controller, faults),
        "controller model": controller["model"],
        "controller serial number": controller["serial"],
        "controller world wide name": controller["wwn"],
        "physical slot": str(controller["slot"]),
        "logical devices/failed/degraded": f"{len(volumes)}/{failed}/{degraded}",
        "firmware": controller["firmware"],
        "bios": controller["firmware"],
        "boot flash": controller["firmware"],
        "driver": controller["driver"],
        "number of ports": str(controller["connectors"]),
        "internal port count": str(controller["connectors"]),
        "reboot required reasons": "Controller mode change" if controller["pending_mode"] else "Not Available",
        "ssds assigned to maxcache pool": str(len(pool)),
        "maxcache read cache pool size": f"{sum(drive['size'] for drive in pool) / 1026:.3f} GB",
    }
    if now.maxcache_kind(controller) in ("pool", "container"):
        values.update(
            {
                "maxcache flush and fetch rate": str(maxcache["flush_rate"]),
                "maxcache read, write balance factor": "{},{}".format(*maxcache["balance"]),
                "maxcache dirty page threshold": str(maxcache["threshold"]),
            }
        )
    policy = controller.get("global_drive_cache")
    if policy is not None:
        values["global physical device write cache policy"] = {"enable": "Enabled", "disable": "Disabled", "drivespecific": "Drive Specific"}[policy]
    if controller["generation"] == "smart":
        values.update(_smart_adapter_values(controller, faults))
    return {**values, **controller["facts"]}


def _smart_adapter_values(controller: State, faults: now.Faults) -> dict[str, str | None]:
    active = bool(now.volumes(controller, faults))
    words = {
        "queue depth": "Automatic",
        "monitor and performance delay": "60 minutes",
        "elevator sort": "Enabled",
        "degraded mode performance optimization": "Disabled",
        "latency": "Disabled",
        "background consistency check": "Idle",
        "consistency check delay": "3 seconds",
        "parallel consistency check supported": "Enabled",
        "parallel consistency check count": "1",
        "inconsistency repair policy": "Disabled",
        "consistency check inconsistency notify": "Disabled",
        "rebuild priority": "High",
    }
    values: dict[str, str | None] = {label: value if active else "Not Applicable" for label, value in words.items()}
    cache = controller["cache"]
    if cache:
        status, state, details = now.cache_module(controller, faults)
        switch = {True: "Enabled", False: "Disabled"}
        values.update(
            {
                "cache status": status,
                "cache state": state,
                "cache state details": details,
                "cache memory": f"{cache['memory']} MB",
                "read cache percentage": f"{cache['read']} percent" if now.has_ratio(controller, faults) else "Not Applicable",
                "write cache percentage": f"{cache['write']} percent" if now.has_ratio(controller, faults) else "Not Applicable",
                "no-battery write cache": switch[cache["no_battery"]],
                "wait for cache room": switch[cache["wait_for_room"]],
                "write cache bypass threshold size": f"{cache['bypass_threshold']} KB",
            }
        )
    for kind, policy in (controller["drive_policy"] or {}).items():
        values[f"{kind} drives".casefold()] = now.POLICY_WORDS[policy]
    return values


def protection(controller: State, faults: now.Faults) -> Lines:
    """The section about battery, ZMM, cache backup unit or green backup."""
    layout, health = layout_of(controller), now.unit_health(controller, faults)
    if controller["generation"] == "smart":
        return [] if health == "missing" and not controller["protection"] else _green_backup(layout, health)
    if controller["protection"] == "battery":
        return _battery(layout, health)
    if controller["series"] in ("7", "8"):
        return _backup_unit(layout, health)
    word = {
        "good": "ZMM Optimal",
        "failed": "ZMM Failed",
        "learning": "ZMM Charging / Not Ready",
        "charging": "ZMM Charging / Not Ready",
        "missing": "ZMM not installed",
    }[health]
    return [*titled(layout, "Controller ZMM Information"), line(layout, 3, "Status", word)]


def _battery(layout: Layout, health: str) -> Lines:
    word = {"good": "Optimal", "failed": "Failed", "learning": "Maintenance mode", "charging": "Charging", "missing": "Not Installed"}[health]
    printed = [*titled(layout, "Controller Battery Information"), line(layout, 3, "Status", word)]
    if health in ("failed", "missing"):
        return printed
    charge, left = {"good": (100, "3 days, 16 hours"), "learning": (62, "2 days, 4 hours"), "charging": (35, "1 days, 6 hours")}[health]
    return [
        *printed,
        line(layout, 3, "Over temperature", "No"),
        line(layout, 3, "Capacity remaining", f"{charge} percent"),
        line(layout, 3, "Time remaining (at current draw)", f"{left}, 0 minutes"),
    ]


def _backup_unit(layout: Layout, health: str) -> Lines:
    overall = {"good": "Ready", "failed": "Not Ready", "learning": "Not Ready", "charging": "Charging", "missing": "Not Present"}[health]
    printed = [*titled(layout, "Controller Cache Backup Unit Information"), "", line(layout, 4, "Overall Backup Unit Status", overall)]
    if health == "missing":
        return printed
    supercap = {"good": "Ready", "failed": "Fatal", "learning": "Not Ready", "charging": "Charging"}[health]
    printed += [
        "",
        line(layout, 9, "Backup Unit Type", "AFM-700/700LP"),
        line(layout, 9, "Non-Volatile Storage Status", "Ready"),
        line(layout, 9, "Supercap Status", supercap),
    ]
    if health == "failed":
        return printed
    rule = " " * 9 + "-" * 35
    charge = {"good": "100", "learning": "48", "charging": "35"}[health]
    printed += [
        "",
        rule,
        "         Supercap Information".ljust(layout.column),
        rule,
        line(layout, 9, "Current Temperature", "27 deg C"),
        line(layout, 9, "Threshold Temperature", "51 deg C"),
        "         Life-time Temperature Recorded".ljust(layout.column),
        line(layout, 9, "(Min/Max)", "22 deg C/ 34 deg C"),
        "",
        line(layout, 9, "Voltage(Present/Max)", "4962 mV/ 5302 mV"),
        line(layout, 9, "Life-time Max Voltage Recorded", "5510 mV"),
        "",
        line(layout, 9, "Current Drawn(Present/Max)", "0 mA/ 560 mA"),
        line(layout, 9, "Health", "100 percent"),
        line(layout, 9, "Charge Level", f"{charge} percent"),
        line(layout, 9, "Estimated Life-time", "5 Years, 0 Month"),
        line(layout, 9, "Serial Number", "SIMULATED"),
    ]
    if layout.capital or health == "learning":
        printed += [
            "",
            line(layout, 9, "Learn Status", "Active" if health == "learning" else "Idle"),
            line(layout, 9, "Next Scheduled Learn Cycle", "281 hours"),
            "",
            line(layout, 9, "Present Capacitance", "288 farads"),
        ]
    return printed


def _green_backup(layout: Layout, health: str) -> Lines:
    status = {
        "good": "Ok",
        "failed": "Failed (Replace Batteries/Capacitors)",
        "learning": "Recharging",
        "charging": "Not Fully Charged",
        "missing": "No Battery Connected",
    }[health]
    charge = {"good": "100", "failed": "0", "learning": "62", "charging": "0", "missing": "0"}[health]
    wear = "0" if health in ("failed", "missing") else "100"
    values = (
        ("Backup Power Status", status),
        ("Battery/Capacitor Pack Count", "0" if health == "missing" else "1"),
        ("Hardware Error", "Charge Start Error" if health == "failed" else "No Error"),
        ("Power Type", "Supercap"),
        ("Current Temperature", "19 deg C"),
        ("Maximum Temperature", "60 deg C"),
        ("Threshold Temperature", "50 deg C"),
        ("Voltage", "5208 milliVolts" if health == "good" else "3885 milliVolts"),
        ("Maximum Voltage", "5208 milliVolts"),
        ("Current", "0 milliAmps"),
        ("Health Status", f"{wear} percent"),
        ("Relative Charge", f"{charge} percent"),
    )
    return titled(layout, "Green Backup Information") + [line(layout, 3, label, value) for label, value in values]


def _maxcache_properties(controller: State) -> Lines:
    layout = layout_of(controller)
    if now.maxcache_kind(controller) != "smart":
        return []
    return [*titled(layout, "maxCache Properties"), line(layout, 3, "maxCache Version", "4"), line(layout, 3, "maxCache RAID5 WriteBack Enabled", "Enabled")]


def _sensors(layout: Layout, controller: State) -> Lines:
    places = ("Inlet Ambient", "ASIC", "Top", "Bottom") if controller["series"] != "hba" else ("Inlet Ambient", "ASIC")
    printed: Lines = []
    for index, place in enumerate(places):
        for label, value in (("Sensor ID", str(index)), ("Current Value", "29 deg C"), ("Max Value Since Powered On", "30 deg C"), ("Location", place)):
            printed.append(line(layout, 3, label, value))
        printed.append("")
    return printed


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
        mode = now.mode(controller, faults) or ""
        if lanes:
            printed += [line(layout, indent + 3, "Connector Name", name), "", *_lanes(controller, index, indent=indent), ""]
            continue
        wide = layout.column == 46
        values = [("Connector name" if wide else "Connector Name", name)]
        values += [("Connection Number", str(index))] if wide else []
        values += [("Functional Mode", mode), ("Connector Location", "Internal"), ("SAS Address", f"{controller['wwn'][:-1]}{index:X}")]
        values += [("Current Discovery Protocol", "AutoDetect"), ("Pending Discovery Protocol", "Not Applicable")] if wide else []
        printed += [line(layout, indent + 3, label, value) for label, value in values] + ["", ""]
    return printed


def _lanes(controller: State, connector: int, *, indent: int) -> Lines:
    layout = layout_of(controller)
    inner = 6 if indent else 3
    outer = " " * inner + "-" * (38 if indent else 67)
    printed = [outer, "   Lane Information".ljust(layout.column), outer]
    for lane in range(4):
        device = connector * 4 + lane
        printed.append(f"{' ' * inner}Lane #{lane}".ljust(layout.column))
        for label, value in (("Channel ID", "0"), ("Device ID", str(device)), ("SAS Address", controller["wwn"]), ("PHY Identifier", str(device ^ 3))):
            printed.append(line(layout, inner + 3, label, value))
        rule = " " * (inner + 3) + "-" * 35 if indent else " " * 6 + "-" * 64
        printed += [rule, f"{' ' * (inner + 3)}Lane SAS Phy Information".ljust(layout.column), rule]
        if indent:
            printed.append(f"            No SAS Phy information available for lane #{lane}        ")
        else:
            values = (("SAS Address", controller["wwn"]), ("Attached PHY Identifier", "0"), ("Attached SAS Address", f"3{controller['wwn'][1:-1]}{device:X}"))
            printed += [line(layout, 9, label, value) for label, value in values]
            printed.append(line(layout, 9, "Negotiated Logical Link Rate", "PHY enabled - 6 Gbps"))
        printed.append("")
    return printed
