#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: enhanceio
short_description: Make, change, flush and take away EnhanceIO caches
version_added: 0.3.0
description:
  - Puts a fast device as an EnhanceIO cache in front of a block device, changes its mode, policy and settings while it is in use,
    flushes it, and takes it away again.
  - EnhanceIO makes no device of its own. What is mounted before is mounted after, by the same path.
  - The kernel module and the tool C(eio_cli) must be on the host. This collection does not build them, and the public source of
    EnhanceIO does not build on kernels from 5.10 on, where M(cachefleet.storage.lvm_cache), M(cachefleet.storage.dm_cache)
    and M(cachefleet.storage.bcache) do the same.
  - Nothing is forced. C(eio_cli create) takes any device without a question, also one that holds dirty blocks of another
    cache, so that a cache device that is not empty is refused here.
  - Before a cache is taken away or leaves V(writeback), it is flushed while nothing can become dirty, and the driver must report
    that no block is.
notes:
  - A cache comes back at boot through a unit of systemd. One in V(writeback) keeps what it holds, and a udev rule hides its origin
    from systemd, MD and LVM until the cache runs, so that no file system is checked or mounted without its newest blocks. When the
    cache device is missing at boot, the origin stays hidden. A cache in another mode begins empty.
  - The udev rule that C(eio_cli) writes, C(94-enhanceio-NAME.rules), does not hide the origin on hosts with devtmpfs. It is removed.
  - In V(writeback) EnhanceIO does not pass every flush down. Volatile caches of the drives below are refused,
    see O(caches[].allow_ignored_flushes) and O(protected_drives).
  - A discard on a cached device is answered and goes nowhere.
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
          - The name of the cache, at most 31 letters, digits and underscores.
        type: str
        required: true
      origin:
        description:
          - The device that is cached, by a path that still names it after a reboot, for example below C(/dev/disk/by-id).
          - A disk, a partition, a logical volume, an MD array or a controller volume. It may be in use.
        type: str
        required: true
      cache_devices:
        description:
          - The fast device, by a path that still names it after a reboot, or the two of a mirror.
          - It must be empty. The whole device is taken. Name a partition for a smaller cache.
          - Required when O(caches[].state=present).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Makes an MD RAID1 array of the two cache devices and puts the cache on it.
        type: bool
        default: false
      mode:
        description:
          - V(writethrough) answers a write when it is on the origin.
          - V(writeback) answers a write when it is on the cache device. The newest data is only there until it is written back.
          - V(writearound) is EnhanceIO's read only cache. Writes go to the origin and take what they overwrite out of the cache.
        type: str
        choices: [writethrough, writeback, writearound]
        default: writethrough
      policy:
        description:
          - Which block makes room for another. V(lru) takes the one that was not used for the longest time, V(fifo) the oldest, V(rand) any.
          - Without it a cache keeps its policy, and a new one gets V(lru).
        type: str
        choices: [lru, fifo, rand]
      size:
        description:
          - EnhanceIO takes the whole cache device. Anything but C(100%) is refused.
        type: str
      chunk_size:
        description:
          - Size of the blocks that are cached, V(2048), V(4096) or V(8192) bytes. Without it a cache keeps what it has, and a new one gets 4096.
          - Another size than that of a cache that runs means flushing it, taking it away and making it anew.
          - In the public versions of EnhanceIO the driver does not understand how C(eio_cli) hands the size over and always takes 4096.
            That is noticed and refused.
        type: str
      settings:
        description:
          - C(dirty_high_threshold) and C(dirty_low_threshold), percent. Above the high one blocks are written back until the low one is reached.
          - C(dirty_set_high_threshold) and C(dirty_set_low_threshold), the same for each set of blocks.
          - C(time_based_clean_interval), minutes after which a dirty block is written back, at most 720. V(0) turns that off.
          - C(autoclean_threshold), requests under way that hold this writing back off, at most 1024.
          - C(mem_limit_pct), percent of the free memory that a cache may take for its tables.
          - C(cache_wronly), V(true) caches writes only. Not in every version.
          - All but C(mem_limit_pct) exist in V(writeback) only. V(default) sets what a new cache has. A setting that is not named is left as it is.
        type: dict
        default: {}
      state:
        description:
          - V(present) makes the cache, or makes the one that runs as wanted.
          - V(flushed) writes everything back and leaves the cache in V(writethrough), so that nothing can become dirty. A cache that is not there is no error.
          - V(absent) flushes, proves that nothing is dirty, deletes the cache and wipes its superblock, so that the cache device is empty.
        type: str
        choices: [present, flushed, absent]
        default: present
      release_devices:
        description:
          - With O(caches[].state=absent) also stops the mirror that was made for O(caches[].mirror=true), and makes its members empty.
        type: bool
        default: false
      allow_unmirrored_writeback:
        description:
          - Allows V(writeback) on a cache device that is not mirrored. When that device fails, the newest data is lost,
            and with it usually the file system.
          - A mirror that is degraded counts as none when a cache is to enter V(writeback). A cache that is in V(writeback) already stays as
            it is, see RV(problems).
        type: bool
        default: false
      allow_ignored_flushes:
        description:
          - Allows a cache to enter V(writeback) although a drive below the origin or the cache device may lose acknowledged writes in a power cut.
          - EnhanceIO hands a write that asks for a flush to the cache device without it, and answers a flush before the cache device has.
        type: bool
        aliases: [allow_swallowed_flushes]
        default: false
      flush_timeout:
        description:
          - Seconds that a flush may take. When they are over the task fails, the cache stays, and the driver goes on flushing.
          - Without it a flush may take as long as it needs. It is given up when the number of dirty blocks has not fallen for ten minutes.
        type: int
  protected_drives:
    description:
      - Serial numbers, WWNs or models of drives that are known to keep their cache through a power cut (power-loss protection).
    type: list
    elements: str
    default: []
  tool_dirs:
    description: Folders in which C(eio_cli) is looked for before the usual ones.
    type: list
    elements: path
    default: []
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
- name: A write-through cache
  cachefleet.storage.enhanceio:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-WDC_WD4000FYYZ_WMC130
        cache_devices: [/dev/disk/by-id/ata-INTEL_SSDSC2BB080G4_BTWL1234]

