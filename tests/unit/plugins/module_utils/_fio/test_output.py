# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Latency, Version, parse
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.summary import summarize

#: The shape of a report of 3.33, with figures of our own.
REPORT = {
    "fio version": "fio-3.33",
    "timestamp": 1795208404,
    "global options": {"ioengine": "libaio", "bs": "4k"},
    "jobs": [
        {
            "jobname": "one",
            "groupid": 0,
            "error": 0,
            "elapsed": 4,
            "job options": {"rw": "randwrite", "fdatasync": "1"},
            "read": {
                "io_bytes": 0,
                "bw_bytes": 0,
                "bw": 0,
                "iops": 0.0,
                "runtime": 0,
                "total_ios": 0,
                "clat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
            },
            "write": {
                "io_bytes": 8192,
                "bw_bytes": 4096,
                "bw": 4,
                "iops": 1.0,
                "runtime": 2000,
                "total_ios": 2,
                "slat_ns": {"min": 10, "max": 20, "mean": 15.0, "stddev": 1.0, "N": 2},
                "clat_ns": {
                    "min": 100,
                    "max": 200,
                    "mean": 150.0,
                    "stddev": 50.0,
                    "N": 2,
                    "percentile": {"50.000000": 100, "99.000000": 200, "0.00": 0},
                    "bins": {"100": 1, "200": 1},
                },
                "lat_ns": {"min": 110, "max": 220, "mean": 165.0, "stddev": 50.0, "N": 2},
            },
            "sync": {
                "total_ios": 0,
                "lat_ns": {"min": 5, "max": 9, "mean": 7.0, "stddev": 2.0, "N": 2, "percentile": {"50.000000": 5}, "bins": {"5": 1, "9": 1}},
            },
        }
    ],
    "disk_util": [{"name": "sda"}],
}


def report(**changes):
    found = copy.deepcopy(REPORT)
    for path, value in changes.items():
        place = found
        *way, last = path.split("__")
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    return found


def text(*reports):
    return "\n".join(json.dumps(one, indent=1) for one in reports) + "\n"


@pytest.mark.parametrize(
    ("message", "version"),
    [("fio-2.1.4", Version(2, 1, 4)), ("fio-3.33\n", Version(3, 33)), ("fio-3.42-135-gd7e5", Version(3, 42)), ("3.16", Version(3, 16))],
)
def test_versions_are_parsed(message, version):
    assert output.parse_version(message) == version


def test_invalid_versions_are_rejected():
    with pytest.raises(NotUnderstood, match="not a version"):
        output.parse_version("fio-next")


def test_behaviour_changes_in_fio_3_41():
    assert output.behaviour_class(Version(3, 40)) == "libaio_sync_blocking"
    assert output.behaviour_class(Version(3, 41)) == output.behaviour_class(Version(4, 0)) == "libaio_sync_queued"


def test_single_report_is_parsed():
    found = parse(text(REPORT))
    (job,) = found.jobs
    assert (found.version, found.objects, found.truncated, found.messages) == (Version(3, 33), 1, False, ())
    assert set(job.directions) == {"write"}, "a direction without I/O is absent"
    assert job.options == {"ioengine": "libaio", "bs": "4k", "rw": "randwrite", "fdatasync": "1"}
    write = job.directions["write"]
    assert (write.total_ios, write.io_bytes, write.bw_bytes, write.runtime_ms) == (2, 8192, 4096, 2000)
    assert write.clat.percentiles == {50.0: 100, 99.0: 200}, "padding keys are dropped"
    assert write.clat.bins == {100: 1, 200: 1}
    assert job.sync is not None and job.sync.n == 2, "total_ios of sync is 0 for fdatasync"


def test_surrounding_text_and_multiple_objects():
    first, last = report(), report(jobs__0__write__total_ios=5)
    found = parse("note: something\n" + text(first) + "\nfio: in between\n" + text(last) + "after\n")
    assert found.objects == 2
    assert found.jobs[0].directions["write"].total_ios == 5
    assert found.messages == ("note: something", "fio: in between", "after")


