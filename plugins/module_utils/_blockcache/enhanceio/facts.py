# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The EnhanceIO caches of a host, from ``/proc`` alone: no command is started, whatever their number.

Sources: eio_procfs.c (one folder for each cache below ``/proc/enhanceio``, beside the file ``version``; sysctls below
``/proc/sys/dev/enhanceio/NAME``, those of write-back only while a cache is in that mode), eio_main.c (what is done with a
flush, see :data:`SWALLOWS`), eio_subr.c (what a lost device does).
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, MIRRORED, UNMIRRORED, md_redundancy
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot as enhanceio_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import output
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.settings import SETTINGS
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

TYPE = "enhanceio"
PROC, SYSCTLS = "proc/enhanceio", "proc/sys/dev/enhanceio"
#: In write-back a write that carries FLUSH or FUA goes to the SSD without either, a bare flush is answered when the origin
#: has answered it and is not awaited on the SSD, and a block that was written back counts as clean before the origin was flushed.
SWALLOWS = frozenset({"writeback"})
_NUMBER = re.compile(r"^[0-9]{1,10}\s*$")
#: The driver takes the files of a cache away and makes them anew when its mode is changed.
_ATTEMPTS = 3


@frozen
class Cache:
    """One cache that runs.

    :param stats: as returned by :func:`output.parse_stats`.
    :param settings: the sysctls that are there, by name.
    """

    name: str
    config: output.Config
    stats: t.Mapping[str, int]
    errors: t.Mapping[str, int] = field(default_factory=dict)
    histogram: t.Mapping[int, int] = field(default_factory=dict)
    settings: t.Mapping[str, int] = field(default_factory=dict)

    @property
    def dirty(self) -> int:
        """Bytes that the origin does not have."""
        return self.stats["nr_dirty"] * self.config.block_size


def read_running(root: Path = Path("/")) -> tuple[Cache, ...]:
    """Every cache that runs, by name; () at the cost of one read where the driver is not loaded.

    :raises NotUnderstood: if the output of the driver is not as expected.
    :raises CommandFailed: if a file is there and cannot be read.
    """
    folder = root / PROC
    if not folder.is_dir():
        return ()
    names = sorted(place.name for place in folder.iterdir() if place.is_dir())
    return tuple(cache for cache in (read_one(name, root) for name in names) if cache is not None)


def read_one(name: str, root: Path = Path("/")) -> Cache | None:
    """One cache; None if it does not run.

    :raises NotUnderstood: if the output of the driver is not as expected.
    :raises CommandFailed: if a file is there and cannot be read.
    """
    folder = root / PROC / name
    for _attempt in range(_ATTEMPTS):
        if not folder.is_dir():
            return None
        texts = {file: _read(folder / file) for file in ("config", "stats", "errors", "io_hist")}
        if texts["config"] is not None and texts["stats"] is not None:
            return Cache(
                name,
                output.parse_config(texts["config"], name),
                output.parse_stats(texts["stats"], name),
                output.parse_errors(texts["errors"] or "", name),
                output.parse_histogram(texts["io_hist"] or "", name),
                _read_settings(root / SYSCTLS / name),
            )
    return None


def _read_settings(folder: Path) -> dict[str, int]:
    # ``zero_stats``, ``do_clean``, ``control`` and ``invalidate`` are sysctls too, and commands.
    texts = {name: _read(folder / name) for name in SETTINGS}
    return {name: int(text) for name, text in texts.items() if text is not None and _NUMBER.match(text)}


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}.", item=str(path)) from None


