# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the variants of a sweep mean on one host: each is joined with what was found there, item by item. Pure.

Only items that a variant names are configured. Every variant sets all of them, so that nothing is left of the variant before it: drives, queues,
controllers and links have what was found where a variant says nothing, and a cache that a variant lacks is absent. What could not be restored is refused.

RAID controllers of a variant: what it names by number or name is what the host describes by serial number and WWN.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import PROFILES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CACHES, CONTROLLERS, DRIVES, LINKS, QUEUES, Variant
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


_WRITEBACK = "writeback"
_AOE = "storage_network_aoe"
_INITIATOR, _SERVED = f"{_AOE}_interfaces", f"{_AOE}_targets"


@dataclass(frozen=True)
class Found:
    """What a host was before the sweep.

    :param contents: the described variables.
    :param controllers: what names the RAID controllers and their volumes.
    :param paths: the device that each path of a variant or of a described entry leads to; a path that is left out leads nowhere.
    :param indescribable: the variables of which the host has something that could not be described.
    :param notes: by variable what that is, one sentence each.
    """

    contents: Values
    controllers: tuple[Controller, ...] = ()
    paths: t.Mapping[str, str] = field(default_factory=dict)
    indescribable: t.Collection[str] = ()
    notes: t.Mapping[str, t.Sequence[str]] = field(default_factory=dict)

    def device(self, path: t.Any) -> str:
        """What a path leads to, or the path itself."""
        return self.paths.get(str(path), str(path))


@dataclass(frozen=True)
class HostSweep:
    """The configurations of one host.

    :param variables: of each variant that is possible, all variables of the cache layers that the sweep touches.
    :param refused: the reason for each of the others.
    :param restore: the variables that restore what was found.
    """

    variables: t.Mapping[str, dict[str, t.Any]]
    refused: t.Mapping[str, str]
    restore: dict[str, t.Any]


def devices_of(variants: t.Sequence[Variant], contents: Values) -> list[str]:
    """Every path by which items are compared."""
    lists = [entries for one in (*(variant.variables for variant in variants), contents) for name, entries in one.items() if name in (DRIVES, QUEUES, CACHES)]
    entries = [entry for found in lists for entry in found]
    keys = ("device", "origin")
    return sorted({str(entry[key]) for entry in entries for key in keys if str(entry.get(key) or "").startswith("/")})


def host_sweep(variants: t.Sequence[Variant], found: Found, inventory: Values, earlier: Values | None = None) -> HostSweep:
    """The variants on a host.

    :param inventory: variables of the host; the entry of a cache with the same name completes that of a variant.
    :param earlier: what restores the host according to its journal: an interrupted run may have changed more than these variants do.
    """
    before = earlier or {}
    kinds: list[t.Any] = [
        kind
        for name, kind in (
            (DRIVES, lambda: _Devices(DRIVES, found)),
            (CONTROLLERS, lambda: Controllers(found.contents.get(CONTROLLERS) or [], found.controllers)),
            (CACHES, lambda: _Caches(found, [*(inventory.get(CACHES) or []), *_defined(variants)])),
            (QUEUES, lambda: _Devices(QUEUES, found)),
            (LINKS, lambda: _Links(found)),
        )
        if name in before or any(name in variant.variables for variant in variants)
        for kind in (kind(),)
    ]
    for kind in kinds:
        kind.touch(before.get(kind.name) or [])
    refused: dict[str, str] = {}
    for variant in variants:
        try:
            for kind in kinds:
                kind.touch(variant.variables.get(kind.name) or [])
        except StorageError as error:
            refused[variant.name] = error.message
    possible = [variant for variant in variants if variant.name not in refused]
    if refused and len(possible) == 1 and earlier is None:
        refused[possible.pop().name] = "Every other variant is refused, so it could not be compared with anything."
    variables = {variant.name: {kind.name: kind.wanted(variant.variables.get(kind.name) or []) for kind in kinds} for variant in possible}
    return HostSweep(variables, refused, {kind.name: kind.wanted([]) for kind in kinds})