- name: A mirrored write-back cache on drives with power-loss protection
  cachefleet.storage.enhanceio:
    protected_drives: [SSDSC2BB080G4]
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

- name: Flush before the cache drive is changed
  cachefleet.storage.enhanceio:
    caches:
      - name: database
        origin: /dev/disk/by-id/wwn-0x600605b00aaf1d10
        state: flushed

- name: Take the cache away and give its drives back
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
  description: What was done, or in check mode would be done, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Make the EnhanceIO cache images of /dev/disk/by-id/ata-HDD on /dev/disk/by-id/ata-SSD in mode writethrough
    - Write what brings the cache images back at boot
caches:
  description: The caches of the list that run, as read back, in the words of M(cachefleet.storage.block_cache_info).
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
    - What a person should know of caches of this host that are left as they are, one sentence each, namely a cache in V(writeback)
      on a mirror that is degraded, and one that has lost its cache device.
  returned: success
  type: list
  elements: str
  sample: []
"""


from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import MODES, POLICIES, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import COMMON_OPTIONS, warn_of_former_names
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Outcome, run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import VolatileBelow

CACHE_OPTIONS = {
    **COMMON_OPTIONS,
    "mode": {"type": "str", "choices": list(MODES), "default": "writethrough"},
    "policy": {"type": "str", "choices": list(POLICIES)},
    "allow_ignored_flushes": {"type": "bool", "default": False, "aliases": ["allow_swallowed_flushes"]},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS},
            "protected_drives": {"type": "list", "elements": "str", "default": []},
            "tool_dirs": {"type": "list", "elements": "path", "default": []},
            "kernel_module": {"type": "str", "default": "enhanceio"},
        },
        supports_check_mode=True,
    )
    if not module.params["caches"]:
        module.exit_json(problems=[], caches=[], **Outcome((), None).as_result())
    try:
        wanted = read_items(module.params["caches"])
    except StorageError as error:
        module.fail_json(**error.as_result())
    warn_of_former_names(module, wanted)
    runner = Runner(vendor_dirs=module.params["tool_dirs"])
    volatile_below = VolatileBelow(runner, module.params["protected_drives"])
    run_layer(module, EnhanceIOLayer(runner, wanted, module=module.params["kernel_module"], volatile_below=volatile_below), wanted)


if __name__ == "__main__":
    main()
