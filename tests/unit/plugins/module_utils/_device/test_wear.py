# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import WEAR_ATTRIBUTES, parse_smartctl

PATH = "/dev/disk/by-id/ata-SSD0"


def attribute(number, name, value, raw, *, thresh=0, string=None, when_failed=""):
    return {
        "id": number,
        "name": name,
        "value": value,
        "worst": value,
        "thresh": thresh,
        "when_failed": when_failed,
        "raw": {"value": raw, "string": string or str(raw)},
    }


def ata(*attributes, **further):
    return json.dumps(
        {
            "smartctl": {"exit_status": 0},
            "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
            "model_name": "TESTSSD",
            "serial_number": "S1",
            "rotation_rate": 0,
            "in_smartctl_database": True,
            "smart_status": {"passed": True},
            "ata_smart_attributes": {"table": list(attributes)},
            **further,
        }
    )


def statistics(name, value, *, number=7, valid=True):
    return {"pages": [{"number": number, "name": "page", "table": [{"name": name, "value": value, "flags": {"valid": valid}}]}]}


def nvme(**log):
    full = {"critical_warning": 0, "available_spare": 100, "available_spare_threshold": 10, "percentage_used": 0, "media_errors": 0, **log}
    return json.dumps({"device": {"name": "/dev/nvme0n1", "protocol": "NVMe"}, "nvme_smart_health_information_log": full})


def parse(text, rc=0):
    return parse_smartctl(text, rc, "sda", PATH)


@pytest.mark.parametrize("name", WEAR_ATTRIBUTES)
def test_wear_is_read_from_normalized_value_by_attribute_name(name):
    drive = parse(ata(attribute(202, name, 93, 4711)))
    assert drive.wear_used_percent == 7
    assert name in drive.evidence["wear_used_percent"]


@pytest.mark.parametrize(
    "name", ["Flash_Writes_GiB", "Lifetime_Wts_To_Flsh_GB", "NAND_GB_Written_TLC", "Data_Address_Mark_Errs", "Wear_Range_Delta", "Temperature"]
)
def test_same_attribute_number_under_other_name_is_not_wear(name):
    assert parse(ata(*(attribute(number, name, 93, 7) for number in (177, 202, 231, 233)))).wear_used_percent is None


@pytest.mark.parametrize(
    ("number", "name", "family", "value", "raw", "used"),
    [
        # The normalised value of these controllers stays at 100.
        (231, "SSD_Life_Left", "Phison Driven SSDs", 100, 74, 26),
        (231, "SSD_Life_Left", "Phison Driven SSDs", 100, 100, 0),
        (231, "SSD_Life_Left", "Phison Driven SSDs", 100, 0, None),
        (169, "Remaining_Lifetime_Perc", "Silicon Motion based SSDs", 100, 98, 2),
        (231, "SSD_Life_Left", "SandForce Driven SSDs", 100, 0, 0),
        (231, "SSD_Life_Left", "SandForce Driven SSDs", 92, 0, 8),
        # The raw value is the used part, or the same.
        (202, "Percent_Lifetime_Remain", "Micron SSDs", 93, 7, 7),
        (202, "Percent_Lifetime_Remain", "Micron SSDs", 100, 0, 0),
        (202, "Percent_Lifetime_Used", "Crucial/Micron SSDs", 99, 1, 1),
        (233, "Remaining_Lifetime_Perc", "OCZ SSDs", 88, 88, 12),
        (245, "Percent_Life_Remaining", "Other SSDs", 100, 61, None),
        (202, "Percent_Lifetime_Remain", "Micron SSDs", 100, 26, None),
        (233, "Media_Wearout_Indicator", "Other SSDs", 100, 74, None),
        # It counts something else.
        (233, "Media_Wearout_Indicator", "Intel 730 and DC S35x0 Series SSDs", 97, 12, 3),
        (177, "Wear_Leveling_Count", "Samsung based SSDs", 98, 34, 2),
        (202, "Percent_Lifetime_Remain", "Micron SSDs", 93, 4711, 7),
    ],
)
def test_raw_and_normalised_value_are_held_against_each_other(number, name, family, value, raw, used):
    drive = parse(ata(attribute(number, name, value, raw), model_family=family))
    assert drive.wear_used_percent == used
    assert ("contradicts" in drive.evidence["wear_used_percent"]) is (used is None)


