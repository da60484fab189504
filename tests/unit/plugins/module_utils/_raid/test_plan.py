# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done, what is refused, and what is said when a stored policy is not in force."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import declaration
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Drive, Policy, Protection
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.description import RaidHost, describe_controller
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.shapes import wrong_shape
from ansible_collections.cachefleet.storage.tests.simulators.in_process.provider import DEAD, FakeTool, controller, volume

WRITEBACK = {"volumes": [{"id": "0", "write": "writeback"}]}


def _plan(tool, *entries):
    return plan.plan(tool.as_host(), parse_controllers(list(entries)))


def _steps(tool, *entries):
    return [(step.item, step.attribute, step.before, step.after) for step in _plan(tool, *entries)[0]]


def _converge(tool, *entries, check_mode=False):
    return converge(RaidCacheLayer(None, parse_controllers(list(entries)), [tool]), check_mode=check_mode)


def test_difference_is_a_step_and_matching_setting_is_not():
    entry = {"volumes": [{"id": "0", "write": "writeback", "read": "none", "io": "direct"}]}
    assert _steps(FakeTool(controller()), entry) == [("storcli controller 0 volume 0", "write", "writethrough", "writeback")]


def test_settings_are_ordered_as_the_tool_requires():
    entry = {
        "volumes": [{"id": "all", "write": "writeback", "drive_cache": "default", "read": "read_ahead", "io": "cached", "allow_unprotected": True}],
        "drive_cache": {"jbod": "default"},
        "cache_ratio": 20,
        "allow_unprotected": True,
    }
    attributes = [attribute for _item, attribute, _before, _after in _steps(FakeTool(controller(volumes=(volume(0),))), entry)]
    assert attributes == ["cache_ratio", "drive_cache.jbod", "io", "read", "write", "drive_cache"]


def test_safer_settings_precede_unprotected_caching():
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


def test_same_volume_id_on_two_controllers_is_two_items():
    steps = _steps(FakeTool(controller("0"), controller("1")), WRITEBACK)
    assert [item for item, *_rest in steps] == ["storcli controller 0 volume 0", "storcli controller 1 volume 0"]


def test_controller_listed_twice_is_rejected():
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
def test_data_loss_risk_requires_permission_of_the_item(entry, danger):
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


def test_dangerous_setting_is_refused_even_if_already_set():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writeback_always", "writeback_always")),)))
    with pytest.raises(Refused):
        _plan(tool, {"volumes": [{"id": "0", "write": "writeback_always"}]})


def test_default_drive_cache_requires_permission_unless_already_default():
    tool = FakeTool(controller(drive_cache={"jbod": "default", "hba": "disabled"}))
    assert _steps(tool, {"drive_cache": {"jbod": "default"}}) == []
    with pytest.raises(Refused, match="now disabled, to the drives, and most have them on"):
        _plan(tool, {"drive_cache": {"hba": "default"}})


def test_per_drive_settings_are_not_enabled_without_permission():
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


def test_combined_switch_shows_both_settings_and_requires_permission():
    entry = {"volumes": [{"id": "0", "read": "read_ahead"}]}
    steps = _plan(_OneSwitch(controller()), entry)[0]
    assert [(step.attribute, step.before, step.after) for step in steps] == [("read", "none", "read_ahead"), ("write", "writethrough", "writeback")]
    assert steps[0].operation == steps[1].operation
    with pytest.raises(Refused, match="one switch is for both"):
        _plan(_OneSwitch(controller(no_battery_write_cache="enabled")), entry)
    with pytest.raises(Refused, match="one switch is for both"):
        _plan(_OneSwitch(controller()), {**entry, "no_battery_write_cache": "enabled", "allow_unprotected": True})


