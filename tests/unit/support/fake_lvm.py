# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small LVM that lives in memory and speaks like the real one, with the lies that the real one was heard to tell."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_device import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_plan import Present
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_report import parse_logical_volumes, parse_physical_volumes
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

MIB = 1024**2
EXTENT = 4 * MIB
HDD = BlockDevice(name="sda", path="/dev/sda", number="8:0", size=2048 * MIB, by_id=("/dev/disk/by-id/ata-HDD0",), serial="HDD0", rotational=True)
SSD = BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=513 * MIB, by_id=("/dev/disk/by-id/ata-SSD0",), serial="SSD0", rotational=False)
SSD_PATH = "/dev/disk/by-id/ata-SSD0"


def make_dev(root: Path) -> None:
    """The nodes and links of the HDD and the SSD below a folder; both are empty."""
    (root / "dev/disk/by-id").mkdir(parents=True)
    for device in (HDD, SSD):
        (root / device.path.lstrip("/")).write_bytes(bytes(4096))
        for link in device.by_id:
            (root / link.lstrip("/")).symlink_to(root / device.path.lstrip("/"))


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
    counts = ("cache_total_blocks", "cache_used_blocks", "cache_dirty_blocks", "lv_health_status", "lv_active")
    return {**dict.fromkeys((*empty, *counts), ""), **row, **fields}


def pv_row(path: str, vg: str, size: int, free: int, attr: str = "a--") -> dict[str, str]:
    extent = str(EXTENT) if vg else "0"
    row = {"pv_name": path, "pv_uuid": f"uuid-{path}", "vg_name": vg, "pv_attr": attr}
    return {**row, "pv_size": str(size), "pv_free": str(free), "vg_extent_size": extent}


def report(kind: str, rows: t.Sequence[t.Mapping[str, str]]) -> str:
    return json.dumps({"report": [{kind: list(rows)}]}, indent=1)


