# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The device's own counters every few seconds while fio runs, as ``iostat -x`` prints them; block caches, and how busy the host is.

Sources: Documentation/admin-guide/iostats.rst (``/proc/diskstats``), iostat(1), proc(5) (``/proc/stat``). Counters of milliseconds have
32 bits and wrap around; those of I/Os and sectors only fall when a device was replaced, and then no rate can be given.
"""

from __future__ import annotations

import contextlib
import threading
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import STAT_FIELDS, without_flushes

DEVICE_SERIES = "device_series.log"
CACHE_SERIES = "cache_series.log"

COLUMNS = "epoch_s,device,r_s,w_s,rkb_s,wkb_s,rrqm_s,wrqm_s,r_await_ms,w_await_ms,f_s,f_await_ms,aqu_sz,util_pct,in_flight"
CACHE_COLUMNS = (
    "epoch_s,cache,dirty_bytes,used_bytes,read_hits,read_misses,write_hits,write_misses,bypassed_reads,bypassed_writes,size_bytes,promotions,written_back_bytes"
)

#: A query of device-mapper starts a command: not more often than this. In seconds.
CACHE_INTERVAL = 5.0
#: The last interval is written if it is at least this long, in seconds.
_LEAST = 0.2
#: Seconds after a ramp is over by the clock of the sampler at which the counters are read too: fio begins somewhat later than it.
_AFTER_RAMP = (0.0, 1.0)
_WRAP = 1 << 32

_TICKS = frozenset({"read_ticks", "write_ticks", "io_ticks", "time_in_queue", "flush_ticks"})

Counters = t.Mapping[str, int]


@frozen
class Rates:
    """One device over one interval. Rates per second, sizes in KiB, times in ms.

    :param read_await: ``None`` where nothing was waited for, as ``write_await`` and ``flush_await``.
    :param flushes: ``None`` where the kernel does not count them.
    """

    reads: float
    writes: float
    read_kib: float
    written_kib: float
    read_merges: float
    write_merges: float
    read_await: float | None
    write_await: float | None
    flushes: float | None
    flush_await: float | None
    queue: float
    util: float
    in_flight: int

    @property
    def row(self) -> str:
        """As a line of ``device_series.log``, without time and name; what is not known is empty."""
        values = (
            *(self.reads, self.writes, self.read_kib, self.written_kib, self.read_merges, self.write_merges, self.read_await, self.write_await),
            *(self.flushes, self.flush_await, self.queue, self.util),
        )
        return ",".join([*("" if value is None else f"{value:.2f}" for value in values), str(self.in_flight)])


def parse_diskstats(text: str, names: t.Container[str]) -> dict[str, Counters]:
    """The counters of some devices by kernel name. Kernels before 4.18 have 11 of them, before 5.5 15."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 14 and words[2] in names:
            found[words[2]] = dict(zip(STAT_FIELDS, map(int, words[3:])))
    return found


def rates(before: Counters, after: Counters, seconds: float) -> Rates | None:
    """What happened in between; ``None`` if the counters fell or no time passed."""
    if seconds <= 0:
        return None
    grown = {name: after[name] - before.get(name, 0) for name in after}
    for name in _TICKS & set(grown):
        grown[name] %= _WRAP
    if any(value < 0 for name, value in grown.items() if name not in _TICKS and name != "in_flight"):
        return None
    flushes = grown.get("flush_ios")
    return Rates(
        reads=grown["read_ios"] / seconds,
        writes=grown["write_ios"] / seconds,
        read_kib=grown["read_sectors"] / 2 / seconds,
        written_kib=grown["write_sectors"] / 2 / seconds,
        read_merges=grown["read_merges"] / seconds,
        write_merges=grown["write_merges"] / seconds,
        read_await=_each(grown["read_ticks"], grown["read_ios"]),
        write_await=_each(grown["write_ticks"], grown["write_ios"]),
        flushes=None if flushes is None else flushes / seconds,
        flush_await=_each(grown.get("flush_ticks", 0), flushes or 0),
        queue=grown["time_in_queue"] / 1000 / seconds,
        util=min(grown["io_ticks"] / 10 / seconds, 100.0),
        in_flight=after["in_flight"],
    )


def _each(milliseconds: int, count: int) -> float | None:
    return milliseconds / count if count else None


def figures(found: t.Sequence[Rates]) -> dict[str, float | None]:
    """What the status contains for all targets together: I/Os and bytes per second, and the mean wait in ms."""
    if not found:
        return {"iops": None, "bandwidth": None, "latency_ms": None}
    count = sum(one.reads + one.writes for one in found)
    waited = sum(one.reads * (one.read_await or 0.0) + one.writes * (one.write_await or 0.0) for one in found)
    moved = sum(one.read_kib + one.written_kib for one in found) * 1024
    return {"iops": round(count, 1), "bandwidth": round(moved), "latency_ms": round(waited / count, 3) if count else None}


