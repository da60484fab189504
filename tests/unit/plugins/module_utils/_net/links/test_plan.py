# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What interfaces shall have, what follows for those below them, what is refused, and in which order it is done."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import UNMANAGED, MtuSource
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import find_places
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links, parse_links
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import LinkState, directions, plan_links
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import read_specs, resolve
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

MAC = "52:54:00:00:00:0"


def _card(name, index, mtu=1500, **more):
    return Link(name, index, mtu, max_mtu=more.pop("max_mtu", 9000), mac=f"{MAC}{index}", **more)


def _vlan(name, index, parent, mtu=1500, mac=f"{MAC}2"):
    return Link(name, index, mtu, kind="vlan", lower=(parent,), mac=mac)


def _links(*more, mtu=1500):
    return Links([Link("lo", 1, 65536), _card("eth1", 2, mtu), *more])


def _specs(*entries):
    full = [{"interface": None, **entry} for entry in entries]
    return read_specs(full)


def _state(links, boot=None, **more):
    boot = {} if boot is None else boot
    places = {link.name: MtuSource("systemd_networkd", link.name, boot.get(link.name), {"where": f"/etc/{link.name}"}) for link in links}
    return LinkState(links, more.pop("carrying", frozenset()), more.pop("ipv6", {}), {**places, **more.pop("places", {})})


def _live(steps):
    return [(step.item, step.before, step.after) for step in steps if step.attribute == "mtu"]


def _boot(steps):
    return [(step.item, step.before, step.after) for step in steps if step.attribute == "boot_mtu"]


# -- reading


def _entry(name, index, **more):
    return {"ifname": name, "ifindex": index, "mtu": 1500, "flags": ["UP"], "address": f"{MAC}{index}", "min_mtu": 68, "max_mtu": 0, **more}


def test_link_relations_are_parsed_from_ip():
    links = parse_links(
        json.dumps(
            [
                _entry("eth1", 2, master="br0", max_mtu=9216, altnames=["enp2s0"]),
                _entry("eth1.5", 3, link="eth1", linkinfo={"info_kind": "vlan"}),
                _entry("br0", 4, linkinfo={"info_kind": "bridge"}),
                _entry("ve0", 5, link="ve1", linkinfo={"info_kind": "veth"}, master="br0"),
                _entry("ve1", 6, link="ve0", linkinfo={"info_kind": "veth"}, master="vrf1", flags=[]),
                _entry("vrf1", 7, linkinfo={"info_kind": "vrf"}),
                {},
            ]
        )
    )
    assert links["br0"].lower == ("eth1", "ve0")
    assert links["eth1.5"].lower == ("eth1",)
    assert (links["ve0"].lower, links["ve1"].master, links["vrf1"].lower) == ((), None, ()), "a veth has no parent, and a VRF no MTU to do with its members"
    assert links.find("enp2s0").name == "eth1"
    assert (links["eth1"].max_mtu, links["ve1"].max_mtu, links["ve1"].up) == (9216, None, False)
    assert links.all_upper("eth1") == {"eth1.5", "br0"}
    assert links.depth("br0") == 1


def test_invalid_ip_output_is_rejected_in_one_sentence():
    for text in ("", "eth0: up", '[{"ifname": "eth0"}]', '{"a": 1}'):
        with pytest.raises(NotUnderstood, match="iproute2"):
            parse_links(text)


def test_mac_shared_by_vlan_selects_the_card():
    links = _links(_vlan("eth1.5", 3, "eth1"))
    assert links.find_mac("52-54-00-00-00-02").name == "eth1"
    with pytest.raises(BadInput, match="eth1 52:54:00:00:00:02"):
        links.find_mac("aa:bb:cc:dd:ee:ff")


# -- wishes


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"mtu": 9000}, "by interface or by mac"),
        ({"interface": "eth1", "mac": f"{MAC}2", "mtu": 9000}, "by one of them only"),
        ({"interface": "eth1"}, "mtu or purpose"),
        ({"interface": "eth1", "mtu": 9000, "purpose": "aoe"}, "mtu or purpose"),
        ({"interface": "eth1", "mtu": 500}, "576"),
        ({"interface": "eth1", "purpose": "aoe", "max_mtu": 70000}, "65535"),
        ({"interface": "eth1", "purpose": "iscsi", "block_size": 512}, "purpose: aoe"),
    ],
)
def test_contradictory_options_are_rejected(entry, words):
    with pytest.raises(BadInput, match=words):
        _specs(entry)


