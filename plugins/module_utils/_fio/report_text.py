# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON objects in what fio wrote, and the lines around them. Pure."""

from __future__ import annotations

import io
import itertools
import json
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

#: Objects in one output: dumps of ``--status-interval``, one a second for five hours.
_MOST_OBJECTS = 20_000

#: Lines around one object that are kept.
_MOST_LINES = 10_000

#: A string, or a word outside of strings.
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"\[\]{},:]+')
_VALUE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")


def split(text: str) -> tuple[list[dict[str, t.Any]], list[str], bool]:
    """The JSON objects of a text, the lines around them, and whether one is broken off.

    fio writes errors and notes before, after and instead of its JSON; an object begins with a brace at the beginning of a line.

    :raises NotUnderstood: if the objects together exceed a limit of :data:`json_text.FIO`.
    """
    if len(text) > json_text.FIO.size:
        raise NotUnderstood(f"the output of fio is larger than {format_size(json_text.FIO.size)}")
    decoder: json.JSONDecoder | None = None
    objects: list[dict[str, t.Any]] = []
    between: list[str] = []
    position = values = 0
    truncated = False
    starts = list(itertools.islice(_objects_begin(text), _MOST_OBJECTS + 1))
    if len(starts) > _MOST_OBJECTS:
        raise NotUnderstood(f"the output of fio has more than {_MOST_OBJECTS:,} objects")
    for start, end in zip(starts, [*starts[1:], len(text)]):
        between.append(text[position:start])
        # fio indents what is inside an object, so it ends before the next one begins.
        part = text[start:end]
        values += json_text.check(part, json_text.FIO)
        if values > json_text.FIO.values:
            raise NotUnderstood(f"the output of fio has more than {json_text.FIO.values:,} values")
        if decoder is None:
            # Without hooks the parser is several times faster.
            decoder = json.JSONDecoder(**json_text.hooks(text))
        try:
            found, length = _decoded(decoder, part)
        except (ValueError, RecursionError):
            truncated = True
            position = len(text)
            break
        position = start + length
        objects.append(json_text.without_surrogates(part, found))
    between.append(text[position:])
    lines = [line.rstrip() for part in between for line in itertools.islice(io.StringIO(part), _MOST_LINES)]
    return objects, [line for line in lines if line], truncated


def _objects_begin(text: str) -> t.Iterator[int]:
    """Where a line begins with a brace."""
    place = 0 if text.startswith("{") else text.find("\n{") + 1 or -1
    while place >= 0:
        yield place
        place = text.find("\n{", place) + 1 or -1


def _decoded(decoder: json.JSONDecoder, part: str) -> tuple[t.Any, int]:
    """The object at the beginning of a text, and where it ends. A word in it that is no value of JSON is one that is not known: fio prints
    ``nan``, ``-nan`` and ``inf`` where it divides by 0.

    :raises ValueError: if it is broken in another way.
    """
    try:
        return decoder.raw_decode(part)
    except ValueError:
        end = part.find("\n}") + 2
        if end < 2:
            raise
        return decoder.decode(_WORD.sub(_known, part[:end])), end


def _known(word: t.Match[str]) -> str:
    text = word.group()
    return text if text.startswith('"') or _VALUE.fullmatch(text) else "null"
