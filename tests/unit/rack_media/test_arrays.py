# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks with arms, RAID levels, and SSDs in front of an array."""

from __future__ import annotations

import dataclasses

import pytest
from media.array import UNIT, Array
from media.clock import Busy, Clock
from media.controller import Controller, Volume
from media.drive import Drive
from media.load import Load, measured
from media.max_cache import MaxCache
from media.rows import ASR_81605ZQ, S3500, ST10000NM, scaled

SMALLER = 64


class Counted:
    """A drive that takes no time, and counts."""

    def __init__(self):
        self.reads = self.writes = self.contents = 0

    def read(self, place, count=1):
        self.reads += 1
        yield 0.0

    def write(self, place, commits, **options):
        self.writes += 1
        self.contents += sum(commit is not None for commit in commits)
        yield 0.0


def nothing(drive, blocks):
    yield 0.0


@pytest.mark.parametrize(
    ("level", "drives", "reads", "writes", "whole_writes"),
    [("jbod", 1, 0, 1, 1), ("0", 3, 0, 1, 3), ("1", 2, 0, 2, 2), ("10", 4, 0, 2, 4), ("5", 4, 2, 2, 4), ("6", 6, 3, 3, 6)],
)
def test_commands_of_a_small_write_and_of_a_whole_row(level, drives, reads, writes, whole_writes):
    for row in range(drives):
        clock, members = Clock(), [Counted() for _number in range(drives)]
        array = Array(clock, level, members, nothing)
        clock.start(array.write(row * array.row_blocks + 1, [print]))
        clock.run()
        assert (sum(one.reads for one in members), sum(one.writes for one in members)) == (reads, writes)
        assert max(one.reads for one in members) <= 1
        assert sum(one.contents for one in members) == 1
        clock.start(array.write(row * array.row_blocks, [print] * array.row_blocks))
        clock.run()
        assert (sum(one.reads for one in members), sum(one.writes for one in members)) == (reads, writes + whole_writes)
        assert array.row_blocks % UNIT == 0


def test_mirrors_share_reads():
    clock, members = Clock(), [Counted(), Counted()]
    array = Array(clock, "1", members, nothing)
    for _number in range(4):
        clock.start(array.read(0, 1))
    clock.run()
    assert [one.reads for one in members] == [2, 2]


@pytest.mark.parametrize(("level", "drives"), [("jbod", 2), ("1", 3), ("10", 2), ("5", 2), ("6", 3), ("4", 3)])
def test_impossible_arrays_are_refused(level, drives):
    with pytest.raises(ValueError, match="is not"):
        Array(Clock(), level, [Counted()] * drives, nothing)


def rate(volume, count, **load):
    return measured(volume.controller.clock, [Load(volume.controller.clock, volume, count, **load)])[0].rate(0.5, 1)


def bare(drives=1, level="jbod", policy="writethrough", *, drive_cache=False, smaller=SMALLER):
    clock = Clock()
    disks = [Drive(clock, scaled(ST10000NM, 1, smaller)) for _number in range(drives)]
    for disk in disks:
        disk.write_cache = drive_cache
    return Volume(Controller(clock, scaled(ASR_81605ZQ, 1, smaller)), "v", level, disks, policy=policy)


def test_disk_seeks_less_where_it_may_choose_and_not_at_all_in_sequence():
    far = {"size": 10**6}
    access = (ST10000NM.seek_us + ST10000NM.turn_us / 2) / 1e6
    assert rate(bare(), 100, reads=True, depth=1, **far) == pytest.approx(1 / access, rel=0.02)
    assert rate(bare(), 2000, reads=True, depth=32, **far) == pytest.approx(2 / access, rel=0.1)
    assert rate(bare(), 100, reads=True, blocks=256, sequential=True, **far) * 2**20 == pytest.approx(ST10000NM.rate, rel=0.05)
    written = ST10000NM.cache_bytes / SMALLER / 4096
    assert rate(bare(drive_cache=True), int(written / 2), **far) > 5000
    assert rate(bare(drive_cache=True), int(written * 4), **far) < 300


def cached(write, size=40e6, rate=100, smaller=SMALLER):
    volume = bare(6, "6", "writeback", smaller=smaller)
    clock = volume.controller.clock
    ssds = [Drive(clock, scaled(S3500, 1, smaller)) for _number in range(2)]
    volume.max_cache = MaxCache(clock, volume.array, Array(clock, "1", ssds, volume.controller.command), int(size), write=write, rate=rate)
    return volume


