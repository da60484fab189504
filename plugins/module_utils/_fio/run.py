# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of fio, and what became of it.

fio's exit status alone is not enough: a mounted target ends with 0 and no I/O, a stopped run with 128 and a valid report. So a
run is ``ok`` only if everything that was requested is in the report. What fio prints beside that is a note, unless it is a line that
is known to mean that the figures are not those of the job.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import sections
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.latency_target import is_met, target_that_ends
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Output, Version, parse_version

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section

#: Runs longer than this are dumped every minute, so that a killed fio loses a minute and not everything. In seconds.
LONG_RUN = 300.0
_STATUS_INTERVAL = 60

#: How long fio may take to finish its I/O after SIGTERM. In seconds.
PATIENCE = 60.0

#: A run that is shorter than this part of what was requested was stopped.
_ENOUGH = 0.9

#: Lines of fio that are quoted in one reason, or as notes of one cell.
_QUOTED = 3
_LONGEST_LINE = 300

#: Lines around a report that say nothing about the run.
_USUAL = tuple(
    re.compile(pattern)
    for pattern in (
        r"^note: both iodepth >= 1 and synchronous I/O engine are selected",
        r"^fio-\d+\.\d+",
        r"^Starting \d+ (process|thread)",
        r"^\S.*: \(g=\d+\): rw=",
        r"^\.\.\.$",
        r"^\S.*: Laying out IO files? ",
    )
)

#: Lines of a run that ends with 0 although something was not done: I/Os that failed and were passed over, data that was not what had been
#: written, a target that was left alone, jobs that were killed or given up. Sources: backend.c, io_u.c, verify.c and filesetup.c of fio 3.33.
_BAD = tuple(
    re.compile(pattern)
    for pattern in (
        r"io_u error on file",
        r"first (direct )?I/?O (errored|failed)",
        r"\bverify(: | )?(failed|type mismatch|bad |.*checksum|.*mismatch)|\bverify: |bad magic header|verify failed at file",
        r"appears mounted|\bAborting\b",
        r"\bgot signal=|hasn't exited in|appears to be stuck|\bhung\b",
        r"\bpid=\d+, err=|\berror=",
        r"No I/O performed",
        r"\bENOSPC\b|No space left on device",
        r"^fio: job .* (dropped|killed)|^fio: terminating",
        r"out of memory|not enough memory|failed to (allocate|fork|create|open|read|write|set|init)",
        r"[Ii]nput/output error",
    )
)
_TERMINATED = re.compile(r"^fio: terminating on signal (\d+)")

#: ``/sys/class/block/*/stat`` (Documentation/block/stat.rst): I/Os, merges, sectors of 512 bytes, milliseconds.
STAT_FIELDS = (
    *("read_ios", "read_merges", "read_sectors", "read_ticks"),
    *("write_ios", "write_merges", "write_sectors", "write_ticks"),
    *("in_flight", "io_ticks", "time_in_queue"),
    *("discard_ios", "discard_merges", "discard_sectors", "discard_ticks"),
    *("flush_ios", "flush_ticks"),
)


@frozen
class Run:
    """One run of fio as it happened. Times are seconds since the epoch.

    :param report: what fio wrote into its output file, byte for byte.
    :param stopped_after: seconds after which the watchdog stopped it; ``None`` if it ended by itself.
    """

    completed: Completed
    report: bytes
    started: float
    finished: float
    stopped_after: float | None = None

    @property
    def text(self) -> str:
        return self.report.decode(errors="replace")

    @property
    def other_output(self) -> str:
        """What it wrote outside its report."""
        return self.completed.stdout + self.completed.stderr


@frozen
class Decision:
    """The state of a cell: ``ok``, ``not_steady``, ``interrupted`` or ``failed``, and the reason as a sentence.

    :param notes: remarks about the figures, one sentence each.
    """

    state: str
    reason: str = ""
    notes: tuple[str, ...] = ()


def read_version(runner: Runner) -> Version:
    """The version of fio on this host.

    :raises ToolMissing: if there is none.
    """
    return parse_version(runner.run(["fio", "--version"]).stdout)


def check_engine(runner: Runner, engine: str) -> None:
    """:raises StorageError: if fio on this host cannot use an engine; distributions put some into packages of their own."""
    completed = runner.run(["fio", f"--enghelp={engine}"], ok=None, item=engine)
    # Its exit status is 1 for an engine without options too.
    if "not found" in completed.stdout or "not loadable" in completed.stderr:
        raise EngineMissing(
            f"fio on this host has no ioengine {engine}: install its package (fio-engine-{engine} on RHEL and Fedora).", item=engine, completed=completed
        )


class EngineMissing(StorageError):
    """fio is there and one of its engines is not."""

    kind = "engine_missing"


def check_job_file(runner: Runner, text: str, name: str) -> None:
    """Let the fio of this host read a job file without running it.

    :raises BadInput: with fio's messages.
    """
    completed = runner.run(["fio", "--parse-only", "-"], ok=None, stdin=text, item=name)
    if completed.rc != 0:
        lines = [line.strip() for line in (completed.stdout + completed.stderr).splitlines() if line.strip()]
        raise BadInput(f"{name}: fio on this host does not accept the job: {'; '.join(lines[:3]) or 'without a reason'}.", item=name)


