# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done, what is refused, and what is said when a stored policy is not in force."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Drive, Policy, Protection
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers
from ansible_collections.cachefleet.storage.tests.simulators.in_process.provider import DEAD, FakeTool, controller, volume


def _plan(tool, *entries):
    return plan.plan(tool.as_host(), parse_controllers(list(entries)))


def _steps(tool, *entries):
    return [(step.item, step.attribute, step.before, step.after) for step in _plan(tool, *entries)[0]]


def _converge(tool, *entries, check_mode=False):
    return converge(RaidCacheLayer(None, parse_controllers(list(entries)), [tool]), check_mode=check_mode)


def test_a_difference_is_a_step_and_a_setting_that_agrees_is_none():
    entry = {"volumes": [{"id": "0", "write": "writeback", "read": "none", "io": "direct"}]}
    assert _steps(FakeTool(controller()), entry) == [("storcli controller 0 volume 0", "write", "writethrough", "writeback")]


def test_settings_are_made_in_the_order_the_tool_needs():
    entry = {
        "volumes": [{"id": "all", "write": "writeback", "drive_cache": "default", "read": "read_ahead", "io": "cached", "allow_unprotected": True}],
        "drive_cache": {"jbod": "default"},
        "cache_ratio": 20,
        "allow_unprotected": True,
    }
    attributes = [attribute for _item, attribute, _before, _after in _steps(FakeTool(controller(volumes=(volume(0),))), entry)]
    assert attributes == ["cache_ratio", "drive_cache.jbod", "io", "read", "write", "drive_cache"]


def test_what_keeps_less_in_memory_comes_before_a_controller_may_cache_without_protection():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writeback", "writeback")), volume(1))))
    steps = _steps(
        tool,
        {
            "no_battery_write_cache": "enabled",
            "allow_unprotected": True,
            "volumes": [{"id": "0", "write": "writethrough"}, {"id": "1", "write": "writeback_always", "allow_unprotected": True}],
        },
    )
    assert [(item.rpartition(" ")[2], attribute) for item, attribute, *_values in steps] == [("0", "write"), ("0", "no_battery_write_cache"), ("1", "write")]


def test_the_same_volume_number_of_two_controllers_is_two_items():
    steps = _steps(FakeTool(controller("0"), controller("1")), {"volumes": [{"id": "0", "write": "writeback"}]})
    assert [item for item, *_rest in steps] == ["storcli controller 0 volume 0", "storcli controller 1 volume 0"]


def test_a_controller_is_listed_once():
    with pytest.raises(BadInput, match=r"Two entries are for controller 0 \(MODEL, storcli\)"):
        _plan(FakeTool(controller()), {"id": "0"}, {"serial": "SERIAL0"})


