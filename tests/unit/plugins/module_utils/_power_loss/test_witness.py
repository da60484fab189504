# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import witness as witness_module
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import InPlace, Renamed
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.opened_target import make_file
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.verifier import verify
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import Witness, log_path
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import note_event, read_log
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Load, Writer, connect

RUN, OTHER = "5a" * 16, "5b" * 16
SECRET = b"s" * 32
GREETING = {"run": RUN, "device": "serial S1", "spec": RunSpec("/file", "file", None, 64 * 4096, direct=False).to_dict()}


@pytest.fixture
def witness(tmp_path):
    with running(tmp_path) as witness:
        yield witness


@contextlib.contextmanager
def running(folder, hosts=("127.0.0.1",)):
    witness = Witness(folder, {RUN: SECRET}, hosts, "127.0.0.1")
    thread = threading.Thread(target=witness.serve)
    thread.start()
    try:
        yield witness
    finally:
        witness.stop()
        thread.join()


def load(**more):
    return Load(**{"block_size": 4096, "places": 64, "writes": 100, **more})


def write(witness, medium, load):
    connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    with connection:
        Writer(medium, Blocks(bytes.fromhex(RUN), load.block_size), load, connection, session).run()


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def log_of(folder, *, events):
    def complete():
        with contextlib.suppress(NotUnderstood):
            return read_log(log_path(folder, RUN), RUN).events == events
        return False

    wait_for(complete)
    return read_log(log_path(folder, RUN), RUN)


@pytest.mark.parametrize("order", ["random", "sequential"])
@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("sync", ["fsync", "fdatasync", "o_dsync", "fua", "none"])
def test_every_acknowledged_write_is_found(tmp_path, witness, order, depth, sync):
    path = tmp_path / "file"
    os.close(make_file(path, 64 * 4096))
    medium = InPlace(path, 4096, sync, direct=False)
    write(witness, medium, load(order=order, depth=depth))
    log = log_of(tmp_path, events=("ended",))
    assert (len(log.acknowledged), log.writer) == (100, GREETING)
    reader = InPlace(path, 4096, sync, direct=False, readable=True)
    result = verify(log, Blocks(bytes.fromhex(RUN), 4096), reader.read, rebooted=True)
    assert result.damage == ()
    for one in (medium, reader):
        one.close()


def test_renamed_files_are_found(tmp_path, witness):
    folder = tmp_path / "folder"
    folder.mkdir()
    medium = Renamed(folder, 4096, "fsync")
    write(witness, medium, load(writes=20, places=8))
    result = verify(log_of(tmp_path, events=("ended",)), Blocks(bytes.fromhex(RUN), 4096), medium.read, rebooted=True)
    assert (result.places > 1, result.damage) == (True, ())
    (folder / sorted(os.listdir(folder))[0]).unlink()
    assert verify(log_of(tmp_path, events=("ended",)), Blocks(bytes.fromhex(RUN), 4096), medium.read, rebooted=True).count("lost") == 1
    medium.close()


def test_bulk_load_is_acknowledged_after_its_one_sync(tmp_path, witness):
    path = tmp_path / "file"
    os.close(make_file(path, 64 * 4096))
    calls = []

    class Counting(InPlace):
        def sync(self):
            calls.append(len(read_log(log_path(tmp_path, RUN), RUN).acknowledged))
            super().sync()

    medium = Counting(path, 4096, "none", direct=False)
    write(witness, medium, load(order="sequential", bulk=True, writes=100))
    assert calls == [0]
    assert len(log_of(tmp_path, events=("ended",)).acknowledged) == 64
    medium.close()


def test_appending_load_ends_with_its_range(tmp_path, witness):
    os.close(make_file(tmp_path / "file", 0))
    medium = InPlace(tmp_path / "file", 4096, "fsync", direct=False)
    write(witness, medium, load(order="sequential", once=True))
    assert (tmp_path / "file").stat().st_size == 64 * 4096
    medium.close()


def test_nothing_is_acknowledged_whose_sync_fails(tmp_path, witness):
    class Failing(InPlace):
        def write(self, place, data):
            raise OSError(5, "Input/output error")

    os.close(make_file(tmp_path / "file", 64 * 4096))
    medium = Failing(tmp_path / "file", 4096, "fsync", direct=False)
    with pytest.raises(CommandFailed, match="Input/output error"):
        write(witness, medium, load())
    assert log_of(tmp_path, events=("connection_lost",)).acknowledged == ()
    medium.close()


def test_writer_with_another_secret_is_refused(tmp_path, witness):
    with pytest.raises(Refused, match="refused this writer"):
        connect("127.0.0.1", witness.port, b"x" * 32, GREETING)
    assert not log_path(tmp_path, RUN).exists()


def test_writer_that_answers_too_late_learns_of_that_reason(tmp_path, witness, monkeypatch):
    """As on a host on which many writers begin at once."""
    monkeypatch.setattr(witness_module, "_GREETING_SECONDS", 0.1)
    sign = messages._code
    monkeypatch.setattr(messages, "_code", lambda secret, text: time.sleep(1) or sign(secret, text))
    with pytest.raises((Refused, CommandFailed), match=r"answered too late|ended the connection"):
        connect("127.0.0.1", witness.port, SECRET, GREETING)
    assert not log_path(tmp_path, RUN).exists()


