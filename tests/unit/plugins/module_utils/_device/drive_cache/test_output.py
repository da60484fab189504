# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What drives and their tools print, as captured from real machines."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import (
    CachingPage,
    parse_hdparm,
    parse_nvme_controller,
    parse_nvme_feature,
    parse_sdparm,
)

DATA = pathlib.Path(__file__).resolve().parents[4] / "data" / "drive_cache"


def captured(name):
    return (DATA / name).read_text()


def test_hdparm_output_of_several_drives_is_parsed_by_section():
    assert parse_hdparm(captured("hdparm-get.txt")) == {
        "/dev/sda": None,
        "/dev/sdb": None,
        "/dev/sdc": "enabled",
        "/dev/sdd": "enabled",
        "/dev/sde": "enabled",
        "/dev/sdf": None,
        "/dev/nvme0n1": None,
        "/dev/vdb": None,
    }


def test_hdparm_set_uses_value_read_back():
    assert parse_hdparm(captured("hdparm-off.txt")) == {"/dev/sdc": "disabled"}


def test_hdparm_contradicting_values_use_value_read_back():
    text = "\n/dev/sdc:\n setting drive write-caching to 0 (off)\n write-caching =  1 (on)\n"
    assert parse_hdparm(text) == {"/dev/sdc": "enabled"}


@pytest.mark.parametrize("name, device", [("hdparm-off-unsupported.txt", "/dev/sdb"), ("hdparm-off-nvme.txt", "/dev/nvme0n1")])
def test_hdparm_unsupported_or_empty_output_has_no_value(name, device):
    assert parse_hdparm(captured(name)) == {device: None}


def test_hdparm_drive_names_beyond_sdz():
    assert parse_hdparm("\n/dev/sdaa:\n write-caching =  0 (off)\n") == {"/dev/sdaa": "disabled"}


def test_hdparm_invalid_output_has_no_drives():
    assert parse_hdparm(" write-caching =  1 (on)\n\0\nhello:\n") == {}


def test_hdparm_captured_output(shared_samples):
    expected = {"sda": "enabled", "sdb": "enabled", "sdc": "disabled", "sdd": None, "sde": None, "vdb": None, "nvme0n1": None}
    for name, value in expected.items():
        text = (shared_samples / "cache" / f"hdparm-W-get.{name}.txt").read_text()
        assert parse_hdparm(text) == {f"/dev/{name}": value}


def test_sdparm_output_of_several_drives():
    pages = parse_sdparm(captured("sdparm-get.txt"))
    assert {device: page.enabled for device, page in pages.items()} == {
        "/dev/sdb": True,
        "/dev/sdc": False,
        "/dev/sdd": True,
        "/dev/sde": True,
        "/dev/sdf": True,
    }
    assert pages["/dev/sdb"] == CachingPage(enabled=True, changeable=True, default=True, saved=None)


@pytest.mark.parametrize(
    "line, page",
    [
        ("WCE           1  [cha: y, def:  1, sav:  0]", CachingPage(True, True, True, False)),
        ("WCE           1  [cha: y, def:  1, sav:  1]", CachingPage(True, True, True, True)),
        ("WCE           0  [cha: n, def:  0, sav: n]", CachingPage(False, False, False, None)),
        ("WCE           1", CachingPage(True, True, None, None)),
    ],
)
def test_sdparm_changeable_default_and_saved_values(line, page):
    assert parse_sdparm(f"    /dev/sdaa: SEAGATE   ST600MM0006       0003\n{line}\n") == {"/dev/sdaa": page}


def test_sdparm_without_a_caching_page_has_no_entry():
    assert parse_sdparm("    /dev/sdb: QEMU      QEMU HARDDISK     2.5+\n") == {}


def test_nvme_controller_with_volatile_cache():
    assert parse_nvme_controller(captured("nvme-id-ctrl.json")) is True


@pytest.mark.parametrize("vwc, current", [(0, False), (1, True), (6, False), (7, True)])
def test_nvme_only_bit_0_of_vwc_means_volatile_cache(vwc, current):
    assert parse_nvme_controller(f'{{"vwc":{vwc}}}') is current


@pytest.mark.parametrize("text", ["", "nvme: error\n", "[]", "{}", '{"vwc":"?"}'])
def test_nvme_controller_without_vwc_is_rejected(text):
    with pytest.raises(NotUnderstood):
        parse_nvme_controller(text)


@pytest.mark.parametrize("form", ["", "-verbose"])
def test_nvme_feature_off_is_printed_without_0x(form):
    assert parse_nvme_feature(captured(f"nvme-feature-off{form}.txt")) is False
    assert parse_nvme_feature(captured(f"nvme-feature-on{form}.txt")) is True


def test_nvme_feature_in_older_and_verbose_formats():
    assert parse_nvme_feature("get-feature:0x6 (Volatile Write Cache), Current value:0x000001\n") is True
    assert parse_nvme_feature("\tVolatile Write Cache Enable (WCE): Disabled\n") is False


def test_nvme_failed_feature_is_rejected():
    with pytest.raises(NotUnderstood, match="Not Namespace"):
        parse_nvme_feature(captured("nvme-namespace-refused.err"))


@pytest.mark.parametrize("line", ["0 (on)", "1 (off)", "2 (on)", "0 (aus)", "0", "", "-"])
def test_contradicting_or_foreign_words_of_hdparm_are_no_value(line):
    assert parse_hdparm(f"\n/dev/sda:\n write-caching =  {line}\n") == {"/dev/sda": None}


@pytest.mark.parametrize("value", ["2", "-", "", "n"])
def test_wce_is_a_bit(value):
    assert parse_sdparm(f"    /dev/sdb: X         M  1\nWCE           {value}\n") == {}


@pytest.mark.parametrize(
    "text",
    [
        "get-feature:0x06 (Volatile Write Cache), Saved value:0x00000000\n",
        "get-feature:0x06 (Volatile Write Cache), Default value:00000000\n",
        "get-feature:0x07 (Number of Queues), Current value:0x00000000\n",
        "get-feature:0x16 (Host Controlled Thermal Management), Current value:00000000\n",
        "get-feature:0x06 (Volatile Write Cache), Current value:0x00000002\n",
        "get-feature:0x06 (Volatile Write Cache), Current value:0x00000010\n\tVolatile Write Cache Enable (WCE): Disabled\n",
    ],
)
def test_other_values_than_the_current_one_of_the_feature_are_not_used(text):
    with pytest.raises(NotUnderstood, match="no clear value"):
        parse_nvme_feature(text)
