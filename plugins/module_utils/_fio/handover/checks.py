# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is checked before anything runs: whether fio can do what is requested, and whether it may.

Jobs that discard are refused where their target takes no discards: fio itself notices at the first one that fails, hours later perhaps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import replay, versions
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import end_of_io
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.room import growth, require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices

#: What a device carries because a cache, a volume or a mirror of one is built on it.
_OF_CACHES = frozenset({"EnhanceIO"}).union(*(names for kind, names in examination.NORMAL_BELOW.items() if kind not in ("crypt", "multipath", "partition")))


def discards(job: Job) -> bool:
    """Whether any section of a job discards."""
    return any(section.discards for section in job.sections)


def largest_discard(facts: TargetFacts, root: Path) -> int | None:
    """Bytes of the largest discard that a device takes, 0 if it takes none; ``None`` if the kernel does not report it.

    Source: Documentation/ABI/stable/sysfs-block, ``queue/discard_max_bytes``; a partition has the queue of its disk.
    """
    if facts.device is None:
        return None
    for name in filter(None, (facts.device.name, facts.device.parent)):
        try:
            return int((root / "sys/class/block" / name / "queue/discard_max_bytes").read_text())
        except (OSError, ValueError):
            continue
    return None


def require_discard(facts: TargetFacts, cells: t.Sequence[Cell], root: Path) -> None:
    """:raises Refused: if a cell discards and its target is a file or takes no discards."""
    names = [cell.key.cell for cell in cells if discards(cell.job)]
    if not names:
        return
    if facts.device is None:
        why = "it is a file, and fio discards only on block devices"
    elif largest_discard(facts, root) == 0:
        why = "the device takes no discards (its queue/discard_max_bytes is 0)"
    else:
        return
    raise Refused(
        f"fio will not discard on {facts.target.path} for the cell {names[0]}: {why}. Leave the cell out or choose another target.", item=facts.target.path
    )


@frozen
class Fio:
    """The fio of the host."""

    version: Version
    abilities: versions.Abilities = field(default_factory=versions.Abilities)


def check_fio(cells: t.Sequence[Cell], host: MeasuredHost) -> Fio:
    """The fio of the host, if it can run these cells.

    :raises StorageError: if it is not there, too old, or lacks an engine.
    """
    version = fio_run.read_version(host.runner)
    versions.check_version(version, [cell.job for cell in cells])
    for engine in sorted({engine for cell in cells for engine in cell.job.engines}):
        fio_run.check_engine(host.runner, engine)
    return Fio(version, versions.read_abilities(host.runner, version))


def guard_all(
    cells: t.Sequence[Cell], host: MeasuredHost, devices: Devices, created: t.Container[str] = (), left: LeftDevices | None = None
) -> dict[tuple[GuardTarget, bool], TargetFacts]:
    """Facts of every target, by target and whether it is written; all refusals of a host are reported at once.

    :param created: files that the collection has made, and that were not changed since (:class:`made_files.MadeFiles`).
    :param left: devices that fio has written, and what it left there.
    :raises StorageError: the refusal of the first target, with the others behind it.
    """
    known: dict[tuple[GuardTarget, bool], TargetFacts] = {}
    refusals: list[StorageError] = []
    for target, writing, _here, facts, error in _examined(cells, host, devices, created, left):
        if error is not None:
            refusals.append(error)
        elif facts is not None:
            known[target, writing] = facts
    if refusals:
        first = refusals[0]
        first.message = " ".join(dict.fromkeys(error.message for error in refusals))
        first.facts["refusals"] = [{"target": error.item, "msg": error.message} for error in refusals[1:]]
        raise first
    for cell in cells:
        _require_distinct([known[part.target, part.job.writes] for part in cell.parts], cell)
    require_room((part, known[part.target, part.job.writes]) for cell in cells for part in cell.parts)
    return known


def refusals_of(
    cells: t.Sequence[Cell], host: MeasuredHost, created: t.Container[str] = (), left: LeftDevices | None = None, caches: t.Sequence[str] = ()
) -> list[dict[str, t.Any]]:
    """Each target that is refused: ``target``, ``msg``, and ``lasting`` if it is whichever of the caches are there.

    :param caches: devices and volumes of SSD caches that come and go before the cells are measured: one may make a target, or be what holds it.
    """
    devices = host.devices()
    around = {device.path for name in caches for device in _existing(devices, name)}
    found: dict[str, dict[str, t.Any]] = {}
    for target, writing, here, facts, error in _examined(cells, host, devices, created, left):
        if error is None or (target.path in found and not writing):
            continue
        lasting = not caches
        if facts is not None:
            lasting = not facts.unsettled
            with contextlib.suppress(StorageError):
                _require(_without_caches(facts, around), here, writing, host.root)
                lasting = False
        found[target.path] = {"target": target.path, "msg": error.message, "lasting": lasting}
    return list(found.values())


