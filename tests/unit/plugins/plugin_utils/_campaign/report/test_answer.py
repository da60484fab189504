# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of a campaign: what decides, for whom, how sure, and whether it is safe; on campaigns whose right answer is known."""

from __future__ import annotations

import dataclasses
import math
import random
import re

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import overview
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer_text import verdict_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, host_classes, read_facts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

ORDER = ("before", "after", "other")
SLOW, FAST = (149, 150, 148, 151), (1420, 1400, 1430, 1410)


def repeats(variant, *rates, host="node1", cell="randwrite-4k-fdatasync", **changes):
    changes = {"fdatasync": 1, "started": 1e9 + ORDER.index(variant) * 1e4, **changes}
    return [measurement(host, variant, cell, repeat, iops=rate, **changes) for repeat, rate in enumerate(rates, 1)]


def two_variants():
    return repeats("before", *SLOW) + repeats("after", *FAST)


def answered(measurements, settings=None, **options):
    rows = Rows("c", measurements, settings=settings or {})
    return answer_of(rows, points_of(measurements), **options)


def stacks(**verdicts):
    """Settings of the stacks ``before`` and ``after`` of node1, and measurements on them."""
    rows = {("node1", name): [("", "verdict", key, value) for key, value in said.items()] for name, said in verdicts.items()}
    measured = [
        dataclasses.replace(one, stack_before=name, stack_after=name) for name, rates in (("before", SLOW), ("after", FAST)) for one in repeats(name, *rates)
    ]
    return measured, rows


# --- how sure


def test_significant_difference_gives_a_recommendation_with_both_values():
    answer = answered(two_variants())
    [said] = answer.sentences
    assert said.startswith(
        "Use after: 1,420 durable random 4 KiB writes per second, 9.46 times as many as before (150 IOPS) (ratio 9.27 to 9.66, at least 97 %"
    )
    assert [one.recommended for one in answer.workloads] == ["after"]


@pytest.mark.parametrize(("count", "words"), [(1, "measured once"), (3, "measured 3 times")])
def test_too_few_repeats_give_no_recommendation(count, words):
    answer = answered(repeats("before", *SLOW[:count]) + repeats("after", *FAST[:count]))
    [said] = answer.sentences
    assert re.match(rf"after looks 9\.\d+ times as fast as before .*; {words}, so this is no proof\. Repeat at least 4 times: -e fio_b\w+=4\.", said)
    assert answer.workloads[0].recommended is None


@pytest.mark.parametrize(("old", "new", "words"), [(1, 4, "before measured once"), (4, 2, "after measured 2 times"), (2, 2, "measured 2 times")])
def test_the_side_with_too_few_repeats_is_named(old, new, words):
    [said] = answered(repeats("before", *SLOW[:old]) + repeats("after", *FAST[:new])).sentences
    assert f"; {words}, so this is no proof. Repeat at least 4 times" in said


def test_repeat_that_measured_0_is_not_left_out():
    answer = answered(repeats("before", *SLOW) + repeats("after", 0, *FAST))
    assert answer.sentences[0].startswith("after and before are not comparable: a repeat measured 0, of which there is no ratio.")
    assert answer.workloads[0].recommended is None


def test_equal_values_are_no_multiple_of_each_other():
    [said] = answered(repeats("before", 143.0) + repeats("after", 143.1)).sentences
    assert "after looks as fast as before (143 IOPS, 143 IOPS); measured once, so this is no proof." in said


def test_undecided_comparison_names_no_winner():
    answer = answered(repeats("before", 100, 130, 90, 120) + repeats("after", 110, 95, 140, 125))
    assert answer.sentences[0].startswith(
        "No difference is shown between before (110 IOPS) and after (118 IOPS) (ratio 0.73 to 1.56, at least 97 %, p = 0.69)."
    )
    assert answer.workloads[0].recommended is None


def test_noise_is_reported_if_it_affects_the_comparison():
    quiet = answered(two_variants())
    assert "Noisy" not in quiet.sentences[0]
    noisy = answered(repeats("before", *SLOW) + repeats("after", 900, 1500, 1100, 1900))
    assert "Noisy: repeats of after (3" in noisy.sentences[0] and "vary by more than 5 %" in noisy.sentences[0]
    assert [one.is_noisy for one in noisy.workloads[0].results] == [False, True]


