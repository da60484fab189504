# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bcache of a host: backing devices and cache sets from sysfs alone, superblocks from bcache-super-show.

Sources: Documentation/admin-guide/bcache.rst; drivers/md/bcache/sysfs.c and super.c of Linux 6.1: ``bcache/`` of a block
device is the backing device (it has ``cache_mode``) or the cache device (``nbuckets``); the link ``cache`` leads from a
backing device to its set, ``dev`` to the device that is mounted, ``set`` from a cache device to its set. bcache-super-show(8):
lines of a name, tabs and a value.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import settings as bcache_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import BACKING, CACHE, SET, SETTINGS, chosen, parse_printed
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

FOLDER = "sys/fs/bcache"
BLOCK = "sys/class/block"
#: The kernel's list of what is cached in a set.
INDEX = "sys/kernel/debug/bcache/bcache-{cset}"
#: What the attribute ``state`` of a backing device can be.
NO_CACHE, CLEAN, DIRTY, INCONSISTENT = "no cache", "clean", "dirty", "inconsistent"

_UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NO_SET = "00000000-0000-0000-0000-000000000000"
#: The kernel counts reads only (request.c, at the end of a read).
_COUNTERS = {"read_hits": "cache_hits", "read_misses": "cache_misses"}


@frozen
class Backing:
    """A backing device that is registered.

    :param name: its kernel name; device: that of what is mounted, None if it does not run.
    :param set: the UUID of the cache set it is attached to now.
    :param dirty: bytes that are only in the cache, as exactly as the kernel prints them.
    :param texts: the values of the attributes of its settings, by the names of :data:`SETTINGS`.
    """

    name: str
    uuid: str
    device: str | None = None
    label: str = ""
    mode: str | None = None
    state: str = NO_CACHE
    running: bool = True
    set: str | None = None
    dirty: int | None = None
    texts: t.Mapping[str, str] = field(default_factory=dict)
    counters: t.Mapping[str, int] = field(default_factory=dict)
    io_errors: int = 0

    @property
    def has_dirty_blocks(self) -> bool:
        """Also in the state clean, which after a power cut is newer than the journal's record of the last blocks."""
        return self.state == DIRTY or bool(self.set is not None and self.dirty)


@frozen
class CacheSet:
    """A cache set that is registered.

    :param caches: kernel names of the devices it lies on (one, but for sets of very old kernels).
    :param backings: kernel names of the backing devices attached to it.
    :param size: bytes of all buckets; used: bytes that are not free, in steps of one per cent.
    """

    uuid: str
    caches: tuple[str, ...]
    backings: tuple[str, ...] = ()
    bucket_size: int | None = None
    block_size: int | None = None
    size: int | None = None
    used: int | None = None
    io_errors: int = 0
    texts: t.Mapping[str, str] = field(default_factory=dict)


@frozen
class BcacheSuperblock:
    """The output of bcache-super-show for a device. ``set`` is None if it belongs to no set; Sizes in bytes."""

    cache: bool
    uuid: str
    set: str | None
    state: str | None = None
    mode: str | None = None
    label: str = ""
    block_size: int | None = None
    bucket_size: int | None = None


@frozen
class Registered:
    """Everything that is registered, by kernel name and by UUID."""

    backings: t.Mapping[str, Backing] = field(default_factory=dict)
    sets: t.Mapping[str, CacheSet] = field(default_factory=dict)

    def set_on(self, name: str) -> CacheSet | None:
        """The set that lies on a device."""
        return next((found for found in self.sets.values() if name in found.caches), None)


