# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is in the way of a bcache, and what it will lie on: devices, superblocks, sets and block sizes. Pure."""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import (
    CLEAN,
    INCONSISTENT,
    NO_CACHE,
    Backing,
    BcacheSuperblock,
    CacheSet,
    Registered,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.journal import Journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.udev_rules import Rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse, resolve_stable, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import FastDevice, HostDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CreateMirror, StartMirror
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable, node_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

LAYER = "bcache"
#: make-bcache's own.
BUCKET = 512 * KIB
#: The kernel keeps a 1024th of the buckets, rounded up to a power of two, in reserve, and requires that to be at least one.
LEAST_BUCKETS = 513
_NAMESPACE = uuid.UUID("0d2b0f0a-53e5-4a55-8f3c-3a1f6f6a7c11")


@frozen
class BcacheState:
    """The bcache of a host, and what the wanted devices carry.

    :param supers: bcache superblocks by kernel name: of every device that is not registered, and of backing devices that are
        registered and wait for their set.
    :param rules: the settings that are set again at boot, by the UUID of the device.
    :param unreadable: why the kernel's list of what is cached cannot be read, by the UUID of the set: without it nothing proves that a set is clean.
    :param found: what the origins of items that need not have a cache belong to, by the name of the item.
    :param token: 16 hexadecimal digits that no other reading has, for the UUIDs of new sets.
    """

    ground: HostDevices
    registered: Registered = field(default_factory=Registered)
    supers: t.Mapping[str, BcacheSuperblock] = field(default_factory=dict)
    rules: Rules = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    token: str = "0" * 16
    found: t.Mapping[str, Origin] = field(default_factory=dict)
    unreadable: t.Mapping[str, str] = field(default_factory=dict)

    def backing_on(self, device: BlockDevice) -> tuple[Backing | None, bool]:
        """The backing device, and whether it is registered; of one that is not, as much as its superblock contains."""
        registered = self.registered.backings.get(device.name)
        if registered is not None:
            return registered, True
        sb = self.supers.get(device.name)
        if sb is None or sb.cache:
            return None, False
        state = NO_CACHE if sb.state == "detached" else sb.state or ""
        known = sb.set if sb.set is not None and self.place_of(sb.set) is not None else None
        return Backing(name=device.name, uuid=sb.uuid, label=sb.label, mode=sb.mode, state=state, running=False, set=known), False

    def place_of(self, cset: str) -> str | None:
        """The kernel name of the device that carries a set, whether that is registered or not."""
        registered = self.registered.sets.get(cset)
        if registered is not None:
            return registered.caches[0] if registered.caches else None
        return next((name for name, sb in self.supers.items() if sb.cache and sb.set == cset), None)

    def awaited(self, backing: Backing) -> str | None:
        """The set that a backing device waits for."""
        sb = self.supers.get(backing.name)
        return sb.set if backing.set is None and sb is not None and backing.state != NO_CACHE else None

    def block_size_of(self, backing: Backing) -> int | None:
        mounted = self.ground.devices.get(backing.device or "")
        if mounted is not None:
            return mounted.logical_block
        sb = self.supers.get(backing.name)
        return sb.block_size if sb is not None else None


@frozen
class CacheSetTarget:
    """The cache set that a group of items will be attached to.

    :param fast: what it lies on.
    :param set: its UUID.
    :param block_size: in bytes.
    :param exists: it is registered and as wanted.
    :param register: it is on the device and not registered.
    :param rebuild: the set that is there now and has to go first, None if there is none.
    """

    fast: FastDevice
    set: str
    block_size: int
    bucket_size: int
    exists: CacheSet | None = None
    register: bool = False
    rebuild: str | None = None


def new_set_uuid(machine: str, identity: str, token: str) -> str:
    """A UUID for a set that is made now: no set that was on the device before had it, and :func:`is_own` recognizes it.

    The kernel takes the first 8 bytes as the magic number of the journal (``jset_magic``, include/uapi/linux/bcache.h of Linux 6.1) and
    make-bcache does not erase the journal. A set with the UUID of an earlier one on the same device replays the journal of that one
    after a power cut, wherever its sequence numbers are higher, and what was written since is lost: seen on Linux 6.1.
    """
    return str(uuid.UUID(f"{token[:12]}8{token[12:15]}{_tail(machine, identity)}"))


