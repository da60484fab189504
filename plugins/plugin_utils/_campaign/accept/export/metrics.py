# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judgements as metrics, as those of a campaign (``_campaign/export/openmetrics.py``): no device or serial number is a label."""

from __future__ import annotations

import math
import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import STATES, Judgement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export.openmetrics import head, sample


def text(judgements: t.Iterable[Judgement], campaign: str) -> str:
    """The whole file: of each host and requirement how many devices are in each state, and the least margin of them."""
    counts: Counter[tuple[str, str, str]] = Counter()
    margins: dict[tuple[str, str], float] = {}
    for one in judgements:
        key = (plain(one.host), plain(one.requirement.name))
        counts[(*key, one.state)] += 1
        margin = _margin(one)
        if margin is not None:
            margins[key] = min(margins.get(key, math.inf), margin)
    labels = {key: {"campaign": plain(campaign), "host": key[0], "requirement": key[1]} for key in sorted({key[:2] for key in counts})}
    name = "cachefleet_accept_judgements"
    lines = [*head(name, "gauge", "", "Devices and files of a host, or the host itself, by the state of a requirement.")]
    for key, own in labels.items():
        for state in STATES:
            lines += sample(name, {**own, "state": state}, counts[(*key, state)])
    name = "cachefleet_accept_margin_ratio"
    lines += head(name, "gauge", "ratio", "The least figure of a host by its limit, of an upper limit the limit by the figure: the limit is met from 1 on.")
    for key, own in labels.items():
        lines += sample(name, own, margins.get(key))
    return "".join([*lines, "# EOF\n"])


def _margin(one: Judgement) -> float | None:
    value, limit = one.value, one.requirement.limit
    if value is None or limit is None or min(value, limit) <= 0 or not math.isfinite(value / limit):
        return None
    return value / limit if one.requirement.at_least else limit / value
