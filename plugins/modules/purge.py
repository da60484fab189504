#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: purge
short_description: Purge SSDs before they are measured
version_added: 1.0.0
description:
  - Brings SSDs back to the state in which no block has been written, as SNIA's Performance Test Specification requires before a test. B(Everything on
    the drive is lost), also what is hidden from the host, and a purge that has begun cannot be stopped.
  - The guard of M(cachefleet.storage.fio) examines each drive first, and the drive is held exclusively until it was read back. Only whole drives that
    nothing uses are purged, and each of them needs O(drives[].allow_purge). A drive that is not empty additionally needs O(drives[].allow_data_loss) and
    the matching O(drives[].identity).
  - The result is read back. An ATA drive must have no password any more, an NVMe drive must report that its sanitize is done, and the drive must not return
    the data that it had at any of 258 places.
  - Each purge is recorded in C(/var/lib/cachefleet/purges) on the host. One that was interrupted is reported by a warning when the module is run again, and
    the drive is then purged again. During its erase an ATA drive has the password C(cachefleet), with which the module unlocks it after a power failure.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
attributes:
  idempotent:
    support: partial
    details: A drive is purged in every run, unless O(once) names what it was purged for before.
options:
  drives:
    description: The drives of this host. An empty list changes nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description: The path of the whole drive, preferably a persistent one in C(/dev/disk/by-id).
        type: str
        required: true
      allow_purge:
        description: Whether this drive may be purged.
        type: bool
        default: false
      allow_data_loss:
        description:
          - Whether the data on the drive may be lost. Not needed for an empty drive. It only takes effect together with the matching O(drives[].identity).
          - It never allows a drive in use to be purged.
        type: bool
        default: false
      identity:
        description: The serial number or WWN that the drive must have. If it does not match, the drive is not purged.
        type: str
      method:
        description:
          - V(auto) selects the secure erase of a SATA drive, the format of an NVMe drive, or its sanitize if it has no format, and the sanitize of a SAS drive.
          - V(ata_secure_erase) and V(ata_enhanced_erase) use C(hdparm). A drive that the firmware of the host has frozen is refused.
          - V(nvme_format) and V(nvme_crypto_format) keep the block size of the namespace. If the format of the drive affects all namespaces, it must have
            only one.
          - V(nvme_sanitize) and V(nvme_crypto_sanitize) require a drive with one namespace.
          - V(scsi_sanitize) uses C(sg_sanitize) for the block erase of an SSD.
          - V(discard) discards all blocks, for drives without any of these. Whether this is equivalent depends on the drive.
        type: str
        choices:
          - auto
          - ata_secure_erase
          - ata_enhanced_erase
          - nvme_format
          - nvme_crypto_format
          - nvme_sanitize
          - nvme_crypto_sanitize
          - scsi_sanitize
          - discard
        default: auto
  once:
    description:
      - A name of what the drives are purged for, for example a campaign. A drive whose last purge was for the same name is not purged again.
      - If empty, drives are purged in every run.
    type: str
    default: ""
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.over_provisioning
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Purge a drive that contains data
  cachefleet.storage.purge:
    drives:
      - device: /dev/disk/by-id/nvme-Samsung_SSD_980_PRO_1TB_S5GXNF0R123456
        identity: S5GXNF0R123456
        allow_data_loss: true
        allow_purge: true

- name: Purge an empty drive once for a campaign
  cachefleet.storage.purge:
    once: acceptance-2026-11
    drives:
      - {device: /dev/disk/by-id/ata-INTEL_SSDSC2KB960G8_BTYF0001, allow_purge: true, method: ata_enhanced_erase}
"""

RETURN = r"""
actions:
  description: The purges that were performed, or would be performed in check mode.
  returned: always
  type: list
  elements: str
drives:
  description: The drives of the list.
  returned: success
  type: list
  elements: dict
  contains:
    device: {description: 'The value of O(drives[].device).', type: str}
    identity: {description: 'The serial number or WWN of the drive.', type: str}
    model: {description: 'The model of the drive.', type: str}
    size: {description: 'The size of the drive in bytes.', type: int}
    purge:
      description:
        - The last purge of the drive, with C(method), C(once), C(state) (V(running), V(done) or V(failed)), C(started) and C(finished) in seconds since the
          epoch, C(reads), what the drive returned afterwards, and C(message), the reason of a failure. V(null) if none is known.
      type: dict
error:
  description: The kind of failure, for example V(refused), V(bad_input), V(device_missing) or V(not_effective).
  returned: on failure
  type: str
  sample: refused
objections:
  description: If the guard refused a drive, the individual reasons.
  returned: on failure, if the guard refused a drive
  type: list
  elements: dict
item:
  description: The drive that failed.
  returned: on failure
  type: str
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.layer import PurgeLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.plan import CHOICES, read_drives

DRIVE_OPTIONS = {
    "device": {"type": "str", "required": True},
    "allow_purge": {"type": "bool", "default": False},
    "allow_data_loss": {"type": "bool", "default": False},
    "identity": {"type": "str"},
    "method": {"type": "str", "choices": list(CHOICES), "default": "auto"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "drives": {"type": "list", "elements": "dict", "required": True, "options": DRIVE_OPTIONS},
            "once": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    run_layer(module, lambda: PurgeLayer(Runner(), read_drives(module.params["drives"], module.params["once"])))


if __name__ == "__main__":
    main()
