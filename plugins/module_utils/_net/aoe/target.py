# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``aoe_target``: what vblade serves to AoE initiators, now and after the next boot.

Sources: vblade(8), vblade-persistence(5) and the unit ``vblade@.service`` of Debian: one file of ``/etc/vblade.conf.d`` for each
instance. vblade asks its interface for the MTU at each query and sizes its socket when it starts, as ``-b`` frames of that MTU
(``dial`` of linux.c); the kernel gives twice what ``net.core.rmem_max`` lets it have (socket(7)).
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_exports import AoeExport, running_exports
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_sysfs import read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.output import parse_packet_sockets
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_safety import swallowed_by
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import AOE_TARGET_OPTIONS, AoeTargetSpec, AoeTargetsSpec, read_wanted
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.vblade_files import FOLDER, VbladeFile, instance_of, read_files, render, unit_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

__all__ = ["AOE_TARGET_OPTIONS", "AoeTargetLayer", "AoeTargetsSpec", "AoeTargetsState", "read_wanted"]

LAYER = "aoe_target"
SYSCTL_FILE = "etc/sysctl.d/90-cachefleet-aoe-target.conf"
_RMEM_MAX = "proc/sys/net/core/rmem_max"
_TEMPLATES = ("etc/systemd/system/vblade@.service", "usr/lib/systemd/system/vblade@.service", "lib/systemd/system/vblade@.service")
#: How long a target may take to start, and how long it must have run to count. Seconds.
PATIENCE = 5.0
SETTLED = 0.5

Swallowed = t.Callable[[t.Sequence[AoeTargetSpec]], t.Mapping[str, t.Sequence[str]]]


