#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bcache
short_description: Make, attach, change, flush and detach bcache
version_added: 0.3.0
description:
  - Makes slow devices backing devices of bcache and attaches them to a cache set on a fast device, changes the mode and the settings
    while the cached device is in use, keeps over a reboot what no superblock holds, and takes the cache away again after flushing it.
  - The whole list is read, planned and applied in one call; a host where everything is as wanted costs one look into sysfs
    and one C(udevadm), whatever the number of caches.
  - What is used is C(/dev/bcache/by-uuid/UUID), see RV(caches). C(/dev/bcache0) may be another device after a reboot.
  - bcache puts a superblock in front of the data, so an origin with anything on it is refused. An origin that is a backing device
    already is used as it is. A backing device stays one when its cache is taken away, because its data is only reachable through it.
  - Nothing is forced. A backing device that waits for a cache device that is missing is reported. Running it without
    (C(echo 1 > running)) can lose data and is never done.
  - Before a cache is detached, or leaves V(writeback), it is flushed, and the kernel must say that it is clean in a mode in which nothing
    becomes dirty. Before a cache set is taken down, its index must hold no dirty block of any backing device.
notes:
  - When a cache device fails under V(writethrough), Linux 6.1 serves what it cannot read there from the origin, gives the cache up after
    C(io_error_limit) errors and goes on without. A request that is under way at that moment can end in an error. The superblock of the
    backing device still names the lost set. When the same device comes back, after a reset or a restart of the host, the kernel attaches
    it again by itself and B(answers reads with what was true before it failed). Until the module has attached another cache device this is
    reported in RV(problems). With C(stop_when_cache_set_failed) V(always) the cached device is stopped instead, which rules that out at the
    price of the service.
  - When a cache device fails under V(writeback) with dirty data on it, the kernel stops the cached device, every request fails, and a file system
    on it becomes read-only. Connect the device again and restart the host, which starts both as they were. Unmounting instead was seen to end in
    an error of the kernel itself, after which nothing of bcache answers until the restart.
requirements:
  - bcache-tools
  - The kernel's debugfs at C(/sys/kernel/debug), where systemd mounts it, to take a cache set down.
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
      - Several origins may name the same cache devices and then share one cache set. It is taken down with the last of them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - What this cache is called in messages and differences. Its first 32 characters become the label of the bcache.
        type: str
        required: true
      origin:
        description:
          - The slow device, by a path that still names it after a reboot, for example below C(/dev/disk/by-id).
          - It must be empty, or a backing device of bcache already.
        type: str
        required: true
      cache_devices:
        description:
          - The fast device, or the two of a mirror, each by a path that still names it after a reboot.
          - It must be empty or carry the cache set. Another device than the one that is attached means that the cache is flushed, detached
            and made anew there; what it was on is left empty when nobody else is attached to it.
          - Required when O(caches[].state=present).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Whether an MD RAID1 array is made of two cache devices and the cache put onto it.
        type: bool
        default: false
      kind:
        description:
          - There is one kind.
        type: str
        choices: [bcache]
        default: bcache
      mode:
        description:
          - V(writethrough) answers a write when it is on the origin, and keeps a copy in the cache.
          - V(writeback) answers a write when it is on the cache device. The newest data is only there until it is written back.
          - V(writearound) writes to the origin only. What is read is cached.
          - V(none) caches nothing new.
          - It lives in the superblock of the backing device.
        type: str
        choices: [writethrough, writeback, writearound, none]
        default: writethrough
      size:
        description:
          - Not for bcache, which takes the whole device. Anything but V(100%) is refused. Name a partition to give it less.
        type: str
      chunk_size:
        description:
          - Not for bcache, and refused. See O(caches[].bucket_size) and O(caches[].block_size).
        type: str
      bucket_size:
        description:
          - What the cache allocates and discards at once, a power of two from 4K to 8M. It should be the erase block of the SSD.
          - Without it 512K for a new cache, and an attached one keeps what it has. Another one than that of an attached cache is a planned
            flush, detach, making anew and attach of every origin that shares it.
          - The kernel takes no cache device with less than 513 buckets.
        type: str
      block_size:
        description:
          - The blocks of a backing device that is going to be made, a power of two from 512 to 4K.
          - Without it what the devices below write at once. That of a backing device that exists cannot be changed, and another is refused.
        type: str
      settings:
        description:
          - Settings of the kernel. V(default) sets what the kernel begins with. A setting that is not named is left as it is.
          - Those of the backing device are C(sequential_cutoff) (bytes, such as V(4M); V(0) caches everything), C(writeback_percent) (V(0) to V(40),
            the share of the cache that may be dirty), C(writeback_delay) (seconds, to V(500)), C(writeback_rate_minimum) (sectors of 512 bytes per
            second), C(writeback_rate_update_seconds) (V(1) to V(60)), C(readahead_cache_policy) (V(all), V(meta-only)) and
            C(stop_when_cache_set_failed) (V(auto), V(always)).
          - Those of the cache set, which all who share it must agree on, are C(congested_read_threshold_us) and C(congested_write_threshold_us)
            (microseconds, V(0) never bypasses the cache), C(io_error_limit) (errors before the cache is given up) and C(journal_delay_ms).
          - Those of the cache device, which live in its superblock, are C(cache_replacement_policy) (V(lru), V(fifo), V(random)) and C(discard).
          - All others are set again at boot by C(/etc/udev/rules.d/99-cachefleet-bcache.rules).
        type: dict
        default: {}
      state:
        description:
          - V(present) makes and attaches what is missing, or makes what is there as wanted.
          - V(flushed) leaves the cache attached with nothing in it that the origin does not have, in a mode in which nothing can become dirty.
            It is what a cache device is brought to before it is replaced. A cache that is not there is no error.
          - V(absent) flushes, proves that nothing is dirty, detaches, and makes the cache device empty when nobody else is attached to it.
            The origin stays a backing device without a cache, and what lies on it stays in use.
        type: str
        choices: [present, flushed, absent]
        default: present
      release_devices:
        description:
          - With O(caches[].state=absent) and O(caches[].mirror=true), whether the mirror that was made for the cache is stopped and its members
            made empty. The backing device is not touched.
        type: bool
        default: false
      allow_unmirrored_writeback:
        description:
          - Allows V(writeback) on a cache device that is not mirrored. When that device fails, the newest data is lost,
            and with it usually the file system.
        type: bool
        default: false
      flush_timeout:
        description:
          - Seconds that a flush may take. When they are over the task fails and the cache stays attached.
          - Without it a flush may take as long as it needs. It is given up when the dirty amount has not fallen for ten minutes.
          - A flush begins when the pause that the kernel is in has ended, which lasts C(writeback_delay) at most.
        type: int
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: A write-through cache in front of an empty disk
  cachefleet.storage.bcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC11
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]
  register: cache

