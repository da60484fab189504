# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a variant is faster and what limits a cell, on flows that were made with a known cause, and on flows that show none."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import random
import re

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import causes
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CellFlows
from ansible_collections.cachefleet.storage.tests.unit.support import planted_flows
from ansible_collections.cachefleet.storage.tests.unit.support.planted_flows import MB, cache, disk, planted, rows_of, ssd

SEEDS = (1, 2, 3)


def answered(*variants, **options):
    rows = rows_of(*variants)
    return answer_of(rows, rows.points(), **options)


def noisy(chance, spread, iops, flows):
    """A repeat whose rates and waits vary, and use with them."""

    def varied(one, *names):
        return dataclasses.replace(one, **{name: value * max(chance.gauss(1, spread), 0.1) for name in names if (value := getattr(one, name)) is not None})

    names = [f"{kind}{end}" for kind in ("read", "write", "flush") for end in ("_wait",)] + ["reads", "writes", "flushes", "use"]
    return iops * max(chance.gauss(1, spread / 3), 0.1), CellFlows(tuple(varied(one, *names) for one in flows.devices), flows.caches)


def four(iops, *devices, caches=(), seed=1, spread=0.08):
    chance = random.Random(f"{seed} {iops} {devices}")
    return [noisy(chance, spread, iops, CellFlows(tuple(devices), tuple(caches))) for _number in range(4)]


def limits(answer):
    return {one.variant: one.limit for one in answer.workloads[0].results}


# --- the answer of the demo


def test_the_demo_says_why_and_how_long_it_lasts():
    rows = planted_flows.demo()
    answer = answer_of(rows, rows.points())
    [said] = answer.sentences
    assert said.startswith("Use writeback-disk_off: 835 durable random 4 KiB writes per second, 5.37 times as many as bare-disk_on (156 IOPS) (ratio ")
    assert (
        ", because no flush reaches the slow disk sda (bare-disk_on sends it 92.5 per second; in writeback-disk_on, with its write cache on, each flush "
        "reaches it: 117 per second, 88.5 % busy). This is a burst: at this rate the cache (1 GB) is full after 2 min if the working set is larger (it was "
        "256 MB), then about 156 IOPS, the rate of the origin (bare-disk_on); the cell of 2 s is too short to show it. Noisy"
    ) in said


def test_the_demo_names_the_limit_of_each_variant():
    rows = planted_flows.demo()
    found = limits(answer_of(rows, rows.points()))
    assert {name: limit.name for name, limit in found.items()} == {
        "bare-disk_on": "flushes",
        "bare-disk_off": "device",
        "writethrough-disk_on": "flushes",
        "writethrough-disk_off": "device",
        "writeback-disk_on": "flushes",
        "writeback-disk_off": "load",
    }
    assert found["writeback-disk_on"].text == ("the slow disk sda: 104 flushes per second of 5 ms; an earlier fill was written back in 3 of 4 repeats")


def test_without_flows_nothing_is_said():
    rows = planted_flows.demo(with_flows=False)
    answer = answer_of(rows, rows.points())
    assert "because" not in " ".join(answer.sentences) and "burst" not in " ".join(answer.sentences) and "not known" not in " ".join(answer.sentences)
    assert set(limits(answer).values()) == {None}


# --- limits


def aoe(**changes):
    return disk("etherd!e1.1", **{"kind": "aoe", "level": 0, "rotational": None, **changes})


