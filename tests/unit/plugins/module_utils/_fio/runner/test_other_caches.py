# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write-back caches that the kernel does not count: SSD caches of controllers, by a clock that the test turns, and pools of ZFS."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import other_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.draining import NOT_CLEAN, NOT_KNOWN
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.snapshots import Snapshots
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import JOB, RunnerRig, _program, step
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner
from ansible_collections.cachefleet.storage.tests.unit.support.turned_clock import TurnedClock

NOT_REPORTED = "It is not known whether the SSD cache of the RAID controller was clean before this cell: its tool does not report that."
UNREADABLE = "It is not known whether the SSD cache of the RAID controller was clean before this cell: its state could not be read."


def ssd(dirty="unknown", write="enabled", policy="writeback", **values):
    return {"read": "enabled", "write": write, "write_policy": policy, "dirty": dirty, "cache_volume": None, **values}


def disk(cache, name="sda"):
    return {"name": name, "kind": "disk", "caches": [{"layer": "controller", "ssd_cache": cache}, {"layer": "drive"}]}


class Host(TurnedClock):
    """Targets whose layers are given, as a list by target or as a function of the time."""

    def __init__(self, monkeypatch, tmp_path, layers, stops_at=1e9, **replies):
        super().__init__(stops_at)
        self.layers, self.read = layers, []
        monkeypatch.setattr(other_caches.time, "monotonic", lambda: self.now)
        self.runner = ScriptedRunner({("smartctl",): Reply(rc=1), ("zpool", "sync"): Reply(), **{tuple(key.split("_")): one for key, one in replies.items()}})
        host = MeasuredHost(self.runner, lambda _devices: self, tmp_path, clock=lambda: self.now)
        self.snapshots = Snapshots(host, Devices([], tmp_path), ["top"], [])
        self.caches = other_caches.OtherCaches(host, self.snapshots, self, self)

    def describe(self, name):
        self.read.append(self.now)
        layers = self.layers(self.now) if callable(self.layers) else self.layers
        if layers is None:
            raise StorageError("The tool said nothing.")
        return {"layers": layers}

    def settle(self, most=1800.0):
        found = self.caches.settle(["top"], most)
        return found.not_deciding, found.sentences


@pytest.fixture
def host(monkeypatch, tmp_path):
    return lambda layers, **values: Host(monkeypatch, tmp_path, layers, **values)


# -- controllers


@pytest.mark.parametrize(
    "cache",
    [
        None,
        ssd(write="disabled"),
        ssd(policy="writethrough"),
        ssd(policy="writethrough", dirty="clean"),
        ssd(write="unknown", policy="unknown", read="disabled"),
    ],
)
def test_cache_that_holds_no_writes_costs_no_call_of_the_tool(host, cache):
    one = host([disk(cache)])
    assert one.settle() == ("", ()) and one.read == [0.0]


def test_clean_cache_is_read_before_each_cell(host):
    one = host([disk(ssd("clean"))])
    assert [one.settle(), one.settle()] == [("", ()), ("", ())] and len(one.read) == 3 and one.now == 0


@pytest.mark.parametrize("cache", [ssd(), ssd(write="unknown"), ssd(write="unknown", policy="unknown"), ssd(policy="instant_writeback")])
def test_tool_that_does_not_report_it_is_a_caveat(host, cache):
    assert host([disk(cache)]).settle() == ("", (NOT_REPORTED,))


def test_dirty_cache_is_waited_for_by_few_calls_of_the_tool(host):
    one = host(lambda now: [disk(ssd("clean" if now >= 150 else "dirty"))])
    assert one.settle() == ("", ()) and one.now == 180 and len(one.read) == 5
    assert one.said[0] == {"state": "pausing", "cell": None, "target": None, "until": 1300.0, "message": "the SSD cache of the RAID controller is dirty"}
    assert one.said[-1] == {"message": ""}


@pytest.mark.parametrize(("most", "seconds"), [(1800.0, 300), (90.0, 90)])
def test_cache_that_stays_dirty_does_not_decide_and_is_waited_for_once(host, most, seconds):
    one = host([disk(ssd("dirty", policy="writethrough"))])
    assert one.settle(most) == (NOT_CLEAN, (f"The SSD cache of the RAID controller was dirty before this cell: {seconds} seconds were waited for it.",))
    reason, (sentence,) = one.settle(most)
    assert reason == NOT_CLEAN and "was so before an earlier cell too" in sentence and one.now == seconds


def test_cache_that_became_clean_once_is_waited_for_again(host):
    one = host(lambda now: [disk(ssd("clean" if now == 400 else "dirty"))])
    one.settle()
    one.now = 400
    assert one.settle() == ("", ())
    one.now = 500
    assert one.settle()[0] == NOT_CLEAN and one.now == 800


@pytest.mark.parametrize("later", [None, [], [disk(None)], [disk(ssd())]], ids=["stack", "device", "tool", "word"])
def test_cache_that_cannot_be_read_any_more_does_not_decide(host, later):
    one = host([disk(ssd("clean"))])
    one.settle()
    one.layers = later
    assert [one.settle(), one.settle()] == [(NOT_KNOWN, (UNREADABLE,))] * 2


def test_write_caching_that_was_turned_off_is_no_unreadable_cache(host):
    one = host([disk(ssd("clean"))])
    one.settle()
    one.layers = [disk(ssd(policy="writethrough"))]
    assert one.settle() == ("", ()) and one.settle() == ("", ())


