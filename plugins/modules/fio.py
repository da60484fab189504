#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fio
short_description: Run a list of fio jobs on a host and wait for the results
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Runs fio jobs one after the other and stores for each the job file, the unmodified output of fio, the counters of the
    devices, the cache layers before and after the run, and the resulting state.
  - The process that M(cachefleet.storage.fio_runner) starts runs the jobs. This module waits for its end, and stops it when the task is
    stopped. The cell that was running is V(interrupted) then, and finished cells are kept.
  - A guard checks whether a job may access its target. Writes are never allowed to a device that is mounted, used as swap, part
    of another device, used by a loop device, exported to other hosts, or opened by a process. A device that contains data, with or
    without a known signature, on itself, on a partition or on an underlying device, is only written with O(cells[].target.allow_data_loss)
    and the matching O(cells[].target.identity). A thin pool or a snapshot that the job could fill is refused.
  - All targets are examined before the first cell runs. If one is refused, no cell runs. Each target is examined again immediately before its
    cell. Devices that are written are opened exclusively until all cells are finished, so that they can neither be mounted nor used by other devices. A file is
    opened by the module without following links and inherited by fio, so that it cannot be replaced.
  - Every finished cell is a folder in the spool, regardless of its state. C(cachefleet.storage.collect) transfers them to the controller.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._options.campaign
  - cachefleet.storage._options.measurement
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
attributes:
  check_mode:
    details: Targets are examined and jobs are validated with the fio of the host, but nothing is run.
  idempotent:
    details: A cell that is V(ok) in the spool is not measured again until it is collected. See O(replace).
options:
  host:
    description: The name that this host has in the results, usually C({{ inventory_hostname }}).
    type: str
    required: true
  cells:
    description: The cells to measure, in this order. With an empty list nothing is measured.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The name of the cell. Letters, digits, C(.), C(_) and C(-).
        type: str
        required: true
      repeat:
        description: The number of the repeat, starting with 1.
        type: int
        default: 1
      target:
        description: The target of the measurement. One of O(cells[].target.device), O(cells[].target.file) and O(cells[].target.directory).
        type: dict
        required: true
        suboptions:
          device:
            description:
              - A block device, preferably by a persistent path such as V(/dev/disk/by-id/...) or V(/dev/vg0/scratch). Links are followed.
            type: str
          file:
            description:
              - A regular file by its absolute path, outside of C(/dev). Its folder must exist.
              - A file that does not exist is created with mode 0600, and kept. It needs O(cells[].target.size).
              - Symbolic links in the path are only followed if no other user could have created or replaced them.
            type: str
          directory:
            description:
              - A directory for jobs with several files (C(nrfiles), C(filesize)), by its absolute path. Its parent must exist.
              - A directory that does not exist is created with mode 0700, and kept with its files. Any other directory is refused, and so is one that
                contains anything else by now. O(cells[].target.allow_data_loss) is not supported.
            type: str
          allow_data_loss:
            description:
              - Whether the data on the target may be overwritten. Not needed for a device that is empty or only contains data that fio wrote.
              - For a device this only takes effect together with the matching O(cells[].target.identity).
              - It never allows writes to a target that is in use.
            type: bool
            default: false
          identity:
            description:
              - The serial number, WWN, C(vg/lv) or device-mapper name that the device must have. For a loop device, its file. For a partition, its PARTUUID, or
                the serial number or WWN of its disk with C(-part) and its number, for example C(S5GXNF0R123456-part1).
              - The comparison is case-sensitive, except for hexadecimal WWNs.
              - If it does not match, or matches more than one device, nothing is run, regardless of other permissions.
            type: str
          size:
            description: The part of the target to use, in bytes or with a suffix C(k), C(M), C(G) or C(T).
            type: str
      job:
        description:
          - The fio options as a dictionary, or several sections as a dictionary with V(global), the options of all sections, and V(jobs), a
            list of options with a C(name) each.
          - An option without a value, such as C(time_based), is V(true) or V(null). V(true) for any other option is written as 1.
          - Options that refer to files, run commands or change the host, options that are unknown to the collection, and engines that
            do not use the target's path are refused.
          - A job must not exceed O(cells[].target.size), which is computed from all of its options.
          - C(read_iolog) is the content of a log that fio recorded with C(write_iolog), and in a suite also its path. Its I/Os are done on
            O(cells[].target), whatever files it names.
        type: dict
        required: true
  replace:
    description: Whether cells that are V(ok) in the spool are measured again.
    type: bool
    default: false
  series:
    description: Whether one-second averages of bandwidth, IOPS and latency are kept as C(series_*.log.gz).
    type: bool
    default: false
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.cache_stack_info
notes:
  - C(progress.json) in the folder of the campaign in the spool contains the cell that is running, C(runner.json) also its progress.
"""

EXAMPLES = r"""
- name: Measure transactional writes on a scratch volume
  cachefleet.storage.fio:
    campaign: 2026-11-21T1403Z
    variant: before
    host: "{{ inventory_hostname }}"
    cells:
      - name: transactional
        target:
          device: /dev/vg0/scratch
          identity: vg0/scratch
          allow_data_loss: true
        job: {rw: randwrite, bs: 4k, ioengine: libaio, iodepth: 16, direct: 1, fdatasync: 1, time_based: true, runtime: 60}