#: The rule, the flows at a rate, its caches, and what the job has.
LIMITS = {
    "rate asked": (200, [disk(writes=(200, 0.4), rotational=False)], [], {"rate_limit": "rate_iops=200"}),
    "rate asked of each job": (2048, [disk(writes=(2048, 0.4), rotational=False)], [], {"rate_limit": "rate=1m,4m", "numjobs": 2}),
    "CPU": (9000, [ssd(writes=(9000, 0.05))], [], {"cpu_bound": True, "host_busy": 98.0, "cpu_usr": 40.0, "cpu_sys": 50.0, "iodepth": 16, "fdatasync": 0}),
    "CPU of fio": (
        9000, [ssd(writes=(9000, 0.05))], [], {"cpu_bound": True, "host_busy": 30.0, "cpu_usr": 40.0, "cpu_sys": 59.0, "iodepth": 16, "fdatasync": 0}
    ),
    "network": (800, [aoe(writes=(800, 1.2)), disk(writes=(800, 0.1))], [], {}),
    "writing back": (80, [disk(writes=(160, 6)), ssd(writes=(100, 0.3))], [cache(dirty=(500, 100))], {}),
    "writing back by its state": (80, [disk(writes=(160, 6)), ssd(writes=(100, 0.3))], [cache(dirty=None, state="writing back")], {}),
    "dirty threshold": (150, [disk(writes=(150, 6)), ssd(writes=(150, 0.3))], [cache(dirty=(980, 985))], {}),
    "dirty threshold of a setting": (
        150, [disk(writes=(150, 6)), ssd(writes=(150, 0.3))], [cache(dirty=(100, 102), type="bcache", written_back=150 * 4096.0)], {}
    ),
    # As measured with dm-writecache of 32 MiB on the rack.
    "dirty threshold of a cache that lets pass": (
        161, [disk(writes=(150, 106)), ssd(writes=(25, 0.3))],
        [cache(dirty=(33.2, 33.4), size=33.4 * MB, bypassed_writes=150.0, write_hits=13.0, write_misses=0.0)], {"iodepth": 16, "ioengine": "io_uring"},
    ),
    "bypass": (150, [disk(writes=(150, 6)), ssd(writes=(1, 0.3))], [cache(bypassed_writes=145.0, write_hits=5.0)], {}),
    "bypass of sizes that are not cached": (
        150, [disk(reads=(150, 6)), ssd()], [cache("writethrough", bypassed_reads=150.0)], {"rw": "randread", "direction": "read"}
    ),
    "working set": (
        150, [disk(reads=(110, 8)), ssd(reads=(40, 0.2))], [cache(read_hits=40.0, read_misses=110.0, state="full")],
        {"rw": "randread", "direction": "read", "target_size": 4000 * MB},
    ),
    "cold cache": (
        150, [disk(reads=(110, 8)), ssd(reads=(40, 0.2))], [cache(read_hits=40.0, read_misses=110.0, state="warming")], {"rw": "randread", "direction": "read"}
    ),
    "flushes": (156, [disk(writes=(156, 0.8), flushes=(93, 5))], [], {}),
    # As kernel 6.1 counts it: half of these writes are the flushes, with their time.
    "flushes of kernel 6.1": (98, [disk(writes=(192, 4.8), flushes=(94, 6.2))], [], {}),
    "flushes of a cache device": (156, [disk(), ssd(writes=(156, 0.5), flushes=(150, 4))], [cache("writethrough")], {}),
    "neighbour": (60, [disk(writes=(160, 6), level=1), disk("dm-1", level=0, kind="lvm", writes=(60, 16))], [], {}),
    "load": (9000, [ssd(reads=(9000, 0.1))], [], {"rw": "randread", "direction": "read"}),
    "load of few": (1000, [disk(writes=(1000, 0.1))], [], {"iodepth": 4}),
    "device": (150, [disk(writes=(150, 6))], [], {}),
    "device of a cache": (4000, [disk(), ssd(writes=(8000, 1.7))], [cache("writeback")], {"iodepth": 16, "ioengine": "io_uring"}),
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", LIMITS)
def test_a_planted_limit_is_named(case, seed):
    iops, devices, caches, changes = LIMITS[case]
    answer = answered(planted("bare", *four(iops, *devices, caches=caches, seed=seed), **changes))
    limit = limits(answer)["bare"]
    assert limit.name == case.partition(" of ")[0].partition(" by ")[0], limit
    # Every figure of the sentence is there.
    assert limit.text and "-" not in re.findall(r"\S+", limit.text) and "None" not in limit.text


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ([disk(writes=(156, 0.8), flushes=(93, 5))], "What limits it: flushes: sda: 93 flushes per second of 5 ms."),
        ([disk(reads=None, writes=None, flushes=None, use=99.0)], "What limits it is not known."),
    ],
)
def test_the_only_variant_has_its_limit_in_its_sentence(devices, said):
    [sentence] = answered(planted("bare", *four(156, *devices, spread=0))).sentences
    assert said in sentence
    both = answered(planted("bare", *four(156, *devices, spread=0)), planted("other", *four(156, *devices, spread=0), started=2e9)).sentences
    assert "What limits it" not in " ".join(both)