@dataclass(frozen=True)
class TargetState:
    """One target as it was found.

    :param file: its configuration file, if there is one; ``instance`` names it, or the one that will be made.
    :param enabled: whether it starts at boot; ``active`` whether systemd runs it now.
    :param running: what runs as its unit; ``strangers``: process ids of others that serve the same address on the same interface.
    :param socket: bytes of its socket as the kernel counts them; None if that cannot be told.
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


@dataclass(frozen=True)
class AoeTargetsState:
    """All targets of the list. ``rmem_max`` in bytes; ``sysctl_file``: the text of our file."""

    targets: t.Mapping[str, TargetState] = field(default_factory=dict)
    rmem_max: int = 0
    sysctl_file: str = ""
    has_unit: bool = True

    def after_links(self, mtus: t.Mapping[str, int], wanted: AoeTargetsSpec) -> AoeTargetsState:
        """The same when the interfaces have other MTUs, by their names: what is planned before the links are set."""
        interfaces = {wish.item: wish.interface for wish in wanted.targets}
        changed = {
            item: dataclasses.replace(state, mtu=mtus[interfaces[item]]) if interfaces.get(item) in mtus else state for item, state in self.targets.items()
        }
        return dataclasses.replace(self, targets=changed)


class AoeTargetLayer(Layer[AoeTargetsState, AoeTargetsSpec]):
    """The AoE targets of one host that are in the list; others are left in peace.

    :param wanted: the same that is planned.
    :param protected: serials, WWNs or models of drives whose cache is known to survive a power cut.
    :param swallowed: what of targets loses acknowledged writes, by item.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        wanted: AoeTargetsSpec,
        root: Path = Path("/"),
        *,
        protected: t.Sequence[str] = (),
        swallowed: Swallowed | None = None,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.runner = runner
        self.wanted = wanted
        self.root = root
        self.swallowed = swallowed or (lambda wishes: swallowed_by(runner, wishes, root, protected))
        self.clock = clock
        self.sleep = sleep

    def read(self) -> AoeTargetsState:
        """One ``systemctl``, one ``ss`` where something runs, one ``udevadm``; and the stack, where a target may lose writes."""
        targets = self.wanted.targets
        if not targets:
            return AoeTargetsState(rmem_max=self._rmem_max(), sysctl_file=read_file(self.root / SYSCTL_FILE))
        files = read_files(self.root)
        instances = {wish.item: instance_of(files, wish.shelf, wish.slot, wish.interface) for wish in targets}
        units = self._units(sorted(set(instances.values())))
        exports = running_exports(self.root)
        sockets = self._sockets() if exports else {}
        present = [wish for wish in targets if wish.present]
        devices = read_devices(self.runner, self.root) if present else None
        swallowed = self.swallowed([wish for wish in present if not wish.allow_ignored_flushes and not wish.read_only])
        states = {}
        for wish in targets:
            unit = units.get(unit_of(instances[wish.item]), {})
            same = [one for one in exports if (one.shelf, one.slot, one.interface) == (wish.shelf, wish.slot, wish.interface)]
            running = next((one for one in exports if str(one.pid) == unit.get("MainPID")), None)
            uses, no_device = _look_at_device(devices, wish) if devices is not None and wish.present else ((), "")
            states[wish.item] = TargetState(
                item=wish.item,
                instance=instances[wish.item],
                file=files.get(instances[wish.item]),
                enabled=unit.get("UnitFileState") == "enabled",
                active=unit.get("ActiveState") == "active",
                running=running,
                strangers=tuple(one.pid for one in same if running is None or one.pid != running.pid),
                socket=sockets.get(running.pid) if running is not None else None,
                mtu=read_mtu(self.root, wish.interface),
                uses=uses,
                no_device=no_device,
                swallowed=tuple(swallowed.get(wish.item, ())),
            )
        return AoeTargetsState(states, self._rmem_max(), read_file(self.root / SYSCTL_FILE), any((self.root / place).exists() for place in _TEMPLATES))

    def plan(self, present: AoeTargetsState, wanted: AoeTargetsSpec) -> list[Step]:
        """First the room for sockets, then target by target: those that go before those that come.

        :raises BadInput: for a device or an interface that cannot be meant; Refused, for what would lose data.
        """
        steps = list(_plan_buffer(present, wanted))
        if any(wish.present for wish in wanted.targets) and not present.has_unit:
            raise ToolMissing(
                "vblade with its unit vblade@.service is missing on this host: install the package vblade (Debian, Ubuntu), or give systemd such a unit.",
                item="vblade",
            )
        rmem_max = max(present.rmem_max, wanted.receive_buffer or 0)
        for wish in sorted(wanted.targets, key=lambda one: one.present):
            state = present.targets[wish.item]
            steps += _plan_target(state, wish, rmem_max) if wish.present else _plan_removal(state, wish)
        return steps

    def apply(self, step: Step) -> None:
        """Carry one step out."""
        operation: t.Callable[[Step], None] = getattr(self, f"_{step.operation}")
        operation(step)

    def facts(self, present: AoeTargetsState) -> dict[str, t.Any]:
        """What the module returns about the targets of the list."""
        targets = [
            {
                "name": state.item,
                "instance": state.instance,
                "device": state.running.path if state.running else None,
                "running": state.running is not None,
                "enabled": state.enabled,
                "direct": state.running.direct if state.running else None,
                "sync": state.running.sync if state.running else None,
                "read_only": state.running.read_only if state.running else None,
                "socket": state.socket,
            }
            for state in present.targets.values()
        ]
        return {"aoe_targets": targets}

    def concerns(self, present: AoeTargetsState, wanted: AoeTargetsSpec) -> list[str]:
        """Targets that run and would lose writes, and sockets that hold fewer frames than they shall."""
        sentences = []
        for wish in wanted.targets:
            state = present.targets[wish.item]
            if wish.present and state.swallowed:
                sentences.append(
                    f"{wish.item}: a power cut would lose acknowledged writes, because vblade passes no flush down and {' and '.join(state.swallowed)}:"
                    " set sync: true for it, or turn that cache off (drive_write_cache)."
                )
            if wish.present and state.mtu and present.rmem_max < wish.buffers * state.mtu:
                sentences.append(
                    f"{wish.item}: its socket holds {present.rmem_max // state.mtu} frames of the MTU {state.mtu} and not {wish.buffers}, so that frames are"
                    f" lost and sent again: set aoe_receive_buffer to {wish.buffers * state.mtu} or more."
                )
        return sentences

    # -- reading

    def _rmem_max(self) -> int:
        text = read_file(self.root / _RMEM_MAX).strip()
        return int(text) if text.isdigit() else 0

    def _units(self, instances: t.Sequence[str]) -> dict[str, dict[str, str]]:
        words = ["systemctl", "show", "--property=Id,ActiveState,MainPID,UnitFileState", *map(unit_of, instances)]
        blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in self.runner.run(words, ok=None).stdout.split("\n\n")]
        return {block["Id"]: block for block in blocks if block.get("Id")}

    def _sockets(self) -> dict[int, int]:
        # Without ss nothing tells, and nothing is restarted for it.
        return parse_packet_sockets(self.runner.run(["ss", "--packet", "--memory", "--processes"], ok=None).stdout) if self.runner.has("ss") else {}

    # -- steps

    def _write_sysctl_file(self, step: Step) -> None:
        replace_file(self.root / SYSCTL_FILE, step.arguments["text"])

    def _set_rmem_max(self, step: Step) -> None:
        self.runner.run(["sysctl", "-q", "-w", f"net.core.rmem_max={step.after}"], item=step.item)

    def _write_file(self, step: Step) -> None:
        replace_file(self.root / FOLDER / f"{step.arguments['instance']}.conf", step.arguments["text"])

    def _enable(self, step: Step) -> None:
        self.runner.run(["systemctl", "enable", unit_of(step.arguments["instance"])], item=step.item)

    def _restart(self, step: Step) -> None:
        unit = unit_of(step.arguments["instance"])
        self.runner.run(["systemctl", "restart", unit], item=step.item)
        end = self.clock() + PATIENCE
        while self.clock() < end:
            pid = self._units([step.arguments["instance"]]).get(unit, {}).get("MainPID", "0")
            # First systemd forks, then ionice, then it is vblade; and one that cannot open its device has gone a moment later.
            if any(str(export.pid) == pid for export in running_exports(self.root)):
                self.sleep(SETTLED)
                return
            self.sleep(0.1)

    def _remove(self, step: Step) -> None:
        unit = unit_of(step.arguments["instance"])
        self.runner.run(["systemctl", "disable", "--now", unit], ok=None, item=step.item)
        replace_file(self.root / FOLDER / f"{step.arguments['instance']}.conf", "")
        self.runner.run(["systemctl", "daemon-reload"], item=step.item)


