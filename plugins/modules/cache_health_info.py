#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_health_info
short_description: Wear of drives, health of SSD caches and of what protects them, one line per problem
version_added: 0.3.0
description:
  - Looks at a whole host at once and says what a person should act on. The wear of every drive, the state, dirty share, hit rates and
    errors of every SSD cache, the battery or capacitor of RAID controllers, MD arrays and volume groups that lack a member, and what of
    each SSD is kept free of data.
  - Drives are asked with C(smartctl). Attributes are matched by name and wear is taken from the normalised value, because their numbers
    and raw values mean something else on every model.
  - Hit rates come from the difference between two readings. Give O(interval) or what an earlier run returned in RV(readings).
    Counters that fell in between are reset counters, and then there is no rate.
  - Of each cache it says which share of the requests cannot be cached or bypassed it, and why, as far as the figures of the kernel tell.
  - What cannot be read is no failure. It is in RV(problems).
options:
  interval:
    description:
      - Seconds between two looks at the caches in this run. With V(0) there is one look, which is compared with O(previous) or
        O(previous_file).
      - bcache carries its counters over every 13.6 seconds only, so that less than 15 says little about it.
    type: float
    default: 0
  previous:
    description: RV(readings) of an earlier run on this host.
    type: dict
  previous_file:
    description:
      - A file on the host that holds RV(readings) of an earlier run as JSON. It need not exist, and is not written by this module.
    type: path
  further_drives:
    description: Drives that C(smartctl --scan-open) does not list, such as those behind some RAID controllers.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: What C(smartctl) opens, for example C(/dev/sg1).
        type: str
        required: true
      type:
        description: The argument of C(smartctl -d), for example V(cciss,0) or V(aacraid,0,0,1).
        type: str
        required: true
  limits:
    description: From where on something is a finding.
    type: dict
    default: {}
    suboptions:
      wear_used:
        description:
          - Percent of the rated endurance of a drive that is used. From here on it is critical.
          - The default is the same as a normalised C(Media_Wearout_Indicator) of 10.
        type: int
        default: 90
      wear_used_soon:
        description: The same for a warning.
        type: int
        default: 80
      reallocated:
        description: Sectors that a drive has replaced. From here on it is critical.
        type: int
        default: 100
      dirty:
        description: Percent of the size of a cache that is dirty. From here on it is critical.
        type: int
        default: 70
      dirty_average:
        description: The same in the mean of up to 24 looks that were kept, for a warning.
        type: int
        default: 30
      read_hits:
        description: Percent of the reads that the cache served. Below it is a warning.
        type: int
        default: 20
      uncacheable:
        description: Percent of the requests that cannot be cached for their size. From here on it is a warning.
        type: int
        default: 20
      requests:
        description: Rates of fewer requests than this say nothing.
        type: int
        default: 1000
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
seealso:
  - module: cachefleet.storage.cache_stack_info
  - module: cachefleet.storage.block_cache_info
  - module: cachefleet.storage.raid_cache_info
  - module: cachefleet.storage.over_provisioning
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Look at the host, with hit rates over half a minute
  cachefleet.storage.cache_health_info:
    interval: 30
  register: health

- name: Stop if something is wrong
  ansible.builtin.assert:
    that: health.healthy
    fail_msg: "{{ health.findings | rejectattr('severity', 'equalto', 'info') | map(attribute='message') | join('; ') }}"

- name: Replace drives earlier
  cachefleet.storage.cache_health_info:
    limits:
      wear_used: 75
      wear_used_soon: 60
    further_drives:
      - {device: /dev/sg1, type: 'cciss,0'}
"""

RETURN = r"""
healthy:
  description: Whether nothing was found that is critical or a warning.
  type: bool
  returned: success
worst:
  description: The worst severity that was found, V(critical), V(warning) or V(none).
  type: str
  returned: success
findings:
  description: What a person should know, the worst first.
  type: list
  elements: dict
  returned: success
  contains:
    severity: {description: 'V(critical), V(warning) or V(info).', type: str}
    subject: {description: 'The cache, drive, array or controller.', type: str}
    check: {description: 'What was looked at, a word that stays the same between versions.', type: str}
    message: {description: 'One line that a person can act on.', type: str}
    value: {description: 'What was found.', type: raw}
    limit: {description: 'What it was compared with.', type: raw}
  sample:
    - severity: critical
      subject: /dev/disk/by-id/ata-INTEL_SSDSC2BB240G4_BTWL0001
      check: drive_wear
      message: >-
        /dev/disk/by-id/ata-INTEL_SSDSC2BB240G4_BTWL0001 (INTEL SSDSC2BB240G4) has used 91% of its rated endurance
        (Media_Wearout_Indicator (attribute 233, value 9); the limit is 90%): replace it.
      value: 91
      limit: 90
problems:
  description: What could not be read, one sentence each.
  type: list
  elements: str
  returned: success
