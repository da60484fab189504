# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command language of ssacli: what is refused and why, which words set what, what an answer means."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import CacheModule, Controller, Drive, Policy, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.provider import CACHING_WORDS, DRIVE_POLICY_WORDS, SsaCli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.text import DRIVE_POLICIES
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

READ = ("ssacli", "ctrl", "all", "show", "config", "detail")
CACHED = Volume(
    "1", status="optimal", read=Policy("read_ahead", "read_ahead"), write=Policy("writeback", "writeback"), array="A", acceleration="controller_cache"
)
PLAIN = dataclasses.replace(CACHED, read=Policy("none", "none"), write=Policy("writethrough", "writethrough"), acceleration="none")
OLD = Controller(
    "ssacli",
    "0",
    mode="raid",
    cache=CacheModule("ok"),
    drive_cache={"all": "disabled"},
    cache_ratio=10,
    no_battery_write_cache="disabled",
    volumes=(CACHED, PLAIN),
)
NEW = dataclasses.replace(OLD, drive_cache={"configured": "default", "unconfigured": "default", "hba": "default"}, traits={"volume_switch": "caching"})


def provider(replies=None):
    return SsaCli(ScriptedRunner(replies or {}), "ssacli")


def objection(controller, subject, controller_settings=None, **settings):
    return provider().objection(controller, subject, settings, controller_settings or {})


@pytest.mark.parametrize(
    ("controller", "subject", "attribute", "value", "words"),
    [
        (NEW, CACHED, "write", "writethrough", "ctrl slot=0 ld 1 modify caching=disable forced"),
        (NEW, CACHED, "write", "writeback", "ctrl slot=0 ld 1 modify caching=enable forced"),
        (NEW, CACHED, "write", "writeback_always", "ctrl slot=0 ld 1 modify caching=enable forced"),
        (NEW, CACHED, "read", "read_ahead", "ctrl slot=0 ld 1 modify caching=enable forced"),
        (NEW, CACHED, "read", "none", "ctrl slot=0 ld 1 modify caching=disable forced"),
        (
            dataclasses.replace(OLD, traits={"volume_switch": "arrayaccelerator"}),
            CACHED,
            "read",
            "none",
            "ctrl slot=0 ld 1 modify arrayaccelerator=disable forced",
        ),
        (OLD, OLD, "drive_cache.all", "enabled", "ctrl slot=0 modify dwc=enable forced"),
        (OLD, CACHED, "drive_cache", "disabled", "ctrl slot=0 modify dwc=disable forced"),
        (NEW, NEW, "drive_cache.configured", "default", "ctrl slot=0 modify dwc=default usage=configured forced"),
        (NEW, NEW, "drive_cache.hba", "disabled", "ctrl slot=0 modify dwc=disable usage=hba forced"),
        (NEW, CACHED, "drive_cache", "disabled", "ctrl slot=0 modify dwc=disable usage=configured forced"),
        (NEW, NEW, "no_battery_write_cache", "enabled", "ctrl slot=0 modify nbwc=enable forced"),
        (NEW, NEW, "cache_ratio", 25, "ctrl slot=0 modify cacheratio=25/75"),
    ],
)
def test_commands(controller, subject, attribute, value, words):
    assert provider().command(controller, subject, attribute, value) == words.split()


def test_parsed_and_sent_words_correspond():
    assert {value: DRIVE_POLICIES[word] for value, word in DRIVE_POLICY_WORDS.items()} == {value: value for value in DRIVE_POLICY_WORDS}
    assert set(CACHING_WORDS.values()) == {"enable", "disable"}


