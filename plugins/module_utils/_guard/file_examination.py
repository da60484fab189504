# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plain file as a target: what it is once every link on its path was followed, and who uses it under whatever name.

A folder is a target only if the collection has made and marked it and nothing but its files is in it. No permission makes another folder a target:
what lies in a folder of a user is not examined file by file, but left alone. fio gets the open folder, and not its name:
``directory=/proc/self/fd/<number>/.`` leads to the same inode whatever becomes of the name (proc(5)). fio requires a directory that is none by a link
(``lstat`` in ``str_directory_cb``, ``options.c``), hence the dot.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fstab import FSTAB, parse_fstab
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device import users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import OpenFiles, open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.room import rooms_below
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of_status
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, Neighbour, TargetFacts

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget

#: What a file may be called that the collection makes in a folder.
FILE_NAME = re.compile(r"s\d{1,4}\.\d{1,4}\.\d{1,5}\Z")
#: Names that a refusal has.
_NAMED = 3


def _refusal(target: GuardTarget) -> str:
    return f"{target.caller} will not write in {target.path}"


def require_folder(target: GuardTarget, real: Path, status: os.stat_result, *, ours: bool) -> None:
    """:raises StorageError: if what lies in the place of a folder is not one that the collection has made."""
    if not stat.S_ISDIR(status.st_mode):
        raise DeviceMissing(f"{target.path} is not a directory: name one that does not exist yet.", item=target.path)
    if not ours:
        raise Refused(
            f"{_refusal(target)}: the collection did not make this directory, or it was changed since. "
            "Name one that does not exist yet; no variable overrules this.",
            item=target.path,
        )
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Refused(f"{_refusal(target)}: other users can use this directory now. Name one that does not exist yet.", item=target.path)
    if status.st_dev != os.lstat(real.parent).st_dev:
        raise Refused(f"{_refusal(target)}: a file system is mounted there. Unmount it or name another directory.", item=target.path)


def read_folder(target: GuardTarget, place: Path | int) -> dict[str, os.stat_result]:
    """The files in a folder of the collection, none of which is followed anywhere.

    :param place: its path, or an open descriptor.
    :raises Refused: if anything else lies in it, which is named.
    """
    found: dict[str, os.stat_result] = {}
    others: list[str] = []
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
                if plain and FILE_NAME.match(entry.name):
                    found[entry.name] = status
                else:
                    others.append(repr(entry.name)[1:-1])
    except OSError as error:
        raise DeviceMissing(f"{target.path} cannot be read: {error.strerror}.", item=target.path) from None
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        raise Refused(
            f"{_refusal(target)}: it contains {', '.join(sorted(others)[:_NAMED])}{more}, which the collection did not make there. "
            "Move it away, or name a directory that does not exist yet; no variable overrules this.",
            item=target.path,
        )
    return found


def openers_of_folder(real: Path, files: t.Mapping[str, os.stat_result], around: Neighbourhood, root: Path, *, again: bool) -> OpenFiles:
    """Who has any of the files open, and what could not be seen of that."""
    if not files:
        return OpenFiles({})
    name, status = next(iter(files.items()))
    units = {unit_of_status(one) for one in files.values()}
    found = open_files(root, units, str(real / name), unit_of_status(status), mapped=not again)
    return OpenFiles(found.found, found.unreadable, (*around.unknown, *found.unknown))


#: Where a plain file is never a target: the kernel's own trees.
_KERNEL_TREES = ("/dev", "/proc", "/sys")

#: Where an administrator has units of systemd; those that are enabled have a link in ``*.wants`` or ``*.requires``.
_UNITS = "etc/systemd/system"

#: Symbolic links on one path (path_resolution(7)).
_MOST_LINKS = 40


