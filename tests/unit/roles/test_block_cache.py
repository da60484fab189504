# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role block_cache: caches of several types are predicted in one call, and each is configured by the module of its type."""

from __future__ import annotations

import pathlib

import jinja2.nativetypes
import pytest
import yaml

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles/block_cache"
TASKS = {task["name"]: task for task in yaml.safe_load((ROLE / "tasks/configure.yml").read_text())}
ONE = [{"type": "flashcache", "name": "a"}, {"type": "flashcache", "name": "b"}]
SEVERAL = [*ONE, {"type": "enhanceio", "name": "c"}]


def runs(name, **variables):
    conditions = TASKS[name]["when"]
    environment = jinja2.nativetypes.NativeEnvironment()
    return all(
        environment.from_string("{{ " + one.replace("unique |", "unique | list |") + " }}").render(variables)
        for one in ([conditions] if isinstance(conditions, str) else conditions)
    )


@pytest.mark.parametrize(
    ("check", "caches", "expected"),
    [
        (True, SEVERAL, ["Predict the changes of caches of several types"]),
        (True, ONE, ["Configure the caches"]),
        (True, [], ["Configure the caches"]),
        (False, SEVERAL, ["Remove caches before others are created", "Configure the caches"]),
        (False, ONE, ["Configure the caches"]),
    ],
)
def test_check_mode_predicts_several_types_in_one_call(check, caches, expected):
    names = ["Predict the changes of caches of several types", "Remove caches before others are created", "Configure the caches"]
    assert [name for name in names if runs(name, ansible_check_mode=check, block_cache_caches=caches)] == expected


def test_prediction_has_the_options_of_the_modules():
    predicted = TASKS["Predict the changes of caches of several types"]["cachefleet.storage.cache_layers"]
    assert predicted["layers"] == ["block_cache"]
    modules = yaml.safe_load((ROLE / "tasks/types.yml").read_text())
    for kind in ("flashcache", "enhanceio"):
        options = next(task[f"cachefleet.storage.{kind}"] for task in modules if f"cachefleet.storage.{kind}" in task)
        assert predicted[kind] == {name: options[name] for name in ("tool_dirs", "kernel_module")}
        assert {name: predicted[name] for name in ("protected_drives", "flushed_virtual_disks")} == {
            name: options[name] for name in ("protected_drives", "flushed_virtual_disks")
        }
