# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import passed
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings, Traffic, from_dict, from_file, key_of, read_traffic, take
from ansible_collections.cachefleet.storage.tests.unit.support.health import BCACHE, CACHE, CASE_C, FLASHCACHE, cache, drive, readings, traffic
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write

BEFORE = {"read_hits": 1000, "read_misses": 500, "write_hits": 10, "write_misses": 0}


def between(state, before, after, **changes):
    return passed(state, readings(state, 100.0, counters=before), readings(state, 160.0, counters=after, **changes))


def test_hit_rates_are_computed_between_two_readings():
    found = between(CACHE, BEFORE, {"read_hits": 1014, "read_misses": 586, "write_hits": 13, "write_misses": 97})
    assert found.state == "measured"
    assert found.seconds == 60
    assert found.reads.percent == 14.0
    assert found.writes.percent == 3.0
    assert found.to_dict()["reads"]["requests"] == 100


def test_bypassed_requests_lower_only_the_total_hit_rate():
    counters = {"read_hits": 0, "read_misses": 0, "bypassed_reads": 0}
    found = between(FLASHCACHE, counters, {"read_hits": 60, "read_misses": 40, "bypassed_reads": 300})
    assert (found.reads.percent, found.reads.of_all, found.reads.bypassed_percent) == (60.0, 15.0, 75.0)


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_decreased_counter_gives_no_rates(name):
    after = {key: value + 100 for key, value in BEFORE.items()}
    after[name] = BEFORE[name] - 1 if BEFORE[name] else -1
    found = between(CACHE, BEFORE, after)
    assert found.state == "counters_fell"
    assert found.to_dict()["reads"] is None
    assert found.to_dict()["writes"] is None
    assert found.counters == {}


@settings(deadline=None)
@given(*(st.dictionaries(st.sampled_from(sorted(BEFORE)), st.integers(0, 2**32 - 1)) for _side in range(2)))
def test_no_counters_give_a_negative_rate(before, after):
    found = between(CACHE, before, after)
    for share in (found.reads, found.writes):
        assert min(share.hits, share.misses, share.bypassed) >= 0
        assert share.percent is None or 0 <= share.percent <= 100
        assert share.of_all is None or 0 <= share.of_all <= 100


def test_first_reading_has_no_rates():
    assert passed(CACHE, None, readings(CACHE, 160.0, counters=BEFORE)).state == "first_reading"
    other = readings(cache(name="vg0/other"), 100.0)
    assert passed(CACHE, other, readings(CACHE, 160.0, counters=BEFORE)).state == "first_reading"


def test_clock_set_back_gives_no_rates():
    assert passed(CACHE, readings(CACHE, 200.0, counters=BEFORE), readings(CACHE, 100.0, counters=BEFORE)).state == "first_reading"


def test_delayed_bcache_counters_are_not_treated_as_zero():
    looks = [readings(BCACHE, when, counters=BEFORE, traffic={"bcache0": traffic(reads=count)}) for when, count in ((100.0, 5), (105.0, 900))]
    assert passed(BCACHE, *looks).state == "not_known_yet"
    still = [looks[0], readings(BCACHE, 105.0, counters=BEFORE, traffic={"bcache0": traffic(reads=5)})]
    assert passed(BCACHE, *still).state == "idle"
    same = [readings(CACHE, when, counters=BEFORE, traffic={"dm-5": traffic(reads=count)}) for when, count in ((100.0, 5), (105.0, 900))]
    assert passed(CACHE, *same).state == "idle"


def test_traffic_of_another_boot_is_not_compared():
    before = readings(CACHE, 100.0, traffic={"dm-5": traffic(reads=5)})
    after = readings(CACHE, 160.0, boot="b2", traffic={"dm-5": traffic(reads=900)})
    assert passed(CACHE, before, after).traffic == {}
    # flashcache's module was loaded anew: everything it counted is new.
    assert passed(CACHE, before, after).earlier_histogram == {}


