# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb plan: the plan of all hosts from the results of their calls in check mode; on the controller only."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import GROUPS
from ansible_collections.cachefleet.storage.plugins.modules.plan import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import write_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.hosts import HostPlan, groups_of, read_plans
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.text import as_markdown, as_text, summary
from ansible_collections.cachefleet.storage.plugins.plugin_utils._terminal import width_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import limiting_tags

#: Columns if the output is not a terminal.
_WIDTH = 150


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        plans = read_plans(options["results"])
        groups = groups_of(plans)
        width = width_of(self._display, _WIDTH)
        layers = limiting_tags(GROUPS, self._variables)
        text = as_text(plans, groups, width, layers)
        self._display.display(f"\n{text}\n")
        hosts = [one.to_dict() for one in plans]
        equal = [{"outcome": group.first.outcome, "hosts": group.names} for group in groups]
        found = {"summary": summary(plans, layers), "hosts": hosts, "groups": equal, "text": text}
        result = {"changed": False, **found, "files": {}, "problem": _problem(plans)}
        try:
            if options["path"]:
                contents = {"markdown": as_markdown(plans, groups, layers), "json": json.dumps({"schema": 1, "hosts": hosts, "groups": equal}, indent=2) + "\n"}
                result["files"] = self._write(Path(options["path"]).absolute(), contents)
        except StorageError as error:
            return {**result, "failed": True, **error.to_dict()}
        return result

    def _write(self, folder: Path, contents: t.Mapping[str, str]) -> dict[str, str]:
        """A plan is no change: it is written in check mode too, in which it was made."""
        files = {kind: folder / f"plan.{suffix}" for kind, suffix in (("markdown", "md"), ("json", "json"))}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for kind, path in files.items():
                write_text(path, contents[kind])
        except OSError as error:
            raise CommandFailed(f"No plan was written in {folder}: {error.strerror}. Set plan_directory to a folder that can be written.") from None
        self._display.display("\n".join(f"Plan: {path}" for path in files.values()) + "\n")
        return {kind: str(path) for kind, path in files.items()}


def _problem(plans: t.Sequence[HostPlan]) -> str:
    """Why the plan cannot be carried out as a whole; empty if it can."""
    if not plans:
        return "No host was planned: select hosts with storage_hosts."
    wrong = [one.host for one in plans if one.outcome in ("refused", "unreachable")]
    partial = [one.host for one in plans if one.outcome == "in_part"]
    sentences = (
        f"The plan cannot be carried out on {_named(wrong)}." if wrong else "",
        f"It is carried out only in part on {_named(partial)}." if partial else "",
    )
    return " ".join(filter(None, sentences))


def _named(hosts: t.Sequence[str]) -> str:
    return f"{', '.join(hosts[:8])}{f' and {len(hosts) - 8} more hosts' if len(hosts) > 8 else ''}"