class FakeLvm:
    """A Runner over a volume group ``vg`` with the origin ``data`` on /dev/sda; /dev/sdb is empty, or in the group.

    :param fast: the kind of cache that is attached already.
    """

    def __init__(
        self,
        *,
        extended: bool = False,
        fast: str | None = None,
        mode: str = "writethrough",
        dirty: int | None = 0,
        settings: str = "",
        chunk: int = 65536,
        kernel_policy: str = "smq",
        missing: t.Container[str] = (),
    ) -> None:
        self.pvs = {"/dev/sda": "vg", **({"/dev/sdb": "vg"} if extended or fast else {})}
        self.origin = {"attr": "-wi-a-----", "segtype": "linear", "role": "public"}
        self.unattached: dict[str, dict[str, t.Any]] = {}
        self.cache: dict[str, t.Any] | None = None
        if fast:
            volume = {"name": "data_cache", "kind": fast, "size": 200 * MIB, "chunk": chunk, "tags": "cachefleet.storage"}
            self.cache = {**volume, "mode": mode, "settings": settings, "dirty": dirty, "kernel_policy": kernel_policy, "health": "", "check": ""}
        self.missing = missing
        self.signatures: dict[str, str] = {}
        #: First words of commands that end with a status of their own choosing, and whether they do their work all the same.
        self.lies: dict[str, tuple[int, bool]] = {}
        self.stuck = False
        self.calls: list[tuple[str, ...]] = []

    # -- as Runner

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **how: t.Any) -> Completed:
        words = tuple(str(word) for word in argv)
        if words[0] in self.missing:
            raise ToolMissing(f"{words[0]} is missing", item=item)
        self.calls.append(words)
        rc, works = next((lie for start, lie in self.lies.items() if " ".join(words).startswith(start)), (0, True))
        out = ""
        if works:
            out = getattr(self, f"_{words[0]}")(list(words[1:])) or ""
        watch = how.get("watch")
        while watch is not None and self.stuck:
            watch()
        if ok is not None and rc not in ok:
            raise CommandFailed(f"{' '.join(words)} failed with exit status {rc}", item=item)
        return Completed(words, rc, out, "" if rc == 0 else "  Conversion aborted.\n")

    @property
    def changes(self) -> list[str]:
        """The commands that are not reports."""
        return [" ".join(words) for words in self.calls if words[0] not in ("lvs", "pvs", "dmsetup", "wipefs", "blkid", "udevadm")]

    # -- reports

    def _lvs(self, words: list[str]) -> str:
        rows = []
        if self.cache is None:
            rows.append(lv_row("vg/data", self.origin["attr"], self.origin["segtype"], 400 * MIB, "/dev/sda(0)", lv_role=self.origin["role"]))
        else:
            rows += self._cached_rows(self.cache)
        for volume in self.unattached.values():
            pool = volume["kind"] == "cachepool"
            devices = f"{volume['name']}_cdata(0)" if pool else "/dev/sdb(0)"
            segtype, attr = ("cache-pool", "Cwi---C---") if pool else ("linear", "-wi-a-----")
            chunk = str(volume["chunk"]) if pool else "0"
            rows.append(lv_row(f"vg/{volume['name']}", attr, segtype, volume["size"], devices, lv_tags=volume["tags"], chunk_size=chunk))
            if pool:
                rows.append(lv_row(f"vg/{volume['name']}_cdata", "Cwi-------", "linear", volume["size"], "/dev/sdb(2)", hidden=True))
        return report("lv", rows)

    def _cached_rows(self, cache: dict[str, t.Any]) -> list[dict[str, str]]:
        pool = cache["name"] + ("_cpool" if cache["kind"] == "cachepool" else "_cvol")
        kernel = re.search(r"migration_threshold=(\d+)", cache["settings"])
        threshold = max(int(kernel.group(1)) if kernel else 2048, 8 * cache["chunk"] // 512)
        figures = {
            "cache_mode": cache["mode"],
            "cache_policy": "smq",
            "cache_settings": cache["settings"],
            "kernel_cache_policy": cache["kernel_policy"],
            "kernel_cache_settings": f"migration_threshold={threshold}",
            "chunk_size": str(cache["chunk"]),
            "cache_dirty_blocks": "" if cache["dirty"] is None else str(cache["dirty"]),
            "lv_health_status": cache["health"],
        }
        attr = "Cwi-a-C-p-" if cache["health"] == "partial" else self.origin["attr"].replace("-wi", "Cwi", 1)
        rows = [
            lv_row("vg/data", attr, cache.get("segtype", "cache"), 400 * MIB, "data_corig(0)", pool_lv=f"[{pool}]", lv_check_needed=cache["check"], **figures),
            lv_row("vg/data_corig", "owi-aoC---", "linear", 400 * MIB, "/dev/sda(0)", hidden=True),
        ]
        leg = cache.get("legs", "linear")
        if cache["kind"] == "cachepool":
            rows.append(lv_row(f"vg/{pool}", "Cwi---C---", "cache-pool", cache["size"], f"{pool}_cdata(0)", hidden=True, **figures))
            health = cache.get("leg_health", "")
            rows.append(lv_row(f"vg/{pool}_cdata", "Cwi-ao----", leg, cache["size"], "/dev/sdb(2)", hidden=True, lv_health_status=health))
            rows.append(lv_row(f"vg/{pool}_cmeta", "ewi-ao----", leg, 8 * MIB, "/dev/sdb(0)", hidden=True))
        else:
            health = cache.get("leg_health", "")
            rows.append(lv_row(f"vg/{pool}", "Cwi-aoC---", leg, cache["size"], "/dev/sdb(0)", hidden=True, lv_health_status=health))
        return rows

    def _pvs(self, words: list[str]) -> str:
        used = {"/dev/sda": 400 * MIB, "/dev/sdb": sum(volume["size"] for volume in self.unattached.values()) + (216 * MIB if self.cache else 0)}
        sizes = {"/dev/sda": 2044 * MIB, "/dev/sdb": 512 * MIB}
        rows = [pv_row(path, vg, sizes[path], sizes[path] - used[path]) for path, vg in self.pvs.items()]
        if self.cache is not None and self.cache["health"] == "partial":
            rows = [row for row in rows if row["pv_name"] != "/dev/sdb"] + [pv_row("[unknown]", "vg", 512 * MIB, 0, "a-m")]
        return report("pv", rows)

    def _wipefs(self, words: list[str]) -> str:
        found = self.signatures.get(words[-1])
        return json.dumps({"signatures": [{"device": "sdb", "offset": "0x438", "type": found}]}) if found else ""

    def _blkid(self, words: list[str]) -> str:
        found = self.signatures.get(words[-1])
        return f"DEVNAME={words[-1]}\nTYPE={found}\n" if found else ""

    def _dmsetup(self, words: list[str]) -> str:
        if self.cache is None:
            return "vg-data: 0 819200 linear \n"
        if self.cache["dirty"] is None:
            return "vg-data: 0 819200 cache Fail\n"
        return (
            f"vg-data: 0 819200 cache 8 12/3072 128 942/1600 248 100 2487 2633 0 942 {self.cache['dirty']} 2 metadata2 {self.kernel_mode}"
            f" 2 migration_threshold 2048 {self.cache['kernel_policy']} 0 {self.cache.get('metadata', 'rw')} {self.cache.get('kernel_check', '-')} \n"
        )

    @property
    def kernel_mode(self) -> str:
        """A cache with the cleaner writes through, whatever LVM has stored."""
        assert self.cache is not None
        return "writethrough" if self.cache["kernel_policy"] == "cleaner" else self.cache.get("kernel_mode", self.cache["mode"])

    # -- changes

    def _pvcreate(self, words: list[str]) -> None:
        assert not {"--yes", "-y", "-f", "-ff", "--force"} & set(words), "pvcreate must ask before it wipes"
        self.pvs[self._kernel_path(words[-1])] = ""

    def _vgextend(self, words: list[str]) -> None:
        self.pvs[self._kernel_path(words[-1])] = words[-2]

    def _lvcreate(self, words: list[str]) -> None:
        option = {word: words[number + 1] for number, word in enumerate(words[:-1])}
        kind = "cachepool" if option.get("--type") == "cache-pool" else "cachevol"
        chunk = int(option.get("--chunksize", "65536b").rstrip("b"))
        volume = {"name": option["--name"], "kind": kind, "size": int(option["--extents"]) * EXTENT, "chunk": chunk, "tags": option["--addtag"]}
        self.unattached[volume["name"]] = volume

    def _lvconvert(self, words: list[str]) -> str:
        assert not {"-f", "--force"} & set(words)
        if "--uncache" in words:
            assert self.cache is not None and self.cache["dirty"] == 0 and self.kernel_mode != "writeback"
            self.cache = None
            return "  Logical volume vg/data is not cached.\n"
        option = {word: words[number + 1] for number, word in enumerate(words[:-1])}
        volume = self.unattached.pop((option.get("--cachepool") or option["--cachevol"]).split("/")[1])
        volume["chunk"] = int(option.get("--chunksize", f"{volume['chunk']}b").rstrip("b"))
        state = {"mode": option.get("--cachemode", "writethrough"), "settings": option.get("--cachesettings", ""), "kernel_policy": "smq"}
        self.cache = {**volume, **state, "dirty": 0, "health": "", "check": ""}
        return "  Logical volume vg/data is now cached.\n"

    def _lvchange(self, words: list[str]) -> None:
        """With a stored cleaner every command ends with 0, and only another mode takes it away."""
        assert self.cache is not None
        if "--refresh" in words:
            self.cache.pop("kernel_mode", None)
            return
        option = {word: words[number + 1] for number, word in enumerate(words[:-1])}
        mode = option.get("--cachemode", self.cache["mode"])
        if mode != self.cache["mode"] and not self.stuck:
            self.cache.update(mode=mode, dirty=0, kernel_policy="mq" if self.cache["kind"] == "cachevol" else "smq")
        if "--cachesettings" in option:
            self.cache["settings"] = "" if option["--cachesettings"].endswith("=default") else option["--cachesettings"]

    def _lvremove(self, words: list[str]) -> None:
        del self.unattached[words[-1].split("/")[1]]

    def _kernel_path(self, path: str) -> str:
        return "/dev/sdb" if path == SSD_PATH else path


def present(
    lvm: FakeLvm,
    *,
    ssd: BlockDevice = SSD,
    redundant: frozenset[str] = frozenset(),
    degraded: frozenset[str] = frozenset(),
    more: t.Sequence[BlockDevice] = (),
    finding: Finding = Finding(),  # noqa: B008
) -> Present:
    """What the layer reads of that LVM, on a host with one HDD and one SSD."""
    physical = parse_physical_volumes(lvm._pvs([]))
    names = {"/dev/sda": "sda", "/dev/sdb": ssd.name}
    return Present(
        volumes=parse_logical_volumes(lvm._lvs([])),
        physical=physical,
        devices=NamedDevices([HDD, ssd, *more]),
        pv_devices={pv.path: names[pv.path] for pv in physical if pv.path in names},
        kernel={"vg/data": dm.parse_status(lvm._dmsetup([]))["vg-data"]} if lvm.cache else {},
        findings={ssd.name: finding},
        redundant=redundant,
        degraded=degraded,
        cache_check=lvm.has("cache_check"),
    )
