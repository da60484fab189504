# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The AoE initiator: its interfaces now and at boot, and what its frames carry after an MTU has changed."""

from __future__ import annotations

import itertools
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import payload
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import AoeInitiatorLayer, read_spec
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


class Initiator:
    """A host with an AoE driver that answers whenever the layer waits: it knows the MTU of each target."""

    def __init__(self, root, *, loaded=True, interfaces="eth1"):
        self.host = FakeHost(root)
        self.root = root
        self.targets = {}
        self.now = 0.0
        self.replies = {
            ("systemctl", "is-enabled"): Reply("static\n"),
            ("systemctl", "unmask"): self.unmask,
            ("modprobe", "--dry-run"): Reply(),
            ("modprobe", "aoe"): self.load,
        }
        self.runner = ScriptedRunner(self.replies)
        self.mtu("eth1", 9000)
        if loaded:
            self.load(("modprobe", "aoe", f"aoe_iflist={interfaces}"))

    def mtu(self, interface, number):
        self.host.write(f"sys/class/net/{interface}/mtu", f"{number}\n")

    def load(self, words):
        given = dict(word.split("=", 1) for word in words[2:])
        for name, value in {"aoe_iflist": "", "aoe_deadsecs": "180", "aoe_maxout": "64", "aoe_maxsectors": "0", **given}.items():
            self.host.write(f"sys/module/aoe/parameters/{name}", value + "\n")
        for node in ("discover", "revalidate"):
            self.host.write(f"dev/etherd/{node}", "")
        return Reply()

    def unmask(self, _words):
        self.runner.replies[("systemctl", "is-enabled")] = Reply("static\n")
        return Reply()

    def target(self, name, mtu, *, interface="eth1", state="up", carried=None):
        if not (self.root / "sys/block" / f"etherd!{name}").exists():
            self.host.disk(f"etherd!{name}", "virtual")
        own = int((self.root / f"sys/class/net/{interface}/mtu").read_text())
        self.targets[name] = (mtu, interface)
        self.show(name, interface, state, carried if carried is not None else min(payload(mtu), payload(own)))

    def show(self, name, interface, state, carried):
        for file, text in {"payload": carried, "netif": interface, "state": state, "mac": "2a177953084a"}.items():
            self.host.write(f"sys/devices/virtual/block/etherd!{name}/{file}", f"{text}\n")

    def sleep(self, seconds):
        """The driver hears of everybody who answers, once it was told to ask."""
        self.now += seconds
        if (self.root / "dev/etherd/discover").read_text():
            for name, (mtu, interface) in self.targets.items():
                self.target(name, mtu, interface=interface)

    def layer(self, **params):
        spec = read_spec({"interfaces": ["eth1"], "devices": [], **params})
        return AoeInitiatorLayer(self.runner, spec, self.root, clock=lambda: self.now, sleep=self.sleep)

    def converge(self, check_mode=False, **params):
        return converge(self.layer(**params), check_mode=check_mode)

    def text(self, path):
        return (self.root / path).read_text()


@pytest.fixture
def initiator(tmp_path):
    return Initiator(tmp_path)


def settle(initiator, **params):
    initiator.converge(**params)
    assert initiator.converge(**params).changed is False


def test_full_or_read_only_file_system_at_any_change_leaves_no_half_file(tmp_path):
    numbers = itertools.count()
    strike_everywhere(lambda: Initiator(tmp_path / str(next(numbers)), loaded=False), lambda initiator: initiator.converge(dead_seconds=60))


def test_empty_request_reads_nothing(tmp_path):
    runner = ScriptedRunner({})
    for params in (None, {}, {"interfaces": []}):
        layer = AoeInitiatorLayer(runner, read_spec(params), tmp_path)
        assert converge(layer, check_mode=False).changed is False
    assert runner.calls == []


def test_module_is_loaded_with_its_interfaces_now_and_at_boot(tmp_path):
    initiator = Initiator(tmp_path, loaded=False)
    outcome = initiator.converge(dead_seconds=60)
    assert [step.attribute for step in outcome.steps] == ["boot_options", "boot_module", "module"]
    assert ("modprobe", "aoe", "aoe_iflist=eth1", "aoe_deadsecs=60") in initiator.runner.calls
    assert initiator.text("etc/modprobe.d/cachefleet-aoe.conf").splitlines()[-1] == "options aoe aoe_iflist=eth1 aoe_deadsecs=60"
    assert initiator.text("etc/modules-load.d/cachefleet-aoe.conf").splitlines()[-1] == "aoe"
    assert initiator.converge(dead_seconds=60).changed is False


