# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two calls of a run on a host made of files: what is claimed, what a run after a kill may continue on, and what is not accepted."""

from __future__ import annotations

import argparse
import itertools
import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.plan import VolumesRun
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VOLUME_OPTIONS, read_volumes
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

SIZE = 4 << 20
LINKS = ["/dev/disk/by-id/ata-A", "/dev/disk/by-id/ata-B"]


class Host:
    """Two empty disks, and what wipefs and LVM report of them."""

    def __init__(self, root):
        self.root = root
        self.fake = FakeHost(root)
        for name, link in zip(("sda", "sdb"), LINKS):
            self.fake.disk(name, size=SIZE, serial=link[-1], DEVLINKS=link)
            (root / "dev" / name).write_bytes(b"")
            os.truncate(root / "dev" / name, SIZE)
        self.signatures, self.orphans, self.missing = {}, [], ()

    def run(self, **options):
        known = {name: option.get("default") for name, option in VOLUME_OPTIONS.items()}
        rows = {"report": [{"vg": [], "pv": [{"pv_name": path, "vg_name": ""} for path in self.orphans], "seg": []}]}
        replies = {
            ("udevadm",): self.fake.udev_reply,
            ("wipefs",): lambda words: Reply(
                json.dumps({"signatures": [{"type": kind, "label": label} for kind, label in self.signatures.get(words[-1], ())]})
            ),
            ("lvm",): Reply(json.dumps(rows)),
        }
        volumes = read_volumes([{**known, "name": "t", "type": "striped", "devices": LINKS, **options}])
        return VolumesRun(ScriptedRunner(replies, self.missing), volumes, Spool(self.root / "spool", "test_volumes"), self.root)

    def planned(self, **options):
        (plan,) = self.run(**options).prepare(check_mode=True)
        return list(plan.tasks)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_check_mode_claims_nothing(host):
    assert host.planned() == ["create_group", "create_volume"]
    assert not (host.root / "spool").exists()


def test_full_or_read_only_file_system_at_any_change_claims_nothing_and_is_continued(tmp_path):
    numbers = itertools.count()

    def fresh():
        host = Host(tmp_path / str(next(numbers)))
        host.runner = ScriptedRunner({})
        return host

    def carry_out(host):
        host.run().prepare(check_mode=False)
        return argparse.Namespace(changed=False)

    strike_everywhere(fresh, carry_out)


def test_run_after_a_kill_continues_on_its_own_labels(host):
    host.run().prepare(check_mode=False)
    host.signatures, host.orphans = {"/dev/sda": [("LVM2_member", "x")]}, ["/dev/sda"]
    (removal,) = host.run(state="absent").prepare(check_mode=True)
    assert (removal.tasks, removal.labelled) == (("remove_labels", "release"), (LINKS[0],))
    assert host.planned() == ["create_group", "create_volume"]
    with pytest.raises(Refused, match="u: /dev/sda contains LVM2_member"):
        host.run(name="u").prepare(check_mode=True)


@pytest.mark.parametrize(("signature", "orphans"), [(("xfs", "x"), []), (("LVM2_member", "x"), [])])
def test_run_after_a_kill_does_not_overwrite_what_is_not_its_own(host, signature, orphans):
    host.run().prepare(check_mode=False)
    host.signatures, host.orphans = {"/dev/sda": [signature]}, orphans
    with pytest.raises(Refused, match=f"contains {signature[0]}"):
        host.planned()


def test_array_that_does_not_run_is_created_again_only_if_it_was_unfinished(host):
    host.signatures = {f"/dev/{name}": [("linux_raid_member", "any:test_t")] for name in ("sda", "sdb")}
    with pytest.raises(Refused, match="contains linux_raid_member"):
        host.planned(type="raid1")
    assert host.planned(type="raid1", state="absent", allow_data_loss=True) == ["remove_labels", "release"]
    host.signatures = {}
    host.run(type="raid1").prepare(check_mode=False)
    host.signatures = {"/dev/sda": [("linux_raid_member", "any:test_t")]}
    assert host.planned(type="raid1") == ["create_array"]
    host.signatures = {"/dev/sda": [("linux_raid_member", "any:test_t2")]}
    with pytest.raises(Refused, match="contains linux_raid_member"):
        host.planned(type="raid1")


def test_remains_of_a_removed_volume_are_free_until_they_change(host):
    host.run().prepare(check_mode=False)
    (host.root / "dev/sda").write_bytes(b"remains")
    os.truncate(host.root / "dev/sda", SIZE)
    (removed,) = host.run(state="absent").prepare(check_mode=False)
    assert removed.tasks == ("release",)
    host.run(state="absent").finish()
    assert host.planned(state="absent") == []
    assert host.planned(name="u") == ["create_group", "create_volume"]
    with open(host.root / "dev/sda", "r+b") as node:
        node.write(b"changed")
    with pytest.raises(Refused, match="contains data without a known signature"):
        host.planned()


def test_unfinished_volume_is_reported(host):
    with pytest.raises(NotEffective, match="t: the volume is not as described after all steps; still to do: Create the volume group test_t"):
        host.run().finish()


def test_data_without_a_signature_is_refused(host):
    with open(host.root / "dev/sdb", "r+b") as node:
        node.write(b"data")
    with pytest.raises(Refused, match="t: /dev/sdb contains data without a known signature, the first that was found at byte 0"):
        host.planned()


def test_missing_device_is_refused_and_no_obstacle_to_a_removal(host):
    with pytest.raises(DeviceMissing, match="t: /dev/disk/by-id/none does not exist"):
        host.planned(devices=[LINKS[0], "/dev/disk/by-id/none"])
    assert host.planned(devices=[LINKS[0], "/dev/disk/by-id/none"], state="absent") == []


def test_missing_tool_is_a_warning_in_check_mode_and_then_a_failure(host):
    host.missing = ("mdadm",)
    run = host.run(type="raid1")
    run.prepare(check_mode=True)
    assert run.warnings == ["t: The command mdadm is missing on this host: install the package mdadm."]
    with pytest.raises(ToolMissing, match="t: The command mdadm is missing"):
        host.run(type="raid1").prepare(check_mode=False)
