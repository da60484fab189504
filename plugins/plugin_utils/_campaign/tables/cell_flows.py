# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passed each device and each cache of one measurement: the samples of its host over the time from ``io_start`` to ``io_end``.

A rate is the mean of its intervals, each weighted with its part in that time. Where less than 80 % of it is known, so is no mean.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, SECTOR
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import flag, mapping, number, optional_integer, optional_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import hit_ratio, state_of_cache
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_logs import Sampled

Row = t.Dict[str, t.Any]

#: Seconds from ``io_start`` to ``io_end``, s since 1970.
Window = t.Tuple[float, float]

#: The part of the time that must be known.
_COVERED = 0.8

#: Kinds of devices that have requests, and the first kernel that counts their flushes.
_COUNT_FLUSHES = frozenset({"disk", "multipath", "nbd", "rbd", "loop", "aoe"})
_FIRST_KERNEL = (5, 5)

#: Columns of ``device_series.log`` as those of a flow, and what one of them is in its unit.
_RATES = {
    "r_s": ("reads", 1),
    "w_s": ("writes", 1),
    "f_s": ("flushes", 1),
    "rkb_s": ("read_bytes", KIB),
    "wkb_s": ("write_bytes", KIB),
    "aqu_sz": ("queue", 1),
    "in_flight": ("in_flight", 1),
    "util_pct": ("use", 1),
}
_WAITS = {"r_await_ms": ("r_s", "read_wait"), "w_await_ms": ("w_s", "write_wait"), "f_await_ms": ("f_s", "flush_wait")}


def without_uncounted(series: t.Mapping[str, Sampled], layers: t.Sequence[t.Mapping[str, t.Any]], kernel: t.Any) -> None:
    """Take the flushes away that nothing has counted: earlier versions of the collection wrote 0, and a wait of 0, for them."""
    version = re.match(r"(\d{1,4})\.(\d{1,4})", kernel) if isinstance(kernel, str) else None
    counts = version is not None and tuple(map(int, version.groups())) >= _FIRST_KERNEL
    counting = {layer.get("name") for layer in layers if layer.get("kind") in _COUNT_FLUSHES} if counts else ()
    for name, found in series.items():
        if name not in counting and {"f_s", "f_await_ms"} <= found.values.keys():
            nothing = (found.values["f_s"] == 0) & (found.values["f_await_ms"] == 0)
            found.values.update({column: np.where(nothing, np.nan, found.values[column]) for column in ("f_s", "f_await_ms")})


def device_flows(layers: t.Sequence[t.Mapping[str, t.Any]], series: t.Mapping[str, Sampled], window: Window) -> t.Iterator[Row]:
    """A row of ``flows`` for each device of a stack; without figures for one that has no samples."""
    for level, layer in enumerate(layers):
        device = optional_text(layer.get("name")) or ""
        row: Row = {"level": level, "device": device, "kind": optional_text(layer.get("kind")), "model": optional_text(layer.get("model"))}
        row["rotational"] = flag(layer.get("rotational"))
        if device in series:
            row.update(_rates_of(series[device], window))
        yield row


def _rates_of(found: Sampled, window: Window) -> Row:
    values = found.columns((*_RATES, *_WAITS))
    waited = [values[count] * values[wait] for wait, (count, _name) in _WAITS.items()]
    rows = np.array([*(values[column] for column in _RATES), *waited])
    # Of I/Os that there were none of, none waited.
    rows[len(_RATES) :][rows[:3] == 0] = 0
    means = _means(rows, _parts(found.began, found.times, window), window)
    row: Row = {name: None if mean is None else mean * unit for mean, (name, unit) in zip(means, _RATES.values())}
    for mean, (count, name) in zip(means[len(_RATES) :], _WAITS.values()):
        row[name] = _divided(mean, row[_RATES[count][0]])
    row["request_bytes"] = _divided(_sum(row["read_bytes"], row["write_bytes"]), _sum(row["reads"], row["writes"]))
    return {name: number(value) for name, value in row.items()}


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _divided(value: float | None, count: float | None) -> float | None:
    return None if value is None or not count else value / count


def _parts(began: t.Any, ended: t.Any, window: Window) -> t.Any:
    """Seconds of each interval that are in a window."""
    return np.nan_to_num(np.maximum(np.minimum(ended, window[1]) - np.maximum(began, window[0]), 0.0))


