#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: over_provisioning
short_description: Over-provision SSDs for endurance and consistent performance
version_added: 1.0.0
description:
  - An SSD that is written continuously, such as a cache device, wears less if a part of it is never used. This module reserves such a
    part with one partition that does not fill the drive, with a host protected area of an ATA drive, or with an NVMe namespace that
    is smaller than the drive.
  - A drive is only changed if it is empty. A drive with a signature, metadata of a cache, a partition, a mount or a holder is refused.
  - A drive with data without a signature, which does not read as zeros, and a drive that a process has open or that is exported to other hosts is refused too.
    There is no option that overrides this.
  - The whole drive is discarded first, because blocks that the drive still considers used are not available as spare area. It is then read at 66
    offsets. If a drive guarantees zeroes and returns other data, the task fails. If it guarantees nothing, this is reported in RV(drives).
  - A drive that is already as described is not changed, regardless of its content.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
options:
  drives:
    description: The drives of this host. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description:
          - The persistent path of the whole drive, for example in C(/dev/disk/by-id).
          - With O(drives[].method=namespace) a link with model and serial number (C(/dev/disk/by-id/nvme-MODEL_SERIAL)), which does not
            change when the namespace is recreated.
          - Either this or O(drives[].match) is required.
        type: path
      match:
        description:
          - Criteria that a drive must match. All given criteria must match. Later entries take precedence over earlier ones, and entries with a device over
            those with a match.
          - Every matched drive must be empty or as described. One that is in use or contains data, such as the disk of the system, is an error that names
            the drive and the entry, and no drive is changed. A match without a drive is a warning.
          - O(drives[].without_discard) is refused, since it is a statement about one drive, and so is O(drives[].method=namespace), since an interrupted
            run can leave a drive without a namespace, which matches nothing. With V(hpa) do not use sizes, which it changes.
        type: dict
        suboptions:
          rotational:
            description: Whether the kernel treats the drive as rotational.
            type: bool
          transport:
            description: The transports of the drive. V(raid) is a volume of a RAID controller.
            type: list
            elements: str
            choices: [sata, sas, scsi, fc, iscsi, nvme, nvme_fabrics, virtio, usb, raid, aoe, nbd, rbd, virtual, unknown]
          kind:
            description: Kinds of devices. Only V(disk) is a drive, and it is what matches without this option.
            type: list
            elements: str
            choices: [disk, multipath, lvm, crypt, dm, md, bcache, loop, zram, ram, aoe, nbd, rbd]
          driver:
            description: Shell patterns for the driver name, such as C(qla2xxx). One of them must match.
            type: list
            elements: str
          model:
            description: Shell patterns for the model as in C(/sys/block/*/device/model) or in C(ID_MODEL) of udev, not case-sensitive. One must match.
            type: list
            elements: str
          vendor:
            description: Shell patterns for the vendor. One of them must match. The vendor of SATA drives is V(ATA).
            type: list
            elements: str
          serial:
            description: Shell patterns for the serial number. One of them must match.
            type: list
            elements: str
          wwn:
            description: Shell patterns for the WWN. One of them must match.
            type: list
            elements: str
          size_min:
            description: The minimum size, with a suffix k, M, G or T (powers of 1024).
            type: str
          size_max:
            description: The maximum size.
            type: str
      method:
        description:
          - V(partition) creates a GPT with one partition, which is then the device to use. It works with every drive that supports discards.
          - V(hpa) sets the size of a SATA drive with C(hdparm -Np). The drive accepts this once per power cycle, and the kernel detects the new
            size after the next one.
          - V(namespace) recreates the only namespace of an NVMe drive, if the drive supports namespace management.
        type: str
        choices: [partition, hpa, namespace]
        default: partition
      usable:
        description:
          - The usable size, a number with an optional suffix K, M, G or T (powers of 1024), or a percentage of the drive such as V(70%).
          - It is rounded down to whole MiB. Required when O(drives[].state=present).
        type: str
      without_discard:
        description:
          - Whether the drive is new or was just erased, so that it need not be discarded. Required for drives
            whose controller does not pass discards.
        type: bool
        default: false
      state:
        description:
          - V(present) reserves the rest of the drive.
          - V(absent) makes the whole drive usable again. Only a partition that this module created is removed, and only if it is empty.
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

- name: Create the cache on the usable part
  cachefleet.storage.lvm_cache:
    caches:
      - name: images
        origin: vg0/images
        cache_devices: ["{{ reserve.drives[0].usable_device }}"]

- name: Reserve a quarter of each empty SSD of a model
  cachefleet.storage.over_provisioning:
    drives:
      - {match: {model: INTEL SSDSC2KB*, transport: sata}, usable: 75%}

- name: Reserve a third of a SATA drive with a host protected area
  cachefleet.storage.over_provisioning:
    drives:
      - {device: /dev/disk/by-id/ata-INTEL_SSDSC2KB960G8_BTYF0001, method: hpa, usable: 67%}
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, in this order.
  returned: always
  type: list
  elements: str
drives:
  description: The present state of the drives of the list. Sizes are in bytes.
  returned: success
  type: list
  elements: dict
  contains:
    device: {description: 'The value of O(drives[].device).', type: str}
    method: {description: 'The value of O(drives[].method).', type: str}
    size: {description: 'Size of the whole drive.', type: int}
    usable: {description: 'The usable size.', type: int}
    usable_device: {description: 'The device to use, which is the partition if one was created.', type: str}
    discard: {description: 'Result of the verification after the discard, if the drive was discarded in this run.', type: str}
problems:
  description: Manual actions that are required, such as a power cycle, one sentence each.
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

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import MATCH_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._health.over_provisioning import OverProvisioningLayer, read_drives

DRIVE_OPTIONS = {
    "device": {"type": "path"},
    "match": {"type": "dict", "options": MATCH_OPTIONS},
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
    run_layer(module, lambda: OverProvisioningLayer(Runner(), read_drives(module.params["drives"])))


if __name__ == "__main__":
    main()
