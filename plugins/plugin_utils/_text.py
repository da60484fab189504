# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every number and list as it is displayed, in the terminal, in reports and in messages of the controller: one formatter for each kind of value.

One measurement reads the same everywhere: rates, latencies and amounts have three digits. What programs read (CSV, JSON, exports) is not formatted.
"""

from __future__ import annotations

import math
import typing as t

NOTHING = "-"

#: The same three digits where plotly writes a number (d3-format).
HOVER = ":,.3r"


def figure(value: float | None) -> str:
    """A rate with as many digits as mean something, thousands apart: ``12,300``, ``9.83``."""
    if value is None:
        return NOTHING
    # From 999.5 on three digits are 1,000.
    if abs(value) >= 999.5:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return _three_digits(value)


def megabytes(value: float | None) -> str:
    """A bandwidth in 10^6 bytes per second, of bytes per second."""
    return figure(None if value is None else value / 1e6)


def count(value: float | None) -> str:
    """What was counted, exactly: ``1,536,569``."""
    return NOTHING if value is None else f"{value:,.0f}"


def latency(ns: float | None) -> str:
    """A latency of ns with its unit: ``812 µs``."""
    return NOTHING if ns is None else _scaled(ns, ((1e9, "s"), (1e6, "ms"), (1e3, "µs")), "ns")


def size(value: float | None) -> str:
    """Bytes, powers of 1000 as data sheets of drives have them: 1 TB is 10^12."""
    return NOTHING if value is None else _scaled(value, ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")), "B")


def block(size_in_bytes: int | None) -> str:
    """A block size, powers of 1024: ``4 KiB``."""
    if not size_in_bytes:
        return ""
    for power, unit in ((1024**2, "MiB"), (1024, "KiB")):
        if size_in_bytes % power == 0:
            return f"{size_in_bytes // power} {unit}"
    return f"{size_in_bytes} bytes"


def duration(seconds: float) -> str:
    """``14 s``, ``3 min 10 s``, ``18 h``, ``2 d 4 h``: the two largest units."""
    left = round(seconds)
    if left < 1:
        return "0 s" if seconds <= 0 else "<1 s"
    parts = []
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        number, left = divmod(left, unit)
        if number or parts:
            parts.append((number, name))
        if len(parts) == 2:
            break
    return " ".join(f"{number} {name}" for number, name in parts if number)


def estimate(seconds: float) -> str:
    """A duration that is only estimated: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def in_seconds(seconds: float, decimals: int = 0) -> str:
    """Seconds of a series or a clock, in this unit only: ``1,200 s``."""
    return f"{seconds:,.{decimals}f} s"


def times(ratio: float | None) -> str:
    """A ratio: ``1.42 x``."""
    return NOTHING if ratio is None else f"{factor(ratio)} x"


def factor(ratio: float) -> str:
    """A ratio in a sentence: ``1.42``, ``12.3``."""
    return f"{ratio:.2f}" if 0.1 <= ratio < 10 else _three_digits(ratio)


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


def share(part: float | None, decimals: int = 0, *, signed: bool = False) -> str:
    """A part of 1 in percent: ``5 %``; of a change with its sign."""
    return NOTHING if part is None else f"{100 * part:{'+' if signed else ''}.{decimals}f} %"


def amount(value: float | None, unit: str = "%") -> str:
    """What is in this unit already, percent unless another is given, with up to three digits: ``0.12 %``."""
    return NOTHING if value is None else f"{_three_digits(value)} {unit}"


def confidence(probability: float) -> str:
    """Rounded down to whole percent, for it is at least that: ``at least 96 %``."""
    return f"at least {int(probability * 100 + 1e-9)} %"


def chance(p: float | None) -> str:
    """How likely a difference as large is where there is none; smaller ones are not distinguished."""
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.2g}"


def money(value: float | None, currency: str, *, as_given: bool = False) -> str:
    """An amount with its currency; what was given is not rounded, what was computed has four digits."""
    return NOTHING if value is None else f"{currency} {value if as_given else float(f'{value:.4g}'):,.15g}".strip()


def counted(number: int, word: str) -> str:
    """``1 host``, ``1,000 hosts``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def listed(names: t.Sequence[str], most: int = 5) -> str:
    """``a, b and 7 more``."""
    if len(names) <= most:
        return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
    return ", ".join(names[:most]) + f" and {len(names) - most} more"


def tick_text(value: float) -> str:
    """A round number of an axis: ``5,000``, ``2e+06``."""
    return f"{value:,g}" if value < 1e6 else f"{value:.0e}"


def rounded(value: float | None) -> float | None:
    """To four digits: what is drawn needs no more, and a page with 200 hosts has many of them."""
    if value is None or not math.isfinite(value) or value == 0:
        return None if value is None or not math.isfinite(value) else 0
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def _scaled(value: float, units: t.Sequence[tuple[float, str]], smallest: str) -> str:
    for one, unit in units:
        # From 999.5 on three digits are the next unit's 1.
        if abs(value) >= 0.9995 * one:
            return f"{_three_digits(value / one)} {unit}"
    return f"{value:.0f} {smallest}"


def _three_digits(value: float) -> str:
    """Without an exponent where the value is large."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
