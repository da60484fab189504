# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What certificates have besides judgements, from the measurements of a campaign. Only named fields are taken: nothing else of a host is in them."""

from __future__ import annotations

import functools
import hashlib
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.certificate import Context, Device, Figure, Measured, Value
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_stats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.conditions import label_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS, METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import CONFIDENCE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.host_tables import host_digest

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

#: Names of what the layers of a target were set to, by layer.
_SETTINGS = {
    "drive": ("drive", "kernel"),
    "queue": ("scheduler", "write_cache"),
    "block_cache": ("type", "mode", "policy"),
    "controller": ("controller", "firmware", "write", "read", "drive_cache", "protection"),
    "network": ("mtu",),
}

#: By (host, stack): device, layer, key and value of each setting, as ``Rows.settings``.
Settings = t.Mapping[t.Tuple[str, str], t.Sequence[t.Tuple[str, str, str, str]]]


def context_of(folder: Path, when: str, measurements: t.Iterable[Measurement], settings: Settings) -> Context:
    """The context of the certificates of a campaign.

    :param when: UTC, as ``2026-11-29T12:00:00Z``.
    :param measurements: those of one variant.
    :raises LibraryMissing: without scipy.
    """
    devices: dict[tuple[str, str], Measurement] = {}
    runs: dict[tuple[str, str, str, str], list[Measurement]] = {}
    for one in measurements:
        if one.measured and one.target:
            devices[one.host, one.target] = one
            runs.setdefault((one.host, one.target, one.cell, one.direction or ""), []).append(one)
    # The hash of a version of the tables would change with it.
    hashes = {host: host_digest(folder / host, 0) for host in sorted({one.host for one in devices.values()})}
    whole = hashlib.sha256("".join(f"{host} {digest}\n" for host, digest in hashes.items()).encode()).hexdigest()
    found = (Measured(*key, _conditions(some), _figures(some)) for key, some in runs.items())
    return Context(when, folder.name, whole, hashes, tuple(_device(one, settings) for one in devices.values()), tuple(found))


def _device(one: Measurement, settings: Settings) -> Device:
    values: dict[str, dict[str, None]] = {}
    for _device_name, layer, key, value in settings.get((one.host, one.stack_after or ""), ()):
        if value and key in _SETTINGS.get(layer, ()):
            values.setdefault(label_of(layer, key), {})[value] = None
    facts = (raw or "" for raw in (one.drive, one.model, one.firmware, one.attachment))
    named = {label: ", ".join(sorted(some)) for label, some in values.items()}
    return Device(one.host, one.target or "", *facts, one.target_size, one.kernel or "", one.fio_version or "", named)


def _conditions(runs: t.Sequence[Measurement]) -> dict[str, Value]:
    """Values that the repeats have in common; of others each once."""
    found: dict[str, Value] = {}
    for key in KEYS:
        values = list(dict.fromkeys(getattr(one, key) for one in runs))
        found[key] = values[0] if len(values) == 1 else ", ".join(sorted(map(str, values)))
    return found


def _figures(runs: t.Sequence[Measurement]) -> dict[str, Figure]:
    found = {}
    for name, metric in METRICS.items():
        scale = 1e-6 if metric.column.endswith("_ns") else 1.0
        logs = [math.log(value * scale) for one in runs if (value := getattr(one, metric.column))]
        # Where a repeat has no value, the others are not those of the workload.
        if len(logs) == len(runs):
            found["mean" if name == "latency" else name] = _figure(logs)
    return found


def _figure(logs: t.Sequence[float]) -> Figure:
    count = len(logs)
    mean = math.fsum(logs) / count
    if count < 2:
        return Figure(math.exp(mean), None, None, count)
    half = _student(count - 1) * math.sqrt(math.fsum((one - mean) ** 2 for one in logs) / (count - 1) / count)
    return Figure(math.exp(mean), math.exp(mean - half), math.exp(min(mean + half, 700.0)), count)


@functools.lru_cache(maxsize=256)
def _student(freedom: int) -> float:
    return float(scipy_stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
