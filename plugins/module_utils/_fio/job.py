# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fio job as a dictionary, and the job file that is sent.

The file contains the options of the user, in the user's order, and a few lines of the collection's own, under a comment. Only
options of :mod:`job_options` with values of :mod:`job_options` are accepted; how far they reach is computed by :mod:`extent`.

Source: fio's ``HOWTO``, ``options.c`` and ``init.c``: a line is cut at ``;`` and ``#``, ``${NAME}`` is taken from the
environment, and a value with ``$`` keywords is calculated by a shell command; none of the three can be escaped.
"""

from __future__ import annotations

import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import extent, replay
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import (
    FLAGS,
    LOGS,
    MAXIMUM_JOBS,
    canonical,
    is_number,
    left_out,
    needs_engine,
    objection,
    refusal,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.replay import Replay
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section, check_times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts

_SECTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ +-]{0,63}\Z")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
#: Control characters, half characters that cannot be encoded, and what fio cuts a line at or calculates.
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff;#$]")
#: Less than a line that fio reads at once: see MAXIMUM_LENGTH of job_options.
_LONGEST_PATH = 2048

#: Of a name that gets a number.
_LONGEST_STEM = 58

#: With more threads than this all write into the same series.
_OWN_LOGS = 16

#: A percentage in [global] stays in effect in fio when a section gives a number instead.
_PERCENTAGES = ("size", "offset", "offset_increment", "io_size")


def read_job(job: t.Any, name: str) -> Job:
    """Check a job as a user writes it: ``{global: {…}, jobs: [{name: …, …}]}``, or the options of one section.

    :param name: of the cell; the section of the short form is called so.
    :raises BadInput: naming the option that is wrong or refused.
    """
    if not isinstance(job, dict) or not job:
        raise BadInput(f"{name}: the job must be a dictionary of fio options, or one with the keys global and jobs.", item=name)
    replays: dict[str, Replay] = {}
    common, rows = _parts(job, name, replays)
    switched_on = {canonical(key) for key in common if key in FLAGS}
    titles = [_title(row, name) for row in rows]
    sections: dict[str, dict[str, str | None]] = {}
    for title, row in zip(_unique(titles), rows):
        sections[title] = _options({key: value for key, value in row.items() if key not in ("name", "target")}, name, title, replays, switched_on)
    places = [_target_name(row, name) for row in rows]
    checked = Job(
        sections=tuple(_section(title, _merged(common, own, name, title), replays, place) for (title, own), place in zip(sections.items(), places)),
        global_lines=_lines(common),
        section_lines=tuple((title, _lines(own)) for title, own in sections.items()),
        has_percentiles=any("percentile_list" in own for own in (common, *sections.values())),
        notes=(*(str(note) for note in job.get("notes") or ()), *_note_on_names(titles, list(sections)), *left_out(job.get("global"), *rows)),
    )
    _check_waits(checked, titles, name)
    _check_sections(checked, name)
    return checked


def render(
    job: Job,
    facts: TargetFacts,
    *,
    others: t.Mapping[str, TargetFacts] | None = None,
    series: str | None = None,
    without: t.Container[str] = (),
    added: t.Sequence[str] = (),
) -> str:
    """The job file for targets that the guard has examined.

    :param facts: of the target of the cell; ``others`` of those that sections name.
    :param series: the prefix of the log files of one-second averages, when they are wanted.
    :param without: options that the fio of the host lacks and that are left out.
    :param added: further lines of the runner's own.
    :raises BadInput: if a path contains what a job file cannot carry.
    """
    # In the section global a size would take the place of what the job sets there.
    own = [*_target_lines(job, facts), *(_size_line(facts) if _is_common(job) else [])] if not others else []
    own.append("exitall_on_error")
    if any(_is_timed(section) for section in job.sections):
        # That of fio, which counts cycles, was found to be wrong by a factor of 3 on a busy virtual machine: so were all pauses.
        own.append("clocksource=clock_gettime")
    if not job.has_percentiles:
        own.append("percentile_list=50:90:95:99:99.9:99.99")
    if series is not None:
        own += ["log_avg_msec=1000", "log_unix_epoch=1", f"write_bw_log={series}", f"write_iops_log={series}", f"write_lat_log={series}"]
        # Five files for every thread would be hundreds: threads share them, and the rows of one second belong together.
        own += ["per_job_logs=0"] if job.threads > _OWN_LOGS else []
    own = [line for line in [*own, *added] if line.split("=", 1)[0] not in without]
    lines = ["[global]", *job.global_lines, "; added by cachefleet.storage", *own]
    for (title, own_lines), section in zip(job.section_lines, job.sections):
        place = facts if section.target is None else (others or {})[section.target]
        lines += ["", f"[{title}]", *own_lines, *(_target_lines(job.on(section.target), place) if others else [])]
        if place.target.kind == "directory":
            lines.append(f"filename_format={extent.names_of(job.on(section.target).sections.index(section))}")
        lines += _size_line(place) if not section.has_size and (others or not _is_common(job)) else []
        # Else fio 3.33 only takes what is completed once its queue is full, and counts the pauses of the log as latency.
        lines += ["iodepth_batch_complete_min=0"] if _is_timed(section) else []
    return "\n".join(lines) + "\n"


def _is_timed(section: Section) -> bool:
    return section.replay is not None and section.replay.seconds is not None


def _target_lines(job: Job, facts: TargetFacts) -> list[str]:
    """What fio opens."""
    if facts.target.kind == "directory":
        return [f"directory={_escaped_path(facts.path)}", "allow_file_create=0"]
    lines = [f"filename={_escaped_path(facts.path)}"]
    if job.replays:
        # fio takes this path as it stands: it has no list of files here.
        lines.append(f"replay_redirect={facts.path}")
    return [*lines, "allow_file_create=0"] if facts.target.kind == "device" else lines


def _is_common(job: Job) -> bool:
    """Whether no section sets how much of its target it uses, not even all of it: that would be all of a longer file."""
    return not any(section.has_size or section.value("size") is not None for section in job.sections)


def _size_line(facts: TargetFacts) -> list[str]:
    target = facts.target
    size = target.size if target.size is not None or target.kind == "device" else facts.size
    return [] if size is None else [f"size={size}"]


def check_target(job: Job, kind: str, size: int | None, name: str) -> None:
    """Whether the job stays within its target, as far as that is known without the host.

    :param size: bytes of the target that may be used; ``None`` for all of it.
    :raises BadInput: if it sizes a plain file by anything else than bytes, or if it ends behind the size.
    """
    if kind == "directory":
        extent.check_folder(job, size, name)
        return
    for section in job.sections:
        for option in extent.OPTIONS_OF_FILES:
            if section.value(option) is not None:
                raise BadInput(f"{name}: {option} needs a target that is a 'directory': a {kind} is one file for fio.", item=name, option=option)
    for section in job.sections if kind == "file" else ():
        for option in ("fill_device", "file_append"):
            if section.value(option) not in (None, "0"):
                raise BadInput(f"{name}: {option} would make a plain file longer than its target: remove it.", item=name, option=option)
        for option in ("size", "offset", "offset_increment"):
            # Of the file as it is, which may be longer than the part of it that is used.
            if (section.value(option) or "").endswith("%") and (option, section.value(option)) != ("size", "100%"):
                raise BadInput(f"{name}: {option}={section.value(option)} of a plain file is not supported: give it in bytes.", item=name, option=option)
        if section.value("size") not in (None, "100%") and not section.has_size:
            raise BadInput(f"{name}: size=0 of a plain file is not supported: remove it, or give it in bytes.", item=name, option="size")
    if size is not None:
        _check_end(job, kind, size, name)


def size_of_file(job: Job) -> int | None:
    """Bytes of a plain file that a job needs which sizes all of its sections itself; ``None`` if it does not."""
    if not all(section.has_size for section in job.sections):
        return None
    return extent.end_of_io(job, size=None, device_size=None, is_file=True)


def _check_end(job: Job, kind: str, size: int, name: str) -> None:
    where = f"the target has a size of {size} bytes ({format_size(size)})"
    try:
        end = extent.end_of_io(job, size=size, device_size=None, is_file=kind == "file")
    except BadInput as error:
        raise BadInput(f"{name}: {error.message}, but {where}: {_way_out(kind)}.", item=name, **error.facts) from None
    if end > size:
        option = extent.what_moves_the_end(job)
        raise BadInput(f"{name}: with {option} the job ends at byte {end}, but {where}: {_way_out(kind)}.", item=name, option=option)


def _way_out(kind: str) -> str:
    if kind == "file":
        return "give the target (or the suite, for fio_benchmark_file) a larger size, or the job a smaller one"
    return "remove the option, choose a size that is a multiple of the block size, or give the target no size and set size and offset in the job"


def _section(title: str, options: t.Mapping[str, str | None], replays: t.Mapping[str, Replay], target: str | None) -> Section:
    return Section(title, options, replays.get(options.get(replay.LOG) or ""), target)


def _target_name(row: t.Mapping[str, t.Any], name: str) -> str | None:
    target = row.get("target")
    try:
        return None if target is None else component(str(target) if isinstance(target, int) and not isinstance(target, bool) else target, "target")
    except BadInput as error:
        raise BadInput(f"{name}: {error.message}", item=name, option="target") from None


def _parts(job: dict[t.Any, t.Any], name: str, replays: dict[str, Replay]) -> tuple[dict[str, str | None], list[t.Any]]:
    """The options of all sections, and the sections as they were given, in both forms of a job."""
    if "jobs" not in job and "global" not in job:
        for option in ("name", "target"):
            if option in job:
                raise BadInput(f"{name}: the option {option} is refused in a job: {refusal(option)}.", item=name, option=option)
        return {}, [{**job, "name": _section_name(name)}]
    others = [abbreviated(key) for key in job if key not in ("global", "jobs", "notes")]
    if others:
        raise BadInput(f"{name}: a job with global or jobs has no other keys: {', '.join(sorted(others)[:10])}.", item=name)
    rows = job.get("jobs")
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{name}: jobs must be a list with at least one job.", item=name)
    return _options({} if job.get("global") is None else job["global"], name, "global", replays), rows


def _section_name(name: str) -> str:
    return name if _is_section_name(name) else "cell"


def _is_section_name(name: t.Any) -> bool:
    # fio takes every section whose name begins with "global" for a part of [global].
    return isinstance(name, str) and bool(_SECTION.match(name)) and not name.lower().startswith("global")


def _title(row: t.Any, name: str) -> str:
    title = row.get("name") if isinstance(row, dict) else None
    title = str(title) if isinstance(title, int) and not isinstance(title, bool) else title
    if not _is_section_name(title):
        raise BadInput(f"{name}: every job needs a name of letters, digits, blanks and ._+- that does not begin with 'global': {abbreviated(row)}", item=name)
    return str(title)


def _unique(titles: t.Sequence[str]) -> list[str]:
    """A name for each section that no other has: fio reports sections of one name under this name, each as if it were the only one."""
    taken: set[str] = set(titles)
    numbers: dict[str, int] = {}
    found: list[str] = []
    for title in titles:
        numbers[title] = numbers.get(title, 0) + 1
        name = title
        while numbers[title] > 1 and name in taken:
            name = f"{title[:_LONGEST_STEM]}_{numbers[title]}"
            numbers[title] += name in taken
        taken.add(name)
        found.append(name)
    return found


def _note_on_names(titles: t.Sequence[str], names: t.Sequence[str]) -> list[str]:
    changed = [f"{title} in place {place} is {name}" for place, (title, name) in enumerate(zip(titles, names), start=1) if name != title]
    more = f" and {len(changed) - 10} more" if len(changed) > 10 else ""
    return [f"Sections of the same name were renamed, so that each has figures of its own: {', '.join(changed[:10])}{more}."] if changed else []


def _check_waits(job: Job, titles: t.Sequence[str], name: str) -> None:
    """:raises BadInput: if a section waits for a name that several have, which fio refuses too."""
    for section in job.sections:
        awaited = section.value("wait_for")
        if awaited is not None and titles.count(awaited) > 1:
            raise BadInput(
                f"{name}: {section.name} waits for {awaited}, which is the name of {titles.count(awaited)} sections: give them names of their own.",
                item=name,
                option="wait_for",
            )


def _merged(common: t.Mapping[str, str | None], own: t.Mapping[str, str | None], name: str, section: str) -> dict[str, str | None]:
    """The options in effect in a section: its own replace those of the global section, however both are spelled."""
    spelled = {canonical(key): value for key, value in own.items()}
    for key, value in common.items():
        option = canonical(key)
        if option in _PERCENTAGES and option in spelled and _is_percent(value) and not _is_percent(spelled[option]):
            raise BadInput(
                f"{name}: {option} in percent in the section global stays in effect for fio when {section} gives a number: set it in the jobs only.",
                item=name,
                option=key,
            )
    return {**{key: value for key, value in common.items() if canonical(key) not in spelled}, **own}


def _is_percent(value: str | None) -> bool:
    return value is not None and value.endswith("%")


def _options(options: t.Any, name: str, section: str, replays: dict[str, Replay], switched_on: t.Container[str] = ()) -> dict[str, str | None]:
    """Options as texts; ``None`` is a flag. A flag that is false is left out, and a log is replaced by its file name.

    :param replays: to which logs are added, by their file names.
    :param switched_on: flags that the global section sets, by canonical name: one of them that is false is ``0``, as fio would keep it set.
    """
    if not isinstance(options, dict):
        raise BadInput(f"{name}: the section {section} must be a dictionary of fio options.", item=name)
    found: dict[str, str | None] = {}
    if replay.LOG in options:
        log = replay.read_replay(options, name)
        replays[log.file_name] = log
        options = {replay.LOG: log.file_name, **{key: value for key, value in options.items() if key not in replay.OPTIONS}}
    for key, value in options.items():
        if not isinstance(key, str) or not _KEY.match(key):
            raise BadInput(f"{name}: {abbreviated(key)} is not the name of a fio option.", item=name)
        _require_allowed(key, value, name)
        if canonical(key) in LOGS:
            continue
        double = next((other for other in found if canonical(other) == canonical(key)), None)
        if double is not None:
            raise BadInput(f"{name}: {double} and {key} in the section {section} are the same option: keep one of them.", item=name, option=key)
        if key in FLAGS and (value is False or str(value) == "0"):
            # exitall is one switch of all sections, which fio sets whatever its value is (str_exitall_cb in options.c).
            if canonical(key) in switched_on and key not in ("exitall", "exitall_on_error"):
                found[key] = "0"
            continue
        if key == "exitall_on_error":
            continue
        found[key] = _text(key, value, name)
    return found


def _require_allowed(key: str, value: t.Any, name: str) -> None:
    reason = refusal(key)
    if reason is not None and not (key == "exitall_on_error" and value):
        raise BadInput(f"{name}: the option {key} is refused in a job: {reason}.", item=name, option=key)


def _text(key: str, value: t.Any, name: str) -> str | None:
    if key in FLAGS:
        if value is None or value is True or str(value) in ("1", ""):
            return None
        raise BadInput(f"{name}: the option {key} is either true or false.", item=name, option=key)
    if isinstance(value, bool) and not is_number(canonical(key)):
        return "1" if value else "0"
    if value is None:
        raise BadInput(f"{name}: the option {key} has no value, which fio requires.", item=name, option=key)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise BadInput(f"{name}: the option {key} needs a text or a number, not {abbreviated(value)}.", item=name, option=key)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{name}: the option {key} is {value}, which fio does not accept.", item=name, option=key)
    text = str(value).strip()
    if _FORBIDDEN.search(text):
        raise BadInput(
            f"{name}: the value of {key} must not contain line breaks, control characters, ';', '#' or '$': fio would not read it as it stands.",
            item=name,
            option=key,
            value=text,
        )
    reason = objection(canonical(key), text)
    if reason is not None:
        raise BadInput(f"{name}: {key}={abbreviated(text)[1:-1]} {reason}.", item=name, option=key, value=text)
    return text


def _lines(options: t.Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(key if value is None else f"{key}={value}" for key, value in options.items())


def _check_sections(job: Job, name: str) -> None:
    before: set[str] = set()
    for section in job.sections:
        engine = section.value("ioengine") or "psync"
        for option in section.options:
            if needs_engine(option, engine):
                raise BadInput(f"{name}: the option {option} does not exist for ioengine={engine} in the job {section.name}.", item=name, option=option)
        check_times(section, name)
        waits = section.value("wait_for")
        if waits is not None and waits not in before:
            raise BadInput(
                f"{name}: wait_for={waits} of the job {section.name} is not the name of a job before it, which fio requires.",
                item=name,
                option="wait_for",
                value=waits,
            )
        before.add(section.name)
        _require_alone(section, engine, name)
    if job.threads > MAXIMUM_JOBS:
        raise BadInput(f"{name}: numjobs adds up to {job.threads}, but fio runs at most {MAXIMUM_JOBS} jobs.", item=name, option="numjobs")


def _require_alone(section: Section, engine: str, name: str) -> None:
    """:raises BadInput: if a section that replays has options or an engine that would do other I/O than its log."""
    if section.replay is None:
        return
    others = [option for option in section.options if canonical(option) not in replay.BESIDE and option != replay.LOG]
    if others or engine in replay.ENGINES_NOT_FOR_REPLAY:
        what = f"the option {others[0]}" if others else f"ioengine={engine}"
        raise BadInput(
            f"{name}: {what} is not supported together with {replay.LOG} in the job {section.name}.", item=name, option=others[0] if others else "ioengine"
        )


def _escaped_path(path: str) -> str:
    """A colon separates file names in fio unless it is escaped; blanks at the end are dropped, so that another file would be used."""
    if _FORBIDDEN.search(path) or "\\" in path or path != path.strip() or len(path.encode()) > _LONGEST_PATH:
        raise BadInput(f"The path {path!r} contains characters that a fio job file cannot carry.", item=path)
    return path.replace(":", "\\:")
