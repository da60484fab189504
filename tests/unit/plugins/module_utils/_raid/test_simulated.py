# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each provider with the simulator of its tool: what it sends, what it reads back, and how it sees faults."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, Controller, Policy, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import (
    CONTROLLER_ATTRIBUTES,
    DRIVE_ATTRIBUTES,
    VOLUME_ATTRIBUTES,
    RaidProvider,
    Subject,
    configured,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS
from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators.in_process.raid import SimulatedRunner
from ansible_collections.cachefleet.storage.tests.unit.support.raid_outputs import READERS

KINDS = {name: simulators.KINDS[name] for name in TOOLS}
MODELS = [(name, model) for name, kind in KINDS.items() for model in kind.models]
P408 = "HPE Smart Array P408i-a SR Gen10"
#: Answers with one switch for reading and writing: whether write-back needs protection is another setting.
SWITCHED = ("arcconf", "ssacli")


class Card:
    """One or more simulated controllers, and the provider of their tool."""

    def __init__(self, name, *models, faults=None, **options):
        kind = KINDS[name]
        self.runner = SimulatedRunner(kind)
        for model in models:
            self.runner.add(kind, model, **options)
        self.state = self.runner.states[name]
        self.state["faults"].update(faults or {})
        self.provider: RaidProvider = TOOLS[name].provider()(t.cast("t.Any", self.runner), kind.paths[0])

    def read(self):
        reading = self.provider.read()
        assert (reading.not_understood, reading.complete) == ((), True)
        return reading.controllers[0]

    def send(self, attribute, value, volume=None):
        """Set one attribute of the controller or of a volume."""
        controller = self.read()
        subject: Subject = controller if volume is None else controller.volumes[volume]
        return self.provider.send(self.provider.command(controller, subject, attribute, value), "item")

    @property
    def calls(self):
        return [call[1:] for call in self.runner.calls]


def same(controller, subject):
    """The subject in a later reading."""
    if isinstance(subject, Controller):
        return controller
    things: tuple[t.Any, ...] = controller.volumes if hasattr(subject, "id") else controller.drives
    return next(one for one in things if getattr(one, "id", getattr(one, "address", None)) == getattr(subject, "id", getattr(subject, "address", None)))


def subjects(controller, settings):
    if settings.keys() <= VOLUME_ATTRIBUTES.keys():
        return controller.volumes
    return (*controller.drives[:1], *controller.drives[-1:]) if settings.keys() <= DRIVE_ATTRIBUTES.keys() else (controller,)


def every_setting():
    """Each attribute with each value, and each policy for reading with each for writing."""
    attributes = {**CONTROLLER_ATTRIBUTES, **VOLUME_ATTRIBUTES, **DRIVE_ATTRIBUTES}
    alone = [{name: value} for name, values in attributes.items() for value in (values if values is not None else (25, 100))]
    return alone + [{"read": read, "write": write} for read, write in itertools.product(VOLUME_ATTRIBUTES["read"], VOLUME_ATTRIBUTES["write"])]


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_settings_without_objection_are_applied_and_read_back(name, model):
    card, taken = Card(name, model), 0
    provider, controller, every = card.provider, card.read(), every_setting()
    for settings in (*every, *reversed(every)):
        for old in subjects(controller, settings):
            subject = same(controller, old)
            if provider.objection(controller, subject, settings, settings if isinstance(subject, Controller) else {}):
                continue
            if any(configured(subject, attribute) in (None, UNKNOWN) for attribute in settings):
                continue
            changes = {attribute: value for attribute, value in settings.items() if not provider.agrees(controller, subject, attribute, value)}
            try:
                for attribute, value in changes.items():
                    provider.send(provider.command(controller, subject, attribute, value), "item")
            except CommandFailed as error:
                # Of a unit that is missing or that the card does not report, only the tool knows.
                assert any(words in error.message for words in ("battery status is not Ok", "without a battery"))
                assert controller.protection.protects is not True
            else:
                controller = card.read() if changes else controller
                for attribute, value in settings.items():
                    assert provider.agrees(controller, same(controller, subject), attribute, value), settings
                    assert name in SWITCHED or configured(same(controller, subject), attribute) == value
                taken += len(changes)
    assert taken or model.startswith(("HBA", "LSI3008", "Smart HBA"))


_STORCLI_READS = [(*words, "show", "all", "nolog", "J") for words in (("/call",), ("/call/vall",), ("/call/eall/sall",))]


@pytest.mark.parametrize("volumes", [1, 64])
@pytest.mark.parametrize(
    ("name", "models", "asked"),
    [
        ("arcconf", ("Adaptec ASR-81605ZQ", "Adaptec SmartRAID 3154-8i"), [("LIST",), ("GETCONFIG", "1", "AL", "nologs"), ("GETCONFIG", "2", "AL", "nologs")]),
        ("ssacli", (P408,), [("ctrl", "all", "show", "config", "detail")]),
        ("storcli", ("MegaRAID 9361-8i",), _STORCLI_READS),
        ("storcli2", ("MegaRAID 9660-16i",), _STORCLI_READS),
    ],
)
def test_command_count_is_independent_of_number_of_volumes(name, models, asked, volumes):
    card = Card(name, *models, volumes=volumes, **({} if name == "arcconf" else {"drives": 64}))
    assert [len(one.volumes) for one in card.provider.read().controllers] == [volumes] * len(models)
    assert card.calls == asked


