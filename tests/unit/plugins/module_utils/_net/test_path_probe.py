# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The largest packet on a way, and where larger ones are lost, on networks that are simulated hop by hop."""

from __future__ import annotations

import errno
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._net import path_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._net.path_mtu import (
    Limit,
    ProbeReply,
    echo_request,
    examine,
    parse_error,
    path_to_dict,
    sentences,
)

PEER = "10.9.9.9"


class Network:
    """A row of links to the peer. Behind each but the last is a router.

    :param links: the MTU of each link; the first is that of this host's own interface.
    :param mute: numbers of routers (from 1) that never say anything; ``holes``: links (from 1) on which too large a packet vanishes.
    """

    def __init__(self, links, mute=(), holes=(), names_mtu=True, lossy=0):
        self.links, self.mute, self.holes, self.names_mtu, self.lossy, self.sent = links, mute, holes, names_mtu, lossy, []

    def router(self, number):
        return f"10.0.{number}.1"

    def __call__(self, size, hops):
        self.sent.append((size, hops))
        if self.lossy and len(self.sent) % self.lossy == 0:
            return ProbeReply("silent")
        if size > self.links[0]:
            return ProbeReply("local", mtu=self.links[0])
        for number, mtu in enumerate(self.links[1:], start=1):
            if hops == number:
                return ProbeReply("silent") if number in self.mute else ProbeReply("expired", self.router(number))
            if size > mtu:
                message = number not in self.mute and number + 1 not in self.holes
                return ProbeReply("too_big", self.router(number), mtu if self.names_mtu else None) if message else ProbeReply("silent")
        return ProbeReply("reply", PEER)


def test_sufficient_path_takes_one_packet():
    network = Network([9000, 9000])
    path = examine(PEER, 8700, network)
    assert (path.ok, path.mtu, path.limit, path.probes) == (True, 8700, None, 1)


def test_limiting_local_interface_is_named():
    path = examine(PEER, 8700, Network([1500, 9000]))
    assert (path.ok, path.mtu, path.limit) == (False, 1500, Limit("interface", mtu=1500))
    assert sentences(path, "storage2", "eth1") == [
        "eth1: packets of 8700 bytes do not get to storage2 (10.9.9.9), the largest that do have 1500: eth1 itself has the MTU 1500. Set it to 8700."
    ]


def test_reporting_router_and_next_hop_are_named():
    path = examine(PEER, 9000, Network([9000, 9000, 4000, 9000]))
    assert (path.mtu, path.limit) == (4000, Limit("router", "10.0.2.1", "10.0.3.1", 4000))
    assert "between 10.0.2.1 and 10.0.3.1 the MTU is 4000, reported by 10.0.2.1" in sentences(path, "", "eth1")[0]


def test_last_link_ends_at_the_peer():
    assert examine(PEER, 9000, Network([9000, 9000, 4000])).limit == Limit("router", "10.0.2.1", PEER, 4000)


def test_router_not_reporting_the_mtu_takes_more_packets():
    path = examine(PEER, 9000, Network([9000, 9000, 4000], names_mtu=False))
    assert (path.mtu, path.limit.kind, path.limit.sender) == (4000, "router", "10.0.2.1")


@pytest.mark.parametrize(("hole", "sender", "receiver"), [(2, "10.0.1.1", "10.0.2.1"), (3, "10.0.2.1", "10.0.3.1"), (4, "10.0.3.1", PEER)])
def test_silent_switch_is_located_between_two_hops(hole, sender, receiver):
    links = [9000] * 4
    links[hole - 1] = 1500
    path = examine(PEER, 9000, Network(links, holes=[hole]))
    assert (path.mtu, path.limit) == (1500, Limit("silent", sender, receiver))


def test_silent_switch_on_local_network_is_located_before_the_peer():
    class Switch(Network):
        def __call__(self, size, hops):
            return ProbeReply("silent") if size > 1500 else ProbeReply("reply", PEER)

    path = examine(PEER, 8700, Switch([9000]))
    assert (path.mtu, path.limit) == (1500, Limit("silent", "", PEER))
    (sentence,) = sentences(path, "storage2", "eth1")
    for words in ("are lost between eth1 and 10.9.9.9", "at least 8718 bytes", "4 more for each VLAN tag", "to the MTU 8700"):
        assert words in sentence


