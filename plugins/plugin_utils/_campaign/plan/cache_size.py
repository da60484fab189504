# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The size of the cache in front of the targets of a host, from its answer to ``cache_stack_info``. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, optional_integer, optional_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import listed

_PATHS = ("path", "stable_path", "by_id", "links")


def cache_size_of(targets: t.Sequence[t.Any], devices: t.Any, suite: str) -> int:
    """Bytes of the one SSD cache in front of each target.

    :param targets: as the user wrote them, with a device for each match.
    :param devices: those of the answer.
    :raises BadInput: if there is none, or there are several sizes.
    """
    known = {key: mapping(device) for key, device in mapping(devices).items()}
    sizes: dict[int, None] = {}
    why = "" if targets else "there is no target"
    for target in map(mapping, targets):
        path = str(target.get("device") or target.get("file") or target.get("directory") or "")
        found = _caches(_device_of(path, known) if target.get("device") else _mounted_at(path, known))
        if len(found) != 1 or None in found.values():
            why = f"in front of {path} {f'are {len(found)} caches' if len(found) > 1 else 'no SSD cache with a known size was found'}"
            break
        sizes.update(dict.fromkeys(filter(None, found.values())))
    if len(sizes) > 1:
        why = f"those of the targets have several sizes ({listed([format_size(size) for size in sorted(sizes)], 3)})"
    if why or not sizes:
        raise BadInput(
            f"fio_benchmark_suites: suite {suite}: its sizes are multiples of the cache, and {why}: "
            "set fio_benchmark_cache_size to the size of this host's cache, for example 10g."
        )
    return next(iter(sizes))


def _device_of(path: str, devices: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.Mapping[str, t.Any]:
    for key, device in devices.items():
        names = [name for value in map(device.get, _PATHS) for name in (value if isinstance(value, list) else [value])]
        if path in (f"/dev/{key}", *names):
            return device
    return {}


def _mounted_at(path: str, devices: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.Mapping[str, t.Any]:
    """The device of the file system of a file: of those that are above it, the one that is mounted deepest."""
    mounted = [(device.get("mountpoints"), device) for device in devices.values()]
    points = {point: device for found, device in mounted if isinstance(found, list) for point in found if isinstance(point, str)}
    above = [point for point in points if path.startswith(point.rstrip("/") + "/")]
    return points[max(above, key=len)] if above else {}


def _caches(device: t.Mapping[str, t.Any]) -> dict[str | None, int | None]:
    """By name, the sizes of the SSD caches below a device; ``None`` for one that is not known."""
    found = [cache for layer in objects(device.get("layers")) for cache in objects(layer.get("caches")) if cache.get("layer") == "block_cache"]
    return {optional_text(cache.get("name")): optional_integer(cache.get("size")) or None for cache in found}
