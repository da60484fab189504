#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lvm_cache
short_description: Attach, change, flush and detach LVM caches of logical volumes
version_added: 1.0.0
description:
  - Attaches a fast device, or a mirror of two, as a dm-cache or dm-writecache to existing logical volumes, changes its mode and settings
    while the volume is in use, flushes the cache, and detaches it.
  - The whole list is read, planned and applied in one call. On a host that is already configured as described, the module runs one LVM
    report and reads the block devices once, regardless of the number of caches.
  - Nothing is forced. A cache device that is neither empty nor a physical volume of the same volume group with free space is refused,
    and so is every operation for which LVM needs C(--force). A device is not empty if it has a signature or the
    metadata of a block cache, if the kernel uses it, or if a loop device is backed by it.
  - Before a cache is detached, replaced or leaves V(writeback), it is flushed, and the kernel must report that no block is dirty,
    in a mode in which no block can become dirty.
  - Changing the size, chunk size, kind or cache device, or adding a mirror, replaces the cache. The old cache is flushed, verified to be
    clean and detached, and the new cache is created and attached, all in one run. The module verifies that the new cache fits before it
    changes the old one. The volume stays in use, and is slower until the new cache is filled.
  - A run that was interrupted at any point is continued by the next one.
  - A cache with a missing device, a failure or damaged metadata is reported with the possible actions, and not changed.
    The only exception is a cache in V(writethrough), whose removal cannot lose data, and which LVM removes without C(--force).
    When the device of such a cache is removed, the kernel returns errors for cached blocks and does not fall back to the origin.
    O(caches[].state=absent) makes the volume available again. So does O(caches[].state=present) with cache devices that exist,
    which creates a new cache instead.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._caches.lvm_cache
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: community.general.lvol
  - module: community.general.lvg
"""

EXAMPLES = r"""
- name: Attach a write-through cache to vg0/images
  cachefleet.storage.lvm_cache:
    caches:
      - name: images
        origin: vg0/images
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]

- name: Attach an unmirrored write-back cache of 200 GiB to expendable data
  cachefleet.storage.lvm_cache:
    caches:
      - name: scratch
        origin: vg0/scratch
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]
        size: 200G
        mode: writeback
        allow_unmirrored_writeback: true
        settings:
          migration_threshold: 16384

- name: Attach a write-back cache that is mirrored on two SSDs
  cachefleet.storage.lvm_cache:
    caches:
      - name: databases
        origin: vg0/databases
        cache_devices:
          - /dev/disk/by-id/ata-INTEL_SSDSC2KG480G8_BTYG1
          - /dev/disk/by-id/ata-INTEL_SSDSC2KG480G8_BTYG2
        mirror: true
        mode: writeback

- name: Attach a writecache that starts writeback at 40 %
  cachefleet.storage.lvm_cache:
    caches:
      - name: journal
        origin: vg0/journal
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]
        kind: writecache
        size: 100G
        allow_unmirrored_writeback: true
        settings:
          high_watermark: 40
          low_watermark: 30

- name: Flush a cache before its SSD is replaced
  cachefleet.storage.lvm_cache:
    caches:
      - name: databases
        origin: vg0/databases
        state: flushed

- name: Flush and remove the cache, and release its SSD
  cachefleet.storage.lvm_cache:
    caches:
      - name: scratch
        origin: vg0/scratch
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]
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
    - Create cachepool vg0/images_cache of 200 GiB on /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001
    - Attach cachepool vg0/images_cache to vg0/images in mode writethrough
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
problems:
  description:
    - Warnings about the state of the caches of this host with the recommended actions, one sentence each, for example
      a degraded mirror, a missing cache device, a failed cache or metadata that need a check.
  returned: success
  type: list
  elements: str
  sample: []
caches:
  description:
    - The existing caches of the list as read back after the changes, in check mode as read before them.
    - Sizes and amounts are in bytes. Values that are unknown or not applicable are null, never 0.
  returned: success
  type: list
  elements: dict
  contains:
    type: {description: Always V(lvm_cache)., type: str}
    name: {description: The cached volume as volume group/logical volume., type: str}
    kind: {description: "V(cachepool), V(cachevol) or V(writecache).", type: str}
    device: {description: Path of the cached volume., type: str}
    device_name: {description: Kernel name of the cached volume., type: str}
    origin: {description: Path of the slow origin volume., type: str}
    origin_name: {description: Kernel name of the origin volume., type: str}
    cache_devices: {description: Persistent paths of the devices of the cache., type: list, elements: str}
    cache_device_names: {description: Kernel names of the devices of the cache., type: list, elements: str}
    mode: {description: The mode in effect., type: str}
    policy: {description: The replacement policy in effect., type: str}
    block_size: {description: Chunk size of a dm-cache or block size of a writecache., type: int}
    size: {description: Size of the cache volume., type: int}
    used: {description: Used part of the cache volume., type: int}
    dirty: {description: Amount of data that is not yet on the origin., type: int}
    redundancy: {description: "The redundancy of dirty data, V(mirrored), V(degraded) or V(none).", type: str}
    layout: {description: How the cache lies on several devices that are no mirror of two; empty if it does not., type: str}
    sends_flushes: {description: Whether flushes reach the underlying devices., type: bool}
    state: {description: "V(ok), V(needs_check), V(read_only), V(failed), V(cache_missing), V(inactive) or V(unknown).", type: str}
    problem: {description: The problem and the possible actions if the state is not V(ok)., type: str}
    settings: {description: The settings in effect., type: dict}
    counters: {description: "Read and write hits and misses, counted by the kernel since the table was loaded.", type: dict}
    histogram: {description: Empty. Only flashcache counts requests by size., type: dict}
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

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import CACHE_OPTIONS, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_layer(module, lambda: LvmCacheLayer(Runner(), read_items(module.params["caches"])))


if __name__ == "__main__":
    main()
