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
        type: str
        required: true
      origin:
        description:
          - The logical volume to cache, as V(volume group/logical volume). It must exist and be active.
          - Linear, striped and RAID volumes can be cached, and the data of a thin pool or VDO pool, by the name of the pool or of its hidden
            data volume. Snapshots, thin volumes and volumes with another type of cache cannot.
          - To flush or remove it, a thin volume or VDO volume of the pool can be named too, and a snapshot for the cache of its origin.
        type: str
        required: true
      cache_devices:
        description:
          - The persistent path of the fast device, for example in C(/dev/disk/by-id), or the two paths of a mirror.
          - Each is either a physical volume of the origin's volume group with free space,
            or an empty device (it reads as zeros and is not open in any process), which is initialised as a physical volume and added to the volume group.
          - An ambiguous link, such as that of two drives with the same serial number, is refused.
          - Required when O(caches[].state=present).
          - Also required with O(caches[].release_devices=true).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Whether the cache is mirrored on the two O(caches[].cache_devices).
          - LVM RAID1 volumes are used. With O(caches[].kind=cachepool) both data and metadata are mirrored.
          - Not supported with O(caches[].kind=writecache), for which LVM does not accept a mirrored volume. Use one MD RAID1 array as the cache
            device instead, which counts as mirrored for every kind.
          - The mirror is created without an initial synchronisation. A cache only reads blocks that it has written to both devices,
            so that it is protected from the first write on.
          - A degraded mirror remains in use, see RV(problems). LVM then refuses every change of the volume except the removal of a
            cache in V(writethrough).
        type: bool
        default: false
      kind:
        description:
          - V(cachepool) is a dm-cache that keeps data and metadata in two volumes, which C(lvconvert --repair) can repair.
          - V(cachevol) is a dm-cache that keeps data and metadata in one volume. A damaged one cannot be repaired.
          - V(writecache) is dm-writecache. It caches writes only, until they are written back to the origin.
          - A writecache needs about 2 GiB of memory for 100 GiB with blocks of 4096 bytes, and eight times as much with blocks of 512 bytes. A warning is
            returned if it needs more than a quarter of the memory.
          - There is no option for the replacement policy. The only useful policy, smq, has no settings, LVM always uses the kernel's default for
            a cachevol, and O(caches[].state=flushed) replaces the policy cleaner.
        type: str
        choices: [cachepool, cachevol, writecache]
        default: cachepool
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
          - A percentage is that of the free space of the device.
          - With V(cachepool) the metadata volume and LVM's spare metadata volume need additional space. Otherwise the size includes the metadata.
          - By default all free space is used.
          - A size that differs from that of an attached cache replaces the cache. A percentage, or no size, is only evaluated at creation.
        type: str
      chunk_size:
        description:
          - Size of a block of the cache.
          - A multiple of 32K from 32K to 1G. Defaults to 64K, or the smallest larger size with at most one million blocks.
          - Not supported for O(caches[].kind=writecache). See C(block_size) in O(caches[].settings).
          - A chunk size that differs from that of an attached cache replaces the cache.
        type: str
      settings:
        description:
          - Settings of the cache. V(default) resets a setting to its default. Settings that are not listed are not changed.
          - For dm-cache the only effective setting is C(migration_threshold), in sectors of 512 bytes.
            The kernel raises it to at least eight chunks.
          - For dm-writecache, C(high_watermark) and C(low_watermark) are the fill percentages at which writeback starts and stops (0 to 100, the
            kernel's defaults are 50 and 45). C(writeback_jobs) is the number of blocks that are written back in parallel (0 is unlimited).
            C(autocommit_blocks), and C(autocommit_time) in milliseconds (1 to 3600000), limit how long writes remain uncommitted. C(max_age) in
            milliseconds (1 to 86400000) is the age after which a block is written back. C(pause_writeback) in milliseconds (0 to 60000) is the
            delay of writeback after a write to the origin. With C(metadata_only) (true or false) only metadata of a file system is cached. All of
            them can be changed while the volume is in use. LVM 2.03.16 does not support C(pause_writeback) and C(metadata_only); the task then fails
            after all other changes were made.
          - C(block_size) of dm-writecache is 512 or 4096. By default LVM uses the block size of the file system on the origin, or 4096. It is fixed
            when the cache is attached; changing it replaces the cache. 4096 is refused if the file system writes smaller blocks.
        type: dict
        default: {}
      state:
        description:
          - V(present) creates the cache, or changes the existing cache as described.
          - V(flushed) leaves the cache attached, writes back all dirty blocks, and sets a mode in which no block can become dirty.
          - V(absent) flushes the cache, verifies that no block is dirty, detaches the cache and removes it.
          - What is not found is an error. V(flushed) requires a cache of this type on O(caches[].origin). V(absent) requires that O(caches[].origin)
            exists and belongs to no other cache of any type, see O(caches[].expect).
          - Flushed, a dm-cache is in writethrough mode, and a writecache only writes back.
          - When the cache is removed, the cache device stays in the volume group unless O(caches[].release_devices=true).
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
          - They are removed from the volume group and their physical volume labels are wiped. A device that contains other volumes is kept,
            with a warning that names them.
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
      allow_boot_volume:
        description:
          - Allow a cache of a volume that the host boots from, which is C(/), C(/usr), C(/boot), the swap space that it resumes from, or what its kernel
            command line names.
          - The cache is only attached if every initramfs has the drivers of the cache and C(cache_check), and the devices file of LVM if it has one.
            The message contains the command for this host.
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
