#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dm_cache
short_description: Attach, change and detach SSD caches of device-mapper without LVM
version_added: 0.3.0
description:
  - Puts a fast device as a dm-cache or dm-writecache in front of any block device whose content is kept, changes its mode and
    settings while it is in use, and takes it away again after flushing it.
  - What is cached is used as C(/dev/mapper/NAME) from then on. A unit of systemd brings it up at boot before file systems are
    checked and mounted. Write C(/dev/mapper/NAME) into C(/etc/fstab), never a UUID or a label, because the origin carries the
    same one. The root file system cannot be cached this way.
  - A cache that is attached is moved to another device, size, chunk size or kind while it is in use. It is flushed, proven clean,
    taken from under C(/dev/mapper/NAME), which goes on with the origin alone, and put there anew.
  - The whole list is read, planned and applied in one call. A host where everything is as wanted costs a constant number of commands.
  - Nothing is forced. The fast device must be empty. The origin must not be in use when it is cached for the first time.
  - The kernel refuses to mount an origin while it is cached, but other software may look at it. If LVM is on C(/dev/mapper/NAME), keep it
    away from the origin with C(global_filter) or a devices file in C(lvm.conf).
  - If the cache device is missing at boot, C(/dev/mapper/NAME) does not appear. Do not use the origin in its place. A cache in V(writeback)
    holds the newest data. A cache that comes back later would not know what was written without it.
  - A line of C(/etc/fstab) that names the origin, by a path or by what it carries, is a warning and in RV(problems).
  - A running mapping named as one of the list that this collection did not make is refused, and all others are left alone.
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
          - The name of the cached device, which becomes C(/dev/mapper/NAME), and part of the name of its unit, C(cachefleet-dm_cache-NAME.service).
        type: str
        required: true
      origin:
        description:
          - The device to cache, by a path that still names it after a reboot. A drive, a partition, a logical volume, an MD array or a volume of a controller.
          - It keeps its content. A drive with partitions cannot be cached, each of its partitions can.
        type: str
        required: true
      cache_devices:
        description:
          - The fast device, by a path that still names it after a reboot, for example below C(/dev/disk/by-id), or the two of a mirror.
          - It must be empty. It carries the metadata and the data of this one cache.
          - Required when O(caches[].state=present).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Keeps the cache on two devices, for which an MD RAID1 array is made.
        type: bool
        default: false
      kind:
        description:
          - V(cache) is dm-cache, which keeps what is used often, for reading and writing.
          - V(writecache) is dm-writecache, which takes writes only and writes all of them back, and which keeps an entry for each block in memory.
        type: str
        choices: [cache, writecache]
        default: cache
      mode:
        description:
          - V(writethrough) answers a write when it is on the origin.
          - V(writeback) answers a write when it is on the cache device. The newest data is only there until it is written back.
          - V(passthrough) serves everything from the origin and takes written blocks out of the cache.
          - If left out V(writethrough) for O(caches[].kind=cache) and V(writeback), the only one, for O(caches[].kind=writecache).
        type: str
        choices: [writethrough, writeback, passthrough]
      size:
        description:
          - Size of the cached data, a number with an optional suffix K, M, G or T (powers of 1024), or a share of the device such as V(50%).
          - The metadata of dm-cache comes on top. Without it the cache takes the whole device.
          - A size (not a share) that differs from that of an attached cache makes it anew.
        type: str
      chunk_size:
        description:
          - Size of the blocks that are cached, a multiple of 32K from 32K to 1G.
            Without it 64K, or as much more as it takes to stay below one million blocks.
          - For O(caches[].kind=writecache) the former name of C(block_size) in O(caches[].settings). V(512) and V(4096) are accepted with a warning.
        type: str
      settings:
        description:
          - For O(caches[].kind=cache) the only one is C(migration_threshold), in sectors of 512 bytes. It is never below eight blocks.
          - For O(caches[].kind=writecache) the same as in M(cachefleet.storage.lvm_cache). C(high_watermark) and C(low_watermark) (percent),
            C(writeback_jobs) (blocks, V(0) for no limit), C(autocommit_blocks), C(autocommit_time), C(max_age) and C(pause_writeback)
            (milliseconds), and C(metadata_only) (true or false).
            C(fua) and C(nofua) are for persistent memory, and the kernel refuses them on drives.
          - C(block_size) of O(caches[].kind=writecache) is 512 or 4096. Without it 4096, or 512 where the origin is in use or carries something that
            counts on smaller blocks, such as an XFS with sectors of 512 bytes. Blocks of 512 bytes take eight times the memory.
          - V(default) takes a setting away. A setting that is not named is left as it is.
        type: dict
        default: {}
      state:
        description:
          - V(present) attaches the cache, or makes the one that is attached as wanted.
          - V(flushed) leaves it attached, with nothing in it that the origin does not have, in a mode in which nothing can become dirty.
          - V(absent) flushes, proves that nothing is dirty and detaches. The cache device is left empty.
            C(/dev/mapper/NAME) is removed with its unit if nothing uses it. If something does, it stays as a plain way to the origin, also after
            a reboot, and RV(problems) says so until a later run finds it unused.
        type: str
        choices: [present, flushed, absent]
        default: present
      release_devices:
        description:
          - With O(caches[].state=absent), whether the mirror that was made for O(caches[].mirror=true) is stopped and its two devices are made empty.
        type: bool
        default: false
      allow_unmirrored_writeback:
        description:
          - Allows V(writeback), and so O(caches[].kind=writecache), on a cache device that is not mirrored. When that device fails, the newest data
            is lost, and with it usually the file system.
          - A mirror that is degraded counts as none when a cache is attached in or changed to V(writeback).
            A cache that is in V(writeback) already stays as it is, see RV(problems).
        type: bool
        default: false
      flush_timeout:
        description:
          - Seconds that a flush may take. When they are over the task fails and the cache stays attached.
          - Without it a flush may take as long as it needs. It is given up when the number of dirty blocks has not
            fallen for ten minutes.
        type: int
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: A write-through cache in front of a drive
  cachefleet.storage.dm_cache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC100001
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]

