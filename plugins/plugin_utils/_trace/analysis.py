# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""All that the report of a trace says: contents, curves, the recommended cache, and the load for fio."""

from __future__ import annotations

import dataclasses
import math
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import replay
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import curve, fitted, recommendation
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.contents import Contents, contents_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.contents import DeviceContents

#: Sizes of caches that are tried if none is given: so many, each twice the one before, up to the data that was accessed.
_SIZES = 8


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What is known of a trace.

    :param not_fitted: why a device has no fitted job, one sentence each.
    """

    contents: Contents
    points: tuple[curve.CurvePoint, ...]
    recommendation: recommendation.Recommendation
    fitted: tuple[fitted.Fitted, ...]
    not_fitted: tuple[str, ...]


def analyse(trace: Trace, sizes: t.Sequence[int] = (), prices: recommendation.Prices | None = None) -> Analysis:
    """:param sizes: bytes of the caches that are modelled.

    :raises TraceError: if the trace has no reads and writes.
    """
    contents = contents_of(trace)
    points = curve.curves(trace, sizes or _sizes(contents))
    jobs, reasons = [], []
    for place, device in enumerate(contents.devices):
        try:
            jobs.append(fitted.fit(trace, place, device))
        except TraceError as error:
            reasons.append(error.message)
    return Analysis(contents, points, recommendation.recommend(points, trace, prices or recommendation.Prices()), tuple(jobs), tuple(reasons))


def _sizes(contents: Contents) -> list[int]:
    accessed = sum(one.working_set[-1].cumulative for one in contents.devices if one.working_set)
    largest = 2 ** max(math.ceil(math.log2(max(accessed, 1))), 24)
    return [largest >> step for step in reversed(range(_SIZES))]


def suite(analysis: Analysis, name: str) -> dict[str, t.Any]:
    """Variables of the inventory: the fitted jobs as a suite. They keep to their rates, so that their latencies decide."""
    cells = [{"name": one.name, "job": one.job} for one in analysis.fitted]
    decides = [{"cells": "fitted-*", "metrics": ["latency", "p99"]}]
    described = {"description": "Jobs that were fitted to a recorded load", "repeats": 4, "decides": decides, "cells": cells}
    return {"fio_benchmark_suite": name, "fio_benchmark_suites": {name: described}}


def replay_log(trace: Trace, device: int, found: DeviceContents) -> str:
    """All requests of a device as a log of fio (``read_iolog``), which a cell can replay.

    :raises TraceError: if requests are missing, or there are more than a cell can replay.
    """
    requests = trace.requests[(trace.requests["device"] == device) & (trace.requests["operation"] != trace_format.FLUSH) & (trace.requests["sectors"] > 0)]
    if trace.rate < 1 or trace.lost or trace.scrambled:
        raise TraceError(f"{found.name} cannot be replayed: the trace does not have every request at its place, so use the fitted job.")
    if not 0 < len(requests) <= replay.MOST_IOS:
        limit = count(replay.MOST_IOS)
        raise TraceError(f"{found.name} has {count(len(requests))} requests, and a cell replays 1 to {limit}: use the fitted job, or record a shorter time.")
    actions = {trace_format.READ: "read", trace_format.WRITE: "write", trace_format.DISCARD: "trim"}
    columns = zip(*((requests[name] // scale).tolist() for name, scale in (("time", 1000), ("operation", 1), ("sector", 1), ("sectors", 1))), strict=True)
    lines = [f"{time} target {actions[operation]} {sector * 512} {sectors * 512}" for time, operation, sector, sectors in columns]
    return "\n".join(["fio version 3 iolog", "0 target add", "0 target open", *lines, f"{lines[-1].split()[0]} target close"]) + "\n"


def folders_of(path: Path) -> list[Path]:
    """The traces in a folder: itself, or those of its hosts.

    :raises TraceError: if there is none.
    """
    found = [path] if (path / trace_format.TRACE_FILE).is_file() else sorted(one.parent for one in path.glob(f"*/{trace_format.TRACE_FILE}"))
    if not found:
        raise TraceError(f"There is no trace in {path}: trace_report_folder must be the folder of a recording (io_trace_results/NAME), or of one of its hosts.")
    return found
