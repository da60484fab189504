# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import errno
import os
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import host as flashcache_host
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import remains as flashcache_remains
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.operations import ClearDevice, FlushCache, RemoveCache, WriteUnit
from ansible_collections.cachefleet.storage.plugins.module_utils._core import journal
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    BadInput,
    CommandFailed,
    DeviceMissing,
    NotEffective,
    Refused,
    TimedOut,
    ToolMissing,
)
from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators import flashcache, flashcache_kernel, simulator
from ansible_collections.cachefleet.storage.tests.simulators.in_process.flashcache import (
    BACK,
    DISK,
    ITEM,
    MIB,
    SSD,
    SSD2,
    FlashcacheHost,
    Killed,
    ProcessRunner,
    changes,
)
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import in_etc
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere

UNIT = "cachefleet-flashcache-fc0.service"


@pytest.fixture
def host(tmp_path):
    return FlashcacheHost(tmp_path)


# -- the whole life


def test_cache_is_created_without_change_on_second_run(host):
    outcome = host.run_layer()
    assert host.changes == [
        f"systemctl enable {UNIT}",
        f"flashcache_create -p thru -b 8 -a 512 fc0 {SSD} {DISK}",
        f"systemctl start {UNIT}",
    ]
    assert outcome.to_dict()["diff"]["after"]["fc0"]["cache"] == {"mode": "writethrough", "cache_device": SSD}
    assert not host.run_layer().changed


def test_writeback_with_all_options(host):
    fields = {**BACK, "write_only": True, "chunk_size": "8k", "metadata_block_size": "8k", "associativity": 1024, "disk_associativity": "128k", "size": "50%"}
    host.run_layer(**fields, settings={"dirty_thresh_pct": 60, "reclaim_policy": True, "fallow_delay": "default"})
    assert f"flashcache_create -p back -w -b 16 -m 16 -s 131072 -a 1024 -d 256 fc0 {SSD} {DISK}" in host.changes
    assert (host.sysctl("dirty_thresh_pct"), host.sysctl("reclaim_policy"), host.sysctl("fallow_delay")) == (60, 1, 0)
    assert f"/sbin/flashcache_load {SSD} fc0" in host.unit
    assert "write 60 /proc/sys/dev/flashcache/ata-SSD_S1+ata-HDD_H1/dirty_thresh_pct" in host.unit
    assert not host.run_layer(**fields, settings={"dirty_thresh_pct": 60, "reclaim_policy": 1, "fallow_delay": 0}).changed


def test_check_mode_predicts_run(host):
    host.run_layer()
    host.calls.clear()
    predicted = host.run_layer(check_mode=True, **BACK, settings={"dirty_thresh_pct": 30}).to_dict()
    assert host.changes == []
    assert host.run_layer(**BACK, settings={"dirty_thresh_pct": 30}).to_dict() == predicted


def test_sysctls_change_while_in_use_and_persist_across_reboot(host):
    host.run_layer(**BACK)
    host.mount()
    host.run_layer(**BACK, settings={"dirty_thresh_pct": 30, "skip_seq_thresh_kb": 64})
    assert host.sysctl("dirty_thresh_pct") == 30
    host.crash()
    assert host.start(UNIT).rc == 0
    assert (host.sysctl("dirty_thresh_pct"), host.sysctl("skip_seq_thresh_kb")) == (30, 64)
    host.calls.clear()
    assert not host.run_layer(**BACK, settings={"dirty_thresh_pct": 30, "skip_seq_thresh_kb": 64}).changed
    host.run_layer(**BACK, settings={"dirty_thresh_pct": "default"})
    assert host.sysctl("dirty_thresh_pct") == 20
    assert "dirty_thresh_pct" not in host.unit


@pytest.mark.parametrize("mode", ["writethrough", "writearound"])
def test_non_persistent_cache_is_recreated_by_its_unit(host, mode):
    host.run_layer(mode=mode, size="64M", settings={"reclaim_policy": 1})
    host.crash()
    assert host.start(UNIT).rc == 0
    assert host.sysctl("reclaim_policy") == 1
    assert not host.run_layer(mode=mode, size="64M", settings={"reclaim_policy": 1}).changed


def test_unloaded_writeback_cache_is_loaded(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 700)
    host.crash()
    host.calls.clear()
    host.run_layer(**BACK)
    assert f"flashcache_load {SSD} fc0" in host.changes
    assert host.cache["dirty"] == 700


def test_flush_while_in_use_leaves_no_dirty_blocks(host):
    host.run_layer(**BACK)
    host.mount()
    host.kernel.write("fc0", 5000)
    host.cache["busy"] = 9
    outcome = host.run_layer(state="flushed")
    assert [step.attribute for step in outcome.steps] == ["dirty_blocks"]
    assert (host.cache["dirty"], host.sysctl("cache_all"), host.sysctl("do_sync")) == (0, 0, 0)
    host.kernel.write("fc0", 50)
    assert host.cache["dirty"] == 0
    assert not host.run_layer(state="flushed").changed
    host.run_layer(**BACK)
    assert host.sysctl("cache_all") == 1


