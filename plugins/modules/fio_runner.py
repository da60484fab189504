#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fio_runner
short_description: "Step of the role fio_benchmark: run fio measurements in the background according to a plan"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Starts a process on the host that runs an order, a list of steps with fio jobs, and exits when the order is completed. It needs neither
    the controller nor the connection that started it.
  - Each finished cell is a folder in the spool, with its state, its series and the cache layers of its target.
  - Cells that were measured before with the same job, target, fio version and cache layers are not measured again. An interrupted order
    is resumed by running the module again.
  - The guard of M(cachefleet.storage.fio) checks every target before the process is started, and devices that are written are
    opened exclusively until the order is completed.
  - C(cachefleet.storage.collect) transfers the results to the controller.
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
    details: Targets, the version of fio, its engines and all job files are checked, but nothing is started or stopped.
  idempotent:
    support: partial
    details: A runner that is running the same order is not changed. A runner that has exited is started again, and measures cells that are not V(ok).
options:
  state:
    description:
      - V(started) ensures that the order is running. If its runner is already running, nothing is changed. If another order is
        running on this host, the module fails.
      - V(stopped) stops the runner of O(campaign), waits until it has exited, and packs the finished cells. The cell that was being
        measured is V(interrupted).
      - V(packed) packs the finished cells and returns the state of each cell. A running measurement is not affected.
      - V(examined) returns which targets would be refused, in RV(refusals). Nothing is started.
      - V(supplied) takes the files of O(logs) into the spool, and returns those that are RV(missing). V(started) does this first.
    type: str
    choices: [started, stopped, packed, examined, supplied]
    default: started
  logs:
    description: Where the action plugin has copied logs of I/O that are files, by their paths on the controller, with O(state=supplied).
    type: dict
    default: {}
  caches:
    description: Devices and volumes of SSD caches that will be configured before the order is started, with O(state=examined).
    type: list
    elements: str
    default: []
  host:
    description:
      - The name that this host has in the results, usually C({{ inventory_hostname }}). Required with O(state=started), O(state=examined) and
        O(state=supplied).
    type: str
  steps:
    description: The steps of the order, in sequence. With an empty list nothing is measured. Required as O(host).
    type: list
    elements: dict
    suboptions:
      number:
        description: The number of the step, starting with 0. It is informational only; steps are run in the order of the list.
        type: int
      kind:
        description:
          - V(cells) measures O(steps[].cells), which start at the same time.
          - V(search) determines the maximum load of O(steps[].cell) within a latency limit. Each probe is a separate cell.
          - V(rounds) repeats O(steps[].cell), or all of O(steps[].cells) one after another, until steady state. Each round is a separate cell.
        type: str
        choices: [cells, search, rounds]
        default: cells
      barrier:
        description:
          - Wait before this step until C(release-N.json) in the folder of the campaign in the spool contains the start time of all hosts,
            where N counts the barriers from 0.
        type: bool
        default: false
      offset:
        description: Seconds from the start time of the last barrier to the start of the step. By default the step starts after the previous one.
        type: float
      pause:
        description:
          - The pause before the step.
          - Either C(seconds), or C(until) with the value C(clean), which waits until no block cache of a target is dirty, or
            C(garbage_collection) with the rate of all targets in bytes per second, which waits for the data written since the last pause.
            With the value C(measured) the rate of each target and block size is that of its cells with C(measures_garbage_collection), and the
            lowest of these rates for other block sizes. Without such cells the pause lasts C(most). Both are recorded in the notes of the next cell.
          - C(most) is the maximum length of the pause in seconds, 7200 by default.
        type: dict
      cells:
        description:
          - The cells of a step of kind V(cells), each a dictionary with C(name), C(repeat), C(target) and C(job) as in the cells of M(cachefleet.storage.fio).
          - Sections in C(jobs) of a C(job) that have a C(target) run on the one of this name in C(targets), a dictionary of targets.
          - C(done_as) is the C(measurement_sha256) of the stored result. A cell that would be measured with the same hash is skipped;
            a different hash replaces the result.
          - C(measures_garbage_collection) means that the write rate at the end of the cell is that of garbage collection, if it dropped during the
            cell and remained low, or if earlier cells over the whole target have written its full capacity since it was last discarded.
          - C(decides) are the metrics by which the cell answers the question of its suite. A cell without an empty list waits for at most C(drain)
            seconds (1800) until caches have written back dirty data. If some is left, it is measured, and C(not_deciding) is in its C(meta.json).
          - C(warm) is the state that the caches must have, C(none) (default), C(until_steady), for which the job runs in rounds before the cell until the hit
            ratio is steady, or C(empty), without which the cell is refused.
          - C(expected) is the number of seconds that the cell will take, if that is less than its job may take. It is only displayed.
        type: list
        elements: dict
      cell:
        description: The cell of a search or of rounds, a dictionary as in O(steps[].cells).
        type: dict
      search:
        description:
          - C(metric) is the limited latency, C(mean) or C(p50), C(p90), C(p95), C(p99), C(p99.9) or C(p99.99). C(limit) is its limit in ns.
          - C(over) is the job option that is varied, C(iodepth), C(numjobs) or C(rate_iops), starting with C(first), multiplied by C(factor)
            (default 2) up to C(last). Then the interval between the last passing and the first failing value is bisected until it is smaller than
            C(bracket) of the passing value (default 0.1).
          - C(direction) is C(read), C(write) or C(mixed). By default the worst direction is used.
        type: dict
      rounds:
        description:
          - Over C(window) rounds (5) the range of the tracked metric must not exceed C(range) of its average (0.20), and the linear fit
            must not change by more than C(slope) of the average (0.10). After C(most) rounds (25) the state is V(not_steady).
          - With O(steps[].cells) the values of the cell C(decided_by) count.
          - C(track) is C(write) or C(read), C(what) is C(iops), C(bandwidth) or C(latency).
        type: dict
      done:
        description: The C(measurement_sha256) of stored probes or rounds, by the names of their cells.
        type: dict
  series:
    description: Whether one-second averages of bandwidth, IOPS and latency are kept as C(series_*.log.gz).
    type: bool
    default: true
  replace:
    description: Whether cells that are already stored are measured again.
    type: bool
    default: false
  sample_interval:
    description: Seconds between two samples of the device and block cache counters, stored in C(device_series.log.gz) and C(cache_series.log.gz).
    type: float
    default: 5
  barrier_timeout:
    description: Seconds after which the runner continues without the other hosts if a barrier is not released. Its cells record this.
    type: float
    default: 900
