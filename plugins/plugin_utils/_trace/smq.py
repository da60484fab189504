# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""dm-cache with the policy smq on a sampled load. Source: drivers/md/dm-cache-policy-smq.c and dm-cache-target.c of Linux, from 4.12 on."""

from __future__ import annotations

import dataclasses
import typing as t
from collections import OrderedDict, deque

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome, chunks, scaled

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load

np = Library("numpy", "Reading traces")

#: NR_CACHE_LEVELS and NR_HOTSPOT_LEVELS; accesses from this level on are hits of the hotspot queue (stats_init).
_LEVELS = 64
_HIT_LEVEL = _LEVELS * 3 // 4
#: The top levels of the hotspot queue, which have fewer entries (__smq_create).
_TOP_LEVELS = 8
#: Fewer accesses of a sample say nothing about the queue.
_LEAST_ACCESSES = 32


@dataclasses.dataclass(frozen=True)
class SmqSettings:
    """Constants of the policy, which has no options.

    :param hotspot_period: seconds (HOTSPOT_UPDATE_PERIOD, COMMIT_PERIOD); ``cache_period`` (CACHE_UPDATE_PERIOD).
    :param migration: seconds until a promoted block can be used. It depends on the origin, and a trace does not show it.
    :param idle: seconds without requests after which everything is written back (spare_migration_bandwidth). ``migration_threshold`` limits how much of that is
        on its way at once; promotions are not limited by it.
    """

    hotspot_period: float = 1
    cache_period: float = 60
    migration: float = 0.02
    idle: float = 1


class _Queue:
    """Levels of entries, the oldest of each first (struct queue)."""

    def __init__(self, levels: list[int], top: int = 0) -> None:
        self._levels = levels
        self._top = top
        self.rows: list[OrderedDict[int, None]] = [OrderedDict() for _level in range(_LEVELS)]
        self.count = 0

    def push(self, entry: int, level: int) -> None:
        self._levels[entry] = level
        self.rows[level][entry] = None
        self.count += 1

    def remove(self, entry: int) -> None:
        del self.rows[self._levels[entry]][entry]
        self.count -= 1

    def oldest(self, levels: int = _LEVELS) -> int | None:
        """The oldest of the lowest level that has some (q_peek)."""
        return next((next(iter(row)) for row in self.rows[:levels] if row), None)

    def used(self, entry: int, jump: int) -> None:
        """An entry goes up, and the oldest of its new level takes its place (q_requeue)."""
        level = self._levels[entry]
        old = self.rows[level]
        if jump and level < _LEVELS - 1:
            level = min(level + jump, _LEVELS - 1)
            if row := self.rows[level]:
                other = row.popitem(last=False)[0]
                old[other] = None
                self._levels[other] = self._levels[entry]
            self._levels[entry] = level
        del old[entry]
        self.rows[level][entry] = None

    def spread(self) -> None:
        """Levels get equally many entries, but for the top ones (q_redistribute)."""
        levels = _LEVELS - _TOP_LEVELS if self._top else _LEVELS
        each, rest = divmod(max(self.count - self._top, 0), levels)
        above, more = divmod(self._top, _TOP_LEVELS)
        for level in range(_LEVELS - 1):
            row = self.rows[level]
            target = each + (level < rest) if level < levels else above + (level - levels < more)
            while len(row) < target and (upper := next((one for one in self.rows[level + 1 :] if one), None)):
                self._move(upper.popitem(last=False)[0], level)
            while len(row) > target:
                self._move(row.popitem()[0], level + 1)

    def _move(self, entry: int, level: int) -> None:
        self._levels[entry] = level
        self.rows[level][entry] = None


