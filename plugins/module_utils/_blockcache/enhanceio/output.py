# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of EnhanceIO about its caches: pure parsers of ``/proc/enhanceio/NAME/*`` and of the superblock on the cache device.

Sources: Driver/enhanceio/eio_procfs.c (``config``, ``stats`` and ``errors`` are lines of a name and a value, ``io_hist``
lines of a size and a count), eio.h (numbers of modes and policies, ``cache_flags``, ``union eio_superblock``) and eio_conf.c
of EnhanceIO 0.1 and of its fork for kernels up to 5.x. Sizes are bytes, except where a name contains sectors (of 512 bytes).
"""

from __future__ import annotations

import re
import struct
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

#: The numbers of the driver in our words. Its read only cache takes written blocks out: it writes around.
MODES = {1: "writeback", 2: "writearound", 3: "writethrough"}
#: Our words in those of eio_cli.
MODE_WORDS = {"writeback": "wb", "writearound": "ro", "writethrough": "wt"}
#: One fork has a fourth.
POLICIES = {1: "fifo", 2: "lru", 3: "rand", 4: "lifo"}
#: Bits of ``flags`` in ``config``.
FAST_REMOVE, STALE, SHUTTING_DOWN, CHANGING = 1 << 2, 1 << 7, 1 << 8, 1 << 9
#: Bits of ``do_clean``: a cleaning is going on; nothing becomes dirty until the bit is cleared.
CLEAN_START, CLEAN_KEEP = 1, 2
#: How many blocks ``eio_cli`` puts in a set, by the requested block size.
SET_SIZES = {2048: 128, 4096: 256, 8192: 512}

#: Where on a cache device its superblock lies, and how long it is.
SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE = 128 * SECTOR, 4096
#: size, block_size, assoc, state | cache_devname | cache_devsize | disk_devname | disk_devsize, version | name | mode, policy, flags, magic
_SUPERBLOCK = struct.Struct("<QIII128s4xQ128sQI128sIIII")
_MAGIC = 0xE10CAC6E
#: ``running or unclean``, ``clean``, ``shut down with dirty blocks``, ``metadata could not be written``.
_STATES = {0x55DADDEE: "running", 0xACCEDED1: "clean", 0xCAFEBABF: "dirty", 0xDEADDEEE: "unstable"}

_LINE = re.compile(r"^(\w+)\s+(\S.*?)\s*$")
_NUMBER = re.compile(r"^-?[0-9]{1,20}$")
_NATURAL = re.compile(r"^[0-9]{1,20}$")
_FLAGS = re.compile(r"^0x[0-9a-fA-F]{1,8}$")
_NEEDED = ("reads", "writes", "read_hits", "write_hits", "cached_blocks", "do_clean", "nr_blocks", "nr_dirty")


@frozen
class Config:
    """One cache as in ``config``.

    :param source: the path of the origin that it was made or enabled with.
    :param fast: the path of the cache device.
    :param source_size: bytes.
    :param blocks: how many blocks it holds.
    :param set_size: blocks in a set.
    :param mode: a word of :data:`MODES`.
    :param state: ``normal``, ``degraded`` (works without its cache device) or ``failed`` (answers every request with an error).
    :param flags: :data:`FAST_REMOVE` and so on.
    """

    source: str
    fast: str
    source_size: int
    blocks: int
    set_size: int
    block_size: int
    mode: str
    policy: str
    state: str
    flags: int


@frozen
class EnhanceIOSuperblock:
    """The contents of the cache device itself. Of a cache that runs it may be old: the driver writes past the page cache.

    :param state: ``running`` (or the host went down without a word), ``clean``, ``dirty`` or ``unstable``.
    """

    name: str
    source: str
    fast: str
    mode: str
    policy: str
    block_size: int
    state: str

    @property
    def may_be_dirty(self) -> bool:
        """Whether it may hold blocks that the origin does not have; only a write-back cache ever does."""
        return self.mode == "writeback" and self.state != "clean"


def parse_config(text: str, item: str) -> Config:
    """``/proc/enhanceio/NAME/config``.

    :raises NotUnderstood: naming the line.
    """
    values = _pairs(text, f"/proc/enhanceio/{item}/config", item)
    mode, policy = _natural(values, "mode", item), _natural(values, "eviction", item)
    if mode not in MODES:
        raise _misunderstood("config", item, f"mode {mode} is not one of {', '.join(map(str, MODES))}")
    if values.get("state") not in ("normal", "degraded", "failed"):
        raise _misunderstood("config", item, f"state is {values.get('state')!r}")
    flags = values.get("flags", "")
    if not _FLAGS.match(flags):
        raise _misunderstood("config", item, f"flags is {flags!r}")
    block_size = _natural(values, "block_size", item)
    if not block_size:
        raise _misunderstood("config", item, "block_size is 0")
    return Config(
        source=_text(values, "src_name", item),
        fast=_text(values, "ssd_name", item),
        source_size=_natural(values, "src_size", item) * SECTOR,
        blocks=_natural(values, "num_blocks", item),
        set_size=_natural(values, "set_size", item),
        block_size=block_size,
        mode=MODES[mode],
        policy=POLICIES.get(policy, str(policy)),
        state=values["state"],
        flags=int(flags, 16),
    )


def parse_stats(text: str, item: str) -> dict[str, int]:
    """``/proc/enhanceio/NAME/stats``. ``reads``, ``writes`` and the hits are sectors, whatever is called a count is requests.

    :raises NotUnderstood: naming the line, or what is missing.
    """
    values = _numbers(text, "stats", item)
    missing = [name for name in _NEEDED if name not in values]
    if missing:
        raise _misunderstood("stats", item, f"it does not report {', '.join(missing)}")
    negative = [name for name in ("nr_blocks", "nr_dirty", "do_clean") if values[name] < 0]
    if negative:
        raise _misunderstood("stats", item, f"{negative[0]} is {values[negative[0]]}")
    return values


def parse_errors(text: str, item: str) -> dict[str, int]:
    """``/proc/enhanceio/NAME/errors``.

    :raises NotUnderstood: naming the line.
    """
    return _numbers(text, "errors", item)


def parse_histogram(text: str, item: str) -> dict[int, int]:
    """``/proc/enhanceio/NAME/io_hist``: requests by their size in bytes; sizes that never came are left out by the driver.

    :raises NotUnderstood: naming the line.
    """
    histogram: dict[int, int] = {}
    for line in _lines(text):
        words = line.split()
        if len(words) != 2 or not all(_NATURAL.match(word) for word in words) or int(words[0]) % SECTOR or int(words[0]) == 0:
            raise _misunderstood("io_hist", item, f"the line {line!r} is not a size and a count")
        histogram[int(words[0])] = int(words[1])
    return histogram


def parse_superblock(block: bytes) -> EnhanceIOSuperblock | None:
    """The superblock of a cache device, from its own 4096 bytes; None if there is none.

    A device whose cache was made anew and one whose superblock is half written are no caches: the driver loads neither.
    """
    if len(block) < _SUPERBLOCK.size:
        return None
    _size, sectors, _sets, state, fast, _fast_size, source, _source_size, _version, name, mode, policy, _flags, magic = _SUPERBLOCK.unpack_from(block)
    if magic != _MAGIC or state not in _STATES or mode not in MODES:
        return None
    return EnhanceIOSuperblock(_name(name), _name(source), _name(fast), MODES[mode], POLICIES.get(policy, str(policy)), sectors * SECTOR, _STATES[state])


def _name(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


def _lines(text: str) -> t.Iterator[str]:
    return (line for line in text.split("\n") if line.strip())


def _pairs(text: str, place: str, item: str) -> dict[str, str]:
    values = {}
    for line in _lines(text):
        match = _LINE.match(line)
        if not match:
            raise NotUnderstood(f"{place}: the line {line!r} is not a name and a value.", item=item)
        values[match.group(1)] = match.group(2)
    return values


def _numbers(text: str, file: str, item: str) -> dict[str, int]:
    values = {}
    for name, value in _pairs(text, f"/proc/enhanceio/{item}/{file}", item).items():
        if not _NUMBER.match(value):
            raise _misunderstood(file, item, f"{name} is {value!r}")
        values[name] = int(value)
    return values


def _natural(values: t.Mapping[str, str], name: str, item: str) -> int:
    value = values.get(name, "")
    if not _NATURAL.match(value):
        raise _misunderstood("config", item, f"{name} is {value!r}")
    return int(value)


def _text(values: t.Mapping[str, str], name: str, item: str) -> str:
    value = values.get(name, "")
    if not value:
        raise _misunderstood("config", item, f"it does not report {name}")
    return value


def _misunderstood(file: str, item: str, what: str) -> NotUnderstood:
    return NotUnderstood(f"/proc/enhanceio/{item}/{file} could not be parsed: {what}.", item=item)


def fast_removal_sentence(name: str) -> str:
    """Why a cache must not enter write-back with :data:`FAST_REMOVE`."""
    return f"{name}: fast removal (control=6) is set for this cache, so deleting it would lose its dirty blocks: set dev.enhanceio.{name}.control=7 first."
