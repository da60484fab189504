#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: campaign
short_description: Open a campaign of measurements on the controller
version_added: 0.1.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Makes the results folder of a campaign on the controller and proves that results can be written there, before any host
    works for nothing.
  - With O(cells) it also writes down what the current host shall measure, so that what never arrives is known to be missing,
    and says which of them have no result in the state V(ok) yet. So a campaign that was interrupted is taken up again by running
    it again.
  - Works on the controller only and needs no connection to the host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: With an empty O(name) every call opens a campaign of its own.
options:
  results:
    description: The folder of all campaigns on the controller. It is made if it does not exist.
    type: path
    required: true
  name:
    description:
      - The campaign, an existing or a new one.
      - If empty, it is named after the controller's clock in UTC, for example V(2026-11-21T1403Z).
    type: str
    default: ""
  label:
    description: What follows the time in the name of a campaign that has no O(name).
    type: str
    default: ""
  variant:
    description: The cache configuration that is measured. Required with O(cells).
    type: str
    default: ""
  cells:
    description:
      - What the current host shall measure, as the filter P(cachefleet.storage.fio_plan#filter) gives it in its steps.
        C(name), C(repeat), C(target) and C(job) of each entry are used.
    type: list
    elements: dict
    default: []
  steps:
    description:
      - What the runner on the current host shall do, as the filter P(cachefleet.storage.fio_plan#filter) gives it. It comes back as
        RV(steps).
    type: list
    elements: dict
    default: []
  patterns:
    description: Which further cells searches and rounds may bring, as the same filter gives it.
    type: list
    elements: dict
    default: []
  group:
    description: The array that the current host shares with others, so that what they do together is added up.
    type: str
    default: ""
  replace:
    description: Measure cells again that have a result in the state V(ok).
    type: bool
    default: false
seealso:
  - module: cachefleet.storage.collect
  - module: cachefleet.storage.report
"""

EXAMPLES = r"""
- name: Open a campaign before anything is measured
  cachefleet.storage.campaign:
    results: /srv/results
    label: firmware-4.2
  delegate_to: localhost
  run_once: true
  register: campaign
"""

RETURN = r"""
name:
  description: The name of the campaign.
  type: str
  returned: success
  sample: 2026-11-21T1403Z-firmware-4.2
path:
  description: Its folder on the controller.
  type: str
  returned: success
  sample: /srv/results/2026-11-21T1403Z-firmware-4.2
due:
  description: Those of O(cells) that are still to be measured, as they were given.
  type: list
  elements: dict
  returned: success
steps:
  description:
    - O(steps), with the hash of each V(ok) result that is there already. The runner compares it with the measurement that it would
      be now, and measures only what is another one.
  type: list
  elements: dict
  returned: success
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "results": {"type": "path", "required": True},
        "name": {"type": "str", "default": ""},
        "label": {"type": "str", "default": ""},
        "variant": {"type": "str", "default": ""},
        "cells": {"type": "list", "elements": "dict", "default": []},
        "steps": {"type": "list", "elements": "dict", "default": []},
        "patterns": {"type": "list", "elements": "dict", "default": []},
        "group": {"type": "str", "default": ""},
        "replace": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.campaign works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
