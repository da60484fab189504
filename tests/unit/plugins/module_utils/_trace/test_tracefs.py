# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances of the kernel's tracing, on a tracefs made of files."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import tracefs
from ansible_collections.cachefleet.storage.tests.unit.support import planted_traces as planted

NOW = 10**12


def started(root: Path, monkeypatch: pytest.MonkeyPatch, buffers: t.Sequence[bytes], *, at_once: int = 2 << 20, **more: t.Any) -> tracefs.Instance:
    """An instance whose processors have these pages."""
    files = planted.PlantedTracefs(root, cpus=len(buffers))
    monkeypatch.setattr(tracefs, "_AT_ONCE", at_once)
    instance = tracefs.Instance(files.folder, "monday")
    files.make_instance("monday", buffers, **more)
    monkeypatch.setattr(Path, "mkdir", lambda *_args: None)
    instance.start([planted.SDA, 253 << 20], [planted.SDA])
    return instance


def times_of(events: t.Iterable[t.Any]) -> list[int]:
    return [event[0] for event in events]


@pytest.mark.parametrize("place", tracefs.PLACES)
def test_the_mounted_tracefs_is_found(tmp_path: Path, place: str) -> None:
    planted.PlantedTracefs(tmp_path, place=place)
    (tmp_path / "sys/kernel/security").mkdir()
    (tmp_path / "sys/kernel/security/lockdown").write_text("none [integrity] confidentiality\n")
    assert tracefs.find(tmp_path) == tmp_path / place


def test_a_host_without_tracefs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match=r"tracefs is not mounted on this host.*mount -t tracefs nodev .*/sys/kernel/tracing"):
        tracefs.find(tmp_path)


def test_a_kernel_that_is_locked_down_is_refused(tmp_path: Path) -> None:
    planted.PlantedTracefs(tmp_path)
    (tmp_path / "sys/kernel/security").mkdir()
    (tmp_path / "sys/kernel/security/lockdown").write_text("none integrity [confidentiality]\n")
    with pytest.raises(ToolMissing, match="locked down"):
        tracefs.find(tmp_path)


def test_a_tracefs_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.PlantedTracefs(tmp_path)

    def denied(_path: Path) -> bytes:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ToolMissing, match=r"cannot be read \(Operation not permitted\).*lockdown"):
        tracefs.find(tmp_path)


def test_a_kernel_without_an_event_is_refused(tmp_path: Path) -> None:
    files = planted.PlantedTracefs(tmp_path)
    (files.folder / "events/block/block_rq_issue/format").unlink()
    with pytest.raises(ToolMissing, match="block_rq_issue/format on this host cannot be read"):
        tracefs.Instance(files.folder, "monday")


def test_only_events_of_the_devices_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = started(tmp_path, monkeypatch, [b""])
    written = {str(path.relative_to(instance.folder)): path.read_text() for path in instance.folder.rglob("*") if path.is_file()}
    assert written["events/block/block_bio_queue/filter"] == f"dev == {planted.SDA} || dev == {253 << 20}"
    assert written["events/block/block_rq_complete/filter"] == f"dev == {planted.SDA}"
    assert written["events/block/block_rq_issue/enable"] == "1"
    assert (written["trace_clock"], written["tracing_on"]) == ("mono", "1")
    assert 64 <= int(written["buffer_size_kb"]) <= 4096


def test_events_of_all_processors_are_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [planted.page(time, planted.request(0, 0, 8, "R"), planted.request(5, 8, 8, "R")) for time in (100, 200)]
    second = [planted.page(time, planted.request(0, 16, 8, "W")) for time in (103, 150, NOW + 1)]
    instance = started(tmp_path, monkeypatch, [b"".join(first), b"".join(second)])
    events, more, fullest = instance.read(NOW)
    # What came after the reading began waits: another processor may have had something before.
    assert (times_of(events), more) == ([100, 103, 105, 150, 200, 205], False)
    assert 0 < fullest < 1
    assert times_of(instance.read(NOW + 2)[0]) == [NOW + 1]


def test_a_full_buffer_is_read_in_parts_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = [planted.page(time, *[planted.request(1, sector, 8, "R") for sector in range(8)]) for time in range(0, 4000, 100)]
    quiet = [planted.page(time, planted.request(0, 0, 8, "W")) for time in range(50, 40050, 1000)]
    instance = started(tmp_path, monkeypatch, [b"".join(busy), b"".join(quiet)], at_once=4 * 4096)
    found: list[int] = []
    most, more = 0, True
    while more:
        events, more, _fullest = instance.read(NOW)
        most = max(most, len(events) + len(instance._waiting))
        found += times_of(events)
    assert found == sorted(found)
    assert len(found) == 40 * 8 + 40
    # The processor that is ahead is not read further.
    assert most <= 2 * 16 + 4


def test_a_load_that_goes_on_does_not_delay_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [planted.page(time, planted.request(0, 0, 8, "R")) for time in range(100, 2000, 100)]
    instance = started(tmp_path, monkeypatch, [b"".join(pages)], at_once=4 * 4096)
    assert [(times_of(events), more) for events, more, _fullest in (instance.read(250), instance.read(250))] == [([100, 200], False), ([], False)]
    assert [(times_of(events), more) for events, more, _fullest in (instance.read(800), instance.read(800))] == [
        ([300, 400], True),
        ([500, 600, 700, 800], True),
    ]


def test_lost_events_are_those_of_the_counters_and_of_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = planted.page(1, planted.request(0, 0, 8, "R"), flags=planted.MISSED | planted.COUNTED, missed=50)
    instance = started(tmp_path, monkeypatch, [page, b""], overrun=7)
    assert instance.lost() == 2 * (7 + 1)
    instance.read(NOW)
    assert instance.lost() == 50


def test_an_instance_of_that_name_is_refused(tmp_path: Path) -> None:
    files = planted.PlantedTracefs(tmp_path)
    files.make_instance("monday")
    with pytest.raises(CommandFailed, match="exists already on this host: another trace of that name"):
        tracefs.Instance(files.folder, "monday").start([planted.SDA], [])


def test_what_the_kernel_refuses_is_named(tmp_path: Path) -> None:
    # An instance in which the kernel makes no files.
    files = planted.PlantedTracefs(tmp_path)
    instance = tracefs.Instance(files.folder, "monday")
    with pytest.raises(CommandFailed, match=r"does not record requests: No such file or directory \(.*/instances/cachefleet-monday/trace_clock\)"):
        instance.start([planted.SDA], [])
    instance.remove()
    assert not instance.folder.exists()
