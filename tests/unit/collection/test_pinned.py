# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CI runs and installs is named by its content: actions by commit, packages by checksum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

TOP = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((TOP / ".github/workflows").glob("*.y*ml"))

REQUIREMENTS = ("requirements.txt", "requirements-dev.txt")

_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>\S+)(?: ; [^\\]+?)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+",
    re.MULTILINE,
)


def _lines(name):
    return [line for line in (TOP / name).read_text().splitlines() if line and not line.startswith(("#", "-r"))]


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
    wanted = [line for name in REQUIREMENTS for line in _lines(name)]
    assert len(wanted) > 20
    for line in wanted:
        requirement = Requirement(line)
        versions = [version for name, version in entries if name == requirement.name]
        assert versions, f"{line}: run scripts/lock-requirements"
        assert all(requirement.specifier.contains(version) for version in versions), (line, versions)
    assert "://" not in text


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_versions_are_only_pinned_in_the_lock(name):
    assert not re.findall(r"^[^#\n]*(?:==|~=)", (TOP / name).read_text(), re.MULTILINE)


def test_user_and_execution_environment_have_the_same_ranges():
    dependencies = yaml.safe_load((TOP / "meta/execution-environment.yml").read_text())["dependencies"]
    assert dependencies == {"python": "requirements.txt", "system": "bindep.txt"}
    ranges = {one.name: one.specifier for one in map(Requirement, _lines("requirements.txt"))}
    assert all(ranges.values()), "each has a range"
    installed = set(re.findall(r"pip install (ansible-core .*)", (TOP / "README.md").read_text())[0].split())
    assert installed | {"jmespath"} == set(ranges)
    low, high = re.findall(r"ansible-core (\d\.\d+) to (\d\.\d+)", (TOP / "README.md").read_text())[0]
    assert [ranges["ansible-core"].contains(f"{version}.5") for version in (low, high)] == [True, True]
    assert low in yaml.safe_load((TOP / "meta/runtime.yml").read_text())["requires_ansible"]
