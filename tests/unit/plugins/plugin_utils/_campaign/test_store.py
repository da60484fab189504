# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking in what hosts send: what is honest arrives whole, what is not leaves no trace."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.layout import CellKey, DamagedArchive, ResultsError
from ansible_collections.cachefleet.storage.tests.unit.support.archives import CAMPAIGN, JOB, add, cell, pack

NOW = datetime.datetime(2026, 11, 21, 14, 3, 55, tzinfo=datetime.timezone.utc)
KEY = CellKey("before", "randwrite-4k", 1)


@pytest.fixture
def campaign(tmp_path):
    folder, _is_new = store.open_campaign(tmp_path / "results", now=NOW)
    store.write_plan(folder, "node1", "before", [("randwrite-4k", 1), ("randwrite-4k", 2)], now=NOW)
    return folder


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 1 MiB, so that a full disk is a full disk."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["mount", "-o", "remount,rw", str(place)], check=False)
    subprocess.run(["umount", str(place)], check=True)


def take_in(archive, campaign, **options):
    return store.receive(archive, campaign, "node1", store.expected_cells(campaign, "node1"), **options)


def leftovers(campaign):
    return [path.name for path in campaign.iterdir() if path.name.startswith(".")]


def everything(campaign):
    return sorted(str(path.relative_to(campaign)) for path in campaign.rglob("*") if path.is_file())


# --- honest archives


def test_an_honest_archive_arrives_whole(campaign, tmp_path):
    received = take_in(pack(tmp_path / "a.tar", cell(), cell(repeat=2)), campaign)
    assert received.stored == (KEY, CellKey("before", "randwrite-4k", 2))
    assert (received.changed, received.states) == (True, {"ok": 2})
    assert (campaign / "node1/before/randwrite-4k/1/job.fio").read_text() == JOB
    assert leftovers(campaign) == []


def test_a_second_time_changes_nothing(campaign, tmp_path):
    archive = pack(tmp_path / "a.tar", cell())
    take_in(archive, campaign)
    before = {path: (campaign / path).stat().st_mtime_ns for path in everything(campaign)}
    received = take_in(archive, campaign)
    assert (received.changed, received.unchanged, received.stored) == (False, (KEY,), ())
    assert {path: (campaign / path).stat().st_mtime_ns for path in everything(campaign)} == before


def test_a_cell_that_was_not_ok_is_replaced(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell(state="interrupted", reason="stopped")), campaign)
    received = take_in(pack(tmp_path / "b.tar", cell()), campaign)
    assert (received.replaced, received.changed) == ((KEY,), True)
    assert store.load_campaign(campaign).cells[0].state == "ok"
    assert leftovers(campaign) == []


def test_an_ok_cell_is_kept_unless_replacing_was_asked_for(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell(content=b"first")), campaign)
    second = pack(tmp_path / "b.tar", cell(content=b"second"))
    assert take_in(second, campaign).refused == (KEY,)
    assert (campaign / "node1/before/randwrite-4k/1/fio.json.gz").read_bytes() == b"first"
    assert take_in(second, campaign, replace=True).replaced == (KEY,)
    assert (campaign / "node1/before/randwrite-4k/1/fio.json.gz").read_bytes() == b"second"


def test_a_damaged_stored_cell_is_replaced_by_a_whole_one(campaign, tmp_path):
    archive = pack(tmp_path / "a.tar", cell())
    take_in(archive, campaign)
    (campaign / "node1/before/randwrite-4k/1/job.fio").write_text("changed later")
    assert take_in(archive, campaign).replaced == (KEY,)
    assert store.load_campaign(campaign).cells[0].state == "ok"


def test_the_old_result_comes_back_when_the_new_one_cannot_be_put_in_place(campaign, tmp_path, monkeypatch):
    take_in(pack(tmp_path / "a.tar", cell(content=b"first")), campaign)
    rename = pathlib.Path.rename

    def failing(self, target):
        if "new" in self.parts:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(pathlib.Path, "rename", failing)
    with pytest.raises(ResultsError, match="became full"):
        take_in(pack(tmp_path / "b.tar", cell(content=b"second")), campaign, replace=True)
    assert (campaign / "node1/before/randwrite-4k/1/fio.json.gz").read_bytes() == b"first"
    assert leftovers(campaign) == []


