#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Print what a campaign measured, and write a report of it
version_added: 0.1.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Reads the folder of a campaign on the controller and prints one table of hosts, variants and cells. It shows IOPS, MB/s,
    latency percentiles, repeats and their spread, the state, and the verdict on the stack that was measured.
  - Where there are two or more variants, the ratio of the medians against the first one follows, or the reason why the two are
    not comparable.
  - Hosts that measured at the same time are added up over the seconds in which all of them were measuring, and so are groups of
    hosts that share an array. Percentiles of several hosts come from their added histograms.
  - What was not measured is shown as C(-), never as 0. Percentiles with too few I/Os behind them are not shown.
  - Every file is compared with its hash. A damaged cell is in the state V(failed).
  - Of more than 20 hosts only what they did together is printed, and the host in the middle, from the tables. Of those, files are compared
    with their hashes when the tables are made. Without duckdb every host is printed.
  - With O(files) it also writes a report into the folder C(reports) of the campaign, from its tables, which it brings up to date.
  - Works on the controller only and needs no connection to a host. A report needs duckdb, numpy, scipy, ruptures and plotly there.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.info_module
options:
  path:
    description: The folder of the campaign on the controller.
    type: path
    required: true
  format:
    description: How to report. V(table) prints plain text for a terminal of 120 columns.
    type: str
    choices: [table]
    default: table
  baseline:
    description: The variant with which the others are compared. If empty, the one that was planned first.
    type: str
    default: ""
  problems:
    description: What is known of hosts that sent nothing, a sentence by host. It is shown as the reason of their missing cells.
    type: dict
    default: {}
  files:
    description:
      - Which files to write. V(html) is one page that needs no network, V(markdown) and V(csv) say the same in text.
      - Nothing is written in check mode.
    type: list
    elements: str
    choices: [html, markdown, csv]
    default: []
    version_added: 0.4.0
  decide_by:
    description: Patterns of cells by which the fastest variant is chosen. If empty, all that every variant has a number of.
    type: list
    elements: str
    default: []
    version_added: 0.4.0
  latency_limit_ms:
    description: The latency up to which IOPS count, in ms. If not given, a usual one is taken for each workload.
    type: float
    version_added: 0.4.0
  prices:
    description:
      - What the storage of a host costs. The first entry counts whose patterns fit.
    type: list
    elements: dict
    default: []
    version_added: 0.4.0
    suboptions:
      host:
        description: Pattern of hosts.
        type: str
        default: "*"
      variant:
        description: Pattern of variants.
        type: str
        default: "*"
      price:
        description: Price of the storage of one host.
        type: float
        required: true
      capacity_tb:
        description: Usable TB (10^12 bytes) of one host. If not given, the size of the targets.
        type: float
  currency:
    description: What the prices are in.
    type: str
    default: ""
    version_added: 0.4.0
seealso:
  - module: cachefleet.storage.campaign
  - module: cachefleet.storage.collect
  - module: cachefleet.storage.compare
"""

EXAMPLES = r"""
- name: Show what was measured
  cachefleet.storage.report:
    path: /srv/results/2026-11-21T1403Z
  delegate_to: localhost
  run_once: true

- name: Write a report with the cost of each variant
  cachefleet.storage.report:
    path: /srv/results/2026-11-21T1403Z
    files: [html, markdown, csv]
    prices:
      - {variant: "sas*", price: 1493, capacity_tb: 1}
      - {price: 684, capacity_tb: 4}
    currency: USD
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
path:
  description: The folder that was read.
  type: str
  returned: success
text:
  description: What was printed.
  type: str
  returned: success
rows:
  description:
    - One entry per host, variant, cell and direction. Latencies are ns, bandwidth is bytes per second.
    - Those of several hosts together follow; their host is C(all N hosts) or C(group NAME). With several targets at once it is
      C(HOST, N targets), C(all N targets) or C(group NAME, N targets).
    - Of more than 20 hosts there are only those, and C(median of N).
  type: list
  elements: dict
  returned: success
ratios:
  description: One entry per row of a variant other than the baseline; of more than 20 hosts one per cell and direction.
  type: list
  elements: dict
  returned: success
together:
  description:
    - One entry for each measurement and direction that several hosts, or several targets of a host, made at the same time.
    - C(planned) is how many hosts should be in it, and C(targets) how many targets they have together where one of them measured
      several at once, else 0. C(added) is how many results are in the sums.
    - C(window) has the common window, with C(start) and C(end) in the time of the controller, its C(seconds), the C(skew) of the
      starts and how wrong that may be, C(skew_error), and the C(tail), all in seconds. C(iops_overall) is over the time from the
      first start to the last end. Of the hosts in C(pro_rata) the average of the whole run was taken.
    - Of more than 20 hosts C(hosts) and C(planned) are numbers of hosts, C(pro_rata) is a number of results, and there is no C(window)
      but its C(skew) and C(tail). The targets of each single host are left to the report then.
  type: list
  elements: dict
  returned: success
states:
  description: How many cells are in which state.
  type: dict
  returned: success
  sample: {ok: 7, missing: 1}
not_ok:
  description: A sentence for all cells of a host and variant that share a state other than V(ok) and its reason.
  type: list
  elements: str
  returned: success
  sample: ["node2 before randwrite-4k/1: missing: no result came from this host"]
files:
  description: The files that were written, by format.
  type: dict
  returned: success
  sample: {html: /srv/results/2026-11-21T1403Z/reports/report.html}
answer:
  description: Three sentences. Which variant is the fastest of those that lose nothing in a power cut, by how much, and how sure that is.
  type: list
  elements: str
  returned: when files are written
problems:
  description: What of the folder was left out, and why.
  type: list
  elements: str
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "format": {"type": "str", "choices": ["table"], "default": "table"},
        "baseline": {"type": "str", "default": ""},
        "problems": {"type": "dict", "default": {}},
        "files": {"type": "list", "elements": "str", "choices": ["html", "markdown", "csv"], "default": []},
        "decide_by": {"type": "list", "elements": "str", "default": []},
        "latency_limit_ms": {"type": "float"},
        "prices": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "host": {"type": "str", "default": "*"},
                "variant": {"type": "str", "default": "*"},
                "price": {"type": "float", "required": True},
                "capacity_tb": {"type": "float"},
            },
        },
        "currency": {"type": "str", "default": ""},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.report works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
