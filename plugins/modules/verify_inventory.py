#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verify_inventory
short_description: Verify that a play has hosts, and that no variable of a role is mistyped
version_added: 1.0.0
description:
  - Fails if a variable of a host starts with the name of a role of this collection, and is not a variable of this role. The message has the most
    similar name. A mistyped variable would have no effect, and nothing would be measured or configured.
  - Fails if the value of a variable has another type than the role takes, or a key that is not known, unless it contains a template.
  - Fails if the play has no host except the controller, and O(hosts) does not select the controller.
  - Fails if the variable C(storage_hosts) contains an undefined variable, because the playbooks of this collection would then take all hosts.
  - Fails if a pattern in O(hosts) cannot be read, because of a bracket that does not end or an invalid regular expression. Ansible would leave it out,
    and take all hosts if nothing else is left.
  - Variables of all hosts of the play are verified by one task. They are not templated.
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  hosts:
    description:
      - The patterns by which the user selected hosts. Without it, all hosts of the inventory except localhost are the hosts of the play, or
        localhost if the inventory has no other host.
    type: list
    elements: str
  types:
    description:
      - Whether values are verified too. Without it, each module verifies those of its host, and other hosts are configured although one has a
        wrong value.
    type: bool
    default: true
  layers:
    description: Fails if no host of the play has a variable of one of these roles, of those that the tags select. Nothing would be configured.
    type: list
    elements: str
    default: []
  tags:
    description:
      - Fails if a tag that is selected with C(--tags) or skipped with C(--skip-tags) is none of these, but similar to one.
      - If only playbooks of this collection are run, every other tag is an error, because it selects nothing.
    type: list
    elements: str
    default: []
  site_state:
    description:
      - The variable of the playbook C(site). Fails if it is neither V(present) nor V(absent), or was not set on the command line, where alone it has
        an effect, or if it is V(absent) and tags select layers.
      - With V(absent), O(layers) is not verified.
    type: str
    default: ""
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Measure all hosts
  hosts: "{{ rack_hosts }}"
  gather_facts: false
  become: true
  tasks:
    - name: Verify the hosts and the names of variables
      cachefleet.storage.verify_inventory:
        hosts: "{{ rack_hosts }}"
      run_once: true

    - name: Measure
      ansible.builtin.import_role:
        name: cachefleet.storage.fio_benchmark
"""

RETURN = r"""
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "hosts": {"type": "list", "elements": "str"},
        "types": {"type": "bool", "default": True},
        "layers": {"type": "list", "elements": "str", "default": []},
        "tags": {"type": "list", "elements": "str", "default": []},
        "site_state": {"type": "str", "default": ""},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.verify_inventory works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
