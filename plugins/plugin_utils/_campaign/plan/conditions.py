# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cell can request in addition to its job: a pause before it, a state of its caches, a search under a limit, rounds until it is steady. Pure."""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cautions import repeats_its_blocks
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import warming
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, parse_time
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import BY_NAME

#: What a search may hold under its limit: percentiles that every result has, and the average.
METRICS = (*BY_NAME, "mean")
#: What a search or the values of a matrix's axis can set of a search.
SEARCH_KEYS = ("metric", "limit", "direction", "over", "first", "last", "factor", "bracket")

#: Seconds that a pause of unknown length may take where the suite does not set it.
MOST_PAUSE = 3600


@dataclass(frozen=True)
class Pause:
    """What is waited for before a cell: a time, an empty write cache, or a garbage collection. Times in seconds.

    :param garbage_collection: bytes per second at which the device tidies up, or ``measured``.
    :param most: after which a pause of unknown length ends.
    """

    seconds: float | None = None
    until_clean: bool = False
    garbage_collection: float | str | None = None
    most: float = MOST_PAUSE

    @property
    def measured(self) -> bool:
        return self.garbage_collection == "measured"

    def as_step(self) -> dict[str, t.Any]:
        """As the runner reads it."""
        if self.seconds is not None:
            return {"seconds": self.seconds}
        if self.until_clean:
            return {"until": "clean", "most": self.most}
        return {"garbage_collection": self.garbage_collection, "most": self.most}


@dataclass(frozen=True)
class Search:
    """The most that a device does under a limit of latency.

    :param limit: in nanoseconds.
    :param over: the option that is varied, from ``first`` to ``last``, each rung ``factor`` times the one before.
    :param bracket: how close the last good and the first bad value must come, as a part of the good one.
    """

    metric: str
    limit: int
    direction: str | None
    over: str
    first: int
    last: int
    factor: float
    bracket: float

    def as_step(self) -> dict[str, t.Any]:
        return {key: getattr(self, key) for key in SEARCH_KEYS}

    @property
    def ladder(self) -> list[int]:
        rungs = [self.first]
        while rungs[-1] < self.last:
            rungs.append(min(self.last, max(rungs[-1] + 1, int(rungs[-1] * self.factor))))
        return rungs

    @property
    def most_probes(self) -> int:
        """How many measurements it can take at worst."""
        rungs = self.ladder
        return max([len(rungs)] + [number + 1 + self._halvings(good, bad) for number, (good, bad) in enumerate(zip(rungs, rungs[1:], strict=False), start=1)])

    def _halvings(self, good: int, bad: int) -> int:
        if bad - good <= max(1, self.bracket * good):
            return 0
        middle = (good + bad) // 2
        return 1 + max(self._halvings(good, middle), self._halvings(middle, bad))


@dataclass(frozen=True)
class Rounds:
    """Rounds until a device is steady, as SNIA's Performance Test Specification (2.0.2, section 2.1.24) means it.

    :param most: rounds after which the last ``window`` of them are reported as not steady.
    :param range: largest minus smallest value in the window, as a part of its average.
    :param slope: what the fitted line rises or falls over the window, as a part of its average.
    :param decided_by: the cell whose values count, where a round goes over several cells; empty for a single cell.
    """

    most: int = 25
    window: int = 5
    range: float = 0.20
    slope: float = 0.10
    track: str = "write"
    what: str = "iops"
    decided_by: str = ""

    def as_step(self, decided_by: str = "") -> dict[str, t.Any]:
        """As the runner reads it.

        :param decided_by: what the cell is called on its target.
        """
        return {**{key: getattr(self, key) for key in _ROUNDS_KEYS[:-1]}, **({"decided_by": decided_by} if decided_by else {})}


_ROUNDS_KEYS = ("most", "window", "range", "slope", "track", "what", "decided_by")
_PAUSE_KEYS = {"seconds", "until", "garbage_collection", "most"}


