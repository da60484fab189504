# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What LVM reports, as data: pure parsers of ``lvm fullreport`` (and of ``lvs``, ``pvs``) with ``--reportformat json``.

Sources: lvmreport(7), lvm-fullreport(8), ``lvs -o help``, ``pvs -o help``; every value is a string, an empty one means "does not apply", sizes
are bytes (``--units b --nosuffix``), names of hidden volumes stand in brackets, and a volume of several segments has
several rows.
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

_FORMAT = ("--reportformat", "json", "--units", "b", "--nosuffix")
_LV_FIELDS = (
    "lv_full_name",
    "lv_name",
    "lv_uuid",
    "lv_attr",
    "segtype",
    "lv_role",
    "lv_size",
    "pool_lv",
    "origin",
    "lv_tags",
    "lv_active",
    "cache_mode",
    "cache_policy",
    "cache_settings",
    "kernel_cache_policy",
    "kernel_cache_settings",
    "chunk_size",
    "cache_total_blocks",
    "cache_used_blocks",
    "cache_dirty_blocks",
    "lv_health_status",
    "lv_check_needed",
    "copy_percent",
    "writecache_total_blocks",
    "writecache_free_blocks",
    "writecache_error",
    "writecache_block_size",
    "devices",
)
_PV_FIELDS = ("pv_name", "pv_uuid", "vg_name", "pv_attr", "pv_size", "pv_free", "vg_extent_size", "pe_start")

#: Fields of dm-writecache, which an older LVM does not have, or not all of them: 2.03.11 lacks ``writecache_block_size``.
NEWER_FIELDS = ("writecache_total_blocks", "writecache_free_blocks", "writecache_error", "writecache_block_size")
_UNRECOGNISED = re.compile(r"Unrecognised field: (\w+)")


def report_command(without: t.Container[str] = ()) -> tuple[str, ...]:
    """Everything in one scan of the disks: lvs and pvs would each scan them again. A part that is left out is printed in full.

    :param without: fields of volumes that this LVM does not have.
    """
    return (
        "lvm",
        "fullreport",
        "-a",
        *_FORMAT,
        *("--configreport", "vg", "-o", "vg_name"),
        *("--configreport", "pv", "-o", ",".join(_PV_FIELDS)),
        *("--configreport", "lv", "-o", "lv_name"),
        *("--configreport", "pvseg", "-o", "pvseg_start"),
        *("--configreport", "seg", "-o", ",".join(field for field in _LV_FIELDS if field not in without)),
    )


#: The report with all fields.
REPORT = report_command()


def fields_not_recognised(text: str) -> frozenset[str]:
    """The fields that LVM does not have, as its messages name them: a list of all that it has, and then the first one that it does not have."""
    return frozenset(_UNRECOGNISED.findall(text))


_DEVICE = re.compile(r"^(.+)\((\d+)\)$")


@frozen
class LogicalVolume:
    """One logical volume, hidden ones included. Sizes in bytes, blocks as the kernel counts them (chunks of the cache).

    ``devices`` are what its extents lie on: device paths, names of hidden volumes, or ``[unknown]`` for a missing device.
    ``dirty`` is None where the kernel was not queried: an inactive volume. Of a cache that has failed LVM reports 0: only what
    the kernel itself reports about dirty blocks is used for a proof. ``chunk_size`` of a writecache is its block size, None if LVM does not report it.
    ``synced`` is the share of a RAID volume that both sides hold, in per cent, None where nothing is to be in step.
    ``first_extent`` is where it begins on the first of its devices.
    """

    vg: str
    name: str
    uuid: str | None
    attr: str
    segtype: str
    size: int
    hidden: bool = False
    roles: tuple[str, ...] = ()
    pool: str | None = None
    origin: str | None = None
    tags: tuple[str, ...] = ()
    cache_mode: str | None = None
    policy: str | None = None
    settings: t.Mapping[str, str] | None = None
    kernel_policy: str | None = None
    kernel_settings: t.Mapping[str, str] | None = None
    chunk_size: int | None = None
    total_blocks: int | None = None
    used_blocks: int | None = None
    dirty: int | None = None
    health: str | None = None
    check_needed: str | None = None
    synced: float | None = None
    errors: int | None = None
    devices: tuple[str, ...] = ()
    first_extent: int | None = None

    @property
    def full_name(self) -> str:
        return f"{self.vg}/{self.name}"

    @property
    def cached(self) -> bool:
        """Whether this is the volume that a cache serves (and not its pool, whose row repeats the same figures)."""
        return self.segtype in ("cache", "writecache")

    @property
    def writecache(self) -> bool:
        """Whether the cache is dm-writecache."""
        return self.segtype == "writecache"

    @property
    def mode(self) -> str:
        """The mode that LVM has stored; it has a word for it only with dm-cache."""
        return "writeback" if self.writecache else self.cache_mode or "writethrough"

    @property
    def active(self) -> bool:
        """The fifth character of ``lv_attr``: a = active; s and the like are states that need a manual action."""
        return self.attr[4:5] == "a"

    @property
    def suspended(self) -> bool:
        """Whether it takes requests and answers none: a command of LVM was killed in the middle of a change."""
        return self.attr[4:5] in ("s", "S")

    @property
    def partial(self) -> bool:
        """Whether a device under it is missing."""
        return self.attr[8:9] == "p" or self.health == "partial"


