# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baseline against candidate: the exit status, what may not be compared, and the files."""

from __future__ import annotations

import dataclasses
import json
from xml.etree import ElementTree

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.modules.compare import KEYS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import regression
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import SCRIPT, measurement

NOISE = (1.0, 1.004, 0.997, 1.002, 0.999)


def runs(factor=1.0, *, latency=1.0, host="node1", repeats=5, **changes):
    return [measurement(host, repeat=place + 1, iops=1000 * factor * NOISE[place], p99_ns=2e6 * latency * NOISE[place], **changes) for place in range(repeats)]


def compared(old, new, thresholds=None, variants=("", ""), **rules):
    return regression.compare_campaigns(old, new, regression.read_rules(thresholds or {}, **rules), variants=variants)


def verdicts(found):
    return {one.metric: one.verdict for one in found.lines}


@pytest.mark.parametrize(
    ("factor", "latency", "rc", "expected"),
    [
        (1.0, 1.0, 0, {"iops": "same", "p99": "same"}),
        (1.2, 0.7, 0, {"iops": "better", "p99": "better"}),
        (0.9, 1.0, 1, {"iops": "worse", "p99": "same"}),
        (1.0, 1.3, 1, {"iops": "same", "p99": "worse"}),
        (0.97, 1.05, 0, {"iops": "same", "p99": "same"}),
    ],
)
def test_exit_status(factor, latency, rc, expected):
    found = compared(runs(), runs(factor, latency=latency))
    assert (found.rc, verdicts(found)) == (rc, expected)


def test_threshold_per_metric():
    assert compared(runs(), runs(0.9), {"iops": 15}).rc == 0
    assert compared(runs(), runs(0.97), {"iops": 2}).rc == 1
    assert set(verdicts(compared(runs(), runs(), {"p50": None}))) == {"p50"}


def test_sequential_cells_are_compared_by_bytes():
    old, new = (runs(factor, rw="write", bw_bytes=1e8 * factor) for factor in (1.0, 0.8))
    assert verdicts(compared(old, new)) == {"bandwidth": "worse", "p99": "same"}
    assert [one.unit for one in compared(old, new).lines] == ["bytes/s", "ns"]
    assert set(verdicts(compared(old, new, {"iops": None}))) == {"iops"}
    assert set(verdicts(compared(runs(direction="sync", rw="write"), runs(direction="sync", rw="write")))) == {"iops", "p99"}


def test_three_repeats_are_not_sufficient():
    found = compared(runs(repeats=3), runs(0.5, repeats=3))
    assert (found.rc, set(verdicts(found).values())) == (2, {"not_enough_repeats"})


def test_regression_is_reported_beside_undecided_cells():
    found = compared(runs() + runs(cell="other", repeats=2), runs(0.8) + runs(cell="other", repeats=2))
    assert found.rc == 1


def test_a_cell_that_is_measured_once_is_not_compared_unless_named():
    fill = [measurement("node1", cell="fill-1m", repeat=1, rw="write", iops=500.0)]
    found = compared(runs() + fill, runs() + fill)
    assert (found.rc, found.skipped) == (0, ("fill-1m: it fills the target",))
    assert "Not compared, unless compare_cells names them: fill-1m: it fills the target." in regression.as_markdown(found, {})
    named = compared(runs() + fill, runs() + fill, cells=["fill*"])
    assert (named.rc, named.skipped, set(verdicts(named).values())) == (2, (), {"not_enough_repeats"})


def test_missing_and_additional_cells_are_reported():
    found = compared(runs() + runs(cell="gone"), runs() + runs(cell="new"), {"iops": 5})
    assert (found.rc, [one.verdict for one in found.lines], found.added) == (2, ["missing", "same"], ("none new (write)",))


@pytest.mark.parametrize("key", [key for key in regression.KEYS if key not in ("rw", "bs")])
def test_different_conditions_are_not_compared_unless_ignored(key):
    common = {"stack_sha256": "a", "workload_sha256": "a", "rwmixread": 50}
    usual = getattr(measurement(**common), key)
    other = (not usual) if isinstance(usual, bool) else usual + 1 if isinstance(usual, int) else "other"
    old, new = runs(**common), runs(0.5, **{**common, key: other})
    found = compared(old, new)
    assert found.rc == 2
    assert key.replace("_", " ") in found.lines[0].reason
    assert compared(old, new, ignore=[key]).rc == 1


def test_value_missing_in_an_old_campaign_is_no_difference():
    assert compared(runs(firmware=None), runs()).rc == 0


def test_omitted_differing_host_is_not_a_success():
    found = compared(runs() + runs(host="b"), runs() + runs(host="b", kernel="6.9"))
    assert found.rc == 2
    assert found.lines[0].left_out == ("b: kernel 6.1.0 / 6.9",)
    assert found.lines[0].verdict == "same"


@pytest.mark.parametrize(("old", "new", "who"), [(2e6, None, "candidate"), (None, 2e6, "baseline"), (None, None, "baseline and candidate")])
def test_host_without_a_value_on_one_side_is_not_left_out_silently(old, new, who):
    sides = [runs() + [dataclasses.replace(one, p99_ns=value) for one in runs(host="b")] for value in (old, new)]
    found = compared(*sides, {"p99": 10})
    assert (found.rc, found.lines[0].verdict) == (2, "same")
    assert found.lines[0].left_out == (f"b: no repeat of {who} has a value, or enough samples for one",)


