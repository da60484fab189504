# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tools there are, which of them are on this host, and which controllers they see."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS, Tool, are_of_one_family

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider


@frozen
class Source:
    """One tool and what it reported.

    :param failure: why it reported nothing, a sentence; empty if it ran.
    :param evidence: the last command of the reading.
    """

    provider: RaidProvider
    reading: Reading
    failure: str = ""
    evidence: Completed | None = None

    @property
    def controllers(self) -> list[Seen]:
        """Every controller that this tool reports."""
        return [Seen(controller, self) for controller in self.reading.controllers]

    @property
    def problems(self) -> list[str]:
        """What is wrong with its answer, one sentence each."""
        if self.failure:
            return [self.failure]
        found = [f"{self.provider.name}: could not be parsed: {text}." for text in self.reading.not_understood]
        return found or ([] if self.reading.complete else [f"{self.provider.name}: its output is not whole."])


@frozen
class Seen:
    """A controller and the tool through which it is managed."""

    controller: Controller
    source: Source


@frozen
class RaidState:
    """What all tools of one host reported; ``controllers`` has each controller once."""

    sources: tuple[Source, ...] = ()
    controllers: tuple[Seen, ...] = ()

    @property
    def problems(self) -> list[str]:
        """What is wrong with the answers, one sentence each."""
        return [problem for source in self.sources for problem in source.problems]


def find_tool(runner: Runner, name: str, tool_path: str | None = None) -> RaidProvider:
    """The provider of one tool.

    :raises ToolMissing: naming the folders that were searched.
    """
    tool = TOOLS[name]
    place = runner.find(tool_path) if tool_path else next(iter(_places(runner, tool)), None)
    if place is not None:
        return tool.provider()(runner, place)
    raise ToolMissing(
        f"The tool {tool.commands[0]} is missing on this host: it is proprietary and comes from the vendor of the controller. "
        f"It was searched for in PATH and in {', '.join(tool.folders)}; set tool_path if it is elsewhere.",
        item=name,
    )


def find_tools(runner: Runner, paths: t.Mapping[str, str] | None = None) -> list[RaidProvider]:
    """Every tool that is on this host.

    :param paths: of tools that are elsewhere, by provider.
    :raises ToolMissing: if one of these is not there.
    """
    given = paths or {}
    return [
        find_tool(runner, name, given[name]) if name in given else tool.provider()(runner, place)
        for name, tool in TOOLS.items()
        for place in ([given[name]] if name in given else _places(runner, tool)[:1])
    ]


def tools_for(drivers: t.Collection[str | None], providers: t.Iterable[RaidProvider]) -> list[RaidProvider]:
    """The tools that can manage a controller with one of these kernel drivers; one whose drivers are not known may."""
    return [one for one in providers if one.name not in TOOLS or any(driver in TOOLS[one.name].drivers for driver in drivers)]


def _places(runner: Runner, tool: Tool) -> list[str]:
    """Where a tool is: PATH first, since a tool that was put there on purpose must win, then the folders of vendors."""
    found = [runner.find(command) for command in tool.commands if runner.has(command)]
    inside = (os.path.join(folder, command) for folder in tool.folders for command in tool.commands)
    return found + [path for path in inside if runner.has(path)]


def read_host(providers: t.Iterable[RaidProvider], *, tolerant: bool = False) -> RaidState:
    """What every tool reports, each run once; a controller that two tools report counts for the first.

    :param tolerant: whether a tool that cannot be run or does not end counts as one without a report.
    :raises StorageError: for such a tool otherwise.
    """
    sources = tuple(_ask(provider, tolerant) for provider in providers)
    seen: list[Seen] = []
    for source in sources:
        seen += [one for one in source.controllers if not any(is_twin(one.controller, other.controller) for other in seen)]
    return RaidState(sources, tuple(seen))


def _ask(provider: RaidProvider, tolerant: bool) -> Source:
    try:
        return Source(provider, provider.read(), evidence=provider.last)
    except StorageError as error:
        if not tolerant:
            raise
        return Source(provider, Reading(complete=False), error.message)


def is_twin(one: Controller, other: Controller) -> bool:
    """Whether two tools report one controller."""
    if not are_of_one_family(one.provider, other.provider):
        return False
    if one.serial and other.serial:
        return one.serial == other.serial
    if one.pci_address and other.pci_address:
        return one.pci_address == other.pci_address
    return one.id == other.id and TOOLS[one.provider].rebranded