def test_controller_that_reads_ahead_answers_a_sequence_from_its_cache():
    rates = []
    for read_ahead in (False, True):
        clock = Clock()
        volume = Volume(Controller(clock, scaled(ASR_81605ZQ, 1, 1)), "v", "0", [Drive(clock, S3500)])
        clock.start(volume.change(read_ahead=read_ahead))
        rates.append(rate(volume, 1000, reads=True, depth=1, sequential=True))
    assert rates[1] > 1.5 * rates[0]


def test_full_drive_falls_after_its_reserve_and_later_if_a_part_was_never_written():
    """As the array of case E: a reserve, a rate of collection, and a tenth more time at 70 %."""
    row = dataclasses.replace(S3500, reserve=8e6, reclaim_rate=S3500.rate / 2, unwritten_share=0.1, cache_bytes=1e5)
    falls = []
    for share in (1.0, 0.7):
        clock = Clock()
        drive = Drive(clock, row, int(27e6))
        drive.write_cache = False
        blocks = int(27e6 * share) // 4096
        volume = Volume(Controller(clock, ASR_81605ZQ), "v", "0", [drive])
        measured(clock, [Load(clock, volume, blocks, sequential=True, depth=1)])
        clock.start(_pause(10.0))
        clock.run()
        load = measured(clock, [Load(clock, volume, 12000, size=blocks)])[0]
        speeds = [100 / (load.ends[number + 100] - load.ends[number]) for number in range(0, 11900, 100)]
        falls.append(next(number for number, speed in enumerate(speeds) if speed < 0.75 * speeds[0]))
        assert load.rate(0.8, 1) * 4096 == pytest.approx(row.reclaim_rate, rel=0.1)
    assert falls[1] / falls[0] == pytest.approx(1.1, abs=0.05)


def _pause(seconds):
    yield seconds


RANDOM = {"depth": 64, "size": 8000}
STREAM = {"depth": 4, "size": 10**6, "sequential": True, "blocks": 256}


def test_max_cache_leads_where_case_b_says():
    without = bare(6, "6", "writeback")
    assert rate(cached("disabled"), 6000, reads=True, **RANDOM) > 1.2 * rate(without, 6000, reads=True, **RANDOM)
    writes = {write: rate(cached(write), 6000, **RANDOM) for write in ("disabled", "writeback", "instant_writeback")}
    assert writes["instant_writeback"] > writes["writeback"] > writes["disabled"]
    streams = {write: rate(cached(write, 10e6, smaller=256), 60, **STREAM) * 2**20 for write in ("disabled", "writethrough", "instant_writeback")}
    assert streams["disabled"] > 500e6
    assert streams["writethrough"] == pytest.approx(S3500.rate, rel=0.2)
    assert streams["instant_writeback"] < 2 * S3500.rate


def test_lines_are_fetched_as_fast_as_the_rate_says():
    assert rate(cached("disabled", rate=1000), 3000, reads=True, **RANDOM) > rate(cached("disabled", rate=1), 3000, reads=True, **RANDOM)


def test_max_cache_that_stops_writing_back_writes_out_what_is_dirty():
    volume = cached("instant_writeback")
    cache, clock = volume.max_cache, volume.controller.clock
    clock.start(cache.write(5, [print] * 40))
    clock.run()
    assert cache.dirty_blocks == 40
    change = cache.change(write="writethrough")
    with pytest.raises(Busy):
        cache.change(rate=50)
    clock.start(change)
    clock.run()
    assert (cache.dirty_blocks, cache.changing, cache.write_policy) == (0, False, "writethrough")


def test_write_caching_needs_two_ssds_and_a_valid_rate():
    volume = cached("disabled")
    with pytest.raises(ValueError, match="redundant"):
        MaxCache(volume.controller.clock, volume.array, Array(volume.controller.clock, "0", [Counted()], nothing), 10**6, write="writeback")
    for wrong in ({"rate": 1001}, {"write": "sometimes"}):
        with pytest.raises(ValueError, match="must be"):
            volume.max_cache.change(**wrong)
    assert not volume.max_cache.changing
