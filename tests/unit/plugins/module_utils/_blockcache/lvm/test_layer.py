# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import errno
import itertools
import os
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused, TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Signature
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD1, SSD_PATH, FakeLvm, NamedDevices, dirty_cachepool, make_dev

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
#: The flush of a cachepool: the table of the cleaner, put in force past LVM.
FLUSH = [
    "dmsetup reload vg-data --table 0 819200 cache 253:1 253:2 253:3 128 2 metadata2 writethrough cleaner 0",
    "dmsetup resume --noudevsync --nolockfs vg-data",
]


@pytest.fixture(autouse=True)
def _host(monkeypatch, tmp_path):
    make_dev(tmp_path)
    monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, SSD1]))


@pytest.fixture
def layer_of(tmp_path):
    def layer(lvm, requested=None):
        ticks = itertools.count(0, 30)
        return LvmCacheLayer(lvm, read_items([ITEM]) if requested is None else requested, tmp_path, clock=lambda: next(ticks), sleep=lambda seconds: None)

    return layer


@pytest.fixture
def run(layer_of):
    def converged(lvm, *, check_mode=False, **fields):
        requested = read_items([{**ITEM, **fields}])
        return converge(layer_of(lvm, requested), check_mode=check_mode)

    return converged


def test_cache_is_attached_to_empty_device_without_change_on_second_run(run):
    lvm = FakeLvm()
    outcome = run(lvm, settings={"migration_threshold": 16384}, **WRITEBACK)
    assert lvm.changes == [
        f"pvcreate {SSD_PATH}",
        f"vgextend vg {SSD_PATH}",
        "lvcreate --yes --addtag cachefleet.storage --name data_cache --extents 124"
        " --type cache-pool --poolmetadatasize 8388608b --chunksize 65536b vg /dev/sdb",
        "lvconvert --yes --type cache --cachepool vg/data_cache --cachemode writeback --cachesettings migration_threshold=16384 vg/data",
    ]
    assert outcome.changed
    assert not run(lvm, settings={"migration_threshold": 16384}, **WRITEBACK).changed


def test_cachevol_gets_chunk_size_and_explicit_mode(run):
    lvm = FakeLvm(extended=True)
    run(lvm, kind="cachevol", size="200M")
    assert lvm.changes == [
        "lvcreate --yes --addtag cachefleet.storage --name data_cache --extents 50 vg /dev/sdb",
        "lvconvert --yes --type cache --cachevol vg/data_cache --chunksize 65536b --cachemode writethrough vg/data",
    ]


def test_check_mode_predicts_run(run):
    lvm = FakeLvm()
    predicted = run(lvm, check_mode=True).to_dict()
    assert lvm.changes == []
    assert run(lvm).to_dict() == predicted


@pytest.mark.parametrize(("kind", "more"), [("cachepool", []), ("cachevol", []), ("writecache", [("dmsetup", "table")])])
def test_converged_host_runs_one_report_and_one_or_two_dmsetup(run, kind, more):
    lvm = FakeLvm(fast=kind)
    run(lvm, kind=kind, allow_unmirrored_writeback=True)
    assert [words[:2] for words in lvm.calls] == [("lvm", "fullreport"), ("dmsetup", "status"), *more]


def test_mode_and_setting_change_while_in_use(run):
    lvm = dirty_cachepool()
    run(lvm, settings={"migration_threshold": 100})
    assert lvm.changes == [*FLUSH, "lvchange --yes --cachemode writethrough vg/data", "lvchange --yes --cachesettings migration_threshold=100 vg/data"]
    run(lvm, settings={"migration_threshold": "default"})
    assert lvm.cache["settings"] == ""


def test_detach_flushes_first_and_removes_cache_volume(run):
    lvm = dirty_cachepool()
    run(lvm, state="absent")
    assert lvm.changes == [*FLUSH, "lvchange --yes --cachemode writethrough vg/data", "lvconvert --yes --uncache vg/data"]
    assert lvm.cache is None
    assert not run(lvm, state="absent").changed


