# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that make hostile input of honest input. Each takes its choices from a seeded generator."""

from __future__ import annotations

import copy
import io
import json
import random
import tarfile
import typing as t

BLOCK = 512

VALUES: tuple[t.Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**53, 2**63, 2**64, 10**30, 10**4000, -(10**30), 0.5, -0.0, 1e308, -1e308, float("nan"), float("inf"),
    "", "x" * 3000, "\ud800", "\udfff\ud800", "\x1b[31mred\x1b]0;title\x07", "\u202eabc", "=cmd|' /C calc'!A0", "</script><script>alert(1)</script>", "a|b\n|c",
    "../../../etc/passwd", "/etc/shadow", "..", ".", "\0", "NaN", "1e999", "9" * 20, "1_0", "١٢", "ok", "failed", "missing", '"', "\\", "a=b,c d\\",
    [], {}, [[]], [{}], {"": {}}, {"a": [1, None, "x"]}, [None] * 50, {"before": [], "after": 5},
)  # fmt: skip

KEYS = (
    "",
    "a",
    "schema",
    "state",
    "files",
    "read",
    "write",
    "sync",
    "bins",
    "percentile",
    "lat_ns",
    "clat_ns",
    "N",
    "FIO_IO_U_PLAT_BITS",
    "99999999999",
    "\ud800",
)


def changed(value: t.Any, rng: random.Random) -> t.Any:
    """A copy with some values, keys or types changed anywhere in it."""
    root = [copy.deepcopy(value)]
    for _change in range(rng.choice((1, 1, 1, 2, 3, 8))):
        place, key = _somewhere(root, rng)
        action = rng.randrange(6)
        if action < 3:
            place[key] = copy.deepcopy(rng.choice(VALUES))
        elif action == 3 and len(place) > 1:
            del place[key]
        elif action == 4:
            place[key] = {rng.choice(KEYS): place[key], rng.choice(KEYS): copy.deepcopy(rng.choice(VALUES))}
        else:
            place[key] = [place[key], *(copy.deepcopy(place[key]) for _one in range(rng.randrange(3)))]
    return root[0] if root else None


def _somewhere(root: list[t.Any], rng: random.Random) -> tuple[t.Any, t.Any]:
    place: t.Any = root
    key: t.Any = 0
    while isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.9:
        place = place[key]
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
    return place, key


def json_text(value: t.Any, rng: random.Random) -> str:
    """The text of a changed value, sometimes damaged as text too."""
    text = json.dumps(changed(value, rng), indent=rng.choice((None, 1)))
    return damaged(text, rng) if rng.random() < 0.4 else text


def damaged(text: str, rng: random.Random) -> str:
    """Text with a part left out, doubled, or with what no parser likes put in."""
    place = rng.randrange(len(text) + 1)
    end = min(place + rng.choice((1, 2, 10, 1000)), len(text))
    extra = rng.choice(
        ("[" * 70, "[" * 5000, '{"a":' * 300, '"', "\\", ",", "9" * 400, "1e999", "NaN", "-Infinity", "\n{", "{}\n", "\0", "\ufeff", "[]," * 3000)
    )
    return rng.choice((text[:place] + text[end:], text[:place] + extra + text[place:], text[:end] + text[place:], text[:place], text + extra))


# ---------------------------------------------------------------------------------------------------------------------
# Archives

_TYPES = [bytes([kind]) for kind in b"\x000123456789xgLKSXNMVDA"]
_NAMES = (
    "before/randwrite-4k/1/job.fio", "before/randwrite-4k/2/meta.json", "before/randwrite-4k/3/x.log.gz", "../x", "/etc/x", "a/b/c/d", "before/../1/job.fio",
    "before/randwrite-4k/1/\x1b[2J", "", "x" * 99, "before//1/job.fio",
    "before/randwrite-4k/0001/job.fio", "plan.json", "before/plan.json", "\udcff/b/1/job.fio",
)  # fmt: skip
_PAX = ({"path": "../../x"}, {"path": "before/randwrite-4k/1/job.fio"}, {"size": "0"}, {"size": "99999999999"}, {"size": "-5"}, {"GNU.sparse.map": "0,1"},
        {"linkpath": "/etc/x"}, {"mtime": "nan"}, {"uid": "9" * 400}, {"hdrcharset": "BINARY", "path": "\xff"}, {"a": "b" * 7000},
        {"path": "é" * 200})  # fmt: skip
