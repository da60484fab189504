#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: trace_report
short_description: Report what is in a recorded load, and what a cache would serve of it
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Reads recordings of C(io_trace) on the controller. For each host it writes a page with the sizes, rates, working set and latency of the requests,
    the hits of caches of several sizes and types, and the cache that is recommended.
  - It also writes fio jobs whose hits and request sizes are those of the recorded load, as a suite for the playbooks C(benchmark) and C(sweep).
  - Runs on the controller only and needs no connection to a host. It needs numpy, scipy and plotly there.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  path:
    description: The folder of a recording with the folders of its hosts, or the folder of one host.
    type: path
    required: true
  output:
    description: The folder of the reports; with several hosts each has a folder in it. By default the folder of each recording.
    type: path
  sizes:
    description: The sizes of the caches that are modelled, for example V(57G). By default eight sizes up to the data that was accessed.
    type: list
    elements: str
    default: []
  prices:
    description: What cache devices cost and bear.
    type: dict
    default: {}
    suboptions:
      per_gb:
        description: The price of a GB (10^9 bytes), in any currency.
        type: float
      drive_writes:
        description: The drive writes per day that the device is rated for.
        type: float
      per_request:
        description: What it costs in any other way to serve one request per second. A larger cache is only recommended as long as it costs less.
        type: float
  key:
    description:
      - Also write a copy of the recording without names to the folder C(shared). Its regions of 1 MiB are renamed by this key, so that it does
        not show where something is. The same key renames a region in each recording alike.
      - Curves of the copy of a complete recording are those of the original, and less exact if regions were sampled.
    type: str
    default: ""
seealso:
  - module: cachefleet.storage.report
"""

EXAMPLES = r"""
- name: Report the load of all hosts of a recording
  cachefleet.storage.trace_report:
    path: /srv/traces/monday
    sizes: [20G, 57G, 200G]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
reports:
  description: One for each host.
  type: list
  elements: dict
  returned: success
  contains:
    host: {description: The host., type: str}
    name: {description: The name of the recording., type: str}
    sentences: {description: 'The findings, the recommendation first.', type: list, elements: str}
    entry: {description: 'An entry of C(block_cache_caches) without its devices; empty if no cache is recommended.', type: dict}
    files: {description: 'The files that were written, by name; empty in check mode.', type: dict}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "output": {"type": "path"},
        "sizes": {"type": "list", "elements": "str", "default": []},
        "prices": {"type": "dict", "default": {}, "options": {name: {"type": "float"} for name in ("per_gb", "drive_writes", "per_request")}},
        "key": {"type": "str", "default": "", "no_log": True},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.trace_report works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