def test_flushed_does_not_survive_reboot(host):
    host.run_layer(**BACK)
    host.run_layer(state="flushed")
    host.crash()
    assert host.start(UNIT).rc == 0
    assert host.sysctl("cache_all") == 1
    assert host.run_layer(state="flushed").changed
    assert host.sysctl("cache_all") == 0


def test_non_writeback_cache_is_always_flushed(host):
    host.run_layer()
    host.kernel.write("fc0", 50)
    assert not host.run_layer(state="flushed").changed
    with pytest.raises(Refused, match="belongs to the flashcache fc0"):
        host.run_layer(name="other", origin=DISK, state="flushed")


def test_removal_is_verified_and_leaves_ssd_empty(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 5000)
    host.calls.clear()
    host.run_layer(state="absent")
    assert host.changes == [
        "dmsetup remove --retry fc0",
        f"flashcache_destroy {SSD}",
        f"wipefs --all {SSD}",
        f"systemctl disable {UNIT}",
    ]
    assert host.machine["lost"] == 0
    assert host.machine["caches"] == {}
    assert host.unit == ""
    assert not host.run_layer(state="absent").changed
    host.run_layer(mode="writearound")


def test_no_files_remain_in_etc_after_removal(host):
    before = in_etc(host.root)
    host.run_layer(**BACK)
    assert len(in_etc(host.root)) > len(before)
    host.run_layer(**BACK, state="flushed")
    host.run_layer(state="absent")
    assert in_etc(host.root) == before


def test_removal_works_without_cache_devices(host):
    host.run_layer(**BACK)
    host.run_layer(state="absent", cache_devices=[])
    assert host.kernel.superblock(SSD) is None


def test_copy_of_first_disk_block_is_wiped_from_ssd(host):
    host.state["faults"]["first_block"] = "XFSB"
    host.run_layer()
    host.run_layer(state="absent")
    assert not host.kernel.head(SSD).startswith(b"XFSB")


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ({}, BACK, "mode"),
        (BACK, {}, "mode"),
        (BACK, {**BACK, "write_only": True}, "write_only"),
        (BACK, {**BACK, "chunk_size": "8k"}, "chunk_size"),
        (BACK, {**BACK, "metadata_block_size": "8k"}, "metadata_block_size"),
        ({}, {"associativity": 1024}, "associativity"),
        ({}, {"disk_associativity": "128k"}, "disk_associativity"),
        ({}, {"size": "64M"}, "size"),
        ({}, {"cache_devices": [SSD2]}, "cache device"),
        (BACK, {**BACK, "cache_devices": [SSD2]}, "cache device"),
    ],
)
def test_immutable_fields_recreate_cache_unless_in_use(host, first, then, message):
    host.run_layer(**first)
    host.kernel.write("fc0", 3000)
    host.mount()
    before = dict(host.machine["caches"])
    with pytest.raises(Refused, match=f"must be stopped to recreate it with another {message}, and /dev/mapper/fc0 is mounted on /srv: unmount it first"):
        host.run_layer(**then)
    assert host.machine["caches"] == before
    host.unmount()
    host.run_layer(**then)
    assert host.machine["lost"] == 0
    assert not host.run_layer(**then).changed
    if "cache_devices" in then:
        assert host.kernel.superblock(SSD) is None
        assert host.cache["ssd"] == SSD2


def test_open_device_is_not_stopped(host):
    host.run_layer()
    host.cache["opened"] = 2
    with pytest.raises(Refused, match=r"/dev/mapper/fc0 is open \(2 times\)"):
        host.run_layer(state="absent")


# -- traps


def test_page_cache_has_no_superblock_of_running_cache(host):
    flashcache.FlashcacheCreate(host.state).answer(["-p", "back", "fc0", SSD, DISK], "")
    stale = flashcache.FlashcacheDestroy(host.state).answer([SSD], "")
    assert (stale.rc, stale.stderr) == (1, f"flashcache_destroy: No valid Flashcache found on {SSD}\n")
    host.run_layer(state="absent")
    assert host.kernel.superblock(SSD) is None


def test_running_clean_cache_is_not_destroyed(host):
    host.run_layer(**BACK)
    layer = host.layer([{**ITEM, "state": "absent"}])
    clear = next(step for step in layer.plan(layer.read()) if isinstance(step.operation, ClearDevice))
    with pytest.raises(Refused, match=r"still runs"):
        layer.apply(clear)
    assert host.kernel.superblock(SSD) is not None


def test_do_sync_is_repeated_until_busy_blocks_are_clean(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 1500)
    host.cache["busy"] = 40
    flashcache_host.write_sysctl(host.root, "ata-SSD_S1+ata-HDD_H1", "do_sync", 1)
    for _look in range(5):
        host.kernel.tick()
    assert (host.cache["dirty"], host.sysctl("do_sync")) == (40, 1)
    host.run_layer(state="flushed")
    assert (host.cache["dirty"], host.sysctl("do_sync")) == (0, 0)


def test_foreign_fast_remove_setting_is_reset_before_removal(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 100)
    flashcache_host.write_sysctl(host.root, "ata-SSD_S1+ata-HDD_H1", "fast_remove", 1)
    at_removal = []
    host.before = lambda words: at_removal.append(host.sysctl("fast_remove")) if words[:2] == ("dmsetup", "remove") else None
    host.run_layer(state="absent")
    assert at_removal == [0]
    assert host.machine["lost"] == 0


