#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files
short_description: "Step of the playbook site: remove what this collection has put on a host"
version_added: 1.0.0
description:
  - Removes the udev rules, units, configuration files, records and files for measurements that this collection has written. Devices and their
    present settings are not changed; what a rule or a file sets at boot is not set any more from the next boot on.
  - What is still needed is refused before anything is removed, with a sentence that names what to do. This is the unit of a cache that exists, an
    AoE target, a flush or purge that was interrupted, the journal of a sweep, a power-loss test that was not concluded, a measurement that runs, and
    measured cells that were not collected.
  - A file that was made for a measurement is removed if it is as the measurement left it. What this collection does not write is left.
  - The playbook C(cachefleet.storage.site) runs it with C(site_state=absent).
options:
  state:
    description: What to do with these files.
    type: str
    choices: [absent]
    required: true
  spool:
    description:
      - The folder on the host in which measurements wait for collection. In addition to the default one its campaigns are removed, and nothing else of
        it.
    type: path
    default: /var/lib/cachefleet/spool
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
seealso:
  - module: cachefleet.storage.cache_layers
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Remove what this collection has put on the host
  cachefleet.storage.host_files:
    state: absent
  become: true
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  type: list
  elements: str
  returned: always
  sample: [Remove /etc/udev/rules.d/99-cachefleet-block-queue.rules]
steps:
  description: The same actions, with the keys of RV(cachefleet.storage.cache_layers#module:steps).
  type: list
  elements: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._sweep.host_files import SPOOL, HostFilesLayer


def main():
    # Compiled code is not kept, as by other modules: it would be a file on the host.
    spec = {"state": {"type": "str", "choices": ["absent"], "required": True}, "spool": {"type": "path", "default": SPOOL}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    layer = HostFilesLayer(Runner(), module.params["spool"])
    with failing(module):
        outcome = converge(layer, check_mode=module.check_mode)
    for warning in outcome.warnings:
        module.warn(warning)
    steps = [{"layer": one.layer, "item": one.item, "attribute": one.attribute, "action": one.action, "risks": []} for one in outcome.steps]
    module.exit_json(**outcome.to_dict(), steps=steps)


if __name__ == "__main__":
    main()
