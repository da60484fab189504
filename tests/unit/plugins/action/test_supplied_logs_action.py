# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O on their way from the controller to a host: only those that it lacks, and only those of the plan."""

from __future__ import annotations

import gzip
import types
import typing as t
from pathlib import Path

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.action import cache_layers, fio_runner
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite

LOG = "fio version 2 iolog\nsda add\nsda open\nsda write 0 4096\nsda close\n"


class Host:
    """A host, by what its modules answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, dict[str, t.Any]]] = []
        self.received: dict[str, bytes] = {}
        self.missing: t.Any = []
        self.failing: dict[str, t.Any] = {}
        self.removed: list[str] = []
        monkeypatch.setattr(ActionBase, "run", lambda *_args, **_words: {})
        monkeypatch.setattr(StorageAction, "_execute_module", lambda _self, module_name, module_args, **_more: self.answer(module_name, module_args))
        monkeypatch.setattr(StorageAction, "answer_of", lambda _self, module, arguments, _variables: self.answer(module, arguments))
        monkeypatch.setattr(StorageAction, "_make_tmp_path", lambda _self: "/tmp/ansible", raising=False)
        monkeypatch.setattr(StorageAction, "_remove_tmp_path", lambda _self, path: self.removed.append(path), raising=False)
        monkeypatch.setattr(StorageAction, "_fixup_perms2", lambda _self, paths: None, raising=False)
        monkeypatch.setattr(StorageAction, "_transfer_file", self._transfer, raising=False)

    def _transfer(self, local: str, remote: str) -> str:
        self.received[remote] = Path(local).read_bytes()
        return remote

    def answer(self, module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        self.calls.append((module.rpartition(".")[2], arguments))
        if arguments.get("state") == "supplied":
            return self.failing if self.failing and arguments.get("logs") else {"changed": False, "missing": self.missing}
        return {"changed": True, "runner": {}}

    def run(self, plugin: t.Any = fio_runner, check_mode: bool = False, **args: t.Any) -> dict[str, t.Any]:
        action = object.__new__(plugin.ActionModule)
        task = types.SimpleNamespace(args=args, check_mode=check_mode, async_val=0, action="fio_runner")
        shell = types.SimpleNamespace(tmpdir="/tmp/ansible", join_path=lambda *parts: "/".join(parts))
        vars(action).update(_task=task, _connection=types.SimpleNamespace(_shell=shell))
        return action.run(task_vars={"inventory_hostname": "db1"})

    @property
    def states(self) -> list[str]:
        return [f"{arguments.get('state', 'started')}{' with logs' if arguments.get('logs') else ''}" for _module, arguments in self.calls]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def steps(*paths: Path) -> list[dict[str, t.Any]]:
    cells = [{"name": f"c{number}", "job": {"read_iolog": str(path)}} for number, path in enumerate(paths)]
    found = read_suite("s", {"s": {"cells": cells}}).cells
    return [{"kind": "cells", "cells": [{"name": one.name, "job": one.job} for one in found]}]


def test_missing_logs_are_copied_compressed_before_the_start(host: Host, tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.log", tmp_path / "b.log.gz"
    plain.write_text(LOG)
    packed.write_bytes(gzip.compress(LOG.replace("4096", "8192").encode()))
    planned = steps(plain, packed, plain)
    host.missing = [str(packed), str(plain), "/etc/shadow"]
    assert "failed" not in host.run(campaign="c", steps=planned)
    assert host.states == ["supplied", "supplied with logs", "started"]
    logs = host.calls[1][1]["logs"]
    assert set(logs) == {str(plain), str(packed)}, "a host does not choose files of the controller"
    assert gzip.decompress(host.received[logs[str(plain)]]).decode() == LOG and host.received[logs[str(packed)]] == packed.read_bytes()
    assert host.removed == ["/tmp/ansible"]


def test_what_a_host_has_is_not_copied(host: Host, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    planned = steps(tmp_path / "a.log")
    host.run(campaign="c", steps=planned)
    assert host.states == ["supplied", "started"]
    host.calls.clear()
    host.run(campaign="c", steps=planned, check_mode=True)
    host.run(campaign="c", steps=[{"cells": [{"name": "c", "job": {"rw": "read"}}]}])
    host.run(campaign="c", state="stopped")
    assert host.states == ["started", "started", "stopped"] and not host.received
    host.missing = "all"
    assert "failed" not in host.run(campaign="c", steps=planned) and not host.received


def test_nothing_is_started_if_a_log_is_refused(host: Host, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    planned = steps(tmp_path / "a.log")
    host.missing, host.failing = [str(tmp_path / "a.log")], {"failed": True, "msg": "It was changed."}
    assert host.run(campaign="c", steps=planned)["msg"] == "It was changed."
    assert host.run(cache_layers, benchmark={"campaign": "c", "steps": planned})["msg"] == "It was changed."
    assert host.states == ["supplied", "supplied with logs"] * 2
    (tmp_path / "a.log").unlink()
    for plugin, args in ((fio_runner, {"campaign": "c", "steps": planned}), (cache_layers, {"benchmark": {"campaign": "c", "steps": planned}})):
        found = host.run(plugin, **args)
        assert found["failed"] and found["msg"].endswith("a.log could not be copied to this host: No such file or directory.")


def test_a_sweep_copies_logs_before_it_changes_a_layer(host: Host, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    host.missing = [str(tmp_path / "a.log")]
    host.run(cache_layers, benchmark={"campaign": "c", "steps": steps(tmp_path / "a.log")})
    assert [module for module, _arguments in host.calls] == ["fio_runner", "fio_runner", "sweep_step"]


@pytest.mark.parametrize("path", ["/no/such.log", "", "a\0b", "~nobody-has-this-name/x"])
def test_paths_that_are_no_log(path: str) -> None:
    with pytest.raises(Exception, match=r"is not a file on the controller|cannot be read on the controller|must be the content of a log") as caught:
        read_suite("s", {"s": {"cells": [{"name": "c", "job": {"read_iolog": path}}]}})
    assert "suite s, cell c" in str(caught.value)
