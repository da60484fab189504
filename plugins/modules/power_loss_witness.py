#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: power_loss_witness
short_description: "Step of the role power_loss_test: record on another host which writes were acknowledged"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Runs the witness of M(cachefleet.storage.power_loss_writer) in the background on a host whose power is not cut, for example the controller. It
    appends each acknowledged write to a log, which it syncs.
  - The witness listens on one address, only accepts connections from O(hosts), and only a writer that has the secret of the run.
  - A witness that was killed is started again by the same task and continues its log. A run during which its witness was killed proves nothing.
  - Connections that do not show the secret are limited in number, time and bytes. The log of a run is limited to what its load can have written, to
    512 MiB, and to a quarter of the free space.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  state:
    description:
      - V(started) ensures that the witness of O(run) is running.
      - V(writing) waits until O(writes) writes are acknowledged.
      - V(cut) records that the power is about to be cut, and waits until the writer was active after that. Fails if it was not, because such a cut
        would prove nothing.
      - V(stopped) ends the witness. Its log is kept.
      - V(absent) ends the witness and removes its log.
    type: str
    choices: [started, writing, cut, stopped, absent]
    default: started
  run:
    description: The ID of the run, 32 hexadecimal digits.
    type: str
    required: true
  secret:
    description: The secret that the writer and its witness share, 64 hexadecimal digits. Required with O(state=started).
    type: str
  address:
    description: The IP address on which the witness listens, one address of its host. Required with O(state=started).
    type: str
  port:
    description: The TCP port on which the witness listens. With V(0) a free port is chosen.
    type: int
    default: 0
  hosts:
    description: The IP addresses or names from which a connection is accepted. Required with O(state=started).
    type: list
    elements: str
  writes:
    description: The number of acknowledged writes to wait for with O(state=writing).
    type: int
    default: 200
  timeout:
    description: Seconds to wait with O(state=writing) and O(state=cut).
    type: float
    default: 60
  lifetime:
    description: Seconds after which the witness ends by itself.
    type: float
    default: 86400
  folder:
    description: The folder of the logs on the host of the witness.
    type: path
    default: ~/.cache/cachefleet/power_loss_witness
seealso:
  - module: cachefleet.storage.power_loss_writer
  - module: cachefleet.storage.power_loss_verify
"""

EXAMPLES = r"""
- name: Start the witness of a run on the controller
  cachefleet.storage.power_loss_witness:
    run: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
    secret: "{{ power_loss_secret }}"
    address: 192.0.2.1
    hosts: [192.0.2.17]
  delegate_to: localhost

- name: Record that the power is about to be cut
  cachefleet.storage.power_loss_witness:
    run: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
    state: cut
  delegate_to: localhost
"""

RETURN = r"""
port:
  description: The TCP port on which the witness listens.
  returned: with O(state=started)
  type: int
  sample: 40123
log:
  description: The path of the log.
  returned: success
  type: str
acknowledged:
  description: The number of acknowledged writes in the log.
  returned: success
  type: int
  sample: 1043
error:
  description: The kind of failure, for example V(timeout), V(refused) or V(bad_input).
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
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.host_witness import carry_out


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "writing", "cut", "stopped", "absent"], "default": "started"},
            "run": {"type": "str", "required": True},
            "secret": {"type": "str", "no_log": True},
            "address": {"type": "str"},
            "port": {"type": "int", "default": 0},
            "hosts": {"type": "list", "elements": "str"},
            "writes": {"type": "int", "default": 200},
            "timeout": {"type": "float", "default": 60},
            "lifetime": {"type": "float", "default": 86400},
            "folder": {"type": "path", "default": "~/.cache/cachefleet/power_loss_witness"},
        },
        required_if=[("state", "started", ("secret", "address", "hosts"))],
        supports_check_mode=True,
    )
    with failing(module):
        result = carry_out(module.params, Path(module.params["folder"]), check_mode=module.check_mode)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
