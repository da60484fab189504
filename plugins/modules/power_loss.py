#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: power_loss
short_description: "Step of the role power_loss_test: keep the journal of a power-loss test and write its result"
version_added: 1.0.0
description:
  - Keeps, for each host, the journal of its power cuts in the folder of the test, to which it only appends, and writes the result of all hosts.
  - The role P(cachefleet.storage.power_loss_test#role) uses this module; no host is changed by it.
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: partial
    details: Nothing is done in check mode.
  diff_mode:
    support: none
  idempotent:
    support: none
options:
  operation:
    description:
      - V(validate) validates the variables that depend on each other, before anything is contacted.
      - V(create) creates the folder of the test.
      - V(open) returns how many cuts of the host are due, and the cut in which an earlier run was interrupted.
      - V(begin) begins a cut, and returns the ID and the secret of its run. The secret is not stored.
      - V(note) appends an event.
      - V(finish) prints the result of all hosts and writes C(power_loss.json) and C(power_loss.md).
    type: str
    choices: [validate, create, open, begin, note, finish]
    required: true
  results:
    description: The folder of all tests on the controller, with O(operation=create).
    type: str
    default: ""
  name:
    description: The name of the test, with O(operation=create). By default the present time.
    type: str
    default: ""
  path:
    description: The folder of the test, as returned by O(operation=create).
    type: str
    default: ""
  settings:
    description: What the verdict depends on. An existing test is only continued with the same settings.
    type: dict
    default: {}
  witness:
    description: The host of the witness, with O(operation=validate).
    type: str
    default: localhost
  witness_address:
    description: The address at which the host reaches the witness, with O(operation=validate).
    type: str
    default: ""
  tunnel:
    description: Whether the host reaches the witness through SSH, with O(operation=validate).
    type: bool
    default: false
  described:
    description: Whether the commands, or the BMC, with which the power is cut are set, with O(operation=validate).
    type: bool
    default: true
  cuts:
    description: The number of cuts that are verified in total.
    type: int
    default: 1
  run:
    description: The ID of the run, with O(operation=note).
    type: str
    default: ""
  event:
    description: The event, with O(operation=note).
    type: str
    choices: [writing, cutting, verified, interrupted, removed]
  found:
    description:
      - The result of M(cachefleet.storage.power_loss_writer) with O(event=writing), and of M(cachefleet.storage.power_loss_verify) with
        O(event=verified).
    type: dict
    default: {}
  reason:
    description: The reason of the event.
    type: str
    default: ""
  problems:
    description: Hosts that were not finished, with the reason, for O(operation=finish).
    type: dict
    default: {}
notes:
  - An action plugin of the same name does the work.
seealso:
  - module: cachefleet.storage.power_loss_writer
  - module: cachefleet.storage.power_loss_witness
  - module: cachefleet.storage.power_loss_verify
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Write the result of a power-loss test again
  cachefleet.storage.power_loss:
    operation: finish
    path: power_loss_results/2026-11-21T1403Z
  run_once: true
"""

RETURN = r"""
path:
  description: The folder of the test.
  type: str
  returned: with O(operation=create)
name:
  description: The name of the test.
  type: str
  returned: with O(operation=create)
due:
  description: The number of cuts that are due.
  type: int
  returned: with O(operation=open)
pending:
  description: The interrupted cut with C(run), C(cut), C(state), C(boot_id) and C(announced); empty if there is none.
  type: dict
  returned: with O(operation=open)
run:
  description: The ID of the run.
  type: str
  returned: with O(operation=begin)
secret:
  description: The secret of the run. Use C(no_log) for the task.
  type: str
  returned: with O(operation=begin)
cut:
  description: The number of the cut, starting with 1.
  type: int
  returned: with O(operation=begin)
hosts:
  description: The result of each host, as in C(power_loss.json).
  type: list
  elements: dict
  returned: with O(operation=finish)
text:
  description: The result as text.
  type: str
  returned: with O(operation=finish)
files:
  description: The files that were written.
  type: list
  elements: str
  returned: with O(operation=finish)
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, for the action plugin."""
    return {
        "operation": {"type": "str", "choices": ["validate", "create", "open", "begin", "note", "finish"], "required": True},
        "results": {"type": "str", "default": ""},
        "name": {"type": "str", "default": ""},
        "path": {"type": "str", "default": ""},
        "settings": {"type": "dict", "default": {}},
        "witness": {"type": "str", "default": "localhost"},
        "witness_address": {"type": "str", "default": ""},
        "tunnel": {"type": "bool", "default": False},
        "described": {"type": "bool", "default": True},
        "cuts": {"type": "int", "default": 1},
        "run": {"type": "str", "default": ""},
        "event": {"type": "str", "choices": ["writing", "cutting", "verified", "interrupted", "removed"]},
        "found": {"type": "dict", "default": {}},
        "reason": {"type": "str", "default": ""},
        "problems": {"type": "dict", "default": {}},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.power_loss works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
