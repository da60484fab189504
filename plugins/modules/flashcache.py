#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: flashcache
short_description: Create, tune, flush and remove flashcache SSD caches
version_added: 1.0.0
description:
  - Attaches an SSD to a disk as a flashcache device C(/dev/mapper/NAME), loads the device after a reboot with all its sysctls, changes
    sysctls while it is in use, and flushes, removes and wipes the cache.
  - The kernel module and the tools of flashcache must be installed, otherwise the module fails. The collection does not include
    them. flashcache exists for kernels up to 4.4, and as a third-party port for 4.18 of Enterprise Linux 8. On other kernels use
    M(cachefleet.storage.lvm_cache), M(cachefleet.storage.dm_cache) or M(cachefleet.storage.bcache).
  - flashcache does not pass flushes to the underlying devices, in any mode. On drives with an enabled volatile write cache, data that
    applications have synced would be lost, and in write-back the superblock of flashcache too. Such drives are refused.
  - The whole list is read, planned and applied in one call. On a host that is already configured as described, the number of commands is
    constant.
  - Only sysctls can be changed while a cache is in use. Changing the mode, size, block size or cache device flushes and removes the cache,
    wipes the SSD and creates a new cache, all in one run. For this C(/dev/mapper/NAME) must not be in use.
  - Nothing is forced, and prompts of the tools are never confirmed. The tools prompt if a cache is larger than its disk or needs more than
    a quarter of the main memory; both are refused before.
  - If the disk is an LVM physical volume, LVM also finds it on the disk itself, and would activate it without the newest blocks. Exclude
    the disk with a filter in C(lvm.conf), see RV(problems).
  - A line of C(/etc/fstab) that refers to the disk, by a path, UUID or label, is reported as a warning and in RV(problems), because a boot
    without the SSD would mount the disk alone.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._caches.flashcache
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
  - cachefleet.storage._options.tool_dirs
options:
  kernel_module:
    description:
      - Name of the kernel module, which is loaded if necessary. The tools of flashcache themselves expect V(flashcache).
    type: str
    default: flashcache
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.drive_write_cache
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: Create a write-through cache for a disk
  cachefleet.storage.flashcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
        cache_devices: [/dev/disk/by-id/ata-INTEL_SSDSC2BB240G4_BTWL1234]

- name: Create a mirrored write-back cache on drives with power-loss protection
  cachefleet.storage.flashcache:
    protected_drives: [INTEL SSDSC2BB240G4]
    caches:
      - name: images
        origin: /dev/disk/by-id/md-name-storage:images
        cache_devices:
          - /dev/disk/by-id/ata-INTEL_SSDSC2BB240G4_BTWL1234
          - /dev/disk/by-id/ata-INTEL_SSDSC2BB240G4_BTWL1235
        mirror: true
        mode: writeback
        size: 100G
        settings:
          dirty_thresh_pct: 60
          reclaim_policy: 1

- name: Flush the cache before the SSD is replaced
  cachefleet.storage.flashcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/md-name-storage:images
        state: flushed

- name: Remove the cache
  cachefleet.storage.flashcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/md-name-storage:images
        state: absent
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Write the unit that starts images at boot
    - Create the flashcache device images of /dev/disk/by-id/wwn-0x5000c500a1b2c3d4 in mode writethrough on /dev/disk/by-id/ata-INTEL_SSD
caches:
  description: The running caches of the list, with the keys of M(cachefleet.storage.block_cache_info).
  returned: success
  type: list
  elements: dict
problems:
  description:
    - Warnings about the state of the caches of the list, one sentence each. For example an underlying drive with an enabled volatile
      cache, a degraded mirror, a path that is not persistent, errors that flashcache has counted, an origin that LVM
      finds on the disk itself, or a line of C(/etc/fstab) that refers to an origin.
  returned: success
  type: list
  elements: str
  sample: []
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing), V(tool_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
item:
  description: The name of the cache that failed.
  returned: on failure
  type: str
  sample: images
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.layer import FlashcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import CACHE_OPTIONS, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import TOOL_DIRS_OPTION
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import VolatileBelow


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS},
            **DECLARATION_OPTIONS,
            **TOOL_DIRS_OPTION,
            "kernel_module": {"type": "str", "default": "flashcache"},
        },
        supports_check_mode=True,
    )
    run_layer(module, lambda: _make_layer(module.params))


def _make_layer(params):
    specs = read_items(params["caches"])
    runner = Runner(vendor_dirs=params["tool_dirs"])
    volatile_below = VolatileBelow(runner, params["protected_drives"], flushed=params["flushed_virtual_disks"])
    return FlashcacheLayer(runner, specs, volatile_below=volatile_below, kernel_module=params["kernel_module"])


if __name__ == "__main__":
    main()
