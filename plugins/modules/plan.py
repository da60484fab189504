#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: "Step of the playbook plan: print the plan of all hosts"
version_added: 1.0.0
description:
  - Prints what would change on which hosts, in which order and with which risks, from the results of M(cachefleet.storage.cache_layers) in check
    mode. Hosts with equal plans, apart from the names of their devices, are printed once.
  - Does not fail if a host would be refused or is unreachable, but returns RV(problem).
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  results:
    description: The result of M(cachefleet.storage.cache_layers) in check mode for each host, by the name of the host.
    type: dict
    required: true
  path:
    description:
      - A folder on the controller in which C(plan.md) and C(plan.json) are written. It is created if it does not exist.
      - If empty, nothing is written.
    type: path
    default: ""
seealso:
  - module: cachefleet.storage.cache_layers
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Plan the cache layers
  cachefleet.storage.cache_layers:
    drives: "{{ drive_write_cache_drives }}"
  check_mode: true
  become: true
  register: planned

- name: Print the plan of all hosts
  cachefleet.storage.plan:
    results: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'planned'))) }}"
    path: /srv/plans/monday
  run_once: true
  register: plan
  failed_when: plan is failed or plan.problem | length > 0
"""

RETURN = r"""
summary:
  description: How many hosts would change, are configured as described, would be refused or are unreachable.
  type: str
  returned: always
  sample: "3 hosts: 1 would be refused, 2 would change."
hosts:
  description:
    - The plan of each host.
    - C(outcome) is V(refused), V(unreachable), V(in_part) if some layers would change and others are left out, V(changes), V(unchanged), or
      V(nothing) if no variable describes a selected layer of the host. C(reason) is why it is refused, what is left out and why, or why it is
      unreachable.
    - C(steps) are in their order, with the risks of RV(cachefleet.storage.cache_layers#module:steps). C(pending) and C(undetermined) are those of
      M(cachefleet.storage.cache_layers).
  type: list
  elements: dict
  returned: always
groups:
  description: The names of hosts with equal plans, the most urgent first.
  type: list
  elements: dict
  returned: always
  sample: [{outcome: changes, hosts: [node1, node2]}]
text:
  description: The printed text.
  type: str
  returned: always
problem:
  description: Why the plan cannot be carried out on all hosts, one sentence, or empty.
  type: str
  returned: always
  sample: The plan cannot be carried out on node4, node5.
files:
  description: The written files, V(markdown) and V(json).
  type: dict
  returned: always
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {"results": {"type": "dict", "required": True}, "path": {"type": "path", "default": ""}}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.plan works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
