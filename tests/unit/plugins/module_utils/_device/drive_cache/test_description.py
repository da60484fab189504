# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write caches of drives as variables: what is described changes nothing, and what cannot be described is said."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.description import describe
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DRIVE_OPTIONS
from ansible_collections.cachefleet.storage.tests.unit.plugins.module_utils._device.drive_cache.test_layer import (
    HDD,
    NVME,
    RAID,
    SAS,
    SSD,
    VIRTIO,
    Drive,
    Machine,
)


@pytest.fixture
def rack(tmp_path, monkeypatch):
    """One drive of every kind; the cache of the second is off."""
    machine = Machine(tmp_path, monkeypatch)
    machine.add("sda", "sata", HDD, serial="HDD0")
    machine.add("sdaa", "sata", SSD, Drive(on=False), serial="SSD0")
    machine.add("sdb", "sas", SAS, serial="5000c500", wwn="0x5000c500")
    machine.add("nvme0n1", "nvme", NVME, serial="NVME0")
    machine.add("sdc", "raid", RAID, serial="6000raid")
    return machine


def described(machine):
    return describe(machine.runner, read_devices(machine.runner, machine.root), machine.root)


def specs(machine):
    """The entries as the module reads them."""
    found = []
    for entry in described(machine).entries:
        validated = ArgumentSpecValidator(DRIVE_OPTIONS).validate(dict(entry.values))
        assert validated.error_messages == []
        found.append(DriveSpec(**{name: validated.validated_parameters[name] for name in DRIVE_OPTIONS}))
    return found


def test_every_drive_with_a_cache_is_described_and_nothing_changes(rack):
    entries = {entry.values["device"]: entry.values for entry in described(rack).entries}
    assert {device: values["write_cache"] for device, values in entries.items()} == {HDD: "enabled", SSD: "disabled", SAS: "enabled", NVME: "enabled"}
    # No boot rule is there, and none is asked for.
    assert {values["persistent"] for values in entries.values()} == {False}
    assert rack.converge(*specs(rack), check_mode=True).steps == ()


def test_a_boot_rule_that_agrees_is_described_by_its_default(rack):
    rack.converge(DriveSpec(HDD, "disabled"), DriveSpec(SSD, "enabled", persistent=False))
    entries = {entry.values["device"]: entry.values for entry in described(rack).entries}
    assert entries[HDD] == {"device": HDD, "write_cache": "disabled"}
    assert entries[SSD] == {"device": SSD, "write_cache": "enabled", "persistent": False}
    assert rack.converge(*specs(rack), check_mode=True).steps == ()


def test_what_was_changed_by_hand_is_brought_back(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    before, entries = described(rack), specs(rack)
    rack.converge(DriveSpec(HDD, "enabled"), DriveSpec(SAS, "disabled"), DriveSpec(NVME, "disabled", persistent=False))
    assert rack.converge(*entries).changed
    assert described(rack) == before


def test_a_boot_rule_that_disagrees_is_a_note(rack):
    rack.converge(DriveSpec(HDD, "disabled"))
    rack.drives["sda"].on = True
    rack.view("sda", True)
    variable = described(rack)
    assert HDD not in [entry.values["device"] for entry in variable.entries]
    assert any(note.startswith(f"{HDD} is not described: a run would change it: ") for note in variable.notes)


def test_drives_without_a_cache_and_those_of_a_raid_controller_are_not_listed(rack):
    rack.drives["nvme0n1"].vwc = 0
    variable = described(rack)
    assert {NVME, RAID}.isdisjoint(entry.values["device"] for entry in variable.entries)
    assert variable.notes == ()


def test_a_drive_without_a_lasting_path_and_a_missing_tool_are_notes(rack):
    rack.add("sdd", "sata", serial="NOLINK")
    rack.missing = ("sdparm",)
    notes = described(rack).notes
    assert any("The write cache of /dev/sdd is not described: the drive has no persistent path; the cache is enabled." in note for note in notes)
    assert any(note.startswith(f"The write cache of {SAS} could not be read: ") and "sdparm" in note for note in notes)


def test_a_cache_below_a_layer_without_flushes_carries_its_permission(rack):
    name = "dm-0"
    rack.add("vda", "virtio", VIRTIO, serial="VIRT0")
    place = rack.host.disk(name, "virtual", size=1 << 30)
    (place / "dm").mkdir(exist_ok=True)
    (place / "dm/name").write_text("fc0\n")
    (place / "slaves").mkdir(exist_ok=True)
    (place / "slaves/sda").mkdir()
    holders = (rack.root / "sys/class/block/sda").resolve() / "holders"
    holders.mkdir(exist_ok=True)
    (holders / name).mkdir()
    entries = {entry.values["device"]: entry for entry in described(rack).entries}
    assert entries[HDD].values["allow_ignored_flushes"] is True
    assert "acknowledged writes may be lost" in entries[HDD].notes[0]
    assert "allow_ignored_flushes" not in entries[SSD].values
