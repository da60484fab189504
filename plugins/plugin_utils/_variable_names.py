# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Names of variables: which start like a role of the collection and are not known to it. A mistyped one would otherwise just have no effect."""

from __future__ import annotations

import difflib
import typing as t
from pathlib import Path

import yaml

#: Variables of playbooks and of the inventory of the virtual rack, and results that the roles publish.
ELSEWHERE = frozenset(
    {
        "cache_health_found",
        "fio_benchmark_label",
        "storage_network_paths",
        "sweep_campaign",
        "sweep_hosts",
        "sweep_problem",
        "sweep_report_baseline",
        "sweep_result",
        "test_volumes_hosts",
        "virtual_rack_machine",
    }
)

_ROLES = Path(__file__).resolve().parent.parent.parent / "roles"

_MOST_HOSTS = 3


class RoleVariables:
    """The variables of all roles, from their argument specifications.

    :param roles: the folder of the roles.
    """

    def __init__(self, roles: Path = _ROLES) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.roles: list[str] = []
        self._known: set[str] = set(ELSEWHERE)
        for path in sorted(roles.glob("*/meta/argument_specs.yml")):
            self.roles.append(path.parent.parent.name)
            for entry in yaml.load(path.read_text(), loader)["argument_specs"].values():
                for name, option in entry.get("options", {}).items():
                    self._known.update((name, *option.get("aliases", ())))

    def unknown(self, names: t.Iterable[str]) -> list[str]:
        """Those that start with the name of a role, and are no variable of it."""
        prefixes = tuple(f"{role}_" for role in self.roles)
        return [name for name in names if name.startswith(prefixes) and name not in self._known]

    def nearest(self, name: str) -> str | None:
        """The known variable that is most alike."""
        return next(iter(difflib.get_close_matches(name, sorted(self._known), 1, 0.8)), None)


def complaint(found: t.Mapping[str, t.Sequence[str]], variables: RoleVariables) -> str:
    """One sentence for each unknown name, or nothing.

    :param found: unknown names, each with the hosts that have it.
    """
    sentences = []
    for name, hosts in sorted(found.items()):
        more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
        near = variables.nearest(name)
        role = next(role for role in sorted(variables.roles, key=len, reverse=True) if name.startswith(f"{role}_"))
        advice = f"did you mean {near}?" if near else f"rename it if it is a variable of your own, or see the README of the role {role}."
        sentences.append(f"No role has the variable {name}, which is set for {', '.join(hosts[:_MOST_HOSTS])}{more}: {advice}")
    return " ".join(sentences)