# --- archives of a host with bad intentions


def hostile(path, *members):
    with tarfile.open(path, "w:") as tar:
        for name, data, fields in members:
            add(tar, name, data, **fields)
    return path


@pytest.mark.parametrize(
    ("name", "fields", "why"),
    [
        ("../../../etc/cron.d/x", {}, "not the file of a cell"),
        ("before/randwrite-4k/1/../../../../x", {}, "not the file of a cell"),
        ("/etc/passwd", {}, "not the file of a cell"),
        ("//before/randwrite-4k/1/job.fio", {}, "not the file of a cell"),
        ("before/../1/job.fio", {}, "not the file of a cell"),
        ("before/randwrite-4k/0/job.fio", {}, "not the file of a cell"),
        ("before/randwrite-4k/1/evil.sh", {}, "not the file of a cell"),
        ("before/randwrite-4k/1/.job.fio", {}, "not the file of a cell"),
        ("job.fio", {}, "not the file of a cell"),
        ("before/randwrite-4k/1/job.fio", {"type": tarfile.SYMTYPE, "linkname": "/etc/shadow"}, "not a plain file"),
        ("before/randwrite-4k/1/job.fio", {"type": tarfile.LNKTYPE, "linkname": "/etc/shadow"}, "not a plain file"),
        ("before/randwrite-4k/1/job.fio", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5}, "not a plain file"),
        ("before/randwrite-4k/1/job.fio", {"type": tarfile.BLKTYPE, "devmajor": 8, "devminor": 0}, "not a plain file"),
        ("before/randwrite-4k/1/job.fio", {"type": tarfile.FIFOTYPE}, "not a plain file"),
        ("before/randwrite-4k", {"type": tarfile.DIRTYPE}, "not a plain file"),
        ("after/randwrite-4k/1/job.fio", {}, "nobody asked this host for the cell after/randwrite-4k/1"),
        ("before/other/1/job.fio", {}, "nobody asked this host"),
        ("before/randwrite-4k/9/job.fio", {}, "nobody asked this host"),
        ("\x1b[2Jbefore/x", {}, "'before/x' is not the file of a cell"),
    ],
)
def test_a_hostile_member_is_refused_and_leaves_nothing(campaign, tmp_path, name, fields, why):
    before = everything(campaign)
    honest = [(file, data, {}) for file, data in cell(repeat=2).items()]
    with pytest.raises(DamagedArchive) as caught:
        take_in(hostile(tmp_path / "evil.tar", *honest, (name, b"" if "type" in fields else b"x", fields)), campaign)
    assert why in caught.value.message
    assert "still on the host" in caught.value.message
    assert "\x1b" not in caught.value.message
    assert everything(campaign) == before
    assert leftovers(campaign) == []


def test_a_name_given_twice_is_refused(campaign, tmp_path):
    members = [(file, data, {}) for file, data in cell().items()]
    with pytest.raises(DamagedArchive, match="is in it twice"):
        take_in(hostile(tmp_path / "twice.tar", *members, members[0]), campaign)


def test_a_file_that_claims_too_much_is_refused_before_it_is_written(campaign, tmp_path):
    path = tmp_path / "huge.tar"
    header = tarfile.TarInfo("before/randwrite-4k/1/meta.json")
    header.size = 1 << 40
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10240)
    with pytest.raises(DamagedArchive, match="larger than"):
        take_in(path, campaign)


def test_a_header_that_claims_the_controllers_memory_is_refused(campaign, tmp_path):
    path = tmp_path / "pax.tar"
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 1 << 40
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10240)
    with pytest.raises(DamagedArchive, match="cannot be read as a tar archive"):
        take_in(path, campaign)


def test_an_archive_above_the_limit_is_refused(campaign, tmp_path):
    with pytest.raises(DamagedArchive, match="at most 1 KiB are taken in"):
        take_in(pack(tmp_path / "a.tar", cell()), campaign, largest=1024)


