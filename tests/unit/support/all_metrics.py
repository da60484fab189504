# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that has a sample of every metric."""

from __future__ import annotations

import re

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import COUNTERS
from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._health.metrics import Measured, exposition
from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import ARC, ZIL, Space, ZfsHealth
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Protection
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import Pool, Vdev
from ansible_collections.cachefleet.storage.tests.unit.support.health import GIB, cache, drive

_POOL = Pool("tank", "ONLINE", {"logs": (Vdev("/dev/sdc", "ONLINE", errors=(1, 2, 3)),), "cache": (Vdev("/dev/sdd", "FAULTED", errors=(0, 0, 0)),)}, 1 << 40)
_WORN = {"wear_used_percent": 91, "spare_percent": 80, "reallocated": 3, "pending": 1, "media_errors": 2, "unsafe_shutdowns": 4, "written_bytes": 10**15}


def everything() -> str:
    """The file for Prometheus of that host."""
    return exposition(
        Measured(
            caches=[cache(dirty=GIB, metadata_size=8 << 20, metadata_used=6 << 20, counters=dict.fromkeys(COUNTERS, 7), mode="writeback")],
            drives=[drive(**_WORN, power_on_hours=5, temperature=41, firmware="F1")],
            reserves=[Reserve("sdb", "/dev/disk/by-id/ata-SSD0", 5, 10, hidden=5)],
            controllers=[Controller("storcli", "0", model="9361-8i", protection=Protection("battery", "failed"))],
            findings=[Finding("critical", "vg0/images", "cache_redundancy", "x")],
            verdicts={"/dev/vg0/images": "at_risk"},
            zfs=ZfsHealth((_POOL,), dict.fromkeys(ARC, 5), dict.fromkeys(ZIL, 6), {("tank", "/dev/sdc"): Space(1, 2)}),
            unread=1,
            time=1_795_300_300.5,
        )
    )


def names_of(text: str) -> set[str]:
    """The names of the metrics in a file."""
    return set(re.findall(r"^# TYPE (\S+) ", text, flags=re.MULTILINE))


def labels_of(text: str) -> dict[str, set[str]]:
    """The labels of each series in a file, by its name (of a histogram with ``_bucket``, ``_sum`` and ``_count``)."""
    found: dict[str, set[str]] = {}
    for name, inside in re.findall(r"^([a-z0-9_]+)(?:\{(.*)\})? \S+$", text, flags=re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', inside))
    return found
