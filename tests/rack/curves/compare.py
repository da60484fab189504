#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hits that the kernel counted for real caches against those that the trace of the same requests predicts.

bcache counts hits of reads only; dm-cache those of reads and writes, a request on several blocks once for each; dm-writecache blocks that were read,
and blocks of writes that went past it.

usage: compare.py FOLDER     of traces; exits with 1 if more than 2 of 36, or of fewer in proportion, are outside of the printed interval
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path[:0] = [os.environ.get("ANSIBLE_COLLECTIONS_PATH", "")]

from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import Kind, curves
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import read_trace

KINDS = {
    "bcache": Kind("bcache", "writeback"),
    "dm_cache": Kind("dm_cache", "writethrough", block=32 * 1024),
    "writecache": Kind("writecache", "writeback"),
}
MIB = 1 << 20


def counted(lines: list[str]) -> dict[str, tuple[float, str]]:
    """Share of hits by type, and of what: reads or all."""
    found: dict[str, tuple[float, str]] = {}
    bcache: dict[str, int] = {}
    for line in lines:
        words = line.replace(":", " ").split()
        if words[0] == "hot":
            # Source: admin-guide/device-mapper/cache.rst, Status.
            place = words.index("cache") + 4
            hits, misses = (int(words[place]) + int(words[place + 2]), int(words[place + 1]) + int(words[place + 3]))
            found["dm_cache"] = (hits / (hits + misses), "hits")
        elif words[0] == "writes":
            # Source: admin-guide/device-mapper/writecache.rst, Status.
            _errors, _total, _free, _back, reads, read_hits, writes, _hits, _committed, around = map(int, words[4:14])
            found["writecache"] = ((read_hits + writes - around) / (reads + writes), "hits")
        elif words[0].startswith("cache_"):
            bcache[words[0]] = int(words[1])
    found["bcache"] = (bcache["cache_hits"] / max(sum(bcache.values()), 1), "read_hits")
    return found


def main() -> int:
    folder = Path(sys.argv[1])
    right = narrow = closer = every = 0
    for path in sorted(folder.glob("*/counted.json")):
        here = json.loads(path.read_text())
        trace = read_trace(next(one for one in path.parent.iterdir() if one.is_dir()))
        size = here["mebibytes"] * MIB
        for index, (name, (share, what)) in enumerate(sorted(counted(here["lines"]).items())):
            point, plain = curves(trace, [size], [KINDS[name], Kind("lru", KINDS[name].mode)], [index])
            predicted, lru = getattr(point, what), getattr(plain, what)
            low, high = predicted - (point.hits - point.low), predicted + (point.high - point.hits)
            is_right, is_narrow = low <= share <= high, high - low <= 0.1
            every, right, narrow, closer = every + 1, right + is_right, narrow + is_narrow, closer + (abs(predicted - share) < abs(lru - share))
            print(
                f"{'ok   ' if is_right else 'WRONG'} {here['load']:6} {here['mebibytes']:4} MiB {name:10} {what:9} counted {share:6.1%},"
                f" predicted {predicted:6.1%} ({low:6.1%} to {high:6.1%}), plain LRU {lru:6.1%}, {trace.lost} lost"
            )
    print(f"{right} of {every} inside of the interval, {narrow} with at most 10 points, {closer} closer than a plain LRU")
    return int(right < every * 34 / 36)


if __name__ == "__main__":
    sys.exit(main())
