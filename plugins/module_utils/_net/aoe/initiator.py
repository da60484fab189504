# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``aoe_initiator``: on which interfaces the AoE driver of the kernel looks for targets, and what each frame carries.

Sources: drivers/block/aoe (``aoe_iflist``, ``aoe_maxout``, ``aoe_deadsecs`` and ``aoe_maxsectors`` may be written while the
module is loaded; ``discover`` and ``revalidate`` are character devices), modprobe.d(5), modules-load.d(5). The driver asks for
targets by itself once a minute, and takes over what they answer.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import re
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_frames import payload
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_sysfs import AoeDevice, read_aoe_devices, read_mtu

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

LAYER = "aoe_initiator"
LOAD_FILE = "etc/modules-load.d/cachefleet-aoe.conf"
OPTIONS_FILE = "etc/modprobe.d/cachefleet-aoe.conf"
DISCOVER_UNIT = "aoe-discover.service"
_NOTE = "# Written by cachefleet.storage.storage_network: change the inventory, not this file."
_MODULE = "sys/module/aoe"
_NODES = "dev/etherd"
#: How long a target may take to answer, and how often that is looked at. Seconds.
PATIENCE = 10.0
INTERVAL = 0.25

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
_PARAMETERS = {"dead_seconds": "aoe_deadsecs", "max_outstanding": "aoe_maxout", "max_sectors": "aoe_maxsectors"}
_INTERFACES = "aoe_iflist"
#: ``IFNAMSIZ`` is 16 with its end; the rest would be the syntax of modprobe.d.
_INTERFACE = re.compile(r"^[A-Za-z0-9_.:@-]{1,15}\Z")
_NAME = re.compile(r"^e\d{1,5}\.\d{1,3}\Z")
_OPTIONS_LINE = re.compile(r"^\s*options\s+aoe\s", re.MULTILINE)
#: ``IFLISTSZ`` of aoenet.c.
_LIST_SIZE = 1024


@dataclass(frozen=True)
class AoeDeviceSpec:
    """A target that must be up; ``payload``: bytes that a full frame must carry, or None for what both sides take."""

    name: str
    payload: int | None = None


@dataclass(frozen=True)
class AoeInitiatorSpec:
    """The options of ``aoe_initiator``. ``parameters`` are those of the module, by its names."""

    interfaces: tuple[str, ...]
    parameters: t.Mapping[str, int] = field(default_factory=dict)
    devices: tuple[AoeDeviceSpec, ...] = ()
    allow_unreachable: bool = False


@dataclass(frozen=True)
class AoeInitiatorState:
    """The initiator as it was found.

    :param loaded: whether the module is; ``available``: whether it could be.
    :param interfaces: on which it looks for targets; empty: on all. ``parameters``: the others, by the module's names.
    :param mtus: of every interface that matters; None for one that is not there.
    :param in_use: names of targets that something on this host uses.
    :param rivals: other files that give the module options.
    :param masked: whether the unit that asks for targets at boot cannot run.
    :param changing: interfaces whose MTU will be another when this layer has its turn.
    """

    loaded: bool
    available: bool = True
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


def read_wanted(params: t.Mapping[str, t.Any] | None) -> AoeInitiatorSpec | None:
    """The wish from ``aoe_initiator``; None if there is nothing to do.

    :raises BadInput: for a name that is none, a number out of range, or a payload that no frame has.
    """
    if not params or not params.get("interfaces"):
        return None
    interfaces = tuple(dict.fromkeys(params["interfaces"]))
    for name in interfaces:
        if not _INTERFACE.match(name):
            raise BadInput(f"aoe_initiator: '{name}' is not the name of a network interface.", item=name)
    if len(",".join(interfaces)) >= _LIST_SIZE:
        raise BadInput("aoe_initiator: the list of interfaces is longer than the driver takes (1023 characters).", item=LAYER)
    parameters = {}
    for option, parameter in _PARAMETERS.items():
        value = params.get(option)
        if value is not None:
            if value < (0 if option == "max_sectors" else 1):
                raise BadInput(f"aoe_initiator: {option} cannot be {value}.", item=LAYER)
            parameters[parameter] = value
    devices = tuple(AoeDeviceSpec(device["name"], device.get("payload")) for device in params.get("devices") or [])
    for device in devices:
        if not _NAME.match(device.name):
            raise BadInput(f"aoe_initiator: '{device.name}' is not the name of a target: write it as e7.1 (shelf 7, slot 1).", item=device.name)
        if device.payload is not None and (device.payload < 512 or device.payload % 512):
            raise BadInput(f"aoe_initiator: {device.name} cannot have a payload of {device.payload} bytes: a frame carries sectors of 512.", item=device.name)
    names = [device.name for device in devices]
    if len(set(names)) != len(names):
        raise BadInput("aoe_initiator: a target is listed twice under devices: name it once.", item=LAYER)
    return AoeInitiatorSpec(interfaces, parameters, devices, bool(params.get("allow_unreachable")))


