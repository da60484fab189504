# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The udev rules file: keys, escaping, and that lines of other drives stay."""

from __future__ import annotations

import pathlib
import stat

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.udev_rule import RuleKey

HDD = {"ID_SERIAL_SHORT": "HDD0", "ID_SERIAL": "ST1_HDD0", "ID_WWN": "0x5000c500", "ID_WWN_WITH_EXTENSION": "0x5000c500"}


def line(key, off=0):
    return udev_rule.rule_line(key, "sd*", "add|change", udev_rule.run_program("/usr/sbin/hdparm", f"-q -W{off} $devnode", "x"))


@pytest.mark.parametrize(
    ("properties", "others", "key"),
    [
        (HDD, {"ID_SERIAL_SHORT": "HDD1"}, RuleKey("ID_SERIAL_SHORT", "HDD0")),
        # Two drives with one serial.
        (HDD, {"ID_SERIAL_SHORT": "HDD0", "ID_WWN": "0x1"}, RuleKey("ID_WWN_WITH_EXTENSION", "0x5000c500")),
        # As virtio has it.
        ({"ID_SERIAL": "VIRT0"}, {}, RuleKey("ID_SERIAL", "VIRT0")),
    ],
)
def test_rule_key_is_serial_or_wwn_if_serial_is_ambiguous(properties, others, key):
    assert udev_rule.choose_key(properties, [others], "x") == key


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"ID_SERIAL_SHORT": "SSD0", "ID_SERIAL": "A_SSD0"}, r"another drive of this host has the same ID_SERIAL_SHORT=SSD0.*persistent: false"),
        ({"ID_BUS": "ata"}, "no serial number and no WWN"),
    ],
)
def test_indistinguishable_drive_gets_no_rule(properties, message):
    with pytest.raises(BadInput, match=message):
        udev_rule.choose_key(properties, [dict(properties)], "/dev/disk/by-path/x")


@pytest.mark.parametrize("serial", ['A"B', "A B", "$env{PATH}", "%k", "A*", "A?", "[AB]", "A|B", "A\\B", "A\nB", "A'B", "A{B}", "ä"])
def test_unsafe_serial_is_never_used_in_a_rule(serial):
    assert udev_rule.choose_key({"ID_SERIAL_SHORT": serial, "ID_WWN": "0x5"}, [], "x") == RuleKey("ID_WWN", "0x5")
    with pytest.raises(BadInput, match="cannot be written safely into a udev rule"):
        udev_rule.choose_key({"ID_SERIAL_SHORT": serial}, [], "x")


def test_rule_matches_whole_disks_by_key_including_beyond_sdz():
    assert line(RuleKey("ID_SERIAL_SHORT", "HDD0")) == (
        'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="sd*", ENV{ID_SERIAL_SHORT}=="HDD0", RUN+="/usr/sbin/hdparm -q -W0 $devnode"'
    )


@pytest.mark.parametrize("program", ["hdparm", "/opt/my tools/hdparm", '/x"y', "/x/$devnode"])
def test_program_with_unsafe_path_is_rejected(program):
    with pytest.raises(BadInput, match="cannot be written into a udev rule"):
        udev_rule.run_program(program, "-q", "x")


def test_rules_of_other_drives_are_kept_and_sorted():
    first, second = RuleKey("ID_SERIAL_SHORT", "A"), RuleKey("ID_SERIAL_SHORT", "B")
    text = udev_rule.with_line(udev_rule.with_line("", [second], line(second)), [first], line(first))
    assert [one for one in text.splitlines() if not one.startswith("#")] == [line(first), line(second)]
    changed = udev_rule.with_line(text, [first], line(first, 1))
    assert udev_rule.lines_for(changed, [first]) == (line(first, 1),)
    assert udev_rule.lines_for(changed, [second]) == (line(second),)


def test_rule_with_another_key_of_the_same_drive_is_replaced():
    by_wwn = line(RuleKey("ID_WWN", "0x5000c500"), 1)
    key = RuleKey("ID_SERIAL_SHORT", "HDD0")
    text = udev_rule.with_line(by_wwn + "\n", udev_rule.keys_of(HDD), line(key))
    assert udev_rule.lines_for(text, udev_rule.keys_of(HDD)) == (line(key),)
    assert by_wwn not in text


def test_serial_prefix_does_not_match():
    text = line(RuleKey("ID_SERIAL_SHORT", "HDD01")) + "\n"
    assert udev_rule.lines_for(text, [RuleKey("ID_SERIAL_SHORT", "HDD0")]) == ()


def test_file_without_rules_is_removed(tmp_path):
    key = RuleKey("ID_SERIAL_SHORT", "A")
    udev_rule.write_rules(udev_rule.with_line("", [key], line(key)), tmp_path)
    assert (tmp_path / udev_rule.RULES_FILE).exists()
    text = udev_rule.with_line(udev_rule.read_rules(tmp_path), [key], None)
    udev_rule.write_rules(text, tmp_path)
    udev_rule.write_rules(text, tmp_path)
    assert not (tmp_path / udev_rule.RULES_FILE).exists()
    assert udev_rule.read_rules(tmp_path) == ""


def test_file_is_replaced_atomically_and_is_world_readable(tmp_path):
    udev_rule.write_rules("# old\n", tmp_path)
    udev_rule.write_rules("# new\n", tmp_path)
    path = tmp_path / udev_rule.RULES_FILE
    assert path.read_text() == "# new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_file_sorts_after_the_rules_it_depends_on():
    name = pathlib.PurePath(udev_rule.RULES_FILE).name
    assert name > "60-persistent-storage.rules"
    assert name > "85-hdparm.rules"


def test_unwritable_folder_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "etc").write_text("a file where a folder should be")
    with pytest.raises(CommandFailed, match="cannot be written"):
        udev_rule.write_rules("# x\n", tmp_path)
    with pytest.raises(CommandFailed, match="cannot be read"):
        udev_rule.read_rules(tmp_path)


def test_other_rules_files_have_their_own_heading_and_name(tmp_path):
    key = udev_rule.choose_key({"DM_UUID": "LVM-x"}, [], "x", ("DM_UUID",))
    text = udev_rule.with_line("", [key], line(key), ("# other",))
    udev_rule.write_rules(text, tmp_path, "etc/udev/rules.d/other.rules")
    assert udev_rule.read_rules(tmp_path) == ""
    assert udev_rule.read_rules(tmp_path, "etc/udev/rules.d/other.rules") == f"# other\n{line(key)}\n"
    assert udev_rule.with_line(text, (), None, ("# other",), [line(key)]) == ""
