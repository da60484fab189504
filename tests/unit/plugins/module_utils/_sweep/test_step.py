# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A measurement that is started in the call that configures the layers."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.request import RequestedRun
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostOutcome
from ansible_collections.cachefleet.storage.plugins.module_utils._sweep.step import Measurement
from ansible_collections.cachefleet.storage.tests.unit.support.host_rig import CACHES, DRIVES, HDD, HostRig

CELL = {"name": "c", "target": {"device": "/dev/vg/data"}, "job": {"rw": "randread"}}
ORDER = {"campaign": "c1", "variant": "v", "host": "node1", "steps": [{"cells": [CELL]}]}
STEP = Step("drive_write_cache", HDD, "write_cache", "enabled", "disabled", "Switch it off", Operation())
BROKEN = {"name": "images", "state": "degraded", "problem": "The SSD of vg/data is missing."}
OK = {"name": "other", "state": "ok", "problem": ""}


@pytest.fixture
def started(monkeypatch):
    """What was started, and for how long was waited before."""
    events = []
    monkeypatch.setattr(RequestedRun, "start", lambda self, check_mode: events.append("start") or {"attached": False, "changed": True})
    return events


def measure(events, outcome, *, settle=5.0, check_mode=False):
    return Measurement(ORDER, settle, events.append).start(outcome, check_mode=check_mode)


def test_it_starts_after_the_host_has_settled(started):
    assert measure(started, HostOutcome(steps=[STEP]))["started"]
    assert started == [5.0, "start"]


def test_a_host_may_settle_for_hours(started):
    assert measure(started, HostOutcome(steps=[STEP]), settle=7200.0)["started"]
    assert started == [7200.0, "start"]


def test_a_host_that_was_not_changed_needs_not_settle(started):
    assert measure(started, HostOutcome(facts={"lvm_cache": {"caches": [OK]}, "block_queue": {}}))["started"]
    assert started == ["start"]


@pytest.mark.parametrize(
    ("outcome", "check_mode", "words"),
    [
        (HostOutcome(steps=[STEP]), True, "check mode"),
        (HostOutcome(pending=["storage_network"], waiting=["block_queue"]), False, "storage_network and block_queue must be configured"),
        (HostOutcome(facts={"lvm_cache": {"caches": [OK, BROKEN]}}), False, "The SSD of vg/data is missing."),
    ],
)
def test_it_does_not_start_before_everything_is_in_effect(started, outcome, check_mode, words):
    result = measure(started, outcome, check_mode=check_mode)
    assert (result["started"], started) == (False, []) and words in result["reason"]


def test_a_refused_target_leaves_the_result_of_the_layers(monkeypatch):
    def refuse(_self, check_mode):
        raise Refused("/dev/vg/data is mounted on /srv.")

    monkeypatch.setattr(RequestedRun, "start", refuse)
    assert measure([], HostOutcome(steps=[STEP])) == {"started": False, "reason": "/dev/vg/data is mounted on /srv."}


@pytest.mark.parametrize(
    ("change", "settle", "words"),
    [
        ({"host": None}, 0, "host"),
        ({"host": "a/b"}, 0, "cannot be the name of a host"),
        ({"steps": [{"cells": [{**CELL, "name": "../c"}]}]}, 0, "cannot be the name of a cell"),
        ({"sample_intervall": 5}, 0, "sample_intervall"),
        ({}, -1, "settle must be a number of seconds"),
        ({}, float("nan"), "settle must be a number of seconds"),
        ({}, float("inf"), "settle must be a number of seconds"),
    ],
)
def test_bad_input_is_refused_before_anything_is_changed(change, settle, words):
    with pytest.raises(BadInput, match=words):
        Measurement({key: value for key, value in {**ORDER, **change}.items() if value is not None}, settle)


def test_a_cache_that_is_not_running_is_in_the_result(tmp_path, monkeypatch):
    outcome = HostRig(tmp_path, monkeypatch).converge(drives=DRIVES, caches=CACHES)
    assert outcome.to_dict()["not_running"] == []
    outcome.facts["lvm_cache"]["caches"].append(BROKEN)
    assert outcome.to_dict()["not_running"] == ["The SSD of vg/data is missing."]


def test_a_sweep_starts_the_same_measurement_as_the_role_of_the_benchmark(pytestconfig):
    tasks = yaml.safe_load((pytestconfig.rootpath / "roles/fio_benchmark/tasks/measure.yml").read_text())
    alone = next(task["cachefleet.storage.fio_runner"] for task in tasks if "Start the runner" in task["name"])
    step = yaml.safe_load((pytestconfig.rootpath / "roles/sweep/tasks/step.yml").read_text())[0]["block"]
    at_once = next(task["vars"]["__sweep_measurement"] for task in step if "__sweep_measurement" in task.get("vars", {}))
    assert {*at_once, "state"} == set(alone)
    same = {"campaign", "host", "steps", "timeout", "sample_interval", "barrier_timeout", "protected_drives"}
    assert {name: at_once[name] for name in same} == {name: alone[name] for name in same}
