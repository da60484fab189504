# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages, writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import InPlace
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.opened_target import make_file
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Lane, LaneProcesses, Load, StopFlag, Writer

RUN = "5a" * 16
BLOCKS = Blocks(bytes.fromhex(RUN), 4096)


class Medium:
    """Keeps nothing. ``work`` is called with each place."""

    def __init__(self, work=lambda _place: None):
        self.work = work

    def write(self, place, data):
        assert BLOCKS.read(bytes(data)).record.offset == place * 4096
        self.work(place)


def lanes_of(load, stop=None, seconds=60.0):
    stop = stop or StopFlag()
    return [Lane(load, index, stop, time.monotonic() + seconds) for index in range(load.depth)], stop


def processes_of(load, medium, seconds=60.0):
    several, stop = lanes_of(load, seconds=seconds)
    return LaneProcesses(several, medium, BLOCKS, stop, lambda: None)


def is_running(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("order", ["random", "sequential"])
def test_no_two_lanes_share_a_place_or_a_sequence(order):
    # So many that at random no place is left out by chance: with 50 one was in every 25th run.
    load = Load(4096, 10, order=order, depth=3, writes=600)
    found = {}
    for number, lane in enumerate(lanes_of(load)[0]):
        for record in iter(lane.next, None):
            assert (record.sequence not in found, record.offset // 4096 % 3) == (True, number)
            found[record.sequence] = record
    assert sorted(found) == list(range(1, 601))
    assert {record.offset // 4096 for record in found.values()} == set(range(10))


def test_sequences_of_a_place_only_grow():
    lane = lanes_of(Load(4096, 8, order="sequential", depth=2, writes=40))[0][1]
    records = list(iter(lane.next, None))
    assert [record.offset // 4096 for record in records] == [1, 3, 5, 7] * 5
    assert [record.sequence for record in records] == list(range(2, 41, 2))


def test_lane_ends_when_stopped_and_at_its_deadline():
    several, stop = lanes_of(Load(4096, 8))
    assert several[0].next() is not None
    stop.set()
    assert several[0].next() is None
    assert lanes_of(Load(4096, 8), seconds=-1)[0][0].next() is None


def test_processes_report_every_write_and_end():
    processes = processes_of(Load(4096, 64, depth=4, writes=200), Medium())
    found = [done for several in processes.done() for done in several]
    processes.end()
    assert sorted(done.sequence for done in found) == list(range(1, 201))


def test_write_is_reported_after_it_has_returned():
    returned = []
    lane = lanes_of(Load(4096, 8, writes=5))[0][0]
    reported = []

    def report(done):
        reported.append(done)
        assert len(returned) == len(reported)

    lane.write(Medium(returned.append), BLOCKS, report)
    assert len(reported) == 5


def test_failed_write_of_one_process_ends_all():
    def fail(place):
        if place == 9:
            raise OSError(errno.EIO, "Input/output error")

    processes = processes_of(Load(4096, 16, depth=4), Medium(fail))
    with pytest.raises(CommandFailed, match=r"A write of the power-loss test failed: Input/output error\."):
        for _several in processes.done():
            pass
    processes.end()


def test_refused_write_keeps_its_message():
    def refuse(_place):
        raise Refused("no space left")

    processes = processes_of(Load(4096, 16, depth=2), Medium(refuse))
    with pytest.raises(CommandFailed, match="no space left"):
        list(processes.done())
    processes.end()


def test_killed_process_is_noticed():
    processes = processes_of(Load(4096, 16, depth=2, seconds=60), Medium(lambda _place: time.sleep(0.01)), seconds=1)
    os.kill(processes._pids[0], signal.SIGKILL)
    with pytest.raises(CommandFailed, match="was killed"):
        list(processes.done())
    processes.end()


def test_processes_end_with_the_one_that_started_them():
    reader, writer = os.pipe()
    starter = os.fork()
    if not starter:
        processes = processes_of(Load(4096, 16, depth=3), Medium(lambda _place: time.sleep(0.01)))
        os.write(writer, " ".join(map(str, processes._pids)).encode())
        for _several in processes.done():
            pass
        os._exit(0)
    pids = [int(word) for word in os.read(reader, 1000).split()]
    assert len(pids) == 3 and all(map(is_running, pids))
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)
    wait_for(lambda: not any(map(is_running, pids)))


def test_process_that_cannot_be_started_is_an_error(monkeypatch):
    def fail():
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(writer.os, "fork", fail)
    with pytest.raises(CommandFailed, match="A process of the writer cannot be started: Resource temporarily unavailable"):
        processes_of(Load(4096, 16, depth=2), Medium())


def test_witness_that_is_gone_ends_all_processes(tmp_path):
    path = tmp_path / "file"
    os.close(make_file(path, 64 * 4096))
    own, other = socket.socketpair()
    writer = Writer(InPlace(path, 4096, "none", direct=False), BLOCKS, Load(4096, 64, depth=4), own, messages.Session(b"s" * 32, b"c" * 32))
    # Not close: the processes of the lanes have a copy, which a witness elsewhere has not.
    threading.Timer(0.3, other.shutdown, [socket.SHUT_RDWR]).start()
    before = children()
    with pytest.raises(CommandFailed, match="The witness is gone"):
        writer.run()
    assert children() == before


def test_stopped_writer_returns_after_its_writes(tmp_path):
    path = tmp_path / "file"
    os.close(make_file(path, 64 * 4096))
    own, other = socket.socketpair()
    writer = Writer(InPlace(path, 4096, "fdatasync", direct=False), BLOCKS, Load(4096, 64, depth=4), own, messages.Session(b"s" * 32, b"c" * 32))
    received = []
    threading.Thread(target=lambda: received.extend(iter(lambda: other.recv(65536), b"")), daemon=True).start()
    threading.Timer(0.3, writer.stop).start()
    count = writer.run()
    own.close()
    # And one that says that it has ended.
    wait_for(lambda: sum(map(len, received)) == (count + 1) * messages.MESSAGE_BYTES)
    assert count > 0


def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