def test_cache_ratio_requires_a_cached_volume():
    cached = FakeTool(controller(volumes=(volume(0, write=Policy("writeback", "writeback")), volume(1))))
    assert _steps(cached, {"cache_ratio": 10})
    with pytest.raises(BadInput, match="cannot keep cache_ratio: 10, since none of its volumes will be cached"):
        _plan(cached, {"cache_ratio": 10, "volumes": [{"id": "all", "write": "writethrough"}]})
    assert _steps(cached, {"cache_ratio": 10, "volumes": [{"id": "0", "write": "writethrough"}, {"id": "1", "write": "writeback"}]})
    # That one is what it falls back to.
    assert _steps(cached, {"cache_ratio": 100, "volumes": [{"id": "all", "write": "writethrough"}]})


def test_unprotected_write_cache_ratio_requires_permission():
    cached = (volume(0, read=Policy("read_ahead", "read_ahead")),)
    tool = FakeTool(controller(no_battery_write_cache="enabled", cache_ratio=100, volumes=cached))
    with pytest.raises(Refused, match="cache_ratio: 10 gives a share"):
        _plan(tool, {"cache_ratio": 10})
    assert _steps(tool, {"cache_ratio": 10, "allow_unprotected": True})
    assert _steps(FakeTool(controller(cache_ratio=100, volumes=cached)), {"cache_ratio": 10})


def test_unsupported_settings_are_reported_before_any_change():
    tool = FakeTool(controller())
    tool.impossible[("io", "cached")] = "cannot have io: cached, since the tool says 'Cached IO: No'"
    with pytest.raises(BadInput, match=r"volume volume1 of controller 0 .* cannot have io: cached, since the tool says") as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback"}, {"id": "1", "io": "cached"}]})
    assert caught.value.message.endswith("Nothing was changed.")
    assert tool.sent == []
    assert caught.value.item == "storcli controller 0 volume 1"


def test_unreported_setting_is_not_changed():
    tool = FakeTool(controller(volumes=(volume(0, drive_cache="unknown"),)))
    with pytest.raises(BadInput, match="does not report its drive_cache, so that a change could not be verified"):
        _converge(tool, {"volumes": [{"id": "0", "drive_cache": "disabled"}]})
    assert tool.sent == []


def test_policy_with_only_its_effective_value_reported_can_be_set():
    steps = _steps(FakeTool(controller(volumes=(volume(0, write=Policy("unknown", "writethrough")),))), WRITEBACK)
    assert steps == [("storcli controller 0 volume 0", "write", "unknown", "writeback")]
    with pytest.raises(BadInput, match="does not report its write"):
        _plan(FakeTool(controller(volumes=(volume(0, write=Policy()),))), WRITEBACK)


def test_drive_class_missing_on_controller_is_rejected():
    with pytest.raises(BadInput, match=r"does not report its drive_cache\.hba"):
        _plan(FakeTool(controller()), {"drive_cache": {"hba": "disabled"}})


def test_unsupported_items_of_all_are_skipped_and_reported():
    tool = FakeTool(controller(drives=(Drive("252:0", write_cache="enabled"), Drive("252:1", write_cache="unknown"))))
    layer = RaidCacheLayer(None, parse_controllers([{"drives": [{"address": "all", "write_cache": "disabled"}]}]), [tool])
    outcome = converge(layer, check_mode=False)
    assert [step.item for step in outcome.steps] == ["storcli controller 0 drive 252:0"]
    assert layer.facts(outcome.state)["problems"] == list(outcome.warnings)
    assert outcome.warnings[0].startswith("Unchanged: write_cache of drive 252:1 of controller 0")


def test_all_without_any_supported_item_is_rejected():
    tool = FakeTool(controller(drives=(Drive("252:0"), Drive("252:1"))))
    with pytest.raises(BadInput, match="does not report its write_cache"):
        _plan(tool, {"drives": [{"address": "all", "write_cache": "disabled"}]})


def test_one_read_one_command_per_difference_and_one_reread():
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
        _converge(tool, WRITEBACK)
    assert caught.value.completed.argv[1:] == ("0", "v0", "write", "writeback")


