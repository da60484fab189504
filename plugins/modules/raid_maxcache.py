#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_maxcache
short_description: Create, change and delete the SSD cache (maxCache) of Adaptec and Microchip controllers
version_added: 0.2.0
description:
  - Makes SSDs behind a controller the cache of its volumes, sets how each volume uses them, and takes the cache away without losing data.
    The tool is C(arcconf), which is proprietary and must be on the host.
  - There are three generations. Controllers of series 2 to 6 have a pool of SSDs (maxCache 1 and 2, O(controllers[].pool_drives)).
    Series 7 and 8 have one cache volume for all volumes (maxCache 3.0, O(controllers[].cache_volumes) with one entry). SmartRAID has one
    cache volume per volume (maxCache 4, O(controllers[].cache_volumes[].data_volume)).
  - A cache volume with other SSDs, another RAID level or another size than wanted is deleted and created again. Check mode shows the same steps.
  - Before a cache volume is deleted or SSDs leave a pool, write caching is switched off and the module waits until the controller says that
    everything is clean. Nothing is forced, and a controller that does not tell whether it is clean keeps its cache.
  - A run that ends while it waits leaves the cache in place, with write caching off. The next run goes on from there.
  - Whatever a controller cannot do, or does not print and could thus not be proved, is refused before the first change.
options:
  controllers:
    description:
      - The controllers of this host. Volumes and settings that are not named are left as they are. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      provider:
        description:
          - The tool that speaks to the controller. Only V(arcconf) can, which is what V(auto) takes. The others are refused with the reason.
        type: str
        default: auto
        choices: [auto, arcconf, perccli, perccli2, ssacli, storcli, storcli2]
      tool_path:
        description:
          - The tool, if it is neither in E(PATH) nor where its vendor installs it. Needs O(controllers[].provider).
        type: path
      id:
        description:
          - The number of the controller as its tool counts, from 1. V(all) means every controller that has maxCache.
        type: str
        default: all
      serial:
        description: The serial number of the controller, for those whose number may change.
        type: str
      cache_volumes:
        description:
          - The cache volumes (maxCache 3.0 and 4). Those that are not named are left as they are.
        type: list
        elements: dict
        default: []
        suboptions:
          state:
            description:
              - V(present) creates the cache volume, or makes the one that is there as wanted.
              - V(absent) switches write caching off, waits until the controller says clean, and deletes it. Of a pool, every SSD is removed.
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
              - V(simple) and V(0) lose what is only on the SSDs when one of them fails. maxCache 3.0 caches no writes on them.
              - Required when O(controllers[].cache_volumes[].state=present).
            type: str
            choices: [simple, '0', '1', '1E', '5', '10']
          size:
            description:
              - The size, a number with an optional suffix K, M, G or T (powers of 1024), or V(max) for all of the SSDs.
              - maxCache 4 needs a number, of at least 16G and at most the size of the volume. maxCache 3.0 takes at most 1T.
              - A size that differs by at most one percent counts as equal, since controllers round it.
            type: str
            default: max
          data_volume:
            description:
              - The id or name of the volume that it caches (maxCache 4, required there).
              - The cache of the controller must be off for that volume. See M(cachefleet.storage.raid_cache).
            type: str
          line_size:
            description:
              - The size of a cache line in KiB when it is created (maxCache 4). A cache volume that is there keeps the one it has.
            type: int
            choices: [64, 256]
          write:
            description:
              - The write policy of the volume that it caches (maxCache 4). The same as O(controllers[].volumes[].write) of that volume.
              - A cache volume that is created without it is V(writethrough), although the tool's own default is write-back.
              - V(writeback) on a level that is not redundant needs O(controllers[].allow_unprotected).
            type: str
            choices: [writethrough, writeback]
      pool_drives:
        description:
          - The SSDs of the pool (maxCache 1 and 2), no more and no less. An empty list leaves the pool as it is. To empty it, write
            one entry of O(controllers[].cache_volumes) with O(controllers[].cache_volumes[].state=absent).
        type: list
        elements: str
        default: []
      flush_and_fetch_rate:
        description:
          - The priority of flushing and fetching, from 1 to 1000. Up to 50 is low, up to 100 medium, above that high. It is not a time.
        type: int
      dirty_page_threshold:
        description: The percentage of dirty pages at which flushing begins, from 1 to 100.
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
          - How volumes use the cache. An entry that names a volume wins over the entry for V(all), setting by setting.
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
              - Whether reads are cached. maxCache 4 has no such switch, since a volume that has a cache volume is cached.
            type: bool
          write:
            description:
              - V(disabled) sends writes past the SSDs. maxCache 4 has no such switch.
              - V(writethrough) answers a write when it is on the disks.
              - V(writeback) answers a write when it is on the SSDs. The newest data is only there until it is written back.
              - V(instant_writeback) does so at once and for every write. maxCache 4 does not have it.
            type: str
            choices: [disabled, writethrough, writeback, instant_writeback]
          allow_unprotected:
            description:
              - Allows V(writeback) and V(instant_writeback) for this volume on SSDs without redundancy (one SSD, RAID 0, a pool, or a
                cache volume that is degraded). When an SSD fails, the newest data is lost. It does not help where the controller itself refuses.
            type: bool
            default: false
      flush_timeout:
        description:
          - Seconds that waiting for a clean cache may take. When they are over the task fails and the cache stays.
          - Without it the wait takes as long as the controller needs, which can be hours.
        type: int
      allow_unprotected:
        description:
          - Allows the same as O(controllers[].volumes[].allow_unprotected) for O(controllers[].cache_volumes[].write), and for volumes
            that are not listed and get back their write policy when their cache is rebuilt. It is no permission for O(controllers[].volumes).
        type: bool
        default: false
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
notes:
  - A host where everything is as wanted costs one C(arcconf LIST) and one C(arcconf GETCONFIG) per controller, whatever the number of volumes.
  - Volumes that are not listed lose their write caching when their cache is rebuilt, and get it back afterwards. If the run ends in between,
    they do not get it back in the next one. The message names them.
  - If the module is ended from outside while it waits (C(SIGTERM), C(SIGHUP), a connection that breaks, a timeout of the task), it ends
    at once and without a result. The cache is still there, write caching is off for its volumes, and the controller goes on flushing by
    itself. A second run finds that, waits for the rest and goes on.
  - Part of what a controller has may be unreadable, for example a volume whose heading is damaged in the output. Then the cache is neither
    made nor taken away, and nothing is set for V(all). What is named can still be set.
