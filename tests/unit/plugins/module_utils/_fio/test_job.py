# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import sections
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import block_sizes
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

DEVICE = TargetFacts(target=GuardTarget("/dev/vg0/scratch"), path="/dev/dm-3", size=10**9)


def read(job, name="cell"):
    return fio_job.read_job(job, name)


def test_job_file_keeps_user_options_and_order():
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


def test_short_form_has_one_section_named_after_the_cell():
    text = fio_job.render(read({"rw": "read"}, "randread-4k"), DEVICE)
    assert text.endswith("\n[randread-4k]\nrw=read\n")


def test_flags_and_booleans():
    job = read({"rw": "read", "time_based": True, "group_reporting": None, "thread": False, "direct": True, "invalidate": False, "norandommap": 1})
    assert job.section_lines[0][1] == ("rw=read", "time_based", "group_reporting", "direct=1", "invalidate=0", "norandommap")


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(
    "key", ["bs", "blocksize", "numjobs", "iodepth", "runtime", "timeout", "size", "rw", "rwmixread", "thinktime", "fsync", "rate", "loops"]
)
def test_options_that_count_are_neither_true_nor_false(key, value):
    with pytest.raises(BadInput, match=rf"the option {key} needs a text or a number, not {value}"):
        read({"rw": "read", key: value} if key != "rw" else {"rw": value})


@pytest.mark.parametrize("key", ["direct", "fill_device", "file_append", "sprandom", "sync", "end_fsync", "randrepeat", "unified_rw_reporting"])
def test_options_of_0_and_1_may_be_true_or_false(key):
    assert [read({"rw": "read", key: value}).sections[0].value(key) for value in (True, False)] == ["1", "0"]


def test_user_options_override_added_options():
    assert "percentile_list=50:90:95" not in fio_job.render(read({"rw": "read", "percentile_list": "99"}), DEVICE)
    sized = TargetFacts(target=GuardTarget("/dev/sdb", size=4096), path="/dev/sdb", size=10**9)
    assert "\nsize=4096\n" in fio_job.render(read({"rw": "read"}), sized)
    assert "write_iops_log=series" in fio_job.render(read({"rw": "read"}), DEVICE, series="series")
    plain = TargetFacts(target=GuardTarget("/data/f", kind="file"), path="/data/f", size=8192)
    assert "size=8192" in fio_job.render(read({"rw": "read"}), plain)
    assert "allow_file_create" not in fio_job.render(read({"rw": "read"}), plain)


def test_colons_in_paths_are_escaped():
    odd = TargetFacts(target=GuardTarget("/x"), path="/data/a:b", size=1)
    assert "filename=/data/a\\:b\n" in fio_job.render(read({"rw": "read"}), odd)
    with pytest.raises(BadInput, match="cannot carry"):
        fio_job.render(read({"rw": "read"}), TargetFacts(target=GuardTarget("/x"), path="/data/a#b", size=1))


@pytest.mark.parametrize(
    "key",
    [
        *("filename", "directory", "filename_format", "exec_prerun", "exec_postrun", "write_iolog", "read_iolog", "replay_redirect"),
        *("include", "allow_mounted_write", "allow_file_create", "ioscheduler", "unlink", "output", "profile", "cgroup"),
    ],
)
def test_reserved_options_are_rejected_by_name(key):
    for job in ({"rw": "read", key: "x"}, {"global": {key: "x"}, "jobs": [{"name": "a", "rw": "read"}]}):
        with pytest.raises(BadInput, match=f"option {key} is refused"):
            read(job)


@pytest.mark.parametrize("value", ["4k\nfilename=/dev/sda", "a;b", "a#b", "$pagesize", "${HOME}", "a\x00b", "\x1b[2J"])
def test_values_containing_fio_special_characters_are_rejected(value):
    with pytest.raises(BadInput, match="must not contain"):
        read({"rw": "read", "description": value})


