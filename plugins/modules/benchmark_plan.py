#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: benchmark_plan
short_description: "Step of the role fio_benchmark: plan the fio measurements of one host"
version_added: 1.0.0
description:
  - Expands the cells of a suite over targets and repeats, validates them, and estimates the duration and the amount of data written. The role
    P(cachefleet.storage.fio_benchmark#role) plans with it.
  - Repeats are interleaved, and every second pass is in reverse order, so that drift affects all cells equally.
  - With several targets, or with a named target, the name of the target is appended to the name of the cell after a dot.
  - Hosts wait for each other at the first step, after every step of unknown length (a fill, a search, rounds), and after every pause of unknown
    length. All other steps start at a known number of seconds after the last barrier. A suite with C(hosts=apart) has no barriers, except for hosts of
    a O(group).
  - Changes nothing. Runs on the controller only and needs no connection to the host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  targets:
    description: The targets, as in the variable C(fio_benchmark_targets) of the role P(cachefleet.storage.fio_benchmark#role).
    type: list
    elements: dict
    default: []
  file:
    description:
      - The absolute path of a file to measure, instead of O(targets). It stands for one target with this C(file), the C(size) of the suite or else
        V(1g), and no permission to overwrite data.
    type: str
    default: ''
  suite:
    description: The name of the suite.
    type: str
    default: quick
  suites:
    description: Suites of your own by name, each a dictionary, in addition to those of the role P(cachefleet.storage.fio_benchmark#role).
    type: dict
    default: {}
  runtime:
    description: Runtime of every cell in seconds, instead of that of the suite. V(0) uses the suite's.
    type: int
    default: 0
  repeats:
    description: Number of repeats of every cell, instead of that of the suite. V(0) uses the suite's.
    type: int
    default: 0
  synchronise:
    description: Whether hosts wait for each other and start each cell at the same time.
    type: bool
    default: true
  timing:
    description:
      - Gap between cells, time limits and intervals, by key. Keys that are not set keep their defaults.
      - The plan depends on the C(gap) only. The others are returned for the tasks that follow.
    type: dict
    default: {}
    suboptions:
      gap:
        description: Seconds between two cells. Every host must be ready for the next cell within this time.
        type: float
        default: 2.0
      barrier_timeout:
        description: Seconds that a host waits for the others before it continues alone. V(0) uses RV(barrier_timeout).
        type: int
        default: 0
      clocks_synchronised:
        description: The same as O(cachefleet.storage.release_runner#module:synchronised).
        type: bool
        default: false
      sample_interval:
        description: The same as O(cachefleet.storage.fio_runner#module:sample_interval).
        type: float
        default: 5.0
      time_limit:
        description: Seconds after which the play stops waiting for a host. V(0) uses RV(limit).
        type: int
        default: 0
      patience:
        description: The same as O(cachefleet.storage.wait_for_runner#module:patience).
        type: int
        default: 900
      poll:
        description: The same as O(cachefleet.storage.wait_for_runner#module:interval).
        type: float
        default: 15.0
  wear_budget:
    description:
      - Percentage of the rated C(endurance) of a target that all cells and repeats may use in total. V(0) sets no limit.
      - Targets without an endurance are not limited.
    type: float
    default: 0.0
  only:
    description:
      - Shell patterns for the names of cells in the suite. Cells that match none of them are skipped.
      - C(CELL@TARGET) selects cells on the targets whose names match the second pattern.
    type: list
    elements: str
    default: []
  dry_run:
    description: Report in RV(text) that the O(wear_budget) is exceeded, instead of failing.
    type: bool
    default: false
  show:
    description: Whether RV(text) is printed, or what of it is left if the O(campaign) has results of it.
    type: bool
    default: false
  results:
    description: With O(show), the folder of all campaigns.
    type: path
    default: results
  campaign:
    description: With O(show), the name of the campaign whose results are taken into account. If empty, none.
    type: str
    default: ""
  variant:
    description: With O(show), the name of the cache configuration that is measured.
    type: str
    default: default
  replace:
    description: With O(show), whether cells are measured although they have results.
    type: bool
    default: false
  group:
    description: The name of the array that the host shares with others. Such hosts wait for each other in every suite.
    type: str
    default: ""
  repeat:
    description:
      - The only repeat that is planned, for one pass of a sweep. V(0) plans all repeats. The cells have the order that they have in this
        pass of the whole plan.
    type: int
    default: 0
  cache_size:
    description:
      - The size of the cache of the host, for example V(10g), for suites whose sizes are multiples of it, as V(0.5 x cache).
      - By default it is the size of the one SSD cache that the host has in front of each target.
    type: str
    default: ""
  refill:
    description: Whether every repeat has the fills of the suite, and not only the first, because the cache of the targets was created or changed since.
    type: bool
    default: false
seealso:
  - module: cachefleet.storage.campaign
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Plan the measurements of a disk
  cachefleet.storage.benchmark_plan:
    suite: transactional_write
    targets:
      - {device: /dev/disk/by-id/ata-HDD_1, allow_data_loss: true, identity: HDD_1}
  register: planned

- name: Print the plan
  ansible.builtin.debug:
    msg: "{{ planned.text.splitlines() }}"
"""

RETURN = r"""
steps:
  description:
    - The steps of the runner on the host, in this order, each with C(number), C(kind), C(barrier), C(offset) and C(pause), and with
      C(cells), or with one C(cell) and a C(search) or C(rounds).
    - A step starts with its pause, then waits at its barrier, then for its offset.
  type: list
  returned: success
  elements: dict
cells:
  description: Name and repeat of each measurement, in the order of execution. For a search or rounds, only the resulting cell is listed.
  type: list
  returned: success
  elements: dict
patterns:
  description: Patterns of additional cells that searches and rounds may create.
  type: list
  returned: success
  elements: dict
seconds:
  description: Expected duration in seconds, including ramp times, fixed pauses and gaps, without pauses of unknown length.
  type: int
  returned: success
limit:
  description: Seconds after which the measurement is considered to have failed.
  type: int
  returned: success
timeout:
  description: Seconds after which a job without a time limit is stopped.
  type: int
  returned: success
barrier_timeout:
  description: Seconds that a host waits for the others before it continues alone.
  type: int
  returned: success
segments:
  description: Number of barriers at which the hosts wait for each other.
  type: int
  returned: success
bytes_written:
  description: Maximum number of bytes written to all targets in total.
  type: int
  returned: success
wear:
  description:
    - The wear of each target, a dictionary with C(target), C(bytes_written), C(endurance), C(percent) and C(unknown), the cells that
      write an unknown amount of data.
  type: list
  returned: success
  elements: dict
timing:
  description: All keys of O(timing), with their defaults if they are not set.
  type: dict
  returned: success
purge:
  description: The drives that are purged before the first cell, as the options of M(cachefleet.storage.purge). Empty unless the suite and a target allow it.
  type: list
  returned: success
  elements: dict
text:
  description:
    - The plan as lines of text with at most 120 characters, for a dry run.
    - With O(dry_run) and in check mode it ends with the difference that a comparison of the planned repeats can show.
  type: str
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

#: The keys of O(timing). Not set, they are added with their defaults.
TIMING: dict[str, dict[str, t.Any]] = {
    "gap": {"type": "float", "default": 2.0},
    "barrier_timeout": {"type": "int", "default": 0},
    "clocks_synchronised": {"type": "bool", "default": False},
    "sample_interval": {"type": "float", "default": 5.0},
    "time_limit": {"type": "int", "default": 0},
    "patience": {"type": "int", "default": 900},
    "poll": {"type": "float", "default": 15.0},
}


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "targets": {"type": "list", "elements": "dict", "default": []},
        "file": {"type": "str", "default": ""},
        "suite": {"type": "str", "default": "quick"},
        "suites": {"type": "dict", "default": {}},
        "runtime": {"type": "int", "default": 0},
        "repeats": {"type": "int", "default": 0},
        "synchronise": {"type": "bool", "default": True},
        "timing": {"type": "dict", "default": {}, "options": TIMING},
        "wear_budget": {"type": "float", "default": 0.0},
        "only": {"type": "list", "elements": "str", "default": []},
        "dry_run": {"type": "bool", "default": False},
        "show": {"type": "bool", "default": False},
        "results": {"type": "path", "default": "results"},
        "campaign": {"type": "str", "default": ""},
        "variant": {"type": "str", "default": "default"},
        "replace": {"type": "bool", "default": False},
        "group": {"type": "str", "default": ""},
        "repeat": {"type": "int", "default": 0},
        "cache_size": {"type": "str", "default": ""},
        "refill": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.benchmark_plan works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
