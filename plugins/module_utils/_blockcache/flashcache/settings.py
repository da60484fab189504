# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a flashcache device: its sysctls.

Sources: the bounds and defaults in flashcache.h and flashcache_procfs.c.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import Setting, Vocabulary, flag, read_settings

#: Where every one of them is stored.
SYSCTL = "sysctl"
_WRITEBACK = "writeback"

#: The defaults are what a cache has after it was created or loaded.
SETTINGS: t.Mapping[str, Setting] = {
    "cache_all": flag(1, place=SYSCTL),
    "do_pid_expiry": flag(place=SYSCTL),
    "io_latency_hist": flag(place=SYSCTL),
    "lru_hot_pct": Setting(default=75, high=100, unit="percent", place=SYSCTL),
    "lru_promote_thresh": Setting(default=2, high=255, place=SYSCTL),
    "max_pids": Setting(default=100, place=SYSCTL),
    "pid_expiry_secs": Setting(default=60, unit="seconds", place=SYSCTL),
    # 0 is FIFO, 1 is LRU.
    "reclaim_policy": flag(place=SYSCTL),
    "skip_seq_thresh_kb": Setting(default=0, unit="KiB", place=SYSCTL),
    "clean_on_read_miss": flag(mode=_WRITEBACK, place=SYSCTL),
    "clean_on_write_miss": flag(mode=_WRITEBACK, place=SYSCTL),
    # The kernel clamps these two silently.
    "dirty_thresh_pct": Setting(default=20, low=10, high=95, unit="percent", mode=_WRITEBACK, place=SYSCTL),
    "fallow_clean_speed": Setting(default=2, low=1, high=100, mode=_WRITEBACK, place=SYSCTL),
    "fallow_delay": Setting(default=900, unit="seconds", mode=_WRITEBACK, place=SYSCTL),
    # With none allowed nothing would ever be cleaned.
    "max_clean_ios_set": Setting(default=2, low=1, mode=_WRITEBACK, place=SYSCTL),
    "max_clean_ios_total": Setting(default=4, low=1, mode=_WRITEBACK, place=SYSCTL),
    "new_style_write_merge": flag(mode=_WRITEBACK, place=SYSCTL),
}
VOCABULARY = Vocabulary(
    "flashcache",
    SETTINGS,
    refused={
        "fast_remove": "it removes a cache while the origin does not have everything that was written",
        "do_sync": "it is not a setting but starts a flush: set state: flushed",
        "stop_sync": "it is not a setting but stops a flush",
        "zero_stats": "it is not a setting but clears the counters, which are read by their differences",
    },
)


def read_numbers(settings: t.Mapping[str, t.Any], mode: str, item: str, *, write_only: bool = False) -> dict[str, int]:
    """The sysctls as numbers. ``cache_all`` follows from ``state``, so it is among them also if it was not written.

    :param mode: the mode of the cache; empty if it does not matter.
    :raises BadInput: naming the sysctl, its bounds, or why it cannot be set.
    """
    read = read_settings(VOCABULARY, settings, item, mode)
    numbers = {key: default_of(key, write_only=write_only) if value is None else t.cast("int", value) for key, value in read.items()}
    return {"cache_all": 1, **numbers}


def default_of(key: str, *, write_only: bool) -> int:
    """What a new cache has; one of writes alone is made without the cleaning of idle blocks."""
    return 0 if key == "fallow_delay" and write_only else t.cast("int", SETTINGS[key].default)
