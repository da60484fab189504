# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches below a target before a cell, with real runners on a host of files: clean, warm, empty, and marked where they are not."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples, Sample
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import warming
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import CACHE, JOB, RunnerRig, step

READ = {**JOB, "rw": "randread", "randrepeat": 0}


@pytest.fixture
def rig(tmp_path, monkeypatch):
    (tmp_path / "proc").mkdir()
    rig = RunnerRig(tmp_path, monkeypatch)
    yield rig
    rig.end()


# -- clean


def test_cell_that_decides_waits_until_its_cache_is_clean(rig):
    rig.cache(dirty=16)
    rig.start(step(decides=["iops"]))
    status = rig.await_state("pausing")
    assert status["message"] == "1 MiB dirty" and status["until"] > status["time"]
    assert not rig.runs
    rig.cache(dirty=0)
    assert rig.await_end()["message"] == ""
    meta = rig.meta()
    assert (meta["state"], meta["decides"], meta["not_deciding"], meta["notes"], meta["warm"]) == ("ok", ["iops"], None, [], None)


@pytest.mark.parametrize("decides", [["iops"], None])
def test_cell_with_dirty_caches_is_measured_and_does_not_decide(rig, decides):
    rig.cache(dirty=7)
    assert [row["state"] for row in rig.finish(step(decides=decides, drain=0.2))] == ["ok"]
    meta = rig.meta()
    assert (meta["decides"], meta["not_deciding"]) == ([], "a cache still held what was written before it")
    assert meta["notes"] == ["The caches below the target were not clean after 0.2 seconds: 458752 bytes were dirty."]
    assert meta["summary"]["write"]["iops"] == 1000


@pytest.mark.parametrize("values", [{"decides": []}, {"drain": 0}])
def test_no_other_cell_waits_for_clean_caches(rig, values):
    rig.cache(dirty=7)
    rig.finish(step(**values))
    meta = rig.meta()
    assert (meta["decides"], meta["not_deciding"], meta["notes"]) == (values.get("decides"), None, [])
    assert "waiting for clean caches" not in (rig.spool.home / "runner.log").read_text()


def test_pause_until_clean_marks_the_cell_too(rig):
    rig.cache(dirty=7)
    rig.finish(step(pause={"until": "clean", "most": 0.2}))
    assert rig.meta()["not_deciding"] and rig.meta()["decides"] == []


def test_what_another_target_keeps_does_not_mark_a_cell(rig):
    rig.cache(dirty=7)
    rig.finish(step(drain=0), step("other", "/dev/sdc", drain=0.2))
    meta = rig.meta("other")
    assert meta["not_deciding"] is None and "458752 bytes were dirty" in meta["notes"][0]


def test_cell_after_a_long_wait_does_not_claim_to_start_with_others(rig):
    rig.cache(dirty=7)
    first, late = step(drain=0, barrier=True, offset=0.0), step(repeat=2, drain=0.5, offset=0.01)
    rig.finish(first, late, barrier_timeout=0.1)
    assert rig.meta()["asked_start"] is not None
    assert rig.meta(repeat=2)["asked_start"] is None and not any("later than requested" in note for note in rig.meta(repeat=2)["notes"])


def test_stopped_while_caches_are_written_back(rig):
    rig.cache(dirty=7)
    rig.start(step())
    rig.await_state("pausing")
    rig.kill(15)
    assert rig.await_end()["state"] == "stopped" and not rig.runs
    assert [row["state"] for row in rig.packed()["cells"]] == ["missing"]


# -- warm


