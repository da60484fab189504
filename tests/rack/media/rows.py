# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives and controllers as data: one row each, every value with its source.

Nothing here was fitted to a table of a field case: a value is from a data sheet, from a publication about flash memory, or marked as assumed. Times are in
microseconds, rates in bytes per second, sizes in bytes.
"""

from __future__ import annotations

import dataclasses
import typing as t

MB, GB = 10**6, 10**9
BLOCK = 4096

#: The emulated rack does about 3,700 writes of 4 KiB per second: all times of drives and controllers are longer by this factor there, all rates lower.
SLOWER = 16
#: Caches, reserves and the bytes of a test are smaller by this factor, so that what takes minutes there takes seconds here.
SMALLER = 64


@dataclasses.dataclass(frozen=True)
class DriveRow:
    """One drive. A size or time that it does not have is 0."""

    name: str
    kind: str
    #: From a command to its answer, if nothing else is to be done.
    read_us: float = 0
    write_us: float = 0
    #: What the processor of the drive needs for a command of 4 KiB, whatever the queue.
    command_us: float = 0
    #: Of the arm, and of a turn of the platters; only of a disk.
    seek_us: float = 0
    turn_us: float = 0
    #: What streams from and to the medium.
    read_rate: float = 0
    rate: float = 0
    #: Until data that cannot wait for more of them are on the medium.
    program_us: float = 0
    #: The same in a fast area, of a size, which takes whole pages, and is emptied at a rate when it is full or the drive is idle.
    fast_us: float = 0
    fast_bytes: float = 0
    fast_page: float = BLOCK
    fast_recovery: float = 0
    #: Erased blocks; what a collector gains per second; the share of space never written that serves as further reserve.
    reserve: float = 0
    reclaim_rate: float = 0
    unwritten_share: float = 0
    #: Memory for written data, and whether capacitors keep it.
    cache_bytes: float = 0
    capacitors: bool = False
    #: What a flush takes at least: it is not queued.
    flush_us: float = 0
    #: Whether a single write that is forced to the medium (FUA) is treated so.
    honours_fua: bool = True
    sources: t.Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)


@dataclasses.dataclass(frozen=True)
class ControllerRow:
    """One controller, or a port of the board, which is one without a cache."""

    name: str
    #: What its processor needs for a command, host's or drive's; all volumes share it.
    command_us: float = 0
    #: Of all of its drives together.
    link_rate: float = 0
    #: Commands at a time to each drive; 0: any number.
    depth: int = 0
    cache_bytes: float = 0
    #: What keeps the cache in a power cut: ``none``, ``battery`` or ``capacitor``.
    protection: str = "none"
    #: What becomes of a flush, by mode: ``passes`` to the drives, or ``answers`` without doing anything.
    flush_write_through: str = "passes"
    flush_write_back: str = "passes"
    flush_pass_through: str = "passes"
    #: Whether it forces each write to the medium (FUA) when it writes through.
    forces_write_through: bool = False
    #: Writes at a time from its cache to each drive.
    destage_depth: int = 1
    #: What it reads ahead where that is enabled.
    read_ahead: float = 0
    sources: t.Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)


Row = t.TypeVar("Row", DriveRow, ControllerRow)
_SIZES = ("fast_bytes", "reserve", "cache_bytes")


def scaled(row: Row, slower: float, smaller: float) -> Row:
    """The same drive or controller, whose times are longer and whose sizes are smaller."""
    changed: dict[str, t.Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if field.name.endswith("_us"):
            changed[field.name] = value * slower
        elif field.name.endswith(("rate", "recovery")):
            changed[field.name] = value / slower
        elif field.name in _SIZES:
            changed[field.name] = value / smaller
    return dataclasses.replace(row, **changed)


def _row(made: type[Row], name: str, /, **values: tuple[t.Any, str]) -> Row:
    return made(name, **{key: value for key, (value, _source) in values.items()}, sources={key: source for key, (_value, source) in values.items()})


_COOKE = "J. Cooke, The Inconvenient Truths of NAND Flash Memory (Micron, 2007): programming a page takes"
_NO_FUA = "assumed: ATA leaves a desktop drive free to answer from its cache"
_AS_COMMAND = "assumed: as long as any other command takes"

S3500 = _row(
    DriveRow, "Intel DC S3500 80 GB",
    kind=("ssd", "data sheet"),
    read_us=(50, "data sheet: latency, read"), write_us=(65, "data sheet: latency, write"),
    command_us=(1e6 / 75000, "data sheet: 75,000 random reads per second, the most of the family"),
    read_rate=(340 * MB, "data sheet: sequential read"), rate=(100 * MB, "data sheet: sequential write"),
    program_us=(900, _COOKE + " 900 us (MLC)"),
    cache_bytes=(128 * MB, "assumed: memory chip of the family's smaller drives, most of which has the mapping"),
    capacitors=(True, "data sheet: enhanced power-loss data protection"),
    flush_us=(65, _AS_COMMAND), honours_fua=(True, "assumed: a drive for servers obeys it"),
)  # fmt: skip

X25_M = _row(
    DriveRow, "Intel X25-M G2 160 GB",
    kind=("ssd", "data sheet"),
    read_us=(65, "data sheet: latency, read"), write_us=(85, "data sheet: latency, write"),
    command_us=(1e6 / 35000, "data sheet: 35,000 random reads per second"),
    read_rate=(250 * MB, "data sheet: sequential read"), rate=(100 * MB, "data sheet: sequential write"),
    program_us=(900, _COOKE + " 900 us (MLC)"),
    fast_us=(250, _COOKE + " 250 us (SLC), which the lower of two pages in a cell resembles"),
    fast_bytes=(80 * GB, "half of the pages are lower ones"), fast_page=(BLOCK, "a page of its flash"),
    fast_recovery=(100 * MB, "data sheet: sequential write"),
    cache_bytes=(32 * MB, "reviews that opened it: 32 MB of memory"),
    capacitors=(False, "the data sheet has no power-loss protection"),
    flush_us=(85, _AS_COMMAND), honours_fua=(False, _NO_FUA),
)  # fmt: skip

I320 = _row(
    DriveRow, "Intel 320 120 GB",
    kind=("ssd", "data sheet"),
    read_us=(75, "data sheet: latency, read"), write_us=(90, "data sheet: latency, write"),
    command_us=(1e6 / 23000, "data sheet: 23,000 random writes per second, the most of the family, whose drives have the same processor"),
    read_rate=(270 * MB, "data sheet: sequential read"), rate=(130 * MB, "data sheet: sequential write"),
    program_us=(900, _COOKE + " 900 us (MLC)"),
    reserve=(1.6 * GB, "assumed: a tenth of the difference between 128 GiB of flash and 120 GB is erased in advance"),
    reclaim_rate=(14000 * BLOCK, "data sheet of the drive of this size: 14,000 random writes per second in 8 GB, which includes collection"),
    cache_bytes=(64 * MB, "reviews that opened it: 64 MB of memory"),
    capacitors=(True, "data sheet: enhanced power-loss data protection"),
    flush_us=(90, _AS_COMMAND), honours_fua=(False, _NO_FUA),
)  # fmt: skip

I545S = _row(
    DriveRow, "Intel 545s 256 GB",
    kind=("ssd", "data sheet"),
    read_us=(50, "assumed: as other SATA drives"), write_us=(60, "assumed: as other SATA drives of its year"),
    command_us=(1e6 / 85000, "data sheet: 85,000 random writes per second, the most of the family"),
    read_rate=(550 * MB, "data sheet: sequential read"), rate=(500 * MB, "data sheet: sequential write"),
    program_us=(900, _COOKE + " 900 us (MLC); TLC is not faster"), fast_us=(250, _COOKE + " 250 us (SLC)"),
    fast_bytes=(4 * GB, "assumed: a 64th of the capacity is used with one bit in each cell"),
    fast_page=(16 * BLOCK, "assumed: 16 KiB in each of four planes are programmed together"),
    fast_recovery=(500 * MB, "data sheet: sequential write"),
    cache_bytes=(256 * MB, "assumed: 1 MB for each GB, as usual"),
    capacitors=(False, "the data sheet has no power-loss protection for data in flight"),
    flush_us=(60, _AS_COMMAND), honours_fua=(False, _NO_FUA),
)  # fmt: skip

ST10000NM = _row(
    DriveRow, "Seagate ST10000NM0086",
    kind=("hdd", "data sheet"),
    read_us=(100, "assumed: a read from its memory"), write_us=(100, "assumed: a write to its memory"), command_us=(50, "assumed"),
    seek_us=(8500, "assumed: as drives of 7,200 rpm state it"), turn_us=(60e6 / 7200, "data sheet: 7,200 rpm"),
    read_rate=(249 * MB, "data sheet: sustained transfer rate"), rate=(249 * MB, "data sheet: sustained transfer rate"),
    cache_bytes=(256 * MB, "data sheet: cache"), capacitors=(False, "data sheet"), flush_us=(100, "assumed"),
    honours_fua=(True, "SATA revision 3: NCQ writes have a FUA bit"),
)  # fmt: skip

#: Mystery of case A: with its cache disabled, the controller hides the flushes of three drives that have their own cache enabled, but not those of a fourth.
#: Both follow if the driver never sends a flush to a volume, and the controller keeps its promise of write-through by forcing single writes, which only the
#: S3500 obeys. The former is in the driver's source; the latter is a choice, and a value in the row of each drive.
ADAPTEC_6805 = _row(
    ControllerRow, "Adaptec 6805",
    command_us=(1e6 / 37500, "three drives at once did 3 x 12,500 with all caches off, which the text of case A has, and not its table"),
    link_rate=(2000 * MB, "data sheet: 2 GB/s"),
    cache_bytes=(512 * MB, "data sheet: 512 MB"), protection=("capacitor", "case A: the controller has a capacitor (AFM-600)"),
    flush_write_through=("answers", "Linux, aacraid: aac_cache is 2, so that volumes report no write cache and are sent no flush"),
    flush_write_back=("answers", "as above"), flush_pass_through=("passes", "Linux, aacraid: of a JBOD drive the mode page of the drive counts"),
    forces_write_through=(True, "chosen, see above"),
    destage_depth=(1, "assumed: blocks of a volume of one drive leave the cache one after another"),
    read_ahead=(512 * 1024, "assumed"),
)  # fmt: skip

ASR_81605ZQ = _row(
    ControllerRow, "Adaptec ASR-81605ZQ",
    command_us=(1e6 / 700000, "data sheet: 700,000 random reads per second"), link_rate=(6600 * MB, "data sheet: 6.6 GB/s"),
    cache_bytes=(1 * GB, "data sheet: 1 GB"), protection=("capacitor", "data sheet: flash backup with a capacitor"),
    flush_write_through=("answers", "Linux, aacraid: aac_cache"), flush_write_back=("answers", "Linux, aacraid: aac_cache"),
    forces_write_through=(True, "as the 6805"),
    destage_depth=(8, "assumed: more than its predecessor"), read_ahead=(512 * 1024, "assumed"),
)  # fmt: skip

SATA_PORT = _row(
    ControllerRow, "SATA port",
    command_us=(5, "assumed: an interrupt and its handler"), link_rate=(300 * MB, "SATA 3 Gb/s"),
    depth=(1, "assumed: a desktop board whose BIOS has its ports in IDE mode, without command queuing"),
)  # fmt: skip

DRIVES: dict[str, DriveRow] = {row.name: row for row in (S3500, X25_M, I320, I545S, ST10000NM)}
CONTROLLERS: dict[str, ControllerRow] = {row.name: row for row in (ADAPTEC_6805, ASR_81605ZQ, SATA_PORT)}
