# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print the results of a campaign, and write a report; on the controller only."""

from __future__ import annotations

import typing as t
from collections import Counter
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.modules.report import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.campaigns import find_campaign
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis, costs, overview
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import read_facts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import read_ignored
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import rare_garbage_collection
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.write import FORM, write_form
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import read_tests
from ansible_collections.cachefleet.storage.plugins.plugin_utils._terminal import width_of


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    @rare_garbage_collection()
    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        path = find_campaign(options["path"], "report_campaign", options["results"])
        if self._task.check_mode and not path.exists():
            self._display.display("Nothing is measured in check mode, so there is nothing to report.")
            return {
                "changed": False,
                "path": str(path),
                "text": "",
                "rows": [],
                "ratios": [],
                "aggregates": [],
                "failed_cells": [],
                "states": {},
                "problems": [],
                "files": {},
            }
        result: dict[str, t.Any] = {}
        try:
            notes = {str(host): str(note) for host, note in options["problems"].items()}
            wanted = _analysis_options(options)
            fleet = self._fleet(path, wanted)
            found, missing = self._analysis(path, wanted, fleet)
            # One baseline for all that is printed.
            baseline = options["baseline"] or (found.answer.baseline if found is not None else "")
            seen = self._hosts(path, baseline, wanted.ignore) if fleet is None else fleet
            result = self._print(seen, notes, found, options["rows"])
            # Of nothing there is no report.
            if missing is not None and options["files"] and seen.campaign.cells:
                raise missing
            return result | self._files(path, found, options["files"])
        except StorageError as error:
            # What was printed stays known, if only the files could not be written.
            if result:
                self._display.display(f"No report was written: {error.message}\n")
                if not options["require_files"]:
                    return {**result, "files": {}}
            return {**result, "failed": True, "changed": False, **error.to_dict()}

    def _analysis(
        self, path: Path, wanted: analysis.Options, fleet: overview.Overview | None
    ) -> tuple[analysis.Analysis | None, LibraryMissing | ResultsError | None]:
        """The contents of the tables, or why they cannot be read; neither in check mode. The table of results is printed in any case."""
        if self._task.check_mode:
            return None, None
        try:
            return write.analysed(path, wanted, known=fleet, fresh=fleet is None), None
        except (LibraryMissing, ResultsError) as error:
            return None, error

    def _fleet(self, path: Path, wanted: analysis.Options) -> overview.Overview | None:
        """The campaign from its tables, if it has many hosts and tables can be built: reading all files of a thousand hosts takes minutes."""
        if self._task.check_mode or not path.is_dir() or len(store.host_folders(path, [])) <= overview.MANY:
            return None
        try:
            made = ingest(path)
            baselines = wanted.baseline, _baseline_of_sweep(path)
            fleet = overview.overview_of_tables(path, made.campaign, baselines, made.problems, wanted.host_class, wanted.ignore)
        except LibraryMissing:
            return None
        _require_variant(fleet.campaign, wanted.baseline)
        return fleet

    def _hosts(self, path: Path, baseline: str, ignore: t.Collection[str]) -> overview.Overview:
        """Every host, from its files."""
        campaign = store.load_campaign(path, contents=True)
        _require_variant(campaign, baseline)
        return overview.overview_of_files(campaign, baseline, ignore)

    def _print(self, seen: overview.Overview, notes: t.Mapping[str, str], found: analysis.Analysis | None, rows: int) -> dict[str, t.Any]:
        answer = list(found.answer.sentences) if found is not None else []
        caveats = [*found.conclusions, *found.caveats] if found is not None else []
        width = width_of(self._display, table.UNLIMITED)
        text = table.render(seen.campaign, seen.shown, seen.ratios, notes, seen.notes, seen.answers, answer, caveats, width=width, most_rows=rows)
        self._display.display("\n" + text + "\n")
        return {
            "changed": False,
            "path": str(seen.campaign.path),
            "text": text,
            "rows": [row.to_dict() for row in seen.rows],
            "ratios": [ratio.to_dict() for ratio in seen.ratios],
            "aggregates": seen.sums,
            "failed_cells": table.troubles(seen.campaign, notes),
            "states": dict(Counter(record.state for record in seen.campaign.cells)),
            "problems": list(seen.campaign.problems),
            **({"answer": [*answer, *caveats]} if answer else {}),
        }

    def _files(self, path: Path, found: analysis.Analysis | None, formats: t.Sequence[str]) -> dict[str, t.Any]:
        """Write the requested files after the table is printed, so that a missing library does not prevent the table."""
        if not formats or found is None:
            return {"files": {}}
        files = write.write_report(path, found, [name for name in formats if name != FORM])
        if FORM in formats:
            files |= write_form(path)
        opened = {"html": " (open it in a browser; it needs no network)"}
        self._display.display("\n".join([*(f"Report: {file}{opened.get(name, '')}" for name, file in files.items()), ""]))
        return {"changed": True, "files": files}


def _analysis_options(options: t.Mapping[str, t.Any]) -> analysis.Options:
    """:raises BadInput: naming the option."""
    limit = options["latency_limit_ms"]
    if limit is not None and not 0 < limit < 1e9:
        raise BadInput(f"latency_limit_ms is {limit}: give ms above 0.")
    if options["rows"] < 0:
        raise BadInput(f"rows is {options['rows']}: give the number of rows to print, or 0 for all.")
    return analysis.Options(
        baseline=options["baseline"],
        decide_by=tuple(options["decide_by"]),
        ignore=read_ignored(options["ignore"]),
        host_class=read_facts(options["host_class"]),
        limit=None if limit is None else limit * 1e6,
        prices=costs.read_prices(options["prices"]),
        currency=options["currency"],
        power_loss=read_tests(options["power_loss"], "report_power_loss"),
    )


def _baseline_of_sweep(path: Path) -> str:
    """Empty if it is not known: a report needs no more than results."""
    return states.baseline_of(states.load_all(path)[0])


def _require_variant(campaign: store.Campaign, baseline: str) -> None:
    if baseline and baseline not in campaign.variants:
        raise BadInput(f"There is no variant '{baseline}' in {campaign.path}: give one of {', '.join(campaign.variants)} as the baseline.")
