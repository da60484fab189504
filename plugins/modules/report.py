#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Print the results of a campaign, and write a report
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Reads the folder of a campaign on the controller and prints one table of hosts, variants and cells. It shows IOPS, MB/s,
    latency percentiles, repeats and their spread, the state, and the verdict on the stack that was measured.
  - If there are two or more variants, it also prints the ratio of their IOPS to the variant O(baseline), with its interval, or the reason why they
    are not comparable.
  - The results of hosts that measured at the same time are added up over the period in which all of them were measuring, and so are those of
    groups of hosts that share an array. Percentiles of several hosts are computed from their combined histograms.
  - Missing values are shown as C(-), never as 0. Percentiles based on too few I/Os are not shown.
  - All files are verified with their checksums. A damaged cell is in the state V(failed).
  - With more than 20 hosts only their combined results and the median host are printed, from the tables. In this case, files are verified
    when the tables are built. Without duckdb all hosts are printed.
  - With O(files) it also writes a report to the folder C(reports) of the campaign, from its tables, which are updated first.
  - Runs on the controller only and needs no connection to a host. A report needs duckdb, numpy, scipy, ruptures and plotly there.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.any_campaign
  - cachefleet.storage._options.results_folder
  - cachefleet.storage._attributes.info_module
options:
  format:
    description: The output format. V(table) prints plain text in the width of the terminal, or without a limit if the output is not a terminal.
    type: str
    choices: [table]
    default: table
  baseline:
    description: The variant with which the others are compared. If empty, the variant that was measured first.
    type: str
    default: ""
  problems:
    description: Error messages of hosts without results, by host name. They are shown as the reason of missing cells.
    type: dict
    default: {}
  files:
    description:
      - The files to write. V(html) is one page that needs no network access, V(markdown) and V(csv) have the same content as text.
      - V(snia) is the report page of SNIA's Performance Test Specification for each device, as C(snia.html) and C(snia.md).
      - Nothing is written in check mode.
    type: list
    elements: str
    choices: [html, markdown, csv, snia]
    default: []
  require_files:
    description:
      - Whether the module fails if the files cannot be written, for example because a library is missing. If V(false), the reason is printed after
        the table.
    type: bool
    default: true
  decide_by:
    description:
      - Patterns of the cells by which variants are compared for the answer, by their IOPS.
      - If empty, the cells and metrics in C(decides) of the suite, otherwise all cells except fills, discards, probes and writes without a sync next to writes
        with one.
    type: list
    elements: str
    default: []
  ignore:
    description:
      - What may differ between the measurements of two variants that are compared for the answer, such as V(kernel) or V(fio_version).
      - Measurements that differ in anything else than their stack are otherwise reported as not comparable.
    type: list
    elements: str
    default: []
  host_class:
    description:
      - The facts by which hosts are classified. Each class has its own answer.
      - V(controller), V(drives), V(drive_firmware), V(kernel) and V(fio) are supported. If empty, V(controller), V(drives) and V(kernel).
    type: list
    elements: str
    default: []
  rows:
    description: The number of rows to print, 0 for all. The returned C(rows) are always complete.
    type: int
    default: 40
  latency_limit_ms:
    description: The latency limit of the curves in ms. By default one of 1, 3, 10, 30, 100 and 1000 that separates the loads of every workload, or none.
    type: float
  prices:
    description:
      - The price of the storage of a host. The first entry with matching patterns is used.
    type: list
    elements: dict
    default: []
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
        description: Usable TB (10^12 bytes) of one host. Defaults to the size of the targets.
        type: float
  currency:
    description: The currency of the prices.
    type: str
    default: ""
  power_loss:
    description:
      - Folders of finished power-loss tests, or folders with several of them. Those of the hosts of the campaign are shown.
      - If flushed writes were lost on a stack that C(cache_stack_info) expects to keep them, the report begins with that.
    type: list
    elements: str
    default: []
seealso:
  - module: cachefleet.storage.campaign
  - module: cachefleet.storage.collect
  - module: cachefleet.storage.compare
"""

EXAMPLES = r"""
- name: Print the results
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
  description: The folder of the campaign.
  type: str
  returned: success
text:
  description: The printed text.
  type: str
  returned: success
rows:
  description:
    - One entry per host, variant, cell and direction. Latencies are in ns, bandwidth is in bytes per second.
    - C(noise) is the standard deviation of the IOPS of the repeats by their mean. The C(state) is V(noisy) if all repeats are V(ok) and it
      is above 0.05.
    - They are followed by the combined rows of several hosts, whose host is C(all N hosts) or C(group NAME). With several targets at the same
      time it is C(HOST, N targets), C(all N targets) or C(group NAME, N targets).
    - With more than 20 hosts there are only these, and C(median of N).
  type: list
  elements: dict
  returned: success
ratios:
  description:
    - One entry per row of a variant other than the baseline. With more than 20 hosts one per cell and direction.
    - C(ratio) is that of the IOPS, the median of the ratios of each repeat to each repeat of the baseline. C(note) contains what it shows, with
      its interval, or why the two cannot be compared.
  type: list
  elements: dict
  returned: success
aggregates:
  description:
    - One entry for each measurement and direction that several hosts, or several targets of a host, ran at the same time.
    - C(planned) is the planned number of hosts, and C(targets) the total number of targets if one of the hosts measured
      several at the same time, otherwise 0. C(added) is the number of results in the sums.
    - C(window) is the common period, with C(start) and C(end) in the time of the controller, its C(seconds), the C(skew) of the
      starts and its uncertainty C(skew_error), and the C(tail), all in seconds. C(iops_overall) is for the period from the
      first start to the last end. For the hosts in C(pro_rata) the average of the whole run was used.
    - With C(in_turn) the hosts did not do their I/O in this direction at the same time, for example because their phases differ by more
      than 5 %. Then C(iops) and C(bandwidth) are all I/Os and bytes by the time from the first of them to the last.
    - With more than 20 hosts C(hosts) and C(planned) are numbers of hosts, C(pro_rata) is a number of results, and C(window) is reduced to
      C(skew) and C(tail). The targets of individual hosts are then only in the report.
  type: list
  elements: dict
  returned: success
states:
  description: The number of cells in each state.
  type: dict
  returned: success
  sample: {ok: 7, missing: 1}
failed_cells:
  description: One sentence for all cells of a host and variant with the same state other than V(ok) and the same reason.
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
  description:
    - One sentence for each workload and class of hosts, with the recommended variant if one is proven to be better and keeps what the
      baseline keeps, or the reason why there is none. With more than three workloads a summary is first.
  type: list
  elements: str
  returned: when duckdb, numpy, scipy and ruptures are installed, except in check mode
problems:
  description: Files of the folder that were skipped, with the reason.
  type: list
  elements: str
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "str", "required": True},
        "results": {"type": "path", "default": "results"},
        "format": {"type": "str", "choices": ["table"], "default": "table"},
        "baseline": {"type": "str", "default": ""},
        "problems": {"type": "dict", "default": {}},
        "files": {"type": "list", "elements": "str", "choices": ["html", "markdown", "csv", "snia"], "default": []},
        "require_files": {"type": "bool", "default": True},
        "rows": {"type": "int", "default": 40},
        "decide_by": {"type": "list", "elements": "str", "default": []},
        "ignore": {"type": "list", "elements": "str", "default": []},
        "host_class": {"type": "list", "elements": "str", "default": []},
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
        "power_loss": {"type": "list", "elements": "str", "default": []},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.report works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
