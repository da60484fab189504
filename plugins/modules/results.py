#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: results
short_description: Build tables of campaigns, check, merge and export campaigns
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Manages the folder of a campaign. Its raw files are the source of truth. All other files are derived from them.
  - With O(operation=rebuild) it writes Parquet tables, which any engine that reads Parquet can query. Only the tables of hosts whose results have
    changed are written.
  - With O(operation=check) it verifies all files with their checksums, and fails with the names of damaged or missing cells.
  - With O(operation=merge) it copies the cells of other campaigns into this one, for example those of several controllers.
  - With O(operation=export) it updates the tables and writes one file for another system.
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._options.any_campaign
  - cachefleet.storage._options.results_folder
requirements:
  - duckdb and numpy on the controller, unless O(operation=merge)
options:
  operation:
    description: The operation to perform. With V(merge) O(path) is created if it does not exist.
    type: str
    choices: [rebuild, check, merge, export]
    default: rebuild
  tables:
    description:
      - The folder of tables. If empty, C(tables) in the folder of the campaign.
      - Several campaigns and controllers can write to the same folder at the same time, for example on shared storage.
    type: path
    default: ""
  force:
    description: With O(operation=rebuild), write the tables of all hosts, not only of those with changes.
    type: bool
    default: false
  allow_missing:
    description: With O(operation=check), do not fail because of planned cells that are missing.
    type: bool
    default: false
  sources:
    description: With O(operation=merge), the folders of the campaigns whose cells are copied.
    type: list
    elements: path
    default: []
  conflicts:
    description:
      - With O(operation=merge), how to handle a cell with different results in two campaigns. V(refuse) merges nothing, V(keep) keeps
        the existing result, or that of the first of O(sources).
    type: str
    choices: [refuse, keep]
    default: refuse
  format:
    description:
      - With O(operation=export), the format. V(ndjson) is one JSON object per row, V(openmetrics) is a file for the textfile collector of
        the Prometheus node exporter, V(influx) is the line protocol of InfluxDB.
    type: str
    choices: [ndjson, openmetrics, influx]
    default: ndjson
  file:
    description: With O(operation=export), the file to write. If empty, a file in the folder C(reports) of the campaign.
    type: path
    default: ""
  export_tables:
    description: With O(format=ndjson), the tables to export.
    type: list
    elements: str
    choices: [cells, intervals, histograms, layers, stacks, devices, device_intervals, targets_at_once, cache_intervals, flows, cache_flows]
    default: [cells]
seealso:
  - module: cachefleet.storage.report
  - module: cachefleet.storage.collect
"""

EXAMPLES = r"""
- name: Update the tables
  cachefleet.storage.results:
    path: /srv/results/2026-11-21T1403Z
  delegate_to: localhost
  run_once: true

- name: Verify that no cell is damaged or missing
  cachefleet.storage.results:
    path: /srv/results/2026-11-21T1403Z
    operation: check
  delegate_to: localhost
  run_once: true

- name: Merge the results of two controllers
  cachefleet.storage.results:
    path: /srv/results/rack-1-and-2
    operation: merge
    sources:
      - /mnt/controller1/results/rack-1
      - /mnt/controller2/results/rack-2
  delegate_to: localhost
  run_once: true

- name: Export the campaign for Prometheus
  cachefleet.storage.results:
    path: /srv/results/2026-11-21T1403Z
    operation: export
    format: openmetrics
    file: /var/lib/node_exporter/textfile/benchmark.prom
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
path:
  description: The folder of the campaign.
  type: str
  returned: success
tables:
  description: The folder of tables.
  type: str
  returned: when O(operation) is V(rebuild) or V(export)
written:
  description: Hosts whose tables were written.
  type: list
  elements: str
  returned: when O(operation) is V(rebuild) or V(export)
unchanged:
  description: Number of hosts whose tables were up to date.
  type: int
  returned: when O(operation) is V(rebuild) or V(export)
removed:
  description: Hosts whose tables were removed, because they are no longer in the campaign.
  type: list
  elements: str
  returned: when O(operation) is V(rebuild) or V(export)
problems:
  description: Files of the folder that were skipped, with the reason.
  type: list
  elements: str
  returned: always, unless O(operation=merge)
states:
  description: The number of cells in each state.
  type: dict
  returned: when O(operation=check)
  sample: {ok: 7, missing: 1}
damaged:
  description: The C(cell)s with damaged files, and the C(problem). With O(operation=merge) the names of the cells that were not copied.
  type: list
  elements: raw
  returned: when O(operation) is V(check) or V(merge)
missing:
  description: The planned C(cell)s that are missing, and the C(problem).
  type: list
  elements: dict
  returned: when O(operation=check)
stale:
  description: Hosts whose tables are out of date. O(operation=rebuild) updates them.
  type: list
  elements: str
  returned: when O(operation=check)
doubled:
  description: Hosts with duplicate rows, written to the same tables by two writers.
  type: list
  elements: str
  returned: when O(operation=check)
copied:
  description: Cells that were copied, as C(host/variant/cell/repeat).
  type: list
  elements: str
  returned: when O(operation=merge)
replaced:
  description: Cells without a result that have a result now.
  type: list
  elements: str
  returned: when O(operation=merge)
kept:
  description: Number of cells that already existed.
  type: int
  returned: when O(operation=merge)
conflicts:
  description: Cells with two different results.
  type: list
  elements: str
  returned: when O(operation=merge)
file:
  description: The file that was written.
  type: str
  returned: when O(operation=export)
lines:
  description: Number of lines of the file.
  type: int
  returned: when O(operation=export)
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

_TABLES = ["cells", "intervals", "histograms", "layers", "stacks", "devices", "device_intervals", "targets_at_once", "cache_intervals", "flows", "cache_flows"]


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "str", "required": True},
        "results": {"type": "path", "default": "results"},
        "operation": {"type": "str", "choices": ["rebuild", "check", "merge", "export"], "default": "rebuild"},
        "tables": {"type": "path", "default": ""},
        "force": {"type": "bool", "default": False},
        "allow_missing": {"type": "bool", "default": False},
        "sources": {"type": "list", "elements": "path", "default": []},
        "conflicts": {"type": "str", "choices": ["refuse", "keep"], "default": "refuse"},
        "format": {"type": "str", "choices": ["ndjson", "openmetrics", "influx"], "default": "ndjson"},
        "file": {"type": "path", "default": ""},
        "export_tables": {"type": "list", "elements": "str", "choices": _TABLES, "default": ["cells"]},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.results works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