def test_origin_is_synced_before_cache_is_removed(run, monkeypatch):
    lvm = dirty_cachepool()
    written = []
    monkeypatch.setattr(lvm, "_sync", lambda words: written.append((words, len(lvm.changes), lvm.cache["dirty"])))
    run(lvm, state="absent")
    words, changes, dirty = written[-1]
    assert words == ["/dev/vg/data"]
    assert lvm.changes[changes:] == ["lvconvert --yes --uncache vg/data"]
    assert dirty == 0


def test_writeback_by_kernel_under_cleaner_is_not_reported_as_flushed(run, monkeypatch):
    lvm = FakeLvm(fast="cachepool", kernel_policy="cleaner")
    monkeypatch.setattr(FakeLvm, "kernel_mode", "writeback")
    with pytest.raises(NotEffective, match="could not be verified"):
        run(lvm, state="flushed")
    assert lvm.cache is not None


def test_cache_is_kept_if_origin_cannot_be_synced(run):
    lvm = FakeLvm(fast="cachepool")
    lvm.lies["sync /dev/vg/data"] = (1, False)
    with pytest.raises(CommandFailed, match=r"images: /dev/vg/data could not write back what it keeps in memory .*; its cache stays"):
        run(lvm, state="absent")
    assert lvm.changes == []


class TestAfterACrash:
    """Every block counts as dirty at every load of a table, and the kernel refuses passthrough while one does."""

    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    @pytest.mark.parametrize("mode", ["writethrough", "writeback"])
    @pytest.mark.parametrize("state", ["flushed", "absent"])
    def test_cache_is_proven_clean_without_passthrough(self, run, kind, mode, state):
        lvm = FakeLvm(fast=kind, mode=mode, dirty=942, unclean=True)
        run(lvm, kind=kind, state=state)
        assert not lvm.stood_still
        assert lvm.cache is None if state == "absent" else (lvm.cache["dirty"], lvm.kernel_mode, lvm.cache["mode"]) == (0, "writethrough", "writethrough")
        assert not run(lvm, kind=kind, state=state).changed

    def test_flushed_cache_is_filled_again(self, run):
        lvm = FakeLvm(fast="cachepool", dirty=942, unclean=True)
        run(lvm, state="flushed")
        assert lvm.cache["kernel_policy"] == "cleaner"
        run(lvm)
        assert lvm.cache["kernel_policy"] == "smq"
        assert not run(lvm).changed

    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    def test_leaving_writeback_takes_one_run_and_reports_dirty_blocks(self, run, kind):
        lvm = FakeLvm(fast=kind, mode="writeback", dirty=942, unclean=True)
        assert run(lvm, kind=kind).changed
        assert lvm.changes == [*FLUSH, "lvchange --yes --cachemode writethrough vg/data"]
        again = run(lvm, kind=kind)
        assert not again.changed
        (message,) = again.warnings
        assert "counts 942 blocks of the cache as dirty" in message
        assert "lvchange -an and lvchange -ay vg/data" in message
        lvm.reboot()
        lvm.cache["dirty"] = 0
        assert run(lvm, kind=kind).warnings == ()

    @pytest.mark.parametrize("mode", ["writethrough", "writeback"])
    def test_passthrough_in_use_is_refused_with_advice(self, run, mode):
        lvm = FakeLvm(fast="cachepool", mode=mode, dirty=942, unclean=True)
        with pytest.raises(Refused, match=r"not closed cleanly .* unmount it, run lvchange -an vg/data and lvchange -ay vg/data, and run again"):
            run(lvm, mode="passthrough")
        assert not lvm.stood_still
        assert (lvm.cache["mode"], lvm.kernel_mode) == ("writethrough", "writethrough")
        lvm.reboot()
        lvm.cache["dirty"] = 0
        run(lvm, mode="passthrough")
        assert lvm.kernel_mode == "passthrough"

    def test_passthrough_for_immediately_clean_small_cache_is_refused(self, run):
        """It is clean before its status can be read, and the kernel refuses the next load all the same: that load is not tried."""
        lvm = FakeLvm(fast="cachepool", dirty=0, unclean=True)
        lvm.looks_clean = True
        with pytest.raises(Refused, match="cannot be changed to mode passthrough while it is in use"):
            run(lvm, mode="passthrough")
        assert not lvm.stood_still
        assert (lvm.cache["mode"], lvm.kernel_mode, lvm.cache["kernel_policy"]) == ("writethrough", "writethrough", "smq")

    def test_load_rejected_by_kernel_is_recovered_and_reported(self, run):
        lvm = FakeLvm(fast="cachepool", dirty=0)
        lvm.looks_clean = lvm.dirty_at_passthrough = True
        with pytest.raises(Refused, match="cannot be changed to mode passthrough while it is in use"):
            run(lvm, mode="passthrough")
        assert lvm.stood_still == ["passthrough"]
        assert not lvm.suspended
        assert (lvm.cache["mode"], lvm.kernel_mode) == ("writethrough", "writethrough")

    @pytest.mark.parametrize("fields", [{}, {"state": "flushed"}, {"state": "absent"}, WRITEBACK])
    def test_suspended_volume_is_resumed(self, run, fields):
        lvm = FakeLvm(fast="cachepool", mode="passthrough", dirty=942, unclean=True)
        lvm.suspended = True
        outcome = run(lvm, check_mode=True, **fields)
        assert outcome.steps[0].action == "Resume vg/data, which an interrupted command left suspended"
        assert lvm.suspended
        run(lvm, **fields)
        assert not lvm.suspended
        assert not run(lvm, **fields).changed

    def test_volume_suspended_by_another_process_is_not_touched(self, layer_of):
        lvm = FakeLvm(fast="cachepool")
        lvm.suspended = True
        requested = read_items([ITEM])
        layer = layer_of(lvm, requested)
        layer.sleep = lambda seconds: setattr(lvm, "suspended", False)
        converge(layer, check_mode=False)
        assert lvm.changes == []

    def test_table_rejected_by_kernel_requires_manual_decision(self, run, monkeypatch):
        lvm = FakeLvm(fast="cachepool", mode="passthrough", dirty=942, unclean=True)
        lvm.suspended = True
        monkeypatch.setattr(FakeLvm, "_dmsetup_resume", lambda self, cache, words: "! Invalid argument")
        with pytest.raises(NotEffective, match=r"/dev/vg/data is suspended, .* give vg-data a table with dmsetup reload, and resume it with dmsetup resume"):
            run(lvm)