def arguments(report: Path, *, long: bool, read_only: bool, output_format: str) -> list[str]:
    """The command of one run without its job file.

    :param report: where fio writes its report.
    :param long: dump the state every minute.
    :param read_only: forbid fio itself to write, beside the guard.
    """
    argv = ["fio", "--eta=never", f"--output-format={output_format}", f"--output={report}"]
    argv += [f"--status-interval={_STATUS_INTERVAL}"] if long else []
    return [*argv, "--readonly"] if read_only else argv


def end_leftovers(argument: str, patience: float = 10.0, *, beginning: bool = False) -> None:
    """Kill processes that carry an argument which only one run has, and wait until they are gone.

    :param beginning: the argument may go on: one that several runs have.

    fio gives each of its jobs a session of its own, so a signal to the group of a fio that was killed does not reach them.
    """
    deadline = time.monotonic() + patience
    while True:
        found = [int(process.name) for process in Path("/proc").glob("[0-9]*") if _carries(process, argument, beginning)]
        if not found or time.monotonic() > deadline:
            return
        for number in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.1)


def _carries(process: Path, argument: str, beginning: bool) -> bool:
    words = _arguments(process)
    return any(word.startswith(argument) for word in words) if beginning else argument in words


def _arguments(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def ended_with_its_parent(runner: Runner) -> list[str]:
    """Words before a command that end it when this process ends, as a task in the background does at its time limit.

    Source: setpriv(1) and PR_SET_PDEATHSIG of prctl(2); the option exists since util-linux 2.33.
    """
    words = ["setpriv", "--pdeathsig", "TERM"]
    return words if runner.has("setpriv") and runner.run([*words, "true"], ok=None).rc == 0 else []


def read_output(run: Run, block_size: int | None = None) -> Output | None:
    """The report of a run; ``None`` if it holds JSON that is not fio's.

    :param block_size: bytes of every I/O, for a fio that does not count them.
    """
    try:
        return fio_output.parse(run.text, block_size=block_size)
    except (NotUnderstood, AttributeError, TypeError, ValueError):
        return None


def decide(job: Job, run: Run, output: Output | None) -> Decision:
    """What became of a run. Pure. The first thing that is wrong decides."""
    if run.stopped_after is not None:
        return Decision("interrupted", f"fio had not ended after {run.stopped_after:g} seconds and was stopped.")
    rc = run.completed.rc
    messages = other_messages(run, output)
    if output is None:
        return Decision("failed", "fio wrote a report that is not one of fio's.")
    if rc < 0:
        killed = -rc in (1, 2, 9, 15)
        return Decision("interrupted" if killed else "failed", f"fio was ended by signal {-rc}.")
    if rc == 128 or any(_TERMINATED.match(line) for line in _lines(run, output)):
        return Decision("interrupted", "fio was stopped by a signal.")
    errors = [f"{one.name}: error {one.error} ({os.strerror(one.error)})" for one in output.jobs if one.error]
    if rc != 0 or errors:
        why = "; ".join([*dict.fromkeys(errors), *messages[:2]]) or run.completed.last_words
        return Decision("failed", f"fio ended with exit status {rc}: {why}")
    if output.objects == 0 or output.truncated:
        ending = "its report breaks off" if output.truncated else "it wrote no report"
        return Decision("failed", f"fio ended with exit status 0 and {ending}: {messages[0] if messages else 'without a message'}")
    bad = [line for line in messages if any(pattern.search(line) for pattern in _BAD)]
    if bad:
        return Decision("failed", f"fio printed: {'; '.join(bad[:_QUOTED])}")
    found = _decide_by_figures(job, output)
    if found.state == "failed" and messages:
        return Decision("failed", f"{found.reason} fio printed: {'; '.join(messages[:_QUOTED])}")
    return Decision(found.state, found.reason, (*found.notes, *_quoted(messages)))


def _quoted(messages: t.Sequence[str]) -> list[str]:
    """What fio printed, as notes; a job of many threads prints a line for each."""
    more = len(messages) - _QUOTED
    return [f"fio printed: {line[:_LONGEST_LINE]}" for line in messages[:_QUOTED]] + (
        [f"fio printed {more} more lines: see fio.stderr.gz."] if more > 0 else []
    )


def _decide_by_figures(job: Job, output: Output) -> Decision:
    unsteady = False
    notes: list[str] = []
    # The first job to end may have ended the others.
    ends_all = any(section.options.get("exitall", "0") != "0" for section in job.sections)
    alone = job.threads == 1 or not ends_all
    whole = _ends_of_whole_jobs(job, output) if ends_all else {}
    ends = [end for _begin, end in sections.started_spans(job, output)]
    names = sections.reported_as(job.sections)
    for section, end in zip(job.sections, ends):
        entries = [one for one in output.jobs if one.name == names[section.name]]
        if not entries:
            return Decision("failed", f"The job {section.name} is not in fio's report.")
        unfinished = _unfinished_replay(section, entries)
        if unfinished:
            return Decision("failed", unfinished)
        target = target_that_ends(section) if alone else None
        for entry in entries:
            missing = [name for name in sorted(section.directions) if not _did_io(entry, name)]
            if missing:
                return Decision("failed", f"The job {section.name} did no {' and no '.join(missing)}.")
            short = None if entry.is_steady else _shortfall(section, entry)
            if short and whole:
                ended = min(whole, key=lambda name: abs(whole[name] - end))
                notes.append(f"{short} exitall ended it together with the job {ended}.")
            elif short and not (target and is_met(target, entry)):
                return Decision("interrupted", f"{short} It did not meet its latency_target either." if target else short)
            if target and section.asked_runtime is not None and not entry.is_steady:
                notes.append(_note_on_target(section, entry, met=bool(short)))
            unsteady = unsteady or entry.is_steady is False
    reported = tuple(dict.fromkeys(notes))
    return Decision("not_steady", "fio's steady state was not reached in the time given.", reported) if unsteady else Decision("ok", notes=reported)


def _ends_of_whole_jobs(job: Job, output: Output) -> dict[str, float]:
    """When the jobs ended that did all that was requested of them, in seconds from the start of the first: with ``exitall`` one of them ended the others."""
    found = {}
    for section, (_begin, end) in zip(job.sections, sections.started_spans(job, output)):
        entries = [one for one in output.jobs if one.name == section.name]
        if any(_shortfall(section, entry) is None for entry in entries):
            found[section.name] = end
    return found


def _unfinished_replay(section: Section, entries: t.Sequence[fio_output.Job]) -> str | None:
    """A log is replayed as a whole, unless the job limits its time."""
    counts = [found.total_ios for entry in entries for name, found in entry.directions.items() if name != "sync"]
    if section.replay is None or section.longest is not None or None in counts:
        return None
    done = sum(count for count in counts if count is not None)
    return None if done == section.replay.ios else f"The job {section.name} did {done} of the {section.replay.ios} I/Os of its log."


def _note_on_target(section: Section, entry: fio_output.Job, *, met: bool) -> str:
    if not met:
        return f"The job {section.name} ended without a queue depth that meets its latency_target: its figures are of all depths that fio tried."
    depth = "a queue depth" if entry.latency_depth is None else f"a queue depth of {entry.latency_depth}"
    return (
        f"The job {section.name} met its latency_target with {depth}, so fio ended it after {_longest(entry):g} of {section.asked_runtime:g} seconds: "
        "its figures are of the last latency_window, at that depth."
    )


def _did_io(entry: fio_output.Job, direction: str) -> bool:
    found = entry.directions.get(direction)
    if found is None:
        return False
    return bool(found.io_bytes if found.total_ios is None else found.total_ios)


def _shortfall(section: Section, entry: fio_output.Job) -> str | None:
    requested = section.asked_runtime
    if requested is None:
        return None
    longest = _longest(entry)
    if all(one.runtime_ms is None for one in entry.directions.values()):
        # How long the process was there, in whole seconds, is another number.
        if entry.elapsed is None:
            return f"The report does not show how long the job {section.name} ran."
        longest = max(entry.elapsed - section.ramp, 0.0)
    return f"The job {section.name} ran {longest:g} of {requested:g} seconds." if longest < _ENOUGH * requested else None


def _longest(entry: fio_output.Job) -> float:
    """Seconds that a job measured."""
    return max((one.runtime_ms or 0 for one in entry.directions.values()), default=0) / 1000


def _lines(run: Run, output: Output) -> list[str]:
    """Everything fio printed in addition to its JSON, once each: errors go to stderr and into the report."""
    other = [line.strip() for line in run.other_output.splitlines() if line.strip()]
    return list(dict.fromkeys([*(line.strip() for line in output.messages), *other]))


def other_messages(run: Run, output: Output | None) -> list[str]:
    """Lines beside the report that fio does not write in every run."""
    if output is None:
        return []
    return [line for line in _lines(run, output) if not _TERMINATED.match(line) and not any(pattern.match(line) for pattern in _USUAL)]


def without_flushes(counters: t.Mapping[str, int], name: str, root: Path = Path("/")) -> dict[str, int]:
    """The counters of a device without those of flushes, if it counts none.

    Flushes are counted where there are requests (``blk_account_io_flush`` of block/blk-flush.c, since Linux 5.5), and what has requests has ``mq``
    in sysfs: whole disks and multipath. Other mappings, MD, bcache and partitions print a 0 that means nothing.
    """
    counts = (root / "sys/class/block" / name / "mq").is_dir()
    return {key: value for key, value in counters.items() if counts or not key.startswith("flush_")}


def read_device_stats(names: t.Iterable[str], root: Path = Path("/")) -> dict[str, dict[str, int]]:
    """The kernel's counters of some block devices, by name; a device that is gone is left out, and so are flushes of one that counts none."""
    found = {}
    for name in names:
        try:
            words = (root / "sys/class/block" / name / "stat").read_text().split()
        except OSError:
            continue
        found[name] = without_flushes(dict(zip(STAT_FIELDS, map(int, words))), name, root)
    return found