@pytest.mark.parametrize(("name", "model"), [one for one in MODELS if one[0] not in SWITCHED])
def test_storcli_and_its_relatives_read_with_three_commands(name, model):
    card = Card(name, model)
    card.read()
    # Its drives have no enclosure.
    assert len(card.calls) == (4 if model == "LSI3008-IR" else 3)


_MEGARAID = {"battery_failed": "failed", "battery_missing": "missing", "learn_cycle": "learning", "capacitor_charging": "charging"}
_ENERGY_PACK = {"battery_failed": "failed", "learn_cycle": "learning", "capacitor_charging": "charging", "pack_missing": "missing"}
_ADAPTEC = dict.fromkeys(("battery_failed", "learn_cycle", "capacitor_charging"))


@pytest.mark.parametrize(
    ("name", "model", "fault", "health"),
    [
        (name, model, fault, health)
        for name, models, faults in (
            ("storcli", ("MegaRAID 9361-8i", "ServeRAID M5015"), _MEGARAID),
            ("storcli2", ("MegaRAID 9660-16i",), _ENERGY_PACK),
            ("arcconf", ("Adaptec ASR-6805", "Adaptec ASR-81605ZQ", "IBM ServeRAID 8k", "Adaptec SmartRAID 3154-8i"), _ADAPTEC),
        )
        for model in models
        for fault, health in faults.items()
    ],
)
def test_protected_writeback_falls_back_and_stays_configured(name, model, fault, health):
    healthy, ill = (Card(name, model, faults=faults).read() for faults in ({}, {fault: True}))
    assert (healthy.volumes[0].write, healthy.protection.protects) == (Policy("writeback", "writeback"), True)
    assert Policy("writeback", "writethrough") in [volume.write for volume in ill.volumes]
    assert name == "storcli" or {volume.write for volume in ill.volumes} == {Policy("writeback", "writethrough")}
    assert ill.protection.protects is False
    assert ill.protection.raw
    assert health in (None, ill.protection.health)


@pytest.mark.parametrize("name", KINDS)
def test_no_controller(name):
    card = Card(name, faults={"no_controller": True})
    assert card.provider.read() == Reading()


@pytest.mark.parametrize(("name", "model"), [("storcli", "MegaRAID 9560-8i"), ("storcli2", "MegaRAID 9660-16i")])
@pytest.mark.parametrize("fault", ["truncated", "garbage", "empty"])
def test_damaged_response_is_detected(name, model, fault):
    reading = Card(name, model, faults={fault: True}).provider.read()
    assert not reading.complete
    assert reading.not_understood != ()


# arcconf


@pytest.mark.parametrize("model", KINDS["arcconf"].models)
def test_repeating_a_setting_is_no_failure(model):
    card = Card("arcconf", model)
    controller, provider = card.read(), card.provider
    for settings in every_setting():
        for subject in subjects(controller, settings):
            for attribute, value in settings.items():
                if configured(subject, attribute) == value and not provider.objection(controller, subject, {attribute: value}, {}):
                    assert _would_be_refused(controller, subject) or card.provider.send(provider.command(controller, subject, attribute, value), "item").rc == 2


def _would_be_refused(controller, subject):
    """Whether the tool refuses even what is so: one drive under a policy for all, a drive of the pool."""
    return getattr(subject, "usage", "") == "cache" or (hasattr(subject, "write_cache") and controller.drive_cache.get("all", "per_drive") != "per_drive")


def test_build_of_2010_is_read_and_set_without_nologs():
    card = Card("arcconf", "Adaptec ASR-6805", faults={"old_build": True})
    card.send("write", "writethrough", 0)
    assert card.read().volumes[0].write.configured == "writethrough"
    assert all("nologs" not in words for words in card.calls if words[0] == "SETCACHE")


def test_hba_mode_has_no_volumes_and_keeps_drive_policies():
    controller = Card("arcconf", "Adaptec SmartRAID 3154-8i", faults={"hba_mode": True}).read()
    assert (controller.mode, controller.volumes) == ("hba", ())
    assert {drive.usage for drive in controller.drives} == {"hba"}


@pytest.mark.parametrize("value", [True, "unknown"])
def test_unreported_drive_cache_is_unknown(value):
    controller = Card("arcconf", "Adaptec SmartRAID 3154-8i", faults={"drive_write_cache_unknown": value}).read()
    assert {drive.write_cache for drive in controller.drives} == {UNKNOWN}


def series8(policy):
    """A card of series 8 as arcconf 2.x and 3.x print it: the policy for all drives is below Cache Properties."""
    card = Card("arcconf", "Adaptec ASR-8805", build="new")
    card.state["controllers"][0]["global_drive_cache"] = policy
    return card


def test_new_build_on_series_8_is_parsed_like_the_old_one():
    old, new = Card("arcconf", "Adaptec ASR-8805").read(), series8("drivespecific").read()
    assert new.drive_cache == {"all": "per_drive"}
    assert new == old


