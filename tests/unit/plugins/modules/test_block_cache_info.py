# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey import host_caches as survey
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.modules import block_cache_info
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr(block_cache_info, "read_devices", lambda runner: Devices([]))

    return lambda **arguments: run_here(block_cache_info, capsys, arguments)


@pytest.fixture
def host(monkeypatch):
    """Two caches; the dirty amount of the first falls by a quarter at every look."""
    amounts = iter([4096, 3072, 2048])

    def lvm(devices, runner, root):
        fields = {"size": 8192, "dirty": next(amounts), "counters": {"read_hits": 9, "read_misses": 1}, "histogram": {4096: 7}}
        return (CacheState("lvm_cache", "vg0/images", "cachepool", "/dev/vg0/images", "dm-3", None, None, mode="writeback", **fields),)

    def bcache(devices, runner, root):
        return (CacheState("bcache", "bcache0", "bcache", "/dev/bcache0", "bcache0", None, None),)

    def broken(devices, runner, root):
        raise ToolMissing("The command dmsetup is missing on this host: install the package dmsetup.")

    monkeypatch.setattr(survey, "READERS", {"lvm_cache": lvm, "dm_cache": broken, "bcache": bcache})


@pytest.mark.parametrize("check_mode", [False, True])
def test_all_cache_types_share_one_model_and_read_errors_are_problems(run, host, check_mode):
    code, result = run(_ansible_check_mode=check_mode)
    assert (code, result["changed"], result["drain"]) == (0, False, [])
    assert [cache["name"] for cache in result["caches"]] == ["bcache0", "vg0/images"]
    first, second = result["caches"]
    assert (first["dirty"], first["dirty_share"], first["hit_ratio"]) == (None, None, None)
    assert (second["dirty"], second["dirty_share"], second["hit_ratio"], second["histogram"]) == (4096, 0.5, 0.9, {"4096": 7})
    assert result["problems"] == ["The caches of type dm_cache could not be read: The command dmsetup is missing on this host: install the package dmsetup."]


def test_documented_fields_are_returned(run, host):
    import yaml

    documented = yaml.safe_load(block_cache_info.RETURN)
    _code, result = run(sample_seconds=0.01)
    assert set(documented) == {"caches", "drain", "problems"}
    for key in ("caches", "drain"):
        assert result[key]
        assert all(set(entry) == set(documented[key]["contains"]) for entry in result[key])


def test_sample_reports_the_drain_rate(run, host):
    _code, result = run(sample_seconds=0.05, names=["vg0/images"])
    (drain,) = result["drain"]
    assert (drain["name"], drain["type"], drain["dirty"]) == ("vg0/images", "lvm_cache", 3072)
    assert 0 < drain["bytes_per_second"] <= 1024 / 0.05
    assert drain["seconds_until_clean"] == pytest.approx(3072 / drain["bytes_per_second"])
    assert [cache["dirty"] for cache in result["caches"]] == [3072]


def test_filters(run, host):
    _code, result = run(types=["bcache"])
    assert ([cache["name"] for cache in result["caches"]], result["problems"]) == (["bcache0"], [])
    _code, result = run(names=["dm-3", "elsewhere"], types=["lvm_cache"])
    assert [(cache["name"], cache["matched"]) for cache in result["caches"]] == [("vg0/images", ["dm-3"])]
    assert result["problems"] == ["No SSD cache of this host has the name, the device or the origin elsewhere."]


def test_negative_sample_seconds_are_rejected(run, host):
    code, result = run(sample_seconds=-1)
    assert (code, result["error"]) == (1, "bad_input")
    assert "sample_seconds must not be negative" in result["msg"]


def test_unknown_type_is_rejected(run, host):
    code, result = run(types=["maxcache"])
    assert (code, "types" in result["msg"]) == (1, True)


def test_unreadable_host_fails_with_one_sentence(run, host, monkeypatch):
    def fail(runner):
        raise CommandFailed("udevadm info --export-db failed with exit status 1: no database")

    monkeypatch.setattr(block_cache_info, "read_devices", fail)
    code, result = run()
    assert (code, result["error"], result["msg"]) == (1, "command_failed", "udevadm info --export-db failed with exit status 1: no database")
