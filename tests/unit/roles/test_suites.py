# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role fio_benchmark as data: its suites are suites and repeat their cases, and what it documents is what it does."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import describe_claims
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import make_plan

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "fio_benchmark"
SUITES = {name: suite for path in (ROLE / "files" / "suites").glob("*.yml") for name, suite in yaml.safe_load(path.read_text()).items()}
DISK = {"device": "/dev/vg0/scratch", "allow_data_loss": True, "identity": "vg0/scratch"}
FILE = {"file": "/srv/data/fio.bin"}
FOLDER = {"directory": "/srv/data/fio-files", "size": "2g"}
#: What case E set for all its jobs.
CASE_E = {"thread": 0, "direct": 1, "group_reporting": 1, "norandommap": 1, "time_based": 1, "randrepeat": 0, "ramp_time": 10}


def plan(name, *targets, **options):
    return make_plan(name, SUITES, targets or [FILE if name == "mixed_file" else DISK], **{"cache_size": "10g", **options})


def jobs(name, **options):
    return {run.name: run.job for run in plan(name, **options).runs}


def has(job, **options):
    return {**job, **options} == job


def test_included_suites():
    assert set(SUITES) == {
        "accept",
        "array_matrix",
        "array_pair",
        "cache_endurance",
        "cache_mixed",
        "cache_read",
        "cache_write",
        "compare",
        "latency_limit",
        "mixed_file",
        "precondition",
        "quick",
        "snia_iops",
        "snia_latency",
        "snia_throughput",
        "snia_write_saturation",
        "thread_sweep",
        "transactional_write",
        "transactional_write_together",
        "write_cliff",
    }


@pytest.mark.parametrize("name", sorted(SUITES))
def test_every_suite_is_valid_and_documented(name):
    assert plan(name).steps
    assert SUITES[name]["description"]
    assert f"`{name}`" in (ROOT / "docs" / "suites.md").read_text()


@pytest.mark.parametrize("name", sorted(SUITES))
def test_every_file_is_named_after_its_suite(name):
    assert set(yaml.safe_load((ROLE / "files" / "suites" / f"{name}.yml").read_text())) == {name}


@pytest.mark.parametrize("name", sorted(SUITES))
def test_runtime_variable_shortens_every_suite(name):
    for run in plan(name, runtime=8).runs:
        if not run.cell.fill and not run.cell.discards:
            assert run.estimate.known
            assert has(run.job.get("jobs", [run.job])[0], runtime=8, time_based=1)


def test_quick_takes_about_two_minutes_and_can_show_a_difference():
    assert 90 <= plan("quick").seconds <= 150
    assert "cannot show a difference" in describe_claims(plan("quick", repeats=1))
    assert "4 repeats of each variant: a difference of at least 5 % is shown" in describe_claims(plan("quick"))


def test_compare_repeats_interleaved_and_decides_by_flushed_writes():
    cells = [(run.name, run.repeat) for run in plan("compare", {**FILE, "size": "1g"}).runs]
    assert cells[0] == ("fill-1m", 1)
    passes = [[name for name, repeat in cells[1:] if repeat == number] for number in range(1, 6)]
    assert passes == [["randwrite-4k-fdatasync", "randread-4k"][:: 1 if number % 2 else -1] for number in range(1, 6)]
    assert len(cells) == 11
    decides = {run.name: run.cell.decides for run in plan("compare").runs}
    assert decides == {"fill-1m": (), "randwrite-4k-fdatasync": ("iops",), "randread-4k": ("iops",)}
    assert has(jobs("compare")["randwrite-4k-fdatasync"], fdatasync=1, direct=1)
    assert {run.repeat for run in plan("compare", repeats=7).runs} == set(range(1, 8))
    # Both variants are measured within ten minutes.
    assert plan("compare", {**FILE, "size": "1g"}).seconds <= 280


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("cache_read", {"rw": "randread"}),
        ("cache_write", {"rw": "randwrite", "fdatasync": 1}),
        ("cache_mixed", {"rw": "randrw", "rwmixread": 70, "fdatasync": 1}),
    ],
)
def test_suites_of_caches_have_working_sets_around_the_size_of_the_cache(name, load):
    fill, *cells = plan(name, repeats=1).runs
    assert has(fill.job, rw="write", size=40 * 1024**3)
    distributions = {"zipf": "zipf:1.2:0.5", "zoned": "zoned:90/10:10/90"}
    sizes = {"half": 0.5, "same": 1, "double": 2, "fourfold": 4}
    assert {run.name: (run.job["random_distribution"], run.job["size"]) for run in cells} == {
        f"{kind}-{label}": (distribution, sizes[label] * 10 * 1024**3) for kind, distribution in distributions.items() for label in sizes
    }
    assert all(has(run.job, bs="4k", direct=1, randrepeat=0, **load) and run.cell.warm == "until_steady" for run in cells)
    assert "4 repeats of each variant: a difference of at least 5 % is shown" in describe_claims(plan(name))


