# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The computed end of random jobs against what the fio of this machine does. EXTENT_JOBS=1000 tries more of them."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import extent
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")

JOBS = int(os.environ.get("EXTENT_JOBS", "100"))
KIB = 1024
_QUEUED = re.compile(r"queue: io_u 0x[0-9a-f]+: off=0x([0-9a-f]+),len=0x([0-9a-f]+),ddir=[012]")
_MODES = ["read", "write", "rw", "randread", "randwrite", "randrw"]
_MODIFIERS = {"read": ("", "", ":4k", ":-4k", ":1k"), "write": ("", "", ":4k", ":12k", ":-8k", ":1000"), "rw": ("", ":4k")}


def random_section(choose, *, of_a_device):
    mode = choose.choice(_MODES)
    options = {"rw": mode + choose.choice(_MODIFIERS.get(mode, ("", "", ":4")))}
    if choose.random() < 0.7:
        options["bs"] = choose.choice(["4k", "8k", "1000", "64k", "12k", "4k,8k", "16k,4k,4k"])
    block = choose.random()
    if block < 0.15:
        options["bsrange"] = choose.choice(["4k-16k", "1k-64k", "512-4k,4k-8k"])
    elif block < 0.3:
        options["bssplit"] = choose.choice(["4k/50:16k/50", "1k/10:64k/90,8k/100", "4k/50:4k/50"])
    for option, values in (
        ("ba", ["512", "4k", "8k"]),
        ("bs_unaligned", [True]),
        ("bs_is_seq_rand", [1]),
        ("percentage_random", ["50", "30,70"]),
        ("random_distribution", ["zipf:1.1", "pareto:0.3", "normal:20", "zoned:60/10:40/90"]),
        ("random_generator", ["lfsr", "tausworthe64"]),
        ("rw_sequencer", ["identical", "sequential"]),
        ("norandommap", [True]),
        ("io_size", ["100k", "700k"]),
        ("loops", [2]),
        ("numjobs", [2, 3]),
        ("number_ios", [50]),
    ):
        if choose.random() < 0.15:
            options[option] = choose.choice(values)
    if of_a_device:
        options.update(random_place(choose))
    return options


def random_place(choose):
    found = {}
    for option, values in (
        ("size", ["100k", "130000", "256k", "10%", "33%"]),
        ("offset", ["64k", "10000", "5%", "21%"]),
        ("offset_increment", ["32k", "7%", "5000"]),
        ("offset_align", ["8k", "512"]),
        ("filesize", ["200k", "100k-300k"]),
        ("zonesize", ["16k"]),
    ):
        if choose.random() < 0.3:
            found[option] = choose.choice(values)
    if "zonesize" in found:
        found["zonemode"] = "strided"
    return found


def random_job(choose, *, of_a_device):
    while True:
        rows = [{"name": f"j{number}", **random_section(choose, of_a_device=of_a_device)} for number in range(choose.choice([1, 1, 2]))]
        try:
            return fio_job.read_job({"global": {"ioengine": "psync", "randrepeat": 1}, "jobs": rows}, "cell")
        except BadInput:
            continue


def reached_by_fio(job, facts):
    """The end of the last block that fio queued, and whether it accepted the job."""
    text = fio_job.render(job, facts)
    done = subprocess.run(
        ["fio", "--debug=io", "--output-format=json", "-"], input=text, capture_output=True, text=True, timeout=60, check=False, cwd=os.path.dirname(facts.path)
    )
    ends = [int(offset, 16) + int(length, 16) for offset, length in _QUEUED.findall(done.stdout + done.stderr)]
    return max(ends, default=0), text


