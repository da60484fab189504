#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dm_cache
short_description: Attach, change and detach SSD caches of device-mapper without LVM
version_added: 1.0.0
description:
  - Attaches a fast device as a dm-cache or dm-writecache to any block device, preserving its content, changes its mode and
    settings while it is in use, and removes it after flushing it.
  - The cached device is available as C(/dev/mapper/NAME). A systemd unit activates it at boot before file systems are
    checked and mounted. Use C(/dev/mapper/NAME) in C(/etc/fstab), never a UUID or a label, because the origin has the
    same one. The root file system cannot be cached with this module.
  - An attached cache is moved to another device, size, chunk size or kind while it is in use. It is flushed, verified to be clean,
    removed from C(/dev/mapper/NAME), which then uses the origin alone, and created again.
  - The whole list is read, planned and applied in one call. On a host that is already configured as described, the number of commands is
    constant.
  - Nothing is forced. The fast device must be empty, which means that it reads as zeros and is not open in any process.
    The origin must not be in use when it is cached for the first time.
  - The kernel refuses to mount an origin while it is cached, but other software may access it. If LVM is used on C(/dev/mapper/NAME), exclude
    the origin with a devices file, or with a C(global_filter) in C(lvm.conf) that ends with C(r|.*|).
  - If the cache device is missing at boot, C(/dev/mapper/NAME) does not appear. Do not use the origin instead. A cache in V(writeback)
    has the newest data, and writes to the origin would not be in the cache when its device is available again.
  - A line of C(/etc/fstab) that refers to the origin, by a path, UUID or label, is reported as a warning and in RV(problems).
  - An active mapping with a name of the list that this collection did not create is refused. All other mappings are not changed.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
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
          - The name is also part of the name of its unit, C(cachefleet-dm_cache-NAME.service).
        type: str
        required: true
      origin:
        description:
          - The persistent path of the device to cache, for example in C(/dev/disk/by-id).
          - A drive, a partition, a logical volume, an MD array or a volume of a controller.
          - Its content is preserved. A drive with partitions cannot be cached, but each of its partitions can.
          - To flush or remove the cache, C(/dev/mapper/NAME) of this cache is accepted too.
        type: str
        required: true
      cache_devices:
        description:
          - The persistent path of the fast device, for example in C(/dev/disk/by-id), or the two paths of a mirror.
          - It must be empty. It is used for the metadata and the data of this cache only.
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
      kind:
        description:
          - V(cache) is dm-cache, which caches frequently used blocks for reading and writing.
          - V(writecache) is dm-writecache. It caches writes only, until they are written back to the origin.
          - A writecache keeps an entry for each block in memory.
        type: str
        choices: [cache, writecache]
        default: cache
      mode:
        description:
          - V(writethrough) acknowledges a write once it is on the origin.
          - V(writeback) acknowledges a write once it is on the cache device. Until it is written back, the newest data is only there.
          - V(passthrough) serves all I/O from the origin and invalidates written blocks in the cache.
          - Defaults to V(writethrough), and to V(writeback), the only mode, for O(caches[].kind=writecache).
        type: str
        choices: [writethrough, writeback, passthrough]
      size:
        description:
          - Size of the cache, a number with an optional suffix K, M, G or T (powers of 1024), or a percentage such as V(50%).
          - It is the size of the cached data, and a percentage is that of the device. The metadata of dm-cache needs additional space. By default
            the cache uses the whole device.
          - A size (not a percentage) that differs from that of an attached cache recreates the cache.
        type: str
      chunk_size:
        description:
          - Size of a block of the cache.
          - A multiple of 32K from 32K to 1G. Defaults to 64K, or the smallest larger size with at most one million blocks.
          - Not supported for O(caches[].kind=writecache). See C(block_size) in O(caches[].settings).
        type: str
      settings:
        description:
          - Settings of the cache. V(default) resets a setting to its default. Settings that are not listed are not changed.
          - For O(caches[].kind=cache) the only setting is C(migration_threshold), in sectors of 512 bytes. It is at least eight blocks.
          - For O(caches[].kind=writecache) the same as in M(cachefleet.storage.lvm_cache). C(high_watermark) and C(low_watermark) (percent),
            C(writeback_jobs) (blocks, V(0) is unlimited), C(autocommit_blocks), C(autocommit_time), C(max_age) and C(pause_writeback)
            (milliseconds), and C(metadata_only) (true or false).
            C(fua) and C(nofua) are for persistent memory, and the kernel refuses them on drives.
          - C(block_size) of O(caches[].kind=writecache) is 512 or 4096. Defaults to 4096, or to 512 if the origin is in use or its content
            needs smaller blocks, such as an XFS with sectors of 512 bytes. Blocks of 512 bytes need eight times the memory.
        type: dict
        default: {}
      state:
        description:
          - V(present) creates the cache, or changes the existing cache as described.
          - V(flushed) leaves the cache attached, writes back all dirty blocks, and sets a mode in which no block can become dirty.
          - V(absent) flushes the cache, verifies that no block is dirty, detaches the cache and removes it.
          - What is not found is an error. V(flushed) requires a cache of this type on O(caches[].origin). V(absent) requires that O(caches[].origin)
            exists and belongs to no other cache of any type, see O(caches[].expect).
          - When the cache is removed, the cache device is wiped. C(/dev/mapper/NAME) is removed with its unit if it is not in use. If it is in
            use, it remains as a linear mapping of the origin, also after a reboot, and is reported in RV(problems) until a later run finds it
            unused.
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
          - The same applies to O(caches[].kind=writecache), which only has this mode.
          - A degraded mirror counts as not mirrored when a cache is attached in V(writeback) or changed to it.
            A cache that is already in V(writeback) is not changed, see RV(problems).
        type: bool
        default: false
      flush_timeout:
        description:
          - Timeout of a flush in seconds. When it expires, the task fails and the cache stays attached.
          - Without a timeout, a flush is only aborted if the amount of dirty data has not decreased for ten minutes.
        type: int
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: Attach a write-through cache to a drive
  cachefleet.storage.dm_cache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC100001
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]

- name: Attach a writecache that is mirrored on two drives
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

- name: Flush and remove the cache, and release its drives
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
  description: The actions that were performed, or would be performed in check mode, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Prepare /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001 for 893 GiB of data and 349 MiB of metadata
caches:
  description:
    - The existing caches of the list as read back after the changes, with the keys that all types of caches have in common.
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
    - Warnings about the state of the device-mapper caches of this host, one sentence each, such as a cache in V(writeback) on a
      degraded mirror, a mapping in use that remains without a cache, or a line of C(/etc/fstab) that refers to an origin.
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

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import DmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import CACHE_OPTIONS, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_layer(module, lambda: DmCacheLayer(Runner(), read_items(module.params["caches"])))


if __name__ == "__main__":
    main()