@pytest.mark.parametrize(
    ("raw", "used"), [(0x25060D282506, 37), (0x002001140020, 0), (0x640001146400, 100), (0x25060D282507, None), (0x25FF0D2825FF, None), (37, None), (0, None)]
)
@pytest.mark.parametrize("value", [1, 37, 63, 100])
def test_wear_of_wd_and_sandisk_is_in_the_raw_value(raw, used, value):
    drive = parse(ata(attribute(230, "Media_Wearout_Indicator", value, raw, string=f"0x{raw:012x}"), model_family="WD Blue / Red / Green SSDs"))
    assert drive.wear_used_percent == used
    assert ("is not of the known form" in drive.evidence["wear_used_percent"]) is (used is None)


def test_clear_attribute_is_used_next_to_an_unclear_one():
    drive = parse(ata(attribute(231, "SSD_Life_Left", 90, 40), attribute(177, "Wear_Leveling_Count", 80, 500)))
    assert (drive.wear_used_percent, drive.evidence["wear_used_percent"]) == (20, "Wear_Leveling_Count (attribute 177, value 80)")


def test_drive_statistics_take_precedence_over_attributes():
    drive = parse(ata(attribute(177, "Wear_Leveling_Count", 60, 800), ata_device_statistics=statistics("Percentage Used Endurance Indicator", 12)))
    assert drive.wear_used_percent == 12
    assert drive.evidence["wear_used_percent"].startswith("statistics")


def test_invalid_statistics_are_ignored():
    drive = parse(ata(attribute(177, "Wear_Leveling_Count", 60, 800), ata_device_statistics=statistics("Percentage Used Endurance Indicator", 0, valid=False)))
    assert drive.wear_used_percent == 40


def test_smartctl_summary_takes_precedence_over_attributes():
    drive = parse(
        ata(attribute(231, "SSD_Life_Left", 100, 0), endurance_used={"current_percent": 33}, spare_available={"current_percent": 90, "threshold_percent": 10})
    )
    assert (drive.wear_used_percent, drive.spare_percent, drive.spare_threshold_percent) == (33, 90, 10)


def test_default_attribute_name_is_reported_and_scale_limits_are_ignored():
    unknown = {"in_smartctl_database": False}
    assert "this model is not in its database" in parse(ata(attribute(233, "Media_Wearout_Indicator", 98, 5), **unknown)).evidence["wear_used_percent"]
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 0, 5), **unknown)).wear_used_percent is None
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 100, 791062), **unknown)).wear_used_percent is None
    assert parse(ata(attribute(241, "Total_LBAs_Written", 100, 791062), **unknown)).written_bytes is None
    intel = {"model_family": "Intel S4510/S4610/S4500/S4600 Series SSDs"}
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 100, 5), **intel)).wear_used_percent == 0
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 0, 5), **intel)).wear_used_percent == 100
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 100, 5))).wear_used_percent is None


def test_values_above_100_are_ignored():
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 200, 5))).wear_used_percent is None


def test_reallocated_sectors_are_the_first_number_of_formatted_value():
    drive = parse(ata(attribute(5, "Reallocated_Sector_Ct", 100, 131076, string="4 (0 2)"), attribute(197, "Current_Pending_Sector", 100, 3)))
    assert (drive.reallocated, drive.pending) == (4, 3)


@pytest.mark.parametrize("name", ["Reallocated_Sector_Ct", "Retired_Block_Count", "Reallocate_NAND_Blk_Cnt"])
def test_reallocated_sectors_have_several_names(name):
    assert parse(ata(attribute(5, name, 100, 123))).reallocated == 123


def test_written_bytes_require_a_unit_in_the_attribute_name():
    assert parse(ata(attribute(241, "Host_Writes_32MiB", 100, 10))).written_bytes == 10 * 32 * 1024**2
    assert parse(ata(attribute(241, "Total_LBAs_Written", 100, 10))).written_bytes == 5120
    assert parse(ata(ata_device_statistics=statistics("Logical Sectors Written", 7, number=1))).written_bytes == 7 * 512


def test_currently_failing_attribute_is_reported_and_past_failure_is_not():
    drive = parse(
        ata(attribute(5, "Reallocated_Sector_Ct", 9, 999, thresh=10, when_failed="now"), attribute(1, "Raw_Read_Error_Rate", 50, 0, when_failed="past"))
    )
    assert drive.failing == ("Reallocated_Sector_Ct",)


