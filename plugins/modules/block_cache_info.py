#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: block_cache_info
short_description: Every SSD cache of a host, of whatever type, and how fast it becomes clean
version_added: 0.3.0
description:
  - Reads every LVM cache, device-mapper cache, bcache, flashcache and EnhanceIO cache of a host, in one vocabulary.
  - A type that cannot be read is no failure. It is in RV(problems), and the others are told all the same.
  - With O(sample_seconds) it looks twice and tells how fast the dirty blocks of each cache are written back.
options:
  names:
    description:
      - Only these caches. Each is the name of a cache, or its device or its origin by any path or by the name in the kernel.
      - An empty list means all. A word that means no cache is in RV(problems).
    type: list
    elements: str
    default: []
  types:
    description: Only caches of these types. An empty list means all.
    type: list
    elements: str
    choices: [lvm_cache, dm_cache, bcache, flashcache, enhanceio]
    default: []
  sample_seconds:
    description:
      - Seconds between two looks, for RV(drain). With V(0) there is one look and no pace.
    type: float
    default: 0
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
seealso:
  - module: cachefleet.storage.cache_stack_info
  - module: cachefleet.storage.lvm_cache
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Read every SSD cache of the host
  cachefleet.storage.block_cache_info:
  register: found

- name: How long until the cache of the database is clean
  cachefleet.storage.block_cache_info:
    names: [vg0/database]
    sample_seconds: 10
  register: database

- name: Say it
  ansible.builtin.debug:
    msg: "{{ item.dirty }} bytes are dirty, {{ item.seconds_until_clean | default('no end in sight', true) }} seconds to go"
  loop: "{{ database.drain }}"
"""

RETURN = r"""
caches:
  description: The caches, by the name of their device. Sizes and amounts are bytes, and null is "not known" or "does not apply", never 0.
  returned: success
  type: list
  elements: dict
  contains:
    type: {description: 'The module that manages it.', type: str, sample: lvm_cache}
    name: {description: 'What the host calls it.', type: str, sample: vg0/images}
    kind: {description: 'The construction, for example V(cachepool), V(cachevol) or V(writecache).', type: str}
    device: {description: 'Stable path of the cached device, what is mounted; null if it is not there.', type: str}
    device_name: {description: 'Its name in the kernel.', type: str}
    origin: {description: 'Stable path of the slow device.', type: str}
    origin_name: {description: 'Its name in the kernel.', type: str}
    cache_devices: {description: 'Stable paths of what the cache lies on.', type: list, elements: str}
    cache_device_names: {description: 'Their names in the kernel.', type: list, elements: str}
    mode: {description: 'V(writethrough), V(writeback), V(writearound), V(passthrough) or V(none).', type: str}
    policy: {description: 'The replacement policy.', type: str}
    block_size: {description: 'Size of what is cached as one.', type: int}
    size: {description: 'What the cache can hold.', type: int}
    used: {description: 'What it holds.', type: int}
    dirty: {description: 'What it holds that the origin does not have.', type: int}
    dirty_share: {description: 'RV(caches[].dirty) as a part of RV(caches[].size), from 0 to 1.', type: float}
    hit_ratio:
      description: The part of what was looked up that was found, from 0 to 1, reads and writes together, since the kernel counts.
      type: float
    redundancy: {description: 'Of what holds the dirty blocks: V(mirrored), V(degraded) or V(none).', type: str}
    sends_flushes: {description: 'Whether a flush of the cached device reaches the devices below it.', type: bool}
    state:
      description: V(ok), V(needs_check), V(read_only), V(failed), V(cache_missing), V(inactive) or V(inconsistent).
      type: str
    asked: {description: 'The words of O(names) that mean it.', type: list, elements: str}
    problem: {description: 'If the state is not V(ok): what is wrong and what a person can do.', type: str}
    settings: {description: 'The settings in force, by the names a user writes.', type: dict}
    counters: {description: 'Hits, misses and errors, as far as the type counts them.', type: dict}
    histogram: {description: 'Requests by size in bytes, where the type counts them.', type: dict}
drain:
  description: How fast each of RV(caches) becomes clean, in the same order. Empty without O(sample_seconds).
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: 'The name of the cache.', type: str}
    type: {description: 'Its type.', type: str}
    dirty: {description: 'Dirty bytes at the second look; null if not known.', type: int}
    bytes_per_second: {description: 'By how much they fell; below zero if they grew; null if not known.', type: float}
    seconds_until_clean: {description: 'Seconds until nothing is dirty at that pace; null if it does not fall.', type: float}
problems:
  description: What could not be read or found, one sentence each.
  returned: success
  type: list
  elements: str
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey import host_caches as survey
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
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
        module.fail_json(msg="sample_seconds is below zero: write how many seconds lie between two looks, or 0 for one look.", error="bad_input")
    runner = Runner()
    types = module.params["types"] or TYPES
    try:
        devices = read_devices(runner)
        found, drains = survey.sample(lambda: survey.read_caches(devices, runner, types=types), module.params["sample_seconds"], time.monotonic, time.sleep)
    except StorageError as error:
        module.fail_json(**error.as_result())
    chosen = survey.select(found, module.params["names"], devices)
    # That a cache is not there may be just what is asked for; it stands in the result.
    for problem in found.problems:
        module.warn(problem)
    names = {(cache.type, cache.name) for cache in chosen.caches}
    module.exit_json(
        changed=False,
        caches=[
            {**survey.as_plain(cache), "asked": [word for word in module.params["names"] if survey.is_meant(cache, word, devices)]} for cache in chosen.caches
        ],
        drain=[drain.as_plain() for drain in drains if (drain.type, drain.name) in names],
        problems=list(chosen.problems),
    )


if __name__ == "__main__":
    main()
