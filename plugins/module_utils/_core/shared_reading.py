# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was read of a host once, for several layers that read it one after the other before anything is changed.

A :class:`SharingRunner` shares what is read through it; every other runner does not.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

Value = t.TypeVar("Value")


class SharedReading:
    """What was read, by a key that says how.

    :ivar remembering: whether anything is kept; off while something is being changed.
    """

    def __init__(self) -> None:
        self.remembering = True
        self._read: dict[t.Hashable, t.Any] = {}

    def recall(self, key: t.Hashable, read: t.Callable[[], Value]) -> Value:
        """What was read under this key, or is read now; what fails is not kept."""
        if not self.remembering:
            return read()
        if key not in self._read:
            self._read[key] = read()
        return t.cast("Value", self._read[key])

    def knows(self, key: t.Hashable) -> bool:
        """Whether something is kept under this key."""
        return self.remembering and key in self._read

    def forget(self, *, remember: bool = True) -> None:
        """Everything is read anew from now on.

        :param remember: whether what is read from now on is kept.
        """
        self._read.clear()
        self.remembering = remember


class SharingRunner(Runner):
    """A runner through which several layers read one after the other.

    :param shared: what was read so far.
    """

    def __init__(self, shared: SharedReading) -> None:
        super().__init__()
        self.shared = shared


def read_shared(runner: Runner, key: t.Hashable, read: t.Callable[[], Value]) -> Value:
    """What is read through a runner, at most once while it shares."""
    return runner.shared.recall(key, read) if isinstance(runner, SharingRunner) else read()


def was_read(runner: Runner, key: t.Hashable) -> bool:
    """Whether a runner shares what was read under this key."""
    return isinstance(runner, SharingRunner) and runner.shared.knows(key)
