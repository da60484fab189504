# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import itertools
import uuid

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal as bcache_journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import read_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import BcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.steps import (
    Attach,
    Detach,
    Flush,
    MakeBacking,
    MakeSet,
    RegisterSet,
    SetLabel,
    SetMode,
    SetSetting,
    UnregisterSet,
    Wipe,
    WriteRules,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import BcacheState, find_target, is_own, new_set_uuid
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import _as_blkid
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CreateMirror, ReleaseMirror, array_uuid
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step, converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotEffective, Refused, TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Signature
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.tests.unit.support.fake_bcache import HDD, HDD2, MIB, SSD, SSD2, Content, FakeBcache, FakeSysfs, Killed
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import in_etc
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

ITEM = {"name": "images", "origin": HDD, "cache_devices": [SSD]}
OTHER = {"name": "archive", "origin": HDD2, "cache_devices": [SSD]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
ABSENT = {"name": "images", "origin": HDD, "state": "absent"}


@pytest.fixture
def host(tmp_path, monkeypatch):
    bcache = FakeBcache(tmp_path)
    bcache.die_in_files(monkeypatch)
    return bcache


def run(bcache, *items, check_mode=False):
    wanted = read_items(items)
    layer = BcacheLayer(bcache, wanted, bcache.root, sysfs=FakeSysfs(bcache), clock=bcache.clock, sleep=bcache.sleep)
    return converge(layer, check_mode=check_mode)


def facts(bcache, *items):
    wanted = read_items(items)
    layer = BcacheLayer(bcache, wanted, bcache.root, sysfs=FakeSysfs(bcache), clock=bcache.clock, sleep=bcache.sleep)
    return layer.facts(layer.read())


def actions(outcome):
    return [type(step.operation) for step in outcome.steps]


def settled(bcache, *items):
    """What was asked for is there, and asking again changes nothing."""
    outcome = run(bcache, *items)
    assert not outcome.changed, outcome.to_dict()["actions"]
    return outcome


def test_empty_list_reads_nothing(host):
    assert not run(host).changed
    assert (host.calls, facts(host)) == ([], {"problems": [], "caches": []})


@pytest.mark.parametrize("udev_registers", [True, False])
def test_cache_is_created_on_empty_devices(tmp_path, udev_registers):
    bcache = FakeBcache(tmp_path, udev_registers=udev_registers)
    bcache.stubborn = 0 if udev_registers else 3
    outcome = run(bcache, ITEM)
    assert actions(outcome) == [MakeBacking, MakeSet, Attach, SetLabel]
    assert bcache.contents["sda"].mode == "writethrough"
    assert bcache.contents["sda"].state == "clean"
    assert bcache.contents["sda"].label == "images"
    settled(bcache, ITEM)
    (cache,) = facts(bcache, ITEM)["caches"]
    assert cache["device"] == f"/dev/bcache/by-uuid/{bcache.contents['sda'].uuid}"
    assert (cache["origin"], cache["cache_devices"], cache["mode"], cache["state"]) == (HDD, [SSD], "writethrough", "ok")
    assert (cache["size"], cache["block_size"], cache["dirty"]) == (512 * MIB, 512, 0)


def test_check_mode_predicts_run_and_changes_nothing(host):
    outcome = run(host, ITEM, check_mode=True)
    assert actions(outcome) == [MakeBacking, MakeSet, Attach, SetLabel]
    assert not host.contents
    assert not host.loaded


def test_settings_are_applied_and_persist_across_reboot(host):
    settings = {
        "sequential_cutoff": 5000000,
        "writeback_percent": 20,
        "writeback_delay": "60",
        "stop_when_cache_set_failed": "always",
        "congested_read_threshold_us": 0,
        "congested_write_threshold_us": 0,
        "cache_replacement_policy": "fifo",
        "discard": True,
    }
    run(host, {**ITEM, "settings": settings})
    settled(host, {**ITEM, "settings": settings})
    host.reboot()
    settled(host, {**ITEM, "settings": settings})
    assert host.backings["sda"].settings["sequential_cutoff"] == "5000000"
    assert host.sets[host.contents["sdb"].set].settings["congested_read_threshold_us"] == "0"
    outcome = run(host, {**ITEM, "settings": {"sequential_cutoff": "default", "congested_read_threshold_us": "default"}})
    assert actions(outcome) == [SetSetting, SetSetting, WriteRules]
    host.reboot()
    assert host.backings["sda"].settings["sequential_cutoff"] == str(4 * MIB)
    assert host.backings["sda"].settings["writeback_percent"] == "20"


def test_no_files_remain_in_etc_after_removal(host):
    before = in_etc(host.root)
    run(host, {**ITEM, **WRITEBACK, "settings": {"sequential_cutoff": 5000000, "congested_read_threshold_us": 0}})
    assert len(in_etc(host.root)) > len(before)
    run(host, {**ITEM, **WRITEBACK, "settings": {"sequential_cutoff": 5000000}, "state": "flushed"})
    run(host, {**ITEM, "state": "absent", "release_devices": True})
    # The backing device stays one, with its settings: what was never asked to be the default again is still asked for.
    run(host, {**ITEM, "settings": {"sequential_cutoff": "default"}, "state": "absent"})
    assert in_etc(host.root) == before


def test_leaving_writeback_flushes_and_restores_settings(host):
    run(host, {**ITEM, **WRITEBACK, "settings": {"writeback_percent": 30}})
    host.make_dirty("sda", 300 * MIB)
    host.load = 5 * MIB
    outcome = run(host, ITEM)
    assert actions(outcome) == [Flush]
    assert host.contents["sda"].state == "clean"
    assert host.backings["sda"].settings["writeback_percent"] == "30"
    assert host.backings["sda"].settings["writeback_delay"] == "30"
    assert not bcache_journal.read_journal(host.root).flushing
    settled(host, ITEM)


def test_dirty_blocks_in_clean_state_are_written_back(host):
    run(host, {**ITEM, **WRITEBACK})
    host.cut_before_the_journal("sda", 30 * MIB)
    host.pass_time(3600)
    cset = host.backings["sda"].set
    assert host.contents["sdb"].dirty[host.contents["sda"].uuid] == 30 * MIB
    assert actions(run(host, ITEM)) == [Flush]
    assert not any(host.contents["sdb"].dirty.values())
    assert host.backings["sda"].set == cset
    settled(host, ITEM)


def test_dirty_blocks_in_clean_state_are_written_back_for_flushed(host):
    flushed = {"name": "images", "origin": HDD, "state": "flushed"}
    run(host, {**ITEM, **WRITEBACK})
    host.cut_before_the_journal("sda", 30 * MIB)
    assert actions(run(host, flushed)) == [Flush]
    assert host.backings["sda"].set is not None
    settled(host, flushed)


def test_dirty_blocks_in_clean_state_are_written_back_before_removal(host):
    run(host, {**ITEM, **WRITEBACK})
    host.cut_before_the_journal("sda", 30 * MIB)
    run(host, ABSENT)
    assert not any("/attach = " in call for call in host.calls[host.calls.index(next(call for call in host.calls if "/detach = " in call)) :])
    assert "sdb" not in host.contents


def test_unflushable_dirty_blocks_in_clean_state_fail(host):
    run(host, {**ITEM, **WRITEBACK})
    host.cut_before_the_journal("sda", 30 * MIB)
    host.stuck = True
    with pytest.raises(NotEffective, match="has not come below"):
        run(host, ITEM)
    assert any(host.contents["sdb"].dirty.values())
    host.stuck = False
    host.pass_time(60)
    # What the kernel was asked for goes on: it detaches once the disk can write again.
    assert actions(run(host, ITEM)) == [Attach]


def test_new_set_never_reuses_uuid_of_earlier_set_on_device(host):
    run(host, ITEM)
    first = host.contents["sdb"].set
    run(host, ABSENT)
    run(host, ITEM)
    assert host.contents["sdb"].set[:18] != first[:18]


def test_own_sets_are_recognized_including_version_0_4():
    namespace = uuid.UUID("0d2b0f0a-53e5-4a55-8f3c-3a1f6f6a7c11")
    for found in (new_set_uuid("machine", "device", "0123456789abcdef"), str(uuid.uuid5(namespace, "machine\ndevice"))):
        assert uuid.UUID(found).variant == uuid.RFC_4122
        assert is_own(found, "machine", "device")
        assert not is_own(found, "machine", "another device")
        assert not is_own(found, "another machine", "device")
    assert not is_own(None, "machine", "device")


def test_origin_is_synced_before_cache_is_removed(host, monkeypatch):
    run(host, {**ITEM, **WRITEBACK})
    written = []
    monkeypatch.setattr(host, "_sync", lambda words: (written.append((words, (host.root / "sys/class/block/sda/bcache/cache").exists())), (0, "", ""))[1])
    run(host, ABSENT)
    assert ([HDD], True) in written


def test_flushed_keeps_cache_attached_without_dirty_data(host):
    flushed = {"name": "images", "origin": HDD, "state": "flushed"}
    run(host, {**ITEM, **WRITEBACK})
    host.make_dirty("sda", 100 * MIB)
    assert actions(run(host, flushed)) == [Flush]
    assert (host.contents["sda"].mode, host.contents["sda"].state) == ("writethrough", "clean")
    assert host.backings["sda"].set is not None
    settled(host, flushed)
    assert actions(run(host, {**ITEM, **WRITEBACK})) == [SetMode]


def test_removal_keeps_backing_device_and_leaves_ssd_empty(host):
    run(host, {**ITEM, **WRITEBACK, "settings": {"sequential_cutoff": 0, "congested_read_threshold_us": 0}})
    host.make_dirty("sda", 100 * MIB)
    outcome = run(host, ABSENT)
    assert actions(outcome) == [Flush, Detach, UnregisterSet, Wipe, WriteRules]
    assert "sdb" not in host.contents
    assert not host.sets
    assert host.backings["sda"].running
    assert host.contents["sda"].kind == "backing"
    assert bcache_rules.read_rules(host.root) == {}
    assert not bcache_journal.read_journal(host.root).between
    settled(host, ABSENT)
    assert facts(host, ABSENT) == {"problems": [], "caches": []}
    assert actions(run(host, ITEM)) == [MakeSet, Attach]


def test_changed_cache_device_plans_flush_detach_attach(host):
    run(host, {**ITEM, **WRITEBACK})
    host.make_dirty("sda", 100 * MIB)
    moved = {**ITEM, **WRITEBACK, "cache_devices": [SSD2]}
    assert actions(run(host, moved)) == [Flush, Detach, UnregisterSet, Wipe, MakeSet, Attach, SetMode]
    assert "sdb" not in host.contents
    assert host.sets[host.backings["sda"].set].device == "sdc"
    settled(host, moved)


def test_a_name_that_udev_has_forgotten_is_a_warning_for_a_device_that_was_running(host):
    run(host, ITEM)
    host.shows_names = False
    outcome = run(host, {**ITEM, "bucket_size": "256K"})
    (warning,) = [text for text in outcome.warnings if "by-uuid" in text]
    assert "until it does, as after a reboot, use the name of the kernel." in warning
    (cache,) = facts(host, ITEM)["caches"]
    assert cache["device"] == f"/dev/{cache['device_name']}"
    assert host.contents["sda"].state == "clean"


def test_a_device_that_starts_without_its_name_is_an_error(host):
    host.shows_names = False
    with pytest.raises(NotEffective, match="udev did not show"):
        run(host, ITEM)


def test_changed_bucket_size_plans_flush_detach_attach(host):
    run(host, {**ITEM, **WRITEBACK})
    host.make_dirty("sda", 100 * MIB)
    changed = {**ITEM, **WRITEBACK, "bucket_size": "256K"}
    assert actions(run(host, changed)) == [Flush, Detach, UnregisterSet, Wipe, MakeSet, Attach, SetMode]
    assert host.contents["sdb"].bucket == 256 * 1024
    settled(host, changed)


def test_shared_set_is_removed_with_its_last_origin(host):
    run(host, ITEM, OTHER)
    assert host.backings["sda"].set is not None
    assert host.backings["sda"].set == host.backings["sdd"].set
    settled(host, ITEM, OTHER)
    assert actions(run(host, ABSENT)) == [Flush, Detach]
    assert "sdb" in host.contents
    settled(host, ABSENT, OTHER)
    assert actions(run(host, {**OTHER, "state": "absent"})) == [Flush, Detach, UnregisterSet, Wipe]
    assert "sdb" not in host.contents


def test_shared_set_is_recreated_only_for_all_origins(host):
    run(host, ITEM, OTHER)
    with pytest.raises(Refused, match="/dev/sdd is attached to it too"):
        run(host, {**ITEM, "bucket_size": "256K"})
    both = ({**ITEM, "bucket_size": "256K"}, {**OTHER, "bucket_size": "256K"})
    assert actions(run(host, *both)).count(Wipe) == 1
    settled(host, *both)


def test_dirty_data_of_absent_backing_device_keeps_the_set(host):
    run(host, {**ITEM, **WRITEBACK})
    host.contents["sdb"].dirty["of a disk that was pulled"] = 4096
    with pytest.raises(Refused, match="holds data of a backing device that is not attached now"):
        run(host, ABSENT)
    assert "sdb" in host.contents
    host.contents["sdb"].dirty.clear()
    host.debugfs = False
    for check_mode in (True, False):
        with pytest.raises(Refused, match=r"bcache-.* cannot be read \(No such file or directory\), .*: mount debugfs"):
            run(host, ABSENT, check_mode=check_mode)
    host.debugfs = True
    run(host, ABSENT)
    settled(host, ABSENT)


# -- on a mirror

MIRRORED = {**ITEM, "cache_devices": [SSD, SSD2], "mirror": True, "mode": "writeback"}


def test_cache_on_newly_created_mirror(host):
    outcome = run(host, MIRRORED)
    assert actions(outcome) == [MakeBacking, CreateMirror, MakeSet, Attach, SetLabel, SetMode]
    assert {known.device for known in host.sets.values()} == {"md127"}
    settled(host, MIRRORED)
    (cache,) = facts(host, MIRRORED)["caches"]
    assert (cache["redundancy"], cache["cache_device_names"]) == ("mirrored", ("md127",)) or cache["cache_device_names"] == ["md127"]
    gone = {**MIRRORED, "state": "absent"}
    assert actions(run(host, gone)) == [Flush, Detach, UnregisterSet, Wipe]
    settled(host, gone)
    assert actions(run(host, {**gone, "release_devices": True})) == [ReleaseMirror]
    settled(host, {**gone, "release_devices": True})
    assert set(host.contents) == {"sda"}


def test_single_ssd_is_converted_to_mirror(host):
    run(host, {**ITEM, **WRITEBACK})
    host.make_dirty("sda", 100 * MIB)
    assert actions(run(host, MIRRORED)) == [Flush, Detach, UnregisterSet, Wipe, CreateMirror, MakeSet, Attach, SetMode]
    settled(host, MIRRORED)


def test_degraded_mirror_is_reported_and_stays_in_use(host):
    run(host, MIRRORED)
    host.degraded = True
    host.render()
    settled(host, MIRRORED)
    (problem,) = facts(host, MIRRORED)["problems"]
    assert "mirror that is degraded" in problem
    assert "Take the failed member out of the machine before the next boot" in problem
    run(host, {**MIRRORED, "mode": "writethrough"})
    with pytest.raises(Refused, match="that mirror is degraded"):
        run(host, MIRRORED)


def test_recreated_mirror_gets_a_new_set(host):
    (spec,) = read_items([MIRRORED])
    ground = BcacheLayer(host, [spec], host.root, sysfs=FakeSysfs(host), clock=host.clock, sleep=host.sleep).read().ground
    members = [ground.devices.resolve(path) for path in spec.cache_devices]
    uuid_of_mirror = array_uuid(spec.name, members, ground.machine)
    begun = dataclasses.replace(members[0], signature=Signature("raid", "linux_raid_member", _as_blkid(uuid_of_mirror)))
    half_made = BcacheState(dataclasses.replace(ground, devices=ground.devices.with_changed([begun])))
    target = find_target(half_made, spec, (), ())
    assert [type(step.operation) for step in target.fast.steps] == [ReleaseMirror, CreateMirror]
    assert is_own(target.set, ground.machine, uuid_of_mirror)


# -- what is refused


def test_only_the_examined_device_is_wiped(host):
    run(host, ITEM, {**OTHER, "cache_devices": [SSD2]})
    wanted = read_items([ABSENT])
    layer = BcacheLayer(host, wanted, host.root, sysfs=FakeSysfs(host), clock=host.clock, sleep=host.sleep)
    wipe = next(step for step in layer.plan(layer.read()) if isinstance(step.operation, Wipe))
    link = host.root / SSD.lstrip("/")
    link.unlink()
    link.symlink_to(host.root / "dev/sdc")
    host.calls.clear()
    with pytest.raises(Refused, match="does not carry the cache set"):
        layer.apply(wipe)
    assert not [call for call in host.calls if call.startswith("wipefs --all")]


def test_origin_with_content_is_refused(host):
    host.contents["sda"] = Content("ext4", "1234")
    with pytest.raises(Refused, match=r"carries a signature \(ext4 \(1234\)\).*cannot be kept in place"):
        run(host, ITEM)


def test_cache_device_with_content_is_refused(host):
    host.contents["sdb"] = Content("xfs", "1234")
    with pytest.raises(Refused, match="xfs"):
        run(host, ITEM)
    assert "sda" not in host.contents


def test_foreign_cache_device_is_refused(host):
    host.contents["sdb"] = Content("cache", "b0000000-0000-0000-0000-0000000000ff", set="c0000000-0000-0000-0000-0000000000ff")
    with pytest.raises(Refused, match="carries the cache of another bcache set"):
        run(host, ITEM)


def test_too_small_cache_device_is_rejected(host):
    with pytest.raises(BadInput, match="room for 512 buckets of 1 MiB, and the kernel accepts no cache with fewer than 513"):
        run(host, {**ITEM, "bucket_size": "1M"})


def test_writeback_requires_mirror_or_explicit_permission(host):
    with pytest.raises(Refused, match="allow_unmirrored_writeback"):
        run(host, {**ITEM, "mode": "writeback"})
    run(host, ITEM)
    with pytest.raises(Refused, match="allow_unmirrored_writeback"):
        run(host, {**ITEM, "mode": "writeback"})


def test_block_size_is_applied_and_cannot_be_changed(host):
    run(host, {**ITEM, "block_size": "4K"})
    assert host.contents["sda"].block == 4096
    settled(host, {**ITEM, "block_size": "4K"})
    with pytest.raises(Refused, match="was made with blocks of 4 KiB, and block_size requests 1 KiB"):
        run(host, {**ITEM, "block_size": "1K"})


def test_missing_dirty_cache_device_is_reported_and_nothing_is_forced(host):
    run(host, {**ITEM, **WRITEBACK})
    host.make_dirty("sda", 10 * MIB)
    pulled = host.contents.pop("sdb")
    host.reboot()
    for item in ({**ITEM, **WRITEBACK}, {**ITEM, "cache_devices": [SSD2]}, ABSENT, {"name": "images", "origin": HDD, "state": "flushed"}):
        with pytest.raises(Refused, match=r"waits for its cache device, which holds data that is nowhere else.*needs a manual decision"):
            run(host, item)
    assert not any("running" in call for call in host.calls)
    (cache,) = facts(host, ITEM)["caches"]
    assert (cache["state"], cache["device"]) == ("cache_missing", None)
    # It comes back, and the kernel is not told.
    host.contents["sdb"] = pulled
    assert actions(run(host, {**ITEM, **WRITEBACK}))[:2] == [RegisterSet, Attach]
    assert host.contents["sda"].state == "dirty"
    settled(host, {**ITEM, **WRITEBACK})


def test_missing_writethrough_cache_device_is_replaced(host):
    run(host, ITEM)
    host.contents.pop("sdb")
    host.reboot()
    assert not host.backings["sda"].running
    with pytest.raises(Refused, match="It is clean"):
        run(host, ABSENT)
    replaced = {**ITEM, "cache_devices": [SSD2]}
    assert actions(run(host, replaced)) == [MakeSet, Attach]
    assert host.backings["sda"].running
    settled(host, replaced)


def test_returning_failed_cache_is_not_reattached(host):
    run(host, ITEM)
    # What Linux 6.1 leaves behind when a cache device is pulled in writethrough: running, clean, and its superblock names the lost set.
    host.sets.clear()
    host.backings["sda"].set = None
    host.render()
    with pytest.raises(Refused, match="what that cache holds is older: run wipefs -a"):
        run(host, ITEM)
    with pytest.raises(Refused, match="Attach another cache device before this host is restarted"):
        run(host, ABSENT)
    assert "serve what is old from it" in facts(host, ITEM)["problems"][0]
    replaced = {**ITEM, "cache_devices": [SSD2]}
    assert actions(run(host, replaced)) == [MakeSet, Attach]
    settled(host, replaced)


def test_cache_device_that_does_not_start_changes_nothing_else(host):
    run(host, {**ITEM, "cache_devices": [SSD2]}, {**OTHER, "cache_devices": [SSD]})
    cset = host.backings["sdd"].set
    run(host, {**OTHER, "state": "absent", "cache_devices": []})
    host.contents["sdb"] = Content("cache", "b0000000-0000-0000-0000-0000000000ff", set=cset)
    host.stubborn = 1000
    with pytest.raises(NotEffective, match="a cache device whose content is damaged never is"):
        run(host, ITEM)
    assert host.sets[host.backings["sda"].set].device == "sdc"


def test_setting_missing_in_kernel_is_refused(host):
    run(host, ITEM)
    del host.backings["sda"].settings["writeback_delay"]
    host.render()
    with pytest.raises(Refused, match="has no bcache setting writeback_delay"):
        run(host, {**ITEM, "settings": {"writeback_delay": 10}})


def test_use_without_cache_is_reported(host):
    run(host, ITEM)
    host.contents["sda"].state, host.contents["sda"].set = "inconsistent", "c0000000-0000-0000-0000-0000000000ff"
    host.contents.pop("sdb")
    host.reboot()
    (problem,) = facts(host, ITEM)["problems"]
    assert "used without its cache" in problem
    outcome = run(host, ITEM)
    assert "which was used without its cache" in " ".join(outcome.to_dict()["actions"])
    settled(host, ITEM)


def test_stalled_and_slow_flushes_fail(host):
    run(host, {**ITEM, **WRITEBACK})
    host.make_dirty("sda", 100 * MIB)
    host.stuck = True
    with pytest.raises(TimedOut, match="flush_timeout"):
        run(host, {**ABSENT, "flush_timeout": 100})
    with pytest.raises(NotEffective, match="has not come below"):
        run(host, ABSENT)
    assert host.backings["sda"].set is not None
    assert host.backings["sda"].settings["writeback_percent"] == "10"
    assert not bcache_journal.read_journal(host.root).flushing


def test_missing_devices_and_tools(tmp_path):
    bcache = FakeBcache(tmp_path, missing=("make-bcache",))
    with pytest.raises(DeviceMissing):
        run(bcache, {**ITEM, "origin": "/dev/disk/by-id/ata-NONE"})
    with pytest.raises(ToolMissing):
        run(bcache, ITEM)
    with pytest.raises(DeviceMissing, match=r"set expect: \[missing\]"):
        run(bcache, {**ABSENT, "origin": "/dev/disk/by-id/ata-NONE"})
    assert not run(bcache, {**ABSENT, "origin": "/dev/disk/by-id/ata-NONE", "expect": ["missing"]}).changed


def test_facts_run_no_commands(host):
    devices = read_devices(host, host.root)
    host.calls.clear()
    assert read_caches(devices, host, host.root) == ()
    run(host, ITEM)
    devices = read_devices(host, host.root)
    host.calls.clear()
    (cache,) = read_caches(devices, host, host.root)
    assert (cache.type, cache.name, cache.cache_device_names, cache.counters["read_hits"]) == ("bcache", "bcache0", ("sdb",), 5)
    assert host.calls == []


def test_converged_host_runs_one_command(host):
    run(host, ITEM, OTHER)
    host.calls.clear()
    settled(host, ITEM, OTHER)
    assert [call.split(" /sys")[0] for call in host.calls] == ["udevadm info"]


# -- being killed

SETTINGS = {"settings": {"writeback_percent": 25, "congested_read_threshold_us": 0, "sequential_cutoff": 0}}
#: Lives: what is there before, and what is then asked for.
LIVES = {
    "create": ([], [{**ITEM, **SETTINGS}]),
    "create in writeback": ([], [{**ITEM, **WRITEBACK, **SETTINGS}]),
    "create two": ([], [ITEM, OTHER]),
    "to writeback": ([ITEM], [{**ITEM, **WRITEBACK}]),
    "to writethrough": ([{**ITEM, **WRITEBACK, **SETTINGS}], [ITEM]),
    "flush": ([{**ITEM, **WRITEBACK}], [{"name": "images", "origin": HDD, "state": "flushed"}]),
    "absent": ([{**ITEM, **WRITEBACK, **SETTINGS}], [ABSENT]),
    "both absent": ([{**ITEM, **WRITEBACK}, {**OTHER, **WRITEBACK}], [ABSENT, {"name": "archive", "origin": HDD2, "state": "absent"}]),
    "other device": ([{**ITEM, **WRITEBACK, **SETTINGS}], [{**ITEM, **WRITEBACK, **SETTINGS, "cache_devices": [SSD2]}]),
    "other bucket": ([{**ITEM, **WRITEBACK, **SETTINGS}], [{**ITEM, **WRITEBACK, **SETTINGS, "bucket_size": "256K"}]),
    "settings": ([ITEM], [{**ITEM, **SETTINGS}]),
    "mirror": ([], [MIRRORED]),
    "onto a mirror": ([{**ITEM, **WRITEBACK}], [MIRRORED]),
    "mirror absent": ([MIRRORED], [{**MIRRORED, "state": "absent", "release_devices": True}]),
}


def picture(bcache, items, *, power_cut=False):
    """Everything that matters afterwards; a set by its device, as its UUID is new each time.

    The kernel forgets unrequested settings in a power cut.
    """
    place = {found.set: name for name, found in bcache.contents.items() if found.kind == "cache"}
    requested = {key for item in items for key in item.get("settings", {})}
    backings = {
        name: (place.get(known.set), known.running, {key: value for key, value in known.settings.items() if not power_cut or key in requested})
        for name, known in bcache.backings.items()
    }
    contents = {name: (found.kind, place.get(found.set), found.state, found.mode, found.label, found.bucket) for name, found in bcache.contents.items()}
    sets = {
        place[name]: (known.device, {key: known.settings[key] for key in known.settings if not power_cut or key in requested})
        for name, known in bcache.sets.items()
    }
    journal = bcache_journal.read_journal(bcache.root)
    # An entry says nothing of a set that is nowhere any more, or that is attached and not about to be detached.
    attached = {(bcache.contents[name].uuid, known.set) for name, known in bcache.backings.items()}
    between = {
        uuid: (place[noted.set], noted.detaching)
        for uuid, noted in journal.between.items()
        if any(found.set == noted.set for found in bcache.contents.values()) and (noted.detaching or (uuid, noted.set) not in attached)
    }
    return backings, contents, sets, bcache_rules.read_rules(bcache.root), between, journal.flushing


#: Whether udev or we are faster matters where something is made.
CASES = [(life, True) for life in sorted(LIVES)] + [(life, False) for life in ("create", "create two", "other device", "mirror")]


@pytest.mark.parametrize(("life", "udev_registers"), CASES)
def test_run_killed_at_every_step_converges_on_rerun(tmp_path, monkeypatch, life, udev_registers):
    before, after = LIVES[life]
    bcache = FakeBcache(tmp_path, udev_registers=udev_registers)
    if before:
        run(bcache, *before)
    for name in bcache.backings:
        if bcache.contents[name].mode == "writeback":
            bcache.make_dirty(name, 100 * MIB)
    beginning = bcache.snapshot()
    bcache.die_in_files(monkeypatch)
    bcache.revive()
    run(bcache, *after)
    expected, count = {cut: picture(bcache, after, power_cut=cut) for cut in (False, True)}, bcache.effects
    assert count > 2
    for number, (kill_after, power_cut) in itertools.product(range(1, count + 1), ((False, False), (True, False), (True, True))):
        bcache.restore(beginning)
        bcache.kill_at, bcache.kill_after = number, kill_after
        with pytest.raises(Killed):
            run(bcache, *after)
        bcache.revive()
        if power_cut:
            bcache.reboot()
        what = f"{'after' if kill_after else 'before'} effect {number} of {count}{', power cut' if power_cut else ''}: {bcache.calls}"
        run(bcache, *after)
        assert picture(bcache, after, power_cut=power_cut) == expected[power_cut], what
        assert not run(bcache, *after).changed, what


@pytest.mark.parametrize("life", LIVES)
def test_full_or_read_only_file_system_at_any_change_loses_nothing(tmp_path, life):
    before, after = LIVES[life]
    numbers = itertools.count()

    def fresh():
        bcache = FakeBcache(tmp_path / str(next(numbers)))
        if before:
            run(bcache, *before)
        for name in bcache.backings:
            if bcache.contents[name].mode == "writeback":
                bcache.make_dirty(name, 100 * MIB)
        return bcache

    strike_everywhere(fresh, lambda bcache: run(bcache, *after))


def test_network_disk_is_registered_by_device_node(tmp_path):
    written = []

    class Sysfs:
        def exists(self, path):
            return True

        def write(self, path, value, item):
            written.append((path, value))

    runner = ScriptedRunner({("udevadm", "settle"): Reply()})
    layer = BcacheLayer(runner, [], tmp_path, sysfs=Sysfs())
    layer._register(Step("bcache", "images", "x", None, None, "x", Operation()), "etherd!e7.1", lambda: bool(written))
    assert written == [("sys/fs/bcache/register", "/dev/etherd/e7.1")]
    (tmp_path / "dev/etherd").mkdir(parents=True)
    assert layer.kernel_name("/dev/etherd/e7.1") == "etherd!e7.1"


# -- a bcache within a bcache


def _volume_on(bcache, below):
    """``/dev/mapper/vg-lv`` on a device."""
    bcache.missing = ("dmsetup",)
    bcache.host.disk("dm-5", "virtual", size=512 * MIB, dm_name="vg-lv", dm_uuid="LVM-1234", slaves=[below])
    bcache.host.link("/dev/mapper/vg-lv", "dm-5")
    return "/dev/mapper/vg-lv"


@pytest.mark.parametrize("role", ["origin", "cache device"])
@pytest.mark.parametrize("check_mode", [True, False])
def test_bcache_on_a_bcache_is_refused_before_anything_is_written(host, role, check_mode):
    run(host, ITEM)
    path = _volume_on(host, "bcache0")
    item = {"name": "archive", "origin": path, "cache_devices": [SSD2]} if role == "origin" else {"name": "archive", "origin": HDD2, "cache_devices": [path]}
    before = set(host.contents)
    with pytest.raises(Refused, match=rf"archive: {path} lies on the bcache /dev/bcache0, and a bcache within a bcache is not supported"):
        run(host, item, check_mode=check_mode)
    assert set(host.contents) == before


@pytest.mark.parametrize("check_mode", [True, False])
def test_bcache_itself_is_refused_as_cache_device(host, check_mode):
    run(host, ITEM)
    path = f"/dev/bcache/by-uuid/{host.contents['sda'].uuid}"
    before = set(host.contents)
    with pytest.raises(Refused, match=f"archive: {path} is a bcache, and a bcache within a bcache is not supported"):
        run(host, {"name": "archive", "origin": HDD2, "cache_devices": [path]}, check_mode=check_mode)
    assert set(host.contents) == before


def test_bcache_beside_volumes_that_lie_on_none_is_made(host):
    path = _volume_on(host, "sdd")
    run(host, ITEM)
    assert run(host, {"name": "archive", "origin": path, "cache_devices": [SSD2]}, check_mode=True).changed


# -- several paths to one unit of storage


def _second_path(bcache, of):
    """``sde`` carries what another disk carries; the kernel has registered that one."""
    bcache.host.disk("sde", size=bcache.sizes[of], serial="OTHER", DEVLINKS="/dev/disk/by-id/dm-name-mpatha")
    bcache.base_records["sde"] = bcache.host.records[-1]
    bcache.contents["sde"] = bcache.contents[of]
    bcache.sizes["sde"] = bcache.sizes[of]
    return "/dev/disk/by-id/dm-name-mpatha"


@pytest.mark.parametrize("state", ["present", "flushed", "absent"])
@pytest.mark.parametrize("check_mode", [True, False])
def test_backing_device_that_is_registered_by_another_path_is_refused(host, state, check_mode):
    run(host, ITEM)
    path = _second_path(host, "sda")
    calls = list(host.calls)
    with pytest.raises(Refused, match=rf"images: {path} carries what the kernel has registered as /dev/sda, .*multipath -r"):
        run(host, {**ITEM, "origin": path, "state": state}, check_mode=check_mode)
    assert not [call for call in host.calls[len(calls) :] if " = " in call]


@pytest.mark.parametrize("check_mode", [True, False])
def test_cache_set_that_is_registered_by_another_path_is_refused(host, check_mode):
    run(host, ITEM)
    path = _second_path(host, "sdb")
    calls = list(host.calls)
    with pytest.raises(Refused, match=rf"archive: {path} carries what the kernel has registered as /dev/sdb"):
        run(host, {**OTHER, "cache_devices": [path]}, check_mode=check_mode)
    assert not [call for call in host.calls[len(calls) :] if " = " in call]
