# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flushes that are sent and counted, on a host of files whose kernel is a few lines: it counts where a stack lets flushes through."""

from __future__ import annotations

import fcntl
import os
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import flush_check, readers
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_check import Counters, Means, agreed, check, send_flushes
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

_STAT = " 51 0 2112 28 0 0 0 0 0 8 28 0 0 0 0 {} 3\n"
_OLD_STAT = " 51 0 2112 28 0 0 0 0 0 8 28 0 0 0 0\n"


class AllBut:
    """Every tool but some."""

    def __init__(self, *there):
        self.there = there

    def __contains__(self, name):
        return name not in self.there


class Host:
    """A host with a kernel that flushes.

    :param reaches: by device, the counters that count each flush of it, once or so many times.
    :param noise: by counter, what others flush in each period, one number after the other; the last is repeated.
    """

    def __init__(self, root):
        self.root = root
        self.files = FakeHost(root)
        self.counts: dict[str, int] = {}
        self.reaches: dict[str, dict[str, float]] = {}
        self.noise: dict[str, list[int]] = {}
        self.sent: list[tuple[str, int]] = []
        self.slept: list[float] = []
        self.now = 0.0
        self.hdparm: dict[str, int] = {}
        self.table = ""
        self.survey = Survey()
        self.error = ""

    def disk(self, name, *, on=True, kernel=None, transport="sata", old=False, **options):
        self.files.disk(name, transport, write_cache=kernel or ("write back" if on else "write through"), **options)
        self.hdparm[name] = int(on)
        self.counter(name, old=old)

    def counter(self, name, *, old=False):
        self.counts[name] = 1000
        self.old = old
        self.files.write(f"sys/class/block/{name}/stat", _OLD_STAT if old else _STAT.format(1000))

    def volume(self, name, slaves, *, write_cache="write back", uuid="LVM-abc", target="linear", dm_name=""):
        self.files.disk(name, "virtual", dm_name=dm_name or f"vg-{name}", dm_uuid=uuid, slaves=slaves, write_cache=write_cache)
        self.table += f"{dm_name or f'vg-{name}'}: 0 2048 {target} 8:0 0\n"

    def add(self, name, number):
        self.counts[name] += number
        if not self.old:
            (self.root / "sys/class/block" / name / "stat").write_text(_STAT.format(self.counts[name]))

    def send(self, device, count):
        if self.error:
            raise CommandFailed(self.error)
        self.sent.append((device.name, count))
        self.now += 0.01 * count
        for name, share in self.reaches.get(device.name, {}).items():
            self.add(name, int(share * count))
        if count > 1:
            self.others()

    def sleep(self, seconds):
        self.slept.append(seconds)
        if len(self.sent) > 1:
            self.others()

    def others(self):
        for name, numbers in self.noise.items():
            self.add(name, numbers.pop(0) if len(numbers) > 1 else numbers[0])

    def check(self, *paths, flushes=8, settle=0.5, **options):
        def hdparm(words):
            names = [word[5:] for word in words if word.startswith("/dev/")]
            return Reply("".join(f"\n/dev/{name}:\n write-caching =  {self.hdparm[name]} ({'on' if self.hdparm[name] else 'off'})\n" for name in names))

        replies = {
            ("udevadm", "info"): self.files.udev_reply,
            ("dmsetup", "table"): Reply(self.table),
            ("dmsetup", "status"): Reply(),
            ("hdparm",): hdparm,
        }
        stack = read_stack(ScriptedRunner(replies, missing=AllBut("udevadm", "dmsetup", "hdparm")), self.root, **options)
        means = Means(Counters(self.root), self.send, lambda: self.now, self.sleep)
        self.stack, results = check(stack, list(paths), flushes, settle, self.root, means)
        for result in results:
            require_no_contradiction(result)
        return results


