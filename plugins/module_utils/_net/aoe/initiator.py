# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``aoe_initiator``: on which interfaces the AoE driver of the kernel searches for targets, and what each frame carries.

Sources: drivers/block/aoe (``aoe_iflist``, ``aoe_maxout``, ``aoe_deadsecs`` and ``aoe_maxsectors`` may be written while the
module is loaded; ``discover`` and ``revalidate`` are character devices), modprobe.d(5), modules-load.d(5). The driver queries
targets by itself once a minute, and takes over what they answer.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import kernel_modules
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.operations import RunCommand, WriteFile
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import payload
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import AoeDevice, read_aoe_devices, read_mtu

LAYER = "aoe_initiator"

AOE_INITIATOR_OPTIONS: dict[str, t.Any] = {
    "interfaces": {"type": "list", "elements": "str", "required": True},
    "dead_seconds": {"type": "int"},
    "max_outstanding": {"type": "int"},
    "max_sectors": {"type": "int"},
    "allow_unreachable": {"type": "bool", "default": False},
    "devices": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"name": {"type": "str", "required": True}, "payload": {"type": "int"}},
    },
}
#: What users write, and what the module calls it.
PARAMETERS = {"dead_seconds": "aoe_deadsecs", "max_outstanding": "aoe_maxout", "max_sectors": "aoe_maxsectors"}
INTERFACES = "aoe_iflist"
#: ``IFNAMSIZ`` is 16 with its end; the rest would be the syntax of modprobe.d.
_INTERFACE = re.compile(r"^[A-Za-z0-9_.:@-]{1,15}\Z")
_NAME = re.compile(r"^e\d{1,5}\.\d{1,3}\Z")
#: ``IFLISTSZ`` of aoenet.c.
_LIST_SIZE = 1024


@frozen
class AoeDeviceSpec:
    """A target that must be up; ``payload``: bytes that a full frame must carry, or None for what both sides take."""

    name: str
    payload: int | None = None


@frozen
class AoeInitiatorSpec:
    """The options of ``aoe_initiator``. ``parameters`` are those of the module, by its names."""

    interfaces: tuple[str, ...]
    parameters: t.Mapping[str, int] = field(default_factory=dict)
    devices: tuple[AoeDeviceSpec, ...] = ()
    allow_unreachable: bool = False


def read_spec(params: t.Mapping[str, t.Any] | None) -> AoeInitiatorSpec | None:
    """The specification from ``aoe_initiator``; None if there is nothing to do.

    :raises BadInput: for an invalid name, a number out of range, or a payload that no frame has.
    """
    if not params or not params.get("interfaces"):
        return None
    interfaces = tuple(dict.fromkeys(params["interfaces"]))
    for name in interfaces:
        if not _INTERFACE.match(name):
            raise BadInput(f"aoe_initiator: '{name}' is not the name of a network interface.", item=name)
    if len(",".join(interfaces)) >= _LIST_SIZE:
        raise BadInput("aoe_initiator: the list of interfaces is longer than the driver accepts (1023 characters).", item=LAYER)
    parameters = {}
    for option, parameter in PARAMETERS.items():
        value = params.get(option)
        if value is not None:
            if value < (0 if option == "max_sectors" else 1):
                raise BadInput(f"aoe_initiator: {option} cannot be {value}.", item=LAYER)
            parameters[parameter] = value
    devices = tuple(AoeDeviceSpec(device["name"], device.get("payload")) for device in params.get("devices") or [])
    for device in devices:
        if not _NAME.match(device.name):
            raise BadInput(f"aoe_initiator: '{device.name}' is not the name of a target: use a name such as e7.1 (shelf 7, slot 1).", item=device.name)
        if device.payload is not None and (device.payload < 512 or device.payload % 512):
            raise BadInput(f"aoe_initiator: {device.name} cannot have a payload of {device.payload} bytes: a frame carries sectors of 512.", item=device.name)
    names = [device.name for device in devices]
    if len(set(names)) != len(names):
        raise BadInput("aoe_initiator: a target is listed twice under devices: name it once.", item=LAYER)
    return AoeInitiatorSpec(interfaces, parameters, devices, bool(params.get("allow_unreachable")))


LOAD_FILE = "etc/modules-load.d/cachefleet-aoe.conf"
OPTIONS_FILE = "etc/modprobe.d/cachefleet-aoe.conf"
DISCOVER_UNIT = "aoe-discover.service"
_NOTE = "# Written by cachefleet.storage.storage_network: change the inventory, not this file."


@frozen
class LoadModule(Operation):
    """Load the module with these options, each ``name=value``."""

    options: tuple[str, ...]

    def carry_out(self, layer: AoeInitiatorLayer, step: Step) -> None:
        layer.runner.run(["modprobe", "aoe", *self.options], item=step.item)
        layer.wait((layer.root / _NODES / "discover").exists)


@frozen
class SetParameter(Operation):
    """Set a parameter of the loaded module."""

    name: str
    value: str

    def carry_out(self, layer: AoeInitiatorLayer, step: Step) -> None:
        layer.write(f"{_MODULE}/parameters/{self.name}", self.value, step.item)


@frozen
class Discover(Operation):
    """Query targets until one is up; whether it is, is seen when everything is read back.

    :param payload: renegotiate its frames as well, until each carries so many bytes.
    """

    target: str
    payload: int | None = None

    def carry_out(self, layer: AoeInitiatorLayer, step: Step) -> None:  # noqa: ARG002
        end = layer.clock() + PATIENCE
        while True:
            layer.write(f"{_NODES}/discover", "\n", self.target)
            if self.payload is not None:
                layer.write(f"{_NODES}/revalidate", f"{self.target}\n", self.target)
            if layer.wait(lambda: self._is_done(layer.root), 1.0) or layer.clock() >= end:
                return

    def _is_done(self, root: Path) -> bool:
        found = (device for device in read_aoe_devices(root) if device.name == self.target)
        return any(device.up if self.payload is None else device.payload == self.payload for device in found)


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
        yield Step(
            LAYER,
            "aoe",
            "boot_discovery",
            "masked",
            "static",
            f"Unmask {DISCOVER_UNIT}, which asks for targets after boot",
            RunCommand(("systemctl", "unmask", DISCOVER_UNIT)),
        )


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
            yield Step(LAYER, name, "payload", before, target, f"Renegotiate the frames of {name} for {target} bytes", Discover(name, target))


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
        return [] if self.spec is None else plan(state, self.spec)

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

    def wait(self, done: t.Callable[[], bool], seconds: float = PATIENCE) -> bool:
        end = self.clock() + seconds
        while not done():
            if self.clock() >= end:
                return False
            self.sleep(INTERVAL)
        return True

    def write(self, path: str, text: str, item: str) -> None:
        try:
            with open(self.root / path, "w", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise CommandFailed(f"{item}: /{path} does not accept '{text.strip()}': {error.strerror}.", item=item) from None


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
