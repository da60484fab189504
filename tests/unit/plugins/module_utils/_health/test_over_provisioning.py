# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import itertools
import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import keep
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing, NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents
from ansible_collections.cachefleet.storage.plugins.module_utils._health import over_provisioning
from ansible_collections.cachefleet.storage.plugins.module_utils._health.over_provisioning import (
    AttachNamespace,
    CreateNamespace,
    DeleteNamespace,
    DiscardDrive,
    MakePartition,
    OverProvisioningLayer,
    RemovePartition,
    SetMaxSectors,
    read_drives,
)
from ansible_collections.cachefleet.storage.tests.unit.support.fake_drives import MIB, NVME, SATA, VOLUME, FakeDrives, Killed
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import opened, process


@pytest.fixture
def host(tmp_path, monkeypatch):
    fake = FakeDrives(tmp_path)
    monkeypatch.setattr(over_provisioning, "read_devices", lambda runner, _root: runner.devices())
    return fake


def run(host, *items, check_mode=False):
    requested = read_drives(items)
    layer = OverProvisioningLayer(host, requested, host.root, sleep=lambda _seconds: None)
    outcome = converge(layer, check_mode=check_mode)
    return outcome, layer.facts(outcome.state)


def partition(usable="50%", device=SATA, **further):
    return {"device": device, "usable": usable, **further}


GONE = {"state": "absent", "usable": None}


# -- one partition


def test_empty_drive_is_discarded_and_gets_one_partition(host):
    outcome, facts = run(host, partition())
    assert outcome.changed
    assert host.changes == ["blkdiscard /dev/sda --force", f"sfdisk --quiet --wipe never {SATA}"]
    assert facts["drives"] == [
        {
            "device": SATA,
            "method": "partition",
            "size": 64 * MIB,
            "usable": 32 * MIB,
            "usable_device": f"{SATA}-part1",
            "discard": "was discarded, and returns zeroes wherever it was read again",
        }
    ]
    outcome, facts = run(host.again(), partition())
    assert not outcome.changed
    assert host.changes == []
    assert facts["drives"][0]["discard"] is None


def test_drive_exchanged_while_it_is_examined_is_not_discarded(host, monkeypatch):
    really = over_provisioning.examine

    def exchanged(*arguments, **how):
        found = really(*arguments, **how)
        if how.get("held"):
            (host.root / "sys/class/block/sda/serial").write_text("ANOTHER\n")
        return found

    monkeypatch.setattr(over_provisioning, "examine", exchanged)
    with pytest.raises(Refused, match="the serial number was unknown and is ANOTHER now"):
        run(host, partition())
    assert host.changes == []


def test_check_mode_predicts_run_and_changes_nothing(host):
    outcome, _facts = run(host, partition(), check_mode=True)
    assert [type(step.operation) for step in outcome.steps] == [DiscardDrive, MakePartition]
    assert outcome.to_dict()["diff"]["after"] == {SATA: {"discarded": True, "usable": 32 * MIB}}
    assert host.changes == []


def test_size_is_rounded_down_to_whole_mebibytes(host):
    assert run(host, partition("20.7M"))[1]["drives"][0]["usable"] == 20 * MIB


def test_large_share_leaves_space_for_both_partition_tables(host):
    assert run(host, partition("99.9%"))[1]["drives"][0]["usable"] == 62 * MIB


def test_changed_size_discards_and_recreates_the_partition(host):
    run(host, partition())
    outcome, facts = run(host.again(), partition("25%"))
    assert [type(step.operation) for step in outcome.steps] == [RemovePartition, DiscardDrive, MakePartition]
    assert facts["drives"][0]["usable"] == 16 * MIB


def test_matching_partition_is_not_touched_whatever_it_contains(host):
    run(host, partition())
    host.signatures["sda1"], host.holders["sda1"] = "LVM2_member", ("dm-0",)
    assert not run(host.again(), partition())[0].changed


@pytest.mark.parametrize("change", [{"usable": "25%"}, GONE])
@pytest.mark.parametrize("use", ["signature", "holder"])
def test_partition_in_use_is_not_removed(host, change, use):
    run(host, partition())
    if use == "signature":
        host.signatures["sda1"] = "ext4"
    else:
        host.holders["sda1"] = ("dm-0",)
    with pytest.raises(Refused, match="ext4" if use == "signature" else "is used by dm-0"):
        run(host.again(), partition(**change))
    assert host.changes == []