def draining(planned: HostSweep, contents: Values) -> list[str]:
    """The variants that are measured with a cache that may still write back what was written before, by another variant or in another mode."""
    found = contents.get(CACHES) or []
    caches = {name: _present(variables, found) for name, variables in planned.variables.items()}
    if not any(cache.get("mode") == _WRITEBACK for cache in (*found, *(one for of in caches.values() for one in of))):
        return []
    return [name for name, of in caches.items() if of]


def refilled(planned: HostSweep, steps: t.Sequence[tuple[str, int]]) -> list[bool]:
    """Which steps fill their targets again: those whose SSD caches are not as in the step before, so that they are empty or hold what another variant read.

    :param steps: variant and repeat of each, in their order. The first of a variant has the fills of its suite in any case.
    """
    caches = {name: [*_present(variables, ()), *_on_controllers(variables)] for name, variables in planned.variables.items()}
    before = [None, *(caches[name] for name, _repeat in steps)]
    return [repeat > 1 and bool(caches[name]) and caches[name] != earlier for (name, repeat), earlier in zip(steps, before)]


def _present(variables: Values, found: Entries) -> list[Values]:
    """The caches of a variant, and those of the host that no variant touches."""
    entries = variables.get(CACHES) or []
    touched = {(entry.get("type"), entry.get("origin")) for entry in entries}
    there = [entry for entry in entries if entry.get("state", "present") == "present"]
    return [*there, *(entry for entry in found if (entry.get("type"), entry.get("origin")) not in touched)]


def _on_controllers(variables: Values) -> list[Values]:
    """The volumes of a variant that an SSD cache of their controller caches, and how that cache is set."""
    found = []
    for controller in variables.get(CONTROLLERS) or []:
        volumes = [volume for volume in controller.get("volumes") or [] if _is_cached(volume.get("maxcache") or {})]
        if volumes:
            names = [{key: volume.get(key) for key in ("wwn", "name", "id", "maxcache")} for volume in volumes]
            found.append({"controller": controller.get("serial") or controller.get("id"), "maxcache": controller.get("maxcache"), "volumes": names})
    return found


def _is_cached(maxcache: Values) -> bool:
    return bool(maxcache.get("read")) or maxcache.get("write", "disabled") != "disabled"


def _defined(variants: t.Sequence[Variant]) -> t.Iterator[Values]:
    """The caches that a variant describes completely; others may name them only."""
    yield from (entry for variant in variants for entry in variant.variables.get(CACHES) or [] if entry.get("type") and entry.get("origin"))


class _Devices:
    """Drives or queues: both are there before the sweep, and stay."""

    def __init__(self, name: str, found: Found) -> None:
        self.name = name
        self.found = found
        self.described = {found.device(entry["device"]): dict(entry) for entry in found.contents.get(name) or []}
        self.touched: dict[str, None] = {}

    def touch(self, entries: Entries) -> None:
        """:raises StorageError: for a device that could not be restored."""
        seen = {}
        for entry in entries:
            device = self.found.device(entry["device"])
            if device in seen:
                raise BadInput(f"{entry['device']} and {seen[device]} are the same device: name it once.", item=entry["device"])
            seen[device] = entry["device"]
            if str(entry["device"]).startswith("/") and str(entry["device"]) not in self.found.paths:
                raise BadInput(f"{entry['device']} is not on this host.", item=entry["device"])
            before = self.described.get(device)
            if before is None:
                what = "write cache" if self.name == DRIVES else "queue"
                reason = next((note for note in self.found.notes.get(self.name, ()) if {device, str(entry["device"])} & set(re.split(r"[\s:,]+", note))), "")
                text = f"The {what} of {entry['device']} could not be described, so it could not be restored{': ' if reason else '.'}{reason}"
                raise Refused(text, item=entry["device"])
            if self.name == QUEUES and entry.get("profile") is not None and str(entry["profile"]) not in PROFILES:
                # It would set nothing, and the variant would be measured as what was found.
                raise BadInput(f"{entry['device']}: there is no profile {entry['profile']}; profiles are {', '.join(PROFILES)}.", item=entry["device"])
            require_described(self._options(entry), before, str(entry["device"]))
        self.touched.update(dict.fromkeys(seen))

    def wanted(self, entries: Entries) -> list[dict[str, t.Any]]:
        given = {self.found.device(entry["device"]): self._options(entry) for entry in entries}
        return [{**self.described[device], **given.get(device, {})} for device in self.touched]

    def _options(self, entry: Values) -> dict[str, t.Any]:
        """With the settings of the profile, so that what it does not set is what was found."""
        profile = PROFILES.get(str(entry.get("profile")), {}) if self.name == QUEUES else {}
        before = self.described.get(self.found.device(entry["device"]), {})
        options = {key: value for key, value in profile.items() if key in before}
        return {**options, **{key: value for key, value in entry.items() if key not in ("device", "profile")}}


