# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be said of measurements: medians, never a number that was not measured, no comparison of what differs."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import compare
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import rows_of
from ansible_collections.cachefleet.storage.tests.unit.support.archives import summary

META = {"behaviour_class": "sync-in-submitter", "fio_version": "3.33", "kernel": "6.1.0", "workload_sha256": "a"}
JOB = {"rw": "randwrite", "bs": "4k", "filename": "/dev/vdb"}


def record(iops=1000.0, *, variant="before", repeat=1, state="ok", numbers=None, meta=None, job=None, cell="c", verdicts=("durable", "durable")):
    message = {**META, "summary": summary(iops) if numbers is None else numbers, **(meta or {})}
    return CellRecord("node1", CellKey(variant, cell, repeat), state, "", pathlib.Path("x"), message, job or JOB, verdicts)


def campaign(*records):
    variants = tuple(dict.fromkeys(one.key.variant for one in records))
    return Campaign("c", pathlib.Path("c"), variants, records, ())


def only_row(*records):
    (row,) = rows_of(CampaignFiles(campaign(*records)).measurements)
    return row


def ratios_of(*records, baseline=""):
    measured = campaign(*records)
    measurements = CampaignFiles(measured).measurements
    return compare.ratios_of(measured.variants, rows_of(measurements), measurements, baseline)


def only_ratio(*records):
    (ratio,) = ratios_of(*records)
    return ratio


def test_repeats_are_summarized_by_median_and_spread():
    row = only_row(record(100.0), record(120.0, repeat=2), record(90.0, repeat=3))
    assert (row.iops, row.bandwidth, row.spread, row.runs, row.planned, row.state) == (100.0, 409600.0, 0.3, 3, 3, "noisy")
    assert row.to_dict()["noise"] == pytest.approx(0.1478, abs=1e-4)


def test_repeats_within_the_noise_gate_are_ok():
    row = only_row(record(100.0), record(101.0, repeat=2), record(99.0, repeat=3))
    assert row.state == "ok" and row.to_dict()["noise"] == pytest.approx(0.01)


@pytest.mark.parametrize("state", ["interrupted", "failed", "refused", "missing"])
def test_unsuccessful_run_has_no_figures(state):
    row = only_row(record(state=state))
    assert (row.iops, row.bandwidth, row.direction, row.runs, row.state) == (None, None, "", 0, state)
    assert set(row.latency.values()) == {None}


@pytest.mark.parametrize("state", ["not_steady", "noisy"])
def test_complete_run_of_doubtful_quality_keeps_figures_and_state(state):
    row = only_row(record(100.0), record(50.0, repeat=2, state=state))
    assert (row.iops, row.state) == (75.0, state)


def test_repeat_without_figures_is_not_zero_in_the_median():
    row = only_row(record(100.0), record(state="failed", repeat=2))
    assert (row.iops, row.spread, row.runs, row.planned, row.state) == (100.0, None, 1, 2, "failed")


@pytest.mark.parametrize("value", [None, "1000", True, float("nan"), float("inf"), -1, [1], {"a": 1}, 10**400])
def test_invalid_number_is_unknown(value):
    numbers = summary()
    numbers["write"]["iops"] = value
    assert only_row(record(numbers=numbers)).iops is None


@pytest.mark.parametrize(
    "message", [None, [], "x", {"write": None}, {"write": []}, {"write": {"total_ios": 0, "iops": 0}}, {"write": {"total_ios": 5, "clat": []}}]
)
def test_invalid_summary_gives_no_figures(message):
    row = only_row(record(meta={"summary": message}))
    assert row.iops is None


@pytest.mark.parametrize(
    ("samples", "shown"),
    [(99, set()), (100, {"p50"}), (1521, {"p50"}), (1522, {"p50", "p99"}), (15350, {"p50", "p99"}), (15351, {"p50", "p99", "p99.9"})],
)
def test_percentiles_require_enough_ios(samples, shown):
    row = only_row(record(numbers=summary(total_ios=samples)))
    assert {name for name, value in row.latency.items() if value is not None} == shown


def test_one_short_repeat_hides_the_percentile():
    assert only_row(record(), record(repeat=2, numbers=summary(total_ios=200))).latency["p99"] is None


def test_cell_with_syncs_shows_sync_latency():
    row = only_row(record(numbers=summary(sync=True)))
    assert (row.synced, row.latency["p50"], row.latency["p99.9"]) == (True, 800_000, 90_200_000)


def test_invalid_latencies_are_hidden():
    numbers = summary()
    numbers["write"]["clat"]["percentiles_ns"] = {"50": "400", "99": None, "99.9": -5}
    assert set(only_row(record(numbers=numbers)).latency.values()) == {None}


