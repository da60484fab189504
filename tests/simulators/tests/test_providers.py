# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every provider with the simulator of its tool: the layer sets what it says, and a broken tool is never believed."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    BadInput,
    CommandFailed,
    NotEffective,
    NotUnderstood,
    StorageError,
    TimedOut,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import in_force, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf
from ansible_collections.cachefleet.storage.tests.simulators.in_process.raid import SimulatedRunner
from ansible_collections.cachefleet.storage.tests.simulators.ssacli import SsaCli
from ansible_collections.cachefleet.storage.tests.simulators.storcli import PercCli, StorCli
from ansible_collections.cachefleet.storage.tests.simulators.storcli2 import PercCli2, StorCli2

KINDS = {kind.name: kind for kind in (StorCli2, PercCli2, StorCli, PercCli, Arcconf, SsaCli)}
#: A cached controller of each family, and the words that change something in a request.
CACHED = {
    "storcli": ("MegaRAID 9361-8i", "set"),
    "perccli": ("PERC H755", "set"),
    "storcli2": ("MegaRAID 9660-16i", "set"),
    "perccli2": ("PERC H965i", "set"),
    "arcconf": ("Adaptec ASR-81605ZQ", "SETCACHE"),
    "ssacli": ("HPE Smart Array P408i-a SR Gen10", "modify"),
}
SMARTRAID = ("arcconf", "Adaptec SmartRAID 3154-8i")
FAMILIES = [*((name, model) for name, (model, _word) in CACHED.items()), SMARTRAID]


def _machine(name, model, **options):
    runner = SimulatedRunner(*KINDS.values())
    runner.add(KINDS[name], model, **{"volumes": 2, "drives": 4, **options})
    return runner


def _converge(runner, *entries, check_mode=False):
    runner.calls.clear()
    return converge(RaidCacheLayer.with_tools(runner, parse_controllers(list(entries))), check_mode=check_mode)


def _own(runner, name):
    """The calls of one tool since the last run, without its path."""
    return [call[1:] for call in runner.calls if call[0] in KINDS[name].paths]


def _asking(provider, **settings):
    return {"provider": provider, "volumes": [{"id": "all", **settings}]}


@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_switch_to_writethrough_and_back(name, model):
    runner = _machine(name, model)
    for write in ("writethrough", "writeback"):
        asked = _converge(runner, _asking(name, write=write), check_mode=True)
        before = runner.snapshot()
        done = _converge(runner, _asking(name, write=write))
        assert asked.to_dict() == done.to_dict()
        assert runner.snapshot() != before or not done.changed
        policies = {volume.write for one in done.state.controllers for volume in one.controller.volumes}
        assert {(policy.configured, policy.effective) for policy in policies} == {(write, write)}
        assert not _converge(runner, _asking(name, write=write)).changed
    assert done.changed


@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_reads_are_independent_of_volumes_and_one_set_per_difference(name, model):
    counts = []
    for volumes in (2, 16):
        runner = _machine(name, model, volumes=volumes, drives=22)
        _converge(runner, _asking(name, write="writethrough"))
        outcome = _converge(runner, _asking(name, write="writeback"))
        sets = [call for call in _own(runner, name) if CACHED[name][1] in call]
        assert len(sets) == volumes
        assert len({step.item for step in outcome.steps}) == volumes
        reads_around = len(_own(runner, name)) - len(sets)
        assert not _converge(runner, _asking(name, write="writeback")).changed
        counts.append(len(_own(runner, name)))
        assert reads_around == 2 * counts[-1]
    assert counts[0] == counts[1] <= 3


@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_failed_battery_is_detected_on_a_converged_host(name, model):
    runner = _machine(name, model)
    _converge(runner, _asking(name, write="writeback"))
    runner.states[name]["faults"]["battery_failed"] = True
    with pytest.raises(NotEffective, match="is set to writeback, but writethrough is in effect") as caught:
        _converge(runner, _asking(name, write="writeback"))
    assert "reports no reason" not in caught.value.message
    assert caught.value.facts["not_in_force"][0]["configured"] == "writeback"
    warned = _converge(runner, {**_asking(name, write="writeback"), "require_effective": False})
    assert not warned.changed
    assert len(warned.warnings) == 1
    runner.states[name]["faults"].clear()
    assert _converge(runner, _asking(name, write="writeback")).warnings == ()


