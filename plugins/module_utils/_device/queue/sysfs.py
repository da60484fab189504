# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block queues of a host as sysfs shows them, and which values the kernel takes.

Sources: Documentation/ABI/stable/sysfs-block; block/blk-sysfs.c, block/blk-mq.c and block/elevator.c (limits of nr_requests, what is
rounded and what is silently ignored); drivers/scsi/scsi_sysfs.c and drivers/ata/libata-sata.c (queue_depth). Tried on Linux 6.1.
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.kernel_modules import built_in, modules_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import Traits, traits_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import ORDER, place_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number

#: Properties by which a udev rule finds a device again. The last ones are for devices without a serial number: an AoE address is
#: part of the name, and a queue may belong to whatever is plugged in at a place.
KEY_NAMES = (*udev_rule.KEY_NAMES, "DM_UUID", "MD_UUID", "DEVNAME", "ID_PATH")

#: Block layers that pass requests on without a queue of their own.
PASSING_ON = {
    "lvm": "a logical volume",
    "crypt": "an encrypted volume",
    "dm": "a device-mapper device",
    "flashcache": "a flashcache device",
    "multipath": "a multipath device that passes bios on",
    "md": "an MD array",
    "bcache": "a bcache device",
    "zram": "a compressed RAM disk",
    "ram": "a RAM disk",
}
#: What has an effect on such a device all the same: the page cache reads ahead of the device that is mounted.
_EFFECTIVE_ON_TOP = frozenset({"read_ahead_kb", "rotational"})
_MODULES = {"bfq": "bfq", "kyber": "kyber-iosched", "mq-deadline": "mq-deadline"}
_SUCCESSORS = {"noop": "none", "deadline": "mq-deadline"}
#: Requests that a scheduler may hold (MAX_SCHED_RQ), and the fewest of any queue (BLKDEV_MIN_RQ).
SCHEDULER_REQUESTS = 2048
FEWEST_REQUESTS = 4
#: Commands that NCQ of SATA can have on their way.
_NCQ = 32


@frozen
class Queue(Traits):
    """One block device with the settings of its queue.

    :param values: by setting; ``scheduler`` is a word, the others are numbers. What cannot be read is missing.
    :param settable: settings whose file is there and may be written.
    :param shown: settings whose file is there.
    :param schedulers: those that the kernel offers without loading a module.
    :param multiqueue: whether it has a request queue of its own; a device that passes bios on has none.
    :param tags: requests that the hardware takes at once; ``None`` if it cannot be determined.
    :param deepest: the largest queue_depth that the driver takes; ``None`` if it cannot be determined.
    :param largest: the largest max_sectors_kb.
    :param unit: the same text for all paths to one drive and for the multipath device over them.
    :param below: kernel names of the disks under it; ``below_paths`` how to name them.
    :param keys: properties a line about this device may be keyed on; ``key`` the one to take, or the reason why there is none in ``no_key``.
    """

    name: str = ""
    path: str = ""
    stable_path: str | None = None
    values: t.Mapping[str, int | str] = field(default_factory=dict)
    settable: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    multiqueue: bool = True
    tags: int | None = None
    deepest: int | None = None
    largest: int | None = None
    unit: str = ""
    below: tuple[str, ...] = ()
    below_paths: tuple[str, ...] = ()
    keys: tuple[udev_rule.RuleKey, ...] = ()
    key: udev_rule.RuleKey | None = None
    no_key: str | None = None

    @property
    def item(self) -> str:
        """How messages name it."""
        return self.stable_path or self.path


def read_queues(devices: Devices, root: Path = Path("/")) -> dict[str, Queue]:
    """The queue of every whole device, by kernel name; from files of sysfs alone."""
    whole = [device for device in devices if device.kind != "partition"]
    named = {device.name: properties_of(device) for device in whole}
    claims: dict[tuple[str, str], list[BlockDevice]] = {}
    for device in whole:
        for pair in named[device.name].items():
            claims.setdefault(pair, []).append(device)
    found = {}
    for device in whole:
        unit = unit_of(devices, device)
        sharing = {one.name for pair in named[device.name].items() for one in claims[pair] if unit_of(devices, one) != unit}
        if device.kind != "rom":
            found[device.name] = _read_queue(device, devices, [named[name] for name in sorted(sharing)], root)
    return found


