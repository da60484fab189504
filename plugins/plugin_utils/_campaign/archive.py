# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Taking in what a host packed.

Hosts are not trusted. Of an archive only plain files with known names are unpacked, into a temporary folder, and only when
every file has the hash that its ``meta.json`` says are the cells renamed into place. Each host has a folder of its own, so
hosts can be collected side by side without locks.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import (
    LARGEST_JSON,
    explained,
    file_problems,
    is_sha256,
    read_json,
    require_space,
    stored_state,
    sync_folder,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.layout import (
    META_FILE,
    SCHEMA,
    STATES,
    CellKey,
    DamagedArchive,
    ResultsError,
    component,
    is_cell_file,
    plain,
)

#: The largest archive of one host that is taken in, unless its caller says otherwise, in bytes.
LARGEST_ARCHIVE = 4096 * MIB

_LARGEST_FILE = 1024 * MIB
_MOST_FILES_OF_A_CELL = 128
_CHUNK = MIB


@dataclass(frozen=True)
class Received:
    """What became of the cells of one archive, and the state that each host-side measurement has.

    :param refused: another ``ok`` result stands there; ``unexplained``: those of them that a runner measured again because that one does
        not say what exactly was measured, as results of earlier versions of the collection.
    """

    stored: tuple[CellKey, ...]
    replaced: tuple[CellKey, ...]
    unchanged: tuple[CellKey, ...]
    refused: tuple[CellKey, ...]
    states: t.Mapping[str, int]
    unexplained: tuple[CellKey, ...] = ()

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
    was told of just that result and measured again because it is of another job, stack, device or fio now (``replaces``), else
    only with ``replace``: a result is never overwritten in silence. Nothing is put in place when anything in the archive is wrong.

    :param archive: an uncompressed tar of ``<variant>/<cell>/<repeat>/<file>``.
    :param host: the name in the inventory; the archive must say the same.
    :param expected: the cells this host was asked for.
    :raises DamagedArchive: if the archive holds anything else than what was asked for, whole and unchanged.
    :raises ResultsError: if it cannot be written; the partial copy is taken away.
    """
    host = component(host, "host")
    with explained(campaign, f"receiving the results of host {host}"):
        size = archive.stat().st_size
        if size > largest:
            raise DamagedArchive(f"The archive of host {host} has {format_size(size)} and at most {format_size(largest)} are taken in.", item=host)
        require_space(campaign, size + MIB, f"unpacking the results of host {host}")
        # In the campaign's folder, for a rename works within one file system only.
        incoming = Path(tempfile.mkdtemp(prefix=f".incoming.{host}.", dir=campaign))
        try:
            metas = {key: _checked_meta(incoming / "new", key, host, campaign.name) for key in _unpack(archive, incoming / "new", host, expected)}
            return _place(metas, incoming, campaign / host, replace)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)


class _Bounded(io.RawIOBase):
    """A file that gives no more than a chunk at once: a header of an archive cannot claim the controller's memory."""

    def __init__(self, raw: t.BinaryIO) -> None:
        self._raw = raw

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > 4 * _CHUNK:
            raise tarfile.ReadError("a header claims more than can be meant")
        return self._raw.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _unpack(archive: Path, into: Path, host: str, expected: t.Container[CellKey]) -> list[CellKey]:
    """Write the files of an archive below ``into`` and say which cells they belong to."""

    def bad(why: str) -> DamagedArchive:
        return DamagedArchive(f"The archive of host {host} is not taken in: {why}. The results are still on the host.", item=host)

    files: dict[CellKey, set[str]] = {}
    try:
        with archive.open("rb") as raw, tarfile.open(fileobj=t.cast("t.IO[bytes]", _Bounded(raw)), mode="r:") as tar:
            for member in tar:
                name = plain(member.name, 120)
                if not member.isreg() or member.issparse():
                    raise bad(f"'{name}' is not a plain file")
                parts = member.name.split("/")
                if len(parts) != 4 or not is_cell_file(parts[3]):
                    raise bad(f"'{name}' is not the file of a cell")
                try:
                    key = CellKey.checked(*parts[:3])
                except BadInput:
                    raise bad(f"'{name}' is not the file of a cell") from None
                if key not in expected:
                    raise bad(f"nobody asked this host for the cell {key} in this campaign; give the campaign another name, or clear the spool of the host")
                present = files.setdefault(key, set())
                if parts[3] in present:
                    raise bad(f"'{name}' is in it twice")
                present.add(parts[3])
                limit = _LARGEST_FILE if parts[3].endswith(".gz") else LARGEST_JSON
                if member.size > limit or len(present) > _MOST_FILES_OF_A_CELL:
                    raise bad(f"'{name}' is larger than {format_size(limit)}" if member.size > limit else f"the cell {key} has too many files")
                content = tar.extractfile(member)
                if content is None or _write(content, key.below(into) / parts[3]) != member.size:
                    raise bad(f"it ends in the middle of '{name}'")
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise bad(f"it cannot be read as a tar archive ({plain(error)})") from None
    if not files:
        raise bad("there is nothing in it")
    return sorted(files)


def _write(source: t.IO[bytes], target: Path) -> int:
    """Copy to a new file, through to the disk, for the host drops its copy afterwards. Returns the bytes written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        while block := source.read(_CHUNK):
            written += file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return written


def _checked_meta(root: Path, key: CellKey, host: str, campaign: str) -> dict[str, t.Any]:
    """The ``meta.json`` of a cell just unpacked, after every file was compared with it."""
    folder = key.below(root)

    def bad(why: str) -> DamagedArchive:
        return DamagedArchive(f"The cell {key} of host {host} is not taken in: {why}. The results are still on the host.", item=str(key))

    try:
        meta = read_json(folder / META_FILE)
    except ResultsError as error:
        raise bad(f"its {META_FILE} cannot be read ({error.message})") from None
    for what, said, known in (
        ("schema", meta.get("schema"), SCHEMA),
        ("campaign", meta.get("campaign"), campaign),
        ("host", meta.get("host"), host),
        ("variant", meta.get("variant"), key.variant),
        ("cell", meta.get("cell"), key.cell),
        ("repeat", meta.get("repeat"), key.repeat),
    ):
        if said != known or isinstance(said, bool):
            raise bad(f"its {META_FILE} says {what} '{plain(said, 60)}' where '{known}' was asked for")
    if meta.get("state") not in STATES or meta["state"] == "missing":
        raise bad(f"its {META_FILE} says the state '{plain(meta.get('state'), 60)}', which does not exist")
    problems = file_problems(folder, meta)
    if problems:
        raise bad(problems[0])
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
    """Whether a result says what exactly was measured."""
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
