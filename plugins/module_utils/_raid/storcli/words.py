# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words of storcli, perccli, storcli2 and perccli2, what they mean, and how their values are written.

Words and labels were taken from captured outputs of many builds; where a word was never seen, the table notes it.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    ADAPTIVE,
    CACHED,
    CHARGING,
    DEFAULT,
    DEGRADED,
    DIRECT,
    DISABLED,
    ENABLED,
    FAILED,
    HEALTHY,
    LEARNING,
    MISSING,
    NONE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    Policy,
    policy,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import Data, word

# Words of the tools and ours. Keys are compared in lower case without blanks.

READ_COLUMN = {"NR": NONE, "R": READ_AHEAD, "Ra": ADAPTIVE, "A": ADAPTIVE}
WRITE_COLUMN = {"WT": WRITETHROUGH, "WB": WRITEBACK, "AWB": WRITEBACK_ALWAYS, "FWB": WRITEBACK_ALWAYS}
IO_COLUMN = {"D": DIRECT, "C": CACHED}
#: ``Write Cache(initial setting)``. The word for always was never seen in a capture.
INITIAL_WRITE = {
    "writeback": WRITEBACK,
    "writethrough": WRITETHROUGH,
    "alwayswriteback": WRITEBACK_ALWAYS,
    "writebackalways": WRITEBACK_ALWAYS,
    "forcewriteback": WRITEBACK_ALWAYS,
    "forcedwriteback": WRITEBACK_ALWAYS,
}
DRIVE_CACHE = {"disk'sdefault": DEFAULT, "default": DEFAULT, "enabled": ENABLED, "disabled": DISABLED, "on": ENABLED, "off": DISABLED}
TOPOLOGY_DRIVE_CACHE = {"dflt": DEFAULT, "enbl": ENABLED, "dsbl": DISABLED}
DRIVE_WRITE_CACHE = {"enabled": ENABLED, "disabled": DISABLED, "on": ENABLED, "off": DISABLED}
VOLUME_STATES = {
    "optl": "optimal",
    "dgrd": "degraded",
    "pdgd": "partially_degraded",
    "ofln": "offline",
    "rec": "recovery",
    "rbld": "rebuilding",
    "msng": "missing",
    "fail": "failed",
    "failed": "failed",
}
CONTROLLER_STATES = {
    "optimal": "optimal",
    "opt": "optimal",
    "ok": "optimal",
    "needsattention": "needs_attention",
    "needattention": "needs_attention",
    "ndatn": "needs_attention",
    "degraded": "degraded",
    "dgd": "degraded",
    "failed": "failed",
    "fail": "failed",
    "unknown": UNKNOWN,
    "unkwn": UNKNOWN,
}
PERSONALITIES = {"raid": "raid", "raid-mode": "raid", "hba": "hba", "hba-mode": "hba", "jbod": "jbod", "jbod-mode": "jbod"}
HEALTH = {
    "optimal": HEALTHY,
    "opt": HEALTHY,
    "dgd": DEGRADED,
    "ndatn": DEGRADED,
    "needattention": DEGRADED,
    "needsattention": DEGRADED,
    "failed": FAILED,
    "fail": FAILED,
    "critical": FAILED,
    "missing": MISSING,
    "msng": MISSING,
    "absent": MISSING,
    "notpresent": MISSING,
    "learning": LEARNING,
    "charging": CHARGING,
    "discharging": DEGRADED,
    "unknown": UNKNOWN,
    "unkwn": UNKNOWN,
    "n/a": UNKNOWN,
    "na": UNKNOWN,
    "-": UNKNOWN,
}
USAGES = {
    "onln": "configured",
    "online": "configured",
    "ofln": "configured",
    "offln": "configured",
    "rbld": "configured",
    "cpybck": "configured",
    "cfshld": "configured",
    "cbshld": "configured",
    "fail": "configured",
    "failed": "configured",
    "msng": "configured",
    "missing": "configured",
    "conf": "configured",
    "ready": "unconfigured",
    "available": "unconfigured",
    "ugood": "unconfigured",
    "ubad": "unconfigured",
    "ugunsp": "unconfigured",
    "ubunsp": "unconfigured",
    "ugshld": "unconfigured",
    "ubshld": "unconfigured",
    "frgn": "unconfigured",
    "uconf": "unconfigured",
    "ghs": "spare",
    "dhs": "spare",
    "hspshld": "spare",
    "jbod": "jbod",
    "non-raid": "jbod",
    "nonraid": "jbod",
    "systempd": "jbod",
    "syspd": "jbod",
}
#: States of a drive that waits for another one to fail and holds no data of any volume until then: ``State``, and ``Status`` of storcli2.
SPARES = frozenset({"ghs", "dhs", "hsp", "hspshld", "spare", "hotspare", "globalhotspare", "dedicatedhotspare"})
MEDIA = {"hdd": "hdd", "ssd": "ssd"}
INTERFACES = {"sata": "sata", "sas": "sas", "scsi": "scsi", "nvme": "nvme", "nvme-of": "nvme"}
#: Answers that mean: there is none of it.
NOTHING_THERE = re.compile(
    r"No Controller|Controller \S+ not found|un-?supported command|No VD|No (?:PD|drive)|No Enclosure|(?:Drive|Enclosure) not found",
    re.IGNORECASE,
)
UNSUPPORTED = re.compile(r"un-?supported command", re.IGNORECASE)
#: The answer of a card that has the other kind of unit: ``use /cx/cv``.
OTHER_PLACE = re.compile(r"\buse /c(?:x|[0-9]+)/(bbu|cv)\b", re.IGNORECASE)

