#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fio
short_description: Measure a list of fio jobs on a host and wait for the results
version_added: 0.1.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Runs fio jobs one after the other and keeps of each what was sent, what fio wrote, byte for byte, the counters of the
    devices, the cache layers before and after, and what became of it.
  - The jobs are run by the process that M(cachefleet.storage.fio_runner) starts. This module waits for its end, and stops it when the task
    is stopped. The cell that was being measured is V(interrupted) then, and finished cells are kept.
  - A guard decides whether a job may touch its target. Nothing is ever written to a device that is mounted, used as swap, part
    of another device, under a loop device, exported to other hosts, or open in a process. A device that contains data, with or
    without a known signature, itself, in a partition or below, is written only with O(cells[].target.allow_data_loss) and the
    matching O(cells[].target.identity). A thin pool or a snapshot that the job could fill is refused.
  - All targets are examined before the first cell runs. If one is refused, nothing runs. Each is checked again right before its
    cell. Devices that are written are held exclusively until all cells are done, so that they can neither be mounted nor built on; a
    file is opened without following links, and fio inherits it, so that its name cannot be exchanged.
  - Every finished cell is a folder in the spool, whatever its state. C(cachefleet.storage.collect) brings them to the controller.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
    details: Targets are examined, jobs are checked by the fio of the host, and nothing is run.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: A cell that is V(ok) in the spool is not measured again until it was collected. See O(replace).
requirements:
  - fio 2.1 or newer; percentiles of several jobs or hosts together need 2.2.12, all of the collection 3.1
  - wipefs or blkid, for jobs that write
options:
  campaign:
    description: The name of the experiment. Letters, digits, C(.), C(_) and C(-).
    type: str
    required: true
  variant:
    description: The name of the cache configuration that is measured.
    type: str
    default: as_found
  host:
    description: The name that this host has in the results, usually C({{ inventory_hostname }}).
    type: str
    required: true
  cells:
    description: What to measure, in this order. An empty list is no work.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The name of the cell. Letters, digits, C(.), C(_) and C(-).
        type: str
        required: true
      repeat:
        description: Which repeat of the cell this is, from 1.
        type: int
        default: 1
      target:
        description: Where to measure. Either O(cells[].target.device) or O(cells[].target.file).
        type: dict
        required: true
        suboptions:
          device:
            description:
              - A block device. Links are followed.
            type: str
          file:
            description:
              - A plain file by its absolute path, outside of C(/dev). Its folder must exist.
              - A file that is not there is made, with mode 0600, and stays. It needs a O(cells[].target.size).
              - Symbolic links on its path are followed only if no other user could have made or exchanged them.
            type: str
          allow_data_loss:
            description:
              - What the target contains may be overwritten.
              - For a device this takes effect only together with the matching O(cells[].target.identity).
              - It never allows to write to something that is in use.
            type: bool
            default: false
          identity:
            description:
              - The serial number, WWN, C(vg/lv) or device mapper name that the device must have. For a loop device, its file.
              - It is compared with regard to case; only a WWN in hexadecimal may differ.
              - If it does not match, or matches several devices, nothing runs, whatever else is allowed.
            type: str
          size:
            description: How much of the target to use, in bytes or with a suffix C(k), C(M), C(G) or C(T).
            type: str
      job:
        description:
          - The fio options as a dictionary, or several sections as a dictionary with V(global), the options of all, and V(jobs), a
            list of options with a C(name) each.
          - An option without a value, such as C(time_based), is V(true) or V(null). V(true) for any other option is written as 1.
          - Options that name files, run commands or change the host, options that are not known to the collection, and engines that
            do not work on the target's path, are refused.
          - A job must end within O(cells[].target.size), computed from all of its options.
        type: dict
        required: true
  spool:
    description:
      - The folder on the host in which results wait to be collected. It is made if it is not there.
      - A folder that is there keeps its mode. One that another user made where everybody may, as in C(/tmp), is refused.
    type: path
    default: /var/lib/cachefleet/spool
  series:
    description: Also keep one-second averages of rate, IOPS and latency as C(series_*.log.gz).
    type: bool
    default: false
  keep_going:
    description: Measure the rest when a cell is not V(ok).
    type: bool
    default: true
  replace:
    description: Measure cells again that are V(ok) in the spool.
    type: bool
    default: false
  slack:
    description: Seconds that a cell may take longer than its job says before it is stopped.
    type: int
    default: 120
  timeout:
    description: Seconds after which a cell is stopped whose job has no time limit.
    type: int
    default: 21600
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.cache_stack_info
notes:
  - C(progress.json) in the folder of the campaign in the spool says which cell is running, C(runner.json) also how it does.
