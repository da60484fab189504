# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""arcconf as a provider: what it asks, refuses, sends and makes of answers."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import ArcConf
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CacheModule,
    Controller,
    Drive,
    Policy,
    Protection,
    Volume,
    VolumeMaxCache,
)
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

TOOL = "/usr/Arcconf/arcconf"
RULE = "-" * 70

LISTED = f"""Controllers found: 2
{RULE}
Controller information
{RULE}
   Controller ID             : Status, Slot, Mode, Name, SerialNumber, WWN
{RULE}
   Controller 1:             : Optimal, Slot 0, RAID (Expose RAW), Adaptec 6805, SIM1, 50000D11
   Controller 2:             : Optimal, Slot 3, Mixed, Adaptec SmartRAID 3154-8i, SIM2, 50000D12

Command completed successfully.
"""
CONFIG = f"""Controllers found: 2
{RULE}
Controller information
{RULE}
   Controller Status                        : Optimal
   Controller Model                         : Adaptec 6805
{RULE}
Logical device information
{RULE}
Logical device number 0
   RAID level                               : 1
   Write-cache setting                      : Enabled
   Write-cache status                       : On

Command completed successfully.
"""
VERSIONS = """Controllers found: 1
Controller #1
==============
Firmware                               : 5.2-0 (15421)

Command completed successfully.
"""
USAGE = " Usage: GETCONFIG <Controller#> [AD | LD [LD#] | PD | AL]\n"


def provider(replies=None):
    runner = ScriptedRunner(replies or {})
    return ArcConf(t.cast("t.Any", runner), TOOL), runner


def test_read_lists_and_queries_each_controller_once():
    arcconf, runner = provider({(TOOL, "LIST"): Reply(LISTED), (TOOL, "GETCONFIG"): Reply(CONFIG)})
    reading = arcconf.read()
    assert runner.calls == [(TOOL, "LIST"), (TOOL, "GETCONFIG", "1", "AL", "nologs"), (TOOL, "GETCONFIG", "2", "AL", "nologs")]
    assert [(one.id, one.serial, one.traits["nologs"]) for one in reading.controllers] == [("1", "SIM1", True), ("2", "SIM2", True)]
    assert (reading.not_understood, reading.complete) == ((), True)


def test_build_without_nologs_support_is_called_without_it():
    def answer(words):
        return Reply(USAGE, rc=3) if "nologs" in words else Reply(CONFIG)

    arcconf, runner = provider({(TOOL, "LIST"): Reply(LISTED), (TOOL, "GETCONFIG"): answer})
    first = arcconf.read()
    assert len(runner.calls) == 4
    assert first.controllers[0].traits["nologs"] is False
    assert arcconf.command(first.controllers[0], first.controllers[0].volumes[0], "write", "writethrough")[-1] == "noprompt"
    arcconf.read()
    assert len(runner.calls) == 7


def test_build_without_list_is_counted_by_getversion():
    arcconf, runner = provider({(TOOL, "LIST"): Reply(USAGE, rc=3), (TOOL, "GETVERSION"): Reply(VERSIONS), (TOOL, "GETCONFIG"): Reply(CONFIG)})
    (one,) = arcconf.read().controllers
    assert (one.id, one.model, one.firmware) == ("1", "Adaptec 6805", "5.2-0 (15421)")
    assert [words[1] for words in runner.calls] == ["LIST", "GETVERSION", "GETCONFIG"]


@pytest.mark.parametrize("answer", [Reply("Controllers found: 0\n\nCommand completed successfully.\n"), Reply("No controllers detected\n", rc=1)])
def test_no_controller_gives_an_empty_reading(answer):
    arcconf, runner = provider({(TOOL, "LIST"): answer})
    reading = arcconf.read()
    assert (reading.controllers, reading.not_understood, len(runner.calls)) == ((), (), 1)


def test_tool_failure_is_reported_as_not_understood():
    arcconf = provider({(TOOL, "LIST"): Reply("", rc=1, stderr="cannot open shared object")})[0]
    reading = arcconf.read()
    assert not reading.complete
    assert "cannot open shared object" in reading.not_understood[-1]
    arcconf = provider({(TOOL, "LIST"): Reply(LISTED), (TOOL, "GETCONFIG"): Reply("Invalid controller number.\n", rc=6)})[0]
    reading = arcconf.read()
    assert not reading.complete
    assert [one.id for one in reading.controllers] == ["1", "2"]
    assert any("exit status 6" in text for text in reading.not_understood)


