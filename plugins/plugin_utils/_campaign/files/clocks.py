# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far the clock of a host is from the controller's, from questions and answers over a connection. Pure, but for the shell text.

The host reports its clock. That moment lies between the request and the response on the controller, so every exchange bounds
the difference from both sides, and the bounds of several exchanges hold together (F. Cristian, Probabilistic clock synchronization,
1989). A connection takes far longer to begin a command than to end it, which would spoil the middle of the two bounds; so the host
also reports when it began the command, according to its kernel.
"""

from __future__ import annotations

import re
import shlex
import typing as t
from dataclasses import dataclass

#: Hundredths of a second: the unit of starttime in proc_pid_stat(5) on every Linux that is supported (USER_HZ).
_TICKS = 100.0

#: The resolution of ``/proc/uptime`` and of starttime together, in seconds.
_GRAIN = 0.02

_ANSWER = re.compile(r"^([0-9]{9,11})\.([0-9]{1,9}|%N|N)$")
_START = re.compile(r"^CLOCK ([0-9.]+) ([0-9]+)$")

#: The command for a host. Its last action is to read the clock. Field 22 is counted behind the name, which may hold blanks.
_SCRIPT = (
    'read -r s < /proc/$$/stat; read -r u x < /proc/uptime; s=${s##*) }; set -- $s; shift 19 2>/dev/null; printf "CLOCK %s %s\\n" "$u" "$1"; exec date +%s.%N'
)


def question() -> str:
    """The command that a host answers. It needs no rights."""
    return f"exec sh -c {shlex.quote(_SCRIPT)}"


@dataclass(frozen=True)
class Bounds:
    """The difference host clock - controller clock lies between these two, in seconds."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """How far the middle can be from the truth."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Clock:
    """What is taken for the difference host clock - controller clock, and how wrong it can be, in seconds."""

    offset: float
    error: float

    def to_dict(self) -> dict[str, float]:
        """Plain data, as ``release-<segment>.json`` has it."""
        return {"offset": round(self.offset, 6), "error": round(self.error, 6)}


def read_answer(text: str, sent: float, answered: float) -> Bounds | None:
    """The bounds that one exchange gives; ``None`` if the answer is none.

    :param sent: when the question left, and ``answered`` when the answer was there, by the controller's clock.
    """
    began, looked, coarse = None, None, False
    for line in text.splitlines():
        start = _START.match(line.strip())
        clock = _ANSWER.match(line.strip())
        if start and looked is None:
            began = _number(start.group(1)), _number(start.group(2))
        elif clock:
            # Without %N, as in BusyBox, the time is cut off to a whole second.
            coarse = not clock.group(2).isdigit()
            looked = float(clock.group(1)) if coarse else float(f"{clock.group(1)}.{clock.group(2)}")
    if looked is None or answered < sent:
        return None
    latest = looked + 1.0 if coarse else looked
    earliest = latest
    if began is not None and None not in began and not coarse:
        # The command began so long before the host read its uptime, and that was just before its clock.
        age = t.cast("float", began[0]) - t.cast("float", began[1]) / _TICKS
        if 0 <= age <= answered - sent + 0.05:
            earliest = looked - age + _GRAIN
    high = min(latest, earliest) - sent
    low = looked - answered
    return Bounds(low, high) if low <= high else Bounds(low, latest - sent)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def together(exchanges: t.Sequence[Bounds]) -> Bounds | None:
    """What holds by all exchanges; if they contradict each other, for a clock was set meanwhile, the narrowest of the later half."""
    if not exchanges:
        return None
    low, high = max(one.low for one in exchanges), min(one.high for one in exchanges)
    if low <= high:
        return Bounds(low, high)
    return min(exchanges[len(exchanges) // 2 :], key=lambda one: one.high - one.low)


def decide(bounds: Bounds, *, synchronised: bool) -> Clock:
    """The difference to use.

    :param synchronised: the clocks are reported to be kept together by something better than this measurement.
    """
    if synchronised and bounds.low <= 0.0 <= bounds.high:
        return Clock(0.0, max(-bounds.low, bounds.high))
    return Clock(bounds.middle, bounds.error)