@frozen
class PhysicalVolume:
    """One physical volume. ``vg`` is None for one that belongs to no volume group yet. Sizes in bytes; ``data_start`` is where its first extent begins."""

    path: str
    uuid: str | None
    vg: str | None
    attr: str
    size: int
    free: int
    extent_size: int
    data_start: int | None = None

    @property
    def missing(self) -> bool:
        return self.attr[2:3] == "m"

    @property
    def allocatable(self) -> bool:
        return self.attr[0:1] == "a"


@frozen
class Report:
    """Every logical and physical volume of the host."""

    volumes: tuple[LogicalVolume, ...]
    physical: tuple[PhysicalVolume, ...]


def parse_report(text: str) -> Report:
    """The output of :data:`REPORT`.

    :raises NotUnderstood: quoting the line that is not what LVM prints.
    """
    return Report(parse_logical_volumes(text), parse_physical_volumes(text))


def parse_logical_volumes(text: str) -> tuple[LogicalVolume, ...]:
    """The segments of :data:`REPORT`, or what lvs prints with the same fields.

    :raises NotUnderstood: quoting the line that is not what LVM prints.
    """
    found: dict[str, LogicalVolume] = {}
    for row in _rows(text, "seg", "lv"):
        volume = _logical_volume(row)
        known = found.get(volume.full_name)
        if known is not None:
            # One row per segment: a volume that was extended lies on the devices of all of them.
            volume = replace(known, devices=tuple(dict.fromkeys(known.devices + volume.devices)))
        found[volume.full_name] = volume
    return tuple(found.values())


def parse_physical_volumes(text: str) -> tuple[PhysicalVolume, ...]:
    """The physical volumes of :data:`REPORT`, or what pvs prints with the same fields.

    :raises NotUnderstood: quoting the line that is not what LVM prints.
    """
    return tuple(
        PhysicalVolume(
            path=_required(row, "pv_name"),
            uuid=row.get("pv_uuid") or None,
            vg=row.get("vg_name") or None,
            attr=_required(row, "pv_attr"),
            size=_required_number(row, "pv_size"),
            free=_required_number(row, "pv_free"),
            extent_size=_number(row, "vg_extent_size") or 0,
            data_start=_number(row, "pe_start"),
        )
        for row in _rows(text, "pv")
    )


