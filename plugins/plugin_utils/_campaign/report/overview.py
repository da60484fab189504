# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the terminal shows of a campaign: each host of a few, from the files; of many hosts what all of them did, from the tables.

A line for each of many hosts would not be readable, and reading every file of a thousand takes minutes. Their files are not read again:
their hashes were checked when the tables were made, and a table is made again when a result changes.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import PlaceKey, backing_models, key_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import USUAL_FACTS, Rows, host_classes, labels_of, read_rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import aggregate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.aggregate import Aggregate, aggregates_of, window_note, with_fewer
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.answers import answers_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS, keys_without
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Ratio, claim_of, ratios_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point, Row, known, median, rows_of, spread_of, worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import is_noisy, pooled_noise
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, listed

if t.TYPE_CHECKING:
    from pathlib import Path

#: With more hosts than this there are lines of all hosts only.
MANY = 20

#: Variant, cell, direction, and where: empty where all is of one kind.
_Key = t.Tuple[str, str, str, str]


@dataclass(frozen=True)
class Overview:
    """All that the terminal shows.

    :param shown: rows of the table; ``rows`` has those of searches and rounds too, which have no figures.
    :param sums: as the result of a task has them.
    :param answers: what searches and rounds have found.
    :param read: what it was made of and ``points``, for the report, where that came from tables.
    """

    campaign: Campaign
    rows: list[Row]
    shown: list[Row]
    ratios: list[Ratio]
    aggregates: list[Aggregate]
    sums: list[dict[str, t.Any]]
    notes: list[str]
    answers: list[str]
    read: Rows | None = None
    points: list[Point] | None = None


def overview_of_files(campaign: Campaign, baseline: str = "", ignore: t.Collection[str] = ()) -> Overview:
    """Every host, from the files of a campaign.

    :param ignore: what may differ between variants.
    """
    files = CampaignFiles(campaign)
    rows = _ordered(rows_of(files.measurements), campaign.variants)
    ratios = ratios_of(campaign.variants, rows, files.measurements, baseline, ignore)
    aggregates = aggregates_of(files)
    rows += aggregate.rows_of(aggregates)
    answers, answered = answers_of(campaign)
    # A cell that is only an answer has no figures to stand in a row.
    shown = [row for row in rows if row.direction or (row.host, row.variant, row.cell) not in answered]
    sums = [one.to_dict() for one in aggregates]
    return Overview(campaign, rows, shown, ratios, aggregates, sums, aggregate.notes_of(aggregates), answers)


def _ordered(rows: t.Iterable[Row], variants: t.Sequence[str]) -> list[Row]:
    """Hosts and cells in natural order, variants in theirs; directions as they come."""
    return sorted(rows, key=lambda row: (natural(row.host), variants.index(row.variant), natural(row.cell)))


def overview_of_tables(
    folder: Path,
    name: str,
    baselines: t.Sequence[str] = (),
    problems: t.Sequence[str] = (),
    facts: t.Sequence[str] = USUAL_FACTS,
    ignore: t.Collection[str] = (),
) -> Overview:
    """All hosts together, from the tables of a campaign.

    :param baselines: the first one that was measured counts, else the first variant.
    :param problems: what was left out when the tables were made.
    :param facts: what distinguishes classes of hosts.
    :param ignore: what may differ between variants.
    :raises ResultsError: if there are no tables.
    """
    read = read_tables(folder, lambda database: read_rows(database, name, facts))
    every = read.points()
    points = [one for one in every if one.direction != "sync"]
    variants = read.variants
    once = {(one.host, one.variant, one.cell, one.repeat): one for one in read.measurements}
    records = tuple(CellRecord(one.host, CellKey(one.variant, one.cell, one.repeat), one.state, one.reason or "") for one in once.values())
    aggregates = [one for one in read.aggregates if not one.host]
    cells = _by_cell(points, _places(points, labels_of(host_classes(read, facts))))
    rows = [*aggregate.rows_of(aggregates), *_median_rows(cells)]
    rows.sort(key=lambda row: (variants.index(row.variant), natural(row.cell), row.direction))
    ratios = _ratios(points, next((name for name in [*baselines, *variants] if name in variants), ""), ignore)
    campaign = Campaign(name, folder, tuple(variants), records, tuple(problems))
    sums = [one.to_brief_dict() for one in aggregates]
    return Overview(campaign, rows, rows, ratios, aggregates, sums, _notes(aggregates, read), [], read, every)


# ---------------------------------------------------------------------------------------------------------------------
# Hosts


