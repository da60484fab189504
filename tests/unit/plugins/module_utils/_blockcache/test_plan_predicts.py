# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run refuses is refused by check mode in the same words, before anything is changed: all types, each on its made-up host."""

from __future__ import annotations

import dataclasses
import itertools
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import BcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import read_items as read_bcache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import DmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import read_items as read_dm_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import read_items as read_enhanceio
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as lvm_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items as read_lvm
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.tests.simulators.in_process import enhanceio, flashcache
from ansible_collections.cachefleet.storage.tests.unit.support import fake_bcache, fake_dm
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD1, SSD1_PATH, SSD_PATH, FakeLvm, NamedDevices, make_dev
from ansible_collections.cachefleet.storage.tests.unit.support.fake_modules import remove_modules
from ansible_collections.cachefleet.storage.tests.unit.support.lvm_shapes import WithIntegrity

WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class LvmHost:
    """:attr:`item` creates a cache, :attr:`mirrored` one on a mirror."""

    item = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}
    mirrored = {**item, "cache_devices": [SSD_PATH, SSD1_PATH], "mirror": True}

    def __init__(self, root, monkeypatch):
        make_dev(root)
        self.root = root
        self.monkeypatch = monkeypatch
        self.host = FakeLvm()
        monkeypatch.setattr(lvm_layer, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, SSD1]))

    def layer(self, **fields):
        return LvmCacheLayer(self.host, read_lvm([{**self.item, **fields}]), self.root, clock=itertools.count(0, 30).__next__, sleep=lambda seconds: None)

    def without_modules(self, *names):
        remove_modules(self.root)
        self.host.without_modules = {name.replace("_", "-") for name in names}

    @property
    def changes(self):
        return list(self.host.changes)


class DmHost:
    item = {"name": "images", "origin": fake_dm.HDD, "cache_devices": [fake_dm.SSD]}
    mirrored = {**item, "cache_devices": [fake_dm.SSD, fake_dm.SSD1], "mirror": True}

    def __init__(self, root, monkeypatch):
        monkeypatch.setattr(mirror, "read_devices", lambda runner, root: runner.devices())
        self.root = root
        self.host = fake_dm.FakeDm(root)

    def layer(self, **fields):
        items = read_dm_cache([{**self.item, **fields}])
        return DmCacheLayer(self.host, items, self.root, clock=itertools.count(0, 30).__next__, sleep=lambda seconds: None)

    def without_modules(self, *names):
        remove_modules(self.root, names)

    @property
    def changes(self):
        return list(self.host.changes)


class BcacheHost:
    item = {"name": "images", "origin": fake_bcache.HDD, "cache_devices": [fake_bcache.SSD]}
    mirrored = {**item, "cache_devices": [fake_bcache.SSD, fake_bcache.SSD2], "mirror": True}

    def __init__(self, root, monkeypatch):
        self.root = root
        self.host = fake_bcache.FakeBcache(root)

    def layer(self, **fields):
        items = read_bcache([{**self.item, **fields}])
        return BcacheLayer(self.host, items, self.root, sysfs=fake_bcache.FakeSysfs(self.host), clock=self.host.clock, sleep=self.host.sleep)

    def without_modules(self, *names):
        remove_modules(self.root, names)

    @property
    def changes(self):
        reading = ("udevadm info", "wipefs --no-act", "bcache-super-show", "modprobe --dry-run")
        return [call for call in self.host.calls if not call.startswith(reading)]


class FlashcacheHost:
    item = {"name": "fc0", "origin": flashcache.DISK, "cache_devices": [flashcache.SSD]}
    mirrored = {**item, "cache_devices": [flashcache.SSD, flashcache.SSD2], "mirror": True}

    def __init__(self, root, monkeypatch):
        self.root = root
        self.host = flashcache.FlashcacheHost(root)

    def layer(self, **fields):
        return self.host.layer([{**self.item, **fields}])

    def without_modules(self, *names):
        remove_modules(self.root, names)
        if "flashcache" in names:
            self.host.kernel.host["module"] = "missing"

    @property
    def changes(self):
        return self.host.changes


class EnhanceIOHost:
    item = {"name": "images", "origin": enhanceio.HDD, "cache_devices": [enhanceio.SSD]}
    mirrored = {**item, "cache_devices": [enhanceio.SSD, enhanceio.SSD2], "mirror": True}

    def __init__(self, root, monkeypatch):
        self.root = root
        self.host = enhanceio.SimulatedEnhanceIO(root)

    def layer(self, **fields):
        items = read_enhanceio([{**self.item, **fields}])
        return EnhanceIOLayer(self.host, items, root=self.root, clock=itertools.count(0, 30).__next__, sleep=self.host.sleep)

    def without_modules(self, *names):
        remove_modules(self.root, names)

    @property
    def changes(self):
        return self.host.changes


TYPES = (LvmHost, DmHost, BcacheHost, FlashcacheHost, EnhanceIOHost)