def _look_at_device(devices: Devices, wish: AoeTargetSpec) -> tuple[tuple[str, ...], str]:
    """What this host does with a device, and why it cannot be served at all.

    :raises DeviceMissing: if it is not there.
    """
    device = devices.resolve(wish.device, wish.item)
    if not is_stable(wish.device):
        instead = f"write {device.stable_path}" if device.stable_path else "give it a serial number or put LVM or MD on it"
        return (), f"{wish.item}: {wish.device} may be another device after the next reboot: {instead}."
    rivals = [other for other in devices.claimants(wish.device) if other.name not in {device.name, *(one.name for one in devices.parents(device))}]
    if rivals:
        return (), f"{wish.item}: {wish.device} is claimed by {device.path} and by {', '.join(one.path for one in rivals)}: write a path of one of them only."
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


def _plan_buffer(present: AoeTargetsState, wanted: AoeTargetsSpec) -> t.Iterator[Step]:
    size = wanted.receive_buffer
    if not size:
        return
    text = f"# Written by cachefleet.storage.storage_network: change the inventory, not this file.\nnet.core.rmem_max = {size}\n"
    if present.sysctl_file != text:
        yield Step(LAYER, "rmem_max", "boot_value", present.sysctl_file or None, text, f"Write /{SYSCTL_FILE}", "write_sysctl_file", {"text": text})
    # Other software may have asked for more: it is never lowered.
    if present.rmem_max < size:
        yield Step(LAYER, "rmem_max", "value", present.rmem_max, size, f"Raise net.core.rmem_max to {size}", "set_rmem_max")


