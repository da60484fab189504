# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of SSD caches of several types, divided into what the layer of each type gets."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

Item = t.Dict[str, t.Any]


#: What is in a list of several types, and is no option of a type.
_OF_THE_LIST = ("type", "migrate")


def divide(items: t.Sequence[t.Mapping[str, t.Any]], kind: str) -> tuple[list[Item], list[Item]]:
    """The caches of one type: those that are removed before caches of other types are created, and the rest.

    Devices of the first may be needed by caches of other types; where no other type stays, one plan is made for all.
    """
    mine = [_expecting(item, items) for item in items if item.get("type") == kind]
    others_stay = any(item.get("type") != kind and item.get("state") != "absent" for item in items)
    first = [item for item in mine if item.get("state") == "absent"] if others_stay else []
    rest = [item for item in mine if item not in first]
    return _without_type(first), _without_type(rest)


def _expecting(item: t.Mapping[str, t.Any], items: t.Sequence[t.Mapping[str, t.Any]]) -> t.Mapping[str, t.Any]:
    """An item that is absent, with the types of the other caches of the same origin in the list, which says what becomes of them."""
    if item.get("state") != "absent":
        return item
    origin = _plain(item)
    others = [str(other["type"]) for other in items if other.get("type") in TYPES and _plain(other) == origin]
    expected = [kind for kind in dict.fromkeys(others) if kind != item.get("type")]
    return {**item, "expect": list(dict.fromkeys([*(item.get("expect") or []), *expected]))} if expected else item


def _plain(item: t.Mapping[str, t.Any]) -> str:
    """The origin, of a logical volume as ``vg/lv``."""
    text = str(item.get("origin"))
    return text[len("/dev/") :] if text.startswith("/dev/") else text


def migrates(item: t.Mapping[str, t.Any]) -> bool:
    """Whether a cache may replace one of another type. It is no option of a module, and may be the text of a template, such as ``no``.

    :raises BadInput: for a value that is not true or false.
    """
    try:
        wanted = boolean(item.get("migrate") or False)
    except TypeError:
        raise BadInput(f"{item.get('name')}: migrate must be true or false, not {item['migrate']!r}.", item=str(item.get("name"))) from None
    return wanted and item.get("state") != "absent"


def _without_type(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[Item]:
    return [{name: value for name, value in item.items() if name not in _OF_THE_LIST} for item in items]
