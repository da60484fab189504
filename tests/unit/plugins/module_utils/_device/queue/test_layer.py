# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer block_queue: order, what the kernel resets, refusals, rules at boot."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotEffective
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
from ansible_collections.cachefleet.storage.tests.unit.support.fake_queues import FakeQueues
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.refusals import not_refused

HDD = "/dev/disk/by-id/ata-BIG_HDD0"
SSD = "/dev/disk/by-id/ata-QUICK_SSD0"
NVME = "/dev/disk/by-id/nvme-FAST_NVME0"
LUN = "/dev/disk/by-id/scsi-3600601"
ARRAY = {"match": {}, "profile": "flash_array"}


@pytest.fixture
def rack(tmp_path, monkeypatch):
    queues = FakeQueues(tmp_path, monkeypatch)
    queues.disk("sda", model="BIG", serial="HDD0", rotational=True, DEVLINKS=HDD)
    queues.disk("sdb", model="QUICK", serial="SSD0", DEVLINKS=SSD)
    queues.disk("nvme0n1", "nvme", tags=1023, model="FAST", serial="NVME0", DEVLINKS=NVME)
    queues.disk("sdc", "raid", tags=4000, can_queue=4000, model="LUN", serial="600601", DEVLINKS=LUN)
    return queues


def steps(outcome, item):
    return [(step.attribute, step.before, step.after) for step in outcome.steps if step.item == item]


def test_full_or_read_only_file_system_at_any_change_leaves_no_half_file(tmp_path, monkeypatch):
    numbers = itertools.count()

    def fresh():
        queues = FakeQueues(tmp_path / str(next(numbers)), monkeypatch)
        queues.disk("sdb", model="QUICK", serial="SSD0", DEVLINKS=SSD)
        queues.disk("nvme0n1", "nvme", tags=1023, model="FAST", serial="NVME0", DEVLINKS=NVME)
        queues.converge({"device": SSD, "nomerges": 2})
        return queues

    strike_everywhere(fresh, lambda queues: queues.converge({"device": SSD, "profile": "flash_array"}, {"device": NVME, "nomerges": 1}))


def test_empty_request_runs_nothing(rack):
    runner = rack.runner
    assert rack.converge(runner=runner).changed is False
    assert runner.calls == []


def test_case_e_on_lun_supporting_all_settings(rack):
    outcome = rack.converge({"device": LUN, "profile": "flash_array"})
    assert steps(outcome, LUN)[:4] == [
        ("scheduler", "mq-deadline", "none"),
        ("nr_requests", 64, 1024),
        ("nomerges", 0, 1),
        ("queue_depth", 32, 64),
    ]
    assert [rack.value("sdc", place) for place in ("queue/scheduler", "queue/nr_requests", "queue/nomerges", "device/queue_depth")] == [
        "none",
        "1024",
        "1",
        "64",
    ]
    assert rack.rules == [
        'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="sd*", ENV{ID_SERIAL_SHORT}=="600601", ATTR{queue/scheduler}="none", '
        'ATTR{queue/nr_requests}="1024", ATTR{queue/nomerges}="1", ATTR{device/queue_depth}="64"'
    ]


def test_profile_is_fitted_to_each_device_with_a_note(rack):
    rack.converge(ARRAY)
    assert [rack.value(name, "queue/nr_requests") for name in ("sda", "sdb", "sdc", "nvme0n1")] == ["32", "32", "1024", "1023"]
    notes = {one["name"]: " ".join(one["notes"]) for one in rack.facts(ARRAY)["devices"]}
    assert notes["sdc"] == ""
    assert "requests 1024; without a scheduler nr_requests is at most 32" in notes["sdb"]
    assert "requests 64; the drive and its NCQ accept a queue_depth of at most 32" in notes["sdb"]
    assert "queue_depth is left out: NVMe devices have no queue_depth" in notes["nvme0n1"]


def test_no_change_on_second_run_with_udev_query_only(rack):
    entries = [ARRAY, {"match": {"rotational": True}, "profile": "hdd"}, {"device": SSD, "scheduler": "bfq", "nr_requests": 300}]
    assert rack.converge(*entries).changed
    runner = rack.runner
    assert rack.converge(*entries, runner=runner).changed is False
    assert [call[:2] for call in runner.calls] == [("udevadm", "info")]


