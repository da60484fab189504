# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""From single measurements to what may be said of them: medians over repeats, and ratios where two variants are comparable.

Repeats are the unit: a value of a point is the median of its repeats. Nothing that was not measured becomes a number.
"""

from __future__ import annotations

import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, STATES, plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord

#: With fewer repeats on either side no rank test can reach 5 % (3 against 3: 0.10; 4 against 4: 0.029).
REPEATS_FOR_A_CLAIM = 4

#: Options of a job that say where it ran or how its output is kept, not what the load was.
_PLACE_OPTIONS = frozenset({"filename", "directory", "allow_file_create", "description", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"})


#: Above it nothing is measured, and below it sums and squares of all results are finite.
_LARGEST_NUMBER = 1e24


@dataclass(frozen=True)
class Numbers:
    """One direction of one measurement. ``None`` is a number that nobody measured.

    :param iops: I/Os per second.
    :param bandwidth: bytes per second.
    :param latency: ns by name of the percentile; of the sync when ``synced``, else of the I/O.
    """

    iops: float | None
    bandwidth: float | None
    latency: t.Mapping[str, float | None]
    synced: bool


@dataclass(frozen=True)
class Row:
    """One line of the table: one point of one host and variant, over its repeats.

    :param direction: ``read``, ``write``, ``trim`` or ``mixed``; empty if nothing was measured.
    :param spread: (largest - smallest) / median of the IOPS of the repeats; ``None`` with fewer than two.
    :param runs: repeats with numbers; ``planned``: all of them.
    :param state: the worst of the repeats.
    """

    host: str
    variant: str
    cell: str
    direction: str
    iops: float | None
    bandwidth: float | None
    latency: t.Mapping[str, float | None]
    synced: bool
    spread: float | None
    runs: int
    planned: int
    state: str
    verdict: str | None
    iops_of_runs: tuple[float, ...] = ()

    def as_result(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        values = dict(vars(self))
        values["latency_ns"] = dict(values.pop("latency"))
        values["iops_of_runs"] = list(self.iops_of_runs)
        return values


@dataclass(frozen=True)
class Ratio:
    """One point of one host in one variant against the baseline.

    :param ratio: median IOPS against the baseline's; ``None`` if it cannot be said, and ``note`` says why.
    """

    host: str
    cell: str
    direction: str
    baseline: str
    variant: str
    ratio: float | None
    note: str

    def as_result(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        return dict(vars(self))


def rows_of(campaign: Campaign) -> list[Row]:
    """One row per host, variant, cell and direction, in the campaign's order."""
    rows = []
    for (host, variant, cell), records in _points(campaign).items():
        rows += _rows_of_point(host, variant, cell, records)
    return rows


def ratios_of(campaign: Campaign, rows: t.Sequence[Row], baseline: str = "") -> list[Ratio]:
    """Every other variant against the baseline (the first one planned unless named), host by host, cell by cell."""
    if len(campaign.variants) < 2:
        return []
    base = baseline or campaign.variants[0]
    points = _points(campaign)
    by_point = {(row.host, row.variant, row.cell, row.direction): row for row in rows}
    ratios = []
    for row in rows:
        if row.variant == base or not row.direction:
            continue
        first = by_point.get((row.host, base, row.cell, row.direction))
        differences = _differences(points.get((row.host, base, row.cell), []), points[row.host, row.variant, row.cell])
        ratios.append(_ratio(row, first, base, differences))
    return ratios


def numbers_of(record: CellRecord) -> dict[str, Numbers]:
    """What one measurement says, by direction, from the summary in its ``meta.json``: a host's word, so every value is checked."""
    if record.state not in MEASURED:
        return {}
    summary = record.meta.get("summary")
    if not isinstance(summary, dict):
        return {}
    sync = _latency(summary.get("sync"))
    found = {}
    for direction in DIRECTIONS:
        values = summary.get(direction)
        if not isinstance(values, dict) or not number(values.get("total_ios")):
            continue
        synced = direction in ("write", "mixed") and bool(sync)
        # What the application sees if fio has its percentiles, else from submission to completion.
        latency = sync if synced else _latency(values.get("lat")) or _latency(values.get("clat"))
        found[direction] = Numbers(number(values.get("iops")), number(values.get("bw_bytes")), _percentiles(latency), synced)
    return found


