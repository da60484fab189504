# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What layers have in common that are set by commands of RAID tools: which tools they need, what they send, and what shows who ignored it."""

from __future__ import annotations

import abc
import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import AUTO, ControllerSpec

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider

OneSpec = t.TypeVar("OneSpec", bound=ControllerSpec)


class RaidOperation(Operation):
    """An operation that a tool carries out.

    ``provider`` is the name of the provider, ``tool`` the path of its tool.
    """

    provider: str
    tool: str


@frozen
class SendCommand(RaidOperation):
    """Run one setting command of a tool. Two steps that share a command (one switch for reading and writing) send it once.

    :param words: the arguments of the tool.
    :param must_succeed: whether a refusal ends the run; if not, what is read back decides.
    """

    provider: str
    tool: str
    words: tuple[str, ...]
    must_succeed: bool = True

    def carry_out(self, layer: RaidLayer[t.Any], step: Step) -> None:
        """
        :raises CommandFailed: if the tool refuses a command that must succeed.
        """
        if self not in layer.sent:
            provider = layer.provider_of(self)
            layer.sent[self] = provider.send(self.words, step.item) if self.must_succeed else provider.run(*self.words, item=step.item)
        layer.evidence[step.item, step.attribute] = layer.sent[self]


class RaidLayer(Layer[RaidState, t.Sequence[OneSpec]]):
    """A layer of the RAID controllers of one host.

    :param providers: the tools that the specification needs.
    :param log: takes every line of progress, while it happens.
    """

    #: The only tool that the layer uses.
    only_tool: t.ClassVar[str] = AUTO

    def __init__(
        self,
        runner: Runner,
        spec: t.Sequence[OneSpec],
        providers: t.Sequence[RaidProvider],
        *,
        log: t.Callable[[str], None] | None = None,
        **times: t.Any,
    ) -> None:
        super().__init__(runner, spec, **times)
        self.log = log
        self.progress: list[str] = []
        self.providers = {(provider.name, provider.tool): provider for provider in providers}
        self.sent: dict[SendCommand, Completed] = {}
        self.evidence: dict[tuple[str, str], Completed] = {}

    @classmethod
    def with_tools(cls, runner: Runner, spec: t.Sequence[OneSpec], **options: t.Any) -> RaidLayer[OneSpec]:
        """The layer with the tools that the specification needs.

        :raises ToolMissing: if a named tool is not there.
        """
        providers, resolved = resolve_tools(runner, spec, cls.only_tool)
        return cls(runner, resolved, providers, **options)

    def provider_of(self, operation: RaidOperation) -> RaidProvider:
        return self.providers[operation.provider, operation.tool]

    def read(self) -> RaidState:
        """Every controller that one of the tools reports; an empty specification needs no tool."""
        return registry.read_host(self.providers.values())

    def verify(self, state: RaidState) -> list[Difference]:
        """As planned again, with the command that claimed to have done it as evidence.

        :raises NotEffective: if a controller did not take what was set.
        """
        differences = super().verify(state)
        for difference in differences:
            completed = self.evidence.get((difference.item, difference.attribute))
            if completed is not None:
                raise NotEffective(
                    f"{self.name}: {difference}, although {completed.command_line} ended with exit status {completed.rc}{self.ignored(difference, completed)}.",
                    item=difference.item,
                    completed=completed,
                    differences=[vars(one) for one in differences],
                )
        return differences

    @abc.abstractmethod
    def ignored(self, difference: Difference, completed: Completed) -> str:
        """What is known about a command that had no effect, as the end of a sentence."""

    @abc.abstractmethod
    def left_out(self, state: RaidState) -> list[str]:
        """What is left out of ``all`` because it cannot be set, one sentence each."""

    def problems(self, state: RaidState) -> list[str]:
        """What was not understood, then what is left out of ``all``, one sentence each."""
        return list(dict.fromkeys([*state.problems, *self.left_out(state)]))

    def note(self, line: str) -> None:
        """Keep a line of progress."""
        self.progress.append(line)
        if self.log is not None:
            self.log(line)

    def warn_all(self, sentences: t.Iterable[str]) -> None:
        for sentence in sentences:
            self.warn(sentence)

    def facts(self, state: RaidState) -> dict[str, t.Any]:
        return {"controllers": [one.controller.to_dict() for one in state.controllers], "problems": self.problems(state)}


def resolve_tools(runner: Runner, specs: t.Sequence[OneSpec], only_tool: str = AUTO) -> tuple[list[RaidProvider], list[OneSpec]]:
    """The tools that the specifications need, and the specifications with the path of the tool they name.

    Those that are named, and every one that is there if one entry has ``auto``.

    :param only_tool: the tool of all specifications, whatever they name.
    :raises ToolMissing: if a named tool is not there.
    """
    found: dict[tuple[str, str], RaidProvider] = {}
    resolved: list[OneSpec] = []
    if only_tool == AUTO and any(spec.provider == AUTO for spec in specs):
        found = {(provider.name, provider.tool): provider for provider in registry.find_tools(runner)}
    for spec in specs:
        name = spec.provider if only_tool == AUTO else only_tool
        if name == AUTO:
            resolved.append(spec)
            continue
        provider = registry.find_tool(runner, name, spec.tool_path)
        found.setdefault((provider.name, provider.tool), provider)
        resolved.append(dataclasses.replace(spec, provider=name, tool_path=provider.tool))
    return list(found.values()), resolved
