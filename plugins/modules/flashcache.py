#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: flashcache
short_description: Make, tune, flush and remove SSD caches of flashcache
version_added: 0.3.0
description:
  - Puts an SSD in front of a disk as a flashcache device C(/dev/mapper/NAME), loads it again after a reboot with all its sysctls, changes
    those while it is in use, and flushes, removes and empties it.
  - Works where the kernel module and the tools of flashcache are installed, and says so in one sentence where they are not. The collection
    brings neither. flashcache exists for kernels up to 4.4, and as a port of its users for 4.18 of Enterprise Linux 8. On other kernels use
    M(cachefleet.storage.lvm_cache), M(cachefleet.storage.dm_cache) or M(cachefleet.storage.bcache).
  - flashcache passes no flush down, in any mode. Over drives whose volatile write cache is on it would lose what applications have synced,
    and in write-back its own superblock, so that it is refused there.
  - The whole list is read, planned and applied in one call; a host where everything is as wanted costs the same few commands whatever the
    number of caches.
  - Only sysctls change while a cache is in use. Another mode, size, block size or cache device is a flush, a removal, an emptied SSD and a
    new cache, all in one run, for which C(/dev/mapper/NAME) must not be in use.
  - Nothing is forced, and no question of a tool is answered. The tools ask when a cache is larger than its disk and when it takes more than
    a quarter of the main memory; both are refused before.
  - When the disk is a physical volume of LVM, LVM finds it below the cache too, and would activate it without its newest blocks. Keep it
    from the disk with a filter in C(lvm.conf), see RV(problems).
  - A line of C(/etc/fstab) that names the disk, by a path or by what it carries, is a warning and in RV(problems), because at a boot
    without the SSD it mounts the disk alone.
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
          - Name of the device-mapper device. Mount C(/dev/mapper/NAME), never the disk itself.
        type: str
        required: true
      origin:
        description:
          - The disk to cache, by a path that still names it after a reboot, of at most 127 characters, or V(volume group/logical volume).
          - It must not be in use when the cache is made.
        type: str
        required: true
      cache_devices:
        description:
          - The SSD, by a path that still names it after a reboot, or the two of a mirror. It must be empty.
          - Required when O(caches[].state=present).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Makes an MD RAID1 array of the two devices in O(caches[].cache_devices) and puts the cache on it.
        type: bool
        default: false
      mode:
        description:
          - V(writethrough) answers a write when it is on the disk, and keeps a copy on the SSD.
          - V(writearound) sends writes to the disk alone. Only what was read is cached.
          - V(writeback) answers a write when it is on the SSD. The newest data is only there until it is written back. Only this mode
            keeps its content over a reboot.
        type: str
        choices: [writethrough, writeback, writearound]
        default: writethrough
      write_only:
        description:
          - Caches writes and no reads. Only with O(caches[].mode=writeback).
        type: bool
        default: false
      size:
        description:
          - Size of the cache with its metadata, a number with an optional suffix K, M, G or T (powers of 1024), or a share of the device such
            as V(50%). Without it the whole device.
          - At most the size of the disk, and so much that its table takes at most a quarter of the main memory (22 bytes for each block).
        type: str
      chunk_size:
        description:
          - Size of a block, a power of two from 1K to 1M. Without it 4K.
          - flashcache caches whole blocks only. A request that begins or ends inside a block is not cached and pushes that block out.
        type: str
      metadata_block_size:
        description:
          - Size of a metadata block of a cache in V(writeback), a power of two from 512 to 64K, at most 16 bytes for each block of a set, and at
            least a sector of the SSD. Without it 4K.
        type: str
      associativity:
        description:
          - Blocks in a set, a power of two from 256 to 8192.
        type: int
        default: 512
      disk_associativity:
        description:
          - Neighbouring data of the disk that is kept in one set, so that it can be written back in one piece, a power of two from 128K to 1M.
            Without it there is none.
        type: str
      settings:
        description:
          - The sysctls of the cache, as whole numbers. V(0) and V(1) of one that is on or off may be written as true and false too.
          - V(default) sets one to what a new cache has. One that is not named is left as it is, but for C(cache_all), which is V(1) unless it is named.
          - "In every mode: C(cache_all), C(do_pid_expiry), C(io_latency_hist), C(lru_hot_pct), C(lru_promote_thresh), C(max_pids),
            C(pid_expiry_secs), C(reclaim_policy) (V(0) for FIFO, V(1) for LRU), C(skip_seq_thresh_kb)."
          - "In V(writeback) also: C(clean_on_read_miss), C(clean_on_write_miss), C(dirty_thresh_pct) (10 to 95), C(fallow_clean_speed) (1 to
            100), C(fallow_delay), C(max_clean_ios_set), C(max_clean_ios_total), C(new_style_write_merge)."
          - The kernel clamps some values without a word. A value outside the bounds is refused.
          - C(fast_remove) is refused, because it removes a cache without what is dirty in it being on the disk.
        type: dict
        default: {}
      state:
        description:
          - V(present) makes or loads the cache, or makes the one that runs as wanted.
          - V(flushed) writes back what is dirty and sets C(cache_all) to V(0), so that nothing can become dirty. The cache stays attached and may
            stay in use. V(present) takes that back.
          - V(flushed) does not outlive a reboot. No sysctl does, and the unit that brings the cache up again sets those of O(caches[].settings).
            Where the host was rebooted in between, run it once more before the SSD is replaced.
          - V(absent) flushes, removes, proves from the superblock that nothing was left dirty, and makes the SSD empty.
        type: str
        choices: [present, flushed, absent]
        default: present
      release_devices:
        description:
          - With O(caches[].state=absent), also stops a mirror that was made for the cache and makes its members empty.
        type: bool
        default: false
      allow_unmirrored_writeback:
        description:
          - Allows V(writeback) on an SSD that is not mirrored. When it fails, the newest data is lost, and with it usually the file system.
        type: bool
        default: false
      allow_ignored_flushes:
        description:
          - Allows the cache over drives whose volatile write cache is on. A power cut then loses data that applications have synced.
        type: bool
        aliases: [allow_swallowed_flushes]
        default: false
      flush_timeout:
        description:
          - Seconds that a flush may take. When they are over the task fails and the cache stays.
          - Without it a flush may take as long as it needs. It is given up when the number of dirty blocks has not fallen for ten minutes.
        type: int
  protected_drives:
    description:
      - Serial numbers, WWNs or models of drives that are known to keep their cache through a power cut (power-loss protection).
    type: list
    elements: str
    default: []
  tool_dirs:
    description:
      - Folders with the tools of flashcache, searched before the usual ones.
    type: list
    elements: path
    default: []
  kernel_module:
    description:
      - The kernel module, which is loaded when it is not. The tools of flashcache themselves look for V(flashcache).
    type: str
    default: flashcache
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.drive_write_cache
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: A write-through cache of a disk
  cachefleet.storage.flashcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
        cache_devices: [/dev/disk/by-id/ata-INTEL_SSDSC2BB240G4_BTWL1234]

