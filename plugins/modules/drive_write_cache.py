#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drive_write_cache
short_description: Enable or disable the volatile write cache of drives, at runtime and after every boot
version_added: 1.0.0
description:
  - Sets the write cache of SATA, SAS, NVMe and virtio drives and reads it back from the drive itself.
  - The setting of the kernel always matches that of the drive. Neither C(queue/write_cache) nor C(temporary) values of
    C(cache_type) are written, because both only stop the kernel from sending flushes while the drive still caches writes.
  - The setting after the next boot or hot-plug is a line of one udev rules file,
    C(/etc/udev/rules.d/99-cachefleet-drive-write-cache.rules), which matches the serial number or WWN of the drive. Lines of
    drives that are not in O(drives) are not changed.
  - An entry with O(drives[].match) and V(disabled) has a line that matches what the drive is, so that a drive that is swapped in later is disabled
    when it appears. V(enabled) is never set by such a line, but by one for each drive that was examined.
  - All checks are made before the first change.
options:
  drives:
    description:
      - The drives to set. Other drives are neither read nor changed. An empty list changes nothing.
      - An entry names one drive, or matches drives by their properties. Later entries take precedence over earlier ones, and entries with a
        device over those with a match. The entry that decides sets all options of the drive.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description:
          - The persistent path of the whole drive, such as C(/dev/disk/by-id/ata-…). A multipath device refers to its drive.
          - A kernel name such as C(/dev/sda) is accepted only with O(drives[].persistent=false).
          - Either this or O(drives[].match) is required.
        type: str
      match:
        description:
          - Criteria that a drive must match. All given criteria must match. An empty dictionary matches every disk.
          - A drive that matches and cannot be set is an error, and nothing is changed. A match without a drive is a warning.
          - The boot rule compares C(transport) (V(sata), V(sas), V(nvme), V(virtio)), C(model) and C(rotational). With other criteria, or if a pattern
            of the model contains C([), each drive has a line of its own, and a drive that comes later is set by the next run.
          - Options that begin with C(allow_) are refused in an entry with a match, since a permission is for one device.
        type: dict
        suboptions:
          rotational:
            description: Whether the kernel treats the drive as rotational.
            type: bool
          transport:
            description: The transports of the drive. V(raid) is a volume of a RAID controller, whose cache is not set here.
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
      write_cache:
        description:
          - The desired state of the volatile write cache. A drive without a cache is treated as V(disabled).
        type: str
        required: true
        choices: [enabled, disabled]
      provider:
        description:
          - The protocol used to access the drive. V(auto) chooses it by the transport, and RV(drives[].provider) returns the choice.
          - V(ata) uses C(hdparm), V(scsi) uses C(sdparm), V(nvme) uses C(nvme), V(virtio) uses sysfs.
          - V(auto) refuses disks of a RAID controller. Set V(ata) or V(scsi) for a drive that the controller passes through.
        type: str
        default: auto
        choices: [auto, ata, scsi, nvme, virtio]
      persistent:
        description:
          - Whether a udev rule applies the setting whenever the drive appears. V(false) removes the rule for this drive.
          - The rules of entries with O(drives[].match) are those of the list, if it has such an entry. A list without one keeps them, and excepts
            its drives from them as needed.
        type: bool
        default: true
      allow_ignored_flushes:
        description:
          - Allow O(drives[].write_cache=enabled) even if a layer on top of the drive does not pass flushes to it
            (flashcache, the AoE target C(vblade)). Data that applications have synced is then lost in a power failure, unless the
            cache of the drive is protected.
        type: bool
        default: false
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
notes:
  - The kernel reports C(write back) for an NVMe drive even if its cache is disabled. This causes flushes without effect and is not reported as
    a difference.
  - Neither C(/etc/hdparm.conf) of Debian nor its udev helper is used, because it does nothing while an MD array resyncs, that is, after
    an unclean shutdown, and never matches C(sdaa).
seealso:
  - module: cachefleet.storage.cache_stack_info
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Disable the write caches, at runtime and after every boot
  cachefleet.storage.drive_write_cache:
    drives:
      - device: /dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL1234
        write_cache: disabled
      - device: /dev/disk/by-id/nvme-SAMSUNG_MZQL2960HCJR_S64F
        write_cache: disabled

- name: Disable the write caches of all SSDs of a series, also of those that are swapped in later
  cachefleet.storage.drive_write_cache:
    drives:
      - match:
          model: INTEL SSDSC2*
          transport: sata
        write_cache: disabled

- name: Enable a cache until the next boot for a measurement
  cachefleet.storage.drive_write_cache:
    drives:
      - device: /dev/disk/by-id/ata-ST10000NM0086_ZA2A
        write_cache: enabled
        persistent: false
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  type: list
  elements: str
  returned: always
  sample: ["Disable the write cache of /dev/disk/by-id/ata-ST10000NM0086_ZA2A (sda), provider ata"]
drives:
  description: The drives of the list as read after the changes, in check mode before them.
  type: list
  elements: dict
  returned: success
  contains:
    device:
      description: The path from O(drives[].device).
      type: str
    name:
      description: The kernel name.
      type: str
    provider:
      description: The provider that was used.
      type: str
    drive:
      description: The write cache as reported by the drive, V(enabled), V(disabled) or V(absent).
      type: str
    kernel:
      description: The write cache as reported by the kernel, V(write back) or V(write through).
      type: str
    boot_rule:
      description: The udev rules that set this drive, V(none) if there is none.
      type: str
  sample:
    - device: /dev/disk/by-id/ata-ST10000NM0086_ZA2A
      name: sda
      provider: ata
      drive: disabled
      kernel: write through
      boot_rule: >-
        ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="sd*", ENV{ID_SERIAL_SHORT}=="ZA2A",
        RUN+="/usr/sbin/hdparm -q -W0 $devnode"
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveWriteCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DRIVE_OPTIONS, read_specs


def main() -> None:
    module = AnsibleModule(
        argument_spec={"drives": {"type": "list", "elements": "dict", "required": True, "options": DRIVE_OPTIONS}},
        supports_check_mode=True,
    )
    run_layer(module, lambda: DriveWriteCacheLayer(Runner(), read_specs(module.params["drives"])))


if __name__ == "__main__":
    main()
