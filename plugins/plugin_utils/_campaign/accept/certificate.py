# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates: what a drive, by its serial number, or a host was worth on one day, as a file of JSON.

A certificate has its own SHA-256, by which damage is found; only a signature (``signature.py``) shows who wrote it. Text of hosts is cleaned, and
becomes a file name only by :func:`file_name`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import re
import types
import typing as t
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replacing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.json_text import Limits
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import STATES, Judgement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import parse_json, read_limited
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import listed

SCHEMA = 1

DRIVE, HOST = "drive", "host"

#: Where they lie in the folder of a campaign.
CERTIFICATES_FOLDER = "certificates"

#: What is written and read: a host with 60 drives and 20 workloads has 3 MiB.
LIMITS = Limits(size=16 << 20, depth=16, values=500_000, containers=100_000)

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME, _LONGEST_TEXT = 64, 1000

Value = t.Union[str, int, float, bool, None]


@dataclass(frozen=True)
class Device:
    """What a device or file of a host is. :param serial: of the only drive below it; empty of none, or of several. :param size: bytes that were used.
    :param settings: what its layers were set to, by name."""

    host: str
    target: str
    serial: str
    model: str
    firmware: str
    attachment: str
    size: int | None
    kernel: str
    fio: str
    settings: t.Mapping[str, str]


@dataclass(frozen=True)
class Figure:
    """The geometric mean of the repeats and its interval of 95 %, which one repeat does not have: 1/s, bytes/s, ms."""

    value: float
    low: float | None
    high: float | None
    repeats: int


@dataclass(frozen=True)
class Measured:
    """What a workload measured on one device, by metric. :param conditions: by :data:`comparable.KEYS`."""

    host: str
    target: str
    workload: str
    direction: str
    conditions: t.Mapping[str, Value]
    figures: t.Mapping[str, Figure]


@dataclass(frozen=True)
class Context:
    """What is certified besides the judgements.

    :param when: UTC, as ``2026-11-29T12:00:00Z``.
    :param campaign_sha256: over the results of all hosts; ``results_sha256`` has those of each.
    """

    when: str
    campaign: str
    campaign_sha256: str
    results_sha256: t.Mapping[str, str]
    devices: tuple[Device, ...]
    measured: tuple[Measured, ...]


@dataclass(frozen=True)
class Certificate:
    """:param kind: :data:`DRIVE` or :data:`HOST`. :param name: the serial number, or the name of the host. :param notes: sentences."""

    kind: str
    name: str
    host: str
    when: str
    campaign: str
    campaign_sha256: str
    results_sha256: str
    devices: tuple[Device, ...]
    verdicts: tuple[Judgement, ...]
    measured: tuple[Measured, ...]
    notes: tuple[str, ...]
    schema: int = SCHEMA


