# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import read_cell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover import checks
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.room import growth, require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts

MIB = 1024**2
FREE = 100 * MIB


def pair(path, size, *, present=0, number="8:1", free=FREE, real=None, **job):
    cell = read_cell("v", {"name": "c", "target": {"file": path, "size": size}, "job": {"rw": "write", **job}})
    return cell, TargetFacts(target=cell.target, path=real or path, size=present, exists=bool(present), free=free, file_system=number)


def test_files_exceeding_free_space_together_are_refused():
    require_room([pair("/a", 60 * MIB)])
    with pytest.raises(Refused, match=r"^fio will not write to /a, /b: .* needs 121\.1 MiB .* and 100 MiB \(104857600 bytes\) are free"):
        require_room([pair("/a", 60 * MIB), pair("/b", 60 * MIB)])


def test_file_systems_are_checked_separately():
    require_room([pair("/a", 60 * MIB), pair("/b", 60 * MIB, number="8:2")])
    require_room([pair("/a", 60 * MIB, number=None), pair("/b", 60 * MIB, number=None)])


def test_file_counts_once_with_its_largest_size_under_any_name():
    require_room([pair("/a", 30 * MIB), pair("/a", 60 * MIB), pair("/link", 50 * MIB, real="/a")])
    with pytest.raises(Refused):
        require_room([pair("/a", 30 * MIB), pair("/a", 60 * MIB), pair("/b", 50 * MIB)])


def test_existing_files_need_no_space():
    assert growth(*pair("/a", 60 * MIB, present=50 * MIB)) == 10 * MIB
    assert growth(*pair("/a", 60 * MIB, present=70 * MIB)) == 0
    require_room([pair("/a", 60 * MIB, present=60 * MIB, free=0)])


def test_metadata_and_reserve_are_kept_free():
    with pytest.raises(Refused):
        require_room([pair("/a", FREE)])
    require_room([pair("/a", 98 * MIB)])


def test_devices_need_no_free_space():
    cell = read_cell("v", {"name": "c", "target": {"device": "/dev/sdb", "size": FREE * 2}, "job": {"rw": "write"}})
    require_room([(cell, TargetFacts(target=cell.target, path="/dev/sdb", size=FREE * 4, free=FREE, file_system="8:1"))])


def test_long_file_lists_are_abbreviated():
    with pytest.raises(Refused, match=r"and 20 more: with metadata"):
        require_room([pair(f"/f{number:02}", 10 * MIB) for number in range(30)])


def test_space_for_all_cells_is_checked_before_the_first_run(monkeypatch):
    pairs = [pair("/a", 60 * MIB), pair("/b", 60 * MIB)]
    cells = [
        read_cell("v", {"name": f"c{number}", "target": {"file": cell.target.path, "size": 60 * MIB}, "job": {"rw": "write"}})
        for number, (cell, _facts) in enumerate(pairs)
    ]
    facts = {cell.target.path: found for cell, found in pairs}
    monkeypatch.setattr(checks.examination, "examine", lambda _devices, target, *_args, **_more: facts[target.path])
    host = type("AnyHost", (), {"runner": None, "root": None})()
    assert set(checks.guard_all(cells[:1], host, None)) == {(cells[0].target, True)}
    with pytest.raises(Refused, match="/a, /b"):
        checks.guard_all(cells, host, None)


@pytest.mark.parametrize(
    ("options", "fits"), [({"size": "1m"}, True), ({"size": "512k", "offset": "512k"}, True), ({"size": "2m"}, False), ({"offset": "4k"}, False), ({}, True)]
)
def test_job_must_end_within_a_file_that_is_used_as_it_is(monkeypatch, options, fits):
    cell = read_cell("v", {"name": "c", "target": {"file": "/srv/f", "allow_data_loss": True}, "job": {"rw": "write", **options}})
    facts = TargetFacts(target=cell.target, path="/srv/f", size=MIB, exists=True, free=FREE)
    monkeypatch.setattr(checks.examination, "examine", lambda *_args, **_more: facts)
    host = type("AnyHost", (), {"runner": None, "root": None})()
    if fits:
        checks.guard_all([cell], host, None)
    else:
        with pytest.raises(Refused, match=r"fio will not use /srv/f for c: the job ends at byte \d+, and the file has 1 MiB \(1048576 bytes\)"):
            checks.guard_all([cell], host, None)
