# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The origin of an item of which no cache was found: whether it is there, and which caches of any type it belongs to.

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
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.enhanceio_devices import read_enhanceio_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, real_path

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_DM_CACHES = frozenset({"cache", "writecache"})
_NO_CACHE = "no cache"
#: Types whose caches are started by a unit of this collection, which names their devices.
_WITH_UNITS = ("dm_cache", "flashcache", "enhanceio")
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
    found = [cache for one in around for cache in (_mapped(one), _bcache(one, root)) if cache is not None]
    names = {one.name for one in around}
    found += _enhanceio(devices, names, root)
    known = {(cache.type, cache.name) for cache in found}
    found += [cache for cache in _in_units(devices, device, root) if (cache.type, cache.name) not in known]
    return tuple(dict.fromkeys(found))


def _mapped(device: BlockDevice) -> FoundCache | None:
    if device.kind == "flashcache":
        return FoundCache("flashcache", device.dm_name or device.name)
    if not _DM_CACHES & set(device.dm_targets):
        return None
    if device.kind == "lvm":
        return FoundCache("lvm_cache", volume_of(device) or device.dm_name or device.name)
    return FoundCache("dm_cache", device.dm_name or device.name)


def volume_of(device: BlockDevice) -> str | None:
    """``vg/lv`` of a device of LVM, hidden volumes included: hyphens inside the two names are doubled."""
    name = device.dm_name or ""
    name = name[: -len(REAL)] if name.endswith(REAL) and not name.endswith(f"-{REAL}") else name
    parts = [part.replace("--", "-") for part in re.split(r"(?<!-)-(?!-)", name)]
    return "/".join(parts) if device.kind == "lvm" and len(parts) == 2 else None


def _bcache(device: BlockDevice, root: Path) -> FoundCache | None:
    """A backing device with a cache, one that waits for it, a cache device of a set, and what is not registered (Documentation/admin-guide/bcache.rst)."""
    folder = root / "sys/class/block" / device.name / "bcache"
    if device.kind == "bcache":
        # Its backing device is below it.
        return None
    if (folder / "cache_mode").exists():
        mounted = real_path(folder / "dev").name if (folder / "dev").is_symlink() else device.path
        return FoundCache("bcache", mounted) if read_attribute(folder / "state") != _NO_CACHE else None
    if (folder / "set").exists():
        return FoundCache("bcache", f"set on {device.path}")
    if device.signature is not None and device.signature.type == "bcache":
        return FoundCache("bcache", f"on {device.stable_path or device.path}", running=False)
    return None


def _enhanceio(devices: Devices, names: t.Container[str], root: Path) -> list[FoundCache]:
    # One that cannot be read may be of any device.
    known = read_enhanceio_devices(root).items()
    return [FoundCache("enhanceio", name) for name, paths in known if len(paths) < 2 or any(_leads_to(devices, path, names) for path in paths.values())]


def _in_units(devices: Devices, device: BlockDevice, root: Path) -> t.Iterator[FoundCache]:
    for layer in _WITH_UNITS:
        for name in boot_unit.unit_items(layer, root):
            text = boot_unit.stored_unit(boot_unit.unit_name(layer, name), root)
            named = dict.fromkeys(_PATH.findall(text))
            if _SERVED_ALONE not in text and any(_leads_to(devices, path, (device.name,)) for path in named):
                yield FoundCache(layer, name, running=False)


def _leads_to(devices: Devices, path: str, names: t.Container[str]) -> bool:
    try:
        return devices.resolve(path).name in names
    except DeviceMissing:
        return False


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
