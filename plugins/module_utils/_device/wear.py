# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of ``smartctl -j -x`` for one drive, in words that fit ATA, SCSI and NVMe alike. Pure.

Sources: smartctl(8) and the JSON of smartmontools 7.0 to 7.5; ACS-4 section 9.5.11 (device statistics, page 7); NVM Express base
specification, SMART / Health Information log: percentage used may exceed 100, a data unit is 1000 blocks of 512 bytes.

Numbers of ATA attributes are a vendor's own (233 is wear on one drive and gigabytes written on the next), so attributes are taken by
the name that smartctl's drive database gives them, and wear by the normalised value, which counts down from 100 whatever the name. The raw value
must not contradict it, unless number and family show which of them moves: of two that contradict each other, the wear is unknown.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, MIB

#: Attributes whose normalised value is the share of rated endurance that is left; the first that a drive has counts.
#: The names that contain "used" (Micron and Crucial) do so of the raw value.
WEAR_ATTRIBUTES = (
    "Media_Wearout_Indicator",
    "Percent_Lifetime_Remain",
    "Percent_Life_Remaining",
    "Perc_Rated_Life_Remain",
    "SSD_Life_Left",
    "SSD_Life_Left_Perc",
    "SSD_Remaining_Life_Perc",
    "Remaining_Lifetime_Perc",
    "Lifetime_Left",
    "Lifetime_Remaining%",
    "Drive_Life_Remaining%",
    "DriveLife_Remaining%",
    "PCT_Life_Remaining",
    "Life_Remaining_Percent",
    "Percent_Lifetime_Used",
    "Perc_Rated_Life_Used",
    # Samsung: the raw value is the mean number of erasures.
    "Wear_Leveling_Count",
)

#: WD and SanDisk: the normalised value goes up on some models and down on others. The first and the last 16 bits of the raw value are the wear
#: in percent (high byte) and hundredths (low byte).
_PERCENT_IN_WORDS = 230
#: Numbers of attributes whose raw value is the percentage that is left, also where the normalised value never moves (Phison, Silicon Motion).
_RAW_IS_LEFT = frozenset({169, 231})
#: Families whose raw value of such an attribute is nothing: 0 or 1.
_WITHOUT_RAW = re.compile(r"sandforce", re.IGNORECASE)
#: Attributes whose raw value counts something else than percent: erasures (Samsung), and nothing (Intel).
_ERASURES = "Wear_Leveling_Count"
_RAW_COUNTS = {_ERASURES: re.compile(""), "Media_Wearout_Indicator": re.compile(r"intel|solidigm", re.IGNORECASE)}

#: By how many points attributes of one drive may differ that mean the same.
_AGREEMENT = 10

#: The number of sectors or blocks that a drive has replaced; raw value.
_REALLOCATED = ("Reallocated_Sector_Ct", "Reallocated_Sector_Count", "Retired_Block_Count", "Reallocate_NAND_Blk_Cnt", "Reallocated_Block_Count")
_PENDING = ("Current_Pending_Sector", "Current_Pending_ECC_Cnt")
_UNCORRECTABLE = ("Reported_Uncorrect", "Uncorrectable_Error_Cnt", "Offline_Uncorrectable")
_UNSAFE = ("Unsafe_Shutdown_Count", "Unexpect_Power_Loss_Ct", "POR_Recovery_Count")
_SPARE = ("Available_Reservd_Space", "Spares_Remaining_Perc")

#: What a unit of the raw value of each attribute is, in bytes.
_WRITTEN = (("Host_Writes_32MiB", 32 * MIB), ("Host_Writes_GiB", GIB), ("Lifetime_Writes_GiB", GIB), ("Total_LBAs_Written", 512))

