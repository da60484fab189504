# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build tables of campaigns, check, merge and export campaigns; on the controller only."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.modules.results import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export.files import export
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.campaigns import find_campaign
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.merge import merge
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import Ingested, ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.integrity import Trouble, check
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables

_SUFFIXES = {"ndjson": "ndjson", "openmetrics": "prom", "influx": "lp"}

#: Cells that a message names; all of them are in the result.
_NAMED = 5


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        verbs = {"rebuild": self._rebuild, "check": self._check, "merge": self._merge, "export": self._export}
        tables = Path(options["tables"]).absolute() if options["tables"] else None
        # What is merged may be new.
        merged = options["operation"] == "merge" and options["path"]
        path = Path(options["path"]).expanduser().absolute() if merged else find_campaign(options["path"], "results_campaign", options["results"])
        result = {"path": str(path), **verbs[options["operation"]](path, tables, options)}
        if not result.get("failed"):
            self._display.display(_summary(options["operation"], result))
        return result

    def _rebuild(self, path: Path, tables: Path | None, options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        return _to_result(ingest(path, tables, force=options["force"], dry_run=bool(self._task.check_mode)))

    def _check(self, path: Path, tables: Path | None, options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        found = check(path, tables)
        result: dict[str, t.Any] = {
            "changed": False,
            "states": dict(found.states),
            "damaged": [vars(trouble) for trouble in found.damaged],
            "missing": [vars(trouble) for trouble in found.missing],
            "stale": list(found.stale),
            "doubled": list(found.doubled),
            "problems": list(found.left_out),
        }
        messages = [_sentence("damaged", found.damaged)] if found.damaged else []
        if found.missing and not options["allow_missing"]:
            messages.append(_sentence("missing", found.missing))
        if messages:
            hint = "" if found.damaged else " Measure them, or set allow_missing: true."
            result.update(failed=True, msg=f"{path}: {' '.join(messages)}{hint}")
        return result

    def _merge(self, path: Path, _tables: Path | None, options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        sources = [Path(source).absolute() for source in options["sources"]]
        found = merge(sources, path, keep_conflicts=options["conflicts"] == "keep", dry_run=bool(self._task.check_mode))
        for name in found.damaged:
            self._display.warning(f"{name} is damaged and was not merged.")
        names = {name: list(getattr(found, name)) for name in ("copied", "replaced", "conflicts", "damaged")}
        return {"changed": found.changed, "kept": found.kept, **names}

    def _export(self, path: Path, tables: Path | None, options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        dry_run = bool(self._task.check_mode)
        written = ingest(path, tables, dry_run=dry_run)
        file = Path(options["file"]).absolute() if options["file"] else path / "reports" / f"results.{_SUFFIXES[options['format']]}"
        if dry_run:
            return {**_to_result(written), "changed": True, "file": str(file), "lines": 0}
        if not options["file"]:
            with explained(file.parent, "making the folder of reports"):
                file.parent.mkdir(exist_ok=True)
        # Of a folder of tables that several campaigns share, only this one.
        changed, lines = read_tables(
            written.folder, lambda database: export(database, options["format"], file, options["export_tables"]), campaign=written.campaign
        )
        return {**_to_result(written), "changed": changed or written.changed, "file": str(file), "lines": lines}


def _to_result(found: Ingested) -> dict[str, t.Any]:
    return {
        "changed": found.changed,
        "tables": str(found.folder),
        "written": list(found.written),
        "unchanged": len(found.unchanged),
        "removed": list(found.removed),
        "problems": list(found.problems),
    }


def _summary(operation: str, result: t.Mapping[str, t.Any]) -> str:
    """One line for the terminal."""
    if operation == "check":
        states = ", ".join(f"{count} {state}" for state, count in result["states"].items()) or "no cells"
        stale = f"; the tables of {len(result['stale'])} hosts are not of the present files" if result["stale"] else ""
        doubled = f"; {len(result['doubled'])} hosts are in the tables twice" if result["doubled"] else ""
        return f"{result['path']}: every file is as it was measured: {states}{stale}{doubled}."
    if operation == "merge":
        return f"{result['path']}: {len(result['copied'])} cells copied, {len(result['replaced'])} replaced, {result['kept']} there already."
    tables = f"tables of {len(result['written'])} hosts written, of {result['unchanged']} unchanged"
    return (
        f"{result['file']}: {result['lines']} lines ({tables})."
        if operation == "export"
        else f"{result['tables']}: {tables}, of {len(result['removed'])} removed."
    )


def _sentence(what: str, troubles: t.Sequence[Trouble]) -> str:
    named = "; ".join(f"{trouble.cell}: {trouble.problem}" for trouble in troubles[:_NAMED])
    more = f"; and {len(troubles) - _NAMED} more" if len(troubles) > _NAMED else ""
    return f"{len(troubles)} {'cell is' if len(troubles) == 1 else 'cells are'} {what} ({named}{more})."
