# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in a trace, and what is said of it."""

from __future__ import annotations

import typing as t

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import contents
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace
from ansible_collections.cachefleet.storage.tests.unit.support.recorded_loads import SECTORS, recorded


def of(trace: Trace) -> contents.DeviceContents:
    return contents.contents_of(trace).devices[0]


def said(trace: Trace) -> str:
    return "\n".join(contents.sentences(contents.contents_of(trace)))


def test_counts_sizes_and_shares() -> None:
    found = of(recorded([0, 8, 100, 208], [8, 8, 8, 16], [0, 0, 0, 1], stream=[8, 16, 8, 16]))
    assert found.counts["read"] == contents.Count(3, 3 * 4096, 1, 1) and found.counts["flush"] == contents.Count()
    assert (found.requests, found.part("sequential"), found.part("unaligned")) == (4, 0.25, 0.25)
    assert found.sizes == {"read": {4096: 3}, "write": {8192: 1}} and found.all_sizes == {4096: 3, 8192: 1}
    assert of(recorded([0], 8, 0, counts={})).part("sequential") is None


def test_the_working_set_is_that_of_each_window_and_of_all_before() -> None:
    trace = recorded(np.repeat([0, 0, 8, 8, 16, 8], 2), 8, 0, seconds=12, bytes=4096 * 10)
    found = of(trace)
    assert [one.bytes / 4096 for one in found.working_set] == [1] * 12
    assert [one.cumulative / 4096 for one in found.working_set] == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert "In 1 s 10 % of the device is accessed in the median, at most 10 %; 30 % (12.3 kB) in all." in said(trace)
    assert "In 1 s 4.1 kB are accessed in the median, at most 4.1 kB; 12.3 kB in all." in said(recorded(trace.requests["sector"], 8, 0, seconds=12, bytes=0))


@pytest.mark.parametrize(("seconds", "window", "number"), [(7199, 7199 / 12, 12), (7200, 3600, 2), (86400, 3600, 24), (365 * 86400, 21900, 1440)])
def test_windows_are_hours_but_of_short_and_very_long_recordings(seconds: float, window: float, number: int) -> None:
    found = contents.contents_of(recorded([0, 8], 8, 0, seconds=seconds))
    assert (found.window, len(found.devices[0].working_set)) == (pytest.approx(window), number)


def test_a_sample_is_scaled() -> None:
    sector = np.tile(np.arange(4000) * SECTORS, 2)
    found = of(recorded(sector, 8, 0, part=4))
    assert found.working_set[-1].cumulative == pytest.approx(4000 * 4096, rel=0.1)
    assert found.reuse[50.0] == pytest.approx(4000 * 4096, rel=0.1)
    assert "the sample has 25.0 % of all regions" in said(recorded(sector, 8, 0, part=4))
    assert of(recorded([0, 8], 8, 0)).reuse == {}


def test_latency_is_a_percentile_of_the_histogram() -> None:
    found = of(recorded([0], 8, 0, latency={"read": {"1000": 98, "5000": 2}, "write": {}, "flush": {"7": 1}}))
    assert found.latency == {"read": {50.0: 1000, 90.0: 1000, 99.0: 5000, 99.9: 5000}, "flush": dict.fromkeys(contents.PERCENTS, 7)}
    assert found.mean_latency == pytest.approx(1080)
    assert of(recorded([0], 8, 0)).mean_latency is None


def test_minutes_and_bursts() -> None:
    minutes = [{"minute": 1, "read": [600, 0], "write": [60, 0], "busiest": 400}, {"minute": 0, "read": [60, 4096]}, {"minute": 99, "read": [1, 1]}]
    trace = recorded(np.arange(1200), 8, 0, minutes=minutes, seconds=120)
    assert of(trace).minutes == {0: (60, 0, 0, 0), 1: (600, 60, 0, 0)}
    assert "The busiest second had 400 requests, 40 times the mean." in said(trace)
    assert "busiest" not in said(recorded(np.arange(1200), 8, 0, minutes=[{"minute": 0, "busiest": 29}], seconds=120))


def test_sizes_and_flushes_are_said() -> None:
    counts = {"read": {"requests": 1}, "write": {"requests": 3}, "flush": {"requests": 2}}
    text = said(recorded([0, 8, 16, 24], [1, 8, 8, 8], [0, 1, 1, 1], counts=counts))
    assert "Most frequent size: 4 KiB (75 %); 25 % of the requests are not 4 KiB." in text and "One flush for every 1.50 writes." in text
    assert "not 4 KiB" not in said(recorded([0], 8, 0)) and "flush" not in said(recorded([0], 8, 0))
    counts["flush"] = {"requests": 9}
    assert "One flush for each write." in said(recorded([0], 8, 0, counts=counts))


def test_causes_of_low_hit_ratios_are_found_without_a_histogram_of_the_cache() -> None:
    whole = np.arange(400) * 64
    partition = said(recorded(whole + 63, 8, 0))
    assert "100 % of the reads and writes do not begin and end at multiples of 4 KiB of the disk." in partition
    assert "Begin the partition or the logical volume on the cache at a multiple of 4 KiB." in partition
    frames = said(recorded(np.arange(4000) * 17, 17, 0))
    assert "For ATA over Ethernet set an MTU from " in frames
    assert "or create the cache with a chunk_size of 512." in said(recorded(whole, 1, 0))
    assert "whole blocks" not in said(recorded(whole, 8, 0))


@pytest.mark.parametrize(
    ("ended", "said"), [("stopped", "was stopped before its time"), ("error", "was interrupted by an error or a kill"), ("device", "a device disappeared")]
)
def test_a_recording_that_ended_early_says_so(ended: str, said: str) -> None:
    early, whole = (contents.sentences(contents.contents_of(contents.dataclasses.replace(recorded([0], 8, 0), ended=how))) for how in (ended, "time"))
    assert said in early[1] and [*early[:1], *early[2:]] == whole


def test_lost_events_and_several_devices_are_named() -> None:
    trace = recorded([0], 8, 0)
    twice = contents.dataclasses.replace(trace, devices=trace.devices * 2, lost=1)
    found = contents.sentences(contents.contents_of(twice))
    assert found[0] == "2 requests of 2 devices in 10 min; all of them are in the sample."
    assert found[1] == "Lost events: 1 (33.3 %). The figures are those of the others."
    assert all(one.startswith("/dev/vg0/data: ") for one in found[2:])


@pytest.mark.parametrize("absurd", [None, 7, "x", [], {"read": 7}, {"read": [None]}, {"read": {"-1": 2, "x": 1, "1" * 30: 4, "8": -1, "9": "y", "16": 1e400}}])
def test_what_a_host_sends_instead_of_figures_is_left_out(absurd: t.Any) -> None:
    names = ("counts", "sizes", "latency", "minutes")
    found = of(recorded([0], 8, 0, **dict.fromkeys(names, absurd)))
    assert (found.requests, found.all_sizes, found.latency, found.minutes) == (0, {}, {}, {})
    rows = [absurd, {"minute": 0, "read": absurd, "write": [absurd, absurd], "busiest": absurd}]
    assert sum(map(sum, of(recorded([0], 8, 0, minutes=rows)).minutes.values())) in (0, 7)
