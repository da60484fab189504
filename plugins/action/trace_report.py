# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb trace_report: what is in recorded loads, and what caches would serve of them; on the controller only."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.modules.trace_report import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, write_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import dump
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import analysis, contents, shared
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.page import page
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.recommendation import Prices
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError, read_trace


class ActionModule(Verb):
    """See the documentation of ``cachefleet.storage.trace_report``."""

    TRANSFERS_FILES = False
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        sizes = sorted({parse_size(one, "sizes") for one in options["sizes"]})
        folders = analysis.folders_of(Path(options["path"]))
        reports = [self._report(folder, sizes, options, several=len(folders) > 1) for folder in folders]
        return {"changed": any(one["files"] for one in reports), "reports": reports}

    def _report(self, folder: Path, sizes: t.Sequence[int], options: t.Mapping[str, t.Any], *, several: bool) -> dict[str, t.Any]:
        trace = read_trace(folder)
        found = analysis.analyse(trace, sizes, Prices(**{name: value for name, value in options["prices"].items() if value is not None}))
        sentences = [found.recommendation.sentence, *found.recommendation.rests_on, *contents.sentences(found.contents)]
        self._display.display("\n".join(["", f"{page.title_of(found)}:", *(f"- {one}" for one in sentences), ""]))
        output = (Path(options["output"]) / (folder.name if several else "")) if options["output"] else folder
        files = {} if self._task.check_mode else _write(output, page.makers(found, "recorded_load") | self._copies(trace, found, options["key"], output))
        if files:
            self._display.display(f"Report: {files['report.html']} (open it in a browser; it needs no network)\n")
        return {"host": trace.host, "name": trace.name, "sentences": sentences, "entry": dict(found.recommendation.entry), "files": files}

    def _copies(self, trace: Trace, found: analysis.Analysis, key: str, output: Path) -> dict[str, t.Callable[[], str | bytes]]:
        """Logs for a replay, of devices that can be replayed, with their suite, and with a key a copy for others."""
        made: dict[str, t.Callable[[], str | bytes]] = {}
        logs = {}
        for place, one in enumerate(found.contents.devices):
            try:
                log = analysis.replay_log(trace, place, one)
            except TraceError as error:
                self._display.display(f"No log for a replay: {error.message}\n")
                continue
            name = f"replay-{place}.log.gz"
            made[name], logs[place] = (lambda log=log: log), str((output / name).absolute())
        if logs:
            made[page.REPLAY_FILE] = lambda: "---\n" + dump(analysis.replay_suite(found.contents, logs, "recorded_requests"))
        if key:
            described, requests = shared.scrambled(trace, key)
            made |= {f"shared/{trace_format.TRACE_FILE}": lambda: described, f"shared/{trace_format.REQUESTS_FILE}": lambda: requests}
        return made


def _write(output: Path, makers: t.Mapping[str, t.Callable[[], str | bytes]]) -> dict[str, str]:
    for name, make in makers.items():
        path = output / name
        with explained(path.parent, f"writing {path.name}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            made = make()
            path.write_bytes(made) if isinstance(made, bytes) else write_text(path, made)
    # What an earlier report had and this one has not would be taken for a part of it.
    for path in (*(output / name for name in (page.CACHE_FILE, page.SUITE_FILE, page.REPLAY_FILE)), *output.glob("replay-[0-9]*.log.gz")):
        if path.name not in makers:
            with explained(output, f"removing {path.name} of an earlier report"):
                path.unlink(missing_ok=True)
    return {name: str(output / name) for name in makers}
