# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes down what every task of a playbook run did, one JSON file for each run, so that runs and their costs can be compared.

The folder is given by CACHEFLEET_RECORD; without it nothing is written.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from ansible import context
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record_tasks
type: aggregate
short_description: Writes down what every task did
description: For the tests of this collection only.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record_tasks"

    def __init__(self) -> None:
        super().__init__()
        self.scenario, self.playbook = "", ""
        self.results: list[dict] = []
        self.tasks: list[dict] = []
        self.begun = time.monotonic()

    def v2_playbook_on_start(self, playbook):
        # Every scenario has a playbook "converge": the folder tells which one this is.
        path = Path(playbook._file_name).absolute()
        self.scenario, self.playbook = path.parent.name, path.stem

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._end_task()
        self.tasks.append({"task": task.get_name(), "begun": time.monotonic()})

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, is_conditional=False)

    def _end_task(self):
        if self.tasks and "begun" in self.tasks[-1]:
            self.tasks[-1]["seconds"] = time.monotonic() - self.tasks[-1].pop("begun")

    def v2_runner_on_ok(self, result):
        self._record(result, "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._record(result, "failed")

    def v2_runner_on_unreachable(self, result):
        self._record(result, "unreachable")

    def _record(self, result, state):
        task = result.task
        returned = result.result
        self.results.append(
            {
                "host": result.host.get_name(),
                "role": task._role.get_name() if task._role else None,
                "task": task.get_name(),
                "module": task.resolved_action,
                "state": state,
                "changed": bool(returned.get("changed")),
                "actions": returned.get("actions"),
                "diff": returned.get("diff"),
                "msg": str(returned.get("msg", "")),
            }
        )

    def v2_playbook_on_stats(self, stats):
        folder = os.environ.get("CACHEFLEET_RECORD")
        if not folder:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._end_task()
        run = {
            "scenario": self.scenario,
            "playbook": self.playbook,
            "check": bool(context.CLIARGS.get("check")),
            "seconds": time.monotonic() - self.begun,
            "tasks": self.tasks,
            "results": self.results,
        }
        (Path(folder) / f"{time.time_ns()}.json").write_text(json.dumps(run, indent=1, default=str))
