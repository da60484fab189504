# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.output import (
    AtaSecurity,
    NvmeErase,
    SanitizeLog,
    parse_erase,
    parse_sanitize_log,
    parse_security,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import FOLDER, PurgeRecord, read_record, write_record

#: As hdparm 9.65 prints it of a SATA SSD.
SSD = """
Commands/features:
	Enabled	Supported:
	Security Mode feature set
Security: 
	Master password revision code = 65534
		supported
	not	enabled
	not	locked
	not	frozen
	not	expired: security count
		supported: enhanced erase
	2min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.
Logical Unit WWN Device Identifier: 5002538c40379e5a
Checksum: correct
"""  # noqa: W291


def test_security_of_an_ssd():
    assert parse_security(SSD) == AtaSecurity(supported=True, enhanced=True, minutes=2, enhanced_minutes=8)


@pytest.mark.parametrize(
    ("old", "new", "flag"),
    [
        ("not\tfrozen", "\tfrozen", "frozen"),
        ("not\tenabled", "\tenabled", "enabled"),
        ("not\tlocked", "\tlocked", "locked"),
        ("not\texpired", "\texpired", "expired"),
    ],
)
def test_flags_of_the_security_section(old, new, flag):
    assert getattr(parse_security(SSD.replace(old, new)), flag) is True and getattr(parse_security(SSD), flag) is False


def test_security_that_is_not_supported_or_not_there():
    assert parse_security(SSD.replace("\t\tsupported\n", "\tnot\tsupported\n")).supported is False
    assert parse_security(SSD[: SSD.index("Security: \n")]) == AtaSecurity(), "the feature list names it too"
    assert parse_security("") == AtaSecurity()


def test_longest_times_and_missing_ones():
    assert parse_security(SSD.replace("2min for", "more than 508min for")).minutes == 508
    assert parse_security(SSD.replace("\t2min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.\n", "")).minutes is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"oacs": 23, "fna": 4, "sanicap": 3}, NvmeErase(formats=True, crypto=True, sanitize_crypto=True, sanitize_block=True)),
        ({"oacs": "0x2", "fna": "2", "sanicap": 0}, NvmeErase(formats=True, all_namespaces=True)),
        ({"oacs": 0x2, "fna": 1}, NvmeErase(formats=True, all_namespaces=True)),
        ({"oacs": True, "sanicap": None}, NvmeErase()),
        ({}, NvmeErase()),
    ],
)
def test_what_an_nvme_controller_can_erase(found, expected):
    assert parse_erase(found) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"nvme0": {"sprog": 65535, "sstat": 257}}, SanitizeLog("done")),
        ({"nvme0": {"sprog": 65535, "sstat": {"global_erased": 1, "status": "(1) Most Recent Sanitize Command Completed Successfully."}}}, SanitizeLog("done")),
        ({"sprog": 32768, "sstat": {"status": "0x2"}}, SanitizeLog("running", 50.0)),
        ({"sprog": 65535, "sstat": {"status": 3}}, SanitizeLog("failed")),
        ({"sprog": 65535, "sstat": 0}, SanitizeLog("never")),
        ({"sprog": 65535, "sstat": 4}, SanitizeLog("done")),
        ({"sprog": 65535, "sstat": 7}, SanitizeLog("unknown")),
        ({"sprog": 65535, "sstat": {"status": "no number"}}, SanitizeLog("unknown")),
        ({}, SanitizeLog("unknown")),
    ],
)
def test_sanitize_log(found, expected):
    assert parse_sanitize_log(found) == expected


# -- the record


RECORD = PurgeRecord("S1", "/dev/sda", "ata_secure_erase", "c/v/s", "done", 1.0, 2.0, "returns zeroes")


def test_a_record_is_found_by_the_identity_of_its_drive(tmp_path):
    write_record(RECORD, tmp_path)
    assert read_record("S1", tmp_path) == RECORD
    assert read_record("S2", tmp_path) is None and read_record(None, tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"identity": "S1"}), json.dumps({**RECORD.to_dict(), "identity": "S9"})])
def test_a_damaged_record_is_none(tmp_path, text):
    write_record(RECORD, tmp_path)
    [path] = (tmp_path / FOLDER).iterdir()
    path.write_text(text)
    assert read_record("S1", tmp_path) is None
