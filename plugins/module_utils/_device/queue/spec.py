# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users request for block queues: entries that name a device or match many, and what of them comes to which device."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import EITHER, MATCH_OPTIONS, Match, read_match
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import FLAGS, ORDER, PROFILES
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import Queue

DEVICE_OPTIONS: t.Mapping[str, t.Any] = {
    "device": {"type": "str"},
    "match": {"type": "dict", "options": MATCH_OPTIONS},
    "members": {"type": "bool", "default": False},
    "profile": {"type": "str", "choices": ["flash_array", "hdd", "ssd", "nvme"]},
    "scheduler": {"type": "str"},
    "nr_requests": {"type": "int"},
    "nomerges": {"type": "int", "choices": [0, 1, 2]},
    "read_ahead_kb": {"type": "int"},
    "rq_affinity": {"type": "int", "choices": [0, 1, 2]},
    "max_sectors_kb": {"type": "int"},
    "wbt_lat_usec": {"type": "int"},
    "queue_depth": {"type": "int"},
    "rotational": {"type": "bool"},
    "add_random": {"type": "bool"},
    "persistent": {"type": "bool", "default": True},
}
MODULE_OPTIONS: t.Mapping[str, t.Any] = {"module": {"type": "str", "required": True}, "options": {"type": "dict", "default": {}}}


def argument_spec() -> dict[str, t.Any]:
    """The options of the module ``block_queue``."""
    devices = {"type": "list", "elements": "dict", "default": [], "options": DEVICE_OPTIONS, "required_one_of": EITHER, "mutually_exclusive": EITHER}
    return {
        "devices": devices,
        "module_options": {"type": "list", "elements": "dict", "default": [], "options": MODULE_OPTIONS},
        "exclusive": {"type": "bool", "default": False},
    }


@frozen
class QueueSpec:
    """One entry of the list. ``settings`` are the values that it names itself, in the order in which they are set."""

    number: int
    device: str | None = None
    match: Match | None = None
    members: bool = False
    profile: str | None = None
    settings: t.Mapping[str, int | str] = field(default_factory=dict)
    persistent: bool = True

    @property
    def name(self) -> str:
        """How messages name the entry."""
        return f"{self.device} (entry {self.number})" if self.device else f"the match of entry {self.number}"

    @property
    def requested(self) -> dict[str, QueueValue]:
        """Every setting of the entry: those of its profile, and over them its own."""
        found = {key: QueueValue(value, self.number, self.profile) for key, value in PROFILES.get(self.profile or "", {}).items()}
        found.update({key: QueueValue(value, self.number) for key, value in self.settings.items()})
        return {key: found[key] for key in ORDER if key in found}


@frozen
class QueueValue:
    """A wanted value, and the profile that it comes from: such a value is fitted to what the device takes."""

    value: int | str
    entry: int
    profile: str | None = None


