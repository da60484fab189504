# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""How to measure again, and how to make the report again: a suite made of the jobs that were sent, and commands. Job files came back from hosts, so each
is read as a user's own would be, and what is refused is left out.
"""

from __future__ import annotations

import json
import shlex
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.host_classes import USUAL_FACTS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, listed
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import text as checked_text

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis, Options

#: The runner's own lines of the global section follow this one (``_fio/job.py``).
_ADDED = "; added by cachefleet.storage"

_OWN = frozenset({"filename", "allow_file_create", "size", "exitall_on_error"})

#: With more hosts than this the inventory says which.
_MOST_HOSTS = 12

SUITE_FILE = "repeat.yml"


def suite_text(a: Analysis) -> str:
    """Variables that define the measurement; JSON in flow style is YAML. Empty if no job is known."""
    cells, left_out = [], []
    several = any(len(targets) > 1 for targets in _targets(a).values())
    for one in a.jobs:
        job = _job_of(one.text)
        name = one.cell.rpartition(".")[0] if several and "." in one.cell else one.cell
        try:
            read_job(job, name)
        except StorageError:
            left_out.append(name)
        else:
            cells.append({"name": name, "repeats": _repeats(a, one.cell), "job": job})
    cells = list({cell["name"]: cell for cell in cells}.values())
    if not cells:
        return ""
    lines = ["fio_benchmark_suite: repeat", "fio_benchmark_suites:", "  repeat:"]
    if several:
        lines.append("    targets: one_after_another")
    lines += [f"    decides: {json.dumps(_decides(a, {cell['name'] for cell in cells}))}"] if a.answer.workloads else []
    lines += ["    cells:", *(f"      - {json.dumps(cell)}" for cell in cells)]
    if left_out:
        lines.append(f"# Left out, for their jobs could not be read: {checked_text(listed(left_out))}")
    return "\n".join(lines) + "\n"


def measuring_commands(a: Analysis) -> list[tuple[str, str]]:
    """Each variant and the command that measures it again."""
    hosts = f" -e storage_hosts={shlex.quote(','.join(a.hosts))}" if len(a.hosts) <= _MOST_HOSTS else ""
    campaign = shlex.quote(f"{a.campaign}-repeat")
    return [
        (
            variant,
            f"ansible-playbook -i INVENTORY cachefleet.storage.benchmark -e @{SUITE_FILE} -e fio_benchmark_campaign={campaign} "
            f"-e fio_benchmark_variant={shlex.quote(variant)}{hosts}",
        )
        for variant in a.variants
    ]


def measuring_notes(a: Analysis) -> list[str]:
    """What the commands need beside the suite."""
    targets = sorted({path for paths in _targets(a).values() for path in paths})
    notes = [
        "Configure the hosts as a variant before it is measured: its settings are under Stacks. Targets are those of the inventory (fio_benchmark_targets)"
        + (f"; these were {listed(targets, 6)}." if targets else ".")
    ]
    if len(a.hosts) > _MOST_HOSTS:
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


def _job_of(text: str) -> dict[str, t.Any]:
    """The job that was asked for: without the target and what the runner added."""
    sections: list[tuple[str, dict[str, t.Any]]] = []
    is_own = True
    for line in text.splitlines():
        if line.startswith("["):
            sections.append((line.strip("[] "), {}))
            is_own = True
        elif line.strip() == _ADDED:
            is_own = False
        elif line.strip() and is_own and sections:
            name, sign, value = line.partition("=")
            sections[-1][1][name.strip()] = value.strip() if sign else True
    common = {name: value for title, options in sections if title == "global" for name, value in options.items() if name not in _OWN}
    jobs = [(title, options) for title, options in sections if title != "global"]
    if len(jobs) == 1 and not common:
        return jobs[0][1]
    return {"global": common, "jobs": [{"name": title, **options} for title, options in jobs]}
