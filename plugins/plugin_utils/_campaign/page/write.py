# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the folder of a campaign to its report: three files beside the results."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, write_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis, rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import distributions_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import host_classes
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.progress import with_design
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import identity_of, ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables

if t.TYPE_CHECKING:
    import datetime

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.overview import Overview

#: Where they lie in the folder of a campaign.
REPORTS_FOLDER = "reports"

FORMATS = {"html": "report.html", "markdown": "report.md", "csv": "report.csv"}


def write_report(campaign: Path, found: analysis.Analysis, formats: t.Sequence[str] = tuple(FORMATS)) -> dict[str, str]:
    """Write an analysis; the files by format.

    :raises ResultsError: if a file cannot be written.
    :raises LibraryMissing: without plotly.
    """
    makers: dict[str, t.Callable[[], str]] = {
        "html": lambda: page.render(found, str(campaign)),
        "markdown": lambda: twins.markdown(found, str(campaign)),
        "csv": lambda: twins.csv_text(found),
    }
    files = write_files(campaign, {FORMATS[name]: makers[name] for name in formats})
    return {name: files[FORMATS[name]] for name in formats}


def write_files(campaign: Path, makers: t.Mapping[str, t.Callable[[], str]]) -> dict[str, str]:
    """Write texts into the folder of reports; their paths by name.

    :raises ResultsError: if they cannot be written.
    """
    if not makers:
        return {}
    folder = campaign / REPORTS_FOLDER
    with explained(folder, "making the folder of reports"):
        folder.mkdir(exist_ok=True)
    for name, make in makers.items():
        with explained(folder, f"writing {name}"):
            write_text(folder / name, make())
    return {name: str(folder / name) for name in makers}


def analysed(
    campaign: Path, options: analysis.Options, now: datetime.datetime | None = None, known: Overview | None = None, *, fresh: bool = False
) -> analysis.Analysis:
    """The contents of the tables of a campaign.

    :param known: what was read already, with the classes of hosts of the options.
    :param fresh: bring the tables up to date first.
    :raises ResultsError: if it is no campaign, or the tables cannot be written.
    :raises BadInput: for a baseline that is no variant.
    :raises LibraryMissing: without duckdb, numpy, scipy or ruptures.
    """
    if fresh:
        ingest(campaign)
    if known is None or known.read is None:
        name = identity_of(campaign)[0]
        read, points = read_tables(campaign, lambda database: rows.read_rows(database, name, options.host_class)), None
    else:
        read, points = known.read, known.points
    charts, distributions = read.charts, distributions_of(read, host_classes(read, options.host_class))
    designed = with_design(options, campaign, read.variants)
    return analysis.analyse(read, charts.series, charts.total, charts.bands, campaign, designed, now, points, distributions)
