# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the labels and words of storcli and perccli 7.x mean."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Policy, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import volume_finding
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.facts import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.reader import join, scsi_address


def answer(data, controller=0, **status):
    known = {"CLI Version": "007.1616.0000.0000 Dec 24, 2020", "Controller": controller, "Status": "Success", "Description": "None", **status}
    return json.dumps({"Controllers": [{"Command Status": known, "Response Data": data}]}, indent=1)


def only(text):
    reading = parse(text)
    assert list(reading.not_understood) == []
    (controller,) = reading.controllers
    return controller


def volume(cache="RWBD", initial="WriteBack", properties=None, **row):
    data: dict[str, t.Any] = {"/c0/v3": [{"DG/VD": "1/3", "TYPE": "RAID5", "State": "Optl", "Cache": cache, "Cac": "-", "Size": "2.000 TB", "Name": "", **row}]}
    data["VD3 Properties"] = {**({} if initial is None else {"Write Cache(initial setting)": initial}), **(properties or {})}
    (one,) = only(answer(data)).volumes
    return one


@pytest.mark.parametrize(
    "column, read, write, io",
    [
        ("RWBD", "read_ahead", "writeback", "direct"),
        ("NRWBD", "none", "writeback", "direct"),
        ("RWTD", "read_ahead", "writethrough", "direct"),
        ("NRWTD", "none", "writethrough", "direct"),
        ("RAWBD", "read_ahead", "writeback_always", "direct"),
        ("NRAWBC", "none", "writeback_always", "cached"),
        ("RFWBC", "read_ahead", "writeback_always", "cached"),
        ("RaWBD", "adaptive", "writeback", "direct"),
        ("RaAWBD", "adaptive", "writeback_always", "direct"),
        ("RWBC", "read_ahead", "writeback", "cached"),
        ("AWTD", "adaptive", "writethrough", "direct"),
    ],
)
def test_cache_column_is_parsed_from_both_ends(column, read, write, io):
    one = volume(column, initial=None)
    assert (one.read, one.write, one.io) == (Policy(read, read), Policy("unknown", write), Policy(io, io))


@pytest.mark.parametrize("column", ["WBD", "RWB?", "RXD", "R", "AWBD", "rwbd", "RWBDD"])
def test_invalid_cache_column_is_unknown_and_reported(column):
    reading = parse(answer({"VD LIST": [{"DG/VD": "0/0", "TYPE": "RAID1", "State": "Optl", "Cache": column}]}))
    (one,) = reading.controllers[0].volumes
    assert (one.read.effective, one.write.effective, one.io.effective) == ("unknown", "unknown", "unknown")
    (problem,) = reading.not_understood
    assert f"Cache: {column} (line " in problem


@pytest.mark.parametrize(
    "initial, column, configured, effective",
    [
        ("WriteBack", "RWBD", "writeback", "writeback"),
        ("WriteBack", "RWTD", "writeback", "writethrough"),
        ("WriteThrough", "RWTD", "writethrough", "writethrough"),
        ("AlwaysWriteBack", "RAWBD", "writeback_always", "writeback_always"),
        ("AlwaysWriteBack", "RWBD", "writeback_always", "writeback_always"),
        ("WriteBack", "RAWBD", "writeback_always", "writeback_always"),
        ("WriteThrough", "RWBD", "writethrough", "writeback"),
        (None, "RWTD", "unknown", "writethrough"),
        (None, "RAWBD", "unknown", "writeback_always"),
        ("WriteThrough", "RWTC", "writethrough", "writeback"),
    ],
)
def test_initial_setting_is_configured_and_column_is_effective(initial, column, configured, effective):
    assert volume(column, initial).write == Policy(configured, effective)


def test_volume_fields():
    one = volume(
        Name="data",
        properties={"Disk Cache Policy": "Disk's Default", "OS Drive Name": "/dev/sdb", "SCSI NAA Id": "6A0042BB0FCCFEC02C14E04218AE3545"},
    )
    assert (one.id, one.name, one.raid_level, one.status, one.array, one.size) == ("3", "data", "5", "optimal", "1", 2 * 1024**4)
    assert (one.drive_cache, one.os_device, one.wwn) == ("default", "/dev/sdb", "6a0042bb0fccfec02c14e04218ae3545")


@pytest.mark.parametrize(
    "printed, known", [("Disk's Default", "default"), ("Enabled", "enabled"), ("Disabled", "disabled"), ("N/A", "unknown"), ("", "unknown")]
)
def test_drive_cache_of_a_volume(printed, known):
    assert volume(properties={"Disk Cache Policy": printed}).drive_cache == known