def test_check_mode_plans_the_same_steps_and_writes_nothing(rack):
    predicted = rack.converge(ARRAY, check_mode=True, modules=[{"module": "qla2xxx", "options": {"ql2xmaxqdepth": 64}}])
    assert rack.writes == []
    assert rack.rules == []
    assert not (rack.root / queue_boot.OPTIONS_FILE).exists()
    assert rack.converge(ARRAY, modules=[{"module": "qla2xxx", "options": {"ql2xmaxqdepth": 64}}]).steps == predicted.steps


def test_settings_reset_by_new_scheduler_are_written_again(rack):
    outcome = rack.converge({"device": LUN, "scheduler": "none", "nr_requests": 64})
    assert steps(outcome, LUN)[0] == ("scheduler", "mq-deadline", "none")
    assert "nr_requests" not in [name for name, before, after in steps(outcome, LUN)]
    assert [(place, value) for name, place, value in rack.writes] == [("scheduler", "none"), ("nr_requests", "64")]
    assert rack.value("sdc", "queue/nr_requests") == "64"


def test_read_ahead_is_set_after_request_size_limits(tmp_path, monkeypatch):
    queues = FakeQueues(tmp_path, monkeypatch, limits_reset=True)
    queues.disk("sda", serial="HDD0", rotational=True, DEVLINKS=HDD)
    queues.converge({"device": HDD, "read_ahead_kb": 4096})
    queues.converge({"device": HDD, "read_ahead_kb": 4096, "max_sectors_kb": 64, "add_random": False})
    assert queues.value("sda", "queue/read_ahead_kb") == "4096"
    assert queues.rules[0].index("max_sectors_kb") < queues.rules[0].index("read_ahead_kb")


def test_default_throttling_is_determined_by_kernel(rack):
    for name, item in (("sda", HDD), ("sdb", SSD)):
        entry = {"device": item, "wbt_lat_usec": -1}
        (rack.root / "sys/class/block" / name / "queue/wbt_lat_usec").write_text("5000\n")
        assert steps(rack.converge(entry), item)[0] == ("wbt_lat_usec", 5000, -1)
        assert rack.converge(entry).changed is False


def test_unreadable_throttling_is_treated_as_disabled(rack):
    file = rack.root / "sys/class/block/sdb/queue/wbt_lat_usec"
    file.write_text("")
    assert rack.converge({"device": SSD, "wbt_lat_usec": 0, "persistent": False}).changed is False


REFUSED = [
    ({"device": SSD, "scheduler": "none", "nr_requests": 256}, r"at most 32, as many as the hardware accepts at once.*set nr_requests: 32, or a scheduler"),
    ({"device": SSD, "nr_requests": 4000}, "nr_requests is at most 2048"),
    ({"device": SSD, "nr_requests": 3}, "makes 4 of every nr_requests below that"),
    ({"device": SSD, "queue_depth": 64}, r"NCQ accept a queue_depth of at most 32.*set queue_depth: 32"),
    ({"device": LUN, "queue_depth": 5000}, "host adapter accepts a queue_depth of at most 4000"),
    ({"device": NVME, "queue_depth": 64}, "NVMe devices have no queue_depth"),
    ({"device": SSD, "max_sectors_kb": 256}, r"at most 128 KiB \(max_hw_sectors_kb\)"),
    ({"device": SSD, "max_sectors_kb": 2}, "at least 4, one page"),
    ({"device": SSD, "read_ahead_kb": 130}, "would make 128 of 130"),
    ({"device": SSD, "scheduler": "cfq"}, "cfq is gone since Linux 5.0: write bfq"),
    ({"device": SSD, "scheduler": "anticipatory"}, "has no scheduler anticipatory: it has mq-deadline, none, bfq, kyber"),
    ({"device": "/dev/sdb", "scheduler": "none"}, f"may be another device after the next reboot: use {SSD}, which is the same device"),
    ({"match": {}}, "nothing is set"),
    ({"match": {}, "wbt_lat_usec": -2}, "at least -1"),
    ({"match": {"size_min": "big"}, "nomerges": 1}, "entry 2: size_min 'big' is not a size"),
    ({"match": {}, "members": True, "nomerges": 1}, "select those with kind"),
]


