# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host is measured with: only the cells that its requirements need, where they may run, until they are decided."""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.judge import FIRST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import MEASURED, NOT_MEASURED, UNDECIDED, Judgement, Requirement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.requirements import workloads
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ACCEPT_FOLDER, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, read_json, write_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import Plan, Run, make_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import Suite

SCHEMA = 1

#: The variant of all measurements of an acceptance.
VARIANT = "accept"

#: What ``cache_stack_info`` has of a device that is in use now, and of one that is not free, and how it is said.
_IN_USE = ("mountpoints", "swap")
_NOT_FREE = {"holders": "is part of another device", "partitions": "has partitions", "signature": "has data"}

Cells = t.Dict[str, t.List[str]]


@dataclass(frozen=True)
class HostPlan:
    """How one host is accepted, as the campaign keeps it.

    :param targets: path by the label that follows the names of cells.
    :param cells: labels of the targets where a workload is measured, by workload.
    :param fills: likewise of the cells that fill these targets first.
    :param not_free: why a workload is not measured on a drive that may have been meant, by workload and label.
    :param left_out: why a requirement is not measured on any target, by its name.
    :param most: repeats of a cell at most.
    :param facts: what the host answered that requirements need.
    """

    host: str
    requirements: tuple[Requirement, ...]
    targets: dict[str, str]
    cells: Cells
    fills: Cells
    not_free: dict[str, dict[str, str]]
    left_out: dict[str, str]
    most: int
    facts: dict[str, t.Any]

    @property
    def labels(self) -> dict[str, str]:
        """By path."""
        return {path: label for label, path in self.targets.items()}


def all_cells(suite: Suite, suites: t.Mapping[str, t.Any], requirements: t.Iterable[Requirement], targets: t.Sequence[t.Any], file: str) -> Plan | None:
    """Every cell that is needed, with the fills of the suite, on every target; ``None`` if nothing is measured."""
    needed = workloads(requirements)
    only = [cell.name for cell in suite.cells if cell.fill or cell.name in needed]
    return make_plan(suite.name, suites, targets, repeats=1, only=only, file=file) if needed else None


class Reason(t.NamedTuple):
    """Why a cell may not run on a target, as a clause. :param is_open: whether it is required there all the same."""

    text: str
    is_open: bool = False


def why_not(devices: t.Any, matched: t.Iterable[t.Iterable[str]], *, read_only: bool) -> t.Callable[[Run], Reason | None]:
    """Why a cell may not run on its target; ``None`` if it may.

    :param devices: what the host answered. :param matched: paths of those that a match has chosen: of a device that was named the guard decides.
    """
    known = {str(one.get("name")): one for one in objects(list(devices.values()) if isinstance(devices, dict) else [])}
    uses: dict[str, Reason] = {}
    for one in known.values():
        text = next((text for key, text in _NOT_FREE.items() if one.get(key)), "")
        use = Reason("is in use") if _is_in_use(one, known) else Reason(text, is_open=True)
        paths = [one.get("stable_path"), one.get("path"), *_texts(one.get("by_id"))]
        uses.update({path: use for path in paths if use.text and isinstance(path, str)})
    chosen = {path for paths in matched for path in paths}

    def reason(run: Run) -> Reason | None:
        if run.target.is_file or not read_job(dict(run.job), run.name).writes:
            return None
        if read_only:
            return Reason("it writes, and devices are only read: set fio_benchmark_file, or accept_read_only to false")
        use = uses.get(run.target.path) if run.target.path in chosen else None
        return use and Reason(f"it writes, and {run.target.path} {use.text}", use.is_open)

    return reason


def _is_in_use(device: t.Mapping[str, t.Any], known: t.Mapping[str, t.Mapping[str, t.Any]]) -> bool:
    """Whether it, or what is on it, is mounted or swap space."""
    open_, seen = [device], set()
    while open_:
        one = open_.pop()
        if any(one.get(key) for key in _IN_USE):
            return True
        names = {*_texts(one.get("partitions")), *_texts(one.get("holders"))} - seen
        seen |= names
        open_ += [known[name] for name in names if name in known]
    return False


def _texts(value: t.Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def host_plan(
    host: str, requirements: tuple[Requirement, ...], plan: Plan | None, most: int, why_not: t.Callable[[Run], Reason | None] = lambda _run: None
) -> HostPlan:
    """:param plan: of :func:`all_cells`."""
    cells: Cells = {}
    fills: Cells = {}
    reasons: dict[str, dict[str, Reason]] = {}
    for run in plan.runs if plan else ():
        reason = why_not(run)
        if reason:
            reasons.setdefault(run.cell.name, {})[run.target.label] = reason
        else:
            (fills if run.cell.fill else cells).setdefault(run.cell.name, []).append(run.target.label)
    left_out = {}
    for one in requirements:
        if one.workload is not None and one.workload not in cells:
            texts = dict.fromkeys(reason.text for reason in reasons.get(one.workload, {"": Reason("the host has no target")}).values())
            left_out[one.name] = f"{one.workload} is not measured: {listed(list(texts), 3)}"
    not_free = {name: {label: reason.text for label, reason in of.items() if reason.is_open} for name, of in reasons.items()}
    targets = {one.label: one.path for one in plan.targets} if plan else {}
    return HostPlan(host, requirements, targets, cells, fills, not_free, left_out, most, {})


def file_of(campaign: Path, host: str) -> Path:
    """:raises BadInput: for a name that no file can have."""
    return campaign / ACCEPT_FOLDER / "hosts" / f"{component(host, 'host')}.json"


def save(campaign: Path, plan: HostPlan) -> None:
    """:raises ResultsError: if it cannot be written."""
    path = file_of(campaign, plan.host)
    with explained(campaign, f"writing the requirements of {plan.host}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": SCHEMA, **asdict(plan)})