def test_a_sentence_does_not_contradict_its_own_figures():
    """The median of eight repeats that fall into two groups is no multiple of the other median by the ratio of the repeats."""
    before = (1000, 1050, 1100, 1150, 1950, 4000, 4050, 4100)
    after = (4900, 5000, 5100, 12700, 12750, 12800, 12900, 13000)
    [said] = answered(repeats("before", *before) + repeats("after", *after)).sentences
    found = re.search(r"Use after: ([\d.]+) times as many durable random 4 KiB writes per second as before \(ratio ", said)
    assert found, said
    assert "Repeats are far apart: after 4,900 IOPS to 13,000 IOPS, before 1,000 IOPS to 4,100 IOPS." in said


def test_irrelevant_difference_is_reported_as_none():
    answer = answered(repeats("before", 1420, 1418, 1422, 1421) + repeats("after", 1421, 1419, 1423, 1420))
    assert answer.sentences[0].startswith("No difference that matters: after is within 5 % of before")


def test_slower_variant_keeps_the_baseline():
    answer = answered(repeats("before", *FAST) + repeats("after", *SLOW))
    assert answer.sentences[0].startswith("Keep before: 1,420 durable random 4 KiB writes per second; after does 0.11 times that")


def test_second_variant_not_significantly_slower_is_named():
    answer = answered(two_variants() + repeats("other", 1415, 1425, 1405, 1390))
    assert "other is not shown to be slower." in answer.sentences[0]
    apart = answered(two_variants() + repeats("other", 500, 510, 490, 505))
    assert "not shown to be slower" not in apart.sentences[0]


# --- what decides


def fill(variant, rate, **changes):
    return measurement("node1", variant, "fill-1m", 1, rw="write", iops=rate, started=1e9 + ORDER.index(variant) * 1e4, **changes)


def test_fill_does_not_decide_and_every_repeat_counts():
    """It runs once, whatever is repeated: as a deciding cell it would leave one repeat to compare."""
    measured = repeats("before", *FAST) + repeats("after", *SLOW) + [fill("before", 100), fill("after", 815)]
    answer = answered(measured)
    assert answer.sentences[0].startswith("Keep before:")
    assert [(one.cell, one.reason) for one in answer.excluded] == [("fill-1m", "it fills the target")]


def test_suite_decides_setting_is_applied():
    measured = [
        dataclasses.replace(one, decides="p99 iops")
        for variant, wait in (("before", 9e6), ("after", 2e6))
        for one in repeats(variant, *SLOW, p99_ns=wait, cell="log")
    ]
    measured += [dataclasses.replace(one, decides="") for variant in ORDER[:2] for one in repeats(variant, *SLOW, cell="probe")]
    answer = answered(measured)
    assert [one.metric for one in answer.deciding] == ["p99", "iops"]
    assert any(said.startswith("log, p99: Use after: 2 ms p99 of durable random 4 KiB writes, 0.22 times that of before (9 ms)") for said in answer.sentences)
    assert answer.excluded[0].reason == "the suite does not decide by it"


@pytest.mark.parametrize(("recorded", "metrics", "reasons"), [
    ("p99 nonsense p99", ["p99"], []),
    ("<script>", [], ["no metric by which it decides is known"]),
])  # fmt: skip
def test_unknown_metric_recorded_by_a_host_does_not_decide(recorded, metrics, reasons):
    answer = answered([dataclasses.replace(one, decides=recorded) for one in two_variants()])
    assert [one.metric for one in answer.deciding] == metrics
    assert [one.reason for one in answer.excluded] == reasons


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fdatasync": 0, "cell": "randwrite-4k-bound"}, "it is an upper bound, without a sync"),
        ({"direction": "trim", "rw": "trim", "cell": "discard"}, "it discards"),
        ({"rw": "write", "cell": "sequential-128k-twice"}, "it fills the target"),
    ],
)
def test_bounds_discards_and_fills_of_older_campaigns_do_not_decide(changes, reason):
    more = [one for variant, rate in (("before", 9000), ("after", 100)) for one in repeats(variant, rate, **changes)]
    answer = answered(two_variants() + more)
    assert [one.reason for one in answer.excluded] == [reason]
    assert answer.sentences[0].startswith("Use after:")


