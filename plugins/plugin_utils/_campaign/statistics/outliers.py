# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that are unlike the others, and the facts in which they differ.

The score is the modified z of Iglewicz and Hoaglin (1993) on logarithms, 0.6745 (x - median) / MAD, with the MAD floored at 2 %:
among identical hosts everything would be an outlier. Hosts are compared only with at least four others that are alike. One cell
proves little among hundreds, so a host is named if it is out in two cells, or far out in one.
"""

from __future__ import annotations

import math
import typing as t
from collections import Counter
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import finite

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_ALIKE = 5
OUT = 3.5
FAR_OUT = 6.0

#: No host is named for one cell in which it is nearer than this share.
_MATTERS = 0.10

#: The MAD of logarithms is at least this: 2 %.
_FLOOR = math.log(1.02)

#: The modified z has the scale of a standard deviation.
_SCALE = 0.6745

#: A fact is what the others have if at least this share of them has it.
_COMMON = 0.5


@dataclass(frozen=True)
class HostValue:
    """One number of one host.

    :param cell: what was measured, with its variant and direction: values of equal cells are compared.
    :param alike: what hosts must share to be compared: model of the drive, variant, size.
    :param value: above 0: IOPS, bytes per second, ns.
    """

    host: str
    cell: str
    alike: str
    value: float


@dataclass(frozen=True)
class Score:
    """How far a host is from those like it in one cell.

    :param ratio: by their median.
    :param score: modified z; ``None`` with fewer than five alike: then only the ratio is known.
    :param alike: hosts compared, itself among them.
    """

    host: str
    cell: str
    value: float
    ratio: float
    score: float | None
    alike: int

    @property
    def is_out(self) -> bool:
        """Whether it is an outlier in this cell."""
        return self.score is not None and abs(self.score) > OUT


@dataclass(frozen=True)
class Difference:
    """A fact of a host that the others do not share.

    :param usual: what most of the others have, or their median where it is a measured number.
    """

    fact: str
    value: t.Any
    usual: t.Any


@dataclass(frozen=True)
class OutlierHost:
    """A host that is named.

    :param scores: the cells in which it is out, farthest first.
    :param differences: facts in which it differs from those like it that are not out themselves.
    """

    host: str
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]


def scores(values: t.Iterable[HostValue]) -> tuple[Score, ...]:
    """Every value against those of hosts that are alike, in the order of the values. A host is in a cell once.

    :raises BadInput: for values that are not above 0.
    """
    known = list(values)
    numbers = finite([one.value for one in known], "values of hosts", positive=True)
    groups: dict[tuple[str, str], list[int]] = {}
    for index, one in enumerate(known):
        groups.setdefault((one.cell, one.alike), []).append(index)
    found: dict[int, Score] = {}
    for members in groups.values():
        ratios, z = _modified_z(numbers[members])
        for index, ratio, score in zip(members, ratios, z):
            one, enough = known[index], len(members) >= FEWEST_ALIKE
            found[index] = Score(one.host, one.cell, one.value, float(ratio), float(score) if enough else None, len(members))
    return tuple(found[index] for index in range(len(known)))


def outliers(values: t.Iterable[HostValue], facts: t.Mapping[str, t.Mapping[str, t.Any]]) -> tuple[OutlierHost, ...]:
    """The outlying hosts, farthest out first, and what is different about them.

    :param facts: of each host, plain values by name: firmware, scheduler, MTU, cache state, temperature…
    :raises BadInput: for values that are not above 0.
    """
    known = list(values)
    by_host: dict[str, list[Score]] = {}
    for score in scores(known):
        if score.is_out:
            by_host.setdefault(score.host, []).append(score)
    named = {host: sorted(out, key=_distance, reverse=True) for host, out in by_host.items() if _is_named(out)}
    # Outliers do not define what is usual, named or not.
    groups: dict[str, set[str]] = {}
    of_host: dict[str, set[str]] = {}
    for one in known:
        groups.setdefault(one.alike, set()).add(one.host)
        of_host.setdefault(one.host, set()).add(one.alike)
    found = []
    for host, out in named.items():
        others = sorted(set().union(*(groups[alike] for alike in of_host[host])) - set(by_host))
        found.append(OutlierHost(host, tuple(out), _differences(facts.get(host, {}), [facts.get(other, {}) for other in others])))
    return tuple(sorted(found, key=lambda one: (-_distance(one.scores[0]), one.host)))


def _modified_z(values: NDArray[t.Any]) -> tuple[NDArray[t.Any], NDArray[t.Any]]:
    """Ratios to the median, and modified z of the logarithms, both of the shape of the values."""
    logs = np.log(values)
    centre = np.median(logs)
    spread = max(float(np.median(np.abs(logs - centre))), _FLOOR)
    return np.exp(logs - centre), _SCALE * (logs - centre) / spread


def _is_named(out: t.Sequence[Score]) -> bool:
    return len(out) > 1 or (_distance(out[0]) > FAR_OUT and abs(out[0].ratio - 1) >= _MATTERS)


def _distance(score: Score) -> float:
    return abs(score.score or 0.0)


def _differences(own: t.Mapping[str, t.Any], others: t.Sequence[t.Mapping[str, t.Any]]) -> tuple[Difference, ...]:
    found = []
    for fact, value in own.items():
        usual = _usual(value, [other[fact] for other in others if fact in other])
        if usual is not None:
            found.append(Difference(fact, value, usual[0]))
    return tuple(found)


def _usual(value: t.Any, others: t.Sequence[t.Any]) -> tuple[t.Any] | None:
    """What the others have, if that is one thing and not this."""
    if not others:
        return None
    common, count = Counter(map(_key, others)).most_common(1)[0]
    if count >= _COMMON * len(others):
        return None if common == _key(value) else (next(other for other in others if _key(other) == common),)
    if not all(map(_is_number, (value, *others))) or len(others) < FEWEST_ALIKE - 1:
        return None
    centre = float(np.median(others))
    spread = max(float(np.median(np.abs(np.asarray(others, dtype=float) - centre))), 0.02 * abs(centre))
    return (centre,) if spread and _SCALE * abs(value - centre) / spread > OUT else None


def _key(value: t.Any) -> str:
    return f"{type(value).__name__} {value!r}"


def _is_number(value: t.Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
