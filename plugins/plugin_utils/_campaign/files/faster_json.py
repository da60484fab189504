# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""JSON by a faster library, where it is installed: parsing what a host sent, with the limits and the values of :mod:`json_text`, and writing.

Without the library, and for the few texts in which the two parsers could differ, the parser of Python reads it: what is accepted, and as
what, does not depend on which library is installed.
"""

from __future__ import annotations

import contextlib
import json
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

#: What a list of numbers is written with.
_NUMERIC = b"0123456789+-.eE, \r\n"


def loads(content: str | bytes, limits: json_text.Limits = json_text.SMALL) -> t.Any:
    """As :func:`json_text.loads`: an object with a key twice is rejected.

    :raises NotUnderstood: likewise.
    """
    text = _text(content, limits)
    if text is not None:
        values = json_text.check(text, limits)
        value = same_value(text)
        # A key twice is kept once, and with it one value less.
        if value is not None and json_text.check(orjson.dumps(value).decode(), limits) == values:
            return value
    return json_text.loads(content, limits)


def _text(content: str | bytes, limits: json_text.Limits) -> str | None:
    if orjson is None or len(content) > limits.size:
        return None
    try:
        return content if isinstance(content, str) else content.decode()
    except UnicodeDecodeError:
        return None


def same_value(text: str) -> t.Any:
    """The value of a text that is within the limits; ``None`` without the library, and where the parser of Python may find another one.

    The library reads an integer without room in 64 bits as a float. What is no JSON (RFC 8259) it refuses: numbers that are not finite,
    half a surrogate pair.
    """
    if orjson is None or json_text.has_long_integer(text):
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def numbers(text: str) -> list[float] | None:
    """Numbers with a comma between each two; ``None`` without the library, and for any other text."""
    if orjson is None or text.encode("ascii", "replace").translate(None, _NUMERIC):
        return None
    try:
        found = orjson.loads(f"[{text}]")
    except ValueError:
        return None
    return found or None


def dumps(value: t.Any) -> str:
    """The text of a value that may contain arrays of numpy; what is not a number in one of them becomes ``null``."""
    if orjson is not None:
        # The library refuses what JSON has and it has not: an integer without room in 64 bits, half a surrogate pair.
        with contextlib.suppress(TypeError):
            return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return json.dumps(value, default=_elements)


def _elements(array: t.Any) -> list[t.Any]:
    return [None if isinstance(one, float) and math.isnan(one) else one for one in array.tolist()]
