# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A JSON document that is cut or broken: as much of it as is there."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import json
import re
import typing as t

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?=[ \t\r\n,\]}])"
    r"|(?P<word>true|false|null)(?=[ \t\r\n,\]}])|(?P<mark>[{}\[\],:]))",
    re.DOTALL,
)
_CONSTANTS = {"true": True, "false": False, "null": None}


def salvage(text: str, position: int, mapping: t.Callable[[], dict[str, t.Any]] = dict) -> tuple[t.Any, int]:
    """As much of a JSON document as is there before it is cut or broken, and where that is.

    :param mapping: what an object becomes.
    """
    root: t.Any = None
    stack: list[t.Any] = []
    keys: list[t.Any] = []
    expected = "value"
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            return root, position + len(text[position:]) - len(text[position:].lstrip())
        mark = token["mark"]
        if mark in ("}", "]"):
            closes = bool(stack) and isinstance(stack[-1], dict if mark == "}" else list)
            if not closes or expected not in ("comma", "key or end", "value or end"):
                return root, token.start("mark")
            stack.pop()
            keys.pop()
            position = token.end()
            expected = "comma"
            if not stack:
                return root, position
            continue
        if mark == ",":
            if expected != "comma" or not stack:
                return root, token.start("mark")
            expected = "key" if isinstance(stack[-1], dict) else "value"
        elif mark == ":":
            if expected != "colon":
                return root, token.start("mark")
            expected = "value"
        elif expected in ("key", "key or end"):
            key = _string(token["string"])
            if key is None:
                return root, token.end()
            keys[-1] = key
            expected = "colon"
        elif expected in ("value", "value or end"):
            value = mapping() if mark == "{" else [] if mark == "[" else _plain_token(token)
            if value is _BROKEN:
                return root, token.end()
            if not stack:
                root = value
            elif isinstance(stack[-1], dict):
                stack[-1][keys[-1]] = value
            else:
                stack[-1].append(value)
            expected = "comma"
            if mark:
                stack.append(value)
                keys.append(None)
                expected = "key or end" if mark == "{" else "value or end"
            elif not stack:
                return root, token.end()
        else:
            return root, token.end()
        position = token.end()


class _Broken:
    """Stands for a token that has no value."""


_BROKEN = _Broken()


def _plain_token(token: t.Match[str]) -> t.Any:
    if token["string"] is not None:
        value = _string(token["string"])
        return _BROKEN if value is None else value
    if token["word"] is not None:
        return _CONSTANTS[token["word"]]
    try:
        return json.loads(token["number"])
    except ValueError:
        return _BROKEN


def _string(token: t.Optional[str]) -> t.Optional[str]:
    if token is None:
        return None
    try:
        value = json.loads(token, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
