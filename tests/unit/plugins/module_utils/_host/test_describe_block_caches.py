# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SSD caches as variables: what is described is accepted by the module of its type and changes nothing, for every type and mode."""

from __future__ import annotations

import dataclasses
import itertools
import os

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import BcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import DmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as lvm_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import READERS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._host import describe_block_caches as described
from ansible_collections.cachefleet.storage.plugins.modules import bcache, dm_cache, enhanceio, flashcache, lvm_cache
from ansible_collections.cachefleet.storage.tests.simulators.in_process import enhanceio as fake_enhanceio
from ansible_collections.cachefleet.storage.tests.simulators.in_process import flashcache as fake_flashcache
from ansible_collections.cachefleet.storage.tests.unit.support import fake_bcache, fake_dm, fake_lvm
from ansible_collections.cachefleet.storage.tests.unit.support.lvm_shapes import CachedPool, Snapshotted, SpreadPool

OPTIONS = {module.__name__.rsplit(".", 1)[-1]: module.CACHE_OPTIONS for module in (lvm_cache, dm_cache, bcache, flashcache, enhanceio)}
BACK = {"mode": "writeback", "allow_unmirrored_writeback": True}


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Bench:
    """A host of one type of cache; ``item`` is its cache without what a test varies."""

    type = ""
    item: dict = {}

    def __init__(self, root, monkeypatch):
        self.root = root
        self.host = self.make(root, monkeypatch)

    @property
    def kind(self):
        known = described.described(self.type)
        return dataclasses.replace(known, make_layer=lambda runner, specs, root: self.layer(specs))

    def devices(self):
        return read_devices(self.host, self.root)

    def caches(self):
        return READERS[self.type](self.devices(), self.host, self.root)

    def converge(self, item, *, check_mode=False):
        return converge(self.layer(self.kind.read_items([item])), check_mode=check_mode)

    def describe(self, **more):
        return described.describe_type(self.kind, self.caches(), self.devices(), self.host, self.root, **more)

    def entry(self, **more):
        """The one entry, as its module reads it."""
        (entry,), notes = self.describe(**more)
        # The unit of an EnhanceIO cache makes the settings that were asked for, and no others can be added to it here.
        assert notes == () or (self.type == "enhanceio" and more.get("every") and all("at boot" in note for note in notes))
        item = {key: value for key, value in entry.values.items() if key != "type"}
        validated = ArgumentSpecValidator(OPTIONS[self.type]).validate(item)
        assert validated.error_messages == []
        assert entry.values["type"] == self.type
        return validated.validated_parameters


class Lvm(Bench):
    type, item = "lvm_cache", {"name": "images", "origin": "vg/data", "cache_devices": [fake_lvm.SSD_PATH]}

    def make(self, root, monkeypatch):
        fake_lvm.make_dev(root)
        monkeypatch.setattr(lvm_layer, "read_devices", lambda runner, root: self.devices())
        return fake_lvm.FakeLvm()

    def devices(self):
        return fake_lvm.NamedDevices([fake_lvm.HDD, fake_lvm.SSD, fake_lvm.SSD1])

    def layer(self, specs):
        ticks = itertools.count(0, 30)
        return LvmCacheLayer(self.host, specs, self.root, clock=lambda: next(ticks), sleep=lambda seconds: None)

    def caches(self):
        state = self.layer(self.kind.read_items([self.item])).read()
        return [lvm_facts.describe(state, volume) for volume in state.volumes if volume.cached]


class LvmOfPool(Lvm):
    item = {**Lvm.item, "name": "pool", "origin": "vg/pool"}

    def make(self, root, monkeypatch):
        super().make(root, monkeypatch)
        return CachedPool()


class LvmWithSnapshot(Lvm):
    def make(self, root, monkeypatch):
        super().make(root, monkeypatch)
        return Snapshotted()


