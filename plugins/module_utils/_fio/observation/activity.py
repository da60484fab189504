# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one run shows in addition to its figures: when it really measured, what it moved, and whether the CPU was the limit. Pure."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import sections
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.consistency import agrees, series_note

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Output
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job

_SECTOR = 512

#: From here on a CPU has nothing left, in percent.
FIO_BUSY, HOST_BUSY = 95.0, 95.0

Stats = t.Mapping[str, t.Mapping[str, int]]


def window(output: Output, finished: float, began: float | None = None, job: Job | None = None) -> tuple[float | None, float | None]:
    """Between which instants of the host's clock it measured, ramps excluded.

    fio reports since 3.36 when a job began; before, the end is when it wrote its report, which is right after the last job.

    :param began: when the last of its threads was observed to begin, ramps included.
    :param job: what was requested, which shows which jobs did not run at the same time.
    """
    spans = [span for some in (sections.measured_spans(job, output) if job is not None else {}).values() for span in some]
    first, last = sections.covered(spans) if spans else _one_after_the_other(output)
    if last <= first:
        return None, None
    reported = [one.start_ms / 1000 for one in output.jobs if one.start_ms]
    starts = [begin for begin, _end in sections.started_spans(job, output)] if job is not None and spans else [0.0]
    one_phase = len({one.group for one in output.jobs}) == 1
    # What was observed, and what is reported of each, is the start of the section that began last.
    if began is None and reported and one_phase:
        began = max(reported)
    if began is not None and one_phase:
        # The job begins with its ramp, and ends when its time is over.
        began += first - max(starts) if spans else max(_ramp(one.options) for one in output.jobs)
        return round(began, 3), round(began + last - first, 3)
    ended = output.timestamp_ms / 1000 if output.timestamp_ms else finished
    # A clock that was set while fio ran makes its time stamp worthless.
    ended = min(ended, finished) if abs(ended - finished) < 30 else finished
    return round(ended - (last - first), 3), round(ended, 3)


def _one_after_the_other(output: Output) -> sections.Span:
    """From the start of the first phase to the end of the last: those of a stonewall."""
    lengths: dict[t.Any, float] = {}
    for job in output.jobs:
        longest = max((one.runtime_ms or 0 for one in job.directions.values()), default=0) / 1000
        lengths[job.group] = max(lengths.get(job.group, 0.0), longest)
    return 0.0, sum(lengths.values())


def _ramp(options: t.Mapping[str, str]) -> float:
    from_text = options.get("ramp_time", "0")
    try:
        return float(str(from_text).rstrip("s") or 0)
    except ValueError:
        return 0.0


def series_notes(folder: Path, summary: t.Mapping[str, t.Any], block_size: int | None) -> list[str]:
    """Which series the controller will not use, since it does not add up to the total of the report; the same rule with the same logs.

    :param block_size: bytes of every I/O; ``None`` if they are not all of one size.
    """
    notes = []
    for number, direction in enumerate(("read", "write", "trim")):
        found = summary.get(direction)
        if found is None or _adds_up(folder, "iops", number, found["total_ios"], found["runtime_ms"]):
            continue
        # Of a few I/Os per second the bandwidth is more exact.
        kib = None if found["io_bytes"] is None else found["io_bytes"] / KIB
        if not (block_size and found["io_bytes"] == block_size * found["total_ios"] and _adds_up(folder, "bw", number, kib, found["runtime_ms"])):
            notes.append(series_note(direction))
    return notes


def _adds_up(folder: Path, what: str, number: int, total: float | None, runtime_ms: int | None) -> bool:
    logs = [_seconds_of(path, number) for path in folder.glob(f"series_{what}*.log")]
    seconds = {second for log in logs for second in log}
    if not seconds or total is None or runtime_ms is None:
        return True
    last = sum(max(log.values()) for log in logs if log)
    most = max(sum(log.get(second, 0.0) for log in logs) for second in seconds)
    covered = max(seconds) - min(seconds) + 1
    return agrees(sum(sum(log.values()) for log in logs), total, last + max(runtime_ms / 1000 - covered, 0.0) * most)


