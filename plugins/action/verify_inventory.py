# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb verify_inventory: a play has hosts, and none of their variables is mistyped or of a wrong type; on the controller only."""

from __future__ import annotations

import difflib
import re
import typing as t

from ansible.errors import AnsibleError
from ansible.inventory.manager import split_host_pattern

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.modules.verify_inventory import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import RoleVariables, complaint, few

_LOCALHOST, _SELECTION = "localhost", "storage_hosts"
_SEPARATORS = re.compile(r"[:,\s]")


class ActionModule(StorageAction):
    """See the documentation of ``cachefleet.storage.verify_inventory``."""

    TRANSFERS_FILES = False
    # One task for all hosts, in the context of one of them: it only reads and prints.
    _refuses_injected_variables = False
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(argument_spec=argument_spec())
        known = task_vars or {}
        hosts = [str(host) for host in known.get("ansible_play_hosts_all", ())]
        problem = (
            self._undefined_hosts(known)
            or _broken_pattern(options["hosts"])
            or _without_hosts(options["hosts"], hosts, known.get("groups", {}))
            or _mistyped_tags(options["tags"], [*known.get("ansible_run_tags", ()), *known.get("ansible_skip_tags", ())])
            or _wrong_variables(hosts, known.get("hostvars", {}), types=options["types"])
        )
        return {"failed": True, "changed": False, "msg": problem} if problem else {"changed": False}

    def _undefined_hosts(self, known: t.Mapping[str, t.Any]) -> str:
        """Why storage_hosts cannot be evaluated. The playbooks take it as not set then, and would take all hosts."""
        if _SELECTION not in known:
            return ""
        try:
            self._templar.template(known[_SELECTION])
        except AnsibleError as error:
            return f"{_SELECTION} could not be evaluated: {plain(str(error))}: no host was selected."
        return ""


def _broken_pattern(patterns: t.Sequence[str] | None) -> str:
    """Which pattern of hosts cannot be read. Ansible leaves out what it cannot read of one, and takes all hosts if nothing is left."""
    for pattern in patterns or ():
        parts = split_host_pattern(pattern)
        if _SEPARATORS.sub("", "".join(parts)) != _SEPARATORS.sub("", pattern) or not all(map(_is_readable, parts)):
            return f"{pattern} is no pattern of hosts: a bracket does not end, or the regular expression is invalid."
    return ""


def _is_readable(part: str) -> bool:
    expression = part.lstrip("!&")
    try:
        re.compile(expression[1:] if expression.startswith("~") else "")
    except re.error:
        return False
    return True


def _without_hosts(patterns: t.Sequence[str] | None, hosts: t.Sequence[str], groups: t.Mapping[str, t.Sequence[str]]) -> str:
    """Why the play has only the controller itself, although that was not asked for."""
    if hosts != [_LOCALHOST]:
        return ""
    if patterns:
        asked = _LOCALHOST in (part for pattern in patterns for part in pattern.split(":"))
        return "" if asked else f"No host of the inventory matches {', '.join(patterns)}: set storage_hosts to hosts or groups of the inventory."
    if _LOCALHOST in groups.get("all", ()):
        return ""
    return "The inventory has no host: give one with -i, or set storage_hosts=localhost for the controller itself."


def _mistyped_tags(known: t.Sequence[str], selected: t.Sequence[str]) -> str:
    """Other tags may be those of other plays of the user."""
    for tag in selected:
        near = [] if tag in known else difflib.get_close_matches(tag, known, 1, 0.8)
        if near:
            return f"No task has the tag {tag}: did you mean {near[0]}?"
    return ""


def _wrong_variables(hosts: t.Sequence[str], hostvars: t.Any, *, types: bool) -> str:
    variables = RoleVariables()
    # Values are looked at as they are in the inventory: templating those of a thousand hosts takes minutes.
    raw = getattr(hostvars, "raw_get", hostvars.__getitem__)
    unknown: dict[str, list[str]] = {}
    wrong: dict[str, list[str]] = {}
    for host in hosts:
        values = raw(host)
        for name in variables.unknown(map(str, values)):
            unknown.setdefault(name, []).append(host)
        for sentence in variables.type_errors(values) if types else ():
            wrong.setdefault(sentence, []).append(host)
    sentences = [f"{few(who)}: {sentence}" for sentence, who in wrong.items()]
    return " ".join([*([complaint(unknown, variables)] if unknown else []), *(one if one.endswith((".", "?")) else f"{one}." for one in sentences)])