seealso:
  - module: cachefleet.storage.raid_cache
  - module: cachefleet.storage.raid_cache_info
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Two mirrored SSDs in front of the archive, with writes (series 7 and 8)
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

- name: One SSD that only helps reading (series 6)
  cachefleet.storage.raid_maxcache:
    controllers:
      - pool_drives: ["0,0"]
        volumes:
          - id: all
            read: true

- name: A cache volume of its own (SmartRAID)
  cachefleet.storage.raid_maxcache:
    controllers:
      - cache_volumes:
          - data_volume: archive
            drives: ["0,10", "0,11"]
            raid_level: "1"
            size: 200G
            write: writeback

- name: Flush the cache and take it away, within an hour
  cachefleet.storage.raid_maxcache:
    controllers:
      - cache_volumes:
          - state: absent
        flush_timeout: 3600
"""

RETURN = r"""
actions:
  description: What was done, or would be done in check mode, one sentence each. After a failure, what had been done before.
  type: list
  elements: str
  returned: always
  sample:
    - "Stop caching writes of volume archive of controller 1 (Adaptec ASR81605ZQ, arcconf) in maxCache (write: disabled, was writeback)"
    - Wait until controller 1 (Adaptec ASR81605ZQ, arcconf) says that its maxCache is clean
    - Delete maxCache volume 100 (SSDs 0,22 and 0,23, raid_level 1) of controller 1 (Adaptec ASR81605ZQ, arcconf)
progress:
  description: Every look at a cache that is being flushed. The same lines go to the log of the host while it happens.
  type: list
  elements: str
  returned: always, after a failure only if something had been sent
  sample:
    - "arcconf controller 1 maxcache: still dirty after 0 s"
    - "arcconf controller 1 maxcache: clean after 2 s"
controllers:
  description:
    - Every controller that the tool sees, as it is left; in check mode as it was found. See M(cachefleet.storage.raid_cache_info).
  type: list
  elements: dict
  returned: success
problems:
  description: What was not understood in the output of the tool, and what was left out of V(all) because it cannot be done, one sentence each.
  type: list
  elements: str
  returned: success
  sample: []
broke_off:
  description: The action during which a run failed.
  type: str
  returned: on failure after a change
  sample: Wait until controller 1 (Adaptec ASR81605ZQ, arcconf) says that its maxCache is clean
error:
  description:
    - The kind of failure, for example V(refused), V(bad_input), V(device_missing), V(tool_missing), V(not_understood), V(timed_out),
      V(interrupted) or V(not_effective).
  type: str
  returned: on failure
  sample: refused
item:
  description: What failed.
  type: str
  returned: on failure
  sample: arcconf controller 1 volume 0
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.layer import run_module
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import PROVIDERS

CACHE_VOLUME = {
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "drives": {"type": "list", "elements": "str", "default": []},
    "raid_level": {"type": "str", "choices": ["simple", "0", "1", "1E", "5", "10"]},
    "size": {"type": "str", "default": "max"},
    "data_volume": {"type": "str"},
    "line_size": {"type": "int", "choices": [64, 256]},
    "write": {"type": "str", "choices": ["writethrough", "writeback"]},
}
VOLUME = {
    "id": {"type": "str"},
    "name": {"type": "str"},
    "wwn": {"type": "str"},
    "read": {"type": "bool"},
    "write": {"type": "str", "choices": ["disabled", "writethrough", "writeback", "instant_writeback"]},
    "allow_unprotected": {"type": "bool", "default": False},
}
CONTROLLER = {
    "provider": {"type": "str", "default": "auto", "choices": ["auto", *sorted(PROVIDERS)]},
    "tool_path": {"type": "path"},
    "id": {"type": "str", "default": "all"},
    "serial": {"type": "str"},
    "cache_volumes": {"type": "list", "elements": "dict", "default": [], "options": CACHE_VOLUME},
    "pool_drives": {"type": "list", "elements": "str", "default": []},
    "flush_and_fetch_rate": {"type": "int"},
    "dirty_page_threshold": {"type": "int"},
    "read_write_balance": {"type": "dict", "options": {"read": {"type": "int", "required": True}, "write": {"type": "int", "required": True}}},
    "volumes": {"type": "list", "elements": "dict", "default": [], "options": VOLUME},
    "flush_timeout": {"type": "int"},
    "allow_unprotected": {"type": "bool", "default": False},
}


def main():
    controllers = {"type": "list", "elements": "dict", "required": True, "options": CONTROLLER}
    run_module(AnsibleModule(argument_spec={"controllers": controllers}, supports_check_mode=True))


if __name__ == "__main__":
    main()