def examine_file(devices: Devices, target: GuardTarget, runner: Runner, root: Path, created: t.Container[str], *, writing: bool, again: bool) -> TargetFacts:
    """Examine a plain file or a folder, which may be there or not: see :func:`examination.examine`."""
    if not target.path.startswith("/"):
        raise DeviceMissing(f"The {target.kind} {target.path} must be an absolute path.", item=target.path)
    place = Path(os.path.realpath(root)) / target.path.lstrip("/")
    if target.kind == "directory" and os.path.islink(place):
        raise Refused(f"{target.path} is a symbolic link: name a directory that does not exist yet.", item=target.path)
    real = resolved(place, target)
    inside = "/" + str(real.relative_to(os.path.realpath(root)))
    status = _status(target, real, inside, created)
    _require_mounted(target, inside, root)
    space = os.statvfs(real.parent)
    above = os.stat(real.parent).st_dev
    facts = TargetFacts(
        target=target,
        path=inside,
        size=status.st_size if status else 0,
        read_only=bool(space.f_flag & os.ST_RDONLY),
        identity=inside,
        exists=status is not None,
        free=space.f_bavail * space.f_frsize,
        created=inside in created,
        file_system=_number(above),
        unit=users.unit_of_status(status) if status else None,
        inodes=space.f_favail if space.f_files else None,
    )
    if target.kind == "directory":
        return _with_files(facts, target, real, Neighbourhood(devices, runner, root), devices, runner, root, again)
    if writing or (target.size or 0) > facts.size:
        below = next((one for one in devices if one.number == facts.file_system), None)
        facts = dataclasses.replace(facts, rooms=tuple(rooms_below(devices, below, runner)) if below is not None else ())
    return _with_users(facts, Neighbourhood(devices, runner, root), root, again)


def resolved(path: Path, target: GuardTarget) -> Path:
    """The path behind every link on it, of which none may be one that another user could have put there.

    :raises Refused: naming such a link.
    """
    done, parts, links = Path("/"), list(path.parts[1:]), 0
    while parts:
        name = parts.pop(0)
        place = done.parent if name == ".." else done / name
        try:
            status = os.lstat(place)
        except OSError:
            return place.joinpath(*parts)
        if not stat.S_ISLNK(status.st_mode):
            done = place
            continue
        links += 1
        if links > _MOST_LINKS:
            raise DeviceMissing(f"{target.path} cannot be reached: {os.strerror(errno.ELOOP)}.", item=target.path)
        _require_trusted(place, status, os.stat(done), target)
        try:
            text = os.readlink(place)
        except OSError as error:
            raise DeviceMissing(f"{target.path} cannot be reached: {error.strerror}.", item=target.path) from None
        done = Path("/") if text.startswith("/") else done
        parts = [part for part in text.split("/") if part not in ("", ".")] + parts
    return done


def _require_trusted(link: Path, status: os.stat_result, folder: os.stat_result, target: GuardTarget) -> None:
    """A permission for a path is none for what another user lets it lead to."""
    trusted = (0, os.geteuid())
    is_shared = folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX
    if status.st_uid not in trusted or folder.st_uid not in trusted or is_shared:
        raise Refused(
            f"{target.path} leads through the symbolic link {link}, which another user can create or replace: name the file itself, "
            "or choose a folder in which only root may create files.",
            item=target.path,
        )


