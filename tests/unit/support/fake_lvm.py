# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small LVM that lives in memory and speaks like the real one, with the lies that the real one was heard to tell."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import parse_report
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.tests.unit.support.fake_modules import load_modules

MIB = 1024**2
EXTENT = 4 * MIB
HDD = BlockDevice(name="sda", path="/dev/sda", number="8:0", size=2048 * MIB, by_id=("/dev/disk/by-id/ata-HDD0",), serial="HDD0", rotational=True)
SSD = BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=513 * MIB, by_id=("/dev/disk/by-id/ata-SSD0",), serial="SSD0", rotational=False)
SSD1 = BlockDevice(name="sdc", path="/dev/sdc", number="8:32", size=513 * MIB, by_id=("/dev/disk/by-id/ata-SSD1",), serial="SSD1", rotational=False)
SSD_PATH = "/dev/disk/by-id/ata-SSD0"
SSD1_PATH = "/dev/disk/by-id/ata-SSD1"
PV_SIZES = {"/dev/sda": 2044 * MIB, "/dev/sdb": 512 * MIB, "/dev/sdc": 512 * MIB}
#: What no report can change.
READING = ("sync", "lvm", "lvs", "pvs", "dmsetup", "wipefs", "blkid", "udevadm", "lsinitramfs", "lsinitrd", "modprobe")


class Killed(BaseException):
    """The process was ended in the middle of its work."""


def make_dev(root: Path) -> None:
    """The nodes and links of the HDD and the SSDs below a folder; all are empty."""
    load_modules(root)
    (root / "dev/disk/by-id").mkdir(parents=True)
    for device in (HDD, SSD, SSD1):
        (root / device.path.lstrip("/")).write_bytes(bytes(4096))
        for link in device.by_id:
            (root / link.lstrip("/")).symlink_to(root / device.path.lstrip("/"))
    (root / "dev/vg").mkdir()
    (root / "dev/vg/data").write_bytes(bytes(4096))


class NamedDevices(Devices):
    """Devices that are found by their own path and their links, without a /dev."""

    def resolve(self, path: str, item: str | None = None) -> BlockDevice:
        for device in self:
            if path in (device.path, *device.by_id, *device.links):
                return device
        raise DeviceMissing(f"{path} does not exist on this host.", item=item or path)


def lv_row(full_name: str, attr: str, segtype: str, size: int, devices: str, *, hidden: bool = False, **fields: str) -> dict[str, str]:
    """One row of lvs, with the fields that do not apply as LVM prints them."""
    name = full_name.split("/")[1]
    row = {
        "lv_full_name": full_name,
        "lv_name": f"[{name}]" if hidden else name,
        "lv_uuid": f"uuid-{name}",
        "lv_attr": attr,
        "segtype": segtype,
        "lv_role": "private" if hidden else "public",
        "lv_size": str(size),
        "chunk_size": "0",
        "lv_check_needed": "unknown",
        "devices": devices,
    }
    empty = ("pool_lv", "origin", "lv_tags", "cache_mode", "cache_policy", "cache_settings", "kernel_cache_policy", "kernel_cache_settings")
    counts = ("cache_total_blocks", "cache_used_blocks", "cache_dirty_blocks", "lv_health_status", "lv_active", "copy_percent")
    writecache = {"writecache_total_blocks": "", "writecache_free_blocks": "", "writecache_error": "", "writecache_block_size": "-1"}
    return {**dict.fromkeys((*empty, *counts), ""), **writecache, **row, **fields}


def pv_row(path: str, vg: str, size: int, free: int, attr: str = "a--") -> dict[str, str]:
    extent = str(EXTENT) if vg else "0"
    row = {"pv_name": path, "pv_uuid": f"uuid-{path}", "vg_name": vg, "pv_attr": attr}
    return {**row, "pv_size": str(size), "pv_free": str(free), "vg_extent_size": extent, "pe_start": str(MIB if vg else 0)}


def report(kind: str, rows: t.Sequence[t.Mapping[str, str]]) -> str:
    return json.dumps({"report": [{kind: list(rows)}]}, indent=1)


