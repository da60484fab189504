# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block queues as variables: what is described changes nothing, by default only what was changed is described."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.description import DEVICES, MODULES, describe
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import DEVICE_OPTIONS
from ansible_collections.cachefleet.storage.tests.unit.support.fake_queues import FakeQueues

HDD = "/dev/disk/by-id/ata-BIG_HDD0"
SSD = "/dev/disk/by-id/ata-QUICK_SSD0"
NVME = "/dev/disk/by-id/nvme-FAST_NVME0"
MODULE = {"module": "qla2xxx", "options": {"ql2xmaxqdepth": "64"}}


@pytest.fixture
def rack(tmp_path, monkeypatch):
    queues = FakeQueues(tmp_path, monkeypatch)
    queues.disk("sda", model="BIG", serial="HDD0", rotational=True, DEVLINKS=HDD)
    queues.disk("sdb", model="QUICK", serial="SSD0", DEVLINKS=SSD)
    queues.disk("nvme0n1", "nvme", tags=1023, model="FAST", serial="NVME0", DEVLINKS=NVME)
    (queues.root / "sys/class/block/nvme0n1/queue/nr_requests").write_text("256\n")
    return queues


def described(rack, *, every=False):
    return {one.name: one for one in describe(rack.runner, read_devices(rack.runner, rack.root), rack.root, every=every)}


def entries(rack, *, every=False):
    """As the module reads them."""
    found = []
    for entry in described(rack, every=every)[DEVICES].entries:
        validated = ArgumentSpecValidator(DEVICE_OPTIONS).validate(dict(entry.values))
        assert validated.error_messages == []
        found.append(validated.validated_parameters)
    return found


def test_a_host_that_nothing_was_changed_on_has_nothing_to_describe(rack):
    found = described(rack)
    assert (found[DEVICES].entries, found[DEVICES].notes, found[MODULES].entries) == ((), (), ())


def test_all_settings_are_described_when_they_are_asked_for(rack):
    found = {entry["device"]: entry for entry in entries(rack, every=True)}
    assert list(found) == [NVME, HDD, SSD]
    assert (found[HDD]["scheduler"], found[HDD]["nr_requests"], found[HDD]["rotational"], found[HDD]["persistent"]) == ("mq-deadline", 64, True, False)
    assert rack.converge(*entries(rack, every=True), check_mode=True).steps == ()


def test_a_change_of_now_is_described_as_such(rack):
    rack.converge({"device": SSD, "scheduler": "bfq", "nomerges": 1, "persistent": False})
    (entry,) = described(rack)[DEVICES].entries
    assert entry.values == {"device": SSD, "scheduler": "bfq", "nomerges": 1, "persistent": False}
    assert rack.converge(*entries(rack), check_mode=True).steps == ()


def test_a_boot_rule_is_described_with_all_its_settings(rack):
    rack.converge({"match": {}, "profile": "flash_array"}, {"device": HDD, "rotational": True, "read_ahead_kb": 1024})
    assert rack.converge(*entries(rack), check_mode=True).steps == ()
    values = {entry.values["device"]: entry.values for entry in described(rack)[DEVICES].entries}
    assert values[HDD] == {
        "device": HDD, "scheduler": "none", "nr_requests": 32, "rotational": True, "read_ahead_kb": 1024, "nomerges": 1, "queue_depth": 32,
    }  # fmt: skip


@pytest.mark.parametrize("persistent", [True, False])
def test_what_was_changed_by_hand_is_brought_back(rack, persistent):
    rack.converge({"device": SSD, "scheduler": "none", "nr_requests": 16, "persistent": persistent}, {"device": HDD, "read_ahead_kb": 512})
    before, wanted = described(rack), entries(rack)
    rack.converge({"device": SSD, "scheduler": "mq-deadline", "nr_requests": 100}, {"device": HDD, "read_ahead_kb": 64})
    assert rack.converge(*wanted).changed
    assert described(rack) == before


def test_a_rule_that_is_not_in_effect_is_a_note(rack):
    rack.converge({"device": SSD, "nomerges": 2})
    (rack.root / "sys/class/block/sdb/queue/nomerges").write_text("0\n")
    variable = described(rack)[DEVICES]
    assert variable.entries == ()
    assert variable.notes == (f"{SSD} is not described: a run would change it: Set nomerges of {SSD} (sdb) to 2.",)


def test_the_read_ahead_that_a_volume_has_from_its_disks_is_none_of_its_own(rack):
    place = rack.disk("dm-0", "virtual", tags=None, DM_UUID="LVM-a", DM_NAME="vg0-data")
    for path, text in (("dm/name", "vg0-data"), ("dm/uuid", "LVM-aaaa"), ("slaves/sda/x", "")):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text + "\n")
    for name in ("sda", "dm-0"):
        (rack.root / "sys/class/block" / name / "queue/read_ahead_kb").write_text("1024\n")
    assert [entry.values["device"] for entry in described(rack)[DEVICES].entries] == [HDD]
    (rack.root / "sys/class/block/dm-0/queue/read_ahead_kb").write_text("2048\n")
    # Its link is not there yet.
    assert "The queue of /dev/dm-0 is not described: the device has no persistent path." in described(rack)[DEVICES].notes
    rack.host.link("/dev/vg0/data", "dm-0")
    assert [entry.values["device"] for entry in described(rack)[DEVICES].entries] == ["/dev/vg0/data", HDD]


@pytest.mark.parametrize(("rotational", "optimal", "described_too"), [(1, 0, False), (0, 0, True), (1, 4096, True)])
def test_the_read_ahead_of_a_rotational_disk_since_linux_6_17_is_none_of_its_own(rack, rotational, optimal, described_too):
    queue = rack.root / "sys/class/block/sda/queue"
    for name, value in (("rotational", rotational), ("optimal_io_size", optimal), ("read_ahead_kb", 2 * 1280), ("max_sectors_kb", 1280)):
        (queue / name).write_text(f"{value}\n")
    (queue / "max_hw_sectors_kb").write_text("32767\n")
    values = [entry.values for entry in described(rack)[DEVICES].entries if entry.values["device"] == HDD]
    assert any("read_ahead_kb" in one for one in values) is described_too


def test_options_of_modules_that_were_written_are_described(rack):
    rack.converge(modules=[MODULE])
    (entry,) = described(rack)[MODULES].entries
    assert entry.values == MODULE
    assert rack.converge(modules=[entry.values], check_mode=True).steps == ()


def test_a_device_without_a_lasting_path_is_a_note(rack):
    rack.disk("sdz", serial="NOLINK")
    (rack.root / "sys/class/block/sdz/queue/nomerges").write_text("2\n")
    assert described(rack)[DEVICES].notes == ("The queue of /dev/sdz is not described: the device has no persistent path.",)
