#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_maxcache
short_description: Create, change and delete the SSD cache (maxCache) of Adaptec and Microchip controllers
version_added: 1.0.0
description:
  - Configures SSDs of a controller as a cache for its volumes, sets how each volume uses the cache, and removes it without losing data.
    The tool is C(arcconf), which is proprietary and must be installed on the host.
  - There are three generations. Controllers of series 2 to 6 have a pool of SSDs (maxCache 1 and 2, O(controllers[].pool_drives)).
    Series 7 and 8 have one cache volume for all volumes (maxCache 3.0, O(controllers[].cache_volumes) with one entry). SmartRAID has one
    cache volume per volume (maxCache 4, O(controllers[].cache_volumes[].data_volume)).
  - A cache volume whose SSDs, RAID level or size differ from the description is deleted and created again. Check mode shows the same steps.
  - Before a cache volume is deleted or SSDs are removed from a pool, write caching is disabled and the module waits until the controller reports
    that the cache is clean. Nothing is forced. If a controller does not report whether the cache is clean, the cache is kept.
  - A run that ends while it waits leaves the cache in place with write caching disabled. The next run continues from there.
  - Settings that a controller does not support, or does not print and that therefore cannot be verified, are refused before the first change.
options:
  controllers:
    description:
      - The controllers of this host. Volumes and settings that are not listed are not changed. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      provider:
        description:
          - The tool that manages the controller. Only V(arcconf) is supported, and V(auto) uses it. The others are refused with the reason.
        type: str
        default: auto
        choices: [auto, storcli2, perccli2, storcli, perccli, arcconf, ssacli]
      tool_path:
        description:
          - Path of the tool, if it is neither in E(PATH) nor in the vendor's installation directory. Needs O(controllers[].provider).
        type: path
      id:
        description:
          - The number of the controller in its tool, starting with 1. V(all) means every controller that has maxCache.
        type: str
        default: all
      serial:
        description: The serial number of the controller, where its number may change.
        type: str
      cache_volumes:
        description:
          - The cache volumes (maxCache 3.0 and 4). Cache volumes that are not listed are not changed.
        type: list
        elements: dict
        default: []
        suboptions:
          state:
            description:
              - V(present) creates the cache volume, or changes the existing one as described.
              - V(absent) disables write caching, waits until the controller reports that the cache is clean, and deletes the cache volume. For a
                pool, every SSD is removed.
            type: str
            default: present
            choices: [present, absent]
          drives:
            description:
              - The SSDs, each as channel and device as C(arcconf) reports them, for example V(0,4). They must be free.
              - Required when O(controllers[].cache_volumes[].state=present).
            type: list
            elements: str
            default: []
          raid_level:
            description:
              - The RAID level. V(simple) is a single SSD. V(1E) only with maxCache 3.0, V(10) only with maxCache 4.
              - With V(simple) and V(0), data that is only on the SSDs is lost if one of them fails. maxCache 3.0 does not cache writes with them.
              - Required when O(controllers[].cache_volumes[].state=present).
            type: str
            choices: [simple, '0', '1', '1E', '5', '10']
          size:
            description:
              - The size, a number with an optional suffix K, M, G or T (powers of 1024), or V(max) for the full capacity of the SSDs.
              - maxCache 4 needs an explicit size, from 16G to the size of the volume. maxCache 3.0 supports at most 1T.
              - Sizes that differ by at most one percent are treated as equal, because controllers round them.
            type: str
            default: max
          data_volume:
            description:
              - The ID or name of the cached volume (maxCache 4 only, where it is required).
              - The cache of the controller must be disabled for that volume. See M(cachefleet.storage.raid_cache).
            type: str
          line_size:
            description:
              - The cache line size in KiB at creation (maxCache 4). The line size of an existing cache volume is not changed.
            type: int
            choices: [64, 256]
          write:
            description:
              - The write policy of the cached volume (maxCache 4). The same as O(controllers[].volumes[].write) of that volume.
              - Defaults to V(writethrough) for a new cache volume, although the tool's own default is write-back.
              - V(writeback) on a RAID level without redundancy needs O(controllers[].allow_unprotected).
            type: str
            choices: [writethrough, writeback]
      pool_drives:
        description:
          - The complete list of SSDs of the pool (maxCache 1 and 2). An empty list does not change the pool. To remove all SSDs, use
            one entry in O(controllers[].cache_volumes) with O(controllers[].cache_volumes[].state=absent).
        type: list
        elements: str
        default: []
      flush_and_fetch_rate:
        description:
          - The priority of flushing and fetching, from 1 to 1000. Up to 50 is low, up to 100 medium, above that high. This is not a time.
        type: int
      dirty_page_threshold:
        description: The percentage of dirty pages at which flushing starts, from 1 to 100.
        type: int
      read_write_balance:
        description: How the cache is divided between reads and writes.
        type: dict
        suboptions:
          read:
            description: The weight of reads, from 1 to 10.
            type: int
            required: true
          write:
            description: The weight of writes, from 1 to 10.
            type: int
            required: true
      volumes:
        description:
          - How volumes use the cache. Each setting of an entry for a specific volume takes precedence over that of the entry for V(all).
        type: list
        elements: dict
        default: []
        suboptions:
          id:
            description: The number of the volume, or V(all).
            type: str
          name:
            description: The name of the volume.
            type: str
          wwn:
            description: The NAA identifier of the volume, as in C(/dev/disk/by-id/wwn-0x…).
            type: str
          read:
            description:
              - Whether reads are cached. Not supported by maxCache 4, which always caches a volume that has a cache volume.
            type: bool
          write:
            description:
              - V(disabled) bypasses the SSDs for writes. Not supported by maxCache 4.
              - V(writethrough) acknowledges a write once it is on the disks.
              - V(writeback) acknowledges a write once it is on the SSDs. Until it is written back, the newest data is only there.
              - V(instant_writeback) does so immediately and for every write. Not supported by maxCache 4.
            type: str
            choices: [disabled, writethrough, writeback, instant_writeback]
          allow_unprotected:
            description:
              - Allow V(writeback) and V(instant_writeback) for this volume on SSDs without redundancy (one SSD, RAID 0, a pool, or a
                degraded cache volume). If an SSD fails, the newest data is lost. It does not override limitations of the controller.
              - The permission of the same name in M(cachefleet.storage.raid_cache) is a different one, for power failures.
            type: bool
            default: false
      flush_timeout:
        description:
          - Seconds to wait for a clean cache. When the timeout expires, the task fails and the cache is kept.
          - By default there is no timeout. Flushing can take hours.
        type: int
      allow_unprotected:
        description:
          - The same permission as O(controllers[].volumes[].allow_unprotected) for O(controllers[].cache_volumes[].write), and for volumes
            that are not listed and whose write policy is restored when their cache is rebuilt. It does not apply to O(controllers[].volumes).
        type: bool
        default: false
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
notes:
  - On a host that is already configured as described, the module runs one C(arcconf LIST) and one C(arcconf GETCONFIG) per controller,
    regardless of the number of volumes.
  - When a cache is rebuilt, write caching is disabled for volumes that are not listed, and restored afterwards. If the run ends in between,
    the next run does not restore it. The message names these volumes.
  - If the module is terminated while it waits (C(SIGTERM), C(SIGHUP), a lost connection, a timeout of the task), it exits
    immediately and without a result. The cache still exists, write caching is disabled for its volumes, and the controller continues flushing.
    The next run detects this, waits for the flush and continues.
  - If a part of the controller's output cannot be parsed, for example a volume with a damaged heading, the cache is neither
    created nor removed, and nothing is set for V(all). Volumes that are listed explicitly can still be set.