@pytest.mark.parametrize(
    ("entry", "danger"),
    [
        ({"volumes": [{"id": "0", "write": "writeback_always"}]}, "writeback_always continues"),
        ({"volumes": [{"id": "0", "drive_cache": "enabled"}]}, "drive_cache: enabled keeps writes"),
        ({"drives": [{"address": "252:0", "write_cache": "enabled"}]}, "write_cache: enabled keeps writes"),
        ({"drive_cache": {"jbod": "enabled"}}, "drive_cache jbod: enabled keeps writes"),
        ({"no_battery_write_cache": "enabled"}, "without any protection"),
        ({"volumes": [{"id": "0", "io": "cached"}]}, "io: cached caches writes"),
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


def test_leaving_drive_caches_to_the_drives_needs_permission_where_they_are_not_left_to_them():
    tool = FakeTool(controller(drive_cache={"jbod": "default", "hba": "disabled"}))
    assert _steps(tool, {"drive_cache": {"jbod": "default"}}) == []
    with pytest.raises(Refused, match="now disabled, to the drives, and most have them on"):
        _plan(tool, {"drive_cache": {"hba": "default"}})


def test_the_own_settings_of_drives_do_not_come_into_force_unseen():
    tool = FakeTool(controller(drive_cache={"all": "disabled"}))
    with pytest.raises(Refused, match="which cannot be read while disabled applies to all"):
        _plan(tool, {"drive_cache": {"all": "per_drive"}, "drives": [{"address": "252:0", "write_cache": "disabled"}]})
    assert _steps(tool, {"drive_cache": {"all": "per_drive"}, "drives": [{"address": "all", "write_cache": "disabled"}]})
    assert _steps(tool, {"drive_cache": {"all": "per_drive"}, "allow_unprotected": True})
    assert _steps(FakeTool(controller(drive_cache={"all": "enabled"})), {"drive_cache": {"all": "per_drive"}})


class _OneSwitch(FakeTool):
    """One switch for reading and writing, as on SmartRAID."""

    def side_effects(self, controller, subject, attribute, value, controller_settings):
        always = (controller_settings.get("no_battery_write_cache") or controller.no_battery_write_cache) == "enabled"
        if attribute == "read":
            return {"write": "writethrough" if value == "none" else "writeback_always" if always else "writeback"}
        return {}


def test_a_switch_for_two_settings_shows_both_and_asks_for_permission_where_it_is_dangerous():
    entry = {"volumes": [{"id": "0", "read": "read_ahead"}]}
    steps = _plan(_OneSwitch(controller()), entry)[0]
    assert [(step.attribute, step.before, step.after) for step in steps] == [("read", "none", "read_ahead"), ("write", "writethrough", "writeback")]
    assert steps[0].operation == steps[1].operation
    with pytest.raises(Refused, match="one switch is for both"):
        _plan(_OneSwitch(controller(no_battery_write_cache="enabled")), entry)
    with pytest.raises(Refused, match="one switch is for both"):
        _plan(_OneSwitch(controller()), {**entry, "no_battery_write_cache": "enabled", "allow_unprotected": True})


def test_a_ratio_needs_a_volume_that_is_cached():
    cached = FakeTool(controller(volumes=(volume(0, write=Policy("writeback", "writeback")), volume(1))))
    assert _steps(cached, {"cache_ratio": 10})
    with pytest.raises(BadInput, match="cannot keep cache_ratio: 10, since none of its volumes will be cached"):
        _plan(cached, {"cache_ratio": 10, "volumes": [{"id": "all", "write": "writethrough"}]})
    assert _steps(cached, {"cache_ratio": 10, "volumes": [{"id": "0", "write": "writethrough"}, {"id": "1", "write": "writeback"}]})
    # That one is what it falls back to.
    assert _steps(cached, {"cache_ratio": 100, "volumes": [{"id": "all", "write": "writethrough"}]})


def test_giving_writes_a_share_of_an_unprotected_cache_needs_permission():
    cached = (volume(0, read=Policy("read_ahead", "read_ahead")),)
    tool = FakeTool(controller(no_battery_write_cache="enabled", cache_ratio=100, volumes=cached))
    with pytest.raises(Refused, match="cache_ratio: 10 gives a share"):
        _plan(tool, {"cache_ratio": 10})
    assert _steps(tool, {"cache_ratio": 10, "allow_unprotected": True})
    assert _steps(FakeTool(controller(cache_ratio=100, volumes=cached)), {"cache_ratio": 10})


def test_what_the_controller_cannot_do_is_reported_before_anything_is_changed():
    tool = FakeTool(controller())
    tool.impossible[("io", "cached")] = "cannot have io: cached, since the tool says 'Cached IO: No'"
    with pytest.raises(BadInput, match=r"volume volume1 of controller 0 .* cannot have io: cached, since the tool says") as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}, {"id": "1", "io": "cached"}]})
    assert caught.value.message.endswith("Nothing was changed.")
    assert tool.sent == []
    assert caught.value.item == "storcli controller 0 volume 1"


