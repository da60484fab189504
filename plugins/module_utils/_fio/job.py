# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A fio job as a dictionary, and the job file that is sent.

The file says what the user said, in the user's order, and a few lines of the collection's own, under a comment. Whatever
would take the target out of the guard's hands (another file name, another engine, a command) is refused by name.

Source: fio's ``HOWTO``, ``options.c`` and ``init.c``: a line is cut at ``;`` and ``#``, ``${NAME}`` is taken from the
environment, and a value with ``$`` keywords is calculated by a shell command; none of the three can be escaped.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target_facts import TargetFacts

#: Options without a value (``FIO_OPT_STR_SET``). ``true`` for any other option is written as 1, ``false`` as 0.
FLAGS = frozenset(
    {
        "bs_unaligned",
        "blocksize_unaligned",
        "exitall",
        "exitall_on_error",
        "fixedbufs",
        "group_reporting",
        "hipri",
        "new_group",
        "norandommap",
        "refill_buffers",
        "registerfiles",
        "sqthread_poll",
        "stonewall",
        "thread",
        "time_based",
        "userspace_reap",
        "verify_only",
        "wait_for_previous",
        "zero_buffers",
    }
)

#: Engines that do their I/O through the file name that the guard has examined, and nowhere else.
ENGINES = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "sg", "null"})

_OWNED_BY_THE_GUARD = "the target says where the job runs"
_RUNS_COMMANDS = "it runs a command on the host"
_WRITES_FILES = "it writes or reads files of its own choice"
#: Why an option is refused.
REFUSED: t.Mapping[str, str] = {
    **dict.fromkeys(("filename", "directory", "filename_format", "unique_filename", "opendir", "nrfiles", "openfiles", "name"), _OWNED_BY_THE_GUARD),
    **dict.fromkeys(("include", "profile"), "everything that runs must be in the job itself"),
    **dict.fromkeys(("exec_prerun", "exec_postrun", "program", "arguments", "grow_pid", "std_redirect"), _RUNS_COMMANDS),
    **dict.fromkeys(
        (
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "write_iolog",
            "read_iolog",
            "merge_blktrace_file",
            "replay_redirect",
            "verify_state_load",
            "lockfile",
            "output",
            "output-format",
            "cgroup",
            "cgroup_root",
        ),
        _WRITES_FILES,
    ),
    **dict.fromkeys(("allow_mounted_write", "allow_file_create", "create_only", "readonly"), "the guard decides what may be written"),
    **dict.fromkeys(("unlink", "unlink_each_loop"), "the collection never removes a target"),
    "ioscheduler": "it changes the block queue and does not change it back; the role block_queue does",
    "exitall_on_error": "it is always set",
}

#: What fio itself calls reading; every other value of ``rw`` writes or trims.
_READING = frozenset({"read", "randread"})
_DIRECTIONS: t.Mapping[str, tuple[str, ...]] = {
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
_SECTION = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._ +-]{0,63}$")
_KEY = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*$")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f;#$]")
_TIME = re.compile(r"^(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)?$")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: With more threads than this all write into the same series.
_OWN_LOGS = 16

_TIMES = ("runtime", "timeout", "ramp_time", "startdelay", "start_delay")


@dataclass(frozen=True)
class Section:
    """One job of the file. ``options`` are rendered texts, ``None`` for a flag; those of the global section are merged in."""

    name: str
    options: t.Mapping[str, str | None]

    def value(self, *names: str) -> str | None:
        """The last value under any of the names (an option and its alias)."""
        found = [value for name, value in self.options.items() if name in names]
        return found[-1] if found else None

    @property
    def directions(self) -> frozenset[str]:
        """In which directions I/O must be seen afterwards."""
        mode = (self.value("rw", "readwrite") or "read").split(":")[0]
        directions = set(_DIRECTIONS.get(mode, ()))
        if directions == {"read", "write"}:
            # A mix of 100 % leaves one direction without I/O.
            if self.value("rwmixread") == "100" or self.value("rwmixwrite") == "0":
                directions = {"read"}
            if self.value("rwmixwrite") == "100" or self.value("rwmixread") == "0":
                directions = {"write"}
        unified = self.value("unified_rw_reporting")
        return frozenset({"mixed"}) if unified in ("1", "mixed") else frozenset(directions)

    @property
    def asked_runtime(self) -> float | None:
        """Seconds that the measurement must last; ``None`` if it may end by itself earlier."""
        if "time_based" not in self.options or self.options["time_based"] == "0" or self.value("number_ios"):
            return None
        return self._seconds("runtime", "timeout")

    @property
    def longest(self) -> float | None:
        """Seconds after which it must have ended, ramp and delay included; ``None`` if nothing limits it."""
        runtime = self._seconds("runtime", "timeout")
        if runtime is None:
            return None
        return runtime + sum(self._seconds(name) or 0.0 for name in _TIMES[2:])

    def _seconds(self, *names: str) -> float | None:
        value = self.value(*names)
        return None if value is None else parse_time(_end_of_range(value))