def test_unwritten_metadata_is_not_accepted_as_clean(host):
    host.run_layer(**BACK)
    host.state["faults"]["metadata_fails"] = True
    with pytest.raises(NotEffective, match=r"its superblock on /dev/disk/by-id/ata-SSD_S1 reports 'unstable'") as caught:
        host.run_layer(state="absent")
    assert caught.value.to_dict()["broke_off"] == f"Verify that nothing is dirty on {SSD} and wipe it"
    assert host.kernel.superblock(SSD) is not None
    for state in ({"state": "absent"}, BACK):
        with pytest.raises(Refused, match=r"cannot be loaded from .*: its metadata could not be written when it was shut down"):
            host.run_layer(**state)


def test_removal_continuing_after_kill_is_awaited(host):
    host.run_layer(**BACK)
    host.run_layer(state="flushed")
    host.kernel.begin_removal("fc0", ticks=30)
    assert host.run_layer(state="absent").changed
    assert host.kernel.superblock(SSD) is None
    assert host.machine["lost"] == 0


def test_unfinished_removal_is_not_interrupted(host):
    host.run_layer(**BACK)
    host.kernel.begin_removal("fc0", ticks=10**6)
    for state in ({"state": "absent"}, BACK):
        with pytest.raises(Refused, match="is still being removed by another process"):
            host.run_layer(**state)


def test_tool_success_without_effect_is_a_failure(host):
    host.state["faults"]["deaf"] = "flashcache_create"
    with pytest.raises(CommandFailed, match="ended with exit status 0 and without an effect"):
        host.run_layer()


def test_tool_failure_with_effect_is_a_success(host):
    host.state["faults"]["silent"] = "flashcache_create"
    assert host.run_layer().changed


def test_sysctl_clamped_by_kernel_is_a_failure(host, monkeypatch):
    host.run_layer(**BACK)
    folder = "ata-SSD_S1+ata-HDD_H1"
    flashcache_host.write_sysctl(host.root, folder, "dirty_thresh_pct", 99)
    assert host.sysctl("dirty_thresh_pct") == 95
    write = flashcache_host.write_sysctl
    monkeypatch.setattr(flashcache_host, "write_sysctl", lambda root, folder, key, value: write(root, folder, key, 99))
    with pytest.raises(NotEffective, match=r"settings.dirty_thresh_pct should be 60 and is 95"):
        host.run_layer(**BACK, settings={"dirty_thresh_pct": 60})


def test_flush_under_writes_ends_because_caching_is_disabled(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 3000)
    host.state["faults"]["writers"] = {"fc0": 500}
    host.run_layer(state="flushed")
    assert host.cache["dirty"] == 0


def test_whitelisted_process_is_removed_before_flush_is_accepted(host):
    host.run_layer(**BACK)
    host.cache["whitelist"] = [4711]
    host.kernel.write("fc0", 10)
    host.run_layer(state="flushed")
    assert "flashcache_setioctl -c -w 0 /dev/mapper/fc0" in host.changes
    host.missing.add("flashcache_setioctl")
    host.cache["whitelist"] = [4711]
    with pytest.raises(ToolMissing, match="the command flashcache_setioctl is missing on this host: install the tools of flashcache"):
        host.run_layer(state="absent")
    assert "fc0" in host.machine["caches"]


def test_missing_per_cache_sysctls_are_distinguished_from_missing_setting(host):
    host.run_layer(**BACK)
    folder = host.root / "proc/sys/dev/flashcache/ata-SSD_S1+ata-HDD_H1"
    (folder / "new_style_write_merge").unlink()
    with pytest.raises(BadInput, match="the flashcache of this host has no setting new_style_write_merge: leave it out"):
        host.run_layer(**BACK, settings={"new_style_write_merge": 1})
    layer = host.layer([{**ITEM, **BACK}])
    present = layer.read()
    old = dataclasses.replace(present.running["fc0"], sysctls={})
    with pytest.raises(Refused, match="releases without sysctls for each cache are not managed"):
        layer.plan(dataclasses.replace(present, running={"fc0": old}))


def test_failing_disk_ends_flush_and_cache_stays(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 3000)
    host.state["faults"]["disk_fails"] = True
    with pytest.raises(NotEffective, match=r"has not come below 3000 dirty blocks for 10 minutes; the cache stays attached"):
        host.run_layer(state="absent")
    with pytest.raises(TimedOut, match=r"within flush_timeout \(30 seconds\)"):
        host.run_layer(state="absent", flush_timeout=30)
    assert host.cache["dirty"] == 3000


def test_counted_cache_errors_are_reported(host):
    host.run_layer(**BACK)
    host.cache["errors"] = {"ssd_read_errors": 3}
    layer = host.layer([{**ITEM, **BACK}])
    assert any("3 read errors of the SSD" in sentence for sentence in layer.facts(layer.read())["problems"])
    layer = host.layer([{**ITEM, "state": "absent"}])
    outcome = converge(layer, check_mode=False)
    assert any("ssd_read_errors 3" in sentence for sentence in layer.facts(outcome.state)["problems"])


# -- refusals