def test_what_the_tool_does_not_print_is_not_changed():
    tool = FakeTool(controller(volumes=(volume(0, drive_cache="unknown"),)))
    with pytest.raises(BadInput, match="does not report its drive_cache, so that a change could not be verified"):
        _converge(tool, {"volumes": [{"id": "0", "drive_cache": "disabled"}]})
    assert tool.sent == []


def test_a_policy_of_which_only_the_effect_is_reported_can_be_set():
    steps = _steps(FakeTool(controller(volumes=(volume(0, write=Policy("unknown", "writethrough")),))), {"volumes": [{"id": "0", "write": "writeback"}]})
    assert steps == [("storcli controller 0 volume 0", "write", "unknown", "writeback")]
    with pytest.raises(BadInput, match="does not report its write"):
        _plan(FakeTool(controller(volumes=(volume(0, write=Policy()),))), {"volumes": [{"id": "0", "write": "writeback"}]})


def test_a_class_of_drives_that_the_controller_does_not_have_is_refused():
    with pytest.raises(BadInput, match=r"does not report its drive_cache\.hba"):
        _plan(FakeTool(controller()), {"drive_cache": {"hba": "disabled"}})


def test_of_all_what_cannot_be_set_is_left_out_and_reported():
    tool = FakeTool(controller(drives=(Drive("252:0", write_cache="enabled"), Drive("252:1", write_cache="unknown"))))
    layer = RaidCacheLayer(None, parse_controllers([{"drives": [{"address": "all", "write_cache": "disabled"}]}]), [tool])
    outcome = converge(layer, check_mode=False)
    assert [step.item for step in outcome.steps] == ["storcli controller 0 drive 252:0"]
    assert layer.facts(outcome.state)["problems"] == list(outcome.warnings)
    assert outcome.warnings[0].startswith("Unchanged: write_cache of drive 252:1 of controller 0")


def test_all_that_cannot_be_set_at_all_is_refused():
    tool = FakeTool(controller(drives=(Drive("252:0"), Drive("252:1"))))
    with pytest.raises(BadInput, match="does not report its write_cache"):
        _plan(tool, {"drives": [{"address": "all", "write_cache": "disabled"}]})


def test_one_read_one_command_for_each_difference_one_read_back():
    tool = FakeTool(controller(volumes=tuple(volume(number) for number in range(64))))
    entry = {"volumes": [{"id": "all", "write": "writeback", "drive_cache": "disabled"}]}
    assert _converge(tool, entry).changed
    assert (tool.reads, len(tool.sent)) == (2, 64)
    assert not _converge(tool, entry).changed
    assert (tool.reads, len(tool.sent)) == (3, 64)


def test_check_mode_predicts_run_and_changes_nothing():
    tool = FakeTool(controller())
    entry = {"volumes": [{"id": "all", "write": "writeback"}], "cache_ratio": 10}
    requested = _converge(tool, entry, check_mode=True)
    assert (tool.sent, tool.reads) == ([], 1)
    assert requested.to_dict() == _converge(tool, entry).to_dict()
    assert requested.to_dict()["diff"]["after"]["storcli controller 0"] == {"cache_ratio": 10}


def test_acknowledged_command_without_effect_is_detected():
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
        (Protection("capacitor", "missing", raw="ZMM not installed"), r"its capacitor is missing \(ZMM not installed\)"),
        (Protection("none", "unknown"), "no battery and no capacitor"),
        (Protection(), "a state the tool does not report"),
    ],
)
def test_a_policy_that_is_stored_and_not_in_force_fails_with_its_cause(protection, words):
    tool = FakeTool(controller(protection=protection, volumes=(volume(0, write=Policy("writeback", "writethrough")),)))
    entry = {"volumes": [{"id": "0", "write": "writeback"}]}
    with pytest.raises(NotEffective, match=f"is set to writeback, but writethrough is in effect: .*{words}") as caught:
        _converge(tool, entry)
    assert caught.value.facts["not_in_force"][0]["attribute"] == "write"
    outcome = _converge(tool, {**entry, "require_effective": False})
    assert not outcome.changed
    assert len(outcome.warnings) == 1


