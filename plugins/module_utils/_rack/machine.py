# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The description of rack machines as plain data, and the QEMU command line that makes one. Everything here is pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import hashlib
import pathlib
import re
import typing as t
from dataclasses import asdict, dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, parse_size

DISK_KINDS = ("sata_hdd", "sata_ssd", "nvme", "megaraid_vd", "virtio")

#: An ICH9 AHCI controller has so many ports; a machine gets as many controllers as its disks need.
AHCI_PORTS = 6

#: Bytes that software emulation keeps of translated guest code.
TRANSLATION_CACHE = 256 * MIB

#: The kernel's ``sockaddr_un`` has 108 bytes for a path and its end.
SOCKET_PATH_LIMIT = 107

#: What QEMU's user network gives its only guest.
GUEST_ADDRESS = "10.0.2.15/24"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_PLAIN = re.compile(r"[A-Za-z0-9 ._-]+")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}/\d{1,2}")
_WWN = re.compile(r"(0x)?[0-9a-fA-F]{16}")

#: How long identification strings may be (ATA and SCSI standards as QEMU implements them; NVMe identify data).
_LIMITS: dict[str, dict[str, int]] = {
    "sata_hdd": {"serial": 20, "model": 40, "firmware": 8},
    "sata_ssd": {"serial": 20, "model": 40, "firmware": 8},
    "nvme": {"serial": 20},
    "megaraid_vd": {"serial": 36, "model": 16, "firmware": 4},
    "virtio": {"serial": 20},
}

_DEFAULT_MODELS = {"sata_hdd": "VIRTUAL HDD", "sata_ssd": "VIRTUAL SSD", "megaraid_vd": "VIRTUAL VD"}


@dataclass(frozen=True)
class Disk:
    """One disk. ``size`` is in bytes, ``iops_limit`` is 0 where there is none."""

    name: str
    kind: str
    size: int
    iops_limit: int
    volatile_cache: bool
    serial: str
    model: str | None
    firmware: str | None
    wwn: str | None
    attached: bool = True
    power_loss_protection: bool = False

    @property
    def hot_pluggable(self) -> bool:
        """Whether it can be pulled out of a running machine: QEMU's AHCI has no hot-plug, and its MegaRAID does not tell the guest."""
        return self.kind == "nvme"

    @property
    def file(self) -> str:
        """Name of the file that holds its blocks, inside the machine's folder."""
        return f"{self.name}.raw"


@dataclass(frozen=True)
class Nic:
    """One interface on a network of the rack. ``peer`` is the other machine on it, if there is one."""

    network: str
    mac: str
    address: str | None
    peer: str | None


@dataclass(frozen=True)
class Machine:
    """One machine. ``memory`` is in bytes; ``ssh_port`` is ``None`` where the rack chooses one."""

    name: str
    cpus: int
    memory: int
    disks: tuple[Disk, ...]
    networks: tuple[Nic, ...]
    ssh_port: int | None

    def as_data(self) -> dict[str, t.Any]:
        """Plain lists and dictionaries, as they are stored and compared."""
        data = asdict(self)
        data["disks"] = list(data["disks"])
        data["networks"] = list(data["networks"])
        return data


def machine_from_data(data: t.Mapping[str, t.Any]) -> Machine:
    """The inverse of :meth:`Machine.as_data`."""
    return Machine(
        **{
            **data,
            "disks": tuple(Disk(**disk) for disk in data["disks"]),
            "networks": tuple(Nic(**nic) for nic in data["networks"]),
        }
    )


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
    memory = parse_memory(options.get("memory") or 768, name)
    if memory < 256 * MIB:
        raise BadInput(f"{name}: a machine needs at least 256 MiB of memory.", item=name)
    cpus = int(options.get("cpus") or 2)
    if not 1 <= cpus <= 64:
        raise BadInput(f"{name}: cpus must be between 1 and 64.", item=name)
    port = options.get("ssh_port")
    if port is not None and not 1024 <= port <= 65535:
        raise BadInput(f"{name}: ssh_port must be between 1024 and 65535.", item=name)
    return Machine(name, cpus, memory, disks, tuple(_describe_nic(rack, name, nic, members) for nic in options.get("networks") or []), port)