def test_check_mode_changes_nothing(tmp_path):
    initiator = Initiator(tmp_path, loaded=False)
    assert initiator.converge(check_mode=True).changed
    assert not (tmp_path / "etc").exists()
    assert not any(call[:2] == ("modprobe", "aoe") for call in initiator.runner.calls)


def test_loaded_module_is_reported_and_not_reloaded(initiator):
    initiator.mtu("eth2", 9000)
    outcome = initiator.converge(interfaces=["eth2", "eth1"], max_outstanding=128, max_sectors=0)
    assert [(step.attribute, step.after) for step in outcome.steps][2:] == [("interfaces", "eth2,eth1"), ("aoe_maxout", 128)]
    assert initiator.text("sys/module/aoe/parameters/aoe_iflist") == "eth2,eth1"
    assert initiator.text("sys/module/aoe/parameters/aoe_maxout") == "128"
    assert not any(call[0] == "modprobe" for call in initiator.runner.calls)
    settle(initiator, interfaces=["eth1", "eth2"])


def test_module_on_all_interfaces_is_restricted(tmp_path):
    initiator = Initiator(tmp_path, interfaces="")
    step = next(step for step in initiator.converge().steps if step.attribute == "interfaces")
    assert (step.before, step.after) == ("all interfaces", "eth1")


def test_masked_unit_is_unmasked(initiator):
    initiator.runner.replies[("systemctl", "is-enabled")] = Reply("masked\n", rc=1)
    assert "boot_discovery" in [step.attribute for step in initiator.converge().steps]
    assert initiator.converge().changed is False


@pytest.mark.parametrize(("params", "says"), [({"interfaces": ["eth9"]}, "no interface eth9"), ({"interfaces": ["eth1", "x y"]}, "not the name")])
def test_missing_interface_is_reported(initiator, params, says):
    with pytest.raises(BadInput, match=says):
        initiator.converge(**params)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"devices": [{"name": "7.1"}]}, "use a name such as e7.1"),
        ({"devices": [{"name": "e7.1", "payload": 8700}]}, "sectors of 512"),
        ({"devices": [{"name": "e7.1"}, {"name": "e7.1"}]}, "listed twice"),
        ({"dead_seconds": 0}, "dead_seconds cannot be 0"),
        ({"interfaces": ["a" * 14 + str(number) for number in range(100, 200)]}, "not the name|longer than"),
    ],
)
def test_invalid_options_are_rejected(params, says):
    with pytest.raises(BadInput, match=says):
        read_spec({"interfaces": ["eth1"], **params})


def test_kernel_without_driver_is_reported(tmp_path):
    initiator = Initiator(tmp_path, loaded=False)
    initiator.runner.replies[("modprobe", "--dry-run")] = Reply(rc=1)
    (tmp_path / "lib/modules" / os.uname().release).mkdir(parents=True)
    with pytest.raises(ToolMissing, match=r"^aoe_initiator: the kernel module aoe is not available on kernel .*CONFIG_ATA_OVER_ETH"):
        initiator.converge()


@pytest.mark.parametrize("use", ["mount", "holder", "swap"])
def test_target_in_use_is_not_disconnected(initiator, use):
    initiator.mtu("eth2", 1500)
    initiator.target("e7.1", 1500, interface="eth2")
    if use == "mount":
        initiator.host.mount("etherd!e7.1", "/srv")
    elif use == "holder":
        initiator.host.disk("dm-0", "virtual", dm_name="vg-lv", slaves=["etherd!e7.1"])
    else:
        initiator.host.swap_on("etherd/e7.1")
    with pytest.raises(Refused, match=r"e7\.1 is in use .*allow_unreachable: true"):
        initiator.converge()
    assert initiator.converge(allow_unreachable=True).changed
    assert initiator.converge(interfaces=["eth2", "eth1"]).changed


