# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole lives of raw caches on a host in memory, with writes and reads all the time."""

from __future__ import annotations

import dataclasses
import itertools
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import DmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.operations import (
    FlushCache,
    LoadTable,
    PrepareDevice,
    ProveClean,
    StartUnit,
    WriteUnit,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step, converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing, NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Signature
from ansible_collections.cachefleet.storage.tests.unit.support.fake_dm import HDD, SSD, SSD1, FakeDm, Killed, Mapped
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import in_etc
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere

ITEM = {"name": "images", "origin": HDD, "cache_devices": [SSD]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
WRITECACHE = {"kind": "writecache", "allow_unmirrored_writeback": True}
MIRRORED = {"cache_devices": [SSD, SSD1], "mirror": True}
ABSENT = {"state": "absent"}


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    # The power of this machine is never cut, and there are thousands of them here.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(mirror, "read_devices", lambda runner, root: runner.devices())


def layer_of(host, items):
    ticks = itertools.count(0, 30)
    return DmCacheLayer(host, read_items(items), host.root, clock=lambda: next(ticks), sleep=lambda seconds: None)


def run(host, *, check_mode=False, **fields):
    layer = layer_of(host, [{**ITEM, **fields}])
    return converge(layer, check_mode=check_mode)


def facts(host, **fields):
    layer = layer_of(host, [{**ITEM, **fields}])
    return layer.facts(layer.read())


def test_empty_list_reads_nothing(tmp_path):
    host = FakeDm(tmp_path)
    layer = layer_of(host, [])
    outcome = converge(layer, check_mode=False)
    assert (outcome.changed, layer.facts(outcome.state), host.calls) == (False, {"problems": [], "caches": []}, [])


def made(tmp_path, *, mounted=True, **fields):
    host = FakeDm(tmp_path)
    run(host, **fields)
    if mounted:
        host.mounted.add("images")
    return host


def unit(host):
    path = host.root / "etc/systemd/system/cachefleet-dm_cache-images.service"
    return path.read_text() if path.exists() else ""


def mode(host):
    table = host.mapped["images"].live
    return next((word for word in table if word in ("writethrough", "writeback", "passthrough")), table[0])


def head(host, disk="sdb"):
    return (host.root / "dev" / disk).read_bytes()


# -- one step after the other


def test_cache_is_attached_to_empty_device_without_change_on_second_run(tmp_path):
    host = FakeDm(tmp_path)
    outcome = run(host, **WRITEBACK, settings={"migration_threshold": 4096})
    assert host.changes == [
        "systemctl enable cachefleet-dm_cache-images.service",
        f"dmsetup create cachefleet-images-meta --uuid CACHEFLEET-META-images --table 0 10240 linear {SSD} 0",
        f"dmsetup create cachefleet-images-data --uuid CACHEFLEET-DATA-images --table 0 2086912 linear {SSD} 10240",
        "dmsetup create images --uuid CACHEFLEET-TOP-images --table 0 8388608 cache /dev/mapper/cachefleet-images-meta"
        f" /dev/mapper/cachefleet-images-data {HDD} 128 2 metadata2 writethrough smq 2 migration_threshold 4096",
        "systemctl enable cachefleet-dm_cache-images.service",
        "dmsetup reload images --table 0 8388608 cache /dev/mapper/cachefleet-images-meta"
        f" /dev/mapper/cachefleet-images-data {HDD} 128 2 metadata2 writeback smq 2 migration_threshold 4096",
        "dmsetup resume --noudevsync --nolockfs images",
    ]
    assert outcome.changed
    assert not run(host, **WRITEBACK, settings={"migration_threshold": 4096}).changed
    assert not run(host, **WRITEBACK).changed


def test_check_mode_predicts_run(tmp_path):
    host = FakeDm(tmp_path)
    predicted = run(host, check_mode=True, **WRITEBACK).to_dict()
    assert host.changes == []
    assert run(host, **WRITEBACK).to_dict() == predicted


def test_command_count_is_independent_of_number_of_caches(tmp_path):
    host = made(tmp_path, mounted=False)
    host.calls.clear()
    run(host)
    assert [words[:2] for words in host.calls] == [("dmsetup", "info"), ("dmsetup", "table"), ("dmsetup", "status")]


def test_result_contains_reread_caches(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    host.mounted.clear()
    host.write("images", 1, 1)
    (cache,) = facts(host, **WRITEBACK)["caches"]
    assert (cache["device"], cache["mode"], cache["policy"], cache["state"], cache["dirty"]) == ("/dev/mapper/images", "writeback", "smq", "ok", 65536)
    assert cache["cache_devices"] == [SSD]
    assert cache["origin"] == HDD


def test_mode_change_flushes_and_updates_unit(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    for _turn in range(6):
        host.work()
    outcome = run(host)
    assert [type(step.operation) for step in outcome.steps] == [FlushCache, ProveClean, LoadTable, WriteUnit]
    assert mode(host) == "writethrough"
    host.check_origin()
    assert not run(host).changed


def crashed(tmp_path, **fields):
    host = made(tmp_path, **fields)
    for _turn in range(6):
        host.work()
    host.cut_power()
    host.boot()
    return host


@pytest.mark.parametrize("fields", [{}, WRITEBACK])
@pytest.mark.parametrize("anew", [False, True])
def test_a_cache_that_was_taken_down_by_others_is_started_although_systemd_takes_it_for_started(tmp_path, fields, anew):
    host = crashed(tmp_path, **fields)
    if anew:
        host.mounted.clear()
        run(host, **fields, state="absent")
        run(host, **fields)
    assert "cachefleet-dm_cache-images.service" in host.active
    host.take_down()
    assert run(host, **fields).changed
    assert "images" in host.mapped
    assert not run(host, **fields).changed


def test_a_mapping_that_is_unused_by_the_time_it_is_read_back_is_removed_by_the_next_run(tmp_path, monkeypatch):
    host = made(tmp_path)
    read, reads = DmCacheLayer.read, []

    def read_later(self):
        reads.append(1)
        if len(reads) > 1:
            host.mounted.clear()
        return read(self)

    monkeypatch.setattr(DmCacheLayer, "read", read_later)
    assert run(host, state="absent").changed
    assert "images" in host.mapped
    assert run(host, state="absent").changed
    assert "images" not in host.mapped
    assert not unit(host)
    assert not run(host, state="absent").changed


def test_passthrough_is_entered_clean(tmp_path):
    host = made(tmp_path)
    host.work()
    run(host, mode="passthrough")
    assert mode(host) == "passthrough"
    assert not run(host, mode="passthrough").changed
    run(host, state="flushed")
    assert mode(host) == "passthrough"


@pytest.mark.parametrize("fields", [{}, WRITEBACK])
def test_passthrough_in_use_after_crash_is_refused_without_suspension(tmp_path, fields):
    host = crashed(tmp_path, **fields)
    with pytest.raises(Refused, match=r"unmount it, run systemctl stop cachefleet-dm_cache-images\.service and systemctl start"):
        run(host, mode="passthrough")
    assert not host.stood_still
    assert mode(host) == "writethrough"
    host.work()
    run(host)
    host.stop_unit()
    host.start_unit("cachefleet-dm_cache-images.service")
    for _turn in range(20):
        host.work()
    run(host, state="flushed")
    run(host, mode="passthrough")
    assert mode(host) == "passthrough"


@pytest.mark.parametrize(("fields", "state"), [({"mode": "passthrough"}, "present"), ({}, "present"), (WRITEBACK, "present"), ({}, "absent")])
def test_passthrough_cache_does_not_start_after_crash_and_is_recreated(tmp_path, fields, state):
    """The unit must not map the origin without the cache: writes would bypass cached blocks that a later start serves again."""
    host = made(tmp_path)
    host.work()
    run(host, mode="passthrough")
    host.work()
    host.cut_power()
    host.boot()
    assert "images" not in host.mapped
    host.origin[3] = host.expected[3] = 12345
    assert run(host, state=state, **fields).changed
    assert not run(host, state=state, **fields).changed
    if state == "present":
        host.mounted.add("images")
        for _turn in range(20):
            host.work()
        run(host, state="flushed")
    host.check_origin()


@pytest.mark.parametrize("fields", [{}, WRITEBACK])
@pytest.mark.parametrize("state", ["flushed", "absent"])
def test_cleaner_proves_cache_clean_after_crash(tmp_path, fields, state):
    host = crashed(tmp_path, **fields)
    assert run(host, state=state).changed
    assert not host.stood_still
    host.check_origin()
    assert not run(host, state=state).changed
    if state == "flushed":
        assert run(host, **fields).changed
        assert not run(host, **fields).changed


def test_passthrough_rejected_by_kernel_is_reported_and_recovered(tmp_path, monkeypatch):
    host = crashed(tmp_path)
    dirty = DmCacheLayer.dirty
    monkeypatch.setattr(DmCacheLayer, "dirty", lambda self, name: dirty(self, name) if "cleaner" in host.mapped[name].live else 0)
    host.mounted.clear()
    with pytest.raises(Refused, match="to mode passthrough while it is in use"):
        run(host, mode="passthrough")
    assert host.stood_still == 1
    assert not host.mapped["images"].suspended
    assert mode(host) == "writethrough"


def test_dirty_count_of_writethrough_cache_after_crash_is_reported(tmp_path):
    host = crashed(tmp_path, **WRITEBACK)
    (message,) = run(host).warnings
    assert "blocks of the cache as dirty all the same" in message
    assert "systemctl stop cachefleet-dm_cache-images.service" in message
    assert not run(host).changed


def test_no_files_remain_in_etc_after_removal(tmp_path):
    host = FakeDm(tmp_path)
    before = in_etc(host.root)
    run(host, **WRITEBACK)
    assert len(in_etc(host.root)) > len(before)
    run(host, state="absent")
    assert in_etc(host.root) == before


def test_udev_rule_stays_while_another_cache_needs_it(tmp_path):
    host = made(tmp_path, mounted=False)
    unit(host)
    other = host.root / "etc/systemd/system/cachefleet-dm_cache-other.service"
    other.write_text(unit(host).replace("images", "other").replace(HDD, f"{HDD}-other"))
    (host.root / "etc/systemd/system/sysinit.target.wants" / other.name).symlink_to(other)
    run(host, state="absent")
    assert (host.root / "etc/udev/rules.d/09-cachefleet-dm-cache.rules").exists()


def test_settings_are_set_kept_and_removed(tmp_path):
    host = made(tmp_path, **WRITECACHE, settings={"high_watermark": 60, "low_watermark": 30, "metadata_only": True})
    assert host.mapped["images"].live[-6:] == ["5", "high_watermark", "60", "low_watermark", "30", "metadata_only"]
    assert not run(host, **WRITECACHE).changed
    assert run(host, **WRITECACHE, settings={"writeback_jobs": 8}).changed
    assert run(host, **WRITECACHE, settings={"metadata_only": "default", "high_watermark": "default", "low_watermark": "default"}).changed
    assert host.mapped["images"].live[-3:] == ["2", "writeback_jobs", "8"]


def test_unspecified_watermarks_are_included_in_validation(tmp_path):
    host = FakeDm(tmp_path)
    refused(host, "low_watermark would be 45 and high_watermark 40: set both", BadInput, **WRITECACHE, settings={"high_watermark": 40})
    assert "images" not in host.mapped
    host = made(tmp_path / "x", **WRITECACHE, settings={"high_watermark": 60, "low_watermark": 30})
    assert run(host, **WRITECACHE, settings={"high_watermark": 40}).changed
    refused(host, "low_watermark would be 41 and high_watermark 40: set both", BadInput, **WRITECACHE, settings={"low_watermark": 41})


def test_block_size_is_read_as_a_setting(tmp_path):
    host = made(tmp_path, **WRITECACHE, settings={"block_size": 512})
    assert host.mapped["images"].live[4] == "512"
    assert not run(host, **WRITECACHE, settings={"block_size": "512"}).changed
    assert not run(host, **WRITECACHE, settings={"block_size": "default"}).changed
    assert facts(host, **WRITECACHE)["caches"][0]["settings"] == {"block_size": 512}


def test_large_blocks_get_sufficient_migration_threshold(tmp_path):
    host = made(tmp_path, chunk_size="1M")
    assert host.mapped["images"].live[-3:] == ["2", "migration_threshold", "16384"]
    assert not run(host, chunk_size="1M").changed
    assert not run(host).changed


@pytest.mark.parametrize("kind", [WRITEBACK, WRITECACHE])
def test_flushed_keeps_cache_in_service_without_dirty_blocks(tmp_path, kind):
    host = made(tmp_path, **kind)
    for _turn in range(6):
        host.work()
    assert run(host, state="flushed", kind=kind.get("kind")).changed
    for _turn in range(6):
        host.work()
    host.check_origin()
    assert not run(host, state="flushed", kind=kind.get("kind")).changed
    host.cut_power()
    host.boot()
    host.work()
    host.check_origin()
    assert run(host, **kind).changed
    assert not run(host, **kind).changed


@pytest.mark.parametrize("kind", ["cache", "writecache"])
def test_origin_is_synced_before_cache_is_removed(tmp_path, monkeypatch, kind):
    host = made(tmp_path, **WRITEBACK, kind=kind)
    host.work()
    written = []
    monkeypatch.setattr(host, "_sync", lambda words: written.append((words, host.mapped["images"].live[0])))
    run(host, state="absent")
    assert (["/dev/mapper/images"], kind) in written


@pytest.mark.parametrize("requested", [{"state": "absent"}, {"state": "absent", "release_devices": True}, {"state": "present"}])
def test_dirty_cache_of_another_origin_in_old_record_is_not_touched(tmp_path, requested):
    host = made(tmp_path, mounted=False, **WRITEBACK)
    known = dm_cache_record.parse_record(unit(host))
    host.write("images", 1, 1)
    host.cut_power()
    # From a time in which the same drive was the cache of another name, and had gone when that was taken away.
    remembered = dataclasses.replace(known, name="old", origin=SSD1, table=None)
    tools = dm_cache_record.Tools("/usr/sbin/dmsetup", "/usr/sbin/cache_check")
    dm_cache_record.write_record(host, remembered, "old", tools, host.root)
    before = head(host)
    assert any(before)
    layer = layer_of(host, [{"name": "old", "origin": SSD1, "cache_devices": [SSD], **requested}])
    if requested["state"] == "present":
        with pytest.raises(Refused, match=f"cannot get its cache on {SSD}, which the cache images of this host is on"):
            converge(layer, check_mode=False)
    else:
        converge(layer, check_mode=False)
    assert head(host) == before
    run(host, **WRITEBACK)
    assert host.read("images", 1) == 1


def test_flushed_of_missing_cache_is_an_error(tmp_path):
    with pytest.raises(DeviceMissing, match="so that nothing was flushed"):
        run(FakeDm(tmp_path), state="flushed")


def test_removal_while_in_use_keeps_linear_mapping_until_unused(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    for _turn in range(6):
        host.work()
    run(host, **ABSENT)
    assert host.mapped["images"].live[0] == "linear"
    assert set(host.mapped) == {"images"}
    assert head(host) == bytes(4096)
    assert "has no cache any more and remains" in facts(host, **ABSENT)["problems"][0]
    assert not run(host, **ABSENT).changed
    host.cut_power()
    host.boot()
    host.work()
    host.check_origin()
    host.mounted.clear()
    run(host, **ABSENT)
    assert host.mapped == {}
    assert unit(host) == ""
    assert not run(host, **ABSENT).changed
    assert facts(host, **ABSENT)["problems"] == []


@pytest.mark.parametrize("fields", [{}, WRITEBACK, WRITECACHE])
def test_a_mapping_that_udev_brings_into_use_when_its_cache_is_taken_away_remains(tmp_path, monkeypatch, fields):
    host = made(tmp_path, mounted=False, **fields)
    resume = host._dm_resume

    def resume_and_activate(words):
        resume(words)
        if host.mapped["images"].live[0] == "linear":
            host.mounted.add("images")

    monkeypatch.setattr(host, "_dm_resume", resume_and_activate)
    assert run(host, **ABSENT).changed
    assert "dmsetup remove --retry images" in host.changes
    assert {name: mapped.live[0] for name, mapped in host.mapped.items()} == {"images": "linear"}
    assert "has no cache any more and remains" in facts(host, **ABSENT)["problems"][0]
    assert not run(host, **ABSENT).changed
    host.cut_power()
    host.boot()
    assert set(host.mapped) == {"images"}
    host.mounted.clear()
    assert run(host, **ABSENT).changed
    assert (host.mapped, unit(host)) == ({}, "")


def test_a_mapping_that_cannot_be_removed_for_another_reason_is_an_error(tmp_path, monkeypatch):
    host = made(tmp_path, mounted=False)
    remove = host._dm_remove

    def fail(words):
        if words[-1] == "images":
            raise OSError("Input/output error")
        remove(words)

    with monkeypatch.context() as failing:
        failing.setattr(host, "_dm_remove", fail)
        with pytest.raises(CommandFailed, match="Input/output error"):
            run(host, **ABSENT)
    run(host, **ABSENT)
    assert (host.mapped, unit(host)) == ({}, "")


def test_cache_is_reattached_while_in_use(tmp_path):
    host = made(tmp_path)
    run(host, **ABSENT)
    for _turn in range(6):
        host.work()
    run(host, **WRITEBACK)
    for _turn in range(6):
        host.work()
    assert mode(host) == "writeback"


@pytest.mark.parametrize("change", [{"size": "500M"}, {"chunk_size": "256k"}, {"cache_devices": [SSD1]}, WRITECACHE])
def test_immutable_fields_are_changed_by_recreation_while_in_use(tmp_path, change):
    host = made(tmp_path, **WRITEBACK)
    for _turn in range(6):
        host.work()
    wanted = {**WRITEBACK, **change} if change is not WRITECACHE else change
    run(host, **wanted)
    for _turn in range(6):
        host.work()
    assert not run(host, **wanted).changed
    if "cache_devices" in change:
        assert head(host) == bytes(4096)


def test_mirror_is_created_and_released(tmp_path):
    host = made(tmp_path, **MIRRORED, mode="writeback")
    assert mode(host) == "writeback"
    assert not run(host, **MIRRORED, mode="writeback").changed
    (cache,) = facts(host, **MIRRORED)["caches"]
    assert cache["redundancy"] == "mirrored"
    host.mounted.clear()
    run(host, **MIRRORED, **ABSENT, release_devices=True)
    assert host.arrays == {}
    assert host.raid_members == {}
    assert not run(host, **MIRRORED, **ABSENT, release_devices=True).changed


# -- refusals


def test_degraded_writeback_mirror_is_reported_with_effect_of_reboot(tmp_path):
    host = made(tmp_path, mode="writeback", **MIRRORED)
    assert facts(host, mode="writeback", **MIRRORED)["problems"] == []
    (host.root / "sys/class/block/md127/md/degraded").write_text("1\n")
    (problem,) = facts(host, mode="writeback", **MIRRORED)["problems"]
    assert "on a mirror that is degraded" in problem
    assert "Take the failed member out of the machine before the next boot" in problem


def test_fstab_line_mounting_origin_without_cache_is_a_warning(tmp_path):
    host = FakeDm(tmp_path)
    (tmp_path / "etc/fstab").write_text(f"/dev/mapper/images /srv xfs\n{HDD} /srv2 xfs nofail 0 2\n")
    warnings = [run(host, check_mode=True).warnings, run(host).warnings, run(host).warnings]
    assert [len(message) for message in warnings] == [1, 1, 1]
    assert warnings[0][0].startswith(f"Line 2 of /etc/fstab ({HDD} on /srv2) means {HDD}")
    assert facts(host)["problems"] == list(warnings[2])
    (tmp_path / "etc/fstab").write_text("/dev/mapper/images /srv xfs\n")
    assert run(host).warnings == ()
    assert facts(host)["problems"] == []
    (tmp_path / "etc/fstab").write_text(f"{HDD} /srv2 xfs nofail 0 2\n")
    assert run(host, **ABSENT).warnings == ()
    assert facts(host, **ABSENT)["problems"] == []


@pytest.mark.parametrize("fields", [WRITEBACK, WRITECACHE])
def test_writeback_over_a_physical_volume_is_refused_until_lvm_is_kept_away(tmp_path, fields):
    host = FakeDm(tmp_path)
    host.signatures["sda"] = "LVM2_member"
    for check_mode in (True, False):
        with pytest.raises(Refused, match="LVM activates the volume group on it without waiting for the cache"):
            run(host, check_mode=check_mode, **fields)
    assert host.changes == []
    host.lvm_rejects = True
    assert run(host, **fields).changed
    assert not run(host, **fields).changed


def test_running_cache_enters_writeback_only_if_lvm_is_kept_away(tmp_path, monkeypatch):
    host = made(tmp_path)
    signed(host, monkeypatch)
    with pytest.raises(Refused, match="carries LVM2_member"):
        run(host, **WRITEBACK)
    assert "LVM activates" in run(host).warnings[0]
    host.lvm_rejects = True
    assert run(host, **WRITEBACK).changed
    host.lvm_rejects = False
    # One that writes back already is reported in every run, and is not stopped by it.
    assert "LVM activates" in run(host, **WRITEBACK).warnings[0]
    assert not run(host, **WRITEBACK).changed
    assert run(host, state="flushed").changed


def signed(host, monkeypatch):
    """What was made through the cache is known of the cached device only."""
    plain = host._all

    def all_devices():
        return [dataclasses.replace(one, signature=Signature("raid", "LVM2_member")) if one.dm_name == "images" else one for one in plain()]

    monkeypatch.setattr(host, "_all", all_devices)


@pytest.mark.parametrize("requested", [{"mode": "writeback"}, {"mode": "writethrough"}, {"state": "flushed"}, {"state": "absent"}])
def test_user_of_the_origin_past_its_cache_is_critical_and_nothing_is_flushed(tmp_path, requested):
    """A power cut, and LVM was faster than the cache: both have the origin now."""
    host = made(tmp_path, **WRITEBACK)
    host.work()
    host.mapped["vg-data"] = Mapped(90, "LVM-abc", ["linear", "8:0", "0"])
    host.lengths["LVM-abc"] = 1
    before = list(host.changes)
    with pytest.raises(Refused, match=r"is used by dm-90 \(vg-data\), past its cache images.* Nothing is flushed while it is so") as caught:
        run(host, **{**WRITEBACK, **requested})
    assert caught.value.message.endswith("; nothing was changed.")
    assert host.changes == before
    found = facts(host, **WRITEBACK)
    assert (found["caches"][0]["state"], len(found["problems"])) == ("inconsistent", 1)
    del host.mapped["vg-data"]
    assert run(host, state="flushed").changed
    host.check_origin()


def test_cache_that_writes_through_is_removed_although_its_origin_is_used_past_it(tmp_path):
    host = made(tmp_path)
    host.mapped["vg-data"] = Mapped(90, "LVM-abc", ["linear", "8:0", "0"])
    host.lengths["LVM-abc"] = 1
    with pytest.raises(Refused, match="may then be removed with state: absent"):
        run(host)
    assert FlushCache not in [type(step.operation) for step in run(host, **ABSENT).steps]
    assert mode(host) == "linear"
    with pytest.raises(Refused, match=r"is used by dm-90 \(vg-data\), past /dev/mapper/images: stop that before it gets a cache"):
        run(host)


def refused(host, text, error=Refused, **fields):
    with pytest.raises(error, match=text):
        run(host, **fields)


def test_unmirrored_writeback_is_refused_before_any_change(tmp_path):
    host = FakeDm(tmp_path)
    refused(host, "allow_unmirrored_writeback: true", mode="writeback")
    refused(host, "allow_unmirrored_writeback: true", kind="writecache")
    assert host.changes == []


def test_non_empty_device_is_refused(tmp_path):
    host = FakeDm(tmp_path)
    host.signatures["sdb"] = "ext4"
    refused(host, "carries a signature .ext4.")
    host.signatures.clear()
    (tmp_path / "dev/sdb").write_bytes(bytes(32) + (0o6142003).to_bytes(8, "little") + bytes(4056))
    refused(host, "carries dm-cache metadata")
    assert host.changes == []


def test_device_used_since_examination_is_refused(tmp_path):
    host = FakeDm(tmp_path)
    layer = layer_of(host, [ITEM])
    prepare = next(step for step in layer.plan(layer.read()) if isinstance(step.operation, PrepareDevice))
    host.signatures["sdb"] = "ext4"
    theirs = bytes(1024) + b"a file system" + bytes(4096 - 1024 - 13)
    (host.root / "dev/sdb").write_bytes(theirs)
    with pytest.raises(Refused, match=r"ata-SSD0 was empty when it was examined and now carries a signature \(ext4\)"):
        layer.apply(prepare)
    assert head(host) == theirs
    assert host.mapped == {}


def test_device_already_holding_this_cache_is_prepared_again(tmp_path):
    host = made(tmp_path)
    layer = layer_of(host, [{**ITEM, "size": "512M"}])
    steps = layer.plan(layer.read())
    assert [step.operation.new for step in steps if isinstance(step.operation, PrepareDevice)] == [False]


def test_origin_in_use_is_refused_but_file_system_is_accepted(tmp_path, monkeypatch):
    host = FakeDm(tmp_path)
    host.signatures["sda"] = "ext4"
    assert run(host, check_mode=True).changed
    monkeypatch.setattr(
        layer_module.cache_device, "_held", lambda node, sleep: ("cannot be opened exclusively (Device or resource busy)",) if node.name == "ata-HDD0" else ()
    )
    refused(host, "cannot be opened exclusively")
    assert host.changes == []


def test_foreign_mapping_is_refused(tmp_path):
    host = FakeDm(tmp_path)
    host.run(["dmsetup", "create", "images", "--uuid", "OTHER-TOP-images", "--table", f"0 8388608 linear {HDD} 0"])
    refused(host, "another device-mapper device has that name")
    refused(host, "another device-mapper device has that name", **ABSENT)


def test_changed_origin_of_existing_name_is_refused(tmp_path):
    host = made(tmp_path)
    refused(host, "is not what /dev/mapper/images caches, which is /dev/disk/by-id/ata-HDD0", origin=SSD1)


def test_missing_cache_check_prevents_attaching(tmp_path):
    refused(FakeDm(tmp_path, missing=("cache_check",)), "cache_check is missing", ToolMissing)
    assert run(FakeDm(tmp_path / "x", missing=("cache_check",)), **WRITECACHE).changed


def test_cache_needing_check_is_refused_and_detached_if_writethrough(tmp_path):
    host = made(tmp_path)
    host.needs_check = True
    refused(host, "state needs_check.*run with state: absent")
    run(host, **ABSENT)
    assert host.mapped["images"].live[0] == "linear"
    host = made(tmp_path / "back", **WRITEBACK)
    host.needs_check = True
    for fields in ({}, WRITEBACK, ABSENT, {"state": "flushed"}):
        refused(host, "state needs_check.*decide manually", **fields)


def test_removed_cache_device_loses_no_data_in_writethrough(tmp_path):
    host = made(tmp_path)
    for _turn in range(6):
        host.work()
    host.mounted.clear()
    host.pull("sdb")
    refused(host, "The cache device of /dev/mapper/images is gone")
    run(host, **ABSENT)
    assert host.mapped == {}
    host.check_origin()
    host.put_back()
    refused(host, "carries dm-cache metadata")
    (host.root / "dev/sdb").write_bytes(bytes(4096))
    run(host)
    host.mounted.add("images")
    for _turn in range(6):
        host.work()
    assert mode(host) == "writethrough"


def test_cache_device_removed_in_use_falls_back_to_origin(tmp_path):
    host = made(tmp_path)
    host.work()
    host.mounted.clear()
    host.pull("sdb")
    # Held open by something that does not write.
    host.run(["dmsetup", "create", "above", "--uuid", "OTHER-X", "--table", "0 8388608 linear /dev/mapper/images 0"])
    run(host, **ABSENT)
    assert host.mapped["images"].live[0] == "linear"
    assert set(host.mapped) == {"images", "above"}


def test_cache_device_removed_in_writeback_requires_manual_decision(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    host.work()
    host.mounted.clear()
    host.pull("sdb")
    for fields in (WRITEBACK, {}, ABSENT):
        refused(host, "what it had not written back is only there", **fields)


def test_cache_not_running_after_reboot_is_refused(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    for _turn in range(6):
        host.work()
    host.cut_power()
    host.pull("sdb")
    host.boot()
    assert host.mapped == {}
    refused(host, "is not there, and the newest data may be only on that device", **ABSENT)
    for seen in ("cache_missing", "ok"):
        assert facts(host)["caches"][0]["state"] == seen
        host.put_back()
    host.check("images")
    assert not run(host, **WRITEBACK).changed


def test_cache_that_its_device_started_since_the_plan_was_made_is_left_running(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    host.changes.clear()
    layer = layer_of(host, [{**ITEM, **WRITEBACK}])
    layer.carry_out(StartUnit("cache"), Step("dm_cache", "images", "cache", None, None, "start it", StartUnit("cache")))
    assert host.changes == ["systemctl start cachefleet-dm_cache-images.service"]
    host.check("images")


def test_writethrough_cache_not_running_after_reboot_is_recreated(tmp_path):
    host = made(tmp_path)
    for _turn in range(6):
        host.work()
    host.cut_power()
    host.pull("sdb")
    host.boot()
    host.origin[1] = host.expected[1] = 999
    host.put_back()
    run(host)
    host.check("images")


def test_stalled_flush_fails_and_cache_stays(tmp_path):
    host = made(tmp_path, **WRITEBACK)
    host.work()
    host.mounted.clear()
    host.stuck = True
    refused(host, "has not come below", NotEffective, **ABSENT)
    assert host.mapped["images"].live[0] == "cache"


def test_suspended_mapping_is_resumed_with_active_table(tmp_path):
    host = made(tmp_path, mounted=False)
    mapping = host.mapped["images"]
    mapping.suspended, mapping.waiting = True, ["linear", "8:0", "0"]
    assert run(host).changed
    assert (mapping.suspended, mapping.waiting, mapping.live[0]) == (False, None, "cache")
    assert not run(host).changed


def test_manually_loaded_table_is_corrected(tmp_path):
    host = made(tmp_path)
    host.mapped["images"].live = [word.replace("smq", "cleaner") for word in host.mapped["images"].live]
    assert run(host).changed
    assert "smq" in host.mapped["images"].live


def test_two_caches_cannot_share_a_device(tmp_path):
    host = FakeDm(tmp_path)
    layer = layer_of(host, [ITEM, {**ITEM, "name": "other", "origin": SSD1}])
    with pytest.raises(BadInput, match="is used by a cache before it"):
        layer.plan(layer.read())


def test_origin_named_by_two_paths_is_cached_once(tmp_path):
    host = FakeDm(tmp_path)
    (tmp_path / "dev/disk/by-id/wwn-1").symlink_to(tmp_path / "dev/sda")
    layer = layer_of(host, [ITEM, {**ITEM, "name": "other", "origin": "/dev/disk/by-id/wwn-1", "cache_devices": [SSD1]}])
    with pytest.raises(BadInput, match="is used by the cache images of the list"):
        layer.plan(layer.read())


def test_missing_device_is_reported(tmp_path):
    refused(FakeDm(tmp_path), "does not exist", DeviceMissing, cache_devices=["/dev/disk/by-id/ata-NONE"])
    refused(FakeDm(tmp_path / "x"), "does not exist", DeviceMissing, origin="/dev/disk/by-id/ata-NONE")


def test_failed_command_reports_the_reason(tmp_path):
    host = FakeDm(tmp_path)
    host.lies["dmsetup create images"] = 1
    refused(host, "images: .*; see dmesg for the reason", CommandFailed)
    host.lies.clear()
    run(host)
    assert mode(host) == "writethrough"


def test_writecache_block_size_matches_content_on_origin(tmp_path):
    host = FakeDm(tmp_path)
    host.signatures["sda"], host.content_block = "xfs", "512"
    run(host, **WRITECACHE)
    assert host.mapped["images"].live[4] == "512"
    host = FakeDm(tmp_path / "x")
    host.signatures["sda"], host.content_block = "ext4", "4096"
    run(host, **WRITECACHE)
    assert host.mapped["images"].live[4] == "4096"
    host = made(tmp_path / "y")
    refused(host, "which settings.block_size: 4096 would break", **WRITECACHE, settings={"block_size": 4096})


# -- whole lives, killed at every command

LIVES = {
    "write-through": [{}, {**ABSENT}],
    "write-back": [WRITEBACK, {"state": "flushed"}, WRITEBACK, {}, {**ABSENT}],
    "rebuilt": [WRITEBACK, {**WRITEBACK, "cache_devices": [SSD1], "size": "500M"}, {"cache_devices": [SSD1], **ABSENT}],
    "writecache": [WRITECACHE, {"kind": "writecache", "state": "flushed"}, WRITEBACK, {"kind": "writecache", **ABSENT}],
    "mirrored": [{**MIRRORED, "mode": "writeback"}, {**MIRRORED, **ABSENT, "release_devices": True}],
}
MOMENTS = ("before", "inside", "after")


def live(host, stages, used=True):
    """Every stage in turn; a device is used as soon as it exists, and is unused at the end."""
    for fields in stages:
        if used and "images" in host.mapped and host.mapped["images"].live:
            host.mounted.add("images")
        yield fields
    host.mounted.clear()
    yield stages[-1]


def settle(host, fields):
    run(host, **fields)
    again = run(host, check_mode=True, **fields)
    assert not again.changed, again.to_dict()["actions"]


def killed_everywhere(tmp_path, stages, then, *, used=True):
    """Kill at every command of the life; ``then`` is what happens before the same is run again, and the life comes to its end."""
    whole = FakeDm(tmp_path / "whole")
    for fields in live(whole, stages, used):
        run(whole, **fields)
    assert len(whole.changes) > 4
    for number, command in enumerate(whole.changes, start=1):
        # Only what makes something can stop half way and leave something.
        for moment in MOMENTS if command.startswith(("dmsetup create", "mdadm --create")) else ("before", "after"):
            host = FakeDm(tmp_path / f"{moment}{number}")
            host.kill = (number, moment)
            killed = False
            for place, fields in enumerate(live(host, stages, used)):
                if killed and place < len(stages) - 1:
                    continue
                try:
                    run(host, **fields)
                except Killed:
                    killed, host.kill = True, None
                    then(host)
                    settle(host, fields)
                for _turn in range(8):
                    host.work()
            assert killed, command
            host.check_origin()
            assert host.mapped == {}, (moment, number)
            assert {head(host, disk) for disk in ("sdb", "sdc")} == {bytes(4096)}, (moment, number)


@pytest.mark.parametrize("life", LIVES)
def test_rerun_after_kill_at_any_command_converges(tmp_path, life):
    killed_everywhere(tmp_path, LIVES[life], lambda host: None)


@pytest.mark.parametrize("life", LIVES)
def test_rerun_after_power_cut_at_any_command_converges(tmp_path, life):
    def power_cut(host):
        host.cut_power()
        host.boot()
        for name in host.mounted:
            host.check(name)
        host.work()

    killed_everywhere(tmp_path, LIVES[life], power_cut)


@pytest.mark.parametrize("life", LIVES)
def test_full_or_read_only_file_system_at_any_change_loses_nothing(tmp_path, life):
    numbers = itertools.count()
    for place, requested in enumerate(LIVES[life]):

        def fresh(place=place):
            host = FakeDm(tmp_path / str(next(numbers)))
            for fields in itertools.islice(live(host, LIVES[life]), place):
                run(host, **fields)
            return host

        def check(host):
            for _turn in range(8):
                host.work()
            if not host.mounted:
                host.check_origin()

        strike_everywhere(fresh, lambda host, requested=requested: run(host, **requested), check, at_least=1)


@pytest.mark.parametrize("life", ["write-through", "mirrored"])
def test_rerun_after_kill_while_unused_converges(tmp_path, life):
    killed_everywhere(tmp_path, LIVES[life], lambda host: None, used=False)