def test_device_is_not_accessed_beyond_computed_end(tmp_path):
    choose = random.Random(20261122)
    path = tmp_path / "device"
    size = 1024 * KIB
    exact = 0
    for _number in range(JOBS * 3 // 4):
        job = random_job(choose, of_a_device=True)
        end = extent.end_of_io(job, size=None, device_size=size)
        path.unlink(missing_ok=True)
        path.touch()
        os.truncate(path, size)
        reached, text = reached_by_fio(job, TargetFacts(target=GuardTarget(str(path)), path=str(path), size=size))
        if path.stat().st_size == size:
            # A device cannot grow; a file that did is another case.
            assert reached <= end, text
            exact += reached == end
    assert exact > JOBS // 10, "a bound that is never reached would refuse too much"


def test_file_does_not_grow_beyond_computed_end(tmp_path):
    choose = random.Random(5)
    path = tmp_path / "file"
    for _number in range(JOBS - JOBS * 3 // 4):
        job = random_job(choose, of_a_device=False)
        size, present = choose.choice([100 * KIB, 130000, 256 * KIB]), choose.choice([0, 50000, 300 * KIB])
        end = extent.end_of_io(job, size=size, device_size=present, is_file=True)
        path.unlink(missing_ok=True)
        path.touch()
        os.truncate(path, present)
        reached, text = reached_by_fio(job, TargetFacts(target=GuardTarget(str(path), kind="file", size=size), path=str(path), size=present))
        assert max(reached, path.stat().st_size) <= max(end, present), text


def test_laid_out_file_is_never_made_longer_by_sizes_of_the_job(tmp_path):
    """On a file of the size of its target, or of one that is longer."""
    choose = random.Random(42)
    path = tmp_path / "file"
    accepted = 0
    for _number in range(JOBS):
        job = random_job(choose, of_a_device=True)
        size = choose.choice([256 * KIB, 512 * KIB, 1024 * KIB])
        try:
            fio_job.check_target(job, "file", size, "cell")
        except BadInput:
            continue
        accepted += 1
        present = size + choose.choice([0, 0, 300 * KIB])
        path.unlink(missing_ok=True)
        path.touch()
        os.truncate(path, present)
        inode = path.stat().st_ino
        reached, text = reached_by_fio(job, TargetFacts(target=GuardTarget(str(path), kind="file", size=size), path=str(path), size=present))
        assert (path.stat().st_ino, path.stat().st_size) == (inode, present), text
        assert reached <= present, text
        # A job that sizes itself makes a new file so large that the same holds.
        if fio_job.size_of_file(job) is not None:
            fio_job.check_target(job, "file", fio_job.size_of_file(job), "cell")
    assert accepted > JOBS // 20


@pytest.mark.parametrize("place", ["global", "section"])
def test_whole_file_is_what_its_target_gives_of_it(tmp_path, place):
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 1024 * KIB)
    whole = {"size": "100%"}
    job = fio_job.read_job(
        {"global": whole if place == "global" else {}, "jobs": [{"name": "a", "rw": "write", "bs": "64k", **({} if place == "global" else whole)}]}, "cell"
    )
    fio_job.check_target(job, "file", 256 * KIB, "cell")
    assert fio_job.size_of_file(job) is None
    reached, text = reached_by_fio(job, TargetFacts(target=GuardTarget(str(path), kind="file", size=256 * KIB), path=str(path), size=1024 * KIB))
    assert reached == 256 * KIB, text


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"rw": "write", "bs": "4k", "size": "10k"}, 12 * KIB),
        ({"rw": "write", "bs": "64k", "size": "256k", "offset": "64k"}, 320 * KIB),
        ({"rw": "write", "bs": "4k", "size": "64k", "offset_increment": "128k", "numjobs": 3}, 320 * KIB),
        ({"rw": "write:4k", "bs": "64k", "size": "256k"}, 316 * KIB),
        ({"rw": "randwrite", "bs": "4k,8k", "size": "100k"}, 104 * KIB),
        ({"rw": "randwrite", "bs": "4k", "size": "10%", "offset": "50%"}, None),
    ],
)
def test_examples_end_where_computed(tmp_path, options, end):
    path = tmp_path / "device"
    path.touch()
    os.truncate(path, 1024 * KIB)
    job = fio_job.read_job(options, "cell")
    computed = extent.end_of_io(job, size=None, device_size=1024 * KIB)
    reached, text = reached_by_fio(job, TargetFacts(target=GuardTarget(str(path)), path=str(path), size=1024 * KIB))
    assert reached <= computed, text
    if end is not None:
        assert computed == end
        assert end - 64 * KIB < reached, text
