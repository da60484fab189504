# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done, what is refused, and what is said when a stored policy is not in force."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.model import Drive, Policy, Protection
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.wanted import parse_controllers
from ansible_collections.cachefleet.storage.tests.unit.support.fake_raid import DEAD, FakeTool, controller, volume


def _plan(tool, *entries):
    return plan.plan(tool.as_host(), parse_controllers(list(entries)))


def _steps(tool, *entries):
    return [(step.item, step.attribute, step.before, step.after) for step in _plan(tool, *entries)[0]]


def _converge(tool, *entries, check_mode=False):
    return converge(RaidCacheLayer(None, [tool]), parse_controllers(list(entries)), check_mode=check_mode)


def test_a_difference_is_a_step_and_a_setting_that_agrees_is_none():
    entry = {"volumes": [{"id": "0", "write": "writeback", "read": "none", "io": "direct"}]}
    assert _steps(FakeTool(controller()), entry) == [("storcli controller 0 volume 0", "write", "writethrough", "writeback")]


def test_settings_are_made_in_the_order_the_tool_needs():
    entry = {
        "volumes": [{"id": "all", "write": "writeback", "drive_cache": "default", "read": "read_ahead", "io": "cached"}],
        "drive_cache": {"jbod": "default"},
        "cache_ratio": 20,
    }
    attributes = [attribute for _item, attribute, _before, _after in _steps(FakeTool(controller(volumes=(volume(0),))), entry)]
    assert attributes == ["cache_ratio", "drive_cache.jbod", "io", "read", "write", "drive_cache"]


def test_the_same_volume_number_of_two_controllers_is_two_items():
    steps = _steps(FakeTool(controller("0"), controller("1")), {"volumes": [{"id": "0", "write": "writeback"}]})
    assert [item for item, *_rest in steps] == ["storcli controller 0 volume 0", "storcli controller 1 volume 0"]


def test_a_controller_is_listed_once():
    with pytest.raises(BadInput, match="Two entries are for storcli controller 0"):
        _plan(FakeTool(controller()), {"id": "0"}, {"serial": "SERIAL0"})


@pytest.mark.parametrize(
    ("entry", "danger"),
    [
        ({"volumes": [{"id": "0", "write": "writeback_always"}]}, "writeback_always goes on"),
        ({"volumes": [{"id": "0", "drive_cache": "enabled"}]}, "drive_cache: enabled keeps writes"),
        ({"drives": [{"address": "252:0", "write_cache": "enabled"}]}, "write_cache: enabled keeps writes"),
        ({"drive_cache": {"jbod": "enabled"}}, "drive_cache jbod: enabled keeps writes"),
        ({"no_battery_write_cache": "enabled"}, "without any protection"),
    ],
)
def test_what_loses_data_needs_the_permission_of_its_item(entry, danger):
    tool = FakeTool(controller())
    with pytest.raises(Refused, match=danger) as caught:
        _converge(tool, entry)
    assert "allow_unprotected: true" in caught.value.message
    assert tool.sent == []
    items = [*entry.get("volumes", []), *entry.get("drives", [])] or [entry]
    for item in items:
        item["allow_unprotected"] = True
    assert _converge(tool, entry).changed
    # The permission of the controller is none for its volumes and drives.
    for item in items:
        if item is not entry:
            item["allow_unprotected"] = False
            with pytest.raises(Refused):
                _plan(tool, {**entry, "allow_unprotected": True})


def test_what_is_dangerous_is_refused_even_where_it_is_so_already():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writeback_always", "writeback_always")),)))
    with pytest.raises(Refused):
        _plan(tool, {"volumes": [{"id": "0", "write": "writeback_always"}]})


@pytest.mark.parametrize(
    "protection", [DEAD, Protection("unknown", "unknown"), Protection("none", "unknown"), Protection("capacitor", "charging"), Protection("battery", "missing")]
)
def test_cached_io_is_refused_without_healthy_protection(protection):
    entry = {"volumes": [{"id": "0", "io": "cached"}]}
    with pytest.raises(Refused, match="io: cached caches writes"):
        _plan(FakeTool(controller(protection=protection)), entry)
    assert _steps(FakeTool(controller()), entry)


def test_what_the_controller_cannot_do_is_said_before_anything_is_changed():
    tool = FakeTool(controller())
    tool.impossible[("io", "cached")] = "cannot have io: cached, since the tool says 'Cached IO: No'"
    with pytest.raises(BadInput, match=r"volume volume1 of controller 0 .* cannot have io: cached, since the tool says .*Nothing was changed") as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}, {"id": "1", "io": "cached"}]})
    assert tool.sent == []
    assert caught.value.item == "storcli controller 0 volume 1"


def test_what_the_tool_does_not_print_is_not_changed():
    tool = FakeTool(controller(volumes=(volume(0, drive_cache="unknown"),)))
    with pytest.raises(BadInput, match="does not tell its drive_cache, so that a change could not be proved"):
        _converge(tool, {"volumes": [{"id": "0", "drive_cache": "disabled"}]})
    assert tool.sent == []


def test_a_policy_of_which_only_the_effect_is_told_can_be_set():
    steps = _steps(FakeTool(controller(volumes=(volume(0, write=Policy("unknown", "writethrough")),))), {"volumes": [{"id": "0", "write": "writeback"}]})
    assert steps == [("storcli controller 0 volume 0", "write", "unknown", "writeback")]
    with pytest.raises(BadInput, match="does not tell its write"):
        _plan(FakeTool(controller(volumes=(volume(0, write=Policy()),))), {"volumes": [{"id": "0", "write": "writeback"}]})


