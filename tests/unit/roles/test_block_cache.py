# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role block_cache: caches of several types are predicted in one call, and each is configured by the module of its type."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import jinja2.nativetypes
import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import WITH_TOOLS

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles/block_cache"
TASKS = {task["name"]: task for task in yaml.safe_load((ROLE / "tasks/configure.yml").read_text())}
ONE = [{"type": "flashcache", "name": "a"}, {"type": "flashcache", "name": "b"}]
PARTS = ("types.yml", "flush.yml")
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
    (call,) = yaml.safe_load((ROLE / "tasks/type.yml").read_text())
    for kind in WITH_TOOLS:
        assert predicted[kind] == {name: f"{{{{ block_cache_{kind}_{name} }}}}" for name in ("tool_dirs", "kernel_module")}
    for name in ("protected_drives", "flushed_virtual_disks"):
        assert call["args"][name].split(" if ")[0].strip("{ ") == predicted[name].strip("{ }")


def test_module_of_each_type_is_called_also_for_a_flush_and_none_after_a_failure(tmp_path):
    """On this machine, with a name that no module accepts, so that nothing is read or changed."""
    items = [{"type": kind, "name": "a/b", "origin": "/dev/disk/by-id/x", "state": "flushed"} for kind in ("enhanceio", "dm_cache")]
    enter = {"ansible.builtin.include_role": {"name": "cachefleet.storage.block_cache"}, "vars": {"__block_cache_list": items, "__block_cache_part": "rest"}}
    tasks = [
        {"name": name, "block": [{**enter, "ansible.builtin.include_role": {**enter["ansible.builtin.include_role"], "tasks_from": name}}]} for name in PARTS
    ]
    play = {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [{**task, "rescue": [{"ansible.builtin.debug": {"var": "ansible_failed_result"}}]} for task in tasks],
    }
    (tmp_path / "play.json").write_text(json.dumps([play]))
    command = [pathlib.Path(sys.executable).with_name("ansible-playbook"), "-i", "here,", "-c", "local", tmp_path / "play.json"]
    extra = ["-e", json.dumps({"ansible_python_interpreter": sys.executable, "ansible_async_dir": str(tmp_path), "block_cache_flush_interval": 1})]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path), "ANSIBLE_CONFIG": str(ROLE.parents[1] / "ansible.cfg")}
    played = subprocess.run([*command, *extra], env=environment, capture_output=True, text=True, timeout=900, check=False)
    configure, flush = re.split(r"TASK \[.*Forget the flushes", played.stdout)
    for part, called in ((configure, ["dm_cache"]), (flush, ["dm_cache", "enhanceio"])):
        assert re.findall(r"TASK \[.* the caches of type (\w+)\]", part) == called, played.stdout + played.stderr
        # Older releases of ansible-core print it as YAML, with quotes doubled.
        assert "Invalid cache name 'a/b'" in part.replace("''", "'"), played.stdout
