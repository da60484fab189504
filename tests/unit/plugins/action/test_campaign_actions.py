# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs on the controller, with a host that is honest, one that is not, and one whose answer gets lost."""

from __future__ import annotations

import datetime
import pathlib
import shlex
import shutil
import types

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.cachefleet.storage.plugins.action import campaign as campaign_action
from ansible_collections.cachefleet.storage.plugins.action import collect as collect_action
from ansible_collections.cachefleet.storage.plugins.action import report as report_action
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import reading as files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.archive import receive
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action
from ansible_collections.cachefleet.storage.tests.unit.support.archives import CAMPAIGN, cell, pack, said_of

SPOOL = "/var/lib/cachefleet/spool"
WANTED = {"name": "randwrite-4k", "repeat": 1, "target": {"device": "/dev/vg0/x", "size": "1g"}, "job": {"rw": "randwrite", "bs": "4k"}}
NOW = datetime.datetime(2026, 11, 21, 14, 3, tzinfo=datetime.timezone.utc)
REMOTE = f"{SPOOL}/{CAMPAIGN}.tar"


class Connection:
    """A connection plugin as far as it is used: it copies a file of the host, or fails at it."""

    become = None

    def __init__(self, remote=None, error=None):
        self.remote, self.error, self.fetched = remote, error, []
        self._shell = types.SimpleNamespace(tmpdir=None)

    def fetch_file(self, source, target):
        self.fetched.append(source)
        if self.error is not None:
            pathlib.Path(target).write_bytes(b"the beginning of")
            raise self.error
        shutil.copyfile(self.remote, target)


class Host:
    """Runs one action plugin as a task of one host would."""

    def __init__(self, module, monkeypatch, connection=None, name="node1"):
        self.connection = connection or Connection()
        self.module, self.name = module, name
        self.printed, self.removed = [], []
        self.answer = {"rc": 0, "stdout": "found\n"}
        monkeypatch.setattr(module.ActionModule, "_low_level_execute_command", self._execute)

    def _execute(self, command, sudoable, executable):
        *remove, first, second = shlex.split(command.partition("found; rm")[2])
        assert command.startswith(f"{{ test -e {first} || test -e {second}; }}") and remove == ["-rf", "--"] and sudoable
        self.removed += [first, second]
        return self.answer

    def run(self, *, check_mode=False, **args):
        return made_action(self.module, args, self.printed, check_mode=check_mode, _connection=self.connection).run(task_vars={"inventory_hostname": self.name})

    def collect(self, folder, archive, **more):
        return self.run(path=str(folder), archive=message(archive), **more)


def collecting(monkeypatch, archive):
    return Host(collect_action, monkeypatch, Connection(archive))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    host = Host(campaign_action, monkeypatch)
    result = host.run(results=str(tmp_path / "results"), name=CAMPAIGN, variant="before", cells=[WANTED])
    assert result == {"changed": True, "name": CAMPAIGN, "path": str(tmp_path / "results" / CAMPAIGN), "due": [WANTED], "steps": [], "measured": False}
    return tmp_path / "results" / CAMPAIGN


@pytest.fixture
def archive(tmp_path):
    return pack(tmp_path / "a.tar", cell())


def message(archive, **changes):
    return {**said_of(archive), "path": REMOTE, **changes}


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# --- campaign


@pytest.mark.parametrize(("inside", "is_refused"), [("job/project/results", True), ("job", True), ("jobs/results", False), ("job/../kept", False)])
def test_results_in_the_folder_of_an_awx_job_are_refused(tmp_path, monkeypatch, inside, is_refused):
    (tmp_path / "job").mkdir()
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", str(tmp_path / "job"))
    result = Host(campaign_action, monkeypatch).run(results=str(tmp_path / inside), name="c")
    assert bool(result.get("failed")) == is_refused
    assert not is_refused or "set fio_benchmark_results to a folder that is kept" in result["msg"]
    assert Host(campaign_action, monkeypatch).run(check_mode=True, results=str(tmp_path / inside), name="c").get("failed") is None


def test_campaign_is_opened_once(folder, monkeypatch):
    host = Host(campaign_action, monkeypatch)
    again = host.run(results=str(folder.parent), name=CAMPAIGN, variant="before", cells=[WANTED])
    assert (again["changed"], again["due"]) == (False, [WANTED])


