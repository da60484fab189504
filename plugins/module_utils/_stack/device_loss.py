# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the failure of any one device leaves of what was written.

A device is represented as a tree of groups: a layer needs every group, a group outlives the loss of so many of its members. What
appears in more members of a group than it tolerates is a single point of failure: also a drive that carries both halves of a
mirror, on two partitions.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.layers import Layers, label
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import LOSES, SURVIVES, UNKNOWN, Group, LayerFacts

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

#: How many devices a sentence names.
_NAMED = 3

#: What makes a device a single point of failure, the most specific first.
_NEWEST, _NOT_WHOLE, _PLAIN = range(3)


@frozen
class Point:
    """A device whose failure alone takes data away, or might.

    :param sure: whether it does; else it is not known.
    :param rank: how specific the reason is.
    :param why: the reason as a sentence.
    :param cached: what has its newest data only there.
    """

    sure: bool
    rank: int = _PLAIN
    why: str = ""
    cached: str = ""


@frozen
class Loss:
    """What the failure of one device does: ``survives``, ``loses`` or ``unknown``, and why.

    :param newest: whether it takes the newest data, which is in a write-back cache and nowhere else yet.
    """

    outcome: str
    reason: str
    newest: bool = False


def judge(layers: Layers, device: BlockDevice) -> Loss:
    """What the failure of any one device below does to what is stored on a device."""
    walk = _Walk(layers)
    points = walk.points(device, ())
    notes = "".join(f" {note}" for note in walk.notes)
    sure = {name: point for name, point in points.items() if point.sure}
    if sure:
        rank = min(point.rank for point in sure.values())
        telling = {name: point for name, point in sure.items() if point.rank == rank}
        return Loss(LOSES, _sentence(layers, telling) + notes, rank == _NEWEST)
    if points:
        return Loss(UNKNOWN, next(iter(points.values())).why + notes)
    kept = "; ".join(walk.kept)
    return Loss(SURVIVES, f"The failure of any one device loses nothing: {kept}." + notes if kept else "The failure of any one device loses nothing." + notes)


def _sentence(layers: Layers, points: t.Mapping[str, Point]) -> str:
    first = next(iter(points.values()))
    if first.rank == _NEWEST and first.cached:
        where = _listed(layers, points)
        return f"If {where} fails, what was written last to {first.cached} is lost: its newest data is only there, in its write-back cache."
    return first.why or f"Data are lost with {_listed(layers, points)}: nothing holds a second copy."


def _listed(layers: Layers, names: t.Iterable[str]) -> str:
    found = [layers.devices.get(name) for name in names]
    words = [label(one) for one in found if one is not None]
    if len(words) > _NAMED:
        words = [*words[:_NAMED], f"one of {len(words) - _NAMED} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class _Walk:
    """One pass over everything below a device."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        #: What keeps second copies, a clause each.
        self.kept: dict[str, None] = {}
        self.notes: dict[str, None] = {}

    def points(self, device: BlockDevice, above: tuple[str, ...]) -> dict[str, Point]:
        """The single points of failure of a device, by kernel name."""
        facts = self.layers.facts_of(device)
        self.notes.update(dict.fromkeys(one.note for one in facts if one.note))
        return _as_one_drive(device, self._points(device, facts, (*above, device.name)))

    def _points(self, device: BlockDevice, facts: t.Sequence[LayerFacts], above: tuple[str, ...]) -> dict[str, Point]:
        beside = next((one for one in facts if any(device.name in member for group in one.groups or () for member in group.members)), None)
        if beside is not None:
            # A cache that shows no device of its own: what its origin would be without it, and what lies beside it.
            found = self._points(device, [one for one in facts if one is not beside], above)
            groups = [group for group in beside.groups or () if all(device.name not in member for member in group.members)]
        else:
            own = self._own(device, facts)
            found = own or {}
            groups = [group for one in facts for group in one.groups or ()]
            if not groups and own is None:
                groups = [Group(((name,),)) for name in (*([device.parent] if device.parent else []), *device.slaves)]
                found = {} if groups else {device.name: Point(True)}
        for group in groups:
            found.update(self._of_group(device, group, above))
        return found

    def _own(self, device: BlockDevice, known: t.Sequence[LayerFacts]) -> dict[str, Point] | None:
        """What its facts state directly; None if it follows from what lies below."""
        facts = next((one for one in known if one.device_loss), None)
        if facts is None:
            return None
        why = f"{label(device)} {facts.device_loss_reason}"
        if facts.device_loss == SURVIVES:
            self.kept[why] = None
            return {}
        rank = _NEWEST if facts.newest else _NOT_WHOLE
        return {device.name: Point(facts.device_loss == LOSES, rank, why + ".")}

    def _of_group(self, owner: BlockDevice, group: Group, above: tuple[str, ...]) -> dict[str, Point]:
        members = [self._of_member(names, above) for names in group.members]
        counted = collections.Counter(name for member in members for name in member)
        every = {name: point for member in members for name, point in member.items()}
        if group.tolerance is None:
            return {owner.name: Point(False, why=f"{label(owner)} {group.why}.")}
        if group.mirrored and not any(point.sure for point in every.values()):
            return {}
        found = {name: every[name] for name, count in counted.items() if count > group.tolerance}
        if group.tolerance:
            self._keep(owner, group, found)
            shared = f"{label(owner)} {group.why}, and every copy of it is on {{}}."
            return {name: dataclasses.replace(point, why=point.why or shared.format(self._name(name))) for name, point in found.items()}
        if group.newest:
            return {name: Point(True, _NEWEST, cached=label(owner)) if point.sure else point for name, point in found.items()}
        if group.why:
            why = f"{label(owner)} {group.why}: data are lost with {{}}."
            return {name: dataclasses.replace(point, rank=_NOT_WHOLE, why=why.format(self._name(name))) for name, point in found.items()}
        return found

    def _of_member(self, names: t.Sequence[str], above: tuple[str, ...]) -> dict[str, Point]:
        found: dict[str, Point] = {}
        for name in names:
            device = self.layers.devices.get(name)
            if device is None:
                found[name] = Point(False, why=f"Nothing is known about {name}.")
            elif name not in above:
                found.update(self.points(device, above))
        return found

    def _keep(self, owner: BlockDevice, group: Group, found: t.Mapping[str, Point]) -> None:
        if group.why and not found:
            self.kept[f"{label(owner)} {group.why}"] = None

    def _name(self, name: str) -> str:
        device = self.layers.devices.get(name)
        return label(device) if device is not None else name


def _as_one_drive(device: BlockDevice, points: dict[str, Point]) -> dict[str, Point]:
    """The paths of a multipath device lead to one drive."""
    if device.kind != "multipath" or not points:
        return points
    unsure = next((point for point in points.values() if not point.sure), None)
    return {device.name: unsure or Point(True)}
