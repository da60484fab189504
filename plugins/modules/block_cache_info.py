#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: block_cache_info
short_description: Read the SSD caches of a host and their flush rate
version_added: 1.0.0
description:
  - Returns the SSD caches of a host, of every type, with one vocabulary.
  - A type that cannot be read is not a failure. It is reported in RV(problems), and the other types are returned.
  - With O(sample_seconds) the caches are read twice, and the rate at which dirty blocks are written back is returned for each cache.
options:
  names:
    description:
      - Only return these caches. Each entry is the name of a cache, or its device or its origin by any path or kernel name.
      - An empty list returns all caches. Entries that match no cache are reported in RV(problems).
    type: list
    elements: str
    default: []
  sample_seconds:
    description:
      - Seconds between two readings, for RV(drain). With V(0) the caches are read once and no rate is returned.
      - If no cache is dirty at the first reading, there is no second one, and all rates are V(0).
    type: float
    default: 0
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._caches.types
seealso:
  - module: cachefleet.storage.cache_stack_info
  - module: cachefleet.storage.lvm_cache
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Read all SSD caches of the host
  cachefleet.storage.block_cache_info:
  register: found

- name: Estimate the time until the cache of the database is clean
  cachefleet.storage.block_cache_info:
    names: [vg0/database]
    sample_seconds: 10
  register: database

- name: Print the estimate
  ansible.builtin.debug:
    msg: "{{ item.dirty }} bytes are dirty, {{ item.seconds_until_clean | default('unknown', true) }} seconds remaining"
  loop: "{{ database.drain }}"
"""

RETURN = r"""
caches:
  description: The caches, sorted by device name. Sizes and amounts are in bytes. Values that are unknown or not applicable are null, never 0.
  returned: success
  type: list
  elements: dict
  contains:
    type: {description: 'The module that manages it.', type: str, sample: lvm_cache}
    name: {description: 'The name of the cache on the host.', type: str, sample: vg0/images}
    kind: {description: 'The kind of cache, for example V(cachepool), V(cachevol) or V(writecache).', type: str}
    device: {description: 'Persistent path of the cached device, which can be mounted; null if it does not exist.', type: str}
    device_name: {description: 'Kernel name of the cached device.', type: str}
    origin: {description: 'Persistent path of the slow device.', type: str}
    origin_name: {description: 'Kernel name of the slow device.', type: str}
    cache_devices: {description: 'Persistent paths of the devices of the cache.', type: list, elements: str}
    cache_device_names: {description: 'Kernel names of the devices of the cache.', type: list, elements: str}
    mode: {description: 'V(writethrough), V(writeback), V(writearound), V(passthrough) or V(none).', type: str}
    policy: {description: 'The replacement policy.', type: str}
    block_size: {description: 'Size of a cache block.', type: int}
    size: {description: 'Capacity of the cache.', type: int}
    used: {description: 'Used part of the cache.', type: int}
    dirty: {description: 'Amount of data that is not yet on the origin.', type: int}
    metadata_size: {description: 'Capacity for the metadata of the cache (lvmcache and dm-cache).', type: int}
    metadata_used: {description: 'Used part of the metadata. A cache whose metadata are full becomes read-only.', type: int}
    dirty_share: {description: 'RV(caches[].dirty) as a fraction of RV(caches[].size), from 0 to 1.', type: float}
    hit_ratio:
      description: The hit ratio of reads and writes, from 0 to 1, since the start of the kernel counters.
      type: float
    redundancy: {description: 'Redundancy of the dirty blocks, V(mirrored), V(degraded) or V(none).', type: str}
    layout: {description: 'How the cache lies on several devices that are no mirror of two; empty if it does not.', type: str}
    sends_flushes: {description: 'Whether flushes of the cached device reach the underlying devices.', type: bool}
    state:
      description: V(ok), V(needs_check), V(read_only), V(failed), V(cache_missing), V(inactive), V(inconsistent) or V(unknown).
      type: str
    matched: {description: 'The entries of O(names) that match the cache.', type: list, elements: str}
    problem: {description: 'The problem and the possible actions if the state is not V(ok).', type: str}
    settings: {description: 'The settings in effect, with the names of the module options.', type: dict}
    counters: {description: 'Hits, misses and errors, if the type counts them.', type: dict}
    histogram: {description: 'Requests by size in bytes, if the type counts them.', type: dict}
drain:
  description: The flush rate of each of RV(caches), in the same order. Empty without O(sample_seconds).
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: 'The name of the cache.', type: str}
    type: {description: 'The type of the cache.', type: str}
    dirty: {description: 'Dirty bytes at the second reading; null if unknown.', type: int}
    bytes_per_second: {description: 'Decrease of the dirty bytes per second, negative if they increase; null if unknown.', type: float}
    seconds_until_clean: {description: 'Estimated seconds until no block is dirty; null if the dirty bytes do not decrease.', type: float}
problems:
  description: What could not be read or found, one sentence each.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey import host_caches as survey
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "default": []},
            "types": {"type": "list", "elements": "str", "choices": list(TYPES), "default": []},
            "sample_seconds": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    if module.params["sample_seconds"] < 0:
        module.fail_json(msg="sample_seconds must not be negative: set the seconds between two readings, or 0 for one reading.", error="bad_input")
    runner = Runner()
    types = module.params["types"] or TYPES
    with failing(module):
        devices = read_devices(runner)
        found, drains = survey.sample(lambda: survey.read_caches(devices, runner, types=types), module.params["sample_seconds"], time.monotonic, time.sleep)
    chosen = survey.select(found, module.params["names"], devices)
    # A missing cache may be the expected result, so it is reported and not an error.
    for problem in found.problems:
        module.warn(problem)
    names = {(cache.type, cache.name) for cache in chosen.caches}
    caches = []
    for cache in chosen.caches:
        matched = [word for word in module.params["names"] if survey.is_meant(cache, word, devices)]
        caches.append({**survey.cache_to_dict(cache), "matched": matched})
    module.exit_json(
        changed=False,
        caches=caches,
        drain=[drain.to_dict() for drain in drains if (drain.type, drain.name) in names],
        problems=list(chosen.problems),
    )


if __name__ == "__main__":
    main()