def _plan_target(state: TargetState, wish: AoeTargetSpec, rmem_max: int) -> t.Iterator[Step]:
    export = wish.as_export()
    running = state.running is not None and dataclasses.replace(state.running, pid=0) == export
    _check(state, wish, running)
    text = render(export, state.file)
    place = {"instance": state.instance}
    found = state.file.text if state.file is not None else None
    if found != text:
        yield Step(LAYER, wish.item, "configuration", found, text, f"Write /{FOLDER}/{state.instance}.conf", "write_file", {**place, "text": text})
    if not state.enabled:
        yield Step(LAYER, wish.item, "boot", "disabled", "enabled", f"Have {unit_of(state.instance)} started at boot", "enable", place)
    if not state.active or not running:
        serve = f"Serve {wish.device} as {wish.address} on {wish.interface}"
        pause = ", with a new vblade: I/O of its initiators pauses meanwhile" if state.running is not None else ""
        before = " ".join(state.running.words) if state.running is not None else None
        yield Step(LAYER, wish.item, "running", before, " ".join(export.words), f"{serve}{pause}", "restart", place)
        return
    room = 2 * min(wish.buffers * (state.mtu or 0), rmem_max)
    if state.socket is not None and state.socket < room:
        action = (
            f"Start the vblade of {wish.address} on {wish.interface} again, for {room} bytes of socket instead of {state.socket}: I/O of its initiators pauses"
        )
        yield Step(LAYER, wish.item, "socket", state.socket, room, action, "restart", place)


def _plan_removal(state: TargetState, wish: AoeTargetSpec) -> t.Iterator[Step]:
    if state.strangers:
        raise Refused(_about_strangers(state, wish), item=wish.item)
    if state.file is not None or state.running is not None or state.enabled:
        found = state.file.text if state.file is not None else "running"
        yield Step(LAYER, wish.item, "configuration", found, None, f"Stop serving {wish.address} on {wish.interface}", "remove", {"instance": state.instance})


def _check(state: TargetState, wish: AoeTargetSpec, running: bool) -> None:
    if state.mtu is None:
        raise BadInput(f"{wish.item}: there is no interface {wish.interface} on this host: see ip link.", item=wish.item)
    if state.no_device:
        raise BadInput(state.no_device, item=wish.item)
    if state.strangers:
        raise Refused(_about_strangers(state, wish), item=wish.item)
    # What is served already and mounted has been so before this run: its own concern, and stopping it here would help nobody.
    if state.uses and not wish.read_only and not running:
        raise Refused(
            f"{wish.item}: {wish.device} {' and '.join(state.uses)}: two hosts that write to it would destroy its data. Free it first; no option allows it.",
            item=wish.item,
        )
    if state.swallowed and not running:
        raise Refused(
            f"{wish.item}: a power cut would lose what its initiators have synced, because vblade passes no flush down and {' and '.join(state.swallowed)}."
            " Set sync: true for it, turn that cache off (drive_write_cache), or set allow_ignored_flushes: true for this target.",
            item=wish.item,
        )


def _about_strangers(state: TargetState, wish: AoeTargetSpec) -> str:
    pids = " and ".join(map(str, state.strangers))
    return (
        f"{wish.item}: process {pids} serves {wish.address} on {wish.interface} and was not started by {unit_of(state.instance)}: two targets with one address"
        " would mix up their data. End it first."
    )
