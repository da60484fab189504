# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The vocabulary of arcconf as tables: its words and ours.

All keys are in lower case, since capitals changed from build to build. Sources: captures of aacraid series 2 to 8, SmartRAID and
HBA cards, and the texts inside arcconf builds of 2010 to 2023.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CHARGING,
    CLEAN,
    DEFAULT,
    DEGRADED,
    DIRTY,
    DISABLED,
    ENABLED,
    FAILED,
    HEALTHY,
    LEARNING,
    MISSING,
    NONE,
    PER_DRIVE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITETHROUGH,
)

AACRAID, SMART = "aacraid", "smart"

#: ``Write-cache setting`` and its commands (aacraid).
WRITE_SETTING = {
    "enabled": WRITEBACK_ALWAYS,
    "enabled (write-back)": WRITEBACK_ALWAYS,
    "disabled": WRITETHROUGH,
    "disabled (write-through)": WRITETHROUGH,
    "enabled (write-back) when protected by battery": WRITEBACK,
    "enabled (write-back) when protected by battery/zmm": WRITEBACK,
    "on when protected by battery": WRITEBACK,
    "on when protected by battery/zmm": WRITEBACK,
}
#: ``Write-cache mode`` and ``Write-cache status`` (aacraid): whether it writes back now.
WRITE_STATUS = {"on": True, "off": False, "enabled (write-back)": True, "disabled (write-through)": False, "enabled": True, "disabled": False}
#: ``Write-cache mode`` of cards without memory.
NOT_SUPPORTED = "not supported"
WRITE_COMMANDS = {WRITETHROUGH: "wt", WRITEBACK: "wbb", WRITEBACK_ALWAYS: "wb"}

#: ``Read-cache mode``, ``… setting``, ``… status`` (aacraid).
READ_SETTING = {"enabled": READ_AHEAD, "disabled": NONE, "on": READ_AHEAD, "off": NONE}
READ_COMMANDS = {READ_AHEAD: "ron", NONE: "roff"}

#: ``Caching`` (SmartRAID): one switch for reading and writing.
CACHING = {"enabled": True, "disabled": False}
CACHING_COMMANDS = {True: "con", False: "coff"}

SWITCH = {"enabled": ENABLED, "disabled": DISABLED, "on": ENABLED, "off": DISABLED}

#: ``Write Cache`` of a drive.
DRIVE_WRITE_CACHE = {"enabled (write-back)": ENABLED, "disabled (write-through)": DISABLED, "unknown": UNKNOWN, "enabled": ENABLED, "disabled": DISABLED}
DRIVE_COMMANDS = {ENABLED: "wb", DISABLED: "wt"}

#: ``Global Physical Device Write Cache Policy`` (series 7 and 8) and the words of DEVICEALL.
GLOBAL_POLICY = {"enabled": ENABLED, "disabled": DISABLED, "drive specific": PER_DRIVE}
GLOBAL_COMMANDS = {ENABLED: "enable", DISABLED: "disable", PER_DRIVE: "drivespecific"}

#: Classes of ``Physical Drive Write Cache Policy Information`` (SmartRAID), the words of DRIVEWRITECACHEPOLICY, and its values.
#: ``Unchanged`` is a word of newer firmware that is none of ours.
CLASS_LABELS = {"configured drives": "configured", "unconfigured drives": "unconfigured", "hba drives": "hba"}
CLASS_COMMANDS = {"configured": "Configured", "unconfigured": "Unconfigured", "hba": "HBA"}
CLASS_POLICY = {"default": DEFAULT, "enabled": ENABLED, "disabled": DISABLED, "unchanged": UNKNOWN, "unknown": UNKNOWN}
CLASS_POLICY_COMMANDS = {DEFAULT: "0", ENABLED: "1", DISABLED: "2"}

#: Values that mean that there is no such setting, or none now.
NO_VALUE = frozenset({"not applicable", "not available", "not supported", "n/a", "na", ""})

#: ``Controller Mode``, ``Functional Mode`` and the mode in LIST.
MODES = {
    "raid (expose raw)": "raid",
    "raid (hide raw)": "raid",
    "raid: expose raw": "raid",
    "raid: hide raw": "raid",
    "raid": "raid",
    "default/raid": "raid",
    "auto volume": "raid",
    "auto volume mode": "raid",
    "simple volume": "raid",
    "simple volume mode": "raid",
    "mixed": "mixed",
    "hba": "hba",
    "jbod": "jbod",
}

#: ``Cache Status`` (SmartRAID).
CACHE_STATUS = {
    "ok": "ok",
    "not configured": "not_configured",
    "temporarily disabled": "temporarily_disabled",
    "permanently disabled": "permanently_disabled",
    "not present": "absent",
    "absent": "absent",
    "unknown": UNKNOWN,
}

