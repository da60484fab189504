# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runner whose commands are simulated RAID tools, in this process."""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.tests.simulators.simulator import Simulator, State, spoiled


class SimulatedRunner:
    """Answers the paths of simulated tools; everything else is not installed.

    ``states`` has the state of each tool by its name and is changed as the tools change it; ``calls`` every argument list.
    """

    def __init__(self, *kinds: type[Simulator]) -> None:
        self.kinds = {path: kind for kind in kinds for path in kind.paths}
        self.states: dict[str, State] = {kind.name: {"faults": {}, "controllers": []} for kind in kinds}
        self.calls: list[tuple[str, ...]] = []
        self.vendor_dirs: list[str] = []

    def add(self, kind: type[Simulator], model: str, **options: t.Any) -> State:
        """One more controller; returns its state."""
        made = kind.models[model](**options)
        self.states[kind.name]["controllers"].append(made)
        return made

    def snapshot(self) -> dict[str, State]:
        return copy.deepcopy(self.states)

    def find(self, name: str) -> str:
        if name in self.kinds:
            return name
        raise ToolMissing(f"{name} does not exist or cannot be executed on this host.", item=name)

    def has(self, name: str) -> bool:
        return name in self.kinds

    def run(self, argv, *, ok=(0,), timeout=None, stdin="", item=None, watch=None, interval=5.0, patience=2.0, cwd=None):
        words = tuple(str(word) for word in argv)
        self.calls.append(words)
        kind = self.kinds[self.find(words[0])]
        state = self.states[kind.name]
        if state["faults"].get("hang"):
            completed = Completed(words, -15, "", "")
            raise TimedOut(f"{completed.command_line} did not end within {timeout:g} seconds and was stopped.", item=item, completed=completed)
        answer = kind(state).answer(words[1:], stdin)
        stdout = spoiled(answer.stdout.encode(), state["faults"]).decode(errors="replace")
        return Completed(words, answer.rc, stdout, answer.stderr).require(ok, item)
