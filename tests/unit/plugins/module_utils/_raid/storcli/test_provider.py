# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The providers for storcli and perccli: what they ask, what they refuse, what they send, how they take an answer."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import CacheModule, Controller, Drive, Policy, Protection, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import provider as storcli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.provider import PercCli, StorCli
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

TOOL = "/opt/MegaRAID/storcli/storcli64"
SUMMARY = (TOOL, "/call", "show", "all", "nolog", "J")
VOLUMES = (TOOL, "/call/vall", "show", "all", "nolog", "J")
DRIVES = (TOOL, "/call/eall/sall", "show", "all", "nolog", "J")

VOLUME = Volume(
    id="3",
    read=Policy("read_ahead", "read_ahead"),
    write=Policy("writeback", "writeback"),
    io=Policy("direct", "direct"),
    drive_cache="default",
    members=("252:0", "252:1"),
)
HDDS = (Drive("252:0", media="hdd", usage="configured"), Drive("252:1", media="hdd", usage="configured"))
SSDS = (Drive("252:0", media="hdd", usage="configured"), Drive("252:1", media="ssd", usage="configured"))
ABLE = {"can_set_read": True, "can_set_write": True, "can_set_io": True, "can_set_drive_cache": True, "ssd_drive_cache_blocked": True}
CONTROLLER = Controller(
    "storcli",
    id="0",
    mode="raid",
    cache=CacheModule(memory=1 << 30),
    protection=Protection("capacitor", "healthy"),
    volumes=(VOLUME,),
    drives=HDDS,
    traits=ABLE,
)


def provider(kind=StorCli, replies=None):
    return kind(ScriptedRunner(replies or {}), TOOL)  # type: ignore[arg-type]


def reported(*blocks):
    return Reply(json.dumps({"Controllers": list(blocks)}))


def block(data=None, description="None", status="Success", **more):
    whole: dict[str, t.Any] = {"Command Status": {"Controller": 0, "Status": status, "Description": description, **more}}
    return whole if data is None else {**whole, "Response Data": data}


def row(number, cache="RWBD"):
    return {"DG/VD": f"{number}/{number}", "TYPE": "RAID1", "State": "Optl", "Cache": cache, "Cac": "-", "Size": "1.000 TB", "Name": ""}


def script(volumes=1, **summary):
    numbers = range(volumes)
    details: dict[str, t.Any] = {}
    for number in numbers:
        details[f"/c0/v{number}"] = [row(number)]
        details[f"VD{number} Properties"] = {"Write Cache(initial setting)": "WriteBack", "Disk Cache Policy": "Disk's Default"}
    listed = {"Product Name": "Simulated", "Driver Name": "megaraid_sas", "VD LIST": [row(number) for number in numbers], **summary}
    return {SUMMARY: reported(block(listed)), VOLUMES: reported(block(details)), DRIVES: reported(block(status="Failure", description="No drive found!"))}


def calls(one):
    return [" ".join(requested[1:]) for requested in t.cast("ScriptedRunner", one.runner).calls]


# Reading


@pytest.mark.parametrize(
    ("summary", "volumes", "lost"),
    [
        ({}, {"Unknown layout": [{"a": "b"}]}, "/call/vall show all: controller 0 reports no volumes in its answer"),
        ({"Virtual Drives": 3}, None, "Virtual Drives: 3, and 1 are listed"),
        ({"Physical Drives": 3, "PD LIST": []}, None, "controller 0 has 3 drives, and 0 are listed"),
    ],
)
def test_what_is_counted_or_answered_in_an_unknown_layout_is_lost(summary, volumes, lost):
    replies = script(1, **summary)
    reading = provider(replies={**replies, **({VOLUMES: reported(block(volumes))} if volumes else {})}).read()
    assert [clause for clause in reading.lost_for("0") if lost in clause]
    assert set(reading.lost) <= set(reading.not_understood)


@pytest.mark.parametrize("description", ["No Controller found", "Controller 0 not found"])
def test_no_controller_runs_one_command(description):
    one = provider(replies={SUMMARY: reported(block(status="Failure", description=description))})
    reading = one.read()
    assert (reading.controllers, reading.complete, reading.not_understood) == ((), True, ())
    assert calls(one) == ["/call show all nolog J"]


