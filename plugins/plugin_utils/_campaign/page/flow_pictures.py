# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of the flows: for each variant the layers from the application to the media, what passed each of them, and how busy it was."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.causes import media_of, roles_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import figure, listed, megabytes, share, size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CacheFlow, CellFlows, Flow

#: Units of a picture: its width, the height of a line, the space around text, and the width of a letter.
WIDTH, LINE, _EDGE, _LETTER = 300, 16, 7, 8

#: Likewise, the longest bar. The sizes that have one; the others have one together.
BAR, _MOST_BARS = 170, 10


class Box(t.NamedTuple):
    """A layer. :param arrow: what comes to it, beside an arrow above it. :param busy: 0 to 1, or ``None``. :param x: left edge; ``y`` that of the arrow."""

    x: int
    y: int
    width: int
    arrow: tuple[str, ...]
    lines: tuple[str, ...]
    busy: float | None = None

    @property
    def top(self) -> int:
        return self.y + LINE * len(self.arrow) + (_EDGE if self.arrow else 0)

    @property
    def height(self) -> int:
        return LINE * len(self.lines) + _EDGE

    @property
    def opacity(self) -> float:
        """Of the colour that shows how busy it is, in hundredths: text on it must be readable."""
        return int(60 * (self.busy or 0.0)) / 100


class Bar(t.NamedTuple):
    """Requests of one size. :param width: of the bar, from 0 on; ``share``: of all requests, as text."""

    label: str
    width: int
    share: str


class Picture(t.NamedTuple):
    """One variant. :param bars: requests by size at ``counted``, its cache, smallest first; empty where they were not counted."""

    title: str
    boxes: tuple[Box, ...]
    counted: str = ""
    bars: tuple[Bar, ...] = ()

    @property
    def height(self) -> int:
        return max(one.top + one.height for one in self.boxes) + 2


def pictures(a: Analysis) -> list[Picture]:
    """Each variant of the workload that the answer is about first, of one repeat in the middle; none without flows."""
    first = next(iter(answer_text.in_order(a.answer.workloads)), None)
    found = [(one, one.flows) for one in first.results if one.flows is not None] if first is not None else []
    roles = roles_of([flows for _one, flows in found])
    return [Picture(one.variant, tuple(_boxes(answer_text.value_of(first, one), flows, roles)), *_sizes(flows)) for one, flows in found]


def _sizes(flows: CellFlows) -> tuple[str, tuple[Bar, ...]]:
    """The requests by size of the first cache that counts them."""
    cache = next((one for one in flows.caches if one.request_sizes), None)
    if cache is None:
        return "", ()
    return cache.device, bars_of({int(of): count for of, count in json.loads(cache.request_sizes or "{}").items()})


def bars_of(counts: t.Mapping[int, int]) -> tuple[Bar, ...]:
    """Requests by size in bytes."""
    total = sum(counts.values())
    chosen = sorted(sorted(counts, key=lambda one: -counts[one])[:_MOST_BARS])
    rows = [(format_size(one), counts[one]) for one in chosen]
    rows += [("others", total - sum(counts[one] for one in chosen))] if len(counts) > len(chosen) else []
    return tuple(Bar(label, round(BAR * count / total), share(count / total)) for label, count in rows)


def _boxes(value: str, flows: CellFlows, roles: t.Mapping[str, str]) -> t.Iterator[Box]:
    box = Box(1, 1, WIDTH - 2, (), ("application", value))
    yield box
    caches = {one.device: one for one in flows.caches}
    media = media_of(flows)
    # What is behind a device on the network is below it.
    media = [one for one in media if one.kind != "aoe"] or media
    for one in flows.devices:
        if one not in media:
            yield (box := _box([one], box, 1, WIDTH - 2, caches.get(one.device), is_lowest=False))
    groups: dict[str, list[Flow]] = {}
    for one in media:
        groups.setdefault(roles.get(one.device, ""), []).append(one)
    width = (WIDTH - 2) // max(len(groups), 1)
    below = [_box(members, box, 1 + place * width, width - 4, caches.get(members[0].device)) for place, members in enumerate(groups.values())]
    most = max((len(one.arrow) for one in below), default=0)
    yield from (one._replace(arrow=(*one.arrow, *[""] * (most - len(one.arrow)))) for one in below)


def _box(devices: t.Sequence[Flow], above: Box, x: int, width: int, cache: CacheFlow | None, *, is_lowest: bool = True) -> Box:
    # A device above others has a request as long as any of them has one.
    use = max((one.use for one in devices if one.use is not None and is_lowest), default=None)
    kind = "" if devices[0].kind == "disk" else f" ({devices[0].kind})"
    lines = [plain(listed([one.device for one in devices], 1) + kind, width // _LETTER)]
    lines += [f"{share(use / 100)} busy", f"queue {figure(_sum(devices, 'queue'))}"] if use is not None else []
    if cache is not None:
        lines += [f"{cache.mode or 'cache'}{'' if cache.hit_ratio is None else f', {share(cache.hit_ratio)} hits'}"]
        lines += [f"{size(cache.dirty_start)} → {size(cache.dirty_end)} dirty"] if cache.dirty_end is not None else []
    return Box(x, above.top + above.height, width, tuple(_rates(devices)), tuple(lines), None if use is None else min(use / 100, 1.0))


def _rates(devices: t.Sequence[Flow]) -> t.Iterator[str]:
    """What comes to it; of what was not counted, ``-``."""
    for kind in ("reads", "writes", "flushes"):
        rate = _sum(devices, kind)
        if rate or (devices[0].kind == "disk" and (rate is None or kind == "flushes")):
            yield f"{figure(rate)} {kind}/s"
    moved = [_sum(devices, name) for name in ("read_bytes", "write_bytes")]
    yield f"{megabytes(None if None in moved else sum(filter(None, moved)))} MB/s"


def _sum(devices: t.Sequence[Flow], name: str) -> float | None:
    values = [getattr(one, name) for one in devices]
    return None if None in values else sum(values)
