#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: campaign
short_description: "Step of the role fio_benchmark: open a campaign of measurements on the controller"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Creates the results folder of a campaign on the controller and verifies that results can be written there, before any host
    measures.
  - With O(cells) it also writes the plan of the current host, so that missing results are detected,
    and returns the cells that have no result in the state V(ok) yet. An interrupted campaign is resumed by running
    it again.
  - Runs on the controller only and needs no connection to the host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.measurement
attributes:
  idempotent:
    support: partial
    details: With an empty O(name) every call creates a new campaign.
options:
  results:
    description: The folder of the campaigns on the controller. It is created if it does not exist.
    type: path
    required: true
  name:
    description:
      - The name of an existing or a new campaign.
      - If empty, it is named after the current time of the controller in UTC, for example V(2026-11-21T1403Z).
    type: str
    default: ""
  label:
    description: Suffix of a generated campaign name, if O(name) is empty.
    type: str
    default: ""
  variant:
    description: The name of the cache configuration that is measured. Required with O(cells).
    type: str
    default: ""
  cells:
    description:
      - The cells that the current host measures, as returned in the steps of M(cachefleet.storage.benchmark_plan).
        C(name), C(repeat), C(target) and C(job) of each entry are used.
    type: list
    elements: dict
    default: []
  steps:
    description:
      - The steps of the runner on the current host, as returned by M(cachefleet.storage.benchmark_plan). They are returned in
        RV(steps).
    type: list
    elements: dict
    default: []
  patterns:
    description: Patterns of additional cells that searches and rounds may create, as returned by the same filter.
    type: list
    elements: dict
    default: []
  group:
    description: The name of the array that the current host shares with others, so that their results are added up.
    type: str
    default: ""
  replace:
    description: Whether cells with a result in the state V(ok) are measured again.
    type: bool
    default: false
seealso:
  - module: cachefleet.storage.collect
  - module: cachefleet.storage.report
"""

EXAMPLES = r"""
- name: Open a campaign before the measurement
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
  description: The folder of the campaign on the controller.
  type: str
  returned: success
  sample: /srv/results/2026-11-21T1403Z-firmware-4.2
due:
  description: The entries of O(cells) that still must be measured, unmodified.
  type: list
  elements: dict
  returned: success
steps:
  description:
    - O(steps), with the hash of each existing V(ok) result. The runner compares it with the hash of the present
      measurement, and only measures cells whose hash differs.
  type: list
  elements: dict
  returned: success
measured:
  description: Whether all of O(cells) have results, so that nothing is left unless it would now be another measurement.
  type: bool
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
