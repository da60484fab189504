# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import check_target, read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import (
    ALIASES,
    COMPUTED,
    ENGINES,
    FLAGS,
    HARMLESS,
    REFUSED,
    canonical,
    refusal,
)

TOP = Path(__file__).parents[5]
needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")


def help_of(*arguments):
    return subprocess.run(["fio", *arguments], capture_output=True, text=True, timeout=30, check=False).stdout


def test_every_option_has_one_class():
    assert not COMPUTED & HARMLESS
    assert not (COMPUTED | HARMLESS) & (set(REFUSED) - {"exitall_on_error"})
    assert not set(ALIASES) & (COMPUTED | HARMLESS | set(REFUSED))
    for name in set(ALIASES.values()) | {canonical(flag) for flag in FLAGS}:
        assert refusal(name) is None or name in REFUSED


@needs_fio
def test_every_option_of_installed_fio_has_a_class():
    names = re.findall(r"^ *([A-Za-z_-]+) *:", help_of("--cmdhelp=all"), re.MULTILINE)
    assert len(names) > 150
    assert [name for name in names if "not known" in (refusal(name) or "")] == []


@needs_fio
@pytest.mark.parametrize("name", sorted(ALIASES))
def test_aliases_match_installed_fio(name):
    text = help_of(f"--cmdhelp={name}")
    found = re.match(r" *([A-Za-z_-]+) *:", text)
    if found is None:
        pytest.skip("the fio of this machine does not have the option")
    assert canonical(found.group(1)) == ALIASES[name]


@needs_fio
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_engine_options_match_installed_fio(engine):
    names = set(re.findall(r"^ *([A-Za-z_]+) *:", help_of(f"--enghelp={engine}"), re.MULTILINE)) - {"IO engine"}
    assert names - set(REFUSED) <= ENGINES[engine].options


def test_every_engine_is_documented():
    text = (TOP / "docs/benchmark.md").read_text()
    table = text[text.index("| engine | what it opens") :].split("\n\n")[0]
    assert set(re.findall(r"`([a-z0-9_]+)`", "".join(line.split("|")[1] for line in table.splitlines()))) == set(ENGINES)


@pytest.mark.parametrize(
    ("job", "kind", "size"),
    [
        # A: ways of attaching an SSD
        (
            {"rw": "randwrite", "bs": "4k", "ioengine": "libaio", "iodepth": 16, "direct": 1, "invalidate": 1, "fdatasync": 1, "size": "10g"},
            "device",
            None,
        ),
        # B: maxCache
        ({"rw": "randread", "bs": "4k", "numjobs": 128, "ioengine": "libaio", "direct": True, "time_based": True, "runtime": 60}, "device", 2**40),
        ({"rw": "write", "bs": "1m", "numjobs": 16, "offset_increment": "5%", "size": "5%", "ioengine": "libaio", "direct": True}, "device", None),
        # C: what a page cache and a SAN do to requests of several sizes
        ({"rw": "randrw", "bssplit": "512/20:1k/10:4k/70", "rwmixread": 70, "ioengine": "psync"}, "file", 2**30),
        # D: a file on a mounted file system
        ({"rw": "randrw", "bs": "4k", "iodepth": 32, "ioengine": "libaio", "direct": 1}, "file", 32 * 2**30),
        # E: an all-flash array
        (
            {
                "global": {
                    "thread": False,
                    "direct": 1,
                    "group_reporting": 1,
                    "norandommap": 1,
                    "time_based": 1,
                    "randrepeat": 0,
                    "ramp_time": 10,
                    "ioengine": "libaio",
                    "runtime": "18h",
                },
                "jobs": [{"name": "cliff", "rw": "randwrite", "bs": "4k", "numjobs": 64, "iodepth": 64}],
            },
            "device",
            7 * 2**40,
        ),
        ({"rw": "randrw", "rwmixread": 70, "bs": "1m", "ioengine": "sync", "numjobs": 128, "runtime": "3m", "time_based": True}, "device", 7 * 2**40),
    ],
)
def test_jobs_of_field_cases_are_accepted(job, kind, size):
    check_target(read_job(job, "cell"), kind, size, "cell")
