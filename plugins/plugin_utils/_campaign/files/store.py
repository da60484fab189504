# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results folder on the controller: opening a campaign, planning it, reading it back.

The job that was sent to a host, as the results folder has it.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import BESIDE_HOSTS, RESERVED, CellKey, component, repeat_number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import (
    CAMPAIGN_FILE,
    JOB_FILE,
    MEASURED,
    META_FILE,
    NO_RESULT,
    PLAN_FILE,
    SCHEMA,
    STACK_FILE,
    STATES,
    SWEEP_FOLDER,
    ResultsError,
    default_campaign_name,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Expected, Pattern
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import (
    explained,
    file_problems,
    look_writable,
    read_json,
    require_space,
    write_json,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import CELL_TROUBLE, content_problems, read_limited, trouble

#: Bytes of a job file that are read; a job has hundreds.
_LARGEST_JOB = 256 * 1024


def job_options(folder: Path) -> tuple[dict[str, str], tuple[dict[str, str], ...]]:
    """The options of a ``job.fio``, all together and those in effect in each section: ini sections of ``option=value`` or bare ``option`` (fio HOWTO,
    job file format), the first of which is ``[global]``."""
    try:
        text = read_limited(f"{folder}/{JOB_FILE}", _LARGEST_JOB).decode(errors="replace")
    except ResultsError:
        return {}, ()
    options: dict[str, str] = {}
    parts: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] == "[":
            parts.append({})
        elif line and line[0] not in "#;":
            option, _equals, value = line.partition("=")
            options[option.strip()] = parts[-1][option.strip()] = value.strip()
    return options, tuple({**parts[1], **part} for part in parts[2:]) if len(parts) > 2 else ()


#: Bytes that must be free before a campaign begins: less than the smallest archive would soon fill it.
MINIMUM_FREE = 16 * MIB


@dataclass(frozen=True)
class CellRecord:
    """One measurement as the results folder has it, or as it should have it (state ``missing``).

    :param path: its folder; ``None`` if there is none.
    :param meta: its ``meta.json``; every value in it comes from a host.
    :param job: the fio options that were sent, from ``job.fio``.
    :param sections: those in effect in each of its sections.
    :param verdicts: the verdict of the stack before and after; ``None`` where it was not recorded.
    :param problems: what is wrong with its files, as sentences. A record with problems is never ``ok``.
    :param stack: its ``stack.json``, where it was to be kept and could be read.
    """

    host: str
    key: CellKey
    state: str
    reason: str
    path: Path | None = None
    meta: t.Mapping[str, t.Any] = field(default_factory=dict)
    job: t.Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str | None, str | None] = (None, None)
    problems: tuple[str, ...] = ()
    stack: dict[str, t.Any] | None = None
    sections: tuple[t.Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Campaign:
    """A results folder, read.

    :param variants: their names in the order in which they were planned.
    """

    name: str
    path: Path
    variants: tuple[str, ...]
    cells: tuple[CellRecord, ...]
    problems: tuple[str, ...]


# ---------------------------------------------------------------------------------------------------------------------
# Opening and planning


def open_campaign(results: Path, name: str = "", label: str = "", *, now: datetime.datetime, dry_run: bool = False) -> tuple[Path, bool]:
    """Make the folder of a campaign and prove that results can be written there, before any host works for nothing.

    :param name: an existing or a new campaign; empty takes the controller's clock and ``label``.
    :param dry_run: change nothing.
    :returns: the folder, and whether it is a new one.
    :raises ResultsError: if the folder cannot be written or its disk is full.
    """
    requested = component(name, "campaign") if name else default_campaign_name(now, label)
    if dry_run:
        look_writable(results)
        return results / requested, not (results / requested / CAMPAIGN_FILE).exists()
    with explained(results, "preparing the campaign"):
        results.mkdir(parents=True, exist_ok=True)
        folder = results / requested
        if name:
            folder.mkdir(exist_ok=True)
        else:
            folder = _new_folder(results, requested)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 65536)
            probe.flush()
            os.fsync(probe.fileno())
    require_space(folder, MINIMUM_FREE, "a campaign")
    is_new = not (folder / CAMPAIGN_FILE).exists()
    if is_new:
        write_json(folder / CAMPAIGN_FILE, {"schema": SCHEMA, "campaign": folder.name, "created": _stamp(now)})
    return folder, is_new