def test_every_counted_controller_is_queried_after_truncated_list():
    cut = LISTED[: LISTED.index("   Controller 2:")]
    arcconf, runner = provider({(TOOL, "LIST"): Reply(cut), (TOOL, "GETCONFIG"): Reply(CONFIG)})
    reading = arcconf.read()
    assert [words[2] for words in runner.calls[1:]] == ["1", "2"]
    assert not reading.complete


# ------------------------------------------------------------------------------------------------------------ controllers

HEALTHY = Protection("capacitor", "healthy")
FAILED = Protection("capacitor", "failed", raw="Failed (Replace Batteries/Capacitors)")


def aacraid(**changes):
    traits = {"generation": "aacraid", "nologs": True, "volumes": {"0": {"write": "Enabled", "read": "Enabled"}}}
    return Controller(**{"provider": "arcconf", "id": "1", "model": "ASR", "mode": "raid", "traits": traits, **changes})


def smart(**changes):
    traits = {"generation": "smart", "nologs": True, "cache_status": "Ok", "io_bypass": changes.pop("io_bypass", {}), "volumes": {"0": {"caching": "Enabled"}}}
    defaults = {
        "provider": "arcconf",
        "id": "2",
        "model": "SmartRAID",
        "mode": "mixed",
        "protection": HEALTHY,
        "no_battery_write_cache": "disabled",
        "cache_ratio": 10,
        "drive_cache": {"configured": "default", "unconfigured": "default", "hba": "default"},
        "traits": traits,
    }
    return Controller(**{**defaults, **changes})


AAC_VOLUME = Volume("0", read=Policy("read_ahead", "read_ahead"), write=Policy("writeback", "writeback"), status="optimal")
OFF = Volume("0", array="3", read=Policy("none", "none"), write=Policy("writethrough", "writethrough"), status="optimal", acceleration="none")
ON = Volume("0", array="3", read=Policy("read_ahead", "read_ahead"), write=Policy("writeback", "writeback"), status="optimal", acceleration="controller_cache")
DISK = Drive("0,31", write_cache="enabled", usage="configured")


def objection(controller, subject, settings, own=None):
    return provider()[0].objection(controller, subject, settings, own or {}) or ""


@pytest.mark.parametrize(
    ("controller", "subject", "attribute", "value", "words"),
    [
        (aacraid(), AAC_VOLUME, "read", "none", "LOGICALDRIVE 0 roff noprompt nologs"),
        (aacraid(), AAC_VOLUME, "read", "read_ahead", "LOGICALDRIVE 0 ron noprompt nologs"),
        (aacraid(), AAC_VOLUME, "write", "writethrough", "LOGICALDRIVE 0 wt noprompt nologs"),
        (aacraid(), AAC_VOLUME, "write", "writeback", "LOGICALDRIVE 0 wbb noprompt nologs"),
        (aacraid(), AAC_VOLUME, "write", "writeback_always", "LOGICALDRIVE 0 wb noprompt nologs"),
        (aacraid(), DISK, "write_cache", "disabled", "DEVICE 0 31 wt nologs"),
        (aacraid(), DISK, "write_cache", "enabled", "DEVICE 0 31 wb nologs"),
        (smart(), ON, "read", "none", "LOGICALDRIVE 0 coff noprompt nologs"),
        (smart(), ON, "write", "writethrough", "LOGICALDRIVE 0 coff noprompt nologs"),
        (smart(), OFF, "write", "writeback", "LOGICALDRIVE 0 con noprompt nologs"),
        (smart(), OFF, "write", "writeback_always", "LOGICALDRIVE 0 con noprompt nologs"),
        (smart(), OFF, "read", "read_ahead", "LOGICALDRIVE 0 con noprompt nologs"),
        (smart(), None, "drive_cache.all", "enabled", "DEVICEALL enable noprompt nologs"),
        (smart(), None, "drive_cache.all", "disabled", "DEVICEALL disable noprompt nologs"),
        (smart(), None, "drive_cache.all", "per_drive", "DEVICEALL drivespecific noprompt nologs"),
        (smart(), None, "drive_cache.configured", "default", "DRIVEWRITECACHEPOLICY Configured 0 noprompt nologs"),
        (smart(), None, "drive_cache.unconfigured", "enabled", "DRIVEWRITECACHEPOLICY Unconfigured 1 noprompt nologs"),
        (smart(), None, "drive_cache.hba", "disabled", "DRIVEWRITECACHEPOLICY HBA 2 noprompt nologs"),
        (smart(), None, "no_battery_write_cache", "enabled", "NOBATTERYWRITECACHE enable noprompt nologs"),
        (smart(), None, "no_battery_write_cache", "disabled", "NOBATTERYWRITECACHE disable noprompt nologs"),
        (smart(), None, "cache_ratio", 25, "CACHERATIO 25 75 nologs"),
        # A build without nologs is not sent it.
        (aacraid(traits={"generation": "aacraid", "nologs": False, "volumes": {}}), DISK, "write_cache", "enabled", "DEVICE 0 31 wb"),
    ],
)
def test_commands(controller, subject, attribute, value, words):
    assert provider()[0].command(controller, subject or controller, attribute, value) == ["SETCACHE", controller.id, *words.split()]