def test_patterns_that_match_no_cell_are_named_as_the_reason():
    answer = answered(two_variants(), decide_by=["randwrit-*"])
    assert answer.sentences == ("No variant can be recommended: no pattern of report_decide_by matches a cell that has a number.",)


def test_user_selected_cells_override_the_suite():
    bound = [one for variant, rates in (("before", FAST), ("after", SLOW)) for one in repeats(variant, *rates, cell="bound", fdatasync=0, decides="")]
    answer = answered(two_variants() + bound, decide_by=["bound"])
    assert [one.cell for one in answer.deciding] == ["bound"]


def test_cell_with_runtime_dependent_mean_does_not_decide():
    answer = answered(two_variants(), doubtful={("randwrite-4k-fdatasync", "write")})
    reason = "its mean depends on how long was measured"
    assert answer.sentences == (f"No variant can be recommended: no cell decides (randwrite-4k-fdatasync: {reason}).",)


DIRTY = {"decides": "", "not_deciding": "a cache still held what was written before it"}


def test_repeats_with_dirty_caches_do_not_decide_and_are_named():
    later = repeats("after", *FAST)
    one_dirty = [*later, dataclasses.replace(later[0], repeat=9, iops=5.0, **DIRTY)]
    answer = answered(repeats("before", *SLOW, decides="iops") + [dataclasses.replace(one, decides=one.decides or "iops") for one in later] + one_dirty[-1:])
    assert answer.sentences[0].startswith("Use after: 1,420 "), "without the repeat that measured something else"
    assert [(one.cell, one.reason) for one in answer.excluded] == [
        ("randwrite-4k-fdatasync", "a cache still held what was written before it, in after"),
    ]


def test_variant_with_dirty_caches_is_no_winner():
    answer = answered(repeats("before", *SLOW) + repeats("after", *FAST, **DIRTY) + repeats("other", *SLOW))
    assert not any("Use after" in said for said in answer.sentences)
    assert {one.variant for workload in answer.workloads for one in workload.results} == {"before", "other"}


def test_cell_with_dirty_caches_everywhere_is_named_as_the_reason():
    answer = answered(repeats("before", *SLOW, **DIRTY) + repeats("after", *FAST, **DIRTY))
    assert answer.sentences == (
        "No variant can be recommended: no cell decides (randwrite-4k-fdatasync: a cache still held what was written before it, in before, after).",
    )
    chosen = answered(repeats("before", *SLOW, **DIRTY) + repeats("after", *FAST, **DIRTY), decide_by=["*"])
    assert chosen.sentences[0].startswith("Use after:"), "cells that the user names decide"


def test_caches_of_which_nothing_is_known_are_named_as_they_are():
    unknown = {"decides": "", "not_deciding": "it is not known whether a cache was clean before it"}
    answer = answered(repeats("before", *SLOW, **unknown) + repeats("after", *FAST, **DIRTY))
    assert [one.reason for one in answer.excluded] == [
        "it is not known whether a cache was clean before it, in before",
        "a cache still held what was written before it, in after",
    ]


def test_reasons_of_a_host_are_no_text_of_a_report():
    answer = answered(repeats("before", *SLOW, not_deciding="<script>"))
    assert [one.reason for one in answer.excluded] == ["its host recorded a reason against it, in before"]


def test_without_a_number_nothing_is_recommended():
    assert answered([]).sentences == ("No variant can be recommended: no cell has a number.",)