def test_uncache_with_exit_status_5_after_success_message_is_a_failure(run):
    lvm = FakeLvm(fast="cachepool")
    lvm.lies["lvconvert --yes --uncache"] = (5, False)
    with pytest.raises(CommandFailed, match="images: lvconvert --yes --uncache vg/data failed with exit status 5: Conversion aborted") as caught:
        run(lvm, state="absent")
    assert lvm.cache is not None
    result = caught.value.to_dict()
    assert result["actions"] == ["Verify that no block of the cache of vg/data is dirty"]
    assert result["broke_off"] == "Detach the cache from vg/data and remove cachepool vg/data_cache"


def test_failed_command_with_effect_is_a_success(run):
    lvm = FakeLvm(fast="cachepool")
    lvm.lies["lvconvert --yes --uncache"] = (5, True)
    assert run(lvm, state="absent").changed
    assert lvm.cache is None


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("lvchange --yes --cachemode", {"mode": "passthrough"}),
        ("lvchange --yes --cachesettings", {"settings": {"migration_threshold": 16384}}),
    ],
)
def test_exit_status_0_without_effect_is_a_failure(run, command, fields):
    lvm = FakeLvm(fast="cachepool")
    lvm.lies[command] = (0, False)
    with pytest.raises(NotEffective, match="the host did not apply the settings: images: "):
        run(lvm, **fields)


