# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What searches and rounds have found, one sentence each. Pure. Their cells have no figures of their own, only those of probes and rounds.

Every value in it comes from a host.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import NOTHING, figure, latency, megabytes, share

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord

#: A host, its variant and a cell.
Point = t.Tuple[str, str, str]


def answers_of(campaign: Campaign) -> tuple[list[str], set[Point]]:
    """The sentences, and the cells that they concern."""
    lines, points = [], set()
    for record in campaign.cells:
        text = _search(record) or _rounds(record)
        if text:
            points.add((record.host, record.key.variant, record.key.cell))
            lines.append(f"{plain(record.host)} {plain(record.key.variant)} {plain(record.key.cell)}/{record.key.repeat}: {text}")
    return lines, points


def _part(record: CellRecord, name: str) -> t.Mapping[str, t.Any]:
    found = record.meta.get(name)
    return found if isinstance(found, dict) else {}


def _search(record: CellRecord) -> str:
    found = _part(record, "search")
    limit, answer = number(found.get("limit")), found.get("answer")
    if limit is None or answer not in ("found", "at_least", "not_reachable"):
        return ""
    over = plain(found.get("over"), 20)
    condition = f"{plain(found.get('metric'), 10)} <= {latency(limit)}"
    good, bad = (side if isinstance(side, dict) else {} for side in (found.get("good"), found.get("bad")))
    if answer == "not_reachable":
        return f"{condition} is not reachable: {over} {figure(number(bad.get('value')))} has {latency(number(bad.get('latency_ns')))}"
    rate = f"{figure(number(good.get('iops')))} IOPS, {latency(number(good.get('latency_ns')))}"
    if answer == "at_least":
        return f"{condition} at least up to {over} {figure(number(good.get('value')))}, the last one tried: {rate}"
    return (
        f"{condition} up to {over} {figure(number(good.get('value')))}: {rate}; {figure(number(bad.get('value')))} has {latency(number(bad.get('latency_ns')))}"
    )


def _rounds(record: CellRecord) -> str:
    found = _part(record, "rounds")
    values = found.get("values")
    if not isinstance(values, list) or not isinstance(found.get("steady"), bool):
        return ""
    # Of several cells in the same rounds one sentence is enough.
    if found.get("decided_by") not in (None, record.key.cell):
        return ""
    what = f"{plain(found.get('what'), 12)} of {plain(found.get('track'), 8)}"
    state = "steady" if found["steady"] else "not steady"
    excursion, slope = (_percent(found.get(key)) for key in ("excursion", "slope"))
    average = _with_unit(found.get("what"), number(found.get("average")))
    return f"{what} {state} after {len(values)} rounds: average of the last window {average}, range {excursion}, slope {slope}"


def _with_unit(what: t.Any, average: float | None) -> str:
    """Of rounds: bytes per second, ns, or I/Os per second."""
    if average is not None and what == "latency":
        return latency(average)
    if average is not None and what == "bandwidth":
        return f"{megabytes(average)} MB/s"
    return f"{figure(average)} IOPS"


def _percent(value: t.Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e6
    return share(value, 1) if is_number else NOTHING
