# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hdparm, sdparm and nvme print of the write cache of drives.

Exit statuses of these tools are no proof of anything: every parser reads the value printed.
"""

from __future__ import annotations

import json
import re

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DISABLED, ENABLED

_HDPARM_VALUE = re.compile(r"^\s*write-caching\s*=\s*(?:(?P<on>1)\s*\(on\)|(?P<off>0)\s*\(off\)|(not supported))\s*$")
_HDPARM_DEVICE = re.compile(r"^(/\S+):\s*$")
_SDPARM_DEVICE = re.compile(r"^\s+(/\S+): ")
_SDPARM_VALUE = re.compile(r"^\s*WCE\s+([01])(?:\s+\[cha: (y|n)(?:, def:\s*(\d+))?(?:, sav:\s*(\S+?))?\])?\s*$")
_NVME_VALUE = re.compile(r"get-feature:\s*(?:0x)?0*6\s[^\n]*Current value:\s*(0x[0-9a-fA-F]+|0+)(?![^\s,])")
_NVME_VERBOSE = re.compile(r"\(WCE\):\s*(Enabled|Disabled)")


def parse_hdparm(text: str) -> dict[str, str | None]:
    """``hdparm -W`` (read or set, one device or several) as ``{device: enabled, disabled or None}``.

    Each device has a section that begins with ``/dev/sda:``. ``None`` means that hdparm did not report it: it printed
    ``not supported`` (USB, virtio-scsi, RAID volumes; exit status 0 all the same) or nothing at all (NVMe, virtio-blk, md,
    dm, bcache, loop; exit status 0 too), or two values in one section, of which one belongs to a device whose heading is lost.
    Source: hdparm 9.65, function process_dev, and captured output.
    """
    found: dict[str, list[str | None]] = {}
    device = None
    for line in text.splitlines():
        head = _HDPARM_DEVICE.match(line)
        if head:
            device = head.group(1)
            found[device] = []
            continue
        value = _HDPARM_VALUE.match(line)
        if value and device is not None:
            found[device].append(ENABLED if value["on"] else DISABLED if value["off"] else None)
    return {device: values[0] if len(values) == 1 else None for device, values in found.items()}


@frozen
class CachingPage:
    """The WCE bit of the SCSI caching mode page. ``saved`` is ``None`` if the drive keeps no saved page."""

    enabled: bool
    changeable: bool = True
    default: bool | None = None
    saved: bool | None = None


def parse_sdparm(text: str) -> dict[str, CachingPage]:
    """``sdparm --get=WCE`` of one or several devices as ``{device: page}``; devices without a value are left out.

    A section begins with ``    /dev/sdb: VENDOR    MODEL``, the value is ``WCE           1  [cha: y, def:  1, sav:  1]``.
    The exit status is 5 for a drive without a saved page although the value is right. Source: sdparm(8) 1.12 and captured output.
    """
    found: dict[str, CachingPage] = {}
    twice = set()
    device = None
    for line in text.splitlines():
        head = _SDPARM_DEVICE.match(line)
        if head:
            device = head.group(1)
            continue
        value = _SDPARM_VALUE.match(line)
        if value and device is not None:
            if device in found:
                # One of them belongs to a device whose heading is lost.
                twice.add(device)
            current, changeable, default, saved = value.groups()
            found[device] = CachingPage(
                enabled=current == "1",
                changeable=changeable != "n",
                default=None if default is None else default == "1",
                saved=None if saved in (None, "n") else saved == "1",
            )
    return {device: page for device, page in found.items() if device not in twice}


def parse_nvme_controller(text: str) -> bool:
    """Whether a controller has a volatile write cache: bit 0 of ``vwc`` in ``nvme id-ctrl --output-format=json``.

    A cache that survives a power loss is not volatile, so a drive with power-loss protection may report none (NVMe base
    specification, Identify Controller). The other bits concern the flush command.

    :raises NotUnderstood: if it is not that JSON.
    """
    try:
        return bool(int(json.loads(text)["vwc"]) & 1)
    except (ValueError, KeyError, TypeError):
        raise NotUnderstood(f"The output of nvme id-ctrl has no field vwc; it begins with '{_first_line(text)}'.") from None


def parse_nvme_feature(text: str) -> bool:
    """Whether feature 6 (Volatile Write Cache) is enabled, from ``nvme get-feature``.

    ``get-feature:0x06 (Volatile Write Cache), Current value:0x00000001``; nought is printed as ``00000000``, without ``0x``
    (nvme-cli 2.3; version 1 writes ``0x6`` and fewer digits). With -H there is a second line
    ``Volatile Write Cache Enable (WCE): Enabled``.

    :raises NotUnderstood: if no current value of this feature is printed, one with reserved bits, or two that contradict each other.
    """
    value, verbose = _NVME_VALUE.search(text), _NVME_VERBOSE.search(text)
    reported: set[bool | None] = {{0: False, 1: True}.get(int(value.group(1), 16))} if value else set()
    reported |= {verbose.group(1) == "Enabled"} if verbose else set()
    if reported in ({True}, {False}):
        return True in reported
    raise NotUnderstood(f"The output of nvme get-feature holds no clear value; it begins with '{_first_line(text)}'.")


def _first_line(text: str) -> str:
    return next((line.strip()[:80] for line in text.splitlines() if line.strip()), "")