def test_incomparable_measurements_do_not_decide_unless_ignored():
    old, new = {"fio_version": "fio-3.33", "kernel": "6.1"}, {"fio_version": "fio-3.41", "kernel": "6.12"}
    measured = repeats("before", *SLOW, **old) + repeats("after", *FAST, **new)
    answer = answered(measured)
    assert answer.sentences[0].startswith("after and before are not comparable: fio version fio-3.33 / fio-3.41; kernel 6.1 / 6.12.")
    assert answer.workloads[0].recommended is None
    assert answer.incomparable == (
        "randwrite-4k-fdatasync: after and before are not comparable: fio version fio-3.33 / fio-3.41; kernel 6.1 / 6.12."
        " report_ignore: [fio_version, kernel] compares them all the same.",
    )
    assert answered(measured, ignore=["fio_version", "kernel"]).workloads[0].recommended == "after"


def test_hosts_that_cannot_be_compared_are_reported_and_the_others_decide():
    measured = two_variants()
    measured += repeats("before", *SLOW, host="node2", fio_version="fio-3.33") + repeats("after", *SLOW, host="node2", fio_version="fio-3.41")
    answer = answered(measured)
    assert answer.sentences[0].startswith("Use after: 1,420 durable random 4 KiB writes per second, 9.46 times as many as before (150 IOPS)")
    assert answer.incomparable == (
        "randwrite-4k-fdatasync: after and before are not comparable: on node2: fio version fio-3.33 / fio-3.41."
        " report_ignore: [fio_version] compares them all the same.",
    )


def test_too_few_ios_for_a_percentile_are_nothing_that_can_be_ignored():
    measured = [dataclasses.replace(one, decides="p99.9", p999_ns=None) for one in two_variants()]
    [said] = answered(measured).incomparable
    assert said.endswith("after and before are not comparable: there are too few I/Os for its p999.")


def test_jobs_that_differ_in_any_option_are_not_compared():
    measured = repeats("before", *SLOW, workload_sha256="a") + repeats("after", *FAST, workload_sha256="b")
    assert answered(measured).sentences[0].startswith("after and before are not comparable: other options of the job (workload sha256).")
    assert answered(measured, ignore=["workload_sha256"]).workloads[0].recommended == "after"


def test_hosts_on_which_the_recommended_variant_is_slower_are_named():
    measured = []
    for number in range(1, 9):
        measured += repeats("before", *SLOW, host=f"node{number}")
        measured += repeats("after", *(tuple(rate / 20 for rate in FAST) if number == 8 else FAST), host=f"node{number}")
    [said] = answered(measured).sentences
    assert said.startswith("Use after:") and "Not on node8 (0.47 times)." in said


def test_a_variant_on_other_hosts_does_not_hide_those_that_were_compared():
    measured = two_variants() + repeats("other", *FAST, host="node2")
    [said] = answered(measured).sentences
    assert said.startswith("Use after:") and "Not compared, because measured on other hosts: other." in said


def test_values_of_the_sentence_are_those_of_the_compared_hosts():
    measured = two_variants()
    for host in ("node2", "node3"):
        measured += repeats("before", *(rate * 30 for rate in SLOW), host=host)
    [said] = answered(measured).sentences
    assert said.startswith("Use after: 1,420 durable random 4 KiB writes per second, 9.46 times as many as before (150 IOPS)")


def test_values_that_contradict_the_ratio_of_the_hosts_are_not_named():
    """The median of hosts is one host, and the ratio that of most of them."""
    measured = []
    for number in range(1, 14):
        rates = [number * rate for rate in (1000, 1002, 998, 1001)]
        other = [rate * (0.1 if number == 7 else 1.1) for rate in rates]
        measured += repeats("before", *rates, host=f"node{number}") + repeats("after", *other, host=f"node{number}")
    [said] = answered(measured).sentences
    assert said.startswith("Use after: 1.10 times as many durable random 4 KiB writes per second as before on 13 hosts (ratio 1.1")
    assert "Not on node7 (0.10 times)." in said


def test_a_latency_that_is_worse_on_most_hosts_is_no_number_of_writes():
    measured = []
    for number in range(1, 14):
        waits = [number * wait for wait in (1e6, 1.002e6, 0.998e6, 1.001e6)]
        for variant, factor in (("before", 1), ("after", 0.1 if number == 7 else 1.5)):
            rows = repeats(variant, *SLOW, host=f"node{number}")
            measured += [dataclasses.replace(one, decides="p99", p99_ns=wait * factor) for one, wait in zip(rows, waits)]
    [said] = answered(measured).sentences
    assert said.startswith("Keep before: after has 1.50 times the p99 of durable random 4 KiB writes in before on 13 hosts (ratio")


