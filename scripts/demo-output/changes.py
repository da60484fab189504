# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of the demo: what is changed, what fails, and what the modules print. A sweep has a thousand tasks."""

from __future__ import annotations

import textwrap

from ansible.plugins.callback.default import CallbackModule as Default

DOCUMENTATION = """
name: changes
type: stdout
short_description: Prints what is changed, and failures as the default callback does
description: For the demo of this collection only.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""


class CallbackModule(Default):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "changes"

    def v2_runner_on_ok(self, result):
        task, found = result.task, result.result
        # What a measurement does is in the lines of the sweep.
        if not found.get("changed") or task.check_mode or task.action == "cachefleet.storage.fio_runner":
            return
        host = result.host.get_name()
        for action in found.get("actions") or ():
            self._display.display(textwrap.fill(f"{host}: {action}", self._display.columns, subsequent_indent="    ", break_on_hyphens=False))

    def _nothing(self, *_arguments, **_more):
        """Not printed."""

    v2_playbook_on_play_start = v2_playbook_on_task_start = v2_playbook_on_handler_task_start = v2_playbook_on_cleanup_task_start = _nothing
    v2_playbook_on_include = v2_playbook_on_stats = v2_playbook_on_start = v2_runner_on_start = _nothing
    v2_runner_on_skipped = v2_runner_item_on_ok = v2_runner_item_on_skipped = v2_runner_retry = _nothing
    v2_runner_on_async_poll = v2_runner_on_async_ok = _nothing