def test_a_failure_after_a_change_reports_what_was_changed():
    tool = FakeTool(controller(protection=DEAD))
    with pytest.raises(NotEffective) as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]})
    assert caught.value.facts["changed"] is True
    assert caught.value.facts["actions"] == ["Set write of volume volume0 of controller 0 (MODEL, storcli) to writeback (was writethrough)"]


def test_the_controllers_own_reason_comes_first():
    one = controller(volumes=(volume(0, write=Policy("writeback", "writethrough")),))
    tool = FakeTool(dataclasses.replace(one, cache=dataclasses.replace(one.cache, status="temporarily_disabled", reason="Capacitor charge is low")))
    with pytest.raises(NotEffective, match="the controller reports: Capacitor charge is low"):
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]})


def test_what_is_not_reported_of_the_effect_is_reported_and_grave_without_protection():
    untold = (volume(0, write=Policy("writeback", "unknown")),)
    entry = {"volumes": [{"id": "0", "write": "writeback"}]}
    assert [str(one).count("whether that is in effect is not reported") for one in _converge(FakeTool(controller(volumes=untold)), entry).warnings] == [1]
    with pytest.raises(NotEffective, match="whether that is in effect is not reported: its battery has failed"):
        _converge(FakeTool(controller(volumes=untold, protection=DEAD)), entry)


def test_cached_io_without_protection_is_no_write_back_while_protected():
    cached = (volume(0, write=Policy("writeback", "writeback"), io=Policy("cached", "cached")),)
    entry = {"volumes": [{"id": "0", "write": "writeback"}]}
    assert _converge(FakeTool(controller(volumes=cached)), entry).warnings == ()
    with pytest.raises(NotEffective, match="caching of writes without protection is in effect: with io: cached"):
        _converge(FakeTool(controller(volumes=cached, protection=DEAD)), entry)


def test_drives_that_report_something_else_than_their_policy_are_reported():
    drives = (Drive("0,8", write_cache="enabled", usage="configured"), Drive("0,9", write_cache="disabled", usage="configured"))
    tool = FakeTool(controller(drive_cache={"all": "disabled"}, drives=drives, volumes=(volume(0, members=("0,8", "0,9")),)))
    with pytest.raises(NotEffective, match=r"drive_cache.all is set to disabled, but enabled is in effect: reported by 1 of its drives \(0,8\)"):
        _converge(tool, {"drive_cache": {"all": "disabled"}})
    with pytest.raises(NotEffective, match=r"drive_cache is set to disabled, but enabled"):
        _converge(tool, {"volumes": [{"id": "0", "drive_cache": "disabled"}]})
    assert len(_converge(tool, {"drive_cache": {"all": "disabled"}, "require_effective": False}).warnings) == 1


def test_what_is_lost_is_not_part_of_all():
    tool = FakeTool(controller())
    tool.reading = {"lost": ("line 7: a volume without a number",)}
    with pytest.raises(NotUnderstood, match="line 7"):
        _plan(tool, {"volumes": [{"id": "0", "write": "writeback"}]})
    with pytest.raises(NotUnderstood, match="nothing can be set for all of it"):
        _plan(tool, {"id": "0", "volumes": [{"id": "all", "write": "writeback"}]})
    assert _steps(tool, {"id": "0", "volumes": [{"id": "0", "write": "writeback"}]})


def test_of_an_entry_for_all_only_the_setting_that_is_impossible_is_left_out():
    tool = FakeTool(controller(volumes=(volume(0, read=Policy()), volume(1))))
    steps, notes = _plan(tool, {"volumes": [{"id": "all", "write": "writeback", "read": "read_ahead"}]})
    assert [(step.item[-1], step.attribute) for step in steps] == [("0", "write"), ("1", "read"), ("1", "write")]
    assert len(notes) == 1
    assert notes[0].startswith("Unchanged: read of volume volume0")


