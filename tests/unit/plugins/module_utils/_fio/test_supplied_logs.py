# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O that are files, from the suite to fio: what is refused, and when."""

from __future__ import annotations

import gzip
import shutil
import typing as t
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import replay, supplied_logs
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground import measure, order_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool, SpoolError
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import Stack

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
HEAD = "fio version 2 iolog\nsda add\nsda open\n"
LOG = HEAD + "".join(f"sda {'read' if number % 3 else 'write'} {number % 64 * 4096} 4096\n" for number in range(3000)) + "sda close\n"


def located(job: t.Any) -> t.Any:
    """What the controller sends, which an old Python does not import: ``plan/log_file.py``."""

    def found(section: t.Mapping[str, t.Any]) -> t.Any:
        options = {name: value for name, value in section.items() if name in replay.OPTIONS and name != replay.LOG}
        stream = replay.LogStream(options, section[replay.LOG], replay.MOST_FILE_IOS)
        assert all(isinstance(piece, bytes) for piece in replay.changed_file(section[replay.LOG], stream))
        return stream.replay().to_dict(section[replay.LOG])

    return replay.with_logs(job, found)


class Rig:
    """A log on the controller, and the host that replays it on a file of 256 KiB."""

    def __init__(self, folder: Path) -> None:
        self.path, self.copy, self.target = folder / "oltp.log.gz", folder / "copied", folder / "target"
        self.spool, self.folder = Spool(folder / "spool", "c1"), folder
        self.options: dict[str, t.Any] = {}
        self.hold(LOG)

    def hold(self, text: str) -> None:
        self.path.write_bytes(gzip.compress(text.encode()))

    def order(self) -> t.Any:
        job = located({"read_iolog": str(self.path), **self.options})
        row = {"name": "oltp", "repeat": 1, "target": {"file": str(self.target), "size": 256 * 1024}, "job": job}
        return order_of({"campaign": "c1", "variant": "v", "host": "here", "cells": [row], "series": False})

    def supply(self, order: t.Any, content: bytes | None = None) -> dict[str, t.Any]:
        self.copy.write_bytes(self.path.read_bytes() if content is None else content)
        return supplied_logs.supply(order.jobs, self.spool, {str(self.path): str(self.copy)})

    def missing(self, order: t.Any) -> list[str]:
        return supplied_logs.supply(order.jobs, self.spool, {})["missing"]

    def measure(self, order: t.Any) -> dict[str, t.Any]:
        (row,) = measure(order, self.spool, MeasuredHost(Runner(), lambda _devices: Stack("writeback")), check_mode=False)["cells"]
        return row

    def kept(self) -> list[str]:
        return [path.name for path in self.spool.home.glob("*") if "iolog" in path.name]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@needs_fio
def test_file_is_replayed_once_it_was_copied(rig: Rig) -> None:
    order = rig.order()
    assert rig.missing(order) == [str(rig.path)]
    with pytest.raises(Refused, match=r"The log [0-9a-f]{12} is not in the spool of this host, or damaged: run the playbook again"):
        rig.measure(order)
    assert not rig.target.exists()
    assert rig.supply(order) == {"changed": True, "actions": [], "runner": {}, "missing": []}
    row = rig.measure(order)
    assert row["state"] == "ok", row["reason"]
    assert (row["summary"]["read"]["total_ios"], row["summary"]["write"]["total_ios"]) == (2000, 1000)
    place = rig.spool.home / "v/oltp/1"
    assert f"read_iolog={replay.read_replay({'read_iolog': LOG}, 'c').file_name}\n" in (place / "job.fio").read_text(), "the same log is the same workload"
    assert not (place / "replay_1.log.gz").exists()


