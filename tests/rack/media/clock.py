# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock with processes: the models of drives and controllers run on it, in simulated time or, with another source of the time, in real time.

A process is a generator. It yields seconds to wait for, or a :class:`Signal`.
"""

from __future__ import annotations

import heapq
import typing as t

Process = t.Generator[t.Any, t.Any, t.Any]


class Busy(Exception):
    """A command came while another one changes the same thing."""


class Signal:
    """Processes that wait for something."""

    def __init__(self) -> None:
        self.waiting: list[Process] = []


class Clock:
    """Simulated time in seconds: it passes as fast as the processes can be run."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Process]] = []
        self._count = 0

    def start(self, process: Process) -> None:
        """Run a process until it waits for the first time."""
        self._resume(process)

    def wake(self, signal: Signal) -> None:
        """Continue, in their order, all processes that wait for the signal."""
        waiting, signal.waiting = signal.waiting, []
        for process in waiting:
            self._after(0.0, process)

    def together(self, processes: t.Sequence[Process]) -> Process:
        """Run processes at the same time, and wait for all of them."""
        if len(processes) == 1:
            yield from processes[0]
            return
        left, ended = len(processes), Signal()

        def one(process: Process) -> Process:
            nonlocal left
            yield from process
            left -= 1
            if not left:
                self.wake(ended)

        for process in processes:
            self.start(one(process))
        while left:
            yield ended

    def run(self, until: float = float("inf")) -> None:
        """Let the time pass: to its end, or until nothing is left to do."""
        while self._due and self._due[0][0] <= until:
            # An event that is late is dealt with at its own time: what follows from it does not become later and later.
            self.now, _number, process = heapq.heappop(self._due)
            self._resume(process)

    @property
    def next(self) -> float | None:
        """When something is to be done again."""
        return self._due[0][0] if self._due else None

    def _after(self, seconds: float, process: Process) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now + seconds, self._count, process))

    def _resume(self, process: Process) -> None:
        try:
            wanted = process.send(None)
        except StopIteration:
            return
        if isinstance(wanted, Signal):
            wanted.waiting.append(process)
        else:
            self._after(wanted, process)


class Serial:
    """Something that does one thing at a time, in the order of the requests: a processor, a link, the arm of a disk."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.free = 0.0

    def use(self, seconds: float) -> float:
        """Occupy it; the seconds until that has been done."""
        self.free = max(self.free, self._clock.now) + seconds
        return self.free - self._clock.now
