# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIGJSON of arcconf: a document written for this test with the keys that are known of it."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, Policy


def text(controller: t.Any) -> str:
    return "Controllers found: 1\n" + json.dumps({"Controller": controller}) + "\n\nCommand completed successfully.\n"


DRIVE = {
    "channelID": 0,
    "deviceID": 12,
    "serialNumber": " S1 ",
    "state": 1,
    "nonSpinning": True,
    "blockSize": 512,
    "numOfUsableBlocks": 1000,
    "writeCacheEnable": 0,
}
VOLUME = {
    "logicalDriveID": 0,
    "name": "data",
    "raidLevel": "1+0",
    "state": 3,
    "volumeUniqueID": "600508B1001C0000000000000000ABCD",
    "BlockSize": 512,
    "dataSpace": 2048,
    "writeCacheSetting": 3,
    "readCacheSetting": 2,
    "maxCacheWriteCachePolicySetting": 2,
}


def test_json_document_is_parsed() -> None:
    reading = parse(
        text(
            {
                "controllerID": 1,
                "deviceVendor": "Adaptec",
                "deviceName": "X",
                "functionalMode": 2,
                "LogicalDrive": [VOLUME],
                "Channel": [{"HardDrive": [DRIVE]}],
            }
        )
    )
    (one,) = reading.controllers
    assert (one.id, one.model, one.mode, reading.complete) == ("1", "Adaptec X", "hba", True)
    (volume,) = one.volumes
    assert (volume.id, volume.raid_level, volume.status, volume.size) == ("0", "10", "degraded", 2048 * 512)
    assert (volume.read, volume.write) == (Policy("read_ahead"), Policy("writeback"))
    assert volume.maxcache is not None
    assert volume.maxcache.write_policy == "instant_writeback"
    (drive,) = one.drives
    assert (drive.address, drive.serial, drive.media, drive.usage) == ("0,12", "S1", "ssd", "configured")


def test_drive_write_cache_is_unknown_because_its_field_is_ambiguous() -> None:
    for value in (0, 1):
        (one,) = parse(text({"Channel": [{"HardDrive": [{**DRIVE, "writeCacheEnable": value}]}]})).controllers
        assert one.drives[0].write_cache == UNKNOWN


def test_drive_policies() -> None:
    (older,) = parse(text({"globalPhysicalDevicesWriteCachePolicy": 2})).controllers
    assert older.drive_cache == {"all": "per_drive"}
    (newer,) = parse(text({"globalPhysicalDevicesWriteCachePolicy": 3, "configuredDrivesWCPolicySetting": 2, "hbaDrivesWCPolicySetting": 9})).controllers
    assert newer.drive_cache == {"configured": "disabled", "hba": UNKNOWN}
    assert newer.traits["generation"] == "smart"


@pytest.mark.parametrize(
    "controller", [{}, {"LogicalDrive": None}, {"LogicalDrive": [None, 3, []], "Channel": "x"}, {"Channel": [{"HardDrive": [{"channelID": True}]}]}]
)
def test_incomplete_documents_are_accepted(controller: dict[str, t.Any]) -> None:
    (one,) = parse(text(controller)).controllers
    assert one.drives == ()


@pytest.mark.parametrize("line", ["{", '{"Other": 1}', '{"Controller": []}', "{" * 100_000])
def test_invalid_documents_are_reported(line: str) -> None:
    reading = parse(f"Controllers found: 1\n{line}\n")
    assert reading.controllers == ()
    assert reading.not_understood[0].startswith("line 2: ")
