# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of the kernel's trace buffers, and the formats of the events in them: pure functions.

Source: Documentation/trace/ring-buffer-design.rst, include/linux/ring_buffer.h for the entries of a page, and the files ``events/header_page`` and
``events/block/*/format`` of the host, which are read instead of assumed.
"""

from __future__ import annotations

import re
import struct
import sys
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: Fields of every event that is recorded, by their place in it.
FIELDS = ("common_pid", "dev", "sector", "nr_sector", "rwbs")
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MARKS = {"little": "<", "big": ">"}
_FIELD = re.compile(r"field:[^;]*?(\w+)(?:\[\d+\])?;\s*offset:(\d+);\s*size:(\d+);")
#: Entries that are no data; the others have their length in words of 4 bytes, or 0 if it follows.
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_DELTA_BITS = 27
#: Flags beside the length of a page: events were lost before it, and their number follows its data.
_MISSED, _COUNTED, _LENGTH = 1 << 31, 1 << 30, (1 << 30) - 1
#: An absolute time has the lower 59 bits.
_TIME_BITS = 59

#: Time in ns, kind, then :data:`FIELDS`.
Event = t.Tuple[int, int, int, int, int, int, bytes]


@frozen
class PageLayout:
    """A page: the time of its first entry in ns, the length of its data, the data.

    :param size: bytes of a page; ``word``: bytes of the length.
    """

    commit: int
    word: int
    data: int
    size: int


@frozen
class EventLayout:
    """How one kind of event is read; ``kind`` is its place among those that are recorded."""

    number: int
    kind: int
    unpack: t.Any


def _fields(text: str, what: str, names: t.Iterable[str]) -> dict[str, tuple[int, int]]:
    """:raises NotUnderstood: if a field is missing."""
    found = {name: (int(offset), int(size)) for name, offset, size in _FIELD.findall(text)}
    missing = [name for name in names if name not in found]
    if missing:
        raise NotUnderstood(f"The kernel of this host describes {what} without {missing[0]}, so that its traces cannot be read.")
    return found


def page_layout(text: str) -> PageLayout:
    """What ``events/header_page`` says.

    :raises NotUnderstood: if it says something else.
    """
    found = _fields(text, "a page of its trace buffer", ("timestamp", "commit", "data"))
    (commit, word), (data, size) = found["commit"], found["data"]
    if found["timestamp"] != (0, 8) or word not in (4, 8) or not commit < data < data + size <= 1 << 24:
        raise NotUnderstood("The kernel of this host describes a page of its trace buffer in an unknown way, so that its traces cannot be read.")
    return PageLayout(commit, word, data, data + size)


def event_layout(text: str, name: str, kind: int, byteorder: str = sys.byteorder) -> EventLayout:
    """What ``events/block/<name>/format`` says.

    :raises NotUnderstood: if it says something else.
    """
    found = _fields(text, f"the event {name}", FIELDS)
    number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    form, position = _MARKS[byteorder], 0
    for field in FIELDS:
        offset, size = found[field]
        code = f"{size}s" if field == "rwbs" else _CODES.get(size)
        if number is None or offset < position or code is None:
            raise NotUnderstood(f"The kernel of this host describes the event {name} in an unknown way, so that its traces cannot be read.")
        form += f"{offset - position}x{code}"
        position = offset + size
    return EventLayout(int(number.group(1)) if number else 0, kind, struct.Struct(form).unpack_from)


class PageReader:
    """Reads pages of one instance.

    :param layouts: of the events that are recorded; others are passed over.
    """

    def __init__(self, page: PageLayout, layouts: t.Iterable[EventLayout], byteorder: str = sys.byteorder) -> None:
        self.page = page
        mark = _MARKS[byteorder]
        self._long = struct.Struct(f"{mark}Q").unpack_from
        self._commit = struct.Struct(f"{mark}{_CODES[page.word]}").unpack_from
        self._word = struct.Struct(f"{mark}I").unpack_from
        self._short = struct.Struct(f"{mark}H").unpack_from
        self._little = byteorder == "little"
        self._unpack = {one.number: (one.kind, one.unpack) for one in layouts}

    def read(self, page: bytes, found: list[Event]) -> int:
        """Append the events of a page, in their order.

        :returns: the events that were lost before it, at least 1 if the kernel did not count them.
        """
        if len(page) < self.page.data:
            return 0
        time = self._long(page, 0)[0]
        commit = self._commit(page, self.page.commit)[0]
        position, end = self.page.data, min(self.page.data + (commit & _LENGTH), len(page))
        missed = 0
        if commit & _MISSED:
            counted = commit & _COUNTED and end + self.page.word <= len(page)
            missed = self._commit(page, end)[0] if counted else 1
        word_of, short_of, unpackers, little = self._word, self._short, self._unpack, self._little
        while position + 8 <= end:
            word = word_of(page, position)[0]
            kind, delta = (word & 31, word >> 5) if little else (word >> _DELTA_BITS, word & ((1 << _DELTA_BITS) - 1))
            if kind < _PADDING:
                start = position + 4
                if kind:
                    position = start + kind * 4
                else:
                    # Its length, with these four bytes, follows; rounded up to whole words.
                    position = start + max((word_of(page, start)[0] + 3) & ~3, 4)
                    start += 4
                time += delta
                if position > end:
                    break
                known = unpackers.get(short_of(page, start)[0])
                if known is not None:
                    found.append((time, known[0], *known[1](page, start)))
            elif kind == _PADDING:
                if not delta:
                    break
                # An event that its filter discarded.
                time += delta
                position += 4 + max(word_of(page, position + 4)[0], 4)
            else:
                more = (word_of(page, position + 4)[0] << _DELTA_BITS) + delta
                time = time + more if kind == _TIME_EXTEND else (time >> _TIME_BITS << _TIME_BITS) | more
                position += 8
        return missed
