# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader of ssacli: its tree of blanks, its vocabulary, real captures, and what it does with damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._health import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import in_force, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller import model
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Policy, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli import text as ssacli_text
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.provider import SsaCli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.text import DRIVE_POLICIES, SWITCHES, parse, parse_configuration
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

NEW = """\

HPE Smart Array P000i-a SR Gen10 in Slot 3 (Embedded)
   Bus Interface: PCI
   Slot: 3
   Serial Number: SERIAL0
   Controller Status: OK
   Firmware Version: 9.99
   Cache Board Present: True
   Cache Status: OK
   Cache Ratio: 10% Read / 90% Write
   Configured Drive Write Cache Policy: Disable
   Unconfigured Drive Write Cache Policy: Default
   HBA Drive Write Cache Policy: Enable
   Total Cache Size: 4.0
   No-Battery Write Cache: Disabled
   Cache Backup Power Source: Capacitors
   Battery/Capacitor Count: 1
   Battery/Capacitor Status: OK
   Driver Name: smartpqi
   PCI Address (Domain:Bus:Device.Function): 0000:5C:00.0
   Controller Mode: Mixed
   Sensor ID: 0
      Location: Capacitor

   Port Name: 1I
         Port ID: 0

   Internal Drive Cage at Port 1I, Box 1, OK

      Drive Bays: 4
      Serial Number: CAGE

   Physical Drives
      physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SAS SSD, 800 GB, OK)
      physicaldrive 1I:1:2 (port 1I:box 1:bay 2, SAS SSD, 800 GB, OK)
      physicaldrive 1I:1:3 (port 1I:box 1:bay 3, SATA HDD, 1 TB, OK, spare)

   Array: A
      Interface Type: Solid State SAS
      Status: OK
      Array Type: Data
      Smart Path: disable

      Logical Drive: 7
         Size: 745.18 GB
         Fault Tolerance: 1+0
         Status: OK
         Caching:  Enabled
         Unique Identifier: 600508B1001C0000000000000000ABCD
         Disk Name: /dev/sdc
         Mount Points: None
         Logical Drive Label: Data 01
         Mirror Group 1:
            physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SAS SSD, 800 GB, OK)
         Mirror Group 2:
            physicaldrive 1I:1:2 (port 1I:box 1:bay 2, SAS SSD, 800 GB, OK)
         Drive Type: Data
         LD Acceleration Method: Controller Cache

      physicaldrive 1I:1:1
         Status: OK
         Drive Type: Data Drive
         Interface Type: Solid State SAS
         Size: 800 GB
         Firmware Revision: F1
         Serial Number: S1
         WWID: 5000C50000000001
         Model: HP      MODEL1
         PHY Count: 2

      physicaldrive 1I:1:2
         Status: Failed
         Drive Type: Data Drive
         Interface Type: Solid State SAS
         Size: 800 GB

      physicaldrive 1I:1:3
         Status: OK
         Drive Type: Spare Drive
         Interface Type: SATA
         Size: 1 TB
         Rotational Speed: 7200

   SEP (Vendor ID HPE, Model Smart Adapter) 379
      Device Number: 379
      Firmware Version: 1.11
"""

UNSUPPORTED = """
Error: This operation is not supported with the current configuration. Use the
       "show" command on devices.
       Reason: Feature requires license key

"""


def changed(**lines):
    """The text above with the value of a line changed, or the line dropped; blanks in labels are written as underscores."""
    rows = NEW.split("\n")
    for key, value in lines.items():
        label = key.replace("__", "/").replace("_", " ")
        found = [index for index, row in enumerate(rows) if row.strip().lower().startswith(label.lower() + ":")]
        assert found, label
        row = rows[found[0]]
        rows[found[0]] = "" if value is None else f"{row[: row.index(':') + 1]} {value}"
    return "\n".join(rows)


def only(text):
    reading = parse(text)
    assert reading.not_understood == ()
    assert reading.complete
    (controller,) = reading.controllers
    return controller


