# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways from a device down to the media on which what is written to it ends up."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import is_declared
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import LayerFacts, Proof

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices


@frozen
class Layers:
    """All devices of a host with the facts of every layer.

    :param facts: by kernel name, the result of each reader.
    :param protected: serials, WWNs or models of drives whose cache survives a power cut.
    :param proofs: what became of flushes that were really sent.
    """

    devices: Devices
    facts: t.Mapping[str, t.Sequence[LayerFacts]]
    protected: t.Sequence[str] = ()
    proofs: t.Sequence[Proof] = ()

    def facts_of(self, device: BlockDevice, *, top: bool = False) -> list[LayerFacts]:
        """What is known of a device; ``top``: also what counts only for what is written to this device itself."""
        return [facts for facts in self.facts.get(device.name, ()) if top or not facts.top_only]

    def names_below(self, device: BlockDevice) -> list[str]:
        """Kernel names of what a device consists of as far as a power cut goes; its own name if it is a medium itself."""
        kernel = [*([device.parent] if device.parent else []), *device.slaves]
        reported = [facts.media for facts in self.facts.get(device.name, ()) if facts.media is not None]
        # A cache that shows no device of its own is reported by its origin: itself, and what lies beside it.
        beside = [name for media in reported if device.name in media for name in media if name != device.name]
        names = [name for media in reported if device.name not in media for name in media] if any(device.name not in media for media in reported) else kernel
        return [*(names or [device.name]), *beside] if beside else names

    def paths(self, device: BlockDevice, above: tuple[str, ...] = ()) -> list[list[BlockDevice]]:
        """Every way from a device down to something with nothing below it."""
        names = self.names_below(device)
        found: list[list[BlockDevice]] = []
        for name in names:
            below = self.devices.get(name)
            if name == device.name or below is None:
                found.append([device])
            # A device that lies on itself is the mistake of a reader: it must not be followed for ever.
            elif name not in above:
                found += [[device, *path] for path in self.paths(below, (*above, device.name))]
        return found or [[device]]

    def is_blind_end(self, device: BlockDevice) -> bool:
        """Whether a way that ends at a device has lost sight of what lies below: it is a layer and no medium."""
        return any(facts.media is not None and device.name not in facts.media for facts in self.facts.get(device.name, ()))

    def is_protected(self, device: BlockDevice) -> bool:
        """Whether the user declared that the cache of this drive survives a power cut."""
        return is_declared(self.devices, device, self.protected)


def label(device: BlockDevice) -> str:
    """A device in a sentence."""
    return device.logical_volume or device.path