@pytest.mark.parametrize(
    ("controller", "subject", "settings", "controller_settings", "reason"),
    [
        (NEW, CACHED, {"io": "direct"}, {}, "no I/O policy"),
        (NEW, CACHED, {"read": "adaptive"}, {}, "read_ahead"),
        (NEW, CACHED, {"read": "read_ahead", "write": "writethrough"}, {}, "one switch is for both"),
        (NEW, CACHED, {"read": "none", "write": "writeback"}, {}, "one switch is for both"),
        (NEW, CACHED, {"drive_cache": "disabled"}, {}, "drive_cache.configured"),
        (OLD, CACHED, {"drive_cache": "enabled"}, {"drive_cache.all": "disabled"}, "drive_cache.all"),
        (NEW, CACHED, {"write": "writeback_always"}, {}, "no_battery_write_cache of the controller is disabled"),
        (NEW, CACHED, {"write": "writeback_always"}, {"no_battery_write_cache": "disabled"}, "no_battery_write_cache"),
        (dataclasses.replace(NEW, no_battery_write_cache="enabled"), CACHED, {"write": "writeback"}, {}, "no_battery_write_cache of the controller is enabled"),
        (dataclasses.replace(NEW, cache_ratio=100), CACHED, {"write": "writeback"}, {}, "cache_ratio"),
        (NEW, CACHED, {"write": "writeback"}, {"cache_ratio": 100}, "cache_ratio"),
        (dataclasses.replace(NEW, cache_ratio=100), CACHED, {"read": "read_ahead", "write": "writethrough"}, {"cache_ratio": 10}, "one switch"),
        (dataclasses.replace(NEW, cache=CacheModule("absent")), PLAIN, {"write": "writeback"}, {}, "no cache board"),
        (dataclasses.replace(NEW, mode="hba", cache=CacheModule()), PLAIN, {"read": "read_ahead"}, {}, "HBA mode"),
        (
            dataclasses.replace(NEW, cache=CacheModule(), no_battery_write_cache="unknown"),
            PLAIN,
            {"read": "read_ahead"},
            {},
            "nothing is reported about a cache",
        ),
        (NEW, dataclasses.replace(PLAIN, acceleration="io_bypass"), {"write": "writeback"}, {}, "SSD Smart Path is on for array A"),
        (dataclasses.replace(NEW, traits={"smart_path": {"A": True}}), PLAIN, {"read": "read_ahead"}, {}, "SSD Smart Path"),
        (NEW, dataclasses.replace(PLAIN, status="failed"), {"write": "writeback"}, {}, "has failed"),
        (NEW, Drive("1I:1:1"), {"write_cache": "disabled"}, {}, "per class of drives"),
        (NEW, NEW, {"drive_cache.all": "disabled"}, {}, "drive_cache.configured"),
        (OLD, OLD, {"drive_cache.configured": "disabled"}, {}, "only drive_cache.all"),
        (OLD, OLD, {"drive_cache.all": "default"}, {}, "enabled or disabled"),
        (OLD, OLD, {"drive_cache.all": "per_drive"}, {}, "enabled or disabled"),
        (NEW, NEW, {"drive_cache.jbod": "disabled"}, {}, "drive_cache.hba"),
        (dataclasses.replace(NEW, drive_cache={}), NEW, {"drive_cache.jbod": "disabled"}, {}, "no policy for the caches of drives"),
        (NEW, NEW, {"cache_ratio": 101}, {}, "percentage"),
        (dataclasses.replace(NEW, cache_ratio=None), NEW, {"cache_ratio": 10}, {}, "no cache ratio"),
        (
            dataclasses.replace(NEW, cache_ratio=None, cache=CacheModule("permanently_disabled", "Cable Error")),
            NEW,
            {"cache_ratio": 10},
            {},
            "permanently disabled: Cable Error",
        ),
        (dataclasses.replace(NEW, cache_ratio=None, cache=CacheModule("not_configured")), NEW, {"cache_ratio": 10}, {}, "not configured"),
        (dataclasses.replace(NEW, no_battery_write_cache="unknown"), NEW, {"no_battery_write_cache": "enabled"}, {}, "no such setting"),
        # Without a reason: possible.
        (NEW, CACHED, {"write": "writethrough"}, {"cache_ratio": 20}, None),
        (NEW, CACHED, {}, {}, None),
        (NEW, PLAIN, {"read": "read_ahead", "write": "writeback"}, {}, None),
        (NEW, PLAIN, {"write": "writeback_always"}, {"no_battery_write_cache": "enabled"}, None),
        (dataclasses.replace(NEW, no_battery_write_cache="enabled"), PLAIN, {"write": "writeback_always"}, {}, None),
        (dataclasses.replace(NEW, no_battery_write_cache="enabled"), PLAIN, {"write": "writeback"}, {"no_battery_write_cache": "disabled"}, None),
        (dataclasses.replace(NEW, cache_ratio=100), CACHED, {"read": "read_ahead", "write": "writethrough"}, {}, None),
        (dataclasses.replace(NEW, cache_ratio=100), CACHED, {"write": "writeback"}, {"cache_ratio": 50}, None),
        (dataclasses.replace(NEW, cache=CacheModule("absent")), PLAIN, {"read": "none", "write": "writethrough"}, {}, None),
        (dataclasses.replace(NEW, cache=CacheModule("temporarily_disabled")), CACHED, {"write": "writeback"}, {}, None),
        (NEW, CACHED, {"drive_cache": "disabled"}, {"drive_cache.configured": "disabled"}, None),
        (NEW, NEW, {"drive_cache.hba": "default", "no_battery_write_cache": "disabled", "cache_ratio": 0}, {}, None),
    ],
)
def test_unsupported_settings_have_an_objection_with_reason(controller, subject, settings, controller_settings, reason):
    subject = controller if isinstance(subject, Controller) else subject
    said = provider().objection(controller, subject, settings, controller_settings)
    assert (said is None) is (reason is None)
    assert said is None or (said.startswith("cannot have ") and reason in said)


