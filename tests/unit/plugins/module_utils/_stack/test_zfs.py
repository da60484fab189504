# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ZFS pools in the stack. The outputs are written by hand after zpool-status(8) and the source of OpenZFS 2.1; none was captured."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import readers
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_check import Counters, Means, check
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import parse_status
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

_TWO_POOLS = """\
  pool: backup
 state: DEGRADED
status: One or more devices is currently being resilvered.  The pool will
\tcontinue to function, possibly in a degraded state.
action: Wait for the resilver to complete.
  scan: resilver in progress since Sat Nov 21 20:00:00 2026
\t1.00G scanned at 1.00G/s, 512M issued at 512M/s, 2.00G total
\t512M resilvered, 25.00% done, 00:00:03 to go
config:

\tNAME               STATE     READ WRITE CKSUM
\tbackup             DEGRADED     0     0     0
\t  raidz1-0         DEGRADED     0     0     0
\t    /dev/sda1      ONLINE       0     0     0
\t    replacing-1    DEGRADED     0     0     0
\t      /dev/sdb1    OFFLINE      0     0     0
\t      /dev/sdc1    ONLINE       0     0     0  (resilvering)
\t    /dev/sdd1      ONLINE       0     0     0
\tspares
\t  /dev/sde1        AVAIL

errors: No known data errors

  pool: tank
 state: ONLINE
  scan: none requested
config:

\tNAME                    STATE     READ WRITE CKSUM
\ttank                    ONLINE       0     0     0
\t  draid2:3d:6c:1s-0     ONLINE       0     0     0
\t    /dev/sdf            ONLINE       0     0     0
\t    /dev/sdg            ONLINE       0     0     0
\t    /dev/sdh            ONLINE       0     0     0
\tspecial\t
\t  mirror-1              ONLINE       0     0     0
\t    /dev/nvme0n1p1      ONLINE       0     0     0
\t    /dev/nvme1n1p1      ONLINE       0     0     0
\tlogs\t
\t  mirror-2              ONLINE       0     0     0
\t    /dev/nvme0n1p2      ONLINE       0     0     0
\t    /dev/nvme1n1p2      ONLINE       0     0     0
\tcache
\t  /dev/nvme0n1p3        ONLINE       0     0     0
\tspares
\t  draid2-0-0            AVAIL

errors: No known data errors
"""

_ONE_DISK = """\
  pool: tank
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  /dev/sda  ONLINE       0     0     0

errors: No known data errors
"""


def test_pools_with_every_device_class():
    backup, tank = parse_status(_TWO_POOLS)
    assert (backup.name, backup.state, tank.name, tank.state) == ("backup", "DEGRADED", "tank", "ONLINE")
    assert {word: [vdev.name for vdev in found] for word, found in tank.vdevs.items()} == {
        "data": ["draid2:3d:6c:1s-0"],
        "special": ["mirror-1"],
        "logs": ["mirror-2"],
        "cache": ["/dev/nvme0n1p3"],
        "spares": ["draid2-0-0"],
    }
    assert tank.vdevs["data"][0].disks == ("/dev/sdf", "/dev/sdg", "/dev/sdh")
    assert [(vdev.parity, vdev.missing) for vdev in (tank.vdevs["data"][0], tank.vdevs["special"][0])] == [(2, 0), (1, 0)]
    raidz = backup.vdevs["data"][0]
    assert (raidz.parity, raidz.missing, raidz.disks) == (1, 1, ("/dev/sda1", "/dev/sdb1", "/dev/sdc1", "/dev/sdd1"))


@pytest.mark.parametrize("text", ["", "no pools available\n", "garbage\n\tNAME STATE\n"])
def test_host_without_pools(text):
    assert parse_status(text) == ()


@pytest.mark.parametrize("cut", range(0, len(_TWO_POOLS), 37))
def test_truncated_output_raises_nothing(cut):
    for pool in parse_status(_TWO_POOLS[:cut]):
        assert all(vdev.name for found in pool.vdevs.values() for vdev in found)


class Rack:
    def __init__(self, root):
        self.host = FakeHost(root)
        self.replies: dict[tuple[str, ...], t.Any] = {
            ("hdparm",): lambda words: Reply("".join(f"\n{word}:\n write-caching =  1 (on)\n" for word in words if word.startswith("/dev/"))),
            ("zpool", "list"): Reply("tank\t1099511627776\n"),
            ("zfs", "get"): Reply("tank\tstandard\n"),
        }
        self.missing: set[str] = {"nvme", "dmsetup"}

    def stack(self, **options):
        self.runner = ScriptedRunner({("udevadm", "info"): self.host.udev_reply, **self.replies}, missing=self.missing)
        return read_stack(self.runner, self.host.root, **options)


