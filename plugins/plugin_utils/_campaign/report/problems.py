# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong or strange in a campaign: hosts unlike the others, series that fall, swing, decay or stall, verdicts that changed, cells that are not ok."""

from __future__ import annotations

import typing as t
from collections import Counter
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.caveats import CPU_NOTE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.conditions import label_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import documented_drives
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import HostValue, OutlierHost, outliers
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import UNSETTLED, Approach, SeriesFinding, classify
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, figure, in_seconds, listed, share, size, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band, Rows, Series
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: The facts of a host that are its own and no reason for a speed.
_IDENTITY = frozenset({"serial", "drive_serials", "path", "identity", "name", "wwn", "below", "schedulers", "read_at", "dirty", "reason", "size", "uuid"})

_WORST_FIRST = ("data", "missing", "comparison", "series", "host", "cpu", "note")


@dataclass(frozen=True)
class Problem:
    """:param kind: ``data`` what could be lost, ``missing`` what has no number, ``comparison`` what could not be compared between variants,
        ``series``, ``host``, ``cpu``, ``note``.
    :param where: cell, host or variant.
    :param text: one sentence."""

    kind: str
    where: str
    text: str


@dataclass(frozen=True)
class NamedSeries:
    """A series and what it is called.

    :param rate: what its values, and those of the finding, are in.
    """

    series: Series
    finding: SeriesFinding
    rate: Rate = IOPS


def band_in(band: Band, rate: Rate) -> Band:
    """In MB/s, where its cell is counted so."""
    return replace(band, **{name: [value * rate.scale for value in getattr(band, name)] for name in ("low", "middle", "high")})


def named_series(series: t.Iterable[Series], rates: t.Mapping[tuple[str, str], Rate] | None = None) -> list[NamedSeries]:
    """Every series with its kind.

    :param rates: by cell and direction what is not counted in IOPS.
    """
    found = []
    for raw in series:
        rate = (rates or {}).get((raw.cell, raw.direction), IOPS)
        one = replace(raw, iops=[None if value is None else value * rate.scale for value in raw.iops]) if rate is not IOPS else raw
        if any(value is not None for value in one.iops):
            bandwidth = every_second(one.bandwidth) if one.direction == "write" else None
            found.append(NamedSeries(one, classify(every_second(one.iops), bandwidth=bandwidth), rate))
    return found


def every_second(values: t.Iterable[float | None]) -> list[float]:
    """A value for each second: one that is not known is like the one before it."""
    found, last = [], 0.0
    for value in values:
        last = last if value is None else value
        found.append(last)
    return found


def doubtful_cells(series: t.Iterable[NamedSeries]) -> set[tuple[str, str]]:
    """Cells and directions in which more than a tenth of the series (and at least one) have a mean that depends on how long was measured."""
    all_of: Counter[tuple[str, str]] = Counter()
    doubtful: Counter[tuple[str, str]] = Counter()
    for one in series:
        key = (one.series.cell, one.series.direction)
        all_of[key] += 1
        doubtful[key] += one.finding.kind in UNSETTLED
    return {key for key, count in doubtful.items() if count > all_of[key] / 10}


def host_facts(rows: Rows) -> dict[str, dict[str, t.Any]]:
    """The facts of each host by which it may differ from others: versions, firmware, settings of layers, temperature."""
    facts: dict[str, dict[str, t.Any]] = {}
    stacks: dict[str, set[str]] = {}
    for one in rows.measurements:
        own = facts.setdefault(one.host, {})
        for name in ("kernel", "fio_version", "firmware"):
            value = getattr(one, name)
            if value is not None:
                own[name.replace("_", " ")] = value
        stacks.setdefault(one.host, set()).update(stack for stack in (one.stack_before, one.stack_after) if stack)
    for host, names in stacks.items():
        reported: dict[str, set[str]] = {}
        for stack in names:
            for _device, layer, key, value in rows.settings.get((host, stack), ()):
                if key not in _IDENTITY and value:
                    reported.setdefault(label_of(layer, key), set()).add(value)
        facts[host].update({name: ", ".join(sorted(values)) for name, values in reported.items()})
    for drive in rows.drives:
        if drive.hottest is not None and drive.host in facts:
            facts[drive.host]["temperature (°C)"] = max(drive.hottest, facts[drive.host].get("temperature (°C)", 0.0))
    return facts