def test_repeat_that_measured_0_is_not_left_out():
    stalled = [dataclasses.replace(one, iops=0.0) if one.repeat == 1 else one for one in runs(1.2)]
    found = compared(runs(), stalled, {"iops": 5})
    assert (found.rc, found.lines[0].verdict) == (2, "not_comparable")
    assert found.lines[0].reason == "node1: a repeat measured 0, of which there is no ratio"


def test_syncs_have_no_bandwidth_to_compare():
    both = runs() + runs(direction="sync", bw_bytes=None)
    found = compared(both, both, {"bandwidth": 5, "iops": 5})
    assert (found.rc, [(one.direction, one.metric) for one in found.lines]) == (0, [("sync", "iops"), ("write", "bandwidth"), ("write", "iops")])


def test_two_variants_of_one_campaign():
    old = runs(stack_sha256="a")
    new = [Measurement(**{**{name: getattr(one, name) for name in one.__slots__}, "variant": "writeback"}) for one in runs(2.0, stack_sha256="b")]
    found = compared(old + new, old + new, {"iops": 5}, variants=("none", "writeback"))
    assert (found.rc, [(one.variant, one.verdict) for one in found.lines]) == (0, [("writeback", "better")])
    with pytest.raises(BadInput, match="baseline has no variant 'x'"):
        compared(old, new, variants=("x", "writeback"))


def test_undecided_can_be_accepted():
    noisy = [measurement(repeat=place, iops=rate) for place, rate in enumerate((700, 1300, 900, 1100, 1000), 1)]
    found = compared(noisy, list(reversed(noisy)), {"iops": 5})
    assert (found.rc, verdicts(found)) == (2, {"iops": "undecided"})
    assert compared(noisy, noisy, {"iops": 5}, accept_undecided=True).rc == 0


def test_nothing_to_compare_is_not_a_success():
    assert compared([], runs()).rc == 2
    assert compared(runs(state="failed"), runs()).rc == 2
    assert compared(runs(), runs(), cells=["other*"]).rc == 2


@pytest.mark.parametrize("rules", [{"thresholds": {"speed": 5}}, {"thresholds": {"iops": 0}}, {"thresholds": {"iops": "x"}}, {"thresholds": {"iops": True}}])
def test_invalid_rules_are_rejected(rules):
    with pytest.raises(BadInput):
        regression.read_rules(**rules)
    with pytest.raises(BadInput, match="cannot be ignored"):
        regression.read_rules({}, ["host"])


def test_module_accepts_the_same_keys():
    assert list(regression.KEYS) == KEYS


def test_output_files_match_the_result():
    found = compared(runs(host=SCRIPT) + runs(cell="gone\x1b[31m"), runs(0.8, host=SCRIPT))
    suite = ElementTree.fromstring(regression.as_junit(found, "a & b"))
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors")} == {"name": "a & b", "tests": "4", "failures": "1", "errors": "2"}
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["iops"]
    message = json.loads(regression.to_json(found, {"baseline": "x"}))
    assert (message["rc"], message["baseline"], len(message["lines"])) == (1, "x", 4)
    text = regression.as_markdown(found, {"baseline": "x"})
    assert "| worse |" in text
    assert text.index("| worse |") < text.index("| missing |")


def test_files_have_the_absolute_values_of_both_sides():
    """Of each host the median of its repeats, of these the median."""
    hosts = {"a": 1.0, "b": 2.0, "c": 4.0}
    old = [one for host, factor in hosts.items() for one in runs(factor, host=host)]
    new = [one for host, factor in hosts.items() for one in runs(factor * 0.8, host=host, latency=0.5)]
    found = compared(old, new, {"iops": 5, "p99": 10})
    assert {one.metric: (one.baseline_value, one.candidate_value, one.unit) for one in found.lines} == {
        "iops": (2000.0, 1600.0, "IOPS"),
        "p99": (2e6, 1e6, "ns"),
    }
    written = json.loads(regression.to_json(found, {}))["lines"]
    assert [(one["baseline_value"], one["candidate_value"], one["unit"]) for one in written] == [(2000.0, 1600.0, "IOPS"), (2e6, 1e6, "ns")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in regression.as_markdown(found, {}).splitlines() if line.startswith("| ")]
    assert [dict(zip(rows[0], row))[name] for row in rows[2:] for name in ("metric", "baseline", "candidate")] == [
        "iops", "2,000 IOPS", "1,600 IOPS", "p99", "2 ms", "1 ms",
    ]  # fmt: skip
    suite = ElementTree.fromstring(regression.as_junit(found, "x"))
    said = {case.get("name"): "".join(case.itertext()) for case in suite}
    assert said == {"iops": "baseline 2,000 IOPS, candidate 1,600 IOPS", "p99": "baseline 2 ms, candidate 1 ms"}


def test_values_of_both_sides_are_those_of_the_compared_hosts():
    old, new = runs() + runs(9.0, host="b"), runs(2.0) + runs(9.0, host="b", kernel="6.9")
    [line] = compared(old, new, {"bandwidth": 5}).lines
    alone = compared(runs(), runs(2.0), {"bandwidth": 5}).lines[0]
    assert (line.hosts, line.unit, line.baseline_value, line.candidate_value) == (1, "bytes/s", alone.baseline_value, alone.candidate_value)


def test_values_without_a_comparison_are_of_all_hosts_of_a_side():
    missing, different = (compared(runs(), new, {"iops": 5}).lines[0] for new in ([], runs(0.5, kernel="6.9")))
    assert (missing.verdict, missing.baseline_value, missing.candidate_value) == ("missing", 1000.0, None)
    assert (different.verdict, different.baseline_value, different.candidate_value) == ("not_comparable", 1000.0, 500.0)
    assert regression.with_unit(missing, missing.candidate_value) == "-"
