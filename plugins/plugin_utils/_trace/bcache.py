# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""bcache on a sampled load. Source: drivers/md/bcache/ of Linux: request.c (what is cached), alloc.c (buckets), writeback.c and writeback.h (what is dirty)."""

from __future__ import annotations

import dataclasses
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome, chunks, scaled

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load

np = Library("numpy", "Reading traces")

#: A bucket loses one of its priority each time that a 1024th of the cache was accessed (bch_rescale_priorities); the oldest is worth an eighth of the span.
_STEPS, _INITIAL, _OLDEST = 1024, 32768, 8
#: A scaled cache of fewer buckets has smaller ones.
_LEAST_BUCKETS = 64
#: Open buckets, one for each task (MAX_OPEN_BUCKETS), at most this part of all.
_OPEN, _OPEN_PART = 128, 8
#: Garbage collection after this part of the cache was written (set_gc_sectors); buckets that are freed at once (cache_alloc).
_COLLECT, _FREED = 16, 256
#: Of the controller of writing back: bch_cached_dev_writeback_init.
_PROPORTIONAL, _INTEGRAL = 40, 10_000
#: Percent in use, and how many dirty sectors of a bucket are written back each second for each percent above it, if at most one of 4 blocks in use is dirty
#: (BCH_WRITEBACK_FRAGMENT_THRESHOLD; the quotient is rounded down and must exceed 3).
_FRAGMENTED, _FRAGMENTS = ((64, 1000), (57, 10), (50, 1)), 4
#: Dirty keys that are searched at once (KEYBUF_NR of bcache.h). If the index has no more, a pause follows.
_KEYS = 500


@dataclasses.dataclass(frozen=True)
class BcacheSettings:
    """Settings with the defaults of the kernel and of make-bcache.

    :param sequential_cutoff: bytes of a stream, or of the mean stream of a task, from which on it passes the cache; 0 caches everything.
    :param readahead: whether what is read ahead is cached (``cache_readahead_policy``); metadata always are.
    :param bucket: bytes; ``block`` bytes of which requests must be multiples.
    :param writeback_percent: part of the cache that is kept dirty; ``writeback_seconds`` between changes of the rate (writeback_rate_update_seconds).
    :param writeback_delay: seconds without writing back after the whole index was searched, which begin with the first dirty block.
    :param cutoff: percent of the buckets in use from which on only synchronous writes are written back (CUTOFF_WRITEBACK), none
        (CUTOFF_WRITEBACK_SYNC), and nothing is cached (CUTOFF_CACHE_ADD).
    :param reserved: share of the cache for the journal, priorities, the index and free buckets.
    :param congested: share of the hits that may be missing because requests passed the cache while its device was slower than
        ``congested_read_threshold_us`` and ``congested_write_threshold_us``, which a trace cannot show: 0 if both are 0.
    """

    sequential_cutoff: int = 4 * MIB
    readahead: bool = True
    bucket: int = 512 * KIB
    block: int = 512
    writeback_percent: float = 10
    writeback_seconds: float = 5
    writeback_delay: float = 30
    cutoff: tuple[float, float, float] = (40, 70, 95)
    reserved: float = 0.03
    congested: float = 0.05


def bypassed(load: Load, mode: str, settings: BcacheSettings) -> t.Any:
    """Of each access, whether its request passes the cache (check_should_bypass)."""
    accesses = load.accesses
    found = accesses["stream"].astype(np.int64) * 512 >= settings.sequential_cutoff if settings.sequential_cutoff else np.zeros(len(accesses), dtype=bool)
    if found.any():
        found |= _of_sequential_tasks(load, settings.sequential_cutoff)
    if not settings.readahead:
        found |= accesses["flags"] & (trace_format.AHEAD | trace_format.META) == trace_format.AHEAD
    if settings.block > 512:
        parts = np.maximum.reduceat(accesses["bytes"] % settings.block, load.begins) > 0
        found |= np.repeat(parts, load.lengths)
    return found | ~load.reads if mode == "writearound" else found


def _of_sequential_tasks(load: Load, cutoff: int) -> t.Any:
    """Requests of tasks whose streams are long on average: at the end of each, an eighth of the difference is added (add_sequential).

    Of a sample only those requests are known that are in it, so that a stream counts with the last of them.
    """
    requests = load.accesses[load.begins]
    slow = np.zeros(len(requests), dtype=bool)
    for process in np.unique(requests["process"][requests["stream"].astype(np.int64) * 512 >= cutoff]):
        own = np.flatnonzero(requests["process"] == process)
        length, mean = 0, 0
        for position, stream, before in zip(own.tolist(), requests["stream"][own].tolist(), [0, *requests["stream"][own[:-1]].tolist()], strict=True):
            if stream <= before:
                mean, length = (mean * 7 + length) // 8, 0
            length = max(length, stream * 512)
            slow[position] = mean >= cutoff
    return np.repeat(slow, load.lengths)


