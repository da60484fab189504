# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements that are facts: what survives, whether flushes arrive, caches, wear, firmware, links, sameness. Pure. What is not known never passes.

Facts of a host are what its modules return: ``checks`` of ``flush_check``, ``verdicts`` and ``drives`` of ``cache_health_info``; and ``links``, a list of
``name`` and ``speed`` in bits per second. Each key may be missing. A host without facts must be there too, to be judged.
"""

from __future__ import annotations

import fnmatch
import functools
import statistics
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import (
    FAIL,
    MEASURED,
    NOT_MEASURED,
    PASS,
    UNDECIDED,
    Judgement,
    Requirement,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.places import Place, value_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import KEEPS, LOSES, UNKNOWN, safety_of, worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import number, optional_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CacheFlow
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import FEWEST_ALIKE, HostValue, outliers, scores
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import losses_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult

#: By host.
Facts = t.Mapping[str, t.Mapping[str, t.Any]]

#: A difference from its siblings below which a target is alike, unless another is required.
_ALIKE = 0.10

_STATES = {KEEPS: PASS, LOSES: FAIL, UNKNOWN: NOT_MEASURED}
_VERDICTS = {"durable": KEEPS, "at_risk": LOSES, "survives": KEEPS, "loses": LOSES}
#: Of ``flush_check``.
_CHECKS = {"proved": PASS, "not_needed": PASS, "disproved": FAIL}


class _Asked(t.NamedTuple):
    """One requirement, and what is known."""

    requirement: Requirement
    rows: Rows
    places: t.Sequence[Place]
    facts: Facts
    power_loss: t.Sequence[PowerLossResult]
    requirements: t.Sequence[Requirement]


def judgements(
    rows: Rows, places: t.Sequence[Place], requirements: t.Sequence[Requirement], facts: Facts, power_loss: t.Sequence[PowerLossResult] = ()
) -> list[Judgement]:
    """Of every requirement that is a fact."""
    found: list[Judgement] = []
    for one in requirements:
        if one.kind != MEASURED:
            found += _JUDGES[one.kind](_Asked(one, rows, places, facts, power_loss, requirements))
    return found


def _survives(asked: _Asked) -> t.Iterator[Judgement]:
    """By the stacks before and after the measurements, otherwise by what the host reports."""
    is_power = asked.requirement.kind == "survives_power_failure"
    loss = "a power failure" if is_power else "the loss of a device"
    for place in asked.places:
        lost = _contradiction(asked.power_loss, place) if is_power else ""
        if lost:
            yield place.judgement(asked.requirement, FAIL, lost)
            continue
        measured = place.of(None)
        reported = _reported(asked.facts.get(place.host, {}), place.target, "verdict" if is_power else "device_loss")
        losing = [one for one in reported if _VERDICTS.get(one[1]) == LOSES]
        if measured and not losing:
            safety = safety_of(asked.rows, measured)
            accused = _accused(asked.power_loss, place, measured) if is_power and safety.flushed == KEEPS else ""
            if accused:
                yield place.judgement(asked.requirement, NOT_MEASURED, accused)
                continue
            stacks = [asked.rows.settings.get((one.host, one.stack_after or ""), ()) for one in measured[-1:]]
            key = ("verdict", "reason" if is_power else "device_loss_reason")
            reason = next((value for stack in stacks for _device, *name, value in stack if tuple(name) == key), "")
            yield _kept(place, asked.requirement, safety.flushed if is_power else safety.device_loss, loss, reason)
            continue
        for target, verdict, reason in reported or [(place.target, "", "the host reported no verdict")]:
            yield _kept(Place(place.host, "", target), asked.requirement, _VERDICTS.get(verdict, UNKNOWN), loss, reason)


def _kept(place: Place, requirement: Requirement, kept: str, loss: str, reason: str) -> Judgement:
    said = {KEEPS: f"survives {loss}", LOSES: f"may be lost by {loss}", UNKNOWN: f"whether a write survives {loss} is not known"}[kept]
    what = said if kept == UNKNOWN else f"a flushed write {said}"
    return place.judgement(requirement, _STATES[kept], f"{what}: {reason}" if reason else what)


def _reported(facts: t.Mapping[str, t.Any], target: str, key: str) -> list[tuple[str, str, str]]:
    """Targets with their verdicts and reasons, of this target or of all where there is none."""
    reason = "reason" if key == "verdict" else "device_loss_reason"
    rows = [(one.get("path"), one.get(key), one.get(reason)) for one in objects(facts.get("checks"))]
    verdicts = facts.get("verdicts")
    if key == "verdict" and not rows and isinstance(verdicts, dict):
        rows = [(name, one.get(key), one.get(reason)) for name, one in sorted(verdicts.items()) if isinstance(one, dict)]
    found = [(str(path or ""), optional_text(verdict) or "", optional_text(why) or "") for path, verdict, why in rows]
    return [one for one in found if target in ("", one[0])]


def _contradiction(power_loss: t.Iterable[PowerLossResult], place: Place) -> str:
    return next((one.contradiction for one in _tests(power_loss, place) if one.contradicts), "")


def _accused(power_loss: t.Sequence[PowerLossResult], place: Place, measured: t.Iterable[Measurement]) -> str:
    """What drives of the same model have lost, unless this one was tested itself: it may have been by another of its names."""
    if any(_VERDICTS.get(one.verdict) == KEEPS for one in _tests(power_loss, place)):
        return ""
    return next(iter(losses_of(power_loss, {one.model for one in measured if one.model})), "")


def _tests(power_loss: t.Iterable[PowerLossResult], place: Place) -> list[PowerLossResult]:
    return [one for one in power_loss if one.host == place.host and place.target in ("", one.target)]


def _flush_proved(asked: _Asked) -> t.Iterator[Judgement]:
    """By tests that cut the power, and by counted flushes."""
    for place in asked.places:
        tests, checks = _tests(asked.power_loss, place), _reported(asked.facts.get(place.host, {}), place.target, "state")
        kept = worst(_VERDICTS.get(one.verdict, UNKNOWN) for one in tests)
        lost = next((one.contradiction or one.sentence for one in tests if one.contradicts or one.verdict == "at_risk"), None)
        if lost is not None:
            yield place.judgement(asked.requirement, FAIL, lost)
        elif kept == KEEPS and not any(_CHECKS.get(state) == FAIL for _target, state, _reason in checks):
            yield place.judgement(asked.requirement, PASS, f"power-loss test {tests[0].test}: {tests[0].sentence}")
        elif not checks:
            yield place.judgement(asked.requirement, NOT_MEASURED, "no power was cut, and no flush was counted: run the playbook power_loss")
        else:
            for target, state, reason in checks:
                sentence = f"flushes of {target} are {state.replace('_', ' ') or 'not known'}{f': {reason}' if reason else ''}"
                yield Place(place.host, "", target).judgement(asked.requirement, _CHECKS.get(state, NOT_MEASURED), sentence)


def _of_caches(asked: _Asked, value: t.Callable[[CacheFlow], float | None], word: str) -> t.Iterator[Judgement]:
    """Every repeat must be on the right side; none of them is a fail, and some are undecided."""
    requirement, limit = asked.requirement, asked.requirement.limit or 0.0
    for place in asked.places:
        runs = {(one.host, one.variant, one.cell, one.repeat) for one in place.of(requirement.workload)}
        caches = [cache for key in sorted(runs) if key in asked.rows.flows for cache in asked.rows.flows[key].caches]
        known = [one for one in map(value, caches) if one is not None]
        if not known:
            yield place.judgement(requirement, NOT_MEASURED, f"the {word} is not known: {'its counters were not read' if caches else 'no cache was seen'}")
            continue
        met = [one >= limit if requirement.at_least else one <= limit for one in known]
        state = PASS if all(met) else UNDECIDED if any(met) else FAIL
        low, high = min(known), max(known)
        span = text.share(low) if low == high else f"{text.share(low)} to {text.share(high)}"
        required = f"{'at least' if requirement.at_least else 'at most'} {text.share(limit)}"
        yield place.judgement(requirement, state, f"{word} {span}, required {required}", statistics.median(known), low=low, high=high, looks=len(runs))


def _dirty_share(cache: CacheFlow) -> float | None:
    dirty = cache.dirty_most if cache.dirty_most is not None else cache.dirty_end
    return dirty / cache.size if cache.size and dirty is not None else None


def _each(asked: _Asked, judge: t.Callable[[Requirement, t.Mapping[str, t.Any]], tuple[str, float | None, str]], word: str) -> t.Iterator[Judgement]:
    """Every drive or link of a host."""
    for host in dict.fromkeys(place.host for place in asked.places):
        items = _drives(asked, host) if word == "drive" else _links(asked, host, word.split()[-1])
        if not items:
            yield Place(host, "").judgement(asked.requirement, NOT_MEASURED, f"the host reported no {word}")
        for item in items:
            state, value, reason = judge(asked.requirement, item)
            yield Place(host, "", str(item.get("path") or item.get("name") or "")).judgement(asked.requirement, state, reason, value)


def _drives(asked: _Asked, host: str) -> t.Sequence[t.Mapping[str, t.Any]]:
    """Those that the host reports, otherwise those below its targets while they were measured."""
    below = [{"path": one.device, "firmware": one.firmware, "wear_used_percent": one.wear_after} for one in asked.rows.drives if one.host == host]
    return objects(asked.facts.get(host, {}).get("drives")) or below


def _links(asked: _Asked, host: str, kind: str) -> t.Sequence[t.Mapping[str, t.Any]]:
    """:param kind: as in ``links``. The speed of a drive behind a controller is that which SMART reports."""
    links = [one for one in objects(asked.facts.get(host, {}).get("links")) if one.get("kind") == kind]
    known = {one.get("name") for one in links}
    drives = [{"name": one.get("path"), "speed": one["link_speed"]} for one in _drives(asked, host) if kind == "drive" and one.get("link_speed")]
    return [*links, *(one for one in drives if one["name"] not in known)]


def _wear(requirement: Requirement, drive: t.Mapping[str, t.Any]) -> tuple[str, float | None, str]:
    used = number(drive.get("wear_used_percent"))
    if used is None:
        return (PASS, None, "a hard disk has no rated wear") if drive.get("media") == "hdd" else (NOT_MEASURED, None, "the drive does not report its wear")
    limit = requirement.limit or 0.0
    return (PASS if used / 100 <= limit else FAIL), used / 100, f"{text.amount(used)} of the rated endurance used, required at most {text.share(limit)}"


def _firmware(requirement: Requirement, drive: t.Mapping[str, t.Any]) -> tuple[str, float | None, str]:
    firmware = optional_text(drive.get("firmware"))
    if not firmware:
        return NOT_MEASURED, None, "the drive does not report its firmware"
    listed = next((name for name in requirement.names if fnmatch.fnmatchcase(firmware, name)), None)
    return (PASS, None, f"firmware {firmware}") if listed is None else (FAIL, None, f"firmware {firmware} is on the list that is not accepted ({listed})")


def _drive_cache(asked: _Asked) -> t.Iterator[Judgement]:
    """Of every drive below a target, while it was measured."""
    for place in asked.places:
        stacks = {(one.host, stack) for one in place.of(None) for stack in (one.stack_before, one.stack_after) if stack}
        rows = [row for stack in sorted(stacks) for row in asked.rows.settings.get(stack, ())]
        values = {(device, value) for device, *key, value in rows if key == ["drive", "drive"]}
        drives = {device for device, *key, value in rows if key == ["device", "below"] and value == "[]"}
        on = sorted(device for device, value in values if value == "enabled")
        is_known = bool(values) and {value for _device, value in values} <= {"enabled", "disabled"} and drives <= {device for device, _value in values}
        state = FAIL if on else PASS if is_known else NOT_MEASURED
        said = f"the write cache of {text.listed(on, 5)} is enabled" if on else "no write cache of a drive is enabled"
        yield place.judgement(asked.requirement, state, said if on or is_known else "whether the write cache of its drives is enabled is not known")


def _link_speed(requirement: Requirement, link: t.Mapping[str, t.Any]) -> tuple[str, float | None, str]:
    speed, limit = number(link.get("speed")), requirement.limit or 0.0
    if speed is None:
        return NOT_MEASURED, None, "the speed of the link is not known"
    return (PASS if speed >= limit else FAIL), speed, f"link of {text.figure(speed / 1e9)} Gb/s, required at least {text.figure(limit / 1e9)} Gb/s"


def _siblings(asked: _Asked) -> t.Iterator[Judgement]:
    """Targets that are out among those of the same class, by the figures of the other requirements."""
    limit = asked.requirement.limit or _ALIKE
    values: list[HostValue] = []
    owners: dict[str, Place] = {}
    for place in asked.places:
        name = f"{place.host} {place.suffix}"
        owners[name] = place
        for one in asked.requirements:
            found = [value_of(run, one, {}) for run in place.of(one.workload, one.direction)] if one.kind == MEASURED and one.share is None else []
            known = [value for value in found if value]
            if known:
                values.append(HostValue(name, f"{one.metric} of {one.workload}", place.alike, statistics.median(known)))
    named = {one.host for one in outliers(values, {})}
    compared: dict[str, list[t.Any]] = {}
    for score in scores(values):
        if score.score is not None:
            compared.setdefault(score.host, []).append(score)
    for name, place in owners.items():
        if name not in compared:
            yield place.judgement(asked.requirement, NOT_MEASURED, f"fewer than {FEWEST_ALIKE} targets of this class were measured")
            continue
        furthest = max(compared[name], key=lambda score: abs(score.ratio - 1))
        is_beyond = abs(furthest.ratio - 1) > limit
        state = PASS if not is_beyond else FAIL if name in named else UNDECIDED
        siblings = text.counted(furthest.alike - 1, "sibling")
        yield place.judgement(
            asked.requirement, state, f"{furthest.cell} is {text.times(furthest.ratio)} that of {siblings}, required within {text.share(limit)}", furthest.ratio
        )


_JUDGES: dict[str, t.Callable[[_Asked], t.Iterator[Judgement]]] = {
    "survives_power_failure": _survives,
    "survives_device_loss": _survives,
    "flush_proved": _flush_proved,
    "hit_ratio": functools.partial(_of_caches, value=lambda cache: cache.hit_ratio, word="hit ratio"),
    "dirty": functools.partial(_of_caches, value=_dirty_share, word="dirty part of the cache"),
    "wear": functools.partial(_each, judge=_wear, word="drive"),
    "firmware": functools.partial(_each, judge=_firmware, word="drive"),
    "drive_cache": _drive_cache,
    "link_speed": functools.partial(_each, judge=_link_speed, word="link of a network"),
    "drive_link_speed": functools.partial(_each, judge=_link_speed, word="link of a drive"),
    "sibling": _siblings,
}
