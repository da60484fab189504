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
          - It is also the name of the cache in EnhanceIO, at most 31 letters, digits and underscores.
        type: str
        required: true
      origin:
        description:
          - The persistent path of the device to cache, for example in C(/dev/disk/by-id).
          - A disk, a partition, a logical volume, an MD array or a controller volume. It may be in use.
        type: str
        required: true
      cache_devices:
        description:
          - The persistent path of the fast device, for example in C(/dev/disk/by-id), or the two paths of a mirror.
          - It must be empty, which means that it reads as zeros and is not open in any process. The whole device is used. Use a partition for a smaller cache.
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
          - EnhanceIO calls V(writearound) read-only. It invalidates overwritten blocks in the cache.
        type: str
        choices: [writethrough, writeback, writearound]
        default: writethrough
      policy:
        description:
          - The replacement policy. V(lru) evicts the least recently used block, V(fifo) the oldest block, V(rand) a random block.
          - Defaults to V(lru) for a new cache. The policy of an existing cache is not changed by default.
          - To change it, the cache is flushed, deleted and created again, empty. The driver does not follow a change while the cache runs, although
            it reports it.
        type: str
        choices: [lru, fifo, rand]
      size:
        description:
          - Only V(100%) is supported. The whole device is used; use a partition for a smaller cache.
        type: str
      chunk_size:
        description:
          - Size of a block of the cache.
          - V(2048), V(4096) or V(8192) bytes. Defaults to 4096 for a new cache. The size of an existing cache is not changed by default.
          - Changing the size of a running cache flushes, removes and recreates the cache.
          - The driver uses the size that its own C(eio_cli) passes. A driver and a C(eio_cli) from different sources make blocks of 4096 bytes
            whatever is requested. This is detected and refused.
        type: str
      settings:
        description:
          - Settings of the cache. V(default) resets a setting to its default. Settings that are not listed are not changed.
          - C(dirty_high_threshold) and C(dirty_low_threshold), percent. Above the high threshold blocks are written back until the low one is reached.
          - C(dirty_set_high_threshold) and C(dirty_set_low_threshold), the same for each set of blocks.
          - C(time_based_clean_interval), minutes after which a dirty block is written back, at most 720. V(0) disables it.
          - C(autoclean_threshold), the number of outstanding requests above which this writeback is suspended, at most 1024.
          - C(mem_limit_pct), the percentage of the free memory that the tables of a cache may use.
          - C(cache_wronly), V(true) caches writes only. Not available in all versions.
          - All except C(mem_limit_pct) are only available in V(writeback). The defaults are the values of a new cache.
        type: dict
        default: {}
      state:
        description:
          - V(present) creates the cache, or changes the existing cache as described.
          - V(flushed) leaves the cache attached, writes back all dirty blocks, and sets a mode in which no block can become dirty.
          - V(absent) flushes the cache, verifies that no block is dirty, detaches the cache and removes it.
          - What is not found is an error. V(flushed) requires a cache of this type on O(caches[].origin). V(absent) requires that O(caches[].origin)
            exists and belongs to no other cache of any type, see O(caches[].expect).
          - Flushed, the cache is in V(writethrough).
          - When the cache is removed, its superblock is wiped, so that the cache device is empty.
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
          - A degraded mirror counts as not mirrored when a cache is changed to V(writeback). A cache that is already in V(writeback) is not
            changed, see RV(problems).
        type: bool
        default: false
      allow_ignored_flushes:
        description:
          - Allow V(writeback) even if an underlying drive of the origin or the cache device may lose acknowledged writes in a power failure.
          - EnhanceIO drops the flush flag of writes to the cache device, and acknowledges a flush before the cache device has completed it.
        type: bool
        default: false
      flush_timeout:
        description:
          - Timeout of a flush in seconds. When it expires, the task fails and the cache stays attached.
          - Without a timeout, a flush is only aborted if the amount of dirty data has not decreased for ten minutes.
          - The driver continues flushing after the timeout.
        type: int
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
