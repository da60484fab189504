# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the device-mapper targets ``cache`` and ``writecache`` report in ``dmsetup status`` and ``dmsetup table``.

Sources: Documentation/admin-guide/device-mapper/{cache,writecache}.rst and ``cache_status`` of drivers/md/dm-cache-target.c.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import METADATA_ONLY
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

MODES = ("writethrough", "writeback", "passthrough")
#: The layer of a volume with a thick snapshot: a snapshot-origin target has the name of the volume then (lib/activate/dev_manager.c of LVM).
REAL = "-real"
#: The kernel modules that a target needs. A kernel has the policy smq, a module of its own, with dm-cache (DM_CACHE_SMQ is on by default).
MODULES: t.Mapping[str, tuple[str, ...]] = {"cache": ("dm-cache",), "writecache": ("dm-writecache",)}


@frozen
class CacheStatus:
    """One cached device. ``block_size`` in bytes; ``used``, ``total`` and ``dirty`` in blocks of that size.
    ``metadata_used`` and ``metadata_size`` in bytes.

    ``series`` has further counters, which only say something while they are watched: ``promotions`` of blocks, and the blocks that dm-writecache
    found, placed and passed by, which kernels before 5.18 count by requests.

    ``failed`` is set when the kernel reports no more than ``Fail`` or ``Error``; every figure is ``None`` then. The counters
    of hits are the kernel's 32-bit ones and start again at every table reload.
    """

    target: str = "cache"
    failed: bool = False
    mode: str | None = None
    block_size: int | None = None
    used: int | None = None
    total: int | None = None
    dirty: int | None = None
    metadata_used: int | None = None
    metadata_size: int | None = None
    policy: str | None = None
    policy_settings: t.Mapping[str, str] = field(default_factory=dict)
    core_settings: t.Mapping[str, str] = field(default_factory=dict)
    read_only: bool | None = None
    needs_check: bool | None = None
    read_hits: int | None = None
    read_misses: int | None = None
    write_hits: int | None = None
    write_misses: int | None = None
    errors: int | None = None
    series: t.Mapping[str, int] = field(default_factory=dict)


def device_name(vg: str, lv: str) -> str:
    """The device-mapper name of a logical volume: hyphens inside the two names are doubled."""
    return f"{vg.replace('-', '--')}-{lv.replace('-', '--')}"


def layer_of(found: t.Container[str], name: str) -> str:
    """The device-mapper name of the cache of a volume: with a thick snapshot, a snapshot-origin target has the name of the volume and the cache lies below.

    :param found: the names of the devices that have a cache target.
    """
    return next((layer for layer in (name, f"{name}{REAL}") if layer in found), name)


def parse_cache_status(text: str) -> CacheStatus:
    """One line ``start length target …``, as ``dmsetup status NAME`` prints it.

    :raises NotUnderstood: quoting the line.
    """
    line = text.strip()
    words = line.split()
    if len(words) < 4 or words[2] not in _PARSERS:
        raise NotUnderstood(f"dmsetup status did not describe a cache, but printed: '{line[:200]}'.")
    try:
        return _PARSERS[words[2]](words[3:])
    except (IndexError, ValueError):
        raise NotUnderstood(f"dmsetup printed a cache status that could not be parsed: '{line[:300]}'.") from None


@frozen
class CacheTable:
    """The configuration of a cache, which the kernel also reports for one that has failed and shows no status any more.

    :param mode: of dm-cache one of :data:`MODES`; dm-writecache is ``writeback``.
    :param settings: of dm-writecache, without the flag ``cleaner``; of a flag that is set ``1``, as LVM stores it.
    :param cleaner: whether it only writes back and takes nothing new: the flag of dm-writecache or the policy of dm-cache.
    """

    target: str
    mode: str
    block_size: int
    settings: t.Mapping[str, str] = field(default_factory=dict)
    cleaner: bool = False


#: Options of dm-writecache that stand without a value.
_WRITECACHE_FLAGS = frozenset({"cleaner", "fua", "nofua"})


def parse_tables(text: str) -> dict[str, CacheTable]:
    """The output of ``dmsetup table`` as ``{name: table}``, devices with a cache target only.

    :raises NotUnderstood: quoting the line.
    """
    tables = {}
    for line in text.splitlines():
        name, _colon, rest = line.partition(": ")
        words = rest.split()
        if len(words) < 4 or words[2] not in _TABLE_PARSERS:
            continue
        try:
            tables[name] = _TABLE_PARSERS[words[2]](words[3:])
        except (IndexError, ValueError):
            raise NotUnderstood(f"dmsetup printed a cache table that could not be parsed: '{line[:300]}'.") from None
    return tables


