# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flashcache devices of a host: those that run, and those that lie on an SSD and wait to be loaded."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import (
    FlashcacheSuperblock,
    Table,
    parse_histogram,
    parse_pid_lists,
    parse_statistics,
    parse_superblock,
    parse_tables,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import Expected
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import FlashcacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.unit import Places
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import Starter
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_STATISTICS = "proc/flashcache"
_SYSCTLS = "proc/sys/dev/flashcache"
#: O_DIRECT requires whole logical blocks.
_HEAD = 4096


@frozen
class Running:
    """One cache that runs.

    :param device: the device-mapper device; None in the moment in which it comes or goes.
    :param ssd_name: kernel name of what it lies on, None if that is gone; so is ``disk_name``.
    :param opened: how often it is open: a mount, a program, a device on top of it.
    :param sysctls: every sysctl that the kernel shows for it.
    :param whitelist: processes that are cached in spite of ``cache_all`` 0.
    """

    name: str
    table: Table
    device: BlockDevice | None = None
    ssd_name: str | None = None
    disk_name: str | None = None
    opened: int = 0
    sysctls: t.Mapping[str, int] = field(default_factory=dict)
    statistics: t.Mapping[str, int] = field(default_factory=dict)
    errors: t.Mapping[str, int] = field(default_factory=dict)
    histogram: t.Mapping[int, int] = field(default_factory=dict)
    whitelist: tuple[int, ...] = ()

    @property
    def flushed(self) -> bool:
        """Whether it holds nothing that the origin does not have and nothing can become dirty in it.

        With ``cache_all`` 0 the kernel writes a block of the cache that is written to back to the disk, drops it, and sends
        the write to the disk (``flashcache_map``, ``flashcache_uncacheable``), except for processes of the whitelist.
        """
        if self.table.mode != "writeback":
            return True
        return self.table.dirty == 0 and self.sysctls.get("cache_all") == 0 and not self.whitelist


@frozen
class FlashcacheState:
    """A host as far as flashcache is concerned; everything that a plan is made from.

    :param running: by device-mapper name.
    :param stored: superblocks of wanted cache devices that no running cache lies on, by kernel name.
    :param removing: kernel names of wanted cache devices that a cache has not let go although it is out of sight already.
    :param volatile: for the paths of wanted devices, what below them keeps writes in volatile memory, each as a clause.
    :param memory: bytes of main memory.
    :param module: whether the kernel module is loaded or can be.
    :param units: texts of the units of wanted caches, by item; ``started`` are the items whose unit systemd has started.
    :param emptied: SSDs of caches that an earlier run has removed and did not come to empty, by item.
    :param altered: those items whose SSD is not known to be as that run left it.
    :param found: what the origins of items that need not have a cache belong to, by the name of the item.
    :param starters: what a boot starts from the origins of wanted caches.
    """

    ground: HostDevices
    running: t.Mapping[str, Running]
    stored: t.Mapping[str, FlashcacheSuperblock]
    volatile: t.Mapping[str, tuple[str, ...]]
    places: Places
    removing: frozenset[str] = frozenset()
    memory: int = 0
    release: str = ""
    module: bool = True
    units: t.Mapping[str, str] = field(default_factory=dict)
    started: frozenset[str] = frozenset()
    emptied: t.Mapping[str, str] = field(default_factory=dict)
    altered: frozenset[str] = frozenset()
    found: t.Mapping[str, Origin] = field(default_factory=dict)
    starters: tuple[Starter, ...] = ()

    def without(self, leaving: Expected) -> FlashcacheState:
        """The same once caches are removed."""
        stored = {name: superblock for name, superblock in self.stored.items() if name not in leaving.emptied}
        return dataclasses.replace(self, ground=self.ground.without(leaving), running=leaving.rest("flashcache", self.running), stored=stored)


def read_running(devices: Devices, runner: Runner, root: Path = Path("/")) -> dict[str, Running]:
    """Every cache that runs; two commands whatever their number, none where there is none.

    :raises NotUnderstood: if flashcache prints what no release known here prints.
    """
    if not any(device.kind == "flashcache" for device in devices):
        return {}
    tables = parse_tables(runner.run(["dmsetup", "table"]).stdout)
    opened = _opened(runner.run(["dmsetup", "info", "--columns", "--noheadings", "--separator", ":", "-o", "name,open"]).stdout)
    mapped = {device.dm_name: device for device in devices if device.kind == "flashcache"}
    return {name: _running(name, table, mapped.get(name), opened.get(name, 0), devices, root) for name, table in tables.items()}


