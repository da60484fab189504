# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The layers under every block device of a host, and what a flushed write on it is worth.

A layer becomes part of the stack by a reader in :data:`READERS`: a function from what the kernel says to facts per device.
bcache, flashcache, ZFS and storage networks each add one; nothing else here changes.

The verdict follows one rule. A power cut loses what waits in volatile memory. So at every medium under a device, either
nothing volatile holds writes, or it is protected, or each flush gets there. A flush gets there if every queue on the way
has its write cache on as the kernel sees it: a queue that says ``write through`` ends flushes where it stands
(Documentation/block/writeback_cache_control.rst), whatever the media below do.
"""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache import DriveCache, read_drive_caches, read_sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import find_tools
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import read_behind

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

DURABLE = "durable"
AT_RISK = "at_risk"
UNKNOWN = "unknown"
_WORST_FIRST = (AT_RISK, UNKNOWN, DURABLE)

#: Transports that end in another machine or an array with caches of its own.
_REMOTE_TRANSPORTS = {"iscsi": "an iSCSI disk", "nvme_fabrics": "an NVMe namespace on a network", "fc": "a disk of a storage network"}
#: md levels that write a stripe in several steps; a power cut between them, with a disk missing, loses what was flushed before.
_PARITY_LEVELS = frozenset({"raid4", "raid5", "raid6"})

#: Kinds whose content is main memory.
_MEMORY_KINDS = frozenset({"ram", "zram"})
#: Kinds that end in another machine or in a file: what lies below is not visible from here.
_REMOTE_KINDS = {"nbd": "a network block device", "rbd": "a Ceph image", "loop": "a file", "aoe": "an ATA over Ethernet target"}


@dataclass(frozen=True)
class LayerFacts:
    """What a reader knows about one device.

    :param layer: ``drive``, ``controller``, ``block_cache``, ``array``, ``network`` or ``memory``.
    :param state: the effective settings, plain data, as they go into results and reports.
    :param volatile: whether acknowledged writes may wait in memory that a power cut empties; ``None`` if that is not known.
    :param why: the reason, a clause that can follow the name of the device.
    :param loses: whether a power cut can take flushed writes for another reason than a volatile memory.
    """

    layer: str
    state: t.Mapping[str, t.Any] = field(default_factory=dict)
    volatile: bool | None = None
    why: str = ""
    loses: bool = False


@dataclass(frozen=True)
class Verdict:
    """What an acknowledged, flushed write is worth, and whether one without a flush survives too (``unflushed``)."""

    verdict: str
    reason: str
    unflushed: str


@dataclass(frozen=True)
class Stack:
    """All devices of a host with the facts of every layer."""

    devices: Devices
    facts: t.Mapping[str, t.Sequence[LayerFacts]]
    protected: t.Sequence[str] = ()
    problems: t.Sequence[str] = ()

    def verdict(self, device: BlockDevice) -> Verdict:
        """The verdict of one device: the worst of the media under it."""
        rulings = [self._ruling(path) for path in self._paths_to_media(device)]
        decisive = min(rulings, key=lambda ruling: _WORST_FIRST.index(ruling.verdict))
        unflushed = min((ruling.unflushed for ruling in rulings), key=("may_be_lost", "unknown", "kept").index)
        return Verdict(decisive.verdict, decisive.reason, unflushed)

    def describe(self, name: str) -> dict[str, t.Any]:
        """One device with its verdict and its layers from top to media, as plain data."""
        device = self.devices.get(name)
        if device is None:
            return {
                "path": f"/dev/{name}",
                "identity": None,
                "verdict": UNKNOWN,
                "reason": f"{name} is not there any more.",
                "unflushed": "unknown",
                "layers": [],
            }
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

    def _paths_to_media(self, device: BlockDevice) -> list[list[BlockDevice]]:
        """Every way from a device down to something with nothing below it."""
        names = [*([device.parent] if device.parent else []), *device.slaves]
        below = [found for found in map(self.devices.get, names) if found is not None]
        if not below:
            return [[device]]
        return [[device, *path] for neighbour in below for path in self._paths_to_media(neighbour)]

    def _ruling(self, path: t.Sequence[BlockDevice]) -> Verdict:
        medium = path[-1]
        holders = [(device, facts) for device in path for facts in self.facts.get(device.name, ()) if facts.volatile is not False]
        losing = next(((device, facts) for device in path for facts in self.facts.get(device.name, ()) if facts.loses), None)
        if losing:
            return Verdict(AT_RISK, f"{_called(losing[0])} {losing[1].why}.", "may_be_lost")
        if not self.facts.get(medium.name) and not self._is_protected(medium):
            return Verdict(UNKNOWN, f"Nothing is known about the write cache of {_called(medium)}.", "unknown")
        unknown = [(device, facts) for device, facts in holders if facts.volatile is None]
        volatile = [(device, facts) for device, facts in holders if facts.volatile and not self._is_protected(device)]
        if any(facts.layer == "memory" for _device, facts in volatile):
            return Verdict(AT_RISK, f"{_called(medium)} {volatile[0][1].why}.", "may_be_lost")
        deaf = self._where_flushes_end(path)
        if volatile and deaf is not None:
            device, facts = volatile[0]
            return Verdict(AT_RISK, f"{_called(device)} {facts.why}, and {_flush_ending(deaf, device)}.", "may_be_lost")
        if unknown:
            device, facts = unknown[0]
            return Verdict(UNKNOWN, f"{_called(device)} {facts.why}.", "unknown")
        if volatile:
            device, facts = volatile[0]
            return Verdict(DURABLE, f"{_called(device)} {facts.why}, and every flush reaches it.", "may_be_lost")
        declared = "is declared safe from power cuts"
        kept = declared if self._is_protected(medium) else self.facts[medium.name][0].why
        return Verdict(DURABLE, f"{_called(medium)} {kept}.", "kept")

    def _is_protected(self, device: BlockDevice) -> bool:
        return any(text == device.model or self.devices.matches_identity(device, text) for text in self.protected)

    def _where_flushes_end(self, path: t.Sequence[BlockDevice]) -> BlockDevice | None:
        """The first device on the way down whose queue completes flushes by itself."""
        return next((device for device in path if device.queue.get("write_cache") == "write through"), None)


def _called(device: BlockDevice) -> str:
    return device.logical_volume or device.path


def _flush_ending(deaf: BlockDevice, holder: BlockDevice) -> str:
    if deaf.name == holder.name:
        return "the kernel believes it has none, so no flush is sent to it"
    if deaf.kind in ("flashcache", "aoe"):
        return f"{_called(deaf)} ({deaf.kind}) passes no flush down"
    return f"{_called(deaf)} passes no flush down (its queue says write through)"


def _drive_facts(devices: Devices, runner: Runner, root: Path, protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """What stands at the bottom: the write cache of a drive as the drive and the kernel say, or the volume of a RAID controller.

    :raises StorageError: after everything was told, if the tool of a controller failed.
    """
    behind = read_behind(devices, runner, root, find_tools, protected)
    for name, finding in behind.findings.items():
        yield name, LayerFacts("controller", finding.state, finding.volatile, finding.why, finding.loses)
    drives = [device for device in devices if device.kind == "disk" and device.size and device.name not in behind.findings]
    # A drive that its controller passes through is asked like any other; only the automatic choice would refuse it.
    asked = {drive.name: "ata" if drive.properties.get("ID_BUS") == "ata" else "scsi" for drive in drives if drive.name in behind.passed_through}
    for name, cache in read_drive_caches(runner, drives, root, asked).items():
        device = devices.get(name)
        if device is not None:
            plain = {"drive": cache.drive, "kernel": cache.kernel, "kernel_agrees": cache.kernel_agrees, "provider": cache.provider}
            yield name, LayerFacts("drive", plain, *_drive_ruling(device, cache))
    if behind.problems:
        raise StorageError(" ".join(behind.problems))


def _drive_ruling(device: BlockDevice, cache: DriveCache) -> tuple[bool | None, str]:
    """Whether a drive holds acknowledged writes in volatile memory, and the clause that says so."""
    if device.transport in _REMOTE_TRANSPORTS:
        return None, f"is {_REMOTE_TRANSPORTS[device.transport]}, and what is below it cannot be seen from here"
    if device.transport in ("virtual", "unknown"):
        return None, f"is made by the driver {device.driver or device.name.rstrip('0123456789')}, and what is below it cannot be seen from here"
    if cache.drive == "enabled":
        return True, "has its volatile write cache on"
    if cache.drive == "disabled":
        return False, "has its write cache off"
    if cache.drive == "absent":
        return False, "has no volatile write cache"
    if cache.kernel == "write back":
        return True, "reports a volatile write cache to the kernel"
    return None, "does not tell whether its write cache is on"


def _dm_cache_facts(devices: Devices, runner: Runner, _root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """dm-cache and dm-writecache: what is dirty waits on the cache device, which is a medium of its own in the stack."""
    caches = [device for device in devices if {"cache", "writecache"} & set(device.dm_targets)]
    if not caches:
        return
    status = dm.read_status(runner)
    for device in caches:
        found = status.get(device.dm_name or "")
        if found is not None and not found.failed:
            plain = {key: value for key, value in vars(found).items() if value is not None and key != "failed"}
            yield device.name, LayerFacts("block_cache", plain, False, "keeps dirty blocks on its cache device")
        else:
            yield device.name, LayerFacts("block_cache", {"failed": True}, None, "is a cache that the kernel reports as failed")


def _array_facts(devices: Devices, _runner: Runner, root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """MD arrays. With parity and a disk missing, a stripe that a power cut tears can no longer be told from a whole one.

    Source: Documentation/admin-guide/md.rst (level, degraded, sync_action, consistency_policy).
    """
    for device in devices:
        if device.kind != "md":
            continue
        folder = root / "sys/class/block" / device.name / "md"
        words = {name: read_sysfs(folder / name) for name in ("level", "degraded", "sync_action", "consistency_policy")}
        state = {name: word for name, word in words.items() if word is not None}
        rebuilding = words["sync_action"] in ("resync", "recover")
        exposed = words["level"] in _PARITY_LEVELS and words["consistency_policy"] not in ("journal", "ppl")
        if exposed and (rebuilding or words["degraded"] not in (None, "0")):
            why = f"is a {words['level']} array that is not whole and has neither a journal nor a partial parity log"
            yield device.name, LayerFacts("array", state, False, why, loses=True)
        else:
            yield device.name, LayerFacts("array", state, False, "is an array that keeps nothing back")


def _memory_facts(devices: Devices, _runner: Runner, _root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    for device in devices:
        if device.kind in _MEMORY_KINDS:
            yield device.name, LayerFacts("memory", {}, True, "is main memory")


def _remote_facts(devices: Devices, _runner: Runner, _root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """Where the stack leaves this machine, or the block layer. AoE sends no flush over the wire at all."""
    for device in devices:
        if device.kind in _REMOTE_KINDS:
            why = f"is {_REMOTE_KINDS[device.kind]}, and what is below it cannot be seen from here"
            yield device.name, LayerFacts("network" if device.kind != "loop" else "file", {}, None, why)
        elif device.kind in ("bcache", "flashcache"):
            yield device.name, LayerFacts("block_cache", {}, None, f"is a {device.kind} device whose cache is not read yet")


Reader = t.Callable[[Devices, "Runner", Path, t.Sequence[str]], t.Iterable[t.Tuple[str, LayerFacts]]]

#: Every layer that has something to say, in the order in which it shall be heard.
READERS: tuple[Reader, ...] = (_drive_facts, _dm_cache_facts, _array_facts, _memory_facts, _remote_facts)


def read_stack(runner: Runner, root: Path = Path("/"), protected: t.Sequence[str] = ()) -> Stack:
    """Every block device of the host with all its layers.

    :param protected: serials, WWNs or models of drives whose cache is known to survive a power cut (PLP).
    """
    devices = read_devices(runner, root)
    facts: dict[str, list[LayerFacts]] = {}
    problems = []
    for reader in READERS:
        try:
            for name, found in reader(devices, runner, root, protected):
                facts.setdefault(name, []).append(found)
        except StorageError as error:
            # One tool that is missing or speaks oddly must not hide every other layer: its own is unknown then, and says why.
            problems.append(error.message)
    return Stack(devices, facts, protected, problems)