def test_a_sparse_member_is_refused(campaign, tmp_path):
    path = tmp_path / "sparse.tar"
    header = tarfile.TarInfo("before/randwrite-4k/1/fio.json.gz")
    header.type = tarfile.GNUTYPE_SPARSE
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10240)
    with pytest.raises(DamagedArchive):
        take_in(path, campaign)


@pytest.mark.parametrize("content", [b"", b"\0" * 10240, b"not a tar" * 2000, b"\x1f\x8b\x08" + b"x" * 600], ids=["empty", "zeros", "text", "gzip"])
def test_something_that_is_no_archive_is_refused(campaign, tmp_path, content):
    path = tmp_path / "junk.tar"
    path.write_bytes(content)
    with pytest.raises(DamagedArchive):
        take_in(path, campaign)
    assert leftovers(campaign) == []


def test_an_archive_cut_short_anywhere_is_never_taken_in_half(campaign, tmp_path):
    whole = pack(tmp_path / "a.tar", cell(), cell(repeat=2)).read_bytes()
    before = everything(campaign)
    short = tmp_path / "short.tar"
    for length in range(0, whole.rindex(b'"files"'), 700):
        short.write_bytes(whole[:length])
        with pytest.raises(DamagedArchive):
            take_in(short, campaign)
        assert everything(campaign) == before


def changed(files, name, data):
    return {file: data if file.endswith(f"/{name}") else old for file, old in files.items()}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (changed(cell(), "job.fio", b"another"), "the SHA-256 of job.fio is not the one"),
        ({file: data for file, data in cell().items() if "stack" not in file}, "stack.json is missing"),
        ({**cell(), "before/randwrite-4k/1/lat.log.gz": b"x"}, "lat.log.gz is there and its meta.json does not know it"),
        ({file: data for file, data in cell().items() if "meta" not in file}, "meta.json cannot be read"),
        (changed(cell(), "meta.json", b"{"), "is not JSON"),
        (changed(cell(), "meta.json", b"[" * 100000), "is not JSON"),
        (changed(cell(), "meta.json", b"[]"), "is not a JSON object"),
        (cell(files=None), "its meta.json names no files"),
        (cell(host="node2"), "says host 'node2' where 'node1' was asked for"),
        (cell(campaign="other"), "says campaign 'other'"),
        ({name.replace("/2/", "/1/"): data for name, data in cell(repeat=2).items()}, "says repeat '2' where '1'"),
        (cell(schema=2), "says schema '2' where '1'"),
        (cell(schema=True), "says schema 'True'"),
        (cell(state="great"), "the state 'great', which does not exist"),
        (cell(state="missing"), "the state 'missing'"),
    ],
)
def test_a_cell_that_contradicts_itself_is_refused_with_everything_in_its_archive(campaign, tmp_path, files, why):
    with pytest.raises(DamagedArchive) as caught:
        take_in(pack(tmp_path / "a.tar", cell(repeat=2), files), campaign)
    assert why in caught.value.message
    assert not (campaign / "node1/before/randwrite-4k").exists()
    assert leftovers(campaign) == []


# --- the controller's own troubles


def test_too_little_space_is_seen_before_anything_is_written(campaign, tmp_path):
    with pytest.raises(ResultsError, match="free and everything needs 1024 PiB: free space"):
        store.require_space(campaign, 1 << 60, "everything")


