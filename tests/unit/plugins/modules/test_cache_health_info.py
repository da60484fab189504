# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._health import host as host_module
from ansible_collections.cachefleet.storage.plugins.module_utils._health import host as module_module
from ansible_collections.cachefleet.storage.plugins.modules import cache_health_info
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.health import GIB, cache
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

RETURNED = {"healthy", "worst", "findings", "problems", "drives", "over_provisioning", "caches", "controllers", "readings", "prometheus", "compared"}


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", serial="S1")
    caches = tuple(cache(name=f"vg0/lv{number}", dirty=75 * GIB, counters={"read_hits": 5, "read_misses": 1}) for number in range(24))
    smart = Reply(json.dumps({"device": {"protocol": "ATA"}, "serial_number": "S1"}))
    runner = ScriptedRunner({("udevadm", "info"): host.udev_reply, ("smartctl",): smart, ("hdparm",): Reply()})
    monkeypatch.setattr(module_module, "Runner", lambda: runner)
    monkeypatch.setattr(module_module, "_ROOT", tmp_path)
    monkeypatch.setattr(host_module.survey, "read_caches", lambda *_arguments: Survey(caches))
    monkeypatch.setitem(host_module.read_health.__kwdefaults__, "read_caches", lambda *_arguments: Survey(caches))

    return lambda **params: run_here(cache_health_info, capsys, params)[1]


def test_host_with_24_caches_takes_less_than_one_second(run):
    started = time.process_time()
    result = run()
    assert time.process_time() - started < 1
    assert set(result) >= RETURNED
    assert (result["changed"], result["worst"], result["compared"]) == (False, "critical", False)
    assert len([one for one in result["findings"] if one["check"] == "cache_dirty"]) == 24
    assert all("\n" not in one["message"] for one in result["findings"])


def test_returned_readings_are_accepted_by_the_next_run(run):
    first = run()["readings"]
    second = run(previous={**first, "time": first["time"] - 60})
    assert second["compared"] is True
    assert {one["hit_rates"]["state"] for one in second["caches"]} == {"idle"}


def test_invalid_input_fails_with_one_sentence(run):
    result = run(interval=-3)
    assert (result["failed"], result["error"]) == (True, "bad_input")
    assert run(previous={"version": 1})["error"] == "bad_input"


def test_user_defined_limit_is_applied(run):
    assert run(limits={"dirty": 90})["worst"] == "warning"
