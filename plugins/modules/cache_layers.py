#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_layers
short_description: Configure all cache layers of a host in one call
version_added: 1.0.0
description:
  - Reads a host once, plans the steps of all its cache layers together, applies them in the order of the layers, reads each layer back, and
    returns one diff and one list of actions.
  - The order is from the media up. Caches that are removed precede everything else. Block queues come after the caches. The storage
    network follows them, and precedes only the layers of devices that are missing or attached by a network; an AoE target has all
    of its caches configured before its network.
  - Lists that contradict each other are an error before anything is changed, such as a device that two caches use, or an entry for the
    queue of a device that is removed.
  - The plan of a layer takes into account what the layers before it will have changed, such as write caches of drives below a cache
    that ignores flushes. A layer is read and planned again if a layer before it was changed.
  - The storage network is only planned, because its steps have an order over several hosts. If it has to be changed, RV(pending) names it,
    and the layers that depend on it, which RV(waiting) names, are configured by a second call. The playbook
    C(cachefleet.storage.site) does this.
  - If a tool of a layer is missing, the layers that do not depend on that layer are configured, and the module fails with a message that names
    both.
  - The entries of all lists have the options of the module of their layer. The modules of the layers produce the same steps.
options:
  drives:
    description:
      - The write caches of drives, with the suboptions of O(cachefleet.storage.drive_write_cache#module:drives).
    type: list
    elements: dict
    default: []
  controllers:
    description:
      - The RAID controllers, with the suboptions of O(cachefleet.storage.raid_cache#module:controllers).
      - C(maxcache) of a controller and of a volume has the suboptions of O(cachefleet.storage.raid_maxcache#module:controllers), as in the
        variable C(raid_cache_controllers) of the role P(cachefleet.storage.raid_cache#role).
    type: list
    elements: dict
    default: []
  caches:
    description:
      - The SSD caches. C(type) is V(lvm_cache), V(dm_cache), V(bcache), V(flashcache) or V(enhanceio), and the other suboptions are those of the
        module of this name.
      - With C(migrate=true), the cache may replace a cache of another type. If there is one, RV(pending) contains V(block_cache), and no SSD cache
        is changed.
    type: list
    elements: dict
    default: []
  flashcache:
    description:
      - The tools of flashcache.
    type: dict
    suboptions:
      tool_dirs:
        description:
          - Directories that are searched for the tools before the default directories.
        type: list
        elements: path
        default: []
      kernel_module:
        description:
          - The name of the kernel module.
        type: str
        default: flashcache
  enhanceio:
    description:
      - The tools of EnhanceIO.
    type: dict
    suboptions:
      tool_dirs:
        description:
          - Directories that are searched for the tools before the default directories.
        type: list
        elements: path
        default: []
      kernel_module:
        description:
          - The name of the kernel module.
        type: str
        default: enhanceio
  queues:
    description:
      - The block queues, with the suboptions of O(cachefleet.storage.block_queue#module:devices).
    type: list
    elements: dict
    default: []
  queue_module_options:
    description:
      - Options of kernel modules, with the suboptions of O(cachefleet.storage.block_queue#module:module_options).
    type: list
    elements: dict
    default: []
  queues_exclusive:
    description:
      - The same as O(cachefleet.storage.block_queue#module:exclusive).
    type: bool
    default: false
  network:
    description:
      - The storage network, with the options of M(cachefleet.storage.storage_network). It is planned and not changed.
    type: dict
  layers:
    description:
      - The layers to configure, by the names of their roles. The lists of all layers are checked for contradictions.
      - By default, all layers are configured.
    type: list
    elements: str
    choices: [drive_write_cache, raid_cache, block_cache, storage_network, block_queue]
    default: []
  allow_pending:
    description:
      - Whether steps may be left to roles, which RV(pending) names.
      - Set to V(false) after these roles were run. If there still are such steps, the module fails and lists them.
    type: bool
    default: true
  verify:
    description:
      - Whether all layers are planned once more after something was changed. The module fails if there still are steps. Drive write caches are
        read back as they are changed, so that they alone are not planned again.
      - Each layer is read back in any case. This finds what a layer has changed in those before it, such as a controller that resets the write
        caches of its drives.
      - Without effect in check mode.
    type: bool
    default: false
  benchmark:
    description:
      - A measurement to start in the same call, with the options of M(cachefleet.storage.fio_runner) for C(state=started). It starts once all
        layers are as specified, so that a sweep contacts a host once for each variant and not several times.
      - It is not started in check mode, if RV(pending) or RV(waiting) contain anything, if RV(not_running) contains a cache, or if
        M(cachefleet.storage.fio_runner) would refuse it. RV(benchmark) then contains the reason, and the layers are configured all the same.
      - The module reports a change only if a layer was changed.
      - Options that M(cachefleet.storage.fio_runner) does not accept are an error before anything is changed.
    type: dict
  settle:
    description:
      - Seconds to wait before O(benchmark) is started, if any layer was changed.
    type: float
    default: 0
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
seealso:
  - module: cachefleet.storage.drive_write_cache
  - module: cachefleet.storage.raid_cache
  - module: cachefleet.storage.raid_maxcache
  - module: cachefleet.storage.lvm_cache
  - module: cachefleet.storage.block_queue
  - module: cachefleet.storage.storage_network
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Configure all cache layers
  cachefleet.storage.cache_layers:
    drives:
      - device: /dev/disk/by-id/ata-ST10000NM0086_ZA2A
        write_cache: disabled
    caches:
      - name: images
        type: lvm_cache
        origin: vg0/images
        cache_devices: [/dev/disk/by-id/nvme-SAMSUNG_MZQL2960HCJR_S64F]
    queues:
      - match: {rotational: false}
        profile: ssd
"""

RETURN = r"""
actions:
  description:
    - The actions that were performed, or would be performed in check mode, one sentence each, in the order of the layers.
    - The steps of the storage network are in this list in check mode only.
    - If the task fails, those that were performed are C(diff.actions), because Ansible prints everything else that a failed task returns.
  type: list
  elements: str
  returned: success
  sample: ["Disable the write cache of /dev/disk/by-id/ata-ST10000NM0086_ZA2A (sda), provider ata"]
steps:
  description:
    - The steps of RV(actions), in the same order.
    - The C(risks) of a step are V(power_loss) if writes that are acknowledged and not flushed can be lost in a power failure, V(device_loss) if
      the cache devices will contain data that the origin does not have, V(interruption) if I/O or the network stops for moments, V(flush) if
      dirty blocks are written first, V(overwrite) if a device that must be empty is labelled or wiped, and V(slower_writes).
    - If the task fails, they are C(diff.steps).
  type: list
  elements: dict
  returned: success
  contains:
    layer: {description: 'The layer, by the name of its module.', type: str}
    item: {description: 'What changes, as it is named in the options.', type: str}
    attribute: {description: 'What of it changes.', type: str}
    action: {description: 'The sentence in RV(actions).', type: str}
    risks: {description: 'The risks.', type: list, elements: str}
pending:
  description:
    - The roles whose tasks have to be run for this host, V(block_cache) for a cache that replaces one of another type, and
      V(storage_network). This module is called again after them for the layers of RV(waiting).
    - Always empty for a host that is configured as described.
  type: list
  elements: str
  returned: success, or failure because of O(allow_pending)
  sample: [storage_network]
waiting:
  description:
    - The layers that depend on those of RV(pending) and were not changed, by the names of their roles.
    - On C(storage_network) depend layers of a device that is not there yet, or is attached by a network, and what comes after them.
  type: list
  elements: str
  returned: success
  sample: [block_queue]
follows:
  description: Whether this is a call after the roles of RV(pending), with O(allow_pending=false).
  type: bool
  returned: with O(allow_pending=false)
done:
  description: The layers that are configured as described, by the names of their modules. In check mode, those whose steps are known.
  type: list
  elements: str
  returned: always
  sample: [drive_write_cache, lvm_cache, block_queue]
not_done:
  description: The layers that are not configured, by the names of their modules.
  type: list
  elements: str
  returned: failure
layer:
  description: The layer that failed.
  type: str
  returned: failure of one layer
broke_off:
  description: The action that failed.
  type: str
  returned: failure of a step
left_out:
  description:
    - The reason for each layer that was left out because a tool is missing, by the name of the module.
    - The task fails then, and these are C(diff.left_out); its message has them too.
  type: dict
  returned: success
undetermined:
  description: The reason for each layer whose steps check mode cannot predict, because they depend on those of layers before it.
  type: dict
  returned: success
not_running:
  description:
    - The caches that are configured as described and are not running, each with the reason, a sentence. None of their settings takes effect.
  type: list
  elements: str
  returned: success, or failure because of a missing tool
benchmark:
  description:
    - C(started) is whether the measurement of O(benchmark) is running. If it is, the other keys are the return values of
      M(cachefleet.storage.fio_runner). If it is not, C(reason) is the reason, a sentence.
  type: dict
  returned: success with O(benchmark)
  sample: {started: true, attached: false, fio_version: fio-3.33}
layers:
  description:
    - The return values of each layer, by the name of its module, except V(actions), V(changed) and V(diff).
  type: dict
  returned: success
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import run_host
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import MEASUREMENT, argument_spec


def main():
    module = AnsibleModule(argument_spec={**argument_spec(), **MEASUREMENT}, supports_check_mode=True)
    run_host(module, module.params)


if __name__ == "__main__":
    main()
