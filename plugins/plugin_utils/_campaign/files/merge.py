# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Campaigns of several controllers in one folder.

Every cell is copied whole or not at all: into a temporary folder, its hashes compared there, and renamed. Nothing that was measured is
written over.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey, component
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import (
    CAMPAIGN_FILE,
    MEASURED,
    META_FILE,
    PLAN_FILE,
    SCHEMA,
    ResultsError,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import (
    explained,
    file_problems,
    read_json,
    require_space,
    sync_folder,
    write_json,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord

_TEMPORARY = ".merging-"

#: Cells that a message names.
_NAMED = 5

CellPlace = t.Tuple[str, CellKey]


@dataclass(frozen=True)
class Merged:
    """What was brought together.

    :param copied: cells that are new, ``replaced`` those that had no numbers and have now, ``kept`` those that were there already.
    :param conflicts: cells that both have measured and that differ; what was there has stayed.
    :param damaged: cells that were not copied, because their files are not those that were measured.
    """

    path: Path
    copied: tuple[str, ...]
    replaced: tuple[str, ...]
    kept: int
    conflicts: tuple[str, ...]
    damaged: tuple[str, ...]
    plans: int

    @property
    def changed(self) -> bool:
        return bool(self.copied or self.replaced or self.plans)


def merge(sources: t.Sequence[Path], into: Path, *, keep_conflicts: bool = False, dry_run: bool = False) -> Merged:
    """Copy the cells of campaigns into another one. Tables are not copied: write them afterwards.

    :param into: the folder of a campaign; a new one is made.
    :param keep_conflicts: where two campaigns have different results of one cell, keep the one that is there (of sources, the first).
    :param dry_run: change nothing.
    :raises BadInput: before anything is copied, if there are conflicts and ``keep_conflicts`` is not set.
    :raises ResultsError: if a source is no campaign, or the folder cannot be written.
    """
    component(into.name, "campaign")
    if not sources:
        raise BadInput("There is nothing to merge: give the folders of one or more campaigns in sources.")
    if into.resolve() in {source.resolve() for source in sources}:
        raise BadInput(f"{into} is both a source and the destination of the merge: remove it from sources.")
    campaigns = [store.load_campaign(source) for source in sources]
    existing = {_place(record): record for record in store.load_campaign(into).cells} if (into / CAMPAIGN_FILE).exists() or _holds_folders(into) else {}
    chosen, conflicts, damaged, kept = _choose(campaigns, existing)
    if conflicts and not keep_conflicts:
        raise BadInput(
            f"{len(conflicts)} cells have two different results: {_abbreviate(conflicts)}. Nothing was merged: give the campaigns other variants, "
            "or set conflicts: keep to stay with the results that are there already."
        )
    plans = _plans(campaigns, into)
    merged = Merged(
        path=into,
        copied=tuple(_name(place) for place in chosen if place not in existing or existing[place].path is None),
        replaced=tuple(_name(place) for place in chosen if place in existing and existing[place].path is not None),
        kept=kept,
        conflicts=conflicts,
        damaged=damaged,
        plans=len(plans),
    )
    if not dry_run and merged.changed:
        _write(campaigns, into, chosen, plans)
    return merged


def _holds_folders(folder: Path) -> bool:
    return folder.is_dir() and any(entry.is_dir() and not entry.name.startswith(".") for entry in folder.iterdir())


def _place(record: CellRecord) -> CellPlace:
    return record.host, record.key


def _name(place: CellPlace) -> str:
    return f"{place[0]}/{place[1]}"


def _abbreviate(names: t.Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


# ---------------------------------------------------------------------------------------------------------------------
# What to copy


def _choose(
    campaigns: t.Sequence[Campaign], existing: t.Mapping[CellPlace, CellRecord]
) -> tuple[dict[CellPlace, CellRecord], tuple[str, ...], tuple[str, ...], int]:
    """Which cells come from where; the first campaign that has measured one is used."""
    there = dict(existing)
    chosen: dict[CellPlace, CellRecord] = {}
    conflicts, damaged = [], []
    kept = 0
    for record in (record for campaign in campaigns for record in campaign.cells if record.path is not None):
        place = _place(record)
        known = there.get(place)
        if record.problems:
            damaged.append(f"{_name(place)} of {t.cast('Path', record.path)}")
        elif known is None or known.path is None or (known.state not in MEASURED and record.state in MEASURED):
            there[place] = chosen[place] = record
        elif known.meta.get("files") == record.meta.get("files") or record.state not in MEASURED:
            kept += 1
        else:
            conflicts.append(_name(place))
    return chosen, tuple(conflicts), tuple(damaged), kept


_Plans = t.Dict[t.Tuple[str, str], t.Dict[str, t.Any]]


def _plans(campaigns: t.Sequence[Campaign], into: Path) -> _Plans:
    """The plans that will be different from what is there, by host and variant: what was promised once stays promised."""
    found: _Plans = {}
    for campaign in campaigns:
        for host, variant in sorted({(record.host, record.key.variant) for record in campaign.cells}):
            path = campaign.path / host / variant / PLAN_FILE
            if path.is_file() and store.is_plan(path, variant):
                there = into / host / variant / PLAN_FILE
                known = found.get((host, variant)) or (read_json(there) if there.is_file() else {})
                joined = _joined(known, read_json(path), into.name)
                if joined != known:
                    found[host, variant] = joined
    return found


def _joined(known: t.Mapping[str, t.Any], added: t.Mapping[str, t.Any], campaign: str) -> dict[str, t.Any]:
    cells: dict[str, list[int]] = {}
    for plan in (known, added):
        for cell, repeats in plan.get("cells", {}).items():
            cells[cell] = sorted({*cells.get(cell, []), *repeats})
    joined = {**added, **known, "cells": cells, "campaign": campaign}
    stamps = [str(plan["created"]) for plan in (known, added) if plan.get("created")]
    if stamps:
        joined["created"] = min(stamps)
    patterns = {json.dumps(row, sort_keys=True): row for plan in (known, added) for row in plan.get("patterns", [])}
    if patterns:
        joined["patterns"] = [patterns[text] for text in sorted(patterns)]
    return joined


# ---------------------------------------------------------------------------------------------------------------------
# Copying


def _write(campaigns: t.Sequence[Campaign], into: Path, chosen: t.Mapping[CellPlace, CellRecord], plans: _Plans) -> None:
    needed = sum(entry.stat().st_size for record in chosen.values() for entry in t.cast("Path", record.path).iterdir())
    with explained(into, "merging campaigns"):
        into.mkdir(parents=True, exist_ok=True)
    require_space(into, needed, "the merge")
    with explained(into, "merging campaigns"):
        workplace = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=into))
        try:
            # Plans first: whatever stops this, what has not come yet is known to be missing.
            for (host, variant), plan in plans.items():
                (into / host / variant).mkdir(parents=True, exist_ok=True)
                write_json(into / host / variant / PLAN_FILE, plan)
            _name_campaign(campaigns, into)
            for (host, key), record in chosen.items():
                _copy(record, key.below(into / host), workplace)
        finally:
            shutil.rmtree(workplace, ignore_errors=True)


def _name_campaign(campaigns: t.Sequence[Campaign], into: Path) -> None:
    campaign_record: dict[str, t.Any] = {"schema": SCHEMA, "campaign": into.name}
    if (into / CAMPAIGN_FILE).is_file():
        campaign_record = read_json(into / CAMPAIGN_FILE)
    else:
        stamps = [str(read_json(file).get("created", "")) for campaign in campaigns if (file := campaign.path / CAMPAIGN_FILE).is_file()]
        campaign_record["created"] = min(filter(None, stamps), default=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    campaign_record["merged_from"] = sorted({*campaign_record.get("merged_from", []), *(campaign.name for campaign in campaigns)})
    write_json(into / CAMPAIGN_FILE, campaign_record)


def _copy(record: CellRecord, final: Path, workplace: Path) -> None:
    """One cell: copied, compared with its hashes, renamed."""
    source = t.cast("Path", record.path)
    draft = workplace / "cell"
    shutil.copytree(source, draft, symlinks=True)
    problems = file_problems(draft, read_json(draft / META_FILE))
    if problems:
        raise ResultsError(f"{source} changed while it was copied ({problems[0]}): merge again.")
    for file in draft.iterdir():
        with open(file, "rb") as copy:
            os.fsync(copy.fileno())
    final.parent.mkdir(parents=True, exist_ok=True)
    old = workplace / "old"
    with contextlib.suppress(FileNotFoundError):
        os.rename(final, old)
    os.rename(draft, final)
    sync_folder(final.parent)
    shutil.rmtree(old, ignore_errors=True)
