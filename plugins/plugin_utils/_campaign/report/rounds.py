# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of a precondition as the runner of a host reported them (``_fio/runner/rounds.py``). Every value is checked: a host may say anything."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError, natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import parse_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, figure, latency, share, size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows

#: The runner measures no more.
_MOST_ROUNDS = 999


@dataclass(frozen=True)
class RoundsRun:
    """The rounds of one cell on one host.

    :param what: ``iops``, ``bandwidth`` or ``latency`` of the direction ``track``; ``values`` are in 1/s, bytes per second or ns.
    :param first: number of the first round of the window, from 1; ``None`` where no window was reached.
    :param window: rounds of the window.
    :param excursion: largest less smallest of the window by its average, ``slope`` of its fitted line likewise, and the limits of both.
    """

    host: str
    variant: str
    cell: str
    repeat: int
    what: str
    track: str
    values: tuple[float, ...]
    steady: bool
    first: int | None
    window: int
    average: float | None
    excursion: float | None
    slope: float | None
    excursion_limit: float | None
    slope_limit: float | None

    @property
    def sentence(self) -> str:
        """What was found, with the numbers of the window."""
        rounds = counted(len(self.values), "round")
        if self.first is None or self.average is None:
            return f"not steady: {rounds}, fewer than a window of {self.window}"
        last = self.first + self.window - 1
        average = {"latency": latency(self.average), "bandwidth": f"{size(self.average)}/s"}.get(self.what, f"{figure(self.average)} IOPS")
        measures = [
            f"{label} {share(value, 1)} (at most {share(limit)})"
            for label, value, limit in (("range", self.excursion, self.excursion_limit), ("slope", self.slope, self.slope_limit))
            if value is not None and limit is not None
        ]
        state = "steady" if self.steady else "not steady"
        return f"{state} after {rounds}: {', '.join([f'average of rounds {self.first} to {last} {average}', *measures])}"


def rounds_of(rows: Rows) -> list[RoundsRun]:
    """Every cell that was measured in rounds."""
    found = {}
    for one in rows.measurements:
        if one.rounds:
            try:
                run = run_of(one.host, one.variant, one.cell, one.repeat, mapping(parse_json(one.rounds)))
            except ResultsError:
                # Tables may have been copied from elsewhere.
                continue
            if run is not None:
                found[one.host, one.variant, one.cell, one.repeat] = run
    order = {name: place for place, name in enumerate(rows.variants)}
    return sorted(found.values(), key=lambda run: (natural(run.cell), order[run.variant], run.host, run.repeat))


def run_of(host: str, variant: str, cell: str, repeat: int, recorded: t.Mapping[str, t.Any]) -> RoundsRun | None:
    """The rounds of a cell as its host reported them; ``None`` if that is not what it should be, or another cell of the same rounds decides."""
    raw = recorded.get("values")
    # Of several cells in the same rounds the one that decides is described.
    if recorded.get("decided_by") not in (None, cell):
        return None
    values = [number(value) for value in raw[:_MOST_ROUNDS]] if isinstance(raw, list) else []
    if not values or any(value is None for value in values) or not isinstance(recorded.get("steady"), bool):
        return None
    limits = mapping(recorded.get("limits"))
    window, first = _whole(limits.get("window") or recorded.get("window")), _whole(recorded.get("first_of_window"))
    has_window = window is not None and first is not None and first >= 1 and first + window - 1 == len(values)
    what = recorded.get("what") if recorded.get("what") in ("iops", "bandwidth", "latency") else "iops"
    return RoundsRun(
        host=host,
        variant=variant,
        cell=cell,
        repeat=repeat,
        what=str(what),
        track=plain(recorded.get("track"), 8),
        values=tuple(value for value in values if value is not None),
        steady=recorded["steady"],
        first=first if has_window else None,
        window=window or 0,
        average=number(recorded.get("average")),
        excursion=number(recorded.get("excursion")),
        slope=_signed(recorded.get("slope")),
        excursion_limit=number(limits.get("range")),
        slope_limit=number(limits.get("slope")),
    )


def _whole(value: t.Any) -> int | None:
    found = number(value)
    return int(found) if found is not None and found == int(found) and found <= _MOST_ROUNDS else None


def _signed(value: t.Any) -> float | None:
    """A slope may fall."""
    found = number(abs(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return None if found is None else -found if value < 0 else found