drives:
  description: Every drive that could be asked. What a drive does not tell is null.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'Name in the kernel, or what C(smartctl) opens.', type: str}
    path: {description: 'Stable path, or the arguments of C(smartctl) for a drive behind a controller.', type: str}
    device_type: {description: 'The argument of C(smartctl -d) of a drive behind a controller.', type: str}
    protocol: {description: 'V(ata), V(scsi), V(nvme) or V(unknown).', type: str}
    media: {description: 'V(ssd), V(hdd) or V(unknown).', type: str}
    model: {description: 'Model.', type: str}
    serial: {description: 'Serial number.', type: str}
    firmware: {description: 'Version of the firmware.', type: str}
    passed: {description: 'What the drive says of itself.', type: bool}
    wear_used_percent: {description: 'Used part of the rated endurance; may exceed 100.', type: int}
    spare_percent: {description: 'Spare blocks that are left.', type: int}
    spare_threshold_percent: {description: "The drive's own limit for them.", type: int}
    warnings: {description: 'Warnings of an NVMe drive.', type: list, elements: str}
    failing: {description: 'ATA attributes that are at their threshold.', type: list, elements: str}
    reallocated: {description: 'Sectors or blocks that were replaced.', type: int}
    pending: {description: 'Sectors that wait to be replaced.', type: int}
    media_errors: {description: 'Reads that could not be corrected.', type: int}
    unsafe_shutdowns: {description: 'Power cuts that the drive was not told of.', type: int}
    power_on_hours: {description: 'Hours.', type: int}
    temperature: {description: 'Degrees Celsius.', type: int}
    written_bytes: {description: 'Bytes that hosts wrote.', type: int}
    capacity: {description: 'Bytes of an NVMe drive that namespaces can be made of.', type: int}
    unallocated: {description: 'Bytes of it in no namespace.', type: int}
    evidence: {description: 'The attribute or field each of these was taken from.', type: dict}
over_provisioning:
  description: What of each SSD is kept free of data, in bytes.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'Name in the kernel.', type: str}
    path: {description: 'Stable path.', type: str}
    size: {description: 'The drive as the host sees it.', type: int}
    native: {description: 'The drive without anything hidden.', type: int}
    hidden: {description: 'Hidden with C(hdparm -N); null if not known.', type: int}
    tail: {description: 'Behind the last partition; null without partitions.', type: int}
    unallocated: {description: 'In no NVMe namespace; null if not known.', type: int}
    reserved: {description: 'These together.', type: int}
    percent: {description: 'Of the native size.', type: float}
caches:
  description:
    - The SSD caches, as M(cachefleet.storage.block_cache_info) returns them, and two more entries.
  type: list
  elements: dict
  returned: success
  contains:
    hit_rates:
      description: What happened since the earlier reading.
      type: dict
      contains:
        state: {description: 'V(measured), V(idle), V(not_known_yet), V(counters_fell) or V(first_reading).', type: str}
        seconds: {description: 'Between the two readings.', type: float}
        reads:
          description: C(hits), C(misses), C(bypassed), C(percent) of what was looked up and C(of_all) requests; null unless measured.
          type: dict
        writes: {description: 'The same of writes.', type: dict}
    diagnosis:
      description: Which share of the requests cannot be cached, and why.
      type: dict
      contains:
        source: {description: 'V(histogram), V(block_statistics), or null if there were no requests.', type: str}
        since: {description: 'V(previous_reading), or V(load) for everything since the cache or its module was loaded.', type: str}
        requests: {description: 'How many requests it is about.', type: int}
        uncacheable_percent: {description: 'Of the requests; null if it cannot be told.', type: float}
        bypassed_percent: {description: 'Of the requests, as the cache counted; null if it does not count.', type: float}
        origin_read_percent: {description: 'Bytes read from the origin per 100 bytes read from the cached device.', type: float}
        mean_read: {description: 'Mean bytes of a read.', type: int}
        mean_write: {description: 'Mean bytes of a write.', type: int}
        pattern: {description: 'V(frames), V(misaligned), V(small_blocks), V(mixed) or V(none).', type: str}
        sentences: {description: 'The reasons.', type: list, elements: str}
        unknown: {description: 'What the figures cannot tell.', type: list, elements: str}
controllers:
  description: RAID controllers and what protects their caches.
  type: list
  elements: dict
  returned: success
compared:
  description: Whether there were readings of an earlier run, in O(previous) or O(previous_file).
  type: bool
  returned: success
readings:
  description: The counters of this look, for O(previous) of the next.
  type: dict
  returned: success
prometheus:
  description: The same for the textfile collector of the node exporter of Prometheus.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._health.module import LIMIT_OPTIONS, run_module


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "interval": {"type": "float", "default": 0},
            "previous": {"type": "dict"},
            "previous_file": {"type": "path"},
            "further_drives": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {"device": {"type": "str", "required": True}, "type": {"type": "str", "required": True}},
            },
            "limits": {"type": "dict", "default": {}, "options": LIMIT_OPTIONS},
        },
        mutually_exclusive=[("previous", "previous_file")],
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
