# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every block device of a host, read from sysfs, udev, the tables of mounts and swaps, and ``dmsetup table``.

Sources: ``/sys/class/block`` (Documentation/ABI/stable/sysfs-block), ``/proc/self/mountinfo`` and ``/proc/swaps`` (proc(5)),
the udev database, and ``dmsetup table`` for the targets of device-mapper devices.

Whether a disk is made by a hypervisor, whatever model it reports: its cache is then one of the hypervisor, which may drop flushes.

That is decided by the bus and the controller, and for controllers that also exist as hardware by the machine. A drive or controller that is passed
through to a virtual machine is a real one.

Sources: pci.ids of the PCI ID project, include/linux/pci_ids.h, and the device models of QEMU (hw/ide, hw/scsi, hw/nvme), for the numbers; cpuid leaf 1,
ECX bit 31 (``hypervisor`` in ``/proc/cpuinfo``); Documentation/ABI/testing/sysfs-class-dmi; Documentation/ABI/stable/sysfs-hypervisor-xen;
the flag ``control_d`` of ``/proc/xen/capabilities``, which the first domain of Xen has: its disks are those of the hardware.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import read_shared, was_read
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import (
    IDENTIFYING,
    BlockDevice,
    Devices,
    Signature,
    is_placeholder,
    node_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import instance_of, read_attribute, read_number, real_path
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unescape

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Buses that only hypervisors have: virtio, VMBus of Hyper-V, xenbus, and the virtual I/O of POWER.
_BUSES = frozenset({"virtio", "vmbus", "xen", "vio"})
#: PCI vendors of which every storage controller is a virtual one: virtio, QEMU, VMware, VirtualBox, Microsoft, XenSource, Amazon, Google, Alibaba, Parallels,
#: bhyve. Also on hardware: the disks of a cloud are behind them.
_VENDORS = frozenset({"1af4", "1b36", "15ad", "80ee", "1414", "5853", "1d0f", "1ae0", "1ded", "1ab8", "fb5d"})
#: Controllers that hypervisors imitate: PIIX3 and PIIX4, ICH6, ICH8M and ICH9, QEMU's first NVMe; 53c895a, 53c1030, SAS1068; BusLogic; AM53C974.
_IMITATED = frozenset(
    {"8086:7010", "8086:7111", "8086:2652", "8086:2829", "8086:2922", "8086:2821", "8086:5845"}
    | {"1000:0012", "1000:0030", "1000:0054", "104b:1040", "1022:2020"}
)
#: The MegaRAID controllers of QEMU, and the subsystem that tells them from those of LSI.
_MEGASAS, _OF_QEMU = frozenset({"1000:0060", "1000:005b"}), "1013"
#: Beginnings of vendor and product in the DMI of virtual machines, for processors without a flag for it and for hypervisors that clear it.
_MACHINES = (
    *("QEMU", "VMware", "innotek", "Xen", "Amazon EC2", "Google Google Compute", "Alibaba Cloud", "OpenStack", "Nutanix AHV", "oVirt", "KVM"),
    *("BHYVE", "Parallels", "Bochs", "Red Hat", "Microsoft Corporation Virtual Machine"),
)
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\Z")


def is_virtual_machine(root: Path = Path("/")) -> bool:
    """Whether this host has a hypervisor below it."""
    if "control_d" in (read_attribute(root / "proc/xen/capabilities") or ""):
        return False
    flags = re.search(r"^flags\s*:.*$", read_attribute(root / "proc/cpuinfo") or "", re.MULTILINE)
    if flags is not None and " hypervisor" in flags.group():
        return True
    if (root / "sys/firmware/devicetree/base/hypervisor").exists() or read_attribute(root / "sys/hypervisor/type") == "xen":
        return True
    product = " ".join(read_attribute(root / f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    # Machines without a hypervisor have the same vendor in a cloud: c5.metal.
    return product.startswith(_MACHINES) and ".metal" not in product


def is_virtual(disk: Path, machine: bool) -> bool:
    """Whether a hypervisor makes a disk.

    :param disk: its folder in sysfs, without symbolic links.
    :param machine: of :func:`is_virtual_machine`.
    """
    for place in _places(disk):
        for folder in (place, *place.parents):
            if folder.name in ("devices", "block"):
                continue
            subsystem = folder / "subsystem"
            if subsystem.is_symlink() and subsystem.resolve().name in _BUSES:
                return True
            if _PCI.match(folder.name):
                return _is_virtual_controller(folder, machine)
    return machine


def _places(disk: Path) -> t.Iterator[Path]:
    """Where a disk is attached: a namespace of NVMe with several paths is below none of its controllers."""
    if disk.parent.parent.name == "nvme-subsystem":
        yield from (link.resolve() for link in sorted(disk.parent.glob("nvme[0-9]*")) if link.is_symlink())
    yield disk


def _is_virtual_controller(folder: Path, machine: bool) -> bool:
    vendor, device, maker, kind = (
        (read_attribute(folder / name) or "").replace("0x", "") for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")
    )
    if vendor in _VENDORS:
        return True
    # A controller of a passed-through kind that cannot be read is not known to be one.
    imitated = f"{vendor}:{device}" in _IMITATED or maker in _VENDORS or not vendor or (f"{vendor}:{device}" in _MEGASAS and kind in ("", _OF_QEMU))
    return machine and imitated


#: Drivers whose disks are logical volumes of a RAID controller (or drives it passes through).
RAID_DRIVERS = frozenset(
    {
        "megaraid_sas", "megaraid_mbox", "megaraid", "aacraid", "smartpqi", "hpsa", "cciss", "mpi3mr", "arcmsr", "3w-9xxx", "3w-sas",
        "3w-xxxx", "ips", "stex", "hptiop", "ipr", "mvumi", "esas2r", "myrb", "myrs", "pmcraid",
    }
)  # fmt: skip
#: Drivers of host adapters that also make RAID volumes (IR firmware), and show drives as they are beside them.
ADAPTER_DRIVERS = frozenset({"mptsas", "mpt2sas", "mpt3sas"})
#: What such a volume is called in its SCSI model, by LSI and by Dell, and its channel (``RAID_CHANNEL`` of drivers/scsi/mpt3sas/mpt3sas_base.h).
_ADAPTER_VOLUME = re.compile(r"logical volume|virtual disk", re.IGNORECASE)
_ADAPTER_VOLUME_CHANNEL = re.compile(r"/target\d+:1:\d+(?:/|\Z)")

_KIND_BY_NAME = (
    (re.compile(r"^md\d|^md_"), "md"),
    (re.compile(r"^bcache\d"), "bcache"),
    (re.compile(r"^loop\d"), "loop"),
    (re.compile(r"^zram\d"), "zram"),
    (re.compile(r"^ram\d"), "ram"),
    (re.compile(r"^(sr|fd)\d"), "rom"),
    (re.compile(r"^nbd\d"), "nbd"),
    (re.compile(r"^rbd\d"), "rbd"),
    (re.compile(r"^etherd!"), "aoe"),
)
_QUEUE_NUMBERS = ("nr_requests", "nomerges", "read_ahead_kb", "rq_affinity", "max_sectors_kb", "wbt_lat_usec")
_BY_SEQUENCE = "/dev/disk/by-diskseq/"
_SERIALS = ("ID_SERIAL", "ID_SERIAL_SHORT", "ID_SCSI_SERIAL")
_KEPT = (*IDENTIFYING, "ID_BUS", "ID_ATA", "ID_PATH", "ID_MODEL", "ID_REVISION", "ID_VENDOR")


def read_devices(runner: Runner, root: Path = Path("/"), *, dm_targets: bool = True) -> Devices:
    """Every block device of the host, from sysfs, one ``udevadm`` and, where there is device-mapper, one ``dmsetup table``.

    :param dm_targets: whether to run ``dmsetup``; without it nothing shows what kind of mapping a device is.
    """
    if not dm_targets and was_read(runner, ("devices", root, True)):
        return _without_dm_targets(read_devices(runner, root))
    return read_shared(runner, ("devices", root, dm_targets), lambda: _read_devices(runner, root, dm_targets=dm_targets))


def _without_dm_targets(devices: Devices) -> Devices:
    """As if ``dmsetup`` had not been run: a plan is the same, whatever was read for other layers before."""
    mapped = [device for device in devices if device.dm_targets]
    return devices.with_changed(dataclasses.replace(device, kind=_kind(device.name, device.dm_uuid, ()), dm_targets=()) for device in mapped)


def _read_devices(runner: Runner, root: Path, *, dm_targets: bool) -> Devices:
    folder = root / "sys/class/block"
    # The paths behind an NVMe namespace (nvme0c0n1) are in sysfs and have no device node.
    names = sorted(name for name in os.listdir(folder) if (folder / name / "dev").exists()) if folder.is_dir() else []
    # Before udev is asked: what it answers is of this very device if the kernel has not given the name to another one since.
    settled = udev.wait_until_settled(root)
    instances = {name: instance_of(real_path(folder / name)) for name in names}
    host = _Host(
        instances=instances,
        properties=udev.read_properties(runner, names),
        mounts=_read_mounts(root),
        swaps=_read_swaps(root),
        dm_targets=_read_dm_targets(runner, root) if dm_targets and any(name.startswith("dm-") for name in names) else {},
        virtual_machine=is_virtual_machine(root),
    )
    devices = [_read_device(folder / name, host) for name in names]
    claims = collections.Counter(link for device in devices for link in {*device.by_id, *device.links})
    shared = {link for link, count in claims.items() if count > 1}
    return Devices([_mark_shared(device, shared) for device in devices], root, settled=settled)


def suspended_below(name: str, root: Path = Path("/")) -> str | None:
    """The kernel name of a device-mapper device that is suspended now: this one, or the first below it; reads of either wait.

    :param name: kernel name; one that is not there is not suspended.
    """
    queue = [name]
    for one in queue:
        folder = root / "sys/class/block" / one
        if read_number(folder / "dm/suspended") == 1:
            return one
        below = [path.name for path in folder.glob("slaves/*")]
        if (folder / "partition").exists():
            below.append(folder.resolve().parent.name)
        queue += [other for other in below if other not in queue]
    return None


def _mark_shared(device: BlockDevice, shared: t.AbstractSet[str]) -> BlockDevice:
    mine = tuple(link for link in (*device.by_id, *device.links) if link in shared or link in device.shared_links)
    return dataclasses.replace(device, shared_links=mine) if mine else device


@frozen
class _Host:
    """What is read once for all devices of a host."""

    instances: t.Mapping[str, str | None]
    properties: t.Mapping[str, t.Mapping[str, str]]
    mounts: t.Mapping[str, list[str]]
    swaps: t.Container[str]
    dm_targets: t.Mapping[str, tuple[str, ...]]
    virtual_machine: bool


def _read_device(place: Path, host: _Host) -> BlockDevice:
    name = place.name
    real = real_path(place)
    number = read_attribute(place / "dev") or ""
    path = node_of(name)
    dm_name = read_attribute(place / "dm/name")
    dm_uuid = read_attribute(place / "dm/uuid")
    partition = (place / "partition").exists()
    disk = real.parent if partition else real
    instance = host.instances.get(disk.name)
    properties = host.properties.get(name, {})
    if _is_outdated(properties, instance):
        properties = {}
    driver = _driver(disk)
    transport = _transport(disk, name, driver)
    serial, placeholder = _serial(disk, properties, usb=transport == "usb")
    properties = _without_placeholder(properties, placeholder)
    links = sorted(properties.get("DEVLINKS", "").split(), key=_link_order)
    dm_targets = host.dm_targets.get(dm_name or "", ())
    kind = "partition" if partition else _kind(name, dm_uuid, dm_targets)
    return BlockDevice(
        name=name,
        path=path,
        number=number,
        kind=kind,
        size=(read_number(place / "size") or 0) * SECTOR,
        logical_block=read_number(disk / "queue/logical_block_size") or 512,
        physical_block=read_number(disk / "queue/physical_block_size") or 512,
        read_only=read_number(place / "ro") == 1,
        removable=read_number(disk / "removable") == 1,
        rotational=_flag(disk / "queue/rotational"),
        transport=transport,
        driver=driver,
        serial=serial,
        wwn=_wwn(disk, properties),
        model=_model(disk, properties),
        firmware=read_attribute(disk / "device/firmware_rev") or properties.get("ID_REVISION") or read_attribute(disk / "device/rev"),
        by_id=tuple(link for link in links if link.startswith("/dev/disk/by-id/")),
        links=tuple(link for link in links if not link.startswith("/dev/disk/by-id/")),
        dm_name=dm_name,
        dm_uuid=dm_uuid,
        dm_targets=dm_targets,
        parent=disk.name if partition else None,
        partitions=() if partition else tuple(sorted(child.name for child in _children(real) if (child / "partition").exists())),
        slaves=tuple(sorted(child.name for child in _children(place / "slaves"))),
        holders=tuple(sorted(child.name for child in _children(place / "holders"))),
        mountpoints=tuple(host.mounts.get(number, ())) + tuple(host.mounts.get(path, ())),
        swap=path in host.swaps,
        signature=_signature(properties, partition=bool(partition)),
        queue=_queue(disk / "queue"),
        cache_type=_cache_type(disk),
        suspended=read_number(place / "dm/suspended") == 1,
        shared_links=tuple(link for link in links if _has_placeholder(link, placeholder)),
        properties={key: properties[key] for key in _KEPT if key in properties},
        instance=instance,
        partition=read_number(place / "partition"),
        placeholder=placeholder,
        virtual=not partition and kind == "disk" and is_virtual(disk, host.virtual_machine),
    )


def _is_outdated(properties: t.Mapping[str, str], instance: str | None) -> bool:
    """Whether udev's database still has the device that had the name before: newer versions make a link with the sequence number of the kernel."""
    links = [link for link in properties.get("DEVLINKS", "").split() if link.startswith(_BY_SEQUENCE)]
    return (
        bool(links)
        and (instance or "").startswith("diskseq ")
        and not any(link[len(_BY_SEQUENCE) :].split("-part")[0] == (instance or "")[len("diskseq ") :] for link in links)
    )


def _kind(name: str, dm_uuid: str | None, dm_targets: t.Container[str]) -> str:
    if name.startswith("dm-"):
        if "flashcache" in dm_targets:
            return "flashcache"
        for prefix, kind in (("LVM-", "lvm"), ("CRYPT-", "crypt"), ("mpath-", "multipath")):
            if (dm_uuid or "").startswith(prefix):
                return kind
        return "dm"
    for pattern, kind in _KIND_BY_NAME:
        if pattern.search(name):
            return kind
    return "disk"


def _driver(disk: Path) -> str | None:
    """The driver nearest to the disk that is not merely the SCSI disk class."""
    for folder in (disk, *disk.parents):
        link = folder / "driver"
        if link.is_symlink():
            name = os.path.basename(os.readlink(link))
            if name not in ("sd", "sr", "ses"):
                return name
        if folder.name == "devices":
            break
    return None


def _transport(disk: Path, name: str, driver: str | None) -> str:
    """How the disk is attached, from its place in sysfs; a SATA drive behind a SAS adapter is ``sata``."""
    place = str(disk)
    if name.startswith("nvme"):
        # Over a network (tcp, rdma, fc) what is below cannot be seen from here.
        return "nvme" if (read_attribute(disk / "device/transport") or "pcie") == "pcie" else "nvme_fabrics"
    if name.startswith("etherd!"):
        return "aoe"
    if name.startswith(("nbd", "rbd")):
        return "nbd" if name.startswith("nbd") else "rbd"
    if driver in RAID_DRIVERS or (driver in ADAPTER_DRIVERS and _is_adapter_volume(disk)):
        return "raid"
    if "/usb" in place:
        return "usb"
    if (read_attribute(disk / "device/vendor") or "") == "ATA" or re.search(r"/ata\d+/", place):
        return "sata"
    if re.search(r"/session\d+/", place):
        return "iscsi"
    if re.search(r"/rport-", place):
        return "fc"
    if "/end_device-" in place:
        return "sas"
    if re.search(r"/host\d+/", place):
        return "scsi"
    if re.search(r"/virtio\d+/", place):
        return "virtio"
    if "/devices/virtual/" in place:
        return "virtual"
    return "unknown"


def _is_adapter_volume(disk: Path) -> bool:
    """Whether a host adapter made this disk out of drives: by its model, its channel, or the kernel's class of RAID devices."""
    by_model = _ADAPTER_VOLUME.search(read_attribute(disk / "device/model") or "") is not None
    return by_model or _ADAPTER_VOLUME_CHANNEL.search(str(disk)) is not None or (disk / "device/raid_devices").is_dir()


def _serial(disk: Path, properties: t.Mapping[str, str], *, usb: bool) -> tuple[str | None, str | None]:
    """The serial number, and what a device reports in place of one: a placeholder identifies none."""
    # ID_SERIAL_SHORT of a SCSI disk is its WWN; the number on the drive's label is ID_SCSI_SERIAL.
    known = [properties[key].strip() for key in ("ID_SCSI_SERIAL", "ID_SERIAL_SHORT") if properties.get(key)]
    if not known:
        known = [read_attribute(disk / "serial") or read_attribute(disk / "device/serial") or properties.get("ID_SERIAL") or ""]
    real = [one for one in known if one and not is_placeholder(one, usb=usb)]
    return (real[0], None) if real else (None, known[0] or None)


def _without_placeholder(properties: t.Mapping[str, str], placeholder: str | None) -> t.Mapping[str, str]:
    """The properties without those that name a device by a number that identifies none: ID_SERIAL is vendor, model and that number."""
    return {key: value for key, value in properties.items() if key not in _SERIALS or not _has_placeholder(value, placeholder)}


def _has_placeholder(text: str, placeholder: str | None) -> bool:
    """Whether a placeholder is a part of a text that udev made: with ``_`` for blanks, and between signs."""
    written = re.sub(r"\s+", "_", (placeholder or "").strip())
    return bool(written) and re.search(rf"(?:\A|[_-]){re.escape(written)}(?:[-:_]|\Z)", re.sub(r"\s+", "_", text.strip())) is not None


def _wwn(disk: Path, properties: t.Mapping[str, str]) -> str | None:
    known = [properties[key] for key in ("ID_WWN_WITH_EXTENSION", "ID_WWN") if properties.get(key)]
    wwid = read_attribute(disk / "wwid") or read_attribute(disk / "device/wwid") or ""
    # A drive without a WWN gets a "t10." name made of model and serial number, which is none.
    known += [wwid] if wwid.startswith(("naa.", "eui.", "uuid.")) else []
    return next((one for one in known if not is_placeholder(one)), None)


def _model(disk: Path, properties: t.Mapping[str, str]) -> str | None:
    """The whole model. Of that of a SATA drive sysfs has the 16 characters of a SCSI inquiry, and udev all 40, with ``_`` for blanks."""
    of_sysfs, of_udev = read_attribute(disk / "device/model"), properties.get("ID_MODEL") or ""
    if of_sysfs and of_udev.startswith(of_sysfs.replace(" ", "_")):
        return of_sysfs + of_udev[len(of_sysfs) :].replace("_", " ").rstrip()
    return of_sysfs or of_udev.replace("_", " ").strip() or None


def _signature(properties: t.Mapping[str, str], *, partition: bool) -> Signature | None:
    found = Signature(
        usage=properties.get("ID_FS_USAGE") or None,
        type=properties.get("ID_FS_TYPE") or None,
        uuid=properties.get("ID_FS_UUID") or None,
        label=properties.get("ID_FS_LABEL") or None,
        # A partition inherits this from its disk (60-persistent-storage.rules imports ID_* of the parent).
        partition_table=None if partition else properties.get("ID_PART_TABLE_TYPE") or None,
    )
    return found if found.type or found.partition_table else None


def _queue(folder: Path) -> dict[str, t.Any]:
    settings: dict[str, t.Any] = {}
    schedulers = read_attribute(folder / "scheduler")
    if schedulers is not None:
        words = schedulers.split()
        settings["schedulers"] = [word.strip("[]") for word in words]
        settings["scheduler"] = next((word.strip("[]") for word in words if word.startswith("[") or len(words) == 1), None)
    for key in _QUEUE_NUMBERS:
        value = read_number(folder / key)
        if value is not None:
            settings[key] = value
    write_cache = read_attribute(folder / "write_cache")
    if write_cache is not None:
        settings["write_cache"] = write_cache
    fua = _flag(folder / "fua")
    if fua is not None:
        settings["fua"] = fua
    return settings


def _cache_type(disk: Path) -> str | None:
    """The cache mode the SCSI disk or virtio driver assumes: ``scsi_disk/*/cache_type`` or the disk's own ``cache_type``."""
    for place in (disk, *sorted(_children(disk / "device/scsi_disk"))):
        value = read_attribute(place / "cache_type")
        if value is not None:
            return value
    return None


def _link_order(link: str) -> tuple[int, str]:
    """Most specific first: names with model and serial, then WWNs, then names of contents."""
    name = link.rsplit("/", 1)[-1]
    for rank, prefix in enumerate(("ata-", "nvme-", "scsi-S", "virtio-", "usb-", "dm-name-", "md-name-", "scsi-", "wwn-", "nvme-eui", "nvme-uuid")):
        if name.startswith(prefix):
            return (rank, link) if not name.startswith(("nvme-eui", "nvme-uuid", "nvme-nvme.")) else (20, link)
    return 30, link


def _read_mounts(root: Path) -> dict[str, list[str]]:
    """``{major:minor or /dev path: [mount points]}``; the path serves file systems such as btrfs whose number is not the disk's."""
    mounts: dict[str, list[str]] = {}
    for line in (read_attribute(root / "proc/self/mountinfo") or "").splitlines():
        before, separator, after = line.partition(" - ")
        words = before.split()
        if not separator or len(words) < 5:
            continue
        number, point = words[2], unescape(words[4])
        key = number
        source = after.split()[1] if len(after.split()) > 1 else ""
        if number.startswith("0:") and source.startswith("/dev/"):
            key = unescape(os.path.realpath(source))
        mounts.setdefault(key, []).append(point)
    return mounts


def _read_swaps(root: Path) -> set[str]:
    lines = (read_attribute(root / "proc/swaps") or "").splitlines()[1:]
    return {os.path.realpath(unescape(line.split()[0])) for line in lines if line.split()}


def parse_dm_table(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """``dmsetup table`` as ``{name: ((start, length, target, argument…), …)}``.

    A line is ``name: start length target arguments`` (dmsetup(8)); lines of another form belong to the free text
    that the flashcache target prints and are passed over.
    """
    tables: dict[str, list[tuple[str, ...]]] = {}
    for line in text.splitlines():
        match = re.match(r"^(\S+): (\d+ \d+ \S+.*)$", line)
        if match:
            tables.setdefault(match.group(1), []).append(tuple(match.group(2).split()))
    return {name: tuple(rows) for name, rows in tables.items()}


def _read_dm_targets(runner: Runner, root: Path) -> dict[str, tuple[str, ...]]:
    # A container can show the host's mappings in /sys and have no permission, or no control node, to query them.
    if not runner.has("dmsetup") or not (root / "dev/mapper/control").exists():
        return {}
    tables = parse_dm_table(runner.run(["dmsetup", "table"]).stdout)
    return {name: tuple(dict.fromkeys(row[2] for row in rows)) for name, rows in tables.items()}


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _flag(path: Path) -> bool | None:
    value = read_number(path)
    return None if value is None else value == 1