def load(path: Path) -> HostPlan:
    """:raises BadInput: if it is not what :func:`save` wrote."""
    try:
        values = read_json(path, json_text.FIO)
        if values.pop("schema", None) == SCHEMA and values.get("host") == path.stem:
            rows = [Requirement(**{**row, "names": tuple(row["names"])}) for row in values.pop("requirements")]
            return HostPlan(requirements=tuple(rows), **values)
    except (ResultsError, TypeError, KeyError):
        pass
    raise BadInput(f"{path} cannot be read, or is not the plan of an acceptance: use another fio_benchmark_campaign.")


def load_all(campaign: Path) -> list[HostPlan]:
    """Those of all hosts, by name."""
    return [load(path) for path in sorted((campaign / ACCEPT_FOLDER / "hosts").glob("*.json"))]


def first_round(plan: HostPlan) -> dict[str, t.Any]:
    """All of its cells, as variables of ``fio_benchmark``."""
    return {"only": _patterns(plan.fills) + _patterns(plan.cells), "repeats": FIRST, "only_repeat": 0}


def next_round(campaign: Path, plan: HostPlan, judgements: t.Iterable[Judgement], number: int) -> dict[str, t.Any]:
    """What is measured of a host that is not decided.

    :param judgements: of this host.
    :param number: of the round, from 1: a cell that never has a result ends with the last one.
    """
    stored = _repeats_stored(campaign, plan)
    undecided = {(str(one.requirement.workload), plan.labels.get(one.target)) for one in judgements if one.state == UNDECIDED}
    due: Cells = {}
    for workload, labels in plan.cells.items():
        for label in labels:
            count = stored.get(_cell(workload, label), 0)
            # What has failed as often will fail again.
            if count < FIRST or ((workload, label) in undecided and count < plan.most):
                due.setdefault(workload, []).append(label)
    if not due or number > plan.most:
        return {"only": [], "repeats": 1, "only_repeat": 0}
    done = min(stored.get(_cell(workload, label), 0) for workload, labels in due.items() for label in labels)
    if done < FIRST:
        return {**first_round(plan), "only": _patterns(plan.fills) + _patterns(due)}
    return {"only": _patterns(due), "repeats": done + 1, "only_repeat": done + 1}


def _patterns(cells: Cells) -> list[str]:
    return [f"{cell}@{label}" for cell, labels in cells.items() for label in labels]


def _cell(workload: str, label: str) -> str:
    return f"{workload}.{label}" if label else workload


def _repeats_stored(campaign: Path, plan: HostPlan) -> dict[str, int]:
    """The last repeat of each cell that has a result, whatever its state."""
    folder = campaign / component(plan.host, "host") / VARIANT
    stored: dict[str, int] = {}
    for path in store.repeat_folders(folder, []) if folder.is_dir() else ():
        stored[path.parent.name] = max(stored.get(path.parent.name, 0), int(path.name))
    return stored


def as_planned(plan: HostPlan, judgements: t.Iterable[Judgement]) -> list[Judgement]:
    """Without what was not planned on a target, and with what was planned and has no result, or is planned on no target."""
    found = []
    known = set()
    for one in judgements:
        is_measured = one.requirement.kind == MEASURED
        if one.requirement.name not in plan.left_out and (not is_measured or plan.labels.get(one.target) in plan.cells.get(str(one.requirement.workload), ())):
            found.append(one)
            known.add((one.requirement.name, one.target if is_measured else None))
    for one in plan.requirements:
        workload = str(one.workload)
        reasons = {"": plan.left_out[one.name]} if one.name in plan.left_out else {}
        if one.kind == MEASURED and not reasons:
            reasons = {plan.targets[label]: f"{workload} was not measured" for label in plan.cells.get(workload, [])}
            reasons |= {plan.targets[label]: f"{workload} was not measured: {reason}" for label, reason in plan.not_free.get(workload, {}).items()}
        missing = {target: reason for target, reason in reasons.items() if (one.name, target) not in known}
        found += [Judgement(plan.host, target, one, NOT_MEASURED, None, None, None, 0, reason) for target, reason in missing.items()]
    return found