def counting(rig, *hits_of_ten):
    """Each run of fio looks 100 blocks up, of which so many tenths are found, one run after the other."""
    rig.cache(hits=0, misses=0)
    (rig.root / "next").write_text("".join(f"{hits}\n" for hits in hits_of_ten))
    template = CACHE.format(used=40, hits="$h", misses="$m", dirty=0)
    place = rig.root
    rig.behave(
        does=f"cd {place}; n=$(cat n 2>/dev/null || echo 0); h=$(cat h 2>/dev/null || echo 0); m=$(cat m 2>/dev/null || echo 0); n=$((n+1)); "
        f'now=$(sed -n "$((1 + (n - 1) % {len(hits_of_ten)}))p" next); h=$((h + 10 * now)); m=$((m + 100 - 10 * now)); '
        f'echo $n > n; echo $h > h; echo $m > m; echo "{template}" > status.new; mv status.new status'
    )


def test_caches_are_warmed_until_their_hit_ratio_is_steady(rig):
    counting(rig, 9)
    rows = rig.finish(step(job=READ, warm="until_steady"))
    assert [(row["name"], row["state"]) for row in rows] == [("w", "ok")], "rounds are no results"
    meta = rig.meta()
    assert meta["warm"].pop("seconds") > 0
    assert meta["warm"] == {"rounds": warming.LEAST, "steady": True, "hit_ratios": {"sdb": [90.0] * warming.LEAST}}
    assert len(rig.runs) == warming.LEAST + 1 and not meta["notes"]
    assert meta["measurement_sha256"] != warmless_hash(rig)


def warmless_hash(rig):
    rig.finish(step(job=READ))
    return rig.meta()["measurement_sha256"]


def test_status_names_the_round_that_warms_and_is_before_the_barrier(rig):
    counting(rig, 9)
    rig.start(step(job=READ, warm="until_steady", barrier=True))
    status = rig.await_status(lambda status: (status["cell"] or "").startswith("w.warm-"))
    assert (status["state"], status["segment"]) == ("measuring", None), "otherwise the controller takes it for one that needs no release"
    assert rig.await_status(lambda status: status["state"] == "waiting")["segment"] == 0


def test_warm_up_that_is_not_steady_is_noted(rig, monkeypatch):
    monkeypatch.setattr(warming, "MOST", 7)
    counting(rig, 9, 1)
    rig.finish(step(job=READ, warm="until_steady"))
    meta = rig.meta()
    assert (meta["state"], meta["warm"]["rounds"], meta["warm"]["steady"], meta["decides"]) == ("ok", 7, False, None)
    assert meta["notes"] == ["The hit ratio of the caches was not steady after 7 rounds: sdb 90.0, 10.0, 90.0 % in the last three."]


def test_nothing_is_warmed_without_a_cache_and_that_is_said_once(rig):
    rig.finish(step(job=READ, warm="until_steady"), step("second", job=READ, warm="until_steady"))
    assert len(rig.runs) == 2
    assert rig.meta()["notes"] == ["No cache below the target counts hits: nothing was warmed."] and not rig.meta("second")["notes"]
    assert rig.meta("second")["warm"]["steady"] is None


def test_cache_that_is_never_asked_ends_the_warm_up(rig):
    rig.cache()
    rig.finish(step(job=READ, warm="until_steady"))
    assert rig.meta()["notes"] == ["The warm-up ended early: no cache looked anything up."]
    assert len(rig.runs) == warming.LEAST + 1


def test_round_that_fails_ends_the_warm_up(rig):
    rig.cache()
    rig.behave(fails=["w", "w.warm-01"])
    rows = rig.finish(step(job=READ, warm="until_steady"))
    assert [row["state"] for row in rows] == ["failed"] and len(rig.runs) == 2
    assert "The warm-up ended early: round 1 was failed." in rig.meta()["notes"]


def test_what_warms_a_cache_is_written_back_before_the_cell(rig):
    rig.cache()
    rig.behave(does=f"cat > {rig.root}/new <<E\n{CACHE.format(used=40, hits=9, misses=0, dirty=7)}\nE\nmv {rig.root}/new {rig.root}/status")
    rig.start(step(warm="until_steady"))
    rig.await_state("pausing")
    assert len(rig.runs) == warming.LEAST
    rig.behave()
    rig.cache(dirty=0)
    rig.await_end()
    assert rig.meta()["not_deciding"] is None


