#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: results
short_description: Tables, checks, merges and exports of campaigns
version_added: 0.4.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Works on the folder of a campaign. Its files are the truth. Everything else is made of them.
  - With O(do=rebuild) it writes tables in Parquet, which any engine that reads Parquet can query. Only hosts whose results have
    changed are written.
  - With O(do=check) it compares every file with its hash, and fails with the names of the cells that are damaged or missing.
  - With O(do=merge) it copies the cells of other campaigns into this one, for example those of several controllers.
  - With O(do=export) it brings the tables up to date and writes one file for another system.
  - Works on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - duckdb and numpy on the controller, unless O(do=merge)
options:
  path:
    description: The folder of the campaign on the controller. With O(do=merge) a folder that does not exist is made.
    type: path
    required: true
  do:
    description: What to do.
    type: str
    choices: [rebuild, check, merge, export]
    default: rebuild
  tables:
    description:
      - The folder of tables. If empty, C(tables) in the folder of the campaign.
      - Many campaigns and many controllers may write into one folder at the same time, for example on shared storage.
    type: path
    default: ""
  everything:
    description: With O(do=rebuild), write the tables of all hosts, not only of those that have changed.
    type: bool
    default: false
  allow_missing:
    description: With O(do=check), do not fail because of cells that were planned and are not there.
    type: bool
    default: false
  sources:
    description: With O(do=merge), the folders of the campaigns whose cells are copied.
    type: list
    elements: path
    default: []
  conflicts:
    description:
      - With O(do=merge), what to do when two campaigns have different results of one cell. V(refuse) merges nothing, V(keep) stays
        with the result that is there already, and of O(sources) with that of the first.
    type: str
    choices: [refuse, keep]
    default: refuse
  format:
    description:
      - With O(do=export), the format. V(ndjson) are rows as lines of JSON, V(openmetrics) is a file for the textfile collector of
        Prometheus' node exporter, V(influx) is the line protocol of InfluxDB.
    type: str
    choices: [ndjson, openmetrics, influx]
    default: ndjson
  file:
    description: With O(do=export), the file that is written. If empty, one in the folder C(reports) of the campaign.
    type: path
    default: ""
  export_tables:
    description: With O(format=ndjson), the tables.
    type: list
    elements: str
    choices: [cells, intervals, histograms, layers, stacks, devices, device_intervals]
    default: [cells]
seealso:
  - module: cachefleet.storage.report
  - module: cachefleet.storage.collect
"""

EXAMPLES = r"""
- name: Bring the tables up to date
  cachefleet.storage.results:
    path: /srv/results/2026-11-21T1403Z
  delegate_to: localhost
  run_once: true

- name: See that nothing is damaged or missing
  cachefleet.storage.results:
    path: /srv/results/2026-11-21T1403Z
    do: check
  delegate_to: localhost
  run_once: true

- name: Bring the results of two controllers together
  cachefleet.storage.results:
    path: /srv/results/rack-1-and-2
    do: merge
    sources:
      - /mnt/controller1/results/rack-1
      - /mnt/controller2/results/rack-2
  delegate_to: localhost
  run_once: true

- name: Let Prometheus see the campaign
  cachefleet.storage.results:
    path: /srv/results/2026-11-21T1403Z
    do: export
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
  returned: when O(do) is V(rebuild) or V(export)
written:
  description: Hosts whose tables were written.
  type: list
  elements: str
  returned: when O(do) is V(rebuild) or V(export)
unchanged:
  description: How many hosts had the right tables already.
  type: int
  returned: when O(do) is V(rebuild) or V(export)
removed:
  description: Hosts whose tables were taken away, because the campaign has them no more.
  type: list
  elements: str
  returned: when O(do) is V(rebuild) or V(export)
problems:
  description: What of the folder was left out, and why.
  type: list
  elements: str
  returned: always, unless O(do=merge)
states:
  description: How many cells are in which state.
  type: dict
  returned: when O(do=check)
  sample: {ok: 7, missing: 1}
damaged:
  description: The C(cell)s whose files are not those that were measured, and the C(problem). After O(do=merge) names, of cells that were not copied.
  type: list
  elements: raw
  returned: when O(do) is V(check) or V(merge)
missing:
  description: The C(cell)s that were planned and are not there, and the C(problem).
  type: list
  elements: dict
  returned: when O(do=check)
stale:
  description: Hosts whose tables are not of the files that are there now. O(do=rebuild) writes them.
  type: list
  elements: str
  returned: when O(do=check)
doubled:
  description: Hosts with rows that two writers have put into the same tables.
  type: list
  elements: str
  returned: when O(do=check)
copied:
  description: Cells that were copied, as C(host/variant/cell/repeat).
  type: list
  elements: str
  returned: when O(do=merge)
replaced:
  description: Cells that had no numbers and have some now.
  type: list
  elements: str
  returned: when O(do=merge)
kept:
  description: How many cells were there already.
  type: int
  returned: when O(do=merge)
conflicts:
  description: Cells that have two different results.
  type: list
  elements: str
  returned: when O(do=merge)
file:
  description: The file that was written.
  type: str
  returned: when O(do=export)
lines:
  description: How many lines it has.
  type: int
  returned: when O(do=export)
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

_TABLES = ["cells", "intervals", "histograms", "layers", "stacks", "devices", "device_intervals"]


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "do": {"type": "str", "choices": ["rebuild", "check", "merge", "export"], "default": "rebuild"},
        "tables": {"type": "path", "default": ""},
        "everything": {"type": "bool", "default": False},
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
