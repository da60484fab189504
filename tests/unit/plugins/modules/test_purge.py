# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination
from ansible_collections.cachefleet.storage.plugins.module_utils._purge import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.modules import purge
from ansible_collections.cachefleet.storage.tests.unit.support.fake_purge import NVME, SATA, FakePurge, Killed
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import patch_module_args


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    host = FakePurge(tmp_path)
    monkeypatch.setattr(layer_module, "read_devices", host.devices)
    monkeypatch.setattr(examination, "examine", host.examine)
    monkeypatch.setattr(examination, "examined_again", lambda facts, *_rest: host.examine(None, facts.target))
    monkeypatch.setattr(purge, "PurgeLayer", functools.partial(layer_module.PurgeLayer, root=tmp_path, sleep=lambda _seconds: None))
    monkeypatch.setattr(purge, "Runner", lambda: host)
    # The lock of the layer is the host's, and another test may hold it.
    monkeypatch.setattr(layer_module.PurgeLayer, "one_at_a_time", False)
    warnings: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: warnings.append(warning))

    def run_module(*drives, check_mode=False, **options):
        arguments = {"drives": list(drives), **options, "_ansible_check_mode": check_mode}
        with patch_module_args(arguments), pytest.raises((SystemExit, Killed)) as ended:
            purge.main()
        return json.loads(capsys.readouterr().out) if ended.type is SystemExit else None

    run_module.host, run_module.warnings = host, warnings
    return run_module


SSD = {"device": SATA, "identity": "S-sda", "allow_data_loss": True, "allow_purge": True}


def test_empty_list_reads_nothing(run):
    result = run()
    assert (result["changed"], result["actions"], result["drives"], run.host.calls) == (False, [], [], [])


def test_check_mode_predicts_run_and_once_is_once(run):
    predicted = run(SSD, check_mode=True, once="c")
    assert predicted["changed"] and run.host.changes == []
    done = run(SSD, once="c")
    assert (done["actions"], done["diff"]) == (predicted["actions"], predicted["diff"])
    assert done["drives"][0]["purge"]["state"] == "done" and done["drives"][0]["model"] == "SSD"
    assert run(SSD, once="c")["changed"] is False


def test_refusal_names_the_permission_and_its_objections(run):
    result = run({"device": SATA})
    assert result["failed"] and result["error"] == "refused" and "allow_purge: true" in result["msg"]
    result = run({"device": SATA, "allow_purge": True})
    assert [one["kind"] for one in result["objections"]] == ["data"] and result["item"] == SATA


def test_interrupted_purge_is_a_warning(run):
    drive = {"device": NVME, "identity": "S-nvme0n1", "allow_data_loss": True, "allow_purge": True}
    run.host.kill = ("nvme", "format")
    assert run(drive) is None
    run.host.kill = ()
    assert run(drive)["changed"] and "has begun and not ended" in run.warnings[0]


def test_a_failed_purge_reports_that_something_changed(run):
    run.host.ignores = True
    result = run(SSD)
    assert result["failed"] and result["error"] == "not_effective" and result["changed"] is True
