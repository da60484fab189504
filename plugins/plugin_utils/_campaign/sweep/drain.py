# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the caches of a host wrote back before a step was measured, as its state keeps it. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import in_seconds

#: Nothing was written back any more; something still was; some cache could not be read.
DRAINED, WRITING_BACK, NOT_READ = "drained", "writing_back", "not_read"

Values = t.Mapping[str, t.Any]


def read_drain(found: Values, waited: float) -> dict[str, t.Any]:
    """What is kept of it: ``outcome``, ``seconds``, and over all caches the ``dirty`` bytes that are left and ``bytes_per_second``.

    :param found: the result of the module ``block_cache_info`` with a sample; the last one, if there were several.
    """
    caches = found.get("drain")
    if caches is None:
        return {"outcome": NOT_READ, "seconds": round(waited, 1), "dirty": None, "bytes_per_second": None}
    paces = [one["bytes_per_second"] for one in caches if one.get("bytes_per_second") is not None]
    dirty = [one.get("dirty") for one in caches]
    unread = any(one.get("bytes_per_second") is None and one.get("dirty") != 0 for one in caches)
    pace = sum(one for one in paces if one > 0)
    return {
        "outcome": WRITING_BACK if pace > 0 else NOT_READ if unread else DRAINED,
        "seconds": round(waited, 1),
        "dirty": None if None in dirty else sum(dirty),
        "bytes_per_second": round(pace),
    }


def is_drain(value: t.Any) -> bool:
    """Whether it is what :func:`read_drain` returns."""
    if not isinstance(value, dict) or not isinstance(value.get("outcome"), str) or not isinstance(value.get("seconds"), (int, float)):
        return False
    figures = [value.get(key) for key in ("dirty", "bytes_per_second")]
    return all(one is None or isinstance(one, (int, float)) for one in figures) and (value["outcome"] != WRITING_BACK or figures[1] is not None)


def drain_text(drain: Values) -> str:
    """A clause, for a step that was measured although its caches may have written back; empty for others."""
    if drain.get("outcome") == WRITING_BACK:
        left = f", {format_size(drain['dirty'])} were left" if drain.get("dirty") is not None else ""
        return f"its caches still wrote back {format_size(drain['bytes_per_second'])}/s after {in_seconds(drain['seconds'])}{left}"
    return "whether its caches still wrote back could not be read" if drain.get("outcome") == NOT_READ else ""
