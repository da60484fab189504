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


def play(folder, name, inventory, *options, rc=0, **variables):
    command = [str(_BIN / "ansible-playbook"), "-i", inventory, f"cachefleet.storage.{name}", "-e", json.dumps(variables), *options]
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
    played = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert played.returncode == rc, played.stdout + played.stderr
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
    done = play(tmp_path, "site", "inventory")
    # The steps are printed as the plan prints them.
    assert (
        f"1 host: 1 was changed.\n\n{host.name} was changed\n   1. drive_write_cache  Disable the write cache of /dev/disk/by-id/ata-SIMULATED_SDA (sda)"
        in done
    )
    assert (host.folder / RULES).exists()

    assert "1 host: 1 was changed." in play(tmp_path, "site", "before")
    assert files_of(host.folder) == first
    play(tmp_path, "describe", "inventory", describe_directory="after", describe_all_settings=True)
    for path in (tmp_path / "before").rglob("*.yml"):
        assert (tmp_path / "after" / path.relative_to(tmp_path / "before")).read_text() == path.read_text()


def everything_of(folder):
    found = [path for name in ("etc", "run", "var") for path in (folder / name).rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in found}


def configured(found):
    # mount(8), which makes the host, writes to /run/mount; Ansible has its own folders in /var.
    return {path: content for path, content in found.items() if not path.startswith(("var", "run/mount"))}


def test_removal_takes_away_every_file_and_no_setting(tmp_path):
    hosts = simulated.make_hosts(tmp_path / "hosts", 2, "node")
    first, before = hosts[0], configured(everything_of(hosts[0].folder))
    (tmp_path / "inventory.json").write_text(json.dumps(simulated.inventory_of(hosts, simulated.LAYERS)))
    for host in hosts:
        (host.folder / "var/lib/cachefleet/released").mkdir(parents=True)
        (host.folder / "var/lib/cachefleet/released/x.json").write_text("{}")
    play(tmp_path, "site", "inventory.json")
    devices = {path: path.read_bytes() for path in (first.folder / "sys").rglob("*") if path.is_file()}
    unit = first.folder / "etc/systemd/system/cachefleet-flashcache-images.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Unit]\n")

    refused = play(tmp_path, "site", "inventory.json", "--check", rc=2, site_state="absent")
    assert "2 hosts: 1 failed, 1 would change." in refused
    assert "/etc/systemd/system/cachefleet-flashcache-images.service brings its cache up at boot" in refused and (first.folder / RULES).exists()
    # A refused host is a sentence, not its facts.
    (line,) = [line for line in refused.splitlines() if line.startswith("fatal: ")]
    assert len(line) < 1500
    unit.unlink()
    for folder in ("etc/systemd/system", "etc/systemd"):
        (first.folder / folder).rmdir()

    predicted = play(tmp_path, "site", "inventory.json", "--check", "--diff", site_state="absent")
    assert "2 hosts with equal steps would change: node001 and node002" in predicted and '"/run/cachefleet.storage": {' in predicted
    assert (first.folder / RULES).exists()
    assert "2 hosts: 2 would change." in play(tmp_path, "plan", "inventory.json", site_state="absent")
    done = play(tmp_path, "site", "inventory.json", site_state="absent")
    assert f"2 hosts with equal steps were changed: node001 and node002\n   1. host_files  Remove /{RULES}" in done
    left = everything_of(first.folder)
    assert configured(left) == before
    assert [path for path in left if "cachefleet" in path] == []
    assert {path: path.read_bytes() for path in devices} == devices
    assert "2 hosts: 2 have nothing of this collection." in play(tmp_path, "site", "inventory.json", site_state="absent")
    assert "run it without the tag raid_cache" in play(tmp_path, "site", "inventory.json", "--tags", "raid_cache", rc=2, site_state="absent")


def test_page_has_the_commands_of_this_test():
    for command in (
        "describe -e describe_directory=before -e describe_all_settings=true",
        "-i inventory cachefleet.storage.site",
        "-i before cachefleet.storage.site",
    ):
        assert command in PAGE
    assert f"/{RULES}" in PAGE
