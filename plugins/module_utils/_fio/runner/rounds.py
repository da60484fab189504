# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steady state by rounds, as SNIA's Solid State Storage Performance Test Specification 2.0.2 defines it in 2.1.24. Pure.

Over a window of rounds the tracked value must not spread more than 20 % of its average, and the line fitted to it must not rise or fall
more than 10 % of the average from the first round of the window to its last.
"""

from __future__ import annotations

import dataclasses
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

TRACKED = ("read", "write")
FIGURES = ("iops", "bandwidth", "latency")


@frozen
class Rounds:
    """How steady is steady. ``range`` and ``slope`` are parts of the average.

    :param most: rounds after which it is given up.
    :param track: the direction that counts; ``what``: which of its figures.
    :param decided_by: of several cells that are measured in each round, the one whose values count; empty for a single cell.
    """

    most: int = 25
    window: int = 5
    range: float = 0.20
    slope: float = 0.10
    track: str = "write"
    what: str = "iops"
    decided_by: str = ""

    def to_dict(self) -> dict[str, t.Any]:
        """As a user would write it: of a single cell as before there were several."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name != "decided_by" or value}


@frozen
class Steadiness:
    """The result of a window. ``excursion`` and ``slope`` are parts of the average; the slope is that over the whole window."""

    steady: bool
    average: float
    excursion: float
    slope: float


def read_rounds(row: t.Any, cell: str) -> Rounds:
    """Check what a user requested.

    :raises BadInput: naming the cell and what is wrong.
    """
    if not isinstance(row, dict):
        raise BadInput(f"{cell}: rounds must be a dictionary; it may be empty.", item=cell)
    unknown = sorted(map(str, set(row) - {one.name for one in dataclasses.fields(Rounds)}))
    if unknown:
        raise BadInput(f"{cell}: {abbreviated(unknown[0])} is not supported in rounds.", item=cell)
    try:
        found = Rounds(
            most=int(row.get("most", 25)),
            window=int(row.get("window", 5)),
            range=float(row.get("range", 0.20)),
            slope=float(row.get("slope", 0.10)),
            track=str(row.get("track", "write")),
            what=str(row.get("what", "iops")),
            decided_by=str(row.get("decided_by") or ""),
        )
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{cell}: most and window of rounds must be whole numbers, range and slope must be numbers.", item=cell) from None
    if not 2 <= found.window <= found.most <= 999 or not (0 < found.range < math.inf and 0 < found.slope < math.inf):
        raise BadInput(
            f"{cell}: window of rounds must be at least 2 and must not exceed most (at most 999), and range and slope must be finite and above 0.", item=cell
        )
    if found.track not in TRACKED or found.what not in FIGURES:
        raise BadInput(f"{cell}: track of rounds must be one of {', '.join(TRACKED)}, and what one of {', '.join(FIGURES)}.", item=cell)
    return found


def judge(window: t.Sequence[float], rounds: Rounds) -> Steadiness:
    """Whether these rounds are steady, by the least-squares line through them."""
    count = len(window)
    average = sum(window) / count
    middle = (count - 1) / 2
    spread = sum((x - middle) ** 2 for x in range(count))
    slope = sum((x - middle) * (value - average) for x, value in enumerate(window)) / spread
    if average <= 0:
        return Steadiness(False, average, 0.0, 0.0)
    excursion, drift = (max(window) - min(window)) / average, slope * (count - 1) / average
    # What is exactly at a limit is within it, regardless of rounding.
    steady = excursion <= rounds.range + 1e-12 and abs(drift) <= rounds.slope + 1e-12
    return Steadiness(steady, average, excursion, drift)


def is_over(values: t.Sequence[float], rounds: Rounds) -> bool:
    """Whether there is nothing more to measure."""
    if len(values) >= rounds.most:
        return True
    return len(values) >= rounds.window and judge(values[-rounds.window :], rounds).steady


def conclude(values: t.Sequence[float], rounds: Rounds) -> dict[str, t.Any]:
    """The answer as plain data; ``first_of_window`` is the number of a round, from 1. Without enough rounds it is not steady."""
    window = list(values[-rounds.window :])
    found = judge(window, rounds) if len(window) == rounds.window else None
    return {
        **rounds.to_dict(),
        "steady": bool(found and found.steady),
        "values": list(values),
        "window": window,
        "average": found.average if found else None,
        "excursion": found.excursion if found else None,
        "limits": {"range": rounds.range, "slope": rounds.slope, "window": rounds.window},
        "slope": found.slope if found else None,
        "first_of_window": len(values) - len(window) + 1 if window else None,
    }


def value_of(meta: t.Mapping[str, t.Any], rounds: Rounds) -> float | None:
    """The tracked value of the ``meta.json`` of a round: I/Os or bytes per second, or ns; ``None`` if it has none."""
    direction = (meta.get("summary") or {}).get(rounds.track)
    if not direction:
        return None
    if rounds.what == "iops":
        return direction.get("iops")
    if rounds.what == "bandwidth":
        return direction.get("bw_bytes")
    return (direction.get("lat") or {}).get("mean_ns") or (direction.get("clat") or {}).get("mean_ns")


def follow(values: t.Sequence[float | None], rounds: Rounds, decided: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The answer of a cell that was measured in the rounds of another one, over the same window.

    :param values: of each round, ``None`` where it has none.
    :param decided: the answer of the cell that decides (:func:`conclude`).
    """
    window = list(values[-rounds.window :])
    known = [value for value in window if value is not None]
    whole = decided["average"] is not None and len(known) == rounds.window
    return {**decided, "values": list(values), "window": window, "average": sum(known) / len(known) if whole else None, "excursion": None, "slope": None}


def total_of(meta: t.Mapping[str, t.Any], what: str) -> float | None:
    """Like :func:`value_of`, over reads and writes together: rates are added, latencies are averaged by their I/Os."""
    summary = meta.get("summary") or {}
    parts = [summary[name] for name in TRACKED if summary.get(name)]
    if what != "latency":
        rates = [part.get("iops" if what == "iops" else "bw_bytes") for part in parts]
        return None if not rates or None in rates else sum(rates)
    latencies = [part.get("lat") or part.get("clat") or {} for part in parts]
    weights = [one.get("n") for one in latencies]
    if not weights or any(not weight or one.get("mean_ns") is None for weight, one in zip(weights, latencies)):
        return None
    return sum(weight * one["mean_ns"] for weight, one in zip(weights, latencies)) / sum(weights)
