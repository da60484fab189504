# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a rack, what is requested, and the steps from one to the other. Everything here is pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Machine
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

LAYER = "virtual_rack"


@frozen
class RackSpec:
    """What the caller requests.

    :param state: ``started``, ``stopped``, ``restarted`` or ``absent``.
    :param machines: the whole rack as described; only needed to start.
    :param only: names of the machines that this call is about; empty means all.
    :param how: ``shutdown`` or ``power_cut``.
    :param recreate: whether a root disk or a disk may be thrown away where the description makes it necessary.
    :param image: digest of the image to start from.
    """

    state: str
    machines: tuple[Machine, ...] = ()
    only: tuple[str, ...] = ()
    how: str = "shutdown"
    recreate: bool = False
    image: str = ""


@frozen
class MachineState:
    """One machine as found. ``description`` and ``note`` are from the rack's own notes; ``paused`` for lack of space on the host."""

    description: Machine
    image: str
    running: bool
    answers: bool
    paused: bool = False
    note: t.Mapping[str, t.Any] = field(default_factory=dict)


@frozen
class RackState:
    """``exists`` distinguishes an empty rack from none."""

    exists: bool
    machines: t.Mapping[str, MachineState] = field(default_factory=dict)


def plan_rack(state: RackState, spec: RackSpec) -> list[Step]:
    """The steps from one state of a rack to another. Machines stop first, then change, then start all together."""
    names = names_meant(state, spec)
    if spec.state == "absent":
        return _plan_removal(state, spec, names)
    if spec.state == "stopped":
        return _plan_stops([name for name in names if state.machines[name].running], spec.how)
    described = {machine.name: machine for machine in spec.machines}
    if spec.state == "restarted":
        running = [name for name in names if state.machines[name].running]
        return _plan_stops(running, spec.how) + [_start(name, "stopped") for name in names]
    stops: list[str] = []
    changes: list[Step] = []
    starts: list[Step] = []
    for name in names:
        found = state.machines.get(name)
        if found is None:
            changes.append(_create(described[name]))
            starts.append(_start(name, "absent"))
            continue
        change = _plan_change(found, described[name], spec)
        changes += change
        cold = any(not isinstance(step.operation, (PlugDisk, UnplugDisk)) for step in change)
        if cold and found.running:
            stops.append(name)
        if cold or not found.running:
            starts.append(_start(name, "stopped"))
        elif not found.answers:
            before, action = ("paused", f"Continue {name}, paused because the disk of the host was full") if found.paused else ("silent", "")
            starts.append(Step(LAYER, name, "ssh", before, "answers", action or f"Wait until {name} answers ssh", WaitForLogin()))
    return _plan_stops(stops, spec.how) + changes + starts


def names_meant(state: RackState, spec: RackSpec) -> list[str]:
    known = [machine.name for machine in spec.machines] if spec.state == "started" else list(state.machines)
    if spec.state == "absent":
        # What is not there need not be removed.
        return [name for name in known if not spec.only or name in spec.only]
    if spec.state == "restarted" and not known:
        raise BadInput("There is no machine in this rack to restart: start it first, or check the name and the folder of the rack.", item="rack")
    for name in spec.only:
        if name not in known and not (spec.state == "stopped" and any(machine.name == name for machine in spec.machines)):
            listed = ", ".join(known) or "none"
            raise BadInput(f"There is no machine {name} in this rack; it has: {listed}.", item=name)
    return [name for name in known if not spec.only or name in spec.only]


def _plan_removal(state: RackState, spec: RackSpec, names: t.Sequence[str]) -> list[Step]:
    steps = [
        Step(LAYER, name, "state", "started" if state.machines[name].running else "stopped", "absent", f"Destroy {name} with its disks", DestroyMachine())
        for name in names
    ]
    if state.exists and len(names) == len(state.machines) and (names or not spec.only):
        steps.append(Step(LAYER, "rack", "folder", "present", "absent", "Remove the folder of the rack", RemoveFolder()))
    return steps


def _plan_stops(names: t.Sequence[str], how: str) -> list[Step]:
    verb, operation = ("Cut the power of", CutPower()) if how == "power_cut" else ("Shut down", ShutDown())
    return [Step(LAYER, name, "state", "started", "stopped", f"{verb} {name}", operation) for name in names]


def _start(name: str, before: str) -> Step:
    return Step(LAYER, name, "state", before, "started", f"Start {name}", StartMachine())


def _create(machine: Machine) -> Step:
    return Step(LAYER, machine.name, "description", None, machine.as_data(), f"Create {machine.name}", CreateMachine(machine))


def _plan_change(found: MachineState, machine: Machine, spec: RackSpec) -> list[Step]:
    """The steps that make a machine that exists fit a description; empty if it does."""
    steps: list[Step] = []
    name = machine.name
    if found.image != spec.image:
        if not spec.recreate:
            raise Refused(
                f"{name} was made from another image ({found.image[:16]}) than the one now wanted ({spec.image[:16]}):"
                " set recreate to give it a new root disk, or destroy the rack.",
                item=name,
            )
        steps.append(Step(LAYER, name, "image", found.image, spec.image, f"Recreate the root disk of {name}", RecreateRoot()))
    new = {disk.name: disk for disk in machine.disks}
    lost = [disk for disk in found.description.disks if disk.name not in new or new[disk.name].size != disk.size]
    if lost and not spec.recreate:
        disk = lost[0]
        change = f"would change its size from {format_size(disk.size)} to {format_size(new[disk.name].size)}" if disk.name in new else "is no longer described"
        raise Refused(f"{name}: the disk {disk.name} {change}, and its contents would be lost: set recreate to allow that.", item=name)
    for disk in lost:
        after = new[disk.name].size if disk.name in new else None
        steps.append(Step(LAYER, name, f"disk {disk.name}", disk.size, after, f"Delete the disk {disk.name} of {name}", DropDisk(disk.file)))
    live = _plan_plugging(found, machine) if not steps else []
    if live:
        return live
    if found.description != machine:
        before, after = found.description.as_data(), machine.as_data()
        keys = [key for key in after if before[key] != after[key]]
        action = f"Change {', '.join(keys)} of {name}"
        steps.append(Step(LAYER, name, "description", {key: before[key] for key in keys}, {key: after[key] for key in keys}, action, CreateMachine(machine)))
    return steps


def _plan_plugging(found: MachineState, machine: Machine) -> list[Step]:
    """The steps for a running machine where nothing differs but which hot-pluggable disks are plugged in; else none."""
    old, new = found.description, machine
    if not found.running or dataclasses.replace(old, disks=()) != dataclasses.replace(new, disks=()) or len(old.disks) != len(new.disks):
        return []
    steps: list[Step] = []
    for before, after in zip(old.disks, new.disks):
        if before == after:
            continue
        if not after.hot_pluggable or dataclasses.replace(before, attached=after.attached) != after:
            return []
        action = f"Attach the disk {after.name} to {new.name}" if after.attached else f"Detach the disk {after.name} from {new.name}"
        operation = PlugDisk(after) if after.attached else UnplugDisk(after)
        steps.append(Step(LAYER, new.name, f"disk {after.name} attached", before.attached, after.attached, action, operation))
    return steps
