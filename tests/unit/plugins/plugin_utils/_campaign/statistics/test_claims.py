# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What repeats can show, held against comparisons of values that just can, and just cannot."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy", reason="needs numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.claims import claim_of, fewest_repeats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import compare


def with_contradicting_pairs(repeats, contradicting):
    """A baseline around 100 and a candidate around 200, of which some pairs have the other direction."""
    baseline = [100.0 + number for number in range(repeats)]
    candidate = [200.0 + number for number in range(repeats)]
    # The last of the baseline exceeds as many of the candidate as pairs should contradict; a second one takes what is left.
    for place in (-1, -2):
        here = min(contradicting, repeats)
        contradicting -= here
        if here:
            baseline[place] = candidate[here - 1] + 0.5 + 0.1 * place
    return baseline, candidate


@pytest.mark.parametrize("repeats", range(4, 9))
def test_claim_is_what_a_comparison_shows(repeats):
    claim = claim_of(repeats)
    for contradicting, verdict in ((claim.pairs - claim.agreeing, "better"), (claim.pairs - claim.agreeing + 1, "undecided")):
        baseline, candidate = with_contradicting_pairs(repeats, contradicting)
        assert sum(other < one for one in baseline for other in candidate) == contradicting
        found = compare(baseline, candidate)
        assert found.verdict == verdict
        assert found.interval.confidence == pytest.approx(claim.confidence)


def test_fewest_repeats_are_those_of_a_comparison():
    fewest = fewest_repeats()
    assert claim_of(fewest - 1) is None
    assert compare([100.0] * (fewest - 1), [900.0] * (fewest - 1)).verdict == "not_enough_repeats"
    assert compare([100.0 + one for one in range(fewest)], [900.0 + one for one in range(fewest)]).verdict == "better"
    assert fewest_repeats(0.999) > fewest
