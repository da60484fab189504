# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an MTU after the next boot is made of, in words of no tool.

A provider answers two questions: does it manage an interface, and what must change in its files (or be set through it) so that the
interface has another MTU at boot. Both answers are plain data, so that a plan can be made of them, shown as a difference, and
undone by a process that does not depend on providers (:mod:`rollback_program`).
"""

from __future__ import annotations

import abc
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links


#: In the details of a place: no tool configures the interface.
UNMANAGED = "unmanaged"


@frozen
class MtuSource:
    """Where the MTU of one interface comes from at boot.

    :param provider: the name in the registry.
    :param interface: its name.
    :param mtu: what is set there; ``None`` if nothing is.
    :param details: what the provider needs to change it; plain data.
    :param concern: the warning about it; empty if nothing.
    :param obstacle: why it cannot be set there, and what to do; empty if it can.
    """

    provider: str
    interface: str
    mtu: int | None
    details: t.Mapping[str, t.Any] = field(default_factory=dict)
    concern: str = ""
    obstacle: str = ""

    @property
    def where(self) -> str:
        """The file or profile, for display."""
        return str(self.details.get("where", ""))


@frozen
class BootChange:
    """How a boot state is changed and changed back; plain data.

    :param files: ``{path, before, after, mode}``: whole texts, empty where there is no such file.
    :param commands: argument lists that are run after the files are written; the first that fails is a failure of the whole.
    :param undo: argument lists that are run after the files have their text of before again.
    """

    files: tuple[t.Mapping[str, t.Any], ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    undo: tuple[tuple[str, ...], ...] = ()

    def as_data(self) -> dict[str, t.Any]:
        """For the arguments of a step and for the journal."""
        return {"files": [dict(file) for file in self.files], "commands": [list(argv) for argv in self.commands], "undo": [list(argv) for argv in self.undo]}


def file_change(path: str, before: str, after: str, mode: int = 0o644) -> dict[str, t.Any]:
    """One entry of :attr:`BootChange.files`."""
    return {"path": path, "before": before, "after": after, "mode": mode}


class BootProvider(abc.ABC):
    """One tool that configures interfaces at boot.

    :param links: every interface of the host; what a file matches depends on all of them.
    """

    #: As users write it.
    name: str
    #: For display.
    title: str

    def __init__(self, runner: Runner, links: Links, root: Path = Path("/")) -> None:
        self.runner = runner
        self.links = links
        self.root = root

    @abc.abstractmethod
    def places(self, requested: t.Sequence[Link], *, insist: bool = False) -> dict[str, MtuSource]:
        """The interfaces among ``requested`` that this tool manages.

        :param insist: the user has named this provider; what it does not manage yet may get a place all the same.
        """

    @abc.abstractmethod
    def change(self, place: MtuSource, mtu: int) -> BootChange:
        """What sets another MTU; pure."""