def test_truncated_and_missing_objects():
    whole = text(REPORT)
    found = parse(whole + whole[:200])
    assert (found.objects, found.truncated) == (1, True)
    assert parse(whole[:200]).truncated and parse(whole[:200]).objects == 0
    assert parse("fio: unrecognized option '--x'\n").messages == ("fio: unrecognized option '--x'",)
    assert parse("").objects == 0


def test_unrelated_json_is_rejected():
    with pytest.raises(NotUnderstood):
        parse('{"a": 1}')
    with pytest.raises(NotUnderstood, match="neither jobs nor client_stats"):
        parse('{"fio version": "fio-3.33"}')


def test_impossible_maximum_discards_dependent_statistics():
    changed = report(jobs__0__sync__lat_ns__max=3_159_000_000_000, jobs__0__sync__lat_ns__mean=1e9)
    sync = parse(text(changed)).jobs[0].sync
    assert sync.flags == ("max_above_elapsed",)
    assert (sync.max, sync.mean, sync.stddev) == (None, None, None)
    assert sync.percentiles == {50.0: 5} and sync.bins == {5: 1, 9: 1} and sync.n == 2


def test_libaio_sync_latency_before_3_31_is_flagged():
    old = parse(text(report(**{"fio version": "fio-3.30"}))).jobs[0].sync
    assert (old.n, old.mean, old.percentiles, old.flags) == (2, None, {}, ("libaio_sync_latency_wrong_before_3.31",))
    other = report(**{"fio version": "fio-3.30", "global options": {"ioengine": "psync"}})
    assert parse(text(other)).jobs[0].sync.mean == 7.0


def test_missing_n_is_counted_from_bins():
    lat = {"min": 5, "max": 9, "mean": 7.0, "stddev": 2.0, "bins": {"5": 1, "9": 3}}
    changed = report(**{"fio version": "fio-3.16", "global options": {}, "jobs__0__sync": {"total_ios": 0, "lat_ns": lat}})
    assert parse(text(changed)).jobs[0].sync.n == 4


NOTHING = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0}


@pytest.mark.parametrize(
    ("version", "key", "values", "n"),
    [
        # Engines that submit and complete in one call have no time of submission.
        ("fio-2.1.4", "slat", NOTHING, None),
        ("fio-3.1", "slat_ns", NOTHING, None),
        ("fio-3.16", "slat_ns", NOTHING, None),
        ("fio-3.16", "slat_ns", {**NOTHING, "percentile": {"50.000000": 0, "0.00": 0}}, None),
        ("fio-3.33", "slat_ns", {**NOTHING, "N": 0}, 0),
        ("fio-3.16", "slat_ns", None, None),
        ("fio-3.33", "slat_ns", None, None),
    ],
)
def test_unmeasured_latency_is_none_not_0(version, key, values, n):
    report = copy.deepcopy(REPORT)
    report["fio version"] = version
    write = report["jobs"][0]["write"]
    del write["slat_ns"]
    write[key] = values
    (job,) = parse(json.dumps(report)).jobs
    assert job.directions["write"].slat == Latency(n=n)


def test_latency_without_n_is_kept_if_measured():
    report = copy.deepcopy(REPORT)
    report["fio version"] = "fio-3.16"
    write = report["jobs"][0]["write"]
    write["slat_ns"] = {"min": 0, "max": 900, "mean": 4.5, "stddev": 1.0}
    write["clat_ns"] = {**NOTHING, "percentile": {"50.000000": 0, "99.990000": 112}}
    directions = parse(json.dumps(report)).jobs[0].directions
    assert (directions["write"].slat.n, directions["write"].slat.max, directions["write"].clat.percentiles[99.99]) == (2, 900, 112)


@pytest.mark.parametrize("version", ["fio-2.2.10", "fio-3.1", "fio-3.16", "fio-3.33"])
@pytest.mark.parametrize("name", ["slat", "clat", "lat"])
def test_null_latency_is_none(version, name):
    report = copy.deepcopy(REPORT)
    report["fio version"] = version
    report["jobs"][0]["write"][f"{name}_ns"] = None
    found = parse(json.dumps(report))
    assert getattr(found.jobs[0].directions["write"], name) == Latency()
    assert (found.jobs[0].directions["write"].total_ios, found.jobs[0].directions["write"].runtime_ms) == (2, 2000)
    if name != "slat":
        kind = summarize(found)["write"][name]
        assert (kind["n"], kind["mean_ns"], kind["min_ns"], kind["max_ns"], kind["percentiles_ns"]) == (None, None, None, None, {})


