# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with its cache, and volumes that share it. A port of the board is one without a cache."""

from __future__ import annotations

import typing as t

from .array import Array
from .clock import Busy, Clock, Process, Serial, Signal
from .drive import Commit, Drive
from .max_cache import MaxCache
from .rows import BLOCK, ControllerRow

_SECOND = 1e-6
WRITE_THROUGH, WRITE_BACK, WRITE_BACK_ALWAYS = "writethrough", "writeback", "writeback_always"
POLICIES = (WRITE_THROUGH, WRITE_BACK, WRITE_BACK_ALWAYS)
HEALTHY = "healthy"
#: Neighbouring blocks in the cache that leave it together; assumed: 32 KiB.
SEQUENCE = 8
BATTERIES = (HEALTHY, "charging", "failed", "missing")


class Controller:
    """What volumes share: processor, link, cache and its protection.

    :param keeper: what keeps the cache in a power cut, as ``store.CacheModule`` does.
    """

    def __init__(self, clock: Clock, row: ControllerRow, keeper: t.Any = None) -> None:
        self.clock, self.row = clock, row
        self.battery = HEALTHY if row.protection != "none" else "missing"
        self.volumes: dict[str, Volume] = {}
        self.keeper = keeper
        self.used, self.room = 0, Signal()
        self.capacity = int(row.cache_bytes) // BLOCK
        self._processor, self._link = Serial(clock), Serial(clock)

    @property
    def protected(self) -> bool:
        """Whether the contents of the cache survive a power cut now."""
        return self.row.protection != "none" and self.battery == HEALTHY

    def set_battery(self, state: str) -> None:
        """The battery changes by itself: what depends on it writes through from now on, and the cache is written out."""
        if state not in BATTERIES:
            raise ValueError(f"battery must be one of {', '.join(BATTERIES)}")
        self.battery = state
        if not self.protected and self.keeper is not None:
            self.keeper.lose()
        for volume in self.volumes.values():
            volume.destage()

    def command(self, _drive: Drive | None, blocks: int) -> Process:
        """A command to a drive, or one from the host that the cache answers, with its data on the link."""
        delay = self._processor.use(self.row.command_us * _SECOND)
        if self.row.link_rate:
            delay = max(delay, self._link.use(blocks * BLOCK / self.row.link_rate))
        yield delay


