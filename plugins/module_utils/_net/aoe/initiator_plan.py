# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the AoE initiator as it is to the specified one: what is refused, and the steps; pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import payload
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import AoeDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator_spec import INTERFACES, LAYER, AoeDeviceSpec, AoeInitiatorSpec

LOAD_FILE = "etc/modules-load.d/cachefleet-aoe.conf"
OPTIONS_FILE = "etc/modprobe.d/cachefleet-aoe.conf"
DISCOVER_UNIT = "aoe-discover.service"
_NOTE = "# Written by cachefleet.storage.storage_network: change the inventory, not this file."


@frozen
class WriteFile(Operation):
    """Write a file for the next boot.

    :param path: below the root, without a leading slash.
    """

    path: str
    text: str


@frozen
class UnmaskDiscovery(Operation):
    """Let the unit run that queries targets at boot."""


@frozen
class LoadModule(Operation):
    """Load the module with these options, each ``name=value``."""

    options: tuple[str, ...]


@frozen
class SetParameter(Operation):
    """Set a parameter of the loaded module."""

    name: str
    value: str


@frozen
class Discover(Operation):
    """Query targets until one is up."""

    target: str


@frozen
class Renegotiate(Operation):
    """Renegotiate the frames of a target until each carries ``payload`` bytes."""

    target: str
    payload: int


@frozen
class AoeInitiatorState:
    """The initiator as it was found.

    :param loaded: whether the module is; ``unavailable``: why it cannot be, empty if it can.
    :param interfaces: on which it searches for targets; empty: on all. ``parameters``: the others, by the module's names.
    :param mtus: of every interface that matters; None for one that is not there.
    :param in_use: names of targets that something on this host uses.
    :param rivals: other files that give the module options.
    :param masked: whether the unit that queries targets at boot cannot run.
    :param changing: interfaces whose MTU will be another when this layer has its turn.
    """

    loaded: bool
    unavailable: str = ""
    interfaces: tuple[str, ...] = ()
    parameters: t.Mapping[str, int] = field(default_factory=dict)
    mtus: t.Mapping[str, int | None] = field(default_factory=dict)
    devices: tuple[AoeDevice, ...] = ()
    in_use: frozenset[str] = frozenset()
    load_file: str = ""
    options_file: str = ""
    rivals: tuple[str, ...] = ()
    masked: bool = False
    changing: frozenset[str] = frozenset()

    def after_links(self, mtus: t.Mapping[str, int]) -> AoeInitiatorState:
        """The same when the interfaces have other MTUs, by their names: what is planned before the links are set."""
        changing = {name for name, mtu in mtus.items() if self.mtus.get(name, mtu) != mtu}
        return dataclasses.replace(self, mtus={**self.mtus, **mtus}, changing=frozenset(changing))

    def allowed(self, device: AoeDevice) -> int | None:
        """The bytes that a frame to a target can carry as far as this side goes; None if its interfaces are not known."""
        known = [mtu for mtu in (self.mtus.get(name) for name in device.interfaces) if mtu is not None]
        return min(payload(mtu) for mtu in known) if known else None


def plan(state: AoeInitiatorState, spec: AoeInitiatorSpec) -> list[Step]:
    """First the boot state, then the module, then what its targets carry.

    :raises BadInput: if an interface is not there.
    :raises ToolMissing: if the kernel has no AoE.
    :raises Refused: if a target in use would not be reached any more.
    """
    _check(state, spec)
    return [*_plan_boot(state, spec), *_plan_module(state, spec), *_plan_devices(state, spec)]


