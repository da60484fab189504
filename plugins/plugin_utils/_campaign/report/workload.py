# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answer for one workload as data: one result for each variant."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import is_noisy

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import Question
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import HostClass
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import Safety
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import Pairing
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison


class Limit(t.NamedTuple):
    """What limits a cell: a rule of ``causes.LIMITS``, or ``not known``. :param text: with its figures; empty where nothing is known."""

    name: str
    text: str

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


@dataclass(frozen=True)
class Result:
    """One variant in one workload.

    :param value: median over hosts of the medians of their repeats, in the unit of the column of the metric.
    :param extremes: the least and the greatest of all repeats, in the same unit.
    :param repeats: fewest of a host.
    :param noise: standard deviation by mean of the repeats, of several hosts the median; ``None`` where nothing was repeated.
    :param pairing: with the baseline; ``None`` for the baseline itself.
    :param acknowledged: what the workload can rely on after a power failure: ``keeps``, ``loses`` or ``unknown``.
    :param is_allowed: whether it keeps whatever the baseline keeps.
    :param without_result: of the measurements that were planned, how many have no result.
    :param limit: ``None`` where no flows were recorded.
    """

    variant: str
    hosts: tuple[str, ...]
    value: float | None
    repeats: int
    noise: float | None
    pairing: Pairing | None
    safety: Safety
    acknowledged: str
    is_allowed: bool
    without_result: int = 0
    extremes: tuple[float, float] | None = None
    limit: Limit | None = None

    @property
    def comparison(self) -> Comparison | None:
        """``None`` for the baseline, and where ``reason`` is why there is none."""
        return None if self.pairing is None else self.pairing.comparison

    @property
    def reason(self) -> str:
        return "" if self.pairing is None else self.pairing.reason

    @property
    def same_hosts(self) -> bool:
        """Whether it was compared on hosts that measured both."""
        return self.pairing is None or self.pairing.same_hosts

    @property
    def verdict(self) -> str:
        return "baseline" if self.pairing is None else self.pairing.verdict

    @property
    def is_noisy(self) -> bool:
        return is_noisy(self.noise)

    @property
    def ratio(self) -> float | None:
        """Of the baseline."""
        return None if self.pairing is None else self.pairing.ratio


@dataclass(frozen=True)
class WorkloadAnswer:
    """The answer for one workload on one class of hosts.

    :param first: a measurement of it, for its job.
    :param results: the baseline first, if it was measured, then the others in their order.
    :param recommended: the variant that is shown to be better; ``None`` where none is.
    :param rival: another one that is shown to be better, and not to be slower than the recommended one.
    :param because: why the recommended one is better, as a clause; empty where the flows show no reason, ``None`` without flows.
    :param burst: how long its rate lasts, as a sentence; empty where nothing fills up.
    """

    host_class: HostClass
    question: Question
    first: Measurement
    baseline: str
    results: tuple[Result, ...]
    recommended: str | None
    rival: str | None
    because: str | None = None
    burst: str = ""

    def result(self, variant: str) -> Result | None:
        return next((one for one in self.results if one.variant == variant), None)

    @property
    def has_risky_gain(self) -> bool:
        """Whether a variant is shown to be better that can lose what the baseline keeps."""
        return any(one.verdict == "better" and not one.is_allowed for one in self.results)
