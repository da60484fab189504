# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import versions
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


def read(job):
    return read_job(job, "cell")


def test_fio_without_json_support_is_too_old():
    with pytest.raises(versions.TooOld, match=r"fio 2\.0\.15 on this host is too old: 2\.1 or newer is needed"):
        versions.check_version(Version(2, 0, 15), [])
    versions.check_version(Version(2, 1), [read({"rw": "read"})])


@pytest.mark.parametrize(
    ("job", "version", "words"),
    [
        ({"latency_run": 1}, Version(3, 19), r"too old for the option latency_run of the job cell: 3\.20"),
        ({"latency_target": "5ms"}, Version(2, 1, 4), r"option latency_target .* 2\.1\.5 or newer"),
        ({"ss": "iops:5%"}, Version(2, 14), r"option ss .* 2\.16"),
        ({"steadystate": "lat:5%"}, Version(3, 41), r"steadystate=lat .* 3\.42"),
        ({"unified_rw_reporting": "both"}, Version(3, 26), r"unified_rw_reporting=both .* 3\.27"),
        ({"ioengine": "io_uring"}, Version(3, 12), r"ioengine=io_uring .* 3\.13"),
        ({"end_syncfs": 1}, Version(3, 41), r"end_syncfs .* 3\.42"),
        ({"rate_ignore_thinktime": 1}, Version(3, 2), r"rate_ignore_thinktime .* 3\.3 or newer"),
        ({"thinktime_blocks_type": "issue"}, Version(3, 25), r"thinktime_blocks_type .* 3\.26"),
        ({"thinktime_iotime": "1s"}, Version(3, 27), r"thinktime_iotime .* 3\.28"),
        ({"num_range": 8}, Version(3, 33), r"num_range .* 3\.34"),
        ({"job_start_clock_id": 1}, Version(3, 35), r"job_start_clock_id .* 3\.36"),
        ({"sprandom": 1}, Version(3, 40), r"sprandom .* 3\.41"),
        ({"zonemode": "zbd"}, Version(3, 8), r"zonemode=zbd .* 3\.9"),
        ({"io_size": "50%"}, Version(3, 2), r"io_size in percent of the job cell: 3\.3 or newer"),
    ],
)
def test_unsupported_option_error_names_the_required_version(job, version, words):
    with pytest.raises(versions.TooOld, match=words):
        versions.check_version(version, [read({"rw": "read", **job})])
    versions.check_version(Version(3, 42), [read({"rw": "read", **job})])


@pytest.mark.parametrize("job", [{"io_size": "50m"}, {"zonemode": "strided"}, {"rw": "randread", "norandommap": 1, "percentage_random": 50}])
def test_options_of_an_old_fio_are_accepted(job):
    versions.check_version(Version(2, 2, 12), [read({"rw": "read", **job})])


def test_options_of_installed_fio_are_accepted():
    runner = Runner()
    if not runner.has("fio"):
        pytest.skip("this machine has no fio")
    version = fio_run.read_version(runner)
    wrong = [option for option, since in versions.SINCE.items() if version < since and versions.has_option(runner, option)]
    assert wrong == []


def test_old_fio_is_queried_for_its_options():
    runner = ScriptedRunner(
        {
            ("fio",): lambda words: Reply(f"{words[1].split('=')[1]}: some option\n"),
            ("fio", "--cmdhelp=log_unix_epoch"): Reply(stderr="No such command: log_unix_epoch\n"),
            ("fio", "--cmdhelp=exitall_on_error"): Reply(rc=1),
        }
    )
    found = versions.read_abilities(runner, Version(2, 2, 10))
    assert found.without == {"log_unix_epoch", "exitall_on_error"}
    assert (found.bins, found.output_format) == (False, "json")
    (bins, epoch) = versions.notes_on(Version(2, 2, 10), found)
    assert "no histograms" in bins and "count from the start" in epoch


def test_new_fio_is_not_queried():
    runner = ScriptedRunner({})
    found = versions.read_abilities(runner, Version(3, 1))
    assert found == versions.Abilities() and found.output_format == "json+" and not runner.calls
    assert versions.notes_on(Version(3, 1), found) == ()
