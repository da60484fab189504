# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configure the cache layers of a host, and start a measurement if there is one."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.vars import merge_hash

from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import wrong_list
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.log_file import supply

_LISTS = ("actions", "steps", "left_out")
#: What a failed task returns only if there is something.
_IF_ANY = ("pending", "waiting", "undetermined", "not_running")


class ActionModule(StorageAction):
    """See the documentation of ``cachefleet.storage.cache_layers``. Only hosts that measure receive the code of the runner."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        layers = dict(self._task.args)
        if wrong := wrong_list(layers):
            return merge_hash(result, {"failed": True, "changed": False, "msg": f"{wrong} Nothing was changed."})
        name, arguments, failed = "cache_layers", layers, {}
        if layers.get("benchmark"):
            measurement = {option: layers.pop(option) for option in ("benchmark", "settle") if option in layers}
            name, arguments = "sweep_step", {"layers": layers, **measurement}
            failed = supply(self, measurement["benchmark"], task_vars)
        follows = not boolean(layers.get("allow_pending", True), strict=False)
        answer = merge_hash(result, failed or self.answer_of(f"cachefleet.storage.{name}", arguments, task_vars))
        return _short_if_failed({**answer, "follows": True} if follows else answer)


def _short_if_failed(result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Ansible prints everything that a failed task returns except its diff, next to the message: lists of many steps are moved there."""
    if not result.get("failed"):
        return result
    diff = result.get("diff")
    lists = {name: result[name] for name in _LISTS if result.get(name)}
    kept = {name: value for name, value in result.items() if name not in (*_LISTS, "layers") and (name not in _IF_ANY or value)}
    return {**kept, "diff": {**(diff if isinstance(diff, dict) else {}), **lists}} if lists else kept