@pytest.mark.parametrize("value", ["writeback", "writeback_always"])
def test_smartraid_switch_does_not_distinguish_both_writeback_modes(value):
    arcconf = provider()[0]
    assert arcconf.agrees(smart(), ON, "write", value)
    assert not arcconf.agrees(smart(), OFF, "write", value)
    assert not arcconf.agrees(smart(), Volume("0"), "write", value)
    assert arcconf.agrees(aacraid(), AAC_VOLUME, "write", value) is (value == "writeback")


# ------------------------------------------------------------------------------------------------------------- objections


NO_MEMORY = aacraid(traits={"generation": "aacraid", "volumes": {"0": {"write": "Not supported"}}})
WRITES_THROUGH = Volume("0", write=Policy("writethrough", "writethrough"))
STOPPED = [Volume("0", write=Policy("writeback", "writethrough"), status=status) for status in ("failed", "offline")]
SSD = Drive("0,4", write_cache="enabled", usage="cache")
#: Controller, subject (None: the controller), what is asked of it and of the controller, and why that cannot be; an empty reason: it can.
OBJECTIONS: list[tuple[Controller, Volume | Drive | None, dict[str, t.Any], dict[str, t.Any], str]] = [
    (aacraid(), AAC_VOLUME, {"io": "direct"}, {}, "cannot have io: direct, since arcconf has no I/O policy"),
    (aacraid(), AAC_VOLUME, {"read": "adaptive"}, {}, "read_ahead or none"),
    (aacraid(), AAC_VOLUME, {"drive_cache": "disabled"}, {}, "set the write_cache of each drive"),
    (aacraid(), AAC_VOLUME, {"write": "writeback_always", "read": "none"}, {}, ""),
    (NO_MEMORY, WRITES_THROUGH, {"write": "writeback"}, {}, "Not supported"),
    (NO_MEMORY, WRITES_THROUGH, {"write": "writethrough"}, {}, ""),
    *((aacraid(), volume, {"write": "writethrough"}, {}, "is in failed state") for volume in STOPPED),
    *((aacraid(), volume, {"write": "writeback"}, {}, "") for volume in STOPPED),
    # One switch of SmartRAID for reading and writing.
    (smart(), ON, {"read": "read_ahead", "write": "writeback"}, {}, ""),
    (smart(), ON, {"read": "none", "write": "writethrough"}, {}, ""),
    (smart(), ON, {"read": "read_ahead", "write": "writethrough"}, {}, "one switch"),
    (smart(), ON, {"read": "none", "write": "writeback"}, {}, "one switch"),
    # Without protection write-back is possible where no battery is needed.
    (smart(protection=FAILED), OFF, {"write": "writeback_always"}, {"no_battery_write_cache": "enabled"}, ""),
    (smart(protection=Protection()), OFF, {"write": "writeback"}, {}, ""),
    (smart(), DISK, {"write_cache": "disabled"}, {}, "drive_cache.configured, the class of this drive"),
    (smart(), Drive("0,1", usage="unconfigured"), {"write_cache": "disabled"}, {}, "drive_cache.unconfigured, the class"),
    (smart(), Drive("0,1"), {"write_cache": "disabled"}, {}, "drive_cache.hba"),
    (aacraid(), SSD, {"write_cache": "disabled"}, {}, "assigned to MaxCache pool"),
    (aacraid(), SSD, {"write_cache": "enabled"}, {}, ""),
    (aacraid(), None, {"no_battery_write_cache": "enabled"}, {}, "decides per volume"),
    (aacraid(), None, {"cache_ratio": 10}, {}, "does not divide its cache"),
    (aacraid(), None, {"drive_cache.all": "disabled"}, {}, "set the write_cache of each drive"),
    (aacraid(), None, {"drive_cache.jbod": "disabled"}, {}, "no policy for this class of drives"),
    (aacraid(drive_cache={"all": "enabled"}), None, {"drive_cache.configured": "disabled"}, {}, "drive_cache.all"),
    (aacraid(drive_cache={"all": "enabled"}), None, {"drive_cache.all": "default"}, {}, "enabled, disabled or per_drive"),
    (aacraid(drive_cache={"all": "enabled"}), None, {"drive_cache.all": "per_drive"}, {}, ""),
    (smart(), None, {"drive_cache.all": "disabled"}, {}, "drive_cache.configured or drive_cache.unconfigured or drive_cache.hba"),
    (smart(), None, {"drive_cache.hba": "default", "cache_ratio": 20, "no_battery_write_cache": "enabled"}, {}, ""),
    (smart(cache_ratio=None), None, {"cache_ratio": 20}, {}, "no Read Cache Percentage now (Cache Status: Ok)"),
    (smart(no_battery_write_cache="unknown"), None, {"no_battery_write_cache": "enabled"}, {}, "prints no No-Battery Write Cache"),
    (smart(mode="hba"), None, {"cache_ratio": 20}, {}, "All connectors are in HBA mode"),
    (smart(mode="hba"), None, {"drive_cache.hba": "disabled"}, {}, ""),
    *(
        (smart(no_battery_write_cache=present), volume, {"write": write}, own, reason)
        for volume in (ON, OFF)
        for present, own, write, reason in (
            ("disabled", {}, "writeback", ""),
            ("enabled", {}, "writeback", "set no_battery_write_cache: disabled"),
            ("enabled", {"no_battery_write_cache": "disabled"}, "writeback", ""),
            ("disabled", {"no_battery_write_cache": "enabled"}, "writeback", "set no_battery_write_cache: disabled"),
            ("disabled", {}, "writeback_always", "set no_battery_write_cache: enabled"),
            ("disabled", {"no_battery_write_cache": "enabled"}, "writeback_always", ""),
            ("enabled", {"no_battery_write_cache": "disabled"}, "writeback_always", "set no_battery_write_cache: enabled"),
            ("unknown", {}, "writeback_always", "no_battery_write_cache is not reported by this controller"),
            ("unknown", {}, "writeback", ""),
        )
    ),
]


