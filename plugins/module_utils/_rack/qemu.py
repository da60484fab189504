# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The QEMU command line that makes a machine of a description. Everything here is pure."""

from __future__ import annotations

import hashlib
import pathlib
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Disk, Machine
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths

#: An ICH9 AHCI controller has so many ports; a machine gets as many controllers as its disks need.
AHCI_PORTS = 6

#: Bytes that software emulation keeps of translated guest code.
TRANSLATION_CACHE = 256 * MIB

#: What QEMU's user network gives its only guest.
GUEST_ADDRESS = "10.0.2.15/24"


def _quote(value: t.Any) -> str:
    """A value inside a QEMU option: a comma is written twice."""
    return str(value).replace(",", ",,")


def _cache_mode(disk: Disk) -> str:
    """Write-back: the guest is given a volatile cache, and QEMU makes data durable on the host when the guest flushes."""
    if disk.power_loss_protection:
        # A flush has nothing to do: what the drive took is in the host's memory, which outlives every power cut of the
        # machine, as a capacitor keeps the memory of a real drive. Without protection this would be a drive that lies.
        return "unsafe"
    return "writethrough" if disk.volatile_cache == "off" else "writeback"


def backend(disk: Disk, path: pathlib.Path) -> str:
    """The ``-drive`` of a disk: what keeps its blocks. The one place to put another kind of storage behind a disk.

    :param path: the file with its blocks, or the socket of the process that serves it.
    """
    source = _served(path) if disk.served else [f"file={_quote(path)}", "format=raw"]
    options = [*source, "if=none", f"id=drive-{disk.name}", "discard=unmap"]
    options.append(f"cache={_cache_mode(disk)}")
    if disk.iops_limit:
        options.append(f"throttling.iops-total={disk.iops_limit}")
    if disk.iops_group is not None:
        options.append(f"throttling.group={disk.iops_group}")
    return ",".join(options)


def _served(path: pathlib.Path) -> list[str]:
    return ["driver=raw", "file.driver=nbd", "file.server.type=unix", f"file.server.path={_quote(path)}"]


def shared_backend(disk: Disk, path: pathlib.Path) -> str:
    """The ``-blockdev`` of a disk with several paths, each of which is a device that has its own cache setting."""
    source = _served(path) if disk.served else ["driver=raw", "file.driver=file", f"file.filename={_quote(path)}"]
    no_flush = "on" if _cache_mode(disk) == "unsafe" else "off"
    return ",".join([*source, f"node-name=drive-{disk.name}", "discard=unmap", f"cache.no-flush={no_flush}"])


def disk_device(disk: Disk, place: str = "", path: str = "") -> str:
    """The ``-device`` of a disk.

    :param place: where on which controller, as further properties; a hot-pluggable disk has a slot of its own.
    :param path: what distinguishes it from the devices of the other paths to the disk.
    """
    common = f"drive=drive-{disk.name},id=disk-{disk.name}{path},serial={_quote(disk.serial)}"
    if disk.kind in ("sata_hdd", "sata_ssd"):
        rotation = 7200 if disk.kind == "sata_hdd" else 1
        return f"ide-hd,{common},{place},rotation_rate={rotation}" + _identity(disk, model="model")
    if disk.kind == "nvme":
        return f"nvme,{common},bus=slot-{disk.name}"
    if disk.kind == "scsi_hdd":
        return f"scsi-hd,{common},{place},rotation_rate=7200" + _identity(disk, model="product")
    if disk.kind == "megaraid_vd":
        return f"scsi-hd,{common},{place}" + _identity(disk, model="product")
    return f"virtio-blk-pci,{common}"


def _disk_devices(disks: t.Sequence[Disk]) -> list[str]:
    """The ``-device`` values of disks and of the controllers they need, in the order of the list.

    A disk that is not attached keeps its place, so that the others do not move.
    """
    devices: list[str] = []
    ports = {"sata": 0, "host": 0, "nvme": 0, "scsi": 0}
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
        elif disk.kind == "scsi_hdd":
            devices += _scsi_devices(disk, ports["host"])
            ports["host"] += disk.paths
        elif disk.kind == "megaraid_vd":
            if not ports["scsi"]:
                devices.append("megasas-gen2,id=megaraid")
            place = f"bus=megaraid.0,scsi-id={ports['scsi']}"
            ports["scsi"] += 1
        if disk.attached and disk.kind != "scsi_hdd":
            devices.append(disk_device(disk, place))
    return devices


