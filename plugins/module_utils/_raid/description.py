# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of a RAID controller as an entry of ``raid_cache_controllers``."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import (
    Candidate,
    Check,
    Entry,
    Objection,
    Permission,
    Values,
    objection_of,
    prove,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    DEFAULT,
    DIRECT,
    DISABLED,
    ENABLED,
    PER_DRIVE,
    UNKNOWN,
    Controller,
    Drive,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import (
    CONTROLLER_ATTRIBUTES,
    DRIVE_ATTRIBUTES,
    VOLUME_ATTRIBUTES,
    Subject,
    configured,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.in_force import not_in_force, sentences
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState

_UNPROTECTED = Permission("allow_unprotected", "It keeps acknowledged writes where a power failure loses them.")
#: Nothing is changed by it where it is so, and without it the value could not be brought back.
_LEFT_TO_DRIVES = Permission("allow_unprotected", "It leaves the caches of drives to the drives, and most have them on.")
#: Of more items with something that cannot be described only the first is explained.
_MOST_NOTES = 3
#: Values that a controller begins with; they are written only when all settings are asked for.
_USUAL: t.Mapping[str, tuple[str, ...]] = {"io": (DIRECT,), "drive_cache": (DEFAULT, PER_DRIVE), "no_battery_write_cache": (DISABLED,)}


class RaidHost:
    """What a proof needs: the state that was read, and the tools by which the layer would be made."""

    def __init__(self, runner: Runner, state: RaidState, providers: t.Sequence[RaidProvider]) -> None:
        self.runner = runner
        self.state = state
        self.providers = providers

    def check(self, controllers: t.Sequence[Values], layer: t.Any = RaidCacheLayer, parse: t.Callable[..., t.Any] = parse_controllers) -> Objection | None:
        """Whether a run of a layer with these controllers would leave the host as it is."""
        return objection_of(lambda: layer(self.runner, parse(controllers), self.providers), self.state)

    def follows(self, controller: Controller, drive: Drive) -> str | None:
        """Why the cache of a drive is no setting of its own: it follows from that of its volume or of the controller."""
        provider = next(seen.source.provider for seen in self.state.controllers if seen.controller is controller)
        other = ENABLED if configured(drive, "write_cache") == DISABLED else DISABLED
        return provider.objection(controller, drive, {"write_cache": other}, _told(controller, CONTROLLER_ATTRIBUTES, every=True))


def describe_controller(host: RaidHost, controller: Controller, *, every: bool = False, by_match: bool = False) -> tuple[Entry | None, list[str]]:
    """The entry of one controller without its SSD cache, and what cannot be described of it.

    :param by_match: drives that agree with all others of their model are described by one entry.
    """
    who = identity_of(controller)
    whole, remarks, notes = dict(who), [], []
    for key, items, candidate_of in (("volumes", controller.volumes, _volume), ("drives", controller.drives, functools.partial(_drive, host))):
        candidates = [candidate for item in items for candidate in [candidate_of(controller, item, every)] if candidate is not None]
        # What is stored and not in effect is a matter of the whole entry.
        check = functools.partial(_check_items, host, {**who, "require_effective": False}, key)
        entries, left_out = prove(candidates, check, alone=True)
        if key == "drives" and by_match:
            entries = _by_model(entries, controller, check)
        whole.update({key: [dict(entry.values) for entry in entries]} if entries else {})
        remarks += _remarks(key[:-1], entries)
        notes += left_out if len(left_out) <= _MOST_NOTES else [left_out[0], f"{len(left_out) - 1} more {key} of {controller.label} have such values."]
    entry, left_out = _prove_controller(host, controller, whole, tuple(remarks), every)
    return entry, [*notes, *left_out]


def _by_model(entries: tuple[Entry, ...], controller: Controller, check: Check) -> tuple[Entry, ...]:
    """The same, with one entry in the place of those of all drives of a model, where they have the same values."""
    own = {entry.values["address"]: {key: value for key, value in entry.values.items() if key != "address"} for entry in entries if not entry.notes}
    for model in dict.fromkeys(drive.model for drive in controller.drives if drive.model and not set("*?[") & set(drive.model)):
        drives = [drive.address for drive in controller.drives if drive.model == model]
        values = own.get(drives[0])
        if len(drives) < 2 or not values or any(own.get(address) != values for address in drives):
            continue
        changed = (Entry({"match": {"model": [model]}, **values}), *(entry for entry in entries if entry.values.get("address") not in drives))
        entries = changed if check([entry.values for entry in changed]) is None else entries
    return entries


def _remarks(kind: str, entries: t.Sequence[Entry]) -> list[str]:
    """The comments on volumes or drives, each once, with those that it is about."""
    about: dict[str, list[str]] = {}
    for entry in entries:
        for note in entry.notes:
            about.setdefault(note, []).append(next(str(entry.values[key]) for key in ("wwn", "name", "id", "address") if key in entry.values))
    return [f"{kind.capitalize()} {', '.join(names)}: {note}" for note, names in about.items()]


def _check_items(host: RaidHost, who: Values, key: str, entries: t.Sequence[Values]) -> Objection | None:
    return host.check([{**who, key: list(entries)}])


def _prove_controller(host: RaidHost, controller: Controller, whole: Values, notes: tuple[str, ...], every: bool) -> tuple[Entry | None, tuple[str, ...]]:
    """The settings of the controller itself; where something is stored and not in effect, with the permission to leave it so."""
    extras = {tuple(name.split(".")): value for name, value in _told(controller, CONTROLLER_ATTRIBUTES, every).items()}
    item = f"{controller.label[:1].upper()}{controller.label[1:]}"

    def proven(form: Values) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        required = _needed(extras)
        return prove([Candidate(item, (form,), (extras,), required=required, permissions=(_UNPROTECTED,), notes=notes)], host.check)

    entries, left_out = proven(whole)
    if entries and not left_out:
        return entries[0], ()
    relaxed, fewer = proven({**whole, "require_effective": False})
    if not relaxed or (entries and len(fewer) >= len(left_out)):
        return (entries[0] if entries else None), left_out
    stored = sentences(not_in_force(host.state, parse_controllers([relaxed[0].values])))
    return Entry(relaxed[0].values, (*relaxed[0].notes, *stored)), fewer


def identity_of(controller: Controller) -> dict[str, str]:
    """What names a controller: its tool and its serial number, or the number that the tool gave it."""
    known = {"serial": controller.serial} if controller.serial else {"id": controller.id}
    return {"provider": controller.provider, **known}


def _told(subject: Subject, attributes: t.Mapping[str, tuple[str, ...] | None], every: bool) -> dict[str, t.Any]:
    values = {name: configured(subject, name) for name in attributes}
    known = {name: value for name, value in values.items() if value not in (None, UNKNOWN) and (attributes[name] is None or value in attributes[name])}
    return {name: value for name, value in known.items() if every or value not in _USUAL.get(name.split(".")[0], ())}


def _volume(controller: Controller, volume: Volume, every: bool) -> Candidate | None:
    settings = _told(volume, VOLUME_ATTRIBUTES, every)
    forms = volume_identities(volume)
    extras = {(name,): value for name, value in settings.items()}
    item = f"Volume {volume.name or volume.id} of {controller.label}"
    return Candidate(item, forms, (extras,), bare=False, required=_needed(extras), permissions=(_UNPROTECTED,)) if extras else None


def _needed(extras: t.Mapping[tuple[str, ...], t.Any]) -> tuple[Permission, ...]:
    return (_LEFT_TO_DRIVES,) if any(path[0] == "drive_cache" and value in (DEFAULT, PER_DRIVE) for path, value in extras.items()) else ()


def volume_identities(volume: Volume) -> tuple[Values, ...]:
    """The ways to name a volume, the one that lasts longest first."""
    known = {"wwn": volume.wwn, "name": volume.name, "id": volume.id}
    return tuple({key: value} for key, value in known.items() if value)


def _drive(host: RaidHost, controller: Controller, drive: Drive, every: bool) -> Candidate | None:
    extras = {(name,): value for name, value in _told(drive, DRIVE_ATTRIBUTES, every).items()}
    if not extras:
        return None
    item = f"Drive {drive.address} of {controller.label}"
    reason = host.follows(controller, drive)
    obstacle = f"Its write cache cannot be set, since {reason.partition(', since ')[2] or reason}." if reason else ""
    return Candidate(item, ({"address": drive.address},), (extras,), bare=False, permissions=(_UNPROTECTED,), obstacle=obstacle)
