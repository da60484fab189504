#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: summary
short_description: "Step of the playbook site: print what was done on all hosts, and failures by reason"
version_added: 1.0.0
description:
  - Prints how many hosts were changed, are configured as described, failed or are unreachable, from the results of
    M(cachefleet.storage.cache_layers). Hosts that failed for the same reason, apart from the names of their devices and their addresses, are
    printed together, and the reason once.
  - The steps of hosts that were changed follow, of hosts with equal steps once, in at most 40 lines. If these do not suffice, steps of several
    devices are counted, and the hosts that are left are counted.
  - Does not fail if hosts failed.
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  results:
    description: The result of M(cachefleet.storage.cache_layers) for each host, by the name of the host.
    type: dict
    default: {}
  variable:
    description:
      - The name of the variable in which the result of each host of the play was registered, in place of O(results). It is read without templates,
        which costs less for many hosts.
    type: str
    default: ""
  active:
    description: The hosts without a failure so far. Another host is reported as failed, even if its result is not.
    type: list
    elements: str
    required: true
  removal:
    description: Whether the results are those of M(cachefleet.storage.host_files), after which a host that did not change has nothing of this collection.
    type: bool
    default: false
seealso:
  - module: cachefleet.storage.cache_layers
  - module: cachefleet.storage.plan
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Configure the hosts and report what was done
  block:
    - name: Configure the cache layers
      cachefleet.storage.cache_layers:
        drives: "{{ drive_write_cache_drives }}"
      become: true
      register: configured
  always:
    - name: Print what was done on all hosts
      cachefleet.storage.summary:
        results: "{{ dict(ansible_play_hosts_all | zip(ansible_play_hosts_all | map('extract', hostvars) | map(attribute='configured', default={}))) }}"
        active: "{{ ansible_play_hosts }}"
      run_once: true
"""

RETURN = r"""
summary:
  description: How many hosts failed, are unreachable, were changed or are configured as described.
  type: str
  returned: always
  sample: "3 hosts: 1 failed, 2 were changed."
outcomes:
  description:
    - V(failed), V(unreachable), V(changed), V(would_change) in check mode, V(unchanged), or V(nothing) if no variable describes a selected
      layer of the host, by the name of the host.
  type: dict
  returned: always
  sample: {node1: changed, node2: unreachable}
failures:
  description: Each reason of a failure with its hosts. C(outcome) is V(failed) or V(unreachable).
  type: list
  elements: dict
  returned: always
  sample: [{outcome: failed, reason: "DEVICE does not exist on this host", hosts: [node3, node4]}]
text:
  description: The printed text.
  type: str
  returned: always
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "results": {"type": "dict", "default": {}},
        "variable": {"type": "str", "default": ""},
        "active": {"type": "list", "elements": "str", "required": True},
        "removal": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.summary works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