def test_unsupported_settings_have_an_objection_with_reason():
    wrong = []
    for controller, subject, wishes, own, reason in OBJECTIONS:
        found = objection(controller, subject or controller, wishes, own)
        if reason not in found or bool(found) is not bool(reason):
            wrong.append((controller.model, subject, wishes, own, found, reason))
    assert wrong == []


@pytest.mark.parametrize(
    ("controller", "volume", "words"),
    [
        (smart(mode="hba"), OFF, "All connectors are in HBA mode"),
        (smart(), Volume("0", array="3", read=OFF.read, write=OFF.write, acceleration="maxcache"), "maxCache is enabled on the logical drive"),
        (smart(), Volume("0", read=OFF.read, write=OFF.write, maxcache=VolumeMaxCache(cache_volume="1")), "maxCache is enabled on the logical drive"),
        (smart(), Volume("0", array="3", read=OFF.read, write=OFF.write, acceleration="io_bypass"), "SSD I/O bypass has been enabled on array 3"),
        (smart(io_bypass={"3": "Enabled"}), OFF, "SSD I/O bypass has been enabled on array 3"),
        (smart(protection=FAILED), OFF, "battery status is not Ok and No Battery Write Cache is disabled"),
    ],
)
def test_reason_for_unavailable_caching_is_that_of_the_controller(controller, volume, words):
    assert words in objection(controller, volume, {"write": "writeback"})
    assert words in objection(controller, volume, {"read": "read_ahead"})
    assert objection(controller, volume, {"write": "writethrough", "read": "none"}) == ""


