# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A refused host is one sentence: Ansible prints everything that a failed task returns, except its diff."""

from __future__ import annotations

import json
import types

import pytest
from ansible.plugins.callback import CallbackBase

from ansible_collections.cachefleet.storage.plugins.action import cache_layers

STEPS = [
    {"layer": "block_queue", "item": f"disk{number}", "attribute": "scheduler", "action": "Set scheduler of /dev/x to none", "risks": []}
    for number in range(200)
]
ANSWER = {
    "failed": True,
    "changed": True,
    "msg": "raid_cache was left out: The tool arcconf is missing on this host.",
    "error": "tool_missing",
    "actions": [step["action"] for step in STEPS],
    "steps": STEPS,
    "diff": {"before": {"block_queue": {}}, "after": {"block_queue": {}}},
    "layers": {"block_queue": {"devices": STEPS}},
    "left_out": {"raid_cache": "The tool arcconf is missing on this host."},
    "done": ["block_queue"],
    "not_done": ["raid_cache"],
    **{name: [] for name in ("pending", "waiting", "not_running")},
    "undetermined": {},
}


def play(answer, monkeypatch, **args):
    action = object.__new__(cache_layers.ActionModule)
    monkeypatch.setattr(cache_layers.StorageAction, "run", lambda self, tmp, task_vars: {})
    monkeypatch.setattr(cache_layers.StorageAction, "answer_of", lambda self, module, arguments, task_vars: dict(answer))
    action._task = types.SimpleNamespace(args=args)
    return action.run()


def printed(result):
    callback = CallbackBase()
    callback._display = types.SimpleNamespace(verbosity=0, warning=lambda *_: None, deprecated=lambda *_, **__: None)
    return callback._dump_results(result)


@pytest.mark.parametrize("answer", [ANSWER, {**ANSWER, "diff": None}, {key: value for key, value in ANSWER.items() if key != "diff"}])
def test_a_failed_host_prints_its_reason_and_not_its_steps(monkeypatch, answer):
    result = play(answer, monkeypatch)
    text = printed(result)
    assert len(text) < 300 and result["msg"] in text
    assert (json.loads(text)["done"], json.loads(text)["not_done"]) == (["block_queue"], ["raid_cache"])
    # What a playbook registers has everything.
    assert (result["diff"]["steps"], result["diff"]["left_out"]) == (STEPS, ANSWER["left_out"])
    assert len(result["diff"]["actions"]) == 200


def test_what_a_failed_host_waits_for_is_kept(monkeypatch):
    result = play({**ANSWER, "pending": ["storage_network"]}, monkeypatch)
    assert result["pending"] == ["storage_network"] and "waiting" not in result


def test_a_host_that_does_not_fail_returns_what_it_answered(monkeypatch):
    answer = {**ANSWER, "failed": False}
    assert play(answer, monkeypatch) == answer


@pytest.mark.parametrize(("value", "follows"), [(False, True), ("False", True), (True, False), ("True", False)])
def test_a_call_after_the_roles_is_marked(monkeypatch, value, follows):
    assert play({"changed": False}, monkeypatch, allow_pending=value) == {"changed": False, **({"follows": True} if follows else {})}
