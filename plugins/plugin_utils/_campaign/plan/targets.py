# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The targets of one host as a user writes them, and what is assumed where options are missing. Pure."""

from __future__ import annotations

import difflib
import re
import typing as t
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import check_entry, checked_match, no_match_sentence
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.plan import CHOICES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import mapping
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import Suite

VARIABLE = "fio_benchmark_targets"

#: What a target takes, if the user does not set it: more than most, so that wear is rather over- than underestimated.
ASSUMED_RATE = 3_000_000_000
ASSUMED_IOPS = 500_000

#: How much of the file of ``fio_benchmark_file`` is used, if the suite sets no size.
FILE_SIZE = "1g"

#: What the module that measures needs of a target; the rest is for the plan.
_KINDS = ("device", "file", "directory")
_FOR_THE_HOST = (*_KINDS, "allow_data_loss", "identity", "size")
#: In place of a device; :func:`with_devices` has replaced it.
_MATCH = "match"
#: Devices that one match may have: no server has more drives.
_MOST_MATCHED = 1000
_FOR_THE_PLAN = ("name", "capacity", "write_rate", "write_iops", "endurance", "allow_purge", "purge_method")

_ENDURANCE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([GTP]?)(?:BW?)?\s*$", re.IGNORECASE)
_ENDURANCE_UNITS = {"G": 10**9, "": 10**12, "T": 10**12, "P": 10**15}