def parse_dead(text: str) -> list[str]:
    """Of the output of ``dmsetup table`` the devices that consist of the target ``error`` alone: they hold nothing and serve nothing."""
    targets: dict[str, set[str]] = {}
    for line in text.splitlines():
        name, _colon, rest = line.partition(": ")
        words = rest.split()
        if len(words) > 2:
            targets.setdefault(name, set()).add(words[2])
    return [name for name, kinds in targets.items() if kinds == {"error"}]


def _table_of_cache(words: list[str]) -> CacheTable:
    """``metadata cache origin block_sectors #features … policy #arguments …``; a cache without a mode writes back."""
    features, rest = _take_counted(words[4:])
    mode = next((feature for feature in features if feature in MODES), "writeback")
    return CacheTable("cache", mode, int(words[3]) * SECTOR, cleaner=rest[0] == "cleaner")


def _table_of_writecache(words: list[str]) -> CacheTable:
    """``type origin cache block_size #options …``."""
    options = words[5 : 5 + int(words[4])]
    settings: dict[str, str] = {}
    flags = set()
    while options:
        key = options.pop(0)
        if key == METADATA_ONLY:
            settings[key] = "1"
        elif key in _WRITECACHE_FLAGS:
            flags.add(key)
        else:
            settings[key] = options.pop(0)
    return CacheTable("writecache", "writeback", int(words[3]), settings, "cleaner" in flags)


_TABLE_PARSERS = {"cache": _table_of_cache, "writecache": _table_of_writecache}


def parse_status(text: str) -> dict[str, CacheStatus]:
    """The whole ``dmsetup status`` as ``{name: status}``, devices with a cache target only.

    :raises NotUnderstood: quoting the line.
    """
    lines = (line.partition(": ") for line in text.splitlines())
    return {name: parse_cache_status(rest) for name, _colon, rest in lines if len(rest.split()) > 3 and rest.split()[2] in _PARSERS}


def _parse_cache(words: list[str]) -> CacheStatus:
    """Every list carries its own length, so nothing is counted from the end."""
    if words[0] in ("Fail", "Error"):
        return CacheStatus(failed=True)
    metadata_used, metadata_total = (int(number) * int(words[0]) * SECTOR for number in words[1].split("/"))
    used, total = (int(number) for number in words[3].split("/"))
    counters = [int(number) for number in words[4:11]]
    features, rest = _take_counted(words[11:])
    core, rest = _take_counted(rest)
    policy = rest[0]
    settings, rest = _take_counted(rest[1:])
    return CacheStatus(
        mode=next((feature for feature in features if feature in MODES), None),
        block_size=int(words[2]) * SECTOR,
        used=used,
        total=total,
        dirty=counters[6],
        metadata_used=metadata_used,
        metadata_size=metadata_total,
        policy=policy,
        policy_settings=_paired(settings),
        core_settings=_paired(core),
        read_only={"ro": True, "rw": False}.get(rest[0]) if rest else None,
        needs_check=(rest[1] == "needs_check") if len(rest) > 1 else None,
        read_hits=counters[0],
        read_misses=counters[1],
        write_hits=counters[2],
        write_misses=counters[3],
        series={"promotions": counters[5]},
    )


def _parse_writecache(words: list[str]) -> CacheStatus:
    """Kernels before 5.15 print the first four numbers only."""
    if words[0] in ("Fail", "Error"):
        return CacheStatus("writecache", failed=True)
    errors, total, free = (int(number) for number in words[:3])
    # Whatever is in a writecache is dirty: it holds nothing else.
    series = {}
    if len(words) >= 11:
        reads, read_hits, _writes, uncommitted, committed, around, placed = (int(number) for number in words[4:11])
        series = {"read_hits": read_hits, "read_misses": max(reads - read_hits, 0), "write_hits": uncommitted + committed}
        series.update(write_misses=placed, bypassed_writes=around)
    return CacheStatus("writecache", mode="writeback", used=total - free, total=total, dirty=total - free, errors=errors, series=series)


def _take_counted(words: list[str]) -> tuple[list[str], list[str]]:
    """A list that begins with its own length, and what follows it."""
    count = int(words[0])
    if not 0 <= count < len(words):
        raise ValueError(words[0])
    return words[1 : 1 + count], words[1 + count :]


def _paired(words: list[str]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2]))


_PARSERS = {"cache": _parse_cache, "writecache": _parse_writecache}


def read_tables(runner: Runner) -> dict[str, CacheTable]:
    """The table of every device-mapper cache of the host, by device-mapper name."""
    return parse_tables(runner.run(["dmsetup", "table"]).stdout)


def read_status(runner: Runner) -> dict[str, CacheStatus]:
    """The status of every device-mapper cache of the host, by device-mapper name."""
    return parse_status(runner.run(["dmsetup", "status"]).stdout)
