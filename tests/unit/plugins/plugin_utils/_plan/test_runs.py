# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary of a run: what was done on each host, and each failure with its reason once."""

from __future__ import annotations

import types

import pytest

from ansible_collections.cachefleet.storage.plugins.action import summary as summary_action
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.runs import as_text, failures_of, read_runs, summary
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.text import SCREEN
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action


def refused(device):
    return {"failed": True, "msg": f"Task failed: images: {device} is mounted: unmount it."}


def unreachable(address):
    return {"unreachable": True, "msg": f"Task failed: Failed to connect to the host via ssh: ssh: connect to host {address} port 22: No route to host"}


RESULTS = {
    "node1": {"changed": True},
    "node2": refused("/dev/sdb"),
    "node3": refused("/dev/sdc"),
    "node4": unreachable("192.0.2.4"),
    "node10": unreachable("node10.example"),
    "node5": {"changed": False},
    "node6": {"skipped": True, "changed": False},
    "node7": {"changed": False, "pending": ["storage_network"]},
}
ACTIVE = ("node1", "node5", "node6", "node7")


def runs_of(results=None, active=ACTIVE, *, check_mode=False):
    return read_runs(RESULTS if results is None else results, active, check_mode=check_mode)


def test_every_outcome_is_counted():
    assert summary(runs_of()) == "8 hosts: 2 failed, 2 are unreachable, 2 were changed, 1 is configured as described, 1 has no cache layer in its variables."
    assert "2 would change" in summary(runs_of(check_mode=True))
    assert "1 has nothing of this collection" in summary(runs_of(), removal=True)
    assert summary([]) == "0 hosts: nothing is planned."


def test_each_reason_is_named_once_whatever_the_devices_and_addresses_are():
    failed, gone = failures_of(runs_of())
    assert failed.to_dict() == {"outcome": "failed", "reason": "images: DEVICE is mounted: unmount it.", "hosts": ["node2", "node3"]}
    assert gone.hosts == ("node4", "node10")
    assert gone.reason == "Failed to connect to the host via ssh: ssh: connect to host HOST port 22: No route to host"


def test_the_reason_of_one_host_names_its_device():
    (failure,) = failures_of(runs_of({"node2": refused("/dev/sdb")}))
    assert failure.reason == "images: /dev/sdb is mounted: unmount it."


def test_a_host_that_failed_after_its_call_is_not_called_configured():
    (run,) = runs_of({"node1": {"changed": False}}, active=[])
    assert run.outcome == "failed" and "see its message above" in run.reason
    (run,) = runs_of({"node1": {}})
    assert run.outcome == "failed"


def test_the_text_fits_the_terminal():
    runs = runs_of()
    text = as_text(runs, failures_of(runs), 60)
    assert max(map(len, text.splitlines())) <= 60
    assert "2 hosts failed: node2 and node3\n  images: DEVICE is mounted: unmount it." in text
    assert "2 hosts are unreachable: node4 and node10" in text


def steps(host, *letters, to="Disable"):
    actions = [f"{to} the write cache of /dev/disk/by-id/ata-{host}-{letter} (sd{letter}), provider ata" for letter in letters]
    return [{"layer": "drive_write_cache", "action": action, "risks": ["slower_writes"]} for action in actions]


def test_steps_are_printed_as_in_the_plan_and_equal_ones_once():
    results = {f"node{number}": {"changed": True, "steps": steps(f"node{number}", "a", "b")} for number in (1, 2)}
    results["node3"] = {"changed": True, "steps": steps("node3", "a", to="Enable")}
    results["node4"] = {"changed": False, "steps": []}
    text = as_text(runs := runs_of(results, results), failures_of(runs), 150)
    assert "2 hosts with equal steps were changed: node1 and node2\n   1. drive_write_cache  2 x: Disable the write cache of DEVICE, provider ata" in text
    assert "node3 was changed\n   1. drive_write_cache  Enable the write cache of /dev/disk/by-id/ata-node3-a (sda), provider ata" in text
    assert "node4" not in text
    assert "node3 would change\n" in as_text(runs_of(results, results, check_mode=True), [], 150, check_mode=True)


def test_steps_of_a_host_that_failed_are_printed_if_it_was_changed():
    failed = {"failed": True, "changed": True, "msg": "images: no room.", "diff": {"steps": steps("node1", "a")}}
    text = as_text(runs := runs_of({"node1": failed}), failures_of(runs), 150)
    assert "node1 failed\n  images: no room.\n\nnode1 was changed in part\n   1. drive_write_cache  Disable" in text
    untouched = as_text(runs := runs_of({"node1": {**failed, "changed": False}}), failures_of(runs), 150)
    assert "in part" not in untouched and "Disable" not in untouched


def test_what_roles_have_done_is_named():
    text = as_text(runs := runs_of({"node7": {"changed": False, "pending": ["storage_network"]}}), failures_of(runs), 150)
    assert "node7 was changed\n   1. storage_network  several steps, which are those of the tasks of its role above" in text


