# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The device a cache is to lie on: which it is, what it contains, what uses it, and whether it is kept twice.

Sources: open(2): ``O_EXCL`` on a block device fails with EBUSY while the kernel uses it (a mount, swap, md, dm, bcache);
MD: Documentation/admin-guide/md.rst (``level``, ``raid_disks``, ``degraded``).
"""

from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import is_as_left
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable, kernel_name, node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices, suspended_below
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import Sameness, read_sameness, require_same
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_cache_metadata, read_signatures
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: What protects the blocks that are only in a write-back cache.
MIRRORED, DEGRADED, UNMIRRORED = "mirrored", "degraded", "none"

#: What comes back alone after a boot passes for the whole mirror, and lacks what was written without it.
STALE_MEMBER = "Take the failed member out of the machine before the next boot: if it alone were found then, it would serve old data."

#: MD_NAME of arrays that this collection made; mdadm keeps 32 bytes of a name.
PREFIX = "cachefleet-"

#: udev and its like open a device for a moment.
_ATTEMPTS = 3
_PAUSE = 0.5

_NOT_LISTED = "may be in use: it is not among the block devices of this host in /sys/class/block"

#: Transports by which a unit has several paths.
_OF_NETWORKS = frozenset({"fc", "iscsi", "nvme_fabrics", "sas", "scsi"})

_REDUNDANT_LEVELS = frozenset({"raid1", "raid4", "raid5", "raid6", "raid10"})


@frozen
class DeviceUse:
    """Reasons not to use a device.

    :param signatures: what libblkid reports, as ``type`` or ``type (label or UUID)``.
    :param cache_metadata: superblocks of block caches that libblkid does not support.
    :param users: what uses it, each as the rest of a sentence about it.
    :param data: that it has data without a signature, or cannot be read, as the rest of a sentence about it; empty if it is empty, or was not read.
    :param examined: whether the device itself was examined.
    """

    signatures: tuple[str, ...] = ()
    cache_metadata: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    data: str = ""
    examined: bool = False

    def with_signatures(self, *types: str | None) -> DeviceUse:
        """The same with types that udev has reported, each once, unless the device itself was examined.

        After a change event that was missed udev's database keeps what is no longer there, for as long as the host runs.
        """
        if self.examined:
            return self
        known = {text.split(" ", 1)[0] for text in self.signatures}
        return replace(self, signatures=(*self.signatures, *(name for name in types if name and name not in known)))

    @property
    def reasons(self) -> list[str]:
        """Why it is not taken, each as the rest of a sentence about the device; none if it is empty and unused."""
        reasons = list(self.users)
        if self.signatures:
            reasons.append(f"carries a signature ({', '.join(self.signatures)})")
        if self.cache_metadata:
            reasons.append(f"carries {' and '.join(self.cache_metadata)}, and may hold blocks that its origin does not have")
        return [*reasons, self.data] if self.data else reasons

    def advice(self, path: str) -> str:
        """What can be done about it."""
        if self.cache_metadata:
            return (
                "name an empty device, or flush that cache with its own tools; if nothing on it is needed, overwrite the beginning of"
                f" {path} manually (wipefs does not detect that metadata)"
            )
        if self.data:
            return (
                f"name an empty device, or, if nothing on it is needed, make it return zeros manually: blkdiscard {path}, the module purge, or overwrite"
                " it (wipefs only removes signatures)"
            )
        return f"name an empty device, or, if nothing on it is needed, unmount it, discard it (blkdiscard) and run wipefs -a {path} manually"


def examine(
    runner: Runner,
    path: str,
    root: Path,
    sleep: t.Callable[[float], None],
    *,
    around: Neighbourhood | None = None,
    held: bool = False,
    empty: bool = True,
) -> DeviceUse:
    """Examine one device.

    :param path: any path of the device.
    :param around: the devices of the host, if they have been read already.
    :param held: whether this process holds the device exclusively.
    :param empty: whether it must be empty; a device that keeps its data is not read.
    :raises ToolMissing: if the host has neither wipefs nor blkid.
    """
    node = root / path.lstrip("/")
    suspended = suspended_below(kernel_name(path, root), root)
    if suspended is not None:
        # Reads wait as long as it is suspended.
        return DeviceUse(users=(f"is suspended, or is on a device that is (/dev/{suspended}; dmsetup resume ends that)",), examined=True)
    around = Neighbourhood(read_devices(runner, root), runner, root) if around is None else around
    device = _behind(around.devices, path)
    busy = () if held else _held(node, sleep)
    used = tuple(_used(around, device, sleep, busy=bool(busy))) if device is not None else ()
    # Below another root the devices of a host need not be among its files.
    unit = unit_of(node)
    loops = [node_of(name) for name, below in around.backing.items() if below is not None and below == unit]
    looped = (f"lies under {', '.join(loops)}",) if loops else ()
    users = (*busy, *looped, *used, *((_NOT_LISTED,) if device is None and str(root) == "/" else ()))
    found = DeviceUse(read_signatures(runner, path), read_cache_metadata(node), users, examined=True)
    is_read = empty and not found.reasons and not (device is not None and is_own_array(device))
    return replace(found, data=_data(node, root)) if is_read else found


@contextlib.contextmanager
def still_empty(
    runner: Runner, path: str, item: str, root: Path, sleep: t.Callable[[float], None], purpose: str = "use it as a cache device"
) -> t.Iterator[None]:
    """Around the command that overwrites a device: it is examined again, and the command gets the very device that was examined.

    :param purpose: what is refused, for the message.
    :raises Refused: if it is not empty or not unused any more, or has become another device.
    """
    before = identified(runner, path, root)
    finding = examine(runner, path, root, sleep)
    if finding.reasons:
        raise Refused(
            f"{item}: {path} was empty when it was examined and now {' and '.join(finding.reasons)}; refusing to {purpose}: {finding.advice(path)}.", item=item
        )
    with still_same(runner, path, item, root, before):
        yield


def identified(runner: Runner, path: str, root: Path) -> Sameness:
    """What a device is now."""
    return read_sameness(kernel_name(path, root), runner, root)


@contextlib.contextmanager
def still_same(runner: Runner, path: str, item: str, root: Path, before: Sameness) -> t.Iterator[None]:
    """Around a command that changes a device that was examined. It stays open, not exclusively, as the command itself claims it: its number is not given
    to another device meanwhile.

    :param before: from before the examination.
    :raises Refused: if the path leads to another device by now.
    """
    try:
        descriptor = os.open(root / path.lstrip("/"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{item}: {path} cannot be opened now ({error.strerror}): nothing was written to it.", item=item) from None
    try:
        require_same(path, before, runner, root, descriptor)
        yield
    finally:
        os.close(descriptor)


def _behind(devices: Devices, path: str) -> BlockDevice | None:
    try:
        return devices.resolve(path)
    except DeviceMissing:
        return None


def is_own_array(device: BlockDevice) -> bool:
    """Whether this collection made an MD array, of devices that were empty or that a cache has left: what it shows is never read."""
    return device.kind == "md" and device.properties.get("MD_NAME", "").split(":")[-1].startswith(PREFIX)


def _used(around: Neighbourhood, device: BlockDevice, sleep: t.Callable[[float], None], *, busy: bool) -> t.Iterator[str]:
    """Who uses a device, or what is around it, without the kernel holding it.

    :param busy: whether the kernel holds it: its open count says nothing then.
    """
    for one in (device, *(other for name, other in around.around(device).items() if name != device.name)):
        where = "" if one is device else f"shares its storage with {one.path}, which "
        yield from (f"{where}is served to other hosts by {exporter}" for exporter in around.exporters(one))
    found = around.openers(device, sleep)
    if found.writers:
        yield f"is open for writing in {', '.join(found.writers)}"
    if found.readers:
        yield f"is open for reading in {', '.join(found.readers)}"
    if found.opened and not busy:
        yield "is open according to device-mapper (dmsetup info), and no process was found that has it open"
    if found.unseen and not (found.writers or found.readers):
        yield f"may be in use, because the open files of {found.unseen} processes cannot be read ({way_to_see()})"
    yield from (f"may be in use: {text}" for text in found.unknown)
    yield from (f"is also {twin.path}, which {use}" for twin in around.same_storage(device) for use in uses_of(replace(twin, read_only=False))[:1])


def _data(node: Path, root: Path) -> str:
    try:
        offset = contents.first_data(node, contents.places_of(contents.size_of(node)))
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if offset is None or is_as_left(node, root):
        return ""
    return f"contains data without a known signature, the first that was found at byte {offset}"


def require_stable(path: str, stable: str | None, item: str) -> None:
    """Refuse a path that may name another device after a reboot.

    :raises BadInput: naming the stable path of the same device.
    """
    if is_stable(path):
        return
    instead = f": use {stable}, which is the same device" if stable else ", and it has no stable path: give it a serial number or put LVM or MD on it"
    raise BadInput(f"{item}: {path} may be another device after the next reboot{instead}.", item=item)


def resolve_stable(devices: Devices, path: str, item: str) -> BlockDevice:
    """The device behind a path that names it, and no other, also after a reboot.

    :raises DeviceMissing: if it is not there.
    :raises BadInput: if the path may name another device one day.
    """
    device = devices.resolve(path, item)
    require_stable(path, device.stable_path, item)
    # A multipath device and its paths carry the same links, and udev gives them to the one on top.
    own = {device.name, *(below.name for below in devices.parents(device))}
    rivals = [other for other in devices.claimants(path) if other.name not in own]
    if rivals:
        if device.kind == "disk" and all(is_same_unit(device, rival) for rival in rivals):
            require_whole_unit(devices, device, path, item)
        raise BadInput(
            f"{item}: {path} is claimed by {device.path} and by {', '.join(rival.path for rival in rivals)}, and may name the other after the"
            " next reboot: use a link that only one of them has, for example its WWN (/dev/disk/by-id/wwn-…) or its place (/dev/disk/by-path/…).",
            item=item,
        )
    return device


def require_whole_unit(devices: Devices, device: BlockDevice, path: str, item: str) -> None:
    """Refuse one of several paths to a unit of storage, before something is written to it that the other paths show too.

    What starts a cache at boot would find it on each of them, and what is written through one is not in the memory of the other.

    :raises Refused: naming the multipath device, or the other paths if there is none yet.
    """
    disk = devices.get(device.parent or device.name) or device
    group = _multipath_of(devices, disk)
    if group is not None:
        raise Refused(
            f"{item}: {path} is one of the paths to the multipath device {group.stable_path or group.path}: name that device"
            f"{', or its partition,' if disk is not device else ''} in place of it.",
            item=item,
        )
    others = [other for other in devices if other.name != disk.name and is_same_unit(disk, other)]
    if not others:
        return
    names = " and ".join(sorted(other.path for other in others))
    groups = {group.stable_path or group.path for other in others for group in [_multipath_of(devices, other)] if group is not None}
    way = (
        f"have multipath take it too (multipath -r) and name {' or '.join(sorted(groups))}"
        if groups
        else "join them with multipath (multipathd) and name the multipath device, or remove the other paths"
    )
    raise Refused(f"{item}: {path} and {names} are paths to one unit of storage ({disk.wwn or disk.serial}), and not one multipath device: {way}.", item=item)


def _multipath_of(devices: Devices, disk: BlockDevice) -> BlockDevice | None:
    return next((holder for name in disk.holders for holder in [devices.get(name)] if holder is not None and holder.kind == "multipath"), None)


def is_same_unit(one: BlockDevice, other: BlockDevice) -> bool:
    """Whether two disks are paths to one unit of storage: by WWN, and where a unit of a storage network has none by its serial number, model and size."""
    if one.kind != "disk" or other.kind != "disk":
        return False
    if one.wwn is not None or other.wwn is not None:
        return one.wwn == other.wwn
    of_network = {one.transport, other.transport} <= _OF_NETWORKS
    return of_network and one.serial is not None and (one.serial, one.model, one.size) == (other.serial, other.model, other.size)


def uses_of(device: BlockDevice) -> list[str]:
    """What the kernel does with a device, each as the rest of a sentence about it."""
    reasons = []
    if device.mountpoints:
        reasons.append(f"is mounted on {device.mountpoints[0]}")
    if device.swap:
        reasons.append("is swap space")
    if device.holders:
        reasons.append(f"is used by {', '.join(device.holders)}")
    if device.partitions:
        reasons.append(f"has the partitions {', '.join(device.partitions)}")
    if device.read_only:
        reasons.append("is read-only")
    return reasons


def require_empty(device: BlockDevice, finding: DeviceUse, path: str, item: str) -> None:
    """Refuse a device that is in use or contains anything.

    :param finding: what :func:`examine` found on the device itself; udev does not report all of it, and is used only without an own reading.
    :raises Refused: naming what is on it and what can be done.
    """
    if device.signature is not None:
        finding = finding.with_signatures(device.signature.type, device.signature.partition_table)
    reasons = [*uses_of(device), *finding.reasons]
    if reasons:
        raise Refused(f"{item}: {path} {' and '.join(reasons)}; refusing to use it as a cache device: {finding.advice(path)}.", item=item)


def require_mirrored(redundancy: str, paths: t.Sequence[str], item: str, target: str, *, allowed: bool) -> None:
    """No write-back on a device whose loss would be a loss of data, unless it was allowed for this cache.

    :param redundancy: :data:`MIRRORED`, :data:`DEGRADED` or :data:`UNMIRRORED`.
    :param paths: the cache devices, as the user wrote them.
    :param target: what is cached, as the user wrote it.
    :param allowed: ``allow_unmirrored_writeback`` of this cache.
    :raises Refused: naming the option that allows it.
    """
    if redundancy == MIRRORED or allowed:
        return
    device = " and ".join(paths) or "the cache device"
    if redundancy == DEGRADED:
        raise Refused(
            f"{item}: {target} would lose data at the next failure of a drive, because write-back keeps the newest data only on {device} and that"
            " mirror is degraded: replace the member that failed, use mode writethrough, or set allow_unmirrored_writeback: true for this cache.",
            item=item,
        )
    raise Refused(
        f"{item}: {target} would lose data if {device} failed, because write-back keeps the newest data only there and it is not mirrored:"
        " use two devices with mirror: true, a mirrored device, or mode writethrough, or set allow_unmirrored_writeback: true for this cache.",
        item=item,
    )


def _held(node: Path, sleep: t.Callable[[float], None]) -> tuple[str, ...]:
    reason = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(_PAUSE)
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            reason = f"cannot be opened exclusively ({os.strerror(error.errno or 0)})"
        else:
            return ()
    return (reason,)


def md_redundancy(root: Path, name: str) -> bool | None:
    """Whether an MD array survives the loss of a member: False if it has too few for it now, None if it never does."""
    folder = root / "sys/class/block" / name / "md"
    if read_attribute(folder / "level") not in _REDUNDANT_LEVELS:
        return None
    # While an array is reshaped: "3 (2)". One of a single member has a level and no second copy.
    members = (read_attribute(folder / "raid_disks") or "").split(" ", 1)[0]
    if not members.isdigit() or int(members) < 2:
        return None
    return read_number(folder / "degraded") == 0
