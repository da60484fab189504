#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_cache
short_description: Set the cache policies of RAID controllers and verify that they are in effect
version_added: 1.0.0
description:
  - Sets the read, write and I/O policy of volumes, the policy for the caches of drives behind the controller, and the cache settings
    of the controller itself, with one vocabulary for the tools of all vendors.
  - The tools are proprietary and must be installed on the host. On a host that is already configured as described, each tool is read once,
    regardless of the number of volumes. Each change needs one command, followed by one more read that verifies the result.
  - A setting can be configured but not in effect. A controller with a failed battery still reports that write-back is configured, but uses
    write-through. Such a difference is a failure that names its cause, or a warning with O(controllers[].require_effective=false).
  - Settings that a controller does not support, or that its tool does not print and that therefore cannot be verified, are refused before the
    first change. In an entry for V(all), such a setting is skipped for that volume or drive with a warning, unless it would reduce caching.
  - In check mode, a policy that a run would find not in effect is a warning.
options:
  controllers:
    description:
      - The controllers of this host. Volumes, drives and settings that are not listed are not changed. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      provider:
        description:
          - The tool that manages the controller. V(auto) runs every installed tool and uses those that report a controller.
        type: str
        default: auto
        choices: [auto, storcli2, perccli2, storcli, perccli, arcconf, ssacli]
      tool_path:
        description:
          - Path of the tool, if it is neither in E(PATH) nor in the vendor's installation directory. Needs O(controllers[].provider).
        type: path
      id:
        description:
          - The number of the controller in its tool, which counts from 0, counts from 1 or uses the slot, see
            M(cachefleet.storage.raid_cache_info). V(all) means every controller that the provider reports, and each must support the requested settings.
        type: str
        default: all
      serial:
        description: The serial number of the controller, where its number may change.
        type: str
      volumes:
        description:
          - The volumes (logical drives) to set. Each setting of an entry for a specific volume takes precedence over that of the entry for V(all).
        type: list
        elements: dict
        default: []
        suboptions:
          id:
            description: The number of the volume in its tool, or V(all).
            type: str
          name:
            description: The name of the volume.
            type: str
          wwn:
            description: The NAA identifier of the volume, as in C(/dev/disk/by-id/wwn-0x…).
            type: str
          read:
            description:
              - The read policy. V(adaptive) exists in old firmware only; none of the current tools can set it.
              - SmartRAID and Smart Array have one switch for reading and writing. Setting one of them also sets the other, and the
                diff shows both.
            type: str
            choices: [none, read_ahead, adaptive]
          write:
            description:
              - The write policy. V(writeback) acknowledges writes from the cache only while the battery or capacitor protects it.
              - V(writeback_always) also does so after the protection has failed, and needs O(controllers[].volumes[].allow_unprotected).
            type: str
            choices: [writethrough, writeback, writeback_always]
          io:
            description:
              - The I/O policy. With V(cached), writes are cached regardless of O(controllers[].volumes[].write), even after the protection
                has failed. It therefore needs O(controllers[].volumes[].allow_unprotected).
            type: str
            choices: [direct, cached]
          drive_cache:
            description:
              - The write cache of the drives of this volume. V(default) uses the setting of the drives.
            type: str
            choices: [enabled, disabled, default]
          allow_unprotected:
            description:
              - Allow settings of this volume that lose acknowledged writes in a power failure. These are V(writeback_always), V(cached), and
                for drive caches V(enabled), or V(default) if the present setting differs. Also needed for drives that protect their own
                cache, unless all of them are declared as protected, since controllers do not report it.
            type: bool
            default: false
      drives:
        description:
          - The drives whose own write cache is set, if the controller has a setting for each drive.
        type: list
        elements: dict
        default: []
        suboptions:
          address:
            description:
              - The address of the drive in the tool, V(0,5) (channel and id of C(arcconf)), V(252:3) (enclosure and slot) or V(1I:1:2)
                (port, box and bay). V(all) means every drive that has such a setting.
              - Either this or O(controllers[].drives[].match) is required.
            type: str
          match:
            description:
              - Criteria that a drive must match, as the tool reports it. All given criteria must match, and what the tool does not report matches
                nothing. A later entry takes precedence over an earlier one, one with an address over those with a match, and all over V(all).
              - A drive that matches and has no such setting is an error. A match without a drive is a warning. O(controllers[].drives[].allow_unprotected)
                is refused, since a permission is for one drive.
            type: dict
            suboptions:
              rotational:
                description: Whether it is a hard disk.
                type: bool
              transport:
                description: The interfaces of the drive.
                type: list
                elements: str
                choices: [sata, sas, scsi, nvme]
              model:
                description: Shell patterns for the model, not case-sensitive. One of them must match.
                type: list
                elements: str
              serial:
                description: Shell patterns for the serial number. One of them must match.
                type: list
                elements: str
              wwn:
                description: Shell patterns for the WWN. One of them must match.
                type: list
                elements: str
              size_min:
                description: The minimum size, with a suffix k, M, G or T (powers of 1024).
                type: str
              size_max:
                description: The maximum size.
                type: str
          write_cache:
            description: The desired state of the volatile write cache.
            type: str
            choices: [enabled, disabled]
          allow_unprotected:
            description: Allow V(enabled) for this drive. Its cache is lost in a power failure unless the drive protects it.
            type: bool
            default: false
      drive_cache:
        description:
          - The write cache of drives by class, if the controller has such classes.
        type: dict
        suboptions:
          all:
            description:
              - All drives of the controller. With V(per_drive), O(controllers[].drives[].write_cache) applies (Adaptec series 7 and 8).
              - Changing from V(disabled) to V(per_drive) needs a permission, or every drive disabled individually in the same entry.
            type: str
            choices: [enabled, disabled, default, per_drive]
          configured:
            description: Drives in arrays (SmartRAID, Smart Array).
            type: str
            choices: [enabled, disabled, default]
          unconfigured:
            description: Drives that are not in an array (SmartRAID, Smart Array).
            type: str
            choices: [enabled, disabled, default]
          hba:
            description: Drives on ports in HBA mode (SmartRAID).
            type: str
            choices: [enabled, disabled, default]
          jbod:
            description: Drives passed through as JBOD (MegaRAID).
            type: str
            choices: [enabled, disabled, default]
      no_battery_write_cache:
        description:
          - Whether the controller caches writes without a battery or capacitor (SmartRAID, Smart Array). V(enabled) turns every
            V(writeback) policy of the controller into V(writeback_always) and needs O(controllers[].allow_unprotected).
        type: str
        choices: [enabled, disabled]
      cache_ratio:
        description: The percentage of the cache that is used for reads; the rest is used for writes (SmartRAID, Smart Array).
        type: int
      allow_unprotected:
        description:
          - Allow settings of the controller itself that lose acknowledged writes in a power failure. These are
            O(controllers[].no_battery_write_cache), O(controllers[].drive_cache) and O(controllers[].cache_ratio). It does not apply to volumes
            and drives.
        type: bool
        default: false
      require_effective:
        description:
          - Whether a policy that is configured but not in effect is a failure. With V(false) it is a warning.
        type: bool
        default: true
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
  - cachefleet.storage._options.protected_drives
