# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``aoe_initiator``: on which interfaces the AoE driver of the kernel searches for targets, and what each frame carries.

Sources: drivers/block/aoe (``aoe_iflist``, ``aoe_maxout``, ``aoe_deadsecs`` and ``aoe_maxsectors`` may be written while the
module is loaded; ``discover`` and ``revalidate`` are character devices), modprobe.d(5), modules-load.d(5). The driver queries
targets by itself once a minute, and takes over what they answer.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import kernel_modules
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import AoeDevice, read_aoe_devices, read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe import initiator_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator_plan import (
    DISCOVER_UNIT,
    LOAD_FILE,
    OPTIONS_FILE,
    AoeInitiatorState,
    Discover,
    LoadModule,
    Renegotiate,
    SetParameter,
    UnmaskDiscovery,
    WriteFile,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator_spec import INTERFACES, LAYER, PARAMETERS, AoeInitiatorSpec

_MODULE = "sys/module/aoe"
_NODES = "dev/etherd"
#: How long a target may take to answer, and how often that is polled. Seconds.
PATIENCE = 10.0
INTERVAL = 0.25

_OPTIONS_LINE = re.compile(r"^\s*options\s+aoe\s", re.MULTILINE)


class AoeInitiatorLayer(Layer[AoeInitiatorState, t.Optional[AoeInitiatorSpec]]):
    """The AoE initiator of one host. Without a specification nothing is read or changed."""

    name = LAYER

    def read(self) -> AoeInitiatorState:
        """Files and sysfs; one ``modprobe`` where the module is not loaded, one ``systemctl``."""
        if self.spec is None:
            return AoeInitiatorState(loaded=False)
        loaded = (self.root / _MODULE).is_dir()
        devices = tuple(read_aoe_devices(self.root))
        names = {*self.spec.interfaces, *(name for device in devices for name in device.interfaces)}
        return AoeInitiatorState(
            loaded=loaded,
            unavailable="" if loaded or kernel_modules.is_available(self.runner, "aoe", self.root) else kernel_modules.missing_sentence("aoe", self.root),
            interfaces=tuple(word for word in re.split(r"[,\s]+", self._parameter(INTERFACES)) if word),
            parameters={name: int(text) for name, text in ((name, self._parameter(name)) for name in PARAMETERS.values()) if text.isdigit()},
            mtus={name: read_mtu(self.root, name) for name in names},
            devices=devices,
            in_use=frozenset(device.name for device in devices if _in_use(self.root, device)),
            load_file=read_file(self.root / LOAD_FILE),
            options_file=read_file(self.root / OPTIONS_FILE),
            rivals=self._rivals(),
            masked=self._is_masked(),
        )

    def plan(self, state: AoeInitiatorState) -> list[Step]:
        """See :func:`initiator_plan.plan`."""
        return [] if self.spec is None else initiator_plan.plan(state, self.spec)

    def verify(self, state: AoeInitiatorState) -> list[Difference]:
        """As planned again; of a payload also which side does not allow it."""
        devices = {device.name: device for device in state.devices}
        return [
            dataclasses.replace(one, found=f"{one.found}{_blame(state, devices[one.item], one)}") if one.attribute == "payload" and one.item in devices else one
            for one in super().verify(state)
        ]

    def facts(self, state: AoeInitiatorState) -> dict[str, t.Any]:
        """What the module returns about the initiator and its targets."""
        devices = [
            {
                "name": device.name,
                "device": device.node,
                "interfaces": list(device.interfaces),
                "state": device.state,
                "payload": device.payload,
                "payload_of_mtu": state.allowed(device),
                "mac": device.mac,
                "in_use": device.name in state.in_use,
            }
            for device in state.devices
        ]
        module = {"loaded": state.loaded, "interfaces": list(state.interfaces), **{key: state.parameters.get(name) for key, name in PARAMETERS.items()}}
        return {"aoe_devices": devices, "aoe_module": module}

    def check_settled(self, state: AoeInitiatorState) -> None:
        """Targets that are down or carry less than the interface would, and files that contradict ours."""
        if self.spec is None:
            return
        for device in state.devices:
            if not device.up:
                self.warn(_about_down(device, state))
        for device in state.devices:
            allowed = state.allowed(device)
            if device.up and allowed is not None and device.payload is not None and device.payload < allowed:
                self.warn(
                    f"{device.name} carries {device.payload} bytes in a frame, and {allowed} would fit into the MTU of {' and '.join(device.interfaces)}:"
                    " the interface of its target has a smaller MTU, or large frames are lost on the way (aoe-sancheck shows it)."
                )
        for path in state.rivals:
            self.warn(f"{path} gives the module aoe options too, and the last file by name wins at the next boot: remove its line.")

    # -- reading

    def _parameter(self, name: str) -> str:
        return read_file(self.root / _MODULE / "parameters" / name).strip("\n\0 ")

    def _rivals(self) -> tuple[str, ...]:
        files = sorted((self.root / "etc/modprobe.d").glob("*.conf"))
        return tuple(f"/etc/modprobe.d/{path.name}" for path in files if path.name != Path(OPTIONS_FILE).name and _OPTIONS_LINE.search(read_file(path)))

    def _is_masked(self) -> bool:
        # Without that unit nothing is missing: the driver queries by itself within a minute.
        return self.runner.has("systemctl") and self.runner.run(["systemctl", "is-enabled", DISCOVER_UNIT], ok=None).stdout.strip() == "masked"

    # -- steps

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """:raises CommandFailed: if a command fails, or the driver does not take a value."""
        raise TypeError(operation)

    @carry_out.register
    def _write_file(self, operation: WriteFile, _step: Step) -> None:
        replace_file(self.root / operation.path, operation.text)

    @carry_out.register
    def _unmask(self, _operation: UnmaskDiscovery, step: Step) -> None:
        self.runner.run(["systemctl", "unmask", DISCOVER_UNIT], item=step.item)

    @carry_out.register
    def _load(self, operation: LoadModule, step: Step) -> None:
        self.runner.run(["modprobe", "aoe", *operation.options], item=step.item)
        self._wait((self.root / _NODES / "discover").exists)

    @carry_out.register
    def _set_parameter(self, operation: SetParameter, step: Step) -> None:
        self._write(self.root / _MODULE / "parameters" / operation.name, operation.value, step.item)

    @carry_out.register
    def _discover(self, operation: Discover, _step: Step) -> None:
        """Query targets until this one is up; whether it is, is seen when everything is read back."""

        def is_up() -> bool:
            return any(device.name == operation.target and device.up for device in read_aoe_devices(self.root))

        self._ask(operation.target, is_up)

    @carry_out.register
    def _renegotiate(self, operation: Renegotiate, _step: Step) -> None:
        def is_as_specified() -> bool:
            return any(device.name == operation.target and device.payload == operation.payload for device in read_aoe_devices(self.root))

        self._ask(operation.target, is_as_specified, revalidate=True)

    def _ask(self, target: str, done: t.Callable[[], bool], *, revalidate: bool = False) -> None:
        end = self.clock() + PATIENCE
        while True:
            self._write(self.root / _NODES / "discover", "\n", target)
            if revalidate:
                self._write(self.root / _NODES / "revalidate", f"{target}\n", target)
            if self._wait(done, 1.0) or self.clock() >= end:
                return

    def _wait(self, done: t.Callable[[], bool], seconds: float = PATIENCE) -> bool:
        end = self.clock() + seconds
        while not done():
            if self.clock() >= end:
                return False
            self.sleep(INTERVAL)
        return True

    def _write(self, path: Path, text: str, item: str) -> None:
        try:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise CommandFailed(f"{item}: /{path.relative_to(self.root)} does not accept '{text.strip()}': {error.strerror}.", item=item) from None


def _blame(state: AoeInitiatorState, device: AoeDevice, difference: Difference) -> str:
    """Why a frame does not carry what it should."""
    allowed = state.allowed(device)
    interfaces = " and ".join(f"{name} (MTU {state.mtus.get(name)})" for name in device.interfaces)
    if not device.up or allowed is None:
        return ", and it is down"
    if allowed == difference.wanted:
        return f", although {interfaces} allows it: its target, or a switch on the way, accepts no larger frames"
    return f": {interfaces} allows {allowed}"


def _about_down(device: AoeDevice, state: AoeInitiatorState) -> str:
    if device.name in state.in_use:
        return f"{device.name} is down and in use: its I/O has failed or will. Check its target and the path to it, then mount or assemble it again."
    return f"{device.name} is down: its target does not answer. Start it, or remove it with aoe-flush {device.name}."


def _in_use(root: Path, device: AoeDevice) -> bool:
    """Whether the target or a partition of it is mounted, swap, or part of another device."""
    folder = root / "sys/block" / f"etherd!{device.name}"
    places = [folder, *(place.parent for place in folder.glob("*/partition"))]
    numbers = {read_file(place / "dev").strip() for place in places}
    mounted = {words[2] for words in (line.split() for line in read_file(root / "proc/self/mountinfo").splitlines()) if len(words) > 2}
    swapped = any(line.startswith(device.node) for line in read_file(root / "proc/swaps").splitlines())
    held = any(any((place / "holders").iterdir()) for place in places if (place / "holders").is_dir())
    return swapped or held or bool(numbers & mounted)
