# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools
import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.modules import lvm_cache
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD1, SSD1_PATH, SSD_PATH, FakeLvm, NamedDevices, make_dev
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    make_dev(tmp_path)
    monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, SSD1]))
    monkeypatch.setattr(lvm_cache, "LvmCacheLayer", functools.partial(layer_module.LvmCacheLayer, root=tmp_path))

    def run_module(lvm, caches, check_mode=False):
        # A class, since the layer asks whether its runner is one of them.
        monkeypatch.setattr(lvm_cache, "Runner", type("Stand", (), {"__new__": lambda cls: lvm}))
        return run_here(lvm_cache, capsys, {"caches": caches, "_ansible_check_mode": check_mode})[1]

    return run_module


def test_empty_list_reads_nothing(run):
    lvm = FakeLvm()
    result = run(lvm, [])
    assert (result["changed"], result["actions"], result["problems"], lvm.calls) == (False, [], [], [])


def test_check_mode_predicts_run_and_no_change_on_second_run(run):
    lvm = FakeLvm()
    predicted = run(lvm, [ITEM], check_mode=True)
    assert predicted["changed"]
    assert lvm.changes == []
    done = run(lvm, [ITEM])
    assert (done["actions"], done["diff"]) == (predicted["actions"], predicted["diff"])
    assert run(lvm, [ITEM])["changed"] is False


def test_diff_has_before_and_after_of_every_attribute(run):
    diff = run(FakeLvm(fast="cachepool", mode="writeback", dirty=7), [ITEM])["diff"]
    assert diff == {"before": {"images": {"mode": "writeback"}}, "after": {"images": {"mode": "writethrough"}}}


def test_unresolved_problem_is_returned_without_failure(run):
    lvm = FakeLvm(fast="cachepool", mirror=True, mode="writeback")
    lvm.cache.update(leg_health="refresh needed")
    result = run(lvm, [{**ITEM, "mode": "writeback", "mirror": True, "cache_devices": [SSD_PATH, SSD1_PATH]}])
    assert (result["changed"], "failed" in result) == (False, False)
    assert "vg/data has a write-back cache on a mirror that is degraded" in result["problems"][0]


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        ({"origin": "data"}, "bad_input", "use it as volume group and logical volume"),
        ({"mode": "writeback"}, "refused", "allow_unmirrored_writeback"),
        ({"origin": "vg/none"}, "device_missing", "has no logical volume none"),
        ({"cache_devices": []}, "bad_input", "cache_devices is empty"),
    ],
)
def test_invalid_input_fails_with_one_sentence_and_error_kind(run, item, error, message):
    result = run(FakeLvm(), [{**ITEM, **item}])
    assert (result["failed"], result["error"], result["item"]) == (True, error, "images")
    assert message in result["msg"]
    assert "Traceback" not in json.dumps(result)


def test_invalid_mode_is_rejected(run):
    assert "value of mode must be one of: writethrough, writeback, passthrough" in run(FakeLvm(), [{**ITEM, "mode": "fast"}])["msg"]