def _examined(
    cells: t.Sequence[Cell], host: MeasuredHost, devices: Devices, created: t.Container[str], left: LeftDevices | None
) -> t.Iterator[tuple[GuardTarget, bool, list[Cell], TargetFacts | None, StorageError | None]]:
    """Each target, whether it is written, the cells there, its facts if it is there, and why it is refused."""
    parts = [part for cell in cells for part in cell.parts]
    for target, writing in dict.fromkeys((part.target, part.job.writes) for part in parts):
        here = [part for part in parts if (part.target, part.job.writes) == (target, writing)]
        facts, refusal = None, None
        try:
            facts = examination.examine(devices, target, host.runner, host.root, writing=writing, created=created, left=left)
            _require(facts, here, writing, host.root)
        except StorageError as error:
            refusal = error
        yield target, writing, here, facts, refusal


def _existing(devices: Devices, name: str) -> list[BlockDevice]:
    with contextlib.suppress(DeviceMissing):
        return [devices.resolve(name if name.startswith("/") else f"/dev/{name}")]
    return []


def _without_caches(facts: TargetFacts, around: t.Container[str]) -> TargetFacts:
    """A target that is part of a cache as it is without it: nothing holds it, and it does not carry what makes it part of one."""
    if not any(path in around for path in (facts.path, *(one.path for one in facts.neighbours))):
        return facts
    free = [
        dataclasses.replace(one, holders_outside=(), busy=None, signatures=tuple(text for text in one.signatures if text.split(" ", 1)[0] not in _OF_CACHES))
        for one in facts.neighbours
    ]
    return dataclasses.replace(facts, neighbours=tuple(free), opened=0)


def _require(facts: TargetFacts, here: t.Sequence[Cell], writing: bool, root: Path) -> None:
    """:raises StorageError: if one of the cells that use this target so may not."""
    engines = {engine for cell in here for engine in cell.job.engines_past_the_block_layer}
    judge.require(facts, writing=writing, engines=engines, extent=_extent(here, facts))
    require_discard(facts, here, root)
    require_log_fits(facts, here)
    _require_within(facts, here)


def _require_distinct(found: t.Sequence[TargetFacts], cell: Cell) -> None:
    """:raises Refused: if two targets of one cell are one and the same device or file: its figures would be said to be of two."""
    for number, facts in enumerate(found):
        for other in found[:number]:
            if facts.path == other.path or (facts.unit is not None and facts.unit == other.unit):
                raise Refused(
                    f"fio will not measure {cell.key.cell}: its targets {other.target.path} and {facts.target.path} are the same ({facts.path}). "
                    "Name two different ones, or leave out the target of the section.",
                    item=facts.target.path,
                )


def _require_within(facts: TargetFacts, cells: t.Iterable[Cell]) -> None:
    """:raises Refused: if a job goes beyond a plain file that is used as it is, which fio would make longer."""
    if facts.target.kind != "file" or facts.target.size is not None:
        return
    for cell in cells:
        end = end_of_io(cell.job, size=facts.size, device_size=facts.size, is_file=True)
        if end > facts.size:
            raise Refused(
                f"fio will not use {facts.target.path} for {cell.key.cell}: the job ends at byte {end}, and the file has {format_size(facts.size)} "
                f"({facts.size} bytes). Give the target a size, or the job a smaller one.",
                item=facts.target.path,
            )


def _extent(cells: t.Sequence[Cell], facts: TargetFacts) -> int | None:
    """How far into a device any of some cells writes, or what it adds to a folder, in bytes; ``None`` if that cannot be computed."""
    if facts.target.kind == "directory":
        return max(growth(cell, facts) for cell in cells)
    if facts.device is None:
        return None
    try:
        return max((end_of_io(cell.job, size=cell.target.size, device_size=facts.size) for cell in cells), default=None)
    except BadInput:
        return None


def require_log_fits(facts: TargetFacts, cells: t.Iterable[Cell]) -> None:
    """:raises Refused: if a log reaches behind the end of the target: fio would make a file longer, and fail on a device."""
    size = facts.size if facts.target.size is None else facts.target.size
    for cell in cells:
        end = max((log.end for log in cell.job.replays.values()), default=0)
        if end > size:
            raise Refused(
                f"fio will not replay the log of {cell.key.cell} on {facts.target.path}: it ends at byte {end}, and the target at byte {size} "
                f"({format_size(size)}). Choose a larger target, or set {replay.SCALE} in addition to {replay.LOG}.",
                item=facts.target.path,
                end=end,
            )
