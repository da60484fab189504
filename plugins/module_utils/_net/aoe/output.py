# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the AoE initiator of the kernel, aoe-sancheck and the configuration of vblade contain. Parsers, and readers of sysfs.

Sources: ``aoedisk_attrs`` of drivers/block/aoe/aoeblk.c (what aoe-stat prints comes from there), aoe-sancheck(8),
vblade-persistence(5).
"""

from __future__ import annotations

import re
import shlex

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import with_colons

_WEAK_PATH = re.compile(r"The path (?P<interface>\S+?)->(?P<mac>[0-9a-fA-F:]+) is only capable of (?P<payload>\d+) byte payloads")
_SANCHECK_ROW = re.compile(r"^(?P<device>e\d+\.\d+)\s+(?P<macs>\d+)\s+(?P<payload>\d+)\s+(?P<interfaces>\S+)\s*$")
_SOCKET = re.compile(r"pid=(\d+),[^\n]*?skmem:\(r\d+,rb(\d+)")
_SANCHECK_SUMMARY = "DEVICE SUMMARY"


@frozen
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
            way = (weak.group("interface"), with_colons(weak.group("mac")), int(weak.group("payload")))
            found[-1] = SanDevice(**{**vars(found[-1]), "weak": (*found[-1].weak, way)})
    return found


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