def test_total_latency_takes_precedence_over_completion_latency():
    numbers = summary()
    numbers["write"]["lat"]["percentiles_ns"] = {"50": 450_000}
    assert only_row(record(numbers=numbers)).latency == {"p50": 450_000, "p99": None, "p99.9": None}


def test_mixed_load_has_a_row_per_direction():
    numbers = {**summary(700.0, direction="read"), "write": summary(300.0)["write"]}
    assert [(row.direction, row.iops) for row in rows_of(CampaignFiles(campaign(record(numbers=numbers))).measurements)] == [("read", 700.0), ("write", 300.0)]


def test_changed_verdict_shows_both_values():
    assert only_row(record(verdicts=("durable", "at_risk"))).verdict == "durable>at_risk"
    assert only_row(record(verdicts=(None, None))).verdict is None


def test_few_repeats_give_a_ratio_without_a_claim():
    ratio = only_ratio(record(100.0), record(1200.0, variant="after"))
    assert (ratio.baseline, ratio.variant, ratio.ratio) == ("before", "after", 12.0)
    assert ratio.note == "1 and 1 repeats: fewer than 4, no significance claimed"


@pytest.mark.parametrize(
    ("other", "ratio", "claim"),
    [(1000.0, 9.78, "better, 9.62 to 9.94, at least 97 %"), (100.0, 1.0, "same, 0.97 to 1.03, at least 97 %")],
)
def test_enough_repeats_are_judged_as_in_the_report(other, ratio, claim):
    pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")
    # Of four repeats on a side the interval goes from the least ratio, 1001 / 104, to the greatest, 1004 / 101.
    runs = [record(100.0 + number, repeat=number) for number in range(1, 5)]
    runs += [record(other + number, repeat=number, variant="after") for number in range(1, 5)]
    found = only_ratio(*runs)
    assert (pytest.approx(found.ratio, abs=0.01), found.note) == (ratio, claim)


@pytest.mark.parametrize("count", [1, 4])
def test_repeat_that_measured_0_has_no_ratio_and_the_reason(count):
    runs = [record(100.0, repeat=number) for number in range(1, count + 1)]
    runs += [record(0.0 if number == 1 else 100.0, repeat=number, variant="after") for number in range(1, count + 1)]
    found = only_ratio(*runs)
    assert (found.ratio, found.note) == (None, "not comparable: a repeat measured 0, of which there is no ratio")


def test_without_libraries_nothing_is_claimed(monkeypatch):
    def missing(*_arguments):
        raise LibraryMissing("no numpy")

    monkeypatch.setattr(compare, "pair", missing)
    runs = [record(100.0 * factor, repeat=number, variant=variant) for variant, factor in (("before", 1), ("after", 2)) for number in range(1, 5)]
    found = only_ratio(*runs)
    assert (found.ratio, found.note) == (pytest.approx(2.0), "4 and 4 repeats: no significance claimed, because numpy and scipy are not installed")


@pytest.mark.parametrize(
    ("meta", "job", "why"),
    [
        ({"behaviour_class": "sync-queued"}, JOB, "not comparable: behaviour class sync-in-submitter / sync-queued"),
        ({"fio_version": "3.41"}, JOB, "not comparable: fio version 3.33 / 3.41"),
        ({"kernel": "6.12.0"}, JOB, "not comparable: kernel 6.1.0 / 6.12.0"),
        ({}, {**JOB, "bs": "8k"}, "not comparable: bs 4k / 8k"),
        ({}, {**JOB, "fdatasync": "1"}, "not comparable: fdatasync 0 / 1"),
        ({"workload_sha256": "b"}, JOB, "not comparable: other options of the job (workload sha256)"),
        ({"workload_sha256": "b"}, {**JOB, "bs": "8k"}, "not comparable: bs 4k / 8k"),
    ],
)
def test_differences_are_named_and_prevent_comparison(meta, job, why):
    ratio = only_ratio(record(), record(variant="after", meta=meta, job=job))
    assert (ratio.ratio, ratio.note) == (None, why)


def test_different_device_names_are_comparable():
    assert only_ratio(record(), record(variant="after", job={**JOB, "filename": "/dev/vg0/x"})).ratio == 1.0


def test_variant_without_figures_is_not_compared():
    assert only_ratio(record(state="failed"), record(variant="after")).note == "no number of before"
    assert ratios_of(record(), record(variant="after", state="missing")) == []


def test_other_baseline_can_be_selected():
    (ratio,) = ratios_of(record(100.0), record(50.0, variant="after"), baseline="after")
    assert (ratio.variant, ratio.ratio) == ("before", 2.0)


def test_single_variant_is_not_compared():
    assert ratios_of(record()) == []