def test_drive_cache_capability_is_not_a_policy():
    row = {"DG/VD": "0/0", "TYPE": "RAID1", "State": "Optl", "Cache": "RWBD"}
    controller = only(answer({"VD LIST": [row], "Supported VD Operations": {"Disk Cache Policy": "Yes", "IO Policy": "No"}}))
    assert controller.volumes[0].drive_cache == "unknown"
    assert controller.traits == {"can_set_drive_cache": True, "can_set_io": False}


def topology(group, policy, *drives):
    head = {"DG": group, "Arr": "-", "Row": "-", "EID:Slot": "-", "Type": "RAID1", "PDC": policy}
    return [head, {**head, "Arr": 0}] + [{"DG": group, "Arr": 0, "Row": n, "EID:Slot": drive, "Type": "DRIVE", "PDC": policy} for n, drive in enumerate(drives)]


def test_topology_supplies_drive_cache_and_members_of_single_volume_groups():
    listed = [{"DG/VD": f"{group}/{number}", "TYPE": "RAID1", "State": "Optl", "Cache": "RWBD"} for group, number in ((0, 0), (1, 1), (1, 2))]
    controller = only(answer({"TOPOLOGY": topology(0, "enbl", "8:0", " :1") + topology(1, "dsbl", "8:2"), "VD LIST": listed}))
    assert [(one.id, one.drive_cache, one.members) for one in controller.volumes] == [
        ("0", "enabled", ("8:0", ":1")),
        ("1", "unknown", ("8:2",)),
        ("2", "unknown", ("8:2",)),
    ]


def drive_details(address, cache):
    enclosure, _colon, slot = address.partition(":")
    path = f"Drive /c0/e{enclosure}/s{slot}"
    return {f"{path} - Detailed Information": {f"{path} Device attributes": {"SN": f"S{slot}", "Write Cache": cache}}}


def with_a_fourth_drive(state, group, cache):
    """Two drives of a volume, their caches off, and one more in its drive group."""
    rows = topology(0, "dflt", "252:0", "252:1")
    spare = {**rows[-1], "Arr": "-" if state in ("DHS", "GHS") else 0, "DG": group, "EID:Slot": "252:3", "Type": "DRIVE", "State": state}
    details: dict[str, t.Any] = {}
    for address, reported in (("252:0", "Disabled"), ("252:1", "Disabled"), ("252:3", cache)):
        details.update(drive_details(address, reported))
    listed = [drive_row(**{"EID:Slt": address, "State": word}) for address, word in (("252:0", "Onln"), ("252:1", "Onln"), ("252:3", state))]
    row = {"DG/VD": "0/0", "TYPE": "RAID1", "State": "Optl", "Cache": "NRWTD"}
    data = {"TOPOLOGY": [*rows, spare], "VD LIST": [row], "PD LIST": listed, "/c0/v0": [row], "PDs for VD 0": listed, **details}
    return only(answer(data))


@pytest.mark.parametrize(("state", "group"), [("DHS", 0), ("GHS", "-"), ("HspShld", 0)])
def test_spare_is_not_a_member_and_its_cache_is_ignored(state, group):
    controller = with_a_fourth_drive(state, group, "Enabled")
    (one,) = controller.volumes
    assert (one.members, one.members_untold) == (("252:0", "252:1"), 0)
    assert [(drive.usage, drive.write_cache) for drive in controller.drives] == [("configured", "disabled"), ("configured", "disabled"), ("spare", "enabled")]
    finding = volume_finding(controller, one)
    assert (finding.volatile, finding.loses) == (False, False)
    assert finding.state["drive_cache"] == "disabled"


def test_active_spare_is_a_member():
    controller = with_a_fourth_drive("Rbld", 0, "Enabled")
    assert controller.volumes[0].members == ("252:0", "252:1", "252:3")
    assert volume_finding(controller, controller.volumes[0]).loses


def test_spare_in_plain_text_is_not_a_member():
    line = "-" * 60
    text = f"""Controller = 0
Status = Success
Description = None

TOPOLOGY :
========

{line}
DG Arr Row EID:Slot DID Type  State BT      Size PDC  PI SED
{line}
 0 -   -   -        -   RAID1 Optl  N  10.000 GB dflt N  N
 0 0   -   -        -   RAID1 Optl  N  10.000 GB dflt N  N
 0 0   0   252:0    1   DRIVE Onln  N  10.000 GB dflt N  N
 0 0   1   252:1    2   DRIVE Onln  N  10.000 GB dflt N  N
 0 -   -   252:3    3   DRIVE DHS   -  10.000 GB -    -  N
{line}

VD LIST :
=======

{line}
DG/VD TYPE  State Access Consist Cache Cac sCC      Size Name
{line}
0/0   RAID1 Optl  RW     Yes     NRWTD -   ON  10.000 GB data
{line}
"""
    (one,) = only(text).volumes
    assert (one.members, one.members_untold) == (("252:0", "252:1"), 0)


