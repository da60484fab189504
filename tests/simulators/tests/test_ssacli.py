# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulator of ssacli, held to captures of the real tool and to its published errors."""

from __future__ import annotations

import copy
import pathlib
import re
import typing as t

import pytest

from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer, State
from ansible_collections.cachefleet.storage.tests.simulators.ssacli import SsaCli
from ansible_collections.cachefleet.storage.tests.simulators.ssacli_models import MODELS
from ansible_collections.cachefleet.storage.tests.simulators.ssacli_text import size_text

GEN10 = "HPE Smart Array P408i-a SR Gen10"
P816I = "HPE Smart Array P816i-a SR Gen10"
OLD = "Smart Array P440ar"

#: Labels whose values name a piece of hardware or are measured: only that there is a value is compared.
IDENTITIES = (
    "Serial Number|Cache Serial Number|Host Serial Number|SAS Address|WWN Port|WWID|Unique Identifier|Logical Drive Label|Disk Name|Mount Points|"
    "Drive Unique ID|Primary Boot Volume|Secondary Boot Volume|Current Temperature \\(C\\)|Maximum Temperature \\(C\\)|Firmware Revision|Model|"
    "Usage remaining|Power On Hours|PHY Transfer Rate|Rotational Speed"
)
_IDENTITY = re.compile(rf"^(\s+(?:{IDENTITIES}):) ?\S.*$")


def state(model: str = GEN10, faults: State | None = None, **options: t.Any) -> State:
    return {"faults": faults or {}, "controllers": [MODELS[model](**options)]}


def ask(given_state: State, line: str) -> Answer:
    return SsaCli(given_state).answer(line.split(), "")


def value(given_state: State, label: str, line: str = "ctrl slot=0 show detail") -> str | None:
    found = re.search(rf"^ +{re.escape(label)}: +(.*?) *$", ask(given_state, line).stdout, re.MULTILINE)
    return found.group(1) if found else None


def volume(given_state: State, label: str, number: int = 1) -> str | None:
    return value(given_state, label, f"ctrl slot=0 ld {number} show detail")


def shape(text: str) -> list[str]:
    """The lines of an output with its identities struck out; who published the captures cut blanks at ends of lines and files."""
    return [_IDENTITY.sub(r"\1 …", line).rstrip() for line in text.strip("\n").splitlines()]


def captured_p408i() -> State:
    made = state(no_battery_write_cache=True)
    card = made["controllers"][0]
    card["drive_write_cache"]["configured"] = "Enable"
    card["volumes"][0] |= {"mounts": "/", "partitions": ["Partition   2: Basic, 1.7 TiB, /", "Partition   1: Basic, 512 MiB, /boot/efi"]}
    for drive in card["drives"][:3]:
        drive["lines"]["Estimated Life Remaining based on workload to date"] = "92013 days"
    card["drives"][2]["lines"]["Estimated Life Remaining based on workload to date"] = "57973 days"
    return made


def captured_p410i() -> State:
    made = state("Smart Array P410i")
    first, second = made["controllers"][0]["volumes"]
    first |= {"mounts": "/boot", "boot": "Primary"}
    second |= {"mounts": "/srv", "label": ""}
    return made


def captured_p440ar() -> State:
    made = state(OLD, no_battery_write_cache=True)
    card = made["controllers"][0]
    card["drive_write_cache"]["all"] = "Enabled"
    card["volumes"][0] |= {"mounts": "/", "boot": "primary"}
    card["volumes"][1] |= {"mounts": "/data", "boot": "secondary"}
    return made


def captured_p400i() -> State:
    made = state("Smart Array P400i", {"battery_failed": True})
    made["controllers"][0]["volumes"][0]["mounts"] = "/boot"
    return made


def captured_p816i() -> State:
    made = state(P816I)
    partitions = ["Partition   2: Basic, 1024 MiB, /boot", "Partition   1: Basic, 600 MiB, /boot/efi"]
    made["controllers"][0]["volumes"][0] |= {"mounts": "/boot", "partitions": partitions}
    return made


