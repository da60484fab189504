# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import READERS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import snapshots as looks
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

CACHE = "0 2097152 cache 8 27/2048 128 40/1600 10 20 30 40 0 5 7 1 writeback 2 migration_threshold 2048 smq 0 rw -"
WRITECACHE = "0 2097152 writecache 0 1000 900 0"
TABLES = "vg0-wc: 0 2097152 writecache s 253:1 253:2 4096 0\n"


class Stack:
    def __init__(self, mode):
        self.mode = mode

    def describe(self, name):
        return {"name": name, "mode": self.mode}


class Rig:
    def __init__(self, root):
        self.root = root
        self.now = 1000.0
        self.reads = 0
        self.given = []
        self.mode = "writeback"
        self.devices = Devices(
            [
                BlockDevice("dm-0", "/dev/dm-0", "253:0", kind="lvm", dm_name="vg0-lv", dm_targets=("cache",), slaves=("sdb",)),
                BlockDevice("dm-9", "/dev/dm-9", "253:9", kind="lvm", dm_name="vg0-wc", dm_targets=("writecache",)),
                BlockDevice("sdb", "/dev/sdb", "8:16", size=2**30, transport="sata"),
            ],
            root,
        )
        self.runner = ScriptedRunner(
            {
                ("dmsetup", "status"): Reply(f"vg0-lv: {CACHE}\nvg0-wc: {WRITECACHE}\n"),
                ("dmsetup", "table"): Reply(TABLES),
                ("smartctl",): Reply(json.dumps({"device": {"protocol": "ATA"}, "temperature": {"current": 31}, "serial_number": "S"})),
            }
        )
        write(root, "sys/class/block/dm-0/dm/name", "vg0-lv\n")

    def stack(self, devices):
        self.reads += 1
        self.given.append(devices)
        return Stack(self.mode)

    def looks(self):
        return looks.Snapshots(MeasuredHost(self.runner, self.stack, self.root, clock=lambda: self.now), self.devices, {"dm-0"}, {"dm-0", "sdb"})


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


def test_snapshot_is_valid_until_expired_or_settings_changed(rig):
    found = rig.looks()
    first = found.last
    assert first.stack("dm-0") == {"name": "dm-0", "mode": "writeback", "read_at": 1000.0}
    rig.now += 299
    assert found.refreshed() is first and rig.reads == 1
    rig.now += 2
    assert found.refreshed().read_at == 1301.0 and rig.reads == 2
    rig.runner.replies["dmsetup", "table"] = Reply(TABLES + "vg0-lv: 0 8 cache another\n")
    rig.mode = "writethrough"
    again = found.refreshed()
    assert rig.reads == 3 and again.sha256("dm-0") != first.sha256("dm-0")
    assert rig.given == [rig.devices, None, None], "only the first snapshot follows the reading of the devices"


def test_unreadable_stack_is_reported(rig):
    def broken(_devices):
        raise StorageError("The tool said nothing.")

    rig.stack = broken
    assert rig.looks().last.stack("dm-0") == {"error": "The tool said nothing.", "read_at": 1000.0}
    assert rig.looks().last.stack(None)["error"] == "The block device of the target is not known."


def test_temperature_and_wear_of_underlying_drives(rig):
    found = rig.looks()
    assert found.drives_of(found.last, ["dm-0", "sdb"])["sdb"]["temperature_c"] == 31
    write(rig.root, "sys/class/block/sdb/device/hwmon/hwmon3/temp1_input", "42500\n")
    assert found.drives_of(found.last, ["sdb"])["sdb"]["temperature_c"] == 42.5, "the kernel's own sensor says what is now"


def test_missing_smartctl_omits_drives(rig):
    rig.runner.missing = {"smartctl"}
    found = rig.looks()
    assert found.drives_of(found.last, ["sdb"]) == {}


def test_cache_samples(rig):
    samples = CacheSamples(rig.devices, rig.runner, rig.root)
    (cache,) = samples.read(["dm-0", "sdb"])
    assert (cache.name, cache.dirty, cache.used) == ("dm-0", 7 * 65536, 40 * 65536)
    assert cache.row == f"dm-0,458752,2621440,10,20,30,40,,,{1600 * 65536},5,"
    (writecache,) = samples.read(["dm-9"])
    assert (writecache.dirty, writecache.used) == (100 * 4096, 100 * 4096), "its table knows how large a block is"
    assert writecache.row == "dm-9,409600,409600,,,,,,,4096000,,", "an older kernel counts no hits"
    assert samples.dirty(["dm-0", "dm-9"]) == 458752 + 409600 and samples.dirty(["sdb"]) == 0


def test_unreadable_cache_is_not_clean(rig):
    rig.runner.replies["dmsetup", "status"] = Reply("vg0-lv: 0 2097152 cache Fail\n")
    assert CacheSamples(rig.devices, rig.runner, rig.root).dirty(["dm-0"]) is None
    rig.runner.replies["dmsetup", "status"] = Reply("", rc=1)
    assert CacheSamples(rig.devices, rig.runner, rig.root).dirty(["dm-0"]) is None


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        ({"dm-5": {4096: 7, 512: 1}}, {"dm-5": {4096: 7, 512: 1}}),
        ({"dm-5": {}}, {"dm-5": {}}),
        # Counted together: which of them a request was for is not known.
        ({"dm-5": {4096: 7}, "dm-6": {4096: 7}}, {}),
        # One that does not run has no device, and takes no requests.
        ({"dm-5": {4096: 7}, None: {}}, {"dm-5": {4096: 7}}),
        ({"dm-6": {4096: 7}}, {}),
        (StorageError("The histogram of flashcache could not be parsed at 'x'."), {}),
    ],
)
def test_requests_by_size_are_those_of_one_cache(rig, monkeypatch, caches, expected):
    def read(_devices, _runner, _root):
        if isinstance(caches, StorageError):
            raise caches
        return [CacheState("flashcache", "f", "flashcache", None, name, None, None, histogram=counts) for name, counts in caches.items()]

    monkeypatch.setitem(READERS, "flashcache", read)
    devices = Devices([BlockDevice("dm-5", "/dev/dm-5", "253:5", kind="flashcache"), BlockDevice("sdb", "/dev/sdb", "8:16")], rig.root)
    samples = CacheSamples(devices, rig.runner, rig.root)
    assert samples.request_sizes(["dm-5", "sdb"]) == expected
    assert samples.request_sizes(["sdb"]) == {}