#: Bits of the NVMe critical warning, from bit 0 on.
_NVME_WARNINGS = (
    "spare below its threshold",
    "temperature out of its limits",
    "reliability degraded",
    "media read-only",
    "backup of the volatile memory failed",
    "persistent memory region read-only",
)
#: The warning that does not require a new drive.
TEMPERATURE_WARNING = _NVME_WARNINGS[1]
_NVME_UNIT = 512_000

#: Bits of the exit status that mean that the command itself failed: wrong arguments, and a drive that could not be opened or identified.
_FAILED = 0b11


@frozen
class DriveHealth:
    """One drive. None is "not reported", never 0.

    :param name: kernel name, or what smartctl opens together with :attr:`device_type`.
    :param path: how users name it: stable path, or both arguments of smartctl for a drive behind a controller.
    :param device_type: the argument of ``smartctl -d`` of a drive behind a RAID controller, else None.
    :param protocol: ``ata``, ``scsi``, ``nvme`` or ``unknown``.
    :param media: ``ssd``, ``hdd`` or ``unknown``.
    :param passed: the drive's own verdict.
    :param wear_used_percent: of the rated endurance; may exceed 100.
    :param spare_percent: of the spare blocks that are left; with :attr:`spare_threshold_percent` the drive's own limit.
    :param warnings: the bits of the NVMe critical warning, in words.
    :param failing: names of ATA attributes that are at or below their threshold now.
    :param reallocated: sectors or blocks that were replaced; ``pending``: that wait for it; ``media_errors``: that could not be read.
    :param temperature: degrees Celsius.
    :param capacity: bytes of all namespaces of an NVMe drive together with what none of them uses (:attr:`unallocated`).
    :param link_speed: bits per second of a SATA link as it is used now, which may be less than drive and port support.
    :param evidence: which attribute or field each of these was taken from; of wear that is not clear, why.
    """

    name: str
    path: str
    device_type: str | None = None
    protocol: str = "unknown"
    media: str = "unknown"
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    passed: bool | None = None
    wear_used_percent: int | None = None
    spare_percent: int | None = None
    spare_threshold_percent: int | None = None
    warnings: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    reallocated: int | None = None
    pending: int | None = None
    media_errors: int | None = None
    unsafe_shutdowns: int | None = None
    power_on_hours: int | None = None
    temperature: int | None = None
    written_bytes: int | None = None
    capacity: int | None = None
    unallocated: int | None = None
    link_speed: int | None = None
    evidence: t.Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "warnings": list(self.warnings), "failing": list(self.failing)}


def parse_smartctl(text: str, rc: int, name: str, path: str, device_type: str | None = None) -> DriveHealth:
    """One drive from the output of ``smartctl -j -x``.

    :param rc: the exit status, a bit mask of which only the lowest two bits mean that nothing was read.
    :raises NotUnderstood: with the message of smartctl if it could not read the drive, or if it printed no JSON.
    """
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("no object")
    except ValueError:
        raise NotUnderstood(f"{path}: smartctl printed no JSON: version 7.0 or newer of smartmontools is needed.", item=path) from None
    if rc & _FAILED:
        messages = "; ".join(str(row.get("string", "")).strip() for row in _rows(found, "smartctl", "messages") if row.get("severity") == "error")
        raise NotUnderstood(f"{path}: smartctl cannot read this drive (exit status {rc}): {messages or 'it gave no reason'}.", item=path)
    protocol = str(_at(found, "device", "protocol") or "unknown").lower()
    health = DriveHealth(
        name=name,
        path=path,
        device_type=device_type,
        protocol=protocol,
        media=_media(found, protocol),
        model=_word(found.get("model_name") or found.get("scsi_model_name")),
        serial=_word(found.get("serial_number")),
        firmware=_word(found.get("firmware_version") or found.get("scsi_revision")),
        passed=_at(found, "smart_status", "passed"),
        power_on_hours=_count(_at(found, "power_on_time", "hours")),
        # A drive without a sensor reports 0.
        temperature=_count(_at(found, "temperature", "current")) or None,
        link_speed=_link_speed(_at(found, "interface_speed", "current")),
    )
    readers = {"ata": _ata, "scsi": _scsi, "nvme": _nvme}
    values = readers[protocol](found) if protocol in readers else {}
    values = {**values, **_newer(found, values)}
    known = {name: value for name, (value, _source) in values.items() if value is not None}
    unclear = {"wear_used_percent"} - known.keys()
    evidence = {name: source for name, (_value, source) in values.items() if name in known or (source and name in unclear and protocol == "ata")}
    return dataclasses.replace(health, **known, evidence=evidence)