def test_nvme_wear_above_100_percent_and_warnings_are_reported():
    drive = parse(nvme(percentage_used=143, available_spare=4, critical_warning=0b1001, data_units_written=3))
    assert drive.wear_used_percent == 143
    assert (drive.spare_percent, drive.spare_threshold_percent) == (4, 10)
    assert drive.warnings == ("spare below its threshold", "media read-only")
    assert drive.written_bytes == 3 * 1000 * 512
    assert drive.media == "ssd"


def test_emulated_nvme_drive_without_spare_reports_none():
    drive = parse(nvme(available_spare=0, available_spare_threshold=0))
    assert (drive.spare_percent, drive.spare_threshold_percent) == (None, None)


def test_nvme_drive_without_namespace_management_reports_no_capacity():
    assert parse(json.dumps({**json.loads(nvme()), "nvme_total_capacity": 0, "nvme_unallocated_capacity": 0})).capacity is None
    drive = parse(json.dumps({**json.loads(nvme()), "nvme_total_capacity": 1000, "nvme_unallocated_capacity": 300}))
    assert (drive.capacity, drive.unallocated) == (1000, 300)


def test_sas_drive():
    drive = parse(
        json.dumps(
            {
                "device": {"protocol": "SCSI"},
                "scsi_model_name": "SAMSUNG MZILT960",
                "rotation_rate": 0,
                "scsi_grown_defect_list": 2,
                "scsi_percentage_used_endurance_indicator": 11,
                "scsi_error_counter_log": {
                    "read": {"total_uncorrected_errors": 1},
                    "write": {"gigabytes_processed": "12.500", "total_uncorrected_errors": 2},
                },
                "temperature": {"current": 0},
            }
        )
    )
    assert (drive.wear_used_percent, drive.reallocated, drive.media_errors, drive.written_bytes) == (11, 2, 3, 12_500_000_000)
    assert drive.temperature is None
    assert drive.media == "ssd"


def test_rotational_disk_has_no_wear():
    drive = parse(ata(attribute(5, "Reallocated_Sector_Ct", 100, 8), rotation_rate=7200))
    assert (drive.media, drive.wear_used_percent, drive.reallocated) == ("hdd", None, 8)


@pytest.mark.parametrize("rc", [4, 8, 16, 32, 64, 128, 0xFC])
def test_exit_status_bits_above_the_second_are_not_a_command_failure(rc):
    assert parse(ata(attribute(233, "Media_Wearout_Indicator", 90, 0)), rc).wear_used_percent == 10


@pytest.mark.parametrize("rc", [1, 2, 3, 6])
def test_lowest_two_exit_status_bits_raise_with_reason(rc):
    text = json.dumps(
        {"smartctl": {"messages": [{"string": "Unable to detect device type", "severity": "error"}, {"string": "hint", "severity": "information"}]}}
    )
    with pytest.raises(NotUnderstood, match="Unable to detect device type") as caught:
        parse(text, rc)
    assert PATH in caught.value.message
    assert "hint" not in caught.value.message


@pytest.mark.parametrize("text", ["", "[]", "smartctl 6.6 2016-05-31", '{"device": '])
def test_smartctl_without_json_is_rejected(text):
    with pytest.raises(NotUnderstood, match=r"version 7\.0"):
        parse(text, 1)


@pytest.mark.parametrize(
    "strange",
    [
        {"ata_smart_attributes": {"table": [None, 3, {"name": "Media_Wearout_Indicator"}]}},
        {"ata_smart_attributes": []},
        {"ata_device_statistics": {"pages": [{"table": [{"name": "Percentage Used Endurance Indicator", "value": None}]}]}},
        {"power_on_time": 3, "temperature": None, "smart_status": "good"},
        {"device": {"protocol": "CISS"}},
        {"device": {}},
    ],
)
def test_invalid_fields_are_treated_as_unknown(strange):
    drive = parse(json.dumps({**json.loads(ata()), **strange}))
    assert drive.wear_used_percent is None
    assert drive.to_dict()["path"] == PATH


