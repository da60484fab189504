# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of a sweep so far, from the tables of its campaign, and how a report compares them."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import duckdb, numpy, ruptures, scipy_stats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Options
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer_text import Repeats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import doubtful_cells, named_series
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import MOST_SERIES, read_compared, read_series
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import design_of, progress_after
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import ClassProgress, Design


def require_libraries() -> None:
    """:raises LibraryMissing: naming the first that results cannot be compared without."""
    for library, name in ((duckdb, "connect"), (numpy, "array"), (scipy_stats, "norm"), (ruptures, "Pelt")):
        getattr(library, name)


def read_progress(campaign: Path, design: Design, repeats: int, baseline: str) -> list[ClassProgress]:
    """What the first repeats show, class by class.

    :raises StorageError: if the results cannot be read, or a library is missing.
    """
    ingest(campaign)
    rows, (series, _total) = read_tables(campaign, lambda database: (read_compared(database, campaign.name), read_series(database, MOST_SERIES)))
    named = named_series(series)
    return progress_after(
        rows,
        design,
        repeats,
        baseline=baseline if baseline in rows.variants else "",
        doubtful_after=lambda count: doubtful_cells(one for one in named if one.series.repeat <= count),
    )


def with_design(options: Options, campaign: Path, variants: t.Container[str]) -> Options:
    """The options of a report: the variants of a sweep are compared as it was designed.

    :param variants: those that were measured.
    """
    # A report needs no more than results.
    found, _damaged = states.load_all(campaign)
    # Not the first variant that was measured: the first step of the baseline may have failed.
    first = states.baseline_of(found)
    baseline = options.baseline or (first if first in variants else "")
    design = design_of(found)
    if design is None:
        return dataclasses.replace(options, baseline=baseline)
    return dataclasses.replace(options, baseline=baseline, levels=design.levels, repeats=Repeats("sweep_repeats", design.fewest))
