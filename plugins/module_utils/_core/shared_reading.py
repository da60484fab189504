# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was read of a host once, for several layers that read it one after the other before anything is changed.

A runner with an attribute ``shared`` of the type :class:`SharedReading` shares what is read through it; every other runner does not.
"""

from __future__ import annotations

import typing as t

Value = t.TypeVar("Value")
Mapping = t.Mapping[str, t.Any]
#: The kind of thing under which caches that are removed are expected.
REMOVED_CACHES = "removed_caches"


class SharedReading:
    """What was read, by a key that says how.

    :ivar remembering: whether anything is kept; off while something is being changed.
    :ivar expected: what steps that are planned and precede the reader will have changed, by the kind of thing.
    """

    def __init__(self) -> None:
        self.remembering = True
        self.expected: dict[str, dict[str, t.Any]] = {}
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


def read_shared(runner: t.Any, key: t.Hashable, read: t.Callable[[], Value]) -> Value:
    """What is read through a runner, at most once while it shares."""
    shared = getattr(runner, "shared", None)
    return shared.recall(key, read) if isinstance(shared, SharedReading) else read()


def was_read(runner: t.Any, key: t.Hashable) -> bool:
    """Whether a runner shares what was read under this key."""
    shared = getattr(runner, "shared", None)
    return isinstance(shared, SharedReading) and shared.knows(key)


class NothingLeaves:
    """Stands for ``_blockcache.leaving.Leaving`` where no cache is removed before the reader gets its turn, in calls that do not carry its code."""

    caches = gone = emptied = origins = frozenset()

    def without(self, devices: t.Any) -> t.Any:
        return devices

    def rest(self, _kind: str, found: Mapping) -> dict[str, t.Any]:
        return dict(found)


def expected_leaving(runner: t.Any) -> t.Any:
    """The caches that go before a reader gets its turn."""
    return expected_of(runner, REMOVED_CACHES).get("all") or NothingLeaves()


def expected_of(runner: t.Any, kind: str) -> Mapping:
    """What planned steps will have changed, by name; empty for a runner that shares nothing."""
    shared = getattr(runner, "shared", None)
    return shared.expected.get(kind, {}) if isinstance(shared, SharedReading) else {}
