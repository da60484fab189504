# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passed each device and each cache of one measurement: the samples of its host over the time from ``io_start`` to ``io_end``.

A rate is the mean of its intervals, each weighted with its part in that time. Where less than 80 % of it is known, so is no mean.

Figures are computed of many measurements at once: arrays of a few samples take as long as those of thousands.
"""

from __future__ import annotations

import json
import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, SECTOR
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import ARC, L2ARC
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import flag, mapping, optional_integer, optional_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import number as as_number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import hit_ratio, state_of_cache
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import figure

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_logs import Samples

Row = t.Dict[str, t.Any]

#: From ``io_start`` to ``io_end``, s since 1970.
Window = t.Tuple[float, float]

#: Beginnings and ends of the windows of all samples.
Windows = t.Tuple[t.Any, t.Any]

#: Of figures: the number of a measurement, and a name.
Key = t.Tuple[int, str]

#: The part of the time that must be known.
_COVERED = 0.8

#: Kinds of devices that have requests, and the first kernel that counts their flushes.
_COUNT_FLUSHES = frozenset({"disk", "multipath", "nbd", "rbd", "loop", "aoe"})
_FIRST_KERNEL = (5, 5)

#: Columns of ``device_series.log``.
DEVICE_COLUMNS = (
    *("r_s", "w_s", "rkb_s", "wkb_s", "rrqm_s", "wrqm_s", "r_await_ms", "w_await_ms"),
    *("f_s", "f_await_ms", "aqu_sz", "util_pct", "in_flight"),
)
_PLACES = {name: place for place, name in enumerate(DEVICE_COLUMNS)}
_COUNTS = [_PLACES[name] for name in ("r_s", "w_s", "f_s")]
_WAITS = [_PLACES[name] for name in ("r_await_ms", "w_await_ms", "f_await_ms")]
#: Those that are columns of a flow, and those that are computed of them.
_RATES = ("reads", "writes", "flushes", "read_bytes", "write_bytes", "queue", "in_flight", "use")
_OF_RATES = [_PLACES[name] for name in ("r_s", "w_s", "f_s", "rkb_s", "wkb_s", "aqu_sz", "in_flight", "util_pct")]
_COMPUTED = ("read_wait", "write_wait", "flush_wait", "request_bytes")


def counting(layers: t.Sequence[t.Mapping[str, t.Any]], kernel: t.Any) -> set[str | None]:
    """The devices of a stack whose flushes a kernel counts."""
    version = re.match(r"(\d{1,4})\.(\d{1,4})", kernel) if isinstance(kernel, str) else None
    if version is None or tuple(map(int, version.groups())) < _FIRST_KERNEL:
        return set()
    return {optional_text(layer.get("name")) for layer in layers if optional_text(layer.get("kind")) in _COUNT_FLUSHES}


def without_uncounted(samples: Samples, devices: t.Sequence[t.Container[str | None]]) -> None:
    """Take the flushes away that nothing has counted: earlier versions of the collection wrote 0, and a wait of 0, for them.

    :param devices: of each measurement, those of :func:`counting`.
    """
    uncounted = np.zeros(len(samples.times), dtype=bool)
    for (number, name), place in samples.places.items():
        uncounted[place] = name not in devices[number]
    flushes = [_PLACES["f_s"], _PLACES["f_await_ms"]]
    values = samples.values[flushes]
    values[:, uncounted & (values == 0).all(axis=0)] = np.nan
    samples.values[flushes] = values


def windows_of(samples: Samples | CacheSamples, spans: t.Sequence[Window]) -> Windows:
    """:param spans: the window of each measurement."""
    ends = np.array(spans)[[number for number, _name in samples.places]]
    begin, end = np.repeat(ends, [place.stop - place.start for place in samples.places.values()], axis=0).T
    return begin, end


def device_flows(number: int, layers: t.Sequence[t.Mapping[str, t.Any]], rates: t.Mapping[Key, Row]) -> t.Iterator[Row]:
    """A row of ``flows`` for each device of the stack of a measurement; without figures for one that has no samples."""
    for level, layer in enumerate(layers):
        device = optional_text(layer.get("name")) or ""
        row: Row = {"level": level, "device": device, "kind": optional_text(layer.get("kind")), "model": optional_text(layer.get("model"))}
        row["rotational"] = flag(layer.get("rotational"))
        row.update(rates.get((number, device), {}))
        yield row


def device_rates(samples: Samples, window: Windows, around: Windows) -> dict[Key, Row]:
    """The figures of each device that has samples. :param around: of :func:`_undiluted`."""
    counts = samples.values[_COUNTS]
    waited = counts * samples.values[_WAITS]
    # Of I/Os that there were none of, none waited.
    waited[counts == 0] = 0
    values = np.concatenate((samples.values, waited)) * _undiluted(samples.began, samples.times, window, around)
    # What is read at one moment is no rate.
    values[_PLACES["in_flight"]] = samples.values[_PLACES["in_flight"]]
    means = _means(values, _parts(samples.began, samples.times, window), window, samples.places)
    means[_PLACES["util_pct"]] = np.minimum(means[_PLACES["util_pct"]], 100.0)
    rates = means[_OF_RATES]
    rates[3:5] *= KIB
    computed = [means[len(DEVICE_COLUMNS) :] / means[_COUNTS], rates[3:5].sum(axis=0, keepdims=True) / rates[:2].sum(axis=0, keepdims=True)]
    return _rows((*_RATES, *_COMPUTED), np.concatenate((rates, *computed)), samples.places)


def _rows(columns: t.Sequence[str], values: t.Any, places: t.Iterable[Key]) -> dict[Key, Row]:
    """Values by name and column; ``None`` for what is not known or no figure."""
    values[~(values <= LARGEST)] = np.nan
    known = np.where(np.isnan(values), None, values).T.tolist()
    return {key: dict(zip(columns, some)) for key, some in zip(places, known)}


def _parts(began: t.Any, ended: t.Any, window: Windows) -> t.Any:
    """Seconds of each interval that are in a window."""
    parts = np.minimum(ended, window[1]) - np.maximum(began, window[0])
    return np.where(parts > 0, parts, 0.0)


def _undiluted(began: t.Any, ended: t.Any, window: Windows, around: Windows) -> t.Any:
    """By what the rates of each interval are to be multiplied, so that they are those of its part in a window.

    fio needs a second to start, and some time to end, in which nothing is done: what an interval counted there belongs to the window.

    :param around: when fio was started and had ended; what began before or ended after that is taken as evenly spread, and so is what began before a
        window that begins with it, after a ramp.
    """
    inside = _parts(began, ended, window)
    has_begun = (began >= window[0]) | ((around[0] < window[0]) & (began >= around[0] - _STARTS))
    is_edge = (inside > 0) & (inside < ended - began) & has_begun & (ended <= around[1] + _STARTS)
    return np.where(is_edge, (ended - began) / np.where(inside > 0, inside, 1.0), 1.0)


def _means(rows: t.Any, parts: t.Any, window: Windows, places: t.Mapping[Key, slice]) -> t.Any:
    """The mean of each row of values, one column for each name."""
    known = np.isfinite(rows)
    starts = [place.start for place in places.values()]
    covered = np.add.reduceat(known * parts, starts, axis=1)
    sums = np.add.reduceat(np.where(known, rows, 0.0) * parts, starts, axis=1)
    return np.where(covered >= np.maximum(_COVERED * (window[1] - window[0])[starts], 1e-6), sums, np.nan) / covered


# ---------------------------------------------------------------------------------------------------------------------
# Caches

#: Counters of ``cache_series.log`` as columns of a cache flow.
_COUNTERS = {
    **{name: name for name in ("read_hits", "read_misses", "write_hits", "write_misses", "bypassed_reads", "bypassed_writes")},
    "promotions": "promoted",
    "written_back_bytes": "written_back",
}
#: Those that tell whether something was found, and that bcache adds late.
_LOOKUPS = tuple(_COUNTERS)[:6]
_AMOUNTS = ("dirty_bytes", "used_bytes", "size_bytes")

#: What is read of the log.
CACHE_COLUMNS = (*_AMOUNTS, *_COUNTERS)

#: Counters of 32 bits that wrapped have grown by less than this since.
_WRAP, _MOST_GROWTH = 2.0**32, 2.0**28

#: The size of a request in bytes.
_SIZE = re.compile(r"[1-9][0-9]{2,9}\Z")

#: Seconds between two steps of the counters of bcache (HZ * 300 / 22 in drivers/md/bcache/stats.c), and of a measurement that has enough of them.
_STEP, _LEAST_STEPPED = 300 / 22, 30.0

#: Seconds that a host may need until the first sample, and after the end until the last.
_STARTS = 1.0

#: A sample stands for a moment that is no further away, in seconds: 1.5 times the interval of the sampler.
_REACH = 7.5

#: Settings that are the share of a cache in % that may be dirty.
_THRESHOLDS = ("dirty_thresh_pct", "dirty_high_threshold", "high_watermark")


class CacheSamples(t.NamedTuple):
    """The samples of caches: see :class:`Samples`.

    :param began: times of the samples of the same cache before, as ``times``.
    :param amounts: rows of :data:`_AMOUNTS`, in bytes.
    :param rates: rows of columns of a cache flow, per second of each interval; not known where a counter fell or another cache has the name.
    :param again: where the counters began again.
    """

    places: dict[Key, slice]
    times: t.Any
    began: t.Any
    amounts: t.Any
    rates: t.Any
    again: t.Any


#: The caches of a stack, see :func:`caches_of`.
Caches = t.Mapping[str, t.Tuple[int, t.Mapping[str, t.Any]]]


def cache_samples(samples: Samples, caches: t.Sequence[Caches]) -> CacheSamples:
    """The samples of caches.

    :param caches: what the stack of each measurement has of them.
    """
    starts = [place.start for place in samples.places.values()]
    grown = np.diff(samples.values[len(_AMOUNTS) :], axis=1, prepend=np.nan)
    began = np.concatenate(([np.nan], samples.times[:-1]))
    sizes = np.diff(samples.values[_AMOUNTS.index("size_bytes")], prepend=np.nan)
    grown[:, starts] = began[starts] = sizes[starts] = np.nan
    wrapped = (grown < 0) & (samples.values[len(_AMOUNTS) :] < _WRAP) & (grown + _WRAP < _MOST_GROWTH)
    grown[wrapped] += _WRAP
    again = (grown < 0).any(axis=0) | (np.abs(sizes) > 0)
    seconds = samples.times - began
    seconds[~(seconds > 0)] = np.nan
    rates = grown / seconds
    rates[:, again] = np.nan
    for (number, name), place in samples.places.items():
        cache = caches[number].get(name, (0, {}))[1]
        if type_of(str(cache.get("type"))).counts_sectors:
            rates[: len(_LOOKUPS), place] *= SECTOR / (as_number(cache.get("block_size")) or math.nan)
    rates[rates > LARGEST] = np.nan
    return CacheSamples(samples.places, samples.times, began, samples.values[: len(_AMOUNTS)], rates, again)


def caches_of(layers: t.Sequence[t.Mapping[str, t.Any]]) -> Caches:
    """The SSD caches of a stack: level and state by the kernel name of the cached device."""
    found = {}
    for level, layer in enumerate(layers):
        for cache in objects(layer.get("caches")):
            if cache.get("layer") == "block_cache":
                found[optional_text(layer.get("name")) or ""] = (level, cache)
            elif cache.get("layer") == "controller" and isinstance(cache.get("ssd_cache"), dict):
                # Its tool reports no figures of one measurement.
                found[optional_text(layer.get("name")) or ""] = (level, {"type": "maxcache", "mode": cache["ssd_cache"].get("write_policy")})
    return found


def cache_flows(
    number: int, layers: t.Sequence[t.Mapping[str, t.Any]], caches: Caches, samples: CacheSamples | None, rates: t.Mapping[Key, t.Sequence[Row]], window: Window
) -> t.Iterator[Row]:
    """A row of ``cache_flows`` for each cache of the stack of a measurement and each that was sampled. :param rates: of :func:`cache_rates`."""
    levels = {optional_text(layer.get("name")): level for level, layer in enumerate(layers)}
    for name in dict.fromkeys((*caches, *(name for of, name in rates if of == number))):
        level, cache = caches.get(name, (levels.get(name), {"type": "zfs"} if name in (ARC, L2ARC) else {}))
        fast = cache.get("cache_device_names")
        row: Row = {"level": level, "device": name, **{column: optional_text(cache.get(column)) for column in ("type", "mode")}}
        row["size"] = optional_integer(cache.get("size"))
        row["fast"] = [one for one in map(optional_text, fast) if one] if isinstance(fast, list) else []
        row["origin"] = _origin(layers, level, cache, row["fast"])
        if samples is not None and (number, name) in rates:
            means = rates[number, name]
            if type_of(str(cache.get("type"))).counts_late:
                means = [{**of, **late} for of, late in zip(means, _late_rates(samples, samples.places[number, name], window))]
            row.update(_figures_of(samples, samples.places[number, name], means, window, cache, row["size"]))
        yield row


def cache_rates(samples: CacheSamples, window: Windows, around: Windows) -> dict[Key, list[Row]]:
    """The rates of each cache over the whole time and over its halves. :param around: of :func:`_undiluted`."""
    middle = (window[0] + window[1]) / 2
    rates = samples.rates * _undiluted(samples.began, samples.times, window, around)
    found: dict[Key, list[Row]] = {}
    for part in (window, (window[0], middle), (middle, window[1])):
        means = _means(rates, _parts(samples.began, samples.times, part), part, samples.places)
        for key, row in _rows(tuple(_COUNTERS.values()), means, samples.places).items():
            found.setdefault(key, []).append(row)
    return found


def _origin(layers: t.Sequence[t.Mapping[str, t.Any]], level: int | None, cache: t.Mapping[str, t.Any], fast: t.Sequence[str]) -> str | None:
    """The kernel name of what is cached: by its path, else the only device below that is none of the cache's."""
    path = cache.get("origin")
    found = next((layer.get("name") for layer in layers if path and layer.get("path") == path), None)
    below = layers[level].get("below") if level is not None else None
    others = [name for name in below if name not in fast] if isinstance(below, list) else []
    return optional_text(found if found is not None or len(others) != 1 else others[0])