@pytest.mark.parametrize("number, address", [("0", (2, 0, 0)), ("127", (2, 127, 0)), ("128", (3, 0, 0)), ("239", (3, 111, 0))])
def test_scsi_addresses_of_megaraid_sas(number, address):
    assert scsi_address(number) == address
    row = {"DG/VD": f"0/{number}", "TYPE": "RAID1", "State": "Optl", "Cache": "RWBD"}
    assert only(answer({"Driver Name": "megaraid_sas", "VD LIST": [row]})).volumes[0].scsi == address
    assert only(answer({"VD LIST": [row]})).volumes[0].scsi is None


def drive_row(**row):
    return {"EID:Slt": "252:3", "DID": 1, "State": "Onln", "DG": 0, "Size": "10.000 GB", "Intf": "SATA", "Med": "HDD", "Model": "X  ", "Sp": "U", **row}


@pytest.mark.parametrize(
    "state, usage",
    [("Onln", "configured"), ("Rbld", "configured"), ("UGood", "unconfigured"), ("UBad", "unconfigured"), ("GHS", "spare"), ("DHS", "spare"), ("JBOD", "jbod")],
)
def test_usage_of_drives(state, usage):
    (drive,) = only(answer({"PD LIST": [drive_row(State=state)]})).drives
    assert (drive.address, drive.usage, drive.state, drive.model, drive.size) == ("252:3", usage, state.lower(), "X", 10 * 1024**3)
    assert (drive.media, drive.interface, drive.write_cache) == ("hdd", "sata", "unknown")


@pytest.mark.parametrize("printed, known", [("Enabled", "enabled"), ("Disabled", "disabled"), ("N/A", "unknown")])
@pytest.mark.parametrize("enclosure", ["/e252", ""])
def test_attributes_of_a_drive(printed, known, enclosure):
    path = f"Drive /c0{enclosure}/s3"
    attributes = {"SN": "  S1 ", "WWN": "5000C500D99B25B0", "Firmware Revision": "E003 ", "Write Cache": printed}
    address = f"{enclosure[2:]}:3"
    nested = {path: [drive_row(**{"EID:Slt": address or " :3"})], f"{path} - Detailed Information": {f"{path} Device attributes": attributes}}
    for data in (nested, {"Physical Device Information": nested}, {path: nested[path], f"{path} Device attributes": attributes}):
        (drive,) = only(answer(data)).drives
        assert (drive.address, drive.write_cache, drive.serial, drive.firmware, drive.wwn) == (address, known, "S1", "E003", "5000c500d99b25b0")


def test_cachecade_is_a_cache_volume_with_its_own_drives():
    listed = [
        {"DG/VD": "0/0", "TYPE": "RAID5", "State": "Optl", "Cache": "RWBD", "Cac": "R", "Size": "1.000 TB", "Name": "data"},
        {"DG/VD": "1/1", "TYPE": "Cac1", "State": "Optl", "Cache": "NRWBD", "Cac": "-", "Size": "100.000 GB", "Name": "cc"},
    ]
    controller = only(answer({"TOPOLOGY": topology(1, "dsbl", "8:2"), "VD LIST": listed, "PD LIST": [drive_row(**{"EID:Slt": "8:2", "DG": 1, "Med": "SSD"})]}))
    (data,) = controller.volumes
    assert data.maxcache is not None
    assert data.maxcache.read.configured == "enabled"
    assert controller.maxcache is not None
    assert [(cache.id, cache.name, cache.members) for cache in controller.maxcache.volumes] == [("1", "cc", ("8:2",))]
    assert controller.drives[0].usage == "cache"


@pytest.mark.parametrize(
    "state, health",
    [
        ("Optimal", "healthy"),
        ("Degraded", "degraded"),
        ("Degraded(Need Attention)", "degraded"),
        ("Degraded (need attention)", "degraded"),
        ("Degraded (Charging)", "charging"),
        ("Failed", "failed"),
        ("Missing", "missing"),
        ("Learning", "learning"),
        ("Charging", "charging"),
        ("Unknown", "unknown"),
    ],
)
@pytest.mark.parametrize("table, kind", [("BBU_Info", "battery"), ("Cachevault_Info", "capacitor")])
def test_battery_and_cachevault_states(state, health, table, kind):
    for value in ([{"Model": "CVPM05", "State": state, "Temp": "29C"}], [{"Property": "Type", "Value": "CVPM05"}, {"Property": "State", "Value": state}]):
        unit = only(answer({table: value, "Status": {"BBU Status": 0}, "HwCfg": {"BBU": "Present"}})).protection
        assert (unit.kind, unit.health, unit.raw) == (kind, health, f"CVPM05 {state}")
        assert unit.learn_cycle == ("active" if health == "learning" else "unknown")