def is_own(found: str | None, machine: str, identity: str) -> bool:
    """Whether this collection made a set on this device of this machine, so that what an interrupted run left is recognized."""
    # Up to version 0.4 the whole UUID was computed.
    return found is not None and (found.replace("-", "")[16:] == _tail(machine, identity) or found == str(_computed(machine, identity)))


def _computed(machine: str, identity: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, f"{machine}\n{identity}")


def _tail(machine: str, identity: str) -> str:
    """The last 8 bytes, in hexadecimal digits."""
    return _computed(machine, identity).hex[16:]


def _identity(fast: FastDevice) -> str:
    if fast.device is None:
        # A step before may clear away what is left of another mirror.
        return next(step.operation.uuid for step in fast.steps if isinstance(step.operation, (CreateMirror, StartMirror)))
    if fast.device.kind == "partition" and not fast.device.properties.get("ID_PART_ENTRY_UUID"):
        # Where partitions have no UUID, their identity is the serial number of the disk, which all of them share.
        return fast.device.stable_path or fast.path
    return fast.device.properties.get("MD_UUID") or fast.device.identity or fast.device.stable_path or fast.path


def emptied(state: BcacheState, names: t.Container[str]) -> BcacheState:
    """The host as it will be when the sets on some devices have been taken down."""
    devices = [dataclasses.replace(device, holders=(), signature=None) for device in state.ground.devices if device.name in names]
    if not devices:
        return state
    sets = {uuid: cset for uuid, cset in state.registered.sets.items() if not any(name in names for name in cset.caches)}
    findings = {name: finding for name, finding in state.ground.findings.items() if name not in names}
    ground = dataclasses.replace(state.ground, devices=state.ground.devices.with_changed(devices), findings=findings)
    supers = {name: sb for name, sb in state.supers.items() if name not in names}
    return dataclasses.replace(state, ground=ground, registered=dataclasses.replace(state.registered, sets=sets), supers=supers)


def find_target(state: BcacheState, spec: BcacheSpec, awaited: t.Container[str | None], taken: t.Container[str]) -> CacheSetTarget:
    """Where an item's cache will lie.

    :param awaited: sets that backing devices of the list wait for: one that is there but not registered is brought back.
    :param taken: kernel names of devices that other caches of the list lie on.
    :raises DeviceMissing: if a device is not there.
    :raises BadInput: if a path is invalid.
    :raises Refused: if the device carries anything else.
    """
    fast = fast_device.choose(state.ground, spec, LAYER, taken=taken, check_empty=False)
    identity = _identity(fast)
    new = new_set_uuid(state.ground.machine, identity, state.token)
    name = fast.device.name if fast.device is not None else ""
    block = fast.device.logical_block if fast.device is not None else _member_block(state, spec)
    there = state.registered.set_on(name)
    if there is not None:
        return _existing(fast, there, spec, new, block)
    sb = state.supers.get(name)
    elsewhere = state.registered.sets.get((sb.set if sb is not None and sb.cache else None) or "")
    if elsewhere is not None and elsewhere.caches:
        raise other_registration(spec, fast.path, elsewhere.caches[0])
    if sb is not None and sb.cache and sb.set is not None and (is_own(sb.set, state.ground.machine, identity) or sb.set in awaited or sb.set in _noted(state)):
        if spec.bucket_size not in (None, sb.bucket_size) and sb.set not in awaited:
            return CacheSetTarget(fast, new, _new_block(spec, block), spec.bucket_size or BUCKET, rebuild=sb.set)
        return CacheSetTarget(fast, sb.set, sb.block_size or block, sb.bucket_size or BUCKET, register=True)
    if sb is not None and sb.cache:
        raise Refused(
            f"{spec.name}: {fast.path} carries the cache of another bcache set ({sb.set}) that is not running, and may hold blocks that its origin does"
            f" not have: name an empty device, or start that set (echo {fast.path} > /sys/fs/bcache/register), detach what uses it, or, if nothing on it is"
            f" needed, run wipefs -a {fast.path} manually.",
            item=spec.name,
        )
    for path in spec.cache_devices:
        require_not_nested(state, state.ground.devices.resolve(path, spec.name), path, spec)
    fast_device.choose(state.ground, spec, LAYER, taken=taken)
    bucket = spec.bucket_size or BUCKET
    if fast.size // bucket < LEAST_BUCKETS:
        raise BadInput(
            f"{spec.name}: {' and '.join(spec.cache_devices)} has room for {fast.size // bucket} buckets of {format_size(bucket)}, and the kernel accepts"
            f" no cache with fewer than {LEAST_BUCKETS}: use a larger device or a smaller bucket_size.",
            item=spec.name,
        )
    return CacheSetTarget(fast, new, _new_block(spec, block), bucket)