#: Values with the name of the attribute or field they were taken from.
_Values = t.Dict[str, t.Tuple[t.Any, str]]


def _newer(found: t.Mapping[str, t.Any], values: _Values) -> _Values:
    """What smartctl 7.4 and newer works out by itself, where nothing better was found."""
    newer = {
        "wear_used_percent": (_count(_at(found, "endurance_used", "current_percent")), "endurance_used"),
        "spare_percent": (_count(_at(found, "spare_available", "current_percent")), "spare_available"),
        "spare_threshold_percent": (_count(_at(found, "spare_available", "threshold_percent")), "spare_available"),
    }
    # NVMe has both, and of a drive without spare both are 0, which _nvme handles.
    if _at(found, "device", "protocol") == "NVMe":
        return {}
    attribute = values.get("wear_used_percent", (None, ""))
    return {name: value for name, value in newer.items() if value[0] is not None and (name != "wear_used_percent" or not attribute[1].startswith("statistics"))}


def _ata(found: t.Mapping[str, t.Any]) -> _Values:
    rows = {str(row.get("name")): row for row in reversed(_rows(found, "ata_smart_attributes", "table"))}
    statistics = _statistics(found)
    foreign = "" if found.get("in_smartctl_database") is True else ", by smartctl's default names, because this model is not in its database"
    failing = [name for name, row in rows.items() if row.get("when_failed") == "now"]
    return {
        "wear_used_percent": _ata_wear(found, statistics, foreign),
        "spare_percent": _normalised(rows, _SPARE, foreign),
        "spare_threshold_percent": _threshold(rows, _SPARE),
        "reallocated": _either(_raw(rows, _REALLOCATED), statistics, "Number of Reallocated Logical Sectors"),
        "pending": _raw(rows, _PENDING),
        "media_errors": _either(_raw(rows, _UNCORRECTABLE), statistics, "Number of Reported Uncorrectable Errors"),
        "unsafe_shutdowns": _raw(rows, _UNSAFE),
        # The default name contains sectors, and many drives count something larger.
        "written_bytes": _ata_written({} if foreign else rows, statistics),
        "failing": (tuple(sorted(failing)) or None, "when_failed"),
    }


def _ata_wear(found: t.Mapping[str, t.Any], statistics: t.Mapping[str, int], foreign: str) -> tuple[int | None, str]:
    """The used part, and its source; without a value, why what the drive reports is not clear, or nothing."""
    used = statistics.get("Percentage Used Endurance Indicator")
    if used is not None:
        return used, "statistics: Percentage Used Endurance Indicator"
    rows = _rows(found, "ata_smart_attributes", "table")
    family = _word(found.get("model_family")) or ""
    read = [_wear_of(row, family, foreign) for name in WEAR_ATTRIBUTES for row in rows if row.get("name") == name]
    known = [(wear, source) for wear, source in read if wear is not None]
    if not known:
        return next((one for one in read if one[1]), (None, ""))
    low, high = min(known), max(known)
    if high[0] - low[0] > _AGREEMENT:
        return None, f"{low[1]} means {low[0]} % and {high[1]} means {high[0]} %"
    return known[0]


