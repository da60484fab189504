# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import parse_status
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import parse_logical_volumes, parse_physical_volumes, parse_report
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import lv_row, pv_row, report


def one(**fields):
    row = {**lv_row("vg/data", "-wi-a-----", "linear", 8, "/dev/sda(0)"), **fields}
    return parse_logical_volumes(report("lv", [row]))[0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # Empty values do not apply.
        ({}, {"pool": None, "cache_mode": None, "dirty": None, "chunk_size": None, "health": None, "settings": {}, "tags": ()}),
        ({"lv_check_needed": "unknown"}, {"check_needed": "unknown"}),
        ({"cache_dirty_blocks": "0"}, {"dirty": 0}),
        # Names in brackets are those of hidden volumes and of missing devices.
        (
            {"lv_name": "[data_corig]", "lv_full_name": "vg/data_corig", "pool_lv": "[fast_cvol]"},
            {"name": "data_corig", "hidden": True, "pool": "fast_cvol"},
        ),
        (
            {"devices": "[unknown](0)", "lv_attr": "Cwi---C-p-", "lv_health_status": "partial"},
            {"devices": ("[unknown]",), "partial": True, "active": False},
        ),
        (
            {"kernel_cache_settings": "migration_threshold=2048,random_threshold=0"},
            {"kernel_settings": {"migration_threshold": "2048", "random_threshold": "0"}},
        ),
    ],
)
def test_volume_fields_are_parsed(fields, expected):
    volume = one(**fields)
    assert {name: getattr(volume, name) for name in expected} == expected


def test_volume_with_two_segments_lists_both_devices():
    rows = [lv_row("vg/data", "-wi-a-----", "linear", 8, devices) for devices in ("/dev/sda(0)", "/dev/sdc(0),/dev/sda(9)")]
    (volume,) = parse_logical_volumes(report("lv", rows))
    assert volume.devices == ("/dev/sda", "/dev/sdc")


@pytest.mark.parametrize(
    ("fields", "quoted"),
    [
        ({"lv_size": "400.00m"}, "400.00m"),
        ({"lv_size": ""}, "no lv_size"),
        ({"cache_dirty_blocks": "many"}, "many"),
        ({"cache_settings": "nonsense"}, "nonsense"),
        ({"devices": "/dev/sda"}, "/dev/sda"),
        ({"lv_full_name": "data"}, "data"),
    ],
)
def test_invalid_values_are_quoted_in_error(fields, quoted):
    with pytest.raises(NotUnderstood, match=quoted):
        one(**fields)


@pytest.mark.parametrize(
    "text", ["", "  WARNING: locking is broken\n", '{"report": 5}', '{"report": [5]}', "[]", '{"report": [{"lv": [5]}]}', '{"report": [{"lv": 7}]}']
)
def test_invalid_output_is_rejected(text):
    with pytest.raises(NotUnderstood):
        parse_logical_volumes(text)


def test_invalid_output_is_quoted_in_error():
    with pytest.raises(NotUnderstood, match="locking is broken"):
        parse_logical_volumes("  locking is broken\n")


_JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(_JSON)
def test_arbitrary_json_raises_only_not_understood(document):
    for parse in (parse_logical_volumes, parse_physical_volumes, parse_report):
        for text in (json.dumps(document), json.dumps({"report": [{"lv": document, "pv": document}]})):
            with contextlib.suppress(NotUnderstood):
                parse(text)


def test_physical_volumes_are_parsed():
    rows = [pv_row("/dev/sda", "vg", 100, 40), pv_row("/dev/sdb", "", 50, 50, "---"), pv_row("[unknown]", "vg", 9, 9, "a-m")]
    used, orphan, missing = parse_physical_volumes(report("pv", rows))
    assert (used.vg, used.size, used.free, used.extent_size, used.missing, used.allocatable) == ("vg", 100, 40, 4194304, False, True)
    assert (orphan.vg, orphan.extent_size) == (None, 0)
    assert missing.missing


def test_log_report_is_ignored():
    text = json.dumps({"report": [{"lv": []}], "log": [{"log_seq_num": "1"}]})
    assert parse_logical_volumes(text) == ()


