# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a trace: one page as HTML and Markdown, its figures as JSON and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page as report_page
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.charts import Chart, layout_of, line_of, log_axis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.flow_pictures import Picture, bars_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Column, Table, figures, markdown_table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import dump
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import HOVER, block, count, duration, figure, latency, megabytes, rounded, share, size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import analysis as analyses
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import contents
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import CurvePoint

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.contents import DeviceContents

#: Points of one line.
_MOST_POINTS = 720
#: Files that a report has only if there is something to say.
SUITE_FILE, REPLAY_FILE, CACHE_FILE = "fitted_suite.yml", "replay_suite.yml", "recommended_cache.yml"
CURVE_NOTE = (
    "What a cache of this size would have served of the recorded requests of all devices together, from empty. "
    "Of a request on several blocks all must be in the cache. lru is an ideal cache of what was accessed last; of writes it "
    "counts those whose block it has, and the types those that they absorb. "
    "Intervals are of 95 %: from the sample, and from what is assumed of the type."
)
#: Names and titles.
SECTIONS = (("curves", "Before you buy"), ("load", "What is in it"), ("time", "Over time"), ("fio", "As a load for fio"))


def label_of(point: CurvePoint) -> str:
    """A kind of cache: ``bcache writeback, 4 KiB``."""
    return f"{point.type} {point.mode}, {block(point.block)}"


def render(a: Analysis) -> str:
    """The page as HTML.

    :raises LibraryMissing: without plotly.
    """
    found = charts(a)
    drawn = [one for charts_of in found.values() for one in charts_of]
    return report_page.rendered(
        Path(__file__).parent / "trace.html.j2",
        {"charts": {one.name: one.to_dict() for one in drawn}, "choices": {}},
        a=a,
        title=title_of(a),
        sentences=contents.sentences(a.contents),
        sections=SECTIONS,
        charts=found,
        tables=tables_of(a),
        pictures=list(_pictures(a)),
        note=CURVE_NOTE,
        entry=entry_text(a),
    )


def title_of(a: Analysis) -> str:
    return f"Load of {a.contents.host}: {a.contents.name}"


def entry_text(a: Analysis) -> str:
    """The recommended cache as YAML; empty if none is recommended."""
    return dump({"block_cache_caches": [dict(a.recommendation.entry)]}) if a.recommendation.entry else ""


def charts(a: Analysis) -> dict[str, list[Chart]]:
    """By section."""
    shown = a.contents.devices[: analyses.MOST_DEVICES]
    over_time = [made for place, one in enumerate(shown) for made in (_rates(a, one, place), _working_set(a, one, place)) if made is not None]
    alone = [_curves(points, f"-{place}", f"{name} alone: ") for place, (name, points) in enumerate(a.of_devices.items())]
    return {"curves": [_curves(a.points), *alone], "time": over_time}


def _curves(points: t.Iterable[CurvePoint], suffix: str = "", whose: str = "") -> Chart:
    lines: dict[str, list[CurvePoint]] = {}
    for point in points:
        lines.setdefault(label_of(point), []).append(point)
    data = []
    for label, own in lines.items():
        spans = {"array": [rounded(100 * (one.high - one.hits)) for one in own], "arrayminus": [rounded(100 * (one.hits - one.low)) for one in own]}
        data.append(
            {
                **line_of(list(lines), label),
                "x": [rounded(one.size / 1e9) for one in own],
                "y": [rounded(100 * one.hits) for one in own],
                "error_y": {"type": "data", "symmetric": False, "thickness": 1, **spans},
                "hovertemplate": f"%{{x{HOVER}}} GB: %{{y{HOVER}}} %",
            }
        )
    layout = layout_of("size of the cache (GB)", "requests that it serves (%)")
    log_axis(layout["xaxis"], [value for one in data for value in one["x"]])
    layout["yaxis"]["range"] = [0, 103]
    most = max((one for own in lines.values() for one in own), key=lambda one: one.hits)
    return Chart(
        f"curves{suffix}",
        f"{whose}{'m' if whose else 'M'}ost hits: {share(most.hits)} of the requests, at {size(most.size)} with {label_of(most)}",
        data,
        layout,
    )


