# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.modules import cache_stack_info
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here


@pytest.mark.parametrize("check_mode", [False, True])
def test_every_device_has_a_verdict_with_a_reason(capsys, check_mode):
    code, result = run_here(cache_stack_info, capsys, {"_ansible_check_mode": check_mode})
    assert (code, result["changed"]) == (0, False)
    for device in result["devices"].values():
        assert device["verdict"] in ("durable", "at_risk", "unknown")
        assert device["reason"].endswith(".")
        assert device["layers"][0]["name"] == device["name"]
        assert device["size"] > 0


def test_devices_without_a_medium_are_returned_only_on_request(capsys):
    _code, some = run_here(cache_stack_info, capsys, {})
    _code, every = run_here(cache_stack_info, capsys, {"all_devices": True})
    assert set(some["devices"]) <= set(every["devices"])
    assert all(device["size"] == 0 for name, device in every["devices"].items() if name not in some["devices"])


def test_wrong_type_is_rejected(capsys):
    code, result = run_here(cache_stack_info, capsys, {"protected_drives": {"serial": "S1"}})
    assert code == 1
    assert "protected_drives" in result["msg"]


def test_paths_of_matches_are_returned_in_their_order(capsys):
    _code, result = run_here(cache_stack_info, capsys, {"matches": [{"size_min": "1"}, {"model": "NO SUCH*"}, {"kind": "loop"}]})
    every, none, loops = result["matched"]
    disks = [device for device in result["devices"].values() if device["kind"] == "disk" and device["size"]]
    assert len(every) == len(disks) and none == [] and all(path.startswith("/dev/") for path in every) and every == sorted(every)
    assert len(loops) == len([device for device in result["devices"].values() if device["kind"] == "loop" and device["size"]])


@pytest.mark.parametrize(("match", "message"), [({"modell": "x"}, "did you mean model?"), ({"size_min": "big"}, "size_min")])
def test_wrong_match_is_rejected(capsys, match, message):
    code, result = run_here(cache_stack_info, capsys, {"matches": [match]})
    assert code == 1 and "entry 1" in result["msg"] and message in result["msg"]
