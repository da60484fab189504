# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Names of variables: which start like a role of the collection and are not known to it. A mistyped one would otherwise just have no effect."""

from __future__ import annotations

import difflib
import functools
import re
import typing as t
from pathlib import Path

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._core.unknown_key import unknown_key

#: Variables of playbooks.
OF_PLAYBOOKS = frozenset(
    f"{prefix}_{name}"
    for prefix, names in {
        "accept": "allowed_signers at_once earlier identity key power_loss",
        "compare": "accept_undecided baseline baseline_variant candidate candidate_variant cells files ignore thresholds",
        "describe": "all_settings directory force layers",
        "plan": "directory",
        "replace_cache_device": "confirm new old timeout usable without_discard",
        "report": "baseline campaign currency decide_by files formats host_class ignore latency_limit_ms power_loss prices rows",
        "results": "allow_missing campaign conflicts export_tables file force format operation sources tables",
        "site": "state",
        "storage": "hosts",
        "sweep": "campaign knowledge power_loss report_baseline",
        "trace_report": "folder key output prices sizes",
    }.items()
    for name in names.split()
)

#: Variables of the inventory of the virtual rack, and what roles and playbooks publish or keep for themselves.
ELSEWHERE = frozenset(
    {
        # The last is an option of the module compare.
        *(f"accept_{name}" for name in ("campaign", "problem", "result", "undecided")),
        *(f"benchmark_{name}" for name in ("campaign", "dry_run", "failed", "planned", "problem", "problems", "report")),
        "cache_health_found",
        "compare_result",
        "fio_benchmark_label",
        "health_failure",
        "io_trace_fetched",
        "plan_result",
        "power_loss_test_problem",
        "power_loss_test_result",
        "replace_cache_device_usable_method",
        "storage_network_paths",
        "sweep_problem",
        "sweep_result",
        "virtual_rack_machine",
    }
)

#: What Ansible knows of a host from the inventory, and lets a fact replace. Facts are listed without the prefix ansible_.
_WHO = frozenset({"delegated_vars", "group_names", "inventory_dir", "inventory_file", "inventory_hostname", "inventory_hostname_short", "role_path"})

#: Variables that several roles use.
_OF_SEVERAL_ROLES: t.Mapping[str, t.Mapping[str, t.Any]] = {
    "storage_protected_drives": {"type": "list", "elements": "raw"},
    "storage_flushed_virtual_disks": {"type": "list", "elements": "str"},
}

_ROLES = Path(__file__).resolve().parent.parent.parent / "roles"

_MOST_HOSTS = 3

#: How much alike two names are that differ by a letter too many, too few, or in the wrong place (difflib.SequenceMatcher).
_SLIP = 0.9

#: The message of Ansible's validator.
_CONVERSION = re.compile(r"(?:argument|Elements value for option) '(?P<key>\w+)' is of type .*unable to convert to (?P<kind>\w+)", re.DOTALL)

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "list": "a list", "dict": "a dictionary", "str": "text"}


class RoleVariables:
    """The variables of all roles, from their argument specifications.

    :param roles: the folder of the roles.
    """

    def __init__(self, roles: Path = _ROLES) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.roles: list[str] = []
        self._options: dict[str, t.Mapping[str, t.Any]] = dict(_OF_SEVERAL_ROLES)
        self._known: set[str] = {*OF_PLAYBOOKS, *ELSEWHERE, *_OF_SEVERAL_ROLES}
        self._mistyped: dict[str, bool] = {}
        for path in sorted(roles.glob("*/meta/argument_specs.yml")):
            self.roles.append(path.parent.parent.name)
            for entry in yaml.load(path.read_text(), loader)["argument_specs"].values():
                for name, option in entry.get("options", {}).items():
                    self._known.add(name)
                    self._options[name] = option

    @property
    def lists(self) -> list[str]:
        """What the roles configure: their lists of dictionaries."""
        return [name for name, option in self._options.items() if option.get("type") == "list" and option.get("elements") == "dict"]

    def unknown(self, names: t.Iterable[str]) -> list[str]:
        """Those that start with the name of a role, and are no variable of it, and those that differ from a variable by a slip of the keyboard."""
        prefixes = tuple(f"{role}_" for role in self.roles)
        return [name for name in names if name not in self._known and (name.startswith(prefixes) or self._is_mistyped(name))]

    def _is_mistyped(self, name: str) -> bool:
        """A name of the user's own is longer or shorter, or starts otherwise."""
        if name not in self._mistyped:
            alike = [known for known in self._known if abs(len(known) - len(name)) <= 2 and known[0] == name[:1]]
            self._mistyped[name] = bool(difflib.get_close_matches(name, alike, 1, _SLIP))
        return self._mistyped[name]

    def nearest(self, name: str) -> str | None:
        """The known variable that is most alike."""
        return next(iter(difflib.get_close_matches(name, sorted(self._known), 1, 0.8)), None)

    def unknown_keys(self, name: str, value: t.Any) -> list[str]:
        """The keys in the value of a variable, or in one of several such values, that its role does not know. Free dictionaries have no keys to know."""
        return list(_unknown_keys(self._options.get(name, {}), value))

    def type_errors(self, values: t.Mapping[str, t.Any]) -> list[str]:
        """One sentence for each variable whose value has the wrong type, or keys that are not known.

        :param values: of one host, not templated: what contains a template is not looked at.
        """
        return [sentence for name, value in sorted(values.items()) if name in self._options for sentence in _type_errors(name, self._options[name], value)]


