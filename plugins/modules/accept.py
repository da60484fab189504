#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: accept
short_description: "Step of the role accept: determine what a host is measured with, and whether its requirements are met"
version_added: 1.0.0
description:
  - Determines the cells that the requirements of a host need, judges them after each round, and writes the result of all hosts with a certificate
    for each drive and host.
  - The role P(cachefleet.storage.accept#role) and its playbook use this module. On the host it only reads, with M(cachefleet.storage.cache_stack_info)
    and M(cachefleet.storage.cache_health_info).
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._options.protected_drives
  - cachefleet.storage._options.flushed_virtual_disks
options:
  operation:
    description:
      - V(validate) validates the requirements, before there is a campaign.
      - V(plan) determines what the host is measured with, reads the facts that its requirements need, and writes both into the campaign.
      - V(judge) returns what is not decided yet.
      - V(finish) prints the result of all hosts and writes the files.
    type: str
    choices: [validate, plan, judge, finish]
    required: true
  path:
    description: The folder of the campaign.
    type: str
    default: ""
  requirements:
    description: The variable C(accept_requirements).
    type: list
    elements: dict
    default: []
  profiles:
    description: The names of profiles.
    type: list
    elements: str
    default: []
  suite:
    description: The suite with the workloads.
    type: str
    default: accept
  suites:
    description: The variable C(fio_benchmark_suites).
    type: dict
    default: {}
  targets:
    description: The variable C(fio_benchmark_targets). If neither it nor O(file) is set, all drives of the host are read.
    type: list
    elements: dict
    default: []
  file:
    description: The variable C(fio_benchmark_file).
    type: str
    default: ""
  read_only:
    description: Whether devices are only read.
    type: bool
    default: true
  interfaces:
    description: Network interfaces whose link speed may be required; if empty, all that are up.
    type: list
    elements: str
    default: []
  repeats_most:
    description: Repeats of a cell at most.
    type: int
    default: 12
  budget:
    description: The time that the host may be measured for, as V(2h) or V(90m).
    type: str
    default: 2h
  seconds:
    description: How long the host has been measured, in seconds.
    type: float
    default: 0
  seconds_of_round:
    description: How long the last round took, in seconds.
    type: float
    default: 0
  round:
    description: The number of the round that would be next.
    type: int
    default: 1
  hosts:
    description: The hosts that are judged.
    type: list
    elements: str
    default: []
  problems:
    description: Error messages of hosts that were not measured, by the name of the host.
    type: dict
    default: {}
  power_loss:
    description: Folders of finished power-loss tests, or folders with several of them, whose results count for what survives.
    type: list
    elements: str
    default: []
  key:
    description: A private key of ssh that signs the certificates. If empty, they are not signed.
    type: path
    default: ""
  earlier:
    description: A folder with certificates, or with the campaign that wrote them, with which those of this run are compared.
    type: path
    default: ""
  allowed_signers:
    description: A file as of C(ssh-keygen), with which the signatures of O(earlier) are verified. If empty, they are not verified.
    type: path
    default: ""
  identity:
    description: The signer in O(allowed_signers) that must have signed them.
    type: str
    default: ""
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Print the result of an acceptance, and write its certificates
  cachefleet.storage.accept:
    operation: finish
    path: /srv/results/2026-11-29T0900Z
    hosts: "{{ ansible_play_hosts_all }}"
    key: ~/.ssh/id_ed25519
  run_once: true
"""

RETURN = r"""
due:
  description:
    - What the next round measures, C(only), C(repeats) and C(only_repeat), as the variables of C(fio_benchmark) of these names.
    - With O(operation=judge) by host, without hosts that are not measured any more.
  type: dict
  returned: with O(operation=plan) and O(operation=judge)
targets:
  description: The targets of the host, with the devices that it has for a C(match).
  type: list
  elements: dict
  returned: with O(operation=plan)
rc:
  description: V(0) all hosts pass, V(1) a requirement is not met, V(2) one is not decided or was not measured.
  type: int
  returned: with O(operation=finish)
summary:
  description: The result in one sentence.
  type: str
  returned: with O(operation=finish)
states:
  description: The state of each host, V(pass), V(fail), V(undecided) or V(not measured).
  type: dict
  returned: with O(operation=finish)
files:
  description: The files that were written, by format, and the folder of the certificates.
  type: dict
  returned: with O(operation=finish)
changes:
  description: What has changed since the certificates in O(earlier), by drive and host.
  type: dict
  returned: with O(operation=finish)
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "operation": {"type": "str", "required": True, "choices": ["validate", "plan", "judge", "finish"]},
        "path": {"type": "str", "default": ""},
        "requirements": {"type": "list", "elements": "dict", "default": []},
        "profiles": {"type": "list", "elements": "str", "default": []},
        "suite": {"type": "str", "default": "accept"},
        "suites": {"type": "dict", "default": {}},
        "targets": {"type": "list", "elements": "dict", "default": []},
        "file": {"type": "str", "default": ""},
        "read_only": {"type": "bool", "default": True},
        "interfaces": {"type": "list", "elements": "str", "default": []},
        "repeats_most": {"type": "int", "default": 12},
        "budget": {"type": "str", "default": "2h"},
        "seconds": {"type": "float", "default": 0},
        "seconds_of_round": {"type": "float", "default": 0},
        "round": {"type": "int", "default": 1},
        "hosts": {"type": "list", "elements": "str", "default": []},
        "problems": {"type": "dict", "default": {}},
        "power_loss": {"type": "list", "elements": "str", "default": []},
        "key": {"type": "path", "default": ""},
        "earlier": {"type": "path", "default": ""},
        "allowed_signers": {"type": "path", "default": ""},
        "identity": {"type": "str", "default": ""},
        **DECLARATION_OPTIONS,
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.accept works by its action plugin: call it in a task.")


if __name__ == "__main__":
    main()