def test_default_mtu_depends_on_purpose_and_card():
    links = Links([_card("eth1", 2), _card("eth2", 3, max_mtu=4500), _card("eth3", 4)])
    targets = resolve(
        links,
        _specs({"interface": "eth1", "purpose": "aoe"}, {"interface": "eth2", "purpose": "aoe"}, {"interface": "eth3", "purpose": "iscsi", "max_mtu": 8000}),
    )
    assert {name: target.mtu for name, target in targets.items()} == {"eth1": 8700, "eth2": 4500, "eth3": 8000}
    with pytest.raises(BadInput, match="eth1: No MTU up to 1500"):
        resolve(links, _specs({"interface": "eth1", "purpose": "aoe", "max_mtu": 1500}))


def test_unknown_interface_error_lists_existing_ones():
    with pytest.raises(BadInput, match="no interface eth9 on this host: there are lo, eth1"):
        resolve(_links(), _specs({"interface": "eth9", "mtu": 9000}))


def test_interface_listed_twice_is_rejected():
    with pytest.raises(BadInput, match="the same interface eth1"):
        resolve(_links(), _specs({"interface": "eth1", "mtu": 9000}, {"mac": f"{MAC}2", "mtu": 8000}))


# -- order


def test_mtu_is_raised_from_parent_to_vlan_and_lowered_in_reverse():
    up = _state(_links(_vlan("eth1.5", 3, "eth1")))
    specs = _specs({"interface": "eth1.5", "mtu": 9000})
    steps = plan_links(up, specs)
    assert _live(steps) == [("eth1", 1500, 9000), ("eth1.5", 1500, 9000)]
    assert _boot(steps) == [("eth1", None, 9000), ("eth1.5", None, 9000)]
    assert "since it is below eth1.5" in steps[0].action
    down = _state(_links(_vlan("eth1.5", 3, "eth1", 9000), mtu=9000))
    steps = plan_links(down, _specs({"interface": "eth1", "mtu": 1500}, {"interface": "eth1.5", "mtu": 1500}))
    assert _live(steps) == [("eth1.5", 9000, 1500), ("eth1", 9000, 1500)]


def test_raises_precede_lowerings_and_can_be_run_separately():
    state = _state(_links(_card("eth2", 3, 9000), _card("eth3", 4, 8000)), {"eth3": 1500})
    specs = _specs({"interface": "eth2", "mtu": 1500}, {"interface": "eth1", "mtu": 9000}, {"interface": "eth3", "mtu": 8000})
    assert _live(plan_links(state, specs)) == [("eth1", 1500, 9000), ("eth2", 9000, 1500)]
    assert directions(state, specs) == ["raise", "lower", "other"]
    assert [(step.item, step.attribute) for step in plan_links(state, specs, "raise")] == [("eth1", "mtu"), ("eth1", "boot_mtu"), ("eth3", "boot_mtu")]
    assert [(step.item, step.attribute) for step in plan_links(state, specs, "lower")] == [("eth2", "mtu"), ("eth2", "boot_mtu"), ("eth3", "boot_mtu")]


def test_no_change_if_already_as_requested():
    state = _state(_links(mtu=9000), {"eth1": 9000})
    specs = _specs({"interface": "eth1", "mtu": 9000})
    assert plan_links(state, specs) == []
    assert directions(state, specs) == []
    assert plan_links(LinkState(Links([])), []) == []


def test_parent_of_lowered_vlan_is_not_lowered():
    state = _state(_links(_vlan("eth1.5", 3, "eth1", 9000), mtu=9000), {"eth1": 9000})
    assert _live(plan_links(state, _specs({"interface": "eth1.5", "mtu": 1500}))) == [("eth1.5", 9000, 1500)]


