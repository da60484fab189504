# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How storcli and perccli 7.x print an answer: as their own JSON, and as text.

An answer is a list of blocks, one per controller: ``{"Command Status": {...}, "Response Data": {...}}``. Both forms print the same
blocks; what a block says is decided elsewhere.
"""

from __future__ import annotations

import json
import typing as t

from .templates import entries, names

Block = t.Dict[str, t.Any]

#: Numbers that the text form prints in hexadecimal.
_HEXADECIMAL = ("Vendor Id", "Device Id", "SubVendor Id", "SubDevice Id")
#: Columns whose words stand at the right; numbers do in every column that is not left by nature.
_RIGHT = ("Size",)
#: Columns of words in which a number may occur; it stands at the left like the words.
_LEFT = ("Value", "Current", "MfgDate", "Mode")
_LEFT_IN_TOPOLOGY = ("Arr", "Row", "DID")
#: Bytes of inquiry data in one line.
_INQUIRY_LINE = 16 * 3


def as_json(blocks: t.Sequence[Block], *, empty: str = "", blank: bool = True) -> str:
    """The answer as the tool's own JSON: indented with tabs, a blank before and after the colon.

    :param empty: how a list without rows is printed; as other lists unless told.
    :param blank: whether an empty line follows.
    """
    return '{\n"Controllers":[\n' + ",\n".join(_json_value(block, "", empty) for block in blocks) + "\n]\n}\n" + "\n" * blank


def _json_value(value: t.Any, tabs: str, empty: str) -> str:
    if not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if value == [] and empty:
        return empty
    inside, named = tabs + "\t", isinstance(value, dict)
    items = [f"{json.dumps(key)} : {_json_value(value[key], inside, empty)}" if named else _json_value(key, inside, empty) for key in value]
    body = ",\n".join(inside + item for item in items) + "\n" * bool(items)
    return f"{{\n{body}{tabs}}}" if named else f"[\n{body}{tabs}]"


def as_text(blocks: t.Sequence[Block], announced: t.Sequence[bool] = ()) -> str:
    """The answer as text.

    :param announced: for each block, whether the line with which the summary of a MegaRAID card begins stands before it.
    """
    lines: list[str] = []
    for index, block in enumerate(blocks):
        status = dict(block["Command Status"])
        details = status.pop("Detailed Status", None)
        response = block.get("Response Data", {})
        if announced and announced[index]:
            lines += ["Generating detailed summary of the adapter, it may take a while to complete.", ""]
        lines += [f"{label} = {value}" for label, value in status.items()]
        lines.append("")
        if details:
            lines += [*_list("Detailed Status", details)[1:], ""]
        lines += _section_body(response)
        if response:
            lines.append("")
    return "\n".join(lines) + "\n"


def _section_body(section: t.Mapping[str, t.Any]) -> list[str]:
    lines: list[str] = []
    for title, value in section.items():
        if isinstance(value, dict):
            lines += ["", *_title(title), *_section_body(value), ""]
        elif isinstance(value, list):
            lines += _list(title, value)
        elif title == "Inquiry Data":
            lines += ["Inquiry Data = ", *(value[at : at + _INQUIRY_LINE] for at in range(0, len(value), _INQUIRY_LINE)), ""]
        else:
            lines.append(f"{title} = {f'0x{value:X}' if title in _HEXADECIMAL else value}")
    return lines


def _title(title: str) -> list[str]:
    return [f"{title} :", "=" * len(title)]


def _list(title: str, rows: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    legend = _legend(title, rows)
    return ["", *_title(title), "", *_table(rows), "", *([*legend, ""] if legend else [])]


def _legend(title: str, rows: t.Sequence[t.Mapping[str, t.Any]]) -> tuple[str, ...]:
    columns = rows[0] if rows else {}
    if "DG/VD" in columns:
        title = "volumes"
    elif "EID:Slt" in columns and title != "JBOD LIST":
        title = "drives" if "Type" in columns else "drives without RAID"
    return entries("storcli", f"legend: {title}") if title in names("storcli", "legend: ") else ()


def _table(rows: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    columns = list(rows[0]) if rows else []
    widths = {column: max([len(column), *(len(str(row.get(column, ""))) for row in rows)]) for column in columns}
    left = _LEFT_IN_TOPOLOGY if "EID:Slot" in columns else _LEFT
    rule = "-" * sum(width + 1 for width in widths.values())
    head = "".join((column.rjust(widths[column]) if column in _RIGHT else column.ljust(widths[column])) + " " for column in columns)
    return [rule, head, rule, *("".join(_placed(row.get(column, ""), column, widths[column], left) + " " for column in columns) for row in rows), rule]


def _placed(value: t.Any, column: str, width: int, left: tuple[str, ...]) -> str:
    at_the_right = column in _RIGHT or (isinstance(value, int) and column not in left)
    return str(value).rjust(width) if at_the_right else str(value).ljust(width)
