# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What action plugins print fits the terminal, although the workers of Ansible have none."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

WORDS = ["cache_writethrough-drive_on"] * 8


def _lines(folder, *, columns):
    """The plan of a sweep as ansible-playbook prints it, on a terminal of this width or, with 0, into a pipe."""
    task = {"name": "Show", "cachefleet.storage.sweep": {"operation": "show", "text": "here: 1 variant\n  repeat 1: " + " → ".join(WORDS)}}
    (folder / "play.yml").write_text(json.dumps([{"hosts": "here", "gather_facts": False, "tasks": [task]}]))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "here,", "-c", "local", str(folder / "play.yml")]
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCAL_TEMP": str(folder), "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"}
    if not columns:
        return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=900, check=True).stdout.splitlines()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        text = b""
        # Reading fails when the last process has closed the terminal.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                text += part
    os.close(ours)
    return text.decode().splitlines()


@pytest.mark.parametrize("columns", [80, 150])
def test_lines_fit_the_terminal(tmp_path, columns):
    lines = _lines(tmp_path, columns=columns)
    found = [line for line in lines if "cache_writethrough" in line]
    assert len(found) > 1 and max(map(len, found)) <= columns and " ".join(" ".join(found).split()).count(WORDS[0]) == len(WORDS)
    # The room is used.
    assert max(map(len, found)) > columns - 30 - 3


def test_lines_of_a_pipe_are_not_wrapped(tmp_path):
    assert [line for line in _lines(tmp_path, columns=0) if "cache_writethrough" in line] == ["  repeat 1: " + " → ".join(WORDS)]
