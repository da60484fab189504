# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb benchmark_plan: what one host measures; on the controller only."""

from __future__ import annotations

import difflib
import functools
import math
import typing as t
from pathlib import Path

import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.modules.benchmark_plan import TIMING, argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.finished import measured_as, measured_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import results_folder
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.cache_size import cache_size_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import host_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import needs_cache_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import matches_of, with_devices

_SUITES = Path(__file__).resolve().parent.parent.parent / "roles/fio_benchmark/files/suites"


class ActionModule(StorageAction):
    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        host = str((task_vars or {}).get("inventory_hostname", ""))
        try:
            self._require_keys()
            _result, options = self.validate_argument_spec(argument_spec=argument_spec())
            suites = included_suites() | options.pop("suites")
            timing = options.pop("timing")
            _require_positive(timing)
            show = options.pop("show")
            measured = {name: options.pop(name) for name in ("results", "campaign", "variant", "replace")}
            claims = options["dry_run"] or self._task.check_mode
            suite, cache_size = options.pop("suite"), options.pop("cache_size")
            needed = suite if not cache_size and needs_cache_size(suite, suites) else ""
            targets, found = self._found(options.pop("targets"), options["file"], needed, task_vars)
            plan = host_plan(targets, suite, suites, host=host, gap=timing["gap"], claims=claims, cache_size=cache_size or found, **options)
            if show:
                self._display.display(f"\n{self._what_is_left(measured, host, plan)}\n")
            return {"changed": False, **plan, "timing": timing}
        except StorageError as error:
            return {"failed": True, "changed": False, **error.to_dict()}

    def _found(self, targets: list[t.Any], file: str, suite: str, task_vars: dict[str, t.Any] | None) -> tuple[list[t.Any], str]:
        """The targets, with the devices of the host for those that choose by ``match``, and the size of the cache in front of them.

        :param suite: one that needs that size; empty if none does.
        :raises StorageError: for a match that is none, a size that the host does not have, and what the host fails with.
        """
        matches = matches_of(targets)
        if not matches and not suite:
            return targets, ""
        answer = self.answer_of("cachefleet.storage.cache_stack_info", {"matches": matches}, task_vars)
        if answer.get("failed"):
            raise CommandFailed(str(answer.get("msg") or "The host did not answer which devices it has."))
        found, empty = with_devices(targets, answer.get("matched") or [])
        for sentence in empty:
            self._display.warning(sentence)
        return found, str(cache_size_of([{"file": file}] if file else found, answer.get("devices"), suite)) if suite else ""

    def _what_is_left(self, measured: dict[str, t.Any], host: str, plan: dict[str, t.Any]) -> str:
        """The plan, or that all of it was measured."""
        cells = [(cell["name"], cell["repeat"]) for cell in plan["cells"]]
        if not cells or measured["replace"] or not measured["campaign"]:
            return str(plan["text"])
        folder = results_folder(measured["results"]) / component(measured["campaign"], "campaign")
        variant = component(measured["variant"], "variant")
        done = len(measured_as(folder, host, variant).keys() & set(cells))
        some = f"\n{done} of these cells of variant {variant} were measured already: {len(cells) - done} are left." if done else ""
        return measured_note(folder, host, variant, cells) or f"{plan['text']}{some}"

    def _require_keys(self) -> None:
        """:raises BadInput: for a key that does not exist; a list or text as timing is left to the argument specification."""
        timing = self._task.args.get("timing") or {}
        for key in timing if isinstance(timing, dict) else ():
            if key not in TIMING:
                near = difflib.get_close_matches(str(key), TIMING, 1, 0.6)
                raise BadInput(f"fio_benchmark_timing has no key {key}: {f'did you mean {near[0]}?' if near else 'give one of ' + ', '.join(TIMING) + '.'}")


def _require_positive(timing: t.Mapping[str, t.Any]) -> None:
    for key, value in timing.items():
        if not 0 <= value < math.inf:
            raise BadInput(f"fio_benchmark_timing.{key} is {value}: give seconds from 0 on.")


@functools.cache
def included_suites() -> dict[str, t.Any]:
    """Those of the role, by name."""
    found: dict[str, t.Any] = {}
    for path in sorted(_SUITES.glob("*.yml")):
        found |= yaml.safe_load(path.read_text())
    return found