@pytest.mark.parametrize("name", ["cache_endurance", "cache_mixed", "cache_read", "cache_write"])
def test_suites_of_caches_need_the_size_of_the_cache(name):
    with pytest.raises(BadInput, match=f"suite {name}: its sizes are multiples of the cache: set fio_benchmark_cache_size"):
        plan(name, cache_size="")


def test_cache_endurance_decides_by_what_is_left_when_the_cache_is_full():
    fill, knee, full = plan("cache_endurance", {**DISK, "capacity": "100g", "write_rate": "1m"}).steps
    assert fill.runs[0].job["size"] == 20 * 1024**3
    assert has(knee.runs[0].job, rw="randwrite", io_size=15 * 1024**3, size=20 * 1024**3) and "norandommap" not in knee.runs[0].job
    assert knee.pause == {"until": "clean", "most": 3600.0} and knee.runs[0].estimate.longest == 4 * 3600
    assert full.pause is None and full.longest_drain == 0 and full.runs[0].estimate.known
    assert [step.runs[0].cell.decides for step in (fill, knee, full)] == [(), (), ("iops",)]
    assert [run.name for run in plan("cache_endurance", repeats=2, repeat=2).runs] == ["knee-4k", "full-4k"]


def test_quick_reads_and_writes_small_and_large_blocks():
    assert {job["rw"] for job in jobs("quick").values()} == {"randread", "randwrite", "read", "write"}


def test_transactional_write_is_case_a_and_its_bound():
    fill, durable, bound = jobs("transactional_write").values()
    assert has(fill, rw="write", bs="1m")
    assert has(durable, rw="randwrite", bs="4k", ioengine="libaio", iodepth=16, direct=1, invalidate=1, io_size="10g", fdatasync=1)
    assert {option: value for option, value in durable.items() if option != "fdatasync"} == bound
    assert all(run.estimate.written == 10 * 1024**3 for run in plan("transactional_write", {**DISK, "size": "10g"}).runs)


def test_three_disks_of_case_a_are_written_in_parallel():
    targets = [{"device": f"/dev/disk/by-id/ata-{letter}"} for letter in "ABC"]
    assert [len(step.runs) for step in plan("transactional_write_together", *targets).steps] == [3, 3, 3]
    assert jobs("transactional_write_together") == jobs("transactional_write")


def test_thread_sweep_is_case_b():
    found = [(run.job["rw"], run.job["numjobs"]) for run in plan("thread_sweep").runs if not run.cell.fill]
    assert found == [(rw, count) for rw in ("read", "write", "randread", "randwrite") for count in (1, 2, 4, 8, 16, 32, 64)]


def test_mixed_file_is_case_d():
    both, mixed = plan("mixed_file").runs
    assert [section["rw"] for section in both.job["jobs"]] == ["randread", "randwrite"]
    assert has(both.job["global"], iodepth=32, direct=1)
    assert has(mixed.job, rw="randrw", iodepth=32)
    assert both.target.given == {**FILE, "size": 32 * 1024**3}