def test_values_the_kernel_rejects_or_alters_are_refused_before_any_write(rack):
    assert not_refused(lambda entry: rack.converge({"device": HDD, "nomerges": 2}, entry), REFUSED) == []
    assert rack.writes == []


def test_drive_without_ncq_has_queue_depth_1(tmp_path, monkeypatch):
    queues = FakeQueues(tmp_path, monkeypatch)
    place = queues.disk("sda", serial="OLD", DEVLINKS=SSD, depth=1)
    page = bytearray(572)
    page[60 + 150] = 0x1F
    (place / "device/vpd_pg89").write_bytes(bytes(page))
    with pytest.raises(BadInput, match="at most 1"):
        queues.converge({"device": SSD, "queue_depth": 16})
    page[60 + 153] = 0x01
    page[60 + 150] = 15
    (place / "device/vpd_pg89").write_bytes(bytes(page))
    with pytest.raises(BadInput, match="at most 16"):
        queues.converge({"device": SSD, "queue_depth": 32})


def test_legacy_scheduler_names_are_mapped_and_reported(rack):
    outcome = rack.converge({"device": SSD, "scheduler": "noop"}, {"device": HDD, "scheduler": "deadline"})
    assert rack.value("sdb", "queue/scheduler") == "none"
    assert 'ATTR{queue/scheduler}="none"' in "".join(rack.rules)
    assert outcome.warnings == (
        "The scheduler deadline is called mq-deadline since Linux 5.0, and mq-deadline is set for sda: set scheduler: mq-deadline.",
        "The scheduler noop is called none since Linux 5.0, and none is set for sdb: set scheduler: none.",
    )


def test_legacy_scheduler_available_in_kernel_keeps_its_name(rack):
    (rack.root / "sys/class/block/sdb/queue/scheduler").write_text("noop deadline [cfq]\n")
    outcome = rack.converge({"device": SSD, "scheduler": "cfq", "persistent": False})
    assert outcome.changed is False


def test_read_only_driver_attribute_is_rejected(rack):
    (rack.root / "sys/class/block/sdc/device/queue_depth").chmod(0o444)
    with pytest.raises(BadInput, match="the driver megaraid_sas does not let queue_depth be changed"):
        rack.converge({"device": LUN, "queue_depth": 64})
    assert rack.converge({"device": LUN, "queue_depth": 32, "persistent": False}).changed is False


def test_ignored_value_fails_with_requested_and_found(rack):
    rack.deaf.add("sdb")
    for persistent in (False, True):
        with pytest.raises(NotEffective, match=f"{SSD}: nomerges should be 2 and is 0") as caught:
            rack.converge({"device": SSD, "nomerges": 2, "persistent": persistent})
        assert caught.value.facts["changed"] is persistent


def test_missing_device_is_an_error_and_empty_match_is_a_warning(rack):
    with pytest.raises(DeviceMissing, match="does not exist on this host"):
        rack.converge({"device": "/dev/disk/by-id/ata-GONE", "nomerges": 1})
    outcome = rack.converge({"match": {"model": ["GONE*"]}, "nomerges": 1})
    assert (outcome.changed, outcome.warnings) == (False, ("block_queue_devices: the match of entry 1 matches no device of this host.",))


def test_non_persistent_removes_only_the_rule_of_this_device(rack):
    rack.converge(ARRAY)
    rack.converge(ARRAY, {"device": SSD, "scheduler": "kyber", "persistent": False})
    assert len(rack.rules) == 3
    assert "SSD0" not in "".join(rack.rules)
    assert rack.value("sdb", "queue/scheduler") == "kyber"


