#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: flush_check
short_description: Prove without a power cut that an fsync reaches every volatile cache below a device
version_added: 0.3.0
description:
  - Sends flushes to a device and counts at every disk below it how many arrive. A disk that counts fewer than were sent did not get
    them all, and what was flushed to it may be lost in a power cut, whatever the queues above it claim.
  - Works on a live system. A flush is an fsync of the block device, opened for reading. It writes nothing of its own. It
    makes the drives empty their caches, as any fsync of a database does, and the first one also writes out what is waiting in the page
    cache for the block device itself. Layers with metadata of their own, such as bcache and dm-cache, commit them.
  - The flushes are sent in bursts, one flush after the other, so that the kernel cannot merge them. After each burst comes a control time of
    the same length without any. Two bursts prove enough where nobody else flushes. Where others do, up to five are sent, and
    each of them must have counted more than every control time; if not, the result is V(unproven).
  - Disks count their flushes since Linux 5.5. On older kernels every result is V(unproven).
options:
  devices:
    description:
      - What to check. Paths of block devices, or of mounted folders and files, which stand for the block devices that their file
        system is on. Nothing is written to the file system. C(zfs:POOL) is a ZFS pool.
      - A file system that is mounted without barriers sends no flushes, which is said.
    type: list
    elements: str
    required: true
  flushes:
    description: How many flushes each burst has, from 1 to 1000.
    type: int
    default: 8
  settle:
    description: Seconds between the first flush, which is not counted, and the first burst.
    type: float
    default: 0.5
  protected_drives:
    description:
      - Serial numbers, WWNs or models of drives that are known to keep their cache through a power cut (power-loss protection). They
        need no flushes.
    type: list
    elements: str
    default: []
author:
  - the cachefleet.storage authors (@cachefleet)
notes:
  - A ZFS pool, a dm-writecache and an MD array with a journal send a flush down only if something was written since the last one.
    What lies below them stays V(unproven) unless flushes are seen to arrive.
  - Volumes of RAID controllers answer flushes themselves. That a flush reaches the controller says nothing about the drives behind it;
    their part of the verdict comes from the tool of the controller.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
seealso:
  - module: cachefleet.storage.cache_stack_info
"""

EXAMPLES = r"""
- name: Does an fsync of the database reach the disks?
  cachefleet.storage.flush_check:
    devices:
      - /dev/vg0/database
      - /srv/images
  register: flushes

- name: Stop if it does not
  ansible.builtin.assert:
    that: item.state in ['proved', 'not_needed']
    fail_msg: "{{ item.path }}: {{ item.reason }}"
  loop: "{{ flushes.checks }}"
  loop_control:
    label: "{{ item.path }}"
"""

RETURN = r"""
checks:
  description: One entry for each block device behind a path, in the order of O(devices).
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: 'The path as it was given.', type: str, sample: /srv/images}
    device: {description: 'The block device that was flushed.', type: str, sample: /dev/dm-3}
    mount: {description: 'The mount point, if the path is no block device.', type: str}
    barriers: {description: 'Whether the file system sends flushes at all.', type: bool}
    flushes: {description: 'How many flushes each burst had.', type: int}
    state:
      description:
        - V(proved). All flushes arrived at every disk that needs them, and RV(checks[].verdict) is V(durable).
        - V(disproved). At least one disk that needs them did not get them all, or what got them is known not to keep them.
        - V(unknown). All flushes arrived where they can be counted, and what lies behind cannot be seen, such as the drives of a RAID
          controller whose tool is missing.
        - V(unproven). It cannot be told, and the reason is given for each disk.
        - V(not_needed). Nothing below holds writes in volatile memory, and all of it can be seen.
      type: str
      sample: proved
    error: {description: 'Why no flush could be sent, or an empty text.', type: str}
    disks:
      description: Every medium below the device.
      type: list
      elements: dict
      contains:
        disk: {description: 'Kernel name.', type: str, sample: sda}
        path: {description: 'Device node.', type: str, sample: /dev/sda}
        needed: {description: 'Whether a flushed write needs the flushes there.', type: bool}
        reached: {description: 'Whether all of them arrived; null if that cannot be told.', type: bool}
        reason: {description: 'One or two sentences.', type: str}
        counted: {description: 'Flushes counted during each burst.', type: list, elements: int, sample: [8, 8]}
        control: {description: 'Flushes counted in each control time.', type: list, elements: int, sample: [0, 0]}
    verdict: {description: 'What a flushed write on the device is worth. V(durable), V(at_risk) or V(unknown).', type: str}
    reason: {description: 'One sentence that names the layer that decides.', type: str}
    verdict_without_proof: {description: 'The verdict from what drives and queues say alone.', type: str}
    reason_without_proof: {description: 'Its reason.', type: str}
    device_loss: {description: 'What the failure of any one device does. V(survives), V(loses) or V(unknown).', type: str}
    device_loss_reason: {description: 'One sentence that names the device, or what keeps a second copy.', type: str}
problems:
  description: What could not be read, one sentence each. The layers concerned are V(unknown).
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_check import check
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "required": True},
            "flushes": {"type": "int", "default": 8},
            "settle": {"type": "float", "default": 0.5},
            "protected_drives": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        stack = read_stack(Runner(), protected=options["protected_drives"])
        _proved, checks = check(stack, options["devices"], options["flushes"], options["settle"])
    except StorageError as error:
        module.fail_json(**error.as_result())
    for problem in stack.problems:
        module.warn(problem)
    module.exit_json(changed=False, checks=checks, problems=list(stack.problems))


if __name__ == "__main__":
    main()