# Offset and length of fields of a header.
_FIELDS = {
    "name": (0, 100),
    "mode": (100, 8),
    "size": (124, 12),
    "mtime": (136, 12),
    "type": (156, 1),
    "link": (157, 100),
    "magic": (257, 8),
    "prefix": (345, 155),
}


def archive(content: bytes, rng: random.Random) -> bytes:
    """A changed archive."""
    data = bytearray(content)
    for _change in range(rng.choice((1, 1, 2, 5))):
        data = rng.choice((_flip, _field, _cut, _move, _member, _chain))(data, rng)
    return bytes(data)


def _flip(data: bytearray, rng: random.Random) -> bytearray:
    for _byte in range(rng.choice((1, 3, 50))):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return data


def _blocks(data: bytearray, rng: random.Random) -> int:
    """The place of a header, or of any block."""
    headers = [place for place in range(0, len(data) - BLOCK + 1, BLOCK) if data[place + 257 : place + 262] == b"ustar"]
    return rng.choice(headers) if headers else rng.randrange(max(len(data) // BLOCK, 1)) * BLOCK


def _field(data: bytearray, rng: random.Random) -> bytearray:
    """One field of a header, with its checksum made right again."""
    place = _blocks(data, rng)
    if len(data) < place + BLOCK:
        return data
    header = data[place : place + BLOCK]
    name = rng.choice(list(_FIELDS))
    start, length = _FIELDS[name]
    message = {
        "type": rng.choice(_TYPES),
        "size": rng.choice((b"%011o\0" % rng.choice((0, 1, 511, 513, 2**30, 2**33 - 1)), b"\x80" + b"\xff" * 11, b"-0000000001\0", b"", b"1_0")),
        "magic": rng.choice((b"ustar  \0", b"ustar\x0000", b"")),
    }.get(name, rng.choice(_NAMES).encode("utf-8", "surrogateescape"))
    header[start : start + length] = message[:length].ljust(length, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[place : place + BLOCK] = header
    return data


def _cut(data: bytearray, rng: random.Random) -> bytearray:
    place = rng.randrange(len(data) + 1)
    return data[:place] if rng.random() < 0.5 else data[: place // BLOCK * BLOCK]


def _move(data: bytearray, rng: random.Random) -> bytearray:
    """A part of it doubled, or put elsewhere."""
    first, count, to = (rng.randrange(len(data) // BLOCK + 1) * BLOCK for _one in range(3))
    return data[:to] + data[first : first + count] + data[to:] if len(data) < 1 << 20 else data


def _member(data: bytearray, rng: random.Random) -> bytearray:
    """A member of any kind, before all others."""
    file = io.BytesIO()
    member = tarfile.TarInfo(rng.choice(_NAMES))
    member.type, member.linkname = rng.choice((tarfile.REGTYPE, rng.choice(_TYPES))), rng.choice(("", "/etc/passwd", "../.."))
    content = bytes(rng.randrange(2000))
    member.size = len(content) if member.isreg() else 0
    member.pax_headers = dict(rng.choice(_PAX)) if rng.random() < 0.5 else {}
    try:
        with tarfile.open(fileobj=file, mode="w", format=rng.choice((tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT))) as tar:
            tar.addfile(member, io.BytesIO(content))
            length = tar.offset
    except (ValueError, tarfile.TarError):
        return data
    return bytearray(file.getvalue()[:length]) + data


def _chain(data: bytearray, rng: random.Random) -> bytearray:
    """Extension headers in a row."""
    member = tarfile.TarInfo("x")
    member.type, member.size = rng.choice((b"x", b"g", b"L", b"K", b"X")), 0
    return bytearray(member.tobuf(tarfile.USTAR_FORMAT) * rng.choice((1, 2, 1500))) + data
