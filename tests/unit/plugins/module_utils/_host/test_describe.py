# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A whole host: every layer is described on its own, and nothing is changed."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._host import describe as host_description
from ansible_collections.cachefleet.storage.plugins.module_utils._host.describe import LAYERS, describe
from ansible_collections.cachefleet.storage.tests.unit.plugins.module_utils._device.drive_cache.test_layer import HDD, SSD, Machine
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = Machine(tmp_path, monkeypatch)
    made.add("sda", "sata", HDD, serial="HDD0", ID_FS_TYPE="ext4", ID_FS_USAGE="filesystem")
    made.add("sdb", "sata", SSD, serial="SSD0")
    made.host.mount("sda", "/srv")
    monkeypatch.setattr(Machine, "runner", property(_runner))
    return made


class _AllBut:
    """The tools that are not installed."""

    def __contains__(self, name):
        return name not in ("udevadm", "hdparm", "ip", "systemctl", "wipefs")


def _runner(machine):
    machine.missing = t.cast("tuple[str, ...]", _AllBut())
    made = _ORIGINAL(machine)
    made.replies[("ip", "-details")] = Reply(json.dumps([{"ifname": "eth1", "ifindex": 2, "mtu": 1500, "flags": ["UP"]}]))
    made.replies[("systemctl", "show")] = Reply()
    made.replies[("wipefs", "--no-act")] = Reply("")
    return made


_ORIGINAL = Machine.runner.fget


def test_every_layer_is_there_in_the_order_of_the_roles(machine):
    found = describe(machine.runner, machine.root)
    assert [variable.name for variable in found.variables] == [
        "drive_write_cache_drives",
        "raid_cache_controllers",
        "storage_network_links",
        "storage_network_aoe_interfaces",
        "storage_network_aoe_options",
        "storage_network_aoe_devices",
        "storage_network_aoe_targets",
        "storage_network_aoe_receive_buffer",
        "block_cache_caches",
        "block_queue_devices",
        "block_queue_module_options",
        "fio_benchmark_targets",
    ]
    drives = found.variables[0]
    assert [entry.values["device"] for entry in drives.entries] == [HDD, SSD]
    assert [note for variable in found.variables for note in variable.notes] == []


def test_reading_changes_nothing(machine):
    before = {str(path): path.read_bytes() for path in machine.root.rglob("*") if path.is_file()}
    runner = machine.runner
    describe(runner, machine.root)
    assert {str(path): path.read_bytes() for path in machine.root.rglob("*") if path.is_file()} == before
    assert {call[0] for call in runner.calls} <= {"udevadm", "hdparm", "ip", "systemctl", "wipefs"}
    assert all(call[1] == "-W" for call in runner.calls if call[0] == "hdparm")


def test_devices_that_are_used_are_no_proposals_for_a_measurement(machine):
    (variable,) = describe(machine.runner, machine.root, layers=["fio_benchmark"]).variables
    (entry,) = variable.entries
    assert variable.commented
    assert entry.values == {"device": SSD, "identity": "SSD0"}
    assert "no signature was found on it" in entry.notes[0]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        # udev had no entry: the device was formatted while nobody listened.
        (Reply('{"signatures": [{"type": "ext4", "uuid": "1-2"}]}'), "carries ext4 (1-2): writing to it destroys that"),
        (CommandFailed("wipefs failed."), "what is on it could not be read"),
    ],
)
def test_contents_that_udev_does_not_know_are_read(machine, reply, expected):
    def answer(_words):
        if isinstance(reply, Exception):
            raise reply
        return reply

    runner = machine.runner
    runner.replies[("wipefs", "--no-act")] = answer
    (variable,) = describe(runner, machine.root, layers=["fio_benchmark"]).variables
    assert expected in variable.entries[0].notes[0]


@pytest.mark.parametrize("layer", [one for one in LAYERS if one != "storage_network"])
def test_a_layer_that_cannot_be_read_does_not_hide_the_others(machine, layer, monkeypatch):
    def failing(*_arguments, **_options):
        raise NotUnderstood("The tool printed something else.")

    modules = {
        "drive_write_cache": host_description.drive_description,
        "raid_cache": host_description.describe_raid,
        "block_cache": host_description.describe_block_caches,
        "block_queue": host_description.queue_description,
        "fio_benchmark": host_description.fio_description,
    }
    monkeypatch.setattr(modules[layer], "describe", failing)
    found = describe(machine.runner, machine.root)
    broken = [variable for variable in found.variables if variable.notes]
    assert [variable.notes for variable in broken] == [("This layer could not be read: The tool printed something else.",)]
    assert len(found.variables) >= 11


def test_the_description_is_plain_data(machine):
    plain = describe(machine.runner, machine.root, every=True).to_dict()
    assert json.loads(json.dumps(plain)) == plain


def test_contents_of_a_suspended_device_are_not_read(machine):
    (machine.root / "sys/class/block/sdb/dm").mkdir()
    (machine.root / "sys/class/block/sdb/dm/suspended").write_text("1\n")
    runner = machine.runner
    (variable,) = describe(runner, machine.root, layers=["fio_benchmark"]).variables
    assert "could not be read, because it is suspended" in variable.entries[0].notes[0]
    assert not any(call[0] == "wipefs" for call in runner.calls)
