#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: describe_groups
short_description: "Step of the playbook describe: write the variables of hosts that are alike as files of groups"
version_added: 1.0.0
description:
  - Finds hosts that have the same models of RAID controllers with the same settings, and writes what they have in common as
    C(group_vars/MODEL.yml) in the folder O(path) on the controller.
  - Controllers are identified by their number and volumes by their name, since serial numbers and WWNs differ from host to host.
  - A file with the same content is not written again. A file that was edited is not overwritten unless O(force) is set.
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  path:
    description: The folder on the controller. It is created if it does not exist.
    type: path
    required: true
  descriptions:
    description: The C(description) that M(cachefleet.storage.describe) returned for each host, by the name of the host.
    type: dict
    required: true
  force:
    description: Whether a file that was edited is overwritten.
    type: bool
    default: false
seealso:
  - module: cachefleet.storage.describe
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Describe the host
  cachefleet.storage.describe:
    path: /srv/inventory/described
  become: true
  register: described

- name: Describe groups of equal hosts
  cachefleet.storage.describe_groups:
    path: /srv/inventory/described
    descriptions: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, ['described', 'description']))) }}"
  run_once: true
"""

RETURN = r"""
groups:
  description: The groups, the largest of each model first.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'The name of the group, made from the model of the controllers.', type: str}
    hosts: {description: 'Its hosts.', type: list, elements: str}
    variables: {description: 'The variables that are the same on all of them.', type: list, elements: str}
    path: {description: 'The file on the controller.', type: str}
  sample:
    - name: adaptec_asr8805
      hosts: [node1, node2]
      variables: [raid_cache_controllers]
      path: /srv/inventory/described/group_vars/adaptec_asr8805.yml
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "descriptions": {"type": "dict", "required": True},
        "force": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.describe_groups writes files on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
