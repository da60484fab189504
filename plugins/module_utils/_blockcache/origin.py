# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The origin of a cache: whether it is there, which caches of any type it belongs to, and what uses it past its cache.

An item that resolves to nothing is never already as wanted: nothing was flushed, and whether there is no cache has to be known. What runs is in the tree
of block devices (dm-cache, dm-writecache, bcache, flashcache) or in /proc/enhanceio, and what should run in the units of this collection; no command is
needed for either.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import REAL
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import FoundCache, Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import MISSING, CacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES, leads_to
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_PATH = re.compile(r"/dev/[^\s\"\\,:]+(?::[^\s\"\\,:]+)*")
#: In the note of the unit of a dm_cache without a cache, whose mapping remains.
_SERVED_ALONE = '"table": null'


def read_origins(devices: Devices, paths: t.Mapping[str, str], root: Path = Path("/")) -> dict[str, Origin]:
    """What the paths of items lead to, by the name of the item."""
    return {name: _read_origin(devices, path, name, root) for name, path in paths.items()}


def unresolved(specs: t.Iterable[CacheSpec]) -> dict[str, str]:
    """The items of which a cache must be found or known not to be there, with their origins."""
    return {spec.name: spec.origin for spec in specs if not spec.present}


def _read_origin(devices: Devices, path: str, item: str, root: Path) -> Origin:
    try:
        device = devices.resolve(path, item)
    except DeviceMissing as error:
        return Origin(missing=error.message)
    return Origin(caches=caches_around(devices, device, root))


def caches_around(devices: Devices, device: BlockDevice, root: Path = Path("/"), *, of_volume: bool = False) -> tuple[FoundCache, ...]:
    """Every cache that holds a device, or is held by it, each once; what is nearest first.

    :param of_volume: whether the device is a volume that only LVM would cache: one whose physical volume is on the device of another cache uses that as
        any file system does, and does not belong to it.
    """
    below = devices.parents(device)
    if of_volume:
        inside = [one for one in below if one.kind == "lvm"]
        # Of a group on top of another one: what is below a physical volume.
        outside = {parent.name for one in below if one.kind != "lvm" for parent in devices.parents(one)}
        below = [one for one in inside if one.name not in outside]
    around = [device, *devices.children(device), *below]
    found = []
    for one in around:
        found += _mapped(one)
        for kind in CACHE_TYPES.values():
            found += kind.found_on(devices, one, root) if kind.found_on is not None else ()
    known = {(cache.type, cache.name) for cache in found}
    found += [cache for cache in _in_units(devices, device, root) if (cache.type, cache.name) not in known]
    return tuple(dict.fromkeys(found))


def _mapped(device: BlockDevice) -> t.Iterator[FoundCache]:
    for kind in CACHE_TYPES.values():
        shown = (
            device.kind == kind.kernel_kind if kind.kernel_kind else (device.kind == "lvm") == kind.named_by_volume and kind.targets & set(device.dm_targets)
        )
        if kind.targets and shown:
            yield FoundCache(kind.name, volume_of(device) or device.dm_name or device.name)


def volume_of(device: BlockDevice) -> str | None:
    """``vg/lv`` of a device of LVM, hidden volumes included: hyphens inside the two names are doubled."""
    name = device.dm_name or ""
    name = name[: -len(REAL)] if name.endswith(REAL) and not name.endswith(f"-{REAL}") else name
    parts = [part.replace("--", "-") for part in re.split(r"(?<!-)-(?!-)", name)]
    return "/".join(parts) if device.kind == "lvm" and len(parts) == 2 else None


def _in_units(devices: Devices, device: BlockDevice, root: Path) -> t.Iterator[FoundCache]:
    for layer in (kind.name for kind in CACHE_TYPES.values() if kind.has_unit):
        for name in boot_unit.unit_items(layer, root):
            text = boot_unit.stored_unit(boot_unit.unit_name(layer, name), root)
            named = dict.fromkeys(_PATH.findall(text))
            if _SERVED_ALONE not in text and any(leads_to(devices, path, (device.name,)) for path in named):
                yield FoundCache(layer, name, running=False)


# -- what is concluded from it


def require_no_cache(spec: CacheSpec, origin: Origin, layer: str) -> None:
    """Whether an item of which no cache was found has none.

    With ``state: absent`` this is as wanted if the origin is there and belongs to no cache. Nothing is ever flushed that was not found.

    :raises DeviceMissing: if there is no such origin, or nothing to flush.
    :raises Refused: if it belongs to a cache.
    """
    name, path = spec.name, spec.origin
    if origin.missing:
        if spec.state == "absent" and MISSING in spec.expect:
            return
        hint = "correct origin, or reconnect the device" + ("; if it is gone on purpose, set expect: [missing]" if spec.state == "absent" else "")
        raise DeviceMissing(f"{name}: no {layer} of {path} was found, because {_clause(origin.missing, name)}: {hint}.", item=name)
    others = [cache for cache in origin.caches if (cache.type, cache.name) != (layer, name) and not (spec.state == "absent" and cache.type in spec.expect)]
    if others:
        raise Refused(f"{name}: {path} has no {layer} of this name and belongs to {' and '.join(map(str, others))}: {_advice(others, layer)}.", item=name)
    if spec.state == "flushed":
        raise DeviceMissing(f"{name}: {path} has no {layer}, so that nothing was flushed: correct origin and name, or remove the item.", item=name)


def _clause(sentence: str, name: str) -> str:
    """A sentence without its name of the item, its advice and its end."""
    plain = sentence[len(name) + 2 :] if sentence.startswith(f"{name}: ") else sentence
    return plain.split(": ", 1)[0].rstrip(".")


def _advice(others: t.Sequence[FoundCache], layer: str) -> str:
    first = others[0]
    if first.type == layer:
        return f"name that {layer} by its own name and origin"
    return f"set type: {first.type} with its name and origin; with state: absent, expect: [{first.type}] accepts it"


# -- what uses it past its cache: mappings of device-mapper share their claim of a device with each other, so that LVM can run a group on the origin of a
# cache that is loaded


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