CAPTURES: list[tuple[str, t.Callable[[], State], str, int]] = [
    ("netdata_ssacli-P408i-a.txt", captured_p408i, "ctrl all show config detail", 0),
    ("netdata_ssacli-P212_P410i.txt", captured_p410i, "ctrl slot=0 show config detail", 1),
    ("netdata_ssacli-P400ar.txt", captured_p440ar, "ctrl all show config detail", 0),
    ("netdata_ssacli-P400i-unassigned.txt", captured_p400i, "ctrl all show config detail", 0),
    ("scality_ctrl-slot0-show-detail.txt", captured_p816i, "ctrl slot=0 show detail", 0),
    ("scality_ld-all-show-detail.txt", captured_p816i, "ctrl slot=0 ld all show detail", 0),
]


def capture(corpus: pathlib.Path, name: str, part: int) -> str:
    """One controller of a capture; two lines of the one of the P440ar were damaged by who published it."""
    text = (corpus / "ssacli" / name).read_text(encoding="utf-8")
    text = text.replace("SATA NCQ En      physicaldriveabled", "SATA NCQ Enabled").replace("Serial Number:REDACTED", "Serial Number: REDACTED")
    return re.split(r"(?m)^(?=\S.* in Slot [0-9])", text)[1:][part]


@pytest.mark.parametrize(("name", "make", "line", "part"), CAPTURES, ids=[name for name, *_rest in CAPTURES])
def test_output_matches_the_capture(shared_corpus, name, make, line, part):
    assert shape(ask(make(), line).stdout) == shape(capture(shared_corpus, name, part))


@pytest.mark.parametrize("name", ["scality_ctrl-slot0-show-detail.txt", "scality_ld-all-show-detail.txt"])
def test_whitespace_matches_an_unmodified_capture(shared_corpus, name):
    real = (shared_corpus / "ssacli" / name).read_text(encoding="utf-8")
    line = next(line for capture_name, _make, line, _part in CAPTURES if capture_name == name)
    ours = ask(captured_p816i(), line).stdout
    assert (ours[:2], ours[-4:]) == (real[:2], real[-4:])
    assert filled(ours) == filled(real)


def filled(text: str) -> set[str]:
    """The labels of the lines that end with a blank."""
    return {line.split(":")[0] for line in text.splitlines() if line.endswith(" ")}


def test_renamed_label_is_detected(shared_corpus):
    real = shape(capture(shared_corpus, "netdata_ssacli-P408i-a.txt", 0))
    ours = ask(captured_p408i(), "ctrl all show config detail").stdout
    assert shape(ours) == real
    for label in ("Cache Status", "Unconfigured Drive Write Cache Policy", "LD Acceleration Method", "Unique Identifier"):
        assert shape(ours.replace(label, label.lower())) != real


def test_labels_of_other_captures_are_known(shared_corpus):
    """The captures of controllers that are no model: every line about caches and protection has a label that is simulated."""
    ours = {line.split(":")[0] for model in MODELS for line in ask(state(model), "ctrl all show config detail").stdout.splitlines()}
    for name in ("wikimedia_hpssacli-config-detail.txt", "netdata_ssacli-P212_P410i.txt"):
        text = (shared_corpus / "ssacli" / name).read_text(encoding="utf-8")
        about = {line.split(":")[0] for line in text.splitlines() if re.search(r"Cach|Battery|Acceleration|Fault Tol", line)}
        assert about - ours == set()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ctrl slot=7 show detail", 'Error: The controller identified by "slot=7" was not detected.\n'),
        ("ctrl slot=0 array Q modify ssdsmartpath=enable", 'Error: Controller identified by "slot=0" does not have an array identified by\n       "Q".\n'),
        ("ctrl slot=0 ld 99 show detail", 'Error: Controller identified by "slot=0" does not have a logical drive\n       identified by "99".\n'),
        ("ctrl slot=0 modify dwc=enable", 'Error: Parameter "usage" must be specified.\n'),
        ("ctrl slot=0 modify dwc=disable", 'Error: Parameter "usage" must be specified.\n'),
        ("ctrl slot=0 modify foo=1", 'Error: Syntax error at "foo=1"\n'),
        ("ctrl slot=0 ld 1 modify foo=1", 'Error: Syntax error at "foo=1"\n'),
    ],
)
def test_errors_are_wrapped_with_exit_status_1(line, message):
    made = state()
    before = copy.deepcopy(made)
    answer = ask(made, line)
    assert answer == Answer(f"\n{message}\n", 1)
    assert made == before