def read_specs(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[QueueSpec]:
    """The entries of the module's list.

    :raises BadInput: for one that contradicts itself or sets nothing.
    """
    return [_read_spec(number, entry) for number, entry in enumerate(entries, 1)]


def _read_spec(number: int, entry: t.Mapping[str, t.Any]) -> QueueSpec:
    settings = {key: int(entry[key]) if key in FLAGS else entry[key] for key in ORDER if entry.get(key) is not None}
    spec = QueueSpec(
        number=number,
        device=entry.get("device"),
        match=read_match(entry["match"], number) if entry.get("match") is not None else None,
        members=bool(entry.get("members")),
        profile=entry.get("profile"),
        settings=settings,
        persistent=bool(entry.get("persistent", True)),
    )
    if not spec.requested and spec.persistent:
        raise BadInput(f"{spec.name}: nothing is set: name a profile or a setting, or set persistent: false to remove its boot rule.", item=spec.device)
    for key, low in (("wbt_lat_usec", -1), ("read_ahead_kb", 0), ("queue_depth", 1), ("nr_requests", 1), ("max_sectors_kb", 1)):
        if key in settings and int(settings[key]) < low:
            raise BadInput(f"{spec.name}: {key} is at least {low}{' (the default of the kernel)' if low < 0 else ''}.", item=spec.device)
    if spec.match is not None and spec.members and not spec.match.kind:
        raise BadInput(f"{spec.name}: members: true selects the disks below other devices: select those with kind.")
    return spec


@frozen
class Selected:
    """What comes to one queue. ``entries``: the numbers of the list, the one that decides last.

    :param lenient: a multipath device beside its paths, on which a setting that it does not have is left out.
    """

    queue: Queue
    item: str
    requested: t.Mapping[str, QueueValue]
    persistent: bool
    entries: tuple[int, ...]
    named: tuple[str, ...] = ()
    lenient: bool = False


#: What decides over what: a device that is named, over the disks under one that is named, over what a match meets.
_MATCHED, _MEMBER, _NAMED = 0, 1, 2


def select(queues: t.Mapping[str, Queue], named: t.Mapping[str, t.Sequence[str]], specs: t.Sequence[QueueSpec]) -> list[Selected]:
    """Which settings come to which queue, in the order of kernel names.

    Later entries go before earlier ones, setting by setting; among entries that name a device there may be no contradiction.

    :param named: kernel names of the queues that each path of an entry stands for.
    :raises BadInput: for a contradiction.
    """
    found = {name: _select(queue, queues, named, specs, queue.rotational) for name, queue in queues.items()}
    for one in found.values():
        after = one.requested.get("rotational") if one else None
        if one is None or after is None or bool(after.value) == one.queue.rotational:
            continue
        again = _select(one.queue, queues, named, specs, bool(after.value))
        if again is None or again.entries != one.entries:
            raise BadInput(
                f"{one.item}: with rotational set to {str(bool(after.value)).lower()} by entry {after.entry}, other entries would match it in the next run: "
                "match it by something else, such as model.",
                item=one.item,
            )
    return [one for one in found.values() if one is not None]


def _select(
    queue: Queue, queues: t.Mapping[str, Queue], named: t.Mapping[str, t.Sequence[str]], specs: t.Sequence[QueueSpec], rotational: bool | None
) -> Selected | None:
    levels = [(level, spec) for spec in specs for level in [_level(spec, queue, queues, named, rotational)] if level is not None]
    if not levels:
        return None
    levels.sort(key=lambda pair: (pair[0], pair[1].number))
    requested: dict[str, QueueValue] = {}
    chosen: dict[str, tuple[int, QueueSpec]] = {}
    for level, spec in levels:
        if spec.profile:
            # A profile takes the place of the one before it as a whole: half of each is none.
            requested = {key: value for key, value in requested.items() if value.profile is None or (level != _MATCHED and level == chosen[key][0])}
        for key, value in spec.requested.items():
            if key in requested and level == chosen[key][0] != _MATCHED and requested[key].value != value.value:
                raise BadInput(
                    f"{queue.item}: {key} is {requested[key].value} by {chosen[key][1].name} and {value.value} by {spec.name}: set it once.", item=queue.item
                )
            requested[key], chosen[key] = value, (level, spec)
    direct = [spec for level, spec in levels if level == _NAMED]
    alone = [spec.device for spec in direct if spec.device and len(named[spec.device]) == 1]
    return Selected(
        queue=queue,
        item=alone[-1] if alone else queue.item,
        requested={key: requested[key] for key in ORDER if key in requested},
        persistent=levels[-1][1].persistent,
        entries=tuple(spec.number for level, spec in levels),
        named=tuple(spec.device for spec in direct if spec.device),
        lenient=queue.kind == "multipath",
    )


def _level(spec: QueueSpec, queue: Queue, queues: t.Mapping[str, Queue], named: t.Mapping[str, t.Sequence[str]], rotational: bool | None) -> int | None:
    """The precedence of an entry for a queue; ``None`` if it does not."""
    if spec.device is not None:
        own = named[spec.device]
        if spec.members:
            return _MEMBER if any(queue.name in queues[name].below for name in own) else None
        return _NAMED if queue.name in own else None
    match = spec.match or Match()
    if spec.members:
        tops = (one for one in queues.values() if queue.name in one.below)
        return _MEMBER if any(match.meets(top, top.rotational) for top in tops) else None
    if match.meets(queue, rotational):
        return _MATCHED
    if queue.kind == "multipath" and queue.multiqueue and not match.kind:
        # Its requests pass the schedulers of the paths by: values on the paths alone would have no effect.
        paths = [one for one in queues.values() if one.unit == queue.name and one.name != queue.name]
        return _MATCHED if paths and all(match.meets(path, path.rotational) for path in paths) else None
    return None
