# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is measured, in one hash: the same hash means that a stored result is still valid and need not be measured again.

A stack is hashed as it is set and as it is in effect, without what moves by itself: amounts, counters, temperatures, and the names that
the kernel gives anew at every boot.
"""

from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import what_was_measured

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version

#: Keys of a described stack that change without a change of settings, or that only explain.
_MOVING = frozenset(
    {
        *("used", "dirty", "counters", "histogram", "problem", "read_at", "error", "raw", "cache_reason"),
        *("name", "path", "below", "device", "device_name", "origin", "origin_name", "cache_devices", "cache_device_names", "members"),
        *("reason", "device_loss_reason", "verdict", "unflushed", "device_loss", "charge", "temperature", "sync_action", "array_state", "sync_completed"),
    }
)

#: Attributes of a block device that are cheap to read and show a change of settings.
_ATTRIBUTES = (
    *("size", "ro", "dm/uuid", "dm/suspended", "md/level", "md/degraded", "md/consistency_policy"),
    *(f"queue/{name}" for name in ("scheduler", "nr_requests", "nomerges", "write_cache", "read_ahead_kb", "rq_affinity", "max_sectors_kb", "wbt_lat_usec")),
    *(f"bcache/{name}" for name in ("cache_mode", "sequential_cutoff", "writeback_percent", "writeback_running", "readahead")),
    *("bcache/cache/congested_read_threshold_us", "bcache/cache/congested_write_threshold_us"),
)


def stack_sha256(described: t.Mapping[str, t.Any]) -> str:
    """The hash of what is stable in a device's described stack (``Stack.describe``)."""
    return _sha256(_stable(described))


def _stable(value: t.Any) -> t.Any:
    if isinstance(value, t.Mapping):
        return {str(key): _stable(one) for key, one in value.items() if str(key) not in _MOVING}
    if isinstance(value, (list, tuple)):
        return [_stable(one) for one in value]
    return value


def measurement_sha256(
    workload_sha256: str, target: t.Mapping[str, t.Any], version: Version, stack: str, kind: t.Any = None, others: t.Sequence[t.Mapping[str, t.Any]] = ()
) -> str:
    """The hash of one measurement.

    :param target: as ``meta.json`` describes it; ``others`` likewise, in the order in which the sections name them.
    :param stack: the result of :func:`stack_sha256`.
    :param kind: the parameters of a search or of rounds; ``None`` of an ordinary cell.
    """
    content = {"workload": workload_sha256, "target": list(what_was_measured(target)), "fio": version.text, "stack": stack, "kind": kind}
    return _sha256({**content, "others": [list(what_was_measured(one)) for one in others]} if others else content)


def hash_of_all(hashes: t.Sequence[str]) -> str:
    """One for the stacks of several targets; that of a single one is its own."""
    return hashes[0] if len(hashes) == 1 else _sha256(list(hashes))


def _sha256(content: t.Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def cheap_fingerprint(names: t.Iterable[str], root: Path = Path("/"), tables: str = "") -> str:
    """A hash of what is cheap to read of some devices and differs after their settings were changed.

    :param names: kernel names.
    :param tables: the output of ``dmsetup table``, if any of them is one of device-mapper.
    """
    found: list[str] = []
    for name in sorted(names):
        folder = root / "sys/class/block" / name
        # A partition has the queue of its disk.
        places = [folder, folder / ".."] if (folder / "partition").exists() else [folder]
        found += [f"{name} {attribute} {_text(place / attribute)}" for place in places for attribute in _ATTRIBUTES]
        found += [f"{name} {_text(file)}" for file in sorted(folder.glob("device/scsi_disk/*/cache_type"))]
        mapped = _text(folder / "dm/name")
        found += [line for line in tables.splitlines() if mapped and line.startswith(f"{mapped}: ")]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
