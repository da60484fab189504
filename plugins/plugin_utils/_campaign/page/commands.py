# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How to measure again, and how to make the report again: a suite made of the jobs that were planned, and commands.

Job files came back from hosts: what they contain is not proposed.
"""

from __future__ import annotations

import json
import re
import shlex
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import USUAL_FACTS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import text as checked_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import dump
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis, Options

#: With more hosts than this the inventory says which.
_MOST_HOSTS = 12

_NAME = re.compile(r"[\w.:-]+", re.ASCII)

SUITE_FILE = "repeat.yml"


def suite_text(a: Analysis) -> str:
    """Variables that define the measurement. Empty if no planned job is known."""
    cells: dict[str, dict[str, t.Any]] = {}
    left_out = []
    several = any(len(targets) > 1 for targets in _targets(a).values())
    for one in a.jobs:
        name = one.cell.rpartition(".")[0] if several and "." in one.cell else one.cell
        try:
            if one.planned is None:
                raise BadInput("It was not planned here.")
            read_job(one.planned, component(name, "cell"))
        except StorageError:
            left_out.append(name)
        else:
            cells[name] = {"name": name, "repeats": _repeats(a, one.cell), "job": dict(one.planned)}
    if not cells:
        return ""
    suite = {
        **({"targets": "one_after_another"} if several else {}),
        **({"decides": _decides(a, cells)} if a.answer.workloads else {}),
        "cells": list(cells.values()),
    }
    text = dump({"fio_benchmark_suite": "repeat", "fio_benchmark_suites": {"repeat": suite}})
    return f"{text}# Left out, because the plans of the campaign do not have their jobs: {checked_text(listed(left_out))}\n" if left_out else text


def measuring_commands(a: Analysis) -> list[tuple[str, str]]:
    """Each variant and the command that measures it again: with the suite of the report, else with the variables that it was measured with."""
    suite = f" -e @{SUITE_FILE}" if suite_text(a) else ""
    hosts = f" -e storage_hosts={','.join(a.hosts)}" if _are_named(a) else ""
    campaign = shlex.quote(f"{a.campaign}-repeat")
    return [
        (
            variant,
            f"ansible-playbook -i INVENTORY cachefleet.storage.benchmark{suite} -e fio_benchmark_campaign={campaign} "
            f"-e fio_benchmark_variant={shlex.quote(variant)}{hosts}",
        )
        for variant in a.variants
    ]


def _are_named(a: Analysis) -> bool:
    """Whether a command names the hosts: few of them, and their names, which came from hosts, are no more than names."""
    return len(a.hosts) <= _MOST_HOSTS and all(_NAME.fullmatch(one) for one in a.hosts)


def comparing_command(folder: str) -> str:
    """How to compare what was measured again with this campaign, which lies in the same results folder."""
    sides = f"-e compare_baseline={shlex.quote(folder)} -e compare_candidate={shlex.quote(f'{folder}-repeat')}"
    return f"ansible-playbook cachefleet.storage.compare {sides}"


def measuring_notes(a: Analysis) -> list[str]:
    """What the commands need in addition to the suite."""
    targets = sorted({path for paths in _targets(a).values() for path in paths})
    notes = [
        "Configure the hosts as a variant before it is measured: its settings are under Stacks. Targets are those of the inventory (fio_benchmark_targets)"
        + (f"; these were {listed(targets, 6)}." if targets else ".")
    ]
    if not suite_text(a):
        notes.append("The plans of the campaign have no jobs: measure with the suite that it was measured with (fio_benchmark_suite).")
    if not _are_named(a):
        notes.append(f"It was measured on {counted(len(a.hosts), 'host')}: select them with -e storage_hosts=...")
    if any(one.search or one.rounds for point in a.points for one in point.runs) or a.searches or a.rounds:
        notes.append("Searches and rounds are not in this suite: measure them with the suite that they were measured with.")
    return notes


def report_command(folder: str, a: Analysis) -> str:
    """How to make this report again, with the options that it was made with."""
    more = f" -e report_baseline={shlex.quote(a.answer.baseline)}" if a.answer.baseline and a.answer.baseline != (a.variants or ("",))[0] else ""
    values = json.dumps({"report_files": ["html", "markdown", "csv"], **_report_variables(a.options)}, ensure_ascii=False)
    return f"ansible-playbook cachefleet.storage.report -e report_campaign={shlex.quote(folder)}{more} -e {shlex.quote(values)}"


def _report_variables(options: Options) -> dict[str, t.Any]:
    """Those that are set, but for the baseline. The folders of power-loss tests are not known here."""
    prices = [
        {"host": one.host, "variant": one.variant, "price": one.price, **({} if one.capacity is None else {"capacity_tb": one.capacity / 1e12})}
        for one in options.prices
    ]
    variables = {
        "report_decide_by": list(options.decide_by),
        "report_ignore": list(options.ignore),
        "report_host_class": list(options.host_class) if options.host_class != USUAL_FACTS else [],
        "report_latency_limit_ms": None if options.limit is None else options.limit / 1e6,
        "report_prices": prices,
        "report_currency": options.currency,
    }
    return {name: value for name, value in variables.items() if value}


def _targets(a: Analysis) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in a.points:
        if one.first.target:
            found.setdefault(one.host, set()).add(one.first.target)
    return found


def _repeats(a: Analysis, cell: str) -> int:
    return max((run.repeat for one in a.points if one.cell == cell for run in one.runs), default=1)


def _decides(a: Analysis, names: t.Container[str]) -> list[dict[str, t.Any]]:
    metrics: dict[str, list[str]] = {}
    for one in a.answer.deciding:
        name = one.cell if one.cell in names else one.cell.rpartition(".")[0]
        if name in names:
            metrics.setdefault(name, []).append(one.metric)
    return [{"cells": name, "metrics": list(dict.fromkeys(found))} for name, found in metrics.items()]
