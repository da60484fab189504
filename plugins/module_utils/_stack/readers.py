# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each kind of device is in a stack: SSD caches, drives, volumes of RAID controllers, main memory, what is not on this machine or serves others,
and arrays of the kernel: MD, and the targets raid and mirror of device-mapper, which LVM uses.

Sources: Documentation/admin-guide/md.rst (level, degraded, raid_disks, layout, sync_action, consistency_policy, journal_mode,
dev-*/state and slot), Documentation/driver-api/md/raid5-cache.rst, Documentation/admin-guide/device-mapper/dm-raid.rst (the status
line), ``mirror_status`` of drivers/md/dm-raid1.c.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import read_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import KERNEL_KINDS, TARGETS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import served_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import read_aoe_device, read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DriveCache
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import read_drive_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import find_tools
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import read_behind
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import UNKNOWN, Group, LayerFacts

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
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
            yield name, drive_facts(device, cache)
    if behind.problems:
        raise StorageError(" ".join(behind.problems))


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


#: Levels that write a stripe in several steps; a power cut between them, with a disk missing, loses what was flushed before.
_PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}
_MD_WORDS = ("level", "degraded", "raid_disks", "layout", "sync_action", "consistency_policy", "journal_mode")
_RAID_MEMBER = re.compile(r"_r(?:image|meta)_(\d+)$")
_IN_SYNC = "A"
_GONE = "D-"


@frozen
class Array:
    """An array of any driver.

    :param level: ``raid0``, ``raid1``, ``raid5``…
    :param members: what holds data, each with all its devices.
    :param missing: how many more members it should have; ``None`` if that is not known.
    :param copies: of each block, for levels that keep copies.
    :param unfinished: whether its parity is being made or made again.
    :param guarded: whether a journal or a partial parity log records torn stripes.
    """

    level: str
    members: tuple[tuple[str, ...], ...]
    missing: int | None = 0
    copies: int = 1
    unfinished: bool = False
    guarded: bool = False

    @property
    def tolerance(self) -> int | None:
        """How many more members may be lost."""
        if self.missing is None:
            return None
        if self.level in _PARITY:
            return 0 if self.unfinished else max(_PARITY[self.level] - self.missing, 0)
        return max(self.copies - 1 - self.missing, 0)

    @property
    def torn(self) -> bool:
        """Whether a power cut can tear a stripe that nothing makes whole again."""
        return self.level in _PARITY and not self.guarded and bool(self.missing or self.unfinished)

    @property
    def group(self) -> Group:
        """The members as one group."""
        return Group(self.members, self.tolerance, self._why)

    @property
    def _why(self) -> str:
        if self.missing is None:
            return f"is a {self.level} array that does not report whether it is whole"
        if self.level not in _PARITY and self.copies < 2:
            return ""
        if self.unfinished and self.level in _PARITY:
            return f"is a {self.level} array whose parity is not complete yet"
        return f"is a {self.level} array that is not whole ({self.missing} missing)" if self.missing else f"is a whole {self.level} array"


def array_facts(array: Array, state: t.Mapping[str, t.Any], media: tuple[str, ...] | None = None, *extra: Group, lazy: str = "") -> LayerFacts:
    """What an array means for a write."""
    if not array.members and array.missing is not None:
        why = "is an array whose members cannot be seen"
        return LayerFacts("array", state, None, why, device_loss=UNKNOWN, device_loss_reason=why)
    why, loses = "is an array without a volatile cache", False
    if array.torn:
        why, loses = f"is a {array.level} array that is not whole and has neither a journal nor a partial parity log", True
    # An array that needs every member is no group: each of them is one.
    groups = (array.group, *extra) if array.tolerance is None or array._why else (*(Group((member,)) for member in array.members), *extra)
    return LayerFacts("array", state, False, why, loses=loses, media=media, groups=groups, lazy=lazy)


