# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""``scripts/demo``: its output is what is changed and what fails, and its sweep has every combination of the caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CACHES, DRIVES, read_variants

TOP = Path(__file__).resolve().parents[3]
OUTPUT = TOP / "scripts/demo-output"
ACTIONS = ["Disable the write cache of /dev/disk/by-id/ata-VIRTUAL_HDD_NODE1-HDD0 (sda), provider ata", "Write the udev rule"]
MODULE = f"""#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"changed": {{"type": "bool"}}, "msg": {{}}}}, supports_check_mode=True)
if module.params["msg"]:
    module.fail_json(msg=module.params["msg"])
module.exit_json(changed=module.params["changed"], actions={ACTIONS!r} if module.params["changed"] else [])
"""
PLAY = """
- hosts: here
  gather_facts: false
  tasks:
    - {name: Nothing to do, configured: {changed: false}}
    - {name: To do, configured: {changed: true}}
    - {name: Left out, configured: {changed: true}, when: false}
    - {name: Without actions, ansible.builtin.command: echo changed}
    - {name: Broken, configured: {msg: the disk is gone}}
"""


def _play(folder, *arguments):
    if not OUTPUT.exists():
        pytest.skip("the scripts of the repository are not part of a built collection")
    (folder / "library").mkdir()
    (folder / "library/configured.py").write_text(MODULE)
    (folder / "play.yml").write_text(PLAY)
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "here,", "-c", "local", str(folder / "play.yml")]
    more = {"ANSIBLE_CALLBACK_PLUGINS": str(OUTPUT), "ANSIBLE_STDOUT_CALLBACK": "changes", "ANSIBLE_LOCAL_TEMP": str(folder), "ANSIBLE_NOCOLOR": "1"}
    environment = {**os.environ, **more, "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"), "COLUMNS": "80"}
    command += ["-e", f"ansible_python_interpreter={sys.executable}", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


def test_changes_and_failures_are_printed_and_nothing_else(tmp_path):
    played = _play(tmp_path)
    lines = [line for line in played.stdout.splitlines() if line.strip()]
    assert played.returncode == 2
    # Wrapped to 80 columns.
    assert lines[:3] == [
        "here: Disable the write cache of /dev/disk/by-id/ata-VIRTUAL_HDD_NODE1-HDD0",
        "    (sda), provider ata",
        "here: Write the udev rule",
    ]
    text = " ".join(lines[3:])
    assert "TASK [Broken]" in text and "the disk is gone" in played.stdout + played.stderr
    assert played.stdout.count("TASK [") == 1 and "PLAY" not in played.stdout and "skipping" not in played.stdout


def test_what_check_mode_predicts_is_no_change(tmp_path):
    assert "Disable" not in _play(tmp_path, "--check").stdout


def test_the_opening_follows_from_the_variables():
    if not OUTPUT.exists():
        pytest.skip("the scripts of the repository are not part of a built collection")
    variables = {"sweep_repeats": 4, "sweep_variants": [{"name": name} for name in ("bare-disk_on", "writethrough-disk_on", "writeback-disk_on")]}
    command = [sys.executable, str(OUTPUT / "opening"), "node7", "3", "60"]
    printed = subprocess.run(command, input=json.dumps(variables), capture_output=True, text=True, timeout=900, check=True).stdout
    assert max(map(len, printed.splitlines())) <= 60
    text = " ".join(printed.split())
    assert "boots node7" in text and "3 settings" in text and "4 times for 3 s" in text
    assert text.endswith("The settings are bare-disk_on, writethrough-disk_on and writeback-disk_on.")


def test_the_sweep_of_the_rack_has_every_combination_and_enough_repeats_to_compare():
    variables = yaml.safe_load((TOP / "inventories/virtual_rack/group_vars/rack/sweep.yml").read_text())
    given = [
        {key: variables[value.strip("{} ")] if str(value).startswith("{{") else value for key, value in one.items()} for one in variables["sweep_variants"]
    ]
    found = {one.name: one.variables for one in read_variants(given)}
    assert list(found) == [f"{cache}-disk_{disk}" for cache in ("bare", "writethrough", "writeback") for disk in ("on", "off")]
    for name, of in found.items():
        (cache,), (drive,) = of[CACHES], of[DRIVES]
        assert name.startswith("bare" if cache.get("state") == "absent" else cache["mode"])
        assert drive["write_cache"] == ("enabled" if name.endswith("on") else "disabled")
    assert variables["sweep_baseline"] == "" and variables["sweep_repeats"] == FEWEST_REPEATS
