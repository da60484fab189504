# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has changed between two certificates of one drive or host. Pure."""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.certificate import DRIVE, Certificate, Measured
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import FAIL, MEASURED, PASS, Judgement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS, METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import CONFIDENCE, Interval, verdict_of

WORSE, SAME, BETTER, NOT_COMPARABLE = "worse", "same", "better", "not comparable"

#: What may differ in two certificates that are compared; it is named.
_NAMED = ("firmware", "kernel", "fio_version")

#: That of settings by name, and of much else, such as serial numbers and firmware.
_STACK = "stack_sha256"

_Key = t.Tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """One figure or fact then and now.

    :param what: ``etcd_wal (sync) p99``, or the name of a requirement.
    :param state: ``worse``, ``same`` (within noise, or by less than what matters), ``better`` or ``not comparable``.
    :param reason: a clause, with what else differs.
    """

    target: str
    what: str
    state: str
    reason: str
    old: float | None = None
    new: float | None = None


def compare(old: Certificate, new: Certificate) -> tuple[Change, ...]:
    """Everything that both certificates have, the worst first; figures differ where their ratio is outside of the noise of both, and matters."""
    if (old.kind, old.name) != (new.kind, new.name):
        names = " / ".join(f"{one.kind} {one.name}" for one in (old, new))
        return (Change("", "certificate", NOT_COMPARABLE, f"they are not of the same drive or host: {plain(names)}"),)
    settings = [{_place(one, item.target): item.settings for item in one.devices} for one in (old, new)]
    before, after = _measured(old), _measured(new)
    changes = []
    for key in sorted({**before, **after}):
        if key not in before or key not in after:
            side = "the later" if key in before else "the earlier"
            changes.append(Change(key[0], f"{key[1]} ({key[2]})", NOT_COMPARABLE, f"{side} certificate does not have it"))
        else:
            then, now = (one.get(key[0], {}) for one in settings)
            changes += _figures(key, before[key], after[key], _differences(then, now, then))
    changes += _facts(old, new)
    order = (WORSE, NOT_COMPARABLE, BETTER, SAME)
    return tuple(sorted(changes, key=lambda one: (order.index(one.state), one.target, one.what)))


def _place(certificate: Certificate, target: str) -> str:
    """A drive has another path in another host; a drive with several targets is compared target by target."""
    return "" if certificate.kind == DRIVE and len(certificate.devices) == 1 else target


def _measured(certificate: Certificate) -> dict[_Key, Measured]:
    return {(_place(certificate, one.target), one.workload, one.direction): one for one in certificate.measured}


def _differences(old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any], names: t.Iterable[str]) -> list[str]:
    """A value that is missing on one side is no difference."""
    known = [name for name in names if None not in (old.get(name), new.get(name)) and old[name] != new[name]]
    return [f"{name.replace('_', ' ')} {plain(old[name], 60)} / {plain(new[name], 60)}" for name in known]


def _figures(key: _Key, old: Measured, new: Measured, settings: list[str]) -> t.Iterator[Change]:
    target, workload, direction = key
    sides = old.conditions, new.conditions
    different = [*_differences(*sides, [name for name in KEYS if name not in (*_NAMED, _STACK)]), *settings]
    named = _differences(*sides, _NAMED) + ["other details of the stack"] * bool(_differences(*sides, [_STACK]))
    for metric in [name for name in old.figures if name in new.figures]:
        state, reason = (NOT_COMPARABLE, f"measured differently: {'; '.join(different)}") if different else _verdict(metric, old, new)
        values = old.figures[metric].value, new.figures[metric].value
        yield Change(target, f"{workload} ({direction}) {metric}", state, "; ".join([reason, *named]), *values)


def _verdict(metric: str, old: Measured, new: Measured) -> tuple[str, str]:
    known = METRICS.get("latency" if metric == "mean" else metric)
    values = [(one.low, one.value, one.high) for one in (old.figures[metric], new.figures[metric])]
    if known is None or any(number is None or number <= 0 for side in values for number in side):
        return NOT_COMPARABLE, "one of them has no interval: it has one repeat, or no valid figure"
    (low, value, high), (new_low, new_value, new_high) = ([math.log(t.cast("float", number)) for number in side] for side in values)
    ratio = new_value - value
    # The intervals of two independent estimates make that of their difference (Howe 1974, Zou and Donner 2008).
    down, up = math.hypot(new_value - new_low, high - value), math.hypot(new_high - new_value, value - low)
    interval = Interval(_exp(ratio - down), _exp(ratio + up), CONFIDENCE)
    found, reason = verdict_of(_exp(ratio), interval, higher_is_better=known.higher_is_better, practical=known.percent / 100)
    return {"worse": WORSE, "better": BETTER}.get(found, SAME), reason


def _exp(value: float) -> float:
    """Without overflow, and never 0."""
    return math.exp(max(min(value, 700.0), -700.0))


def _facts(old: Certificate, new: Certificate) -> t.Iterator[Change]:
    """Of facts, what was decided both times under the same requirement."""
    before, after = ({(_place(one, item.target), item.requirement.name): item for item in one.verdicts if _is_decided(item)} for one in (old, new))
    for key in sorted(before.keys() & after.keys()):
        earlier, later = before[key], after[key]
        states = f"{earlier.state} / {later.state}"
        if replace(earlier.requirement, source="") != replace(later.requirement, source=""):
            yield Change(*key, NOT_COMPARABLE, "the requirement was another one", earlier.value, later.value)
        else:
            state = SAME if earlier.state == later.state else WORSE if later.state == FAIL else BETTER
            yield Change(*key, state, states if state == SAME else f"{states}: {later.reason}", earlier.value, later.value)


def _is_decided(one: Judgement) -> bool:
    return one.requirement.kind != MEASURED and one.state in (PASS, FAIL)
