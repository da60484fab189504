# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project of ``docs/molecule.md``, as a user would copy it, and with a mistake in his variables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("molecule", reason="molecule is only in the environment of development")

TOP = Path(__file__).resolve().parents[2]
_BIN = Path(sys.executable).parent
VARIABLES = "inventory/group_vars/storage.yml"


def test_project_passes_and_finds_a_mistake(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(TOP / "contrib/molecule", project)

    def tested():
        environment = {**os.environ, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
        done = subprocess.run([str(_BIN / "molecule"), "test"], cwd=project, env=environment, capture_output=True, text=True, timeout=900, check=False)
        return done.returncode, re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)

    status, text = tested()
    assert status == 0, text
    assert "1 host: 1 " in text
    path = project / VARIABLES
    path.write_text(path.read_text().replace("profile: hdd", "profil: hdd"))
    status, text = tested()
    assert status != 0
    assert "block_queue_devices: there is no key profil: did you mean profile?" in " ".join(text.split())


def test_page_has_the_message_and_the_files():
    page = (TOP / "docs/molecule.md").read_text()
    assert "this_machine, node1, node2: block_queue_devices: there is no key profil: did you mean profile?" in page
    for path in (VARIABLES, "inventory/hosts.yml", "molecule/default/molecule.yml", "molecule/default/converge.yml"):
        assert path in page
        assert (TOP / "contrib/molecule" / path).exists()