@pytest.mark.parametrize("value", [["4k"], {"a": 1}, "", None])
def test_non_text_values_are_rejected(value):
    with pytest.raises(BadInput, match=r"needs a text or a number|bs has no value"):
        read({"rw": "read", "bs": value})


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ("external:/tmp/x.so", "guard can only check"),
        ("net", "it measures a network, not storage"),
        ("exec", "it runs a command on the host"),
        ("io_uring_cmd", "past the block layer"),
        ("filecreate", "does no I/O on the target"),
        ("nbd", "its data is on a server"),
    ],
)
def test_unsupported_engines_are_rejected_with_the_reason(engine, why):
    with pytest.raises(BadInput, match=f"ioengine={engine} .*{why}"):
        read({"rw": "read", "ioengine": engine})


def test_rbd_is_refused_with_the_reason_and_the_way_to_measure_an_image():
    with pytest.raises(BadInput, match=r"ioengine=rbd is refused: an image in a Ceph cluster is no device of this host.* map it \(rbd map\)") as caught:
        read({"rw": "read", "ioengine": "rbd"})
    assert caught.value.message.count(".") == 1


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({}, "must be a dictionary"),
        ("rw=read", "must be a dictionary"),
        ({"jobs": []}, "at least one job"),
        ({"jobs": [{"rw": "read"}]}, "needs a name"),
        ({"jobs": [{"name": "x]\n[y", "rw": "read"}]}, "needs a name"),
        *(({"jobs": [{"name": title, "rw": "read"}]}, "needs a name") for title in ("global", "global2", "globalfoo", "Global x", "x\n", True, None, [], {})),
        (
            {"jobs": [{"name": "a", "rw": "read"}, {"name": "a", "rw": "read"}, {"name": "b", "rw": "read", "wait_for": "a"}]},
            "b waits for a, which is the name of 2 sections",
        ),
        ({"jobs": [{"name": "a"}], "rw": "read"}, "no other keys: 'rw'"),
        ({"rw": "wirte"}, "rw=wirte must be one of"),
        ({"rw": "read", "b s": 1}, "not the name of a fio option"),
        ({"rw": "read", "bs=4k\nx": 1}, "not the name of a fio option"),
        ({"rw": "read", "runtime": "soon"}, "runtime: 'soon' is not a time"),
        ({"rw": "read", "iomem": "mmap:/etc/passwd"}, "write the buffers into a file"),
    ],
)
def test_invalid_jobs_are_rejected(job, words):
    with pytest.raises(BadInput, match=words):
        read(job)


def test_cell_name_starting_with_global_gets_another_section():
    assert "\n[cell]\nrw=write\n" in fio_job.render(read({"rw": "write"}, "global-4k"), DEVICE)


@pytest.mark.parametrize("key", ["Filename", "RW", "write-barrier", "io-size", "bogus", "filename ", "include /etc/x", "allow_mounted_write2"])
def test_unknown_options_are_rejected(key):
    with pytest.raises(BadInput, match=r"is not known to this collection|is not the name of a fio option"):
        read({"rw": "read", key: 1})


@pytest.mark.parametrize(
    "key",
    [
        *("uid", "gid", "cgroup_weight", "verify_dump", "dp_scheme", "filetype", "replay_scale", "aux_path", "donorname"),
        *("hostname", "rbdname", "cpuload", "uri", "cmd_type", "gpu_dev_id", "merge_blktrace_iters", "name"),
    ],
)
def test_options_selecting_files_users_or_hosts_are_rejected_by_every_name(key):
    with pytest.raises(BadInput, match=f"option {key} is refused"):
        read({"rw": "read", key: "x"})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rw", "readwrite"),
        ("bs", "blocksize"),
        ("runtime", "timeout"),
        ("io_size", "io_limit"),
        ("offset", "fileoffset"),
        ("mem", "iomem"),
        ("ba", "blockalign"),
    ],
)
def test_option_together_with_its_alias_is_rejected(first, second):
    for options in ({first: "read", second: "write"}, {second: "1", first: "2"}):
        with pytest.raises(BadInput):
            read({"jobs": [{"name": "a", **options}]})
    with pytest.raises(BadInput, match="rw and readwrite in the section cell are the same option"):
        read({"rw": "read", "readwrite": "write"})