class Dm(Bench):
    type, item = "dm_cache", {"name": "images", "origin": fake_dm.HDD, "cache_devices": [fake_dm.SSD]}

    def make(self, root, monkeypatch):
        monkeypatch.setattr(mirror, "read_devices", lambda runner, root: runner.devices())
        return fake_dm.FakeDm(root)

    def devices(self):
        return self.host.devices()

    def layer(self, specs):
        ticks = itertools.count(0, 30)
        return DmCacheLayer(self.host, specs, self.root, clock=lambda: next(ticks), sleep=lambda seconds: None)

    def caches(self):
        return self.layer(self.kind.read_items([self.item])).read().caches


class Bcache(Bench):
    type, item = "bcache", {"name": "images", "origin": fake_bcache.HDD, "cache_devices": [fake_bcache.SSD]}

    def make(self, root, monkeypatch):
        return fake_bcache.FakeBcache(root)

    def layer(self, specs):
        return BcacheLayer(self.host, specs, self.root, sysfs=fake_bcache.FakeSysfs(self.host), clock=self.host.clock, sleep=self.host.sleep)


class Flashcache(Bench):
    type, item = "flashcache", fake_flashcache.ITEM

    def make(self, root, monkeypatch):
        return fake_flashcache.FlashcacheHost(root)

    @property
    def kind(self):
        # The layer of the simulated host reads its items itself.
        known = described.described(self.type)
        return dataclasses.replace(known, make_layer=lambda runner, specs, root: self.layer(specs))

    def layer(self, specs):
        made = self.host.layer([])
        made.spec = specs
        return made

    def caches(self):
        self.host.kernel.settle()
        return super().caches()


class EnhanceIO(Bench):
    type, item = "enhanceio", {"name": "images", "origin": fake_enhanceio.HDD, "cache_devices": [fake_enhanceio.SSD]}

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch)
        self.volatile = {}

    def make(self, root, monkeypatch):
        return fake_enhanceio.SimulatedEnhanceIO(root)

    def layer(self, specs):
        ticks = itertools.count(0, 30)
        return EnhanceIOLayer(self.host, specs, self.root, volatile_below=self.volatile_below, clock=lambda: next(ticks), sleep=self.host.sleep)

    def volatile_below(self, path, _drives):
        return self.volatile.get(path, [])


SSD1 = fake_lvm.SSD1_PATH
CASES = [
    (Lvm, {}),
    (Lvm, BACK),
    (Lvm, {"mode": "passthrough"}),
    (Lvm, {"kind": "cachevol", "size": "200M"}),
    (Lvm, {"kind": "cachevol", **BACK, "chunk_size": "128K", "settings": {"migration_threshold": 16384}}),
    (Lvm, {"kind": "writecache", "allow_unmirrored_writeback": True}),
    (Lvm, {"kind": "writecache", "allow_unmirrored_writeback": True, "settings": {"high_watermark": 60, "low_watermark": 30, "block_size": 4096}}),
    (Lvm, {"cache_devices": [fake_lvm.SSD_PATH, SSD1], "mirror": True, "mode": "writeback"}),
    (Dm, {}),
    (Dm, {**BACK, "chunk_size": "128K", "settings": {"migration_threshold": 4096}}),
    (Dm, {"mode": "passthrough"}),
    (Dm, {"size": "256M"}),
    (Dm, {"kind": "writecache", "allow_unmirrored_writeback": True}),
    (Dm, {"kind": "writecache", "allow_unmirrored_writeback": True, "settings": {"block_size": 512, "high_watermark": 60, "max_age": 5000}}),
    (Dm, {"cache_devices": [fake_dm.SSD, fake_dm.SSD1], "mirror": True, "mode": "writeback"}),
    (Bcache, {}),
    (Bcache, {**BACK, "settings": {"sequential_cutoff": 0, "writeback_percent": 20, "cache_replacement_policy": "fifo"}}),
    (Bcache, {"mode": "writearound", "bucket_size": "256K"}),
    (Bcache, {"mode": "none", "settings": {"stop_when_cache_set_failed": "always", "congested_read_threshold_us": 0}}),
    (Bcache, {"cache_devices": [fake_bcache.SSD, fake_bcache.SSD2], "mirror": True, "mode": "writeback"}),
    (Flashcache, {}),
    (Flashcache, {"mode": "writearound", "chunk_size": "8K", "associativity": 1024}),
    (Flashcache, {**BACK, "settings": {"dirty_thresh_pct": 50, "skip_seq_thresh_kb": 1024, "reclaim_policy": True}}),
    (Flashcache, {**BACK, "write_only": True, "metadata_block_size": "512", "size": "64M"}),
    (LvmOfPool, {}),
    (LvmOfPool, {**BACK, "kind": "cachepool"}),
    (LvmWithSnapshot, BACK),
    (EnhanceIO, {}),
    (EnhanceIO, {"mode": "writearound", "policy": "rand"}),
    (EnhanceIO, {**BACK, "settings": {"dirty_high_threshold": 60, "dirty_low_threshold": 20, "mem_limit_pct": 50}}),
    (EnhanceIO, {"cache_devices": [fake_enhanceio.SSD, fake_enhanceio.SSD2], "mirror": True, "mode": "writeback"}),
]
IDS = [
    f"{bench.type}-{'-'.join(f'{key}={value}' for key, value in fields.items() if key in ('kind', 'mode', 'mirror', 'size')) or 'usual'}"
    for bench, fields in CASES
]


