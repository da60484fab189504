# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's half of the simulated flashcache: devices, superblocks, dirty blocks, sysctls, below a folder that is the host's root.

Devices are files; what a cache writes on its SSD is really written there. The rest is plain data in the state of the
simulators. As a simulation has no clock, it moves on by one tick whenever one of its commands is called.
"""

from __future__ import annotations

import os
import shutil
import struct
import typing as t
from pathlib import Path

from . import flashcache_text as text
from .flashcache_text import AROUND, BACK, THROUGH

State = t.Dict[str, t.Any]

RUNNING, CLEAN, FAST_CLEAN, UNSTABLE = 0xDEADBEEF, 0xFACECAFE, 0xCAFEFEED, 0xC8249756
VALID = frozenset({RUNNING, CLEAN, FAST_CLEAN, UNSTABLE})
_FORMAT = 4
SUPERBLOCK = struct.Struct("<QIII128s4xQ128sQIIII")

#: Blocks that one tick of a flush writes back.
FLUSHED_IN_A_TICK = 1000

_COMMON = {
    "cache_all": 1,
    "do_pid_expiry": 0,
    "io_latency_hist": 0,
    "lru_hot_pct": 75,
    "lru_promote_thresh": 2,
    "max_pids": 100,
    "pid_expiry_secs": 60,
    "reclaim_policy": 0,
    "skip_seq_thresh_kb": 0,
    "zero_stats": 0,
}
_BACK = {
    "clean_on_read_miss": 0,
    "clean_on_write_miss": 0,
    "dirty_thresh_pct": 20,
    "do_sync": 0,
    "fallow_clean_speed": 2,
    "fallow_delay": 900,
    "fast_remove": 0,
    "max_clean_ios_set": 2,
    "max_clean_ios_total": 4,
    "new_style_write_merge": 0,
    "stop_sync": 0,
}
#: Sectors of a block, of the cache (0 is the whole device), associativity, disk associativity, write only, sectors of a metadata block.
_DEFAULTS = [8, 0, 512, 0, 0, 8]
_CLAMPED = {"dirty_thresh_pct": (10, 95), "fallow_clean_speed": (1, 100)}


class Rejected(Exception):
    """The kernel takes a request not; the text is the error that dmsetup prints."""


def host(*, root: str, memory: int = 8 << 30, module: str = "loaded", version: str = "flashcache-4.18") -> State:
    """A machine with flashcache.

    :param root: the folder that is its root.
    :param memory: bytes.
    :param module: ``loaded``, ``installed`` (modprobe would find it) or ``missing``.
    """
    return {
        "root": root,
        "memory": memory,
        "module": module,
        "version": version,
        "histogram": {},
        "caches": {},
        "media": {},
        "pages": {},
        "removing": {},
        "lost": 0,
        "minors": 0,
    }


class Kernel:
    """The flashcache of one machine.

    :param host: its state, changed in place.
    :param faults: of the simulator.
    """

    def __init__(self, host: State, faults: t.Mapping[str, t.Any]) -> None:
        self.host = host
        self.faults = faults
        self.root = Path(host["root"])
        # JSON has no integer keys.
        self.histogram = {int(size): count for size, count in host["histogram"].items()}

    # -- devices

    def node(self, path: str) -> Path:
        """The file behind a path."""
        return Path(os.path.realpath(self.root / path.lstrip("/")))

    def sectors(self, path: str) -> int:
        """The size of a device: what sysfs says, or the size of the file."""
        place = self.root / "sys/class/block" / self.node(path).name / "size"
        return int(place.read_text()) if place.exists() else self.node(path).stat().st_size // 512

    def sector_size(self, path: str) -> int:
        place = self.root / "sys/class/block" / self.node(path).name / "queue/logical_block_size"
        return int(place.read_text()) if place.exists() else 512

    def held(self, path: str) -> bool:
        """Whether a cache has it."""
        used = [*self.host["caches"].values(), *self.host["removing"].values()]
        return any(self.node(path) in (self.node(cache["ssd"]), self.node(cache["disk"])) for cache in used)

    def cached_head(self, path: str) -> bytes:
        """The beginning of a device as the page cache has it: what was first read stays, whatever the kernel writes below."""
        key = str(self.node(path))
        if key not in self.host["pages"]:
            self.host["pages"][key] = self.head(path).hex()
        return bytes.fromhex(self.host["pages"][key])

    def forget_pages(self, path: str) -> None:
        """``blockdev --flushbufs``."""
        self.host["pages"].pop(str(self.node(path)), None)

    def head(self, path: str) -> bytes:
        with self.node(path).open("rb") as device:
            return device.read(512).ljust(512, b"\0")

    def write_head(self, path: str, content: bytes) -> None:
        with self.node(path).open("r+b") as device:
            device.write(content)

    def superblock(self, path: str) -> tuple[t.Any, ...] | None:
        """The fields of ``struct flash_superblock``, past the page cache."""
        fields = SUPERBLOCK.unpack_from(self.head(path))
        return fields if fields[3] in VALID else None

    def dirty_on(self, path: str) -> int:
        """Dirty blocks in the metadata on an SSD."""
        return self.host["media"].get(str(self.node(path)), {}).get("dirty", 0)

    # -- making, loading, removing

    def load(self) -> None:
        """``modprobe flashcache``."""
        self.host["module"] = "loaded"
        self._show_module()

    def _show_module(self) -> None:
        (self.root / "sys/module/flashcache").mkdir(parents=True, exist_ok=True)

    def construct(self, name: str, sectors: int, words: t.Sequence[str]) -> None:
        """A table of the target: ``disk ssd name mode persistence [block size associativity disk_associativity write_only metadata]``.

        :raises Rejected: as ``flashcache_ctr`` would.
        """
        if self.host["module"] != "loaded":
            raise Rejected("reload ioctl on {name} failed: Invalid argument")
        if name in self.host["caches"]:
            raise Rejected("create ioctl on {name} failed: Device or resource busy")
        disk, ssd, mode = words[0], words[1], int(words[3])
        if self.held(disk) or self.held(ssd) or self.faults.get("busy"):
            raise Rejected("reload ioctl on {name} failed: Device or resource busy")
        reload = mode == BACK and int(words[4]) == 1
        cache = self._loaded(disk, ssd, name) if reload else self._made(disk, ssd, mode, [int(word) for word in words[5:]])
        cache.update(name=name, minor=self.host["minors"], sectors=sectors)
        self.host["minors"] += 1
        self.host["caches"][name] = cache
        if mode == BACK:
            self._store(cache, RUNNING)
        self._publish(cache)

    def _made(self, disk: str, ssd: str, mode: int, numbers: list[int]) -> State:
        block, size, associativity, disk_associativity, write_only, metadata = numbers + _DEFAULTS[len(numbers) :]
        sectors = size or self.sectors(ssd)
        if not 256 <= associativity <= 8192 or associativity & (associativity - 1) or (write_only and mode != BACK):
            raise Rejected("reload ioctl on {name} failed: Invalid argument")
        if mode == BACK:
            found = self.superblock(ssd)
            if found is not None and found[3] != UNSTABLE:
                raise Rejected("reload ioctl on {name} failed: Invalid argument")
            if associativity < metadata * 512 // 16:
                raise Rejected("reload ioctl on {name} failed: Invalid argument")
            sectors -= (sectors // block // (metadata * 32) + 2) * metadata
        blocks = sectors // block // associativity * associativity
        self._overwrite(ssd)
        if mode != BACK:
            # Data begins at the first sector: a copy of whatever the disk begins with, which is how file systems come to be there twice.
            self.write_head(ssd, self.faults.get("first_block", "").encode().ljust(512, b"\0"))
        made = {"block": block, "blocks": blocks, "associativity": associativity, "disk_associativity": disk_associativity}
        made.update(write_only=bool(write_only), metadata=metadata if mode == BACK else 0)
        return self._idle(ssd, disk, mode, made)

    def _loaded(self, disk: str, ssd: str, name: str) -> State:
        found = self.superblock(ssd)
        if found is None or found[3] == UNSTABLE:
            raise Rejected("reload ioctl on {name} failed: Invalid argument")
        blocks, block, associativity, _state, _name, _ssd_size, _disk, _disk_size, _version, metadata, disk_associativity, write_only = found
        medium = self.host["media"].get(str(self.node(ssd)), {"dirty": 0, "cached": 0})
        clean = found[3] in (CLEAN, FAST_CLEAN)
        made = {"block": block, "blocks": blocks, "associativity": associativity, "disk_associativity": disk_associativity}
        made.update(write_only=bool(write_only), metadata=metadata)
        # After a crash only what is dirty is taken back.
        return {**self._idle(ssd, disk, BACK, made), "dirty": medium["dirty"], "cached": medium["cached"] if clean else medium["dirty"]}

    def _idle(self, ssd: str, disk: str, mode: int, made: State) -> State:
        return {
            "ssd": ssd,
            "disk": disk,
            "mode": mode,
            **made,
            "cached": 0,
            "dirty": 0,
            "busy": 0,
            "syncing": False,
            "opened": 0,
            **{name: {} for name in ("seen", "shown", "counters", "errors")},
            **{name: [] for name in ("blacklist", "whitelist")},
        }

    def begin_removal(self, name: str, ticks: int = 0) -> None:
        """``dmsetup remove``: the name goes at once, the devices are let go when everything is written.

        :param ticks: how long that takes; meanwhile nothing shows the cache but the holders of its devices.
        :raises Rejected: if it is not there or in use.
        """
        cache = self.host["caches"].get(name)
        if cache is None:
            raise Rejected("remove ioctl on {name} failed: No such device or address")
        if self.opened(cache):
            raise Rejected("remove ioctl on {name} failed: Device or resource busy")
        cache["fast"] = bool(self.sysctl(cache, "fast_remove"))
        cache["ticks"] = ticks
        del self.host["caches"][name]
        self.host["removing"][name] = cache
        self._conceal(cache)
        if ticks == 0:
            self._end_removal(name)

    def _end_removal(self, name: str) -> None:
        cache = self.host["removing"].pop(name)
        if cache["mode"] == BACK:
            if not cache["fast"]:
                cache["dirty"] = 0
            state = UNSTABLE if self.faults.get("metadata_fails") else FAST_CLEAN if cache["dirty"] else CLEAN
            self._store(cache, state)
        self._withdraw(cache)

    def crash(self) -> None:
        """A power cut: no cache runs any more, what is on the media stays, sysctls are forgotten, the page cache is empty."""
        for cache in [*self.host["caches"].values(), *self.host["removing"].values()]:
            self._conceal(cache)
            self._withdraw(cache)
        self.host.update(caches={}, removing={}, pages={}, histogram={})

    def destroy(self, path: str) -> None:
        """What flashcache_destroy writes: the page as it has it, without its magic."""
        page = bytearray(self.cached_head(path))
        page[16:20] = bytes(4)
        self._overwrite(path)
        self.write_head(path, bytes(page))
        self.host["pages"][str(self.node(path))] = bytes(page).hex()

    def _overwrite(self, path: str) -> None:
        """Whatever was dirty on an SSD is lost with its metadata."""
        self.host["lost"] += self.host["media"].pop(str(self.node(path)), {}).get("dirty", 0)

    def _store(self, cache: State, state: int) -> None:
        cells = (cache["blocks"], cache["block"], cache["associativity"], state, cache["name"].encode(), self.sectors(cache["ssd"]))
        rest = (cache["disk"].encode(), self.sectors(cache["disk"]), _FORMAT, cache["metadata"], cache["disk_associativity"], int(cache["write_only"]))
        self.write_head(cache["ssd"], SUPERBLOCK.pack(*cells, *rest).ljust(512, b"\0"))
        self.host["media"][str(self.node(cache["ssd"]))] = {"dirty": cache["dirty"], "cached": cache["cached"]}

    # -- running

    def opened(self, cache: State) -> int:
        """How often a cache is open: mounts of it below the root, and what a test says."""
        mounts = self.root / "proc/self/mountinfo"
        lines = mounts.read_text().splitlines() if mounts.exists() else []
        return cache["opened"] + sum(1 for line in lines if line.split()[2:3] == [f"253:{cache['minor']}"])

    def write(self, name: str, blocks: int) -> None:
        """Write whole blocks that were not cached."""
        cache = self.host["caches"][name]
        counters = cache["counters"]
        counters["writes"] = counters.get("writes", 0) + blocks
        self._count(cache["block"] * 512, blocks)
        if cache["mode"] == AROUND or not (self.sysctl(cache, "cache_all", 1) or cache["whitelist"]):
            counters["uncached_writes"] = counters.get("uncached_writes", 0) + blocks
            counters["disk_writes"] = counters.get("disk_writes", 0) + blocks
            return
        counters["ssd_writes"] = counters.get("ssd_writes", 0) + blocks
        cache["cached"] = min(cache["cached"] + blocks, cache["blocks"])
        if cache["mode"] == THROUGH:
            counters["disk_writes"] = counters.get("disk_writes", 0) + blocks
            return
        cache["dirty"] = min(cache["dirty"] + blocks, cache["blocks"])
        self.host["media"][str(self.node(cache["ssd"]))] = {"dirty": cache["dirty"], "cached": cache["cached"]}

    def send(self, name: str, sizes: t.Mapping[int, int]) -> None:
        """Read pieces of these sizes, none of them cached before."""
        cache = self.host["caches"][name]
        counters = cache["counters"]
        for size, count in sizes.items():
            self._count(size, count)
            counters["reads"] = counters.get("reads", 0) + count
            counters["disk_reads"] = counters.get("disk_reads", 0) + count
            if size != cache["block"] * 512:
                counters["uncached_reads"] = counters.get("uncached_reads", 0) + count
            else:
                cache["cached"] = min(cache["cached"] + count, cache["blocks"])

    def _count(self, size: int, count: int) -> None:
        if size <= 16384:
            self.histogram[size] = self.histogram.get(size, 0) + count
            self.host["histogram"] = {str(key): value for key, value in self.histogram.items()}

    def tick(self) -> None:
        """Time passes: sysctls that were written take effect, flushes and removals go on, writers write."""
        for name in list(self.host["removing"]):
            cache = self.host["removing"][name]
            cache["ticks"] -= 1
            if cache["ticks"] <= 0:
                self._end_removal(name)
        for name, blocks in self.faults.get("writers", {}).items():
            if name in self.host["caches"]:
                self.write(name, blocks)
        self.settle()
        for cache in self.host["caches"].values():
            if cache["syncing"] and not self.faults.get("disk_fails"):
                self._flush_some(cache)
        self.settle()

    def _flush_some(self, cache: State) -> None:
        left = max(cache["dirty"] - FLUSHED_IN_A_TICK, min(cache["busy"], cache["dirty"]))
        written = cache["dirty"] - left
        cache["dirty"] = left
        counters = cache["counters"]
        for name in ("cleanings", "metadata_cleans", "disk_writes", "ssd_reads"):
            counters[name] = counters.get(name, 0) + written
        self.host["media"][str(self.node(cache["ssd"]))] = {"dirty": left, "cached": cache["cached"]}
        if left <= cache["busy"]:
            # One pass over the cache has ended, without the blocks that were busy.
            cache["syncing"] = False
            cache["busy"] = 0

    def settle(self) -> None:
        """What was written to sysctls is taken, and /proc shows what is."""
        for cache in self.host["caches"].values():
            self._take_sysctls(cache)
            self._show(cache)

    # -- /proc

    def folder(self, cache: State) -> str:
        return f"{cache['ssd'].rsplit('/', 1)[1]}+{cache['disk'].rsplit('/', 1)[1]}"

    def sysctl(self, cache: State, key: str, default: int = 0) -> int:
        """One sysctl of a cache, as it stands in its file."""
        try:
            word = (self.root / "proc/sys/dev/flashcache" / self.folder(cache) / key).read_text().strip()
        except FileNotFoundError:
            return default
        return int(word) if word.lstrip("-").isdigit() else 0

    def _take_sysctls(self, cache: State) -> None:
        """The sysctls that were written since the last look, told by the time: a second 1 is a second request."""
        place = self.root / "proc/sys/dev/flashcache" / self.folder(cache)
        for key in (*_CLAMPED, "do_sync", "stop_sync", "zero_stats") if cache["mode"] == BACK else ("zero_stats",):
            written = (place / key).stat().st_mtime_ns
            first, seen = key not in cache["seen"], cache["seen"].get(key)
            if written == seen:
                continue
            value = self.sysctl(cache, key)
            if key in _CLAMPED:
                least, most = _CLAMPED[key]
                if not least <= value <= most:
                    (place / key).write_text(f"{min(max(value, least), most)}\n")
            elif value and not first:
                self._act(cache, key, place)
            cache["seen"][key] = (place / key).stat().st_mtime_ns

    def _act(self, cache: State, key: str, place: Path) -> None:
        if key == "zero_stats":
            cache["counters"] = {}
        else:
            cache["syncing"] = key == "do_sync"
        if key == "do_sync":
            (place / "stop_sync").write_text("0\n")

    def _show(self, cache: State) -> None:
        place = self.root / "proc/flashcache" / self.folder(cache)
        place.mkdir(parents=True, exist_ok=True)
        files = {
            "flashcache_stats": text.statistics(cache),
            "flashcache_errors": text.errors(cache),
            "flashcache_iosize_hist": text.histogram_file(self.histogram),
            "flashcache_pidlists": text.pid_lists(cache),
            "../flashcache_version": text.version(self.host["version"]),
        }
        for name, content in files.items():
            if cache["shown"].get(name) != content:
                (place / name).write_text(content)
                cache["shown"][name] = content

    def _publish(self, cache: State) -> None:
        defaults = {**_COMMON, **(_BACK if cache["mode"] == BACK else {})}
        if cache["write_only"]:
            # Idle blocks of a cache of writes alone are not cleaned.
            defaults["fallow_delay"] = 0
        place = self.root / "proc/sys/dev/flashcache" / self.folder(cache)
        place.mkdir(parents=True, exist_ok=True)
        for key, value in defaults.items():
            (place / key).write_text(f"{value}\n")
        self._publish_device(cache)

    def _publish_device(self, cache: State) -> None:
        """The device-mapper device in sysfs and /dev, where the root has a sysfs."""
        classes = self.root / "sys/class/block"
        if not classes.is_dir():
            return
        name = f"dm-{cache['minor']}"
        place = self.root / "sys/devices/virtual/block" / name
        files = {"dev": f"253:{cache['minor']}", "size": str(cache["sectors"]), "ro": "0", "dm/name": cache["name"], "dm/uuid": ""}
        files.update({"queue/write_cache": "write through", "queue/rotational": "0", "queue/logical_block_size": "512"})
        for file, content in files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(content + "\n")
        for folder in ("slaves", "holders"):
            (place / folder).mkdir(exist_ok=True)
        (classes / name).symlink_to(place)
        for path in (cache["ssd"], cache["disk"]):
            below = Path(os.path.realpath(classes / self.node(path).name))
            (place / "slaves" / below.name).symlink_to(below)
            (below / "holders" / name).symlink_to(place)
        (self.root / "dev" / name).write_bytes(b"")
        (self.root / "dev/mapper").mkdir(parents=True, exist_ok=True)
        (self.root / "dev/mapper" / cache["name"]).symlink_to(self.root / "dev" / name)

    def _conceal(self, cache: State) -> None:
        """The name and /proc go first."""
        shutil.rmtree(self.root / "proc/sys/dev/flashcache" / self.folder(cache), ignore_errors=True)
        shutil.rmtree(self.root / "proc/flashcache" / self.folder(cache), ignore_errors=True)
        self._unlink_device(cache)

    def _unlink_device(self, cache: State) -> None:
        (self.root / "dev/mapper" / cache["name"]).unlink(missing_ok=True)
        (self.root / f"sys/devices/virtual/block/dm-{cache['minor']}/dm/name").unlink(missing_ok=True)

    def _withdraw(self, cache: State) -> None:
        name = f"dm-{cache['minor']}"
        for path in (cache["ssd"], cache["disk"]):
            (self.root / "sys/class/block" / self.node(path).name / "holders" / name).unlink(missing_ok=True)
        (self.root / "sys/class/block" / name).unlink(missing_ok=True)
        (self.root / "dev" / name).unlink(missing_ok=True)
        shutil.rmtree(self.root / "sys/devices/virtual/block" / name, ignore_errors=True)
