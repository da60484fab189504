# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb summary: what was done on all hosts, and each failure with its reason once; on the controller only."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import GROUPS
from ansible_collections.cachefleet.storage.plugins.modules.summary import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.runs import as_text, failures_of, read_runs, summary
from ansible_collections.cachefleet.storage.plugins.plugin_utils._terminal import width_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import limiting_tags

#: Columns if the output is not a terminal.
_WIDTH = 150


class ActionModule(Verb):
    # One task for all hosts, in the context of one of them: it only reads and prints.
    _refuses_injected_variables = False
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        results = _registered(options["variable"], self._variables) if options["variable"] else options["results"]
        runs = read_runs(results, set(options["active"]), check_mode=bool(self._task.check_mode))
        failures = failures_of(runs)
        layers, check_mode = limiting_tags(GROUPS, self._variables), bool(self._task.check_mode)
        removal = options["removal"]
        text = as_text(runs, failures, width_of(self._display, _WIDTH), layers, check_mode=check_mode, removal=removal)
        self._display.display(f"\n{text}\n")
        outcomes = {one.host: one.outcome for one in runs}
        return {
            "changed": False,
            "summary": summary(runs, layers, removal=removal),
            "outcomes": outcomes,
            "failures": [one.to_dict() for one in failures],
            "text": text,
        }


def _registered(variable: str, task_vars: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What was registered of each host of the play, by its name."""
    hostvars = task_vars["hostvars"]
    raw = getattr(hostvars, "raw_get", hostvars.__getitem__)
    return {str(host): _joined(raw(host).get(f"{variable}_before"), raw(host).get(variable) or {}) for host in task_vars["ansible_play_hosts_all"]}


def _joined(before: t.Any, result: t.Any) -> t.Any:
    """A result with the steps of the call before it, if there was one: the earlier result may be that of another run of the role."""
    if not isinstance(before, dict) or not isinstance(result, dict) or not result.get("follows"):
        return result
    earlier = _list_of(before, "steps")
    steps = [*earlier, *_list_of(result, "steps")]
    diff = {**result["diff"], "steps": [*earlier, *_list_of(result["diff"], "steps")]} if isinstance(result.get("diff"), dict) else {}
    return {**result, "changed": True, "steps": steps, "diff": diff, "pending": _list_of(before, "pending")}


def _list_of(answer: t.Mapping[str, t.Any], name: str) -> list[t.Any]:
    """A list in the answer of a host, which may be anything."""
    value = answer.get(name)
    return value if isinstance(value, list) else []
