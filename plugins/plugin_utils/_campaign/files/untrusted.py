# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading files that a host wrote: every read has a limit of bytes, also of what it unpacks to."""

from __future__ import annotations

import os
import typing as t
import zlib
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import DEVICE_STATS_FILE, OUTPUT_FILE, STACK_FILE, ResultsError

#: Lines of the logs of one cell together: those of 19 days with three logs, or of one day with 19 threads.
MOST_LINES = 5_000_000

#: What may be raised where a value of a host is of another kind than in any valid file. It makes one cell failed.
CELL_TROUBLE = (StorageError, AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError)

#: Bytes that are unpacked at once.
_BLOCK = MIB

#: Bytes of a packed file of a cell once it is unpacked, by the end of its name. Real ones: 0.1 MiB of JSON, 2 MiB of log for a day.
_LARGEST = {OUTPUT_FILE: json_text.FIO.size, ".stderr.gz": 4 * MIB, ".log.gz": 128 * MIB}


def read_limited(path: Path | str, largest: int) -> bytes:
    """A plain file; links are not followed, and a device or a pipe is not waited for.

    :raises ResultsError: if it cannot be read or is larger.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # Not read(largest): that allocates as much. The file may grow meanwhile, readall() would follow it.
            content = os.read(descriptor, min(os.fstat(descriptor).st_size, largest) + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ResultsError(f"{os.path.basename(path)} could not be read ({error.strerror})") from None
    if len(content) > largest:
        raise ResultsError(f"{os.path.basename(path)} is larger than {format_size(largest)}")
    return content


def unpacked(path: Path | str) -> str:
    """The text of a packed file of a cell, UTF-8 with U+FFFD for what is not.

    :raises ResultsError: if it cannot be read, is damaged, or unpacks to more than its kind may have.
    """
    content = b"".join(_blocks(path))
    # Of a text with one rare character every character takes four bytes.
    return content.decode(errors="replace") if len(content) <= 4 * MIB or content.isascii() else content.decode("ascii", "replace")


def _blocks(path: Path | str) -> t.Iterator[bytes]:
    """A packed file of a cell as it is unpacked, block by block: never more than the limit of its kind.

    :raises ResultsError: as :func:`unpacked`.
    """
    name = os.path.basename(path)
    largest = largest_unpacked(name)
    content = read_limited(path, largest)
    # Without the layers of the module gzip, which take longer than the work.
    unpacking = zlib.decompressobj(wbits=31)
    found = lines = 0
    try:
        while block := unpacking.decompress(content, _BLOCK):
            content = unpacking.unconsumed_tail
            found += len(block)
            lines += block.count(b"\n")
            if found > largest:
                raise ResultsError(f"{name} unpacks to more than {format_size(largest)}")
            if lines > MOST_LINES:
                raise ResultsError(f"{name} has more than {MOST_LINES} lines")
            yield block
    except zlib.error:
        raise ResultsError(f"{name} is not a gzip file") from None
    if not unpacking.eof or unpacking.unused_data:
        raise ResultsError(f"{name} is not one whole gzip file")


def logs(paths: t.Iterable[Path | str]) -> t.Iterator[str]:
    """The texts of the logs of one cell, one after the other.

    :raises ResultsError: as :func:`unpacked`, and if they have too many lines together.
    """
    lines = 0
    for path in paths:
        text = unpacked(path)
        lines += text.count("\n")
        if lines > MOST_LINES:
            raise ResultsError(f"its logs have more than {MOST_LINES} lines together")
        yield text


def trouble(error: BaseException) -> str:
    """One of :data:`CELL_TROUBLE` as the reason of a failed cell."""
    if isinstance(error, StorageError):
        return plain(error.message, 300)
    if isinstance(error, MemoryError):
        return "the controller has too little memory for its files"
    return f"its files have a value of an unexpected type or size ({type(error).__name__})"


def content_problems(folder: Path, names: t.Iterable[str], *, measured: bool) -> list[str]:
    """Which file of a cell exceeds a limit or could not be parsed: one sentence at most.

    :param measured: whether the cell has numbers, so that the output of fio must be readable.
    """
    try:
        for name in sorted(names):
            if name == OUTPUT_FILE and measured:
                fio_result(folder)
            elif name.endswith(".gz"):
                for _block in _blocks(folder / name):
                    pass
            elif name in (STACK_FILE, DEVICE_STATS_FILE):
                _require_json(folder / name)
    except ResultsError as error:
        return [error.message]
    return []


def _require_json(path: Path) -> None:
    try:
        json_text.loads(read_limited(path, json_text.SMALL.size))
    except StorageError as error:
        raise ResultsError(f"{path.name} could not be parsed: {error.message}") from None


def largest_unpacked(name: str) -> int:
    """Bytes that a packed file of a cell may have unpacked."""
    return next((limit for end, limit in _LARGEST.items() if name.endswith(end)), MIB)


def fio_result(folder: Path) -> fio_output.Output:
    """What fio printed in the measurement of which the files are in ``folder``.

    :raises ResultsError: if it cannot be read, exceeds a limit, or is not the output of fio.
    """
    text = unpacked(f"{folder}/{OUTPUT_FILE}")
    try:
        return fio_output.parse(text)
    except StorageError as error:
        raise ResultsError(f"{OUTPUT_FILE} could not be parsed: {plain(error.message, 200)}") from None
    except MemoryError:
        raise ResultsError(f"{OUTPUT_FILE} could not be parsed: the controller has too little memory for it") from None


def parse_json(content: str | bytes, limits: json_text.Limits = json_text.SMALL) -> dict[str, t.Any]:
    """A JSON object that a host sent.

    :raises ResultsError: if it is none or exceeds a limit; the sentence has no subject.
    """
    try:
        value = json_text.loads(content, limits)
    except StorageError as error:
        raise ResultsError(error.message) from None
    if not isinstance(value, dict):
        raise ResultsError("it is not a JSON object")
    return value
