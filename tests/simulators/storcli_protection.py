# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit that protects the cache of a simulated MegaRAID card: a battery or a CacheVault module, and what is told of it.

Sections of ``/cx/cv show all`` are held to a capture. For ``/cx/bbu show all`` there is none: its section and property names are
those that public readers of the tool use, and those of its predecessor MegaCli.
"""

from __future__ import annotations

import types
import typing as t

from .simulator import State

Response = t.Dict[str, t.Any]

_NEXT_LEARN = "2026/12/12  04:00:00"


class Protection(t.NamedTuple):
    """How the protection of a cache is: the words in the different places where the tool tells it.

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
_FAULTS = (
    Protection("battery_missing", "Missing", "Msng", 1, False, True, {"Battery Pack Missing": "Yes"}),
    Protection("battery_failed", "Failed", "Fld", 1024, False, True, _REPLACE),
    Protection("battery_degraded", "Degraded(Need Attention)", "Dgd", 32, False, True, {"Learn Cycle Requested": "Yes"}),
    Protection("learn_cycle", "Learning", "Unkwn", 64, False, False, {"Learn Cycle Active": "Yes", "Charging Status": "Discharging"}),
    Protection("capacitor_charging", "Charging", "Chrg", 8, False, False, {"Charging Status": "Charging"}),
)


def told_protection(unit: State | None, faults: t.Mapping[str, t.Any]) -> Protection | None:
    """How a unit is with these faults: the gravest is told; ``None`` where the card never had a unit."""
    if not unit:
        return None
    told = next((told for told in _FAULTS if faults.get(told.fault or "")), Protection())
    if told.fault == "learn_cycle" and unit["kind"] == "battery":
        return told._replace(state="Unknown")  # the word of a battery that was watched in its learn cycle
    return told


def summary(unit: State | None, told: Protection | None) -> Response:
    """The row table "BBU_Info" or "Cachevault_Info" in the summary of a controller; nothing where there is no unit."""
    if not unit or not told or told.fault == "battery_missing":
        return {}
    row = {"Model": unit["model"], "State": told.state}
    if unit["kind"] == "cachevault":
        return {"Cachevault_Info": [{**row, "Temp": f"{unit['temperature']}C", "Mode": "-", "MfgDate": unit["made"]}]}
    row.update({"RetentionTime": unit["retention"], "Temp": f"{unit['temperature']}C", "Mode": unit["mode"], "MfgDate": unit["made"]})
    return {"BBU_Info": [{**row, "Next Learn": _NEXT_LEARN} if unit["learn"] else row]}


def _properties(rows: t.Mapping[str, t.Any]) -> list[Response]:
    return [{"Property": label, "Value": value} for label, value in rows.items()]


def cachevault(unit: State, told: Protection, number: int) -> Response:
    """Answer to ``/cx/cv show all`` of a card with a CacheVault module."""
    firmware = {"Replacement required": "No", "No space to cache offload": "No", "Module microcode update required": "No"}
    charging = told.fault == "capacitor_charging"
    return {
        "Cachevault_Info": _properties({"Type": unit["model"], "Temperature": f"{unit['temperature']} C", "State": told.state}),
        "Firmware_Status": _properties({label: told.firmware.get(label, value) for label, value in firmware.items()}),
        "GasGaugeStatus": _properties(
            {
                "Pack Energy": f"{unit['energy'] // 4 if charging else unit['energy']} J",
                "Capacitance": f"{0 if told.fault == 'battery_failed' else unit['capacitance']} %",
                "Remaining Reserve Space": unit["reserve"],
            }
        ),
        "Design_Info": _properties(
            {
                "Date of Manufacture": "01/15/2026",
                "Serial Number": 1 + number,
                "Manufacture Name": "SIMULATED",
                "Design Capacity": "288 J",
                "Device Name": unit["model"],
                "tmmFru": "N/A",
                "CacheVault Flash Size": "N/A",
                "tmmBatversionNo": "0x0",
                "tmmSerialNo": "SIMULATED",
                "tmm Date of Manufacture": "01/15/2026",
                "tmmPcbAssmNo": "SIMULATED",
                "tmmPCBversionNo": "0x05",
                "tmmBatPackAssmNo": "SIMULATED",
                "scapBatversionNo": "0x0",
                "scapSerialNo": "SIMULATED",
                "scap Date of Manufacture": "01/15/2026",
                "scapPcbAssmNo": "SIMULATED",
                "scapPCBversionNo": " G",
                "scapBatPackAssmNo": "SIMULATED",
                "Module Version": "SIMULATED",
            }
        ),
        "Properties": _properties(
            {
                "Auto Learn Period": "28d (2419200 seconds)",
                "Next Learn time": f"{_NEXT_LEARN} (850363200 seconds)",
                "Learn Delay Interval": "0 hour(s)",
                "Auto-Learn Mode": "Transparent",
            }
        ),
    }


