#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lvm_cache
short_description: Attach, change, flush and detach LVM caches of logical volumes
version_added: 0.1.0
description:
  - Puts a fast device, or two that mirror each other, as a dm-cache or a dm-writecache in front of logical volumes that exist, changes
    mode and settings while the volume is in use, flushes the cache, and takes it away again.
  - The whole list is read, planned and applied in one call; a host where everything is as wanted costs one report of LVM
    and a look at its block devices, whatever the number of caches.
  - Nothing is forced. A cache device that is neither empty nor a free part of the same volume group is refused,
    and so is everything that LVM would only do with C(--force). A device is not empty when it carries a signature or the
    metadata of any block cache, when the kernel uses it, or when a loop device lies on it.
  - Before a cache is detached, replaced or leaves V(writeback), it is flushed, and the kernel must report that no block is dirty,
    in a mode in which none can become dirty.
  - Another size, chunk size, kind or cache device, or a mirror instead of one device, can only be had by another cache. The old one is flushed,
    proven clean and detached, and the new one made and attached, all in one run. Whether the new one fits is looked at before the old one
    is touched. The volume stays in use, and is slower until the new cache has filled.
  - A run that was cut off at any moment is continued by the next one.
  - A cache that misses its device, has failed or has damaged metadata is reported with what a person can do, and left alone.
    The one exception is a cache that wrote through, with which nothing can be lost, and which LVM takes away without C(--force).
    When such a device is pulled the kernel answers errors for what was cached, it does not go on with the origin alone.
    O(caches[].state=absent) brings the volume back into service; so does O(caches[].state=present) with cache devices that are there,
    which puts a new cache in its place.
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
          - What this cache is called in messages and differences.
        type: str
        required: true
      origin:
        description:
          - The logical volume to cache, as V(volume group/logical volume). It must exist and be active.
          - Linear, striped and raid volumes can be cached. A snapshot, a thin pool, a thin volume and a volume
            with another kind of cache cannot.
        type: str
        required: true
      cache_devices:
        description:
          - The fast device, or the two of a mirror, by paths that still name them after a reboot, for example below C(/dev/disk/by-id).
          - Each is either a physical volume of the origin's volume group with free space,
            or an empty device, which is then made one and added to the volume group.
          - A link that more than one device claims, such as the one of two drives with one serial number, is refused.
          - Required when O(caches[].state=present), and with O(caches[].release_devices=true).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Whether the cache is kept on two O(caches[].cache_devices), as a RAID1 volume of LVM. With O(caches[].kind=cachepool) both
            its data and its metadata are.
          - Not with O(caches[].kind=writecache), for which LVM takes no mirrored volume. Name one MD RAID1 array instead, which counts as mirrored
            for every kind.
          - The two are not made equal first. A cache reads no block that it has not written, and writes to both,
            so that the mirror protects from the first write on.
          - A mirror that has lost a device goes on, see RV(problems). LVM then refuses every change of the volume but taking away
            a cache that writes through.
        type: bool
        default: false
      kind:
        description:
          - V(cachepool) is a dm-cache that keeps data and metadata in two volumes, which C(lvconvert --repair) can repair.
          - V(cachevol) is a dm-cache that keeps both in one volume. A damaged one cannot be repaired.
          - V(writecache) is a dm-writecache in one volume. It holds writes only, until they are on the origin, and no reads.
            It takes about 2 GiB of memory for 100 GiB in blocks of 4096 bytes, and eight times as much in blocks of 512 bytes. A warning says so
            when it takes more than a quarter of the memory.
          - There is no option for the replacement policy. The only one that serves, smq, has no settings, LVM gives a cachevol
            the kernel's default whatever it is told, and the policy cleaner is what O(caches[].state=flushed) is for.
        type: str
        choices: [cachepool, cachevol, writecache]
        default: cachepool
      mode:
        description:
          - V(writethrough) answers a write when it is on the origin. The default, but not of a writecache.
          - V(writeback) answers a write when it is on the cache device. The newest data is only there until it is written back.
            The only mode of O(caches[].kind=writecache), and its default.
          - V(passthrough) serves everything from the origin and takes written blocks out of the cache.
        type: str
        choices: [writethrough, writeback, passthrough]
      size:
        description:
          - Size of the cache volume, a number with an optional suffix K, M, G or T (powers of 1024), or a share of the
            free space of the device such as V(50%).
          - With V(cachepool) the metadata and LVM's spare of it come on top. Otherwise the metadata is inside.
          - Without it the cache takes all that is free.
          - A size that differs from that of an attached cache replaces the cache. A share, or no size, is only looked at when a cache is made.
        type: str
      chunk_size:
        description:
          - Size of the blocks that are cached, a multiple of 32K from 32K to 1G.
          - For O(caches[].kind=writecache) the former name of C(block_size) in O(caches[].settings). V(512) and V(4096) are accepted with a warning.
          - Without it 64K, or as much more as it takes to stay below one million chunks.
          - Another size than that of an attached cache replaces the cache.
        type: str
      settings:
        description:
          - Settings of the cache. V(default) takes a setting away. A setting that is not named is left as it is.
          - Of dm-cache the only one that does something is C(migration_threshold), in sectors of 512 bytes.
            The kernel raises it to eight chunks.
          - Of dm-writecache C(high_watermark) and C(low_watermark), the fill in percent at which writing back begins and ends (0 to 100, the kernel's
            own are 50 and 45); C(writeback_jobs), blocks that are written back at once (0 is no limit); C(autocommit_blocks) and
            C(autocommit_time) in milliseconds (1 to 3600000), after which writes are committed without being asked to; C(max_age) in milliseconds
            (1 to 86400000), after which a block is written back; C(pause_writeback) in milliseconds (0 to 60000), for which
            writing back waits after a write that went to the origin; and C(metadata_only) (true or false), with which only metadata of a file
            system is cached. All of them change while the volume is in use. LVM 2.03.16 does not know C(pause_writeback) and C(metadata_only), which
            is then a failure after everything else has been done.
          - C(block_size) of dm-writecache is 512 or 4096. Without it LVM takes what the file system on the origin needs, or 4096. It is fixed
            when the cache is attached, so that another one replaces the cache. 4096 is refused if the file system writes smaller units.
        type: dict
        default: {}
      state:
        description:
          - V(present) attaches the cache, or makes the one that is attached as wanted.
          - V(flushed) leaves it attached, and sees to it that it holds nothing that the origin does not have and that nothing can become dirty in it.
            A dm-cache then writes through, a writecache only writes back. Where there is no cache nothing is done.
          - V(absent) flushes, proves that nothing is dirty, detaches and removes the cache volume.
            The cache device stays in the volume group unless O(caches[].release_devices=true).
        type: str
        choices: [present, flushed, absent]
        default: present
      release_devices:
        description:
          - With O(caches[].state=absent) also takes the O(caches[].cache_devices) out of the volume group and makes them no physical volumes any more,
            those that hold nothing else. A warning names what keeps one.
        type: bool
        default: false
        version_added: 0.3.0
      allow_unmirrored_writeback:
        description:
          - Allows V(writeback), and so O(caches[].kind=writecache), on a cache device that is not mirrored. When that device fails,
            the newest data is lost, and with it usually the file system.
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
  - module: community.general.lvol
  - module: community.general.lvg
