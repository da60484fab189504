# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking in what hosts send: what is honest arrives whole, what is not leaves no trace."""

from __future__ import annotations

import gzip
import os
import pathlib
import tarfile

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import archive as archive_module
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import DamagedArchive, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Pattern
from ansible_collections.cachefleet.storage.tests.unit.support.archives import CAMPAIGN, JOB, add, cell, pack
from ansible_collections.cachefleet.storage.tests.unit.support.campaigns import KEY, NOW, everything, leftovers, take_in

# --- honest archives


def test_valid_archive_is_stored_completely(campaign, tmp_path):
    received = take_in(pack(tmp_path / "a.tar", cell(), cell(repeat=2)), campaign)
    assert received.stored == (KEY, CellKey("before", "randwrite-4k", 2))
    assert (received.changed, received.states) == (True, {"ok": 2})
    assert (campaign / "node1/before/randwrite-4k/1/job.fio").read_text() == JOB
    assert leftovers(campaign) == []


def test_no_change_on_second_import(campaign, tmp_path):
    archive = pack(tmp_path / "a.tar", cell())
    take_in(archive, campaign)
    before = {path: (campaign / path).stat().st_mtime_ns for path in everything(campaign)}
    received = take_in(archive, campaign)
    assert (received.changed, received.unchanged, received.stored) == (False, (KEY,), ())
    assert {path: (campaign / path).stat().st_mtime_ns for path in everything(campaign)} == before


def test_failed_cell_is_replaced(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell(state="interrupted", reason="stopped")), campaign)
    received = take_in(pack(tmp_path / "b.tar", cell()), campaign)
    assert (received.replaced, received.changed) == ((KEY,), True)
    assert store.load_campaign(campaign).cells[0].state == "ok"
    assert leftovers(campaign) == []


def test_ok_cell_is_kept_unless_replacement_is_requested(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell(content=b"first")), campaign)
    second = pack(tmp_path / "b.tar", cell(content=b"second"))
    assert take_in(second, campaign).refused == (KEY,)
    assert (campaign / "node1/before/randwrite-4k/1/fio.json.gz").read_bytes() == gzip.compress(b"first", mtime=0)
    assert take_in(second, campaign, replace=True).replaced == (KEY,)
    assert (campaign / "node1/before/randwrite-4k/1/fio.json.gz").read_bytes() == gzip.compress(b"second", mtime=0)


@pytest.mark.parametrize("state", ["ok", "interrupted"])
def test_ok_cell_is_replaced_by_a_result_referencing_it(campaign, tmp_path, state):
    take_in(pack(tmp_path / "a.tar", cell(measurement_sha256="a" * 64)), campaign)
    new = pack(tmp_path / "b.tar", cell(content=b"second", state=state, measurement_sha256="b" * 64, replaces="a" * 64))
    assert take_in(new, campaign).replaced == (KEY,)
    assert take_in(new, campaign).unchanged == (KEY,)


@pytest.mark.parametrize("named", ["b" * 64, "", None, True, ["a" * 64], "a"])
def test_ok_cell_is_not_replaced_by_a_result_referencing_another(campaign, tmp_path, named):
    stored = "a" if named == "a" else "a" * 64
    take_in(pack(tmp_path / "a.tar", cell(measurement_sha256=stored)), campaign)
    assert take_in(pack(tmp_path / "b.tar", cell(content=b"second", replaces=named)), campaign).refused == (KEY,)


