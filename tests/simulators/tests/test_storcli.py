# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulated storcli and perccli by themselves: what is set, what is effective, what is refused, and how."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.tests.simulators.storcli import PercCli, StorCli

RAID_MODELS = [(StorCli, name) for name in StorCli.models if not name.startswith(("HBA", "LSI3008"))] + [(PercCli, name) for name in PercCli.models]
HBA_MODELS = [(StorCli, name) for name in StorCli.models if name.startswith("HBA")]
EVERY_MODEL = RAID_MODELS + HBA_MODELS


def tool(kind: type[StorCli], *models: str, faults: dict[str, t.Any] | None = None, **options: t.Any) -> StorCli:
    """A tool with these controllers."""
    return kind({"faults": faults or {}, "controllers": [kind.models[model](index=index, **options) for index, model in enumerate(models)]})


def ask(cli: StorCli, words: str) -> tuple[list[dict[str, t.Any]], int]:
    """The blocks of a JSON answer, and the exit status."""
    answer = cli.answer([*words.split(), "J"], "")
    return json.loads(answer.stdout)["Controllers"], answer.rc


def only(cli: StorCli, words: str) -> dict[str, t.Any]:
    answered, _status = ask(cli, words)
    assert len(answered) == 1
    return answered[0]


def policies(cli: StorCli, volume: int = 0) -> tuple[str, str, str]:
    """Cache column, configured write policy and disk cache policy of a volume."""
    response = only(cli, f"/c0/v{volume} show all")["Response Data"]
    properties = response[f"VD{volume} Properties"]
    return response[f"/c0/v{volume}"][0]["Cache"], properties["Write Cache(initial setting)"], properties["Disk Cache Policy"]


def test_both_names_are_one_tool_with_own_paths_and_models():
    assert (StorCli.name, PercCli.name) == ("storcli", "perccli")
    assert StorCli.paths[0] == "/opt/MegaRAID/storcli/storcli64"
    assert PercCli.paths[0] == "/opt/MegaRAID/perccli/perccli64"
    assert set(StorCli.models).isdisjoint(PercCli.models)
    assert "PercCli SAS Customization Utility" in tool(PercCli, "PERC H755").answer(["bogus"], "").stdout


@pytest.mark.parametrize("policy", ["WT", "WB", "AWB"])
@pytest.mark.parametrize("read", ["RA", "NoRA"])
@pytest.mark.parametrize("io", ["Cached", "Direct"])
def test_combined_policies_appear_in_the_cache_column(policy, read, io):
    cli = tool(StorCli, "MegaRAID 9361-8i")
    status = only(cli, f"/c0/v0 set wrcache={policy} rdcache={read} iopolicy={io}")["Command Status"]
    assert status["Status"] == "Success"
    assert [row["Property"] for row in status["Detailed Status"]] == ["wrCache", "rdCache", "IoPolicy"]
    assert policies(cli)[0] == ("R" if read == "RA" else "NR") + policy + io[0]
    assert policies(cli, 1)[0] == "RWBD"


@pytest.mark.parametrize(("word", "printed", "topology"), [("on", "Enabled", "enbl"), ("off", "Disabled", "dsbl"), ("default", "Disk's Default", "dflt")])
def test_drive_cache_appears_at_all_locations(word, printed, topology):
    cli = tool(StorCli, "MegaRAID 9560-8i")
    only(cli, f"/c0/v239 set pdcache={word}")
    assert policies(cli, 239)[2] == printed
    rows = only(cli, "/c0 show")["Response Data"]["TOPOLOGY"]
    assert {row["PDC"] for row in rows if row["DG"] == 0} == {topology}
    assert {row["PDC"] for row in rows if row["DG"] == 1} == {"dflt"}
    drive = only(cli, "/c0/e251/s1 show all")["Response Data"]["Drive /c0/e251/s1 - Detailed Information"]["Drive /c0/e251/s1 Device attributes"]
    assert drive["Write Cache"] == ("Disabled" if word == "default" else printed)


@pytest.mark.parametrize(
    ("target", "changed"),
    [("v1", [1]), ("vall", [0, 1, 2, 3, 4])],
)
def test_one_volume_or_all_are_set(target, changed):
    cli = tool(StorCli, "MegaRAID 9361-8i", volumes=5)
    rows = only(cli, f"/c0/{target} set wrcache=WT")["Command Status"]["Detailed Status"]
    assert [row["VD"] for row in rows] == changed
    caches = {row["DG/VD"]: row["Cache"] for row in only(cli, "/c0/vall show")["Response Data"]["Virtual Drives"]}
    assert [number for number in range(5) if caches[f"{number}/{number}"] == "RWTD"] == changed


