# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ATA over Ethernet as variables: what is described changes nothing."""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe import description
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target import AoeTargetLayer
from ansible_collections.cachefleet.storage.tests.unit.plugins.module_utils._net.aoe import test_initiator, test_target


def initiator_of(host):
    return {one.name.rpartition("_")[2]: one for one in description.describe_initiator(host.runner, host.root)}


def targets_of(host):
    def make(runner, spec, root):
        return AoeTargetLayer(runner, spec, root, swallowed=lambda specs, drives: {})

    return {one.name: one for one in description.describe_targets(host.runner, host.root, make_layer=make)}


def test_an_initiator_is_described_by_what_was_written_for_it(tmp_path):
    host = test_initiator.Initiator(tmp_path)
    host.target("e7.1", 9000)
    host.converge(dead_seconds=60, max_outstanding=32)
    found = initiator_of(host)
    assert found["interfaces"].value == ["eth1"]
    assert found["options"].value == {"dead_seconds": 60, "max_outstanding": 32}
    assert [entry.values for entry in found["devices"].entries] == [{"name": "e7.1"}]
    entry = {"devices": [dict(one.values) for one in found["devices"].entries], **found["options"].value}
    assert host.converge(check_mode=True, **entry).steps == ()


def test_a_driver_that_nothing_was_written_for_is_a_note(tmp_path):
    (note,) = initiator_of(test_initiator.Initiator(tmp_path))["interfaces"].notes
    assert note.startswith("The AoE initiator is not described: a run would change it: Write /etc/modprobe.d/")
    host = test_initiator.Initiator(tmp_path / "all", interfaces="")
    assert initiator_of(host)["interfaces"].notes == ()
    host.target("e7.1", 9000)
    (everywhere,) = initiator_of(host)["interfaces"].notes
    assert everywhere.startswith("The AoE driver discovers targets on all interfaces")


def test_a_host_without_the_driver_has_nothing_to_describe(tmp_path):
    found = initiator_of(test_initiator.Initiator(tmp_path, loaded=False))
    assert all((one.value, one.entries, one.notes) == (None, (), ()) for one in found.values())


def test_targets_are_described_with_what_differs_from_the_usual(tmp_path):
    host = test_target.Host(tmp_path)
    wanted = [
        {"shelf": 7, "slot": 1, "interface": "eth1", "device": test_target.HDD, "sync": True, "macs": ["52:54:00:00:00:01"]},
        {"shelf": 7, "slot": 2, "interface": "eth1", "device": "/dev/disk/by-id/ata-OTHER", "read_only": True, "buffers": 64},
    ]
    host.converge(*wanted)
    found = targets_of(host)
    assert [entry.values for entry in found[description.SERVED].entries] == wanted
    assert found[description.BUFFER].value is None
    assert host.converge(*wanted, check_mode=True).steps == ()


def test_a_target_that_systemd_did_not_start_is_a_note(tmp_path):
    host = test_target.Host(tmp_path)
    host.converge({"shelf": 7, "slot": 1, "interface": "eth1", "device": test_target.HDD})
    host.enabled.clear()
    found = targets_of(host)[description.SERVED]
    assert found.entries == ()
    assert "is not described: a run would change it: Start vblade@" in found.notes[0]
