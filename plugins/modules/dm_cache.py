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
  - cachefleet.storage._caches.dm_cache
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
