# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers under every block device of a host, and whether a write to it survives a power failure.

A layer becomes part of the stack by a reader in :data:`READERS`: a function from the kernel's view to facts per device.
The verdict on a power cut is in ``_stacking/power_cut.py``, that on the loss of a device in ``_stacking/device_loss.py``.
"""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, describe_suspended
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import checked_declarations, is_declared
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import device_loss, power_cut, readers, zfs
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.layers import Layers
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import AT_RISK, DURABLE, UNKNOWN, LayerFacts, Proof, Verdict

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

__all__ = ["AT_RISK", "DURABLE", "READERS", "UNKNOWN", "LayerFacts", "Proof", "Stack", "Verdict", "read_stack"]


@frozen
class Stack(Layers):
    """All devices of a host with the facts of every layer, and what could not be read."""

    problems: t.Sequence[str] = ()

    def verdict(self, device: BlockDevice) -> Verdict:
        """The verdict of one device: the worst of the media under it, and what the failure of one of them does."""
        verdict = power_cut.judge(self, device)
        loss = device_loss.judge(self, device)
        reason = verdict.reason
        if verdict.verdict == DURABLE and loss.newest:
            # "durable" alone would be misleading.
            reason += f" Beware: {loss.reason[0].lower() + loss.reason[1:]}"
        return dataclasses.replace(verdict, reason=reason, device_loss=loss.outcome, device_loss_reason=loss.reason)

    def with_proofs(self, proofs: t.Sequence[Proof]) -> Stack:
        """The same with what became of flushes that were really sent."""
        return dataclasses.replace(self, proofs=(*self.proofs, *proofs))

    def with_drives(self, planned: t.Mapping[str, str]) -> Stack:
        """The same once planned steps have been carried out; what lies elsewhere stays unknown.

        :param planned: what the write cache of a drive will be, ``enabled`` or ``disabled``, by kernel name.
        """
        changed = {name: [_with_cache(one, cache) for one in self.facts.get(name, ())] for name, cache in planned.items()}
        return dataclasses.replace(self, facts={**self.facts, **changed})

    def describe(self, name: str) -> dict[str, t.Any]:
        """One device with its verdict and its layers from top to media, as plain data."""
        device = self.devices.get(name)
        if device is None:
            why = f"The devices of the ZFS pool {name[len(zfs.PREFIX) :]} cannot be read." if name.startswith(zfs.PREFIX) else f"{name} no longer exists."
            gone = Verdict(UNKNOWN, why, "unknown", UNKNOWN, why)
            return {"path": f"/dev/{name}", "identity": None, **dataclasses.asdict(gone), "layers": []}
        layers = [self._describe_layer(one) for one in (device, *self.devices.parents(device))]
        return {"path": device.path, "identity": device.identity, **dataclasses.asdict(self.verdict(device)), "layers": layers}

    def as_devices(self, *, empty: bool = False) -> dict[str, dict[str, t.Any]]:
        """Every device as plain data, keyed by ``vg/lv`` or kernel name; ``empty`` includes those without a medium."""
        return {device.logical_volume or device.name: self._describe_device(device) for device in self.devices if device.size or empty}

    def _describe_device(self, device: BlockDevice) -> dict[str, t.Any]:
        drive = next((facts.state for facts in self.facts.get(device.name, ()) if facts.layer == "drive"), None)
        return {
            **dataclasses.asdict(device),
            "stable_path": device.stable_path,
            "write_cache": dict(drive) if drive is not None else None,
            **self.describe(device.name),
        }

    def _describe_layer(self, device: BlockDevice) -> dict[str, t.Any]:
        return {
            "name": device.name,
            "path": device.stable_path or device.path,
            "kind": device.kind,
            "size": device.size,
            "rotational": device.rotational,
            "transport": device.transport,
            "driver": device.driver,
            "model": device.model,
            "serial": device.serial,
            "firmware": device.firmware,
            "queue": dict(device.queue),
            "below": [*([device.parent] if device.parent else []), *device.slaves],
            "caches": [{"layer": facts.layer, **facts.state} for facts in self.facts.get(device.name, ())],
        }


def _with_cache(facts: LayerFacts, planned: str) -> LayerFacts:
    if facts.layer != "drive" or facts.volatile is None or facts.state.get("drive") == planned:
        return facts
    on = planned == "enabled"
    why = "will have its volatile write cache on, as drive_write_cache requires" if on else "will have its write cache off"
    return dataclasses.replace(facts, state={**facts.state, "drive": planned}, volatile=on, why=why)


Reader = t.Callable[[Devices, "Runner", Path, t.Sequence[str]], t.Iterable[t.Tuple[str, LayerFacts]]]

#: Every layer with facts, in the order of their precedence.
READERS: tuple[Reader, ...] = (
    readers.read_drives,
    readers.read,
    readers.read_md,
    readers.read_dm,
    readers.read_memory,
    readers.read_elsewhere,
    readers.read_exports,
)


def read_stack(runner: Runner, root: Path = Path("/"), protected: t.Sequence[str] = (), devices: Devices | None = None, flushed: t.Sequence[str] = ()) -> Stack:
    """Every block device of the host, and every ZFS pool, with all its layers.

    :param protected: serials, WWNs, models or patterns of drives whose cache is known to survive a power cut (PLP).
    :param devices: the block devices, if they were read just now.
    :param flushed: the same of virtual disks of which a flush reaches media.
    :raises BadInput: for a pattern that fits nearly every drive.
    """
    protected, flushed = checked_declarations(protected), checked_declarations(flushed)
    devices = read_devices(runner, root) if devices is None else devices
    honest = [device for device in devices if device.virtual and is_declared(devices, device, flushed)]
    devices = devices.with_changed([dataclasses.replace(device, virtual=False) for device in honest])
    pools = zfs.read_pools(devices, runner, root)
    devices, facts = zfs.with_pools(devices, pools, root)
    problems = [*(describe_suspended(device) for device in devices if device.suspended), *pools.problems]
    for reader in READERS:
        try:
            for name, found in reader(devices, runner, root, protected):
                facts.setdefault(name, []).append(found)
        except StorageError as error:
            # One tool that is missing or prints invalid output must not hide every other layer: its own is unknown then, with the reason.
            problems.append(error.message)
    return Stack(devices, facts, protected, (), list(dict.fromkeys(problems)))
