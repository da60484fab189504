# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of RAID controller caches: one read of each tool, one command per difference, one read back."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import in_force, plan, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.plan import LAYER
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import AUTO, ControllerSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.target import SendCommand

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider


OneSpec = t.TypeVar("OneSpec", bound=ControllerSpec)


class RaidCacheLayer(Layer[RaidState, t.Sequence[ControllerSpec]]):
    """The caches of the RAID controllers of one host.

    :param providers: the tools that the specification needs.
    """

    name = LAYER

    def __init__(self, runner: Runner, spec: t.Sequence[ControllerSpec], providers: t.Sequence[RaidProvider]) -> None:
        super().__init__(runner, spec)
        self.providers = {(provider.name, provider.tool): provider for provider in providers}
        self._not_in_force: list[dict[str, t.Any]] = []
        self._sent: dict[SendCommand, Completed] = {}
        self._evidence: dict[tuple[str, str], Completed] = {}

    @classmethod
    def with_tools(cls, runner: Runner, spec: t.Sequence[ControllerSpec]) -> RaidCacheLayer:
        """The layer with the tools that the specification needs.

        :raises ToolMissing: if a named tool is not there.
        """
        providers, resolved = resolve_tools(runner, spec)
        return cls(runner, resolved, providers)

    def read(self) -> RaidState:
        """Every controller that one of the tools reports; an empty specification needs no tool."""
        return registry.read_host(self.providers.values())

    def plan(self, state: RaidState) -> list[Step]:
        """See :func:`plan.plan`.

        :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
        """
        try:
            return plan.plan(state, self.spec)[0]
        except StorageError as error:
            # The same plan serves for reading back; its result must hold then as well.
            error.message = f"After the change: {error.message}" if self._sent else f"{error.message} Nothing was changed."
            error.args = (error.message,)
            raise

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """:raises CommandFailed: if the tool refuses a command."""
        raise TypeError(operation)

    @carry_out.register
    def _send(self, operation: SendCommand, step: Step) -> None:
        """Two steps that share a command (one switch for reading and writing) send it once."""
        if operation not in self._sent:
            self._sent[operation] = self.providers[operation.provider, operation.tool].send(operation.words, step.item)
        self._evidence[step.item, step.attribute] = self._sent[operation]

    def verify(self, state: RaidState) -> list[Difference]:
        """As planned again, with the command that claimed to have done it as evidence.

        :raises NotEffective: if a controller did not take what was set.
        """
        differences = super().verify(state)
        for difference in differences:
            completed = self._evidence.get((difference.item, difference.attribute))
            if completed is not None:
                untold = difference.found == UNKNOWN
                raise NotEffective(
                    f"{self.name}: {difference}, although {completed.command_line} ended with exit status {completed.rc}. "
                    + ("The tool does not report it, so it could not be verified." if untold else "The controller or its tool ignores the setting."),
                    item=difference.item,
                    completed=completed,
                    differences=[vars(one) for one in differences],
                )
        return differences

    def check_settled(self, state: RaidState) -> None:
        """Settings that are stored and not in effect.

        :raises NotEffective: for those of an entry with ``require_effective``.
        """
        found = in_force.not_in_force(state, self.spec)
        self._not_in_force = [one.to_dict() for one in found]
        failing = [one for one in found if one.must]
        if failing:
            text = " ".join(in_force.sentences(failing))
            raise NotEffective(f"{text} With require_effective: false this is a warning.", item=failing[0].item, not_in_force=self._not_in_force)
        self._warn_all([*in_force.sentences(found), *self._problems(state)])

    def check_planned(self, state: RaidState) -> None:
        """What will not be in effect after a run."""
        found = in_force.predicted(state, self.spec)
        self._not_in_force = [one.to_dict() for one in found]
        failing = [f"The run would fail: {sentence}" for sentence in in_force.sentences([one for one in found if one.must])]
        self._warn_all([*failing, *in_force.sentences([one for one in found if not one.must]), *self._problems(state)])

    def _warn_all(self, sentences: t.Iterable[str]) -> None:
        for sentence in sentences:
            self.warn(sentence)

    def _problems(self, state: RaidState) -> list[str]:
        """What was not understood, then what is left out of ``all``, one sentence each."""
        problems = state.problems
        return problems + [sentence for sentence in plan.settable(state, self.spec)[1] if sentence not in problems]

    def facts(self, state: RaidState) -> dict[str, t.Any]:
        return {
            "controllers": [one.controller.to_dict() for one in state.controllers],
            "not_in_force": self._not_in_force,
            "problems": self._problems(state),
        }


def resolve_tools(runner: Runner, specs: t.Sequence[OneSpec]) -> tuple[list[RaidProvider], list[OneSpec]]:
    """The tools that the specifications need, and the specifications with the path of the tool they name.

    Those that are named, and every one that is there if one entry has ``auto``.

    :raises ToolMissing: if a named tool is not there.
    """
    found: dict[tuple[str, str], RaidProvider] = {}
    resolved: list[OneSpec] = []
    if any(spec.provider == AUTO for spec in specs):
        found = {(provider.name, provider.tool): provider for provider in registry.find_tools(runner)}
    for spec in specs:
        if spec.provider == AUTO:
            resolved.append(spec)
            continue
        provider = registry.find_tool(runner, spec.provider, spec.tool_path)
        found.setdefault((provider.name, provider.tool), provider)
        resolved.append(dataclasses.replace(spec, tool_path=provider.tool))
    return list(found.values()), resolved


def run_info_module(module: AnsibleModule) -> t.NoReturn:
    """The body of the module ``raid_cache_info``."""
    name, path = module.params["provider"], module.params["tool_path"]
    try:
        if name == AUTO and path:
            raise BadInput(f"tool_path {path} requires provider: set provider: storcli, arcconf, … beside it.")
        runner = Runner()
        providers = registry.find_tools(runner) if name == AUTO else [registry.find_tool(runner, name, path)]
        # One broken tool must not hide the controllers of the others; one that was requested must not fail silently.
        host = registry.read_host(providers, tolerant=name == AUTO)
    except StorageError as error:
        module.fail_json(**error.to_dict())
    problems = host.problems
    for problem in problems:
        module.warn(problem)
    module.exit_json(
        changed=False,
        controllers=[one.controller.to_dict() for one in host.controllers],
        tools=[{"provider": provider.name, "path": provider.tool} for provider in providers],
        problems=problems,
    )
