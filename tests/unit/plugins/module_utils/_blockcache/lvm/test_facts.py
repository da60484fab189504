# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.facts import read_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import NEWER_FIELDS
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import STATES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Signature
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, MIB, SSD, SSD1, SSD1_PATH, SSD_PATH, FakeLvm, NamedDevices

LVM_HDD = dataclasses.replace(HDD, signature=Signature(usage="raid", type="LVM2_member"))
MAPPED = BlockDevice(name="dm-0", path="/dev/dm-0", number="253:0", kind="lvm", dm_name="vg-data", dm_uuid="LVM-a")
ORIGIN = BlockDevice(name="dm-3", path="/dev/dm-3", number="253:3", kind="lvm", dm_name="vg-data_corig", dm_uuid="LVM-b-real")


def caches(lvm, *more):
    there = [device for device in (LVM_HDD, SSD, SSD1, MAPPED, ORIGIN, *more) if device.path not in lvm.gone]
    return read_caches(NamedDevices(there), lvm)


def test_host_without_lvm_runs_no_commands():
    lvm = FakeLvm()
    assert read_caches(NamedDevices([HDD, SSD]), lvm) == ()
    assert lvm.calls == []


def test_host_with_volumes_but_without_lvm_command():
    lvm = FakeLvm(missing=["lvm"])
    assert read_caches(NamedDevices([LVM_HDD]), lvm) == ()


def test_host_without_cache_runs_one_report():
    lvm = FakeLvm(extended=True)
    assert caches(lvm) == ()
    assert [words[:2] for words in lvm.calls] == [("lvm", "fullreport")]


def test_cachepool():
    (state,) = caches(FakeLvm(fast="cachepool", mirror=True, mode="writeback", dirty=3, settings="migration_threshold=16384"))
    assert (state.type, state.name, state.kind, state.state, state.problem) == ("lvm_cache", "vg/data", "cachepool", "ok", "")
    assert (state.device, state.device_name, state.origin, state.origin_name) == ("/dev/vg/data", "dm-0", "/dev/mapper/vg-data_corig", "dm-3")
    assert (state.cache_devices, state.cache_device_names) == ((SSD_PATH, SSD1_PATH), ("sdb", "sdc"))
    assert (state.mode, state.policy, state.block_size, state.size) == ("writeback", "smq", 65536, 200 * MIB)
    assert (state.used, state.dirty, state.redundancy) == (942 * 65536, 3 * 65536, "mirrored")
    assert state.settings == {"migration_threshold": 16384}
    assert state.counters == {"read_hits": 248, "read_misses": 100, "write_hits": 2487, "write_misses": 2633}
    assert json.dumps(state.to_dict())


def test_writecache():
    (state,) = caches(FakeLvm(fast="writecache", dirty=5, settings="high_watermark=60,cleaner=1"))
    assert (state.kind, state.mode, state.policy, state.block_size) == ("writecache", "writeback", None, 4096)
    assert (state.used, state.dirty, state.redundancy) == (5 * 4096, 5 * 4096, "none")
    assert state.settings == {"high_watermark": 60, "block_size": 4096}


@pytest.mark.parametrize("lacking", [{"writecache_block_size"}, set(NEWER_FIELDS)])
def test_older_lvm_is_asked_again_without_the_fields_that_it_does_not_have(lacking):
    """2.03.11 of Debian 11 has no writecache_block_size."""
    lvm = FakeLvm(fast="writecache", dirty=5)
    lvm.lacking = lacking
    (state,) = caches(lvm)
    assert (state.kind, state.mode, state.block_size, state.dirty) == ("writecache", "writeback", 4096, 5 * 4096)
    assert len([words for words in lvm.calls if words[:2] == ("lvm", "fullreport")]) == 1 + len(lacking)


def test_a_field_that_every_lvm_has_is_not_left_out():
    lvm = FakeLvm(fast="cachepool")
    lvm.lacking = {"lv_uuid"}
    with pytest.raises(CommandFailed, match="Unrecognised field: lv_uuid"):
        caches(lvm)
    assert len(lvm.calls) == 1


def test_inactive_cache_is_reported_from_lvm_only():
    lvm = FakeLvm(fast="cachevol", mode="writeback")
    lvm.origin["attr"] = "-wi-------"
    (state,) = read_caches(NamedDevices([LVM_HDD, SSD]), lvm)
    assert (state.state, state.device, state.mode, state.dirty) == ("inactive", None, "writeback", None)
    assert "lvchange -ay vg/data" in state.problem