def test_battery_details_report_charge_and_learn_cycle():
    def listed(**properties):
        return [{"Property": label.replace("_", " "), "Value": value} for label, value in properties.items()]

    data = {
        "BBU_Info": listed(Type="BBU", Battery_State="Optimal"),
        "BBU_Firmware_Status": listed(Learn_Cycle_Active="Yes", Charging_Status="None"),
        "BBU_Capacity_Info": listed(Relative_State_of_Charge="98%"),
    }
    unit = only(answer(data)).protection
    assert (unit.kind, unit.health, unit.charge, unit.learn_cycle) == ("battery", "learning", 98, "active")
    data["BBU_Firmware_Status"] = listed(Learn_Cycle_Active="No", Learn_Cycle_Requested="No")
    unit = only(answer(data)).protection
    assert (unit.health, unit.learn_cycle) == ("healthy", "idle")


@pytest.mark.parametrize(
    "bits, health, learn",
    [
        (0, "healthy", "unknown"),
        (1, "missing", "unknown"),
        (8, "charging", "unknown"),
        (32, "unknown", "requested"),
        (32 + 2, "degraded", "requested"),
        (32 + 8, "charging", "requested"),
        (32 + 1024, "failed", "requested"),
        (8192, "unknown", "unknown"),
        (64, "learning", "active"),
        (128, "failed", "unknown"),
        (1024, "failed", "unknown"),
        (2048, "degraded", "unknown"),
        (4096, "healthy", "unknown"),
        (4096 + 64, "learning", "active"),
    ],
)
def test_status_bits_are_used_if_the_unit_has_no_row(bits, health, learn):
    unit = only(answer({"Status": {"BBU Status": bits}, "HwCfg": {"BBU": "Present"}})).protection
    assert (unit.kind, unit.health, unit.learn_cycle) == ("unknown", health, learn)


@pytest.mark.parametrize(
    ("state", "health"), [("Optimal", "healthy"), ("Optimal (Charging)", "charging"), ("Optimal(Zzyx)", "unknown"), ("Failed (Replace)", "failed")]
)
def test_reservation_about_a_unit_is_not_ignored(state, health):
    assert parse(answer({"BBU_Info": [{"Model": "iBBU", "State": state}]})).controllers[0].protection.health == health


@pytest.mark.parametrize("label", ["Replacement required", "Remaining Capacity Low", "Pack is about to fail & should be replaced"])
def test_unit_that_will_not_last_is_not_healthy(label):
    def health(word):
        tables = {"BBU_Info": [{"Property": "Battery State", "Value": "Optimal"}], "BBU_Firmware_Status": [{"Property": label, "Value": word}]}
        return only(answer(tables)).protection.health

    assert (health("No"), health("Yes")) == ("healthy", "degraded")


def test_missing_status_is_not_healthy():
    assert only(answer({"Status": {"BBU Status": 0}})).protection.health == "unknown"
    assert only(answer({"Status": {"BBU Status": "NA"}, "HwCfg": {"BBU": "Present"}})).protection.health == "unknown"
    assert only(answer({"Status": {"Controller Status": "OK"}})).protection.kind == "unknown"


@pytest.mark.parametrize(
    "label, supported, kind, health", [("BBU", "Yes", "unknown", "missing"), ("BBU", "No", "none", "unknown"), ("Energy Pack", "NA", "none", "unknown")]
)
def test_absent_unit_is_missing_if_supported(label, supported, kind, health):
    unit = only(answer({"HwCfg": {label: "Absent"}, "Supported Adapter Operations": {f"{label} ": supported}})).protection
    assert (unit.kind, unit.health) == (kind, health)
    assert unit.protects is False


def failure(message, **status):
    row = {"Ctrl": 0, "Status": "Failed", "Property": "-", "ErrMsg": message, "ErrCd": 34}
    return json.dumps({"Controllers": [{"Command Status": {"Controller": 0, "Status": "Failure", "Description": "None", "Detailed Status": [row], **status}}]})


@pytest.mark.parametrize(
    "message, kind, health",
    [("Battery is absent!", "battery", "missing"), ("use /cx/cv", "capacitor", "unknown"), ("Cachevault is absent!", "capacitor", "missing")],
)
def test_error_message_of_unit_query_determines_its_health(message, kind, health):
    unit = only(failure(message)).protection
    assert (unit.kind, unit.health, unit.raw) == (kind, health, message)