def test_response_without_controller_is_verified_by_the_overview():
    one = provider(replies={SUMMARY: reported(block()), (TOOL, "show"): reported(block({"Number of Controllers": 0}))})
    assert one.read().controllers == ()
    assert calls(one)[1:] == ["show nolog J"]


def test_jbod_write_cache_is_read_if_supported_by_controller():
    replies = script(**{"Supported Adapter Operations": {"Support JBOD Write cache": "Yes"}})
    replies[TOOL, "/call", "show", "jbodwritecache"] = reported(block({"Controller Properties": [{"Ctrl_Prop": "JBOD Write Cache", "Value": "Default"}]}))
    one = provider(replies=replies)
    assert one.read().controllers[0].drive_cache == {"jbod": "default"}
    assert len(calls(one)) == 4


@pytest.mark.parametrize("table, place", [("BBU_Info", "/call/bbu"), ("Cachevault_Info", "/call/cv")])
def test_unhealthy_unit_is_queried_for_the_reason(table, place):
    replies = script(**{table: [{"Model": "X", "State": "Degraded"}]})
    replies[TOOL, place, "show", "all"] = reported(block({table: [{"Property": "State", "Value": "Learning"}]}))
    one = provider(replies=replies)
    assert one.read().controllers[0].protection.health == "learning"
    assert calls(one)[3:] == [f"{place} show all nolog J"]


def test_healthy_unit_is_not_queried():
    one = provider(replies=script(BBU_Info=[{"Model": "X", "State": "Optimal"}]))
    one.read()
    assert len(calls(one)) == 3


def test_drives_without_enclosure_are_read_separately():
    replies = script(**{"PD LIST": [{"EID:Slt": " :4", "State": "JBOD", "Med": "HDD", "Intf": "SAS"}]})
    attributes = {"Drive /c0/s4 Device attributes": {"SN": "S4", "Write Cache": "Disabled"}}
    replies[TOOL, "/call/sall", "show", "all"] = reported(block({"Drive /c0/s4 - Detailed Information": attributes}))
    one = provider(replies=replies)
    (drive,) = one.read().controllers[0].drives
    assert (drive.address, drive.serial, drive.write_cache, drive.usage) == (":4", "S4", "disabled", "jbod")
    assert len(calls(one)) == 4


def test_tool_refusal_makes_the_reading_incomplete():
    refusal = Reply("syntax error, unexpected TOKEN_UNKNOWN, expecting $end\n", rc=255)
    reading = provider(replies={SUMMARY: refusal}).read()
    assert not reading.complete
    assert reading.not_understood == ("/call show all: syntax error, unexpected TOKEN_UNKNOWN, expecting $end",)
    reading = provider(replies={**script(), VOLUMES: refusal}).read()
    assert not reading.complete
    assert [volume.write for volume in reading.controllers[0].volumes] == [Policy("unknown", "writeback")]


def test_failure_of_one_controller_is_reported_and_others_are_kept():
    reading = provider(replies={**script(), VOLUMES: reported(block(status="Failure", description="Internal error"))}).read()
    assert reading.complete
    assert reading.not_understood == ("/call/vall show all: Internal error",)


def test_truncated_response_makes_the_reading_incomplete():
    replies = script()
    replies[VOLUMES] = Reply(replies[VOLUMES].stdout[:90])
    reading = provider(replies=replies).read()
    assert not reading.complete
    assert reading.not_understood[0].startswith("/call/vall show all: the JSON is cut or broken at line 1")


def test_tool_that_cannot_run_raises():
    with pytest.raises(CommandFailed, match="libstorelib"):
        provider(replies={SUMMARY: Reply(rc=127, stderr="error while loading shared libraries: libstorelib.so\n")}).read()


def test_exit_status_is_ignored():
    replies = {requested: dataclasses.replace(reply, rc=6) for requested, reply in script().items()}
    assert provider(replies=replies).read().complete


def test_captures_of_one_host_are_joined(shared_corpus):
    folder = shared_corpus / "perccli"
    names = {SUMMARY: "call-show-all", VOLUMES: "call-vall-show-all", DRIVES: "call-eall-sall-show-all"}
    replies = {requested: Reply((folder / f"{name}_perc-h755.json").read_text(encoding="utf-8")) for requested, name in names.items()}
    reading = provider(PercCli, replies).read()
    assert (reading.complete, reading.not_understood) == (True, ())
    (controller,) = reading.controllers
    assert (controller.provider, controller.mode, controller.protection.health) == ("perccli", "raid", "healthy")
    (volume,) = controller.volumes
    assert (volume.write, volume.drive_cache, volume.scsi, len(volume.members)) == (Policy("writeback", "writeback"), "default", (3, 111, 0), 7)
    assert [drive.write_cache for drive in controller.drives] == ["disabled"] * 8
    assert [drive.usage for drive in controller.drives].count("unconfigured") == 1