def _seconds_of(log: Path, number: int) -> dict[int, float]:
    """Values of one direction by second."""
    found: dict[int, float] = {}
    for line in log.read_text(errors="replace").splitlines():
        columns = line.split(",", 3)
        with contextlib.suppress(ValueError, IndexError):
            if int(columns[2]) == number:
                second = int(float(columns[0]) // 1000)
                found[second] = found.get(second, 0.0) + float(columns[1])
    return found


def moved(
    top: str | None, before: Stats, after: Stats, output: Output | None, job: Job | None = None, part: Job | None = None
) -> tuple[int | None, int | None]:
    """Bytes written and read: by the target's own counters, ramps included, else by what fio counted.

    :param job: of which ``part`` is what runs on this target, if others run elsewhere.
    """
    if top and top in before and top in after:
        grown = [(after[top][name] - before[top][name]) * _SECTOR for name in ("write_sectors", "read_sectors")]
        if min(grown) >= 0:
            return grown[0], grown[1]
    if output is None:
        return None, None
    return _counted(output, "write", job, part), _counted(output, "read", job, part)


def _counted(output: Output, direction: str, job: Job | None, part: Job | None) -> int | None:
    """Bytes that fio counted in one direction; ``None`` if one entry has those of sections on several targets."""
    entries = [one for one in output.jobs if direction in one.directions]
    others = [] if job is None or part is None else [section for section in job.sections if section not in part.sections]
    if job is not None and part is not None and others:
        names = sections.reported_as(job.sections)
        own = {names[section.name] for section in part.sections}
        if not own & {names[section.name] for section in others}:
            entries = [one for one in entries if one.name in own]
        elif any(section.directions & {direction, "mixed"} for section in others):
            return None if any(section.directions & {direction, "mixed"} for section in part.sections) else 0
    sums = [one.directions[direction].io_bytes for one in entries]
    return None if None in sums else sum(t.cast(t.List[int], sums))


def added(values: t.Sequence[int | None]) -> int | None:
    """A sum; ``None`` if a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def written_to_each(meta: t.Mapping[str, t.Any]) -> list[int | None]:
    """Bytes that a cell wrote to each of its targets, in the order of its parts."""
    return [one.get("bytes_written") for one in meta["targets"]] if meta.get("targets") else [meta.get("bytes_written")]


def cpu(output: Output | None, host_busy: float | None) -> dict[str, t.Any]:
    """Percent of one CPU that a thread of fio used on average, and of all CPUs that the host did; and whether either was the limit."""
    rows = [(job.user_cpu or 0.0, job.system_cpu or 0.0) for job in (output.jobs if output else ()) if job.user_cpu is not None or job.system_cpu is not None]
    user = round(sum(row[0] for row in rows) / len(rows), 2) if rows else None
    system = round(sum(row[1] for row in rows) / len(rows), 2) if rows else None
    bound = any(sum(row) >= FIO_BUSY for row in rows) or (host_busy is not None and host_busy > HOST_BUSY)
    return {"fio_usr": user, "fio_sys": system, "host_busy": host_busy, "cpu_bound": bound}


def cpu_note(found: t.Mapping[str, t.Any], job: Job) -> str:
    """Why the figures of a cell are the CPU's and not the device's, as a sentence; empty if they are not."""
    if not found["cpu_bound"]:
        return ""
    if found["host_busy"] is not None and found["host_busy"] > HOST_BUSY:
        return f"The CPUs of the host were {found['host_busy']:g} % busy: the device may be faster than this."
    return f"fio used {found['fio_usr'] + found['fio_sys']:.0f} % of a CPU for each of its {job.threads} threads: the device may be faster than this."
