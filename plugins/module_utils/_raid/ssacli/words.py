# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words, units and patterns of ssacli, hpssacli and hpacucli, and what they are called here."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CHARGING,
    DEFAULT,
    DEGRADED,
    DISABLED,
    ENABLED,
    FAILED,
    HEALTHY,
    MISSING,
)

SWITCHES: t.Mapping[str, str] = {"enabled": ENABLED, "disabled": DISABLED}
#: ``Configured Drive Write Cache Policy`` and its siblings; the older ``Drive Write Cache`` uses :data:`SWITCHES`.
#: ``Unchanged`` is a word of the same core in arcconf, not seen here: the firmware leaves what the drive has, as with Default.
DRIVE_POLICIES: t.Mapping[str, str] = {
    "enable": ENABLED,
    "disable": DISABLED,
    "default": DEFAULT,
    "enabled": ENABLED,
    "disabled": DISABLED,
    "unchanged": DEFAULT,
}
DRIVE_POLICY_LABELS: t.Mapping[str, str] = {
    "configured drive write cache policy": "configured",
    "unconfigured drive write cache policy": "unconfigured",
    "hba drive write cache policy": "hba",
}
CACHE_STATUS: t.Mapping[str, str] = {
    "ok": "ok",
    "not configured": "not_configured",
    "temporarily disabled": "temporarily_disabled",
    "permanently disabled": "permanently_disabled",
}
#: ``Battery/Capacitor Status``. OK, Recharging and Failed were seen; the others are words of the same core in arcconf.
BATTERY_STATUS: t.Mapping[str, str] = {
    "ok": HEALTHY,
    "recharging": CHARGING,
    "charging": CHARGING,
    "not fully charged": CHARGING,
    "degraded": DEGRADED,
    "failed": FAILED,
    "not present": MISSING,
    "not installed": MISSING,
    "missing": MISSING,
    "hot removed": MISSING,
    "no battery connected": MISSING,
}
BACKUP_SOURCES: t.Mapping[str, str] = {"batteries": "battery", "battery": "battery", "capacitors": "capacitor", "capacitor": "capacitor"}
#: ``LD Acceleration Method``. The words for SSD caches come from other tools of the same core.
ACCELERATIONS: t.Mapping[str, str] = {
    "controller cache": "controller_cache",
    "smart path": "io_bypass",
    "ssd smart path": "io_bypass",
    "hp ssd smart path": "io_bypass",
    "hpe ssd smart path": "io_bypass",
    "i/o bypass": "io_bypass",
    "ssd i/o bypass": "io_bypass",
    "smart cache": "maxcache",
    "smartcache": "maxcache",
    "ssd smart cache": "maxcache",
    "maxcache": "maxcache",
    "all disabled": "none",
    "none": "none",
}
MODES: t.Mapping[str, str] = {"raid": "raid", "mixed": "mixed", "hba": "hba", "jbod": "jbod"}
CONTROLLER_STATUS: t.Mapping[str, str] = {"ok": "optimal", "failed": "failed"}
VOLUME_STATUS: t.Mapping[str, str] = {
    "ok": "optimal",
    "failed": "failed",
    "offline": "offline",
    "interim recovery mode": "degraded",
    "ready for rebuild": "degraded",
    "ready for recovery": "degraded",
    "recovering": "rebuilding",
    "rebuilding": "rebuilding",
}
DRIVE_USAGES: t.Mapping[str, str] = {
    "data drive": "configured",
    "unassigned drive": "unconfigured",
    "spare drive": "spare",
    "hba mode drive": "hba",
    "hba drive": "hba",
}
INTERFACES = (("nvme", "nvme"), ("sata", "sata"), ("sas", "sas"), ("scsi", "scsi"))

BINARY = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4, "PB": 1024**5}
DECIMAL = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4, "PB": 1000**5}

SIZE = re.compile(r"^([0-9]{1,9}(?:\.[0-9]{1,4})?)(?:\s+([KMGTP]?B))?$")
RATIO = re.compile(r"^([0-9]{1,3})% Read / ([0-9]{1,3})% Write$")
PCI = re.compile(r"^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$")
WWN = re.compile(r"^[0-9A-Fa-f]{16,32}$")
RAID_LEVEL = re.compile(r"^(?:RAID )?(?:([0-9])\+0|(ADG)|([0-9]{1,2}))(?: ?\(.*\)| ?ADM)?$")

#: The switch of a volume's cache; the second is the older label.
CACHING = ("caching", "array accelerator")