def _figures_of(samples: CacheSamples, place: slice, means: t.Sequence[Row], window: Window, cache: t.Mapping[str, t.Any], size: int | None) -> Row:
    row: Row = dict(means[0])
    times = samples.times[place].tolist()
    *amounts, sizes = samples.amounts[:, place].tolist()
    dirty, used = (_course(times, values, window) for values in amounts)
    for column, course in (("dirty", dirty), ("used", used)):
        moments = (course[0], course[-1], max(course)) if course else (None, None, None)
        row.update({f"{column}_{when}": optional_integer(value) for when, value in zip(("start", "end", "most"), moments)})
    row["size"] = size = next((optional_integer(one) for one in reversed(sizes) if not math.isnan(one)), size)
    share = next((value for name in _THRESHOLDS if (value := as_number(mapping(cache.get("settings")).get(name))) is not None), None)
    halves = [hit_ratio(*((half[f"{what}_hits"], half[f"{what}_misses"]) for what in ("read", "write"))) for half in means[1:]]
    row["state"] = state_of_cache(size, used, dirty, halves, size * share / 100 if size and share else None)
    return row


def _course(times: t.Sequence[float], values: t.Sequence[float], window: Window) -> list[float]:
    """What an amount was at the beginning, in between, and at the end; nothing if it was not read at the beginning or at the end."""
    known = [(time, value) for time, value in zip(times, values) if not math.isnan(time + value)]
    if not known:
        return []
    away = [[abs(time - moment) for time, _value in known] for moment in window]
    first, last = (distances.index(min(distances)) for distances in away)
    if last < first or max(away[0][first], away[1][last]) > _REACH:
        return []
    return [value for _time, value in known[first : last + 1]]


