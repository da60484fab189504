# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of kernel modules, and which names begin a rule."""

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import Queue
from ansible_collections.cachefleet.storage.plugins.module_utils._device.udev_rule import RuleKey
from ansible_collections.cachefleet.storage.tests.unit.support.fake_queues import FakeQueues

QLA = {"module": "qla2xxx", "options": {"ql2xmaxqdepth": 64}}


@pytest.fixture
def host(tmp_path, monkeypatch):
    queues = FakeQueues(tmp_path, monkeypatch)
    queues.host.write("sys/module/qla2xxx/parameters/ql2xmaxqdepth", "32\n")
    return queues


def text(host):
    return (host.root / queue_boot.OPTIONS_FILE).read_text()


def test_module_option_is_written_and_reported_as_pending(host):
    runner = host.runner
    outcome = host.converge(modules=[QLA], runner=runner)
    assert [(step.item, step.before, step.after) for step in outcome.steps] == [("qla2xxx", None, {"ql2xmaxqdepth": "64"})]
    assert "\noptions qla2xxx ql2xmaxqdepth=64\n" in text(host)
    assert runner.calls == []
    assert len(outcome.warnings) == 1
    assert "32 in the running module: it takes effect when the module is loaded again or after a reboot" in outcome.warnings[0]


def test_no_change_on_second_run_with_warning_until_in_effect(host):
    host.converge(modules=[QLA])
    again = host.converge(modules=[QLA])
    assert (again.changed, len(again.warnings)) == (False, 1)
    host.host.write("sys/module/qla2xxx/parameters/ql2xmaxqdepth", "64\n")
    assert host.converge(modules=[QLA]).warnings == ()
    assert host.facts(modules=[QLA])["module_options"] == [{"module": "qla2xxx", "options": {"ql2xmaxqdepth": "64"}, "running": {"ql2xmaxqdepth": "64"}}]


def test_options_of_other_modules_are_kept_and_empty_options_removed(host):
    host.converge(modules=[QLA, {"module": "scsi-mod", "options": {"use_blk_mq": True}}])
    assert "options scsi_mod use_blk_mq=1\n" in text(host)
    host.converge(modules=[{"module": "scsi_mod", "options": {}}])
    assert "scsi_mod" not in text(host)
    assert "qla2xxx" in text(host)


def test_builtin_module_is_rejected(host):
    with pytest.raises(BadInput, match=r"md_mod is built into this kernel.*add md_mod\.start_ro=1 to the kernel command line"):
        host.converge(modules=[{"module": "md_mod", "options": {"start_ro": 1}}])


def test_overrides_in_other_file_and_kernel_command_line_are_reported(host):
    host.host.write("etc/modprobe.d/zz.conf", "# x\noptions qla2xxx ql2xmaxqdepth=16 \\\n ql2xfoo=1\n")
    assert "16 in /etc/modprobe.d/zz.conf: remove it there" in host.converge(modules=[QLA]).warnings[0]
    host.host.write("proc/cmdline", "root=/dev/vda qla2xxx.ql2xmaxqdepth=8\n")
    assert "8 in the command line of the kernel" in host.converge(modules=[QLA]).warnings[0]


def test_option_missing_in_loaded_module_is_reported(host):
    assert "does not show an option ql2xnone" in host.converge(modules=[{"module": "qla2xxx", "options": {"ql2xnone": 1}}]).warnings[0]


@pytest.mark.parametrize(
    ("module", "options"),
    [("a b", {}), ("qla2xxx", {"x y": 1}), ("qla2xxx", {"x": "1 y=2"}), ("qla2xxx", {"x": "1\ninstall y z"}), ("../x", {}), ("qla2xxx", {"x": "1\n"})],
)
def test_invalid_option_entries_are_rejected(module, options):
    with pytest.raises(BadInput, match="cannot be written to a modprobe"):
        queue_boot.read_module_specs([{"module": module, "options": options}])


def test_option_without_a_value_is_rejected():
    """A module may refuse to be loaded at boot with the text None."""
    with pytest.raises(BadInput, match="ql2xmaxqdepth of qla2xxx has no value: set one, or remove the option"):
        queue_boot.read_module_specs([{"module": "qla2xxx", "options": {"ql2xmaxqdepth": None}}])


