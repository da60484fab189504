#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: over_provisioning
short_description: Keep a part of an SSD free of data, so that it lasts longer and stays fast
version_added: 0.3.0
description:
  - An SSD that is written all the time, as one under a cache is, wears less when a part of it never holds data. This module leaves such a
    part by one partition that does not fill the drive, by sectors that an ATA drive hides from the host, or by an NVMe namespace that
    is smaller than the drive.
  - A drive is changed only while it is empty. A signature, the metadata of a cache, a partition, a mount or a holder is refused.
    There is no option that overrides this.
  - It is discarded as a whole first, because space that the drive still takes for data is no reserve. It is then read again at 66
    places. Where a drive promises zeroes and returns something else, the task fails. Where it promises nothing, RV(drives) says so.
  - A drive that is already as described is left alone, whatever lies on it.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  drives:
    description: The drives of this host. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description:
          - The whole drive, by a path that still names it after a reboot, for example below C(/dev/disk/by-id).
          - With O(drives[].method=namespace) a link made of model and serial number (C(/dev/disk/by-id/nvme-MODEL_SERIAL)), which stays
            the same when the namespace is made anew.
        type: path
        required: true
      method:
        description:
          - V(partition) makes a GPT with one partition, which is then the device to use. It works with every drive that can be discarded.
          - V(hpa) sets the size of a SATA drive with C(hdparm -Np). The drive takes that once per power cycle, and the kernel sees it
            after the next one.
          - V(namespace) makes the only namespace of an NVMe drive anew, where the drive has namespace management.
        type: str
        choices: [partition, hpa, namespace]
        default: partition
      usable:
        description:
          - What stays usable, a number with an optional suffix K, M, G or T (powers of 1024), or a share of the drive such as V(70%).
          - It is rounded down to whole MiB. Required when O(drives[].state=present).
        type: str
      without_discard:
        description:
          - Says that the drive is as it left the factory or was just erased, so that nothing has to be discarded. Needed for drives
            whose controller passes no discards.
        type: bool
        default: false
      state:
        description:
          - V(present) leaves the rest of the drive free.
          - V(absent) gives everything back. Only the partition that this module made is taken away, and only while it is empty.
        type: str
        choices: [present, absent]
        default: present
seealso:
  - module: cachefleet.storage.cache_health_info
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Use a quarter of an SSD of 960 GB for a cache
  cachefleet.storage.over_provisioning:
    drives:
      - device: /dev/disk/by-id/ata-INTEL_SSDSC2KB960G8_BTYF0001
        usable: 240G
  register: reserve

- name: Put the cache on what stays usable
  cachefleet.storage.lvm_cache:
    caches:
      - name: images
        origin: vg0/images
        cache_devices: ["{{ reserve.drives[0].usable_device }}"]

- name: Hide a third of a SATA drive
  cachefleet.storage.over_provisioning:
    drives:
      - {device: /dev/disk/by-id/ata-INTEL_SSDSC2KB960G8_BTYF0001, method: hpa, usable: 67%}
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in this order.
  returned: always
  type: list
  elements: str
drives:
  description: The drives of the list as they are now. Sizes in bytes.
  returned: success
  type: list
  elements: dict
  contains:
    device: {description: 'As in the list.', type: str}
    method: {description: 'As in the list.', type: str}
    size: {description: 'The whole drive.', type: int}
    usable: {description: 'What stays usable.', type: int}
    usable_device: {description: 'The device to use, the partition if one was made.', type: str}
    discard: {description: 'What reading the drive again said, if it was discarded in this run.', type: str}
problems:
  description: What a person has to do, such as a power cycle, one sentence each.
  returned: success
  type: list
  elements: str
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
item:
  description: The drive that failed.
  returned: on failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._health.over_provisioning import run_module

DRIVE_OPTIONS = {
    "device": {"type": "path", "required": True},
    "method": {"type": "str", "choices": ["partition", "hpa", "namespace"], "default": "partition"},
    "usable": {"type": "str"},
    "without_discard": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"drives": {"type": "list", "elements": "dict", "required": True, "options": DRIVE_OPTIONS}},
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
