# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tool manages an interface at boot, what it says of the MTU, and what is written so that it says another one."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.ifupdown import read_stanzas, with_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.netplan import own_entries, with_entry
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.networkd import parse_status
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import PROVIDERS, find_places
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

LINKS = Links([Link("lo", 1, 65536), Link("eth1", 2, 1500, mac="52:54:00:00:00:02"), Link("eth2", 3, 1500, mac="52:54:00:00:00:03")])
UUID = "5a2c0f9e-6b1d-4a38-9d3c-0d7f3b6a1c11"


def _status(**files):
    """What networkctl 252 prints, in the C locale and to no terminal."""
    blocks = []
    for number, (name, file) in enumerate(files.items(), 2):
        blocks.append(
            f"* {number}: {name}                       \n"
            "                     Link File: /usr/lib/systemd/network/99-default.link\n"
            f"                  Network File: {file or 'n/a'}\n"
            "                         State: routable (configured)\n"
        )
    return Reply("\n".join(blocks))


def _runner(files=None, *, devices="", profiles="", netplan=None, udev="", mtu="auto", missing=()):
    netplan = netplan or {}
    return ScriptedRunner(
        {
            ("networkctl",): _status(**(files if files is not None else {"eth1": "", "eth2": ""})),
            ("nmcli", "--terse", "--fields", "DEVICE,STATE,CON-UUID"): Reply(devices),
            ("nmcli", "--terse", "--fields", "UUID,TYPE,FILENAME,NAME"): Reply(profiles),
            ("nmcli", "--terse", "--get-values"): Reply(f"{mtu}\n"),
            ("netplan", "get"): lambda words: Reply(netplan.get(words[2], "null") + "\n"),
            ("udevadm",): Reply(udev),
        },
        missing=missing,
    )


def _place(tmp_path, runner, choice="auto", name="eth1"):
    return find_places(runner, LINKS, {name: choice}, tmp_path)[name]


def _change(tmp_path, runner, place, mtu):
    # As the layer does it: a step before may have written into the same file.
    assert find_places(runner, LINKS, {place.interface: place.provider}, tmp_path)[place.interface] == place
    return PROVIDERS[place.provider](runner, LINKS, tmp_path).change(place, mtu)


# -- which one


def test_unmanaged_interface_is_reported_with_advice(tmp_path):
    place = _place(tmp_path, _runner())
    assert place.provider == ""
    assert "by none of systemd-networkd, netplan, NetworkManager, ifupdown, wicked" in place.obstacle
    assert "provider: systemd_networkd" in place.obstacle


def test_two_managing_providers_are_named(tmp_path):
    write(tmp_path, "/etc/systemd/network/eth1.network", "[Match]\nName=eth1\n")
    write(tmp_path, "/etc/network/interfaces", "iface eth1 inet manual\n")
    runner = _runner({"eth1": "/etc/systemd/network/eth1.network", "eth2": ""})
    assert "systemd-networkd and ifupdown" in _place(tmp_path, runner).obstacle
    assert _place(tmp_path, runner, "ifupdown").provider == "ifupdown"


def test_requested_provider_not_managing_the_interface_is_refused(tmp_path):
    assert "not configured by NetworkManager" in _place(tmp_path, _runner(), "networkmanager").obstacle


def test_missing_tools_manage_nothing(tmp_path):
    assert _place(tmp_path, _runner(missing=("networkctl", "nmcli", "netplan", "ifup"))).provider == ""


def test_each_tool_is_queried_once_for_all_interfaces(tmp_path):
    write(tmp_path, "/etc/systemd/network/eth1.network", "[Match]\nName=eth1\n")
    runner = _runner(
        {"eth1": "/etc/systemd/network/eth1.network", "eth2": ""}, devices=f"eth2:connected:{UUID}\n", profiles=f"{UUID}:802-3-ethernet:/etc/x:x\n"
    )
    places = find_places(runner, LINKS, {"eth1": "auto", "eth2": "auto"}, tmp_path)
    assert [places[name].provider for name in ("eth1", "eth2")] == ["systemd_networkd", "networkmanager"]
    assert len(runner.calls) == len(set(runner.calls))
    assert [words[0] for words in runner.calls].count("networkctl") == 1


# -- systemd-networkd