# What cannot be done


def objection(subject, settings, controller=CONTROLLER, kind=StorCli):
    return provider(kind).objection(controller, subject, settings, {})


CACHELESS = dataclasses.replace(CONTROLLER, cache=CacheModule(status="absent", memory=0))
NO_MEMORY = "since the controller has no cache memory (On Board Memory Size: 0 MB)"
PLAIN = dataclasses.replace(VOLUME, write=Policy("writethrough", "writethrough"))
ON_SSD = dataclasses.replace(CONTROLLER, drives=SSDS)
HBA = dataclasses.replace(CONTROLLER, mode="hba")
INCAPABLE = dataclasses.replace(CONTROLLER, traits=dict.fromkeys(ABLE, False), cache=CacheModule(memory=0))
AS_IT_IS = {"read": "adaptive", "write": "writeback", "io": "direct", "drive_cache": "default"}
#: Controller, subject, what is asked of it, and how the objection ends; None: it can be.
OBJECTIONS: list[tuple[Controller, t.Any, dict[str, t.Any], str | None]] = [
    *((CONTROLLER, VOLUME, {"write": value}, None) for value in ("writethrough", "writeback_always")),
    *((CONTROLLER, VOLUME, {"drive_cache": value}, None) for value in ("enabled", "disabled")),
    (CONTROLLER, VOLUME, {"read": "none"}, None),
    (CONTROLLER, VOLUME, {"io": "cached"}, None),
    (CONTROLLER, VOLUME, {}, None),
    (CONTROLLER, VOLUME, {"read": "adaptive"}, "cannot have read: adaptive, since storcli sets rdcache to NoRA and RA only"),
    # What is so already.
    (INCAPABLE, dataclasses.replace(VOLUME, read=Policy("adaptive", "adaptive")), AS_IT_IS, None),
    *(
        (
            dataclasses.replace(CONTROLLER, traits={**ABLE, f"can_set_{attribute}": False}),
            VOLUME,
            {attribute: value},
            f"cannot have {attribute}: {value}, since the controller does not support it ({label}: No)",
        )
        for attribute, value, label in (
            ("read", "none", "Read Policy"),
            ("write", "writethrough", "Write Policy"),
            ("io", "cached", "IO Policy"),
            ("drive_cache", "enabled", "Disk Cache Policy"),
        )
    ),
    *((CACHELESS, PLAIN, {"write": value}, f"cannot have write: {value}, {NO_MEMORY}") for value in ("writeback", "writeback_always")),
    (CACHELESS, PLAIN, {"write": "writethrough"}, None),
    (ON_SSD, VOLUME, {"drive_cache": "disabled"}, "(Block SSD Write Disk Cache Change: Yes)"),
    (ON_SSD, VOLUME, {"drive_cache": "default"}, None),
    (dataclasses.replace(ON_SSD, traits={**ABLE, "ssd_drive_cache_blocked": False}), VOLUME, {"drive_cache": "disabled"}, None),
    (
        dataclasses.replace(HBA, volumes=()),
        Drive("0:1", usage="jbod"),
        {"write_cache": "enabled"},
        "cannot have write_cache: enabled, since the controller is an HBA and leaves the cache of its drives to the host",
    ),
    (
        CONTROLLER,
        HDDS[0],
        {"write_cache": "disabled"},
        "cannot have write_cache: disabled, since storcli has no setting for a single drive, only for all drives of a volume (drive_cache of volume 3)",
    ),
    (CONTROLLER, Drive("252:7", write_cache="disabled"), {"write_cache": "disabled"}, None),
]


def test_unsupported_settings_have_an_objection_with_reason():
    wrong = []
    for controller, subject, wishes, ending in OBJECTIONS:
        found = objection(subject, wishes, controller)
        if found != ending and (found is None or ending is None or not found.endswith(ending)):
            wrong.append((subject, wishes, found, ending))
    assert wrong == []
    assert "perccli" in (objection(VOLUME, {"read": "adaptive"}, kind=PercCli) or "")
    assert "HBA" in (objection(VOLUME, {"write": "writethrough"}, HBA) or "")
    assert "drive_cache.jbod" in (objection(Drive("252:7", usage="jbod"), {"write_cache": "disabled"}) or "")


