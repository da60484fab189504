# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run measurements on a host, which first gets the logs of I/O that it replays."""

from __future__ import annotations

import typing as t

from ansible.utils.vars import merge_hash

from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.log_file import supply


class ActionModule(StorageAction):
    """See the documentation of ``cachefleet.storage.fio_runner``."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        options = self._task.args
        failed = supply(self, options, task_vars) if options.get("state", "started") == "started" else {}
        return merge_hash(result, failed or self.answer_of("cachefleet.storage.fio_runner", options, task_vars))
