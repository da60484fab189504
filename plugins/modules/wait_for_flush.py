#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_flush
short_description: "Step of the role block_cache: wait for the flush of SSD caches that runs on a host"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Waits for modules of SSD caches that were started with C(async) and C(poll=0), and prints one progress line for each cache,
    with the remaining dirty data, the flush rate and the estimated time.
  - The flush runs on the host and needs neither this task nor the connection. A lost connection is retried.
    If this task is stopped, the flush continues, and the next run waits for it.
  - Fails with the message of the module if one of these modules fails.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.info_module
options:
  jobs:
    description: The values of C(ansible_job_id) of these modules. With an empty list the task returns immediately.
    type: list
    elements: str
    required: true
  names:
    description: The caches to report, by name, device or origin. If empty, all caches of the host.
    type: list
    elements: str
    default: []
  interval:
    description: Seconds between two polls.
    type: int
    default: 10
  patience:
    description: Seconds for which a host may be unreachable before the task fails.
    type: int
    default: 600
seealso:
  - module: cachefleet.storage.block_cache_info
  - module: ansible.builtin.async_status
"""

EXAMPLES = r"""
- name: Flush the caches in the background
  cachefleet.storage.lvm_cache:
    caches: "{{ flushed }}"
  async: 604800
  poll: 0
  register: flush

- name: Wait until the caches are flushed
  cachefleet.storage.wait_for_flush:
    jobs: ["{{ flush.ansible_job_id }}"]
"""

RETURN = r"""
results:
  description: The result of each module, in the order of O(jobs).
  type: list
  elements: dict
  returned: success
seconds:
  description: Duration of the wait in seconds.
  type: float
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "jobs": {"type": "list", "elements": "str", "required": True},
        "names": {"type": "list", "elements": "str", "default": []},
        "interval": {"type": "int", "default": 10},
        "patience": {"type": "int", "default": 600},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.wait_for_flush works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
