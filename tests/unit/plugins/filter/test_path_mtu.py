# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts prove the MTU to which others."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.filter.path_mtu import FilterModule

path_mtu_peers = FilterModule().filters()["path_mtu_peers"]


def end(number, *, target=False, requested=(), network=77):
    interfaces = [
        {"name": "eth0", "mac": "52:00:00:00:00:00", "addresses": [f"10.0.0.{number}"], "networks": ["10.0.0.0/24"]},
        {"name": "eth1", "mac": "52:00:00:00:00:AA", "addresses": [f"192.168.{network}.{number}"], "networks": [f"192.168.{network}.0/24"]},
    ]
    return {"interfaces": interfaces, "target": target, "wanted": list(requested)}


def names(peers):
    return [peer["name"] for peer in peers]


def test_hosts_of_one_role_form_a_ring():
    ends = {f"n{number}": end(number, requested=["eth1"]) for number in range(5)}
    assert names(path_mtu_peers(ends, "n3", 2)) == ["n4", "n0"]
    assert path_mtu_peers(ends, "n4", 1) == [{"name": "n0", "address": "192.168.77.0"}]
    met = {name for host in ends for name in names(path_mtu_peers(ends, host, 1))}
    assert met == set(ends)


def test_initiators_and_targets_check_each_other():
    ends = {
        "i1": end(1, requested=["eth1"]),
        "i2": end(2, requested=["eth1"]),
        "t1": end(3, target=True, requested=["eth1"]),
        "t2": end(4, target=True, requested=["eth1"]),
    }
    assert names(path_mtu_peers(ends, "i1")) == ["t1", "t2"]
    assert names(path_mtu_peers(ends, "t1")) == ["i1", "i2"]


def test_only_common_networks_are_used_and_a_mac_selects_an_interface():
    ends = {"a": end(1, requested=["52:00:00:00:00:aa"]), "b": end(2, requested=["eth1"], network=78), "c": end(3, requested=["eth1"])}
    assert path_mtu_peers(ends, "a") == [{"name": "c", "address": "192.168.77.3"}]
    assert path_mtu_peers(ends, "b") == []


def test_all_interfaces_are_used_by_default():
    ends = {"a": end(1), "b": end(2)}
    assert [peer["address"] for peer in path_mtu_peers(ends, "a")] == ["10.0.0.2", "192.168.77.2"]


@pytest.mark.parametrize(("ends", "host", "says"), [([], "a", "dictionary by host"), ({"a": {}}, "a", "list of interfaces"), ({"a": end(1)}, "b", "b is not")])
def test_invalid_options_are_rejected(ends, host, says):
    with pytest.raises(AnsibleFilterError, match=says):
        path_mtu_peers(ends, host)