def _logical_volume(row: t.Mapping[str, str]) -> LogicalVolume:
    total, free = _number(row, "writecache_total_blocks"), _number(row, "writecache_free_blocks")
    # Whatever is in a writecache is dirty: it holds nothing else.
    held = None if total is None or free is None else total - free
    extents = _extents(row.get("devices"))
    vg, slash, name = _required(row, "lv_full_name").partition("/")
    if not slash:
        raise NotUnderstood(f"LVM printed a logical volume without its volume group: {json.dumps(row)}")
    return LogicalVolume(
        vg=vg,
        name=name,
        uuid=row.get("lv_uuid") or None,
        attr=_required(row, "lv_attr"),
        segtype=_required(row, "segtype"),
        size=_required_number(row, "lv_size"),
        hidden=_required(row, "lv_name").startswith("["),
        roles=_words(row.get("lv_role")),
        pool=_without_brackets(row.get("pool_lv")),
        origin=_without_brackets(row.get("origin")),
        tags=_words(row.get("lv_tags")),
        cache_mode=row.get("cache_mode") or None,
        policy=row.get("cache_policy") or None,
        settings=_settings(row, "cache_settings"),
        kernel_policy=row.get("kernel_cache_policy") or None,
        kernel_settings=_settings(row, "kernel_cache_settings"),
        chunk_size=_number(row, "chunk_size") or _number(row, "writecache_block_size"),
        total_blocks=_number(row, "cache_total_blocks") if total is None else total,
        used_blocks=_number(row, "cache_used_blocks") if held is None else held,
        dirty=_number(row, "cache_dirty_blocks") if held is None else held,
        health=row.get("lv_health_status") or None,
        check_needed=row.get("lv_check_needed") or None,
        # Of a cached volume the same field is the dirty share of the cache.
        synced=_share(row, "copy_percent") if row.get("segtype", "").startswith("raid") else None,
        errors=_number(row, "writecache_error"),
        devices=tuple(dict.fromkeys(name for name, _extent in extents)),
        first_extent=extents[0][1] if extents else None,
    )


def _rows(text: str, *kinds: str) -> t.Iterator[t.Mapping[str, str]]:
    """The rows of one kind in every part of a report: of the first of ``kinds`` that there is."""
    try:
        parts = json.loads(text)["report"]
        kind = next((kind for kind in kinds if any(kind in part for part in parts)), kinds[-1])
        rows = [row for part in parts for row in part.get(kind, [])]
    except (ValueError, KeyError, TypeError, AttributeError):
        line = next((line.strip() for line in text.splitlines() if line.strip(" \t{}[]")), "nothing")
        raise NotUnderstood(f"LVM did not print a report in JSON, but: {line[:200]}") from None
    for row in rows:
        if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
            raise NotUnderstood(f"LVM printed a row that is not made of strings: {json.dumps(row)[:200]}")
        yield row


def _required(row: t.Mapping[str, str], field: str) -> str:
    value = row.get(field)
    if not value:
        raise NotUnderstood(f"LVM reported no {field} in: {json.dumps(row)[:300]}")
    return value


def _required_number(row: t.Mapping[str, str], field: str) -> int:
    _required(row, field)
    value = _number(row, field)
    if value is None:
        raise NotUnderstood(f"LVM reported a negative {field} in: {json.dumps(row)[:300]}")
    return value


def _number(row: t.Mapping[str, str], field: str) -> int | None:
    """A count or a size; empty and ``-1`` mean that it does not apply."""
    value = row.get(field) or ""
    if value in ("", "-1"):
        return None
    if not value.isdigit():
        raise NotUnderstood(f"LVM reported {field} as '{value}', which is not a whole number, in: {json.dumps(row)[:300]}")
    return int(value)


def _share(row: t.Mapping[str, str], field: str) -> float | None:
    text = row.get(field) or ""
    try:
        return float(text) if text else None
    except ValueError:
        raise NotUnderstood(f"LVM reported {field} as '{text}', which is not a percentage, in: {json.dumps(row)[:300]}") from None


def _without_brackets(name: str | None) -> str | None:
    """A name without the brackets of a hidden volume."""
    return name.strip("[]") if name else None


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (text or "").split(",") if word)


def _settings(row: t.Mapping[str, str], field: str) -> dict[str, str]:
    settings = {}
    for pair in _words(row.get(field)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise NotUnderstood(f"LVM reported {field} as '{row[field]}', which is not a list of key=value.")
        settings[key] = value
    return settings


def _extents(text: str | None) -> list[tuple[str, int]]:
    """``/dev/sdb(1),/dev/sdc(0)``: what a volume lies on, and from which extent on."""
    found = []
    for word in _words(text):
        match = _DEVICE.match(word)
        if not match:
            raise NotUnderstood(f"LVM reported the devices of a volume as '{text}', which is not a list of name(extent).")
        found.append((match.group(1), int(match.group(2))))
    return found
