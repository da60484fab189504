# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was measured and on what: stacks with their verdicts, versions, and the commands to do it again."""

from __future__ import annotations

import typing as t
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import planned_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import listed, size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows

#: Of one host only, or different at every reading: no part of a setting.
_NOT_SET = frozenset({
    "serial", "path", "identity", "name", "wwn", "below", "schedulers", "read_at", "dirty", "uuid", "verdict", "unflushed", "device_loss", "device",
    "device_name", "origin", "origin_name", "cache_devices", "cache_device_names", "used", "counters", "histogram", "problem", "raw", "drive_serials",
})  # fmt: skip

#: What a setting is called where its layer and key do not show it.
LABELS = {
    "queue scheduler": "scheduler",
    "queue write cache": "write cache as the kernel sees it",
    "drive drive": "drive write cache",
    "drive kernel": "drive write cache as the kernel sees it",
    "block cache type": "SSD cache",
    "block cache mode": "SSD cache mode",
    "network mtu": "MTU",
    "network payload": "bytes in a frame",
}

#: Settings that the one line of a variant is made of, the most specific first.
_TELLING = ("SSD cache", "SSD cache mode", "controller write", "drive write cache", "controller drive cache", "scheduler", "MTU")
_MOST_NAMED = 4
#: What says the same as another setting, unless only it differs.
_AS_SEEN = {"drive write cache as the kernel sees it": "drive write cache"}

_LONGEST_JOB = 8192
_MOST_JOBS = 200


@dataclass(frozen=True)
class Stack:
    """One state of the layers that hosts were in, before and after.

    :param settings: (layer, setting, values) before; :param changed: (layer, setting, before, after) of what changed meanwhile."""

    variant: str
    hosts: tuple[str, ...]
    verdict_before: str
    verdict_after: str
    reason: str
    settings: tuple[tuple[str, str, str], ...]
    changed: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in all variants.

    :param values: by variant, in their order, each value once; ``-`` where it has none."""

    label: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One job file as it was sent, and the cells of which host it is from.

    :param planned: the job as the controller planned it; a job file came back from the host.
    """

    cell: str
    host: str
    text: str
    planned: t.Mapping[str, t.Any] | None = None


def stacks_of(rows: Rows) -> list[Stack]:
    """The different stacks, most hosts first. The first and the last reading of each host and variant count."""
    readings: dict[tuple[str, str], list[t.Any]] = {}
    for one in rows.measurements:
        if one.stack_before or one.stack_after or one.verdict_before:
            readings.setdefault((one.host, one.variant), []).append(one)
    summaries: dict[tuple[str, str], tuple[dict[tuple[str, str], str], str]] = {}

    def summary(host: str, stack: str | None) -> tuple[dict[tuple[str, str], str], str]:
        key = (host, stack or "")
        if key not in summaries:
            summaries[key] = _summary(rows.settings.get(key, ()))
        return summaries[key]

    groups: dict[t.Any, list[str]] = {}
    for (host, variant), seen in readings.items():
        seen.sort(key=lambda one: (one.started or 0.0, one.cell, one.repeat))
        first, last = seen[0], seen[-1]
        before, reason = summary(host, first.stack_before)
        after, reason_after = summary(host, last.stack_after)
        changed = tuple((*key, before.get(key, "-"), after.get(key, "-")) for key in sorted({*before, *after}) if after and before.get(key) != after.get(key))
        settings = tuple((*key, value) for key, value in before.items())
        verdicts = first.verdict_before or "unknown", last.verdict_after or "unknown"
        groups.setdefault((variant, *verdicts, reason_after or reason, settings, changed), []).append(host)
    found = [Stack(variant, tuple(sorted(hosts)), *rest) for (variant, *rest), hosts in ((key, value) for key, value in groups.items())]
    order = {name: place for place, name in enumerate(rows.variants)}
    return sorted(found, key=lambda one: (order.get(one.variant, 0), -len(one.hosts), one.hosts))


def label_of(layer: str, key: str) -> str:
    """What a setting is called."""
    name = f"{layer} {key}".replace("_", " ")
    return LABELS.get(name, name)