def listed(keys: t.Iterable[t.Any]) -> str:
    return ", ".join(sorted(map(str, keys)))


def mapping(value: t.Any, where: str, keys: t.Collection[str]) -> None:
    """:raises BadInput: if it is no dictionary with only these keys."""
    if not isinstance(value, t.Mapping):
        raise BadInput(f"{where} must be a dictionary with {listed(keys)}.")
    unknown = sorted(str(key) for key in value if key not in keys)
    if unknown:
        raise BadInput(f"{where}: '{unknown[0]}' is not supported; supported are {listed(keys)}.")


def seconds_of(value: t.Any, where: str, key: str) -> float:
    """A time as a user writes it.

    :raises BadInput: if it is none, or below 0.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise BadInput("")
        return parse_time(str(value))
    except BadInput:
        raise BadInput(f"{where}: '{key}' must be a time: seconds, or a number with us, ms, s, m, h or d.") from None


def read_pause(value: t.Any, where: str) -> Pause | None:
    """``None``, seconds, or one of ``{seconds}``, ``{until: clean, most}`` and ``{garbage_collection, most}``.

    :raises BadInput: if it is none of them.
    """
    if value is None or value is False:
        return None
    if not isinstance(value, t.Mapping):
        value = {"seconds": value}
    where = f"{where}, pause"
    mapping(value, where, _PAUSE_KEYS)
    kinds = [key for key in ("seconds", "until", "garbage_collection") if key in value]
    if len(kinds) != 1:
        raise BadInput(f"{where}: exactly one of 'seconds', 'until' and 'garbage_collection' is required.")
    if "seconds" in value:
        if "most" in value:
            raise BadInput(f"{where}: 'most' limits a pause of unknown length; one of fixed seconds has none.")
        return Pause(seconds=seconds_of(value["seconds"], where, "seconds")) if value["seconds"] else None
    most = seconds_of(value.get("most", MOST_PAUSE), where, "most")
    if "until" in value:
        if value["until"] != "clean":
            raise BadInput(f"{where}: 'until' can only be clean: until no cache below the target holds anything that is not written.")
        return Pause(until_clean=True, most=most)
    rate = value["garbage_collection"]
    if rate == "measured":
        return Pause(garbage_collection=rate, most=most)
    try:
        size = 0 if isinstance(rate, bool) else parse_size(rate)
    except BadInput:
        size = 0
    if size < 1:
        raise BadInput(f"{where}: 'garbage_collection' must be measured or a rate in bytes per second, for example 640m.")
    return Pause(garbage_collection=size, most=most)


#: Distributions of fio that have a centre, and what they are without: one at another place in each run.
_CENTRED = ("zipf", "pareto", "normal")


def read_warm(value: t.Any, job: Job, where: str) -> str:
    """The state that a cell needs its caches in, one of ``warming.WARM``.

    :raises BadInput: if it is none, or if no round of the job would warm what the next one uses.
    """
    found = warming.read_warm(value, where)
    for section in job.sections if found == warming.STEADY else ():
        if repeats_its_blocks(section):
            raise BadInput(f"{where}: 'warm' needs randrepeat: 0 and no randseed, or all rounds do the same I/O, and only its blocks become warm.")
        kind, *rest = (section.value("random_distribution") or "").split(":")
        if kind in _CENTRED and len(rest) < 2:
            raise BadInput(
                f"{where}: 'warm' needs a centre of the distribution, as in {kind}:{rest[0] if rest else '1.2'}:0.5, "
                "or fio has the hot blocks at another place in each round."
            )
    return found


def read_drain(value: t.Any, where: str) -> float | None:
    """Seconds that caches may take to write back before a cell; ``None`` for the usual ones, 0 for not at all.

    :raises BadInput: if it is no time.
    """
    return None if value is None else 0.0 if value is False else seconds_of(value, where, "drain")


def read_search(value: t.Any, job: Job, where: str) -> Search:
    """:raises BadInput: naming what is missing or wrong."""
    where = f"{where}, search"
    mapping(value, where, SEARCH_KEYS)
    _one_timed_section(job, where)
    if value.get("metric", "p99") not in METRICS:
        raise BadInput(f"{where}: 'metric' must be one of {', '.join(METRICS)}.")
    if "limit" not in value:
        raise BadInput(f"{where}: 'limit' is missing: the latency that must not be exceeded, for example 1ms.")
    limit = value["limit"]
    if not isinstance(limit, str) or not limit.strip().lower().endswith("s"):
        raise BadInput(f"{where}: 'limit' must be a latency with its unit, for example 500us, 1ms or 2s.")
    over = value.get("over", "iodepth")
    if over not in ("iodepth", "rate_iops", "numjobs"):
        raise BadInput(f"{where}: 'over' must be iodepth, rate_iops or numjobs.")
    if over in job.sections[0].options:
        raise BadInput(f"{where}: the job sets {over}, which the search varies: remove it from the job.")
    first, last = value.get("first", 1), value.get("last", 256)
    if any(isinstance(one, bool) or not isinstance(one, int) for one in (first, last)) or not 1 <= first < last:
        raise BadInput(f"{where}: 'first' and 'last' must be whole numbers, the first from 1 on and smaller than the last.")
    directions = sorted(job.sections[0].directions)
    direction = value.get("direction") or (directions[0] if len(directions) == 1 else None)
    if direction is not None and direction not in directions:
        raise BadInput(f"{where}: 'direction' must be one in which the job does I/O: {listed(directions)}.")
    return Search(
        metric=value.get("metric", "p99"),
        limit=round(seconds_of(limit, where, "limit") * 1e9),
        direction=direction,
        over=over,
        first=first,
        last=last,
        factor=_number(value.get("factor", 2.0), 1.1, 16, where, "factor"),
        bracket=_number(value.get("bracket", 0.10), 0.01, 1, where, "bracket"),
    )


def read_rounds(value: t.Any, job: Job, where: str, name: str = "") -> Rounds:
    """:param name: of the cell, which does not decide itself if another one is named.

    :raises BadInput: naming what is wrong.
    """
    where = f"{where}, rounds"
    mapping(value, where, _ROUNDS_KEYS)
    _one_timed_section(job, where)
    directions = job.sections[0].directions
    decided_by = value.get("decided_by", "")
    if not isinstance(decided_by, str):
        raise BadInput(f"{where}: 'decided_by' must be the name of the cell whose values decide.")
    follows = decided_by not in ("", name)
    track = value.get("track", "write" if follows or "write" in directions else "read")
    if track not in ("read", "write") or (track not in directions and not follows):
        raise BadInput(f"{where}: 'track' must be read or write, a direction in which the job does I/O.")
    if value.get("what", "iops") not in ("iops", "bandwidth", "latency"):
        raise BadInput(f"{where}: 'what' must be iops, bandwidth or latency.")
    most, window = value.get("most", 25), value.get("window", 5)
    if any(isinstance(one, bool) or not isinstance(one, int) for one in (most, window)) or not 2 <= window <= most <= 99:
        raise BadInput(f"{where}: 'window' and 'most' must be whole numbers, the window from 2 on and not above the most, which is at most 99.")
    allowed = {key: _number(value.get(key, getattr(Rounds, key)), 0.001, 1, where, key) for key in ("range", "slope")}
    return Rounds(most=most, window=window, track=track, what=value.get("what", "iops"), decided_by=decided_by, **allowed)


def _one_timed_section(job: Job, where: str) -> None:
    """Probes and rounds are compared with one another, so each must last as long as the others."""
    if len(job.sections) != 1:
        raise BadInput(f"{where}: its job must have one section.")
    if job.sections[0].asked_runtime is None:
        raise BadInput(f"{where}: its job must set 'runtime' and 'time_based'.")


def _number(value: t.Any, least: float, most: float, where: str, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not least <= value <= most:
        raise BadInput(f"{where}: '{key}' must be a number from {least} to {most}.")
    return float(value)
