#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: block_queue
short_description: Set the queues of block devices, at runtime and at boot
version_added: 1.0.0
description:
  - Sets the scheduler, the queue length and other settings in C(/sys/block/*/queue), in the order that the kernel needs, and reads them back.
  - An entry specifies one device, or matches devices by their properties.
  - After a boot or hot-plug a udev rule sets the queue again. The rules are lines of one file,
    C(/etc/udev/rules.d/99-cachefleet-block-queue.rules), which match the identity of the device.
  - Values that the kernel would refuse, clamp or ignore are refused before the first change, with the value that can be used instead.
    Values of a profile are adjusted to the device.
options:
  devices:
    description:
      - The devices and their settings. Other devices are not changed. An empty list changes nothing.
      - For each setting, later entries take precedence over earlier ones, and entries with a device over those with a match.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description:
          - The persistent path of a whole device, such as C(/dev/disk/by-id/ata-…), C(/dev/mapper/mpatha) or C(/dev/etherd/e7.1).
            Either this or O(devices[].match) is required.
          - A kernel name such as C(/dev/sda) is accepted only with O(devices[].persistent=false).
          - For a multipath device the settings are applied to all its paths, and to the device itself if it has a queue of its own.
        type: str
      match:
        description:
          - Criteria that a device must match. All given criteria must match. An empty dictionary matches every disk.
          - Without O(devices[].match.kind) only disks match, never partitions, arrays, logical volumes, loop devices or devices without a size.
        type: dict
        suboptions:
          rotational:
            description: Whether the kernel treats the device as rotational.
            type: bool
          transport:
            description:
              - The transports of the device. V(raid) is a volume of a RAID controller.
              - Network disks only match if V(aoe), V(nbd) or V(rbd) is listed here or in O(devices[].match.kind).
            type: list
            elements: str
            choices: [sata, sas, scsi, fc, iscsi, nvme, nvme_fabrics, virtio, usb, raid, aoe, nbd, rbd, virtual, unknown]
          kind:
            description: Kinds of devices to match instead of disks.
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
      members:
        description:
          - Set the underlying disks instead of the device, for an array, a logical volume or a bcache.
          - With O(devices[].match), O(devices[].match.kind) selects the devices whose disks are set.
        type: bool
        default: false
      profile:
        description:
          - A set of values. Settings of the same entry take precedence over it. A later profile replaces an earlier one completely.
          - A value that exceeds the maximum of a device is reduced to it, and a setting that a disk does not have is skipped. Both are reported in
            RV(devices[].notes).
          - V(flash_array) for LUNs of all-flash arrays, scheduler V(none), O(devices[].nr_requests=1024), O(devices[].nomerges=1),
            O(devices[].queue_depth=64).
          - V(hdd) for rotational disks, V(mq-deadline), 256 requests, 1024 KiB read-ahead, all merges, V(rq_affinity) 1, default throttling.
          - V(ssd) for SATA and SAS SSDs, V(mq-deadline), 256 requests, 128 KiB read-ahead, all merges, V(rq_affinity) 2, no entropy.
          - V(nvme) for NVMe drives, V(none), 128 KiB read-ahead, all merges, V(rq_affinity) 2, no entropy.
        type: str
        choices: [flash_array, hdd, ssd, nvme]
      scheduler:
        description:
          - The I/O scheduler, such as V(none), V(mq-deadline), V(bfq) or V(kyber). The kernel loads its module if necessary.
          - V(noop) and V(deadline), which kernels from 5.0 do not have, are treated as V(none) and V(mq-deadline) there, with a warning. V(cfq) is
            refused there.
        type: str
      nr_requests:
        description:
          - The maximum number of requests in the queue. Up to 2048 with a scheduler, without a scheduler up to the queue depth of the hardware.
        type: int
      nomerges:
        description: V(0) allows all merges, V(1) only simple one-hit merges, V(2) disables merges.
        type: int
        choices: [0, 1, 2]
      read_ahead_kb:
        description: Read-ahead in KiB, a multiple of the memory page size. The value of the mounted device applies.
        type: int
      rq_affinity:
        description: The CPU that completes a request, V(0) any, V(1) one of the group of the submitting CPU, V(2) the submitting CPU.
        type: int
        choices: [0, 1, 2]
      max_sectors_kb:
        description: The maximum request size in KiB, at most C(max_hw_sectors_kb).
        type: int
      wbt_lat_usec:
        description: Target read latency in microseconds above which buffered writes are throttled. V(0) disables it, V(-1) is the default.
        type: int
      queue_depth:
        description: Maximum number of outstanding commands of a SCSI or SATA device.
        type: int
      rotational:
        description: Whether the kernel treats the device as rotational.
        type: bool
      add_random:
        description: Whether requests contribute to the entropy pool.
        type: bool
      persistent:
        description:
          - Whether a udev rule applies the settings whenever the device appears. V(false) removes the rule of the device.
          - If several entries match a device, that of the entry with the highest precedence applies.
        type: bool
        default: true
  module_options:
    description:
      - Options of kernel modules, written to C(/etc/modprobe.d/cachefleet-block-queue.conf). They take effect when the module is loaded the next time;
        until then a warning is returned.
    type: list
    elements: dict
    default: []
    suboptions:
      module:
        description: The kernel module.
        type: str
        required: true
      options:
        description: All options of the module in the file. An empty dictionary removes the module from the file.
        type: dict
        default: {}
  exclusive:
    description:
      - Remove the udev rules and module options that this module wrote for devices and modules that are no longer listed.
    type: bool
    default: false
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
notes:
  - Changing the scheduler of a device in use is safe. The kernel completes outstanding requests and holds new ones until the change is done.
  - Settings of disks are applied when a disk is added, not at every C(change) event, which occurs whenever a disk that was opened for writing
    is closed.
seealso:
  - module: cachefleet.storage.drive_write_cache
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Configure LUNs of an all-flash array over Fibre Channel
  cachefleet.storage.block_queue:
    devices:
      - match: {transport: fc}
        profile: flash_array
    module_options:
      - module: qla2xxx
        options: {ql2xmaxqdepth: 64}

- name: Configure drives by kind, with one exception
  cachefleet.storage.block_queue:
    devices:
      - {match: {rotational: true}, profile: hdd}
      - {match: {rotational: false}, profile: ssd}
      - {match: {transport: nvme}, profile: nvme}
      - device: /dev/disk/by-id/ata-ST10000NM0086_ZA2A
        scheduler: bfq

- name: Set the read-ahead of a volume, and configure its underlying disks
  cachefleet.storage.block_queue:
    devices:
      - {device: /dev/vg0/media, read_ahead_kb: 4096}
      - {device: /dev/vg0/media, members: true, profile: hdd}

- name: Change a setting until the next boot
  cachefleet.storage.block_queue:
    devices:
      - {device: /dev/sdb, scheduler: none, persistent: false}
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  type: list
  elements: str
  returned: always
  sample: ["Set scheduler of /dev/disk/by-id/ata-ST10000NM0086_ZA2A (sda) to mq-deadline"]
devices:
  description: Every device that an entry applies to, as read after the changes, in check mode before them.
  type: list
  elements: dict
  returned: success
  contains:
    device:
      description: The path from O(devices[].device), or a persistent path.
      type: str
    name:
      description: The kernel name.
      type: str
    kind:
      description: The kind of device, such as V(disk) or V(multipath).
      type: str
    transport:
      description: The transport of the device.
      type: str
    entries:
      description: The entries of O(devices) that apply to the device, counted from 1. The last one takes precedence.
      type: list
      elements: int
    settings:
      description: All settings of the device as reported by the kernel.
      type: dict
    schedulers:
      description: The schedulers that are available without loading a module.
      type: list
      elements: str
    notes:
      description: Adjustments of a profile to the device.
      type: list
      elements: str
    boot_rule:
      description: The udev rule of this device, V(none) if there is none.
      type: str
  sample:
    - device: /dev/disk/by-id/ata-SAMSUNG_MZ7LH960_S45NNE0M
      name: sdb
      kind: disk
      transport: sata
      entries: [1]
      settings: {scheduler: none, nr_requests: 32, nomerges: 1, queue_depth: 32, read_ahead_kb: 128}
      schedulers: [mq-deadline, none]
      notes:
        - the profile flash_array asks for 1024; without a scheduler nr_requests is at most 32, as many as the hardware accepts at once
      boot_rule: >-
        ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="sd*", ENV{ID_SERIAL_SHORT}=="S45NNE0M",
        ATTR{queue/scheduler}="none", ATTR{queue/nr_requests}="32", ATTR{queue/nomerges}="1", ATTR{device/queue_depth}="32"
module_options:
  description: Every module of O(module_options).
  type: list
  elements: dict
  returned: success
  contains:
    module:
      description: The kernel module.
      type: str
    options:
      description: The options in the file.
      type: dict
    running:
      description: The values of the loaded module.
      type: dict
  sample:
    - module: qla2xxx
      options: {ql2xmaxqdepth: "64"}
      running: {ql2xmaxqdepth: "32"}
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.boot import read_module_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import argument_spec, read_specs


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_layer(module, lambda: BlockQueueLayer(Runner(), _read_spec(module.params)))


def _read_spec(params):
    return QueuesSpec(read_specs(params["devices"]), read_module_specs(params["module_options"]), params["exclusive"])


if __name__ == "__main__":
    main()
