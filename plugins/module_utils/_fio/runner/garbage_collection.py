# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How fast a device makes room for writes, from the series of a cell that wrote. Pure.

The rate at the end of a cell is that of garbage collection only if the device had nothing left that was empty: its rate fell during
the cell and stayed low, or it was full before, since the cells before this one have written at least as much as it holds. Anything
else is the rate of a device that still had room, and a pause by it would be too short.
"""

from __future__ import annotations

import csv
import typing as t
from dataclasses import asdict
from statistics import mean, median

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: What shows that a rate is that of garbage collection.
FALL, FILL = "fall", "fill"

#: A cell is divided into so many parts of equal length, and the last of them are its end: they must all be below by this share.
_PARTS, _LAST, _FALL = 20, 4, 0.2

#: Whose end still loses more than this share from one half to the other goes on falling.
_STILL = 0.05

#: Share of a cell at its end whose mean is the rate.
_END = 0.1


@frozen
class CollectionRate:
    """What a cell has shown of garbage collection.

    :param rate: bytes per second; ``None`` if it has shown none.
    :param block_size: bytes of the writes that it holds for; ``None`` if they were not all of one size.
    :param shown_by: :data:`FALL` or :data:`FILL`, empty without a rate.
    :param reason: why there is no rate, as a sentence; empty if there is one.
    """

    rate: float | None
    block_size: int | None
    shown_by: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, t.Any]:
        return asdict(self)


def collection_rate(series: str, device: str, began: float, ended: float, *, block_size: int | None, size: int, written: float) -> CollectionRate:
    """The rate of garbage collection, if the cell shows one.

    :param series: CSV as the sampler writes it; rows after the end are of a fio that only cleans up.
    :param began: seconds since the epoch, as ``ended``.
    :param size: bytes of the whole device; 0 if unknown.
    :param written: bytes that earlier cells, which go over all of it, wrote to it since it was discarded last.
    """
    rates = [
        float(row["wkb_s"]) * 1024 for row in csv.DictReader(series.splitlines()) if row.get("device") == device and began <= float(row["epoch_s"]) <= ended
    ]
    if len(rates) < _PARTS:
        return _none(block_size, f"the counters of the device were read {len(rates)} times, and {_PARTS} are needed")
    parts = [median(rates[len(rates) * part // _PARTS : len(rates) * (part + 1) // _PARTS]) for part in range(_PARTS)]
    high, end = max(parts[:-_LAST]), parts[-_LAST:]
    fell = max(end) <= (1 - _FALL) * high
    full = 0 < size <= written
    if not fell and not full:
        return _none(block_size, f"the rate of writing did not fall, and no more than {written:.3g} of {size:.3g} bytes were written before it")
    half = _LAST // 2
    if mean(end[half:]) < (1 - _STILL) * mean(end[:half]):
        return _none(block_size, "the rate of writing was still falling at its end")
    rate = mean(rates[-max(round(len(rates) * _END), 1) :])
    return CollectionRate(rate, block_size, FALL if fell else FILL) if rate > 0 else _none(block_size, "nothing was written at its end")


def no_series(block_size: int | None) -> CollectionRate:
    """For a target without counters of its own."""
    return _none(block_size, "the target is a file, or its counters were not read")


def _none(block_size: int | None, why: str) -> CollectionRate:
    return CollectionRate(None, block_size, reason=f"The cell shows no rate of garbage collection: {why}.")
