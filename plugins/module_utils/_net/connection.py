# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which interfaces carry the connection that this module came over.

The peer is found in three places, the surest one first: the variable ``SSH_CONNECTION`` of this process or of one it descends
from (sudo takes it out of its child's, not out of its parent's), the TCP connections that those processes hold, and, when become
starts the module in another tree of processes, the connections of every process of sshd. Which interface leads to the peer is
the kernel's route, policy routing included; the answer may leave by another interface than the one that the local address is
on, so both count.

Sources: ssh(1) "ENVIRONMENT", proc(5) (``stat``, ``environ``, ``fd``, ``net/tcp``), ``ip -json route get`` of iproute2.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import sys
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Links

_ESTABLISHED = "01"
_SERVERS = ("sshd", "sshd-session", "dropbear")


@frozen
class Peer:
    """Both ends of a connection, as seen by the host. A link-local address of IPv6 has its interface behind a percent sign."""

    remote: str
    local: str


def find_peers(root: Path = Path("/"), pid: int | None = None) -> tuple[Peer, ...]:
    """The other ends of the connection that this process was started over; empty for a process of the host itself."""
    ancestors = _ancestors(root, os.getpid() if pid is None else pid)
    for one in ancestors:
        peer = _from_environment(root, one)
        if peer is not None:
            return (peer,)
    table = _connections(root)
    held = _held(root, ancestors, table)
    if held:
        return held
    return _held(root, [one for one in _processes(root) if _name(root, one) in _SERVERS], table)


def carrying(runner: Runner, links: Links, peers: t.Sequence[Peer]) -> frozenset[str]:
    """The interfaces over which the connection goes, and everything below and above them."""
    found: set[str] = set()
    for peer in peers:
        found |= {name for name in _ways(runner, peer) if name in links and links[name].name != "lo"}
    return frozenset(found.union(*(links.all_lower(name) | links.all_upper(name) for name in found)))


def _ways(runner: Runner, peer: Peer) -> set[str]:
    remote, local = (address.partition("%")[0] for address in (peer.remote, peer.local))
    zone = peer.remote.partition("%")[2]
    names = {zone} if zone else set()
    for more in (["from", local], []):
        completed = runner.run(["ip", "-json", "route", "get", remote, *(["dev", zone] if zone else []), *more], ok=None, item="ip")
        answer = _json(completed.stdout) if completed.rc == 0 else []
        if answer:
            names |= {str(route["dev"]) for route in answer if "dev" in route}
            break
    completed = runner.run(["ip", "-json", "address", "show", "to", local], ok=None, item="ip")
    for entry in _json(completed.stdout) if completed.rc == 0 else []:
        # An older ip prints an empty object for every interface that has no such address.
        if entry.get("ifname") and entry.get("addr_info"):
            names.add(str(entry["ifname"]))
    return names


def _json(text: str) -> list[t.Any]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _plain(address: str) -> str:
    """An address as it is looked up: an IPv4 address that a socket of IPv6 holds is an IPv4 address."""
    bare, percent, zone = address.partition("%")
    try:
        found = ipaddress.ip_address(bare)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found) + percent + zone


def _ancestors(root: Path, pid: int) -> list[int]:
    """A process and those that it descends from, the nearest first."""
    found: list[int] = []
    while pid > 1 and pid not in found:
        found.append(pid)
        try:
            # The name stands in parentheses and may hold blanks and parentheses itself.
            pid = int((root / "proc" / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def _from_environment(root: Path, pid: int) -> Peer | None:
    try:
        words = (root / "proc" / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for word in words:
        if word.startswith(b"SSH_CONNECTION="):
            match = re.match(r"^(\S+) \d+ (\S+) \d+$", os.fsdecode(word.partition(b"=")[2]))
            if match and _plain(match.group(1)) and _plain(match.group(2)):
                return Peer(_plain(match.group(1)), _plain(match.group(2)))
    return None


def _connections(root: Path) -> dict[str, Peer]:
    """Established TCP connections by the number of their socket."""
    found: dict[str, Peer] = {}
    for file in ("tcp", "tcp6"):
        try:
            lines = (root / "proc/net" / file).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in (line.split() for line in lines):
            if len(words) > 9 and words[3] == _ESTABLISHED:
                local, remote = (_plain(_address(word.partition(":")[0])) for word in words[1:3])
                if local and remote:
                    found[words[9]] = Peer(remote, local)
    return found


def _address(digits: str) -> str:
    """An address of ``/proc/net/tcp``: words of 32 bits in hexadecimal, each as a number of this processor."""
    raw = b"".join(int(digits[place : place + 8], 16).to_bytes(4, sys.byteorder) for place in range(0, len(digits), 8))
    return str(ipaddress.ip_address(raw))


def _held(root: Path, pids: t.Iterable[int], table: t.Mapping[str, Peer]) -> tuple[Peer, ...]:
    found: dict[Peer, None] = {}
    for pid in pids:
        try:
            handles = list((root / "proc" / str(pid) / "fd").iterdir())
        except OSError:
            continue
        for handle in handles:
            try:
                match = re.match(r"^socket:\[(\d+)\]$", os.readlink(handle))
            except OSError:
                continue
            if match and match.group(1) in table:
                found[table[match.group(1)]] = None
    return tuple(found)


def _processes(root: Path) -> list[int]:
    return [int(place.name) for place in (root / "proc").glob("[0-9]*") if place.name.isdigit()]


def _name(root: Path, pid: int) -> str:
    try:
        return (root / "proc" / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""