@pytest.mark.parametrize("message", ["Invalid VD number", "Un-supported Command", "No Controller found"])
def test_other_failures_give_no_controller(message):
    assert parse(failure(message)) == Reading()


@pytest.mark.parametrize(
    "data, mode",
    [
        ({"Status": {"Current Personality": "RAID-Mode "}}, "raid"),
        ({"Status": {"Current Personality": "JBOD-Mode "}}, "jbod"),
        ({"Current Personality": "HBA-Mode", "Driver Name": "megaraid_sas"}, "hba"),
        ({"Version": {"Driver Name": "mpt3sas"}}, "hba"),
        ({"Driver Name": "megaraid_sas", "PD LIST": [drive_row(State="JBOD")]}, "jbod"),
        ({"Driver Name": "megaraid_sas", "PD LIST": [drive_row(State="JBOD")], "VD LIST": [{"DG/VD": "0/0", "Cache": "RWBD"}]}, "mixed"),
        ({"Driver Name": "megaraid_sas", "VD LIST": [{"DG/VD": "0/0", "Cache": "RWBD"}]}, "raid"),
        ({"Driver Name": "megaraid_sas"}, "unknown"),
        ({"VD LIST": [{"DG/VD": "0/0", "Cache": "RWBD"}]}, "unknown"),
    ],
)
def test_mode(data, mode):
    assert only(answer(data)).mode == mode


@pytest.mark.parametrize(
    "status, known",
    [("Optimal", "optimal"), ("OK", "optimal"), ("Needs Attention", "needs_attention"), ("Degraded", "degraded"), ("Failed", "failed"), ("Odd", "odd")],
)
def test_status(status, known):
    assert only(answer({"Status": {"Controller Status": status}})).status == known


@pytest.mark.parametrize(
    "printed, memory, status", [("4096MB", 4 << 30, "unknown"), ("0 MB", 0, "absent"), ("0MB", 0, "absent"), ("N/A", None, "unknown"), (None, None, "unknown")]
)
def test_memory(printed, memory, status):
    cache = only(answer({"HwCfg": {} if printed is None else {"On Board Memory Size": printed}, "x": 1})).cache
    assert (cache.memory, cache.status) == (memory, status)


def test_builds_printing_gib_use_decimal_gb():
    row = {"DG/VD": "0/0", "TYPE": "RAID1", "State": "Optl", "Cache": "RWBD", "Size": "744.687 GiB"}
    controller = only(answer({"VD LIST": [row], "PD LIST": [drive_row(Size="800.00 GB")]}))
    assert controller.drives[0].size == 800 * 10**9
    assert controller.volumes[0].size == int(744.687 * 1024**3)


@pytest.mark.parametrize(
    "printed, known", [("00:c1:00:00", "0000:c1:00.0"), ("00:16:00:0", "0000:16:00.0"), ("01:0a:1f:07", "0001:0a:1f.7"), ("N/A", None), ("", None)]
)
def test_pci_addresses(printed, known):
    assert words.pci_address(printed) == known


def test_jbod_write_cache_class_requires_controller_support():
    assert only(answer({"Supported Adapter Operations": {"Support JBOD Write cache": "No"}})).drive_cache == {}
    able = only(answer({"Supported Adapter Operations": {"Support JBOD Write cache": "Yes"}}))
    assert able.drive_cache == {"jbod": "unknown"}
    shown = parse(answer({"Controller Properties": [{"Ctrl_Prop": "JBOD Write Cache", "Value": "Off"}]}))
    (joined,) = join([Reading((able,)), shown]).controllers
    assert joined.drive_cache == {"jbod": "disabled"}


def test_mixed_success_and_failure_of_several_controllers():
    blocks = [
        {"Command Status": {"Controller": 0, "Status": "Success"}, "Response Data": {"Product Name": "A"}},
        {"Command Status": {"Controller": 1, "Status": "Failure", "Description": "Un-supported Command"}},
        {"Command Status": {"Controller": 2, "Status": "Failure", "Description": "Incomplete foreign configuration"}, "Response Data": {"Product Name": "C"}},
    ]
    reading = parse(json.dumps({"Controllers": blocks}))
    assert [(controller.id, controller.model) for controller in reading.controllers] == [("0", "A"), ("2", "C")]
    assert reading.complete