class _Links:
    """Interfaces of which a variant lowers the MTU. The other hosts of the network stay as they are, and accept smaller frames as well."""

    name = LINKS

    def __init__(self, found: Found) -> None:
        self.described = {str(entry.get("interface")): dict(entry) for entry in found.contents.get(LINKS) or []}
        self.serves = bool(found.contents.get(_SERVED))
        self.negotiates = _INITIATOR not in found.indescribable
        self.touched: dict[str, None] = {}

    def touch(self, entries: Entries) -> None:
        """:raises StorageError: for an MTU that other hosts would have to follow, and for an interface that could not be restored."""
        for entry in entries:
            interface = str(entry["interface"])
            before = self.described.get(interface)
            if before is None:
                raise Refused(f"{interface} is no interface whose MTU could be described, so it could not be restored: see ip link.", item=interface)
            if self.serves:
                raise Refused(f"This host serves AoE targets: vary the MTU of its initiators, not that of {interface}.", item=interface)
            if not self.negotiates:
                raise Refused(
                    "The AoE initiator of this host could not be described, and would not renegotiate its frames: set storage_network_aoe_interfaces, "
                    "and run the playbook cachefleet.storage.site.",
                    item=interface,
                )
            if int(entry["mtu"]) > int(before["mtu"]):
                raise Refused(
                    f"The MTU of {interface} is {before['mtu']}, and a variant can only lower it, because the other hosts of the network are not changed: "
                    f"set {entry['mtu']} on all hosts of the network first.",
                    item=interface,
                )
        self.touched.update(dict.fromkeys(str(entry["interface"]) for entry in entries))

    def wanted(self, entries: Entries) -> list[dict[str, t.Any]]:
        given = {str(entry["interface"]): int(entry["mtu"]) for entry in entries}
        return [self._with(interface, given.get(interface)) for interface in self.touched]

    def _with(self, interface: str, mtu: int | None) -> dict[str, t.Any]:
        """Boot is left as it is: a host that is rebooted in the sweep is as it was found."""
        before = self.described[interface]
        return before if mtu is None else {**before, "mtu": mtu, "persistent": False}


def initiator(contents: Values) -> dict[str, t.Any]:
    """The AoE initiator as it was found, which renegotiates its frames when the MTU of its interfaces is changed; empty without one."""
    interfaces = contents.get(_INITIATOR)
    return {"interfaces": interfaces, "options": contents.get(f"{_AOE}_options") or {}} if interfaces else {}


