# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import pauses
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sampler import COLUMNS

GIB = 1024**3


def length(row, written=0, rate=None):
    return pauses.length_of(pauses.read_pause(row, 0), {"sdb": written}, {"sdb": rate} if rate else {})


def test_a_fixed_one():
    assert length({"seconds": 60}) == (60, "") and length({"seconds": 10000})[0] == 10000
    assert pauses.read_pause(None, 0) is None


def test_as_long_as_the_drive_needs():
    assert length({"garbage_collection": 640 * 1024**2}, 64 * GIB) == (102.4, "")
    assert length({"garbage_collection": "measured"}, 64 * GIB, 640 * 1024**2) == (102.4, "")
    assert length({"garbage_collection": "measured"}, 0) == (0.0, ""), "nothing was written"


def test_several_targets_make_room_side_by_side():
    measured, given = pauses.read_pause({"garbage_collection": "measured"}, 0), pauses.read_pause({"garbage_collection": 30}, 0)
    assert pauses.length_of(measured, {"sdb": 100, "sdc": 300}, {"sdb": 10, "sdc": 100})[0] == 10
    assert pauses.length_of(measured, {"sdb": 100, "sdd": 300}, {"sdb": 10, "sdc": 100})[0] == 30, "one that nobody measured may be slow"
    assert pauses.length_of(given, {"sdb": 100, "sdc": 200}, {"sdb": 1})[0] == 10


def test_nothing_waits_for_ever():
    seconds, note = length({"garbage_collection": 1, "most": 100}, GIB)
    assert seconds == 100 and "would have needed 1073741824 seconds" in note
    seconds, note = length({"garbage_collection": "measured", "most": 100}, GIB)
    assert seconds == 100 and "No cell has measured" in note
    assert length({"until": "clean"}) == (7200, "")


@pytest.mark.parametrize(
    "row",
    [{}, 5, {"seconds": 1, "until": "clean"}, {"until": "dirty"}, {"seconds": -1}, {"seconds": "soon"}, {"garbage_collection": 0}, {"minutes": 3}, {"most": 3}],
)
def test_pauses_that_cannot_be_meant(row):
    with pytest.raises(BadInput, match="Step 4"):
        pauses.read_pause(row, 4)


def series(*rows):
    return "\n".join([COLUMNS, *(f"{epoch},{device},0,0,0,{kib},0,0,0,0,0,0,0,0,0" for epoch, device, kib in rows)])


def test_the_rate_at_the_end_of_a_cell():
    rows = series((150, "sdb", 9000), (191, "sdb", 1000), (191, "sdc", 5), (200, "sdb", 500))
    assert pauses.rate_at_the_end(rows, "sdb", 100, 200) == 750 * 1024
    assert pauses.rate_at_the_end(series((150, "sdb", 9000)), "sdb", 100, 200) == 9000 * 1024, "the last one there is"
    assert pauses.rate_at_the_end(series((195, "sdb", 700), (201, "sdb", 1)), "sdb", 100, 200) == 700 * 1024, "what comes after the end is no measurement"
    assert pauses.rate_at_the_end(rows, "sdd", 100, 200) is None