def _late_rates(samples: CacheSamples, place: slice, window: Window) -> list[Row]:
    """Rates of counters that are added to every 13.6 s, between the first and the last step of a measurement, and of the halves between."""
    times, began = samples.times[place], samples.began[place]
    grown = samples.rates[: len(_LOOKUPS), place] * (times - began)
    steps = np.flatnonzero((grown > 0).any(axis=0) & (began >= window[0]) & (times <= window[1] + 1))
    spans: list[tuple[int, int] | None] = [None, None, None]
    if window[1] - window[0] >= _LEAST_STEPPED and len(steps) > 1:
        middle = steps[len(steps) // 2]
        spans = [(steps[0], steps[-1]), *([(steps[0], middle), (middle, steps[-1])] if len(steps) > 2 else [None, None])]
    found = []
    for span in spans:
        row: Row = dict.fromkeys(_LOOKUPS)
        if span is not None:
            # What a step adds was done before it. Between two samples it is somewhere, and a whole number of steps from the others.
            seconds = max(round((times[span[1]] - times[span[0]]) / _STEP), 1) * _STEP
            sums = grown[:, span[0] + 1 : span[1] + 1].sum(axis=1).tolist()
            row = {column: None if math.isnan(value) else value / seconds for column, value in zip(_LOOKUPS, sums)}
        found.append(row)
    return found


def request_sizes(stats: t.Mapping[str, t.Any]) -> tuple[dict[str, str], list[str]]:
    """The requests of a measurement by size in bytes, as JSON, by the name of a cache; and why there are none, as sentences.

    :param stats: a ``device-stats.json``.
    """
    before, after = (mapping(mapping(stats.get(side)).get("request_sizes")) for side in ("before", "after"))
    found, notes = {}, []
    for name in sorted(before.keys() & after.keys()):
        first, last = (_counts(side[name]) for side in (before, after))
        grown = {size: last.get(size, 0) - first.get(size, 0) for size in sorted({*first, *last})}
        device = optional_text(name) or ""
        if min(grown.values(), default=0) < 0:
            notes.append(f"The counts of requests by size of the cache {device} fell while it was measured: they are not used.")
        elif any(grown.values()):
            found[device] = json.dumps({size: count for size, count in grown.items() if count})
    return found, notes


def _counts(raw: t.Any) -> dict[int, int]:
    """Requests by size; what is no size or no count is left out."""
    counts = {int(size): optional_integer(count) for size, count in mapping(raw).items() if _SIZE.match(size)}
    return {size: count for size, count in counts.items() if count is not None}


def notes_of(samples: CacheSamples, windows: t.Sequence[Window]) -> list[list[str]]:
    """What went wrong with the samples of the caches of each measurement, as sentences."""
    begin, end = windows_of(samples, windows)
    again = samples.again & (samples.times > begin) & (samples.times <= end + _REACH)
    every: list[list[str]] = [[] for _window in windows]
    for (number, name), place in samples.places.items():
        notes, window = every[number], windows[number]
        if again[place].any():
            notes.append(f"The counters of the cache {name} began again while it was measured: nothing is concluded from what they counted across that.")
        times = [time for time in samples.times[place].tolist() if not math.isnan(time)]
        if times and times[-1] < window[1] - _REACH:
            notes.append(f"The cache {name} could not be read any more from second {figure(max(times[-1] - window[0], 0))} of the measurement on.")
    return every
