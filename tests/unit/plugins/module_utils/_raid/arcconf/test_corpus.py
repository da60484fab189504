# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader of arcconf over captures of real tools, whole and damaged. Skipped where the captures are not beside the checkout."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import ArcConf, parse
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN
from ansible_collections.cachefleet.storage.tests.unit.support.raid_outputs import text_of
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

#: Captures whose upstream authors cut or changed them, and what is to be said of them.
DAMAGED = {
    "getconfig-al_adaptec-6405_18-drives.txt": "has no end",
    "getconfig-al_ibm-serveraid-8i_12-drives.txt": "a second drive 0,0",
    "netdata_getconfig-ld-current.txt": "has no end",
    # Its last volume is missing from the capture, or hidden by the tool: either way, not all are told.
    "getconfig-al_adaptec-6805_31-drives-enclosures.txt": "volumes, and 4 are reported",
    "list_bad-synthetic.txt": "found 3 controllers and reports 1",
}
#: Outputs that describe no controller.
WITHOUT_CONTROLLER = ("getstatus", "getlogs", "help-menu", "uclievt")


@pytest.fixture(scope="session")
def captures(shared_corpus):
    """Every capture of arcconf by its name."""
    return {path.name: text_of(path) for path in sorted((shared_corpus / "arcconf").iterdir())}


@pytest.fixture(scope="session")
def foreign(shared_corpus):
    """Outputs of other tools."""
    folders = ("storcli", "storcli2", "ssacli", "megacli", "mvcli", "smartctl", "nvme")
    return [text_of(path) for name in folders for path in sorted((shared_corpus / name).iterdir())[:6]]


def test_every_capture_is_parsed_and_only_damaged_ones_are_incomplete(captures):
    assert len(captures) == 60
    for name, text in captures.items():
        reading = parse(text)
        assert bool(reading.controllers) is not name.startswith(WITHOUT_CONTROLLER), name
        if name in DAMAGED:
            assert any(DAMAGED[name] in message for message in reading.not_understood), name
            assert any(DAMAGED[name] in message for message in reading.lost) is (DAMAGED[name] != "has no end"), name
        else:
            assert reading.not_understood == (), name
            assert reading.complete, name
            assert reading.lost == (), name


def test_every_volume_and_drive_of_the_captures_is_reported(captures):
    for name, text in captures.items():
        lines = [line.strip().lower() for line in text.splitlines()]
        volumes = sum(line.startswith(("logical device number", "logical drive number")) for line in lines)
        drives = lines.count("device is a hard drive")
        found = parse(text).controllers
        assert sum(len(one.volumes) for one in found) == volumes, name
        assert sum(len(one.drives) for one in found) == drives, name


def test_drive_address_is_the_reported_one_not_the_list_index(captures):
    other = 0
    for text in captures.values():
        for controller in parse(text).controllers:
            other += any(drive.address != f"0,{index}" for index, drive in enumerate(controller.drives))
    assert other > 10


def test_members_are_drives_of_the_complete_configuration(captures):
    joined = 0
    for name, text in captures.items():
        if not name.startswith("getconfig-al") or name in DAMAGED:
            continue
        for controller in parse(text).controllers:
            addresses = {drive.address for drive in controller.drives}
            for volume in controller.volumes:
                assert volume.members, name
                assert set(volume.members) <= addresses, name
                joined += 1
    assert joined > 20


def test_generations_of_the_captures(captures):
    for name, text in captures.items():
        if not name.startswith("getconfig-al"):
            continue
        smart = "smartraid" in name or "hba1100" in name
        (one,) = parse(text).controllers
        assert (one.traits["generation"], one.driver) == (("smart", "smartpqi") if smart else ("aacraid", "aacraid")), name


def test_unprotected_writeback_is_detected(captures):
    for name in ("getconfig-al_adaptec-6405_zmm-not-installed-wb.txt", "getconfig-al_asr71605_drive-specific-unprotected-wb.txt"):
        (one,) = parse(captures[name]).controllers
        assert one.protection.health == "missing"
        assert one.volumes[0].write.effective == "writeback_always"


def test_controller_parts_are_joined_into_one_reading(captures):
    runner = ScriptedRunner(
        {
            ("arcconf", "LIST"): Reply(captures["list_hba1100-16i.txt"]),
            ("arcconf", "GETCONFIG"): Reply(captures["getconfig-al_hba1100-16i_hba-mode.txt"]),
        }
    )
    reading = ArcConf(t.cast("t.Any", runner), "arcconf").read()
    (one,) = reading.controllers
    assert (one.id, one.mode, one.pci_address, len(one.drives), len(runner.calls)) == ("1", "hba", "0000:d9:00.0", 7, 2)


def test_output_of_other_tools_is_rejected(foreign):
    for text in foreign:
        reading = parse(text)
        assert reading.controllers == ()
        assert not reading.complete
        assert reading.not_understood


def test_truncated_output_is_never_complete(captures):
    for name, text in captures.items():
        if name.startswith("getconfig"):
            body = text.rstrip()
            for part in (3, 2):
                assert not parse(body[: len(body) // part]).complete, name


def test_missing_line_is_unknown_and_never_off(captures):
    without = ("write-cache", "read-cache", "write cache", "caching", "status", "backup power status", "overall backup unit status")
    for name, text in captures.items():
        left = "".join(line for line in text.splitlines(keepends=True) if not line.strip().lower().startswith(without))
        for one in parse(left).controllers:
            assert one.protection.health == UNKNOWN, name
            assert all(volume.write.configured == volume.write.effective == volume.read.effective == UNKNOWN for volume in one.volumes), name
            assert all(drive.write_cache == UNKNOWN for drive in one.drives), name


def test_lines_of_a_damaged_section_are_not_assigned_to_the_previous_one(captures):
    """A heading that got lost is said, and nothing after it is taken for the object before it."""
    seen = 0
    for name, text in captures.items():
        lines = text.splitlines(keepends=True)
        headings = [index for index, line in enumerate(lines) if line.strip().lower().startswith(("logical device number", "logical drive number", "device #"))]
        whole = {thing for one in parse(text).controllers for thing in (*one.volumes, *one.drives)}
        for index in headings:
            broken = parse("".join([*lines[:index], "      Dexice x\n", *lines[index + 1 :]]))
            things = {thing for one in broken.controllers for thing in (*one.drives, *one.volumes)}
            assert {getattr(thing, "address", None) for thing in things} <= {getattr(thing, "address", None) for thing in whole}, name
            for thing in things:
                if hasattr(thing, "address") and name not in DAMAGED:
                    assert thing in whole, name
            seen += 1
    assert seen > 200