def test_ok_cell_without_measurement_hash_is_not_replaced(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    assert take_in(pack(tmp_path / "b.tar", cell(content=b"second", replaces=None)), campaign).refused == (KEY,)


def test_search_probes_and_answer_without_output_are_stored(campaign, tmp_path):
    store.write_plan(campaign, "node1", "before", [], patterns=[Pattern("randwrite-4k", (1,), "iodepth", 1, 64)], now=NOW)
    answer = {name: data for name, data in cell(files={}, search={"answer": "found"}).items() if name.endswith("meta.json")}
    received = take_in(pack(tmp_path / "a.tar", answer, cell("randwrite-4k.iodepth-8")), campaign)
    assert received.stored == (KEY, CellKey("before", "randwrite-4k.iodepth-8", 1))


def test_unrequested_probe_is_rejected(campaign, tmp_path):
    with pytest.raises(DamagedArchive, match="this host was not requested"):
        take_in(pack(tmp_path / "a.tar", cell("randwrite-4k.iodepth-8")), campaign)


def test_damaged_stored_cell_is_replaced(campaign, tmp_path):
    archive = pack(tmp_path / "a.tar", cell())
    take_in(archive, campaign)
    (campaign / "node1/before/randwrite-4k/1/job.fio").write_text("changed later")
    assert take_in(archive, campaign).replaced == (KEY,)
    assert store.load_campaign(campaign).cells[0].state == "ok"


def test_old_result_is_restored_if_replacement_fails(campaign, tmp_path, monkeypatch):
    take_in(pack(tmp_path / "a.tar", cell(content=b"first")), campaign)
    rename = pathlib.Path.rename

    def failing(self, target):
        if "new" in self.parts:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(pathlib.Path, "rename", failing)
    with pytest.raises(ResultsError, match="became full"):
        take_in(pack(tmp_path / "b.tar", cell(content=b"second")), campaign, replace=True)
    assert (campaign / "node1/before/randwrite-4k/1/fio.json.gz").read_bytes() == gzip.compress(b"first", mtime=0)
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
        ("after/randwrite-4k/1/job.fio", {}, "this host was not requested to measure the cell after/randwrite-4k/1"),
        ("before/other/1/job.fio", {}, "this host was not requested"),
        ("before/randwrite-4k/9/job.fio", {}, "this host was not requested"),
        ("\x1b[2Jbefore/x", {}, "'before/x' is not the file of a cell"),
    ],
)
def test_hostile_member_is_rejected_without_remains(campaign, tmp_path, name, fields, why):
    before = everything(campaign)
    honest = [(file, data, {}) for file, data in cell(repeat=2).items()]
    with pytest.raises(DamagedArchive) as caught:
        take_in(hostile(tmp_path / "evil.tar", *honest, (name, b"" if "type" in fields else b"x", fields)), campaign)
    assert why in caught.value.message
    assert "still on the host" in caught.value.message
    assert "\x1b" not in caught.value.message
    assert everything(campaign) == before
    assert leftovers(campaign) == []


def test_duplicate_name_is_rejected(campaign, tmp_path):
    members = [(file, data, {}) for file, data in cell().items()]
    received = take_in(hostile(tmp_path / "twice.tar", *members, members[0]), campaign)
    assert (received.stored, received.rejected) == ((), {KEY: "job.fio is in the archive twice"})


def test_oversized_file_is_rejected_before_it_is_written(campaign, tmp_path):
    path = tmp_path / "huge.tar"
    header = tarfile.TarInfo("before/randwrite-4k/1/meta.json")
    header.size = 1 << 40
    path.write_bytes(header.tobuf(tarfile.PAX_FORMAT) + b"\0" * 10240)
    with pytest.raises(DamagedArchive, match="ends in the middle of"):
        take_in(path, campaign)
    received = take_in(hostile(path, ("before/randwrite-4k/1/meta.json", b" " * (5 << 20), {})), campaign)
    assert received.rejected == {KEY: "meta.json is larger than 4 MiB"}


def test_oversized_header_is_rejected(campaign, tmp_path):
    path = tmp_path / "pax.tar"
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    path.write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 10240)
    with pytest.raises(DamagedArchive, match="a header that is too large"):
        take_in(path, campaign)


def test_archive_above_the_limit_is_rejected(campaign, tmp_path):
    with pytest.raises(DamagedArchive, match="at most 1 KiB are accepted"):
        take_in(pack(tmp_path / "a.tar", cell()), campaign, largest=1024)


def test_sparse_member_is_rejected(campaign, tmp_path):
    path = tmp_path / "sparse.tar"
    header = tarfile.TarInfo("before/randwrite-4k/1/fio.json.gz")
    header.type = tarfile.GNUTYPE_SPARSE
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10240)
    with pytest.raises(DamagedArchive):
        take_in(path, campaign)


@pytest.mark.parametrize("content", [b"", b"\0" * 10240, b"not a tar" * 2000, b"\x1f\x8b\x08" + b"x" * 600], ids=["empty", "zeros", "text", "gzip"])
def test_non_archive_is_rejected(campaign, tmp_path, content):
    path = tmp_path / "junk.tar"
    path.write_bytes(content)
    with pytest.raises(DamagedArchive):
        take_in(path, campaign)
    assert leftovers(campaign) == []