def _rates(a: Analysis, one: DeviceContents, place: int) -> Chart | None:
    """Requests per second, minute by minute; a minute without an entry had none."""
    if not one.minutes:
        return None
    minutes = max(one.minutes) + 1
    width = -(-minutes // _MOST_POINTS)
    data = []
    for operation, name in enumerate(trace_format.OPERATIONS):
        counts = [0] * -(-minutes // width)
        for minute, values in one.minutes.items():
            counts[minute // width] += values[operation]
        if any(counts):
            spans = [max(min(width * 60.0, a.contents.seconds - width * 60 * number), 1.0) for number in range(len(counts))]
            rates = [rounded(number / span) for number, span in zip(counts, spans, strict=True)]
            data.append({**line_of(trace_format.OPERATIONS, name), "mode": "lines", "x": [number * width for number in range(len(counts))], "y": rates})
    layout = layout_of("minutes since the start", "requests per second")
    layout["yaxis"]["rangemode"] = "tozero"
    busiest = f", {count(one.busiest)} in the busiest second" if one.busiest is not None else ""
    return Chart(f"rates-{place}", f"{one.name}: {figure(one.requests / a.contents.seconds)} requests per second on average{busiest}", data, layout)


def _working_set(a: Analysis, one: DeviceContents, place: int) -> Chart | None:
    if not one.working_set or not one.working_set[-1].cumulative:
        return None
    names = (f"in {duration(a.contents.window)}", "since the start")
    data = [
        {
            **line_of(names, name),
            "x": [rounded(part.start / 60) for part in one.working_set],
            "y": [rounded(getattr(part, of) / 1e9) for part in one.working_set],
        }
        for name, of in zip(names, ("bytes", "cumulative"), strict=True)
    ]
    layout = layout_of("minutes since the start", "data that is accessed (GB)")
    layout["yaxis"]["rangemode"] = "tozero"
    whole = one.working_set[-1].cumulative
    return Chart(f"working-set-{place}", f"{one.name}: {size(whole)} accessed in the whole time", data, layout)


def _pictures(a: Analysis) -> t.Iterator[Picture]:
    for one in a.contents.devices[: analyses.MOST_DEVICES]:
        for name in contents.DATA:
            if one.sizes[name]:
                yield Picture(one.name, (), f"{name}s by size", bars_of(one.sizes[name]))


def tables_of(a: Analysis) -> dict[str, Table]:
    """The tables of the page and of Markdown."""
    seconds = a.contents.seconds
    who = Column("device", lambda one: one.name, is_head=True, style="who")

    def counted(name: str, what: str = "requests") -> t.Callable[[DeviceContents], float]:
        return lambda one: getattr(one.counts[name], what) / seconds

    load = [
        *((f"{'flushe' if name == 'flush' else name}s/s", counted(name), figure) for name in trace_format.OPERATIONS),
        *((f"{name}s MB/s", counted(name, "bytes"), megabytes) for name in contents.DATA),
        *((f"{name}", lambda one, name=name: one.part(name), share) for name in ("sequential", "unaligned")),
        *((f"reuse p{percent:g}", lambda one, percent=percent: one.reuse.get(percent), size) for percent in contents.PERCENTS[:3]),
    ]
    rows = [(one, name, found) for one in a.contents.devices for name, found in one.latency.items()]
    times = [(f"p{percent:g}", lambda row, percent=percent: row[2].get(percent), latency) for percent in contents.PERCENTS]
    named = [Column("device", lambda row: row[0].name, is_head=True, style="who"), Column("operation", lambda row: row[1])]
    kinds = [
        ("reads", lambda one: one.read_hits, share), ("writes", lambda one: one.write_hits, share), ("both", lambda one: one.hits, share),
        ("interval", lambda one: f"{share(one.low)} to {share(one.high)}", str), ("writes saved", lambda one: one.saved_writes, share),
        ("written to it", lambda one: one.cache_writes * 86400, lambda value: f"{size(value)}/day"),
    ]  # fmt: skip
    kind = Column("cache", lambda row: label_of(row[1]), is_head=True, style="group")
    head = [kind, *([Column("device", lambda row: row[0] or "all together")] if a.of_devices else []), Column("size", lambda row: row[1].size, size, style="n")]
    points = [(title, lambda row, of=of: of(row[1]), shown) for title, of, shown in kinds]
    return {
        "points": Table("points", [*head, *figures(*points)], _all_points(a)),
        "load": Table("load", [who, *figures(*load)], a.contents.devices, has_cards=True),
        "latency": Table("latency", [*named, *figures(*times)], rows, has_cards=True),
    }


def _all_points(a: Analysis) -> list[tuple[str, CurvePoint]]:
    """With the name of their device, which is empty for all devices together."""
    return [(name, one) for name, points in (("", a.points), *a.of_devices.items()) for one in points]


def markdown(a: Analysis) -> str:
    """The same without charts."""
    tables = tables_of(a)
    parts = [f"# {escaped(title_of(a))}", "", *(f"{escaped(one)}\n" for one in (a.recommendation.sentence, *a.recommendation.rests_on))]
    parts += [f"- {escaped(one)}" for one in contents.sentences(a.contents)]
    labels = dict(SECTIONS)
    parts += ["", f"## {labels['curves']}", "", *markdown_table(tables["points"]), "", CURVE_NOTE, ""]
    parts += ["```yaml", entry_text(a).rstrip("\n"), "```", ""] if a.recommendation.entry else []
    parts += [f"## {labels['load']}", "", *markdown_table(tables["load"]), "", *markdown_table(tables["latency"]), ""]
    parts += [f"- {escaped(one.title)}, {one.counted}: " + escaped(", ".join(f"{part.label} {part.share}" for part in one.bars)) for one in _pictures(a)]
    parts += ["", f"## {labels['time']}", "", *(f"- {escaped(one.title)}" for one in charts(a)["time"]), ""]
    parts += [f"## {labels['fio']}", "", *(f"- {escaped(one)}" for one in (*(job.sentence for job in a.fitted), *a.not_fitted))]
    return "\n".join(parts).rstrip("\n") + "\n"


def csv_text(a: Analysis) -> str:
    """The points of the curves, in bytes and parts of 1; without a device they are of all together."""
    file = io.StringIO()
    writer = csv.DictWriter(file, ["device", *(one.name for one in dataclasses.fields(CurvePoint))], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"device": name, **dataclasses.asdict(one)} for name, one in _all_points(a))
    return file.getvalue()


def json_text(a: Analysis) -> str:
    """Everything, in bytes, ns, seconds and parts of 1."""
    return json.dumps({"sentences": contents.sentences(a.contents), **dataclasses.asdict(a)}, indent=1) + "\n"


def makers(a: Analysis, suite: str) -> dict[str, t.Callable[[], str]]:
    """The files of a report by their names.

    :param suite: the name of the suite with the fitted jobs.
    """
    found = {"report.html": lambda: render(a), "report.md": lambda: markdown(a), "report.json": lambda: json_text(a), "curves.csv": lambda: csv_text(a)}
    if a.fitted:
        found[SUITE_FILE] = lambda: "---\n" + dump(analyses.suite(a, suite))
    if a.recommendation.entry:
        found[CACHE_FILE] = lambda: "---\n" + entry_text(a)
    return found