@pytest.mark.parametrize("letters", ["abc", "abcdefghijklmnopqrstuvwxyz" * 3], ids=["few", "many"])
@pytest.mark.parametrize("kinds", [1, 30, 90])
def test_steps_of_a_fleet_fit_a_screen(letters, kinds):
    results = {f"node{number}": {"changed": True, "steps": steps("x", *letters, to=f"Set{number % kinds}")} for number in range(300)}
    runs = runs_of(results, results)
    lines = as_text(runs, [], 150).splitlines()
    assert lines[0] == "300 hosts: 300 were changed." and len(lines) <= SCREEN + 3
    shown = sum(int(line.split()[0]) for line in lines if "with equal steps" in line) + sum("was changed" in line for line in lines)
    hidden = int(lines[-1].split()[2]) if lines[-1].startswith("Not shown: ") else 0
    assert shown + hidden == 300
    assert ("--diff prints the changes of each host." in lines[-1]) == bool(hidden)
    assert any("DEVICE" in line for line in lines) == (len(letters) * kinds > SCREEN / 2)


def test_more_kinds_of_steps_than_a_screen_has_are_cut():
    result = {"changed": True, "steps": [{"layer": "block_queue", "action": f"Set {number}", "risks": []} for number in range(100)]}
    lines = as_text(runs_of({"node1": result, "node2": {**result, "steps": result["steps"][1:]}}, ["node1", "node2"]), [], 150).splitlines()
    assert len(lines) <= SCREEN + 3
    assert lines[-1] == "Not shown: 62 more lines of steps and 1 more host with other steps; --diff prints the changes of each host."


def test_steps_of_both_calls_of_a_host_are_joined():
    first = {"changed": True, "steps": steps("node1", "a"), "pending": ["storage_network"]}
    joined = summary_action._joined(first, {"changed": False, "follows": True, "steps": steps("node1", "b")})
    (run,) = runs_of({"node1": joined}, ["node1"])
    assert (run.outcome, [step.layer for step in run.changes.steps]) == ("changed", ["drive_write_cache", "drive_write_cache", "storage_network"])
    failed = summary_action._joined(first, {"failed": True, "follows": True, "msg": "x", "diff": {"steps": steps("node1", "b")}})
    (run,) = runs_of({"node1": failed}, ["node1"])
    assert (run.outcome, len(run.changes.steps)) == ("failed", 2)
    # A first call: what is there of an earlier one is that of another run.
    assert summary_action._joined(first, second := {"changed": False}) is second
    assert summary_action._joined(None, first) is first


@pytest.mark.parametrize("wrong", [5, "text", {"a": 1}, True])
def test_answers_that_are_no_lists_do_not_end_the_summary(wrong):
    joined = summary_action._joined({"steps": wrong, "pending": wrong}, {"follows": True, "steps": wrong, "diff": {"steps": wrong}})
    assert (joined["steps"], joined["diff"]["steps"], joined["pending"]) == ([], [], [])


@pytest.mark.parametrize("result", [None, [], "text", {"failed": True}, {"failed": True, "msg": ["\x1b[2J"]}, {"unreachable": True, "msg": "x" * 10**6}])
def test_a_host_may_return_anything(result):
    runs = runs_of({"node1": result, "\x1b[2Jnode2": result})
    text = as_text(runs, failures_of(runs), 80)
    assert len(text) < 20_000 and all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("registered", [False, True], ids=["given", "registered"])
def test_the_action_prints_and_does_not_fail(registered):
    printed = []
    of = {"variable": "result"} if registered else {"results": RESULTS}
    action = made_action(summary_action, {**of, "active": list(ACTIVE)}, printed, columns=80)
    hostvars = {host: {"result": found} for host, found in RESULTS.items()}
    result = action.run(task_vars={"hostvars": {**hostvars, "node11": {}}, "ansible_play_hosts_all": list(RESULTS)})
    assert ("failed" in result, result["changed"]) == (False, False)
    assert (result["outcomes"]["node1"], result["outcomes"]["node4"], len(result["failures"])) == ("changed", "unreachable", 2)
    assert result["text"] in "".join(printed)


def test_warnings_are_printed_once_with_their_hosts():
    unmatched = "drive_write_cache_drives: the match of entry 1 matches no device of this host."
    results = {f"node{number}": {"changed": False, "warnings": [unmatched, f"Host 'node{number}' is using the discovered Python"]} for number in (1, 2)}
    results["a"] = {"changed": False, "warnings": [types.SimpleNamespace(event=types.SimpleNamespace(msg=unmatched))]}
    results["node3"] = {"changed": True, "warnings": ["Another.", 5]}
    text = as_text(runs_of(results, list(results)), [], 200)
    assert text.endswith(f"\n\nWarnings:\n  a, node1 and node2: {unmatched}\n  node3: Another.\n  node3: 5")
    assert "discovered" not in text
    many = {"node1": {"changed": False, "warnings": [f"Warning {number}." for number in range(30)]}}
    assert as_text(runs_of(many, list(many)), [], 200).splitlines()[-1] == "  and 10 more warnings, which are above."
    for wrong in (5, "text", {"a": 1}):
        assert "Warnings" not in as_text(runs_of({"node1": {"changed": False, "warnings": wrong}}, ["node1"]), [], 200)
