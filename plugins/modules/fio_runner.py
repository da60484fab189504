#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fio_runner
short_description: Measure a host in the background, by a timetable
version_added: 0.4.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Starts a process on the host that carries out an order, a list of steps with fio jobs, and ends when it is done. It needs neither
    the controller nor the connection that started it.
  - Each cell is a folder in the spool as soon as it is finished, with its state, its series and the cache layers below its target.
  - What was measured before, with the same job, target, fio and cache layers, is not measured again. So an order that was interrupted
    by whatever is resumed by giving it again.
  - The guard of M(cachefleet.storage.fio) decides about every target before the process is started, and devices that are written are
    held exclusively until the order is done.
  - C(cachefleet.storage.collect) brings the results to the controller.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
    details: Targets, the version of fio, its engines and all job files are examined, and nothing is started or stopped.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: A runner that carries out the same order is left alone. One that has ended is started again, and measures what is not V(ok).
requirements:
  - fio 2.1 or newer; percentiles of several jobs or hosts together need 2.2.12, all of the collection 3.1
  - wipefs or blkid, for jobs that write
options:
  state:
    description:
      - V(started) sees that the order is being carried out. If its runner runs already, nothing is done. If another order is being
        carried out on this host, the module fails.
      - V(stopped) tells the runner of O(campaign) to stop, waits until it has, and packs what is finished. The cell that was being
        measured is V(interrupted).
      - V(packed) packs what is finished and says what became of each cell. A runner that works is not disturbed.
    type: str
    choices: [started, stopped, packed]
    default: started
  campaign:
    description: The name of the experiment. Letters, digits, C(.), C(_) and C(-).
    type: str
    required: true
  variant:
    description: The name of the cache configuration that is measured.
    type: str
    default: as_found
  host:
    description: The name that this host has in the results, usually C({{ inventory_hostname }}). Needed with O(state=started).
    type: str
  steps:
    description: What to do, one after the other. An empty list is no work. Needed with O(state=started).
    type: list
    elements: dict
    suboptions:
      number:
        description: The number of the step, from 0. It is only for the reader; steps are carried out as they are listed.
        type: int
      kind:
        description:
          - V(cells) measures O(steps[].cells), which start together.
          - V(search) looks for the most that O(steps[].cell) does under a latency limit; each probe is a cell of its own.
          - V(rounds) repeats O(steps[].cell) until it is steady; each round is a cell of its own.
        type: str
        choices: [cells, search, rounds]
        default: cells
      barrier:
        description:
          - Wait before this step until C(release-N.json) in the folder of the campaign in the spool says when all hosts begin,
            where N counts the barriers from 0.
        type: bool
        default: false
      offset:
        description: Seconds after the instant of the last barrier at which the step begins. Without it the step begins when the one before is done.
        type: float
      pause:
        description:
          - What is waited for before the step.
          - Either C(seconds), or C(until) with the value C(clean), until no block cache below a target is dirty, or
            C(garbage_collection) with bytes per second of all targets together, as long as that needs for what was written since the last pause.
            With the value C(measured) the rate of each target and block size is what its cells with C(measures_garbage_collection) have shown; the
            lowest of them for other block sizes. Without any the pause takes C(most). Both are said in the notes of the next cell.
          - C(most) is the number of seconds after which it ends in any case, 7200 if not given.
        type: dict
      cells:
        description:
          - The cells of a step of kind V(cells), each a dictionary with C(name), C(repeat), C(target) and C(job) as in the cells of M(cachefleet.storage.fio).
          - C(done_as) is the C(measurement_sha256) of the result that is stored already. A cell that would be measured with the same hash is left out;
            another one replaces it.
          - C(measures_garbage_collection) says that the rate of writing at the end of the cell is that of garbage collection, if it fell during the
            cell and stayed low, or if cells before it that go over the whole target have written as much as it holds since it was discarded last.
        type: list
        elements: dict
      cell:
        description: The cell of a search or of rounds, a dictionary as in O(steps[].cells).
        type: dict
      search:
        description:
          - C(metric) is the latency that counts, C(mean) or C(p50), C(p90), C(p95), C(p99), C(p99.9) or C(p99.99); C(limit) is its limit in ns.
          - C(over) is the option of the job that is varied, C(iodepth), C(numjobs) or C(rate_iops), from C(first) on, each time by C(factor)
            (2 if not given), up to C(last); then between the last good and the first bad value until C(bracket) of the good one is left
            (0.1 if not given).
          - C(direction) is C(read), C(write) or C(mixed); without it the worst one counts.
        type: dict
      rounds:
        description:
          - Over C(window) rounds (5) the tracked figure must not spread more than C(range) of its average (0.20), and the line fitted to it
            must not change by more than C(slope) of it (0.10). After C(most) rounds (25) it is V(not_steady).
          - C(track) is C(write) or C(read), C(what) is C(iops), C(bandwidth) or C(latency).
        type: dict
      done:
        description: The C(measurement_sha256) of probes or rounds that are stored already, by the names of their cells.
        type: dict
  spool:
    description:
      - The folder on the host in which results wait to be collected. It is made if it is not there.
      - A folder that is there keeps its mode. One that another user made where everybody may, as in C(/tmp), is refused.
    type: path
    default: /var/lib/cachefleet/spool
  series:
    description: Also keep one-second averages of rate, IOPS and latency as C(series_*.log.gz).
    type: bool
    default: true
  sample_interval:
    description: Seconds between two looks at the counters of the devices and block caches, which become C(device_series.log.gz) and C(cache_series.log.gz).
    type: float
    default: 5
  keep_going:
    description: Measure the rest when a cell is not V(ok).
    type: bool
    default: true
  replace:
    description: Measure cells again that are stored already.
    type: bool
    default: false
  slack:
    description: Seconds that a cell may take longer than its job says before it is stopped.
    type: float
    default: 120
  timeout:
    description: Seconds after which a cell is stopped whose job has no time limit.
    type: float
    default: 21600
  barrier_timeout:
    description: Seconds after which the runner goes on alone when nobody releases a barrier. Its cells say so.
    type: float
    default: 900
