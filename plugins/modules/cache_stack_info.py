#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_stack_info
short_description: Every block device of a host, the caches under it, and what a flushed write on it is worth
version_added: 0.1.0
description:
  - Reads every block device of a host at once. Identity, transport, size, users, signatures, queue settings, and the
    write cache both as the drive says and as the kernel says, which can differ.
  - Gives each device a verdict. V(durable) means that a write that was acknowledged and flushed survives a power cut,
    V(at_risk) that it may not, V(unknown) that a layer cannot be seen. The reason names the layer that decides.
  - A flush that never arrives is found from the queues. A queue whose write cache reads C(write through) completes
    flushes by itself, whatever the media below it do. With O(prove_flushes) flushes are really sent and counted.
  - The verdict is about a power cut only. What the failure of one device does is told beside it, in C(device_loss).
  - SSD caches of every type and ZFS pools are layers like any other. A pool appears as a device C(zfs:POOL).
options:
  protected_drives:
    description:
      - Serial numbers, WWNs or models of drives that are known to keep their cache through a power cut (power-loss protection).
      - No standard bit says so, therefore it is a statement of yours. Without it a volatile cache counts as volatile.
    type: list
    elements: str
    default: []
  prove_flushes:
    description:
      - Paths of block devices, mounted folders or ZFS pools (C(zfs:POOL)) whose flushes are really sent and counted, as
        M(cachefleet.storage.flush_check) does. What is found out decides over what the queues claim, for these devices and for those that
        lie on them.
      - Nothing is written but what an fsync of the block device writes.
    type: list
    elements: str
    default: []
    version_added: 0.3.0
  all_devices:
    description: Also return devices without a medium, such as unused loop devices and empty drives.
    type: bool
    default: false
author:
  - the cachefleet.storage authors (@cachefleet)
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
"""

EXAMPLES = r"""
- name: Read every cache layer of the host
  cachefleet.storage.cache_stack_info:
    protected_drives:
      - SSDSC2BB080G4
  register: stack

- name: Stop if a write to the database volume could be lost
  ansible.builtin.assert:
    that: stack.devices['vg0/database'].verdict == 'durable'
    fail_msg: "{{ stack.devices['vg0/database'].reason }}"
"""

RETURN = r"""
devices:
  description:
    - One entry for each block device, keyed by C(vg/lv) for logical volumes and by kernel name for everything else.
  returned: success
  type: dict
  contains:
    name: {description: 'Name in the kernel.', type: str, sample: sda}
    path: {description: 'Device node.', type: str, sample: /dev/sda}
    stable_path: {description: 'The path that still names the device after a reboot.', type: str}
    identity: {description: 'Serial number, WWN, C(vg/lv) or device-mapper name; what other modules take as identity.', type: str}
    kind:
      description: What the kernel made of it.
      type: str
      sample: lvm
    transport: {description: 'How the drive is attached.', type: str, sample: sata}
    driver: {description: 'The kernel driver below the disk.', type: str, sample: ahci}
    serial: {description: 'Serial number.', type: str}
    wwn: {description: 'World wide name.', type: str}
    model: {description: 'Model.', type: str}
    firmware: {description: 'Firmware revision.', type: str}
    size: {description: 'Size in bytes.', type: int}
    logical_block: {description: 'Logical block size in bytes.', type: int}
    physical_block: {description: 'Physical block size in bytes.', type: int}
    rotational: {description: 'Whether the kernel takes it for a spinning disk.', type: bool}
    read_only: {description: 'Whether it is write protected.', type: bool}
    removable: {description: 'Whether the medium can be taken out.', type: bool}
    by_id: {description: 'Paths in C(/dev/disk/by-id).', type: list, elements: str}
    links: {description: 'The other links to the device.', type: list, elements: str}
    dm_name: {description: 'Name of a device-mapper device.', type: str}
    dm_uuid: {description: 'UUID of a device-mapper device.', type: str}
    dm_targets: {description: 'Target types of a device-mapper device.', type: list, elements: str}
    parent: {description: 'The whole disk of a partition.', type: str}
    partitions: {description: 'Partitions of a disk.', type: list, elements: str}
    slaves: {description: 'Devices that this one is made of.', type: list, elements: str}
    holders: {description: 'Devices built on this one.', type: list, elements: str}
    mountpoints: {description: 'Where it is mounted.', type: list, elements: str}
    swap: {description: 'Whether it is in use as swap.', type: bool}
    signature: {description: 'The file system, RAID member or partition table found on it.', type: dict}
    queue: {description: 'Settings of the block queue.', type: dict}
    cache_type: {description: 'The cache mode of the disk driver (C(cache_type) in sysfs).', type: str}
    properties: {description: 'The udev properties that identify the device.', type: dict}
    write_cache:
      description: The write cache of a drive.
      type: dict
      contains:
        drive: {description: 'V(enabled), V(disabled) or V(absent), as the drive says; null if it does not.', type: str}
        kernel: {description: 'V(write back) or V(write through), as the kernel says.', type: str}
        kernel_agrees: {description: 'Whether the kernel believes what the drive says.', type: bool}
        provider: {description: 'Which way the drive was asked.', type: str}
    verdict: {description: 'V(durable), V(at_risk) or V(unknown).', type: str}
    reason: {description: 'One sentence that names the layer that decides.', type: str}
    unflushed: {description: 'Whether a write without a flush survives too: V(kept), V(may_be_lost) or V(unknown).', type: str}
    device_loss:
      description: What the failure of any one device does to what is stored here. V(survives), V(loses) or V(unknown).
      type: str
      sample: loses
    device_loss_reason: {description: 'One sentence that names the device, or what keeps a second copy.', type: str}
    layers: {description: 'The layers from top to media, each with its settings and caches.', type: list, elements: dict}
flush_checks:
  description: For O(prove_flushes), what C(checks) of M(cachefleet.storage.flush_check) is.
  returned: success
  type: list
  elements: dict
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
            "protected_drives": {"type": "list", "elements": "str", "default": []},
            "prove_flushes": {"type": "list", "elements": "str", "default": []},
            "all_devices": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        stack = read_stack(Runner(), protected=module.params["protected_drives"])
        stack, checks = check(stack, module.params["prove_flushes"])
    except StorageError as error:
        module.fail_json(**error.as_result())
    for problem in stack.problems:
        module.warn(problem)
    devices = stack.as_devices(empty=module.params["all_devices"])
    module.exit_json(changed=False, devices=devices, flush_checks=checks, problems=list(stack.problems))


if __name__ == "__main__":
    main()
