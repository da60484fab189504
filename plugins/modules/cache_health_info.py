#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_health_info
short_description: Check drive wear and the health of SSD caches and their protection
version_added: 1.0.0
description:
  - Checks a whole host in one call and returns actionable findings. It reads the wear of all drives, the state, dirty ratio, hit ratios and
    errors of all SSD caches, the battery or capacitor of RAID controllers, degraded MD arrays and volume groups with missing members, the
    caches of ZFS (ARC, L2ARC and log devices), and the over-provisioning of each SSD.
  - Drives are read with C(smartctl). Attributes are matched by name and wear is taken from the normalised value, because attribute numbers
    and raw values differ between models.
  - Hit ratios are computed from the difference between two readings. Set O(interval), or pass RV(readings) of an earlier run.
    If counters have decreased in between, they were reset, and no ratio is returned.
  - For each cache, the percentage of requests that cannot be cached or that bypassed it is returned with the reasons, if the kernel
    counters allow this.
  - Items that cannot be read are not a failure. They are reported in RV(problems).
options:
  interval:
    description:
      - Seconds between two readings of the caches in this run. With V(0) the caches are read once, and compared with O(previous) or
        O(previous_file).
      - bcache updates its counters every 13.6 seconds only, so less than 15 seconds are not meaningful for it.
    type: float
    default: 0
  previous:
    description: RV(readings) of an earlier run on this host.
    type: dict
  previous_file:
    description:
      - A file on the host with RV(readings) of an earlier run as JSON. It need not exist, and is not written by this module.
    type: path
  further_drives:
    description: Drives that C(smartctl --scan-open) does not list, such as those behind some RAID controllers.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: The device that C(smartctl) opens, for example C(/dev/sg1).
        type: str
        required: true
      type:
        description: The argument of C(smartctl -d), for example V(cciss,0) or V(aacraid,0,0,1).
        type: str
        required: true
  verdicts:
    description:
      - Whether to determine for each mounted device and ZFS pool if an acknowledged, flushed write survives a power failure, as
        M(cachefleet.storage.cache_stack_info) does. A device with the verdict V(at_risk) is a finding.
      - This reads all cache layers a second time.
    type: bool
    default: false
  limits:
    description: Thresholds of the findings.
    type: dict
    default: {}
    suboptions:
      wear_used:
        description:
          - Used percentage of the rated endurance of a drive at which the finding is critical.
          - The default corresponds to a normalised C(Media_Wearout_Indicator) of 10.
        type: int
        default: 90
      wear_used_soon:
        description: Used percentage of the rated endurance at which the finding is a warning.
        type: int
        default: 80
      reallocated:
        description: Number of reallocated sectors of a drive at which the finding is critical.
        type: int
        default: 100
      dirty:
        description: Dirty percentage of a cache at which the finding is critical.
        type: int
        default: 70
      dirty_average:
        description: Mean dirty percentage over up to 24 stored readings at which the finding is a warning.
        type: int
        default: 30
      metadata:
        description: Used percentage of the capacity for the metadata of a cache (lvmcache and dm-cache) at which the finding is a warning.
        type: int
        default: 80
      read_hits:
        description: Read hit percentage of a cache, or of the cache devices of ZFS, below which the finding is a warning.
        type: int
        default: 20
      uncacheable:
        description: Percentage of requests that cannot be cached because of their size at which the finding is a warning.
        type: int
        default: 20
      requests:
        description: Minimum number of requests for a hit ratio to be evaluated.
        type: int
        default: 1000
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
seealso:
  - module: cachefleet.storage.cache_stack_info
  - module: cachefleet.storage.block_cache_info
  - module: cachefleet.storage.raid_cache_info
  - module: cachefleet.storage.over_provisioning
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Check the host, with hit ratios over 30 seconds
  cachefleet.storage.cache_health_info:
    interval: 30
  register: health

- name: Fail if a problem was found
  ansible.builtin.assert:
    that: health.healthy
    fail_msg: "{{ health.findings | rejectattr('severity', 'equalto', 'info') | map(attribute='message') | join('; ') }}"

- name: Check the host with lower wear limits and an additional drive
  cachefleet.storage.cache_health_info:
    limits:
      wear_used: 75
      wear_used_soon: 60
    further_drives:
      - {device: /dev/sg1, type: 'cciss,0'}