def battery(unit: State, told: Protection, number: int) -> Response:
    """Answer to ``/cx/bbu show all`` of a card with a battery."""
    charge = {None: 96, "capacitor_charging": 40, "learn_cycle": 35, "battery_degraded": 60}.get(told.fault, 5)
    firmware = {
        "Charging Status": "None",
        "Voltage": "OK",
        "Temperature": "OK",
        "Learn Cycle Requested": "No",
        "Learn Cycle Active": "No",
        "Learn Cycle Status": "OK",
        "Learn Cycle Timeout": "No",
        "I2C Errors Detected": "No",
        "Battery Pack Missing": "No",
        "Replacement required": "No",
        "Remaining Capacity Low": "Yes" if charge < 10 else "No",
        "Periodic Learn Required": "No",
        "Transparent Learn": "No",
        "No space to cache offload": "No",
        "Pack is about to fail & should be replaced": "No",
        "Cache Offload premium feature required": "No",
        "Module microcode update required": "No",
    }
    return {
        "BBU_Info": _properties(
            {
                "Type": unit["model"],
                "Voltage": "4018 mV",
                "Current": "0 mA",
                "Temperature": f"{unit['temperature']} C",
                "Battery State": told.state,
                "Design Mode": "4: 48+ Hrs retention with a non-transparent learn cycle and moderate service life.",
            }
        ),
        "BBU_Firmware_Status": _properties({label: told.firmware.get(label, value) for label, value in firmware.items()}),
        "GasGaugeStatus": _properties(
            {
                "Fully Discharged": "No",
                "Fully Charged": "Yes" if charge > 95 else "No",
                "Discharging": "Yes" if told.fault == "learn_cycle" else "No",
                "Initialized": "Yes",
                "Remaining Time Alarm": "No",
                "Terminate Discharge": "No",
                "Over Temperature": "No",
                "Charging Terminated": "No",
                "Over Charged": "No",
            }
        ),
        "BBU_Capacity_Info": _properties(
            {
                "Relative State of Charge": f"{charge}%",
                "Absolute State of charge": f"{charge - 4}%",
                "Remaining Capacity": f"{charge * 14} mAh",
                "Full Charge Capacity": "1400 mAh",
                "Run time to empty": "Battery is not being charged.  ",
                "Average time to empty": "Battery is not being charged.  ",
                "Estimated Time to full recharge": "Battery is not being charged.  ",
                "Cycle Count": 21,
            }
        ),
        "BBU_Design_Info": _properties(
            {
                "Date of Manufacture": "01/15, 2026",
                "Design Capacity": "1530 mAh",
                "Design Voltage": "3700 mV",
                "Specification Info": 0,
                "Serial Number": 1 + number,
                "Pack Stat Configuration": "0x0000",
                "Manufacture Name": "SIMULATED",
                "Device Name": unit["model"],
                "Device Chemistry": "LION",
                "Battery FRU": "N/A",
            }
        ),
        "BBU_Properties": _properties(
            {
                "Auto Learn Period": "28d (2419200 seconds)",
                "Next Learn time": f"{_NEXT_LEARN} (850363200 seconds)" if unit["learn"] else "None",
                "Learn Delay Interval": "0 hour(s)",
                "Auto-Learn Mode": "Enabled" if unit["learn"] else "Transparent",
            }
        ),
    }
