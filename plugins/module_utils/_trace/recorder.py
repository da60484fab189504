# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that records: a service of systemd, which reads the events of the kernel until its time is over, or it is stopped.

It runs from a copy of this code in the folder of the trace, and uses nothing else than Python's standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replacing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import PRIVATE
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import Status
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.counting import DeviceCounts, TracedDevice, operations_of
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.format import FLUSH, SCHEMA, TRACE_FILE
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.pages import Event
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.sampling import Sample
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.tracefs import ISSUE, QUEUE, Instance

ORDER_FILE = "order.json"
_STOPPING = (signal.SIGTERM, signal.SIGINT)
#: Seconds between two readings of the buffers: less while they fill.
_SHORTEST, _LONGEST = 0.02, 1.0
#: Seconds between two writings of ``trace.json``.
_INTERVAL = 30.0
#: Different letters of requests that are remembered.
_LETTERS = 1024
_NS = 10**9


class Recorder:
    """One recording.

    :param order: ``order.json``: name, host, seconds, bytes, tracefs, devices.
    :param instance: not started yet.
    """

    def __init__(self, order: t.Mapping[str, t.Any], folder: Path, instance: Instance, root: Path = Path("/")) -> None:
        self.order, self.folder, self.instance, self.root = order, folder, instance, root
        devices = [TracedDevice(**one) for one in order["devices"]]
        self.devices = [DeviceCounts(device) for device in devices]
        self.sample = Sample(folder, order["bytes"], lambda limit: self.write("error", limit))
        self._of_dev: dict[int, list[tuple[int, DeviceCounts, int, int]]] = {}
        for index, counts in enumerate(self.devices):
            one = counts.device
            self._of_dev.setdefault(one.dev, []).append((index, counts, one.start, one.start + one.sectors))
        self._letters: dict[bytes, tuple[int | None, bool, int]] = {}
        self.started, self._start, self.last = time.time(), time.monotonic_ns(), 0

    def start(self) -> None:
        """:raises StorageError: if the kernel refuses."""
        devices = {one.device.dev for one in self.devices}
        self.instance.start(devices, {one.device.dev for one in self.devices if one.device.is_disk})
        self.started, self._start = time.time(), time.monotonic_ns()
        self.write("error")

    def run(self, stopped: t.Callable[[float], bool], report: t.Callable[[float], None]) -> tuple[str, str]:
        """Record until the end.

        :param stopped: waits so many seconds, and returns whether the recording is to end.
        :param report: called with the requests per second from time to time.
        :returns: the reason of the end, as ``trace.json`` has it, and a sentence, which is empty if all is well.
        :raises OSError: if nothing can be read or written any more.
        """
        end = self._start + int(self.order["seconds"] * _NS)
        pause, written, counted, ended, message = _SHORTEST, time.monotonic(), 0, "", ""
        while True:
            now = min(time.monotonic_ns(), end)
            ended = ended or ("time" if now == end else "")
            events, more, fullest = self.instance.read(now)
            self.count(events)
            self.last = now - self._start
            if not self.sample.flush():
                return "bytes", "Nearly all requests are in a small part of the devices, so that no sample of them fits into the limit of bytes."
            if ended and not more:
                return ended, message
            gone = [one.device.name for one in self.devices if not (self.root / "sys/dev/block" / one.device.number).exists()]
            if gone and not ended:
                ended, end, message = "device", now, f"The device {gone[0]} disappeared while it was recorded."
            pause = max(pause / 2, _SHORTEST) if fullest > 0.25 else min(pause * 2, _LONGEST) if fullest < 0.1 else pause
            if not ended and stopped(0.0 if more else min(pause, (end - now) / _NS)):
                ended, end = "stopped", time.monotonic_ns()
            passed = time.monotonic() - written
            if passed >= _INTERVAL:
                self.write("error")
                total = sum(counts[0] for one in self.devices for counts in one.counts)
                report((total - counted) / passed)
                written, counted = time.monotonic(), total

    def count(self, events: t.Iterable[Event]) -> None:
        """Count events, and sample their requests."""
        of_dev, letters, sample, start = self._of_dev, self._letters, self.sample, self._start
        for moment, kind, process, dev, sector, sectors, rwbs in events:
            known = letters.get(rwbs)
            if known is None:
                known = operations_of(rwbs)
                if len(letters) < _LETTERS:
                    letters[rwbs] = known
            operation, flushes, flags = known
            for index, counts, low, high in of_dev.get(dev, ()):
                # A flush has no sector: it is one of the whole disk.
                if sectors and not low <= sector < high:
                    continue
                if kind != QUEUE:
                    which = operation if operation is not None and sectors else FLUSH if flushes else None
                    if which is not None:
                        # The kernel names another sector for a flush when it is completed.
                        (counts.issued if kind == ISSUE else counts.completed)(moment, which, sector if sectors else 0)
                    continue
                since = max(moment - start, 0)
                if flushes:
                    counts.add(since, FLUSH, 0, 0)
                    if sample.has(index, 0, 0):
                        sample.add(since, 0, 0, 0, process, index, FLUSH, flags)
                if operation is not None and sectors:
                    stream = counts.add(since, operation, sector, sectors)
                    if sample.has(index, sector - low, sectors):
                        sample.add(since, sector - low, sectors, stream, process, index, operation, flags)

    def write(self, ended: str, limit: int = 0, message: str = "") -> None:
        """Write ``trace.json``; before the end with what holds if this process is killed: an error.

        :raises OSError: if it cannot be written.
        """
        head = {
            "schema": SCHEMA,
            **{name: self.order[name] for name in ("name", "host")},
            "started": self.started,
            "seconds": max(self.last, 1) / _NS,
            "limit": limit or self.sample.limit,
            "lost": self.instance.lost(),
            "ended": ended,
            "message": message,
            "scrambled": False,
        }
        with replacing(self.folder / TRACE_FILE, PRIVATE, durable=False) as stream:
            stream.write(f'{json.dumps(head)[:-1]}, "devices": [')
            # One after the other: together they would be most of the memory.
            for number, one in enumerate(self.devices):
                stream.write(f"{', ' if number else ''}{json.dumps(one.to_dict())}")
            stream.write("]}\n")


