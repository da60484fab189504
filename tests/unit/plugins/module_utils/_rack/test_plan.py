# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.operations import (
    CreateMachine,
    CutPower,
    DestroyMachine,
    DropDisk,
    PlugDisk,
    RecreateRoot,
    RemoveFolder,
    ShutDown,
    StartMachine,
    UnplugDisk,
    WaitForLogin,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.plan import MachineState, RackSpec, RackState, plan_rack

WORDS = {
    CreateMachine: "create",
    RecreateRoot: "new_root",
    DropDisk: "drop_disk",
    PlugDisk: "plug",
    UnplugDisk: "unplug",
    StartMachine: "start",
    WaitForLogin: "wait",
    ShutDown: "shutdown",
    CutPower: "power_cut",
    DestroyMachine: "destroy",
    RemoveFolder: "remove",
}


def machines(*names, **more):
    return tuple(describe_machines("demo", [{"name": name, **more} for name in names]))


def found(machine, *, running=True, answers=True, image="one"):
    return MachineState(machine, image, running, running and answers)


def present(*states):
    return RackState(True, {state.description.name: state for state in states})


def operations(steps):
    return [f"{WORDS[type(step.operation)]} {step.item}" for step in steps]


def steps_of(states, *wanted, state="started", image="one", **spec):
    """The steps from machines as found to these machines."""
    return plan_rack(present(*states), RackSpec(state, wanted, image=image, **spec))


def planned(states, *wanted, **spec):
    return operations(steps_of(states, *wanted, **spec))


def with_disk(**disk):
    """A machine with one disk, and one without for no arguments."""
    return machines("a", disks=[{"name": "d0", "kind": "virtio", "size": "1G", **disk}] if disk else [])[0]


ONE, TWO = machines("a", "b")


def test_all_machines_are_created_before_any_is_started():
    assert operations(plan_rack(RackState(False), RackSpec("started", (ONE, TWO), image="one"))) == ["create a", "create b", "start a", "start b"]


@pytest.mark.parametrize(
    ("states", "spec", "expected"),
    [
        # Nothing to do; a machine that is stopped is started, one that does not answer waited for.
        ([found(ONE), found(TWO)], {}, []),
        ([found(ONE, running=False), found(TWO, answers=False)], {}, ["start a", "wait b"]),
        ([found(ONE), found(TWO, running=False)], {"state": "stopped"}, ["shutdown a"]),
        ([found(ONE), found(TWO, running=False)], {"state": "stopped", "how": "power_cut"}, ["power_cut a"]),
        ([found(ONE), found(TWO, running=False)], {"state": "stopped", "only": ("b",)}, []),
        # What was stopped is started, too.
        ([found(ONE), found(TWO, running=False)], {"state": "restarted"}, ["shutdown a", "start a", "start b"]),
        # The folder goes with the last machine.
        ([found(ONE), found(TWO)], {"state": "absent"}, ["destroy a", "destroy b", "remove rack"]),
        ([found(ONE), found(TWO)], {"state": "absent", "only": ("a",)}, ["destroy a"]),
        ([], {"state": "absent"}, ["remove rack"]),
    ],
)
def test_steps_to_a_state(states, spec, expected):
    assert planned(states, ONE, TWO, **spec) == expected


def test_unlisted_machine_is_not_touched():
    assert planned([found(ONE), found(TWO)], ONE) == []


def test_removing_a_missing_rack_plans_nothing():
    assert plan_rack(RackState(False), RackSpec("absent")) == []


def test_continuing_a_machine_is_announced():
    (step,) = steps_of([dataclasses.replace(found(ONE, answers=False), paused=True)], ONE)
    assert (step.before, step.after, step.action) == ("paused", "answers", "Continue a, paused because the disk of the host was full")


@pytest.mark.parametrize(("how", "first"), [("shutdown", "shutdown a"), ("power_cut", "power_cut a")])
def test_changed_description_plans_stop_change_start(how, first):
    steps = steps_of([found(ONE)], *machines("a", memory="1G"), how=how)
    assert operations(steps) == [first, "create a", "start a"]
    assert (steps[1].before, steps[1].after) == ({"memory": 768 * 1024**2}, {"memory": 1024**3})


def test_new_disk_requires_no_permission_but_removal_and_resize_do():
    none, small, large = with_disk(), with_disk(size="1G"), with_disk(size="2G")
    assert planned([found(none)], small) == ["shutdown a", "create a", "start a"]
    with pytest.raises(Refused, match="would change its size from 1 GiB to 2 GiB, and its contents would be lost: set recreate"):
        planned([found(small)], large)
    with pytest.raises(Refused, match="is no longer described"):
        planned([found(small)], none)
    assert planned([found(small)], large, recreate=True) == ["shutdown a", "drop_disk a", "create a", "start a"]


@pytest.mark.parametrize(("kind", "requested"), [("nvme", ["unplug a"]), ("sata_ssd", ["shutdown a", "create a", "start a"])])
def test_detaching_a_disk_stops_only_machines_without_hot_plug(kind, requested):
    old, new = with_disk(kind=kind), with_disk(kind=kind, attached=False)
    assert planned([found(old)], new) == requested
    assert planned([found(old, running=False)], new) == ["create a", "start a"]


def test_detaching_a_disk_with_another_change_plans_one_stop():
    new = dataclasses.replace(with_disk(kind="nvme", attached=False), memory=1024**3)
    assert planned([found(with_disk(kind="nvme"))], new) == ["shutdown a", "create a", "start a"]


def test_changed_image_requires_permission():
    with pytest.raises(Refused, match="was made from another image"):
        planned([found(ONE)], ONE, image="two")
    assert planned([found(ONE)], ONE, image="two", recreate=True) == ["shutdown a", "new_root a", "start a"]


@pytest.mark.parametrize("state", ["started", "stopped", "restarted"])
def test_unknown_machine_is_an_error(state):
    with pytest.raises(BadInput, match="There is no machine z in this rack; it has: a"):
        planned([found(ONE)], ONE, state=state, only=("z",))


def test_restarting_a_missing_rack_is_an_error():
    with pytest.raises(BadInput, match="no machine in this rack to restart"):
        plan_rack(RackState(False), RackSpec("restarted"))
