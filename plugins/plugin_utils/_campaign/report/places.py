# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was measured where: the drives that all variants have in common, targets of one host apart, and the hosts that variants are compared on. Pure."""

from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS_OF_VARIANTS, METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import UNKNOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

UNKNOWN_MODEL = "unknown model"

#: Within this share of one another figures of variants are the same.
SAME = 0.02

#: Of a class of hosts, whose histograms are added apart.
_MOST_PARTS = 8

#: Why no variant is the first.
NO_SHARED_HOST = "no host was measured in every variant"

#: Host, cell and direction.
PlaceKey = t.Tuple[str, str, str]


def key_of(one: Point) -> PlaceKey:
    return one.host, one.cell, one.direction


def backing_models(points: t.Iterable[Point], classes: t.Mapping[str, str] | None = None) -> dict[PlaceKey, str]:
    """The drives that every variant has: an SSD cache adds one. With their attachment, where there are several.

    :param classes: of each host; what is the same in several of them is apart.
    """
    seen: dict[PlaceKey, dict[str, None]] = {}
    attached: dict[PlaceKey, dict[str, str]] = {}
    for one in points:
        seen.setdefault(key_of(one), {})[one.first.model or UNKNOWN_MODEL] = None
        attached.setdefault(key_of(one), {})[one.variant] = one.first.attachment or UNKNOWN
    models = {key: _common_models(tuple(models)) for key, models in seen.items()}
    reached = {key: _common_attachment(tuple(sorted(of.items()))) for key, of in attached.items()}
    if len(set(reached.values())) > 1:
        models = {key: f"{model}, {reached[key]}" for key, model in models.items()}
    return _apart(models, classes) if classes else models


def _apart(models: dict[PlaceKey, str], classes: t.Mapping[str, str]) -> dict[PlaceKey, str]:
    """With the class of the host, where hosts of several have the same drives."""
    of_model: dict[str, set[str]] = {}
    for (host, _cell, _direction), model in models.items():
        of_model.setdefault(model, set()).add(classes.get(host, ""))
    return {key: f"{model}, {classes[key[0]]}" if len(of_model[model]) > 1 and key[0] in classes else model for key, model in models.items()}


@functools.lru_cache(maxsize=1024)
def _common_attachment(of_variants: tuple[tuple[str, str], ...]) -> str:
    """What all variants have; where they differ in it, that of each variant, so that no row has two of one variant."""
    sets = [frozenset(text.split(", ")) for _variant, text in of_variants]
    common = frozenset.intersection(*sets)
    return ", ".join(sorted(common)) if common else " / ".join(f"{text} in {variant}" for variant, text in of_variants)


@functools.lru_cache(maxsize=1024)
def _common_models(of_variants: tuple[str, ...]) -> str:
    """Those that all have; of the first if none is common."""
    models = [frozenset(one.split(", ")) for one in of_variants]
    return ", ".join(sorted(frozenset.intersection(*models) or models[0]))


def places(points: t.Sequence[Point]) -> dict[PlaceKey, str]:
    """What the figures of a cell may be put together with: those of the same drives, and of the same target where a host measured several."""
    models = backing_models(points)
    targets: dict[str, set[str | None]] = {}
    for one in points:
        targets.setdefault(one.host, set()).add(one.first.target)
    several = any(len(paths) > 1 for paths in targets.values())
    return {key_of(one): f"{models[key_of(one)]}, {one.first.target}" if several else models[key_of(one)] for one in points}


# ---------------------------------------------------------------------------------------------------------------------
# Variants side by side

_Key = t.TypeVar("_Key", bound=t.Hashable)


def parts_of(classes: t.Iterable[t.Sequence[str]], measurements: t.Iterable[Measurement]) -> tuple[tuple[str, ...], ...]:
    """Classes of hosts, divided by what was measured on them: histograms are added by part, and what some hosts lack is not in those of others.

    The hosts that are alike with fewest others are one part: each part of a thousand hosts has as many histograms as the class.
    """
    of_host: dict[str, set[tuple[str, str, str | None]]] = {}
    for one in measurements:
        if one.measured:
            of_host.setdefault(one.host, set()).add((one.variant, one.cell, one.direction))
    found: list[tuple[str, ...]] = []
    for hosts in classes:
        alike: dict[frozenset[t.Any], list[str]] = {}
        for host in hosts:
            alike.setdefault(frozenset(of_host.get(host, ())), []).append(host)
        parts = sorted(alike.values(), key=len, reverse=True)
        rest = [host for part in parts[_MOST_PARTS - 1 :] for host in part]
        found += [tuple(part) for part in (*parts[: _MOST_PARTS - 1], rest) if part]
    return tuple(found)


