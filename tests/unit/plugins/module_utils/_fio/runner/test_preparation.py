# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.preparation import prepare
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.versions import TooOld
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

JOB = {"rw": "read", "bs": "4k", "time_based": True, "runtime": 1}


@pytest.fixture
def host(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/sdb").write_bytes(b"")
    runner = ScriptedRunner(
        {
            ("fio", "--version"): Reply("fio-3.33\n"),
            ("fio", "--parse-only"): Reply(),
            ("fio", "--enghelp=psync"): Reply(),
            ("setpriv",): Reply(),
        }
    )
    return MeasuredHost(runner, lambda _devices: None, tmp_path, lambda runner, root: Devices([BlockDevice("sdb", "/dev/sdb", "8:16", size=2**30)], root))


def order(*jobs, **settings):
    cells = [{"cells": [{"name": f"c{number}", "target": {"device": "/dev/sdb"}, "job": job}]} for number, job in enumerate(jobs)]
    return read_order({"campaign": "c", "variant": "v", "host": "h", "steps": cells, **settings})


def checked(host):
    return [words for words in host.runner.calls if words[:2] == ("fio", "--parse-only")]


def test_job_files_are_checked_in_one_call_without_duplicates(host, tmp_path):
    prepared = prepare(order(*[{**JOB, "iodepth": depth} for depth in (1, 2, 3, 1, 2, 3)]), host, MadeFiles(Spool(tmp_path, "c")))
    assert [len(words) - 2 for words in checked(host)] == [6], "the name of the section tells the cells apart"
    assert prepared.command == ("setpriv", "--pdeathsig", "TERM", "fio") and prepared.facts_of(order(JOB).requested[0].cell).size == 2**30


def test_job_files_with_many_threads_are_checked_in_batches(host, tmp_path):
    prepare(order(*[{**JOB, "numjobs": 400}] * 5), host, MadeFiles(Spool(tmp_path, "c")))
    assert [len(words) - 2 for words in checked(host)] == [2, 2, 1]


def test_job_rejected_by_fio_is_named(host, tmp_path):
    def bad(words):
        texts = [words[-1]] if words[-1] == "-" else [open_text(path) for path in words[2:]]
        return Reply(rc=1, stderr="Bad option <spr_num_regions=3>\n") if any("spr_num_regions" in text for text in texts) else Reply()

    host.runner.replies["fio", "--parse-only"] = bad
    host.runner.replies["fio", "--parse-only", "-"] = [Reply(), Reply(rc=1, stderr="Bad option <spr_num_regions=3>\nfio: job c1 dropped\n")]
    with pytest.raises(BadInput, match="c1: fio on this host does not accept the job: Bad option <spr_num_regions=3>"):
        prepare(order(JOB, {**JOB, "spr_num_regions": 3}, JOB), host, MadeFiles(Spool(tmp_path, "c")))


def open_text(path):
    with open(path) as file:
        return file.read()


def test_both_ends_of_a_search_are_checked(host, tmp_path):
    search = {"kind": "search", "cell": {"name": "s", "target": {"device": "/dev/sdb"}, "job": JOB}, "search": {"limit": 5, "over": "numjobs", "last": 64}}
    prepare(read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [search]}), host, MadeFiles(Spool(tmp_path, "c")))
    assert [len(words) - 2 for words in checked(host)] == [3]


def test_guard_checks_write_extent_at_both_ends_of_a_search(host, tmp_path, monkeypatch):
    host.runner.replies[("wipefs",)] = Reply('{"signatures": []}')
    judged = []
    monkeypatch.setattr(
        "ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.checks.judge.require", lambda facts, **how: judged.append(how["extent"])
    )
    job = {**JOB, "rw": "write", "bs": "4k", "size": "1m", "offset_increment": "1m"}
    search = {"kind": "search", "cell": {"name": "s", "target": {"device": "/dev/sdb"}, "job": job}, "search": {"limit": 5, "over": "numjobs", "last": 64}}
    prepare(read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [search]}), host, MadeFiles(Spool(tmp_path, "c")))
    assert judged == [64 * 1024**2], "with 64 jobs, not with the one of the cell"


def test_old_fio_is_detected_before_targets_are_examined(host, tmp_path):
    host.runner.replies["fio", "--version"] = Reply("fio-2.0.15\n")
    with pytest.raises(TooOld):
        prepare(order(JOB), host, MadeFiles(Spool(tmp_path, "c")))
    assert not checked(host)


def test_options_missing_in_old_fio_are_omitted(host, tmp_path):
    host.runner.replies["fio", "--version"] = Reply("fio-2.1.10\n")
    host.runner.replies[("fio",)] = lambda words: Reply(stderr=f"No such command: {words[1]}\n" if "log_unix_epoch" in words[1] else words[1])
    host.runner.replies["fio", "--parse-only", "-"] = Reply()
    prepared = prepare(order(JOB), host, MadeFiles(Spool(tmp_path, "c")))
    assert prepared.fio.abilities.without == {"log_unix_epoch"} and prepared.fio.abilities.output_format == "json"
