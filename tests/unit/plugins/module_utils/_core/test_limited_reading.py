# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of the state folder that are too large, too deep or of another kind: one sentence, or as if they were damaged; never a traceback."""

from __future__ import annotations

import json
import os
import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import released
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal as bcache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import remains
from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import STATE_FOLDER
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen, has_types
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import PurgeRecord, read_record, write_record
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import barriers, control, outcomes
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import ORDER_FILE
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._health import readings
from ansible_collections.cachefleet.storage.plugins.module_utils._net import interfaces
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network import rollback_program
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun
from ansible_collections.cachefleet.storage.plugins.module_utils._sweep import journal as sweep_journal
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss import journal as power_loss

RUN = "5a" * 16
HUGE = 1 << 42

#: Files, and what reads them.
READERS = {
    "sweep/journal.json": lambda root: sweep_journal.read(str(root / "sweep"), root),
    f"runs/{RUN}.json": lambda root: BackgroundRun(root / "runs", RUN).read(),
    f"{STATE_FOLDER}/{bcache.SETS_FILE}": bcache.read_journal,
    f"{STATE_FOLDER}/flashcache-x.emptying": lambda root: remains.read_remains("x", root),
    f"{released.FOLDER}/x.json": lambda root: list(released._records(root)),
    "spool/c1/outcomes.log": lambda root: outcomes.read_outcomes(root / "spool/c1", "a"),
    f"spool/c1/{ORDER_FILE}": lambda root: control._cells(Spool(root / "spool", "c1")),
    "spool/c1/release-0.json": lambda root: barriers.read_release(root / "spool/c1", 0),
    "spool/.left_devices.json": lambda root: LeftDevices(root / "spool", "c1")._read(),
    "spool/.made_files.json": lambda root: MadeFiles(Spool(root / "spool", "c1"), root)._made,
    "readings.json": lambda root: readings.from_file("/readings.json", root),
    interfaces._CHANGES: lambda root: sorted(interfaces.untold_changes(root)),
    "rollback.json": lambda root: rollback_program.read_json(str(root / "rollback.json")),
    "node1.ndjson": lambda root: power_loss.load(root, "node1"),
}
ODD = ["", "null", "[]", "{}", "7", '"x"', "{", '{"a": ' * 5000, "[" * 100_000, "[{}]", "[[]]", '{"x": []}', '{"x": 7}', '{"places": [[1]], "size": []}']


@pytest.fixture(params=sorted(READERS))
def file(request, tmp_path):
    path = tmp_path / request.param.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path, lambda: READERS[request.param](tmp_path)


@pytest.mark.parametrize("text", ODD)
def test_odd_contents_are_one_sentence_or_nothing(file, text):
    path, read = file
    path.write_text(text)
    try:
        found = read()
    except StorageError as error:
        assert str(path.parent) in error.message and error.message.endswith(".")
    else:
        nothing = ({}, [], None, bcache.Journal(), remains.Remains(), power_loss.HostJournal("node1"))
        # What was not written by its own program, but has nothing that is computed with, is returned.
        assert found in nothing or (isinstance(found, tuple) and found[0] is None) or (path.name == "rollback.json" and found == json.loads(text))


def test_larger_files_are_not_read_into_memory(file):
    path, read = file
    path.touch()
    os.truncate(path, HUGE)
    try:
        found = read()
    except StorageError as error:
        assert str(path.parent) in error.message
    else:
        assert found in ({}, [], None, bcache.Journal()) or (isinstance(found, tuple) and found[0] is None)


def test_size_is_named_by_the_message(tmp_path):
    (tmp_path / "large").write_text("x" * 11)
    assert read_file(tmp_path / "large", 11) == "x" * 11
    with pytest.raises(CommandFailed, match="large is larger than 10 B, which no such file is: examine it"):
        read_file(tmp_path / "large", 10)
    with pytest.raises(NotUnderstood, match=r"large cannot be used: it is not JSON\. Examine it\."):
        json_text.read_json(tmp_path / "large")
    assert json_text.read_json(tmp_path / "none") is None


def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CommandFailed, match="pipe cannot be read"):
        read_file(tmp_path / "pipe")


def test_types_of_a_record():
    @frozen
    class One:
        text: str
        number: int
        maybe: float | None = None
        others: tuple[str, ...] = ()

    assert has_types(One("a", 1, 2, 5))
    assert not any(map(has_types, (One(1, 1), One("a", "1"), One("a", True), One("a", 1, "x"), One(None, 1))))


@pytest.mark.parametrize("changed", [{"message": []}, {"started": "now"}, {"finished": {}}, {"reads": None}, {"device": 5}])
def test_purge_record_with_other_types_is_none(tmp_path, changed):
    write_record(PurgeRecord("S1", "/dev/sda", "discard", "", "running", 1.0, message="x" * 10**6), tmp_path)
    assert read_record("S1", tmp_path).state == "running"
    [path] = (tmp_path / "var/lib/cachefleet/purges").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    assert read_record("S1", tmp_path) is None


@pytest.mark.parametrize(
    "changed", [{"name": 5}, {"length": "1"}, {"cache_device": []}, {"layout": {"metadata": "1", "data": 1, "block_size": 1}}, {"layout": [1]}]
)
def test_record_of_dm_cache_with_other_types_is_none(changed):
    text = dm_cache.Record("c", "/dev/a", 4096, "/dev/b").as_text()
    assert dm_cache.read_plain(text) is not None
    assert dm_cache.read_plain(json.dumps({**json.loads(text), **changed})) is None


def test_event_of_a_host_is_limited(tmp_path):
    power_loss.append(tmp_path, "node1", power_loss.OPENED, settings={})
    before = (tmp_path / "node1.ndjson").read_bytes()
    deep: dict = {}
    for _level in range(100):
        deep = {"x": deep}
    for found in ({"reason": "x" * 300_000}, deep, {"x": [[]] * 3000}):
        with pytest.raises(StorageError, match=r"What node1 reported of the power-loss test cannot be recorded: it .*\. Check that host\."):
            power_loss.append(tmp_path, "node1", power_loss.VERIFIED, verification=found)
    assert (tmp_path / "node1.ndjson").read_bytes() == before


def test_journal_of_a_power_loss_test_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(power_loss, "_LARGEST", 1000)
    with pytest.raises(CommandFailed, match="use another power_loss_test_name"):
        for _event in range(100):
            power_loss.append(tmp_path, "node1", power_loss.OPENED, settings={})
    assert (tmp_path / "node1.ndjson").stat().st_size <= 1000


def test_sweep_writes_no_journal_that_it_would_not_read(tmp_path):
    journal = {"campaign": "night", "host": "node1", "created": "2026-11-25", "description": {"variables": []}, "restore": {"block_cache_caches": []}}
    for changed in ({"restore": []}, {"description": []}, {"created": "x" * (20 << 20)}, {"restore": {"block_cache_caches": ["x"]}}):
        with pytest.raises(StorageError, match="nothing was written"):
            sweep_journal.write(str(tmp_path), {**journal, **changed}, check_mode=False, root=tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_of_the_kernel_are_read():
    """Those of /proc/sys cannot be read into a large buffer."""
    assert read_file(pathlib.Path("/proc/sys/kernel/osrelease")).strip() == os.uname().release
