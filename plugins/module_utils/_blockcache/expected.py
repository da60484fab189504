# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What planned steps will have changed before a layer gets its turn: it is planned with the host as they leave it.

Only plans are made so: before anything is changed, everything is read again as it is.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: What a step that takes it away has as its value before: the paths of devices that are empty afterwards.
_EMPTIED = ("cache_device", "mirror")
#: Before the path of a physical volume that is given back.
_RELEASED = "devices."
#: Targets of device-mapper that cache.
CACHES = frozenset({"cache", "writecache"})


@frozen
class Expected:
    """Caches that go, and drives whose write cache changes.

    :param caches: type and name of caches that go.
    :param gone: kernel names of devices that will not be there any more.
    :param emptied: kernel names of cache devices that will be empty and unused.
    :param origins: kernel names of origins that will be left alone.
    :param drives: what the write cache of a drive will be, ``enabled`` or ``disabled``, by kernel name.
    """

    caches: frozenset[tuple[str, str]] = frozenset()
    gone: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    drives: t.Mapping[str, str] = field(default_factory=dict)

    def without(self, devices: Devices) -> Devices:
        """The block devices of a host once the caches are gone."""
        return devices.without(self.gone, map(self._freed, devices)) if self.caches else devices

    def _freed(self, device: BlockDevice) -> BlockDevice:
        holders = tuple(name for name in device.holders if name not in self.gone)
        slaves = tuple(name for name in device.slaves if name not in self.gone | self.emptied)
        if device.name in self.emptied:
            return dataclasses.replace(device, holders=(), slaves=slaves, signature=None)
        # Without its cache, a logical volume is what it was before.
        targets = ("linear",) if device.name in self.origins and CACHES & set(device.dm_targets) else device.dm_targets
        return dataclasses.replace(device, holders=holders, slaves=slaves, dm_targets=targets)

    def rest(self, kind: str, found: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """What was found of the caches of a type, by name, without those that go."""
        return {name: value for name, value in found.items() if (kind, name) not in self.caches}


#: A host that no planned step changes.
AS_IT_IS = Expected()


def left_by(kind: str, origins: t.Mapping[str, str], steps: t.Sequence[Step], devices: Devices) -> Expected:
    """What the steps of a layer of caches take away.

    :param origins: the path of the origin of each of its items.
    """
    detached = {step.item for step in steps if step.attribute == "cache" and step.after is None}
    own = [step for step in steps if step.item in detached and step.after is None]
    mapping = CACHE_TYPES[kind].mapping
    mappings = {step.item for step in own if mapping and step.attribute == mapping}
    # A mapping that stays, because it is in use, still holds its origin.
    removed = detached & mappings if mapping else detached
    gone = {device.name for device in devices if device.dm_name in mappings}
    emptied: set[str] = set()
    for step in own:
        found = {_name(devices, path) for path in _emptied_by(step)} - {""}
        emptied |= found
        if step.attribute == "mirror":
            gone |= {device.name for device in devices if device.kind == "md" and device.slaves and set(device.slaves) <= found}
    sources = {_name(devices, path) for item, path in origins.items() if item in removed}
    return Expected(frozenset((kind, name) for name in removed), frozenset(gone), frozenset(emptied - gone), frozenset(sources - {""}))


def _emptied_by(step: Step) -> list[str]:
    if step.attribute.startswith(_RELEASED):
        return [step.attribute[len(_RELEASED) :]]
    if step.attribute not in _EMPTIED:
        return []
    return [str(path) for path in (step.before if isinstance(step.before, (list, tuple)) else [step.before])]


def _name(devices: Devices, path: str) -> str:
    try:
        return devices.resolve(path).name
    except DeviceMissing:
        return ""


def together(parts: t.Iterable[Expected], drives: t.Mapping[str, str]) -> Expected:
    """What the steps of several layers of caches take away, and what is planned for drives."""
    every = list(parts)
    caches, *devices = (frozenset().union(*(getattr(one, name) for one in every)) for name in ("caches", "gone", "emptied", "origins"))
    # A device is free only if the cache on it goes.
    return Expected(caches, *devices, drives) if caches else Expected(drives=drives)