def test_bond_members_follow_and_need_no_boot_setting():
    links = Links([_card("eth1", 2, master="bond0"), _card("eth2", 3, master="bond0"), Link("bond0", 4, 1500, kind="bond", lower=("eth1", "eth2"))])
    steps = plan_links(_state(links), _specs({"interface": "bond0", "mtu": 9000}))
    assert [item for item, before, after in _live(steps)] == ["eth1", "eth2", "bond0"]
    assert _boot(steps) == [("bond0", None, 9000)]
    with pytest.raises(BadInput, match="name bond0 instead"):
        plan_links(_state(links), _specs({"interface": "eth1", "mtu": 9000}))
    with pytest.raises(BadInput, match="contradict"):
        plan_links(_state(links), _specs({"interface": "eth1", "mtu": 4000}, {"interface": "bond0", "mtu": 9000}))


def test_bridge_ports_are_raised_and_larger_ones_kept():
    links = Links([_card("eth1", 2, master="br0"), _card("eth2", 3, 9000, master="br0"), Link("br0", 4, 1500, kind="bridge", lower=("eth1", "eth2"))])
    assert _live(plan_links(_state(links), _specs({"interface": "br0", "mtu": 8000}))) == [("eth1", 1500, 8000), ("br0", 1500, 8000)]


def test_boot_mtu_of_lower_interfaces_is_planned_if_runtime_mtu_suffices():
    links = _links(_vlan("eth1.5", 3, "eth1", 9000), mtu=9100)
    specs = _specs({"interface": "eth1.5", "mtu": 9000})
    assert _boot(plan_links(_state(links, {"eth1.5": 9000}), specs)) == [("eth1", None, 9000)]
    assert plan_links(_state(links, {"eth1.5": 9000, "eth1": 9100}), specs) == []
    small = _links(_vlan("eth1.5", 3, "eth1", 1400))
    assert plan_links(_state(small, {"eth1.5": 1400}), _specs({"interface": "eth1.5", "mtu": 1400})) == [], "without a word an interface has 1500"


def test_members_of_larger_bond_are_not_lowered_for_its_vlan():
    bond = Link("bond0", 4, 9100, kind="bond", lower=("eth1",))
    links = Links([_card("eth1", 2, 9100, master="bond0", max_mtu=9216), bond, Link("bond0.5", 5, 1500, kind="vlan", lower=("bond0",))])
    assert _live(plan_links(_state(links), _specs({"interface": "bond0.5", "mtu": 9000}))) == [("bond0.5", 1500, 9000)]


def test_tap_is_raised_with_its_bridge_without_boot_setting():
    links = Links([Link("tap0", 2, 1500, kind="tun", master="br0"), Link("br0", 3, 1500, kind="bridge", lower=("tap0",))])
    steps = plan_links(_state(links), _specs({"interface": "br0", "mtu": 9000}))
    assert (_live(steps), _boot(steps)) == ([("tap0", 1500, 9000), ("br0", 1500, 9000)], [("br0", None, 9000)])


# -- refusals


def test_too_small_lower_interface_is_named_without_members():
    state = _state(_links(_vlan("eth1.5", 3, "eth1")))
    with pytest.raises(BadInput, match="on eth1, which has 1500: list eth1 too, or set members: true"):
        plan_links(state, _specs({"interface": "eth1.5", "mtu": 9000, "members": False}))
    with pytest.raises(BadInput, match="which is set to 4000"):
        plan_links(state, _specs({"interface": "eth1.5", "mtu": 9000}, {"interface": "eth1", "mtu": 4000}))


def test_parent_is_not_lowered_below_its_vlans():
    state = _state(_links(_vlan("eth1.5", 3, "eth1", 9000), _vlan("eth1.6", 4, "eth1", 1500), mtu=9000))
    with pytest.raises(Refused, match=r"eth1.5 \(9000\) on it would not fit") as caught:
        plan_links(state, _specs({"interface": "eth1", "mtu": 1500}))
    assert "eth1.6" not in caught.value.message


def test_driver_limits_are_enforced():
    with pytest.raises(BadInput, match="9000 at most, and 9500"):
        plan_links(_state(_links()), _specs({"interface": "eth1", "mtu": 9500}))
    with pytest.raises(BadInput, match=r"eth1 \(below eth1.5\) supports an MTU of 9000 at most"):
        plan_links(_state(_links(_vlan("eth1.5", 3, "eth1"))), _specs({"interface": "eth1.5", "mtu": 9500}))


