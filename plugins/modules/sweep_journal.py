#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sweep_journal
short_description: "Step of the role sweep: read, write or remove the journal of a sweep on its host"
version_added: 1.0.0
description:
  - The journal has the state of the host before a sweep, as M(cachefleet.storage.cache_description_info) describes it with all settings, and the
    variables with which M(cachefleet.storage.cache_layers) restores it.
  - It is written before a sweep changes anything, and removed when the host is restored. There is one sweep of a host at a time.
  - The playbook C(cachefleet.storage.sweep) uses this module.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  diff_mode:
    support: none
options:
  state:
    description:
      - V(read) returns the journal.
      - V(described) returns the journal. If there is none, the state of the host is described, and the module fails if something is measured on it.
      - V(present) writes O(journal). Of a journal of the same campaign only the variables that restore the host are replaced.
      - V(absent) removes the journal of O(campaign).
    type: str
    choices: [read, described, present, absent]
    default: read
  campaign:
    description: The name of the campaign. A journal of another one is refused, if this is set.
    type: str
    default: ""
  journal:
    description: The journal, with O(state=present).
    type: dict
    default: {}
  devices:
    description: Paths of devices to resolve, with O(state=described).
    type: list
    elements: str
    default: []
  network:
    description: Whether the storage network is described, with O(state=described).
    type: bool
    default: false
  tool_paths:
    description: The same as O(cachefleet.storage.cache_description_info#module:tool_paths), with O(state=described).
    type: dict
    default: {}
  folder:
    description: The folder of the journal on the host.
    type: path
    default: /var/lib/cachefleet/sweep
  spool:
    description: The folder in which M(cachefleet.storage.fio_runner) keeps results.
    type: path
    default: /var/lib/cachefleet/spool
seealso:
  - module: cachefleet.storage.cache_description_info
  - module: cachefleet.storage.sweep
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Read the journal of an interrupted sweep
  cachefleet.storage.sweep_journal:
  register: interrupted
"""

RETURN = r"""
journal:
  description: The journal; empty if there is none.
  type: dict
  returned: success with O(state=read) and O(state=described)
  contains:
    campaign: {description: 'The campaign of the sweep.', type: str}
    host: {description: 'The host, as the inventory called it.', type: str}
    machine_id: {description: 'The machine-id of the host.', type: str}
    created: {description: 'The time at which the sweep began.', type: str}
    description: {description: 'What was found, in the form of RV(description).', type: dict}
    restore: {description: 'The variables that restore it, by name.', type: dict}
description:
  description: The state of the host without a journal, in the form of M(cachefleet.storage.cache_description_info). Otherwise empty.
  type: dict
  returned: success with O(state=described)
paths:
  description: The device that each path in O(devices) and in RV(description) leads to. Paths that lead nowhere are left out.
  type: dict
  returned: success with O(state=described)
machine_id:
  description: The machine-id of the host.
  type: str
  returned: success with O(state=read) and O(state=described)
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._sweep import journal as sweep_journal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["read", "described", "present", "absent"], "default": "read"},
            "campaign": {"type": "str", "default": ""},
            "journal": {"type": "dict", "default": {}},
            "devices": {"type": "list", "elements": "str", "default": []},
            "network": {"type": "bool", "default": False},
            "tool_paths": {"type": "dict", "default": {}},
            "folder": {"type": "path", "default": "/var/lib/cachefleet/sweep"},
            "spool": {"type": "path", "default": "/var/lib/cachefleet/spool"},
        },
        required_if=[("state", "present", ("journal",)), ("state", "absent", ("campaign",))],
        supports_check_mode=True,
    )
    with failing(module):
        module.exit_json(**_carry_out(module.params, module.check_mode))


def _carry_out(options, check_mode):
    folder = options["folder"]
    if options["state"] == "present":
        return {"changed": sweep_journal.write(folder, options["journal"], check_mode=check_mode)}
    if options["state"] == "absent":
        return {"changed": sweep_journal.remove(folder, options["campaign"], check_mode=check_mode)}
    if options["state"] == "read":
        return {"changed": False, **sweep_journal.recall(folder, options["campaign"])}
    found = sweep_journal.survey(Runner(), folder, options["devices"], **{name: options[name] for name in ("network", "spool", "campaign", "tool_paths")})
    return {"changed": False, **found}


if __name__ == "__main__":
    main()
