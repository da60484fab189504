#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: block_queue
short_description: Set the queues of block devices, now and whenever they appear
version_added: 0.4.0
description:
  - Sets the scheduler, the length of the queue and what else C(/sys/block/*/queue) holds, in the order that the kernel needs, and reads it back.
  - An entry names one device, or matches devices by what they are. Later entries go before earlier ones, setting by setting, and
    entries that name a device go before those that match it.
  - After a boot or hot-plug a udev rule sets the queue again. The rules are lines of one file,
    C(/etc/udev/rules.d/99-cachefleet-block-queue.rules), keyed on the identity of the device.
  - What the kernel would refuse, cut or ignore is refused before the first change, with the value that can be written instead.
    Values of a profile are fitted to the device.
options:
  devices:
    description:
      - What is wanted of which devices. Others are not changed. An empty list changes nothing.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description:
          - A whole device, by a path that lasts, such as C(/dev/disk/by-id/ata-…), C(/dev/mapper/mpatha) or C(/dev/etherd/e7.1).
          - A name such as C(/dev/sda) is accepted only with O(devices[].persistent=false).
          - A multipath device stands for all its paths, and for itself where it has a queue of its own.
        type: str
      match:
        description:
          - What devices must be like; everything that is given must fit. An empty match meets every disk.
          - Without O(devices[].match.kind) only disks are met, never partitions, arrays, logical volumes, loop devices or devices without a size.
        type: dict
        suboptions:
          rotational:
            description: Whether the kernel takes the device for one that turns.
            type: bool
          transport:
            description:
              - How the device is attached. V(raid) is a volume of a RAID controller.
              - Disks of a network are met only if V(aoe), V(nbd) or V(rbd) is named here or in O(devices[].match.kind).
            type: list
            elements: str
            choices: [sata, sas, scsi, fc, iscsi, nvme, nvme_fabrics, virtio, usb, raid, aoe, nbd, rbd, virtual, unknown]
          kind:
            description: Kinds of devices that are met instead of disks.
            type: list
            elements: str
            choices: [disk, multipath, lvm, crypt, dm, md, bcache, loop, zram, ram, aoe, nbd, rbd]
          driver:
            description: Shell patterns, one of which fits the name of the driver, such as C(qla2xxx).
            type: list
            elements: str
          model:
            description: Shell patterns, one of which fits the model, as C(/sys/block/*/device/model) or as C(ID_MODEL) of udev, upper and lower case alike.
            type: list
            elements: str
          vendor:
            description: Shell patterns, one of which fits the vendor. SATA drives have V(ATA).
            type: list
            elements: str
          serial:
            description: Shell patterns, one of which fits a serial number.
            type: list
            elements: str
          wwn:
            description: Shell patterns, one of which fits the WWN.
            type: list
            elements: str
          size_min:
            description: The smallest size, with a suffix k, M, G or T (powers of 1024).
            type: str
          size_max:
            description: The largest size.
            type: str
      members:
        description:
          - Set the disks under the device instead of the device, for an array, a logical volume or a bcache.
          - With O(devices[].match), O(devices[].match.kind) says under what.
        type: bool
        default: false
      profile:
        description:
          - Values that belong together. Settings of the same entry go before them. A later profile takes the place of an earlier one as a whole.
          - A value that a device does not take is replaced by the largest that it takes, and one that a disk does not have is left out; RV(devices[].notes)
            says so.
          - V(flash_array) for LUNs of all-flash arrays, scheduler V(none), O(devices[].nr_requests=1024), O(devices[].nomerges=1),
            O(devices[].queue_depth=64).
          - V(hdd) for disks that turn, V(mq-deadline), 256 requests, 1024 KiB read ahead, all merges, V(rq_affinity) 1, default throttling.
          - V(ssd) for SATA and SAS SSDs, V(mq-deadline), 256 requests, 128 KiB read ahead, all merges, V(rq_affinity) 2, no entropy.
          - V(nvme) for NVMe drives, V(none), 128 KiB read ahead, all merges, V(rq_affinity) 2, no entropy.
        type: str
        choices: [flash_array, hdd, ssd, nvme]
      scheduler:
        description:
          - The I/O scheduler. The kernel loads the module of one that it has.
          - V(noop) and V(deadline), which kernels from 5.0 do not have, are taken as V(none) and V(mq-deadline), with a warning. V(cfq) is refused there.
        type: str
      nr_requests:
        description:
          - Requests that wait in the queue. Up to 2048 with a scheduler, without one up to what the hardware takes at once.
        type: int
      nomerges:
        description: V(0) merges requests, V(1) only tries the cheapest merge, V(2) none.
        type: int
        choices: [0, 1, 2]
      read_ahead_kb:
        description: KiB that are read ahead of a file, a multiple of the memory page. It counts on the device that is mounted.
        type: int
      rq_affinity:
        description: Where a request is completed, V(0) anywhere, V(1) on a processor of the group that began it, V(2) on that very processor.
        type: int
        choices: [0, 1, 2]
      max_sectors_kb:
        description: The largest request in KiB, at most C(max_hw_sectors_kb).
        type: int
      wbt_lat_usec:
        description: Microseconds that reads may take before buffered writes are throttled; V(0) for never, V(-1) for the default of the kernel.
        type: int
      queue_depth:
        description: Commands that a SCSI or SATA device has on their way at once.
        type: int
      rotational:
        description: What the kernel shall take the device for.
        type: bool
      add_random:
        description: Whether requests add to the entropy pool.
        type: bool
      persistent:
        description:
          - Whether a udev rule sets the device again when it appears. V(false) removes the rule of the device.
          - Of several entries that meet a device the one that goes before the others decides.
        type: bool
        default: true
  module_options:
    description:
      - Options of kernel modules, kept in C(/etc/modprobe.d/cachefleet-block-queue.conf). They are in force when the module is loaded the next time; until
        then a warning says so.
    type: list
    elements: dict
    default: []
    suboptions:
      module:
        description: The kernel module.
        type: str
        required: true
      options:
        description: All options that the file shall hold for the module; none remove it from the file.
        type: dict
        default: {}
  exclusive:
    description:
      - Remove the udev rules and module options that this module wrote for devices and modules that are not listed any more.
    type: bool
    default: false
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
notes:
  - Changing the scheduler of a device in use is safe. The kernel waits for requests that are under way and lets new ones wait meanwhile.
  - Settings of disks are written when a disk is added, not at every C(change), which every program causes that closes a disk after writing.