def refused(host, error, match, **fields):
    """Check mode and a run end with the same sentence, and neither has changed anything."""
    before, messages = host.changes, []
    for check_mode in (True, False):
        with pytest.raises(error, match=match) as caught:
            converge(host.layer(**fields), check_mode=check_mode)
        assert host.changes == before
        assert not caught.value.facts.get("changed")
        messages.append(caught.value.message)
    assert len(set(messages)) == 1
    return messages[0]


# -- what the kernel lacks


@pytest.mark.parametrize(
    ("kind", "module", "fields"),
    [
        (LvmHost, "dm-cache", {}),
        (LvmHost, "dm-cache", {"kind": "cachevol"}),
        (LvmHost, "dm-writecache", {"kind": "writecache", **WRITEBACK}),
        (LvmHost, "raid1", LvmHost.mirrored),
        (LvmHost, "dm-raid", LvmHost.mirrored),
        (DmHost, "dm-cache", {}),
        (DmHost, "dm-writecache", {"kind": "writecache", **WRITEBACK}),
        (DmHost, "raid1", DmHost.mirrored),
        (BcacheHost, "bcache", {}),
        (BcacheHost, "raid1", BcacheHost.mirrored),
        (FlashcacheHost, "raid1", FlashcacheHost.mirrored),
        (EnhanceIOHost, "raid1", EnhanceIOHost.mirrored),
    ],
)
def test_kernel_without_the_module_is_noticed_before_the_first_change(tmp_path, monkeypatch, kind, module, fields):
    host = kind(tmp_path, monkeypatch)
    assert converge(host.layer(**fields), check_mode=True).changed
    host.without_modules(module.replace("-", "_"))
    refused(host, Refused, f"the kernel module {module} is not available on kernel 6.1.0-test", **fields)


@pytest.mark.parametrize("kind", [LvmHost, DmHost, BcacheHost])
def test_cache_that_runs_needs_no_module_again(tmp_path, monkeypatch, kind):
    host = kind(tmp_path, monkeypatch)
    converge(host.layer(), check_mode=False)
    host.without_modules("bcache", "dm_cache", "dm_writecache", "raid1", "dm_raid")
    assert not converge(host.layer(), check_mode=False).changed


# -- several paths to one unit of storage


class MappedDm(DmHost):
    def add_path(self, name, mapped):
        disk = dataclasses.replace(fake_dm._DISKS[name], wwn="0x6000c500aa", transport="fc", holders=("dm-9",) if mapped else ())
        twin = dataclasses.replace(disk, name="sdx", path="/dev/sdx", number="8:16000", by_id=(), links=())
        group = BlockDevice("dm-9", "/dev/dm-9", "253:9", kind="multipath", dm_name="mpatha", dm_uuid="mpath-3600", slaves=(name, "sdx"))
        self.host.other_disks = {name: disk, "sdx": twin, **({"dm-9": group} if mapped else {})}


class MappedLvm(LvmHost):
    def add_path(self, name, mapped):
        disk = dataclasses.replace({"sda": HDD, "sdb": SSD}[name], wwn="0x6000c500aa", transport="fc", holders=("dm-9",) if mapped else ())
        twin = dataclasses.replace(disk, name="sdx", path="/dev/sdx", number="8:16000", by_id=(), links=())
        group = BlockDevice("dm-9", "/dev/dm-9", "253:9", kind="multipath", dm_name="mpatha", dm_uuid="mpath-3600", slaves=(name, "sdx"))
        rest = [one for one in (HDD, SSD, SSD1) if one.name != name]
        self.devices = NamedDevices([disk, twin, *rest, *([group] if mapped else [])])
        self.monkeypatch.setattr(lvm_layer, "read_devices", lambda runner, root: self.devices)


def add_path_of_files(host, records, name, mapped):
    """A second path to a disk of a host of files, and the multipath device of both.

    :param records: where the host has what udev says of each, by name or in the order of their making.
    """
    for one in records if isinstance(records, dict) else range(len(records)):
        if f"N: {name}\n" in records[one]:
            records[one] += "\nE: ID_WWN=0x6000c500aa"
    host.disk("sdx", "sas", size=1 << 30, wwn="0x6000c500aa")
    if isinstance(records, dict):
        records["sdx"] = host.records[-1]
    if mapped:
        host.disk("dm-9", "virtual", size=1 << 30, dm_name="mpatha", dm_uuid="mpath-3600", slaves=[name, "sdx"])


class MappedBcache(BcacheHost):
    def add_path(self, name, mapped):
        add_path_of_files(self.host.host, self.host.base_records, name, mapped)
        self.host.missing = ("dmsetup",)


class MappedFlashcache(FlashcacheHost):
    def add_path(self, name, mapped):
        add_path_of_files(self.host.fake, self.host.fake.records, name, mapped)


class MappedEnhanceIO(EnhanceIOHost):
    def add_path(self, name, mapped):
        add_path_of_files(self.host.host, self.host.host.records, name, mapped)


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "unmapped"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (MappedLvm, "sdb"),
        *itertools.product((MappedDm, MappedBcache, MappedFlashcache, MappedEnhanceIO), ("sda", "sdb")),
    ],
)
def test_one_of_several_paths_is_refused_as_origin_and_as_cache_device(tmp_path, monkeypatch, kind, name, mapped):
    host = kind(tmp_path, monkeypatch)
    assert converge(host.layer(), check_mode=True).changed
    host.add_path(name, mapped)
    match = "is one of the paths to the multipath device /dev/mapper/mpatha: name that device" if mapped else "/dev/sdx are paths to one unit of storage"
    message = refused(host, Refused, match)
    assert "wipefs" not in message