@pytest.mark.parametrize("key", ["percentile", "bins", "min", "N"])
def test_null_field_of_a_latency_is_none(key):
    report = copy.deepcopy(REPORT)
    report["jobs"][0]["write"]["clat_ns"][key] = None
    clat = parse(json.dumps(report)).jobs[0].directions["write"].clat
    assert (clat.max, clat.n) == (200, 2)


def test_null_sync_latency_is_none():
    report = copy.deepcopy(REPORT)
    report["jobs"][0]["sync"]["lat_ns"] = None
    assert parse(json.dumps(report)).jobs[0].sync is None


def test_slat_of_synchronous_engines_is_none_in_samples(sample):
    for version in ("v2.1.4", "v3.16"):
        (job,) = sample(f"{version}/07-fsync1-psync.json").jobs
        assert job.directions["write"].slat == Latency()
    (job,) = sample("v3.33/07-fsync1-psync.json").jobs
    assert job.directions["write"].slat == Latency(n=0)


def test_microseconds_and_kib_of_fio_2():
    write = {
        "io_bytes": 8,
        "bw": 4,
        "iops": 1,
        "runtime": 2000,
        "clat": {"min": 1, "max": 2, "mean": 1.5, "stddev": 0.5, "percentile": {"50.000000": 1, "0.00": 0}},
    }
    old = report(**{"fio version": "fio-2.1.4", "jobs__0__write": write})
    del old["jobs"][0]["sync"]
    found = parse(text(old), block_size=4096).jobs[0].directions["write"]
    assert (found.io_bytes, found.bw_bytes, found.total_ios) == (8192, 4096, 2)
    assert (found.clat.min, found.clat.max, found.clat.mean, found.clat.percentiles) == (1000, 2000, 1500, {50.0: 1000})
    assert parse(text(old)).jobs[0].directions["write"].total_ios is None, "a number that is not there is None"


def test_rate_without_runtime_is_none():
    changed = report(jobs__0__write__runtime=0, jobs__0__write__iops=0.0)
    found = parse(text(changed)).jobs[0].directions["write"]
    assert (found.iops, found.bw_bytes) == (None, None)


def test_client_mode_ignores_aggregates():
    row = REPORT["jobs"][0]
    rows = [{**row, "hostname": "a", "port": 8765}, {**row, "jobname": "All clients", "hostname": "a", "port": 8765}]
    client = {"fio version": "fio-3.39", "global options": [{"hostname": "a", "port": 8765, "bs": "8k"}], "client_stats": rows}
    found = parse(text(client))
    assert found.client_mode and [job.name for job in found.jobs] == ["one"]
    assert found.jobs[0].host == "a:8765" and found.jobs[0].options["bs"] == "8k"


def test_summary_of_concurrent_threads():
    second = copy.deepcopy(REPORT["jobs"][0])
    second["write"]["clat_ns"].update({"max": 900, "mean": 450.0, "bins": {"100": 1, "900": 1}})
    both = report()
    both["jobs"].append(second)
    found = summarize(parse(text(both)))
    assert found["read"] is None and found["trim"] is None
    assert (found["write"]["iops"], found["write"]["total_ios"], found["write"]["runtime_ms"]) == (2.0, 4, 2000)
    assert found["write"]["clat"]["mean_ns"] == 300.0 and found["write"]["clat"]["max_ns"] == 900
    assert found["write"]["clat"]["percentiles_ns"]["50"] == 100 and found["write"]["clat"]["percentiles_ns"]["99"] == 900
    assert found["write"]["lat"]["percentiles_ns"] == {}, "no bins, no percentiles of two threads"
    assert found["sync"]["n"] == 4


def test_rates_of_sequential_phases_are_not_added():
    second = copy.deepcopy(REPORT["jobs"][0])
    second["groupid"] = 1
    both = report()
    both["jobs"].append(second)
    found = summarize(parse(text(both)))["write"]
    assert (found["iops"], found["clat"], found["total_ios"]) == (None, None, 4)