@pytest.mark.parametrize(
    ("policy", "own", "possible"),
    [
        ("per_drive", {}, True),
        ("enabled", {}, False),
        ("enabled", {"drive_cache.all": "per_drive"}, True),
        ("per_drive", {"drive_cache.all": "enabled"}, False),
        (None, {}, True),
    ],
)
def test_per_drive_setting_requires_the_per_drive_policy(policy, own, possible):
    card = aacraid(drive_cache={} if policy is None else {"all": policy})
    found = objection(card, DISK, {"write_cache": "disabled"}, own)
    assert (found == "") is possible
    assert possible or ("Drivespecific" in found and found.endswith("set drive_cache.all: per_drive"))
    assert objection(card, DISK, {"write_cache": "enabled"}, own) == ""


# ---------------------------------------------------------------------------------------------------------------- answers

DONE = "Command completed successfully.\n"
ABORTED = "Command aborted."


def judge(stdout, rc, stderr=""):
    judgement = provider()[0].judge(Completed((TOOL, "SETCACHE"), rc, stdout, stderr))
    return judgement.ok, judgement.message


@pytest.mark.parametrize(
    ("stdout", "rc", "said"),
    [
        # None: it is so.
        (f"Controllers found: 1\n\n{DONE}", 0, None),
        (f"Controllers found: 1\r\n\r\n\r\n{DONE}", 0, None),
        (f"WARNING: Power failure without battery/ZMM support will lead to data loss.\n{DONE}", 0, None),
        (
            "Controllers found: 1\nNew write cache mode is the same as the old write cache mode.\nThe selected parameter will be ignored.\n"
            f"No new supported cache settings have been specified.\n\n{ABORTED}",
            2,
            None,
        ),
        (f"Cache mode is already set to Enabled.\n\n{ABORTED}", 2, None),
        (f"Write Cache mode is already set to Enabled (write-back).\n{ABORTED}", 2, None),
        (f"Controller Global Physical Devices Cache policy is already Drive Specific\n{ABORTED}", 2, None),
        (f"Drive write cache already in desired mode.\n{ABORTED}", 2, None),
        (f"No Battery Write Cache is already set to Disabled.\n{ABORTED}", 2, None),
        (f"Cache Ratio is already set to 10 % Read : 90 % Write.\n{ABORTED}", 2, None),
        (f"Controllers found: 1\nWrite cache not supported on this device.\n{ABORTED}", 2, "Write cache not supported on this device."),
        (f"Write cache not supported on this device.\n{DONE}", 0, "Write cache not supported on this device."),
        (f"Something new is wrong.\n\n{ABORTED}", 2, "Something new is wrong."),
        (f"Controllers found: 1\nNo new supported cache settings have been specified.\n{ABORTED}", 2, "No new supported cache settings have been specified."),
        (f"No new supported cache settings have been specified.\n{ABORTED}", 0, "No new supported cache settings have been specified."),
        (f"All connectors are in HBA mode, Set cache operation is invalid.\n{ABORTED}", 2, "All connectors are in HBA mode, Set cache operation is invalid."),
        (
            "WARNING: Power failure\nDo you wish to continue?\nPress y, then ENTER to continue or press ENTER to abort: \n" + ABORTED,
            2,
            "Press y, then ENTER to continue or press ENTER to abort:",
        ),
        (USAGE, 3, "it rejects the command (invalid arguments)"),
        ("Invalid controller number.\n", 6, "exit status 6, invalid adapter"),
        ("Controllers found: 1\n\nCommand failed.\n", 1, "exit status 1, failure"),
        ("", 127, "exit status 127"),
        (ABORTED, 0, ""),
    ],
)
def test_responses_to_settings(stdout, rc, said):
    ok, reason = judge(stdout, rc)
    assert ok is (said is None)
    assert reason == "" if ok else said in reason