"""

EXAMPLES = r"""
- name: A write-through cache in front of vg0/images
  cachefleet.storage.lvm_cache:
    caches:
      - name: images
        origin: vg0/images
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]

- name: A write-back cache of 200 GiB on a device that may be lost
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

- name: A mirrored write-back cache over two SSDs
  cachefleet.storage.lvm_cache:
    caches:
      - name: databases
        origin: vg0/databases
        cache_devices:
          - /dev/disk/by-id/ata-INTEL_SSDSC2KG480G8_BTYG1
          - /dev/disk/by-id/ata-INTEL_SSDSC2KG480G8_BTYG2
        mirror: true
        mode: writeback

- name: A writecache that begins to write back when it is 40 % full
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

- name: Before an SSD is replaced, leave nothing in the cache that is nowhere else
  cachefleet.storage.lvm_cache:
    caches:
      - name: databases
        origin: vg0/databases
        state: flushed

- name: Flush and take the cache away, and give its SSD back
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
  description: What was done, or in check mode would be done, in this order.
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
    - What a person should know of the caches of this host as they are left, and what to do about it, one sentence each, for example
      that a mirror is degraded, a cache device is missing, a cache has failed or its metadata need a check.
  returned: success
  type: list
  elements: str
  sample: []
caches:
  description:
    - The caches of the list as they were read back, those that are there. In check mode as they were found.
    - Sizes and amounts are bytes. What is not known or does not apply is null, never 0.
  returned: success
  type: list
  elements: dict
  contains:
    type: {description: Always V(lvm_cache)., type: str}
    name: {description: The cached volume as volume group/logical volume., type: str}
    kind: {description: "V(cachepool), V(cachevol) or V(writecache).", type: str}
    device: {description: Path of the cached volume., type: str}
    device_name: {description: Its kernel name., type: str}
    origin: {description: Path of the slow volume under the cache., type: str}
    origin_name: {description: Its kernel name., type: str}
    cache_devices: {description: Stable paths of what the cache lies on., type: list, elements: str}
    cache_device_names: {description: Their kernel names., type: list, elements: str}
    mode: {description: What the kernel does., type: str}
    policy: {description: The replacement policy that the kernel uses., type: str}
    block_size: {description: Bytes of one chunk of a dm-cache or one block of a writecache., type: int}
    size: {description: Size of the cache volume., type: int}
    used: {description: How much of it holds something., type: int}
    dirty: {description: How much of it the origin does not have yet., type: int}
    redundancy: {description: "V(mirrored), V(degraded) or V(none): what protects what is dirty.", type: str}
    sends_flushes: {description: Whether a flush reaches the devices below., type: bool}
    state: {description: "V(ok), V(needs_check), V(read_only), V(failed), V(cache_missing) or V(inactive).", type: str}
    problem: {description: What is wrong if the state is not V(ok) and what a person can do., type: str}
    settings: {description: The settings in force., type: dict}
    counters: {description: "Hits and misses of reads and writes, as the kernel counts them since the table was loaded.", type: dict}
    histogram: {description: Empty; only flashcache counts requests by size., type: dict}
item:
  description: The name of the cache that failed.
  returned: on failure
  type: str
  sample: images
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import run_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import KINDS, MODES
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import COMMON_OPTIONS

CACHE_OPTIONS = {
    **COMMON_OPTIONS,
    "kind": {"type": "str", "choices": list(KINDS), "default": "cachepool"},
    "mode": {"type": "str", "choices": list(MODES)},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
