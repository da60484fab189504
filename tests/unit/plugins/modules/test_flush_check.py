# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import flush_check as checks
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_check import Counters
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import LayerFacts, Stack
from ansible_collections.cachefleet.storage.plugins.modules import cache_stack_info, flush_check
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here

_STAT = "51 0 2112 28 0 0 0 0 0 8 28 0 0 0 0 {} 3\n"


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A disk whose kernel counts what is sent to it, as far as ``arrives`` says."""
    place = write(tmp_path, "sys/class/block/sda/stat", _STAT.format(0))
    write(tmp_path, "dev/sda", "")
    device = BlockDevice("sda", "/dev/sda", "8:0", size=1 << 30, transport="sata", queue={"write_cache": "write back"})
    stack = Stack(Devices([device], tmp_path), {"sda": [LayerFacts("drive", {}, True, "has its volatile write cache on")]})
    state = {"arrives": True, "count": 0, "sent": 0}

    def send(_device, count):
        state["sent"] += count
        state["count"] += count if state["arrives"] else 0
        place.write_text(_STAT.format(state["count"]))

    genuine = checks.check

    def check(given, paths, flushes=8, settle=0.5):
        return genuine(given, paths, flushes, settle, tmp_path, checks.Means(Counters(tmp_path), send, sleep=lambda seconds: None))

    for module in (flush_check, cache_stack_info):
        monkeypatch.setattr(module, "read_stack", lambda runner, protected, flushed: stack)
        monkeypatch.setattr(module, "check", check)
    return state


@pytest.mark.parametrize("check_mode", [False, True])
def test_device_is_flushed_in_check_mode_without_change(capsys, disk, check_mode):
    code, result = run_here(flush_check, capsys, {"devices": ["/dev/sda"], "_ansible_check_mode": check_mode})
    assert (code, result["changed"], result["checks"][0]["state"], disk["sent"]) == (0, False, "proved", 17)


def test_returned_fields_match_the_documentation(capsys, disk):
    _code, result = run_here(flush_check, capsys, {"devices": ["/dev/sda"], "flushes": 4})
    documented = yaml.safe_load(flush_check.RETURN)
    assert set(result["checks"][0]) == set(documented["checks"]["contains"])
    assert set(result["checks"][0]["disks"][0]) == set(documented["checks"]["contains"]["disks"]["contains"])
    assert disk["sent"] == 9


def test_stack_verdict_includes_the_flush_check(capsys, disk):
    disk["arrives"] = False
    _code, without = run_here(cache_stack_info, capsys, {})
    assert (without["devices"]["sda"]["verdict"], without["flush_checks"], disk["sent"]) == ("durable", [], 0)
    _code, proved = run_here(cache_stack_info, capsys, {"prove_flushes": ["/dev/sda"]})
    assert proved["devices"]["sda"]["verdict"] == "at_risk"
    assert proved["flush_checks"][0]["state"] == "disproved"


def test_missing_path_fails_with_one_sentence(capsys):
    code, result = run_here(flush_check, capsys, {"devices": ["/dev/no/such/disk"]})
    assert (code, result["error"]) == (1, "device_missing")
    assert "/dev/no/such/disk cannot be read on this host" in result["msg"]


@pytest.mark.parametrize("arguments", [{}, {"devices": []}, {"devices": ["/dev/sda"], "flushes": 0}])
def test_invalid_options_are_rejected(capsys, disk, arguments):
    code, result = run_here(flush_check, capsys, arguments)
    if arguments.get("devices") == []:
        assert (code, result["checks"]) == (0, [])
    else:
        assert code == 1
        assert result["msg"]
