# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the volume that a user names to the cached volume that is meant, and from a name that LVM does not show to the reason. Pure.

The cache of a thin pool or VDO pool is on a hidden volume inside of it (``pool_tdata``, ``vpool_vdata``). A thin volume or VDO volume lies on its
pool, and a snapshot on its origin. Which of the two names a command takes is seen with LVM 2.03.16: ``lvconvert``, ``--activate`` and
``--refresh`` that of the pool (lvmcache(7)), ``--cachemode`` and ``--cachesettings`` only the hidden one.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import REAL
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import volume_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

#: Pools whose cache is on a hidden volume inside.
_POOLS = ("thin-pool", "vdo-pool")
_SIGNATURE = "LVM2_member"

Volumes = t.Mapping[t.Tuple[str, str], "LogicalVolume"]


def resolve(specs: t.Sequence[LvmCacheSpec], volumes: t.Sequence[LogicalVolume]) -> list[LvmCacheSpec]:
    """The items with the cached volumes that are meant by their origins; an item whose origin leads to none stays as it is.

    :raises BadInput: if two items mean the same volume.
    :raises Refused: if an origin is a part of a cache, or leads to several caches.
    """
    by_name = {(volume.vg, volume.name): volume for volume in volumes}
    resolved = [_resolve(spec, by_name) for spec in specs]
    seen: dict[tuple[str, str], LvmCacheSpec] = {}
    for spec in resolved:
        other = seen.setdefault((spec.vg, spec.lv), spec)
        if other.origin != spec.origin:
            raise BadInput(
                f"{spec.name}: {spec.origin} and {other.origin} ({other.name}) both lead to the cache of {spec.full_name}: list it only once.", item=spec.name
            )
    return resolved


def _resolve(spec: LvmCacheSpec, volumes: Volumes) -> LvmCacheSpec:
    named = volumes.get((spec.vg, spec.lv))
    if named is None:
        return spec
    if named.cached:
        return dataclasses.replace(spec, public=_public_name(named, volumes))
    if spec.present and named.segtype not in _POOLS:
        # What is made or changed is named itself.
        return spec
    found = list(dict.fromkeys(volume.name for volume in _cached_below(named, volumes, set())))
    if len(found) > 1:
        raise Refused(
            f"{spec.name}: {spec.origin} leads to the caches of {' and '.join(f'{spec.vg}/{name}' for name in found)}: name one of them as origin.",
            item=spec.name,
        )
    if not found and spec.present and named.devices:
        return dataclasses.replace(spec, lv=named.devices[0], public=named.name)
    if not found:
        _require_no_part(spec, named, volumes)
        return spec
    cached = volumes[spec.vg, found[0]]
    return dataclasses.replace(spec, lv=cached.name, public=_public_name(cached, volumes))


def _cached_below(volume: LogicalVolume, volumes: Volumes, seen: set[str]) -> t.Iterator[LogicalVolume]:
    """The cached volumes that serve a volume, nearest first; what a cache itself is made of is not searched."""
    if volume.name in seen:
        return
    seen.add(volume.name)
    if volume.cached:
        yield volume
        return
    metadata = [volume.name + "_tmeta"] if volume.segtype == "thin-pool" else []
    for name in (*volume.devices, *metadata, volume.pool or "", volume.origin or ""):
        below = volumes.get((volume.vg, name))
        if below is not None:
            yield from _cached_below(below, volumes, seen)


def visible_name(cached: LogicalVolume, volumes: t.Sequence[LogicalVolume]) -> str:
    """What commands for the volume as a whole take: the full name of the pool that a hidden cached volume belongs to, or its own."""
    return f"{cached.vg}/{_public_name(cached, {(volume.vg, volume.name): volume for volume in volumes}) or cached.name}"


def _public_name(cached: LogicalVolume, volumes: Volumes) -> str:
    """The name of the pool whose data a hidden cached volume is: LVM refuses most commands for a hidden name. Empty for a visible one."""
    if not cached.hidden:
        return ""
    pools = [volume for volume in volumes.values() if volume.vg == cached.vg and volume.segtype in _POOLS and cached.name in volume.devices]
    return pools[0].name if pools else ""