class TestCapturedOutputs:
    """The reference's own captures; their rows carry other fields too."""

    @pytest.fixture
    def volumes(self, shared_samples):
        def read(name):
            return {volume.name: volume for volume in parse_logical_volumes((shared_samples / "cache" / f"lvs-json.{name}.txt").read_text())}

        return read

    def test_dirty_cachevol(self, volumes):
        found = volumes("cachevol-writeback-dirty")
        data = found["data"]
        assert (data.cached, data.pool, data.cache_mode, data.dirty, data.used_blocks, data.total_blocks) == (True, "fast_cvol", "writeback", 390, 725, 1920)
        assert (data.policy, data.kernel_policy, data.chunk_size) == ("smq", "mq", 65536)
        assert found["fast_cvol"].devices == ("/dev/sdb",)

    def test_mirrored_cachepool(self, volumes):
        found = volumes("cachepool-raid1-writeback-dirty")
        assert [name for name, volume in found.items() if volume.cached] == ["data"]
        assert found["cp_cpool"].segtype == "cache-pool"
        assert found["cp_cpool_cdata"].segtype == found["cp_cpool_cmeta"].segtype == "raid1"

    def test_cache_with_missing_device(self, volumes):
        found = volumes("missing-cache-device")
        assert (found["data"].partial, found["data"].dirty, found["data"].check_needed) == (True, None, "unknown")

    def test_writecache_used_blocks_are_all_dirty(self, volumes):
        data = volumes("writecache-dirty")["data"]
        assert (data.cached, data.writecache, data.mode, data.chunk_size) == (True, True, "writeback", 4096)
        assert data.dirty == data.used_blocks > 0
        assert data.total_blocks == 32640

    def test_sizes_in_megabytes_are_rejected(self, shared_samples):
        with pytest.raises(NotUnderstood, match=r"1020\.00m"):
            parse_physical_volumes((shared_samples / "cache/pvs-missing.txt").read_text())


class TestOurOwnRack:
    """Printed by the rack's machines, see tests/unit/data/lvm/README.md."""

    @pytest.fixture
    def outputs(self, request):
        folder = request.config.rootpath / "tests/unit/data/lvm"

        def read(state):
            volumes = {volume.name: volume for volume in parse_logical_volumes((folder / f"lvs.{state}.json").read_text())}
            status = folder / f"dmsetup-status.{state}.txt"
            return volumes, parse_status(status.read_text()) if status.exists() else {}

        return read

    def test_own_pool_carries_its_tag(self, outputs):
        volumes, status = outputs("cachepool-writethrough")
        pool = volumes["data_cache_cpool"]
        assert (pool.tags, pool.segtype, pool.devices) == (("cachefleet.storage",), "cache-pool", ("data_cache_cpool_cdata",))
        assert (volumes["data"].cache_mode, volumes["data"].dirty, volumes["data"].chunk_size) == ("writethrough", 0, 65536)
        assert volumes["lvol1_pmspare"].hidden
        assert status["lvmtest-data"].mode == "writethrough"

    def test_remaining_cleaner_policy_shows_only_in_kernel(self, outputs):
        volumes, status = outputs("cachepool-cleaner-left")
        assert (volumes["data"].policy, volumes["data"].kernel_policy) == ("smq", "cleaner")
        assert status["lvmtest-data"].policy == "cleaner"

    def test_dirty_cachevol_with_threshold_raised_by_kernel(self, outputs):
        volumes, status = outputs("cachevol-writeback-dirty")
        data = volumes["data"]
        assert (data.cache_mode, data.dirty, data.pool) == ("writeback", 500, "data_cache_cvol")
        assert data.settings == {"migration_threshold": "100"}
        assert data.kernel_settings["migration_threshold"] == "1024"
        assert volumes["data_cache_cvol"].size == 400 << 20
        assert status["lvmtest-data"].mode == "writeback"

    def test_detached_cache_device_stays_in_volume_group(self, outputs, request):
        assert list(outputs("detached")[0]) == ["data"]
        physical = parse_physical_volumes((request.config.rootpath / "tests/unit/data/lvm/pvs.detached.json").read_text())
        assert [(pv.vg, pv.free == pv.size, pv.extent_size) for pv in physical] == [("lvmtest", False, 4 << 20), ("lvmtest", True, 4 << 20)]

    def test_combined_report_is_parsed(self, request):
        report = parse_report((request.config.rootpath / "tests/unit/data/lvm/report.cachepool-replaced.json").read_text())
        volumes = {volume.name: volume for volume in report.volumes}
        assert [name for name, volume in volumes.items() if volume.cached] == ["data"]
        assert (volumes["data"].pool, volumes["data"].mode, volumes["data"].chunk_size) == ("data_cache_cpool", "writethrough", 65536)
        assert volumes["data_cache_cpool_cdata"].devices == volumes["lvol0_pmspare"].devices == ("/dev/sdd",)
        assert [(pv.path, pv.vg, pv.missing, pv.extent_size) for pv in report.physical] == [
            ("/dev/sdb", "vg0", False, 4 << 20),
            ("/dev/sdd", "vg0", False, 4 << 20),
        ]