"""

RETURN = r"""
healthy:
  description: Whether there are no findings that are critical or a warning.
  type: bool
  returned: success
worst:
  description: The highest severity of the findings, V(critical), V(warning) or V(none).
  type: str
  returned: success
findings:
  description: The findings, sorted by severity, the most severe first.
  type: list
  elements: dict
  returned: success
  contains:
    severity: {description: 'V(critical), V(warning) or V(info).', type: str}
    subject: {description: 'The cache, drive, array or controller.', type: str}
    check: {description: 'Identifier of the check, which is stable between versions.', type: str}
    message: {description: 'One line with the finding and the recommended action.', type: str}
    value: {description: 'The value that was read.', type: raw}
    limit: {description: 'The limit with which it was compared.', type: raw}
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
  description: Items that could not be read, one sentence each.
  type: list
  elements: str
  returned: success
drives:
  description: Every drive that could be read. Values that a drive does not report are null.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'Kernel name, or the device that C(smartctl) opens.', type: str}
    path: {description: 'Persistent path, or the arguments of C(smartctl) for a drive behind a controller.', type: str}
    device_type: {description: 'The argument of C(smartctl -d) of a drive behind a controller.', type: str}
    protocol: {description: 'V(ata), V(scsi), V(nvme) or V(unknown).', type: str}
    media: {description: 'V(ssd), V(hdd) or V(unknown).', type: str}
    model: {description: 'Model.', type: str}
    serial: {description: 'Serial number.', type: str}
    firmware: {description: 'Firmware version.', type: str}
    passed: {description: 'Overall health self-assessment of the drive.', type: bool}
    wear_used_percent: {description: 'Used percentage of the rated endurance; may exceed 100.', type: int}
    spare_percent: {description: 'Remaining spare blocks in percent.', type: int}
    spare_threshold_percent: {description: "The drive's own threshold for spare blocks.", type: int}
    warnings: {description: 'Warnings of an NVMe drive.', type: list, elements: str}
    failing: {description: 'ATA attributes that have reached their threshold.', type: list, elements: str}
    reallocated: {description: 'Reallocated sectors or blocks.', type: int}
    pending: {description: 'Sectors that are pending reallocation.', type: int}
    media_errors: {description: 'Uncorrectable read errors.', type: int}
    unsafe_shutdowns: {description: 'Number of unsafe shutdowns.', type: int}
    power_on_hours: {description: 'Power-on hours.', type: int}
    temperature: {description: 'Temperature in degrees Celsius.', type: int}
    written_bytes: {description: 'Bytes written by the host.', type: int}
    capacity: {description: 'Total capacity of an NVMe drive for namespaces in bytes.', type: int}
    unallocated: {description: 'Capacity of an NVMe drive that is not allocated to a namespace, in bytes.', type: int}
    link_speed: {description: 'Speed of a SATA link in bits per second, as it is used now.', type: int}
    evidence: {description: 'The attribute or field from which each value was read.', type: dict}
over_provisioning:
  description: The over-provisioning of each SSD, in bytes.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'Kernel name.', type: str}
    path: {description: 'Persistent path.', type: str}
    size: {description: 'Size that is visible to the host.', type: int}
    native: {description: 'Native size of the drive.', type: int}
    hidden: {description: 'Size of the host protected area (C(hdparm -N)); null if unknown.', type: int}
    tail: {description: 'Free space after the last partition; null without partitions.', type: int}
    unallocated: {description: 'Space that is not allocated to an NVMe namespace; null if unknown.', type: int}
    reserved: {description: 'The sum of these.', type: int}
    percent: {description: 'The sum as a percentage of the native size.', type: float}