def test_volatile_drive_caches_are_refused_in_every_mode_unless_allowed(host):
    host.volatile = {DISK: ["/dev/sda has its volatile write cache on"]}
    for fields in ({}, BACK, {"mode": "writearound"}):
        with pytest.raises(
            Refused, match=r"passes no flush down and /dev/sda has its volatile write cache on: turn that cache off .*allow_ignored_flushes: true"
        ):
            host.run_layer(**fields)
    host.run_layer(allow_ignored_flushes=True)


def test_drive_turned_volatile_is_reported_and_flush_still_works(host):
    host.run_layer(**BACK)
    host.volatile = {SSD: ["/dev/sdb has its volatile write cache on"]}
    outcome = host.run_layer(**BACK)
    assert not outcome.changed
    assert "a power failure would lose acknowledged writes" in outcome.warnings[0]
    host.run_layer(state="absent")


def test_writeback_on_single_ssd_requires_permission(host):
    with pytest.raises(Refused, match="allow_unmirrored_writeback: true"):
        host.run_layer(mode="writeback")


def test_missing_kernel_module_is_reported_in_one_sentence(tmp_path):
    host = FlashcacheHost(tmp_path, module="missing")
    host.volatile = {DISK: ["is not what has to be said first"]}
    with pytest.raises(Refused) as caught:
        host.run_layer()
    assert str(caught.value) == (
        "fc0: the kernel module flashcache is not available on kernel 3.16.0-sim: flashcache exists for kernels up to 4.4, and as a port of its users for 4.18"
        " of Enterprise Linux 8; bring it to this host, or use the type lvm_cache, dm_cache or bcache."
    )
    assert not host.run_layer(state="absent").changed
    with pytest.raises(DeviceMissing, match="so that nothing was flushed"):
        host.run_layer(state="flushed")


def test_unloaded_module_is_loaded(tmp_path):
    host = FlashcacheHost(tmp_path, module="installed")
    host.run_layer()
    assert "modprobe flashcache" in host.changes


def test_missing_tools_are_reported_before_any_change(host):
    host.missing.add("flashcache_create")
    with pytest.raises(
        ToolMissing, match="the command flashcache_create is missing on this host: install the tools of flashcache, or name their folder in tool_dirs"
    ):
        host.run_layer()
    assert host.changes == []


def test_cache_larger_than_disk_is_refused(tmp_path):
    host = FlashcacheHost(tmp_path, ssd=1024 * MIB, disk=256 * MIB)
    with pytest.raises(Refused, match=r"would have 1 GiB, more than its origin .* with 256 MiB: use a smaller size"):
        host.run_layer()
    host.run_layer(size="128M")
    # What older releases ask about the size of the SSD has been answered by the size of the cache.
    assert f"flashcache_create -p thru -f -b 8 -s 262144 -a 512 fc0 {SSD} {DISK}" in host.changes


def test_cache_using_a_quarter_of_memory_is_refused(tmp_path):
    host = FlashcacheHost(tmp_path, memory=2 * MIB)
    with pytest.raises(Refused, match=r"would need 704 KiB of the 2 MiB of main memory .*: use a smaller size or a larger chunk_size"):
        host.run_layer()
    host.run_layer(chunk_size="8k")


def test_unexpected_tool_prompt_is_not_answered(host):
    host.machine["memory"] = MIB
    with pytest.raises(CommandFailed, match="Exiting FlashCache creation"):
        host.run_layer()
    assert host.machine["caches"] == {}


def test_device_with_changed_size_makes_cache_unloadable(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 10)
    host.crash()
    place = host.root / "sys/class/block/sda/size"
    place.write_text(f"{int(place.read_text()) * 2}\n")
    for state in (BACK, {"state": "absent"}, {"state": "flushed"}):
        with pytest.raises(Refused, match=f"cannot be loaded: {DISK} had 1073741824 bytes when the cache was made and has 2147483648 now"):
            host.run_layer(**state)


def test_disk_used_without_its_dirty_cache_is_refused(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 10)
    host.crash()
    host.fake.mount("sda", "/srv")
    with pytest.raises(Refused, match=r"is mounted on /srv, without the blocks that are only on .*: stop that before more is lost"):
        host.run_layer(**BACK)


def test_foreign_cache_on_ssd_is_not_touched(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 10)
    host.crash()
    items = [{**ITEM, "name": "other"}]
    with pytest.raises(Refused, match="carries flashcache metadata, and may hold blocks that its origin does not have"):
        converge(host.layer(items), check_mode=False)
    with pytest.raises(Refused, match="belongs to the flashcache fc0, which does not run"):
        converge(host.layer([{**items[0], "state": "absent"}]), check_mode=False)
    assert host.machine["lost"] == 0


def test_ssd_with_file_system_is_refused(host):
    host.signatures["sdb"] = [{"type": "ext4", "uuid": "u"}]
    with pytest.raises(Refused, match=r"carries a signature \(ext4"):
        host.run_layer()


def test_ssd_used_since_examination_is_refused(host):
    def take(words):
        if words[:2] == ("systemctl", "enable"):
            host.signatures["sdb"] = [{"type": "ext4", "uuid": "u"}]

    host.after = take
    with pytest.raises(Refused, match=r"was empty when it was examined and now carries a signature \(ext4"):
        host.run_layer()


