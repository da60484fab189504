# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report is made of: plain rows, read from the tables of a campaign, whatever wrote those."""

from __future__ import annotations

import functools
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import parts_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.aggregate import Aggregate, aggregates_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CellFlows, FlowKey, read_flows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_tables import AddedHistogram, CampaignTables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement, read_measurements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point, points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, listed

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: What can distinguish hosts.
FACTS = ("controller", "drives", "drive_firmware", "kernel", "fio")

USUAL_FACTS = ("controller", "drives", "kernel")


@dataclass(frozen=True)
class HostClass:
    """Hosts that are alike.

    :param label: who they are, and what of them is different from other classes.
    :param facts: by name, all that distinguishes classes.
    """

    label: str
    hosts: tuple[str, ...]
    facts: t.Mapping[str, str]


def read_facts(names: t.Sequence[str]) -> tuple[str, ...]:
    """:raises BadInput: for what does not distinguish hosts."""
    unknown = [name for name in names if name not in FACTS]
    if unknown:
        raise BadInput(f"Hosts have no fact '{unknown[0]}': report_host_class takes {', '.join(FACTS)}.")
    return tuple(names) or USUAL_FACTS


def host_classes(rows: Rows, names: t.Sequence[str] = USUAL_FACTS) -> list[HostClass]:
    """Every class, the largest first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    known = _facts(rows)
    for host in rows.hosts:
        groups.setdefault(tuple(known[host].get(name, "unknown") for name in names), []).append(host)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    different = [place for place in range(len(names)) if len({key[place] for key, _hosts in ordered}) > 1]
    return [
        HostClass(_label(hosts, [_said(names[place], key[place]) for place in different]), tuple(hosts), dict(zip(names, key, strict=True)))
        for key, hosts in ordered
    ]


def labels_of(classes: t.Sequence[HostClass]) -> dict[str, str]:
    """The class of each host; nothing where there is only one."""
    return {host: one.label for one in classes for host in one.hosts} if len(classes) > 1 else {}


def _label(hosts: t.Sequence[str], different: t.Sequence[str]) -> str:
    who = listed(hosts, 3) if len(hosts) <= 3 else counted(len(hosts), "host")
    return f"{who} ({', '.join(different)})" if different else who


def _said(name: str, value: str) -> str:
    return value if name in ("controller", "drives") else f"{name.replace('_', ' ')} {value}"


def _facts(rows: Rows) -> dict[str, dict[str, str]]:
    """What each host is, as text; drives that only some variants use are part of the host all the same."""
    with_drives = {one.host for one in rows.drives}
    known = {(one.host, name, value) for one in rows.drives for name, value in (("drives", one.model), ("drive_firmware", one.firmware))}
    # Once for each host, where a fleet has a hundred thousand measurements.
    for host, kernel, fio, model, firmware in {(one.host, one.kernel, one.fio_version, one.model, one.firmware) for one in rows.measurements}:
        known.update({(host, "kernel", kernel), (host, "fio", fio)})
        if host not in with_drives:
            known.update({(host, "drives", model), (host, "drive_firmware", firmware)})
    for (host, _stack), settings in rows.settings.items():
        known.update((host, "controller", value) for _device, layer, key, value in settings if layer == "controller" and key in ("controller", "firmware"))
    found: dict[str, dict[str, list[str]]] = {host: {} for host in rows.hosts}
    for host, name, value in known:
        if value and host in found:
            found[host].setdefault(name, []).append(value)
    return {host: {name: ", ".join(sorted(values)) for name, values in facts.items()} for host, facts in found.items()}


_Value = t.TypeVar("_Value")

#: Series that are analysed one by one: those that vary most.
MOST_SERIES = 1500


@dataclass
class Drive:
    """What the campaign did to one drive of one host: counters at its first and last measurement."""

    host: str
    device: str
    model: str | None
    serial: str | None
    firmware: str | None
    wear_before: float | None
    wear_after: float | None
    written_before: int | None
    written_after: int | None
    hottest: float | None
    media_errors: int | None
    passed: bool | None


@dataclass
class Series:
    """IOPS and bytes per second of one direction of one measurement, by the second."""

    host: str
    variant: str
    cell: str
    repeat: int
    direction: str
    iops: list[float | None]
    bandwidth: list[float | None]


@dataclass
class Band:
    """IOPS of all hosts along one cell: a tenth of them is under ``low``, a tenth above ``high``.

    :param second: middle of each interval.
    :param common: seconds of the shortest run, in which all are; ``None`` where that is all there is.
    """

    variant: str
    cell: str
    direction: str
    hosts: int
    second: list[float]
    low: list[float]
    middle: list[float]
    high: list[float]
    common: float | None = None


@dataclass
class Charts:
    """What is drawn over time.

    :param series: those that vary most, of ``total``.
    """

    series: list[Series]
    total: int
    bands: list[Band]


@dataclass
class Rows:
    """A campaign as a report needs it.

    :param settings: by (host, stack) what its layers were set to, as (device, layer, key, value).
    :param classes: the hosts of each class, divided by :func:`places.parts_of`; ``added``: the bins themselves, by (number in it, variant, cell, repeat,
        direction).
    :param aggregates: what hosts, and targets of a host, did together.
    :param charts: what is drawn over time.
    :param flows: what passed the devices and the caches of each measurement that decides.
    :param disproved: hosts on which a power-loss test has lost writes that the verdict of their stack says are kept.
    """

    campaign: str
    measurements: list[Measurement]
    drives: list[Drive] = field(default_factory=list)
    settings: dict[tuple[str, str], list[tuple[str, str, str, str]]] = field(default_factory=dict)
    aggregates: list[Aggregate] = field(default_factory=list)
    charts: Charts = field(default_factory=lambda: Charts([], 0, []))
    classes: tuple[tuple[str, ...], ...] = ()
    added: dict[tuple[t.Any, ...], AddedHistogram] = field(default_factory=dict)
    disproved: frozenset[str] = frozenset()
    flows: t.Mapping[FlowKey, CellFlows] = field(default_factory=dict)

    @functools.cached_property
    def hosts(self) -> list[str]:
        return sorted({one.host for one in self.measurements})

    @functools.cached_property
    def variants(self) -> list[str]:
        """In the order in which they were first measured."""
        began: dict[str, float] = {}
        for one in self.measurements:
            began[one.variant] = min(began.get(one.variant, float("inf")), one.started if one.started is not None else float("inf"))
        return sorted(began, key=lambda name: (began[name], name))

    def points(self) -> list[Point]:
        """Repeats put together."""
        return points_of(self.measurements)


def read_rows(database: DuckDBPyConnection, campaign: str, facts: t.Sequence[str] = USUAL_FACTS) -> Rows:
    """Everything from the views of :func:`tables.views.open_tables`.

    :param facts: what distinguishes classes of hosts.
    """
    # DuckDB works outside of Python's lock, and half of what is read here is made in Python.
    with ThreadPoolExecutor(1) as beside:
        drives, settings, charts, flows = (beside.submit(_in_cursor, one, database.cursor()) for one in (_drives, _settings, _read_charts, read_flows))
        read = Rows(campaign, read_measurements(database), drives.result(), settings=settings.result())
        read.classes = parts_of((one.hosts for one in host_classes(read, facts)), read.measurements)
        tables = CampaignTables(database, read.measurements, read.classes)
        read.added, read.aggregates = tables.added, aggregates_of(tables)
        read.charts, read.flows = charts.result(), flows.result()
    return read


def _in_cursor(read: t.Callable[[DuckDBPyConnection], _Value], cursor: DuckDBPyConnection) -> _Value:
    with cursor:
        return read(cursor)


def _read_charts(database: DuckDBPyConnection) -> Charts:
    """What is drawn over time."""
    return Charts(*read_series(database, MOST_SERIES), read_bands(database))


def read_compared(database: DuckDBPyConnection, campaign: str) -> Rows:
    """Of :func:`read_rows` what an answer needs, without what hosts did together."""
    return Rows(campaign, read_measurements(database), _drives(database), settings=_settings(database), flows=read_flows(database))


def read_series(database: DuckDBPyConnection, most: int) -> tuple[list[Series], int]:
    """The series of the table ``intervals`` that vary most, and how many there are.

    :param most: series to return; which vary most is determined by twelve averages of each, and by its values.
    """
    key = "host, variant, cell, repeat, direction"
    intervals = "(SELECT * FROM intervals WHERE direction <> 'sync')"
    # Numbers instead of five names: what is only ranked is grouped in half the time.
    database.execute(f"CREATE TEMP TABLE lengths AS SELECT hash({key}) AS id, {key}, count(*) AS length FROM {intervals} GROUP BY ALL")
    values = f"SELECT hash({key}) AS id, second, iops FROM {intervals}"
    blocks = f"SELECT id, second * 12 // length AS block, avg(iops) AS level, stddev_pop(iops) AS noise FROM ({values}) JOIN lengths USING (id) GROUP BY ALL"
    ranked = "SELECT id, greatest(2 * (max(level) - min(level)), avg(noise)) / nullif(avg(level), 0) AS swing FROM blocks GROUP BY id"
    total = database.execute("SELECT count(*) FROM lengths").fetchall()[0][0]
    choice = (
        f"WITH blocks AS ({blocks}), ranked AS ({ranked}), "
        f"chosen AS (SELECT {key} FROM ranked JOIN lengths USING (id) ORDER BY swing DESC NULLS LAST, {key} LIMIT {int(most)}) "
    )
    if total <= most:
        choice = f"WITH chosen AS (SELECT {key} FROM lengths) "
    found = database.execute(
        f"{choice} SELECT {key}, list(iops ORDER BY second), list(bw_bytes ORDER BY second) FROM intervals JOIN chosen USING ({key}) "
        f"WHERE direction <> 'sync' GROUP BY {key} ORDER BY {key}"
    ).fetchall()
    return [Series(*row) for row in found], total


def read_bands(database: DuckDBPyConnection, most: int = 240) -> list[Band]:
    """What all hosts did together, at no more than ``most`` points of each cell."""
    key = "variant, cell, direction"
    # Of what is drawn by the second nothing has to be averaged first. Numbers instead of names, as in the series.
    found = database.execute(
        f"WITH runs AS (SELECT {key}, host, repeat, max(second) + 1 AS length FROM intervals WHERE direction <> 'sync' GROUP BY ALL), "
        f"lengths AS (SELECT hash({key}) AS id, {key}, greatest(1, ceil(max(length) / {int(most)}))::INTEGER AS width, "
        f"count(DISTINCT host) AS hosts, min(length)::DOUBLE AS common FROM runs GROUP BY {key}), "
        f"numbered AS (SELECT hash({key}) AS id, host, repeat, second, iops FROM intervals WHERE direction <> 'sync'), "
        "means AS (SELECT id, width, second AS place, iops AS level FROM numbered JOIN lengths USING (id) WHERE width = 1 "
        "UNION ALL SELECT id, width, place, level FROM (SELECT id, width, host, repeat, second // width AS place, avg(iops) AS level "
        "FROM numbered JOIN lengths USING (id) WHERE width > 1 GROUP BY ALL)), "
        "shares AS (SELECT id, (place + 0.5) * width AS middle, quantile_cont(level, [0.1, 0.5, 0.9]) AS share "
        "FROM means WHERE level IS NOT NULL GROUP BY ALL) "
        f"SELECT {key}, any_value(hosts), list(middle ORDER BY middle), {', '.join(f'list(share[{place}] ORDER BY middle)' for place in (1, 2, 3))}, "
        f"any_value(common) FROM shares JOIN lengths USING (id) GROUP BY {key} ORDER BY {key}"
    ).fetchall()
    return [Band(*row) for row in found]


def _drives(database: DuckDBPyConnection) -> list[Drive]:
    when = "DISTINCT campaign, host, variant, cell, repeat, started"
    found = database.execute(
        "SELECT host, device, any_value(model), any_value(serial), any_value(firmware), "
        "arg_min(wear_used_percent, moment), arg_max(wear_used_percent, moment), min(written_bytes), max(written_bytes), max(temperature_c), "
        "max(media_errors), bool_and(passed) "
        f"FROM (SELECT devices.*, started + CASE WHEN side = 'after' THEN 0.5 ELSE 0 END AS moment FROM devices "
        f"LEFT JOIN (SELECT {when} FROM cells) USING (campaign, host, variant, cell, repeat)) GROUP BY host, device ORDER BY host, device"
    ).fetchall()
    return [Drive(*row) for row in found]


def _settings(database: DuckDBPyConnection) -> dict[tuple[str, str], list[tuple[str, str, str, str]]]:
    found: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {}
    query = "SELECT DISTINCT host, stack, level, coalesce(device, ''), layer, key, coalesce(value, '') FROM layers ORDER BY ALL"
    for host, stack, _level, *setting in database.execute(query).fetchall():
        found.setdefault((host, stack), []).append(tuple(setting))
    return found