def test_controller_fields():
    controller = only(NEW)
    assert (controller.id, controller.model, controller.serial, controller.firmware) == ("3", "HPE Smart Array P000i-a SR Gen10", "SERIAL0", "9.99")
    assert (controller.driver, controller.pci_address, controller.mode, controller.status) == ("smartpqi", "0000:5c:00.0", "mixed", "optimal")
    assert controller.cache == model.CacheModule("ok", "", 4 * 1024**3)
    assert controller.protection == model.Protection("capacitor", model.HEALTHY, raw="Battery/Capacitor Status: OK")
    assert controller.drive_cache == {"configured": "disabled", "unconfigured": "default", "hba": "enabled"}
    assert (controller.cache_ratio, controller.no_battery_write_cache) == (10, "disabled")


def test_volume_and_its_drives():
    controller = only(NEW)
    (volume,) = controller.volumes
    assert (volume.id, volume.name, volume.wwn, volume.array) == ("7", "Data 01", "600508b1001c0000000000000000abcd", "A")
    assert (volume.raid_level, volume.status, volume.size) == ("10", "optimal", int(745.18 * 1024**3))
    assert (volume.os_device, volume.acceleration, volume.drive_cache) == ("/dev/sdc", "controller_cache", "disabled")
    assert volume.members == ("1I:1:1", "1I:1:2")
    assert volume.read == Policy("read_ahead", "read_ahead")
    assert volume.write == Policy("writeback", "writeback")
    first, second, spare = controller.drives
    assert (first.address, first.model, first.serial, first.wwn, first.size) == ("1I:1:1", "HP MODEL1", "S1", "5000c50000000001", 800 * 1000**3)
    assert (first.media, first.interface, first.usage, first.write_cache) == ("ssd", "sas", "configured", "unknown")
    assert (second.state, spare.usage, spare.media, spare.size) == ("failed", "spare", "hdd", 1000**4)


@pytest.mark.parametrize(
    ("lines", "read", "write"),
    [
        ({"Caching": "Disabled"}, Policy("none", "none"), Policy("writethrough", "writethrough")),
        ({"No-Battery_Write_Cache": "Enabled"}, Policy("read_ahead", "read_ahead"), Policy("writeback_always", "writeback_always")),
        ({"Cache_Status": "Temporarily Disabled"}, Policy("read_ahead", "none"), Policy("writeback", "writethrough")),
        ({"Cache_Status": "Permanently Disabled"}, Policy("read_ahead", "none"), Policy("writeback", "writethrough")),
        ({"Cache_Status": "Not Configured"}, Policy("read_ahead", "none"), Policy("writeback", "writethrough")),
        ({"Cache_Status": None}, Policy("read_ahead", "unknown"), Policy("writeback", "unknown")),
        ({"Cache_Ratio": "100% Read / 0% Write"}, Policy("read_ahead", "read_ahead"), Policy("writeback", "writethrough")),
        ({"Cache_Board_Present": "False"}, Policy("read_ahead", "none"), Policy("writeback", "writethrough")),
        ({"Caching": None}, Policy(), Policy()),
    ],
)
def test_effective_settings(lines, read, write):
    (volume,) = parse(changed(**lines)).controllers[0].volumes
    assert (volume.read, volume.write) == (read, write)


@pytest.mark.parametrize(
    ("status", "health", "protects"),
    [
        ("OK", "healthy", True),
        ("Recharging", "charging", False),
        ("OK (Recharging)", "charging", False),
        ("Failed (Replace Batteries)", "failed", False),
        ("Failed (Replace Batteries/Capacitors)", "failed", False),
    ],
)
def test_protection(status, health, protects):
    protection = only(changed(Battery__Capacitor_Status=status)).protection
    assert (protection.health, protection.protects) == (health, protects)
    assert status in protection.raw


@pytest.mark.parametrize(
    ("line", "note", "reason"), [("Cache Status: OK", "WORDS", ""), ("Cache Status: Temporarily Disabled", "", "WORDS"), ("", "WORDS", "")]
)
def test_details_are_a_reason_only_if_the_cache_is_disabled(line, note, reason):
    cache = only(NEW.replace("Cache Status: OK", f"{line}\n   Cache Status Details: WORDS".strip())).cache
    assert (cache.note, cache.reason) == (note, reason)


