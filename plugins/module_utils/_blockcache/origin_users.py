# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What uses the origin of a cache past it, and what a boot would start from it (:mod:`starters` finds that).

Mappings of device-mapper share their claim of a device with each other, so that LVM can run a group on the origin of a cache that is loaded.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices


@frozen
class Starter:
    """One thing that a boot starts from a bare origin.

    :param item: the cache.
    :param text: one sentence with what to do.
    :param early: whether it does not wait for the cache.
    """

    item: str
    text: str
    early: bool


def partitions_of(devices: Devices, device: BlockDevice) -> list[BlockDevice]:
    """Those of the kernel, and those that kpartx has mapped: neither uses the device by being there."""
    return [one for one in map(devices.get, (*device.partitions, *device.holders)) if one is not None and one.is_part]


def users_past(devices: Devices, origin_name: str | None, own: t.Container[str]) -> tuple[str, ...]:
    """What uses an origin, or a partition of it, past its cache; each as the rest of a sentence about it.

    :param own: kernel names of the devices of the cache.
    """
    origin = devices.get(origin_name) if origin_name else None
    if origin is None:
        return ()
    found = []
    for one in (origin, *partitions_of(devices, origin)):
        where = "" if one is origin else f"has the partition {one.name}, which "
        parts = {part.name for part in partitions_of(devices, one)}
        holders = [_spelled(devices, name) for name in one.holders if name not in own and name not in parts]
        found += [f"{where}is used by {', '.join(holders)}"] if holders else []
        found += [f"{where}is mounted on {one.mountpoints[0]}"] if one.mountpoints else []
        found += [f"{where}is swap space"] if one.swap else []
    return tuple(found)


def past_sentence(item: str, cached: str, origin: str, users: t.Sequence[str]) -> str:
    """What it means that an origin is used past its cache."""
    return (
        f"The origin {origin} of {cached} {' and '.join(users)}, past its cache {item}: one of the two sees and writes old data. Nothing is flushed while it is"
        f" so, as that would overwrite what was written past the cache: stop using both at once, keep a copy of {origin}, and decide which of them is right"
    )


def _spelled(devices: Devices, name: str) -> str:
    device = devices.get(name)
    return f"{name} ({device.dm_name})" if device is not None and device.dm_name else name
