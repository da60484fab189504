# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several power cuts prove together: exact binomial bounds (Clopper and Pearson, 1934)."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.verifier import KEPT, LOST_WRITES

CONFIDENCE = 0.95


def upper_bound(losses: int, cuts: int, confidence: float = CONFIDENCE) -> float:
    """The largest share of cuts that lose data that is still compatible with what was seen, one-sided."""
    if losses >= cuts:
        return 1.0
    low, high = losses / cuts, 1.0
    for _step in range(60):
        middle = (low + high) / 2
        seen = math.fsum(math.comb(cuts, count) * middle**count * (1 - middle) ** (cuts - count) for count in range(losses + 1))
        low, high = (middle, high) if seen > 1 - confidence else (low, middle)
    return high


def summary(verdicts: t.Sequence[str]) -> dict[str, t.Any]:
    """The verdict over all cuts of one configuration.

    :param verdicts: of :class:`verifier.Verification`, one for each cut.
    """
    counted = [verdict for verdict in verdicts if verdict in (KEPT, LOST_WRITES)]
    losses = counted.count(LOST_WRITES)
    void = len(verdicts) - len(counted)
    if not counted:
        sentence = "No cut proves anything."
        verdict = "unknown"
    elif losses:
        sentence = f"{losses} of {len(counted)} cuts lost acknowledged writes."
        verdict = "at_risk"
    else:
        # Rounded up: the sentence must stay true.
        share = math.ceil(1000 * upper_bound(0, len(counted))) / 10
        sentence = f"0 of {len(counted)} cuts lost anything: with 95 % confidence fewer than {share:g} % of cuts do."
        verdict = "durable"
    if void:
        sentence += f" {void} more prove nothing."
    return {"verdict": verdict, "cuts": len(counted), "losses": losses, "void": void, "sentence": sentence}
