# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A trace on its way from a host to the controller: limited, verified, and only then removed from the host."""

from __future__ import annotations

import hashlib
import types
import typing as t
from pathlib import Path

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.action import io_trace

CONTENTS = {"/var/lib/cachefleet/traces/monday/trace.json": b'{"schema": 1}', "/var/lib/cachefleet/traces/monday/requests.bin": bytes(320)}
STATE = {"running": False, "state": "finished", "message": "", "folder": "/var/lib/cachefleet/traces/monday"}


class Host:
    """A host with a finished trace."""

    def __init__(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results, self.contents, self.calls = results, dict(CONTENTS), t.cast("list[str]", [])
        self.files: t.Any = {Path(path).name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for path, content in CONTENTS.items()}
        self.failing: dict[str, dict[str, t.Any]] = {}
        self.warnings: list[str] = []
        self.error: Exception | None = None
        monkeypatch.setattr(ActionBase, "run", lambda *_args, **_words: {})
        monkeypatch.setattr(io_trace.ActionModule, "answer_of", lambda _self, module, arguments, _variables: self.answer(module, arguments))

    def answer(self, module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        assert (module, arguments["name"]) == ("cachefleet.storage.io_trace", "monday") and "results" not in arguments
        self.calls.append(arguments["state"])
        files = {"files": self.files} if arguments["state"] == "packed" else {}
        return {"changed": arguments["state"] != "packed", **STATE, **files, **self.failing.get(arguments["state"], {})}

    def fetch_file(self, source: str, target: str) -> None:
        if self.error is not None:
            raise self.error
        Path(target).write_bytes(self.contents[source])

    def run(self, *, check_mode: bool = False, host: str = "db1", **args: t.Any) -> dict[str, t.Any]:
        action = object.__new__(io_trace.ActionModule)
        task = types.SimpleNamespace(args={"name": "monday", "results": str(self.results), **args}, check_mode=check_mode, async_val=0, action="io_trace")
        display = types.SimpleNamespace(display=self.warnings.append, warning=self.warnings.append)
        vars(action).update(_display=display, _task=task, _connection=self, _play_context=None, _loader=None, _templar=None)
        return action.run(task_vars={"inventory_hostname": host})

    def fetch(self, **more: t.Any) -> dict[str, t.Any]:
        return self.run(state="fetched", **more)

    def stored(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.results)): path.read_bytes() for path in self.results.rglob("*") if path.is_file()}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path / "traces", monkeypatch)


def test_a_trace_is_fetched_verified_and_removed_from_the_host(host: Host) -> None:
    assert host.fetch() == {"changed": True, **STATE, "path": str(host.results / "monday/db1")}
    assert host.stored() == {f"monday/db1/{Path(path).name}": content for path, content in CONTENTS.items()}
    assert host.calls == ["packed", "absent"]
    assert (host.results / "monday/db1").stat().st_mode & 0o777 == 0o755
    # Its copy on the host could not be removed before.
    host.failing["absent"] = {"changed": False}
    assert host.fetch()["changed"] is False


def test_a_trace_that_cannot_be_removed_from_the_host_is_kept_and_warned_of(host: Host) -> None:
    host.failing["absent"] = {"failed": True, "msg": "The folder is busy."}
    assert "failed" not in host.fetch()
    assert host.stored() and "could not be removed from the host: The folder is busy." in host.warnings[0]


def test_check_mode_fetches_nothing(host: Host) -> None:
    assert host.fetch(check_mode=True)["changed"] is True
    assert (host.stored(), host.calls) == ({}, ["packed"])


def test_another_trace_of_that_name_is_kept(host: Host) -> None:
    host.fetch()
    before = host.stored()
    host.files["trace.json"]["sha256"] = "0" * 64
    assert "has another trace of that name: it was kept" in host.fetch()["msg"]
    assert host.stored() == before and host.calls[-1] == "packed"