seealso:
  - module: cachefleet.storage.drive_write_cache
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: LUNs of an all-flash array over Fibre Channel
  cachefleet.storage.block_queue:
    devices:
      - match: {transport: fc}
        profile: flash_array
    module_options:
      - module: qla2xxx
        options: {ql2xmaxqdepth: 64}

- name: By kind of drive, with one exception
  cachefleet.storage.block_queue:
    devices:
      - {match: {rotational: true}, profile: hdd}
      - {match: {rotational: false}, profile: ssd}
      - {match: {transport: nvme}, profile: nvme}
      - device: /dev/disk/by-id/ata-ST10000NM0086_ZA2A
        scheduler: bfq

- name: Read far ahead of a volume, and set the disks under it
  cachefleet.storage.block_queue:
    devices:
      - {device: /dev/vg0/media, read_ahead_kb: 4096}
      - {device: /dev/vg0/media, members: true, profile: hdd}

- name: Try something until the next boot
  cachefleet.storage.block_queue:
    devices:
      - {device: /dev/sdb, scheduler: none, persistent: false}
"""

RETURN = r"""
actions:
  description: What was done, or would be done in check mode, one sentence each.
  type: list
  elements: str
  returned: always
  sample: ["Set scheduler of /dev/disk/by-id/ata-ST10000NM0086_ZA2A (sda) to mq-deadline"]
