# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Barriers: where hosts wait for each other. The controller writes ``release-<segment>.json`` with the instant at which all begin."""

from __future__ import annotations

import contextlib
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter

#: Of a release, which is polled.
_RELEASE = json_text.Limits(size=16 * 1024, depth=4, values=100, containers=10)

#: Seconds between two checks for a release.
_LOOK = 0.1

#: Who was left alone at the barrier before waits half as long at the next one, but so many seconds at least: a controller that was killed
#: must not cost the whole patience at every barrier, and one that comes back finds a runner that listens.
_LEAST = 60.0


@frozen
class BarrierResult:
    """How a barrier was passed.

    :param start: the instant of the segment, in seconds of the host's clock since the epoch.
    :param clock: ``offset`` (this host's clock minus the controller's) and ``error``, in seconds, as the controller found them.
    """

    start: float = 0.0
    synchronised: bool = False
    alone: bool = False
    clock: t.Mapping[str, t.Any] | None = None
    notes: tuple[str, ...] = ()


def release_file(home: Path, segment: int) -> Path:
    return home / f"release-{segment}.json"


def forget_releases(home: Path) -> None:
    """Those of an earlier runner name instants that have passed."""
    for old in home.glob("release-*.json"):
        with contextlib.suppress(FileNotFoundError):
            old.unlink()


def read_release(home: Path, segment: int) -> dict[str, t.Any] | None:
    """What the controller wrote; ``None`` if it has not yet, or if that is no release."""
    try:
        found = json_text.read_json(release_file(home, segment), _RELEASE)
        start = float(found["start"])
    except (ValueError, KeyError, TypeError, StorageError):
        return None
    return {"start": start, "clock": found.get("clock") if isinstance(found.get("clock"), dict) else None}


class Barriers:
    """The barriers of one runner.

    :param patience: seconds after which it goes on alone; less after barriers that were not released.
    """

    def __init__(self, home: Path, clock: t.Callable[[], float], waiter: Waiter, patience: float) -> None:
        self.home = home
        self.clock = clock
        self.waiter = waiter
        self.patience = patience
        self._left_alone = 0

    @property
    def patience_now(self) -> float:
        """Seconds that the next barrier is waited at."""
        return min(self.patience, max(self.patience / 2**self._left_alone, _LEAST))

    def wait(self, segment: int) -> BarrierResult:
        """Until it is released, the patience is over, or the process receives a stop signal."""
        patience = self.patience_now
        ends = time.monotonic() + patience
        while not self.waiter.stopping:
            release = read_release(self.home, segment)
            if release is not None:
                self._left_alone = 0
                return self._released(segment, release)
            if time.monotonic() >= ends:
                self._left_alone += 1
                return self._alone(f"The barrier {segment} was not released within {patience:g} seconds, so this host continued alone.")
            self.waiter.wait(_LOOK)
        return BarrierResult(start=self.clock(), alone=True, notes=("The runner was stopped.",))

    def _released(self, segment: int, release: t.Mapping[str, t.Any]) -> BarrierResult:
        ahead = release["start"] - self.clock()
        if ahead > max(self.patience, 60.0):
            return self._alone(f"The barrier {segment} was released for a time {ahead:.0f} seconds ahead, so this host continued alone: check its clock.")
        return BarrierResult(release["start"], True, False, release["clock"])

    def _alone(self, note: str) -> BarrierResult:
        return BarrierResult(start=self.clock(), alone=True, notes=(note,))
