# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a target may be touched: facts are collected in ``examination.py``, decided on by :func:`judge`.

Kinds of objection:

* ``in_use`` and ``unfit``, which no variable overrules: missing, no block device, mounted, swap, held by another device, under a loop
  device, exported by the kernel or an AoE target, open in a process, read-only, not readable;
* ``room``, which no variable overrules either: a thin pool, a snapshot or a VDO volume that the job could fill, at the cost of others;
* ``identity``: the device named is not the intended one: ``identity`` does not match, or matches several devices;
* ``data``: it contains data, with or without a known signature: ``allow_data_loss: true`` together with the matching ``identity`` of that
  very item overrules it.

:func:`claimed` keeps what was found true for a device while fio writes to it, :func:`require_unchanged` proves it again before each cell.
"""

from __future__ import annotations

import contextlib
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import require_same
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import Neighbour, TargetFacts

#: An exclusive open and the list of writers are tried this often: udev and scanners hold a device for a moment.
_ATTEMPTS = 3
_PAUSE = 0.3


@frozen
class Objection:
    """One reason not to touch the target. ``kind``: ``in_use``, ``unfit``, ``size``, ``room``, ``identity`` or ``data``; only ``data`` can be permitted."""

    kind: str
    text: str


def judge(facts: TargetFacts, *, writing: bool, engines: t.Collection[str] = (), extent: int | None = None) -> list[Objection]:
    """Every objection to a job on this target, the worst first. Pure.

    :param engines: of the job that send commands to the drive below, past the block layer (:data:`job.ENGINES`).
    :param extent: bytes from the beginning of the target that the job may write; ``None``: all of its size.
    """
    target = facts.target
    objections = list(_identity_objections(facts))
    objections += _engine_objections(facts, engines)
    if facts.unreadable:
        objections.append(Objection("unfit", f"{target.path} cannot be opened: {facts.unreadable}"))
    if target.size is not None and target.kind == "device" and target.size > facts.size:
        objections.append(Objection("unfit", f"{target.path} has {format_size(facts.size)}, less than the requested size {format_size(target.size)}"))
    if target.kind == "device" and facts.size == 0:
        objections.append(Objection("unfit", f"{target.path} has a size of 0: no medium"))
    if target.kind == "file":
        objections += _file_objections(facts, writing)
        # A file that is too short is written, also by a job that reads.
        writing = writing or (target.size or 0) > facts.size
    # Files in a folder are made, also for a job that reads.
    return [*objections, *_write_objections(facts, extent)] if writing or target.kind == "directory" else objections


def _write_objections(facts: TargetFacts, extent: int | None) -> t.Iterator[Objection]:
    if facts.read_only:
        yield Objection("unfit", f"{facts.target.path} is read-only")
    if facts.suspended:
        yield Objection("unfit", f"{facts.suspended} is suspended: every read waits until it is resumed (dmsetup resume)")
    for neighbour in facts.neighbours:
        yield from _use_objections(neighbour)
    yield from _opener_objections(facts)
    yield from _room_objections(facts, extent)
    if not _permitted(facts):
        yield from _data_objections(facts)


def _data_objections(facts: TargetFacts) -> t.Iterator[Objection]:
    if facts.unread:
        yield Objection("unfit", f"the contents of {facts.path} cannot be read: {facts.unread}")
    for neighbour in facts.neighbours:
        if neighbour.signatures:
            yield Objection("data", f"{_where(neighbour)} contains {', '.join(neighbour.signatures)}")
    if facts.data_at is not None:
        yield Objection("data", f"{facts.path} contains data without a known signature, the first that was found at byte {facts.data_at}")


def _engine_objections(facts: TargetFacts, engines: t.Collection[str]) -> t.Iterator[Objection]:
    device = facts.device
    if engines and (device is None or device.kind != "disk" or device.parent is not None):
        names = ", ".join(f"ioengine={name}" for name in sorted(engines))
        yield Objection(
            "unfit",
            f"{names} sends commands to the drive, which has no partitions, volumes or files: it would work outside {facts.target.path}; "
            "it is accepted on whole disks only",
        )


def _opener_objections(facts: TargetFacts) -> t.Iterator[Objection]:
    if facts.writers:
        yield Objection("in_use", f"{facts.path} is open for writing in {', '.join(facts.writers)}")
    if facts.readers:
        yield Objection("in_use", f"{facts.path} is open for reading in {', '.join(facts.readers)}")
    if facts.opened:
        yield Objection("in_use", f"{facts.path} is open according to device-mapper (dmsetup info), and no process was found that has it open")
    if facts.unseen and not (facts.writers or facts.readers):
        yield Objection(
            "unfit",
            f"it cannot be determined whether {facts.path} is in use, because the open files of {facts.unseen} processes cannot be read: {way_to_see()}",
        )
    for text in facts.unknown:
        yield Objection("in_use", f"{facts.path} may be in use: {text}")
    signature = facts.device.signature if facts.device is not None else None
    if signature is not None and signature.type == "mpath_member":
        yield Objection("in_use", f"{facts.path} is a path of a multipath device")


def _room_objections(facts: TargetFacts, extent: int | None) -> t.Iterator[Objection]:
    high = facts.target.size if facts.target.size is not None else facts.size
    if facts.target.kind == "directory":
        for room in facts.rooms:
            problem = room.problem(extent or 0, extent or 0)
            if problem:
                yield Objection("room", problem)
        return
    for room in facts.rooms:
        grows = max(0, high - facts.size) if facts.target.kind == "file" else None
        problem = room.problem(high if extent is None else extent, grows)
        if problem:
            yield Objection("room", problem)


def require(facts: TargetFacts, *, writing: bool, engines: t.Collection[str] = (), extent: int | None = None) -> None:
    """:raises Refused: if :func:`judge` objects; the message names the variable that allows it, if one does."""
    _refuse(facts, judge(facts, writing=writing, engines=engines, extent=extent), facts.target.verb if writing else "read")


def require_contents(facts: TargetFacts) -> None:
    """Of a device that is held and was examined again: what is on it may be overwritten.

    :raises Refused: if it was written to since it was examined for the first time.
    """
    _refuse(facts, [] if _permitted(facts) else list(_data_objections(facts)), facts.target.verb)


def _refuse(facts: TargetFacts, objections: t.Sequence[Objection], what: str) -> None:
    if not objections:
        return
    reasons = "; ".join(objection.text for objection in objections)
    raise Refused(
        f"{facts.target.caller} will not {what} {facts.target.path}: {reasons}. {_way_out(facts, objections)}",
        item=facts.target.path,
        objections=[{"kind": objection.kind, "text": objection.text} for objection in objections],
        identity=facts.identity,
    )


@contextlib.contextmanager
def claimed(facts: TargetFacts, runner: Runner, root: Path = Path("/"), *, pause: t.Callable[[float], None] = time.sleep) -> t.Iterator[None]:
    """Hold a block device exclusively, so that it can neither be mounted nor built on meanwhile; a plain file is not touched.

    fio itself opens without O_EXCL, and so is not kept out. Source: open(2), O_EXCL without O_CREAT on a block device.

    What is held keeps its number; a loop device can get another file nevertheless, and a mapping another table: :func:`require_unchanged` proves that
    they have not.

    :raises Refused: if it is in use by now, or is another device than the one examined.
    """
    if facts.device is None:
        yield
        return
    descriptor = _open_exclusively(root / facts.path.lstrip("/"), facts, pause)
    try:
        require_same_device(descriptor, facts, runner, root)
        yield
    finally:
        os.close(descriptor)


def require_same_device(descriptor: int | None, facts: TargetFacts, runner: Runner, root: Path = Path("/")) -> None:
    """:raises Refused: if a device, or what is open, is another one than the one that was examined."""
    if facts.sameness is None:
        raise Refused(f"{facts.target.path} was not examined: nothing was written.", item=facts.target.path)
    require_same(facts.target.path, facts.sameness, runner, root, descriptor)


def require_unchanged(facts: TargetFacts, runner: Runner, root: Path = Path("/")) -> None:
    """Before each cell of an order that holds a device, and before each erase: it is the same device, its name leads to it, and no process has
    opened it for writing.

    :raises Refused: if the device is another one by now, has another size, is gone, or is in use.
    """
    device = facts.device
    if device is None:
        return
    item = facts.target.path
    if unit_of(root / facts.path.lstrip("/")) != facts.unit:
        raise Refused(f"{item} is not the device any more that was examined ({device.number}): {facts.path} leads to another one now.", item=item)
    require_same_device(None, facts, runner, root)
    if facts.unit is not None:
        found = open_files(root, {facts.unit}, str(root / facts.path.lstrip("/")), facts.unit, mapped=False)
        writers = [str(one) for one in found.of(facts.unit) if one.writing]
        unknown = [*found.unknown, *([f"the open files of {found.unreadable} processes cannot be read"] if found.unreadable else [])]
        if unknown:
            raise Refused(f"{item} may be in use by now: {'; '.join(unknown)}.", item=item)
        if writers:
            raise Refused(f"{item} has been opened for writing by {', '.join(writers)} since it was examined: stop that first.", item=item)


def _open_exclusively(node: Path, facts: TargetFacts, pause: t.Callable[[float], None]) -> int:
    for attempt in range(_ATTEMPTS):
        if attempt:
            pause(_PAUSE)
        try:
            return os.open(node, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
    raise Refused(f"{facts.target.path} was free when it was examined and cannot be opened exclusively now: {reason}.", item=facts.target.path)


def _permitted(facts: TargetFacts) -> bool:
    return facts.target.allow_data_loss and facts.identity_matches is True


def _way_out(facts: TargetFacts, objections: t.Sequence[Objection]) -> str:
    kinds = {objection.kind for objection in objections}
    if "identity" in kinds:
        return "Correct the device or its identity; allow_data_loss does not overrule this."
    if "in_use" in kinds and all(one.text.startswith(f"{facts.path} may be in use: ") for one in objections if one.kind == "in_use"):
        return "What cannot be seen is in use, and no variable overrules this: do what is said there, or choose another target."
    if "in_use" in kinds:
        return "Free the device first or choose another one; no variable overrules a device in use."
    if "unfit" in kinds:
        return "Choose another target; no variable overrules this."
    if "size" in kinds:
        return "Set size on this target, for example size: 1G."
    if "room" in kinds:
        return "Free space there, or give the target a smaller size; no variable overrules this."
    if facts.target.kind == "file":
        return "If its contents may be lost, set allow_data_loss: true on this target."
    if facts.identity is None:
        return f"{_nameless(facts)} that could confirm a permission: wipe it by hand (wipefs) if its contents may be lost."
    return f'If its contents may be lost, set both allow_data_loss: true and identity: "{facts.identity}" on this target.'


def _nameless(facts: TargetFacts) -> str:
    placeholder = facts.device.placeholder if facts.device is not None else None
    if placeholder is None:
        return "The device has no serial, WWN or name"
    return f"The device has no WWN or name, and the serial number that it reports ({placeholder}) is a placeholder, which many devices report: it has none"


def _identity_objections(facts: TargetFacts) -> t.Iterator[Objection]:
    expected = facts.target.identity
    if expected is None or facts.target.kind != "device":
        return
    if facts.unsettled:
        yield Objection(
            "identity",
            f"the identity of {facts.target.path} cannot be determined while udev is processing events: it may be that of a device that had this name before; "
            "run again when the command 'udevadm settle' has ended",
        )
    if not facts.identity_matches:
        found = f"it is {facts.identity}" if facts.identity else _nameless(facts)
        yield Objection("identity", f"{facts.target.path} does not have the identity {expected}: {found}")
    elif facts.same_identity:
        yield Objection("identity", f"the identity {expected} is ambiguous: {', '.join(facts.same_identity)} has it too; use the WWN or another unique name")


def _where(neighbour: Neighbour) -> str:
    return neighbour.path if neighbour.relation == "itself" else f"{neighbour.path} ({neighbour.relation})"


def _use_objections(neighbour: Neighbour) -> t.Iterator[Objection]:
    where = _where(neighbour)
    if neighbour.mountpoints:
        yield Objection("in_use", f"{where} is mounted on {', '.join(neighbour.mountpoints)}")
    if neighbour.swap:
        yield Objection("in_use", f"{where} is swap space in use")
    if neighbour.holders_outside:
        yield Objection("in_use", f"{where} is part of {', '.join(neighbour.holders_outside)}")
    if neighbour.exports:
        yield Objection("in_use", f"{where} is exported by {', '.join(neighbour.exports)}")
    if neighbour.file_system:
        yield Objection("in_use", f"{where} belongs to the mounted file system {neighbour.file_system}")
    if neighbour.busy:
        yield Objection("in_use", f"{where} cannot be opened exclusively: {neighbour.busy}")


def _file_objections(facts: TargetFacts, writing: bool) -> t.Iterator[Objection]:
    target = facts.target
    if not facts.exists and target.size is None:
        yield Objection("size", f"{target.path} does not exist yet, so its target needs a size")
    grows = max(0, (target.size or 0) - facts.size)
    if facts.free is not None and grows > facts.free:
        yield Objection("unfit", f"{target.path} would need {format_size(grows)} more and its file system has {format_size(facts.free)} free")
    # fio lays a file out again, from its beginning, when it is shorter than the requested size, whatever the job does.
    if facts.exists and facts.size and not facts.created and not target.allow_data_loss and (writing or grows):
        yield Objection("data", f"{target.path} is a file of {format_size(facts.size)} that the collection did not make, or that was changed since")