def parse_cpu(text: str) -> tuple[int, int]:
    """Busy and all ticks of all CPUs in ``/proc/stat``; what a hypervisor took (steal) was not idle. Guests are in user already."""
    words = text.split("\n", 1)[0].split()[1:9]
    numbers = [int(word) for word in words]
    idle = sum(numbers[3:5])
    return sum(numbers) - idle, sum(numbers)


def busy_percent(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """How busy all CPUs were in between; ``None`` if no tick passed."""
    passed = after[1] - before[1]
    return round(100 * (after[0] - before[0]) / passed, 1) if passed > 0 else None


def read_cpu(root: Path = Path("/")) -> tuple[int, int]:
    try:
        return parse_cpu((root / "proc/stat").read_text())
    except (OSError, ValueError, IndexError):
        return 0, 0


@frozen
class Watched:
    """One cell that is being measured.

    :param tops: kernel names of its targets, for a file of the device that its file system is on.
    :param names: kernel names of all its devices.
    :param folder: where its series are written.
    """

    tops: tuple[str, ...]
    names: tuple[str, ...]
    folder: Path


class Sampler:
    """A thread that reads the counters every ``interval`` seconds, from :meth:`begin` to :meth:`end`.

    :param report: called with the figures of the targets after each reading.
    :param read_caches: gives rows of the block caches among some devices: see ``cache_samples.py``.
    :param ramps: seconds of the ramps of the cells: an interval that is partly one of them is kept short.
    """

    def __init__(
        self,
        watched: t.Sequence[Watched],
        interval: float,
        report: t.Callable[[dict[str, float | None]], None],
        read_caches: t.Callable[[t.Collection[str]], t.Sequence[str]] | None = None,
        root: Path = Path("/"),
        clock: t.Callable[[], float] = time.time,
        ramps: t.Iterable[float] = (),
    ) -> None:
        self.watched = watched
        self.interval = interval
        self.report = report
        self.read_caches = read_caches
        self.root = root
        self.clock = clock
        self._edges = sorted({ramp + seconds for ramp in ramps if ramp for seconds in _AFTER_RAMP})
        self._over = threading.Event()
        self._names = {name for one in watched for name in one.names}
        self._before: dict[str, Counters] = {}
        self._at = 0.0
        self._caches_at = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        for one in self.watched:
            (one.folder / DEVICE_SERIES).write_text(COLUMNS + "\n")
        self._before, self._at = self._read(), time.monotonic()
        self._thread.start()

    def end(self) -> None:
        """Read the counters a last time and wait for that."""
        self._over.set()
        self._thread.join(30)

    def _run(self) -> None:
        following = self._at + self.interval
        edges = [self._at + seconds for seconds in self._edges]
        # How dirty a cache is when a cell begins explains how it does.
        self._sample_caches(self._at, self.clock())
        while not self._over.wait(max(0.0, (due := min([following, *edges])) - time.monotonic())):
            self._sample()
            edges = [edge for edge in edges if edge > due]
            if following == due:
                following = max(following + self.interval, time.monotonic())
        self._caches_at = 0.0
        if time.monotonic() - self._at >= _LEAST:
            self._sample()
        else:
            # Devices were read just now; caches perhaps not for seconds.
            self._sample_caches(self._at, self.clock())

    def _read(self) -> dict[str, Counters]:
        try:
            found = parse_diskstats((self.root / "proc/diskstats").read_text(), self._names)
            return {name: without_flushes(counters, name, self.root) for name, counters in found.items()}
        except (OSError, ValueError):
            return {}

    def _sample(self) -> None:
        now, at, epoch = self._read(), time.monotonic(), self.clock()
        found = {name: rates(self._before[name], counters, at - self._at) for name, counters in now.items() if name in self._before}
        self._before, self._at = now, at
        # A series that cannot be written, on a full disk, must not end the measurement: the spool reports it when the cell is stored.
        with contextlib.suppress(OSError):
            for one in self.watched:
                rows = [f"{epoch:.3f},{name},{found[name].row}\n" for name in one.names if found.get(name) is not None]  # type: ignore[union-attr]
                _append(one.folder / DEVICE_SERIES, rows)
        self._sample_caches(at, epoch)
        tops = counted_once(self.watched)
        self.report(figures([rate for name, rate in found.items() if name in tops and rate is not None]))

    def _sample_caches(self, at: float, epoch: float) -> None:
        if self.read_caches is None or (self._caches_at and at - self._caches_at < CACHE_INTERVAL - 0.05):
            return
        self._caches_at = at
        with contextlib.suppress(OSError):
            for one in self.watched:
                rows = [f"{epoch:.3f},{row}\n" for row in self.read_caches(one.names)]
                place = one.folder / CACHE_SERIES
                _append(place, ([] if place.exists() else [CACHE_COLUMNS + "\n"]) + rows if rows else [])


def counted_once(watched: t.Sequence[Watched]) -> set[str]:
    """The devices of the targets, without those below another target: what passes both would be counted twice."""
    below = {name for one in watched for name in one.names if name not in one.tops}
    return {name for one in watched for name in one.tops} - below


def _append(path: Path, rows: t.Sequence[str]) -> None:
    if rows:
        with open(path, "a") as file:
            file.writelines(rows)