def test_origin_in_use_is_refused(host):
    host.fake.mount("sda", "/srv")
    with pytest.raises(Refused, match=f"cannot cache {DISK}, which is mounted on /srv: unmount or deactivate it first, and use /dev/mapper/fc0 instead"):
        host.run_layer()


def test_origin_has_one_cache_and_cache_keeps_its_origin(host):
    host.run_layer()
    items = [{**ITEM, "name": "other", "cache_devices": [SSD2]}]
    with pytest.raises(Refused, match=r"would be a second cache of .*, which the flashcache device fc0 caches"):
        converge(host.layer(items), check_mode=False)
    with pytest.raises(Refused, match=f"caches {DISK}, and origin is {SSD2}"):
        host.run_layer(origin=SSD2)


def test_cache_device_too_small_for_one_set_is_rejected(host):
    with pytest.raises(BadInput, match="is not enough for one set of 512 blocks"):
        host.run_layer(size="1M")
    with pytest.raises(BadInput, match=r"size is 1 GiB, and .* has 128 MiB"):
        host.run_layer(size="1G")


def test_manual_cache_with_unstable_path_is_reported(host):
    flashcache.FlashcacheCreate(host.state).answer(["-p", "thru", "fc0", "/dev/sdb", "/dev/sda"], "")
    host.run_layer()
    layer = host.layer([ITEM])
    assert any("was made with the path /dev/sdb, which may be another device after the next reboot" in text for text in layer.facts(layer.read())["problems"])


def test_command_count_is_independent_of_number_of_caches(host):
    items = []
    for number in range(24):
        ssd, disk = f"/dev/disk/by-id/ata-SSD_X{number}", f"/dev/disk/by-id/ata-HDD_X{number}"
        for name, link, size in ((f"sd{chr(97 + number)}x", ssd, 64), (f"sd{chr(97 + number)}y", disk, 512)):
            host.fake.disk(name, size=size * MIB, serial=link[-6:], write_cache="write through", DEVLINKS=link)
            (host.root / "dev" / name).write_bytes(bytes(8192))
        items.append({"name": f"c{number}", "origin": disk, "cache_devices": [ssd], **BACK})
    converge(host.layer(items), check_mode=False)
    host.calls.clear()
    assert not converge(host.layer(items), check_mode=False).changed
    assert [words[:2] for words in host.calls] == [("udevadm", "info"), ("dmsetup", "table"), ("dmsetup", "table"), ("dmsetup", "info"), ("systemctl", "show")]


def test_fstab_line_by_a_uuid_that_udev_does_not_know_is_a_warning(host):
    """mkfs on the cached device: udev has no entry of the origin before it is probed again."""
    host.run_layer()
    host.signatures[f"dm-{host.cache['minor']}"] = [{"type": "ext4", "uuid": "7d6f-11"}]
    host.fake.write("etc/fstab", "UUID=7d6f-11 /srv ext4 nofail 0 2\n")
    (warning,) = host.layer([ITEM]).facts(host.layer([ITEM]).read())["problems"]
    assert "Line 1 of /etc/fstab (UUID=7d6f-11 on /srv) means" in warning
    assert "write /dev/mapper/fc0 instead" in warning


def test_fstab_line_mounting_disk_without_cache_is_a_warning(host):
    host.fake.write("etc/fstab", f"{DISK} /srv xfs nofail 0 2\n")
    warnings = [host.run_layer(check_mode=True).warnings, host.run_layer().warnings, host.run_layer().warnings]
    assert [len(message) for message in warnings] == [1, 1, 1]
    assert "write /dev/mapper/fc0 instead" in warnings[0][0]
    layer = host.layer([ITEM])
    assert list(warnings[2]) == layer.facts(layer.read())["problems"]
    host.fake.write("etc/fstab", "/dev/mapper/fc0 /srv xfs\n")
    assert host.run_layer().warnings == ()


def test_mirror_is_created_for_writeback_and_released(host):
    fields = {"mode": "writeback", "cache_devices": [SSD, SSD2], "mirror": True}
    host.run_layer(**fields)
    assert host.changes[0].startswith("mdadm --create /dev/md/cachefleet-")
    assert " --level=1 --raid-devices=2 " in host.changes[0]
    assert host.cache["ssd"].startswith("/dev/disk/by-id/md-uuid-")
    assert not host.run_layer(**fields).changed
    (host.root / "sys/class/block/md127/md/degraded").write_text("1\n")
    layer = host.layer([{**ITEM, **fields}])
    outcome = converge(layer, check_mode=False)
    assert not outcome.changed
    (problem,) = [text for text in layer.facts(outcome.state)["problems"] if "the mirror under the write-back cache" in text]
    assert "is degraded" in problem
    assert "Take the failed member out of the machine before the next boot" in problem
    assert layer.facts(outcome.state)["caches"][0]["redundancy"] == "degraded"
    host.kernel.write("fc0", 50)
    host.calls.clear()
    host.run_layer(**fields, state="absent", release_devices=True)
    assert [line.split(" /dev")[0] for line in host.changes][-2:] == ["mdadm --zero-superblock", "mdadm --zero-superblock"]
    assert host.machine["lost"] == 0
    assert not (host.root / "dev/md127").exists()


