# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of the kernel's trace buffers."""

from __future__ import annotations

import random
import struct
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import pages
from ansible_collections.cachefleet.storage.tests.unit.support import planted_traces as planted

ORDERS = {"<": "little", ">": "big"}


def reader(mark: str = "<") -> pages.PageReader:
    layouts = [pages.event_layout(planted.format_of(event), event, kind, ORDERS[mark]) for kind, event in enumerate(planted.IDS)]
    return pages.PageReader(pages.page_layout(planted.HEADER_PAGE), layouts, ORDERS[mark])


def read(page: bytes, mark: str = "<") -> tuple[list[pages.Event], int]:
    found: list[pages.Event] = []
    missed = reader(mark).read(page, found)
    return found, missed


@pytest.mark.parametrize("mark", ["<", ">"])
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_events_are_read_with_their_times(mark: str, long: bool) -> None:
    contents = [planted.payload(planted.QUEUE, 2048, 8, "WS", mark=mark), planted.payload(planted.COMPLETE, 1 << 40, 128, "R", dev=253 << 20 | 3, mark=mark)]
    found, missed = read(planted.page(1000, *[planted.data(5, content, long=long, mark=mark) for content in contents], mark=mark), mark)
    assert missed == 0
    assert found == [
        (1005, 0, 77, planted.SDA, 2048, 8, b"WS\0\0\0\0\0\0"),
        (1010, 2, 77, 253 << 20 | 3, 1 << 40, 128, b"R\0\0\0\0\0\0\0"),
    ]


def test_times_are_extended_and_set_and_discarded_events_passed_over() -> None:
    event = planted.request(3, 0, 8, "R")
    content = planted.payload(planted.QUEUE, 0, 8, "R")
    page = planted.page(
        3 << 59 | 7,
        event,
        planted.entry(planted.TIME_EXTEND, 2, struct.pack("<I", 1)),
        event,
        planted.entry(planted.PADDING, 10, struct.pack("<I", len(content)) + content[4:]),
        event,
        planted.entry(planted.TIME_STAMP, 5, struct.pack("<I", 4)),
        event,
        planted.data(1, struct.pack("<H", 99) + bytes(6)),
        event,
        planted.entry(planted.PADDING, 0, bytes(8)),
        event,
    )
    top = 3 << 59
    first, extended = top + 7 + 3, top + 7 + 3 + (1 << 27) + 2 + 3
    stamped = top + (4 << 27) + 5 + 3
    # The event of another kind passes with its time, and nothing follows padding without a length.
    assert [one[0] for one in read(page)[0]] == [first, extended, extended + 10 + 3, stamped, stamped + 1 + 3]


@pytest.mark.parametrize(
    ("flags", "stored", "missed"), [(0, None, 0), (planted.MISSED, None, 1), (planted.MISSED | planted.COUNTED, 4711, 4711)], ids=["none", "some", "counted"]
)
def test_lost_events_are_counted(flags: int, stored: int | None, missed: int) -> None:
    found, lost = read(planted.page(0, planted.request(1, 0, 8, "R"), flags=flags, missed=stored))
    assert (len(found), lost) == (1, missed)


def test_any_bytes_are_read_to_an_end() -> None:
    random.seed(46)
    whole = planted.page(0, *[planted.request(1, sector, 8, "R") for sector in range(60)])
    assert len(read(whole)[0]) == 60
    for _case in range(300):
        damaged = bytearray(whole[: random.randrange(len(whole))])
        for _byte in range(min(len(damaged), 8)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        assert len(read(bytes(damaged))[0]) <= 512


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("sector_t sector;", "sector_t place;"), "without sector"),
        (("offset:16;\tsize:8;", "offset:16;\tsize:5;"), "in an unknown way"),
        (("offset:16;\tsize:8;", "offset:4;\tsize:8;"), "in an unknown way"),
        (("ID: 1055", "ID: none"), "in an unknown way"),
    ],
)
def test_unknown_descriptions_of_events_are_refused(change: t.Any, message: str) -> None:
    with pytest.raises(NotUnderstood, match=message):
        pages.event_layout(planted.format_of("block_bio_queue").replace(*change), "block_bio_queue", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("timestamp", "time"), "without timestamp"),
        (("offset:8;\tsize:8;", "offset:8;\tsize:2;"), "unknown way"),
        (("size:4080", "size:999999999"), "unknown way"),
    ],
)
def test_unknown_descriptions_of_pages_are_refused(change: t.Any, message: str) -> None:
    with pytest.raises(NotUnderstood, match=message):
        pages.page_layout(planted.HEADER_PAGE.replace(*change))
