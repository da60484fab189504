# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mirrors of MD under caches: their names, their steps, and what was left by a run that was killed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import _identity
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import FastDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

A = BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=GIB, serial="A")
B = BlockDevice(name="sdc", path="/dev/sdc", number="8:32", size=2 * GIB, serial="B")
UUID = mirror.array_uuid("images", [A, B], "host")
MIRROR = (("/dev/sdb", "/dev/sdc"), UUID, "cachefleet-images")


@pytest.fixture
def host(tmp_path):
    (tmp_path / "dev/disk/by-id").mkdir(parents=True)
    for name in ("sdb", "sdc"):
        (tmp_path / "dev" / name).write_bytes(bytes(4096))

    def appear(words):
        (tmp_path / mirror.array_path(UUID).lstrip("/")).write_bytes(b"")
        return Reply()

    runner = ScriptedRunner({("wipefs",): Reply(), ("udevadm",): Reply(), ("mdadm", "--create"): appear, ("mdadm", "--assemble"): appear, ("mdadm",): Reply()})
    return SimpleNamespace(runner=runner, root=tmp_path, waited=[])


def carry_out(host, operation):
    layer = SimpleNamespace(runner=host.runner, root=host.root, sleep=host.waited.append)
    operation.carry_out(layer, Step("dm_cache", "images", "mirror", None, None, "", operation))


def mdadm(host):
    return [words for words in host.runner.calls if words[0] == "mdadm"]


def test_array_uuid_depends_on_cache_drives_and_host():
    assert mirror.array_uuid("images", [B, A], "host") == UUID
    assert len({UUID, mirror.array_uuid("images", [A, B], "other"), mirror.array_uuid("mail", [A, B], "host"), mirror.array_uuid("images", [A], "host")}) == 4
    assert [len(group) for group in UUID.split(":")] == [8, 8, 8, 8]


def test_arrays_are_read_from_udev_and_sysfs(tmp_path):
    folder = tmp_path / "sys/class/block/md127/md"
    folder.mkdir(parents=True)
    for file, text in {"level": "raid1", "raid_disks": "2", "degraded": "1"}.items():
        (folder / file).write_text(text + "\n")
    device = BlockDevice(
        name="md127", path="/dev/md127", number="9:127", kind="md", size=5, slaves=("sdb",), properties={"MD_UUID": UUID, "MD_NAME": "any:cachefleet-images"}
    )
    (array,) = mirror.read_arrays(Devices([A, device]), tmp_path).values()
    assert (array.ours, array.redundant, array.members, array.path) == (True, False, ("sdb",), f"/dev/disk/by-id/md-uuid-{UUID}")
    assert not mirror.Array("md0", "", "host:data", (), True, 1).ours


def test_array_is_found_by_exact_member_set():
    arrays = {"md0": mirror.Array("md0", "", "x", ("sdb", "sdc"), True, 1)}
    assert mirror.array_of(arrays, [B, A]) is arrays["md0"]
    assert mirror.array_of(arrays, [A]) is None


@pytest.mark.parametrize(("size", "least"), [(GIB, GIB - 66 * MIB), (1024 * GIB, 1024 * GIB - 129 * MIB), (MIB, 0)])
def test_minimum_mirror_size(size, least):
    smaller = BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=size)
    bigger = BlockDevice(name="sdc", path="/dev/sdc", number="8:32", size=size + 5)
    assert mirror.smallest_size([bigger, smaller]) == least


def test_mirror_is_created(host):
    carry_out(host, mirror.CreateMirror(*MIRROR))
    (command,) = mdadm(host)
    assert command[:6] == ("mdadm", "--create", f"/dev/md/cachefleet-{UUID[:8]}", "--run", "--level=1", "--raid-devices=2")
    assert f"--uuid={UUID}" in command
    assert command[-2:] == ("/dev/sdb", "/dev/sdc")
    carry_out(host, mirror.CreateMirror(*MIRROR))
    assert len(mdadm(host)) == 1


def test_member_that_is_no_longer_empty_is_refused(host):
    host.runner.replies[("wipefs",)] = Reply('{"signatures": [{"type": "ext4", "label": "data"}]}')
    with pytest.raises(Refused, match="/dev/sdb was empty when it was examined and now carries a signature"):
        carry_out(host, mirror.CreateMirror(*MIRROR))
    assert mdadm(host) == []