def outlier_hosts(rows: Rows, points: t.Iterable[Point]) -> tuple[OutlierHost, ...]:
    """Hosts that are slower or faster than those with the same drives, variant and size of target."""
    values = _values_of_hosts(points)
    return outliers(values, host_facts(rows)) if values else ()


def _values_of_hosts(points: t.Iterable[Point]) -> list[HostValue]:
    return [
        HostValue(one.host, f"{one.cell} ({one.direction}) in {one.variant}", f"{one.first.model} {one.variant} {one.first.target_size}", one.iops)
        for one in points
        if one.iops and one.direction != "sync" and not is_probe(one.cell)
    ]


def most_alike(points: t.Iterable[Point]) -> int:
    """Hosts in the largest group in which :func:`outlier_hosts` compares: without enough of them no host can be unlike the others."""
    return max(Counter((one.cell, one.alike) for one in _values_of_hosts(points)).values(), default=0)


def problems_of(
    rows: Rows, points: t.Sequence[Point], series: t.Sequence[NamedSeries], out: t.Sequence[OutlierHost], incomparable: t.Sequence[str] = ()
) -> list[Problem]:
    """All of them, those about data first.

    :param incomparable: what could not be compared between variants, as ``cell: sentence``.
    """
    found = [*_verdicts(rows), *_states(rows), *_series(series), *_outliers(out), *_cpu(points), *_notes(rows)]
    found += [Problem("note", *one) for one in documented_drives(rows)]
    found += [Problem("comparison", *text.split(": ", 1)) for text in incomparable]
    return sorted(found, key=lambda one: _WORST_FIRST.index(one.kind))


def _verdicts(rows: Rows) -> t.Iterator[Problem]:
    changed: dict[tuple[str, str, str], list[str]] = {}
    lossy: dict[tuple[str, str], set[str]] = {}
    for one in rows.measurements:
        if not one.measured:
            continue
        if one.verdict_before != one.verdict_after and one.verdict_before and one.verdict_after:
            changed.setdefault((one.variant, one.verdict_before, one.verdict_after), []).append(f"{one.host} {one.cell}")
        elif one.verdict_after in ("at_risk", "unknown"):
            lossy.setdefault((one.variant, one.verdict_after), set()).add(one.host)
    for (variant, before, after), where in changed.items():
        text = f"The verdict changed from {before} to {after} while it was measured: {listed(sorted(set(where)))}."
        yield Problem("data", variant, text)
    for (variant, verdict), hosts in lossy.items():
        what = "a flushed write may be lost in a power cut" if verdict == "at_risk" else "it is unknown whether a flushed write survives a power cut"
        yield Problem("data", variant, f"{verdict} on {counted(len(hosts), 'host')}: {what} ({listed(sorted(hosts))}).")


def _states(rows: Rows) -> t.Iterator[Problem]:
    shared: dict[tuple[str, str], list[str]] = {}
    for one in rows.measurements:
        if one.state != "ok":
            shared.setdefault((one.state, one.reason or ""), []).append(f"{one.host} {one.variant} {one.cell}/{one.repeat}")
    for (state, reason), where in shared.items():
        places = list(dict.fromkeys(where))
        yield Problem("missing", state, f"{counted(len(places), 'measurement')} {state}" + (f": {reason}" if reason else "") + f" ({listed(places)}).")