seealso:
  - module: cachefleet.storage.fio
  - module: cachefleet.storage.cache_stack_info
notes:
  - C(runner.json) in the folder of the campaign in the spool contains the state of the runner, C(runner.log) its log.
  - A running runner holds the lock of the spool. M(cachefleet.storage.fio) with the same spool fails during this time. That module runs a
    list of cells with the same process and waits for its end.
"""

EXAMPLES = r"""
- name: Measure two drives at the same time in the background
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

- name: Determine the maximum random reads with a p99 of at most 5 ms, after the cache is clean
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

- name: Read the progress and pack the finished cells
  cachefleet.storage.fio_runner:
    state: packed
    campaign: limits
  register: limits

- name: Stop the runner
  cachefleet.storage.fio_runner:
    state: stopped
    campaign: limits
"""

RETURN = r"""
attached:
  description: Whether a runner was already running this order.
  returned: with O(state=started)
  type: bool
order_sha256:
  description: The hash of the order, without its progress.
  returned: with O(state=started)
  type: str
fio_version:
  description: The version of fio on the host, V(null) if a runner was already running, and for an empty list.
  returned: with O(state=started)
  type: str
  sample: fio-3.33
runner:
  description: The content of C(runner.json), and whether the process is alive. Empty without a runner and in check mode of O(state=started).
  returned: success
  type: dict
  contains:
    alive: {description: Whether the process is running., type: bool}
    state: {description: 'V(starting), V(waiting), V(pausing), V(measuring), V(finished), V(stopped) or V(failed).', type: str, sample: measuring}
    message: {description: 'The reason of the state, as a sentence.', type: str, sample: ''}
    error: {description: 'The kind of failure if the state is V(failed), for example V(spool).', type: str, sample: null}
    archive: {description: 'The packed results, with C(path), C(sha256) and C(size), if the state is V(finished).', type: dict, sample: {}}
    pid: {description: Process ID., type: int, sample: 4711}
    segment: {description: The barrier at which the runner waits or that it passed last; none before the first one., type: int, sample: 0}
    step: {description: The number of the present step., type: int, sample: 3}
    steps: {description: The number of steps., type: int, sample: 12}
    cell: {description: The cell that is being measured., type: str, sample: randwrite.a}
    target: {description: The target that is being measured., type: str, sample: /dev/vg0/scratch_a}
    iops: {description: IOPS of the target devices in the last interval., type: float, sample: 21034.5}
    bandwidth: {description: Bytes per second of the target devices in the last interval., type: float, sample: 86157312}
    latency_ms: {description: Mean latency of the target devices in the last interval., type: float, sample: 0.75}
    until: {description: 'End of the present activity in seconds since the epoch, if known.', type: float}
    all_until: {description: 'Estimated end of the order in seconds since the epoch.', type: float}
    done: {description: Number of completed cells., type: int, sample: 12}
    failed: {description: Number of cells that are not V(ok)., type: int, sample: 0}