def test_rules_of_unlisted_devices_are_kept_unless_exclusive(rack):
    rack.converge(ARRAY, modules=[{"module": "nvme", "options": {"poll_queues": 2}}])
    rack.converge({"device": SSD, "nomerges": 1})
    assert len(rack.rules) == 4
    outcome = rack.converge({"device": SSD, "nomerges": 1}, exclusive=True)
    assert [step.attribute for step in outcome.steps] == ["other_rules", "options"]
    assert len(rack.rules) == 1
    assert not (rack.root / queue_boot.OPTIONS_FILE).exists()
    assert rack.converge({"device": SSD, "nomerges": 1}, exclusive=True).changed is False
    rack.converge(exclusive=True)
    assert rack.rules == []


def test_manually_changed_rule_is_corrected(rack):
    rack.converge({"device": SSD, "nomerges": 1})
    file = rack.root / queue_boot.RULES_FILE
    file.write_text(file.read_text().replace('nomerges}="1"', 'nomerges}="2"'))
    assert [step.attribute for step in rack.converge({"device": SSD, "nomerges": 1}).steps] == ["boot_rule"]
    assert 'nomerges}="1"' in rack.rules[0]


def test_disk_without_serial_is_matched_by_path(rack):
    rack.disk("vda", "virtio", tags=256, ID_PATH="pci-0000:00:01.0")
    rack.converge({"match": {"transport": ["virtio"]}, "scheduler": "none"})
    assert 'KERNEL=="vd*", ENV{ID_PATH}=="pci-0000:00:01.0"' in rack.rules[0]


def test_aoe_disk_is_matched_by_address(rack):
    rack.disk("etherd!e7.1", "virtual", tags=16)
    rack.converge(ARRAY)
    assert "etherd" not in "".join(rack.rules)
    rack.converge({"match": {"transport": ["aoe"]}, "nomerges": 1})
    assert 'KERNEL=="etherd*", ENV{DEVNAME}=="/dev/etherd/e7.1", ATTR{queue/nomerges}="1"' in "".join(rack.rules)


# Devices on devices.


def test_queue_setting_on_volume_is_rejected_with_names_of_its_disks(rack):
    rack.disk("dm-0", "virtual", tags=None, dm_name="vg0-lv", dm_uuid="LVM-x", slaves=("sda", "sdb"), DEVLINKS="/dev/vg0/lv")
    for entry in ({"scheduler": "none"}, {"profile": "hdd"}, {"queue_depth": 8}):
        with pytest.raises(BadInput, match=rf"no effect on a logical volume.*{HDD}, {SSD}.*members: true"):
            rack.converge({"device": "/dev/vg0/lv", **entry})
    rack.converge({"device": "/dev/vg0/lv", "members": True, "scheduler": "none"})
    assert [rack.value(name, "queue/scheduler") for name in ("sda", "sdb", "sdc")] == ["none", "none", "mq-deadline"]


def test_volume_supports_read_ahead_and_is_matched_by_uuid(rack):
    rack.disk("dm-0", "virtual", tags=None, dm_name="vg0-lv", dm_uuid="LVM-x", slaves=("sda",), DEVLINKS="/dev/vg0/lv")
    (rack.root / "sys/class/block/dm-0/mq/0").mkdir(parents=True)  # only so that the stand-in for the kernel takes the write
    (rack.root / "sys/class/block/dm-0/mq/0/nr_tags").write_text("1\n")
    rack.converge({"device": "/dev/vg0/lv", "read_ahead_kb": 4096})
    assert rack.value("dm-0", "queue/read_ahead_kb") == "4096"
    assert 'ACTION=="add|change"' in rack.rules[0]
    assert 'KERNEL=="dm-*", ENV{DM_UUID}=="LVM-x", ATTR{queue/read_ahead_kb}="4096"' in rack.rules[0]


def test_match_excludes_volumes_partitions_and_loop_devices(rack):
    rack.disk("dm-0", "virtual", tags=None, dm_name="vg0-lv", dm_uuid="LVM-x", slaves=("sda",))
    rack.disk("loop0", "virtual", tags=128)
    rack.disk("sdd", serial="EMPTY", size=0)
    rack.host.partition("sda", 1)
    assert [one["name"] for one in rack.facts(ARRAY)["devices"]] == ["nvme0n1", "sda", "sdb", "sdc"]
    kinds = {"match": {"kind": ["loop"]}, "nomerges": 1, "persistent": False}
    assert [one["name"] for one in rack.facts(kinds)["devices"]] == ["loop0"]