def test_truncated_archive_is_never_partially_stored(campaign, tmp_path):
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
        ({**cell(), "before/randwrite-4k/1/lat.log.gz": b"x"}, "lat.log.gz is not listed in its meta.json"),
        ({file: data for file, data in cell().items() if "meta" not in file}, "meta.json cannot be read"),
        (changed(cell(), "meta.json", b"{"), "is not JSON"),
        (changed(cell(), "meta.json", b"[" * 10000), "nested deeper than 64 levels"),
        (changed(cell(), "meta.json", b"[]"), "is not a JSON object"),
        (cell(files=None), "its meta.json names no files"),
        (cell(host="node2"), "contains host 'node2' where 'node1' was requested"),
        (cell(campaign="other"), "contains campaign 'other'"),
        ({name.replace("/2/", "/1/"): data for name, data in cell(repeat=2).items()}, "contains repeat '2' where '1'"),
        (cell(schema=2), "contains schema '2' where '1'"),
        (cell(schema=True), "contains schema 'True'"),
        (cell(state="great"), "the state 'great', which does not exist"),
        (cell(state="missing"), "the state 'missing'"),
    ],
)
def test_inconsistent_cell_is_rejected_and_others_are_stored(campaign, tmp_path, files, why):
    received = take_in(pack(tmp_path / "a.tar", cell(repeat=2), files), campaign)
    assert received.stored == (CellKey("before", "randwrite-4k", 2),)
    assert list(received.rejected) == [KEY] and why in received.rejected[KEY]
    assert not (campaign / "node1/before/randwrite-4k/1").exists()
    assert leftovers(campaign) == []


# --- what unpacks to more than it looks like


def packed_fio(text):
    return cell(content=text.encode())


NESTED = '{"fio version": "fio-3.33", "jobs": [' + "[" * 100_000 + "]" * 100_000 + "]}"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param(packed_fio(NESTED), "nested deeper than 64 levels", id="nested"),
        pytest.param(packed_fio('{"jobs": [' + "[]," * 2_000_000 + "0]}"), "more than 1,000,000 values", id="many-values"),
        pytest.param(packed_fio('{"jobs": [' + "{}," * 300_000 + "0]}"), "more than 200,000 arrays and objects", id="many-objects"),
        pytest.param(packed_fio(" " * (65 << 20)), "unpacks to more than 64 MiB", id="unpacked-size"),
        pytest.param(packed_fio('{"fio version": "fio-3.33", "jobs": 5}'), "neither jobs nor client_stats", id="not-fio"),
        pytest.param(changed(cell(), "fio.json.gz", b"not packed"), "the SHA-256", id="not-gzip"),
    ],
)
def test_output_exceeding_limits_is_rejected_individually(campaign, tmp_path, files, why):
    received = take_in(pack(tmp_path / "a.tar", cell(repeat=2), files), campaign)
    assert [key.repeat for key in received.stored] == [2]
    assert why in received.rejected[KEY]


def chained(count, kind, tail=b""):
    """An archive that begins with ``count`` extension headers."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 0
    return header.tobuf(tarfile.USTAR_FORMAT) * count + tail


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.SOLARIS_XHDTYPE])
def test_chain_of_extension_headers_is_rejected(campaign, tmp_path, kind):
    honest = pack(tmp_path / "a.tar", cell()).read_bytes()
    path = tmp_path / "chain.tar"
    path.write_bytes(chained(5000, kind, honest))
    with pytest.raises(DamagedArchive, match="is not accepted"):
        take_in(path, campaign)
    assert leftovers(campaign) == []


@pytest.mark.parametrize("headers", [{"GNU.sparse.major": "1"}, {"linkpath": "/etc/shadow"}, {"size": "-1"}, {"size": "1_0"}, {"hdrcharset": "BINARY"}])
def test_unexpected_pax_header_is_rejected(campaign, tmp_path, headers):
    with pytest.raises(DamagedArchive, match="is not accepted"):
        take_in(hostile(tmp_path / "pax.tar", ("before/randwrite-4k/1/job.fio", b"x", {"pax_headers": headers})), campaign)


def test_long_valid_names_are_accepted(campaign, tmp_path):
    long = "c" * 120
    store.write_plan(campaign, "node1", "v" * 120, [(long, 1)], now=NOW)
    received = take_in(pack(tmp_path / "a.tar", cell(long, variant="v" * 120)), campaign)
    assert [str(key) for key in received.stored] == [f"{'v' * 120}/{long}/1"]


# --- the controller's own troubles


def test_full_disk_leaves_no_partial_result(tiny_disk, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MINIMUM_FREE", 0)
    folder, _is_new = store.open_campaign(tiny_disk / "results", CAMPAIGN, now=NOW)
    store.write_plan(folder, "node1", "before", [("randwrite-4k", 1)], now=NOW)
    archive = pack(tmp_path / "a.tar", cell(content=os.urandom(2 << 20)))
    with pytest.raises(ResultsError, match="free and unpacking the results of host node1 needs"):
        take_in(archive, folder)
    # And when the space goes while it is written: the look beforehand is only a look.
    monkeypatch.setattr(archive_module, "require_space", lambda *_arguments: None)
    with pytest.raises(ResultsError, match="became full while receiving the results of host node1"):
        take_in(archive, folder)
    assert everything(folder) == ["campaign.json", "node1/before/plan.json"]
    assert leftovers(folder) == []
    take_in(pack(tmp_path / "b.tar", cell(content=b"small")), folder)
    assert store.load_campaign(folder).cells[0].state == "ok"