def test_tool_error_is_raised_with_its_reason():
    arcconf = provider({(TOOL, "SETCACHE"): Reply(f"Controller #1 does not have Hard Drive Cache support.\n{ABORTED}", rc=2)})[0]
    with pytest.raises(CommandFailed, match="does not have Hard Drive Cache support"):
        arcconf.send(["SETCACHE", "1", "DEVICEALL", "disable"], "controller 1")


# ------------------------------------------------------------------------------------------------------------ settings that reach further


@pytest.mark.parametrize(
    ("attribute", "value", "present", "requested", "also"),
    [
        ("read", "read_ahead", "disabled", None, {"write": "writeback"}),
        ("read", "read_ahead", "enabled", None, {"write": "writeback_always"}),
        ("read", "read_ahead", "disabled", "enabled", {"write": "writeback_always"}),
        ("read", "read_ahead", "enabled", "disabled", {"write": "writeback"}),
        ("read", "none", "enabled", None, {"write": "writethrough"}),
        ("write", "writeback", "disabled", None, {"read": "read_ahead"}),
        ("write", "writeback_always", "enabled", None, {"read": "read_ahead"}),
        ("write", "writethrough", "disabled", None, {"read": "none"}),
        ("drive_cache", "enabled", "disabled", None, {}),
    ],
)
def test_combined_switch_sets_reading_and_writing(attribute, value, present, requested, also):
    arcconf, own = provider()[0], {} if requested is None else {"no_battery_write_cache": requested}
    assert arcconf.side_effects(smart(no_battery_write_cache=present), OFF, attribute, value, own) == also
    assert arcconf.side_effects(aacraid(), AAC_VOLUME, attribute, value, own) == {}
    assert arcconf.side_effects(smart(), smart(), "cache_ratio", 10, own) == {}


def test_planned_policy_for_all_drives_overrides_a_single_drive():
    card, disk = aacraid(drive_cache={"all": "per_drive"}), Drive("0,31", write_cache="disabled", usage="configured")
    found = objection(card, disk, {"write_cache": "disabled"}, {"drive_cache.all": "enabled"})
    assert "the policy for all drives is enabled" in found
    assert objection(card, disk, {"write_cache": "disabled"}, {"drive_cache.all": "disabled"}) == ""
    assert objection(card, disk, {"write_cache": "disabled"}, {"drive_cache.all": "per_drive"}) == ""
    # What is there already and not asked for again is left to speak for itself.
    assert objection(aacraid(drive_cache={"all": "enabled"}), disk, {"write_cache": "disabled"}) == ""


def test_ratio_becomes_available_with_the_first_cached_volume():
    card = smart(cache_ratio=None, cache=CacheModule("not_configured"))
    assert "it has one when a volume is cached" in objection(card, card, {"cache_ratio": 10}, {"cache_ratio": 10})
    assert "it has one when a volume is cached" in objection(card, card, {"cache_ratio": 10}, {"cache_ratio": 10, "caching": False})
    assert objection(card, card, {"cache_ratio": 10}, {"cache_ratio": 10, "caching": True}) == ""
    gone = smart(cache_ratio=None, cache=CacheModule("permanently_disabled"))
    assert objection(gone, gone, {"cache_ratio": 10}, {"cache_ratio": 10, "caching": True})


def test_controllers_missing_in_list_are_queried_before_being_lost():
    listed = LISTED.replace("   Controller 2:             : Optimal, Slot 3, Mixed, Adaptec SmartRAID 3154-8i, SIM2, 50000D12\n", "")
    reading = provider({(TOOL, "LIST"): Reply(listed), (TOOL, "GETCONFIG"): Reply(CONFIG)})[0].read()
    assert [one.id for one in reading.controllers] == ["1", "2"]
    assert reading.lost == ()

    def answer(words):
        return Reply(CONFIG) if words[2] == "1" else Reply("Invalid controller number.\n", rc=6)

    reading = provider({(TOOL, "LIST"): Reply(listed), (TOOL, "GETCONFIG"): answer})[0].read()
    assert reading.lost == ("controller 2: GETCONFIG reports nothing about it",)