def test_networkctl_reports_the_file_of_each_interface():
    assert parse_status(_status(eth0="/run/systemd/network/10-netplan-eth0.network", eth1="").stdout) == {
        "eth0": "/run/systemd/network/10-netplan-eth0.network"
    }
    assert parse_status("WARNING: systemd-networkd is not running, output will be incomplete.\n") == {}


def test_drop_in_is_written_for_file_matching_one_interface(tmp_path):
    write(tmp_path, "/etc/systemd/network/eth1.network", "[Match]\nName=eth1\n[Network]\nDHCP=yes\n")
    runner = _runner({"eth1": "/etc/systemd/network/eth1.network", "eth2": ""})
    place = _place(tmp_path, runner)
    assert (place.provider, place.mtu, place.obstacle, place.concern) == ("systemd_networkd", None, "", "")
    (file,) = _change(tmp_path, runner, place, 8700).files
    assert file["path"] == "/etc/systemd/network/eth1.network.d/50-cachefleet-mtu.conf"
    assert "[Link]\nMTUBytes=8700\n" in file["after"]
    assert "UseMTU" not in file["after"]
    write(tmp_path, file["path"], file["after"])
    assert _place(tmp_path, runner).mtu == 8700


def test_mtu_from_dhcp_is_disabled(tmp_path):
    write(tmp_path, "/etc/systemd/network/eth1.network", "[Match]\nName=eth1\n[DHCPv4]\nUseMTU=yes\n[Link]\nMTUBytes=9000\n")
    runner = _runner({"eth1": "/etc/systemd/network/eth1.network", "eth2": ""})
    place = _place(tmp_path, runner)
    assert place.mtu is None
    assert "UseMTU=no" in place.concern
    (file,) = _change(tmp_path, runner, place, 9000).files
    assert "[DHCPv4]\nUseMTU=no\n" in file["after"]
    write(tmp_path, file["path"], file["after"])
    assert _place(tmp_path, runner).mtu == 9000


def test_later_drop_in_is_an_obstacle(tmp_path):
    write(tmp_path, "/etc/systemd/network/eth1.network", "[Match]\nName=eth1\n")
    write(tmp_path, "/run/systemd/network/eth1.network.d/90-site.conf", "[Link]\nMTUBytes=4K\n")
    place = _place(tmp_path, _runner({"eth1": "/etc/systemd/network/eth1.network", "eth2": ""}))
    assert place.mtu == 4096
    assert "/run/systemd/network/eth1.network.d/90-site.conf sets MTUBytes=" in place.obstacle


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"eth1": "/etc/systemd/network/all.network", "eth2": "/etc/systemd/network/all.network"}, "[Match]\nName=eth1\n"),
        ({"eth1": "/etc/systemd/network/all.network", "eth2": ""}, "[Match]\nName=en* eth*\n"),
    ],
    ids=["two match now", "others may match later"],
)
def test_file_matching_several_interfaces_gets_a_link_file(tmp_path, files, text):
    write(tmp_path, "/etc/systemd/network/all.network", text)
    write(
        tmp_path,
        "/usr/lib/systemd/network/99-default.link",
        "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel path\nMTUBytes=1400\nMACAddressPolicy=persistent\n",
    )
    runner = _runner(files, udev="ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\n")
    (file,) = _change(tmp_path, runner, _place(tmp_path, runner), 8700).files
    assert file["path"] == "/etc/systemd/network/00-cachefleet-mtu-eth1.link"
    assert file["after"].endswith(
        "[Match]\nPermanentMACAddress=52:54:00:00:00:02\n\n[Link]\nNamePolicy=keep kernel path\nMACAddressPolicy=persistent\nMTUBytes=8700\n"
    ), "how a card is named must stay"


def test_own_link_file_keeps_copied_settings(tmp_path):
    own = "/etc/systemd/network/00-cachefleet-mtu-eth1.link"
    write(tmp_path, own, "[Match]\nPermanentMACAddress=52:54:00:00:00:02\n\n[Link]\nNamePolicy=path\nMTUBytes=8700\n")
    runner = _runner(udev=f"ID_NET_LINK_FILE={own}\n")
    place = _place(tmp_path, runner, "systemd_networkd")
    assert place.mtu == 8700
    assert "NamePolicy=path\nMTUBytes=9000\n" in _change(tmp_path, runner, place, 9000).files[0]["after"]