@pytest.mark.parametrize("every", [False, True], ids=["changed", "every"])
@pytest.mark.parametrize("bench, fields", CASES, ids=IDS)
def test_what_is_described_changes_nothing(bench, fields, every, tmp_path, monkeypatch):
    rig = bench(tmp_path, monkeypatch)
    rig.converge({**rig.item, **fields})
    entry = rig.entry(every=every)
    assert rig.converge(entry, check_mode=True).steps == ()
    for key, value in fields.get("settings", {}).items():
        assert entry["settings"][key] == value
    assert {key: entry[key] for key in ("mode", "mirror", "kind") if key in fields} == {key: fields[key] for key in ("mode", "mirror", "kind") if key in fields}


def by_hand(fields):
    """Another mode, or other settings where there is only one mode."""
    if fields.get("kind") == "writecache":
        return {"settings": {"high_watermark": 90, "low_watermark": 80, **({"block_size": 4096} if "settings" in fields else {})}}
    if fields.get("mode", "writethrough") == "writethrough":
        return BACK
    return {"mode": "writethrough", "settings": {}, **({"write_only": False} if "write_only" in fields else {})}


@pytest.mark.parametrize("bench, fields", CASES, ids=IDS)
def test_what_was_changed_by_hand_is_brought_back(bench, fields, tmp_path, monkeypatch):
    rig = bench(tmp_path, monkeypatch)
    rig.converge({**rig.item, **fields})
    every = fields.get("kind") == "writecache"
    entry, before = rig.entry(every=every), rig.describe(every=every)
    rig.converge({**rig.item, **fields, "name": entry["name"], **by_hand(fields)})
    assert rig.converge(entry, check_mode=True).changed
    rig.converge(entry)
    assert rig.describe(every=every) == before


def test_a_write_back_cache_on_one_device_carries_its_permission_and_why(tmp_path, monkeypatch):
    rig = Dm(tmp_path, monkeypatch)
    rig.converge({**rig.item, **BACK})
    (entry,), _notes = rig.describe()
    assert entry.values["allow_unmirrored_writeback"] is True
    assert "lost with that device" in entry.notes[0]


def test_settings_at_their_default_are_written_only_when_all_are_asked_for(tmp_path, monkeypatch):
    rig = Bcache(tmp_path, monkeypatch)
    rig.converge(rig.item)
    assert "settings" not in rig.describe()[0][0].values
    assert rig.describe(every=True)[0][0].values["settings"]["writeback_percent"] == 10


def make_bcache_by_hand(rig, backing="sda", cache="sdb"):
    """As make-bcache and its registration leave it: no label, the sizes of make-bcache, a set of another UUID than ours."""
    host, cset = rig.host, "7c3e1f0a-1111-4222-8333-944455556666"
    host.run(["make-bcache", "--bdev", "--block", "512", f"/dev/{backing}"])
    if cset not in host.sets:
        host.run(["make-bcache", "--cache", "--bucket", "524288", "--block", "512", "--cset-uuid", cset, f"/dev/{cache}"])
    fake_bcache.FakeSysfs(host).write(f"sys/class/block/{backing}/bcache/attach", cset, "images")