def test_no_controller_is_an_error_with_causes():
    for made in ({"controllers": []}, state(faults={"no_controller": True})):
        answer = ask(made, "ctrl all show config detail")
        assert answer.rc == 1
        assert answer.stdout.startswith("\nError: No controllers detected. Possible causes:\n")


def test_no_volumes_is_an_error():
    assert ask(state(volumes=0, drives=2), "ctrl slot=0 ld all show detail") == Answer("\nError: The specified device does not have any logical drives.\n\n", 1)


@pytest.mark.parametrize("line", ["ctrl slot=0 show config detail", "controller slot=0 show config detail"])
def test_short_long_and_single_quoted_argument_forms(line):
    made = state()
    wanted = ask(made, "ctrl all show config detail")
    assert ask(made, line) == wanted
    assert SsaCli(made).answer([line], "") == wanted


@pytest.mark.parametrize("word", ["caching", "arrayaccelerator", "aa"])
def test_volume_caching(word):
    made = state(volumes=2)
    assert ask(made, f"ctrl slot=0 ld 2 modify {word}=disable") == Answer("")
    assert (volume(made, "Caching", 1), volume(made, "Caching", 2)) == ("Enabled", "Disabled")
    assert volume(made, "LD Acceleration Method", 2) == "All disabled"
    assert ask(made, f"ctrl slot=0 ld all modify {word}=enable forced") == Answer("")
    assert volume(made, "Caching", 2) == "Enabled"
    assert volume(made, "LD Acceleration Method", 2) == "Controller Cache"
    assert ask(made, f"ctrl slot=0 ld 1 modify {word}=maybe").rc == 1


def test_smart_path_and_caching_are_mutually_exclusive():
    made = state(P816I)
    assert (volume(made, "Caching"), volume(made, "LD Acceleration Method")) == ("Disabled", "Smart Path")
    assert ask(made, "ctrl slot=0 ld 1 modify caching=enable forced") == Answer("\nError: Invalid drive specified: 1\n\n", 1)
    assert ask(made, "ctrl slot=0 array A modify ssdsmartpath=disable") == Answer("")
    assert volume(made, "LD Acceleration Method") == "Controller Cache"
    assert ask(made, "ctrl slot=0 ld 1 modify caching=enable") == Answer("")
    assert ask(made, "ctrl slot=0 array a modify ssdsmartpath=enable") == Answer("")
    assert (volume(made, "Caching"), volume(made, "LD Acceleration Method")) == ("Disabled", "Smart Path")
    refused = ask(made, "ctrl slot=0 array B modify ssdsmartpath=enable")
    assert refused.rc == 1
    assert refused.stdout.startswith('\nError: This operation is not supported with the current configuration. Use the\n       "show" command')


def test_drive_write_cache_of_old_controller_prompts_unless_forced():
    made = state(OLD)
    answer = ask(made, "ctrl slot=0 modify dwc=enable")
    assert answer.stdout.startswith("\nWarning: Without the proper safety precautions, use of write cache on physical\n")
    assert "Continue? (y/n)" in answer.stdout
    assert value(made, "Drive Write Cache") == "Disabled"
    assert ask(made, "ctrl slot=0 modify dwc=disable") == Answer("")
    assert value(made, "Drive Write Cache") == "Disabled"
    assert ask(made, "ctrl slot=0 modify drivewritecache=enable forced") == Answer("")
    assert value(made, "Drive Write Cache") == "Enabled"
    assert ask(made, "ctrl slot=0 modify dwc=default").rc == 1