def test_measured_cells_are_not_due(folder, tmp_path, monkeypatch):
    done = {"workload_sha256": read_job(WANTED["job"], "randwrite-4k").workload_sha256, "target": {"path": "/dev/vg0/x", "used_size": 1 << 30}}
    archive = pack(tmp_path / "a.tar", cell(**done))
    collecting(monkeypatch, archive).collect(folder, archive)
    host = Host(campaign_action, monkeypatch)
    arguments = {"results": str(folder.parent), "name": CAMPAIGN, "variant": "before"}
    more = {**WANTED, "repeat": 2}
    assert host.run(**arguments, cells=[WANTED, more], check_mode=True)["due"] == [more]
    assert host.run(**arguments, cells=[WANTED, more])["due"] == [more]
    assert host.run(**arguments, cells=[WANTED, more], replace=True)["due"] == [WANTED, more]
    other = {**WANTED, "job": {"rw": "randread"}}
    assert "of another job or target" in host.run(**arguments, cells=[other])["msg"]


STEP = {"number": 0, "cells": [{"name": "randwrite-4k", "repeat": 1}]}


@pytest.mark.parametrize("sha256", [None, "x", "0" * 64])
def test_earlier_version_results_are_reported_before_remeasurement(folder, tmp_path, monkeypatch, sha256):
    archive = pack(tmp_path / "a.tar", cell(measurement_sha256=sha256, finished=1.0e9) if sha256 else cell())
    collecting(monkeypatch, archive).collect(folder, archive)
    host = Host(campaign_action, monkeypatch)
    arguments = {"results": str(folder.parent), "name": CAMPAIGN, "variant": "before", "cells": [{"name": "randwrite-4k", "repeat": 1}], "steps": [STEP]}
    result = host.run(**arguments)
    if sha256 == "0" * 64:
        (printed,) = host.printed
        assert printed.startswith("node1: the cell of variant before was measured at 2001-09-")
        assert result["steps"][0]["cells"][0]["done_as"] == sha256
        return
    assert result["steps"][0]["cells"][0]["done_as"] is None
    [warning] = host.printed
    assert (
        "node1: 1 ok results in " in warning and "are of an earlier version of the collection (" in warning and "so these cells are measured again" in warning
    )
    assert "set fio_benchmark_replace to true to put the new results in their place, or name another campaign" in warning
    host.printed.clear()
    host.run(**arguments, replace=True)
    assert host.printed == []


def test_new_results_conflicting_with_earlier_version_stay_on_host(folder, tmp_path, monkeypatch):
    first = pack(tmp_path / "a.tar", cell())
    Host(collect_action, monkeypatch, Connection(first)).run(path=str(folder), archive=message(first))
    second = pack(tmp_path / "b.tar", cell(content=b"something else", measurement_sha256="0" * 64))
    host = Host(collect_action, monkeypatch, Connection(second))
    result = host.run(path=str(folder), archive=message(second))
    assert result["failed"] and host.removed == []
    assert "1 cells of host node1 have an ok result" in result["msg"] and "that an earlier version of the collection made (" in result["msg"]
    assert "so they were measured again: the old result was kept, and the new one waits on the host in /var/lib/cachefleet/spool." in result["msg"]
    assert "Set fio_benchmark_replace to true and run again to take the new ones, or name another campaign to have both." in result["msg"]
    again = host.run(path=str(folder), archive=message(second), replace=True)
    assert not again.get("failed") and len(again["replaced"]) == 1


def test_variant_is_required_for_cells(tmp_path, monkeypatch):
    result = Host(campaign_action, monkeypatch).run(results=str(tmp_path), cells=[WANTED])
    assert result["failed"]
    assert "no variant" in result["msg"]


def test_check_mode_creates_nothing(tmp_path, monkeypatch):
    result = Host(campaign_action, monkeypatch).run(check_mode=True, results=str(tmp_path / "results"), variant="a", cells=[WANTED])
    assert result["changed"] is True
    assert list(tmp_path.iterdir()) == []


