# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the report says that a write-back cache is full, from cells of a few seconds, against the second in which long cells of it were.

usage: bursts.py CAMPAIGN     exits with 1 if one of them is more than 20 % away
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

sys.path[:0] = [os.environ.get("ANSIBLE_COLLECTIONS_PATH", "")]

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.causes import Observed, burst_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import read_compared
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables

_SAID = re.compile(r"is full after ([0-9.]+) (s|min|h)( or later)?")
_UNITS = {"s": 1, "min": 60, "h": 3600}
#: A cache that is as dirty as it becomes, and one that is full.
_FULL, _NEARLY = 0.97, 0.9


def filled(samples: list[tuple[float, float]], room: float) -> tuple[float, bool]:
    """The second in which a cache was full, and whether it was; otherwise the last second."""
    most = max(dirty for _second, dirty in samples)
    first = next(second for second, dirty in samples if dirty >= _FULL * most)
    return (first, True) if most >= _NEARLY * room else (samples[-1][0], False)


def main() -> int:
    campaign = Path(sys.argv[1])
    ingest(campaign)
    database = open_tables(campaign)
    rows = read_compared(database, "causes")
    observed = Observed(rows)
    wrong = 0
    for cell in sorted({one.cell for one in rows.measurements if one.variant == "long"}):
        samples = database.execute(
            "select second, dirty_bytes from cache_intervals where variant = 'long' and cell = ? and dirty_bytes is not null order by second", [cell]
        ).fetchall()
        sides = {side: {"node1": [one for one in rows.measurements if (one.variant, one.cell) == (side, cell)][:1]} for side in ("bare", "short")}
        seen = observed.repeats_of("node1", sides)
        bare, short = (seen.get(side, []) for side in ("bare", "short"))
        origin = bare[0].moved if bare else None
        said = burst_of(short, "the rate of the origin", written_back_from=observed.written_back_from(short), origin=origin)
        found = _SAID.search(said)
        if not samples:
            continue
        [cache] = rows.flows["node1", "long", cell, 1].caches
        second, full = filled(samples, (cache.size or 0) * type_of(cache.type or "").dirty_at_most)
        predicted = float(found.group(1)) * _UNITS[found.group(2)] if found else None
        if found and found.group(3):
            right = second >= 0.8 * predicted
        elif full:
            right = predicted is not None and abs(predicted / second - 1) <= 0.2
        else:
            right = "does not fill up" in said or (predicted is not None and predicted >= 0.8 * second)
        wrong += not right
        print(f"{'ok   ' if right else 'WRONG'} {cell}: {f'full at {second:.0f} s' if full else f'not full at {second:.0f} s'}; {said or 'no burst'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
