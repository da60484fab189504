# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values from a host: each of them is checked, and what is not of its kind becomes ``None``. Pure."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST

#: Above it a BIGINT has no room.
LARGEST_INTEGER = 2**63 - 1


def number(value: t.Any) -> float | None:
    """A number that is not negative and that statistics take, else ``None``: values from hosts may be anything."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        converted = float(value)
    except OverflowError:
        return None
    return converted if 0 <= converted <= LARGEST else None


@functools.lru_cache(maxsize=4096)
def text(value: t.Any) -> str | None:
    """Text of a host, in one line and without control characters; ``None`` for nothing."""
    return None if value is None else plain(value, 1000)


def optional_text(value: t.Any) -> str | None:
    """Likewise, and ``None`` for what is no text."""
    return text(value) if isinstance(value, str) else None


def optional_integer(value: t.Any, largest: int = LARGEST_INTEGER) -> int | None:
    """A whole number that is not negative and has room in its column."""
    found = number(value)
    return int(found) if found is not None and found < largest else None


def flag(value: t.Any) -> bool | None:
    return value if isinstance(value, bool) else None


def mapping(value: t.Any) -> t.Mapping[str, t.Any]:
    """An object of JSON; an empty one for anything else."""
    return value if isinstance(value, dict) else {}
