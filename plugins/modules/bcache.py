#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bcache
short_description: Create, attach, change, flush and detach bcache caches
version_added: 1.0.0
description:
  - Formats slow devices as bcache backing devices and attaches them to a cache set on a fast device, changes the mode and the settings
    while the cached device is in use, makes settings persistent that are not in a superblock, and removes the cache after flushing it.
  - The whole list is read, planned and applied in one call. On a host that is already configured as described, the module reads sysfs
    and runs C(udevadm) once, regardless of the number of caches.
  - The path of the cached device is C(/dev/bcache/by-uuid/UUID), see RV(caches). C(/dev/bcache0) may be a different device after a reboot.
  - bcache stores a superblock in front of the data, so an origin with existing content is refused. An origin that is already a backing
    device is used without formatting it. It remains a backing device when its cache is removed, because its data is only accessible through it.
  - Nothing is forced. A backing device that waits for a missing cache device is reported. Starting it without the cache
    (C(echo 1 > running)) can lose data and is never done.
  - Before a cache is detached, or leaves V(writeback), it is flushed, and the kernel must report that it is clean in a mode in which no block
    can become dirty. Before a cache set is stopped, its index must not have a dirty block of any backing device.
notes:
  - When a cache device fails in V(writethrough), Linux 6.1 serves blocks that it cannot read there from the origin, and disables the cache after
    C(io_error_limit) errors. Requests in flight at that moment can fail. The superblock of the backing device still refers to the failed set.
    When the same device is available again, after a reset or a reboot of the host, the kernel attaches it automatically
    and B(serves stale reads from before the failure). Until the module has attached another cache device, this is
    reported in RV(problems). With C(stop_when_cache_set_failed) V(always) the cached device is stopped instead, which prevents stale reads
    but makes the device unavailable.
  - When a cache device fails in V(writeback) with dirty data on it, the kernel stops the cached device, all requests fail, and a file system
    on it becomes read-only. Reconnect the device and reboot the host, which starts both again. Unmounting the file system instead can trigger a
    kernel bug, after which bcache does not respond until the reboot.
requirements:
  - bcache-tools
  - The debugfs of the kernel at C(/sys/kernel/debug), where systemd mounts it, to stop a cache set.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._caches.bcache
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: cachefleet.storage.lvm_cache
"""

EXAMPLES = r"""
- name: Create a write-through cache for an empty disk
  cachefleet.storage.bcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC11
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001]
  register: cache

- name: Create a file system on the cached device
  community.general.filesystem:
    dev: "{{ cache.caches[0].device }}"
    fstype: ext4

- name: Create a mirrored write-back cache for random and sequential requests
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

- name: Flush the cache before an SSD is replaced
  cachefleet.storage.bcache:
    caches:
      - name: images
        origin: /dev/disk/by-id/ata-ST4000NM0035_ZC11
        state: flushed
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, in this order.
  returned: always
  type: list
  elements: str
  sample:
    - Create a bcache cache device on /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001 with buckets of 512 KiB
    - Attach the cache on /dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR_S665NE0T100001 to /dev/disk/by-id/ata-ST4000NM0035_ZC11
caches:
  description:
    - The present state of the caches of the list that are attached or whose cache device is missing.
  returned: success
  type: list
  elements: dict
  contains:
    device:
      description:
        - The path to mount, V(/dev/bcache/by-uuid/UUID), or the name of the kernel as long as udev does not show this path.
        - V(null) if the device is not running.
      type: str
      returned: always
      sample: /dev/bcache/by-uuid/b608ddc5-a95d-4405-9906-04c5cb56b7ef
    mode:
      description: The mode in effect.
      type: str
      returned: always
      sample: writethrough
    state:
      description: V(ok), V(cache_missing), V(failed) or V(inconsistent).
      type: str
      returned: always
      sample: ok
    problem:
      description: The problem and the possible actions if the state is not V(ok).
      type: str
      returned: always
      sample: ""
    dirty:
      description: Bytes of dirty data, with the precision of the kernel's output.
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
    - Warnings about the state of the bcache devices of this host, one sentence each, for example a missing
      cache device, or V(writeback) on a degraded mirror.
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

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import BcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import CACHE_OPTIONS, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner


def main() -> None:
    module = AnsibleModule(
        argument_spec={"caches": {"type": "list", "elements": "dict", "required": True, "options": CACHE_OPTIONS}},
        supports_check_mode=True,
    )
    run_layer(module, lambda: BcacheLayer(Runner(), read_items(module.params["caches"])))


if __name__ == "__main__":
    main()