#: Status of a battery.
BATTERY = {
    "optimal": HEALTHY,
    "okay": HEALTHY,
    "ok": HEALTHY,
    "charged": HEALTHY,
    "failed": FAILED,
    "not installed": MISSING,
    "not present": MISSING,
    "charging": CHARGING,
    "discharging": DEGRADED,
    "charging disabled": DEGRADED,
    "maintenance mode": LEARNING,
    "unknown": UNKNOWN,
}
#: Status of a Zero-Maintenance Module.
ZMM = {
    "zmm optimal": HEALTHY,
    "zmm charging / not ready": CHARGING,
    "zmm charging/not ready": CHARGING,
    "zmm charging": CHARGING,
    "zmm not ready": CHARGING,
    "zmm failed": FAILED,
    "zmm not installed": MISSING,
    "zmm status unknown": UNKNOWN,
}
#: ``Overall Backup Unit Status`` of a cache backup unit (AFM-600, AFM-700).
BACKUP_UNIT = {
    "ready": HEALTHY,
    "not present": MISSING,
    "not installed": MISSING,
    "not ready": DEGRADED,
    "charging": CHARGING,
    "preparing": CHARGING,
    "fatal": FAILED,
    "failed": FAILED,
    "unknown": UNKNOWN,
}
#: ``Backup Power Status`` of Green Backup (SmartRAID).
GREEN_BACKUP = {
    "ok": HEALTHY,
    "not fully charged": CHARGING,
    "recharging": CHARGING,
    "charging": CHARGING,
    "failed": FAILED,
    "failed (replace batteries/capacitors)": FAILED,
    "failed (replace batteries)": FAILED,
    "failed (replace capacitors)": FAILED,
    "degraded": DEGRADED,
    "no battery connected": MISSING,
    "not present": MISSING,
    "not installed": MISSING,
    "unknown": UNKNOWN,
}
#: Beginnings that stand for every longer text, of any protection unit.
PROTECTION_BEGINNINGS = (("preparing", CHARGING), ("hot removed", MISSING), ("failed", FAILED), ("fatal", FAILED), ("charging", CHARGING))

#: Words for a whole controller or volume.
STATUS = {"optimal": "optimal", "okay": "optimal", "ok": "optimal"}

#: ``LD Acceleration Method`` (SmartRAID); what contains the word bypass or Smart Path is one of the others.
ACCELERATION = {"controller cache": "controller_cache", "none": "none", "maxcache": "maxcache"}

#: ``MaxCache write cache policy``.
MAXCACHE_POLICY = {
    "write back": "writeback",
    "write-back": "writeback",
    "instant write back": "instant_writeback",
    "write through": "writethrough",
    "write-through": "writethrough",
    "write back with write through": "writeback_with_writethrough",
}
DIRTINESS = {"dirty": DIRTY, "clean": CLEAN}

#: ``Drive Configuration Type`` (SmartRAID).
CONFIGURATION = {
    "data": "configured",
    "unassigned": "unconfigured",
    "hba": "hba",
    "hot spare": "spare",
    "hot-spare": "spare",
    "spare": "spare",
    "maxcache": "cache",
    "cache": "cache",
}

#: Exit statuses, from the code that prints them.
RETURN_CODES: t.Mapping[int, str] = {1: "failure", 2: "aborted", 3: "invalid arguments", 4: "unsupported", 6: "invalid adapter"}
#: The last line of an answer.
VERDICTS = ("command completed successfully", "command aborted", "command failed", "invalid controller number", "no controllers detected")

#: Sentences that mean: it was so already. They come with exit status 2.
ALREADY = ("is the same as the old", "is already set to", "cache policy is already", "already in desired mode")

#: Sentences with which a setting is refused; passed to the caller. Some of them were observed with exit status 0.
REFUSALS = (
    "write cache not supported on this device",
    "does not have hard drive cache support",
    "does not support setting global",
    "disk specified cannot be used as it is assigned to maxcache pool",
    "please modify the controller global physical devices cache policy to drivespecific",
    "cache settings cannot be changed for offline/failed array",
    "controller cache cannot be modified",
    "ssd i/o bypass has been enabled on array",
    "battery status is not ok and no battery write cache is disabled",
    "set cache operation is invalid",
    "write-back caching is not supported on raw devices",
    "the requested feature is not supported on this controller",
    "the specified operation cannot be performed",
)
#: A refusal only if nothing reports that it was so already.
NOTHING_LEFT = "no new supported cache settings have been specified"