def test_limits_have_their_figures():
    def text(case):
        iops, devices, caches, changes = LIMITS[case]
        return limits(answered(planted("bare", *four(iops, *devices, caches=caches, spread=0), **changes)))["bare"].text

    assert text("rate asked") == "the job asks for rate_iops=200 and gets it"
    assert text("CPU") == "a thread of fio uses 90 % of a CPU, the host 98 % of all"
    assert text("network") == "writes take 1.2 ms at etherd!e1.1 and 100 µs behind it (3.28 MB/s)"
    assert text("dirty threshold") == "985 MB of 1 GB dirty in the cache: writes wait for the slow disk sda (150 writes per second of 6 ms)"
    assert text("dirty threshold of a setting").startswith("102 MB of 1 GB dirty in the cache")
    assert text("writing back") == "the slow disk sda writes back what was dirty before (500 MB → 100 MB): 160 writes per second of 6 ms"
    assert text("bypass") == "97 % of the writes bypass the cache: the slow disk sda gets 150 writes per second of 6 ms"
    assert text("working set") == "73 % of the reads miss: the working set (4 GB) is larger than the cache (1 GB)"
    assert text("cold cache") == "73 % of the reads miss: the cache is warming"
    assert text("neighbour") == "sda moves 0.41 MB/s for others, and 0.246 MB/s for this cell"
    assert text("load") == "1 in flight, 111 µs each"
    assert text("device of a cache") == "the cache device sdb: 8,000 writes per second of 1.7 ms"


#: Flows that show no limit: only use is high, counters are not known, one repeat of four has flows that show one.
NO_LIMITS = {
    "only use": [disk(reads=None, writes=None, flushes=None, use=99.0)],
    "flushes that the kernel does not count": [disk(writes=(150, 0.8), flushes=None)],
    "no waits": [disk(writes=(150, None), use=99.0)],
    "a busy disk of an array whose other counters are not known": [disk(writes=(20, 6), use=99.0), disk("sdb", reads=None, writes=None, flushes=None)],
}


@pytest.mark.parametrize("case", NO_LIMITS)
def test_no_limit_is_named_that_flows_do_not_show(case):
    devices = NO_LIMITS[case]
    repeats = [(150, CellFlows(tuple(devices), ()))] * 4
    assert limits(answered(planted("bare", *repeats)))["bare"] == (causes.NOT_KNOWN, "")


def test_a_limit_of_half_of_the_repeats_is_not_named():
    flows = [CellFlows((disk(writes=(150, 6)),), ())] * 2 + [CellFlows((disk(writes=(150, 0.2), flushes=(150, 5)),), ())] * 2
    assert limits(answered(planted("bare", *((150, one) for one in flows))))["bare"].name == causes.NOT_KNOWN


def test_a_queue_with_a_sync_after_each_write_is_no_depth():
    """fio drains it: of 16 I/Os that a job asks for one is in flight, as the latencies show, or the version where there are none."""
    flows = CellFlows((disk(writes=(156, 0.8), flushes=(93, 5)),), ())
    deep = {"iodepth": 16, "behaviour_class": "libaio_sync_blocking"}
    assert limits(answered(planted("bare", *[(156, flows)] * 4, **deep)))["bare"].name == "flushes"
    measured, known = planted("bare", *[(156, flows)] * 4, **{**deep, "behaviour_class": "libaio_sync_queued", "lat_mean_ns": 1e6})
    measured += [dataclasses.replace(one, direction="sync", lat_mean_ns=5e6) for one in measured]
    assert limits(answered((measured, known)))["bare"].name == "flushes"


def test_the_time_of_an_io_is_that_of_those_that_are_named():
    """clat of a queue of libaio that waits for each sync is of 16 I/Os, of which one is in flight: the demo had 34 ms at 571 IOPS."""
    flows = CellFlows((disk(writes=(200, 0.1), flushes=(150, 0.5)),), ())
    deep = {"iodepth": 16, "behaviour_class": "libaio_sync_blocking", "lat_mean_ns": 26.2e6}
    limit = limits(answered(planted("bare", *[(571, flows)] * 4, **deep)))["bare"]
    assert limit == ("load", "1 in flight, 1.75 ms each")


# --- reasons


FAST = (disk(writes=(40, 2)), ssd(writes=(900, 0.3)))

ARC = functools.partial(cache, None, None, device="ARC of the host", type="zfs", level=None, fast=())