# --- the captured outputs of four versions ----------------------------------------------------------------------------


def test_every_sample_is_parsed(shared_samples):
    versions = {}
    for path in sorted((shared_samples / "fio").glob("v*/*.json")):
        found = parse(path.read_text(errors="replace"), block_size=4096)
        if found.objects:
            assert path.parent.name == f"v{found.version}" or path.name.startswith("73"), path
            json.dumps(summarize(found), allow_nan=False)
        versions[path.parent.name] = versions.get(path.parent.name, 0) + bool(found.objects)
    assert all(count >= 15 for count in versions.values())
    assert set(versions) == {"v2.1.4", "v3.16", "v3.33", "v3.42"}


@pytest.fixture
def sample(shared_samples):
    def read(name):
        return parse((shared_samples / "fio" / name).read_text(errors="replace"), block_size=4096)

    return read


def test_samples_of_all_versions_have_the_same_quantities(sample):
    for version in ("v2.1.4", "v3.16", "v3.33", "v3.42"):
        write = sample(f"{version}/01-single-json.json").jobs[0].directions["write"]
        assert write.total_ios * 4096 == write.io_bytes
        assert abs(write.iops - write.total_ios / write.runtime_ms * 1000) < 30
        assert abs(write.bw_bytes - write.io_bytes / write.runtime_ms * 1000) < 4096
        # 8 requests at a time, each of which takes the mean latency: Little's law holds only if the unit is right.
        assert 6 < write.iops * write.lat.mean / 1e9 < 8.5


def test_status_dumps_are_parsed(sample):
    for version in ("v2.1.4", "v3.16", "v3.33", "v3.42"):
        found = sample(f"{version}/11-status-interval.json")
        assert found.objects == 4
        assert 3000 <= found.jobs[0].directions["read"].runtime_ms <= 3010
    assert sample("v3.33/33-sigkill-status.json").objects == 3
    # A running job of 2.1.4 counts in microseconds.
    dump = sample("v2.1.4/33-sigkill-status.json").jobs[0].directions["read"]
    assert dump.runtime_ms == 2701 and 38_000 < dump.iops < 40_000


def test_thread_counts(sample):
    grouped, single = sample("v3.33/03-group-numjobs4.json"), sample("v3.33/04-nogroup-numjobs4.json")
    assert (len(grouped.jobs), len(single.jobs)) == (1, 4)
    assert grouped.jobs[0].directions["read"].runtime_ms == 3001
    assert summarize(single)["read"]["total_ios"] == sum(job.directions["read"].total_ios for job in single.jobs)


def test_sync_latency_by_version(sample):
    assert sample("v3.16/06-fdatasync1.json").jobs[0].sync.flags == ("libaio_sync_latency_wrong_before_3.31",)
    assert sample("v3.33/06-fdatasync1.json").jobs[0].sync.n == 30464
    assert sample("v3.42/06-fdatasync1.json").jobs[0].sync.n == 2674
    assert sample("v3.16/07-fsync1-psync.json").jobs[0].sync.n == 33389
    assert sample("v2.1.4/07-fsync1-psync.json").jobs[0].sync is None


def test_grouped_bins_are_the_sum_of_client_bins(sample):
    for version in ("v3.33", "v3.42"):
        found = sample(f"{version}/51-cs-jsonplus.json")
        assert found.client_mode and len(found.jobs) == 4 and all(job.name != "All clients" for job in found.jobs)
        assert {job.host for job in found.jobs} == {"127.0.0.1:8801", "127.0.0.1:8802"}
        assert all(job.options["ioengine"] == "libaio" for job in found.jobs)


def test_failures_in_samples_are_parsed(sample):
    assert sample("v3.33/72-mounted.json").jobs[0].directions == {}
    assert "appears mounted" in sample("v3.33/72-mounted.json").messages[0]
    assert sample("v3.33/32-sigkill.json").objects == 0
    assert [job.error for job in sample("v3.33/26b-one-of-two-fails.json").jobs] == [0, 20]
    assert sample("v3.33/08-steadystate.json").jobs[0].is_steady is True
    assert sample("v3.33/08b-steadystate-miss.json").jobs[0].is_steady is False
    assert set(sample("v3.33/60-unified1.json").jobs[0].directions) == {"mixed"}