caches:
  description:
    - The SSD caches, as returned by M(cachefleet.storage.block_cache_info), with two more keys.
  type: list
  elements: dict
  returned: success
  contains:
    hit_rates:
      description: The hit ratios since the earlier reading.
      type: dict
      contains:
        state: {description: 'V(measured), V(idle), V(not_known_yet), V(counters_fell) or V(first_reading).', type: str}
        seconds: {description: 'Seconds between the two readings.', type: float}
        reads:
          description: C(hits), C(misses), C(bypassed), hits in C(percent) of all lookups and C(of_all) requests; null unless measured.
          type: dict
        writes: {description: 'The same for writes.', type: dict}
    diagnosis:
      description: The percentage of requests that cannot be cached, with the reasons.
      type: dict
      contains:
        source: {description: 'V(histogram), V(block_statistics), or null if there were no requests.', type: str}
        since: {description: 'V(previous_reading), or V(load) for everything since the cache or its module was loaded.', type: str}
        requests: {description: 'Number of evaluated requests.', type: int}
        uncacheable_percent: {description: 'Percentage of requests that cannot be cached; null if unknown.', type: float}
        bypassed_percent: {description: 'Percentage of requests that bypassed the cache; null if the cache does not count them.', type: float}
        origin_read_percent: {description: 'Bytes read from the origin per 100 bytes read from the cached device.', type: float}
        mean_read: {description: 'Mean size of a read in bytes.', type: int}
        mean_write: {description: 'Mean size of a write in bytes.', type: int}
        pattern: {description: 'V(frames), V(misaligned), V(small_blocks), V(mixed) or V(none).', type: str}
        sentences: {description: 'The reasons.', type: list, elements: str}
        unknown: {description: 'Questions that the counters cannot answer.', type: list, elements: str}
controllers:
  description: RAID controllers and the protection of their caches.
  type: list
  elements: dict
  returned: success
verdicts:
  description: By device, whether an acknowledged, flushed write survives a power failure. Empty without O(verdicts).
  type: dict
  returned: success
  contains:
    verdict: {description: 'V(durable), V(at_risk) or V(unknown).', type: str}
    reason: {description: 'The reason, which names the decisive layer.', type: str}
zfs:
  description: The caches of ZFS; null on hosts without pools.
  type: dict
  returned: success
  contains:
    arc:
      description: Values of C(arcstats) for the ARC and the cache devices (L2ARC) of all pools, with the names of OpenZFS.
      type: dict
    zil: {description: 'Values of C(zil) for the intent log of all pools, with the names of OpenZFS.', type: dict}
    pools:
      description: The imported pools.
      type: list
      elements: dict
      contains:
        name: {description: 'Name.', type: str}
        state: {description: 'The state as reported by C(zpool status), for example V(ONLINE).', type: str}
        size: {description: 'Size in bytes.', type: int}
        vdevs:
          description: Log and cache devices.
          type: list
          elements: dict
          contains:
            class: {description: 'V(logs) or V(cache).', type: str}
            name: {description: 'Path of the device, or the name of a mirror.', type: str}
            state: {description: 'The state as reported by C(zpool status).', type: str}
            devices: {description: 'Paths of its devices.', type: list, elements: str}
            redundancy: {description: 'V(mirrored), V(degraded) or V(none).', type: str}
            allocated: {description: 'Used bytes; null if unknown.', type: int}
            free: {description: 'Free bytes; null if unknown.', type: int}
links:
  description: The links of drives, and the network interfaces that are up. Drives behind a RAID controller and virtual disks have none.
  type: list
  elements: dict
  returned: success
  contains:
    kind: {description: 'V(network) or V(drive).', type: str}
    name: {description: 'Name of the interface, or the persistent path of the drive.', type: str}
    speed: {description: 'What was negotiated, in bits per second; null if unknown.', type: float, sample: 6000000000.0}
worse:
  description:
    - The findings that are new, or more severe, since the earlier reading. All findings except V(info) without one.
  type: list
  elements: dict
  returned: success
worse_keys:
  description: One word for each of RV(worse), as in C(problems) of RV(readings).
  type: list
  elements: str
  returned: success
compared:
  description: Whether readings of an earlier run were available, in O(previous) or O(previous_file).
  type: bool
  returned: success
readings:
  description: The counters of this reading, for O(previous) of the next run.
  type: dict
  returned: success
prometheus:
  description: The results in the format of the textfile collector of the Prometheus node exporter.
  type: str
  returned: success
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._health.host import LIMIT_OPTIONS, run_module


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
            "verdicts": {"type": "bool", "default": False},
            **DECLARATION_OPTIONS,
            "limits": {"type": "dict", "default": {}, "options": LIMIT_OPTIONS},
        },
        mutually_exclusive=[("previous", "previous_file")],
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