def test_write_cliff_is_group_1_of_case_e():
    cliff, *rest = plan("write_cliff").steps
    [discard] = [step for step in rest if step.runs[0].name == "discard"]
    sizes = [step for step in rest if step is not discard]
    assert has(cliff.runs[0].job, **CASE_E, rw="randwrite", bs="4k", numjobs=64, iodepth=64, runtime="18h")
    assert [(step.runs[0].job["bs"], step.runs[0].job.get("size")) for step in sizes] == [
        (block, share) for share in (None, "70%") for block in ("4k", "8k", "16k", "32k", "64k", "1024k")
    ]
    assert all(step.pause == {"seconds": 7200.0} and step.seconds == 3610 for step in sizes)
    assert all(run.cell.measures_garbage_collection for step in (cliff, *sizes) for run in step.runs)


@pytest.mark.parametrize("number", ["repeats", "runtime"])
def test_write_cliff_discards_before_its_second_half_in_every_pass(number):
    suite = plan("write_cliff", **{number: 2})
    names = [run.name for run in suite.runs]
    assert names == names[: len(names) // suite.runs[-1].repeat] * suite.runs[-1].repeat
    place = names.index("discard")
    assert names[place - 1].endswith("-100pct") and names[place + 1].endswith("-70pct")
    [step] = [step for step in suite.steps if step.runs[0].name == "discard"][:1]
    assert step.pause is None and not step.known and suite.steps[place + 1].barrier
    assert has(step.runs[0].job, rw="trim", bs="64m", numjobs=1, iodepth=1)
    assert not step.runs[0].job["time_based"] and "runtime" not in step.runs[0].job
    assert step.runs[0].estimate.written == 0


def test_array_matrix_is_group_2_of_case_e():
    fill, measured, *cells = plan("array_matrix").runs
    assert measured.cell.measures_garbage_collection
    assert fill.cell.fill and has(fill.job, rw="write", bs="1m") and not fill.job["time_based"], "what was never filled collects no garbage"
    found = {(run.job["rw"], run.job["bs"], run.job["ioengine"], run.job["numjobs"], run.job["iodepth"]) for run in cells}
    blocks, counts = ("1k", "8k", "16k", "32k", "64k", "1m"), (1, 2, 4, 8, 16, 32, 64, 128)
    assert found == {
        (rw, block, engine, count, depth)
        for rw in ("randwrite", "randrw", "randread")
        for block in blocks
        for engine, depths in (("sync", (1,)), ("libaio", (32, 64)))
        for depth in depths
        for count in counts
    }
    assert len(cells) == 432
    assert all(has(run.job, **CASE_E, runtime="3m") for run in cells)
    assert {run.job.get("rwmixread") for run in cells} == {None, 70}


def test_array_matrix_waits_for_garbage_collection_after_every_write():
    steps = plan("array_matrix").steps
    assert steps[1].pause is None, "nothing has shown a rate yet"
    for last, step in zip(steps[1:], steps[2:], strict=False):
        wrote = last.runs[0].job["rw"] != "randread"
        assert step.pause == ({"garbage_collection": "measured", "most": 3600.0} if wrote else None)


def test_array_pair_is_group_3_of_case_e():
    assert jobs("array_pair") == jobs("array_matrix")


def test_precondition_matches_snia():
    sequential, rounds = plan("precondition", {**DISK, "capacity": "1g"}).steps
    assert has(sequential.runs[0].job, rw="write", bs="128k", loops=2)
    assert (sequential.runs[0].estimate.written, sequential.runs[0].estimate.exact) == (2 * 1024**3, True)
    assert rounds.to_dict()["rounds"] == {"most": 25, "window": 5, "range": 0.2, "slope": 0.1, "track": "write", "what": "iops"}
    assert has(rounds.runs[0].job, rw="randwrite", bs="4k", runtime=60)
    assert rounds.barrier


def test_latency_limit_searches_by_average_and_by_percentile():
    found = [(step.runs[0].name, step.to_dict()["search"]["metric"], step.to_dict()["search"]["limit"]) for step in plan("latency_limit").steps[1:]]
    limits = [("p99-1ms", "p99", 10**6), ("mean-1ms", "mean", 10**6), ("mean-3ms", "mean", 3 * 10**6), ("mean-100ms", "mean", 10**8)]
    assert found == [(f"{rw}-4k-{label}", metric, limit) for rw in ("randread", "randwrite") for label, metric, limit in limits]


DOCUMENTED = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "suites.md").read_text(), re.DOTALL)]