# -- RAID with integrity


@pytest.mark.parametrize("kind", ["cachepool", "cachevol", "writecache"])
def test_origin_with_integrity_gets_no_cache(tmp_path, monkeypatch, kind):
    host = LvmHost(tmp_path, monkeypatch)
    host.host = WithIntegrity()
    fields = {"kind": kind, **(WRITEBACK if kind == "writecache" else {})}
    refused(host, Refused, r"vg/data is a RAID volume with integrity, .*\(lvconvert --raidintegrity n vg/data\)", **fields)


@pytest.mark.parametrize("kind", ["cachepool", "cachevol", "writecache"])
@pytest.mark.parametrize(("version", "cached"), [("2.03.31(2) (2025-02-27)", True), ("2.04.1(2)", True), ("2.03.30(2)", False), ("unknown", False)])
def test_lvm_that_caches_integrity_is_used(tmp_path, monkeypatch, kind, version, cached):
    """Done on the rack with LVM 2.03.31 of Debian 13, by each kind."""
    host = LvmHost(tmp_path, monkeypatch)
    host.host = WithIntegrity()
    host.host.version = version
    fields = {"kind": kind, **(WRITEBACK if kind == "writecache" else {})}
    if not cached:
        refused(host, Refused, "is a RAID volume with integrity", **fields)
        return
    converge(host.layer(**fields), check_mode=False)
    assert host.host.cache is not None


def test_cache_on_integrity_is_not_taken_away_to_be_made_anew(tmp_path, monkeypatch):
    """What is there stays as it is, and is flushed and removed as any other."""
    host = LvmHost(tmp_path, monkeypatch)
    host.host = WithIntegrity(fast="cachepool", mode="writeback", dirty=3)
    refused(host, Refused, r"lvconvert --raidintegrity n vg/data_corig", kind="cachevol")
    assert not converge(host.layer(**WRITEBACK), check_mode=False).changed
    converge(host.layer(state="absent"), check_mode=False)
    assert host.host.cache is None


# -- what only a run found out before


def test_bcache_whose_index_cannot_be_read_keeps_its_cache(tmp_path, monkeypatch):
    """As with the lockdown of Secure Boot, or without debugfs: nothing is detached that could not be taken down after that."""
    host = BcacheHost(tmp_path, monkeypatch)
    converge(host.layer(), check_mode=False)
    host.host.debugfs = False
    host.host.render()
    refused(host, Refused, "mount debugfs", state="absent")
    assert host.host.backings["sda"].set is not None


def test_enhanceio_with_fast_removal_does_not_enter_write_back(tmp_path, monkeypatch):
    host = EnhanceIOHost(tmp_path, monkeypatch)
    converge(host.layer(), check_mode=False)
    host.host.driver.write_sysctl("images", "control", 6)
    refused(host, Refused, r"set dev\.enhanceio\.images\.control=7 first", **WRITEBACK)


# -- commands that are not installed


def commands_of(host):
    """The names of the commands that were started since the last time."""
    found = {call.split(" ")[0] if isinstance(call, str) else call[0] for call in host.host.calls}
    host.host.calls.clear()
    return sorted(os.path.basename(name) for name in found if " = " not in name)


#: What is there before, and what is requested: by the names of attributes of the hosts, or as fields.
CHANGES = {
    "create": (None, "item"),
    "create a mirror": (None, "mirrored"),
    "remove": ("item", {"state": "absent"}),
    "flush and remove": ("item", {"state": "absent", "written": True}),
    "enter write-back": ("item", WRITEBACK),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("change", CHANGES)
def test_missing_command_is_noticed_before_the_first_change(tmp_path, monkeypatch, kind, change):
    """Each command that the run starts is missing once: the run ends at the same place as check mode, or did not need it."""
    before, requested = CHANGES[change]

    def prepared(folder):
        host = kind(tmp_path / folder, monkeypatch)
        fields = dict(getattr(kind, requested) if isinstance(requested, str) else requested)
        if before is not None:
            converge(host.layer(**getattr(kind, before), **(WRITEBACK if fields.pop("written", False) else {})), check_mode=False)
            host.host.calls.clear()
        return host, fields

    host, fields = prepared("whole")
    converge(host.layer(**fields), check_mode=False)
    for command in commands_of(host):
        host, fields = prepared(command)
        # blkid is read in place of wipefs.
        host.host.missing = {command, "blkid"} if command == "wipefs" else {command}
        outcomes = []
        for check_mode in (True, False):
            try:
                converge(host.layer(**fields), check_mode=check_mode)
                outcomes.append("accepted")
            except StorageError as error:
                outcomes.append(error.message)
                assert isinstance(error, (ToolMissing, Refused)), (command, error)
                assert not error.facts.get("actions"), (command, error)
        assert len(set(outcomes)) == 1, (command, outcomes)