@pytest.mark.parametrize("reported, said_so", [(True, None), (False, "(Support JBOD Write cache: No)"), (None, "(Support JBOD Write cache is not printed)")])
def test_jbod_write_cache_requires_support(reported, said_so):
    controller = dataclasses.replace(
        CONTROLLER, traits={} if reported is None else {"jbod_write_cache": reported}, drive_cache={"jbod": "default"} if reported else {}
    )
    reason = objection(controller, {"drive_cache.jbod": "disabled"}, controller)
    assert reason is None if said_so is None else reason is not None and reason.endswith(said_so)


@pytest.mark.parametrize(
    "attribute, value",
    [
        ("drive_cache.all", "enabled"),
        ("drive_cache.configured", "disabled"),
        ("drive_cache.hba", "default"),
        ("no_battery_write_cache", "enabled"),
        ("cache_ratio", 10),
    ],
)
def test_settings_of_other_families_are_rejected(attribute, value):
    reason = objection(CONTROLLER, {attribute: value})
    assert reason is not None
    assert reason.startswith(f"cannot have {attribute}: {value}, since storcli ")


# Setting


@pytest.mark.parametrize(
    "attribute, value, word",
    [
        ("read", "none", "rdcache=NoRA"),
        ("read", "read_ahead", "rdcache=RA"),
        ("write", "writethrough", "wrcache=WT"),
        ("write", "writeback", "wrcache=WB"),
        ("write", "writeback_always", "wrcache=AWB"),
        ("io", "direct", "iopolicy=Direct"),
        ("io", "cached", "iopolicy=Cached"),
        ("drive_cache", "enabled", "pdcache=On"),
        ("drive_cache", "disabled", "pdcache=Off"),
        ("drive_cache", "default", "pdcache=Default"),
        ("drive_cache.jbod", "enabled", "jbodwritecache=on"),
        ("drive_cache.jbod", "disabled", "jbodwritecache=off"),
        ("drive_cache.jbod", "default", "jbodwritecache=default"),
    ],
)
def test_commands(attribute, value, word):
    subject, place = (CONTROLLER, "/c0") if "." in attribute else (VOLUME, "/c0/v3")
    assert provider().command(CONTROLLER, subject, attribute, value) == [place, "set", word, "nolog", "J"]


def test_io_is_set_before_write():
    assert StorCli.order.index("io") < StorCli.order.index("write")


@pytest.mark.parametrize("known, value", [(Policy("writeback", "writethrough"), "writeback"), (Policy("writethrough", "writethrough"), "writethrough")])
def test_configured_value_is_compared_regardless_of_the_effective_one(known, value):
    volume = dataclasses.replace(VOLUME, write=known)
    assert provider().agrees(CONTROLLER, volume, "write", value)
    assert not provider().agrees(CONTROLLER, volume, "write", "writeback_always")


def test_missing_initial_setting_agrees_only_without_possible_fallback():
    failed = dataclasses.replace(CONTROLLER, protection=Protection("battery", "failed"))
    through = dataclasses.replace(VOLUME, write=Policy("unknown", "writethrough"))
    back = dataclasses.replace(VOLUME, write=Policy("unknown", "writeback"))
    assert provider().agrees(CONTROLLER, through, "write", "writethrough")
    assert not provider().agrees(failed, through, "write", "writethrough")
    assert provider().agrees(failed, back, "write", "writeback")
    assert not provider().agrees(CONTROLLER, through, "write", "writeback")
    assert not provider().agrees(CONTROLLER, dataclasses.replace(back, io=Policy("cached", "cached")), "write", "writeback")


def judged(stdout, rc=0):
    judgement = provider().judge(Completed((TOOL,), rc, stdout, ""))
    return judgement.ok, judgement.message


def detail(status, message, code):
    return {"VD": 3, "Property": "wrCache", "Value": "WB", "Status": status, "ErrCd": code, "ErrMsg": message}


