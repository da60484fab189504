# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts beside one another: a strip of marks for each variant, and the list of all."""

from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import most_alike
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import FEWEST_ALIKE

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate


@dataclass(frozen=True)
class Strip:
    """IOPS of every host in one cell, or its MB/s: for each variant values in the order of the hosts, or nothing."""

    name: str
    cell: str
    direction: str
    title: str
    values: list[list[float | None] | None]
    rate: Rate = IOPS


def strips(a: Analysis) -> list[Strip]:
    if len(a.hosts) < 2:
        return []
    place = {host: number for number, host in enumerate(a.hosts)}
    groups: dict[tuple[str, str], dict[str, list[float | None]]] = {}
    for one in a.points:
        if one.iops is not None and one.direction != "sync" and not is_probe(one.cell):
            by_variant = groups.setdefault((one.cell, one.direction), {})
            by_variant.setdefault(one.variant, [None] * len(a.hosts))[place[one.host]] = a.rates.get((one.cell, one.direction), IOPS).drawn(one.iops)
    out: dict[str, int] = {}
    for host in a.outliers:
        for score in host.scores:
            out[score.cell] = out.get(score.cell, 0) + 1
    has_scores = most_alike(a.points) >= FEWEST_ALIKE
    found = []
    for (cell, direction), by_variant in groups.items():
        count = sum(out.get(f"{cell} ({direction}) in {variant}", 0) for variant in by_variant)
        spread = [(max(known) / min(known), variant) for variant, values in by_variant.items() if len(known := [value for value in values if value]) > 1]
        widest = max(spread, default=None)
        sentences = [text.counted(count, "outlier")] if count else ["no outlier"] if has_scores else []
        sentences += [f"the fastest host does {text.times(widest[0])} the slowest in {widest[1]}"] if widest else []
        found.append(
            (
                -count,
                Strip(
                    f"{cell} ({direction})",
                    cell,
                    direction,
                    ": ".join(filter(None, (f"{cell} ({direction})", "; ".join(sentences)))),
                    [by_variant.get(variant) for variant in a.variants],
                    a.rates.get((cell, direction), IOPS),
                ),
            )
        )
    return [strip for _order, strip in sorted(found, key=lambda one: (one[0], one[1].name))]


def host_rows(a: Analysis) -> list[list[t.Any]]:
    """Host, model, worst verdict, outlier, ratio to like hosts, cells measured, cells not ok."""
    like: dict[tuple[t.Any, ...], list[float]] = {}
    for one in a.points:
        if one.iops and one.direction != "sync":
            like.setdefault((one.cell, one.direction, one.variant, one.first.model), []).append(one.iops)
    medians = {key: statistics.median(values) for key, values in like.items()}
    logs: dict[str, list[float]] = {}
    seen: dict[str, list[t.Any]] = {}
    for one in a.points:
        seen.setdefault(one.host, []).append(one)
        if one.iops and one.direction != "sync":
            logs.setdefault(one.host, []).append(math.log(one.iops / medians[one.cell, one.direction, one.variant, one.first.model]))
    out = {one.host for one in a.outliers}
    rows = []
    for host in a.hosts:
        points = seen.get(host, [])
        verdicts = {verdict or "unknown" for one in points for run in one.runs for verdict in (run.verdict_before, run.verdict_after)}
        verdict = next((one for one in ("at_risk", "unknown", "durable") if one in verdicts), "-")
        middle = median(logs.get(host, ()))
        bad = a.not_ok.get(host, 0)
        cells = len({(one.variant, one.cell) for one in points})
        model = text.listed(sorted({one.first.model or "unknown model" for one in points})) or "-"
        rows.append([host, model, verdict, "outlier" if host in out else "", text.times(math.exp(middle)) if middle is not None else None, cells, bad])
    return sorted(rows, key=lambda row: (row[3] == "", row[0]))
