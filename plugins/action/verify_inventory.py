# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb verify_inventory: a play has hosts, and none of their variables is mistyped or of a wrong type; on the controller only."""

from __future__ import annotations

import difflib
import re
import typing as t
from pathlib import Path

from ansible import context
from ansible.errors import AnsibleError
from ansible.inventory.manager import split_host_pattern
from ansible.utils.vars import load_extra_vars

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS, checked_declarations
from ansible_collections.cachefleet.storage.plugins.modules.verify_inventory import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import RoleVariables, complaint, few, selected_layers

_LOCALHOST, _SELECTION, _ABSENT = "localhost", "storage_hosts", "absent"
_SEPARATORS = re.compile(r"[:,\s]")
_ANY_TAG = frozenset({"all", "always", "never", "tagged", "untagged"})
_PLAYBOOKS = Path(__file__).resolve().parent.parent.parent / "playbooks"
#: How alike a name that a user gave and one of a layer are; the names of a host are few.
_ALIKE = 0.7


class ActionModule(Verb):
    # One task for all hosts, in the context of one of them: it only reads and prints.
    _refuses_injected_variables = False
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        known = self._variables
        hosts = [str(host) for host in known.get("ansible_play_hosts_all", ())]
        problem = (
            self._undefined_hosts(known)
            or _broken_pattern(options["hosts"])
            or _without_hosts(options["hosts"], hosts, known.get("groups", {}))
            or _mistyped_tags(options["tags"], [*known.get("ansible_run_tags", ()), *known.get("ansible_skip_tags", ())])
            or _wrong_variables(hosts, known.get("hostvars", {}), types=options["types"])
            or _wrong_state(options["site_state"], load_extra_vars(self._loader).get("site_state"), known)
            or _nothing_selected([] if options["site_state"] == _ABSENT else options["layers"], known)
            or _nothing_described([] if options["site_state"] == _ABSENT else selected_layers(options["layers"], known), hosts, known.get("hostvars", {}))
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
    """Other tags may be those of other plays of the user, unless only playbooks of this collection are run."""
    for tag in selected if known else ():
        if tag in known or tag in _ANY_TAG:
            continue
        near = difflib.get_close_matches(tag, known, 1, 0.8)
        if near:
            return f"No task has the tag {tag}: did you mean {near[0]}?"
        if _is_run_alone():
            layers = [one for one in known if not one.endswith("_configure")]
            return f"No task has the tag {tag}, and nothing was done: the tags of this playbook are {', '.join(layers)}."
    return ""


def _is_run_alone() -> bool:
    """Whether all playbooks of the command line are those of this collection."""
    names = context.CLIARGS.get("args") or ()
    return bool(names) and all(str(name).startswith("cachefleet.storage.") or Path(name).resolve().parent == _PLAYBOOKS for name in names)


def _wrong_state(state: str, given: t.Any, known: t.Mapping[str, t.Any]) -> str:
    """Why a value of site_state does not do what it says.

    :param given: its value on the command line.
    """
    if state not in ("", "present", _ABSENT):
        return f"site_state is {plain(state)!r}, and nothing was done: set it to present or absent."
    if state == _ABSENT and given != _ABSENT:
        return "site_state is set in the inventory, where it has no effect, and nothing was done: set it on the command line, with -e site_state=absent."
    tags = [str(tag) for tag in (*known.get("ansible_run_tags", ()), *known.get("ansible_skip_tags", ())) if tag not in ("all", "always", "tagged")]
    if state == _ABSENT and tags:
        return f"site_state=absent removes what all layers have put on a host, and nothing was done: run it without the tag {plain(tags[0])}."
    return ""


def _nothing_selected(layers: t.Sequence[str], known: t.Mapping[str, t.Any]) -> str:
    """That tags leave nothing to do. The network can be proven without any layer."""
    if not layers or selected_layers(layers, known) or any(str(tag).endswith("_prove") for tag in known.get("ansible_run_tags", ())):
        return ""
    return f"The tags leave out all layers, and nothing was done: the layers are {', '.join(layers)}."


def _nothing_described(layers: t.Sequence[str], hosts: t.Sequence[str], hostvars: t.Any) -> str:
    """That no host has a variable of any of these layers, as with a misnamed file of the inventory. A variable that is empty is one."""
    prefixes = tuple(f"{layer}_" for layer in layers)
    raw = getattr(hostvars, "raw_get", hostvars.__getitem__)
    own: dict[str, str] = {}
    without_value: dict[str, str] = {}
    for host in hosts if layers else ():
        for name, value in ((str(name), value) for name, value in raw(host).items()):
            if name.startswith(prefixes):
                if value is not None:
                    return ""
                without_value.setdefault(name, host)
            if not name.startswith("ansible_"):
                own.setdefault(name, host)
    if not layers or not hosts:
        return ""
    for name, host in without_value.items():
        return f"Nothing was done: {name} of {host} has no value: list its entries below it, or set it to [] if there are none."
    lists = [name for name in RoleVariables().lists if name.startswith(prefixes)]
    first = list({next(prefix for prefix in prefixes if name.startswith(prefix)): name for name in reversed(lists)}.values())
    near = next(((name, host, found[0]) for name, host in own.items() for found in [difflib.get_close_matches(name, lists, 1, _ALIKE)] if found), None)
    advice = f"did you mean {near[2]}, in place of {near[0]} of {near[1]}?" if near else "is its file named like the host (host_vars) or a group (group_vars)?"
    return f"Nothing was done: no host of this play ({few(hosts)}) has {'one of the variables ' if first[1:] else ''}{', '.join(reversed(first))}: {advice}"


def _wrong_declarations(values: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    """Hosts refuse them too, a sweep however after its journal was written, and then it could not restore either."""
    for name in DECLARATION_OPTIONS:
        given = values.get(f"storage_{name}")
        try:
            checked_declarations(given if isinstance(given, list) else [])
        except BadInput as error:
            yield error.message


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
        for sentence in [*variables.type_errors(values), *_wrong_declarations(values)] if types else ():
            wrong.setdefault(sentence, []).append(host)
    sentences = [f"{few(who)}: {sentence}" for sentence, who in wrong.items()]
    return " ".join([*([complaint(unknown, variables)] if unknown else []), *(one if one.endswith((".", "?")) else f"{one}." for one in sentences)])