#: Bits of ``BBU Status`` (MFI firmware), used only where the unit has no row of its own. That a learn cycle is requested comes with healthy and with
#: degraded units, so alone it says neither; that one is required (0x1000) comes with healthy ones. Other bits are not known.
BBU_BITS: t.Sequence[tuple[int, str]] = (
    (0x001, MISSING),
    (0x080 | 0x100 | 0x200 | 0x400, FAILED),
    (0x040, LEARNING),
    (0x002 | 0x004 | 0x010 | 0x800, DEGRADED),
    (0x008, CHARGING),
    (0x020 | ~0x1FFF, UNKNOWN),
)
#: Lines of the firmware's state of a unit that say ``Yes`` if it will not last.
UNIT_FAULTS = (
    *("Replacement required", "Battery Replacement required", "Remaining Capacity Low", "Pack is about to fail & should be replaced"),
    *("No space to cache offload", "I2c Errors Detected", "Learn Cycle Failed", "Learn Cycle Timeout"),
)
BBU_LEARN_REQUESTED = 0x020
BBU_LEARN_ACTIVE = 0x040

#: Flags of the controller that report what can be set, and their labels.
ADAPTER_FLAGS = {"ssd_drive_cache_blocked": "Block SSD Write Disk Cache Change", "jbod_write_cache": "Support JBOD Write cache"}
VOLUME_FLAGS = {
    "can_set_read": "Read Policy",
    "can_set_write": "Write Policy",
    "can_set_io": "IO Policy",
    "can_set_drive_cache": "Disk Cache Policy",
    "ssd_cache_association": "Support SSC Association",
}

SIZE = re.compile(r"(?P<amount>[0-9]{1,12}(?:\.[0-9]{1,9})?) ?(?P<unit>[KMGTP]?i?B)\b", re.IGNORECASE)
BINARY_UNITS = re.compile(r"[0-9] ?[KMGTP]iB\b")
_HEX = re.compile(r"(?:0x)?(?P<digits>[0-9a-f]{8,})\Z", re.IGNORECASE)
_PCI = re.compile(r"(?P<domain>[0-9a-f]{1,4}):(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2}):(?P<function>[0-9a-f]{1,2})\Z", re.IGNORECASE)
_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}) ?%?\Z")
WHOLE = re.compile(r"[0-9]{1,18}\Z")
VOLUME_KEY = re.compile(r"/c(?P<controller>[0-9]+)/v(?P<volume>[0-9]+)\Z", re.IGNORECASE)
DRIVE_KEY = re.compile(
    r"Drive /c(?P<controller>[0-9]+)(?:/e(?P<enclosure>[0-9]+))?/s(?P<slot>[0-9]+)(?P<part>\Z| Device attributes\Z| - Detailed Information\Z)", re.IGNORECASE
)
#: The lists of all volumes and of all drives of a controller, which have been called ``PD LIST`` and ``Drive LIST``.
VOLUME_LIST = re.compile(r"(?:VDs?|Virtual ?Drives?) ?LIST\Z", re.IGNORECASE)
DRIVE_LIST = re.compile(r"(?:PDs?|(?:Physical ?)?(?:Drives?|Devices?)) ?LIST\Z", re.IGNORECASE)
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def squeezed(text: str) -> str:
    return "".join(text.lower().split())