def require_no_contradiction(result):
    """What a flush does and what a flushed write is worth are one answer."""
    assert (
        result["verdict"]
        in {
            "proved": ("durable",),
            "not_needed": ("durable",),
            "unknown": ("unknown",),
            "disproved": ("at_risk",),
            "unproven": ("durable", "unknown", "at_risk"),
        }[result["state"]]
    )


@pytest.fixture
def host(tmp_path, monkeypatch):
    made = Host(tmp_path)
    monkeypatch.setattr(readers, "read_caches", lambda devices, runner, root: made.survey)
    return made


def test_flush_delivery_is_proved_by_two_quiet_bursts(host):
    host.disk("sda")
    host.volume("dm-0", ["sda"])
    host.reaches = {"dm-0": {"sda": 1}}
    (result,) = host.check("/dev/dm-0")
    assert (result["state"], result["verdict"], result["device"]) == ("proved", "durable", "/dev/dm-0")
    assert result["reason"] == "/dev/sda has its volatile write cache on, and every flush reaches it (proved by 8 flushes)."
    (disk,) = result["disks"]
    assert (disk["reached"], disk["needed"], disk["counted"], disk["control"]) == (True, True, [8, 8], [0, 0])
    # One that is not counted, and the wait after it.
    assert host.sent == [("dm-0", 1), ("dm-0", 8), ("dm-0", 8)]
    assert host.slept[0] == 0.5
    assert all(pause >= 0.079 for pause in host.slept[1:])


def test_disk_without_counted_flushes_is_at_risk_with_any_queue_settings(host):
    host.disk("sda")
    host.disk("sdb")
    host.files.disk("md0", "virtual", slaves=["sda", "sdb"])
    host.reaches = {"md0": {"sda": 1}}
    (result,) = host.check("/dev/md0")
    assert (result["state"], result["verdict"], result["verdict_without_proof"]) == ("disproved", "at_risk", "durable")
    assert "/dev/sdb has its volatile write cache on, and 8 flushes that were sent to /dev/md0 did not all reach it" in result["reason"]
    assert [(disk["disk"], disk["reached"]) for disk in result["disks"]] == [("sda", True), ("sdb", False)]
    assert "although every queue on the way reports write back" in result["disks"][1]["reason"]
    # What lies on it suffers the same.
    assert host.stack.verdict(host.stack.devices.get("md0")).verdict == "at_risk"


@pytest.mark.parametrize("requested", ["/dev/dm-0", "/dev/dm-1"])
def test_no_flush_is_sent_to_suspended_devices_or_those_above(host, requested):
    host.disk("sda")
    host.volume("dm-0", ["sda"])
    host.volume("dm-1", ["dm-0"])
    host.files.write("sys/class/block/dm-0/dm/suspended", "1\n")
    (result,) = host.check(requested)
    assert host.sent == []
    assert result["state"] == "unproven"
    assert "is suspended, so that everything that is written to it or read from it waits" in result["error"]


def test_nothing_is_proved_behind_an_unreadable_controller(host):
    host.disk("sda", transport="raid")
    host.volume("dm-0", ["sda"])
    host.reaches = {"dm-0": {"sda": 1}}
    (result,) = host.check("/dev/dm-0")
    assert (result["state"], result["verdict"]) == ("unknown", "unknown")


@pytest.mark.parametrize("state", ["proved", "not_needed", "disproved", "unproven"])
@pytest.mark.parametrize("verdict", ["durable", "unknown", "at_risk"])
def test_check_never_reports_more_than_the_verdict(state, verdict):
    expected = {"durable": state, "unknown": "unknown", "at_risk": "disproved"}[verdict] if state in ("proved", "not_needed") else state
    assert agreed(state, verdict) == expected


def test_half_of_the_flushes_is_not_sufficient(host):
    host.disk("sda")
    host.reaches = {"sda": {"sda": 0.5}}
    assert host.check("/dev/sda")[0]["state"] == "disproved"
    assert host.check("/dev/sda")[0]["disks"][0]["reason"].startswith("Of 8 flushes 4 arrived")