def test_overview_lists_controllers():
    row = {"Ctl": 1, "Model": "MegaRAID", "BBU": "Dgd", "Hlth": "NdAtn"}
    other = {"Ctl": 0, "Model": "HBA", "PCI Address": "00:01:00:00"}
    reading = parse(answer({"Number of Controllers": 2, "System Overview": [row], "IT System Overview": [other]}))
    assert [(one.id, one.model, one.mode, one.status, one.protection.health, one.pci_address) for one in reading.controllers] == [
        ("1", "MegaRAID", "unknown", "needs_attention", "degraded", None),
        ("0", "HBA", "hba", "unknown", "unknown", "0000:01:00.0"),
    ]


@pytest.mark.parametrize("data", [{"Number of Controllers": 0, "Host Name": "a"}, {}])
def test_no_controller_is_a_valid_response(data):
    assert parse(answer(data)) == Reading()


def test_controller_number_falls_back_to_paths():
    text = answer({"/c4/v0": [{"DG/VD": "0/0", "Cache": "RWBD"}]}).replace('"Controller": 0,', "")
    assert only(text).id == "4"
    assert only(answer({"Product Name": "A"}).replace('"Controller": 0,', "")).id == "unknown"


def test_output_of_storcli2_is_rejected():
    reading = parse(answer({"Basics": {}}).replace("007.1616", "008.0005"))
    assert reading.controllers == ()
    assert not reading.complete
    assert "storcli2" in reading.not_understood[0]


def test_join_fills_unknown_values_and_overwrites_nothing():
    row = {"DG/VD": "0/5", "TYPE": "RAID1", "State": "Optl", "Cache": "RWTD", "Name": "a"}
    properties = {"Write Cache(initial setting)": "WriteBack", "SCSI NAA Id": "6000000012345678"}
    summary = parse(answer({"Driver Name": "megaraid_sas", "Current Personality": "RAID-Mode", "VD LIST": [row], "PD LIST": [drive_row()]}))
    details = parse(answer({"/c0/v5": [row], "PDs for VD 5": [drive_row()], "VD5 Properties": properties}))
    path = "Drive /c0/e252/s3"
    drives = parse(answer({path: [drive_row()], f"{path} - Detailed Information": {f"{path} Device attributes": {"SN": "S1", "Write Cache": "Enabled"}}}))
    (controller,) = join([summary, details, drives]).controllers
    assert controller.mode == "raid"
    (one,) = controller.volumes
    assert (one.write, one.wwn, one.members, one.scsi) == (Policy("writeback", "writethrough"), "6000000012345678", ("252:3",), (2, 5, 0))
    (drive,) = controller.drives
    assert (drive.serial, drive.write_cache, drive.media) == ("S1", "enabled", "hdd")


def test_join_keeps_controllers_separate():
    first, second = parse(answer({"Product Name": "A"})), parse(answer({"Product Name": "B"}, controller=1))
    assert [one.model for one in join([first, second]).controllers] == ["A", "B"]
    nameless = parse(answer({"Product Name": "C"}).replace('"Controller": 0,', ""))
    assert [one.model for one in join([nameless, nameless]).controllers] == ["C", "C"]


def test_learn_cycle_reported_only_by_the_unit_is_kept():
    summary = parse(answer({"BBU_Info": [{"Model": "iBBU08", "State": "Degraded"}]}))
    unit = parse(
        answer(
            {"BBU_Info": [{"Property": "Battery State", "Value": "Learning"}], "BBU_Capacity_Info": [{"Property": "Relative State of Charge", "Value": "40%"}]}
        )
    )
    protection = join([summary, unit]).controllers[0].protection
    assert (protection.health, protection.learn_cycle, protection.charge) == ("learning", "active", 40)


def test_truncated_capture_is_parsed_as_far_as_possible(shared_corpus):
    text = (shared_corpus / "transcribed" / "storcli_call-vall-show-all_RWTD-with-WriteBack-initial_truncated.txt").read_text(encoding="utf-8")
    reading = parse(text)
    assert [one.write for one in reading.controllers[0].volumes] == [Policy("writeback", "writethrough")]
    assert "line" in reading.not_understood[0]


def test_plain_text_and_json_agree(shared_corpus):
    """The HBA was captured both ways (on two hosts): the same facts are found in both."""
    found = [parse((shared_corpus / "storcli" / f"c0-show-all_hba-9400-16i.{ending}").read_text(encoding="utf-8")).controllers[0] for ending in ("json", "txt")]
    for controller in found:
        assert (controller.model, controller.mode, controller.driver, controller.cache.memory) == ("HBA 9400-16i", "hba", "mpt3sas", 0)
        assert len(controller.drives) > 10
        assert all(drive.serial and drive.wwn and drive.media != "unknown" for drive in controller.drives)


# What is lost

