# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulators of storcli2 and perccli2, held to captures of the real tools and to what is known of their errors."""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import pytest

from ansible_collections.cachefleet.storage.tests.simulators import storcli2_models
from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer, State
from ansible_collections.cachefleet.storage.tests.simulators.storcli2 import PercCli2, StorCli2
from ansible_collections.cachefleet.storage.tests.simulators.storcli2_models import size_text
from ansible_collections.cachefleet.storage.tests.simulators.storcli_print import as_json

#: Values that name one piece of hardware, one host or one moment, or are measured: they differ, all else must be the same.
IDENTITIES = {
    "Operating system",
    "Operating System ",
    "Host Name",
    "SASAddress",
    "SAS Address",
    "Board Tracer Number",
    "Serial Number",
    "SerialNumber",
    "SCSI NAA Id",
    "OS Drive Name",
    "WWN",
    "Inquiry Data",
    "Description@Key Information",
    "Temperature(C)@Drive Detailed Information",
    "Voltage(mV)",
    "Sequence Number",
    "Controller Time(LocalTime yyyy/mm/dd hh:mm:sec)",
    "System Time(LocalTime yyyy/mm/dd hh:mm:sec)",
    "Board Mfg Date(yyyy/mm/dd)",
    "Creation Time(LocalTime yyyy/mm/dd hh:mm:sec)",
    "Model",  # the drives of the captured rack are of several models
}


def state(model: str = "MegaRAID 9660-16i", faults: State | None = None, **options: t.Any) -> State:
    return {"faults": faults or {}, "controllers": [StorCli2.models[model](**options)]}


def ask(given_state: State, *words: str) -> Answer:
    return StorCli2(given_state).answer(words, "")


def only(answer: Answer) -> dict[str, t.Any]:
    (controller,) = json.loads(answer.stdout)["Controllers"]
    return controller


def cache(given_state: State, volume: int = 1) -> tuple[str, str]:
    """(configured, effective)"""
    info = only(ask(given_state, f"/c0/v{volume}", "show", "all", "J"))["Response Data"]["Virtual Drives"][0]["VD Info"]
    return info["DefaultCache"], info["CurrentCache"]


def differences(real: t.Any, ours: t.Any, place: str = "", label: str = "") -> list[str]:
    """Where our answer is not the real one: keys, their order, types, lengths, and values that are not identities."""
    if type(real) is not type(ours):
        return [f"{place}: {type(ours).__name__} instead of {type(real).__name__}"]
    if isinstance(real, dict):
        if list(real) != list(ours):
            return [f"{place}: keys {sorted(set(real) ^ set(ours))} or their order"]
        return [line for key in real for line in differences(real[key], ours[key], f"{place}/{key}", key)]
    if isinstance(real, list):
        if len(real) != len(ours):
            return [f"{place}: {len(ours)} rows instead of {len(real)}"]
        return [line for number, row in enumerate(real) for line in differences(row, ours[number], f"{place}[{number}]", label)]
    section = next((part.partition("[")[0] for part in reversed(place.split("/")[:-1])), "")
    if label in IDENTITIES or f"{label}@{section}" in IDENTITIES:
        if isinstance(real, str) and (real.rstrip() != real) != (ours.rstrip() != ours) and label != "Model":
            return [f"{place}: filled with blanks or not"]
        return []
    return [] if real == ours else [f"{place}: {ours!r} instead of {real!r}"]


def rack() -> State:
    """The state of the captured 9660: 24 drives in two shelves, each a volume of its own."""
    return state(volumes=24, drives=24)


def rack_with_a_free_drive() -> State:
    made = rack()
    (card,) = made["controllers"]
    volume = card["volumes"].pop()
    for drive in card["drives"]:
        if f"{drive['eid']}:{drive['slot']}" in volume["drives"]:
            drive.update(state="UConf", status="Good", group=None)
    return made


def cisco() -> State:
    return state("Cisco Tri-Mode 24G", volumes=1, drives=1)


def renumbered(numbers: dict[int, int]) -> State:
    made = rack()
    for volume in made["controllers"][0]["volumes"]:
        volume["id"] = numbers.get(volume["id"], volume["id"])
    return made