def _require_no_part(spec: LvmCacheSpec, named: LogicalVolume, volumes: Volumes) -> None:
    """Refuse a hidden part of a cache: its name is not that of the volume that is cached.

    :raises Refused: naming that volume.
    """
    for cached in volumes.values() if named.hidden else ():
        if cached.vg == named.vg and cached.cached and named.name in _names_within(cached, volumes):
            raise Refused(
                f"{spec.name}: {spec.origin} is a part of the cache of {cached.full_name}: set origin: {cached.full_name}.",
                item=spec.name,
            )


def _names_within(cached: LogicalVolume, volumes: Volumes) -> set[str]:
    found: set[str] = set()
    queue = [*cached.devices, cached.pool or ""]
    while queue:
        part = volumes.get((cached.vg, queue.pop()))
        if part is not None and part.name not in found:
            found.add(part.name)
            queue += [*part.devices, f"{part.name}_cmeta", *(name.replace("_rimage_", "_rmeta_") for name in part.devices)]
    return found


# -- what LVM does not show


def not_shown(spec: LvmCacheSpec, volumes: t.Sequence[LogicalVolume], devices: Devices) -> str:
    """Why a name that LVM does not report is not known to be absent, as the rest of a sentence about it; empty if nothing is hidden.

    A group can be hidden by a filter, by the devices file (lvmdevices(8)) and by its system ID (lvmsystemid(7)), and is then used all the same.
    """
    group = dm.device_name(spec.vg, "")
    active = [device.dm_name or "" for device in devices if device.kind == "lvm" and _of_group(device.dm_name or "", group)]
    reported = {volume.full_name for volume in volumes}
    hidden = [device for device in devices if device.kind == "lvm" and device.dm_name in active and volume_of(device) not in reported]
    wanted = dm.device_name(spec.vg, spec.lv)
    known = any(volume.vg == spec.vg for volume in volumes)
    if any(device.dm_name in (wanted, f"{wanted}{REAL}") for device in hidden) or (hidden and not known):
        return (
            f"is not shown by LVM here, although device-mapper runs {', '.join(sorted({device.dm_name or '' for device in hidden})[:4])}: LVM hides volume"
            f" group {spec.vg} (filter or global_filter in lvm.conf, the devices file of lvmdevices, or the system ID shown by"
            f" vgs --foreign -o vg_name,systemid): make LVM show it"
        )
    return ""


def unlisted_devices(listed: t.Container[str], devices: Devices) -> list[str]:
    """Paths of devices with the label of a physical volume that LVM does not list, and that nothing else is made of."""
    return [
        device.stable_path or device.path
        for device in devices
        if device.signature is not None
        and device.signature.type == _SIGNATURE
        # The volumes of a virtual machine, and what is below an array or a multipath device.
        and device.kind not in ("lvm", "loop")
        and not device.holders
        and device.name not in listed
    ]


def hidden_devices(vg: str, listed: t.Container[str], devices: Devices) -> tuple[str, bool]:
    """Why what a volume group misses may be there, as the rest of a sentence about a volume; empty if nothing is hidden from LVM.

    :param listed: kernel names of the devices of the physical volumes that LVM reports.
    :returns: that, and whether active volumes of the group lie on it, so that it certainly is.
    """
    running = _devices_in_use(dm.device_name(vg, ""), listed, devices)
    found = running or unlisted_devices(listed, devices)
    if not found:
        return "", False
    why = "filter or global_filter in lvm.conf, or the devices file of lvmdevices"
    paths = " and ".join(found)
    if running:
        return (
            f"is on a device that LVM does not show here ({paths}; {why}) and that works: make LVM show it, for example with lvm lvmdevices --adddev, and run"
            " again; do not deactivate the volume and do not restart the host before that, as LVM would not activate it any more"
        ), True
    return (
        f"is on a device that LVM does not find, and LVM does not show {paths} here, which has the label of a physical volume ({why}): make LVM show it, for"
        " example with lvm lvmdevices --adddev, and run again"
    ), False


def _devices_in_use(group: str, listed: t.Container[str], devices: Devices) -> list[str]:
    """Paths of what active volumes of a group lie on and LVM does not list."""
    active = (device for device in devices if device.kind == "lvm" and _of_group(device.dm_name or "", group))
    below = {name: devices.get(name) for device in active for name in device.slaves}
    return [one.stable_path or one.path for name, one in sorted(below.items()) if one is not None and one.kind != "lvm" and name not in listed]


def _of_group(dm_name: str, prefix: str) -> bool:
    return dm_name.startswith(prefix) and not dm_name[len(prefix) :].startswith("-")
