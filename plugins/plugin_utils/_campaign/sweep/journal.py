# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``sweep_journal`` returned on a host, checked before it is used: its journal, the paths that it resolved, which host it is."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import VARIABLES, Description, read_description
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.shapes import LISTS, wrong_shape
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import plain_of


def checked(host: str, found: t.Any) -> dict[str, t.Any]:
    """The result with the keys ``journal``, ``description``, ``paths`` and ``machine_id``, each of its kind; an empty journal is none.

    Descriptions are checked by ``read_description``.

    :raises NotUnderstood: for anything else: nothing of the host is changed then.
    """
    plain = plain_of(found)
    problem = _problem(plain)
    if problem:
        raise NotUnderstood(
            f"What sweep_journal returned on {host} cannot be used: {problem}. Nothing was changed; examine the journal on that host.", item=host
        )
    return {"journal": {}, "description": {}, "paths": {}, **{key: value for key, value in plain.items() if value is not None}}


def described(host: str, raw: t.Any) -> Description:
    """The state of a host, of which each entry names what it is of.

    :raises NotUnderstood: if it is not that.
    """
    found = read_description(host, raw)
    for name, entries in found.contents().items():
        for entry in entries if name in LISTS and isinstance(entries, list) else ():
            if problem := wrong_shape(name, entry, whole=True):
                raise _unusable(host, problem)
    return found


def _unusable(host: str, problem: str) -> NotUnderstood:
    return NotUnderstood(f"What sweep_journal returned on {host} cannot be used: {problem}. Nothing was changed; examine the journal there.", item=host)


def _problem(found: t.Any) -> str:
    if not isinstance(found, dict):
        return "it is not a dictionary"
    for key in ("journal", "description", "paths"):
        if not isinstance(found.get(key), (dict, type(None))):
            return f"{key} is not a dictionary"
    if not isinstance(found.get("machine_id"), (str, type(None))):
        return "machine_id is not a text"
    if not all(isinstance(path, str) for path in (found.get("paths") or {}).values()):
        return "a path is not a text"
    return _problem_of_journal(found["journal"]) if found.get("journal") else ""


def _problem_of_journal(journal: t.Mapping[str, t.Any]) -> str:
    for key, kind in {"campaign": str, "host": str, "created": str, "description": dict, "restore": dict}.items():
        if not isinstance(journal.get(key), kind):
            return f"{key} in the journal is not a {'text' if kind is str else 'dictionary'}"
    for name, entries in journal["restore"].items():
        if name not in VARIABLES or not isinstance(entries, list):
            return f"restore in the journal has {name[:60]}, which is not a list of a role"
        problem = next((problem for problem in (wrong_shape(name, entry, whole=True) for entry in entries) if problem), "")
        if problem:
            return f"{problem} of the journal"
    return ""
