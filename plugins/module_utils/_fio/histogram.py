# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""fio's latency histogram: bins ``{nanoseconds: count}``, their addition, and percentiles by fio's own rule.

Source: ``stat.c`` of fio (``plat_val_to_idx``, ``plat_idx_to_val``, ``calc_clat_percentiles``): 64 bins per octave, each named
by its midpoint, so a value is known within 1/128. Percentiles of several hosts come from added bins, never from averages.
"""

from __future__ import annotations

import typing as t

#: Bits of a value that are kept; the bins of one octave are two to this power.
PLAT_BITS = 6
PLAT_VAL = 1 << PLAT_BITS

_LARGEST_INDEX = 64 * PLAT_VAL
#: fio counts with 64 bits.
_LARGEST_COUNTER = 2**64

#: A latency histogram: midpoint of the bin in ns -> number of I/Os. Never holds a count of 0.
Bins = t.Mapping[int, int]


def bin_midpoint(index: int) -> int:
    """The value that a bin of fio's table stands for, in the unit of that table (µs before 3.0, ns since)."""
    if index < 2 * PLAT_VAL:
        return index
    error_bits = (index >> PLAT_BITS) - 1
    base = 1 << (error_bits + PLAT_BITS)
    return base + int((index % PLAT_VAL + 0.5) * (1 << error_bits))


def bin_index(value: int) -> int:
    """The bin into which fio counts a value; the inverse of :func:`bin_midpoint`."""
    if value < 2 * PLAT_VAL:
        return value
    error_bits = value.bit_length() - 1 - PLAT_BITS
    return ((error_bits + 1) << PLAT_BITS) + ((value >> error_bits) & (PLAT_VAL - 1))


def total(bins: Bins) -> int:
    """How many I/Os the histogram holds."""
    return sum(bins.values())


def merge(histograms: t.Iterable[Bins]) -> dict[int, int]:
    """The histogram of all I/Os together. Only cells that ran the same job at the same time may be merged."""
    merged: dict[int, int] = {}
    for bins in histograms:
        for value, count in bins.items():
            merged[value] = merged.get(value, 0) + count
    return dict(sorted(merged.items()))


def percentile(bins: Bins, percent: float) -> int | None:
    """The first bin whose cumulative count reaches ``percent`` of all, in ns; ``None`` for an empty histogram."""
    count = total(bins)
    if not count:
        return None
    # fio compares the cumulative count with percent/100 x N in floating point, so rounding is left as it is there.
    requested = percent / 100.0 * count
    reached = 0
    value = 0
    for value in sorted(bins):
        reached += bins[value]
        if reached >= requested:
            return value
    return value


def percentiles(bins: Bins, requested: t.Iterable[float]) -> dict[float, int]:
    """Several percentiles at once; empty for an empty histogram."""
    found = {percent: percentile(bins, percent) for percent in requested}
    return {percent: value for percent, value in found.items() if value is not None}


def from_indexed(cells: t.Mapping[str, t.Any], nanoseconds_per_unit: int) -> dict[int, int]:
    """Bins of json+ before 2.20: every cell of the table by its index, beside three ``FIO_IO_U_PLAT_*`` keys.

    :raises ValueError: for an index beyond every table, or a count beyond every counter.
    """
    return {bin_midpoint(_index(index)) * nanoseconds_per_unit: _count(count) for index, count in cells.items() if index.isdigit() and count}


def from_durations(counts: t.Mapping[str, t.Any], nanoseconds_per_unit: int) -> dict[int, int]:
    """Bins of json+ since 2.20: ``{duration: count}``, only those that are not zero.

    :raises ValueError: for a duration or a count beyond 64 bits.
    """
    used = counts if all(counts.values()) else {raw: count for raw, count in counts.items() if count}
    # All at once: a measurement has hundreds of them.
    values, numbers = list(map(int, used)), list(map(int, used.values()))
    for found in (values, numbers):
        if found:
            _within(min(found), _LARGEST_COUNTER)
            _within(max(found), _LARGEST_COUNTER)
    return dict(zip(values if nanoseconds_per_unit == 1 else [value * nanoseconds_per_unit for value in values], numbers))


def duration(raw: t.Any) -> int:
    """A duration in the unit in which it is given.

    :raises ValueError: if it is below 0 or beyond 64 bits.
    """
    return _within(raw, _LARGEST_COUNTER)


def _index(raw: str) -> int:
    # 29 groups of 64 bins. A bin is computed by a shift: an index without a limit would take all memory.
    return _within(raw, _LARGEST_INDEX)


def _count(raw: t.Any) -> int:
    return _within(raw, _LARGEST_COUNTER)


def _within(raw: t.Any, limit: int) -> int:
    value = int(raw)
    if not 0 <= value < limit:
        raise ValueError(raw)
    return value
