# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of bcache: where each is stored, what it may be, and how the kernel prints it.

Sources: Documentation/admin-guide/bcache.rst, drivers/md/bcache/sysfs.c and util.c of Linux 6.1. A number out of bounds is not
refused by the kernel but moved to the bound, so the bounds are checked here. Sizes are printed with one digit after the
point, cut off and not rounded (``4.7M`` for 5000000), and must be written as plain numbers (``4M`` is EINVAL).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import settings as common
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import CHOICE, SIZE, Setting, Vocabulary, flag

#: Where a setting is stored: with the backing device, with the cache set, or with the cache device.
BACKING, SET, CACHE = "backing", "set", "cache"

_UNITS = "kMGTPEZY"
_LARGEST = 2**32 - 1
_PRINTED = re.compile(r"^(-?)(\d+)\.(\d)([kMGTPEZY])$")

#: A writeback_delay above 500 s is refused: the kernel ends the pause it is in before it begins a flush, and a flush that shows
#: no progress for ten minutes is given up.
SETTINGS: t.Mapping[str, Setting] = {
    "sequential_cutoff": Setting(SIZE, default=4 << 20, high=_LARGEST, unit="bytes", place=BACKING),
    "writeback_percent": Setting(default=10, high=40, unit="percent of the cache", place=BACKING),
    "writeback_delay": Setting(default=30, high=500, unit="seconds", place=BACKING),
    "writeback_rate_minimum": Setting(default=8, low=1, unit="sectors of 512 bytes per second", place=BACKING),
    "writeback_rate_update_seconds": Setting(default=5, low=1, high=60, unit="seconds", place=BACKING),
    "readahead_cache_policy": Setting(CHOICE, default="all", choices=("all", "meta-only"), place=BACKING),
    "stop_when_cache_set_failed": Setting(CHOICE, default="auto", choices=("auto", "always"), place=BACKING),
    "congested_read_threshold_us": Setting(default=2000, high=_LARGEST, unit="microseconds", place=SET),
    "congested_write_threshold_us": Setting(default=20000, high=_LARGEST, unit="microseconds", place=SET),
    "io_error_limit": Setting(default=8, unit="errors", place=SET),
    "journal_delay_ms": Setting(default=100, high=65535, unit="milliseconds", place=SET),
    "cache_replacement_policy": Setting(CHOICE, default="lru", choices=("lru", "fifo", "random"), place=CACHE, stored=True),
    "discard": flag(place=CACHE, stored=True),
}
VOCABULARY = Vocabulary("bcache", SETTINGS)


def read_settings(settings: t.Mapping[str, t.Any], item: str) -> dict[str, int | str]:
    """What a user wrote, checked; ``default`` becomes what the kernel begins with.

    :raises BadInput: naming what may be written.
    """
    read = common.read_settings(VOCABULARY, settings, item)
    return {key: t.cast("int | str", SETTINGS[key].default if value is None else value) for key, value in read.items()}


def printed(count: int) -> str:
    """A number of bytes as the kernel prints it: ``4.0M``, ``512.0k``, ``0.5k``; what is cut off is lost."""
    place, rest = -1, 0
    while place < 0 or count >= 1000:
        count, rest = divmod(count, 1024)
        place += 1
    return f"{count}.{rest * 10 // 1024}{_UNITS[place]}"


def parse_printed(text: str | None) -> int | None:
    """The least number of bytes that the kernel prints so; None if it is no such text."""
    match = _PRINTED.match((text or "").strip())
    if not match:
        return int(text) if text and text.strip().isdigit() else None
    sign, whole, tenth, unit = match.groups()
    place = _UNITS.index(unit)
    # The tenth was cut off of a number of 1024ths; a number that goes to the next unit is 1000 of its own at least.
    parts = -(-int(tenth) * 1024 // 10)
    count = (int(whole) * 1024 + (max(parts, 1000) if whole == "0" and place and parts else parts)) * 1024**place
    return -count if sign else count


def chosen(text: str | None) -> str | None:
    """The word in brackets of a list of choices: ``writeback`` of ``writethrough [writeback] writearound none``."""
    match = re.search(r"\[([^\]]+)\]", text or "")
    return match.group(1) if match else None


def has_value(key: str, text: str | None, requested: int | str) -> bool:
    """Whether the text of an attribute is the wanted value, as far as the kernel's rounding shows."""
    known = SETTINGS[key]
    if text is None:
        return False
    if known.kind == CHOICE:
        return chosen(text) == requested
    if known.kind == SIZE:
        return text.strip() == printed(int(requested))
    return text.strip() == str(requested)


def parse_value(key: str, text: str | None) -> int | str | None:
    """The value an attribute has, as a user would write it."""
    known = SETTINGS[key]
    if text is None:
        return None
    if known.kind == CHOICE:
        return chosen(text)
    if known.kind == SIZE:
        return parse_printed(text)
    return int(text) if text.strip().isdigit() else None