def test_mtu_too_small_for_ipv6_is_refused():
    with pytest.raises(Refused, match="IPv6, and it has fe80::1"):
        plan_links(_state(_links(), ipv6={"eth1": ["fe80::1"]}), _specs({"interface": "eth1", "mtu": 1200}))
    assert plan_links(_state(_links(), ipv6={"eth2": ["fe80::1"]}), _specs({"interface": "eth1", "mtu": 1200}))
    assert plan_links(_state(_links(), ipv6={"eth1": ["fe80::1"]}), _specs({"interface": "eth1", "mtu": 1280}))


def test_management_connection_is_not_changed_without_permission():
    state = _state(_links(_vlan("eth1.5", 3, "eth1")), carrying=frozenset({"eth1", "eth1.5"}))
    for name in ("eth1", "eth1.5"):
        with pytest.raises(Refused, match="allow_management: true for"):
            plan_links(state, _specs({"interface": name, "mtu": 1400}))
    # The parent that would follow is one that the connection depends on.
    below = _state(_links(_vlan("eth1.5", 3, "eth1")), carrying=frozenset({"eth1"}))
    with pytest.raises(Refused, match=r"eth1 \(below eth1.5\) keeps its MTU of 1500"):
        plan_links(below, _specs({"interface": "eth1.5", "mtu": 9000}))
    steps = plan_links(state, _specs({"interface": "eth1", "mtu": 9000, "allow_management": True}))
    assert steps[0].operation.management is True


def test_converged_interface_requires_no_permission():
    state = _state(_links(mtu=1400), {"eth1": 1400}, carrying=frozenset({"eth1"}))
    assert plan_links(state, _specs({"interface": "eth1", "mtu": 1400})) == []


def test_unsupported_boot_setting_is_reported_before_any_change():
    places = {"eth1": MtuSource("", "eth1", None, obstacle="eth1 is configured at boot by none of them: set persistent: false.")}
    with pytest.raises(BadInput, match="persistent: false"):
        plan_links(_state(_links(), places=places), _specs({"interface": "eth1", "mtu": 9000}))
    steps = plan_links(_state(_links(), places=places), _specs({"interface": "eth1", "mtu": 9000, "persistent": False}))
    assert [step.attribute for step in steps] == ["mtu"]


# -- Open vSwitch


def _switch(mtu=1500):
    """A card and a tap in a bridge of Open vSwitch, as ip shows them, and a VLAN on the internal port."""
    return parse_links(
        json.dumps(
            [
                _entry("ovs-system", 3, linkinfo={"info_kind": "openvswitch"}, flags=[]),
                _entry("br0", 4, mtu=mtu, linkinfo={"info_kind": "openvswitch"}),
                _entry("eth1", 2, mtu=mtu, max_mtu=9216, master="ovs-system", linkinfo={"info_slave_kind": "openvswitch"}),
                _entry("tap0", 5, mtu=mtu, master="ovs-system", linkinfo={"info_kind": "tun", "info_slave_kind": "openvswitch"}),
                _entry("br0.7", 6, mtu=mtu, link="br0", linkinfo={"info_kind": "vlan"}),
                _entry("eth9", 7, mtu=mtu, max_mtu=9216),
            ]
        )
    )


@pytest.mark.parametrize("name, shown", [("br0", "br0"), ("eth1", "eth1"), ("tap0", "tap0"), ("br0.7", r"br0 \(below br0.7\)")])
@pytest.mark.parametrize("mtu", [1500, 9000], ids=["raise", "already so"])
def test_port_of_open_vswitch_is_refused_with_its_commands(name, shown, mtu):
    with pytest.raises(Refused, match=rf"{shown} is a port of Open vSwitch, .*ovs-vsctl set Interface PORT mtu_request=9000 .*ovs-vsctl show lists") as caught:
        plan_links(_state(_switch(mtu), boot={"br0": mtu, "eth1": mtu}), _specs({"interface": name, "mtu": 9000}))
    assert caught.value.item == name


def test_card_beside_open_vswitch_is_set():
    assert _live(plan_links(_state(_switch()), _specs({"interface": "eth9", "mtu": 9000}))) == [("eth9", 1500, 9000)]