@pytest.mark.parametrize(
    ("declared", "refused"),
    [(["PLP1", "PLP2"], False), (["ssd with *"], False), (["PLP1"], True), (["PLP1", "PLP3"], True), ([], True)],
)
@pytest.mark.parametrize(
    "entry",
    [{"volumes": [{"id": "0", "drive_cache": "enabled"}]}, {"drives": [{"address": "all", "write_cache": "enabled"}]}, {"drive_cache": {"jbod": "enabled"}}],
)
def test_drive_caches_need_no_permission_if_all_their_drives_are_declared(entry, declared, refused):
    drives = tuple(Drive(f"252:{n}", write_cache="disabled", serial=f"PLP{n + 1}", model="SSD with PLP", usage="configured") for n in range(2))
    tool = FakeTool(controller(volumes=(volume(0, members=("252:0", "252:1")),), drives=drives))
    specs = parse_controllers([entry], declared)
    if refused:
        with pytest.raises(Refused, match="storage_protected_drives"):
            plan.plan(tool.as_host(), specs)
    else:
        assert plan.plan(tool.as_host(), specs)[0]


def test_declared_drives_permit_nothing_else():
    with pytest.raises(Refused):
        plan.plan(FakeTool(controller()).as_host(), parse_controllers([{"volumes": [{"id": "0", "write": "writeback_always"}]}], ["*MODEL*", "SERIAL0"]))


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
def test_stored_but_ineffective_policy_fails_with_its_cause(protection, words):
    tool = FakeTool(controller(protection=protection, volumes=(volume(0, write=Policy("writeback", "writethrough")),)))
    entry = WRITEBACK
    with pytest.raises(NotEffective, match=f"is set to writeback, but writethrough is in effect: .*{words}") as caught:
        _converge(tool, entry)
    assert caught.value.facts["not_in_force"][0]["attribute"] == "write"
    outcome = _converge(tool, {**entry, "require_effective": False})
    assert not outcome.changed
    assert len(outcome.warnings) == 1


def test_failure_after_a_change_reports_completed_changes():
    tool = FakeTool(controller(protection=DEAD))
    with pytest.raises(NotEffective) as caught:
        _converge(tool, WRITEBACK)
    assert caught.value.facts["changed"] is True
    assert caught.value.facts["actions"] == ["Set write of volume volume0 of controller 0 (MODEL, storcli) to writeback (was writethrough)"]


def test_reason_reported_by_controller_takes_precedence():
    one = controller(volumes=(volume(0, write=Policy("writeback", "writethrough")),))
    tool = FakeTool(dataclasses.replace(one, cache=dataclasses.replace(one.cache, status="temporarily_disabled", reason="Capacitor charge is low")))
    with pytest.raises(NotEffective, match="the controller reports: Capacitor charge is low"):
        _converge(tool, WRITEBACK)


def test_unreported_effective_policy_is_a_warning_or_unprotected_failure():
    untold = (volume(0, write=Policy("writeback", "unknown")),)
    entry = WRITEBACK
    assert [str(one).count("whether that is in effect is not reported") for one in _converge(FakeTool(controller(volumes=untold)), entry).warnings] == [1]
    with pytest.raises(NotEffective, match="whether that is in effect is not reported: its battery has failed"):
        _converge(FakeTool(controller(volumes=untold, protection=DEAD)), entry)


def test_unprotected_cached_io_is_not_protected_writeback():
    cached = (volume(0, write=Policy("writeback", "writeback"), io=Policy("cached", "cached")),)
    entry = WRITEBACK
    assert _converge(FakeTool(controller(volumes=cached)), entry).warnings == ()
    with pytest.raises(NotEffective, match="caching of writes without protection is in effect: with io: cached"):
        _converge(FakeTool(controller(volumes=cached, protection=DEAD)), entry)


