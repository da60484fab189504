# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that become other ones between their examination and their claim, or while they are held: the permission for the first is of no use."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import typing as t
from pathlib import Path

from proofs.building import backing_file, loop_over, partition_of, run, settle, sparse_file, volume_group, write_partition_table
from proofs.contents import filled, text
from proofs.proof import Proof

_MIB = 1024**2
_KEPT = b"must be kept"


class Examined:
    """A target with the permission to overwrite it, as it was when it was examined.

    :param identity: that the user wrote; without it the one that was found.
    """

    def __init__(self, path: str, identity: str | None = None) -> None:
        from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
        from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
        from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget

        settle()
        self.runner = Runner()
        identity = identity or examine(read_devices(self.runner), GuardTarget(path), self.runner, writing=False).identity
        self.facts = examine(read_devices(self.runner), GuardTarget(path, allow_data_loss=True, identity=identity), self.runner)

    @property
    def permitted(self) -> bool:
        from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import judge

        return judge(self.facts, writing=True) == []

    def claim(self) -> t.ContextManager[None]:
        from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import claimed

        return claimed(self.facts, self.runner)

    def refusal_of_claim(self) -> str:
        """Why it is not written; empty if it would be."""
        from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused

        try:
            with self.claim():
                return ""
        except Refused as error:
            return error.message

    def refusal_of_cell(self) -> str:
        from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
        from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import require_unchanged

        try:
            require_unchanged(self.facts, self.runner)
        except Refused as error:
            return error.message
        return ""


def before_its_claim(proof: Proof, what: str, path: str, exchange: t.Callable[[], None]) -> None:
    """A device is examined and permitted, exchanged, and then claimed."""
    examined = Examined(path)
    proof.expect_true(f"{what}: permitted and claimed as it is", examined.permitted and not examined.refusal_of_claim(), examined.refusal_of_claim())
    exchange()
    settle()
    refusal = examined.refusal_of_claim()
    good = any(words in refusal for words in ("is not the device any more that was examined", "cannot be opened exclusively now: No such"))
    proof.expect_true(f"{what}: not claimed after it was exchanged", good, refusal or "would be written")


def while_held(proof: Proof, what: str, path: str, exchange: t.Callable[[], None]) -> None:
    """A device is held, and exchanged between two cells."""
    examined = Examined(path)
    with examined.claim():
        proof.expect_true(f"{what}: the first cell runs", not examined.refusal_of_cell(), examined.refusal_of_cell())
        exchange()
        refusal = examined.refusal_of_cell()
    proof.expect_true(f"{what}: the next cell is refused", "is not the device any more that was examined" in refusal, refusal or "would be written")


def loop_attached_again(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 16)
    filled(device, 0, text(4096))
    kept = sparse_file(proof.folder, 16)
    undo.callback(kept.unlink)
    kept.write_bytes(_KEPT.ljust(16 * _MIB, b"\0"))

    def exchange() -> None:
        run("losetup", "--detach", device)
        run("losetup", device, str(kept))

    before_its_claim(proof, "loop device with another file of the same size under its number", device, exchange)
    own = backing_file(device)

    def again() -> None:
        run("losetup", "--detach", device)
        run("losetup", device, own)

    before_its_claim(proof, "loop device that was detached and attached again", device, again)
    proof.expect_true("the other file was not written", kept.read_bytes().startswith(_KEPT))


def loop_below_attached_again(proof: Proof, undo: contextlib.ExitStack) -> None:
    below = proof.loop(undo, 16)
    top = loop_over(undo, below)
    filled(top, 0, text(4096))
    other = sparse_file(proof.folder, 16)
    undo.callback(other.unlink)

    def exchange() -> None:
        run("losetup", "--detach", top)
        run("losetup", "--detach", below)
        run("losetup", below, str(other))
        run("losetup", top, below)

    before_its_claim(proof, "loop device over another one that got another file", top, exchange)


def partition_moved(proof: Proof, undo: contextlib.ExitStack) -> None:
    device = proof.loop(undo, 64, "--partscan")
    write_partition_table(device, (2048, 32768))
    first = partition_of(device, 1)
    filled(first, 0, text(4096))
    before_its_claim(proof, "partition that begins elsewhere", first, lambda: write_partition_table(device, (65536, 32768)))
    filled(first, 0, text(4096))
    facts = Examined(first).facts
    proof.expect(
        "partition by the identity of its disk", first, "identity", "data", f"it is {facts.identity}", allow_data_loss=True, identity=backing_file(device)
    )
    proof.expect("partition by its own identity", first, allow_data_loss=True, identity=facts.identity)