@dataclass(frozen=True)
class Compared:
    """What is drawn of one load or cell.

    :param points: by variant, on the hosts that every variant has; on its own hosts where there is no such host.
    :param hosts: those that every variant has; :param measured: all that any variant has.
    """

    points: t.Mapping[str, t.Sequence[Point]]
    hosts: frozenset[str]
    measured: frozenset[str]


def shared_hosts(measured: t.Mapping[_Key, t.Mapping[str, t.Collection[str]]]) -> dict[_Key, frozenset[str]]:
    """The hosts on which variants may be compared: a median over other hosts would compare the hosts.

    The same at every load, because a curve is read along its loads; unless that takes more than half of the hosts of a load.

    :param measured: by load or cell, the hosts of each variant.
    """
    here = {key: frozenset.intersection(*(frozenset(hosts) for hosts in of.values())) for key, of in measured.items() if of}
    everywhere = frozenset.intersection(*here.values()) if here else frozenset()
    enough = everywhere and 2 * len(everywhere) >= max(map(len, here.values()))
    return {key: everywhere if enough else hosts for key, hosts in here.items()}


def on_shared_hosts(measured: t.Mapping[_Key, t.Mapping[str, t.Sequence[Point]]]) -> dict[_Key, Compared]:
    """Points of the same hosts and cells in every variant, as far as there are any.

    :param measured: by load or cell, the points of each variant.
    """
    same = {key: _of_shared_cells(of) for key, of in measured.items()}
    shared = shared_hosts({key: {variant: {one.host for one in points} for variant, points in of.items()} for key, of in same.items()})
    found = {}
    for key, of in same.items():
        hosts = shared[key]
        kept = {variant: [one for one in points if not hosts or one.host in hosts] for variant, points in of.items()}
        found[key] = Compared(kept, hosts, frozenset(one.host for points in measured[key].values() for one in points))
    return found


def _of_shared_cells(of: t.Mapping[str, t.Sequence[Point]]) -> t.Mapping[str, t.Sequence[Point]]:
    """Of several cells with one load, those that every variant has."""
    cells = set.intersection(*({one.cell for one in points} for points in of.values()))
    return {variant: [one for one in points if one.cell in cells] for variant, points in of.items()} if cells else of


def hosts_note(compared: t.Collection[Compared], places: str) -> str:
    """Which hosts are left out; nothing where none is.

    :param places: what there is a comparison of, such as ``loads``.
    """
    if all(one.hosts == one.measured for one in compared):
        return ""
    counts = sorted({len(one.hosts) for one in compared if one.hosts})
    if not counts:
        return f"{NO_SHARED_HOST.capitalize()}: each variant is drawn with the hosts that it was measured on."
    drawn = count(counts[0]) if len(counts) == 1 else f"{count(counts[0])} to {count(counts[-1])}"
    every = len(frozenset.union(*(one.measured for one in compared)))
    without = sum(not one.hosts for one in compared)
    more = f" At {without} of {len(compared)} {places} there is none: each variant is drawn with its own hosts there." if without else ""
    return f"Only hosts that were measured in every variant are drawn: {drawn} of {count(every)}.{more}"


def first_of(figures: t.Iterable[tuple[float, str]], *, lowest: bool = False) -> list[str]:
    """The variant with the most, and all that are the same."""
    known = list(figures)
    best = (min if lowest else max)((value for value, _name in known), default=0.0)
    return [name for value, name in known if (value <= (1 + SAME) * best if lowest else (1 + SAME) * value >= best)]


def leader_of(figures: t.Iterable[tuple[float, str]], *, lowest: bool = False) -> str:
    """The variant with the most; empty where another one is the same."""
    names = first_of(figures, lowest=lowest)
    return names[0] if len(names) == 1 else ""


def runs_of(points: t.Iterable[Point]) -> dict[str, list[Measurement]]:
    """Measurements by host."""
    found: dict[str, list[Measurement]] = {}
    for one in points:
        found.setdefault(one.host, []).extend(one.runs)
    return found


def is_shown_first(
    runs: t.Mapping[str, t.Mapping[str, list[Measurement]]],
    leader: str,
    metric: str,
    keys: t.Sequence[str] = KEYS_OF_VARIANTS,
    levels: t.Mapping[int, float] | None = None,
) -> bool:
    """Whether a variant is shown to be better than each of the others: without that no heading names it.

    :param runs: measurements by variant and host. :param metric: a name of ``METRICS``. :param keys: and ``levels``: of :func:`pairing.pair`.
    """
    found = [pair(METRICS[metric], dict(old), dict(runs[leader]), keys, levels) for variant, old in runs.items() if variant != leader]
    return all(one.same_hosts and one.verdict == "better" for one in found)