def test_section_option_overrides_global_alias():
    job = read({"global": {"rw": "read", "timeout": 5}, "jobs": [{"name": "a", "readwrite": "write", "runtime": "1m", "time_based": True}]})
    assert job.writes
    assert job.sections[0].directions == {"write"}
    assert job.sections[0].asked_runtime == 60


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("numjobs", [0, -1, 4097, "1k", "0x10", "1-9", "", "1e3", 1.5]),
        ("iodepth", [0, -1, 65537, "4k", 10**30]),
        ("verify_async", [-1, 100000]),
        ("loops", [-1, 2**31]),
        ("size", ["1.5g", "-1", "1kib", "1mib", "(4k*2)", "0x1000", "4z", "101%", "150%", "1g,2g", "-10%", "1e9", 2**63 * 1.0]),
        ("offset", ["-4k", "10z", "4k:8k", "110%"]),
        ("offset_align", [0, "-4k", "00"]),
        ("bs", ["4kib", "-4k", "4k:8k", "1,2,3,4", "wide"]),
        ("bsrange", ["4k", "4k-", "4k-8k/1k-2k"]),
        ("bssplit", ["4k/50:", "x/50", "4k/50/1"]),
        ("filesize", ["1-2-3", "10%"]),
        ("kb_base", [1000]),
        ("rw", ["Read", "rw,read", "write:", "write:(4k)", "write:1.5k", "randread:4:5"]),
        ("zonemode", ["ZBD", "other"]),
        ("ioengine", ["external:/tmp/x", "libaio:/tmp/x", "Libaio", "sync,sg", "windowsaio"]),
        ("mem", ["mmap:/tmp/x", "mmaphuge:x", "mmapshared:NAME", "shmhuge:1", "cudamalloc", "mmap :x"]),
        ("buffer_pattern", ["'/etc/passwd'", '"abcd"', "0xff'x'", "a\\b"]),
        ("verify_pattern", ["'/etc/passwd'", "%o'/x'"]),
        ("cpus_allowed", ["0-3 ", "0,-3", "`x`"]),
        ("steadystate", ["iops:'x'"]),
        ("rate", ["-1", "1m,-2m", "1.5m"]),
        ("description", ["x" * 1025, "\u20ac" * 400, "a\ud800"]),
        ("thread", ["maybe", 2]),
        ("runtime", [float("inf"), float("nan"), "soon"]),
    ],
)
def test_misleading_or_target_escaping_values_are_rejected(key, values):
    for value in values:
        if value == "0-3 ":
            # Blanks around a value are taken away, as fio does.
            assert read({"rw": "read", key: value}).sections[0].value(key) == "0-3"
            continue
        with pytest.raises(BadInput):
            read({key: value})


@pytest.mark.parametrize(
    "options",
    [
        {"verify_pattern": "0xdeadbeef%o"},
        {"buffer_pattern": "0xff-12"},
        {"bssplit": "4k/60:64k/40,8k/100"},
        {"bsrange": "4k-64k,1k-2k"},
        {"bs": "4k,8k"},
        {"random_distribution": "zoned:60/10:30/20:8/30:2/40"},
        {"steadystate": "iops_slope:0.3%", "ss_dur": "30m"},
        {"cpus_allowed": "0-3,8"},
        {"percentile_list": "50:99:99.9"},
        {"nice": -5},
        {"mem": "shmhuge"},
        {"ioengine": "io_uring", "hipri": True, "fixedbufs": 1, "sqthread_poll_cpu": 2},
        {"ioengine": "libaio", "userspace_reap": True},
        {"rate_iops": "1000,500"},
        {"description": 'What it does, "quoted" and (more)'},
        {"iodepth_batch_complete": 4},
        {"ignore_error": "EIO,ENOSPC:122"},
        {"startdelay": "1-5"},
        {"hugepage-size": "2m"},
    ],
)
def test_plain_values_are_accepted(options):
    read({"rw": "randwrite", **options})


