# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of RAID controller caches: one read of each tool, one command per difference, one read back."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, StorageError, failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import in_force, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import plan as raid_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.commands import RaidLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import AUTO, ControllerSpec, tool_path_alone

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState


class RaidCacheLayer(RaidLayer[ControllerSpec]):
    """The caches of the RAID controllers of one host."""

    name = raid_plan.LAYER

    def __init__(self, *given: t.Any, **further: t.Any) -> None:
        super().__init__(*given, **further)
        self._not_in_force: list[dict[str, t.Any]] = []

    def plan(self, state: RaidState) -> list[Step]:
        """See :func:`plan.plan`.

        :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
        """
        try:
            return raid_plan.plan(state, self.spec)[0]
        except StorageError as error:
            # The same plan serves for reading back; its result must hold then as well.
            error.message = f"After the change: {error.message}" if self.sent else f"{error.message} Nothing was changed."
            error.args = (error.message,)
            raise

    def ignored(self, difference: Difference, completed: Completed) -> str:  # noqa: ARG002
        if difference.found == UNKNOWN:
            return ". The tool does not report it, so it could not be verified"
        return ". The controller or its tool ignores the setting"

    def left_out(self, state: RaidState) -> list[str]:
        return raid_plan.settable(state, self.spec)[1]

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
        self.warn_all([*in_force.sentences(found), *self.problems(state)])

    def check_planned(self, state: RaidState) -> None:
        """What will not be in effect after a run."""
        found = in_force.predicted(state, self.spec)
        self._not_in_force = [one.to_dict() for one in found]
        failing = [f"The run would fail: {sentence}" for sentence in in_force.sentences([one for one in found if one.must])]
        self.warn_all([*failing, *in_force.sentences([one for one in found if not one.must]), *self.problems(state)])

    def facts(self, state: RaidState) -> dict[str, t.Any]:
        return {**super().facts(state), "not_in_force": self._not_in_force}


def run_info_module(module: AnsibleModule) -> t.NoReturn:
    """The body of the module ``raid_cache_info``."""
    name, path = module.params["provider"], module.params["tool_path"]
    with failing(module):
        if name == AUTO and path:
            raise BadInput(tool_path_alone(path))
        runner = Runner()
        providers = registry.find_tools(runner) if name == AUTO else [registry.find_tool(runner, name, path)]
        # One broken tool must not hide the controllers of the others; one that was requested must not fail silently.
        host = registry.read_host(providers, tolerant=name == AUTO)
    problems = host.problems
    for problem in problems:
        module.warn(problem)
    module.exit_json(
        changed=False,
        controllers=[one.controller.to_dict() for one in host.controllers],
        tools=[{"provider": provider.name, "path": provider.tool} for provider in providers],
        problems=problems,
    )
