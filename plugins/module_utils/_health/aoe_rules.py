# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frames of ATA over Ethernet that do not fit the blocks of a cache: findings about them.

A frame whose data are no multiple of the block begins inside a block and ends inside another, so a cache that takes whole blocks
only receives pieces (field case C: 8704 bytes at an MTU of 9000, and 93% of the requests uncacheable). That happens on a target whose
cache is served, and on an initiator whose cache sends to a target.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import AoeExport, served_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import BLOCK, JUMBO, best_mtu, payload
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import AoeDevice, read_aoe_devices, read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.diagnosis import Diagnosis

CHECK = "aoe_frames"
#: With a smaller measured share of pieces than this, percent, initiators send smaller frames than this side would take.
_HARMLESS = 5.0
#: What an Ethernet frame has beyond the MTU: 14 bytes of header and 4 of checksum.
_ETHERNET = 18


@frozen
class AoeSight:
    """The AoE of one host.

    :param devices: targets of its initiator.
    :param exports: by kernel name, what serves a device to others.
    :param mtus: by the names of the interfaces of both.
    """

    devices: tuple[AoeDevice, ...] = ()
    exports: t.Mapping[str, t.Sequence[AoeExport]] = field(default_factory=dict)
    mtus: t.Mapping[str, int | None] = field(default_factory=dict)


def read_sight(devices: Devices, root: Path) -> AoeSight:
    """From sysfs and the process list; starts no command."""
    targets = tuple(read_aoe_devices(root))
    exports = served_devices(devices, root)
    names = {name for target in targets for name in target.interfaces} | {export.interface for served in exports.values() for export in served}
    return AoeSight(targets, exports, {name: read_mtu(root, name) for name in sorted(names)})


def aoe_findings(sight: AoeSight, devices: Devices, caches: t.Sequence[CacheState], diagnoses: t.Mapping[str, Diagnosis]) -> t.Iterator[Finding]:
    """Caches whose blocks do not fit the frames below or above them, and targets without a cache whose frames do not fit pages.

    :param diagnoses: by what :func:`readings.key_of` calls the caches: ``type name``.
    """
    reported: set[str] = set()
    for cache in caches:
        diagnosis = diagnoses.get(f"{cache.type} {cache.name}")
        for target in _targets_below(sight, devices, cache):
            # A cache of smaller blocks takes such frames; that they do not fit pages is still reported.
            found = list(_below(sight, cache, target, diagnosis))
            reported.update(target.name for _finding in found)
            yield from found
        for export in _exports_above(sight, devices, cache):
            yield from _above(sight, cache, export, diagnosis)
    for target in sight.devices:
        if target.name not in reported and target.payload is not None and target.payload % BLOCK:
            words = f"{target.name}: its frames carry {target.payload} bytes over {_interfaces(sight, target)}, not a multiple of {format_size(BLOCK)}"
            yield Finding("info", target.name, CHECK, f"{words}: {_advice(sight, target.interfaces, BLOCK)}", target.payload, BLOCK)


def with_aoe(findings: t.Sequence[Finding], found: t.Iterable[Finding], caches: t.Sequence[CacheState], diagnoses: t.Mapping[str, Diagnosis]) -> list[Finding]:
    """All findings, with one line for one fault: what the histogram shows of frames is merged where the frames are known."""
    aoe = list(found)
    known = {finding.subject for finding in aoe if finding.severity == "warning"}
    framed = {cache.name for cache in caches if getattr(diagnoses.get(f"{cache.type} {cache.name}"), "pattern", "") == "frames"}
    return [*(one for one in findings if not (one.check == "cache_uncacheable" and one.subject in known & framed)), *aoe]


def _targets_below(sight: AoeSight, devices: Devices, cache: CacheState) -> list[AoeDevice]:
    origin = devices.get(cache.origin_name or "")
    names = {one.name for one in (origin, *devices.parents(origin))} if origin is not None else set()
    return [target for target in sight.devices if f"etherd!{target.name}" in names]


def _exports_above(sight: AoeSight, devices: Devices, cache: CacheState) -> list[AoeExport]:
    """What serves the cached device, or something on it."""
    cached = devices.get(cache.device_name or "")
    names = {one.name for one in (cached, *devices.children(cached))} if cached is not None else set()
    unique = {(export.address, export.interface): export for name in sorted(names) for export in sight.exports.get(name, ())}
    return list(unique.values())


def _below(sight: AoeSight, cache: CacheState, target: AoeDevice, diagnosis: Diagnosis | None) -> t.Iterator[Finding]:
    block = _granule(cache)
    if target.payload is None or target.payload % block == 0:
        return
    words = (
        f"{cache.type} {cache.name}: its origin is on {target.name}, whose frames carry {target.payload} bytes over {_interfaces(sight, target)},"
        f" no multiple of {_label(cache, block)}{_share(diagnosis)}: {_advice(sight, target.interfaces, block)}"
    )
    yield Finding("warning", cache.name, CHECK, words, target.payload, block)


def _above(sight: AoeSight, cache: CacheState, export: AoeExport, diagnosis: Diagnosis | None) -> t.Iterator[Finding]:
    block, mtu = _granule(cache), sight.mtus.get(export.interface)
    if mtu is None or payload(mtu) % block == 0:
        return
    words = (
        f"{cache.type} {cache.name}: it is served as {export.address} in frames of up to {payload(mtu)} bytes over {export.interface} (MTU {mtu}),"
        f" no multiple of {_label(cache, block)}{_share(diagnosis)}: {_advice(sight, (export.interface,), block)}"
    )
    share = diagnosis.uncacheable_percent if diagnosis is not None and diagnosis.since != "load" and diagnosis.requests else None
    yield Finding("info" if share is not None and share < _HARMLESS else "warning", cache.name, CHECK, words, payload(mtu), block)


def _granule(cache: CacheState) -> int:
    """What a frame has to be a multiple of: the block, where only whole ones are cached; else the page, or a smaller block."""
    size = cache.block_size or BLOCK
    if size % 512:
        return BLOCK
    return size if type_of(cache.type).whole_blocks else min(size, BLOCK)


def _label(cache: CacheState, granule: int) -> str:
    """What a frame is no multiple of."""
    return f"its blocks of {format_size(granule)}" if granule == cache.block_size else f"{format_size(granule)}, the page size of its requests"


def _interfaces(sight: AoeSight, target: AoeDevice) -> str:
    return " and ".join(f"{name} (MTU {sight.mtus.get(name) or 'unknown'})" for name in target.interfaces) or "an unknown interface"


def _share(diagnosis: Diagnosis | None) -> str:
    if diagnosis is None or diagnosis.uncacheable_percent is None or not diagnosis.requests:
        return ""
    since = " since the cache was loaded" if diagnosis.since == "load" else ""
    return f", and {diagnosis.uncacheable_percent:g}% of {diagnosis.requests} requests{since} could not be cached for their size"


def _advice(sight: AoeSight, interfaces: t.Sequence[str], block: int) -> str:
    limit = max([JUMBO, *(mtu for mtu in (sight.mtus.get(name) for name in interfaces) if mtu)])
    try:
        mtu = best_mtu(limit, block)
    except BadInput:
        return f"no MTU up to {limit} carries such a block, so make the cache with blocks of {format_size(BLOCK)}."
    where = " and ".join(interfaces) or "the interface"
    return (
        f"set the MTU {mtu} on {where} and on the interface of the other side, for frames of {payload(mtu)} bytes; every switch port between must accept"
        f" frames of {mtu + _ETHERNET} bytes (role storage_network, purpose aoe)."
    )
