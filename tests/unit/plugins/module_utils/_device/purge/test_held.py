# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A device that becomes another one between its examination and its claim, or while it is held: nothing is written to it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import OpenFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import read_sameness, require_same
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import judge
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

MIB = 1024**2
TABLES = "vg0-scratch: 0 131072 linear 8:16 2048\npool: 0 131072 cache 253:1 253:2 8:16 128 1 writeback smq 2 migration_threshold 2048\n"


class Rig:
    """A host with a SATA disk that has a partition, an NVMe drive, a volume on the disk, an array and a loop device, all with data."""

    def __init__(self, root):
        self.root = root
        self.host = FakeHost(root)
        self.tables = TABLES
        self.places = {name: self.host.disk(name, kind, serial=serial, size=MIB) for name, kind, serial in (("sdb", "sata", "S-B"), ("nvme0n1", "nvme", "N-1"))}
        self.host.partition("sdb", 1, size=MIB)
        for name, dm_name, uuid in (("dm-0", "vg0-scratch", "LVM-abc"), ("dm-1", "pool", "CACHE-1")):
            self.places[name] = self.host.disk(name, "virtual", dm_name=dm_name, dm_uuid=uuid, slaves=["sdb"], size=MIB)
        self.places["md0"] = self.host.disk("md0", "virtual", slaves=["nvme0n1"], size=MIB, MD_NAME="any:x")
        self.places["loop3"] = self.host.disk("loop3", "virtual", size=MIB)
        (root / "image").write_bytes(b"")
        self.set("loop3/loop/backing_file", "/image")
        self.set("md0/md/uuid", "11:22")
        self.set("sdb/sdb1/start", "2048")
        self.set("sdb/sdb1/uevent", "DEVTYPE=partition\nPARTUUID=aaaa-1")
        self.set("sdb/diskseq", "7")
        self.set("nvme0n1/wwid", "eui.0025388b00000001")
        (self.places["sdb"] / "device/vpd_pg80").write_bytes(b"\0\x80\0\x10  S-B           ")
        for name in ("sdb1", *self.places):
            (root / "dev" / name).write_bytes(b"data of somebody".ljust(MIB, b"."))
        nothing = {("wipefs",): Reply('{"signatures": []}'), ("dmsetup", "info"): Reply("0\n"), ("dmsetup", "status"): Reply("")}
        self.runner = ScriptedRunner(
            {("udevadm", "info"): lambda _words: self.host.udev_reply, ("dmsetup", "table"): lambda _words: Reply(self.tables), **nothing}
        )

    def set(self, path, text):
        name, _slash, attribute = path.partition("/")
        place = self.places[name] / attribute
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="latin-1")

    def examined(self, name, **permission):
        return examine(read_devices(self.runner, self.root), GuardTarget(f"/dev/{name}", **permission), self.runner, self.root, pause=lambda _seconds: None)


def kinds(facts):
    return {objection.kind for objection in judge.judge(facts, writing=True)}


SWAPS = {
    "another drive under the number": ("sdb", "sdb/diskseq", "9", "was diskseq 7 and is diskseq 9 now"),
    "another serial number": ("sdb", "sdb/device/vpd_pg80", "\0\x80\0\x10  S-C\033[2J", "the unit serial number was S-B and is S-C?[2J now"),
    "another model": ("sdb", "sdb/device/model", "OTHER", "the model was TESTDISK and is OTHER now"),
    "another size": ("sdb", "sdb/size", "8", "the size was 2048 sectors of 512 bytes and is 8 sectors of 512 bytes now"),
    "another number": ("sdb", "sdb/dev", "8:32", "is 8:32 now"),
    "another WWN": ("nvme0n1", "nvme0n1/wwid", "eui.0025388b00000002", "the WWN was eui.0025388b00000001 and is eui.0025388b00000002 now"),
    "partition moved": ("sdb1", "sdb/sdb1/start", "4096", "the start was 2048 and is 4096 now"),
    "partition made again": ("sdb1", "sdb/sdb1/uevent", "PARTUUID=aaaa-9", "the PARTUUID was aaaa-1 and is aaaa-9 now"),
    "disk of the partition": ("sdb1", "sdb/diskseq", "9", "of /dev/sdb below it was diskseq 7 and is diskseq 9 now"),
    "mapping made again": ("dm-0", "dm-0/dm/uuid", "LVM-xyz", "the device-mapper UUID was LVM-abc and is LVM-xyz now"),
    "mapping renamed": ("dm-0", "dm-0/dm/name", "vg0-data", "the device-mapper name was vg0-scratch and is vg0-data now"),
    "drive below a mapping": ("dm-0", "sdb/diskseq", "9", "of /dev/sdb below it was diskseq 7 and is diskseq 9 now"),
    "array made again": ("md0", "md0/md/uuid", "33:44", "the MD UUID was 11:22 and is 33:44 now"),
    "another file": ("loop3", "loop3/loop/backing_file", "/other", "the backing file was"),
    "another part of the file": ("loop3", "loop3/loop/offset", "1048576", "the offset in the backing file was unknown and is 1048576 now"),
}


