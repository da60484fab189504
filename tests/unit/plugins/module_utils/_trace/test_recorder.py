# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is counted and sampled of a load, and how a recording ends."""

from __future__ import annotations

import json
import signal
import socket
import time
import typing as t
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import bin_index, bin_midpoint
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import read_status
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import counting, recorder, sampling
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, read_trace
from ansible_collections.cachefleet.storage.tests.unit.support import planted_traces as planted

SECOND = 10**9
DISK = {"name": "/dev/sda", "number": "8:0", "dev": planted.SDA, "start": 0, "sectors": 1 << 30, "is_disk": True}
PART = {"name": "/dev/sda1", "number": "8:1", "dev": planted.SDA, "start": 2051, "sectors": 4096, "is_disk": True}


class Host:
    """A host whose kernel has recorded these requests; the times of their pages begin with the recording."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *devices: dict[str, t.Any], **changed: t.Any) -> None:
        self.root, self.files = root, planted.PlantedTracefs(root, cpus=1)
        self.folder = root / "traces/monday"
        self.folder.mkdir(parents=True)
        self.devices = devices or (DISK,)
        order = {"name": "monday", "host": "db1", "seconds": 3600.0, "bytes": 1 << 20, "tracefs": str(self.files.folder), "devices": self.devices, **changed}
        (self.folder / "order.json").write_text(json.dumps(order))
        for device in self.devices:
            (root / "sys/dev/block" / device["number"]).mkdir(parents=True)
        self.begins = time.monotonic_ns()
        self.now = self.begins
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now)
        monkeypatch.setattr(signal, "pthread_sigmask", lambda *_args: None)
        self.monkeypatch = monkeypatch

    def run(self, *pages: bytes, stop: bool = True) -> int:
        """Record what is in these pages."""
        self.instance = self.files.make_instance("monday", [b"".join(pages)])
        with self.monkeypatch.context() as patched:
            patched.setattr(Path, "mkdir", lambda *_args: None)
            return recorder.main(self.folder, lambda seconds: self.passed(seconds, stop), self.root)

    def passed(self, _seconds: float, stop: bool) -> bool:
        self.now += 100 * SECOND
        return stop and self.now > self.begins + 3000 * SECOND

    def page(self, after: int, *requests: bytes) -> bytes:
        return planted.page(self.begins + after, *requests)

    def trace(self) -> Trace:
        return read_trace(self.folder)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def request(*fields: t.Any, **more: t.Any) -> bytes:
    return planted.request(0, *fields, **more)


def records(trace: Trace) -> list[dict[str, int]]:
    return [{name: int(one[name]) for name in trace_format.FIELDS} for one in trace.requests]


@pytest.mark.parametrize(
    ("letters", "operation", "flushes", "flags"),
    [
        ("R", trace_format.READ, False, 0),
        ("RA", trace_format.READ, False, trace_format.AHEAD),
        ("RSM", trace_format.READ, False, trace_format.SYNC | trace_format.META),
        ("WFS", trace_format.WRITE, False, trace_format.FUA | trace_format.SYNC),
        ("FWFS", trace_format.WRITE, True, trace_format.FUA | trace_format.SYNC),
        ("FF", None, True, 0),
        ("DS", trace_format.DISCARD, False, trace_format.SYNC),
        ("N", trace_format.DISCARD, False, 0),
        ("ZR", None, False, 0),
        ("", None, False, 0),
        ("\u00ff", None, False, 0),
    ],
)
def test_letters_of_requests(letters: str, operation: int | None, flushes: bool, flags: int) -> None:
    assert counting.operations_of(letters.encode("latin-1").ljust(8, b"\0")) == (operation, flushes, flags)


def test_requests_are_counted_and_sampled(host: Host) -> None:
    host.run(
        host.page(0, request(0, 8, "R"), request(8, 8, "R"), request(16, 128, "R"), request(4096, 7, "W"), request(3, 8, "W")),
        host.page(SECOND, request(144, 8, "R"), request(0, 0, "FW"), request(64, 8, "FWFS"), request(8192, 1 << 20, "D"), request(0, 8, "R", dev=99)),
        host.page(61 * SECOND, request(0, 8, "ZR")),
        host.page(130 * SECOND, request(0, 8, "W")),
    )
    trace = host.trace()
    raw = trace.devices[0].raw
    assert raw["counts"] == {
        "read": {"requests": 4, "bytes": 152 * 512, "sequential": 3, "unaligned": 0},
        "write": {"requests": 4, "bytes": 31 * 512, "sequential": 0, "unaligned": 2},
        "flush": {"requests": 2, "bytes": 0, "sequential": 0, "unaligned": 0},
        "discard": {"requests": 1, "bytes": 512 << 20, "sequential": 0, "unaligned": 0},
    }
    assert raw["sizes"] == {"read": {"4096": 3, "65536": 1}, "write": {"3584": 1, "4096": 3}, "flush": {"0": 2}, "discard": {str(512 << 20): 1}}
    first = {"minute": 0, "read": [4, 152 * 512], "write": [3, 23 * 512], "flush": [2, 0], "discard": [1, 512 << 20], "busiest": 5}
    assert raw["minutes"] == [first, {"minute": 2, "write": [1, 4096], "busiest": 1}]
    assert "latency" not in raw
    assert (trace.name, trace.host, trace.rate, trace.lost) == ("monday", "db1", 1.0, 1)
    found = records(trace)
    assert [(one["sector"], one["sectors"], one["stream"], one["operation"], one["flags"]) for one in found[:5]] == [
        (0, 8, 8, 0, 0), (8, 8, 16, 0, 0), (16, 128, 144, 0, 0), (4096, 7, 7, 1, 0), (3, 8, 8, 1, 0),
    ]  # fmt: skip
    assert [(one["operation"], one["stream"]) for one in found[5:]] == [(0, 152), (2, 0), (2, 0), (1, 8), (3, 1 << 20), (1, 8)]
    assert {(one["process"], one["device"]) for one in found} == {(77, 0)}
    assert (found[5]["time"], found[-1]["time"]) == (SECOND, 130 * SECOND)


def test_the_requests_of_a_partition_are_those_within_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, monkeypatch, PART, DISK)
    host.run(host.page(0, request(2051, 8, "W"), request(2051 + 4096, 8, "W"), request(0, 0, "FW")))
    trace = host.trace()
    assert [one.raw["counts"]["write"]["requests"] for one in trace.devices] == [1, 2]
    # Aligned for the file system and not for the disk; a flush reaches all of the disk.
    assert [one.raw["counts"]["write"]["unaligned"] for one in trace.devices] == [1, 2]
    assert [one.raw["counts"]["flush"]["requests"] for one in trace.devices] == [1, 1]
    assert [(one["device"], one["sector"]) for one in records(trace) if one["operation"] == 1] == [(0, 0), (1, 2051), (1, 2051 + 4096)]


def test_latencies_are_from_issue_to_completion(host: Host) -> None:
    def drive(event: int, sector: int, sectors: int, letters: str) -> bytes:
        return request(sector, sectors, letters, event=event)

    host.run(
        host.page(0, drive(planted.COMPLETE, 512, 8, "R"), drive(planted.ISSUE, 0, 8, "R"), drive(planted.ISSUE, 0, 8, "W"), drive(planted.ISSUE, 0, 0, "FF")),
        host.page(5_000_000, drive(planted.COMPLETE, 0, 8, "W"), drive(planted.COMPLETE, (1 << 64) - 1, 0, "FF")),
        host.page(9_000_000, drive(planted.COMPLETE, 0, 8, "R"), drive(planted.COMPLETE, 0, 8, "R")),
    )
    raw = host.trace().devices[0].raw
    bins = {after: str(bin_midpoint(bin_index(after))) for after in (5_000_000, 9_000_000)}
    assert raw["latency"] == {"read": {bins[9_000_000]: 1}, "write": {bins[5_000_000]: 1}, "flush": {bins[5_000_000]: 1}}
    assert raw["counts"] == {}


def test_memory_is_bounded() -> None:
    counts = counting.DeviceCounts(counting.TracedDevice(**DISK))
    for number in range(100_000):
        counts.add(number, trace_format.DISCARD, 0, number)
        counts.add(number, trace_format.READ, number * 1000, 8)
        counts.issued(number, trace_format.READ, number)
    assert len(counts._in_flight) == counting._IN_FLIGHT and len(counts._streams) == counting._STREAMS
    assert len(counts.sizes[trace_format.DISCARD]) < counting._SIZES + 64
    assert sum(counts.sizes[trace_format.DISCARD].values()) == 100_000


def test_the_sample_is_halved_at_its_limit(tmp_path: Path) -> None:
    limits: list[int] = []
    sample = sampling.Sample(tmp_path, 3200, limits.append)
    sample.add(0, 0, 0, 0, 7, 0, trace_format.FLUSH, 0)
    for number in range(1000):
        sector = number * trace_format.REGION_SECTORS
        if sample.has(0, sector, 8):
            sample.add(number, sector, 8, 8, 7, 0, trace_format.READ, 0)
        assert sample.flush()
    sample.close()
    assert limits == [trace_format.HASHES >> number for number in range(1, len(limits) + 1)] and sample.limit == limits[-1]
    found = [record[1] // trace_format.REGION_SECTORS for record in trace_format.RECORD.iter_unpack((tmp_path / "requests.bin").read_bytes())]
    assert found == [region for region in range(1000) if trace_format.region_hash(0, region) < sample.limit]
    assert 0 < len(found) <= 100 and list(tmp_path.glob(".*")) == []


def test_a_request_on_two_regions_is_sampled_with_either() -> None:
    region = next(one for one in range(100) if trace_format.region_hash(0, one) >= 1 << 31 > trace_format.region_hash(0, one + 1))
    sample = object.__new__(sampling.Sample)
    sample.limit, sample._hashes = 1 << 31, {}
    last = region * trace_format.REGION_SECTORS + trace_format.REGION_SECTORS - 8
    assert [sample.has(0, last, sectors) for sectors in (8, 9)] == [False, True]


def test_a_description_is_never_of_a_larger_sample_than_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the two, or at any other moment: the reader takes the limit of the description."""
    host = Host(tmp_path, monkeypatch, bytes=64 * 32)
    pages = [host.page(number, *[request((64 * number + one) * 2048, 8, "R") for one in range(64)]) for number in range(8)]

    def full(_self: sampling.Sample) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sampling.Sample, "_rewrite", full)
    assert host.run(*pages) == 1
    trace = host.trace()
    assert (trace.rate, len(trace.requests)) == (0.5, 512)
    assert len(trace.accesses(4096)) == sum(trace_format.region_hash(0, region) < 1 << 31 for region in range(512))
    assert read_status(host.folder)["message"] == f"The trace on this host ended with an error: No space left on device ({host.folder})."