def test_vlan_without_own_network_file_is_an_obstacle(tmp_path):
    links = Links([*LINKS, Link("eth1.5", 4, 1500, kind="vlan", lower=("eth1",), mac="52:54:00:00:00:02")])
    place = find_places(_runner(), links, {"eth1.5": "systemd_networkd"}, tmp_path)["eth1.5"]
    assert "give it a .network file of its own" in place.obstacle


# -- netplan


def test_file_generated_by_netplan_belongs_to_netplan(tmp_path):
    files = {"eth1": "/run/systemd/network/10-netplan-san0.network", "eth2": ""}
    runner = _runner(files, netplan={"ethernets.san0": "dhcp4: true", "ethernets.san0.mtu": "1500", "ethernets.san0.match": 'macaddress: "52:54:00:00:00:02"'})
    place = _place(tmp_path, runner)
    assert (place.provider, place.mtu, place.concern) == ("netplan", 1500, "")
    change = _change(tmp_path, runner, place, 8700)
    assert change.files[0]["path"] == "/etc/netplan/90-cachefleet-mtu.yaml"
    assert change.files[0]["after"].endswith('network:\n  version: 2\n  ethernets:\n    "san0": {mtu: 8700}\n')
    assert (change.files[0]["mode"], change.commands, change.undo) == (0o600, (("netplan", "generate"),), (("netplan", "generate"),))


def test_netplan_without_mac_match_gives_a_warning(tmp_path):
    runner = _runner({"eth1": "/run/systemd/network/10-netplan-eth1.network"}, netplan={"ethernets.eth1": "dhcp4: true"})
    assert "match: {macaddress: 52:54:00:00:00:02}" in _place(tmp_path, runner).concern


ALL_CARDS = {"eth1": "/run/systemd/network/10-netplan-all.network", "eth2": "/run/systemd/network/10-netplan-all.network"}


@pytest.mark.parametrize(
    ("files", "match"),
    [
        (ALL_CARDS, 'name: "e*"'),
        (ALL_CARDS, "driver: virtio_net"),
        (ALL_CARDS, "name: eth1"),
        ({"eth1": ALL_CARDS["eth1"], "eth2": ""}, 'name: "e*"'),
        ({"eth1": ALL_CARDS["eth1"], "eth2": ""}, "driver: virtio_net"),
        ({"eth1": ALL_CARDS["eth1"], "eth2": ""}, "{}"),
    ],
)
def test_netplan_definition_for_several_cards_leaves_the_others_alone(tmp_path, files, match):
    """The management card has the same definition: what is set for one must not be set for it."""
    write(tmp_path, "/run/systemd/network/10-netplan-all.link", "[Match]\nOriginalName=e*\n\n[Link]\nWakeOnLan=off\n")
    runner = _runner(
        files, netplan={"ethernets.all": "dhcp4: true", "ethernets.all.match": match}, udev="ID_NET_LINK_FILE=/run/systemd/network/10-netplan-all.link\n"
    )
    place = _place(tmp_path, runner)
    assert (place.mtu, place.obstacle) == (None, "")
    (file,) = _change(tmp_path, runner, place, 9000).files
    assert file["path"] == "/etc/systemd/network/00-cachefleet-mtu-eth1.link"
    assert file["after"].endswith("[Match]\nPermanentMACAddress=52:54:00:00:00:02\n\n[Link]\nWakeOnLan=off\nMTUBytes=9000\n")


def test_mtu_of_a_netplan_definition_for_several_cards_is_an_obstacle(tmp_path):
    netplan = {"ethernets.all": "dhcp4: true", "ethernets.all.match": 'name: "e*"', "ethernets.all.mtu": "9000"}
    place = _place(tmp_path, _runner(ALL_CARDS, netplan=netplan))
    assert place.mtu == 9000, "whoever wants this for all of them has it"
    assert "sets the MTU of eth2 too (9000): give eth1 a definition of its own with match: {macaddress: 52:54:00:00:00:02}" in place.obstacle
    write(tmp_path, "/etc/netplan/90-cachefleet-mtu.yaml", with_entry("", "ethernets", "all", 9000))
    assert _place(tmp_path, _runner(ALL_CARDS, netplan=netplan)).mtu is None, "what an earlier run has written for all is not as it should be"


