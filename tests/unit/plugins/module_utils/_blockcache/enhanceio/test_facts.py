# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot as enhanceio_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import facts as enhanceio_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.tests.simulators.in_process.enhanceio import HDD, SSD, SSD2, SimulatedEnhanceIO

TOOLS = {name: f"/sbin/{name}" for name in enhanceio_boot.TOOLS}


@pytest.fixture
def eio(tmp_path):
    host = SimulatedEnhanceIO(tmp_path)
    host.run(["eio_cli", "create", "-d", HDD, "-s", SSD, "-m", "wb", "-c", "images"])
    return host


def states(eio):
    devices = read_devices(eio, eio.root)
    del eio.calls[:]
    found = enhanceio_facts.read_caches(devices, eio, eio.root)
    assert not eio.calls, "reading costs no command"
    return found


def test_cache_state_in_type_independent_model(eio):
    for number in range(3):
        eio.driver.write(HDD, number, "v")
    eio.driver.read(HDD, 0)
    eio.driver.read(HDD, 7)
    eio.caches["images"]["errors"] = {"ssd_read_errors": 2, "ssd_write_errors": 1, "disk_write_errors": 4}
    eio.driver.publish()
    (state,) = states(eio)
    assert (state.type, state.name, state.kind, state.mode, state.policy, state.state) == ("enhanceio", "images", "enhanceio", "writeback", "lru", "ok")
    assert (state.device, state.device_name, state.origin, state.origin_name) == (HDD, "sda", HDD, "sda")
    assert (state.cache_devices, state.cache_device_names, state.redundancy) == ((SSD,), ("sdb",), "none")
    assert (state.block_size, state.used, state.dirty) == (4096, 3 * 4096, 3 * 4096)
    assert state.size == 260864 * 4096
    assert state.sends_flushes is False
    assert state.counters == {"read_hits": 8, "read_misses": 8, "write_hits": 0, "write_misses": 24, "cache_errors": 3, "origin_errors": 4}
    assert state.histogram == {4096: 5}
    assert state.settings["dirty_high_threshold"] == 30


@pytest.mark.parametrize("mode", ["wt", "ro"])
def test_flushes_reach_origin_in_writethrough_and_readonly(eio, mode):
    eio.run(["eio_cli", "edit", "-c", "images", "-m", mode])
    (state,) = states(eio)
    assert state.sends_flushes is True
    assert state.settings == {"mem_limit_pct": 75}


def test_kernel_names_are_reported_as_persistent_paths(eio):
    eio.run(["eio_cli", "delete", "-c", "images"])
    eio.run(["eio_cli", "create", "-d", "/dev/sda", "-s", "/dev/sdc", "-c", "by_hand"])
    (state,) = states(eio)
    assert (state.device, state.cache_devices) == (HDD, (SSD2,))


def test_writeback_cache_without_cache_device_has_failed(eio):
    eio.driver.write(HDD, 1, "v")
    eio.lose(SSD)
    (state,) = states(eio)
    assert (state.state, state.cache_device_names, state.cache_devices) == ("failed", (), (SSD,))
    assert f"because its cache device {SSD} is gone: reconnect it, restart the host with systemctl reboot, and run again" in state.problem
    assert "Up to 4096 bytes are only on the cache device." in state.problem


def test_writethrough_cache_works_without_cache_device(eio):
    eio.run(["eio_cli", "edit", "-c", "images", "-m", "wt"])
    eio.lose(SSD)
    (state,) = states(eio)
    assert state.state == "cache_missing"
    assert "works without it" in state.problem


def test_cache_without_origin_has_failed(eio):
    eio.lose(HDD)
    (state,) = states(eio)
    assert (state.state, state.device, state.device_name) == ("failed", HDD, None)
    assert f"because its origin {HDD} is gone" in state.problem


def test_host_without_driver(tmp_path):
    eio = SimulatedEnhanceIO(tmp_path, module="absent")
    assert states(eio) == ()


def test_cache_removed_during_read_is_ignored(eio, monkeypatch):
    folder = eio.root / "proc/enhanceio/images"
    (folder / "stats").unlink()
    assert enhanceio_facts.read_one("images", eio.root) is None
    assert states(eio) == ()


