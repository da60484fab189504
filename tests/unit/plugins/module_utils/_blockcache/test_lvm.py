# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import lvm as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_wanted import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, NotUnderstood, Refused, TimedOut
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD_PATH, FakeLvm, NamedDevices

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, SSD]))
    # The links of a host that is not there.
    monkeypatch.setattr(layer_module.os.path, "realpath", lambda path: "/dev/sdb" if path == SSD_PATH else path)


def run(lvm, *, check_mode=False, **fields):
    ticks = itertools.count(0, 30)
    layer = LvmCacheLayer(lvm, [SSD_PATH], clock=lambda: next(ticks))
    return converge(layer, read_items([{**ITEM, **fields}]), check_mode=check_mode)


def test_attaching_to_an_empty_device_and_again():
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


def test_a_cachevol_is_given_its_chunk_size_and_always_its_mode():
    lvm = FakeLvm(extended=True)
    run(lvm, kind="cachevol", size="200M")
    assert lvm.changes == [
        "lvcreate --yes --addtag cachefleet.storage --name data_cache --extents 50 vg /dev/sdb",
        "lvconvert --yes --type cache --cachevol vg/data_cache --chunksize 65536b --cachemode writethrough vg/data",
    ]


def test_check_mode_says_what_the_run_then_does():
    lvm = FakeLvm()
    predicted = run(lvm, check_mode=True).as_result()
    assert lvm.changes == []
    assert run(lvm).as_result() == predicted


def test_a_converged_host_costs_one_lvs_one_pvs_and_one_dmsetup():
    lvm = FakeLvm(fast="cachepool")
    run(lvm)
    assert [words[0] for words in lvm.calls] == ["lvs", "pvs", "dmsetup"]


def test_a_change_of_mode_and_setting_while_in_use():
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=839)
    run(lvm, settings={"migration_threshold": 100})
    assert lvm.changes == ["lvchange --yes --cachemode writethrough vg/data", "lvchange --yes --cachesettings migration_threshold=100 vg/data"]
    run(lvm, settings={"migration_threshold": "default"})
    assert lvm.cache["settings"] == ""


def test_detaching_flushes_first_and_removes_the_volume():
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=839)
    run(lvm, state="absent")
    assert lvm.changes == ["lvchange --yes --cachemode writethrough vg/data", "lvconvert --yes --uncache vg/data"]
    assert lvm.cache is None
    assert not run(lvm, state="absent").changed


def test_trap_a_writethrough_cache_that_is_dirty_after_a_crash_is_cleaned_by_entering_passthrough():
    lvm = FakeLvm(fast="cachevol", dirty=7)
    run(lvm, state="absent")
    assert lvm.changes == ["lvchange --yes --cachemode passthrough vg/data", "lvconvert --yes --uncache vg/data"]


def test_trap_uncache_that_fails_with_5_after_printing_success_is_a_failure():
    lvm = FakeLvm(fast="cachepool")
    lvm.lies["lvconvert --yes --uncache"] = (5, False)
    with pytest.raises(CommandFailed, match="images: lvconvert --yes --uncache vg/data failed with exit status 5: Conversion aborted") as caught:
        run(lvm, state="absent")
    assert lvm.cache is not None
    assert caught.value.as_result()["actions"] == ["Prove that no block of the cache of vg/data is dirty"]


def test_trap_a_command_that_fails_and_has_done_its_work_is_a_success():
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
def test_trap_status_0_without_an_effect_is_a_failure(command, fields):
    lvm = FakeLvm(fast="cachepool")
    lvm.lies[command] = (0, False)
    with pytest.raises(NotEffective, match="the host did not take what was set: images: "):
        run(lvm, **fields)


def test_trap_a_cache_that_fails_while_it_is_flushed_is_not_taken_for_clean():
    class Failing(FakeLvm):
        def _lvchange(self, words):
            super()._lvchange(words)
            self.cache["dirty"] = None

    lvm = Failing(fast="cachepool", mode="writeback", dirty=839)
    with pytest.raises(NotEffective, match="found a failed cache"):
        run(lvm, state="absent")
    assert not [change for change in lvm.changes if "--uncache" in change]


def test_a_flush_that_left_blocks_dirty_is_not_followed_by_detaching():
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=839)
    lvm.lies["lvchange --yes --cachemode"] = (0, False)
    with pytest.raises(NotEffective, match="mode writeback with 839 dirty blocks"):
        run(lvm, state="absent")
    assert lvm.cache is not None