@pytest.mark.parametrize(
    ("fault", "overview", "bits", "word"),
    [
        ("battery_failed", "Fld", 1024, "Failed"),
        ("battery_degraded", "Dgd", 32, "Degraded(Need Attention)"),
        ("learn_cycle", "Unkwn", 64, "Learning"),
        ("capacitor_charging", "Chrg", 8, "Charging"),
    ],
)
def test_cachevault_state_appears_at_all_locations(fault, overview, bits, word):
    cli = tool(StorCli, "MegaRAID 9361-8i", faults={fault: True})
    assert only(cli, "show")["Response Data"]["System Overview"][0]["BBU"] == overview
    full = only(cli, "/c0 show all")["Response Data"]
    assert full["Status"]["BBU Status"] == bits
    assert full["Cachevault_Info"][0]["State"] == word
    told = {row["Property"]: row["Value"] for row in only(cli, "/c0/cv show all")["Response Data"]["Cachevault_Info"]}
    assert told["State"] == word
    attention = fault in ("battery_failed", "battery_degraded")
    assert full["Status"]["Controller Status"] == ("Needs Attention" if attention else "Optimal")


def test_battery_in_learn_cycle():
    cli = tool(StorCli, "ServeRAID M5015", faults={"learn_cycle": True})
    response = only(cli, "/c0/bbu show all")["Response Data"]
    assert list(response) == ["BBU_Info", "BBU_Firmware_Status", "GasGaugeStatus", "BBU_Capacity_Info", "BBU_Design_Info", "BBU_Properties"]
    firmware = {row["Property"]: row["Value"] for row in response["BBU_Firmware_Status"]}
    assert (firmware["Learn Cycle Active"], firmware["Charging Status"]) == ("Yes", "Discharging")
    assert only(cli, "/c0 show all")["Response Data"]["BBU_Info"][0]["State"] == "Unknown"


@pytest.mark.parametrize(
    ("kind", "model", "faults", "words", "message", "code"),
    [
        (StorCli, "MegaRAID 9361-8i", {}, "/c0/bbu show all", "use /cx/cv", 255),
        (PercCli, "PERC H755", {}, "/c0/cv show all", "use /cx/bbu", 255),
        (StorCli, "HPE MR216i-a", {}, "/c0/bbu show all", "Battery is absent!", 34),
        (PercCli, "PERC H755", {"battery_missing": True}, "/c0/bbu show", "Battery is absent!", 34),
    ],
)
def test_wrong_protection_query_fails(kind, model, faults, words, message, code):
    answered, status = ask(tool(kind, model, faults=faults), words)
    command = answered[0]["Command Status"]
    assert (command["Status"], command["Description"]) == ("Failure", "None")
    assert command["Detailed Status"] == [{"Ctrl": 0, "Status": "Failed", "Property": "-", "ErrMsg": message, "ErrCd": code}]
    assert "Response Data" not in answered[0]
    assert status == code


def test_battery_properties_match_public_parsers():
    """There is no capture of them; these are the names that public programs look for, and the form of their values."""
    response = only(tool(StorCli, "ServeRAID M5015"), "/c0/bbu show all")["Response Data"]
    told = {title: {row["Property"]: row["Value"] for row in rows} for title, rows in response.items()}
    assert told["BBU_Info"]["Battery State"] == "Optimal"
    assert told["BBU_Info"]["Type"] == "iBBU08"
    assert [told["BBU_Info"][name].split()[1] for name in ("Voltage", "Current", "Temperature")] == ["mV", "mA", "C"]
    assert {told["BBU_Firmware_Status"][name] for name in ("Battery Pack Missing", "Replacement required", "Remaining Capacity Low", "Learn Cycle Active")} == {
        "No"
    }
    assert told["BBU_Firmware_Status"]["Pack is about to fail & should be replaced"] == "No"
    assert told["BBU_Capacity_Info"]["Relative State of Charge"] == "96%"
    assert {"Absolute State of charge", "Remaining Capacity", "Full Charge Capacity", "Average time to empty", "Run time to empty"} <= set(
        told["BBU_Capacity_Info"]
    )
    design = ("Date of Manufacture", "Serial Number", "Manufacture Name", "Design Capacity", "Design Voltage", "Device Chemistry")
    assert set(design) <= set(told["BBU_Design_Info"])
    assert {"Auto Learn Period", "Next Learn time", "Learn Delay Interval", "Auto-Learn Mode"} == set(told["BBU_Properties"])