"""

EXAMPLES = r"""
- name: Transactional writes on a scratch volume
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

- name: Read a drive that is in use, and a file
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
"""

RETURN = r"""
cells:
  description: What became of each cell, in the order asked for. In check mode only those that are kept.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The name of the cell., type: str, sample: transactional}
    repeat: {description: Which repeat., type: int, sample: 1}
    state:
      description:
        - V(ok), V(not_steady), V(interrupted), V(failed) or V(refused).
        - V(missing) if O(keep_going=false) and an earlier cell was not V(ok).
      type: str
      sample: ok
    reason: {description: 'Why the state is not V(ok), as a sentence.', type: str, sample: ''}
    kept: {description: Whether it was in the spool already., type: bool}
    summary:
      description:
        - Figures per direction and for syncs; V(null) for what was not done or is not known.
        - V(null) as a whole if the cell did not run to its end.
      type: dict
      sample: {read: null, write: {iops: 150.2, bw_bytes: 615219, total_ios: 9012, runtime_ms: 60001}, trim: null, mixed: null, sync: null}
archive:
  description: All cells of the campaign that wait on this host, in one file. Empty in check mode.
  returned: success
  type: dict
  contains:
    path: {description: The tar file on the host., type: str, sample: /var/lib/cachefleet/spool/reads.tar}
    sha256: {description: Its SHA-256., type: str}
    size: {description: Its size in bytes., type: int}
fio_version:
  description: What the fio of the host calls itself; V(null) for an empty list.
  returned: success
  type: str
  sample: fio-3.33
actions:
  description: What was done, or would be.
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
  description: When a target was refused, each reason by itself.
  returned: failure, if the guard refused a target
  type: list
  elements: dict
refusals:
  description: When several targets were refused, those after the first.
  returned: failure, if the guard refused a target
  type: list
  elements: dict
"""

import signal

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.control import spool_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground import measure, order_of
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack

TARGET = {
    "device": {"type": "str"},
    "file": {"type": "str"},
    "allow_data_loss": {"type": "bool", "default": False},
    "identity": {"type": "str"},
    "size": {"type": "str"},
}
CELL = {
    "name": {"type": "str", "required": True},
    "repeat": {"type": "int", "default": 1},
    "target": {"type": "dict", "required": True, "options": TARGET, "mutually_exclusive": [("device", "file")], "required_one_of": [("device", "file")]},
    "job": {"type": "dict", "required": True},
}
ARGUMENTS = {
    "campaign": {"type": "str", "required": True},
    "variant": {"type": "str", "default": "as_found"},
    "host": {"type": "str", "required": True},
    "cells": {"type": "list", "elements": "dict", "required": True, "options": CELL},
    "spool": {"type": "path", "default": "/var/lib/cachefleet/spool"},
    "series": {"type": "bool", "default": False},
    "keep_going": {"type": "bool", "default": True},
    "replace": {"type": "bool", "default": False},
    "slack": {"type": "int", "default": 120},
    "timeout": {"type": "int", "default": 21600},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    options = module.params
    # A module that is stopped must not leave fio behind: the exception stops the runner with all its jobs.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        runner = Runner()
        host = MeasuredHost(runner, lambda: read_stack(runner))
        result = measure(order_of(options), spool_of(options["spool"], options["campaign"]), host, check_mode=module.check_mode)
    except StorageError as error:
        module.fail_json(**error.as_result())
    except KeyboardInterrupt:
        module.fail_json(msg="The measurement was interrupted: fio was stopped, and finished cells are in the spool.", error="stopped")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
