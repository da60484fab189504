# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb verify_host, and the action plugin of every module that runs on hosts (``meta/runtime.yml``)."""

from __future__ import annotations

import typing as t

from ansible.utils.vars import merge_hash

from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction


class ActionModule(StorageAction):
    """See the documentation of ``cachefleet.storage.verify_host``. A module runs after the same verification."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        # The action may be named without its collection; resolved, it is this plugin.
        name = self._task.action.rpartition(".")[2]
        if name == "verify_host":
            return {**result, "changed": False}
        return merge_hash(result, self.answer_of(f"cachefleet.storage.{name}", self._task.args, task_vars))
