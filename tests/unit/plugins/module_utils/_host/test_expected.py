# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list in which a cache of one type goes and one of another type takes its devices: check mode plans with the host as the first leaves it."""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import Expected, left_by, together
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostConvergence
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import Host, stages_of
from ansible_collections.cachefleet.storage.plugins.module_utils._host.plan import Planner
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import read_request
from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner
from ansible_collections.cachefleet.storage.plugins.modules.cache_layers import argument_spec
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio import EioCli, Sysctl
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio_driver import new_state
from ansible_collections.cachefleet.storage.tests.simulators.in_process.flashcache import DISK, MIB, SSD, SSD2, FlashcacheHost
from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer
from ansible_collections.cachefleet.storage.tests.unit.support.fake_modules import load_modules

ITEM = {"origin": DISK, "cache_devices": [SSD], "mode": "writethrough"}
KINDS = {
    "enhanceio": {},
    "flashcache": {"allow_ignored_flushes": True},
    "dm_cache": {},
    "bcache": {},
}


class Machine(FlashcacheHost):
    """A host with flashcache and EnhanceIO, whose other tools are there and are only asked."""

    def __init__(self, root):
        super().__init__(root, ssd=1024 * MIB, disk=4096 * MIB)
        self.fake.write("proc/sys/kernel/osrelease", "4.19.0-27-amd64\n")
        load_modules(self.root)
        self.enhanceio = {"faults": {}, "controllers": [new_state(str(root), module="loaded", drain=1000)]}
        EioCli(self.enhanceio).driver.publish()

    def host_command(self, words):
        known = {"eio_cli": EioCli, "sysctl": Sysctl}
        if words[0] in known:
            return known[words[0]](self.enhanceio).answer(words[1:], "")
        return super().host_command(words) if hasattr(self, f"_{words[0]}") else Answer("")

    def converge(self, *caches, check_mode=True):
        defaults = {name: option.get("default") for name, option in argument_spec().items()}
        host = Host(HostRunner(t.cast("t.Any", self)), self.root, sleep=self._sleep)
        return HostConvergence(host, read_request({**defaults, "caches": list(caches)}), check_mode=check_mode).run()

    def _sleep(self, _seconds):
        self.kernel.tick()
        EioCli(self.enhanceio).driver.tick()

    @property
    def caches(self):
        return {*self.machine["caches"], *EioCli(self.enhanceio).driver.state["caches"]}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def item(kind, name, **further):
    fields = {**ITEM, **KINDS[kind]} if further.get("state") != "absent" else {name: ITEM[name] for name in ("origin", "cache_devices")}
    return {"type": kind, "name": name, **fields, **further}


@pytest.mark.parametrize("mode", ["writethrough", "writeback"])
@pytest.mark.parametrize(("old", "new"), [pair for pair in itertools.permutations(KINDS, 2) if pair[0] in ("enhanceio", "flashcache")])
def test_cache_of_another_type_on_devices_that_become_free(machine, old, new, mode):
    risks = {"allow_unmirrored_writeback": True, "allow_ignored_flushes": True} if mode == "writeback" else {}
    machine.converge(item(old, "old", mode=mode, **risks), check_mode=False)
    assert machine.caches == {"old"}
    caches = item(old, "old", state="absent"), item(new, "new")
    outcome = machine.converge(*caches)
    assert (outcome.undetermined, outcome.left_out, machine.caches) == ({}, {}, {"old"})
    predicted = [(step.layer, step.item, step.attribute) for step in outcome.steps]
    assert {layer for layer, _item, _attribute in predicted} == {old, new}
    assert (old, "old", "cache") in predicted
    if new in ("enhanceio", "flashcache"):
        assert [(step.layer, step.item, step.attribute) for step in machine.converge(*caches, check_mode=False).steps] == predicted
        assert machine.caches == {"new"}
        assert machine.converge(*caches).steps == []


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("kind", ["enhanceio", "flashcache"])
@pytest.mark.parametrize("beside", [True, False])
def test_cache_device_of_a_cache_of_the_same_type_that_goes(machine, kind, check_mode, beside):
    """Also where another type stays in the list, so that a type of which something goes and something stays is planned twice."""
    machine.converge(item(kind, "old"), check_mode=False)
    caches = [item(kind, "old", state="absent"), item(kind, "new", origin=SSD2)]
    further = [item("dm_cache", "third", origin="/dev/disk/by-id/ata-NONE", state="absent", expect=["missing"])] if beside else []
    outcome = machine.converge(*caches, *further, check_mode=check_mode)
    assert (outcome.undetermined, machine.caches) == ({}, {"old" if check_mode else "new"})
    changed = [step.item for step in outcome.steps if step.attribute == "cache"]
    assert changed == ["old", "new"]


