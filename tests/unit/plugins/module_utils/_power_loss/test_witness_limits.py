# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a peer can do to a witness: without the secret of a run nothing, with it no more than its load."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_witness, messages, verifier, witness_log
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import witness as allowance_module
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import witness as witness_module
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import Allowance, Witness, log_path
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import LogFile, header_line, read_log
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import connect

RUN = "5a" * 16
SECRET = b"s" * 32
SPEC = RunSpec("/file", "file", None, 64 * 4096, direct=False)
GREETING = {"run": RUN, "spec": SPEC.to_dict()}
#: As in the report of the attack.
SILENT = 1020


@contextlib.contextmanager
def running(folder):
    witness = Witness(folder, {RUN: SECRET}, ["127.0.0.1"], "127.0.0.1")
    thread = threading.Thread(target=witness.serve)
    thread.start()
    try:
        yield witness
    finally:
        witness.stop()
        thread.join()


@pytest.fixture
def witness(tmp_path):
    with running(tmp_path) as witness:
        yield witness


@pytest.fixture
def background(tmp_path):
    """A witness in a process of its own, with few descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[1]), before[1]))
    try:
        yield host_witness.start(tmp_path, RUN, SECRET, host_witness.WitnessSpec("127.0.0.1", 0, ("127.0.0.1",), 300.0))[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        BackgroundRun(tmp_path, RUN).stop()


@contextlib.contextmanager
def more_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def silent_connections(port, count):
    with more_descriptors(), contextlib.ExitStack() as stack:
        for _number in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        yield


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def acknowledgement(number, offset=0, length=4096):
    return messages.Message(messages.ACKNOWLEDGED, number, offset, length, number)


def events(folder):
    try:
        return read_log(log_path(folder, RUN), RUN).events
    except NotUnderstood:
        return ()


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_silent_connections_end_neither_the_witness_nor_a_run(tmp_path, background):
    connection, session = connect("127.0.0.1", background, SECRET, GREETING)
    connection.sendall(session.pack(acknowledgement(1)))
    wait_for(lambda: host_witness.acknowledged(tmp_path, RUN) == 1)
    pid = BackgroundRun(tmp_path, RUN).read()["pid"]
    with silent_connections(background, SILENT):
        wait_for(lambda: descriptors(pid) > 20)
        connection.sendall(session.pack(acknowledgement(2)))
        wait_for(lambda: host_witness.acknowledged(tmp_path, RUN) == 2)
        assert BackgroundRun(tmp_path, RUN).is_alive()
        wait_for(lambda: descriptors(pid) < 100)
    connection.close()


def test_writer_connects_among_silent_connections(tmp_path, background):
    with silent_connections(background, SILENT):
        connection, session = connect("127.0.0.1", background, SECRET, GREETING)
        connection.sendall(session.pack(acknowledgement(1)))
        wait_for(lambda: host_witness.acknowledged(tmp_path, RUN) == 1)
        connection.close()


_FEW = """
import resource, signal, socket, sys
from pathlib import Path
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import Witness
folder = Path(sys.argv[1])
witness = Witness(folder, {"5a" * 16: b"s" * 32}, ["127.0.0.1"], "127.0.0.1")
if sys.argv[2] == "unlimited":
    # As if all were taken by something else: accept(2) fails.
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import witness as module
    module._room_for_greetings = lambda: 10**6
    module._MOST_GREETINGS_OF_ADDRESS = 10**6
accept, calls = socket.socket.accept, []
def counting(listener):
    calls.append(1)
    return accept(listener)