def test_cache_failing_during_flush_is_not_treated_as_clean(run):
    class Failing(FakeLvm):
        def _lvchange(self, words):
            super()._lvchange(words)
            self.cache["dirty"] = None

    lvm = Failing(fast="cachepool", mode="writeback", dirty=839)
    with pytest.raises(NotEffective, match="found a failed cache"):
        run(lvm, state="absent")
    assert not [change for change in lvm.changes if "--uncache" in change]


def test_incomplete_flush_prevents_detach(run):
    lvm = dirty_cachepool()
    lvm.lies["dmsetup resume"] = (0, False)
    with pytest.raises(NotEffective, match="839 dirty blocks"):
        run(lvm, state="absent")
    assert lvm.cache is not None


def test_stalled_flush_fails_without_data_loss(run):
    lvm = dirty_cachepool()
    lvm.stuck = True
    with pytest.raises(NotEffective, match="has not come below 839 dirty blocks for 10 minutes; the cache stays attached and nothing is lost") as caught:
        run(lvm, state="absent")
    assert caught.value.facts["dirty_blocks"] == 839
    assert lvm.cache is not None


def test_progressing_flush_has_no_timeout(run):
    lvm = dirty_cachepool()
    slow = iter(range(838, -1, -1))

    class Slow(FakeLvm):
        def _dmsetup(self, words):
            if words[0] == "status":
                self.cache["dirty"] = next(slow, 0)
            self.stuck = self.cache["dirty"] > 0
            return super()._dmsetup(words)

    lvm = Slow(fast="cachepool", mode="writeback", dirty=839)
    lvm.stuck = True
    run(lvm)
    # A look every 30 seconds of the fake clock: nearly seven hours. Two more looks prove it, and one reads afterwards.
    assert len([words for words in lvm.calls if words[:2] == ("dmsetup", "status")]) == 839 + 3


def test_flush_timeout_is_applied(run):
    lvm = dirty_cachepool()
    lvm.stuck = True
    with pytest.raises(TimedOut, match=r"was not flushed within flush_timeout \(60 seconds\), 839 blocks were still dirty"):
        run(lvm, state="absent", flush_timeout=60)


def test_cleaner_left_by_killed_flush_is_replaced(run):
    lvm = FakeLvm(fast="cachepool", mode="writeback", kernel_policy="cleaner")
    run(lvm, **WRITEBACK)
    ways = ["lvchange --yes --cachemode writethrough vg/data", "lvchange --yes --cachemode writeback vg/data"]
    assert lvm.changes == ["lvchange --refresh vg/data", *ways]
    assert not run(lvm, **WRITEBACK).changed


def test_stored_but_not_loaded_mode_is_loaded(run):
    lvm = FakeLvm(fast="cachepool")
    lvm.cache["kernel_mode"] = "writeback"
    run(lvm)
    assert lvm.changes == ["lvchange --refresh vg/data"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_signature_missing_in_udev_is_read_from_device(run, check_mode):
    lvm = FakeLvm()
    lvm.signatures[SSD_PATH] = "ext4"
    with pytest.raises(Refused, match=r"carries a signature \(ext4\)"):
        run(lvm, check_mode=check_mode)
    assert lvm.changes == []


def test_stale_udev_signature_is_ignored(run, monkeypatch):
    """A change event that was missed: the device itself is empty."""
    stale = dataclasses.replace(SSD, signature=Signature("raid", "LVM2_member"))
    monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, stale, SSD1]))
    lvm = FakeLvm()
    assert run(lvm).changed
    assert lvm.cache is not None


def test_released_device_triggers_udev_change_event(run):
    lvm = FakeLvm(fast="cachepool")
    run(lvm, state="absent", release_devices=True)
    assert ("udevadm", "trigger", "--action=change", "--settle", SSD_PATH) in lvm.calls


def flashcache(lvm, root):
    (root / "dev/sdb").write_bytes(bytes(16) + (0xFACECAFE).to_bytes(4, "little") + bytes(4076))