def test_charging_battery_reaches_full_charge():
    cli = tool(StorCli, "ServeRAID M5015", faults={"capacitor_charging": True})
    response = only(cli, "/c0/bbu show all")["Response Data"]
    told = {row["Property"]: row["Value"] for rows in response.values() for row in rows}
    assert (told["Charging Status"], told["Battery State"], told["Relative State of Charge"], told["Fully Charged"]) == ("Charging", "Charging", "40%", "No")


def test_removed_battery():
    cli = tool(PercCli, "PERC H740P")
    assert only(cli, "/c0 show all")["Response Data"]["HwCfg"]["BBU"] == "Present"
    cli.state["faults"] = {"battery_missing": True}
    full = only(cli, "/c0 show all")["Response Data"]
    assert full["HwCfg"]["BBU"] == "Absent"
    assert full["Status"]["BBU Status"] == 1
    assert "BBU_Info" not in full
    assert only(cli, "show")["Response Data"]["System Overview"][0]["BBU"] == "Msng"


def test_cacheless_card_has_no_failed_battery():
    cli = tool(StorCli, "HPE MR216i-a")
    full = only(cli, "/c0 show all")["Response Data"]
    assert full["Status"]["Energy Pack Status"] == "NA"
    assert full["HwCfg"]["Energy Pack"] == "Absent"
    assert {row["Cache"] for row in full["VD LIST"]} == {"NRWTD"}
    assert only(cli, "show")["Response Data"]["System Overview"][0]["BBU"] == "N/A"
    rows = only(cli, "/c0/v239 set wrcache=WB")["Command Status"]["Detailed Status"]
    assert [(row["Status"], row["ErrCd"]) for row in rows] == [("Failed", 151)]
    assert only(cli, "/c0/v239 set wrcache=WT")["Command Status"]["Status"] == "Success"


def test_drive_cache_on_ssds_is_refused_with_exit_status_0():
    cli = tool(StorCli, "MegaRAID 9361-8i", media="mixed")
    answered, status = ask(cli, "/c0/vall set pdcache=on wrcache=WT")
    command = answered[0]["Command Status"]
    assert (status, command["Status"]) == (0, "Failure")
    failed = [row for row in command["Detailed Status"] if row["Status"] == "Failed"]
    assert failed == [{"VD": 0, "Property": "PdCac", "Value": "On", "Status": "Failed", "ErrCd": 255, "ErrMsg": "SSD Pd is present"}]
    assert policies(cli, 0) == ("RWTD", "WriteThrough", "Disk's Default")
    assert policies(cli, 1) == ("RWTD", "WriteThrough", "Enabled")
    assert only(cli, "/c0 show all")["Response Data"]["Supported Adapter Operations"]["Block SSD Write Disk Cache Change"] == "Yes"


@pytest.mark.parametrize("model", ["MegaRAID 9560-8i", "ServeRAID M5015"])
def test_other_cards_allow_drive_cache_changes_on_ssds(model):
    cli = tool(StorCli, model, media="SSD")
    assert only(cli, "/c0/vall set pdcache=off")["Command Status"]["Status"] == "Success"


def test_refused_policy_exits_with_status_0_and_changes_nothing():
    cli = tool(StorCli, "MegaRAID 9361-8i", faults={"refused_policy": {"properties": ["wrcache"], "volumes": [1]}})
    answered, status = ask(cli, "/c0/vall set wrcache=WT rdcache=NoRA")
    command = answered[0]["Command Status"]
    assert (status, command["Status"], command["Description"]) == (0, "Failure", "None")
    assert [(row["VD"], row["Property"]) for row in command["Detailed Status"] if row["Status"] == "Failed"] == [(1, "wrCache")]
    assert (policies(cli, 0)[0], policies(cli, 1)[0]) == ("NRWTD", "NRWBD")


def test_silent_refusal_reports_success():
    cli = tool(StorCli, "MegaRAID 9361-8i", faults={"refused_policy": {"silent": True}})
    answered, status = ask(cli, "/c0/v0 set wrcache=WT")
    assert (status, answered[0]["Command Status"]["Status"]) == (0, "Success")
    assert answered[0]["Command Status"]["Detailed Status"][0]["ErrMsg"] == "-"
    assert policies(cli)[1] == "WriteBack"


