# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole lives of caches, cut off at every command and continued."""

from __future__ import annotations

import copy
import dataclasses
import itertools

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import (
    HDD,
    MIB,
    SSD,
    SSD1,
    SSD1_PATH,
    SSD_PATH,
    FakeLvm,
    Killed,
    NamedDevices,
    dirty_cachepool,
    make_dev,
)
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}
BOTH = {"mirror": True, "cache_devices": [SSD_PATH, SSD1_PATH]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
WRITECACHE = {"kind": "writecache", "allow_unmirrored_writeback": True}
RELEASED = {"state": "absent", "release_devices": True}


@pytest.fixture
def run(monkeypatch, tmp_path):
    make_dev(tmp_path)

    def converged(lvm, *, check_mode=False, **fields):
        there = [device for device in (HDD, SSD, SSD1) if device.path not in lvm.gone]
        monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices(there))
        requested = read_items([{**ITEM, **fields}])
        ticks = itertools.count(0, 30)
        layer = LvmCacheLayer(lvm, requested, tmp_path, clock=lambda: next(ticks), sleep=lambda seconds: None)
        outcome = converge(layer, check_mode=check_mode)
        return outcome, layer.facts(outcome.state)

    return converged


def attached(lvm):
    cache = lvm.cache
    return None if cache is None else (cache["kind"], cache["mode"], cache["size"] // MIB, cache.get("legs"), tuple(cache["paths"]))


#: Name: the machine before, what is wanted, what is there afterwards.
LIVES = {
    "cachepool": (FakeLvm, {"size": "200M"}, ("cachepool", "writethrough", 200, "linear", ("/dev/sdb",))),
    "cachevol": (FakeLvm, {"kind": "cachevol", "size": "200M", **WRITEBACK}, ("cachevol", "writeback", 200, "linear", ("/dev/sdb",))),
    "writecache": (FakeLvm, {"size": "200M", **WRITECACHE}, ("writecache", "writeback", 200, "linear", ("/dev/sdb",))),
    "mirrored cachepool": (FakeLvm, {"size": "200M", **BOTH, "mode": "writeback"}, ("cachepool", "writeback", 200, "raid1", ("/dev/sdb", "/dev/sdc"))),
    "mirrored cachepool over all": (FakeLvm, {**BOTH}, ("cachepool", "writethrough", 488, "raid1", ("/dev/sdb", "/dev/sdc"))),
    "mirrored cachevol": (FakeLvm, {"kind": "cachevol", **BOTH}, ("cachevol", "writethrough", 508, "raid1", ("/dev/sdb", "/dev/sdc"))),
    "writecache with settings": (
        FakeLvm,
        {**WRITECACHE, "settings": {"high_watermark": 60, "pause_writeback": 100}},
        ("writecache", "writeback", 512, "linear", ("/dev/sdb",)),
    ),
    "to writeback": (lambda: FakeLvm(fast="cachepool"), WRITEBACK, ("cachepool", "writeback", 200, "linear", ("/dev/sdb",))),
    "to writethrough": (
        dirty_cachepool,
        {"settings": {"migration_threshold": 16384}},
        ("cachepool", "writethrough", 200, "linear", ("/dev/sdb",)),
    ),
    "flushed": (
        lambda: FakeLvm(fast="cachevol", mode="writeback", dirty=839),
        {"state": "flushed"},
        ("cachevol", "writethrough", 200, "linear", ("/dev/sdb",)),
    ),
    "flushed writecache": (lambda: FakeLvm(fast="writecache", dirty=839), {"state": "flushed"}, ("writecache", "writeback", 200, "linear", ("/dev/sdb",))),
    "flushed writecache in use again": (
        lambda: FakeLvm(fast="writecache", settings="cleaner=1"),
        WRITECACHE,
        ("writecache", "writeback", 200, "linear", ("/dev/sdb",)),
    ),
    "settings of a writecache": (
        lambda: FakeLvm(fast="writecache", dirty=5, settings="high_watermark=80,low_watermark=70,writeback_jobs=9"),
        {**WRITECACHE, "settings": {"high_watermark": 30, "low_watermark": 20, "writeback_jobs": "default"}},
        ("writecache", "writeback", 200, "linear", ("/dev/sdb",)),
    ),
    "larger": (
        dirty_cachepool,
        {"size": "400M", **WRITEBACK},
        ("cachepool", "writeback", 400, "linear", ("/dev/sdb",)),
    ),
    "another kind": (
        dirty_cachepool,
        {**WRITECACHE, "size": "300M", "settings": {"block_size": 512}},
        ("writecache", "writeback", 300, "linear", ("/dev/sdb",)),
    ),
    "from writecache to cachevol": (
        lambda: FakeLvm(fast="writecache", dirty=839),
        {"kind": "cachevol", "size": "100M"},
        ("cachevol", "writethrough", 100, "linear", ("/dev/sdb",)),
    ),
    "another chunk size": (
        lambda: FakeLvm(fast="cachepool"),
        {"chunk_size": "128k", "size": "200M"},
        ("cachepool", "writethrough", 200, "linear", ("/dev/sdb",)),
    ),
    "another block size": (
        lambda: FakeLvm(fast="writecache", dirty=3),
        {**WRITECACHE, "size": "200M", "settings": {"block_size": 512}},
        ("writecache", "writeback", 200, "linear", ("/dev/sdb",)),
    ),
    "another device": (
        dirty_cachepool,
        {"cache_devices": [SSD1_PATH], **WRITEBACK},
        ("cachepool", "writeback", 496, "linear", ("/dev/sdc",)),
    ),
    "mirrored": (
        dirty_cachepool,
        {"size": "300M", "mode": "writeback", **BOTH},
        ("cachepool", "writeback", 300, "raid1", ("/dev/sdb", "/dev/sdc")),
    ),
    "no longer mirrored": (
        lambda: FakeLvm(fast="cachepool", mirror=True, mode="writeback", dirty=839),
        {"cache_devices": [SSD_PATH], "size": "300M"},
        ("cachepool", "writethrough", 300, "linear", ("/dev/sdb",)),
    ),
    "absent": (dirty_cachepool, {"state": "absent"}, None),
    "absent writecache": (lambda: FakeLvm(fast="writecache", dirty=839), {"state": "absent"}, None),
    "absent and released": (lambda: FakeLvm(fast="cachevol", dirty=7), RELEASED, None),
    "absent mirror and released": (lambda: FakeLvm(fast="cachepool", mirror=True, mode="writeback", dirty=839), {**RELEASED, **BOTH}, None),
    "absent writecache and released": (lambda: FakeLvm(fast="writecache", dirty=839), RELEASED, None),
}


@pytest.mark.parametrize("life", LIVES)
def test_scenario_matches_prediction_without_change_on_second_run(run, life):
    make, fields, expected = LIVES[life]
    lvm = make()
    predicted, _facts = run(lvm, check_mode=True, **fields)
    assert predicted.changed
    assert lvm.changes == []
    done, facts = run(lvm, **fields)
    assert done.to_dict() == predicted.to_dict()
    assert attached(lvm) == expected
    assert len(facts["caches"]) == (expected is not None)
    again, _facts = run(lvm, **fields)
    assert not again.changed
    if fields.get("release_devices"):
        assert list(lvm.pvs) == ["/dev/sda"]


@pytest.mark.parametrize("life", LIVES)
def test_full_or_read_only_file_system_at_any_command_loses_nothing(run, life, tmp_path):
    """LVM changes nothing of a group whose metadata it cannot archive; the fake refuses whatever would lose a block."""
    make, fields, _expected = LIVES[life]

    def fresh():
        lvm = make()
        lvm.root = tmp_path
        return lvm

    strike_everywhere(fresh, lambda lvm: run(lvm, **fields), at_least=1)


def test_backup_that_lvm_could_not_write_is_a_warning(run, monkeypatch):
    """LVM 2.03.16 ends with 0 then."""
    lvm = FakeLvm(fast="cachepool")
    really = lvm.run

    def with_full_backup(argv, **how):
        completed = really(argv, **how)
        failed = "  /etc/lvm/backup/vg.tmp: write error failed: No space left on device\n  Backup of volume group vg metadata failed.\n"
        return dataclasses.replace(completed, stderr=failed) if argv[0] == "lvchange" else completed

    monkeypatch.setattr(lvm, "run", with_full_backup)
    (warning,) = run(lvm, **WRITEBACK)[0].warnings
    assert warning == (
        "images: lvchange --yes --cachemode writeback vg/data did its work and could not write what it keeps of it:"
        " /etc/lvm/backup/vg.tmp: write error failed: No space left on device."
    )


@pytest.mark.parametrize("moment", ["before", "inside", "after"])
@pytest.mark.parametrize("life", LIVES)
def test_run_interrupted_at_any_command_is_continued(run, life, moment):
    """The fake refuses whatever would lose a block, and everything that LVM refuses."""
    make, fields, expected = LIVES[life]
    whole = make()
    run(whole, **fields)
    for number in range(1, len(whole.changes) + 1):
        lvm = make()
        lvm.kill = (number, moment)
        try:
            run(lvm, **fields)
        except Killed:
            lvm.kill = None
            run(lvm, **fields)
        assert attached(lvm) == expected, (number, whole.changes[number - 1])
        assert (lvm.unattached, lvm.pvs) == (whole.unattached, whole.pvs)
        if lvm.cache is not None:
            assert (lvm.cache["settings"], lvm.kernel_mode) == (whole.cache["settings"], whole.kernel_mode)
            assert lvm.cache["table"] == whole.cache["table"] or lvm.cache["kind"] != "writecache"
        assert not run(lvm, **fields)[0].changed


@pytest.mark.parametrize("life", ["mirrored cachepool", "mirrored", "larger", "absent mirror and released"])
def test_run_interrupted_twice_is_continued(run, life):
    make, fields, expected = LIVES[life]
    whole = make()
    run(whole, **fields)
    count = len(whole.changes)
    for first, second in itertools.product(range(1, count + 1), repeat=2):
        lvm = make()
        for number in (first, second):
            lvm.kill = (len(lvm.changes) + number, "inside")
            try:
                run(lvm, **fields)
            except Killed:
                continue
            finally:
                lvm.kill = None
        run(lvm, **fields)
        assert attached(lvm) == expected


@pytest.mark.parametrize(("kind", "devices"), [("cachepool", BOTH), ("cachevol", BOTH), ("writecache", {})])
def test_cache_no_longer_requested_after_interruption_is_removed(run, kind, devices):
    fields = {"kind": kind, "allow_unmirrored_writeback": True, **devices}
    whole = FakeLvm()
    run(whole, **fields)
    for number, moment in itertools.product(range(1, len(whole.changes) + 1), ("before", "inside", "after")):
        lvm = FakeLvm()
        lvm.kill = (number, moment)
        with pytest.raises(Killed):
            run(lvm, **fields)
        lvm.kill = None
        run(lvm, **fields, **RELEASED)
        assert (lvm.cache, lvm.unattached, list(lvm.pvs)) == (None, {}, ["/dev/sda"])


class TestWhatDoesNotFitIsRefusedBeforeAnythingIsTakenAway:
    @pytest.mark.parametrize(
        ("fields", "error", "message"),
        [
            ({"size": "600M"}, StorageError, "use a smaller size"),
            ({"kind": "writecache"}, Refused, "allow_unmirrored_writeback"),
            ({"cache_devices": ["/dev/disk/by-id/ata-HDD0"]}, StorageError, "has no benefit"),
            ({"cache_devices": ["/dev/disk/by-id/ata-GONE"]}, DeviceMissing, "does not exist"),
            ({"size": "300M", "chunk_size": "32k", "kind": "writecache"}, StorageError, "chunk_size is not supported for kind writecache"),
            ({"kind": "writecache", "settings": {"high_watermark": 20}, "allow_unmirrored_writeback": True}, StorageError, "low_watermark"),
        ],
    )
    def test_invalid_change_is_refused(self, run, fields, error, message):
        lvm = FakeLvm(fast="cachepool", dirty=0)
        before = copy.deepcopy(lvm.cache)
        with pytest.raises(error, match=message):
            run(lvm, **fields)
        assert (lvm.cache, lvm.changes) == (before, [])

    def test_non_empty_device_is_refused(self, run):
        lvm = FakeLvm(fast="cachepool")
        lvm.signatures[SSD1_PATH] = "xfs"
        with pytest.raises(Refused, match=r"carries a signature \(xfs\)"):
            run(lvm, cache_devices=[SSD1_PATH])
        assert lvm.changes == []

    def test_missing_cache_check_is_reported(self, run):
        lvm = FakeLvm(fast="writecache", missing=["cache_check"])
        with pytest.raises(StorageError, match="cache_check is missing"):
            run(lvm)
        assert lvm.changes == []

    @pytest.mark.parametrize("printed", ["TYPE=ext4\nBLOCK_SIZE=512\n", "TYPE=ext4\n"])
    def test_block_size_unsupported_by_file_system_is_refused(self, run, printed):
        """blkid before 2.38 prints no BLOCK_SIZE: then 512 is what it may be."""
        lvm = FakeLvm(fast="cachepool")
        lvm.content = printed
        with pytest.raises(Refused, match="writes in units of 512 bytes, which a writecache with block_size 4096 does not support"):
            run(lvm, **WRITECACHE, settings={"block_size": 4096})
        assert lvm.changes == []
        run(lvm, **WRITECACHE, settings={"block_size": 512})
        assert lvm.cache["chunk"] == 512


class TestAPulledDevice:
    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    def test_writethrough_cache_is_removed_without_force(self, run, kind):
        lvm = FakeLvm(fast=kind)
        lvm.gone.add("/dev/sdb")
        outcome, _facts = run(lvm, kind=kind, state="absent")
        assert lvm.changes == ["lvconvert --yes --uncache vg/data"]
        assert "wrote through, so that nothing is lost" in outcome.steps[0].action
        assert not run(lvm, kind=kind, state="absent")[0].changed

    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    def test_missing_device_is_replaced(self, run, kind):
        lvm = FakeLvm(fast=kind)
        lvm.gone.add("/dev/sdb")
        run(lvm, kind=kind, size="200M", cache_devices=[SSD1_PATH])
        assert lvm.changes[:2] == ["lvconvert --yes --uncache vg/data", "vgreduce --removemissing vg"]
        assert lvm.cache["paths"] == ["/dev/sdc"]

    def test_nothing_changes_while_requested_device_is_missing(self, run):
        lvm = FakeLvm(fast="cachepool")
        lvm.gone.add("/dev/sdb")
        with pytest.raises(Refused, match="it wrote through, so that nothing is lost with it: state: absent removes it without --force"):
            run(lvm)
        assert lvm.changes == []

    def test_returned_failed_cache_is_recreated(self, run):
        lvm = FakeLvm(fast="cachepool", dirty=None)
        run(lvm, size="200M")
        assert [change.split()[0] for change in lvm.changes] == ["lvconvert", "lvcreate", "lvconvert"]
        assert lvm.cache["dirty"] == 0

    @pytest.mark.parametrize("state", ["present", "flushed", "absent"])
    def test_kernel_writeback_under_stored_writethrough_is_refused(self, run, state):
        lvm = FakeLvm(fast="cachepool")
        lvm.cache["kernel_mode"] = "writeback"
        lvm.gone.add("/dev/sdb")
        with pytest.raises(Refused, match="decide manually"):
            run(lvm, state=state, cache_devices=[SSD1_PATH])
        assert lvm.changes == []

    def test_cache_switching_to_writeback_before_removal_is_kept(self, run, monkeypatch):
        lvm = FakeLvm(fast="cachepool")
        lvm.gone.add("/dev/sdb")
        requested = read_items([{**ITEM, "state": "absent"}])
        run(lvm, check_mode=True, state="absent")
        layer = LvmCacheLayer(lvm, requested)
        (step,) = layer.plan(layer.read())
        lvm.cache["kernel_mode"] = "writeback"
        with pytest.raises(NotEffective, match="is not known to have written through"):
            layer.apply(step)
        assert lvm.changes == []

    def test_flushed_of_unreadable_writethrough_cache_is_no_change(self, run):
        lvm = FakeLvm(fast="cachepool")
        lvm.gone.add("/dev/sdb")
        outcome, facts = run(lvm, state="flushed")
        assert not outcome.changed
        assert "state: absent removes it without --force" in facts["problems"][0]
        assert facts["caches"][0]["state"] == "cache_missing"


class TestAMirrorThatLostADevice:
    @pytest.fixture
    def lvm(self):
        lvm = FakeLvm(fast="cachepool", mirror=True, mode="writeback", dirty=5)
        lvm.gone.add("/dev/sdc")
        return lvm

    def test_degraded_mirror_stays_in_use_and_reports_repair(self, run, lvm):
        outcome, facts = run(lvm, mode="writeback", **BOTH)
        assert not outcome.changed
        (problem,) = facts["problems"]
        assert "lvconvert --repair vg/data_cache_cpool_cdata and lvconvert --repair vg/data_cache_cpool_cmeta" in problem
        assert (facts["caches"][0]["redundancy"], facts["caches"][0]["state"]) == ("degraded", "ok")
        assert facts["caches"][0]["cache_devices"] == [SSD_PATH]

    @pytest.mark.parametrize("fields", [{"state": "absent"}, {"state": "flushed"}, {"settings": {"migration_threshold": 4096}}, {"mode": "writethrough"}])
    def test_degraded_mirror_is_not_changed_before_repair(self, run, lvm, fields):
        with pytest.raises(Refused, match=r"misses a device of its mirrored cache.*lvconvert --repair"):
            run(lvm, **{"mode": "writeback", **BOTH, **fields})
        assert lvm.changes == []

    def test_writethrough_cache_can_be_removed(self, run):
        lvm = FakeLvm(fast="cachevol", mirror=True)
        lvm.gone.add("/dev/sdc")
        run(lvm, state="absent")
        assert lvm.cache is None

    def test_returned_device_requires_refresh(self, run):
        lvm = FakeLvm(fast="cachevol", mirror=True, mode="writeback")
        lvm.cache["leg_health"] = "refresh needed"
        (problem,) = run(lvm, kind="cachevol", mode="writeback", **BOTH)[1]["problems"]
        assert "run lvchange --refresh" in problem

    def test_synchronizing_mirror_counts_as_degraded(self, run):
        lvm = FakeLvm(fast="cachevol", mirror=True)
        lvm.cache["synced"] = "83.56"
        with pytest.raises(Refused, match="degraded"):
            run(lvm, kind="cachevol", mode="writeback", **BOTH)


class TestSettingsOfAWritecache:
    def test_all_settings_are_changed_by_one_command(self, run):
        lvm = FakeLvm(fast="writecache", settings="high_watermark=80,low_watermark=70")
        run(lvm, **WRITECACHE, settings={"high_watermark": 30, "low_watermark": 20})
        assert lvm.changes == ["lvchange --yes --cachesettings high_watermark=30 low_watermark=20 vg/data"]

    def test_unspecified_settings_are_included_in_validation(self, run):
        lvm = FakeLvm(fast="writecache", settings="high_watermark=80,low_watermark=70")
        with pytest.raises(StorageError, match="low_watermark would be 70 and high_watermark 60"):
            run(lvm, **WRITECACHE, settings={"high_watermark": 60})

    def test_removing_one_setting_clears_and_resets_all(self, run):
        lvm = FakeLvm(fast="writecache", settings="max_age=5000,writeback_jobs=9")
        run(lvm, **WRITECACHE, settings={"max_age": "default"})
        assert lvm.changes == ["lvchange --yes --cachesettings  vg/data", "lvchange --yes --cachesettings writeback_jobs=9 vg/data"]

    def test_setting_unsupported_by_lvm_fails_after_all_other_changes(self, run):
        lvm = FakeLvm(missing=["pause_writeback"])
        with pytest.raises(NotEffective, match="does not support the writecache setting pause_writeback"):
            run(lvm, **WRITECACHE, settings={"pause_writeback": 100, "max_age": 5000})
        assert lvm.cache["settings"] == "max_age=5000"

    def test_metadata_only_is_set_last_and_removed(self, run):
        lvm = FakeLvm()
        run(lvm, **WRITECACHE, settings={"metadata_only": True, "max_age": 5000})
        assert lvm.changes[-1] == "lvchange --yes --cachesettings metadata_only=1 vg/data"
        assert lvm.cache["settings"] == "max_age=5000,metadata_only=1"
        done = len(lvm.changes)
        run(lvm, **WRITECACHE, settings={"metadata_only": "yes"})
        assert len(lvm.changes) == done
        run(lvm, **WRITECACHE, settings={"metadata_only": 0})
        assert lvm.cache["settings"] == "max_age=5000"

    def test_disabled_flag_is_absent_from_table(self, run):
        lvm = FakeLvm(fast="writecache", settings="metadata_only=0")
        run(lvm, **WRITECACHE)
        assert lvm.changes == []

    def test_stored_but_not_loaded_settings_are_loaded(self, run):
        lvm = FakeLvm(fast="writecache", settings="max_age=5000")
        lvm.cache["table"] = ""
        run(lvm, **WRITECACHE)
        assert lvm.changes == ["lvchange --refresh vg/data"]

    def test_kernel_error_is_reported(self, run):
        lvm = FakeLvm(fast="writecache", dirty=7)
        lvm.cache["error"] = 5
        for state in ("present", "flushed", "absent"):
            with pytest.raises(Refused, match="failed with error 5"):
                run(lvm, **WRITECACHE, state=state)

    def test_stored_but_not_loaded_cleaner_does_not_prove_a_flush(self, run):
        lvm = FakeLvm(fast="writecache", dirty=0, settings="cleaner=1")
        lvm.cache["table"] = ""
        outcome, _facts = run(lvm, state="flushed")
        assert outcome.changed
        assert lvm.cache["table"] == "cleaner=1"


class TestGivingDevicesBack:
    def test_device_with_other_contents_is_kept_and_reported(self, run):
        lvm = FakeLvm(fast="cachepool")
        lvm.unattached["other"] = {"name": "other", "kind": "cachevol", "size": 8 * MIB, "chunk": 65536, "tags": "", "paths": ["/dev/sdb"]}
        outcome, _facts = run(lvm, **RELEASED)
        assert outcome.warnings == (f"images: {SSD_PATH} stays in volume group vg, because vg/other is on it.",)
        assert "/dev/sdb" in lvm.pvs

    def test_device_of_another_group_is_not_touched(self, run):
        lvm = FakeLvm()
        lvm.pvs["/dev/sdb"] = "vg2"
        assert not run(lvm, **RELEASED)[0].changed

    def test_only_named_devices_are_released(self, run):
        lvm = FakeLvm(fast="cachepool", mirror=True)
        run(lvm, **RELEASED)
        assert lvm.pvs == {"/dev/sda": "vg", "/dev/sdc": "vg"}


class TestMemory:
    @pytest.fixture
    def small(self, tmp_path):
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/meminfo").write_text("MemTotal:           8192 kB\nMemFree:            1 kB\n")

    @pytest.mark.usefixtures("small")
    @pytest.mark.parametrize("check_mode", [True, False])
    def test_large_writecache_memory_usage_is_a_warning(self, run, check_mode):
        outcome, _facts = run(FakeLvm(), check_mode=check_mode, **WRITECACHE, size="400M")
        assert outcome.warnings == (
            "images: the writecache of vg/data needs about 8.008 MiB of this host's 8 MiB of memory for its bookkeeping: use a smaller size.",
        )

    @pytest.mark.usefixtures("small")
    def test_small_blocks_increase_memory_usage(self, run):
        outcome, _facts = run(FakeLvm(), **WRITECACHE, size="40M", settings={"block_size": 512})
        assert "or use a block_size of 4096" in outcome.warnings[0]

    @pytest.mark.usefixtures("small")
    def test_small_writecache_and_dm_cache_give_no_warning(self, run):
        assert run(FakeLvm(), **WRITECACHE, size="40M")[0].warnings == ()
        assert run(FakeLvm(), size="400M")[0].warnings == ()
