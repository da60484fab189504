# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the AoE initiator, aoe-sancheck and the files of vblade say; the outputs were captured on a veth pair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import read_aoe_devices, read_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.output import parse_packet_sockets, parse_sancheck, parse_vblade_file
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost

HEAD = """Probing...write failed
write failed
done.
==========================================
INTERFACE SUMMARY
==========================================
Name\tStatus\tMTU\tPCI ID
eth0\tUP\t1500\t1af4:0001
v0\tUP\t9000\t
==========================================
DEVICE SUMMARY
==========================================
Device\tMacs\tPayload\tLocal Interfaces
"""
WEAK = HEAD + "e7.1\t   1\t1024\tv0\n   The path v0->2a177953084a is only capable of 1024 byte payloads\ne7.2\t   2\t8192\tv0,v2\n"


def test_path_with_smaller_payload_than_interface_is_found():
    weak, fine = parse_sancheck(WEAK)
    assert (weak.name, weak.payload, weak.macs, weak.interfaces) == ("e7.1", 1024, 1, ("v0",))
    assert weak.weak == (("v0", "2a:17:79:53:08:4a", 1024),)
    assert (fine.name, fine.payload, fine.interfaces, fine.weak) == ("e7.2", 8192, ("v0", "v2"), ())


def test_no_target_gives_no_device():
    assert parse_sancheck(HEAD) == []


@pytest.mark.parametrize("text", ["", "aoe-sancheck: no such device\n"])
def test_invalid_output_is_rejected(text):
    with pytest.raises(NotUnderstood, match="no summary of devices"):
        parse_sancheck(text)


@given(st.text())
def test_arbitrary_summary_text_raises_nothing(text):
    parse_sancheck(HEAD + text)


def test_targets_are_read_from_sysfs(tmp_path):
    host = FakeHost(tmp_path)
    assert read_aoe_devices(tmp_path) == []
    host.disk("sda")
    host.disk("etherd!e7.1", "virtual")
    host.disk("etherd!e7.10", "virtual")
    for name, text in {"payload": "8704", "netif": "v0,v2", "state": "down,closewait", "mac": "2a177953084a"}.items():
        host.write(f"sys/devices/virtual/block/etherd!e7.1/{name}", text + "\n")
    first, second = read_aoe_devices(tmp_path)
    assert (first.name, first.interfaces, first.payload, first.up, first.mac) == ("e7.1", ("v0", "v2"), 8704, False, "2a:17:79:53:08:4a")
    assert (second.name, second.interfaces, second.payload, second.state) == ("e7.10", (), None, "unknown")


def test_interface_mtu_is_read(tmp_path):
    FakeHost(tmp_path).write("sys/class/net/eth1/mtu", "8700\n")
    assert (read_mtu(tmp_path, "eth1"), read_mtu(tmp_path, "eth2")) == (8700, None)


def test_vblade_file_is_parsed_like_a_shell_does():
    text = "# shelf=1\nshelf=10\nslot = 4\nslot=3\nnetif=em3\nfilename=/dev/mapper/export # here\noptions='-m 11:22:33:44:55:66 -o 8'\nionice='--class idle'\n"
    values = parse_vblade_file(text)
    assert (values["shelf"], values["slot"], values["filename"]) == ("10", "3", "/dev/mapper/export")
    assert values["options"] == "-m 11:22:33:44:55:66 -o 8"
    assert parse_vblade_file("options='") == {"options": "'"}


def test_target_sockets_are_parsed():
    text = (
        'p_raw 0      0                aoe:v1               *     users:(("vblade",pid=438,fd=4)) skmem:(r0,rb288000,t0,tb288000,f0,w0,o648,bl0,d0)\n'
        'p_dgr 0 0 *:eth0 * users:(("systemd-network",pid=200,fd=18))\n\t skmem:(r0,rb212992,t0)\n'
    )
    assert parse_packet_sockets(text) == {438: 288000}
    assert parse_packet_sockets("") == {}