- name: A mirrored write-back cache over drives with capacitors
  cachefleet.storage.flashcache:
    protected_drives: [SSDSC2BB240G4]
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

- name: Flush it before the SSD is replaced
  cachefleet.storage.flashcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/md-name-storage:images
        state: flushed

- name: Remove it
  cachefleet.storage.flashcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/md-name-storage:images
        state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Write the unit that brings images up at boot
    - Make the flashcache device images of /dev/disk/by-id/wwn-0x5000c500a1b2c3d4 in mode writethrough on /dev/disk/by-id/ata-INTEL_SSD
caches:
  description: The caches of the list that run, in the words of M(cachefleet.storage.block_cache_info).
  returned: success
  type: list
  elements: dict
problems:
  description:
    - What a person should know of the caches of the list that is left as it is, one sentence each. A drive below that has its volatile cache
      on, a mirror that is degraded, a path that may be another device after a reboot, errors that flashcache has counted, an origin that LVM
      finds below its cache, a line of C(/etc/fstab) that names an origin.
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.layer import run_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import COMMON_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import VolatileBelow

CACHE_OPTIONS = {
    **COMMON_OPTIONS,
    "mode": {"type": "str", "choices": ["writethrough", "writeback", "writearound"], "default": "writethrough"},
    "write_only": {"type": "bool", "default": False},
    "metadata_block_size": {"type": "str"},
    "associativity": {"type": "int", "default": 512},
    "disk_associativity": {"type": "str"},
    "allow_ignored_flushes": {"type": "bool", "default": False, "aliases": ["allow_swallowed_flushes"]},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS},
            "protected_drives": {"type": "list", "elements": "str", "default": []},
            "tool_dirs": {"type": "list", "elements": "path", "default": []},
            "kernel_module": {"type": "str", "default": "flashcache"},
        },
        supports_check_mode=True,
    )
    run_module(module, lambda runner: VolatileBelow(runner, module.params["protected_drives"]))


if __name__ == "__main__":
    main()