- name: A cache of writes on a mirror of two drives
  cachefleet.storage.dm_cache:
    caches:
      - name: mail
        origin: /dev/md/mail
        cache_devices:
          - /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001
          - /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100002
        mirror: true
        kind: writecache
        settings:
          high_watermark: 70
          low_watermark: 60

- name: Flush and take the cache away, and give its drives back
  cachefleet.storage.dm_cache:
    caches:
      - name: mail
        origin: /dev/md/mail
        cache_devices:
          - /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001
          - /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100002
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
    - Prepare /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001 for 893 GiB of data and 349 MiB of metadata
caches:
  description:
    - The caches of the list that are there, as they were read back, in the words that every type of cache has in common.
      Sizes and amounts are in bytes.
  returned: success
  type: list
  elements: dict
  sample:
    - name: images
      type: dm_cache
      kind: cache
      device: /dev/mapper/images
      mode: writethrough
      dirty: 0
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
problems:
  description:
    - What a person should know of raw caches of this host that are left as they are, one sentence each, such as a cache in V(writeback) on a
      mirror that is degraded, a name that stays without a cache because it is in use, or a line of C(/etc/fstab) that names an origin.
  returned: success
  type: list
  elements: str
  sample: []
item:
  description: The name of the cache that failed.
  returned: on failure
  type: str
  sample: images
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import run_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import COMMON_OPTIONS

CACHE_OPTIONS = {
    **COMMON_OPTIONS,
    "kind": {"type": "str", "choices": ["cache", "writecache"], "default": "cache"},
    "mode": {"type": "str", "choices": ["writethrough", "writeback", "passthrough"]},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
