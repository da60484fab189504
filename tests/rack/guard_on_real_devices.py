#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guard of the fio module on real devices: loop, partition, swap, symlink, LVM, cached LV, md, dm, bcache, processes, exports.

``guard_on_real_devices.py --pack FILE`` writes one self-contained file (this script, the collection's module_utils and
ansible's, as a zip application) on a controller; ``python3 FILE --scratch DISK`` runs it as root on a machine whose DISK may be
overwritten. Without ``--scratch`` it works on loop devices only. Every line it prints is one proven case; the exit status is
the number of failures.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent))

from proofs import contents, exchanged, in_use, room
from proofs.building import loop_over, mounted_on, run, settle, write_partition_table
from proofs.packing import pack
from proofs.proof import Proof


def empty_and_used(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    image = run("losetup", "--noheadings", "--output", "BACK-FILE", device)
    proof.expect("empty loop device", device)
    proof.expect("wrong identity, reading", device, "identity", writing=False, identity="WD-0000")
    link = proof.folder / "link"
    link.symlink_to(device)
    undo.callback(link.unlink)
    run("mkfs.ext4", "-q", device)
    proof.expect("file system", device, "data", "ext4")
    proof.expect("file system through a link", str(link), "data", "ext4")
    proof.expect("file system, reading", device, writing=False)
    proof.expect("file system, permitted without identity", device, "data", allow_data_loss=True)
    proof.expect("file system, permitted with identity", device, allow_data_loss=True, identity=image)
    point = proof.folder / "mnt"
    point.mkdir()
    undo.callback(point.rmdir)
    run("mount", device, str(point))
    undo.callback(run, "umount", str(point))
    proof.expect("mounted, permitted", device, "in_use", f"mounted on {point}", allow_data_loss=True, identity=image)
    proof.expect("mounted, through a link", str(link), "in_use", "data", f"mounted on {point}")
    proof.expect("file under a mounted loop device", image, "in_use", "data", f"part of {device}", kind="file")
    twin = run("losetup", "--find", "--show", image)
    undo.callback(run, "losetup", "--detach", twin)
    proof.expect("second loop device on the mounted file", twin, "in_use", "data", "the same storage")
    above = run("losetup", "--find", "--show", device)
    undo.callback(run, "losetup", "--detach", above)
    proof.expect("loop device over a mounted device", above, "in_use", "data", f"{device} (below it) is mounted")
    proof.expect("file in the mounted file system", str(point / "new"), kind="file", size=1024**2)
    proof.expect("file larger than its file system", str(point / "new"), "unfit", "free", kind="file", size=1024**4)


def missing(proof: Proof, undo: contextlib.ExitStack) -> None:
    proof.expect("missing device", "/dev/nvme9n9", "device_missing", "does not exist")
    proof.expect("typo as a file in /dev", "/dev/nvme9n9", "refused", kind="file", size=4096)
    proof.expect("character device", "/dev/null", "device_missing", "not a block device")
    device = proof.loop(undo, 16)
    proof.expect("smaller than asked", device, "unfit", "less than", size=1024**3)


def read_only(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 16, "--read-only")
    proof.expect("read-only device", device, "unfit", "read-only")
    proof.expect("read-only device, reading", device, writing=False)


def partitions(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 128, "--partscan")
    write_partition_table(device, (2048, 98304), (100352, 161792))
    settle()
    first, second = f"{device}p1", f"{device}p2"
    proof.expect("disk with partitions", device, "data", "dos")
    proof.expect("empty partition", first)
    run("mkfs.ext4", "-q", first)
    proof.expect("partition with a file system", first, "data", "ext4")
    proof.expect("its disk", device, "data", "dos", f"{first} (partition of it) contains ext4")
    point = proof.folder / "part"
    point.mkdir()
    undo.callback(point.rmdir)
    run("mount", first, str(point))
    undo.callback(run, "umount", str(point))
    proof.expect("disk of a mounted partition", device, "in_use", "data", f"{first} (partition of it) is mounted")
    proof.expect("sister of a mounted partition", second)


def swap(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    run("mkswap", device)
    proof.expect("swap signature", device, "data", "swap")
    run("swapon", device)
    undo.callback(run, "swapoff", device)
    proof.expect("swap in use", device, "in_use", "data", "swap space in use")


def swap_file(proof: Proof, undo: contextlib.ExitStack) -> None:
    file = proof.folder / "swapfile"
    file.write_bytes(b"\0" * 8 * 1024**2)
    undo.callback(file.unlink)
    file.chmod(0o600)
    run("mkswap", str(file))
    run("swapon", str(file))
    undo.callback(run, "swapoff", str(file))
    proof.expect("swap file", str(file), "in_use", "swap space in use", kind="file", allow_data_loss=True)


def process_holding_it(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    with open(device, "r+b"), subprocess.Popen(
        [sys.executable, "-c", f"f = open({device!r}, 'r+b'); print(1, flush=True); input()"], stdin=-1, stdout=-1
    ) as process:
        process.stdout.readline()
        proof.expect("open for writing in a process", device, "in_use", f"({process.pid})")
        process.communicate(b"\n")
    proof.expect("after that process has ended", device)


def loops_over_it(proof: Proof, undo: contextlib.ExitStack) -> None:
    """A loop device leaves no holder on what it lies on, and does not keep anybody from opening it exclusively."""
    device = proof.loop(undo, 128)
    first = loop_over(undo, device, "--offset", "1M")
    proof.expect("device under an unused loop device", device, "in_use", f"is part of {first}", allow_data_loss=True)
    proof.expect("that loop device", first)
    second = loop_over(undo, first)
    third = loop_over(undo, device, "--offset", "96M")
    proof.expect("device under two loop devices, of which one is under a third", device, "in_use", first, third)
    proof.expect("beside another loop device on the same device", third, "in_use", f"{device} (below it) is part of {first}")
    run("mkfs.ext4", "-q", second)
    mounted_on(proof.folder, undo, second)
    # Its own contents may or may not be found in a sample: with the permission they do not count.
    permission = {"allow_data_loss": True, "identity": run("losetup", "--noheadings", "--output", "BACK-FILE", device)}
    proof.expect("device far under a mounted file system", device, "in_use", f"{second} (built on it) is mounted", **permission)
    proof.expect("loop device under a mounted one", first, "in_use", "data", f"is part of {second}")


def loop_over_a_partition(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 128, "--partscan")
    write_partition_table(device, (2048, 98304), (100352, 161792))
    settle()
    parts = [f"{device}p1", f"{device}p2"]
    with contextlib.ExitStack() as inner:
        over = loop_over(inner, parts[0])
        proof.expect("partition under a loop device", parts[0], "in_use", f"is part of {over}")
        proof.expect("its disk", device, "in_use", "data", f"{parts[0]} (partition of it) is part of {over}")
        proof.expect("its sister", parts[1])
    over = loop_over(undo, device, "--offset", "1M")
    proof.expect("partition of a disk under a loop device", parts[1], "in_use", f"{device} (below it) is part of {over}")


def exported(proof: Proof, undo: contextlib.ExitStack) -> None:
    """The kernel's NVMe target opens its device without O_EXCL, and no process has it open."""
    device = proof.loop(undo)
    run("modprobe", "nvmet")
    if not Path("/sys/kernel/config/nvmet").is_dir():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config")
    subsystem = Path("/sys/kernel/config/nvmet/subsystems/nqn.2026-11.test:guard")
    namespace = subsystem / "namespaces/1"
    for folder in (subsystem, namespace):
        folder.mkdir()
        undo.callback(folder.rmdir)
    (namespace / "device_path").write_text(device)
    proof.expect("device of an NVMe namespace that is not enabled", device)
    (namespace / "enable").write_text("1")
    undo.callback((namespace / "enable").write_text, "0")
    proof.expect("exported device", device, "in_use", f"exported by nvmet subsystem {subsystem.name}", allow_data_loss=True)


def held_loop(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    hold(proof, device)


def held_partition(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 128, "--partscan")
    write_partition_table(device, (2048, 98304), (100352, 161792))
    settle()
    hold(proof, f"{device}p1")


def held_mapping(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    run("dmsetup", "create", "guardheld", stdin=f"0 65536 linear {device} 65536\n")
    undo.callback(run, "dmsetup", "remove", "--retry", "guardheld")
    settle()
    hold(proof, "/dev/mapper/guardheld")


def hold(proof: Proof, device: str) -> None:
    """While the guard holds a device, fio writes, reads back and trims it, and it cannot be mounted or built on."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import claimed

    run("mkfs.ext4", "-q", device)
    runner = Runner()
    facts = examine(read_devices(runner), GuardTarget(device), runner)
    point = proof.folder / "held"
    point.mkdir(exist_ok=True)
    with claimed(facts, runner):
        proof.expect_true(f"{device}, held, is not opened exclusively by another", not exclusively(facts.path))
        refusal = subprocess.run(["mount", device, str(point)], capture_output=True, text=True, check=False)
        proof.expect_true(f"{device}, held, is not mounted", refusal.returncode != 0 and not os.path.ismount(point), " ".join(refusal.stderr.split()))
        common = ("fio", "--name=held", f"--filename={facts.path}", "--bs=4k", "--size=8M", "--ioengine=psync")
        for words in (("--rw=randwrite", "--verify=crc32c", "--verify_state_save=0", "--direct=1"), ("--rw=randwrite",), ("--rw=randtrim",)):
            run(*common, *words)
            proof.expect_true(f"{device}, held, is used by fio {words[0]}", True)
        try:
            with claimed(facts, runner, pause=lambda seconds: None):
                proof.expect_true(f"{device} is not held twice", False)
        except Refused as error:
            proof.expect_true(f"{device} is not held twice", "cannot be opened exclusively now" in error.message, error.message)
    proof.expect_true(f"{device}, given back, is free", exclusively(facts.path))
    point.rmdir()


def exclusively(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return False
    return True


def lvm(proof: Proof, undo: contextlib.ExitStack) -> None:
    slow, fast = proof.loop(undo, 256), proof.loop(undo, 128)
    for device in (slow, fast):
        run("pvcreate", "--quiet", device)
        undo.callback(run, "pvremove", "--force", "--force", "--yes", device, check=False)
    proof.expect("physical volume", slow, "data", "LVM2_member")
    run("vgcreate", "--quiet", "guardvg", slow, fast)
    undo.callback(run, "vgremove", "--force", "--yes", "guardvg")
    for name, size, device in (("scratch", "64m", slow), ("data", "64m", slow), ("fast", "32m", fast)):
        run("lvcreate", "--yes", "--quiet", "--wipesignatures", "y", "--name", name, "--size", size, "guardvg", device)
    proof.expect("logical volume", "/dev/guardvg/scratch")
    proof.expect("logical volume with its identity", "/dev/mapper/guardvg-scratch", identity="guardvg/scratch")
    proof.expect("logical volume with another identity", "/dev/guardvg/scratch", "identity", identity="guardvg/data")
    proof.expect("physical volume of active volumes", slow, "in_use", "data", "is part of /dev/dm-")
    run("mkfs.ext4", "-q", "/dev/guardvg/data")
    point = proof.folder / "lv"
    point.mkdir()
    undo.callback(point.rmdir)
    run("mount", "/dev/guardvg/data", str(point))
    undo.callback(run, "umount", str(point))
    proof.expect("mounted logical volume", "/dev/guardvg/data", "in_use", "data", "mounted on", allow_data_loss=True)
    proof.expect("free volume beside a mounted one", "/dev/guardvg/scratch")
    run("lvconvert", "--yes", "--quiet", "--type", "cache", "--cachevol", "fast", "guardvg/scratch")
    proof.expect("cached logical volume", "/dev/guardvg/scratch")
    parts = sorted(name for name in os.listdir("/dev/mapper") if name.startswith("guardvg-") and ("corig" in name or "cvol" in name))
    if not parts:
        raise RuntimeError("the cached volume shows no parts in /dev/mapper")
    for part in parts:
        metadata = ("data", "dm-cache metadata") if part.endswith(("cvol", "cmeta")) else ()
        proof.expect(f"part {part} of a cached volume", f"/dev/mapper/{part}", "in_use", *metadata)


def raid(proof: Proof, undo: contextlib.ExitStack) -> None:
    first, second = proof.loop(undo), proof.loop(undo)
    run("mdadm", "--create", "/dev/md/guard", "--run", "--metadata=1.2", "--level=1", "--raid-devices=2", "--assume-clean", first, second)
    undo.callback(run, "mdadm", "--stop", "/dev/md/guard")
    proof.expect("md array", "/dev/md/guard")
    proof.expect("member of an md array", first, "in_use", "data", "is part of /dev/md", allow_data_loss=True)
    run("mdadm", "--stop", "/dev/md/guard")
    proof.expect("member of a stopped array", second, "data", "linux_raid_member")
    run("mdadm", "--assemble", "/dev/md/guard", first, second)


def mapping(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo)
    run("mkfs.ext4", "-q", device)
    run("dmsetup", "create", "guardslice", stdin=f"0 65536 linear {device} 65536\n")
    undo.callback(run, "dmsetup", "remove", "--retry", "guardslice")
    proof.expect("device under a mapping", device, "in_use", "data", "is part of /dev/dm-")
    proof.expect("mapping over a file system", "/dev/mapper/guardslice", "data", f"{device} (below it) contains ext4")
    run("blkdiscard", "--force", device)
    proof.expect("mapping over an empty device", "/dev/mapper/guardslice")


def bcache(proof: Proof, undo: contextlib.ExitStack) -> None:
    slow, fast = proof.loop(undo), proof.loop(undo, 128)
    undo.callback(stop_bcache, slow, fast)
    run("modprobe", "bcache")
    # The kernel does not register a cache of less than 1024 buckets.
    for option, device in (("-B", slow), ("-C", fast)):
        run("make-bcache", "--bucket", "64k", option, device)
        settle()
        # udev's rule registers it; where there is none the kernel must be told.
        with contextlib.suppress(OSError):
            Path("/sys/fs/bcache/register").write_text(device)
    settle()
    proof.expect("bcache backing device", slow, "in_use", "data", "bcache", "is part of /dev/bcache", allow_data_loss=True)
    proof.expect("bcache cache device", fast, "in_use", "data", "bcache", allow_data_loss=True)
    for top in holders(slow):
        proof.expect("bcache device", f"/dev/{top}")


def holders(device: str) -> list[str]:
    return os.listdir(f"/sys/class/block/{Path(device).name}/holders")


def stop_bcache(slow: str, fast: str) -> None:
    for top in holders(slow):
        Path(f"/sys/class/block/{top}/bcache/stop").write_text("1")
    with contextlib.suppress(OSError):
        Path(f"/sys/class/block/{Path(fast).name}/bcache/set/stop").write_text("1")
    for _attempt in range(50):
        if not holders(slow) and not Path(f"/sys/class/block/{Path(fast).name}/bcache").exists():
            return
        time.sleep(0.2)


def scratch_disk(disk: str):
    def whole_disk(proof: Proof, undo: contextlib.ExitStack) -> None:
        from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices

        device = read_devices(Runner()).resolve(disk)
        run("blkdiscard", "--zeroout", disk)
        proof.expect("empty disk", disk)
        proof.expect("empty disk with its identity", disk, identity=device.identity)
        run("mkfs.ext4", "-q", "-F", disk)
        undo.callback(run, "blkdiscard", "--zeroout", disk)
        proof.expect("disk with a file system", disk, "data", "ext4")
        proof.expect("disk with a file system, permitted", disk, allow_data_loss=True, identity=device.identity)
        proof.expect("disk with a file system, wrong drive", disk, "identity", "data", allow_data_loss=True, identity="WD-0000")

    return whole_disk


#: What --short leaves of the later cases: each takes an emulated machine half a minute.
SHORT = (
    in_use.names_of_a_backing_file,
    in_use.mounted_in_another_namespace,
    in_use.opened_otherwise,
    contents.without_signature,
    contents.left_by_fio,
    room.thin_volumes,
    room.classic_snapshots,
    exchanged.loop_attached_again,
    exchanged.mapping_exchanged,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", metavar="FILE")
    parser.add_argument("--scratch", metavar="DISK", help="a disk that may be overwritten")
    parser.add_argument("--only", action="append", default=[], metavar="CASE")
    parser.add_argument("--short", action="store_true", help="only one case of each kind")
    parser.add_argument("--no-skips", action="store_true", help="count a case that cannot be built as a failure")
    arguments = parser.parse_args()
    if arguments.pack:
        pack(arguments.pack, HERE)
        return 0
    cases = [missing, empty_and_used, read_only, partitions, swap, swap_file, process_holding_it, loops_over_it, loop_over_a_partition, exported]
    cases += [held_loop, held_partition, held_mapping, lvm, raid, mapping, bcache]
    if arguments.short:
        cases = [empty_and_used, partitions, process_holding_it, loops_over_it, held_mapping, lvm, raid, bcache]
    cases += [case for case in (*in_use.CASES, *contents.CASES, *room.CASES, *exchanged.CASES) if not arguments.short or case in SHORT]
    cases += [scratch_disk(arguments.scratch), exchanged.drive_pulled(arguments.scratch)] if arguments.scratch else []
    # Debian 13 mounts /tmp in memory, where no file can be swap space.
    with tempfile.TemporaryDirectory(prefix="guard", dir="/var/tmp") as folder:
        proof = Proof(Path(folder))
        for case in cases:
            if not arguments.only or case.__name__ in arguments.only:
                proof.case(case)
    print(f"{proof.proven} proven, {proof.failures} failed, {len(proof.skipped)} cases could not be built here")
    return proof.failures + (len(proof.skipped) if arguments.no_skips else 0)


if __name__ == "__main__":
    sys.exit(main())
