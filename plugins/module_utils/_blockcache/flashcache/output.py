# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of flashcache: ``dmsetup table`` and ``status``, the files below /proc, and the superblock on the SSD.

Sources: flashcache_conf.c (``flashcache_status_table``, ``flashcache_status_info``), flashcache_procfs.c and flashcache.h
(``struct flash_superblock``) of github.com/facebookarchive/flashcache, and doc/flashcache-sa-guide.txt. The table is text
for display over several lines, and no table that could be loaded again. Older releases leave out lines.
"""

from __future__ import annotations

import re
import struct
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, SECTOR

#: The values of ``cache mode(…)`` and their meaning: the mode, and whether only writes are cached.
MODES = {
    "WRITE_BACK": ("writeback", False),
    "WRITE_CACHE": ("writeback", True),
    "WRITE_THROUGH": ("writethrough", False),
    "WRITE_AROUND": ("writearound", False),
}

#: ``cache_sb_state``: while it runs or after a crash; removed with nothing dirty; removed with dirty blocks; metadata could not be written.
RUNNING, CLEAN, FAST_CLEAN, UNSTABLE = 0xDEADBEEF, 0xFACECAFE, 0xCAFEFEED, 0xC8249756
STATES = {RUNNING: "not shut down", CLEAN: "clean", FAST_CLEAN: "shut down with dirty blocks", UNSTABLE: "unstable"}
#: Bytes of ``struct flash_superblock`` as a 64-bit kernel lays it out: the two names begin at 20 and 160.
_SUPERBLOCK = struct.Struct("<QIII128s4xQ128sQIIII")
SUPERBLOCK_SIZE = _SUPERBLOCK.size

_HEAD = re.compile(r"^(?:(?P<name>\S.*?): )?(?P<start>\d+) (?P<sectors>\d+) flashcache (?P<what>conf|stats): *$", re.ASCII)
_PAIR = re.compile(r"([A-Za-z][A-Za-z_ ]*?) ?\(([^()]*)\)")
_BUCKET = re.compile(r"(\d+):(\d+)", re.ASCII)
_STATISTIC = re.compile(r"([A-Za-z_]+)=(-?\d+)", re.ASCII)


@frozen
class Table:
    """One cache that runs, as ``dmsetup table`` shows it. Sizes in bytes, amounts in blocks.

    :param ssd: the path that was given when it was made or loaded; so is ``disk``.
    :param metadata_block_size: None where there is none, as in all modes but write-back.
    :param disk_associativity: None in releases that do not have it.
    :param dirty: blocks; 0 in the modes in which no block is ever dirty.
    :param histogram: pieces by size in bytes, of all caches of the host since the module was loaded.
    """

    size: int
    ssd: str
    disk: str
    mode: str
    write_only: bool
    block_size: int
    associativity: int
    total: int
    cached: int
    dirty: int
    metadata_block_size: int | None = None
    disk_associativity: int | None = None
    histogram: t.Mapping[int, int] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The name of its folders below /proc/flashcache and /proc/sys/dev/flashcache."""
        return folder_of(self.ssd, self.disk)


@frozen
class FlashcacheSuperblock:
    """What a write-back cache has written at the beginning of its SSD. Sizes in bytes, ``blocks`` in blocks.

    :param name: of the device-mapper device; releases before the second format keep the path of the SSD there.
    """

    state: int
    name: str
    disk: str
    blocks: int
    block_size: int
    associativity: int
    ssd_size: int
    disk_size: int
    version: int
    metadata_block_size: int
    disk_associativity: int
    write_only: bool

    @property
    def clean(self) -> bool:
        """Whether no block is on the SSD alone."""
        return self.state == CLEAN

    @property
    def state_name(self) -> str:
        """For display."""
        return STATES[self.state]


def folder_of(ssd: str, disk: str) -> str:
    """``<ssd>+<disk>``, the names that the two paths end with."""
    return f"{ssd.rsplit('/', 1)[-1]}+{disk.rsplit('/', 1)[-1]}"


def parse_tables(text: str) -> dict[str, Table]:
    """``dmsetup table`` of any number of devices as ``{name: table}``; devices of other targets are passed over.

    :raises NotUnderstood: quoting what flashcache printed.
    """
    return {name or "": _table(sectors, body) for name, sectors, body in _sections(text, "conf")}


def parse_table(text: str) -> Table:
    """``dmsetup table NAME`` of one cache.

    :raises NotUnderstood: quoting what was printed.
    """
    tables = parse_tables(text)
    if len(tables) != 1:
        raise NotUnderstood(f"dmsetup table did not describe a flashcache device, but printed: '{text.strip()[:200]}'.")
    return next(iter(tables.values()))


def parse_status(text: str) -> dict[str, int]:
    """``dmsetup status NAME`` as ``{words: number}``, with the blanks in the names as they are printed.

    :raises NotUnderstood: quoting what was printed.
    """
    sections = list(_sections(text, "stats"))
    if len(sections) != 1:
        raise NotUnderstood(f"dmsetup status did not describe a flashcache device, but printed: '{text.strip()[:200]}'.")
    numbers = {}
    for name, value in _PAIR.findall(sections[0][2]):
        numbers[name.strip()] = _number(value, name, text)
    return numbers


