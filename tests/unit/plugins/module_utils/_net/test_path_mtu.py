# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module path_mtu_info: interfaces, peers, the ways over IP and on layer 2."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._net.path_mtu import ProbeReply, check_layer2, measure, parse_addresses, read_peers, run_module
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

ROWS = [
    {"ifname": "lo", "mtu": 65536, "link_type": "loopback", "flags": ["UP"], "addr_info": [{"family": "inet", "local": "127.0.0.1"}]},
    {
        "ifname": "eth1",
        "mtu": 9000,
        "link_type": "ether",
        "flags": ["BROADCAST", "UP"],
        "address": "52:54:00:00:00:01",
        "addr_info": [{"family": "inet", "local": "192.168.77.1", "prefixlen": 24}, {"family": "inet6", "local": "fe80::1"}],
    },
    {},
]
ADDRESSES = json.dumps(ROWS)
SANCHECK = "DEVICE SUMMARY\n====\nDevice\tMacs\tPayload\tLocal Interfaces\n"


class Left(Exception):
    pass


class Module:
    def __init__(self, **params):
        self.params = {"peers": [], "interface": None, "timeout": 1.0, "layer2": False, **params}
        self.check_mode = True

    def exit_json(self, **result):
        self.result = result
        raise Left

    fail_json = exit_json


class Socket:
    """A way on which packets of 1500 bytes get through, by a switch that says nothing."""

    own_address = "192.168.77.1"
    closed = 0

    def __init__(self, address, interface, timeout):
        self.requested = (address, interface, timeout)

    def __call__(self, size, hops):
        return ProbeReply("reply" if size <= 1500 else "silent", "192.168.77.2")

    def close(self):
        Socket.closed += 1


def run(sancheck="", connect=Socket, **params):
    module = Module(**params)
    runner = ScriptedRunner({("ip",): Reply(ADDRESSES), ("aoe-sancheck",): Reply(sancheck)})
    with pytest.raises(Left):
        run_module(module, runner, connect)
    return module.result, runner


def test_interfaces_without_loopback():
    (found,) = parse_addresses(ADDRESSES)
    assert (found.name, found.mtu, found.addresses, found.up) == ("eth1", 9000, ("192.168.77.1",), True)
    assert found.networks == ("192.168.77.0/24",)
    assert parse_addresses("") == []


@pytest.mark.parametrize("text", ["x", "{", '{"a": 1}', "[1]", '[{"ifname": "a", "link_type": "ether"}]'])
def test_invalid_interface_list_is_rejected(text):
    with pytest.raises(NotUnderstood, match="list of interfaces"):
        parse_addresses(text)


@pytest.mark.parametrize(
    ("peer", "says"),
    [({"address": "storage2"}, "not an IP address"), ({"address": "fe80::1"}, "IP version 6"), ({"address": "10.0.0.1", "mtu": 500}, "from 576 to 65535")],
)
def test_invalid_peer_is_rejected(peer, says):
    with pytest.raises(BadInput, match=says):
        read_peers([peer])


def test_path_with_smaller_mtu_is_reported_completely():
    result, _runner = run(peers=[{"name": "storage2", "address": "192.168.77.2", "mtu": 8700}, {"name": "self", "address": "192.168.77.1", "mtu": None}])
    assert (result["changed"], result["ok"]) == (False, False)
    (path,) = result["paths"]
    assert (path["name"], path["mtu"], path["wanted"], path["interface"], path["limit"]["kind"]) == ("storage2", 1500, 8700, "eth1", "silent")
    assert result["problems"] == path["sentences"]
    assert "storage2 (192.168.77.2)" in result["problems"][0]


def test_default_mtu_is_that_of_the_interface():
    (interface,) = parse_addresses(ADDRESSES)
    (peer,) = read_peers([{"address": "192.168.77.2"}])
    before = Socket.closed
    assert measure(peer, None, [interface], 1.0, Socket)["wanted"] == 9000
    assert Socket.closed == before + 1


def test_sufficient_path_is_ok():
    result, runner = run(peers=[{"address": "192.168.77.2", "mtu": 1500}])
    assert (result["ok"], result["problems"]) == (True, [])
    assert [call[0] for call in runner.calls] == ["ip"]


def test_empty_request_returns_interfaces():
    result, _runner = run()
    assert (result["ok"], [one["name"] for one in result["interfaces"]]) == (True, ["eth1"])


def test_missing_interface_and_missing_permission_are_reported():
    assert "no interface eth9" in run(interface="eth9")[0]["msg"]

    def forbidden(*_words):
        raise CommandFailed("Only root may send: become: true.")

    assert "become: true" in run(connect=forbidden, peers=[{"address": "192.168.77.2"}])[0]["msg"]


def test_layer_2_is_measured_with_aoe_sancheck():
    weak = SANCHECK + "e7.1\t   1\t1024\teth1\n   The path eth1->2a177953084a is only capable of 1024 byte payloads\ne7.2\t 1\t8704\teth2\n"
    result, runner = run(weak, layer2=True, interface="eth1")
    assert runner.calls[-1] == ("aoe-sancheck", "eth1")
    (way,) = result["layer2"]
    assert (way["name"], way["payload"], way["wanted"], way["ok"], result["ok"]) == ("e7.1", 1024, 8704, False, False)
    assert "the MTU 1060 needs" in result["problems"][0]
    assert "MTU 9000 and every switch port between to frames of at least 9018 bytes" in result["problems"][0]


def test_full_frames_on_layer_2_are_ok():
    (interface,) = parse_addresses(ADDRESSES)
    runner = ScriptedRunner({("aoe-sancheck",): Reply(SANCHECK + "e7.1\t   1\t8704\teth1\n")})
    assert check_layer2(runner, None, [interface])[0]["ok"] is True
