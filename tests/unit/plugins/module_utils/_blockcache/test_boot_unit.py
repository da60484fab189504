# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd: what stands in them, and that a kill or a power cut leaves either the old or the new one."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner
from ansible_collections.cachefleet.storage.tests.unit.support.unit_links import disable_unit, enable_unit

NAME = boot_unit.unit_name("dm_cache", "images")


@pytest.fixture
def systemd(tmp_path):
    """systemctl, as far as it makes and takes links."""
    folder = tmp_path / boot_unit.FOLDER

    def systemctl(words):
        if words[1] == "enable":
            enable_unit(folder, words[2])
        if words[1] == "disable":
            disable_unit(folder, words[2])
        return Reply()

    return ScriptedRunner({("systemctl",): systemctl})


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        # As systemd-escape --path --suffix=device printed them.
        ("/dev/disk/by-id/ata-VIRTUAL_HDD_NODE1-HDD0", r"dev-disk-by\x2did-ata\x2dVIRTUAL_HDD_NODE1\x2dHDD0.device"),
        ("/dev/disk/by-id/md-uuid-1:2", r"dev-disk-by\x2did-md\x2duuid\x2d1:2.device"),
        ("/dev/vg0/a+b", r"dev-vg0-a\x2bb.device"),
        ("/dev/mapper/über", r"dev-mapper-\xc3\xbcber.device"),
        ("/.hidden/x", r"\x2ehidden-x.device"),
    ],
)
def test_device_unit_name_is_escaped(path, unit):
    assert boot_unit.device_unit(path) == unit


def test_command_arguments_are_quoted_without_substitution():
    line = boot_unit.command_line(["-/sbin/dmsetup", "create", "a%b$c", "0 8 linear /dev/x 0", 'a"b\\'], "images")
    assert line == r'-/sbin/dmsetup create "a%%b$$c" "0 8 linear /dev/x 0" "a\"b\\"'


def test_line_break_in_argument_is_rejected():
    with pytest.raises(BadInput, match="cannot be written into a systemd unit"):
        boot_unit.command_line(["/sbin/dmsetup", "a\nExecStart=/bin/x"], "images")


def test_rendered_unit_text():
    text = boot_unit.render(
        "images 100%",
        ["/dev/disk/by-id/a"],
        [["/sbin/dmsetup", "create", "images"]],
        [["-/sbin/dmsetup", "remove", "images"]],
        clear=[["-/sbin/dmsetup", "remove", "part"]],
        check=[["/usr/sbin/cache_check", "/dev/mapper/meta"]],
        absent="/dev/mapper/images",
        note='{"a": 1}',
        late=True,
        item="images",
    )
    assert (
        text
        == r"""# Written by cachefleet.storage for the cache images: change the inventory, not this file.
# Note: {"a": 1}
[Unit]
Description=images 100%%
DefaultDependencies=no
ConditionPathExists=!/dev/mapper/images
Requires=dev-disk-by\x2did-a.device
After=dev-disk-by\x2did-a.device
Wants=local-fs-pre.target
Before=local-fs-pre.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutSec=infinity
ExecStartPre=/usr/sbin/cache_check /dev/mapper/meta
ExecStart=/sbin/dmsetup create images
ExecStop=-/sbin/dmsetup remove images
ExecStopPost=-/sbin/dmsetup remove part

[Install]
WantedBy=dev-disk-by\x2did-a.device sysinit.target
"""
    )
    assert boot_unit.note_of(text) == '{"a": 1}'


def test_unset_fields_are_omitted_from_unit():
    text = boot_unit.render("x", [], [["/bin/true"]], item="x")
    assert "Requires" not in text
    assert "ConditionPathExists" not in text
    assert "After=" not in text
    assert boot_unit.note_of(text) == ""


