# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role power_loss_test on hosts whose user is determined by a command `id` of this test."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
NEEDS_ROOT = "The power-loss test needs root on this host: set become to true."


def play(folder, user, *arguments, **variables):
    """Run the role for one host; `command_off` leaves a file if the power is cut."""
    shim = folder / "bin/id"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\necho {user}\n")
    shim.chmod(0o755)
    (folder / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "roles": ["cachefleet.storage.power_loss_test"]}]))
    environment = {
        **os.environ,
        "PATH": f"{shim.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_NOCOLOR": "1",
    }
    extra = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "power_loss_test_target": {"device": str(folder / "missing")},
        "power_loss_test_tunnel": True,
        "power_loss_test_cutter": "command",
        "power_loss_test_command_off": ["touch", str(folder / "is-cut")],
        "power_loss_test_command_on": ["true"],
        "power_loss_test_results": str(folder / "results"),
        **variables,
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "host1,", str(folder / "play.yml"), "-e", json.dumps(extra)]
    played = subprocess.run([*command, *arguments], env=environment, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    return played.returncode, played.stdout + played.stderr


def test_user_without_privileges_is_refused_before_anything_is_done(tmp_path):
    status, output = play(tmp_path, 1000)
    assert status == 2
    assert [line for line in output.splitlines() if line.startswith("[ERROR]")] == [f"[ERROR]: Task failed: Action failed: {NEEDS_ROOT}"]
    assert "failed=1" in output and "rescued=0" in output
    # No test, no witness, no power cut.
    assert [path for path in ("results", ".cache/cachefleet", "is-cut") if (tmp_path / path).exists()] == []


def test_root_reaches_the_target(tmp_path):
    status, output = play(tmp_path, 0, "--check")
    assert status == 2
    assert NEEDS_ROOT not in output
    assert f"{tmp_path / 'missing'}" in output


def test_unreachable_host_is_not_refused(tmp_path):
    """A host that an interrupted run left without power: its test is continued, and switches it on."""
    status, output = play(tmp_path, 1000, "--check", ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1)
    assert NEEDS_ROOT not in output
    assert "Examine the target without writing" in output
    assert status == 4
