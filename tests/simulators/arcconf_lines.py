# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of arcconf: a label and its value at the column of the build, titles between rules, blocks after a template."""

from __future__ import annotations

import functools
import typing as t

from .arcconf_layouts import LAYOUTS, Layout
from .simulator import State

Lines = t.List[str]
Values = t.Mapping[str, "str | None"]

MAIN_RULE = "-" * 70
SHORT_RULE = "-" * 56


#: How a drive or an old build says what is on.
WRITE_CACHE = {"wb": "Enabled (write-back)", "wt": "Disabled (write-through)"}


def layout_of(controller: State) -> Layout:
    return LAYOUTS[controller["layout"]]


def line(layout: Layout, indent: int, label: str, value: str) -> str:
    """``Label      : value``. Empty values end at the colon, on SmartRAID after one more blank."""
    text = f"{' ' * indent}{label}".ljust(layout.column) + ":"
    return f"{text} {value}" if value or layout.smart else text


@functools.lru_cache(maxsize=None)
def entries(template: str) -> tuple[tuple[str, str, str | None], ...]:
    """``(kind, label, constant)`` of every entry of a template."""
    found: list[tuple[str, str, str | None]] = []
    for entry in template.splitlines():
        if not entry:
            continue
        if entry[0] in "[<":
            found.append(("title" if entry[0] == "[" else "part", entry[1:-1], None))
            continue
        label, equals, constant = entry.partition(" = ")
        found.append(("label", label, constant.replace("{blank}", "") if equals else None))
    return tuple(found)


def block(layout: Layout, template: str, indent: int, values: Values, parts: t.Mapping[str, t.Callable[[], Lines]] | None = None) -> Lines:
    """The lines of one template. A label whose value is ``None`` is not printed."""
    printed: Lines = []
    for kind, label, constant in entries(template):
        if kind == "title":
            printed += titled(layout, label)
        elif kind == "part":
            printed += [""] if label == "blank" else (parts or {})[label]()
        else:
            value = values.get(label.casefold(), constant)
            if value is not None:
                printed.append(line(layout, indent, label, value))
    return printed


def titled(layout: Layout, title: str) -> Lines:
    """A title inside the adapter section."""
    rule = "   " + "-" * layout.rule
    text = f"   {title}"
    return [rule, text.ljust(layout.column) if layout.padded_adapter_titles else text, rule]


def section(title: str, *, rule: str = MAIN_RULE) -> Lines:
    return [rule, title, rule]


def places(controller: State, drive: State) -> tuple[str, str]:
    """Where a drive is, in the words of the drives and in the words of the volumes."""
    slot, smart = drive["slot"], controller["generation"] == "smart"
    connector = "CN2" if controller["location"] == "backplane" else "CN0"
    if controller["location"] == "connector":
        return f"Connector {slot // 4}, Device {slot % 4}", f"Connector:{slot // 4},Device:{slot % 4}"
    if controller["location"] == "backplane":
        return f"Backplane 0, Slot {slot}(Connector 0:{connector})", f"Connector:{connector},Backplane:0,Slot:{slot}"
    if controller["location"] == "direct":
        return f"Enclosure Direct Attached, Slot {slot}(Connector {slot // 4}:CN{slot // 4})", f"Connector:CN{slot // 4},Slot:{slot}"
    if smart:
        return f"Enclosure 1, Slot {slot}(Connector 0:{connector})", f"Connector:{connector},Enclosure:1,Slot:{slot}"
    after = "(Connector 0)" if layout_of(controller).segments == "size" else ""
    return f"Enclosure 0, Slot {slot}{after}", f"Enclosure:0,Slot:{slot}"