def test_absent_removes_the_partition(host):
    run(host, partition())
    outcome, facts = run(host.again(), partition(**GONE))
    assert [type(step.operation) for step in outcome.steps] == [RemovePartition]
    assert host.tables == host.kernel == {}
    assert facts["drives"][0]["usable"] == 64 * MIB
    assert not run(host.again(), partition(**GONE))[0].changed


def test_foreign_partition_table_is_neither_used_nor_removed(host):
    host.tables["sda"] = {"label": "gpt", "sectorsize": 512, "partitions": [{"start": 2048, "size": 65536, "name": "data"}]}
    with pytest.raises(Refused, match="gpt"):
        run(host, partition())
    assert not run(host.again(), partition(**GONE))[0].changed
    assert host.changes == []


@pytest.mark.parametrize("use", ["signature", "holder", "metadata"])
def test_non_empty_drive_is_refused_and_never_discarded(host, use):
    if use == "signature":
        host.signatures["sda"] = "crypto_LUKS"
    elif use == "holder":
        host.holders["sda"] = ("md0",)
    else:
        data = bytearray((host.root / "dev/sda").read_bytes())
        data[16:20] = (0xDEADBEEF).to_bytes(4, "little")
        (host.root / "dev/sda").write_bytes(data)
    before = (host.root / "dev/sda").read_bytes()
    with pytest.raises(Refused, match="only an empty drive is divided"):
        run(host, partition())
    assert host.changes == []
    assert (host.root / "dev/sda").read_bytes() == before


def test_one_refused_drive_prevents_changes_to_the_others(host):
    host.signatures["nvme0n1"] = "ext4"
    with pytest.raises(Refused):
        run(host, partition(), partition(device=NVME))
    assert host.changes == []


def test_use_since_the_plan_prevents_discard(host):
    requested = read_drives([partition()])
    layer = OverProvisioningLayer(host, requested, host.root, sleep=lambda _seconds: None)
    (discard, _partition) = layer.plan(layer.read())
    host.signatures["sda"] = "ext4"
    with pytest.raises(Refused, match="ext4"):
        layer.apply(discard)
    assert host.changes == []


def test_drive_without_discard_support_requires_explicit_permission(host):
    with pytest.raises(Refused, match="without_discard"):
        run(host, partition(device=VOLUME))
    outcome, _facts = run(host, partition(device=VOLUME, without_discard=True))
    assert [type(step.operation) for step in outcome.steps] == [MakePartition]


@pytest.mark.parametrize("device", [SATA, NVME])
def test_drive_returning_data_instead_of_zeroes_did_not_discard(host, device):
    host.zeroes = False
    with pytest.raises(NotEffective, match="discard did nothing"):
        run(host, partition(device=device))
    assert host.tables == {}


@pytest.mark.parametrize("device", [SATA, NVME])
def test_drive_without_zeroes_guarantee_cannot_prove_discard(host, device):
    host.zeroes, host.promised = False, False
    assert "cannot prove" in run(host, partition(device=device))[1]["drives"][0]["discard"]


@pytest.mark.parametrize(("device", "method"), [(SATA, "partition"), (SATA, "hpa"), (NVME, "namespace")])
def test_drive_with_data_without_a_signature_is_not_discarded(host, device, method):
    node = host.root / "dev" / ("sda" if device == SATA else "nvme0n1")
    before = b"encrypted disk of a machine" * 4096
    node.write_bytes(before)
    with pytest.raises(Refused, match="contains data without a known signature, the first that was found at byte 0"):
        run(host, partition(device=device, method=method))
    assert (host.changes, node.read_bytes()) == ([], before)


@pytest.mark.parametrize("mode", [os.O_RDWR, os.O_RDONLY])
def test_drive_that_a_process_has_open_is_not_discarded(host, mode):
    """A machine, a database or a target opens its disk without holding it."""
    open_in_a_process(host, "sda", mode)
    with pytest.raises(Refused, match=r"is open for (writing|reading) in qemu \(77\)"):
        run(host, partition())
    assert host.changes == []


def open_in_a_process(host, name, mode=os.O_RDWR):
    opened(process(host.root, 77, comm="qemu\n", maps=""), 3, host.root / "dev" / name, mode)


