# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for the runner of commands that answers from a script and remembers what it was asked."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import package_advice
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed


@dataclass(frozen=True)
class Reply:
    stdout: str = ""
    rc: int = 0
    stderr: str = ""


class ScriptedRunner:
    """Answers a command with the reply whose words it begins with; the longest such beginning wins.

    A list of replies is given out one by one; its last one is repeated. A callable is called with the argument list.
    """

    def __init__(self, replies: t.Mapping[tuple[str, ...], t.Any], missing: t.Container[str] = ()) -> None:
        self.replies = {words: list(reply) if isinstance(reply, list) else reply for words, reply in replies.items()}
        self.missing = missing
        self.calls: list[tuple[str, ...]] = []
        self.history: list[Completed] = []

    def find(self, name: str) -> str:
        if name in self.missing:
            raise ToolMissing(f"The command {name} is missing on this host: {package_advice(name)}.", item=name)
        return name

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(
        self,
        argv: t.Sequence[str],
        *,
        ok: t.Container[int] | None = (0,),
        timeout: float | None = None,
        stdin: str = "",
        item: str | None = None,
        watch: t.Callable[[], None] | None = None,
        interval: float = 5.0,
        patience: float = 2.0,
        cwd: str | None = None,
        pass_fds: t.Sequence[int] = (),
    ) -> Completed:
        self.find(argv[0])
        words = tuple(str(word) for word in argv)
        self.calls.append(words)
        if watch is not None:
            watch()
        known = [beginning for beginning in self.replies if words[: len(beginning)] == beginning]
        assert known, f"the script has no reply for {words}"
        reply = self.replies[max(known, key=len)]
        if callable(reply):
            reply = reply(words)
        elif isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        completed = Completed(words, reply.rc, reply.stdout, reply.stderr)
        self.history.append(completed)
        return completed.require(ok, item)
