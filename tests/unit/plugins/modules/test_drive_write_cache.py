# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entry of the module: options, defaults, and that role, documentation and code say the same."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DRIVE_OPTIONS, DriveSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import PROVIDERS
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_process

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
ROLE = REPOSITORY / "roles/drive_write_cache"


run = functools.partial(run_process, "drive_write_cache")


def test_empty_list_is_a_no_op():
    result = run({"drives": []})
    assert (result["changed"], result["actions"], result["drives"]) == (False, [], [])


def test_missing_device_fails_with_one_sentence_without_change():
    result = run({"drives": [{"device": "/dev/disk/by-id/ata-GONE", "write_cache": "disabled"}]})
    assert result["failed"] is True
    assert result["error"] == "device_missing"
    assert not result.get("changed")
    assert "/dev/disk/by-id/ata-GONE does not exist on this host" in result["msg"]


@pytest.mark.parametrize(
    "drive, words",
    [
        ({"device": "/dev/sda"}, "write_cache"),
        ({"device": "/dev/sda", "write_cache": "off"}, "value of write_cache must be one of: enabled, disabled"),
        ({"device": "/dev/sda", "write_cache": "disabled", "provider": "magic"}, "value of provider must be one of"),
        ({"device": "/dev/sda", "write_cache": "disabled", "unknown": 1}, "Unsupported parameters"),
    ],
)
def test_invalid_list_entry_is_rejected_by_its_specification(drive, words):
    result = run({"drives": [drive]})
    assert result["failed"] is True
    assert words in result["msg"]


def test_specification_has_every_option():
    assert {*DRIVE_OPTIONS, "number"} == {field.name for field in dataclasses.fields(DriveSpec)}


def test_every_provider_is_a_choice():
    assert set(DRIVE_OPTIONS["provider"]["choices"]) == {"auto", *PROVIDERS}


def test_role_is_one_module_call():
    tasks = yaml.safe_load((ROLE / "tasks/configure.yml").read_text())
    assert [task for task in tasks if "loop" in task] == []
    assert [list(task)[1] for task in tasks] == ["cachefleet.storage.drive_write_cache"]
