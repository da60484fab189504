# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.plan import (
    CreateMachine,
    CutPower,
    DestroyMachine,
    DropDisk,
    MachineState,
    PlugDisk,
    RackSpec,
    RackState,
    RecreateRoot,
    RemoveFolder,
    ShutDown,
    StartMachine,
    UnplugDisk,
    WaitForLogin,
    plan_rack,
)

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


def test_all_machines_are_created_before_any_is_started():
    steps = plan_rack(RackState(False), RackSpec("started", machines("a", "b"), image="one"))
    assert operations(steps) == ["create a", "create b", "start a", "start b"]


def test_converged_rack_plans_nothing():
    one, two = machines("a", "b")
    assert plan_rack(present(found(one), found(two)), RackSpec("started", (one, two), image="one")) == []


def test_stopped_machine_is_started_and_unresponsive_one_awaited():
    one, two = machines("a", "b")
    steps = plan_rack(present(found(one, running=False), found(two, answers=False)), RackSpec("started", (one, two), image="one"))
    assert operations(steps) == ["start a", "wait b"]


def test_unlisted_machine_is_not_touched():
    one, two = machines("a", "b")
    assert plan_rack(present(found(one), found(two)), RackSpec("started", (one,), image="one")) == []


@pytest.mark.parametrize(("how", "first"), [("shutdown", "shutdown a"), ("power_cut", "power_cut a")])
def test_changed_description_plans_stop_change_start(how, first):
    (old,), (new,) = machines("a"), machines("a", memory="1G")
    steps = plan_rack(present(found(old)), RackSpec("started", (new,), image="one", how=how))
    assert operations(steps) == [first, "create a", "start a"]
    assert steps[1].before == {"memory": 768 * 1024**2}
    assert steps[1].after == {"memory": 1024**3}


def test_new_disk_requires_no_permission_but_removal_and_resize_do():
    none, small, large = (machines("a", disks=disks)[0] for disks in ([], [disk("1G")], [disk("2G")]))
    assert operations(plan_rack(present(found(none)), RackSpec("started", (small,), image="one"))) == ["shutdown a", "create a", "start a"]
    with pytest.raises(Refused, match="would change its size from 1 GiB to 2 GiB, and its contents would be lost: set recreate"):
        plan_rack(present(found(small)), RackSpec("started", (large,), image="one"))
    with pytest.raises(Refused, match="is no longer described"):
        plan_rack(present(found(small)), RackSpec("started", (none,), image="one"))
    steps = plan_rack(present(found(small)), RackSpec("started", (large,), image="one", recreate=True))
    assert operations(steps) == ["shutdown a", "drop_disk a", "create a", "start a"]


def disk(size):
    return {"name": "d0", "kind": "virtio", "size": size}


@pytest.mark.parametrize(("kind", "requested"), [("nvme", ["unplug a"]), ("sata_ssd", ["shutdown a", "create a", "start a"])])
def test_detaching_a_disk_stops_only_machines_without_hot_plug(kind, requested):
    (old,), (new,) = (machines("a", disks=[{"name": "d0", "kind": kind, "size": "1G", "attached": attached}]) for attached in (True, False))
    assert operations(plan_rack(present(found(old)), RackSpec("started", (new,), image="one"))) == requested
    assert operations(plan_rack(present(found(old, running=False)), RackSpec("started", (new,), image="one"))) == ["create a", "start a"]


def test_detaching_a_disk_with_another_change_plans_one_stop():
    (old,), (new,) = (
        machines("a", memory=memory, disks=[{"name": "d0", "kind": "nvme", "size": "1G", "attached": a}]) for memory, a in (("768", True), ("1G", False))
    )
    assert operations(plan_rack(present(found(old)), RackSpec("started", (new,), image="one"))) == ["shutdown a", "create a", "start a"]


def test_changed_image_requires_permission():
    (one,) = machines("a")
    with pytest.raises(Refused, match="was made from another image"):
        plan_rack(present(found(one)), RackSpec("started", (one,), image="two"))
    assert operations(plan_rack(present(found(one)), RackSpec("started", (one,), image="two", recreate=True))) == ["shutdown a", "new_root a", "start a"]


def test_stopped_stops_running_machines():
    one, two = machines("a", "b")
    state = present(found(one), found(two, running=False))
    assert operations(plan_rack(state, RackSpec("stopped"))) == ["shutdown a"]
    assert operations(plan_rack(state, RackSpec("stopped", how="power_cut"))) == ["power_cut a"]
    assert plan_rack(state, RackSpec("stopped", only=("b",))) == []


def test_restarted_also_starts_stopped_machines():
    one, two = machines("a", "b")
    assert operations(plan_rack(present(found(one), found(two, running=False)), RackSpec("restarted"))) == ["shutdown a", "start a", "start b"]


def test_removing_all_machines_removes_the_folder_and_one_does_not():
    one, two = machines("a", "b")
    state = present(found(one), found(two))
    assert operations(plan_rack(state, RackSpec("absent"))) == ["destroy a", "destroy b", "remove rack"]
    assert operations(plan_rack(state, RackSpec("absent", only=("a",)))) == ["destroy a"]
    assert plan_rack(RackState(False), RackSpec("absent")) == []
    assert operations(plan_rack(RackState(True), RackSpec("absent"))) == ["remove rack"]


@pytest.mark.parametrize("state", ["started", "stopped", "restarted"])
def test_unknown_machine_is_an_error(state):
    (one,) = machines("a")
    with pytest.raises(BadInput, match="There is no machine z in this rack; it has: a"):
        plan_rack(present(found(one)), RackSpec(state, (one,), only=("z",), image="one"))


def test_restarting_a_missing_rack_is_an_error():
    with pytest.raises(BadInput, match="no machine in this rack to restart"):
        plan_rack(RackState(False), RackSpec("restarted"))
