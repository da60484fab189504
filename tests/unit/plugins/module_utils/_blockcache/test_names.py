# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All types are asked the same of a dirty write-back cache, by every name of it and by names that are wrong: flushed and absent never pass over it."""

from __future__ import annotations

import dataclasses
import itertools
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror, origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import BcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import read_items as read_bcache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.division import divide
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import DmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import read_items as read_dm_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import read_items as read_enhanceio
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.layer import FlashcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import read_items as read_flashcache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as lvm_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items as read_lvm
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature
from ansible_collections.cachefleet.storage.tests.simulators.in_process import enhanceio, flashcache
from ansible_collections.cachefleet.storage.tests.unit.support import fake_bcache, fake_dm
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD1, FakeLvm, NamedDevices, dirty_cachepool, make_dev
from ansible_collections.cachefleet.storage.tests.unit.support.lvm_shapes import CachedPool, Hidden, Snapshotted, WithoutStatus

WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
STATES = ("flushed", "absent")
LOST = (DeviceMissing, Refused)


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


# -- one host for each type, with a dirty write-back cache


class LvmHost:
    """:param devices: further block devices."""

    kind, name, origin = "lvm_cache", "images", "vg/data"
    names: tuple[str, ...] = ("vg/data", "/dev/vg/data", "/dev/mapper/vg-data")

    def __init__(self, root, monkeypatch, lvm=None, devices=()):
        make_dev(root)
        self.root = root
        self.lvm = lvm or dirty_cachepool()
        monkeypatch.setattr(lvm_layer, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, SSD1, *devices]))

    def layer(self, **fields):
        ticks = itertools.count(0, 30)
        items = read_lvm([{"name": self.name, "origin": self.origin, **fields}])
        return LvmCacheLayer(self.lvm, items, self.root, clock=lambda: next(ticks), sleep=lambda seconds: None)

    @property
    def dirty(self):
        return self.lvm.cache["dirty"] if self.lvm.cache else 0

    @property
    def changes(self):
        return list(self.lvm.changes)


class ThinHost(LvmHost):
    names = ("vg/pool", "/dev/vg/pool", "vg/pool_tdata", "/dev/mapper/vg-pool_tdata", "vg/thin", "vg/later")

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch, CachedPool(fast="cachepool", mode="writeback", dirty=50))


class VdoHost(LvmHost):
    names = ("vg/pool", "vg/pool_vdata", "vg/thin")

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch, CachedPool("vdo-pool", fast="cachepool", mode="writeback", dirty=50))


class SnapshotHost(LvmHost):
    names = ("vg/data", "vg/snap")

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch, Snapshotted(fast="cachepool", mode="writeback", dirty=50))


class WritecacheSnapshotHost(LvmHost):
    names = ("vg/data", "vg/snap")

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch, Snapshotted(fast="writecache", dirty=50))


class DmHost:
    kind, name, origin = "dm_cache", "images", fake_dm.HDD
    names = (fake_dm.HDD, "/dev/mapper/images")

    def __init__(self, root, monkeypatch):
        monkeypatch.setattr(mirror, "read_devices", lambda runner, root: runner.devices())
        self.host = fake_dm.FakeDm(root)
        converge(self.layer(cache_devices=[fake_dm.SSD], state="present", **WRITEBACK), check_mode=False)
        self.host.write("images", 1, 5)
        self.host.changes.clear()

    def layer(self, **fields):
        ticks = itertools.count(0, 30)
        items = read_dm_cache([{"name": self.name, "origin": self.origin, **fields}])
        return DmCacheLayer(self.host, items, self.host.root, clock=lambda: next(ticks), sleep=lambda seconds: None)

    @property
    def dirty(self):
        return sum(dirty for store in self.host.stores.values() for _value, dirty in store.values())

    @property
    def changes(self):
        return list(self.host.changes)