class Volume:
    """What the host sees as a disk.

    :param level: ``jbod`` has the drive of the host to itself: no cache of the controller, no policy.
    """

    def __init__(self, controller: Controller, name: str, level: str, drives: t.Sequence[Drive], *, policy: str = WRITE_THROUGH) -> None:
        self.controller, self.name, self.level = controller, name, level
        self.policy, self.read_ahead, self.changing = policy, False, False
        self.array = Array(controller.clock, level, drives, controller.command)
        self.max_cache: MaxCache | None = None
        self._clock = controller.clock
        #: Blocks in the cache of the controller, oldest first, with what makes each durable; and those on their way to a drive.
        self._dirty: dict[int, Commit] = {}
        self._moving: dict[int, int] = {}
        self._destaging, self._written_out = 0, Signal()
        self._busy, self._freed = 0, Signal()
        self._ahead = range(0)
        self._next_read = -1
        controller.volumes[name] = self

    @property
    def mode(self) -> str:
        """The mode in force, by the state of the battery: ``write_through``, ``write_back`` or ``pass_through``."""
        if self.level == "jbod":
            return "pass_through"
        wanted = self.policy == WRITE_BACK_ALWAYS or (self.policy == WRITE_BACK and self.controller.protected)
        return "write_back" if wanted and self.controller.capacity else "write_through"

    @property
    def needs_flush(self) -> bool:
        """Whether the host sends flushes: not to what reports no write cache."""
        return self._flush() == "passes" and (self.mode == "write_back" or any(drive.write_cache for drive in self.array.drives))

    @property
    def dirty_blocks(self) -> int:
        return len(self._dirty) + len(self._moving)

    def _flush(self) -> str:
        return str(getattr(self.controller.row, f"flush_{self.mode}"))

    def read(self, block: int, count: int = 1) -> Process:
        yield from self._enter()
        if self._is_cached(block, count):
            yield from self.controller.command(None, count)
        else:
            ahead = 0
            if self.read_ahead and block == self._next_read and self.mode != "pass_through":
                ahead = int(self.controller.row.read_ahead) // BLOCK
                self._ahead = range(block, block + count + ahead)
            yield from self._below.read(block, count + ahead)
        self._next_read = block + count
        self._leave()

    def write(self, block: int, commits: t.Sequence[Commit] = (None,), *, forced: bool = False) -> Process:
        """Write blocks; it ends when the host has its answer.

        :param forced: on the medium (FUA), for a drive without a volume.
        """
        yield from self._enter()
        row, mode = self.controller.row, self.mode
        if mode == "write_back":
            yield from self.controller.command(None, len(commits))
            yield from self._cache(block, commits)
        else:
            for number in range(len(commits)):
                self._drop(block + number)
            if mode == "write_through":
                yield from self._below.write(block, commits, forced=row.forces_write_through)
            else:
                # The host has disabled the cache of the drive: QEMU forces each of its writes then.
                yield from self._below.write(block, commits, cache_off=forced)
        self._leave()

    def flush(self) -> Process:
        """What becomes of a flush is said by the row of the controller."""
        if self._flush() == "passes":
            yield from self._enter()
            yield from self.controller.command(None, 0)
            yield from self.write_out()
            yield from self.array.flush()
            self._leave()

    def restore(self, block: int, commit: Commit) -> None:
        """A block that the cache has kept in a power cut."""
        self.controller.used += block not in self._dirty
        self._dirty[block] = commit
        self.destage()

    def write_out(self) -> Process:
        """Write out what is in the cache of the controller."""
        self.destage()
        while self.dirty_blocks:
            yield self._written_out

    def destage(self) -> None:
        """Begin to write out: as many blocks at a time as the row says for each drive."""
        while self._dirty and self._destaging < self.controller.row.destage_depth * len(self.array.drives):
            self._destaging += 1
            self._clock.start(self._destage())

    def change(self, **settings: t.Any) -> Process:
        """Change settings: the write policy, ``read_ahead``. It ends when the change is complete.

        :raises Busy: if another change is going on.
        """
        if self.changing:
            raise Busy
        policy = settings.get("write", self.policy)
        if policy not in POLICIES:
            raise ValueError(f"write must be one of {', '.join(POLICIES)}")
        if self.level == "jbod":
            raise ValueError(f"{self.name} is a drive without a volume")
        return self._change(policy, bool(settings.get("read_ahead", self.read_ahead)))

    def _change(self, policy: str, read_ahead: bool) -> Process:
        self.changing = True
        before, self.policy = self.policy, policy
        if before != policy:
            yield from self.write_out()
        self.read_ahead = read_ahead
        self.changing = False

    @property
    def _below(self) -> Array | MaxCache:
        return self.max_cache or self.array

    def _enter(self) -> Process:
        depth = self.controller.row.depth
        while depth and self._busy >= depth:
            yield self._freed
        self._busy += 1

    def _leave(self) -> None:
        self._busy -= 1
        if self._freed.waiting:
            self._clock.wake(self._freed)

    def _is_cached(self, block: int, count: int) -> bool:
        blocks = range(block, block + count)
        if self._ahead and block in self._ahead and block + count <= self._ahead.stop:
            return True
        return all(number in self._dirty or number in self._moving for number in blocks)

    def _cache(self, block: int, commits: t.Sequence[Commit]) -> Process:
        # Room for all of them at once, so that what belongs together leaves together.
        while self.controller.used and self.controller.used + len(commits) > self.controller.capacity:
            self.destage()
            yield self.controller.room
        for number, commit in enumerate(commits, block):
            self.controller.used += number not in self._dirty
            self._dirty[number] = commit
            if self.controller.keeper is not None and self.controller.protected and commit is not None:
                self.controller.keeper.keep(self.name, number, commit.data)
        self.destage()

    def _drop(self, block: int) -> None:
        """A newer version goes past the cache."""
        if block in self._dirty:
            del self._dirty[block]
            self._free(block)

    def _free(self, block: int) -> None:
        self.controller.used -= 1
        if self.controller.keeper is not None and block not in self._dirty:
            self.controller.keeper.release(self.name, block)
        self._clock.wake(self.controller.room)

    def _run(self) -> tuple[int, list[Commit]]:
        """The oldest block; with its neighbours in the same row of stripes, if there are so many that the host writes in sequence."""
        block = next(iter(self._dirty))
        start = block // self.array.row_blocks * self.array.row_blocks
        end = start + self.array.row_blocks
        first = last = block
        while first > start and first - 1 in self._dirty:
            first -= 1
        while last + 1 < end and last + 1 in self._dirty:
            last += 1
        if last - first + 1 < SEQUENCE:
            return block, [self._dirty.pop(block)]
        return first, [self._dirty.pop(number) for number in range(first, last + 1)]

    def _destage(self) -> Process:
        while self._dirty:
            first, commits = self._run()
            blocks = range(first, first + len(commits))
            for number in blocks:
                self._moving[number] = self._moving.get(number, 0) + 1
            yield from self._below.write(first, commits)
            for number in blocks:
                self._moving[number] -= 1
                if not self._moving[number]:
                    del self._moving[number]
                self._free(number)
        self._destaging -= 1
        if not self.dirty_blocks:
            self._clock.wake(self._written_out)