def test_unit_is_written_enabled_updated_and_removed(tmp_path, systemd):
    boot_unit.write_unit(systemd, NAME, "one\n", tmp_path)
    assert boot_unit.read_unit(NAME, tmp_path) == "one\n"
    boot_unit.write_unit(systemd, NAME, "two\n", tmp_path)
    assert boot_unit.read_unit(NAME, tmp_path) == "two\n"
    assert boot_unit.unit_items("dm_cache", tmp_path) == ["images"]
    assert boot_unit.unit_items("dm", tmp_path) == []
    boot_unit.write_unit(systemd, NAME, "", tmp_path)
    assert boot_unit.read_unit(NAME, tmp_path) == ""
    assert not list((tmp_path / boot_unit.FOLDER).glob("*.service"))
    assert [" ".join(words) for words in systemd.calls] == [
        f"systemctl enable {NAME}",
        "systemctl daemon-reload",
        f"systemctl disable {NAME}",
        "systemctl daemon-reload",
    ]
    boot_unit.write_unit(systemd, NAME, "", tmp_path)
    assert len(systemd.calls) == 4


def test_unit_is_started_by_each_of_its_devices_that_comes_late(tmp_path, systemd):
    def links():
        return sorted(link.parent.name for link in (tmp_path / boot_unit.FOLDER).glob(f"*.wants/{NAME}"))

    def write(*devices, late=True):
        text = boot_unit.render("x", devices, [["/bin/true"]], late=late, item="images")
        boot_unit.write_unit(systemd, NAME, text, tmp_path)
        assert boot_unit.read_unit(NAME, tmp_path) == text

    write(late=False)
    assert links() == ["sysinit.target.wants"]
    write("/dev/disk/by-id/a", "/dev/disk/by-id/b")
    assert links() == [r"dev-disk-by\x2did-a.device.wants", r"dev-disk-by\x2did-b.device.wants", "sysinit.target.wants"]
    write("/dev/disk/by-id/a", "/dev/disk/by-id/c")
    assert links() == [r"dev-disk-by\x2did-a.device.wants", r"dev-disk-by\x2did-c.device.wants", "sysinit.target.wants"]
    (tmp_path / boot_unit.FOLDER / r"dev-disk-by\x2did-c.device.wants" / NAME).unlink()
    assert boot_unit.read_unit(NAME, tmp_path) == "", "killed while it was enabled"
    write("/dev/disk/by-id/a", "/dev/disk/by-id/c")
    write("/dev/disk/by-id/a", "/dev/disk/by-id/c", late=False)
    assert links() == ["sysinit.target.wants"]
    write("/dev/disk/by-id/a")
    boot_unit.write_unit(systemd, NAME, "", tmp_path)
    assert links() == []
    assert not [words for words in systemd.calls if words[1] == "disable"][:-1], "never without the cache at boot"


def test_written_but_not_enabled_unit_is_treated_as_missing(tmp_path, systemd):
    systemd.replies = {("systemctl",): Reply(rc=1, stderr="Failed to enable unit")}
    with pytest.raises(CommandFailed, match="Failed to enable unit"):
        boot_unit.write_unit(systemd, NAME, "one\n", tmp_path)
    assert boot_unit.read_unit(NAME, tmp_path) == ""
    assert boot_unit.stored_unit(NAME, tmp_path) == "one\n"


def test_dangling_enable_link_is_removed_if_systemctl_fails(tmp_path, systemd):
    boot_unit.write_unit(systemd, NAME, "one\n", tmp_path)
    (tmp_path / boot_unit.FOLDER / NAME).unlink()
    systemd.replies = {("systemctl", "disable"): Reply(rc=1), ("systemctl", "daemon-reload"): Reply()}
    boot_unit.write_unit(systemd, NAME, "", tmp_path)
    assert not (tmp_path / boot_unit.FOLDER / "sysinit.target.wants" / NAME).is_symlink()


def test_plus_sign_in_unit_name_is_escaped(tmp_path, systemd):
    name = boot_unit.unit_name("dm_cache", "a+b-c.d_e")
    assert name == r"cachefleet-dm_cache-a\x2bb-c.d_e.service"
    boot_unit.write_unit(systemd, name, "one\n", tmp_path)
    assert boot_unit.unit_items("dm_cache", tmp_path) == ["a+b-c.d_e"]


def test_unit_is_started(systemd):
    boot_unit.mark_started(systemd, NAME)
    assert systemd.calls == [("systemctl", "start", NAME)]


def test_unit_is_started_also_if_systemd_takes_it_for_started(systemd):
    boot_unit.start_again(systemd, NAME)
    assert systemd.calls == [("systemctl", "restart", NAME)]