@pytest.mark.parametrize(("name", "path", "text", "word"), SWAPS.values(), ids=SWAPS)
def test_device_that_became_another_one_before_its_claim_is_refused(tmp_path, name, path, text, word):
    """With the permission for what was there: the identity of the first is not applied to the second."""
    rig = Rig(tmp_path)
    facts = rig.examined(name)
    facts = rig.examined(name, allow_data_loss=True, identity=facts.identity)
    assert not kinds(facts) & {"identity", "data"}, "the permission is that of the first device"
    with judge.claimed(facts, rig.runner, tmp_path):
        judge.require_unchanged(facts, rig.runner, tmp_path)
    (tmp_path / "other").write_bytes(b"")
    rig.set(path, text)
    with pytest.raises(Refused) as caught, judge.claimed(facts, rig.runner, tmp_path):
        pytest.fail("it would have been written")
    assert f"/dev/{name} is not the device any more that was examined: " in caught.value.message
    assert word in caught.value.message
    assert caught.value.message.endswith("Nothing was written to what is there now.")
    with pytest.raises(Refused, match="is not the device any more that was examined"):
        judge.require_unchanged(facts, rig.runner, tmp_path)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("dm-0", "linear 8:16 2048", "linear 8:16 4096"),
        ("dm-0", "linear 8:16 2048", "linear 8:32 2048"),
        ("dm-0", "0 131072 linear", "0 131072 striped"),
        ("dm-1", "253:1 253:2 8:16", "253:1 253:2 8:32"),
    ],
)
def test_mapping_that_gets_another_table_is_refused(tmp_path, name, before, after):
    rig = Rig(tmp_path)
    facts = rig.examined(name)
    rig.tables = TABLES.replace(before, after)
    assert rig.tables != TABLES
    with pytest.raises(Refused, match=r"the row 0 of the device-mapper table was .* now"):
        judge.require_same_device(None, facts, rig.runner, tmp_path)


@pytest.mark.parametrize(
    ("path", "text"),
    [("dm-1/dm/suspended", "0"), ("md0/md/degraded", "1"), ("md0/md/array_state", "active"), ("sdb/queue/write_cache", "write through"), ("sdb/stat", "1 2 3")],
)
def test_settings_and_counters_do_not_make_another_device(tmp_path, path, text):
    rig = Rig(tmp_path)
    examined = {name: read_sameness(name, rig.runner, tmp_path) for name in ("sdb1", *rig.places)}
    rig.set(path, text)
    rig.tables = TABLES.replace("migration_threshold 2048", "migration_threshold 4096").replace("1 writeback", "1 writethrough")
    for name, sameness in examined.items():
        require_same(f"/dev/{name}", sameness, rig.runner, tmp_path)


def test_array_that_lost_a_member_is_the_same(tmp_path):
    rig = Rig(tmp_path)
    examined = read_sameness("md0", rig.runner, tmp_path)
    shutil.rmtree(rig.places["nvme0n1"])
    require_same("/dev/md0", examined, rig.runner, tmp_path)


def test_device_that_is_gone_is_refused(tmp_path):
    rig = Rig(tmp_path)
    examined = read_sameness("nvme0n1", rig.runner, tmp_path)
    shutil.rmtree(rig.places["nvme0n1"])
    with pytest.raises(Refused, match=r"that was examined: it is gone\. Nothing was written"):
        require_same("/dev/nvme0n1", examined, rig.runner, tmp_path)


def test_device_exchanged_while_udev_was_read_is_refused(tmp_path):
    """The identity is that of the first drive, and everything else is read of the second."""
    rig = Rig(tmp_path)

    def exchanged(_words):
        rig.set("sdb/diskseq", "8")
        return rig.host.udev_reply

    rig.runner.replies["udevadm", "info"] = exchanged
    with pytest.raises(Refused, match=r"/dev/sdb has become another device while the devices .* \(it was diskseq 7 and is diskseq 8 now\): run again"):
        rig.examined("sdb", allow_data_loss=True, identity="S-B")


def test_drive_pulled_on_a_kernel_without_sequence_numbers_is_refused(tmp_path):
    rig = Rig(tmp_path)
    (rig.places["sdb"] / "diskseq").unlink()
    facts = rig.examined("sdb")
    with judge.claimed(facts, rig.runner, tmp_path):
        pass
    # It keeps its inode, which sysfs does not give again either.
    rig.places["sdb"].rename(tmp_path / "pulled")
    shutil.copytree(tmp_path / "pulled", rig.places["sdb"], symlinks=True)
    number = r"the number that the kernel gives anew to each device was inode \d+ and is inode \d+ now"
    with pytest.raises(Refused, match=number), judge.claimed(facts, rig.runner, tmp_path):
        pytest.fail("it would have been written")


