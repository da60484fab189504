#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: test_volumes
short_description: "Step of the role test_volumes: examine devices and plan the volumes that are measured on them"
version_added: 1.0.0
description:
  - Plans striped, linear and thin logical volumes and MD arrays for measurements, with file systems and mounts. The role
    P(cachefleet.storage.test_volumes#role) calls it and carries out its plan with community.general, ansible.posix and mdadm. The module itself
    creates and removes nothing.
  - Devices are only used if they are empty, as for a measurement that overwrites its target. There is no option that overrides this.
  - Only volumes that carry the mark of the role and are on the listed devices are removed. The mark is the tag C(cachefleet_test_volume) of the volume
    group, or the name C(any:test_NAME) of the array.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
options:
  volumes:
    description: The volumes of this host. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - The name of the volume, up to 22 letters, digits and C(_), beginning with a letter.
          - A logical volume is C(/dev/test_NAME/NAME), an array C(/dev/md/test_NAME).
        type: str
        required: true
      devices:
        description: The persistent paths of the devices, for example in C(/dev/disk/by-id). Each volume needs devices of its own.
        type: list
        elements: path
        required: true
      type:
        description:
          - V(linear) is a logical volume whose devices are used one after the other.
          - V(striped) is a logical volume that is striped over its devices.
          - V(thin) is a thin logical volume, whose pool uses all of its devices.
          - V(raid1) and V(raid10) are MD arrays. They are created without an initial synchronisation, because their devices are empty.
        type: str
        choices: [linear, striped, thin, raid1, raid10]
        default: linear
      stripes:
        description:
          - For V(striped), the number of stripes (columns).
          - Defaults to the number of devices.
        type: int
      stripe_size:
        description:
          - For V(striped) and V(raid10), the amount of data that is written to one device before the next one is used, a power of two from 4K to 4M.
          - Defaults to V(1M).
        type: str
      size:
        description:
          - The size of a logical volume, a number with an optional suffix K, M, G or T (powers of 1024), or a percentage of the devices such as V(50%).
          - Required for V(thin), which does not accept a percentage. Not supported for arrays.
          - Defaults to all of the devices.
        type: str
      filesystem:
        description: The file system to create on the volume. By default none is created.
        type: str
        choices: [ext4, xfs]
      mount:
        description: The mount point of the file system, now and at boot. The directory must be empty or missing.
        type: path
      mount_options:
        description: The mount options in C(/etc/fstab).
        type: str
        default: defaults,nofail
      state:
        description:
          - V(present) creates the volume. An existing volume is not changed. If it differs from the description, the task fails.
          - V(absent) unmounts and removes the volume. The directory of the mount point is kept.
        type: str
        choices: [present, absent]
        default: present
      allow_data_loss:
        description: With O(volumes[].state=absent), allow the removal of a volume that contains a file system or other data.
        type: bool
        default: false
  operation:
    description:
      - V(prepare) examines the devices, returns the plan, and records on the host that the devices are in use by these volumes.
      - V(finish) verifies after all steps that the volumes are as described, and records that they are complete or that their devices are free.
    type: str
    choices: [prepare, finish]
    default: prepare
  spool:
    description:
      - The directory of the records. It is the spool of measurements (O(cachefleet.storage.fio_runner#module:spool)), so that devices
        of removed volumes can be measured or used again.
    type: path
    default: /var/lib/cachefleet/spool
seealso:
  - module: cachefleet.storage.fio_runner
  - module: community.general.lvg
  - module: community.general.lvol
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Plan a volume that is striped over two devices
  cachefleet.storage.test_volumes:
    volumes:
      - name: array
        type: striped
        devices: [/dev/disk/by-id/wwn-0x5000c500a1b2c3d4, /dev/disk/by-id/wwn-0x5000c500a1b2c3d5]
  check_mode: true
  register: planned
"""

RETURN = r"""
actions:
  description: The actions of the role, in this order.
  returned: success
  type: list
  elements: str
volumes:
  description: The volumes of the list, with the steps and values for the tasks of the role.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: 'The value of O(volumes[].name).', type: str}
    type: {description: 'The value of O(volumes[].type).', type: str}
    state: {description: 'The value of O(volumes[].state).', type: str}
    device: {description: 'Persistent path of the volume.', type: str, sample: /dev/test_array/array}
    devices: {description: 'The value of O(volumes[].devices).', type: list, elements: str}
    label: {description: 'The name of the volume group or of the array.', type: str, sample: test_array}
    tag: {description: 'The tag of the volume group.', type: str}
    pool: {description: 'The name of the thin pool, if there is one.', type: str}
    size: {description: 'The size for lvcreate.', type: str, sample: 100%FREE}
    lvol_options: {description: 'Options for lvcreate.', type: str}
    chunk: {description: 'The stripe size in KiB, if there are stripes.', type: int}
    filesystem: {description: 'The value of O(volumes[].filesystem).', type: str}
    mount: {description: 'The value of O(volumes[].mount).', type: str}
    mount_options: {description: 'The value of O(volumes[].mount_options).', type: str}
    labelled: {description: 'The devices whose labels are removed with the volume.', type: list, elements: str}
    steps: {description: 'The steps of the role, by name.', type: list, elements: str, sample: [create_group, create_volume]}
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing), V(tool_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
item:
  description: The volume that failed.
  returned: on failure
  type: str
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.plan import VolumesRun
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VOLUME_OPTIONS, read_volumes


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "volumes": {"type": "list", "elements": "dict", "required": True, "options": dict(VOLUME_OPTIONS)},
            "operation": {"type": "str", "choices": ["prepare", "finish"], "default": "prepare"},
            "spool": {"type": "path", "default": "/var/lib/cachefleet/spool"},
        },
        supports_check_mode=True,
    )
    with failing(module):
        run = VolumesRun(Runner(), read_volumes(module.params["volumes"]), Spool(Path(module.params["spool"]), "test_volumes"))
        finish = module.params["operation"] == "finish" and not module.check_mode
        plans = run.finish() if finish else run.prepare(check_mode=module.check_mode)
    for warning in run.warnings:
        module.warn(warning)
    steps = [(one.spec, step) for one in plans for step in one.steps]
    after = {spec.name: [step.action for other, step in steps if other is spec] for spec, _step in steps}
    module.exit_json(
        changed=bool(steps) and not finish,
        actions=[step.action for _spec, step in steps],
        diff={"before": {}, "after": after if not finish else {}},
        volumes=[one.to_dict() for one in plans],
    )


if __name__ == "__main__":
    main()