notes:
  - One read needs one to four commands of a tool, with some tools for each controller, regardless of the number of volumes and drives.
seealso:
  - module: cachefleet.storage.raid_cache_info
  - module: cachefleet.storage.raid_maxcache
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Use write-back while the battery is healthy, and disable drive caches
  cachefleet.storage.raid_cache:
    controllers:
      - provider: storcli
        id: 0
        volumes:
          - id: all
            read: read_ahead
            write: writeback
            io: direct
            drive_cache: disabled

- name: Configure one volume and one drive of an Adaptec series 8 controller
  cachefleet.storage.raid_cache:
    controllers:
      - provider: arcconf
        id: 1
        drive_cache: {all: per_drive}
        volumes:
          - {name: archive, read: read_ahead, write: writeback}
        drives:
          - {address: "0,5", write_cache: disabled}

- name: Configure a SmartRAID controller with most of the cache for writes, and do not fail during a learn cycle
  cachefleet.storage.raid_cache:
    controllers:
      - provider: arcconf
        cache_ratio: 10
        no_battery_write_cache: disabled
        drive_cache: {configured: disabled, hba: default}
        require_effective: false
        volumes:
          - {wwn: 600508b1001c0000000000000000cafe, write: writeback}
"""

RETURN = r"""
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  type: list
  elements: str
  returned: success, and if a change failed
  sample: ["Set write of volume archive of controller 1 (Adaptec ASR81605ZQ, arcconf) to writeback (was writethrough)"]
controllers:
  description: Every controller that the tools report, as read after the changes, in check mode before them. See M(cachefleet.storage.raid_cache_info).
  type: list
  elements: dict
  returned: success
problems:
  description: Tool output that could not be parsed, and settings of V(all) that were skipped because they cannot be set, one sentence each.
  type: list
  elements: str
  returned: success
  sample: []
not_in_force:
  description:
    - The settings that are configured but not in effect, each with its cause. In check mode those that would not be in effect.
  type: list
  elements: dict
  returned: success, and if a policy that must be in effect is not
  sample:
    - item: storcli controller 0 volume 0
      label: volume archive of controller 0 (MegaRAID 9361-8i, storcli)
      controller: controller 0 (MegaRAID 9361-8i, storcli)
      attribute: write
      configured: writeback
      found: writethrough
      cause: its battery has failed (Failed)
      must: true
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing), V(tool_missing), V(not_understood) or V(not_effective).
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
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import PROTECTED_DRIVES_OPTION
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import argument_spec, parse_controllers


def main():
    module = AnsibleModule(argument_spec={**argument_spec(), **PROTECTED_DRIVES_OPTION}, supports_check_mode=True)
    run_layer(module, lambda: RaidCacheLayer.with_tools(Runner(), parse_controllers(module.params["controllers"], module.params["protected_drives"])))


if __name__ == "__main__":
    main()