@pytest.mark.parametrize(("kind", "runtime"), [("bcache", "200ms"), ("dm", "100ms")])
def test_rounds_are_long_enough_for_counters_that_are_late(rig, monkeypatch, kind, runtime):
    rig.disks[0] = dataclasses.replace(rig.disks[0], kind=kind)
    monkeypatch.setattr(warming, "ROUND", 0.2)
    monkeypatch.setattr(CacheSamples, "dirty", lambda self, names: 0)
    monkeypatch.setattr(CacheSamples, "read", lambda self, names: [Sample("sdb", 0, 0, {"read_hits": len(rig.runs), "read_misses": 0})])
    rig.finish(step(job=READ, warm="until_steady"))
    assert [run["job"].count(f"runtime={runtime}") for run in rig.runs[:-1]] == [1] * warming.LEAST
    assert "runtime=100ms" in rig.runs[-1]["job"] and rig.meta()["warm"]["hit_ratios"] == {"sdb": [100.0] * warming.LEAST}


def test_stopped_while_caches_are_warmed(rig):
    counting(rig, 9)
    rig.start(step(job={**READ, "runtime": 30}, warm="until_steady"))
    rig.await_run(1)
    rig.kill(15)
    assert rig.await_end()["state"] == "stopped"
    assert [row["state"] for row in rig.packed()["cells"]] == ["missing"]


# -- empty


def test_cell_for_empty_caches_is_measured_over_an_empty_one(rig):
    rig.cache(used=0)
    assert [row["state"] for row in rig.finish(step(warm="empty"))] == ["ok"]
    assert rig.meta()["warm"] is None


def test_cell_for_empty_caches_is_refused_over_others(rig):
    # 160 blocks of 64 KiB are 10 MiB, and 1 % of a disk of 1 GiB is 10.24 MiB.
    rig.cache(used=160)
    assert [row["state"] for row in rig.finish(step(warm="empty"))] == ["ok"]
    rig.cache(used=164)
    rows = rig.finish(step("second", warm="empty"), step("third"))
    assert [row["state"] for row in rows] == ["refused", "ok"]
    assert "The cache sdb holds 10.25 MiB, and a cache cannot be emptied without destroying it" in rows[0]["reason"]


def test_cell_for_empty_caches_is_refused_over_one_that_cannot_be_read(rig, monkeypatch):
    rig.cache("c0: 0 2097152 cache Fail")
    assert "how full it is could not be read" in rig.finish(step(warm="empty", drain=0))[0]["reason"]
    monkeypatch.setattr(CacheSamples, "read", lambda self, names: [])
    monkeypatch.setattr(CacheSamples, "dirty", lambda self, names: None)
    assert rig.finish(step("second", warm="empty", drain=0))[0]["reason"] == "Whether the caches below the target are empty could not be read."


# -- orders


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"warm": "hot"}, "Step 0, cell w: warm must be one of none, until_steady, empty"),
        ({"drain": -1}, "Step 0, cell w: drain must be a number from 0"),
        ({"drain": "soon"}, "Step 0, cell w: drain must be a number"),
    ],
)
def test_invalid_states_are_rejected(rig, values, message):
    with pytest.raises(BadInput, match=message):
        rig.order(step(**values))


@pytest.mark.parametrize("kind", ["search", "rounds"])
def test_searches_and_rounds_are_not_warmed(rig, kind):
    cell = {**step(warm="until_steady")["cells"][0]}
    with pytest.raises(BadInput, match=f"Step 0: warm is not supported in a step of kind {kind}"):
        rig.order({"kind": kind, "cell": cell, kind: {"metric": "p99", "limit": 10**6} if kind == "search" else {}})


def test_warm_up_is_part_of_what_an_order_measures(rig):
    assert rig.order(step(warm="until_steady")).sha256 != rig.order(step()).sha256
