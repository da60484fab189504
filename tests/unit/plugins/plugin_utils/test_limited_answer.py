# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that answers a command or a module with 600 MiB ends one task, and not the controller. With Ansible itself, in processes of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import TooMuchOutput
from ansible_collections.cachefleet.storage.plugins.plugin_utils import _limited_answer
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import limited_answer, limited_process, require_short

MIB = 1 << 20
TREE = Path(_limited_answer.__file__).parents[5]

FLOOD = "#!/bin/sh\nexec dd if=/dev/zero bs=1M count=600 status=none\n"
#: A status as it should be.
STATUS = '#!/bin/sh\necho \'{"schema": 1, "state": "finished"}\'\n'

ACTION = """
from ansible.plugins.action import ActionBase
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import limited_answer


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        try:
            with limited_answer("node1"):
                return self._execute_module(module_name="flood", module_args=self._task.args, task_vars=task_vars)
        except StorageError as error:
            return {"failed": True, **error.to_dict()}
"""

MODULE = """#!/usr/bin/python
import json, resource, sys
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"kind": {"type": "str"}})
if module.params["kind"] == "limits":
    module.exit_json(memory=resource.getrlimit(resource.RLIMIT_AS)[0])
piece = {"text": "a" * 1048576, "values": "[]," * 349525}[module.params["kind"]]
quote = '"' if module.params["kind"] == "text" else ""
sys.stdout.write('{"x": ' + (quote or "["))
for _number in range(600 if quote else 100):
    sys.stdout.write(piece)
sys.stdout.write((quote or "0]") + "}\\n")
"""

PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - flood:
        kind: KIND
      register: found
    - debug:
        msg: "memory={{ found.memory | default('') }}"
"""

MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(json.dumps([done.returncode, (done.stdout + done.stderr)[:5000], resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024]))
"""


def measured(folder, *words, path=""):
    """The exit status, the output, and the bytes of the largest process."""
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(TREE), "ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_HOME": str(folder / "home")}
    environment["PATH"] = f"{path}:{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return folder / name


@pytest.mark.parametrize("connection", ["local", "ssh"])
def test_status_of_600_mib_is_one_sentence(tmp_path, connection):
    """The program of the host that prints the status, or the ssh client, sends that."""
    name = "head" if connection == "local" else "ssh"
    flood, status = (program(tmp_path / kind, name, text) for kind, text in (("flood", FLOOD), ("status", STATUS)))

    def ask(fake):
        extra = ["-e", f"ansible_ssh_executable={fake}"] if connection == "ssh" else []
        arguments = ["-a", "campaign=c1 limit=20", "-e", f"ansible_python_interpreter={sys.executable}"]
        return measured(
            tmp_path, "ansible", "-i", "node1,", "node1", "-c", connection, "-m", "cachefleet.storage.wait_for_runner", *arguments, *extra, path=fake.parent
        )

    usual = ask(status)
    assert (usual[0], '"state": "finished"' in usual[1]) == (0, True), usual[1]
    code, output, memory = ask(flood)
    assert (code, "Host node1 answered with more than 1 MiB" in output, "Traceback" in output) == (2, True, False), output
    assert memory - usual[2] < 300 * MIB


@pytest.mark.parametrize("kind", ["text", "values"])
def test_module_that_answers_with_too_much_is_one_sentence(tmp_path, kind):
    usual, found = play(tmp_path, "limits"), play(tmp_path, kind)
    # The process of the module, on the host, is not limited.
    assert (usual[0], f"memory={resource.getrlimit(resource.RLIMIT_AS)[0]}" in usual[1]) == (0, True), usual[1]
    assert (found[0], "Host node1 answered with more than 16 MiB" in found[1], "Traceback" in found[1]) == (2, True, False), found[1]
    assert found[2] - usual[2] < 300 * MIB


def play(folder, kind):
    program(folder / "action_plugins", "flood.py", ACTION)
    program(folder / "library", "flood.py", MODULE)
    (folder / "play.yml").write_text(PLAYBOOK.replace("KIND", kind))
    return measured(folder, "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}", "play.yml")


@pytest.mark.parametrize("wrap", [False, True])
def test_lack_of_memory_is_found_behind_another_error(wrap):
    def fill():
        try:
            return bytearray(1200 * MIB)
        except MemoryError as error:
            if wrap:
                raise RuntimeError("the connection failed") from error
            raise

    before = resource.getrlimit(resource.RLIMIT_AS), subprocess.Popen.__init__
    message = r"^Host node1 answered with more than 16 MiB, which no answer has: it was not read\. Check that host\.$"
    with pytest.raises(TooMuchOutput, match=message), limited_answer("node1"):
        fill()
    assert (resource.getrlimit(resource.RLIMIT_AS), subprocess.Popen.__init__) == before


def test_other_errors_are_raised_and_limits_restored():
    before = resource.getrlimit(resource.RLIMIT_AS), subprocess.Popen.__init__
    with pytest.raises(KeyError, match="own"), limited_answer("node1"):
        raise KeyError("own")
    assert (resource.getrlimit(resource.RLIMIT_AS), subprocess.Popen.__init__) == before


def test_started_processes_have_the_limits_from_before_also_when_nested():
    before = resource.getrlimit(resource.RLIMIT_AS)[0]
    with limited_answer("node1"), limited_process(64 * MIB):
        limited = resource.getrlimit(resource.RLIMIT_AS)[0]
        shown = subprocess.run([sys.executable, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_AS)[0])"], capture_output=True, check=True)
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == limited != before
    assert int(shown.stdout) == before


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_long_replies_are_refused_before_they_are_parsed(name):
    require_short({"stdout": "x" * 10, "stderr": None}, "node1", 10)
    with pytest.raises(TooMuchOutput, match="more than 10 B,"):
        require_short({"stdout": "", "stderr": "", name: "x" * 11}, "node1", 10)
