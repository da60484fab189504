# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entry of the module: options, defaults, and that role, documentation and code say the same."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DRIVE_OPTIONS, DriveSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import PROVIDERS

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
ROLE = REPOSITORY / "roles/drive_write_cache"


def run_module(check_mode=False, **params):
    """The module as Ansible starts it, in a process of its own."""
    arguments = {"ANSIBLE_MODULE_ARGS": {**params, "_ansible_check_mode": check_mode, "_ansible_remote_tmp": "/tmp", "_ansible_keep_remote_files": False}}
    code = (
        "import sys\n"
        "from ansible.module_utils import basic\n"
        "basic._ANSIBLE_ARGS = sys.stdin.buffer.read()\n"
        "basic._ANSIBLE_PROFILE = 'legacy'\n"
        "from ansible_collections.cachefleet.storage.plugins.modules import drive_write_cache\n"
        "drive_write_cache.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        check=False,
    )
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_empty_list_is_a_no_op():
    result = run_module(drives=[])
    assert (result["changed"], result["actions"], result["drives"]) == (False, [], [])


def test_missing_device_fails_with_one_sentence_without_change():
    result = run_module(drives=[{"device": "/dev/disk/by-id/ata-GONE", "write_cache": "disabled"}])
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
    result = run_module(drives=[drive])
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
