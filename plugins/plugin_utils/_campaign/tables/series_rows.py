# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A measurement second by second, from the device's own counters: rows for ``device_intervals``."""

from __future__ import annotations

import io
import itertools
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import DEVICE_INTERVALS

#: Columns of one line; the sampler has less than half of them.
_MOST_COLUMNS = 40

#: Lines that are worked on at once.
_ROWS = 5_000

_DEVICE_COLUMNS = tuple(column.name for column in DEVICE_INTERVALS.series)


def device_interval_rows(key: dict[str, t.Any], content: str, start: float | None) -> t.Iterator[dict[str, t.Any]]:
    """Series of each device of a ``device_series.log``, CSV with a header: see module_utils/_fio/observation/sampler.py.

    The values are arrays, with not-a-number for what is not known.
    """
    header = content.partition("\n")[0].split(",", _MOST_COLUMNS)
    if header[:2] != ["epoch_s", "device"] or len(header) > _MOST_COLUMNS:
        return
    # By name: later versions may have columns in between.
    places = {name: header.index(name) for name in _DEVICE_COLUMNS[1:] if name in header}
    parts: dict[str, list[t.Any]] = {}
    for rows in _parts(content, len(header)):
        for device, columns in _by_device(rows, len(header), (0, *places.values())):
            parts.setdefault(device, []).append(columns)
    for device, some in sorted(parts.items()):
        times, *values = some[0] if len(some) == 1 else np.concatenate(some, axis=1)
        zero = start if start is not None else next(iter(times[~np.isnan(times)].tolist()), 0.0)
        series = {"second": np.array([round(time - zero, 3) for time in times.tolist()]), **dict(zip(places, values))}
        unknown = np.full(len(times), np.nan)
        yield {**key, "device": text(device), **{name: series.get(name, unknown) for name in _DEVICE_COLUMNS}}


def _parts(content: str, width: int) -> t.Iterator[list[str]]:
    """Lines of the right width, some at a time: as numbers they take many times the memory of the text."""
    lines = itertools.islice(io.StringIO(content), 1, None)
    while some := list(itertools.islice(lines, _ROWS)):
        rows = [line.rstrip("\r\n") for line in some if line.count(",") == width - 1]
        if rows:
            yield rows


def _by_device(rows: t.Sequence[str], width: int, places: t.Sequence[int]) -> t.Iterator[tuple[str, t.Any]]:
    """Some columns of each device, one below the other; what is not finite, negative or no number is not-a-number."""
    times, names, others = zip(*(row.split(",", 2) for row in rows))
    words = ",".join(map("%s,%s".__mod__, zip(times, others)))
    found = np.array([_number(word) for word in words.split(",")])
    found[~((found >= 0) & (found < np.inf))] = np.nan
    # Without the column of names.
    columns = found.reshape(len(rows), width - 1).T[[max(place - 1, 0) for place in places]]
    for device in dict.fromkeys(names):
        yield device, np.ascontiguousarray(columns[:, [name == device for name in names]])


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
