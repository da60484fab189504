# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON from an untrusted source (RFC 8259): its size, depth and number of values are limited before it is parsed.

The parser of Python recurses once per level, and makes objects that take up to a hundred times the memory of their text.
"""

from __future__ import annotations

import json
import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_bytes
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size

if t.TYPE_CHECKING:
    from pathlib import Path

#: Digits of the largest integer that is kept: fio prints counters of 64 bits.
_DIGITS = 20

#: What a text is made of: only of these something depends, and to leave out all others at once is many times faster than to look at each.
_NO_MARKS = bytes(set(range(256)) - set(b',"[]{}'))
_BRACES = bytes.maketrans(b"[]", b"{}")

_STRING = re.compile(rb'"[^"]*"?')
_BRACKET = re.compile(rb"[\[\]{}]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# With every digit a 0 and every E an e, the beginning of a number that Python makes an infinity, or refuses: an exponent of three digits, or
# more digits than any counter has. Searching for these takes a tenth of the time of a regular expression.
_SHAPES = bytes.maketrans(b"123456789E", b"000000000e")
_EXTREME_SHAPES = (b"0" * (_DIGITS + 1), b"e000", b"e+000")


class Limits(t.NamedTuple):
    """What is accepted: bytes of text, levels of nesting, values of any kind, and arrays and objects among them."""

    size: int
    depth: int
    values: int
    containers: int


#: Of the files beside the output of fio. The largest of real campaigns is below a hundredth of each.
SMALL = Limits(size=4 * MIB, depth=64, values=200_000, containers=50_000)

#: Of the output of fio: it has 7 levels, and 8,000 values in 0.1 MiB for 4 threads with json+; 512 of them have 700,000 values.
FIO = Limits(size=64 * MIB, depth=64, values=1_000_000, containers=200_000)


def loads(content: t.Union[str, bytes], limits: Limits = SMALL, *, unique: bool = True) -> t.Any:
    """The value of a JSON text.

    Numbers that are not finite, and integers of more than 20 digits, become ``None``; half a surrogate pair becomes U+FFFD.

    :param unique: reject an object with a key twice.
    :raises NotUnderstood: if it is not JSON or exceeds a limit. The sentence has no subject: the caller names the file.
    """
    if len(content) > limits.size:
        raise NotUnderstood(f"it is larger than {format_size(limits.size)}")
    text = _decoded(content)
    check(text, limits)
    try:
        value = json.loads(text, **hooks(text), object_pairs_hook=_unique if unique else None)
        return without_surrogates(text, value)
    except (ValueError, RecursionError):
        raise NotUnderstood("it is not JSON") from None


def read_json(path: Path, limits: Limits = SMALL) -> t.Any:
    """The value of a JSON file, of which nothing is parsed before it was compared with the limits; ``None`` if there is none.

    :raises CommandFailed: if it is there and cannot be read, or is larger.
    :raises NotUnderstood: if it is not JSON, or exceeds another limit.
    """
    try:
        content = read_bytes(path, limits.size)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}.", item=str(path)) from None
    try:
        return loads(content, limits)
    except NotUnderstood as error:
        raise NotUnderstood(f"{path} cannot be used: {error.message}. Examine it.", item=str(path)) from None


def _decoded(content: t.Union[str, bytes]) -> str:
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise NotUnderstood("it is not UTF-8") from None


def check(text: str, limits: Limits) -> int:
    """Compare a text with the limits, in linear time and before anything of it is parsed.

    :returns: the number of its values, at most.
    :raises NotUnderstood: naming the limit.
    """
    # With the escapes gone a string is everything between two quotation marks.
    bare = text.replace("\\\\", "").replace('\\"', "") if "\\" in text else text
    marks = bare.encode("utf-8", "surrogatepass").translate(None, _NO_MARKS)
    # A value has four at most: two of its key and two of itself.
    if marks.count(b'"') > 4 * limits.values:
        raise NotUnderstood(f"it has more than {limits.values:,} values")
    outside = marks.replace(b'""', b"")
    if b'"' in outside:
        # A string with a mark in it.
        outside = _STRING.sub(b"", marks)
    containers = outside.count(b"[") + outside.count(b"{")
    values = outside.count(b",") + containers + 1
    if values > limits.values:
        raise NotUnderstood(f"it has more than {limits.values:,} values")
    if containers > limits.containers:
        raise NotUnderstood(f"it has more than {limits.containers:,} arrays and objects")
    if containers > limits.depth and _is_deeper(outside, limits.depth):
        raise NotUnderstood(f"it is nested deeper than {limits.depth} levels")
    return values


def _is_deeper(outside: bytes, limit: int) -> bool:
    """Of the first value in the text; whatever follows that is not parsed."""
    inner = outside.translate(_BRACES, b",")
    for _level in range(limit if inner.count(b"{") == inner.count(b"}") else 0):
        # The innermost of them: one level less.
        inner = inner.replace(b"{}", b"")
        if not inner:
            return False
    depth = 0
    for found in _BRACKET.finditer(outside):
        depth += 1 if found.group() in b"[{" else -1
        if depth > limit or depth <= 0:
            break
    return depth > limit


def hooks(text: str) -> dict[str, t.Any]:
    """Arguments for the parser, so that every number of ``text`` is one that the rest of the program can compute with."""
    found: dict[str, t.Any] = {"parse_constant": _nothing}
    # They make the parser slower, and no valid text needs them.
    if _may_be_extreme(text):
        found.update(parse_int=_integer, parse_float=_finite)
    return found


def _may_be_extreme(text: str) -> bool:
    shape = text.encode("ascii", "replace").translate(_SHAPES)
    return any(one in shape for one in _EXTREME_SHAPES)


def _nothing(_literal: str) -> None:
    return None


def _integer(literal: str) -> t.Optional[int]:
    return int(literal) if len(literal) <= _DIGITS + literal.startswith("-") else None


def _finite(literal: str) -> t.Optional[float]:
    value = float(literal)
    return value if math.isfinite(value) else None


def _unique(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def without_surrogates(text: str, value: t.Any) -> t.Any:
    """``value``, parsed from ``text``, so that it can be written as UTF-8."""
    if not _SURROGATE.search(text):
        return value
    whole = json.dumps(value, ensure_ascii=False)
    return json.loads(whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