def test_a_trace_that_was_not_packed_is_not_fetched(host: Host) -> None:
    host.failing["packed"] = {"failed": True, "msg": "The trace monday is still being recorded on this host."}
    assert host.fetch()["failed"] and host.stored() == {} and host.calls == ["packed"]
    del host.failing["packed"]
    host.files = {}
    assert "no trace of that name" in host.fetch()["msg"]


@pytest.mark.parametrize(
    "files",
    [
        None,
        ["trace.json"],
        {"trace.json": {"size": 13, "sha256": "a" * 64}},
        {"trace.json": {"size": 13, "sha256": "a" * 64}, "requests.bin": {"size": -1, "sha256": "a" * 64}},
        {"trace.json": {"size": 13, "sha256": "a" * 64}, "requests.bin": {"size": True, "sha256": "a" * 64}},
        {"trace.json": {"size": 13, "sha256": "a" * 64}, "requests.bin": {"size": (1 << 30) + 1, "sha256": "a" * 64}},
        {"trace.json": {"size": 65 << 20, "sha256": "a" * 64}, "requests.bin": {"size": 0, "sha256": "a" * 64}},
        {"trace.json": {"size": 13, "sha256": "../" * 20}, "requests.bin": {"size": 0, "sha256": "a" * 64}},
        {"trace.json": 7, "requests.bin": {"size": 0, "sha256": "a" * 64}},
    ],
)
def test_what_a_host_announces_is_checked(host: Host, files: t.Any) -> None:
    host.files = files
    assert "nothing was fetched" in host.fetch()["msg"]
    assert (host.stored(), host.calls) == ({}, ["packed"])


@pytest.mark.parametrize(("content", "message"), [(bytes(319) + b"x", "arrived damaged"), (bytes(100), "sent 100 bytes"), (bytes(5 << 20), "sent more than")])
def test_what_a_host_sends_is_checked(host: Host, content: bytes, message: str) -> None:
    host.contents["/var/lib/cachefleet/traces/monday/requests.bin"] = content
    assert message in host.fetch()["msg"]
    assert (host.stored(), host.calls, list(host.results.rglob(".fetch*"))) == ({}, ["packed"], [])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AnsibleError("file not found"), "could not be fetched: file not found"),
        (OSError(28, "No space left on device"), "became full while fetching the trace of host db1"),
    ],
)
def test_a_trace_that_cannot_be_fetched_stays_on_the_host(host: Host, error: Exception, message: str) -> None:
    host.error = error
    assert message in host.fetch()["msg"]
    assert (host.stored(), host.calls) == ({}, ["packed"])


def test_a_lost_connection_makes_the_host_unreachable(host: Host) -> None:
    host.error = AnsibleConnectionFailure("gone")
    with pytest.raises(AnsibleConnectionFailure):
        host.fetch()
    assert list(host.results.rglob(".fetch*")) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(host: Host) -> None:
    host.results.parent.mkdir(exist_ok=True)
    host.results.write_text("a file")
    assert host.fetch()["failed"] and host.calls == ["packed"]


@pytest.mark.parametrize(
    ("args", "message"), [({"results": None}, "results must be set"), ({"name": "../x"}, "name of a trace"), ({"host": "../x"}, "name of a host")]
)
def test_invalid_options_are_rejected(host: Host, args: dict[str, t.Any], message: str) -> None:
    assert message in host.fetch(**args)["msg"]
    assert host.calls == []


def test_a_name_that_is_in_use_on_the_controller_is_refused_before_anything_is_recorded(host: Host) -> None:
    assert host.run(state="started", devices=["/dev/sda"])["changed"] is True
    (host.results / "monday/db1").mkdir(parents=True)
    assert "has a trace of that name already" in host.run(state="started", devices=["/dev/sda"])["msg"]
    assert host.run(state="started", devices=["/dev/sda"], host="db2")["changed"] is True
    assert host.run(state="stopped")["changed"] is True
    assert host.calls == ["started", "started", "stopped"]