def test_wrong_kernel_view_is_detected(host):
    host.disk("sda", kernel="write through")
    host.volume("dm-0", ["sda"])
    (result,) = host.check("/dev/dm-0")
    assert (result["state"], result["verdict"]) == ("disproved", "at_risk")
    assert "believes that it has no write cache and sends it none" in result["disks"][0]["reason"]


def test_layer_ignoring_flushes_is_named(host):
    host.disk("sda")
    host.volume("dm-0", ["sda"], write_cache="write through")
    (result,) = host.check("/dev/dm-0")
    assert result["disks"][0]["reason"] == "Of 8 flushes 0 arrived: vg/dm passes no flush down (its queue reports write through)."


def test_no_flush_is_required_without_volatile_caches(host):
    host.disk("sda", on=False)
    host.volume("dm-0", ["sda"], write_cache="write through")
    (result,) = host.check("/dev/dm-0")
    assert (result["state"], result["verdict"], result["disks"][0]["needed"]) == ("not_needed", "durable", False)
    assert "has its write cache off and needs no flushes" in result["disks"][0]["reason"]


def test_protected_drive_requires_no_flush(host):
    host.disk("sda", serial="PLP1")
    (result,) = host.check("/dev/sda", protected=["PLP1"])
    assert (result["state"], result["verdict"]) == ("not_needed", "durable")


def test_few_foreign_flushes_do_not_hide_ignored_flushes(host):
    host.disk("sda")
    host.reaches = {"sda": {}}
    host.noise = {"sda": [3]}
    (result,) = host.check("/dev/sda")
    assert (result["state"], result["disks"][0]["counted"]) == ("disproved", [3])


def test_many_foreign_flushes_make_the_result_unproven(host):
    host.disk("sda")
    host.reaches = {"sda": {}}
    host.noise = {"sda": [11, 9, 10, 12, 13, 9, 8, 12, 9, 10]}
    (result,) = host.check("/dev/sda")
    assert (result["state"], result["verdict"]) == ("unproven", "durable")
    assert "the flushes of others hide ours" in result["disks"][0]["reason"]
    assert "proved" not in result["reason"]
    assert len(result["disks"][0]["counted"]) == flush_check.ROUNDS


def test_flush_delivery_on_a_busy_disk_is_proved_by_more_bursts(host):
    host.disk("sda")
    host.reaches = {"sda": {"sda": 1}}
    host.noise = {"sda": [3, 4, 2, 5, 3, 3, 4, 2, 1, 4]}
    (result,) = host.check("/dev/sda")
    assert (result["state"], len(result["disks"][0]["counted"])) == ("proved", flush_check.ROUNDS)


def test_one_burst_of_foreign_flushes_proves_nothing(host):
    host.disk("sda")
    host.reaches = {"sda": {}}
    # Others flush in the first burst only: the second burst shows that ours are swallowed.
    host.noise = {"sda": [9, 0, 0]}
    assert host.check("/dev/sda")[0]["state"] == "disproved"


def test_kernel_without_flush_counters_proves_nothing(host):
    host.disk("sda", old=True)
    host.reaches = {"sda": {"sda": 1}}
    (result,) = host.check("/dev/sda")
    assert (result["state"], result["verdict"]) == ("unproven", "durable")
    assert "since Linux 5.5" in result["disks"][0]["reason"]


def test_device_error_is_reported_and_proves_nothing(host):
    host.disk("sda")
    host.error = "/dev/sda answered an fsync with an error (Input/output error)."
    (result,) = host.check("/dev/sda")
    assert (result["state"], result["error"]) == ("unproven", host.error)