def test_second_ssd_creates_mirror_with_the_first(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 50)
    fields = {"mode": "writeback", "cache_devices": [SSD, SSD2], "mirror": True}
    host.run_layer(**fields)
    assert host.cache["ssd"].startswith("/dev/disk/by-id/md-uuid-")
    assert host.machine["lost"] == 0
    assert not host.run_layer(**fields).changed


def test_missing_dirty_ssd_is_refused_and_missing_clean_ssd_is_not(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 7)
    (host.root / SSD.lstrip("/")).unlink()
    with pytest.raises(Refused, match=f"has 7 dirty blocks on {SSD}, which is missing: reconnect that SSD"):
        host.run_layer(state="absent")
    host.cache["dirty"] = 0
    steps = host.layer([{**ITEM, "state": "absent"}])
    assert [type(step.operation) for step in steps.plan(steps.read())] == [FlushCache, RemoveCache, WriteUnit]


@pytest.mark.parametrize(
    "requested",
    [
        {"state": "flushed"},
        {"state": "absent", "release_devices": True},
        {"cache_devices": [SSD2]},
        {"cache_devices": [SSD2], "mode": "writethrough"},
    ],
)
def test_ssd_missing_after_reboot_is_not_treated_as_clean(host, requested):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 700)
    host.crash()
    host.pull("sdb")
    host.calls.clear()
    with pytest.raises(Refused, match=f"its device {SSD} cannot be found, which may hold newer blocks .* reconnect the device and run again"):
        host.run_layer(**{**BACK, **requested})
    assert host.changes == []
    assert "flashcache_load" in host.unit


@pytest.mark.parametrize("requested", [{"state": "flushed"}, {"state": "absent"}])
def test_missing_writethrough_ssd_is_not_required(host, requested):
    host.run_layer()
    host.crash()
    host.pull("sdb")
    host.run_layer(**requested)
    assert bool(host.unit) == (requested["state"] == "flushed")


@pytest.mark.parametrize("mirror", [False, True])
def test_disk_is_cached_once_under_any_path(host, mirror):
    host.fake.link("/dev/disk/by-id/wwn-0x52", "sda")
    first = {**ITEM, "mirror": True, "cache_devices": [SSD, SSD2]} if mirror else ITEM
    layer = host.layer([first, {**ITEM, "name": "fc1", "origin": "/dev/disk/by-id/wwn-0x52", "cache_devices": [SSD2]}])
    with pytest.raises(BadInput, match="fc1: /dev/disk/by-id/wwn-0x52 is used by a cache before it in the list"):
        converge(layer, check_mode=False)
    assert host.changes == []


def test_unassembled_mirror_after_reboot_is_not_wiped(host):
    fields = {"mode": "writeback", "cache_devices": [SSD, SSD2], "mirror": True}
    host.run_layer(**fields)
    host.kernel.write("fc0", 700)
    host.crash()
    host.run(["mdadm", "--stop", "/dev/md127"])
    host.calls.clear()
    with pytest.raises(Refused, match="has a write-back cache that does not run"):
        host.run_layer(**{**fields, "state": "absent", "release_devices": True})
    assert host.changes == []


def test_manual_cache_keeps_its_device_links_in_unit(host):
    for link, name in (("/dev/disk/by-id/wwn-0x51", "sdb"), ("/dev/disk/by-id/wwn-0x52", "sda")):
        host.fake.link(link, name)
    flashcache.FlashcacheCreate(host.state).answer(["-p", "thru", "fc0", "/dev/disk/by-id/wwn-0x51", "/dev/disk/by-id/wwn-0x52"], "")
    host.run_layer(settings={"reclaim_policy": 1})
    assert "flashcache_create -p thru -b 8 -a 512 fc0 /dev/disk/by-id/wwn-0x51 /dev/disk/by-id/wwn-0x52" in host.unit
    host.crash()
    assert host.start(UNIT).rc == 0
    assert host.sysctl("reclaim_policy") == 1
    assert not host.run_layer(settings={"reclaim_policy": 1}).changed


# -- interruptions

LIVES = {
    "made": ([], {}),
    "made in write-back": ([], {**BACK, "settings": {"dirty_thresh_pct": 40}}),
    "flushed": ([BACK], {"state": "flushed"}),
    "removed": ([{}], {"state": "absent"}),
    "removed from write-back": ([BACK], {"state": "absent"}),
    "from write-through to write-back": ([{}], BACK),
    "from write-back to write-around": ([BACK], {"mode": "writearound"}),
    "onto another SSD": ([BACK], {**BACK, "cache_devices": [SSD2]}),
    "onto a mirror of its SSD and another": ([BACK], {"mode": "writeback", "cache_devices": [SSD, SSD2], "mirror": True}),
    "onto another SSD in write-through": ([{}], {"cache_devices": [SSD2]}),
    "another block size": ([BACK], {**BACK, "chunk_size": "8k"}),
    "loaded after a crash": ([BACK, "crash"], BACK),
    "removed after a crash": ([BACK, "crash"], {"state": "absent"}),
    "taken back from flushed": ([BACK, {"state": "flushed"}], BACK),
}