def _multipath(rack, tags):
    for name in ("sdx", "sdy"):
        rack.disk(name, "sas", tags=2000, can_queue=2000, serial="LUN7", model="PATH")
    rack.disk("dm-7", "virtual", tags=tags, dm_name="mpatha", dm_uuid="mpath-LUN7", slaves=("sdx", "sdy"), DEVLINKS="/dev/mapper/mpatha")


@pytest.mark.parametrize(("tags", "met"), [(2048, ["dm-7", "sdx", "sdy"]), (None, ["sdx", "sdy"])])
def test_multipath_settings_apply_to_paths_and_to_map_with_queue(rack, tags, met):
    _multipath(rack, tags)
    entry = {"match": {"model": ["PATH"]}, "profile": "flash_array"}
    assert [one["name"] for one in rack.facts(entry)["devices"]] == met
    for requested in (entry, {"device": "/dev/mapper/mpatha", "profile": "flash_array"}):
        rack.converge(requested)
        assert [rack.value(name, "queue/nr_requests") for name in ("sdx", "sdy")] == ["1024", "1024"]
        assert rack.value("dm-7", "queue/nomerges") == ("1" if tags else "0")
        assert rack.converge(requested).changed is False
    assert sum("LUN7" in rule and 'KERNEL=="sd*"' in rule for rule in rack.rules) == 1


def test_nvme_multipath_head_keeps_supported_profile_settings(rack):
    rack.disk("nvme1n1", "nvme", tags=None, serial="HEAD", DEVLINKS="/dev/disk/by-id/nvme-HEAD")
    entry = {"device": "/dev/disk/by-id/nvme-HEAD", "profile": "nvme"}
    settled = rack.facts(entry)["devices"][0]
    assert "rq_affinity has no effect on it" in " ".join(settled["notes"])
    with pytest.raises(BadInput, match="has no queue of its own"):
        rack.converge({"device": "/dev/disk/by-id/nvme-HEAD", "scheduler": "kyber"})


def test_partition_and_ambiguous_link_are_rejected(rack):
    part = rack.host.partition("sda", 1)
    with pytest.raises(BadInput, match=f"is a partition.*name {HDD}"):
        rack.converge({"device": f"/dev/{part}", "nomerges": 1})
    rack.disk("sde", model="TWIN", serial="T", DEVLINKS="/dev/disk/by-id/ata-TWIN")
    rack.disk("sdf", model="TWIN", serial="T", DEVLINKS="/dev/disk/by-id/ata-TWIN")
    with pytest.raises(BadInput, match="is the name of several drives"):
        rack.converge({"device": "/dev/disk/by-id/ata-TWIN", "nomerges": 1})


def test_planning_has_no_side_effects(rack):
    spec = rack.wanted(ARRAY)
    runner = rack.runner
    layer = BlockQueueLayer(runner, spec, rack.root)
    present = layer.read()
    calls = len(runner.calls)
    assert layer.plan(present) == layer.plan(present)
    assert len(runner.calls) == calls


def test_drives_with_the_same_serial_get_distinct_or_no_rules(rack):
    first, second = "/dev/disk/by-id/wwn-0x1", "/dev/disk/by-id/wwn-0x2"
    rack.disk("sde", model="TWIN", serial="T", wwn="0x1", DEVLINKS=first)
    rack.disk("sdf", model="TWIN", serial="T", wwn="0x2", DEVLINKS=second)
    rack.converge({"device": first, "nomerges": 1}, {"device": second, "nomerges": 2})
    assert [rule.split(", ")[4:] for rule in rack.rules] == [
        ['ENV{ID_WWN}=="0x1"', 'ATTR{queue/nomerges}="1"'],
        ['ENV{ID_WWN}=="0x2"', 'ATTR{queue/nomerges}="2"'],
    ]
    rack.disk("sdg", model="TWIN", serial="T", DEVLINKS="/dev/disk/by-path/g")
    with pytest.raises(BadInput, match="another drive of this host has the same"):
        rack.converge({"device": "/dev/disk/by-path/g", "nomerges": 1})