def differences_of(stacks: t.Sequence[Stack], variants: t.Sequence[str]) -> list[Difference]:
    """What was set differently in the variants, over all hosts at their first measurement; the most specific first."""
    values: dict[str, dict[str, dict[str, None]]] = {}
    for one in stacks:
        for layer, key, value in one.settings:
            values.setdefault(label_of(layer, key), {}).setdefault(one.variant, {})[value] = None
    found = []
    for label, by_variant in values.items():
        if len({frozenset(by_variant.get(variant, ())) for variant in variants}) > 1:
            found.append(Difference(label, tuple("; ".join(by_variant.get(variant, {})) or "-" for variant in variants)))
    return sorted(found, key=lambda one: (_TELLING.index(one.label) if one.label in _TELLING else len(_TELLING), one.label))


def variant_line(differences: t.Sequence[Difference], place: int) -> str:
    """What a variant is, in one line: ``SSD cache lvm_cache, SSD cache mode writeback``; nothing where nothing is known to differ."""
    labels = [one.label for one in differences]
    told = [one for one in differences if one.label not in _AS_SEEN or _AS_SEEN[one.label] not in labels]
    changed = [f"{one.label} {one.values[place]}" for one in told if one.values[place] != "-"]
    return ", ".join(changed[:_MOST_NAMED])


def _summary(settings: t.Iterable[tuple[str, str, str, str]]) -> tuple[dict[tuple[str, str], str], str]:
    """Setting by layer, equal devices once, and different ones with their names; and the reason of the verdict."""
    values: dict[tuple[str, str], dict[str, list[str]]] = {}
    models: dict[str, str] = {}
    reason = ""
    for device, layer, key, value in settings:
        models.setdefault(device, "" if models else "target")
        if layer == "verdict" and key == "reason":
            reason = value
        elif key not in _NOT_SET and value and layer != "verdict" and not (layer == "device" and key in ("size", "driver")):
            values.setdefault((layer, key), {}).setdefault(value, []).append(device)
            if (layer, key) == ("device", "model"):
                models[device] = value
    return {key: _named(found, models) if key[0] != "device" else ", ".join(found) for key, found in sorted(values.items())}, reason


def _named(found: t.Mapping[str, t.Sequence[str]], models: t.Mapping[str, str]) -> str:
    """Values, each with what has it where they differ: models, and of one model with several values its devices."""
    if len(found) < 2:
        return ", ".join(found)
    names = {value: [models[device] or device for device in devices] for value, devices in found.items()}
    shared = Counter(name for of in names.values() for name in set(of))
    named = {
        value: [name if shared[name] < 2 else f"{name} {device}" for name, device in zip(names[value], devices, strict=True)]
        for value, devices in found.items()
    }
    return ", ".join(f"{value} ({listed(list(dict.fromkeys(of)), 3)})" if all(of) else value for value, of in named.items())


def environment_of(rows: Rows) -> list[tuple[str, list[tuple[str, int]]]]:
    """What hosts ran and have, with how many hosts have it."""
    names = {
        "model": "drive or target", "firmware": "firmware", "kernel": "kernel", "fio_version": "fio", "behaviour_class": "behaviour of fio",
        "ioengine": "I/O engine", "target_size": "size of the target",
    }  # fmt: skip
    found = []
    for column, label in names.items():
        counts = Counter(value for _host, value in dict.fromkeys((one.host, getattr(one, column)) for one in rows.measurements) if value is not None)
        if counts:
            found.append((label, [(size(value) if column == "target_size" else str(value), count) for value, count in counts.most_common(20)]))
    return found


def jobs_of(rows: Rows, folder: Path) -> list[Job]:
    """The job file of each cell, from the first host that has it."""
    first_rows: dict[str, t.Any] = {}
    for one in rows.measurements:
        if one.path and one.measured and not is_probe(one.cell):
            first_rows.setdefault(one.cell, one)
    found = []
    root = folder.resolve()
    for cell, one in list(first_rows.items())[:_MOST_JOBS]:
        path = (folder / one.path / "job.fio").resolve()
        # A copied table may name any path: only what lies in the campaign is read.
        if not path.is_relative_to(root) or not path.is_file():
            continue
        with path.open("rb") as file:
            text = file.read(_LONGEST_JOB).decode(errors="replace")
        shown = "\n".join(plain(line, 400) for line in text.splitlines())
        found.append(Job(cell, one.host, shown, planned_job(folder, one.host, one.variant, cell)))
    return found