def test_existing_mirror_is_assembled(host):
    carry_out(host, mirror.StartMirror(*MIRROR))
    assert mdadm(host) == [("mdadm", "--assemble", f"/dev/md/cachefleet-{UUID[:8]}", f"--uuid={UUID}", "/dev/sdb", "/dev/sdc")]


def test_array_missing_in_udev_is_a_failure(host):
    host.runner.replies[("mdadm", "--create")] = Reply()
    with pytest.raises(NotEffective, match="udev does not show it"):
        carry_out(host, mirror.CreateMirror(*MIRROR))
    assert sum(host.waited) >= 30


def test_mirror_is_released(host):
    (host.root / "sys/class/block/md127/md").mkdir(parents=True)
    carry_out(host, mirror.ReleaseMirror("md127", ("/dev/sdb", "/dev/sdc", "/dev/gone")))
    assert [words[1:] for words in mdadm(host)] == [("--stop", "/dev/md127"), ("--zero-superblock", "/dev/sdb"), ("--zero-superblock", "/dev/sdc")]


def test_member_left_by_killed_run_is_wiped_without_array(host):
    carry_out(host, mirror.ReleaseMirror("", ("/dev/sdb",)))
    assert [words[1:] for words in mdadm(host)] == [("--zero-superblock", "/dev/sdb")]


def test_mirror_in_use_is_not_stopped(host):
    (host.root / "sys/class/block/md127/md").mkdir(parents=True)
    host.runner.replies[("mdadm", "--stop")] = Reply(rc=1, stderr="mdadm: Cannot get exclusive access to /dev/md127")
    with pytest.raises(CommandFailed, match=r"images: .*Cannot get exclusive access"):
        carry_out(host, mirror.ReleaseMirror("md127", ("/dev/sdb",)))
    assert len(mdadm(host)) == 1


def test_partitions_without_uuid_are_distinguished_by_name():
    first, second = (
        BlockDevice(name=f"sda{n}", path=f"/dev/sda{n}", number=f"8:{n}", size=1, kind="partition", serial="S", by_id=(f"/dev/disk/by-id/ata-S-part{n}",))
        for n in (1, 2)
    )
    assert mirror.array_uuid("x", [first]) != mirror.array_uuid("x", [second])
    fast = [FastDevice(one.path, one, 1, "none") for one in (first, second)]
    assert _identity(fast[0]) != _identity(fast[1])


@pytest.mark.parametrize(
    "head, signatures, reason",
    [
        (bytes(32) + (0o6142003).to_bytes(8, "little"), "", "carries dm-cache metadata"),
        (b"", '{"signatures": [{"type": "LVM2_member", "uuid": "x"}]}', "carries a signature"),
    ],
)
def test_mirror_with_foreign_content_is_not_stopped(host, head, signatures, reason):
    (host.root / "dev/md127").write_bytes(head.ljust(8192, b"\0"))
    host.runner.replies[("wipefs",)] = Reply(signatures)
    with pytest.raises(Refused, match=f"the mirror /dev/md127 {reason}.*so it is not stopped"):
        carry_out(host, mirror.ReleaseMirror("md127", ("/dev/sdb", "/dev/sdc")))
    assert mdadm(host) == []


def test_array_being_created_is_awaited(monkeypatch):
    birth = [
        BlockDevice(name="md127", path="/dev/md127", number="9:127", kind="md", size=0, slaves=("sdb",)),
        BlockDevice(name="md127", path="/dev/md127", number="9:127", kind="md", size=GIB, slaves=("sdb", "sdc")),
        BlockDevice(name="md127", path="/dev/md127", number="9:127", kind="md", size=GIB, slaves=("sdb", "sdc"), properties={"MD_UUID": UUID}),
    ]
    seen, waits = [], []

    def read(runner, root):
        seen.append(birth[min(len(seen), len(birth) - 1)])
        return Devices([seen[-1]])

    monkeypatch.setattr(mirror, "read_devices", read)
    layer = SimpleNamespace(runner=None, root=None, sleep=waits.append)
    assert mirror.CacheLayer.settled_devices(layer).get("md127") is birth[2]
    assert len(waits) == 2
    # One that never gets a name, because it lacks members, holds nothing up for ever.
    del birth[2:], seen[:], waits[:]
    assert mirror.CacheLayer.settled_devices(layer).get("md127") is birth[1]
    assert 0 < sum(waits) < 60