def address_of(value: t.Any) -> t.Optional[str]:
    """``252:3``; ``:25`` for a drive without enclosure."""
    enclosure, colon, slot = word(value).partition(":")
    enclosure, slot = enclosure.strip(), slot.strip()
    if not colon or not WHOLE.match(slot) or (enclosure and not WHOLE.match(enclosure)):
        return None
    return f"{enclosure}:{slot}"


def announced(data: Data) -> dict[str, dict[str, int]]:
    """How many volumes and drives an output says that there are."""
    numbers = {kind: whole(data.get(label)) for kind, label in (("volumes", "Virtual Drives"), ("drives", "Physical Drives"))}
    known = {kind: number for kind, number in numbers.items() if number}
    return {"announced": known} if known else {}


def volume_name(row: Data) -> str:
    """``0/1``, group and number of a volume; controllers without groups (IR firmware) print only the number."""
    return word(row.get("DG/VD")) or word(row.get("VD"))


def is_drive_key(key: str) -> bool:
    found = DRIVE_KEY.match(key)
    return found is not None and not found["part"]


def is_spare(row: Data) -> bool:
    """Whether a row of a list of drives, or of the topology, is of a hot spare, be it dedicated to a drive group or global."""
    return any(squeezed(word(row.get(label))) in SPARES for label in ("State", "Status"))


def identifier(value: t.Any) -> t.Optional[str]:
    """A world wide name in lower case without ``0x``; ``None`` for what is none (``N/A``, redacted)."""
    found = _HEX.match(word(value))
    return found["digits"].lower() if found else None


def pci_address(value: t.Any) -> t.Optional[str]:
    """``00:c1:00:00`` (domain, bus, device, function) as sysfs writes it."""
    found = _PCI.match(word(value))
    if not found:
        return None
    domain, bus, device, function = (int(found[part], 16) for part in ("domain", "bus", "device", "function"))
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def whole(value: t.Any) -> t.Optional[int]:
    found = WHOLE.match(word(value))
    return int(found.group()) if found else None


def percent(value: t.Any) -> t.Optional[int]:
    found = _PERCENT.match(word(value))
    return int(found["number"]) if found else None


def flag(value: t.Any) -> t.Optional[bool]:
    """``Yes`` or ``No`` (``NA``: the controller has no such thing); ``None`` if it is not reported."""
    raw = word(value).lower().partition(",")[0]
    return {"yes": True, "on": True, "no": False, "off": False, "na": False, "n/a": False}.get(raw)


def flags(where: Data, labels: t.Mapping[str, str]) -> dict[str, bool]:
    """Only the flags that are reported."""
    found = {name: flag(where.get(label)) for name, label in labels.items()}
    return {name: value for name, value in found.items() if value is not None}


def first(*values: t.Any) -> str:
    """The first value that is printed."""
    for value in values:
        if word(value):
            return word(value)
    return ""


def learn_cycle_of(health: str) -> str:
    """The learn cycle according to the state of a unit."""
    return "active" if health == LEARNING else UNKNOWN


def configured_and_effective(configured: str, effective: str) -> Policy:
    """Both as the tool reports them; write-back in effect is named as it is configured, if that writes back.

    Always write-back cannot be in effect unless it was requested, although some builds print only ``WriteBack`` as the
    initial setting.
    """
    if effective == WRITEBACK_ALWAYS and configured in WRITES_BACK:
        return policy(WRITEBACK_ALWAYS)
    if effective == WRITEBACK and configured in WRITES_BACK:
        return policy(configured)
    return Policy(configured, effective)