class AoeInitiatorLayer(Layer[AoeInitiatorState, t.Optional[AoeInitiatorSpec]]):
    """The AoE initiator of one host.

    :param wanted: the same that is planned; None to leave it in peace, with nothing read.
    :param root: below which /sys, /proc, /dev and /etc are.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        wanted: AoeInitiatorSpec | None,
        root: Path = Path("/"),
        *,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.runner = runner
        self.wanted = wanted
        self.root = root
        self.clock = clock
        self.sleep = sleep

    def read(self) -> AoeInitiatorState:
        """Files and sysfs; one ``modprobe`` where the module is not loaded, one ``systemctl``."""
        if self.wanted is None:
            return AoeInitiatorState(loaded=False)
        loaded = (self.root / _MODULE).is_dir()
        devices = tuple(read_aoe_devices(self.root))
        names = {*self.wanted.interfaces, *(name for device in devices for name in device.interfaces)}
        return AoeInitiatorState(
            loaded=loaded,
            available=loaded or self._is_available(),
            interfaces=tuple(word for word in re.split(r"[,\s]+", self._parameter(_INTERFACES)) if word),
            parameters={name: int(text) for name, text in ((name, self._parameter(name)) for name in _PARAMETERS.values()) if text.isdigit()},
            mtus={name: read_mtu(self.root, name) for name in names},
            devices=devices,
            in_use=frozenset(device.name for device in devices if _in_use(self.root, device)),
            load_file=read_file(self.root / LOAD_FILE),
            options_file=read_file(self.root / OPTIONS_FILE),
            rivals=self._rivals(),
            masked=self._is_masked(),
        )

    def plan(self, present: AoeInitiatorState, wanted: AoeInitiatorSpec | None) -> list[Step]:
        """First the boot state, then the module, then what its targets carry.

        :raises BadInput: if an interface is not there.
        :raises ToolMissing: if the kernel has no AoE.
        :raises Refused: if a target in use would not be reached any more.
        """
        if wanted is None:
            return []
        _check(present, wanted)
        return [*_plan_boot(present, wanted), *_plan_module(present, wanted), *_plan_devices(present, wanted)]

    def verify(self, present: AoeInitiatorState, wanted: AoeInitiatorSpec | None) -> list[Difference]:
        """As planned again; of a payload also which side does not allow it."""
        devices = {device.name: device for device in present.devices}
        return [
            dataclasses.replace(one, found=f"{one.found}{_blame(present, devices[one.item], one)}")
            if one.attribute == "payload" and one.item in devices
            else one
            for one in super().verify(present, wanted)
        ]

    def apply(self, step: Step) -> None:
        """Carry one step out."""
        operation: t.Callable[[Step], None] = getattr(self, f"_{step.operation}")
        operation(step)

    def facts(self, present: AoeInitiatorState) -> dict[str, t.Any]:
        """What the module returns about the initiator and its targets."""
        devices = [
            {
                "name": device.name,
                "device": device.node,
                "interfaces": list(device.interfaces),
                "state": device.state,
                "payload": device.payload,
                "payload_of_mtu": present.allowed(device),
                "mac": device.mac,
                "in_use": device.name in present.in_use,
            }
            for device in present.devices
        ]
        module = {"loaded": present.loaded, "interfaces": list(present.interfaces), **{key: present.parameters.get(name) for key, name in _PARAMETERS.items()}}
        return {"aoe_devices": devices, "aoe_module": module}

    def concerns(self, present: AoeInitiatorState, wanted: AoeInitiatorSpec | None) -> list[str]:
        """Targets that are down or carry less than the interface would, and files that speak against ours."""
        if wanted is None:
            return []
        sentences = [_about_down(device, present) for device in present.devices if not device.up]
        for device in present.devices:
            allowed = present.allowed(device)
            if device.up and allowed is not None and device.payload is not None and device.payload < allowed:
                sentences.append(
                    f"{device.name} carries {device.payload} bytes in a frame, and {allowed} would fit into the MTU of {' and '.join(device.interfaces)}:"
                    " the interface of its target has a smaller MTU, or large frames are lost on the way (aoe-sancheck shows it)."
                )
        for path in present.rivals:
            sentences.append(f"{path} gives the module aoe options too, and the last file by name wins at the next boot: take its line out.")
        return sentences

    # -- reading

    def _parameter(self, name: str) -> str:
        return read_file(self.root / _MODULE / "parameters" / name).strip("\n\0 ")

    def _is_available(self) -> bool:
        return self.runner.has("modprobe") and self.runner.run(["modprobe", "--dry-run", "--quiet", "aoe"], ok=None).rc == 0

    def _rivals(self) -> tuple[str, ...]:
        files = sorted((self.root / "etc/modprobe.d").glob("*.conf"))
        return tuple(f"/etc/modprobe.d/{path.name}" for path in files if path.name != Path(OPTIONS_FILE).name and _OPTIONS_LINE.search(read_file(path)))

    def _is_masked(self) -> bool:
        # Without that unit nothing is missing: the driver asks by itself within a minute.
        return self.runner.has("systemctl") and self.runner.run(["systemctl", "is-enabled", DISCOVER_UNIT], ok=None).stdout.strip() == "masked"

    # -- steps

    def _write_file(self, step: Step) -> None:
        replace_file(self.root / step.arguments["path"], step.arguments["text"])

    def _unmask(self, step: Step) -> None:
        self.runner.run(["systemctl", "unmask", DISCOVER_UNIT], item=step.item)

    def _load(self, step: Step) -> None:
        self.runner.run(["modprobe", "aoe", *step.arguments["options"]], item=step.item)
        self._wait((self.root / _NODES / "discover").exists)

    def _set_parameter(self, step: Step) -> None:
        self._write(self.root / _MODULE / "parameters" / step.arguments["name"], step.arguments["value"], step.item)

    def _discover(self, step: Step) -> None:
        """Ask for targets until this one is up; whether it is, is seen when everything is read back."""

        def is_up() -> bool:
            return any(device.name == step.item and device.up for device in read_aoe_devices(self.root))

        self._ask(step, is_up)

    def _renegotiate(self, step: Step) -> None:
        def is_as_wanted() -> bool:
            return any(device.name == step.item and device.payload == step.after for device in read_aoe_devices(self.root))

        self._ask(step, is_as_wanted, revalidate=True)

    def _ask(self, step: Step, done: t.Callable[[], bool], *, revalidate: bool = False) -> None:
        end = self.clock() + PATIENCE
        while True:
            self._write(self.root / _NODES / "discover", "\n", step.item)
            if revalidate:
                self._write(self.root / _NODES / "revalidate", f"{step.item}\n", step.item)
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
            raise CommandFailed(f"{item}: /{path.relative_to(self.root)} does not take '{text.strip()}': {error.strerror}.", item=item) from None


def _check(present: AoeInitiatorState, wanted: AoeInitiatorSpec) -> None:
    missing = [name for name in wanted.interfaces if present.mtus.get(name) is None]
    if missing:
        raise BadInput(f"aoe_initiator: there is no interface {' and no '.join(missing)} on this host: see ip link.", item=missing[0])
    if not present.available:
        raise ToolMissing(
            "The kernel of this host has no module aoe (CONFIG_ATA_OVER_ETH): install the package that carries it, or boot a kernel that has it.", item="aoe"
        )
    lost = [device for device in present.devices if device.name in present.in_use and device.interfaces and not set(device.interfaces) & set(wanted.interfaces)]
    if lost and not wanted.allow_unreachable:
        device = lost[0]
        raise Refused(
            f"{device.name} is in use and is reached over {' and '.join(device.interfaces)}, which is not among the interfaces of aoe_initiator, so that its"
            f" I/O would hang: add the interface, stop using {device.node}, or set allow_unreachable: true.",
            item=device.name,
        )


def _plan_boot(present: AoeInitiatorState, wanted: AoeInitiatorSpec) -> t.Iterator[Step]:
    words = " ".join(_options(wanted))
    files = (
        ("boot_options", OPTIONS_FILE, present.options_file, f"{_NOTE}\noptions aoe {words}\n"),
        ("boot_module", LOAD_FILE, present.load_file, f"{_NOTE}\naoe\n"),
    )
    for attribute, path, found, text in files:
        if found != text:
            yield Step(LAYER, "aoe", attribute, found or None, text, f"Write /{path}", "write_file", {"path": path, "text": text})
    if present.masked:
        yield Step(LAYER, "aoe", "boot_discovery", "masked", "static", f"Unmask {DISCOVER_UNIT}, which asks for targets after boot", "unmask")


def _options(wanted: AoeInitiatorSpec) -> list[str]:
    return [f"{_INTERFACES}={','.join(wanted.interfaces)}", *(f"{name}={value}" for name, value in sorted(wanted.parameters.items()))]


def _plan_module(present: AoeInitiatorState, wanted: AoeInitiatorSpec) -> t.Iterator[Step]:
    if not present.loaded:
        yield Step(
            LAYER, "aoe", "module", "not loaded", "loaded", f"Load the module aoe for {', '.join(wanted.interfaces)}", "load", {"options": _options(wanted)}
        )
        return
    # The order of the list means nothing to the driver.
    if set(present.interfaces) != set(wanted.interfaces):
        value = ",".join(wanted.interfaces)
        found = ",".join(present.interfaces) or "all interfaces"
        yield Step(
            LAYER,
            "aoe",
            "interfaces",
            found,
            value,
            f"Let the AoE initiator look for targets on {value}",
            "set_parameter",
            {"name": _INTERFACES, "value": value},
        )
    for name, number in sorted(wanted.parameters.items()):
        if present.parameters.get(name) != number:
            before = present.parameters.get(name)
            yield Step(
                LAYER, "aoe", name, before, number, f"Set {name} of the AoE initiator to {number}", "set_parameter", {"name": name, "value": str(number)}
            )


def _plan_devices(present: AoeInitiatorState, wanted: AoeInitiatorSpec) -> t.Iterator[Step]:
    devices = {device.name: device for device in present.devices}
    wishes = {wish.name: wish for wish in wanted.devices}
    for name in sorted({*devices, *wishes}):
        device, wish = devices.get(name), wishes.get(name, AoeDeviceSpec(name))
        if (device is None or not device.up) and name in wishes:
            yield Step(LAYER, name, "state", device.state if device else None, "up", f"Look for the target {name}", "discover")
        target = _payload_to_reach(present, device, wish)
        if target is not None:
            before = device.payload if device is not None else None
            yield Step(LAYER, name, "payload", before, target, f"Have {name} negotiate its frames again, for {target} bytes in each", "renegotiate")


def _payload_to_reach(present: AoeInitiatorState, device: AoeDevice | None, wish: AoeDeviceSpec) -> int | None:
    """What a frame shall carry after another negotiation; None if there need be none."""
    found = device.payload if device is not None and device.up else None
    if wish.payload is not None:
        return wish.payload if found != wish.payload else None
    allowed = present.allowed(device) if device is not None else None
    if device is None or found is None or allowed is None:
        return None
    # Less than this side allows is what the target takes, which no negotiation changes; the driver looks once a minute.
    stale = found > allowed or (found != allowed and any(name in present.changing for name in device.interfaces))
    return allowed if stale else None


def _blame(present: AoeInitiatorState, device: AoeDevice, difference: Difference) -> str:
    """Why a frame does not carry what it shall."""
    allowed = present.allowed(device)
    interfaces = " and ".join(f"{name} (MTU {present.mtus.get(name)})" for name in device.interfaces)
    if not device.up or allowed is None:
        return ", and it is down"
    if allowed == difference.wanted:
        return f", although {interfaces} allows it: its target, or a switch on the way, takes no larger frames"
    return f": {interfaces} allows {allowed}"


def _about_down(device: AoeDevice, present: AoeInitiatorState) -> str:
    if device.name in present.in_use:
        return f"{device.name} is down and in use: its I/O has failed or will. Look at its target and at the way to it, then mount or assemble it again."
    return f"{device.name} is down: its target does not answer. Start it, or forget it with aoe-flush {device.name}."


def _in_use(root: Path, device: AoeDevice) -> bool:
    """Whether the target or a partition of it is mounted, swap, or part of another device."""
    folder = root / "sys/block" / f"etherd!{device.name}"
    places = [folder, *(place.parent for place in folder.glob("*/partition"))]
    numbers = {read_file(place / "dev").strip() for place in places}
    mounted = {words[2] for words in (line.split() for line in read_file(root / "proc/self/mountinfo").splitlines()) if len(words) > 2}
    swapped = any(line.startswith(device.node) for line in read_file(root / "proc/swaps").splitlines())
    held = any(any((place / "holders").iterdir()) for place in places if (place / "holders").is_dir())
    return swapped or held or bool(numbers & mounted)