class FakeLvm:
    """A Runner over a volume group ``vg`` with the origin ``data`` on /dev/sda; /dev/sdb and /dev/sdc are empty, or in the group.

    :param fast: the kind of cache that is attached already.
    :param mirror: whether it lies on both SSDs.
    :param kernel_policy: ``cleaner`` is what a flush of LVM left that was killed: LVM has noted it.
    :param unclean: whether its metadata was not closed cleanly: every load of a table makes every block count as dirty.
    """

    def __init__(
        self,
        *,
        extended: bool = False,
        fast: str | None = None,
        mirror: bool = False,
        mode: str = "writethrough",
        dirty: int | None = 0,
        settings: str = "",
        chunk: int = 65536,
        kernel_policy: str = "smq",
        unclean: bool = False,
        missing: t.Container[str] = (),
    ) -> None:
        both = ["/dev/sdb", "/dev/sdc"]
        self.pvs = {"/dev/sda": "vg", **dict.fromkeys(both if mirror else both[:1] if extended or fast else [], "vg")}
        self.origin = {"attr": "-wi-a-----", "segtype": "linear", "role": "public"}
        #: Volumes that are attached to nothing: of kind cachepool, or cachevol for every other.
        self.unattached: dict[str, dict[str, t.Any]] = {}
        self.cache: dict[str, t.Any] | None = None
        if fast:
            paths = both if mirror else both[:1]
            volume = {"name": "data_cache", "kind": fast, "size": 200 * MIB, "chunk": chunk, "tags": "cachefleet.storage", "paths": paths}
            volume["legs"] = "raid1" if mirror else "linear"
            state = {"mode": mode, "settings": settings, "dirty": dirty, "kernel_policy": kernel_policy, "health": "", "check": ""}
            self.cache = {**volume, **state, "table": settings, "noted": kernel_policy == "cleaner"}
            if fast == "writecache":
                self.cache.update(mode="writeback", chunk=4096 if chunk == 65536 else chunk)
        self.unclean = unclean
        self.suspended = False
        #: Whether LVM takes the metadata of the cache for damaged, because the host went down while it was attached.
        self.interrupted_attach = False
        #: Whether everything is written back before anybody can look.
        self.looks_clean = self.holding = self.dirty_at_passthrough = False
        #: The table that was loaded and is not in force.
        self.waiting: str | None = None
        #: Moments at which what is mounted was seen to stand still, by the command after which it did.
        self.stood_still: list[str] = []
        self.missing = missing
        #: A cache whose detaching was killed, and the devices that it left.
        self.dead: dict[str, t.Any] | None = None
        self.error_devices: list[str] = []
        #: Paths of drives that were pulled.
        self.gone: set[str] = set()
        self.signatures: dict[str, str] = {}
        #: What blkid prints of the origin.
        self.content = ""
        #: First words of commands that end with a status of their own choosing, and whether they do their work all the same.
        self.lies: dict[str, tuple[int, bool]] = {}
        #: Fields that this LVM does not have. It names the first one that is requested, after all that it has.
        self.lacking: set[str] = set()
        #: Kernel modules that are not there.
        self.without_modules: set[str] = set()
        #: The number of the changing command in which the process is killed, and whether before, inside or after its work.
        self.kill: tuple[int, str] | None = None
        self.stuck = False
        #: What the tool that shows initramfs images prints of each, by path; ``inside`` is their devices file.
        self.images: dict[str, str] = {}
        self.inside = ""
        self.missing_initramfs: set[str] = {"lsinitramfs", "lsinitrd", "mkinitramfs", "dracut"}
        self.calls: list[tuple[str, ...]] = []

    # -- as Runner

    def has(self, name: str) -> bool:
        return name not in self.missing and name not in self.missing_initramfs

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **how: t.Any) -> Completed:
        words = tuple(str(word) for word in argv)
        if words[0] in self.missing:
            raise ToolMissing(f"{words[0]} is missing", item=item)
        self.calls.append(words)
        rc, works = next((lie for start, lie in self.lies.items() if " ".join(words).startswith(start)), (0, True))
        if not _reads(words) and works:
            self._require_whole(words)
            self._maybe_killed(words)
        out = ""
        if works:
            out = getattr(self, f"_{words[0]}")(list(words[1:])) or ""
        if not _reads(words) and self.kill == (len(self.changes), "after"):
            raise Killed
        if out.startswith(("! ", "? ")):
            rc, out = {"!": 5, "?": 2}[out[0]], out[2:]
        watch = how.get("watch")
        while watch is not None and self.stuck:
            watch()
        if ok is not None and rc not in ok:
            raise CommandFailed(f"{' '.join(words)} failed with exit status {rc}", item=item)
        return Completed(words, rc, out, "" if rc == 0 else self._message(words))

    def _message(self, words: t.Sequence[str]) -> str:
        field = self._unrecognised(words)
        return f"    lv_all - All fields in this section.\n   \n  Unrecognised field: {field}\n" if field else "  Conversion aborted.\n"

    def _unrecognised(self, words: t.Sequence[str]) -> str | None:
        return next((field for word in words for field in word.split(",") if field in self.lacking), None)

    def _maybe_killed(self, words: tuple[str, ...]) -> None:
        if self.kill is None or self.kill[0] != len(self.changes):
            return
        if self.kill[1] == "before":
            raise Killed
        if self.kill[1] == "inside":
            getattr(self, f"_half_{words[0]}", lambda rest: None)(list(words[1:]))
            raise Killed

    def _require_whole(self, words: tuple[str, ...]) -> None:
        """LVM changes nothing of a volume group that misses a device, but for these."""
        if self.gone and words[0] not in ("vgreduce", "pvcreate") and "--uncache" not in words:
            raise AssertionError(f"LVM refuses {' '.join(words)} while a device is missing")

    @property
    def changes(self) -> list[str]:
        """The commands that are not reports."""
        return [" ".join(words) for words in self.calls if not _reads(words)]

    # -- reports

    def _modprobe(self, words: list[str]) -> str:
        assert words[:2] == ["--dry-run", "--quiet"]
        return "! " if words[-1] in self.without_modules else ""

    def _lvm(self, words: list[str]) -> str:
        assert words[0] == "fullreport"
        if self._unrecognised(words):
            # What precedes the part with the field is printed.
            return '! {"report": [{"vg": [{"vg_name": "vg"}]}]}'
        whole = [{"vg": [{"vg_name": "vg"}], "pv": [row for row in self._pv_rows() if row["vg_name"]], "lv": [], "seg": self._lv_rows()}]
        whole[0]["seg"] = [{name: value for name, value in row.items() if name not in self.lacking} for row in whole[0]["seg"]]
        orphans = [row for row in self._pv_rows() if not row["vg_name"]]
        return json.dumps({"report": [*whole, {"pv": orphans}] if orphans else whole}, indent=1)

    def _lv_rows(self) -> list[dict[str, str]]:
        rows = []
        if self.cache is None:
            rows.append(lv_row("vg/data", self.origin["attr"], self.origin["segtype"], 400 * MIB, "/dev/sda(0)", lv_role=self.origin["role"]))
        else:
            rows += self._cached_rows(self.cache)
        for volume in self.unattached.values():
            rows += self._fast_rows(volume, volume["name"], hidden=False)
        if self.dead is not None:
            pool = self.dead["name"] + ("_cpool" if self.dead["kind"] == "cachepool" else "_cvol")
            rows.append(lv_row("vg/data_corig", "Cwi-XXC-X-", "cache", 400 * MIB, "data(0)", pool_lv=f"[{pool}]"))
            rows += self._fast_rows(self.dead, pool, hidden=True)
        pools = [volume for volume in (*self.unattached.values(), *(cache for cache in (self.cache, self.dead) if cache)) if volume["kind"] == "cachepool"]
        if pools:
            rows.append(self._leaf("lvol0_pmspare", 8 * MIB, "/dev/sdb"))
        return rows

    def _leaf(self, name: str, size: int, path: str, *, tags: str = "", health: str = "", hidden: bool = True) -> dict[str, str]:
        lost = path in self.gone
        attr = "iwi-aor-p-" if lost else "iwi-ao----"
        fields = {"lv_tags": tags, "lv_health_status": "partial" if lost else health}
        return lv_row(f"vg/{name}", attr, "linear", size, "[unknown](0)" if lost else f"{path}(2)", hidden=hidden, **fields)

    def _stored_rows(self, volume: dict[str, t.Any], name: str, size: int, *, hidden: bool, tags: str, active: bool = True) -> list[dict[str, str]]:
        """A volume that holds something: linear, or a RAID1 of two images with their metadata."""
        legs, paths, health = volume.get("legs", "linear"), volume.get("paths", ["/dev/sdb"]), volume.get("leg_health", "")
        half = volume.get("half", False)
        state = "a" if active and not half else "-"
        if legs == "linear":
            lost = paths[0] in self.gone
            where = "[unknown](0)" if lost else f"{paths[0]}(2)"
            attr = f"-wi-{state}---{'--p-' if lost else '---'}"[:10]
            return [lv_row(f"vg/{name}", attr, legs, size, where, hidden=hidden, lv_tags=tags, lv_health_status="partial" if lost else health)]
        images = ",".join(f"{name}_rimage_{number}(0)" for number in range(2))
        lost = bool(self.gone & set(paths))
        attr = f"rwi-{state}-r-{'p' if lost else 'r' if health else '-'}{'k' if half else '-'}"
        fields = {"lv_tags": tags, "lv_health_status": "partial" if lost else health, "copy_percent": str(volume.get("synced", "100.00"))}
        rows = [lv_row(f"vg/{name}", attr, legs, size, images, hidden=hidden, **fields)]
        pairs = list(zip(range(2), paths if len(paths) == 2 else paths * 2))
        rows += [self._leaf(f"{name}_rimage_{number}", size, path, health=health) for number, path in pairs]
        return rows + [self._leaf(f"{name}_rmeta_{number}", EXTENT, path, tags=tags, hidden=not half) for number, path in pairs]

    def _fast_rows(self, volume: dict[str, t.Any], name: str, *, hidden: bool, **figures: str) -> list[dict[str, str]]:
        """A fast volume with everything inside it; LVM moves the tags of what becomes a pool to what is inside."""
        tags = volume["tags"]
        if volume["kind"] != "cachepool":
            return self._stored_rows(volume, name, volume["size"], hidden=hidden, tags=tags, active=volume.get("active", True))
        health = "partial" if self.gone & set(volume.get("paths", ["/dev/sdb"])) else ""
        mirrored = volume.get("legs") == "raid1"
        figures = {"chunk_size": str(volume["chunk"]), "lv_health_status": health, **figures, "lv_tags": "" if mirrored else tags}
        attr = "Cwi---C-p-" if health else "Cwi---C---"
        rows = [lv_row(f"vg/{name}", attr, "cache-pool", volume["size"], f"{name}_cdata(0)", hidden=hidden, **figures)]
        rows += self._stored_rows(volume, f"{name}_cdata", volume["size"], hidden=True, tags=tags if mirrored else "")
        return rows + self._stored_rows(volume, f"{name}_cmeta", volume.get("metadata_size", 8 * MIB), hidden=True, tags=tags if mirrored else "")

    def _cached_rows(self, cache: dict[str, t.Any]) -> list[dict[str, str]]:
        pool = cache["name"] + ("_cpool" if cache["kind"] == "cachepool" else "_cvol")
        lost = bool(self.gone & set(cache.get("paths", ["/dev/sdb"])))
        attr = self.origin["attr"].replace("-wi", "Cwi", 1)
        attr = f"{attr[:4]}s{attr[5:]}" if self.suspended else attr
        attr = f"{attr[:8]}p{attr[9:]}" if lost or cache["health"] == "partial" else attr
        health = "partial" if lost else cache["health"]
        if cache["kind"] == "writecache":
            return self._writecache_rows(cache, pool, attr, health)
        kernel = re.search(r"migration_threshold=(\d+)", cache["settings"])
        threshold = max(int(kernel.group(1)) if kernel else 2048, 8 * cache["chunk"] // 512)
        figures = {
            "cache_mode": cache["mode"],
            "cache_policy": "smq",
            "cache_settings": cache["settings"],
            "kernel_cache_policy": cache["kernel_policy"],
            "kernel_cache_settings": f"migration_threshold={threshold}",
            "chunk_size": str(cache["chunk"]),
            # LVM says 0 of a cache that has failed.
            "cache_dirty_blocks": "0" if cache["dirty"] is None else str(cache["dirty"]),
            "lv_health_status": health,
        }
        fields = {"pool_lv": f"[{pool}]", "lv_check_needed": cache["check"], **figures}
        rows = [
            lv_row("vg/data", attr, cache.get("segtype", "cache"), 400 * MIB, "data_corig(0)", **fields),
            lv_row("vg/data_corig", "owi-aoC---", "linear", 400 * MIB, "/dev/sda(0)", hidden=True),
        ]
        return rows + self._fast_rows(cache, pool, hidden=True, **(figures if cache["kind"] == "cachepool" else {}))

    def _writecache_rows(self, cache: dict[str, t.Any], pool: str, attr: str, health: str) -> list[dict[str, str]]:
        total = cache["size"] // cache["chunk"]
        figures = {
            "cache_settings": cache["settings"],
            "lv_health_status": health,
            "writecache_total_blocks": str(total),
            "writecache_free_blocks": str(total - (cache["dirty"] or 0)),
            "writecache_error": str(cache.get("error", 0)),
            "writecache_block_size": str(cache["chunk"]),
        }
        rows = [
            lv_row("vg/data", attr, "writecache", 400 * MIB, "data_wcorig(0)", pool_lv=f"[{pool}]", **figures),
            lv_row("vg/data_wcorig", "owi-aoC---", "linear", 400 * MIB, "/dev/sda(0)", hidden=True),
        ]
        return rows + self._fast_rows(cache, pool, hidden=True)

    def _pv_rows(self) -> list[dict[str, str]]:
        used = dict.fromkeys(self.pvs, 0)
        for row in self._lv_rows():
            path = row["devices"].split("(")[0]
            if path in used:
                used[path] += int(row["lv_size"])
        rows = [pv_row(path, vg, PV_SIZES[path], PV_SIZES[path] - used[path]) for path, vg in self.pvs.items() if path not in self.gone]
        lost = [path for path in self.pvs if path in self.gone]
        if self.cache is not None and self.cache["health"] == "partial" and not lost:
            rows, lost = [row for row in rows if row["pv_name"] != "/dev/sdb"], ["/dev/sdb"]
        return rows + [pv_row("[unknown]", "vg", PV_SIZES[path], 0, "a-m") for path in lost]

    def _wipefs(self, words: list[str]) -> str:
        found = self.signatures.get(words[-1])
        return json.dumps({"signatures": [{"device": "sdb", "offset": "0x438", "type": found}]}) if found else ""

    def _blkid(self, words: list[str]) -> str:
        if "-p" in words:
            return self.content or "? "
        found = self.signatures.get(words[-1])
        return f"DEVNAME={words[-1]}\nTYPE={found}\n" if found else ""

    def _lsinitramfs(self, words: list[str]) -> str:
        return self.images[words[-1]]

    def _lsinitrd(self, words: list[str]) -> str:
        return self.inside if words[0] == "--file" else self.images[words[-1]]

    def _sync(self, words: list[str]) -> str:
        assert not self.suspended, "nothing comes back from a device that is suspended"
        return ""

    def _mount(self, words: list[str]) -> str:
        assert self.origin["attr"][4] == "a"
        return ""

    def _udevadm(self, words: list[str]) -> str:
        assert words[0] == "trigger"
        return ""

    def _dmsetup(self, words: list[str]) -> str:
        cache = self.cache
        if words[:1] == ["remove"]:
            self.error_devices.remove(words[1])
            return ""
        errors = "".join(f"{name}: 0 81920 error \n" for name in self.error_devices)
        if words[:1] == ["info"]:
            return "! Device does not exist.\n" if words[-1] != "vg-data" else "Suspended\n" if self.suspended else "Active\n"
        if cache is None or self.origin["attr"][4] != "a":
            return f"vg-data: 0 819200 linear \n{errors}"
        if words[:1] in (["reload"], ["resume"], ["clear"]):
            return getattr(self, f"_dmsetup_{words[0]}")(cache, words)
        if words[:1] == ["table"]:
            return self._table(cache).partition(": ")[2] if len(words) > 1 else self._table(cache)
        if cache["dirty"] is None or self.gone >= set(cache.get("paths", ["/dev/sdb"])):
            return f"vg-data: 0 819200 {'writecache' if cache['kind'] == 'writecache' else 'cache'} Fail\n"
        if cache["kind"] == "writecache":
            total = cache["size"] // cache["chunk"]
            return f"vg-data: 0 819200 writecache {cache.get('error', 0)} {total} {total - cache['dirty']} 0 1 2 3 0 0 0 3 0 0 0\n"
        at_once = self.looks_clean and not self.holding and not self.suspended and self.kernel_mode == "writethrough" and not self.stood_still
        dirty = 0 if at_once else cache["dirty"]
        return (
            f"vg-data: 0 819200 cache 8 12/3072 128 942/1600 248 100 2487 2633 0 942 {dirty} 2 metadata2 {self.kernel_mode}"
            f" 2 migration_threshold 2048 {cache['kernel_policy']} 0 {cache.get('metadata', 'rw')} {cache.get('kernel_check', '-')} \n"
        )

    def _dmsetup_reload(self, cache: dict[str, t.Any], words: list[str]) -> str:
        self.waiting = words[words.index("--table") + 1]
        return ""

    def _dmsetup_clear(self, cache: dict[str, t.Any], words: list[str]) -> str:
        self.waiting = None
        return ""

    def _dmsetup_resume(self, cache: dict[str, t.Any], words: list[str]) -> str:
        """Seen on the rack: without a table that waits the one that was refused is tried again, and refused again."""
        table = (self.waiting or self._table(cache).partition(": ")[2]).split()
        self.waiting, features = None, int(table[7])
        if not self.load(cache, table[7 + features], table[8 + features], holding=table[-2:] == ["migration_threshold", "0"]):
            return "! device-mapper: resume ioctl on vg-data  failed: Invalid argument\n"
        return ""

    def load(self, cache: dict[str, t.Any], mode: str, policy: str, *, holding: bool = False) -> bool:
        """As the kernel loads a table of dm-cache and goes on with it; whether it does."""
        self.holding = holding
        cache.update(kernel_mode=mode, kernel_policy=policy)
        if self.unclean and cache["dirty"] is not None:
            cache["dirty"] = 942
        if self.dirty_at_passthrough and mode == "passthrough":
            cache["dirty"] = 942
        self.suspended = mode == "passthrough" and bool(cache["dirty"])
        if self.suspended:
            self.stood_still.append(mode)
        elif policy == "cleaner" and not self.stuck and cache["dirty"] is not None:
            cache["dirty"] = 0
        return not self.suspended

    def reboot(self) -> None:
        """Everything is closed and opened again."""
        self.unclean = self.suspended = False
        if self.cache is not None and self.cache["kind"] != "writecache":
            self.load(self.cache, self.cache["mode"], "cleaner" if self.cache["noted"] else "smq")

    def _table(self, cache: dict[str, t.Any]) -> str:
        if cache["kind"] != "writecache":
            return f"vg-data: 0 819200 cache 253:1 253:2 253:3 128 2 metadata2 {self.kernel_mode} {cache['kernel_policy']} 0\n"
        words = []
        for key, value in _pairs(cache["table"]).items():
            words += [key] * int(value) if key in ("cleaner", "metadata_only") else [key, value]
        return f"vg-data: 0 819200 writecache s 253:2 253:1 {cache['chunk']} {' '.join([str(len(words)), *words])}\n"

    @property
    def kernel_mode(self) -> str:
        """A cache with the cleaner writes through, whatever LVM has stored."""
        assert self.cache is not None
        return "writethrough" if self.cache["kernel_policy"] == "cleaner" else self.cache.get("kernel_mode", self.cache["mode"])

    # -- changes

    def _pvcreate(self, words: list[str]) -> None:
        assert not {"--yes", "-y", "-f", "-ff", "--force"} & set(words), "pvcreate must ask before it wipes"
        self.pvs[self._kernel_path(words[-1])] = ""

    def _pvremove(self, words: list[str]) -> None:
        assert not {"--yes", "-y", "-f", "-ff", "--force"} & set(words), "pvremove needs no force on an unused device"
        assert self.pvs[self._kernel_path(words[-1])] == "", "LVM refuses to remove a physical volume of a group"
        del self.pvs[self._kernel_path(words[-1])]

    def _vgextend(self, words: list[str]) -> None:
        self.pvs[self._kernel_path(words[-1])] = words[-2]

    def _vgreduce(self, words: list[str]) -> str | None:
        if "--removemissing" in words:
            assert "--force" not in words
            if any("[unknown]" in row["devices"] for row in self._lv_rows()):
                return "! There are still partial LVs in VG vg.\n"
            for path in self.gone & set(self.pvs):
                del self.pvs[path]
            self.gone.clear()
            return None
        path = self._kernel_path(words[-1])
        assert not any(row["devices"].startswith(f"{path}(") for row in self._lv_rows()), "LVM keeps a physical volume that is in use"
        self.pvs[path] = ""
        return None

    def _lvcreate(self, words: list[str]) -> str | None:
        option = dict(zip(words, words[1:]))
        volume = self._new_volume(words, option)
        if volume["name"] in self.unattached:
            return f"! Logical Volume {volume['name']} already exists in volume group vg.\n"
        overhead = EXTENT if volume["legs"] == "raid1" else 0
        overhead += 8 * MIB if volume["kind"] == "cachepool" else 0
        for row in self._pv_rows():
            if row["pv_name"] in volume["paths"] and int(row["pv_free"]) < volume["size"] + overhead:
                return "! Insufficient suitable allocatable extents.\n"
        self.unattached[volume["name"]] = volume
        return None

    @staticmethod
    def _new_volume(words: list[str], option: dict[str, str]) -> dict[str, t.Any]:
        return {
            "name": option["--name"],
            "kind": "cachepool" if option.get("--type") == "cache-pool" else "cachevol",
            "size": int(option["--extents"]) * EXTENT,
            "chunk": int(option.get("--chunksize", "65536b").rstrip("b")),
            "tags": option["--addtag"],
            "paths": [word for word in words[words.index("vg") :] if word.startswith("/dev/")],
            "legs": "raid1" if option.get("--type") == "raid1" else "linear",
            "active": option.get("--activate") != "n",
        }

    def _half_lvcreate(self, words: list[str]) -> None:
        """A mirror whose creation was killed: its metadata stand alone and visible, and it was not started."""
        option = dict(zip(words, words[1:]))
        volume = self._new_volume(words, option)
        self.unattached[volume["name"]] = {**volume, "half": volume["legs"] == "raid1"}

    def _lvconvert(self, words: list[str]) -> str:
        assert not {"-f", "--force"} & set(words)
        if words[-1] == "vg/data_corig":
            if self.error_devices:
                return "! Internal error: Removing still active LV vg/data_cache_cpool_cmeta.\n"
            assert self.dead is not None
            self.dead = None
            return ""
        if "--uncache" in words:
            return self._uncache()
        option = dict(zip(words, words[1:]))
        if option["--type"] == "cache-pool":
            return self._join(option, words[-1].split("/")[1])
        assert self.cache is None, "LVM attaches one cache to a volume"
        volume = self.unattached[(option.get("--cachepool") or option["--cachevol"]).split("/")[1]]
        assert not volume.get("half"), "LVM does not use a mirror that was not finished"
        settings = option.get("--cachesettings", "").replace(" ", ",")
        state = {"mode": option.get("--cachemode", "writethrough"), "settings": settings, "kernel_policy": "smq", "dirty": 0, "health": "", "check": ""}
        if option["--type"] == "writecache":
            if volume["legs"] != "linear":
                return "! LV vg/data_cache must be linear to use as a writecache.\n"
            if volume.get("active", True):
                return "! LV vg/data_cache must be inactive to attach.\n"
            block = int(_pairs(settings).get("block_size", "4096"))
            settings = ",".join(f"{key}={value}" for key, value in _pairs(settings).items() if key != "block_size")
            state.update(mode="writeback", settings=settings)
            volume = {**volume, "kind": "writecache", "chunk": block}
        else:
            volume = {**volume, "chunk": int(option.get("--chunksize", f"{volume['chunk']}b").rstrip("b"))}
        del self.unattached[volume["name"]]
        self.cache = {**volume, **state, "table": settings, "noted": False}
        self.unclean = False
        return "  Logical volume vg/data is now cached.\n"

    def _join(self, option: dict[str, str], name: str) -> str:
        data, metadata = self.unattached[name], self.unattached.pop(option["--poolmetadata"].split("/")[1])
        assert not data.get("half")
        assert not metadata.get("half")
        data.update(kind="cachepool", metadata_size=metadata["size"], chunk=int(option["--chunksize"].rstrip("b")))
        return ""

    def _uncache(self) -> str:
        cache = self.cache
        assert cache is not None, "LVM refuses to uncache what is not cached"
        whole = not self.gone & set(cache.get("paths", ["/dev/sdb"]))
        if not whole or cache["dirty"] is None:
            if cache["mode"] == "writeback":
                return "! Cannot uncache writeback cache volume vg/data without --force.\n"
        else:
            assert cache["dirty"] == 0, "blocks would be lost"
            assert self.kernel_mode != "writeback" or "cleaner" in _pairs(cache["table"]), "blocks could become dirty"
        self.cache = None
        return "  Logical volume vg/data is not cached.\n"

    def _half_lvconvert(self, words: list[str]) -> None:
        """What was cached is so no longer, and the fast volume stands beside it."""
        if words[-1] == "vg/data_corig":
            return
        if "--uncache" in words:
            cache = self.cache
            assert cache is not None
            self._uncache()
            if cache["kind"] != "writecache":
                # Seen on the rack: the layers have changed places, and what is above answers with errors.
                self.dead, self.error_devices = cache, ["vg-data_corig", f"vg-{cache['name']}_{'cpool_cdata' if cache['kind'] == 'cachepool' else 'cvol'}"]
                return
            volume = {key: cache[key] for key in ("name", "size", "chunk", "tags", "paths", "legs", "metadata_size") if key in cache}
            self.unattached[cache["name"]] = {**volume, "kind": "cachepool" if cache["kind"] == "cachepool" else "cachevol", "active": False}
        else:
            raise Killed

    def _lvchange(self, words: list[str]) -> str | None:
        """With a stored cleaner every command ends with 0, and only another mode takes it away."""
        option = dict(zip(words, words[1:]))
        if words[-1] == "vg/data" and "--activate" in option:
            if "--config" not in option and self.interrupted_attach:
                return "! Check of pool vg/data_cache_cpool failed (status:1). Manual repair required!\n"
            assert option.get("--config") in (None, 'global/cache_check_executable=""')
            self.origin["attr"] = "-wi-a-----"
            self.interrupted_attach = False
            return None
        if "--activate" in option:
            self.unattached[words[-1].split("/")[1]]["active"] = option["--activate"] != "n"
            return None
        cache = self.cache
        assert cache is not None
        if "--refresh" in words:
            cache["table"] = cache["settings"]
            return self._load_stored(cache) if cache["kind"] != "writecache" else None
        if cache["kind"] == "writecache":
            return self._change_writecache(cache, option["--cachesettings"])
        mode = option.get("--cachemode", cache["mode"])
        if mode != cache["mode"] and not self.stuck:
            cache.update(mode=mode, dirty=None if cache["dirty"] is None else 0, noted=False)
            return self._load_stored(cache)
        if "--cachesettings" in option:
            cache["settings"] = "" if option["--cachesettings"].endswith("=default") else option["--cachesettings"]
            return self._load_stored(cache)
        return None

    def _load_stored(self, cache: dict[str, t.Any]) -> str | None:
        """What LVM has stored, into the kernel. A refusal is found out after everything was stored."""
        policy = "cleaner" if cache["noted"] else "mq" if cache["kind"] == "cachevol" else "smq"
        mode = "writethrough" if policy == "cleaner" else cache["mode"]
        return None if self.load(cache, mode, policy) else "! Failed to suspend logical volume vg/data.\n"

    def _half_lvchange(self, words: list[str]) -> None:
        """LVM writes its metadata and is killed before the kernel knows; a flush that is killed leaves the cleaner."""
        cache = self.cache
        if cache is None or "--activate" in words:
            return
        option = dict(zip(words, words[1:]))
        if cache["kind"] == "writecache" and "--cachesettings" in option:
            table = cache["table"]
            self._change_writecache(cache, option["--cachesettings"])
            cache["table"] = table
        elif option.get("--cachemode") not in (None, "writeback") and (cache["mode"] == "writeback" or cache["dirty"]):
            cache.update(kernel_policy="cleaner", noted=True)
        elif "--cachemode" in option:
            cache["kernel_mode"] = self.kernel_mode
            cache["mode"] = option["--cachemode"]

    def _change_writecache(self, cache: dict[str, t.Any], text: str) -> str | None:
        asked = _pairs(text.replace(" ", ","))
        if "default" in asked.values():
            return "! Invalid setting: default\n"
        if "pause_writeback" in asked and "pause_writeback" in self.missing:
            return '! Unrecognized writecache setting "pause_writeback" may cause activation failure.\n'
        settings = {**_pairs(cache["settings"]), **asked} if asked else {}
        if settings.get("cleaner") == "0":
            del settings["cleaner"]
        cache["settings"] = cache["table"] = ",".join(f"{key}={value}" for key, value in settings.items())
        low, high = int(settings.get("low_watermark", 45)), int(settings.get("high_watermark", 50))
        assert low <= high, "the kernel refuses the table after LVM has written its metadata"
        if "cleaner" in settings and not self.stuck:
            cache["dirty"] = 0
        return None

    def _lvremove(self, words: list[str]) -> str | None:
        name = words[-1].split("/")[1]
        if name not in self.unattached:
            return f'! Failed to find logical volume "vg/{name}"\n'
        del self.unattached[name]
        return None

    def _kernel_path(self, path: str) -> str:
        return {SSD_PATH: "/dev/sdb", SSD1_PATH: "/dev/sdc"}.get(path, path)


def _reads(words: t.Sequence[str]) -> bool:
    return words[0] in READING and words[:2] not in (("dmsetup", "reload"), ("dmsetup", "resume"))


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(",") if pair)