def test_refused_property_with_exit_status_0_is_a_failure():
    refusal = {"Detailed Status": [detail("Success", "-", 0), detail("Failed", "SSD Pd is present", 255)]}
    assert judged(reported(block(**refusal)).stdout) == (False, "SSD Pd is present")
    assert judged(reported(block(status="Failure", **refusal)).stdout) == (False, "SSD Pd is present")


@pytest.mark.parametrize("rc", [0, 6, 255])
def test_success_is_accepted_with_any_exit_status(rc):
    assert judged(reported(block(**{"Detailed Status": [detail("Success", "-", 0)]})).stdout, rc) == (True, "")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", ""),
        ("bash: storcli64: not found\n", "line 1: 'bash: storcli64: not found'"),
        ("syntax error, unexpected TOKEN_X\nstorcli /cx show\n", "syntax error, unexpected TOKEN_X"),
        ('{"Controllers":[{"Command Status":{"Status":"Success","Detailed', "the JSON is cut or broken at line 1"),
    ],
)
def test_invalid_response_is_not_a_success(text, reason):
    ok, why = judged(text)
    assert not ok
    assert why.startswith(reason)


def test_plain_text_responses_are_evaluated():
    head = "Controller = 0\nStatus = {}\nDescription = None\n\n"
    table = "Detailed Status :\n===============\n\n{line}\nVD Property Value Status ErrCd ErrMsg\n{line}\n 3 wrCache  WB    {}   {} {}\n{line}\n"
    line = "-" * 41
    assert judged(head.format("Success") + table.format("Success", "   0", "-", line=line)) == (True, "")
    assert judged(head.format("Success") + table.format("Failed ", " 255", "not allowed now", line=line)) == (False, "not allowed now")


def test_captured_responses_to_settings_are_evaluated(shared_corpus):
    refused = {
        "c0-add-vd_fail.json": "disk doesn't have enough capacity",
        "c0-e252-s7-set-good_failed-255.json": "Operation not allowed.; Set Drive Good Failed.",
        "c0-set-jbod_fail.json": "device state doesn't support requested command; Set Drive JBOD Failed.",
        "c0-v-del_vd-not-exist.json": "Some of the specified VDs does not exist",
    }
    for name, reason in refused.items():
        assert judged((shared_corpus / "storcli" / name).read_text(encoding="utf-8")) == (False, reason)
    for name in ("c0-v228-set-rdcache-wrcache-iopolicy_success.json", "c0-v1-del_success.json"):
        assert judged((shared_corpus / "storcli" / name).read_text(encoding="utf-8")) == (True, "")


def test_refusal_raises_with_the_controller_reason():
    command = provider().command(CONTROLLER, VOLUME, "drive_cache", "disabled")
    one = provider(replies={(TOOL, *command): reported(block(**{"Detailed Status": [detail("Failed", "SSD Pd is present", 255)]}))})
    with pytest.raises(CommandFailed, match="SSD Pd is present"):
        one.send(command, "volume 3")


@pytest.mark.parametrize(
    "ours, vendor",
    [
        (storcli.READ_WORDS, {"NoRA": "none", "RA": "read_ahead"}),
        (storcli.WRITE_WORDS, {"WT": "writethrough", "WB": "writeback", "AWB": "writeback_always"}),
        (storcli.IO_WORDS, {"Direct": "direct", "Cached": "cached"}),
        (storcli.DRIVE_CACHE_WORDS, {"On": "enabled", "Off": "disabled", "Default": "default"}),
        (storcli.JBOD_WORDS, {"on": "enabled", "off": "disabled", "default": "default"}),
    ],
)
def test_words_round_trip(ours, vendor):
    assert {word: value for value, word in ours.items()} == vendor


def test_written_words_match_parsed_words():
    """The words of ``set`` are those of the outputs; the column abbreviates the I/O policy."""
    assert {words.WRITE_COLUMN[word]: word for word in storcli.WRITE_WORDS.values()} == storcli.WRITE_WORDS
    assert {words.IO_COLUMN[word[0]]: word for word in storcli.IO_WORDS.values()} == storcli.IO_WORDS
    for table in (storcli.DRIVE_CACHE_WORDS, storcli.JBOD_WORDS):
        assert {words.DRIVE_CACHE[word.lower()]: word for word in table.values()} == table


# What is lost


def second(description):
    return {"Command Status": {"Controller": 1, "Status": "Failure", "Description": description}}