def test_plain_text_error_despite_json_option():
    cli = tool(StorCli, "MegaRAID 9361-8i", faults={"plain_text_error": {"verb": "set"}})
    answer = cli.answer(["/c0/v0", "set", "wrcache=WT", "J"], "")
    assert answer.stdout.startswith("syntax error, unexpected TOKEN_UNKNOWN")
    assert answer.rc == 255
    assert policies(cli)[1] == "WriteBack"
    cli.state["faults"] = {"plain_text_error": True}
    assert cli.answer(["show", "nolog", "J"], "").stdout.startswith("syntax error")


@pytest.mark.parametrize(
    "words",
    ["bogus", "/c0", "/c0/v0", "/cx show", "/c0/v show", "/c0 show bogus", "/c0/v0 set", "/c0/v0 set wrcache=fast", "/c0/v0 set wrcache", "/c0/v0 set pd=on",
     "/c0 set jbodwritecache=auto", "/c0 set cacheflushint=8", "show J all", "/c0/v0 show J all", "/c0/v0/v1 show", "/c0/eall show", "/c0/v0 delete"],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [[], ["J"], ["nolog", "J"]])
def test_unknown_arguments_are_a_plain_text_syntax_error(words, suffix):
    cli = tool(StorCli, "MegaRAID 9361-8i")
    before = json.dumps(cli.state)
    answer = cli.answer([*words.split(), *suffix], "")
    assert answer.stdout.startswith("syntax error, unexpected ")
    assert answer.rc == 255
    assert "StorCli SAS Customization Utility" in answer.stdout
    assert json.dumps(cli.state) == before


@pytest.mark.parametrize("words", ["nolog show J", "show nolog J", "SHOW J", "show j"])
def test_nolog_and_letter_case_are_ignored(words):
    cli = tool(StorCli, "MegaRAID 9361-8i")
    assert cli.answer(words.split(), "").stdout == cli.answer(["show", "J"], "").stdout


def test_path_may_be_split_into_arguments():
    cli = tool(StorCli, "MegaRAID 9361-8i")
    assert cli.answer(["/c0", "/eall", "/sall", "show", "J"], "") == cli.answer(["/c0/eall/sall", "show", "J"], "")
    assert cli.answer(["/cALL/vALL", "show", "J"], "") == cli.answer(["/c0/vall", "show", "J"], "")


def test_call_returns_one_element_per_controller():
    cli = tool(StorCli, "MegaRAID 9361-8i", "HBA 9400-16i", "MegaRAID 9560-8i")
    answered, status = ask(cli, "/call/vall show all")
    assert [(row["Command Status"]["Controller"], row["Command Status"]["Status"]) for row in answered] == [(0, "Success"), (1, "Failure"), (2, "Success")]
    assert answered[1]["Command Status"]["Description"] == "Un-supported command"
    assert status != 0
    overview = only(cli, "show")["Response Data"]
    assert [row["Ctl"] for row in overview["System Overview"]] == [0, 2]
    assert [row["Ctl"] for row in overview["IT System Overview"]] == [1]
    assert len({row["Response Data"]["Serial Number"] for row in (only(cli, "/c0 show"), only(cli, "/c2 show"))}) == 2


def test_fault_can_apply_to_one_controller():
    cli = tool(StorCli, "MegaRAID 9361-8i", "MegaRAID 9361-8i", faults={"battery_failed": {"controllers": [1]}})
    assert [row["BBU"] for row in only(cli, "show")["Response Data"]["System Overview"]] == ["Opt", "Fld"]


@pytest.mark.parametrize("verb", ["show", "show all", "set wrcache=WT"])
def test_invalid_volume(verb):
    answered, status = ask(tool(StorCli, "MegaRAID 9361-8i"), f"/c0/v99 {verb}")
    command = answered[0]["Command Status"]
    assert (command["Status"], command["Description"]) == ("Failure", "None")
    assert command["Detailed Status"] == [{"VD": 99, "Status": "Failed", "ErrCd": 255, "ErrMsg": "Invalid VD number"}]
    assert status == 255


def test_missing_controller():
    cli = tool(StorCli, "MegaRAID 9361-8i")
    answered, status = ask(cli, "/c5 show")
    assert answered[0]["Command Status"]["Description"] == "Controller 5 not found"
    assert status == 1
    cli.state["faults"] = {"no_controller": True}
    answered, status = ask(cli, "/call show")
    assert answered[0]["Command Status"]["Description"] == "No Controller found"
    assert "Controller" not in answered[0]["Command Status"]
    overview, status = ask(cli, "show")
    assert (overview[0]["Command Status"]["Status"], overview[0]["Response Data"]["Number of Controllers"], status) == ("Success", 0, 0)


