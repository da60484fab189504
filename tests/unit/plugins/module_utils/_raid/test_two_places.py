# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fields that a tool prints in one place or in another, by its build and by the controller: each is moved, and read as before.

The outputs are those of the simulators; where a field has another label in the other place, it gets that.
"""

from __future__ import annotations

import copy
import json
import re
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import provider as arcconf
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import text as arcconf_text
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli import provider as ssacli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli import text as ssacli_text
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import provider as storcli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import storcli2
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.reader import join
from ansible_collections.cachefleet.storage.tests.simulators import ssacli as simulated_ssacli
from ansible_collections.cachefleet.storage.tests.simulators import storcli as simulated_storcli
from ansible_collections.cachefleet.storage.tests.simulators import storcli2 as simulated_storcli2
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf

Data = t.Dict[str, t.Any]


def answer(kind, model, words, faults=None, **options):
    return kind({"faults": dict(faults or {}), "controllers": [kind.models[model](**options)]}).answer(words.split(), "").stdout


def understood(reading):
    assert (reading.not_understood, reading.lost, reading.complete) == ((), (), True)
    (controller,) = reading.controllers
    return controller


# arcconf

RULE = "   " + "-" * 56
POLICY = ("Global Physical Device Write Cache Policy",)
RATES = ("maxCache flush and fetch rate", "maxCache Read, Write Balance Factor", "maxCache Dirty Page Threshold")
POOL = ("SSDs assigned to maxCache pool", "Maximum SSDs allowed in maxCache pool", *RATES[:2])


def config(model, faults=None, **options):
    return answer(Arcconf, model, "GETCONFIG 1 AL", faults, **options)


def label_of(line):
    found = re.match(r"\s*(.*?\S)\s*:(?:\s|$)", line)
    return found.group(1) if found else ""


def moved(text, labels, heading):
    """The output with some lines about the controller below a heading, or (``None``) among the first lines about it."""
    lines = text.split("\n")
    taken = [line for line in lines if label_of(line) in labels]
    assert len(taken) == len(labels), labels
    rest = [line for line in lines if label_of(line) not in labels]
    if heading is None:
        at = next(number for number, line in enumerate(rest) if label_of(line) == "Controller Model") + 1
        return "\n".join([*rest[:at], *taken, *rest[at:]])
    found = [number for number, line in enumerate(rest) if line.strip() == heading]
    if found:
        return "\n".join([*rest[: found[0] + 2], *taken, *rest[found[0] + 2 :]])
    at = next(number for number, line in enumerate(rest) if line.strip() == "Controller Version Information") - 1
    return "\n".join([*rest[:at], RULE, f"   {heading}", RULE, *taken, *rest[at:]])


@pytest.mark.parametrize(
    ("model", "options", "labels", "heading"),
    [
        ("Adaptec ASR-71605", {}, POLICY, "Cache Properties"),
        ("Adaptec ASR-8805", {}, POLICY, "Cache Properties"),
        ("Adaptec ASR-81605ZQ", {}, POLICY, "Cache Properties"),
        ("Adaptec ASR-8805", {"build": "new"}, POLICY, None),
        ("Adaptec ASR-81605ZQ", {}, RATES, "RAID Properties"),
        ("Adaptec ASR-81605ZQ", {}, RATES, "Cache Properties"),
        ("Adaptec ASR-81605ZQ", {}, RATES, "maxCache Properties"),
        ("Adaptec 6805Q", {}, POOL, None),
        ("Adaptec 6805Q", {}, POOL, "Cache Properties"),
    ],
)
def test_controller_lines_are_parsed_at_top_and_below_a_heading(model, options, labels, heading):
    text = config(model, **options)
    other = moved(text, labels, heading)
    assert other != text
    assert understood(arcconf.parse(other)) == understood(arcconf.parse(text))
    without = "\n".join(line for line in text.split("\n") if label_of(line) not in labels)
    assert arcconf.parse(without) != arcconf.parse(text), "nothing reads these lines"


@pytest.mark.parametrize("build", ["old", "new"])
@pytest.mark.parametrize("heading", [None, "RAID Properties"])
def test_volume_count_is_parsed_at_top_and_below_a_heading(build, heading):
    text = moved(config("Adaptec ASR-8805", build=build), ("Logical devices/Failed/Degraded",), heading)
    assert arcconf.parse(text).lost == ()
    (lost,) = arcconf.parse(text.replace(": 1/0/0", ": 2/0/0")).lost
    assert "volumes, and 1 are reported" in lost


def test_memory_is_parsed_from_controller_or_cache_section():
    text = config("Adaptec ASR-8805")
    other = moved(text.replace("Installed memory", "Cache memory    "), ("Cache memory",), "Cache Properties")
    assert understood(arcconf.parse(text)).cache.memory == 1 << 30
    assert understood(arcconf.parse(other)) == understood(arcconf.parse(text))


REASON = "Charge level low"


@pytest.mark.parametrize(
    "lines",
    [
        {"Cache Status": f"Temporarily Disabled(Reason: {REASON})"},
        {"Cache Status": "Temporarily Disabled", "Cache State": f"Temporarily Disabled(Reason: {REASON})"},
        {"Cache Status": "Temporarily Disabled", "Cache State Details": f"Temporarily Disabled(Reason: {REASON})"},
        {"Cache Status": "Temporarily Disabled", "Cache State": "Disabled", "Cache State Details": f"Temporarily Disabled(Reason: {REASON})"},
        {"Cache Status": "Temporarily Disabled", "Cache Status Details": REASON},
    ],
)
def test_reason_of_disabled_cache_is_parsed_from_status_and_details(lines):
    text = config("Adaptec SmartRAID 3154-8i")
    reported = "\n".join(f"   {label:<43}: {value}" for label, value in lines.items())
    cache = understood(arcconf.parse(re.sub(r"   Cache Status .*", lambda _found: reported, text))).cache
    assert (cache.status, cache.reason) == ("temporarily_disabled", REASON)


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ({"Cache State": "Optimal(Reason: Charged)"}, "ok"),
        ({"Cache Status": "Ok (Zzyx)"}, "unknown"),
        ({"Cache State Details": f"Temporarily Disabled(Reason: {REASON})"}, "unknown"),
    ],
)
def test_details_of_a_cache_that_works_are_no_reason(lines, status):
    text = config("Adaptec SmartRAID 3154-8i")
    reported = "\n".join(f"   {label:<43}: {value}" for label, value in {"Cache Status": "Ok", **lines}.items())
    cache = understood(arcconf.parse(re.sub(r"   Cache Status .*", lambda _found: reported, text))).cache
    assert (cache.status, cache.reason) == (status, "")


@pytest.mark.parametrize(("message", "health"), [("Ready", "healthy"), ("Not Present", "missing"), ("Charging", "charging"), ("Fatal", "failed")])
def test_backup_unit_is_parsed_below_either_heading(message, health):
    text = re.sub(r"(Overall Backup Unit Status +: ).*", rf"\g<1>{message}", config("Adaptec ASR-81605ZQ"))
    other = text.replace("Controller Cache Backup Unit Information", "Green Backup Information")
    found = [understood(arcconf.parse(one)).protection for one in (text, other)]
    assert [(unit.kind, unit.health, unit.raw) for unit in found] == [("capacitor", health, message)] * 2


@pytest.mark.parametrize(("supercap", "health"), [("Ready", "healthy"), ("Fatal", "failed"), ("Not Present", "missing"), ("Charging", "charging")])
def test_backup_unit_is_not_better_than_its_supercap(supercap, health):
    text = re.sub(r"(Overall Backup Unit Status +: ).*", r"\g<1>Ready", config("Adaptec ASR-81605ZQ"))
    text = re.sub(r"(Supercap Status +: ).*", rf"\g<1>{supercap}", text)
    assert understood(arcconf.parse(text)).protection.health == health


@pytest.mark.parametrize("label", ["Controller Mode", "Controller Status", "Controller Model", "Controller Serial Number"])
@pytest.mark.parametrize("model", ["Adaptec ASR-8805", "Adaptec SmartRAID 3154-8i", "Adaptec HBA 1100-16i"])
def test_list_output_supplies_values_missing_in_configuration(label, model):
    listed = arcconf.parse(answer(Arcconf, model, "LIST"))
    text = config(model)
    without = "\n".join(line for line in text.split("\n") if label_of(line) != label)
    assert without != text
    reported = [understood(arcconf_text.join(listed, {"1": arcconf.parse(one)})) for one in (text, without)]
    assert [(one.mode, one.status, one.model, one.serial, one.id) for one in reported] == [
        (reported[0].mode, reported[0].status, reported[0].model, reported[0].serial, "1")
    ] * 2


def test_members_are_found_by_serial_location_and_address():
    text = config("Adaptec ASR-8805")
    whole = understood(arcconf.parse(text))
    (volume,) = whole.volumes
    assert len(volume.members) == 2
    address = {drive.serial: drive.address for drive in whole.drives}

    def rewritten(form):
        return re.sub(r"Present \((.*)\) (\S+)", lambda found: form(found.group(1), found.group(2)), text)

    for form in (
        lambda place, serial: f"Present (953869MB) {serial}",
        lambda place, serial: f"Present ({place})",
        lambda place, serial: f"Present ({address[serial]})",
    ):
        other = rewritten(form)
        assert other != text
        assert understood(arcconf.parse(other)) == whole
    lines = [line for line in text.split("\n") if not re.match(r" +Segment [0-9]+ +:", line)]
    at = next(number for number, line in enumerate(lines) if label_of(line) == "RAID level")
    listed = [*lines[:at], f"   Drive(s) (Channel,Device)                : {' '.join(volume.members)}", *lines[at:]]
    assert understood(arcconf.parse("\n".join(listed))).volumes[0].members == volume.members


@pytest.mark.parametrize(
    ("label", "message"),
    [("LD Acceleration Method", "SSD I/O bypass"), ("SSD I/O Bypass", "Enabled"), ("SSD I/O Bypass Status", "Active")],
)
def test_cache_bypass_is_parsed_at_volume_and_at_array(label, message):
    text = config("Adaptec SmartRAID 3154-8i", caching=False)
    shown = "SSD I/O Bypass" if label.startswith("SSD") else label
    other, count = re.subn(rf"(?m)^( +){re.escape(shown)} +: .*$", lambda found: f"{found.group(1)}{label:<43}: {message}", text)
    assert count == 1
    controller = understood(arcconf.parse(other))
    provider = arcconf.ArcConf(None, "arcconf")
    assert provider.objection(understood(arcconf.parse(text)), understood(arcconf.parse(text)).volumes[0], {"write": "writeback"}, {}) is None
    assert "SSD I/O bypass has been enabled" in (provider.objection(controller, controller.volumes[0], {"write": "writeback"}, {}) or "")


@pytest.mark.parametrize("heading", ["MaxCache 3.0 information", "maxCache information", "maxCache Device Information"])
def test_max_cache_container_is_parsed_below_each_heading(heading):
    text = config("Adaptec ASR-81605ZQ")
    other = re.sub("MaxCache 3.0 information", heading, text)
    assert understood(arcconf.parse(other)) == understood(arcconf.parse(text))
    assert len(understood(arcconf.parse(text)).maxcache.volumes) == 1  # type: ignore[union-attr]


# storcli and storcli2: answers are JSON, so a field is moved in the data.

Answers = t.Dict[str, Data]
QUESTIONS = {"summary": "/call show all nolog J", "volumes": "/call/vall show all nolog J", "drives": "/call/eall/sall show all nolog J"}


def answers(kind, model, faults=None):
    return {name: json.loads(answer(kind, model, words, faults)) for name, words in QUESTIONS.items()}


def data(reported, name):
    return reported[name]["Controllers"][0]["Response Data"]


def read(parse, reported):
    return understood(join([parse(json.dumps(one)) for one in reported.values()]))


def with_identity_at_the_top(reported):
    """As ``/cx show`` prints what ``/cx show all`` has in sections."""
    summary = data(reported, "summary")
    basics, version, status = summary.pop("Basics"), summary.pop("Version"), summary["Status"]
    summary["Product Name"], summary["Serial Number"], summary["PCI Address"] = basics["Model"], basics["Serial Number"], basics["PCI Address"]
    summary["FW Package Build"], summary["FW Version"] = version["Firmware Package Build"], version["Firmware Version"]
    summary["Driver Name"], summary["Controller Status"] = version["Driver Name"], status.pop("Controller Status")
    if "Current Personality" in status:
        summary["Current Personality"] = status.pop("Current Personality")


def with_drive_policy_in_the_topology_only(reported):
    short = {"Disk's Default": "dflt", "Enabled": "enbl", "Disabled": "dsbl"}
    for name, properties in data(reported, "volumes").items():
        if name.endswith("Properties"):
            policy = properties.pop("Disk Cache Policy")
            assert {row["PDC"] for row in data(reported, "summary")["TOPOLOGY"]} == {short[policy]}


def with_drive_policy_at_the_volumes_only(reported):
    for row in data(reported, "summary")["TOPOLOGY"]:
        row.pop("PDC")


def with_members_in_the_topology_only(reported):
    volumes = data(reported, "volumes")
    for name in [name for name in volumes if name.startswith("PDs for VD")]:
        volumes.pop(name)


def with_members_at_the_volumes_only(reported):
    data(reported, "summary").pop("TOPOLOGY")


def with_volumes_in_their_own_answer_only(reported):
    data(reported, "summary").pop("VD LIST")


def with_volumes_as_a_list(reported):
    """As ``/cx/vall show`` prints their rows."""
    volumes = data(reported, "volumes")
    volumes["Virtual Drives"] = [row for name in [name for name in volumes if name.startswith("/c")] for row in volumes.pop(name)]
    data(reported, "summary").pop("VD LIST")


def with_drives_in_their_own_answer_only(reported):
    data(reported, "summary").pop("PD LIST")


def with_drives_below_a_heading(reported):
    """As HBAs print them."""
    reported["drives"]["Controllers"][0]["Response Data"] = {"Physical Device Information": data(reported, "drives")}


def with_attributes_beside_the_drives(reported):
    """As plain text prints them, which does not nest."""
    drives = data(reported, "drives")
    for name in [name for name in drives if name.endswith("Detailed Information")]:
        drives.update({part: value for part, value in drives.pop(name).items() if part.endswith("Device attributes")})


def with_the_other_label_for_serials(reported):
    for name, details in data(reported, "drives").items():
        for part, attributes in details.items() if name.endswith("Detailed Information") else ():
            if part.endswith("Device attributes"):
                attributes["Serial Number"] = attributes.pop("SN")


def with_the_unit_as_properties(reported):
    """As ``/cx/cv show all`` and ``/cx/bbu show all`` print what is a row in the summary."""
    summary = data(reported, "summary")
    for name, state in (("Cachevault_Info", "State"), ("BBU_Info", "Battery State")):
        if name in summary:
            (row,) = summary[name]
            summary[name] = [{"Property": "Type", "Value": row["Model"]}, {"Property": state, "Value": row["State"]}]


STORCLI_MOVES = (
    with_identity_at_the_top,
    with_drive_policy_in_the_topology_only,
    with_drive_policy_at_the_volumes_only,
    with_members_in_the_topology_only,
    with_members_at_the_volumes_only,
    with_volumes_in_their_own_answer_only,
    with_volumes_as_a_list,
    with_drives_in_their_own_answer_only,
    with_drives_below_a_heading,
    with_attributes_beside_the_drives,
    with_the_other_label_for_serials,
    with_the_unit_as_properties,
)


@pytest.mark.parametrize("model", ["MegaRAID 9361-8i", "ServeRAID M5015"])
@pytest.mark.parametrize("move", STORCLI_MOVES, ids=lambda move: move.__name__)
def test_storcli_fields_are_parsed_at_every_location(move, model):
    reported = answers(simulated_storcli.StorCli, model)
    other = copy.deepcopy(reported)
    move(other)
    assert other != reported
    assert read(storcli.parse, other) == read(storcli.parse, reported)


@pytest.mark.parametrize("fault", ["battery_failed", "capacitor_charging", "learn_cycle"])
@pytest.mark.parametrize("model", ["MegaRAID 9361-8i", "ServeRAID M5015"])
def test_unit_state_is_parsed_from_row_and_properties(model, fault):
    reported = answers(simulated_storcli.StorCli, model, {fault: True})
    other = copy.deepcopy(reported)
    with_the_unit_as_properties(other)
    assert read(storcli.parse, other) == read(storcli.parse, reported)


def with_identity2_at_the_top(reported):
    summary = data(reported, "summary")
    basics, version, host, status = summary.pop("Basics"), summary.pop("Version"), summary.pop("HostInterface"), summary["Status"]
    summary["Product Name"], summary["Serial Number"], summary["PCI Address"] = basics["Product Name"], basics["Serial Number"], host["PCI Address"]
    summary["Package Version"], summary["Firmware Version"] = version["Package Version"], version["Firmware Version"]
    summary["Driver Name"], summary["Controller Status"] = version["Driver Name"], status.pop("Controller Status")
    summary["Controller Personality"] = status.pop("Controller Personality")


def with_drive_policy2_in_the_topology_only(reported):
    for volume in data(reported, "volumes")["Virtual Drives"]:
        volume["VD Properties"].pop("Drive Write Cache Policy")


def with_drive_policy2_at_the_volumes_only(reported):
    with_drive_policy_at_the_volumes_only(reported)


def with_members2_in_the_topology_only(reported):
    for volume in data(reported, "volumes")["Virtual Drives"]:
        volume.pop("PDs")


def with_volumes2_without_a_heading(reported):
    """As ``/cx/vall show`` prints them: each row is the volume itself."""
    for volume in data(reported, "volumes")["Virtual Drives"]:
        volume.update(volume.pop("VD Info"))


def with_volumes2_in_their_own_answer_only(reported):
    data(reported, "summary").pop("VD LIST")


def with_drives2_in_their_own_answer_only(reported):
    data(reported, "summary").pop("PD LIST")
    with_members2_in_the_topology_only(reported)


def with_drives2_without_a_heading(reported):
    for drive in data(reported, "drives")["Drives List"]:
        drive.update(drive.pop("Drive Information"))


def with_units_of_drives_as_a_list(reported):
    for drive in data(reported, "drives")["Drives List"]:
        details = drive["Drive Detailed Information"]
        details["LU/NS Properties"] = [details["LU/NS Properties"]]


def with_the_state_of_the_energy_pack(reported):
    (pack,) = data(reported, "summary")["Energy Pack Info"]
    pack["State"] = pack.pop("Status")


STORCLI2_MOVES = (
    with_identity2_at_the_top,
    with_drive_policy2_in_the_topology_only,
    with_drive_policy2_at_the_volumes_only,
    with_members2_in_the_topology_only,
    with_members_at_the_volumes_only,
    with_volumes2_without_a_heading,
    with_volumes2_in_their_own_answer_only,
    with_drives2_in_their_own_answer_only,
    with_drives2_without_a_heading,
    with_units_of_drives_as_a_list,
    with_the_state_of_the_energy_pack,
)


@pytest.mark.parametrize("move", STORCLI2_MOVES, ids=lambda move: move.__name__)
def test_storcli2_fields_are_parsed_at_every_location(move):
    reported = answers(simulated_storcli2.StorCli2, "MegaRAID 9660-16i")
    other = copy.deepcopy(reported)
    move(other)
    assert other != reported
    assert read(storcli2.parse, other) == read(storcli2.parse, reported)


def test_firmware_without_package_is_parsed_from_section_and_top():
    for parse, kind, model, labels in (
        (storcli.parse, simulated_storcli.StorCli, "MegaRAID 9361-8i", ("Firmware Package Build", "Firmware Version", "FW Version")),
        (storcli2.parse, simulated_storcli2.StorCli2, "MegaRAID 9660-16i", ("Package Version", "Firmware Version", "Firmware Version")),
    ):
        reported = answers(kind, model)
        version = data(reported, "summary")["Version"]
        version.pop(labels[0])
        version[labels[1]] = "1.2.3"
        assert read(parse, reported).firmware == "1.2.3"
        data(reported, "summary")[labels[2]] = version.pop(labels[1])
        assert read(parse, reported).firmware == "1.2.3"


# ssacli


def shown(model, faults=None):
    return answer(simulated_ssacli.SsaCli, model, "ctrl all show config detail", faults)


def replaced(text, pattern, by):
    other, count = re.subn(f"(?m){pattern}", by, text)
    assert count >= 1, pattern
    return other


P408, P440, P410 = "HPE Smart Array P408i-a SR Gen10", "Smart Array P440ar", "Smart Array P410i"


@pytest.mark.parametrize(
    ("model", "pattern", "by"),
    [
        # The serial number and the mode are below the heading, or in it.
        (P408, r"^(HPE .* in Slot 0 \(Embedded\))((?:.*\n)*?)   Serial Number: (\S+)\n", r"\1  (sn: \3)\2"),
        (P408, r"   Controller Mode: Mixed", r"   Controller Mode: Mixed Mode"),
        (P408, r"^   Cache Ratio:", "   Accelerator Ratio:"),
        # Two labels on one line, as newer versions print them.
        (P408, r"^      Array Type: Data\n      Smart Path: disable$", "      Array Type: Data       HPE SSD Smart Path: disable"),
        (P408, r"^         Drive Type: Data Drive\n((?:         .*\n)*?)", r"\1         Drive Type: Data Drive\n"),
    ],
)
def test_ssacli_fields_are_parsed_at_every_location(model, pattern, by):
    text = shown(model)
    other = replaced(text, pattern, by)
    assert understood(ssacli.parse(other)) == understood(ssacli.parse(text))


@pytest.mark.parametrize(
    "message",
    ["in Slot 1 (HBA Mode)\n", "in Slot 1\n   HBA Mode Enabled: True\n", "in Slot 1\n   Controller Mode: HBA\n", "in Slot 1\n   Controller Mode: HBA Mode\n"],
)
def test_hba_mode_is_parsed_from_heading_and_either_label(message):
    assert ssacli.parse(f"Smart HBA H240 {message}   Controller Status: OK\n").controllers[0].mode == "hba"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("   Cache Status Details: Low batteries.\n", "Low batteries."),
        ("   Cache Disable Reason: Low batteries.\n", "Low batteries."),
        ("   Cache Status Details: One.\n   Cache Disable Reason: Two.\n", "One. Two."),
    ],
)
def test_reason_of_disabled_cache_is_parsed_from_either_label(message, reason):
    text = replaced(shown(P408), r"^   Cache Status: OK\n", f"   Cache Status: Temporarily Disabled\n{message}")
    assert understood(ssacli.parse(text)).cache.reason == reason


def test_volume_cache_is_parsed_under_old_and_new_label():
    text = shown(P408)
    other = understood(ssacli.parse(replaced(text, "^         Caching:", "         Array Accelerator:")))
    whole = understood(ssacli.parse(text))
    assert [(one.read, one.write) for one in other.volumes] == [(one.read, one.write) for one in whole.volumes]
    assert (whole.traits["volume_switch"], other.traits["volume_switch"]) == ("caching", "arrayaccelerator")


def test_bypass_is_parsed_at_volume_and_at_array():
    text = replaced(shown(P408), "^         Caching: +Enabled", "         Caching:  Disabled")
    provider = ssacli.SsaCli(None, "ssacli")

    def objection(one):
        controller = understood(ssacli.parse(one))
        return provider.objection(controller, controller.volumes[0], {"write": "writeback"}, {}) or ""

    text = replaced(text, "LD Acceleration Method: .*", "LD Acceleration Method: All disabled")
    assert objection(text) == ""
    assert "Smart Path is on" in objection(replaced(text, "Smart Path: disable", "Smart Path: enable"))
    assert "Smart Path is on" in objection(replaced(text, "LD Acceleration Method: .*", "LD Acceleration Method: SSD Smart Path"))


def test_drive_is_parsed_from_its_line_and_from_its_section():
    whole = understood(ssacli.parse(shown(P440)))
    text = shown(P440)
    lines, kept, inside = text.split("\n"), [], 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if re.match(r" +physicaldrive \S+$", line):
            inside = indent
            continue
        inside = inside if inside and (not line.strip() or indent > inside) else 0
        kept += [] if inside and line.strip() else [line]
    short = ssacli_text.parse("\n".join(kept)).controllers[0]
    facts = [(drive.address, drive.size, drive.media, drive.interface, drive.state) for drive in whole.drives]
    assert facts
    assert sorted((drive.address, drive.size, drive.media, drive.interface, drive.state) for drive in short.drives) == sorted(facts)
