# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module ``path_mtu_info`` does: the ways from this host to its peers, over IP and, where AoE is, on layer 2. Changes nothing.

The largest packet that gets to another host whole, and between which two hops a larger one is lost.

Echo requests that must not be fragmented, sent from a raw socket: it needs root and no other program. A router on whose next link
a packet is too large reports it (RFC 1191, RFC 792 type 3 code 4, with the MTU of that link); a switch says nothing and drops the
frame, which only probes with a limited number of hops can place. Sizes are IP packets, header included.

Sources: ip(7) (``IP_MTU_DISCOVER``, ``IP_RECVERR``, ``struct sock_extended_err``), icmp(7).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import ipaddress
import json
import os
import select
import socket
import struct
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import HEADER, payload
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.output import parse_sancheck

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

#: Not in the socket module of Python 3.8: linux/in.h, linux/errqueue.h.
_IP_TTL, _IP_MTU_DISCOVER, _IP_RECVERR = 2, 10, 11
_PMTUDISC_PROBE = 3
_ERRQUEUE = 0x2000
_ORIGIN_LOCAL, _ORIGIN_ICMP = 1, 2
_ECHO_REPLY, _UNREACHABLE, _ECHO, _EXCEEDED = 0, 3, 8, 11
_FRAG_NEEDED = 4
_EXTENDED_ERROR = struct.Struct("=IBBBBII")
#: Bytes of the headers of IP and ICMP.
HEADERS = 28
#: Every host takes packets of this size whole (RFC 791).
SMALL = 576
_TTL = 64
_MOST_HOPS = 16
#: Bytes that Ethernet adds to a packet: what a switch calls the frame size; a VLAN tag is 4 more.
ETHERNET = 18

REPLY, TOO_BIG, LOCAL, EXPIRED, UNREACHABLE, SILENT = "reply", "too_big", "local", "expired", "unreachable", "silent"


@frozen
class ProbeReply:
    """What came back for one packet.

    :param kind: ``reply`` from the peer; ``too_big`` from a router; ``local``: it did not fit this host's own interface; ``expired``: from the
        hop at which its hops were used up; ``unreachable``; ``silent``: nothing.
    :param sender: address of who answered.
    :param mtu: of the link on which it does not fit, if reported.
    """

    kind: str
    sender: str = ""
    mtu: int | None = None


#: From a size and a number of hops to what came back.
Probe = t.Callable[[int, int], ProbeReply]


@frozen
class Limit:
    """Where packets get too large: behind ``sender`` and before ``receiver``, which are addresses; empty if not known.

    :param kind: ``interface``: on this host; ``router``: reported by a router; ``silent``: not reported.
    :param mtu: of that link, as reported; None if it was not.
    """

    kind: str
    sender: str = ""
    receiver: str = ""
    mtu: int | None = None


@frozen
class Path:
    """The way to one peer.

    :param mtu: the largest packet that gets there, if it is smaller than wanted; None if the peer does not answer at all.
    """

    address: str
    required: int
    reachable: bool
    mtu: int | None = None
    limit: Limit | None = None
    probes: int = 0

    @property
    def ok(self) -> bool:
        """Whether packets of the wanted size get there."""
        return self.reachable and self.mtu is not None and self.mtu >= self.required


class _Counted:
    """A probe that repeats if there is no answer, and counts."""

    def __init__(self, probe: Probe, tries: int) -> None:
        self.probe = probe
        self.tries = tries
        self.count = 0

    def __call__(self, size: int, hops: int = _TTL) -> ProbeReply:
        answer = ProbeReply(SILENT)
        for _attempt in range(self.tries):
            self.count += 1
            answer = self.probe(size, hops)
            if answer.kind != SILENT:
                break
        return answer


