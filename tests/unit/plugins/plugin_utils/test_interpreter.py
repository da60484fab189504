# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said when no Python has run a module, on a host or on the controller. The outputs are those of Pythons 2.7 to 3.7, pyenv and asdf."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._interpreter import interpreter_problem

NO_JSON = "Module result deserialization failed: No start of json char found"
FUTURE = "    from __future__ import annotations\n    ^\nSyntaxError: future feature annotations is not defined\n"
PYENV = "pyenv: python3.13: command not found\n\nThe `python3.13' command exists in these Python versions:\n  3.13.0\n"
ASDF = "No version is set for command python3\nConsider adding one of the following versions in your config file at /root/.tool-versions\n"


def failed(stderr="", rc=1, msg=NO_JSON, **more):
    return {"failed": True, "msg": msg, "module_stderr": stderr, "module_stdout": "", "rc": rc, **more}


@pytest.mark.parametrize(
    ("answer", "variables", "sentence"),
    [
        (failed(FUTURE), {"ansible_python_interpreter": "/usr/libexec/platform-python"}, "/usr/libexec/platform-python on this host is too old: "),
        (failed("        zip_data: str,\n                ^\nSyntaxError: invalid syntax\n"), {}, "its Python on this host is too old: "),
        ({"failed": True, "msg": "ansible-core requires a minimum of Python version 3.9. Current version: 3.8.18"}, {}, "needs 3.9. Install a newer one"),
        (failed(PYENV, 127, ansible_facts={"discovered_interpreter_python": "/root/.pyenv/shims/python3.13"}), {}, "/python3.13 is the launcher of"),
        (failed(ASDF, 126), {"ansible_python_interpreter": "auto"}, "and starts no Python on this host ('No version"),
        (failed("/bin/sh: 1: /opt/python3: not found", 127, "not found"), {}, "cannot be started on this host ('/bin/sh: 1"),
    ],
)  # fmt: skip
def test_python_that_runs_no_module_is_named_in_one_sentence(answer, variables, sentence):
    found = interpreter_problem(answer, variables)
    assert sentence in found
    assert "ansible_python_interpreter" in found and found.endswith(".") and "\n" not in found


def test_python_of_old_distributions_is_advised():
    found = interpreter_problem(failed(FUTURE), {})
    assert "RHEL, Alma, Rocky 8: 'dnf install python3.11' for /usr/bin/python3.11; SLES 15, openSUSE Leap 15: 'zypper install python311' for" in found


@pytest.mark.parametrize(
    "answer",
    [
        {"changed": False},
        {"failed": True, "msg": "lvs failed with exit status 5", "rc": 5},
        # A command of a module that was not found, and a process that was killed: its Python has run.
        {"failed": True, "msg": "The command lvs is missing on this host", "rc": 127},
        failed("Killed", 137),
    ],
)
def test_other_failures_keep_their_message(answer):
    assert interpreter_problem(answer, {"ansible_python_interpreter": "/root/.pyenv/shims/python3"}) == ""


def test_controller_with_an_old_python_is_told_which_one_it_needs():
    folder = Path(sys.modules[interpreter_problem.__module__].__file__).parent
    program = f"import sys; sys.version_info = (3, 9, 18, 'final', 0); exec(compile(open({str(folder / '__init__.py')!r}).read(), 'x', 'exec'))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "needs Python 3.11 or newer and ansible-core 2.16 or newer on the controller, and this Ansible runs with Python 3.9 (" in ended.stderr