def test_engine_options_require_their_engine():
    with pytest.raises(BadInput, match="userspace_reap does not exist for ioengine=psync"):
        read({"rw": "read", "userspace_reap": True})
    with pytest.raises(BadInput, match="sg_write_mode does not exist for ioengine=libaio"):
        read({"rw": "read", "ioengine": "libaio", "sg_write_mode": "write"})


def test_engines_bypassing_the_block_layer_are_listed():
    assert read({"global": {"ioengine": "sg"}, "jobs": [{"name": "a"}, {"name": "b", "ioengine": "libaio"}]}).engines_past_the_block_layer == ("sg",)
    assert read({"rw": "read", "ioengine": "io_uring"}).engines_past_the_block_layer == ()


def test_total_processes_of_all_sections_are_limited():
    with pytest.raises(BadInput, match="numjobs adds up to 6000"):
        read({"global": {"numjobs": 3000}, "jobs": [{"name": "a"}, {"name": "b"}]})


def test_global_percentage_conflicting_with_section_number_is_rejected():
    with pytest.raises(BadInput, match="offset in percent in the section global stays in effect for fio when a gives a number"):
        read({"global": {"fileoffset": "90%"}, "jobs": [{"name": "a", "rw": "write", "offset": 0}]})


def test_lines_longer_than_the_fio_limit_are_rejected():
    with pytest.raises(BadInput, match="cannot carry"):
        fio_job.render(read({"rw": "read"}), TargetFacts(target=GuardTarget("/x"), path="/" + "x" * 5000, size=1))


@pytest.mark.parametrize("path", ["/data/a ", " /data/a", "/data/a\t", "/data/a\\b", "/data/a\x85"])
def test_paths_altered_by_fio_are_rejected(path):
    with pytest.raises(BadInput, match="cannot carry"):
        fio_job.render(read({"rw": "read"}), TargetFacts(target=GuardTarget("/x"), path=path, size=1))


MIB = 1024**2


@pytest.mark.parametrize(
    ("options", "blamed"),
    [
        ({"offset": "4m"}, "offset"),
        ({"fileoffset": "4m"}, "offset"),
        ({"offset": "10%"}, "offset"),
        ({"offset_increment": "1m", "numjobs": 2}, "offset_increment"),
        ({"offset_increment": "5%", "numjobs": 2}, "offset_increment"),
        ({"filesize": "2m"}, "filesize"),
        ({"fill_fs": 1}, "fill_device"),
        ({"zonemode": "strided", "zonesize": "64k", "zoneskip": "1m"}, "zonemode"),
        ({"zonesize": "64k"}, "zonesize"),
        ({"bs": "768k"}, "bs"),
        ({"bs": "64k", "rw": "write:4k"}, "rw"),
    ],
)
def test_job_exceeding_target_size_is_rejected(options, blamed):
    job = read({"rw": "write", "bs": "4k", **options})
    fio_job.check_target(job, "device", None, "cell")
    with pytest.raises(BadInput, match=rf"^cell: (with )?{blamed} .*the target has a size of 1048576 bytes \(1 MiB\)") as caught:
        fio_job.check_target(job, "device", MIB, "cell")
    assert caught.value.facts["option"] == blamed


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rw": "randwrite", "bs": "6k"},
        {"rw": "rw:4k"},
        {"offset": 0, "offset_increment": "4m"},
        {"bsrange": "1k-64k"},
        {"io_size": "10g"},
        {"zonemode": "none"},
        {"loops": 3},
    ],
)
def test_jobs_within_target_size_are_accepted(options):
    fio_job.check_target(read({"rw": "write", **options}), "device", MIB, "cell")


@pytest.mark.parametrize("options", [{"offset": "4m"}, {"offset_increment": "1m", "numjobs": 4}, {"size": "2m"}, {"filesize": "512k-2m"}])
def test_job_that_ends_behind_the_size_of_a_file_is_rejected(options):
    with pytest.raises(BadInput, match=r"the job ends at byte \d+, but the target has a size of 1048576 bytes .*: give the target .* a larger size"):
        fio_job.check_target(read({"rw": "write", **options}), "file", MIB, "cell")


