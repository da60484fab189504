# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The results folder on the controller: opening a campaign, taking in what hosts send, reading it back.

Hosts are not trusted. Of an archive only plain files with known names are unpacked, into a temporary folder, and only when
every file has the hash that its ``meta.json`` says are the cells renamed into place. Each host has a folder of its own, so
hosts can be collected side by side without locks.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import getpass
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.layout import (
    CAMPAIGN_FILE,
    JOB_FILE,
    META_FILE,
    PLAN_FILE,
    RESERVED,
    SCHEMA,
    STACK_FILE,
    STATES,
    CellKey,
    DamagedArchive,
    ResultsError,
    component,
    default_campaign_name,
    is_cell_file,
    plain,
    repeat_number,
)

#: Bytes that must be free before a campaign begins: less than the smallest archive would soon fill it.
MINIMUM_FREE = 16 * MIB

#: The largest archive of one host that is taken in, unless its caller says otherwise, in bytes.
LARGEST_ARCHIVE = 4096 * MIB

_LARGEST_FILE = 1024 * MIB
_LARGEST_JSON = 4 * MIB
_MOST_FILES_OF_A_CELL = 128
_CHUNK = MIB


@dataclass(frozen=True)
class Received:
    """What became of the cells of one archive, and the state that each host-side measurement has."""

    stored: tuple[CellKey, ...]
    replaced: tuple[CellKey, ...]
    unchanged: tuple[CellKey, ...]
    refused: tuple[CellKey, ...]
    states: t.Mapping[str, int]

    @property
    def changed(self) -> bool:
        return bool(self.stored or self.replaced)


@dataclass(frozen=True)
class CellRecord:
    """One measurement as the results folder has it, or as it should have it (state ``missing``).

    :param path: its folder; ``None`` if there is none.
    :param meta: its ``meta.json``; every value in it was said by a host.
    :param job: the fio options that were sent, from ``job.fio``.
    :param verdicts: the verdict of the stack before and after; ``None`` where it was not recorded.
    :param problems: what is wrong with its files, as sentences. A record with problems is never ``ok``.
    """

    host: str
    key: CellKey
    state: str
    reason: str
    path: Path | None = None
    meta: t.Mapping[str, t.Any] = field(default_factory=dict)
    job: t.Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str | None, str | None] = (None, None)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Campaign:
    """A results folder, read.

    :param variants: their names in the order in which they were planned.
    """

    name: str
    path: Path
    variants: tuple[str, ...]
    cells: tuple[CellRecord, ...]
    problems: tuple[str, ...]


# ---------------------------------------------------------------------------------------------------------------------
# Opening


def open_campaign(results: Path, name: str = "", label: str = "", *, now: datetime.datetime, dry_run: bool = False) -> tuple[Path, bool]:
    """Make the folder of a campaign and prove that results can be written there, before any host works for nothing.

    :param name: an existing or a new campaign; empty takes the controller's clock and ``label``.
    :param dry_run: look only.
    :returns: the folder, and whether it is a new one.
    :raises ResultsError: if the folder cannot be written or its disk is as good as full.
    """
    wanted = component(name, "campaign") if name else default_campaign_name(now, label)
    if dry_run:
        _look_writable(results)
        return results / wanted, not (results / wanted / CAMPAIGN_FILE).exists()
    with _explained(results, "preparing the campaign"):
        results.mkdir(parents=True, exist_ok=True)
        folder = results / wanted
        if name:
            folder.mkdir(exist_ok=True)
        else:
            folder = _new_folder(results, wanted)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 65536)
            probe.flush()
            os.fsync(probe.fileno())
    require_space(folder, MINIMUM_FREE, "a campaign")
    is_new = not (folder / CAMPAIGN_FILE).exists()
    if is_new:
        write_json(folder / CAMPAIGN_FILE, {"schema": SCHEMA, "campaign": folder.name, "created": _stamp(now)})
    return folder, is_new


@dataclass(frozen=True)
class Asked:
    """What a cell shall measure, as far as its result says it again.

    :param workload_sha256: of the job, whatever it runs on.
    :param path: of the target, as the user wrote it; ``used_size``: how much of it, in bytes, ``None`` for all.
    """

    workload_sha256: str
    path: str
    used_size: int | None


def finished(campaign: Path, host: str, wanted: t.Mapping[CellKey, Asked]) -> set[CellKey]:
    """The cells that have an ``ok`` result of the very same measurement already: whole files, same job, same target.

    :raises BadInput: if an ``ok`` result of another measurement has the name of a cell.
    """
    done = set()
    for key, asked in wanted.items():
        if _stored_state(campaign / component(host, "host"), key) != "ok":
            continue
        meta = _read_json(key.below(campaign / host) / META_FILE)
        target = meta.get("target")
        target = target if isinstance(target, dict) else {}
        if Asked(meta.get("workload_sha256"), target.get("path"), target.get("used_size")) != asked:  # type: ignore[arg-type]
            raise BadInput(
                f"The campaign {campaign.name} has an ok result of {key} of host {host} already, of another job or target: "
                "give fio_benchmark_campaign or fio_benchmark_variant another name, or set fio_benchmark_replace to true.",
                item=host,
            )
        done.add(key)
    return done