#: The rule, and what both variants are: the rate, the devices and the caches of each.
REASONS = {
    "no flush": ((156, [disk(writes=(156, 0.8), flushes=(150, 5))], []), (800, [disk(writes=(800, 0.8), flushes=(0, 0))], []), {}),
    "fewer requests of flushes": ((156, [disk(writes=(156, 0.8), flushes=(150, 5))], []), (500, [disk(writes=(500, 0.8), flushes=(100, 5))], []), {}),
    "less bypass": (
        (150, [disk(writes=(145, 6)), ssd(writes=(5, 0.3))], [cache("writethrough", bypassed_writes=145.0, write_hits=5.0)]),
        (900, [*FAST], [cache("writethrough", write_hits=900.0)]), {},
    ),
    "hits": (
        (150, [disk(reads=(150, 6))], []),
        (900, [disk(reads=(60, 6)), ssd(reads=(840, 0.4))], [cache("writethrough", read_hits=840.0, read_misses=60.0)]),
        {"rw": "randread", "direction": "read", "fdatasync": 0},
    ),
    "hits of the ARC": (
        (150, [disk(reads=(150, 6))], [ARC(read_hits=10.0, read_misses=140.0)]),
        (900, [disk(reads=(60, 6))], [ARC(read_hits=840.0, read_misses=60.0), ARC(device="L2ARC of the host", read_hits=1.0, read_misses=59.0)]),
        {"rw": "randread", "direction": "read", "fdatasync": 0},
    ),
    "deferred writes": ((150, [disk(writes=(150, 6))], []), (900, [*FAST], [cache(dirty=(0, 20))]), {}),
    "larger requests": (
        (400, [aoe(writes=(1600, 0.5), request_bytes=4096.0)], []), (900, [aoe(writes=(450, 1.0), request_bytes=32768.0)], []), {"iodepth": 1}
    ),
    "fewer requests": ((150, [disk(writes=(450, 2))], []), (450, [disk(writes=(450, 2))], []), {}),
    "shorter waits": ((150, [disk(writes=(150, 6))], []), (900, [disk(writes=(900, 0.8))], []), {}),
}  # fmt: skip


def both(case, seed=1, spread=0.08):
    old, new, changes = REASONS[case]
    return [
        planted(name, *four(iops, *devices, caches=caches, seed=seed, spread=spread), started=started, **changes)
        for name, started, (iops, devices, caches) in (("bare", 1e9, old), ("other", 2e9, new))
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", REASONS)
def test_a_planted_reason_is_named_first(case, seed):
    answer = answered(*both(case, seed))
    rule = next(one for one in causes.REASONS if one.name == case.partition(" of ")[0])
    pattern = re.sub(r"\\\{.+?\\\}", ".+", re.escape(rule.sentence))
    because = answer.workloads[0].because
    assert answer.workloads[0].recommended == "other"
    assert re.match(pattern, because), because
    assert f", because {because}." in answer.sentences[0]


def test_reasons_have_their_figures():
    def because(case):
        return answered(*both(case, spread=0)).workloads[0].because

    assert because("no flush") == "no flush reaches sda (bare sends it 150 per second)"
    assert because("fewer requests of flushes") == "sda gets 0.2 flushes per I/O in place of 0.962"
    assert because("less bypass") == "0 % of the writes bypass the cache in place of 97 % (the slow disk sda gets 40 per second in place of 145)"
    assert because("hits") == "93 % of the reads hit the cache (the slow disk sda gets 60 per second in place of 150)"
    assert because("hits of the ARC").startswith("93 % of the reads hit the cache (")
    assert because("deferred writes").startswith(
        "writes wait for the cache only and are written back later (the slow disk sda gets 40 per second in place of 150)"
    )
    assert because("larger requests") == "etherd!e1.1 gets requests of 32.8 kB in place of 4.1 kB"
    assert because("fewer requests") == "sda gets 1 writes per I/O in place of 3"
    assert because("shorter waits") == "writes take 800 µs at sda in place of 6 ms"


def test_every_rule_has_a_planted_test_a_source_and_a_line_in_the_documentation():
    page = (pathlib.Path(__file__).resolve().parents[6] / "docs/report.md").read_text().partition("## Causes")[2].partition("\n## ")[0]
    tables = [re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE) for text in page.split("| reason |")]
    assert [[name for name in names if name not in ("limit", "---", "what the flows show")] for names in tables] == [
        [one.name for one in rules] for rules in (causes.LIMITS, causes.REASONS)
    ]
    assert {one.name for one in causes.REASONS} == {name.partition(" of ")[0] for name in REASONS}
    assert {one.name for one in causes.LIMITS} == {name.partition(" of ")[0].partition(" by ")[0] for name in LIMITS}
    assert all(one.source for one in (*causes.REASONS, *causes.LIMITS))


