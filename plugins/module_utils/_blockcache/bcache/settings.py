# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of bcache: where each lives, what it may be, and how the kernel prints it.

Sources: Documentation/admin-guide/bcache.rst, drivers/md/bcache/sysfs.c and util.c of Linux 6.1. A number out of bounds is not
refused by the kernel but moved to the bound, so the bounds are checked here. Sizes are printed with one digit after the
point, cut off and not rounded (``4.7M`` for 5000000), and must be written as plain numbers (``4M`` is EINVAL).
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size

#: Where a setting lives: with the backing device, with the cache set, or with the cache device.
BACKING, SET, CACHE = "backing", "set", "cache"

_UNITS = "kMGTPEZY"
_LARGEST = 2**32 - 1
_PRINTED = re.compile(r"^(-?)(\d+)\.(\d)([kMGTPEZY])$")


@dataclass(frozen=True)
class Setting:
    """One setting.

    :param place: :data:`BACKING`, :data:`SET` or :data:`CACHE`.
    :param kind: ``size`` (bytes), ``number``, ``flag`` or ``choice``.
    :param default: what the kernel begins with.
    :param stored: whether it lives in a superblock, so that it needs no rule to survive a reboot.
    """

    place: str
    kind: str
    default: t.Union[int, str]
    low: int = 0
    high: int = _LARGEST
    choices: tuple[str, ...] = ()
    unit: str = ""
    stored: bool = False


#: A writeback_delay above 500 s is refused: the kernel ends the pause it is in before it begins a flush, and a flush that shows
#: no progress for ten minutes is given up.
SETTINGS: t.Mapping[str, Setting] = {
    "sequential_cutoff": Setting(BACKING, "size", 4 << 20, unit="bytes"),
    "writeback_percent": Setting(BACKING, "number", 10, high=40, unit="percent of the cache"),
    "writeback_delay": Setting(BACKING, "number", 30, high=500, unit="seconds"),
    "writeback_rate_minimum": Setting(BACKING, "number", 8, low=1, high=2**31 - 1, unit="sectors of 512 bytes per second"),
    "writeback_rate_update_seconds": Setting(BACKING, "number", 5, low=1, high=60, unit="seconds"),
    "readahead_cache_policy": Setting(BACKING, "choice", "all", choices=("all", "meta-only")),
    "stop_when_cache_set_failed": Setting(BACKING, "choice", "auto", choices=("auto", "always")),
    "congested_read_threshold_us": Setting(SET, "number", 2000, unit="microseconds"),
    "congested_write_threshold_us": Setting(SET, "number", 20000, unit="microseconds"),
    "io_error_limit": Setting(SET, "number", 8, high=2**31 - 1, unit="errors"),
    "journal_delay_ms": Setting(SET, "number", 100, high=65535, unit="milliseconds"),
    "cache_replacement_policy": Setting(CACHE, "choice", "lru", choices=("lru", "fifo", "random"), stored=True),
    "discard": Setting(CACHE, "flag", 0, high=1, stored=True),
}


def read_settings(settings: t.Mapping[str, t.Any], item: str) -> dict[str, int | str]:
    """What a user wrote, checked; ``default`` becomes what the kernel begins with.

    :raises BadInput: naming what may be written.
    """
    read: dict[str, int | str] = {}
    for key, value in settings.items():
        known = SETTINGS.get(key)
        if known is None:
            raise BadInput(f"{item}: bcache has no setting {key}: there are {', '.join(sorted(SETTINGS))}.", item=item)
        read[key] = known.default if str(value) == "default" else _read_value(key, known, value, item)
    return read


def _read_value(key: str, known: Setting, value: t.Any, item: str) -> int | str:
    if known.kind == "choice":
        if str(value) not in known.choices:
            raise BadInput(f"{item}: {key} is '{value}': write {', '.join(known.choices)} or default.", item=item)
        return str(value)
    if known.kind == "flag":
        word = str(value).lower()
        if word not in ("0", "1", "true", "false", "yes", "no", "on", "off"):
            raise BadInput(f"{item}: {key} is '{value}': write true, false or default.", item=item)
        return int(word in ("1", "true", "yes", "on"))
    if isinstance(value, bool):
        number = None
    elif known.kind == "size":
        number = parse_size(value, item, key)
    else:
        number = int(value) if re.match(r"^\d+$", str(value)) else None
    if number is None or not known.low <= number <= known.high:
        raise BadInput(f"{item}: {key} is '{value}': write a number of {known.unit} from {known.low} to {known.high}, or default.", item=item)
    return number


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


def has_value(key: str, text: str | None, wanted: int | str) -> bool:
    """Whether the text of an attribute says what is wanted, as far as the kernel's rounding lets one see."""
    known = SETTINGS[key]
    if text is None:
        return False
    if known.kind == "choice":
        return chosen(text) == wanted
    if known.kind == "size":
        return text.strip() == printed(int(wanted))
    return text.strip() == str(wanted)


def as_plain(key: str, text: str | None) -> int | str | None:
    """The value an attribute has, as a user would write it."""
    known = SETTINGS[key]
    if text is None:
        return None
    if known.kind == "choice":
        return chosen(text)
    if known.kind == "size":
        return parse_printed(text)
    return int(text) if text.strip().isdigit() else None