- name: A file system on it
  community.general.filesystem:
    dev: "{{ cache.caches[0].device }}"
    fstype: ext4

- name: A write-back cache on a mirror, for random and sequential requests alike
  cachefleet.storage.bcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC11
        cache_devices:
          - /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001
          - /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100002
        mirror: true
        mode: writeback
        settings:
          sequential_cutoff: 0
          congested_read_threshold_us: 0
          congested_write_threshold_us: 0

- name: Nothing dirty, before an SSD is replaced
  cachefleet.storage.bcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC11
        state: flushed
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Make /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001 a cache device of bcache with buckets of 512 KiB
    - Attach the cache on /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001 to /dev/disk/by-id/ata-ST4000NM0035_ZC11
caches:
  description:
    - The caches of the list as they are now, those that are attached or that miss their cache device.
  returned: success
  type: list
  elements: dict
  contains:
    device:
      description: The path to mount, V(/dev/bcache/by-uuid/UUID). V(null) if it is not served.
      type: str
      returned: always
      sample: /dev/bcache/by-uuid/b608ddc5-a95d-4405-9906-04c5cb56b7ef
    mode:
      description: The mode in force.
      type: str
      returned: always
      sample: writethrough
    state:
      description: V(ok), V(cache_missing), V(failed) or V(inconsistent).
      type: str
      returned: always
      sample: ok
    problem:
      description: If the state is not V(ok), what is wrong and what a person can do.
      type: str
      returned: always
      sample: ""
    dirty:
      description: Bytes that are only in the cache, as exactly as the kernel prints them.
      type: int
      returned: always
      sample: 0
  sample: []
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing) or V(not_effective).
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
    - What a person should know of the bcaches of this host that are left as they are, one sentence each, for example one that misses its
      cache device, or one in V(writeback) on a mirror that is degraded.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import run_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import MODES
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import COMMON_OPTIONS

CACHE_OPTIONS = {
    **COMMON_OPTIONS,
    "kind": {"type": "str", "choices": ["bcache"], "default": "bcache"},
    "mode": {"type": "str", "choices": list(MODES), "default": "writethrough"},
    "bucket_size": {"type": "str"},
    "block_size": {"type": "str"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