def test_both_writeback_modes_are_one_setting_of_a_volume():
    ssacli = provider()
    always = dataclasses.replace(CACHED, write=Policy("writeback_always", "writeback_always"))
    for volume in (CACHED, always):
        for wish in ("writeback", "writeback_always"):
            assert ssacli.agrees(NEW, volume, "write", wish)
        assert not ssacli.agrees(NEW, volume, "write", "writethrough")
    assert not ssacli.agrees(NEW, PLAIN, "write", "writeback")
    assert ssacli.agrees(NEW, PLAIN, "write", "writethrough")
    assert not ssacli.agrees(NEW, Volume("1"), "write", "writeback")


def test_read_ratio_of_100_percent_means_writethrough():
    ssacli = provider()
    reading = dataclasses.replace(NEW, cache_ratio=100)
    assert ssacli.agrees(reading, CACHED, "write", "writethrough")
    assert not ssacli.agrees(reading, Volume("1"), "write", "writethrough")


def test_writethrough_by_ratio_alone_ends_if_the_ratio_changes():
    reading = dataclasses.replace(NEW, cache_ratio=100)
    words = objection(reading, CACHED, {"cache_ratio": 10}, write="writethrough")
    assert words is not None
    assert "set read: none with it" in words
    assert objection(reading, CACHED, {"cache_ratio": 10}, write="writethrough", read="none") is None
    assert objection(reading, CACHED, {"cache_ratio": 100}, write="writethrough") is None
    assert objection(reading, PLAIN, {"cache_ratio": 10}, write="writethrough") is None


def test_other_settings_agree_if_equal():
    ssacli = provider()
    assert ssacli.agrees(NEW, NEW, "drive_cache.hba", "default")
    assert not ssacli.agrees(NEW, NEW, "drive_cache.hba", "disabled")
    assert ssacli.agrees(OLD, CACHED, "drive_cache", "disabled")
    assert not ssacli.agrees(OLD, CACHED, "drive_cache", "enabled")
    assert ssacli.agrees(NEW, NEW, "cache_ratio", 10)
    assert ssacli.agrees(NEW, CACHED, "read", "read_ahead")


@pytest.mark.parametrize(
    ("stdout", "rc", "ok", "reported"),
    [
        ("\n", 0, True, ""),
        ("", 0, True, ""),
        ("\nWarning: Without the proper safety precautions, use of write cache on physical \n         drives could cause data loss.\n\n", 0, True, ""),
        ('\nError: Parameter "usage" must be specified.\n\n', 1, False, 'Parameter "usage" must be specified.'),
        ("\nError: The specified controller does not exist.\n", 0, False, "The specified controller does not exist."),
        ("Error: Not supported.\n       Reason: Feature requires license key\n", 1, False, "Not supported. Reason: Feature requires license key"),
        ("\nWarning: Use of this feature is not recommended.\n         Continue? (y/n) ", 0, False, "confirmation"),
        ("\nError: Caching is already enabled.\n", 1, True, "already"),
        ("something else\n", 1, False, "something else"),
    ],
)
def test_responses_to_settings(stdout, rc, ok, reported):
    judgement = provider().judge(Completed(("ssacli", "ctrl", "slot=0", "modify", "x=y"), rc, stdout, ""))
    assert judgement.ok is ok
    assert reported in judgement.message