def mapping_exchanged(proof: Proof, undo: contextlib.ExitStack) -> None:
    first, second = proof.loop(undo, 64), proof.loop(undo, 64)
    filled(first, 0, text(4096))
    filled(second, 0, _KEPT)
    name = "guardexchanged"
    run("dmsetup", "create", name, stdin=f"0 65536 linear {first} 0\n")
    undo.callback(run, "dmsetup", "remove", "--retry", name)
    path = f"/dev/mapper/{name}"

    def load(table: str) -> t.Callable[[], None]:
        def exchange() -> None:
            run("dmsetup", "load", name, stdin=table)
            run("dmsetup", "resume", name)

        return exchange

    before_its_claim(proof, "mapping with a table to another device", path, load(f"0 65536 linear {second} 0\n"))
    load(f"0 65536 linear {first} 0\n")()
    before_its_claim(proof, "mapping with another place on the same device", path, load(f"0 65536 linear {first} 65536\n"))
    load(f"0 65536 linear {first} 0\n")()
    while_held(proof, "mapping with a table to another device while it is held", path, load(f"0 65536 linear {second} 0\n"))
    load(f"0 65536 linear {first} 0\n")()

    def again() -> None:
        run("dmsetup", "remove", "--retry", name)
        run("dmsetup", "create", name, stdin=f"0 65536 linear {first} 0\n")

    before_its_claim(proof, "mapping that was removed and made again under its name", path, again)
    with open(second, "rb") as stream:
        proof.expect_true("the other device was not written", stream.read(len(_KEPT)) == _KEPT)


def volume_made_again(proof: Proof, undo: contextlib.ExitStack) -> None:
    volume_group(undo, "guardagain", proof.loop(undo, 128))
    create = ("lvcreate", "--yes", "--quiet", "--wipesignatures", "y", "--name", "scratch", "--size", "32m", "guardagain")
    run(*create)
    filled("/dev/guardagain/scratch", 0, text(4096))

    def again() -> None:
        run("lvremove", "--yes", "--quiet", "guardagain/scratch")
        run(*create)

    before_its_claim(proof, "logical volume that was removed and made again under its name", "/dev/guardagain/scratch", again)


def array_made_again(proof: Proof, undo: contextlib.ExitStack) -> None:
    members = (proof.loop(undo, 64), proof.loop(undo, 64))
    create = ("mdadm", "--create", "/dev/md/guardagain", "--run", "--metadata=1.2", "--level=1", "--raid-devices=2", "--assume-clean", *members)
    run(*create)
    undo.callback(run, "mdadm", "--stop", "/dev/md/guardagain", check=False)

    def again() -> None:
        run("mdadm", "--stop", "/dev/md/guardagain")
        run("mdadm", "--zero-superblock", *members)
        run(*create)

    before_its_claim(proof, "array that was made again under its name", "/dev/md/guardagain", again)
    while_same = Examined("/dev/md/guardagain")
    run("mdadm", "/dev/md/guardagain", "--fail", members[1])
    settle()
    proof.expect_true("array that lost a member is the same", not while_same.refusal_of_claim(), while_same.refusal_of_claim())


def runner_killed(proof: Proof, undo: contextlib.ExitStack) -> None:
    """A claim ends with its process, however it ends; what has the number afterwards is examined anew."""
    device = proof.loop(undo, 16)
    filled(device, 0, text(4096))
    identity = backing_file(device)
    kept = sparse_file(proof.folder, 16)
    undo.callback(kept.unlink)
    kept.write_bytes(_KEPT.ljust(16 * _MIB, b"\0"))
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with Examined(device, identity).claim():
            os.write(writer, b"held")
            time.sleep(600)
        os._exit(0)
    os.read(reader, 4)
    os.kill(child, 9)
    os.waitpid(child, 0)
    run("losetup", "--detach", device)
    run("losetup", device, str(kept))
    proof.expect("device that got the number after a kill, by the identity of the first", device, "identity", "data", allow_data_loss=True, identity=identity)


def drive_pulled(disk: str) -> t.Callable[[Proof, contextlib.ExitStack], None]:
    """A SCSI disk is removed from the kernel and found again, as a drive that is pulled and put in."""

    def drive_pulled(proof: Proof, undo: contextlib.ExitStack) -> None:
        # Its new name may be another one.
        name = os.path.basename(os.path.realpath(disk))
        place = Path("/sys/block") / name / "device"
        if not (place / "delete").exists():
            raise RuntimeError(f"{disk} is no SCSI disk, which the kernel could remove")
        host = next(part for part in os.path.realpath(place).split("/") if part.startswith("host"))
        run("blkdiscard", "--zeroout", disk)
        filled(disk, 0, text(4096))
        undo.callback(run, "blkdiscard", "--zeroout", disk)

        def exchange() -> None:
            (place / "delete").write_text("1")
            (Path("/sys/class/scsi_host") / host / "scan").write_text("- - -")
            for _attempt in range(60):
                time.sleep(0.5)
                if not subprocess.run(["blockdev", "--getsize64", disk], capture_output=True, check=False).returncode:
                    return
            raise RuntimeError(f"{disk} did not come back")

        before_its_claim(proof, "drive that was pulled and put in again", disk, exchange)

    return drive_pulled


CASES = (
    *(loop_attached_again, loop_below_attached_again, partition_moved, mapping_exchanged, volume_made_again, array_made_again),
    runner_killed,
)
