# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements as an engineer writes them, and those of profiles, read and checked. Pure but for the files of the role.

Whatever no measurement and no fact could decide is refused here, before a host is accessed.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t
from pathlib import Path

import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import MEASURED, Requirement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import listed, mapping
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import Suite, SuiteCell, read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import BY_NAME

VARIABLE = "accept_requirements"
#: The suite of the role ``fio_benchmark`` with the workloads of the profiles.
SUITE = "accept"

_TOP = Path(__file__).resolve().parents[4]
_PROFILES, _SUITES = _TOP / "roles/accept/files/profiles", _TOP / "roles/fio_benchmark/files/suites"

_RATES = {"/s": 1.0, "IOPS": 1.0}
_BANDWIDTHS = {"kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 1024.0, "MiB/s": 1024.0**2, "GiB/s": 1024.0**3}
_LATENCIES = {"ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3}
_SHARES = {"%": 0.01}
#: Bits per second.
_LINKS = {"Mb/s": 1e6, "Gb/s": 1e9}

_DIRECTIONS = ("read", "write", "sync")
_METRICS = ("iops", "bandwidth", "mean", *BY_NAME)
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.][^\s]*)?\s*\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


class _Fact(t.NamedTuple):
    """A requirement that is not measured. :param words: what its key takes, with the kind of each. :param units: of its limit."""

    kind: str
    words: t.Mapping[str, str] = {}
    units: t.Mapping[str, float] | None = None
    at_least: bool = False
    keys: frozenset[str] = frozenset()


#: By the key that makes a requirement one of this kind.
_FACTS = {
    "survives": _Fact("", {"power_failure": "survives_power_failure", "device_loss": "survives_device_loss"}, at_least=True),
    "flush": _Fact("", {"proved": "flush_proved"}, at_least=True),
    "siblings": _Fact("", {"alike": "sibling"}),
    "siblings_within": _Fact("sibling", units=_SHARES),
    "hit_ratio_at_least": _Fact("hit_ratio", units=_SHARES, at_least=True, keys=frozenset({"workload"})),
    "dirty_at_most": _Fact("dirty", units=_SHARES, keys=frozenset({"workload"})),
    "wear_at_most": _Fact("wear", units=_SHARES),
    "link_speed_at_least": _Fact("link_speed", units=_LINKS, at_least=True),
    "firmware_not": _Fact("firmware"),
}
_COMMON = {"name", "source"}
_MEASURED_KEYS = _COMMON | {"workload", "metric", "of", "at_least", "at_most", "share", "confidence"}


def parse(items: t.Sequence[t.Any], profiles: t.Sequence[str] = (), suite: Suite | None = None) -> tuple[Requirement, ...]:
    """The requirements of profiles and of a list. One of the list replaces that of a profile with its name.

    :param suite: with the workloads; ``None``: the included one.
    :raises BadInput: one sentence that names the requirement and what is wrong.
    """
    suite = suite or included_suite()
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, t.Mapping) for item in items):
        raise BadInput(f"{VARIABLE} must be a list of dictionaries, one for each requirement.")
    own = [_requirement(item, f"{VARIABLE}, {_named(item, VARIABLE)}", suite, "written by the engineer") for item in items]
    found = {one.name: one for one in own}
    if len(found) < len(own):
        names = [one.name for one in own]
        raise BadInput(f"{VARIABLE}: two requirements are named {next(name for name in names if names.count(name) > 1)}; each needs a name of its own.")
    of_profiles: dict[str, Requirement] = {}
    for profile in profiles:
        for one in _of_profile(profile, suite):
            other = of_profiles.setdefault(one.name, one)
            if one.name not in found and dataclasses.replace(other, source=one.source) != one:
                raise BadInput(f"accept_profiles: two profiles have different limits for {one.name}: write this requirement in {VARIABLE}.")
    merged = {**of_profiles, **found}
    if not merged:
        raise BadInput(f"Nothing is required: set accept_profile to one of {listed(profile_names())}, or write {VARIABLE}.")
    return tuple(merged.values())


