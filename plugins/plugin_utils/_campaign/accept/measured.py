# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a campaign to the judgements of every host, target and requirement. What is absent is not measured, and why."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import facts as of_facts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.judge import FIRST, judge, noise_of, surplus
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import MEASURED, NOT_MEASURED, PASS, Judgement, Requirement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.places import Place, SharesOfSeconds, column_of, places_of, value_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.causes import NOT_KNOWN, Observed, limit_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, read_compared
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import READ_BACK, read_measurements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count

if t.TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.judge import Noise, Verdict
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult

#: The most repeats of a cell unless another number is given.
MOST_REPEATS = 12


def judgements(
    campaign: Path,
    requirements: t.Sequence[Requirement],
    facts: of_facts.Facts | None = None,
    *,
    looks_planned: int = MOST_REPEATS,
    power_loss: t.Sequence[PowerLossResult] = (),
) -> tuple[Judgement, ...]:
    """Of every host, its targets and all requirements.

    :param campaign: its folder; tables are made of what has come since.
    :param facts: of each host: see :mod:`facts`.
    :param looks_planned: the most repeats that are measured.
    :param power_loss: results of power-loss tests, as ``_power_loss.evidence.read_tests`` reads them.
    :raises StorageError: if the results cannot be read, or a library is missing.
    """
    ingest(campaign)
    rows, shares = read_tables(campaign, lambda database: _read(database, campaign.name, requirements))
    return judged(rows, requirements, facts, shares=shares, looks_planned=looks_planned, power_loss=power_loss)


def judged(
    rows: Rows,
    requirements: t.Sequence[Requirement],
    facts: of_facts.Facts | None = None,
    *,
    shares: SharesOfSeconds | None = None,
    looks_planned: int = MOST_REPEATS,
    power_loss: t.Sequence[PowerLossResult] = (),
) -> tuple[Judgement, ...]:
    """The same of what was read. Of several variants the one that was measured last counts."""
    known, variant = facts or {}, (rows.variants or [""])[-1]
    names = {one.workload for one in requirements if one.workload is not None}
    places = places_of((one for one in rows.measurements if one.variant == variant), names, known)
    measured = [one for one in requirements if one.kind == MEASURED]
    observed = Observed(rows)
    found = [one for requirement in measured for one in _judged(requirement, places, shares or {}, looks_planned, len(measured), observed)]
    found += of_facts.judgements(rows, places, requirements, known, power_loss)
    order = {one.name: number for number, one in enumerate(requirements)}
    return tuple(sorted(found, key=lambda one: (one.host, one.target, order[one.requirement.name])))


def _read(database: DuckDBPyConnection, campaign: str, requirements: t.Sequence[Requirement]) -> tuple[Rows, SharesOfSeconds]:
    rows = read_compared(database, campaign)
    further = {column_of(one) for one in requirements if one.kind == MEASURED} - set(READ_BACK)
    if further:
        rows.measurements = read_measurements(database, (*READ_BACK, *sorted(further)))
    shares: dict[tuple[str, str, str, int, str], float] = {}
    for one in requirements:
        if one.share is not None:
            shares.update(_shares_of_seconds(database, one))
    return rows, shares


def _shares_of_seconds(database: DuckDBPyConnection, requirement: Requirement) -> dict[tuple[str, str, str, int, str], float]:
    """What the required share of the seconds of each measurement reaches, or stays below: a percentile of them, that is judged as any other figure."""
    column = {"iops": "iops", "bandwidth": "bw_bytes"}.get(requirement.metric or "", "lat_ns")
    share = requirement.share or 0.0
    query = (
        f"SELECT host, variant, cell, repeat, quantile_disc({column}, $share) FROM intervals WHERE direction = $direction "
        f"AND (cell = $cell OR starts_with(cell, $cell || '.')) AND {column} IS NOT NULL GROUP BY ALL"
    )
    values = {"share": 1 - share if requirement.at_least else share, "direction": requirement.direction, "cell": requirement.workload}
    return {(host, variant, cell, repeat, requirement.name): value for host, variant, cell, repeat, value in database.execute(query, values).fetchall()}


def _judged(
    requirement: Requirement, places: t.Sequence[Place], shares: SharesOfSeconds, looks_planned: int, requirements: int, observed: Observed
) -> t.Iterator[Judgement]:
    """One requirement on all targets; the noise of each is that of the others of its class."""
    values = {id(place): _values(place, requirement, shares) for place in places}
    targets: dict[str, int] = {}
    classes: dict[str, list[t.Any]] = {}
    for place in places:
        targets[place.host] = targets.get(place.host, 0) + 1
        if len(values[id(place)]) >= FIRST:
            classes.setdefault(place.alike, []).append(surplus(requirement, values[id(place)]))
    noises: dict[str, Noise] = {alike: noise_of(some) for alike, some in classes.items()}
    for place in places:
        mine = values[id(place)]
        if not mine:
            yield place.judgement(requirement, NOT_MEASURED, _absent(place, requirement))
            continue
        verdict = judge(requirement, mine, looks_planned, noise=noises.get(place.alike), checks=requirements * targets[place.host])
        reason = f"{verdict.reason}{_because(verdict, place, requirement, observed)}"
        yield place.judgement(requirement, verdict.state, reason, verdict.value, low=verdict.low, high=verdict.high, looks=len(mine))


def _values(place: Place, requirement: Requirement, shares: SharesOfSeconds) -> list[float]:
    found = (value_of(one, requirement, shares) for one in place.of(requirement.workload, requirement.direction))
    return [value for value in found if value is not None]


def _absent(place: Place, requirement: Requirement) -> str:
    runs = place.of(requirement.workload, requirement.direction)
    if not runs:
        return place.without_result(requirement.workload)
    if requirement.share is not None:
        return f"{requirement.workload} has no {requirement.metric} of each second"
    return f"{requirement.workload} has no {requirement.metric} of {requirement.direction}: {count(runs[-1].lat_n or 0)} I/Os may be too few for it"


def _because(verdict: Verdict, place: Place, requirement: Requirement, observed: Observed) -> str:
    """What limits the measurements, where it is asked for and known."""
    if verdict.state == PASS:
        return ""
    direction = "write" if requirement.direction == "sync" else requirement.direction
    repeats = observed.repeats_of(place.host, {"": {place.host: place.of(requirement.workload, direction)}}).get("", ())
    limit = limit_of(repeats) if repeats else None
    return "" if limit is None or limit.name == NOT_KNOWN else f"; limited by {limit}"