@dataclass(frozen=True)
class Job:
    """A checked job: its sections, and the lines of the user in their order."""

    sections: tuple[Section, ...]
    global_lines: tuple[str, ...]
    section_lines: tuple[tuple[str, tuple[str, ...]], ...]
    has_percentiles: bool

    @property
    def writes(self) -> bool:
        """Whether any section may change its target; what fio would not call reading writes."""
        return any((section.value("rw", "readwrite") or "read").split(":")[0] not in _READING for section in self.sections)

    @property
    def longest(self) -> float | None:
        """Seconds until everything must have ended: phases behind a stonewall one after the other."""
        phases: list[float] = []
        for number, section in enumerate(self.sections):
            if section.longest is None:
                return None
            alone = any(name in section.options and section.options[name] != "0" for name in ("stonewall", "wait_for_previous"))
            if number == 0 or alone:
                phases.append(section.longest)
            else:
                phases[-1] = max(phases[-1], section.longest)
        return sum(phases)

    @property
    def block_size(self) -> int | None:
        """Bytes of every I/O; ``None`` if they are not all of one size. fio before 2.1.14 does not count its I/Os."""
        found = set()
        for section in self.sections:
            if any(name in section.options for name in ("bssplit", "bsrange", "blocksize_range")):
                return None
            found.add(section.value("bs", "blocksize") or "4k")
        try:
            return parse_size(found.pop()) if len(found) == 1 else None
        except BadInput:
            return None

    @property
    def is_buffered(self) -> bool:
        """Whether any section may be served from the page cache."""
        return any(section.value("direct") in (None, "0") and section.value("buffered") != "0" for section in self.sections)

    @property
    def threads(self) -> int:
        """How many processes or threads measure."""
        counts = [section.value("numjobs") or "1" for section in self.sections]
        return sum(int(count) if count.isdigit() else 1 for count in counts)

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(sorted({section.value("ioengine") or "psync" for section in self.sections}))

    @property
    def workload_sha256(self) -> str:
        """What tells two workloads apart whatever they run on."""
        text = "\n".join((*self.global_lines, *(line for name, lines in self.section_lines for line in (f"[{name}]", *lines))))
        return hashlib.sha256(text.encode()).hexdigest()


def read_job(job: t.Any, name: str) -> Job:
    """Check a job as a user writes it: ``{global: {…}, jobs: [{name: …, …}]}``, or the options of one section.

    :param name: of the cell; the section of the short form is called so.
    :raises BadInput: naming the option that is wrong or refused.
    """
    if not isinstance(job, dict) or not job:
        raise BadInput(f"{name}: the job must be a dictionary of fio options, or one with the keys global and jobs.", item=name)
    nested = "jobs" in job or "global" in job
    if nested and set(job) - {"global", "jobs"}:
        raise BadInput(f"{name}: beside global and jobs a job has no other keys: {', '.join(sorted(map(str, set(job) - {'global', 'jobs'})))}.", item=name)
    common = _options(job.get("global") or {}, name, "global") if nested else {}
    rows = job.get("jobs") if nested else [{"name": _section_name(name), **job}]
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{name}: jobs must be a list with at least one job.", item=name)
    sections: dict[str, dict[str, str | None]] = {}
    for row in rows:
        if not isinstance(row, dict) or not _SECTION.match(str(row.get("name", ""))) or str(row["name"]) == "global":
            raise BadInput(f"{name}: every job needs a name of letters, digits, blanks and ._+- that is not 'global': {row!r}", item=name)
        if str(row["name"]) in sections:
            raise BadInput(f"{name}: two jobs are called {row['name']}.", item=name)
        sections[str(row["name"])] = _options({key: value for key, value in row.items() if key != "name"}, name, str(row["name"]))
    checked = Job(
        sections=tuple(Section(title, {**common, **own}) for title, own in sections.items()),
        global_lines=_lines(common),
        section_lines=tuple((title, _lines(own)) for title, own in sections.items()),
        has_percentiles=any("percentile_list" in own for own in (common, *sections.values())),
    )
    _check_sections(checked, name)
    return checked


