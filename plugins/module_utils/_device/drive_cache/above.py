# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies on top of a drive: what ends flushes until it is loaded again, and what never passes them on."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import WRITE_THROUGH

#: Targets of device-mapper whose table can be read and loaded again as it is. Of dm-crypt and dm-integrity ``dmsetup table`` shows no key,
#: of RAID and multipath targets it shows less than they have, and a snapshot may be merging.
_RELOADABLE = frozenset({"linear", "striped", "cache", "writecache", "thin", "thin-pool"})


@frozen
class Above:
    """A device-mapper device over a drive that ends flushes: its table was loaded while no drive below had its cache on.

    :param name: the device-mapper name.
    :param reloadable: whether its table can be loaded again while it is in use.
    """

    name: str
    path: str
    reloadable: bool


def ending_flushes(devices: Devices, paths: t.Sequence[BlockDevice], exports: t.Container[str]) -> list[BlockDevice]:
    """What device-mapper made over a drive while its cache was off: it decides whether it passes flushes on when its table is loaded.

    What lies over something that ignores every flush is none of them: to load it again would change nothing.
    """
    found = {}
    for path in paths:
        for device in devices.children(path):
            between = [device, *devices.parents(device)]
            if device.dm_name and device.queue.get("write_cache") == WRITE_THROUGH and not _any_ignores_flushes(between, exports):
                found[device.name] = device
    return sorted(found.values(), key=lambda device: len(devices.parents(device)))


def above_of(device: BlockDevice, tables: t.Mapping[str, t.Sequence[t.Sequence[str]]]) -> Above:
    """A device that ends flushes, and whether its table can be loaded again.

    :param tables: those of ``dmsetup table``, by name.
    """
    rows = tables.get(device.dm_name or "", ())
    # The kernel takes passthrough only while no block is dirty, which loading it may change.
    reloadable = bool(rows) and all(row[2] in _RELOADABLE and "passthrough" not in row for row in rows)
    path = f"/dev/{device.logical_volume}" if device.logical_volume else f"/dev/mapper/{device.dm_name}"
    return Above(device.dm_name or "", path, reloadable)


def _any_ignores_flushes(devices: t.Iterable[BlockDevice], exports: t.Container[str]) -> bool:
    return any(device.kind == "flashcache" or (device.kind == "dm" and not device.dm_targets) or device.name in exports for device in devices)


def ignoring_flushes(devices: Devices, paths: t.Sequence[BlockDevice], exports: t.Container[str]) -> tuple[str, ...]:
    """What takes flushes over a drive and never passes them on, as it is named in a message.

    :param paths: every path to the drive.
    :param exports: kernel names of the devices that this host serves to others.
    """
    found: dict[str, str] = {}
    for path in paths:
        for device in (path, *devices.children(path)):
            if device.kind == "flashcache":
                found[device.name] = f"flashcache {device.dm_name or device.name}"
            elif device.kind == "dm" and not device.dm_targets:
                # Without an answer from dmsetup it could be a flashcache as well.
                found[device.name] = f"the mapping {device.dm_name or device.name}, whose target dmsetup does not report, perhaps"
            elif device.name in exports:
                found[device.name] = f"the AoE target vblade, which serves {device.path},"
    return tuple(found[name] for name in sorted(found))