def _scsi_devices(disk: Disk, first: int) -> t.Iterator[str]:
    """A SCSI disk, and a controller for each path to it."""
    cache = "off" if _cache_mode(disk) == "writethrough" else "on"
    for number in range(first, first + disk.paths):
        yield f"virtio-scsi-pci,id=scsi{number}"
        if disk.attached and disk.paths > 1:
            yield disk_device(disk, f"bus=scsi{number}.0,share-rw=on,write-cache={cache}", f"-{number}")
        elif disk.attached:
            yield disk_device(disk, f"bus=scsi{number}.0")


def _identity(disk: Disk, model: str) -> str:
    pairs = (("vendor", disk.vendor), (model, disk.model), ("ver", disk.firmware), ("wwn", disk.wwn))
    return "".join(f",{key}={_quote(value)}" for key, value in pairs if value is not None)


def kernel_command_line(machine: Machine, rack: str, public_key: str) -> str:
    """What is passed to the guest.

    :param public_key: an OpenSSH public key line.
    """
    kind, blob = public_key.split()[:2]
    identity = hashlib.sha256(f"{rack}/{machine.name}".encode()).hexdigest()[:32]
    words = [
        # no_timer_check: on a busy host the emulated timer is late, and the kernel would take it for broken and wait for ever.
        "root=/dev/vda rw console=ttyS0 quiet mitigations=off net.ifnames=0 no5lvl no_timer_check",
        # norandmaps: QEMU finds translated code by its virtual address, so a program that starts at another address is translated again
        # (measured: starting a program takes a quarter, fio and LVM less than half, of the time). The other two: clearing and checking memory.
        "norandmaps init_on_alloc=0 hardened_usercopy=off",
        f"systemd.hostname={machine.name}",
        f"systemd.machine_id={identity}",
        f"rack.key={kind}:{blob}",
        f"rack.address=eth0:{GUEST_ADDRESS}",
        *(f"rack.address=eth{number}:{nic.address}" for number, nic in enumerate(machine.networks, 1) if nic.address),
    ]
    return " ".join(words)


@frozen
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
    # tb-size in MiB: left to itself, the cache of translated code may grow to 1 GiB beside the memory of each guest. Without erms and fsrm
    # kernel and C library do not copy with "rep movsb", which is emulated byte by byte (copying in half the time), and AVX is slower than SSE.
    return ["-accel", f"tcg,thread=multi,tb-size={TRANSLATION_CACHE // MIB}", "-cpu", "max,-erms,-fsrm,-avx,-avx2"]


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
        there = places.network_socket(nic.network, nic.peer) if nic.peer else places.folder(name) / f"{nic.network}.unused"
        arguments += [
            "-netdev", f"dgram,id=net{number},local.type=unix,local.path={_quote(here)},remote.type=unix,remote.path={_quote(there)}",
            "-device", f"virtio-net-pci,netdev=net{number},mac={nic.mac},romfile=",
        ]  # fmt: skip
    for disk in machine.disks:
        if not disk.attached:
            continue
        path = places.disk_socket(name, disk) if disk.served else places.disk(name, disk)
        arguments += ["-blockdev", shared_backend(disk, path)] if disk.paths > 1 else ["-drive", backend(disk, path)]
    for device in _disk_devices(machine.disks):
        arguments += ["-device", device]
    if machine.serial_ports:
        arguments += ["-device", "virtio-serial-pci,id=ports"]
    for number, port in enumerate(machine.serial_ports, 1):
        arguments += [
            "-chardev", f"socket,id=port{number},path={_quote(port.socket)}",
            "-device", f"virtserialport,bus=ports.0,nr={number},chardev=port{number},name={port.name}",
        ]  # fmt: skip
    return [
        *arguments,
        "-chardev", f"file,id=console,path={_quote(places.console(name))}",
        "-serial", "chardev:console",
        "-qmp", f"unix:{_quote(places.monitor(name))},server=on,wait=off",
        "-pidfile", str(places.pid_file(name)),
        "-daemonize",
    ]  # fmt: skip
