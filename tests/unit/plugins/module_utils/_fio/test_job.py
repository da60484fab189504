# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target_facts import Target, TargetFacts

DEVICE = TargetFacts(target=Target("/dev/vg0/scratch"), path="/dev/dm-3", size=10**9)


def read(job, name="cell"):
    return fio_job.read_job(job, name)


def test_the_file_keeps_the_words_and_the_order_of_the_user():
    job = read(
        {"global": {"ioengine": "libaio", "direct": 1}, "jobs": [{"name": "b", "rw": "randwrite", "bs": "4k"}, {"name": "a", "rw": "read", "stonewall": True}]}
    )
    assert fio_job.render(job, DEVICE) == (
        "[global]\n"
        "ioengine=libaio\n"
        "direct=1\n"
        "; added by cachefleet.storage\n"
        "filename=/dev/dm-3\n"
        "allow_file_create=0\n"
        "exitall_on_error\n"
        "percentile_list=50:90:95:99:99.9:99.99\n"
        "\n[b]\nrw=randwrite\nbs=4k\n"
        "\n[a]\nrw=read\nstonewall\n"
    )


def test_the_short_form_has_one_section_called_like_the_cell():
    text = fio_job.render(read({"rw": "read"}, "randread-4k"), DEVICE)
    assert text.endswith("\n[randread-4k]\nrw=read\n")


def test_flags_and_booleans():
    job = read({"rw": "read", "time_based": True, "group_reporting": None, "thread": False, "direct": True, "invalidate": False, "norandommap": 1})
    assert job.section_lines[0][1] == ("rw=read", "time_based", "group_reporting", "direct=1", "invalidate=0", "norandommap")


def test_what_the_collection_adds_is_little_and_yields_to_the_user():
    assert "percentile_list=50:90:95" not in fio_job.render(read({"rw": "read", "percentile_list": "99"}), DEVICE)
    sized = TargetFacts(target=Target("/dev/sdb", size=4096), path="/dev/sdb", size=10**9)
    assert "\nsize=4096\n" in fio_job.render(read({"rw": "read"}), sized)
    assert "write_iops_log=series" in fio_job.render(read({"rw": "read"}), DEVICE, series="series")
    plain = TargetFacts(target=Target("/data/f", kind="file"), path="/data/f", size=8192)
    assert "size=8192" in fio_job.render(read({"rw": "read"}), plain)
    assert "allow_file_create" not in fio_job.render(read({"rw": "read"}), plain)


def test_colons_of_a_path_are_escaped():
    odd = TargetFacts(target=Target("/x"), path="/data/a:b", size=1)
    assert "filename=/data/a\\:b\n" in fio_job.render(read({"rw": "read"}), odd)
    with pytest.raises(BadInput, match="cannot carry"):
        fio_job.render(read({"rw": "read"}), TargetFacts(target=Target("/x"), path="/data/a#b", size=1))


@pytest.mark.parametrize(
    "key",
    [
        *("filename", "directory", "filename_format", "exec_prerun", "exec_postrun", "write_lat_log", "write_iolog", "read_iolog", "replay_redirect"),
        *("include", "allow_mounted_write", "allow_file_create", "ioscheduler", "unlink", "output", "profile", "cgroup"),
    ],
)
def test_options_that_the_guard_owns_are_refused_by_name(key):
    for job in ({"rw": "read", key: "x"}, {"global": {key: "x"}, "jobs": [{"name": "a", "rw": "read"}]}):
        with pytest.raises(BadInput, match=f"option {key} is refused"):
            read(job)


@pytest.mark.parametrize("value", ["4k\nfilename=/dev/sda", "a;b", "a#b", "$pagesize", "${HOME}", "a\x00b", "\x1b[2J"])
def test_values_that_fio_would_read_otherwise(value):
    with pytest.raises(BadInput, match="must not contain"):
        read({"rw": "read", "description": value})


@pytest.mark.parametrize("value", [["4k"], {"a": 1}, "", None])
def test_values_that_are_no_text(value):
    with pytest.raises(BadInput, match="needs a text or a number"):
        read({"rw": "read", "bs": value})