devices:
  description: Every device that an entry speaks of as it is left; in check mode as it was found.
  type: list
  elements: dict
  returned: success
  contains:
    device:
      description: The path from O(devices[].device), or the one that lasts.
      type: str
    name:
      description: The kernel name.
      type: str
    kind:
      description: What it is, such as V(disk) or V(multipath).
      type: str
    transport:
      description: How it is attached.
      type: str
    entries:
      description: The entries of O(devices) that speak of it, counted from 1; the last one decides.
      type: list
      elements: int
    settings:
      description: All its settings as the kernel says.
      type: dict
    schedulers:
      description: The schedulers that the kernel offers without loading a module.
      type: list
      elements: str
    notes:
      description: Where a profile had to be fitted to the device.
      type: list
      elements: str
    boot_rule:
      description: The udev rule for this device; V(none) if there is none.
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
        - the profile flash_array asks for 1024; without a scheduler nr_requests is at most 32, as many as the hardware takes at once
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
      description: Those that the loaded module shows, as it runs with them.
      type: dict
  sample:
    - module: qla2xxx
      options: {ql2xmaxqdepth: "64"}
      running: {ql2xmaxqdepth: "32"}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.boot import read_module_wishes
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import read_specs

_PATTERNS = {"type": "list", "elements": "str"}
TRANSPORTS = ["sata", "sas", "scsi", "fc", "iscsi", "nvme", "nvme_fabrics", "virtio", "usb", "raid", "aoe", "nbd", "rbd", "virtual", "unknown"]
KINDS = ["disk", "multipath", "lvm", "crypt", "dm", "md", "bcache", "loop", "zram", "ram", "aoe", "nbd", "rbd"]
MATCH_OPTIONS = {
    "rotational": {"type": "bool"},
    "transport": {"type": "list", "elements": "str", "choices": TRANSPORTS},
    "kind": {"type": "list", "elements": "str", "choices": KINDS},
    "driver": _PATTERNS,
    "model": _PATTERNS,
    "vendor": _PATTERNS,
    "serial": _PATTERNS,
    "wwn": _PATTERNS,
    "size_min": {"type": "str"},
    "size_max": {"type": "str"},
}
DEVICE_OPTIONS = {
    "device": {"type": "str"},
    "match": {"type": "dict", "options": MATCH_OPTIONS},
    "members": {"type": "bool", "default": False},
    "profile": {"type": "str", "choices": ["flash_array", "hdd", "ssd", "nvme"]},
    "scheduler": {"type": "str"},
    "nr_requests": {"type": "int"},
    "nomerges": {"type": "int", "choices": [0, 1, 2]},
    "read_ahead_kb": {"type": "int"},
    "rq_affinity": {"type": "int", "choices": [0, 1, 2]},
    "max_sectors_kb": {"type": "int"},
    "wbt_lat_usec": {"type": "int"},
    "queue_depth": {"type": "int"},
    "rotational": {"type": "bool"},
    "add_random": {"type": "bool"},
    "persistent": {"type": "bool", "default": True},
}
MODULE_OPTIONS = {"module": {"type": "str", "required": True}, "options": {"type": "dict", "default": {}}}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": DEVICE_OPTIONS,
                "required_one_of": [("device", "match")],
                "mutually_exclusive": [("device", "match")],
            },
            "module_options": {"type": "list", "elements": "dict", "default": [], "options": MODULE_OPTIONS},
            "exclusive": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        wanted = QueuesSpec(read_specs(module.params["devices"]), read_module_wishes(module.params["module_options"]), module.params["exclusive"])
    except StorageError as error:
        module.fail_json(**error.as_result())
    run_layer(module, BlockQueueLayer(Runner(), wanted), wanted)


if __name__ == "__main__":
    main()
