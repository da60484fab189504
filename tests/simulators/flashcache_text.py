# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What flashcache prints about a cache, as ``dmsetup table`` and ``status`` and the files below /proc show it.

The form is that of captures of a flashcache that ran on Linux 6.1, in the three modes; what was not captured (``WRITE_CACHE``,
a disk associativity, the histogram of latencies) follows the formats in flashcache_conf.c. Of caches that are made here a
counter that nothing in this simulation changes is 0.
"""

from __future__ import annotations

import typing as t

State = t.Dict[str, t.Any]

BACK, THROUGH, AROUND = 1, 2, 3
MODE_WORDS = {BACK: "WRITE_BACK", THROUGH: "WRITE_THROUGH", AROUND: "WRITE_AROUND"}


def table(cache: State, disk_sectors: int, histogram: t.Mapping[int, int], skip_sequential: int) -> str:
    """``dmsetup table`` of one cache, without its name."""
    back = cache["mode"] == BACK
    mode = "WRITE_CACHE" if cache["write_only"] else MODE_WORDS[cache["mode"]]
    capacity = f"\tcapacity({cache['blocks'] * cache['block'] >> 11}M), associativity({cache['associativity']}), data block size({cache['block'] >> 1}K)"
    lines = [
        f"0 {disk_sectors} flashcache conf:",
        f"\tssd dev ({cache['ssd']}), disk dev ({cache['disk']}) cache mode({mode})",
        capacity + (f" metadata block size({cache['metadata'] * 512}b)" if back else ""),
        f"\tdisk assoc({cache['disk_associativity'] >> 1}K)",
        f"\tskip sequential thresh({skip_sequential}K)",
        f"\ttotal blocks({cache['blocks']}), cached blocks({cache['cached']}), cache percent({_percent(cache['cached'], cache['blocks'])})",
    ]
    if back:
        lines.append(f"\tdirty blocks({cache['dirty']}), dirty percent({_percent(cache['dirty'], cache['blocks'])})")
    lines.append(f"\tnr_queued({cache.get('queued', 0)})")
    lines.append("Size Hist: " + "".join(f"{size}:{count} " for size, count in sorted(histogram.items()) if count))
    return "\n".join(lines) + "\n"


def status(cache: State, disk_sectors: int, *, latencies: bool) -> str:
    """``dmsetup status`` of one cache, without its name."""
    n, e = _Counters(cache["counters"]), _Counters(cache["errors"])
    lines = [f"0 {disk_sectors} flashcache stats: ", f"\treads({n.reads}), writes({n.writes})"]
    lines.append(f"\tread hits({n.read_hits}), read hit percent({_percent(n.read_hits, n.reads)})")
    if cache["mode"] != AROUND:
        lines.append(f"\twrite hits({n.write_hits}) write hit percent({_percent(n.write_hits, n.writes)})")
    if cache["mode"] == BACK:
        lines.append(f"\tdirty write hits({n.dirty_write_hits}) dirty write hit percent({_percent(n.dirty_write_hits, n.writes)})")
    lines.append(f"\treplacement({n.replacement}), write replacement({n.write_replacement})")
    if cache["mode"] == AROUND:
        lines.append(f"\tinvalidates({n.read_invalidates})")
    else:
        lines.append(f"\twrite invalidates({n.write_invalidates}), read invalidates({n.read_invalidates})")
    lines.append(f"\tpending enqueues({n.pending_enqueues}), pending inval({n.pending_inval})")
    if cache["mode"] == BACK:
        lines += [
            f"\tmetadata dirties({n.metadata_dirties}), metadata cleans({n.metadata_cleans})",
            f"\tmetadata batch({n.metadata_batch}) metadata ssd writes({n.metadata_ssd_writes})",
            f"\tcleanings({n.cleanings}) fallow cleanings({n.fallow_cleanings})",
            f"\tno room({n.no_room}) front merge({n.front_merge}) back merge({n.back_merge})",
            f"\tforce_clean_block({n.force_clean_block})",
        ]
    else:
        lines.append(f"\tno room({n.no_room})")
    hot = cache["blocks"] // 2
    lines += [
        f"\tdisk reads({n.disk_reads}), disk writes({n.disk_writes}) ssd reads({n.ssd_reads}) ssd writes({n.ssd_writes})",
        f"\tuncached reads({n.uncached_reads}), uncached writes({n.uncached_writes}), uncached IO requeue({n.uncached_IO_requeue})",
        f"\tdisk read errors({e.disk_read_errors}), disk write errors({e.disk_write_errors})"
        f" ssd read errors({e.ssd_read_errors}) ssd write errors({e.ssd_write_errors})",
        f"\tuncached sequential reads({n.uncached_sequential_reads}), uncached sequential writes({n.uncached_sequential_writes})",
        f"\tpid_adds({n.pid_adds}), pid_dels({n.pid_dels}), pid_drops({n.pid_drops}) pid_expiry({n.pid_expiry})",
        f"\tlru hot blocks({hot}), lru warm blocks({cache['blocks'] - hot})",
        f"\tlru promotions({n.lru_promotions}), lru demotions({n.lru_demotions})",
    ]
    if latencies:
        lines.append("IO Latency Histogram: ")
        lines += [f"< {limit}\tusecs : 0" for limit in range(250, 10001, 250)]
        lines.append("> 10\tmsecs : 0")
    return "\n".join(lines) + "\n"


def statistics(cache: State) -> str:
    """``flashcache_stats``."""
    n = _Counters(cache["counters"])
    names = ["read_hits", "read_hit_percent"]
    if cache["mode"] != AROUND:
        names += ["write_hits", "write_hit_percent"]
    if cache["mode"] == BACK:
        names += ["dirty_write_hits", "dirty_write_hit_percent"]
    names += ["replacement", "read_invalidates"] if cache["mode"] == AROUND else ["replacement", "write_replacement", "write_invalidates", "read_invalidates"]
    names += ["pending_enqueues", "pending_inval"]
    if cache["mode"] == BACK:
        names += ["metadata_dirties", "metadata_cleans", "metadata_batch", "metadata_ssd_writes", "cleanings", "fallow_cleanings"]
    names += ["no_room", *(["front_merge", "back_merge"] if cache["mode"] == BACK else []), "disk_reads", "disk_writes", "ssd_reads", "ssd_writes"]
    names += ["uncached_reads", "uncached_writes", "uncached_IO_requeue", "uncached_sequential_reads", "uncached_sequential_writes"]
    names += ["pid_adds", "pid_dels", "pid_drops", "pid_expiry"]
    percents = {
        "read_hit_percent": _percent(n.read_hits, n.reads),
        "write_hit_percent": _percent(n.write_hits, n.writes),
        "dirty_write_hit_percent": _percent(n.dirty_write_hits, n.writes),
    }
    return f"reads={n.reads} writes={n.writes} \n" + " ".join(f"{name}={percents.get(name, getattr(n, name))}" for name in names) + "\n"


def errors(cache: State) -> str:
    """``flashcache_errors``."""
    e = _Counters(cache["errors"])
    names = ("disk_read_errors", "disk_write_errors", "ssd_read_errors", "ssd_write_errors", "memory_alloc_errors")
    return " ".join(f"{name}={getattr(e, name)}" for name in names) + "\n"


def histogram_file(histogram: t.Mapping[int, int]) -> str:
    """``flashcache_iosize_hist``: every bucket, also the empty ones."""
    return "".join(f"{size}:{histogram.get(size, 0)} " for size in range(512, 16385, 512)) + "\n"


def pid_lists(cache: State) -> str:
    """``flashcache_pidlists``."""
    black, white = ("".join(f"{pid} " for pid in cache[name]) for name in ("blacklist", "whitelist"))
    return f"Blacklist: {black}\nWhitelist: {white}\n"


def version(release: str) -> str:
    """``flashcache_version``."""
    return f"Flashcache Version : {release}\ngit commit: simulator\n"


class _Counters:
    """Counters by name; one that was never counted is 0."""

    def __init__(self, counted: t.Mapping[str, int]) -> None:
        self._counted = counted

    def __getattr__(self, name: str) -> int:
        return self._counted.get(name, 0)


def _percent(part: int, whole: int) -> int:
    return part * 100 // whole if whole else 0