# -- a bridge on a VLAN that nothing configures


def _unmanaged(name):
    return MtuSource("", name, None, {UNMANAGED: True}, obstacle=f"{name} is configured at boot by none of them: set provider: systemd_networkd")


def _bridge_on_vlan():
    return _links(_vlan("eth1.5", 3, "eth1"), Link("br0", 4, 1500, kind="bridge", lower=("eth1.5",)))


@pytest.mark.parametrize(
    ("tool", "needed"),
    [
        (
            "ifupdown",
            r"/etc/network/interfaces: .*'auto eth1', 'iface eth1 inet manual', 'mtu 9000'; .*'iface eth1.5 inet manual', 'mtu 9000', 'vlan-raw-device eth1'",
        ),
        ("wicked", r"/etc/sysconfig/network: ifcfg-eth1 with 'STARTMODE=auto', 'MTU=9000'; .*'MTU=9000', 'ETHERDEVICE=eth1' and its VLAN_ID"),
        ("netplan", r"/etc/netplan: .*eth1 below ethernets, with mtu: 9000; eth1.5 below vlans, with mtu: 9000, link: eth1 and its id"),
        ("systemd_networkd", r"/etc/systemd/network: eth1.network with .*'MTUBytes=9000'; eth1.5.network with"),
        ("networkmanager", r"type ethernet ifname eth1 mtu 9000; .* type vlan ifname eth1.5 mtu 9000 dev eth1"),
    ],
)
def test_everything_that_lacks_a_definition_is_named_at_once(tool, needed):
    places = {name: _unmanaged(name) for name in ("eth1", "eth1.5")}
    places["br0"] = MtuSource(tool, "br0", None, {"where": "/etc/br0"})
    with pytest.raises(BadInput, match=r"eth1(\.5)? and eth1(\.5)? are configured at boot by no tool") as caught:
        plan_links(_state(_bridge_on_vlan(), places=places), _specs({"interface": "br0", "mtu": 9000}))
    parts = re.split(r"; (?!or)", needed)
    assert all(re.search(part, caught.value.message) for part in parts), caught.value.message
    assert "provider: systemd_networkd" not in caught.value.message
    assert "or set persistent: false for br0" in caught.value.message


def test_advice_for_a_bridge_on_a_vlan_is_sufficient(tmp_path):
    """The stanzas of the message, and nothing else, and the next run has no objection and writes nothing into them."""
    links = _bridge_on_vlan()
    bridge = "auto br0\niface br0 inet manual\n\tbridge_ports eth1.5\n\tmtu 9000\n"
    (tmp_path / "etc/network").mkdir(parents=True)
    file = tmp_path / "etc/network/interfaces"
    file.write_text(bridge)
    requested = dict.fromkeys(("br0", "eth1", "eth1.5"), "auto")
    runner = ScriptedRunner({("udevadm",): Reply("")}, missing=("networkctl", "nmcli", "netplan"))

    def plan():
        state = LinkState(links, places=find_places(runner, links, requested, tmp_path))
        return plan_links(state, _specs({"interface": "br0", "mtu": 9000}))

    with pytest.raises(BadInput) as caught:
        plan()
    stanzas = caught.value.message.partition("interfaces: ")[2].partition("; or set")[0].split("; ")
    lines = [re.findall(r"'([^']+)'", stanza) for stanza in stanzas]
    file.write_text(bridge + "".join(f"\n{one[0]}\n{one[1]}\n" + "".join(f"\t{option}\n" for option in one[2:]) for one in lines))
    assert _boot(plan()) == []


def test_bridge_that_nothing_configures_around_it_is_left_to_its_maker():
    places = {name: _unmanaged(name) for name in ("br0", "eth1", "eth1.5")}
    with pytest.raises(BadInput, match="by no tool of this host: set persistent: false for br0, and set their MTU where they are made"):
        plan_links(_state(_bridge_on_vlan(), places=places), _specs({"interface": "br0", "mtu": 9000}))


def test_card_that_nothing_configures_has_the_advice_of_its_own():
    with pytest.raises(BadInput, match="set provider: systemd_networkd"):
        plan_links(_state(_links(), places={"eth1": _unmanaged("eth1")}), _specs({"interface": "eth1", "mtu": 9000}))