def examine(address: str, required: int, probe: Probe, tries: int = 2) -> Path:
    """Find out whether packets of ``required`` bytes get to a host, and if not, how large they may be and where larger ones are lost.

    :param probe: sends one packet that must not be fragmented.
    :param tries: packets to send before silence counts.
    """
    counted = _Counted(probe, tries)
    first = counted(required)
    if first.kind == REPLY:
        return Path(address, required, True, required, probes=counted.count)
    small = min(SMALL, required)
    if small == required or counted(small).kind != REPLY:
        return Path(address, required, False, probes=counted.count)
    passes, last = _bisect(counted, small, required, first)
    return Path(address, required, True, passes, _locate(counted, address, passes, last), counted.count)


def _bisect(probe: _Counted, passes: int, fails: int, answer: ProbeReply) -> tuple[int, ProbeReply]:
    """The largest size that passes, and what came back for one more byte."""
    while fails - passes > 1:
        hint = answer.mtu
        size = hint if hint is not None and passes < hint < fails else (passes + fails) // 2
        found = probe(size)
        if found.kind == REPLY:
            passes = size
            # The router that reported this size has also reported the limit.
            if size == hint:
                fails = size + 1
        else:
            fails, answer = size, found
    return passes, answer


def _locate(probe: _Counted, address: str, passes: int, answer: ProbeReply) -> Limit:
    if answer.kind == LOCAL:
        return Limit("interface", mtu=answer.mtu)
    hops = _trace(probe, address)
    if answer.kind == TOO_BIG:
        place = hops.index(answer.sender) if answer.sender in hops else None
        receiver = hops[place + 1] if place is not None and place + 1 < len(hops) else ""
        return Limit("router", answer.sender, receiver, answer.mtu)
    reached = ""
    for place, hop in enumerate(hops):
        # A router that never answers gives no size either.
        if not hop:
            continue
        found = probe(passes + 1, place + 1)
        if found.kind not in (EXPIRED, REPLY):
            return Limit("silent", reached, hop)
        reached = found.sender or hop
    return Limit("silent", reached, address)


def _trace(probe: _Counted, address: str) -> list[str]:
    """The hops on the way, the last one the peer; empty text for one that does not answer."""
    hops: list[str] = []
    for hop in range(1, _MOST_HOPS + 1):
        found = probe(SMALL, hop)
        if found.kind == REPLY:
            break
        hops.append(found.sender if found.kind == EXPIRED else "")
    return [*hops, address]


def sentences(path: Path, name: str, own: str) -> list[str]:
    """What is wrong and what to do; nothing if packets of the wanted size get there.

    :param name: of the peer, as named by the user.
    :param own: what this end is called: its interface, or its address.
    """
    peer = f"{name} ({path.address})" if name and name != path.address else path.address
    if path.ok:
        return []
    if not path.reachable:
        return [f"{peer} does not answer echo requests, so the path MTU cannot be determined: is it up, and does a firewall drop ICMP?"]
    limit = path.limit or Limit("silent")
    found = f"packets of {path.required} bytes do not get to {peer}, the largest that do have {path.mtu}"
    if limit.kind == "interface":
        return [f"{own}: {found}: {own} itself has the MTU {limit.mtu or path.mtu}. Set it to {path.required}."]
    if limit.kind == "router":
        between = f"between {limit.sender} and {limit.receiver or 'the next hop'}"
        return [
            f"{own}: {found}: {between} the MTU is {limit.mtu or path.mtu}, reported by {limit.sender}. "
            f"Set it to {path.required} on both, and on every switch between."
        ]
    between = f"between {limit.sender or own} and {limit.receiver or peer}"
    return [
        f"{own}: {found}: larger ones are lost {between} without an error message, as when a switch port or the interface of the receiver has a smaller MTU."
        f" Set every switch port between the two to frames of at least {path.required + ETHERNET} bytes (4 more for each VLAN tag; some switches count without"
        f" these {ETHERNET}), and the interface of {limit.receiver or peer} to the MTU {path.required}."
    ]