def test_the_number_of_compared_hosts_is_named_unless_it_is_all():
    measured = []
    for number in range(1, 5):
        measured += repeats("before", *SLOW, host=f"node{number}")
        measured += repeats("after", *FAST, host=f"node{number}") if number < 3 else []
    [said] = answered(measured).sentences
    assert said.startswith("Use after: 1,420 durable random 4 KiB writes per second, 9.46 times as many as before (150 IOPS) on 2 of 4 hosts (ratio")


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ((1.5, 0.5), "Hosts differ: of 2, after is better on 1 and worse on 1."),
        ((1.2,) * 6 + (0.6,) * 4, "Hosts differ: of 10, after is better on 6 and worse on 4."),
        ((1.5,) * 3 + (1.0,) * 5, "Hosts differ: of 8, after is better on 3."),
    ],
)
def test_hosts_that_contradict_each_other_are_counted(factors, words):
    measured = []
    for number, factor in enumerate(factors):
        measured += repeats("before", *FAST, host=f"node{number}") + repeats("after", *(rate * factor for rate in FAST), host=f"node{number}")
    [said] = answered(measured).sentences
    assert said.startswith(("No difference is shown between before", "No difference that matters: after")) and words in said
    assert "Add repeats." not in said


def test_mixed_versions_on_a_side_are_not_compared():
    """Nine of one version and one of the other are not the same as one and nine."""
    measured = []
    for variant, old in (("before", 9), ("after", 1)):
        rows = repeats(variant, *(1000 + number for number in range(10)))
        measured += [dataclasses.replace(one, kernel="6.1" if one.repeat <= old else "6.12") for one in rows]
    answer = answered(measured)
    assert answer.sentences[0].startswith("after and before are not comparable: kernel 6.1, 6.12 / 6.1, 6.12.")
    assert answered(measured, ignore=["kernel"]).workloads[0].result("after").verdict == "same"


def test_measurements_without_a_result_are_counted():
    failed = [dataclasses.replace(one, direction=None, iops=None, state="failed") for one in repeats("after", *FAST, *FAST)[4:]]
    [said] = answered(two_variants() + failed).sentences
    assert "Without a result: 4 measurements of after." in said
    assert "Without a result" not in answered(two_variants()).sentences[0]


def test_a_power_loss_test_that_lost_data_outweighs_the_verdict_of_the_stack():
    measured, settings = stacks(before={"unflushed": "kept", "device_loss": "loses"}, after={"unflushed": "kept", "device_loss": "loses"})
    rows = Rows("c", measured, settings=settings, disproved=frozenset({"node1"}))
    answer = answer_of(rows, points_of(measured))
    assert answer.sentences[0].endswith("Power failure: unknown; loss of one device: can lose data.")
    assert [one.is_safe for one in answer.variants] == [False, False]


def test_without_the_baseline_values_are_given_and_nothing_is_compared():
    measured = repeats("after", *FAST) + repeats("other", *SLOW)
    [said] = answered(measured, baseline="before").sentences
    assert said.startswith("before was not measured, so nothing is compared with it: after 1,420 durable")


def test_the_difference_that_matters_is_that_of_the_metric():
    rows = repeats("before", *SLOW) + repeats("after", *SLOW)
    [said] = answered([dataclasses.replace(one, decides="p99", p99_ns=9_000_000 + one.repeat) for one in rows]).sentences
    assert said.startswith("No difference that matters: after is within 10 % of before")


def test_overview_and_answer_compare_the_same_measurements():
    measured = repeats("before", *SLOW, kernel="6.1") + repeats("after", *FAST, kernel="6.12")
    [ratio] = overview._ratios(points_of(measured), "before")
    assert (ratio.ratio, ratio.note) == (None, "not comparable: kernel 6.1 / 6.12")
    [ratio] = overview._ratios(points_of(two_variants()), "before")
    assert ratio.ratio == pytest.approx(9.46, rel=0.01)