def test_reservation_about_a_unit_is_not_ignored():
    reading = parse(changed(Battery__Capacitor_Status="OK (Zzyx)"))
    assert (reading.controllers[0].protection.health, len(reading.not_understood)) == ("unknown", 1)


def test_broken_cable_is_unknown_health():
    text = changed(Battery__Capacitor_Status=None, Cache_Status="Permanently Disabled\n   Cache Status Details: Cable Error")
    controller = only(text)
    assert (controller.protection.health, controller.protection.protects) == ("unknown", None)
    assert controller.protection.raw == "Cable Error"
    assert (controller.cache.status, controller.cache.reason) == ("permanently_disabled", "Cable Error")
    missing = only(changed(Battery__Capacitor_Status=None, Battery__Capacitor_Count="0")).protection
    assert (missing.health, missing.protects) == ("missing", False)


def test_details_of_a_cache_that_works_explain_nothing():
    """Neither why writes pass through, nor why nothing is reported about the battery."""
    details = "The current array controller had valid data stored in its battery/capacitor backed write cache the last time it was reset."
    text = changed(Cache_Status=f"OK\n   Cache Status Details: {details}", Cache_Ratio="100% Read / 0% Write")
    tool = SsaCli(ScriptedRunner({("ssacli",): Reply(text)}), "ssacli")
    wanted = parse_controllers([{"provider": "ssacli", "id": "3", "cache_ratio": 90, "volumes": [{"id": "7", "write": "writeback"}]}])
    (one,) = in_force.not_in_force(registry.read_host([tool]), wanted)
    assert (one.found, one.cause) == ("writethrough", "the cache ratio gives 0 % of the cache to writes (cache_ratio: 100)")
    (finding,) = rules.controller_findings([only(text)])
    assert (finding.severity, finding.check, details in finding.message) == ("info", "controller_cache_note", True)
    silent = only(changed(Cache_Status=f"OK\n   Cache Status Details: {details}", Battery__Capacitor_Status=None))
    assert (silent.protection.health, silent.protection.raw) == ("unknown", "")


def test_legacy_labels():
    text = changed(
        Cache_Ratio="x",
        Configured_Drive_Write_Cache_Policy=None,
        Unconfigured_Drive_Write_Cache_Policy=None,
        HBA_Drive_Write_Cache_Policy=None,
        Fault_Tolerance="RAID 6 (ADG)",
    )
    text = text.replace("Cache Ratio: x", "Accelerator Ratio: 25% Read / 75% Write\n   Drive Write Cache: Enabled").replace(
        "Caching:  Enabled", "Array Accelerator: Enabled"
    )
    text = (
        text.replace("   Array: A", "   array A").replace("Controller Mode: Mixed", "Total Cache Memory Available: 208 MB").replace("Size: 4.0", "Size: 256 MB")
    )
    controller = only(text)
    assert (controller.cache_ratio, controller.drive_cache, controller.mode, controller.cache.memory) == (25, {"all": "enabled"}, "unknown", 256 * 1024**2)
    assert (controller.volumes[0].write.configured, controller.volumes[0].raid_level, controller.volumes[0].drive_cache) == ("writeback", "6", "enabled")
    assert controller.traits["volume_switch"] == "arrayaccelerator"


def test_two_labels_on_one_line():
    text = NEW.replace("Array Type: Data\n      Smart Path: disable", "Array Type: Data       HPE SSD Smart Path: enable").replace(
        "Disk Name: /dev/sdc\n         Mount Points: None", "Disk Name: /dev/sdc          Mount Points: None"
    )
    controller = only(text)
    assert controller.traits["smart_path"] == {"A": True}
    assert controller.volumes[0].os_device == "/dev/sdc"


def test_interspersed_warnings_do_not_end_a_section():
    warning = "\n\nWarning: Unrecoverable Media Errors Detected on Drives during previous Rebuild \nor Background Surface Analysis (ARM) scan.\n\n"
    text = NEW.replace("(Embedded)\n", f"(Embedded)\n{warning}").replace("      Logical Drive: 7\n", f"{warning}      Logical Drive: 7\n")
    assert only(text) == only(NEW)