class EchoSocket:
    """Echo requests to one address from a raw socket of this host.

    :param interface: to send from, regardless of the routes; None to follow them.
    :param timeout: seconds to wait for an answer; less is waited once a round trip is known.
    :raises StorageError: if there is no way to the address, or no permission.
    """

    #: A busy host answers later than its first packet shows.
    _ROUND_TRIPS = 10
    _LEAST = 0.25

    def __init__(self, address: str, interface: str | None = None, timeout: float = 1.0) -> None:
        self.address = address
        self.timeout = timeout
        self.identifier = os.getpid() & 0xFFFF
        self.sequence = 0
        self.round_trip: float | None = None
        try:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            self.socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_PROBE)
            self.socket.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
            if interface:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
            self.socket.connect((address, 0))
        except PermissionError:
            raise CommandFailed("Only root may send the packets that find out an MTU: run this task with become: true.", item=address) from None
        except OSError as error:
            raise StorageError(f"There is no way to {address} from this host: {error.strerror}.", item=address) from None

    def close(self) -> None:
        """Give the socket back."""
        self.socket.close()

    @property
    def own_address(self) -> str:
        """The address that this host sends from."""
        return str(self.socket.getsockname()[0])

    def __call__(self, size: int, hops: int) -> ProbeReply:
        """One packet of ``size`` bytes, IP header included, that may pass ``hops`` routers and one."""
        self.sequence = (self.sequence + 1) & 0xFFFF
        self.socket.setsockopt(socket.IPPROTO_IP, _IP_TTL, hops)
        started = time.monotonic()
        try:
            self.socket.send(echo_request(self.identifier, self.sequence, size))
        except OSError as error:
            queued = self._queued_error(any_packet=True)
            if error.errno == errno.EMSGSIZE:
                return ProbeReply(LOCAL, mtu=queued.mtu if queued is not None else None)
            return queued or ProbeReply(UNREACHABLE)
        answer = self._wait(started)
        if answer.kind == REPLY:
            self.round_trip = max(self.round_trip or 0.0, time.monotonic() - started)
        return answer

    def _wait(self, started: float) -> ProbeReply:
        patience = self.timeout if self.round_trip is None else min(self.timeout, max(self._LEAST, self._ROUND_TRIPS * self.round_trip))
        poller = select.poll()
        poller.register(self.socket, select.POLLIN | select.POLLERR)
        while True:
            left = started + patience - time.monotonic()
            if left <= 0:
                return ProbeReply(SILENT)
            for _descriptor, events in poller.poll(left * 1000):
                # Errors first: while one is queued, reading fails with it.
                answer = self._queued_error() if events & select.POLLERR else self._reply()
                if answer is not None:
                    return answer

    def _reply(self) -> ProbeReply | None:
        with contextlib.suppress(OSError):
            packet = self.socket.recv(65536, socket.MSG_DONTWAIT)
            if is_reply(packet, self.identifier, self.sequence):
                return ProbeReply(REPLY, self.address)
        return None

    def _queued_error(self, *, any_packet: bool = False) -> ProbeReply | None:
        try:
            data, controls, _flags, _peer = self.socket.recvmsg(65536, 512, _ERRQUEUE | socket.MSG_DONTWAIT)
        except OSError:
            return None
        if not any_packet and not is_request(data, self.identifier, self.sequence):
            return None
        return next((parse_error(payload) for level, kind, payload in controls if (level, kind) == (socket.IPPROTO_IP, _IP_RECVERR)), None)


def echo_request(identifier: int, sequence: int, size: int) -> bytes:
    """An ICMP echo request that makes an IP packet of ``size`` bytes."""
    body = bytes(max(size - HEADERS, 0))
    header = struct.pack("!BBHHH", _ECHO, 0, 0, identifier, sequence)
    return struct.pack("!BBHHH", _ECHO, 0, checksum(header + body), identifier, sequence) + body