def test_additional_drive_in_the_stack_is_comparable():
    """An SSD cache makes another model of what is measured."""
    assert answered(repeats("before", *SLOW, model="HDD") + repeats("after", *FAST, model="HDD, SSD")).workloads[0].recommended == "after"


# --- for whom


def test_each_host_class_has_its_own_answer():
    quick = [one for variant, rates in (("before", SLOW), ("after", FAST)) for one in repeats(variant, *rates, model="SSD A")]
    slow = [one for variant, rates in (("before", FAST), ("after", SLOW)) for one in repeats(variant, *rates, host="node2", model="SSD B")]
    answer = answered(quick + slow)
    assert [one.recommended for one in answer.workloads] == ["after", None]
    *answers, safety = answer.sentences
    assert sorted(said.partition(":")[0] for said in answers) == ["node1 (SSD A)", "node2 (SSD B)"]
    assert safety == "Power failure: survives; loss of one device: unknown.", "the same for all is said once"


def test_variants_on_different_hosts_give_no_recommendation():
    answer = answered(repeats("before", *SLOW, model="SSD A") + repeats("after", *FAST, host="node2", model="SSD B"))
    [said] = answer.sentences
    assert said.startswith("before on node1: 150 durable random 4 KiB writes per second; after on node2: 1,420 durable")
    assert "They were measured on different hosts, node1 (SSD A) / node2 (SSD B): no variant can be recommended." in said
    assert answer.workloads[0].recommended is None


def test_host_classes_are_distinguished_by_selected_facts():
    rows = Rows("c", repeats("before", 1, kernel="6.1") + repeats("before", 1, host="node2", kernel="6.12"))
    assert [one.label for one in host_classes(rows)] == ["node1 (kernel 6.1)", "node2 (kernel 6.12)"]
    assert [one.hosts for one in host_classes(rows, read_facts(["drives"]))] == [("node1", "node2")]
    with pytest.raises(BadInput, match="Hosts have no fact 'colour': report_host_class takes controller, drives"):
        read_facts(["colour"])


def test_single_variant_is_not_compared():
    assert answered(repeats("before", *SLOW)).sentences[0].startswith("Only before was measured: 150 durable random 4 KiB writes per second.")


def test_single_variant_of_several_workloads_is_named_once():
    cells = ["randwrite-4k-fdatasync", "a", "b", "c"]
    first, *rest = answered([one for cell in cells for one in repeats("before", *SLOW, cell=cell)]).sentences
    assert first == "Only before was measured, so there is nothing to compare it with."
    assert [said for said in rest if said.startswith("a: 150 durable random 4 KiB writes per second.")]
    assert not [said for said in rest if "before" in said or "shown" in said]


def test_many_workloads_start_with_a_summary():
    measured = []
    for number in range(5):
        measured += repeats("before", *SLOW, cell=f"w{number}") + repeats("after", *(FAST if number else SLOW), cell=f"w{number}")
    answer = answered(measured)
    assert answer.sentences[0].startswith("after is shown to be better in 4 of 5 workloads: 9.4")
    assert sum(": Use after: " in said for said in answer.sentences) == 4


def test_what_all_workloads_have_in_common_is_not_cut_off_with_the_list():
    cells = [f"cell-{number}" for number in range(14)]
    answer = answered([one for cell in cells for name, rates in (("before", SLOW), ("after", FAST)) for one in repeats(name, *rates, cell=cell)])
    assert answer.sentences[1].startswith("Power failure: ")
    assert all(said.startswith("cell-") for said in answer.sentences[2:]) and len(answer.sentences) == 16


# --- is it safe


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [
        ({"unflushed": "kept"}, {"unflushed": "may_be_lost"}, None),
        ({"device_loss": "survives"}, {"device_loss": "loses"}, "can lose data when one device fails"),
        ({"device_loss": "survives"}, {}, "is not known to survive the loss of a device"),
    ],
)
def test_variant_losing_data_the_baseline_keeps_is_not_recommended(before, after, loss):
    """What is not flushed counts for workloads without a flush only: these have one."""
    measured, settings = stacks(before=before, after=after)
    answer = answered(measured, settings)
    assert answer.workloads[0].recommended == (None if loss else "after")
    if loss:
        assert f"after is 9.46 times as fast as before, but {loss}: it is not recommended." in answer.sentences[0]


