# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole lives of EnhanceIO caches on a simulated host, with blocks in them: nothing that was written may be lost."""

from __future__ import annotations

import errno
import itertools
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit, flush
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import facts as enhanceio_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import operations
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.operations import (
    CreateCache,
    DeleteCache,
    EnableCache,
    FlushCache,
    ProveClean,
    ResumeCache,
    SetMode,
    StopCleaning,
    WipeSuperblock,
    WriteBootFiles,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CreateMirror, ReleaseMirror
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
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio_driver import WRITETHROUGH, Driver
from ansible_collections.cachefleet.storage.tests.simulators.in_process.enhanceio import HDD, SSD, SSD2, SSD3, Killed, SimulatedEnhanceIO
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import in_etc
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere

ITEM = {"name": "images", "origin": HDD, "cache_devices": [SSD]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
MIRRORED = {"mode": "writeback", "cache_devices": [SSD2, SSD3], "mirror": True}
GONE = {"state": "absent"}


@pytest.fixture
def eio(tmp_path):
    return SimulatedEnhanceIO(tmp_path)


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def run(eio, *, check_mode=False, volatile=None, **fields):
    requested = read_items([{**ITEM, **fields}])
    ticks = itertools.count(0, 30)
    layer = EnhanceIOLayer(
        eio, requested, volatile_below=lambda path, drives: (volatile or {}).get(path, []), root=eio.root, clock=lambda: next(ticks), sleep=eio.sleep
    )
    return converge(layer, check_mode=check_mode)


def actions(outcome):
    return [type(step.operation) for step in outcome.steps]


def files(eio):
    """What of ours is below /etc."""
    return sorted(
        str(path.relative_to(eio.root)) for path in (eio.root / "etc").rglob("*") if path.is_file() and not path.is_symlink() and path.name != "machine-id"
    )


def fill(eio, count=5, value="v"):
    """Blocks that are written to the origin."""
    for number in range(count):
        eio.driver.write(HDD, number, f"{value}{number}")


def all_there(eio, count=5, value="v"):
    return [eio.driver.read(HDD, number) for number in range(count)] == [f"{value}{number}" for number in range(count)]


def on_disk(eio, count=5, value="v"):
    """Whether the origin itself has them."""
    node = os.path.realpath(eio.root / HDD.lstrip("/"))
    return [eio.driver.state["disks"].get(node, {}).get(str(number)) for number in range(count)] == [f"{value}{number}" for number in range(count)]


def is_empty(eio, path):
    return enhanceio_facts.read_superblock(eio.root / path.lstrip("/")) is None


# -- a life


def test_new_cache_is_writethrough_and_starts_empty_at_boot(eio):
    outcome = run(eio)
    assert actions(outcome) == [CreateCache, WriteBootFiles]
    assert [words for words in eio.calls if words[0] == "eio_cli"] == [
        ("eio_cli", "create", "-d", HDD, "-s", SSD, "-p", "lru", "-m", "wt", "-b", "4096", "-c", "images")
    ]
    assert files(eio) == ["etc/systemd/system/cachefleet-enhanceio-images.service"]
    assert not run(eio).changed
    fill(eio)
    assert on_disk(eio)
    assert eio.boot() == {"cachefleet-enhanceio-images.service": True}
    assert eio.caches["images"]["blocks"] == {}
    assert not eio.caches["images"]["flags"]
    assert not run(eio).changed


def test_blocks_changed_without_cache_are_not_read_from_it(eio):
    run(eio)
    fill(eio)
    eio.driver.shut_down()
    eio.driver.write(HDD, 2, "newer")
    eio.boot()
    assert eio.driver.read(HDD, 2) == "newer"


def test_udev_rule_of_eio_cli_is_removed(eio):
    run(eio)
    rule = eio.root / "etc/udev/rules.d/94-enhanceio-images.rules"
    assert not rule.exists()
    rule.write_text("left behind\n")
    assert actions(run(eio)) == [WriteBootFiles]
    assert not rule.exists()


def test_switch_to_writeback_and_back(eio):
    run(eio)
    outcome = run(eio, **WRITEBACK)
    assert actions(outcome) == [WriteBootFiles, SetMode]
    assert files(eio) == ["etc/systemd/system/cachefleet-enhanceio-images.service", "etc/udev/rules.d/62-cachefleet-enhanceio-images.rules"]
    assert not run(eio, **WRITEBACK).changed
    fill(eio)
    assert not on_disk(eio)
    outcome = run(eio)
    assert actions(outcome) == [FlushCache, SetMode, WriteBootFiles]
    assert outcome.steps[0].action == f"Flush the cache images of {HDD} (20 KiB dirty)"
    assert on_disk(eio)
    assert files(eio) == ["etc/systemd/system/cachefleet-enhanceio-images.service"]
    assert not run(eio).changed


@pytest.mark.parametrize("orderly", [True, False])
def test_writeback_cache_survives_reboot_and_hides_origin_until_running(eio, orderly):
    run(eio, **WRITEBACK)
    fill(eio)
    eio.driver.shut_down() if orderly else eio.driver.power_cut()
    assert eio.hidden("images")
    assert eio.boot(orderly=False) == {"cachefleet-enhanceio-images.service": True}
    assert not eio.hidden("images")
    assert all_there(eio)
    assert not run(eio, **WRITEBACK).changed


def test_origin_stays_hidden_if_writeback_device_is_missing_at_boot(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    eio.driver.shut_down()
    eio.lose(SSD)
    assert eio.boot(orderly=False) == {"cachefleet-enhanceio-images.service": False}
    assert eio.hidden("images")
    for requested in ({}, WRITEBACK, GONE, {"state": "flushed"}, {"cache_devices": [SSD2]}):
        with pytest.raises((Refused, DeviceMissing)):
            run(eio, **requested)
    assert eio.hidden("images")
    with pytest.raises(Refused, match=r"remove /etc/udev/rules\.d/62-cachefleet-enhanceio-images\.rules"):
        run(eio, cache_devices=[SSD2], **GONE)


def test_flushed_and_back_to_present(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    assert actions(run(eio, state="flushed", **WRITEBACK)) == [FlushCache, SetMode, WriteBootFiles]
    assert on_disk(eio)
    fill(eio, value="w")
    assert on_disk(eio, value="w")
    assert not run(eio, state="flushed", **WRITEBACK).changed
    assert not run(eio, state="flushed", cache_devices=[]).changed
    run(eio, **WRITEBACK)
    assert eio.caches["images"]["mode"] == 1


def test_missing_cache_is_absent_and_not_flushed(eio):
    with pytest.raises(DeviceMissing, match="so that nothing was flushed"):
        run(eio, state="flushed")
    assert not run(eio, **GONE).changed
    assert not run(eio, cache_devices=[], **GONE).changed
    assert eio.changes == 0


@pytest.mark.parametrize("before", [{}, {"mode": "writearound"}, WRITEBACK])
def test_absent_flushes_verifies_and_empties_cache_device(eio, before):
    run(eio, **before)
    fill(eio)
    outcome = run(eio, **GONE)
    assert actions(outcome)[-4:] == [ProveClean, WriteBootFiles, DeleteCache, WipeSuperblock]
    assert on_disk(eio)
    assert (eio.caches, files(eio), is_empty(eio, SSD)) == ({}, [], True)
    assert not run(eio, **GONE).changed
    assert actions(run(eio)) == [CreateCache, WriteBootFiles]


def test_dirty_blocks_in_writethrough_are_reported(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    assert not run(eio, **WRITEBACK).warnings
    # As the driver leaves it when its own command ends a mode before everything is clean.
    eio.caches["images"]["mode"] = WRITETHROUGH
    eio.driver.publish()
    (reported,) = run(eio).warnings
    assert reported.startswith("images: mode writethrough and still 20 KiB dirty")


def test_no_files_remain_in_etc_after_removal(eio):
    before = in_etc(eio.root)
    run(eio)
    assert len(in_etc(eio.root)) > len(before)
    run(eio, **WRITEBACK)
    run(eio, **WRITEBACK, state="flushed")
    run(eio, **GONE)
    assert in_etc(eio.root) == before


def test_absent_works_without_cache_devices(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    run(eio, cache_devices=[], **GONE)
    assert on_disk(eio)
    assert is_empty(eio, SSD)


def test_io_continues_while_cache_is_changed(eio):
    run(eio)
    for mode, again in itertools.product(("writeback", "writearound", "writethrough", "writeback", "writethrough"), (1, 2)):
        fill(eio, value=f"{mode}{again}")
        run(eio, mode=mode, allow_unmirrored_writeback=True)
        assert all_there(eio, value=f"{mode}{again}")


@pytest.mark.parametrize(("mode", "word"), [("writearound", 2), ("writethrough", 3)])
def test_writearound_and_readonly_modes(eio, mode, word):
    run(eio, mode=mode)
    assert eio.caches["images"]["mode"] == word
    assert not run(eio, mode=mode).changed


def test_policy_is_changed_by_creating_the_cache_again(eio):
    """The driver does not follow a change while it runs, and prints the word that was requested."""

    def policies():
        return {eio.caches["images"][key] for key in ("policy", "effective_policy")}

    run(eio, policy="fifo")
    assert policies() == {1}
    assert not run(eio).changed
    done = actions(run(eio, policy="rand"))
    assert DeleteCache in done and done.index(DeleteCache) < done.index(CreateCache)
    assert policies() == {3}
    assert not run(eio).changed and not run(eio, policy="rand").changed
    eio.boot()
    assert policies() == {3}


def test_settings_are_applied_in_valid_order_and_at_boot(eio):
    first = {"dirty_low_threshold": 70, "dirty_high_threshold": 80, "mem_limit_pct": 50}
    run(eio, settings=first, **WRITEBACK)
    assert {key: eio.caches["images"]["sysctls"][key] for key in first} == first
    assert not run(eio, settings=first, **WRITEBACK).changed
    second = {"dirty_low_threshold": 5, "dirty_high_threshold": 20}
    run(eio, settings=second, **WRITEBACK)
    assert {key: eio.caches["images"]["sysctls"][key] for key in second} == second
    eio.boot()
    assert eio.caches["images"]["sysctls"]["dirty_high_threshold"] == 20
    assert not run(eio, settings=second, **WRITEBACK).changed
    run(eio, settings=dict.fromkeys((*first, "time_based_clean_interval"), "default"), **WRITEBACK)
    assert {key: eio.caches["images"]["sysctls"][key] for key in first} == {"dirty_low_threshold": 10, "dirty_high_threshold": 30, "mem_limit_pct": 75}


def refuse(monkeypatch, *keys):
    """The kernel refuses these sysctls, of which sysctl of procps 3.3.17 only prints a message."""
    write = Driver.write_sysctl
    monkeypatch.setattr(Driver, "write_sysctl", lambda self, name, key, value: errno.EPERM if key in keys else write(self, name, key, value))


def test_refused_setting_fails_with_the_message_of_the_kernel(eio, monkeypatch):
    run(eio)
    refuse(monkeypatch, "mem_limit_pct")
    with pytest.raises(CommandFailed, match=r"mem_limit_pct cannot be set to 50 .*exit status 0.*Operation not permitted"):
        run(eio, settings={"mem_limit_pct": 50})


def test_refused_setting_fails_the_unit_and_not_the_cache(eio, monkeypatch):
    run(eio, settings={"mem_limit_pct": 50}, **WRITEBACK)
    refuse(monkeypatch, "mem_limit_pct")
    assert list(eio.boot().values()) == [False]
    assert list(eio.caches) == ["images"]
    # Its origin is shown all the same.
    assert ("/sbin/udevadm", "trigger") in [words[:2] for words in eio.calls]


def test_writethrough_cache_that_cannot_start_empty_is_not_started(eio, monkeypatch):
    run(eio)
    refuse(monkeypatch, "control")
    assert list(eio.boot().values()) == [False]
    assert not eio.caches


def test_contradicting_threshold_pair_is_rejected_before_any_change(eio):
    run(eio, **WRITEBACK)
    before = eio.changes
    with pytest.raises(BadInput, match="dirty_low_threshold would be 40 and dirty_high_threshold 30: set both"):
        run(eio, settings={"dirty_low_threshold": 40}, **WRITEBACK)
    assert eio.changes == before


def test_setting_missing_in_driver_is_rejected(eio):
    run(eio, **WRITEBACK)
    del eio.caches["images"]["sysctls"]["cache_wronly"]
    eio.driver.publish()
    with pytest.raises(BadInput, match="has no setting cache_wronly"):
        run(eio, settings={"cache_wronly": 1}, **WRITEBACK)


def test_changed_device_flushes_verifies_and_recreates_cache(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    predicted = run(eio, check_mode=True, **MIRRORED).to_dict()
    outcome = run(eio, **MIRRORED)
    assert outcome.to_dict() == predicted
    assert actions(outcome) == [
        *(FlushCache, SetMode, ProveClean, WriteBootFiles, DeleteCache, WipeSuperblock, CreateMirror, CreateCache, WriteBootFiles, SetMode)
    ]
    assert on_disk(eio)
    assert is_empty(eio, SSD)
    assert eio.caches["images"]["fast"].startswith("/dev/disk/by-id/md-uuid-")
    assert not run(eio, **MIRRORED).changed
    fill(eio, value="w")
    assert actions(run(eio, release_devices=True, **{**MIRRORED, **GONE}))[-1] is ReleaseMirror
    assert on_disk(eio, value="w")
    assert not run(eio, release_devices=True, **{**MIRRORED, **GONE}).changed
    assert actions(run(eio, cache_devices=[SSD2])) == [CreateCache, WriteBootFiles]


@pytest.mark.parametrize("size", [2048, 8192])
def test_block_size_is_followed(eio, size):
    run(eio, chunk_size=str(size))
    assert eio.caches["images"]["block_size"] == size
    assert not run(eio, chunk_size=str(size)).changed
    assert not run(eio).changed
    eio.boot()
    assert eio.caches["images"]["block_size"] == size
    assert DeleteCache in actions(run(eio, chunk_size="4096"))
    assert eio.caches["images"]["block_size"] == 4096


def test_ignored_block_size_is_reported_and_not_retried(eio):
    eio.driver.state["block_size_ignored"] = True
    with pytest.raises(NotEffective, match="made blocks of 4096 bytes where 8192 were requested, because it and eio_cli do not belong together"):
        run(eio, chunk_size="8k")
    before = eio.changes
    with pytest.raises(BadInput, match="do not belong together: blocks are 4096 bytes after 8192 were requested"):
        run(eio, chunk_size="8k")
    assert eio.changes == before
    # A cache of another size of blocks that was made with another tool is made anew.
    eio.caches["images"].update(block_size=2048, set_size=512)
    eio.driver.publish()
    assert DeleteCache in actions(run(eio, chunk_size="4096"))


# -- killed at every step

LIVES = {
    "make": ([], {}, False),
    "make writeback": ([], WRITEBACK, True),
    "make mirrored": ([], MIRRORED, True),
    "enter writeback": ([{}], {"settings": {"dirty_high_threshold": 60, "dirty_low_threshold": 50}, **WRITEBACK}, True),
    "leave writeback": ([WRITEBACK], {}, False),
    "flush": ([WRITEBACK], {"state": "flushed"}, False),
    "absent": ([WRITEBACK], GONE, False),
    "other device": ([WRITEBACK], MIRRORED, True),
    "policy": ([WRITEBACK], {"policy": "fifo", **WRITEBACK}, True),
    "mode and settings": ([{"settings": {"mem_limit_pct": 20}}], {"mode": "writearound", "settings": {"mem_limit_pct": 90}}, False),
    "release": ([MIRRORED], {**MIRRORED, **GONE, "release_devices": True}, False),
}


@pytest.mark.parametrize(("works", "what_then"), [(False, "nothing"), (True, "nothing"), (True, "boot"), (True, "power cut")])
@pytest.mark.parametrize("life", LIVES)
def test_kill_at_every_change_converges_without_data_loss(tmp_path, monkeypatch, life, works, what_then):
    """Around every command that changes something, every file that is written or removed, and the wiping of a superblock."""
    before, requested, may_be_dirty = LIVES[life]
    eio = SimulatedEnhanceIO(tmp_path, drain=2)
    for number in itertools.count():
        eio.reset()
        for fields in before:
            run(eio, **fields)
        fill(eio)
        with monkeypatch.context() as patch:
            for place, name in ((layer_module, "replace_file"), (operations, "replace_file"), (boot_unit, "replace_file"), (layer_module.os, "pwrite")):
                patch.setattr(place, name, eio.strikable(getattr(place, name)))
            eio.strike = (eio.changes + number, works)
            try:
                run(eio, **requested)
            except Killed:
                pass
            else:
                assert number > 3, "there was nothing to strike"
                return
        if what_then != "nothing":
            eio.boot(orderly=what_then == "boot")
            # A host whose file systems may be mounted has everything, also what only a cache had.
            assert eio.hidden("images") or all_there(eio), (number, eio.calls)
        if not eio.hidden("images"):
            fill(eio, value="w")
        value = "v" if eio.hidden("images") else "w"
        run(eio, **requested)
        assert all_there(eio, value=value), (number, eio.calls)
        assert may_be_dirty or on_disk(eio, value=value)
        assert not run(eio, **requested).changed
        eio.boot()
        assert not eio.hidden("images")
        assert all_there(eio, value=value)


@pytest.mark.parametrize("life", LIVES)
def test_full_or_read_only_file_system_at_any_change_loses_nothing(tmp_path, life):
    before, requested, _may_be_dirty = LIVES[life]
    eio = SimulatedEnhanceIO(tmp_path, drain=2)

    def fresh():
        eio.reset()
        for fields in before:
            run(eio, **fields)
        fill(eio)
        return eio

    def check(host):
        assert host.hidden("images") or all_there(host)

    strike_everywhere(fresh, lambda host: run(host, **requested), check)


def test_interrupted_flush_does_not_disable_writeback(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    eio.driver.write_sysctl("images", "do_clean", 3)
    outcome = run(eio, **WRITEBACK)
    assert actions(outcome) == [StopCleaning]
    assert eio.caches["images"]["do_clean"] == 0
    fill(eio, value="w")
    assert not on_disk(eio, value="w")


def test_stopped_writeback_cache_is_started_first(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    eio.driver.shut_down()
    outcome = run(eio, **WRITEBACK)
    assert actions(outcome) == [EnableCache]
    assert all_there(eio)
    eio.driver.power_cut()
    assert actions(run(eio, **GONE)) == [EnableCache, FlushCache, SetMode, ProveClean, WriteBootFiles, DeleteCache, WipeSuperblock]
    assert on_disk(eio)


def test_writeback_cache_is_not_started_while_origin_is_in_use(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    eio.driver.shut_down()
    eio.host.mount("sda", "/srv")
    for requested in (WRITEBACK, GONE, {"state": "flushed"}):
        with pytest.raises(Refused, match="is mounted on /srv without its write-back cache images, which does not run and may hold newer blocks"):
            run(eio, **requested)
    assert not eio.caches


def test_clean_stopped_cache_is_recreated(eio):
    run(eio)
    fill(eio)
    eio.driver.shut_down()
    eio.driver.write(HDD, 1, "newer")
    assert actions(run(eio)) == [WipeSuperblock, CreateCache]
    assert eio.driver.read(HDD, 1) == "newer"
    eio.driver.shut_down()
    assert actions(run(eio, **GONE)) == [WriteBootFiles, WipeSuperblock]
    assert is_empty(eio, SSD)


# -- flushing


def test_flush_timeout_is_applied(tmp_path):
    eio = SimulatedEnhanceIO(tmp_path, drain=1)
    run(eio, **WRITEBACK)
    fill(eio, 20)
    with pytest.raises(TimedOut, match=r"not flushed within flush_timeout \(100 seconds\), \d+ blocks were still dirty; the cache stays attached"):
        run(eio, flush_timeout=100, **GONE)
    assert all_there(eio, 20)
    run(eio, **GONE)
    assert on_disk(eio, 20)


def test_stalled_flush_fails_and_cache_stays(eio):
    run(eio, **WRITEBACK)
    fill(eio)
    eio.state["faults"]["write_errors"] = True
    with pytest.raises(NotEffective, match=r"has not come below 5 dirty blocks for 10 minutes"):
        run(eio, **GONE)
    assert all_there(eio)
    assert not any(words[:2] == ("eio_cli", "delete") for words in eio.calls)
    eio.state["faults"].clear()
    run(eio, **GONE)
    assert on_disk(eio)


def test_cache_failing_during_flush_is_not_touched(tmp_path):
    eio = SimulatedEnhanceIO(tmp_path, drain=1)
    run(eio, **WRITEBACK)
    fill(eio)
    ticks = iter(range(100))

    def sleep(seconds):
        if next(ticks) == 1:
            eio.driver.lose(SSD)
        eio.driver.tick()

    eio.sleep = sleep
    with pytest.raises(NotEffective, match="the cache became failed while it was flushed"):
        run(eio, **GONE)
    with pytest.raises(Refused, match="has a cache that has failed"):
        run(eio, **GONE)
    assert not any(words[:2] == ("eio_cli", "delete") for words in eio.calls)
    assert flush.STANDSTILL == 600


def test_failed_cache_is_complete_again_after_its_device_is_reconnected_and_the_host_restarted(eio):
    """The driver leaves it failed when the device is back."""
    run(eio, **WRITEBACK)
    fill(eio)
    eio.driver.lose(SSD)
    steps = "reconnect it, restart the host with systemctl reboot, and run again; the cache then starts with every block that is dirty now. Do not delete it"
    for _lost, requested in itertools.product((True, False), (WRITEBACK, GONE)):
        with pytest.raises(Refused, match=steps):
            run(eio, **requested)
        eio.driver.state["gone"].clear()
    eio.boot()
    run(eio, **GONE)
    assert on_disk(eio) and not eio.caches


# -- refusals


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"mode": "writeback"}, Refused, "would lose data if .* failed, .* allow_unmirrored_writeback: true"),
        ({"cache_devices": [HDD]}, BadInput, "are one disk, which EnhanceIO refuses"),
        ({"cache_devices": ["/dev/disk/by-id/gone"]}, DeviceMissing, "/dev/disk/by-id/gone does not exist"),
        ({"origin": "/dev/disk/by-id/gone"}, DeviceMissing, "/dev/disk/by-id/gone does not exist"),
    ],
)
def test_invalid_requests_are_refused_before_any_change(eio, fields, kind, message):
    with pytest.raises(kind, match=message):
        run(eio, **fields)
    assert eio.changes == 0


@pytest.mark.parametrize("place", [HDD, SSD])
def test_writeback_over_volatile_cache_is_refused_unless_allowed(eio, place):
    volatile = {place: [f"{place} has its volatile write cache on"]}
    with pytest.raises(Refused, match=f"does not pass every flush down, and {place} has its volatile write cache on: .* allow_ignored_flushes: true"):
        run(eio, volatile=volatile, **WRITEBACK)
    assert eio.changes == 0
    run(eio, volatile=volatile)
    with pytest.raises(Refused, match="allow_ignored_flushes"):
        run(eio, volatile=volatile, **WRITEBACK)
    run(eio, volatile=volatile, allow_ignored_flushes=True, **WRITEBACK)
    # One that is there is left, and nothing is asked about it.
    assert not run(eio, volatile=volatile, **WRITEBACK).changed


def test_non_empty_cache_device_is_refused(eio):
    with open(eio.root / "dev/sdb", "r+b") as device:
        device.seek(16)
        device.write((0xFACECAFE).to_bytes(4, "little"))
    with pytest.raises(Refused, match="carries flashcache metadata"):
        run(eio)
    assert eio.changes == 0


def test_cache_device_of_another_cache_is_refused(eio):
    run(eio)
    other = [{**ITEM, "name": "other", "origin": SSD2}]
    requested = read_items(other)
    with pytest.raises(BadInput, match="is used by the EnhanceIO cache images"):
        converge(EnhanceIOLayer(eio, requested, root=eio.root, sleep=eio.sleep), check_mode=False)
    with pytest.raises(Refused, match="already has the EnhanceIO cache images"):
        run(eio, name="other", cache_devices=[SSD2])
    eio.driver.shut_down()
    with pytest.raises(Refused, match="carries EnhanceIO metadata, and may hold blocks that its origin does not have"):
        converge(EnhanceIOLayer(eio, requested, root=eio.root, sleep=eio.sleep), check_mode=False)


def test_two_items_cannot_share_a_device(eio):
    requested = read_items([ITEM, {"name": "other", "origin": SSD2, "cache_devices": [SSD]}])
    with pytest.raises(BadInput, match="is used by a cache before it in the list"):
        converge(EnhanceIOLayer(eio, requested, root=eio.root), check_mode=False)


@pytest.mark.parametrize("running", [False, True], ids=["new", "running"])
def test_origin_is_cached_once_under_any_path(eio, running):
    link = "/dev/disk/by-id/wwn-0x5000c500000000aa"
    eio.host.link(link, (eio.root / HDD.lstrip("/")).resolve().name)
    if running:
        run(eio)
    before = eio.changes
    for second in ({"origin": link, "cache_devices": [SSD2]}, {"origin": SSD2, "cache_devices": [link]}):
        requested = read_items([ITEM, {"name": "other", **second}])
        with pytest.raises(BadInput, match=f"{link} is used by a cache before it in the list"):
            converge(EnhanceIOLayer(eio, requested, root=eio.root, sleep=eio.sleep), check_mode=False)
    assert eio.changes == before


def test_existing_cache_name_on_another_origin_is_refused(eio):
    run(eio)
    with pytest.raises(Refused, match=f"the EnhanceIO cache images that runs is that of {HDD}"):
        run(eio, origin=SSD2)
    with pytest.raises(Refused, match="images that runs is that of"):
        run(eio, origin=SSD2, **GONE)


def test_writeback_is_refused_for_system_disk(eio):
    eio.host.mount("sda", "/")
    run(eio)
    with pytest.raises(Refused, match="carries the system itself"):
        run(eio, **WRITEBACK)


def test_writeback_is_refused_over_what_its_rule_does_not_hide(eio):
    """The rule hides a physical volume from LVM until the cache is there; ZFS reads the devices itself."""
    eio.host.records = [record + ("\nE: ID_FS_TYPE=zfs_member" if "N: sda\n" in record else "") for record in eio.host.records]
    run(eio)
    with pytest.raises(Refused, match="ZFS imports the pool on it without waiting for the cache"):
        run(eio, **WRITEBACK)
    eio.host.records = [record.replace("zfs_member", "LVM2_member") for record in eio.host.records]
    assert run(eio, **WRITEBACK).changed
    assert run(eio, **WRITEBACK).warnings == ()


def test_missing_driver_error_names_alternatives(tmp_path):
    eio = SimulatedEnhanceIO(tmp_path, module="absent")
    with pytest.raises(ToolMissing) as caught:
        run(eio)
    assert str(caught.value) == (
        "images: the kernel module enhanceio is not installed for kernel 4.19.0-27-amd64; this collection does not build EnhanceIO, whose public source"
        " does not build on kernels from 5.10 on. lvm_cache, dm_cache and bcache do the same on every kernel."
    )
    assert not run(eio, **GONE).changed


def test_unloaded_driver_is_loaded(tmp_path):
    eio = SimulatedEnhanceIO(tmp_path, module="available")
    run(eio)
    assert ("modprobe", "enhanceio") in eio.calls
    assert not run(eio).changed


@pytest.mark.parametrize(("tool", "message"), [("eio_cli", "name its folder in tool_dirs"), ("systemctl", "could not be started at boot")])
def test_missing_tool_is_reported(eio, tool, message):
    eio.missing.add(tool)
    with pytest.raises(ToolMissing, match=message):
        run(eio)
    assert eio.changes == 0


def test_cache_busy_with_another_command_is_awaited_then_refused(eio):
    run(eio)
    eio.caches["images"]["flags"] |= 1 << 9
    eio.driver.publish()
    with pytest.raises(Refused, match="another command is changing"):
        run(eio, mode="writearound")
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            eio.caches["images"]["flags"] = 0
            eio.driver.publish()

    eio.sleep = sleep
    run(eio, mode="writearound")
    assert len(waited) == 3


def test_foreign_fast_removal_setting_prevents_writeback(eio):
    run(eio)
    eio.driver.write_sysctl("images", "control", 6)
    with pytest.raises(Refused, match=r"set dev.enhanceio.images.control=7 first"):
        run(eio, **WRITEBACK)


# -- devices that go


def test_lost_cache_device_keeps_origin_working_and_cache_starts_empty(eio):
    run(eio)
    fill(eio)
    eio.driver.lose(SSD)
    layer = EnhanceIOLayer(eio, read_items([ITEM]), root=eio.root)
    facts = layer.facts(layer.read())
    assert facts["problems"] == [f"images has lost its cache device {SSD}, and {HDD} works without it."]
    assert facts["caches"][0]["state"] == "cache_missing"
    eio.driver.write(HDD, 0, "newer")
    eio.driver.state["gone"].clear()
    assert actions(run(eio)) == [ResumeCache]
    assert eio.driver.read(HDD, 0) == "newer"
    assert not run(eio).changed


def test_permanently_lost_cache_device_is_replaced(eio):
    run(eio)
    fill(eio)
    eio.lose(SSD)
    with pytest.raises(Refused, match="works without its cache, because the cache device"):
        run(eio)
    assert actions(run(eio, cache_devices=[SSD2])) == [ProveClean, WriteBootFiles, DeleteCache, CreateCache, WriteBootFiles]
    assert all_there(eio)
    assert not run(eio, cache_devices=[SSD2]).changed


def test_degraded_cache_is_not_given_a_non_empty_device(eio):
    run(eio)
    eio.driver.lose(SSD)
    eio.driver.state["gone"].clear()
    with open(eio.root / "dev/sdb", "r+b") as device:
        device.write(bytes(1 << 17))
        device.seek(0)
        device.write((0x23489321).to_bytes(4, "little"))
    with pytest.raises(Refused, match=r"carries dm-writecache metadata.*so that it is not given to the cache"):
        run(eio)


def test_degraded_mirror_under_writeback_is_a_problem_not_a_failure(eio):
    run(eio, **MIRRORED)
    (eio.root / "sys/class/block/md127/md/degraded").write_text("1\n")
    assert not run(eio, **MIRRORED).changed
    layer = EnhanceIOLayer(eio, read_items([{**ITEM, **MIRRORED}]), root=eio.root)
    facts = layer.facts(layer.read())
    assert facts["problems"][0].startswith("images is a write-back cache on a mirror that is degraded")
    assert "Take the failed member out of the machine before the next boot" in facts["problems"][0]
    assert facts["caches"][0]["redundancy"] == "degraded"


# -- commands that lie


@pytest.mark.parametrize(
    ("verb", "requested"),
    [("create", {}), ("edit", {"mode": "writearound"}), ("delete", GONE), ("notify", {}), ("enable", WRITEBACK)],
)
def test_acknowledged_command_without_effect_is_detected(eio, verb, requested, monkeypatch):
    from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer

    if verb != "create":
        run(eio, **(WRITEBACK if verb == "enable" else {}))
    if verb == "notify":
        eio.driver.lose(SSD)
        eio.driver.state["gone"].clear()
    if verb == "enable":
        fill(eio)
        eio.driver.shut_down()
    really = eio._eio_cli
    monkeypatch.setattr(eio, "_eio_cli", lambda words: Answer("Done\n") if words[0] == verb else really(words))
    with pytest.raises((CommandFailed, NotEffective)):
        run(eio, **requested)
    monkeypatch.undo()
    run(eio, **requested)
    assert not run(eio, **requested).changed


# -- what it costs


def test_command_count_is_independent_of_number_of_caches(tmp_path):
    eio = SimulatedEnhanceIO(tmp_path)
    items = []
    for number in range(24):
        for name, size in ((f"sde{number}", 100), (f"sdf{number}", 10)):
            link = f"/dev/disk/by-id/ata-{name.upper()}"
            eio.host.disk(name, "sata", size=size << 30, serial=name, DEVLINKS=link)
            os.truncate(eio.root / "dev" / name, 1 << 18)
        items.append(
            {"name": f"cache{number}", "origin": f"/dev/disk/by-id/ata-SDE{number}", "cache_devices": [f"/dev/disk/by-id/ata-SDF{number}"], **WRITEBACK}
        )
    requested = read_items(items)
    layer = EnhanceIOLayer(eio, requested, root=eio.root, sleep=eio.sleep)
    assert len(converge(layer, check_mode=False).steps) == 24 * 3
    del eio.calls[:]
    assert not converge(layer, check_mode=False).changed
    assert [words[0] for words in eio.calls] == ["udevadm"]


def test_check_mode_predicts_run(eio):
    predicted = run(eio, check_mode=True, **WRITEBACK).to_dict()
    assert eio.changes == 0
    assert run(eio, **WRITEBACK).to_dict() == predicted