def test_traffic_of_device_with_decreased_counters_is_omitted():
    before = readings(CACHE, 100.0, traffic={"dm-5": traffic(reads=50), "dm-3": traffic(reads=5)})
    after = readings(CACHE, 160.0, traffic={"dm-5": traffic(reads=10), "dm-3": traffic(reads=7)})
    assert passed(CACHE, before, after).traffic == {"dm-3": traffic(reads=2)}


def test_readings_survive_json_and_file_round_trip(tmp_path):
    taken = readings(FLASHCACHE, 100.5, counters=BEFORE, traffic={"dm-5": traffic(1, 2, 3, 4, 5)}, shares=(0.25,))
    taken = Readings(taken.time, taken.boot, taken.caches, {"S1": {"reallocated": 3}}, {"l2_hits": 5}, ("warning cache_hits x",))
    assert from_dict(json.loads(json.dumps(taken.to_dict()))) == taken
    assert taken.caches[key_of(FLASHCACHE)].histogram == CASE_C
    (tmp_path / "health.json").write_text(json.dumps(taken.to_dict()))
    assert from_file("/health.json", tmp_path) == (taken, "")


def test_missing_file_is_no_problem(tmp_path):
    assert from_file("/health.json", tmp_path) == (None, "")


def damaged(**changes):
    return json.dumps({"version": 1, "time": 1, "boot": "", "caches": {}, "drives": {}, **changes})


def damaged_cache(**changes):
    return damaged(caches={"a": {"counters": {}, "histogram": {}, "traffic": {}, "dirty_shares": [], **changes}})


def test_undamaged_readings_are_valid():
    assert from_dict(json.loads(damaged())).caches == {}
    assert list(from_dict(json.loads(damaged_cache())).caches) == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "3", "{}", '{"version": 1}'),
        *(damaged(version=99), damaged(time="x"), damaged(caches={"a": 3}), damaged(caches=[]), damaged(drives={"a": [1]})),
        *(damaged(zfs=[1]), damaged(zfs={"hits": "x"}), damaged(problems=3)),
        *(damaged_cache(counters={"x": "y"}), damaged_cache(traffic={"d": {"x": 1}}), damaged_cache(histogram={"x": 1}), damaged_cache(dirty_shares=["x"])),
    ],
)
def test_damaged_file_is_reported_in_one_sentence(tmp_path, text):
    (tmp_path / "health.json").write_text(text)
    found, problem = from_file("/health.json", tmp_path)
    assert found is None
    assert problem.startswith("/health.json holds no readings")


def test_reading_keeps_counters_and_earlier_dirty_shares(tmp_path):
    write(tmp_path, "sys/class/block/dm-5/stat", "  10 2 80 5 20 3 160 6 0 9 9 0 0 0 0 4 1\n")
    write(tmp_path, "proc/sys/kernel/random/boot_id", "b7\n")
    state = cache(dirty=25 * 1024**3)
    first = take([state], [drive(reallocated=4, media_errors=None)], tmp_path, 100.0)
    assert first.boot == "b7"
    assert first.drives == {"S1": {"reallocated": 4}}
    assert first.caches[key_of(state)].traffic == {"dm-5": Traffic(10, 2, 80 * 512, 20, 3, 160 * 512)}
    second = take([cache(dirty=75 * 1024**3)], [], tmp_path, 200.0, first)
    assert second.caches[key_of(state)].dirty_shares == (0.25, 0.75)
    for number in range(100):
        second = take([state], [], tmp_path, 300.0 + number, second)
    assert len(second.caches[key_of(state)].dirty_shares) == 24


@pytest.mark.parametrize("text", ["", "1 2 3", "a b c d e f g h"])
def test_invalid_block_statistics_are_none(tmp_path, text):
    write(tmp_path, "sys/class/block/sda/stat", text)
    assert read_traffic(tmp_path, "sda") is None
    assert read_traffic(tmp_path, "sdb") is None
