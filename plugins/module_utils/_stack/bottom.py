# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands at the bottom of a stack: drives, volumes of RAID controllers, main memory, and what is not on this machine or serves others."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import expected_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import served_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import read_aoe_device, read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DriveCache
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import read_drive_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import find_tools
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import read_behind
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import UNKNOWN, LayerFacts

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import AoeExport
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: Transports that end in another machine or an array with caches of its own.
_REMOTE_TRANSPORTS = {"iscsi": "an iSCSI disk", "nvme_fabrics": "an NVMe namespace on a network", "fc": "a disk of a storage network"}
#: Kinds whose content is main memory.
_MEMORY_KINDS = frozenset({"ram", "zram"})
#: Kinds that end in another machine or in a file: what lies below is not visible from here.
_REMOTE_KINDS = {"nbd": "a network block device", "rbd": "a Ceph image", "loop": "a loop device", "aoe": "an ATA over Ethernet target"}
_ELSEWHERE = "what is below it cannot be read from this host"


def read_drives(devices: Devices, runner: Runner, root: Path, protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """The write cache of a drive as the drive and the kernel report, or the volume of a RAID controller.

    :raises StorageError: after everything was reported, if the tool of a controller failed.
    """
    behind = read_behind(devices, runner, root, find_tools, protected)
    for name, finding in behind.findings.items():
        yield name, LayerFacts("controller", **vars(finding))
    drives = [device for device in devices if device.kind == "disk" and device.size and device.name not in behind.findings]
    # A drive that its controller passes through is queried like any other; only the automatic choice would refuse it.
    transports = {drive.name: "ata" if drive.properties.get("ID_BUS") == "ata" else "scsi" for drive in drives if drive.name in behind.passed_through}
    for name, cache in read_drive_caches(runner, drives, root, transports).items():
        device = devices.get(name)
        if device is not None:
            yield name, _as_expected(drive_facts(device, cache), expected_of(runner, "drive_write_cache").get(name))
    if behind.problems:
        raise StorageError(" ".join(behind.problems))


def _as_expected(facts: LayerFacts, planned: str | None) -> LayerFacts:
    """The facts of a drive once steps that are planned have been carried out; what lies elsewhere stays unknown.

    :param planned: ``enabled`` or ``disabled``; ``None`` if no step is planned for the drive.
    """
    if planned is None or facts.volatile is None or facts.state.get("drive") == planned:
        return facts
    on = planned == "enabled"
    why = "will have its volatile write cache on, as drive_write_cache requires" if on else "will have its write cache off"
    return dataclasses.replace(facts, state={**facts.state, "drive": planned}, volatile=on, why=why)


def drive_facts(device: BlockDevice, cache: DriveCache) -> LayerFacts:
    """What a drive's write cache makes of an acknowledged write."""
    plain = {"drive": cache.drive, "kernel": cache.kernel, "kernel_agrees": cache.kernel_agrees, "provider": cache.provider}
    if device.transport in _REMOTE_TRANSPORTS:
        why = f"is {_REMOTE_TRANSPORTS[device.transport]}, and {_ELSEWHERE}"
        return LayerFacts("drive", plain, None, why, device_loss=UNKNOWN, device_loss_reason=why)
    if device.virtual:
        why = (
            "is a virtual disk, and whether its flushes reach media depends on the hypervisor: declare it in storage_flushed_virtual_disks if"
            " they do (the role power_loss_test tests it)"
        )
        return LayerFacts("drive", plain, None, why, device_loss=UNKNOWN, device_loss_reason=f"is a virtual disk, and {_ELSEWHERE}")
    if device.transport in ("virtual", "unknown"):
        why = f"is made by the driver {device.driver or device.name.rstrip('0123456789')}, and {_ELSEWHERE}"
        return LayerFacts("drive", plain, None, why, device_loss=UNKNOWN, device_loss_reason=why)
    return LayerFacts("drive", plain, *_ruling(cache))


def _ruling(cache: DriveCache) -> tuple[bool | None, str]:
    """Whether a drive holds acknowledged writes in volatile memory, and the clause for it."""
    if cache.drive == "enabled":
        return True, "has its volatile write cache on"
    if cache.drive == "disabled":
        return False, "has its write cache off"
    if cache.drive == "absent":
        return False, "has no volatile write cache"
    if cache.kernel == "write back":
        return True, "reports a volatile write cache to the kernel"
    return None, "does not report whether its write cache is on"


def read_memory(devices: Devices, _runner: Runner, _root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """Devices that are main memory."""
    for device in devices:
        if device.kind in _MEMORY_KINDS:
            yield device.name, LayerFacts("memory", {}, True, "is main memory")


def read_elsewhere(devices: Devices, _runner: Runner, root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """Where the stack leaves this machine, or the block layer. AoE sends no flush over the wire at all."""
    for device in devices:
        if device.kind in _REMOTE_KINDS:
            elsewhere = "what is below its file cannot be read" if device.kind == "loop" else _ELSEWHERE
            why = f"is {_REMOTE_KINDS[device.kind]}, and {elsewhere}"
            layer = "network" if device.kind != "loop" else "file"
            if device.kind == "aoe":
                why += ", and no flush is sent to it: whether acknowledged writes survive depends on its target"
                yield device.name, LayerFacts(layer, _aoe_state(root, device.name), None, why, device_loss=UNKNOWN, device_loss_reason=why)
                continue
            yield device.name, LayerFacts(layer, {}, None, why, device_loss=UNKNOWN, device_loss_reason=why)


def _aoe_state(root: Path, name: str) -> dict[str, t.Any]:
    """The AoE initiator's view of a target (``aoedisk_attrs`` of drivers/block/aoe/aoeblk.c)."""
    found = read_aoe_device(root, name)
    if found is None:
        return {}
    mtus = [mtu for interface in found.interfaces if (mtu := read_mtu(root, interface)) is not None]
    return {"interfaces": list(found.interfaces), "mtu": min(mtus, default=None), "payload": found.payload, "target_state": found.state}


def read_exports(devices: Devices, _runner: Runner, root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """What AoE targets of this machine make of the writes of their initiators, which are those who write to a device that is served."""
    for name, exports in served_devices(devices, root).items():
        for export in exports:
            yield name, export_facts(export)


def export_facts(export: AoeExport) -> LayerFacts:
    """Whether a write to one target survives before it reaches the device below it.

    Seen with the kernel's counters: with ``-s`` every write is followed by a flush, with ``-d`` alone none is, and without both a
    write has not even left the page cache when it is acknowledged. vblade answers a flush and does nothing (``atacmd`` of ata.c).
    """
    state = {
        "aoe_target": export.address,
        "interfaces": [export.interface],
        "direct": export.direct,
        "sync": export.sync,
        "read_only": export.read_only,
    }
    served = f"is served over AoE as {export.address} on {export.interface}"
    if export.sync or export.read_only:
        return LayerFacts("network", state, False, f"{served}, read-only" if export.read_only else f"{served}, each write with sync", top_only=True)
    if export.direct:
        return LayerFacts("network", state, False, f"{served}, direct", ends_flushes=f"{served} without sync, which passes no flush down", top_only=True)
    return LayerFacts("memory", state, True, f"{served} through the page cache, neither direct nor with sync", top_only=True)