def test_documented_suites_are_valid():
    mine = {name: suite for example in DOCUMENTED if isinstance(example, dict) for name, suite in example["fio_benchmark_suites"].items()}
    targets = {"backup_beside_database": [{"device": "/dev/vg0/database", "name": "database"}, {**DISK, "name": "backup"}], "small_files": [FOLDER]}
    plans = {name: make_plan(name, {**SUITES, **mine}, targets.get(name, [DISK]), cache_size="10g") for name in mine}
    assert [run.name for run in plans["backup_beside_database"].runs] == ["backup.backup"]
    assert set(plans) == {
        *targets,
        "database",
        "log_latency",
        "matrix_of_small_blocks",
        "three_disks_at_once",
        "mixes_in_rounds",
        "snia_iops_client",
        "half_of_the_cache",
    }
    assert [cell.decides for cell in plans["log_latency"].suite.cells] == [(), ("iops", "p99"), ()]
    assert len(plans["database"].runs) == 1 + 5 * (1 + 2 * 9 - 3)
    assert {run.job["bs"] for run in plans["matrix_of_small_blocks"].runs} == {"1m", "1k", "8k", "4k"}
    assert len(plans["matrix_of_small_blocks"].runs) == 2 + 432 // 3
    assert plans["three_disks_at_once"].suite.together
    assert [len(step.runs) for step in plans["mixes_in_rounds"].steps] == [6] and plans["snia_iops_client"].suite.purge
    assert {run.job["iodepth"] * run.job.get("numjobs", 1) for run in plans["snia_iops_client"].runs} == {32}


def test_documented_cells_are_valid():
    cells = [cell for example in DOCUMENTED if isinstance(example, list) for cell in example]
    search, rounds = make_plan("s", {"s": {"cells": cells[:1]}}, [DISK]).steps + make_plan("o", {"o": {"cells": cells[1:]}}, [DISK]).steps
    assert search.to_dict()["search"]["over"] == "iodepth"
    assert rounds.to_dict()["rounds"] == make_plan("o", {"o": {"cells": [{**cells[1], "rounds": {}}]}}, [DISK]).steps[0].to_dict()["rounds"]


def options():
    return yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]


def defaults():
    return yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())


def test_defaults_match_the_documentation():
    # Former names of variables have none.
    assert {name: option["default"] for name, option in options().items() if "default" in option} == defaults()


def test_variables_have_the_role_prefix():
    assert all(name.startswith("fio_benchmark_") for name in defaults())


def test_target_options_match_the_filter():
    for_the_host = {"device": "/dev/x", "allow_data_loss": True, "identity": "x", "size": "1g"}
    for_the_plan = {"name": "x", "capacity": "1g", "write_rate": "1g", "write_iops": 1000, "endurance": "150TB", "allow_purge": True, "purge_method": "auto"}
    documented = set(options()["fio_benchmark_targets"]["options"])
    assert documented <= {*for_the_host, *for_the_plan, "file", "directory", "match"}
    every = {name: value for name, value in {**for_the_host, **for_the_plan}.items() if name in documented}
    assert plan("quick", every).runs[0].target.given == for_the_host


def test_only_hosts_sharing_an_array_wait_together_for_garbage_collection():
    assert plan("array_matrix").segments == 0
    assert plan("array_matrix", group="array1").segments == plan("array_pair").segments > 280