def _wear_of(row: t.Mapping[str, t.Any], family: str, foreign: str) -> tuple[int | None, str]:
    """The used part by one attribute: its normalised value and its raw value must not contradict each other."""
    name, number, value, raw = str(row.get("name")), row.get("id"), _count(row.get("value")), _raw_number(row)
    source = f"{name} (attribute {number}, value {value}{foreign})"
    if _count(number) is None:
        return None, f"{name}: the number of the attribute is not reported"
    if number == _PERCENT_IN_WORDS:
        bits = _count(_at(row, "raw", "value")) or 0
        wear = bits & 0xFFFF
        if not bits or bits >> 32 != wear or wear & 0xFF > 99:
            return None, f"{source}: its raw value {_at(row, 'raw', 'string')} is not of the known form"
        return wear >> 8, f"{name} (attribute {number}, raw value {_at(row, 'raw', 'string')}{foreign})"
    # Some attributes count from 200 or 253. Of a model that is not in smartctl's database, a value at either end of the scale is more
    # likely something else under a default name.
    if value is None or value > 100 or (foreign and value in (0, 100)):
        return None, ""
    counts = _RAW_COUNTS.get(name)
    if raw is None and value == 100 and name not in _RAW_COUNTS:
        return None, f"{source}: its raw value is not reported"
    is_count = counts is not None and counts.search(family) is not None
    # A value that never moves while something is counted, and of an unknown model something else under a default name.
    if raw is not None and raw > 100 and ((value == 100 and (name == _ERASURES or not is_count)) or (foreign and not is_count)):
        return None, f"{source}: its raw value {raw} is no percentage"
    if raw is None or raw > 100 or raw == value or is_count:
        return 100 - value, source
    if _WITHOUT_RAW.search(family) and raw <= 1:
        return 100 - value, source
    if number in _RAW_IS_LEFT and value == 100 and raw:
        return 100 - raw, f"{name} (attribute {number}, raw value {raw}{foreign})"
    if (raw == 0 and value < 100) or (number not in _RAW_IS_LEFT and raw == 100 - value):
        return 100 - value, source
    return None, f"{source}: its raw value {raw} contradicts it"


def _ata_written(rows: t.Mapping[str, t.Any], statistics: t.Mapping[str, int]) -> tuple[int | None, str]:
    sectors = statistics.get("Logical Sectors Written")
    if sectors is not None:
        return sectors * 512, "statistics: Logical Sectors Written"
    for name, unit in _WRITTEN:
        value = _count(_at(rows.get(name), "raw", "value"))
        if value is not None:
            return value * unit, name
    return None, ""


def _statistics(found: t.Mapping[str, t.Any]) -> dict[str, int]:
    """The valid values of the device statistics log, by name."""
    values: dict[str, int] = {}
    for page in _rows(found, "ata_device_statistics", "pages"):
        for row in _rows(page, "table"):
            value = _count(row.get("value"))
            if value is not None and _at(row, "flags", "valid") is not False:
                values[str(row.get("name"))] = value
    return values


def _either(attribute: tuple[int | None, str], statistics: t.Mapping[str, int], name: str) -> tuple[int | None, str]:
    return attribute if attribute[0] is not None else (statistics.get(name), f"statistics: {name}")


def _normalised(rows: t.Mapping[str, t.Any], names: t.Sequence[str], foreign: str) -> tuple[int | None, str]:
    for name in names:
        row = rows.get(name)
        value = _count(_at(row, "value"))
        # See _wear_of.
        if value is not None and value <= 100 and (0 < value < 100 or not foreign):
            return value, f"{name} (attribute {row.get('id')}, value {value}{foreign})"
    return None, ""


def _threshold(rows: t.Mapping[str, t.Any], names: t.Sequence[str]) -> tuple[int | None, str]:
    for name in names:
        value = _count(_at(rows.get(name), "thresh"))
        if value:
            return value, name
    return None, ""


def _raw(rows: t.Mapping[str, t.Any], names: t.Sequence[str]) -> tuple[int | None, str]:
    for name in names:
        value = _raw_number(rows.get(name))
        if value is not None:
            return value, f"{name} (attribute {_at(rows.get(name), 'id')})"
    return None, ""