@pytest.mark.parametrize("match", ["null", "name: eth1", 'macaddress: "52:54:00:00:00:02"', 'macaddress: "52:54:00:00:00:02"\nname: "e*"'])
def test_netplan_definition_for_one_card_is_used(tmp_path, match):
    runner = _runner({"eth1": ALL_CARDS["eth1"], "eth2": ""}, netplan={"ethernets.all": "dhcp4: true", "ethernets.all.match": match})
    assert _place(tmp_path, runner).where == "/etc/netplan/90-cachefleet-mtu.yaml"


def test_profiles_of_one_netplan_definition_are_counted(tmp_path):
    other = UUID.replace("5a2c", "6b3d")
    runner = _runner(
        devices=f"eth1:connected:{UUID}\neth2:connected:{other}\n",
        profiles="".join(f"{one}:802-3-ethernet:/run/NetworkManager/system-connections/netplan-all.nmconnection:netplan-all\n" for one in (UUID, other)),
        netplan={"ethernets.all": "{}", "ethernets.all.match": "name: eth1"},
    )
    assert _place(tmp_path, runner).where == "/etc/systemd/network/00-cachefleet-mtu-eth1.link"


def test_missing_netplan_definition_is_an_obstacle(tmp_path):
    assert "netplan apply" in _place(tmp_path, _runner({"eth1": "/run/systemd/network/10-netplan-eth1.network"})).obstacle


def test_profile_generated_by_netplan_belongs_to_netplan(tmp_path):
    runner = _runner(
        devices=f"eth1:connected:{UUID}\n",
        profiles=f"{UUID}:802-3-ethernet:/run/NetworkManager/system-connections/netplan-eth1.nmconnection:netplan-eth1\n",
        netplan={"ethernets.eth1": "{}"},
    )
    assert _place(tmp_path, runner).provider == "netplan"


def test_other_entries_of_own_netplan_file_are_kept():
    text = with_entry(with_entry("", "vlans", "eth1.5", 1500), "ethernets", "eth1", 9000)
    assert own_entries(with_entry(text, "ethernets", "eth1", 8700)) == {"ethernets": {"eth1": 8700}, "vlans": {"eth1.5": 1500}}


# -- NetworkManager


def test_active_profile_is_changed_and_can_be_restored(tmp_path):
    runner = _runner(
        devices=f"eth1:connected:{UUID}\nlo:unmanaged:\n", profiles=f"{UUID}:802-3-ethernet:/etc/NetworkManager/system-connections/a\\:b.nmconnection:a\\:b\n"
    )
    place = _place(tmp_path, runner)
    assert (place.provider, place.mtu, place.obstacle) == ("networkmanager", None, "")
    assert "a:b" in place.where
    change = _change(tmp_path, runner, place, 8700)
    assert change.commands == (("nmcli", "connection", "modify", UUID, "802-3-ethernet.mtu", "8700"),)
    assert change.undo == (("nmcli", "connection", "modify", UUID, "802-3-ethernet.mtu", "0"),)


def test_externally_managed_connection_is_not_managed_by_networkmanager(tmp_path):
    assert _place(tmp_path, _runner(devices=f"eth1:connected (externally):{UUID}\n")).provider == ""


def test_in_memory_profile_is_an_obstacle(tmp_path):
    runner = _runner(
        devices=f"eth1:connected:{UUID}\n", profiles=f"{UUID}:802-3-ethernet:/run/NetworkManager/system-connections/x.nmconnection:x\n", mtu="9000"
    )
    place = _place(tmp_path, runner)
    assert place.mtu == 9000
    assert "lost at boot" in place.obstacle


# -- ifupdown

INTERFACES = """\
# The loopback network interface
auto lo
iface lo inet loopback

auto eth1
# the SAN
iface eth1 inet static
\taddress 192.0.2.1/24
\t# mtu 1500 was too small
\tup echo \\
\t  mtu 1

# DHCP
iface eth2 inet dhcp
source interfaces.d/*
"""


