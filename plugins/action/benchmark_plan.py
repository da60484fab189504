# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb benchmark_plan: what one host measures; on the controller only."""

from __future__ import annotations

import typing as t
from pathlib import Path

import yaml
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.modules.benchmark_plan import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import host_plan

_SUITES = Path(__file__).resolve().parent.parent.parent / "roles/fio_benchmark/files/suites"


class ActionModule(ActionBase):
    """See the documentation of ``cachefleet.storage.benchmark_plan``."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(argument_spec=argument_spec())
        host = str((task_vars or {}).get("inventory_hostname", ""))
        suites = _included_suites() | options.pop("suites")
        try:
            return {"changed": False, **host_plan(options.pop("targets"), options.pop("suite"), suites, host=host, **options)}
        except StorageError as error:
            return {"failed": True, "changed": False, **error.to_dict()}


def _included_suites() -> dict[str, t.Any]:
    """Those of the role, by name."""
    found: dict[str, t.Any] = {}
    for path in sorted(_SUITES.glob("*.yml")):
        found |= yaml.safe_load(path.read_text())
    return found