def test_dirty_cache_beside_one_that_is_not_reported_does_not_decide(host):
    assert host([disk(ssd("dirty")), disk(ssd(), "sdb")]).settle()[0] == NOT_CLEAN


def test_wait_for_a_dirty_cache_ends_when_stopped(host):
    one = host([disk(ssd("dirty"))], stops_at=50)
    one.settle()
    assert one.now == 60


# -- ZFS

ZVOL = [{"name": "zd0", "kind": "zvol"}, {"name": "zfs:tank", "kind": "zfs"}, {"name": "sda", "kind": "disk"}]


def test_pool_writes_out_what_it_holds(host):
    one = host(ZVOL)
    assert one.settle() == ("", ()) and ("zpool", "sync", "--", "tank") in one.runner.calls
    assert len(one.read) == 1, "nothing else is read for it"


@pytest.mark.parametrize("layers", [ZVOL, [{"name": "zd0", "kind": "disk"}]], ids=["command", "pool"])
def test_pool_that_no_command_can_reach_is_a_caveat(host, layers):
    one = host(layers)
    one.runner.missing = {"zpool"}
    reason, (sentence,) = one.settle()
    assert reason == "" and sentence.startswith("It is not known whether ZFS was clean before this cell: the command zpool cannot be used")


def test_pool_that_cannot_write_out_does_not_decide(host):
    one = host(ZVOL, zpool_sync=Reply(rc=1, stderr="cannot sync 'tank': pool I/O is currently suspended"))
    reason, (sentence,) = one.settle()
    assert reason == NOT_KNOWN and sentence.startswith("It is not known whether ZFS was clean before this cell: ") and "suspended" in sentence


def test_time_for_a_pool_is_limited(host, monkeypatch):
    limits = []

    def run(argv, *, timeout=None, **_others):
        limits.append(timeout)
        raise CommandFailed("zpool did not end within its time limit.")

    one = host(ZVOL)
    monkeypatch.setattr(one.runner, "run", run)
    assert [one.settle(30.0)[0], one.settle()[0], limits] == [NOT_KNOWN, NOT_KNOWN, [30.0, 600.0]]


def test_other_targets_run_no_command(host):
    one = host([disk(None)])
    assert one.settle() == ("", ()) and not any(call[0] == "zpool" for call in one.runner.calls)


# -- with a real runner


class Rig(RunnerRig):
    """The layers of every target are those of a file."""

    def layers(self, *layers):
        (self.root / "layers.new").write_text(json.dumps(layers))
        (self.root / "layers.new").rename(self.root / "layers")

    @property
    def host(self):
        return MeasuredHost(Runner(), lambda _devices: self, self.root, lambda runner, root: Devices(self.disks, root))

    def describe(self, name):
        return {"layers": json.loads((self.root / "layers").read_text())}


@pytest.fixture
def rig(tmp_path, monkeypatch):
    (tmp_path / "proc").mkdir()
    rig = Rig(tmp_path, monkeypatch)
    yield rig
    rig.end()


def test_cell_over_a_cache_that_is_not_reported_decides_with_a_caveat(rig):
    rig.layers(disk(ssd()))
    rig.finish(step(decides=["iops"]), step("fill", decides=[]), step("as-it-is", drain=0))
    assert (rig.meta()["decides"], rig.meta()["not_deciding"], rig.meta()["notes"]) == (["iops"], None, [NOT_REPORTED])
    assert [rig.meta(name)["notes"] for name in ("fill", "as-it-is")] == [[], []]


def test_cell_over_a_dirty_cache_of_a_controller_does_not_decide(rig):
    rig.layers(disk(ssd("dirty")))
    rig.finish(step(decides=["iops"], drain=0.2))
    assert (rig.meta()["decides"], rig.meta()["not_deciding"]) == ([], NOT_CLEAN) and rig.meta()["summary"]["write"]["iops"] == 1000


def test_file_in_a_pool_is_measured_with_the_caches_of_zfs(rig):
    here = os.stat(rig.root).st_dev
    for place, text in (
        ("self/mountinfo", f"36 35 {os.major(here)}:{os.minor(here)} / / rw - zfs tank/vm rw\n"),
        ("spl/kstat/zfs/arcstats", "size 4 4096\ndemand_data_hits 4 7\n"),
    ):
        (rig.root / "proc" / place).parent.mkdir(parents=True)
        (rig.root / "proc" / place).write_text(text)
    rig.layers()
    _program(rig.root / "bin/zpool", "#!/bin/sh\n[ \"$*\" = 'sync -- tank' ]\n")
    rig.finish({"cells": [{"name": "w", "target": {"file": "/fio", "size": 2**20}, "job": JOB}]})
    assert (rig.meta()["state"], rig.meta()["not_deciding"], rig.meta()["notes"]) == ("ok", None, [])
    series = gzip.decompress((rig.spool.place(CellKey("v", "w", 1)) / "cache_series.log.gz").read_bytes()).decode()
    assert series.splitlines()[1].endswith(",ARC of the host,,4096,7,,,,,,,,")


def test_cell_begins_when_the_cache_of_a_controller_is_clean(rig, monkeypatch):
    monkeypatch.setattr(other_caches, "_ASK", 0.1)
    rig.layers(disk(ssd("dirty")))
    rig.start(step(pause={"until": "clean", "most": 60}))
    rig.await_status(lambda status: status["message"] == "the SSD cache of the RAID controller is dirty")
    assert not rig.runs
    rig.layers(disk(ssd("clean")))
    assert rig.await_end()["state"] == "finished" and rig.meta()["not_deciding"] is None and rig.meta()["notes"] == []