class BcacheHost:
    kind, name, origin = "bcache", "images", fake_bcache.HDD

    def __init__(self, root, monkeypatch):
        self.host = fake_bcache.FakeBcache(root)
        converge(self.layer(cache_devices=[fake_bcache.SSD], state="present", **WRITEBACK), check_mode=False)
        self.host.make_dirty("sda", 5 << 20)
        self.names = (fake_bcache.HDD, "/dev/sda", "/dev/bcache0", f"/dev/bcache/by-uuid/{self.host.contents['sda'].uuid}")
        self.made = list(self.host.calls)

    def layer(self, **fields):
        items = read_bcache([{"name": self.name, "origin": self.origin, **fields}])
        sysfs = fake_bcache.FakeSysfs(self.host)
        return BcacheLayer(self.host, items, self.host.root, sysfs=sysfs, clock=self.host.clock, sleep=self.host.sleep)

    @property
    def dirty(self):
        return sum(sum(content.dirty.values()) for content in self.host.contents.values())

    @property
    def changes(self):
        return [call for call in self.host.calls[len(self.made) :] if not call.startswith(("udevadm info", "wipefs --no-act", "bcache-super-show"))]


class FlashcacheHost:
    kind, name, origin = "flashcache", "fc0", flashcache.DISK
    names = (flashcache.DISK, "/dev/mapper/fc0")

    def __init__(self, root, monkeypatch):
        self.host = flashcache.FlashcacheHost(root)
        self.host.run_layer(**flashcache.BACK)
        self.host.kernel.write("fc0", 700)
        self.host.calls.clear()

    def layer(self, **fields):
        return self.host.layer([{"name": self.name, "origin": self.origin, **fields}])

    @property
    def dirty(self):
        return self.host.machine["caches"]["fc0"]["dirty"] if "fc0" in self.host.machine["caches"] else 0

    @property
    def changes(self):
        return self.host.changes


class EnhanceIOHost:
    kind, name, origin = "enhanceio", "images", enhanceio.HDD
    names = (enhanceio.HDD,)

    def __init__(self, root, monkeypatch):
        self.host = enhanceio.SimulatedEnhanceIO(root)
        converge(self.layer(cache_devices=[enhanceio.SSD], state="present", **WRITEBACK), check_mode=False)
        for number in range(5):
            self.host.driver.write(enhanceio.HDD, number, f"v{number}")
        self.host.changes = 0

    def layer(self, **fields):
        ticks = itertools.count(0, 30)
        items = read_enhanceio([{"name": self.name, "origin": self.origin, **fields}])
        return EnhanceIOLayer(self.host, items, root=self.host.root, clock=lambda: next(ticks), sleep=self.host.sleep)

    @property
    def dirty(self):
        node = os.path.realpath(self.host.root / enhanceio.HDD.lstrip("/"))
        return 5 - len(self.host.driver.state["disks"].get(node, {}))

    @property
    def changes(self):
        return self.host.changes


TYPES = (LvmHost, DmHost, BcacheHost, FlashcacheHost, EnhanceIOHost)
SHAPES = (ThinHost, VdoHost, SnapshotHost, WritecacheSnapshotHost)


def every_name():
    """Each host with the place of each of its names: a name may be known only once the host is there."""
    counts = {BcacheHost: 4}
    return [pytest.param(kind, place, id=f"{kind.__name__}-{place}") for kind in (*TYPES, *SHAPES) for place in range(counts.get(kind) or len(kind.names))]


# -- by every name of it


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("kind", "place"), every_name())
def test_dirty_cache_is_flushed_by_every_name_of_it(tmp_path, monkeypatch, kind, place, state):
    host = kind(tmp_path, monkeypatch)
    assert host.dirty
    predicted = converge(host.layer(origin=host.names[place], state=state), check_mode=True)
    assert predicted.changed
    assert host.dirty
    outcome = converge(host.layer(origin=host.names[place], state=state), check_mode=False)
    assert outcome.to_dict() == predicted.to_dict()
    assert not host.dirty


@pytest.mark.parametrize(("kind", "place"), every_name())
def test_flushed_by_every_name_changes_nothing_in_the_second_run(tmp_path, monkeypatch, kind, place):
    host = kind(tmp_path, monkeypatch)
    converge(host.layer(origin=host.names[place], state="flushed"), check_mode=False)
    assert not converge(host.layer(origin=host.names[place], state="flushed"), check_mode=False).changed