def checksum(data: bytes) -> int:
    """The checksum of the internet (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def is_reply(packet: bytes, identifier: int, sequence: int) -> bool:
    """Whether a received packet, which begins with its IP header, answers one request."""
    header = (packet[0] & 0x0F) * 4 if packet else 0
    return packet[header : header + 1] == bytes([_ECHO_REPLY]) and packet[header + 4 : header + 8] == struct.pack("!HH", identifier, sequence)


def is_request(packet: bytes, identifier: int, sequence: int) -> bool:
    """Whether an error is about one request: what comes with it is that request, without its IP header."""
    return packet[:1] == bytes([_ECHO]) and packet[4:8] == struct.pack("!HH", identifier, sequence)


def parse_error(control: bytes) -> ProbeReply | None:
    """``struct sock_extended_err`` with the address of the sender behind it; None if it is about something else."""
    if len(control) < _EXTENDED_ERROR.size:
        return None
    number, origin, kind, code, _pad, info, _data = _EXTENDED_ERROR.unpack_from(control)
    address = control[_EXTENDED_ERROR.size : _EXTENDED_ERROR.size + 8]
    sender = socket.inet_ntoa(address[4:8]) if len(address) == 8 and address[:2] == struct.pack("=H", socket.AF_INET) else ""
    if origin == _ORIGIN_LOCAL:
        return ProbeReply(LOCAL if number == errno.EMSGSIZE else UNREACHABLE, mtu=info or None)
    if origin != _ORIGIN_ICMP:
        return None
    if kind == _UNREACHABLE:
        return ProbeReply(TOO_BIG, sender, info or None) if code == _FRAG_NEEDED else ProbeReply(UNREACHABLE, sender)
    return ProbeReply(EXPIRED, sender) if kind == _EXCEEDED else None


def path_to_dict(path: Path, name: str, own: str) -> dict[str, t.Any]:
    return {
        "name": name or path.address,
        "address": path.address,
        "reachable": path.reachable,
        "mtu": path.mtu,
        "wanted": path.required,
        "ok": path.ok,
        "limit": dataclasses.asdict(path.limit) if path.limit is not None else None,
        "probes": path.probes,
        "sentences": sentences(path, name, own),
    }


PEER_OPTIONS = {
    "address": {"type": "str", "required": True},
    "name": {"type": "str", "default": ""},
    "mtu": {"type": "int"},
}
_MOST = 65535
_SANCHECK = "aoe-sancheck"


@frozen
class Interface:
    """One network interface with its addresses of IP version 4."""

    name: str
    mtu: int
    mac: str = ""
    up: bool = True
    addresses: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, t.Any]:
        return {**vars(self), "addresses": list(self.addresses), "networks": list(self.networks)}


def parse_addresses(text: str) -> list[Interface]:
    """``ip -json address show`` (ip-address(8)), without the loopback.

    :raises NotUnderstood: if it is no such list.
    """
    try:
        rows = json.loads(text or "[]")
        return [
            Interface(
                row["ifname"],
                row["mtu"],
                row.get("address", ""),
                "UP" in row.get("flags", []),
                tuple(one["local"] for one in _version4(row)),
                tuple(str(ipaddress.ip_network(f"{one['local']}/{one.get('prefixlen', 32)}", strict=False)) for one in _version4(row)),
            )
            for row in rows
            if row.get("link_type") != "loopback" and "ifname" in row
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotUnderstood("ip -json address show printed something that is not its list of interfaces: is iproute2 older than 4.18?") from None


def _version4(row: t.Mapping[str, t.Any]) -> list[t.Mapping[str, t.Any]]:
    return [one for one in row.get("addr_info", []) if one.get("family") == "inet" and "local" in one]


def read_interfaces(runner: Runner) -> list[Interface]:
    """The interfaces of this host."""
    return parse_addresses(runner.run(["ip", "-json", "address", "show"]).stdout)


@frozen
class Peer:
    """A host to reach. ``mtu``: that packets should have; None for that of the interface of this host."""

    address: str
    name: str = ""
    mtu: int | None = None


def read_peers(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[Peer]:
    """The peers from the option.

    :raises BadInput: for what is no address of IP version 4, or an MTU out of range.
    """
    peers = []
    for entry in entries:
        peer = Peer(entry["address"].strip(), entry.get("name") or "", entry.get("mtu"))
        try:
            version = ipaddress.ip_address(peer.address).version
        except ValueError:
            raise BadInput(f"'{peer.address}' is not an IP address: use the address that {peer.name or 'the peer'} has on that network.") from None
        if version != 4:
            raise BadInput(f"{peer.address} is an address of IP version 6, over which no MTU is measured here: use one of version 4.", item=peer.address)
        if peer.mtu is not None and not SMALL <= peer.mtu <= _MOST:
            raise BadInput(f"{peer.address}: an MTU to prove is a number from {SMALL} to {_MOST}, and not {peer.mtu}.", item=peer.address)
        peers.append(peer)
    return peers


def measure(
    peer: Peer, interface: str | None, interfaces: t.Sequence[Interface], timeout: float, connect: t.Callable[..., t.Any] = EchoSocket
) -> dict[str, t.Any]:
    """The way to one peer, as plain data.

    :raises StorageError: if this host has no way there, or no permission.
    """
    probe = connect(peer.address, interface, timeout)
    try:
        address = probe.own_address
        own = next((one for one in interfaces if address in one.addresses), None)
        required = peer.mtu or (own.mtu if own is not None else 1500)
        path = examine(peer.address, required, probe)
    finally:
        probe.close()
    found = path_to_dict(path, peer.name, own.name if own is not None else address)
    return {**found, "interface": own.name if own is not None else None, "own_address": address}


def check_layer2(runner: Runner, interface: str | None, interfaces: t.Sequence[Interface]) -> list[dict[str, t.Any]]:
    """What aoe-sancheck finds of the ways to AoE targets; it takes some seconds."""
    words = [_SANCHECK, *([interface] if interface else [])]
    mtus = {one.name: one.mtu for one in interfaces}
    ways = []
    for device in parse_sancheck(runner.run(words, timeout=120).stdout):
        if interface and interface not in device.interfaces:
            continue
        known = [mtus[name] for name in device.interfaces if name in mtus]
        required = min(payload(mtu) for mtu in known) if known else None
        carried = min([device.payload, *(size for _name, _mac, size in device.weak)])
        ok = not device.weak and (required is None or carried >= required)
        ways.append(
            {
                "name": device.name,
                "interfaces": list(device.interfaces),
                "payload": carried,
                "wanted": required,
                "ok": ok,
                "sentences": [] if ok else [_about_way(device.name, device.interfaces, carried, required, min(known) if known else None)],
            }
        )
    return ways


def _about_way(name: str, interfaces: t.Sequence[str], carried: int, required: int | None, mtu: int | None) -> str:
    need = f" Set the interface of the target to the MTU {mtu} and every switch port between to frames of at least {mtu + ETHERNET} bytes." if mtu else ""
    return (
        f"{' and '.join(interfaces)}: frames to the AoE target {name} carry {carried} bytes and not {required or 'more'}: between the two, or at the target,"
        f" something accepts no frame larger than the MTU {carried + HEADER} needs.{need}"
    )


def run_module(module: AnsibleModule, runner: Runner | None = None, connect: t.Callable[..., t.Any] = EchoSocket) -> t.NoReturn:
    """The body of the module."""
    runner = runner or Runner()
    params = module.params
    problems: list[str] = []
    paths: list[dict[str, t.Any]] = []
    layer2: list[dict[str, t.Any]] = []
    try:
        peers = read_peers(params["peers"])
        interfaces = read_interfaces(runner)
        own = {address for one in interfaces for address in one.addresses}
        required = params["interface"]
        if required and required not in {one.name for one in interfaces}:
            raise BadInput(f"There is no interface {required} on this host: see ip link.", item=required)
        for peer in peers:
            if peer.address in own:
                continue
            paths.append(measure(peer, required, interfaces, params["timeout"], connect))
        if params["layer2"]:
            layer2 = check_layer2(runner, required, interfaces)
    except StorageError as error:
        module.fail_json(**error.to_dict())
    problems = [sentence for found in (*paths, *layer2) for sentence in found["sentences"]]
    module.exit_json(
        changed=False,
        ok=not problems and all(found["ok"] for found in (*paths, *layer2)),
        paths=paths,
        layer2=layer2,
        interfaces=[one.to_dict() for one in interfaces],
        problems=problems,
    )