def prepared(tmp_path, life, size=8192):
    host = FlashcacheHost(tmp_path)
    for name in ("sdb", "sdc"):
        os.truncate(host.root / "dev" / name, size)
    host.state["faults"]["first_block"] = "XFSB"
    for step in life:
        if step == "crash":
            host.crash()
            continue
        host.run_layer(**step)
        if "state" not in step:
            host.kernel.write("fc0", 2500)
    host.calls.clear()
    return host


class Interruptions:
    """The points at which a run can be killed, and what kills it at one of them.

    After every change, which is before the next one; and in the middle of a removal, which the kernel then carries on.
    """

    def __init__(self, host, monkeypatch, at):
        self.count, self.at, self.host = 0, at, host
        host.before, host.after = self.before, self.after
        for module, name in ((flashcache_host, "write_sysctl"), (journal, "replace_file"), (boot_unit, "replace_file")):
            monkeypatch.setattr(module, name, self.around(getattr(module, name)))

    def around(self, function):
        def killable(*args, **kwargs):
            result = function(*args, **kwargs)
            self.point()
            return result

        return killable

    def before(self, words):
        if words[:2] == ("dmsetup", "remove"):
            self.point(words[-1])

    def after(self, words):
        if changes(words):
            self.point()

    def point(self, removed=None):
        self.count += 1
        if self.count == self.at:
            if removed:
                self.host.kernel.begin_removal(removed, ticks=3)
            raise Killed


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("reboot", [False, True], ids=["killed", "killed and rebooted"])
def test_killed_run_converges_in_the_next_run(tmp_path_factory, life, reboot):
    before, fields = LIVES[life]
    at, total = 0, 1
    while at <= total:
        with pytest.MonkeyPatch.context() as monkeypatch:
            host = prepared(tmp_path_factory.mktemp("host"), before)
            points = Interruptions(host, monkeypatch, at)
            if at == 0:
                host.run_layer(**fields)
                total = points.count
            else:
                with pytest.raises(Killed):
                    host.run_layer(**fields)
        host.before = host.after = lambda words: None
        if reboot and at:
            host.crash()
            if host.unit and (host.root / "etc/systemd/system/sysinit.target.wants" / UNIT).is_symlink():
                host.start(UNIT)
        host.run_layer(**fields)
        assert not host.run_layer(**fields).changed, at
        assert host.machine["lost"] == 0, at
        if fields.get("state") == "absent":
            assert host.kernel.superblock(SSD) is None
            assert not host.kernel.head(SSD).startswith(b"XFSB"), at
            assert host.unit == ""
        at += 1
    assert at > 1


@pytest.mark.parametrize("life", LIVES)
def test_full_or_read_only_file_system_at_any_change_loses_nothing(tmp_path_factory, life):
    before, fields = LIVES[life]

    def fresh():
        return prepared(tmp_path_factory.mktemp("host"), before, size=4 * MIB)

    def check(host):
        assert host.machine["lost"] == 0

    strike_everywhere(fresh, lambda host: host.run_layer(**fields), check)


def killed(host, point, **fields):
    """A run that is killed after a command that begins so."""

    def kill(words):
        if " ".join(words).startswith(point):
            raise Killed

    host.after = kill
    with pytest.raises(Killed):
        host.run_layer(**fields)
    host.after = lambda words: None


def taken_by_a_person(host):
    """mkfs on the SSD, past everything that looks for caches."""
    host.kernel.write_head(SSD, b"\0" * 512)
    with (host.root / "dev/sdb").open("r+b") as device:
        device.seek(1080)
        device.write(b"\x53\xef")
    host.signatures["sdb"] = [{"type": "ext4", "uuid": "person"}]


@pytest.mark.parametrize("reboot", [False, True])
@pytest.mark.parametrize(
    ("before", "point"),
    [({}, "dmsetup remove"), ({}, "systemctl disable"), (BACK, "dmsetup remove"), (BACK, "flashcache_destroy")],
    ids=["thru removed", "thru without its unit", "back removed", "back destroyed"],
)
def test_ssd_that_was_reused_after_a_kill_is_not_touched(host, before, point, reboot):
    host.run_layer(**before)
    killed(host, point, state="absent")
    taken_by_a_person(host)
    if reboot:
        host.crash()
    host.calls.clear()
    taken = (host.root / "dev/sdb").read_bytes()
    for check_mode in (True, False):
        for fields in ({"state": "absent"}, before):
            with pytest.raises(Refused, match=r"carries a signature \(ext4.*and is not as the cache left it.*if it is in use now, delete .*fc0.emptying"):
                host.run_layer(check_mode=check_mode, **fields)
    assert (host.root / "dev/sdb").read_bytes() == taken
    assert host.signatures["sdb"]
    assert not any("wipefs" in line or "flashcache_" in line for line in host.changes)
    (host.root / "var/lib/cachefleet/flashcache-fc0.emptying").unlink()
    host.run_layer(state="absent")
    assert not host.run_layer(state="absent").changed
    assert host.signatures["sdb"]


def test_ssd_with_a_foreign_flashcache_is_not_touched(host):
    host.run_layer()
    killed(host, "systemctl disable", state="absent")
    flashcache.FlashcacheCreate(host.state).answer(["-p", "back", "theirs", SSD, SSD2], "")
    host.kernel.begin_removal("theirs")
    with pytest.raises(Refused, match=r"carries flashcache metadata.*and is not as the cache left it"):
        host.run_layer(state="absent")
    assert host.kernel.superblock(SSD) is not None