def file_name(kind: str, name: str, owner: str = "") -> str:
    """A plain file name; one that had to be changed, or that has an owner, ends with a hash behind a ``+``, which no other has.

    :param owner: the host, where several have something of this name.
    """
    kept = _UNSAFE.sub("_", name)[:_LONGEST_NAME]
    digest = hashlib.sha256(f"{name}\0{owner}".encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{kind}-{kept}.json" if kept == name and not owner else f"{kind}-{kept}+{digest}.json"


def write(folder: Path, judgements: t.Iterable[Judgement], context: Context) -> tuple[Path, ...]:
    """Write the certificate of each host, and of each drive whose serial number is known; their paths.

    Several hosts that report the same serial number get a certificate each, which names the others. The signature of a certificate that was different
    is removed.

    :raises ResultsError: if one cannot be written.
    """
    made = list(_certificates(judgements, context))
    # Some file systems do not distinguish upper and lower case.
    shared = Counter(file_name(one.kind, one.name).casefold() for one in made)
    place = folder / CERTIFICATES_FOLDER
    paths = []
    with explained(place, "writing certificates"):
        place.mkdir(parents=True, exist_ok=True)
        for one in made:
            is_shared = shared[file_name(one.kind, one.name).casefold()] > 1
            paths.append(place / file_name(one.kind, one.name, one.host if is_shared else ""))
            _replace(paths[-1], content_of(one))
    return tuple(paths)


def _replace(path: Path, content: str) -> None:
    with contextlib.suppress(ResultsError):
        if read_limited(path, LIMITS.size) == content.encode():
            return
    path.with_name(f"{path.name}.sig").unlink(missing_ok=True)
    # Thousands of them; each can be written again from its campaign, and is found to be damaged after a power cut.
    with replacing(path, 0o644, durable=False) as stream:
        stream.write(content)


def _certificates(judgements: t.Iterable[Judgement], context: Context) -> t.Iterator[Certificate]:
    verdicts, devices, measured = (_by_host(some) for some in (judgements, context.devices, context.measured))
    owners: dict[str, dict[str, None]] = {}
    for device in context.devices:
        owners.setdefault(device.serial, {})[device.host] = None
    for host in dict.fromkeys([*verdicts, *devices]):
        own = devices.get(host, [])
        common = (host, context.when, context.campaign, context.campaign_sha256, context.results_sha256.get(host, ""))
        without = [one.target for one in own if not plain(one.serial)]
        notes = [f"There is no certificate of a drive for {listed(without, 20)}: the serial number of a single drive is not known."] if without else []
        parts = own, verdicts.get(host, []), measured.get(host, [])
        yield Certificate(HOST, host, *common, *map(tuple, parts), tuple(notes))
        for serial in dict.fromkeys(one.serial for one in own if plain(one.serial)):
            mine = [one for one in own if one.serial == serial]
            targets, models = {one.target for one in mine}, sorted({one.model for one in mine})
            others = [name for name in owners[serial] if name != host]
            notes = [f"This serial number is also reported by {listed(others, 20)}."] if others else []
            notes += [f"Drives of several models report this serial number: {listed(models, 20)}."] if len(models) > 1 else []
            yield Certificate(DRIVE, serial, *common, *(tuple(one for one in some if one.target in targets) for some in parts), tuple(notes))


def _by_host(some: t.Iterable[t.Any]) -> dict[str, list[t.Any]]:
    found: dict[str, list[t.Any]] = {}
    for one in some:
        found.setdefault(one.host, []).append(one)
    return found


def content_of(one: Certificate) -> str:
    """The canonical text: names in order, UTF-8, its own hash, a newline at the end."""
    data = _cleaned(one)
    return _canonical({**data, "sha256": _hash_of(data)})


def _canonical(data: t.Mapping[str, t.Any]) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _hash_of(data: t.Mapping[str, t.Any]) -> str:
    return hashlib.sha256(_canonical(data).encode()).hexdigest()


def _cleaned(value: t.Any) -> t.Any:
    """As JSON has it: text of hosts in one line of limited length, and no number that is none."""
    if isinstance(value, str):
        return value if value.isprintable() and len(value) <= _LONGEST_TEXT else plain(value, _LONGEST_TEXT)
    if isinstance(value, (list, tuple)):
        return [_cleaned(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
        return {_cleaned(name): _cleaned(one) for name, one in (value if isinstance(value, Mapping) else vars(value)).items()}
    return value


def read(path: Path) -> Certificate:
    """:raises ResultsError: one sentence, if it cannot be read, is damaged, too large, or of another version."""
    try:
        return parse(read_limited(path, LIMITS.size))
    except ResultsError as error:
        raise ResultsError(f"The certificate {plain(path)} cannot be used: {error.message}.", item=str(path)) from None


def parse(content: bytes) -> Certificate:
    """The certificate of a text, all of whose types were checked.

    :raises ResultsError: the sentence has no subject and no end.
    """
    data = parse_json(content, LIMITS)
    version = data.get("schema")
    if isinstance(version, bool) or not isinstance(version, int):
        raise ResultsError("it is not a certificate of this collection")
    if version != SCHEMA:
        raise ResultsError(f"it has version {plain(version, 20)}, and this version of the collection reads version {SCHEMA}: use the one that wrote it")
    if data.pop("sha256", None) != _hash_of(data):
        raise ResultsError("it was changed after it was written, its SHA-256 differs: restore it from a copy")
    found: Certificate = _decoded(Certificate, data, "it")
    if found.kind not in (DRIVE, HOST) or any(one.state not in STATES for one in found.verdicts):
        raise ResultsError("it has a kind or a state that does not exist")
    return found


def _decoded(kind: t.Any, value: t.Any, where: str) -> t.Any:
    """A value of JSON as what an annotation says."""
    origin, inner = t.get_origin(kind), t.get_args(kind)
    hints = _hints(kind) if dataclasses.is_dataclass(kind) else {}
    if hints and isinstance(value, dict) and hints.keys() == value.keys():
        return kind(**{name: _decoded(hint, value[name], name) for name, hint in hints.items()})
    if origin is tuple and isinstance(value, list):
        return tuple(_decoded(inner[0], one, where) for one in value)
    if origin is Mapping and isinstance(value, dict):
        return {name: _decoded(inner[1], one, where) for name, one in value.items()}
    scalars = inner if origin in (t.Union, types.UnionType) else () if origin or hints else (kind,)
    if any(_fits(one, value) for one in scalars):
        return value
    raise ResultsError(f"{where} is not what a certificate has there")


_hints = functools.cache(t.get_type_hints)


def _fits(kind: t.Any, value: t.Any) -> bool:
    numbers: tuple[type, ...] = (int, float) if kind is float else (kind,)
    return isinstance(value, numbers) and (kind is bool or not isinstance(value, bool))