def test_a_bcache_of_make_bcache_is_named_by_its_uuid_and_keeps_having_no_label(tmp_path, monkeypatch):
    rig = Bcache(tmp_path, monkeypatch)
    make_bcache_by_hand(rig)
    entry = rig.entry()
    assert entry["name"] == rig.host.contents["sda"].uuid
    assert rig.converge(entry, check_mode=True).steps == ()
    # Another setting is made, and still no label.
    rig.converge({**entry, **BACK})
    assert rig.host.contents["sda"].mode == "writeback"
    assert rig.host.contents["sda"].label == ""
    # After a reboot it may be bcache7, and is the same entry.
    rig.host.reboot()
    assert rig.entry()["name"] == entry["name"]


def test_a_name_of_a_user_becomes_the_label_of_a_bcache_of_make_bcache(tmp_path, monkeypatch):
    rig = Bcache(tmp_path, monkeypatch)
    make_bcache_by_hand(rig)
    rig.converge({**rig.item})
    assert rig.host.contents["sda"].label == "images"
    assert rig.entry()["name"] == "images"


@pytest.mark.parametrize("label", ["my data", "-x"])
def test_a_label_that_is_no_name_stays(label, tmp_path, monkeypatch):
    rig = Bcache(tmp_path, monkeypatch)
    rig.converge(rig.item)
    rig.host.contents["sda"].label = label
    rig.host.render()
    entry = rig.entry()
    assert entry["name"] == rig.host.contents["sda"].uuid
    assert rig.converge(entry).steps == ()
    assert rig.host.contents["sda"].label == label


def test_two_bcaches_of_one_label_are_both_described(tmp_path, monkeypatch):
    rig = Bcache(tmp_path, monkeypatch)
    rig.converge(rig.item)
    make_bcache_by_hand(rig, "sdd", "sdc")
    rig.host.contents["sdd"].label = "images"
    rig.host.render()
    entries, notes = rig.describe()
    assert notes == ()
    assert [entry.values["name"] for entry in entries] == ["images", rig.host.contents["sdd"].uuid]


@pytest.mark.parametrize(
    "segtype, how", [("striped", "is striped over 2 devices"), ("linear", "lies on 2 devices, one after the other"), ("raid0", "is a raid0 of 2 devices")]
)
def test_a_pool_spread_over_two_ssds_is_a_note_with_its_reason(segtype, how, tmp_path, monkeypatch):
    rig = Lvm(tmp_path, monkeypatch)
    rig.host = SpreadPool(segtype)
    entries, notes = rig.describe()
    assert entries == ()
    assert notes == (f"The lvm_cache vg/data is not described: it {how}, and this collection makes caches on one device, or on a mirror of two.",)


def test_a_broken_cache_is_a_note_with_its_problem(tmp_path, monkeypatch):
    rig = Dm(tmp_path, monkeypatch)
    rig.converge(rig.item)
    broken = [dataclasses.replace(cache, state="needs_check", problem="Its metadata needs a check.") for cache in rig.caches()]
    entries, notes = described.describe_type(rig.kind, broken, rig.devices(), rig.host, rig.root)
    assert (entries, notes) == ((), ("The dm_cache images is not described: Its metadata needs a check.",))


def test_a_type_that_cannot_be_read_does_not_hide_the_others(tmp_path, monkeypatch):
    rig = Bcache(tmp_path, monkeypatch)
    rig.converge(rig.item)

    def failing(devices, runner, root):
        raise NotUnderstood("flashcache printed something else.")

    monkeypatch.setitem(described.READERS, "flashcache", failing)
    types = {"flashcache": described.described("flashcache"), "bcache": rig.kind}
    variable = described.describe(rig.host, rig.devices(), rig.root, types=types)
    assert [entry.values["name"] for entry in variable.entries] == ["images"]
    assert variable.notes == ("The caches of type flashcache could not be read: flashcache printed something else.",)