def test_unreadable_or_invalid_files_are_reported(eio):
    (eio.root / "proc/enhanceio/images/stats").write_text("nothing\n")
    with pytest.raises(NotUnderstood, match="/proc/enhanceio/images/stats"):
        states(eio)
    (eio.root / "proc/enhanceio/images/stats").unlink()
    (eio.root / "proc/enhanceio/images/stats").mkdir()
    with pytest.raises(CommandFailed, match="cannot be read"):
        states(eio)


def install_unit(eio, mode="writeback", fast=SSD, **settings):
    files = enhanceio_boot.needed_files("images", HDD, fast, mode, "fifo", 4096, settings, TOOLS, "enhanceio")
    boot_unit.write_unit(eio, enhanceio_boot.unit_name("images"), files.unit, eio.root)
    return files


@pytest.mark.parametrize(("mode", "held"), [("writeback", True), ("writethrough", False)])
def test_enabled_cache_that_is_not_running_is_inactive(eio, mode, held):
    install_unit(eio, mode)
    assert len(states(eio)) == 1
    eio.driver.shut_down()
    (state,) = states(eio)
    assert (state.state, state.name, state.mode, state.policy, state.dirty) == ("inactive", "images", mode, "fifo", None)
    assert (state.device_name, state.cache_device_names) == ("sda", ("sdb",))
    assert ("do not use the origin until it runs" in state.problem) is held
    eio.lose(SSD)
    assert states(eio)[0].state == "cache_missing"


def test_writeback_unit_hides_origin_until_cache_runs(eio):
    files = install_unit(eio, dirty_high_threshold=60)
    lines = files.unit.splitlines()
    setting = ["/bin/sh", "-c", enhanceio_boot.SET, "set", "/sbin/sysctl", "dev.enhanceio.images.dirty_high_threshold=60"]
    assert [line for line in lines if line.startswith("Exec")] == [
        f"ExecStartPre=/sbin/udevadm settle --exit-if-exists={HDD}",
        f"ExecStartPre=/sbin/test -b {HDD}",
        "ExecStart=/sbin/modprobe enhanceio",
        f"ExecStart=/sbin/eio_cli enable -d {HDD} -s {SSD} -m wb -p fifo -b 4096 -c images",
        "ExecStart=/sbin/test -d /proc/enhanceio/images",
        "ExecStart=/sbin/udevadm trigger --action=change --subsystem-match=block --property-match=CACHEFLEET_ENHANCEIO=images",
        f"ExecStart={boot_unit.command_line(setting, 'images')}",
    ]
    assert "Requires=dev-disk-by\\x2did-ata\\x2dSSD_1.device" in lines
    assert files.rule.splitlines()[1:] == [
        'ACTION!="remove", SUBSYSTEM=="block", TEST!="/proc/enhanceio/images", SYMLINK=="disk/by-id/ata-HDD_1|disk/by-id/ata-HDD_1-part*",'
        ' ENV{CACHEFLEET_ENHANCEIO}="images", ENV{SYSTEMD_READY}="0", ENV{ID_FS_TYPE}="enhanceio_origin"',
        'ACTION!="remove", SUBSYSTEM=="block", TEST!="/proc/enhanceio/images", SYMLINK=="disk/by-id/ata-HDD_1",'
        ' RUN+="/sbin/systemctl --no-block start cachefleet-enhanceio-images.service"',
    ]
    assert (files.fast, files.start["m"]) == (SSD, "wb")


def test_non_writeback_unit_starts_empty_and_hides_nothing(eio):
    files = install_unit(eio, "writearound")
    starts = [line.partition("=")[2] for line in files.unit.splitlines() if line.startswith("ExecStart=")]
    enable = f"/sbin/eio_cli enable -d {HDD} -s {SSD} -m ro -p fifo -b 4096 -c images"
    control = ["/sbin/sysctl", "dev.enhanceio.images.control=6", "/proc/enhanceio/images/config", "/sbin/eio_cli", "images"]
    assert starts == [
        "/sbin/modprobe enhanceio",
        enable,
        boot_unit.command_line(["/bin/sh", "-c", enhanceio_boot.FORGET, "forget", *control], "images"),
        "/sbin/eio_cli disable -c images",
        enable,
        "/sbin/test -d /proc/enhanceio/images",
    ]
    assert files.rule == ""


def test_disabled_unit_is_ignored(eio):
    install_unit(eio)
    os.unlink(eio.root / boot_unit.FOLDER / "sysinit.target.wants" / enhanceio_boot.unit_name("images"))
    assert enhanceio_boot.read_units(eio.root) == {}
    assert enhanceio_boot.AtBoot().fast == ""