def test_drive_write_cache_of_newer_controller_is_per_class():
    made = state()
    assert ask(made, "ctrl slot=0 modify dwc=enable usage=configured forced") == Answer("")
    assert ask(made, "ctrl slot=0 modify dwc=disable usage=unconfigured") == Answer("")
    assert value(made, "Configured Drive Write Cache Policy") == "Enable"
    assert value(made, "Unconfigured Drive Write Cache Policy") == "Disable"
    assert ask(made, "ctrl slot=0 modify usage=configured dwc=default") == Answer("")
    assert value(made, "Configured Drive Write Cache Policy") == "Default"
    assert "Continue? (y/n)" in ask(made, "ctrl slot=0 modify dwc=enable usage=configured").stdout
    assert value(made, "Configured Drive Write Cache Policy") == "Default"
    assert ask(made, "ctrl slot=0 modify dwc=enable usage=everything forced").rc == 1


def test_ratio_and_no_battery_write_cache():
    made = state()
    assert ask(made, "ctrl slot=0 modify cacheratio=10/90") == Answer("")
    assert value(made, "Cache Ratio") == "10% Read / 90% Write"
    assert ask(made, "ctrl slot=0 modify nbwc=enable") == Answer("")
    assert value(made, "No-Battery Write Cache") == "Enabled"
    for wrong in ("10/80", "ten/90", "101/-1", "13/87"):
        assert ask(made, f"ctrl slot=0 modify cacheratio={wrong}").rc == 1
    assert value(made, "Cache Ratio") == "10% Read / 90% Write"


def test_old_controller_without_battery_has_no_write_cache_by_default():
    made = state("Smart Array P410i")
    assert value(made, "Battery/Capacitor Status") is None
    assert ask(made, "ctrl slot=0 modify cacheratio=25/75").rc == 1
    ask(made, "ctrl slot=0 modify nbwc=enable")
    assert ask(made, "ctrl slot=0 modify cacheratio=25/75") == Answer("")
    assert value(state("Smart Array P410i", battery=True), "Battery/Capacitor Status") == "OK"


@pytest.mark.parametrize(
    ("fault", "status", "details", "battery"),
    [
        ("battery_failed", "Temporarily Disabled", "Cache disabled; low batteries.", "Failed (Replace Batteries)"),
        ("capacitor_charging", "Temporarily Disabled", "Cache disabled; battery/capacitor charge is low.", "Recharging"),
        ("cable_error", "Permanently Disabled", "Cable Error", None),
        (
            "permanently_disabled",
            "Permanently Disabled",
            "Cache disabled; backup power source failed to charge to an acceptable level",
            "Failed (Replace Batteries)",
        ),
    ],
)
@pytest.mark.parametrize("model", [GEN10, P816I, OLD])
def test_faults_disable_the_cache_and_keep_the_configuration(model, fault, status, details, battery):
    made = state(model, {fault: True}, volumes=2)
    assert value(made, "Cache Status") == status
    assert value(made, "Cache Status Details") == details
    assert value(made, "Battery/Capacitor Status") == battery
    assert (value(made, "Cache Ratio") is None) == (status == "Permanently Disabled")
    assert (value(made, "Cache Disable Reason") is not None) == (fault == "permanently_disabled")
    assert volume(made, "Caching") == "Enabled"
    assert volume(made, "LD Acceleration Method") == "Controller Cache"
    made["faults"].clear()
    assert (value(made, "Cache Status"), value(made, "Battery/Capacitor Status")) == ("OK", "OK")
    assert value(made, "Cache Status Details") is None


def test_no_battery_write_cache_keeps_cache_enabled_with_failed_battery():
    made = state(faults={"battery_failed": True})
    ask(made, "ctrl slot=0 modify nbwc=enable")
    assert (value(made, "Cache Status"), value(made, "Battery/Capacitor Status")) == ("OK", "Failed (Replace Batteries)")


