# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block queues: their settings in the order in which they are set, and values that belong together."""

from __future__ import annotations

import typing as t

#: In this order: the scheduler sets nr_requests anew; what limits a request (rotational, add_random, max_sectors_kb) sets
#: read_ahead_kb anew in kernels from 6.9; the default of wbt_lat_usec depends on rotational.
ORDER = (
    "scheduler",
    "nr_requests",
    "rotational",
    "add_random",
    "max_sectors_kb",
    "read_ahead_kb",
    "nomerges",
    "rq_affinity",
    "wbt_lat_usec",
    "queue_depth",
)

#: What the kernel sets anew when a setting is written.
RESETS = {
    "scheduler": ("nr_requests", "wbt_lat_usec"),
    "rotational": ("read_ahead_kb",),
    "add_random": ("read_ahead_kb",),
    "max_sectors_kb": ("read_ahead_kb",),
}

#: Settings that are yes or no; the kernel writes them 1 and 0.
FLAGS = ("rotational", "add_random")

#: Why each value: docs/block_queue.md.
PROFILES: t.Mapping[str, t.Mapping[str, int | str]] = {
    "flash_array": {"scheduler": "none", "nr_requests": 1024, "nomerges": 1, "queue_depth": 64},
    "hdd": {"scheduler": "mq-deadline", "nr_requests": 256, "read_ahead_kb": 1024, "nomerges": 0, "rq_affinity": 1, "wbt_lat_usec": -1},
    "ssd": {"scheduler": "mq-deadline", "nr_requests": 256, "add_random": 0, "read_ahead_kb": 128, "nomerges": 0, "rq_affinity": 2},
    "nvme": {"scheduler": "none", "add_random": 0, "read_ahead_kb": 128, "nomerges": 0, "rq_affinity": 2},
}


def place_of(attribute: str) -> str:
    """The file of a setting, below the folder of the device in sysfs."""
    return "device/queue_depth" if attribute == "queue_depth" else f"queue/{attribute}"