# -- SNIA's Performance Test Specification


def test_snia_iops_measures_the_whole_matrix_in_each_round():
    fill, rounds = plan("snia_iops").steps
    assert has(fill.runs[0].job, rw="write", bs="128k", loops=2)
    assert len(rounds.runs) == 56 and {run.job["runtime"] for run in rounds.runs} == {60}
    assert {run.job["bs"] for run in rounds.runs} == {512, "4k", "8k", "16k", "32k", "64k", "128k", "1024k"}
    mixes = {run.job.get("rwmixread", {"randread": 100, "randwrite": 0}.get(run.job["rw"])) for run in rounds.runs}
    assert mixes == {100, 95, 65, 50, 35, 5, 0}
    expected = {"most": 25, "window": 5, "range": 0.2, "slope": 0.1, "track": "write", "what": "iops", "decided_by": "rand-4k-r0"}
    assert rounds.to_dict()["rounds"] == expected and len(rounds.to_dict()["cells"]) == 56
    assert rounds.seconds == 25 * 56 * 60, "rounds are one after another, and so are the cells in them"


def test_snia_throughput_is_steady_for_each_block_size_by_itself():
    steps = plan("snia_throughput").steps
    assert [[run.name for run in step.runs] for step in steps] == [
        ["fill-1024k-twice"],
        ["seq-1024k-r100", "seq-1024k-r0"],
        ["fill-128k-twice"],
        ["seq-128k-r100", "seq-128k-r0"],
    ]
    assert [step.to_dict()["rounds"]["decided_by"] for step in steps if step.kind == "rounds"] == ["seq-1024k-r0", "seq-128k-r0"]
    assert {step.to_dict()["rounds"]["what"] for step in steps if step.kind == "rounds"} == {"bandwidth"}


def test_snia_latency_has_one_request_in_flight():
    _fill, rounds = plan("snia_latency").steps
    assert len(rounds.runs) == 9 and all(has(run.job, iodepth=1, numjobs=1) for run in rounds.runs)
    assert rounds.to_dict()["rounds"]["what"] == "latency" and rounds.to_dict()["rounds"]["decided_by"] == "lat-4k-r0"


def test_snia_write_saturation_writes_four_times_the_capacity():
    [run] = plan("snia_write_saturation", {**DISK, "capacity": "1g"}).runs
    assert has(run.job, rw="randwrite", bs="4k", runtime="24h") and "time_based" not in run.job
    assert run.estimate.written == 4 * 1024**3


def test_rounds_over_several_targets_are_decided_by_the_cell_of_each():
    steps = plan("snia_latency", {"device": "/dev/disk/by-id/a"}, {"device": "/dev/disk/by-id/b"}).steps
    assert [step.to_dict()["rounds"]["decided_by"] for step in steps if step.kind == "rounds"] == ["lat-4k-r0.a", "lat-4k-r0.b"]


def test_only_targets_that_allow_it_are_purged():
    allowed = {**DISK, "allow_purge": True, "purge_method": "nvme_format"}
    assert plan("snia_iops", DISK).purge == []
    assert plan("snia_iops", allowed).purge == [{**DISK, "allow_purge": True, "method": "nvme_format"}]
    assert plan("precondition", allowed).purge == [], "only a suite that is meant for purged drives purges"
    assert "allow_purge" not in plan("snia_iops", allowed).runs[0].target.given


@pytest.mark.parametrize(
    ("only", "words"),
    [(["rand-8k-*"], "decided by rand-4k-r0, which is not among the cells"), (["fill-*", "rand-4k-r0"], "")],
)
def test_the_cell_that_decides_cannot_be_left_out(only, words):
    if words:
        with pytest.raises(BadInput, match=words):
            plan("snia_iops", only=only)
    else:
        assert [len(step.runs) for step in plan("snia_iops", only=only).steps] == [1, 1]