def test_policy_for_all_drives_can_be_set_with_new_build_on_series_8():
    card = series8("drivespecific")
    controller = card.read()
    assert card.provider.objection(controller, controller, {"drive_cache.all": "disabled"}, {"drive_cache.all": "disabled"}) is None
    card.send("drive_cache.all", "disabled")
    after = card.read()
    assert after.drive_cache == {"all": "disabled"}
    assert {drive.write_cache for drive in after.drives} == {"disabled"}


def test_single_drive_setting_against_the_policy_for_all_is_refused():
    card = series8("enable")
    controller, provider = card.read(), card.provider
    drive = controller.drives[0]
    assert "the policy for all drives is enabled" in (provider.objection(controller, drive, {"write_cache": "disabled"}, {}) or "")
    with pytest.raises(CommandFailed, match="Drivespecific"):
        provider.send(provider.command(controller, drive, "write_cache", "disabled"), "drive")


def test_ratio_of_unused_cache_is_set_after_the_first_volume_is_cached():
    card = Card("arcconf", "Adaptec SmartRAID 3154-8i")
    for volume in card.state["controllers"][0]["volumes"]:
        volume["caching"] = False
    controller, provider = card.read(), card.provider
    assert (controller.cache_ratio, controller.cache.status) == (None, "not_configured")
    assert provider.objection(controller, controller, {"cache_ratio": 25}, {"cache_ratio": 25})
    with pytest.raises(CommandFailed, match="cache is not configured"):
        card.send("cache_ratio", 25)
    assert provider.objection(controller, controller, {"cache_ratio": 25}, {"cache_ratio": 25, "caching": True}) is None
    card.send("write", "writeback", 0)
    card.send("cache_ratio", 25)
    assert card.read().cache_ratio == 25


# ssacli

SSACLI_MODELS = sorted(KINDS["ssacli"].models)


@pytest.mark.parametrize("model", SSACLI_MODELS)
@pytest.mark.parametrize("fault", ["", *(fault for fault in KINDS["ssacli"].faults if fault != "no_controller")])
def test_every_state_is_parsed(model, fault):
    controller = Card("ssacli", model, faults={fault: True} if fault else {}).read()
    assert controller.id != "unknown"
    if fault == "hba_mode":
        assert (controller.mode, controller.volumes) == ("hba", ())
    if fault == "cable_error" and controller.cache.status != "unknown" and controller.mode != "hba":
        assert controller.protection.protects is None
    if fault == "battery_failed" and controller.cache.status == "temporarily_disabled":
        assert controller.protection.protects is not True
        assert all(volume.write.effective == "writethrough" for volume in controller.volumes)


@pytest.mark.parametrize("model", SSACLI_MODELS)
@pytest.mark.parametrize("words", ["ctrl slot=0 show detail", "ctrl slot=0 ld all show detail", "nonsense"])
def test_other_show_commands_are_parsed(model, words):
    reading = READERS["ssacli"](Card("ssacli", model).provider.run(*words.split()).stdout)
    assert (reading.not_understood, reading.complete) == ((), True)


@pytest.mark.parametrize("model", SSACLI_MODELS)
@pytest.mark.parametrize("kind", ["all", "configured", "unconfigured", "hba"])
@pytest.mark.parametrize("value", ["enabled", "disabled", "default"])
def test_drive_cache_policy_is_refused_only_where_there_is_none(model, kind, value):
    card = Card("ssacli", model)
    before, settings = card.read(), {f"drive_cache.{kind}": value}
    refused = card.provider.objection(before, before, settings, {}) is not None
    assert not refused or kind not in before.drive_cache or (kind == "all" and value == "default")


@pytest.mark.parametrize("value", ["enabled", "disabled"])
def test_no_battery_write_cache_makes_writeback_unconditional(value):
    card = Card("ssacli", P408, no_battery_write_cache=value == "disabled")
    card.send("no_battery_write_cache", value)
    after = card.read()
    assert after.no_battery_write_cache == value
    assert after.volumes[0].write.configured == ("writeback_always" if value == "enabled" else "writeback")


def test_ratio_is_applied_and_read_100_percent_means_writethrough():
    card = Card("ssacli", P408)
    for ratio, effective in ((100, "writethrough"), (30, "writeback")):
        card.send("cache_ratio", ratio)
        assert (card.read().cache_ratio, card.read().volumes[0].write.effective) == (ratio, effective)


def test_write_ratio_of_cache_without_battery_is_refused():
    card = Card("ssacli", "Smart Array P410i")
    before = card.read()
    assert (before.protection.protects is True, before.no_battery_write_cache) == (False, "disabled")
    assert card.provider.objection(before, before, {"cache_ratio": 25}, {"cache_ratio": 25}) is None
    with pytest.raises(CommandFailed, match=r"item: ssacli refused .*cacheratio=25/75.*This operation is not supported.*without a battery"):
        card.send("cache_ratio", 25)
    card.send("no_battery_write_cache", "enabled")
    card.send("cache_ratio", 25)
    assert card.read().cache_ratio == 25