def _noted(state: BcacheState) -> set[str]:
    return {between.set for between in state.journal.between.values()}


def _existing(fast: FastDevice, there: CacheSet, spec: BcacheSpec, new: str, block: int) -> CacheSetTarget:
    bucket = there.bucket_size or BUCKET
    if spec.bucket_size in (None, there.bucket_size):
        return CacheSetTarget(fast, there.uuid, there.block_size or block, bucket, exists=there)
    return CacheSetTarget(fast, new, _new_block(spec, block), spec.bucket_size or BUCKET, rebuild=there.uuid)


def _new_block(spec: BcacheSpec, block: int) -> int:
    if spec.block_size is not None and spec.block_size < block:
        raise BadInput(
            f"{spec.name}: block_size is {format_size(spec.block_size)}, and {' and '.join(spec.cache_devices)} writes blocks of {format_size(block)}:"
            " write no less than that.",
            item=spec.name,
        )
    return block


def _member_block(state: BcacheState, spec: BcacheSpec) -> int:
    return max(state.ground.devices.resolve(path, spec.name).logical_block for path in spec.cache_devices)


def with_backing_devices(specs: t.Sequence[BcacheSpec], registered: Registered, devices: Devices) -> list[BcacheSpec]:
    """The items with the backing devices that are meant by their origins.

    :raises BadInput: if two items mean the same device by two names.
    """
    resolved = [_with_backing_device(spec, registered, devices) for spec in specs]
    named: dict[str, BcacheSpec] = {}
    for spec, found in zip(specs, resolved):
        other = named.setdefault(found.origin, spec)
        if other.origin != spec.origin:
            raise BadInput(f"{spec.name}: {spec.origin} and {other.origin} ({other.name}) are the same bcache: list it only once.", item=spec.name)
    return resolved


def _with_backing_device(spec: BcacheSpec, registered: Registered, devices: Devices) -> BcacheSpec:
    """An item that names the cached device as origin, which is what is mounted, with the backing device of it; any other item as it is.

    What is made or changed is named by a path that stays.
    """
    try:
        device = devices.resolve(spec.origin)
    except DeviceMissing:
        return spec
    backing = next((one for one in registered.backings.values() if device.kind == "bcache" and one.device == device.name), None)
    below = devices.get(backing.name) if backing is not None else None
    if below is None or (spec.present and not is_stable(spec.origin)):
        return spec
    return dataclasses.replace(spec, origin=below.stable_path or below.path)


def find_origin(state: BcacheState, spec: BcacheSpec) -> BlockDevice | None:
    """The slow device of an item; None if it is not there and nothing is to be done with it.

    :raises DeviceMissing: if it is needed and not there.
    :raises BadInput: if its path may name another device one day.
    """
    if spec.present:
        return resolve_stable(state.ground.devices, spec.origin, spec.name)
    try:
        return state.ground.devices.resolve(spec.origin, spec.name)
    except DeviceMissing:
        return None