def test_a_class_of_drives_that_the_controller_does_not_have_is_refused():
    with pytest.raises(BadInput, match=r"does not tell its drive_cache\.hba"):
        _plan(FakeTool(controller()), {"drive_cache": {"hba": "disabled"}})


def test_of_all_what_cannot_be_set_is_left_out_and_said():
    tool = FakeTool(controller(drives=(Drive("252:0", write_cache="enabled"), Drive("252:1", write_cache="unknown"))))
    layer = RaidCacheLayer(None, [tool])
    outcome = converge(layer, parse_controllers([{"drives": [{"address": "all", "write_cache": "disabled"}]}]), check_mode=False)
    assert [step.item for step in outcome.steps] == ["storcli controller 0 drive 252:0"]
    assert layer.facts(outcome.present)["problems"] == list(outcome.concerns)
    assert outcome.concerns[0].startswith("Left as it is: drive 252:1 of controller 0")


def test_all_that_cannot_be_set_at_all_is_refused():
    tool = FakeTool(controller(drives=(Drive("252:0"), Drive("252:1"))))
    with pytest.raises(BadInput, match="does not tell its write_cache"):
        _plan(tool, {"drives": [{"address": "all", "write_cache": "disabled"}]})


def test_one_read_one_command_for_each_difference_one_read_back():
    tool = FakeTool(controller(volumes=tuple(volume(number) for number in range(64))))
    entry = {"volumes": [{"id": "all", "write": "writeback", "drive_cache": "disabled"}]}
    assert _converge(tool, entry).changed
    assert (tool.reads, len(tool.sent)) == (2, 64)
    assert not _converge(tool, entry).changed
    assert (tool.reads, len(tool.sent)) == (3, 64)


def test_check_mode_says_what_would_be_done_and_does_nothing():
    tool = FakeTool(controller())
    entry = {"volumes": [{"id": "all", "write": "writeback"}], "cache_ratio": 10}
    asked = _converge(tool, entry, check_mode=True)
    assert (tool.sent, tool.reads) == ([], 1)
    assert asked.as_result() == _converge(tool, entry).as_result()
    assert asked.as_result()["diff"]["after"]["storcli controller 0"] == {"cache_ratio": 10}


def test_a_tool_that_acknowledges_and_does_nothing_is_found_out():
    tool = FakeTool(controller())
    tool.deaf = {"write"}
    with pytest.raises(NotEffective, match=r"write should be writeback and is writethrough, although /opt/storcli64 .* exit status 0") as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]})
    assert caught.value.completed.argv[1:] == ("0", "v0", "write", "writeback")


@pytest.mark.parametrize(
    ("protection", "words"),
    [
        (DEAD, r"its battery has failed \(Failed\)"),
        (Protection("capacitor", "charging"), "its capacitor is charging"),
        (Protection("battery", "learning"), "its battery is in a learn cycle"),
        (Protection("capacitor", "missing", said="ZMM not installed"), r"its capacitor is missing \(ZMM not installed\)"),
        (Protection("none", "unknown"), "no battery and no capacitor"),
        (Protection(), "a state the tool does not tell"),
    ],
)
def test_a_policy_that_is_stored_and_not_in_force_fails_with_its_cause(protection, words):
    tool = FakeTool(controller(protection=protection, volumes=(volume(0, write=Policy("writeback", "writethrough")),)))
    entry = {"volumes": [{"id": "0", "write": "writeback"}]}
    with pytest.raises(NotEffective, match=f"is set to writeback, but writethrough is in force: .*{words}") as caught:
        _converge(tool, entry)
    assert caught.value.facts["not_in_force"][0]["attribute"] == "write"
    outcome = _converge(tool, {**entry, "require_effective": False})
    assert not outcome.changed
    assert len(outcome.concerns) == 1


def test_a_failure_after_a_change_says_what_was_changed():
    tool = FakeTool(controller(protection=DEAD))
    with pytest.raises(NotEffective) as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]})
    assert caught.value.facts["changed"] is True
    assert caught.value.facts["actions"] == ["Set write of volume volume0 of controller 0 (MODEL, storcli) to writeback (was writethrough)"]


def test_the_controllers_own_reason_comes_first():
    one = controller(volumes=(volume(0, write=Policy("writeback", "writethrough")),))
    tool = FakeTool(dataclasses.replace(one, cache=dataclasses.replace(one.cache, status="temporarily_disabled", reason="Capacitor charge is low")))
    with pytest.raises(NotEffective, match="the controller says: Capacitor charge is low"):
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]})


def test_what_is_not_told_of_the_effect_is_no_failure():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writeback", "unknown")),)))
    assert _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]}).concerns == ()


def test_write_back_in_force_although_write_through_was_asked_is_said():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writethrough", "writeback"), io=Policy("cached", "cached")),)))
    with pytest.raises(NotEffective, match="writeback is in force: with io: cached, writes are cached"):
        _converge(tool, {"volumes": [{"id": "0", "write": "writethrough"}]})


def test_an_empty_list_asks_no_tool():
    tool = FakeTool(controller())
    layer = RaidCacheLayer(None, [])
    assert not converge(layer, [], check_mode=False).changed
    assert tool.reads == 0
