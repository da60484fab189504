# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of an EnhanceIO cache: what there is, what is wanted as numbers, and in which order the driver takes the changes.

Sources: eio_procfs.c (a lower threshold is refused while it is above the higher one, and the other way round; most exist in
write-back only), eio.h (limits, and what a new cache has).
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import Setting, Vocabulary, flag, require_order
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

#: Where every one of them is stored.
SYSCTL = "sysctl"
_WRITEBACK = "writeback"
SETTINGS: t.Mapping[str, Setting] = {
    "mem_limit_pct": Setting(high=100, default=75, unit="percent", place=SYSCTL),
    # A new cache has one minute for every 16 GiB of its device.
    "time_based_clean_interval": Setting(high=720, unit="minutes", mode=_WRITEBACK, place=SYSCTL),
    "autoclean_threshold": Setting(high=1024, default=128, unit="requests", mode=_WRITEBACK, place=SYSCTL),
    "dirty_high_threshold": Setting(high=100, default=30, unit="percent", mode=_WRITEBACK, place=SYSCTL),
    "dirty_low_threshold": Setting(high=100, default=10, unit="percent", mode=_WRITEBACK, place=SYSCTL),
    "dirty_set_high_threshold": Setting(high=100, default=100, unit="percent", mode=_WRITEBACK, place=SYSCTL),
    "dirty_set_low_threshold": Setting(high=100, default=30, unit="percent", mode=_WRITEBACK, place=SYSCTL),
    # Only in the fork for newer kernels.
    "cache_wronly": flag(mode=_WRITEBACK, place=SYSCTL),
}
VOCABULARY = Vocabulary(
    "EnhanceIO",
    SETTINGS,
    pairs=(("dirty_low_threshold", "dirty_high_threshold"), ("dirty_set_low_threshold", "dirty_set_high_threshold")),
)


def existing(mode: str, known: t.Mapping[str, int]) -> dict[str, int]:
    """Those of ``known`` that still hold when the cache is in a mode: in another than write-back most of them are not shown."""
    return {key: value for key, value in known.items() if SETTINGS[key].exists_in(mode)}


def values(requested: t.Mapping[str, int | None], mode: str, smallest: int) -> dict[str, int]:
    """What the user set, as far as it exists in a mode; the driver's defaults as numbers.

    :param smallest: bytes of the cache device: a new cache is cleaned every so many minutes as it has 16 GiB.
    """
    usual = {"time_based_clean_interval": max((smallest // SECTOR) >> 25, 1)}
    chosen = {key: value for key, value in requested.items() if SETTINGS[key].exists_in(mode)}
    return {key: value if value is not None else usual.get(key, _default(key)) for key, value in chosen.items()}


def changes(requested: t.Mapping[str, int], known: t.Mapping[str, int], item: str) -> list[tuple[str, int | None, int]]:
    """Name, value found (None if it cannot be read) and value wanted of what differs, in an order that the driver takes.

    :param known: what is set now; of a cache that was just made nothing is known, and it has the defaults.
    :raises BadInput: if a lower threshold would be above its higher one.
    """
    order = [key for key, value in requested.items() if known.get(key) != value]
    if order:
        require_order(VOCABULARY, {**known, **requested}, item)
    for low, high in VOCABULARY.pairs:
        was = {key: known.get(key, _default(key)) for key in (low, high)}
        final = {key: requested.get(key, was[key]) for key in (low, high)}
        if low in order and high in order:
            first, second = (high, low) if final[high] >= was[low] else (low, high)
            order.remove(second)
            order.insert(order.index(first) + 1, second)
    return [(key, known.get(key), requested[key]) for key in order]


def _default(key: str) -> int:
    return t.cast("int", SETTINGS[key].default or 0)