def test_a_sample_that_cannot_be_halved_ends_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, monkeypatch, bytes=32)
    region = min(range(200_000), key=lambda one: trace_format.region_hash(0, one))
    host.run(host.page(0, *[request(region * 2048, 8, "R") for _again in range(20)]))
    assert json.loads((host.folder / "trace.json").read_text())["ended"] == "bytes"
    assert read_status(host.folder)["state"] == "failed" and "no sample of them fits" in read_status(host.folder)["message"]


@pytest.mark.parametrize(("stop", "ended", "state"), [(False, "time", "finished"), (True, "stopped", "stopped")])
def test_a_recording_ends_with_its_reason(host: Host, stop: bool, ended: str, state: str) -> None:
    assert host.run(host.page(0, request(0, 8, "R")), stop=stop) == 0
    written = json.loads((host.folder / "trace.json").read_text())
    assert (written["ended"], written["message"], written["scrambled"]) == (ended, "", False)
    assert written["seconds"] == pytest.approx(3600 if ended == "time" else 3100, abs=100)
    assert read_status(host.folder)["state"] == state


def test_requests_after_the_end_are_not_counted(host: Host) -> None:
    host.run(host.page(3599 * SECOND, request(0, 8, "R")), host.page(3601 * SECOND, request(0, 8, "R")), stop=False)
    assert host.trace().devices[0].raw["counts"]["read"]["requests"] == 1


def test_a_device_that_disappears_ends_the_recording(host: Host) -> None:
    (host.root / "sys/dev/block/8:0").rmdir()
    assert host.run(host.page(0, request(0, 8, "R"))) == 0
    written = json.loads((host.folder / "trace.json").read_text())
    assert (written["ended"], written["message"]) == ("device", "The device /dev/sda disappeared while it was recorded.")
    assert host.trace().devices[0].raw["counts"]["read"]["requests"] == 1


def test_what_the_kernel_refuses_is_the_message(host: Host) -> None:
    host.instance = host.files.make_instance("monday")
    assert recorder.main(host.folder, lambda _seconds: True, host.root) == 1
    assert "another trace of that name" in read_status(host.folder)["message"]


def test_systemd_is_told_when_it_has_begun(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        host.run()
        assert listener.recv(100) == b"READY=1"


def test_a_signal_ends_the_waiting() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, recorder._STOPPING)
    try:
        assert not recorder.stop_requested(0.0)
        signal.raise_signal(signal.SIGTERM)
        assert recorder.stop_requested(60.0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
