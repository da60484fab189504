#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compare
short_description: Compare a campaign with an earlier one
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Compares every cell of the baseline with the same cell of the candidate, paired by host, and fails unless the
    candidate is the same or better. RV(rc) is V(0) for same or better, V(1) for a regression, V(2) if measurements cannot be
    compared or there are too few repeats.
  - A regression is a difference of at least the threshold, if the confidence interval of the ratio excludes 1. With fewer than four repeats on
    fewer than six hosts the comparison is inconclusive.
  - Measurements with a different version of fio, kernel, model, firmware, stack or job are not compared unless O(ignore) lists the difference.
  - Runs on the controller only, on the tables of the campaigns, which are updated first. It needs duckdb, numpy and scipy there.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._options.results_folder
options:
  baseline:
    description: The folder of the baseline campaign, its name in O(results), or V(latest).
    type: str
    required: true
  candidate:
    description: The campaign to evaluate, likewise. It can be the same if the variants differ.
    type: str
    required: true
  baseline_variant:
    description: Only use this variant of the baseline. If empty, variants with the same name are compared with each other.
    type: str
    default: ""
  candidate_variant:
    description: Only use this variant of the candidate. Set both options to compare two variants with different names.
    type: str
    default: ""
  thresholds:
    description:
      - The metrics to compare, with the threshold of the difference in percent. Metrics are V(iops), V(bandwidth), V(latency) (mean), V(p50),
        V(p99) and V(p99.9).
      - If empty, V(iops) with 5 and V(p99) with 10; V(bandwidth) in the place of V(iops) for cells with sequential I/O.
    type: dict
    default: {}
  ignore:
    description: Properties that may differ between the compared measurements, for example to evaluate a new kernel or firmware.
    type: list
    elements: str
    choices: [behaviour_class, fio_version, kernel, rw, bs, ioengine, iodepth, numjobs, rwmixread, fdatasync, fsync, direct, workload_sha256,
      target_size, model, firmware, stack_sha256]
    default: []
  fail_on_regression:
    description: Whether the module fails for a regression. If V(false), it only fails if RV(rc) is V(2).
    type: bool
    default: true
  cells:
    description:
      - Patterns of the cells to compare.
      - If empty, all cells except fills, discards and probes, which are measured once however often the others are repeated.
    type: list
    elements: str
    default: []
  accept_undecided:
    description: Whether an inconclusive difference is treated as the same.
    type: bool
    default: false
  files:
    description: Files to write to the folder C(reports) of the candidate. Nothing is written in check mode.
    type: list
    elements: str
    choices: [markdown, json, junit]
    default: []
seealso:
  - module: cachefleet.storage.report
"""

EXAMPLES = r"""
- name: Fail if the new kernel causes a regression
  cachefleet.storage.compare:
    baseline: /srv/results/2026-11-01T0900Z
    candidate: /srv/results/2026-11-22T0900Z
    ignore: [kernel]
    thresholds: {iops: 5, p99: 20}
    files: [junit]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
rc:
  description: V(0) same or better, V(1) a regression, V(2) not comparable or inconclusive.
  type: int
  returned: always
summary:
  description: The result in one sentence.
  type: str
  returned: when a comparison was possible
  sample: "Same or better in all of 48 comparisons."
lines:
  description:
    - One entry per variant, cell, direction and metric.
    - C(baseline_value) and C(candidate_value) are the values of both sides in C(unit) (V(IOPS), V(bytes/s) or V(ns)), the median over hosts
      of the medians of their repeats. C(ratio) is the candidate divided by the baseline.
  type: list
  elements: dict
  returned: when a comparison was possible
added:
  description: Cells that only the candidate has.
  type: list
  elements: str
  returned: when a comparison was possible
skipped:
  description: Cells that are measured once and were not compared, each with the reason.
  type: list
  elements: str
  returned: when a comparison was possible
files:
  description: The files that were written, by format.
  type: dict
  returned: when a comparison was possible
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

KEYS = [
    "behaviour_class",
    "fio_version",
    "kernel",
    "rw",
    "bs",
    "ioengine",
    "iodepth",
    "numjobs",
    "rwmixread",
    "fdatasync",
    "fsync",
    "direct",
    "workload_sha256",
    "target_size",
    "model",
    "firmware",
    "stack_sha256",
]


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "baseline": {"type": "str", "required": True},
        "candidate": {"type": "str", "required": True},
        "results": {"type": "path", "default": "results"},
        "baseline_variant": {"type": "str", "default": ""},
        "candidate_variant": {"type": "str", "default": ""},
        "thresholds": {"type": "dict", "default": {}},
        "ignore": {"type": "list", "elements": "str", "choices": KEYS, "default": []},
        "cells": {"type": "list", "elements": "str", "default": []},
        "fail_on_regression": {"type": "bool", "default": True},
        "accept_undecided": {"type": "bool", "default": False},
        "files": {"type": "list", "elements": "str", "choices": ["markdown", "json", "junit"], "default": []},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.compare works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