def workloads(requirements: t.Iterable[Requirement]) -> tuple[str, ...]:
    """The cells that must be measured, each once."""
    return tuple(dict.fromkeys(one.workload for one in requirements if one.workload is not None))


def check_target(requirements: t.Iterable[Requirement], suite: Suite | None = None, *, read_only: bool = False) -> None:
    """Whether a target may be measured by all requirements.

    :param read_only: whether nothing may be written to it.
    :raises BadInput: for a workload that writes to a target that is only read.
    """
    cells = {cell.name: cell for cell in (suite or included_suite()).cells}
    for one in requirements:
        cell = cells.get(one.workload or "")
        if read_only and cell is not None and cell.checked_job().writes:
            raise BadInput(
                f"{one.name}: its workload {cell.name} writes, and accept_read_only is true: leave this requirement or its profile out, "
                "or measure a target that may be written to."
            )


@functools.cache
def profile_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _PROFILES.glob("*.yml")))


@functools.cache
def included_suite() -> Suite:
    """That of the profiles."""
    return read_suite(SUITE, yaml.safe_load((_SUITES / f"{SUITE}.yml").read_text(encoding="utf-8")))


def _of_profile(profile: t.Any, suite: Suite) -> list[Requirement]:
    if profile not in profile_names():
        raise BadInput(f"There is no profile {abbreviated(str(profile))}: accept_profile takes {listed(profile_names())}.")
    rows = yaml.safe_load((_PROFILES / f"{profile}.yml").read_text(encoding="utf-8"))[profile]["requirements"]
    return [_requirement(row, f"profile {profile}, {_named(row, profile)}", suite, "") for row in rows]


def _named(item: t.Mapping[str, t.Any], where: str) -> str:
    name = item.get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        raise BadInput(f"{where}: each requirement needs a 'name' of letters, digits, '.', '_' and '-', not {abbreviated(repr(name))}.")
    return name


def _requirement(item: t.Mapping[str, t.Any], where: str, suite: Suite, source: str) -> Requirement:
    source = item.get("source", source)
    if not isinstance(source, str):
        raise BadInput(f"{where}: 'source' must be a text.")
    keys = [key for key in _FACTS if key in item]
    if len(keys) > 1:
        raise BadInput(f"{where}: it has '{keys[0]}' and '{keys[1]}'; write two requirements.")
    if not keys:
        return _measured(item, where, suite, source)
    mapping(item, where, _COMMON | {keys[0]} | _FACTS[keys[0]].keys)
    fact, given = _FACTS[keys[0]], item[keys[0]]
    workload = _cell(item["workload"], where, suite).name if "workload" in item else None
    kind, limit, unit, names = fact.kind, None, None, ()
    if fact.words:
        if given not in fact.words:
            raise BadInput(f"{where}: '{keys[0]}' must be {' or '.join(fact.words)}, not {abbreviated(str(given))}.")
        kind = fact.words[given]
    elif fact.units is not None:
        limit, unit = _limit(given, fact.units, keys[0], where)
    else:
        if not isinstance(given, list) or not given or not all(isinstance(one, str) and one for one in given):
            raise BadInput(f"{where}: '{keys[0]}' must be a list of texts, in quotes where they look like numbers.")
        names = tuple(given)
    return Requirement(item["name"], kind, workload, None, None, limit, unit, fact.at_least, None, 0.95, source, names)