# -- by a name that leads to nothing


def require_error(host, *, check_mode, match=None, **fields):
    """The run ends with an error of one sentence, and nothing was touched."""
    dirty, changes = host.dirty, host.changes
    with pytest.raises(LOST, match=match) as caught:
        converge(host.layer(**fields), check_mode=check_mode)
    assert (host.dirty, host.changes) == (dirty, changes)
    assert caught.value.item == fields.get("name", host.name)


BOTH = pytest.mark.parametrize("check_mode", [True, False], ids=["check", "run"])


@BOTH
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", TYPES)
def test_origin_that_does_not_exist_is_an_error(tmp_path, monkeypatch, kind, state, check_mode):
    host = kind(tmp_path, monkeypatch)
    wrong = ["vg/dada", "gv/data", "/dev/mapper/vg-dada"] if kind is LvmHost else [f"{host.origin}9", "/dev/mapper/image"]
    for path in wrong:
        require_error(host, check_mode=check_mode, origin=path, state=state)
        require_error(host, check_mode=check_mode, origin=path, state=state, name="other")


@BOTH
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [DmHost, FlashcacheHost, EnhanceIOHost])
def test_mistyped_name_of_cache_is_refused_with_its_name(tmp_path, monkeypatch, kind, state, check_mode):
    host = kind(tmp_path, monkeypatch)
    for path in host.names:
        require_error(host, check_mode=check_mode, match=f"belongs to the {host.kind} {host.name}", name="other", origin=path, state=state)


@BOTH
@pytest.mark.parametrize("kind", TYPES)
def test_nothing_to_flush_is_an_error_and_absent_is_no_change(tmp_path, monkeypatch, kind, check_mode):
    host = kind(tmp_path, monkeypatch)
    converge(host.layer(state="absent"), check_mode=False)
    assert not converge(host.layer(state="absent"), check_mode=check_mode).changed
    require_error(host, check_mode=check_mode, match="nothing was flushed", state="flushed")


@pytest.mark.parametrize("kind", TYPES)
def test_origin_that_is_expected_to_be_missing_is_no_error_for_absent(tmp_path, monkeypatch, kind):
    host = kind(tmp_path, monkeypatch)
    path = "gv/data" if kind is LvmHost else f"{host.origin}9"
    assert not converge(host.layer(name="other", origin=path, state="absent", expect=["missing"]), check_mode=False).changed
    assert host.dirty
    with pytest.raises(BadInput, match="expect is only supported with state: absent"):
        host.layer(name="other", origin=path, state="flushed", expect=["missing"])


# -- the wrong type


class Stranger:
    """A runner of another type's host: commands that the host does not have print nothing."""

    def __init__(self, runner):
        self.runner = runner

    def has(self, name):
        return True

    def find(self, name):
        return f"/sbin/{name}"

    def run(self, argv, **how):
        words = tuple(argv)
        if words[0] in ("modprobe", "systemctl") or (words[0] == "dmsetup" and "uuid" in str(words)):
            return Completed(words, 0 if words[0] == "dmsetup" else 1, "", "")
        return self.runner.run(argv, **how)


def other_layers(root, path, state, runner, **fields):
    item = {"name": "other", "origin": path, "state": state, **fields}
    yield "bcache", BcacheLayer(runner, read_bcache([item]), root)
    yield "dm_cache", DmCacheLayer(runner, read_dm_cache([item]), root)
    yield "flashcache", FlashcacheLayer(runner, read_flashcache([item]), root, volatile_below=lambda path, drives: [])
    yield "enhanceio", EnhanceIOLayer(runner, read_enhanceio([item]), root)


