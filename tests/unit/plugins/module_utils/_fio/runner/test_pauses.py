# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import pauses

GIB = 1024**3


def length(row, written=0, rate=None):
    return pauses.length_of(pauses.read_pause(row, 0), {"sdb": {4096: written}}, {"sdb": {4096: rate}} if rate else {})


def test_fixed_pause():
    assert length({"seconds": 60}) == (60, "") and length({"seconds": 10000})[0] == 10000
    assert pauses.read_pause(None, 0) is None


def test_pause_lasts_as_long_as_the_drive_needs():
    assert length({"garbage_collection": 640 * 1024**2}, 64 * GIB) == (102.4, "")
    assert length({"garbage_collection": "measured"}, 64 * GIB, 640 * 1024**2) == (102.4, "")
    assert length({"garbage_collection": "measured"}, 0) == (0.0, ""), "nothing was written"


def test_several_targets_are_collected_in_parallel():
    measured, given = pauses.read_pause({"garbage_collection": "measured"}, 0), pauses.read_pause({"garbage_collection": 30}, 0)
    rates = {"sdb": {4096: 10}, "sdc": {4096: 100}}
    assert pauses.length_of(measured, {"sdb": {4096: 100}, "sdc": {4096: 300}}, rates) == (10, "")
    seconds, note = pauses.length_of(measured, {"sdb": {4096: 100}, "sdd": {4096: 300}}, rates)
    assert seconds == 30 and "the lowest one of another target" in note, "one that was not measured may be slow"
    assert pauses.length_of(given, {"sdb": {4096: 100}, "sdc": {4096: 200}}, {"sdb": {4096: 1}})[0] == 10


def test_each_block_size_has_its_own_rate_and_fallback_is_noted():
    measured = pauses.read_pause({"garbage_collection": "measured"}, 0)
    rates = {"sdb": {4096: 640e6, 65536: 1200e6}}
    assert pauses.length_of(measured, {"sdb": {4096: 64e9, 65536: 120e9}}, rates) == (200, "")
    seconds, note = pauses.length_of(measured, {"sdb": {4096: 64e9, 1048576: 64e9, None: 64e9}}, rates)
    assert seconds == 300
    assert "for blocks of 1024 KiB: the pause was computed from the lowest one, 640 MB/s for blocks of 4 KiB." in note
    assert "for blocks of mixed sizes: " in note


def test_pauses_are_limited():
    seconds, note = length({"garbage_collection": 1, "most": 100}, GIB)
    assert seconds == 100 and "would have needed 1073741824 seconds" in note
    seconds, note = length({"garbage_collection": "measured", "most": 100}, GIB)
    assert seconds == 100 and "No cell has shown" in note
    assert length({"until": "clean"}) == (7200, "")


@pytest.mark.parametrize(
    "row",
    [{}, 5, {"seconds": 1, "until": "clean"}, {"until": "dirty"}, {"seconds": -1}, {"seconds": "soon"}, {"garbage_collection": 0}, {"minutes": 3}, {"most": 3}],
)
def test_invalid_pauses_are_rejected(row):
    with pytest.raises(BadInput, match="Step 4"):
        pauses.read_pause(row, 4)
