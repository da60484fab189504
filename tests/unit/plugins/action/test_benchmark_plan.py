# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb benchmark_plan: the timing of a measurement."""

from __future__ import annotations

import json
import pathlib
import types

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.action import benchmark_plan
from ansible_collections.cachefleet.storage.plugins.modules.benchmark_plan import TIMING

ROLE = pathlib.Path(__file__).resolve().parents[4] / "roles/fio_benchmark"
DEFAULTS = {key: option["default"] for key, option in TIMING.items()}


@pytest.fixture
def plan():
    def planned(**args):
        action = object.__new__(benchmark_plan.ActionModule)
        vars(action).update(
            _display=types.SimpleNamespace(warning=warnings.append, display=printed.append),
            _task=types.SimpleNamespace(args={"targets": [{"file": "/tmp/x", "size": "1g"}], **args}, check_mode=False, async_val=0),
            _connection=types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=None)),
        )
        return action.run(task_vars={"inventory_hostname": "node1"})

    warnings, printed = planned.warnings, planned.printed = [], []
    return planned


def test_timing_is_merged_by_key_over_the_defaults(plan):
    assert plan()["timing"] == DEFAULTS
    assert plan(timing={})["timing"] == DEFAULTS
    assert plan(timing={"poll": "30", "clocks_synchronised": "yes"})["timing"] == {**DEFAULTS, "poll": 30.0, "clocks_synchronised": True}
    assert plan.warnings == []


@pytest.mark.parametrize("show", [False, True])
def test_plan_is_printed_where_nothing_is_measured(plan, show):
    text = plan(show=show)["text"]
    assert text and plan.printed == ([f"\n{text}\n"] if show else [])


def test_plan_of_a_campaign_names_what_is_left(plan, tmp_path):
    where = {"show": True, "results": str(tmp_path), "campaign": "c", "variant": "before"}
    cells = plan(**where)["cells"]
    (tmp_path / "c").mkdir()
    whole = plan.printed.pop()
    for count, said in ((1, f"1 of these cells of variant before were measured already: {len(cells) - 1} are left."), (len(cells), "set another variant")):
        for one in cells[:count]:
            place = tmp_path / "c/node1/before" / one["name"] / str(one["repeat"])
            place.mkdir(parents=True, exist_ok=True)
            (place / "meta.json").write_text(json.dumps({"state": "ok", "files": {}, "measurement_sha256": "a" * 64}))
        plan(**where)
        assert said in plan.printed[-1]
    assert "node1: all" in plan.printed[-1] and whole.strip() not in plan.printed[-1]
    for other in ({"variant": "after"}, {"replace": True}, {"campaign": ""}):
        plan(**{**where, **other})
        assert plan.printed[-1] == whole


def test_gap_of_the_timing_is_that_of_the_plan(plan):
    assert plan(timing={"gap": 7})["seconds"] > plan(timing={"gap": 2})["seconds"]


@pytest.mark.parametrize(
    ("timing", "message"),
    [
        ({"gapp": 1}, "fio_benchmark_timing has no key gapp: did you mean gap?"),
        ({"pause": 1}, "fio_benchmark_timing has no key pause: give one of gap, barrier_timeout, clocks_synchronised, sample_interval,"),
        ({"patience": -1}, "fio_benchmark_timing.patience is -1: give seconds from 0 on."),
        ({"gap": "inf"}, "fio_benchmark_timing.gap is inf: give seconds from 0 on."),
    ],
)
def test_invalid_timing_is_refused(plan, timing, message):
    result = plan(timing=timing)
    assert result["failed"] is True and result["msg"].startswith(message)


def test_role_documents_the_same_keys_and_defaults():
    options = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert {key: (option["type"], option["default"]) for key, option in options["fio_benchmark_timing"]["options"].items()} == {
        key: (option["type"], option["default"]) for key, option in TIMING.items()
    }


