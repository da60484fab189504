# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers as a report writes them."""

from __future__ import annotations

import math
import typing as t

NOTHING = "-"


def figure(value: float | None) -> str:
    """A rate with as many digits as mean something, thousands apart: ``12,300``, ``9.83``."""
    if value is None:
        return NOTHING
    # From 999.5 on three digits are 1,000.
    if value >= 999.5:
        digits = len(str(int(value))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def duration(ns: float | None) -> str:
    """A latency with its unit."""
    if ns is None:
        return NOTHING
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        # From 999.5 on three digits are the next unit's 1.
        if ns >= 0.9995 * size:
            return f"{_three_digits(ns / size)} {unit}"
    return f"{ns:.0f} ns"


def size(value: float | None) -> str:
    """Bytes, powers of 1000."""
    if value is None:
        return NOTHING
    for power, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= 0.9995 * power:
            return f"{_three_digits(value / power)} {unit}"
    return f"{value:.0f} B"


def times(ratio: float | None) -> str:
    """A ratio: ``1.42 x``."""
    return NOTHING if ratio is None else f"{ratio:.2f} x" if 0.1 <= ratio < 10 else f"{_three_digits(ratio)} x"


def _three_digits(value: float) -> str:
    """Without an exponent where the value is large."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def span(low: float, high: float) -> str:
    """Two ends of an interval, with equally many decimals, no fewer than :func:`times` has, and enough to distinguish them, and each from 1, which a
    claim excludes: ``0.97 to 1.35``."""
    fewest = 2 if not low or 0.1 <= low < 10 else 1 - math.floor(math.log10(low))
    if math.isclose(low, high, rel_tol=1e-7):
        # Ties: more decimals would not distinguish them.
        return f"{low:,.{max(fewest, 0)}f} to {high:,.{max(fewest, 0)}f}"
    for decimals in range(min(max(fewest, 0), 6), 9):
        ends = f"{low:,.{decimals}f}", f"{high:,.{decimals}f}"
        one = f"{1:.{decimals}f}"
        if ends[0] != ends[1] and not (ends[0] == one and low != 1) and not (ends[1] == one and high != 1):
            break
    return f"{ends[0]} to {ends[1]}"


def percent(share: float) -> str:
    """A confidence, rounded down to whole percent: it is at least that."""
    return f"{int(share * 100 + 1e-9)} %"


def block(size_in_bytes: int | None) -> str:
    """A block size, powers of 1024: ``4 KiB``."""
    if not size_in_bytes:
        return ""
    for power, unit in ((1024**2, "MiB"), (1024, "KiB")):
        if size_in_bytes % power == 0:
            return f"{size_in_bytes // power} {unit}"
    return f"{size_in_bytes} bytes"


def chance(p: float | None) -> str:
    """How likely a difference as large is where there is none; smaller ones are not distinguished."""
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.2g}"


def counted(count: int, word: str) -> str:
    """``1 host``, ``1,000 hosts``."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def listed(names: t.Sequence[str], most: int = 5) -> str:
    """``a, b and 7 more``."""
    if len(names) <= most:
        return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
    return ", ".join(names[:most]) + f" and {len(names) - most} more"