@pytest.mark.parametrize("options", [{"size": "1m"}, {"size": "256k", "offset": "512k"}, {"filesize": "64k"}, {"offset": "256k", "filesize": "1m"}])
def test_sizes_within_a_file_are_those_of_the_job(options):
    fio_job.check_target(read({"rw": "write", **options}), "file", MIB, "cell")
    text = fio_job.render(read({"rw": "write", **options}), TargetFacts(GuardTarget("/srv/f", kind="file", size=MIB), path="/srv/f", size=MIB))
    assert "size=1048576" not in text


def test_only_sections_without_a_size_get_that_of_the_target():
    job = read({"global": {"rw": "read"}, "jobs": [{"name": "own", "size": "64k"}, {"name": "all"}, {"name": "zero", "size": 0}]})
    text = fio_job.render(job, TargetFacts(GuardTarget("/dev/sdb", size=MIB), path="/dev/sdb", size=2 * MIB))
    common, own, rest, zero = text.split("\n\n")
    assert "size=" not in common and own == "[own]\nsize=64k" and rest == "[all]\nsize=1048576"
    # The last of two counts for fio: without the second it would use all of the device.
    assert zero == "[zero]\nsize=0\nsize=1048576\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fill_fs": 1}, "fill_device would make a plain file longer"),
        ({"file_append": 1}, "file_append would make a plain file longer"),
        ({"size": "10%"}, "size=10% of a plain file is not supported: give it in bytes"),
        ({"offset": "1%"}, "offset=1% of a plain file is not supported"),
        ({"size": 0}, "size=0 of a plain file is not supported"),
    ],
)
@pytest.mark.parametrize("size", [None, MIB])
def test_unbounded_sizes_of_a_file_are_rejected(options, words, size):
    with pytest.raises(BadInput, match=words):
        fio_job.check_target(read({"rw": "write", **options}), "file", size, "cell")


@pytest.mark.parametrize(
    ("options", "size"), [({"size": "64k"}, 65536), ({"size": "10k", "offset": "4k"}, 14336), ({"filesize": "1m-2m"}, 2 * MIB), ({"size": 0}, None), ({}, None)]
)
def test_size_of_a_file_that_the_job_sets(options, size):
    assert fio_job.size_of_file(read({"jobs": [{"name": "a", "rw": "write", **options}, {"name": "b", "rw": "read", "size": "4k"}]})) == size


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
def test_writing_jobs(key, mode, writes, directions):
    for job in (read({key: mode}), read({"global": {key: mode}, "jobs": [{"name": "a"}]})):
        assert job.writes is writes
        assert job.sections[0].directions == directions


def test_one_writing_section_makes_the_job_write():
    assert read({"jobs": [{"name": "a", "rw": "read"}, {"name": "b", "rw": "randtrim"}]}).writes
    assert not read({"jobs": [{"name": "a"}]}).writes, "fio reads when nothing is said"


def test_mixes_of_one_hundred_percent():
    assert read({"rw": "randrw", "rwmixread": 100}).sections[0].directions == {"read"}
    assert read({"rw": "randrw", "rwmixwrite": 100}).sections[0].directions == {"write"}
    assert read({"rw": "randrw", "unified_rw_reporting": 1}).sections[0].directions == {"mixed"}


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1m", 60), ("500ms", 0.5), ("2h", 7200), ("1.5s", 1.5)])
def test_times_are_parsed(text, seconds):
    assert sections.parse_time(text) == seconds


@pytest.mark.parametrize(
    "option",
    [
        "runtime",
        "ramp_time",
        "startdelay",
        "thinktime",
        "thinktime_spin",
        "thinktime_iotime",
        "max_latency",
        "latency_target",
        "latency_window",
        "ss_dur",
        "ss_ramp",
        "ss_interval",
    ],
)
@pytest.mark.parametrize(("value", "why"), [("2sec", "is not a time"), ("1min", "is not a time"), ("1.5s", "cuts it off"), ("2.5", "cuts it off")])
def test_every_time_must_have_a_unit_that_fio_reads(option, value, why):
    # fio 3.33: 2sec is 2 microseconds, and 1.5ms is 1 microsecond.
    with pytest.raises(BadInput, match=why):
        read({"rw": "read", option: value})
    assert read({"rw": "read", option: "1500ms"}).sections


