# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the counters of a host were at one moment, kept so that a later reading can show what happened in between.

A reading is plain data: a run returns it, and the next one gets it back. Nothing in one is trusted, for it lay in a file.

Source: Documentation/block/stat.rst (``/sys/class/block/*/stat``: requests, merges and sectors of 512 bytes, read and written).
"""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import dirty_share
from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth

VERSION = 1
#: How many readings the average of dirty blocks reaches back.
_KEPT = 24


@frozen
class Traffic:
    """The requests to one block device, since boot or between two readings. Sizes in bytes."""

    reads: int = 0
    reads_merged: int = 0
    read_bytes: int = 0
    writes: int = 0
    writes_merged: int = 0
    written_bytes: int = 0

    @property
    def requests(self) -> int:
        return self.reads + self.writes

    @property
    def mean_read(self) -> float | None:
        return self.read_bytes / self.reads if self.reads else None

    @property
    def mean_write(self) -> float | None:
        return self.written_bytes / self.writes if self.writes else None

    def minus(self, other: Traffic) -> Traffic | None:
        """What happened since ``other``; None if a counter fell, as after a reload of the device."""
        pairs = [(name, value - getattr(other, name)) for name, value in vars(self).items()]
        return None if any(value < 0 for _name, value in pairs) else Traffic(**dict(pairs))


@frozen
class CacheReading:
    """The counters of one cache. ``traffic`` is by kernel name, of the cached device and of all below it."""

    counters: t.Mapping[str, int] = field(default_factory=dict)
    histogram: t.Mapping[int, int] = field(default_factory=dict)
    traffic: t.Mapping[str, Traffic] = field(default_factory=dict)
    dirty_shares: tuple[float, ...] = ()


@frozen
class Readings:
    """One reading of a host. ``time`` in seconds since 1970; ``boot`` identifies one run of the kernel.

    ``zfs`` are counters of ZFS; ``problems`` what was a problem then, one word for each (:attr:`Finding.key`).
    """

    time: float = 0.0
    boot: str = ""
    caches: t.Mapping[str, CacheReading] = field(default_factory=dict)
    drives: t.Mapping[str, t.Mapping[str, int]] = field(default_factory=dict)
    zfs: t.Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, t.Any]:
        """What :func:`from_plain` reads again."""
        caches = {
            name: {
                "counters": dict(one.counters),
                "histogram": {str(size): count for size, count in sorted(one.histogram.items())},
                "traffic": {device: dataclasses.asdict(traffic) for device, traffic in sorted(one.traffic.items())},
                "dirty_shares": list(one.dirty_shares),
            }
            for name, one in sorted(self.caches.items())
        }
        return {
            "version": VERSION,
            "time": self.time,
            "boot": self.boot,
            "caches": caches,
            "drives": {name: dict(row) for name, row in sorted(self.drives.items())},
            "zfs": dict(self.zfs),
            "problems": list(self.problems),
        }


def key_of(cache: CacheState) -> str:
    """What a cache is called in readings."""
    return f"{cache.type} {cache.name}"


def take(
    caches: t.Iterable[CacheState], drives: t.Iterable[DriveHealth], root: Path, now: float, previous: Readings | None = None, *, keep_average: bool = True
) -> Readings:
    """One reading of the counters.

    :param previous: whose dirty shares are carried on.
    :param keep_average: whether this reading counts for the average of dirty blocks.
    """
    before = previous.caches if previous is not None else {}
    readings = {}
    for cache in caches:
        key = key_of(cache)
        shares = before[key].dirty_shares if key in before else ()
        share = dirty_share(cache)
        if keep_average and share is not None:
            shares = (*shares, round(share, 4))[-_KEPT:]
        names = {name for name in (cache.device_name, cache.origin_name, *cache.cache_device_names) if name}
        traffic = {name: found for name, found in ((name, read_traffic(root, name)) for name in names) if found is not None}
        readings[key] = CacheReading(dict(cache.counters), dict(cache.histogram), traffic, shares)
    counted = {
        drive.serial or drive.path: {name: value for name in ("reallocated", "media_errors") for value in [getattr(drive, name)] if value is not None}
        for drive in drives
    }
    return Readings(now, _boot(root), readings, {name: row for name, row in counted.items() if row})


def read_traffic(root: Path, name: str) -> Traffic | None:
    """The statistics of one block device since boot; None if there are none."""
    try:
        words = [int(word) for word in (root / "sys/class/block" / name / "stat").read_text().split()]
    except (OSError, ValueError):
        return None
    if len(words) < 8:
        return None
    return Traffic(words[0], words[1], words[2] * SECTOR, words[4], words[5], words[6] * SECTOR)


def _boot(root: Path) -> str:
    try:
        return read_file(root / "proc/sys/kernel/random/boot_id").strip()
    except StorageError:
        return ""


def from_file(path: str, root: Path) -> tuple[Readings | None, str]:
    """The readings in a file, or none with the reason; no file is no reason."""
    try:
        text = read_file(root / path.lstrip("/"))
    except StorageError as error:
        return None, error.message
    if not text.strip():
        return None, ""
    try:
        return from_dict(json_text.loads(text, json_text.FIO)), ""
    except (ValueError, NotUnderstood):
        return None, f"{path} holds no readings of an earlier run, so that nothing is compared with it: this run replaces it."


def from_dict(value: t.Any) -> Readings:
    """Readings of an earlier run.

    :raises ValueError: if they are none, or of another version.
    """
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise ValueError("not readings of this version")
    try:
        caches = {
            str(name): CacheReading(
                counters=_counts(one["counters"]),
                histogram={int(size): count for size, count in _counts(one["histogram"]).items()},
                traffic={str(device): Traffic(**_counts(row)) for device, row in one["traffic"].items()},
                dirty_shares=tuple(float(share) for share in one["dirty_shares"])[-_KEPT:],
            )
            for name, one in value["caches"].items()
        }
        drives = {str(name): _counts(row) for name, row in value["drives"].items()}
        problems = tuple(str(key) for key in value.get("problems", ()))
        return Readings(float(value["time"]), str(value["boot"]), caches, drives, _counts(value.get("zfs", {})), problems)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not readings: {error}") from None


def _counts(row: t.Mapping[t.Any, t.Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in row.items()}