def test_writeback_cache_requires_the_flush_on_both_devices(host):
    host.disk("sda")
    host.disk("sdb")
    host.files.disk("bcache0", "virtual", slaves=["sda", "sdb"])
    host.survey = Survey((CacheState("bcache", "bcache0", "bcache", None, "bcache0", None, "sda", (), ("sdb",), "writeback"),))
    host.reaches = {"bcache0": {"sda": 1, "sdb": 2}}
    (result,) = host.check("/dev/bcache0")
    assert (result["state"], result["disks"][1]["counted"]) == ("proved", [16, 16])
    host.reaches = {"bcache0": {"sda": 1}}
    assert host.check("/dev/bcache0")[0]["state"] == "disproved"


def test_cache_device_of_writethrough_cache_is_not_checked(host):
    host.disk("sda")
    host.disk("sdb")
    host.files.disk("bcache0", "virtual", slaves=["sda", "sdb"])
    host.survey = Survey((CacheState("bcache", "bcache0", "bcache", None, "bcache0", None, "sda", (), ("sdb",), "writethrough", dirty=0),))
    host.reaches = {"bcache0": {"sda": 1}}
    (result,) = host.check("/dev/bcache0")
    assert (result["state"], [disk["disk"] for disk in result["disks"]]) == ("proved", ["sda"])


def test_layer_flushing_only_after_writes_is_unproven_not_disproved(host):
    host.disk("sda")
    host.disk("sdb")
    host.volume("dm-0", ["sda", "sdb"], target="writecache", dm_name="vg-slow")
    host.survey = Survey((CacheState("dm_cache", "slow", "writecache", None, "dm-0", None, "sda", (), ("sdb",), "writeback"),))
    host.reaches = {"dm-0": {"sda": 1}}
    (result,) = host.check("/dev/dm-0")
    assert (result["state"], result["verdict"]) == ("unproven", "durable")
    assert [(disk["disk"], disk["reached"]) for disk in result["disks"]] == [("sda", True), ("sdb", None)]
    assert "only if something was written" in result["disks"][1]["reason"]


def test_array_with_journal_is_unproven_not_disproved(host):
    host.disk("sda")
    host.disk("sdb")
    place = host.files.disk("md0", "virtual", slaves=["sda", "sdb"])
    for file, word in {"level": "raid5", "degraded": "0", "consistency_policy": "journal", "dev-sdb/state": "journal", "dev-sdb/slot": "journal"}.items():
        host.files.write(str((place / "md" / file).relative_to(host.root)), word + "\n")
    (result,) = host.check("/dev/md0")
    assert result["state"] == "unproven"
    assert "has a journal" in result["disks"][0]["reason"]


def test_unchanged_metadata_requires_no_flush(host):
    host.disk("sda")
    host.disk("sdb")
    host.volume("dm-0", ["sda"], dm_name="vg-tp_tdata", uuid="LVM-abc-tdata")
    host.volume("dm-1", ["sdb"], dm_name="vg-tp_tmeta", uuid="LVM-abc-tmeta")
    host.volume("dm-2", ["dm-0", "dm-1"], dm_name="vg-tp-tpool", uuid="LVM-abc-tpool")
    host.reaches = {"dm-2": {"sda": 1}}
    (result,) = host.check("/dev/dm-2")
    assert [(disk["disk"], disk["reached"]) for disk in result["disks"]] == [("sda", True), ("sdb", None)]
    assert "holds metadata" in result["disks"][1]["reason"]


def test_flushes_on_one_path_prove_nothing_for_another_path(host):
    host.disk("sda")
    host.volume("dm-0", ["sda"])
    host.volume("dm-1", ["sda"], write_cache="write through")
    host.volume("dm-2", ["dm-0", "dm-1"])
    host.reaches = {"dm-2": {"sda": 1}}
    (result,) = host.check("/dev/dm-2")
    assert (result["state"], result["verdict"]) == ("unproven", "at_risk")
    assert "but not on every way" in result["disks"][0]["reason"]