class _Hotspots:
    """Which larger blocks are missed often (update_hotspot_queue), and from which level on their blocks are promoted."""

    def __init__(self, entries: int, distinct: int, top: int, least: int) -> None:
        self._free = entries
        self._levels = [-1] * distinct
        self._queue = _Queue(self._levels, top)
        self._least = least
        #: Those that have risen since a bio was completed (hotspot_hit_bits, which smq_tick clears).
        self.raised: set[int] = set()
        self._jump, self._hits, self._misses = 1, 0, 0
        self.promoted_from = _HIT_LEVEL

    def missed(self, entry: int) -> int:
        """Note a miss, and return the level, which goes up once while the parts of a request, one for each block, are on their way."""
        level = self._levels[entry]
        if level >= _HIT_LEVEL:
            self._hits += 1
        else:
            self._misses += 1
        if level >= 0:
            self._queue.used(entry, 0 if entry in self.raised else self._jump)
            self.raised.add(entry)
            return self._levels[entry]
        level = 0
        if self._free:
            self._free -= 1
        else:
            oldest = t.cast("int", self._queue.oldest())
            level = self._levels[oldest]
            self._queue.remove(oldest)
            self._levels[oldest] = -1
            self.raised.discard(oldest)
        self._queue.push(entry, level)
        return level

    def assess(self) -> int:
        """Promote eagerly if the queue knows what is hot, else only from its upper levels (update_promote_levels, stats_assess)."""
        accesses = self._hits + self._misses
        hits = self._hits / accesses if accesses else 0
        known = 0 if hits < 1 / 16 else 1 if hits < 1 / 8 else 2
        if accesses >= self._least:
            self.promoted_from = (_HIT_LEVEL, _LEVELS // 2, 0)[known]
        return known

    def end_period(self) -> None:
        """Levels are filled anew once a second (end_hotspot_period)."""
        known = self.assess()
        if self._hits + self._misses < self._least:
            return
        self._jump = (4, 2, 1)[known]
        self._queue.spread()
        self._hits = self._misses = 0


class _Smq:
    def __init__(self, load: Load, size: int, mode: str, settings: SmqSettings) -> None:
        self._load, self._settings, self._back = load, settings, mode == "writeback"
        self._free = scaled(load, size)
        self._levels = [-1] * load.distinct
        self._clean, self._dirty = _Queue(self._levels), _Queue(self._levels)
        self._is_dirty = bytearray(load.distinct)
        self._used_in = [-1] * load.distinct
        #: Promotions on their way: when they are completed, and the block.
        self._coming: deque[tuple[float, int]] = deque()
        self._is_coming: set[int] = set()
        self._written_back = self._promoted = 0
        blocks = size // load.block
        entries, per = max(blocks // 4, 1024), 16
        while per > 1 and load.origin and per * load.block * entries > load.origin:
            per //= 2
        hotspots = load.accesses["block"] // np.uint64(per)
        self._hotspot_of = np.unique(hotspots, return_inverse=True)[1].tolist()
        top = round(min(entries // _LEVELS, blocks // per) * load.rate)
        self._hotspots = _Hotspots(max(round(entries * load.rate), 1), max(self._hotspot_of) + 1, top, _LEAST_ACCESSES if load.rate < 1 else 0)

    def run(self) -> Outcome:
        load = self._load
        served = bytearray(len(load.blocks))
        written = load.accesses["bytes"][~load.reads].sum(dtype=np.int64)
        around = period = 0
        whole = (load.accesses["bytes"] == load.block).tolist()
        begins = set(load.begins.tolist())
        idle = max(self._settings.idle, 10 * load.seconds * (load.rate < 1) / len(load.blocks))
        before, next_spread = 0.0, self._settings.cache_period
        levels, used_in, is_dirty, back, coming = self._levels, self._used_in, self._is_dirty, self._back, self._coming
        blocks, times, reads, sizes = load.block_list, load.time_list, load.read_list, load.byte_list
        for begin, end, now in chunks(load, self._settings.hotspot_period):
            self._hotspots.end_period()
            if now >= next_spread:
                next_spread, period = now + self._settings.cache_period, period + 1
                self._clean.spread()
                self._dirty.spread()
            for position in range(begin, end):
                block, time = blocks[position], times[position]
                if coming and coming[0][0] <= time:
                    self._arrive(time)
                if time - before > idle:
                    self._clean_all()
                before = time
                if position in begins:
                    self._hotspots.raised.clear()
                write = not reads[position]
                if write and block in self._is_coming:
                    # It waits for the copy, which reads do not (WRITE_LOCK_LEVEL of mg_lock_writes), and is then a hit.
                    self._come(block)
                if levels[block] >= 0:
                    served[position] = 1
                    if used_in[block] != period:
                        used_in[block] = period
                        (self._dirty if is_dirty[block] else self._clean).used(block, 1)
                    if write:
                        if back and not is_dirty[block]:
                            self._clean.remove(block)
                            self._dirty.push(block, levels[block])
                            is_dirty[block] = 1
                        elif not back:
                            around += sizes[position]
                else:
                    if self._missed(position, block, time, write=write, whole=whole[position]):
                        served[position] = 1
                    elif write:
                        around += sizes[position]
                    self._hotspots.assess()
        absorbed = np.frombuffer(served, dtype=np.uint8)
        cached = load.accesses["bytes"][~load.reads & (absorbed > 0)].sum(dtype=np.int64)
        origin = around + (self._written_back + self._dirty.count) * load.block
        return Outcome(absorbed, float(cached + self._promoted * load.block), float(min(origin, written) if back else written))

    def _missed(self, position: int, block: int, time: float, *, write: bool, whole: bool) -> bool:
        """Whether a write of a whole block, which needs no copy, is absorbed; other blocks are promoted in the background (should_promote)."""
        level = self._hotspots.missed(self._hotspot_of[position])
        at_once = write and whole and self._back
        if block in self._is_coming or not ((at_once and self._free) or level >= self._hotspots.promoted_from):
            return False
        if not self._free:
            # Room is made for the next one (queue_promotion).
            self._demote()
            return False
        self._free -= 1
        if at_once:
            self._is_dirty[block] = 1
            self._dirty.push(block, _LEVELS - 1)
        else:
            self._is_coming.add(block)
            self._coming.append((time + self._settings.migration, block))
        return at_once

    def _arrive(self, time: float) -> None:
        while self._coming and self._coming[0][0] <= time:
            block = self._coming.popleft()[1]
            if block in self._is_coming:
                self._come(block)

    def _come(self, block: int) -> None:
        self._is_coming.discard(block)
        self._promoted += 1
        self._clean.push(block, _LEVELS - 1)

    def _demote(self) -> None:
        """A clean block of the lower half leaves; without one, a dirty one is written back (queue_demotion)."""
        block = self._clean.oldest(_LEVELS // 2)
        if block is not None:
            self._clean.remove(block)
            self._levels[block] = self._used_in[block] = -1
            self._free += 1
        elif (block := self._dirty.oldest()) is not None:
            self._write_back(block)

    def _write_back(self, block: int) -> None:
        self._dirty.remove(block)
        self._is_dirty[block] = 0
        self._clean.push(block, self._levels[block])
        self._written_back += 1

    def _clean_all(self) -> None:
        while (block := self._dirty.oldest()) is not None:
            self._write_back(block)


def simulate(load: Load, size: int, mode: str, settings: SmqSettings) -> Outcome:
    """Blocks are promoted when their surroundings are missed often, and demoted from the lower half of the levels."""
    return _Smq(load, size, mode, settings).run()
