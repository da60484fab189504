# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the layers, what of them waits, and what is imported."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import SharedReading
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._host import converge as host_converge
from ansible_collections.cachefleet.storage.plugins.module_utils._host import plan as host_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostConvergence
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import Host, Stage, stages_of
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import read_request
from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner
from ansible_collections.cachefleet.storage.plugins.modules.cache_layers import argument_spec
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

HDD, SSD = "/dev/disk/by-id/ata-HDD", "/dev/disk/by-id/ata-SSD"
LISTS: dict[str, t.Any] = {
    "drives": [{"device": HDD, "write_cache": "disabled"}],
    "controllers": [{"provider": "arcconf", "id": "1", "maxcache": {"cache_volumes": [{"state": "absent", "data_volume": "a"}], "dirty_page_threshold": 5}}],
    "caches": [
        {"type": "bcache", "name": "a", "origin": HDD, "cache_devices": [SSD], "state": "absent"},
        {"type": "lvm_cache", "name": "b", "origin": "vg/data", "cache_devices": [SSD]},
    ],
    "queues": [{"match": {"rotational": False}, "scheduler": "none"}],
    "network": {"links": [{"interface": "eth1", "mtu": 9000}]},
}
TARGET = {"shelf": 1, "slot": 1, "interface": "eth1", "device": HDD}


def request_of(**params):
    return read_request({**{name: option.get("default") for name, option in argument_spec().items()}, **params})


def order(**params):
    return [stage.layer for stage in stages_of(request_of(**params))]


def test_what_goes_comes_first_then_the_layers_from_the_media_up():
    assert order(**LISTS) == ["bcache", "raid_maxcache", "drive_write_cache", "raid_cache", "raid_maxcache", "storage_network", "lvm_cache", "block_queue"]


def test_a_target_has_its_caches_before_its_network():
    served = {**LISTS, "network": {"aoe_targets": [TARGET]}}
    assert order(**served)[-3:] == ["lvm_cache", "storage_network", "block_queue"]


def test_empty_lists_are_no_layers():
    assert order() == []
    assert order(controllers=[{"id": "1"}]) == ["raid_cache"]
    assert order(network={"links": [], "revert_after": 60}) == []


@pytest.mark.parametrize(("value", "count"), [(True, 1), ("yes", 1), ("no", 0), ("false", 0), ("", 0), (None, 0)])
def test_migrate_is_read_as_a_boolean(value, count):
    cache = {"type": "lvm_cache", "name": "b", "origin": "vg/data", "cache_devices": [SSD], "migrate": value}
    assert len(request_of(caches=[cache]).migrating) == count


@pytest.mark.parametrize("unset", [None, ""])
def test_what_is_not_set_of_the_network_has_its_default(unset):
    network = request_of(network={**LISTS["network"], "aoe_initiator": unset, "aoe_targets": [], "aoe_receive_buffer": unset}).network
    assert (network["aoe_initiator"], network["aoe_receive_buffer"]) == (None, None)
    assert request_of(network={"links": [], "aoe_initiator": unset, "aoe_targets": []}).network is None


