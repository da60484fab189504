# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users specify for the AoE initiator."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

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