def _check(state: AoeInitiatorState, spec: AoeInitiatorSpec) -> None:
    missing = [name for name in spec.interfaces if state.mtus.get(name) is None]
    if missing:
        raise BadInput(f"aoe_initiator: there is no interface {' and no '.join(missing)} on this host: see ip link.", item=missing[0])
    if state.unavailable:
        raise ToolMissing(f"aoe_initiator: {state.unavailable}.", item="aoe")
    lost = [device for device in state.devices if device.name in state.in_use and device.interfaces and not set(device.interfaces) & set(spec.interfaces)]
    if lost and not spec.allow_unreachable:
        device = lost[0]
        raise Refused(
            f"{device.name} is in use and is reached over {' and '.join(device.interfaces)}, which is not among the interfaces of aoe_initiator, so that its"
            f" I/O would hang: add the interface, stop using {device.node}, or set allow_unreachable: true.",
            item=device.name,
        )


def _plan_boot(state: AoeInitiatorState, spec: AoeInitiatorSpec) -> t.Iterator[Step]:
    words = " ".join(_options(spec))
    files = (
        ("boot_options", OPTIONS_FILE, state.options_file, f"{_NOTE}\noptions aoe {words}\n"),
        ("boot_module", LOAD_FILE, state.load_file, f"{_NOTE}\naoe\n"),
    )
    for attribute, path, found, text in files:
        if found != text:
            yield Step(LAYER, "aoe", attribute, found or None, text, f"Write /{path}", WriteFile(path, text))
    if state.masked:
        yield Step(LAYER, "aoe", "boot_discovery", "masked", "static", f"Unmask {DISCOVER_UNIT}, which asks for targets after boot", UnmaskDiscovery())


def _options(spec: AoeInitiatorSpec) -> list[str]:
    return [f"{INTERFACES}={','.join(spec.interfaces)}", *(f"{name}={value}" for name, value in sorted(spec.parameters.items()))]


def _plan_module(state: AoeInitiatorState, spec: AoeInitiatorSpec) -> t.Iterator[Step]:
    if not state.loaded:
        action = f"Load the module aoe for {', '.join(spec.interfaces)}"
        yield Step(LAYER, "aoe", "module", "not loaded", "loaded", action, LoadModule(tuple(_options(spec))))
        return
    # The order of the list means nothing to the driver.
    if set(state.interfaces) != set(spec.interfaces):
        value = ",".join(spec.interfaces)
        found = ",".join(state.interfaces) or "all interfaces"
        yield Step(LAYER, "aoe", "interfaces", found, value, f"Set the interfaces of the AoE initiator to {value}", SetParameter(INTERFACES, value))
    for name, number in sorted(spec.parameters.items()):
        if state.parameters.get(name) != number:
            before = state.parameters.get(name)
            yield Step(LAYER, "aoe", name, before, number, f"Set {name} of the AoE initiator to {number}", SetParameter(name, str(number)))


def _plan_devices(state: AoeInitiatorState, spec: AoeInitiatorSpec) -> t.Iterator[Step]:
    devices = {device.name: device for device in state.devices}
    listed = {one.name: one for one in spec.devices}
    for name in sorted({*devices, *listed}):
        device, own = devices.get(name), listed.get(name, AoeDeviceSpec(name))
        if (device is None or not device.up) and name in listed:
            yield Step(LAYER, name, "state", device.state if device else None, "up", f"Discover the target {name}", Discover(name))
        target = _payload_to_reach(state, device, own)
        if target is not None:
            before = device.payload if device is not None else None
            yield Step(LAYER, name, "payload", before, target, f"Renegotiate the frames of {name} for {target} bytes", Renegotiate(name, target))


def _payload_to_reach(state: AoeInitiatorState, device: AoeDevice | None, spec: AoeDeviceSpec) -> int | None:
    """What a frame should carry after another negotiation; None if there need be none."""
    found = device.payload if device is not None and device.up else None
    if spec.payload is not None:
        return spec.payload if found != spec.payload else None
    allowed = state.allowed(device) if device is not None else None
    if device is None or found is None or allowed is None:
        return None
    # Less than this side allows is what the target takes, which no negotiation changes; the driver checks once a minute.
    stale = found > allowed or (found != allowed and any(name in state.changing for name in device.interfaces))
    return allowed if stale else None