def test_unknown_run_is_refused(witness):
    with pytest.raises(Refused, match="refused this writer"):
        connect("127.0.0.1", witness.port, SECRET, {"run": OTHER})


def test_hosts_outside_of_the_play_are_refused(tmp_path):
    with running(tmp_path, hosts=["127.0.0.2"]) as witness, pytest.raises((Refused, CommandFailed), match=r"closed the connection|ended the connection"):
        connect("127.0.0.1", witness.port, SECRET, GREETING)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "anywhere"])
def test_witness_listens_on_one_address_only(tmp_path, address):
    with pytest.raises(BadInput):
        Witness(tmp_path, {}, [], address)


def test_repeated_and_forged_messages_are_not_logged(tmp_path, witness):
    connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    first = session.pack(messages.Message(messages.ACKNOWLEDGED, 1, 0, 4096, 1))
    connection.sendall(first + first)
    assert len(log_of(tmp_path, events=("connection_lost",)).acknowledged) == 1
    connection.close()


def test_noise_does_not_stop_the_witness(tmp_path, witness):
    for noise in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\2[]" + b"x" * 32):
        with socket.create_connection(("127.0.0.1", witness.port)) as connection:
            connection.sendall(noise)
    connect("127.0.0.1", witness.port, SECRET, GREETING)[0].close()


def test_witness_that_is_gone_ends_the_run(tmp_path):
    with running(tmp_path) as witness:
        connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    connection.shutdown(socket.SHUT_RDWR)
    os.close(make_file(tmp_path / "file", 64 * 4096))
    medium = InPlace(tmp_path / "file", 4096, "none", direct=False)
    with pytest.raises(CommandFailed, match="The witness is gone"):
        Writer(medium, Blocks(bytes.fromhex(RUN), 4096), load(), connection, session).run()
    connection.close()
    medium.close()


def test_unreachable_witness_is_one_sentence():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(CommandFailed, match=f"127.0.0.1 port {port} cannot be reached"):
        connect("127.0.0.1", port, SECRET, GREETING)


def test_activity_after_the_cut_is_noted(tmp_path, witness):
    connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    connection.sendall(session.pack(messages.Message(messages.ACKNOWLEDGED, 1, 0, 4096, 1)))
    wait_for(lambda: read_log(log_path(tmp_path, RUN), RUN).acknowledged)
    note_event(log_path(tmp_path, RUN), "cut")
    assert not read_log(log_path(tmp_path, RUN), RUN).active_after_cut
    connection.sendall(session.pack(messages.Message(messages.PROGRESS)))
    wait_for(lambda: read_log(log_path(tmp_path, RUN), RUN).active_after_cut)
    connection.close()


@pytest.fixture
def log(tmp_path, witness):
    """A log with a header, two acknowledged writes and an end, and its lines."""
    connection, session = connect("127.0.0.1", witness.port, SECRET, GREETING)
    kinds = [messages.Message(messages.ACKNOWLEDGED, number, 0, 4096, number) for number in (1, 2)]
    connection.sendall(b"".join(session.pack(one) for one in (*kinds, messages.Message(messages.ENDED))))
    log_of(tmp_path, events=("ended",))
    connection.close()
    return log_path(tmp_path, RUN)


def test_line_that_a_killed_witness_left_is_ignored_and_continued_after(log):
    text = log.read_text()
    log.write_text(text + "A 3 0 40")
    assert len(read_log(log, RUN).acknowledged) == 2
    note_event(log, "cut")
    assert read_log(log, RUN).events == ("ended", "cut")


def test_damaged_log_is_refused(log):
    log.write_text(log.read_text().replace("A 1 ", "A 7 "))
    with pytest.raises(NotUnderstood, match="damaged at line 2"):
        read_log(log, RUN)


def test_log_of_another_run_is_refused(log):
    with pytest.raises(Refused, match=f"is of the run {RUN}"):
        read_log(log, OTHER)


def test_missing_log_is_one_sentence(tmp_path):
    with pytest.raises(NotUnderstood, match="cannot be read"):
        read_log(tmp_path / "none", RUN)


@pytest.mark.parametrize("run", ["../../etc/passwd", "", "5A" * 16])
def test_run_id_cannot_lead_out_of_the_folder(tmp_path, run):
    with pytest.raises(BadInput, match="not the id of a run"):
        log_path(tmp_path, run)


@pytest.mark.parametrize(
    "options", [{"depth": 0}, {"depth": 33}, {"order": "any"}, {"places": 15, "depth": 8}, {"bulk": True}, {"once": True, "order": "sequential", "depth": 2}]
)
def test_invalid_loads_are_rejected(options):
    with pytest.raises(BadInput):
        load(**options)


def test_existing_file_is_never_taken(tmp_path):
    (tmp_path / "file").write_text("data")
    with pytest.raises(CommandFailed, match="cannot be made"):
        os.close(make_file(tmp_path / "file", 4096))
