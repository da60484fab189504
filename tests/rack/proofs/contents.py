# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a device contains: data with and without a signature, what fio has left, what cannot be read, and whose device it is."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import struct
import typing as t

from proofs.building import backing_file, logical_volume, loop_over, opened_by_process, run, sparse_file, volume_group
from proofs.orders import carry_out
from proofs.proof import Proof

_MIB = 1024**2


def filled(device: str, offset: int, content: bytes) -> None:
    """Write to a device so that every later reader finds it."""
    with open(device, "r+b") as stream:
        stream.seek(offset)
        stream.write(content)
        os.fsync(stream.fileno())


def text(length: int) -> bytes:
    return (b"Minutes of the meeting, with everything that was decided.\n" * (length // 58 + 1))[:length]


def without_signature(proof: Proof, undo: contextlib.ExitStack) -> None:
    size = 64 * _MIB
    device = proof.loop(undo, size // _MIB)
    permission = {"allow_data_loss": True, "identity": backing_file(device)}
    proof.expect("device of zeros", device)
    contents: tuple[tuple[str, int, t.Callable[[], bytes]], ...] = (
        ("text from the first to the last byte", 0, lambda: text(size)),
        ("random data at the beginning only", 0, lambda: os.urandom(4096)),
        ("random data at the very end only", size - 4096, lambda: os.urandom(4096)),
        # 1 % of the device, between all places at which file systems keep their superblocks.
        ("random data in the middle only", size // 2 + 3 * _MIB, lambda: os.urandom(size // 100)),
        ("random data in the third quarter only", size * 5 // 8, lambda: os.urandom(size // 100)),
        *((f"4 KiB of data at {part} % only", size * part // 100, lambda: text(4096)) for part in (3, 31, 59, 97)),
    )
    for what, offset, content in contents:
        run("blkdiscard", device)
        filled(device, offset, content())
        proof.expect(what, device, "data")
    large = proof.loop(undo, 256)
    proof.expect("device of 256 MiB of zeros", large)
    filled(large, 123_456_789, b"\x01")
    proof.expect("one byte in a device of 256 MiB", large, "data", "the first that was found at byte 123456789")
    proof.expect("data without a signature, reading", device, writing=False)
    proof.expect("data without a signature, permitted without identity", device, "data", allow_data_loss=True)
    proof.expect("data without a signature, permitted with identity", device, **permission)


def volume_and_loop_with_data(proof: Proof, undo: contextlib.ExitStack) -> None:
    physical = proof.loop(undo, 128)
    volume_group(undo, "guardraw", physical)
    volume = logical_volume("guardraw", "raw", "32m")
    filled(volume, 0, text(32 * _MIB))
    proof.expect("logical volume with text", volume, "data")
    proof.expect("identity in upper case", volume, "identity", "data", allow_data_loss=True, identity="GUARDRAW/RAW")
    proof.expect("identity as it is written", volume, allow_data_loss=True, identity="guardraw/raw")
    file = sparse_file(proof.folder, 16)
    undo.callback(file.unlink)
    file.write_bytes(os.urandom(16 * _MIB))
    proof.expect("loop device over random data", loop_over(undo, str(file)), "data")


def left_by_fio(proof: Proof, undo: contextlib.ExitStack) -> None:
    """A device that the collection has measured is free for the next campaign, until another program writes to it."""
    device = proof.loop(undo, 64)
    spool = proof.folder / "spool"
    cell = {"target": {"device": device}, "job": {"rw": "write", "bs": "256k", "ioengine": "psync"}}
    for attempt in ("empty device", "device that fio of another campaign has written"):
        outcome = carry_out(spool, cell)
        proof.expect_true(f"{attempt} is written by an order", outcome.states == ("ok",), outcome.text)
    filled(device, 24 * _MIB, text(_MIB))
    outcome = carry_out(spool, cell)
    proof.expect_true("device that was changed since is refused", outcome.refused, outcome.text)


def _name_and_value(name: str, value: int | str) -> bytes:
    """One element of a list of ZFS in XDR (RFC 4506): the lengths of the element as it is and in memory, the name, the type, one value."""
    content = struct.pack(">III", 9, 1, len(value)) + _padded(value) if isinstance(value, str) else struct.pack(">IIQ", 8, 1, value)
    body = struct.pack(">I", len(name)) + _padded(name) + content
    return struct.pack(">II", len(body) + 8, len(body) + 4) + body


def _padded(text: str) -> bytes:
    return text.encode() + bytes(-len(text) % 4)


_ZFS_VALUES = {"version": 5000, "name": "guard", "state": 0, "txg": 42, "pool_guid": 4711, "top_guid": 4712, "guid": 4712}
_ZFS_LABEL = bytes((1, 1, 0, 0)) + struct.pack(">II", 0, 1) + b"".join(_name_and_value(*one) for one in _ZFS_VALUES.items()) + bytes(8)


def foreign_signatures(proof: Proof, undo: contextlib.ExitStack) -> None:
    ceph = proof.loop(undo)
    # src/os/bluestore/bluestore_types.h of Ceph: a text of 23 bytes and the UUID in words.
    filled(ceph, 0, b"bluestore block device\n01234567-89ab-cdef-0123-456789abcdef\n")
    proof.expect("label of Ceph BlueStore", ceph, "data")
    # The least that a device of a pool has, which libblkid knows.
    pool = proof.loop(undo, 64)
    # On-disk format of ZFS: labels of 256 KiB, with a list of names and values from 16 KiB on, and in their second half uberblocks of 1 KiB each.
    # libblkid before 2.41 wants four uberblocks, and since then the list.
    for label in range(2):
        filled(pool, label * 262144 + 16384, _ZFS_LABEL)
        for number in range(8):
            filled(pool, label * 262144 + 131072 + number * 1024, struct.pack("<QQQ", 0x00BAB10C, 5000, 42 + number))
    proof.expect("label of ZFS", pool, "data", "zfs_member")


def unreadable(proof: Proof, undo: contextlib.ExitStack) -> None:
    """A user of the group disk reads the device, and not who has it open."""
    device = proof.loop(undo)
    user = (pwd.getpwnam("nobody").pw_uid, grp.getgrnam("disk").gr_gid)
    with opened_by_process(device):
        proof.expect_refusal("device that root has open, as a user of the group disk", device, limit=60, user=user)
    group = (user[0], user[0])
    proof.expect_refusal("device that the user cannot read", device, limit=60, user=group)


CASES = (without_signature, volume_and_loop_with_data, left_by_fio, foreign_signatures, unreadable)
