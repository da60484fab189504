# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""MTUs as variables: what is described changes nothing."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links import layer as link_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.description import describe
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.layer import LinkLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LINK_OPTIONS, read_specs
from ansible_collections.cachefleet.storage.tests.unit.plugins.module_utils._net.storage_network.test_transaction import Host


@pytest.fixture
def host(tmp_path, monkeypatch):
    monkeypatch.setattr(link_layer, "find_peers", lambda root: ())
    return Host(tmp_path, monkeypatch)


def run(host, *entries, check_mode=False):
    validated = [ArgumentSpecValidator(LINK_OPTIONS).validate(dict(entry)) for entry in entries]
    assert [one.error_messages for one in validated] == [[]] * len(entries)
    specs = read_specs([one.validated_parameters for one in validated])
    return converge(LinkLayer(host.runner, specs, host.root, peers=()), check_mode=check_mode)


def entries(host, **more):
    return [entry.values for entry in describe(host.runner, host.root, **more).entries]


def test_interfaces_with_the_usual_mtu_are_described_only_when_all_are_asked_for(host):
    assert entries(host) == []
    # Nothing sets it at boot, so it is one of now.
    assert entries(host, every=True) == [
        {"interface": "eth1", "mtu": 1500, "persistent": False},
        {"interface": "eth1.5", "mtu": 1500, "persistent": False},
    ]
    assert run(host, *entries(host, every=True), check_mode=True).steps == ()


def test_an_mtu_of_now_and_of_the_next_boot_is_described_by_its_number(host):
    run(host, {"interface": "eth1", "mtu": 9000})
    assert entries(host) == [{"interface": "eth1", "mtu": 9000}]
    assert run(host, *entries(host), check_mode=True).steps == ()


def test_an_mtu_that_was_changed_by_hand_is_brought_back(host):
    run(host, {"interface": "eth1", "mtu": 9000})
    before, wanted = describe(host.runner, host.root), entries(host)
    host.write("sys/class/net/eth1/mtu", "4000\n")
    assert run(host, *wanted).changed
    assert describe(host.runner, host.root) == before


def test_what_cannot_be_read_of_the_boot_is_said(host):
    host.write("sys/class/net/eth1/mtu", "9000\n")
    host.write("etc/network/interfaces", "")
    assert entries(host) == [{"interface": "eth1", "mtu": 9000, "persistent": False}]
