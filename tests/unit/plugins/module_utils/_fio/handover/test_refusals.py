# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused of targets before SSD caches come and go, and whether that can change."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost, read_cell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover import checks
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, Neighbour, TargetFacts
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

JOB = {"rw": "randwrite", "bs": "4k", "runtime": 10, "time_based": True}
DISKS = [BlockDevice(f"sd{letter}", f"/dev/sd{letter}", f"8:{16 * number}", size=2**30, serial=f"S{letter}") for number, letter in enumerate("bc", 1)]


@pytest.fixture
def host(tmp_path):
    (tmp_path / "dev").mkdir()
    for disk in DISKS:
        with open(tmp_path / disk.path.lstrip("/"), "wb") as file:
            file.truncate(disk.size)
    runner = ScriptedRunner({("wipefs",): Reply(json.dumps({"signatures": []}))})
    return MeasuredHost(runner, lambda _devices: None, tmp_path, lambda _runner, root: Devices(DISKS, root))


def found(host, monkeypatch=None, caches=(), facts=None, **target):
    """:param facts: what the examination of the target finds."""
    if facts is not None:
        monkeypatch.setattr(checks.examination, "examine", lambda devices, target, *_more, **_others: dataclasses.replace(facts, target=target))
    cell = read_cell("v", {"name": "c", "target": {"device": "/dev/sdb", **target}, "job": JOB})
    return checks.refusals_of([cell], host, caches=caches)


def facts(itself=None, below=(), **values):
    itself = Neighbour("itself", "/dev/sdb", **(itself or {}))
    return TargetFacts(GuardTarget("/dev/sdb"), "/dev/sdb", size=2**30, neighbours=(itself, *below), device=DISKS[0], **values)


def test_a_free_target_is_not_refused(host, monkeypatch):
    assert found(host, monkeypatch, facts=facts()) == []


@pytest.mark.parametrize(("caches", "lasting"), [((), True), (("/dev/sdc", "vg0/images"), False)])
def test_a_target_that_is_missing_may_be_made_by_a_cache(host, caches, lasting):
    (one,) = found(host, caches=caches, device="/dev/bcache0")
    assert (one["target"], one["lasting"]) == ("/dev/bcache0", lasting)
    assert "/dev/bcache0 does not exist on this host" in one["msg"]


BCACHE = ("bcache (c0ffee)",)
BELOW = (Neighbour("below it", "/dev/sdc", signatures=("ext4",)),)


@pytest.mark.parametrize(
    ("of_target", "caches", "lasting"),
    [
        # What a cache of the sweep holds, or has written.
        (facts({"holders_outside": ("/dev/bcache0",), "busy": "Device or resource busy"}), ("/dev/sdb",), False),
        (facts({"signatures": BCACHE}), ("/dev/sdb",), False),
        (facts(opened=1), ("/dev/sdb",), False),
        (facts({"signatures": ("EnhanceIO metadata",)}), ("/dev/sdb",), False),
        # The same of a device that is part of none.
        (facts({"holders_outside": ("/dev/bcache0",)}), ("/dev/sdc",), True),
        (facts({"signatures": BCACHE}), (), True),
        # What no cache changes.
        (facts({"mountpoints": ("/srv",)}), ("/dev/sdb",), True),
        (facts({"swap": True}), ("/dev/sdb",), True),
        (facts({"exports": ("nvmet",)}), ("/dev/sdb",), True),
        (facts({"file_system": "/srv"}), ("/dev/sdb",), True),
        (facts({"signatures": ("ext4 (root)",)}), ("/dev/sdb",), True),
        (facts(writers=("qemu (7)",)), ("/dev/sdb",), True),
        (facts(data_at=4096), ("/dev/sdb",), True),
        (facts(read_only=True), ("/dev/sdb",), True),
        (facts(below=BELOW), ("/dev/sdc",), True),
    ],
)
def test_a_refusal_lasts_unless_it_is_of_a_cache_that_comes_and_goes(host, monkeypatch, of_target, caches, lasting):
    (one,) = found(host, monkeypatch, caches, of_target)
    assert one["lasting"] is lasting


def test_an_identity_that_does_not_match_lasts_unless_udev_was_busy(host, monkeypatch):
    of_target = facts(identity="Sb", identity_matches=False)
    assert [one["lasting"] for one in found(host, monkeypatch, facts=of_target, identity="Sx")] == [True]
    assert [one["lasting"] for one in found(host, monkeypatch, facts=dataclasses.replace(of_target, unsettled=True), identity="Sx")] == [False]


def test_data_that_may_be_lost_is_not_refused(host, monkeypatch):
    permitted = {"identity": "Sb", "allow_data_loss": True}
    assert found(host, monkeypatch, facts=facts({"signatures": ("ext4",)}, identity="Sb", identity_matches=True), **permitted) == []


def test_each_target_is_examined_once(host, monkeypatch):
    asked = []

    def examine(_devices, target, *_more, **_others):
        asked.append(target.path)
        raise DeviceMissing("It is gone.")

    monkeypatch.setattr(checks.examination, "examine", examine)
    reading = {**JOB, "rw": "read"}
    cells = [
        read_cell("v", {"name": name, "target": {"device": f"/dev/sd{name[0]}"}, "job": reading if "r" in name else JOB}) for name in ("br", "b", "c", "b2")
    ]
    assert [one["target"] for one in checks.refusals_of(cells, host)] == asked == ["/dev/sdb", "/dev/sdc"]