@dataclass(frozen=True)
class CampaignTarget:
    """Where a host measures.

    :param label: what follows the names of its cells; empty for the only one without a name.
    :param path: of the device, file or directory.
    :param kind: ``device``, or on a mounted file system ``file`` or ``directory``.
    :param given: what is sent to the host.
    :param region: bytes that a job without a size of its own goes over; ``None`` if not given.
    :param write_rate: bytes per second that it takes at most; ``write_iops``: writes per second.
    :param assumed: which of the two the user did not give.
    :param endurance: bytes that may be written in its lifetime; ``None`` if not given.
    :param takes_size: whether a job that sets its own sizes sets that of this file too.
    :param purge: what the module ``purge`` is given of it; ``None`` if its user does not allow that.
    """

    label: str
    path: str
    kind: str
    given: t.Mapping[str, t.Any]
    region: int | None
    write_rate: float = ASSUMED_RATE
    write_iops: float = ASSUMED_IOPS
    assumed: tuple[str, ...] = ("write_rate", "write_iops")
    endurance: int | None = None
    purge: t.Mapping[str, t.Any] | None = None
    takes_size: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is on a mounted file system."""
        return self.kind != "device"

    def of_size(self, size: int | None) -> CampaignTarget:
        """A file as large as a job needs it that sets the size of each of its sections, unless its user has set another size.

        :param size: bytes; ``None`` if the job does not set them.
        """
        return replace(self, given={**self.given, "size": size}, region=size) if self.takes_size and size else self

    def share(self, percent: int, cell: str) -> CampaignTarget:
        """The first ``percent`` of it.

        A target without a size, used whole, stays as it is: the job of the cell passes the percentage to fio, which alone has
        how large the device is.

        :raises BadInput: if it is a file without a size.
        """
        if percent == 100:
            return self
        if self.kind == "directory":
            raise BadInput(f"{cell}: it uses {percent} % of a target, and the target {self.path} is a directory: its files are as large as the job sets them.")
        region = None if self.region is None else self.region * percent // 100
        if "size" not in self.given:
            if self.is_file:
                raise BadInput(f"{cell}: it uses {percent} % of a file, so the target {self.path} needs a 'size'.")
            return replace(self, region=region)
        size = parse_size(self.given["size"]) * percent // 100 // MIB * MIB
        if not size:
            raise BadInput(f"{cell}: {percent} % of the target {self.path} is less than 1 MiB: give it a larger 'size'.")
        return replace(self, given={**self.given, "size": size}, region=size)


def matches_of(targets: t.Sequence[t.Any]) -> list[dict[str, t.Any]]:
    """The match of each target that has one, in the order of the list.

    :raises BadInput: for one that is none, that stands next to what names a target, or that comes with what is for one device only.
    """
    found = []
    for number, row in enumerate(targets, start=1):
        if not isinstance(row, t.Mapping) or row.get(_MATCH) is None:
            continue
        check_entry(VARIABLE, number, row)
        where = f"{VARIABLE}: target {number}"
        for key in ("file", "directory", "identity"):
            if row.get(key) is not None:
                raise BadInput(f"{where} has match and {key}: {'name the device that has it' if key == 'identity' else 'set one of them'}.")
        found.append(checked_match(row[_MATCH], where))
    return found


def with_devices(targets: t.Sequence[t.Any], matched: t.Sequence[t.Any]) -> tuple[list[t.Any], list[str]]:
    """The targets with one for each device that a host found for a match.

    :param matched: what the host answered for :func:`matches_of`.
    :returns: the targets, and a sentence for each match without a device.
    :raises BadInput: for an answer that is none.
    """
    rows: list[t.Any] = []
    empty = []
    answers = iter(matched)
    for number, row in enumerate(targets, start=1):
        if not isinstance(row, t.Mapping) or row.get(_MATCH) is None:
            rows.append(row)
            continue
        paths = next(answers, None)
        if not isinstance(paths, list) or len(paths) > _MOST_MATCHED or not all(isinstance(path, str) for path in paths):
            raise BadInput(f"{VARIABLE}: the host did not answer which devices target {number} matches.")
        if not paths:
            empty.append(no_match_sentence(VARIABLE, f"target {number}"))
        own = {key: value for key, value in row.items() if key != _MATCH}
        for place, path in enumerate(paths, start=1):
            # By their number: the cells of all hosts have the same names, whatever the serial numbers of their drives are.
            numbered = {"name": f"{row.get('name') or 'drive'}{place}"} if len(paths) > 1 else {}
            rows.append({**own, "device": path, **numbered})
    return rows, empty


def read_targets(targets: t.Sequence[t.Any], suite: Suite, file: str = "") -> list[CampaignTarget]:
    """The targets of one host, each fit for the suite.

    :param file: the path of ``fio_benchmark_file``, which stands for one target without further options.
    :raises BadInput: naming the target and what is wrong with it.
    """
    if file:
        if targets:
            raise BadInput(f"fio_benchmark_file ({file}) and {VARIABLE} are both set: set only one of them.")
        if not PurePosixPath(file).is_absolute():
            raise BadInput(f"fio_benchmark_file is '{file}': set the absolute path of a file, for example /var/tmp/cachefleet.fio.")
        only = _target({"file": file, "size": suite.size or FILE_SIZE}, 1, 1, "fio_benchmark_file", suite)
        return [replace(only, takes_size=suite.size is None)]
    read: list[CampaignTarget] = []
    for number, row in enumerate(targets, start=1):
        where = f"{VARIABLE}: target {number}"
        if isinstance(row, t.Mapping) and row.get(_MATCH) is not None:
            raise BadInput(f"{where}: match is for the playbook benchmark: a sweep measures devices that are named, with device.")
        mapping(row, where, (*_FOR_THE_HOST, *_FOR_THE_PLAN))
        given = {key: value for key, value in row.items() if value is not None}
        if sum(bool(given.get(kind)) for kind in _KINDS) != 1:
            raise BadInput(f"{where} must have exactly one of 'device', 'file' and 'directory'.")
        target = _target(given, number, len(targets), where, suite)
        if any(target.label == other.label for other in read):
            raise BadInput(f"{where} ({target.path}) would carry the name '{target.label}' of another target: give it a 'name' of its own.")
        read.append(target)
    return read


def _target(given: dict[str, t.Any], number: int, count: int, where: str, suite: Suite) -> CampaignTarget:
    kind = next(kind for kind in _KINDS if given.get(kind))
    path = str(given[kind])
    if kind == "directory" and given.get("allow_data_loss"):
        raise BadInput(f"{where} ({path}): 'allow_data_loss' is not supported for a 'directory': the collection only uses one that it has made.")
    if suite.requires == "file" and kind != "file":
        raise BadInput(f"{where} ({path}): the suite {suite.name} measures a file on a mounted file system: give the target a 'file' instead of a '{kind}'.")
    if suite.requires == "device" and kind != "device":
        raise BadInput(f"{where} ({path}): the suite {suite.name} measures whole devices: give the target a 'device' instead of a '{kind}'.")
    given_to_host = {key: given[key] for key in _FOR_THE_HOST if key in given}
    _check_host_options(given_to_host, where)
    # In a directory the job sets the sizes of its files.
    if suite.size is not None and "size" not in given_to_host and kind != "directory":
        given_to_host["size"] = suite.size
    region = _size(given_to_host, "size", where)
    capacity = _size(given, "capacity", where)
    rates = {key: _size(given, key, where) for key in ("write_rate", "write_iops")}
    return CampaignTarget(
        label=_label(given, path, number, count),
        path=path,
        kind=kind,
        given=given_to_host,
        region=capacity if region is None else region,
        write_rate=rates["write_rate"] or ASSUMED_RATE,
        write_iops=rates["write_iops"] or ASSUMED_IOPS,
        assumed=tuple(key for key, value in rates.items() if not value),
        endurance=_endurance(given, where),
        purge=_purge(given, given_to_host, where),
        takes_size=kind == "file" and "size" not in given_to_host,
    )


def _purge(given: t.Mapping[str, t.Any], given_to_host: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any] | None:
    try:
        allowed = boolean(given.get("allow_purge", False))
    except TypeError:
        raise BadInput(f"{where}: 'allow_purge' must be true or false.") from None
    if not allowed:
        return None
    if "device" not in given_to_host:
        raise BadInput(f"{where}: 'allow_purge' is for a 'device', a whole drive; a file cannot be purged.")
    asked = given.get("purge_method", "auto")
    if asked not in CHOICES:
        nearest = difflib.get_close_matches(str(asked), CHOICES, 1, 0)[0]
        raise BadInput(f"{where}: 'purge_method' is '{asked}', and must be one of {', '.join(CHOICES)}; nearest is {nearest}.")
    method = {"method": asked} if "purge_method" in given else {}
    return {**{key: given_to_host[key] for key in ("device", "allow_data_loss", "identity") if key in given_to_host}, "allow_purge": True, **method}


def _check_host_options(given_to_host: dict[str, t.Any], where: str) -> None:
    """Convert what is sent to the host: the text ``no`` must not become a permission."""
    for key in (*_KINDS, "identity"):
        if key in given_to_host and (isinstance(given_to_host[key], (bool, float)) or not isinstance(given_to_host[key], (str, int))):
            raise BadInput(f"{where}: '{key}' must be a text.")
        if key in given_to_host:
            given_to_host[key] = str(given_to_host[key])
    if "allow_data_loss" in given_to_host:
        try:
            given_to_host["allow_data_loss"] = boolean(given_to_host["allow_data_loss"])
        except TypeError:
            raise BadInput(f"{where}: 'allow_data_loss' must be true or false.") from None


def _label(given: t.Mapping[str, t.Any], path: str, number: int, count: int) -> str:
    if given.get("name"):
        return component(given["name"], "target")
    if count == 1:
        return ""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(path).name).strip("-_") or str(number)


def _size(given: t.Mapping[str, t.Any], key: str, where: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool):
        raise BadInput(f"{where}: '{key}' must be a number, with a suffix k, M, G or T if you like (powers of 1024).")
    return parse_size(value, item=where, option=key)


def _endurance(given: t.Mapping[str, t.Any], where: str) -> int | None:
    """What a data sheet calls TBW, as bytes. Decimal, as data sheets have it; a bare number is in terabytes."""
    value = given.get("endurance")
    if value is None:
        return None
    match = None if isinstance(value, bool) else _ENDURANCE.match(str(value))
    count = int(float(match[1]) * _ENDURANCE_UNITS[match[2].upper()]) if match else 0
    if not count:
        raise BadInput(f"{where}: 'endurance' must be what its data sheet calls TBW, for example 150TB.")
    return count