def number(value: t.Any) -> float | None:
    """A finite number that is not negative, else ``None``: hosts may say anything."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        converted = float(value)
    except OverflowError:
        return None
    return converted if 0 <= converted < _LARGEST_NUMBER else None


def worst(states: t.Iterable[str]) -> str:
    """The state that says most: ``missing`` before ``failed`` before … ``ok``."""
    return max(states, key=STATES.index)


def _points(campaign: Campaign) -> dict[tuple[str, str, str], list[CellRecord]]:
    points: dict[tuple[str, str, str], list[CellRecord]] = {}
    for record in campaign.cells:
        points.setdefault((record.host, record.key.variant, record.key.cell), []).append(record)
    return points


def _rows_of_point(host: str, variant: str, cell: str, records: t.Sequence[CellRecord]) -> list[Row]:
    measured = [numbers_of(record) for record in records]
    directions = [direction for direction in DIRECTIONS if any(direction in numbers for numbers in measured)]
    state, verdict = worst(record.state for record in records), _verdict(records)
    rows = []
    for direction in directions or [""]:
        runs = [numbers[direction] for numbers in measured if direction in numbers]
        iops = [run.iops for run in runs if run.iops is not None]
        middle = _median(iops)
        rows.append(
            Row(
                host=host,
                variant=variant,
                cell=cell,
                direction=direction,
                iops=middle,
                bandwidth=_median([run.bandwidth for run in runs if run.bandwidth is not None]),
                # A percentile counts only where every repeat had I/Os enough for it.
                latency={one.name: _median_of_all([run.latency[one.name] for run in runs]) for one in SHOWN},
                synced=any(run.synced for run in runs),
                spread=(max(iops) - min(iops)) / middle if middle and len(iops) > 1 else None,
                runs=len(runs),
                planned=len(records),
                state=state,
                verdict=verdict,
                iops_of_runs=tuple(iops),
            )
        )
    return rows


def _median(values: t.Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _median_of_all(values: t.Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _median(known) if len(known) == len(values) else None


def _latency(said: t.Any) -> t.Mapping[str, t.Any]:
    """One kind of latency of a summary: empty unless it has percentiles."""
    return said if isinstance(said, dict) and isinstance(said.get("percentiles_ns"), dict) and said["percentiles_ns"] else {}


def _percentiles(latency: t.Mapping[str, t.Any]) -> dict[str, float | None]:
    samples = number(latency.get("n")) or 0
    return {one.name: number(latency["percentiles_ns"].get(one.rank)) if samples >= one.needed else None for one in SHOWN}


def _verdict(records: t.Sequence[CellRecord]) -> str | None:
    """The verdict all repeats agree on, else what it went through."""
    seen = dict.fromkeys(verdict for record in records for verdict in record.verdicts if verdict is not None)
    return ">".join(seen) or None


def _ratio(row: Row, first: Row | None, base: str, differences: t.Sequence[str]) -> Ratio:
    def said(ratio: float | None, note: str) -> Ratio:
        return Ratio(row.host, row.cell, row.direction, base, row.variant, ratio, note)

    if first is None or not first.iops or row.iops is None:
        without = base if first is None or not first.iops else row.variant
        return said(None, f"no number of {without}")
    if differences:
        return said(None, "not comparable: " + "; ".join(differences))
    counts = f"{first.runs} and {row.runs} repeats"
    if min(first.runs, row.runs) < REPEATS_FOR_A_CLAIM:
        return said(row.iops / first.iops, f"{counts}: fewer than {REPEATS_FOR_A_CLAIM}, no significance claimed")
    apart = max(first.iops_of_runs) < min(row.iops_of_runs) or max(row.iops_of_runs) < min(first.iops_of_runs)
    return said(row.iops / first.iops, f"{counts}, " + ("no value of one is among the other's" if apart else "their values overlap"))


def _differences(one: t.Sequence[CellRecord], other: t.Sequence[CellRecord]) -> list[str]:
    """What makes two points incomparable. The stack is left out: it is what the variants differ in."""
    keys = [_comparison_key(record) for record in one], [_comparison_key(record) for record in other]
    names = list(dict.fromkeys(name for key in (*keys[0], *keys[1]) for name in key))
    differences = []
    for name in names:
        sides = [list(dict.fromkeys(key.get(name, "unset") for key in side)) for side in keys]
        if all(sides) and (len({*sides[0], *sides[1]}) > 1):
            differences.append(f"{name} {', '.join(sides[0])} / {', '.join(sides[1])}")
    return differences


def _comparison_key(record: CellRecord) -> dict[str, str]:
    """What must be equal in two measurements that are compared; nothing of a cell without numbers."""
    if record.state not in MEASURED:
        return {}
    key = {label: plain(record.meta.get(name), 40) for name, label in (("behaviour_class", "fio behaviour"), ("fio_version", "fio"), ("kernel", "kernel"))}
    key.update({plain(option, 30): plain(value, 40) for option, value in sorted(record.job.items()) if option not in _PLACE_OPTIONS})
    return key
