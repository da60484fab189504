# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The write caches of the drives of a host as ``drive_write_cache_drives``."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import (
    Candidate,
    Check,
    Entry,
    Permission,
    Values,
    Variable,
    objection_of,
    prove,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.drives import own_path, unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveState, DriveWriteCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.match_rule import mark_of, match_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import ABSENT, DISABLED, ENABLED, VARIABLE, DriveCache, read_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import query_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import read_match

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_IGNORED = Permission("allow_ignored_flushes", "Its cache is on below a layer that passes no flushes on: acknowledged writes may be lost in a power failure.")


def describe(runner: Runner, devices: Devices, root: Path = Path("/"), *, by_match: bool = False) -> Variable:
    """Every drive of the host that has a volatile write cache. Drives that a RAID controller presents belong to that controller.

    There is no default to leave out: what is not listed is not kept as it is.

    :param by_match: drives that agree with all others of their model, or that have a rule by match, are described by entries with ``match``.
    """
    drives: dict[str, BlockDevice] = {}
    for device in devices:
        if device.kind == "disk" and device.size and device.transport != "raid":
            drives.setdefault(unit_of(devices, device), device)
    caches = query_drives(runner, list(drives.values()), root)
    notes, candidates = [], []
    for drive in drives.values():
        cache, path = caches[drive.name], _path_of(devices, drive)
        name = path or drive.path
        if isinstance(cache, StorageError):
            notes.append(f"The write cache of {name} could not be read: {cache.message}")
        elif cache.drive is None:
            notes.append(f"The write cache of {name} could not be read: {cache.reason or 'the drive does not report it'}.")
        elif cache.drive != ABSENT and path is None:
            notes.append(f"The write cache of {name} is not described: the drive has no persistent path; the cache is {cache.drive}.")
        elif cache.drive != ABSENT:
            candidates.append(_candidate(t.cast(str, path), cache))
    # The drives are read once more, all together, by the layer that would set them.
    state = DriveWriteCacheLayer(runner, read_specs([candidate.forms[0] for candidate in candidates]), root).read()

    def check(entries: t.Sequence[Values]) -> t.Any:
        return objection_of(lambda: DriveWriteCacheLayer(runner, read_specs(entries), root), state)

    entries, left_out = prove(candidates, check, alone=True)
    return Variable(VARIABLE, _by_match(entries, state, check) if by_match else entries, notes=(*notes, *left_out))


def _by_match(entries: tuple[Entry, ...], state: t.Sequence[DriveState], check: Check) -> tuple[Entry, ...]:
    """The same, with one entry in the place of several wherever the host would stay as it is."""
    drives = {drive.item: drive for drive in state}
    for groups in (_with_rules(entries, drives), *([group] for group in _of_models(entries, drives))):
        gone = {id(entry) for _values, group in groups for entry in group}
        changed = (*(Entry(values) for values, _group in groups), *(entry for entry in entries if id(entry) not in gone))
        if groups and check([entry.values for entry in changed]) is None:
            entries = changed
    return tuple(Entry(_as_written(entry.values), entry.notes) for entry in entries)


#: The values of an entry with ``match``, and the entries that it stands for.
_Group = t.Tuple[Values, t.Sequence[Entry]]


def _with_rules(entries: t.Sequence[Entry], drives: t.Mapping[str, DriveState]) -> list[_Group]:
    """One for each match that has rules."""
    lines = {mark: line for drive in drives.values() for line in drive.by_match for mark in [mark_of(read_match(match_of(line), 0))]}
    left = [entry for entry in entries if entry.values == {"device": entry.values["device"], "write_cache": DISABLED}]
    found = []
    for line in lines.values():
        # Whatever the kind of a drive is: a match has a rule for each.
        match = read_match(match_of(line), 0)
        group = [entry for entry in left for reach in [drives[entry.values["device"]].reach] if reach and reach.meets(match)]
        left = [entry for entry in left if entry not in group]
        found.append(({"match": match_of(line), "write_cache": DISABLED}, group))
    return found


def _of_models(entries: t.Sequence[Entry], drives: t.Mapping[str, DriveState]) -> list[_Group]:
    """One for each model whose drives all have the same values. What a match disables has a rule by match, so what has none is left out."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        traits = drives[entry.values["device"]].traits if "device" in entry.values else None
        if traits and traits.models and not set("*?[") & set(traits.models[0]):
            found.setdefault((traits.models[0], traits.transport), []).append(entry)
    groups = []
    for (model, transport), group in found.items():
        own, *others = [{key: value for key, value in entry.values.items() if key != "device"} for entry in group]
        agree = others and all(one == own for one in others) and not any(entry.notes for entry in group)
        if agree and own != {"write_cache": DISABLED}:
            groups.append(({"match": {"model": [model], "transport": [transport]}, **own}, group))
    return groups


def _as_written(values: Values) -> Values:
    """Lists of one text as that text: Ansible takes them for the same, unless the text has a comma."""
    if "match" not in values:
        return values
    short = {key: value[0] if isinstance(value, list) and len(value) == 1 and "," not in value[0] else value for key, value in values["match"].items()}
    return {**values, "match": short}


def _path_of(devices: Devices, drive: BlockDevice) -> str | None:
    """The path that lasts, if it leads to the drive now: a link that udev should have made may be missing."""
    path = own_path(devices, drive)
    try:
        return path if path is not None and unit_of(devices, devices.resolve(path)) == unit_of(devices, drive) else None
    except DeviceMissing:
        return None


def _candidate(path: str, cache: DriveCache) -> Candidate:
    form = {"device": path, "write_cache": cache.drive}
    # Without a boot rule the setting is one of now only.
    return Candidate(path, (form, {**form, "persistent": False}), permissions=(_IGNORED,) if cache.drive == ENABLED else ())
