# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status of a runner has a limit where it is written and where it is read."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation import status as module
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import LARGEST_STATUS, Status, read_status
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner import runner_status


@pytest.mark.parametrize("name", ["message", "cell", "target", "error"])
def test_long_texts_are_shortened_so_that_the_controller_accepts_the_status(tmp_path, name):
    Status(tmp_path).update(state="failed", **{name: "x" * 10**6})
    text = (tmp_path / module.STATUS_FILE).read_text()
    assert len(text) < LARGEST_STATUS
    assert runner_status.read_status(text).state == "failed"
    assert read_status(tmp_path)["state"] == "failed"


@pytest.mark.parametrize(
    "changed",
    [{"pid": "1"}, {"step": []}, {"steps": {}}, {"segment": 1.5}, {"state": 5}, {"cell": ["x"]}, {"boot_id": {}}, {"archive": []}, {"message": 1}],
)
def test_status_with_wrong_types_is_none(tmp_path, changed):
    Status(tmp_path).update(state="measuring")
    found = read_status(tmp_path)
    assert found["state"] == "measuring"
    (tmp_path / module.STATUS_FILE).write_text(json.dumps({**found, **changed}))
    assert read_status(tmp_path) == {}


@pytest.mark.parametrize("text", ["", "null", "[]", "1", '"x"', "[" * 60000, '{"a":' * 10000, "{" + " " * LARGEST_STATUS + "}"])
def test_other_contents_are_none(tmp_path, text):
    (tmp_path / module.STATUS_FILE).write_text(text)
    assert read_status(tmp_path) == {}


def test_huge_status_is_not_read_into_memory(tmp_path):
    (tmp_path / module.STATUS_FILE).touch()
    # Far more than the memory of any machine.
    os.truncate(tmp_path / module.STATUS_FILE, 1 << 42)
    assert read_status(tmp_path) == {}