def test_drive_opened_after_the_plan_is_not_discarded(host):
    layer = OverProvisioningLayer(host, read_drives([partition()]), host.root, sleep=lambda _seconds: None)
    steps = layer.plan(layer.read())
    open_in_a_process(host, "sda")
    with pytest.raises(Refused, match="is open for writing in qemu"):
        layer.apply(steps[0])
    assert host.changes == []


def test_unreadable_drive_is_not_empty(host, monkeypatch):
    def failing(_node, _places):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(contents, "first_data", failing)
    with pytest.raises(Refused, match=r"cannot be read \(Input/output error\)"):
        run(host, partition())
    assert host.changes == []


def test_partition_that_a_cache_has_left_is_removed_and_one_with_other_data_is_not(host):
    run(host, partition())
    node = host.root / "dev/sda1"
    node_data = b"blocks of an origin" * 100
    read = host.devices

    def devices():
        found = read()
        node.write_bytes(node_data)
        return found

    host.devices = devices
    with pytest.raises(Refused, match="contains data without a known signature"):
        run(host.again(), partition(**GONE))
    node.write_bytes(node_data)
    keep("/dev/sda1", host.root)
    assert run(host.again(), partition(**GONE))[0].changed


def test_missing_sfdisk_is_reported_before_discard(host):
    host.missing.add("sfdisk")
    with pytest.raises(ToolMissing):
        run(host, partition())
    assert host.changes == []


# -- ATA


def test_hpa_takes_effect_from_the_next_power_cycle(host):
    outcome, facts = run(host, partition(method="hpa"))
    assert [type(step.operation) for step in outcome.steps] == [DiscardDrive, SetMaxSectors]
    assert host.changes == ["blkdiscard /dev/sda --force", f"hdparm --yes-i-know-what-i-am-doing -Np{32 * MIB // 512} {SATA}"]
    assert "next power cycle" in facts["problems"][0]
    assert outcome.warnings == tuple(facts["problems"])
    outcome, facts = run(host.again(), partition(method="hpa"))
    assert not outcome.changed
    assert facts["problems"]
    host.power_cycle()
    outcome, facts = run(host.again(), partition(method="hpa"))
    assert not outcome.changed
    assert facts["problems"] == []
    assert (facts["drives"][0]["size"], facts["drives"][0]["usable"]) == (64 * MIB, 32 * MIB)


def test_second_hpa_change_in_one_power_cycle_is_refused(host):
    run(host, partition(method="hpa"))
    with pytest.raises(Refused, match="one change per power cycle"):
        run(host.again(), partition("25%", method="hpa"))
    host.power_cycle()
    assert run(host.again(), partition("25%", method="hpa"))[0].changed
    host.power_cycle()
    outcome, facts = run(host.again(), partition(method="hpa", **GONE))
    assert [type(step.operation) for step in outcome.steps] == [SetMaxSectors]
    assert facts["drives"][0]["usable"] == 64 * MIB
    host.power_cycle()
    assert not run(host.again(), partition(method="hpa", **GONE))[0].changed


def test_ignored_hpa_size_is_detected(host):
    host.hpa["frozen"] = True
    with pytest.raises(CommandFailed, match="did not take a size of"):
        run(host, partition(method="hpa"))


def test_non_empty_drive_is_not_resized(host):
    host.signatures["sda"] = "ext4"
    with pytest.raises(Refused):
        run(host, partition(method="hpa"))
    assert host.changes == []


@pytest.mark.parametrize("device", [NVME, VOLUME])
def test_hpa_is_supported_only_on_sata_drives(host, device):
    with pytest.raises(Refused, match="use the method partition"):
        run(host, partition(device=device, method="hpa"))


# -- NVMe


def test_namespace_is_recreated(host):
    outcome, facts = run(host, partition(device=NVME, method="namespace"))
    assert [type(step.operation) for step in outcome.steps] == [DiscardDrive, DeleteNamespace, CreateNamespace, AttachNamespace]
    assert host.namespaces == {1: {"size": 32 * MIB, "attached": True}}
    assert (facts["drives"][0]["size"], facts["drives"][0]["usable"]) == (64 * MIB, 32 * MIB)
    assert not run(host.again(), partition(device=NVME, method="namespace"))[0].changed
    outcome, _facts = run(host.again(), partition(device=NVME, method="namespace", **GONE))
    assert host.namespaces == {1: {"size": 64 * MIB, "attached": True}}
    assert not run(host.again(), partition(device=NVME, method="namespace", **GONE))[0].changed