class _Caches:
    """SSD caches, of which a variant may have more or fewer than the host had."""

    name = CACHES

    def __init__(self, found: Found, definitions: Entries) -> None:
        self.found = found
        self.definitions: dict[str, dict[str, t.Any]] = {}
        for entry in definitions:
            if entry.get("state", "present") == "present":
                self.definitions.setdefault(str(entry.get("name")), dict(entry))
        self.described = {self._key(entry): dict(entry) for entry in found.contents.get(CACHES) or []}
        self.touched: dict[tuple[str, str], dict[str, t.Any]] = {}

    def _key(self, entry: Values) -> tuple[str, str]:
        """The type and the origin: a device has one cache of a type."""
        origin = str(entry["origin"])
        volume = origin.removeprefix("/dev/") if origin.count("/") == 3 and not origin.startswith("/dev/mapper/") else origin
        return str(entry["type"]), self.found.device(volume)

    def _whole(self, entry: Values) -> dict[str, t.Any]:
        """The entry with what it leaves out: as it was found, or as the inventory or another variant defines it."""
        name = str(entry["name"])
        known = next((one for one in self.described.values() if one["name"] == name and entry.get("type", one["type"]) == one["type"]), None)
        definition = self.definitions.get(name, {})
        if known is None and entry.get("type", definition.get("type")) == definition.get("type") and definition.get("origin"):
            known = self.described.get(self._key(definition))
        defined = definition if entry.get("type", definition.get("type")) == definition.get("type") else {}
        whole = _over(known if known is not None else defined, entry)
        for option in ("type", "origin"):
            if not whole.get(option):
                raise BadInput(f"The cache {name} has no {option}: set it in a variant, or define the cache in {CACHES} of the host.", item=name)
        if known is not None and self._key(whole) == self._key(known):
            whole["name"] = known["name"]
        elif known is None and (described := self.described.get(self._key(whole))) is not None:
            whole = {**_over(described, whole), "name": described["name"]}
        return whole

    def touch(self, entries: Entries) -> None:
        """:raises StorageError: for an incomplete cache."""
        whole = [self._whole(entry) for entry in entries]
        keys = [self._key(one) for one in whole]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                raise BadInput(f"{whole[number]['origin']} has two caches of the type {key[0]}: name it once.", item=whole[number]["name"])
        for one, key in zip(whole, keys, strict=True):
            self.touched.setdefault(key, one)
            if one.get("cache_devices") and not self.touched[key].get("cache_devices"):
                self.touched[key] = one
            # A cache of another type on the same device gives way, and comes back.
            self.touched.update({other: found for other, found in self.described.items() if other[1] == key[1] and other not in self.touched})

    def wanted(self, entries: Entries) -> list[dict[str, t.Any]]:
        whole = {self._key(one): one for one in map(self._whole, entries)}
        present = {key: one for key, one in whole.items() if one.get("state", "present") == "present"}
        origins = {origin for _type, origin in present}
        kept = {key: one for key, one in self.described.items() if key in self.touched and key not in whole and key[1] not in origins}
        there = {**kept, **present}
        return [there[key] if key in there else _absent(definition, _others(key, there)) for key, definition in self.touched.items()]


def _others(key: tuple[str, str], there: t.Iterable[tuple[str, str]]) -> list[str]:
    """The types of the caches that a device has instead of one: the list may name the same device by another link."""
    return [kind for kind, device in there if device == key[1] and kind != key[0]]


def _absent(cache: Values, others: t.Sequence[str]) -> dict[str, t.Any]:
    """The entry that removes a cache and gives its devices back to the next variant.

    :param others: the types of the caches that its origin has then.
    """
    kept = {key: cache[key] for key in ("name", "type", "origin", "cache_devices", "mirror") if cache.get(key)}
    released = {"release_devices": True} if cache.get("cache_devices") else {}
    return {**kept, "state": "absent", **released, **({"expect": list(others)} if others else {})}


def _over(before: Values, entry: Values) -> dict[str, t.Any]:
    """An entry over the one before it. Settings belong to a mode: with another mode they are the defaults."""
    other = any(key in entry and entry[key] != before.get(key) for key in ("mode", "kind"))
    settings = {} if other else dict(before.get("settings") or {})
    settings.update(entry.get("settings") or {})
    joined = {**{key: value for key, value in before.items() if key != "settings"}, **{key: value for key, value in entry.items() if key != "settings"}}
    return {**joined, **({"settings": settings} if settings else {})}
