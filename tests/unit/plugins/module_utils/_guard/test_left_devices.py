# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices, indistinct_from

SIZE = 64 * 1024**2
DISK = BlockDevice("sdb", "/dev/sdb", "8:16", size=SIZE, serial="S-B")
FACTS = TargetFacts(target=GuardTarget("/dev/sdb"), path="/dev/sdb", size=SIZE, identity="S-B", device=DISK)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "spool").mkdir()
    (tmp_path / "dev/sdb").write_bytes(b"fio" * 100)
    os.truncate(tmp_path / "dev/sdb", SIZE)
    return tmp_path


def campaign(root, name="c1"):
    return LeftDevices(root / "spool", name)


def unchanged(root, name="c1"):
    return campaign(root, name).is_unchanged(FACTS, root)


def test_device_released_by_fio_is_writable_by_every_campaign(root):
    assert not unchanged(root), "nothing is known of it"
    campaign(root).begin(FACTS)
    campaign(root).leave(FACTS, root)
    assert unchanged(root)
    assert unchanged(root, "c2")


@pytest.mark.parametrize("offset", [0, 1024**2 - 1, 1024**2, SIZE // 2 + 4711, SIZE - 1])
def test_device_changed_since_release_is_refused(root, offset):
    campaign(root).leave(FACTS, root)
    with open(root / "dev/sdb", "r+b") as node:
        node.seek(offset)
        node.write(b"!")
    assert not unchanged(root)
    assert not unchanged(root, "c2")


def test_only_the_same_campaign_continues_after_a_kill(root):
    campaign(root).leave(FACTS, root)
    campaign(root).begin(FACTS)
    (root / "dev/sdb").write_bytes(b"more")
    os.truncate(root / "dev/sdb", SIZE)
    assert unchanged(root)
    assert not unchanged(root, "c2")


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(FACTS, identity="S-C"),
        dataclasses.replace(FACTS, size=SIZE // 2),
        dataclasses.replace(FACTS, device=dataclasses.replace(DISK, dm_uuid="LVM-new")),
        dataclasses.replace(FACTS, identity=None),
        dataclasses.replace(FACTS, device=None),
    ],
    ids=["drive", "size", "a new volume of the same name", "nameless", "file"],
)
def test_record_does_not_apply_to_another_device(root, other):
    campaign(root).begin(FACTS)
    assert not campaign(root).is_unchanged(other, root)
    campaign(root).begin(other)
    campaign(root).leave(other, root)
    assert unchanged(root)


def test_record_of_a_part_of_a_small_device_permits_nothing(root):
    """As one of a sample, which does not show 4 KiB that were written since."""
    campaign(root).leave(FACTS, root)
    file = root / "spool/.left_devices.json"
    rows = json.loads(file.read_text())
    for row in rows.values():
        del row["places"][7]
    file.write_text(json.dumps(rows))
    assert not unchanged(root)


def test_record_does_not_apply_while_the_identity_may_be_of_an_earlier_device(root):
    campaign(root).begin(FACTS)
    assert not campaign(root).is_unchanged(dataclasses.replace(FACTS, unsettled=True), root)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", '{"x": 1}', '{"x": {"campaign": "c1"}}', '{"x": {"campaign": "c1", "places": [[1]]}}', "null"])
def test_damaged_record_permits_nothing(root, text):
    campaign(root).begin(FACTS)
    (root / "spool/.left_devices.json").write_text(text)
    assert not unchanged(root)
    campaign(root).begin(FACTS)
    assert unchanged(root)


def test_device_is_not_written_without_a_record(root):
    os.rmdir(root / "spool")
    with pytest.raises(CommandFailed, match="cannot be written: No such file or directory"):
        campaign(root).begin(FACTS)
    campaign(root).leave(FACTS, root)


def test_unreadable_device_is_not_ours(root):
    campaign(root).leave(FACTS, root)
    (root / "dev/sdb").unlink()
    assert not unchanged(root)
    campaign(root).leave(FACTS, root)
    rows = json.loads((root / "spool/.left_devices.json").read_text())
    assert len(rows) == 1


TWIN = dataclasses.replace(DISK, name="sdc", path="/dev/sdc", number="8:32")


@pytest.mark.parametrize(
    ("device", "other", "found"),
    [
        (DISK, TWIN, ("/dev/sdc",)),
        (DISK, dataclasses.replace(TWIN, size=2 * SIZE), ()),
        (dataclasses.replace(DISK, wwn="0x1"), dataclasses.replace(TWIN, wwn="0x2"), ()),
        (dataclasses.replace(DISK, properties={"ID_PATH": "usb-1"}), dataclasses.replace(TWIN, properties={"ID_PATH": "usb-2"}), ()),
        (dataclasses.replace(DISK, name="sda1", parent="sda"), dataclasses.replace(TWIN, name="sda2", parent="sda"), ()),
    ],
    ids=["one serial", "size", "wwn", "place", "partition"],
)
def test_devices_that_a_record_does_not_distinguish(device, other, found):
    assert indistinct_from(Devices([device, other]), device) == found


def test_record_does_not_apply_if_another_device_has_the_same_key(root):
    """The runner is killed while it writes one of two drives with the same serial number."""
    campaign(root).begin(FACTS)
    shared = dataclasses.replace(FACTS, indistinct=("/dev/sdc",))
    assert not campaign(root).is_unchanged(shared, root)
    assert not campaign(root).is_claimed(shared)
    campaign(root, "c2").begin(shared)
    assert unchanged(root), "nothing is recorded under a key that two devices have"
