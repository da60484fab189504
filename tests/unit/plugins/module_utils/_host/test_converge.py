# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""All layers of a host in one call, on a host that lives in files and memory."""

from __future__ import annotations

import collections
import typing as t

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing, NotEffective, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveWriteCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import read_specs as read_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import read_specs as read_queues
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostConvergence
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import Host, stages_of
from ansible_collections.cachefleet.storage.plugins.module_utils._host.plan import Planner, planned_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import VolatileBelow
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import FakeLvm
from ansible_collections.cachefleet.storage.tests.unit.support.host_rig import CACHES, DRIVES, HDD, QUEUES, SPARE, SSD, HostRig

ALL = {"drives": DRIVES, "caches": CACHES, "queues": QUEUES}


@pytest.fixture
def rig(tmp_path, monkeypatch):
    return HostRig(tmp_path, monkeypatch)


def test_empty_lists_read_nothing(rig):
    outcome = rig.converge()
    assert (outcome.to_dict()["changed"], outcome.done, rig.calls) == (False, [], [])


def test_check_mode_predicts_run_and_second_run_changes_nothing(rig):
    predicted = rig.converge(check_mode=True, **ALL).to_dict()
    assert rig.changes == []
    done = rig.converge(**ALL).to_dict()
    assert done["actions"] == predicted["actions"]
    assert done["diff"] == predicted["diff"]
    assert set(done["diff"]["after"]) == {"drive_write_cache", "lvm_cache", "block_queue"}
    assert done["done"] == predicted["done"] == ["drive_write_cache", "lvm_cache", "block_queue"]
    again = rig.converge(**ALL).to_dict()
    assert (again["changed"], again["actions"], again["pending"], again["waiting"]) == (False, [], [], [])


def test_a_converged_host_runs_every_reading_command_once(rig):
    rig.converge(**ALL)
    rig.calls.clear()
    rig.converge(**ALL)
    assert max(collections.Counter(rig.calls).values()) == 1
    assert collections.Counter(words[0] for words in rig.calls) == {"udevadm": 1, "lvm": 1, "dmsetup": 1, "hdparm": 1}


def test_a_cache_is_planned_with_readings_from_after_the_change_of_a_drive_below_it(rig):
    rig.converge(drives=DRIVES, caches=CACHES)
    changed = rig.calls.index(("hdparm", "-W0", "/dev/sda"))
    before_the_cache = rig.calls[changed + 1 : rig.calls.index(("pvcreate", SSD))]
    readings = collections.Counter(words[:2] for words in before_the_cache)
    # Devices and drives are read back by the layer of the drives, and the others for the plan; devices and wipefs once more right before pvcreate.
    assert readings == {("udevadm", "control"): 1, ("udevadm", "info"): 2, ("hdparm", "-W"): 1, ("lvm", "fullreport"): 1, ("wipefs", "--no-act"): 2}


def test_single_layers_read_block_devices_once_each(rig):
    """What sharing saves: the same host by the layers alone."""
    rig.converge(**ALL)
    rig.calls.clear()
    for params in ({"drives": DRIVES}, {"caches": CACHES}, {"queues": QUEUES}):
        rig.converge(**params)
    assert collections.Counter(words[0] for words in rig.calls)["udevadm"] == 3


def test_a_call_that_is_limited_changes_only_these_layers(rig):
    assert rig.converge(groups=["block_queue"], **ALL).done == ["block_queue"]
    assert rig.lvm.changes == []


def test_bad_input_of_the_last_layer_is_found_before_the_first_changes(rig):
    with pytest.raises(BadInput):
        rig.converge(**{**ALL, "queues": [{"device": SPARE, "scheduler": "nonsense", "persistent": False}]})
    assert rig.changes == []


def test_a_device_that_no_layer_creates_is_missing_before_anything_changes(rig):
    with pytest.raises(DeviceMissing):
        rig.converge(drives=DRIVES, queues=[{"device": "/dev/disk/by-id/ata-NONE", "scheduler": "none", "persistent": False}])
    assert rig.changes == []


def test_unknown_options_and_types_are_one_sentence(rig):
    with pytest.raises(BadInput, match=r"drives \(variable \w+\): .*there is no key write_cach: did you mean write_cache\?$"):
        rig.converge(drives=[{"device": HDD, "write_cach": "disabled"}])
    with pytest.raises(BadInput, match="caches: the type zcache of images is not supported"):
        rig.converge(caches=[{**CACHES[0], "type": "zcache"}])


def test_a_missing_tool_leaves_out_its_layer_and_the_others_are_done(tmp_path, monkeypatch):
    rig = HostRig(tmp_path, monkeypatch, missing=("lvm",))
    with pytest.raises(ToolMissing) as failure:
        rig.converge(**ALL)
    facts = failure.value.to_dict()
    assert facts["msg"].startswith("lvm_cache was left out: The command lvm is missing on this host")
    assert facts["msg"].endswith("Done without it: drive_write_cache, block_queue.")
    assert (facts["done"], facts["not_done"], facts["changed"]) == (["drive_write_cache", "block_queue"], ["lvm_cache"], True)
    assert set(facts["diff"]["after"]) == {"drive_write_cache", "block_queue"}
    assert [step["layer"] for step in facts["steps"]][:1] == ["drive_write_cache"]


def test_one_reason_of_several_layers_is_said_once(tmp_path, monkeypatch):
    rig = HostRig(tmp_path, monkeypatch)
    outcome = HostConvergence(Host(HostRunner(rig), rig.root), rig.request(**ALL), check_mode=False)
    outcome.outcome.left_out = {"raid_cache": ToolMissing("No tool."), "raid_maxcache": ToolMissing("No tool."), "lvm_cache": ToolMissing("No LVM.")}
    with pytest.raises(ToolMissing, match=r"^raid_cache and raid_maxcache were left out: No tool; lvm_cache was left out: No LVM\.$"):
        outcome._sum_up()


