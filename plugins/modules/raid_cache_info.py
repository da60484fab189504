#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_cache_info
short_description: Read RAID controllers with their caches, protection, volumes and drives
version_added: 1.0.0
description:
  - Returns all RAID controllers that the tools on the host report, with a vendor-independent vocabulary.
  - Every policy is returned twice, as configured and as in effect. Values that a tool does not print are V(unknown),
    never disabled or healthy.
  - Output that cannot be parsed is not a failure. It is reported in RV(problems), and dependent values are V(unknown).
options:
  provider:
    description: The tool to use. V(auto) runs every installed tool.
    type: str
    default: auto
    choices: [auto, storcli2, perccli2, storcli, perccli, arcconf, ssacli]
  tool_path:
    description: Path of the tool, if it is neither in E(PATH) nor in the vendor's installation directory. Needs O(provider).
    type: path
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
seealso:
  - module: cachefleet.storage.raid_cache
  - module: cachefleet.storage.cache_stack_info
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Read the controllers
  cachefleet.storage.raid_cache_info:
  register: raid

- name: List the volumes whose configured write policy is not in effect
  ansible.builtin.debug:
    msg: "{{ raid.controllers | community.general.json_query(query) }}"
  vars:
    query: "[].volumes[?write.effective != 'unknown' && write.configured != write.effective][].{volume: name || id, is: write.effective}"
"""

RETURN = r"""
controllers:
  description: The controllers, each once, even if two tools report it.
  type: list
  elements: dict
  returned: success
  contains:
    provider: {description: 'The tool that reported it.', type: str}
    id: {description: 'Its number in that tool.', type: str}
    model: {description: 'Model as printed by the tool.', type: str}
    serial: {description: 'Serial number.', type: str}
    firmware: {description: 'Firmware version.', type: str}
    driver: {description: 'The kernel driver.', type: str}
    pci_address: {description: 'PCI address as in sysfs.', type: str}
    mode: {description: 'V(raid), V(mixed), V(hba), V(jbod) or V(unknown).', type: str}
    status: {description: 'V(optimal), V(needs_attention), V(degraded), V(failed), or the term of the tool.', type: str}
    cache:
      description: The memory of the controller.
      type: dict
      contains:
        status: {description: 'V(ok), V(not_configured), V(temporarily_disabled), V(permanently_disabled), V(absent) or V(unknown).', type: str}
        reason: {description: 'The reason why it is disabled, as printed by the tool.', type: str}
        note: {description: 'What the tool prints of a cache that is not disabled, for example an unclean shutdown.', type: str}
        memory: {description: 'Size in bytes, null if not reported.', type: int}
    protection:
      description: The protection of the cache in a power failure.
      type: dict
      contains:
        kind: {description: 'V(battery), V(capacitor), V(none) or V(unknown).', type: str}
        health: {description: 'V(healthy), V(charging), V(learning), V(degraded), V(failed), V(missing) or V(unknown).', type: str}
        charge: {description: 'Charge in percent, if the tool prints it.', type: int}
        learn_cycle: {description: 'V(active), V(requested), V(idle) or V(unknown).', type: str}
        raw: {description: 'The status as printed by the tool.', type: str}
    drive_cache: {description: 'The policy for the write caches of drives, by class of drives.', type: dict}
    cache_ratio: {description: 'Percentage of the cache for reads.', type: int}
    no_battery_write_cache: {description: 'V(enabled), V(disabled) or V(unknown).', type: str}
    volumes:
      description: The volumes. Policies are dictionaries of C(configured) and C(effective).
      type: list
      elements: dict
      contains:
        id: {description: 'Number of the volume in the tool.', type: str}
        name: {description: 'Name of the volume.', type: str}
        wwn: {description: 'NAA identifier.', type: str}
        raid_level: {description: 'RAID level.', type: str}
        status: {description: 'V(optimal), V(degraded), …', type: str}
        size: {description: 'Size in bytes, with the precision of the tool.', type: int}
        read: {description: 'Read policy.', type: dict}
        write: {description: 'Write policy.', type: dict}
        io: {description: 'I/O policy.', type: dict}
        drive_cache: {description: 'Policy for the write caches of the drives.', type: str}
        members: {description: 'Addresses of the drives.', type: list, elements: str}
        members_untold: {description: 'Number of additional drives whose addresses could not be read.', type: int}
        os_device: {description: 'Kernel device name according to the tool.', type: str}
        scsi: {description: 'Channel, target and unit.', type: list, elements: int}
        array: {description: 'The array of the volume.', type: str}
        acceleration: {description: 'V(controller_cache), V(maxcache), V(io_bypass), V(none) or V(unknown).', type: str}
        maxcache: {description: 'How the volume uses the SSD cache of the controller.', type: dict}
    drives:
      description: The drives.
      type: list
      elements: dict
      contains:
        address: {description: 'Address of the drive in the tool.', type: str}
        write_cache: {description: 'V(enabled), V(disabled) or V(unknown).', type: str}
        model: {description: 'Model.', type: str}
        serial: {description: 'Serial number.', type: str}
        firmware: {description: 'Firmware version.', type: str}
        wwn: {description: 'World Wide Name.', type: str}
        size: {description: 'Size in bytes.', type: int}
        media: {description: 'V(hdd), V(ssd) or V(unknown).', type: str}
        interface: {description: 'V(sata), V(sas), V(scsi), V(nvme) or V(unknown).', type: str}
        usage: {description: 'V(configured), V(unconfigured), V(hba), V(jbod), V(spare), V(cache) or V(unknown).', type: str}
        state: {description: 'State as printed by the tool.', type: str}
        maxcache_capable: {description: 'Whether the drive can be part of an SSD cache, null if not reported.', type: bool}
    maxcache: {description: 'The SSD cache of the controller, with its volumes and settings.', type: dict}
    traits: {description: 'Further properties of the controller family.', type: dict}
tools:
  description: The tools that were run.
  type: list
  elements: dict
  returned: success
  sample: [{provider: storcli, path: /opt/MegaRAID/storcli/storcli64}]
problems:
  description: Tool output that could not be parsed, one sentence each.
  type: list
  elements: str
  returned: success
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import run_info_module
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import TOOL_OPTIONS


def main():
    module = AnsibleModule(argument_spec=dict(TOOL_OPTIONS), supports_check_mode=True)
    run_info_module(module)


if __name__ == "__main__":
    main()