@pytest.mark.parametrize(
    ("family", "rows", "used"),
    [
        # A value that never moves while erasures are counted.
        ("Apacer SSDs", [(177, "Wear_Leveling_Count", 100, 500)], None),
        ("Samsung based SSDs", [(177, "Wear_Leveling_Count", 100, 40)], 0),
        ("Samsung based SSDs", [(177, "Wear_Leveling_Count", 91, 220)], 9),
        ("Seagate SSDs", [(231, "SSD_Life_Left", 100, 4294967295)], None),
        ("Intel S4510/S4610/S4500/S4600 Series SSDs", [(233, "Media_Wearout_Indicator", 100, 17256709)], 0),
        # The raw value of SandForce is nothing, and may be 1.
        ("SandForce Driven SSDs", [(231, "SSD_Life_Left", 100, 1)], 0),
        ("SandForce Driven SSDs", [(231, "SSD_Life_Left", 90, 1)], 10),
        ("Phison Driven SSDs", [(231, "SSD_Life_Left", 100, 1)], 99),
        # Two attributes that mean the same.
        ("SK hynix SATA SSDs", [(169, "Remaining_Lifetime_Perc", 100, 92), (177, "Wear_Leveling_Count", 99, 2)], 8),
        ("X", [(231, "SSD_Life_Left", 90, 90), (233, "Media_Wearout_Indicator", 50, 0)], None),
    ],
)
def test_values_are_held_against_raw_values_and_each_other(family, rows, used):
    drive = parse(ata(*(attribute(*row) for row in rows), model_family=family))
    assert drive.wear_used_percent == used
    assert drive.evidence["wear_used_percent"]


def test_raw_value_of_an_unknown_model_that_is_no_percentage():
    """SanDisk counts gigabytes under the number that others use for wear."""
    drive = parse(ata(attribute(233, "Media_Wearout_Indicator", 95, 1390), in_smartctl_database=False))
    assert drive.wear_used_percent is None
    assert "1390 is no percentage" in drive.evidence["wear_used_percent"]


# -- captured outputs


@pytest.mark.parametrize(("disk", "protocol", "reallocated"), [("sda", "ata", 0), ("sdd", "scsi", None), ("nvme0n1", "nvme", None)])
def test_captured_output_of_emulated_drives(shared_samples, disk, protocol, reallocated):
    folder = shared_samples / "cache"
    rc = int((folder / f"smartctl-j-x.{disk}.rc").read_text().split("=")[-1])
    drive = parse_smartctl((folder / f"smartctl-j-x.{disk}.txt").read_text(), rc, disk, f"/dev/{disk}")
    assert (drive.protocol, drive.reallocated) == (protocol, reallocated)
    assert drive.model


@pytest.mark.parametrize("disk", ["sde", "vdb"])
def test_captured_output_of_unsupported_devices(shared_samples, disk):
    folder = shared_samples / "cache"
    rc = int((folder / f"smartctl-j-x.{disk}.rc").read_text().split("=")[-1])
    with pytest.raises(NotUnderstood, match="cannot read this drive"):
        parse_smartctl((folder / f"smartctl-j-x.{disk}.txt").read_text(), rc, disk, f"/dev/{disk}")


@pytest.mark.parametrize(
    ("file", "used", "written"),
    [
        ("sat-Intel_730_and_DC_S35x0_3610_3700_Series_SSDs-INTEL_SSDSC2BB016T4-sdf.json", 85, 62594010 * 32 * 1024**2),
        ("sat-Intel_730_and_DC_S35x0_3610_3700_Series_SSDs-INTEL_SSDSC2BB240G4-sde.json", 78, 15376617 * 32 * 1024**2),
        ("SAMSUNG_MZ7WD240HAFV-00003_21.json", 9, 216456537880 * 512),
        ("nvme-null-INTEL_SSDPE2KE016T8-nvme0.json", 0, 13140871 * 512_000),
        ("netdata_ssd-sdc.json", None, None),
    ],
)
def test_captured_output_of_real_drives(shared_corpus, file, used, written):
    drive = parse_smartctl((shared_corpus / "smartctl" / file).read_text(), 0, "sda", "/dev/sda")
    assert (drive.wear_used_percent, drive.written_bytes) == (used, written)


@pytest.mark.parametrize(
    ("current", "speed"),
    [
        ({"sata_value": 2, "string": "3.0 Gb/s", "units_per_second": 30, "bits_per_unit": 100000000}, 3_000_000_000),
        ({"string": "3.0 Gb/s"}, None),
        ({"units_per_second": "30", "bits_per_unit": 100000000}, None),
        (None, None),
    ],
)
def test_speed_of_the_link_is_the_one_in_use(current, speed):
    fastest = {"units_per_second": 60, "bits_per_unit": 100000000}
    assert parse(ata(interface_speed={"max": fastest, **({"current": current} if current else {})})).link_speed == speed
    assert parse(ata()).link_speed is None
