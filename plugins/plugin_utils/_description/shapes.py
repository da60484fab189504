# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an entry of a variable, as a host or a journal has it, must have a text, a number, a list or a dictionary."""

from __future__ import annotations

import typing as t

#: What each entry of a variable names.
_NAMED = {
    "drive_write_cache_drives": {"device": str},
    "block_queue_devices": {"device": str},
    "storage_network_links": {"interface": str, "mtu": int},
    "block_cache_caches": {"name": str, "type": str, "origin": str},
}
#: The variables that are lists of dictionaries.
LISTS = (*_NAMED, "raid_cache_controllers")
#: Options with options of their own; with lists of such, and what those name; with lists of texts.
_DICTIONARIES = ("maxcache", "settings", "match")
_LISTS: dict[str, dict[str, type]] = {"volumes": {}, "drives": {"address": str}}
_NAMES_OF_VOLUME = ("wwn", "name", "id")
_TEXTS = ("cache_devices", "pool_drives")
_KINDS = {str: "a text", int: "a number", dict: "a dictionary", list: "a list"}


def wrong_shape(variable: str, entry: t.Any, *, whole: bool = False) -> str:
    """What is wrong with an entry of a variable; empty if nothing is.

    :param whole: whether it must name what it is an entry of.
    """
    if not isinstance(entry, dict):
        return f"an entry of {variable} is not a dictionary"
    named = _NAMED.get(variable, {})
    problem = _wrong(entry, named if whole else {key: kind for key, kind in named.items() if entry.get(key) is not None})
    return f"{problem} in an entry of {variable}" if problem else ""


def _wrong(entry: dict[str, t.Any], named: t.Mapping[str, type]) -> str:
    kinds = {**named, **dict.fromkeys((key for key in _DICTIONARIES if entry.get(key) is not None), dict)}
    kinds.update(dict.fromkeys((key for key in (*_LISTS, *_TEXTS) if entry.get(key) is not None), list))
    for key, kind in kinds.items():
        if not isinstance(entry.get(key), kind) or isinstance(entry[key], bool):
            return f"{key} is not {_KINDS[kind]}"
    for key in (key for key in _TEXTS if key in kinds):
        if not all(isinstance(one, str) for one in entry[key]):
            return f"{key} is not a list of texts"
    for key in (key for key in _LISTS if key in kinds):
        for one in entry[key]:
            # A drive that is chosen by match has no address.
            problem = _wrong(one, {} if one.get("match") is not None else _LISTS[key]) if isinstance(one, dict) else f"{key} is not a list of dictionaries"
            if not problem and key == "volumes" and not any(one.get(name) for name in _NAMES_OF_VOLUME):
                problem = "a volume has no name"
            if problem:
                return problem
    return next((problem for key in _DICTIONARIES if key in kinds for problem in [_wrong(entry[key], {})] if problem), "")