def broken(**changes):
    def change(lvm):
        lvm.cache.update(changes)

    return change


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (broken(check="check needed"), "needs_check"),
        (broken(kernel_check="needs_check"), "needs_check"),
        (broken(metadata="ro"), "read_only"),
        (broken(dirty=None), "failed"),
        (lambda lvm: lvm.gone.add("/dev/sdb"), "cache_missing"),
        (lambda lvm: lvm.gone.add("/dev/sda"), "failed"),
    ],
)
@pytest.mark.parametrize("mode", ["writethrough", "writeback"])
def test_problem_sets_state_and_message(harm, expected, mode):
    lvm = FakeLvm(fast="cachepool", mode=mode)
    harm(lvm)
    if "/dev/sda" in lvm.gone:
        rows = lvm._lv_rows()
        lvm._lv_rows = lambda: [{**row, "devices": row["devices"].replace("/dev/sda", "[unknown]")} for row in rows]
    (state,) = caches(lvm)
    assert state.state == expected
    assert expected in STATES
    assert state.problem.startswith("vg/data ")
    assert state.problem.endswith(".")
    # What LVM says of a cache that has failed is no figure.
    assert (state.dirty is None) == (expected in ("failed", "cache_missing") and "/dev/sda" not in lvm.gone)


def test_mode_of_failed_cache_is_read_from_kernel():
    lvm = FakeLvm(fast="cachepool", mode="writethrough", dirty=None)
    lvm.cache["kernel_mode"] = "writeback"
    (state,) = caches(lvm)
    assert state.mode == "writeback"
    assert "decide manually" in state.problem


def test_failed_report_raises_with_exit_status():
    lvm = FakeLvm(fast="cachepool")
    lvm.lies["lvm fullreport"] = (5, False)
    with pytest.raises(CommandFailed, match="exit status 5"):
        caches(lvm)


class TestTwentyFour:
    """One host with 24 mirrored caches, each in its own volume group."""

    COUNT = 24

    class Many:
        """A Runner that answers for many machines of the fake at once."""

        def __init__(self, count):
            self.lvm = FakeLvm(fast="cachepool", mirror=True, mode="writeback", dirty=3)
            self.count = count
            self.calls = []

        def has(self, name):
            return True

        def run(self, argv, **how):
            self.calls.append(tuple(argv))
            text = self.lvm.run(argv).stdout
            if argv[0] == "lvm":
                (part,) = json.loads(text)["report"]
                parts = []
                for number in range(self.count):
                    named = json.dumps(part).replace("vg/", f"vg{number}/").replace('"vg"', f'"vg{number}"').replace("/dev/sd", f"/dev/n{number}sd")
                    parts.append(json.loads(named))
                text = json.dumps({"report": parts})
            else:
                text = "".join(text.replace("vg-data", f"vg{number}-data") for number in range(self.count))
            return Completed(tuple(argv), 0, text, "")

    @pytest.fixture
    def devices(self):
        found = []
        for number in range(self.COUNT):
            for device in (LVM_HDD, SSD, SSD1):
                path = device.path.replace("/dev/sd", f"/dev/n{number}sd")
                links = tuple(f"{link}-{number}" for link in device.by_id)
                found.append(dataclasses.replace(device, name=path[5:], path=path, number=f"{number}:{device.number[2:]}", by_id=links))
        return NamedDevices(found)

    def test_read_runs_two_commands(self, devices):
        runner = self.Many(self.COUNT)
        states = read_caches(devices, runner)
        assert [(state.redundancy, state.state, len(state.cache_devices)) for state in states] == [("mirrored", "ok", 2)] * self.COUNT
        assert [words[:2] for words in runner.calls] == [("lvm", "fullreport"), ("dmsetup", "status")]

    def test_converged_host_runs_two_commands_in_under_one_second(self, devices, monkeypatch, tmp_path):
        monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: devices)
        items = [
            {
                "name": f"cache{number}",
                "origin": f"vg{number}/data",
                "cache_devices": [f"{SSD_PATH}-{number}", f"{SSD1_PATH}-{number}"],
                "mirror": True,
                "mode": "writeback",
                "size": "200M",
            }
            for number in range(self.COUNT)
        ]
        runner = self.Many(self.COUNT)
        requested = read_items(items)
        started = time.process_time()
        layer = LvmCacheLayer(runner, requested, tmp_path)
        outcome = converge(layer, check_mode=False)
        facts = layer.facts(outcome.state)
        spent = time.process_time() - started
        assert not outcome.changed
        assert len(facts["caches"]) == self.COUNT
        assert [words[:2] for words in runner.calls] == [("lvm", "fullreport"), ("dmsetup", "status")]
        assert spent < 1.0


class Flushing(FakeLvm):
    """LVM flushes a cache, which may take hours, and holds its lock all the time."""

    def run(self, argv, *, timeout=None, **how):
        if argv[0] == "lvm" and "--nolocking" not in argv:
            self.calls.append(tuple(argv))
            raise TimedOut(f"lvm did not end within {timeout:g} seconds and was stopped.")
        return super().run(argv, **how)


def test_cache_being_flushed_is_read_without_lvm_lock():
    lvm = Flushing()
    assert caches(lvm) == ()
    assert [("--nolocking" in call) for call in lvm.calls if call[0] == "lvm"] == [False, True]
