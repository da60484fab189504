# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer drive_write_cache on a simulated host whose tools lie as the real ones do."""

from __future__ import annotations

import itertools
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    BadInput,
    CommandFailed,
    DeviceMissing,
    NotEffective,
    Refused,
    StorageError,
    ToolMissing,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache import providers
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import cache_type_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveSpec, DriveWriteCacheLayer
from ansible_collections.cachefleet.storage.tests.unit.support.drive_machine import HDD, NVME, RAID, SAS, SSD, VIRTIO, Drive, Machine
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere


def attributes(outcome):
    return [step.attribute for step in outcome.steps]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def rack(machine):
    """One drive of every kind."""
    machine.add("sda", "sata", HDD, serial="HDD0")
    machine.add("sdaa", "sata", SSD, serial="SSD0")
    machine.add("sdb", "sas", SAS, serial="5000c500", wwn="0x5000c500")
    machine.add("nvme0n1", "nvme", NVME, serial="NVME0")
    machine.add("vdb", "virtio", VIRTIO, serial=None, ID_SERIAL="VIRT0")
    machine.add("sdc", "raid", RAID, serial="6000raid")
    return machine


ALL = (HDD, SSD, SAS, NVME, VIRTIO)


def test_empty_list_runs_nothing(machine):
    runner = machine.runner
    assert machine.converge(runner=runner).changed is False
    assert runner.calls == []


def test_every_drive_kind_is_disabled_now_and_at_boot(rack):
    specs = [DriveSpec(device, "disabled") for device in ALL]
    outcome = rack.converge(*specs)
    assert attributes(outcome) == ["write_cache", "boot_rule"] * 5
    assert [drive.on for name, drive in rack.drives.items() if name != "sdc"] == [False] * 5
    rules = [line for line in rack.rules.splitlines() if not line.startswith("#")]
    assert rules == sorted(rules)
    assert len(rules) == 5
    assert 'KERNEL=="sd*", ENV{ID_SERIAL_SHORT}=="SSD0", RUN+="/usr/sbin/hdparm -q -W0 $devnode"' in rack.rules
    assert 'ENV{ID_SERIAL_SHORT}=="5000c500", ATTR{device/scsi_disk/*/cache_type}="write through"' in rack.rules
    assert 'RUN+="/usr/sbin/nvme set-feature $devnode --namespace-id=0xffffffff --feature-id=6 --value=0"' in rack.rules
    assert 'KERNEL=="vd*", ENV{ID_SERIAL}=="VIRT0", ATTR{cache_type}="write through"' in rack.rules
    assert rack.drives["sdc"].on


def test_no_change_on_second_run_with_one_command_per_tool(rack):
    specs = [DriveSpec(device, "disabled") for device in (HDD, SSD)]
    rack.converge(*specs)
    runner = rack.runner
    assert rack.converge(*specs, runner=runner).changed is False
    assert [call[:2] if call[0] == "udevadm" else call for call in runner.calls] == [("udevadm", "info"), ("hdparm", "-W", "/dev/sda", "/dev/sdaa")]


def test_check_mode_plans_the_same_steps_and_changes_nothing(rack):
    specs = [DriveSpec(device, "disabled") for device in ALL]
    predicted = rack.converge(*specs, check_mode=True)
    assert all(drive.on for drive in rack.drives.values())
    assert rack.rules == ""
    assert rack.writes == []
    assert rack.converge(*specs).steps == predicted.steps


def test_planning_has_no_side_effects(rack):
    specs = [DriveSpec(device, "disabled") for device in ALL]
    runner = rack.runner
    layer = DriveWriteCacheLayer(runner, specs, rack.root)
    current = layer.read()
    calls = len(runner.calls)
    assert layer.plan(current) == layer.plan(current)
    assert len(runner.calls) == calls


