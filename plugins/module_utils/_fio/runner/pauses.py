# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pauses before a step: fixed, until block caches are clean, or as long as a drive needs to collect its garbage. Pure."""

from __future__ import annotations

import csv
import typing as t
from dataclasses import asdict
from statistics import mean, median

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
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

    The rate at the end of a cell is that of garbage collection only if the device had nothing left that was empty: its rate fell during the cell and
    stayed low, or it was full before, since the cells before this one have written at least as much as it holds. Anything else is the rate of a device
    that still had room, and a pause by it would be too short.

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


#: Seconds that a pause without a limit of its own may last.
MOST = 7200.0
#: Seconds that caches may take before a cell that decides to write back what earlier cells left dirty.
DRAIN = 1800.0

FIXED, CLEAN, GARBAGE = "fixed", "clean", "garbage_collection"


@frozen
class Pause:
    """What is waited for.

    :param kind: :data:`FIXED`, :data:`CLEAN` or :data:`GARBAGE`.
    :param seconds: of a fixed one.
    :param rate: bytes per second that the drive can make free; ``None``: what a cell of this order measured.
    :param most: seconds after which it ends in any case.
    """

    kind: str
    seconds: float = 0.0
    rate: float | None = None
    most: float = MOST


def read_pause(row: t.Any, step: int) -> Pause | None:
    """Check what a user requested.

    :raises BadInput: naming the step and what is wrong.
    """
    if row is None:
        return None
    where = f"Step {step}"
    kinds = [key for key in ("seconds", "until", "garbage_collection") if isinstance(row, dict) and row.get(key) is not None]
    if not isinstance(row, dict) or len(kinds) != 1 or set(row) - {"seconds", "until", "garbage_collection", "most"}:
        raise BadInput(f"{where}: a pause must have one of seconds, until (clean) and garbage_collection (bytes per second, or measured), and may have most.")
    most = _number(row.get("most", MOST) if row.get("most") is not None else MOST, f"{where}: most of a pause")
    if kinds == ["seconds"]:
        seconds = _number(row["seconds"], f"{where}: seconds of a pause")
        return Pause(FIXED, seconds=seconds, most=max(seconds, most))
    if kinds == ["until"]:
        if row["until"] != "clean":
            raise BadInput(f"{where}: until of a pause must be clean, not {abbreviated(row['until'])}.")
        return Pause(CLEAN, most=most)
    if row["garbage_collection"] == "measured":
        return Pause(GARBAGE, most=most)
    rate = _number(row["garbage_collection"], f"{where}: garbage_collection of a pause")
    if rate <= 0:
        raise BadInput(f"{where}: garbage_collection of a pause must be a rate above 0 in bytes per second, or measured.")
    return Pause(GARBAGE, rate=rate, most=most)


def read_drain(value: t.Any, where: str) -> float:
    """:raises BadInput: if it is no number of seconds."""
    return DRAIN if value is None else _number(value, f"{where}: drain")


def _number(value: t.Any, what: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise BadInput(f"{what} must be a number, not {value!r}.") from None
    if isinstance(value, bool) or not 0 <= found < 1e15:
        raise BadInput(f"{what} must be a number from 0, not {value!r}.")
    return found


#: Bytes, or bytes per second, by target and then by block size; ``None`` for writes that are not all of one size.
ByBlock = t.Mapping[str, t.Mapping[t.Optional[int], float]]


def length_of(pause: Pause, written: ByBlock, measured: ByBlock) -> tuple[float, str]:
    """Seconds that a pause lasts if nothing ends it earlier, and the note about it, if any.

    A rate that the user gives is that of all targets together. Measured ones are of single targets, which make room side by side.

    :param written: bytes that the cells since the last such pause wrote.
    :param measured: bytes per second at which cells have shown garbage collection.
    """
    if pause.kind == FIXED:
        return pause.seconds, ""
    if pause.kind == CLEAN:
        return pause.most, ""
    total = sum(amount for by_block in written.values() for amount in by_block.values())
    if not total:
        return 0.0, ""
    notes: dict[str, None] = {}
    if pause.rate:
        seconds = total / pause.rate
    elif any(measured.values()):
        seconds = max(_by_measured(target, by_block, measured, notes) for target, by_block in written.items())
    else:
        return pause.most, f"No cell has shown how fast garbage is collected, so the pause had its maximum length: {pause.most:g} seconds."
    if seconds > pause.most:
        notes[f"Garbage collection would have needed {seconds:.0f} seconds, and the maximum of the pause is {pause.most:g}."] = None
    return min(seconds, pause.most), " ".join(notes)


def _by_measured(target: str, written: t.Mapping[int | None, float], measured: ByBlock, notes: dict[str, None]) -> float:
    """Seconds that one target needs: each block size by its own rate, else by the lowest that is known, which ``notes`` then contain."""
    own = measured.get(target)
    lowest = min((rate, size or 0) for rates in ([own] if own else measured.values()) for size, rate in rates.items())
    seconds = 0.0
    for size, amount in written.items():
        if own and size in own:
            seconds += amount / own[size]
        elif amount:
            seconds += amount / lowest[0]
            whose = "" if own else " of another target"
            notes[
                f"No rate of garbage collection was shown for blocks of {_block(size)}: the pause was computed from the lowest one{whose}, "
                f"{lowest[0] / 1e6:.0f} MB/s for blocks of {_block(lowest[1])}."
            ] = None
    return seconds


def _block(size: int | None) -> str:
    if not size:
        return "mixed sizes"
    return f"{size // 1024} KiB" if size % 1024 == 0 else f"{size} bytes"
