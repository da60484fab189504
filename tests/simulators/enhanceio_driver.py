# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for the kernel driver of EnhanceIO: caches with real blocks in them, their files in /proc, their superblocks.

It is a model of what the public driver does, read from its source (Driver/enhanceio: eio_conf.c, eio_ttc.c, eio_procfs.c,
eio_main.c, eio_subr.c) and written anew. Devices are plain files below a root that is not "/", or those of a machine in the view of
on_machine/view.sh; what is written through the model is kept block by block, so that a test can tell whether a byte was lost.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import typing as t
from pathlib import Path

from .on_machine import machine

State = t.Dict[str, t.Any]

WRITEBACK, READ_ONLY, WRITETHROUGH = 1, 2, 3
FAST_REMOVE, DEGRADED, FAILED, STALE, CHANGING = 1 << 2, 1 << 3, 1 << 6, 1 << 7, 1 << 9
CLEAN_START, CLEAN_KEEP = 1, 2
SB_RUNNING, SB_CLEAN, SB_DIRTY = 0x55DADDEE, 0xACCEDED1, 0xCAFEBABF
_MAGIC, _VERSION, _OFFSET = 0xE10CAC6E, 3, 65536
_RELOAD = 1
#: Name, lowest, highest, default; those of write-back only.
_LIMITS = {
    "time_based_clean_interval": (0, 720, 1),
    "autoclean_threshold": (0, 1024, 128),
    "dirty_high_threshold": (0, 100, 30),
    "dirty_low_threshold": (0, 100, 10),
    "dirty_set_high_threshold": (0, 100, 100),
    "dirty_set_low_threshold": (0, 100, 30),
}
_STATS = (
    *("reads", "writes", "read_hits", "read_hit_pct", "write_hits", "write_hit_pct", "dirty_write_hits", "dirty_write_hit_pct", "cached_blocks"),
    *("rd_replace", "wr_replace", "noroom", "cleanings", "md_write_dirty", "md_write_clean", "md_ssd_writes", "do_clean", "nr_blocks", "nr_dirty"),
    *("nr_sets", "clean_index", "uncached_reads", "uncached_writes", "uncached_map_size", "uncached_map_uncacheable", "disk_reads", "disk_writes"),
    *("ssd_reads", "ssd_writes", "ssd_readfills", "ssd_readfill_unplugs", "readdisk", "writedisk", "readcache", "readfill", "writecache"),
    *("readcount", "writecount", "kb_reads", "kb_writes", "rdtime_ms", "wrtime_ms", "unaligned_ios"),
)
#: Of a cache whose metadata has 8 more bytes for each block, as that of every device from 1 GiB on.
_LARGE = 1 << 5


def new_state(root: str, *, module: str = "loaded", drain: int = 1000) -> State:
    """A host.

    :param module: ``loaded``, ``available`` or ``absent``.
    :param drain: blocks that are written back between two ticks.
    """
    if Path(root) == Path("/") and not machine.is_real(Path(root)):
        raise ValueError("the simulated driver writes below its own root, which can be that of this machine only in the view of on_machine/view.sh")
    return {"root": root, "module": module, "drain": drain, "caches": {}, "disks": {}, "media": {}, "gone": [], "faults": {}, "published": {}}