class _Bucket:
    """A bucket from when it is allocated until it is freed.

    ``used`` is when it was last used; ``live``, ``dirty`` and ``left`` are blocks; ``counted`` and ``marked`` are what garbage collection knows of them.
    """

    __slots__ = ("counted", "dirty", "left", "live", "marked", "used", "valid")

    def __init__(self, room: int, tick: int) -> None:
        self.left = self.counted = room
        self.used = tick
        self.live = self.dirty = 0
        self.marked, self.valid = False, room > 0


class _Bcache:
    def __init__(self, load: Load, size: int, mode: str, settings: BcacheSettings) -> None:
        self._load, self._settings, self._back = load, settings, mode == "writeback"
        self._passed = bypassed(load, mode, settings)
        usable = scaled(load, size * (1 - settings.reserved))
        self._room = max(min(settings.bucket // load.block, usable // _LEAST_BUCKETS), 1)
        self._count = self._free = max(usable // self._room, 1)
        self._none = _Bucket(0, 0)
        self._where = [self._none] * load.distinct
        self._is_dirty = bytearray(load.distinct)
        self._buckets: list[_Bucket] = []
        self._open: dict[int, _Bucket] = {}
        self._in_use = self._since = self._dirty_blocks = self._written_back = self._inserted = 0
        self._queue: list[int] = []
        self._few = False
        self._sum = self._before = 0.0
        #: When writing back continues; without dirty blocks it waits for the first one.
        self._continues = math.inf

    def run(self) -> Outcome:
        load, back, where = self._load, self._back, self._where
        sync = (load.accesses["flags"] & (trace_format.SYNC | trace_format.FUA | trace_format.META) != 0).tolist()
        cached = np.where(self._passed, 0, load.accesses["bytes"].astype(np.int64)).cumsum()
        ticks = (cached // max(self._count * self._room * load.block / _STEPS, 1)).astype(np.int64).tolist()
        first = bytearray(len(ticks))
        np.frombuffer(first, dtype=np.uint8)[load.begins] = 1
        columns = (load.block_list, load.read_list, self._passed.tolist(), sync, load.accesses["process"].tolist(), load.byte_list, ticks, first)
        served = bytearray(len(ticks))
        position, around, gaps = -1, 0, 0
        for begin, end, now in chunks(load, self._settings.writeback_seconds):
            self._control(now)
            for block, read, passed, forced, process, size, tick, is_first in zip(*(column[begin:end] for column in columns), strict=True):
                position += 1
                if is_first:
                    gaps = 0
                bucket = where[block]
                held = bucket.valid
                if read:
                    if held:
                        bucket.used = tick
                        served[position] = 1
                        gaps *= 2
                    elif not passed and gaps < 2:
                        # Of a read, only the first part that is missing is cached (cached_dev_cache_miss).
                        gaps = 1
                        self._insert(block, process, tick, dirty=False)
                    continue
                if held:
                    # The new data are written to another place, or to the origin.
                    bucket.live -= 1
                    where[block] = self._none
                    if self._is_dirty[block]:
                        self._clean(block, bucket)
                if not passed:
                    dirty = back and self._may_be_dirty(forced=forced)
                    absorbed = self._insert(block, process, tick, dirty=dirty) and dirty
                    served[position] = absorbed or (held and not back)
                    if absorbed:
                        if self._continues == math.inf:
                            self._continues = load.time_list[position] + self._settings.writeback_delay
                        continue
                around += size
        origin = around + (self._written_back + self._dirty_blocks) * load.block
        written = load.accesses["bytes"][~load.reads].sum(dtype=np.int64)
        return Outcome(np.frombuffer(served, dtype=np.uint8), float(self._inserted * load.block), float(min(origin, written)))

    @property
    def _percent(self) -> float:
        """Buckets that garbage collection has found dirty, and those filled since, of all."""
        return 100 * self._in_use / self._count

    def _may_be_dirty(self, *, forced: bool) -> bool:
        """Whether a write is acknowledged before it is on the origin (should_writeback)."""
        return self._percent <= self._settings.cutoff[1 if forced else 0]

    def _insert(self, block: int, process: int, tick: int, *, dirty: bool) -> bool:
        """Append a block to the open bucket of the task, if there is room (bch_alloc_sectors, pick_data_bucket)."""
        if self._since * _COLLECT > self._count * self._room:
            self._collect()
        if self._percent > self._settings.cutoff[2]:
            return False
        bucket = self._open.pop(process, self._none)
        if not bucket.valid and len(self._open) >= max(min(_OPEN, self._count // _OPEN_PART), 1):
            bucket = self._open.pop(next(iter(self._open)))
        if not bucket.left:
            if not self._free and not self._reclaim(tick):
                self._collect()
                if not self._reclaim(tick):
                    return False
            self._free -= 1
            self._in_use += 1
            bucket = _Bucket(self._room, tick)
            self._buckets.append(bucket)
        self._where[block] = bucket
        bucket.left -= 1
        if bucket.left:
            self._open[process] = bucket
        else:
            # It has not grown old while it was open.
            bucket.used = tick
        bucket.live += 1
        self._inserted += 1
        self._since += 1
        if dirty:
            self._is_dirty[block] = 1
            bucket.dirty += 1
            bucket.marked = True
            self._dirty_blocks += 1
        return True

    def _collect(self) -> None:
        """Count what is live and dirty (bch_btree_gc_finish)."""
        self._since = 0
        for bucket in self._buckets:
            bucket.counted = bucket.live + bucket.left
            bucket.marked = bucket.dirty > 0
        self._in_use = sum(bucket.marked for bucket in self._buckets)

    def _reclaim(self, tick: int) -> bool:
        """Free the clean buckets of the least priority times live blocks (invalidate_buckets_lru)."""
        busy = set(map(id, self._open.values()))
        candidates = [bucket for bucket in self._buckets if not bucket.marked and id(bucket) not in busy]
        if not candidates:
            return False
        span = min(tick - min(bucket.used for bucket in self._buckets), _INITIAL)
        ages = np.minimum(tick - np.array([bucket.used for bucket in candidates]), _INITIAL)
        weights = (span + span // _OLDEST - ages) * np.array([bucket.counted for bucket in candidates])
        freed = np.argsort(weights, kind="stable")[: max(self._count // _FREED, 1)].tolist()
        for at in freed:
            candidates[at].valid = False
        self._buckets = [bucket for bucket in self._buckets if bucket.valid]
        self._free += len(freed)
        return True

    def _control(self, now: float) -> None:
        """Write back as fast as the part that is dirty is above its target; the sum of the errors grows only meanwhile (__update_writeback_rate)."""
        seconds, self._before = now - self._before, now
        active = min(max(now - self._continues, 0), seconds)
        error = self._dirty_blocks - self._count * self._room * self._settings.writeback_percent / 100
        if error > 0 or self._sum > 0:
            self._sum = max(self._sum + error * (active if error > 0 else seconds), 0)
        rate = max(error / _PROPORTIONAL, self._of_fragments()) + self._sum / _INTEGRAL
        self._write_back(min(round(rate * active), self._dirty_blocks), now)
        if active and not self._dirty_blocks:
            self._continues = math.inf

    def _of_fragments(self) -> float:
        """At least so many blocks per second if few blocks of the buckets in use are dirty, so that these become free."""
        low, term = next((one for one in _FRAGMENTED if self._percent > one[0]), (0, 0))
        if not term or self._in_use * self._room < _FRAGMENTS * self._dirty_blocks:
            return -math.inf
        return self._dirty_blocks / self._in_use * term * (self._percent - low) * self._load.rate

    def _write_back(self, blocks: int, now: float) -> None:
        """In the order of addresses, with a pause after a search that has found all that is dirty (refill_dirty, bch_writeback_thread)."""
        while blocks > 0:
            if not self._queue:
                found = np.flatnonzero(np.frombuffer(self._is_dirty, dtype=np.uint8))
                self._queue = found[::-1].tolist()
                self._few = np.count_nonzero(np.diff(found) > 1) < _KEYS * self._load.rate
            block = self._queue.pop()
            if self._is_dirty[block]:
                self._clean(block, self._where[block])
                self._written_back += 1
                blocks -= 1
            if self._few and not self._queue:
                self._continues = now + self._settings.writeback_delay
                return

    def _clean(self, block: int, bucket: _Bucket) -> None:
        self._is_dirty[block] = 0
        bucket.dirty -= 1
        self._dirty_blocks -= 1


def simulate(load: Load, size: int, mode: str, settings: BcacheSettings) -> Outcome:
    """Blocks are appended to buckets, which are freed whole."""
    return _Bcache(load, size, mode, settings).run()
