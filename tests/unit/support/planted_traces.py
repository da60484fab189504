# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of trace buffers, built by the documented format, and a tracefs made of files."""

from __future__ import annotations

import struct
import typing as t
from pathlib import Path

HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)
_COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n"
)
_LETTERS = "\tfield:char rwbs[8];\toffset:{};\tsize:8;\tsigned:1;\n"
IDS = {"block_bio_queue": 1055, "block_rq_issue": 1061, "block_rq_complete": 1064}
QUEUE, ISSUE, COMPLETE = IDS.values()
FORMATS = {
    "block_bio_queue": _COMMON + _LETTERS.format(28) + "\tfield:char comm[16];\toffset:36;\tsize:16;\tsigned:1;\n",
    "block_rq_issue": _COMMON + "\tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n" + _LETTERS.format(32),
    "block_rq_complete": _COMMON + "\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n" + _LETTERS.format(32),
}
SDA = 8 << 20
MISSED, COUNTED = 1 << 31, 1 << 30
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31


def format_of(event: str) -> str:
    return f'name: {event}\nID: {IDS[event]}\nformat:\n{FORMATS[event]}\nprint fmt: "%d", REC->dev\n'


def entry(kind: int, delta: int, rest: bytes = b"", mark: str = "<") -> bytes:
    """One entry of a page: 5 bits of type and 27 of time, which a big-endian processor has in the other order, and what follows."""
    return struct.pack(f"{mark}I", kind | delta << 5 if mark == "<" else kind << 27 | delta) + rest


def payload(event: int, sector: int, sectors: int, letters: str, *, dev: int = SDA, process: int = 77, mark: str = "<") -> bytes:
    head = struct.pack(f"{mark}HBBiI4xQI", event, 0, 0, process, dev, sector, sectors)
    return head + (b"" if event == QUEUE else bytes(4)) + letters.encode().ljust(8, b"\0") + (b"fio".ljust(16, b"\0") if event == QUEUE else b"")


def data(delta: int, content: bytes, *, long: bool = False, mark: str = "<") -> bytes:
    """An event; ``long`` is the form in which its length follows."""
    padded = content + bytes(-len(content) % 4)
    if long:
        return entry(0, delta, struct.pack(f"{mark}I", len(content) + 4) + padded, mark)
    return entry(len(padded) // 4, delta, padded, mark)


def page(time: int, *entries: bytes, flags: int = 0, missed: int | None = None, mark: str = "<") -> bytes:
    content = b"".join(entries)
    after = b"" if missed is None else struct.pack(f"{mark}Q", missed)
    return (struct.pack(f"{mark}QQ", time, len(content) | flags) + content + after).ljust(4096, b"\0")


def request(delta: int, sector: int, sectors: int, letters: str, event: int = QUEUE, **more: t.Any) -> bytes:
    return data(delta, payload(event, sector, sectors, letters, **more))


class PlantedTracefs:
    """A tracefs made of files. The kernel's part, that a new instance has files, is :meth:`make_instance`.

    :param cpus: processors of the host.
    """

    def __init__(self, root: Path, cpus: int = 2, place: str = "sys/kernel/tracing") -> None:
        self.folder = root / place
        self.cpus = cpus
        for event in IDS:
            self._write(f"events/block/{event}/format", format_of(event))
        self._write("events/header_page", HEADER_PAGE)
        (self.folder / "instances").mkdir()

    def _write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def make_instance(self, name: str, buffers: t.Sequence[bytes] = (), overrun: int = 0) -> Path:
        below = f"instances/cachefleet-{name}"
        for file in ("trace_clock", "buffer_size_kb", "tracing_on"):
            self._write(f"{below}/{file}", "")
        for event in IDS:
            for file in ("filter", "enable"):
                self._write(f"{below}/events/block/{event}/{file}", "")
        for cpu in range(self.cpus):
            self._write(f"{below}/per_cpu/cpu{cpu}/trace_pipe_raw", buffers[cpu] if cpu < len(buffers) else b"")
            self._write(f"{below}/per_cpu/cpu{cpu}/stats", f"entries: 0\noverrun: {overrun}\ncommit overrun: 0\nbytes: 52\ndropped events: 1\nread events: 9\n")
        return self.folder / below