def test_live_state_and_boot_rule_are_separate_plan_steps(rack):
    rack.drives["sda"].on = False
    rack.view("sda", False)
    outcome = rack.converge(DriveSpec(HDD, "disabled"))
    assert attributes(outcome) == ["boot_rule"]
    assert outcome.to_dict()["diff"]["before"] == {HDD: {"boot_rule": None}}
    rack.drives["sda"].on = True
    rack.view("sda", True)
    assert attributes(rack.converge(DriveSpec(HDD, "disabled"))) == ["write_cache"]


def test_persistent_enabled_writes_an_enabling_rule(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    outcome = rack.converge(DriveSpec(HDD, "enabled"))
    assert attributes(outcome) == ["boot_rule", "write_cache"]
    assert "-W1 $devnode" in rack.rules
    assert "-W0" not in rack.rules


def test_non_persistent_removes_the_conflicting_rule(rack):
    rack.converge(DriveSpec(HDD, "disabled"), DriveSpec(SSD, "disabled"))
    outcome = rack.converge(DriveSpec(HDD, "enabled", persistent=False))
    assert attributes(outcome) == ["boot_rule", "write_cache"]
    assert outcome.steps[0].after is None
    assert "HDD0" not in rack.rules
    assert "SSD0" in rack.rules


def test_rules_of_drives_from_another_play_are_kept(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    rack.converge(DriveSpec(SSD, "disabled"))
    assert "HDD0" in rack.rules


def test_manually_changed_rule_is_planned_as_a_change(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    udev_rule.write_rules(rack.rules.replace("-W0", "-W1"), rack.root)
    assert attributes(rack.converge(DriveSpec(HDD, "disabled"))) == ["boot_rule"]
    assert "-W0" in rack.rules


def test_rules_are_reloaded_after_a_change_without_trigger(rack):
    runner = rack.runner
    rack.converge(DriveSpec(HDD, "disabled"), runner=runner)
    assert ("udevadm", "control", "--reload") in runner.calls
    assert not any(words[:2] == ("udevadm", "trigger") for words in runner.calls)


def test_hdparm_conf_is_ignored(rack):
    # Its helper does nothing while an array resyncs, which is right after an unclean shutdown.
    conf = rack.host.write("etc/hdparm.conf", f"{HDD} {{\n write_cache = off\n}}\n")
    before = conf.read_text()
    assert attributes(rack.converge(DriveSpec(HDD, "disabled"))) == ["write_cache", "boot_rule"]
    assert conf.read_text() == before


# Telling the kernel is not telling the drive.


def test_kernel_writethrough_with_drive_cache_enabled_is_a_change(rack):
    rack.view("sda", False)
    rack.drives["sda"].overridden = True
    outcome = rack.converge(DriveSpec(HDD, "disabled", persistent=False))
    assert attributes(outcome) == ["write_cache"]
    assert rack.drives["sda"].on is False


def test_temporary_cache_type_is_replaced_by_permanent_one(rack):
    rack.view("sda", False)
    rack.drives["sda"].overridden = True
    outcome = rack.converge(DriveSpec(HDD, "enabled", persistent=False))
    assert attributes(outcome) == ["kernel_view"]
    assert (outcome.steps[0].before, outcome.steps[0].after) == ("write through", "write back")
    assert rack.writes == [("sda", "rescan", "1"), ("sda", "cache_type", "write back")]


def test_wrong_queue_write_cache_is_corrected_by_a_rescan(rack):
    (rack.root / "sys/class/block/sda/queue/write_cache").write_text("write through\n")
    outcome = rack.converge(DriveSpec(HDD, "enabled", persistent=False))
    assert attributes(outcome) == ["kernel_view"]
    assert outcome.steps[0].before == "write back, write through"
    assert rack.writes == [("sda", "rescan", "1")]


COMMAND = "run echo 'write back' > /sys/block/{name}/queue/write_cache, remove what wrote it"


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("device, name", [(HDD, "sda"), (SAS, "sdb"), (NVME, "nvme0n1"), (VIRTIO, "vdb")])
def test_written_queue_write_cache_of_linux_6_11_is_refused_with_its_command(rack, device, name, check_mode):
    rack.release("6.12.48+deb13-amd64")
    rack.drives[name].written_off = True
    (rack.root / f"sys/class/block/{name}/queue/write_cache").write_text("write through\n")
    with pytest.raises(Refused, match=re.escape(COMMAND.format(name=name))) as caught:
        rack.converge(DriveSpec(device, "enabled", persistent=False), check_mode=check_mode)
    assert caught.value.item == device
    assert rack.writes == []
    assert rack.drives[name].on


@pytest.mark.parametrize("release", ["6.12.48+deb13-amd64", "5.14.0-570.el9.x86_64"])
def test_cache_is_disabled_again_if_its_flushes_are_found_to_be_dropped(rack, release):
    """While the cache is disabled nothing shows what was written, and a kernel with a backport does not show its age."""
    rack.release(release)
    rack.converge(DriveSpec(HDD, "disabled", persistent=False))
    rack.drives["sda"].written_off = True
    with pytest.raises(NotEffective, match=re.escape(COMMAND.format(name="sda"))) as caught:
        rack.converge(DriveSpec(HDD, "enabled", persistent=False))
    assert "was disabled again" in caught.value.message
    assert rack.drives["sda"].on is False


def test_sata_drive_behind_sas_adapter_is_rescanned_after_hdparm(machine):
    drive = machine.add("sda", "sas", HDD, serial="HDD0", drive=Drive(kernel_notices=False))
    (machine.root / "sys/class/block/sda/device/vendor").write_text("ATA     \n")
    outcome = machine.converge(DriveSpec(HDD, "disabled"))
    assert attributes(outcome) == ["write_cache", "boot_rule"]
    # The last one proves that the rule will not fail.
    assert machine.writes == [("sda", "rescan", "1"), *[("sda", "cache_type", "write through")] * 2]
    assert drive.on is False
    # The rule must reach both as well, so it writes cache_type instead of running hdparm.
    assert 'ATTR{device/scsi_disk/*/cache_type}="write through"' in machine.rules


@pytest.mark.parametrize("value", ["disabled", "enabled"])
def test_boot_rule_that_the_kernel_would_refuse_is_not_written(machine, value):
    machine.add("sda", "sas", SAS, serial="5000c500", wwn="0x5000c500", drive=Drive(on=value == "disabled", refuses_kernel=True))
    machine.view("sda", value == "disabled")
    with pytest.raises(CommandFailed, match=r"Invalid argument\. The boot rule would write the same and fail at every start.*set persistent: false"):
        machine.converge(DriveSpec(SAS, value))
    assert machine.rules == ""
    # A cache is disabled before its rule is written, and enabled after it.
    assert machine.drives["sda"].on is False


def test_kernel_view_that_does_not_change_fails(rack, monkeypatch):
    rack.view("sda", False)
    monkeypatch.setattr(providers, "write_sysfs", lambda path, value, item: None)
    with pytest.raises(NotEffective, match="the kernel sends no flush to sda"):
        rack.converge(DriveSpec(HDD, "enabled", persistent=False))


def test_read_cache_of_scsi_drive_stays_disabled(machine):
    machine.add("sdb", "sas", SAS, serial="5000c500", drive=Drive(on=False))
    for path in cache_type_files("sdb", machine.root):
        path.write_text("none\n")
    machine.converge(DriveSpec(SAS, "disabled"))
    assert 'cache_type}="none"' in machine.rules


def test_hdparm_success_without_effect_is_detected(rack):
    rack.drives["sda"].stubborn = True
    with pytest.raises(NotEffective) as caught:
        rack.converge(DriveSpec(HDD, "disabled"))
    result = caught.value.to_dict()
    assert "write_cache should be disabled and is enabled" in result["msg"]
    assert result["item"] == HDD
    assert result["cmd"][:2] == ["hdparm", "-W0"]
    assert result["rc"] == 0
    # Its rule was written, which a second run finds.
    assert result["changed"] is True
    with pytest.raises(NotEffective) as caught:
        rack.converge(DriveSpec(HDD, "disabled"))
    assert (caught.value.facts["changed"], caught.value.facts["actions"]) == (False, [])


# NVMe, SAS, virtio.


def test_nvme_kernel_view_write_back_is_no_difference(rack):
    spec = DriveSpec(NVME, "disabled")
    rack.converge(spec)
    assert (rack.root / "sys/class/block/nvme0n1/queue/write_cache").read_text().strip() == "write back"
    assert rack.converge(spec).changed is False


def test_nvme_without_volatile_cache_is_already_disabled_without_rule(rack):
    rack.drives["nvme0n1"].vwc = 6
    assert rack.converge(DriveSpec(NVME, "disabled")).changed is False
    with pytest.raises(BadInput, match=r"no volatile write cache \(vwc is 0\)"):
        rack.converge(DriveSpec(NVME, "enabled"))


def test_sas_setting_is_saved_only_if_supported_and_persistent(rack):
    rack.drives["sdb"].saves = True
    runner = rack.runner
    rack.converge(DriveSpec(SAS, "disabled"), runner=runner)
    assert [words for words in runner.calls if "--clear=WCE" in words] == [("sdparm", "--clear=WCE", "--save", "/dev/sdb")]
    runner = rack.runner
    rack.converge(DriveSpec(SAS, "enabled", persistent=False), runner=runner)
    assert [words for words in runner.calls if "--set=WCE" in words] == [("sdparm", "--set=WCE", "/dev/sdb")]


def test_sas_exit_status_97_is_set_without_saving(rack):
    assert "write_cache" in attributes(rack.converge(DriveSpec(SAS, "disabled")))
    assert rack.drives["sdb"].on is False


def test_unchangeable_sas_cache_is_reported_before_any_change(rack):
    rack.drives["sdb"].changeable = False
    runner = rack.runner
    with pytest.raises(BadInput, match="does not let it be changed"):
        rack.converge(DriveSpec(HDD, "disabled"), DriveSpec(SAS, "disabled"), runner=runner)
    assert rack.drives["sda"].on


def test_virtio_uses_its_own_cache_type(rack):
    rack.converge(DriveSpec(VIRTIO, "disabled", persistent=False))
    assert rack.writes == [("vdb", "cache_type", "write through")]


# Refusals: before anything is changed.


def refuse(machine, error, match, *specs):
    before = {name: drive.on for name, drive in machine.drives.items()}
    with pytest.raises(error, match=match):
        machine.converge(*specs)
    assert {name: drive.on for name, drive in machine.drives.items()} == before
    assert machine.rules == ""
    assert machine.writes == []


def test_missing_device_prevents_any_change(rack):
    refuse(rack, DeviceMissing, "does not exist on this host", DriveSpec(HDD, "disabled"), DriveSpec("/dev/disk/by-id/ata-GONE", "disabled"))


@pytest.mark.parametrize("second", ["disabled", "enabled"])
def test_one_drive_under_two_names_is_rejected(rack, second):
    rack.host.link("/dev/disk/by-path/pci-0000:00:04.0-ata-1", "sda")
    refuse(rack, BadInput, "are the same drive", DriveSpec(HDD, "disabled"), DriveSpec("/dev/disk/by-path/pci-0000:00:04.0-ata-1", second))


def test_drive_listed_twice_is_rejected(rack):
    refuse(rack, BadInput, "listed twice", DriveSpec(HDD, "disabled"), DriveSpec(HDD, "enabled"))


def test_two_namespaces_of_one_nvme_controller_are_one_drive(machine):
    machine.add("nvme0n1", "nvme", NVME, serial="NVME0")
    next(machine.root.glob("sys/devices/*/*/nvme/driver")).unlink()  # the fake host links the driver once per disk
    machine.add("nvme0n2", "nvme", NVME + "_2", serial="NVME0")
    refuse(machine, BadInput, "same drive", DriveSpec(NVME, "disabled"), DriveSpec(NVME + "_2", "disabled"))
    assert "NVME0" in machine.converge(DriveSpec(NVME, "disabled")).steps[1].after


def test_persistent_rule_for_unstable_name_is_rejected_with_stable_path(rack):
    refuse(rack, BadInput, f"use {HDD}, which is the same device", DriveSpec("/dev/sda", "disabled"))
    assert attributes(rack.converge(DriveSpec("/dev/sda", "disabled", persistent=False))) == ["write_cache"]


def test_diskseq_name_is_rejected_as_unstable(rack):
    rack.host.link("/dev/disk/by-diskseq/5", "sda")
    refuse(rack, BadInput, "after the next reboot", DriveSpec("/dev/disk/by-diskseq/5", "disabled"))


def test_drives_with_the_same_serial_get_a_rule_by_wwn(machine):
    machine.add("sda", "sata", "/dev/disk/by-path/ata-1", serial="SAME")
    machine.add("sdb", "sata", "/dev/disk/by-path/ata-2", serial="SAME", wwn="0x5000c500")
    refuse(machine, BadInput, "another drive of this host has the same", DriveSpec("/dev/disk/by-path/ata-1", "disabled"))
    machine.converge(DriveSpec("/dev/disk/by-path/ata-2", "disabled"))
    assert 'ENV{ID_WWN}=="0x5000c500"' in machine.rules
    assert "SAME" not in machine.rules


def test_link_claimed_by_two_drives_is_rejected(machine):
    machine.add("sda", "sata", HDD, serial="HDD0")
    machine.add("sdb", "sata", HDD, serial="HDD0")
    refuse(machine, BadInput, r"the name of several drives \(/dev/sda, /dev/sdb\)", DriveSpec(HDD, "disabled", persistent=False))


def test_partition_is_rejected_with_name_of_its_drive(rack):
    rack.host.partition("sda", 1, DEVLINKS=HDD + "-part1")
    refuse(rack, BadInput, f"is a partition: name the whole drive, {HDD}", DriveSpec(HDD + "-part1", "disabled"))


def test_logical_volume_is_rejected_with_names_of_its_drives(rack):
    rack.add("dm-0", "virtual", "/dev/mapper/vg0-data", dm_name="vg0-data", dm_uuid="LVM-abc", slaves=("sda",))
    refuse(rack, BadInput, f"is a logical volume and not a drive: name the drives below it: {HDD}", DriveSpec("/dev/mapper/vg0-data", "disabled"))


@pytest.mark.parametrize("name, words", [("md0", "an MD array"), ("bcache0", "a bcache device"), ("loop0", "a loop device"), ("nbd0", "over the network")])
def test_non_drives_are_rejected(rack, name, words):
    rack.add(name, "virtual")
    refuse(rack, BadInput, words, DriveSpec(f"/dev/{name}", "disabled", persistent=False))


def test_raid_controller_volume_is_rejected(rack):
    refuse(rack, BadInput, "raid_cache", DriveSpec(HDD, "disabled"), DriveSpec(RAID, "disabled"))


def test_serial_with_udev_special_characters_gets_no_rule(machine):
    machine.add("sda", "sata", HDD, serial='A"; RUN+="/bin/sh')
    refuse(machine, BadInput, "cannot be written safely", DriveSpec(HDD, "disabled"))
    assert attributes(machine.converge(DriveSpec(HDD, "disabled", persistent=False))) == ["write_cache"]


def test_missing_tool_error_names_the_package(tmp_path, monkeypatch):
    machine = Machine(tmp_path, monkeypatch, missing=("sdparm",))
    machine.add("sda", "sata", HDD, serial="HDD0")
    machine.add("sdb", "sas", SAS, serial="5000c500")
    refuse(machine, ToolMissing, "install the package sdparm", DriveSpec(HDD, "disabled"), DriveSpec(SAS, "disabled"))


# A write cache below something that swallows flushes.


def below_flashcache(machine):
    machine.add("dm-0", "virtual", "/dev/mapper/cached", dm_name="cached", dm_uuid="", slaves=("sda",))
    machine.dm_tables.append("cached: 0 16384 flashcache conf:\n")


def test_write_cache_below_flashcache_is_refused(rack):
    below_flashcache(rack)
    refuse(rack, Refused, "flashcache cached passes no flushes.*allow_ignored_flushes", DriveSpec(HDD, "enabled"))
    assert attributes(rack.converge(DriveSpec(HDD, "disabled"))) == ["write_cache", "boot_rule"]


def test_write_cache_below_an_unreadable_mapping_is_refused(rack):
    below_flashcache(rack)
    (rack.host.root / "dev/mapper/control").unlink()
    refuse(rack, Refused, "mapping cached, whose target dmsetup does not report, perhaps passes no flushes.*allow_ignored_flushes", DriveSpec(HDD, "enabled"))
    assert attributes(rack.converge(DriveSpec(HDD, "disabled"))) == ["write_cache", "boot_rule"]


def test_write_cache_below_flashcache_with_permission(rack):
    below_flashcache(rack)
    assert rack.converge(DriveSpec(HDD, "enabled", allow_ignored_flushes=True)).changed


# A write cache below what device-mapper made while it was off.


def mapped(machine, name, table, slaves=("sda",), uuid="LVM-abc"):
    number = sum(path.name.startswith("dm-") for path in (machine.root / "sys/class/block").iterdir())
    machine.host.disk(f"dm-{number}", "virtual", write_cache="write through", dm_name=name, dm_uuid=uuid, slaves=slaves)
    machine.dm_tables.append(f"{name}: {table}\n")


def test_mappings_created_while_cache_was_disabled_are_reloaded_bottom_up(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    mapped(rack, "vg-data_corig", "0 2048 linear 8:0 2048", uuid="LVM-abc-real")
    mapped(rack, "vg-data", "0 2048 cache 253:1 253:2 253:0 128 2 metadata2 writeback smq 0", ("dm-0",))
    predicted = rack.converge(DriveSpec(HDD, "enabled"), check_mode=True)
    outcome = rack.converge(DriveSpec(HDD, "enabled"))
    assert predicted.to_dict() == outcome.to_dict()
    assert attributes(outcome) == ["boot_rule", "write_cache", "flushes./dev/mapper/vg-data_corig", "flushes./dev/vg/data"]
    assert outcome.steps[-1].action == f"Load the table of /dev/vg/data again, so that it passes flushes on to {HDD} (sda)"
    assert rack.loaded_again == ["vg-data_corig", "vg-data"]
    assert not rack.converge(DriveSpec(HDD, "enabled")).changed


def test_stale_mapping_of_earlier_run_is_reloaded(rack):
    rack.converge(DriveSpec(HDD, "enabled"))
    mapped(rack, "vg-data", "0 2048 linear 8:0 2048")
    assert attributes(rack.converge(DriveSpec(HDD, "enabled"))) == ["flushes./dev/vg/data"]
    assert attributes(rack.converge(DriveSpec(HDD, "disabled", persistent=False), check_mode=True)) == ["write_cache", "boot_rule"]


def test_mapping_over_two_drives_is_reloaded_once(rack):
    rack.converge(DriveSpec(HDD, "disabled"), DriveSpec(SSD, "disabled"))
    mapped(rack, "vg-data", "0 2048 striped 2 128 8:0 0 8:16 0", ("sda", "sdb"))
    rack.converge(DriveSpec(HDD, "enabled"), DriveSpec(SSD, "enabled"))
    assert rack.loaded_again == ["vg-data"]


@pytest.mark.parametrize(
    ("table", "uuid", "path"),
    [
        ("0 2048 crypt aes-xts-plain64 0000 0 8:0 4096", "CRYPT-LUKS2-abc-secret", "/dev/mapper/secret"),
        ("0 2048 raid raid1 3 0 region_size 1024 2 - 8:0 - 8:16", "LVM-abc", "/dev/mapper/secret"),
        ("0 2048 cache 253:1 253:2 8:0 128 2 metadata2 passthrough smq 0", "", "/dev/mapper/secret"),
    ],
)
def test_mappings_that_cannot_be_reloaded_are_not_touched(rack, table, uuid, path):
    """``dmsetup table`` shows no key of dm-crypt: a volume that was loaded with what it prints would be garbage."""
    rack.converge(DriveSpec(HDD, "disabled", persistent=False))
    mapped(rack, "secret", table, uuid=uuid)
    refuse(rack, Refused, f"{path} was created while the cache was disabled, and drops flushes.*allow_ignored_flushes: true", DriveSpec(HDD, "enabled"))
    outcome = rack.converge(DriveSpec(HDD, "enabled", allow_ignored_flushes=True))
    assert attributes(outcome) == ["boot_rule", "write_cache"]
    assert rack.loaded_again == []
    assert not rack.converge(DriveSpec(HDD, "enabled", allow_ignored_flushes=True)).changed


def test_mappings_above_flashcache_are_not_reloaded(rack):
    below_flashcache(rack)
    mapped(rack, "vg-data", "0 2048 linear 253:0 0", ("dm-0",))
    rack.converge(DriveSpec(HDD, "enabled", allow_ignored_flushes=True))
    assert rack.loaded_again == []


def test_rejected_table_fails_with_the_device_name(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    mapped(rack, "vg-data", "0 2048 linear 8:0 2048")
    rack.refused_tables.add("vg-data")
    with pytest.raises(StorageError, match=r"/dev/vg/data continues as before; see dmesg for the reason.*the write cache of .* was disabled again"):
        rack.converge(DriveSpec(HDD, "enabled"))
    # Nothing that drops flushes is above a cache that is on.
    assert rack.converge(DriveSpec(HDD, "enabled"), check_mode=True).steps[0].attribute == "write_cache"


def test_cache_that_the_kernel_does_not_take_is_disabled_again(rack, monkeypatch):
    rack.converge(DriveSpec(HDD, "disabled"))

    def refused(_self, setting):
        if setting.value == "enabled":
            raise CommandFailed("The kernel refused 'write back'.", item=setting.item)

    monkeypatch.setattr(providers.AtaProvider, "align_kernel", refused)
    with pytest.raises(CommandFailed, match=r"refused 'write back'\. The kernel sends no flush .*: the write cache of .* was disabled again\."):
        rack.converge(DriveSpec(HDD, "enabled"))
    assert rack.drives["sda"].on is False


@pytest.mark.parametrize(("before", "after"), [("disabled", "enabled"), ("enabled", "disabled")])
def test_full_or_read_only_file_system_at_any_change_leaves_no_cache_on_that_drops_flushes(tmp_path, monkeypatch, before, after):
    numbers = itertools.count()

    def fresh():
        machine = Machine(tmp_path / str(next(numbers)), monkeypatch)
        machine.add("sda", link=HDD, serial="HDD0", rotational=True)
        machine.converge(DriveSpec(HDD, before))
        mapped(machine, "vg-data", "0 2048 linear 8:0 2048")
        return machine

    def check(machine):
        above = next((machine.root / "sys/class/block").glob("dm-*")) / "queue/write_cache"
        assert not machine.drives["sda"].on or above.read_text() == "write back\n"

    strike_everywhere(fresh, lambda machine: machine.converge(DriveSpec(HDD, after)), check)


@pytest.mark.parametrize("words", [("/usr/sbin/vblade", "-d", "0", "1", "eth1", "{}"), ("/usr/bin/python3", "/usr/sbin/vblade", "0", "1", "eth1", "{}")])
@pytest.mark.parametrize("served", [HDD, "/dev/sda", "/dev/sda1"])
def test_write_cache_below_running_aoe_target_is_refused(rack, words, served):
    rack.host.partition("sda", 1)
    cmdline = "\0".join(words).format(served) + "\0"
    rack.host.write("proc/4711/cmdline", cmdline)
    (rack.root / "proc/4711/cwd").symlink_to(rack.root)
    refuse(rack, Refused, "the AoE target vblade", DriveSpec(HDD, "enabled"))
    assert rack.converge(DriveSpec(SSD, "enabled")).changed


def test_unrelated_processes_naming_the_drive_are_ignored(rack):
    rack.host.write("proc/4711/cmdline", "grep\0vblade\0x\0/dev/sda\0".replace("vblade", "-r"))
    rack.host.write("proc/4712/cmdline", "")
    assert rack.converge(DriveSpec(HDD, "enabled")).changed


# Multipath.


def test_multipath_drive_is_one_drive_and_kernel_must_agree_on_both_paths(machine):
    first = machine.add("sda", "sas", "/dev/disk/by-path/sas-1", serial="5000c500", wwn="0x5000c500")
    machine.add("sdb", "sas", "/dev/disk/by-path/sas-2", serial="5000c500", wwn="0x5000c500", drive=first)
    machine.add("dm-0", "virtual", SAS, dm_name="mpatha", dm_uuid="mpath-35000c500", slaves=("sda", "sdb"))
    spec = DriveSpec(SAS, "disabled")
    machine.converge(spec)
    assert machine.writes == [("sdb", "rescan", "1"), ("sda", "cache_type", "write through")]
    assert (machine.root / "sys/class/block/sdb/queue/write_cache").read_text().strip() == "write through"
    assert 'ENV{ID_SERIAL_SHORT}=="5000c500"' in machine.rules
    assert machine.converge(spec).changed is False
    with pytest.raises(BadInput, match="same drive"):
        machine.converge(DriveSpec("/dev/disk/by-path/sas-1", "disabled"), DriveSpec("/dev/disk/by-path/sas-2", "disabled"))


def test_scsi_rule_ignores_change_events(rack):
    # Over two paths each MODE SELECT is announced on the other path: rules on "change" would answer each other for ever.
    rack.converge(DriveSpec(SAS, "disabled"))
    assert 'ACTION=="add", SUBSYSTEM=="block"' in rack.rules
    assert "add|change" not in rack.rules


def test_result_reports_the_provider(rack):
    specs = [DriveSpec(device, "disabled") for device in ALL]
    layer = DriveWriteCacheLayer(rack.runner, specs, rack.root)
    drives = layer.facts(layer.read())["drives"]
    assert [drive["provider"] for drive in drives] == ["ata", "ata", "scsi", "nvme", "virtio"]
    assert drives[0] == {"device": HDD, "name": "sda", "provider": "ata", "drive": "enabled", "kernel": "write back", "boot_rule": None}


@pytest.mark.parametrize(("word", "contradicts"), [("true", True), ("false", False)])
def test_udisks_that_switches_the_cache_back_is_reported(rack, tmp_path, word, contradicts):
    (tmp_path / "etc/udisks2").mkdir(parents=True)
    (tmp_path / "etc/udisks2/SEAGATE-X-HDD0.conf").write_text(f"[ATA]\nWriteCacheEnabled={word}\n")
    for warnings in (
        rack.converge(DriveSpec(HDD, "disabled"), DriveSpec(SSD, "disabled"), check_mode=True).warnings,
        rack.converge(DriveSpec(HDD, "disabled"), DriveSpec(SSD, "disabled")).warnings,
    ):
        assert len(warnings) == contradicts
        assert not contradicts or f"udisks2 sets write_cache of {HDD} when it starts" in warnings[0]
    assert rack.converge(DriveSpec(HDD, "disabled", persistent=False)).warnings == ()
