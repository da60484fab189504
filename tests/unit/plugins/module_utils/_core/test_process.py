# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner


def test_output_exit_status_and_the_c_locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    completed = Runner().run([sys.executable, "-c", "import os, sys; print(os.environ['LC_ALL']); sys.exit(3)"], ok=(3,))
    assert (completed.stdout, completed.rc) == ("C\n", 3)


def test_an_argument_is_never_read_by_a_shell(tmp_path):
    Runner().run(["echo", f"; touch {tmp_path}/made", "$(id)"])
    assert list(tmp_path.iterdir()) == []


def test_an_unexpected_exit_status_is_an_error_with_its_evidence():
    with pytest.raises(CommandFailed, match="failed with exit status 2: the reason") as caught:
        Runner().run(["sh", "-c", "echo some; echo the reason >&2; exit 2"], item="/dev/x")
    result = caught.value.as_result()
    assert (result["rc"], result["stdout"], result["stderr"], result["item"]) == (2, "some\n", "the reason\n", "/dev/x")


def test_a_missing_command_names_the_package():
    with pytest.raises(ToolMissing, match="no-such-command is missing on this host: install the package no-such-command"):
        Runner().run(["no-such-command"])
    with pytest.raises(ToolMissing, match="does not exist or cannot be executed"):
        Runner().find("/etc/passwd")


def test_a_command_first_on_path_wins_over_the_systems(tmp_path, monkeypatch):
    tool = tmp_path / "hdparm"
    tool.write_text("#!/bin/sh\necho ours\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Runner().run(["hdparm"]).stdout == "ours\n"


def test_a_vendors_folder_is_searched_too(tmp_path):
    tool = tmp_path / "storcli64"
    tool.write_text("#!/bin/sh\necho vendor\n")
    tool.chmod(0o755)
    assert Runner(vendor_dirs=[str(tmp_path)]).run(["storcli64"]).stdout == "vendor\n"


def test_the_time_limit_ends_the_command_and_its_children(tmp_path):
    marker = tmp_path / "pid"
    with pytest.raises(TimedOut, match="did not end within 1 seconds and was stopped"):
        Runner().run(["sh", "-c", f"sleep 60 & echo $! > {marker}; wait"], timeout=1)
    status = Path("/proc") / marker.read_text().strip() / "stat"
    # An ended orphan may stay as a zombie where nothing reaps it.
    assert not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_output_that_is_not_text_is_kept_readable():
    assert "\ufffd" in Runner().run(["printf", "\\377"]).stdout


def test_every_command_is_remembered():
    runner = Runner()
    runner.run(["true"])
    runner.run(["false"], ok=None)
    assert [completed.rc for completed in runner.history] == [0, 1]


def test_a_command_that_is_there_and_cannot_be_started_is_said(tmp_path):
    for name, content in (("wrong", b"\x7fELF no program"), ("nobody", b"#!/no/such/interpreter\n")):
        tool = tmp_path / name
        tool.write_bytes(content)
        tool.chmod(0o755)
        with pytest.raises(ToolMissing, match="is there and cannot be started") as caught:
            Runner().run([str(tool)])
        assert str(tool) in caught.value.message