def test_idle_target_on_another_interface_may_be_dropped(initiator):
    initiator.mtu("eth2", 1500)
    initiator.target("e7.1", 1500, interface="eth2")
    settle(initiator)


@pytest.mark.parametrize(("before", "after", "carried"), [(9000, 8700, 8192), (1500, 8700, 8192), (1500, 4200, 4096), (1500, 9000, 8704), (9000, 1500, 1024)])
def test_payload_is_renegotiated_after_mtu_change(initiator, before, after, carried):
    initiator.mtu("eth1", before)
    initiator.target("e7.1", 9000)
    settle(initiator)
    layer = initiator.layer()
    (step,) = layer.plan(layer.read().after_links({"eth1": after, "eth5": 1500}))
    assert (step.item, step.attribute, step.before, step.after) == ("e7.1", "payload", payload(before), carried)
    initiator.mtu("eth1", after)
    layer.apply(step)
    assert layer.verify(layer.read()) == []
    assert layer.facts(layer.read())["aoe_devices"][0]["payload"] == carried


def test_unchanged_mtu_plans_nothing(initiator):
    initiator.target("e7.1", 9000)
    settle(initiator)
    layer = initiator.layer()
    assert layer.plan(layer.read().after_links({"eth1": 9000})) == []


def test_frames_larger_than_the_mtu_are_renegotiated(initiator):
    initiator.target("e7.1", 9000, carried=8704)
    settle(initiator)
    initiator.mtu("eth1", 1500)
    assert [step.after for step in initiator.converge().steps] == [1024]


def test_target_with_smaller_payload_is_reported_without_change(initiator):
    initiator.target("e7.1", 1500)
    initiator.converge()
    outcome = initiator.converge()
    assert outcome.changed is False
    assert "e7.1 carries 1024 bytes in a frame, and 8704 would fit into the MTU of eth1" in outcome.warnings[0]


def test_required_payload_is_verified(initiator):
    initiator.mtu("eth1", 8700)
    initiator.target("e7.1", 9000)
    settle(initiator, devices=[{"name": "e7.1", "payload": 8192}])
    initiator.target("e7.1", 1500, carried=8192)
    initiator.targets["e7.1"] = (1500, "eth1")
    initiator.show("e7.1", "eth1", "up", 1024)
    with pytest.raises(NotEffective, match=r"payload should be 8192 and is 1024, although eth1 \(MTU 8700\) allows it"):
        initiator.converge(devices=[{"name": "e7.1", "payload": 8192}])
    with pytest.raises(NotEffective, match=r"payload should be 8704 and is 1024: eth1 \(MTU 8700\) allows 8192"):
        initiator.converge(devices=[{"name": "e7.1", "payload": 8704}])


def test_required_target_is_discovered(initiator):
    initiator.targets["e7.1"] = (9000, "eth1")
    outcome = initiator.converge(devices=[{"name": "e7.1"}])
    assert [(step.item, step.before, step.after) for step in outcome.steps if step.attribute == "state"] == [("e7.1", None, "up")]
    assert initiator.converge(devices=[{"name": "e7.1"}]).changed is False


def test_unreachable_required_target_fails_with_its_name(initiator):
    with pytest.raises(NotEffective, match=r"e7\.1: state should be up and is None"):
        initiator.converge(devices=[{"name": "e7.1", "payload": 8192}])


def test_target_in_state_down_is_reported(initiator):
    initiator.converge()
    initiator.target("e7.1", 9000, state="down")
    initiator.target("e7.2", 9000, state="down,closewait")
    initiator.host.mount("etherd!e7.2", "/srv")
    outcome = initiator.converge()
    assert outcome.changed is False
    assert [sentence.split(":")[0] for sentence in outcome.warnings] == ["e7.1 is down", "e7.2 is down and in use"]


def test_options_in_another_file_are_reported(initiator):
    initiator.host.write("etc/modprobe.d/zz-aoe.conf", "options aoe aoe_iflist=eth0\n")
    initiator.host.write("etc/modprobe.d/other.conf", "# options aoe x\noptions aoeng y\n")
    assert [sentence.split(" gives")[0] for sentence in initiator.converge().warnings] == ["/etc/modprobe.d/zz-aoe.conf"]
