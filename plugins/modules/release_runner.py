#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_runner
short_description: "Step of the role fio_benchmark: set the start time of a benchmark that waits on a host"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Measures the offset between the clocks of the host and the controller, and writes the start time of the waiting runner
    in the time of the host, so that hosts with different clocks start at the same time.
  - The offset is bounded from both sides by several exchanges, and the intersection of the bounds is used. The bounds are recorded with
    every result.
  - A start time in the past, or too near, is replaced by one a few seconds later, which is recorded too.
  - A barrier that was already opened for this runner is not changed.
  - Needs no Python on the host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._options.campaign
  - cachefleet.storage._options.spool
options:
  segment:
    description: The barrier at which the runner waits, starting with 0.
    type: int
    required: true
  start:
    description: The start time, in seconds since the epoch by the clock of the controller.
    type: float
    required: true
  synchronised:
    description:
      - Whether the clocks of the hosts and of the controller are synchronised more precisely than this measurement, for example with PTP, or
        with NTP in one rack. The offset is then assumed to be 0 unless the measurement contradicts it.
    type: bool
    default: false
  exchanges:
    description: Number of exchanges for the clock measurement.
    type: int
    default: 5
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.wait_for_runner
"""

EXAMPLES = r"""
- name: Start the benchmark in ten seconds
  cachefleet.storage.release_runner:
    campaign: 2026-11-21T1403Z
    segment: 0
    start: "{{ now().timestamp() + 10 }}"
"""

RETURN = r"""
segment:
  description: The barrier that was opened.
  type: int
  returned: success
start:
  description: The start time in seconds since the epoch by the clock of the host; V(null) in check mode and for an open barrier.
  type: float
  returned: success
clock:
  description:
    - C(offset), the seconds by which the clock of the host is ahead of that of the controller, and C(error), its uncertainty.
    - V(null) in check mode.
  type: dict
  returned: success
  sample: {offset: 0.412, error: 0.011}
late:
  description: Delay of the start in seconds compared with O(start); V(null) in check mode and for an open barrier.
  type: float
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CAMPAIGN_OPTION, SPOOL_OPTION


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        **CAMPAIGN_OPTION,
        **SPOOL_OPTION,
        "segment": {"type": "int", "required": True},
        "start": {"type": "float", "required": True},
        "synchronised": {"type": "bool", "default": False},
        "exchanges": {"type": "int", "default": 5},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.release_runner works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