def _raw_number(row: t.Any) -> int | None:
    """The string is formatted by the drive database: of "4 (0 2)" the first number is the count, the raw value is all three."""
    match = re.match(r"\s*(\d+)(?!x)", str(_at(row, "raw", "string") or ""))
    return int(match.group(1)) if match else _count(_at(row, "raw", "value"))


def _scsi(found: t.Mapping[str, t.Any]) -> _Values:
    errors = [_count(_at(found, "scsi_error_counter_log", kind, "total_uncorrected_errors")) for kind in ("read", "write", "verify")]
    reported = [count for count in errors if count is not None]
    gigabytes = _at(found, "scsi_error_counter_log", "write", "gigabytes_processed")
    return {
        "wear_used_percent": (_count(found.get("scsi_percentage_used_endurance_indicator")), "Percentage used endurance indicator"),
        "reallocated": (_count(found.get("scsi_grown_defect_list")), "Elements in grown defect list"),
        "media_errors": (sum(reported) if reported else None, "error counter log, total uncorrected errors"),
        "written_bytes": (_decimal(gigabytes), "error counter log, gigabytes processed"),
    }


def _nvme(found: t.Mapping[str, t.Any]) -> _Values:
    log = found.get("nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return {}
    bits = _count(log.get("critical_warning")) or 0
    warnings = [f"bit {bit}" if bit >= len(_NVME_WARNINGS) else _NVME_WARNINGS[bit] for bit in range(8) if bits >> bit & 1]
    units = _count(log.get("data_units_written"))
    spare, threshold = _count(log.get("available_spare")), _count(log.get("available_spare_threshold"))
    # Emulated drives report 0 of 0: they have no spare, and are not at the end of it.
    reported = bool(spare or threshold or bits & 1)
    return {
        "wear_used_percent": (_count(log.get("percentage_used")), "percentage_used"),
        "spare_percent": (spare if reported else None, "available_spare"),
        "spare_threshold_percent": (threshold if reported else None, "available_spare_threshold"),
        "media_errors": (_count(log.get("media_errors")), "media_errors"),
        "unsafe_shutdowns": (_count(log.get("unsafe_shutdowns")), "unsafe_shutdowns"),
        "power_on_hours": (_count(log.get("power_on_hours")), "power_on_hours"),
        "written_bytes": (units * _NVME_UNIT if units is not None else None, "data_units_written"),
        "warnings": (tuple(warnings) or None, "critical_warning"),
        # Drives without namespace management report 0, or nothing.
        "capacity": (_count(found.get("nvme_total_capacity")) or None, "total NVM capacity"),
        "unallocated": (_count(found.get("nvme_unallocated_capacity")), "unallocated NVM capacity"),
    }


def _media(found: t.Mapping[str, t.Any], protocol: str) -> str:
    rate = _count(found.get("rotation_rate"))
    if protocol == "nvme" or rate == 0:
        return "ssd"
    return "unknown" if rate is None else "hdd"


def _at(found: t.Any, *keys: str) -> t.Any:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _link_speed(current: t.Any) -> int | None:
    return (_count(_at(current, "units_per_second")) or 0) * (_count(_at(current, "bits_per_unit")) or 0) or None


def _rows(found: t.Any, *keys: str) -> list[t.Any]:
    rows = _at(found, *keys)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _count(value: t.Any) -> int | None:
    """A whole number that is not negative; -1 is how smartctl prints a field that it could not read."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _decimal(value: t.Any) -> int | None:
    """Gigabytes (10^9) as bytes; smartctl prints them as text with three decimals."""
    try:
        return int(float(value) * 10**9) if value is not None else None
    except (TypeError, ValueError):
        return None


def _word(value: t.Any) -> str | None:
    return str(value).strip() or None if value is not None else None
