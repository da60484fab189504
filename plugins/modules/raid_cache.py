#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: raid_cache
short_description: Set the cache policies of RAID controllers and prove that they are in force
version_added: 0.2.0
description:
  - Sets the read, write and I/O policy of volumes, the policy for the caches of drives behind the controller, and the cache settings
    of the controller itself, in one vocabulary for C(storcli), C(perccli), C(storcli2), C(perccli2), C(arcconf) and C(ssacli).
  - The tools are proprietary and must be on the host. A host where everything is as wanted costs one read of each tool, whatever the
    number of volumes. What differs costs one command each and one more read, which is the only proof that counts.
  - A setting can be stored and not be in force. A controller whose battery fails goes on reporting that write-back is configured, and
    writes through. Such a difference is a failure that names its cause, or a warning with O(controllers[].require_effective=false).
  - Whatever a controller cannot do, or what its tool does not print and could thus not be proved, is refused before the first change. In
    an entry for V(all), such a setting is left out for that volume or drive with a warning, unless it would keep less in memory.
  - In check mode, what a run would find not in force is a warning.
options:
  controllers:
    description:
      - The controllers of this host. Volumes, drives and settings that are not named are left as they are. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      provider:
        description:
          - The tool that speaks to the controller. V(auto) asks every tool it finds and takes the ones that see a controller.
        type: str
        default: auto
        choices: [auto, storcli, perccli, storcli2, perccli2, arcconf, ssacli]
      tool_path:
        description:
          - The tool, if it is neither in E(PATH) nor where its vendor installs it. Needs O(controllers[].provider).
        type: path
      id:
        description:
          - The number of the controller as its tool counts, which is from 0 for C(storcli) and its kin, from 1 for C(arcconf), and the
            slot for C(ssacli). V(all) means every controller the provider sees, and each must be able to do what is asked.
        type: str
        default: all
      serial:
        description: The serial number of the controller, for those whose number may change.
        type: str
      volumes:
        description:
          - The volumes (logical drives) to set. An entry that names a volume wins over the entry for V(all), setting by setting.
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
              - The read policy. V(adaptive) is known from old firmware; none of the tools sets it today.
              - SmartRAID and Smart Array have one switch for reading and writing. Setting one of both there sets the other, and the
                difference shows both.
            type: str
            choices: [none, read_ahead, adaptive]
          write:
            description:
              - The write policy. V(writeback) acknowledges writes from the cache only while the battery or capacitor protects it.
              - V(writeback_always) goes on when the protection has failed, and needs O(controllers[].volumes[].allow_unprotected).
            type: str
            choices: [writethrough, writeback, writeback_always]
          io:
            description:
              - The I/O policy. With V(cached), writes are cached whatever O(controllers[].volumes[].write) says, also when the protection
                has failed. It therefore needs O(controllers[].volumes[].allow_unprotected).
            type: str
            choices: [direct, cached]
          drive_cache:
            description:
              - The write cache of the drives of this volume. V(default) leaves it to the drives.
            type: str
            choices: [enabled, disabled, default]
          allow_unprotected:
            description:
              - Allow for this volume what loses acknowledged writes in a power cut, namely V(writeback_always), V(cached), and caches of
                drives, V(enabled) as well as V(default) where it is something else now. Also to be set for drives that protect their own
                cache, which no controller tells.
            type: bool
            default: false
      drives:
        description:
          - The drives whose own write cache is to be set, where the controller has a setting for each drive.
        type: list
        elements: dict
        default: []
        suboptions:
          address:
            description:
              - The drive as its tool names it, V(0,5) (channel and id of C(arcconf)), V(252:3) (enclosure and slot) or V(1I:1:2)
                (port, box and bay). V(all) means every drive that has such a setting.
            type: str
            required: true
          write_cache:
            description: The wanted state of the volatile write cache.
            type: str
            choices: [enabled, disabled]
          allow_unprotected:
            description: Allow V(enabled) for this drive. Its cache is lost in a power cut unless the drive protects it.
            type: bool
            default: false
      drive_cache:
        description:
          - The write cache of drives by class, as far as the controller has such classes.
        type: dict
        suboptions:
          all:
            description:
              - Every drive of the controller. With V(per_drive), O(controllers[].drives[].write_cache) counts (Adaptec series 7 and 8).
              - V(per_drive) where the caches are off for all needs a permission, or all drives switched off one by one in the same entry.
            type: str
            choices: [enabled, disabled, default, per_drive]
          configured:
            description: Drives in arrays (SmartRAID, Smart Array).
            type: str
            choices: [enabled, disabled, default]
          unconfigured:
            description: Drives in no array (SmartRAID, Smart Array).
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
            V(writeback) of the controller into V(writeback_always) and needs O(controllers[].allow_unprotected).
        type: str
        choices: [enabled, disabled]
      cache_ratio:
        description: The share of the cache for reading, in percent; the rest is for writing (SmartRAID, Smart Array).
        type: int
      allow_unprotected:
        description:
          - Allow for the settings of the controller itself, O(controllers[].no_battery_write_cache), O(controllers[].drive_cache) and
            O(controllers[].cache_ratio), what loses acknowledged writes in a power cut. It is no permission for volumes and drives.
        type: bool
        default: false
      require_effective:
        description:
          - Whether a policy that is stored and not in force is a failure. V(false) makes it a warning.
        type: bool
        default: true
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
  - One read is three commands of C(storcli) and its kin (a fourth if a battery or capacitor is not well), one of C(ssacli), and one of C(arcconf)
    plus one for each controller.