VD = {"TYPE": "RAID1", "State": "Optl", "Cache": "RWBD", "Size": "1.000 TB", "Name": ""}
PD = {"DID": 1, "State": "Onln", "DG": 0, "Size": "1.000 TB", "Intf": "SAS", "Med": "HDD", "Model": "X"}
DRIVE = {"DG": 0, "Arr": 0, "Row": 0, "Type": "DRIVE", "State": "Onln"}


def volumes_of(data):
    return [(one.id, one.members, one.members_untold) for one in parse(answer(data)).controllers[0].volumes]


@pytest.mark.parametrize("place", ["-", "", "252:?", " :x"])
def test_members_without_valid_address_are_counted(place):
    listed = {"VD LIST": [{**VD, "DG/VD": "0/0"}]}
    seen = {**DRIVE, "EID:Slot": "252:0"}
    assert volumes_of({**listed, "TOPOLOGY": [seen, {**DRIVE, "EID:Slot": place, "State": "Msng"}]}) == [("0", ("252:0",), 1)]
    drives = [{**PD, "EID:Slt": "252:0"}, {**PD, "EID:Slt": place}]
    assert volumes_of({"/c0/v0": [{**VD, "DG/VD": "0/0"}], "PDs for VD 0": drives}) == [("0", ("252:0",), 1)]
    assert volumes_of({**listed, "TOPOLOGY": [seen, {**DRIVE, "EID:Slot": "252:1"}]}) == [("0", ("252:0", "252:1"), 0)]


def test_member_missing_in_one_list_is_taken_from_the_other():
    summary = parse(answer({"VD LIST": [{**VD, "DG/VD": "0/0"}], "TOPOLOGY": [{**DRIVE, "EID:Slot": "252:0"}, {**DRIVE, "EID:Slot": "-"}]}))
    for drives, members, untold in ((("252:0", "252:1"), ("252:0", "252:1"), 0), (("252:0",), ("252:0",), 1), ((), ("252:0",), 1)):
        rows = [{**PD, "EID:Slt": address} for address in drives]
        details = parse(answer({"/c0/v0": [{**VD, "DG/VD": "0/0"}], "PDs for VD 0": rows}))
        for order in ([summary, details], [details, summary]):
            (one,) = join(order).controllers[0].volumes
            assert (set(one.members), one.members_untold) == (set(members), untold)


@pytest.mark.parametrize(
    ("data", "clause"),
    [
        ({"VD LIST": [{**VD, "DG/VD": "1/x"}]}, "DG/VD: 1/x"),
        ({"/c0/v1": [{**VD, "DG/VD": "?"}]}, "DG/VD: ?"),
        ({"VD LIST": [{**VD, "DG?VD": "1/1"}]}, "a row without DG/VD"),
        ({"PD LIST": [{**PD, "EID:Slt": "252:?"}]}, "EID:Slt: 252:?"),
        ({"PD LIST": [{**PD, "EID?Slt": "252:3"}]}, "a row without EID:Slt"),
        ({"VD LIST": [{**VD, "DG/VD": "1/1"}, {**VD, "DG/VD": "2/1"}]}, "DG/VD: 2/1, twice in one list"),
        ({"PD LIST": [{**PD, "EID:Slt": "252:1"}, {**PD, "EID:Slt": "252: 1"}]}, "EID:Slt: 252: 1, twice in one list"),
        ({"/c0/v1": [{**VD, "DG/VD": "1/1"}], "/c0/v2": [{**VD, "DG/VD": "2/1"}]}, "DG/VD: 2/1, twice in one list"),
        ({"Virtual Drives": 2, "VD LIST": [{**VD, "DG/VD": "1/1"}]}, "Virtual Drives: 2, and 1 are listed"),
        ({"Physical Drives": "2", "PD LIST": [{**PD, "EID:Slt": "252:1"}]}, "Physical Drives: 2, and 1 are listed"),
    ],
)
def test_unidentified_volumes_and_drives_are_lost(data, clause):
    reading = parse(answer(data))
    assert [reported for reported in reading.lost if clause in reported]
    assert set(reading.lost) <= set(reading.not_understood)
    assert join([parse(answer({"PD LIST": []})), reading]).lost == reading.lost


IR = {"Driver Name": "mpt3sas", "Physical Drives": 2, "PD LIST": [{**PD, "EID:Slt": f" :{slot}", "State": "Online", "DG": "-"} for slot in (0, 1)]}
IR_VOLUME = {"VD": "0", "TYPE": "RAID1", "State": "Optl", "Access": "RW", "Consist": "No", "Cache": "NRWTD", "Size": "930.390 GB", "Name": ""}


