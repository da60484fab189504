#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_runner
short_description: Follow a benchmark that runs on a host
version_added: 0.4.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Waits until the runner that M(cachefleet.storage.fio_runner) started on a host waits at a barrier, or has ended.
  - Looks at the host with plain shell commands, so a look costs it no Python. Looks are frequent in the beginning and then come
    every O(interval) seconds.
  - The runner needs neither this task nor the connection. A connection that is lost is tried again. When this task is stopped,
    the runner goes on, and another task can wait for it.
  - A runner that failed or died does not fail this task, for what it had finished is to be collected. RV(state) says it.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.info_module
options:
  campaign:
    description: The name of the campaign that the runner measures.
    type: str
    required: true
  spool:
    description: The folder on the host in which the runner keeps what it does.
    type: str
    default: /var/lib/cachefleet/spool
  path:
    description:
      - The folder of the campaign on the controller, as M(cachefleet.storage.campaign) returned it. Each look is noted there, for
        the callback plugin P(cachefleet.storage.progress#callback). If empty, nothing is noted.
    type: str
    default: ""
  segment:
    description:
      - The barrier to wait for, from 0. The task returns when the runner waits there, is past it, or has ended.
      - Without it the task waits until the runner has ended.
    type: int
  interval:
    description: Seconds between two looks, at most.
    type: float
    default: 15
  patience:
    description: Seconds for which a host may be out of reach before the task gives up, as long as it restarts for example.
    type: int
    default: 900
  turn:
    description: Return after so many seconds in any case, so that other hosts have their turn. V(0) is no limit.
    type: float
    default: 0
  limit:
    description: Seconds after which the host is given up, with RV(ended=false). Its runner goes on. V(0) is no limit.
    type: float
    default: 0
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.release_runner
"""

EXAMPLES = r"""
- name: Wait until everything is measured
  cachefleet.storage.wait_for_runner:
    campaign: 2026-11-21T1403Z
"""

RETURN = r"""
state:
  description:
    - What the runner says, V(starting), V(waiting), V(pausing), V(measuring), V(finished), V(stopped) or V(failed).
    - V(dead) if it is gone and did not say why. V(not_started) in check mode.
  type: str
  returned: success
  sample: finished
segment:
  description: The part of the order, between two barriers, that it waits for or works on.
  type: int
  returned: success
waiting:
  description: Whether it waits at the barrier O(segment).
  type: bool
  returned: success
ended:
  description: Whether it does no more.
  type: bool
  returned: success
message:
  description: What it says besides.
  type: str
  returned: success
status:
  description: The last thing that it said of itself; V(null) if it said nothing.
  type: dict
  returned: success
round_trip:
  description: Seconds that the fastest look took.
  type: float
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "campaign": {"type": "str", "required": True},
        "spool": {"type": "str", "default": "/var/lib/cachefleet/spool"},
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
