# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host sampled while fio ran: its ``device_series.log`` and ``cache_series.log``, CSV with a header (module_utils/_fio/observation/sampler.py)."""

from __future__ import annotations

import collections
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
class Samples:
    """The samples of several devices or caches, all of one behind all of another. Arrays, with not-a-number for what is not known.

    :param places: which samples are those of a measurement, by its number, and a name, in the order of both.
    :param times: s since 1970.
    :param began: when the interval before each sample began: at the sample before it, of whatever name.
    :param values: a row for each column that was asked for.
    """

    places: dict[tuple[int, str], slice]
    times: t.Any
    began: t.Any
    values: t.Any


def merged(several: t.Mapping[int, Samples]) -> Samples:
    """The samples of several measurements, by their numbers: an array of all of them is computed with as fast as one of a few.

    :param several: the samples of each, which have one number.
    """
    starts = itertools.accumulate((len(one.times) for one in several.values()), initial=0)
    places = {
        (number, name): slice(start + place.start, start + place.stop)
        for start, (number, one) in zip(starts, several.items())
        for (_number, name), place in one.places.items()
    }
    times, began = (np.concatenate([getattr(one, what) for one in several.values()]) for what in ("times", "began"))
    return Samples(places, times, began, np.concatenate([one.values for one in several.values()], axis=1))


def read_samples(content: str, subject: str, columns: t.Sequence[str], started: float | None = None) -> Samples | None:
    """Some columns of a log; ``None`` if it has no samples or another header.

    :param subject: what the second column is called.
    :param started: when the first interval began, if that is known.
    :raises ResultsError: for more names than any host has.
    """
    header = content.partition("\n")[0].split(",", _MOST_COLUMNS)
    if header[:2] != ["epoch_s", subject] or len(header) > _MOST_COLUMNS:
        return None
    # Without the names. By name: later versions may have columns in between, and earlier ones fewer.
    del header[1]
    found: dict[str, list[int]] = collections.defaultdict(list)
    parts, count = [], itertools.count()
    for words in _parts(content, len(header) + 1):
        for name, place in zip(words[1 :: len(header) + 1], count):
            found[name].append(place)
        if len(found) > _MOST_NAMES:
            raise ResultsError(f"a log of samples has more than {_MOST_NAMES} names")
        del words[1 :: len(header) + 1]
        parts.append(_chosen(words, header, columns))
    if not parts:
        return None
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    # Of two that are the same without their control characters, one.
    names = {text(name) or "": some for name, some in sorted(found.items())}
    if len(found) > 1:
        rows = rows[:, list(itertools.chain.from_iterable(names.values()))]
    ends = list(itertools.accumulate(map(len, names.values())))
    places = {(0, name): slice(start, end) for name, start, end in zip(names, [0, *ends], ends)}
    times = rows[0].tolist()
    moments = sorted({time for time in times if not math.isnan(time)})
    before = dict(zip(moments, [started if started is not None and started < moments[0] else moments[0], *moments])) if moments else {}
    return Samples(places, rows[0], np.array([before.get(time, math.nan) for time in times]), rows[1:])


def _parts(content: str, width: int) -> t.Iterator[list[str]]:
    """The words of lines of the right width, some at a time: as numbers they take many times the memory of the text."""
    lines = itertools.islice(io.StringIO(content), 1, None)
    while some := list(itertools.islice(lines, _ROWS)):
        rows = [line.rstrip("\r\n") for line in some if line.count(",") == width - 1]
        if rows:
            yield ",".join(rows).split(",")


def _chosen(words: t.Sequence[str], header: t.Sequence[str], columns: t.Sequence[str]) -> t.Any:
    """The times and some columns, one row for each; what is negative, too large or no number is not-a-number, and so is a column that is not there."""
    try:
        found = np.array([float(word or "nan") for word in words])
    except ValueError:
        found = np.array([_number(word) for word in words])
    found[~((found >= 0) & (found <= LARGEST))] = np.nan
    found = found.reshape(-1, len(header)).T
    if [*header[1:]] == [*columns]:
        return found
    return np.array([found[0], *(found[header.index(name)] if name in header else np.full(len(found[0]), np.nan) for name in columns)])


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