def dm_cache(lvm, root):
    (root / "dev/sdb").write_bytes(bytes(32) + (0o6142003).to_bytes(8, "little") + bytes(4056))


def file_system(lvm, root):
    lvm.signatures[SSD_PATH] = "xfs"


def unreachable(lvm, root):
    (root / "dev/sdb").unlink()


def looped(lvm, root):
    (root / "sys/class/block/loop3/loop").mkdir(parents=True)
    (root / "sys/class/block/loop3/loop/backing_file").write_text("/dev/sdb\n")


TAKEN = pytest.mark.parametrize(
    ("taken", "message"),
    [
        (flashcache, "carries flashcache metadata, and may hold blocks that its origin does not have"),
        (dm_cache, "carries dm-cache metadata, and may hold blocks that its origin does not have"),
        (file_system, "carries a signature (xfs)"),
        (unreachable, "cannot be opened exclusively (No such file or directory)"),
        (looped, "lies under /dev/loop3"),
    ],
)


@TAKEN
@pytest.mark.parametrize("check_mode", [True, False])
def test_device_in_use_is_refused(run, tmp_path, taken, message, check_mode):
    lvm = FakeLvm()
    taken(lvm, tmp_path)
    with pytest.raises(Refused, match=re.escape(message)):
        run(lvm, check_mode=check_mode)
    assert lvm.changes == []


@TAKEN
def test_use_since_the_plan_prevents_pvcreate(layer_of, tmp_path, taken, message):
    lvm = FakeLvm()
    layer = layer_of(lvm)
    step = layer.plan(layer.read())[0]
    taken(lvm, tmp_path)
    with pytest.raises(Refused, match=re.escape(f"was empty when it was examined and now {message}")):
        layer.apply(step)
    assert lvm.changes == []


@pytest.fixture
def kernel_use(monkeypatch, tmp_path):
    """How often an exclusive open of the SSD is refused, as by a mount or an MD array; a plain one never is."""
    use = {"times": 0, "asked": 0}
    real_open = os.open

    def open_device(path, flags, *rest, **named):
        if os.path.realpath(path) == str(tmp_path / "dev/sdb") and flags & os.O_EXCL:
            use["asked"] += 1
            if use["asked"] <= use["times"]:
                raise OSError(errno.EBUSY, "Device or resource busy")
        return real_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", open_device)
    return use


def test_device_used_by_kernel_is_refused(run, kernel_use):
    kernel_use["times"] = 1000
    lvm = FakeLvm()
    with pytest.raises(Refused, match=r"cannot be opened exclusively \(Device or resource busy\)"):
        run(lvm)
    assert lvm.changes == []


def test_kernel_use_since_the_plan_prevents_pvcreate(layer_of, kernel_use):
    lvm = FakeLvm()
    layer = layer_of(lvm)
    step = layer.plan(layer.read())[0]
    kernel_use["times"] = 1000
    with pytest.raises(Refused, match="was empty when it was examined and now cannot be opened exclusively"):
        layer.apply(step)
    assert lvm.changes == []


def test_briefly_opened_device_is_retried(run, kernel_use):
    kernel_use["times"] = 1
    assert run(FakeLvm(), check_mode=True).changed
    assert kernel_use["asked"] == 2


def test_blkid_is_used_if_wipefs_output_is_not_understood(run, monkeypatch):
    lvm = FakeLvm()
    lvm.signatures[SSD_PATH] = "ext4"
    monkeypatch.setattr(lvm, "_wipefs", lambda words: "offset type")
    with pytest.raises(Refused, match=r"carries a signature \(ext4\)"):
        run(lvm)
    assert lvm.changes == []


def test_missing_wipefs_and_blkid_prevents_use_of_device(run):
    lvm = FakeLvm(missing=["wipefs", "blkid"])
    with pytest.raises(ToolMissing, match="nothing can show that a device is empty"):
        run(lvm)
    assert lvm.changes == []


