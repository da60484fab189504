# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Eight columns follow from one row for each drive and controller. What was published is compared with, and is nowhere a parameter."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import pytest
import scipy.stats
from media import case_a
from media.case_a import BY_NAME, MODES, built, columns, run
from media.clock import Clock
from media.rows import ADAPTEC_6805, BLOCK, CONTROLLERS, DRIVES, I320, I545S, S3500, SATA_PORT, X25_M
from media.store import Store

PUBLISHED = {
    S3500.name: (25000, 7000, 9500, 9500, 26000, 5000, 21000, 7000),
    X25_M.name: (1100, 21000, 1100, 9000, 1100, 5000, 1100, 5000),
    # Means of 10 GB, of which the author gives the parts: 20,000 until 3 to 5 GB, then 14,000; 2,600 for 25 s, then 800 for 8 s.
    I320.name: (15900, 15900, 9500, 9500, 20000, 4500, 9500, 8000),
    I545S.name: (1100, 33000, 1150, 9000, 1100, 1760, 1100, 2160),
}
OFF = {"RAID off", "RAID controller", "JBOD off", "SATA off"}
FLUSHED = {"JBOD on", "SATA on"}
cached_columns = functools.lru_cache(maxsize=None)(columns)


def ranks(values, equal=0.05):
    """Ranks, in which what differs by little is one value."""
    groups = []
    for value in sorted(values):
        if not groups or value > groups[-1][0] * (1 + equal):
            groups.append([])
        groups[-1].append(value)
    place = {value: number for number, group in enumerate(groups) for value in group}
    return [place[value] for value in values]


@pytest.mark.parametrize("row", case_a.DRIVES, ids=lambda row: row.name)
def test_order_of_the_modes_is_the_published_one(row):
    # 21,000 and 26,000 are one value to the author.
    published = [26000 if row is S3500 and value >= 21000 else value for value in PUBLISHED[row.name]]
    correlation = scipy.stats.spearmanr(ranks(list(cached_columns(row).values())), ranks(published)).statistic
    assert correlation >= 0.9


@pytest.mark.parametrize("row", case_a.DRIVES, ids=lambda row: row.name)
def test_each_column_is_within_a_factor_of_two_of_the_published_one(row):
    for rate, published in zip(cached_columns(row).values(), PUBLISHED[row.name]):
        assert published / 2 < rate < published * 2


@pytest.mark.parametrize("mode", ["RAID off", "RAID both"])
def test_three_drives_at_once_have_half_each_because_the_controller_is_the_limit(mode):
    loads = run(BY_NAME[mode], S3500, drives=3)
    assert [load.rate() / cached_columns(S3500)[mode] for load in loads] == [pytest.approx(0.5, abs=0.1)] * 3
    faster = dataclasses.replace(BY_NAME[mode], controller=dataclasses.replace(ADAPTEC_6805, command_us=1.0))
    assert run(faster, S3500, drives=3)[0].rate() / run(faster, S3500)[0].rate() > 0.8


def test_drive_with_a_reserve_falls_to_what_it_reclaims_after_its_gigabytes():
    load = run(BY_NAME["RAID off"], I320, smaller=256)[0]
    fresh, reclaimed = 1e6 / I320.command_us, I320.reclaim_rate / 4096
    foreseen = I320.reserve / (1 - reclaimed / fresh) / 10e9
    assert load.rate(0, foreseen * 0.9) == pytest.approx(fresh, rel=0.02)
    assert load.rate(foreseen * 1.1, 1) == pytest.approx(reclaimed, rel=0.02)
    slow = run(BY_NAME["RAID controller"], I320)[0]
    assert slow.rate(0.2, 0.5) == pytest.approx(slow.rate(0.5, 0.8), rel=0.05)


def test_drive_with_a_small_fast_area_swings_between_two_rates():
    smaller = 256
    load = run(BY_NAME["SATA on"], I545S, smaller=smaller)[0]
    gaps = [later - earlier for earlier, later in itertools.pairwise(load.ends)]
    slow = [gap > 600e-6 for gap in gaps]
    spans = [(state, len(list(group))) for state, group in itertools.groupby(slow)]
    # The last span ends with the load.
    fast_writes = {count for state, count in spans[:-1] if not state}
    assert len(spans) >= 10
    assert max(fast_writes) - min(fast_writes) <= 1
    assert max(fast_writes) == pytest.approx(I545S.fast_bytes / smaller / I545S.fast_page, abs=2)
    for state, count in spans[1:-1]:
        if state:
            assert sum(sorted(gaps)[-1:]) * count == pytest.approx(I545S.fast_bytes / I545S.fast_recovery / smaller, rel=0.15)


def moved(before, after):
    return {name for name in before if abs(after[name] / before[name] - 1) > 0.1}


