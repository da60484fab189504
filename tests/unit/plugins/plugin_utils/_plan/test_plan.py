# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a fleet: what hosts return becomes groups of equal plans, as text, Markdown and data."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.action import plan as plan_action
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.hosts import groups_of, read_plans
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.text import as_markdown, as_text, summary
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action


def step(host, letter="a", *, to="Disable", risks=("slower_writes",)):
    action = f"{to} the write cache of /dev/disk/by-id/ata-{host}-{letter} (sd{letter}), provider ata"
    return {"layer": "drive_write_cache", "item": "x", "attribute": "write_cache", "action": action, "risks": list(risks)}


def planned(*steps, **more):
    return {"changed": bool(steps), "steps": list(steps), "pending": [], "undetermined": {}, **more}


REFUSED = {"failed": True, "msg": "Task failed: images: /dev/sdb is mounted on /srv: unmount it."}
FLEET = {
    "node10": planned(step("node10"), step("node10", "b")),
    "node2": planned(step("node2"), step("node2", "b")),
    "node3": planned(step("node3", to="Enable", risks=["power_loss"])),
    "node4": REFUSED,
    "node5": {"unreachable": True, "msg": "no route to host"},
    "node6": planned(),
    "node7": {"skipped": True, "changed": False},
}
LEFT_OUT = {
    "failed": True,
    "msg": "raid_cache was left out: The tool arcconf is missing on this host. Planned without it: drive_write_cache.",
    "done": ["drive_write_cache"],
    "not_done": ["raid_cache"],
    "diff": {"steps": [step("node8"), step("node8", "b")]},
}


def run(tmp_path=None, results=None, tags=None, **options):
    printed = []
    args = {"results": FLEET if results is None else results, **({"path": str(tmp_path)} if tmp_path else {}), **options}
    return made_action(plan_action, args, printed, check_mode=True, columns=80).run(task_vars=tags or {}), "\n".join(printed)


def test_equal_plans_are_one_group_and_the_most_urgent_is_first():
    groups = groups_of(read_plans(FLEET))
    assert [(group.first.outcome, group.names) for group in groups] == [
        ("refused", ["node4"]),
        ("unreachable", ["node5"]),
        ("changes", ["node2", "node10"]),
        ("changes", ["node3"]),
        ("unchanged", ["node6"]),
        ("nothing", ["node7"]),
    ]
    ((kind, count),) = groups[2].steps
    assert (kind.action, count) == ("Disable the write cache of DEVICE, provider ata", 2)


def test_the_plan_of_one_host_names_its_devices():
    text = as_text(plans := read_plans({"node3": FLEET["node3"]}), groups_of(plans), 150)
    assert text.splitlines()[0] == "1 host: 1 would change."
    assert " 1. drive_write_cache  Enable the write cache of /dev/disk/by-id/ata-node3-a (sda), provider ata [power loss]" in text
    assert "power loss: writes that are acknowledged and not flushed can be lost" in text and "(on 1 host)" in text


def test_the_summary_counts_every_outcome():
    said = summary(read_plans(FLEET))
    assert said == ("7 hosts: 1 would be refused, 1 is unreachable, 3 would change, 1 is configured as described, 1 has no cache layer in its variables.")
    assert summary([]) == "0 hosts: nothing is planned."