def test_rejected_setting_raises_with_the_reason():
    ssacli = provider({("ssacli", "ctrl", "slot=0", "modify"): Reply('Error: Parameter "usage" must be specified.\n', rc=1)})
    with pytest.raises(CommandFailed, match=r'Parameter "usage" must be specified'):
        ssacli.send(["ctrl", "slot=0", "modify", "dwc=enable", "forced"], "controller 0")


def test_no_controller_is_a_valid_response():
    ssacli = provider({READ: Reply("\nError: No controllers detected. Possible causes: the driver is not loaded.\n", rc=1)})
    reading = ssacli.read()
    assert (reading.controllers, reading.complete) == ((), True)


@pytest.mark.parametrize(
    "reply", [Reply("Error: Another instance of hpacucli is running! Stop it first.\n", rc=1), Reply("", rc=1, stderr="Error: Access denied.\n")]
)
def test_other_errors_raise(reply):
    with pytest.raises(CommandFailed, match=r"Another instance|Access denied"):
        provider({READ: reply}).read()


def test_empty_output_does_not_mean_no_controllers():
    reading = provider({READ: Reply("", rc=0)}).read()
    assert not reading.complete
    assert reading.not_understood


def test_every_capture_is_read_by_the_provider(shared_corpus):
    for file in sorted((shared_corpus / "ssacli").glob("netdata*")):
        reading = provider({READ: Reply(file.read_text())}).read()
        assert reading.controllers
        assert (reading.complete, reading.not_understood) == (True, ())
        for controller in reading.controllers:
            for volume in controller.volumes:
                assert provider().agrees(controller, volume, "read", "read_ahead")
                assert objection(controller, volume, write="writethrough", read="none") is None


@pytest.mark.parametrize(
    ("attribute", "value", "present", "requested", "also"),
    [
        ("read", "read_ahead", {}, {}, {"write": "writeback"}),
        ("read", "read_ahead", {"no_battery_write_cache": "enabled"}, {}, {"write": "writeback_always"}),
        ("read", "read_ahead", {}, {"no_battery_write_cache": "enabled"}, {"write": "writeback_always"}),
        ("read", "read_ahead", {"no_battery_write_cache": "enabled"}, {"no_battery_write_cache": "disabled"}, {"write": "writeback"}),
        ("read", "none", {}, {}, {"write": "writethrough"}),
        ("write", "writeback", {}, {}, {"read": "read_ahead"}),
        ("write", "writeback_always", {}, {}, {"read": "read_ahead"}),
        ("write", "writethrough", {}, {}, {"read": "none"}),
        # With the whole cache for reading, caching leaves writes alone, if it stays so.
        ("read", "read_ahead", {"cache_ratio": 100}, {}, {"write": "writethrough"}),
        ("read", "read_ahead", {"cache_ratio": 100}, {"cache_ratio": 100}, {"write": "writethrough"}),
        ("read", "read_ahead", {"cache_ratio": 100}, {"cache_ratio": 10}, {"write": "writeback"}),
        ("read", "read_ahead", {"cache_ratio": 10}, {"cache_ratio": 100}, {"write": "writeback"}),
        ("write", "writethrough", {"cache_ratio": 100}, {}, {}),
        ("drive_cache", "enabled", {}, {}, {}),
    ],
)
def test_combined_switch_sets_reading_and_writing(attribute, value, present, requested, also):
    card = dataclasses.replace(NEW, **present)
    assert provider().side_effects(card, PLAIN, attribute, value, requested) == also
    assert provider().side_effects(card, card, "cache_ratio", 10, requested) == {}


def test_ratio_becomes_available_with_the_first_cached_volume():
    card = dataclasses.replace(NEW, cache=CacheModule("not_configured"), cache_ratio=None)
    assert "no logical drive has caching enabled" in (objection(card, card, {"caching": False}, cache_ratio=10) or "")
    assert objection(card, card, {"caching": True}, cache_ratio=10) is None
    broken = dataclasses.replace(card, cache=CacheModule("permanently_disabled"))
    assert objection(broken, broken, {"caching": True}, cache_ratio=10)


@pytest.mark.parametrize("rc", [0, 1])
def test_ratio_requiring_a_battery_is_rejected_with_the_tool_message(rc):
    text = "\nError: This operation is not supported with the current configuration.\n       Reason: No battery\n\n"
    judged = provider().judge(Completed(("ssacli",), rc, text, ""))
    assert (judged.ok, judged.message) == (False, "This operation is not supported with the current configuration. Reason: No battery")