seealso:
  - module: cachefleet.storage.fio
  - module: cachefleet.storage.cache_stack_info
notes:
  - C(runner.json) in the folder of the campaign in the spool says what the runner is doing, C(runner.log) what it did.
  - While the runner lives, it holds the spool's lock; M(cachefleet.storage.fio) with the same spool fails meanwhile. That module runs a
    plain list of cells with the same process and waits for its end.
"""

EXAMPLES = r"""
- name: Measure two drives at once, in the background
  cachefleet.storage.fio_runner:
    campaign: 2026-11-22T0500Z
    variant: before
    host: "{{ inventory_hostname }}"
    steps:
      - cells:
          - name: randwrite.a
            target: {device: /dev/vg0/scratch_a, identity: vg0/scratch_a, allow_data_loss: true}
            job: {rw: randwrite, bs: 4k, ioengine: libaio, iodepth: 16, direct: 1, time_based: true, runtime: 60}
          - name: randwrite.b
            target: {device: /dev/vg0/scratch_b, identity: vg0/scratch_b, allow_data_loss: true}
            job: {rw: randwrite, bs: 4k, ioengine: libaio, iodepth: 16, direct: 1, time_based: true, runtime: 60}

- name: The most random reads with a p99 of at most 5 ms, after a pause until the cache is clean
  cachefleet.storage.fio_runner:
    campaign: limits
    host: "{{ inventory_hostname }}"
    steps:
      - kind: search
        pause: {until: clean, most: 3600}
        cell:
          name: randread-under-5ms
          target: {device: /dev/vg0/images}
          job: {rw: randread, bs: 8k, ioengine: libaio, direct: 1, time_based: true, runtime: 30, ramp_time: 5}
        search: {metric: p99, limit: 5000000, over: iodepth, first: 1, last: 256}

- name: Look how far it is, and pack what is finished
  cachefleet.storage.fio_runner:
    state: packed
    campaign: limits
  register: limits

- name: Stop it
  cachefleet.storage.fio_runner:
    state: stopped
    campaign: limits
"""

RETURN = r"""
attached:
  description: Whether a runner carried out this order already.
  returned: with O(state=started)
  type: bool
order_sha256:
  description: The hash of the order, without what says how far it has come.
  returned: with O(state=started)
  type: str
fio_version:
  description: What the fio of the host calls itself; V(null) if a runner was there already, and for an empty list.
  returned: with O(state=started)
  type: str
  sample: fio-3.33