def test_invalid_host_folder_name_is_reported_before_measurement(tmp_path, monkeypatch):
    result = Host(campaign_action, monkeypatch, name="fe80::1").run(results=str(tmp_path), variant="a", cells=[WANTED])
    assert result["failed"]
    assert "ansible_host" in result["msg"]


# --- collect


def test_results_are_removed_from_host_only_after_they_are_stored(folder, archive, monkeypatch):
    host = collecting(monkeypatch, archive)
    result = host.collect(folder, archive)
    assert (result["changed"], result["stored"], result["states"]) == (True, ["before/randwrite-4k/1"], {"ok": 1})
    assert host.removed == [f"{SPOOL}/{CAMPAIGN}", REMOTE]
    assert store.load_campaign(folder).cells[0].state == "ok"
    assert hidden(folder) == []


def test_no_change_on_second_collection(folder, archive, monkeypatch):
    host = collecting(monkeypatch, archive)
    host.collect(folder, archive)
    host.answer = {"rc": 0, "stdout": ""}
    result = host.collect(folder, archive)
    assert (result["changed"], result["unchanged"]) == (False, ["before/randwrite-4k/1"])


def test_keep_on_host_keeps_the_archive(folder, archive, monkeypatch):
    host = collecting(monkeypatch, archive)
    assert host.collect(folder, archive, keep_on_host=True)["changed"]
    assert host.removed == []


def test_check_mode_fetches_nothing(folder, archive, monkeypatch):
    host = collecting(monkeypatch, archive)
    assert host.collect(folder, archive, check_mode=True)["changed"]
    assert host.run(check_mode=True, path=str(folder), archive={})["changed"]
    assert (host.connection.fetched, host.removed) == ([], [])
    assert all("would collect" in line for line in host.printed)


@pytest.mark.parametrize("archive_said", [{}, {"path": None, "sha256": None, "size": None}])
def test_host_without_results_is_no_change(folder, monkeypatch, archive_said):
    host = Host(collect_action, monkeypatch)
    assert host.run(path=str(folder), archive=archive_said)["changed"] is False
    assert host.connection.fetched == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"path": "/etc/shadow"}, "not a file below"),
        ({"path": f"{SPOOL}/../../../etc/shadow"}, "not a file below"),
        ({"path": f"{SPOOL}/a b"}, "not a file below"),
        ({"path": f"{SPOOL}/$(reboot)"}, "not a file below"),
        ({"path": SPOOL}, "not a file below"),
        ({"path": f"{SPOOL}x/a.tar"}, "not a file below"),
        ({"path": "spool/a.tar"}, "not a file below"),
        ({"sha256": "abc"}, "for the SHA-256 of its archive"),
        ({"sha256": None}, "for the SHA-256 of its archive"),
        ({"size": -1}, "for the size of its archive"),
        ({"size": None}, "for the size of its archive"),
        ({"size": 1 << 50}, "at most 4 GiB are accepted"),
    ],
)
def test_archive_data_reported_by_host_is_validated(folder, archive, monkeypatch, changes, sentence):
    host = collecting(monkeypatch, archive)
    result = host.run(path=str(folder), archive=message(archive, **changes))
    assert result["failed"]
    assert sentence in result["msg"]
    assert (host.connection.fetched, host.removed) == ([], [])


@pytest.mark.parametrize("damage", ["sha", "content", "transfer"])
def test_damaged_archive_stays_on_the_host(folder, archive, tmp_path, monkeypatch, damage):
    connection = Connection(archive, AnsibleError("sftp: connection lost") if damage == "transfer" else None)
    claim = message(archive, sha256="0" * 64) if damage == "sha" else message(archive)
    if damage == "content":
        connection.remote = pack(tmp_path / "b.tar", cell(host="node2"))
        claim = message(connection.remote)
    host = Host(collect_action, monkeypatch, connection)
    result = host.run(path=str(folder), archive=claim)
    assert result["failed"]
    assert "still on the host" in result["msg"]
    assert host.removed == []
    assert hidden(folder) == []
    assert [record.state for record in store.load_campaign(folder).cells] == ["failed" if damage == "content" else "missing"]


