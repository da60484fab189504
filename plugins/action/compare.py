# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare a campaign with an earlier one; on the controller only."""

from __future__ import annotations

import typing as t
from dataclasses import asdict
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.modules.compare import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.campaigns import find_campaign
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.write import write_files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import regression
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement, read_measurements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables

FILES = {"markdown": "comparison.md", "json": "comparison.json", "junit": "comparison.junit.xml"}


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        try:
            return self._compare(options)
        except StorageError as error:
            return {"failed": True, "changed": False, "rc": regression.NOT_COMPARABLE, **error.to_dict()}

    def _compare(self, options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        rules = regression.read_rules(options["thresholds"], options["ignore"], options["cells"], accept_undecided=options["accept_undecided"])
        folders = [find_campaign(options[side], f"compare_{side}", options["results"]) for side in ("baseline", "candidate")]
        variants = options["baseline_variant"], options["candidate_variant"]
        if folders[0].resolve() == folders[1].resolve() and variants[0] == variants[1]:
            raise BadInput("Baseline and candidate are the same campaign: give two folders, or baseline_variant and candidate_variant.")
        if bool(variants[0]) != bool(variants[1]):
            raise BadInput("Give both baseline_variant and candidate_variant, or neither.")
        sides = [_measurements(folder) for folder in folders]
        found = regression.compare_campaigns(sides[0], sides[1], rules, variants=variants)
        about = {"baseline": str(folders[0]), "candidate": str(folders[1]), "baseline_variant": variants[0], "candidate_variant": variants[1]}
        makers = {
            "markdown": lambda: regression.as_markdown(found, about),
            "json": lambda: regression.to_json(found, about),
            "junit": lambda: regression.as_junit(found, f"{folders[1].name} against {folders[0].name}"),
        }
        files = {} if self._task.check_mode else write_files(folders[1], {FILES[name]: makers[name] for name in options["files"]})
        skipped = [f"  not compared: {one}" for one in found.skipped[:20]]
        self._display.display("\n" + "\n".join([found.summary, *_worst(found), *skipped]) + "\n")
        result = {
            "changed": bool(files),
            "rc": found.rc,
            "summary": found.summary,
            "lines": [asdict(line) for line in found.lines],
            "added": list(found.added),
            "skipped": list(found.skipped),
            "files": {name: files[FILES[name]] for name in options["files"] if FILES[name] in files},
        }
        accepted = (regression.SAME_OR_BETTER,) if options["fail_on_regression"] else (regression.SAME_OR_BETTER, regression.REGRESSION)
        # Explicitly not failed: ansible-core takes any other rc than 0 for a failure.
        return result | ({"failed": False} if found.rc in accepted else {"failed": True, "msg": found.summary})


def _measurements(folder: Path) -> list[Measurement]:
    ingest(folder)
    return read_tables(folder, read_measurements)


def _worst(found: regression.Compared) -> list[str]:
    """A line for each of the first comparisons that are worse or inconclusive."""
    shown = [line for line in found.lines if line.verdict not in ("better", "same", "not_worse")]
    shown.sort(key=lambda line: line.verdict != "worse")
    return [
        f"  {line.verdict}: {line.variant} {line.cell} ({line.direction}) {line.metric}: {regression.both_values(line)}; {line.reason}" for line in shown[:20]
    ]