def test_a_disk_that_becomes_full_leaves_no_half_result(tiny_disk, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MINIMUM_FREE", 0)
    folder, _is_new = store.open_campaign(tiny_disk / "results", CAMPAIGN, now=NOW)
    store.write_plan(folder, "node1", "before", [("randwrite-4k", 1)], now=NOW)
    archive = pack(tmp_path / "a.tar", cell(content=os.urandom(2 << 20)))
    with pytest.raises(ResultsError, match="free and unpacking the results of host node1 needs"):
        take_in(archive, folder)
    # And when the space goes while it is written: the look beforehand is only a look.
    monkeypatch.setattr(store, "require_space", lambda *_arguments: None)
    with pytest.raises(ResultsError, match="became full while receiving the results of host node1"):
        take_in(archive, folder)
    assert everything(folder) == ["campaign.json", "node1/before/plan.json"]
    assert leftovers(folder) == []
    take_in(pack(tmp_path / "b.tar", cell(content=b"small")), folder)
    assert store.load_campaign(folder).cells[0].state == "ok"


def test_a_campaign_is_not_begun_on_a_full_disk(tiny_disk):
    with pytest.raises(ResultsError, match=r"has .* free and a campaign needs 16 MiB"):
        store.open_campaign(tiny_disk, now=NOW)


def test_a_results_folder_that_cannot_be_written_is_one_sentence(tiny_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with pytest.raises(ResultsError, match=r"cannot be written by user .*Read-only file system.*set fio_benchmark_results"):
        store.open_campaign(tiny_disk / "results", now=NOW)


def test_a_results_folder_of_somebody_else_is_one_sentence(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o555)
    with pytest.raises(ResultsError, match=r"Permission denied.*set fio_benchmark_results"):
        store.open_campaign(tmp_path / "results", now=NOW)
    with pytest.raises(ResultsError, match="Permission denied"):
        store.open_campaign(tmp_path / "results", now=NOW, dry_run=True)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_results_folder_that_is_a_file_is_one_sentence(tmp_path, dry_run):
    (tmp_path / "results").write_text("x")
    with pytest.raises(ResultsError, match="cannot be written by user"):
        store.open_campaign(tmp_path / "results", now=NOW, dry_run=dry_run)


def test_a_dry_run_makes_nothing(tmp_path):
    folder, is_new = store.open_campaign(tmp_path / "results", label="x", now=NOW, dry_run=True)
    assert (folder.name, is_new, list(tmp_path.iterdir())) == ("2026-11-21T1403Z-x", True, [])


# --- campaigns and plans


def test_two_campaigns_of_one_minute_have_two_folders(tmp_path):
    assert [store.open_campaign(tmp_path, now=NOW)[0].name for _time in range(2)] == ["2026-11-21T1403Z", "2026-11-21T1403Z-2"]


def test_a_named_campaign_is_opened_again(tmp_path):
    assert [store.open_campaign(tmp_path, "mine", now=NOW) for _time in range(2)] == [(tmp_path / "mine", True), (tmp_path / "mine", False)]


@pytest.mark.parametrize("name", ["../x", "a/b", ".x"])
def test_a_campaign_cannot_be_anywhere_else(tmp_path, name):
    with pytest.raises(BadInput, match="cannot be the name of a campaign"):
        store.open_campaign(tmp_path, name, now=NOW)


def test_a_plan_is_added_to_and_never_shortened(campaign):
    assert store.write_plan(campaign, "node1", "before", [("other", 1)], now=NOW)
    assert not store.write_plan(campaign, "node1", "before", [("other", 1)], now=NOW)
    assert store.expected_cells(campaign, "node1") == {KEY, CellKey("before", "randwrite-4k", 2), CellKey("before", "other", 1)}


def test_a_dry_run_of_a_plan_says_what_would_change_and_writes_nothing(campaign):
    assert store.write_plan(campaign, "node1", "after", [("x", 1)], now=NOW, dry_run=True)
    assert not store.write_plan(campaign, "node1", "before", [("randwrite-4k", 1)], now=NOW, dry_run=True)
    assert everything(campaign) == ["campaign.json", "node1/before/plan.json"]


ASKED = store.Asked("abc", "/dev/x", None)


def measured(**target):
    return {"workload_sha256": "abc", "target": {"path": "/dev/x", "used_size": None, **target}}


def test_what_is_ok_already_is_finished_and_nothing_else_is(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell(**measured()), cell(repeat=2, state="failed", **measured())), campaign)
    wanted = dict.fromkeys([KEY, CellKey("before", "randwrite-4k", 2), CellKey("before", "other", 1)], ASKED)
    assert store.finished(campaign, "node1", wanted) == {KEY}
    (campaign / "node1/before/randwrite-4k/1/fio.json.gz").write_bytes(b"cut")
    assert store.finished(campaign, "node1", wanted) == set()


@pytest.mark.parametrize(
    "said", [{}, {"workload_sha256": "x", "target": {"path": "/dev/x"}}, measured(path="/dev/y"), measured(used_size=4096), {"target": []}]
)
def test_an_ok_result_of_something_else_is_not_taken_for_this_one(campaign, tmp_path, said):
    take_in(pack(tmp_path / "a.tar", cell(**said)), campaign)
    with pytest.raises(BadInput, match=r"has an ok result of before/randwrite-4k/1 of host node1 already, of another job or target.*fio_benchmark_replace"):
        store.finished(campaign, "node1", {KEY: ASKED})


# --- reading back


def test_what_was_planned_and_never_came_is_missing(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    store.write_plan(campaign, "node2", "before", [("randwrite-4k", 1)], now=NOW)
    loaded = store.load_campaign(campaign)
    assert [(record.host, record.key.repeat, record.state) for record in loaded.cells] == [("node1", 1, "ok"), ("node1", 2, "missing"), ("node2", 1, "missing")]
    assert loaded.cells[1].path is None
    assert loaded.cells[0].job["bs"] == "4k"
    assert loaded.cells[0].verdicts == ("durable", "durable")


def test_variants_come_in_the_order_in_which_they_were_planned(campaign):
    store.write_plan(campaign, "node1", "after", [("randwrite-4k", 1)], now=NOW + datetime.timedelta(minutes=5))
    assert store.load_campaign(campaign).variants == ("before", "after")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("fio.json.gz", b"other numbers", "the SHA-256 of fio.json.gz"),
        ("extra.log.gz", b"x", "extra.log.gz is there"),
        ("meta.json", b"no", "is not JSON"),
        ("meta.json", json.dumps({"schema": 1, "host": "node9", "files": {}, "state": "ok"}).encode(), "is there and its meta.json"),
    ],
)
def test_a_cell_that_was_changed_later_is_failed_and_has_no_numbers(campaign, tmp_path, name, content, why):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    (campaign / "node1/before/randwrite-4k/1" / name).write_bytes(content)
    record = store.load_campaign(campaign).cells[0]
    assert (record.state, record.meta) == ("failed", {})
    assert why in record.reason


