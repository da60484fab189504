# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A flush that runs on a host, seen from the controller: how far it is, that it failed, that the host is away for a while."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.action import wait_for_flush
from ansible_collections.cachefleet.storage.plugins.plugin_utils._progress import Drain
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action

MIB = 1024**2


class Clock:
    """Time that passes only during a sleep."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Host:
    """Answers async_status and block_cache_info from a script: what is dirty at each look, and what the job says in the end."""

    def __init__(self, monkeypatch, dirty, end=None, away=(), restarted=False):
        self.clock = Clock()
        self.dirty, self.end, self.away = list(dirty), end or {"changed": True}, set(away)
        self.looks, self.printed, self.requested = 0, [], []
        self.restarted = restarted
        monkeypatch.setattr(wait_for_flush, "time", self.clock)
        monkeypatch.setattr(wait_for_flush.ActionModule, "_execute_module", self._execute)
        monkeypatch.setattr(wait_for_flush.ActionModule, "get_shell_option", lambda _self, _name, default: default)

    def _execute(self, module_name, module_args, task_vars):
        self.requested.append((module_name, module_args))
        if module_name == "ansible.builtin.slurp":
            return {"content": "Mg==" if self.restarted and self.looks else "MQ=="}
        if module_name == "ansible.builtin.async_status":
            self.looks += 1
            if self.looks in self.away:
                raise AnsibleConnectionFailure("ssh: \x1b[31mno route")
            if self.looks > len(self.dirty):
                return {"finished": 1, "ansible_job_id": module_args["jid"], **self.end}
            return {"finished": 0}
        cache = {"name": "vg0/images", "dirty": self.dirty[self.looks - 1], "size": 1024 * MIB}
        return {"caches": [cache, {"name": "other", "dirty": None}]}

    def run(self, jobs, **args):
        return made_action(wait_for_flush, {"jobs": jobs, **args}, self.printed, _connection=None).run(task_vars={"inventory_hostname": "db1"})


@pytest.fixture(autouse=True)
def _no_connection(monkeypatch):
    monkeypatch.setattr(ActionBase, "run", lambda *_args, **_words: {})


def test_flush_progress_is_reported_and_the_result_returned(monkeypatch):
    host = Host(monkeypatch, [300 * MIB, 200 * MIB, 0], {"changed": True, "actions": ["Flush"]})
    result = host.run(["j1"], names=["vg0/images"], interval=10)
    assert result == {"changed": True, "results": [{"finished": 1, "ansible_job_id": "j1", "changed": True, "actions": ["Flush"]}], "seconds": 30.0}
    assert host.printed == [
        "db1: vg0/images: 300 MiB of 1 GiB dirty",
        "db1: vg0/images: 200 MiB of 1 GiB dirty, 10 MiB/s, about 20 s left",
        "db1: vg0/images: 0 B of 1 GiB dirty",
    ]
    assert ("cachefleet.storage.block_cache_info", {"names": ["vg0/images"], "types": [], "sample_seconds": 0}) in host.requested


def test_no_job_is_no_wait(monkeypatch):
    host = Host(monkeypatch, [1])
    assert host.run([]) == {"changed": False, "results": [], "seconds": 0.0}
    assert not host.requested


def test_missing_job_is_reported_in_one_sentence(monkeypatch):
    host = Host(monkeypatch, [], {"failed": True, "msg": "could not find job"})
    assert "has no record of the flush j1" in host.run(["j1"])["msg"]


def test_failed_module_fails_the_task_with_its_message(monkeypatch):
    host = Host(monkeypatch, [5], {"failed": True, "msg": "images: flushing stands still", "error": "not_effective"})
    result = host.run(["j1"])
    assert result["failed"] and result["msg"] == "images: flushing stands still" and result["error"] == "not_effective"


def test_temporary_connection_loss_does_not_end_the_wait(monkeypatch):
    host = Host(monkeypatch, [4 * MIB, 3 * MIB, 2 * MIB], away={2})
    assert not host.run(["j1"], interval=10).get("failed")
    assert any("not reachable" in line for line in host.printed)
    assert "\x1b" not in "".join(host.printed)


def test_restarted_host_ends_the_wait(monkeypatch):
    host = Host(monkeypatch, [4 * MIB] * 50, away={2}, restarted=True)
    result = host.run(["j1"], interval=10)
    assert result["failed"] and "was restarted" in result["msg"] and "run again" in result["msg"]
    assert host.looks == 2


def test_permanent_connection_loss_ends_the_wait(monkeypatch):
    host = Host(monkeypatch, [1] * 100, away=set(range(2, 100)))
    with pytest.raises(AnsibleConnectionFailure):
        host.run(["j1"], interval=10, patience=60)
    assert host.clock.now <= 100


def test_non_decreasing_dirty_count_is_reported():
    drain = Drain()
    drain.note(0, 100)
    assert drain.as_text() == ""
    drain.note(10, 120)
    assert drain.rate is None
    assert drain.as_text() == ", not decreasing so far"