def test_file_system_signature_beside_own_superblock_is_not_wiped(host):
    host.run_layer(**BACK)
    host.kernel.begin_removal("fc0")
    host.signatures["sdb"] = [{"type": "ext4", "uuid": "person"}]
    with pytest.raises(Refused, match=r"carries a signature \(ext4.*and is not as the cache left it"):
        host.run_layer(state="absent")
    assert host.kernel.superblock(SSD) is not None
    assert host.signatures["sdb"]


def test_unit_is_disabled_before_ssd_is_released(host):
    host.run_layer()
    host.calls.clear()
    host.run_layer(state="absent")
    assert host.changes == ["dmsetup remove --retry fc0", f"systemctl disable {UNIT}", f"wipefs --all {SSD}"]


def test_unit_of_moving_cache_does_not_use_old_ssd_at_boot(host):
    host.run_layer()
    host.after = lambda words: changes(words) and points.append((" ".join(words[:2]), host.unit))
    points, before = [], host.unit
    diff = host.run_layer(cache_devices=[SSD2]).to_dict()["diff"]
    assert (diff["before"]["fc0"]["unit"], diff["after"]["fc0"]["unit"]) == (before, host.unit)
    freed = next(unit for command, unit in points if command == "wipefs --all")
    assert SSD not in freed
    assert f"{SSD2} {DISK}" in host.unit
    assert not host.run_layer(cache_devices=[SSD2]).changed


def test_manual_cache_is_recorded_by_persistent_path(host):
    flashcache.FlashcacheCreate(host.state).answer(["-p", "thru", "fc0", "/dev/sdb", "/dev/sda"], "")
    killed(host, "dmsetup remove", state="absent")
    assert flashcache_remains.read_remains("fc0", host.root).device == SSD
    host.run_layer(state="absent")
    assert flashcache_remains.read_remains("fc0", host.root) == flashcache_remains.Remains()


def test_interrupted_removal_record_is_dropped_if_cache_is_requested_again(host):
    host.run_layer(**BACK)
    killed(host, "dmsetup remove", state="absent")
    host.run_layer(**BACK)
    assert flashcache_remains.read_remains("fc0", host.root) == flashcache_remains.Remains()
    assert not host.run_layer(**BACK).changed


def test_ssd_missing_before_it_was_wiped_is_not_required(host):
    host.run_layer()
    killed(host, "systemctl disable", state="absent")
    host.pull("sdb")
    host.run_layer(state="absent")
    assert not host.run_layer(state="absent").changed
    host.run_layer(cache_devices=[SSD2])
    assert flashcache_remains.read_remains("fc0", host.root) == flashcache_remains.Remains()


def test_damaged_record_is_ignored(tmp_path):
    place = flashcache_remains.place_of("fc0", tmp_path)
    place.parent.mkdir(parents=True)
    for text in ("{", "[]", ""):
        place.write_text(text)
        assert flashcache_remains.read_remains("fc0", tmp_path) == flashcache_remains.Remains()


def test_digest_covers_both_device_ends_and_ignores_superblock_state(tmp_path):
    device = tmp_path / "sdx"
    content = bytearray(3 * MIB)
    device.write_bytes(content)
    empty = flashcache_remains.digest_of("sdx", tmp_path)
    for place, differs in ((17, False), (15, True), (20, True), (MIB - 1, True), (3 * MIB - 1, True)):
        changed = bytearray(content)
        changed[place] = 1
        device.write_bytes(changed)
        assert (flashcache_remains.digest_of("sdx", tmp_path) != empty) is differs, place
    assert flashcache_remains.digest_of("missing", tmp_path) == ""


# -- processes


def test_simulators_run_as_processes(tmp_path, monkeypatch):
    monkeypatch.setenv(simulator.FOLDER_VARIABLE, str(tmp_path / "states"))
    simulators.install(tmp_path / "machine")
    simulators.add("flashcache_create", "machine", {"root": str(tmp_path / "root")})
    host = FlashcacheHost(tmp_path / "root")
    runner = ProcessRunner(host, tmp_path / "machine" / flashcache.FOLDER.lstrip("/"))
    for fields in (BACK, {"state": "absent"}):
        layer = host.layer([{**ITEM, **fields}], runner)
        assert converge(layer, check_mode=False).changed
    assert {"flashcache_create", "flashcache_destroy", "dmsetup", "blockdev"} <= set(runner.started)
    with simulator.opened("flashcache") as state:
        assert state["controllers"][0]["lost"] == 0
        assert flashcache_kernel.Kernel(state["controllers"][0], {}).superblock(SSD) is None


def test_unwritable_sysctl_is_reported_in_one_sentence(host, monkeypatch):
    host.run_layer(**BACK)

    def fail(root, folder, key, value):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(flashcache_host, "write_sysctl", fail)
    with pytest.raises(CommandFailed, match=re.escape("dirty_thresh_pct of ata-SSD_S1+ata-HDD_H1 cannot be set to 30: Input/output error")):
        host.run_layer(**BACK, settings={"dirty_thresh_pct": 30})
