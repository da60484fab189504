# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of ZFS while fio runs, of a host of files: of a zvol, and of a file that lies in a pool."""

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import devices_below
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.warming import counts_hits, why_not_empty
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import ScriptedRunner

GIB = 1 << 30
VALUES = {
    "hits": 999, "misses": 999, "demand_data_hits": 100, "demand_data_misses": 20, "demand_metadata_hits": 7, "size": 3 * GIB, "c": 4 * GIB,
    "c_max": 8 * GIB, "l2_hits": 5, "l2_misses": 15, "l2_asize": GIB, "l2_size": 2 * GIB,
}  # fmt: skip


class Host:
    def __init__(self, root):
        self.root = root
        self.devices = Devices([BlockDevice("zd0", "/dev/zd0", "230:0", size=GIB), BlockDevice("sda", "/dev/sda", "8:0", size=GIB)], root)
        self.samples = CacheSamples(self.devices, ScriptedRunner({}), root)
        self.place = root / "proc/spl/kstat/zfs/arcstats"
        self.place.parent.mkdir(parents=True)

    def write(self, without=(), **values):
        rows = {name: value for name, value in {**VALUES, **values}.items() if name not in without}
        self.place.write_text("9 1 0x01 3 816 1 2\nname type data\n" + "".join(f"{name} 4 {value}\n" for name, value in rows.items()))

    def rows(self, *names):
        return self.samples.rows(names or ("zd0",))


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path)
    host.write()
    return host


def test_arc_and_l2arc_are_sampled(host):
    assert host.rows() == [f"ARC of the host,,{3 * GIB},100,20,,,,,{8 * GIB},,", f"L2ARC of the host,,{GIB},5,15,,,,,,,"]


def test_hits_on_what_is_being_read_count_as_hits(host):
    host.write(demand_data_iohits=30)
    assert host.samples.read(["zfs:tank"])[0].counters == {"read_hits": 130, "read_misses": 20}


def test_host_without_a_cache_device_has_no_l2arc(host):
    host.write(l2_hits=0, l2_misses=0, l2_asize=0)
    assert [row.partition(",")[0] for row in host.rows()] == ["ARC of the host"]


def test_what_a_version_does_not_count_is_missing(host):
    host.write(without=["demand_data_hits", "c_max", "l2_asize"])
    assert host.rows() == [f"ARC of the host,,{3 * GIB},,20,,,,,,,", "L2ARC of the host,,,5,15,,,,,,,"]
    host.write(without=VALUES)
    assert host.rows() == []


def test_other_devices_have_no_caches_of_zfs(host):
    assert host.rows("sda") == []


@pytest.mark.parametrize("text", [None, "", "\0\0", "size 4 many\n"])
def test_arcstats_that_cannot_be_read_have_no_sample(host, text):
    host.place.unlink() if text is None else host.place.write_text(text)
    assert host.rows() == [] and not counts_hits(host.samples.read(["zd0"]))


def test_caches_of_zfs_are_neither_dirty_nor_taken_for_empty(host):
    assert host.samples.dirty(["zd0"]) == 0, "what a pool holds is written out before a cell"
    assert why_not_empty(host.samples.read(["zd0"]), GIB).startswith("The cache ARC of the host holds 3 GiB")
    assert counts_hits(host.samples.read(["zd0"]))


# -- files


def below(host, *, kind="zfs", number=None, source="tank/vm/images"):
    """What is below a file in the folder of the host."""
    here = os.stat(host.root).st_dev
    number = number or f"{os.major(here)}:{os.minor(here)}"
    (host.root / "proc/self").mkdir(exist_ok=True)
    (host.root / "proc/self/mountinfo").write_text(f"36 35 {number} / /srv rw,noatime - {kind} {source} rw,xattr\n")
    return [one.name for one in devices_below(host.devices, TargetFacts(GuardTarget("/fio", "file"), "/fio"), host.root)]


def test_file_in_a_pool_lies_on_the_pool(host):
    assert below(host) == ["zfs:tank"] and below(host, source="tank") == ["zfs:tank"]
    assert host.rows(*below(host))[0].startswith("ARC of the host,")


def test_file_elsewhere_lies_on_no_pool(host):
    assert below(host, kind="tmpfs") == below(host, number="0:9999") == []
    (host.root / "proc/self/mountinfo").unlink()
    assert devices_below(host.devices, TargetFacts(GuardTarget("/fio", "file"), "/fio"), host.root) == []