def test_what_depends_on_a_layer_without_its_tool_is_left_out_too(tmp_path, monkeypatch):
    rig = HostRig(tmp_path, monkeypatch, missing=("lvm",))
    queue = {"device": "/dev/mapper/made-by-lvm", "scheduler": "none", "persistent": False}
    with pytest.raises(ToolMissing, match="block_queue was left out: it depends on lvm_cache"):
        rig.converge(**{**ALL, "queues": [queue]})
    assert rig.queues.writes == []


def test_a_failed_step_names_what_was_done_and_what_was_not(rig):
    rig.lvm.lies = {"lvcreate": (5, False)}
    with pytest.raises(CommandFailed) as failure:
        rig.converge(**ALL)
    facts = failure.value.facts
    assert (facts["layer"], facts["done"], facts["not_done"]) == ("lvm_cache", ["drive_write_cache"], ["lvm_cache", "block_queue"])
    assert facts["changed"]
    assert facts["actions"][0].startswith(f"Disable the write cache of {HDD}")
    # Also what the layer that failed has done before.
    assert [step["action"] for step in facts["steps"]] == facts["actions"]
    assert "lvm_cache" in {step["layer"] for step in facts["steps"]}
    assert facts["broke_off"] not in facts["actions"]
    assert rig.queues.writes == []


def test_a_setting_without_effect_names_the_layer(rig):
    rig.queues.deaf.add("sdc")
    with pytest.raises(NotEffective) as failure:
        rig.converge(**ALL)
    assert (failure.value.facts["layer"], failure.value.facts["done"]) == ("block_queue", ["drive_write_cache", "lvm_cache"])


def test_the_stack_is_what_it_will_be_after_the_drives(rig):
    """A cache that passes no flushes on is planned over drives as they will be, so that check mode predicts it."""
    below = VolatileBelow(rig, root=rig.root)
    assert below(HDD) == ["/dev/sda has its volatile write cache on"]
    assert below(HDD, {"sda": "disabled"}) == []
    assert below(HDD, {"sdb": "disabled"}) == below(HDD)
    rig.machine.drives["sda"].on = False
    below = VolatileBelow(rig, root=rig.root)
    assert below(HDD, {"sda": "enabled"}) == ["/dev/sda will have its volatile write cache on, as drive_write_cache requires"]


def test_what_is_planned_for_drives_is_known_by_kernel_name(rig):
    request = rig.request(drives=DRIVES, queues=QUEUES)
    planner = Planner(Host(HostRunner(t.cast("t.Any", rig)), rig.root), request, check_mode=True)
    plan = planner.plan(planner.make(stages_of(request)))
    assert planned_drives(plan.stages) == {"sda": "disabled"}


def _alone(rig, drives, caches, queues):
    """The same lists by the layers of the single modules, one after the other."""
    steps = []
    request = rig.request(drives=drives, caches=caches, queues=queues)
    removed = [item for lists in request.caches.values() for item in lists.removed]
    rest = [item for lists in request.caches.values() for item in lists.rest]
    runs = [
        (removed, lambda: LvmCacheLayer(rig, read_items(removed), rig.root, sleep=lambda seconds: None)),
        (drives, lambda: DriveWriteCacheLayer(rig, read_drives(request.drives), rig.root)),
        (rest, lambda: LvmCacheLayer(rig, read_items(rest), rig.root, sleep=lambda seconds: None)),
        (queues, lambda: BlockQueueLayer(rig, QueuesSpec(read_queues(request.queues["devices"])), rig.root)),
    ]
    for asked, make in runs:
        if asked:
            steps += converge(make(), check_mode=False).steps
    return [(step.layer, step.item, step.attribute, step.before, step.after, step.action) for step in steps]


_DRIVES = st.dictionaries(st.sampled_from([HDD, SSD, SPARE]), st.sampled_from(["enabled", "disabled"]))
_CACHES = st.lists(
    st.fixed_dictionaries({"mode": st.sampled_from(["writethrough", "writeback"]), "state": st.sampled_from(["present", "flushed", "absent"])}), max_size=1
)
_QUEUES = st.dictionaries(st.sampled_from([HDD, SSD, SPARE]), st.fixed_dictionaries({"scheduler": st.sampled_from(["none", "kyber"])}))


@given(drives=_DRIVES, caches=_CACHES, queues=_QUEUES, cached=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_call_takes_the_same_steps_as_the_single_modules(tmp_path_factory, drives, caches, queues, cached):
    # What is not there cannot be flushed, which is an error in both.
    assume(cached or all(one["state"] != "flushed" for one in caches))
    lists = (
        [{"device": device, "write_cache": value} for device, value in drives.items()],
        [{**CACHES[0], **more, "allow_unmirrored_writeback": True} for more in caches],
        [{"device": device, "persistent": False, **more} for device, more in queues.items()],
    )
    with pytest.MonkeyPatch.context() as patch:
        alone = _alone(HostRig(tmp_path_factory.mktemp("alone"), patch, lvm=FakeLvm(fast="cachepool" if cached else None)), *lists)
    with pytest.MonkeyPatch.context() as patch:
        rig = HostRig(tmp_path_factory.mktemp("together"), patch, lvm=FakeLvm(fast="cachepool" if cached else None))
        outcome = rig.converge(**dict(zip(("drives", "caches", "queues"), lists)))
        assert [(step.layer, step.item, step.attribute, step.before, step.after, step.action) for step in outcome.steps] == alone
        assert rig.converge(**dict(zip(("drives", "caches", "queues"), lists))).steps == []