runner:
  description: What C(runner.json) says, and whether its process is alive. Empty without a runner and in check mode of O(state=started).
  returned: success
  type: dict
  contains:
    alive: {description: Whether the process is there., type: bool}
    state: {description: 'V(starting), V(waiting), V(pausing), V(measuring), V(finished), V(stopped) or V(failed).', type: str, sample: measuring}
    message: {description: 'Why it ended so, as a sentence.', type: str, sample: ''}
    error: {description: 'The kind of failure if its state is V(failed), for example V(spool).', type: str, sample: null}
    pid: {description: Its process., type: int, sample: 4711}
    segment: {description: The barrier that it waits at or that it passed last., type: int, sample: 0}
    step: {description: The number of its step., type: int, sample: 3}
    steps: {description: How many there are., type: int, sample: 12}
    cell: {description: What is being measured., type: str, sample: randwrite.a}
    target: {description: Where., type: str, sample: /dev/vg0/scratch_a}
    iops: {description: What the devices of the targets did in the last interval., type: float, sample: 21034.5}
    bandwidth: {description: The same in bytes per second., type: float, sample: 86157312}
    latency_ms: {description: The same as the mean wait., type: float, sample: 0.75}
    until: {description: 'When what it does now will end, in seconds since the epoch, if that is known.', type: float}
    all_until: {description: 'When the order will be done, estimated.', type: float}
    done: {description: Cells that are done., type: int, sample: 12}
    failed: {description: Cells that are not V(ok)., type: int, sample: 0}
cells:
  description: What became of each cell so far, probes and rounds before what they led to.
  returned: with O(state=packed) and O(state=stopped)
  type: list
  elements: dict
  contains:
    name: {description: The name of the cell., type: str, sample: randwrite.a}
    repeat: {description: Which repeat., type: int, sample: 1}
    step: {description: The number of its step., type: int, sample: 0}
    state: {description: 'V(ok), V(not_steady), V(interrupted), V(failed), V(refused) or V(missing).', type: str, sample: ok}
    reason: {description: 'Why the state is not V(ok), as a sentence.', type: str, sample: ''}
    kept: {description: Whether it was measured before this order began., type: bool}
    summary: {description: Figures per direction as in M(cachefleet.storage.fio); V(null) if there are none., type: dict}
archive:
  description: All cells of the campaign that wait on this host, in one file. Empty if there is none, and in check mode.
  returned: with O(state=packed) and O(state=stopped)
  type: dict
  contains:
    path: {description: The tar file on the host., type: str, sample: /var/lib/cachefleet/spool/limits.tar}
    sha256: {description: Its SHA-256., type: str}
    size: {description: Its size in bytes., type: int}
actions:
  description: What was started or stopped, or would be.
  returned: success
  type: list
  elements: str
  sample: [measure before/randwrite.a/1 on /dev/vg0/scratch_a (writing)]
error:
  description: The kind of failure, for example V(busy), V(refused), V(device_missing), V(tool_missing), V(too_old), V(bad_input) or V(spool).
  returned: failure
  type: str
  sample: busy
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack

STEP = {
    "number": {"type": "int"},
    "kind": {"type": "str", "choices": ["cells", "search", "rounds"], "default": "cells"},
    "barrier": {"type": "bool", "default": False},
    "offset": {"type": "float"},
    "pause": {"type": "dict"},
    "cells": {"type": "list", "elements": "dict"},
    "cell": {"type": "dict"},
    "search": {"type": "dict"},
    "rounds": {"type": "dict"},
    "done": {"type": "dict"},
}
ARGUMENTS = {
    "state": {"type": "str", "choices": ["started", "stopped", "packed"], "default": "started"},
    "campaign": {"type": "str", "required": True},
    "variant": {"type": "str", "default": "as_found"},
    "host": {"type": "str"},
    "steps": {"type": "list", "elements": "dict", "options": STEP},
    "spool": {"type": "path", "default": "/var/lib/cachefleet/spool"},
    "series": {"type": "bool", "default": True},
    "sample_interval": {"type": "float", "default": 5},
    "keep_going": {"type": "bool", "default": True},
    "replace": {"type": "bool", "default": False},
    "slack": {"type": "float", "default": 120},
    "timeout": {"type": "float", "default": 21600},
    "barrier_timeout": {"type": "float", "default": 900},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, required_if=[("state", "started", ("host", "steps"))], supports_check_mode=True)
    options = module.params
    try:
        spool = control.spool_of(options["spool"], options["campaign"])
        if options["state"] == "started":
            runner = Runner()
            result = control.start(read_order(options), spool, MeasuredHost(runner, lambda: read_stack(runner)), check_mode=module.check_mode)
        else:
            act = control.stop if options["state"] == "stopped" else control.pack
            result = act(spool, check_mode=module.check_mode)
    except StorageError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