seealso:
  - module: cachefleet.storage.raid_cache_info
  - module: cachefleet.storage.raid_maxcache
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Write back while the battery is good, and never cache in the drives
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

- name: An Adaptec series 8 controller, one volume for archives, one drive for itself
  cachefleet.storage.raid_cache:
    controllers:
      - provider: arcconf
        id: 1
        drive_cache: {all: per_drive}
        volumes:
          - {name: archive, read: read_ahead, write: writeback}
        drives:
          - {address: "0,5", write_cache: disabled}

- name: A SmartRAID controller, most of its cache for writing; a learn cycle is no reason to stop
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
  description: What was done, or would be done in check mode, one sentence each.
  type: list
  elements: str
  returned: success, and when a change broke off
  sample: ["Set write of volume archive of controller 1 (Adaptec ASR81605ZQ, arcconf) to writeback (was writethrough)"]
controllers:
  description: Every controller that the tools see, as it is left; in check mode as it was found. See M(cachefleet.storage.raid_cache_info).
  type: list
  elements: dict
  returned: success
problems:
  description: What was not understood in the output of a tool, and what was left out of V(all) because it cannot be set, one sentence each.
  type: list
  elements: str
  returned: success
  sample: []
not_in_force:
  description: The settings that are stored and not in force, each with its cause; in check mode those that would not be.
  type: list
  elements: dict
  returned: success, and when a policy that has to be in force is not
  sample:
    - item: storcli controller 0 volume 0
      called: volume archive of controller 0 (MegaRAID 9361-8i, storcli)
      controller: controller 0 (MegaRAID 9361-8i, storcli)
      attribute: write
      wanted: writeback
      found: writethrough
      cause: its battery has failed (Failed)
      must: true
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing), V(tool_missing), V(not_understood) or V(not_effective).
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

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import CONTROLLER_ATTRIBUTES, DRIVE_ATTRIBUTES, VOLUME_ATTRIBUTES
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import run_module
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import PROVIDERS


def _choice_of(attributes):
    """An option for each attribute that has a list of values."""
    return {name.rpartition(".")[2]: {"type": "str", "choices": list(values)} for name, values in attributes.items() if values}


def argument_spec():
    """The options as documented; values come from the one vocabulary that every provider speaks."""
    drive_cache = {name: values for name, values in CONTROLLER_ATTRIBUTES.items() if name.startswith("drive_cache.")}
    plain = {name: values for name, values in CONTROLLER_ATTRIBUTES.items() if name not in drive_cache}
    permission = {"allow_unprotected": {"type": "bool", "default": False}}
    volume = {"id": {"type": "str"}, "name": {"type": "str"}, "wwn": {"type": "str"}, **_choice_of(VOLUME_ATTRIBUTES), **permission}
    drive = {"address": {"type": "str", "required": True}, **_choice_of(DRIVE_ATTRIBUTES), **permission}
    controller = {
        "provider": {"type": "str", "default": "auto", "choices": ["auto", *sorted(PROVIDERS)]},
        "tool_path": {"type": "path"},
        "id": {"type": "str", "default": "all"},
        "serial": {"type": "str"},
        "volumes": {"type": "list", "elements": "dict", "default": [], "options": volume},
        "drives": {"type": "list", "elements": "dict", "default": [], "options": drive},
        "drive_cache": {"type": "dict", "options": _choice_of(drive_cache)},
        "cache_ratio": {"type": "int"},
        **_choice_of(plain),
        **permission,
        "require_effective": {"type": "bool", "default": True},
    }
    return {"controllers": {"type": "list", "elements": "dict", "required": True, "options": controller}}


def main():
    run_module(AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True))


if __name__ == "__main__":
    main()
