# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The AoE targets in sysfs, as seen by the initiator of this host.

Source: ``Documentation/admin-guide/aoe/aoe.rst`` of the kernel and ``drivers/block/aoe/aoeblk.c`` (attributes ``state``, ``mac``, ``netif``, ``payload``).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number

if t.TYPE_CHECKING:
    from pathlib import Path

_DEVICE = re.compile(r"^etherd!(e\d+\.\d+)$")


@frozen
class AoeDevice:
    """One target as seen by the initiator of this host.

    :param name: ``e7.1``.
    :param interfaces: over which it is reached.
    :param payload: bytes of data in a full frame as negotiated; None if the driver does not report it.
    :param state: ``up``, ``down``, and what follows after a comma: ``down,closewait`` is in use and gone.
    """

    name: str
    interfaces: tuple[str, ...] = ()
    payload: int | None = None
    state: str = "up"
    mac: str = ""

    @property
    def up(self) -> bool:
        return self.state.split(",", 1)[0] == "up"

    @property
    def node(self) -> str:
        return f"/dev/etherd/{self.name}"


def read_aoe_devices(root: Path) -> list[AoeDevice]:
    """Every target of the initiator, by name."""
    folder = root / "sys/block"
    names = sorted(place.name for place in folder.glob("etherd!*")) if folder.is_dir() else []
    found = [read_aoe_device(root, name) for name in names]
    return [device for device in found if device is not None]


def read_aoe_device(root: Path, kernel_name: str) -> AoeDevice | None:
    """One target by its kernel name, ``etherd!e7.1``; None if that is none, or has gone."""
    match = _DEVICE.match(kernel_name)
    place = root / "sys/block" / kernel_name
    if match is None or not place.exists():
        return None
    return AoeDevice(
        name=match.group(1),
        interfaces=tuple(name for name in re.split(r"[,\s]+", read_attribute(place / "netif") or "") if name and name != "none"),
        payload=read_number(place / "payload"),
        state=read_attribute(place / "state") or "unknown",
        mac=with_colons(read_attribute(place / "mac") or ""),
    )


def read_mtu(root: Path, interface: str) -> int | None:
    """The MTU of a network interface; None if it is not there."""
    return read_number(root / "sys/class/net" / interface / "mtu")


def with_colons(mac: str) -> str:
    """A MAC address with colons, from one with or without them."""
    digits = mac.replace(":", "").lower()
    return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))
