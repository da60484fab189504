# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an SSD cache means for what is written to the device that it caches."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import read_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import KERNEL_KINDS, TARGETS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import UNKNOWN, Group, LayerFacts

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: How LVM calls the slow volume below a cached one.
_ORIGIN_SUFFIXES = ("_corig", "_wcorig")
#: States in which what a cache holds cannot be judged, and those in which data are gone if it held any.
_DOUBTFUL = frozenset({"needs_check", "read_only", "failed", "unknown"})
_LOST = frozenset({"cache_missing", "inconsistent"})


def read(devices: Devices, runner: Runner, root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """The SSD caches of the host.

    :raises StorageError: after everything was reported, if some could not be read.
    """
    survey = read_caches(devices, runner, root)
    reported = set()
    for cache in survey.caches:
        device = _carrier(cache, devices)
        if device is not None:
            reported.add(device.name)
            yield device.name, cache_facts(cache, device, devices)
        elif _may_hold_newer(cache) and devices.get(cache.origin_name or "") is not None:
            yield t.cast(str, cache.origin_name), origin_facts(cache)
    for device in devices:
        if device.name not in reported and (device.kind in KERNEL_KINDS or TARGETS & set(device.dm_targets)):
            word = device.kind if device.kind in KERNEL_KINDS else "/".join(sorted(TARGETS & set(device.dm_targets)))
            yield device.name, LayerFacts("block_cache", {}, None, f"is a {word} device whose cache could not be read")
    if survey.problems:
        raise StorageError(" ".join(survey.problems))


def cache_facts(cache: CacheState, device: BlockDevice, devices: Devices) -> LayerFacts:
    """What one cache means. In write-back the origin and the cache device are both needed; otherwise the origin has it all.

    :param device: the cached device, or the origin itself where the type shows no device of its own.
    """
    origin, fast = _sides(cache, device, devices)
    # What became dirty before the mode changed is still only there.
    holds = bool(fast) and (cache.mode in ("writeback", None) or bool(cache.dirty))
    groups = tuple(Group(((name,),)) for name in origin)
    if holds:
        groups += (Group((fast,), newest=True, mirrored=cache.redundancy == "mirrored"),)
    condition = f"has a cache in the state {cache.state.replace('_', ' ')}: {cache.problem.rstrip('.') or 'check the kernel log'}"
    loses = cache.state == "inconsistent" or (cache.state in _LOST and cache.mode in ("writeback", None))
    return LayerFacts(
        "block_cache",
        _state(cache),
        None if cache.state in _DOUBTFUL else False,
        condition if loses or cache.state in _DOUBTFUL else "keeps dirty blocks on its cache device",
        loses=loses,
        device_loss="" if origin else UNKNOWN,
        device_loss_reason="" if origin else "is a cached device whose origin cannot be seen",
        media=(*origin, *fast) if holds else origin,
        groups=groups,
        ends_flushes="" if cache.sends_flushes else f"({cache.kind}) passes no flush down",
        lazy="flushes its cache device only if something was written since the last time" if cache.kind == "writecache" else "",
    )


def origin_facts(cache: CacheState) -> LayerFacts:
    """What it means for an origin that the cache before it does not run and may hold newer data: it is not what was written."""
    missing = cache.state in _LOST
    why = f"is the origin of the cache {cache.name}, which does not run and may hold newer data: {cache.problem.rstrip('.') or 'it is not loaded'}"
    return LayerFacts("block_cache", _state(cache), True if missing else None, why, loses=missing)


def _may_hold_newer(cache: CacheState) -> bool:
    return cache.mode in ("writeback", None) and cache.dirty != 0 and cache.state in _LOST | {"inactive"}


def _state(cache: CacheState) -> dict[str, t.Any]:
    """The settings in effect, as plain data; the other layers' settings are left out."""
    plain = cache.to_dict()
    return {key: value for key, value in plain.items() if value is not None and key not in ("device", "device_name", "origin_name", "histogram")}


def _carrier(cache: CacheState, devices: Devices) -> BlockDevice | None:
    """The device whose mapping is the cache; under a snapshot that is a layer below what carries the name."""
    device = devices.get(cache.device_name or "")
    if device is None or not device.dm_targets or TARGETS & set(device.dm_targets):
        return device
    return next((below for below in devices.parents(device) if TARGETS & set(below.dm_targets)), device)


def _sides(cache: CacheState, device: BlockDevice, devices: Devices) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Kernel names of what lies directly below: the slow side and the fast side. What cannot be distinguished is all slow side: it counts."""
    fast = tuple(name for name in cache.cache_device_names if name != device.name)
    if cache.origin_name == device.name:
        return (device.name,), fast
    below = [*([device.parent] if device.parent else []), *device.slaves]
    if not below:
        return ((cache.origin_name,) if cache.origin_name else ()), fast
    origin = [name for name in below if name == cache.origin_name or _is_named_origin(devices.get(name))]
    if not origin:
        reach = {name: {name, *(one.name for one in devices.parents(devices.get(name)))} if devices.get(name) else {name} for name in below}
        origin = [name for name in below if cache.origin_name in reach[name] and not reach[name] & set(fast)]
    if not origin:
        fast_ones = [name for name in below if name in fast]
        return tuple(name for name in below if name not in fast_ones), tuple(fast_ones)
    return tuple(origin), tuple(name for name in below if name not in origin) or tuple(fast)


def _is_named_origin(device: BlockDevice | None) -> bool:
    return device is not None and (device.dm_name or "").endswith(_ORIGIN_SUFFIXES)
