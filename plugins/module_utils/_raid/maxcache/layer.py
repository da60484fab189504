# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of SSD caches inside controllers: as that of controller caches, and waiting until a cache is clean."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Outcome, run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, NotUnderstood, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import CLEAN, DIRTY
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import emptying as maxcache_emptying
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import plan as maxcache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import target as maxcache_target
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec, parse_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider

#: The only tool that speaks to controllers with maxCache.
TOOL = "arcconf"
#: Seconds between two looks at a flush, at first and at most: it takes seconds or hours, and each look is a whole reading.
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
#: Looks in a row that may fail before the wait is given up: a busy controller answers late, and outputs are cut.
PATIENCE = 3


class Interrupted(StorageError):
    """Somebody ended the run while it waited."""

    kind = "interrupted"


class RaidMaxCacheLayer(Layer[RaidState, t.Sequence[MaxCacheSpec]]):
    """The SSD caches inside the controllers of one host.

    :param clock: seconds, only for differences.
    :param sleep: waits so many seconds.
    :param log: takes every line of progress, while it happens.
    """

    name = maxcache_target.LAYER

    def __init__(
        self,
        providers: t.Sequence[RaidProvider],
        *,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
        log: t.Callable[[str], None] | None = None,
    ) -> None:
        self.providers = {(provider.name, provider.tool): provider for provider in providers}
        self.clock = clock
        self.sleep = sleep
        self.log = log
        self.problems: list[str] = []
        self.progress: list[str] = []
        self._sent: dict[tuple[str, str], Completed] = {}

    # -- read, plan, prove

    def read(self) -> RaidState:
        """Every controller that the tool sees."""
        host = registry.read_host(self.providers.values())
        self.problems = host.problems
        return host

    def plan(self, present: RaidState, wanted: t.Sequence[MaxCacheSpec]) -> list[Step]:
        steps, left_out = maxcache_plan.plan(present, wanted)
        self.problems += [problem for problem in left_out if problem not in self.problems]
        return steps

    def verify(self, present: RaidState, wanted: t.Sequence[MaxCacheSpec]) -> list[Difference]:
        """As planned again, with the command that should have done it as evidence.

        :raises NotEffective: if a controller did not take what it was told.
        :raises NotUnderstood: if the tool does not tell enough to know.
        """
        try:
            differences = super().verify(present, wanted)
        except StorageError as error:
            said = error.message.replace(f" {maxcache_target.NOTHING}", "")
            if isinstance(error, NotUnderstood):
                raise NotUnderstood(f"{self.name}: everything was sent, and what was read back does not prove it: {said}", item=error.item) from error
            raise NotEffective(f"{self.name}: what was read back does not agree with what was set: {said}", item=error.item) from error
        for difference in differences:
            completed = self._sent.get((difference.item, difference.attribute))
            if completed is not None:
                raise NotEffective(
                    f"{self.name}: {difference}, although {completed.command_line} ended with exit status {completed.rc} ({completed.last_words}).",
                    item=difference.item,
                    completed=completed,
                    differences=[vars(one) for one in differences],
                )
        return differences

    def concerns(self, present: RaidState, wanted: t.Sequence[MaxCacheSpec]) -> list[str]:
        return maxcache_plan.concerns(present, wanted) + self.problems

    def facts(self, present: RaidState) -> dict[str, t.Any]:
        controllers = [one.controller.as_result() for one in present.controllers]
        return {"controllers": controllers, "problems": list(self.problems), "progress": list(self.progress)}

    # -- apply

    def apply(self, step: Step) -> None:
        """Send one command, or wait until the cache is clean."""
        provider = self.providers[step.arguments["provider"], step.arguments["tool"]]
        try:
            if step.operation == maxcache_target.WAIT:
                self._wait(provider, step)
                return
            words = step.arguments["words"]
            if step.arguments["must_succeed"]:
                completed = provider.send(words, step.item)
            else:
                completed = provider.runner.run([provider.tool, *words], ok=None, timeout=provider.timeout, item=step.item)
            self._sent[step.item, step.attribute] = completed
        except StorageError as error:
            error.facts.setdefault("progress", list(self.progress))
            raise

    def _wait(self, provider: RaidProvider, step: Step) -> None:
        """Look again and again until the controller says that everything is clean; no deadline but the user's own.

        :raises NotEffective: if write caching is on again.
        :raises NotUnderstood: if the controller does not tell any more.
        :raises TimedOut: after ``flush_timeout``.
        :raises Interrupted: if somebody ends the run.
        """
        try:
            self._wait_for_clean(provider, step)
        except KeyboardInterrupt:
            raise Interrupted(f"{step.item}: the wait for a clean maxCache was interrupted: {_kept(step)}", item=step.item) from None

    def _wait_for_clean(self, provider: RaidProvider, step: Step) -> None:
        started, pause = self.clock(), FIRST_PAUSE
        limit = step.arguments["flush_timeout"]
        while True:
            controller = self._look(provider, step)
            state, writing = maxcache_emptying.flush_state(controller, step.arguments)
            waited = self.clock() - started
            if writing:
                names = ", ".join(writing)
                raise NotEffective(f"{step.item}: write caching of {names} is still on although it was switched off: {_kept(step)}", item=step.item)
            if state == CLEAN:
                self._note(f"{step.item}: clean after {waited:.0f} s")
                return
            if state != DIRTY:
                raise NotUnderstood(f"{step.item}: {controller.called} does not tell any more whether its maxCache is clean: {_kept(step)}", item=step.item)
            self._note(f"{step.item}: still dirty after {waited:.0f} s")
            if limit is not None and waited >= limit:
                raise TimedOut(f"{step.item}: still dirty after flush_timeout ({limit} seconds): {_kept(step)}", item=step.item)
            self.sleep(pause if limit is None else min(pause, limit - waited))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _look(self, provider: RaidProvider, step: Step) -> Controller:
        """The controller now; a reading that fails is repeated.

        :raises StorageError: if it fails several times in a row.
        """
        for attempt in range(1, PATIENCE + 1):
            try:
                return _controller_in(provider, step)
            except StorageError as error:
                self._note(f"{step.item}: look {attempt} of {PATIENCE} failed: {error.message}")
                if attempt == PATIENCE:
                    said = f"{step.item}: {error.message.rstrip('.')}, {PATIENCE} times in a row: {_kept(step)}"
                    raise type(error)(said, item=step.item, completed=error.completed, **error.facts) from error
                self.sleep(FIRST_PAUSE)
        raise NotUnderstood(f"{step.item}: nothing was read: {_kept(step)}", item=step.item)

    def _note(self, line: str) -> None:
        self.progress.append(line)
        if self.log is not None:
            self.log(line)