def _by_cell(points: t.Iterable[Point], places: t.Mapping[PlaceKey, str] | None = None) -> dict[_Key, list[Point]]:
    """:param places: what there is one figure of; ``None``: of all hosts."""
    found: dict[_Key, list[Point]] = {}
    for one in points:
        if one.iops is not None and not is_probe(one.cell):
            found.setdefault((one.variant, one.cell, one.direction, places[key_of(one)] if places else ""), []).append(one)
    return found


def _places(points: t.Sequence[Point], classes: t.Mapping[str, str]) -> dict[PlaceKey, str]:
    """Medians are never of several drives, attachments or classes of hosts; empty where a cell has one of them."""
    models = backing_models(points, classes)
    of_cell: dict[tuple[str, str], set[str]] = {}
    for (_host, cell, direction), place in models.items():
        of_cell.setdefault((cell, direction), set()).add(place)
    return {key: place if len(of_cell[key[1:]]) > 1 else "" for key, place in models.items()}


def _median_rows(cells: t.Mapping[_Key, t.Sequence[Point]]) -> t.Iterator[Row]:
    """One for each cell: the host in the middle, and how far the others are from it."""
    for (variant, cell, direction, place), here in cells.items():
        iops = known(one.iops for one in here)
        noise = pooled_noise(known(run.iops for run in one.runs) for one in here)
        # Of many hosts one is always noisy: what counts is the typical one.
        state = worst("ok" if one.state == "noisy" else one.state for one in here)
        verdicts = {verdict or "unknown" for one in here for run in one.runs for verdict in (run.verdict_before, run.verdict_after)}
        yield Row(
            host=", ".join(filter(None, (f"median of {len(here)}", place))),
            variant=variant,
            cell=cell,
            direction=direction,
            iops=median(iops),
            bandwidth=median(one.bandwidth for one in here),
            latency={one.name: None for one in SHOWN},
            synced=False,
            spread=spread_of(iops),
            runs=min(len(one.runs) for one in here),
            planned=max(len(one.runs) for one in here),
            state="noisy" if state == "ok" and is_noisy(noise) else state,
            noise=noise,
            is_sequential=here[0].first.is_sequential,
            verdict=next((one for one in ("at_risk", "unknown", "durable") if one in verdicts), None),
        )


def _ratios(points: t.Sequence[Point], base: str, ignore: t.Collection[str] = ()) -> list[Ratio]:
    """Each variant against the baseline over the fleet, hosts paired with themselves, where their measurements are comparable."""
    cells = _by_cell(points)
    found = []
    for (variant, cell, direction, place), here in cells.items():
        old = {one.host: one.runs for one in cells.get((base, cell, direction, place), ())}
        new = {one.host: one.runs for one in here if one.host in old}
        if variant == base or not new:
            continue
        both = pair(METRICS["iops"], old, new, keys_without(ignore))
        note = f"not comparable: {both.reason}" if both.comparison is None else claim_of(both.comparison)
        found.append(Ratio(counted(len(new), "host"), cell, direction, base, variant, both.ratio, note))
    return found


def _notes(aggregates: t.Sequence[Aggregate], read: Rows) -> list[str]:
    hosts = counted(len(read.hosts), "host")
    about = f"{hosts}: lines are of all of them, or of those with the same drives. "
    about += "Each host is in the report and in its CSV; SPREAD is over hosts, or repeats of a sum."
    return [about, *brief_notes_of(aggregates)]


def brief_notes_of(aggregates: t.Sequence[Aggregate]) -> list[str]:
    """The notes on the sums of a fleet: how many are concerned, for names of hosts would fill the page."""
    running = [one for one in aggregates if one.common.overlaps]
    notes = [window_note(running)] if running else []
    for reason, some in (
        ("Not done at the same time, so that the rate is all I/Os by the time from the first to the last", [one for one in running if one.in_turn]),
        ("Left out, for other repeats add more results", with_fewer(running)),
        ("Not added up, for a host has no rate there", [one for one in running if one.iops is None]),
    ):
        if some:
            notes.append(f"{reason}: {listed(sorted({f'{one.cell} {one.direction}' for one in some}), 4)}.")
    estimated = max((len(one.pro_rata) for one in running), default=0)
    if estimated:
        notes.append(f"Without a series by the second, the average of the whole run was taken for up to {counted(estimated, 'result')} of a sum.")
    partial = sorted({f"{one.cell} ({one.added} of {one.targets or one.planned})" for one in running if one.is_partial})
    if partial:
        notes.append(f"Not every host or target is in the sum of: {listed(partial, 4)}.")
    apart = sorted({f"{one.cell}/{one.repeat}" for one in aggregates if not one.common.overlaps})
    if apart:
        notes.append(f"Not added up, for the hosts did not measure at the same time: {listed(apart, 4)}.")
    return notes