def test_hba_mode():
    text = """
Smart Array P840ar in Slot 0 (Embedded) (HBA Mode)
   Slot: 0
   Controller Status: OK
   HBA Mode Enabled: True
   Controller Mode: HBA

   HBA Drives

      physicaldrive 1I:1:13
         Status: OK
         Drive Type: HBA Mode Drive
         Interface Type: SAS
         Size: 3 TB
         Rotational Speed: 7200
         Disk Name: /dev/sda
"""
    controller = only(text)
    assert (controller.mode, controller.drives[0].usage, controller.drives[0].media) == ("hba", "hba", "hdd")
    assert controller.traits["drive_devices"] == {"1I:1:13": "/dev/sda"}
    assert controller.cache == model.CacheModule()
    assert only("Smart HBA H240 in Slot 1 (RAID Mode)\n   Slot: 1\n").mode == "raid"


def test_short_listings():
    text = """
Smart Array P400 in Slot 1                (sn: SERIAL1)

   array A (SAS, Unused Space: 0  MB)

      logicaldrive 1 (410.1 GB, RAID 5, Interim Recovery Mode)

      physicaldrive 2I:1:1 (port 2I:box 1:bay 1, SAS, 146 GB, OK)
      physicaldrive 2:1 (port 2:id 1 , Parallel SCSI, 36.4 GB, OK)

   unassigned

      physicaldrive 2I:1:9 (port 2I:box 1:bay 9, SAS HDD, 146 GB, Failed)
"""
    controller = only(text)
    assert (controller.serial, controller.volumes[0].raid_level, controller.volumes[0].status, controller.volumes[0].array) == ("SERIAL1", "5", "degraded", "A")
    assert [(drive.address, drive.interface, drive.usage, drive.state) for drive in controller.drives] == [
        ("2I:1:1", "sas", "configured", "ok"),
        ("2:1", "scsi", "configured", "ok"),
        ("2I:1:9", "sas", "unconfigured", "failed"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "Error: No controllers detected. Possible causes: The driver for the installed controller(s) is not loaded.\n",
        UNSUPPORTED,
        "\nError: The specified device does not have any logical drives.\n",
        "CLI Syntax\n   A typical SSACLI command line consists of three parts: a target device,\n   a command, and a parameter with values if necessary.\n",
        "\n   logicaldrive 1 (136.7 GB, RAID 1): OK\n",
        "\n   physicaldrive 1I:1:1 (port 1I:box 1:bay 1, 146 GB): OK\n",
        "\n   SSACLI Version: 9.9.9.0\n   SOULAPI Version: 9.9.9.0\n\n",
    ],
)
def test_output_without_controllers(text):
    assert parse(text) == Reading()


def test_errors_include_their_reason():
    assert ssacli_text.errors(UNSUPPORTED) == [
        'This operation is not supported with the current configuration. Use the "show" command on devices. Reason: Feature requires license key'
    ]


@pytest.mark.parametrize("text", ["Controllers found: 1\nController information\n", '{"Controllers": []}', "\x00\xff\x1b[31m", "   indented: only\n"])
def test_foreign_text_is_rejected(text):
    reading = parse(text)
    assert not reading.complete
    assert reading.controllers == ()
    assert reading.not_understood


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Caching:  Enabled", "Caching:  Sideways", "Sideways"),
        ("Cache Status: OK", "Cache Status: Odd", "Odd"),
        ("Capacitor Status: OK", "Capacitor Status: Odd", "Odd"),
        ("10% Read / 90% Write", "10% Read / 91% Write", "91%"),
        ("Policy: Disable", "Policy: Perhaps", "Perhaps"),
        ("Fault Tolerance: 1+0", "Fault Tolerance: many", "many"),
        ("Controller Mode: Mixed", "Controller Mode: Odd", "Odd"),
        ("0000:5C:00.0", "0000:5C", "0000:5C"),
        ("Size: 745.18 GB", "Size: big", "big"),
        ("      Logical Drive: 7", "      Logical Drive: x", "Logical Drive: x"),
        ("   Array: A\n", "", "belongs to no array"),
    ],
)
def test_known_labels_with_invalid_values_are_quoted_and_unknown(old, new, message):
    assert old in NEW
    reading = parse(NEW.replace(old, new))
    assert any(message in text for text in reading.not_understood)


