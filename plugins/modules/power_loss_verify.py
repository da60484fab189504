#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: power_loss_verify
short_description: "Step of the role power_loss_test: determine which acknowledged writes are present after a power cut"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Reads every block that M(cachefleet.storage.power_loss_witness) has in its log as acknowledged, on the host that wrote it, after that has
    booted again. A block is kept if it has the last acknowledged write of its place, or a later one that was in flight.
  - Nothing is written. A block that cannot be read fails the module, and never counts as kept.
  - Fails if the log is of another run, or if the target is another device by now.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
options:
  run:
    description: The ID of the run.
    type: str
    required: true
  log:
    description: The log of the witness, copied to this host.
    type: path
    required: true
  timeout:
    description: Seconds to wait for the target, whose caches are assembled after the boot.
    type: float
    default: 120
seealso:
  - module: cachefleet.storage.power_loss_writer
  - module: cachefleet.storage.power_loss_witness
"""

EXAMPLES = r"""
- name: Verify a run
  cachefleet.storage.power_loss_verify:
    run: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
    log: /var/lib/cachefleet/power_loss/5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a.log
"""

RETURN = r"""
verification:
  description: The result of the run.
  returned: success
  type: dict
  contains:
    verdict: {description: 'V(kept), V(lost) or V(proves_nothing).', type: str, sample: kept}
    reason: {description: One sentence., type: str, sample: All 905 blocks with acknowledged writes are present.}
    acknowledged: {description: Acknowledged writes., type: int, sample: 1008}
    places: {description: 'Blocks that were checked. Of several writes to one block only the last counts.', type: int, sample: 905}
    damaged: {description: Blocks whose last acknowledged write is not present., type: int, sample: 0}
    lost: {description: Damaged blocks with nothing of this run., type: int, sample: 0}
    stale: {description: Damaged blocks with an earlier write of this run., type: int, sample: 0}
    torn: {description: Damaged blocks with sectors of several writes., type: int, sample: 0}
    misplaced: {description: Damaged blocks with a block that belongs elsewhere., type: int, sample: 0}
    reordered: {description: Damaged blocks for which a later write was kept., type: int, sample: 0}
    first_damaged_sequence: {description: The number of the first damaged write., type: int}
    oldest_damage_seconds: {description: The age of the oldest damaged write when the last one was acknowledged., type: float}
    fence_damaged: {description: 'Damaged blocks behind the range, which were synced before the run.', type: int, sample: 0}
    rebooted: {description: Whether the host has booted since the writer was started., type: bool, sample: true}
error:
  description: The kind of failure, for example V(refused), V(device_missing) or V(not_understood).
  returned: failure
  type: str
  sample: refused
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.host_verifier import verify


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run": {"type": "str", "required": True},
            "log": {"type": "path", "required": True},
            "timeout": {"type": "float", "default": 120},
        },
        supports_check_mode=True,
    )
    runner = Runner()
    with failing(module):
        found = verify(Path(module.params["log"]), module.params["run"], lambda: read_devices(runner), runner, timeout=module.params["timeout"])
    module.exit_json(changed=False, verification=found)


if __name__ == "__main__":
    main()
