# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A candidate against a baseline, cell by cell, with an answer that a machine can use: is anything slower than it was?

Hosts are paired with themselves (statistics/fleet.py). What makes two measurements incomparable is not compared, and named.
"""

from __future__ import annotations

import fnmatch
import json
import operator
import typing as t
from dataclasses import asdict, dataclass, replace
from xml.etree import ElementTree

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import once_only
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Column, Table, markdown_table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS, METRICS, differences, read_ignored
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import MEASURED_0
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median, points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.fleet import compare_fleet
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import NOTHING, counted, figure, latency, listed, size, span, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison

#: The result of the whole comparison, by its exit status.
SAME_OR_BETTER, REGRESSION, NOT_COMPARABLE = 0, 1, 2

#: What is compared unless thresholds name others.
USUAL_METRICS = ("iops", "p99")

#: Of the values, by metric.
UNITS = {"iops": "IOPS", "bandwidth": "bytes/s", **{name: "ns" for name in METRICS if name not in ("iops", "bandwidth")}}

_FINE = frozenset({"better", "same", "not_worse"})
_OWN_KEY = "stack_sha256"


@dataclass(frozen=True)
class Line:
    """One metric of one direction of one cell.

    :param verdict: ``better``, ``same``, ``not_worse`` (a difference that matters is excluded to the bad side only), ``worse``,
        ``undecided``, ``not_enough_repeats``, ``not_comparable``, ``missing``.
    :param ratio: candidate by baseline; ``low`` and ``high``: its interval of the confidence ``confidence``.
    :param left_out: hosts that could not be compared, and why.
    :param baseline_value: median over hosts of the medians of their repeats, in ``unit``; ``candidate_value`` likewise. Of the hosts that
        were compared; where none was, of all hosts of the side. ``None`` without a number.
    :param unit: ``IOPS``, ``bytes/s`` or ``ns``."""

    variant: str
    cell: str
    direction: str
    metric: str
    verdict: str
    reason: str
    threshold: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    p: float | None = None
    hosts: int = 0
    left_out: tuple[str, ...] = ()
    baseline_value: float | None = None
    candidate_value: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Compared:
    """:param rc: :data:`SAME_OR_BETTER`, :data:`REGRESSION` or :data:`NOT_COMPARABLE`. :param added: cells that only the candidate has.
    :param skipped: cells that are measured once whatever is repeated, and why; they are compared where they are named."""

    rc: int
    summary: str
    lines: tuple[Line, ...]
    added: tuple[str, ...]
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rules:
    """:param thresholds: metric and percent; none for the usual ones, of sequential cells bytes per second in the place of IOPS.
    :param ignore: keys that may differ. :param cells: patterns, none for all.
    :param accept_undecided: whether an undecided result counts as the same."""

    thresholds: t.Mapping[str, float]
    ignore: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    accept_undecided: bool = False


def read_rules(thresholds: t.Mapping[str, t.Any], ignore: t.Sequence[str] = (), cells: t.Sequence[str] = (), *, accept_undecided: bool = False) -> Rules:
    """:raises BadInput: for a metric or key that there is not, or a threshold that is no percentage."""
    limits: dict[str, float] = {}
    for name, value in (thresholds or {}).items():
        if name not in METRICS:
            raise BadInput(f"There is no metric '{name}': thresholds are for {', '.join(METRICS)}.")
        limits[name] = METRICS[name].percent if value is None else _percent(name, value)
    return Rules(limits, read_ignored(ignore), tuple(cells), accept_undecided)


def _percent(name: str, value: t.Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if isinstance(value, bool) or not 0 < found < 100:
        raise BadInput(f"The threshold of {name} is '{value}': give percent above 0 and below 100.")
    return found


def compare_campaigns(baseline: t.Sequence[Measurement], candidate: t.Sequence[Measurement], rules: Rules, *, variants: tuple[str, str] = ("", "")) -> Compared:
    """Every cell that the baseline has.

    :param variants: of baseline and candidate; empty: variants of one name are compared with each other.
    :raises BadInput: for a variant that is not there.
    """
    for side, name, where in ((baseline, variants[0], "baseline"), (candidate, variants[1], "candidate")):
        there = sorted({one.variant for one in side})
        if name and name not in there:
            raise BadInput(f"The {where} has no variant '{name}': it has {', '.join(there) or 'none'}.")
    # Two names on purpose: then the stack is what is compared.
    keys = [key for key in KEYS if key not in rules.ignore and not (key == _OWN_KEY and variants[0] != variants[1])]
    old, new = _cells(baseline, variants[0], variants, rules), _cells(candidate, variants[1], variants, rules)
    # One repeat proves nothing: with a fill in its suite no comparison would ever end with 0.
    once = {} if rules.cells else once_only(points_of(baseline))
    lines = []
    for key, hosts in sorted(old.items()):
        if key[1:] in once:
            continue
        # A sync moves no bytes: there is nothing to miss.
        metrics = [(metric, percent) for metric, percent in _thresholds(rules, key[2], hosts).items() if (key[2], metric) != ("sync", "bandwidth")]
        lines += [_line(key, metric, percent, hosts, new.get(key, {}), keys) for metric, percent in metrics]
    added = tuple(f"{variant} {cell} ({direction})" for variant, cell, direction in sorted(set(new) - set(old)))
    skipped = tuple(dict.fromkeys(f"{key[1]}: {once[key[1:]]}" for key in sorted(old) if key[1:] in once))
    return replace(_whole(lines, added, rules), skipped=skipped)


def _thresholds(rules: Rules, direction: str, hosts: t.Mapping[str, t.Sequence[Measurement]]) -> t.Mapping[str, float]:
    if rules.thresholds:
        return rules.thresholds
    in_order = direction != "sync" and all(one.is_sequential for runs in hosts.values() for one in runs)
    return {name: METRICS[name].percent for usual in USUAL_METRICS for name in ["bandwidth" if usual == "iops" and in_order else usual]}


Cells = t.Dict[t.Tuple[str, str, str], t.Dict[str, t.List["Measurement"]]]


def _cells(side: t.Sequence[Measurement], only: str, variants: tuple[str, str], rules: Rules) -> Cells:
    found: Cells = {}
    for one in side:
        if not one.measured or (only and one.variant != only) or (rules.cells and not any(fnmatch.fnmatchcase(one.cell, pattern) for pattern in rules.cells)):
            continue
        name = variants[1] if any(variants) and variants[1] else one.variant
        found.setdefault((name, one.cell, one.direction or ""), {}).setdefault(one.host, []).append(one)
    return found


def _line(
    key: tuple[str, str, str],
    metric: str,
    percent: float,
    old: t.Mapping[str, list[Measurement]],
    new: t.Mapping[str, list[Measurement]],
    keys: t.Sequence[str],
) -> Line:
    """The comparison of one metric, with the values of both sides."""
    column, higher_is_better, _usual = METRICS[metric]
    sides, left_out = _sides(old, new, column, keys)
    own, others = ([pair[place] for pair in sides.values()] or [_values(runs, column) for runs in side.values()] for place, side in enumerate((old, new)))
    values = {"baseline_value": _middle(own), "candidate_value": _middle(others), "unit": UNITS[metric]}
    if not new:
        return Line(*key, metric, "missing", "the candidate has no number of it", percent, **values)
    if not sides:
        reason = listed(left_out, 2)
        return Line(*key, metric, "not_comparable", reason, percent, left_out=tuple(left_out), **values)
    found = compare_fleet(sides, higher_is_better=higher_is_better, practical=percent / 100).overall
    interval = found.interval
    return Line(
        *key,
        metric,
        _verdict(found, percent / 100, higher_is_better=higher_is_better),
        found.reason,
        percent,
        ratio=found.ratio if found.ratio is not None else found.ratio_of_medians,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        confidence=interval.confidence if interval else None,
        p=found.p,
        hosts=len(sides),
        left_out=tuple(left_out),
        **values,
    )


def _sides(
    old: t.Mapping[str, list[Measurement]], new: t.Mapping[str, list[Measurement]], column: str, keys: t.Sequence[str]
) -> tuple[dict[str, tuple[list[float], list[float]]], list[str]]:
    """The values of the hosts that can be compared, and why others cannot be."""
    sides: dict[str, tuple[list[float], list[float]]] = {}
    left_out = []
    for host, runs in sorted(old.items()):
        others = new.get(host, [])
        different = differences(runs, others, keys)
        values = _values(runs, column), _values(others, column)
        if not others:
            left_out.append(f"{host}: not in the candidate")
        elif different:
            left_out.append(f"{host}: {'; '.join(different)}")
        elif any(0 in side for side in values):
            left_out.append(f"{host}: {MEASURED_0}")
        elif all(values):
            sides[host] = values
        else:
            without = listed([name for name, known in zip(("baseline", "candidate"), values) if not known])
            left_out.append(f"{host}: no repeat of {without} has a value, or enough samples for one")
    return sides, left_out


def _middle(hosts: t.Iterable[list[float]]) -> float | None:
    """The median over hosts of the medians of their repeats."""
    return median(median(values) for values in hosts)


def _verdict(found: Comparison, practical: float, *, higher_is_better: bool) -> str:
    """``undecided`` may still exclude that it became worse by as much as matters."""
    if found.verdict != "undecided" or found.interval is None:
        return found.verdict
    excluded = found.interval.low > 1 - practical if higher_is_better else found.interval.high < 1 + practical
    return "not_worse" if excluded else "undecided"


def _values(runs: t.Iterable[Measurement], column: str) -> list[float]:
    return [value for one in runs if (value := getattr(one, column)) is not None]


def _whole(lines: t.Sequence[Line], added: tuple[str, ...], rules: Rules) -> Compared:
    worse = [one for one in lines if one.verdict == "worse"]
    fine = _FINE | ({"undecided"} if rules.accept_undecided else set())
    unsure = [one for one in lines if one.verdict != "worse" and one.verdict not in fine]
    partial = [one for one in lines if one.left_out and one.verdict in fine]
    total = counted(len(lines), "comparison")
    if worse:
        names = listed([f"{one.cell} ({one.direction}) {one.metric} {times(one.ratio)}" for one in worse], 3)
        return Compared(REGRESSION, f"{len(worse)} of {total} became worse: {names}.", tuple(lines), added)
    if not lines:
        return Compared(NOT_COMPARABLE, "Nothing was compared: the baseline has no selected cell with numbers.", (), added)
    if unsure or partial:
        counts = {verdict: sum(one.verdict == verdict for one in unsure) for verdict in dict.fromkeys(one.verdict for one in unsure)}
        parts = [f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items()]
        parts += [f"{len(partial)} without some of the hosts"] if partial else []
        return Compared(NOT_COMPARABLE, f"No comparison became worse, but of {total} not all are conclusive: {', '.join(parts)}.", tuple(lines), added)
    return Compared(SAME_OR_BETTER, f"Same or better in all of {total}.", tuple(lines), added)


# ---------------------------------------------------------------------------------------------------------------------
# For users and programs


def to_json(found: Compared, about: t.Mapping[str, t.Any]) -> str:
    """``about``: what was compared, put before it."""
    return json.dumps({"schema": 1, **about, **asdict(found)}, indent=2, sort_keys=True) + "\n"


def _interval(line: Line) -> str:
    return f"{span(line.low, line.high)} x" if line.low is not None and line.high is not None else NOTHING


_COLUMNS = (
    Column("verdict", lambda line: line.verdict.replace("_", " ")),
    *(Column(name, operator.attrgetter(name)) for name in ("variant", "cell", "direction", "metric")),
    Column("baseline", lambda line: with_unit(line, line.baseline_value)),
    Column("candidate", lambda line: with_unit(line, line.candidate_value)),
    Column("ratio", operator.attrgetter("ratio"), times),
    Column("interval", _interval),
    Column("hosts", operator.attrgetter("hosts")),
    Column("why", lambda line: "; ".join([line.reason, *line.left_out[:3]])),
)


def as_markdown(found: Compared, about: t.Mapping[str, t.Any]) -> str:
    """One table, what is worse first."""
    order = ("worse", "missing", "not_comparable", "not_enough_repeats", "undecided", "not_worse", "same", "better")
    lines = [
        "# Comparison",
        "",
        escaped(found.summary),
        "",
        *(f"- {name.replace('_', ' ')}: {escaped(str(value))}" for name, value in about.items() if value),
        "",
    ]
    lines += markdown_table(Table("lines", _COLUMNS, sorted(found.lines, key=lambda line: order.index(line.verdict)), most=len(found.lines)))
    if found.skipped:
        lines += ["", f"Not compared, unless compare_cells names them: {escaped('; '.join(found.skipped[:20]))}."]
    if found.added:
        lines += ["", f"Only the candidate has: {escaped(listed(found.added, 20))}."]
    return "\n".join(lines) + "\n"


def with_unit(line: Line, value: float | None) -> str:
    """One of the values of a line: ``1,420 IOPS``, ``5.82 MB/s``, ``2 ms``; ``-`` for none."""
    if value is None or line.unit == "ns":
        return latency(value)
    return f"{size(value)}/s" if line.unit == "bytes/s" else f"{figure(value)} {line.unit}"


def both_values(line: Line) -> str:
    """Of both sides, with their unit."""
    return f"baseline {with_unit(line, line.baseline_value)}, candidate {with_unit(line, line.candidate_value)}"


def as_junit(found: Compared, name: str) -> str:
    """JUnit XML: a failure is a regression, an error is an undecided result."""
    bad = [one for one in found.lines if one.verdict not in _FINE]
    failures = sum(one.verdict == "worse" for one in bad)
    suite = ElementTree.Element(
        "testsuite", name=plain(name), tests=str(len(found.lines)), failures=str(failures), errors=str(len(bad) - failures), skipped="0"
    )
    for one in found.lines:
        case = ElementTree.SubElement(suite, "testcase", classname=plain(f"{one.variant}.{one.cell}.{one.direction}"), name=one.metric, time="0")
        if one.verdict not in _FINE:
            what = ElementTree.SubElement(case, "failure" if one.verdict == "worse" else "error", type=one.verdict, message=plain(one.reason, 500))
            what.text = plain("; ".join([both_values(one), *one.left_out]), 2000)
        else:
            ElementTree.SubElement(case, "system-out").text = both_values(one)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
