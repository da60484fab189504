# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a power cut leaves of an acknowledged, flushed write.

A power cut loses what waits in volatile memory. So at every medium under a device, either nothing volatile holds writes, or it
is protected, or each flush gets there. A flush gets there if every queue on the way has its write cache on as the kernel treats
it: a queue set to ``write through`` ends flushes at that point (Documentation/block/writeback_cache_control.rst), whatever
the media below do. Flushes that were really sent and counted take precedence over a queue set to ``write back``.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._stack.layers import Layers, label
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import AT_RISK, DURABLE, UNKNOWN, WORST_FIRST, LayerFacts, Proof, Verdict

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

_UNFLUSHED_WORST_FIRST = ("may_be_lost", "unknown", "kept")


class _Holder(t.NamedTuple):
    """Something on the way down that may hold acknowledged writes."""

    place: int
    device: BlockDevice
    facts: LayerFacts


def judge(layers: Layers, device: BlockDevice) -> Verdict:
    """The verdict of one device, of what a power cut does: the worst of the media under it."""
    rulings = [_ruling(layers, path) for path in layers.paths(device)]
    decisive = min(rulings, key=lambda ruling: WORST_FIRST.index(ruling.verdict))
    unflushed = min((ruling.unflushed for ruling in rulings), key=_UNFLUSHED_WORST_FIRST.index)
    return Verdict(decisive.verdict, decisive.reason, unflushed)


def where_flushes_end(layers: Layers, path: t.Sequence[BlockDevice]) -> tuple[int, str] | None:
    """The first place on a way down from which no flush goes on, and a clause that names it."""
    for place, device in enumerate(path):
        if device.queue.get("write_cache") == "write through":
            if device.kind in ("flashcache", "aoe"):
                return place, f"{label(device)} ({device.kind}) passes no flush down"
            return place, f"{label(device)} passes no flush down (its queue reports write through)"
        for facts in layers.facts_of(device, top=place == 0):
            if facts.ends_flushes:
                return place, f"{label(device)} {facts.ends_flushes}"
    return None


def _ruling(layers: Layers, path: t.Sequence[BlockDevice]) -> Verdict:
    medium = path[-1]
    holders = [
        _Holder(place, device, facts)
        for place, device in enumerate(path)
        for facts in layers.facts_of(device, top=place == 0)
        if facts.loses or facts.volatile is not False
    ]
    losing = next((holder for holder in holders if holder.facts.loses), None)
    if losing:
        return Verdict(AT_RISK, f"{label(losing.device)} {losing.facts.why}.", "may_be_lost")
    if not layers.facts_of(medium) and not layers.is_protected(medium):
        return Verdict(UNKNOWN, f"Nothing is known about the write cache of {label(medium)}.", "unknown")
    unknown = next((holder for holder in holders if holder.facts.volatile is None), None)
    volatile = [holder for holder in holders if holder.facts.volatile and not layers.is_protected(holder.device)]
    memory = next((holder for holder in volatile if holder.facts.layer == "memory"), None)
    if memory:
        return Verdict(AT_RISK, f"{label(memory.device)} {memory.facts.why}.", "may_be_lost")
    end = where_flushes_end(layers, path)
    proof = _proof(layers, path)
    for holder in volatile:
        if end is not None and end[0] <= holder.place:
            return Verdict(AT_RISK, f"{label(holder.device)} {holder.facts.why}, and {_ending(path, end, holder)}.", "may_be_lost")
        if proof is not None and proof.reached is False and holder.device is medium:
            return Verdict(AT_RISK, f"{label(medium)} {holder.facts.why}, and {_disproved(layers, proof)}.", "may_be_lost")
    if unknown:
        return Verdict(UNKNOWN, f"{label(unknown.device)} {unknown.facts.why}.", "unknown")
    if layers.is_blind_end(medium):
        return Verdict(UNKNOWN, f"What is below {label(medium)} cannot be read.", "unknown")
    if volatile:
        device, facts = volatile[0].device, volatile[0].facts
        proved = f" (proved by {proof.flushes} flushes)" if proof is not None and proof.reached and device is medium else ""
        return Verdict(DURABLE, f"{label(device)} {facts.why}, and every flush reaches it{proved}.", "may_be_lost")
    kept = "is declared to survive power failures" if layers.is_protected(medium) else layers.facts_of(medium)[0].why
    return Verdict(DURABLE, f"{label(medium)} {kept}.", "kept")


def _ending(path: t.Sequence[BlockDevice], end: tuple[int, str], holder: _Holder) -> str:
    if path[end[0]] is holder.device and "its queue reports write through" in end[1]:
        name = holder.device.name
        return f"the kernel believes it has none, so no flush is sent to it (echo 'write back' > /sys/block/{name}/queue/write_cache ends that)"
    return end[1]


def _proof(layers: Layers, path: t.Sequence[BlockDevice]) -> Proof | None:
    """The result of flushes that were really sent on this way.

    Flushes that did not come from a device on the way do not come from above it either. Flushes that came from a device count for
    that device, and for one below it through which all of them had to go.
    """
    medium, names = path[-1], [device.name for device in path]
    mine = [proof for proof in layers.proofs if proof.disk == medium.name and proof.reached is not None]
    for proof in mine:
        if not proof.reached and proof.device in names:
            return proof
    for proof in mine:
        if proof.reached and (proof.device == names[0] or _all_through(layers, proof, names[0])):
            return proof
    return None


def _all_through(layers: Layers, proof: Proof, name: str) -> bool:
    sender = layers.devices.get(proof.device)
    ways = [[one.name for one in path] for path in layers.paths(sender)] if sender is not None else []
    leading = [way for way in ways if way[-1] == proof.disk]
    return bool(leading) and all(name in way for way in leading)


def _disproved(layers: Layers, proof: Proof) -> str:
    sender = layers.devices.get(proof.device)
    to = label(sender) if sender is not None else proof.device
    return f"{proof.flushes} flushes that were sent to {to} did not all reach it, although every queue on the way reports write back"