def test_flag_that_is_off_in_a_section_replaces_the_global_one():
    job = read({"global": {"time_based": True, "runtime": 5, "stonewall": True}, "jobs": [{"name": "a", "rw": "read", "time_based": 0}, {"name": "b"}]})
    assert [section.asked_runtime for section in job.sections] == [None, 5]
    assert job.section_lines[0] == ("a", ("rw=read", "time_based=0"))
    off = read({"global": {"time_based": 1, "runtime": 5}, "jobs": [{"name": "a", "stonewall": False, "time_based": False}]})
    assert off.section_lines == (("a", ("time_based=0",)),), "what nothing sets is not sent"


def test_exitall_cannot_be_switched_off_by_a_section():
    # fio sets it for all sections, whatever its value is.
    job = read({"global": {"exitall": True}, "jobs": [{"name": "a", "exitall": False}]})
    assert job.section_lines == (("a", ()),) and job.sections[0].has_flag("exitall")


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_itself_switches_a_flag_off(tmp_path):
    job = read({"global": {"time_based": 1, "runtime": 20, "ioengine": "null", "size": "64k"}, "jobs": [{"name": "a", "time_based": 0}]})
    text = "\n".join(["[global]", *job.global_lines, "[a]", *job.section_lines[0][1]])
    done = subprocess.run(["fio", "--output-format=json", "-"], input=text, cwd=tmp_path, capture_output=True, text=True, timeout=15, check=True)
    assert json.loads(done.stdout)["jobs"][0]["read"]["io_bytes"] == 64 * 1024


@pytest.mark.parametrize("option", ["direct", "invalidate", "randrepeat", "overwrite", "do_verify"])
def test_booleans_are_0_or_1(option):
    for value in ("00", "true", "2"):
        with pytest.raises(BadInput, match=f"{option}={value} is refused: the value must be a whole number from 0 to 1"):
            read({"rw": "read", option: value})
    assert read({"rw": "read", option: False}).section_lines[0][1] == ("rw=read", f"{option}=0")


def test_last_of_two_options_for_one_thing_counts():
    assert not read({"rw": "read", "direct": 1}).is_buffered
    assert read({"global": {"direct": 1}, "jobs": [{"name": "a", "buffered": 1}]}).is_buffered
    assert not read({"global": {"buffered": 1}, "jobs": [{"name": "a", "direct": 1}]}).is_buffered
    mixed = {"global": {"rw": "randrw", "rwmixread": 100}, "jobs": [{"name": "a", "rwmixwrite": 30}]}
    assert read(mixed).sections[0].directions == {"read", "write"} and read(mixed).sections[0].read_share == 0.7


@pytest.mark.parametrize("waits", ["a", "c", "z"])
def test_job_waits_for_one_before_it(waits):
    # fio accepts these with --parse-only and ends the run: "waitee job unknown".
    job = {"global": {"rw": "read"}, "jobs": [{"name": "a", "wait_for": waits}, {"name": "b"}, {"name": "c", "wait_for": "b"}]}
    with pytest.raises(BadInput, match=f"cell: wait_for={waits} of the job a is not the name of a job before it, which fio requires"):
        read(job)


def test_bssplit_beside_bsrange_is_taken_as_fio_does():
    # t/jobs/t0002 of its source: the sizes are those of bssplit, within the limits of the one that was read last.
    job = read({"global": {"bssplit": "512/50:1M/50"}, "jobs": [{"name": "a", "rw": "rw", "bsrange": "1k-2M"}]})
    assert block_sizes(job.sections[0]) == ((512, 2 << 20),) * 3
    assert job.block_size is None


