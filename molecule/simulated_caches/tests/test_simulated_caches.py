# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the runs of the role did, and what is left when the caches have gone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_MODULES = {"node1": "flashcache", "node2": "enhanceio"}


@pytest.fixture
def name(host):
    return host.ansible.get_variables()["inventory_hostname"]


def _results(name, playbook, check=False):
    """Of each run of a playbook: what the module of this machine returned."""
    runs = [json.loads(path.read_text()) for path in sorted(Path(os.environ["CACHEFLEET_RECORD"]).glob("*.json"))]
    chosen = [run for run in runs if (run["scenario"], run["playbook"], run["check"]) == ("simulated_caches", playbook, check)]
    module = f"cachefleet.storage.{_MODULES[name]}"
    return [[result for result in run["results"] if (result["host"], result["module"]) == (name, module)] for run in chosen]


def _reported(results):
    return [(result["changed"], result["actions"], result["diff"]) for result in results]


def test_check_mode_predicts_the_first_run(name):
    done = _reported(_results(name, "converge")[0])
    assert _reported(_results(name, "converge", check=True)[0]) == done
    assert done[0][0]
    assert done[0][1]


def test_no_change_on_second_run(name):
    assert _reported(_results(name, "converge")[1]) == [(False, [], {"before": {}, "after": {}})]


def test_no_change_after_a_power_cut_then_flush_then_removal(name):
    life = _results(name, "side_effect")[0]
    refused = [result for result in life if result["state"] == "failed"]
    assert len(refused) == (name == "node1")
    after_boot, flushed, removed = (result for result in life if result["state"] != "failed")
    assert not after_boot["changed"]
    assert flushed["changed"]
    assert removed["changed"]


def test_nothing_is_left(host, name):
    assert host.check_output("find /etc/systemd/system /etc/udev/rules.d -name '*cachefleet-%s*'", _MODULES[name]) == ""
    assert not host.file("/dev/mapper/images").exists
    disk = f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{name.upper()}-NVME0"
    assert host.check_output("wipefs --no-act %s", disk) == ""