def test_three_differences_at_most_and_the_largest_first():
    old = [disk(reads=(100, 3), writes=(150, 5), flushes=(150, 2), request_bytes=4096.0)]
    new = [disk(reads=(10, 0.3), writes=(90, 0.3), flushes=(0, 0))]
    [because] = {one.because for one in answered(planted("bare", *four(150, *old)), planted("other", *four(900, *new), started=2e9)).workloads}
    assert because.startswith("sda gets 0.1 writes per I/O in place of 1") and "no flush reaches sda" in because


# --- no reason


#: What both variants are, of flows that show no reason although one is faster.
NULLS = {
    "equal flows": ([disk(writes=(150, 3))], [disk(writes=(150, 3))], 0.0),
    "noise of 30 %": ([disk(writes=(150, 3), flushes=(100, 2))], [disk(writes=(230, 3), flushes=(153, 2))], 0.3),
    "noise of a faster cell": ([disk(writes=(150, 1), flushes=(150, 0.5))], [disk(writes=(220, 1), flushes=(220, 0.5))], 0.3),
    "only use is high": ([disk(writes=None, reads=None, flushes=None, use=99.0)], [disk(writes=None, reads=None, flushes=None, use=9.0)], 0.0),
    "counters that are not known": ([disk(writes=(150, 6), flushes=(150, 5))], [disk(writes=None, reads=None, flushes=None)], 0.0),
    "another disk": ([disk(writes=(150, 6))], [disk("nvme0n1", writes=(900, 0.8))], 0.0),
    "a difference that explains little": ([disk(writes=(150, 0.8), flushes=(3, 5))], [disk(writes=(230, 0.8), flushes=(0, 0))], 0.0),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", NULLS)
def test_no_reason_is_named_that_flows_do_not_show(case, seed):
    old, new, spread = NULLS[case]
    answer = answered(
        planted("bare", *four(150, *old, seed=seed, spread=spread)), planted("other", *four(230, *new, seed=seed + 7, spread=spread), started=2e9)
    )
    assert answer.workloads[0].recommended == "other"
    assert answer.workloads[0].because == ""
    assert "because" not in answer.sentences[0]
    assert answer.sentences[-1] == "Why other is faster is not known: no recorded flow explains it."


def test_noise_is_never_a_reason():
    """400 times: equal flows, rates and waits that vary by 30 %."""
    named = 0
    for seed in range(400):
        chance = random.Random(seed)
        flows = CellFlows((disk(writes=(150, 3), flushes=(150, 2), reads=(20, 3)), ssd(writes=(150, 1), flushes=(150, 1))), (cache("writethrough"),))
        sides = {name: {"node1": planted(name, *(noisy(chance, 0.3, iops, flows) for _number in range(4)))} for name, iops in (("bare", 150), ("other", 230))}
        rows = rows_of(*(found["node1"] for found in sides.values()))
        repeats = causes.Observed(rows).repeats_of("node1", {name: {"node1": found["node1"][0]} for name, found in sides.items()})
        named += bool(causes.reasons_of(causes.Pair("bare", "other", repeats, lambda *_names: None)))
    assert named <= 4, named


@pytest.mark.parametrize("missing", ["bare", "other"])
def test_flows_of_one_side_give_its_limit_and_no_reason(missing):
    variants = both("deferred writes")
    variants = [(measured, {} if measured[0].variant == missing else flows) for measured, flows in variants]
    answer = answered(*variants)
    assert answer.workloads[0].because is None
    assert "because" not in " ".join(answer.sentences) and "not known: no" not in " ".join(answer.sentences)
    assert {name for name, limit in limits(answer).items() if limit is None} == {missing}


def test_too_few_repeats_with_flows_give_no_reason():
    variants = [(measured, dict(list(flows.items())[:2])) for measured, flows in both("no flush")]
    assert answered(*variants).workloads[0].because == ""


def test_reasons_of_several_hosts_are_those_of_most():
    def campaign(*cases):
        variants = []
        for number, case in enumerate(cases):
            for measured, flows in both(case, spread=0):
                host = f"node{number}"
                variants.append(([dataclasses.replace(one, host=host) for one in measured], {(host, *key[1:]): value for key, value in flows.items()}))
        [workload] = answered(*variants).workloads
        return workload.because

    assert campaign("shorter waits", "no flush", "no flush") == "no flush reaches sda (bare sends it 150 per second) (figures of node1)"
    assert campaign("no flush", "shorter waits") == ""


class Counting(dict):
    """Flows, and of which hosts they were asked for."""

    hosts = frozenset()

    def get(self, key, default=None):
        self.hosts |= {key[0]}
        return super().get(key, default)


@pytest.mark.parametrize(("count", "asked"), [(1, 1), (20, 20), (21, 11), (90, 18)])
def test_of_a_fleet_few_hosts_are_looked_at(count, asked):
    variants = []
    for number in range(count):
        for measured, flows in both("no flush", spread=0):
            host = f"node{number:03d}"
            variants.append(([dataclasses.replace(one, host=host) for one in measured], {(host, *key[1:]): value for key, value in flows.items()}))
    rows = rows_of(*variants)
    rows.flows = Counting(rows.flows)
    assert answer_of(rows, rows.points()).workloads[0].because.startswith("no flush reaches sda")
    assert len(rows.flows.hosts) == asked


def test_reasons_that_are_missing_are_said_once():
    old, new, _spread = NULLS["equal flows"]
    cells = [
        planted(name, *four(iops, *devices, spread=0), cell=cell, started=started)
        for cell in ("randwrite-4k-1", "randwrite-4k-2")
        for name, iops, devices, started in (("bare", 150, old, 1e9), ("other", 230, new, 2e9))
    ]
    sentences = answered(*cells).sentences
    assert [one for one in sentences if "not known:" in one] == ["Why other is faster is not known: no recorded flow explains it."]


# --- how long it lasts


def lasting(dirty=(0, 20), seconds=2.0, **changes):
    flows = CellFlows(FAST, (cache(dirty=dirty, **changes),))
    old = planted("bare", *four(150, disk(writes=(150, 6)), spread=0))
    return answered(old, planted("other", *[(iops, flows) for iops in (900, 905, 910, 915)], started=2e9, runtime_ms=int(seconds * 1000))).workloads[0].burst


def test_a_cache_that_fills_is_a_burst():
    assert lasting().startswith(
        "This is a burst: at this rate the cache (1 GB) is full after 2 min if the working set is larger (it was 256 MB), then about 150"
    )
    assert lasting((100, 200), 100, size=200 * MB) == (
        "This is a burst: at this rate the cache (200 MB) is full after 2 min, then about 150 IOPS, the rate of the origin (bare); "
        "the cell of 2 min contains it."
    )
    # bcache does not cache writes beyond 70 %.
    assert "(1 GB) is full after 70 s or later, as it is written back meanwhile if" in lasting(type="bcache")


@pytest.mark.parametrize(
    ("iops", "grown", "size", "origin", "full", "settings"),
    [
        # As measured on the rack, from empty: full after 31, 40 and 30 s (tests/rack/causes/bursts.yml).
        (400, 12.9, 33.4, 150, "27 s", {}),
        (300, 37.4, 100.3, 4 * 150, "33 s", {"block_size": 4096}),
        (400, 25.7, 66.8, 2 * 150, "27 s", {}),
        (400, 25.7, 66.8, 2 * 150, "22 s", {"high_watermark": 90}),
        # Not measured without a cache.
        (400, 12.9, 33.4, None, "21 s or later, as it is written back from 50 % on", {}),
        (400, 12.9, 33.4, 450, None, {}),
    ],
)
def test_a_writecache_fills_more_slowly_once_it_is_written_back(iops, grown, size, origin, full, settings):
    changes = {"started": 2e9, "runtime_ms": 8000, "stack_before": "new", "stack_after": "new", "target_size": 512 * MB}
    new = planted("other", *[(rate, CellFlows(FAST, (cache(dirty=(0, grown), size=size * MB),))) for rate in (iops, iops + 1, iops + 2, iops + 3)], **changes)
    caches = [] if origin else [cache("writethrough")]
    old = planted("bare", *four(origin or 100, disk(writes=(150, 6)), ssd(writes=(150, 0.2)), caches=caches, spread=0))
    stack = [("dm-0", "block_cache", "kind", "writecache"), ("dm-0", "block_cache", "settings", json.dumps(settings))]
    found = causes.Observed(rows_of(old, new, settings={("node1", "new"): stack}))
    sides = found.repeats_of("node1", {name: {"node1": cells[0]} for name, cells in (("bare", old), ("other", new))})
    share, rate = found.written_back_from(sides["other"]), None if caches else sides["bare"][0].moved
    said = causes.burst_of(sides["other"], "the rate of the origin", written_back_from=share, origin=rate)
    if full is None:
        assert said == f"At this rate the cache ({size} MB) does not fill up: from 50 % on it is written back as fast."
    else:
        assert f"is full after {full}, then the rate of the origin" in said


def test_cells_beyond_the_watermark_have_measured_what_is_written_back():
    flows = CellFlows(FAST, (cache(dirty=(60, 70), size=100 * MB),))
    new = planted("other", *[(rate, flows) for rate in (400, 401, 402, 403)], runtime_ms=10_000, target_size=512 * MB)
    repeats = causes.Observed(rows_of(new)).repeats_of("node1", {"other": {"node1": new[0]}})["other"]
    assert "is full after 40 s, then" in causes.burst_of(repeats, "the rate of the origin", written_back_from=0.5, origin=5e6)


# In an hour 13 GB are written, of which 100 MB are not written back at the end.
@pytest.mark.parametrize(
    "changes", [{"dirty": (20, 20)}, {"dirty": (25, 4)}, {"mode": "writethrough"}, {"dirty": (20, 20.5)}, {"dirty": (0, 100), "seconds": 3600}]
)
def test_what_does_not_fill_is_no_burst(changes):
    assert lasting(**changes) == ""


@pytest.mark.parametrize("dirty", [None, (0, 20)])
def test_reads_are_no_burst(dirty):
    flows = CellFlows((disk(reads=(60, 6)), ssd(reads=(840, 0.4))), (cache(dirty=dirty, read_hits=840.0, read_misses=60.0),))
    reads = {"rw": "randread", "direction": "read", "fdatasync": 0}
    old = planted("bare", *four(150, disk(reads=(150, 6)), spread=0), **reads)
    assert answered(old, planted("other", *[(iops, flows) for iops in (900, 905, 910, 915)], started=2e9, **reads)).workloads[0].burst == ""


@pytest.mark.parametrize("changes", [{"dirty": None}, {"size": None}])
def test_a_burst_of_unknown_length_is_named(changes):
    assert lasting(**changes) == ("This may be a burst: how long it lasts is not known, because the size of the cache or the rate at which it fills is not.")


def test_the_rate_of_an_origin_that_was_not_measured_alone_is_not_known():
    old = planted("bare", *four(150, disk(writes=(150, 6)), ssd(writes=(150, 0.2)), caches=[cache("writethrough")]))
    new = planted("other", *[(iops, CellFlows(FAST, (cache(dirty=(0, 20)),))) for iops in (900, 905, 910, 915)], started=2e9)
    assert "then at the rate of the origin, which was not measured; the cell" in answered(old, new).workloads[0].burst


def test_no_headline_names_a_burst_as_if_it_lasted():
    """Neither where it is not proved, nor where workloads are put together."""
    flows = CellFlows(FAST, (cache(dirty=(0, 20)),))
    few = [planted("bare", (150, CellFlows((disk(writes=(150, 6)),), ()))), planted("other", (900, flows), started=2e9)]
    [said] = answered(*few).sentences
    assert said.startswith("other looks 6.00 times as fast as bare") and "-e fio_benchmark_repeats=4. This is a burst: at this rate the cache (1 GB)" in said
    assert "because" not in said

    cells = [
        variant
        for number in range(4)
        for variant in (
            planted("bare", *four(150, disk(writes=(150, 6)), spread=0), cell=f"randwrite-{number}k"),
            planted("other", *[(iops, flows) for iops in (900, 905, 910, 915)], cell=f"randwrite-{number}k", started=2e9),
        )
    ]
    assert answered(*cells).sentences[0] == "other is shown to be better in 4 of 4 workloads: 6.05 to 6.05 times as fast as bare, in 4 of them as a burst."
