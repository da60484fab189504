# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of a sweep on disk, and the report of a campaign that was a sweep."""

from __future__ import annotations

import pytest

for library in ("numpy", "scipy", "duckdb", "ruptures"):
    pytest.importorskip(library, reason="results need the libraries of requirements.txt")

from ansible_collections.cachefleet.storage.plugins.action.sweep import ActionModule
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Options
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import progress
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import Design
from ansible_collections.cachefleet.storage.tests.unit.support import synthetic_campaign


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """Five repeats of one cell on one host, of which write-back is 1.4 times as fast."""
    monkeypatch.setattr(synthetic_campaign, "CELLS", (("randwrite", "4k", 16),))
    return synthetic_campaign.write_campaign(tmp_path / "night", 1, cells=10, seconds=12)


def sweep_of(campaign, **changes):
    variables = {name: {} for name in synthetic_campaign.VARIANTS}
    states.save(campaign, states.HostState("host0000", "", "", {}, {}, variables, **changes))


def test_results_on_disk_decide(campaign):
    [found] = progress.read_progress(campaign, Design(4, 12, 1), 5, "writethrough")
    assert found.closed["writethrough"].reason == "shown to be slower than writeback"
    assert found.open == ()


def test_the_report_of_a_sweep_compares_as_the_sweep_did(campaign):
    sweep_of(campaign, repeats=4, most_repeats=12)
    answer = write.analysed(campaign, Options(), fresh=True).answer
    assert answer.workloads[0].results[1].comparison.interval.confidence == pytest.approx(1 - 2 * 2 / 252)
    assert answer.levels.keys() == set(range(4, 13))


@pytest.mark.parametrize("most", [4, 12])
def test_the_report_compares_with_the_baseline_of_the_sweep_whichever_was_measured_first(campaign, most):
    assert write.analysed(campaign, Options(), fresh=True).answer.baseline == "writethrough"
    sweep_of(campaign, repeats=4, most_repeats=most, order=["writeback/1", "writethrough/1"])
    assert write.analysed(campaign, Options()).answer.baseline == "writeback"
    assert write.analysed(campaign, Options(baseline="writethrough")).answer.baseline == "writethrough"


def test_nothing_is_recommended_if_the_baseline_was_not_measured(campaign):
    sweep_of(campaign, repeats=4, most_repeats=12, order=["baseline/1", "writeback/1", "writethrough/1"])
    found = ActionModule._recommend(campaign, states.load_all(campaign)[0], "", "", [])
    assert found == ([], "Nothing is recommended: baseline was not measured, so nothing is compared with it.")


def test_a_fixed_sweep_is_compared_like_a_benchmark(campaign):
    sweep_of(campaign, repeats=4, most_repeats=4)
    assert progress.with_design(Options(), campaign, ()).levels is None


@pytest.mark.parametrize(("is_sweep", "hint"), [(True, "-e sweep_repeats=4"), (False, "-e fio_benchmark_repeats=4")])
def test_the_hint_names_the_variable_of_the_play(tmp_path, monkeypatch, is_sweep, hint):
    monkeypatch.setattr(synthetic_campaign, "CELLS", (("randwrite", "4k", 16),))
    campaign = synthetic_campaign.write_campaign(tmp_path / "night", 1, cells=4, seconds=12)
    if is_sweep:
        sweep_of(campaign, repeats=2, most_repeats=2)
    assert hint in " ".join(write.analysed(campaign, Options(), fresh=True).answer.sentences)


def test_a_damaged_state_does_not_prevent_a_report(campaign):
    sweep_of(campaign)
    states.file_of(campaign, "host0000").write_text("{")
    assert progress.with_design(Options(), campaign, ()) == Options()