@BOTH
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [BcacheHost, FlashcacheHost, EnhanceIOHost])
def test_origin_that_another_type_caches_is_refused_with_its_name(tmp_path, monkeypatch, kind, state, check_mode):
    host = kind(tmp_path, monkeypatch)
    asked = 0
    for other, layer in other_layers(tmp_path, host.origin, state, Stranger(host.host)):
        if other != host.kind:
            with pytest.raises(Refused, match=f"has no {other} of this name and belongs to the {host.kind} "):
                converge(layer, check_mode=check_mode)
            asked += 1
    assert asked == 3
    for other, layer in other_layers(tmp_path, host.origin, "absent", Stranger(host.host), expect=[host.kind]):
        if other != host.kind:
            assert not converge(layer, check_mode=check_mode).changed
    assert host.dirty


def test_list_that_replaces_a_type_expects_the_new_one():
    items = [
        {"name": "old", "type": "dm_cache", "origin": "/dev/disk/by-id/A", "state": "absent"},
        {"name": "new", "type": "flashcache", "origin": "/dev/disk/by-id/A"},
        {"name": "gone", "type": "dm_cache", "origin": "/dev/disk/by-id/B", "state": "absent"},
        {"name": "volume", "type": "dm_cache", "origin": "/dev/vg/data", "state": "absent", "expect": ["missing"]},
        {"name": "both gone", "type": "lvm_cache", "origin": "vg/data", "state": "absent"},
    ]
    removed, rest = divide(items, "dm_cache")
    assert [item.get("expect") for item in removed] == [["flashcache"], None, ["missing", "lvm_cache"]]
    assert rest == []


def device(name, **fields):
    return BlockDevice(name=name, path=f"/dev/{name}", number=fields.pop("number", "8:0"), **fields)


def lvm_device(name, dm_name, *targets, **fields):
    return device(name, kind="lvm", dm_name=dm_name, dm_uuid=f"LVM-{'x' * 64}", dm_targets=targets, **fields)


@pytest.mark.parametrize(
    ("dm_name", "volume"), [("vg-data", "vg/data"), ("vg-data-real", "vg/data"), ("my--vg-my--lv", "my-vg/my-lv"), ("vg-pool_tdata", "vg/pool_tdata")]
)
def test_tree_names_lvm_cache_above_and_below(dm_name, volume):
    disk, cached = device("sda", holders=("dm-0",)), lvm_device("dm-0", dm_name, "cache", slaves=("sda",), holders=("dm-1",))
    top = lvm_device("dm-1", "vg-top", "snapshot-origin", slaves=("dm-0",))
    devices = Devices([disk, cached, top])
    for one in devices:
        assert [str(found) for found in origin.caches_around(devices, one)] == [f"the lvm_cache {volume}"]


def test_tree_does_not_include_neighbours():
    """Two volumes of one disk: the cache of one is none of the other."""
    disk = device("sda", holders=("dm-0", "dm-1"))
    devices = Devices([disk, lvm_device("dm-0", "vg-data", "writecache", slaves=("sda",)), lvm_device("dm-1", "vg-other", "linear", slaves=("sda",))])
    assert origin.caches_around(devices, devices.get("dm-1")) == ()
    assert origin.caches_around(devices, disk) != ()


def test_unregistered_bcache_and_unreadable_enhanceio_are_caches(tmp_path):
    disk = device("sda", signature=Signature(type="bcache"))
    assert [found.type for found in origin.caches_around(Devices([disk]), disk, tmp_path)] == ["bcache"]
    (tmp_path / "proc/enhanceio/images").mkdir(parents=True)
    (tmp_path / "proc/enhanceio/images/config").write_text("nothing that is known\n")
    plain = device("sdb", number="8:16")
    assert [str(found) for found in origin.caches_around(Devices([plain]), plain, tmp_path)] == ["the enhanceio images"]


@pytest.mark.parametrize("kind", [DmHost, FlashcacheHost])
def test_cache_that_does_not_run_is_known_by_its_unit(tmp_path, monkeypatch, kind):
    host = kind(tmp_path, monkeypatch)
    if kind is DmHost:
        host.host.cut_power()
    else:
        host.host.kernel.crash()
    with pytest.raises(Refused, match=f"belongs to the {host.kind} {host.name}, which does not run"):
        converge(host.layer(name="other", state="absent"), check_mode=False)


