# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of ``docs/first_hour.md`` on a simulated host: describe, change, site, and site with the first description undoes it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

from fleet import hosts as simulated

_BIN = Path(sys.executable).parent
_REASON = simulated.missing_requirement()
pytestmark = pytest.mark.skipif(bool(_REASON), reason=_REASON)

PAGE = (TOP / "docs/first_hour.md").read_text(encoding="utf-8")
RULES = "etc/udev/rules.d/99-cachefleet-drive-write-cache.rules"


def play(folder, name, inventory, **variables):
    command = [str(_BIN / "ansible-playbook"), "-i", inventory, f"cachefleet.storage.{name}", "-e", json.dumps(variables)]
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
    played = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    return played.stdout


def files_of(folder):
    """The files that a host keeps, without those that are gone at its next boot."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "etc").rglob("*") if path.is_file()}


def test_description_of_before_undoes_what_site_has_done(tmp_path):
    (host,) = simulated.make_hosts(tmp_path / "hosts", 1, "node")
    for folder in ("before", "inventory"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hosts.json").write_text(json.dumps(simulated.inventory_of([host], {})))
    first = files_of(host.folder)

    play(tmp_path, "describe", "inventory", describe_directory="before", describe_all_settings=True)
    play(tmp_path, "describe", "inventory", describe_directory="inventory", describe_layers=["drive_write_cache"])
    described = tmp_path / f"inventory/host_vars/{host.name}.yml"
    edited = described.read_text().replace("write_cache: enabled", "write_cache: disabled")
    described.write_text(re.sub(r"^ +persistent: false\n", "", edited, flags=re.MULTILINE))
    assert "1 host: 1 was changed." in play(tmp_path, "site", "inventory")
    assert (host.folder / RULES).exists()

    assert "1 host: 1 was changed." in play(tmp_path, "site", "before")
    assert files_of(host.folder) == first
    play(tmp_path, "describe", "inventory", describe_directory="after", describe_all_settings=True)
    for path in (tmp_path / "before").rglob("*.yml"):
        assert (tmp_path / "after" / path.relative_to(tmp_path / "before")).read_text() == path.read_text()


def test_page_has_the_commands_of_this_test():
    for command in (
        "describe -e describe_directory=before -e describe_all_settings=true",
        "-i inventory cachefleet.storage.site",
        "-i before cachefleet.storage.site",
    ):
        assert command in PAGE
    assert f"/{RULES}" in PAGE