def test_module_listed_twice_is_rejected():
    with pytest.raises(BadInput, match="listed twice"):
        queue_boot.read_module_specs([{"module": "scsi-mod", "options": {}}, {"module": "scsi_mod", "options": {}}])


@pytest.mark.parametrize(
    ("one", "other", "same"), [("1", "Y", True), ("N", "off", True), ("0x10", "16", True), ("1", "N", False), ("a", "b", False), ("64", "64", True)]
)
def test_equivalent_option_values(one, other, same):
    assert queue_boot.same_option(one, other) is same


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("sdaa", "sd*"),
        ("vdb", "vd*"),
        ("xvda", "xvd*"),
        ("nvme0n1", "nvme*"),
        ("dm-3", "dm-*"),
        ("md127", "md*"),
        ("etherd!e1.1", "etherd*"),
        ("mmcblk0", "mmcblk*"),
    ],
)
def test_rule_pattern_covers_all_devices_of_a_driver(name, pattern):
    queue = Queue(name=name, path=f"/dev/{name}", kind="disk", transport="sata", size=1, rotational=None, key=RuleKey("ID_SERIAL", "X"))
    line = queue_boot.rule_for(queue, {"nomerges": 1})
    assert line is not None
    assert f'KERNEL=="{pattern}", ENV{{ID_SERIAL}}=="X"' in line


def test_device_without_rule_key_is_rejected():
    queue = Queue(name="bcache0", path="/dev/bcache0", kind="bcache", transport="virtual", size=1, rotational=None, no_key="no serial: set persistent: false")
    with pytest.raises(BadInput, match="persistent: false"):
        queue_boot.rule_for(queue, {"read_ahead_kb": 128})
    assert queue_boot.rule_for(queue, {}) is None


def test_loadable_schedulers_with_and_without_module_folder(tmp_path):
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import loadable_schedulers

    assert loadable_schedulers(tmp_path) == ()
    (tmp_path / "lib/modules" / os.uname().release / "kernel/block").mkdir(parents=True)
    (tmp_path / "lib/modules" / os.uname().release / "kernel/block/kyber-iosched.ko.xz").touch()
    assert loadable_schedulers(tmp_path) == ("kyber",)


def test_settings_overridden_by_running_tuned_are_reported(host):
    host.disk("sda", serial="HDD0", DEVLINKS="/dev/disk/by-id/ata-X")
    entry = {"device": "/dev/disk/by-id/ata-X", "read_ahead_kb": 256}
    host.host.write("etc/tuned/active_profile", "mine\n")
    host.host.write("etc/tuned/mine/tuned.conf", "[main]\nsummary=x\ninclude=throughput-performance\n[sysctl]\nreadahead=7\n")
    host.host.write("usr/lib/tuned/throughput-performance/tuned.conf", "[main]\ninclude=mine\n[disk]\n# comment\nreadahead=>4096\nelevator = none\n")
    assert host.converge(entry).warnings == ()
    host.host.write("run/tuned/tuned.pid", "1\n")
    concerns = host.converge(entry).warnings
    assert len(concerns) == 1
    assert "remove readahead=>4096 of its profile throughput-performance," in concerns[0]
    assert host.converge({**entry, "persistent": False}).warnings == ()


def test_service_that_sets_another_device_or_the_same_value_is_not_reported(host):
    host.disk("sda", serial="HDD0", DEVLINKS="/dev/disk/by-id/ata-X")
    host.host.write("etc/tuned/active_profile", "mine\n")
    host.host.write("run/tuned/tuned.pid", "1\n")
    entry = {"device": "/dev/disk/by-id/ata-X", "read_ahead_kb": 256}
    for section, count in {
        "[flash]\ntype=disk\ndevices=sdb\nreadahead=1\n": 0,
        "[hdd]\ntype=disk\ndevices=sd*\nreadahead=4096\n": 1,
        "[disk]\nreadahead=256\n": 0,
        "[disk]\nelevator=none\n": 0,
    }.items():
        host.host.write("etc/tuned/mine/tuned.conf", section)
        assert len(host.converge(entry).warnings) == count, section
