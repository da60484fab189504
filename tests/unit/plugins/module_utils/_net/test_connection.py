# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which interfaces the connection of Ansible depends on, over sudo, other servers than sshd, policy routing and IPv6."""

from __future__ import annotations

import json

from ansible_collections.cachefleet.storage.plugins.module_utils._net.connection import Peer, carrying, find_peers
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

LINKS = Links(
    [
        Link("lo", 1, 65536),
        Link("eth0", 2, 1500),
        Link("eth1", 3, 1500),
        Link("eth0.7", 4, 1500, kind="vlan", lower=("eth0",)),
        Link("bond0", 5, 1500, kind="bond", lower=("eth2",)),
        Link("eth2", 6, 1500, master="bond0"),
    ]
)


class Proc:
    """A /proc with processes, their parents, variables and sockets."""

    def __init__(self, root):
        self.root = root

    def process(self, pid, parent, name="sh", environ=b"", sockets=()):
        place = self.root / "proc" / str(pid)
        (place / "fd").mkdir(parents=True)
        (place / "stat").write_text(f"{pid} ({name} (x)) S {parent} 1 1 0\n")
        (place / "comm").write_text(f"{name}\n")
        (place / "environ").write_bytes(environ)
        for number, inode in enumerate(sockets):
            (place / "fd" / str(number)).symlink_to(f"socket:[{inode}]")

    def tcp(self, *rows, file="tcp"):
        place = self.root / "proc/net"
        place.mkdir(parents=True, exist_ok=True)
        lines = [
            f" {n}: {local}:0016 {remote}:C350 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1"
            for n, (local, remote, state, inode) in enumerate(rows)
        ]
        (place / file).write_text("\n".join(["  sl local rem st", *lines]) + "\n")


def test_ssh_connection_is_found_above_sudo(tmp_path):
    proc = Proc(tmp_path)
    proc.process(900, 1, "sshd")
    proc.process(901, 900, "sh", b"HOME=/root\0SSH_CONNECTION=192.0.2.9 50000 192.0.2.1 22\0")
    proc.process(902, 901, "sudo", b"")
    proc.process(903, 902, "python3", b"HOME=/root\0")
    assert find_peers(tmp_path, 903) == (Peer("192.0.2.9", "192.0.2.1"),)


def test_ipv6_with_scope_and_ipv4_mapped_address(tmp_path):
    proc = Proc(tmp_path)
    proc.process(5, 1, "sh", b"SSH_CONNECTION=fe80::9%eth0 50000 fe80::1%eth0 22")
    proc.process(6, 1, "sh", b"SSH_CONNECTION=::ffff:192.0.2.9 50000 ::ffff:192.0.2.1 22")
    assert find_peers(tmp_path, 5) == (Peer("fe80::9%eth0", "fe80::1%eth0"),)
    assert find_peers(tmp_path, 6) == (Peer("192.0.2.9", "192.0.2.1"),)


def test_connections_of_ancestors_are_used_without_ssh_connection(tmp_path):
    proc = Proc(tmp_path)
    proc.tcp(("010200C0", "090200C0", "01", "77"), ("010200C0", "080200C0", "06", "78"))
    proc.process(10, 1, "otherd", sockets=("77", "78"))
    proc.process(11, 10, "python3")
    assert find_peers(tmp_path, 11) == (Peer("192.0.2.9", "192.0.2.1"),)


def test_all_sshd_connections_are_used_outside_the_process_tree(tmp_path):
    proc = Proc(tmp_path)
    proc.tcp(("010200C0", "090200C0", "01", "77"))
    proc.tcp(("B80D0120000000000000000001000000", "B80D0120000000000000000009000000", "01", "79"), file="tcp6")
    proc.process(10, 1, "sshd", sockets=("77",))
    proc.process(11, 1, "sshd-session", sockets=("79",))
    proc.process(12, 1, "python3", sockets=())
    assert set(find_peers(tmp_path, 12)) == {Peer("192.0.2.9", "192.0.2.1"), Peer("2001:db8::9", "2001:db8::1")}


def test_local_process_has_no_peer(tmp_path):
    Proc(tmp_path).process(12, 1, "cron")
    assert find_peers(tmp_path, 12) == ()


def _runner(route, addresses=()):
    return ScriptedRunner(
        {
            ("ip", "-json", "route", "get"): route,
            ("ip", "-json", "address"): Reply(json.dumps([{}, *({"ifname": name, "addr_info": [{"local": "x"}]} for name in addresses)])),
        }
    )


def test_outgoing_and_incoming_interfaces_with_related_links_are_included():
    runner = _runner(Reply('[{"dst":"192.0.2.9","dev":"bond0"}]'), ["eth0"])
    assert carrying(runner, LINKS, [Peer("192.0.2.9", "192.0.2.1")]) == {"bond0", "eth2", "eth0", "eth0.7"}
    assert ("ip", "-json", "route", "get", "192.0.2.9", "from", "192.0.2.1") in runner.calls, "policy routing may go by the local address"


def test_local_address_is_omitted_if_rejected_by_kernel():
    runner = _runner([Reply(rc=2, stderr="RTNETLINK answers: Network is unreachable"), Reply('[{"dev":"eth1"}]')])
    assert carrying(runner, LINKS, [Peer("192.0.2.9", "192.0.2.1")]) == {"eth1"}


def test_link_local_address_determines_its_interface():
    runner = _runner(Reply("[]"))
    assert carrying(runner, LINKS, [Peer("fe80::9%eth1", "fe80::1%eth1")]) == {"eth1"}


def test_local_connection_depends_on_no_interface():
    assert carrying(_runner(Reply('[{"dev":"lo"}]'), ["lo"]), LINKS, [Peer("127.0.0.1", "127.0.0.1")]) == frozenset()
    assert carrying(_runner(Reply("")), LINKS, []) == frozenset()
