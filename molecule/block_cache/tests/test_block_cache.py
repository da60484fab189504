# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the runs of the role did, and that nothing of it is left on the machines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_MODULES = {"node1": ["lvm_cache", "dm_cache"], "node2": ["dm_cache", "bcache"]}


@pytest.fixture
def name(host):
    return host.ansible.get_variables()["inventory_hostname"] if host.backend.NAME == "ansible" else host.check_output("hostname")


def _reported(playbook, name):
    """For each run of a playbook that made caches: module, whether it changed something, and what it did."""
    runs = [json.loads(path.read_text()) for path in sorted(Path(os.environ["CACHEFLEET_RECORD"]).glob("*.json"))]
    modules = {f"cachefleet.storage.{module}": module for module in _MODULES[name]}
    reported = []
    for run in runs:
        if (run["scenario"], run["playbook"], run["check"]) == ("block_cache", playbook, False):
            results = [result for result in run["results"] if result["host"] == name and result["role"] and result["module"] in modules]
            reported.append([(modules[result["module"]], result["state"], result["changed"], result["actions"]) for result in results])
    return reported


def test_first_run_creates_both_caches_and_no_change_on_second_run(name):
    first, second = _reported("converge", name)
    assert [(module, state, changed) for module, state, changed, _actions in first] == [(module, "ok", True) for module in _MODULES[name]]
    assert second == [(module, "ok", False, []) for module in _MODULES[name]]


def test_only_changes_that_would_lose_data_were_refused(name):
    (life,) = _reported("side_effect", name)
    # Drives of the other machine are pulled in the long form only.
    pulled = os.environ.get("CACHEFLEET_LONG")
    assert [module for module, state, _changed, _actions in life if state == "failed"] == (["dm_cache"] if pulled else [])


def test_no_action_was_forced(name):
    (life,) = _reported("side_effect", name)
    actions = [action for _module, _state, _changed, actions in life for action in actions or []]
    assert len(actions) > 10
    assert not [action for action in actions if "force" in action.lower()]


def test_nothing_is_left_on_the_machines(host):
    assert host.run("dmsetup ls").stdout.count("cachelife") == 0
    assert [path for path in host.check_output("ls /etc/systemd/system").split() if path.startswith("cachefleet-dm_cache")] == []
    assert host.run("ls -d /sys/fs/bcache/*-*-*").rc != 0
    assert host.run("ls /dev/disk/by-id/*-SSD1-part1 /dev/disk/by-id/*-NVME0-part1 /dev/disk/by-id/*-VD0-part1").stdout == ""
