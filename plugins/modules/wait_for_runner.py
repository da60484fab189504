#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_runner
short_description: "Step of the role fio_benchmark: wait for a benchmark that runs on a host"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Waits until the runner that M(cachefleet.storage.fio_runner) started on a host waits at a barrier, or has exited.
  - Polls the host with plain shell commands, so that no Python is started there. Polls are frequent at the start, and later
    every O(interval) seconds.
  - The runner needs neither this task nor the connection. A lost connection is retried. If this task is stopped,
    the runner continues, and another task can wait for it.
  - A runner that failed or died does not fail this task, because its finished cells should still be collected. It is reported in RV(state).
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.campaign
  - cachefleet.storage._options.spool
  - cachefleet.storage._attributes.info_module
options:
  path:
    description:
      - The folder of the campaign on the controller, as returned by M(cachefleet.storage.campaign). The result of each poll is stored there for
        the callback plugin P(cachefleet.storage.progress#callback). If empty, nothing is stored.
    type: str
    default: ""
  segment:
    description:
      - The barrier to wait for, starting with 0. The task returns when the runner waits there, has passed it, or has exited.
      - By default the task waits until the runner has exited.
    type: int
  interval:
    description: Maximum number of seconds between two polls.
    type: float
    default: 15
  patience:
    description: Seconds for which a host may be unreachable before the task fails, for example during a reboot.
    type: int
    default: 900
  turn:
    description: Seconds after which the task returns in any case, so that other hosts can be polled. V(0) sets no limit.
    type: float
    default: 0
  limit:
    description: Seconds after which the task stops waiting, with RV(ended=false). The runner continues. V(0) sets no limit.
    type: float
    default: 0
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.release_runner
"""

EXAMPLES = r"""
- name: Wait until all cells are measured
  cachefleet.storage.wait_for_runner:
    campaign: 2026-11-21T1403Z
"""

RETURN = r"""
state:
  description:
    - The state that the runner reports, V(starting), V(waiting), V(pausing), V(measuring), V(finished), V(stopped) or V(failed).
    - V(dead) if the process does not exist and did not report a reason. V(not_started) in check mode.
  type: str
  returned: success
  sample: finished
segment:
  description: The segment of the order, between two barriers, that the runner waits for or measures.
  type: int
  returned: success
waiting:
  description: Whether the runner waits at the barrier O(segment).
  type: bool
  returned: success
ended:
  description: Whether the runner has exited.
  type: bool
  returned: success
message:
  description: The message that the runner reports.
  type: str
  returned: success
status:
  description: The last status that the runner reported, V(null) if there is none.
  type: dict
  returned: success
round_trip:
  description: Duration of the fastest poll in seconds.
  type: float
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CAMPAIGN_OPTION, SPOOL_OPTION


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        **CAMPAIGN_OPTION,
        **SPOOL_OPTION,
        "path": {"type": "str", "default": ""},
        "segment": {"type": "int"},
        "interval": {"type": "float", "default": 15},
        "patience": {"type": "int", "default": 900},
        "turn": {"type": "float", "default": 0},
        "limit": {"type": "float", "default": 0},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.wait_for_runner works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