def test_non_empty_namespace_is_not_deleted(host):
    host.signatures["nvme0n1"] = "xfs"
    with pytest.raises(Refused, match="xfs"):
        run(host, partition(device=NVME, method="namespace"))
    assert host.changes == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"oacs": 0}, "no namespace management"), ({"tnvmcap": 0}, "does not report its total capacity"), ({"cmic": 2}, "several controllers")],
)
def test_unsupported_nvme_drive_is_refused_with_the_reason(host, change, reason):
    host.nvme.update(change)
    with pytest.raises(Refused, match=reason):
        run(host, partition(device=NVME, method="namespace"))
    assert host.changes == []


def test_drive_with_two_namespaces_is_refused(host):
    host.namespaces = {1: {"size": 16 * MIB, "attached": True}, 2: {"size": 16 * MIB, "attached": False}}
    with pytest.raises(Refused, match="2 namespaces"):
        run(host, partition(device=NVME, method="namespace"))


def test_detached_namespace_is_not_deleted(host):
    host.namespaces = {1: {"size": 16 * MIB, "attached": False}}
    with pytest.raises(Refused, match="its contents cannot be read"):
        run(host, partition(device=NVME, method="namespace"))
    assert host.changes == []


def test_stale_kernel_partition_with_content_is_refused(host):
    run(host, partition())
    host.tables.clear()
    host.signatures["sda1"] = "ext4"
    for change in ({"usable": "25%"}, GONE):
        with pytest.raises(Refused, match="ext4"):
            run(host.again(), partition(**change))
    assert host.changes == []


# -- cut off at every command


LIVES = {
    "partition": ([], partition(), {"sda": 32 * MIB}),
    "partition, another size": ([partition("25%")], partition(), {"sda": 32 * MIB}),
    "partition, given back": ([partition()], partition(**GONE), {}),
    "hidden sectors": ([], partition(method="hpa"), 32 * MIB // 512),
    "namespace": ([], partition(device=NVME, method="namespace"), 32 * MIB),
    "namespace, given back": ([partition(device=NVME, method="namespace")], partition(device=NVME, method="namespace", **GONE), 64 * MIB),
}


@pytest.mark.parametrize("moment", ["before", "half", "after"])
@pytest.mark.parametrize("life", LIVES)
def test_run_killed_at_any_step_is_completed_by_the_next(tmp_path, monkeypatch, life, moment):
    monkeypatch.setattr(over_provisioning, "read_devices", lambda runner, _root: runner.devices())
    earlier, requested, expected = LIVES[life]
    kills = 0
    while True:
        host = FakeDrives(tmp_path / str(kills))
        for item in earlier:
            run(host.again(), item)
        host.again()
        host.kill, host.moment = kills, moment
        other = (host.root / "dev/sdc").read_bytes()
        try:
            run(host, requested)
        except Killed:
            kills += 1
        else:
            break
        outcome, _facts = run(host.again(), requested)
        assert not run(host.again(), requested)[0].changed, outcome.to_dict()["actions"]
        assert _state(host, requested) == expected
        assert (host.root / "dev/sdc").read_bytes() == other
        _assert_discarded(host, requested)
    assert kills >= 6


@pytest.mark.parametrize("life", LIVES)
def test_full_or_read_only_file_system_at_any_change_is_completed_by_the_next_run(tmp_path, monkeypatch, life):
    monkeypatch.setattr(over_provisioning, "read_devices", lambda runner, _root: runner.devices())
    earlier, requested, _expected = LIVES[life]
    numbers = itertools.count()

    def fresh():
        host = FakeDrives(tmp_path / str(next(numbers)))
        for item in earlier:
            run(host.again(), item)
        return host.again()

    strike_everywhere(fresh, lambda host: run(host.again(), requested), at_least=1)


def _state(host, requested):
    method = requested.get("method", "partition")
    if method == "hpa":
        return host.hpa["visible"]
    if method == "namespace":
        (space,) = host.namespaces.values()
        assert space["attached"]
        return space["size"]
    assert {name: table["partitions"][0]["size"] * 512 for name, table in host.tables.items()} == host.kernel
    return host.kernel


def _assert_discarded(host, requested):
    """However often it was cut off, what is left free was discarded."""
    if requested.get("state") == "absent":
        return
    node = host.root / "dev" / ("sda" if requested["device"] == SATA else "nvme0n1")
    assert not node.read_bytes().strip(b"\0")


# -- what users write


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([partition(device="sda")], "not a path below /dev"),
        ([partition(None)], "usable is required"),
        ([partition("100%")], "nothing is kept free"),
        ([partition("lots")], "not a size"),
        ([partition(), partition("25%")], "twice"),
    ],
)
def test_invalid_options_are_rejected_before_the_host_is_read(items, reason):
    with pytest.raises(BadInput, match=reason):
        read_drives(items)