def test_one_line_is_added_and_all_other_bytes_are_kept(tmp_path):
    write(tmp_path, "/etc/network/interfaces", INTERFACES)
    runner = _runner()
    place = _place(tmp_path, runner)
    assert (place.provider, place.mtu) == ("ifupdown", None)
    after = _change(tmp_path, runner, place, 8700).files[0]["after"]
    assert after == INTERFACES.replace("inet static\n", "inet static\n\tmtu 8700\n")
    (stanza,) = [one for one in read_stanzas("f", after) if one.name == "eth1"]
    assert stanza.mtu == 8700
    assert with_mtu(after, stanza, 9000) == INTERFACES.replace("inet static\n", "inet static\n\tmtu 9000\n")


def test_dhcp_interface_gets_an_up_command(tmp_path):
    write(tmp_path, "/etc/network/interfaces", INTERFACES)
    runner = _runner()
    after = _change(tmp_path, runner, _place(tmp_path, runner, name="eth2"), 8700).files[0]["after"]
    assert after == INTERFACES.replace("inet dhcp\n", "inet dhcp\n    up ip link set dev eth2 mtu 8700\n")
    write(tmp_path, "/etc/network/interfaces", after)
    assert _place(tmp_path, runner, name="eth2").mtu == 8700


def test_sourced_files_are_read(tmp_path):
    write(tmp_path, "/etc/network/interfaces", "source /etc/network/interfaces.d/*\n")
    write(tmp_path, "/etc/network/interfaces.d/san", "iface eth1 inet manual\n  mtu 9000")
    place = _place(tmp_path, _runner())
    assert (place.mtu, place.where) == (9000, "/etc/network/interfaces.d/san")
    assert _change(tmp_path, _runner(), place, 1500).files[0]["after"] == "iface eth1 inet manual\n  mtu 1500"


def test_several_mtus_for_one_interface_are_an_obstacle(tmp_path):
    write(tmp_path, "/etc/network/interfaces", "iface eth1 inet manual\n mtu 9000\niface eth1 inet6 auto\n mtu 1500\n")
    assert "several MTUs" in _place(tmp_path, _runner()).obstacle


# -- files that are written anew

CLOUD_INIT = """\
# This file is generated from information provided by the datasource.  Changes
# to it will not persist across an instance reboot.  To disable cloud-init's
# network configuration capabilities, write a file
# /etc/cloud/cloud.cfg.d/99-disable-network-config.cfg with the following:
# network: {config: disabled}
auto eth1
iface eth1 inet manual
"""


@pytest.mark.parametrize(
    ("header", "who"),
    [
        (CLOUD_INIT, "cloud-init"),
        ("# This file is autogenerated by os-net-config\niface eth1 inet manual\n", "os-net-config"),
        ("# This file is managed by Puppet. DO NOT EDIT.\niface eth1 inet manual\n", "Puppet"),
    ],
)
def test_generated_file_is_not_edited(tmp_path, header, who):
    write(tmp_path, "/etc/network/interfaces", "source interfaces.d/*\n")
    write(tmp_path, "/etc/network/interfaces.d/san", header)
    obstacle = _place(tmp_path, _runner()).obstacle
    assert obstacle.startswith(f"eth1 is configured by /etc/network/interfaces.d/san, which {who} writes anew, so that a change of it would not last:")
    assert "\n" not in obstacle and obstacle.endswith("or set persistent: false.")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/cloud/cloud.cfg.d/99-disable-network-config.cfg", "network: {config: disabled}\n"),
        ("/etc/cloud/cloud.cfg.d/99-own.cfg", "network:\n  config: disabled\n"),
        ("/etc/cloud/cloud-init.disabled", ""),
        ("/proc/cmdline", "ro network-config=disabled quiet\n"),
    ],
)
def test_file_of_cloud_init_is_edited_once_cloud_init_leaves_it_alone(tmp_path, path, text):
    write(tmp_path, "/etc/network/interfaces", CLOUD_INIT)
    write(tmp_path, "/etc/cloud/cloud.cfg", "# network: {config: disabled}\nnetwork:\n  version: 1\n")
    assert "cloud-init writes anew" in _place(tmp_path, _runner()).obstacle
    write(tmp_path, path, text)
    assert _place(tmp_path, _runner()).obstacle == ""


