# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role test_volumes: every step of a plan has a task, in the order of the plan, and nothing is forced that the plan has not proven."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
ROLE = TOP / "roles/test_volumes"
PLAN = (TOP / "plugins/module_utils/_volumes/plan.py").read_text()


def tasks_of(name):
    return yaml.safe_load((ROLE / f"tasks/{name}.yml").read_text())


def steps_of(name):
    return [re.search(r"'contains', '(\w+)'", task["loop"]).group(1) for task in tasks_of(name)]


def test_every_step_of_a_plan_has_a_task():
    planned = set(re.findall(r'Step\("(\w+)"', PLAN)) - {"record", "release"}
    assert planned == {*steps_of("create"), *steps_of("remove")}


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("create", ["create_array", "create_group", "create_pool", "create_volume", "make_filesystem", "mount"]),
        ("remove", ["unmount", "remove_volume", "remove_pool", "remove_group", "stop_array", "remove_labels"]),
    ],
)
def test_tasks_follow_the_order_of_the_plan(name, order):
    assert list(dict.fromkeys(steps_of(name))) == order


def test_only_the_removal_of_proven_volumes_is_forced():
    forced = [
        task["name"] for name in ("create", "remove") for task in tasks_of(name) if any(isinstance(one, dict) and one.get("force") for one in task.values())
    ]
    assert forced == ["Remove logical volumes", "Remove thin pools"]


def test_nothing_is_made_in_check_mode_or_without_a_changed_plan():
    _verify, block = tasks_of("main")
    plan, work = block["block"][1:]
    assert plan["register"] == "__test_volumes_plan"
    assert work["when"] == ["__test_volumes_plan is changed", "not ansible_check_mode"]
    assert work["block"][-1]["cachefleet.storage.test_volumes"]["operation"] == "finish"