socket.socket.accept = counting
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
signal.signal(signal.SIGTERM, lambda *_: witness.stop())
print(witness.port, flush=True)
witness.serve()
print(len(calls), flush=True)
"""


@pytest.mark.parametrize("greetings", ["limited", "unlimited"])
def test_lack_of_descriptors_ends_no_run_and_is_no_busy_loop(tmp_path, greetings):
    process = subprocess.Popen([sys.executable, "-c", _FEW, str(tmp_path), greetings], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        connection, session = connect("127.0.0.1", port, SECRET, GREETING)
        # More than the descriptors, fewer than wait in the queue of the listener.
        with silent_connections(port, 80):
            for number in (1, 2, 3):
                connection.sendall(session.pack(acknowledgement(number)))
                wait_for(lambda number=number: host_witness.acknowledged(tmp_path, RUN) == number)
                time.sleep(0.5)
            assert process.poll() is None
        connection.close()
        wait_for(lambda: events(tmp_path) == ("connection_lost",))
        process.send_signal(signal.SIGTERM)
        # A busy loop would have made hundreds of thousands.
        assert int(process.communicate(timeout=20)[0]) < 1000
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.EAGAIN, 9999])
def test_errors_of_accept_are_survived(tmp_path, number, monkeypatch):
    monkeypatch.setattr(witness_module, "_PAUSE", 0.01)
    witness = Witness(tmp_path, {RUN: SECRET}, ["127.0.0.1"], "127.0.0.1")
    listener, failures = witness._listener, []

    class Failing:
        def __getattr__(self, name):
            return getattr(listener, name)

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            listener.close()

        def accept(self):
            if len(failures) < 3:
                failures.append(number)
                raise OSError(number, "refused")
            return listener.accept()

    witness._listener = Failing()
    thread = threading.Thread(target=witness.serve)
    thread.start()
    try:
        connect("127.0.0.1", witness.port, SECRET, GREETING)[0].close()
        assert failures == [number] * 3
    finally:
        witness.stop()
        thread.join()


def test_slow_greeting_ends_in_total_time(tmp_path, witness, monkeypatch):
    monkeypatch.setattr(witness_module, "_GREETING_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", witness.port), timeout=20) as connection:
        connection.recv(32)
        connection.sendall(struct.pack(">I", 65536))
        with pytest.raises(OSError):
            while True:
                # Each byte comes long before the limit.
                connection.sendall(b"x")
                time.sleep(0.05)


def test_long_and_deep_greetings_are_refused(witness, capfd):
    for text in (b"[" * 60000, b'{"a":' * 10000, b"1" * 60000, b'{"run": {}}', b'{"run": ["x"]}', b"null"):
        with socket.create_connection(("127.0.0.1", witness.port), timeout=20) as connection:
            connection.recv(32)
            connection.sendall(struct.pack(">I", len(text)) + text + b"c" * 32)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    connect("127.0.0.1", witness.port, SECRET, GREETING)[0].close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("spec", [None, {}, {**SPEC.to_dict(), "path": 5}, {**SPEC.to_dict(), "size": 4096.5}, {**SPEC.to_dict(), "depth": 10**6}])
def test_writer_without_a_load_is_refused(tmp_path, witness, spec):
    with pytest.raises(Refused, match="refused this writer"):
        connect("127.0.0.1", witness.port, SECRET, {"run": RUN, "spec": spec})
    assert not log_path(tmp_path, RUN).exists()


@pytest.mark.parametrize(
    "message",
    [
        acknowledgement(2, offset=64 * 4096),
        acknowledgement(2, offset=5),
        acknowledgement(2, length=512),
        acknowledgement(0),
    ],
    ids=["behind the range", "within a block", "another length", "no sequence"],
)
def test_writes_that_are_not_of_the_load_end_the_connection_and_prove_nothing(tmp_path, witness, message):
    connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    connection.sendall(session.pack(acknowledgement(1)) + session.pack(message) + session.pack(acknowledgement(3)))
    wait_for(lambda: events(tmp_path) == ("impossible",))
    connection.close()
    log = read_log(log_path(tmp_path, RUN), RUN)
    assert len(log.acknowledged) == 1
    found = verifier.verify(log, Blocks(bytes.fromhex(RUN), 4096), lambda _place: bytes(4096), rebooted=True)
    assert (found.verdict, "not credible" in found.reason) == ("proves_nothing", True)
    with pytest.raises(CommandFailed, match="check the host under test"):
        host_witness.wait_for_writes(tmp_path, RUN, 1, 1.0)


def test_more_writes_than_the_load_can_make_are_cut_off(tmp_path, witness, monkeypatch):
    monkeypatch.setattr(allowance_module, "LANE_RATE", 10)
    connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    with contextlib.suppress(OSError):
        for number in range(1, 10_000):
            connection.sendall(session.pack(acknowledgement(number)))
    wait_for(lambda: events(tmp_path) == ("impossible",))
    assert len(read_log(log_path(tmp_path, RUN), RUN).acknowledged) < 1000
    connection.close()


def test_log_has_a_limit_that_reconnecting_does_not_lift(tmp_path, witness, monkeypatch):
    monkeypatch.setattr(allowance_module, "LOG_LIMIT", 4000)
    sizes = []
    for _turn in range(3):
        with contextlib.suppress(OSError, Refused, CommandFailed):
            connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
            for number in range(1, 1000):
                connection.sendall(session.pack(acknowledgement(number)))
        connection.close()
        wait_for(lambda: not witness._active)
        sizes.append(log_path(tmp_path, RUN).stat().st_size)
    assert max(sizes) < 4100, sizes


@pytest.mark.parametrize(
    ("options", "seconds", "most"),
    [
        ({"layout": "append"}, 100, 64),
        ({"depth": 4}, 9, 10 * 4 * allowance_module.LANE_RATE),
        ({"seconds": 5.0}, 10**6, 66 * allowance_module.LANE_RATE),
    ],
)
def test_allowance_is_what_the_load_can_write(options, seconds, most):
    moments = iter([0.0, *[float(seconds)] * 3])
    spec = RunSpec("/file", "file", None, 64 * 4096, **options)
    allowance = Allowance(spec, 0, 10**12, lambda: next(moments))
    allowance._acknowledged = most - 1
    allowance.take(acknowledgement(1))
    with pytest.raises(Refused):
        allowance.take(acknowledgement(1))


def test_run_uses_a_quarter_of_the_free_space_at_most():
    allowance = Allowance(SPEC, 0, 400)
    allowance.use(100)
    with pytest.raises(Refused):
        allowance.use(1)


def test_stopped_witness_records_the_end_of_its_sessions(tmp_path):
    with running(tmp_path) as witness:
        connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
        connection.sendall(session.pack(acknowledgement(1)))
        wait_for(lambda: host_witness.acknowledged(tmp_path, RUN) == 1)
    log = read_log(log_path(tmp_path, RUN), RUN)
    assert (log.events, log.complete) == (("stopped",), True)
    connection.close()


@pytest.mark.parametrize("kept", [True, False])
def test_log_without_its_end_is_unknown(tmp_path, background, kept):
    connection, session = connect("127.0.0.1", background, SECRET, GREETING)
    connection.sendall(session.pack(acknowledgement(1)))
    wait_for(lambda: host_witness.acknowledged(tmp_path, RUN) == 1)
    witness_log.note_event(log_path(tmp_path, RUN), "cut")
    connection.sendall(session.pack(acknowledgement(2)))
    wait_for(lambda: host_witness.acknowledged(tmp_path, RUN) == 2)
    os.kill(BackgroundRun(tmp_path, RUN).read()["pid"], signal.SIGKILL)
    wait_for(lambda: not BackgroundRun(tmp_path, RUN).is_alive())
    log = read_log(log_path(tmp_path, RUN), RUN)
    blocks = Blocks(bytes.fromhex(RUN), 4096)
    block = blocks.make(Record(2, 0, 2)) if kept else bytes(4096)
    found = verifier.verify(log, blocks, lambda _place: block, rebooted=True)
    assert (log.complete, found.verdict, "has no end" in found.reason) == (False, "proves_nothing", True)
    connection.close()


def test_larger_log_than_a_witness_writes_is_refused(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"")
    os.truncate(path, witness_log.LOG_LIMIT * 2)
    with pytest.raises(NotUnderstood, match="is larger than 512 MiB"):
        read_log(path, RUN)


@pytest.mark.parametrize("line", ["A 1 2", "A a b c d", "A 1 2 3 4 5", "H [1]", "H {", "H " + "[" * 5000])
def test_odd_lines_with_a_right_checksum_are_one_sentence(tmp_path, line):
    log = LogFile(tmp_path / "log")
    log.append([header_line(GREETING), line])
    log.close()
    with pytest.raises(NotUnderstood, match="damaged at line 2"):
        read_log(tmp_path / "log", RUN)
