# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """Options that several modules share, each with the same meaning in all of them."""

    PROTECTED_DRIVES = r"""
options:
  protected_drives:
    description:
      - Serial numbers, WWNs or models of drives whose write cache is known to survive a power failure (power-loss protection), or patterns of models
        or serial numbers, such as V(*SSDSC2BB*). A model must be complete, with the name of the vendor if the drive reports it, such as
        V(INTEL SSDSC2BB080G4). The first 16 characters, which sysfs has of the model of a SATA drive, are accepted too, but other models may have the
        same.
      - A dictionary with C(match) declares all drives that match, with the criteria of O(cachefleet.storage.drive_write_cache#module:drives[].match),
        for example by C(model) and C(transport). It must have a model, serial number or WWN.
      - There is no standard way to detect this protection, so it must be declared. Otherwise every volatile cache is considered unprotected.
    type: list
    elements: raw
    default: []
"""

    FLUSHED_VIRTUAL_DISKS = r"""
options:
  flushed_virtual_disks:
    description:
      - Virtual disks of which a flush reaches media that survive a power failure, named like O(protected_drives). It depends on the hypervisor, for example
        on the C(cache) of a disk of QEMU, which drops all flushes with C(cache=unsafe).
      - Whether an acknowledged write to any other virtual disk survives a power failure is unknown. A disk is virtual if a hypervisor makes it; a drive or
        controller that is passed through to a virtual machine is a real one.
    type: list
    elements: str
    default: []
"""

    TOOL_DIRS = r"""
options:
  tool_dirs:
    description:
      - Directories that are searched for the tools before the default directories.
    type: list
    elements: path
    default: []
"""

    CAMPAIGN_FOLDER = r"""
options:
  path:
    description: The folder of the campaign on the controller, as returned by M(cachefleet.storage.campaign).
    type: path
    required: true
"""

    RESULTS_FOLDER = r"""
options:
  results:
    description: The folder of the campaigns on the controller, in which a campaign is searched by name.
    type: path
    default: results
"""

    ANY_CAMPAIGN = r"""
options:
  path:
    description: The folder of the campaign on the controller, its name in O(results), or V(latest).
    type: str
    required: true
"""

    # On the controller. A path of a host is not expanded there.
    SPOOL = r"""
options:
  spool:
    description: The folder on the host in which results are kept until they are collected.
    type: str
    default: /var/lib/cachefleet/spool
"""

    CAMPAIGN = r"""
options:
  campaign:
    description: The name of the campaign. Letters, digits, C(.), C(_) and C(-).
    type: str
    required: true
"""

    MEASUREMENT = r"""
options:
  variant:
    description: The name of the cache configuration that is measured.
    type: str
    default: as_found
  spool:
    description:
      - The folder on the host in which results are kept until they are collected. It is created if it does not exist.
      - The mode of an existing folder is not changed. A folder of another user in a world-writable directory such as C(/tmp) is refused.
    type: path
    default: /var/lib/cachefleet/spool
  keep_going:
    description: Whether to continue with the remaining cells if a cell is not V(ok).
    type: bool
    default: true
  slack:
    description: Seconds that a cell may exceed the runtime of its job before it is stopped.
    type: float
    default: 120
  timeout:
    description: Seconds after which a cell without a time limit in its job is stopped.
    type: float
    default: 21600
requirements:
  - fio 2.1 or newer; combined percentiles of several jobs or hosts need 2.2.12, all features of the collection 3.1
  - wipefs or blkid, for jobs that write
"""
