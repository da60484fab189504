# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of MTUs seen from the controller: how many calls it costs, and what is said when the host does not come back."""

from __future__ import annotations

import types

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.action import storage_network
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import Report
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import expected_of

LINKS = [{"interface": "eth0", "mtu": 9000}]
BEGUN = {
    "changed": True,
    "actions": ["Raise"],
    "diff": {"before": {"eth0": {"mtu": 1500}}, "after": {"eth0": {"mtu": 9000}}},
    "pending": {"token": "x", "changes": [{"interface": "eth0", "before": 1500, "after": 9000}]},
}
KEPT = {"changed": True, "actions": ["Write"], "diff": {"before": {"eth0": {"boot_mtu": None}}, "after": {"eth0": {"boot_mtu": 9000}}}, "links": []}
LATE = {"failed": True, "error": "not_effective", "msg": "went back", "links_before": [{"interface": "eth0", "mtu": 1500}]}


def _accepted():
    return expected_of("cachefleet.storage.storage_network") | storage_network.ActionModule._for_action


class Controller:
    """Calls of the module are answered from a script; an exception is raised."""

    def __init__(self, monkeypatch, answers, *, transport="ssh", check_mode=False, echo=True):
        self.answers, self.calls, self.resets, self.now, self.echo = list(answers), [], 0, 0.0, echo
        clock = types.SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        monkeypatch.setattr(storage_network, "time", clock)
        monkeypatch.setattr(storage_network.ActionModule, "_execute_module", self._execute)
        monkeypatch.setattr(storage_network.ActionModule, "_low_level_execute_command", self._command)
        monkeypatch.setattr(ActionBase, "run", lambda *_args, **_words: {})
        self.connection = types.SimpleNamespace(transport=transport, reset=self._reset)
        self.check_mode = check_mode

    def _sleep(self, seconds):
        self.now += seconds

    def _reset(self):
        self.resets += 1

    def _command(self, command, sudoable, in_data):
        self.calls.append("cat")
        if isinstance(self.echo, Exception):
            raise self.echo
        return {"rc": 0, "stdout": self.echo if isinstance(self.echo, str) else in_data.decode() if self.echo else "cut of"}

    def _execute(self, module_name, module_args, task_vars):
        transaction = module_args.get("transaction") or {}
        self.calls.append(transaction.get("step", "plain"))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        # What does not reach an action plugin from a real host does not reach it here.
        assert set(answer) - {"_ansible_parsed"} <= _accepted()
        return {**answer, "invocation": {"module_args": dict(module_args)}}

    def run(self, **more):
        task = types.SimpleNamespace(args={"links": LINKS, **more}, check_mode=self.check_mode)
        display = types.SimpleNamespace(display=lambda text: None, vv=lambda text: None, warning=lambda text: None)
        action = object.__new__(storage_network.ActionModule)
        vars(action).update(_task=task, _connection=self.connection, _display=display)
        return action.run(task_vars={"inventory_hostname": "db1"})


def test_converged_host_takes_one_call(monkeypatch):
    controller = Controller(monkeypatch, [{"changed": False}])
    assert controller.run()["changed"] is False
    assert (controller.calls, controller.resets) == (["begin"], 0)


@pytest.mark.parametrize(("kind", "step"), [({"check_mode": True}, "plain"), ({"transport": "local"}, "local")])
def test_check_mode_and_local_connection_need_no_second_call(monkeypatch, kind, step):
    controller = Controller(monkeypatch, [{"changed": True, "actions": []}], **kind)
    controller.run()
    assert controller.calls == [step]


def test_change_is_confirmed_over_a_new_connection_after_large_packets(monkeypatch):
    controller = Controller(monkeypatch, [BEGUN, KEPT])
    result = controller.run()
    assert (controller.calls, controller.resets) == (["begin", "cat", "confirm"], 1)
    assert result["actions"] == ["Raise", "Write"]
    assert result["diff"] == {"before": {"eth0": {"mtu": 1500, "boot_mtu": None}}, "after": {"eth0": {"mtu": 9000, "boot_mtu": 9000}}}
    assert "pending" not in result
    assert "transaction" not in result["invocation"]["module_args"]


@pytest.mark.parametrize("echo", [False, AnsibleError("no input")])
def test_module_verifies_large_packets_if_a_plain_command_cannot(monkeypatch, echo):
    controller = Controller(monkeypatch, [BEGUN, {"changed": False}, KEPT], echo=echo)
    assert controller.run()["changed"] is True
    assert controller.calls == ["begin", "cat", "prove", "confirm"]


def test_change_is_not_confirmed_without_large_packets(monkeypatch):
    controller = Controller(monkeypatch, [BEGUN, LATE], echo=AnsibleConnectionFailure("timed out"))
    with pytest.raises(AnsibleConnectionFailure, match="db1 could not be reached for 150 seconds"):
        controller.run()
    assert "confirm" not in controller.calls
    assert controller.resets > 10


def test_reverted_host_reports_the_cause(monkeypatch):
    result = Controller(monkeypatch, [BEGUN, LATE]).run(revert_after=30)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "The host was not reachable with MTU 9000 on eth0; it was reverted to 1500 after 30 seconds." in result["msg"]


def test_lost_connection_queries_the_host_for_the_outcome(monkeypatch):
    controller = Controller(monkeypatch, [AnsibleConnectionFailure("closed"), LATE])
    assert "with the new MTU on eth0; it was reverted to 1500" in controller.run()["msg"]
    kept = Controller(monkeypatch, [AnsibleConnectionFailure("closed"), KEPT])
    assert kept.run()["changed"] is True


def test_refusal_is_returned_unchanged(monkeypatch):
    refused = {"failed": True, "error": "refused", "msg": "eth0 keeps its MTU"}
    controller = Controller(monkeypatch, [refused])
    assert controller.run()["msg"] == "eth0 keeps its MTU"
    assert controller.calls == ["begin"]


def test_killed_module_reports_the_pending_rollback(monkeypatch):
    dead = {"failed": True, "_ansible_parsed": False, "rc": 137, "msg": "Module result deserialization failed: No start of json char found"}
    assert "are reverted within 60 seconds" in Controller(monkeypatch, [dead]).run()["msg"]
    assert "are reverted within 60 seconds" in Controller(monkeypatch, [BEGUN, dead]).run()["msg"]


def test_flood_in_place_of_the_proof_is_one_sentence_and_not_confirmed(monkeypatch):
    controller = Controller(monkeypatch, [BEGUN], echo="x" * (1 << 21))
    result = controller.run()
    assert (result["failed"], "Host db1 answered with more than 1 MiB" in result["msg"]) == (True, True)
    assert controller.calls == ["begin", "cat"]


def test_what_waits_for_a_confirmation_reaches_the_action_plugin():
    report = Report((), None, pending={"token": "x", "changes": []}).to_dict()
    assert "pending" in report and set(report) <= _accepted()