def require_unformatted(state: BcacheState, device: BlockDevice, spec: BcacheSpec) -> None:
    """Refuse an origin that is in use or contains anything: its content could not be kept.

    :raises Refused: naming what is on it and what can be done.
    """
    finding = state.ground.findings.get(device.name, DeviceUse())
    if device.signature is not None:
        finding = finding.with_signatures(device.signature.type, device.signature.partition_table)
    reasons = [*uses_of(device), *(reason for reason in finding.reasons if "exclusively" not in reason or not device.holders)]
    if reasons:
        raise Refused(
            f"{spec.name}: {spec.origin} {' and '.join(reasons)}. bcache writes its superblock where the content begins, which cannot be kept in place:"
            f" copy it elsewhere, wipe the device (blkdiscard {spec.origin}, or overwrite it with zeros), run again and copy it"
            " back, or use lvm_cache or dm_cache, which accept an origin with its data.",
            item=spec.name,
        )


def other_registration(spec: BcacheSpec, path: str, name: str) -> Refused:
    """That the kernel has registered a superblock by another path to the device that carries it: it accepts no second one."""
    return Refused(
        f"{spec.name}: {path} carries what the kernel has registered as {node_of(name)}, another path to the same unit of storage, or a copy of it, that was"
        f" there first: stop the bcache while nothing uses it (echo 1 > /sys/block/{name}/bcache/stop; of a cache device, bcache/set/stop), have multipath take"
        f" that path (multipath -r), and register {path} (echo {path} > /sys/fs/bcache/register).",
        item=spec.name,
    )


def require_not_nested(state: BcacheState, device: BlockDevice, path: str, spec: BcacheSpec) -> None:
    """Refuse a device that is a bcache or lies on one: a bcache within another is not registered by every kernel, and locks up some when it stops.

    :raises Refused: naming the bcache.
    """
    outer = next((one for one in (device, *state.ground.devices.parents(device)) if one.kind == "bcache"), None)
    if outer is not None:
        where = "is a bcache" if outer is device else f"lies on the bcache {outer.stable_path or outer.path}"
        raise Refused(
            f"{spec.name}: {path} {where}, and a bcache within a bcache is not supported by the kernel: name a device that does not lie on one, or use"
            " lvm_cache or dm_cache for this cache.",
            item=spec.name,
        )


def new_backing_block(device: BlockDevice, target: CacheSetTarget, spec: BcacheSpec) -> int:
    """The block size of a backing device that is going to be made.

    :raises BadInput: if the requested one is smaller than what a device below writes.
    """
    low = max(device.logical_block, target.block_size)
    if spec.block_size is not None and spec.block_size < low:
        raise BadInput(
            f"{spec.name}: block_size is {format_size(spec.block_size)}, and the devices below write blocks of {format_size(low)}: use no less.",
            item=spec.name,
        )
    return spec.block_size or low


def require_fitting_blocks(block: int | None, target: CacheSetTarget, spec: BcacheSpec) -> None:
    """Refuse what no step can change: the block size of a backing device that has data.

    :raises Refused: with that reason.
    """
    if block is not None and spec.block_size not in (None, block):
        raise Refused(
            f"{spec.name}: {spec.origin} was made with blocks of {format_size(block)}, and block_size requests {format_size(spec.block_size or 0)}: it"
            " cannot be changed without recreating the device, which loses what is on it; remove block_size.",
            item=spec.name,
        )
    if block is not None and target.block_size > block:
        raise Refused(
            f"{spec.name}: {spec.origin} has blocks of {format_size(block)}, and a cache on {' and '.join(spec.cache_devices)} has blocks of"
            f" {format_size(target.block_size)}, which the kernel does not attach to smaller ones: name a cache device that writes blocks of"
            f" {format_size(block)}.",
            item=spec.name,
        )


def attachable(backing: Backing) -> bool:
    """Whether a new set may be attached: nothing that is only on another cache device would be left behind by it."""
    return backing.state in (NO_CACHE, CLEAN, INCONSISTENT)