def test_rejected_cell_is_failed_with_reason_until_replaced(folder, tmp_path, monkeypatch):
    store.write_plan(folder, "node1", "before", [("randwrite-4k", 2)], now=NOW)
    both = pack(tmp_path / "b.tar", cell(content=b'{"jobs": [' + b"[" * 1000), cell(repeat=2))
    host = Host(collect_action, monkeypatch, Connection(both))
    result = host.run(path=str(folder), archive=message(both))
    assert (result["failed"], result["stored"], list(result["rejected"])) == (True, ["before/randwrite-4k/2"], ["before/randwrite-4k/1"])
    assert "1 of the 2 cells of host node1 are not accepted: before/randwrite-4k/1: fio.json.gz could not be parsed" in result["msg"]
    assert host.removed == [], "what was not accepted stays on the host"
    rejected, stored = store.load_campaign(folder).cells
    assert (rejected.state, stored.state) == ("failed", "ok")
    assert "nested deeper than 64 levels" in rejected.reason
    whole = pack(tmp_path / "c.tar", cell(), cell(repeat=2))
    assert not Host(collect_action, monkeypatch, Connection(whole)).run(path=str(folder), archive=message(whole)).get("failed")
    assert [record.state for record in store.load_campaign(folder).cells] == ["ok", "ok"]


@pytest.mark.parametrize("announced", [10 << 10, 20 << 10])
def test_archive_size_mismatch_fails_with_both_sizes(folder, tmp_path, monkeypatch, announced):
    more = tmp_path / "more"
    with more.open("wb") as file:
        file.truncate(60 << 20)
    if announced > 10 << 10:
        more.write_bytes(b"x" * 100)
    result = Host(collect_action, monkeypatch, Connection(more)).run(path=str(folder), archive=message(more, size=announced))
    assert result["failed"] and f"announced an archive of {announced >> 10} KiB ({announced} bytes) and sent" in result["msg"]
    assert hidden(folder) == []


def test_lost_connection_is_handled_by_ansible(folder, archive, monkeypatch):
    host = Host(collect_action, monkeypatch, Connection(archive, AnsibleConnectionFailure("no route to host")))
    with pytest.raises(AnsibleConnectionFailure):
        host.collect(folder, archive)
    assert hidden(folder) == []


def test_conflicting_ok_result_is_kept_on_both_sides(folder, archive, tmp_path, monkeypatch):
    collecting(monkeypatch, archive).collect(folder, archive)
    second = pack(tmp_path / "b.tar", cell(content=b"measured again"))
    host = Host(collect_action, monkeypatch, Connection(second))
    result = host.run(path=str(folder), archive=message(second))
    assert result["failed"]
    assert "it was kept, and the new one waits on the host" in result["msg"]
    assert host.removed == []
    assert host.run(path=str(folder), archive=message(second), replace=True)["replaced"] == ["before/randwrite-4k/1"]
    assert len(host.removed) == 2


def test_failed_cleanup_on_host_is_no_failure(folder, archive, monkeypatch):
    host = collecting(monkeypatch, archive)
    host.answer = {"rc": 1, "stderr": "read-only \x1b[31mfile system"}
    result = host.collect(folder, archive)
    assert "failed" not in result
    assert any("could not be removed from the host: read-only file system" in line for line in host.printed)


def test_insufficient_space_is_reported_before_the_fetch(folder, archive, monkeypatch):
    monkeypatch.setattr(files.os, "statvfs", lambda _folder: types.SimpleNamespace(f_bavail=1, f_frsize=4096))
    host = collecting(monkeypatch, archive)
    result = host.collect(folder, archive)
    assert "has 4 KiB free and collecting the results of host node1 needs" in result["msg"]
    assert host.connection.fetched == []


# --- report


def test_report_is_printed_and_returned(folder, archive, monkeypatch):
    collecting(monkeypatch, archive).collect(folder, archive)
    store.write_plan(folder, "node2", "before", [("randwrite-4k", 1)], now=campaign_action.datetime.datetime.now())
    host = Host(report_action, monkeypatch, name="localhost")
    result = host.run(path=str(folder), problems={"node2": "out of reach"})
    assert (result["changed"], result["states"]) == (False, {"ok": 1, "missing": 1})
    assert result["failed_cells"] == ["node2 before randwrite-4k/1: missing: out of reach"]
    assert [(row["host"], row["iops"]) for row in result["rows"]] == [("node1", 1500.0), ("node2", None)]
    assert result["text"] in host.printed[0]