def test_thin_pool_without_lvm_names_is_unproven_not_disproved(host):
    host.disk("sda")
    host.disk("sdb")
    host.volume("dm-0", ["sda", "sdb"], dm_name="pool", uuid="", target="thin-pool")
    host.reaches = {"dm-0": {"sdb": 1}}
    (result,) = host.check("/dev/dm-0")
    assert (result["state"], [(disk["disk"], disk["reached"]) for disk in result["disks"]]) == ("unproven", [("sda", None), ("sdb", True)])


def test_multipath_paths_share_flushes(host):
    for name in ("sda", "sdb"):
        host.disk(name, transport="sata")
    host.volume("dm-0", ["sda", "sdb"], uuid="mpath-1", dm_name="mpatha", target="multipath")
    host.counter("dm-0")
    host.reaches = {"dm-0": {"sda": 0.5, "sdb": 0.5}}
    assert host.check("/dev/dm-0")[0]["state"] == "proved"
    host.reaches = {"dm-0": {"dm-0": 1}}
    assert host.check("/dev/dm-0")[0]["state"] == "proved"
    host.reaches = {"dm-0": {"sda": 0.25, "sdb": 0.5}}
    assert host.check("/dev/dm-0")[0]["state"] == "disproved"


def test_multiport_nvme_drive_is_counted_at_its_hidden_paths(host):
    host.disk("nvme0n1", transport="nvme")
    (host.root / "sys/class/block/nvme0c1n1").mkdir(parents=True)
    host.counter("nvme0c1n1")
    host.reaches = {"nvme0n1": {"nvme0c1n1": 1}}
    assert host.check("/dev/nvme0n1")[0]["state"] == "proved"
    host.reaches = {"nvme0n1": {}}
    assert host.check("/dev/nvme0n1")[0]["state"] == "disproved"


def test_mount_point_is_resolved_to_its_device(host):
    host.disk("sda")
    host.files.partition("sda", 1)
    host.files.mount("sda1", "/srv")
    (host.root / "srv/images").mkdir(parents=True)
    host.reaches = {"sda1": {"sda": 1}}
    (result,) = host.check("/srv/images")
    assert (result["device"], result["mount"], result["state"], result["barriers"]) == ("/dev/sda1", "/srv", "proved", True)


def test_file_system_without_barriers_sends_no_flush(host):
    host.disk("sda")
    host.files.mount("sda", "/srv")
    mounts = host.root / "proc/self/mountinfo"
    mounts.write_text(mounts.read_text().replace("/dev/sda rw", "/dev/sda rw,nobarrier,stripe=512"))
    (host.root / "srv").mkdir()
    host.reaches = {"sda": {"sda": 1}}
    by_device, by_mount = host.check("/dev/sda", "/srv")
    assert (by_device["state"], by_device["verdict"]) == ("proved", "durable")
    assert (by_mount["state"], by_mount["verdict"], by_mount["barriers"]) == ("disproved", "at_risk", False)
    assert by_mount["reason"] == "The file system on /srv is mounted without barriers, so that it sends no flush at all."
    # One device that two paths name is flushed once.
    assert host.sent == [("sda", 1), ("sda", 8), ("sda", 8)]


def test_btrfs_with_two_devices_is_checked_on_both(host):
    host.disk("sda")
    host.disk("sdb")
    host.files.write("proc/self/mountinfo", "30 1 0:42 /sub /srv rw,relatime shared:1 - btrfs /dev/sda rw,ssd\n")
    for name in ("sda", "sdb"):
        host.files.write(f"sys/fs/btrfs/11111111-2222/devices/{name}", "")
    (host.root / "srv").mkdir()
    host.reaches = {"sda": {"sda": 1}, "sdb": {}}
    assert [(result["device"], result["state"]) for result in host.check("/srv")] == [("/dev/sda", "proved"), ("/dev/sdb", "disproved")]


