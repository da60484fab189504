#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sweep
short_description: "Step of the role sweep: plan a sweep of cache configurations and keep its state"
version_added: 1.0.0
description:
  - Determines the variants of a sweep on a host, their order and their cost, and keeps the state of each step in the folder of the campaign.
  - The role P(cachefleet.storage.sweep#role) uses this module. On the host it writes and removes the journal, by M(cachefleet.storage.sweep_journal),
    and reads its caches; their configuration is changed by the role.
  - Fails if a variable that the sweep sets for each variant is given on the command line, where it would replace all of them.
  - A host that is unreachable has failed, so that the role restores it.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
options:
  operation:
    description:
      - V(validate) validates the variants and the numbers of the sweep.
      - V(open) describes the host or reads its journal, has the guard examine its targets, determines its steps and writes its state on the
        controller.
      - V(show) prints a plan.
      - V(begin) writes the journal on the host.
      - V(decide) determines from the results of all hosts which variants are measured again after O(repeat) repeats, and prints which one leads.
      - V(due) determines what a host measures of a repeat.
      - V(applied) fails if a variant is not in effect.
      - V(note) records that a variant is in effect, or how a step ended.
      - V(restored) compares the host with its journal and removes that, or records why it could not be restored.
      - V(recall) returns the journal of the host, or if it has none the copy on the controller of a host that is not restored.
      - V(finish) prints the result of all hosts and writes the recommendations.
    type: str
    choices: [validate, open, show, begin, decide, due, applied, note, restored, recall, finish]
    required: true
  path:
    description: The folder of the campaign.
    type: str
    default: ""
  variants:
    description: The variable C(sweep_variants).
    type: raw
    default: []
  axes:
    description: The variable C(sweep_axes).
    type: raw
    default: {}
  exclude:
    description: The variable C(sweep_exclude).
    type: raw
    default: []
  baseline:
    description: The name of the variant that is the configuration that was found; empty for none.
    type: str
    default: ""
  repeats:
    description: Repeats of each variant in any case.
    type: int
    default: 4
  max_repeats:
    description: Repeats of each variant that is not decided, at most. Not more than O(repeats) measures a fixed number.
    type: int
    default: 0
  budget:
    description: Hours that the sweep may take; V(0) sets no limit.
    type: float
    default: 0
  settle:
    description: Seconds between a change and its measurement.
    type: float
    default: 0
  measurement:
    description: What is measured, with C(suite), C(suites), C(targets), C(file), C(cache_size), C(runtime), C(gap) and C(only).
    type: dict
    default: {}
  folder:
    description: The folder of the journal on the host.
    type: str
    default: /var/lib/cachefleet/sweep
  spool:
    description: The folder in which M(cachefleet.storage.fio_runner) keeps results.
    type: str
    default: /var/lib/cachefleet/spool
  journal:
    description: The journal, with O(operation=begin) and O(operation=restored).
    type: dict
    default: {}
  layers:
    description: The layers that are compared with the journal, with O(operation=restored).
    type: list
    elements: str
    default: []
  outcome:
    description: The result of M(cachefleet.storage.cache_layers) in a step. If it refused the variant, a step with O(state=failed) is recorded as refused.
    type: dict
    default: {}
  error:
    description:
      - The kind of failure of a step, with O(operation=note). If the guard has refused a target, the targets of O(steps) are examined, and what is
        refused with every variant is not tried again.
    type: str
    default: ""
  targets:
    description: The targets of each variant, with O(operation=note).
    type: dict
    default: {}
  wanted:
    description: The variables of a variant, with O(operation=applied).
    type: dict
    default: {}
  network:
    description: Whether MTUs are varied, with O(operation=applied).
    type: bool
    default: false
  steps:
    description: The steps of the host, with O(operation=due), or what a step measures, with O(operation=note).
    type: list
    elements: dict
    default: []
  progress:
    description: The result of O(operation=decide), with O(operation=due).
    type: dict
    default: {}
  in_any_case:
    description: Repeats before which nothing can stop, with O(operation=due).
    type: int
    default: 0
  budget_seconds:
    description: The rest of the budget at the beginning of this run, with O(operation=due).
    type: float
  variant:
    description: The variant of a step.
    type: str
    default: ""
  repeat:
    description: The repeat of a step, or with O(operation=decide) the number of repeats that are finished.
    type: int
    default: 1
  state:
    description: How a step or the restoration ended.
    type: str
    choices: [done, failed, refused, measuring]
    default: done
  reason:
    description: Why it failed or was refused.
    type: str
    default: ""
  seconds:
    description: The duration of a step, or with O(operation=due) of this run.
    type: float
    default: 0
  left:
    description: The expected duration of the steps after it, in seconds.
    type: float
    default: 0
  drain:
    description: Seconds to wait, at most, until the caches write nothing back; V(0) does not wait.
    type: int
    default: 0
  text:
    description: The plan to print.
    type: str
    default: ""
  texts:
    description: The plans of several hosts, of which O(operation=show) prints equal ones once, instead of O(text).
    type: list
    elements: str
    default: []
  refused:
    description: The variants that are refused, with the reason.
    type: dict
    default: {}
  knowledge:
    description:
      - A file on the controller to which O(operation=finish) adds what this sweep has shown of models of drives. What other sweeps in it have shown is
        cited in the recommendations. It is created if it does not exist.
    type: path
    default: ""
  power_loss:
    description:
      - Folders of finished power-loss tests, or folders with several of them, with O(operation=finish). A model of drives that lost flushed writes in
        one of them is named in the recommendations.
    type: list
    elements: str
    default: []
notes:
  - An action plugin of the same name does the work.
seealso:
  - module: cachefleet.storage.sweep_journal
  - module: cachefleet.storage.cache_layers
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Print the result of a sweep and write its recommendations again
  cachefleet.storage.sweep:
    operation: finish
    path: results/2026-11-21T1403Z
    baseline: baseline
  run_once: true
"""

RETURN = r"""
resumes:
  description: Whether the sweep of the host was interrupted.
  type: bool
  returned: with O(operation=open)
started:
  description: Whether the call of the cache layers has started the measurement.
  type: bool
  returned: with O(operation=applied)
changes:
  description: Whether anything was changed for the variant.
  type: bool
  returned: with O(operation=applied)
due:
  description: The steps of the repeat that the host measures.
  type: list
  elements: dict
  returned: with O(operation=due)
initiator:
  description: The C(interfaces) and C(options) of the AoE initiator as it was found; empty without one.
  type: dict
  returned: with O(operation=open) and O(operation=recall)
steps:
  description: The steps that are due, in their order, each with C(variant), C(repeat), C(key), C(state), C(seconds) and C(written).
  type: list
  elements: dict
  returned: with O(operation=open)
variables:
  description: The variables of the cache layers of each variant.
  type: dict
  returned: with O(operation=open)
drains:
  description: The variants that are measured with a cache that may still write back what was written before.
  type: list
  elements: str
  returned: with O(operation=open)
targets:
  description: The targets of each variant.
  type: dict
  returned: with O(operation=open)
restore:
  description: The variables that restore the host.
  type: dict
  returned: with O(operation=open)
journal:
  description: The journal to write on the host, or from which it is restored.
  type: dict
  returned: with O(operation=open) and O(operation=recall)
repeats:
  description: Repeats of each variant, at most.
  type: int
  returned: with O(operation=open)
in_any_case:
  description: Repeats before which nothing can stop.
  type: int
  returned: with O(operation=open)
closed:
  description: The variants that are not measured again, with O(operation=decide) by host.
  type: raw
  returned: with O(operation=decide) and O(operation=due)
needed:
  description: The seconds that the next repeat takes on each host, by what was measured.
  type: dict
  returned: with O(operation=decide)
budget_seconds:
  description: The rest of the budget; null without one.
  type: float
  returned: with O(operation=open)
refused:
  description: The variants that are refused or not tried again, with the reason.
  type: dict
  returned: with O(operation=open) and O(operation=note)
text:
  description: The plan of the host, or the result of all hosts.
  type: str
  returned: with O(operation=open), O(operation=decide) and O(operation=finish)
problems:
  description: Why the sweep is not complete, one sentence each.
  type: list
  elements: str
  returned: with O(operation=finish)
recommended:
  description: The files with the recommended variables.
  type: list
  elements: str
  returned: with O(operation=finish)
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

OPERATIONS = ["validate", "open", "show", "begin", "decide", "due", "applied", "note", "restored", "recall", "finish"]


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "operation": {"type": "str", "required": True, "choices": OPERATIONS},
        "path": {"type": "str", "default": ""},
        "variants": {"type": "raw", "default": []},
        "axes": {"type": "raw", "default": {}},
        "exclude": {"type": "raw", "default": []},
        "baseline": {"type": "str", "default": ""},
        "repeats": {"type": "int", "default": 4},
        "max_repeats": {"type": "int", "default": 0},
        "budget": {"type": "float", "default": 0},
        "settle": {"type": "float", "default": 0},
        "measurement": {"type": "dict", "default": {}},
        "folder": {"type": "str", "default": "/var/lib/cachefleet/sweep"},
        "spool": {"type": "str", "default": "/var/lib/cachefleet/spool"},
        "journal": {"type": "dict", "default": {}},
        "layers": {"type": "list", "elements": "str", "default": []},
        "outcome": {"type": "dict", "default": {}},
        "error": {"type": "str", "default": ""},
        "targets": {"type": "dict", "default": {}},
        "wanted": {"type": "dict", "default": {}},
        "network": {"type": "bool", "default": False},
        "steps": {"type": "list", "elements": "dict", "default": []},
        "progress": {"type": "dict", "default": {}},
        "in_any_case": {"type": "int", "default": 0},
        "budget_seconds": {"type": "float"},
        "variant": {"type": "str", "default": ""},
        "repeat": {"type": "int", "default": 1},
        "state": {"type": "str", "choices": ["done", "failed", "refused", "measuring"], "default": "done"},
        "reason": {"type": "str", "default": ""},
        "seconds": {"type": "float", "default": 0},
        "left": {"type": "float", "default": 0},
        "drain": {"type": "int", "default": 0},
        "text": {"type": "str", "default": ""},
        "texts": {"type": "list", "elements": "str", "default": []},
        "refused": {"type": "dict", "default": {}},
        "knowledge": {"type": "path", "default": ""},
        "power_loss": {"type": "list", "elements": "str", "default": []},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.sweep works by its action plugin: call it in a task.")


if __name__ == "__main__":
    main()