def test_missing_campaign_is_reported_in_one_sentence(tmp_path, monkeypatch):
    result = Host(report_action, monkeypatch).run(path=str(tmp_path / "nowhere"))
    assert result["failed"]
    assert "does not exist" in result["msg"]
    assert Host(report_action, monkeypatch).run(check_mode=True, path=str(tmp_path / "nowhere"))["rows"] == []


def test_unknown_baseline_error_lists_known_ones(folder, monkeypatch):
    result = Host(report_action, monkeypatch).run(path=str(folder), baseline="x")
    assert "give one of before as the baseline" in result["msg"]


# ---------------------------------------------------------------------------------------------------------------------
# Steps, for a runner


STEP = {"number": 0, "kind": "cells", "barrier": True, "offset": 0.0, "pause": None, "cells": [{**WANTED, "done_as": None}]}
SEARCH = {"number": 1, "kind": "search", "cell": {**WANTED, "name": "most"}, "search": {"over": "iodepth", "first": 1, "last": 64}, "done": {}}
PATTERN = {"cell": "most", "repeats": [1], "over": "iodepth", "first": 1, "last": 64}


def opened(host, tmp_path, **more):
    cells = [{"name": "randwrite-4k", "repeat": 1}, {"name": "most", "repeat": 1}]
    return host.run(results=str(tmp_path / "results"), name=CAMPAIGN, variant="before", cells=cells, steps=[STEP, SEARCH], patterns=[PATTERN], **more)


def test_steps_are_returned_with_existing_results(tmp_path, monkeypatch):
    host = Host(campaign_action, monkeypatch)
    first = opened(host, tmp_path)
    assert [step.get("done", step.get("cells")) for step in first["steps"]] == [STEP["cells"], {}]
    measured = "a" * 64
    kept = tmp_path / "kept.tar"
    pack(kept, cell(measurement_sha256=measured), cell("most.iodepth-8", measurement_sha256="b" * 64))
    campaign = tmp_path / "results" / CAMPAIGN
    receive(kept, campaign, "node1", store.expected_cells(campaign, "node1"))
    again = opened(host, tmp_path)
    assert again["steps"][0]["cells"][0]["done_as"] == measured
    assert again["steps"][1]["done"] == {"most.iodepth-8": "b" * 64}
    replaced = opened(host, tmp_path, replace=True)
    assert replaced["steps"] == [STEP, SEARCH]


def test_variant_that_was_measured_is_named_before_the_play_waits(tmp_path, monkeypatch):
    host = Host(campaign_action, monkeypatch)
    opened(host, tmp_path)
    kept = tmp_path / "kept.tar"
    pack(kept, cell(measurement_sha256="a" * 64, finished=1.1e9))
    campaign = tmp_path / "results" / CAMPAIGN
    receive(kept, campaign, "node1", store.expected_cells(campaign, "node1"))
    opened(host, tmp_path)
    assert host.printed == [], "a cell is left"
    kept.unlink()
    pack(kept, cell("most", measurement_sha256="b" * 64, finished=1.0e9))
    receive(kept, campaign, "node1", store.expected_cells(campaign, "node1"))
    opened(host, tmp_path, replace=True)
    assert host.printed == []
    assert opened(host, tmp_path, check_mode=True)["measured"] and host.printed == [], "it is printed with the plan"
    opened(host, tmp_path)
    (printed,) = host.printed
    assert printed.startswith("node1: all 2 cells of variant before were measured at 2004-11-")
    assert printed.endswith("set another variant (fio_benchmark_variant), or fio_benchmark_replace=true.")


def test_host_group_is_written_to_its_plan(tmp_path, monkeypatch):
    host = Host(campaign_action, monkeypatch)
    assert opened(host, tmp_path, group="array1")["changed"]
    plan = files.read_json(tmp_path / "results" / CAMPAIGN / "node1/before/plan.json")
    assert (plan["group"], plan["patterns"]) == ("array1", [PATTERN])
    assert not opened(host, tmp_path, group="array1")["changed"]
    assert "cannot be the name of a group" in opened(host, tmp_path, group="a b")["msg"]
    assert len(opened(host, tmp_path, check_mode=True)["steps"]) == 2