@pytest.mark.parametrize(
    "header",
    [
        "# network interface settings; autogenerated\n# Please do NOT modify this file directly, unless you know what\n# you're doing.\n",
        "# Ansible managed\n",
        "# This file describes the network interfaces available on your system\n",
        "# Generated by dracut initrd\n",
    ],
)
def test_file_that_keeps_what_is_edited_is_edited(tmp_path, header):
    write(tmp_path, "/etc/network/interfaces", header + "auto eth1\niface eth1 inet manual\n")
    assert _place(tmp_path, _runner()).obstacle == ""


@pytest.mark.parametrize(
    ("file", "text", "refused"),
    [
        ("/etc/NetworkManager/system-connections/cloud-init-eth1.nmconnection", "[connection]\nid=cloud-init eth1\n", True),
        ("/etc/sysconfig/network-scripts/ifcfg-eth1", "# Created by cloud-init on instance boot automatically, do not edit.\n#\nDEVICE=eth1\n", True),
        ("/etc/sysconfig/network-scripts/ifcfg-eth1", "# Generated by parse-kickstart\nDEVICE=eth1\n", False),
        ("/etc/NetworkManager/system-connections/san.nmconnection", "[connection]\nid=san\n", False),
    ],
)
def test_generated_profile_is_not_modified(tmp_path, file, text, refused):
    write(tmp_path, file, text)
    runner = _runner(devices=f"eth1:connected:{UUID}\n", profiles=f"{UUID}:802-3-ethernet:{file}:san\n")
    assert ("which cloud-init writes anew" in _place(tmp_path, runner).obstacle) is refused


# -- wicked


def _suse(tmp_path, text, service="wicked.service", name="eth1"):
    """A host of SLES 15: the files that its installer makes."""
    write(tmp_path, f"/etc/sysconfig/network/ifcfg-{name}", text)
    link = tmp_path / "etc/systemd/system/network.service"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"/usr/lib/systemd/system/{service}")


@pytest.mark.parametrize(
    ("before", "mtu", "after"),
    [
        ("STARTMODE='auto'\nMTU=''\n", None, "STARTMODE='auto'\nMTU='9000'\n"),
        ("STARTMODE='auto'\nMTU='1500'\nMTU=8000 # SAN\nVLAN=no\n", 8000, "STARTMODE='auto'\nMTU='1500'\nMTU='9000' # SAN\nVLAN=no\n"),
        ('BOOTPROTO="static"\n# MTU=7000', None, "BOOTPROTO=\"static\"\n# MTU=7000\nMTU='9000'\n"),
        ('export MTU="1500"\nOLD_MTU=1\n', 1500, "export MTU='9000'\nOLD_MTU=1\n"),
    ],
)  # fmt: skip
def test_wicked_gets_one_line_and_keeps_all_other_bytes(tmp_path, before, mtu, after):
    _suse(tmp_path, before)
    place = _place(tmp_path, _runner())
    assert (place.provider, place.mtu, place.obstacle, place.concern) == ("wicked", mtu, "", "")
    (change,) = _change(tmp_path, _runner(), place, 9000).files
    assert (change["path"], change["before"], change["after"]) == ("/etc/sysconfig/network/ifcfg-eth1", before, after)
    write(tmp_path, change["path"], after)
    assert _place(tmp_path, _runner()).mtu == 9000


def test_host_that_changed_to_networkmanager_is_not_configured_by_wicked(tmp_path):
    _suse(tmp_path, "MTU=1500\n", service="NetworkManager.service")
    assert _place(tmp_path, _runner()).provider == ""
    assert _place(tmp_path, _runner(), "wicked").mtu == 1500
    assert _place(tmp_path, _runner(missing=("wicked",)), "wicked").provider == ""


def test_wicked_file_that_does_not_decide_is_reported(tmp_path):
    _suse(tmp_path, "BOOTPROTO='dhcp'\nMTU=$STORAGE_MTU\n")
    place = _place(tmp_path, _runner())
    assert "the value of MTU in /etc/sysconfig/network/ifcfg-eth1 is no number ($STORAGE_MTU)" in place.obstacle
    assert "configured by dhcp" in place.concern
    write(tmp_path, "/etc/sysconfig/network/ifcfg-eth1", "# managed by Salt\nMTU=1500\n")
    assert "Salt writes anew" in _place(tmp_path, _runner()).obstacle