@pytest.mark.parametrize(("kind", "model"), RAID_MODELS)
def test_hba_mode_hides_the_volumes(kind, model):
    cli = tool(kind, model)
    before = only(cli, "/c0/vall show")["Response Data"]
    cli.state["faults"] = {"hba_mode": True}
    command = only(cli, "/c0/vall show all")["Command Status"]
    assert (command["Status"], command["Description"]) == ("Success", "No VD's have been configured.")
    full = only(cli, "/c0 show all")["Response Data"]
    assert "VD LIST" not in full
    assert {row["State"] for row in full["JBOD LIST"]} == {"JBOD"}
    assert full["Status"].get("Current Personality", "HBA-Mode ") == "HBA-Mode "
    cli.state["faults"] = {}
    assert only(cli, "/c0/vall show")["Response Data"] == before


@pytest.mark.parametrize(("kind", "model"), HBA_MODELS)
def test_hba_has_no_cache_settings(kind, model):
    cli = tool(kind, model)
    for words in ("/c0/vall show all", "/c0/v0 set wrcache=WB", "/c0/bbu show all", "/c0/cv show all", "/c0 set jbodwritecache=on", "/c0 show jbodwritecache"):
        command = only(cli, words)["Command Status"]
        assert command["Status"] == "Failure"
        assert command["Description"].lower() == "un-supported command"
    assert "VD LIST" not in only(cli, "/c0 show all")["Response Data"]
    assert only(cli, "/c0 show all")["Response Data"]["Status"]["Controller Status"] == "OK"


def test_offline_volumes_are_refused():
    cli = tool(StorCli, "MegaRAID 9361-8i", faults={"vd_offline": {"volumes": [0]}})
    assert only(cli, "/c0/v0 show")["Response Data"]["Virtual Drives"][0]["State"] == "OfLn"
    assert only(cli, "/c0/v0 set wrcache=WT")["Command Status"]["Detailed Status"][0]["ErrCd"] == 50
    row = only(cli, "show")["Response Data"]["System Overview"][0]
    assert (row["VNOpt"], row["DNOpt"], row["Hlth"]) == (1, 1, "Dgd")


@pytest.mark.parametrize(("word", "printed"), [("off", "OFF"), ("default", "Default")])
def test_cache_of_drives_without_raid_is_one_setting(word, printed):
    cli = tool(StorCli, "MegaRAID 9361-8i", jbod_write_cache=True)
    told = only(cli, f"/c0 set jbodwritecache={word}")["Response Data"]["Controller Properties"]
    assert told == only(cli, "/c0 show jbodwritecache")["Response Data"]["Controller Properties"] == [{"Ctrl_Prop": "JBOD Write Cache", "Value": printed}]


def test_jbod_drive_cache_is_refused_if_unsupported():
    cli = tool(StorCli, "MegaRAID 9361-8i")
    assert only(cli, "/c0 show all")["Response Data"]["Supported Adapter Operations"]["Support JBOD Write cache"] == "No"
    assert only(cli, "/c0 set jbodwritecache=on")["Command Status"]["Status"] == "Failure"
    assert only(cli, "/c0 show jbodwritecache")["Command Status"]["Status"] == "Failure"


def test_cached_io_is_unsupported_on_newer_cards():
    cli = tool(StorCli, "MegaRAID 9560-8i")
    assert only(cli, "/c0/v239 set iopolicy=Cached")["Command Status"]["Detailed Status"][0]["ErrCd"] == 151
    assert only(cli, "/c0/v239 set iopolicy=Direct")["Command Status"]["Status"] == "Success"


def test_more_volumes_than_drives_share_a_drive_group():
    cli = tool(StorCli, "MegaRAID 9361-8i", volumes=4, drives=2)
    rows = only(cli, "/c0/vall show")["Response Data"]["Virtual Drives"]
    assert [row["DG/VD"] for row in rows] == ["0/0", "1/1", "0/2", "1/3"]


def test_missing_drive():
    command = only(tool(StorCli, "MegaRAID 9361-8i"), "/c0/e252/s77 show")["Command Status"]
    assert command["Detailed Status"] == [{"Drive": "/c0/e252/s77", "Status": "Failure", "ErrCd": 255, "ErrMsg": "Drive not found"}]