cells:
  description: The present result of each cell. Probes and rounds precede the resulting cell.
  returned: with O(state=packed) and O(state=stopped)
  type: list
  elements: dict
  contains:
    name: {description: The name of the cell., type: str, sample: randwrite.a}
    repeat: {description: The number of the repeat., type: int, sample: 1}
    step: {description: The number of its step., type: int, sample: 0}
    state: {description: 'V(ok), V(not_steady), V(interrupted), V(failed), V(refused) or V(missing).', type: str, sample: ok}
    reason: {description: 'The reason if the state is not V(ok), as a sentence.', type: str, sample: ''}
    kept: {description: Whether the cell was measured before this order started., type: bool}
    summary: {description: Figures per direction as in M(cachefleet.storage.fio); V(null) if there are none., type: dict}
archive:
  description: All uncollected cells of the campaign on this host, in one file. Empty if there are none, and in check mode.
  returned: with O(state=packed) and O(state=stopped)
  type: dict
  contains:
    path: {description: The tar file on the host., type: str, sample: /var/lib/cachefleet/spool/limits.tar}
    sha256: {description: SHA-256 checksum of the file., type: str}
    size: {description: Size of the file in bytes., type: int}
actions:
  description: The measurements that were started or stopped, or would be in check mode.
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
  description: If a target was refused, the individual reasons.
  returned: failure, if the guard refused a target
  type: list
  elements: dict
missing:
  description: Logs that the steps replay and that are not in the spool, as paths on the controller.
  returned: with O(state=supplied)
  type: list
  elements: str
refusals:
  description:
    - If more than one target was refused, all but the first.
    - With O(state=examined) each target that is refused, with C(target), C(msg) and C(lasting), which is whether none of O(caches) can change that.
  returned: failure, if the guard refused a target, and with O(state=examined)
  type: list
  elements: dict
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.request import RUNNER_OPTIONS, RequestedRun


def main() -> None:
    arguments = {
        "state": {"type": "str", "choices": ["started", "stopped", "packed", "examined", "supplied"], "default": "started"},
        "logs": {"type": "dict", "default": {}},
        "caches": {"type": "list", "elements": "str", "default": []},
        **RUNNER_OPTIONS,
    }
    required = [("state", state, ("host", "steps")) for state in ("started", "examined", "supplied")]
    module = AnsibleModule(argument_spec=arguments, required_if=required, supports_check_mode=True)
    options = module.params
    with failing(module):
        if options["state"] == "started":
            result = RequestedRun(options).start(check_mode=module.check_mode)
        elif options["state"] == "examined":
            result = RequestedRun(options).examine(options["caches"])
        elif options["state"] == "supplied":
            result = RequestedRun(options).supply(options["logs"], check_mode=module.check_mode)
        else:
            act = control.stop if options["state"] == "stopped" else control.pack
            result = act(control.spool_of(options["spool"], options["campaign"]), check_mode=module.check_mode)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
