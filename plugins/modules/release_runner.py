#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_runner
short_description: Tell a benchmark that waits on a host when to start
version_added: 0.4.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Measures how far the clock of the host is from the one of the controller, and writes the instant at which the waiting runner
    goes on, in the time of the host, where the runner finds it. So hosts start together whose clocks differ.
  - Several questions bound the difference from both sides, and what holds by all of them counts. The bounds are recorded with
    every result.
  - An instant that is past, or nearly so, is replaced by one a few seconds from now, and that is recorded too.
  - A barrier that was opened for this runner already stays as it is.
  - Needs no Python on the host.
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
options:
  campaign:
    description: The name of the campaign that the runner measures.
    type: str
    required: true
  segment:
    description: The barrier at which the runner waits, from 0.
    type: int
    required: true
  start:
    description: The instant, in seconds since 1970 by the clock of the controller.
    type: float
    required: true
  spool:
    description: The folder on the host in which the runner keeps what it does.
    type: str
    default: /var/lib/cachefleet/spool
  synchronised:
    description:
      - The clocks of the hosts and of the controller are kept together by something better than this measurement, such as PTP or NTP
        in one rack. Where the measurement does not contradict it, the difference is then taken as 0.
    type: bool
    default: false
  exchanges:
    description: How many questions are asked.
    type: int
    default: 5
seealso:
  - module: cachefleet.storage.fio_runner
  - module: cachefleet.storage.wait_for_runner
"""

EXAMPLES = r"""
- name: Start in ten seconds
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
  description: The instant in seconds since 1970 by the clock of the host; V(null) in check mode and for a barrier that was open.
  type: float
  returned: success
clock:
  description:
    - C(offset), what the clock of the host is ahead of the one of the controller, in seconds, and C(error), how wrong that can be.
    - V(null) in check mode.
  type: dict
  returned: success
  sample: {offset: 0.412, error: 0.011}
late:
  description: How many seconds later than asked for the host starts; V(null) in check mode and for a barrier that was open.
  type: float
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "campaign": {"type": "str", "required": True},
        "segment": {"type": "int", "required": True},
        "start": {"type": "float", "required": True},
        "spool": {"type": "str", "default": "/var/lib/cachefleet/spool"},
        "synchronised": {"type": "bool", "default": False},
        "exchanges": {"type": "int", "default": 5},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.release_runner works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
