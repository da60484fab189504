#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: power_loss_writer
short_description: "Step of the role power_loss_test: write blocks to a target until the power is cut"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Starts a process on the host that writes blocks to a device, a file or the files of a folder, syncs each as requested, and only then reports
    it to a witness on another host, which M(cachefleet.storage.power_loss_witness) runs. The process needs neither the controller nor the
    connection that started it.
  - After the power was cut, M(cachefleet.storage.power_loss_verify) determines which of the acknowledged writes are still present.
  - The guard of M(cachefleet.storage.fio) examines the target before anything is written, and a device is opened exclusively as long as the
    writer runs. A file or folder must not exist, and is made.
  - The range that is written contains zeros before. With O(layout=in_place), 64 blocks behind it are synced before the run and must remain as
    they are.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
attributes:
  check_mode:
    details: The target is examined, but nothing is started, stopped or removed.
options:
  state:
    description:
      - V(started) ensures that the writer of O(run) is running.
      - V(stopped) ends it. What it wrote is kept.
      - V(absent) ends it and removes what it wrote. Its files are removed. The range of a device is overwritten with zeros if it only
        contains blocks of power-loss tests, or if O(target.allow_data_loss) was permitted.
    type: str
    choices: [started, stopped, absent]
    default: started
  run:
    description: The ID of the run, 32 hexadecimal digits. Each run needs an ID of its own.
    type: str
    required: true
  secret:
    description: The secret that the writer and its witness share, 64 hexadecimal digits. Required with O(state=started).
    type: str
  witness_address:
    description: The IP address or name of the witness. Required with O(state=started).
    type: str
  witness_port:
    description: The TCP port of the witness. Required with O(state=started).
    type: int
  target:
    description: Where blocks are written. Either O(target.device) or O(target.file). Required with O(state=started).
    type: dict
    suboptions:
      device:
        description: A block device, preferably by a persistent path such as V(/dev/disk/by-id/...) or V(/dev/vg0/scratch).
        type: str
      file:
        description:
          - A file that does not exist, by its absolute path. Its folder must exist.
          - With O(layout=rename) a folder that does not exist.
        type: str
      allow_data_loss:
        description:
          - Whether the data on the device may be overwritten. Not needed for a device that is empty.
          - It only takes effect together with the matching O(target.identity), and never allows writes to a device that is in use.
        type: bool
        default: false
      identity:
        description: The serial number, WWN, C(vg/lv) or device-mapper name that the device must have; of a partition its PARTUUID.
        type: str
      size:
        description: The size of the range that is written, from the beginning of the target, in bytes or with a suffix C(k), C(M) or C(G).
        type: str
        default: 64M
  layout:
    description:
      - V(in_place) overwrites blocks of the range.
      - V(append) appends to a file until it has O(target.size), one block after the other.
      - V(rename) writes each block to a new file, renames it over the old one, and syncs the folder, as many applications replace files.
    type: str
    choices: [in_place, append, rename]
    default: in_place
  sync:
    description:
      - How each write is made durable before it is acknowledged. V(fua) is a write with C(RWF_DSYNC), V(o_dsync) opens the target with C(O_DSYNC).
      - With V(none) a write is acknowledged when the kernel has completed it, which with O(direct=true) is when the device has reported it.
    type: str
    choices: [fsync, fdatasync, o_dsync, fua, none]
    default: fsync
  direct:
    description: Whether the page cache is bypassed (C(O_DIRECT)). Not used for O(layout=rename).
    type: bool
    default: true
  order:
    description: The order of the blocks. O(layout=append) and O(bulk=true) are sequential.
    type: str
    choices: [random, sequential]
    default: random
  depth:
    description: The number of writes in flight, 1 to 32.
    type: int
    default: 1
  block_size:
    description: The size of a block in bytes, a multiple of 512.
    type: int
    default: 4096
  bulk:
    description: Write the whole range, sync it once, and acknowledge all of it, again and again.
    type: bool
    default: false
  seconds:
    description: Seconds after which the writer ends by itself.
    type: float
    default: 900
  folder:
    description: The folder on the host in which the state of each run is kept. It must survive the power cut.
    type: path
    default: /var/lib/cachefleet/power_loss
seealso:
  - module: cachefleet.storage.power_loss_witness
  - module: cachefleet.storage.power_loss_verify
"""

EXAMPLES = r"""
- name: Write to an empty drive until the power is cut
  cachefleet.storage.power_loss_writer:
    run: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
    secret: "{{ power_loss_secret }}"
    witness_address: 192.0.2.1
    witness_port: 40123
    target: {device: /dev/disk/by-id/ata-ST4000NM0035_ZC1AAAAA}
    depth: 8

- name: Remove what the run wrote
  cachefleet.storage.power_loss_writer:
    run: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a
    state: absent
"""

RETURN = r"""
running:
  description: Whether the writer runs.
  returned: success
  type: bool
state:
  description: The state of the run, V(starting), V(writing), V(ended) or V(failed); empty if it was never started on this host.
  returned: success
  type: str
message:
  description: The reason of the state, as a sentence.
  returned: success
  type: str
boot_id:
  description: The ID of the present boot of the host.
  returned: success
  type: str
target:
  description: The path of the target that is used, and the identity that was found.
  returned: with O(state=started)
  type: dict
stack:
  description: The verdict of M(cachefleet.storage.cache_stack_info) on the device, and the drives under it.
  returned: with O(state=started)
  type: dict
  contains:
    verdict: {description: 'V(durable), V(at_risk) or V(unknown).', type: str, sample: durable}
    reason: {description: One sentence., type: str}
    unflushed: {description: 'Whether a write without a flush survives too, V(kept), V(may_be_lost) or V(unknown).', type: str}
    drives: {description: 'The drives under the target, with C(path), C(model), C(firmware) and C(serial).', type: list, elements: dict}
objections:
  description: If the target was refused, the individual reasons.
  returned: failure, if the guard refused the target
  type: list
  elements: dict
error:
  description: The kind of failure, for example V(refused), V(device_missing) or V(bad_input).
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
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.module_writer import carry_out

TARGET = {
    "device": {"type": "str"},
    "file": {"type": "str"},
    "allow_data_loss": {"type": "bool", "default": False},
    "identity": {"type": "str"},
    "size": {"type": "str", "default": "64M"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **DECLARATION_OPTIONS,
            "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
            "run": {"type": "str", "required": True},
            "secret": {"type": "str", "no_log": True},
            "witness_address": {"type": "str"},
            "witness_port": {"type": "int"},
            "target": {"type": "dict", "options": TARGET, "mutually_exclusive": [("device", "file")], "required_one_of": [("device", "file")]},
            "layout": {"type": "str", "choices": ["in_place", "append", "rename"], "default": "in_place"},
            "sync": {"type": "str", "choices": ["fsync", "fdatasync", "o_dsync", "fua", "none"], "default": "fsync"},
            "direct": {"type": "bool", "default": True},
            "order": {"type": "str", "choices": ["random", "sequential"], "default": "random"},
            "depth": {"type": "int", "default": 1},
            "block_size": {"type": "int", "default": 4096},
            "bulk": {"type": "bool", "default": False},
            "seconds": {"type": "float", "default": 900},
            "folder": {"type": "path", "default": "/var/lib/cachefleet/power_loss"},
        },
        required_if=[("state", "started", ("secret", "witness_address", "witness_port", "target"))],
        supports_check_mode=True,
    )
    with failing(module):
        result = carry_out(module.params, Path(module.params["folder"]), check_mode=module.check_mode)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
