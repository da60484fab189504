#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lvm_cache
short_description: Attach, change and detach LVM caches of logical volumes
version_added: 0.1.0
description:
  - Puts a fast device as a dm-cache in front of logical volumes that exist, changes its mode and settings while the volume is in use,
    and takes it away again after flushing it.
  - The whole list is read, planned and applied in one call; a host where everything is as wanted costs one C(lvs), one C(pvs)
    and a look at its block devices, whatever the number of caches.
  - Nothing is forced. A cache device that is neither empty nor a free part of the same volume group is refused,
    and so is everything that LVM would only do with C(--force). A device is not empty when it carries a signature or the
    metadata of any block cache, when the kernel uses it, or when a loop device lies on it.
  - Before a cache is detached or leaves V(writeback), it is flushed, and the kernel must report that no block is dirty.
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
          - The fast device, by a path that still names it after a reboot, for example below C(/dev/disk/by-id).
          - It is either a physical volume of the origin's volume group with free space,
            or an empty device, which is then made one and added to the volume group.
          - A link that more than one device claims, such as the one of two drives with one serial number, is refused.
          - The list takes one device. For a mirror name one MD RAID1 array.
          - Required when O(caches[].state=present).
        type: list
        elements: path
        default: []
      mirror:
        description:
          - Whether the cache is mirrored over several devices. Only V(false) is possible so far.
        type: bool
        default: false
      kind:
        description:
          - V(cachepool) keeps data and metadata in two volumes, which C(lvconvert --repair) can repair.
          - V(cachevol) keeps both in one volume. A damaged one cannot be repaired.
          - A cache that is attached keeps its kind. Another kind is refused until the cache has been detached.
        type: str
        choices: [cachepool, cachevol]
        default: cachepool
      mode:
        description:
          - V(writethrough) answers a write when it is on the origin.
          - V(writeback) answers a write when it is on the cache device. The newest data is only there until it is written back.
          - V(passthrough) serves everything from the origin and takes written blocks out of the cache.
        type: str
        choices: [writethrough, writeback, passthrough]
        default: writethrough
      size:
        description:
          - Size of the cache volume, a number with an optional suffix K, M, G or T (powers of 1024), or a share of the
            free space of the device such as V(50%).
          - With V(cachepool) the metadata and LVM's spare of it come on top. With V(cachevol) the metadata is inside.
          - Without it the cache takes all that is free.
          - A size (not a share) that differs from that of an attached cache is refused until the cache has been detached.
        type: str
      chunk_size:
        description:
          - Size of the blocks that are cached, a multiple of 32K from 32K to 1G.
          - Without it 64K, or as much more as it takes to stay below one million chunks.
          - Another size than that of an attached cache is refused until the cache has been detached.
        type: str
      settings:
        description:
          - Settings of dm-cache. The only one that does something is C(migration_threshold), in sectors of 512 bytes.
            The kernel raises it to eight chunks.
          - V(default) takes a setting away. A setting that is not named is left as it is.
        type: dict
        default: {}
      state:
        description:
          - V(present) attaches the cache, or makes the one that is attached as wanted.
          - V(absent) flushes, proves that nothing is dirty, detaches and removes the cache volume.
            The cache device stays in the volume group.
        type: str
        choices: [present, absent]
        default: present
      allow_unmirrored_writeback:
        description:
          - Allows V(writeback) on a cache device that is not mirrored. When that device fails, the newest data is lost,
            and with it usually the file system.
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

- name: Flush and take the cache away
  cachefleet.storage.lvm_cache:
    caches:
      - name: scratch
        origin: vg0/scratch
        state: absent
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
    - What a person should know of caches of this host that are left as they are, one sentence each, namely a cache in V(writeback)
      on a mirror that is degraded.
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

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import run_module

CACHE_OPTIONS = {
    "name": {"type": "str", "required": True},
    "origin": {"type": "str", "required": True},
    "cache_devices": {"type": "list", "elements": "path", "default": []},
    "mirror": {"type": "bool", "default": False},
    "kind": {"type": "str", "choices": ["cachepool", "cachevol"], "default": "cachepool"},
    "mode": {"type": "str", "choices": ["writethrough", "writeback", "passthrough"], "default": "writethrough"},
    "size": {"type": "str"},
    "chunk_size": {"type": "str"},
    "settings": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "allow_unmirrored_writeback": {"type": "bool", "default": False},
    "flush_timeout": {"type": "int"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