def test_device_of_existing_cache_is_not_opened(run, tmp_path):
    lvm = FakeLvm(fast="cachepool")
    for taken in (flashcache, looped):
        taken(lvm, tmp_path)
    assert not run(lvm).changed


@pytest.mark.parametrize(
    ("state", "redundant", "degraded"),
    [
        ({"level": "raid1", "raid_disks": "2", "degraded": "0"}, True, False),
        ({"level": "raid1", "raid_disks": "2", "degraded": "1"}, False, True),
        ({"level": "raid10", "raid_disks": "4 (2)", "degraded": "0"}, True, False),
        ({"level": "raid1", "raid_disks": "2"}, False, True),
        ({"level": "raid1", "raid_disks": "1", "degraded": "0"}, False, False),
        ({"level": "raid0", "raid_disks": "2"}, False, False),
        ({}, False, False),
    ],
)
def test_array_is_mirrored_only_with_all_members(monkeypatch, tmp_path, layer_of, state, redundant, degraded):
    array = dataclasses.replace(SSD, name="md0", path="/dev/md0", number="9:0", kind="md", by_id=())
    monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, array]))
    folder = tmp_path / "sys/class/block/md0/md"
    folder.mkdir(parents=True)
    for name, text in state.items():
        (folder / name).write_text(text + "\n")
    present = layer_of(FakeLvm()).read()
    assert ("md0" in present.redundant, "md0" in present.degraded) == (redundant, degraded)


def test_problems_of_unchanged_caches_are_facts(layer_of):
    lvm = FakeLvm(fast="cachepool", mirror=True, mode="writeback")
    layer = layer_of(lvm)
    assert layer.facts(layer.read())["problems"] == []
    lvm.cache.update(leg_health="refresh needed")
    (problem,) = layer.facts(layer.read())["problems"]
    assert "vg/data has a write-back cache on a mirror that is degraded" in problem


@pytest.mark.parametrize("stop", ["vgextend", "lvcreate", "lvconvert"])
def test_interrupted_run_is_completed_by_the_next(run, stop):
    lvm = FakeLvm()
    lvm.lies[stop] = (5, False)
    with pytest.raises(CommandFailed):
        run(lvm)
    lvm.lies.clear()
    assert run(lvm).changed
    assert lvm.cache is not None
    assert not run(lvm).changed


def test_partial_failure_reports_completed_actions(run):
    lvm = FakeLvm()
    lvm.lies["lvcreate"] = (5, False)
    with pytest.raises(CommandFailed) as caught:
        run(lvm)
    result = caught.value.to_dict()
    assert result["changed"] is True
    assert result["actions"] == [f"Create a physical volume of LVM on {SSD_PATH}", f"Add {SSD_PATH} to volume group vg"]
    assert result["broke_off"] == f"Create cachepool vg/data_cache of 496 MiB on {SSD_PATH}"


def test_device_smaller_than_computed_is_fully_used(run):
    class Smaller(FakeLvm):
        def _lvm(self, words):
            return super()._lvm(words).replace('"pv_free": "536870912"', '"pv_free": "528482304"')

    lvm = Smaller()
    run(lvm)
    assert "--extents 122 " in lvm.changes[2]


def test_empty_report_raises_with_exit_status(run):
    lvm = FakeLvm()
    lvm.lies["lvm fullreport"] = (5, False)
    with pytest.raises(CommandFailed, match=r"lvm fullreport .* failed with exit status 5"):
        run(lvm)


@pytest.mark.parametrize("lacking", [set(), {"writecache_block_size"}])
def test_block_size_that_lvm_does_not_report_is_that_of_the_kernel(run, lacking):
    lvm = FakeLvm(fast="writecache")
    lvm.lacking = lacking
    wanted = {**WRITEBACK, "kind": "writecache"}
    assert run(lvm, settings={"block_size": 4096}, check_mode=True, **wanted).steps == ()
    other = run(lvm, settings={"block_size": 512}, check_mode=True, **wanted).steps
    assert [step.before["chunk_size"] for step in other if isinstance(step.before, dict)] == [4096]
