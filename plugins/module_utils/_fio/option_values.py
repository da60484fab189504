# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which values an option may have: those that fio reads in one way, and that stay within the target and the memory of the host.

Source: ``parse.c`` and ``options.c`` of fio 3.33: a number ends at the first character that is no digit (1.5M is 1), KiB is 1000
unless ``kb_base`` is 1000, ``(`` starts a calculation, a quoted part of a pattern is the name of a file that is read, and what follows a
colon in ``mem`` is the name of a file that is written.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import BOOLEANS, ENGINES, ENGINES_WITHOUT_TARGET

#: fio has room for that many jobs (``REAL_MAX_JOBS``); with numjobs=0 it forks without end.
MAXIMUM_JOBS = 4096
#: The default of fs.aio-max-nr: more requests than that are not accepted by the kernel for all processes together.
MAXIMUM_DEPTH = 65536
#: Bytes of a value. fio reads a line of 4096 (fio 2) or 8192 bytes (fio 3), and takes the rest of a longer one for another line.
MAXIMUM_LENGTH = 1024

DIRECTIONS: t.Mapping[str, tuple[str, ...]] = {
    "read": ("read",),
    "randread": ("read",),
    "write": ("write",),
    "randwrite": ("write",),
    "trim": ("trim",),
    "randtrim": ("trim",),
    "rw": ("read", "write"),
    "readwrite": ("read", "write"),
    "randrw": ("read", "write"),
    "trimwrite": ("trim", "write"),
    "randtrimwrite": ("trim", "write"),
}

_SIZE = r"\d+(?:[kmgtp]b?|b)?"
_NOT_0 = r"0*[1-9]\d*(?:[kmgtp]b?|b)?"
_RANGE = rf"{_SIZE}[-:]{_SIZE}"
_SHARE = rf"{_SIZE}(?:/\d*)?"
_SHARES = rf"{_SHARE}(?::{_SHARE})*"
_PERCENT = r"\d{1,2}%|100%"
_MODES = "|".join(DIRECTIONS)
_MEMORY = "malloc|shm|shmhuge|mmap|mmaphuge|mmapshared"

_SIZE_WORDS = "a whole number of bytes, with k, m, g, t or p for powers of 1024"
#: By canonical name: what the whole value must be, ignoring case, and how that is described.
_FORMS: t.Mapping[str, tuple[t.Pattern[str], str]] = {
    name: (re.compile(f"(?:{pattern})\\Z", re.IGNORECASE), words)
    for names, pattern, words in (
        ("size offset offset_increment io_size", rf"{_SIZE}|{_PERCENT}", f"{_SIZE_WORDS}, or a percentage from 0% to 100%"),
        ("offset_align", r"0*[1-9]\d*(?:[kmgt]b?|b)?", f"{_SIZE_WORDS}, at least 1"),
        ("filesize", rf"{_NOT_0}(?:[-:,]{_NOT_0})?", f"{_SIZE_WORDS}, at least 1, or two of them joined by '-'"),
        ("bs ba rate rate_min", rf"(?:{_SIZE})?(?:,(?:{_SIZE})?){{0,2}}", f"{_SIZE_WORDS}, one or up to three separated by commas"),
        ("bsrange", rf"{_RANGE}(?:,{_RANGE}){{0,2}}", "two sizes joined by '-', once or up to three times separated by commas"),
        ("bssplit", rf"{_SHARES}(?:,{_SHARES}){{0,2}}", "sizes with percentages, such as 4k/60:64k/40"),
        ("zonesize zonecapacity zonerange zoneskip number_ios", _SIZE, _SIZE_WORDS),
        ("kb_base", "1024", "1024: every size of the collection is a power of 1024"),
        ("mem", _MEMORY, "malloc, shm, shmhuge, mmap, mmaphuge or mmapshared alone: the name of a file would write the buffers into a file"),
    )
    for name in names.split()
}
#: With case, because fio compares words as they are.
_WORDS: t.Mapping[str, tuple[t.Pattern[str], str]] = {
    "rw": (re.compile(rf"(?:{_MODES})(?::-?\d+[kmgKMG]?)?\Z"), f"{', '.join(sorted(DIRECTIONS))}, with or without a modifier such as :8 or :4k"),
    "zonemode": (re.compile(r"(?:none|strided|zbd)\Z"), "none, strided and zbd"),
    "ioengine": (
        re.compile(rf"(?:{'|'.join(ENGINES)})\Z"),
        f"{', '.join(sorted(ENGINES))}: the guard can only check engines that use the file name of the target",
    ),
}
#: Whole numbers and their bounds.
_BOUNDS: t.Mapping[str, tuple[int, int]] = {
    "numjobs": (1, MAXIMUM_JOBS),
    "nrfiles": (1, 2**31 - 1),
    "openfiles": (1, 2**31 - 1),
    "iodepth": (1, MAXIMUM_DEPTH),
    "iodepth_batch": (0, MAXIMUM_DEPTH),
    "iodepth_batch_complete_min": (0, MAXIMUM_DEPTH),
    "iodepth_batch_complete_max": (0, MAXIMUM_DEPTH),
    "iodepth_low": (0, MAXIMUM_DEPTH),
    "loops": (0, 2**31 - 1),
    "verify_async": (0, MAXIMUM_JOBS),
    **dict.fromkeys(("percentage_random", "rwmixread", "rwmixwrite"), (0, 100)),
    **dict.fromkeys(BOOLEANS, (0, 1)),
}
#: Other numbers, sizes, times and lists of them (fio --cmdhelp): true would be 1 of whatever the option counts.
_NUMBERS = frozenset(
    {
        *("runtime", "ramp_time", "startdelay", "num_range", "rwmixread", "rwmixwrite", "rwmixcycle", "percentage_sequential", "randseed"),
        *("spr_num_regions", "thinktime", "thinktime_spin", "thinktime_blocks", "thinktime_iotime", "thinkcycles", "rate_iops", "rate_iops_min"),
        *("rate_cycle", "max_latency", "latency_target", "latency_window", "latency_percentile", "flow", "flow_watermark", "flow_sleep"),
        *("steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval", "max_open_zones", "job_max_open_zones"),
        *("zone_reset_threshold", "zone_reset_frequency", "fsync", "fdatasync", "sync_file_range", "write_barrier", "plids", "iomem_align"),
        *("hugepage-size", "lockmem", "buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage"),
        *("dedupe_working_set_percentage", "verifysort_nr", "verify_interval", "verify_offset", "verify_pattern_interval", "verify_backlog"),
        *("verify_backlog_batch", "trim_percentage", "trim_backlog", "trim_backlog_batch", "nice", "prio", "prioclass", "cpumask", "cpus_allowed"),
        *("numa_cpu_nodes", "verify_async_cpus", "log_compression_cpus", "gtod_cpu", "log_avg_msec", "log_hist_msec", "log_hist_coarseness"),
        *("log_entries", "log_compression", "bwavgtime", "iopsavgtime", "percentile_list", "significant_figures"),
        *("cmdprio", "cmdprio_class", "cmdprio_percentage", "hipri_percentage", "sqthread_poll_cpu", "stream_id"),
        *("flow_id", "force_async", "unit_base", "log_alternate_epoch_clock_id", "job_start_clock_id"),
    }
)
#: One for each direction; the others have exactly one.
_BY_DIRECTION = frozenset({"percentage_random"})
_PLAIN = re.compile(r"[A-Za-z0-9._:,/%+-]+\Z")
_NEGATIVE = re.compile(r"(?:^|[,:/])-")
#: A niceness, a share of the flow and a number as a pattern may be negative.
_MAY_BE_NEGATIVE = frozenset({"nice", "flow", "verify_pattern", "buffer_pattern"})


def objection(option: str, value: str) -> str | None:
    """What is wrong with the value of an option, as the end of a sentence that begins with both.

    :param option: canonical name of an option that is not refused.
    """
    if len(value.encode()) > MAXIMUM_LENGTH:
        return f"is refused: the value must not be longer than {MAXIMUM_LENGTH} bytes"
    if option == "description":
        return None
    if option == "ioengine" and value in ENGINES_WITHOUT_TARGET:
        return f"is refused: {ENGINES_WITHOUT_TARGET[value]}"
    if option in _WORDS:
        return None if _WORDS[option][0].match(value) else f"must be one of {_WORDS[option][1]}"
    allowed = _allowed_values(option, value)
    return None if allowed is None else f"is refused: the value must be {allowed}"


def is_number(option: str) -> bool:
    """Whether the values of an option are numbers, sizes or words, of which neither true nor false is one.

    :param option: canonical name.
    """
    return option in _WORDS or option in _FORMS or option in _NUMBERS or _BOUNDS.get(option, (0, 1)) != (0, 1)


def _allowed_values(option: str, value: str) -> str | None:
    """What the value must be, if it is not that."""
    if option in _FORMS and not _FORMS[option][0].match(value):
        return _FORMS[option][1]
    if option in _BOUNDS and not _is_within(value, *_BOUNDS[option], parts=3 if option in _BY_DIRECTION else 1):
        return f"a whole number from {_BOUNDS[option][0]} to {_BOUNDS[option][1]}"
    if not _PLAIN.match(value):
        return "made of letters, digits and . _ : , / % + - only, without quotes, blanks, brackets and backslashes"
    if option not in _MAY_BE_NEGATIVE and _NEGATIVE.search(value):
        return "without negative numbers"
    return None


def _is_within(value: str, low: int, high: int, *, parts: int) -> bool:
    numbers = value.split(",")
    # 00 is no other word for off: what is in effect is compared with 0.
    digits = "[01]" if high == 1 else "[0-9]{1,10}"
    return len(numbers) <= parts and all(re.match(rf"{digits}\Z", number) and low <= int(number) <= high for number in numbers)
