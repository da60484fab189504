# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One requirement and the repeats of one host: pass, fail, or measure again. Pure. docs/statistics.md explains the test.

A host passes if it is certainly more than 5 % on the good side of the limit, and fails if it is certainly on the bad side.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import FAIL, NOT_MEASURED, PASS, UNDECIDED, Requirement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_special
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST, finite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.spending import nominal_errors

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

#: A host within this share of the limit does not pass.
MARGIN = 0.05

#: Of all hosts that meet a limit these may fail, and of all that do not meet it with the margin these may pass, whatever confidence is written.
FAIL_ERROR, PASS_ERROR = 0.001, 0.015

#: Repeats without which nothing is decided.
FIRST = 2

#: Repeats that miss the limit by more than this factor miss it by this: those that measured 0 have no logarithm.
_FURTHEST = 100.0
#: Ends of intervals are at most this far from the limit, as a logarithm.
_END = math.log(1e6)

#: The memory that is tried, and what it is as long as the repeats do not tell.
_MEMORIES, _ASSUMED = tuple(number / 20 for number in range(17)), 0.5

#: Twice the logarithm of the likelihood by which a memory is contradicted, one-sided with 95 %.
_CONTRADICTED = 2.7

#: Hosts from which on their noise says something on that of another.
_FEWEST_HOSTS = 5

#: Of a repeat: no clock and no scheduler is better.
_LEAST_VARIANCE = 0.002**2


class Noise(t.NamedTuple):
    """That of the repeats of a class. :param memory: correlation of a repeat with the one before. :param variance: of logarithms.
    :param freedom: repeats that the variance is worth; 0 where only those of the host itself count."""

    memory: float
    variance: float = 0.0
    freedom: float = 0.0


class Verdict(t.NamedTuple):
    """As the fields of a :class:`Judgement`."""

    state: str
    value: float | None
    low: float | None
    high: float | None
    reason: str


class Decided(t.NamedTuple):
    """Hosts of equally many repeats, each of shape (hosts,); logarithms by which they exceed the limit. :param passed: likewise ``failed``: bool."""

    mean: NDArray[t.Any]
    low: NDArray[t.Any]
    high: NDArray[t.Any]
    passed: NDArray[t.Any]
    failed: NDArray[t.Any]


def judge(requirement: Requirement, values: t.Sequence[float], looks_planned: int, *, noise: Noise | None = None, checks: int = 1) -> Verdict:
    """What the repeats of one host say on one requirement.

    :param values: of repeats in their order, in base units.
    :param looks_planned: the most repeats that are measured.
    :param noise: of the class of the host; ``None``: that of the host itself.
    :param checks: requirements of one host that are measured, over all of its targets: the error of a false fail is divided among them.
    :raises BadInput: for values that are not numbers.
    """
    count = len(values)
    if not count:
        return Verdict(NOT_MEASURED, None, None, None, "there is no measurement")
    over = surplus(requirement, values)
    found = decide(over[None, :], noise or noise_of([over]), looks_planned, *errors(requirement, checks)) if count >= FIRST else None
    mean = float(over.mean() if found is None else found.mean[0])
    # What is too far for the decision is shown as it was measured, without an interval.
    is_far = float(abs(over).max()) > math.log(_FURTHEST) - 1e-9
    value = float(np.median(values)) if is_far else _base(requirement, mean)
    if found is None:
        return Verdict(UNDECIDED, value, None, None, f"{_figure(requirement, value)}, measured only once")
    ends = (None, None) if is_far else tuple(sorted(_base(requirement, float(one)) for one in (found.low[0], found.high[0])))
    state = PASS if found.passed[0] else FAIL if found.failed[0] else UNDECIDED
    shown = "" if is_far else f"{' to '.join(shown_value(requirement, one) for one in ends)} with "
    sure = text.share(1 - errors(requirement)[state == FAIL], 1)
    more = "" if state != UNDECIDED else f"; {_more(mean, over, noise or noise_of([over]))}"
    reason = f"{_figure(requirement, value)} ({shown}{sure}, {text.counted(count, 'repeat')}){more}"
    return Verdict(state, value, *ends, reason)


def surplus(requirement: Requirement, values: t.Sequence[float]) -> NDArray[t.Any]:
    """By how much repeats exceed a limit to the good side, as logarithms. Shape (repeats,)."""
    if not requirement.limit:
        raise BadInput(f"{requirement.name}: a limit of 0 cannot be judged from repeats.")
    logs = np.log(np.maximum(finite(values, requirement.name) / requirement.limit, 1 / LARGEST))
    return np.maximum(logs if requirement.at_least else -logs, -math.log(_FURTHEST))


def errors(requirement: Requirement, checks: int = 1) -> tuple[float, float]:
    """Those of all looks together: that a host passes although it does not meet the limit, and that it fails although it does."""
    allowed = (1 - requirement.confidence) / 2
    return min(allowed, PASS_ERROR), min(allowed, FAIL_ERROR) / max(checks, 1)


def decide(over: NDArray[t.Any], noise: Noise, looks_planned: int, pass_error: float, fail_error: float, first: int = FIRST) -> Decided:
    """Hosts of one class with equally many repeats.

    :param over: of :func:`surplus`, shape (hosts, repeats), at least two.
    :param first: the number of repeats after which they are judged for the first time.
    """
    count = over.shape[1]
    mean, squares = _fit(over, noise.memory)
    freedom = noise.freedom + count - 1
    variance = np.maximum((noise.freedom * noise.variance + squares) / freedom, _LEAST_VARIANCE)
    planned = tuple(_information(number, noise.memory) for number in range(1, max(looks_planned, count) + 1))
    passing, failing = (scipy_special.stdtrit(freedom, 1 - nominal_errors(planned, error, first)[count - 1]) for error in (pass_error, fail_error))
    deviation = np.sqrt(variance / planned[count - 1])
    low, high = mean - passing * deviation, mean + failing * deviation
    return Decided(mean, low, high, low > math.log1p(MARGIN), high < 0)