def test_unflushed_writes_are_judged_by_their_durability():
    measured, settings = stacks(before={"unflushed": "kept"}, after={"unflushed": "may_be_lost"})
    answer = answered([dataclasses.replace(one, fdatasync=0) for one in measured], settings)
    assert answer.workloads[0].recommended is None
    assert "but can lose acknowledged writes in a power failure" in answer.sentences[0]


def test_variant_at_risk_is_named_and_not_recommended():
    answer = answered(repeats("before", *SLOW) + repeats("after", *FAST, verdict_after="at_risk"))
    assert answer.sentences[0].startswith("Keep before: 150 durable")
    assert "after is 9.46 times as fast as before, but can lose acknowledged writes in a power failure: it is not recommended." in answer.sentences[0]


def test_baseline_at_risk_excludes_no_variant():
    risky = {"verdict_before": "at_risk", "verdict_after": "at_risk"}
    answer = answered(repeats("before", *SLOW, **risky) + repeats("after", *FAST, **risky))
    assert answer.workloads[0].recommended == "after"
    assert answer.sentences[0].endswith("Power failure: can lose data; loss of one device: unknown.")


# --- planted differences


def planted(chance):
    """A campaign with known ratios: measurements, and the ratio of each (model, variant)."""
    classes, variants, count = chance.randint(1, 3), chance.randint(2, 4), chance.randint(1, 8)
    noise = chance.choice((0.01, 0.05, 0.1, 0.2, 0.4))
    ratios, rows = {}, []
    names = [f"v{number}" for number in range(variants)]
    for number in range(chance.randint(1, 12)):
        model = f"SSD {number % classes}"
        own = math.exp(chance.gauss(0, 0.3))
        for place, variant in enumerate(names):
            ratio = ratios.setdefault((model, variant), 1.0 if place == 0 else chance.choice((0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0)))
            when = {"started": 1e9 + place, "model": model, "host": f"node{number}"}
            rows.append(measurement(variant=variant, cell="fill", rw="write", iops=chance.uniform(10, 1000), **when))
            for repeat in range(1, count + 1):
                rate = 1000 * own * ratio * math.exp(chance.gauss(0, noise))
                if chance.random() < 0.97:
                    rows.append(measurement(variant=variant, cell="log", repeat=repeat, fdatasync=1, iops=rate, **when))
                rows.append(measurement(variant=variant, cell="bound", repeat=repeat, iops=chance.uniform(1, 9000), **when))
                rows.append(measurement(variant=variant, cell="strange", repeat=repeat, fdatasync=1, iops=rate, **{**when, "kernel": f"6.{place}"}))
    return rows, ratios, noise, count


def test_answers_match_simulated_effects_in_500_campaigns():
    chance = random.Random(17)
    claims = false = shown = planted_large = 0
    for _number in range(500):
        rows, ratios, noise, count = planted(chance)
        answer = answered(rows, facts=("drives",))
        for one in answer.workloads:
            if one.question.cell == "strange":
                assert verdict_of(one) in ("not_comparable", "baseline"), one
                continue
            assert one.question.cell == "log"
            model = one.host_class.facts["drives"]
            for result in one.results:
                truth = ratios[model, result.variant]
                if result.verdict in ("better", "worse"):
                    claims += 1
                    false += (result.verdict == "better") != (truth > 1) or truth == 1
                if result.variant != "v0" and noise <= 0.05 and count >= 5 and result.repeats >= 5 and not 1 / 1.2 < truth < 1.2:
                    planted_large += 1
                    shown += result.verdict == ("better" if truth > 1 else "worse")
            if one.recommended is not None:
                assert ratios[model, one.recommended] >= 1, (noise, count, one)
    assert claims > 300
    assert false <= 0.05 * claims, f"{false} of {claims}"
    assert planted_large > 100
    assert shown >= 0.9 * planted_large, f"{shown} of {planted_large}"