def _measured(item: t.Mapping[str, t.Any], where: str, suite: Suite, source: str) -> Requirement:
    mapping(item, where, _MEASURED_KEYS)
    missing = next((key for key in ("workload", "metric", "of") if key not in item), "")
    if missing:
        raise BadInput(f"{where}: '{missing}' is missing; a requirement has workload, metric and of, or one of {listed(_FACTS)}.")
    metric, direction = item["metric"], item["of"]
    if metric not in _METRICS:
        raise BadInput(f"{where}: there is no metric {abbreviated(str(metric))}: use {listed(_METRICS)}.")
    if direction not in _DIRECTIONS:
        raise BadInput(f"{where}: 'of' must be {listed(_DIRECTIONS)}, not {abbreviated(str(direction))}.")
    senses = [key for key in ("at_least", "at_most") if key in item]
    if len(senses) != 1:
        raise BadInput(f"{where}: it needs either 'at_least' or 'at_most'.")
    cell = _cell(item["workload"], where, suite)
    units = _RATES if metric == "iops" else _BANDWIDTHS if metric == "bandwidth" else _LATENCIES
    limit, unit = _limit(item[senses[0]], units, senses[0], where)
    share = _limit(item["share"], _SHARES, "share", where)[0] if "share" in item else None
    confidence = _limit(item["confidence"], _SHARES, "confidence", where)[0] if "confidence" in item else 0.95
    if not 0.5 <= confidence < 1:
        raise BadInput(f"{where}: 'confidence' must be from 50 % to below 100 %.")
    _check_decidable(cell, metric, direction, limit, where)
    return Requirement(
        item["name"], MEASURED, cell.name, metric, direction, limit, unit, senses[0] == "at_least", _share(share, metric, direction, where), confidence, source
    )


def _cell(name: t.Any, where: str, suite: Suite) -> SuiteCell:
    cell = next((one for one in suite.cells if one.name == name), None)
    if cell is None:
        raise BadInput(f"{where}: there is no workload {abbreviated(str(name))}: the suite {suite.name} has {listed(one.name for one in suite.cells)}.")
    return cell


def _limit(given: t.Any, units: t.Mapping[str, float], key: str, where: str) -> tuple[float, str]:
    """In base units, with the unit as written."""
    found = _NUMBER.match(str(given)) if not isinstance(given, bool) else None
    example = f"'{found[1] if found else 10} {next(iter(units))}'"
    if found is None:
        raise BadInput(f"{where}: '{key}' is {abbreviated(str(given))}: write a number with its unit, for example {example}.")
    if not found[2]:
        raise BadInput(f"{where}: '{key}' is {found[1]} without a unit: write for example {example}.")
    if found[2] not in units:
        raise BadInput(f"{where}: '{key}' has the unit {abbreviated(found[2])}: use {listed(units)}.")
    value = float(found[1]) * units[found[2]]
    if value > 1 and units is _SHARES:
        raise BadInput(f"{where}: '{key}' is {found[1]} %, and at most 100 % is possible.")
    return value, found[2]


def _check_decidable(cell: SuiteCell, metric: str, direction: str, limit: float, where: str) -> None:
    """:raises BadInput: for a requirement that no measurement can decide."""
    why = ""
    sections = cell.checked_job().sections
    synced = any((section.value(name) or "0") != "0" for section in sections for name in ("fsync", "fdatasync"))
    if cell.fill or cell.discards or cell.search or cell.rounds:
        why = f"{cell.name} is a fill, a discard, a search or has rounds"
    elif direction == "sync" and not synced:
        why = f"{cell.name} has neither fsync nor fdatasync"
    elif direction != "sync" and not any(direction in section.directions for section in sections):
        why = f"{cell.name} has no {direction}s"
    elif (metric, direction) == ("bandwidth", "sync"):
        why = "a sync has no bandwidth"
    elif not limit:
        why = "every drive is on the same side of a limit of 0"
    if why:
        raise BadInput(f"{where}: no measurement can decide it: {why}.")


def _share(share: float | None, metric: str, direction: str, where: str) -> float | None:
    """Of the seconds; a percentile is a share of the I/Os already."""
    if share is None or share == 1.0:
        return share
    if metric in BY_NAME:
        if abs(BY_NAME[metric].percent / 100 - share) > 1e-9:
            raise BadInput(f"{where}: no measurement can decide it: {metric} has its own share of the I/Os, and fio logs no percentile of each second.")
        return None
    if direction == "sync" or share == 0:
        raise BadInput(f"{where}: no measurement can decide it: fio logs no syncs of each second." if share else f"{where}: 'share' must be above 0 %.")
    return share