@pytest.mark.parametrize("fault", [True, ["caching"], "aa"])
def test_refused_policy_prints_an_error_with_exit_status_0(fault):
    made = state(faults={"refused_policy": fault})
    answer = ask(made, "ctrl slot=0 ld 1 modify caching=disable")
    assert answer.rc == 0
    assert answer.stdout.startswith("\nError: ")
    assert volume(made, "Caching") == "Enabled"
    ask(made, "ctrl slot=0 modify nbwc=enable")
    assert value(made, "No-Battery Write Cache") == ("Disabled" if fault is True else "Enabled")


def test_ignored_policy_prints_nothing_and_changes_nothing():
    made = state(faults={"ignored_policy": True})
    assert ask(made, "ctrl slot=0 ld 1 modify caching=disable") == Answer("")
    assert volume(made, "Caching") == "Enabled"


def test_hba_mode_by_model_and_by_fault():
    hba = state("Smart HBA H240", os_devices=[{"path": "/dev/sdb", "wwn": "5", "size": 1}], drives=3)
    shown = ask(hba, "ctrl slot=1 show detail").stdout
    assert shown.startswith("\nSmart HBA H240 in Slot 1 (HBA Mode)\n")
    assert "   Controller Mode: HBA\n" in shown
    assert "Cache Status" not in shown
    assert ask(hba, "ctrl slot=1 ld all show detail").rc == 1
    drives = ask(hba, "ctrl all show config detail").stdout
    assert drives.count("Drive exposed to OS: True") == 3
    assert "Disk Name: /dev/sdb\n" in drives
    made = state(faults={"hba_mode": True})
    assert "(HBA Mode)" in ask(made, "ctrl slot=0 show detail").stdout
    assert ask(made, "ctrl slot=0 ld 1 modify caching=disable").rc == 1
    assert ask(made, "ctrl slot=0 modify dwc=disable usage=configured").rc == 1
    made["faults"].clear()
    assert volume(made, "Caching") == "Enabled"


@pytest.mark.parametrize(("model", "slot"), [("Smart HBA H240 (RAID Mode)", 1), ("HPE Smart Array E208i-a SR Gen10", 0)])
def test_controller_without_cache_has_volumes_and_refuses_caching(model, slot):
    made = state(model)
    shown = ask(made, "ctrl all show config detail").stdout
    assert "   Cache Board Present: False\n" in shown
    assert "Cache Status" not in shown
    assert "         Caching:  Disabled\n" in shown
    assert "         LD Acceleration Method: All disabled\n" in shown
    for words in ("ld 1 modify caching=enable", "modify cacheratio=10/90", "modify nbwc=enable"):
        assert ask(made, f"ctrl slot={slot} {words}").rc == 1
    assert ask(made, "ctrl all show config detail").stdout == shown


def test_os_visible_drive_has_a_disk_name_line():
    """Not in the corpus; the order is that of outputs in public code."""
    shown = ask(state(P816I), "ctrl all show config detail").stdout.partition("   Unassigned\n")[2]
    labels = [line.strip().split(":")[0] for line in shown.splitlines() if line.startswith("         ")]
    place = labels.index("Disk Name")
    assert labels[place - 1 : place + 3] == ["Carrier Bootloader Version", "Disk Name", "Mount Points", "Sanitize Erase Supported"]
    assert "Drive Type: Unassigned Drive\n" in shown
    assert "Drive exposed to OS: True\n" in shown


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("faults", [{}, {"hba_mode": True}])
def test_host_disk_names_are_unique(model, faults):
    devices = [{"path": "/dev/sdb", "wwn": "5000", "size": 2**30}]
    for options in ({}, {"volumes": 3, "drives": 30}, {"volumes": 1, "drives": 2, "os_devices": devices}):
        paths = re.findall(r"Disk Name: (\S+)", ask(state(model, faults, **options), "ctrl all show config detail").stdout)
        assert len(paths) == len(set(paths)) > 0


@pytest.mark.parametrize(
    ("size", "decimals", "text"), [(99_998_000_000, 1, "93.1  GB"), (5760 * 10**9, 1, "5.2 TB"), (2**30, 2, "1.00 GB"), (2**20, 2, "1.00 MB")]
)
def test_sizes_are_formatted_like_the_tool(size, decimals, text):
    assert size_text(size, decimals) == text
