# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drives that are chosen by match: which entry decides, what udev does at the next boot, also to a drive that comes later, and wrong lists."""

from __future__ import annotations

import fnmatch
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.description import describe
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.match_rule import (
    Reach,
    conditions_of,
    match_of,
    rules_by_match,
    rules_for,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DRIVE_OPTIONS, read_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import read_match
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import checked
from ansible_collections.cachefleet.storage.tests.unit.support.drive_machine import Drive, Machine

INTEL = {"match": {"model": "INTEL SSDSC2*", "transport": "sata"}}
SEAGATE = "/dev/disk/by-id/ata-ST10000_ZA1"
_TERM = re.compile(r'([A-Z]+)(?:\{([^}]+)\})?(==|!=)"([^"]*)"')


def link(serial):
    return f"/dev/disk/by-id/ata-INTEL_SSDSC2KB960G8_{serial}"


def add_intel(machine, name, serial, drive=None, model="INTEL_SSDSC2KB960G8"):
    return machine.add(name, "sata", link(serial), drive, serial=serial, model=model.replace("_", " ")[:16], ID_MODEL=model, ID_ATA="1")


def converge(machine, *entries, check_mode=False):
    options = {"drives": {"type": "list", "elements": "dict", "options": DRIVE_OPTIONS}}
    return machine.converge(*read_specs(checked("drives", options, {"drives": list(entries)})["drives"]), check_mode=check_mode)


def attributes(outcome):
    return [step.attribute for step in outcome.steps]


def boot(machine, name):
    """The effects of the rules on a drive that appears, as udev(7) compares them: the properties and attributes that it has."""
    place = (machine.root / "sys/class/block" / name).resolve()
    record = next(one for one in machine.host.records if f"DEVNAME=/dev/{name}\n" in f"{one}\n" or f"/{name}\n" in one.splitlines()[0] + "\n")
    properties = dict(line[3:].split("=", 1) for line in record.splitlines() if line.startswith("E: "))
    values = {"ACTION": "add", "SUBSYSTEM": "block", "KERNEL": name, "DEVPATH": "/" + str(place.relative_to(machine.root / "sys"))}

    def found(key, argument):
        if key == "ENV":
            return properties.get(argument, "")
        path = place / argument
        return path.read_text().strip() if key == "ATTR" and path.is_file() else values.get(key, "")

    effects = []
    for rule in machine.rules.splitlines():
        terms = _TERM.findall(rule) if not rule.startswith("#") else []
        if terms and all(any(fnmatch.fnmatchcase(found(key, name), one) for one in value.split("|")) == (sign == "==") for key, name, sign, value in terms):
            effects.append(rule.rsplit(", ", 1)[-1])
    return effects


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Three SSDs of one model and a disk of another."""
    found = Machine(tmp_path, monkeypatch)
    for number, name in enumerate(("sda", "sdb", "sdc")):
        add_intel(found, name, f"BTYF{number}")
    found.add("sdd", "sata", SEAGATE, serial="ZA1", model="ST10000NM0086", ID_MODEL="ST10000NM0086-2AA101", ID_ATA="1", rotational=True)
    return found


OFF = ['RUN+="/usr/sbin/hdparm -q -W0 $devnode"']
ON = ['RUN+="/usr/sbin/hdparm -q -W1 $devnode"']


def test_all_drives_of_a_model_are_disabled_by_one_entry_and_one_rule(machine):
    assert attributes(converge(machine, {**INTEL, "write_cache": "disabled"})) == ["write_cache"] * 3 + ["match_rules"]
    assert [drive.on for drive in machine.drives.values()] == [False, False, False, True]
    assert len(rules_by_match(machine.rules)) == 1
    assert "BTYF" not in machine.rules
    assert converge(machine, {**INTEL, "write_cache": "disabled"}).changed is False
    assert [boot(machine, name) for name in ("sda", "sdb", "sdc", "sdd")] == [OFF, OFF, OFF, []]


def test_a_swapped_drive_is_disabled_at_its_next_boot_and_by_the_next_run(machine):
    converge(machine, {**INTEL, "write_cache": "disabled"})
    add_intel(machine, "sde", "NEW9", model="intel_SSDSC2KB019T8")
    rules = machine.rules
    assert boot(machine, "sde") == OFF
    assert attributes(converge(machine, {**INTEL, "write_cache": "disabled"})) == ["write_cache"]
    assert machine.rules == rules


def test_enabled_is_written_for_each_examined_drive_and_a_later_one_is_reported(machine):
    machine.drives["sda"].on = False
    machine.view("sda", False)
    entry = {**INTEL, "write_cache": "enabled"}
    assert attributes(converge(machine, entry)) == ["boot_rule", "write_cache", "boot_rule", "boot_rule"]
    assert rules_by_match(machine.rules) == []
    assert boot(machine, "sdb") == ON
    add_intel(machine, "sde", "NEW9", Drive(on=False))
    assert boot(machine, "sde") == []
    assert attributes(converge(machine, entry, check_mode=True)) == ["boot_rule", "write_cache"]


def test_device_beats_match_and_later_matches_beat_earlier_ones(machine):
    entries = (
        {"device": link("BTYF1"), "write_cache": "enabled"},
        {"match": {"transport": "sata"}, "write_cache": "disabled"},
        {"match": {"rotational": True}, "write_cache": "enabled"},
    )
    outcome = converge(machine, *entries)
    assert sorted(drive.name for drive in outcome.state) == ["sda", "sdb", "sdc", "sdd"]
    assert {name: drive.on for name, drive in machine.drives.items()} == {"sda": False, "sdb": True, "sdc": False, "sdd": True}
    # No rule switches off at boot what another entry enables, not even for a moment.
    assert [boot(machine, name) for name in ("sda", "sdb", "sdc", "sdd")] == [OFF, ON, OFF, ON]
    assert converge(machine, *entries).changed is False
    assert {name: drive.on for name, drive in machine.drives.items()} == {"sda": False, "sdb": True, "sdc": False, "sdd": True}


def test_rules_by_match_follow_the_list(machine):
    converge(machine, {"device": link("BTYF0"), "write_cache": "disabled"})
    assert "BTYF0" in machine.rules
    converge(machine, {**INTEL, "write_cache": "disabled"})
    assert "BTYF0" not in machine.rules
    assert attributes(converge(machine, {**INTEL, "write_cache": "disabled", "persistent": False})) == ["match_rules"]
    assert machine.rules == ""


def test_a_list_without_match_keeps_the_rules_by_match_and_excepts_its_drives_until_they_are_disabled_again(machine):
    converge(machine, {**INTEL, "write_cache": "disabled"})
    rules = machine.rules
    own = {"device": link("BTYF1"), "write_cache": "disabled"}
    assert converge(machine, own).changed is False
    converge(machine, {**own, "write_cache": "enabled", "persistent": False}, {"device": link("BTYF2"), "write_cache": "enabled"})
    assert [boot(machine, name) for name in ("sda", "sdb", "sdc")] == [OFF, [], ON]
    converge(machine, own, {"device": link("BTYF2"), "write_cache": "disabled"})
    assert machine.rules == rules


def test_a_rule_stays_while_all_of_its_drives_are_out_and_nothing_is_written_for_a_match_without_drives(machine):
    converge(machine, {**INTEL, "write_cache": "disabled"})
    rules = machine.rules
    for name in ("sda", "sdb", "sdc"):
        machine.host.write(f"sys/class/block/{name}/size", "0\n")
    other = {"match": {"model": "SAMSUNG*"}, "write_cache": "disabled"}
    outcome = converge(machine, {**INTEL, "write_cache": "disabled"}, other, {"device": SEAGATE, "write_cache": "enabled", "persistent": False})
    assert outcome.warnings == (
        "drive_write_cache_drives: the match of entry 1 matches no device of this host.",
        "drive_write_cache_drives: the match of entry 2 matches no device of this host.",
    )
    assert (outcome.changed, machine.rules) == (False, rules)


def test_a_match_that_udev_cannot_compare_has_a_rule_for_each_drive(machine):
    entry = {"match": {"rotational": False, "size_min": "1MiB"}, "write_cache": "disabled"}
    assert attributes(converge(machine, entry)) == ["write_cache", "boot_rule"] * 3
    assert rules_by_match(machine.rules) == []
    assert boot(machine, "sda") == OFF
    assert converge(machine, entry).changed is False


def test_a_drive_without_a_serial_number_is_disabled_by_match_and_cannot_be_excepted(machine):
    machine.add("sde", "sata", "/dev/disk/by-id/ata-nameless", model="INTEL SSDSC2KB96", ID_MODEL="INTEL_SSDSC2KB960G8", ID_ATA="1")
    converge(machine, {**INTEL, "write_cache": "disabled"})
    assert boot(machine, "sde") == OFF
    with pytest.raises(BadInput, match=r"^drive_write_cache_drives: the match of entry 1 has a boot rule that would disable the cache of a drive that another"):
        converge(
            machine,
            {**INTEL, "write_cache": "disabled"},
            {"device": "/dev/disk/by-id/ata-nameless", "write_cache": "enabled", "persistent": False},
        )


def test_behind_a_sas_adapter_and_nvme(machine):
    machine.add("sdf", "sas", "/dev/disk/by-id/scsi-35000c500", serial="5000c500", wwn="0x5000c500", model="ST600MM0006", ID_MODEL="ST600MM0006")
    machine.host.write("sys/class/block/sdf/device/vendor", "SEAGATE \n")
    machine.add("nvme0n1", "nvme", "/dev/disk/by-id/nvme-FAST_1", serial="1", model="FAST SSD", ID_MODEL="FAST SSD")
    machine.host.write("sys/class/block/nvme0n1/device/transport", "pcie\n")
    machine.add("vdb", "virtio", "/dev/disk/by-id/virtio-V", ID_SERIAL="V")
    entry = {"match": {"transport": ["sas", "nvme", "virtio"]}, "write_cache": "disabled"}
    converge(machine, entry)
    assert [drive.on for drive in machine.drives.values()] == [True] * 4 + [False] * 3
    assert len(rules_by_match(machine.rules)) == 3
    assert boot(machine, "sdf") == ['ATTR{device/scsi_disk/*/cache_type}="write through"']
    assert boot(machine, "nvme0n1")[0].endswith('--feature-id=6 --value=0"')
    assert boot(machine, "vdb") == ['ATTR{cache_type}="write through"']
    assert boot(machine, "sda") == []
    assert converge(machine, entry).changed is False


def test_a_permission_is_refused_in_an_entry_with_match(machine):
    with pytest.raises(BadInput, match=r"^drive_write_cache_drives: entry 2 has allow_ignored_flushes and match, but a permission is for one device"):
        converge(machine, {"device": SEAGATE, "write_cache": "disabled"}, {**INTEL, "write_cache": "enabled", "allow_ignored_flushes": True})


@pytest.mark.parametrize("entry", [{"write_cache": "disabled"}, {**INTEL, "device": SEAGATE, "write_cache": "disabled"}])
def test_an_entry_has_a_device_or_a_match(machine, entry):
    with pytest.raises(BadInput, match=r"^drive_write_cache_drives: entry 2 has (neither device nor|device and) match: set one of them, for example match: "):
        converge(machine, OTHER, entry)


def test_drives_of_two_kinds_are_refused_by_entry_and_nothing_changes(machine):
    machine.add("nvme0n1", "nvme", "/dev/disk/by-id/nvme-PLP_1", Drive(vwc=0), serial="1", model="PLP", ID_MODEL="PLP")
    entry = {"match": {"rotational": False}, "write_cache": "enabled"}
    with pytest.raises(
        BadInput, match=r"nvme-PLP_1 has no volatile write cache .* chosen by the match of entry 1 of drive_write_cache_drives: narrow the match"
    ):
        converge(machine, entry)
    machine.add("sdx", "raid", "/dev/disk/by-id/scsi-36000raid", serial="6000raid")
    with pytest.raises(BadInput, match=r"belongs to the RAID controller .* chosen by the match of entry 1 of drive_write_cache_drives"):
        converge(machine, {"match": {}, "write_cache": "disabled"})
    assert all(drive.on for drive in machine.drives.values())
    assert machine.rules == ""


def test_a_match_never_enables_a_cache_below_what_ignores_flushes(machine):
    machine.drives["sda"].on = False
    machine.view("sda", False)
    machine.host.disk("dm-0", "virtual", dm_name="fc0", slaves=("sda",))
    machine.dm_tables = ["fc0: 0 100 flashcache conf:\n"]
    with pytest.raises(Refused, match=r"flashcache.* chosen by the match of entry 1 of drive_write_cache_drives"):
        converge(machine, {**INTEL, "write_cache": "enabled"})


@pytest.mark.parametrize(
    "match",
    [{}, {"transport": ["sata"], "model": ["INTEL SSDSC2*", "MZ7??96"]}, {"rotational": True}, {"model": ["A/B (1,2)+=:@-_."], "rotational": False}],
)
def test_a_rule_carries_its_match(match):
    read = read_match(match, 1)
    assert conditions_of(read) is not None
    (line,) = rules_for(read, [Reach("HEAD", "", None, "sata", "EFFECT", None)])
    assert read_match(match_of(line), 1) == read


@pytest.mark.parametrize(
    "match", [{"model": ["a[bc]*"]}, {"model": ['x", RUN+="sh']}, {"model": ["a|b"]}, {"model": ["$x"]}, {"serial": ["A*"]}, {"kind": ["md"]}]
)
def test_what_udev_would_read_otherwise_is_not_written(match):
    assert conditions_of(read_match(match, 1)) is None


def described(machine):
    devices = read_devices(machine.runner, machine.root)
    return [entry.values for entry in describe(machine.runner, devices, machine.root, by_match=True).entries]


SAME = {"match": {"model": "INTEL SSDSC2KB960G8", "transport": "sata"}, "write_cache": "enabled", "persistent": False}
OTHER = {"device": SEAGATE, "write_cache": "enabled", "persistent": False}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((), [SAME, OTHER]),
        (({"match": {"model": "INTEL*"}, "write_cache": "disabled"},), [{"match": {"model": "INTEL*"}, "write_cache": "disabled"}, OTHER]),
        (({"match": {"model": ["INTEL*", "ST*"]}, "write_cache": "disabled"},), [{"match": {"model": ["INTEL*", "ST*"]}, "write_cache": "disabled"}]),
        (
            ({**INTEL, "write_cache": "disabled"}, {"device": link("BTYF1"), "write_cache": "enabled"}),
            [{**INTEL, "write_cache": "disabled"}, {"device": link("BTYF1"), "write_cache": "enabled"}, OTHER],
        ),
        (({**INTEL, "write_cache": "enabled"},), [{key: value for key, value in SAME.items() if key != "persistent"}, OTHER]),
        (({"device": link("BTYF0"), "write_cache": "disabled", "persistent": False},), None),
    ],
)
def test_describe_offers_an_entry_by_match_and_a_run_with_it_changes_nothing(machine, entries, expected):
    converge(machine, *entries)
    found = described(machine)
    # Drives of one model that do not agree are named one by one.
    assert found == expected if expected else [one for one in found if "match" in one] == []
    assert converge(machine, *found, check_mode=True).steps == ()


def test_without_by_match_every_drive_is_named_and_a_run_changes_nothing(machine):
    converge(machine, {**INTEL, "write_cache": "disabled"})
    entries = [entry.values for entry in describe(machine.runner, read_devices(machine.runner, machine.root), machine.root).entries]
    assert [one["device"] for one in entries] == [link("BTYF0"), link("BTYF1"), link("BTYF2"), SEAGATE]
    assert converge(machine, *entries, check_mode=True).steps == ()


@pytest.mark.parametrize(("hosts", "drives"), [(1, 24), (12, 12), (300, 2)])
def test_a_fleet_needs_no_serial_number_and_a_second_run_changes_nothing(tmp_path, monkeypatch, hosts, drives):
    group = ({**INTEL, "write_cache": "disabled"}, {"match": {"rotational": True}, "write_cache": "enabled"})
    files = set()
    for number in range(hosts):
        machine = Machine(tmp_path / str(number), monkeypatch)
        for place in range(drives):
            serial, name = f"H{number}D{place}", f"sd{chr(97 + place)}"
            if place % 2:
                machine.add(
                    name, "sata", f"{SEAGATE}{serial}", Drive(on=False), serial=serial, model="ST10000NM0086", ID_MODEL="ST10000NM0086", rotational=True
                )
            else:
                add_intel(machine, name, serial)
        converge(machine, *group)
        assert [drive.on for drive in machine.drives.values()] == [bool(place % 2) for place in range(drives)]
        assert converge(machine, *group).changed is False
        add_intel(machine, "sdz", f"NEW{number}")
        assert boot(machine, "sdz") == OFF
        files.update(rules_by_match(machine.rules))
    # The rule is the same on all of them.
    assert len(files) == 1


def test_namespaces_of_a_controller_and_paths_to_a_drive_are_one_drive(machine):
    for number in (1, 2):
        machine.add(f"nvme7n{number}", "nvme", f"/dev/disk/by-id/nvme-FAST_{number}", serial="F", model="FAST", ID_MODEL="FAST")
    for name in ("sdp", "sdq"):
        machine.add(name, "sas", None, serial="5000c500", wwn="0x5000c500", model="ST600", ID_MODEL="ST600")
    machine.host.disk("dm-3", "virtual", dm_name="mpatha", dm_uuid="mpath-35000c500", slaves=("sdp", "sdq"))
    machine.dm_tables = ["mpatha: 0 100 multipath 0 0 1 1 service-time 0 2 2 8:16 1 1 8:32 1 1\n"]
    outcome = converge(machine, {"match": {"transport": ["nvme", "sas"]}, "write_cache": "disabled", "persistent": False})
    assert [step.attribute for step in outcome.steps] == ["write_cache", "write_cache"]
    # Named by one of its paths, it is not chosen once more.
    named = {"device": "/dev/mapper/mpatha", "write_cache": "disabled", "persistent": False}
    machine.host.link("/dev/mapper/mpatha", "dm-3")
    assert [drive.name for drive in converge(machine, named, {"match": {"transport": ["sas"]}, "write_cache": "enabled"}, check_mode=True).state] == ["sdp"]
