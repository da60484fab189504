# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""All that the report of a trace says: contents, curves, the recommended cache, and the load for fio."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import math
import re
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
#: Devices that have charts; with more there are no curves for each.
MOST_DEVICES = 12
#: I/Os that a replay has under way at most; requests that are converted at once; sectors of one I/O of a log.
_DEPTH, _AT_ONCE, _LARGEST = 64, 65536, replay.LARGEST_IO // 512
_ACTIONS = {trace_format.READ: "read", trace_format.WRITE: "write", trace_format.DISCARD: "trim"}


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What is known of a trace.

    :param not_fitted: why a device has no fitted job, one sentence each.
    :param of_devices: the points of a cache for each device alone, by name, if there are several.
    """

    contents: Contents
    points: tuple[curve.CurvePoint, ...]
    recommendation: recommendation.Recommendation
    fitted: tuple[fitted.Fitted, ...]
    not_fitted: tuple[str, ...]
    of_devices: t.Mapping[str, tuple[curve.CurvePoint, ...]]


def analyse(trace: Trace, sizes: t.Sequence[int] = (), prices: recommendation.Prices | None = None) -> Analysis:
    """:param sizes: bytes of the caches that are modelled.

    :raises TraceError: if the trace has no reads and writes.
    """
    contents = contents_of(trace)
    sizes = sizes or _sizes(contents)
    points = curve.curves(trace, sizes)
    jobs, reasons, alone = [], [], {}
    for place, device in enumerate(contents.devices):
        if 1 < len(contents.devices) <= MOST_DEVICES:
            with contextlib.suppress(TraceError):
                alone[device.name] = curve.curves(trace, sizes, devices=[place])
        try:
            jobs.append(fitted.fit(trace, place, device))
        except TraceError as error:
            reasons.append(error.message)
    return Analysis(contents, points, recommendation.recommend(points, trace, prices or recommendation.Prices()), tuple(jobs), tuple(reasons), alone)


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


def replay_suite(found: Contents, logs: t.Mapping[int, str], name: str) -> dict[str, t.Any]:
    """Variables of the inventory: the recorded requests as one cell, in which each device has a section on the target of its name.

    :param logs: paths of the logs of :func:`replay_log`, by the places of their devices.
    """
    sections = {place: re.sub(r"[^A-Za-z0-9._]+", "-", found.devices[place].name.removeprefix("/dev/")).strip("-.")[:40] or "device" for place in logs}
    names = {place: section if list(sections.values()).count(section) == 1 else f"{section}-{place}" for place, section in sections.items()}
    # One of a single device runs on whatever target there is.
    jobs = [{"name": names[place], **({"target": names[place]} if len(logs) > 1 else {}), replay.LOG: path} for place, path in logs.items()]
    cell = {"name": "replay", "job": {"global": {"ioengine": "libaio", "direct": 1, "iodepth": _DEPTH}, "jobs": jobs}}
    decides = [{"cells": "replay", "metrics": ["latency", "p99"]}]
    described = {"description": "The recorded requests, at their times", "repeats": 4, "decides": decides, "cells": [cell]}
    return {"fio_benchmark_suite": name, "fio_benchmark_suites": {name: described}}


def replay_log(trace: Trace, device: int, found: DeviceContents) -> bytes:
    """All requests of a device as a log of fio (``read_iolog``), compressed by gzip. Times begin with the first request of any device.

    :raises TraceError: if requests are missing, or there are more than a cell can replay.
    """
    requests = trace.requests[trace.requests["device"] == device]
    requests = requests[(requests["sectors"] > 0) | (requests["operation"] == trace_format.FLUSH)]
    if trace.rate < 1 or trace.lost or trace.scrambled:
        raise TraceError(f"{found.name} cannot be replayed: the trace does not have every request at its place, so use the fitted job.")
    if not (requests["operation"] != trace_format.FLUSH).any() or len(requests) > replay.MOST_FILE_IOS:
        limit = count(replay.MOST_FILE_IOS)
        raise TraceError(f"{found.name} has {count(len(requests))} requests, and a cell replays 1 to {limit}: use the fitted job, or record a shorter time.")
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 6, packed, 0) as file:
        file.write(b"fio version 3 iolog\n0 target add\n0 target open\n")
        for start in range(0, len(requests), _AT_ONCE):
            file.write("".join(_log_lines(requests[start : start + _AT_ONCE], int(trace.requests["time"][0]))).encode())
    return packed.getvalue()


def _log_lines(requests: t.Any, start: int) -> t.Iterator[str]:
    """:param start: ns that are left out of each time."""
    for time, operation, sector, sectors in zip(*(requests[name].tolist() for name in ("time", "operation", "sector", "sectors")), strict=True):
        moment = (time - start) // 1000
        if operation == trace_format.FLUSH:
            yield f"{moment} target sync 0 0\n"
            continue
        # A discard may be of any length.
        for first in range(sector, sector + sectors, _LARGEST):
            yield f"{moment} target {_ACTIONS[operation]} {first * 512} {min(_LARGEST, sector + sectors - first) * 512}\n"


def folders_of(path: Path) -> list[Path]:
    """The traces in a folder: itself, or those of its hosts.

    :raises TraceError: if there is none.
    """
    found = [path] if (path / trace_format.TRACE_FILE).is_file() else sorted(one.parent for one in path.glob(f"*/{trace_format.TRACE_FILE}"))
    if not found:
        raise TraceError(f"There is no trace in {path}: trace_report_folder must be the folder of a recording (io_trace_results/NAME), or of one of its hosts.")
    return found
