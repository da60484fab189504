# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, parse_size, round_up


@pytest.mark.parametrize(
    ("text", "count"), [("64k", 65536), ("1.5G", 1610612736), ("1 GiB", 1 << 30), ("4096", 4096), (512, 512), ("2TB", 2 << 40), ("0", 0), (" 8M ", 8 << 20)]
)
def test_sizes_are_parsed(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "k", "-1", "1x", "1,5G", "0x10", "ten", None])
def test_invalid_sizes_are_rejected(text):
    with pytest.raises(BadInput, match="is not a size"):
        parse_size(text)


def test_invalid_size_error_names_item_and_option():
    with pytest.raises(BadInput, match=r"^images: chunk_size 'big' is not a size: use a number") as caught:
        parse_size("big", "images", "chunk_size")
    assert caught.value.item == "images"


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1610612736, "1.5 GiB"), (3 << 40, "3 TiB")])
def test_sizes_are_formatted(count, text):
    assert format_size(count) == text


@pytest.mark.parametrize(("value", "step", "result"), [(1, 32, 32), (32, 32, 32), (33, 32, 64), (0, 32, 0)])
def test_values_are_rounded_up(value, step, result):
    assert round_up(value, step) == result


@pytest.mark.parametrize("text", ["9" * 400 + ".5", "9" * 5000, "\ud800"], ids=["infinite", "long", "surrogate"])
def test_text_that_cannot_be_computed_is_no_size(text):
    with pytest.raises(BadInput, match="is not a size") as caught:
        parse_size(text)
    assert len(caught.value.message.encode()) < 300
