# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the figures of one report agree with each other; what does not is withheld, and a note says why. Pure.

fio prints latencies of another clock (io_uring with ``sqthread_poll``), counts the time of reading back only in part (``verify_backlog``)
and divides by times that it did not measure. Such a figure contradicts the others: of I/Os that are under way at one time there are no
more than jobs and depth allow (Little 1961), no I/O completes later than it is done, and a rate is a count by a time.

The figures are those of :func:`summary.summarize`: the runner checks them before it stores them, and the controller once more, since what
is stored may be of another version.
"""

from __future__ import annotations

import re
import typing as t
from types import MappingProxyType

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS

Figures = t.Dict[str, t.Any]

#: A latency with this flag has no figures any more, and its histogram has none either.
CONTRADICTS = "contradicts"

#: Figures that are printed from different clocks and counters differ by so much: starts and ends of jobs whose rates are added may be 5 % apart.
_ALIKE = 0.06

#: A latency that another one contains may exceed it by this share and by so many ns, as each is rounded by itself; a percentile is the
#: middle of a bin of 1/64.
_ROUNDED, _ROUNDED_NS, _BIN = 0.01, 1000.0, 1 / 64

#: A series and the total of its report differ by so much at most, or by one I/O.
SERIES_ALIKE = 0.03

_RANK = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})?\Z")
_RATES = ("iops", "bw_bytes")
_LATENCIES = ("lat", "clat")


def consistent(summary: t.Mapping[str, t.Any], elapsed: float | None = None, depths: t.Mapping[str, int] = MappingProxyType({})) -> tuple[Figures, list[str]]:
    """A summary without the figures that others of it contradict, and why each is withheld, as sentences.

    A summary of an old version does not have the number of I/Os that may be under way. Where that is not known either, what is compared with it is
    not, which is noted.

    :param elapsed: seconds that the whole run took; without it the longest direction stands for them.
    :param depths: the I/Os that may be under way by direction, for summaries without their number.
    """
    found: Figures = dict(summary)
    notes: list[str] = []
    times = [_number(one.get("runtime_ms")) for one in (summary.get(name) for name in DIRECTIONS) if isinstance(one, dict)]
    longest = max([elapsed or 0.0, *(value / 1000 for value in times if value is not None)])
    for name in DIRECTIONS:
        if isinstance(summary.get(name), dict):
            found[name] = _direction(name, summary[name], _integer(summary[name].get("in_flight")) or depths.get(name), longest, notes)
    sync = summary.get("sync")
    unchecked = [name for name in DIRECTIONS if isinstance(found.get(name), dict) and not (_integer(found[name].get("in_flight")) or depths.get(name))]
    if unchecked:
        notes.append(
            f"Whether rates and latencies of {' and '.join(unchecked)} agree was not checked: "
            "the result, of an old version, does not have the number of I/Os that may be under way at one time."
        )
    if isinstance(sync, dict) and longest:
        found["sync"] = _without(sync, _why_not("sync", sync, sync.get("n"), longest, _integer(sync.get("in_flight")) or depths.get("sync")), notes)
    return found, notes


def agrees(done: float, total: float, left_out: float) -> bool:
    """Whether a series is the one of a total.

    :param done: the sum of the series.
    :param total: what the report has.
    :param left_out: what may be missing in the series: fio writes no row for the last second of a thread, if that was not whole.
    """
    return (1 - SERIES_ALIKE) * total - 1 <= done + left_out and done <= (1 + SERIES_ALIKE) * total + 1


def series_note(direction: str) -> str:
    """Why a measurement has no series."""
    return f"The series of {direction} is not used: added up it differs by more than {SERIES_ALIKE:.0%} from the total that fio reports."


def _direction(name: str, given: t.Mapping[str, t.Any], in_flight: int | None, longest: float, notes: list[str]) -> Figures:
    found = dict(given)
    seconds = (_number(given.get("runtime_ms")) or 0.0) / 1000
    total = _number(given.get("total_ios"))
    clat_is_longer = _is_longer(_mean(given.get("clat")), _mean(given.get("lat")))
    rate_fits = True
    for kind in _LATENCIES:
        latency = given.get(kind)
        if not isinstance(latency, dict):
            continue
        why = _disorder(name, kind, latency) or _why_not(f"{kind} of {name}", latency, total, longest, in_flight)
        if not why and _why_not(kind, latency, total, seconds, in_flight):
            # The run was long enough for them, only the time that was counted for this direction was not; unless the other latency fits into it.
            other = given.get("lat" if kind == "clat" else "clat")
            if clat_is_longer and kind == "clat" and not _why_not("lat", other, total, seconds, in_flight):
                why = f"The latencies clat of {name} are withheld: they are longer than those of lat, of which they are a part."
            else:
                rate_fits = False
        found[kind] = _without(latency, why, notes)
    if clat_is_longer and all(_mean(found.get(kind)) is not None for kind in _LATENCIES):
        why = f"The latencies of {name} are withheld: clat, the time from submission to completion, is longer than lat, which includes it."
        found.update({kind: _without(found[kind], why if kind == "lat" else "", notes, always=True) for kind in _LATENCIES})
    if not rate_fits:
        found.update(dict.fromkeys((*_RATES, "runtime_ms")))
        notes.append(
            f"The rates of {name} are withheld: its {total:,.0f} I/Os took longer than the {_time(seconds * 1e9)} that fio counted for them, "
            f"with at most {in_flight} at a time."
        )
        return found
    for rate, count in zip(_RATES, ("total_ios", "io_bytes")):
        unit = 1 if rate == "iops" else 1024
        # Summaries of old versions have the time of the longest thread, also where the threads did not run at the same time.
        if _integer(given.get("in_flight")) and not _is_rate_of(_number(given.get(rate)), _number(given.get(count)), seconds, unit):
            found[rate] = None
            notes.append(f"{'IOPS' if rate == 'iops' else 'The bandwidth'} of {name} is withheld: it is not what was done by the time that it took.")
    return found


def _is_rate_of(rate: float | None, count: float | None, seconds: float, unit: int) -> bool:
    if rate is None or count is None or not seconds:
        return True
    # Times are printed in whole ms, old versions print rates as whole numbers (of KiB).
    low, high = count / (seconds + 0.002), count / max(seconds - 0.002, 0.0005)
    return low * (1 - _ALIKE) - unit <= rate <= high * (1 + _ALIKE) + unit


def _why_not(name: str, latency: t.Any, total: t.Any, seconds: float, in_flight: int | None) -> str:
    """Why so many I/Os cannot have taken so long each; empty if they can."""
    mean, count = _mean(latency), _number(total)
    if mean is None or count is None or not in_flight or not seconds:
        return ""
    # Those at the beginning may have begun before it, and those at the end may end after it.
    room = in_flight * (seconds * (1 + _ALIKE) + 0.002 + min((_number(latency.get("max_ns")) or 0.0) / 1e9, seconds))
    if count * mean / 1e9 <= room:
        return ""
    return (
        f"The latencies {name} are withheld: {count:,.0f} I/Os of {_time(mean)} each do not fit into {_time(seconds * 1e9)} with at most {in_flight} at a time."
    )


def _disorder(name: str, kind: str, latency: t.Mapping[str, t.Any]) -> str:
    """Why the figures of one latency cannot be of the same I/Os; empty if they can."""
    low, mean, high = (_number(latency.get(key)) for key in ("min_ns", "mean_ns", "max_ns"))
    given = latency.get("percentiles_ns")
    known = {rank: value for rank, value in given.items() if _number(value) is not None} if isinstance(given, dict) else {}
    values = [known[rank] for rank in sorted(filter(_is_rank, known), key=float)]
    ordered = [low, mean, high]
    pairs = [(one, other) for place, one in enumerate(ordered) for other in ordered[place + 1 :]]
    rising = list(zip(values, values[1:]))
    within = [(low, values[0] * (1 + _BIN) + 1), (values[-1] * (1 - _BIN) - 1, high)] if values else []
    if any(_is_longer(one, other) for one, other in (*pairs, *rising, *within)):
        return f"The latencies {kind} of {name} are withheld: the least, the mean, the percentiles and the greatest of them are not in this order."
    return ""


def _is_longer(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one > other * (1 + _ROUNDED) + _ROUNDED_NS


def _without(latency: t.Mapping[str, t.Any], why: str, notes: list[str], *, always: bool = False) -> Figures:
    """A latency without its figures if there is a reason, which is noted."""
    if not why and not always:
        return dict(latency)
    notes += [why] if why else []
    nothing = {**dict.fromkeys(("min_ns", "mean_ns", "max_ns")), "percentiles_ns": {}}
    return {**latency, **nothing, "flags": [*flags_of(latency), CONTRADICTS]}


def flags_of(latency: t.Mapping[str, t.Any]) -> list[str]:
    """What was already dropped of a latency."""
    flags = latency.get("flags")
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else []


def _is_rank(text: t.Any) -> bool:
    return isinstance(text, str) and bool(_RANK.match(text))


def _time(nanoseconds: float) -> str:
    value, unit = (nanoseconds / 1e9, "s") if nanoseconds >= 1e9 else (nanoseconds / 1e6, "ms")
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def _mean(latency: t.Any) -> float | None:
    return _number(latency.get("mean_ns")) if isinstance(latency, dict) else None


def _integer(value: t.Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63 else None


def _number(value: t.Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 else None