def _read_queue(device: BlockDevice, devices: Devices, others: t.Sequence[t.Mapping[str, str]], root: Path) -> Queue:
    """One queue.

    :param others: the naming properties of other drives that share one of them with this one.
    """
    place = root / "sys/class/block" / device.name
    below = [one for one in devices.parents(device) if one.kind == "disk"]
    shown = tuple(attribute for attribute in ORDER if (place / place_of(attribute)).is_file())
    own = properties_of(device)
    key, no_key = None, None
    keys = udev_rule.keys_of(own, KEY_NAMES)
    try:
        key = udev_rule.choose_key(own, others, device.stable_path or device.path, KEY_NAMES)
    except StorageError as error:
        no_key = error.message
    words = (read_attribute(place / "queue/scheduler") or "").split()
    return Queue(
        **vars(traits_of(device, root)),
        name=device.name,
        path=device.path,
        stable_path=device.stable_path,
        values=read_values(device.name, root),
        settable=tuple(attribute for attribute in shown if _mode(place / place_of(attribute)) & 0o200),
        shown=shown,
        schedulers=tuple(word.strip("[]") for word in words),
        multiqueue=(place / "mq").is_dir(),
        tags=_tags(place / "mq"),
        deepest=_deepest(place, device.transport),
        largest=read_number(place / "queue/max_hw_sectors_kb"),
        unit=unit_of(devices, device),
        below=tuple(one.name for one in below),
        below_paths=tuple(one.stable_path or one.path for one in below),
        keys=tuple(one for one in keys if not any(other.get(one.name) == one.value for other in others)),
        key=key,
        no_key=no_key,
    )


def unit_of(devices: Devices, device: BlockDevice) -> str:
    """The multipath device of a path, or the device itself."""
    return (devices.multipath_over(device) or device).name


def properties_of(device: BlockDevice) -> dict[str, str]:
    """The udev properties that may name a device in a rule."""
    properties = {name: value for name, value in device.properties.items() if name in KEY_NAMES}
    if device.dm_uuid:
        # Other udev properties of a mapping describe what lies on it or below it.
        return {"DM_UUID": device.dm_uuid}
    if device.kind == "aoe":
        properties["DEVNAME"] = device.path
    return properties


def read_values(name: str, root: Path = Path("/")) -> dict[str, int | str]:
    """The settings of one queue. ``wbt_lat_usec`` cannot be read while nothing is throttled, and is then 0."""
    place = root / "sys/class/block" / name
    found: dict[str, int | str] = {}
    for attribute in ORDER:
        file = place / place_of(attribute)
        if not file.is_file():
            continue
        if attribute == "scheduler":
            words = (read_attribute(file) or "").split()
            chosen = next((word.strip("[]") for word in words if word.startswith("[") or len(words) == 1), None)
            if chosen:
                found[attribute] = chosen
            continue
        number = read_number(file)
        if number is None and attribute == "wbt_lat_usec":
            number = 0
        if number is not None:
            found[attribute] = number
    return found


def _tags(folder: Path) -> int | None:
    counts = [read_number(queue / "nr_tags") for queue in folder.glob("[0-9]*")]
    known = [count for count in counts if count]
    return min(known) if known else None


def _deepest(place: Path, transport: str) -> int | None:
    """The largest queue_depth: what the host adapter accepts, and for SATA what NCQ and the drive can do.

    The drive reports it in word 75 of IDENTIFY DEVICE, which begins at byte 60 of the VPD page 89h (SAT-3); bit 8 of word 76 is NCQ.
    """
    match = re.search(r"/host(\d+)/", os.path.realpath(place))
    limits = [read_number(_host_folder(place, match.group(1)) / "can_queue")] if match else []
    if transport == "sata":
        limits.append(_NCQ)
        page = _bytes(place / "device/vpd_pg89")
        if len(page) >= 60 + 2 * 77:
            depth, features = (int.from_bytes(page[60 + 2 * word : 62 + 2 * word], "little") for word in (75, 76))
            limits.append((depth & 0x1F) + 1 if features & 0x100 else 1)
    known = [limit for limit in limits if limit]
    return min(known) if known else None


def _host_folder(place: Path, number: str) -> Path:
    """``…/hostN/scsi_host/hostN`` above a disk."""
    real = Path(os.path.realpath(place))
    host = next(folder for folder in real.parents if folder.name == f"host{number}")
    return host / "scsi_host" / host.name


def loadable_schedulers(root: Path = Path("/"), release: str = "") -> tuple[str, ...]:
    """Schedulers that this kernel has, loaded or not: the kernel loads one by itself when its name is written."""
    try:
        available = {name.split(".ko")[0].replace("-", "_") for name in os.listdir(modules_folder(root, release) / "kernel/block")}
    except OSError:
        available = set()
    available |= built_in(root, release) or set()
    return tuple(name for name, module in _MODULES.items() if module.replace("-", "_") in available)


def scheduler_for(requested: str, queue: Queue, loadable: t.Sequence[str]) -> str:
    """The name of a scheduler as this kernel has it: ``noop`` and ``deadline`` are ``none`` and ``mq-deadline`` since Linux 5.0.

    :raises BadInput: for one that the kernel does not have.
    """
    if requested in queue.schedulers:
        return requested
    name = _SUCCESSORS.get(requested, requested)
    if name in queue.schedulers or (queue.schedulers and name in loadable):
        return name
    offered = ", ".join((*queue.schedulers, *(one for one in loadable if one not in queue.schedulers)))
    if requested == "cfq":
        # Its successor is another scheduler with another price, so it is not substituted.
        raise BadInput(
            f"{queue.item}: the scheduler cfq is gone since Linux 5.0: write bfq, which shares a disk out as cfq did and costs fast devices throughput, "
            f"or mq-deadline. This kernel has {offered}.",
            item=queue.item,
        )
    raise BadInput(f"{queue.item}: this kernel has no scheduler {requested}: it has {offered or 'none to choose for this device'}.", item=queue.item)


