# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of the caches of a host as the text that the textfile collector of Prometheus' node exporter reads. Pure.

Source: the text exposition format 0.0.4 (``# HELP``, ``# TYPE``, label values with backslash, quote and newline escaped, a newline at
the very end) and Prometheus' naming practices: base units, ``_total`` for counters, ratios from 0 to 1.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import STATES

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding

_Labels = t.Tuple[t.Tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """One metric: its samples differ in their labels."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[_Labels, float], ...]

    @property
    def text(self) -> str:
        lines = [f"# HELP {self.name} {_escaped_help(self.help)}", f"# TYPE {self.name} {self.kind}"]
        lines += [f"{self.name}{_labels(labels)} {_number(value)}" for labels, value in sorted(self.samples)]
        return "\n".join(lines) + "\n"


def exposition(
    caches: t.Sequence[CacheState], drives: t.Sequence[DriveHealth], reserves: t.Sequence[Reserve], findings: t.Sequence[Finding], unread: int, now: float
) -> str:
    """The whole file. A value that is not known has no sample.

    :param unread: how many things could not be read.
    :param now: seconds since 1970.
    """
    families = [*_of_caches(caches), *_of_drives(drives, reserves), _of_findings(findings)]
    families.append(Family("cachefleet_health_unread", "gauge", "Things that could not be read.", (((), unread),)))
    families.append(Family("cachefleet_health_last_run_timestamp_seconds", "gauge", "When the health of this host was last read.", (((), now),)))
    return "".join(family.text for family in families if family.samples)


def _of_caches(caches: t.Sequence[CacheState]) -> t.Iterator[Family]:
    for name, attribute, text in (
        ("size", "size", "Size of the cache."),
        ("used", "used", "Part of the cache that holds blocks."),
        ("dirty", "dirty", "Part of the cache that the origin does not have yet."),
    ):
        samples = [(_cache_labels(cache), getattr(cache, attribute)) for cache in caches]
        yield Family(f"cachefleet_cache_{name}_bytes", "gauge", text, _known_samples(samples))
    for direction in ("read", "write"):
        names = {"hit": f"{direction}_hits", "miss": f"{direction}_misses", "bypass": f"bypassed_{direction}s"}
        rows = [(cache, result, cache.counters.get(counter)) for cache in caches for result, counter in names.items()]
        samples = [((*_cache_labels(cache), ("result", result)), value) for cache, result, value in rows]
        text = f"Requests to {direction}, by what the cache made of them, since the cache counts."
        yield Family(f"cachefleet_cache_{direction}s_total", "counter", text, _known_samples(samples))
    errors = [((*_cache_labels(cache), ("device", name)), cache.counters.get(f"{name}_errors")) for cache in caches for name in ("cache", "origin")]
    yield Family("cachefleet_cache_errors_total", "counter", "Errors of the cache device or of the origin.", _known_samples(errors))
    states = [((*_cache_labels(cache), ("state", state)), float(cache.state == state)) for cache in caches for state in STATES]
    yield Family("cachefleet_cache_state", "gauge", "1 for the state that the cache is in.", _known_samples(states))
    modes = [((*_cache_labels(cache), ("mode", cache.mode or "unknown"), ("redundancy", cache.redundancy)), 1.0) for cache in caches]
    yield Family("cachefleet_cache_info", "gauge", "Mode of the cache, and what protects the blocks that only it has.", _known_samples(modes))


def _of_drives(drives: t.Sequence[DriveHealth], reserves: t.Sequence[Reserve]) -> t.Iterator[Family]:
    for name, attribute, factor, kind, text in (
        ("wear_used_ratio", "wear_used_percent", 0.01, "gauge", "Part of the rated endurance that is used; may exceed 1."),
        ("spare_ratio", "spare_percent", 0.01, "gauge", "Part of the spare blocks that is left."),
        ("reallocated_sectors", "reallocated", 1, "gauge", "Sectors or blocks that the drive has replaced."),
        ("pending_sectors", "pending", 1, "gauge", "Sectors that wait to be replaced."),
        ("media_errors_total", "media_errors", 1, "counter", "Reads that the drive could not correct."),
        ("unsafe_shutdowns_total", "unsafe_shutdowns", 1, "counter", "Power cuts without a preceding shutdown command."),
        ("written_bytes_total", "written_bytes", 1, "counter", "Written to the drive by hosts."),
        ("power_on_seconds_total", "power_on_hours", 3600, "counter", "Time the drive was on."),
        ("temperature_celsius", "temperature", 1, "gauge", "Temperature of the drive."),
    ):
        samples = [(_drive_labels(drive), getattr(drive, attribute)) for drive in drives]
        yield Family(f"cachefleet_drive_{name}", kind, text, tuple((labels, value * factor) for labels, value in _known_samples(samples)))
    passed = [(_drive_labels(drive), None if drive.passed is None else float(drive.passed)) for drive in drives]
    yield Family("cachefleet_drive_passed", "gauge", "1 if the drive passes its own health assessment, 0 if it is failing.", _known_samples(passed))
    kept = [((("device", reserve.path),), reserve.reserved) for reserve in reserves]
    yield Family("cachefleet_drive_reserved_bytes", "gauge", "What of an SSD is kept free of data.", _known_samples(kept))


def _of_findings(findings: t.Sequence[Finding]) -> Family:
    # Several lines of one check about one subject are one series, and a series may not come twice.
    problems = [finding for finding in findings if finding.severity != "info"]
    labels = {(("check", finding.check), ("severity", finding.severity), ("subject", finding.subject)) for finding in problems}
    return Family("cachefleet_problem", "gauge", "1 for each problem that was found.", tuple((one, 1.0) for one in labels))


def _cache_labels(cache: CacheState) -> _Labels:
    return (("cache", cache.name), ("type", cache.type))


def _drive_labels(drive: DriveHealth) -> _Labels:
    return (("device", drive.path), ("model", drive.model or ""), ("serial", drive.serial or ""))


def _known_samples(samples: t.Iterable[tuple[_Labels, t.Any]]) -> tuple[tuple[_Labels, float], ...]:
    return tuple((labels, value) for labels, value in samples if value is not None)


def _labels(labels: _Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    """Whole numbers without an exponent, so that no byte of a large drive is lost."""
    return str(int(value)) if value == int(value) else repr(round(value, 6))
