# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes of a new user (``mistakes.yml``): none exits with status 0, and the first error of each says what to write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

_HERE = Path(__file__).parent
_BIN = Path(sys.executable).parent
MISTAKES = {one["mistake"]: one for one in yaml.safe_load((_HERE / "mistakes.yml").read_text())}
#: These read files only: in check mode they would do nothing at all.
_READING = ("report", "compare", "results")
_ERROR = re.compile(r"^(?:\[ERROR\]: |ERROR! |fatal: ).*(?:\n\S.*)?", re.MULTILINE)


class PlaybookServer:
    """``playbook_server.py``; with CACHEFLEET_LONG, ansible-playbook itself."""

    def __init__(self):
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
        self._environment = environment
        self._server = None
        if not os.environ.get("CACHEFLEET_LONG"):
            command = [sys.executable, str(_HERE / "playbook_server.py")]
            self._server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def play(self, folder, arguments):
        if self._server is None:
            command = [str(_BIN / "ansible-playbook"), *arguments]
            played = subprocess.run(command, cwd=folder, env=self._environment, capture_output=True, text=True, timeout=1800, check=False)
            return played.returncode, played.stderr + played.stdout
        self._server.stdin.write(json.dumps({"folder": str(folder), "arguments": arguments}) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return answer["rc"], answer["text"]

    def close(self):
        if self._server is not None:
            self._server.communicate()


@pytest.fixture(scope="module")
def server():
    started = PlaybookServer()
    yield started
    started.close()


def test_there_are_a_hundred_mistakes():
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_fails_with_what_to_write(tmp_path, server, mistake):
    case = MISTAKES[mistake]
    for name, text in case.get("files", {}).items():
        (tmp_path / name).write_text(text)
    variables = {"ansible_python_interpreter": sys.executable, "fio_benchmark_spool": str(tmp_path / "spool"), **case.get("variables", {})}
    playbook = case["playbook"]
    arguments = [
        *(["-i", "localhost,", "-c", "local"] if case.get("inventory", True) else []),
        *([] if playbook in _READING else ["--check"]),
        *("-e", json.dumps(variables)),
        *case.get("arguments", []),
        playbook if "." in playbook else f"cachefleet.storage.{playbook}",
    ]
    status, text = server.play(tmp_path, arguments)
    assert status != 0, text
    errors = _ERROR.findall(text)
    assert errors, text
    assert case["says"] in " ".join(errors[0].split()), errors
    assert "Traceback" not in text