def test_a_flush_that_stands_still_is_given_up_and_nothing_is_lost():
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=839)
    lvm.stuck = True
    with pytest.raises(NotEffective, match="has not come below 839 dirty blocks for 10 minutes; the cache stays attached and nothing is lost") as caught:
        run(lvm, state="absent")
    assert caught.value.facts["dirty_blocks"] == 839
    assert lvm.cache is not None


def test_a_flush_that_makes_progress_has_no_deadline():
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=839)
    slow = iter(range(838, -1, -1))

    class Slow(FakeLvm):
        def _dmsetup(self, words):
            self.cache["dirty"] = next(slow, 0)
            self.stuck = self.cache["dirty"] > 0
            if not self.stuck:
                self.cache["mode"] = "writethrough"
            return super()._dmsetup(words)

    lvm = Slow(fast="cachepool", mode="writeback", dirty=839)
    lvm.stuck = True
    run(lvm)
    # A look every 30 seconds of the fake clock: nearly seven hours. Two more looks belong to reading before and after.
    assert len([words for words in lvm.calls if words[0] == "dmsetup"]) == 839 + 2


def test_a_flush_may_be_given_a_deadline():
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=839)
    lvm.stuck = True
    with pytest.raises(TimedOut, match=r"was not flushed within flush_timeout \(60 seconds\), 839 blocks were still dirty"):
        run(lvm, state="absent", flush_timeout=60)


def test_the_cleaner_that_a_killed_flush_left_is_replaced():
    lvm = FakeLvm(fast="cachepool", mode="writeback", kernel_policy="cleaner")
    run(lvm, **WRITEBACK)
    assert lvm.changes == ["lvchange --yes --cachemode writethrough vg/data", "lvchange --yes --cachemode writeback vg/data"]
    assert not run(lvm, **WRITEBACK).changed


def test_a_mode_that_was_stored_and_not_loaded_is_loaded():
    lvm = FakeLvm(fast="cachepool")
    lvm.cache["kernel_mode"] = "writeback"
    run(lvm)
    assert lvm.changes == ["lvchange --refresh vg/data"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_trap_a_signature_that_udev_has_missed_is_found_on_the_device_itself(check_mode):
    lvm = FakeLvm()
    lvm.signatures[SSD_PATH] = "ext4"
    with pytest.raises(Refused, match=r"carries a signature \(ext4\)"):
        run(lvm, check_mode=check_mode)
    assert lvm.changes == []


def test_a_signature_that_appears_after_the_plan_stops_pvcreate():
    lvm = FakeLvm()
    layer = LvmCacheLayer(lvm, [SSD_PATH])
    step = layer.plan(layer.read(), read_items([ITEM]))[0]
    lvm.signatures[SSD_PATH] = "xfs"
    with pytest.raises(Refused, match=r"has got a signature \(xfs\) since it was looked at"):
        layer.apply(step)
    assert lvm.changes == []


def test_a_wipefs_that_is_not_understood_stops_everything(monkeypatch):
    lvm = FakeLvm()
    monkeypatch.setattr(lvm, "_wipefs", lambda words: "offset type")
    with pytest.raises(NotUnderstood, match=r"wipefs .* printed what is not understood: offset type"):
        run(lvm)
    assert lvm.changes == []


@pytest.mark.parametrize("stop", ["vgextend", "lvcreate", "lvconvert"])
def test_a_run_that_was_cut_off_is_finished_by_the_next(stop):
    lvm = FakeLvm()
    lvm.lies[stop] = (5, False)
    with pytest.raises(CommandFailed):
        run(lvm)
    lvm.lies.clear()
    assert run(lvm).changed
    assert lvm.cache is not None
    assert not run(lvm).changed


def test_a_failure_half_way_says_what_was_done():
    lvm = FakeLvm()
    lvm.lies["lvcreate"] = (5, False)
    with pytest.raises(CommandFailed) as caught:
        run(lvm)
    result = caught.value.as_result()
    assert result["changed"] is True
    assert result["actions"] == [f"Make {SSD_PATH} a physical volume of LVM", f"Add {SSD_PATH} to volume group vg"]


def test_a_device_that_turns_out_smaller_than_computed_is_still_filled():
    class Smaller(FakeLvm):
        def _pvs(self, words):
            return super()._pvs(words).replace('"pv_free": "536870912"', '"pv_free": "528482304"')

    lvm = Smaller()
    run(lvm)
    assert "--extents 122 " in lvm.changes[2]


def test_lvs_that_prints_nothing_is_an_error_with_its_status():
    lvm = FakeLvm()
    lvm.lies["lvs"] = (5, False)
    with pytest.raises(CommandFailed, match=r"lvs .* failed with exit status 5"):
        run(lvm)
