# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of layers that contradict each other, found before anything is changed."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import path_of_origin
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import Entry, HostRequest

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

ORIGIN, CACHE_DEVICE = "the origin", "a cache device"


@frozen
class Use:
    """A device that a cache needs.

    :param device: its kernel name, or the path itself if there is no device now.
    :param role: the origin, or a cache device.
    """

    name: str
    kind: str
    path: str
    device: str
    role: str

    @property
    def label(self) -> str:
        return f"{self.name} ({self.kind})"


def check(request: HostRequest, devices: Devices, root: Path = Path("/")) -> None:
    """Whether the lists of a host can be met together.

    :raises BadInput: for a device that two lists, or two entries of different types, use in ways that exclude each other.
    :raises Refused: for a write cache that is switched on below something that passes no flushes on.
    """
    uses = list(_uses(request, devices))
    for number, use in enumerate(uses):
        for other in uses[:number]:
            _check_pair(other, use)
    _check_removed(request, uses, devices)
    _check_targets(request, uses, devices)
    _check_drives(request, uses, devices, root)


def _uses(request: HostRequest, devices: Devices) -> t.Iterator[Use]:
    for kind, item in request.all_caches():
        if item["state"] == "absent":
            continue
        for path in item["cache_devices"]:
            yield Use(item["name"], kind, path, _identity(devices, path), CACHE_DEVICE)
        origin = path_of_origin(item["origin"])
        yield Use(item["name"], kind, item["origin"], _identity(devices, origin), ORIGIN)


def _identity(devices: Devices, path: str) -> str:
    try:
        return devices.resolve(path).name
    except DeviceMissing:
        return path


def _check_pair(one: Use, other: Use) -> None:
    same_cache = (one.name, one.kind) == (other.name, other.kind)
    if one.device != other.device or same_cache:
        return
    if one.role == other.role == CACHE_DEVICE and (one.kind != other.kind or not CACHE_TYPES[one.kind].shares_devices):
        text = f"{other.path} is a cache device of both {one.label} and {other.label}: remove it from one of them."
    elif one.role == other.role == ORIGIN:
        text = f"{other.path} is the origin of both {one.label} and {other.label}: keep one of these caches."
    elif one.role != other.role:
        text = f"{other.path} is {one.role} of {one.label} and {other.role} of {other.label}: name another device in one of them."
    else:
        return
    raise BadInput(text, item=other.name)


def _check_removed(request: HostRequest, uses: t.Sequence[Use], devices: Devices) -> None:
    """An entry that names the device of a cache that is removed: it would be gone when its turn comes."""
    leaving: dict[str, tuple[str, Entry]] = {}
    staying: set[str] = set()
    for kind, item in request.all_caches():
        made = [_identity(devices, path) for path in _made_by(kind, item)]
        if item["state"] == "absent":
            leaving.update(dict.fromkeys(made, (kind, item)))
        else:
            staying.update(made)
    for path, device, place in _named(request, uses, devices):
        if device in leaving and device not in staying:
            kind, item = leaving[device]
            raise BadInput(
                f"{path} is {place} and is the device of the cache {item['name']} ({kind}), which is removed (state: absent): remove the entry, or keep the"
                " cache.",
                item=path,
            )


def _named(request: HostRequest, uses: t.Sequence[Use], devices: Devices) -> t.Iterator[tuple[str, str, str]]:
    """Each device that something is done with once caches are removed: its path, its identity, and what names it."""
    for entry in request.queues["devices"] if request.queues else ():
        if entry.get("device"):
            yield entry["device"], _identity(devices, entry["device"]), "listed for block_queue"
    for target in request.network["aoe_targets"] if request.network else ():
        if target.get("device") and target.get("state") != "absent":
            yield target["device"], _identity(devices, target["device"]), "served over AoE (storage_network)"
    yield from ((use.path, use.device, f"{use.role} of {use.label}") for use in uses)


def _made_by(kind: str, item: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    """The paths of a cached device that is gone once its cache is; one whose data are behind a header stays, without a cache."""
    known = CACHE_TYPES[kind]
    return (known.device.format(name=item["name"]),) if known.device and not known.hides_data else ()


def _check_targets(request: HostRequest, uses: t.Sequence[Use], devices: Devices) -> None:
    """A device that is served although a cache is made of it: initiators would read and write past the cache."""
    for target in request.network["aoe_targets"] if request.network else ():
        path = target.get("device")
        if not path or target.get("state") == "absent":
            continue
        use = next((use for use in uses if use.device == _identity(devices, path) and _is_below(use)), None)
        if use is not None:
            instead = f"serve /dev/mapper/{use.name} instead" if CACHE_TYPES[use.kind].in_mapper and use.role == ORIGIN else "serve the cached device instead"
            raise BadInput(f"{path} is served over AoE (storage_network) and is {use.role} of the cache {use.label}: {instead}.", item=path)


def _is_below(use: Use) -> bool:
    """Whether the device that a cache uses is another one than the cached device."""
    return use.role == CACHE_DEVICE or bool(CACHE_TYPES[use.kind].device)


def _check_drives(request: HostRequest, uses: t.Sequence[Use], devices: Devices, root: Path) -> None:
    """Where a cache passes no flushes on, what is synced waits in the write cache of a drive below it."""
    above = [use for use in uses if not CACHE_TYPES[use.kind].passes_flushes]
    for path in _enabled(request, devices, root) if above else ():
        use = next((use for use in above if _lies_on(devices, use.device, path)), None)
        if use is not None:
            raise Refused(
                f"{path} has write_cache: enabled (drive_write_cache) and is below {use.label}, which passes no flushes on to it: set write_cache:"
                " disabled, or allow_ignored_flushes: true for this drive only if its cache survives a power failure.",
                item=path,
            )


def _enabled(request: HostRequest, devices: Devices, root: Path) -> t.Iterator[str]:
    """The drives whose cache is enabled without the permission for what drops flushes."""
    if all(drive.get("device") for drive in request.drives):
        yield from (drive["device"] for drive in request.drives if drive["write_cache"] == "enabled" and not drive["allow_ignored_flushes"])
        return
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.drives import drives_of
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import read_specs

    for spec, _paths in drives_of(devices, read_specs(request.drives), root):
        if spec.write_cache == "enabled" and not spec.allow_ignored_flushes:
            yield spec.device


def _lies_on(devices: Devices, upper: str, path: str) -> bool:
    lower, device = _identity(devices, path), devices.get(upper)
    return lower == upper or (device is not None and any(one.name == lower for one in devices.parents(device)))