def parse_superblock(text: str, item: str) -> BcacheSuperblock:
    """The output of ``bcache-super-show``.

    :raises NotUnderstood: if a line that must be there is not.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split("\t", 1)
        if len(parts) == 2:
            values[parts[0].strip()] = parts[1].strip()
    version, uuid, cset = values.get("sb.version", ""), values.get("dev.uuid", ""), values.get("cset.uuid", "")
    if "device]" not in version or not _UUID.match(uuid) or not _UUID.match(cset):
        raise NotUnderstood(f"{item}: bcache-super-show did not report the type of the device (sb.version '{version}', dev.uuid '{uuid}').", item=item)
    sectors, bucket = values.get("dev.sectors_per_block", ""), values.get("dev.sectors_per_bucket", "")
    label = values.get("dev.label", "")
    return BcacheSuperblock(
        cache="cache device" in version,
        uuid=uuid,
        set=None if cset == _NO_SET else cset,
        state=chosen(values.get("dev.data.cache_state")),
        mode=chosen(values.get("dev.data.cache_mode")),
        label="" if label == "(empty)" else label,
        block_size=int(sectors) * 512 if sectors.isdigit() else None,
        bucket_size=int(bucket) * 512 if bucket.isdigit() else None,
    )


def read_superblock(runner: Runner, path: str) -> BcacheSuperblock | None:
    """The superblock of a device; None if it has none (bcache-super-show ends with 2: "bad magic")."""
    completed = runner.run(["bcache-super-show", path], ok=None, item=path)
    return parse_superblock(completed.stdout, path) if completed.rc == 0 else None


def read_registered(sysfs: Sysfs) -> Registered:
    """Every backing device and cache set; no command."""
    if not sysfs.exists(FOLDER):
        return Registered()
    backings = {}
    for name in sysfs.names(BLOCK):
        # bcache0/bcache is a link to that of its backing device.
        if sysfs.exists(f"{BLOCK}/{name}/bcache/cache_mode") and not re.match(r"^bcache\d", name):
            backings[name] = _read_backing(sysfs, name)
    sets = {uuid: _read_set(sysfs, uuid) for uuid in sysfs.names(FOLDER) if _UUID.match(uuid)}
    return Registered(backings, sets)


def _read_backing(sysfs: Sysfs, name: str) -> Backing:
    folder = f"{BLOCK}/{name}/bcache"
    mounted = sysfs.target(f"{folder}/dev")
    cset = sysfs.target(f"{folder}/cache")
    return Backing(
        name=name,
        uuid=sysfs.read(f"{folder}/backing_dev_uuid") or "",
        device=mounted.name if mounted is not None else None,
        label=sysfs.read(f"{folder}/label") or "",
        mode=chosen(sysfs.read(f"{folder}/cache_mode")),
        state=sysfs.read(f"{folder}/state") or "",
        running=sysfs.read(f"{folder}/running") == "1",
        set=cset.name if cset is not None else None,
        dirty=parse_printed(sysfs.read(f"{folder}/dirty_data")),
        texts=_texts(sysfs, folder, BACKING),
        counters=_counters(sysfs, f"{folder}/stats_total"),
        io_errors=_number(sysfs.read(f"{folder}/io_errors")),
    )


def _read_set(sysfs: Sysfs, uuid: str) -> CacheSet:
    folder = f"{FOLDER}/{uuid}"
    links = {name: sysfs.target(f"{folder}/{name}") for name in sysfs.names(folder) if re.match(r"^(cache|bdev)\d+$", name)}
    # Each leads to …/block/sdb/bcache.
    caches = [place.parent.name for name, place in sorted(links.items()) if place is not None and name.startswith("cache")]
    backings = [place.parent.name for name, place in sorted(links.items()) if place is not None and name.startswith("bdev")]
    bucket = parse_printed(sysfs.read(f"{folder}/bucket_size"))
    buckets = sum(_number(sysfs.read(f"{BLOCK}/{name}/bcache/nbuckets")) for name in caches)
    free = sysfs.read(f"{folder}/cache_available_percent")
    size = bucket * buckets if bucket and buckets else None
    texts = _texts(sysfs, folder, SET)
    for name in caches:
        texts.update(_texts(sysfs, f"{BLOCK}/{name}/bcache", CACHE))
    return CacheSet(
        uuid=uuid,
        caches=tuple(caches),
        backings=tuple(backings),
        bucket_size=bucket,
        block_size=parse_printed(sysfs.read(f"{folder}/block_size")),
        size=size,
        used=size * (100 - int(free)) // 100 if size is not None and free is not None and free.isdigit() else None,
        io_errors=sum(_number(sysfs.read(f"{BLOCK}/{name}/bcache/io_errors")) for name in caches),
        texts=texts,
    )


def _texts(sysfs: Sysfs, folder: str, place: str) -> dict[str, str]:
    read = {key: sysfs.read(f"{folder}/{key}") for key, known in SETTINGS.items() if known.place == place}
    return {key: text for key, text in read.items() if text is not None}


def _counters(sysfs: Sysfs, folder: str) -> dict[str, int]:
    counters = {}
    for name, file in _COUNTERS.items():
        text = sysfs.read(f"{folder}/{file}")
        if text is not None and text.isdigit():
            counters[name] = int(text)
    bypassed = [sysfs.read(f"{folder}/{file}") for file in ("cache_bypass_hits", "cache_bypass_misses")]
    if all(text is not None and text.isdigit() for text in bypassed):
        counters["bypassed_reads"] = sum(int(text or "0") for text in bypassed)
    return counters


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


# -- in the words of every type of cache


def read_caches(devices: Devices, runner: Runner, root: Path = Path("/")) -> tuple[CacheState, ...]:  # noqa: ARG001
    """Every bcache of the host. Costs no command, and without bcache one access to /sys."""
    sysfs = Sysfs(root)
    registered = read_registered(sysfs)
    return caches_of(registered, HostDevices(devices, arrays=mirror.read_arrays(devices, root))) if registered.backings else ()


def caches_of(registered: Registered, ground: HostDevices) -> tuple[CacheState, ...]:
    """The backing devices that have a cache, or miss the one they had; one without a cache on purpose is none."""
    return tuple(
        _state_of(backing, registered.sets.get(backing.set or ""), ground)
        for backing in registered.backings.values()
        if backing.set is not None or backing.state != NO_CACHE
    )


def _state_of(backing: Backing, cset: CacheSet | None, ground: HostDevices) -> CacheState:
    device, origin = ground.devices.get(backing.device or ""), ground.devices.get(backing.name)
    caches = [ground.devices.get(name) for name in (cset.caches if cset is not None else ())]
    state, problem = judge(backing, cset, [device for device in caches if device is not None])
    texts = {**backing.texts, **(cset.texts if cset is not None else {})}
    return CacheState(
        type="bcache",
        name=backing.device or backing.name,
        kind="bcache",
        device=_path_of(backing, device, ground),
        device_name=device.name if device is not None else backing.device,
        origin=_stable(origin),
        origin_name=backing.name,
        cache_devices=tuple(_stable(device) or device.path for device in caches if device is not None),
        cache_device_names=cset.caches if cset is not None else (),
        mode=backing.mode,
        policy=chosen(texts.get("cache_replacement_policy")),
        block_size=cset.block_size if cset is not None else None,
        size=cset.size if cset is not None else None,
        used=cset.used if cset is not None else None,
        dirty=backing.dirty,
        redundancy=ground.redundancy(cset.caches if cset is not None else ()),
        sends_flushes=True,
        state=state,
        problem=problem,
        settings={key: bcache_settings.parse_value(key, text) for key, text in texts.items()},
        counters=backing.counters,
    )


def _path_of(backing: Backing, device: BlockDevice | None, ground: HostDevices) -> str | None:
    """The name that stays, unless udev has forgotten it: that of bcache-tools 1.0.8 does while the device is running."""
    if not backing.device:
        return None
    lasting = f"/dev/bcache/by-uuid/{backing.uuid}"
    if device is None:
        return lasting
    try:
        ground.devices.resolve(lasting)
    except DeviceMissing:
        return device.path
    return lasting


def judge(backing: Backing, cset: CacheSet | None, caches: t.Sequence[BlockDevice]) -> tuple[str, str]:
    """The state of a cache in the words of the model, and what can be done about it."""
    where = node_of(backing.name)
    if backing.set is None and backing.state == NO_CACHE:
        return "ok", ""
    if backing.state == INCONSISTENT:
        return "inconsistent", (
            f"{where} was used without its cache while the cache held, or may have held, newer data, so that what is on it can be old: check its"
            " file system and its data; attaching a cache makes its state clean again."
        )
    if cset is not None and cset.caches and not caches:
        return "cache_missing", (
            f"The cache device of {where} ({', '.join(cset.caches)}) is gone from the host while its cache set is loaded: "
            + ("the newest data is only there, so reconnect that device and restart the host." if backing.state == DIRTY else "name a cache device that works.")
        )
    if cset is not None:
        return "ok", ""
    if backing.state == DIRTY:
        return "cache_missing", (
            f"{where} waits for its cache device, which holds data that is nowhere else, and is not served until then: reconnect that device"
            f" and restart the host if it does not start by itself. Running it without (echo 1 > /sys/block/{backing.name}/bcache/running)"
            " loses the newest data and with it usually the file system:"
            " this needs a manual decision."
        )
    if backing.running:
        return "failed", (
            f"{where} lost its cache device while it was clean and continues without it. Attach another cache device before this host is restarted and before"
            " the lost one comes back: the kernel would attach that again by itself and serve what is old from it, and while it is away the origin is not"
            " served after a restart."
        )
    return "cache_missing", (
        f"{where} waits for its cache device and is not served until then. It is clean, so nothing is only on that device: reconnect it or attach a new"
        f" cache device; running it without any (echo 1 > /sys/block/{backing.name}/bcache/running) loses nothing either."
    )


def _stable(device: BlockDevice | None) -> str | None:
    return (device.stable_path or device.path) if device is not None else None