def _means(rows: t.Any, parts: t.Any, window: Window) -> list[float | None]:
    """The mean of each row of values."""
    known = np.isfinite(rows)
    covered = known @ parts
    sums = np.where(known, rows, 0.0) @ parts
    least = max(_COVERED * (window[1] - window[0]), 1e-6)
    return [value / seconds if seconds >= least else None for value, seconds in zip(sums.tolist(), covered.tolist())]


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

#: Seconds between two steps of the counters of bcache (HZ * 300 / 22 in drivers/md/bcache/stats.c), and of a measurement that has enough of them.
_STEP, _LEAST_STEPPED = 300 / 22, 30.0

#: A sample stands for a moment that is no further away, in seconds: 1.5 times the interval of the sampler.
_REACH = 7.5

#: Settings that are the share of a cache in % that may be dirty.
_THRESHOLDS = ("dirty_thresh_pct", "dirty_high_threshold", "high_watermark")


class CacheSeries(t.NamedTuple):
    """The samples of one cache. Arrays, with not-a-number for what is not known.

    :param began: times of the samples before, as ``times``.
    :param amounts: bytes, as in the log.
    :param rates: per second of each interval by column of a cache flow; not known where a counter fell or another cache has the name.
    :param again: times at which the counters began again.
    """

    times: t.Any
    began: t.Any
    amounts: dict[str, t.Any]
    rates: dict[str, t.Any]
    again: list[float]


def cache_series(found: Sampled, cache: t.Mapping[str, t.Any]) -> CacheSeries:
    """The samples of a cache.

    :param cache: what the stack has of it.
    """
    values = found.columns(CACHE_COLUMNS)
    began = np.concatenate(([np.nan], found.times[:-1]))
    counters = np.array([values[name] for name in _COUNTERS])
    grown = np.diff(counters, axis=1, prepend=np.nan)
    wrapped = (grown < 0) & (counters < _WRAP) & (grown + _WRAP < _MOST_GROWTH)
    grown[wrapped] += _WRAP
    other = np.abs(np.diff(values["size_bytes"], prepend=np.nan)) > 0
    again = (grown < 0).any(axis=0) | other
    seconds = found.times - began
    grown[:, again | ~(seconds > 0)] = np.nan
    kind, block = type_of(str(cache.get("type"))), number(cache.get("block_size"))
    if kind.counts_sectors:
        grown[: len(_LOOKUPS)] *= SECTOR / block if block else np.nan
    per_second = grown / np.where(seconds > 0, seconds, np.nan)
    per_second[per_second > LARGEST] = np.nan
    rates = dict(zip(_COUNTERS.values(), per_second))
    return CacheSeries(found.times, began, {name: values[name] for name in _AMOUNTS}, rates, found.times[again].tolist())


def caches_of(layers: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, tuple[int, t.Mapping[str, t.Any]]]:
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
    layers: t.Sequence[t.Mapping[str, t.Any]], caches: t.Mapping[str, tuple[int, t.Mapping[str, t.Any]]], series: t.Mapping[str, CacheSeries], window: Window
) -> t.Iterator[Row]:
    """A row of ``cache_flows`` for each cache of a stack and each that was sampled."""
    levels = {layer.get("name"): level for level, layer in enumerate(layers)}
    for name in dict.fromkeys((*caches, *series)):
        level, cache = caches.get(name, (levels.get(name), {}))
        fast = cache.get("cache_device_names")
        row: Row = {"level": level, "device": name, **{column: optional_text(cache.get(column)) for column in ("type", "mode")}}
        row["size"] = optional_integer(cache.get("size"))
        row["fast"] = [one for one in map(optional_text, fast) if one] if isinstance(fast, list) else []
        row["origin"] = _origin(layers, level, cache, row["fast"])
        if name in series:
            row.update(_figures_of(series[name], cache, row["size"], window))
        yield row


def _origin(layers: t.Sequence[t.Mapping[str, t.Any]], level: int | None, cache: t.Mapping[str, t.Any], fast: t.Sequence[str]) -> str | None:
    """The kernel name of what is cached: by its path, else the only device below that is none of the cache's."""
    path = cache.get("origin")
    found = next((layer.get("name") for layer in layers if path and layer.get("path") == path), None)
    below = layers[level].get("below") if level is not None else None
    others = [name for name in below if name not in fast] if isinstance(below, list) else []
    return optional_text(found if found is not None or len(others) != 1 else others[0])


