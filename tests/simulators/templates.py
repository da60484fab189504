# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tools print, as data: the files of the folder ``templates``, one per tool.

``== name`` begins a template; its entries end with ``;`` and a line end or a blank. An entry is a label with or without a value:
``Label = value``. A value is a number, a text, or a text with the names of values in braces (a value in braces alone keeps its
type); a text in quotation marks is never a number, and ``~`` stands for a blank at an end. ``+name`` stands for the entries of the
template ``part: name``. ``#`` begins a comment.
"""

from __future__ import annotations

import functools
import os
import typing as t

Values = t.Mapping[str, t.Any]
Section = t.Dict[str, t.Any]
Spec = t.Callable[[Values], t.Any]

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")


@functools.lru_cache(maxsize=None)
def _texts(tool: str) -> dict[str, str]:
    with open(os.path.join(_FOLDER, f"{tool}.txt"), encoding="utf-8") as file:
        lines = "".join(line for line in file if not line.startswith("#"))
    return dict(text.split("\n", 1) for text in ("\n" + lines).split("\n== ")[1:])


def names(tool: str, prefix: str = "") -> list[str]:
    """The templates of a tool whose names begin so, in their order and without this beginning."""
    return [name[len(prefix) :] for name in _texts(tool) if name.startswith(prefix)]


@functools.lru_cache(maxsize=None)
def entries(tool: str, name: str) -> tuple[str, ...]:
    """The entries of one template, with those of the parts that it names."""
    found: list[str] = []
    for entry in _texts(tool)[name].replace(";\n", "; ").split("; "):
        word = entry.strip().replace("~", " ")
        found += entries(tool, f"part: {word[1:]}") if word.startswith("+") else [word] if word else []
    return tuple(found)


def scalar(text: str) -> t.Any:
    """A number or a text; ``.`` is nothing."""
    if text.isdigit():
        return int(text)
    return None if text == "." else text[1:-1] if text[:1] == '"' else text


@functools.lru_cache(maxsize=None)
def _specs(tool: str, name: str, default: str | None) -> tuple[tuple[str, Spec], ...]:
    found = []
    for entry in entries(tool, name):
        label, equals, value = entry.partition(" =")
        found.append((label, _spec(value[1:] if equals else default)))
    return tuple(found)


def _spec(text: str | None) -> Spec:
    if text is None:
        return lambda values: None
    name = text[1:-1]
    if text == f"{{{name}}}" and not any(mark in name for mark in "{[.:!"):
        return lambda values: values[name]
    if "{" in text:
        return text.format_map
    constant = scalar(text)
    return lambda values: constant


def rows(tool: str, name: str, values: Values, default: str | None = "Yes") -> list[tuple[str, t.Any]]:
    """The labels of a template with their values.

    :param default: the value of a label that has none.
    """
    return [(label, spec(values)) for label, spec in _specs(tool, name, default)]


def filled(tool: str, name: str, values: Values, default: str | None = "Yes") -> Section:
    """The same as a dictionary, without the labels whose value is ``None``."""
    return {label: value for label, value in dict(rows(tool, name, values, default)).items() if value is not None}