@pytest.mark.parametrize(
    ("usable", "method"), [("1G", "hpa"), ("64M", "hpa"), ("1k", "partition"), ("64M", "partition"), ("1G", "partition"), ("1G", "namespace")]
)
def test_sizes_exceeding_the_drive_are_rejected(host, usable, method):
    with pytest.raises(BadInput, match="must be less than that"):
        run(host, partition(usable, device=NVME if method == "namespace" else SATA, method=method))


def test_unstable_path_is_rejected_and_stable_path_is_suggested(host):
    with pytest.raises(BadInput, match=SATA):
        run(host, partition(device="/dev/sda"))


def test_missing_drive_is_reported(host):
    with pytest.raises(DeviceMissing):
        run(host, partition(device="/dev/disk/by-id/ata-NOBODY"))
    with pytest.raises(DeviceMissing):
        run(host, partition(device="/dev/disk/by-id/nvme-NOBODY", method="namespace"))


def test_partition_is_rejected_as_drive(host):
    run(host, partition())
    with pytest.raises(BadInput, match="is a partition and not a drive"):
        run(host.again(), partition(device=f"{SATA}-part1"))


def test_outcome_and_facts_are_json_serializable(host):
    outcome, facts = run(host, partition(), partition(device=NVME, method="namespace"))
    json.dumps([outcome.to_dict(), facts])


# -- drives by match


def by_match(usable="50%", **further):
    return {"match": {"transport": ["sata"]}, "usable": usable, **further}


def test_drives_are_chosen_by_match_and_a_second_run_changes_nothing(host):
    outcome, facts = run(host, by_match())
    assert host.changes == ["blkdiscard /dev/sda --force", f"sfdisk --quiet --wipe never {SATA}"]
    assert [(one["device"], one["usable"]) for one in facts["drives"]] == [(SATA, 32 * MIB)]
    outcome, facts = run(host.again(), by_match())
    assert (outcome.changed, outcome.warnings, host.changes) == (False, (), [])
    # Also while the partition is in use.
    host.holders["sda1"] = ("dm-0",)
    assert not run(host.again(), by_match())[0].changed


def test_a_device_beats_a_match_and_a_later_match_an_earlier_one(host):
    entries = ({"match": {"rotational": None}, "usable": "10%"}, by_match("25%"), {"match": {"transport": ["raid"]}, "state": "absent"})
    found = run(host, *entries, partition(device=NVME), check_mode=True)[0]
    assert [step.item for step in found.steps if step.attribute == "usable"] == [NVME, SATA]
    assert [step.after for step in found.steps if step.attribute == "usable"] == [32 * MIB, 16 * MIB]


@pytest.mark.parametrize("trouble", ["holder", "signature", "volume"])
def test_a_match_that_fits_a_drive_in_use_or_of_another_kind_is_refused_and_no_drive_changes(host, trouble):
    if trouble == "volume":
        items, named = ({"match": {}, "usable": "50%"},), VOLUME
    else:
        items, named = ({"match": {"transport": ["sata", "nvme"]}, "usable": "50%"},), SATA
        host.holders["sda"] = ("dm-0",) if trouble == "holder" else ()
        host.signatures.update({"sda": "xfs"} if trouble == "signature" else {})
    with pytest.raises(Refused, match=rf"^{named}.* It is chosen by the match of entry 1 of over_provisioning_drives: narrow the match"):
        run(host, *items)
    assert host.changes == []


def test_a_match_without_drives_is_a_warning(host):
    outcome, _facts = run(host, by_match(match={"model": ["SAMSUNG*"]}), check_mode=True)
    assert outcome.warnings == ("over_provisioning_drives: the match of entry 1 matches no device of this host.",)
    assert host.changes == []


@pytest.mark.parametrize("further", [{"without_discard": True}, {"method": "namespace"}])
def test_what_is_about_one_drive_is_refused_with_match(further):
    with pytest.raises(BadInput, match=rf"^over_provisioning_drives: entry 2 has {next(iter(further))}.* match, but"):
        read_drives([partition(), by_match(**further)])