def _status(target: GuardTarget, real: Path, inside: str, created: t.Container[str]) -> os.stat_result | None:
    """What lies there; ``None`` if nothing does.

    :raises StorageError: if it is no place for a plain file of fio's.
    """
    if any(inside == tree or inside.startswith(tree + "/") for tree in _KERNEL_TREES):
        raise Refused(f"{target.path} is in {inside.split('/')[1]}: no file may be made there; name a block device with device: instead.", item=target.path)
    try:
        # The path was resolved: what is a link now was put there since.
        status: os.stat_result | None = os.lstat(real)
    except FileNotFoundError:
        status = None
    except OSError as error:
        raise DeviceMissing(f"{target.path} cannot be reached: {error.strerror}.", item=target.path) from None
    if status is None and not real.parent.is_dir():
        raise DeviceMissing(f"The folder {real.parent} does not exist on this host: create it first.", item=target.path)
    if target.kind == "directory":
        if status is not None:
            require_folder(target, real, status, ours=inside in created)
        return status
    if status is not None and stat.S_ISBLK(status.st_mode):
        raise DeviceMissing(f"{target.path} is a block device: name it with device: instead of file:.", item=target.path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise DeviceMissing(f"{target.path} is neither a plain file nor new: name a file, for example /var/tmp/cachefleet.fio.", item=target.path)
    return status


def _require_mounted(target: GuardTarget, inside: str, root: Path) -> None:
    """A file below a mount point on which nothing is mounted would be on another file system than the one that is meant.

    :raises Refused: naming the line of /etc/fstab, or the unit of systemd.
    """
    above = {str(folder) for folder in Path(inside).parents} - {"/"}
    points = {point: who for point, who in _mounted_at_boot(root) if point in above}
    deepest = max(points, key=len, default="")
    if deepest and deepest not in users.mount_points(root):
        raise Refused(
            f"{target.path} is below {deepest}, where nothing is mounted although {points[deepest]} there: mount it first, otherwise the file is on another"
            " file system.",
            item=target.path,
        )


def _mounted_at_boot(root: Path) -> t.Iterator[tuple[str, str]]:
    """Where something is to be mounted, and what says so. Sources: fstab(5), systemd.mount(5)."""
    enabled = {link.name for folder in ("wants", "requires") for link in (root / _UNITS).glob(f"*.{folder}/*.mount")}
    for unit in sorted(enabled):
        text = read_file(root / _UNITS / unit)
        where, what = (re.search(rf"^{key}[ \t]*=[ \t]*(\S.*?)[ \t]*$", text, re.MULTILINE) for key in ("Where", "What"))
        if where and what:
            yield os.path.normpath(where.group(1)), f"the unit {unit} mounts {what.group(1)}"
    for line in parse_fstab(read_file(root / FSTAB)):
        yield os.path.normpath(line.target), f"line {line.number} of /etc/fstab mounts {line.source}"


def _with_files(
    facts: TargetFacts, target: GuardTarget, real: Path, around: Neighbourhood, devices: Devices, runner: Runner, root: Path, again: bool
) -> TargetFacts:
    """What lies in a folder of the collection, and whether anybody uses it."""
    below = next((one for one in devices if one.number == facts.file_system), None)
    facts = dataclasses.replace(facts, rooms=tuple(rooms_below(devices, below, runner)) if below is not None else ())
    if not facts.exists:
        return facts
    files = read_folder(target, real)
    units = {users.unit_of_status(status) for status in files.values()}
    found = openers_of_folder(real, files, around, root, again=again)
    rows = [row for unit in units for row in found.of(unit)]
    neighbour = Neighbour(
        "itself",
        facts.path,
        tuple(where for source, where in around.mounts.items() if source.startswith(f"{facts.path}/")),
        swap=bool(units & set(around.swaps)),
        holders_outside=tuple(node_of(name) for name, backing in around.backing.items() if backing in units),
        exports=tuple(dict.fromkeys(exporter for one, exporter in around.exported if one in units)),
    )
    return dataclasses.replace(
        facts,
        size=sum(status.st_size for status in files.values()),
        files={name: status.st_size for name, status in files.items()},
        neighbours=(neighbour,),
        writers=tuple(dict.fromkeys(str(row) for row in rows if row.writing)),
        readers=tuple(dict.fromkeys(str(row) for row in rows if not row.writing)),
        unknown=found.unknown,
    )


def _with_users(facts: TargetFacts, around: Neighbourhood, root: Path, again: bool) -> TargetFacts:
    """Whether a file is mounted, is swap space, lies under a loop device, is exported, or is open; by device and inode, whatever it is called."""
    unit = facts.unit
    if unit is None:
        # Nothing can have a file open, mounted or exported that is not there yet; it is created exclusively.
        return facts
    found = around.openers_of_file(str(root / facts.path.lstrip("/")), unit, mapped=not again)
    neighbour = Neighbour(
        "itself",
        facts.path,
        tuple(where for source, where in around.mounts.items() if source.startswith("/") and users.unit_at(root, source) == unit),
        swap=unit in around.swaps,
        holders_outside=tuple(node_of(name) for name, below in around.backing.items() if below == unit),
        exports=tuple(dict.fromkeys(exporter for one, exporter in around.exported if one == unit)),
    )
    rows = found.of(unit)
    return dataclasses.replace(
        facts,
        neighbours=(neighbour,),
        writers=tuple(str(row) for row in rows if row.writing),
        readers=tuple(str(row) for row in rows if not row.writing),
        # A file that the collection made has mode 0600: other users cannot open it.
        unseen=0 if facts.created else found.unreadable,
        unknown=found.unknown,
    )


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