- name: Measure reads on a drive that is in use, and on a file
  cachefleet.storage.fio:
    campaign: reads
    host: "{{ inventory_hostname }}"
    cells:
      - name: drive
        target: {device: /dev/disk/by-id/ata-ST4000NM0035_ZC1AAAAA}
        job: {rw: randread, bs: 4k, direct: 1, time_based: true, runtime: 30}
      - name: file
        target: {file: /srv/fio.dat, size: 1G}
        job:
          global: {direct: 1, ioengine: libaio, time_based: true, runtime: 30}
          jobs:
            - {name: random, rw: randread, bs: 4k, iodepth: 32}
            - {name: sequential, rw: read, bs: 1M, stonewall: true}

- name: Replay what an application did, as recorded by fio, on an empty volume
  cachefleet.storage.fio:
    campaign: replay
    host: "{{ inventory_hostname }}"
    cells:
      - name: oltp
        target: {device: /dev/vg0/scratch, size: 20G}
        job: {read_iolog: "{{ lookup('ansible.builtin.file', 'oltp.log') }}", ioengine: libaio, iodepth: 16, direct: 1}
"""

RETURN = r"""
cells:
  description: The result of each cell, in the given order. In check mode only cells that are kept.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The name of the cell., type: str, sample: transactional}
    repeat: {description: The number of the repeat., type: int, sample: 1}
    state:
      description:
        - V(ok), V(not_steady), V(interrupted), V(failed) or V(refused).
        - V(missing) if O(keep_going=false) and an earlier cell was not V(ok).
      type: str
      sample: ok
    reason: {description: 'The reason if the state is not V(ok), as a sentence.', type: str, sample: ''}
    kept: {description: Whether the result was already in the spool., type: bool}
    summary:
      description:
        - Figures per direction and for syncs. V(null) for values that were not measured or are unknown.
        - V(null) if the cell was not completed.
      type: dict
      sample: {read: null, write: {iops: 150.2, bw_bytes: 615219, total_ios: 9012, runtime_ms: 60001}, trim: null, mixed: null, sync: null}
archive:
  description: All uncollected cells of the campaign on this host, in one file. Empty in check mode.
  returned: success
  type: dict
  contains:
    path: {description: The tar file on the host., type: str, sample: /var/lib/cachefleet/spool/reads.tar}
    sha256: {description: SHA-256 checksum of the file., type: str}
    size: {description: Size of the file in bytes., type: int}
fio_version:
  description: The version of fio on the host, V(null) for an empty list.
  returned: success
  type: str
  sample: fio-3.33
actions:
  description: The actions that were performed, or would be performed in check mode.
  returned: success
  type: list
  elements: str
  sample: [measure before/transactional/1 on /dev/vg0/scratch (writing)]
error:
  description: The kind of failure, for example V(refused), V(busy), V(device_missing), V(tool_missing), V(too_old), V(bad_input), V(spool) or V(stopped).
  returned: failure
  type: str
  sample: refused
objections:
  description: If a target was refused, the individual reasons.
  returned: failure, if the guard refused a target
  type: list
  elements: dict
refusals:
  description: If more than one target was refused, all but the first.
  returned: failure, if the guard refused a target
  type: list
  elements: dict
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

import signal

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.control import spool_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground import measure, order_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import MEASUREMENT_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack

KINDS = ("device", "file", "directory")
TARGET = {
    "device": {"type": "str"},
    "file": {"type": "str"},
    "directory": {"type": "str"},
    "allow_data_loss": {"type": "bool", "default": False},
    "identity": {"type": "str"},
    "size": {"type": "str"},
}
CELL = {
    "name": {"type": "str", "required": True},
    "repeat": {"type": "int", "default": 1},
    "target": {"type": "dict", "required": True, "options": TARGET, "mutually_exclusive": [KINDS], "required_one_of": [KINDS]},
    "job": {"type": "dict", "required": True},
}
ARGUMENTS = {
    **MEASUREMENT_OPTIONS,
    "host": {"type": "str", "required": True},
    "cells": {"type": "list", "elements": "dict", "required": True, "options": CELL},
    "series": {"type": "bool", "default": False},
    "replace": {"type": "bool", "default": False},
    **DECLARATION_OPTIONS,
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    options = module.params
    # A module that is stopped must not leave fio behind: the exception stops the runner with all its jobs.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        runner = Runner()
        host = MeasuredHost(
            runner, lambda devices: read_stack(runner, protected=options["protected_drives"], flushed=options["flushed_virtual_disks"], devices=devices)
        )
        result = measure(order_of(options), spool_of(options["spool"], options["campaign"]), host, check_mode=module.check_mode)
    except StorageError as error:
        module.fail_json(**error.to_dict())
    except KeyboardInterrupt:
        module.fail_json(msg="The measurement was interrupted: fio was stopped, and finished cells are in the spool.", error="stopped")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
