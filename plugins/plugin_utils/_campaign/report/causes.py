# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What limits a deciding cell, why one variant is faster than another, and how long a rate lasts: read from flows by rules. Pure.

The rules are :data:`LIMITS` and :data:`REASONS`. What counts is time: by Little's law, rate x wait is the mean number of requests at a device, and so its
share of the I/Os that the application has in flight. ``use`` is a figure and never evidence. Without flows nothing is said.
"""

from __future__ import annotations

import functools
import json
import typing as t
from collections import Counter
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import ENGINES
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import L2ARC
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Limit
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import known, median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import coefficient_of_variation
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import amount, estimate, figure, latency, listed, megabytes, share, size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import WorkloadAnswer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CacheFlow, CellFlows, Flow
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

    #: By variant and host.
    Sides = t.Mapping[str, t.Mapping[str, t.Sequence[Measurement]]]
    #: Of the sentence of a rule; ``None`` where it does not speak.
    Figures = t.Optional[t.Mapping[str, t.Any]]

#: Share of the I/Os in flight from which a device is a limit; and of the time that was saved, from which a difference explains it.
_ENOUGH = 0.3

#: Repeats with flows from which differences are explained, and reasons that are given.
_FEWEST, _MOST = 3, 3

#: Hosts of a class that are looked at: of a fleet, more would only take longer.
_HOSTS = 20

#: Part of what is written by which the dirty blocks of a cache that fills become more; and jobs that write nothing.
_FILLS, _WRITES_NOTHING = 0.05, ("read", "randread", "trim", "randtrim")

#: How many times the relative standard deviation a difference is, and how far apart all repeats are.
_NOISE, _CLEAR = 5.0, 1.25

#: What waits on its own, and what passes on exactly what it gets.
_MEDIA, _PLAIN = {"disk", "aoe", "nbd", "rbd"}, {"disk", "partition", "lvm", "crypt", "multipath"}

#: Kinds of requests, with their wait.
READS, WRITES, FLUSHES = "reads", "writes", "flushes"
_KINDS = {READS: "read_wait", WRITES: "write_wait", FLUSHES: "flush_wait"}

_WORDS = {"slow": "the slow disk", "fast": "the cache device"}


# ---------------------------------------------------------------------------------------------------------------------
# What the rules look at


@dataclass(frozen=True)
class Part:
    """One kind of requests at devices that do the same: those of an array, or of a cache.

    :param role: ``fast``, ``slow``, or empty where there is no cache. :param rate: per second. :param wait: mean, in ms.
    :param share: of what the application has in flight.
    """

    devices: tuple[Flow, ...]
    role: str
    kind: str
    rate: float
    wait: float
    share: float

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.device for one in self.devices)

    @property
    def where(self) -> str:
        word = _WORDS.get(self.role, "")
        return f"{word}{'s' if word and len(self.devices) > 1 else ''} {listed(self.names, 2)}".strip()

    @property
    def what(self) -> str:
        return f"{figure(self.rate)} {self.kind} per second of {self.each}"

    @property
    def each(self) -> str:
        return latency(self.wait * 1e6)

    def is_below(self, other: Part) -> bool:
        return min(one.level for one in self.devices) > max(one.level for one in other.devices)


@dataclass(frozen=True)
class Repeat:
    """One repeat. :param in_flight: I/Os that the application waits for, on average. :param moved: bytes per second that it reads and writes.
    :param roles: of disks, by name."""

    one: Measurement
    flows: CellFlows
    in_flight: float
    moved: float
    roles: t.Mapping[str, str]

    @property
    def time(self) -> float:
        """Of the application for one I/O, in ms."""
        return self.in_flight / (self.one.iops or 1.0) * 1000

    @functools.cached_property
    def parts(self) -> tuple[Part, ...]:
        """Those of which all counters are known."""
        groups: dict[tuple[str, str], list[Flow]] = {}
        for one in media_of(self.flows):
            groups.setdefault((self.roles.get(one.device, ""), one.kind), []).append(one)
        parts = (self._part(tuple(members), role, kind) for (role, _kind), members in groups.items() for kind in _KINDS)
        return tuple(filter(None, parts))

    def _part(self, devices: tuple[Flow, ...], role: str, kind: str) -> Part | None:
        seen = [(getattr(one, kind), getattr(one, _KINDS[kind])) for one in devices]
        if any(rate is None or (rate and wait is None) for rate, wait in seen):
            return None
        rate, queues = sum(one for one, _wait in seen), [one * (wait or 0.0) / 1000 for one, wait in seen]
        if kind == WRITES:
            # The kernel counts a flush as a write too, and the write that waits for it with its time.
            queues = [max(queue - (one.flushes or 0.0) * (one.flush_wait or 0.0) / 1000, 0.0) for queue, one in zip(queues, devices)]
        # The kernel sends a disk one flush at a time, whatever number of I/Os waits for it.
        most = max(sum(queues) / self.in_flight, max(queues) if kind == FLUSHES else 0.0)
        return Part(devices, role, kind, rate, sum(queues) / rate * 1000 if rate else 0.0, min(most, 1.0))

    @functools.cached_property
    def writeback(self) -> tuple[CacheFlow, ...]:
        """Caches that acknowledge writes before the origin has them."""
        return tuple(one for one in self.flows.caches if "back" in (one.mode or ""))

    @functools.cached_property
    def _behind(self) -> Part | None:
        """Writes of the origin of such a cache, for which nothing waits as long as it has room and writes do not bypass it."""
        is_used = self.writeback and (self.bypassed(WRITES) or 0.0) < 0.5
        return next((part for part in self.parts if is_used and part.role == "slow" and part.kind == WRITES), None)

    @functools.cached_property
    def top(self) -> Part | None:
        """What the application waits for most; of a device on the network and what is behind it the latter, if it is that."""
        parts = sorted((part for part in self.parts if part is not self._behind), key=lambda part: -part.share)
        if parts and parts[0].devices[0].kind == "aoe":
            return next((part for part in parts if part.is_below(parts[0]) and part.share >= parts[0].share / 2), parts[0])
        return parts[0] if parts else None

    @property
    def backlog(self) -> Part | None:
        """Writes of the origin behind a write-back cache, where they take more time than anything that the application waits for."""
        part = self._behind
        return part if part and part.share >= max(_ENOUGH, self.top.share if self.top else 0.0) else None

    def top_is(self, kind: str = "", role: str = "") -> bool:
        return self.top is not None and self.top.share >= _ENOUGH and kind in ("", self.top.kind) and role in ("", self.top.role)

    def bypassed(self, kind: str) -> float | None:
        """Share of the I/Os of a kind that passed a cache by."""
        names = (f"bypassed_{kind}", f"{kind[:-1]}_hits", f"{kind[:-1]}_misses")
        return max(known(_ratio(*(getattr(one, name, None) for name in names)) for one in self.flows.caches), default=None)


def media_of(flows: CellFlows) -> list[Flow]:
    """The disks, and what stands for disks of other machines; else the lowest devices."""
    deepest = max((one.level for one in flows.devices), default=0)
    return [one for one in flows.devices if one.kind in _MEDIA] or [one for one in flows.devices if one.level == deepest]


def _ratio(part: float | None, *others: float | None) -> float | None:
    """A part of the sum; ``None`` where one of them is not known."""
    return None if part is None or None in others else part / total if (total := part + sum(known(others))) else None


def _falls(cache: CacheFlow) -> bool:
    """Whether a cache writes back what was there before."""
    start, end = cache.dirty_start, cache.dirty_end
    return cache.state == "writing back" or (start is not None and end is not None and start - end >= max(0.25 * start, 1e6))


def _room(cache: CacheFlow) -> float | None:
    return None if cache.size is None else cache.size * type_of(cache.type or "").dirty_at_most


# ---------------------------------------------------------------------------------------------------------------------
# What limits a cell: the first rule that speaks


class Rule(t.NamedTuple):
    """:param sentence: its figures in braces; ``p`` is the :class:`Part`, or ``c`` the :class:`Change`, that it is about.
    :param source: where its fact is from. :param finds: more figures, or ``None``."""

    name: str
    sentence: str
    source: str
    finds: t.Callable[..., Figures]


_STAT = "kernel: admin-guide/iostats.rst; Little's law"
_CACHE = "kernel: admin-guide/device-mapper/cache.rst, admin-guide/bcache.rst"
_FLUSH = "kernel: block/stat.rst; measured with lvmcache, bcache and AoE on kernel 6.1"


def _rate(r: Repeat) -> Figures:
    done = {"rate_iops": r.one.iops, "rate": r.one.bw_bytes}
    for word in (r.one.rate_limit or "").split():
        name, _equals, value = word.partition("=")
        values = value.split(",")
        try:
            asked = parse_size(values[len(values) > 1 and r.one.direction == "write"]) * (r.one.numjobs or 1)
        except StorageError:
            continue
        if asked and (done.get(name) or 0.0) >= 0.95 * asked:
            return {"limit": word}
    return None


def _cpu(r: Repeat) -> Figures:
    if not r.one.cpu_bound or (r.top is not None and r.top.share >= 0.5):
        return None
    return {"fio": amount(sum(known((r.one.cpu_usr, r.one.cpu_sys)))), "busy": amount(r.one.host_busy)}


def _network(r: Repeat) -> Figures:
    if not r.top_is() or r.top is None or r.top.devices[0].kind != "aoe":
        return None
    below = [part.wait for part in r.parts if part.kind == r.top.kind and part.is_below(r.top)]
    sent = sum(known(value for one in r.top.devices for value in (one.read_bytes, one.write_bytes)))
    return {"below": latency(max(below) * 1e6), "sent": megabytes(sent)} if below else None


def _writing_back(r: Repeat) -> Figures:
    falling = [one for one in r.writeback if _falls(one)]
    dirty = [f"{size(one.dirty_start)} → {size(one.dirty_end)}" for one in falling if one.dirty_end is not None]
    return {"p": r.backlog, "dirty": f" ({', '.join(dirty)})" if dirty else ""} if falling and r.backlog else None


def _threshold(r: Repeat) -> Figures:
    """Writes of the origin that wait for room in the cache, or that a full cache lets pass, as dm-writecache does."""
    passed = r.top if r.top_is(WRITES, "slow") else None
    for one in r.writeback if r.backlog or passed else ():
        start, end, room = one.dirty_start or 0, one.dirty_end or 0, _room(one)
        is_full = room is not None and max(end, one.dirty_most or 0) >= 0.9 * room
        if is_full or (r.backlog and abs(end - start) <= 0.1 * start and (one.written_back or 0.0) >= 0.7 * r.moved > 0):
            return {"p": r.backlog or passed, "dirty": size(end), "size": size(one.size)}
    return None


def _bypass(r: Repeat) -> Figures:
    part = r.bypassed(r.top.kind) if r.top is not None and r.top_is(role="slow") else None
    return {"share": share(part)} if part is not None and part >= 0.5 else None


def _missing(r: Repeat, *, is_larger: bool) -> Figures:
    for one in r.flows.caches:
        part = _ratio(one.read_misses, one.read_hits) or 0.0
        larger = bool(one.size and r.one.target_size and r.one.target_size > one.size)
        if part >= _ENOUGH and r.top_is(READS, "slow") and larger == is_larger and (larger or one.state in ("empty", "warming")):
            return {"share": share(part), "set": size(r.one.target_size), "cache": size(one.size), "state": one.state}
    return None


def _neighbour(r: Repeat) -> Figures:
    """What reaches a disk below one device, with nothing between that writes twice."""
    disks = media_of(r.flows)
    moved = [value for one in disks for value in (one.read_bytes, one.write_bytes)]
    is_plain = not r.flows.caches and len(disks) == 1 and {one.kind for one in r.flows.devices} <= _PLAIN and (r.one.target or "").startswith("/dev/")
    if not r.top_is() or not is_plain or None in moved or not sum(known(moved)) > 1.5 * r.moved > 0:
        return None
    return {"other": megabytes(sum(known(moved)) - r.moved), "own": megabytes(r.moved)}


def _load(r: Repeat) -> Figures:
    """One I/O in flight that a device without seeks works on, or I/Os in flight of which devices have few."""
    if r.top is None:
        return None
    jobs, needed = _jobs(r.one), {READS, WRITES, *([FLUSHES] if r.one.synced else [])}
    is_latent = r.in_flight <= 1.1 and jobs == 1 and r.top.kind != FLUSHES and all(one.rotational is False for one in r.top.devices)
    is_known = all({part.kind for part in r.parts if one in part.devices} >= needed for one in media_of(r.flows))
    # The time of one of those that are named: where fio waits for each sync, its own latencies are those of a queue that is not in flight.
    depth = jobs or r.in_flight
    return {"depth": figure(depth), "time": latency(depth / (r.one.iops or 1.0) * 1e9)} if is_latent or (is_known and not r.top_is()) else None


LIMITS: tuple[Rule, ...] = (
    Rule("rate asked", "the job asks for {limit} and gets it", "fio: HOWTO, rate and rate_iops", _rate),
    Rule("CPU", "a thread of fio uses {fio} of a CPU, the host {busy} of all", "fio: HOWTO, usr_cpu and sys_cpu; kernel: /proc/stat", _cpu),
    Rule("network", "{p.kind} take {p.each} at {p.where} and {below} behind it ({sent} MB/s)", "measured: AoE on kernel 6.1", _network),
    Rule("writing back", "{p.where} writes back what was dirty before{dirty}: {p.what}", _CACHE, _writing_back),
    Rule("dirty threshold", "{dirty} of {size} dirty in the cache: writes wait for {p.where} ({p.what})", _CACHE, _threshold),
    Rule("bypass", "{share} of the {p.kind} bypass the cache: {p.where} gets {p.what}", _CACHE, _bypass),
    Rule(
        "working set",
        "{share} of the reads miss: the working set ({set}) is larger than the cache ({cache})",
        _CACHE,
        functools.partial(_missing, is_larger=True),
    ),
    Rule("cold cache", "{share} of the reads miss: the cache is {state}", _CACHE, functools.partial(_missing, is_larger=False)),
    Rule("flushes", "{p.where}: {p.what}", _FLUSH, lambda r: {} if r.top_is(FLUSHES) else None),
    Rule("neighbour", "{p.where} moves {other} MB/s for others, and {own} MB/s for this cell", _STAT, _neighbour),
    Rule("load", "{depth} in flight, {time} each", _STAT, _load),
    Rule("device", "{p.where}: {p.what}", _STAT, lambda r: {} if r.top_is() else None),
)

#: Of a cell whose flows show none of them.
NOT_KNOWN = "not known"


def limit_of(repeats: t.Sequence[Repeat]) -> Limit:
    """The rule that speaks in more than half of the repeats, with the figures of the one in the middle of them."""
    first = (next(((r, rule, figures) for rule in LIMITS if (figures := rule.finds(r)) is not None), None) for r in repeats)
    found = list(filter(None, first))
    names = Counter(rule.name for _r, rule, _figures in found)
    same = [one for one in found if names[one[1].name] * 2 > len(repeats)]
    if not same:
        return Limit(NOT_KNOWN, "")
    r, rule, figures = same[len(same) // 2]
    falling = sum(any(map(_falls, one.writeback)) for one in repeats)
    also = f"; an earlier fill was written back in {falling} of {len(repeats)} repeats" if falling and rule.name != "writing back" else ""
    return Limit(rule.name, rule.sentence.format(**{"p": r.top, **figures}) + also)


# ---------------------------------------------------------------------------------------------------------------------
# Why a variant is faster


@dataclass(frozen=True)
class Pair:
    """Two variants on one host, and the others. :param write_cache: of a variant and a disk, ``None`` if it is not known."""

    base: str
    name: str
    repeats: t.Mapping[str, t.Sequence[Repeat]]
    write_cache: t.Callable[[str, str], str | None]


@dataclass(frozen=True)
class Change:
    """One kind of requests at one place that takes less of the time of an I/O, in the repeats of both variants."""

    old: tuple[tuple[Repeat, Part], ...]
    new: tuple[tuple[Repeat, Part], ...]

    @property
    def p(self) -> Part:
        return self.old[0][1]

    @property
    def before(self) -> str:
        return figure(median(part.rate for _r, part in self.old))

    @property
    def rates(self) -> str:
        return f"({self.p.where} gets {figure(median(part.rate for _r, part in self.new))} per second in place of {self.before})"

    def falls(self, value: t.Callable[[Repeat, Part], float]) -> tuple[float, float] | None:
        """The middle of a value before and after, where it is less by more than its noise."""
        return _fall(*([value(*one) for one in side] for side in (self.old, self.new)))

    @functools.cached_property
    def per_io(self) -> tuple[float, float]:
        """Requests for one I/O before and after; equal unless they are fewer."""
        return self.falls(lambda r, part: part.rate / (r.one.iops or 1.0)) or (1.0, 1.0)

    def is_halved(self, *kinds: str) -> bool:
        return self.p.kind in kinds and self.per_io[1] <= self.per_io[0] / 2


def _changes(pair: Pair) -> list[Change]:
    """Those that explain much of the time that is saved, the largest first."""
    sides = [pair.repeats[name] for name in (pair.base, pair.name)]
    before, after = (median(r.time for r in side) or 0.0 for side in sides)
    seen = [[{(part.names, part.kind): (r, part) for part in r.parts} for r in side] for side in sides]
    found = []
    for key in seen[0][0]:
        change = Change(*(tuple(one[key] for one in side if key in one) for side in seen))
        costs = change.falls(lambda r, part: r.time * part.share) if min(len(change.old), len(change.new)) >= _FEWEST else None
        if costs and costs[0] - costs[1] >= _ENOUGH * (before - after) > 0:
            found.append((costs[1] - costs[0], change))
    return [change for _saved, change in sorted(found, key=lambda one: one[0])]


def _fall(old: t.Sequence[float], new: t.Sequence[float]) -> tuple[float, float] | None:
    before, after = median(old) or 0.0, median(new) or 0.0
    noise = max(known(map(coefficient_of_variation, (old, new))), default=0.0) if any(new) else 0.0
    return (before, after) if min(old) > _CLEAR * max(new) and before >= after * (1 + _NOISE * noise) else None


def _no_flush(pair: Pair, c: Change) -> Figures:
    return {"contrast": _contrast(pair, c)} if c.p.kind == FLUSHES and c.per_io[1] <= 0.05 * c.per_io[0] else None


def _contrast(pair: Pair, c: Change) -> str:
    """What the place gets in the baseline, and in another variant with the same caches."""
    text = f"{pair.base} sends it {c.before} per second"
    names, modes = c.p.names, [one.mode for one in pair.repeats[pair.name][0].flows.caches]
    for name, repeats in pair.repeats.items():
        parts = [part for r in repeats for part in r.parts if part.kind == FLUSHES]
        seen, fast = ([part for part in parts if test(part)] for test in (lambda part: part.names == names, lambda part: part.role == "fast"))
        rate, most = (median(part.rate for part in side) for side in (seen, fast))
        if name in (pair.base, pair.name) or not modes or [one.mode for one in repeats[0].flows.caches] != modes or not rate:
            continue
        is_on = all((pair.write_cache(name, one), pair.write_cache(pair.name, one)) == ("enabled", "disabled") for one in names)
        use = median(one.use for part in seen for one in part.devices)
        every = "each flush reaches it" if most and rate >= 0.9 * most else "flushes reach it"
        busy = "" if use is None else f", {amount(use)} busy"
        return f"{text}; in {name}{', with its write cache on,' if is_on else ''} {every}: {figure(rate)} per second{busy}"
    return text


def _less_bypass(pair: Pair, c: Change) -> Figures:
    old, new = (median(r.bypassed(c.p.kind) for r in pair.repeats[name]) if c.is_halved(READS, WRITES) else None for name in (pair.base, pair.name))
    return {"old": share(old), "new": share(new)} if old is not None and new is not None and old >= max(_ENOUGH, 2 * new) else None


def _hits(_pair: Pair, c: Change) -> Figures:
    # The L2ARC is asked only for what the ARC misses.
    hit = median(_ratio(one.read_hits, one.read_misses) for r, _part in c.new for one in r.flows.caches if one.device != L2ARC)
    return {"hit": share(hit)} if c.is_halved(READS) and hit and hit >= 0.2 else None


def _deferred(_pair: Pair, c: Change) -> Figures:
    is_new = all(r.writeback for r, _part in c.new) and not any(r.writeback for r, _part in c.old)
    return {} if c.is_halved(WRITES) and is_new and c.p.role != "fast" else None


def _larger(_pair: Pair, c: Change) -> Figures:
    old, new = (median(one.request_bytes for _r, part in side for one in part.devices) or 0.0 for side in (c.old, c.new))
    return {"old": size(old), "new": size(new)} if c.p.kind != FLUSHES and c.per_io[1] < c.per_io[0] and new >= 1.5 * old > 0 else None


def _faster(_pair: Pair, c: Change) -> Figures:
    waits = c.falls(lambda _r, part: part.wait)
    return {"old": latency(waits[0] * 1e6), "new": latency(waits[1] * 1e6)} if waits and waits[1] else None


def _fewer(_pair: Pair, c: Change) -> Figures:
    return {"old": figure(c.per_io[0]), "new": figure(c.per_io[1])} if c.is_halved(*_KINDS) else None


REASONS: tuple[Rule, ...] = (
    Rule("no flush", "no flush reaches {c.p.where} ({contrast})", _FLUSH, _no_flush),
    Rule("less bypass", "{new} of the {c.p.kind} bypass the cache in place of {old} {c.rates}", _CACHE, _less_bypass),
    Rule("hits", "{hit} of the reads hit the cache {c.rates}", _CACHE, _hits),
    Rule("deferred writes", "writes wait for the cache only and are written back later {c.rates}", _CACHE, _deferred),
    Rule("larger requests", "{c.p.where} gets requests of {new} in place of {old}", "published: AoE with MTU 9000 and 8700 under flashcache", _larger),
    Rule("fewer requests", "{c.p.where} gets {new} {c.p.kind} per I/O in place of {old}", _STAT, _fewer),
    Rule("shorter waits", "{c.p.kind} take {new} at {c.p.where} in place of {old}", _STAT, _faster),
)


def reasons_of(pair: Pair) -> dict[str, str]:
    """Clauses on the differences that explain why a variant is faster on a host, by rule, the largest first."""
    found: dict[str, str] = {}
    for change in _changes(pair):
        said = next(((rule, figures) for rule in REASONS if (figures := rule.finds(pair, change)) is not None), None)
        if said is not None:
            found.setdefault(said[0].name, said[0].sentence.format(c=change, **said[1]))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# For the answer


#: dm-writecache writes back beyond this part of its blocks unless it is set (dm-writecache.c, HIGH_WATERMARK).
_HIGH_WATERMARK = 0.5


def burst_of(repeats: t.Sequence[Repeat], then: str, *, written_back_from: float = 1.0, origin: float | None = None) -> str:
    """A sentence on a write-back cache that fills while it is written to; empty where none does.

    :param then: the rate once it is full.
    :param written_back_from: the part of the cache beyond which it is written back while it fills, which short cells do not show.
    :param origin: bytes per second that the origin takes; ``None`` if that was not measured.
    """
    caches = [(one, r, (r.one.runtime_ms or 0) / 1000) for r in repeats for one in r.writeback if r.one.rw not in _WRITES_NOTHING]
    grown = [(one.dirty_end - one.dirty_start, r, seconds) for one, r, seconds in caches if None not in (one.dirty_start, one.dirty_end) and seconds]
    # What is written back as fast as it comes is only a little more or less at one end.
    rates = [growth / seconds if growth >= max(1e6, _FILLS * r.moved * seconds) else 0.0 for growth, r, seconds in grown]
    if not caches or (rates and sum(rate > 0 for rate in rates) * 2 <= len(rates)):
        return ""
    starts = [(full, one.dirty_start or 0) for one, _r, _seconds in caches if (full := _room(one)) is not None]
    full, start = median(full for full, _start in starts), median(start for _full, start in starts)
    net, (cache, _r, seconds), used = median(rates), caches[0], repeats[0].one.target_size
    if full is None or start is None or not net or net < 0:
        return "This may be a burst: how long it lasts is not known, because the size of the cache or the rate at which it fills is not."
    # Cells that went beyond it have measured it.
    reached = median(one.dirty_end or 0 for one, _r, _seconds in caches) or 0.0
    slower = 0.0 if reached > full * written_back_from else full * (1 - written_back_from)
    first, later = max(full - start - slower, 0.0) / net, ""
    if slower and origin is None:
        later = f" or later, as it is written back from {share(written_back_from)} on"
    elif slower and origin is not None and origin >= net:
        return f"At this rate the cache ({size(cache.size)}) does not fill up: from {share(written_back_from)} on it is written back as fast."
    elif type_of(cache.type or "").dirty_at_most < 1:
        # bcache: a controller raises the rate of writing back as long as more than writeback_percent is dirty.
        later = " or later, as it is written back meanwhile"
    lasts = first + slower / (net - (origin or 0.0))
    larger = f" if the working set is larger (it was {size(used)})" if used and used <= (cache.size or 0) else ""
    shown = f"the cell of {estimate(seconds)} {'is too short to show it' if lasts > seconds else 'contains it'}"
    return f"This is a burst: at this rate the cache ({size(cache.size)}) is full after {estimate(lasts)}{later}{larger}, then {then}; {shown}."


class Observed:
    """The flows of a campaign, for all of its workloads."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @functools.cached_property
    def _directions(self) -> dict[tuple[str, str, str, int], list[Measurement]]:
        """The rows of each measurement."""
        found: dict[tuple[str, str, str, int], list[Measurement]] = {}
        for one in self._rows.measurements:
            found.setdefault((one.host, one.variant, one.cell, one.repeat), []).append(one)
        return found

    def explained(self, workload: WorkloadAnswer, sides: Sides) -> WorkloadAnswer:
        """With the limit of each variant, why the recommended one is faster, and how long its rate lasts; as it is where there are no flows."""
        if not self._rows.flows:
            return workload
        names = sorted(set().union(*sides.values()))
        hosts = [repeats for host in names[:: -(-len(names) // _HOSTS)] if (repeats := self.repeats_of(host, sides))]
        every = {name: sorted((r for seen in hosts for r in seen.get(name, ())), key=lambda r: r.one.iops or 0.0) for name in sides}
        results = [
            replace(one, limit=limit_of(here), flows=here[len(here) // 2].flows) if (here := every.get(one.variant)) else one for one in workload.results
        ]
        workload = replace(workload, results=tuple(results))
        base, verdict = workload.baseline, answer_text.verdict_of(workload)
        if verdict not in ("better", "not_enough_repeats"):
            return workload
        best = answer_text.best_of(workload, verdict).variant
        pairs = [Pair(base, best, seen, functools.partial(self._write_cache, seen)) for seen in hosts if base in seen and best in seen]
        lasts = (self._burst(workload, seen.get(best, ()), seen.get(base, ())) for seen in hosts)
        return replace(workload, because=_common(pairs) if workload.recommended else None, burst=next(filter(None, lasts), ""))

    def _burst(self, workload: WorkloadAnswer, best: t.Sequence[Repeat], base: t.Sequence[Repeat]) -> str:
        origin = None if any(r.flows.caches for r in base) else median(r.moved for r in base)
        return burst_of(best, _then(workload, base), written_back_from=self.written_back_from(best), origin=origin)

    def written_back_from(self, repeats: t.Sequence[Repeat]) -> float:
        """The part of a dm-writecache beyond which it is written back; 1 for other caches."""
        for r in repeats:
            rows = self._rows.settings.get((r.one.host, r.one.stack_before or ""), ())
            found = {key: value for _device, layer, key, value in rows if layer == "block_cache"}
            if found.get("kind") == "writecache":
                mark = number(mapping(json.loads(found.get("settings") or "{}")).get("high_watermark"))
                return mark / 100 if mark else _HIGH_WATERMARK
        return 1.0

    def repeats_of(self, host: str, sides: Sides) -> dict[str, list[Repeat]]:
        """Those of each variant that have flows and a rate."""
        found: dict[str, list[tuple[Measurement, CellFlows]]] = {}
        for variant, by_host in sides.items():
            for one in by_host.get(host, ()):
                flows = self._rows.flows.get((one.host, one.variant, one.cell, one.repeat))
                if flows is not None and flows.devices and one.iops:
                    found.setdefault(variant, []).append((one, flows))
        roles = roles_of([flows for here in found.values() for _one, flows in here])
        return {variant: [Repeat(one, flows, *self._load(one), roles) for one, flows in here] for variant, here in found.items()}

    def _load(self, one: Measurement) -> tuple[float, float]:
        """I/Os in flight and bytes per second of a whole measurement.

        The former by Little's law, syncs included: a queue of 16 with a sync after each write has far fewer; else as many as the job asks for.
        """
        rows = self._directions[one.host, one.variant, one.cell, one.repeat]
        parts = [row for row in rows if (row.direction in ("mixed", "sync") if one.direction == "mixed" else row.direction != "mixed")]
        waits = sum((row.iops or 0.0) * row.lat_mean_ns / 1e9 for row in parts if row.lat_mean_ns is not None)
        moved = sum(row.bw_bytes or 0.0 for row in parts if row.direction != "sync")
        return waits if waits and one.lat_mean_ns is not None else float(_jobs(one) or 1), moved

    def _write_cache(self, seen: t.Mapping[str, t.Sequence[Repeat]], variant: str, disk: str) -> str | None:
        one = seen[variant][0].one
        settings = self._rows.settings.get((one.host, one.stack_before or ""), ())
        return next((value for *key, value in settings if key == [disk, "drive", "drive"]), None)


def _common(pairs: t.Sequence[Pair]) -> str | None:
    """The reasons that more than half of the hosts have, with the figures of one of them; ``None`` where no host has flows of both variants."""
    if not pairs:
        return None
    found = [(pair, reasons_of(pair)) for pair in pairs]
    counts = Counter(name for _pair, reasons in found for name in reasons)
    common = {name for name, count in counts.items() if count * 2 > len(pairs)}
    pair, most = max(found, key=lambda one: len(common & one[1].keys()))
    host = f" (figures of {pair.repeats[pair.base][0].one.host})" if len(pairs) > 1 and common else ""
    return listed([text for name, text in most.items() if name in common][:_MOST]) + host


def _then(workload: WorkloadAnswer, seen: t.Sequence[Repeat]) -> str:
    """What the origin does, where the baseline is without a cache."""
    if not seen or any(r.flows.caches for r in seen):
        return "at the rate of the origin, which was not measured"
    return f"about {answer_text.value_of(workload, workload.result(workload.baseline))}, the rate of the origin ({workload.baseline})"


def roles_of(flows: t.Sequence[CellFlows]) -> dict[str, str]:
    """Which disks are those of a cache: as the cache names them, else those that variants without a cache do not have."""
    disks = {one.device for each in flows for one in media_of(each)}
    caches = [cache for each in flows for cache in each.caches]
    bare = {one.device for each in flows if not each.caches for one in media_of(each)}
    fast = {name for cache in caches for name in cache.fast} & disks or (disks - bare if bare else set())
    return {name: "fast" if name in fast else "slow" for name in disks} if caches and fast else {}


def _jobs(one: Measurement) -> int | None:
    """I/Os in flight that a job asks for; where fio waits for each sync, one of each thread."""
    engine = ENGINES.get(one.ioengine or "")
    waits = one.synced and one.ioengine == "libaio" and "blocking" in (one.behaviour_class or "")
    depth = 1 if waits or (engine is not None and not engine.queues) else one.iodepth
    return one.numjobs * depth if one.numjobs and depth else None
