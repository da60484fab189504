# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that measure, in words: one line each, and a sum. Pure."""

from __future__ import annotations

import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.runner_status import RunnerStatus, Watched
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, estimate, figure, latency

#: The counters are those of the devices, below caches of the page: not what fio counts.
HEADER = ("HOST", "CELL", "NAME", "DEVICE IOPS", "LATENCY", "LEFT", "")

#: A host that was not polled for so long is shown with the age of what is known, in seconds.
_OLD = 120.0


def columns_of(one: Watched, now: float) -> tuple[str, ...]:
    """A host in the columns of :data:`HEADER`, at a time of the controller's clock."""
    status, left = one.status, one.left(now)
    if status is None:
        return (one.host, "", "", "", "", "", _remark(one, now))
    busy = status.state == "measuring"
    return (
        one.host,
        _number(status),
        _name(status),
        figure(status.iops) if busy and status.iops is not None else "",
        latency(status.latency_ms * 1e6) if busy and status.latency_ms is not None else "",
        "" if left is None or one.ended else estimate(left),
        _remark(one, now),
    )


def line_of(one: Watched, now: float) -> str:
    """A host as one line: ``db1: 3/12 randread-4k: device 12000 IOPS, 1.3 ms, about 5 min left``."""
    _host, number, name, iops, latency, left, remark = columns_of(one, now)
    facts = [f"device {iops} IOPS" if iops else "", latency, f"about {left} left" if left else "", remark]
    cell = " ".join(filter(None, (number, name)))
    return ": ".join(filter(None, (one.host, cell, ", ".join(filter(None, facts)))))


def mark_of(one: Watched) -> tuple[t.Any, ...]:
    """What makes a line worth printing again when it changes."""
    status = one.status
    return (one.note, one.ended) if status is None else (status.step, status.cell, status.repeat, status.state, one.note, one.ended)


def ordered(hosts: t.Sequence[Watched], now: float) -> list[Watched]:
    """Those with problems first: out of reach, failed; then those that take longest; the ended last."""

    def place(one: Watched) -> tuple[t.Any, ...]:
        trouble = bool(one.note) or (one.status is not None and (one.status.state == "failed" or one.status.failed > 0))
        return (one.ended and not trouble, not trouble, -(one.left(now) or 0.0), one.host)

    return sorted(hosts, key=place)


def sum_of(hosts: t.Sequence[Watched], now: float) -> str:
    """``200 hosts: 180 measuring, 20 finished; devices 1250000 IOPS; 812 cells done, 3 of them not ok; about 12 min left``."""
    states = Counter(one.note or (one.status.state if one.status else "starting") for one in hosts)
    parts = [f"{counted(len(hosts), 'host')}: " + ", ".join(f"{count} {state}" for state, count in states.most_common(6))]
    rates = [one.status.iops for one in hosts if one.status and one.status.state == "measuring" and one.status.iops is not None]
    if rates:
        parts.append(f"devices {figure(sum(rates))} IOPS")
    done, failed = (sum(getattr(one.status, name) for one in hosts if one.status) for name in ("done", "failed"))
    parts.append(f"{counted(done, 'cell')} done" + (f", {failed} of them not ok" if failed else ""))
    left = [seconds for one in hosts if not one.ended and (seconds := one.left(now)) is not None]
    if left:
        parts.append(f"about {estimate(max(left))} left")
    return "; ".join(parts)


def _number(status: RunnerStatus) -> str:
    return f"{min(status.step + 1, status.steps)}/{status.steps}" if status.steps else ""


def _name(status: RunnerStatus) -> str:
    if not status.cell or status.state not in ("measuring", "pausing"):
        return ""
    return plain(status.cell, 48) + (f" #{status.repeat}" if status.repeat and status.repeat > 1 else "")


def _remark(one: Watched, now: float) -> str:
    words = [one.note]
    if one.status is not None:
        if one.status.state != "measuring":
            words.append(one.status.state)
        if one.status.failed:
            words.append(f"{one.status.failed} not ok")
        if one.status.message:
            words.append(plain(one.status.message, 80))
    if not one.ended and now - one.seen > _OLD:
        words.append(f"seen {estimate(now - one.seen)} ago")
    return ", ".join(filter(None, words))
