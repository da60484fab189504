# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device import namespaces
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.health import drives_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import MaxSectors, parse_max_sectors, read_reserves
from ansible_collections.cachefleet.storage.plugins.module_utils._device.partition_table import NAME, Partition, Table, make, parse_table, read_table
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

MIB = 1024**2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n/dev/sda:\n max sectors   = 2097152/2097152, HPA is disabled\n", MaxSectors(2097152, 2097152)),
        ("\n/dev/sda:\n max sectors   = 468862128/1953525168, HPA is enabled\n", MaxSectors(468862128, 1953525168)),
        ("\n/dev/sda:\n max sectors   = 1953525168/1953525168, ACCESSIBLE MAX ADDRESS disabled\n", MaxSectors(1953525168, 1953525168)),
        # A bridge, and a volume of a MegaRAID controller, with exit status 0.
        ("\n/dev/sda:\n max sectors   = 0/1, HPA setting seems invalid (buggy kernel device driver?)\n", None),
        ("\n/dev/sda:\n max sectors   = 0/1, HPA is enabled\n", None),
        ("\n/dev/sda:\n max sectors   = 66055248/1(156301488?), HPA setting seems invalid (buggy kernel device driver?)\n", None),
        ("\n/dev/sda:\n max sectors   = 9/5, HPA is enabled\n", None),
        ("\n/dev/nvme0n1:\n", None),
        ("", None),
    ],
)
def test_max_sectors_are_parsed(text, found):
    assert parse_max_sectors(text) == found


def test_max_sectors_beside_an_error_are_ignored():
    text = "\n/dev/sda:\n max sectors   = 5/9, HPA is enabled\n"
    assert parse_max_sectors(text) == MaxSectors(5, 9)
    assert parse_max_sectors(text, "SG_IO: bad/missing sense data, sb[]:  f0 00 04") is None


def look(host, replies=None, health=(), missing=()):
    runner = ScriptedRunner({("udevadm", "info"): host.udev_reply, **(replies or {})}, missing)
    devices = read_devices(runner, host.root)
    return (*read_reserves(drives_of(devices), health, runner, host.root), runner)


def partition(host, disk, number, start, size):
    host.partition(disk, number, size)
    host.write(f"{(host.root / 'sys/class/block' / (disk + str(number))).resolve().relative_to(host.root.resolve())}/start", f"{start // 512}\n")