def _series(series: t.Sequence[NamedSeries]) -> t.Iterator[Problem]:
    shared: dict[tuple[str, str, str, str], list[NamedSeries]] = {}
    for one in series:
        if one.finding.kind in (*UNSETTLED, "step") or one.finding.stalls:
            shared.setdefault((one.finding.kind, one.series.cell, one.series.direction, one.series.variant), []).append(one)
    for (_kind, cell, direction, variant), members in sorted(shared.items(), key=lambda item: (item[0][0] not in UNSETTLED, -len(item[1]), item[0])):
        hosts = sorted({one.series.host for one in members})
        typical = members[len(members) // 2]
        yield Problem("series", cell, f"{series_sentence(typical)}: {direction} in {variant} on {listed(hosts, 3)}.")


def series_sentence(one: NamedSeries) -> str:
    """What happened, with numbers."""
    return _kind_sentence(one.finding, one.rate.unit) + _stalls_sentence(one.finding)


def _kind_sentence(finding: SeriesFinding, unit: str) -> str:
    change, swing = finding.change, finding.swing
    if finding.kind in ("cliff", "step") and change is not None:
        moved = "falls" if change.after < change.before else "rises"
        sentence = f"{finding.kind}: {moved} from {figure(change.before)} to {figure(change.after)} {unit} at {in_seconds(change.at)}"
        if finding.kind == "cliff" and change.bytes_before is not None:
            sentence += f", after {size(change.bytes_before)}; {size(change.bandwidth_after)}/s from then on"
        return sentence
    if finding.kind == "oscillating" and swing is not None:
        return (
            f"oscillating: {figure(swing.high)} and {figure(swing.low)} {unit}, over and over every {in_seconds(swing.period)}, "
            f"high for {share(swing.duty)} of the time"
        )
    if finding.kind == "decaying" and finding.approach is not None:
        return _approach_sentence(finding.approach, finding.seconds, unit)
    if finding.kind == "drifting":
        return f"drifting: {share(finding.drift, signed=True)} over the run, at no particular place"
    if finding.kind == "steady":
        return f"steady at {figure(finding.mean)} {unit}"
    return f"not classified: {finding.reason}"


def range_sentence(series: Series) -> str:
    """The slowest and the fastest second: what ``steady`` still allows."""
    known = every_second(series.iops)
    return f"seconds from {figure(min(known))} to {figure(max(known))}"


def _approach_sentence(approach: Approach, seconds: float, unit: str) -> str:
    """Where a decay goes to, and how long it must be measured, or left out, until its mean is that."""
    moved = "falls" if approach.level < approach.start else "rises"
    sentence = (
        f"decaying: {moved} from {figure(approach.start)} towards {figure(approach.level)} {unit} with a time constant of {in_seconds(approach.time_constant)}"
    )
    if approach.bandwidth is not None:
        sentence += f", {size(approach.bandwidth)}/s"
    if approach.settled > seconds:
        return f"{sentence}; run it {in_seconds(approach.settled - seconds)} longer until it has settled within 5 %, and leave out what is before (ramp_time)"
    return f"{sentence}; settled within 5 % after {in_seconds(approach.settled)}: leave these out (ramp_time)"


def _stalls_sentence(finding: SeriesFinding) -> str:
    longest = finding.longest_stall
    if longest is None:
        return ""
    if len(finding.stalls) == 1:
        return f", with a stall of {in_seconds(longest.length)} at {in_seconds(longest.at)}"
    return (
        f", with {len(finding.stalls)} stalls of {in_seconds(finding.stalled)} together, "
        f"the longest of {in_seconds(longest.length)} at {in_seconds(longest.at)}"
    )


def _outliers(out: t.Sequence[OutlierHost]) -> t.Iterator[Problem]:
    for one in out:
        far = one.scores[0]
        differs = "; ".join(f"{this.fact} {this.value}, the others {this.usual}" for this in one.differences[:6])
        text = f"{times(far.ratio)} the median of {counted(far.alike, 'like host')} in {far.cell}" + (
            f", and out in {counted(len(one.scores) - 1, 'other cell')}" if len(one.scores) > 1 else ""
        )
        yield Problem("host", one.host, text + (f". What is different: {differs}." if differs else ". No known fact is different."))


def _cpu(points: t.Sequence[Point]) -> t.Iterator[Problem]:
    bound: dict[str, set[str]] = {}
    for one in points:
        if any(run.cpu_bound for run in one.runs):
            bound.setdefault(one.cell, set()).add(one.host)
    for cell, hosts in bound.items():
        yield Problem("cpu", cell, f"The CPU may have been the limit, not the storage, on {listed(sorted(hosts))}.")


def _notes(rows: Rows) -> t.Iterator[Problem]:
    shared: dict[str, set[str]] = {}
    alone = set()
    for one in rows.measurements:
        for note in one.notes or ():
            # The cells that the CPU limits are a problem of their own, and have their figures in a section.
            if one.cpu_bound and note.endswith(CPU_NOTE):
                continue
            shared.setdefault(note, set()).add(one.host)
        if one.synchronised is False and len(rows.hosts) > 1:
            alone.add(one.host)
    for note, hosts in shared.items():
        yield Problem("note", listed(sorted(hosts), 3), note)
    if alone:
        yield Problem("note", listed(sorted(alone), 3), "Did not start together with the other hosts.")