def _controller_in(provider: RaidProvider, step: Step) -> Controller:
    """
    :raises NotUnderstood: if the output is damaged or the controller is not in it.
    """
    reading = provider.read()
    if not reading.complete:
        what = reading.not_understood[0] if reading.not_understood else "it ends too early"
        raise NotUnderstood(f"the output of {provider.tool} is damaged ({what})", item=step.item)
    if reading.lost:
        raise NotUnderstood(f"{provider.tool} did not tell of everything that is there ({reading.lost[0]})", item=step.item)
    for controller in reading.controllers:
        if controller.id == step.arguments["controller"] and controller.serial == step.arguments["serial"]:
            return controller
    raise NotUnderstood(f"{provider.tool} does not show controller {step.arguments['controller']} any more", item=step.item)


def _kept(step: Step) -> str:
    """What a wait that ended without success leaves behind."""
    volumes = ", ".join(step.arguments["switched_off"].values())
    off = f"write caching was switched off for {volumes}, and " if volumes else ""
    return f"{off}the cache was not taken away. Run again to go on."


def resolve_tools(runner: Runner, wanted: t.Sequence[MaxCacheSpec]) -> tuple[list[RaidProvider], list[MaxCacheSpec]]:
    """The tool of the controllers with maxCache, at every place that the wishes name, and the wishes with the tool that is theirs.

    :raises ToolMissing: if it is not there.
    """
    found: dict[str, RaidProvider] = {}
    resolved = []
    for wish in wanted:
        provider = registry.find_tool(runner, TOOL, wish.tool_path)
        found.setdefault(provider.tool, provider)
        resolved.append(dataclasses.replace(wish, provider=TOOL, tool_path=provider.tool))
    return list(found.values()), resolved


def run_module(module: AnsibleModule) -> t.NoReturn:
    """The body of the module ``raid_maxcache``."""
    try:
        providers, wanted = resolve_tools(Runner(), parse_controllers(module.params["controllers"]))
        layer = RaidMaxCacheLayer(providers, log=module.log)
    except StorageError as error:
        module.fail_json(**error.as_result())
    if not wanted:
        module.exit_json(**layer.facts(RaidState()), **Outcome((), None).as_result())
    run_layer(module, layer, wanted)
