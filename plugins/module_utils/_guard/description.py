# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that could be measured, as proposals for ``fio_benchmark_targets``."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Entry, Variable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_signatures

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

VARIABLE = "fio_benchmark_targets"
_KINDS = frozenset({"disk", "partition", "multipath", "lvm", "crypt", "dm", "md", "bcache", "flashcache", "aoe"})


def describe(devices: Devices, runner: Runner) -> Variable:
    """Every device that nothing on this host is known to use. The guard of a run decides, and nothing here permits it anything."""
    free = [device for device in devices if device.kind in _KINDS and device.size and not _is_used(device)]
    return Variable(VARIABLE, tuple(_entry(device, devices, runner) for device in free), commented=True)


def _is_used(device: BlockDevice) -> bool:
    in_use = device.mountpoints or device.swap or device.holders or device.partitions
    # A part of an LVM volume is no device of its own.
    hidden = device.kind == "lvm" and device.logical_volume is None
    return bool(in_use or device.read_only or device.removable or hidden or device.stable_path is None)


def _entry(device: BlockDevice, devices: Devices, runner: Runner) -> Entry:
    values = {"device": device.stable_path, **({"identity": device.identity} if device.identity else {})}
    return Entry(values, (f"{format_size(device.size)}, {device.model or device.kind}; {_contents(device, devices, runner)}.",))


def _contents(device: BlockDevice, devices: Devices, runner: Runner) -> str:
    found = device.signature.type or device.signature.partition_table if device.signature is not None else None
    if found is None:
        # A read of what is suspended waits until that ends.
        if any(one.suspended for one in (device, *devices.parents(device))):
            return "what is on it could not be read, because it is suspended"
        try:
            # udev may not have probed the device since something was written to it.
            found = ", ".join(read_signatures(runner, device.path))
        except StorageError:
            return "what is on it could not be read"
    return f"carries {found}: writing to it destroys that" if found else "no signature was found on it"
