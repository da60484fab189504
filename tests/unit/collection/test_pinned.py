# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CI runs and installs is named by its content: actions by commit, packages by checksum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((TOP / ".github/workflows").glob("*.y*ml"))

_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>\S+)(?: ; [^\\]+?)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+",
    re.MULTILINE,
)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit_with_their_version(workflow):
    used = re.findall(r"uses:\s*(\S+)[ \t]*(.*)", workflow.read_text())
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"# v\d+\.\d+\.\d+", comment), (action, comment)


def test_every_requirement_is_locked_with_checksums():
    text = (TOP / "requirements.lock").read_text()
    entries = [(found["name"], found["version"]) for found in _ENTRY.finditer(text)]
    rest = _ENTRY.sub("", text)
    assert all(line.startswith("#") or not line for line in rest.splitlines()), rest[:500]
    wanted = [line.split(";")[0].strip() for name in ("requirements.txt", "requirements-dev.txt") for line in (TOP / name).read_text().splitlines()]
    pinned = [tuple(line.split("==")) for line in wanted if "==" in line and not line.startswith("#")]
    assert len(pinned) > 20
    assert not [one for one in pinned if one not in entries], "run scripts/lock-requirements"
    assert "://" not in text