def test_drives_contradicting_their_policy_are_reported():
    drives = (Drive("0,8", write_cache="enabled", usage="configured"), Drive("0,9", write_cache="disabled", usage="configured"))
    tool = FakeTool(controller(drive_cache={"all": "disabled"}, drives=drives, volumes=(volume(0, members=("0,8", "0,9")),)))
    with pytest.raises(NotEffective, match=r"drive_cache.all is set to disabled, but enabled is in effect: reported by 1 of its drives \(0,8\)"):
        _converge(tool, {"drive_cache": {"all": "disabled"}})
    with pytest.raises(NotEffective, match=r"drive_cache is set to disabled, but enabled"):
        _converge(tool, {"volumes": [{"id": "0", "drive_cache": "disabled"}]})
    assert len(_converge(tool, {"drive_cache": {"all": "disabled"}, "require_effective": False}).warnings) == 1


def test_lost_items_prevent_use_of_all():
    tool = FakeTool(controller())
    tool.reading = {"lost": ("line 7: a volume without a number",)}
    with pytest.raises(NotUnderstood, match="line 7"):
        _plan(tool, WRITEBACK)
    with pytest.raises(NotUnderstood, match="nothing can be set for all of it"):
        _plan(tool, {"id": "0", "volumes": [{"id": "all", "write": "writeback"}]})
    assert _steps(tool, {"id": "0", "volumes": [{"id": "0", "write": "writeback"}]})


def test_only_the_unsupported_setting_of_all_is_skipped():
    tool = FakeTool(controller(volumes=(volume(0, read=Policy()), volume(1))))
    steps, notes = _plan(tool, {"volumes": [{"id": "all", "write": "writeback", "read": "read_ahead"}]})
    assert [(step.item[-1], step.attribute) for step in steps] == [("0", "write"), ("1", "read"), ("1", "write")]
    assert len(notes) == 1
    assert notes[0].startswith("Unchanged: read of volume volume0")


def test_unsupported_safer_setting_of_all_is_an_error():
    tool = FakeTool(controller(volumes=(volume(0, drive_cache="unknown"), volume(1))))
    with pytest.raises(BadInput, match="does not report its drive_cache"):
        _plan(tool, {"volumes": [{"id": "all", "drive_cache": "disabled"}]})


def test_empty_selection_of_all_is_reported():
    notes = _plan(FakeTool(controller(volumes=())), {"volumes": [{"id": "all", "write": "writeback"}]})[1]
    assert notes == ["controller 0 (MODEL, storcli) has no volumes, so there is nothing to set for all of them."]


def test_error_output_is_that_of_the_ineffective_command():
    tool = FakeTool(controller())
    tool.deaf = {"write"}
    with pytest.raises(NotEffective) as caught:
        _converge(tool, {"volumes": [{"id": "0", "write": "writeback", "read": "read_ahead"}]})
    assert caught.value.completed.argv[-2:] == ("write", "writeback")


def test_failure_after_a_change_does_not_claim_unchanged_state():
    tool = FakeTool(controller())
    tool.deaf = set()
    send = tool.send

    def breaking(words, item):
        tool.reading = {"complete": False, "not_understood": ("line 3",)}
        return send(words, item)

    tool.send = breaking
    with pytest.raises(NotUnderstood, match="After the change: The output") as caught:
        _converge(tool, WRITEBACK)
    assert "Nothing was changed" not in caught.value.message
    assert caught.value.facts["changed"] is True


def test_first_cached_volume_enables_cache_ratio():
    fresh = controller(cache_ratio=None)
    fresh = dataclasses.replace(fresh, cache=dataclasses.replace(fresh.cache, status="not_configured"))
    entry = {"cache_ratio": 20, "volumes": [{"id": "0", "write": "writeback"}]}
    assert [attribute for _item, attribute, *_values in _steps(FakeTool(fresh), entry)] == ["write", "cache_ratio"]
    with pytest.raises(BadInput, match="does not report its cache_ratio"):
        _plan(FakeTool(fresh), {"cache_ratio": 20})