def stop_requested(seconds: float) -> bool:
    """Wait for a signal that ends the recording, which is blocked otherwise."""
    return signal.sigtimedwait(_STOPPING, max(seconds, 0.0)) is not None


def main(folder: Path, stopped: t.Callable[[float], bool] = stop_requested, root: Path = Path("/")) -> int:
    """Record what ``order.json`` in a folder describes.

    :returns: the exit status.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    order = json.loads((folder / ORDER_FILE).read_text(encoding="utf-8"))
    status = Status(folder, cell=order["name"], steps=1, all_until=time.time() + order["seconds"])
    instance = recorder = None
    ended = "error"
    try:
        instance = Instance(Path(order["tracefs"]), order["name"])
        recorder = Recorder(order, folder, instance, root)
        recorder.start()
        status.update(state="measuring", all_until=time.time() + order["seconds"], target=", ".join(one.device.name for one in recorder.devices))
        _report_ready()
        ended, message = recorder.run(stopped, lambda rate: status.update(iops=rate))
        recorder.write(ended, message=message)
        recorder.sample.close()
    except StorageError as error:
        ended, message = "error", error.message
    except OSError as error:
        ended, message = "error", f"The trace on this host ended with an error: {error.strerror} ({error.filename or folder})."
    finally:
        if instance is not None:
            instance.remove()
    if ended == "error" and recorder is not None:
        with contextlib.suppress(OSError):
            recorder.write(ended, message=message)
    state = {"time": "finished", "stopped": "stopped"}.get(ended, "failed")
    status.update(state=state, message=message, done=1, failed=int(state == "failed"))
    return int(ended == "error")


def _report_ready() -> None:
    """Tell systemd that the service has started. Source: sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stream:
            stream.sendto(b"READY=1", "\0" + address[1:] if address.startswith("@") else address)