def _unknown_keys(option: t.Mapping[str, t.Any], value: t.Any) -> t.Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _unknown_keys(option, one)
    elif isinstance(value, dict) and option.get("options"):
        for key, one in value.items():
            yield from _unknown_keys(option["options"][key], one) if key in option["options"] else (key,)


def not_for_hosts(names: t.Iterable[str]) -> list[str]:
    """Those of some names of facts that no host may set: variables of roles and playbooks, what these keep for themselves, and who the host is."""
    # Usually there are none, and nothing needs to be read.
    names = list(names)
    if not names:
        return []
    roles, own = _reserved_prefixes()
    variables = OF_PLAYBOOKS | ELSEWHERE | _OF_SEVERAL_ROLES.keys() | _WHO
    return sorted(name for name in names if name in variables or name.startswith(roles) or (name.startswith(own) and name.startswith("__")))


@functools.lru_cache(maxsize=None)
def _reserved_prefixes() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What public names begin with that only a role can have, and what private ones of roles and playbooks begin with."""
    roles = sorted(path.name for path in _ROLES.iterdir() if path.is_dir())
    playbooks = {name.partition("_")[0] for name in OF_PLAYBOOKS}
    return tuple(f"{role}_" for role in roles), tuple(f"__{name}_" for name in sorted({*roles, *playbooks}))


def _type_errors(name: str, option: t.Mapping[str, t.Any], value: t.Any) -> t.Iterator[str]:
    if value is None or not _is_literal(value):
        return
    kind = option.get("type", "str")
    if kind == "list" and option.get("elements") == "dict" and not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        yield f"{name} must be a list of dictionaries, for example {_example(option)}"
        return
    if kind == "dict" and not isinstance(value, dict):
        yield f"{name} must be a dictionary"
        return
    if kind == "list" and name in _OF_SEVERAL_ROLES and not isinstance(value, list):
        yield f"{name} must be a list"
        return
    if value == "" and kind not in ("str", "path", "raw"):
        yield f"{name} is empty: set {_KINDS.get(kind, kind)}, or leave it out (in a survey, give the question a default)"
        return
    for error in ArgumentSpecValidator({name: dict(option)}).validate({name: value}).errors:
        wrong = _CONVERSION.search(str(error))
        if wrong is None:
            yield f"{name}: {_plain(str(error), name)}"
        else:
            what = name if wrong["key"] == name else f"{name}: {wrong['key']}"
            yield f"{what} must be {_KINDS.get(wrong['kind'], wrong['kind'])}"


def _is_literal(value: t.Any) -> bool:
    if isinstance(value, dict):
        return all(_is_literal(one) for one in value.values())
    if isinstance(value, list):
        return all(_is_literal(one) for one in value)
    return isinstance(value, (bool, int, float)) or value is None or (isinstance(value, str) and not re.search(r"\{[{%#]", value))


def _example(option: t.Mapping[str, t.Any]) -> str:
    """The keys that each entry must have, or the first one."""
    keys = option.get("options", {})
    named = [key for key, one in keys.items() if one.get("required")] or list(keys)[:1]
    return "[{" + ", ".join(f"{key}: ..." for key in named) + "}]"


def _plain(text: str, name: str) -> str:
    """A message of Ansible as it says it in one line, without the name that is before it already."""
    return unknown_key(text) or text.replace(f" found in {name}", "").rstrip(".")


def few(hosts: t.Sequence[str]) -> str:
    """The first hosts, and how many more."""
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    return ", ".join(hosts[:_MOST_HOSTS]) + more


def complaint(found: t.Mapping[str, t.Sequence[str]], variables: RoleVariables) -> str:
    """One sentence for each unknown name, or nothing.

    :param found: unknown names, each with the hosts that have it.
    """
    sentences = []
    for name, hosts in sorted(found.items()):
        near = variables.nearest(name)
        advice = f"did you mean {near}?"
        if not near:
            role = next(role for role in sorted(variables.roles, key=len, reverse=True) if name.startswith(f"{role}_"))
            advice = f"rename it if it is a variable of your own, or see the README of the role {role}."
        sentences.append(f"No role or playbook has the variable {name}, which is set for {few(hosts)}: {advice}")
    return " ".join(sentences)


def selected_layers(layers: t.Sequence[str], known: t.Mapping[str, t.Any]) -> list[str]:
    """Those of some layers that the tags of a run select, as the role cache_layers does it.

    :param known: the variables of a task.
    """
    run, skip = ({str(tag).removesuffix("_configure") for tag in known.get(f"ansible_{word}_tags", ())} for word in ("run", "skip"))
    return [one for one in layers if (not run or run & {one, "all", "tagged"}) and one not in skip]


def limiting_tags(layers: t.Sequence[str], known: t.Mapping[str, t.Any]) -> list[str] | None:
    """What tags limit a run to; None if they select all layers."""
    selected = selected_layers(layers, known)
    return None if len(selected) == len(layers) else selected