def test_external_xfs_journal_is_checked(host):
    host.disk("sda")
    host.disk("sdb")
    host.files.write("proc/self/mountinfo", "30 1 9:0 / /srv rw,relatime shared:1 - xfs /dev/sda rw,attr2,logdev=/dev/sdb,noquota\n")
    (host.root / "srv").mkdir()
    host.reaches = {"sda": {"sda": 1}, "sdb": {"sdb": 1}}
    assert [result["device"] for result in host.check("/srv")] == ["/dev/sda", "/dev/sdb"]


def test_nearest_and_last_mount_is_used(host):
    host.disk("sda")
    host.disk("sdb")
    host.disk("sdc")
    for name, point in (("sda", "/"), ("sdb", "/srv"), ("sdc", "/srv")):
        host.files.mount(name, point)
    (host.root / "srv/a").mkdir(parents=True)
    (host.root / "srvother").mkdir()
    assert [result["device"] for result in host.check("/srv/a", "/srvother")] == ["/dev/sdc", "/dev/sda"]


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ("30 1 0:50 / /srv rw - nfs4 server:/export rw\n", "is on nfs4 (server:/export), which is on no block device"),
        ("30 1 0:51 / /srv rw - tmpfs tmpfs rw\n", "is on tmpfs"),
        ("", "is on no mounted file system"),
    ],
)
def test_folder_without_block_device_is_rejected(host, mount, words):
    host.disk("sda")
    host.files.write("proc/self/mountinfo", mount)
    (host.root / "srv").mkdir()
    with pytest.raises(DeviceMissing, match=words.replace("(", r"\(").replace(")", r"\)")):
        host.check("/srv")


def test_missing_path_is_rejected(host):
    host.disk("sda")
    with pytest.raises(DeviceMissing, match="/dev/sdz cannot be read on this host"):
        host.check("/dev/sdz")


@pytest.mark.parametrize(("flushes", "settle"), [(0, 0.5), (1001, 0.5), (8, -1.0)])
def test_invalid_numbers_are_rejected_before_any_flush(host, flushes, settle):
    host.disk("sda")
    with pytest.raises(BadInput):
        host.check("/dev/sda", flushes=flushes, settle=settle)
    assert host.sent == []


def test_device_vanishing_during_the_count_proves_nothing(host):
    host.disk("sda")
    send = host.send

    def vanish(device, count):
        send(device, count)
        if count > 1:
            (host.root / "sys/class/block/sda/stat").unlink(missing_ok=True)

    host.send = vanish
    host.reaches = {"sda": {}}
    assert host.check("/dev/sda")[0]["state"] == "unproven"


def test_flush_is_an_fsync_on_a_read_only_descriptor(tmp_path, monkeypatch):
    file, seen = tmp_path / "disk", tmp_path / "seen"
    file.write_text("")

    def fsync(descriptor):
        with seen.open("a") as stream:
            stream.write(f"{fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY}\n")

    monkeypatch.setattr(os, "fsync", fsync)
    send_flushes(BlockDevice("disk", str(file), "8:0"), 3)
    assert seen.read_text() == "True\n" * 3
    with pytest.raises(CommandFailed, match="cannot be opened"):
        send_flushes(BlockDevice("gone", str(tmp_path / "gone"), "8:0"), 1)


@pytest.mark.parametrize(
    ("fsync", "message"), [(lambda _descriptor: time.sleep(3600), "did not answer an fsync within 0.2 s"), (lambda _descriptor: os._exit(3), "ended early")]
)
def test_flush_that_does_not_return_is_an_error(tmp_path, monkeypatch, fsync, message):
    (tmp_path / "disk").write_text("")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CommandFailed, match=message):
        send_flushes(BlockDevice("disk", str(tmp_path / "disk"), "8:0"), 3, patience=0.2 if "answer" in message else 30)


def test_failed_fsync_raises_with_one_sentence(tmp_path, monkeypatch):
    def broken(descriptor):
        raise OSError(5, "Input/output error")

    file = tmp_path / "disk"
    file.write_text("")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(CommandFailed, match="answered an fsync with an error"):
        send_flushes(BlockDevice("disk", str(file), "8:0"), 3)
