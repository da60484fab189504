# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer
from ansible_collections.cachefleet.storage.plugins.modules import enhanceio
from ansible_collections.cachefleet.storage.tests.simulators.in_process.enhanceio import HDD, SSD, SimulatedEnhanceIO
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here

ITEM = {"name": "images", "origin": HDD, "cache_devices": [SSD]}
WRITEBACK = {**ITEM, "mode": "writeback", "allow_unmirrored_writeback": True}


@pytest.fixture
def eio(tmp_path):
    return SimulatedEnhanceIO(tmp_path)


@pytest.fixture
def run(monkeypatch, capsys, eio):
    """The module on the simulated host; ``volatile`` is what keeps writes in volatile memory below a path, ``requested`` who asked for it."""
    volatile, requested, runners = {}, [], []

    def volatile_below(_runner, protected, flushed):
        def look(path, _drives):
            requested.append((list(protected), path))
            return volatile.get(path, [])

        return look

    def runner(vendor_dirs):
        runners.append(vendor_dirs)
        return eio

    monkeypatch.setattr(enhanceio, "VolatileBelow", volatile_below)
    monkeypatch.setattr(enhanceio, "Runner", runner)
    monkeypatch.setattr(enhanceio, "EnhanceIOLayer", functools.partial(EnhanceIOLayer, root=eio.root, sleep=eio.sleep))

    def module(caches, **arguments):
        code, result = run_here(enhanceio, capsys, {"caches": caches, **arguments})
        return {"code": code, **result}

    module.volatile, module.requested, module.runners = volatile, requested, runners
    return module


def test_empty_list_reads_nothing(run, eio):
    result = run([])
    assert (result["changed"], result["actions"], result["caches"], result["problems"], eio.calls) == (False, [], [], [], [])


def test_check_mode_predicts_run_and_no_change_on_second_run(run, eio):
    predicted = run([ITEM], _ansible_check_mode=True)
    assert (predicted["code"], predicted["changed"], eio.changes) == (0, True, 0)
    done = run([ITEM])
    assert (done["actions"], done["diff"]) == (predicted["actions"], predicted["diff"])
    assert [(cache["name"], cache["mode"], cache["state"]) for cache in done["caches"]] == [("images", "writethrough", "ok")]
    again = run([ITEM])
    assert (again["changed"], again["actions"], again["caches"], again["problems"]) == (False, [], done["caches"], [])
    assert run.requested == []


def test_volatile_layers_are_checked_only_when_writeback_is_enabled(run):
    run.volatile[SSD] = ["/dev/sdb has its volatile write cache on"]
    result = run([WRITEBACK], protected_drives=["S3500"])
    assert (result["code"], result["error"], result["item"]) == (1, "refused", "images")
    assert "/dev/sdb has its volatile write cache on: turn that cache off (drive_write_cache)" in result["msg"]
    assert {tuple(protected) for protected, _path in run.requested} == {("S3500",)}
    assert {path for _protected, path in run.requested} == {HDD, SSD}
    assert run([{**WRITEBACK, "allow_ignored_flushes": True}])["changed"]
    run.volatile.clear()
    run.requested.clear()
    assert not run([WRITEBACK])["changed"]
    assert run.requested == []


def test_tool_dirs_and_kernel_module_are_passed_on(run, eio):
    eio.driver.state["module"] = "available"
    eio.driver.publish()
    assert "the kernel module eio2 is not installed" in run([ITEM], tool_dirs=["/opt/eio"], kernel_module="eio2")["msg"]
    assert run.runners == [["/opt/eio"]]


def test_invalid_input_fails_with_one_sentence(run):
    result = run([{**ITEM, "origin": "/dev/sda"}])
    assert (result["code"], result["error"]) == (1, "bad_input")
    assert "may be another device after the next reboot" in result["msg"]


def test_examples_are_accepted(run):
    for task in yaml.safe_load(enhanceio.EXAMPLES):
        result = run(**task["cachefleet.storage.enhanceio"])
        assert result["code"] == 0 or result["error"] == "device_missing", result