# -- LVM


@BOTH
@pytest.mark.parametrize("state", STATES)
def test_volume_that_another_type_caches_is_refused(tmp_path, monkeypatch, state, check_mode):
    volume = lvm_device("dm-0", "vg-data", "linear", number="253:0", holders=("bcache0",))
    host = LvmHost(tmp_path, monkeypatch, FakeLvm(), [volume, device("bcache0", number="252:0", kind="bcache", slaves=("dm-0",))])
    folder = tmp_path / "sys/class/block/dm-0/bcache"
    folder.mkdir(parents=True)
    (folder / "cache_mode").write_text("writethrough [writeback]\n")
    (folder / "state").write_text("dirty\n")
    require_error(host, check_mode=check_mode, match="belongs to the bcache", state=state)
    (folder / "state").write_text("no cache\n")
    assert not converge(host.layer(state="absent"), check_mode=check_mode).changed


def test_volume_on_the_device_of_another_cache_is_only_its_user(tmp_path, monkeypatch):
    """Its physical volume is on a flashcache device: the list need not expect that."""
    stack = [
        device("sdq", number="65:0", holders=("dm-5",)),
        device("dm-5", number="253:5", kind="flashcache", dm_name="fc0", slaves=("sdq",), holders=("dm-0",)),
        lvm_device("dm-0", "vg-data", "linear", number="253:0", slaves=("dm-5",)),
    ]
    host = LvmHost(tmp_path, monkeypatch, FakeLvm(), stack)
    assert not converge(host.layer(state="absent"), check_mode=False).changed
    require_error(host, check_mode=False, match="vg/data", state="flushed")
    # Asked for as a cache of another type, that is the nearest answer.
    devices = Devices(stack)
    assert [str(found) for found in origin.caches_around(devices, devices.get("dm-0"))] == ["the flashcache fc0"]


def test_volume_in_a_cached_pool_belongs_to_that_cache(tmp_path):
    pool, tdata = lvm_device("dm-1", "vg-pool", "thin-pool", slaves=("dm-0",)), lvm_device("dm-0", "vg-pool_tdata", "cache", slaves=("sda",))
    thin = lvm_device("dm-2", "vg-thin", "thin", slaves=("dm-1",))
    devices = Devices([device("sda"), tdata, pool, thin])
    assert [str(found) for found in origin.caches_around(devices, thin, of_volume=True)] == ["the lvm_cache vg/pool_tdata"]


@pytest.mark.parametrize("part", ["vg/data_corig", "vg/data_cache_cpool", "vg/data_cache_cpool_cdata", "vg/data_cache_cpool_cmeta"])
@pytest.mark.parametrize("state", ["present", *STATES])
def test_hidden_part_of_cache_is_refused_with_the_cached_volume(tmp_path, monkeypatch, part, state):
    host = LvmHost(tmp_path, monkeypatch)
    fields = {"cache_devices": ["/dev/disk/by-id/ata-SSD0"]} if state == "present" else {}
    with pytest.raises((Refused, BadInput), match="vg/data" if state != "present" else "inner part"):
        converge(host.layer(origin=part, state=state, **fields), check_mode=False)
    assert (host.dirty, host.changes) == (839, [])


@BOTH
@pytest.mark.parametrize("state", ["present", *STATES])
def test_group_that_lvm_hides_is_not_reported_as_missing(tmp_path, monkeypatch, state, check_mode):
    """Also where the item expects that the volume does not exist."""
    fields = {"cache_devices": ["/dev/disk/by-id/ata-SSD0"]} if state == "present" else {"expect": ["missing"]} if state == "absent" else {}
    running = [lvm_device("dm-0", "vg-data", "cache", number="253:0"), lvm_device("dm-1", "vg-data_corig", "linear", number="253:1")]
    host = LvmHost(tmp_path, monkeypatch, Hidden(fast="cachepool", mode="writeback", dirty=839), running)
    require_error(host, check_mode=check_mode, match="is not shown by LVM here, although device-mapper runs vg-data", state=state, **fields)