def test_device_that_stays_in_use_is_not_free(machine):
    """What goes frees its own devices only."""
    machine.converge(item("enhanceio", "old"), check_mode=False)
    machine.signatures["sdc"] = [{"type": "ext4", "uuid": "1-2-3"}]
    elsewhere = item("flashcache", "new", cache_devices=[SSD2])
    outcome = machine.converge(item("enhanceio", "old", state="absent"), elsewhere)
    assert "carries a signature (ext4" in outcome.undetermined["flashcache"]


def test_nothing_is_expected_of_a_layer_that_is_planned_in_its_turn(machine):
    """The SSD is free in the plan of the whole host, and not in that of the layer alone as long as the cache on it is there."""
    machine.converge(item("flashcache", "old"), check_mode=False)
    defaults = {name: option.get("default") for name, option in argument_spec().items()}
    request = read_request({**defaults, "caches": [item("flashcache", "old", state="absent"), item("enhanceio", "new")]})
    planner = Planner(Host(HostRunner(t.cast("t.Any", machine)), machine.root, sleep=lambda seconds: None), request, check_mode=True)
    plan = planner.plan(planner.make(stages_of(request)))
    assert all(one.steps for one in plan.stages)
    with pytest.raises(Refused, match="is used by dm-0"):
        planner.again(plan.stages[1])


def step(attribute, before, after=None):
    return Step("any", "images", attribute, before, after, "", Operation())


@pytest.mark.parametrize(
    ("kind", "steps", "expected"),
    [
        # Without release_devices a cache device stays a physical volume.
        ("lvm_cache", [step("cache", {})], (set(), set(), {"dm-1"})),
        ("lvm_cache", [step("cache", {}), step("devices./dev/sdb", "vg")], (set(), {"sdb"}, {"dm-1"})),
        (
            "bcache",
            [step("cache", "dirty", "clean"), step("cache", "clean"), step("cache_set", "x"), step("cache_device", "/dev/sdb")],
            (set(), {"sdb"}, {"dm-1"}),
        ),
        ("enhanceio", [step("cache", {}), step("cache_device", "/dev/md127"), step("mirror", ["/dev/sdb", "/dev/sdc"])], ({"md127"}, {"sdb", "sdc"}, {"dm-1"})),
        ("dm_cache", [step("cache", {}), step("cache_device", "/dev/sdb"), step("mapping", "/dev/mapper/images")], ({"dm-0"}, {"sdb"}, {"dm-1"})),
        # Its mapping is in use and stays, on its origin.
        ("dm_cache", [step("cache", {}), step("cache_device", "/dev/sdb")], (set(), {"sdb"}, set())),
        # What is only changed, or wiped without a cache, frees nothing.
        ("flashcache", [step("mode", "writeback", "writethrough"), step("unit", "text")], (set(), set(), set())),
    ],
)
def test_what_steps_leave(tmp_path, kind, steps, expected):
    (tmp_path / "dev").mkdir()
    names = {"sdb": {}, "sdc": {}, "md127": {"kind": "md", "slaves": ("sdb", "sdc")}, "dm-0": {"kind": "dm", "dm_name": "images"}, "dm-1": {"kind": "lvm"}}
    for name in names:
        (tmp_path / "dev" / name).touch()
    devices = Devices([BlockDevice(name, f"/dev/{name}", f"8:{number}", **fields) for number, (name, fields) in enumerate(names.items())], tmp_path)
    leaving = left_by(kind, {"images": "/dev/dm-1"}, steps, devices)
    assert (leaving.gone, leaving.emptied, leaving.origins) == expected


def test_device_is_free_only_if_a_cache_goes():
    stays, goes = Expected(emptied=frozenset({"sdb"})), Expected(frozenset({("bcache", "images")}), emptied=frozenset({"sdc"}))
    assert together([stays], {"sda": "disabled"}) == Expected(drives={"sda": "disabled"})
    assert together([stays, goes], {}).emptied == {"sdb", "sdc"}


def test_devices_without_what_leaves():
    """A logical volume without its cache is a plain one, and a wiped device has neither holder nor signature."""
    signature = Signature("raid", "LVM2_member", "x")
    top = BlockDevice("dm-1", "/dev/dm-1", "253:1", kind="lvm", dm_targets=("cache",), holders=("dm-9",), slaves=("sda", "sdb"))
    found = [
        top,
        BlockDevice("sda", "/dev/sda", "8:0", holders=("dm-1", "dm-0"), signature=signature),
        BlockDevice("sdb", "/dev/sdb", "8:16", holders=("dm-1",), signature=signature),
        BlockDevice("dm-0", "/dev/dm-0", "253:0", kind="flashcache", slaves=("sda",)),
    ]
    leaving = Expected(frozenset({("lvm_cache", "images")}), frozenset({"dm-0"}), frozenset({"sdb"}), frozenset({"dm-1"}))
    left = {device.name: device for device in leaving.without(Devices(found))}
    assert left["dm-1"] == dataclasses.replace(top, dm_targets=("linear",), slaves=("sda",))
    assert (left["sda"].holders, left["sda"].signature) == (("dm-1",), signature)
    assert (left["sdb"].holders, left["sdb"].signature) == ((), None)
    assert "dm-0" not in left