CAPTURES: list[tuple[str, t.Callable[[], State], tuple[str, ...]]] = [
    ("show_9660-16i.json", rack, ("show", "J")),
    ("show_zero-controllers.json", lambda: {"controllers": []}, ("show", "J")),
    ("show_cisco-24g-4gb.json", cisco, ("show", "nolog", "J")),
    ("c0-show_cisco-24g_energy-pack.json", cisco, ("/c0", "show", "nolog", "J")),
    ("c0-show-all_9660-16i.json", rack, ("/c0", "show", "all", "J")),
    ("c0-show-all_9660-16i_ugood.json", rack_with_a_free_drive, ("/c0", "show", "all", "J")),
    ("c5-show_controller-not-found.json", rack, ("/c5", "show", "J")),
    ("c0-vall-show-all_24vd.json", rack, ("/c0/vall", "show", "all", "J")),
    ("c0-v1-show-all.json", rack, ("/c0/v1", "show", "all", "J")),
    ("c0-v999-show_invalid-vd.json", rack, ("/c0/v999", "show", "all", "J")),
    ("c0-eall-sall-show-all_24pd.json", rack, ("/c0/eall/sall", "show", "all", "J")),
    ("c0-e306-s0-show-all.json", rack, ("/c0/e306/s0", "show", "all", "J")),
    ("c0-e320-s11-show-all_ugood.json", rack_with_a_free_drive, ("/c0/e320/s11", "show", "all", "J")),
    ("c0-e306-s99-show_invalid.json", rack, ("/c0/e306/s99", "show", "all", "J")),
    ("c0-v25-set-wrcache-wt_success.json", lambda: renumbered({1: 25}), ("/c0/v25", "set", "wrcache=WT", "J")),
    ("c0-v25-set-rdcache-ra_success.json", lambda: renumbered({1: 25}), ("/c0/v25", "set", "rdcache=RA", "J")),
]


#: Captures of commands that no provider sends and no scenario.
NOT_ASKED = {"c0-show-aso.json", "c0-show-autoconfig.json", "c0-add-vd_fail.json", "c0-v-delete_vd-not-exist.json"}


def capture(corpus: pathlib.Path, name: str) -> str:
    return (corpus / "storcli2" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "make", "words"), CAPTURES, ids=[name for name, _make, _words in CAPTURES])
def test_output_matches_the_capture(shared_corpus, name, make, words):
    real = capture(shared_corpus, name)
    ours = ask(make(), *words).stdout
    assert differences(json.loads(real), json.loads(ours)) == []
    if "cisco" not in name:  # those two were reformatted by who published them
        assert ours[-4:] == real[-4:]


def test_every_capture_is_used(shared_corpus):
    known = {name for name, _make, _words in CAPTURES} | {"set-jbod_fail.txt", *NOT_ASKED}
    assert {path.name for path in (shared_corpus / "storcli2").iterdir()} == known


@pytest.mark.parametrize("name", [name for name, _make, _words in CAPTURES if "cisco" not in name])
def test_json_matches_the_tool_byte_for_byte(shared_corpus, name):
    real = capture(shared_corpus, name)
    assert as_json(json.loads(real)["Controllers"], empty="[]", blank=real.endswith("\n\n")) == real


def test_renamed_label_is_detected(shared_corpus):
    real = json.loads(capture(shared_corpus, "c0-v1-show-all.json"))
    ours = json.loads(ask(rack(), "/c0/v1", "show", "all", "J").stdout)
    changed = copy.deepcopy(ours)
    info = changed["Controllers"][0]["Response Data"]["Virtual Drives"][0]["VD Info"]
    info["Currentcache"] = info.pop("CurrentCache")
    assert differences(real, ours) == []
    assert differences(real, changed) != []


def test_syntax_error_is_plain_text_as_captured(shared_corpus):
    real = capture(shared_corpus, "set-jbod_fail.txt")
    made = rack()
    made["operating_system"] = real.splitlines()[1].removeprefix("Operating system = ")
    assert ask(made, "/c0/e306/s0", "delete", "jbod", "J").stdout == real


def test_combined_set_is_a_syntax_error_and_changes_nothing():
    made = state()
    before = copy.deepcopy(made)
    answer = ask(made, "/c0/v1", "set", "rdcache=RA", "wrcache=WT", "J")
    assert answer.stdout.endswith("Status = Failure\nDescription = syntax error, unexpected TOKEN_WRITE_CACHE, expecting $end\n\n")
    assert answer.rc != 0
    assert made == before