def test_maximum_run_time():
    timed = {"time_based": True, "runtime": "10s", "ramp_time": 5}
    assert read({"rw": "read", **timed}).longest == 15
    assert read({"rw": "read", **timed}).sections[0].asked_runtime == 10
    assert read({"rw": "read", "runtime": 10}).sections[0].asked_runtime is None, "it may end when its size is done"
    assert read({"rw": "read"}).longest is None
    together = {"global": timed, "jobs": [{"name": "a", "rw": "read"}, {"name": "b", "rw": "write", "startdelay": "1-5"}]}
    assert read(together).longest == 20
    one_by_one = {"global": timed, "jobs": [{"name": "a", "rw": "read"}, {"name": "b", "rw": "write", "stonewall": True}]}
    assert read(one_by_one).longest == 30


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        # Measured with fio 3.33: 12.7 s of two jobs of 6 s, 8.7 s where a delay of 5 s is over before the phase of 3 s begins.
        ([{"runtime": 6}, {"runtime": 6, "wait_for": "a"}], 12),
        ([{"runtime": 6}, {"runtime": 6, "wait_for_previous": True}], 12),
        ([{"runtime": 3}, {"runtime": 3, "stonewall": True, "startdelay": 5}], 8),
        ([{"runtime": 6}, {"runtime": 2, "wait_for": "a"}, {"runtime": 5, "wait_for": "b"}], 13),
        ([{"runtime": 6}, {"runtime": 2, "stonewall": True}, {"runtime": 5}], 11),
        ([{"runtime": 6}, {"runtime": 2, "wait_for": "a"}, {"runtime": 5}], 8),
        # The last pause is not cut short: 12.4 s with fio 3.33.
        ([{"runtime": 2, "thinktime": "12s"}], 14),
        ([{"runtime": 2, "thinktime": 1500}], 2.0015),
        ([{"runtime": 6}, {"wait_for": "a"}], None),
    ],
)
def test_everything_that_moves_an_end_is_in_the_run_time(options, longest):
    jobs = [{"name": name, "rw": "randread", **one} for name, one in zip("abc", options)]
    assert read({"global": {"time_based": True}, "jobs": jobs}).longest == longest


def test_size_of_the_job_is_within_that_of_the_target():
    fio_job.check_target(read({"rw": "read", "size": "1G"}), "device", None, "cell")
    fio_job.check_target(read({"rw": "read", "size": "4k"}), "device", 4096, "cell")
    with pytest.raises(BadInput, match="with size the job ends at byte 1073741824, but the target has a size of 4096 bytes"):
        fio_job.check_target(read({"rw": "read", "size": "1G"}), "device", 4096, "cell")


def test_sections_of_one_name_get_names_of_their_own():
    rows = [
        {"name": name, "rw": mode}
        for name, mode in (("a", "read"), ("a", "write"), ("b", "read"), ("a_2", "read"), ("a", "randread"), ("c" * 64, "read"), ("c" * 64, "read"))
    ]
    job = read({"jobs": rows})
    assert [(one.name, one.value("rw")) for one in job.sections][:5] == [("a", "read"), ("a_3", "write"), ("b", "read"), ("a_2", "read"), ("a_4", "randread")]
    assert job.sections[-1].name == "c" * 58 + "_2"
    assert job.notes == (
        "Sections of the same name were renamed, so that each has figures of its own: a in place 2 is a_3, a in place 5 is a_4, "
        f"{'c' * 64} in place 7 is {'c' * 58}_2.",
    )
    assert [title for title, _lines in job.section_lines] == [section.name for section in job.sections]


def test_thousands_of_sections_of_one_name_are_named_quickly():
    job = read({"jobs": [{"name": "a", "rw": "read"}] * 2048})
    assert len({section.name for section in job.sections}) == 2048


def test_workload_hash_is_independent_of_target():
    assert read({"rw": "read", "bs": "4k"}).workload_sha256 == read({"rw": "read", "bs": "4k"}).workload_sha256
    assert read({"rw": "read", "bs": "4k"}).workload_sha256 != read({"rw": "read", "bs": "8k"}).workload_sha256
