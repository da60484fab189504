# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divides empty disks into equal partitions, or makes them empty again; the machines of the rack have no tool for it.

usage: partition.py COUNT DISK...        COUNT 0 takes the partitions away

GPT as in UEFI 2.10, section 5: a protective MBR, a header in sector 1 and in the last, 128 entries of 128 bytes.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
import typing as t
import uuid
import zlib

SECTOR = 512
LINUX = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4").bytes_le
#: Sectors of 2 MiB, to which partitions are aligned.
ALIGNMENT = 4096


def partition(disks: t.Sequence[str], count: int) -> None:
    """Give each disk so many partitions, or none; what was there is lost."""
    for disk in disks:
        divide(disk, count) if count else make_empty(disk)
        subprocess.run(["blockdev", "--rereadpt", disk], check=True)
    subprocess.run(["udevadm", "settle"], check=False)
    for disk in disks:
        expect(disk, count)


def divide(disk: str, count: int) -> None:
    with open(disk, "r+b") as device:
        sectors = device.seek(0, os.SEEK_END) // SECTOR
        share = (sectors // count - ALIGNMENT) // ALIGNMENT * ALIGNMENT
        entries = b"".join(entry(ALIGNMENT + number * share, share) for number in range(count)).ljust(128 * 128, b"\0")
        device.seek(0)
        device.write(b"\0" * 446 + struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, sectors - 1).ljust(64, b"\0") + b"\x55\xaa")
        guid = uuid.uuid4().bytes_le
        device.write(header(guid, entries, 1, sectors - 1, 2, sectors) + entries)
        device.seek((sectors - 33) * SECTOR)
        device.write(entries + header(guid, entries, sectors - 1, 1, sectors - 33, sectors))


def entry(first: int, size: int) -> bytes:
    return struct.pack("<16s16sQQQ72s", LINUX, uuid.uuid4().bytes_le, first, first + size - 1, 0, b"")


def header(guid: bytes, entries: bytes, own: int, other: int, table: int, sectors: int) -> bytes:
    def packed(checksum: int) -> bytes:
        places = struct.pack("<QQQQ16sQ", own, other, 34, sectors - 34, guid, table)
        return struct.pack("<8sIIII", b"EFI PART", 0x10000, 92, checksum, 0) + places + struct.pack("<III", 128, 128, zlib.crc32(entries))

    return packed(zlib.crc32(packed(0))).ljust(SECTOR, b"\0")


def make_empty(disk: str) -> None:
    with open(disk, "r+b") as device:
        sectors = device.seek(0, os.SEEK_END) // SECTOR
        for first, size in ((0, ALIGNMENT), (sectors - 34, 34)):
            device.seek(first * SECTOR)
            device.write(b"\0" * size * SECTOR)


def expect(disk: str, count: int) -> None:
    expected_now = {f"{disk}-part{number + 1}" for number in range(count)}
    for _attempt in range(60):
        if all(os.path.exists(path) for path in expected_now) and (count or not os.path.exists(f"{disk}-part1")):
            return
        time.sleep(0.5)
    sys.exit(f"udev does not show {count} partitions of {disk}")


if __name__ == "__main__":
    partition(sys.argv[2:], int(sys.argv[1]))
