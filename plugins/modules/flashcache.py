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
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
  - cachefleet.storage._options.tool_dirs
options:
  caches:
    description:
      - The caches of this host. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - The name of the cache in messages and diffs.
          - The cached device is C(/dev/mapper/NAME).
          - Mount this device, never the disk itself.
        type: str
        required: true
      origin:
        description:
          - The persistent path of the device to cache, for example in C(/dev/disk/by-id).
          - The path has at most 127 characters. V(volume group/logical volume) is accepted too.
          - It must not be in use when the cache is created.
          - To flush or remove the cache, C(/dev/mapper/NAME) of this cache is accepted too.
        type: str
        required: true
      cache_devices:
        description:
          - The persistent path of the fast device, for example in C(/dev/disk/by-id), or the two paths of a mirror.
          - The device must be empty, which means that it reads as zeros and is not open in any process.
          - Required when O(caches[].state=present).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Whether the cache is mirrored on the two O(caches[].cache_devices).
          - An MD RAID1 array of the two devices is created for the cache.
        type: bool
        default: false
      mode:
        description:
          - V(writethrough) acknowledges a write once it is on the origin.
          - V(writeback) acknowledges a write once it is on the cache device. Until it is written back, the newest data is only there.
          - V(writearound) writes to the origin only. Reads are cached.
          - Only V(writeback) preserves the content of the cache across a reboot.
        type: str
        choices: [writethrough, writeback, writearound]
        default: writethrough
      write_only:
        description:
          - Whether only writes are cached. Only supported with O(caches[].mode=writeback).
        type: bool
        default: false
      size:
        description:
          - Size of the cache, a number with an optional suffix K, M, G or T (powers of 1024), or a percentage such as V(50%).
          - It includes the metadata, and a percentage is that of the device. Defaults to the whole device.
          - The cache must not be larger than the disk, and its table must not need more than a quarter of the main memory (22 bytes for each block).
        type: str
      chunk_size:
        description:
          - Size of a block of the cache.
          - A power of two from 1K to 1M. Defaults to 4K.
          - flashcache caches whole blocks only. A request that starts or ends inside a block is not cached and invalidates that block.
        type: str
      metadata_block_size:
        description:
          - Size of a metadata block of a cache in V(writeback), a power of two from 512 to 64K, at most 16 bytes for each block of a set, and at
            least the sector size of the SSD. Defaults to 4K.
        type: str
      associativity:
        description:
          - Number of blocks in a set, a power of two from 256 to 8192.
        type: int
        default: 512
      disk_associativity:
        description:
          - Size of the contiguous range of the disk that maps to one set, so that it can be written back in one request, a power of two from 128K
            to 1M. Not used by default.
        type: str
      settings:
        description:
          - Settings of the cache. V(default) resets a setting to its default. Settings that are not listed are not changed.
          - The settings are the sysctls of the cache, as integers; those with the values V(0) and V(1) also as true and false. The defaults are the
            values of a new cache. C(cache_all) is set to V(1) if it is not listed.
          - "In every mode: C(cache_all), C(do_pid_expiry), C(io_latency_hist), C(lru_hot_pct), C(lru_promote_thresh), C(max_pids),
            C(pid_expiry_secs), C(reclaim_policy) (V(0) for FIFO, V(1) for LRU), C(skip_seq_thresh_kb)."
          - "In V(writeback) also: C(clean_on_read_miss), C(clean_on_write_miss), C(dirty_thresh_pct) (10 to 95), C(fallow_clean_speed) (1 to
            100), C(fallow_delay), C(max_clean_ios_set), C(max_clean_ios_total), C(new_style_write_merge)."
          - The kernel clamps some values silently. Values outside of the limits are refused.
          - C(fast_remove) is refused, because it removes a cache without writing back dirty blocks.
        type: dict
        default: {}
      state:
        description:
          - V(present) creates the cache, or changes the existing cache as described.
          - V(flushed) leaves the cache attached, writes back all dirty blocks, and sets a mode in which no block can become dirty.
          - V(absent) flushes the cache, verifies that no block is dirty, detaches the cache and removes it.
          - What is not found is an error. V(flushed) requires a cache of this type on O(caches[].origin). V(absent) requires that O(caches[].origin)
            exists and belongs to no other cache of any type, see O(caches[].expect).
          - Flushed, C(cache_all) is V(0), and the cache can stay in use. This is not persistent across a reboot. Sysctls are not stored, and the
            unit that activates the cache sets those of O(caches[].settings). If the host was rebooted, run the module again before the SSD is
            replaced.
          - When the cache is removed, the superblock is verified, and the SSD is wiped.
        type: str
        choices: [present, flushed, absent]
        default: present
      expect:
        description:
          - With O(caches[].state=absent), what may be found where it would be an error otherwise.
          - V(missing) accepts that O(caches[].origin) does not exist.
          - A type of cache accepts that O(caches[].origin) belongs to a cache of this type, which is not changed.
        type: list
        elements: str
        choices: [missing, lvm_cache, dm_cache, bcache, flashcache, enhanceio]
        default: []
      release_devices:
        description:
          - With O(caches[].state=absent), whether the O(caches[].cache_devices) are released too, so that the drives can be removed.
          - The array that was created for O(caches[].mirror=true) is stopped and its members are wiped.
        type: bool
        default: false
      allow_unmirrored_writeback:
        description:
          - Allow V(writeback) on a cache device that is not mirrored. If that device fails, the newest data is lost, and usually the file system with it.
        type: bool
        default: false
      allow_ignored_flushes:
        description:
          - Allow the cache on drives whose volatile write cache is enabled. A power failure then loses data that applications have synced.
        type: bool
        default: false
      flush_timeout:
        description:
          - Timeout of a flush in seconds. When it expires, the task fails and the cache stays attached.
          - Without a timeout, a flush is only aborted if the amount of dirty data has not decreased for ten minutes.
        type: int
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
