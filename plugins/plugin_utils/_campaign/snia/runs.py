# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tests of SNIA's Performance Test Specification as a campaign has them: rounds over several cells, their window, and what it shows. Pure.

Sources: SNIA Solid State Storage Performance Test Specification 2.0.2, sections 2.1.24 (steady state), 3.2 (reporting requirements), 7 (IOPS), 8 (throughput),
9 (latency) and 10 (write saturation).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rounds import RoundsRun, run_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import percentiles

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.tested import Row, Tested

TITLES = {"iops": "IOPS test", "bandwidth": "Throughput test", "latency": "Latency test"}

#: The percentile that the latency test reports.
PERCENT = 99.999
_SATURATION = "saturation"
_FILL = "fill"


@dataclass(frozen=True)
class CellResult:
    """One cell over the rounds of the window. Rates are averages of the rounds, in 1/s, bytes per second and ns.

    :param tail: 99.999th percentile of all I/Os of the window; ``None`` with fewer than ``needed`` of them.
    """

    cell: str
    block_size: int | None
    reads: int | None
    iops: float | None
    bandwidth: float | None
    latency: float | None
    slowest: float | None
    tail: int | None
    samples: int
    state: str


@dataclass(frozen=True)
class RoundsTest:
    """One test in rounds.

    :param run: of the cell that decides; :param first: one of its measurements, for the job.
    """

    what: str
    run: RoundsRun
    results: tuple[CellResult, ...]
    first: Row | None

    @property
    def title(self) -> str:
        return TITLES[self.what]

    @property
    def window(self) -> range:
        """The numbers of its rounds, from 1; empty without a window."""
        return range(0) if self.run.first is None else range(self.run.first, self.run.first + self.run.window)


@dataclass(frozen=True)
class Saturation:
    """One write saturation test; ``minutes`` as in :class:`tested.Tested`."""

    row: Row
    minutes: tuple[tuple[int, float, float, float], ...]


def tests_of(tested: Tested) -> list[RoundsTest]:
    """The tests in rounds, in the order in which they ended."""
    found = []
    for row in tested.rows:
        rounds = row.found
        decided_by = rounds.get("decided_by")
        if not rounds or decided_by not in (None, row.cell):
            continue
        run = run_of(row.host, row.variant, row.cell, row.repeat, rounds)
        if run is None:
            continue
        cells = [one for one in tested.rows if one.found and one.found.get("decided_by") == decided_by] if decided_by else [row]
        results = tuple(_result(tested, one, run) for one in cells)
        first = next((one for one in tested.rows if one.cell.startswith(f"{row.cell}.round-") and one.direction in ("read", "write")), None)
        found.append(RoundsTest(run.what, run, results, first))
    return found


def _result(tested: Tested, conclusion: Row, run: RoundsRun) -> CellResult:
    rounds: dict[int, list[Row]] = {}
    for row in tested.rows:
        start, _dot, end = row.cell.rpartition(".round-")
        if start == conclusion.cell and end.isdigit() and row.direction in ("read", "write"):
            rounds.setdefault(int(end), []).append(row)
    window = [] if run.first is None else [rounds.get(place, []) for place in range(run.first, run.first + run.window)]
    parts = [row for one in window for row in one]
    first = next((row for one in rounds.values() for row in one), conclusion)
    bins: dict[int, int] = {}
    for name in {row.cell for row in parts}:
        for bin_ns, count in tested.bins.get(name, {}).items():
            bins[bin_ns] = bins.get(bin_ns, 0) + count
    [tail] = percentiles.percentiles(percentiles.histogram(bins), (PERCENT,))
    return CellResult(
        cell=conclusion.cell,
        block_size=first.bs_bytes,
        reads=first.reads,
        iops=_average([_total(one, "iops") for one in window]),
        bandwidth=_average([_total(one, "bandwidth") for one in window]),
        # As its host tracked it: what the application waits, also where the tables have the time from submission to completion.
        latency=number(conclusion.found.get("average")) if run.what == "latency" else None,
        slowest=max((row.lat_max_ns for row in parts if row.lat_max_ns is not None), default=None),
        tail=tail.value,
        samples=tail.samples,
        state=conclusion.state,
    )


def _total(rows: t.Sequence[Row], what: str) -> float | None:
    """Reads and writes of one round together."""
    if not rows:
        return None
    rates = [row.iops if what == "iops" else row.bw_bytes for row in rows]
    return None if None in rates else sum(t.cast("list[float]", rates))


def _average(values: t.Sequence[float | None]) -> float | None:
    """Of all rounds of the window, or of none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def saturations_of(tested: Tested) -> list[Saturation]:
    """Cells that are named so, without rounds."""
    rows = [row for row in tested.rows if row.cell.startswith(_SATURATION) and row.direction == "write" and ".round-" not in row.cell]
    return [Saturation(row, tuple(tested.minutes.get(row.cell, ()))) for row in rows]


def fills_of(tested: Tested) -> list[Row]:
    """The workload-independent preconditioning: sequential writes that are no part of a test."""
    return [row for row in tested.rows if row.cell.startswith(_FILL) or (row.rw == "write" and ".round-" not in row.cell and row.direction == "write")]