@pytest.mark.parametrize("fault", ["learn_cycle", "capacitor_charging"])
@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_temporarily_unavailable_protection_is_named(name, model, fault):
    if fault not in KINDS[name].faults:
        pytest.skip(f"the unit of {model} has no {fault}")
    runner = _machine(name, model)
    _converge(runner, _asking(name, write="writeback"))
    runner.states[name]["faults"][fault] = True
    with pytest.raises(NotEffective, match=r"(?i)learn|charg|maintenance"):
        _converge(runner, _asking(name, write="writeback"))


@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_policy_refused_by_the_tool_is_never_a_success(name, model):
    runner = _machine(name, model)
    _converge(runner, _asking(name, write="writethrough"))
    for fault in ("refused_policy", "ignored_policy"):
        if fault in KINDS[name].faults:
            runner.states[name]["faults"] = {fault: True}
            with pytest.raises((CommandFailed, NotEffective)) as caught:
                _converge(runner, _asking(name, write="writeback"))
            assert caught.value.completed is not None
            assert caught.value.facts["changed"] is True


@pytest.mark.parametrize("fault", ["truncated", "garbage", "empty"])
@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_damaged_output_changes_nothing(name, model, fault):
    runner = _machine(name, model)
    _converge(runner, _asking(name, write="writethrough"))
    state = runner.snapshot()[name]["controllers"]
    runner.states[name]["faults"][fault] = True
    try:
        outcome = _converge(runner, _asking(name, write="writeback"), check_mode=True)
    except StorageError as error:
        assert isinstance(error, (NotUnderstood, BadInput)) or fault == "empty", error.message
    else:
        # A few bytes in a place that does not matter may do no harm; then all of it must have been read.
        assert fault == "garbage"
        assert len(outcome.steps) == 2
    assert runner.states[name]["controllers"] == state


@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_hanging_tool_is_stopped(name, model):
    runner = _machine(name, model)
    runner.states[name]["faults"]["hang"] = True
    with pytest.raises(TimedOut):
        _converge(runner, _asking(name, write="writeback"))


@pytest.mark.parametrize(("name", "model"), FAMILIES)
def test_hba_mode_is_refused_with_reason_or_has_no_volumes(name, model):
    if "hba_mode" not in KINDS[name].faults:
        pytest.skip("not simulated")
    runner = _machine(name, model)
    runner.states[name]["faults"]["hba_mode"] = True
    before = runner.snapshot()
    try:
        assert _converge(runner, _asking(name, write="writeback")).steps == ()
    except BadInput as error:
        assert "HBA" in error.message or "JBOD" in error.message
    assert runner.snapshot() == before


@pytest.mark.parametrize(("name", "model"), [(name, model) for name, kind in KINDS.items() for model in kind.models])
def test_every_planned_setting_is_accepted_by_the_tool(name, model):
    """No setting passes the plan and is then refused by the tool: what cannot be done is said before anything is changed."""
    runner = _machine(name, model)
    for settings in (
        {"write": "writeback"},
        {"write": "writethrough"},
        {"read": "none"},
        {"read": "read_ahead"},
        {"drive_cache": "disabled"},
        {"io": "direct"},
    ):
        try:
            planned = _converge(runner, {**_asking(name, **settings), "require_effective": False}, check_mode=True)
        except BadInput:
            continue
        try:
            done = _converge(runner, {**_asking(name, **settings), "require_effective": False})
        except CommandFailed as error:
            # Only the tool knows of a unit that it does not print.
            assert "battery status is not Ok" in error.message
            assert registry.find_tool(runner, name).read().controllers[0].protection.health == "unknown"
            continue
        assert [step.action for step in done.steps] == [step.action for step in planned.steps]


def test_auto_selects_the_tool_reporting_the_controller():
    runner = _machine("arcconf", SMARTRAID[1])
    runner.add(StorCli2, "MegaRAID 9660-16i", volumes=1, drives=2)
    outcome = _converge(runner, {"volumes": [{"id": "all", "write": "writethrough"}]})
    assert {one.controller.provider for one in outcome.state.controllers} == {"arcconf", "storcli2"}
    assert {step.operation.provider for step in outcome.steps} == {"arcconf", "storcli2"}


