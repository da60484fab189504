# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An instance of the kernel's tracing that only this recording uses: other tracing on the host is neither read nor changed.

Source: Documentation/trace/ftrace.rst (instances, per_cpu, trace_clock) and Documentation/trace/events.rst (filters).
"""

from __future__ import annotations

import contextlib
import operator
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, ToolMissing, way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.pages import Event, PageReader, event_layout, page_layout

PLACES = ("sys/kernel/tracing", "sys/kernel/debug/tracing")
PREFIX = "cachefleet-"
#: What an application sends to a device; and, of disks, what is sent to the drive and what came back.
QUEUE, ISSUE, COMPLETE = range(3)
EVENTS = ("block_bio_queue", "block_rq_issue", "block_rq_complete")

#: Bytes of all buffers together, and of that of one processor.
_BUFFERS, _LEAST, _MOST = 20 * MIB, 64 * KIB, 4 * MIB
#: Bytes that are read before they are processed.
_AT_ONCE = 2 * MIB
_TIME = operator.itemgetter(0)
_COUNTERS = re.compile(r"^(?:overrun|commit overrun|dropped events): (\d+)$", re.MULTILINE)


def find(root: Path = Path("/")) -> Path:
    """The mounted tracefs.

    :raises ToolMissing: if there is none, or it cannot be used.
    """
    lockdown = root / "sys/kernel/security/lockdown"
    with contextlib.suppress(OSError):
        if "[confidentiality]" in lockdown.read_text(encoding="ascii"):
            raise ToolMissing(f"The kernel of this host is locked down (confidentiality in {lockdown}), which forbids tracing: nothing can be recorded.")
    for place in PLACES:
        folder = root / place
        try:
            (folder / "events/block" / EVENTS[QUEUE] / "format").read_bytes()
            return folder
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ToolMissing(f"{folder} on this host cannot be read ({error.strerror}): {way_to_see()}, and check the lockdown of its kernel.") from None
    raise ToolMissing(
        f"tracefs is not mounted on this host, or its kernel has no tracing of block devices: mount it (mount -t tracefs nodev {root / PLACES[0]}),"
        " or use a kernel with CONFIG_BLK_DEV_IO_TRACE."
    )


class Instance:
    """The instance of a recording.

    :param tracefs: of :func:`find`.
    :raises StorageError: if the kernel describes its events in an unknown way.
    """

    def __init__(self, tracefs: Path, name: str) -> None:
        self.tracefs = tracefs
        self.folder = tracefs / "instances" / f"{PREFIX}{name}"
        events = tracefs / "events"
        layouts = [event_layout(_text(events / "block" / event / "format"), event, kind) for kind, event in enumerate(EVENTS)]
        self.reader = PageReader(page_layout(_text(events / "header_page")), layouts)
        self.missed = 0
        self._cpus: list[int] = []
        self._last: list[int] = []
        self._waiting: list[Event] = []
        self._until = 0
        self.buffer = min(max(_BUFFERS // (os.cpu_count() or 1), _LEAST), _MOST)

    def start(self, devices: t.Collection[int], disks: t.Collection[int]) -> None:
        """Make the instance and record the events of these devices.

        :param devices: numbers as the kernel has them in events (major << 20 | minor); ``disks``: those whose latency is measured.
        :raises CommandFailed: if the kernel refuses; the caller then removes it.
        """
        try:
            self.folder.mkdir()
            self._write("trace_clock", "mono")
            self._write("buffer_size_kb", str(self.buffer // KIB))
            for event, numbers in zip(EVENTS, (devices, disks, disks)):
                if numbers:
                    self._write(f"events/block/{event}/filter", " || ".join(f"dev == {number}" for number in sorted(numbers)))
                    self._write(f"events/block/{event}/enable", "1")
            self._write("tracing_on", "1")
            for cpu in sorted(self.folder.glob("per_cpu/cpu*")):
                self._cpus.append(os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            self._last = [0] * len(self._cpus)
        except FileExistsError:
            raise CommandFailed(f"{self.folder} exists already on this host: another trace of that name is recorded, or use another name.") from None
        except OSError as error:
            raise CommandFailed(f"The kernel of this host does not record requests: {error.strerror} ({error.filename or self.folder}).") from None

    def _write(self, name: str, value: str) -> None:
        # No new file: what a kernel does not have is an error here.
        descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, value.encode())
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), str(self.folder / name)) from None
        finally:
            os.close(descriptor)

    def read(self, now: int) -> tuple[list[Event], bool, float]:
        """The next events of all processors, by time.

        Each processor has a buffer of its own, of which only a part is read at once. What is returned is older than all that was not read.

        :param now: ns of the monotonic clock, before the call.
        :returns: also whether there is more, and how full the fullest buffer was (0 to 1).
        :raises OSError: if the buffers cannot be read.
        """
        size = self.reader.page.size
        share = max(_AT_ONCE // size // max(len(self._cpus), 1), 1)
        until, most, more = now, 0, False
        for index, cpu in enumerate(self._cpus):
            if self._last[index] <= self._until:
                events: list[Event] = []
                pages = self._read_pages(cpu, size, share, events)
                most = max(most, pages)
                # Of a buffer that was read to its end everything up to now is known.
                self._last[index] = 0 if pages < share else events[-1][0] if events else self._until
                self._waiting += events
            if 0 < self._last[index] <= now:
                until, more = min(until, self._last[index]), True
        self._until = until
        self._waiting.sort(key=_TIME)
        found, self._waiting = self._waiting, []
        if found and found[-1][0] > until:
            self._waiting = [event for event in found if event[0] > until]
            found = found[: -len(self._waiting)]
        return found, more, most * size / self.buffer

    def _read_pages(self, cpu: int, size: int, limit: int, events: list[Event]) -> int:
        for pages in range(limit):
            try:
                page = os.read(cpu, size)
            except BlockingIOError:
                page = b""
            if not page:
                return pages
            self.missed += self.reader.read(page, events)
        return limit

    def lost(self) -> int:
        """The events that did not fit into the buffers since the start."""
        counted = 0
        with contextlib.suppress(OSError):
            counted = sum(int(number) for stats in self.folder.glob("per_cpu/cpu*/stats") for number in _COUNTERS.findall(stats.read_text()))
        # Where the counters are not there, the pages have it.
        return max(counted, self.missed)

    def remove(self) -> None:
        """Take the instance away, if it is there; its events and buffers go with it."""
        for cpu in self._cpus:
            os.close(cpu)
        self._cpus = []
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _text(path: Path) -> str:
    """:raises ToolMissing: if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ToolMissing(f"{path} on this host cannot be read ({error.strerror}): its kernel cannot record requests.") from None