@needs_fio
def test_each_of_several_devices_gets_its_own_log(rig: Rig, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text("fio version 3 iolog\n0 sdb add\n0 sdb open\n100000 sdb write 8192 4096\n100000 sdb sync 0 0\n300000 sdb write 65536 8192\n")
    sections = [{"name": "a", "read_iolog": str(rig.path)}, {"name": "b", "target": "log", "read_iolog": str(other)}]
    job = located({"global": {"ioengine": "libaio", "iodepth": 8}, "jobs": sections})
    targets = {"target": {"file": str(rig.target), "size": 256 * 1024}, "targets": {"log": {"file": str(tmp_path / "second"), "size": 128 * 1024}}}
    steps = [{"cells": [{"name": "both", "repeat": 1, **targets, "job": job}]}]
    order = read_order({"campaign": "c1", "variant": "v", "host": "here", "steps": steps, "series": False})
    supplied_logs.supply(order.jobs, rig.spool, {str(rig.path): str(rig.path), str(other): str(other)})
    row = rig.measure(order)
    assert row["state"] == "ok", row["reason"]
    assert (row["summary"]["read"]["total_ios"], row["summary"]["write"]["total_ios"], row["summary"]["sync"]["n"]) == (2000, 1002, 1)
    content = (tmp_path / "second").read_bytes()
    assert [number for number in range(32) if content[number * 4096 : number * 4096 + 4096].strip(b"\0")] == [2, 16, 17]
    assert row["summary"]["write"]["runtime_ms"] >= 280, "the first I/O waits, too"


@needs_fio
def test_stored_log_that_was_damaged_is_copied_again(rig: Rig) -> None:
    order = rig.order()
    rig.supply(order)
    (stored,) = (rig.spool.home / name for name in rig.kept())
    content = stored.read_bytes()
    for damaged in (content[:-20], content[: len(content) // 2], gzip.compress(HEAD.encode()), b""):
        stored.write_bytes(damaged)
        assert rig.missing(order) == [str(rig.path)]
        with pytest.raises(Refused, match="in the spool of this host is damaged"):
            supplied_logs.write(next(iter(order.requested[0].cell.job.replays.values())), rig.spool, "/dev/x", rig.folder / "given")
        with pytest.raises(Refused, match="or damaged: run the playbook again"):
            rig.measure(order)
    assert not rig.target.exists()
    rig.supply(order)
    assert rig.missing(order) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LOG.replace("sda write 0 4096", "sda write 4096 4096", 1).encode(), "is not the one that was planned: it was changed since, or damaged on its way"),
        (gzip.compress(LOG.encode())[:-9], "cannot be read: Compressed file ended before"),
        (gzip.compress(LOG.encode())[:-900] + bytes(900), "cannot be read: "),
        (LOG.encode()[:20000], "line 961 of the log in read_iolog is not"),
        ((HEAD + "sda write 1073741824 4096\n").encode(), "is not the one that was planned"),
        ((HEAD + "/etc/passwd open\n").encode(), "line 4 of the log is of another file"),
        ((HEAD + "sda unlink\n").encode(), "action 'unlink'"),
        ((HEAD + "x" * 10**6).encode(), "line 4 of the log is longer than 4096 bytes"),
        (gzip.compress(HEAD.encode() + b"\0" * 10**8), "line 4 of the log is longer than 4096 bytes"),
        (b"", "must be the content of a log"),
    ],
)
def test_file_that_is_not_the_planned_log_is_not_stored(rig: Rig, content: bytes, words: str) -> None:
    order = rig.order()
    with pytest.raises((BadInput, Refused), match=words) as caught:
        rig.supply(order, content)
    assert "\n" not in str(caught.value)
    assert not rig.kept() and not rig.target.exists()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (HEAD + "sda write 262144 4096\n", "with read_iolog the job ends at byte 266240, but the target has a size of 262144"),
        (HEAD + "/etc/passwd open\nsda write 0 512\n", "oltp.log.gz: the option read_iolog is refused: line 4 of the log is of another file"),
        (HEAD + "x" * 10**6 + "\n", "line 4 of the log is longer than 4096 bytes"),
        (HEAD + "sda write 0", "line 4 of the log in read_iolog is not 'FILE ACTION OFFSET LENGTH'"),
        (HEAD, "the log has no I/O"),
    ],
)
def test_what_cannot_be_replayed_is_refused_on_the_controller(rig: Rig, log: str, words: str) -> None:
    rig.hold(log)
    with pytest.raises(BadInput, match=words):
        rig.order()


def test_limits_of_a_file(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_FILE_IOS", 2998)
    with pytest.raises(BadInput, match=r"more than 2998 I/Os: replay a part of it\."):
        rig.order()
    monkeypatch.setattr(replay, "MOST_FILE_IOS", 3000)
    monkeypatch.setattr(replay, "MOST_FILE_TEXT", 32 * 1024)
    with pytest.raises(BadInput, match="the log is larger than 32 KiB"):
        rig.order()


def test_options_change_what_is_stored(rig: Rig) -> None:
    rig.options = {"replay_skip": "read", "replay_scale": 2}
    order = rig.order()
    (log,) = order.requested[0].cell.job.replays.values()
    assert (log.ios, log.end, log.writes, set(order.requested[0].cell.job.sections[0].options)) == (1000, 133120, True, {"read_iolog"})
    rig.supply(order)
    assert rig.missing(order) == []
    rig.options = {}
    rig.supply(rig.order())
    assert len(rig.kept()) == 2, "another log of the same file"
    with pytest.raises(BadInput, match=r"oltp: the log .*oltp\.log\.gz was not copied to this host"):
        rig.options = {"replay_skip": "write"}
        supplied_logs.supply(rig.order().jobs, rig.spool, {"/other": "/tmp/x"})


def test_host_without_room_or_memory_refuses(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = rig.order()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 999 kB\nMemAvailable:    700 kB\n")
    with pytest.raises(Refused, match="fio would need 375 KiB of memory for the logs that it replays at once, and this host has 700 KiB available"):
        supplied_logs.require([order.requested[0].cell.job], rig.spool, tmp_path)
    rig.supply(order)
    (tmp_path / "proc/meminfo").write_text("MemAvailable:    800 kB\n")
    supplied_logs.require([order.requested[0].cell.job], rig.spool, tmp_path)
    monkeypatch.setattr("ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool.MINIMUM_FREE", 2**62)
    with pytest.raises(SpoolError, match="are needed: free space"):
        supplied_logs.write(next(iter(order.requested[0].cell.job.replays.values())), rig.spool, "/dev/x", tmp_path / "given")


@pytest.mark.parametrize(
    "change", [{"sha256": "../x"}, {"size": -1}, {"ios": True}, {"moved": {"read": 1}}, {"moved": 5}, {"end": 2**70}, {"more": 1}, {"seconds": "1"}]
)
def test_what_stands_for_a_file_is_checked(rig: Rig, change: dict[str, t.Any]) -> None:
    given = {**located({"read_iolog": str(rig.path)})["read_iolog"], **change}
    with pytest.raises(StorageError, match="must be the content of a log that fio recorded"):
        fio_job.read_job({"read_iolog": given}, "c")
