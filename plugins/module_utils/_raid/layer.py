# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of RAID controller caches: one read of each tool, one command per difference, one read back."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Step, run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import in_force, plan, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.plan import LAYER
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import AUTO, ControllerSpec, parse_controllers

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider


Wish = t.TypeVar("Wish", bound=ControllerSpec)


class RaidCacheLayer(Layer[RaidState, t.Sequence[ControllerSpec]]):
    """The caches of the RAID controllers of one host."""

    name = LAYER

    def __init__(self, runner: Runner, providers: t.Sequence[RaidProvider]) -> None:
        self.runner = runner
        self.providers = {(provider.name, provider.tool): provider for provider in providers}
        self.problems: list[str] = []
        self.not_in_force: list[dict[str, t.Any]] = []
        self._sent: dict[tuple[str, ...], Completed] = {}
        self._evidence: dict[tuple[str, str], Completed] = {}

    def read(self) -> RaidState:
        """Every controller that one of the tools sees."""
        host = registry.read_host(self.providers.values())
        self.problems = host.problems
        return host

    def plan(self, present: RaidState, wanted: t.Sequence[ControllerSpec]) -> list[Step]:
        try:
            steps, left_out = plan.plan(present, wanted)
        except StorageError as error:
            # The same plan serves for reading back; what it says must be true then as well.
            error.message = f"After the change: {error.message}" if self._sent else f"{error.message} Nothing was changed."
            error.args = (error.message,)
            raise
        self.problems += [problem for problem in left_out if problem not in self.problems]
        return steps

    def apply(self, step: Step) -> None:
        """Send the command of one step; two steps that share a command (one switch for reading and writing) send it once."""
        provider = self.providers[step.arguments["provider"], step.arguments["tool"]]
        words = tuple(step.arguments["words"])
        key = (provider.tool, *words)
        if key not in self._sent:
            self._sent[key] = provider.send(words, step.item)
        self._evidence[step.item, step.attribute] = self._sent[key]

    def verify(self, present: RaidState, wanted: t.Sequence[ControllerSpec]) -> list[Difference]:
        """As planned again, with the command that claimed to have done it as evidence.

        :raises NotEffective: if a controller did not take what it was told.
        """
        differences = super().verify(present, wanted)
        for difference in differences:
            completed = self._evidence.get((difference.item, difference.attribute))
            if completed is not None:
                untold = difference.found == UNKNOWN
                raise NotEffective(
                    f"{self.name}: {difference}, although {completed.command_line} ended with exit status {completed.rc}. "
                    + ("The tool does not tell it, so it could not be proved." if untold else "The controller or its tool ignores the setting."),
                    item=difference.item,
                    completed=completed,
                    differences=[vars(one) for one in differences],
                )
        return differences

    def concerns(self, present: RaidState, wanted: t.Sequence[ControllerSpec]) -> list[str]:
        """Settings that are stored and not in force.

        :raises NotEffective: for those of an entry with ``require_effective``.
        """
        found = in_force.not_in_force(present, wanted)
        self.not_in_force = [dataclasses.asdict(one) for one in found]
        failing = [one for one in found if one.must]
        if failing:
            said = " ".join(in_force.sentences(failing))
            raise NotEffective(f"{said} With require_effective: false this is a warning.", item=failing[0].item, not_in_force=self.not_in_force)
        return in_force.sentences(found) + self.problems

    def foresee(self, present: RaidState, wanted: t.Sequence[ControllerSpec]) -> list[str]:
        """What will not be in force after a run."""
        found = in_force.foreseen(present, wanted)
        self.not_in_force = [dataclasses.asdict(one) for one in found]
        failing = [f"The run would fail: {sentence}" for sentence in in_force.sentences([one for one in found if one.must])]
        return failing + in_force.sentences([one for one in found if not one.must]) + self.problems

    def facts(self, present: RaidState) -> dict[str, t.Any]:
        return {
            "controllers": [one.controller.as_result() for one in present.controllers],
            "not_in_force": self.not_in_force,
            "problems": list(self.problems),
        }


def resolve_tools(runner: Runner, wanted: t.Sequence[Wish]) -> tuple[list[RaidProvider], list[Wish]]:
    """The tools that the wishes need, and the wishes with the place of the tool they name.

    Those that are named, and every one that is there if one wish says ``auto``.

    :raises ToolMissing: if a named tool is not there.
    """
    found: dict[tuple[str, str], RaidProvider] = {}
    resolved: list[Wish] = []
    if any(wish.provider == AUTO for wish in wanted):
        found = {(provider.name, provider.tool): provider for provider in registry.find_tools(runner)}
    for wish in wanted:
        if wish.provider == AUTO:
            resolved.append(wish)
            continue
        provider = registry.find_tool(runner, wish.provider, wish.tool_path)
        found.setdefault((provider.name, provider.tool), provider)
        resolved.append(dataclasses.replace(wish, tool_path=provider.tool))
    return list(found.values()), resolved


def run_module(module: AnsibleModule) -> t.NoReturn:
    """The body of the module ``raid_cache``."""
    try:
        runner = Runner()
        providers, wanted = resolve_tools(runner, parse_controllers(module.params["controllers"]))
        layer = RaidCacheLayer(runner, providers)
    except StorageError as error:
        module.fail_json(**error.as_result())
    run_layer(module, layer, wanted)


def run_info_module(module: AnsibleModule) -> t.NoReturn:
    """The body of the module ``raid_cache_info``."""
    name, path = module.params["provider"], module.params["tool_path"]
    try:
        if name == AUTO and path:
            raise BadInput(f"tool_path {path} needs the provider whose language it speaks: write provider: storcli, arcconf, … beside it.")
        runner = Runner()
        providers = registry.find_tools(runner) if name == AUTO else [registry.find_tool(runner, name, path)]
        # One broken tool must not hide the controllers of the others; one that was asked for must not fail in silence.
        host = registry.read_host(providers, tolerant=name == AUTO)
    except StorageError as error:
        module.fail_json(**error.as_result())
    problems = host.problems
    for problem in problems:
        module.warn(problem)
    module.exit_json(
        changed=False,
        controllers=[one.controller.as_result() for one in host.controllers],
        tools=[{"provider": provider.name, "path": provider.tool} for provider in providers],
        problems=problems,
    )
