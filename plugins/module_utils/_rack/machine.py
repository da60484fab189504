# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The description of rack machines as plain data, and the QEMU command line that makes one. Everything here is pure."""

from __future__ import annotations

import hashlib
import re
import typing as t
from dataclasses import asdict

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, parse_size

DISK_KINDS = ("sata_hdd", "sata_ssd", "scsi_hdd", "nvme", "megaraid_vd", "virtio")

#: Write caches of disks; those of the second line lose at a power cut what was not flushed.
CACHE_KINDS = ("on", "off")
FORGETTING_CACHES = ("honest", "lies", "torn")

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_PORT = re.compile(r"[A-Za-z0-9._-]{1,60}")
_PLAIN = re.compile(r"[A-Za-z0-9 ._-]+")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}/\d{1,2}")
_WWN = re.compile(r"(0x)?[0-9a-fA-F]{16}")

#: How long identification strings may be (ATA and SCSI standards as QEMU implements them; NVMe identify data).
_LIMITS: dict[str, dict[str, int]] = {
    "sata_hdd": {"serial": 20, "model": 40, "firmware": 8},
    "sata_ssd": {"serial": 20, "model": 40, "firmware": 8},
    "scsi_hdd": {"serial": 36, "model": 16, "firmware": 4, "vendor": 8},
    "nvme": {"serial": 20},
    "megaraid_vd": {"serial": 36, "model": 16, "firmware": 4, "vendor": 8},
    "virtio": {"serial": 20},
}

_DEFAULT_MODELS = {"sata_hdd": "VIRTUAL HDD", "sata_ssd": "VIRTUAL SSD", "scsi_hdd": "VIRTUAL SCSI", "megaraid_vd": "VIRTUAL VD"}


@frozen
class Disk:
    """One disk. ``size`` is in bytes, ``iops_limit`` is 0 where there is none, and that of all disks of an ``iops_group`` together;
    each of ``paths`` leads over a controller of its own. ``nbd`` is the socket of what serves its blocks, if it is not a file."""

    name: str
    kind: str
    size: int
    iops_limit: int
    volatile_cache: str
    serial: str
    model: str | None
    firmware: str | None
    wwn: str | None
    attached: bool = True
    power_loss_protection: bool = False
    paths: int = 1
    iops_group: str | None = None
    vendor: str | None = None
    nbd: str | None = None

    @property
    def forgets(self) -> bool:
        """Whether a power cut empties its write cache, which a process of its own keeps."""
        return self.volatile_cache in FORGETTING_CACHES

    @property
    def served(self) -> bool:
        """Whether QEMU reads and writes it through the socket of a process."""
        return self.forgets or self.nbd is not None

    @property
    def hot_pluggable(self) -> bool:
        """Whether it can be pulled out of a running machine: QEMU's AHCI has no hot-plug, and its MegaRAID does not notify the guest.

        A process that serves a disk lives as long as its machine runs.
        """
        return self.kind == "nvme" and not self.served

    @property
    def file(self) -> str:
        """Name of the file that holds its blocks, inside the machine's folder."""
        return f"{self.name}.raw"


@frozen
class Nic:
    """One interface on a network of the rack. ``peer`` is the other machine on it, if there is one."""

    network: str
    mac: str
    address: str | None
    peer: str | None


@frozen
class SerialPort:
    """A port of virtio-serial, ``/dev/virtio-ports/<name>`` in the guest, and the socket on which another process listens."""

    name: str
    socket: str


@frozen
class Machine:
    """One machine. ``memory`` is in bytes; ``ssh_port`` is ``None`` where the rack chooses one; ``processes`` are commands."""

    name: str
    cpus: int
    memory: int
    disks: tuple[Disk, ...]
    networks: tuple[Nic, ...]
    ssh_port: int | None
    serial_ports: tuple[SerialPort, ...] = ()
    processes: tuple[tuple[str, ...], ...] = ()

    def as_data(self) -> dict[str, t.Any]:
        """Plain lists and dictionaries, as they are stored and compared."""
        data = asdict(self)
        data["disks"] = list(data["disks"])
        for key in ("networks", "serial_ports"):
            data[key] = list(data[key])
        data["processes"] = [list(command) for command in self.processes]
        return data


def machine_from_data(data: t.Mapping[str, t.Any]) -> Machine:
    """The inverse of :meth:`Machine.as_data`."""
    return Machine(
        **{
            **data,
            "disks": tuple(Disk(**{**disk, "volatile_cache": _cache_kind(disk["volatile_cache"])}) for disk in data["disks"]),
            "networks": tuple(Nic(**nic) for nic in data["networks"]),
            **_equipment(data),
        }
    )