seealso:
  - module: cachefleet.storage.raid_cache
  - module: cachefleet.storage.raid_cache_info
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Cache reads and writes of a volume on two mirrored SSDs (series 7 and 8)
  cachefleet.storage.raid_maxcache:
    controllers:
      - provider: arcconf
        id: "1"
        cache_volumes:
          - drives: ["0,22", "0,23"]
            raid_level: "1"
        flush_and_fetch_rate: 100
        read_write_balance: {read: 3, write: 1}
        volumes:
          - name: archive
            read: true
            write: instant_writeback

- name: Cache reads on one SSD (series 6)
  cachefleet.storage.raid_maxcache:
    controllers:
      - pool_drives: ["0,0"]
        volumes:
          - id: all
            read: true

- name: Create a cache volume for one volume (SmartRAID)
  cachefleet.storage.raid_maxcache:
    controllers:
      - cache_volumes:
          - data_volume: archive
            drives: ["0,10", "0,11"]
            raid_level: "1"
            size: 200G
            write: writeback

- name: Flush and remove the cache within an hour
  cachefleet.storage.raid_maxcache:
    controllers:
      - cache_volumes:
          - state: absent
        flush_timeout: 3600
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each. After a failure, the completed actions.
  type: list
  elements: str
  returned: always
  sample:
    - "Stop caching writes of volume archive of controller 1 (Adaptec ASR81605ZQ, arcconf) in maxCache (write: disabled, was writeback)"
    - Wait until controller 1 (Adaptec ASR81605ZQ, arcconf) reports that its maxCache is clean
    - Delete maxCache volume 100 (SSDs 0,22 and 0,23, raid_level 1) of controller 1 (Adaptec ASR81605ZQ, arcconf)
progress:
  description: The progress of a flush, one line per reading. The same lines are written to the log of the host during the flush.
  type: list
  elements: str
  returned: always, after a failure only if a command was sent
  sample:
    - "arcconf controller 1 maxcache: still dirty after 0 s"
    - "arcconf controller 1 maxcache: clean after 2 s"
controllers:
  description:
    - Every controller that the tool reports, as read after the changes, in check mode before them. See M(cachefleet.storage.raid_cache_info).
  type: list
  elements: dict
  returned: success
problems:
  description: Tool output that could not be parsed, and settings of V(all) that were skipped because they cannot be set, one sentence each.
  type: list
  elements: str
  returned: success
  sample: []
broke_off:
  description: The action during which a run failed.
  type: str
  returned: on failure after a change
  sample: Wait until controller 1 (Adaptec ASR81605ZQ, arcconf) reports that its maxCache is clean
error:
  description:
    - The kind of failure, for example V(refused), V(bad_input), V(device_missing), V(tool_missing), V(not_understood), V(timed_out),
      V(interrupted) or V(not_effective).
  type: str
  returned: on failure
  sample: refused
item:
  description: The item that failed.
  type: str
  returned: on failure
  sample: arcconf controller 1 volume 0
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.layer import RaidMaxCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import CONTROLLER, parse_controllers


def main():
    controllers = {"type": "list", "elements": "dict", "required": True, "options": CONTROLLER}
    module = AnsibleModule(argument_spec={"controllers": controllers}, supports_check_mode=True)
    run_layer(module, lambda: RaidMaxCacheLayer.with_tools(Runner(), parse_controllers(module.params["controllers"]), log=module.log))


if __name__ == "__main__":
    main()
