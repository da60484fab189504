#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_stack_info
short_description: Read the block devices of a host with their cache layers, and whether flushed writes survive a power failure
version_added: 1.0.0
description:
  - Reads all block devices of a host in one call. For each device it returns identity, transport, size, users, signatures, queue settings, and
    the write cache both as reported by the drive and as reported by the kernel, which can differ.
  - Each device has a verdict. V(durable) means that an acknowledged and flushed write survives a power failure,
    V(at_risk) that it may be lost, V(unknown) that a layer cannot be read. The reason names the decisive layer.
  - Lost flushes are detected from the queues. A queue whose write cache reads C(write through) completes
    flushes itself, regardless of the underlying media. With O(prove_flushes) flushes are sent and counted.
  - The verdict is for a power failure only. The effect of the failure of one device is returned separately in C(device_loss).
  - SSD caches of all types and ZFS pools are treated as layers too. A pool is returned as a device C(zfs:POOL).
options:
  prove_flushes:
    description:
      - Paths of block devices, mounted directories or ZFS pools (C(zfs:POOL)) for which flushes are sent and counted, as with
        M(cachefleet.storage.flush_check). The result takes precedence over the state of the queues, for these devices and for the devices on top
        of them.
      - Nothing is written except the data that an fsync of the block device writes.
    type: list
    elements: str
    default: []
  all_devices:
    description: Whether devices without a medium are returned too, such as unused loop devices and empty drives.
    type: bool
    default: false
  matches:
    description:
      - Criteria of block devices, each a dictionary like C(match) of an entry of M(cachefleet.storage.block_queue). The paths of the devices that meet
        them are returned as RV(matched).
    type: list
    elements: dict
    default: []
author:
  - the cachefleet.storage authors (@cachefleet)
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
"""

EXAMPLES = r"""
- name: Read all cache layers of the host
  cachefleet.storage.cache_stack_info:
    protected_drives:
      - INTEL SSDSC2BB080G4
  register: stack

- name: Fail if a flushed write to the database volume could be lost
  ansible.builtin.assert:
    that: stack.devices['vg0/database'].verdict == 'durable'
    fail_msg: "{{ stack.devices['vg0/database'].reason }}"
"""

RETURN = r"""
devices:
  description:
    - One entry for each block device, with the key C(vg/lv) for logical volumes and the kernel name for other devices.
  returned: success
  type: dict
  contains:
    name: {description: 'Kernel name.', type: str, sample: sda}
    path: {description: 'Device node.', type: str, sample: /dev/sda}
    stable_path: {description: 'The persistent path of the device.', type: str}
    identity: {description: 'Serial number, WWN, C(vg/lv) or device-mapper name, as used for the identity in other modules.', type: str}
    kind:
      description: The kind of device.
      type: str
      sample: lvm
    transport: {description: 'The transport of the drive.', type: str, sample: sata}
    driver: {description: 'The kernel driver of the disk.', type: str, sample: ahci}
    serial: {description: 'Serial number.', type: str}
    wwn: {description: 'World Wide Name.', type: str}
    model: {description: 'Model.', type: str}
    firmware: {description: 'Firmware revision.', type: str}
    size: {description: 'Size in bytes.', type: int}
    logical_block: {description: 'Logical block size in bytes.', type: int}
    physical_block: {description: 'Physical block size in bytes.', type: int}
    rotational: {description: 'Whether the kernel treats the device as rotational.', type: bool}
    read_only: {description: 'Whether the device is read-only.', type: bool}
    removable: {description: 'Whether the medium is removable.', type: bool}
    virtual: {description: 'Whether a hypervisor makes the disk, and it is not listed in O(flushed_virtual_disks).', type: bool}
    by_id: {description: 'Paths in C(/dev/disk/by-id).', type: list, elements: str}
    links: {description: 'The other links to the device.', type: list, elements: str}
    dm_name: {description: 'Name of a device-mapper device.', type: str}
    dm_uuid: {description: 'UUID of a device-mapper device.', type: str}
    dm_targets: {description: 'Target types of a device-mapper device.', type: list, elements: str}
    parent: {description: 'The whole disk of a partition.', type: str}
    partitions: {description: 'Partitions of a disk.', type: list, elements: str}
    slaves: {description: 'Underlying devices (slaves in sysfs).', type: list, elements: str}
    holders: {description: 'Devices on top of this one (holders in sysfs).', type: list, elements: str}
    mountpoints: {description: 'Mount points.', type: list, elements: str}
    swap: {description: 'Whether the device is used as swap.', type: bool}
    signature: {description: 'The file system, RAID member or partition table found on it.', type: dict}
    queue: {description: 'Settings of the block queue.', type: dict}
    cache_type: {description: 'The cache mode of the disk driver (C(cache_type) in sysfs).', type: str}
    properties: {description: 'The udev properties that identify the device.', type: dict}
    write_cache:
      description: The write cache of a drive.
      type: dict
      contains:
        drive: {description: 'V(enabled), V(disabled) or V(absent) as reported by the drive; null if it is not reported.', type: str}
        kernel: {description: 'V(write back) or V(write through) as reported by the kernel.', type: str}
        kernel_agrees: {description: 'Whether the state of the kernel matches that of the drive.', type: bool}
        provider: {description: 'The protocol with which the drive was read.', type: str}
    verdict: {description: 'V(durable), V(at_risk) or V(unknown).', type: str}
    reason: {description: 'One sentence that names the decisive layer.', type: str}
    unflushed: {description: 'Whether a write without a flush survives too, V(kept), V(may_be_lost) or V(unknown).', type: str}
    device_loss:
      description: The effect of the failure of any one device on the data. V(survives), V(loses) or V(unknown).
      type: str
      sample: loses
    device_loss_reason: {description: 'One sentence that names the device, or the layer with a second copy.', type: str}
    layers: {description: 'The layers from top to media, each with its settings and caches.', type: list, elements: dict}
matched:
  description: For each of O(matches), the paths of its devices.
  returned: success
  type: list
  elements: list
  sample: [[/dev/disk/by-id/ata-INTEL_SSDSC2BB480G4_BTWL1234]]
flush_checks:
  description: For O(prove_flushes), the same as C(checks) of M(cachefleet.storage.flush_check).
  returned: success
  type: list
  elements: dict
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
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.drives import paths_meeting
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import checked_match, read_match
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_check import check
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **DECLARATION_OPTIONS,
            "prove_flushes": {"type": "list", "elements": "str", "default": []},
            "all_devices": {"type": "bool", "default": False},
            "matches": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    with failing(module):
        stack = read_stack(Runner(), protected=module.params["protected_drives"], flushed=module.params["flushed_virtual_disks"])
        stack, checks = check(stack, module.params["prove_flushes"])
        matches = [read_match(checked_match(one, f"matches: entry {number}"), number) for number, one in enumerate(module.params["matches"], 1)]
        matched = [paths_meeting(stack.devices, match) for match in matches]
    for problem in stack.problems:
        module.warn(problem)
    devices = stack.as_devices(empty=module.params["all_devices"])
    module.exit_json(changed=False, devices=devices, matched=matched, flush_checks=checks, problems=list(stack.problems))


if __name__ == "__main__":
    main()