class Driver:
    """The driver with the caches of a host. Everything is in ``state``, plain data, changed in place.

    ``disks`` has the blocks of every device by the path of its node, ``media`` what is on a cache device when its cache does
    not run: blocks, which of them are dirty, and the thresholds.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.root = Path(state["root"])
        self.real = machine.is_real(self.root)
        if self.real:
            self._notice_boot()

    def _notice_boot(self) -> None:
        """After a boot of the real machine no cache runs, as after a power cut."""
        boot = machine.boot()
        if self.state.get("boot") not in (None, boot):
            self.state.update(published={})
            self.power_cut()
        self.state["boot"] = boot
        if self.loaded:
            machine.show_module("enhanceio")

    # -- the module

    @property
    def loaded(self) -> bool:
        return self.state["module"] == "loaded"

    def load(self) -> bool:
        """modprobe; whether the driver is there now."""
        if self.state["module"] == "available":
            self.state["module"] = "loaded"
            self.publish()
        if self.real and self.loaded:
            machine.show_module("enhanceio")
        return self.loaded

    # -- what the ioctl does: 0 or an errno

    def create(self, name: str, source: str, fast: str, *, mode: int, policy: int, set_size: int, persistence: int = 0, block_size: int = 0) -> int:
        """EIO_IOC_CREATE and, with ``persistence`` 1, EIO_IOC_ENABLE. A new cache takes the device whatever is on it.

        :param block_size: what eio_cli passes; the fault ``block_size_ignored`` is that of a driver and an eio_cli that do not belong together.
        """
        disk, ssd = self.node(source), self.node(fast)
        if disk is None or ssd is None:
            return errno.ENOENT
        caches = self.state["caches"]
        if disk == ssd or any(cache["disk"] == disk for cache in caches.values()):
            return errno.EINVAL
        if name in caches:
            return errno.EEXIST
        cache = {
            "source": source,
            "fast": fast,
            "disk": disk,
            "ssd": ssd,
            "mode": mode or WRITETHROUGH,
            "policy": policy or 1,
            "effective_policy": policy or 1,
            "flags": 0,
            "do_clean": 0,
            "block_size": 4096 if self.state.get("block_size_ignored") else block_size or 4096,
            "set_size": set_size or 512,
            "blocks": {},
            "dirty": [],
            "errors": {},
            "stats": dict.fromkeys(_STATS, 0),
            "sysctls": {"mem_limit_pct": 75, "control": 0, "cache_wronly": 0, **{key: default for key, (_low, _high, default) in _LIMITS.items()}},
        }
        if persistence == _RELOAD:
            loaded = self._load(cache, name)
            if loaded:
                return loaded
        caches[name] = cache
        self._store(name, SB_RUNNING)
        self.publish()
        return 0

    def _load(self, cache: State, name: str) -> int:
        found = self.superblock(cache["ssd"])
        if found is None or found["version"] != _VERSION:
            return errno.EINVAL
        media = self.state["media"].get(cache["ssd"], {"blocks": {}, "dirty": [], "sysctls": {}})
        dirty = list(media["dirty"])
        if dirty and cache["mode"] != WRITEBACK:
            return errno.EINVAL
        # After an unclean shutdown nothing but what is dirty is known.
        warm = found["state"] in (SB_CLEAN, SB_DIRTY)
        cache["blocks"] = {block: value for block, value in media["blocks"].items() if warm or block in dirty}
        cache["dirty"] = dirty
        cache["sysctls"].update(media["sysctls"])
        cache.update(block_size=found["block_size"], set_size=found["set_size"], flags=found["flags"])
        return 0

    def edit(self, name: str, mode: int, policy: int) -> int:
        """EIO_IOC_EDIT: leaving write-back flushes in the kernel, unless fast removal is on."""
        cache = self.state["caches"].get(name)
        if cache is None or cache["flags"] & (FAILED | DEGRADED | CHANGING):
            if cache is not None and (cache["mode"], cache["policy"]) == (mode, policy):
                return 0
            return errno.EINVAL
        if (cache["mode"], cache["policy"]) == (mode, policy):
            return 0
        if cache["mode"] == WRITEBACK and mode != WRITEBACK:
            if self.state["faults"].get("write_errors"):
                return errno.EINVAL
            self._clean(cache, len(cache["dirty"]))
        # As the driver does it on Linux 5.10: the policy that was requested before is made again, and the new word is kept.
        effective = cache["effective_policy"] if policy == cache["policy"] else cache["policy"]
        cache.update(mode=mode, policy=policy, effective_policy=effective, do_clean=0)
        self._store(name, SB_RUNNING)
        self.publish()
        return 0

    def delete(self, name: str) -> int:
        """EIO_IOC_DELETE and EIO_IOC_DISABLE: a cache that is stale and failed is dropped with all that is dirty."""
        cache = self.state["caches"].get(name)
        if cache is None or cache["flags"] & CHANGING:
            return errno.EINVAL
        forced = bool(cache["flags"] & STALE and cache["flags"] & FAILED)
        if not forced:
            if cache["mode"] == WRITEBACK and not cache["flags"] & FAILED:
                if self.state["faults"].get("write_errors") and cache["dirty"]:
                    cache["flags"] |= STALE
                    self.publish()
                    return errno.EPERM
                self._clean(cache, len(cache["dirty"]))
            if not cache["flags"] & (FAILED | DEGRADED):
                self._shut_down(name)
        del self.state["caches"][name]
        self.publish()
        return 0

    def give_back(self, name: str, fast: str) -> int:
        """EIO_IOC_SSD_ADD; always 0: what came of it is in ``config``."""
        cache, ssd = self.state["caches"].get(name), self.node(fast)
        if cache is None or ssd is None or not cache["flags"] & DEGRADED or cache["mode"] == WRITEBACK:
            return 0
        cache["flags"] &= ~DEGRADED
        cache.update(fast=fast, ssd=ssd, blocks={}, errors={})
        self._store(name, SB_RUNNING)
        self.publish()
        return 0

    # -- sysctls

    def write_sysctl(self, name: str, key: str, value: int) -> int:
        """0, or the errno of a write below /proc/sys/dev/enhanceio."""
        cache = self.state["caches"].get(name)
        if cache is None or (key not in cache["sysctls"] and key not in ("do_clean", "zero_stats")) or not self._shows(cache, key):
            return errno.ENOENT
        if key == "do_clean":
            failed = self._set_do_clean(cache, value)
        elif key == "control":
            failed = self._set_control(cache, value)
        elif key == "zero_stats":
            failed = 0 if value in (0, 1) else errno.EINVAL
            if value == 1:
                cache["stats"] = {**dict.fromkeys(_STATS, 0)}
        elif key == "cache_wronly":
            failed = 0 if value in (0, 1) else errno.EINVAL
        elif key == "mem_limit_pct":
            failed = 0 if 0 <= value <= 100 else errno.EINVAL
        else:
            failed = self._set_threshold(cache, key, value)
        if not failed and key in cache["sysctls"]:
            cache["sysctls"][key] = value
            if key in _LIMITS:
                self._store(name, SB_RUNNING)
        self.publish()
        return failed

    def read_sysctl(self, name: str, key: str) -> int | None:
        """A number below /proc/sys/dev/enhanceio; None without such a file."""
        cache = self.state["caches"].get(name)
        if cache is None or not self._shows(cache, key):
            return None
        return cache["do_clean"] if key == "do_clean" else cache["sysctls"].get(key)

    def _shows(self, cache: State, key: str) -> bool:
        return cache["mode"] == WRITEBACK or key in ("zero_stats", "mem_limit_pct", "control")

    def _set_do_clean(self, cache: State, value: int) -> int:
        if cache["mode"] != WRITEBACK or value & ~(CLEAN_START | CLEAN_KEEP):
            return errno.EINVAL
        if cache["flags"] & CHANGING:
            return errno.EBUSY
        if value != cache["do_clean"]:
            # Whatever is asked for, a cleaning begins.
            cache["do_clean"] = value | CLEAN_START if value else 0
        return 0

    def _set_control(self, cache: State, value: int) -> int:
        if not 0 <= value <= 7:
            return errno.EINVAL
        if value in (6, 7) and cache["mode"] == WRITEBACK:
            return errno.EPERM
        if value == 6:
            cache["flags"] |= FAST_REMOVE
        elif value == 7:
            cache["flags"] &= ~FAST_REMOVE
        return 0

    def _set_threshold(self, cache: State, key: str, value: int) -> int:
        lowest, highest, _default = _LIMITS.get(key, (0, 1, 0))
        if not lowest <= value <= highest:
            return errno.EINVAL
        after = {**cache["sysctls"], key: value}
        pairs = (("dirty_low_threshold", "dirty_high_threshold"), ("dirty_set_low_threshold", "dirty_set_high_threshold"))
        return errno.EINVAL if any(after[low] > after[high] for low, high in pairs) else 0

    # -- requests

    def write(self, path: str, block: int, value: str) -> None:
        """A whole block written to a device, through the cache if one runs on it.

        :raises OSError: if the cache has failed.
        """
        disk = self._require(path)
        cache = next((cache for cache in self.state["caches"].values() if cache["disk"] == disk), None)
        if cache is None:
            self._disk(disk)[str(block)] = value
            return
        if cache["flags"] & FAILED:
            raise OSError(errno.ENODEV, "the cache has failed")
        cache["stats"]["writes"] += cache["block_size"] // 512
        if cache["mode"] == READ_ONLY or cache["flags"] & DEGRADED:
            cache["blocks"].pop(str(block), None)
            self._disk(disk)[str(block)] = value
        elif cache["mode"] == WRITEBACK and not cache["do_clean"] & CLEAN_KEEP:
            cache["blocks"][str(block)] = value
            if str(block) not in cache["dirty"]:
                cache["dirty"].append(str(block))
            self._remember(cache)
        else:
            self._disk(disk)[str(block)] = cache["blocks"][str(block)] = value
            # What was dirty before stays so and is overwritten in both places.
            self._remember(cache)
        self.publish()

    def read(self, path: str, block: int) -> str | None:
        """A block of a device, through the cache if one runs on it."""
        disk = self._require(path)
        cache = next((cache for cache in self.state["caches"].values() if cache["disk"] == disk), None)
        if cache is None or cache["flags"] & DEGRADED:
            return self._disk(disk).get(str(block))
        if cache["flags"] & FAILED:
            raise OSError(errno.ENODEV, "the cache has failed")
        cache["stats"]["reads"] += cache["block_size"] // 512
        if str(block) in cache["blocks"]:
            cache["stats"]["read_hits"] += cache["block_size"] // 512
        elif str(block) in self._disk(disk):
            cache["blocks"][str(block)] = self._disk(disk)[str(block)]
        self.publish()
        return cache["blocks"].get(str(block))

    # -- time, and what happens to a host

    def pass_time(self) -> None:
        """On a real machine, whose driver would go on between two commands: as much time as a cleaning that was begun needs."""
        for _moment in range(1000):
            self.tick()
            if not any(cache["do_clean"] & CLEAN_START for cache in self.state["caches"].values()):
                return

    def tick(self) -> None:
        """A moment passes: caches that are being cleaned become cleaner."""
        for name, count in self.state["faults"].get("writers", {}).items():
            self._write_new_blocks(name, count)
        for cache in self.state["caches"].values():
            if cache["do_clean"] & CLEAN_START and not cache["flags"] & FAILED:
                if not self.state["faults"].get("write_errors"):
                    self._clean(cache, self.state["drain"])
                if not cache["dirty"] or self.state["faults"].get("write_errors"):
                    cache["do_clean"] &= ~CLEAN_START
        self.publish()

    def _write_new_blocks(self, name: str, count: int) -> None:
        cache = self.state["caches"].get(name)
        if cache is None or cache["mode"] != WRITEBACK or cache["do_clean"] & CLEAN_KEEP:
            return
        first = len(cache["blocks"])
        new = [str(block) for block in range(first, min(first + count, self._count(cache)))]
        cache["blocks"].update(dict.fromkeys(new, ""))
        cache["dirty"] += new
        self._remember(cache)

    def shut_down(self) -> None:
        """An orderly end: the driver stores the metadata of every cache. What runs afterwards is a machine that boots."""
        for name, cache in self.state["caches"].items():
            if not cache["flags"] & (FAILED | DEGRADED):
                self._shut_down(name)
        self.power_cut()

    def power_cut(self) -> None:
        """Everything in memory is gone."""
        self.state["caches"] = {}
        if self.loaded:
            self.state["module"] = "available"
        self.publish()

    def lose(self, path: str) -> None:
        """A device goes away."""
        node = self._require(path)
        self.state["gone"].append(node)
        for cache in self.state["caches"].values():
            if cache["disk"] == node:
                cache["flags"] = (cache["flags"] & ~DEGRADED) | FAILED
                cache["errors"]["no_source_dev"] = 1
            elif cache["ssd"] == node:
                cache["flags"] |= FAILED if cache["mode"] == WRITEBACK else DEGRADED
                cache["errors"]["no_cache_dev"] = 1
        self.publish()

    # -- devices

    def node(self, path: str) -> str | None:
        """The device node behind a path, as a path below the root; None if it is not there."""
        real = Path(os.path.realpath(self.root / path.lstrip("/")))
        there = real.is_block_device() if self.real else real.is_file()
        return str(real) if there and str(real) not in self.state["gone"] else None

    def _require(self, path: str) -> str:
        node = self.node(path)
        if node is None:
            raise OSError(errno.ENOENT, path)
        return node

    def _disk(self, node: str) -> State:
        return self.state["disks"].setdefault(node, {})

    def superblock(self, node: str) -> State | None:
        """What lies on a device, read from the device."""
        with open(node, "rb") as device:
            device.seek(_OFFSET)
            head = device.read(4096)
        if len(head) < 444 or struct.unpack_from("<I", head, 440)[0] != _MAGIC:
            return None
        sectors, set_size, state = struct.unpack_from("<III", head, 8)
        version = struct.unpack_from("<I", head, 296)[0]
        mode, policy, flags = struct.unpack_from("<III", head, 428)
        if state not in (SB_RUNNING, SB_CLEAN, SB_DIRTY):
            return None
        return {"state": state, "version": version, "block_size": sectors * 512, "set_size": set_size, "mode": mode, "policy": policy, "flags": flags}

    def _store(self, name: str, state: int) -> None:
        """Write the superblock, and the metadata that is written at any time: what is dirty."""
        cache = self.state["caches"][name]
        if cache["flags"] & (FAILED | DEGRADED):
            return
        head = bytearray(4096)
        struct.pack_into("<QIII", head, 0, self._count(cache), cache["block_size"] // 512, cache["set_size"], state)
        struct.pack_into("<128sxxxxQ128sQI128s", head, 20, cache["fast"].encode(), 0, cache["source"].encode(), 0, _VERSION, name.encode())
        struct.pack_into("<IIII", head, 428, cache["mode"], cache["policy"], cache["flags"] & FAST_REMOVE, _MAGIC)
        if self.real:
            machine.write(cache["ssd"], _OFFSET, bytes(head))
        else:
            with open(cache["ssd"], "r+b") as device:
                device.seek(_OFFSET)
                device.write(head)
        self._remember(cache)

    def _remember(self, cache: State) -> None:
        kept = {key: value for key, value in cache["sysctls"].items() if key in _LIMITS}
        media = self.state["media"].setdefault(cache["ssd"], {"blocks": {}, "dirty": [], "sysctls": {}})
        media.update(blocks=dict(cache["blocks"]), dirty=list(cache["dirty"]), sysctls=kept)

    def _shut_down(self, name: str) -> None:
        """``eio_md_store``: nothing is written with fast removal on."""
        cache = self.state["caches"][name]
        if not cache["flags"] & FAST_REMOVE:
            self._store(name, SB_DIRTY if cache["dirty"] else SB_CLEAN)

    def _clean(self, cache: State, count: int) -> None:
        if cache["flags"] & FAST_REMOVE:
            return
        done, cache["dirty"] = cache["dirty"][:count], cache["dirty"][count:]
        for block in done:
            self._disk(cache["disk"])[block] = cache["blocks"][block]
        self._remember(cache)

    def _count(self, cache: State) -> int:
        size = machine.sectors(cache["ssd"]) * 512 if self.real else max(os.path.getsize(cache["ssd"]), 1 << 30)
        # In front of them are the superblock and 16 bytes for each block.
        metadata = _OFFSET + 4096 + 16 * (size // cache["block_size"])
        blocks = (size - metadata) // cache["block_size"]
        return blocks // cache["set_size"] * cache["set_size"]

    # -- /proc

    def publish(self) -> None:
        """Make the files of /proc what they are now."""
        for folder in ("proc/enhanceio", "proc/sys/dev/enhanceio"):
            place = self.root / folder
            gone = [name for name in self.state["published"] if name.startswith(folder + "/") and name.rsplit("/", 1)[-1] not in self.state["caches"]]
            for name in gone:
                shutil.rmtree(self.root / name)
                del self.state["published"][name]
            if self.loaded:
                place.mkdir(parents=True, exist_ok=True)
            elif place.is_dir():
                shutil.rmtree(place)
        if not self.loaded:
            return
        version = self.root / "proc/enhanceio/version"
        if not version.exists():
            version.write_text("EnhanceIO Version: ENHANCEIO unknown-git-version (checksum disabled)\n")
        for name, cache in self.state["caches"].items():
            self._write(f"proc/enhanceio/{name}", {key: maker(cache) for key, maker in self._files.items()})
            shown = {key: f"{value}\n" for key, value in cache["sysctls"].items() if self._shows(cache, key)}
            shown["zero_stats"] = "0\n"
            if cache["mode"] == WRITEBACK:
                shown["do_clean"] = f"{cache['do_clean']}\n"
            self._write(f"proc/sys/dev/enhanceio/{name}", shown)

    def _write(self, folder: str, files: t.Mapping[str, str]) -> None:
        place, before = self.root / folder, self.state["published"].get(folder, {})
        place.mkdir(parents=True, exist_ok=True)
        for key in before:
            if key not in files:
                (place / key).unlink()
        for key, text in files.items():
            if before.get(key) != text:
                (place / key).write_text(text)
        self.state["published"][folder] = dict(files)

    @property
    def _files(self) -> dict[str, t.Callable[[State], str]]:
        return {"config": self.config, "stats": self.stats, "errors": self.errors, "io_hist": self.io_hist}

    def config(self, cache: State) -> str:
        """``/proc/enhanceio/NAME/config``."""
        blocks = self._count(cache)
        state = "degraded" if cache["flags"] & DEGRADED else "failed" if cache["flags"] & FAILED else "normal"
        return (
            f"src_name   {cache['source']}\nssd_name   {cache['fast']}\nsrc_size   {self._sectors(cache['disk'])}\nssd_size   {blocks}\n"
            f"set_size   {cache['set_size']:10d}\nblock_size {cache['block_size']:10d}\nmode       {cache['mode']:10d}\neviction   {cache['policy']:10d}\n"
            f"num_sets   {blocks // cache['set_size']:10d}\nnum_blocks {blocks:10d}\nmetadata        large\nstate        {state}\n"
            f"flags      0x{cache['flags'] | _LARGE:08x}\n"
        )

    def stats(self, cache: State) -> str:
        """``/proc/enhanceio/NAME/stats``."""
        values = {**cache["stats"], "cached_blocks": len(cache["blocks"]), "nr_dirty": len(cache["dirty"]), "do_clean": cache["do_clean"]}
        values["nr_blocks"] = self._count(cache)
        for kind in ("read", "write"):
            total = values[f"{kind}s"]
            values[f"{kind}_hit_pct"] = values[f"{kind}_hits"] * 100 // total if total else 0
            values[f"kb_{kind}s"] = total // 2
        return "".join(f"{name:<26} {values[name]:12d}\n" for name in _STATS)

    def errors(self, cache: State) -> str:
        """``/proc/enhanceio/NAME/errors``."""
        names = ("disk_read_errors", "disk_write_errors", "ssd_read_errors", "ssd_write_errors", "memory_alloc_errors", "no_cache_dev", "no_source_dev")
        return "".join(f"{name:<19} {cache['errors'].get(name, 0):4d}\n" for name in names)

    def io_hist(self, cache: State) -> str:
        """``/proc/enhanceio/NAME/io_hist``: only sizes that came."""
        count = (cache["stats"]["reads"] + cache["stats"]["writes"]) * 512 // cache["block_size"]
        return f"{cache['block_size']}  {count:12d}\n" if count else ""

    def _sectors(self, node: str) -> int:
        if self.real:
            return machine.sectors(node)
        return os.path.getsize(node) // 512 if Path(node).is_file() else 0
