#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_description_info
short_description: Describe the cache layers of a host as the variables of the roles
version_added: 1.0.0
description:
  - Reads the state of all cache layers of a host and returns it as the variables of the roles of this collection.
  - Every returned entry is verified with the plan of the module that manages the layer. With these variables, a run of the playbook C(site)
    would change nothing.
  - What cannot be described is returned as a sentence. A layer that cannot be read is not a failure, and the other layers are returned.
  - Devices are named by persistent paths, controllers by serial number, and volumes by WWN where the tool reports one.
  - Reading the write cache of a drive wakes it up if it sleeps.
options:
  layers:
    description: The roles whose variables are returned.
    type: list
    elements: str
    choices: [drive_write_cache, raid_cache, storage_network, block_cache, block_queue, fio_benchmark]
    default: [drive_write_cache, raid_cache, storage_network, block_cache, block_queue, fio_benchmark]
  all_settings:
    description:
      - Whether settings that have their default are returned too.
      - Write caches of drives and policies of RAID volumes are always returned, since they have no common default.
    type: bool
    default: false
  by_match:
    description:
      - Whether drives whose write caches agree with those of all others of their model are returned as one entry with C(match), in place of one
        entry with C(device) for each. Every entry is verified either way.
    type: bool
    default: false
  tool_paths:
    description:
      - Paths of RAID tools by provider, for tools that are not where they are searched for. The entries of their controllers have C(tool_path).
    type: dict
    default: {}
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
seealso:
  - module: cachefleet.storage.cache_stack_info
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Describe the caches of the host
  cachefleet.storage.cache_description_info:
  register: described

- name: Print what cannot be described
  ansible.builtin.debug:
    msg: "{{ described.variables | map(attribute='notes') | flatten }}"

- name: Describe all settings of the block queues
  cachefleet.storage.cache_description_info:
    layers: [block_queue]
    all_settings: true
"""

RETURN = r"""
variables:
  description: The variables in the order of the roles of the playbook C(site).
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: 'The name of the variable.', type: str, sample: block_cache_caches}
    entries:
      description: The entries of a list variable, each with its C(values) and with C(notes), one sentence each.
      type: list
      elements: dict
    value: {description: 'The value of a variable that is not a list of dictionaries; null if it is not set.', type: raw}
    notes: {description: 'What cannot be described or read, one sentence each.', type: list, elements: str}
    commented: {description: 'Whether the entries are only candidates, such as devices that could be measured.', type: bool}
controllers:
  description: The RAID controllers of the host, with what identifies them and their volumes.
  returned: success
  type: list
  elements: dict
  contains:
    provider: {description: 'The tool that reports it.', type: str}
    id: {description: 'Its number in the tool.', type: str}
    serial: {description: 'Its serial number.', type: str}
    model: {description: 'Its model.', type: str}
    volumes: {description: 'The C(id), C(name) and C(wwn) of each volume.', type: list, elements: dict}
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._host.describe import LAYERS, describe


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "layers": {"type": "list", "elements": "str", "choices": list(LAYERS), "default": list(LAYERS)},
            "all_settings": {"type": "bool", "default": False},
            "by_match": {"type": "bool", "default": False},
            "tool_paths": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    with failing(module):
        params = module.params
        own = {"by_match": params["by_match"], "tool_paths": params["tool_paths"]}
        described = describe(Runner(), layers=params["layers"], every=params["all_settings"], **own)
    module.exit_json(changed=False, **described.to_dict())


if __name__ == "__main__":
    main()
