#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: enhanceio
short_description: Create, change, flush and remove EnhanceIO caches
version_added: 1.0.0
description:
  - Attaches a fast device as an EnhanceIO cache to a block device, changes its mode and settings while it is in use,
    flushes it, and removes it.
  - EnhanceIO does not create a new device. The cached device keeps its path and can stay mounted.
  - The kernel module and the tool C(eio_cli) must be installed on the host. This collection does not build them, and the public source of
    EnhanceIO does not build on kernels from 5.10 on. Use M(cachefleet.storage.lvm_cache), M(cachefleet.storage.dm_cache)
    or M(cachefleet.storage.bcache) there.
  - Nothing is forced. C(eio_cli create) accepts any device without confirmation, even one with dirty blocks of another
    cache. Therefore this module refuses a cache device that is not empty.
  - Before a cache is removed or leaves V(writeback), it is flushed in a mode in which no block can become dirty, and the driver must report
    that no block is dirty.
notes:
  - A systemd unit activates a cache at boot. A cache in V(writeback) preserves its content, and a udev rule hides its origin
    from systemd, MD and LVM until the cache is active, so that no file system is checked or mounted without its newest blocks. If the
    cache device is missing at boot, the origin stays hidden. A cache in another mode is empty after a boot.
  - The udev rule that C(eio_cli) writes, C(94-enhanceio-NAME.rules), does not hide the origin on hosts with devtmpfs. It is removed.
  - In V(writeback) EnhanceIO does not pass all flushes to the underlying devices. Drives with an enabled volatile cache are refused,
    see O(caches[].allow_ignored_flushes) and O(protected_drives).
  - Discards on a cached device are acknowledged but not passed to the underlying devices.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._caches.enhanceio
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
  - cachefleet.storage._options.tool_dirs
options:
  kernel_module:
    description: Name of the kernel module.
    type: str
    default: enhanceio
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.block_cache_info
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: Create a write-through cache
  cachefleet.storage.enhanceio:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-WDC_WD4000FYYZ_WMC130
        cache_devices: [/dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL1234]

- name: Create a mirrored write-back cache on drives with power-loss protection
  cachefleet.storage.enhanceio:
    protected_drives: [INTEL SSDSC2BB080G4]
    caches:
      - name: database
        origin: /dev/disk/by-id/wwn-0x600605b00aaf1d10
        cache_devices:
          - /dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL1234
          - /dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL5678
        mirror: true
        mode: writeback
        settings:
          dirty_high_threshold: 60
          dirty_low_threshold: 20

- name: Flush the cache before its drive is replaced
  cachefleet.storage.enhanceio:
    caches:
      - name: database
        origin: /dev/disk/by-id/wwn-0x600605b00aaf1d10
        state: flushed

- name: Remove the cache and release its drives
  cachefleet.storage.enhanceio:
    caches:
      - name: database
        origin: /dev/disk/by-id/wwn-0x600605b00aaf1d10
        cache_devices:
          - /dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL1234
          - /dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL5678
        mirror: true
        state: absent
        release_devices: true
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Create the EnhanceIO cache images of /dev/disk/by-id/ata-HDD on /dev/disk/by-id/ata-SSD in mode writethrough
    - Write the files that start the cache images at boot
caches:
  description: The running caches of the list as read back, with the keys of M(cachefleet.storage.block_cache_info).
  returned: success
  type: list
  elements: dict
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(tool_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
item:
  description: The name of the cache that failed.
  returned: on failure
  type: str
  sample: images
problems:
  description:
    - Warnings about the state of the caches of this host, one sentence each, namely a cache in V(writeback)
      on a degraded mirror, and a cache without its cache device.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import CACHE_OPTIONS, read_items
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
            "kernel_module": {"type": "str", "default": "enhanceio"},
        },
        supports_check_mode=True,
    )
    run_layer(module, lambda: _make_layer(module.params))


def _make_layer(params):
    specs = read_items(params["caches"])
    runner = Runner(vendor_dirs=params["tool_dirs"])
    volatile_below = VolatileBelow(runner, params["protected_drives"], flushed=params["flushed_virtual_disks"])
    return EnhanceIOLayer(runner, specs, volatile_below=volatile_below, kernel_module=params["kernel_module"])


if __name__ == "__main__":
    main()