def test_invalid_values_do_not_become_settings():
    (controller,) = parse(NEW.replace("Caching:  Enabled", "Caching:  Sideways").replace("Capacitor Status: OK", "Capacitor Status: Odd")).controllers
    assert controller.volumes[0].write == Policy()
    assert controller.protection.protects is None


def test_truncated_output_is_incomplete():
    assert not parse(NEW[: NEW.index("Caching")]).complete
    for label in ("      Logical Drive: 7", "      physicaldrive 1I:1:2\n", "      physicaldrive 1I:1:3\n"):
        assert not parse_configuration(NEW[: NEW.index(label) + len(label)].rstrip("\n") + "\n").complete, label
    head = NEW[: NEW.index("   Port Name")]
    assert parse(head).complete
    assert not parse_configuration(head).complete


def test_duplicate_slot_is_counted_once():
    reading = parse(NEW + NEW)
    assert len(reading.controllers) == 1
    assert any("slot 3 again" in text for text in reading.not_understood)


@pytest.mark.parametrize(("table", "ours"), [(SWITCHES, {"enabled", "disabled"}), (DRIVE_POLICIES, {"enabled", "disabled", "default"})])
def test_every_value_has_a_word(table, ours):
    assert set(table.values()) == ours


# The corpus.


def files(corpus):
    return sorted((corpus / "ssacli").iterdir())


def test_every_capture_is_parsed_completely(shared_corpus):
    found = files(shared_corpus)
    assert len(found) == 7
    for file in found:
        reading = parse(file.read_text())
        assert reading.controllers, file.name
        assert (reading.not_understood, reading.complete) == ((), True), file.name
        for controller in reading.controllers:
            assert controller.id != "unknown"
            assert controller.volumes or controller.mode != "unknown", file.name


def test_captured_values(shared_corpus):
    read = {file.name: parse(file.read_text()).controllers for file in files(shared_corpus)}
    (failed,) = read["netdata_ssacli-P400i-unassigned.txt"]
    assert (failed.cache.status, failed.cache.reason) == ("temporarily_disabled", "Cache disabled; low batteries.")
    assert (failed.protection.kind, failed.protection.health, failed.driver) == ("battery", "failed", "cciss")
    assert failed.volumes[0].write == Policy("writeback", "writethrough")
    assert [drive.usage for drive in failed.drives] == ["configured", "configured", "unconfigured", "unconfigured"]
    (mixed,) = read["netdata_ssacli-P408i-a.txt"]
    assert (mixed.mode, mixed.cache_ratio, mixed.drive_cache) == ("mixed", 20, {"configured": "enabled", "unconfigured": "default"})
    assert mixed.volumes[0].write == Policy("writeback_always", "writeback_always")
    assert mixed.volumes[0].members == ("2I:1:1", "2I:1:2", "2I:1:3", "2I:1:4")
    external, embedded = read["netdata_ssacli-P212_P410i.txt"]
    assert (external.id, embedded.id, external.protection.health) == ("5", "0", "unknown")
    assert [len(external.volumes), len(embedded.volumes), len(external.drives), len(embedded.drives)] == [1, 2, 12, 6]
    (listing,) = read["scality_ld-all-show-detail.txt"]
    assert [volume.id for volume in listing.volumes] == [str(number) for number in range(1, 12)]
    assert (listing.volumes[0].acceleration, listing.volumes[0].write.configured, listing.volumes[0].raid_level) == ("io_bypass", "writethrough", "1")
    (big, other) = read["wikimedia_hpssacli-config-detail.txt"]
    assert (big.id, other.id, len(big.drives), len(other.drives)) == ("3", "1", 24, 14)
    assert [volume.raid_level for volume in other.volumes] == ["1", "10"]


def test_captures_of_other_tools_are_rejected(shared_corpus):
    for folder in ("arcconf", "storcli", "megacli", "mvcli"):
        for file in sorted((shared_corpus / folder).iterdir()):
            reading = parse(file.read_text(errors="replace"))
            assert reading.controllers == (), file.name


SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(data=st.data())
def test_truncated_configuration_is_detected_or_harmless(shared_corpus, data):
    """A cut is either noticed, or what is left tells nothing else than the whole about what it still has."""
    text = data.draw(st.sampled_from([file for file in files(shared_corpus) if "config" in file.name or "netdata" in file.name])).read_text()
    whole = parse_configuration(text)
    part = parse_configuration(text[: data.draw(st.integers(0, len(text)))])
    if part.complete:
        known = {(controller.id, volume.id): volume for controller in whole.controllers for volume in controller.volumes}
        for controller in part.controllers:
            for volume in controller.volumes:
                assert volume.write == known[controller.id, volume.id].write


# What is lost

DETAILS = "      physicaldrive 1I:1:1\n         Status: OK\n"
GROUPED = "            physicaldrive 1I:1:2 (port 1I:box 1:bay 2, SAS SSD, 800 GB, OK)\n"


@pytest.mark.parametrize("heading", ["Logical Drive: ?", "Log?cal Drive: 7", "Logical Drive 7", "l\x00gicaldrive", None])
def test_logical_drive_with_damaged_heading_is_lost(heading):
    reading = parse(NEW.replace("      Logical Drive: 7\n", "" if heading is None else f"      {heading}\n"))
    assert reading.controllers[0].volumes == ()
    assert [message for message in reading.lost if "logical drive" in message]
    assert set(reading.lost) <= set(reading.not_understood)


@pytest.mark.parametrize("heading", ["physicaldrive ?", "physicaldrive 1I:1:?", "phys?caldrive 1I:1:1", None])
def test_physical_drive_with_damaged_heading_is_lost(heading):
    reading = parse(NEW.replace(DETAILS, f"{'' if heading is None else f'      {heading}'}\n         Status: OK\n"))
    assert [message for message in reading.lost if "physical drive" in message]
    assert set(reading.lost) <= set(reading.not_understood)


@pytest.mark.parametrize("model", ["HPE Smart Array P000i-a SR Gen10 in Sl?t 4", "HPE Smart Array in Slot ?", "?"])
def test_controller_with_damaged_heading_is_lost(model):
    other = NEW.replace("HPE Smart Array P000i-a SR Gen10 in Slot 3 (Embedded)", model)
    reading = parse(NEW + other)
    assert [one.id for one in reading.controllers] == ["3"]
    assert [message for message in reading.lost if "a controller that is not named here" in message]
    assert not reading.complete


def test_duplicate_items_are_reported_as_lost():
    assert any("reports slot 3 again" in message for message in parse(NEW + NEW).lost)
    second = NEW[NEW.index("      Logical Drive: 7") : NEW.index("      physicaldrive 1I:1:1\n")]
    assert any("reports logical drive 7 again" in message for message in parse(NEW.replace(DETAILS, second + DETAILS)).lost)
    assert any("reports drive 1I:1:1 again" in message for message in parse(NEW.replace("      physicaldrive 1I:1:2\n", "      physicaldrive 1I:1:1\n")).lost)


def test_unidentified_members_are_counted():
    (one,) = parse(NEW.replace(GROUPED, "            physicaldrive 1I:?:2 (port 1I:box 1:bay 2)\n")).controllers[0].volumes
    assert (one.members, one.members_untold) == (("1I:1:1",), 1)
    start, end = NEW.index("         Mirror Group 1"), NEW.index("         Drive Type: Data\n")
    ungrouped = NEW[:start] + NEW[end:]
    (one,) = parse(ungrouped).controllers[0].volumes
    assert (one.members, one.members_untold) == (("1I:1:1", "1I:1:2"), 0)
    (one,) = parse(ungrouped.replace("      physicaldrive 1I:1:1\n", "      physicaldrive 1?:1:1\n")).controllers[0].volumes
    assert (one.members, one.members_untold) == (("1I:1:2",), 1)
    (one,) = parse(ungrouped.replace("   Array: A\n", "   Arr?y: A\n")).controllers[0].volumes
    assert (one.members, one.members_untold) == ((), 1)