def noise_of(rows: t.Iterable[NDArray[t.Any]]) -> Noise:
    """The noise of a class of hosts, from the repeats of each as logarithms."""
    groups: dict[int, list[NDArray[t.Any]]] = {}
    for row in rows:
        groups.setdefault(row.size, []).append(row)
    arrays = [np.stack(some) for count, some in groups.items() if count >= FIRST]
    memory = _memory(arrays)
    squares = np.concatenate([_fit(some, memory)[1] for some in arrays]) if arrays else np.zeros(0)
    freedom = np.concatenate([np.full(len(some), some.shape[1] - 1.0) for some in arrays]) if arrays else np.zeros(0)
    return Noise(memory, *_moderated(squares, freedom)) if squares.size >= _FEWEST_HOSTS else Noise(memory)


def _information(count: int, memory: float) -> float:
    """Of a mean, as a number of independent repeats."""
    return 1.0 if count == 1 else (count - (count - 2) * memory) / (1 + memory)


def _fit(rows: NDArray[t.Any], memory: float) -> tuple[NDArray[t.Any], NDArray[t.Any]]:
    """The mean of each row, and the squares around it without their correlation; both of shape (rows,)."""
    weights = np.full(rows.shape[1], 1 - memory)
    weights[[0, -1]] = 1.0
    mean = rows @ (weights / weights.sum())
    left = rows - mean[:, None]
    squares = (left**2).sum(axis=1) + memory**2 * (left[:, 1:-1] ** 2).sum(axis=1) - 2 * memory * (left[:, 1:] * left[:, :-1]).sum(axis=1)
    return mean, squares / (1 - memory**2)


def _memory(groups: t.Sequence[NDArray[t.Any]]) -> float:
    """The largest that the restricted likelihood does not contradict."""
    if not groups:
        return _ASSUMED
    badness = [_badness(groups, memory) for memory in _MEMORIES]
    best = min(badness)
    largest = max(memory for memory, one in zip(_MEMORIES, badness, strict=True) if one <= best + _CONTRADICTED)
    return max(_MEMORIES[badness.index(best)], min(largest, _ASSUMED))


def _badness(groups: t.Sequence[NDArray[t.Any]], memory: float) -> float:
    """Twice the negative logarithm of the restricted likelihood of a memory, each row with a mean of its own."""
    squares = freedom = determinants = 0.0
    for rows in groups:
        hosts, count = rows.shape
        squares += float(_fit(rows, memory)[1].sum())
        freedom += hosts * (count - 1)
        determinants += hosts * ((count - 1) * math.log(1 - memory**2) + math.log(_information(count, memory)))
    return freedom * math.log(max(squares, 1e-300)) + determinants


def _moderated(squares: NDArray[t.Any], freedom: NDArray[t.Any]) -> tuple[float, float]:
    """The variance that hosts have in common, and the freedom that it is worth for each: little where hosts differ in it (Smyth 2004, section 6.2)."""
    special = scipy_special
    logs = np.log(np.maximum(squares / freedom, _LEAST_VARIANCE)) - special.digamma(freedom / 2) + np.log(freedom / 2)
    differing = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    if differing <= 0:
        return float(squares.sum() / freedom.sum()), float(freedom.sum())
    half = 0.5 + 1 / differing
    for _round in range(20):
        value = special.polygamma(1, half)
        half += float(value * (1 - value / differing) / special.polygamma(2, half))
    return float(np.exp(logs.mean() + special.digamma(half) - np.log(half))), float(min(2 * half, freedom.sum()))


def _more(mean: float, over: NDArray[t.Any], noise: Noise) -> str:
    """What an undecided host needs, for the reason."""
    distance = max(mean - math.log1p(MARGIN), -mean)
    if distance <= 0:
        return f"it is within {text.share(MARGIN)} of the limit"
    variance = (noise.freedom * noise.variance + float(_fit(over[None, :], noise.memory)[1][0])) / (noise.freedom + over.size - 1)
    # Quantiles of both errors and of four hosts in five, of late looks.
    needed = ((3.3 if mean < 0 else 2.6) + 0.8) ** 2 * variance / distance**2 * (1 + noise.memory) / (1 - noise.memory)
    return f"repeats differ by {text.share(math.sqrt(variance))}, so that about {max(math.ceil(needed), over.size + 1)} repeats are needed"


def _base(requirement: Requirement, over: float) -> float:
    # Of two repeats that differ much, the interval has no end that means something.
    return (requirement.limit or 0.0) * math.exp(max(min(over if requirement.at_least else -over, _END), -_END))


def _figure(requirement: Requirement, value: float) -> str:
    what = f"{text.share(requirement.share)} of the seconds: " if requirement.share is not None else ""
    name = f"{requirement.metric} of {requirement.direction}"
    sense = "at least" if requirement.at_least else "at most"
    return f"{what}{name} {shown_value(requirement, value)}, required {sense} {shown_value(requirement, requirement.limit)}"


def shown_value(requirement: Requirement, value: float | None) -> str:
    """A value in base units as text with a unit."""
    if value is None:
        return text.NOTHING
    if requirement.metric == "iops":
        return f"{text.figure(value)}/s"
    return f"{text.megabytes(value)} MB/s" if requirement.metric == "bandwidth" else text.latency(value * 1e6)