def read_md(devices: Devices, _runner: Runner, root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """MD arrays. With parity and a disk missing, a stripe that a power cut tears can no longer be distinguished from a whole one."""
    for device in devices:
        if device.kind != "md":
            continue
        folder = root / "sys/class/block" / device.name / "md"
        words = {name: read_attribute(folder / name) for name in _MD_WORDS}
        members = {
            name: {"state": read_attribute(folder / f"dev-{name}/state") or "", "slot": read_attribute(folder / f"dev-{name}/slot") or ""}
            for name in device.slaves
        }
        state: dict[str, t.Any] = {name: word for name, word in words.items() if word is not None}
        if any(reported["state"] for reported in members.values()):
            state["members"] = members
        yield device.name, md_facts(device, state)


def md_facts(device: BlockDevice, state: t.Mapping[str, t.Any]) -> LayerFacts:
    """One MD array from sysfs.

    :param state: the files of its ``md`` folder by name, and ``members``: state and slot of each.
    """
    reported = state.get("members", {})
    states = {name: reported.get(name, {}).get("state", "").split(",") for name in device.slaves}
    slots = {name: reported.get(name, {}).get("slot", "") for name in device.slaves}
    journal = [name for name in device.slaves if slots[name] == "journal" or "journal" in states[name]]
    # Spares and what has failed get neither data nor flushes.
    used = [name for name in device.slaves if name not in journal and "faulty" not in states[name] and slots[name] != "none"]
    synced = [name for name in used if "spare" not in states[name]] or used
    level = state.get("level", "")
    array = Array(
        level,
        tuple((name,) for name in synced),
        _md_missing(state),
        _md_copies(state, level),
        state.get("sync_action") in ("resync", "recover") and level in _PARITY,
        state.get("consistency_policy") in ("journal", "ppl"),
    )
    keeps_newest = bool(journal) and "[write-back]" in state.get("journal_mode", "")
    extra = (Group(tuple((name,) for name in journal), newest=True),) if keeps_newest else ()
    lazy = "has a journal, which was flushed when each write was acknowledged" if journal else ""
    return array_facts(array, state, (*synced, *journal), *extra, lazy=lazy)


def _md_missing(state: t.Mapping[str, t.Any]) -> int | None:
    if state.get("level") in ("raid0", "linear"):
        return 0
    return int(state["degraded"]) if state.get("degraded", "").isdigit() else None


def _md_copies(state: t.Mapping[str, t.Any], level: str) -> int:
    if level == "raid1":
        # While an array is reshaped: "3 (2)".
        count = state.get("raid_disks", "").split(" ", 1)[0]
        return int(count) if count.isdigit() else 1
    if level == "raid10":
        layout = int(state["layout"]) if state.get("layout", "").isdigit() else 0x102
        return max((layout & 0xFF) * (layout >> 8 & 0xFF), 1)
    return 1


def read_dm(devices: Devices, runner: Runner, _root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """Arrays of device-mapper; one ``dmsetup status`` if there is one."""
    for device in devices:
        if device.dm_name is not None and not device.dm_targets and len(device.slaves) > 1 and device.kind != "multipath":
            why = "is on several devices, and how they are combined cannot be read (dmsetup)"
            yield device.name, LayerFacts("mapping", {}, False, "is a mapping without a volatile cache", device_loss=UNKNOWN, device_loss_reason=why)
    arrays = [device for device in devices if {"raid", "mirror"} & set(device.dm_targets)]
    if not arrays:
        return
    lines = (line.partition(": ") for line in runner.run(["dmsetup", "status"]).stdout.splitlines())
    status = {name: rest.split() for name, _colon, rest in lines if len(rest.split()) > 3 and rest.split()[2] in ("raid", "mirror")}
    for device in arrays:
        yield device.name, dm_facts(device, devices, status.get(device.dm_name or "", []))


def dm_facts(device: BlockDevice, devices: Devices, words: t.Sequence[str]) -> LayerFacts:
    """One array of device-mapper from its status line, cut into words; without words its state is not known."""
    reader = {"raid": _dm_raid, "mirror": _dm_mirror}.get(words[2] if len(words) > 2 else "")
    try:
        array, health = reader(device, devices, words[3:]) if reader else (None, "")
    except (IndexError, ValueError):
        array, health = None, ""
    if array is None:
        return array_facts(Array("device-mapper", (), None), {"health": None})
    alive = tuple(name for member, sign in zip(array.members, health) if sign not in _GONE for name in member)
    members = tuple(member for member, sign in zip(array.members, health) if sign == _IN_SYNC) or array.members
    return array_facts(
        Array(array.level, members, array.missing, array.copies, array.unfinished, array.guarded),
        {"level": array.level, "degraded": str(array.missing), "health": health},
        alive or None,
    )


def _dm_raid(device: BlockDevice, devices: Devices, words: t.Sequence[str]) -> tuple[Array | None, str]:
    """``raid1 2 AA 2097152/2097152 idle 0 0 -``: type, number of members, health, progress, action, mismatches, offset, journal."""
    level = re.sub(r"^(raid\d+)_.*$", r"\1", words[0])
    count, health = int(words[1]), words[2]
    images: dict[int, list[str]] = {}
    for name in device.slaves:
        below = devices.get(name)
        match = _RAID_MEMBER.search(below.dm_name or "") if below is not None else None
        if match:
            images.setdefault(int(match.group(1)), []).append(name)
    if sorted(images) != list(range(count)) or len(health) != count:
        return None, ""
    missing = sum(sign != _IN_SYNC for sign in health)
    copies = {"raid1": count, "raid10": 2}.get(level, 1)
    guarded = len(words) > 7 and words[7] in ("A", "P")
    members = tuple(tuple(images[number]) for number in range(count))
    return Array(level, members, 0 if level == "raid0" else missing, copies, len(words) > 4 and words[4] == "resync", guarded), health


def _dm_mirror(_device: BlockDevice, devices: Devices, words: t.Sequence[str]) -> tuple[Array | None, str]:
    """``2 253:0 253:1 100/100 1 AA 3 disk 253:2 A``: members, progress, health, log."""
    count = int(words[0])
    by_number = {one.number: one.name for one in devices}
    members = tuple((by_number[number],) for number in words[1 : 1 + count] if number in by_number)
    done, _slash, total = words[1 + count].partition("/")
    health = words[3 + count]
    if len(members) != count or len(health) != count:
        return None, ""
    missing = sum(sign != _IN_SYNC for sign in health) if done == total else count - 1
    return Array("mirror", members, missing, count), health