def test_only_the_layers_of_the_lists_are_imported():
    """Importing is most of a call on a slow host: what is packed and not needed must not be loaded."""
    script = (
        "import sys\n"
        "from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import stages_of\n"
        "from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import read_request\n"
        "from ansible_collections.cachefleet.storage.plugins.modules import cache_layers\n"
        "empty = {name: option.get('default') for name, option in cache_layers.argument_spec().items()}\n"
        f"request = read_request({{**empty, 'drives': {LISTS['drives']!r}, 'queues': {LISTS['queues']!r}}})\n"
        "[stage.make(type('Host', (), {'runner': None, 'root': None})()) for stage in stages_of(request)]\n"
        "print(' '.join(name.partition('module_utils.')[2] for name in sys.modules if '.module_utils._' in name and 'cachefleet' in name))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment).stdout.split()
    assert {"_device.drive_cache.layer", "_device.queue.layer"} <= set(answer)
    assert {name.split(".")[0] for name in answer} == {"_core", "_device", "_host", "_blockcache"}
    assert {name for name in answer if name.startswith("_blockcache.")} == {"_blockcache.division", "_blockcache.model", "_blockcache.types"}


# -- layers that are played


@dataclasses.dataclass(frozen=True)
class Set(Operation):
    name: str


class Played(Layer[t.Any, t.Any]):
    """A layer that sets a flag of a shared world, if it is not set; ``spec`` has the world, its name, and what its plan refuses."""

    def __init__(self, name, world, refusal=None, root=pathlib.Path("/")):
        super().__init__(t.cast("t.Any", None), None, root)
        self.name, self.world, self.refusal = name, world, refusal

    def read(self, *expected):
        self.world["drives"][self.name] = expected[0].drives if expected else {}
        self.world["reads"].append(self.name)
        return self.name in self.world["set"]

    def plan(self, state):
        if self.refusal is not None:
            error = self.refusal(self.world)
            if error is not None:
                raise error
        return [] if state else [Step(self.name, "item", "flag", False, True, f"Set {self.name}", Set(self.name))]

    def carry_out(self, operation, step):
        self.world["set"].append(operation.name)
        self.world["set"] = [name for name in self.world["set"] if name not in self.world.get(f"reset by {operation.name}", ())]


class Network(Played):
    def directions(self, state):
        return [] if state else ["raise"]


class Prediction:
    def __init__(self, layer):
        self.layer = layer

    def predict(self, drives):
        state = self.layer.read()
        self.layer.world["drives"][self.layer.name] = drives
        return type("Report", (), {"state": state, "steps": tuple(self.layer.plan(state))})()


@pytest.fixture
def play(monkeypatch, tmp_path):
    world: dict[str, t.Any] = {"set": [], "reads": [], "drives": {}}

    def converge(*names, refusals=None, check_mode=False, migrating=False, devices=(), lists=None, **options):
        refusals = refusals or {}
        groups = {"lvm_cache": "block_cache", "bcache": "block_cache"}

        def make(name):
            kind = Network if name == "storage_network" else Played
            return lambda host: kind(name, world, refusals.get(name))

        stages = [
            Stage(name, groups.get(name, name), make(name), () if raid else (HDD,), raid, takes_any_device=name == "block_queue")
            for name, raid in ((name, name == "raid_cache") for name in names)
        ]
        if devices:
            node, link = (tmp_path / path.lstrip("/") for path in (devices[-1].path, HDD))
            link.parent.mkdir(parents=True, exist_ok=True)
            node.touch()
            link.unlink(missing_ok=True)
            link.symlink_to(node)
            monkeypatch.setattr(host_plan, "read_devices", lambda runner, root: Devices(devices, tmp_path))
        monkeypatch.setattr(host_converge, "stages_of", lambda request: stages)
        monkeypatch.setattr(host_plan, "transaction_of", lambda layer, host, revert_after: Prediction(layer))
        monkeypatch.setattr(host_plan, "_without_removed", lambda drives, before: drives)
        monkeypatch.setattr(
            host_plan, "planned_drives", lambda before: {"sda": "disabled"} if any(one.stage.layer == "drive_write_cache" for one in before) else {}
        )
        monkeypatch.setattr(host_plan.Planner, "_migrating", lambda self, devices: migrating)
        host = Host(HostRunner(t.cast("t.Any", ScriptedRunner({("udevadm", "info"): Reply()}))), tmp_path)
        return HostConvergence(host, request_of(**lists or {}), check_mode=check_mode, **options).run()

    converge.world = world
    return converge


ALL = ("bcache", "drive_write_cache", "storage_network", "lvm_cache", "block_queue")


def test_a_network_that_changes_is_left_to_the_play_and_what_comes_after_it_waits(play):
    outcome = play(*ALL)
    assert play.world["set"] == ["bcache", "drive_write_cache"]
    assert (outcome.pending, outcome.waiting) == (["storage_network"], ["block_cache", "block_queue"])
    play.world["set"].append("storage_network")
    outcome = play(*ALL)
    assert (outcome.pending, outcome.waiting) == ([], [])
    assert play.world["set"] == [*ALL[:2], "storage_network", "lvm_cache", "block_queue"]
    assert play(*ALL).steps == []


def disk(**fields):
    return BlockDevice(**{"name": "sda", "path": "/dev/sda", "number": "8:0", "by_id": (HDD,), "transport": "sata", "driver": "ahci", **fields})


def test_layers_of_local_devices_do_not_wait_for_the_network(play):
    outcome = play(*ALL, devices=[disk()])
    assert play.world["set"] == ["bcache", "drive_write_cache", "lvm_cache", "block_queue"]
    assert (outcome.pending, outcome.waiting) == (["storage_network"], [])
    # Check mode has the steps in the same order.
    play.world["set"].clear()
    predicted = play(*ALL, devices=[disk()], check_mode=True)
    assert [step.layer for step in predicted.steps] == ["bcache", "drive_write_cache", "lvm_cache", "block_queue", "storage_network"]


@pytest.mark.parametrize("transport", ["aoe", "iscsi", "nbd", "nvme_fabrics", "rbd"])
def test_layers_of_devices_of_the_network_wait_for_it_and_so_do_those_after_them(play, transport):
    below = disk(name="etherd!e1.1", path="/dev/etherd/e1.1", by_id=(), transport=transport, holders=("dm-0",))
    above = disk(name="dm-0", path="/dev/dm-0", number="253:0", transport="virtual", slaves=(below.name,))
    outcome = play(*ALL, devices=[below, above])
    assert play.world["set"] == ["bcache", "drive_write_cache"]
    assert (outcome.pending, outcome.waiting) == (["storage_network"], ["block_cache", "block_queue"])


def test_queues_of_whatever_matches_wait_for_a_network_that_may_attach_more(play):
    network = {"aoe_initiator": {"interfaces": ["eth1"]}}
    outcome = play(*ALL, devices=[disk()], lists={"network": network})
    assert play.world["set"] == ["bcache", "drive_write_cache", "lvm_cache"]
    assert (outcome.pending, outcome.waiting) == (["storage_network"], ["block_queue"])
    play.world["set"].clear()
    predicted = play(*ALL, devices=[disk()], lists={"network": network}, check_mode=True)
    assert [step.layer for step in predicted.steps] == ["bcache", "drive_write_cache", "lvm_cache", "storage_network", "block_queue"]


@pytest.mark.parametrize(("driver", "reads"), [("ahci", 2), ("megaraid_sas", 3), ("mpt3sas", 3)])
def test_controllers_are_read_again_after_a_change_of_drives_that_their_tools_report(play, driver, reads):
    play("drive_write_cache", "raid_cache", devices=[disk(driver=driver)])
    assert play.world["reads"].count("raid_cache") == reads
    assert play.world["set"] == ["drive_write_cache", "raid_cache"]


def test_which_queues_are_of_devices_that_no_path_names():
    def queues(entry):
        return next(stage for stage in stages_of(request_of(queues=[{**entry, "scheduler": "none"}])) if stage.layer == "block_queue")

    assert queues({"match": {"rotational": True}}).takes_any_device
    assert not queues({"device": HDD}).takes_any_device
    assert not request_of(network={"links": [{"interface": "eth1", "mtu": 9000}]}).attaches
    assert request_of(network={"aoe_initiator": {"interfaces": ["eth1"]}}).attaches


@pytest.mark.parametrize(
    ("names", "migrating", "message"),
    [
        (ALL, False, "storage_network would still change this host after the role was run: Set storage_network. Run the playbook again."),
        (
            ("drive_write_cache", "lvm_cache", "block_queue"),
            True,
            "block_cache would still change this host after the role was run: Set lvm_cache. Run the playbook again.",
        ),
    ],
)
def test_steps_that_are_left_after_the_role_was_run_are_an_error(play, names, migrating, message):
    with pytest.raises(NotEffective) as raised:
        play(*names, migrating=migrating, allow_pending=False)
    assert raised.value.message == message
    result = raised.value.to_dict()
    assert result["pending"] == [message.partition(" ")[0]] and result["changed"] is True
    assert "block_queue" in result["not_done"] or migrating
    assert "drive_write_cache" in result["done"]
    # What the role has done is accepted.
    play.world["set"] += [name for name in names if name not in play.world["set"]]
    assert play(*names, allow_pending=False).pending == []


def test_what_a_layer_resets_in_one_before_it_is_found_by_verification_and_only_by_it(play):
    play.world["reset by lvm_cache"] = ["drive_write_cache"]
    names = ("drive_write_cache", "lvm_cache")
    assert play(*names).done == list(names)
    play.world["set"].clear()
    with pytest.raises(NotEffective) as raised:
        play(*names, verify=True)
    result = raised.value.to_dict()
    assert result["msg"] == "Every layer was configured and read back, but all together are not as specified: Set drive_write_cache."
    assert (result["layer"], result["changed"], result["actions"]) == ("drive_write_cache", True, ["Set drive_write_cache", "Set lvm_cache"])
    assert (result["done"], result["not_done"], result.get("broke_off")) == (list(names), [], None)
    del play.world["reset by lvm_cache"]
    assert play(*names, verify=True).done == list(names)


def test_verification_plans_once_more_only_if_more_than_a_drive_has_changed(play):
    def reads(*names):
        play.world["reads"].clear()
        play(*names, verify=True)
        return len(play.world["reads"])

    # Planned, and read back.
    assert reads("drive_write_cache") == 2
    # Both planned, the cache read back, and both once more.
    assert reads("drive_write_cache", "lvm_cache") == 5
    assert reads("drive_write_cache", "lvm_cache") == 2


def test_verification_leaves_out_what_waits_for_the_play(play):
    outcome = play(*ALL, verify=True)
    assert (outcome.pending, play.world["set"]) == (["storage_network"], ["bcache", "drive_write_cache"])


def test_check_mode_predicts_the_network_and_what_comes_after_it(play):
    outcome = play(*ALL, check_mode=True)
    assert [step.layer for step in outcome.steps] == list(ALL)
    assert (outcome.pending, outcome.waiting, play.world["set"]) == ([], [], [])


def test_a_migration_is_left_to_the_play_also_in_check_mode(play):
    outcome = play("drive_write_cache", "lvm_cache", "block_queue", migrating=True)
    assert (outcome.pending, outcome.waiting) == (["block_cache"], ["block_queue"])
    assert play.world["set"] == ["drive_write_cache"]
    play.world["set"].clear()
    outcome = play("drive_write_cache", "lvm_cache", "block_queue", migrating=True, check_mode=True)
    assert (outcome.pending, [step.layer for step in outcome.steps]) == (["block_cache"], ["drive_write_cache", "block_queue"])


def test_a_risk_that_a_layer_before_removes_is_planned_again_after_it(play):
    def refusal(world):
        return None if "bcache" in world["set"] else Refused("b: nothing to cache yet.", item="b")

    predicted = play("bcache", "lvm_cache", refusals={"lvm_cache": refusal}, check_mode=True)
    assert predicted.undetermined == {"lvm_cache": "b: nothing to cache yet."}
    assert "its steps can be predicted only after those of the layers before it" in predicted.warnings[0]
    # Nothing relates the two without a device that both are about.
    with pytest.raises(Refused):
        play("lvm_cache", refusals={"lvm_cache": refusal})
    assert play.world["set"] == []


def test_refusal_that_no_layer_before_resolves_comes_before_the_first_change(play):
    """What drives will be is expected by the layers above them, so that disabling their caches is no reason to wait."""
    refused = Refused("images: vg0/images would lose data if sdb failed.", item="images")
    for check_mode in (False, True):
        with pytest.raises(Refused):
            play("drive_write_cache", "lvm_cache", refusals={"lvm_cache": lambda _world: refused}, check_mode=check_mode)
        assert play.world["set"] == []


def test_refusal_of_a_served_target_waits_for_the_drives_below_it(play):
    refusal = {
        "storage_network": lambda world: None if "drive_write_cache" in world["set"] else Refused("e7.1: a power failure would lose writes.", item="e7.1")
    }
    predicted = play("drive_write_cache", "storage_network", refusals=refusal, check_mode=True)
    assert predicted.undetermined == {"storage_network": "e7.1: a power failure would lose writes."}


def test_a_device_that_a_layer_before_creates_is_waited_for(play):
    def missing(world):
        return None if "bcache" in world["set"] else DeviceMissing("/dev/bcache0 does not exist on this host.", item="/dev/bcache0")

    outcome = play("bcache", "block_queue", refusals={"block_queue": missing})
    assert (outcome.done, play.world["set"]) == (["bcache", "block_queue"], ["bcache", "block_queue"])


def test_caches_and_targets_are_planned_over_drives_as_they_will_be(play):
    """In a plan of the whole host; a layer that is planned once more in its turn gets no expectations."""
    play(*ALL, check_mode=True)
    planned = {"sda": "disabled"}
    assert play.world["drives"] == {"bcache": {}, "drive_write_cache": {}, "storage_network": planned, "lvm_cache": planned, "block_queue": {}}
    play("drive_write_cache", "lvm_cache")
    assert play.world["drives"]["lvm_cache"] == {}


def test_targets_lie_on_drives(tmp_path):
    [stage] = stages_of(request_of(network={"aoe_targets": [TARGET]}))
    layer = t.cast("t.Any", stage.layer_on(Host(HostRunner(t.cast("t.Any", ScriptedRunner({}))), tmp_path)))
    assert [part.over_drives for part in layer.spec.parts] == [True]


def test_a_layer_is_read_again_only_after_a_change(play):
    play("drive_write_cache", "block_queue")
    # Read for the plan, read back, read again before its turn, read back.
    assert play.world["reads"] == ["drive_write_cache", "block_queue", "drive_write_cache", "block_queue", "block_queue"]
    play.world["reads"].clear()
    play("drive_write_cache", "block_queue")
    assert play.world["reads"] == ["drive_write_cache", "block_queue"]


def test_a_shared_runner_runs_a_command_once_until_something_changes():
    inner = ScriptedRunner({("lvm",): Reply("a"), ("dmsetup",): Reply("b")})
    runner = HostRunner(t.cast("t.Any", inner))
    other = HostRunner(t.cast("t.Any", inner), runner.shared)
    assert [runner.run(["lvm", "fullreport"]).stdout, other.run(["lvm", "fullreport"]).stdout] == ["a", "a"]
    assert inner.calls == [("lvm", "fullreport")]
    runner.shared.forget(remember=False)
    runner.run(["dmsetup", "resume", "x"])
    runner.run(["dmsetup", "resume", "x"])
    assert inner.calls[1:] == [("dmsetup", "resume", "x")] * 2
    runner.shared.forget()
    runner.run(["lvm", "fullreport"])
    assert len(inner.calls) == 4


def test_waiting_forgets_what_was_read_and_keeps_what_is_being_changed():
    shared = SharedReading()
    runner = HostRunner(t.cast("t.Any", ScriptedRunner({})), shared)
    host = Host(runner, sleep=lambda seconds: None)
    assert shared.recall("key", lambda: 1) == 1
    host.wait(1.0)
    assert shared.recall("key", lambda: 2) == 2
    shared.forget(remember=False)
    host.wait(1.0)
    assert not shared.remembering