def present(
    lvm: FakeLvm,
    *,
    ssd: BlockDevice = SSD,
    redundant: frozenset[str] = frozenset(),
    degraded: frozenset[str] = frozenset(),
    more: t.Sequence[BlockDevice] = (),
    finding: DeviceUse = DeviceUse(),  # noqa: B008
    **fields: t.Any,
) -> LvmState:
    """What the layer reads of that LVM, on a host with one HDD and one SSD, and the second SSD if LVM knows it."""
    report = parse_report(lvm._lvm(["fullreport"]))
    names = {"/dev/sda": "sda", "/dev/sdb": ssd.name, "/dev/sdc": "sdc"}
    second = [SSD1] if "/dev/sdc" in lvm.pvs and "/dev/sdc" not in lvm.gone else []
    first = [] if "/dev/sdb" in lvm.gone else [ssd]
    return LvmState(
        volumes=report.volumes,
        physical=report.physical,
        devices=NamedDevices([HDD, *first, *second, *more]),
        pv_devices={pv.path: names[pv.path] for pv in report.physical if pv.path in names},
        kernel={"vg/data": dm.parse_status(lvm._dmsetup([]))["vg-data"]} if lvm.cache and lvm.origin["attr"][4] == "a" else {},
        tables={"vg/data": dm.parse_tables(lvm._dmsetup(["table"]))["vg-data"]} if lvm.cache and lvm.origin["attr"][4] == "a" else {},
        findings={ssd.name: finding},
        redundant=redundant,
        degraded=degraded,
        cache_check=lvm.has("cache_check"),
        **fields,
    )


def dirty_cachepool() -> FakeLvm:
    """A host with a write-back cache that has dirty blocks."""
    return FakeLvm(fast="cachepool", mode="writeback", dirty=839)
