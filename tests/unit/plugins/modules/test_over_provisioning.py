# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._health import over_provisioning as layer_module
from ansible_collections.cachefleet.storage.plugins.modules import over_provisioning
from ansible_collections.cachefleet.storage.tests.unit.support.fake_drives import MIB, NVME, SATA, FakeDrives
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    host = FakeDrives(tmp_path)
    monkeypatch.setattr(layer_module, "read_devices", lambda runner, _root: runner.devices())
    monkeypatch.setattr(over_provisioning, "OverProvisioningLayer", functools.partial(layer_module.OverProvisioningLayer, root=tmp_path))
    monkeypatch.setattr(over_provisioning, "Runner", lambda: host)

    # Ansible says a warning once in a process, and the tests are one.
    message: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: message.append(warning))

    def run_module(*drives, check_mode=False):
        return run_here(over_provisioning, capsys, {"drives": list(drives), "_ansible_check_mode": check_mode})[1]

    run_module.host, run_module.message = host, message
    return run_module


def test_empty_list_reads_nothing(run):
    result = run()
    assert (result["changed"], result["actions"], result["drives"], run.host.calls) == (False, [], [], [])


def test_check_mode_predicts_run_and_no_change_on_second_run(run):
    drives = [{"device": SATA, "usable": "50%"}, {"device": NVME, "usable": "16M", "method": "namespace"}]
    predicted = run(*drives, check_mode=True)
    assert predicted["changed"]
    assert run.host.changes == []
    done = run(*drives)
    assert (done["actions"], done["diff"]) == (predicted["actions"], predicted["diff"])
    assert [drive["usable"] for drive in done["drives"]] == [32 * MIB, 16 * MIB]
    assert run(*drives)["changed"] is False


def test_manual_actions_are_problems_and_warnings(run):
    result = run({"device": SATA, "usable": "50%", "method": "hpa"})
    assert "next power cycle" in result["problems"][0]
    assert run.message == result["problems"]


@pytest.mark.parametrize(("drive", "error"), [({"device": SATA}, "bad_input"), ({"device": "/dev/disk/by-id/x", "usable": "1M"}, "device_missing")])
def test_failures_have_one_sentence_and_error_kind(run, drive, error):
    result = run(drive)
    assert (result["failed"], result["error"], result["item"]) == (True, error, drive["device"])