def test_silent_router_is_not_reported_as_the_limit():
    path = examine(PEER, 9000, Network([9000, 9000, 9000, 1500], mute=[1], holes=[4]))
    assert (path.mtu, path.limit) == (1500, Limit("silent", "10.0.3.1", PEER))
    path = examine(PEER, 9000, Network([9000, 1500, 9000, 9000], mute=[1], holes=[2]))
    assert (path.mtu, path.limit) == (1500, Limit("silent", "", "10.0.2.1"))


def test_unreachable_peer_gives_no_mtu():
    path = examine(PEER, 9000, lambda _size, _hops: ProbeReply("silent"))
    assert (path.reachable, path.ok, path.mtu, path.limit) == (False, False, None, None)
    assert "does not answer echo requests" in sentences(path, "", "eth1")[0]
    assert path.probes == 4


def test_lost_packet_is_sent_again():
    assert examine(PEER, 9000, Network([9000, 9000], lossy=2)).ok
    assert examine(PEER, 9000, Network([9000, 4000], lossy=5), tries=3).mtu == 4000


@given(st.lists(st.integers(576, 9216), min_size=1, max_size=5), st.integers(577, 9216), st.sets(st.integers(2, 5)), st.sets(st.integers(1, 4)), st.booleans())
def test_largest_packet_is_found_on_any_path(links, required, holes, mute, names):
    network = Network(links, mute, holes, names)
    path = examine(PEER, required, network, tries=1)
    assert path.reachable
    assert path.mtu == min([required, *links])
    assert path.ok is (min(links) >= required)
    assert (path.limit is None) is path.ok
    assert len(sentences(path, "p", "eth1")) == (0 if path.ok else 1)
    assert len(network.sent) < 60
    assert path_to_dict(path, "p", "eth1")["ok"] is path.ok


# What goes over the wire, and what comes back


@pytest.mark.parametrize("size", [28, 29, 576, 1500, 8700])
def test_request_has_correct_size_and_checksum(size):
    packet = echo_request(7, 9, size)
    assert len(packet) == size - 20
    assert path_mtu.checksum(packet) == 0
    assert path_mtu.is_request(packet, 7, 9)
    assert not path_mtu.is_request(packet, 7, 8)


def test_own_reply_is_distinguished_from_others():
    reply = bytes([0x46]) + bytes(23) + struct.pack("!BBHHH", 0, 0, 0, 7, 9)
    assert path_mtu.is_reply(reply, 7, 9)
    assert not path_mtu.is_reply(reply, 7, 8)
    assert not path_mtu.is_reply(b"", 7, 9)


def error(number, origin, kind, code, info, sender="10.0.1.1"):
    address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(sender))
    return struct.pack("=IBBBBII", number, origin, kind, code, 0, info, 0) + address


@pytest.mark.parametrize(
    ("control", "answer"),
    [
        (error(errno.EMSGSIZE, 1, 0, 0, 1500), ProbeReply("local", mtu=1500)),
        (error(errno.EMSGSIZE, 2, 3, 4, 4000), ProbeReply("too_big", "10.0.1.1", 4000)),
        (error(errno.EMSGSIZE, 2, 3, 4, 0), ProbeReply("too_big", "10.0.1.1", None)),
        (error(errno.EHOSTUNREACH, 2, 11, 0, 0), ProbeReply("expired", "10.0.1.1")),
        (error(errno.EHOSTUNREACH, 2, 3, 1, 0), ProbeReply("unreachable", "10.0.1.1")),
        (error(errno.EHOSTUNREACH, 1, 0, 0, 0), ProbeReply("unreachable")),
        (error(errno.EHOSTUNREACH, 2, 4, 0, 0), None),
        (error(0, 3, 0, 0, 0), None),
        (b"", None),
    ],
)
def test_kernel_error_queue_is_parsed(control, answer):
    assert parse_error(control) == answer
