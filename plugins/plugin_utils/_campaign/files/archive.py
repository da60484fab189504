# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking in what a host packed.

Hosts are not trusted. Of an archive only plain files with known names are unpacked, into a temporary folder. A cell is renamed into
place if every file has the hash of its ``meta.json``, and unpacks to no more than its kind may have. Each host has a folder of
its own, so hosts can be collected side by side without locks.

The members of an untrusted tar archive: plain files in the ustar format, with one pax header each at most.

Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header". It is what the spool on a host writes. The module
tarfile reads far more: it recurses over chained headers, follows sparse maps, and takes sizes from headers as they are.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import tempfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey, component
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import (
    MEASURED,
    META_FILE,
    SCHEMA,
    STATES,
    DamagedArchive,
    ResultsError,
    is_cell_file,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import (
    LARGEST_JSON,
    explained,
    file_problems,
    is_sha256,
    read_json,
    require_space,
    stored_state,
    sync_folder,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import content_problems, parse_json, read_limited

_BLOCK = 512

#: Bytes of one pax header; a spool writes a path of 400 characters and a few numbers.
_LARGEST_PAX = 8192

#: Of the keys only these two count; the others are known and change nothing here. Any other key could mean anything.
_IGNORED = frozenset({"mtime", "atime", "ctime", "uid", "gid", "uname", "gname"})

_OCTAL = re.compile(rb"([0-7]{1,11})[ \0]*\Z")
_RECORD = re.compile(rb"([1-9][0-9]{0,3}) ")
_SIZE = re.compile(r"[0-9]{1,15}\Z")


class NotAnArchive(Exception):
    """Why the file is not read any further, as the end of a sentence."""


class Member(t.NamedTuple):
    """One plain file: its name, and where its content begins and how long it is, in bytes."""

    name: str
    start: int
    size: int


def members(file: t.BinaryIO, length: int) -> t.Iterator[Member]:
    """The members in their order. The position of ``file`` may be changed in between.

    :param length: bytes of the file.
    :raises NotAnArchive: where something is no plain file, or is damaged. What came before was whole.
    """
    position = 0
    while True:
        header = _read(file, position, _BLOCK)
        if not any(header):
            return
        position += _BLOCK
        extended: dict[str, str] = {}
        if _type_of(header) == b"x":
            size = _size_of(header)
            if size > _LARGEST_PAX:
                raise NotAnArchive("it has a header that is too large")
            extended = _pax(_read(file, position, size))
            position = _after(position, size)
            header = _read(file, position, _BLOCK)
            position += _BLOCK
        member = _member(header, extended, position)
        if member.start + member.size > length:
            raise NotAnArchive(f"it ends in the middle of '{member.name}'")
        yield member
        position = _after(position, member.size)


def _after(position: int, size: int) -> int:
    return position + -(-size // _BLOCK) * _BLOCK


def _read(file: t.BinaryIO, position: int, size: int) -> bytes:
    file.seek(position)
    found = file.read(size)
    if len(found) != size:
        raise NotAnArchive("it ends before its end mark")
    return found


def _type_of(header: bytes) -> bytes:
    """The type of a member, once the header has proven to be one."""
    stored = _OCTAL.match(header[148:156].lstrip(b" "))
    if header[257:265] != b"ustar\x0000" or not stored or int(stored.group(1), 8) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise NotAnArchive("it is not a tar archive in the ustar format, or is damaged")
    return header[156:157]


def _size_of(header: bytes) -> int:
    found = _OCTAL.match(header[124:136])
    if not found:
        raise NotAnArchive("a size in it is not a number")
    return int(found.group(1), 8)


def _member(header: bytes, extended: t.Mapping[str, str], position: int) -> Member:
    kind = _type_of(header)
    name = extended.get("path") or _name_of(header)
    if kind not in (b"0", b"\0"):
        raise NotAnArchive(f"'{name}' is not a plain file")
    size = extended.get("size")
    if size is not None and not _SIZE.match(size):
        raise NotAnArchive(f"the size of '{name}' is not a number")
    return Member(name, position, _size_of(header) if size is None else int(size))


def _name_of(header: bytes) -> str:
    name, prefix = (part.partition(b"\0")[0] for part in (header[:100], header[345:500]))
    return _text(prefix + b"/" + name if prefix else name)


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise NotAnArchive("a name in it is not UTF-8") from None


def _pax(content: bytes) -> dict[str, str]:
    """The records of a pax header: ``<length of the record> <key>=<value>\\n``."""
    found: dict[str, str] = {}
    position = 0
    while position < len(content):
        record = _RECORD.match(content, position)
        end = position + int(record.group(1)) if record else 0
        if not record or not record.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise NotAnArchive("it has a damaged header")
        key, _equals, value = content[record.end() : end - 1].partition(b"=")
        name = _text(key)
        if name in ("path", "size") and name not in found:
            found[name] = _text(value)
        elif name not in _IGNORED:
            raise NotAnArchive("it has a header that is not supported")
        position = end
    return found


#: The largest archive of one host that is taken in, unless its caller sets another limit, in bytes.
LARGEST_ARCHIVE = 4096 * MIB

_LARGEST_FILE = 128 * MIB
_MOST_FILES_OF_A_CELL = 128
_MOST_FILES = 250_000
_CHUNK = MIB


@dataclass(frozen=True)
class Received:
    """What became of the cells of one archive, and the state that each host-side measurement has.

    :param refused: another ``ok`` result stands there; ``unexplained``: those of them that a runner measured again because that one does
        not record what exactly was measured, as results of earlier versions of the collection. ``rejected``: cells that are damaged or
        exceed a limit, and why; of these nothing is stored. ``accepted``: all others.
    """

    stored: tuple[CellKey, ...]
    replaced: tuple[CellKey, ...]
    unchanged: tuple[CellKey, ...]
    refused: tuple[CellKey, ...]
    states: t.Mapping[str, int]
    unexplained: tuple[CellKey, ...] = ()
    accepted: tuple[CellKey, ...] = ()
    rejected: t.Mapping[CellKey, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return bool(self.stored or self.replaced)


def receive(
    archive: Path,
    campaign: Path,
    host: str,
    expected: t.Container[CellKey],
    *,
    replace: bool = False,
    largest: int = LARGEST_ARCHIVE,
) -> Received:
    """Unpack what a host packed, check all of it, then put its cells in place.

    A cell that is there already and equal stays. One that is there and differs is replaced when it was not ``ok``, when the host
    was given just that result and measured again because it is of another job, stack, device or fio now (``replaces``), else
    only with ``replace``: a result is never overwritten in silence. A cell that is damaged or exceeds a limit is rejected by itself. An
    archive that is not whole, or holds anything that is no file of a cell that was requested, is rejected with everything in it.

    :param archive: an uncompressed tar of ``<variant>/<cell>/<repeat>/<file>``.
    :param host: the name in the inventory; the archive must contain the same.
    :param expected: the cells requested from this host.
    :raises DamagedArchive: if the archive is rejected.
    :raises ResultsError: if it cannot be written; the partial copy is taken away.
    """
    host = component(host, "host")
    with explained(campaign, f"receiving the results of host {host}"):
        size = archive.stat().st_size
        if size > largest:
            raise DamagedArchive(f"The archive of host {host} has {format_size(size)} and at most {format_size(largest)} are accepted.", item=host)
        require_space(campaign, size + MIB, f"unpacking the results of host {host}")
        # In the campaign's folder, for a rename works within one file system only.
        incoming = Path(tempfile.mkdtemp(prefix=f".incoming.{host}.", dir=campaign))
        try:
            keys, rejected = _unpack(archive, incoming / "new", host, expected)
            metas = _checked(incoming / "new", keys, rejected, host, campaign.name)
            return dataclasses.replace(_place(metas, incoming, campaign / host, replace), accepted=tuple(metas), rejected=rejected)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)


def _unpack(archive: Path, into: Path, host: str, expected: t.Container[CellKey]) -> tuple[list[CellKey], dict[CellKey, str]]:
    """Write the files of an archive below ``into``. Returns the cells that they belong to, and what is wrong with some of them."""

    def bad(why: str) -> DamagedArchive:
        return DamagedArchive(f"The archive of host {host} is not accepted: {plain(why)}. The results are still on the host.", item=host)

    files: dict[CellKey, set[str]] = {}
    rejected: dict[CellKey, str] = {}
    try:
        with archive.open("rb") as raw:
            for count, member in enumerate(members(raw, os.fstat(raw.fileno()).st_size)):
                if count == _MOST_FILES:
                    raise NotAnArchive(f"it has more than {_MOST_FILES} files")
                key, name = _checked_name(member.name, expected)
                names = files.setdefault(key, set())
                problem = _file_problem(name, member.size, names)
                names.add(name)
                if problem:
                    rejected.setdefault(key, problem)
                if key not in rejected:
                    raw.seek(member.start)
                    _write(raw, member.size, key.below(into) / name)
    except NotAnArchive as error:
        raise bad(str(error)) from None
    if not files:
        raise bad("there is nothing in it")
    return sorted(files), rejected


def _checked_name(name: str, expected: t.Container[CellKey]) -> tuple[CellKey, str]:
    """The cell and the file that a member is.

    :raises NotAnArchive: if it is none that this host may send. It belongs to no cell that could be left out instead.
    """
    parts = name.split("/")
    shown = plain(name, 120)
    if len(parts) != 4 or not is_cell_file(parts[3]):
        raise NotAnArchive(f"'{shown}' is not the file of a cell")
    try:
        key = CellKey.checked(*parts[:3])
    except BadInput:
        raise NotAnArchive(f"'{shown}' is not the file of a cell") from None
    if key not in expected:
        raise NotAnArchive(
            f"this host was not requested to measure the cell {key} in this campaign; give the campaign another name, or clear the spool of the host"
        )
    return key, parts[3]


def _file_problem(name: str, size: int, names: t.Collection[str]) -> str:
    limit = _LARGEST_FILE if name.endswith(".gz") else LARGEST_JSON
    if name in names:
        return f"{name} is in the archive twice"
    if len(names) >= _MOST_FILES_OF_A_CELL:
        return f"it has more than {_MOST_FILES_OF_A_CELL} files"
    return f"{name} is larger than {format_size(limit)}" if size > limit else ""


def _write(source: t.BinaryIO, size: int, target: Path) -> None:
    """Copy to a new file, through to the disk, for the host drops its copy afterwards."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        while size and (block := source.read(min(size, _CHUNK))):
            size -= file.write(block)
        file.flush()
        os.fsync(file.fileno())


def _checked(root: Path, keys: t.Iterable[CellKey], rejected: dict[CellKey, str], host: str, campaign: str) -> dict[CellKey, dict[str, t.Any]]:
    """The ``meta.json`` of every consistent cell; why the others are not is added to ``rejected``."""
    metas: dict[CellKey, dict[str, t.Any]] = {}
    for key in keys:
        if key in rejected:
            continue
        try:
            metas[key] = _checked_meta(key.below(root), key, host, campaign)
        except ResultsError as error:
            rejected[key] = error.message
    return metas


def _checked_meta(folder: Path, key: CellKey, host: str, campaign: str) -> dict[str, t.Any]:
    """The ``meta.json`` of a cell just unpacked, after every file was compared with it.

    :raises ResultsError: with the reason, as a part of a sentence.
    """
    try:
        meta = parse_json(read_limited(folder / META_FILE, LARGEST_JSON))
    except ResultsError as error:
        raise ResultsError(f"its {META_FILE} cannot be read ({error.message})") from None
    for what, reported, known in (
        ("schema", meta.get("schema"), SCHEMA),
        ("campaign", meta.get("campaign"), campaign),
        ("host", meta.get("host"), host),
        ("variant", meta.get("variant"), key.variant),
        ("cell", meta.get("cell"), key.cell),
        ("repeat", meta.get("repeat"), key.repeat),
    ):
        if reported != known or isinstance(reported, bool):
            raise ResultsError(f"its {META_FILE} contains {what} '{plain(reported, 60)}' where '{known}' was requested")
    state = meta.get("state")
    if state not in STATES or state == "missing":
        raise ResultsError(f"its {META_FILE} contains the state '{plain(state, 60)}', which does not exist")
    problems = file_problems(folder, meta) or content_problems(folder, meta["files"], measured=state in MEASURED)
    if problems:
        raise ResultsError(problems[0])
    return meta


def _place(metas: t.Mapping[CellKey, t.Mapping[str, t.Any]], incoming: Path, host_folder: Path, replace: bool) -> Received:
    stored, replaced, unchanged, refused = [], [], [], []
    for key in metas:
        new, old = key.below(incoming / "new"), key.below(host_folder)
        state = stored_state(host_folder, key)
        if state is None and not old.exists():
            old.parent.mkdir(parents=True, exist_ok=True)
            new.rename(old)
            stored.append(key)
        elif state is not None and state != "damaged" and _same(new / META_FILE, old / META_FILE):
            unchanged.append(key)
        elif state == "ok" and not replace and not _replaces(metas[key], old):
            refused.append(key)
        else:
            _exchange(new, old, incoming / f"old-{len(replaced)}")
            replaced.append(key)
    for folder in {key.below(host_folder).parent for key in (*stored, *replaced)}:
        sync_folder(folder)
    states: dict[str, int] = {}
    for meta in metas.values():
        states[str(meta["state"])] = states.get(str(meta["state"]), 0) + 1
    old = (key for key in refused if is_sha256(metas[key].get("measurement_sha256")) and not _explained(key.below(host_folder)))
    return Received(tuple(stored), tuple(replaced), tuple(unchanged), tuple(refused), states, tuple(old))


def _explained(folder: Path) -> bool:
    """Whether a result records what exactly was measured."""
    return is_sha256(read_json(folder / META_FILE).get("measurement_sha256"))


def _replaces(meta: t.Mapping[str, t.Any], old: Path) -> bool:
    """Whether a new result names the stored one as what it is measured instead of."""
    named = meta.get("replaces")
    return is_sha256(named) and read_json(old / META_FILE).get("measurement_sha256") == named


def _exchange(new: Path, old: Path, aside: Path) -> None:
    """Put ``new`` where ``old`` is; ``old`` comes back if that fails."""
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise


def _same(one: Path, other: Path) -> bool:
    # The hashes of all other files are in it and were compared with them on both sides.
    return one.read_bytes() == other.read_bytes()
