# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tools print, as data: the files of the folder ``templates``, one per tool.

``== name`` begins a template; its entries end with ``;`` and a line end or a blank. An entry is a label with or without a value:
``Label = value``. A value is a number, a text, or a text with the names of values in braces (a value in braces alone keeps its
type); a text in quotation marks is never a number, and ``~`` stands for a blank at an end. ``#`` begins a comment.
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
    """The entries of one template."""
    return tuple(entry.strip().replace("~", " ") for entry in _texts(tool)[name].replace(";\n", "; ").split("; ") if entry.strip())


def scalar(text: str) -> t.Any:
    """A number or a text; ``.`` is nothing."""
    if text.isdigit():
        return int(text)
    return None if text == "." else text[1:-1] if text[:1] == '"' else text


@functools.lru_cache(maxsize=None)
def _specs(tool: str, name: str, default: str) -> tuple[tuple[str, Spec], ...]:
    return tuple((label, _spec(value[1:] if equals else default)) for label, equals, value in (entry.partition(" =") for entry in entries(tool, name)))


def _spec(text: str) -> Spec:
    name = text[1:-1]
    if text == f"{{{name}}}" and not any(mark in name for mark in "{[.:!"):
        return lambda values: values[name]
    if "{" in text:
        return text.format_map
    constant = scalar(text)
    return lambda values: constant


def filled(tool: str, name: str, values: Values, default: str = "Yes") -> Section:
    """The labels of a template with their values; those whose value is ``None`` are left out.

    :param default: the value of a label that has none.
    """
    made = ((label, spec(values)) for label, spec in _specs(tool, name, default))
    return {label: value for label, value in made if value is not None}
