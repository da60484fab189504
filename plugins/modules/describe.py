#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: describe
short_description: "Step of the playbook describe: write the state of a host as variables for the inventory"
version_added: 1.0.0
description:
  - Runs M(cachefleet.storage.cache_description_info) on the host and writes the result on the controller as a YAML file with comments,
    C(host_vars/HOST.yml) in the folder O(path).
  - A run of the playbook C(site) with this file changes nothing. What cannot be described is in comments.
  - In diff mode the variables of the inventory of the host are compared with what was found.
  - The host is not changed. Values from hosts are checked, and text that looks like a template is tagged C(!unsafe).
  - A file with the same content is not written again. A file that was edited is not overwritten unless O(force) is set.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._attributes.actiongroup_storage
options:
  path:
    description: The folder on the controller. It is created if it does not exist.
    type: path
    required: true
  layers:
    description: The roles whose variables are described.
    type: list
    elements: str
    choices: [drive_write_cache, raid_cache, storage_network, block_cache, block_queue, fio_benchmark]
    default: [drive_write_cache, raid_cache, storage_network, block_cache, block_queue, fio_benchmark]
  all_settings:
    description: Whether settings that have their default are described too.
    type: bool
    default: false
  force:
    description: Whether a file that was edited is overwritten.
    type: bool
    default: false
notes:
  - An action plugin of the same name runs on the controller and calls the module on the host.
seealso:
  - module: cachefleet.storage.cache_description_info
  - module: cachefleet.storage.describe_groups
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Describe the host
  cachefleet.storage.describe:
    path: /srv/inventory/described
  become: true
"""

RETURN = r"""
path:
  description: The file on the controller.
  type: str
  returned: success
  sample: /srv/inventory/described/host_vars/node1.yml
description:
  description: What was found, in the form of M(cachefleet.storage.cache_description_info) without comments.
  type: dict
  returned: success
notes:
  description: What could not be described or read, one sentence each.
  type: list
  elements: str
  returned: success
  sample: []
differing:
  description: The variables that differ between the inventory and the host.
  type: list
  elements: str
  returned: success
  sample: [block_cache_caches]
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._host.describe import LAYERS


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "layers": {"type": "list", "elements": "str", "choices": list(LAYERS), "default": list(LAYERS)},
        "all_settings": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.describe writes files on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
