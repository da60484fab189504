#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sweep_step
short_description: "Step of the role sweep: configure the cache layers of a host and start a measurement in one call"
version_added: 1.0.0
description:
  - M(cachefleet.storage.cache_layers) runs this module on a host if it has a C(benchmark). It is not intended to be used directly.
  - It is a module of its own, so that hosts on which nothing is measured do not receive the code of the runner.
options:
  layers:
    description:
      - The options of M(cachefleet.storage.cache_layers), except C(benchmark) and C(settle).
    type: dict
    required: true
  benchmark:
    description:
      - The same as O(cachefleet.storage.cache_layers#module:benchmark).
    type: dict
    required: true
  settle:
    description:
      - The same as O(cachefleet.storage.cache_layers#module:settle).
    type: float
    default: 0
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
seealso:
  - module: cachefleet.storage.cache_layers
  - module: cachefleet.storage.fio_runner
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Disable the write cache of a drive and measure
  cachefleet.storage.cache_layers:
    drives:
      - device: /dev/disk/by-id/ata-ST10000NM0086_ZA2A
        write_cache: disabled
    benchmark:
      campaign: caches
      variant: disabled
      host: storage1
      steps:
        - cells:
            - name: randwrite
              target: {device: /dev/vg0/scratch, allow_data_loss: true}
              job: {rw: randwrite, bs: 4k, runtime: 60, time_based: true}
"""

RETURN = r"""
benchmark:
  description:
    - The same as RV(cachefleet.storage.cache_layers#module:benchmark). The other return values are those of M(cachefleet.storage.cache_layers), too.
  type: dict
  returned: success
  sample: {started: true, attached: false, fio_version: fio-3.33}
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._sweep.step import run_host_and_measure


def main() -> None:
    arguments = {
        "layers": {"type": "dict", "required": True},
        "benchmark": {"type": "dict", "required": True},
        "settle": {"type": "float", "default": 0},
    }
    run_host_and_measure(AnsibleModule(argument_spec=arguments, supports_check_mode=True))


if __name__ == "__main__":
    main()