def write_plan(campaign: Path, host: str, variant: str, cells: t.Iterable[tuple[str, int]], *, now: datetime.datetime, dry_run: bool = False) -> bool:
    """Write down what one host shall measure, so that what does not arrive is known to be missing.

    A plan that exists is added to, never shortened: what was once promised stays visible.

    :param dry_run: look only.
    :returns: whether the plan changes.
    """
    host, variant = component(host, "host"), component(variant, "variant")
    wanted = {CellKey.checked(variant, cell, repeat) for cell, repeat in cells}
    path = campaign / host / variant / PLAN_FILE
    present = _plan_cells(path, variant)
    if wanted <= present:
        return False
    if dry_run:
        return True
    with _explained(campaign, f"writing the plan of host {host}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    created = _read_json(path).get("created") if path.exists() else None
    repeats: dict[str, list[int]] = {}
    for key in sorted(wanted | present):
        repeats.setdefault(key.cell, []).append(key.repeat)
    plan = {"schema": SCHEMA, "campaign": campaign.name, "host": host, "variant": variant, "created": created or _stamp(now), "cells": repeats}
    write_json(path, plan)
    return True


def expected_cells(campaign: Path, host: str) -> set[CellKey]:
    """Every cell that was ever planned for a host in this campaign, whatever the variant."""
    folder = campaign / component(host, "host")
    if not folder.is_dir():
        return set()
    return {key for variant in _folders(folder, []) for key in _plan_cells(variant / PLAN_FILE, variant.name)}


def require_space(folder: Path, needed: int, what: str) -> None:
    """See that ``needed`` bytes are free where ``folder`` lies.

    :raises ResultsError: with both figures.
    """
    with _explained(folder, "looking for free space"):
        stat = os.statvfs(folder)
    free = stat.f_bavail * stat.f_frsize
    if free < needed:
        raise ResultsError(
            f"The disk of the results folder {folder} on the controller has {format_size(free)} free and {what} needs {format_size(needed)}: "
            "free space, or set fio_benchmark_results to a folder on another disk, then run again.",
            free=free,
            needed=needed,
        )


# ---------------------------------------------------------------------------------------------------------------------
# Taking in


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

    A cell that is there already and equal stays. One that is there and differs is replaced when it was not ``ok``, else only
    with ``replace``: a result is never overwritten in silence. Nothing is put in place when anything in the archive is wrong.

    :param archive: an uncompressed tar of ``<variant>/<cell>/<repeat>/<file>``.
    :param host: the name in the inventory; the archive must say the same.
    :param expected: the cells this host was asked for.
    :raises DamagedArchive: if the archive holds anything else than what was asked for, whole and unchanged.
    :raises ResultsError: if it cannot be written; the partial copy is taken away.
    """
    host = component(host, "host")
    with _explained(campaign, f"receiving the results of host {host}"):
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
                limit = _LARGEST_FILE if parts[3].endswith(".gz") else _LARGEST_JSON
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
        meta = _read_json(folder / META_FILE)
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
    problems = _file_problems(folder, meta)
    if problems:
        raise bad(problems[0])
    return meta


def _file_problems(folder: Path, meta: t.Mapping[str, t.Any]) -> list[str]:
    """How the files of a cell differ from what its ``meta.json`` says of them."""
    said = meta.get("files")
    if not isinstance(said, dict):
        return [f"its {META_FILE} names no files"]
    try:
        there = {entry.name for entry in folder.iterdir()} - {META_FILE}
        problems = [f"{plain(name, 80)} is missing" for name in sorted(set(said) - there)]
        problems += [f"{plain(name, 80)} is there and its {META_FILE} does not know it" for name in sorted(there - set(said))]
        for name in sorted(there & set(said)):
            path = folder / name
            if path.is_symlink() or not path.is_file():
                problems.append(f"{name} is not a plain file")
            elif file_sha256(path) != said[name]:
                problems.append(f"the SHA-256 of {name} is not the one in its {META_FILE}")
    except OSError as error:
        return [f"its files cannot be read ({error.strerror})"]
    return problems


def _place(metas: t.Mapping[CellKey, t.Mapping[str, t.Any]], incoming: Path, host_folder: Path, replace: bool) -> Received:
    stored, replaced, unchanged, refused = [], [], [], []
    for key in metas:
        new, old = key.below(incoming / "new"), key.below(host_folder)
        state = _stored_state(host_folder, key)
        if state is None and not old.exists():
            old.parent.mkdir(parents=True, exist_ok=True)
            new.rename(old)
            stored.append(key)
        elif state is not None and state != "damaged" and _same(new / META_FILE, old / META_FILE):
            unchanged.append(key)
        elif state == "ok" and not replace:
            refused.append(key)
        else:
            _exchange(new, old, incoming / f"old-{len(replaced)}")
            replaced.append(key)
    for folder in {key.below(host_folder).parent for key in (*stored, *replaced)}:
        _sync_folder(folder)
    states: dict[str, int] = {}
    for meta in metas.values():
        states[str(meta["state"])] = states.get(str(meta["state"]), 0) + 1
    return Received(tuple(stored), tuple(replaced), tuple(unchanged), tuple(refused), states)


def _exchange(new: Path, old: Path, aside: Path) -> None:
    """Put ``new`` where ``old`` is; ``old`` comes back if that fails."""
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise


def _stored_state(host_folder: Path, key: CellKey) -> str | None:
    """The state of a cell in the results folder: ``None`` if it is not there, ``damaged`` if its files are not what they were."""
    folder = key.below(host_folder)
    if not folder.is_dir():
        return None
    try:
        meta = _read_json(folder / META_FILE)
    except ResultsError:
        return "damaged"
    return "damaged" if _file_problems(folder, meta) or meta.get("state") not in STATES else str(meta["state"])


def _same(one: Path, other: Path) -> bool:
    # The hashes of all other files are in it and were compared with them on both sides.
    return one.read_bytes() == other.read_bytes()


# ---------------------------------------------------------------------------------------------------------------------
# Reading back


def load_campaign(path: Path) -> Campaign:
    """Read a campaign: what is there, what is damaged, and what was planned and never came.

    :raises ResultsError: if it is not the folder of a campaign.
    """
    if not path.is_dir():
        raise ResultsError(f"There is no campaign in {path}: that folder does not exist. Give a folder that holds {CAMPAIGN_FILE}.")
    problems: list[str] = []
    name = path.name
    if (path / CAMPAIGN_FILE).is_file():
        try:
            name = plain(_read_json(path / CAMPAIGN_FILE).get("campaign", path.name), 128)
        except ResultsError as error:
            problems.append(error.message)
    created: dict[str, str] = {}
    records: list[CellRecord] = []
    for host in _folders(path, problems):
        for variant in _folders(host, problems):
            planned = _planned(variant, created, problems)
            found = {key: folder for folder in _repeats(variant, problems) for key in [CellKey(variant.name, folder.parent.name, int(folder.name))]}
            records += [_load_cell(host.name, key, folder) for key, folder in found.items()]
            records += [CellRecord(host.name, key, "missing", "no result came from this host") for key in planned - set(found)]
    if not records and not (path / CAMPAIGN_FILE).exists():
        raise ResultsError(f"{path} is not the folder of a campaign: it holds neither {CAMPAIGN_FILE} nor results.")
    variants = sorted({record.key.variant for record in records}, key=lambda variant: (created.get(variant, "~"), variant))
    records.sort(key=lambda record: (record.host, variants.index(record.key.variant), record.key.cell, record.key.repeat))
    return Campaign(name, path, tuple(variants), tuple(records), tuple(problems))


def _folders(parent: Path, problems: list[str]) -> list[Path]:
    """The folders in ``parent`` that a campaign may have; links and strange names are said, not followed."""
    found = []
    for entry in sorted(parent.iterdir()):
        if entry.name.startswith(".") or entry.name in RESERVED:
            continue
        if entry.is_symlink() or not entry.is_dir():
            problems.append(f"{plain(entry)} is left out: it is not a folder of this campaign.")
            continue
        try:
            component(entry.name, "folder")
        except BadInput:
            problems.append(f"{plain(entry)} is left out: no host, variant or cell can have this name.")
            continue
        found.append(entry)
    return found


def _repeats(variant: Path, problems: list[str]) -> list[Path]:
    found = []
    for cell in _folders(variant, problems):
        for folder in _folders(cell, problems):
            try:
                repeat_number(folder.name)
            except BadInput:
                problems.append(f"{plain(folder)} is left out: it is not the number of a repeat.")
            else:
                found.append(folder)
    return found


def _planned(variant: Path, created: dict[str, str], problems: list[str]) -> set[CellKey]:
    path = variant / PLAN_FILE
    if not path.is_file():
        return set()
    try:
        stamp = str(_read_json(path).get("created", ""))
        created[variant.name] = min(stamp, created.get(variant.name, stamp))
        return _plan_cells(path, variant.name)
    except StorageError as error:
        problems.append(error.message)
        return set()


def _plan_cells(path: Path, variant: str) -> set[CellKey]:
    if not path.is_file():
        return set()
    cells = _read_json(path).get("cells")
    if not isinstance(cells, dict) or not all(isinstance(repeats, list) for repeats in cells.values()):
        raise ResultsError(f"{path} does not say which cells were planned: take it away, or copy the campaign again.")
    return {CellKey.checked(variant, cell, repeat) for cell, repeats in cells.items() for repeat in repeats}


def _load_cell(host: str, key: CellKey, folder: Path) -> CellRecord:
    try:
        meta = _read_json(folder / META_FILE)
    except ResultsError as error:
        return CellRecord(host, key, "failed", error.message, folder, problems=(error.message,))
    problems = _file_problems(folder, meta)
    claimed = [meta.get(part) for part in ("schema", "host", "variant", "cell", "repeat")]
    if claimed != [SCHEMA, host, key.variant, key.cell, key.repeat]:
        problems.append(f"its {META_FILE} belongs to another cell or another version of the results")
    state = meta.get("state")
    if state not in STATES:
        problems.append(f"its {META_FILE} says the state '{plain(state, 60)}', which does not exist")
    reason = plain(meta.get("reason") or "", 300)
    if problems:
        # Numbers of a cell that was changed after it was measured are no measurement.
        return CellRecord(host, key, "failed", f"the stored result is damaged: {problems[0]}", folder, meta={}, problems=tuple(problems))
    return CellRecord(host, key, str(state), reason, folder, meta, _job_options(folder), _verdicts(folder))


def _job_options(folder: Path) -> dict[str, str]:
    """The options of a ``job.fio``: ini sections of ``option=value`` or bare ``option`` (fio HOWTO, job file format)."""
    try:
        text = (folder / JOB_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    options: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "#;[":
            option, _equals, value = line.partition("=")
            options[option.strip()] = value.strip()
    return options


def _verdicts(folder: Path) -> tuple[str | None, str | None]:
    try:
        stack = _read_json(folder / STACK_FILE)
    except ResultsError:
        return None, None
    sides = (stack.get("before"), stack.get("after"))
    before, after = (plain(side["verdict"], 20) if isinstance(side, dict) and isinstance(side.get("verdict"), str) else None for side in sides)
    return before, after


# ---------------------------------------------------------------------------------------------------------------------
# Files


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def new_file(folder: Path, prefix: str) -> Path:
    """An empty file of our own in a folder of results.

    :raises ResultsError: if it cannot be written there.
    """
    with _explained(folder, "making a temporary file"):
        descriptor, name = tempfile.mkstemp(prefix=prefix, dir=folder)
        os.close(descriptor)
    return Path(name)


def write_json(path: Path, value: t.Mapping[str, t.Any]) -> None:
    """Write JSON so that nobody ever sees half of it.

    :raises ResultsError: if it cannot be written.
    """
    with _explained(path.parent, f"writing {path.name}"):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=2, sort_keys=True)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _read_json(path: Path) -> dict[str, t.Any]:
    """A JSON object from a file that somebody else may have written.

    :raises ResultsError: if it is none, or too large to be meant.
    """
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise ResultsError(f"{path} is larger than {format_size(_LARGEST_JSON)}")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ResultsError(f"{path} is not JSON") from None
    if not isinstance(value, dict):
        raise ResultsError(f"{path} is not a JSON object")
    return value


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stamp(now: datetime.datetime) -> str:
    # Microseconds keep two variants apart that were opened in one second.
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _new_folder(results: Path, wanted: str) -> Path:
    """A folder that was not there: two campaigns of one minute get different names."""
    for number in range(1, 1000):
        folder = results / (wanted if number == 1 else f"{wanted}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise ResultsError(f"{results} holds 1000 campaigns named {wanted}: give fio_benchmark_campaign a name.")


def _look_writable(results: Path) -> None:
    """Without writing: whether ``results`` is a folder one may write to, or could be made."""
    there = next(path for path in (results, *results.parents) if path.exists())
    if not there.is_dir():
        raise _failure(results, "preparing the campaign", NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _failure(results, "preparing the campaign", PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


@contextlib.contextmanager
def _explained(folder: Path, doing: str) -> t.Iterator[None]:
    """Turn the system's refusal to write into a sentence."""
    try:
        yield
    except OSError as error:
        raise _failure(folder, doing, error) from error


def _failure(folder: Path, doing: str, error: OSError) -> ResultsError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResultsError(
            f"The disk of the results folder {folder} on the controller became full while {doing}: no half of a result was kept. Free space, then run again.",
        )
    return ResultsError(
        f"The results folder {folder} on the controller cannot be written by {_who()} ({error.strerror}, while {doing}): "
        "set fio_benchmark_results to a folder that can be."
    )


def _who() -> str:
    try:
        return f"user {getpass.getuser()}"
    except (OSError, KeyError):
        return f"user number {os.geteuid()}"
