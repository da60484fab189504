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

from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.bcache import BcacheSettings
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import IDEAL, Kind, curves
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import load_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Reuse
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, read_trace
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.types import MODELS

KINDS = {
    "bcache": Kind("bcache", "writeback", settings=BcacheSettings(bucket=64 * 1024)),
    "dm_cache": Kind("dm_cache", "writethrough", block=32 * 1024),
    "writecache": Kind("writecache", "writeback"),
}
MIB = 1 << 20


def numbers(lines: list[str]) -> dict[str, tuple[int, int]]:
    """Hits and all requests or blocks, by type."""
    found: dict[str, tuple[int, int]] = {}
    bcache: dict[str, int] = {}
    for line in lines:
        words = line.replace(":", " ").split()
        if words[0] == "hot":
            # Source: admin-guide/device-mapper/cache.rst, Status.
            read_hits, read_misses, write_hits, write_misses = map(int, words[words.index("cache") + 5 :][:4])
            found["dm_cache"] = read_hits + write_hits, read_hits + read_misses + write_hits + write_misses
        elif words[0] == "writes":
            # Source: admin-guide/device-mapper/writecache.rst, Status.
            _errors, _total, _free, _back, reads, read_hits, writes, _hits, _committed, around = map(int, words[4:14])
            found["writecache"] = read_hits + writes - around, reads + writes
        elif words[0].startswith("cache_"):
            bcache[words[0]] = int(words[1])
    # What bypasses the cache is served by it all the same if it is there.
    found["bcache"] = bcache["cache_hits"] + bcache["cache_bypass_hits"], sum(bcache.values())
    return found


def counted(before: list[str], lines: list[str]) -> dict[str, float]:
    """Share of hits by type, of what was recorded: the counters began when the cache was attached."""
    first, last = numbers(before) if before else {}, numbers(lines)
    shares = {}
    for name, (hits, every) in last.items():
        old_hits, old = first.get(name, (0, 0))
        shares[name] = (hits - old_hits) / max(every - old, 1)
    return shares


def in_blocks(trace: Trace, index: int, kind: Kind, size: int) -> float:
    """Hits of blocks, as device-mapper counts them: a request is one on each of its blocks."""
    load = load_of(trace, kind.block, [index], 0.0)
    if kind.type == IDEAL:
        return float(Reuse(load).outcome(size, kind.mode).served.mean())
    model = MODELS[kind.type]
    return float(model.simulate(load, size, kind.mode, model.settings()).served.mean())


def main() -> int:
    folder = Path(sys.argv[1])
    right = narrow = closer = every = 0
    for path in sorted(folder.glob("*/counted.json")):
        here = json.loads(path.read_text())
        trace = read_trace(next(one for one in path.parent.iterdir() if one.is_dir()))
        size = here["mebibytes"] * MIB
        for index, (name, share) in enumerate(sorted(counted(here.get("before", []), here["lines"]).items())):
            what = "read_hits" if name == "bcache" else "hits"
            point, plain = curves(trace, [size], [KINDS[name], Kind(IDEAL, KINDS[name].mode)], [index])
            predicted, lru = point.read_hits, plain.read_hits
            if name != "bcache":
                predicted, lru = (in_blocks(trace, index, one, size) for one in (KINDS[name], Kind(IDEAL, KINDS[name].mode, KINDS[name].block)))
            low, high = predicted - (point.hits - point.low), predicted + (point.high - point.hits)
            is_right, is_narrow = low <= share <= high, high - low <= 0.1 + 1e-9
            every, right, narrow, closer = every + 1, right + is_right, narrow + is_narrow, closer + (abs(predicted - share) < abs(lru - share))
            print(
                f"{'ok   ' if is_right else 'WRONG'} {here['load']:6} {here['mebibytes']:4} MiB {name:10} {what:9} counted {share:6.1%},"
                f" predicted {predicted:6.1%} ({low:6.1%} to {high:6.1%}), plain LRU {lru:6.1%}, {trace.lost} lost"
            )
    print(f"{right} of {every} inside of the interval, {narrow} with at most 10 points, {closer} closer than a plain LRU")
    return int(right < every * 34 / 36)


if __name__ == "__main__":
    sys.exit(main())
