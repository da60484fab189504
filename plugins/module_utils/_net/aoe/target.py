# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``aoe_target``: what vblade serves to AoE initiators, now and after the next boot.

Sources: vblade(8), vblade-persistence(5) and the unit ``vblade@.service`` of Debian: one file of ``/etc/vblade.conf.d`` for each
instance. vblade reads the MTU of its interface at each query and sizes its socket when it starts, as ``-b`` frames of that MTU
(``dial`` of linux.c); the kernel gives twice what ``net.core.rmem_max`` lets it have (socket(7)).

Which AoE targets would lose writes that they have acknowledged.

vblade takes a flush, answers it and does nothing (``atacmd`` of ata.c). So what an initiator has synced is worth what vblade made
of the write itself, as counted with ``/sys/block/*/stat``: with ``-s`` each write is followed by a flush of the drive, with ``-d``
alone none is, and without both even the write comes later.
"""

from __future__ import annotations

import dataclasses
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.operations import RunCommand, WriteFile
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import AoeExport, running_exports
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.output import parse_packet_sockets
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import AOE_TARGET_OPTIONS, AoeTargetSpec, AoeTargetsSpec, read_spec
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.vblade_files import FOLDER, VbladeFile, instance_of, read_files, render, unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import DURABLE, Stack, read_stack
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import NO_DRIVES, volatile_below

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices


def swallowed_by(
    runner: Runner,
    specs: t.Sequence[AoeTargetSpec],
    root: Path = Path("/"),
    protected: t.Sequence[str] = (),
    flushed: t.Sequence[str] = (),
    drives: t.Mapping[str, str] = NO_DRIVES,
) -> dict[str, list[str]]:
    """By item, what would lose acknowledged writes, each as a clause; the stack is read once, and only on demand.

    :param drives: what is planned for them, as :meth:`Stack.with_drives` takes it.
    """
    if not specs:
        return {}
    stack = _without_exports(read_stack(runner, root, protected, flushed=flushed).with_drives(drives))
    return {spec.item: judge(stack, spec) for spec in specs}


def judge(stack: Stack, spec: AoeTargetSpec) -> list[str]:
    """The clauses of one target; ``stack`` is that of the host without its targets."""
    if not spec.sync and not spec.direct:
        return ["a write waits in the page cache of this host when it is acknowledged (neither direct nor sync)"]
    if not spec.sync:
        return volatile_below(stack, spec.device)
    try:
        verdict = stack.verdict(stack.devices.resolve(spec.device))
    except DeviceMissing:
        return []
    return [] if verdict.verdict == DURABLE else [verdict.reason[0].lower() + verdict.reason[1:].rstrip(".")]


def _without_exports(stack: Stack) -> Stack:
    """A target that runs with other options does not show the effect of the requested one."""
    facts = {name: [one for one in found if "aoe_target" not in one.state] for name, found in stack.facts.items()}
    return dataclasses.replace(stack, facts=facts)


__all__ = ["AOE_TARGET_OPTIONS", "AoeTargetLayer", "AoeTargetsSpec", "AoeTargetsState", "read_spec"]

LAYER = "aoe_target"
SYSCTL_FILE = "etc/sysctl.d/90-cachefleet-aoe-target.conf"
_RMEM_MAX = "proc/sys/net/core/rmem_max"
_TEMPLATES = ("etc/systemd/system/vblade@.service", "usr/lib/systemd/system/vblade@.service", "lib/systemd/system/vblade@.service")
#: How long a target may take to start, and how long it must have run to count. Seconds.
PATIENCE = 5.0
SETTLED = 0.5

Swallowed = t.Callable[[t.Sequence[AoeTargetSpec], t.Mapping[str, str]], t.Mapping[str, t.Sequence[str]]]


@frozen
class RestartTarget(Operation):
    """Start an instance, or start it again."""

    instance: str

    def carry_out(self, layer: AoeTargetLayer, step: Step) -> None:
        unit = unit_of(self.instance)
        layer.runner.run(["systemctl", "restart", unit], item=step.item)
        end = layer.clock() + PATIENCE
        while layer.clock() < end:
            pid = layer.units([self.instance]).get(unit, {}).get("MainPID", "0")
            # First systemd forks, then ionice, then it is vblade; and one that cannot open its device has gone a moment later.
            if any(str(export.pid) == pid for export in running_exports(layer.root)):
                layer.sleep(SETTLED)
                return
            layer.sleep(0.1)


@frozen
class RemoveTarget(Operation):
    """Stop an instance, now and at boot, and remove its configuration file."""

    instance: str

    def carry_out(self, layer: AoeTargetLayer, step: Step) -> None:
        layer.runner.run(["systemctl", "disable", "--now", unit_of(self.instance)], ok=None, item=step.item)
        replace_file(layer.root / _configuration_of(self.instance), "")
        layer.runner.run(["systemctl", "daemon-reload"], item=step.item)


def _configuration_of(instance: str) -> str:
    return f"{FOLDER}/{instance}.conf"


@frozen
class TargetState:
    """One target as it was found.

    :param file: its configuration file, if there is one; ``instance`` names it, or the one that will be made.
    :param enabled: whether it starts at boot; ``active`` whether systemd runs it now.
    :param running: what runs as its unit; ``strangers``: process ids of others that serve the same address on the same interface.
    :param socket: bytes of its socket as the kernel counts them; None if that cannot be read.
    :param mtu: of its interface; None if that is not there.
    :param uses: what this host does with the device, each as the rest of a sentence.
    :param no_device: why the device cannot be served, a whole sentence.
    :param swallowed: what would lose acknowledged writes in a power cut, each as a clause.
    """

    item: str
    instance: str
    file: VbladeFile | None = None
    enabled: bool = False
    active: bool = False
    running: AoeExport | None = None
    strangers: tuple[int, ...] = ()
    socket: int | None = None
    mtu: int | None = None
    uses: tuple[str, ...] = ()
    no_device: str = ""
    swallowed: tuple[str, ...] = ()


@frozen
class AoeTargetsState:
    """All targets of the list. ``rmem_max`` in bytes; ``sysctl_file``: the text of our file."""

    targets: t.Mapping[str, TargetState] = field(default_factory=dict)
    rmem_max: int = 0
    sysctl_file: str = ""
    has_unit: bool = True

    def after_links(self, mtus: t.Mapping[str, int], spec: AoeTargetsSpec) -> AoeTargetsState:
        """The same when the interfaces have other MTUs, by their names: what is planned before the links are set."""
        interfaces = {one.item: one.interface for one in spec.targets}
        changed = {
            item: dataclasses.replace(state, mtu=mtus[interfaces[item]]) if interfaces.get(item) in mtus else state for item, state in self.targets.items()
        }
        return dataclasses.replace(self, targets=changed)


class AoeTargetLayer(Layer[AoeTargetsState, AoeTargetsSpec]):
    """The AoE targets of one host that are in the list; others are not touched.

    :param protected: serials, WWNs or models of drives whose cache is known to survive a power cut; ``flushed``: of virtual disks whose flushes reach media.
    :param swallowed: what of targets loses acknowledged writes, by item; it is given what is planned for drives.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        spec: AoeTargetsSpec,
        root: Path = Path("/"),
        *,
        protected: t.Sequence[str] = (),
        flushed: t.Sequence[str] = (),
        swallowed: Swallowed | None = None,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(runner, spec, root, clock=clock, sleep=sleep)
        self.swallowed = swallowed or (lambda specs, drives: swallowed_by(runner, specs, root, protected, flushed, drives))

    def read(self, drives: t.Mapping[str, str] = NO_DRIVES) -> AoeTargetsState:
        """One ``systemctl``, one ``ss`` where something runs, one ``udevadm``; and the stack, where a target may lose writes."""
        targets = self.spec.targets
        if not targets:
            return AoeTargetsState(rmem_max=self._rmem_max(), sysctl_file=read_file(self.root / SYSCTL_FILE))
        files = read_files(self.root)
        instances = {spec.item: instance_of(files, spec.shelf, spec.slot, spec.interface) for spec in targets}
        units = self.units(sorted(set(instances.values())))
        exports = running_exports(self.root)
        sockets = self._sockets() if exports else {}
        served = [spec for spec in targets if spec.present]
        devices = read_devices(self.runner, self.root) if served else None
        swallowed = self.swallowed([spec for spec in served if not spec.allow_ignored_flushes and not spec.read_only], drives)
        states = {}
        for spec in targets:
            unit = units.get(unit_of(instances[spec.item]), {})
            same = [one for one in exports if (one.shelf, one.slot, one.interface) == (spec.shelf, spec.slot, spec.interface)]
            running = next((one for one in exports if str(one.pid) == unit.get("MainPID")), None)
            uses, no_device = _read_device(devices, spec) if devices is not None and spec.present else ((), "")
            states[spec.item] = TargetState(
                item=spec.item,
                instance=instances[spec.item],
                file=files.get(instances[spec.item]),
                enabled=unit.get("UnitFileState") == "enabled",
                active=unit.get("ActiveState") == "active",
                running=running,
                strangers=tuple(one.pid for one in same if running is None or one.pid != running.pid),
                socket=sockets.get(running.pid) if running is not None else None,
                mtu=read_mtu(self.root, spec.interface),
                uses=uses,
                no_device=no_device,
                swallowed=tuple(swallowed.get(spec.item, ())),
            )
        return AoeTargetsState(states, self._rmem_max(), read_file(self.root / SYSCTL_FILE), any((self.root / place).exists() for place in _TEMPLATES))

    def plan(self, state: AoeTargetsState) -> list[Step]:
        """First the room for sockets, then target by target: those that go before those that come.

        :raises BadInput: for a device or an interface that is invalid; Refused, for what would lose data.
        """
        steps = list(_plan_buffer(state, self.spec))
        if any(spec.present for spec in self.spec.targets) and not state.has_unit:
            raise ToolMissing(
                "vblade with its unit vblade@.service is missing on this host: install the package vblade (Debian, Ubuntu), or give systemd such a unit.",
                item="vblade",
            )
        rmem_max = max(state.rmem_max, self.spec.receive_buffer or 0)
        for spec in sorted(self.spec.targets, key=lambda one: one.present):
            found = state.targets[spec.item]
            steps += _plan_target(found, spec, rmem_max) if spec.present else _plan_removal(found, spec)
        return steps

    def facts(self, state: AoeTargetsState) -> dict[str, t.Any]:
        """What the module returns about the targets of the list."""
        targets = [
            {
                "name": target.item,
                "instance": target.instance,
                "device": target.running.path if target.running else None,
                "running": target.running is not None,
                "enabled": target.enabled,
                "direct": target.running.direct if target.running else None,
                "sync": target.running.sync if target.running else None,
                "read_only": target.running.read_only if target.running else None,
                "socket": target.socket,
            }
            for target in state.targets.values()
        ]
        return {"aoe_targets": targets}

    def check_settled(self, state: AoeTargetsState) -> None:
        """Targets that run and would lose writes, and sockets that hold fewer frames than they should."""
        for spec in self.spec.targets:
            target = state.targets[spec.item]
            if spec.present and target.swallowed:
                self.warn(
                    f"{spec.item}: a power failure would lose acknowledged writes, because vblade passes no flush down and {' and '.join(target.swallowed)}:"
                    " set sync: true for it, or turn that cache off (drive_write_cache)."
                )
            if spec.present and target.mtu and state.rmem_max < spec.buffers * target.mtu:
                self.warn(
                    f"{spec.item}: its socket holds {state.rmem_max // target.mtu} frames of the MTU {target.mtu} and not {spec.buffers}, so that frames are"
                    f" lost and sent again: set aoe_receive_buffer to {spec.buffers * target.mtu} or more."
                )

    # -- reading

    def _rmem_max(self) -> int:
        text = read_file(self.root / _RMEM_MAX).strip()
        return int(text) if text.isdigit() else 0

    def units(self, instances: t.Sequence[str]) -> dict[str, dict[str, str]]:
        words = ["systemctl", "show", "--property=Id,ActiveState,MainPID,UnitFileState", *map(unit_of, instances)]
        blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in self.runner.run(words, ok=None).stdout.split("\n\n")]
        return {block["Id"]: block for block in blocks if block.get("Id")}

    def _sockets(self) -> dict[int, int]:
        # Without ss it cannot be read, and nothing is restarted for it.
        return parse_packet_sockets(self.runner.run(["ss", "--packet", "--memory", "--processes"], ok=None).stdout) if self.runner.has("ss") else {}


def _read_device(devices: Devices, spec: AoeTargetSpec) -> tuple[tuple[str, ...], str]:
    """What this host does with a device, and why it cannot be served at all.

    :raises DeviceMissing: if it is not there.
    """
    device = devices.resolve(spec.device, spec.item)
    if not is_stable(spec.device):
        instead = f"use {device.stable_path}, which is the same device" if device.stable_path else "give it a serial number or put LVM or MD on it"
        return (), f"{spec.item}: {spec.device} may be another device after the next reboot: {instead}."
    rivals = [other for other in devices.claimants(spec.device) if other.name not in {device.name, *(one.name for one in devices.parents(device))}]
    if rivals:
        return (), f"{spec.item}: {spec.device} is claimed by {device.path} and by {', '.join(one.path for one in rivals)}: use a path of one of them only."
    return tuple(use for one in (device, *devices.children(device)) for use in _uses(one, device)), ""


def _uses(device: BlockDevice, served: BlockDevice) -> t.Iterator[str]:
    where = "" if device is served else f"{device.path} on it "
    if device.mountpoints:
        yield f"{where}is mounted on {device.mountpoints[0]}"
    if device.swap:
        yield f"{where}is swap space"
    if device is served and device.holders:
        yield f"is used by {', '.join(device.holders)}"
    elif device.kind == "partition" and device.holders:
        yield f"{where}is used by {', '.join(device.holders)}"


def _plan_buffer(state: AoeTargetsState, spec: AoeTargetsSpec) -> t.Iterator[Step]:
    size = spec.receive_buffer
    if not size:
        return
    text = f"# Written by cachefleet.storage.storage_network: change the inventory, not this file.\nnet.core.rmem_max = {size}\n"
    if state.sysctl_file != text:
        yield Step(LAYER, "rmem_max", "boot_value", state.sysctl_file or None, text, f"Write /{SYSCTL_FILE}", WriteFile(SYSCTL_FILE, text))
    # Other software may have requested more: it is never lowered.
    if state.rmem_max < size:
        yield Step(
            LAYER,
            "rmem_max",
            "value",
            state.rmem_max,
            size,
            f"Raise net.core.rmem_max to {size}",
            RunCommand(("sysctl", "-q", "-w", f"net.core.rmem_max={size}")),
        )


def _plan_target(state: TargetState, spec: AoeTargetSpec, rmem_max: int) -> t.Iterator[Step]:
    export = spec.as_export()
    running = state.running is not None and dataclasses.replace(state.running, pid=0) == export
    _check(state, spec, running)
    text = render(export, state.file)
    found = state.file.text if state.file is not None else None
    if found != text:
        yield Step(
            LAYER, spec.item, "configuration", found, text, f"Write /{_configuration_of(state.instance)}", WriteFile(_configuration_of(state.instance), text)
        )
    if not state.enabled:
        yield Step(
            LAYER,
            spec.item,
            "boot",
            "disabled",
            "enabled",
            f"Start {unit_of(state.instance)} at boot",
            RunCommand(("systemctl", "enable", unit_of(state.instance))),
        )
    if not state.active or not running:
        serve = f"Serve {spec.device} as {spec.address} on {spec.interface}"
        pause = ", with a new vblade: I/O of its initiators pauses meanwhile" if state.running is not None else ""
        before = " ".join(state.running.words) if state.running is not None else None
        yield Step(LAYER, spec.item, "running", before, " ".join(export.words), f"{serve}{pause}", RestartTarget(state.instance))
        return
    room = 2 * min(spec.buffers * (state.mtu or 0), rmem_max)
    if state.socket is not None and state.socket < room:
        action = (
            f"Start the vblade of {spec.address} on {spec.interface} again, for {room} bytes of socket instead of {state.socket}: I/O of its initiators pauses"
        )
        yield Step(LAYER, spec.item, "socket", state.socket, room, action, RestartTarget(state.instance))


def _plan_removal(state: TargetState, spec: AoeTargetSpec) -> t.Iterator[Step]:
    if state.strangers:
        raise Refused(_about_strangers(state, spec), item=spec.item)
    if state.file is not None or state.running is not None or state.enabled:
        found = state.file.text if state.file is not None else "running"
        yield Step(LAYER, spec.item, "configuration", found, None, f"Stop serving {spec.address} on {spec.interface}", RemoveTarget(state.instance))


def _check(state: TargetState, spec: AoeTargetSpec, running: bool) -> None:
    if state.mtu is None:
        raise BadInput(f"{spec.item}: there is no interface {spec.interface} on this host: see ip link.", item=spec.item)
    if state.no_device:
        raise BadInput(state.no_device, item=spec.item)
    if state.strangers:
        raise Refused(_about_strangers(state, spec), item=spec.item)
    # What is served already and mounted has been so before this run: its own concern, and stopping it here would not help.
    if state.uses and not spec.read_only and not running:
        raise Refused(
            f"{spec.item}: {spec.device} {' and '.join(state.uses)}: two hosts that write to it would destroy its data. Free it first; no option allows it.",
            item=spec.item,
        )
    if state.swallowed and not running:
        raise Refused(
            f"{spec.item}: a power failure would lose what its initiators have synced, because vblade passes no flush down and {' and '.join(state.swallowed)}."
            " Set sync: true for it, turn that cache off (drive_write_cache), or set allow_ignored_flushes: true for this target.",
            item=spec.item,
        )


def _about_strangers(state: TargetState, spec: AoeTargetSpec) -> str:
    pids = " and ".join(map(str, state.strangers))
    return (
        f"{spec.item}: process {pids} serves {spec.address} on {spec.interface} and was not started by {unit_of(state.instance)}: two targets with one address"
        " would mix up their data. End it first."
    )
