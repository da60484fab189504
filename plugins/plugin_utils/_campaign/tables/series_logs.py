# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host sampled while fio ran: its ``device_series.log`` and ``cache_series.log``, CSV with a header (module_utils/_fio/observation/sampler.py)."""

from __future__ import annotations

import io
import itertools
import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST

#: Columns of one line; the sampler has less than half of them.
_MOST_COLUMNS = 40

#: Devices of one log.
_MOST_NAMES = 10_000

#: Lines that are worked on at once.
_ROWS = 5_000


@dataclass(frozen=True)
class Sampled:
    """The samples of one device or cache, with not-a-number for what is not known.

    :param times: s since 1970.
    :param began: when the interval before each sample began: at the sample before it, of whatever name.
    :param values: of each column of the log that was asked for and is there.
    """

    times: t.Any
    began: t.Any
    values: dict[str, t.Any]

    def columns(self, names: t.Iterable[str]) -> dict[str, t.Any]:
        """The values of these columns; one that the log does not have is not known."""
        unknown = np.full(len(self.times), np.nan)
        return {name: self.values.get(name, unknown) for name in names}


def read_series(content: str, subject: str, columns: t.Iterable[str], started: float | None = None) -> dict[str, Sampled]:
    """Some columns of a log by name of the device or cache, in the order of the names. Nothing of a log with another header.

    :param subject: what the second column is called.
    :param started: when the first interval began, if that is known.
    :raises ResultsError: for more names than any host has.
    """
    header = content.partition("\n")[0].split(",", _MOST_COLUMNS)
    if header[:2] != ["epoch_s", subject] or len(header) > _MOST_COLUMNS:
        return {}
    # By name: later versions may have columns in between, and earlier ones fewer.
    places = {name: header.index(name) for name in columns if name in header}
    parts: dict[str, list[t.Any]] = {}
    for rows in _parts(content, len(header)):
        for name, values in _by_name(rows, len(header), (0, *places.values())):
            parts.setdefault(name, []).append(values)
        if len(parts) > _MOST_NAMES:
            raise ResultsError(f"a log of samples has more than {_MOST_NAMES} names")
    found = {name: some[0] if len(some) == 1 else np.concatenate(some, axis=1) for name, some in sorted(parts.items())}
    moments = np.unique(np.concatenate([values[0] for values in found.values()])) if found else np.array([math.nan])
    first = moments[0] if started is None or not started < moments[0] else started
    before = np.concatenate(([first], moments))
    return {text(name) or "": Sampled(values[0], before[np.searchsorted(moments, values[0])], dict(zip(places, values[1:]))) for name, values in found.items()}


def _parts(content: str, width: int) -> t.Iterator[list[str]]:
    """Lines of the right width, some at a time: as numbers they take many times the memory of the text."""
    lines = itertools.islice(io.StringIO(content), 1, None)
    while some := list(itertools.islice(lines, _ROWS)):
        rows = [line.rstrip("\r\n") for line in some if line.count(",") == width - 1]
        if rows:
            yield rows


def _by_name(rows: t.Sequence[str], width: int, places: t.Sequence[int]) -> t.Iterator[tuple[str, t.Any]]:
    """Some columns of each device, one below the other; what is negative, too large or no number is not-a-number."""
    times, names, others = zip(*(row.split(",", 2) for row in rows))
    words = ",".join(map("%s,%s".__mod__, zip(times, others))).split(",")
    try:
        found = np.array([float(word or "nan") for word in words])
    except ValueError:
        found = np.array([_number(word) for word in words])
    found[~((found >= 0) & (found <= LARGEST))] = np.nan
    # Without the column of names.
    columns = found.reshape(len(rows), width - 1).T[[max(place - 1, 0) for place in places]]
    rows_of: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        rows_of.setdefault(name, []).append(place)
    for name, chosen in rows_of.items():
        yield name, columns[:, chosen]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