@pytest.mark.parametrize("place", [SUMMARY, VOLUMES, DRIVES])
def test_controller_responding_with_failure_is_lost(place):
    replies = script()
    answered = json.loads(replies[place].stdout)["Controllers"]
    replies[place] = reported(*answered, second("Firmware is in fault state"))
    reading = provider(replies=replies).read()
    assert [one.id for one in reading.controllers] == ["0"]
    assert reading.complete
    assert [clause for clause in reading.lost if clause.endswith("controller 1 answers with a failure: Firmware is in fault state")]
    assert any("Firmware is in fault state" in problem for problem in reading.not_understood)


@pytest.mark.parametrize("description", ["No VD's have been configured.", "Un-supported command", "No drive found!", "No Enclosure found!"])
def test_controller_without_items_of_the_kind_is_not_lost(description):
    replies = script()
    for place in (VOLUMES, DRIVES):
        replies[place] = reported(*json.loads(replies[place].stdout)["Controllers"], second(description))
    reading = provider(replies=replies).read()
    assert (reading.lost, reading.not_understood) == ((), ())


BATTERY = (TOOL, "/call/bbu", "show", "all", "nolog", "J")
VAULT = (TOOL, "/call/cv", "show", "all", "nolog", "J")
PRESENT = {"HwCfg": {"BBU": "Present"}, "Status": {"BBU Status": "NA"}}
UNSUPPORTED = "feature is not supported on this controller"


def refused(message, number=0):
    detailed = {"Ctrl": number, "Status": "Failed", "Property": "-", "ErrMsg": message, "ErrCd": 255}
    return block(status="Failure", **{"Controller": number, "Detailed Status": [detailed]})


def properties(**values):
    return [{"Property": label, "Value": value} for label, value in values.items()]


@pytest.mark.parametrize(
    ("summary", "first", "hint", "second", "table", "kind"),
    [
        (PRESENT, BATTERY, "use /cx/cv", VAULT, "Cachevault_Info", "capacitor"),
        ({"HwCfg": {"BBU": "Present"}, "Status": {"BBU Status": 32}}, BATTERY, "use /cx/cv", VAULT, "Cachevault_Info", "capacitor"),
        ({"BBU_Info": [{"Model": "X", "State": "Dgd"}]}, BATTERY, "use /cx/cv", VAULT, "Cachevault_Info", "capacitor"),
        ({"Cachevault_Info": [{"Model": "X", "State": "Dgd"}]}, VAULT, "use /cx/bbu", BATTERY, "BBU_Info", "battery"),
        (PRESENT, BATTERY, "use /c0/cv", VAULT, "Cachevault_Info", "capacitor"),
    ],
)
def test_location_suggested_by_the_card_is_queried_next(summary, first, hint, second, table, kind):
    replies = {**script(**summary), first: reported(refused(hint)), second: reported(block({table: properties(Type="CVPM05", State="Charging")}))}
    one = provider(replies=replies)
    reading = one.read()
    assert calls(one)[3:] == [" ".join(first[1:]), " ".join(second[1:])]
    protection = reading.controllers[0].protection
    assert (protection.kind, protection.health, protection.raw) == (kind, "charging", "CVPM05 Charging")
    assert (reading.not_understood, reading.complete, reading.lost) == ((), True, ())


def test_healthy_unit_is_read_at_the_location_suggested_by_the_card():
    replies = {
        **script(**PRESENT),
        BATTERY: reported(refused("use /cx/cv")),
        VAULT: reported(block({"Cachevault_Info": properties(Type="CVPM05", State="Optimal")})),
    }
    protection = provider(replies=replies).read().controllers[0].protection
    assert (protection.kind, protection.health, protection.protects, protection.raw) == ("capacitor", "healthy", True, "CVPM05 Optimal")


def test_mutually_referring_locations_end_the_query():
    replies = {**script(**PRESENT), BATTERY: reported(refused("use /cx/cv")), VAULT: reported(refused("use /cx/bbu"))}
    one = provider(replies=replies)
    reading = one.read()
    assert len(calls(one)) == 5
    assert reading.controllers[0].protection.health == "unknown"
    assert reading.lost == ()