@pytest.mark.parametrize("engine", ["rbd", "external:/tmp/x.so", "net", "exec", "io_uring_cmd", "filecreate", "nbd"])
def test_engines_that_do_not_work_on_the_path(engine):
    with pytest.raises(BadInput, match="guard can only answer"):
        read({"rw": "read", "ioengine": engine})


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({}, "must be a dictionary"),
        ("rw=read", "must be a dictionary"),
        ({"jobs": []}, "at least one job"),
        ({"jobs": [{"rw": "read"}]}, "needs a name"),
        ({"jobs": [{"name": "x]\n[y", "rw": "read"}]}, "needs a name"),
        ({"jobs": [{"name": "global", "rw": "read"}]}, "needs a name"),
        ({"jobs": [{"name": "a", "rw": "read"}, {"name": "a", "rw": "read"}]}, "two jobs are called a"),
        ({"jobs": [{"name": "a"}], "rw": "read"}, "no other keys: rw"),
        ({"rw": "wirte"}, "rw=wirte is none of"),
        ({"rw": "read", "b s": 1}, "not the name of a fio option"),
        ({"rw": "read", "bs=4k\nx": 1}, "not the name of a fio option"),
        ({"rw": "read", "runtime": "soon"}, "runtime: 'soon' is not a time"),
        ({"rw": "read", "iomem": "mmap:/etc/passwd"}, "write the buffers into a file"),
    ],
)
def test_what_is_no_job(job, words):
    with pytest.raises(BadInput, match=words):
        read(job)


@pytest.mark.parametrize(
    ("mode", "writes", "directions"),
    [
        ("read", False, {"read"}),
        ("randread", False, {"read"}),
        ("randread:4", False, {"read"}),
        ("write", True, {"write"}),
        ("randwrite:8", True, {"write"}),
        ("rw", True, {"read", "write"}),
        ("readwrite", True, {"read", "write"}),
        ("randrw", True, {"read", "write"}),
        ("trim", True, {"trim"}),
        ("randtrim", True, {"trim"}),
        ("trimwrite", True, {"trim", "write"}),
        ("randtrimwrite", True, {"trim", "write"}),
    ],
)
@pytest.mark.parametrize("key", ["rw", "readwrite"])
def test_who_writes(key, mode, writes, directions):
    for job in (read({key: mode}), read({"global": {key: mode}, "jobs": [{"name": "a"}]})):
        assert job.writes is writes
        assert job.sections[0].directions == directions


def test_one_writing_section_makes_a_writing_job():
    assert read({"jobs": [{"name": "a", "rw": "read"}, {"name": "b", "rw": "randtrim"}]}).writes
    assert not read({"jobs": [{"name": "a"}]}).writes, "fio reads when nothing is said"


def test_mixes_of_one_hundred_percent():
    assert read({"rw": "randrw", "rwmixread": 100}).sections[0].directions == {"read"}
    assert read({"rw": "randrw", "rwmixwrite": 100}).sections[0].directions == {"write"}
    assert read({"rw": "randrw", "unified_rw_reporting": 1}).sections[0].directions == {"mixed"}


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1m", 60), ("500ms", 0.5), ("2h", 7200), ("1.5s", 1.5)])
def test_times(text, seconds):
    assert fio_job.parse_time(text) == seconds


def test_how_long_it_may_take():
    timed = {"time_based": True, "runtime": "10s", "ramp_time": 5}
    assert read({"rw": "read", **timed}).longest == 15
    assert read({"rw": "read", **timed}).sections[0].asked_runtime == 10
    assert read({"rw": "read", "runtime": 10}).sections[0].asked_runtime is None, "it may end when its size is done"
    assert read({"rw": "read"}).longest is None
    together = {"global": timed, "jobs": [{"name": "a", "rw": "read"}, {"name": "b", "rw": "write", "startdelay": "1-5"}]}
    assert read(together).longest == 20
    one_by_one = {"global": timed, "jobs": [{"name": "a", "rw": "read"}, {"name": "b", "rw": "write", "stonewall": True}]}
    assert read(one_by_one).longest == 30


def test_sizes_are_said_once():
    fio_job.check_target(read({"rw": "read", "size": "1G"}), "device", None, "cell")
    with pytest.raises(BadInput, match="both the job and its target"):
        fio_job.check_target(read({"rw": "read", "size": "1G"}), "device", 4096, "cell")
    with pytest.raises(BadInput, match="give its target a size"):
        fio_job.check_target(read({"rw": "read", "size": "1G"}), "file", None, "cell")


def test_a_workload_is_the_same_wherever_it_runs():
    assert read({"rw": "read", "bs": "4k"}).workload_sha256 == read({"rw": "read", "bs": "4k"}).workload_sha256
    assert read({"rw": "read", "bs": "4k"}).workload_sha256 != read({"rw": "read", "bs": "8k"}).workload_sha256