def _new_folder(results: Path, requested: str) -> Path:
    """A folder that was not there: two campaigns of one minute get different names."""
    for number in range(1, 1000):
        folder = results / (requested if number == 1 else f"{requested}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise ResultsError(f"{results} holds 1000 campaigns named {requested}: give fio_benchmark_campaign a name.")


def _stamp(now: datetime.datetime) -> str:
    # Microseconds keep two variants apart that were opened in one second.
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def write_plan(
    campaign: Path,
    host: str,
    variant: str,
    cells: t.Iterable[tuple[str, int]],
    *,
    patterns: t.Iterable[Pattern] = (),
    jobs: t.Mapping[str, t.Mapping[str, t.Any]] | None = None,
    now: datetime.datetime,
    dry_run: bool = False,
) -> bool:
    """Write down what one host should measure, so that what does not arrive is known to be missing.

    A plan that exists is added to, never shortened: what was once promised stays visible.

    :param patterns: of the cells that searches and rounds may bring beside their answers; none of them can be missing.
    :param jobs: the planned job of each cell: what comes back from a host is not proposed for another measurement.
    :param dry_run: change nothing.
    :returns: whether the plan changes.
    """
    host, variant = component(host, "host"), component(variant, "variant")
    requested = {CellKey.checked(variant, cell, repeat) for cell, repeat in cells}
    path = campaign / host / variant / PLAN_FILE
    existing = _plan_cells(path, variant)
    probes, known_probes = set(patterns), _plan_patterns(path)
    known_jobs = _plan_jobs(path)
    planned_jobs = {**known_jobs, **{name: dict(job) for name, job in (jobs or {}).items()}}
    if requested <= existing and probes <= known_probes and planned_jobs == known_jobs:
        return False
    if dry_run:
        return True
    with explained(campaign, f"writing the plan of host {host}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    created = read_json(path).get("created") if path.exists() else None
    repeats: dict[str, list[int]] = {}
    for key in sorted(requested | existing):
        repeats.setdefault(key.cell, []).append(key.repeat)
    plan = {"schema": SCHEMA, "campaign": campaign.name, "host": host, "variant": variant, "created": created or _stamp(now), "cells": repeats}
    if probes | known_probes:
        plan["patterns"] = [pattern.to_dict() for pattern in sorted(probes | known_probes, key=str)]
    if planned_jobs:
        plan["jobs"] = planned_jobs
    write_json(path, plan)
    return True


def note_rejected(campaign: Path, host: str, rejected: t.Mapping[CellKey, str], accepted: t.Iterable[CellKey]) -> bool:
    """Write down in the plans of a host which of its results were not taken in, so that they are ``failed`` and not ``missing``.

    :param accepted: cells of which an earlier result may have been rejected.
    :returns: whether that is new.
    """
    changed = False
    keys = {*rejected, *accepted}
    for variant in sorted({key.variant for key in keys}):
        path = campaign / component(host, "host") / variant / PLAN_FILE
        if not path.is_file():
            continue
        plan = read_json(path)
        known = _rejected(plan, variant)
        now = {key: why for key, why in known.items() if key not in keys}
        now.update({key: plain(why, 300) for key, why in rejected.items() if key.variant == variant})
        if now != known:
            rows = [{"cell": key.cell, "repeat": key.repeat, "reason": why} for key, why in sorted(now.items())]
            write_json(path, {**plan, "rejected": rows})
            changed = True
    return changed


def _rejected(plan: t.Mapping[str, t.Any], variant: str) -> dict[CellKey, str]:
    rows = plan.get("rejected")
    found = {}
    for row in rows if isinstance(rows, list) else []:
        with contextlib.suppress(BadInput, AttributeError):
            found[CellKey.checked(variant, row.get("cell"), row.get("repeat"))] = plain(row.get("reason") or "", 300)
    return found


def expected_cells(campaign: Path, host: str) -> Expected:
    """Every cell that was ever planned for a host in this campaign, whatever the variant."""
    folder = campaign / component(host, "host")
    variants = _folders(folder, []) if folder.is_dir() else []
    return Expected(
        frozenset(key for variant in variants for key in _plan_cells(variant / PLAN_FILE, variant.name)),
        frozenset((variant.name, pattern) for variant in variants for pattern in _plan_patterns(variant / PLAN_FILE)),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Reading back


def load_campaign(path: Path, *, contents: bool = False) -> Campaign:
    """Read a campaign: what is there, what is damaged, and what was planned and never came.

    :param contents: unpack and parse the files of every cell too; a cell of which one exceeds a limit is failed.
    :raises ResultsError: if it is not the folder of a campaign.
    """
    if not path.is_dir():
        raise ResultsError(f"There is no campaign in {path}: that folder does not exist. Give a folder that holds {CAMPAIGN_FILE}.")
    problems: list[str] = []
    name = path.name
    if (path / CAMPAIGN_FILE).is_file():
        try:
            name = plain(read_json(path / CAMPAIGN_FILE).get("campaign", path.name), 128)
        except ResultsError as error:
            problems.append(error.message)
    created: dict[str, str] = {}
    records: list[CellRecord] = []
    for host in host_folders(path, problems):
        records += load_host(host, created, problems, contents=contents)
    if not records and not (path / CAMPAIGN_FILE).exists():
        raise ResultsError(f"{path} is not the folder of a campaign: it holds neither {CAMPAIGN_FILE} nor results.")
    variants = sorted({record.key.variant for record in records}, key=lambda variant: (created.get(variant, "~"), variant))
    records.sort(key=lambda record: (record.host, variants.index(record.key.variant), record.key.cell, record.key.repeat))
    return Campaign(name, path, tuple(variants), tuple(records), tuple(problems))


def host_folders(campaign: Path, problems: list[str]) -> list[Path]:
    """The folders of the hosts of a campaign; what is beside them and is none is added to ``problems``."""
    found = _folders(campaign, problems)
    for folder in found:
        # Of an earlier version, which did not refuse such a host.
        if folder.name in BESIDE_HOSTS and any(folder.glob(f"*/{PLAN_FILE}")):
            problems.append(
                f"{plain(folder)} has results of a host with this name, which are left out: give the host another name in the inventory and measure again."
            )
    return [folder for folder in found if folder.name not in BESIDE_HOSTS]


def load_host(host: Path, created: dict[str, str], problems: list[str], *, contents: bool = False, stacks: bool = False) -> list[CellRecord]:
    """What one host has in a campaign: what is there, what is damaged, and what was planned and never came.

    :param host: its folder.
    :param created: when each variant was planned first, by its name; added to.
    :param problems: added to.
    :param stacks: keep the stack of each cell, which takes more memory than all else.
    """
    records = []
    happened: dict[str, str] | None = None
    for variant in _folders(host, problems):
        planned, rejected = _planned(variant, created, problems)
        found = {key: folder for folder in repeat_folders(variant, problems) for key in [CellKey(variant.name, folder.parent.name, int(folder.name))]}
        records += [_checked_cell(host.name, key, folder, contents=contents, stacks=stacks) for key, folder in found.items()]
        for key in sorted((planned | set(rejected)) - set(found)):
            if key in rejected:
                records.append(CellRecord(host.name, key, "failed", f"the result was not accepted: {rejected[key]}"))
            else:
                happened = _reasons_of_sweep(host) if happened is None else happened
                records.append(CellRecord(host.name, key, "missing", happened.get(f"{variant.name}/{key.repeat}") or NO_RESULT))
    return records


def _reasons_of_sweep(host: Path) -> dict[str, str]:
    """Why steps of a sweep were not measured, by ``variant/repeat``; empty if the campaign is none, or its state cannot be read."""
    try:
        steps = read_json(host.parent / SWEEP_FOLDER / f"{host.name}.json", json_text.FIO).get("steps")
    except ResultsError:
        return {}
    found = steps.items() if isinstance(steps, dict) else ()
    return {key: plain(one["reason"], 500) for key, one in found if isinstance(one, dict) and one.get("state") != "done" and one.get("reason")}


def _folders(parent: Path, problems: list[str]) -> list[Path]:
    """The folders in ``parent`` that a campaign may have; links and invalid names are reported, not followed."""
    found = []
    for entry in sorted(parent.iterdir()):
        if entry.name.startswith(".") or entry.name in RESERVED:
            continue
        if entry.is_symlink() or not entry.is_dir():
            problems.append(f"{plain(entry)} is left out: it is not a folder of this campaign.")
            continue
        try:
            component(entry.name, "folder")
        except BadInput:
            problems.append(f"{plain(entry)} is left out: no host, variant or cell can have this name.")
            continue
        found.append(entry)
    return found


def repeat_folders(variant: Path, problems: list[str]) -> list[Path]:
    """The folders of the repeats of every cell of a variant; what is none is added to ``problems``."""
    found = []
    for cell in _folders(variant, problems):
        for folder in _folders(cell, problems):
            try:
                repeat_number(folder.name)
            except BadInput:
                problems.append(f"{plain(folder)} is left out: it is not the number of a repeat.")
            else:
                found.append(folder)
    return found


def _planned(variant: Path, created: dict[str, str], problems: list[str]) -> tuple[set[CellKey], dict[CellKey, str]]:
    """The cells that were planned, and those of which a result was rejected, with the reason."""
    path = variant / PLAN_FILE
    if not path.is_file():
        return set(), {}
    try:
        plan = read_json(path)
        stamp = plain(plan.get("created", ""), 40)
        created[variant.name] = min(stamp, created.get(variant.name, stamp))
        _plan_patterns(path)
        _plan_jobs(path)
        return _plan_cells(path, variant.name), _rejected(plan, variant.name)
    except StorageError as error:
        problems.append(error.message)
        return set(), {}


def _plan_cells(path: Path, variant: str) -> set[CellKey]:
    if not path.is_file():
        return set()
    cells = read_json(path).get("cells")
    if not isinstance(cells, dict) or not all(isinstance(repeats, list) for repeats in cells.values()):
        raise ResultsError(f"{path} does not contain the planned cells: remove it, or copy the campaign again.")
    return {CellKey.checked(variant, cell, repeat) for cell, repeats in cells.items() for repeat in repeats}


def planned_job(campaign: Path, host: str, variant: str, cell: str) -> dict[str, t.Any] | None:
    """The job that the controller planned for a cell; ``None`` if its plan has none, or there is no plan of this name."""
    try:
        path = campaign / component(host, "host") / component(variant, "variant") / PLAN_FILE
        return _plan_jobs(path).get(cell)
    except StorageError:
        return None


def _plan_jobs(path: Path) -> dict[str, dict[str, t.Any]]:
    jobs = read_json(path).get("jobs", {}) if path.is_file() else {}
    if not isinstance(jobs, dict) or not all(isinstance(job, dict) for job in jobs.values()):
        raise ResultsError(f"{path} does not contain the planned jobs: remove it, or copy the campaign again.")
    return jobs


def is_plan(path: Path, variant: str) -> bool:
    """Whether a plan lists which cells and patterns were planned; if not, :func:`load_campaign` has named it as a problem."""
    try:
        _plan_cells(path, variant)
        _plan_patterns(path)
        _plan_jobs(path)
    except StorageError:
        return False
    return True


def _plan_patterns(path: Path) -> set[Pattern]:
    if not path.is_file():
        return set()
    rows = read_json(path).get("patterns", [])
    try:
        if not isinstance(rows, list):
            raise BadInput("they are not a list.")
        return {Pattern.from_dict(row) for row in rows}
    except BadInput as error:
        raise ResultsError(f"{path} does not contain the planned searches and rounds ({error.message}): remove it, or copy the campaign again.") from None


def _checked_cell(host: str, key: CellKey, folder: Path, *, contents: bool, stacks: bool) -> CellRecord:
    """A cell as it is stored; whatever is wrong with its files makes it failed, and the others go on."""
    try:
        record = _load_cell(host, key, folder, stacks)
        problems = content_problems(folder, record.meta["files"], measured=record.state in MEASURED) if contents and record.meta else []
    except CELL_TROUBLE as error:
        problems = [trouble(error)]
    if problems:
        return CellRecord(host, key, "failed", f"the stored result is damaged: {problems[0]}", folder, problems=tuple(problems))
    return record


def _load_cell(host: str, key: CellKey, folder: Path, stacks: bool) -> CellRecord:
    try:
        meta = read_json(f"{folder}/{META_FILE}")
    except ResultsError as error:
        return CellRecord(host, key, "failed", error.message, folder, problems=(error.message,))
    problems = file_problems(folder, meta)
    claimed = [meta.get(part) for part in ("schema", "host", "variant", "cell", "repeat")]
    if claimed != [SCHEMA, host, key.variant, key.cell, key.repeat]:
        problems.append(f"its {META_FILE} belongs to another cell or another version of the results")
    state = meta.get("state")
    if state not in STATES:
        problems.append(f"its {META_FILE} contains the state '{plain(state, 60)}', which does not exist")
    reason = plain(meta.get("reason") or "", 300)
    if problems:
        # Numbers of a cell that was changed after it was measured are no measurement.
        return CellRecord(host, key, "failed", f"the stored result is damaged: {problems[0]}", folder, meta={}, problems=tuple(problems))
    stack = _stack(folder)
    job, sections = job_options(folder)
    return CellRecord(host, key, str(state), reason, folder, meta, job, _verdicts(stack or {}), stack=stack if stacks else None, sections=sections)


def _stack(folder: Path) -> dict[str, t.Any] | None:
    try:
        return read_json(f"{folder}/{STACK_FILE}")
    except ResultsError:
        return None


def _verdicts(stack: t.Mapping[str, t.Any]) -> tuple[str | None, str | None]:
    sides = (stack.get("before"), stack.get("after"))
    before, after = (plain(side["verdict"], 20) if isinstance(side, dict) and isinstance(side.get("verdict"), str) else None for side in sides)
    return before, after
