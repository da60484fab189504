# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the fio of a host can do: which release has which option, and which of the collection's own additions it lacks.

Sources: fio's ``HOWTO`` and ``options.c`` of the releases, and where those of every release were not at hand, its commits (git.kernel.dk),
its threads (github.com/axboe/fio) and its mailing list, named in the table. fio has no list of changes, so the table holds only what a
campaign is likely to use; everything else is left to the fio of the host itself, which reads every job file before anything runs. So
where a date leaves two releases possible the table has the earlier one: nothing is refused that would work.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section

#: The oldest version whose JSON is understood and that dumps its state while it runs.
MINIMUM = Version(2, 1)

#: From here on nothing that the collection adds is missing: fio need not be queried.
COMPLETE = Version(3, 1)

#: Since when ``--output-format=json+`` has bins, without which percentiles of several jobs or hosts cannot be put together.
BINS = Version(2, 2, 12)

#: Since when logs of I/O have times (format version 3). From patches of April 2022, after 3.30.
TIMED_LOGS = Version(3, 31)

#: Options that came, or became right, in a release that hosts may not have yet.
SINCE: t.Mapping[str, Version] = {
    **dict.fromkeys(("latency_target", "latency_window", "latency_percentile"), Version(2, 1, 5)),
    **dict.fromkeys(("steadystate", "ss", "steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp"), Version(2, 16)),
    # Commit 1a9bf814 of 6 December 2017, two days after issue 497 requested it on 3.2.
    "rate_ignore_thinktime": Version(3, 3),
    "slat_percentiles": Version(3, 18),
    "latency_run": Version(3, 20),
    # Commit 33f42c20 of 26 January 2021, between 3.25 and 3.26.
    "thinktime_blocks_type": Version(3, 26),
    # Commit f7942acd of 6 September 2021, the days of 3.28.
    "thinktime_iotime": Version(3, 28),
    # Not in 3.33 (--cmdhelp).
    "num_range": Version(3, 34),
    "ss_interval": Version(3, 35),
    "steadystate_check_interval": Version(3, 35),
    # With job_start in the report, which 3.36 has first (issue 1544, pull request 1617).
    "job_start_clock_id": Version(3, 36),
    # On the mailing list as a change of 22 August 2025, after 3.40.
    "sprandom": Version(3, 41),
    "end_syncfs": Version(3, 42),
}

#: Values that came later than their option.
_VALUES: tuple[tuple[tuple[str, ...], tuple[str, ...], Version], ...] = (
    (("unified_rw_reporting",), ("both", "2"), Version(3, 27)),
    (("steadystate", "ss"), ("lat", "lat_slope"), Version(3, 42)),
    (("ioengine",), ("io_uring",), Version(3, 13)),
    # zonedstorage.io, fio overview.
    (("zonemode",), ("zbd",), Version(3, 9)),
)

#: Options that take a percentage later than a number. Issue 419 requests that of io_size on 3.2, and names the commit, 8b38f401.
_PERCENTAGES: tuple[tuple[tuple[str, ...], Version], ...] = ((("io_size", "io_limit"), Version(3, 3)),)

#: What the collection adds to a job file by itself; a fio that lacks one goes without.
ADDED = ("allow_file_create", "exitall_on_error", "percentile_list", "log_avg_msec", "log_unix_epoch", "per_job_logs", "exec_prerun")


class TooOld(StorageError):
    """The fio of the host lacks something that is needed."""

    kind = "too_old"


@frozen
class Abilities:
    """What of the collection's own additions the fio of a host takes.

    :param bins: whether it writes histograms.
    :param without: names of :data:`ADDED` that it lacks.
    """

    bins: bool = True
    without: frozenset[str] = frozenset()

    @property
    def output_format(self) -> str:
        return "json+" if self.bins else "json"


def read_abilities(runner: Runner, version: Version) -> Abilities:
    """Which options an old fio has; a newer one has all."""
    if version >= COMPLETE:
        return Abilities()
    return Abilities(version >= BINS, frozenset(option for option in ADDED if not has_option(runner, option)))


def has_option(runner: Runner, option: str) -> bool:
    """Whether fio has an option: ``--cmdhelp`` ends with 0 for one that it does not have, too."""
    completed = runner.run(["fio", f"--cmdhelp={option}"], ok=None, item=option)
    help_text = completed.stdout + completed.stderr
    return completed.rc == 0 and option in help_text and "No such command" not in help_text


def check_version(version: Version, jobs: t.Iterable[Job]) -> None:
    """:raises StorageError: if fio on the host is too old for the collection or for an option of a job."""
    if version < MINIMUM:
        raise TooOld(
            f"fio {version} on this host is too old: {MINIMUM} or newer is needed, because earlier versions do not write reliable JSON. "
            "Install a newer package fio."
        )
    for job in jobs:
        for section in job.sections:
            _check_section(version, section)


def _check_section(version: Version, section: Section) -> None:
    for option, since in SINCE.items():
        if option in section.options and version < since:
            raise TooOld(f"fio {version} on this host is too old for the option {option} of the job {section.name}: {since} or newer is needed.")
    for options, values, since in _VALUES:
        value = (section.value(*options) or "").split(":")[0]
        if value in values and version < since:
            raise TooOld(f"fio {version} on this host is too old for {options[0]}={value} of the job {section.name}: {since} or newer is needed.")
    for options, since in _PERCENTAGES:
        if (section.value(*options) or "").endswith("%") and version < since:
            raise TooOld(f"fio {version} on this host is too old for {options[0]} in percent of the job {section.name}: {since} or newer is needed.")
    if section.replay is not None and section.replay.seconds is not None and version < TIMED_LOGS:
        raise TooOld(
            f"fio {version} on this host is too old for the times in the log of the job {section.name}: {TIMED_LOGS} or newer is needed, "
            "or replay_no_stall: true next to read_iolog."
        )


def notes_on(version: Version, abilities: Abilities) -> tuple[str, ...]:
    """What the age of fio means for what it measures, as sentences for the notes of each cell."""
    found = []
    if not abilities.bins:
        found.append(
            f"fio {version} writes no histograms: the percentiles of this cell are fio's own and cannot be put together with those of other jobs or hosts; "
            f"{BINS} or newer writes them."
        )
    if "log_unix_epoch" in abilities.without:
        found.append(f"fio {version} cannot write the time of day into its series: their times count from the start of the job.")
    return tuple(found)
