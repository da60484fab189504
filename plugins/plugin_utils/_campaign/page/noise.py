# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much repeats vary, for each line of the table of all cells."""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import backing_models, key_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import NOISE_GATE, pooled_noise
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import share

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: Backing device, cell, direction and variant.
LineKey = t.Tuple[str, str, str, str]


def noise_of(points: t.Sequence[Point]) -> dict[LineKey, float]:
    """Standard deviation by mean of the IOPS of repeats, of several hosts the median; nothing of what was measured once."""
    models = backing_models(points)
    groups: dict[LineKey, list[t.Any]] = {}
    for one in points:
        rates = [run.iops for run in one.runs if run.iops is not None]
        if len(rates) > 1 and one.direction != "sync" and not is_probe(one.cell):
            groups.setdefault((models[key_of(one)], one.cell, one.direction, one.variant), []).append(rates)
    pooled = {key: pooled_noise(values) for key, values in groups.items()}
    return {key: noise for key, noise in pooled.items() if noise is not None}


def is_noisy(noise: float | None) -> bool:
    return noise is not None and noise > NOISE_GATE


def noise_sentence(a: Analysis, noises: t.Mapping[LineKey, float]) -> str:
    """Over all cells."""
    if not noises:
        return "Noise is not known: nothing was measured twice."
    (_model, cell, _direction, variant), most = max(noises.items(), key=lambda item: item[1])
    noisy = sum(is_noisy(noise) for noise in noises.values())
    where = f"{cell} in {variant}" if len(a.variants) > 1 else cell
    return (
        f"Noise is the standard deviation of the repeats by their mean: {share(statistics.median(noises.values()), 1)} in the median, "
        f"at most {share(most, 1)} ({where}); "
        f"{noisy or 'none'} of {len(noises)} values {'is' if noisy == 1 else 'are'} noisy, with more than {share(NOISE_GATE)}."
    )