def parse_memory(value: str | int, item: str) -> int:
    """Memory in bytes; a bare number is MiB."""
    text = str(value).strip()
    return int(text) * MIB if text.isdigit() else parse_size(text, item)


def _describe_disk(machine: str, options: t.Mapping[str, t.Any]) -> Disk:
    name, kind = options["name"], options["kind"]
    where = f"{machine} {name}"
    check_name(name, "disk")
    if kind not in DISK_KINDS:
        raise BadInput(f"{where}: '{kind}' is no kind of disk: use one of {', '.join(DISK_KINDS)}.", item=where)
    size = parse_size(options["size"], where)
    if size < MIB or size % (64 * KIB):
        raise BadInput(f"{where}: the size must be at least 1 MiB and a multiple of 64 KiB.", item=where)
    limit = int(options.get("iops_limit") or 0)
    if limit < 0:
        raise BadInput(f"{where}: iops_limit must not be negative.", item=where)
    wwn = options.get("wwn")
    if wwn is not None and (kind in ("nvme", "virtio") or not _WWN.fullmatch(wwn)):
        raise BadInput(f"{where}: wwn must be 16 hexadecimal digits, and only sata_hdd, sata_ssd and megaraid_vd have one.", item=where)
    text = {
        "serial": options.get("serial") or f"{machine}-{name}".upper()[-20:],
        "model": options.get("model") or _DEFAULT_MODELS.get(kind),
        "firmware": options.get("firmware"),
    }
    for key, value in text.items():
        _check_text(where, kind, key, value)
    volatile, attached = options.get("volatile_cache"), options.get("attached")
    protected = bool(options.get("power_loss_protection"))
    if protected and volatile is False:
        raise BadInput(f"{where}: power_loss_protection protects a cache: with volatile_cache false there is none; leave one of them out.", item=where)
    return Disk(
        name=name,
        kind=kind,
        size=size,
        iops_limit=limit,
        volatile_cache=True if volatile is None else bool(volatile),
        serial=t.cast(str, text["serial"]),
        model=text["model"],
        firmware=text["firmware"],
        wwn=None if wwn is None else "0x" + wwn.lower()[-16:],
        attached=True if attached is None else bool(attached),
        power_loss_protection=protected,
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


@dataclass(frozen=True)
class RackPaths:
    """Where the files of a rack are."""

    rack: pathlib.Path

    def folder(self, machine: str) -> pathlib.Path:
        return self.rack / machine

    def root_disk(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "root.qcow2"

    def disk(self, machine: str, disk: Disk) -> pathlib.Path:
        return self.folder(machine) / disk.file

    def console(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "console.log"

    def monitor(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "qmp.sock"

    def pid_file(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "pid"

    def network_socket(self, network: str, machine: str) -> pathlib.Path:
        return self.folder(machine) / f"{network}.net"

    @property
    def key(self) -> pathlib.Path:
        return self.rack / "id_ed25519"

    @property
    def known_hosts(self) -> pathlib.Path:
        return self.rack / "known_hosts"

    @property
    def state(self) -> pathlib.Path:
        return self.rack / "rack.json"

    @property
    def lock(self) -> pathlib.Path:
        return self.rack / ".lock"

    def sockets(self, machine: Machine) -> list[pathlib.Path]:
        """Every unix-domain socket of a machine."""
        return [self.monitor(machine.name), *(self.network_socket(nic.network, machine.name) for nic in machine.networks)]

    def check_sockets(self, machine: Machine) -> None:
        """
        :raises BadInput: if the rack's folder has so long a path that a socket cannot be made in it.
        """
        for path in self.sockets(machine):
            if len(str(path).encode()) > SOCKET_PATH_LIMIT:
                raise BadInput(
                    f"The path {path} is longer than the {SOCKET_PATH_LIMIT} bytes that a socket may have: choose a shorter directory for the rack.",
                    item=machine.name,
                )


def _quote(value: t.Any) -> str:
    """A value inside a QEMU option: a comma is written twice."""
    return str(value).replace(",", ",,")


def _cache_mode(disk: Disk) -> str:
    """Write-back: the guest is told of a volatile cache, and QEMU makes data durable on the host when the guest flushes."""
    if disk.power_loss_protection:
        # A flush has nothing to do: what the drive took is in the host's memory, which outlives every power cut of the
        # machine, as a capacitor keeps the memory of a real drive. Without protection this would be a drive that lies.
        return "unsafe"
    return "writeback" if disk.volatile_cache else "writethrough"


def backend(disk: Disk, path: pathlib.Path) -> str:
    """The ``-drive`` of a disk: what keeps its blocks. The one place to put another kind of storage behind a disk."""
    options = [f"file={_quote(path)}", "format=raw", "if=none", f"id=drive-{disk.name}", "discard=unmap"]
    options.append(f"cache={_cache_mode(disk)}")
    if disk.iops_limit:
        options.append(f"throttling.iops-total={disk.iops_limit}")
    return ",".join(options)


def disk_device(disk: Disk, place: str = "") -> str:
    """The ``-device`` of a disk.

    :param place: where on which controller, as further properties; a hot-pluggable disk has a slot of its own and knows it.
    """
    common = f"drive=drive-{disk.name},id=disk-{disk.name},serial={_quote(disk.serial)}"
    if disk.kind in ("sata_hdd", "sata_ssd"):
        rotation = 7200 if disk.kind == "sata_hdd" else 1
        return f"ide-hd,{common},{place},rotation_rate={rotation}" + _identity(disk, model="model")
    if disk.kind == "nvme":
        return f"nvme,{common},bus=slot-{disk.name}"
    if disk.kind == "megaraid_vd":
        return f"scsi-hd,{common},{place}" + _identity(disk, model="product")
    return f"virtio-blk-pci,{common}"


def _disk_devices(disks: t.Sequence[Disk]) -> list[str]:
    """The ``-device`` values of disks and of the controllers they need, in the order of the list.

    A disk that is not attached keeps its place, so that the others do not move.
    """
    devices: list[str] = []
    ports = {"sata": 0, "nvme": 0, "scsi": 0}
    for disk in disks:
        place = ""
        if disk.kind in ("sata_hdd", "sata_ssd"):
            controller, port = divmod(ports["sata"], AHCI_PORTS)
            ports["sata"] += 1
            if port == 0:
                devices.append(f"ich9-ahci,id=ahci{controller}")
            place = f"bus=ahci{controller}.{port}"
        elif disk.kind == "nvme":
            number = ports["nvme"] = ports["nvme"] + 1
            devices.append(f"pcie-root-port,id=slot-{disk.name},chassis={number},slot={number}")
        elif disk.kind == "megaraid_vd":
            if not ports["scsi"]:
                devices.append("megasas-gen2,id=megaraid")
            place = f"bus=megaraid.0,scsi-id={ports['scsi']}"
            ports["scsi"] += 1
        if disk.attached:
            devices.append(disk_device(disk, place))
    return devices


def _identity(disk: Disk, model: str) -> str:
    pairs = ((model, disk.model), ("ver", disk.firmware), ("wwn", disk.wwn))
    return "".join(f",{key}={_quote(value)}" for key, value in pairs if value is not None)


def kernel_command_line(machine: Machine, rack: str, public_key: str) -> str:
    """What the guest is told about itself.

    :param public_key: an OpenSSH public key line.
    """
    kind, blob = public_key.split()[:2]
    identity = hashlib.sha256(f"{rack}/{machine.name}".encode()).hexdigest()[:32]
    words = [
        # no_timer_check: on a busy host the emulated timer is late, and the kernel would take it for broken and wait for ever.
        "root=/dev/vda rw console=ttyS0 quiet mitigations=off net.ifnames=0 no5lvl no_timer_check",
        f"systemd.hostname={machine.name}",
        f"systemd.machine_id={identity}",
        f"rack.key={kind}:{blob}",
        f"rack.address=eth0:{GUEST_ADDRESS}",
        *(f"rack.address=eth{number}:{nic.address}" for number, nic in enumerate(machine.networks, 1) if nic.address),
    ]
    return " ".join(words)


@dataclass(frozen=True)
class Boot:
    """What a start needs beyond the description of the machine."""

    kernel: str
    initrd: str
    accelerator: str
    ssh_port: int
    public_key: str


def accelerator_arguments(accelerator: str) -> list[str]:
    """The QEMU options for ``kvm`` or ``tcg``."""
    if accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    # tb-size in MiB: left to itself, the cache of translated code may grow to 1 GiB beside the memory of each guest.
    return ["-accel", f"tcg,thread=multi,tb-size={TRANSLATION_CACHE // MIB}", "-cpu", "max"]


def qemu_arguments(machine: Machine, rack: str, places: RackPaths, boot: Boot) -> list[str]:
    """The whole QEMU command line of one machine.

    The order of devices decides the names in the guest: the root disk is the first virtio disk and ssh the first interface.
    """
    name = machine.name
    arguments = [
        "qemu-system-x86_64",
        "-name", f"{rack}/{name}",
        "-machine", "q35,sata=off,smbus=off,vmport=off",
        "-nodefaults",
        "-no-user-config",
        *accelerator_arguments(boot.accelerator),
        "-smp", str(machine.cpus),
        "-m", f"{machine.memory // MIB}M",
        "-display", "none",
        "-kernel", boot.kernel,
        "-initrd", boot.initrd,
        "-append", kernel_command_line(machine, rack, boot.public_key),
        # Losing the root disk in a power cut of the host costs a rebuilt rack; not flushing it makes the guest quicker.
        "-drive", f"file={_quote(places.root_disk(name))},format=qcow2,if=none,id=root,cache=unsafe",
        "-device", "virtio-blk-pci,drive=root",
        # restrict=on: the guest reaches nothing outside; the forward from the host's loopback still works.
        "-netdev", f"user,id=ssh,restrict=on,hostfwd=tcp:127.0.0.1:{boot.ssh_port}-:22",
        "-device", "virtio-net-pci,netdev=ssh,romfile=",
    ]  # fmt: skip
    for number, nic in enumerate(machine.networks, 1):
        here = places.network_socket(nic.network, name)
        # Datagrams: each side sends to a path, so that a machine may go and come back without the other noticing.
        there = places.network_socket(nic.network, nic.peer) if nic.peer else places.folder(name) / f"{nic.network}.nobody"
        arguments += [
            "-netdev", f"dgram,id=net{number},local.type=unix,local.path={_quote(here)},remote.type=unix,remote.path={_quote(there)}",
            "-device", f"virtio-net-pci,netdev=net{number},mac={nic.mac},romfile=",
        ]  # fmt: skip
    for disk in machine.disks:
        if not disk.attached:
            continue
        arguments += ["-drive", backend(disk, places.disk(name, disk))]
    for device in _disk_devices(machine.disks):
        arguments += ["-device", device]
    return [
        *arguments,
        "-chardev", f"file,id=console,path={_quote(places.console(name))}",
        "-serial", "chardev:console",
        "-qmp", f"unix:{_quote(places.monitor(name))},server=on,wait=off",
        "-pidfile", str(places.pid_file(name)),
        "-daemonize",
    ]  # fmt: skip
