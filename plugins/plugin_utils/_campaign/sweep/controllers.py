# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""RAID controllers of a variant: what it names by number or name is what the host describes by serial number and WWN. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CONTROLLERS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import Controller

Values = t.Mapping[str, t.Any]
Entries = t.Sequence[Values]

_ALL = "all"
_NAMES = ("id", "name", "wwn")
#: Options that say how an item is set, and not to what.
_MANNER = ("provider", "tool_path", "persistent", "require_effective", "members", "flush_timeout")


def require_described(options: Values, before: Values, item: str) -> None:
    """:raises Refused: for an option whose value before the sweep is not known."""
    unknown = [key for key in options if key not in before and key not in _MANNER and not key.startswith("allow_")]
    if unknown:
        raise Refused(f"{item}: the present value of {unknown[0]} could not be described, so it could not be restored.", item=item)


class Controllers:
    """The controllers of one host that the sweep touches."""

    name = CONTROLLERS

    def __init__(self, described: Entries, controllers: t.Sequence[Controller]) -> None:
        self.described = [dict(entry) for entry in described]
        self.controllers = controllers
        self.touched: dict[int, None] = {}

    def touch(self, entries: Entries) -> None:
        """:raises StorageError: for what is not there, or could not be restored."""
        places = []
        for entry in entries:
            place, _joined = self._joined(entry)
            if place in places:
                raise BadInput(f"Two entries of a variant are the controller {self.described[place].get('serial') or self.described[place].get('id')}.")
            places.append(place)
        self.touched.update(dict.fromkeys(places))

    def wanted(self, entries: Entries) -> list[dict[str, t.Any]]:
        given = dict(map(self._joined, entries))
        return [given.get(place, self.described[place]) for place in self.touched]

    def _joined(self, entry: Values) -> tuple[int, dict[str, t.Any]]:
        controller = self._controller(entry)
        label = f"controller {controller.serial or controller.id}"
        place = next((number for number, one in enumerate(self.described) if _is(one, controller)), None)
        if place is None:
            raise Refused(f"The {label} could not be described, so it could not be restored.", item=label)
        before = self.described[place]
        own = {key: value for key, value in entry.items() if key not in ("provider", "id", "serial", "volumes", "drives")}
        joined = _deep(before, own, label)
        for key, noun, places_of in (("volumes", "volume", self._volume_places), ("drives", "drive", _drive_places)):
            if entry.get(key):
                items = [(item, places_of(item, controller, before, label)) for item in entry[key]]
                joined[key] = _with_items(before.get(key) or [], items, noun, label)
        return place, joined

    def _controller(self, entry: Values) -> Controller:
        matching = [one for one in self.controllers if _fits(entry, one)]
        if len(matching) != 1:
            there = ", ".join(f"{one.id} ({one.provider}, serial {one.serial})" for one in self.controllers) or "none"
            what = str(entry.get("serial") or entry.get("id") or "")
            problem = "is ambiguous: set its serial" if matching else "is not on this host"
            raise BadInput(f"The controller{f' {what}' if what else ''} {problem}; controllers of this host: {there}.", item=what)
        return matching[0]

    @staticmethod
    def _volume_places(volume: Values, controller: Controller, before: Values, label: str) -> list[int]:
        """Where what a variant calls a volume is described."""
        by = next((key for key in ("wwn", "name", "id") if volume.get(key) is not None), "id")
        value = str(volume[by])
        facts = [one for one in controller.volumes if _is_for_all(volume) or str(one.get(by)) == value]
        if not facts:
            there = ", ".join(str(one.get("name") or one.get("id")) for one in controller.volumes) or "none"
            raise BadInput(f"The {label} has no volume with {by} {value}; its volumes: {there}.", item=value)
        described = before.get("volumes") or []
        places = []
        for fact in facts:
            place = next(
                (number for number, one in enumerate(described) if any(one.get(key) is not None and str(one[key]) == fact.get(key) for key in _NAMES)), None
            )
            if place is None:
                raise Refused(f"The volume {value} of the {label} could not be described, so it could not be restored.", item=value)
            places.append(place)
        return places


def _is_for_all(item: Values) -> bool:
    """Whether an entry is that of all volumes or of all drives."""
    return _ALL in (str(item.get("address")), str(item.get("id"))) and item.get("wwn") is None and item.get("name") is None


def _drive_places(drive: Values, _controller: Controller, before: Values, label: str) -> list[int]:
    address = str(drive["address"])
    plain = _plain_address(address)
    places = [number for number, one in enumerate(before.get("drives") or []) if _is_for_all(drive) or _plain_address(str(one["address"])) == plain]
    if not places:
        raise Refused(f"The drive {address} of the {label} is not there or could not be described, so it could not be restored.", item=address)
    return places


def _with_items(described: Entries, items: t.Sequence[tuple[Values, list[int]]], noun: str, label: str) -> list[dict[str, t.Any]]:
    """Volumes or drives with the options of a variant; those of one item take precedence over those of all, as in the layer.

    :raises BadInput: for an item that two entries name in two ways.
    """
    joined = [dict(one) for one in described]
    named: dict[int, str] = {}
    for item, places in sorted(items, key=lambda one: not _is_for_all(one[0])):
        label_of = next(str(item[key]) for key in ("address", *_NAMES) if item.get(key) is not None)
        options = {key: one for key, one in item.items() if key not in ("address", *_NAMES)}
        for place in places:
            if not _is_for_all(item) and named.setdefault(place, label_of) != label_of:
                raise BadInput(f"{named[place]} and {label_of} are the same {noun} of the {label}: name it once.", item=label_of)
            joined[place] = _deep(joined[place], options, f"{noun.capitalize()} {label_of} of the {label}")
    return joined


def _plain_address(address: str) -> str:
    return address.replace(" ", "").lower()


def _deep(before: Values, options: Values, item: str) -> dict[str, t.Any]:
    """An entry with options set; of a dictionary only those that are given."""
    require_described(options, before, item)
    joined = dict(before)
    for key, value in options.items():
        inner = before.get(key)
        joined[key] = _deep(inner, value, f"{item}: {key}") if isinstance(inner, t.Mapping) and isinstance(value, t.Mapping) else value
    return joined


def _is(entry: Values, controller: Controller) -> bool:
    same_tool = entry.get("provider", controller.provider) == controller.provider
    return same_tool and (str(entry["serial"]) == controller.serial if entry.get("serial") else str(entry.get("id")) == controller.id)


def _fits(entry: Values, controller: Controller) -> bool:
    return (
        entry.get("provider", "auto") in ("auto", controller.provider)
        and str(entry.get("id", _ALL)) in (_ALL, controller.id)
        and str(entry.get("serial") or controller.serial) == controller.serial
    )
