# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import types

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import request_sizes
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import facts as flashcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.tests.simulators import flashcache
from ansible_collections.cachefleet.storage.tests.simulators.in_process.flashcache import BACK, DISK, ITEM, MIB, SSD, FlashcacheHost, changes


@pytest.fixture
def host(tmp_path):
    return FlashcacheHost(tmp_path)


def read(host):
    host.kernel.settle()
    devices = read_devices(host, host.root)
    host.calls.clear()
    return flashcache_facts.read_caches(devices, host, host.root)


def test_host_without_cache_runs_no_commands(host):
    assert read(host) == ()
    assert host.calls == []


def test_cache_state_in_type_independent_model(host):
    host.run_layer(**BACK, settings={"dirty_thresh_pct": 40})
    host.kernel.write("fc0", 100)
    host.kernel.send("fc0", {512: 30, 4096: 10})
    (state,) = read(host)
    assert (state.type, state.name, state.kind, state.device) == ("flashcache", "fc0", "flashcache", "/dev/mapper/fc0")
    assert (state.origin, state.origin_name, state.cache_devices, state.cache_device_names) == (DISK, "sda", (SSD,), ("sdb",))
    assert (state.mode, state.policy, state.block_size, state.size) == ("writeback", "fifo", 4096, 32256 * 4096)
    assert (state.dirty, state.used, state.sends_flushes, state.redundancy, state.state) == (100 * 4096, 110 * 4096, False, "none", "ok")
    assert state.settings["dirty_thresh_pct"] == 40
    assert "do_sync" not in state.settings
    assert state.counters["bypassed_reads"] == 30
    assert state.counters["read_misses"] == 10
    assert state.counters["write_misses"] == 100
    assert state.counters["cache_errors"] == 0
    assert state.histogram == {512: 30, 4096: 110}
    assert request_sizes.diagnose(state.histogram, state.block_size).uncacheable_requests == 30
    assert len(host.calls) == 2
    json.dumps(state.to_dict())


@pytest.mark.parametrize(("counted", "written_back"), [({"cleanings": 1597}, 1597 * 4096), ({}, None)])
def test_written_back_blocks_are_counted_in_bytes(counted, written_back):
    cache = types.SimpleNamespace(statistics=counted, errors={}, table=types.SimpleNamespace(block_size=4096))
    assert flashcache_facts.counters_of(cache).get("written_back_bytes") == written_back


def test_writearound_does_not_count_write_hits(host):
    host.run_layer(mode="writearound")
    host.kernel.write("fc0", 100)
    (state,) = read(host)
    assert "write_hits" not in state.counters
    assert (state.counters["bypassed_writes"], state.dirty) == (100, 0)


@pytest.mark.parametrize("mode", ["writethrough", "writearound"])
def test_failed_ssd_is_bypassed_permanently_and_reported(host, mode):
    host.run_layer(mode=mode)
    host.cache["errors"] = {"ssd_read_errors": 2}
    (state,) = read(host)
    assert state.state == "failed"
    assert "serves everything from the disk since" in state.problem
    assert state.counters["cache_errors"] == 2


def test_missing_ssd_is_reported(host):
    host.run_layer(**BACK)
    (host.root / SSD.lstrip("/")).unlink()
    (state,) = read(host)
    assert (state.state, state.cache_devices, state.cache_device_names) == ("cache_missing", (SSD,), ())


def test_unloaded_cache_is_reported_with_possible_dirty_data(host):
    host.run_layer(**BACK)
    host.kernel.write("fc0", 10)
    host.crash()
    (state,) = read(host)
    assert (state.state, state.dirty, state.name) == ("inactive", None, "fc0")
    assert f"do not use {DISK} before it is loaded" in state.problem
    assert host.calls == []


def test_clean_and_unstable_unloaded_caches(host):
    host.run_layer(**BACK)
    host.kernel.begin_removal("fc0")
    (state,) = read(host)
    assert (state.state, state.dirty) == ("inactive", 0)
    flashcache.Blockdev(host.state).answer(["--flushbufs", SSD], "")
    flashcache.FlashcacheLoad(host.state).answer([SSD], "")
    host.state["faults"]["metadata_fails"] = True
    host.kernel.begin_removal("fc0")
    (state,) = read(host)
    assert state.state == "read_only"


def test_origin_visible_to_lvm_is_reported(host):
    host.run_layer()
    host.fake.records = [record + ("\nE: ID_FS_TYPE=LVM2_member\nE: ID_FS_USAGE=raid" if "N: sda" in record else "") for record in host.fake.records]
    layer = host.layer([{"name": "fc0", "origin": DISK, "cache_devices": [SSD]}])
    (problem,) = layer.facts(layer.read())["problems"]
    assert problem.startswith(f"fc0: {DISK}, the origin of /dev/mapper/fc0, carries LVM2_member: at boot LVM activates")
    host.lvm_rejects = True
    assert layer.facts(layer.read())["problems"] == []


def test_user_of_the_disk_past_the_cache_is_critical_and_nothing_is_flushed(host):
    host.run_layer(**BACK)
    host.fake.disk("dm-7", "virtual", size=MIB, slaves=["sda"])
    layer = host.layer([{**ITEM, **BACK}])
    facts = layer.facts(layer.read())
    assert facts["caches"][0]["state"] == "inconsistent"
    assert "past its cache fc0" in facts["problems"][0]
    for state in ("present", "flushed", "absent"):
        host.calls.clear()
        with pytest.raises(Refused, match=r"The origin .* is used by dm-7, past its cache fc0.* Nothing is flushed while it is so"):
            host.run_layer(**{**BACK, "state": state})
        assert not any(map(changes, host.calls))


def test_writeback_over_a_physical_volume_is_refused_until_lvm_is_kept_away(host):
    host.signatures["sda"] = [{"type": "LVM2_member", "uuid": "a"}]
    with pytest.raises(Refused, match="LVM activates the volume group on it without waiting for the cache"):
        host.run_layer(**BACK)
    assert not host.run_layer(check_mode=True).warnings
    host.lvm_rejects = True
    assert host.run_layer(**BACK).changed
