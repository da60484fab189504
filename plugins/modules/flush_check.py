#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: flush_check
short_description: Verify that an fsync reaches all underlying volatile caches of a device
version_added: 1.0.0
description:
  - Sends flushes to a device and counts at every underlying disk how many arrive. If a disk counts fewer flushes than were sent,
    data that was flushed to it may be lost in a power failure, regardless of the state of the queues. O(protected_drives) need no flushes.
  - Works on a live system. A flush is an fsync of the block device, opened for reading. It does not write data of its own. It
    flushes the caches of the drives, as any fsync of a database does, and the first one also writes dirty pages of the page
    cache of the block device itself. Layers with their own metadata, such as bcache and dm-cache, commit them.
  - The flushes are sent in bursts, one flush after the other, so that the kernel cannot merge them. Each burst is followed by a control period of
    the same length without flushes. Two bursts are sufficient if there are no other flushes. Otherwise up to five bursts are sent, and
    each of them must count more flushes than any control period; if not, the result is V(unproven).
  - Disks count their flushes since Linux 5.5. On older kernels all results are V(unproven).
options:
  devices:
    description:
      - The devices to check. Paths of block devices, or of directories and files of mounted file systems, which refer to the block devices of
        the file system. Nothing is written to the file system. C(zfs:POOL) is a ZFS pool.
      - A file system that is mounted without barriers sends no flushes, which is reported.
    type: list
    elements: str
    required: true
  flushes:
    description: Number of flushes in each burst, from 1 to 1000.
    type: int
    default: 8
  settle:
    description: Seconds between the first flush, which is not counted, and the first burst.
    type: float
    default: 0.5
author:
  - the cachefleet.storage authors (@cachefleet)
notes:
  - A ZFS pool, a dm-writecache and an MD array with a journal only pass a flush if data was written since the last one.
    Their underlying devices are V(unproven) unless flushes are counted there.
  - Volumes of RAID controllers complete flushes themselves. A flush that reaches the controller does not show that it reaches the drives;
    their part of the verdict comes from the tool of the controller.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
seealso:
  - module: cachefleet.storage.cache_stack_info
"""

EXAMPLES = r"""
- name: Check whether an fsync of the database reaches the disks
  cachefleet.storage.flush_check:
    devices:
      - /dev/vg0/database
      - /srv/images
  register: flushes

- name: Fail if it does not reach all of them
  ansible.builtin.assert:
    that: item.state in ['proved', 'not_needed']
    fail_msg: "{{ item.path }}: {{ item.reason }}"
  loop: "{{ flushes.checks }}"
  loop_control:
    label: "{{ item.path }}"
"""

RETURN = r"""
checks:
  description: One entry for each block device of a path, in the order of O(devices).
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: 'The path as it was given.', type: str, sample: /srv/images}
    device: {description: 'The block device that was flushed.', type: str, sample: /dev/dm-3}
    mount: {description: 'The mount point, if the path is not a block device.', type: str}
    barriers: {description: 'Whether the file system sends flushes.', type: bool}
    flushes: {description: 'Number of flushes in each burst.', type: int}
    state:
      description:
        - V(proved). All flushes arrived at every disk that needs them, and RV(checks[].verdict) is V(durable).
        - V(disproved). At least one disk that needs them did not receive them all, or received them but is known not to keep the data.
        - V(unknown). All flushes arrived where they can be counted, but the devices behind cannot be read, such as the drives of a RAID
          controller whose tool is missing.
        - V(unproven). The check is inconclusive, and the reason is given for each disk.
        - V(not_needed). No underlying device has a volatile cache, and all of them can be read.
      type: str
      sample: proved
    error: {description: 'The reason why no flush could be sent, or an empty string.', type: str}
    disks:
      description: Every underlying disk of the device.
      type: list
      elements: dict
      contains:
        disk: {description: 'Kernel name.', type: str, sample: sda}
        path: {description: 'Device node.', type: str, sample: /dev/sda}
        needed: {description: 'Whether the disk needs flushes for a write to be durable.', type: bool}
        reached: {description: 'Whether all flushes arrived; null if unknown.', type: bool}
        reason: {description: 'The reason in one or two sentences.', type: str}
        counted: {description: 'Flushes counted during each burst.', type: list, elements: int, sample: [8, 8]}
        control: {description: 'Flushes counted in each control period.', type: list, elements: int, sample: [0, 0]}
    verdict: {description: 'Whether a flushed write survives a power failure. V(durable), V(at_risk) or V(unknown).', type: str}
    reason: {description: 'One sentence that names the decisive layer.', type: str}
    verdict_without_proof: {description: 'The verdict based on the state of drives and queues only.', type: str}
    reason_without_proof: {description: 'The reason for RV(checks[].verdict_without_proof).', type: str}
    device_loss: {description: 'The effect of the failure of any one device. V(survives), V(loses) or V(unknown).', type: str}
    device_loss_reason: {description: 'One sentence that names the device, or the layer with a second copy.', type: str}
problems:
  description: Items that could not be read, one sentence each. The affected layers are V(unknown).
  returned: success
  type: list
  elements: str
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_check import check
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "required": True},
            "flushes": {"type": "int", "default": 8},
            "settle": {"type": "float", "default": 0.5},
            **DECLARATION_OPTIONS,
        },
        supports_check_mode=True,
    )
    options = module.params
    with failing(module):
        stack = read_stack(Runner(), protected=options["protected_drives"], flushed=options["flushed_virtual_disks"])
        _proved, checks = check(stack, options["devices"], options["flushes"], options["settle"])
    for problem in stack.problems:
        module.warn(problem)
    module.exit_json(changed=False, checks=checks, problems=list(stack.problems))


if __name__ == "__main__":
    main()