def _figures_of(found: CacheSeries, cache: t.Mapping[str, t.Any], size: int | None, window: Window) -> Row:
    row: Row = dict.fromkeys(_COUNTERS.values())
    start, end = window
    middle = (start + end) / 2
    late = type_of(str(cache.get("type"))).counts_late
    stepped = _stepped(found, window) if late else {}
    halves = []
    rows = np.array(list(found.rates.values()))
    for number_of, part in enumerate((window, (start, middle), (middle, end))):
        means: Row = dict(zip(_COUNTERS.values(), _means(rows, _parts(found.began, found.times, part), part)))
        if late:
            means.update(dict.fromkeys(_LOOKUPS), **stepped.get(number_of, {}))
        if number_of:
            halves.append(hit_ratio(*((means[f"{what}_hits"], means[f"{what}_misses"]) for what in ("read", "write"))))
        else:
            row.update({name: number(value) for name, value in means.items()})
    courses = {}
    for column, values in found.amounts.items():
        course = _course(found.times, values, window)
        courses[column] = course
        if column != "size_bytes":
            name = column[: -len("_bytes")]
            amounts = [None, None, None] if course is None else [course[0], course[-1], max(course)]
            row.update({f"{name}_{when}": optional_integer(value) for when, value in zip(("start", "end", "most"), amounts)})
    sizes = courses["size_bytes"]
    row["size"] = size = optional_integer(sizes[-1]) if sizes else size
    share = next((value for name in _THRESHOLDS if (value := number(mapping(cache.get("settings")).get(name))) is not None), None)
    limit = size * share / 100 if size and share else None
    row["state"] = state_of_cache(size, courses["used_bytes"] or (), courses["dirty_bytes"] or (), halves, limit)
    return row


def _course(times: t.Any, values: t.Any, window: Window) -> list[float] | None:
    """What an amount was at the beginning, in between, and at the end; ``None`` if it was not read at the beginning or at the end."""
    known = np.isfinite(values) & np.isfinite(times)
    times, values = times[known], values[known]
    if not len(times):
        return None
    ends = [int(np.abs(times - moment).argmin()) for moment in window]
    if any(abs(times[place] - moment) > _REACH for place, moment in zip(ends, window)) or ends[1] < ends[0]:
        return None
    return values[ends[0] : ends[1] + 1].tolist()


def _stepped(found: CacheSeries, window: Window) -> dict[int, Row]:
    """Rates of counters that are added to every 13.6 s, between the first and the last step of a measurement, and of the halves between."""
    start, end = window
    rates = {name: found.rates[name] for name in _LOOKUPS}
    grown = np.array(list(rates.values())) * (found.times - found.began)
    steps = np.flatnonzero((np.nan_to_num(grown) > 0).any(axis=0) & (found.began >= start) & (found.times <= end + 1))
    if end - start < _LEAST_STEPPED or len(steps) < 2:
        return {}
    middle = steps[len(steps) // 2]
    spans = {0: (steps[0], steps[-1])}
    if len(steps) > 2:
        spans.update({1: (steps[0], middle), 2: (middle, steps[-1])})
    rows = {}
    for place, (first, last) in spans.items():
        # What a step adds was done before it; between samples it is somewhere, but a whole number of steps apart from the others.
        seconds = max(round((found.times[last] - found.times[first]) / _STEP), 1) * _STEP
        sums = grown[:, first + 1 : last + 1].sum(axis=1)
        rows[place] = {name: None if np.isnan(value) else float(value) / seconds for name, value in zip(rates, sums)}
    return rows


def notes_of(series: t.Mapping[str, CacheSeries], window: Window) -> list[str]:
    """What went wrong with the samples of caches, as sentences."""
    notes = []
    for name, found in series.items():
        if any(window[0] < moment <= window[1] + _REACH for moment in found.again):
            notes.append(f"The counters of the cache {name} began again while it was measured: nothing is concluded from what they counted across that.")
        times = found.times[np.isfinite(found.times)]
        if len(times) and times[-1] < window[1] - _REACH:
            notes.append(f"The cache {name} could not be read any more from second {max(times[-1] - window[0], 0):.0f} of the measurement on.")
    return notes
