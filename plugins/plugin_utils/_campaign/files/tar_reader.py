# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The members of an untrusted tar archive: plain files in the ustar format, with one pax header each at most.

Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header". It is what the spool on a host writes. The module
tarfile reads far more: it recurses over chained headers, follows sparse maps, and takes sizes from headers as they are.
"""

from __future__ import annotations

import re
import typing as t

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
