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
  - All checks are made before the first change.
options:
  drives:
    description:
      - The drives to set. Other drives are neither read nor changed. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description:
          - The persistent path of the whole drive, such as C(/dev/disk/by-id/ata-…). A multipath device refers to its drive.
          - A kernel name such as C(/dev/sda) is accepted only with O(drives[].persistent=false).
        type: str
        required: true
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
      description: The udev rule of this drive, V(none) if there is none.
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
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import argument_spec, read_specs


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
    )
    run_layer(module, lambda: DriveWriteCacheLayer(Runner(), read_specs(module.params["drives"])))


if __name__ == "__main__":
    main()
