# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an ATA over Ethernet frame carries, against the figures that the kernel's driver showed in sysfs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import aoe_window, best_mtu, payload

#: Read from /sys/block/etherd!*/payload at each MTU of a real interface.
MEASURED = {
    1500: 1024,
    4131: 3584,
    4132: 4096,
    4200: 4096,
    4643: 4096,
    4644: 4608,
    8227: 7680,
    8228: 8192,
    8700: 8192,
    8739: 8192,
    8740: 8704,
    9000: 8704,
}
WINDOWS = [(4132, 4643), (8228, 8739), (12324, 12835), (16420, 16931)]

mtus = st.integers(68, 65535)
blocks = st.integers(1, 128).map(lambda sectors: sectors * 512)


@pytest.mark.parametrize(("mtu", "carried"), MEASURED.items())
def test_payload_matches_kernel_values(mtu, carried):
    assert payload(mtu) == carried


@pytest.mark.parametrize("mtu", [68, 547])
def test_minimum_mtu_carries_two_sectors(mtu):
    assert payload(mtu) == 1024


@pytest.mark.parametrize("window", WINDOWS)
def test_mtu_windows_of_pages(window):
    low, high = window
    assert aoe_window(4096, high) == window
    assert aoe_window(4096, high + 1) == window
    assert payload(low - 1) % 4096 and payload(high + 1) % 4096


def test_mtu_window_ends_at_the_limit():
    assert aoe_window(4096, 8300) == (8228, 8300)
    assert aoe_window(4096, 8227) == (4132, 4643)
    assert aoe_window(4096, 4131) is None


@pytest.mark.parametrize(
    ("limit", "block", "mtu"),
    [(9000, 4096, 8700), (9216, 4096, 8700), (8700, 4096, 8700), (8250, 4096, 8228), (4200, 4096, 4200), (5000, 4096, 4600), (1500, 512, 1500)],
)
def test_best_mtu(limit, block, mtu):
    assert best_mtu(limit, block) == mtu


def test_block_too_large_for_any_frame_is_rejected():
    with pytest.raises(BadInput, match="least is 16420"):
        best_mtu(9000, 16384)
    with pytest.raises(BadInput, match="least is 4132"):
        best_mtu(1500)


@pytest.mark.parametrize("block", [0, -512, 100, 4097])
def test_invalid_block_size_is_rejected(block):
    with pytest.raises(BadInput, match="multiple of a sector"):
        aoe_window(block)


@given(mtus)
def test_frame_carries_whole_sectors(mtu):
    carried = payload(mtu)
    assert carried % 512 == 0
    assert carried == 1024 or carried + 36 <= mtu < carried + 36 + 512


@given(mtus, blocks)
def test_best_mtu_carries_whole_blocks_and_maximum_payload(limit, block):
    window = aoe_window(block, limit)
    aligned = [mtu for mtu in range(548, limit + 1) if payload(mtu) % block == 0]
    if window is None:
        assert not aligned
        return
    mtu = best_mtu(limit, block)
    assert window[0] <= mtu <= window[1] <= limit
    assert payload(mtu) == payload(window[0]) == payload(window[1]) == payload(aligned[-1])
    assert window[0] == 548 or payload(window[0] - 1) < payload(mtu)