def parse_statistics(text: str) -> dict[str, int]:
    """``flashcache_stats`` or ``flashcache_errors`` below /proc/flashcache as ``{key: number}``.

    :raises NotUnderstood: if there is something else in it.
    """
    numbers = {}
    for word in text.split():
        match = _STATISTIC.fullmatch(word)
        if not match:
            raise NotUnderstood(f"A statistic of flashcache could not be parsed: '{word[:80]}'.")
        numbers[match.group(1)] = int(match.group(2))
    return numbers


def parse_histogram(text: str) -> dict[int, int]:
    """``flashcache_iosize_hist`` or the line ``Size Hist:`` as ``{bytes: count}``, sizes that never occurred left out.

    :raises NotUnderstood: if there is something else in it.
    """
    counts = {}
    for word in text.split():
        match = _BUCKET.fullmatch(word)
        if not match:
            raise NotUnderstood(f"The histogram of flashcache could not be parsed at '{word[:80]}'.")
        if int(match.group(2)):
            counts[int(match.group(1))] = int(match.group(2))
    return counts


def parse_pid_lists(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """``flashcache_pidlists``: the processes of the blacklist and of the whitelist.

    :raises NotUnderstood: if there is something else in it.
    """
    lists: dict[str, tuple[int, ...]] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or name not in ("Blacklist", "Whitelist") or not all(re.fullmatch(r"\d+", word, re.ASCII) for word in words):
            raise NotUnderstood(f"The list of processes of flashcache could not be parsed: '{line[:80]}'.")
        lists[name] = tuple(map(int, words))
    return lists.get("Blacklist", ()), lists.get("Whitelist", ())


def parse_superblock(head: bytes) -> FlashcacheSuperblock | None:
    """The beginning of an SSD; None if there is no cache on it."""
    if len(head) < SUPERBLOCK_SIZE:
        return None
    blocks, block, associativity, state, name, ssd_size, disk, disk_size, version, metadata, disk_associativity, write_only = _SUPERBLOCK.unpack_from(head)
    if state not in STATES:
        return None
    return FlashcacheSuperblock(
        state=state,
        name=_text(name),
        disk=_text(disk),
        blocks=blocks,
        block_size=block * SECTOR,
        associativity=associativity,
        ssd_size=ssd_size * SECTOR,
        disk_size=disk_size * SECTOR,
        version=version,
        # The fields after the version came with the second, third and fourth format.
        metadata_block_size=(metadata if version >= 2 else 1) * SECTOR,
        disk_associativity=disk_associativity * SECTOR if version >= 3 else 0,
        write_only=version >= 4 and write_only == 1,
    )


def _sections(text: str, what: str) -> t.Iterator[tuple[str | None, int, str]]:
    """Name, length in sectors and what follows, of every flashcache device."""
    name: str | None = None
    sectors = 0
    body: list[str] | None = None
    for line in text.splitlines():
        head = _HEAD.match(line)
        # The lines of flashcache begin with a tab or are its histograms; any other line is another device.
        own = line.startswith(("\t", "Size Hist:", "IO Latency", "<", ">"))
        if head or not own:
            if body is not None:
                yield name, sectors, "\n".join(body)
            body = None
        if head and head.group("what") == what:
            name, sectors, body = head.group("name"), int(head.group("sectors")), []
        elif body is not None and own:
            body.append(line)
    if body is not None:
        yield name, sectors, "\n".join(body)


def _table(sectors: int, body: str) -> Table:
    lines = [line for line in body.splitlines() if not line.startswith("Size Hist:")]
    histogram = next((line[len("Size Hist:") :] for line in body.splitlines() if line.startswith("Size Hist:")), "")
    pairs = {name.strip(): value for name, value in _PAIR.findall("\n".join(lines))}
    try:
        mode, write_only = MODES[pairs["cache mode"]]
        metadata = pairs.get("metadata block size")
        disk_associativity = pairs.get("disk assoc")
        return Table(
            size=sectors * SECTOR,
            ssd=pairs["ssd dev"],
            disk=pairs["disk dev"],
            mode=mode,
            write_only=write_only,
            block_size=_suffixed(pairs.get("data block size") or pairs["block size"]),
            associativity=int(pairs["associativity"]),
            total=int(pairs["total blocks"]),
            cached=int(pairs["cached blocks"]),
            # Without this line it cannot be determined whether a write-back cache is clean.
            dirty=int(pairs["dirty blocks"]) if mode == "writeback" else 0,
            metadata_block_size=_suffixed(metadata) if metadata is not None else None,
            disk_associativity=_suffixed(disk_associativity) if disk_associativity is not None else None,
            histogram=parse_histogram(histogram),
        )
    except (KeyError, ValueError):
        raise NotUnderstood(f"dmsetup table of a flashcache device could not be parsed: '{body.strip()[:300]}'.") from None


def _suffixed(text: str) -> int:
    match = re.fullmatch(r"(\d+)([Kb]?)", text, re.ASCII)
    if not match:
        raise ValueError(text)
    return int(match.group(1)) * (KIB if match.group(2) == "K" else 1)


def _number(value: str, name: str, text: str) -> int:
    if not re.fullmatch(r"-?\d+", value, re.ASCII):
        raise NotUnderstood(f"dmsetup status of a flashcache device could not be parsed at '{name}({value[:40]})': '{text.strip()[:200]}'.")
    return int(value)


def _text(field_bytes: bytes) -> str:
    return field_bytes.split(b"\0", 1)[0].decode("utf-8", errors="replace")