@frozen
class Obstacle:
    """Why a value cannot be set, and the nearest one that can; ``None`` if the setting is out of reach."""

    reason: str
    instead: int | None = None


def obstacle(queue: Queue, attribute: str, value: int | str, scheduler: str, page_kb: int) -> Obstacle | None:
    """What the kernel would refuse, cut or ignore.

    :param scheduler: the one that will be in use.
    :param page_kb: size of a memory page in KiB, which read_ahead_kb is rounded down to.
    """
    if not queue.multiqueue and queue.kind in PASSING_ON and attribute not in _EFFECTIVE_ON_TOP:
        return Obstacle(_passed_on(queue, attribute))
    if not queue.multiqueue and attribute not in _EFFECTIVE_ON_TOP | {"max_sectors_kb"} and queue.values.get(attribute) != value:
        return Obstacle(f"{attribute} has no effect on it: it has no queue of its own, but hands its requests on (as NVMe does that is reached by paths)")
    if attribute not in queue.settable and queue.values.get(attribute) != value:
        return Obstacle(_out_of_reach(queue, attribute))
    if isinstance(value, int) and attribute in _LIMITS:
        return _LIMITS[attribute](queue, value, scheduler, page_kb)
    return None


def _passed_on(queue: Queue, attribute: str) -> str:
    below = f": {', '.join(queue.below_paths)}" if queue.below_paths else ""
    return f"{attribute} has no effect on {PASSING_ON[queue.kind]}, which has no queue of its own, but on the disks under it{below}"


def _out_of_reach(queue: Queue, attribute: str) -> str:
    if attribute in queue.shown:
        return f"the driver {queue.driver or 'of the device'} does not let {attribute} be changed"
    if attribute == "queue_depth":
        if queue.transport in ("nvme", "nvme_fabrics"):
            return "NVMe devices have no queue_depth: how deep their queues are is decided when the driver starts (io_queue_depth of the module nvme)"
        return f"devices of the driver {queue.driver or 'in use'} have no queue_depth, which SCSI disks have"
    if attribute == "wbt_lat_usec":
        return "this kernel has no write-back throttling for the device (CONFIG_BLK_WBT)"
    return f"this kernel has no {attribute} for the device"


def _nr_requests(queue: Queue, value: int, scheduler: str, page_kb: int) -> Obstacle | None:  # noqa: ARG001
    if value < FEWEST_REQUESTS:
        return Obstacle(f"the kernel makes {FEWEST_REQUESTS} of every nr_requests below that", FEWEST_REQUESTS)
    high = queue.tags if scheduler == "none" else SCHEDULER_REQUESTS
    if high is None or value <= high:
        return None
    if scheduler == "none":
        return Obstacle(f"without a scheduler nr_requests is at most {high}, as many as the hardware accepts at once", high)
    return Obstacle(f"nr_requests is at most {high}", high)


def _max_sectors_kb(queue: Queue, value: int, scheduler: str, page_kb: int) -> Obstacle | None:  # noqa: ARG001
    if value < page_kb:
        return Obstacle(f"max_sectors_kb is at least {page_kb}, one page of memory", page_kb)
    if queue.largest is not None and value > queue.largest:
        return Obstacle(f"the hardware accepts requests of at most {queue.largest} KiB (max_hw_sectors_kb)", queue.largest)
    return None


def _read_ahead_kb(queue: Queue, value: int, scheduler: str, page_kb: int) -> Obstacle | None:  # noqa: ARG001
    if value % page_kb == 0:
        return None
    rounded = value - value % page_kb
    return Obstacle(f"the kernel reads ahead in pages of {page_kb} KiB and would make {rounded} of {value}", rounded)


def _queue_depth(queue: Queue, value: int, scheduler: str, page_kb: int) -> Obstacle | None:  # noqa: ARG001
    if queue.deepest is None or value <= queue.deepest:
        return None
    whose = "the drive and its NCQ accept" if queue.transport == "sata" else "the host adapter accepts"
    return Obstacle(f"{whose} a queue_depth of at most {queue.deepest}", queue.deepest)


_LIMITS: dict[str, t.Callable[[Queue, int, str, int], Obstacle | None]] = {
    "nr_requests": _nr_requests,
    "max_sectors_kb": _max_sectors_kb,
    "read_ahead_kb": _read_ahead_kb,
    "queue_depth": _queue_depth,
}


def same(queue: Queue, attribute: str, requested: int | str, rotational: bool) -> bool:
    """Whether a setting is as wanted; -1 of wbt_lat_usec stands for the kernel's default, 75 ms for disks that turn and 2 ms for others.

    :param rotational: as it will be.
    """
    if attribute == "wbt_lat_usec" and requested == -1:
        return queue.values.get(attribute) == (75000 if rotational else 2000)
    return queue.values.get(attribute) == requested


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