def test_group_with_a_similar_name_hides_nothing(tmp_path, monkeypatch):
    host = LvmHost(tmp_path, monkeypatch, Hidden(), [lvm_device("dm-0", "vg--x-data", "cache", number="253:0")])
    require_error(host, check_mode=True, match="there is no volume group vg", state="absent")


def test_physical_volume_that_lvm_does_not_list_makes_absence_unknown(tmp_path, monkeypatch):
    label = dataclasses.replace(device("sdq", number="65:0"), signature=Signature(type="LVM2_member"))
    host = LvmHost(tmp_path, monkeypatch, Hidden(), [label])
    require_error(host, check_mode=True, match="LVM does not show /dev/sdq here", state="absent", expect=["missing"])


def test_all_physical_volumes_unplugged_is_an_error(tmp_path, monkeypatch):
    host = LvmHost(tmp_path, monkeypatch, Hidden(fast="cachepool", mode="writeback", dirty=839))
    for state in STATES:
        require_error(host, check_mode=False, match="there is no volume group vg", state=state)


def test_two_names_of_one_cache_are_refused(tmp_path, monkeypatch):
    host = ThinHost(tmp_path, monkeypatch)
    items = [{"name": "a", "origin": "vg/pool", "state": "flushed"}, {"name": "b", "origin": "vg/thin", "state": "flushed"}]
    with pytest.raises(BadInput, match=r"b: vg/thin and vg/pool \(a\) both lead to the cache of vg/pool_tdata"):
        converge(LvmCacheLayer(host.lvm, read_lvm(items), tmp_path), check_mode=True)


def test_two_names_of_one_bcache_are_refused(tmp_path, monkeypatch):
    host = BcacheHost(tmp_path, monkeypatch)
    items = [{"name": "a", "origin": fake_bcache.HDD, "state": "flushed"}, {"name": "b", "origin": "/dev/bcache0", "state": "flushed"}]
    with pytest.raises(BadInput, match="are the same bcache: list it only once"):
        converge(BcacheLayer(host.host, read_bcache(items), tmp_path, sysfs=fake_bcache.FakeSysfs(host.host)), check_mode=True)


@pytest.mark.parametrize("kind", ["cachepool", "cachevol", "writecache"])
def test_active_cache_without_kernel_status_is_unknown(tmp_path, monkeypatch, kind):
    host = LvmHost(tmp_path, monkeypatch, WithoutStatus(fast=kind, mode="writeback", dirty=839))
    for state in STATES:
        require_error(host, check_mode=True, match="is active, and device-mapper reports no cache of it", state=state)
    present = host.layer(state="present", kind=kind, cache_devices=["/dev/disk/by-id/ata-SSD0"], allow_unmirrored_writeback=True)
    with pytest.raises(Refused, match="device-mapper reports no cache of it"):
        converge(present, check_mode=False)
    state = present.read()
    assert [lvm_facts.describe(state, volume).state for volume in state.volumes if volume.cached] == ["unknown"]
    assert any("device-mapper reports no cache of it" in problem for problem in present.facts(state)["problems"])


def test_pool_is_changed_by_its_name(tmp_path, monkeypatch):
    host = ThinHost(tmp_path, monkeypatch)
    fields = {"origin": "vg/pool", "state": "present", "cache_devices": ["/dev/disk/by-id/ata-SSD0"]}
    converge(host.layer(**fields), check_mode=False)
    assert host.changes[-1] == "lvchange --yes --cachemode writethrough vg/data"
    assert not converge(host.layer(**fields), check_mode=False).changed


def test_pool_without_a_cache_gets_one_by_its_name(tmp_path, monkeypatch):
    host = LvmHost(tmp_path, monkeypatch, CachedPool())
    fields = {"origin": "vg/pool", "state": "present", "cache_devices": ["/dev/disk/by-id/ata-SSD0"]}
    converge(host.layer(**fields), check_mode=False)
    assert host.lvm.cache is not None
    assert not converge(host.layer(**fields), check_mode=False).changed
