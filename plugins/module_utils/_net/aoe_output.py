# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What the AoE initiator of the kernel, aoe-sancheck and the configuration of vblade say. Parsers, and readers of sysfs.

Sources: ``aoedisk_attrs`` of drivers/block/aoe/aoeblk.c (what aoe-stat prints comes from there), aoe-sancheck(8),
vblade-persistence(5).
"""

from __future__ import annotations

import re
import shlex
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood

if t.TYPE_CHECKING:
    from pathlib import Path

_DEVICE = re.compile(r"^etherd!(e\d+\.\d+)$")
_WEAK_PATH = re.compile(r"The path (?P<interface>\S+?)->(?P<mac>[0-9a-fA-F:]+) is only capable of (?P<payload>\d+) byte payloads")
_SANCHECK_ROW = re.compile(r"^(?P<device>e\d+\.\d+)\s+(?P<macs>\d+)\s+(?P<payload>\d+)\s+(?P<interfaces>\S+)\s*$")
_SOCKET = re.compile(r"pid=(\d+),[^\n]*?skmem:\(r\d+,rb(\d+)")
_SANCHECK_SUMMARY = "DEVICE SUMMARY"


@dataclass(frozen=True)
class AoeDevice:
    """One target as the initiator of this host sees it.

    :param name: ``e7.1``.
    :param interfaces: over which it is reached.
    :param payload: bytes of data in a full frame as negotiated; None if the driver does not tell.
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
    """Every target that the initiator knows, by name."""
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
    payload = _text(place / "payload")
    return AoeDevice(
        name=match.group(1),
        interfaces=tuple(name for name in re.split(r"[,\s]+", _text(place / "netif")) if name and name != "none"),
        payload=int(payload) if payload.isdigit() else None,
        state=_text(place / "state") or "unknown",
        mac=_colons(_text(place / "mac")),
    )


def read_mtu(root: Path, interface: str) -> int | None:
    """The MTU of a network interface; None if it is not there."""
    text = _text(root / "sys/class/net" / interface / "mtu")
    return int(text) if text.isdigit() else None


@dataclass(frozen=True)
class SanDevice:
    """One target as aoe-sancheck found it, by sending frames of each size.

    :param payload: bytes of data that got through.
    :param macs: how many addresses it answers from.
    :param weak: the ways that carry less than the interface could: interface, MAC, bytes.
    """

    name: str
    payload: int
    macs: int
    interfaces: tuple[str, ...]
    weak: tuple[tuple[str, str, int], ...] = ()


def parse_sancheck(text: str) -> list[SanDevice]:
    """What ``aoe-sancheck`` of aoetools 36 printed. Its exit status is 0 whatever it found.

    :raises NotUnderstood: if the summary of devices is not there.
    """
    _before, heading, summary = text.partition(_SANCHECK_SUMMARY)
    if not heading:
        first = (text.strip() or "nothing").splitlines()[0]
        raise NotUnderstood(f"aoe-sancheck printed no summary of devices but '{first}': report it with its whole output.")
    found: list[SanDevice] = []
    for line in summary.splitlines():
        row, weak = _SANCHECK_ROW.match(line.strip()), _WEAK_PATH.search(line)
        if row:
            interfaces = tuple(name for name in row.group("interfaces").split(",") if name)
            found.append(SanDevice(row.group("device"), int(row.group("payload")), int(row.group("macs")), interfaces))
        elif weak and found:
            way = (weak.group("interface"), _colons(weak.group("mac")), int(weak.group("payload")))
            found[-1] = SanDevice(**{**vars(found[-1]), "weak": (*found[-1].weak, way)})
    return found


def _colons(mac: str) -> str:
    digits = mac.replace(":", "").lower()
    return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))


def parse_vblade_file(text: str) -> dict[str, str]:
    """The variables of a configuration file of vblade, which both a shell and systemd read (``EnvironmentFile=`` of systemd.exec(5))."""
    values = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and re.match(r"^[A-Za-z_]\w*$", name):
            values[name] = " ".join(_words(value))
    return values


def parse_packet_sockets(text: str) -> dict[int, int]:
    """By process id, the bytes that may wait in its packet socket, from ``ss --packet --memory --processes`` (``rb`` of skmem, ss(8))."""
    return {int(match.group(1)): int(match.group(2)) for match in _SOCKET.finditer(text)}


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except (OSError, ValueError):
        return ""
