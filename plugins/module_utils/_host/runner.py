# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runner of a call for a whole host: a command that only reads is run once, whichever layers need its output."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import SharedReading, SharingRunner

#: Arguments of :meth:`Runner.run` with which a command does more than print what is there.
_MORE_THAN_READING = ("stdin", "watch", "pass_fds")


class HostRunner(SharingRunner):
    """Runs commands with another runner and shares their output while nothing is being changed.

    :param inner: starts the processes.
    :param shared: what was read so far, shared with other runners of the same call.
    """

    def __init__(self, inner: Runner, shared: SharedReading | None = None) -> None:
        super().__init__(shared or SharedReading())
        self.inner = inner
        self.history = inner.history if hasattr(inner, "history") else []

    def with_folders(self, folders: t.Sequence[str]) -> HostRunner:
        """The same for a layer whose tools are in folders of their own."""
        return HostRunner(Runner(vendor_dirs=folders), self.shared) if folders else self

    def find(self, name: str) -> str:
        return self.shared.recall(("find", name, *self.inner_folders), lambda: self.inner.find(name))

    def has(self, name: str) -> bool:
        return self.shared.recall(("has", name, *self.inner_folders), lambda: self.inner.has(name))

    @property
    def inner_folders(self) -> t.Sequence[str]:
        """Where tools are looked for first."""
        return getattr(self.inner, "vendor_dirs", ())

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **how: t.Any) -> Completed:
        """As :meth:`Runner.run`."""
        if not self.shared.remembering or any(how.get(name) for name in _MORE_THAN_READING):
            return self.inner.run(argv, ok=ok, item=item, **how)
        key = ("run", *map(str, argv), how.get("cwd"), *self.inner_folders)
        known = self.shared.knows(key)
        completed = self.shared.recall(key, lambda: self.inner.run(argv, ok=None, item=item, **how))
        if known:
            # The last entry is taken for the evidence of what was read.
            self.history.append(completed)
        return completed.require(ok, item)