def render(job: Job, facts: TargetFacts, *, series: str | None = None, without: t.Container[str] = (), added: t.Sequence[str] = ()) -> str:
    """The job file for a target that the guard has examined.

    :param series: the prefix of the log files of one-second averages, when they are wanted.
    :param without: options that the fio of the host lacks and that are left out.
    :param added: further lines of the runner's own.
    :raises BadInput: if the job sizes a target whose size the cell gives.
    """
    target = facts.target
    own = [f"filename={_escaped_path(facts.path)}"]
    if target.kind == "device":
        own.append("allow_file_create=0")
    size = target.size if target.size is not None or target.kind == "device" else facts.size
    if size is not None:
        own.append(f"size={size}")
    own.append("exitall_on_error")
    if not job.has_percentiles:
        own.append("percentile_list=50:90:95:99:99.9:99.99")
    if series is not None:
        own += ["log_avg_msec=1000", "log_unix_epoch=1", f"write_bw_log={series}", f"write_iops_log={series}", f"write_lat_log={series}"]
        # Five files for every thread would be hundreds: threads share them, and the rows of one second belong together.
        own += ["per_job_logs=0"] if job.threads > _OWN_LOGS else []
    own = [line for line in [*own, *added] if line.split("=", 1)[0] not in without]
    lines = ["[global]", *job.global_lines, "; added by cachefleet.storage", *own]
    for title, section in job.section_lines:
        lines += ["", f"[{title}]", *section]
    return "\n".join(lines) + "\n"


def check_target(job: Job, kind: str, size: int | None, name: str) -> None:
    """Whether the job's own sizes fit its target.

    :raises BadInput: if both give a size, or if the job sizes a plain file, which only its target may do.
    """
    for option in ("size", "filesize", "fill_device", "fill_fs", "offset", "file_append", "io_limit"):
        for section in job.sections:
            if option not in section.options:
                continue
            if kind == "file" and option != "offset":
                raise BadInput(f"{name}: {option} of a plain file is not set in the job: give its target a size.", item=name)
            if option == "size" and size is not None:
                raise BadInput(f"{name}: both the job and its target have a size; keep one of them.", item=name)


def parse_time(text: str) -> float:
    """fio's times, as seconds: ``30``, ``1m``, ``500ms``.

    :raises BadInput: if it is no time.
    """
    match = _TIME.match(text.strip().lower())
    if not match:
        raise BadInput(f"'{text}' is not a time: write seconds, or a number with us, ms, s, m, h or d.")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def _section_name(name: str) -> str:
    return name if _SECTION.match(name) and name != "global" else "cell"


def _options(options: t.Any, name: str, section: str) -> dict[str, str | None]:
    """Options as texts; ``None`` is a flag. A flag that is false is left out."""
    if not isinstance(options, dict):
        raise BadInput(f"{name}: the section {section} must be a dictionary of fio options.", item=name)
    found: dict[str, str | None] = {}
    for key, value in options.items():
        key = str(key)
        if key in REFUSED and not (key == "exitall_on_error" and value):
            raise BadInput(f"{name}: the option {key} is refused in a job: {REFUSED[key]}.", item=name, option=key)
        if not _KEY.match(key):
            raise BadInput(f"{name}: '{key[:60]}' is not the name of a fio option.", item=name)
        if key == "exitall_on_error" or (key in FLAGS and (value is False or str(value) == "0")):
            continue
        found[key] = _text(key, value, name)
    return found


def _text(key: str, value: t.Any, name: str) -> str | None:
    if key in FLAGS and (value is None or value is True or str(value) in ("1", "")):
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, (str, int, float)) or value == "":
        raise BadInput(f"{name}: the option {key} needs a text or a number, not {value!r}.", item=name, option=key)
    text = str(value).strip()
    if _FORBIDDEN.search(text):
        raise BadInput(
            f"{name}: the value of {key} must not contain line breaks, control characters, ';', '#' or '$': fio would not read it as it stands.",
            item=name,
            option=key,
        )
    return text


def _lines(options: t.Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(key if value is None else f"{key}={value}" for key, value in options.items())


def _check_sections(job: Job, name: str) -> None:
    for section in job.sections:
        engine = section.value("ioengine") or "psync"
        if engine not in ENGINES:
            known = ", ".join(sorted(ENGINES))
            raise BadInput(
                f"{name}: ioengine={engine} is refused: the guard can only answer for engines that use the file name of the target ({known}).",
                item=name,
                option="ioengine",
            )
        for option in ("mem", "iomem"):
            value = section.value(option)
            if value and "/" in value:
                raise BadInput(f"{name}: {option}={value} is refused: it would write the buffers into a file.", item=name, option=option)
        mode = (section.value("rw", "readwrite") or "read").split(":")[0]
        if mode not in _DIRECTIONS:
            raise BadInput(f"{name}: rw={mode} is none of {', '.join(sorted(_DIRECTIONS))}.", item=name, option="rw")
        for option in _TIMES:
            value = section.value(option)
            if value is not None:
                try:
                    parse_time(_end_of_range(value))
                except BadInput as error:
                    raise BadInput(f"{name}: {option}: {error.message}", item=name, option=option) from None


def _end_of_range(value: str) -> str:
    """A range of start delays (``1-5``) is as long as its end."""
    return value.split("-")[-1].split(",")[-1]


def _escaped_path(path: str) -> str:
    """A colon separates file names in fio unless it is escaped."""
    if _FORBIDDEN.search(path) or "\\" in path:
        raise BadInput(f"The path {path!r} contains characters that a fio job file cannot carry.", item=path)
    return path.replace(":", "\\:")