# --- one bad number is one missing number ----------------------------------------------------------------------------


def of_direction(version="fio-3.28", name="read", **values):
    """The first direction of a report with these values; texts stand in it as they are, without quotes."""
    usual = {"io_bytes": 409600, "io_kbytes": 400, "bw_bytes": 81920, "bw": 80, "iops": "20.0", "runtime": 5000, "total_ios": 100, **values}
    row = ", ".join(f'"{key}" : {value}' for key, value in usual.items() if value is not None)
    text = f'{{\n  "fio version" : "{version}",\n  "jobs" : [\n    {{"jobname" : "a", "error" : 0, "elapsed" : 6, "{name}" : {{{row}}}}}\n  ]\n}}\nlast line\n'
    found = parse(text)
    assert (found.objects, found.truncated, found.messages) == (1, False, ("last line",))
    return found.jobs[0].directions[name]


GOOD = {"total_ios": 100, "io_bytes": 409600, "iops": 20.0, "bw_bytes": 81920, "runtime_ms": 5000}


@pytest.mark.parametrize(
    "bad", ["-nan", "nan", "inf", "-inf", "NaN", "Infinity", "1e999", "-1", "18446744073709551615", "18446744073709551520", "12x4", "1.2.3"]
)
@pytest.mark.parametrize("key", ["iops", "total_ios", "io_bytes", "runtime"])
def test_one_bad_number_is_one_missing_number(bad, key):
    found = of_direction(**{key: bad})
    field = "runtime_ms" if key == "runtime" else key
    assert {name: getattr(found, name) for name in GOOD} == {name: None if name == field else value for name, value in GOOD.items()}


def test_rate_of_no_time_is_none():
    # fio prints 0 for both where it does not know them.
    found = of_direction(runtime="0", iops="20")
    assert (found.iops, found.bw_bytes, found.runtime_ms) == (None, None, 0)


def test_bad_number_of_a_latency_leaves_the_others():
    clat = '{"min" : 1, "max" : inf, "mean" : -nan, "N" : 100, "percentile" : {"50.000000" : 7, "99.000000" : nan}}'
    found = of_direction(clat_ns=clat).clat
    assert (found.n, found.min, found.max, found.mean, found.percentiles) == (100, 1, None, None, {50.0: 7})


def test_histogram_with_a_bad_count_is_none():
    clat = '{"min" : 1, "max" : 9, "mean" : 5, "N" : 100, "bins" : {"7" : 99, "8" : -1}}'
    assert of_direction(clat_ns=clat).clat.bins == {}


@pytest.mark.parametrize(
    ("version", "values", "size"),
    [
        ("fio-2.20", {"io_bytes": 4995968, "io_kbytes": None}, 4995968 * 1024),
        ("fio-2.20-30-g1a2b", {"io_bytes": 5115871232, "io_kbytes": 4995968}, 5115871232),
        ("fio-2.20-60-g1a2b", {"io_bytes": 5115871232, "io_kbytes": 4995968}, 5115871232),
        ("fio-2.21", {"io_bytes": 5115871232, "io_kbytes": None}, 5115871232),
    ],
)
def test_unit_of_io_bytes_is_told_by_the_key_beside_it(version, values, size):
    assert of_direction(version, **values).io_bytes == size


def test_rate_of_zero_beside_ios_is_not_known():
    found = of_direction(iops="0.0", bw=0, bw_bytes=0)
    assert (found.iops, found.bw_bytes, found.total_ios) == (None, None, 100)
    mixed = of_direction("fio-3.38", "mixed", iops="0.0", bw=0, bw_bytes=0)
    assert (mixed.iops, mixed.bw_bytes, mixed.total_ios) == (None, None, 100)


def test_garbage_minimum_goes_with_a_garbage_maximum():
    lat = '{"min" : 8647600000000000000, "max" : 8647800000000000000, "mean" : 8.64761983654701e+18, "stddev" : 261316040000.0, "N" : 100}'
    found = of_direction(lat_ns=lat).lat
    assert (found.min, found.max, found.mean) == (None, None, None)
