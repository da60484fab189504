# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is required of a host or a drive, and what was found. Base units throughout: 1/s, bytes/s, ms, shares of 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass

PASS, FAIL, UNDECIDED, NOT_MEASURED = "pass", "fail", "undecided", "not measured"

#: The worst first.
STATES = (FAIL, NOT_MEASURED, UNDECIDED, PASS)

#: The kind of a requirement that a benchmark decides.
MEASURED = "measured"


@dataclass(frozen=True)
class Requirement:
    """One limit with its confidence, or one fact.

    :param name: unique in a list.
    :param kind: ``measured`` (a figure of a cell), or a fact: ``survives_power_failure``, ``survives_device_loss``, ``flush_proved``,
        ``hit_ratio``, ``dirty``, ``wear``, ``drive_cache``, ``link_speed``, ``drive_link_speed``, ``firmware``, ``sibling``.
    :param workload: the cell of a suite that is measured; ``None`` for a fact.
    :param metric: ``iops``, ``bandwidth``, ``mean``, ``p99``, ``p99.9``... (latency); ``None`` for a fact.
    :param direction: ``read``, ``write`` or ``sync``; ``None`` for a fact.
    :param limit: in base units; ``None`` for a fact that is yes or no.
    :param unit: as written: ``/s``, ``MB/s``, ``ms``, ``%``.
    :param at_least: the sense of the limit: at least, or at most.
    :param share: of the seconds of a measurement that must meet the limit; ``None``: the measurement as a whole.
    :param confidence: 0.95 unless written.
    :param source: where the limit is from, with its date.
    :param names: a fact that is a list of names, such as firmware that is not accepted.
    """

    name: str
    kind: str
    workload: str | None
    metric: str | None
    direction: str | None
    limit: float | None
    unit: str | None
    at_least: bool
    share: float | None
    confidence: float
    source: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What was found of one requirement.

    :param target: the device or file as the campaign names it; empty for the host.
    :param state: one of :data:`STATES`.
    :param value: the estimate, with ``low`` and ``high`` its interval; ``None`` for a fact that is yes or no, or that is not known.
    :param looks: repeats that were judged.
    :param reason: one sentence: figure, limit, confidence, and the cause where it is known.
    """

    host: str
    target: str
    requirement: Requirement
    state: str
    value: float | None
    low: float | None
    high: float | None
    looks: int
    reason: str