def test_a_volume_that_shall_keep_less_and_cannot_is_no_warning():
    tool = FakeTool(controller(volumes=(volume(0, drive_cache="unknown"), volume(1))))
    with pytest.raises(BadInput, match="does not report its drive_cache"):
        _plan(tool, {"volumes": [{"id": "all", "drive_cache": "disabled"}]})


def test_empty_selection_of_all_is_reported():
    notes = _plan(FakeTool(controller(volumes=())), {"volumes": [{"id": "all", "write": "writeback"}]})[1]
    assert notes == ["controller 0 (MODEL, storcli) has no volumes, so there is nothing to set for all of them."]


def test_the_evidence_is_the_command_of_the_setting_that_was_not_taken():
    tool = FakeTool(controller())
    tool.deaf = {"write"}
    with pytest.raises(NotEffective) as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback", "read": "read_ahead"}]})
    assert caught.value.completed.argv[-2:] == ("write", "writeback")


def test_failure_after_a_change_does_not_claim_that_nothing_was_changed():
    tool = FakeTool(controller())
    tool.deaf = set()
    send = tool.send

    def breaking(words, item):
        tool.reading = {"complete": False, "not_understood": ("line 3",)}
        return send(words, item)

    tool.send = breaking
    with pytest.raises(NotUnderstood, match="After the change: The output") as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}]})
    assert "Nothing was changed" not in caught.value.message
    assert caught.value.facts["changed"] is True


def test_the_first_cached_volume_brings_the_ratio():
    fresh = controller(cache_ratio=None)
    fresh = dataclasses.replace(fresh, cache=dataclasses.replace(fresh.cache, status="not_configured"))
    entry = {"cache_ratio": 20, "volumes": [{"id": "0", "write": "writeback"}]}
    assert [attribute for _item, attribute, *_values in _steps(FakeTool(fresh), entry)] == ["write", "cache_ratio"]
    with pytest.raises(BadInput, match="does not report its cache_ratio"):
        _plan(FakeTool(fresh), {"cache_ratio": 20})


def test_write_back_in_force_although_write_through_was_asked_is_reported():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writethrough", "writeback"), io=Policy("cached", "cached")),)))
    with pytest.raises(NotEffective, match="writeback is in effect: with io: cached, writes are cached"):
        _converge(tool, {"volumes": [{"id": "0", "write": "writethrough"}]})


def test_an_empty_list_asks_no_tool():
    tool = FakeTool(controller())
    layer = RaidCacheLayer(None, [], [])
    assert not converge(layer, check_mode=False).changed
    assert tool.reads == 0


def test_a_dead_battery_is_one_sentence_however_many_volumes_there_are():
    tool = FakeTool(controller(protection=DEAD, volumes=tuple(volume(number, write=Policy("writeback", "writethrough")) for number in range(64))))
    outcome = _converge(tool, {"volumes": [{"id": "all", "write": "writeback"}], "require_effective": False})
    assert len(outcome.warnings) == 1
    assert outcome.warnings[0].startswith("volume volume0, volume volume1, volume volume2 and 61 more of controller 0 (MODEL, storcli): write is set to")


def test_check_mode_predicts_settings_that_will_not_be_in_effect():
    tool = FakeTool(controller(protection=DEAD, volumes=(volume(0), volume(1, write=Policy("writeback", "writethrough")))))
    requested = _converge(tool, {"volumes": [{"id": "all", "write": "writeback"}]}, check_mode=True)
    assert len(requested.steps) == 1
    assert [one.startswith("The run would fail: volume volume0, volume volume1 of controller 0") for one in requested.warnings] == [True]
    with pytest.raises(NotEffective):
        _converge(tool, {"volumes": [{"id": "all", "write": "writeback"}]})