def test_effective_writeback_despite_requested_writethrough_is_reported():
    tool = FakeTool(controller(volumes=(volume(0, write=Policy("writethrough", "writeback"), io=Policy("cached", "cached")),)))
    with pytest.raises(NotEffective, match="writeback is in effect: with io: cached, writes are cached"):
        _converge(tool, {"volumes": [{"id": "0", "write": "writethrough"}]})


def test_empty_list_runs_no_tool():
    tool = FakeTool(controller())
    layer = RaidCacheLayer(None, [], [])
    assert not converge(layer, check_mode=False).changed
    assert tool.reads == 0


def test_failed_battery_is_one_warning_for_all_volumes():
    tool = FakeTool(controller(protection=DEAD, volumes=tuple(volume(number, write=Policy("writeback", "writethrough")) for number in range(64))))
    outcome = _converge(tool, {"volumes": [{"id": "all", "write": "writeback"}], "require_effective": False})
    assert len(outcome.warnings) == 1
    assert outcome.warnings[0].startswith("volume volume0, volume volume1, volume volume2 and 61 more of controller 0 (MODEL, storcli): write is set to")


def test_check_mode_predicts_ineffective_settings():
    tool = FakeTool(controller(protection=DEAD, volumes=(volume(0), volume(1, write=Policy("writeback", "writethrough")))))
    requested = _converge(tool, {"volumes": [{"id": "all", "write": "writeback"}]}, check_mode=True)
    assert len(requested.steps) == 1
    assert [one.startswith("The run would fail: volume volume0, volume volume1 of controller 0") for one in requested.warnings] == [True]
    with pytest.raises(NotEffective):
        _converge(tool, {"volumes": [{"id": "all", "write": "writeback"}]})


def _mixed(number="0"):
    return controller(
        number,
        drives=(
            Drive("252:0", write_cache="enabled", model="ST10000NM0086", serial="ZA1", interface="sata", media="hdd", size=10**13),
            Drive("252:1", write_cache="enabled", model="ST10000NM0086", serial="ZA2", interface="sata", media="hdd", size=10**13),
            Drive("252:2", write_cache="disabled", model="INTEL SSDSC2KB960G8", serial="BTYF1", interface="sata", media="ssd"),
            Drive("252:3", write_cache="disabled"),
        ),
    )


def _drives(*drives):
    return {"drives": list(drives)}


_OFF = {"match": {"model": ["st10000*"]}, "write_cache": "disabled"}


def test_drives_behind_a_controller_are_chosen_by_match_and_a_second_run_changes_nothing():
    tool = FakeTool(_mixed())
    outcome = _converge(tool, _drives(_OFF))
    assert [step.item for step in outcome.steps] == [f"storcli controller 0 drive 252:{number}" for number in (0, 1)]
    assert (_converge(tool, _drives(_OFF)).changed, _converge(tool, _drives(_OFF)).warnings) == (False, ())


@pytest.mark.parametrize(
    ("drives", "off"),
    [
        ([{"address": "252:1", "write_cache": "enabled"}, _OFF], ["252:0"]),
        ([_OFF, {"match": {"serial": ["ZA1"]}, "write_cache": "enabled"}], ["252:1"]),
        ([{"match": {"serial": ["ZA1"]}, "write_cache": "enabled"}, _OFF], ["252:0", "252:1"]),
        ([{"match": {"rotational": True, "size_min": "9T", "transport": ["sata"]}, "write_cache": "disabled"}], ["252:0", "252:1"]),
        ([_OFF, {"address": "all", "write_cache": "disabled"}], ["252:0", "252:1"]),
    ],
)
def test_an_address_beats_a_match_and_a_later_match_an_earlier_one(drives, off):
    declared = parse_controllers([_drives(*drives)], [declaration({"match": {"model": "ST10000NM*"}})])
    assert [step.item.rpartition(" ")[2] for step in plan.plan(FakeTool(_mixed()).as_host(), declared)[0]] == off