@pytest.mark.parametrize("word", ["wrcache=FAST", "rdcache=ADRA", "iopolicy=Direct", "pdcache=", "ssdcaching=on", "wrcache"])
def test_unknown_keywords_are_syntax_errors(word):
    made = state()
    before = copy.deepcopy(made)
    assert "Description = syntax error, unexpected" in ask(made, "/c0/v1", "set", word, "J").stdout
    assert made == before


@pytest.mark.parametrize(
    ("word", "title", "value", "configured"),
    [
        ("wrcache=WT", "Write Cache Policy", "WT", "NR,WT"),
        ("wrcache=awb", "Write Cache Policy", "AWB", "NR,AWB"),
        ("wrcache=wb", "Write Cache Policy", "WB", "NR,WB"),
        ("rdcache=ra", "Read Cache Policy", "RA", "RA,WB"),
        ("rdcache=nora", "Read Cache Policy", "NoRA", "NR,WB"),
    ],
)
def test_policy_is_set_and_read_back(word, title, value, configured):
    made = state()
    answer = ask(made, "/c0/v1", "set", word, "nolog", "J")
    status = only(answer)["Command Status"]
    assert answer.rc == 0
    assert (status["Status"], status["Description"]) == ("Success", "None")
    assert status["Detailed Status"] == [{"VD": 1, "Property": title, "Value": value, "Status": "Success", "ErrType": "-", "ErrCd": "-", "ErrMsg": "-"}]
    assert cache(made) == (configured, configured)
    assert cache(made, 2) == ("NR,WB", "NR,WB")


@pytest.mark.parametrize(
    ("word", "policy", "short", "drive"), [("On", "Enabled", "enbl", "On"), ("Off", "Disabled", "dsbl", "Off"), ("Default", "Default", "dflt", "On")]
)
def test_drive_cache_appears_at_three_locations(word, policy, short, drive):
    made = state(volumes=1, drives=2)
    ask(made, "/c0/v1", "set", f"pdcache={word}", "J")
    properties = only(ask(made, "/c0/v1", "show", "all", "J"))["Response Data"]["Virtual Drives"][0]["VD Properties"]
    assert properties["Drive Write Cache Policy"] == policy
    assert {row["PDC"] for row in only(ask(made, "/c0", "show", "J"))["Response Data"]["TOPOLOGY"]} == {short}
    drives = only(ask(made, "/c0/eall/sall", "show", "all", "J"))["Response Data"]["Drives List"]
    assert {entry["Drive Detailed Information"]["LU/NS Properties"]["Current Write Cache"] for entry in drives} == {drive}


def test_all_volumes_are_set_by_one_command():
    made = state(volumes=4)
    rows = only(ask(made, "/call/vall", "set", "wrcache=WT", "J"))["Command Status"]["Detailed Status"]
    assert [row["VD"] for row in rows] == [1, 2, 3, 4]
    ask(made, "/c0", "/v3", "set", "wrcache=AWB", "J")
    assert [cache(made, number)[0] for number in (1, 2, 3, 4)] == ["NR,WT", "NR,WT", "NR,AWB", "NR,WT"]


@pytest.mark.parametrize(
    ("fault", "word"), [("battery_failed", "Critical"), ("capacitor_charging", "Charging"), ("learn_cycle", "Learning"), ("pack_missing", "Missing")]
)
def test_writeback_falls_back_to_writethrough_without_healthy_energy_pack(fault, word):
    made = state(volumes=3, faults={fault: True})
    ask(made, "/c0/v2", "set", "wrcache=AWB", "J")
    assert cache(made, 1) == ("NR,WB", "NR,WT")
    assert cache(made, 2) == ("NR,AWB", "NR,AWB")
    shown = only(ask(made, "/c0", "show", "all", "J"))["Response Data"]
    packs = [row["Status"] for row in shown.get("Energy Pack Info", [])]
    assert packs == ([] if fault == "pack_missing" else [word])
    assert shown["HwCfg"]["Energy Pack"] == ("Absent" if fault == "pack_missing" else "Present")
    assert shown["Status"]["Controller Status"] == "Need Attention"
    assert only(ask(made, "show", "J"))["Response Data"]["System Overview"][0]["EPack"] == word
    del made["faults"][fault]
    assert cache(made, 1) == ("NR,WB", "NR,WB")
    assert only(ask(made, "/c0", "show", "J"))["Response Data"]["Energy Pack Info"][0]["Status"] == "Optimal"


