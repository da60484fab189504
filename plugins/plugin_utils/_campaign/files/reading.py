# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading and writing in the results folder, carefully: no half files, no belief in what is read, one sentence when the disk refuses."""

from __future__ import annotations

import contextlib
import errno
import getpass
import hashlib
import json
import os
import re
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replacing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import META_FILE, STATES, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import parse_json, read_limited

#: The largest JSON file that is read, in bytes.
LARGEST_JSON = json_text.SMALL.size

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


# ---------------------------------------------------------------------------------------------------------------------
# Single files


#: Bytes that are hashed at once.
_BLOCK = 128 * 1024


def is_sha256(text: t.Any) -> bool:
    """Whether it is a SHA-256 as JSON carries it: 64 hexadecimal digits."""
    return isinstance(text, str) and bool(_SHA256.match(text))


def file_sha256(path: Path | str) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    # Most are a few KiB: file_digest would first fill a large buffer with zeros for each of them.
    found = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while block := os.read(descriptor, _BLOCK):
            found.update(block)
    finally:
        os.close(descriptor)
    return found.hexdigest()


def new_file(folder: Path, prefix: str) -> Path:
    """An empty file of our own in a folder of results.

    :raises ResultsError: if it cannot be written there.
    """
    with explained(folder, "making a temporary file"):
        descriptor, name = tempfile.mkstemp(prefix=prefix, dir=folder)
        os.close(descriptor)
    return Path(name)


def write_json(path: Path, value: t.Mapping[str, t.Any]) -> None:
    """Write JSON so that readers never see half of it.

    :raises ResultsError: if it cannot be written.
    """
    with explained(path.parent, f"writing {path.name}"):
        write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file so that readers never see half of it, and that it is whole after a power cut.

    :raises OSError: if it cannot be written; nothing is left of it then.
    """
    with replacing(path) as file:
        file.write(text)


def read_json(path: Path | str, limits: json_text.Limits = json_text.SMALL) -> dict[str, t.Any]:
    """A JSON object from a file that a host or another controller may have written.

    :raises ResultsError: if it is none, or exceeds a limit of :mod:`json_text`.
    """
    try:
        return parse_json(read_limited(path, limits.size), limits)
    except ResultsError as error:
        raise ResultsError(f"{path}: {error.message}") from None


def sync_folder(folder: Path) -> None:
    """See that what was renamed into ``folder`` is there after a power cut too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------------------------------------------------------
# The files of a cell


def file_problems(folder: Path, meta: t.Mapping[str, t.Any]) -> list[str]:
    """How the files of a cell differ from its ``meta.json``."""
    recorded = meta.get("files")
    if not isinstance(recorded, dict):
        return [f"its {META_FILE} names no files"]
    try:
        with os.scandir(folder) as entries:
            there = {entry.name: entry for entry in entries if entry.name != META_FILE}
        problems = [f"{plain(name, 80)} is missing" for name in sorted(recorded.keys() - there.keys())]
        problems += [f"{plain(name, 80)} is not listed in its {META_FILE}" for name in sorted(there.keys() - recorded.keys())]
        for name in sorted(there.keys() & recorded.keys()):
            if not there[name].is_file(follow_symlinks=False):
                problems.append(f"{name} is not a plain file")
            elif file_sha256(there[name].path) != recorded[name]:
                problems.append(f"the SHA-256 of {name} is not the one in its {META_FILE}")
    except OSError as error:
        return [f"its files cannot be read ({error.strerror})"]
    return problems


def stored_state(host_folder: Path, key: CellKey) -> str | None:
    """The state of a cell in the results folder: ``None`` if it is not there, ``damaged`` if its files are not what they were."""
    folder = key.below(host_folder)
    if not folder.is_dir():
        return None
    try:
        meta = read_json(folder / META_FILE)
    except ResultsError:
        return "damaged"
    return "damaged" if file_problems(folder, meta) or meta.get("state") not in STATES else str(meta["state"])


# ---------------------------------------------------------------------------------------------------------------------
# What the system refuses


def require_space(folder: Path, needed: int, what: str) -> None:
    """See that ``needed`` bytes are free where ``folder`` lies.

    :raises ResultsError: with both figures.
    """
    with explained(folder, "determining free space"):
        stat = os.statvfs(folder)
    free = stat.f_bavail * stat.f_frsize
    if free < needed:
        raise ResultsError(
            f"The disk of the results folder {folder} on the controller has {format_size(free)} free and {what} needs {format_size(needed)}: "
            "free space, or set fio_benchmark_results to a folder on another disk, then run again.",
            free=free,
            needed=needed,
        )


def look_writable(results: Path) -> None:
    """Without writing: whether ``results`` is a folder one may write to, or could be made."""
    there = next(path for path in (results, *results.parents) if path.exists())
    if not there.is_dir():
        raise _failure(results, "preparing the campaign", NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _failure(results, "preparing the campaign", PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


@contextlib.contextmanager
def explained(folder: Path, doing: str) -> t.Iterator[None]:
    """Turn the system's refusal to write into a sentence."""
    try:
        yield
    except OSError as error:
        raise _failure(folder, doing, error) from error


def _failure(folder: Path, doing: str, error: OSError) -> ResultsError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResultsError(
            f"The disk of the results folder {folder} on the controller became full while {doing}: no partial result was kept. Free space, then run again.",
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
