# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices and files that are in use under another name, from another namespace, or by the kernel itself."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

from proofs.building import (
    backing_file,
    config_folder,
    logical_volume,
    loop_over,
    mapped_by_process,
    mounted_on,
    namespace_process,
    opened_by_process,
    partition_of,
    run,
    settle,
    sparse_file,
    volume_group,
    write_partition_table,
)
from proofs.proof import Proof


def other_names_of(proof: Proof, undo: contextlib.ExitStack, file: Path) -> list[tuple[str, str]]:
    """A file under two further names: a hard link, and its folder bound to another place."""
    link = proof.folder / "hard-link"
    os.link(file, link)
    undo.callback(link.unlink)
    bound = proof.folder / "bound"
    bound.mkdir()
    undo.callback(bound.rmdir)
    run("mount", "--bind", str(proof.folder), str(bound))
    undo.callback(run, "umount", str(bound))
    return [("hard link", str(link)), ("bind mount", str(bound / file.name))]


def names_of_a_backing_file(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    image = Path(backing_file(device))
    names = other_names_of(proof, undo, image)
    for how, name in names:
        proof.expect(f"backing file of a loop device, by a {how}", name, "in_use", kind="file", allow_data_loss=True)
    run("mkfs.ext4", "-q", device)
    mounted_on(proof.folder, undo, device)
    for how, name in names:
        proof.expect(f"backing file of a mounted loop device, by a {how}", name, "in_use", kind="file", allow_data_loss=True)
    twin = loop_over(undo, names[0][1])
    proof.expect_use("loop device over a hard link of that file", twin)
    twin = loop_over(undo, names[1][1], "--offset", "1M")
    proof.expect_use("loop device over that file through a bind mount", twin)


def parts_of_a_backing_file(proof: Proof, undo: contextlib.ExitStack) -> None:
    image = sparse_file(proof.folder, 64)
    undo.callback(image.unlink)
    first = loop_over(undo, str(image), "--offset", "1M", "--sizelimit", "16M")
    run("mkfs.ext4", "-q", first)
    mounted_on(proof.folder, undo, first)
    proof.expect("file of which a part is a mounted loop device", str(image), "in_use", first, kind="file", allow_data_loss=True)
    second = loop_over(undo, str(image), "--offset", "8M")
    proof.expect_use("loop device over another part of the same file", second)


def moved_backing_file(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    image = Path(backing_file(device))
    renamed = proof.folder / "renamed.img"
    image.rename(renamed)
    undo.callback(renamed.unlink, missing_ok=True)
    proof.expect("backing file that was renamed", str(renamed), "in_use", device, kind="file", allow_data_loss=True)
    link = proof.folder / "last-link"
    os.link(renamed, link)
    undo.callback(link.unlink)
    renamed.unlink()
    proof.expect("backing file of which the first name was deleted", str(link), "in_use", device, kind="file", allow_data_loss=True)


def backing_file_of_another_namespace(proof: Proof, undo: contextlib.ExitStack) -> None:
    image = sparse_file(proof.folder, 64)
    undo.callback(image.unlink)
    elsewhere = proof.folder / "elsewhere"
    elsewhere.mkdir()
    undo.callback(elsewhere.rmdir)
    undo.enter_context(namespace_process('mount --bind "$1" "$2"\nlosetup --find "$2/$3"', str(proof.folder), str(elsewhere), image.name))
    devices = [line.split(":")[0] for line in run("losetup", "--associated", str(image)).splitlines()]
    found = devices or [line.split()[0] for line in run("losetup", "--list", "--noheadings").splitlines() if line.endswith(image.name)]
    for device in found:
        undo.callback(run, "losetup", "--detach", device, check=False)
    proof.expect("backing file named in another mount namespace", str(image), "in_use", kind="file", allow_data_loss=True)


def mounted_in_another_namespace(proof: Proof, undo: contextlib.ExitStack) -> None:
    whole, disk, physical = proof.loop(undo), proof.loop(undo, 128, "--partscan"), proof.loop(undo, 128)
    write_partition_table(disk, (2048, 98304), (100352, 161792))
    volume_group(undo, "guardns", physical)
    volume = logical_volume("guardns", "data", "64m")
    point = proof.folder / "private"
    point.mkdir()
    undo.callback(point.rmdir)
    for what, device in (("device", whole), ("partition", partition_of(disk, 1)), ("logical volume", volume)):
        run("mkfs.ext4", "-q", device)
        with namespace_process('mount "$1" "$2"', device, str(point)):
            identity = (
                run("dmsetup", "info", "--columns", "--noheadings", "-o", "name", device)
                if device == volume
                else backing_file(whole if device == whole else disk)
            )
            own = f"{identity}-part1" if device == partition_of(disk, 1) else identity
            proof.expect(f"{what} mounted in another namespace", device, "in_use", allow_data_loss=True, identity=own)
            if device == partition_of(disk, 1):
                proof.expect("disk of a partition mounted in another namespace", disk, "in_use", allow_data_loss=True, identity=identity)
            if device == whole:
                proof.expect("file under a loop device mounted in another namespace", identity, "in_use", kind="file", allow_data_loss=True)


def lazily_unmounted(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    run("mkfs.ext4", "-q", device)
    with contextlib.ExitStack() as inner:
        point = mounted_on(proof.folder, inner, device)
        (point / "open").touch()
        inner.enter_context(opened_by_process(str(point / "open")))
        run("umount", "--lazy", str(point))
        proof.expect("lazily unmounted device of which a file is open", device, "in_use", allow_data_loss=True, identity=backing_file(device))


def names_of_a_swap_file(proof: Proof, undo: contextlib.ExitStack) -> None:
    file = proof.folder / "swap"
    file.write_bytes(b"\0" * 8 * 1024**2)
    undo.callback(file.unlink)
    file.chmod(0o600)
    run("mkswap", str(file))
    # The names of a swap file cannot be removed while it is in use.
    names = other_names_of(proof, undo, file)
    run("swapon", str(file))
    undo.callback(run, "swapoff", str(file))
    for how, name in names:
        proof.expect(f"swap file by a {how}", name, "in_use", kind="file", allow_data_loss=True)


def swap_on_a_volume(proof: Proof, undo: contextlib.ExitStack) -> None:
    physical = proof.loop(undo, 128)
    volume_group(undo, "guardswap", physical)
    volume = logical_volume("guardswap", "swap", "32m")
    run("mkswap", volume)
    run("swapon", volume)
    undo.callback(run, "swapoff", volume)
    proof.expect("swap on a logical volume", volume, "in_use", "swap", allow_data_loss=True, identity="guardswap/swap")
    proof.expect("device below that volume", physical, "in_use", allow_data_loss=True, identity=backing_file(physical))


def compressed_swap(proof: Proof, undo: contextlib.ExitStack) -> None:
    run("modprobe", "zram")
    attributes = Path("/sys/block/zram0")
    undo.callback((attributes / "reset").write_text, "1")
    if (attributes / "backing_dev").exists():
        backing = proof.loop(undo, 32)
        undo.callback((attributes / "reset").write_text, "1")
        (attributes / "backing_dev").write_text(backing)
        (attributes / "disksize").write_text("16M")
        proof.expect("device to which zram writes back", backing, "in_use", allow_data_loss=True, identity=backing_file(backing))
    else:
        proof.lacks("this kernel has no zram with a backing device")
        (attributes / "disksize").write_text("16M")
    run("mkswap", "/dev/zram0")
    run("swapon", "/dev/zram0")
    undo.callback(run, "swapoff", "/dev/zram0")
    proof.expect("swap on zram", "/dev/zram0", "in_use", "data", "swap")


def network_block_device(proof: Proof, undo: contextlib.ExitStack) -> None:
    """nbd-server opens what it serves without O_EXCL, one process for each client."""
    file = sparse_file(proof.folder, 32)
    undo.callback(file.unlink)
    device, read_only = proof.loop(undo, 32), proof.loop(undo, 32)
    exports = {"file": (file, "false"), "device": (device, "false"), "readonly": (read_only, "true")}
    lines = ["[generic]", "user = root", "group = root", "listenaddr = 127.0.0.1", "port = 10899"]
    for name, (path, frozen) in exports.items():
        lines += [f"[{name}]", f"exportname = {path}", f"readonly = {frozen}"]
    configuration = proof.folder / "nbd.conf"
    configuration.write_text("\n".join(lines) + "\n")
    undo.callback(configuration.unlink)
    process_id = proof.folder / "nbd.pid"
    run("nbd-server", "-C", str(configuration), "-p", str(process_id))
    undo.callback(_end_process, process_id)
    run("modprobe", "nbd", "nbds_max=3")
    undo.callback(run, "modprobe", "--remove", "nbd", check=False)
    _await_port(10899, process_id)
    for number, name in enumerate(exports):
        run("nbd-client", "127.0.0.1", "10899", f"/dev/nbd{number}", "-N", name)
        undo.callback(run, "nbd-client", "-d", f"/dev/nbd{number}", check=False)
    proof.expect("file served by nbd-server", str(file), "in_use", kind="file", allow_data_loss=True)
    proof.expect("device served by nbd-server", device, "in_use", allow_data_loss=True, identity=backing_file(device))
    proof.expect("device served read-only by nbd-server", read_only, "in_use", allow_data_loss=True, identity=backing_file(read_only))
    run("mkfs.ext4", "-q", "/dev/nbd0")
    mounted_on(proof.folder, undo, "/dev/nbd0")
    proof.expect("network block device that is mounted", "/dev/nbd0", "in_use", "data")


def _await_port(number: int, process_id: Path) -> None:
    for _attempt in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", number), timeout=5):
            if process_id.exists():
                return
        time.sleep(0.2)
    raise RuntimeError(f"nothing listens on port {number}")


def _end_process(process_id: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.kill(int(process_id.read_text()), 15)
    process_id.unlink(missing_ok=True)


def opened_otherwise(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    file = sparse_file(proof.folder, 8)
    undo.callback(file.unlink)
    # Not among the other files: Debian 13 mounts /tmp without devices.
    node = Path("/dev") / f"{proof.folder.name}-second-node"
    os.mknod(node, 0o600 | 0o060000, os.stat(device).st_rdev)
    undo.callback(node.unlink)
    permission = {"allow_data_loss": True, "identity": backing_file(device)}
    with opened_by_process(device, "O_RDONLY"):
        proof.expect("device that a process only reads", device, "in_use", **permission)
    with opened_by_process(str(node)):
        proof.expect("device that a process has open by another node", device, "in_use", **permission)
    with mapped_by_process(device):
        proof.expect("device that is mapped into memory, its descriptor closed", device, "in_use", **permission)
    with mapped_by_process(str(file)):
        proof.expect("file that is mapped into memory, its descriptor closed", str(file), "in_use", kind="file", allow_data_loss=True)
    proof.expect("the same device after all of them have ended", device)


def nvme_exports(proof: Proof, undo: contextlib.ExitStack) -> None:
    run("modprobe", "nvmet")
    file = sparse_file(proof.folder, 32)
    undo.callback(file.unlink)
    first, other = proof.loop(undo), proof.loop(undo)
    run("dmsetup", "create", "guardexport", stdin=f"0 65536 linear {first} 0\n")
    undo.callback(run, "dmsetup", "remove", "--retry", "guardexport")
    settle()
    link, hard = proof.folder / "exported", proof.folder / "exported-file"
    link.symlink_to("/dev/mapper/guardexport")
    os.link(file, hard)
    undo.callback(hard.unlink)
    undo.callback(link.unlink)
    subsystem = config_folder(undo, Path("/sys/kernel/config/nvmet/subsystems/nqn.2026-11.test:names"))
    for number, path in enumerate((hard, link), start=1):
        namespace = config_folder(undo, subsystem / f"namespaces/{number}")
        (namespace / "device_path").write_text(str(path))
        (namespace / "enable").write_text("1")
        undo.callback((namespace / "enable").write_text, "0")
    proof.expect("file exported by NVMe under its other name", str(file), "in_use", kind="file", allow_data_loss=True)
    link.unlink()
    link.symlink_to(other)
    proof.expect("mapping exported through a link that names another device by now", "/dev/mapper/guardexport", "in_use")


def lio_backstores(proof: Proof, undo: contextlib.ExitStack) -> None:
    for module in ("target_core_mod", "target_core_iblock", "target_core_file"):
        run("modprobe", module)
    device = proof.loop(undo)
    file = sparse_file(proof.folder, 32)
    undo.callback(file.unlink)
    link = proof.folder / "lio-file"
    os.link(file, link)
    undo.callback(link.unlink)
    core = Path("/sys/kernel/config/target/core")
    for kind, control in (("iblock_90", f"udev_path={device}"), ("fileio_91", f"fd_dev_name={link},fd_dev_size={32 * 1024**2}")):
        store = config_folder(undo, config_folder(undo, core / kind) / "guard")
        (store / "control").write_text(control)
        if kind == "iblock_90":
            (store / "udev_path").write_text(device)
        (store / "enable").write_text("1")
    proof.expect("device of a LIO backstore", device, "in_use", allow_data_loss=True, identity=backing_file(device))
    proof.expect("file of a LIO backstore under its other name", str(file), "in_use", kind="file", allow_data_loss=True)


def mapping_in_use(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    run("dmsetup", "create", "guardopen", stdin=f"0 65536 linear {device} 0\n")
    undo.callback(run, "dmsetup", "remove", "--retry", "guardopen")
    settle()
    with opened_by_process("/dev/mapper/guardopen", "O_RDONLY"):
        proof.expect("mapping that a process only reads", "/dev/mapper/guardopen", "in_use")
    run("dmsetup", "suspend", "guardopen")
    undo.callback(run, "dmsetup", "resume", "guardopen")
    proof.expect_refusal("suspended mapping", "/dev/mapper/guardopen", limit=30)
    proof.expect_refusal("device below a suspended mapping", device, limit=30)


def encrypted_mapping(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 16)
    key = "00112233445566778899aabbccddeeff" * 2
    run("dmsetup", "create", "guardcrypt", stdin=f"0 32768 crypt aes-xts-plain64 {key} 0 {device} 0\n")
    undo.callback(run, "dmsetup", "remove", "--retry", "guardcrypt")
    settle()
    proof.expect("device below plain dm-crypt", device, "in_use", allow_data_loss=True, identity=backing_file(device))
    proof.expect("plain dm-crypt that was never written", "/dev/mapper/guardcrypt", "data")


def multipath_member(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    for module in ("dm-multipath", "dm-round-robin"):
        run("modprobe", module)
    status = os.stat(device).st_rdev
    path = f"{os.major(status)}:{os.minor(status)}"
    run("dmsetup", "create", "guardpath", "--uuid", "mpath-guard", stdin=f"0 131072 multipath 0 0 1 1 round-robin 0 1 1 {path} 1000\n")
    undo.callback(run, "dmsetup", "remove", "--retry", "guardpath")
    settle()
    proof.expect("path of a multipath device", device, "in_use", allow_data_loss=True, identity=backing_file(device))
    proof.expect("multipath device", "/dev/mapper/guardpath")


def two_devices_of_btrfs(proof: Proof, undo: contextlib.ExitStack) -> None:
    first, second = proof.loop(undo, 128), proof.loop(undo, 128)
    run("mkfs.btrfs", "--quiet", "--data", "raid1", "--metadata", "raid1", first, second)
    run("btrfs", "device", "scan", first, second)
    with contextlib.ExitStack() as inner:
        mounted_on(proof.folder, inner, first)
        for what, device in (("first", first), ("second", second)):
            proof.expect(f"{what} device of a mounted btrfs", device, "in_use", allow_data_loss=True, identity=backing_file(device))
    proof.expect("second device of btrfs that is not mounted", second, "data", "btrfs")


def replicated_device(proof: Proof, undo: contextlib.ExitStack) -> None:
    run("modprobe", "drbd")
    device = proof.loop(undo)
    run("drbdmeta", "--force", "0", "v08", device, "internal", "create-md")
    proof.expect("device with the metadata of DRBD", device, "data")
    run("drbdsetup", "new-resource", "guard")
    undo.callback(run, "drbdsetup", "down", "guard")
    run("drbdsetup", "new-minor", "guard", "0", "0")
    run("drbdsetup", "attach", "0", device, device, "internal")
    proof.expect("device attached to DRBD", device, "in_use", allow_data_loss=True, identity=backing_file(device))


CASES = (
    names_of_a_backing_file,
    parts_of_a_backing_file,
    moved_backing_file,
    backing_file_of_another_namespace,
    mounted_in_another_namespace,
    lazily_unmounted,
    names_of_a_swap_file,
    swap_on_a_volume,
    compressed_swap,
    network_block_device,
    opened_otherwise,
    nvme_exports,
    lio_backstores,
    mapping_in_use,
    encrypted_mapping,
    multipath_member,
    two_devices_of_btrfs,
    replicated_device,
)