def test_the_text_has_reasons_and_fits_the_terminal():
    plans = read_plans(FLEET)
    text = as_text(plans, groups_of(plans), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "node4 would be refused\n  images: /dev/sdb is mounted on /srv: unmount it." in text
    assert "node5 is unreachable\n  no route to host" in text
    assert "2 hosts with equal plans would change: node2 and node10" in text
    assert "2 x: Disable the write cache of DEVICE" in text
    assert "node6 is configured as described" in text and "node7 has no cache layer in its variables" in text


def test_what_is_not_known_yet_is_a_change():
    (plan,) = read_plans({"node1": planned(undetermined={"lvm_cache": "there is no /dev/etherd/e7.1"}, pending=["block_cache"], warnings=["one"])})
    assert plan.outcome == "changes"
    text = as_text([plan], groups_of([plan]), 150)
    assert "First, several steps of block_cache: what comes after them is not planned." in text
    assert "lvm_cache: known only after the layers before it have changed: there is no /dev/etherd/e7.1" in text
    assert "Warning: one" in text


def test_a_host_of_which_site_leaves_layers_out_changes_in_part(tmp_path):
    result, printed = run(tmp_path, results={"node8": LEFT_OUT, "node6": FLEET["node6"], "node4": REFUSED})
    assert result["summary"] == "3 hosts: 1 would be refused, 1 would change in part, 1 is configured as described."
    text = " ".join(printed.split())
    assert f"node8 would change in part {LEFT_OUT['msg']} 1. drive_write_cache Disable" in text
    assert result["problem"] == "The plan cannot be carried out on node4. It is carried out only in part on node8."
    assert "would change in part" in (tmp_path / "plan.md").read_text()
    (one,) = [host for host in json.loads((tmp_path / "plan.json").read_text())["hosts"] if host["host"] == "node8"]
    assert (one["outcome"], len(one["steps"]), one["reason"]) == ("in_part", 2, LEFT_OUT["msg"])


def test_a_host_that_would_not_change_at_all_is_refused():
    (plan,) = read_plans({"node8": {**LEFT_OUT, "diff": {"steps": []}}})
    assert plan.outcome == "refused"


@pytest.mark.parametrize(
    ("tags", "unchanged", "nothing"),
    [
        ({}, "is configured as described,", "has no cache layer in its variables."),
        ({"ansible_run_tags": ["all"]}, "is configured as described,", "has no cache layer in its variables."),
        (
            {"ansible_run_tags": ["block_queue", "raid_cache_configure"]},
            "is configured as described, limited to raid_cache and block_queue,",
            "has no variable of the selected layers.",
        ),
        (
            {"ansible_skip_tags": ["raid_cache", "block_cache", "storage_network", "block_queue"]},
            "is configured as described, limited to drive_write_cache,",
            "has no variable of the selected layers.",
        ),
        ({"ansible_run_tags": ["storage_network_prove"]}, "is configured as described,", "was not examined, because the tags select no layer."),
    ],
)
def test_what_tags_leave_out_is_not_called_missing(tags, unchanged, nothing):
    """A host whose only layer is left out by tags has it in its variables all the same."""
    result, _printed = run(results={"node6": FLEET["node6"], "node7": planned(done=[])}, tags=tags)
    assert result["summary"].endswith(f" {nothing}") and f" {unchanged}" in result["summary"]


def test_a_refusal_is_a_problem_and_everything_is_printed_and_written(tmp_path):
    result, printed = run(tmp_path / "new")
    assert ("failed" in result, result["changed"]) == (False, False)
    assert result["problem"] == "The plan cannot be carried out on node4, node5."
    assert result["text"] in printed and f"Plan: {tmp_path}/new/plan.md" in printed
    written = json.loads((tmp_path / "new/plan.json").read_text())
    assert written["schema"] == 1 and [one["host"] for one in written["hosts"]] == ["node2", "node3", "node4", "node5", "node6", "node7", "node10"]
    assert written["hosts"][0]["steps"][0]["action"].startswith("Disable the write cache of /dev/disk/by-id/ata-node2-a (sda)")
    assert "## 2 hosts would change" in (tmp_path / "new/plan.md").read_text()


def test_a_plan_that_can_be_carried_out_succeeds_and_writes_nothing_unasked(tmp_path):
    result, _printed = run(results={"node6": FLEET["node6"], "node3": FLEET["node3"]})
    assert ("failed" in result, result["problem"], result["files"], list(tmp_path.iterdir())) == (False, "", {}, [])


def test_no_host_is_no_plan():
    result, _printed = run(results={})
    assert result["problem"] == "No host was planned: select hosts with storage_hosts."


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    result, printed = run(tmp_path / "file", results={"node6": FLEET["node6"]})
    assert result["failed"] and "Set plan_directory to a folder that can be written." in result["msg"]
    assert "node6" in printed, "the plan is printed all the same"


@pytest.mark.parametrize(
    "result",
    [
        {"steps": "x", "pending": 3, "undetermined": [], "warnings": {"a": 1}},
        {"steps": [1, None, {"action": ["x"], "risks": "power"}], "undetermined": {"a": {"b": 1}}},
        {"failed": True, "msg": ["a"]},
        {"failed": True},
        [],
        None,
        "text",
        {"steps": [{"action": "x" * 10**6, "layer": "y" * 10**6, "risks": ["\x1b[31m", "no such risk"]}]},
    ],
)
def test_a_host_may_return_anything(result):
    plans = read_plans({"node1": result, "\x1b[2Jnode2": result})
    groups = groups_of(plans)
    for text in (as_text(plans, groups, 80), as_markdown(plans, groups)):
        assert len(text) < 20_000 and all(line.isprintable() for line in text.splitlines())
    json.dumps([one.to_dict() for one in plans])


def test_text_of_a_host_is_no_markup():
    plans = read_plans({"node1": planned({"layer": "l|m", "action": "<script>`x`|[a](b)", "risks": []})})
    text = as_markdown(plans, groups_of(plans))
    assert "\\<script\\>" in text and "\\[a\\](b)" in text
    assert len([line for line in text.splitlines() if line.startswith("| 1")]) == 1


def test_several_devices_of_one_host_are_named():
    plans = read_plans({"node10": FLEET["node10"]})
    text = as_text(plans, groups_of(plans), 150)
    assert "ata-node10-a (sda)" in text and "ata-node10-b (sdb)" in text and "DEVICE" not in text


def test_hosts_without_a_result_are_not_called_configured():
    (plan,) = read_plans({"node1": {}})
    assert (plan.outcome, plan.reason) == ("refused", "no plan was made for this host")


def test_paths_with_colons_are_devices():
    action = "Disable the write cache of /dev/disk/by-path/pci-0000:0{}:1f.2-ata-1 (sda)"
    plans = read_plans({f"node{number}": planned({"layer": "drive_write_cache", "action": action.format(number), "risks": []}) for number in (1, 2)})
    assert [group.names for group in groups_of(plans)] == [["node1", "node2"]]
    (refused,) = groups_of(read_plans({"node1": {"failed": True, "msg": "/dev/sdb: it is mounted."}}))
    assert refused.first.reason == "/dev/sdb: it is mounted."
