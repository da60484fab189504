# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook sweep of an installed collection on this machine, whose caches it does not change: variants measure different files."""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest

if not shutil.which("fio"):
    pytest.skip("fio is not installed on this machine", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("a sweep describes the host, which needs root", allow_module_level=True)


@pytest.fixture
def sweep(controller):
    targets = {name: [{"file": str(controller.folder / f"{name}.bin"), "size": "16m"}] for name in ("a", "b")}
    variants = [{"name": name, "fio_benchmark_targets": target} for name, target in targets.items()]
    variants.append({"name": "impossible", "drive_write_cache_drives": [{"device": "/dev/disk/by-id/gone", "write_cache": "enabled"}]})
    extra = {**controller.extra, "__sweep_folder": str(controller.folder / "journal")}
    type(controller).extra = property(lambda _self: extra)

    def play(**changes):
        return controller.play("sweep", "here", **{"sweep_variants": variants, "sweep_baseline": "", "sweep_repeats": 2, "sweep_settle": 0, **changes})

    return play


def test_a_sweep_measures_every_repeat_once_and_removes_its_journal(controller, sweep):
    dry = sweep(sweep_dry_run=True)
    assert dry.returncode == 0, dry.stdout
    assert "here: 2 variants, 4 steps" in dry.stdout
    assert re.search(r"refused: impossible: /dev/disk/by-id/gone is not on this host", dry.stdout)
    assert not controller.results.exists()

    played = sweep()
    assert played.returncode == 0, played.stdout
    folder = controller.results / "tested/here"
    measured = {str(path.parent.relative_to(folder)): json.loads(path.read_text())["started"] for path in folder.glob("*/*/*/meta.json")}
    assert sorted(measured, key=measured.get) == ["a/write/1", "b/write/1", "b/write/2", "a/write/2"]
    assert "here: 4 of 4 steps are done, the host is restored and verified" in played.stdout
    assert not (controller.folder / "journal/journal.json").exists()

    again = sweep()
    assert again.returncode == 0, again.stdout
    assert {str(path.parent.relative_to(folder)): json.loads(path.read_text())["started"] for path in folder.glob("*/*/*/meta.json")} == measured


def test_invalid_variants_change_nothing(controller, sweep):
    played = sweep(sweep_variants=[{"name": "a"}, {"name": "a"}])

    assert played.returncode != 0
    assert "The variant a has the same name as another variant" in played.stdout
    assert not (controller.folder / "journal").exists()