def test_volume_of_an_adapter_has_no_group():
    one = only(answer({**IR, "Virtual Drives": 1, "VD LIST": [IR_VOLUME]}))
    (volume,) = one.volumes
    assert (volume.id, volume.raid_level, volume.status, volume.write.effective, volume.read.effective) == ("0", "1", "optimal", "writethrough", "none")
    assert (volume.io.effective, volume.drive_cache, volume.members_untold) == ("direct", "unknown", 2)
    assert [drive.usage for drive in one.drives] == ["configured", "configured"]
    assert one.mode == "raid"


@pytest.mark.parametrize(("without", "mode"), [({"VD LIST"}, "raid"), ({"VD LIST", "Virtual Drives"}, "raid"), ({"VD LIST", "PD LIST"}, "raid")])
def test_adapter_that_lost_its_volume_is_no_hba(without, mode):
    data = {key: value for key, value in {**IR, "Virtual Drives": 1, "VD LIST": [IR_VOLUME]}.items() if key not in without}
    assert only(answer(data)).mode == mode


def test_labels_are_compared_without_letter_case_and_blanks():
    row = {"dg/vd": "1/3", "Type": "RAID5", "STATE": "Optl", "cache": "RWBD"}
    drive = {"Eid:Slt": "8:1", "did": 1, "state": "Onln", "dg": 1, "intf": "SAS"}
    data = {"/C0/V3": [row], "VD3 properties": {"write cache(Initial Setting)": "WriteBack", "disk cache policy": "Disabled"}, "drive list": [drive]}
    one = only(answer({**data, "Drive /c0/e8/s1 Device Attributes": {"Write cache": "Enabled"}}))
    (volume,) = one.volumes
    assert (volume.raid_level, volume.status, volume.write, volume.drive_cache) == ("5", "optimal", Policy("writeback", "writeback"), "disabled")
    assert [(drive.address, drive.usage, drive.write_cache) for drive in one.drives] == [("8:1", "configured", "enabled")]


@pytest.mark.parametrize(
    ("row", "place", "usage"),
    [
        ({"State": "Onln", "DG": "-", "Type": "JBOD"}, "PD LIST", "jbod"),
        ({"State": "Onln", "DG": "-"}, "JBOD LIST", "jbod"),
        ({"State": "Onln", "DG": "-"}, "Drive LIST", "unknown"),
        ({"State": "Onln"}, "PD LIST", "unknown"),
        ({"State": "Onln", "DG": 0, "Type": "-"}, "Drive LIST", "configured"),
        ({"State": "GHS", "DG": "-", "Type": "-"}, "PD LIST", "spare"),
    ],
)
def test_usage_follows_from_type_group_and_list(row, place, usage):
    assert [drive.usage for drive in only(answer({place: [{"EID:Slt": "252:1", "DID": 1, "Intf": "SATA", **row}]})).drives] == [usage]


def test_unknown_label_about_a_cache_is_reported():
    reading = parse(answer({"/c0/v1": [{**VD, "DG/VD": "0/1"}], "VD1 Properties": {"Disk Cache Policy": "Disk's Default", "Write Cache Status": "Enabled"}}))
    assert reading.controllers[0].volumes[0].drive_cache == "default"
    assert reading.not_understood[0].startswith("Write Cache Status: Enabled (line ")


def test_state_of_the_unit_takes_precedence_over_soft_bits():
    def unit(bits, state):
        summary = parse(answer({"Status": {"BBU Status": bits}, "HwCfg": {"BBU": "Present"}}))
        return join([summary, parse(answer({"Cachevault_Info": [{"Property": "State", "Value": state}]}))]).controllers[0].protection

    assert (unit(32, "Optimal").kind, unit(32, "Optimal").health, unit(32, "Optimal").learn_cycle) == ("capacitor", "healthy", "requested")
    assert unit(32, "Degraded").health == "degraded"
    assert unit(1024, "Optimal").health == "failed"
    assert unit(64, "Optimal").health == "learning"


def test_loss_belongs_to_its_controller():
    blocks = [json.loads(answer({"VD LIST": [{**VD, "DG/VD": name}]}, number))["Controllers"][0] for number, name in ((0, "0/0"), (1, "0/?"))]
    reading = parse(json.dumps({"Controllers": blocks}))
    assert reading.lost_for("0") == ()
    assert len(reading.lost_for("1")) == len(reading.lost) == 1
    assert reading.lost[0].startswith("controller 1: DG/VD: 0/?")
    assert join([reading, parse(answer({"PD LIST": []}))]).lost_for("0") == ()


def test_missing_drive_is_not_lost():
    assert parse(answer({"PD LIST": [{**PD, "EID:Slt": "-"}]})).lost == ()