def test_missing_card_is_reported():
    with pytest.raises(StorageError, match=r"is not on this host; controllers that .* can see: none"):
        _converge(SimulatedRunner(*KINDS.values()), _asking("auto", write="writeback"))


# -- shapes of the field


def _storcli(*controllers, **faults):
    runner = SimulatedRunner(*KINDS.values())
    for index, (model, options) in enumerate(controllers):
        runner.add(StorCli, model, index=index, **options)
    runner.states["storcli"]["faults"].update(faults)
    return runner


def _read(runner):
    return registry.read_host(registry.find_tools(runner))


@pytest.mark.parametrize("unlisted", [False, True])
def test_volume_of_an_adapter_is_no_bare_drive(unlisted):
    (seen,) = _read(_storcli(("LSI3008-IR", {"unlisted": unlisted}))).controllers
    one = seen.controller
    assert seen.source.reading.lost == ()
    volumes = [(volume.id, volume.raid_level, volume.status, volume.write.effective, volume.drive_cache, volume.members_untold) for volume in one.volumes]
    assert volumes == ([] if unlisted else [("0", "1", "optimal", "writethrough", "unknown", 2)])
    assert {drive.usage for drive in one.drives} == {"unconfigured" if unlisted else "configured"}
    assert unlisted or one.mode == "raid"


def test_policies_of_an_adapter_are_refused_before_the_tool_refuses_them():
    runner = _storcli(("LSI3008-IR", {}))
    assert not _converge(runner, _asking("storcli", write="writethrough")).changed
    for settings in ({"write": "writeback"}, {"drive_cache": "disabled"}, {"read": "read_ahead"}):
        with pytest.raises(BadInput, match="the controller is an adapter whose firmware has no policies for volumes"):
            _converge(runner, _asking("storcli", **settings), check_mode=True)


def test_adapter_beside_a_raid_controller_does_not_doubt_it():
    runner = _storcli(("MegaRAID 9361-8i", {"volumes": 1}), ("LSI3008-IR", {}))
    steps = [_converge(runner, {**_asking("storcli", write="writethrough"), "id": "0"}, check_mode=True).steps]
    steps.append(_converge(runner, {"provider": "storcli", "id": "0", "volumes": [{"id": "0", "write": "writethrough"}]}, check_mode=True).steps)
    assert [[(step.item, step.after) for step in found] for found in steps] == [[("storcli controller 0 volume 0", "writethrough")]] * 2
    assert _read(runner).controllers[0].source.reading.lost == ()


@pytest.mark.parametrize("model", ["HPE MR216i-a", "MegaRAID 9560-8i"])
def test_caches_of_passed_drives_are_held_against_the_policy(model):
    runner = _storcli((model, {"volumes": 1, "drives": 4, "unconfigured": 2, "jbod": True, "jbod_write_cache": True}))
    host = _read(runner)
    drives = [drive for drive in host.controllers[0].controller.drives if drive.usage == "jbod"]
    assert [drive.write_cache for drive in drives] == ["enabled"] * 2
    runner.states["storcli"]["controllers"][0]["settings"]["jbodwritecache"] = "OFF"
    wanted = parse_controllers([{"provider": "storcli", "id": "0", "drive_cache": {"jbod": "disabled"}}])
    (one,) = in_force.not_in_force(_read(runner), wanted)
    assert (one.found, one.must) == ("enabled", True)
    assert one.cause.startswith("reported by 2 of its drives")


@pytest.mark.parametrize("rows", ["VD LIST", "PD LIST", True])
def test_lost_row_of_one_controller_stops_its_own_plan_only(rows):
    lost = {"controllers": [1], **({} if rows is True else {"list": rows})}
    runner = _storcli(("MegaRAID 9361-8i", {"volumes": 2}), ("MegaRAID 9361-8i", {"volumes": 2}), lost_rows=lost)
    assert _converge(runner, {**_asking("storcli", write="writethrough"), "id": "0"}, check_mode=True).changed
    with pytest.raises(NotUnderstood, match=r"controller 1 .*not everything that is there could be read"):
        _converge(runner, {**_asking("storcli", write="writethrough"), "id": "1"})
