# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import parse_status, parse_tables
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood

_SMQ = "0 1228800 cache 8 15/2048 128 1606/3072 265 59 8271 1969 0 1606 1579 2 metadata2 writeback 2 migration_threshold 2048 smq 0 rw - "


def test_cache_status_is_parsed_by_its_field_counts():
    status = parse_status(f"vg-data: {_SMQ}\n")["vg-data"]
    assert (status.mode, status.policy, status.block_size, status.used, status.total, status.dirty) == (
        "writeback",
        "smq",
        65536,
        1606,
        3072,
        1579,
    )
    assert (status.read_hits, status.read_misses, status.write_hits, status.write_misses) == (265, 59, 8271, 1969)
    assert (status.read_only, status.needs_check) == (False, False)
    # Blocks of 8 sectors.
    assert (status.metadata_used, status.metadata_size) == (15 * 4096, 2048 * 4096)


def test_mq_policy_with_ignored_settings_and_needs_check():
    text = (
        "c: 0 8 cache 8 1/8 128 1/8 1 2 3 4 0 0 0 1 writethrough 2 migration_threshold 2048 mq 4 random_threshold 4 read_promote_adjustment 4 ro needs_check \n"
    )
    status = parse_status(text)["c"]
    assert status.policy_settings == {"random_threshold": "4", "read_promote_adjustment": "4"}
    assert (status.read_only, status.needs_check) == (True, True)


@pytest.mark.parametrize("word", ["Fail", "Error"])
def test_cache_status_with_single_word_means_failed(word):
    status = parse_status(f"c: 0 8 cache {word}\n")["c"]
    assert status.failed
    assert status.dirty is None


def test_all_used_writecache_blocks_are_dirty():
    status = parse_status("w: 0 1228800 writecache 0 51000 45880 0 1566 34 5120 0 0 0 5120 0 0 0\n")["w"]
    assert (status.total, status.dirty, status.errors) == (51000, 5120, 0)


def test_older_writecache_with_four_fields_is_parsed():
    assert parse_status("w: 0 8 writecache 0 100 40 0\n")["w"].dirty == 60


def test_other_targets_are_ignored():
    assert parse_status("a: 0 8 linear\nb: 0 8 raid raid1 2 AA 8/8 idle 0 0 -\nNo devices found\n") == {}


def test_invalid_status_line_is_quoted_in_error():
    with pytest.raises(NotUnderstood, match=r"cache status that could not be parsed: '0 8 cache 8 x/y"):
        parse_status("c: 0 8 cache 8 x/y 128\n")


@given(st.lists(st.sampled_from([*_SMQ.split(), "", "-1", "999999999999999999999", "\N{SNOWMAN}"]), min_size=1, max_size=40))
def test_mutation_of_status_line_raises_only_not_understood(words):
    with contextlib.suppress(NotUnderstood):
        parse_status("c: 0 8 cache " + " ".join(words))


def test_captured_status_output_is_parsed(shared_samples):
    found = {path.name: list(parse_status(path.read_text()).values()) for path in (shared_samples / "cache").glob("dmsetup-status.*.txt")}
    assert found["dmsetup-status.cachevol-writeback-dirty.txt"][0].dirty == 390
    assert found["dmsetup-status.cachepool-raid1-writeback-dirty.txt"][0].policy == "smq"
    assert found["dmsetup-status.writecache-dirty.txt"][0].dirty == 5120
    assert found["dmsetup-status.plain.txt"] == []


def test_counters_of_a_series():
    """Sources: cache_status of dm-cache-target.c, Documentation/admin-guide/device-mapper/writecache.rst."""
    lines = (f"c: {_SMQ}", "w: 0 8 writecache 0 51000 45880 0 1566 34 5120 7 9 11 5093 0 0 0", "old: 0 8 writecache 0 51000 45880 0")
    found = {name: status.series for name, status in parse_status("\n".join(lines)).items()}
    assert found["w"] == {"read_hits": 34, "read_misses": 1532, "write_hits": 16, "write_misses": 5093, "bypassed_writes": 11}
    assert found["c"] == {"promotions": 1606} and found["old"] == {}


TABLE = """\
vg-data: 0 1048576 cache 253:2 253:1 253:3 128 2 metadata2 writethrough smq 2 migration_threshold 2048
vg-old: 0 1048576 cache 253:2 253:1 253:3 512 0 cleaner 0
vg-wc: 0 1048576 writecache s 253:2 253:1 4096 7 high_watermark 70 cleaner low_watermark 40 writeback_jobs 0
vg-meta: 0 1048576 writecache s 253:2 253:1 4096 3 metadata_only max_age 5
vg-bare: 0 1048576 writecache p 253:2 253:1 512 0
vg-linear: 0 1048576 linear 8:16 2048
vg-wc_real: 0 8 flashcache conf:
\tssd dev (/dev/sdb), disk dev (/dev/sda) cache mode(WRITE_BACK)
"""


def test_tables_provide_what_status_lacks():
    tables = parse_tables(TABLE)
    assert set(tables) == {"vg-data", "vg-old", "vg-wc", "vg-meta", "vg-bare"}
    assert (tables["vg-data"].mode, tables["vg-data"].block_size, tables["vg-data"].cleaner) == ("writethrough", 65536, False)
    assert (tables["vg-old"].mode, tables["vg-old"].cleaner) == ("writeback", True)
    assert (tables["vg-wc"].block_size, tables["vg-wc"].cleaner) == (4096, True)
    assert tables["vg-wc"].settings == {"high_watermark": "70", "low_watermark": "40", "writeback_jobs": "0"}
    assert tables["vg-meta"].settings == {"metadata_only": "1", "max_age": "5"}
    assert (tables["vg-bare"].block_size, tables["vg-bare"].cleaner, tables["vg-bare"].settings) == (512, False, {})


@pytest.mark.parametrize("line", ["a: 0 8 cache 1 2", "a: 0 8 cache 1 2 3 x 0 smq 0", "a: 0 8 writecache s 1 2 4096", "a: 0 8 writecache s 1 2 4096 1 max_age"])
def test_invalid_tables_are_quoted_in_error(line):
    with pytest.raises(NotUnderstood, match="cache table that could not be parsed"):
        parse_tables(line)


def test_captured_tables_are_parsed(shared_samples):
    folder = shared_samples / "cache"
    names = {"cachevol-writeback-dirty": "writeback", "cachevol-writethrough": "writethrough", "writecache-dirty": "writeback"}
    for name, mode in names.items():
        tables = parse_tables((folder / f"dmsetup-table.{name}.txt").read_text())
        assert [table.mode for table in tables.values()] == [mode]