def test_unit_location_is_determined_per_controller():
    summaries = [block({**PRESENT, "Driver Name": "megaraid_sas"}, Controller=number) for number in (0, 1, 2)]
    battery = reported(refused("use /cx/cv"), block({"BBU_Info": properties(Type="BBU", State="Optimal")}, Controller=1), refused("Battery is absent!", 2))
    vault = reported(block({"Cachevault_Info": properties(Type="CVPM05", State="Failed")}), refused("use /cx/bbu", 1), refused("use /cx/bbu", 2))
    nothing = reported(*(block(status="Failure", description="No VD's have been configured.", Controller=number) for number in (0, 1, 2)))
    one = provider(replies={SUMMARY: reported(*summaries), VOLUMES: nothing, DRIVES: nothing, BATTERY: battery, VAULT: vault})
    reading = one.read()
    assert [(unit.kind, unit.health) for unit in (controller.protection for controller in reading.controllers)] == [
        ("capacitor", "failed"),
        ("battery", "healthy"),
        ("battery", "missing"),
    ]
    assert reading.not_understood == ()


@pytest.mark.parametrize(
    "answer",
    [
        reported(refused(UNSUPPORTED)),
        reported(block(status="Failure", description=UNSUPPORTED)),
        reported(block(description=UNSUPPORTED)),
        Reply(f"CLI Version = 007.1616.0000.0000\nOperating system = Linux\nController = 0\nStatus = Failure\nDescription = {UNSUPPORTED}\n\n"),
        Reply(f"{UNSUPPORTED}\n", rc=1),
        reported(refused("Un-supported Command")),
    ],
)
@pytest.mark.parametrize("hint", [True, False])
def test_controller_refusing_to_show_its_unit_is_quoted(answer, hint):
    replies = {**script(**PRESENT), VAULT: answer, BATTERY: reported(refused("use /cx/cv")) if hint else answer}
    reading = provider(replies=replies).read()
    words = UNSUPPORTED if UNSUPPORTED in answer.stdout else "Un-supported Command"
    place = "/call/bbu" if words == UNSUPPORTED and not hint else "/call/cv"
    assert reading.not_understood == (f"{place} show all: controller 0: {words}",)
    assert (reading.controllers[0].protection.health, reading.controllers[0].protection.raw) == ("unknown", words)
    assert (reading.complete, reading.lost) == (True, ())


@pytest.mark.parametrize(("state", "health"), [("Optimal", "healthy"), ("Failed", "failed"), (None, "unknown")])
@pytest.mark.parametrize("message", ["Un-supported command", "Un-supported Command"])
def test_requested_learn_cycle_does_not_fail_the_unit_where_the_battery_command_is_unsupported(message, state, health):
    vault = refused(message) if state is None else block({"Cachevault_Info": properties(Type="CVPM02", State=state)})
    summary = {"HwCfg": {"BBU": "Present"}, "Status": {"Controller Status": "Optimal", "BBU Status": 32}}
    replies = {**script(**summary), BATTERY: reported(block(status="Failure", description=message)), VAULT: reported(vault)}
    reading = provider(replies=replies).read()
    protection = reading.controllers[0].protection
    assert (protection.health, protection.learn_cycle) == (health, "requested")
    assert protection.kind == ("unknown" if state is None else "capacitor")
    assert reading.not_understood == (() if state else (f"/call/cv show all: controller 0: {message}",))


def test_unsupported_setting_raises_with_the_controller_message():
    for answer in (
        block(**{"Detailed Status": [detail("Failed", UNSUPPORTED, 61)]}),
        block(**{"Detailed Status": [detail("Success", UNSUPPORTED, 61)]}),
        block(description=UNSUPPORTED),
        block(status="Failure", description=UNSUPPORTED),
    ):
        assert judged(reported(answer).stdout) == (False, UNSUPPORTED)
    assert judged(f"{UNSUPPORTED}\n", 255) == (False, UNSUPPORTED)
    assert judged(f"Controller = 0\nStatus = Success\nDescription = {UNSUPPORTED}\n\n") == (False, UNSUPPORTED)


@pytest.mark.parametrize("health", ["failed", "missing", "charging", "unknown"])
def test_effective_writethrough_proves_nothing_without_healthy_protection(health):
    fallen = dataclasses.replace(VOLUME, write=Policy("unknown", "writethrough"))
    assert not provider().agrees(dataclasses.replace(CONTROLLER, protection=Protection("battery", health)), fallen, "write", "writethrough")
    assert provider().agrees(CONTROLLER, fallen, "write", "writethrough")