def test_a_cell_moved_to_another_host_is_failed(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    (campaign / "node1").rename(campaign / "node7")
    assert "belongs to another cell" in store.load_campaign(campaign).cells[0].reason


def test_links_and_strange_names_are_said_and_not_followed(campaign, tmp_path):
    (campaign / "linked").symlink_to("/etc")
    (campaign / "node1/before/randwrite-4k").mkdir()
    (campaign / "node1/before/randwrite-4k/first").mkdir()
    problems = store.load_campaign(campaign).problems
    assert any("linked is left out" in problem for problem in problems)
    assert any("first is left out" in problem for problem in problems)


def test_campaign_folders_can_be_merged_by_copying(tmp_path):
    for host in ("node1", "node2"):
        folder, _is_new = store.open_campaign(tmp_path / host, CAMPAIGN, now=NOW)
        store.write_plan(folder, host, "before", [("randwrite-4k", 1)], now=NOW)
        archive = pack(tmp_path / f"{host}.tar", cell(host=host))
        store.receive(archive, folder, host, store.expected_cells(folder, host))
    subprocess.run(["cp", "-r", str(tmp_path / "node2" / CAMPAIGN / "node2"), str(tmp_path / "node1" / CAMPAIGN)], check=True)
    assert [record.state for record in store.load_campaign(tmp_path / "node1" / CAMPAIGN).cells] == ["ok", "ok"]


def test_a_folder_that_is_no_campaign_is_one_sentence(tmp_path):
    with pytest.raises(ResultsError, match="does not exist"):
        store.load_campaign(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match="is not the folder of a campaign"):
        store.load_campaign(tmp_path)


def test_json_is_never_half_written(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    store.write_json(path, {"a": 1})

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultsError, match="became full"):
        store.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_a_new_hash_is_the_hash(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert store.file_sha256(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
