# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of SSD caches inside controllers: as that of controller caches, and waiting until a cache is clean."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import functools
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, NotUnderstood, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import CLEAN, DIRTY
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import caches as maxcache_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import plan as maxcache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.caches import SendMaxCacheCommand, WaitForClean
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import MaxCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider

#: The only tool that manages controllers with maxCache.
TOOL = "arcconf"
#: Seconds between two polls of a flush, at first and at most: it takes seconds or hours, and each poll is a whole reading.
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
#: Consecutive polls that may fail before the wait is given up: a busy controller answers late, and outputs are cut.
PATIENCE = 3


class Interrupted(StorageError):
    """The run was ended while it waited."""

    kind = "interrupted"


class RaidMaxCacheLayer(Layer[RaidState, t.Sequence[MaxCacheSpec]]):
    """The SSD caches inside the controllers of one host.

    :param providers: the tools that the specification needs.
    :param log: takes every line of progress, while it happens.
    """

    name = maxcache_caches.LAYER

    def __init__(
        self,
        runner: Runner,
        spec: t.Sequence[MaxCacheSpec],
        providers: t.Sequence[RaidProvider],
        *,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
        log: t.Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(runner, spec, clock=clock, sleep=sleep)
        self.providers = {(provider.name, provider.tool): provider for provider in providers}
        self.log = log
        self.progress: list[str] = []
        self._sent: dict[tuple[str, str], Completed] = {}

    @classmethod
    def with_tools(cls, runner: Runner, spec: t.Sequence[MaxCacheSpec], log: t.Callable[[str], None] | None = None) -> RaidMaxCacheLayer:
        """The layer with the tools that the specification needs.

        :raises ToolMissing: if one of them is not there.
        """
        providers, resolved = resolve_tools(runner, spec)
        return cls(runner, resolved, providers, log=log)

    # -- read, plan, prove

    def read(self) -> RaidState:
        """Every controller that the tool reports; an empty specification needs no tool."""
        return registry.read_host(self.providers.values())

    def plan(self, state: RaidState) -> list[Step]:
        """See :func:`maxcache_plan.plan`.

        :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
        """
        return maxcache_plan.plan(state, self.spec)[0]

    def verify(self, state: RaidState) -> list[Difference]:
        """As planned again, with the command that should have done it as evidence.

        :raises NotEffective: if a controller did not take what was set.
        :raises NotUnderstood: if the tool does not report enough.
        """
        try:
            differences = super().verify(state)
        except StorageError as error:
            text = error.message.replace(f" {maxcache_caches.NOTHING}", "")
            if isinstance(error, NotUnderstood):
                raise NotUnderstood(f"{self.name}: everything was sent, and what was read back does not prove it: {text}", item=error.item) from error
            raise NotEffective(f"{self.name}: what was read back does not agree with what was set: {text}", item=error.item) from error
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

    def check_settled(self, state: RaidState) -> None:
        """Degraded cache volumes, and settings that are stored and not in effect."""
        for sentence in (*maxcache_plan.warnings(state, self.spec), *self._problems(state)):
            self.warn(sentence)

    def _problems(self, state: RaidState) -> list[str]:
        """What was not understood, then what is left out of ``all``, one sentence each."""
        problems = state.problems
        return problems + [sentence for sentence in maxcache_plan.plan(state, self.spec)[1] if sentence not in problems]

    def facts(self, state: RaidState) -> dict[str, t.Any]:
        controllers = [one.controller.to_dict() for one in state.controllers]
        return {"controllers": controllers, "problems": self._problems(state), "progress": list(self.progress)}

    # -- apply

    def apply(self, step: Step) -> None:
        """Carry one step out; an error has the progress so far in its facts."""
        try:
            super().apply(step)
        except StorageError as error:
            error.facts.setdefault("progress", list(self.progress))
            raise

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """:raises StorageError: if a command that must succeed does not, or the wait ends without success."""
        raise TypeError(operation)

    @carry_out.register
    def _send(self, operation: SendMaxCacheCommand, step: Step) -> None:
        provider = self.providers[operation.provider, operation.tool]
        if operation.must_succeed:
            completed = provider.send(operation.words, step.item)
        else:
            completed = provider.runner.run([provider.tool, *operation.words], ok=None, timeout=provider.timeout, item=step.item)
        self._sent[step.item, step.attribute] = completed

    @carry_out.register
    def _wait(self, operation: WaitForClean, step: Step) -> None:
        """Poll until the controller reports that everything is clean; no deadline but the user's own.

        :raises NotEffective: if write caching is on again.
        :raises NotUnderstood: if the controller does not report it any more.
        :raises TimedOut: after ``flush_timeout``.
        :raises Interrupted: if the run is interrupted.
        """
        try:
            self._wait_for_clean(operation, step.item)
        except KeyboardInterrupt:
            raise Interrupted(f"{step.item}: the wait for a clean maxCache was interrupted: {_kept(operation)}", item=step.item) from None

    def _wait_for_clean(self, operation: WaitForClean, item: str) -> None:
        started, pause = self.clock(), FIRST_PAUSE
        limit = operation.flush_timeout
        while True:
            controller = self._read_controller(operation, item)
            state, writing = maxcache_caches.flush_state(controller, operation)
            waited = self.clock() - started
            if writing:
                names = ", ".join(writing)
                raise NotEffective(f"{item}: write caching of {names} is still enabled although it was disabled: {_kept(operation)}", item=item)
            if state == CLEAN:
                self._note(f"{item}: clean after {waited:.0f} s")
                return
            if state != DIRTY:
                raise NotUnderstood(f"{item}: {controller.label} does not report any more whether its maxCache is clean: {_kept(operation)}", item=item)
            self._note(f"{item}: still dirty after {waited:.0f} s")
            if limit is not None and waited >= limit:
                raise TimedOut(f"{item}: still dirty after flush_timeout ({limit} seconds): {_kept(operation)}", item=item)
            self.sleep(pause if limit is None else min(pause, limit - waited))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _read_controller(self, operation: WaitForClean, item: str) -> Controller:
        """The controller now; a reading that fails is repeated.

        :raises StorageError: if it fails several times in a row.
        """
        provider = self.providers[operation.provider, operation.tool]
        for attempt in range(1, PATIENCE + 1):
            try:
                return _controller_in(provider, operation, item)
            except StorageError as error:
                self._note(f"{item}: reading {attempt} of {PATIENCE} failed: {error.message}")
                if attempt == PATIENCE:
                    text = f"{item}: {error.message.rstrip('.')}, {PATIENCE} times in a row: {_kept(operation)}"
                    raise type(error)(text, item=item, completed=error.completed, **error.facts) from error
                self.sleep(FIRST_PAUSE)
        raise NotUnderstood(f"{item}: nothing was read: {_kept(operation)}", item=item)

    def _note(self, line: str) -> None:
        self.progress.append(line)
        if self.log is not None:
            self.log(line)


def _controller_in(provider: RaidProvider, operation: WaitForClean, item: str) -> Controller:
    """
    :raises NotUnderstood: if the output is damaged or the controller is not in it.
    """
    reading = provider.read()
    if not reading.complete:
        what = reading.not_understood[0] if reading.not_understood else "it ends too early"
        raise NotUnderstood(f"the output of {provider.tool} is damaged ({what})", item=item)
    lost = reading.lost_for(operation.controller)
    if lost:
        raise NotUnderstood(f"{provider.tool} did not report everything ({lost[0]})", item=item)
    for controller in reading.controllers:
        if controller.id == operation.controller and controller.serial == operation.serial:
            return controller
    raise NotUnderstood(f"{provider.tool} does not show controller {operation.controller} any more", item=item)


def _kept(operation: WaitForClean) -> str:
    """What a wait that ended without success leaves behind."""
    volumes = ", ".join(operation.switched_off.values())
    off = f"write caching was disabled for {volumes}, and " if volumes else ""
    return f"{off}the cache was not removed. Run again to continue."


def resolve_tools(runner: Runner, specs: t.Sequence[MaxCacheSpec]) -> tuple[list[RaidProvider], list[MaxCacheSpec]]:
    """The tool of the controllers with maxCache, at every path that the specifications name, and the specifications with their tool.

    :raises ToolMissing: if it is not there.
    """
    found: dict[str, RaidProvider] = {}
    resolved = []
    for spec in specs:
        provider = registry.find_tool(runner, TOOL, spec.tool_path)
        found.setdefault(provider.tool, provider)
        resolved.append(dataclasses.replace(spec, provider=TOOL, tool_path=provider.tool))
    return list(found.values()), resolved