# -- real loop devices


@pytest.fixture
def loop():
    if os.geteuid() != 0 or not shutil.which("losetup") or subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no free loop device, or no permission for it")
    made: list[str] = []

    def attach(image, *options, node=""):
        words = [*options, node, str(image)] if node else ["--find", "--show", *options, str(image)]
        found = subprocess.run(["losetup", *words], capture_output=True, text=True, check=True).stdout.strip() or node
        made.append(found)
        return found

    yield attach
    for node in set(made):
        subprocess.run(["losetup", "--detach", node], capture_output=True, check=False)


def image_of(folder, name, content):
    image = folder / name
    image.write_bytes(content.ljust(4 * MIB, b"\0"))
    return image


def detach(node):
    subprocess.run(["losetup", "--detach", node], check=True)


def examined_loop(node, **permission):
    runner = Runner()
    return examine(read_devices(runner), GuardTarget(node, **permission), runner), runner


@pytest.mark.parametrize("same_file", [False, True], ids=["another file of the same size", "the same file again"])
def test_loop_device_attached_again_under_the_same_number_is_refused(tmp_path, loop, same_file):
    first, second = image_of(tmp_path, "a", b"a may be lost"), image_of(tmp_path, "b", b"b must be kept")
    node = loop(first)
    facts, runner = examined_loop(node, allow_data_loss=True, identity=str(first))
    assert not kinds(facts) & {"identity", "data"}, "the permission is that of the first file"
    detach(node)
    loop(first if same_file else second, node=node)
    with pytest.raises(Refused, match=r"is not the device any more that was examined: the .*(diskseq|backing file)"), judge.claimed(facts, runner):
        pytest.fail("it would have been written")
    assert second.read_bytes().startswith(b"b must be kept")
    # What is held is no proof of its own: a descriptor that was opened later is of the second file.
    descriptor = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with pytest.raises(Refused, match="is not the device any more"):
            judge.require_same_device(descriptor, facts, runner)
    finally:
        os.close(descriptor)


def test_unchanged_loop_device_is_claimed_and_renaming_its_file_changes_nothing(tmp_path, loop, monkeypatch):
    # Of some machines not all processes can be read, not even by root.
    monkeypatch.setattr(judge, "open_files", lambda *_arguments, **_options: OpenFiles({}))
    image = image_of(tmp_path, "a", b"a may be lost")
    node = loop(image)
    facts, runner = examined_loop(node, allow_data_loss=True, identity=str(image))
    image.rename(tmp_path / "c")
    with judge.claimed(facts, runner):
        judge.require_unchanged(facts, runner)


def test_loop_device_of_another_number_under_the_name_is_refused(tmp_path, loop):
    """A descriptor of another device than the one that was examined, as after names were given anew."""
    facts, runner = examined_loop(loop(image_of(tmp_path, "a", b"")))
    other = os.open(loop(image_of(tmp_path, "b", b"")), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with pytest.raises(Refused, match=r"the device number was 7:\d+ and is 7:\d+ now; the number that the kernel gives anew to each device was diskseq"):
            judge.require_same_device(other, facts, runner)
    finally:
        os.close(other)


def test_partition_table_read_again_with_another_start_is_refused(tmp_path, loop):
    image = image_of(tmp_path, "a", b"")
    node = loop(image, "--partscan")
    subprocess.run(["addpart", node, "1", "2048", "2048"], check=True)
    facts, runner = examined_loop(f"{node}p1")
    with judge.claimed(facts, runner):
        pass
    subprocess.run(["delpart", node, "1"], check=True)
    subprocess.run(["addpart", node, "1", "4096", "2048"], check=True)
    with pytest.raises(Refused, match="the start was 2048 and is 4096 now"), judge.claimed(facts, runner):
        pytest.fail("it would have been written")
    subprocess.run(["delpart", node, "1"], check=True)


def test_loop_device_over_another_one_that_was_attached_again_is_refused(tmp_path, loop):
    first, second = image_of(tmp_path, "a", b""), image_of(tmp_path, "b", b"b must be kept")
    below = loop(first)
    facts, runner = examined_loop(loop(Path(below)))
    with judge.claimed(facts, runner):
        pass
    subprocess.run(["losetup", "--detach", facts.path], check=True)
    detach(below)
    loop(second, node=below)
    loop(Path(below), node=facts.path)
    with pytest.raises(Refused, match="is not the device any more that was examined"), judge.claimed(facts, runner):
        pytest.fail("it would have been written")