def test_reserve_of_each_ssd(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", size=64 * MIB)
    host.disk("sdb", size=100 * MIB)
    host.disk("nvme0n1", "nvme", size=60 * MIB)
    host.disk("sdc", size=100 * MIB, rotational=True)
    partition(host, "sdb", 1, MIB, 20 * MIB)
    partition(host, "sdb", 2, 21 * MIB, 19 * MIB)
    replies = {
        ("hdparm", "-N", "/dev/sda"): Reply("\n/dev/sda:\n max sectors   = 131072/262144, HPA is enabled\n"),
        ("hdparm", "-N", "/dev/sdb"): Reply("\n/dev/sdb:\n max sectors   = 204800/204800, HPA is disabled\n"),
    }
    health = [DriveHealth("nvme0n1", "/dev/nvme0n1", capacity=100 * MIB, unallocated=40 * MIB)]
    reserves, problems, runner = look(host, replies, health)
    found = {one.name: one for one in reserves}
    assert problems == []
    assert sorted(found) == ["nvme0n1", "sda", "sdb"]
    assert (found["sda"].native, found["sda"].hidden, found["sda"].tail, found["sda"].percent) == (128 * MIB, 64 * MIB, None, 50.0)
    assert (found["sdb"].tail, found["sdb"].reserved, found["sdb"].percent) == (60 * MIB, 60 * MIB, 60.0)
    assert (found["nvme0n1"].native, found["nvme0n1"].reserved, found["nvme0n1"].percent) == (100 * MIB, 40 * MIB, 40.0)
    assert len([words for words in runner.calls if words[0] == "hdparm"]) == 2


def test_drive_with_4_kib_sectors(tmp_path):
    host = FakeHost(tmp_path)
    place = host.disk("sda", size=64 * MIB)
    (place / "queue/logical_block_size").write_text("4096\n")
    reserves, _problems, _runner = look(host, {("hdparm",): Reply(f"\n/dev/sda:\n max sectors   = {64 * 256}/{128 * 256}, HPA is enabled\n")})
    assert reserves[0].hidden == 64 * MIB


def test_max_sectors_inconsistent_with_drive_size_are_ignored(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", size=64 * MIB)
    reserves, _problems, _runner = look(host, {("hdparm",): Reply("\n/dev/sda:\n max sectors   = 5/10, HPA is enabled\n")})
    assert (reserves[0].hidden, reserves[0].native) == (None, 64 * MIB)


def test_missing_hdparm_is_one_problem(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda")
    host.disk("sdb")
    reserves, problems, _runner = look(host, missing=("hdparm",))
    assert len(reserves) == 2
    assert len(problems) == 1


TABLE = """{
   "partitiontable": {
      "label": "gpt", "id": "D1CB8A9E", "device": "/dev/nvme0n1", "unit": "sectors", "firstlba": 6, "lastlba": 262138, "sectorsize": 4096,
      "partitions": [{"node": "/dev/nvme0n1p1", "start": 256, "size": 131072, "type": "0FC63DAF", "uuid": "6A1B", "name": "cachefleet-usable"}]
   }
}"""


def test_partition_table_offsets_are_in_bytes():
    table = parse_table(TABLE)
    assert table == Table("gpt", (Partition(MIB, 512 * MIB, NAME),))
    assert table.ours == table.partitions[0]


@pytest.mark.parametrize(
    "table",
    [
        Table("gpt", (Partition(MIB, MIB, "data"),)),
        Table("gpt", ()),
        Table("dos", (Partition(MIB, MIB, NAME),)),
        Table("gpt", (Partition(MIB, MIB, NAME), Partition(2 * MIB, MIB, "data"))),
    ],
)
def test_other_partition_tables_are_not_ours(table):
    assert table.ours is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"partitiontable": {"partitions": []}}', '{"partitiontable": {"label": "gpt", "partitions": [{"start": "x"}]}}']
)
def test_invalid_partition_table_is_rejected(text):
    with pytest.raises(NotUnderstood):
        parse_table(text)


def test_missing_partition_table_is_distinguished_from_failure():
    none = Reply("", 1, "sfdisk: failed to dump partition table: /dev/sda: does not contain a recognized partition table\n")
    assert read_table(ScriptedRunner({("sfdisk", "--json"): none}), "/dev/sda") is None
    with pytest.raises(CommandFailed, match="Input/output error"):
        read_table(ScriptedRunner({("sfdisk", "--json"): Reply("", 1, "sfdisk: cannot open /dev/sda: Input/output error\n")}), "/dev/sda")


def test_partition_table_is_written_in_sector_independent_units():
    given = []

    class Listening(ScriptedRunner):
        def run(self, argv, *, stdin="", **how):
            given.append(stdin)
            return super().run(argv, **how)

    make(Listening({("sfdisk",): Reply()}), "/dev/sda", 614 * MIB)
    assert given == ['label: gpt\nstart=1MiB, size=614MiB, name="cachefleet-usable"\n']


def test_nvme_controller_and_namespaces():
    replies = {
        ("nvme", "id-ctrl"): Reply(json.dumps({"cntlid": 6, "oacs": 0x1F, "tnvmcap": "1600321314816", "unvmcap": 0, "cmic": 0})),
        ("nvme", "list-ns", "/dev/nvme0", "--output-format=json"): Reply(json.dumps({"nsid_list": [{"nsid": 1}]})),
        ("nvme", "list-ns", "/dev/nvme0", "--all"): Reply(json.dumps({"nsid_list": [{"nsid": 1}, {"nsid": 3}]})),
        ("nvme", "id-ns"): Reply(json.dumps({"nsze": 1000, "flbas": 1, "lbafs": [{"ds": 9}, {"ds": 12}], "dlfeat": 9})),
    }
    found = namespaces.read_controller(ScriptedRunner(replies), "/dev/nvme0")
    assert (found.number, found.capacity, found.unallocated, found.manages, found.several) == (6, 1600321314816, 0, True, False)
    assert [(one.number, one.size, one.block, one.flbas, one.attached, one.zeroes) for one in found.namespaces] == [
        (1, 4096000, 4096, 1, True, True),
        (3, 4096000, 4096, 1, False, True),
    ]


def test_namespaces_are_read_from_text_where_nvme_cli_lists_them_as_nothing_else():
    usage = Reply("Usage: nvme list-ns <device> [OPTIONS]\n", rc=70, stderr="list-ns: unrecognized option '--output-format=json'\n")
    replies = {
        ("nvme", "id-ctrl"): Reply(json.dumps({"cntlid": 6, "oacs": 0x1F})),
        ("nvme", "list-ns", "/dev/nvme0", "--output-format=json"): usage,
        ("nvme", "list-ns", "/dev/nvme0", "--all", "--output-format=json"): usage,
        ("nvme", "list-ns", "/dev/nvme0"): Reply("[   0]:0x1\n"),
        ("nvme", "list-ns", "/dev/nvme0", "--all"): Reply("[   0]:0x1\n[   1]:0x1f\n"),
        ("nvme", "id-ns"): Reply(json.dumps({"nsze": 1000, "flbas": 0, "lbafs": [{"ds": 9}]})),
    }
    found = namespaces.read_controller(ScriptedRunner(replies), "/dev/nvme0")
    assert [(one.number, one.attached) for one in found.namespaces] == [(1, True), (31, False)]


def test_a_list_that_fails_for_another_reason_is_an_error():
    replies = {("nvme", "id-ctrl"): Reply('{"oacs": 0}'), ("nvme", "list-ns"): Reply(rc=1, stderr="NVMe status: INVALID_FIELD")}
    with pytest.raises(CommandFailed, match="list-ns"):
        namespaces.read_controller(ScriptedRunner(replies), "/dev/nvme0")


@pytest.mark.parametrize("found", [{}, {"lbafs": []}, {"lbafs": [{}]}, {"lbafs": 3}])
def test_namespace_without_block_size_is_rejected(found):
    with pytest.raises(NotUnderstood, match="block size"):
        namespaces.parse_namespace(found, 1, True, "/dev/nvme0")


def test_captured_controller_identity_is_parsed(shared_samples):
    text = (shared_samples / "cache/nvme-id-ctrl.txt").read_text()
    replies = {("nvme", "id-ctrl"): Reply(text), ("nvme", "list-ns"): Reply('{"nsid_list": []}')}
    found = namespaces.read_controller(ScriptedRunner(replies), "/dev/nvme0")
    assert (found.capacity, found.manages, found.several, found.namespaces) == (0, True, False, ())


@pytest.mark.parametrize("text", ["", "NVMe status: INVALID_FIELD", "[]"])
def test_invalid_nvme_output_is_rejected(text):
    with pytest.raises(NotUnderstood, match="nvme id-ctrl printed no JSON"):
        namespaces.read_controller(ScriptedRunner({("nvme", "id-ctrl"): Reply(text)}), "/dev/nvme0")


def test_namespace_controller_is_found_with_and_without_multipath(tmp_path):
    for name in ("nvme0", "nvme-subsys1/nvme3"):
        (tmp_path / "sys/devices" / name).mkdir(parents=True)
    for name, place in (("nvme0n1", "nvme0"), ("nvme1n1", "nvme-subsys1")):
        (tmp_path / "sys/class/block" / name).mkdir(parents=True)
        (tmp_path / "sys/class/block" / name / "device").symlink_to(tmp_path / "sys/devices" / place)
    assert namespaces.controller_of(tmp_path, "nvme0n1") == "/dev/nvme0"
    assert namespaces.controller_of(tmp_path, "nvme1n1") == "/dev/nvme3"
    (tmp_path / "sys/devices/nvme-subsys1/nvme4").mkdir()
    assert namespaces.controller_of(tmp_path, "nvme1n1") is None
    assert namespaces.controller_of(tmp_path, "sda") is None


def test_controller_without_namespaces_is_found_by_name(tmp_path):
    folder = tmp_path / "sys/class/nvme/nvme4"
    folder.mkdir(parents=True)
    (folder / "model").write_text("QEMU NVMe Ctrl                          \n")
    (folder / "serial").write_text("NODE1-NVME0         \n")
    for name in ("nvme-QEMU_NVMe_Ctrl_NODE1-NVME0", "nvme-QEMU_NVMe_Ctrl_NODE1-NVME0_1"):
        assert namespaces.controller_named(tmp_path, f"/dev/disk/by-id/{name}") == "/dev/nvme4"
    assert namespaces.controller_named(tmp_path, "/dev/disk/by-id/nvme-eui.0123") is None