def with_own_origin(spec: FlashcacheSpec, running: t.Mapping[str, Running], devices: Devices) -> FlashcacheSpec:
    """An item that names its own cache as origin, which is what is mounted, with the disk below it; any other item as it is."""
    cache = running.get(spec.name)
    if spec.present or cache is None or cache.device is None or name_behind(devices, spec.origin) != cache.device.name:
        return spec
    return dataclasses.replace(spec, origin=cache.table.disk)


def read_dirty(runner: Runner, name: str) -> int | None:
    """The dirty blocks of a cache now; None if it does not run."""
    completed = runner.run(["dmsetup", "table", name], ok=None)
    table = parse_tables(completed.stdout).get("") if completed.rc == 0 else None
    return table.dirty if table is not None else None


def read_superblock(root: Path, path: str) -> FlashcacheSuperblock | None:
    """The superblock on a device, past the page cache, which keeps what was there while the cache ran; None without one."""
    node = root / path.lstrip("/")
    for flags in (os.O_DIRECT, 0):
        with contextlib.suppress(OSError):
            handle = os.open(node, os.O_RDONLY | os.O_CLOEXEC | flags)
            try:
                with contextlib.closing(mmap.mmap(-1, _HEAD)) as memory:
                    count = os.preadv(handle, [memory], 0)
                    return parse_superblock(memory[:count])
            finally:
                os.close(handle)
    return None


def read_memory(root: Path) -> int:
    """Bytes of main memory; 0 if the kernel does not report it (proc(5), MemTotal)."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", read_attribute(root / "proc/meminfo") or "", re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


def write_sysctl(root: Path, folder: str, key: str, value: int) -> None:
    """Set one sysctl of a cache. What it then is must be read back: the kernel clamps without a word.

    :raises OSError: if the kernel does not take it.
    """
    with open(root / _SYSCTLS / folder / key, "w", encoding="ascii") as file:
        file.write(f"{value}\n")


def read_sysctls(root: Path, folder: str) -> dict[str, int]:
    """Every sysctl of a cache."""
    place = root / _SYSCTLS / folder
    found = {}
    for file in sorted(place.iterdir()) if place.is_dir() else []:
        text = read_attribute(file) or ""
        if re.fullmatch(r"-?\d+", text):
            found[file.name] = int(text)
    return found


def read_errors(root: Path, folder: str) -> dict[str, int]:
    """``flashcache_errors`` of a cache."""
    return parse_statistics(read_attribute(root / _STATISTICS / folder / "flashcache_errors") or "")


def read_whitelist(root: Path, folder: str) -> tuple[int, ...]:
    """The processes whose requests are cached in spite of ``cache_all`` 0."""
    return parse_pid_lists(read_attribute(root / _STATISTICS / folder / "flashcache_pidlists") or "")[1]


def _running(name: str, table: Table, device: BlockDevice | None, opened: int, devices: Devices, root: Path) -> Running:
    place = root / _STATISTICS / table.folder
    return Running(
        name=name,
        table=table,
        device=device,
        ssd_name=name_behind(devices, table.ssd),
        disk_name=name_behind(devices, table.disk),
        opened=opened,
        sysctls=read_sysctls(root, table.folder),
        statistics=parse_statistics(read_attribute(place / "flashcache_stats") or ""),
        errors=read_errors(root, table.folder),
        histogram=parse_histogram(read_attribute(place / "flashcache_iosize_hist") or "") or dict(table.histogram),
        whitelist=read_whitelist(root, table.folder),
    )


def name_behind(devices: Devices, path: str) -> str | None:
    """The kernel name behind a path; None if nothing is there."""
    try:
        return devices.resolve(path).name
    except DeviceMissing:
        return None


def _opened(text: str) -> dict[str, int]:
    rows = (line.strip().rpartition(":") for line in text.splitlines())
    return {name: int(count) for name, _colon, count in rows if name and count.isdigit()}