@pytest.mark.parametrize("fault", [True, ["wrcache"], "wrcache"])
def test_refused_policy_exits_with_status_0_and_fails_in_json(fault):
    made = state(faults={"refused_policy": fault})
    answer = ask(made, "/c0/v1", "set", "wrcache=WT", "J")
    status = only(answer)["Command Status"]
    assert answer.rc == 0
    assert status["Status"] == "Failure"
    assert status["Detailed Status"][0]["Status"] == "Failed"
    assert isinstance(status["Detailed Status"][0]["ErrCd"], int)
    assert cache(made) == ("NR,WB", "NR,WB")
    ask(made, "/c0/v1", "set", "rdcache=RA", "J")
    assert cache(made)[0] == ("NR,WB" if fault is True else "RA,WB")


def test_ignored_policy_succeeds_and_changes_nothing():
    made = state(faults={"ignored_policy": True})
    assert only(ask(made, "/c0/v1", "set", "wrcache=WT", "J"))["Command Status"]["Status"] == "Success"
    assert cache(made) == ("NR,WB", "NR,WB")


def test_legacy_syntax_fault_is_plain_text_despite_json_option():
    made = state(faults={"plain_text_error": True})
    answer = ask(made, "/c0/v1", "set", "wrcache=WT", "J")
    assert answer.stdout.startswith("CLI Version = 008.")
    assert "syntax error" in answer.stdout
    assert cache(made) == ("NR,WB", "NR,WB")


def test_hba_mode_hides_the_volumes():
    made = state(faults={"hba_mode": True})
    shown = only(ask(made, "/c0", "show", "all", "J"))["Response Data"]
    assert "VD LIST" not in shown
    assert shown["Status"]["Controller Personality"] == "HBA"
    assert {row["State"] for row in shown["PD LIST"]} == {"JBOD"}
    status = only(ask(made, "/c0/vall", "show", "all", "J"))["Command Status"]
    assert (status["Status"], status["Description"]) == ("Success", "No VD's have been configured.")
    assert only(ask(made, "/c0/v1", "set", "wrcache=WT", "J"))["Command Status"]["Status"] == "Failure"
    made["faults"].clear()
    assert cache(made) == ("NR,WB", "NR,WB")


def test_overview_of_newer_tool_exits_with_status_6():
    assert ask(cisco(), "show", "J").rc == 6
    assert ask(cisco(), "/c0", "show", "J").rc == 0
    assert ask(state(), "show", "J").rc == 0
    assert ask(state(faults={"show_exits_6": True}), "show", "J").rc == 6


def test_only_missing_drive_exits_with_nonzero_status():
    assert ask(state(), "/c0/e306/s99", "show", "all", "J").rc != 0
    assert ask(state(), "/c0/v999", "show", "all", "J").rc == 0
    assert ask(state(), "/c5", "show", "J").rc == 0


def test_all_controllers_are_one_list_and_none_is_a_failure():
    made = state()
    made["controllers"].append(StorCli2.models["PERC H965i"]())
    answers = json.loads(ask(made, "/call", "show", "all", "J").stdout)["Controllers"]
    assert [answer["Command Status"]["Controller"] for answer in answers] == ["0", "1"]
    nothing = only(ask({"controllers": []}, "/call", "show", "J"))
    assert nothing["Command Status"]["Description"] == "No Controller found"
    assert "Response Data" not in nothing


@pytest.mark.parametrize(
    ("size", "text"), [(10000294477824, "9.094 TiB"), (958999298048, "893.137 GiB"), (2**30, "1.000 GiB"), (1536, "1.500 KiB"), (7, "7 B")]
)
def test_sizes_are_truncated_like_the_tool(size, text):
    assert size_text(size) == text


def test_perccli2_is_the_same_tool_under_another_name():
    assert PercCli2.name == "perccli2"
    assert PercCli2.paths[0].endswith("/perccli2")
    made = {"controllers": [storcli2_models.perc_h965i()]}
    assert only(PercCli2(made).answer(["show", "J"], ""))["Response Data"]["System Overview"][0]["Product Name"] == "PERC H965i Front"