@pytest.mark.parametrize("match", [{"size_max": "99T", "rotational": False}, {"transport": ["nvme"]}, {"model": ["SAMSUNG*"]}])
def test_what_a_tool_does_not_report_matches_nothing_and_a_match_without_drives_is_a_warning(match):
    # Drive 2 has no size, drive 3 nothing.
    entry = {"id": "all", **_drives(_OFF, {"match": match, "write_cache": "disabled"})}
    tool = FakeTool(controller(), _mixed("1"))
    steps, warnings = _plan(tool, entry)[:2]
    assert [step.item.rpartition(" ")[2] for step in steps] == ["252:0", "252:1"]
    assert [one for one in warnings if "match" in one] == [
        f"raid_cache_controllers: the match of entry 2 of drives matches no drive of {controller().label} and {_mixed('1').label}."
    ]


def test_a_matched_drive_that_cannot_be_set_is_named_with_its_entry_and_nothing_changes():
    tool = FakeTool(_mixed())
    tool.impossible["write_cache", "disabled"] = "has no setting for each drive"
    with pytest.raises(
        BadInput, match=r"drive 252:0 of .* has no setting for each drive\. It is chosen by the match of entry 1 of drives of raid_cache_controllers"
    ):
        _converge(tool, _drives(_OFF))
    assert tool.sent == []


def test_a_permission_for_drives_that_are_chosen_by_match_is_refused():
    with pytest.raises(BadInput, match="drives of raid_cache_controllers: entry 1 has allow_unprotected and match, but a permission is for one device"):
        parse_controllers([_drives({**_OFF, "write_cache": "enabled", "allow_unprotected": True})])
    with pytest.raises(BadInput, match="drives of raid_cache_controllers: entry 1 has address and match: set one of them"):
        parse_controllers([_drives({**_OFF, "address": "252:0"})])


def test_a_permission_for_all_drives_is_none_for_those_that_a_match_chooses():
    entry = _drives({"address": "all", "write_cache": "enabled", "allow_unprotected": True}, {"match": {"model": ["INTEL*"]}, "write_cache": "enabled"})
    with pytest.raises(Refused, match=r"on an entry of its own with its address \(it is chosen by the match of entry 2 of drives of raid_cache_controllers\)"):
        _plan(FakeTool(_mixed()), entry)


def test_describe_offers_an_entry_by_match_where_all_drives_of_a_model_agree():
    drives = (
        *(Drive(f"252:{number}", write_cache="disabled", model="ST10000NM0086", serial=f"ZA{number}") for number in range(3)),
        Drive("252:3", write_cache="disabled", model="ONE"),
        Drive("252:4", write_cache="enabled", model="TWO"),
        Drive("252:5", write_cache="disabled", model="TWO"),
    )
    tool = FakeTool(controller(drives=drives))
    host = RaidHost(None, tool.as_host(), [tool])
    for by_match, expected in (
        (False, [{"address": f"252:{number}"} for number in range(6)]),
        (True, [{"match": {"model": ["ST10000NM0086"]}}, "252:3", "4", "5"]),
    ):
        entry, _notes = describe_controller(host, tool.controllers[0], by_match=by_match)
        assert len(entry.values["drives"]) == len(expected)
        assert {**expected[0], "write_cache": "disabled"} == entry.values["drives"][0]
        assert not _converge(tool, entry.values, check_mode=True).steps
        assert wrong_shape("raid_cache_controllers", {**entry.values}) == ""
    assert wrong_shape("raid_cache_controllers", {"drives": [{"write_cache": "disabled"}]}) == "address is not a text in an entry of raid_cache_controllers"