@pytest.mark.parametrize(
    ("row", "change", "names"),
    [
        # Named before the test was run: a cache that nothing flushes hides whether it has capacitors.
        (S3500, {"capacitors": False}, OFF | FLUSHED | {"RAID drive"}),
        (I545S, {"capacitors": True}, OFF | FLUSHED),
        (I545S, {"fast_bytes": 0.0}, FLUSHED),
        (I545S, {"honours_fua": True}, {"RAID drive"}),
        (S3500, {"flush_us": 650.0}, FLUSHED | {"RAID drive"}),
        (X25_M, {"program_us": 1800.0}, OFF),
    ],
)
def test_a_changed_value_of_a_drive_moves_the_columns_named_beforehand(row, change, names):
    assert moved(cached_columns(row), columns(dataclasses.replace(row, **change))) == names


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"cache_bytes": 12e9}, {"RAID controller", "RAID both"}),
        ({"cache_bytes": 0.0}, {"RAID controller", "RAID both"}),
        ({"forces_write_through": False}, {"RAID drive"}),
        ({"flush_write_through": "passes"}, {"RAID drive"}),
        ({"flush_pass_through": "answers"}, {"JBOD on"}),
    ],
)
def test_a_changed_value_of_the_controller_moves_the_columns_named_beforehand(change, names):
    modes = [dataclasses.replace(mode, controller=dataclasses.replace(ADAPTEC_6805, **change)) for mode in MODES if mode.controller is ADAPTEC_6805]
    after = columns(S3500, modes)
    assert moved({name: rate for name, rate in cached_columns(S3500).items() if name in after}, after) == names


class Written:
    """A block that is durable when it has been called, or kept by the cache of the controller."""

    def __init__(self, durable, number):
        self.durable, self.number, self.data = durable, number, b""

    def __call__(self):
        self.durable.add(self.number)


class Kept(set):
    """What keeps the cache of a controller."""

    def keep(self, volume, block, data):
        self.add(block)

    def release(self, volume, block):
        self.discard(block)

    def lose(self):
        self.clear()


def lost(mode, row, before_the_cut=lambda volume: None, cut=0.05):
    """Acknowledged and flushed blocks that a power cut takes."""
    clock, durable, acknowledged, kept = Clock(), set(), set(), Kept()
    (volume,) = built(mode, row, clock, keeper=kept)

    def writer():
        for number in range(60):
            yield from volume.write(number * 3, [Written(durable, number * 3)])
            if volume.needs_flush:
                yield from volume.flush()
            acknowledged.add(number * 3)
            if number == 40:
                before_the_cut(volume)

    clock.start(writer())
    clock.run(until=cut)
    assert len(acknowledged) > 30
    return acknowledged - durable - kept


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("row", case_a.DRIVES, ids=lambda row: row.name)
def test_power_cut_takes_what_is_in_a_volatile_cache_that_nothing_flushes(row, mode):
    """The hack of case A, a drive cache behind write-through, loses data unless the drive has capacitors; so does its cache behind write-back."""
    assert bool(lost(mode, row)) == (mode.name in ("RAID drive", "RAID both") and not row.capacitors)


def test_power_cut_takes_the_cache_of_a_controller_whose_battery_is_dead():
    always = dataclasses.replace(BY_NAME["RAID controller"], policy="writeback_always")
    assert not lost(always, X25_M)
    # Also what it had acknowledged while the battery was healthy.
    assert min(lost(always, X25_M, lambda volume: volume.controller.set_battery("failed"), cut=0.005)) < 60


def test_dead_battery_makes_write_back_write_through_at_once():
    clock = Clock()
    (volume,) = built(BY_NAME["RAID controller"], S3500, clock)
    assert volume.mode == "write_back"
    volume.controller.set_battery("failed")
    assert volume.mode == "write_through"
    with pytest.raises(ValueError, match="battery must be"):
        volume.controller.set_battery("tired")


def test_newer_write_past_the_cache_is_not_replaced_by_an_older_one_in_it(tmp_path):
    (tmp_path / "v0").write_bytes(bytes(20 * BLOCK))
    store, clock = Store(str(tmp_path / "v0")), Clock()
    (volume,) = built(BY_NAME["RAID both"], X25_M, clock, smaller=1)

    def writer():
        for number in range(0, 20, 2):
            yield from volume.write(number, store.write(number * BLOCK, b"o" * BLOCK))
        volume.controller.set_battery("failed")
        yield from volume.write(18, store.write(18 * BLOCK, b"n" * BLOCK))
        yield from volume.write_out()
        yield from volume.array.flush()

    clock.start(writer())
    clock.run()
    assert (tmp_path / "v0").read_bytes()[16 * BLOCK :: BLOCK] == b"o\0n\0"


def test_older_version_of_a_block_does_not_replace_a_newer_one_in_the_file(tmp_path):
    (tmp_path / "v0").write_bytes(bytes(BLOCK))
    store = Store(str(tmp_path / "v0"))
    (older,), (newer,) = store.write(0, b"o" * BLOCK), store.write(0, b"n" * BLOCK)
    newer()
    older()
    assert (tmp_path / "v0").read_bytes() == store.read(0, BLOCK) == b"n" * BLOCK


@pytest.mark.parametrize("row", [*DRIVES.values(), *CONTROLLERS.values()], ids=lambda row: row.name)
def test_every_value_has_a_source(row):
    defaults = type(row)(row.name, **({"kind": row.kind} if hasattr(row, "kind") else {}))
    for field in dataclasses.fields(row):
        if field.name not in ("name", "sources") and getattr(row, field.name) != getattr(defaults, field.name):
            assert len(row.sources[field.name]) > 5, field.name


def test_port_takes_one_command_at_a_time():
    more = dataclasses.replace(BY_NAME["SATA off"], controller=dataclasses.replace(SATA_PORT, depth=32))
    assert run(more, S3500)[0].rate() > 1.5 * cached_columns(S3500)["SATA off"]