def _equipment(data: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {
        "serial_ports": tuple(SerialPort(**port) for port in data.get("serial_ports") or ()),
        "processes": tuple(tuple(command) for command in data.get("processes") or ()),
    }


def _cache_kind(value: t.Any) -> str:
    """Racks of older versions were noted with a truth value, and YAML reads on and off as one."""
    if value is None or value is True:
        return "on"
    return "off" if value is False else str(value)


def describe_machines(rack: str, options: t.Sequence[t.Mapping[str, t.Any]]) -> list[Machine]:
    """Check what the user wrote and fill in what was left out.

    :param rack: name of the rack; goes into generated hardware addresses.
    :param options: the option ``machines`` of the module.
    :raises BadInput: naming the machine and the disk.
    """
    check_name(rack, "rack")
    members: dict[str, list[str]] = {}
    for machine in options:
        check_name(machine["name"], "machine")
        for nic in machine.get("networks") or []:
            members.setdefault(nic["name"], []).append(machine["name"])
    for network, names in members.items():
        _check_network(network, names)
    machines = [_describe_machine(rack, machine, members) for machine in options]
    _check_unique([machine.name for machine in machines], "machine", "the rack")
    _check_unique([str(machine.ssh_port) for machine in machines if machine.ssh_port], "ssh_port", "the rack")
    return machines


def check_name(name: str, what: str) -> None:
    """Names become file names, host names and QEMU identifiers.

    :raises BadInput: if the name cannot be all of these.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"'{name}' cannot be the name of a {what}: use at most 32 of a-z, 0-9 and '-', not beginning or ending with '-'.", item=name)


def _check_network(network: str, names: t.Sequence[str]) -> None:
    check_name(network, "network")
    _check_unique(names, "machine", f"the network {network}")
    if len(names) > 2:
        raise BadInput(
            f"The network {network} joins {len(names)} machines ({', '.join(names)}); a network of the virtual rack joins at most two: give each pair its own.",
            item=network,
        )


def _check_unique(names: t.Sequence[str], what: str, where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{what} {name} is listed twice in {where}.", item=name)


def _describe_machine(rack: str, options: t.Mapping[str, t.Any], members: t.Mapping[str, t.Sequence[str]]) -> Machine:
    name = options["name"]
    disks = tuple(_describe_disk(name, disk) for disk in options.get("disks") or [])
    _check_unique([disk.name for disk in disks], "disk", name)
    _check_unique([disk.serial for disk in disks], "serial", name)
    _check_groups(name, disks)
    memory = parse_memory(options.get("memory") or 768, name)
    if memory < 256 * MIB:
        raise BadInput(f"{name}: a machine needs at least 256 MiB of memory.", item=name)
    cpus = int(options.get("cpus") or 2)
    if not 1 <= cpus <= 64:
        raise BadInput(f"{name}: cpus must be between 1 and 64.", item=name)
    port = options.get("ssh_port")
    if port is not None and not 1024 <= port <= 65535:
        raise BadInput(f"{name}: ssh_port must be between 1024 and 65535.", item=name)
    equipment = _equipment(options)
    for serial in equipment["serial_ports"]:
        if not _PORT.fullmatch(serial.name):
            raise BadInput(f"{name}: '{serial.name}' cannot be the name of a serial port: use letters, digits, '.', '-' and '_'.", item=name)
    _check_unique([serial.name for serial in equipment["serial_ports"]], "serial port", name)
    if not all(equipment["processes"]):
        raise BadInput(f"{name}: a command in processes is empty.", item=name)
    networks = tuple(_describe_nic(rack, name, nic, members) for nic in options.get("networks") or [])
    return Machine(name, cpus, memory, disks, networks, port, **equipment)


def _check_groups(machine: str, disks: t.Sequence[Disk]) -> None:
    limits = {disk.iops_group: disk.iops_limit for disk in disks}
    for disk in disks:
        if disk.iops_group is not None and disk.iops_limit != limits[disk.iops_group]:
            raise BadInput(f"{machine}: the disks of the iops_group {disk.iops_group} share one iops_limit: give all of them the same.", item=machine)


def parse_memory(value: str | int, item: str) -> int:
    """Memory in bytes; a bare number is MiB."""
    text = str(value).strip()
    return int(text) * MIB if text.isdigit() else parse_size(text, item)


def _describe_disk(machine: str, options: t.Mapping[str, t.Any]) -> Disk:
    name, kind = options["name"], options["kind"]
    where = f"{machine} {name}"
    check_name(name, "disk")
    if kind not in DISK_KINDS:
        raise BadInput(f"{where}: '{kind}' is not a supported kind of disk: use one of {', '.join(DISK_KINDS)}.", item=where)
    size = parse_size(options["size"], where)
    if size < MIB or size % (64 * KIB):
        raise BadInput(f"{where}: the size must be at least 1 MiB and a multiple of 64 KiB.", item=where)
    limit = int(options.get("iops_limit") or 0)
    if limit < 0:
        raise BadInput(f"{where}: iops_limit must not be negative.", item=where)
    paths = 1 if options.get("paths") is None else int(options["paths"])
    if not 1 <= paths <= 8 or (paths > 1 and kind != "scsi_hdd"):
        raise BadInput(f"{where}: paths must be between 1 and 8, and only a disk of kind scsi_hdd has more than one.", item=where)
    group = options.get("iops_group")
    if group is not None:
        check_name(group, "group of disks")
    if group is not None and not limit:
        raise BadInput(f"{where}: iops_group shares an iops_limit: set it, or leave the group out.", item=where)
    if paths > 1 and limit:
        raise BadInput(f"{where}: iops_limit is not supported for a disk with several paths: leave one of them out.", item=where)
    wwn = options.get("wwn")
    if wwn is not None and (kind in ("nvme", "virtio") or not _WWN.fullmatch(wwn)):
        raise BadInput(f"{where}: wwn must be 16 hexadecimal digits, and only sata_hdd, sata_ssd, scsi_hdd and megaraid_vd have one.", item=where)
    text = {
        "serial": options.get("serial") or f"{machine}-{name}".upper()[-20:],
        "model": options.get("model") or _DEFAULT_MODELS.get(kind),
        "firmware": options.get("firmware"),
        "vendor": options.get("vendor"),
    }
    for key, value in text.items():
        _check_text(where, kind, key, value)
    volatile, attached = _cache_kind(options.get("volatile_cache")), options.get("attached")
    if volatile not in (*CACHE_KINDS, *FORGETTING_CACHES):
        raise BadInput(f"{where}: volatile_cache must be one of {', '.join((*CACHE_KINDS, *FORGETTING_CACHES))}.", item=where)
    protected = bool(options.get("power_loss_protection"))
    nbd = options.get("nbd")
    if nbd is not None and (volatile in FORGETTING_CACHES or protected):
        raise BadInput(f"{where}: what a disk with nbd loses in a power cut is up to the process that serves it: leave the other option out.", item=where)
    if protected and volatile != "on":
        clause = "there is none" if volatile == "off" else "it is lost in a power cut"
        raise BadInput(f"{where}: power_loss_protection protects a cache: with volatile_cache {volatile} {clause}; leave one of them out.", item=where)
    return Disk(
        name=name,
        kind=kind,
        size=size,
        iops_limit=limit,
        volatile_cache=volatile,
        serial=t.cast(str, text["serial"]),
        model=text["model"],
        firmware=text["firmware"],
        wwn=None if wwn is None else "0x" + wwn.lower()[-16:],
        attached=True if attached is None else bool(attached),
        power_loss_protection=protected,
        paths=paths,
        iops_group=group,
        vendor=text["vendor"],
        nbd=nbd,
    )


def _check_text(where: str, kind: str, key: str, value: str | None) -> None:
    if value is None:
        return
    limit = _LIMITS[kind].get(key)
    if limit is None:
        raise BadInput(f"{where}: QEMU gives a {kind} disk no {key} of one's own: leave it out.", item=where)
    if len(value) > limit or not _PLAIN.fullmatch(value):
        raise BadInput(f"{where}: the {key} '{value}' must have at most {limit} letters, digits, spaces, dots, '-' and '_'.", item=where)


def _describe_nic(rack: str, machine: str, options: t.Mapping[str, t.Any], members: t.Mapping[str, t.Sequence[str]]) -> Nic:
    network = options["name"]
    where = f"{machine} {network}"
    digest = hashlib.sha256(f"{rack}/{machine}/{network}".encode()).hexdigest()
    mac = (options.get("mac") or f"52:54:00:{digest[:2]}:{digest[2:4]}:{digest[4:6]}").lower()
    if not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1:
        raise BadInput(f"{where}: '{mac}' is not the hardware address of one interface.", item=where)
    address = options.get("address")
    if address is not None and not _ADDRESS.fullmatch(address):
        raise BadInput(f"{where}: '{address}' is not an IPv4 address with a prefix length such as 192.168.77.1/24.", item=where)
    others = [name for name in members[network] if name != machine]
    return Nic(network, mac, address, others[0] if others else None)
