# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The write caches of the drives of a host as ``drive_write_cache_drives``."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import (
    Candidate,
    Objection,
    Permission,
    Values,
    Variable,
    objection_of,
    prove,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.drives import own_path, unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveSpec, DriveWriteCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import ABSENT, ENABLED, DriveCache
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import query_drives

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

VARIABLE = "drive_write_cache_drives"

_IGNORED = Permission("allow_ignored_flushes", "Its cache is on below a layer that passes no flushes on: acknowledged writes may be lost in a power failure.")


def describe(runner: Runner, devices: Devices, root: Path = Path("/")) -> Variable:
    """Every drive of the host that has a volatile write cache. Drives that a RAID controller presents belong to that controller.

    There is no default to leave out: what is not listed is not kept as it is.
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
    entries, left_out = prove(candidates, _checker(runner, candidates, root), alone=True)
    return Variable(VARIABLE, entries, notes=(*notes, *left_out))


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


def _checker(runner: Runner, candidates: t.Sequence[Candidate], root: Path) -> t.Callable[[t.Sequence[Values]], Objection | None]:
    """The drives are read once more, all together, by the layer that would set them."""
    state = DriveWriteCacheLayer(runner, [DriveSpec(**candidate.forms[0]) for candidate in candidates], root).read()
    return lambda entries: objection_of(lambda: DriveWriteCacheLayer(runner, [DriveSpec(**entry) for entry in entries], root), state)
