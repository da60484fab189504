# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How storcli, perccli and their second generation print an answer as JSON; nothing reads their text, so that there is none here.

An answer is a list of blocks, one per controller: ``{"Command Status": {...}, "Response Data": {...}}``.
"""

from __future__ import annotations

import json
import typing as t

Block = t.Dict[str, t.Any]


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


def refused(text: str, error: Block) -> list[Block]:
    """The blocks of an answer, printed as success, as those of a refusal.

    :param error: what each row of the details says of it.
    """
    blocks: list[Block] = json.loads(text)["Controllers"]
    for block in blocks:
        status = block["Command Status"]
        status["Status"] = "Failure"
        for row in status.get("Detailed Status", ()):
            row.update({"Status": "Failed", **error})
    return blocks
