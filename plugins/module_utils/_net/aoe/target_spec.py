# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users request for AoE targets."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import DEFAULT_BUFFERS, AoeExport

AOE_TARGET_OPTIONS: dict[str, t.Any] = {
    "shelf": {"type": "int", "required": True},
    "slot": {"type": "int", "required": True},
    "interface": {"type": "str", "required": True},
    "device": {"type": "str"},
    "direct": {"type": "bool", "default": True},
    "sync": {"type": "bool", "default": False},
    "read_only": {"type": "bool", "default": False},
    "macs": {"type": "list", "elements": "str", "default": []},
    "buffers": {"type": "int", "default": DEFAULT_BUFFERS},
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "allow_ignored_flushes": {"type": "bool", "default": False},
}
#: The highest of each means "all" on the wire (``AoE`` specification, "Shelf", "Slot").
_SHELVES, _SLOTS = 65535, 255
_MASKS = 32
_INTERFACE = re.compile(r"^[A-Za-z0-9_.:@-]{1,15}\Z")
_MAC = re.compile(r"^([0-9a-f]{2}:){5}[0-9a-f]{2}\Z")
#: A shell and systemd both read the file, and systemd splits at blanks.
_HARMLESS_PATH = re.compile(r"^/[A-Za-z0-9_.+:@,=%/-]+\Z")


@frozen
class AoeTargetSpec:
    """One entry of ``aoe_targets``."""

    shelf: int
    slot: int
    interface: str
    device: str = ""
    direct: bool = True
    sync: bool = False
    read_only: bool = False
    macs: tuple[str, ...] = ()
    buffers: int = DEFAULT_BUFFERS
    present: bool = True
    allow_ignored_flushes: bool = False

    @property
    def address(self) -> str:
        """``e7.1``."""
        return f"e{self.shelf}.{self.slot}"

    @property
    def item(self) -> str:
        """What messages call it."""
        return f"{self.address} on {self.interface}"

    def as_export(self) -> AoeExport:
        """What should run."""
        return AoeExport(self.shelf, self.slot, self.interface, self.device, self.direct, self.sync, self.read_only, self.buffers, self.macs)


@frozen
class AoeTargetsSpec:
    """All of them. ``receive_buffer``: bytes that a socket may have, or None for what the kernel has."""

    targets: tuple[AoeTargetSpec, ...] = ()
    receive_buffer: int | None = None


def read_spec(entries: t.Sequence[t.Mapping[str, t.Any]] | None, receive_buffer: int | None = None) -> AoeTargetsSpec:
    """The specification from ``aoe_targets``.

    :raises BadInput: for an entry that is invalid, or two that contradict each other.
    """
    if receive_buffer is not None and not 4096 <= receive_buffer <= 1 << 30:
        raise BadInput(f"aoe_receive_buffer is a number of bytes from 4096 to {1 << 30}, and not {receive_buffer}.", item="rmem_max")
    specs = [_read_entry(entry) for entry in entries or ()]
    seen: dict[str, AoeTargetSpec] = {}
    for spec in specs:
        if any(other.item == spec.item for other in seen.values()):
            raise BadInput(f"{spec.item} is listed twice under aoe_targets: name it once.", item=spec.item)
        other = next((one for one in seen.values() if one.address == spec.address and one.present and spec.present), None)
        # One address on two interfaces is one target that is reached on two ways.
        if other is not None and other.device != spec.device:
            raise BadInput(f"{spec.address} cannot be both {other.device} and {spec.device}: give one of them another shelf or slot.", item=spec.item)
        seen[spec.item] = spec
    return AoeTargetsSpec(tuple(specs), receive_buffer)


def _read_entry(entry: t.Mapping[str, t.Any]) -> AoeTargetSpec:
    words = {name: value for name, value in entry.items() if name not in ("state", "macs") and value is not None}
    macs = tuple(mac.lower() for mac in entry.get("macs") or ())
    spec = AoeTargetSpec(**words, macs=macs, present=entry.get("state", "present") == "present")
    if not 0 <= spec.shelf < _SHELVES or not 0 <= spec.slot < _SLOTS:
        raise BadInput(f"{spec.item}: a shelf is a number from 0 to {_SHELVES - 1} and a slot one from 0 to {_SLOTS - 1}.", item=spec.item)
    if not _INTERFACE.match(spec.interface):
        raise BadInput(f"{spec.item}: '{spec.interface}' is not the name of a network interface.", item=spec.item)
    if spec.present and not spec.device:
        raise BadInput(f"{spec.item}: name the device to serve.", item=spec.item)
    if spec.present and not _HARMLESS_PATH.match(spec.device):
        raise BadInput(
            f"{spec.item}: {spec.device!r} cannot be written into a file of vblade: name an absolute path without blanks and quotes.", item=spec.item
        )
    if not 1 <= spec.buffers <= 4096:
        raise BadInput(f"{spec.item}: buffers is a number of frames from 1 to 4096, and not {spec.buffers}.", item=spec.item)
    wrong = [mac for mac in macs if not _MAC.match(mac)]
    if wrong or len(macs) > _MASKS:
        raise BadInput(f"{spec.item}: macs are up to {_MASKS} addresses such as 00:11:22:aa:bb:cc{f', and not {wrong[0]}' if wrong else ''}.", item=spec.item)
    return spec