@pytest.fixture
def rack(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "read_caches", lambda devices, runner, root: Survey())
    return Rack(tmp_path)


def _member(rack, name, label="tank"):
    rack.host.disk(name, ID_FS_TYPE="zfs_member", ID_FS_USAGE="filesystem", ID_FS_LABEL=label)


def test_pool_is_a_device_of_the_stack(rack):
    _member(rack, "sda")
    rack.replies["zpool", "status"] = Reply(_ONE_DISK)
    devices = rack.stack().as_devices()
    pool = devices["zfs:tank"]
    assert (pool["kind"], pool["size"], pool["slaves"], pool["verdict"], pool["device_loss"]) == ("zfs", 1 << 40, ("sda",), "durable", "loses")
    assert [layer["name"] for layer in pool["layers"]] == ["zfs:tank", "sda"]
    assert pool["layers"][0]["caches"][0]["vdevs"] == {"data": ["/dev/sda"]}
    assert ("zpool", "status", "-P", "-L") in rack.runner.calls


def test_pool_of_a_file_whose_devices_are_not_seen_is_unknown(rack):
    found = rack.stack().describe("zfs:tank")
    assert (found["verdict"], found["reason"]) == ("unknown", "The devices of the ZFS pool tank cannot be read.")


def test_host_without_zfs_runs_no_commands(rack):
    rack.host.disk("sda")
    rack.stack()
    assert not any(call[0] in ("zpool", "zfs") for call in rack.runner.calls)


def test_members_without_zfs_tool_form_an_unknown_pool(rack):
    _member(rack, "sda")
    _member(rack, "sdb")
    rack.missing.add("zpool")
    stack = rack.stack()
    verdict = stack.verdict(stack.devices.get("zfs:tank"))
    assert (verdict.verdict, verdict.device_loss) == ("unknown", "unknown")
    assert "whose devices cannot be read (zpool)" in verdict.reason
    assert stack.devices.get("zfs:tank").slaves == ("sda", "sdb")
    assert "install zfsutils-linux" in stack.problems[0]
    # The disks themselves are what they are.
    assert stack.verdict(stack.devices.get("sda")).verdict == "durable"


def test_exported_pool_is_unknown(rack):
    _member(rack, "sda", label="other")
    rack.replies["zpool", "status"] = Reply("no pools available\n")
    stack = rack.stack()
    assert stack.verdict(stack.devices.get("zfs:other")).verdict == "unknown"
    assert stack.problems == []


def test_failing_tool_affects_only_the_pools(rack):
    _member(rack, "sda")
    rack.replies["zpool", "status"] = Reply("", 1, "internal error")
    stack = rack.stack()
    assert stack.verdict(stack.devices.get("zfs:tank")).verdict == "unknown"
    assert "The ZFS pools could not be read" in stack.problems[0]


def test_pool_on_files_is_unknown(rack):
    _member(rack, "sda")
    rack.replies["zpool", "status"] = Reply(_ONE_DISK.replace("/dev/sda  ONLINE", "/var/img   ONLINE"))
    stack = rack.stack()
    verdict = stack.verdict(stack.devices.get("zfs:tank"))
    assert verdict.verdict == "unknown"
    assert "not block devices of this host (/var/img)" in verdict.reason


def test_zvol_has_the_verdict_of_its_pool(rack):
    _member(rack, "sda")
    rack.host.disk("zd0", "virtual", DEVLINKS="/dev/zvol/tank/vm")
    rack.replies["zpool", "status"] = Reply(_ONE_DISK)
    rack.host.write("sys/module/zfs/parameters/zfs_nocacheflush", "1\n")
    stack = rack.stack()
    verdict = stack.verdict(stack.devices.get("zd0"))
    assert verdict.verdict == "at_risk"
    assert "zfs:tank sends no flushes (zfs_nocacheflush=1)" in verdict.reason
    assert stack.devices.get("zd0").kind == "zvol"


def test_pool_flush_check_is_unproven_not_disproved(rack):
    _member(rack, "sda")
    rack.host.write("sys/class/block/sda/stat", "51 0 2112 28 0 0 0 0 0 8 28 0 0 0 0 9 3\n")
    rack.replies["zpool", "status"] = Reply(_ONE_DISK)
    rack.host.write("proc/self/mountinfo", "30 1 0:60 / /tank rw,relatime - zfs tank rw\n")
    (rack.host.root / "tank").mkdir()

    def send(device, count):
        raise AssertionError

    _stack, results = check(rack.stack(), ["zfs:tank", "/tank"], 8, 0.0, rack.host.root, Means(Counters(rack.host.root), send))
    assert [(result["state"], result["verdict"], result["mount"]) for result in results] == [("unproven", "durable", None), ("unproven", "durable", "/tank")]
    assert "sends flushes only when something was written" in results[0]["disks"][0]["reason"]
