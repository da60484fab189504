# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A measurement second by second, from the device's own counters: rows for ``device_intervals``."""

from __future__ import annotations

import array
import io
import itertools
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import DEVICE_INTERVALS

#: Columns of one line; the sampler has less than half of them.
_MOST_COLUMNS = 40

#: Rows of a device that are worked on at once.
_ROWS = 50_000

_DEVICE_COLUMNS = tuple(column.name for column in DEVICE_INTERVALS.series)


def device_interval_rows(key: dict[str, t.Any], content: str, start: float | None) -> t.Iterator[dict[str, t.Any]]:
    """Series of each device of a ``device_series.log``, CSV with a header: see module_utils/_fio/observation/sampler.py."""
    header = content.partition("\n")[0].split(",", _MOST_COLUMNS)
    if header[:2] != ["epoch_s", "device"] or len(header) > _MOST_COLUMNS:
        return
    # By name: later versions may have columns in between.
    places = [(name, header.index(name)) for name in _DEVICE_COLUMNS[1:] if name in header]
    devices: dict[str, dict[str, array.array[float]]] = {}
    for line in itertools.islice(io.StringIO(content), 1, None):
        columns = line.rstrip("\r\n").split(",", len(header))
        if len(columns) == len(header):
            series = devices.setdefault(columns[1], {name: array.array("d") for name in ("second", *(name for name, _place in places))})
            series["second"].append(_number(columns[0]))
            for name, place in places:
                series[name].append(_number(columns[place]))
    for device, series in sorted(devices.items()):
        zero = start if start is not None else next((time for time in series["second"] if not math.isnan(time)), 0.0)
        yield from _device_series({**key, "device": text(device)}, series, zero)


def _device_series(key: dict[str, t.Any], series: t.Mapping[str, array.array[float]], zero: float) -> t.Iterator[dict[str, t.Any]]:
    """Some rows at a time, for as objects the numbers take five times their memory."""
    for first in range(0, len(series["second"]), _ROWS):
        some = {name: [None if math.isnan(value) else value for value in values[first : first + _ROWS]] for name, values in series.items()}
        some["second"] = [None if time is None else round(time - zero, 3) for time in some["second"]]
        yield {**key, **{name: some.get(name, [None] * len(some["second"])) for name in _DEVICE_COLUMNS}}


def _number(raw: str) -> float:
    """A number that is finite and not negative, else not-a-number."""
    try:
        value = float(raw)
    except ValueError:
        return math.nan
    return value if 0 <= value < math.inf else math.nan