@pytest.fixture
def host(monkeypatch, plan):
    """What the host answers for the matches that it is asked for."""
    answers, asked = [], []

    def answer(_action, module, arguments, task_vars):
        asked.append((module, arguments))
        return answers.pop()

    monkeypatch.setattr(benchmark_plan.ActionModule, "answer_of", answer)
    return types.SimpleNamespace(answers=answers, asked=asked)


MATCHING = [{"match": {"model": "INTEL*"}, "name": "ssd", "capacity": "400g"}, {"match": {"rotational": True}}]


def test_devices_of_a_match_are_those_of_the_host(plan, host):
    host.answers.append({"matched": [["/dev/disk/by-id/ata-I1", "/dev/disk/by-id/ata-I2"], []], "devices": {}})
    planned = plan(targets=MATCHING)
    assert {cell["target"]["device"] for step in planned["steps"] for cell in step["cells"]} == {"/dev/disk/by-id/ata-I1", "/dev/disk/by-id/ata-I2"}
    assert {cell["name"].rpartition(".")[2] for cell in planned["cells"]} == {"ssd1", "ssd2"}
    ((module, arguments),) = host.asked
    assert module == "cachefleet.storage.cache_stack_info" and arguments == {"matches": [{"model": ["INTEL*"]}, {"rotational": True}]}
    assert plan.warnings == ["fio_benchmark_targets: target 2 matches no device of this host."]


def test_host_is_asked_only_for_matches(plan, host):
    assert plan()["cells"] and not host.asked


@pytest.mark.parametrize(
    ("answer", "message"),
    [({"failed": True, "msg": "lsblk is missing."}, "lsblk is missing."), ({"matched": [["/dev/a"]]}, "did not answer which devices target 2 matches")],
)
def test_failure_of_the_host_is_that_of_the_plan(plan, host, answer, message):
    host.answers.append(answer)
    planned = plan(targets=MATCHING)
    assert planned["failed"] and message in planned["msg"]


CACHED = {"suites": {"s": {"cells": [{"name": "a", "job": {"rw": "read", "size": "0.5 x cache"}}]}}, "suite": "s"}


def cached(size, **values):
    return {"layers": [{"caches": [{"layer": "block_cache", "name": "images", "size": size}]}], **values}


def test_size_of_the_cache_is_that_of_the_host(plan, host):
    host.answers.append({"devices": {"vg0/lv": cached(8 << 30)}})
    planned = plan(**CACHED, targets=[{"device": "/dev/vg0/lv"}])
    assert planned["steps"][0]["cells"][0]["job"]["size"] == 4 << 30
    assert host.asked == [("cachefleet.storage.cache_stack_info", {"matches": []})]


def test_size_of_the_cache_of_matched_devices_takes_one_call(plan, host):
    host.answers.append({"matched": [["/dev/disk/by-id/ata-I1"]], "devices": {"sda": cached(8 << 30, by_id=["/dev/disk/by-id/ata-I1"])}})
    planned = plan(**CACHED, targets=[{"match": {"model": "INTEL*"}}])
    assert planned["steps"][0]["cells"][0]["job"]["size"] == 4 << 30 and len(host.asked) == 1


def test_size_that_is_set_asks_nobody(plan, host):
    assert plan(**CACHED, cache_size="2g", targets=[{"device": "/dev/x"}])["steps"][0]["cells"][0]["job"]["size"] == 1 << 30 and not host.asked


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"failed": True, "msg": "lsblk is missing."}, "lsblk is missing."),
        ({"devices": {}}, "no SSD cache with a known size was found: set fio_benchmark_cache_size"),
    ],
)
def test_size_that_the_host_does_not_have_is_refused(plan, host, answer, message):
    host.answers.append(answer)
    planned = plan(**CACHED, file="/srv/fio", targets=[])
    assert planned["failed"] and message in planned["msg"]


def test_wrong_match_is_refused_before_the_host_is_asked(plan, host):
    planned = plan(targets=[{"match": {"modell": "x"}}])
    assert planned["failed"] and "target 1: match" in planned["msg"] and "did you mean model?" in planned["msg"] and not host.asked
