# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import ssh


@contextlib.contextmanager
def listening(greeting=b""):
    """A server that sends a greeting to whoever connects, and keeps the connection."""
    with contextlib.closing(socket.create_server((ssh.HOST, 0))) as server:
        kept = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _address = server.accept()
                    kept.append(connection)
                    connection.sendall(greeting)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        for connection in kept:
            connection.close()


def test_port_in_use_is_not_free():
    with listening() as port:
        assert not ssh.port_is_free(port)


def test_fixed_port_in_use_is_refused():
    with listening() as port, pytest.raises(Refused, match=f"demo/node1: port {port} is used by another process"):
        ssh.choose_port(port, None, "demo/node1")


def test_assigned_port_is_kept_while_free():
    assert ssh.choose_port(None, 22777, "demo/node1", free=lambda _port: True) == 22777
    assert ssh.choose_port(None, 22777, "demo/node1", free=lambda port: port != 22777) != 22777


def test_machines_and_racks_get_distinct_ports():
    first = ssh.choose_port(None, None, "demo/node1", free=lambda _port: True)
    assert first in ssh.PORTS
    assert ssh.choose_port(None, None, "demo/node1", taken={first}, free=lambda _port: True) != first
    assert ssh.choose_port(None, None, "other/node1", free=lambda _port: True) != first


def test_port_exhaustion_is_an_error():
    with pytest.raises(Refused, match="every port from 22200 to 23199"):
        ssh.choose_port(None, None, "demo/node1", free=lambda _port: False)


def test_only_an_ssh_banner_counts_as_a_response():
    with listening(b"SSH-2.0-OpenSSH_9.2p1\r\n") as port:
        assert ssh.greets(port)
    with listening() as port:
        assert not ssh.greets(port, patience=0.1)


def test_wait_ends_if_the_machine_ends():
    assert not ssh.wait_for_login(None, 1, pathlib.Path("/k"), pathlib.Path("/h"), deadline=float("inf"), alive=lambda: False)


def test_known_hosts_has_one_line_per_port():
    text = ssh.known_hosts_text({22301: "ssh-ed25519 BBBB root@image", 22300: "ssh-ed25519 AAAA"})
    assert text == "[127.0.0.1]:22300 ssh-ed25519 AAAA\n[127.0.0.1]:22301 ssh-ed25519 BBBB\n"


def test_ssh_files_of_the_user_are_ignored():
    argv = ssh.ssh_arguments(22300, pathlib.Path("/r/key"), pathlib.Path("/r/hosts"), ["true"])
    assert argv[:3] == ["ssh", "-F", "none"]
    assert {"UserKnownHostsFile=/r/hosts", "StrictHostKeyChecking=yes", "BatchMode=yes"} <= set(argv)
    assert argv[-2:] == ["root@127.0.0.1", "true"]


def test_slow_server_gets_increasing_connect_timeouts(monkeypatch):
    """With one second for each, a machine that was up for nine minutes never answered: every attempt left it a process more."""
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(ssh.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(ssh.time, "sleep", lambda _seconds: None)
    patience = []
    monkeypatch.setattr(ssh, "greets", lambda _port, seconds: patience.append(seconds) or seconds > 12)
    logins = []
    monkeypatch.setattr(ssh, "logs_in", lambda *arguments: logins.append(arguments[-1]) or True)
    assert ssh.wait_for_login(None, 1, pathlib.Path("/k"), pathlib.Path("/h"), deadline=600.0, alive=lambda: True)
    assert patience[0] < 5
    assert patience == sorted(patience)
    assert logins[0] > patience[-1]
