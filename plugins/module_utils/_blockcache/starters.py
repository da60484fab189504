# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a boot starts by itself from the bare origin of a cache: one table for all types.

A cache that leaves its origin visible does not hide what is on it. What is started from the origin before the cache is there reads
old blocks and writes new ones below the cache; what the cache flushes later overwrites them. The unit of a cache is ordered before
file systems are mounted, so that a line of fstab only matters if the cache does not start. Everything else in the table waits for
nothing but the device.

bcache and LVM need none of this: the superblock of bcache is before the data of its origin, which it claims for itself alone, and LVM hides the
origin. Mappings of device-mapper share their claim with each other, so that LVM can run a group on the origin of a cache that is loaded.

Sources: lvm.conf(5) (``global_filter``, ``filter``), lvmdevices(8), 69-dm-lvm.rules, 64-md-raid-assembly.rules, 64-btrfs.rules, crypttab(5),
systemd-cryptsetup-generator(8), systemd.mount(5), initramfs-tools(7) (``RESUME``), dracut.cmdline(7) (``root``, ``resume``), zpool-import(8).
"""

from __future__ import annotations

import contextlib
import json
import re
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fstab
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.hiding_rule import is_hidden
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import Starter, partitions_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_signatures, read_tags

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import CacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices


@frozen
class Kind:
    """One kind of content that something starts by itself.

    :param types: as libblkid names it, the whole word.
    :param does: what starts it and how, as the rest of a sentence about "at boot".
    :param way: what keeps it away, as the rest of a sentence; ``{origin}`` and ``{cached}`` are paths.
    :param by_udev: whether nothing but an event of udev starts it, so that a rule that hides the content keeps it away.
    :param early: whether it does not wait for units that are ordered before file systems.
    """

    types: str
    does: str
    way: str
    by_udev: bool = True
    early: bool = True


_NO_BELOW = "use mode writethrough, or put {what} below the cache and not on it"
#: A btrfs is registered device by device: only one of several devices (:func:`_is_alone`) is used by another name than that which is mounted.
KINDS = (
    Kind(
        r"LVM[12]_member",
        "LVM activates the volume group on it",
        "keep LVM from {origin} in lvm.conf, with use_devicesfile = 0 (with a devices file LVM ignores filters, and at boot takes {origin} for {cached}) and"
        ' global_filter = [ "a|^/dev/mapper/|", "a|^/dev/dm-|", "r|.*|" ] and what else LVM uses, by names of the kernel, as it knows no link when udev'
        " starts it; then update-initramfs -u or dracut -f",
    ),
    Kind(r".*_raid_member", "mdadm assembles the array of which it is a member", _NO_BELOW.replace("{what}", "the array")),
    Kind(r"mpath_member", "multipathd takes it", "blacklist it in multipath.conf, or use the multipath device as the origin", by_udev=False),
    Kind(r"zfs_member", "ZFS imports the pool on it", _NO_BELOW.replace("{what}", "the pool"), by_udev=False),
    Kind(r"bcache", "udev registers it with bcache", _NO_BELOW.replace("{what}", "bcache")),
    Kind(r"stratis", "stratisd starts the pool on it", _NO_BELOW.replace("{what}", "the pool")),
    Kind(r"ceph_bluestore", "a Ceph OSD is started from it", "use mode writethrough, or give the OSD {cached} as its device", by_udev=False, early=False),
    Kind(r"btrfs", "udev registers it as one of the devices of its file system", "mount it with device={cached} for this device", early=False),
    Kind(r"swsuspend", "the initramfs resumes the host from it", "use mode writethrough, or hibernate to another swap space", by_udev=False),
)

#: Mounted by the initramfs, before any unit.
_BY_INITRAMFS = frozenset({"/", "/usr"})
_CMDLINES = ("proc/cmdline", "etc/kernel/cmdline")
_RESUME = "etc/initramfs-tools/conf.d/resume"
_BOOT_WORD = re.compile(r"(?:^|\s)(root|resume|RESUME)=(?:block:)?(\S+)")
#: What DRBD attaches at boot (drbd.conf(5), ``disk``).
_DRBD_DISK = re.compile(r"^\s*disk\s+\"?(/dev/[^\s\";]+)", re.MULTILINE)
_UNIT_WHAT = re.compile(r"^\s*What\s*=\s*(\S.*?)\s*$", re.MULTILINE)
#: What LVM 2.03 prints of a device that its configuration rejects; it does so too of one that is not there, or of another kind.
_REJECTED = re.compile(r"Failed to find (?:device|physical volume)|rejected by filter config")
#: A mapping is in the devices file (lvmdevices(8)) only by its name, and LVM takes any device with the physical volume of such an entry for it. Seen on the
#: rack with 2.03.31: udev's pvscan activates the group on the origin, whatever search_for_devnames is, and the filters are ignored; unless that is "none",
#: every command rewrites the entry to the origin while the cache is not there.
_DEVICES_FILE, _NO_SEARCH = "use_devicesfile=1", 'search_for_devnames="none"'
_TOO_OLD = "use_devicesfile"


def read_starters(
    runner: Runner, devices: Devices, specs: t.Iterable[CacheSpec], root: Path = Path("/"), *, running: t.Container[str] = (), hides: bool = False
) -> tuple[Starter, ...]:
    """What starts from the origins of the items that should be cached; an origin that is not there is passed over.

    Costs a wipefs for each item without a cache, two commands of LVM for each origin that it finds a physical volume on, and a blkid for each item while
    something at boot names what no other device carries.

    :param running: items whose cache runs: what the origin carries may be in the cache only, and udev knows it of the cached device.
    :param hides: whether the cached device is the origin itself, which a udev rule hides until the cache is there (EnhanceIO).
    """
    specs = [item for item in specs if item.present]
    if not specs:
        return ()
    places = _places(root, by_unit=not hides)
    found: list[Starter] = []
    for item in specs:
        with contextlib.suppress(DeviceMissing):
            origin = devices.resolve(item.origin)
            cached = item.origin if hides else f"/dev/mapper/{item.name}"
            top = None if hides else next((device for device in devices if device.dm_name == item.name), None)
            found += _by_content(runner, devices, item, origin, top, cached, root, direct=item.name not in running, hides=hides)
            found += _by_name(runner, item, devices, origin, top, cached, places)
    return tuple(found)


def _by_content(
    runner: Runner,
    devices: Devices,
    item: CacheSpec,
    origin: BlockDevice,
    top: BlockDevice | None,
    cached: str,
    root: Path,
    *,
    direct: bool,
    hides: bool,
) -> t.Iterator[Starter]:
    ones = [one for device in (origin, *((top,) if top is not None else ())) for one in (device, *partitions_of(devices, device))]
    carriers: dict[str, list[BlockDevice]] = {}
    for one in ones:
        if one.signature is not None and one.signature.type:
            carriers.setdefault(one.signature.type, []).append(one)
    if direct and item.mode == "writeback":
        # udev may have missed the event of what was written just before.
        for text in _direct(runner, item.origin):
            carriers.setdefault(text.split(" ", 1)[0], []).append(origin)
    for word, found in carriers.items():
        kind = next((one for one in KINDS if re.fullmatch(one.types, word)), None)
        if kind is None or (hides and kind.by_udev) or (word == "btrfs" and _is_alone(devices, ones, found)):
            continue
        places = _on_origin(devices, origin, found)
        if word.startswith("LVM") and _lvm_is_kept_away(runner, places):
            continue
        if (
            kind.by_udev
            and places
            and all(is_hidden(one, kind.types, root) for one in places)
            and (not word.startswith("LVM") or _lvm_waits_for_events(runner))
        ):
            continue
        path = origin.stable_path or origin.path
        when = "without waiting for the cache, and would write below it" if kind.early else "if the cache is not there, and would write below it"
        sentence = (
            f"{item.name}: {item.origin}, the origin of {cached}, carries {word}: at boot {kind.does} {when}: {kind.way.format(origin=path, cached=cached)}."
        )
        yield Starter(item.name, sentence, kind.early)


def _is_alone(devices: Devices, own: t.Sequence[BlockDevice], carriers: t.Sequence[BlockDevice]) -> bool:
    """Whether no other device carries the same file system."""
    uuids = {one.signature.uuid for one in carriers if one.signature is not None and one.signature.uuid}
    names = {one.name for one in own}
    return not any(one.signature is not None and one.signature.uuid in uuids and one.name not in names for one in devices)


def _on_origin(devices: Devices, origin: BlockDevice, carriers: t.Sequence[BlockDevice]) -> list[BlockDevice]:
    """Where a start from the bare origin would find what is on some devices: what is on the cached device is on the origin, at the same place."""
    parts = partitions_of(devices, origin)
    found: list[BlockDevice] = []
    for one in carriers:
        found += [one] if one is origin or one in parts else [] if one.is_part else [origin]
        # A partition of the cached device: any of the origin, which has to be there to be asked for.
        found += parts if one.is_part and one not in parts else []
    return list({one.name: one for one in found}.values())


def _direct(runner: Runner, path: str) -> tuple[str, ...]:
    # Without wipefs and blkid the layer refuses the cache device, with its own words.
    with contextlib.suppress(ToolMissing):
        return read_signatures(runner, path)
    return ()


def _lvm_is_kept_away(runner: Runner, places: t.Sequence[BlockDevice]) -> bool:
    """Whether LVM itself, as it is configured, does not find any of the devices. What it answers in any other way is no proof.

    A device that LVM does not find is rejected by its configuration only if that rejects anything at all.
    """
    if not runner.has("pvs"):
        return True
    return bool(places) and all(_lvm_rejects(runner, one) for one in places)


def _lvm_waits_for_events(runner: Runner) -> bool:
    """Whether LVM activates at boot what udev reports, and nothing else."""
    lines = _lvm_settings(runner, "global/event_activation", "devices/use_devicesfile", "devices/search_for_devnames")
    return "event_activation=1" in lines and (_DEVICES_FILE not in lines or _NO_SEARCH in lines)


def _lvm_rejects(runner: Runner, origin: BlockDevice) -> bool:
    asked = runner.run(["pvs", "--all", "--noheadings", "--options", "pv_name", origin.path], ok=None, item=origin.path)
    if asked.rc == 0 or not _REJECTED.search(asked.stderr):
        return False
    lines = _lvm_settings(runner, "devices/global_filter", "devices/filter", "devices/use_devicesfile")
    return _DEVICES_FILE not in lines and any(_rejects_without_links(line.partition("filter=")[2], origin.path) for line in lines)


def _lvm_settings(runner: Runner, *keys: str) -> set[str]:
    """The lines of lvmconfig(8) about some settings; none if it did not answer."""
    if not runner.has("lvmconfig"):
        return set()
    shown = runner.run(["lvmconfig", "--typeconfig", "full", *keys], ok=None)
    # LVM before 2.03.12 knows no devices file, and still prints the others.
    known = shown.rc == 0 or _TOO_OLD in shown.stderr
    return {line.strip() for line in shown.stdout.splitlines() if "=" in line} if known else set()


def _rejects_without_links(patterns: str, path: str) -> bool:
    """Whether a filter of lvm.conf(5) rejects a device of which LVM knows only the name that the kernel has given it in this boot.

    So LVM is started by the rule of udev for the device, whose links are made when all rules are done: seen on the rack, a group was activated on a
    device that was rejected by its path in /dev/disk/by-id, below its cache. The name can be another one at the next boot, so that a made-up one of the
    same kind is asked for. The first pattern that matches decides; without a match the device is accepted.
    """
    name = re.sub(r"\d+", "999", re.sub(r"^(/dev/(?:s|v|xv|h)d)[a-z]+", r"\1zzz", path))
    with contextlib.suppress(ValueError, TypeError, IndexError, re.error):
        read = json.loads(patterns)
        for one in [read] if isinstance(read, str) else read:
            if re.search(one[2 : one.rindex(one[1])], name):
                return one[0] == "r"
    return False


# -- what names a device


@frozen
class _Place:
    """One place that names a device to start at boot.

    :param title: where, as the beginning of a sentence.
    :param source: what it names.
    :param early: whether it does not wait for units that are ordered before file systems.
    """

    title: str
    source: str
    early: bool


def _places(root: Path, *, by_unit: bool) -> list[_Place]:
    """Every place; a line for the origin of an EnhanceIO cache is one for the cached device, and is only read if it is early."""
    found = []
    for line in fstab.parse_fstab(read_file(root / fstab.FSTAB)):
        early = line.target in _BY_INITRAMFS or "x-initrd.mount" in line.options
        found.append(_Place(f"Line {line.number} of /etc/fstab ({line.source} on {line.target})", line.source, early))
    for number, text in enumerate(read_file(root / "etc/crypttab").splitlines(), 1):
        words = text.split()
        if by_unit and len(words) >= 2 and not words[0].startswith("#") and "noauto" not in ",".join(words[3:4]).split(","):
            found.append(_Place(f"Line {number} of /etc/crypttab ({words[0]})", words[1], True))
    for name in (*_CMDLINES, _RESUME):
        found += [_Place(f"{match.group(1)}= in /{name} ({match.group(2)})", match.group(2), True) for match in _BOOT_WORD.finditer(read_file(root / name))]
    for place in (root / "etc/drbd.conf", *sorted((root / "etc/drbd.d").glob("*.res"))):
        found += [_Place(f"disk in /{place.relative_to(root)} ({one})", one, False) for one in _DRBD_DISK.findall(read_file(place))]
    for kind in ("mount", "swap"):
        for place in sorted((root / "etc/systemd/system").glob(f"*.{kind}")):
            found += [_Place(f"The unit {place.name} ({one})", one, False) for one in _UNIT_WHAT.findall(read_file(place))]
    return [one for one in found if by_unit or one.early]


def _by_name(
    runner: Runner, item: CacheSpec, devices: Devices, origin: BlockDevice, top: BlockDevice | None, cached: str, places: t.Sequence[_Place]
) -> t.Iterator[Starter]:
    ones = [origin, *partitions_of(devices, origin)]
    # What stands on the cached device stands on the origin once it is written back, whatever udev has of the origin.
    tags = [one for one in (top,) if one is not None]
    own = {one.name for one in (*ones, *tags)}
    foreign = [one for one in devices if one.name not in own]
    if any(fstab.is_tag_of_content(place.source) and not any(fstab.names_content(place.source, one) for one in foreign) for place in places):
        # udev may have missed the event of what was made just before, and probes an origin only when something happens to it.
        shown = top or origin
        tags.append(replace(shown, signature=read_tags(runner, shown.path)))
    for place in places:
        if not (any(fstab.names(place.source, one, without=cached) for one in ones) or any(fstab.names_content(place.source, one) for one in tags)):
            continue
        path = origin.stable_path or origin.path
        effect = (
            "it is used before the cache is there, and what is written then is below the cache"
            if place.early
            else "at a boot without the cache it would use the bare origin, and the cache, when it comes back, would serve old data"
        )
        way = (
            "use mode writethrough, as the cache cannot be there in time"
            if place.early and cached in (item.origin, place.source)
            else f"write {cached} instead"
        )
        yield Starter(item.name, f"{place.title} means {path}, the origin of {cached}: {effect}: {way}.", place.early)


def early_titles(device: BlockDevice, root: Path) -> list[str]:
    """The places that have a device used before units of systemd are, as words for a sentence."""
    return [place.title for place in _places(root, by_unit=False) if fstab.names(place.source, device)]


# -- what becomes of them


def sentences(starters: t.Iterable[Starter]) -> list[str]:
    """One warning for each."""
    return [one.text for one in starters]


def require_kept_away(starters: t.Iterable[Starter], item: str) -> None:
    """A cache enters write-back only if nothing starts from its bare origin without waiting for it.

    :raises Refused: with what to do.
    """
    early = [one.text for one in starters if one.item == item and one.early]
    if early:
        raise Refused(early[0] if early[0].startswith(f"{item}: ") else f"{item}: {early[0]}", item=item)
