# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LVM in memory in the shapes in which the cached volume has another name than what is used: pools, volumes of them, snapshots."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import MIB, FakeLvm, lv_row

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

_NAME = re.compile(r"\bdata(?=$|[(\]]|_corig|_wcorig)")


class CachedPool(FakeLvm):
    """A thin pool ``vg/pool`` or VDO pool ``vg/pool`` whose data is cached, and a volume ``vg/thin`` on it.

    Seen on the rack (LVM 2.03.16): mode and settings are changed by the hidden name, everything else by the name of the pool.

    :param pool: ``thin-pool`` or ``vdo-pool``.
    """

    def __init__(self, pool: str = "thin-pool", **fields: t.Any) -> None:
        super().__init__(**fields)
        self.pool = pool
        self.inner = "pool_tdata" if pool == "thin-pool" else "pool_vdata"

    def run(self, argv: t.Sequence[str], **how: t.Any) -> Completed:
        words = [str(word) for word in argv]
        if words[0] in ("lvchange", "lvconvert"):
            inner = words[0] == "lvchange" and {"--cachemode", "--cachesettings"} & set(words)
            assert ("vg/pool" if inner else f"vg/{self.inner}") not in words, "Command not permitted on this volume"
        assert f"/dev/vg/{self.inner}" not in words, "a hidden volume has no device in the folder of its group"
        words = ["vg/data" if word in ("vg/pool", f"vg/{self.inner}") else "vg-data" if word == f"vg-{self.inner}" else word for word in words]
        return super().run(words, **how)

    def _dmsetup(self, words: list[str]) -> str:
        return super()._dmsetup(words).replace("vg-data:", f"vg-{self.inner}:")

    def _lv_rows(self) -> list[dict[str, str]]:
        rows = []
        for row in super()._lv_rows():
            named = {key: _NAME.sub(self.inner, row[key]) for key in ("lv_full_name", "lv_name", "devices")}
            rows.append({**row, **named, "lv_name": f"[{self.inner}]" if named["lv_name"] == self.inner else named["lv_name"]})
        rows.append(lv_row("vg/pool", "twi-aotz--", self.pool, 400 * MIB, f"{self.inner}(0)"))
        rows.append(lv_row("vg/thin", "Vwi-aotz--", "thin" if self.pool == "thin-pool" else "vdo", 800 * MIB, "", pool_lv="pool"))
        if self.pool == "thin-pool":
            rows.append(lv_row("vg/pool_tmeta", "ewi-ao----", "linear", 4 * MIB, "/dev/sda(200)", hidden=True))
            rows.append(lv_row("vg/later", "Vwi-aotz-k", "thin", 800 * MIB, "", pool_lv="pool", origin="thin"))
        return rows


class Snapshotted(FakeLvm):
    """A cached volume ``vg/data`` with the thick snapshot ``vg/snap``: ``vg-data`` is a snapshot-origin target, and the cache is ``vg-data-real``."""

    def run(self, argv: t.Sequence[str], **how: t.Any) -> Completed:
        words = [str(word) for word in argv]
        if words[:2] in (["dmsetup", "reload"], ["dmsetup", "resume"], ["dmsetup", "clear"]):
            assert "vg-data" not in words, "this is the layer of the snapshot"
        if words[:2] == ["dmsetup", "table"] and words[-1] == "vg-data":
            raise AssertionError("this is the layer of the snapshot")
        return super().run(["vg-data" if word == "vg-data-real" else word for word in words], **how)

    def _dmsetup(self, words: list[str]) -> str:
        text = super()._dmsetup(words)
        if not text.startswith("vg-data:"):
            return text
        top = "vg-data: 0 819200 snapshot-origin 253:9\nvg-snap: 0 819200 snapshot 253:9 253:10 P 8\n"
        return f"{top}{text.replace('vg-data:', 'vg-data-real:')}"

    def _lv_rows(self) -> list[dict[str, str]]:
        snapshot = lv_row("vg/snap", "swi-a-s---", "linear", 400 * MIB, "/dev/sda(300)", origin="data", lv_role="public,snapshot,thicksnapshot")
        return [*super()._lv_rows(), snapshot]


class SpreadPool(FakeLvm):
    """A cache pool whose data lies on both SSDs.

    :param segtype: ``striped`` as ``lvcreate --stripes 2`` makes it, ``linear`` after the first was full, or a level of RAID.
    """

    def __init__(self, segtype: str = "striped", **fields: t.Any) -> None:
        super().__init__(fast="cachepool", **fields)
        self.pvs["/dev/sdc"] = "vg"
        self.segtype = segtype

    def _lv_rows(self) -> list[dict[str, str]]:
        rows = []
        for row in super()._lv_rows():
            data = row["lv_full_name"].endswith("_cdata")
            rows.append({**row, "segtype": self.segtype, "devices": "/dev/sdb(2),/dev/sdc(0)"} if data else row)
        return rows


class WithIntegrity(FakeLvm):
    """A volume that is a RAID1 of ``/dev/sda`` and ``/dev/sdd`` with integrity (``lvcreate --type raid1 --raidintegrity y``); with its cache if any."""

    version = "2.03.16(2) (2022-05-18)"

    def _lvm(self, words: list[str]) -> str:
        return f"  LVM version:     {self.version}\n  Library version: 1.02.185 (2022-05-18)\n" if words == ["version"] else super()._lvm(words)

    def _lv_rows(self) -> list[dict[str, str]]:
        rows = []
        for row in super()._lv_rows():
            name = row["lv_full_name"].rpartition("/")[2]
            if name not in ("data", "data_corig", "data_wcorig") or not row["devices"].startswith("/dev/sda"):
                rows.append(row)
                continue
            rows.append({**row, "segtype": "raid1", "devices": f"{name}_rimage_0(0),{name}_rimage_1(0)", "copy_percent": "100.00"})
            for number, path in enumerate(("/dev/sda", "/dev/sdd")):
                image = f"{name}_rimage_{number}"
                rows.append(lv_row(f"vg/{image}", "gwi-aor---", "integrity", 400 * MIB, f"{image}_iorig(0)", hidden=True))
                rows.append(lv_row(f"vg/{image}_iorig", "-wi-ao----", "linear", 400 * MIB, f"{path}(1)", hidden=True))
                rows.append(lv_row(f"vg/{image}_imeta", "ewi-ao----", "linear", 8 * MIB, f"{path}(120)", hidden=True))
                rows.append(lv_row(f"vg/{name}_rmeta_{number}", "ewi-aor---", "linear", 4 * MIB, f"{path}(0)", hidden=True))
        return rows


class WithoutStatus(FakeLvm):
    """A cached volume that is active, and of which device-mapper shows no cache."""

    def _dmsetup(self, words: list[str]) -> str:
        return "vg-data: 0 819200 linear \n" if words[:1] in ([], ["status"], ["table"]) else super()._dmsetup(words)


class Hidden(FakeLvm):
    """LVM that shows no volume and no physical volume, whatever runs: a filter, a devices file, or the system ID of another host."""

    def _lvm(self, words: list[str]) -> str:
        return '{"report": [{"vg": [], "pv": [], "lv": [], "pvseg": [], "seg": []}]}'