def read_superblock(path: Path) -> output.EnhanceIOSuperblock | None:
    """The superblock on a cache device that does not run; None if there is none, or no such device."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # The driver writes past the page cache, which may hold what was there before.
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return output.parse_superblock(os.pread(handle, output.SUPERBLOCK_SIZE, output.SUPERBLOCK_OFFSET))
    except OSError:
        return None
    finally:
        os.close(handle)


def read_caches(devices: Devices, runner: Runner, root: Path = Path("/")) -> tuple[CacheState, ...]:  # noqa: ARG001
    """The EnhanceIO caches of the host in the words of every type: those that run, and those that should have come back at boot.

    :raises NotUnderstood: if the output of the driver is not as expected.
    """
    running = read_running(root)
    names = {cache.name for cache in running}
    waiting = [(name, text) for name, text in enhanceio_boot.read_units(root).items() if name not in names]
    return (*(describe(cache, devices, root) for cache in running), *(_describe_waiting(name, text, devices, root) for name, text in waiting))


def _describe_waiting(name: str, unit: str, devices: Devices, root: Path) -> CacheState:
    """A cache that does not run, from the unit that should have started it."""
    start = enhanceio_boot.AtBoot(unit).start
    origin, fast = find(devices, start.get("d", "")), find(devices, start.get("s", ""))
    mode = {word: mode for mode, word in output.MODE_WORDS.items()}.get(start.get("m", ""))
    held = " It may hold blocks that the origin does not have: do not use the origin until it runs." if mode in SWALLOWS else ""
    return CacheState(
        type=TYPE,
        name=name,
        kind=TYPE,
        device=_path(origin, start.get("d", "")),
        device_name=origin.name if origin else None,
        origin=_path(origin, start.get("d", "")),
        origin_name=origin.name if origin else None,
        cache_devices=(_path(fast, start.get("s", "")),),
        cache_device_names=(fast.name,) if fast else (),
        mode=mode,
        policy=start.get("p"),
        redundancy=redundancy(root, fast.name) if fast else UNMIRRORED,
        sends_flushes=mode not in SWALLOWS,
        state="inactive" if fast else "cache_missing",
        problem=f"The EnhanceIO cache {name} should run and does not: check systemctl status {enhanceio_boot.unit_name(name)} and dmesg.{held}",
    )


def describe(cache: Cache, devices: Devices, root: Path = Path("/")) -> CacheState:
    """One cache in the words of every type. Its origin is the cached device: EnhanceIO makes none of its own."""
    config, stats, errors = cache.config, cache.stats, cache.errors
    origin, fast = find(devices, config.source), find(devices, config.fast)
    state, problem = _state(cache)
    return CacheState(
        type=TYPE,
        name=cache.name,
        kind=TYPE,
        device=_path(origin, config.source),
        device_name=origin.name if origin else None,
        origin=_path(origin, config.source),
        origin_name=origin.name if origin else None,
        cache_devices=(_path(fast, config.fast),),
        cache_device_names=(fast.name,) if fast else (),
        mode=config.mode,
        policy=config.policy,
        block_size=config.block_size,
        size=config.blocks * config.block_size,
        used=max(stats["cached_blocks"], 0) * config.block_size,
        dirty=cache.dirty,
        redundancy=redundancy(root, fast.name) if fast else UNMIRRORED,
        sends_flushes=config.mode not in SWALLOWS,
        state=state,
        problem=problem,
        settings=dict(cache.settings),
        counters={
            # In sectors, hits and misses alike.
            "read_hits": stats["read_hits"],
            "read_misses": max(stats["reads"] - stats["read_hits"], 0),
            "write_hits": stats["write_hits"],
            "write_misses": max(stats["writes"] - stats["write_hits"], 0),
            "cache_errors": errors.get("ssd_read_errors", 0) + errors.get("ssd_write_errors", 0),
            "origin_errors": errors.get("disk_read_errors", 0) + errors.get("disk_write_errors", 0),
        },
        histogram=dict(cache.histogram),
    )


def _state(cache: Cache) -> tuple[str, str]:
    config = cache.config
    if config.state == "degraded":
        return "cache_missing", (
            f"The cache device {config.fast} of the EnhanceIO cache {cache.name} is gone, and {config.source} works without it: reconnect it or replace it."
        )
    if config.state == "failed":
        held = f" Up to {cache.dirty} bytes are only on the cache device." if cache.dirty else ""
        return "failed", f"The EnhanceIO cache {cache.name} answers every request with an error, because {recovery(cache)}.{held}"
    return "ok", ""


def recovery(cache: Cache) -> str:
    """Why a cache has failed and what brings it back, as a clause. It stays failed when the device is back, and an orderly start finds every dirty block."""
    if cache.errors.get("no_source_dev"):
        gone, again = f"its origin {cache.config.source} is gone", "reconnect it"
    elif cache.errors.get("no_cache_dev"):
        gone, again = f"its cache device {cache.config.fast} is gone", "reconnect it"
    else:
        gone, again = "a device of it failed", "find it in dmesg and reconnect it"
    return (
        f"{gone}: {again}, restart the host with systemctl reboot, and run again; the cache then starts with every block that is dirty now. Do not delete it"
        " before (eio_cli delete), which drops what is dirty"
    )


def find(devices: Devices, path: str) -> BlockDevice | None:
    """The device of a path that the driver was given; None if it is not there any more."""
    try:
        return devices.resolve(path)
    except DeviceMissing:
        return None


def redundancy(root: Path, name: str) -> str:
    """What protects the blocks on a cache device, by its kernel name."""
    return {True: MIRRORED, False: DEGRADED, None: UNMIRRORED}[md_redundancy(root, name)]


def _path(device: BlockDevice | None, given: str) -> str:
    return (device.stable_path or device.path) if device is not None else given
