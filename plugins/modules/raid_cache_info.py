#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_cache_info
short_description: RAID controllers with their caches, protection, volumes and drives
version_added: 0.2.0
description:
  - Reads every RAID controller that a tool of the host sees, in words that belong to no vendor.
  - Every policy is told twice, as it is configured and as it is in force. V(unknown) is a value. What a tool does not print is unknown,
    and never off or healthy.
  - Output that is not understood is no failure here. It is in RV(problems), and what depends on it is V(unknown).
options:
  provider:
    description: The tool to ask. V(auto) asks every one it finds.
    type: str
    default: auto
    choices: [auto, storcli, perccli, storcli2, perccli2, arcconf, ssacli]
  tool_path:
    description: The tool, if it is neither in E(PATH) nor where its vendor installs it. Needs O(provider).
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

- name: Name every volume that does not do what is configured
  ansible.builtin.debug:
    msg: "{{ raid.controllers | community.general.json_query(query) }}"
  vars:
    query: "[].volumes[?write.effective != 'unknown' && write.configured != write.effective][].{volume: name || id, is: write.effective}"
"""

RETURN = r"""
controllers:
  description: The controllers, each once, even if two tools see it.
  type: list
  elements: dict
  returned: success
  contains:
    provider: {description: 'The tool that told of it.', type: str}
    id: {description: 'Its number in that tool.', type: str}
    model: {description: 'As the tool prints it.', type: str}
    serial: {description: 'Serial number.', type: str}
    firmware: {description: 'Version of the firmware.', type: str}
    driver: {description: 'The kernel driver.', type: str}
    pci_address: {description: 'As in sysfs.', type: str}
    mode: {description: 'V(raid), V(mixed), V(hba), V(jbod) or V(unknown).', type: str}
    status: {description: 'V(optimal), V(needs_attention), V(degraded), V(failed), or the word of the tool.', type: str}
    cache:
      description: The memory of the controller.
      type: dict
      contains:
        status: {description: 'V(ok), V(not_configured), V(temporarily_disabled), V(permanently_disabled), V(absent) or V(unknown).', type: str}
        reason: {description: 'Why it is disabled, in the words of the tool.', type: str}
        memory: {description: 'Bytes; null if not told.', type: int}
    protection:
      description: What keeps the cache alive in a power cut.
      type: dict
      contains:
        kind: {description: 'V(battery), V(capacitor), V(none) or V(unknown).', type: str}
        health: {description: 'V(healthy), V(charging), V(learning), V(degraded), V(failed), V(missing) or V(unknown).', type: str}
        charge: {description: 'Percent, where the tool prints it.', type: int}
        learn_cycle: {description: 'V(active), V(requested), V(idle) or V(unknown).', type: str}
        said: {description: 'The words of the tool.', type: str}
    drive_cache: {description: 'The policy for the write caches of drives, by class of drives.', type: dict}
    cache_ratio: {description: 'Percent of the cache for reading.', type: int}
    no_battery_write_cache: {description: 'V(enabled), V(disabled) or V(unknown).', type: str}
    volumes:
      description: The volumes. Policies are dictionaries of C(configured) and C(effective).
      type: list
      elements: dict
      contains:
        id: {description: 'Its number in the tool.', type: str}
        name: {description: 'Its name.', type: str}
        wwn: {description: 'NAA identifier.', type: str}
        raid_level: {description: 'RAID level.', type: str}
        status: {description: 'V(optimal), V(degraded), …', type: str}
        size: {description: 'Bytes, as exact as the tool prints them.', type: int}
        read: {description: 'Read policy.', type: dict}
        write: {description: 'Write policy.', type: dict}
        io: {description: 'I/O policy.', type: dict}
        drive_cache: {description: 'Policy for the caches of its drives.', type: str}
        members: {description: 'Addresses of its drives.', type: list, elements: str}
        members_untold: {description: 'How many more drives it has whose addresses could not be read.', type: int}
        os_device: {description: 'The device as the tool thinks the kernel calls it.', type: str}
        scsi: {description: 'Channel, target and unit.', type: list, elements: int}
        array: {description: 'The array it lies on.', type: str}
        acceleration: {description: 'V(controller_cache), V(maxcache), V(io_bypass), V(none) or V(unknown).', type: str}
        maxcache: {description: 'How it uses the SSD cache of the controller.', type: dict}
    drives:
      description: The drives.
      type: list
      elements: dict
      contains:
        address: {description: 'As the tool names it.', type: str}
        write_cache: {description: 'V(enabled), V(disabled) or V(unknown).', type: str}
        model: {description: 'Model.', type: str}
        serial: {description: 'Serial number.', type: str}
        firmware: {description: 'Version of the firmware.', type: str}
        wwn: {description: 'World wide name.', type: str}
        size: {description: 'Bytes.', type: int}
        media: {description: 'V(hdd), V(ssd) or V(unknown).', type: str}
        interface: {description: 'V(sata), V(sas), V(scsi), V(nvme) or V(unknown).', type: str}
        usage: {description: 'V(configured), V(unconfigured), V(hba), V(jbod), V(spare), V(cache) or V(unknown).', type: str}
        state: {description: 'The word of the tool.', type: str}
        maxcache_capable: {description: 'Whether it may be part of an SSD cache; null if not told.', type: bool}
    maxcache: {description: 'The SSD cache of the controller, with its volumes and settings.', type: dict}
    traits: {description: 'Further facts of the family.', type: dict}
tools:
  description: The tools that were asked.
  type: list
  elements: dict
  returned: success
  sample: [{provider: storcli, path: /opt/MegaRAID/storcli/storcli64}]
problems:
  description: What was not understood, one sentence each.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import run_info_module
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import PROVIDERS


def main():
    module = AnsibleModule(
        argument_spec={
            "provider": {"type": "str", "default": "auto", "choices": ["auto", *sorted(PROVIDERS)]},
            "tool_path": {"type": "path"},
        },
        supports_check_mode=True,
    )
    run_info_module(module)


if __name__ == "__main__":
    main()
