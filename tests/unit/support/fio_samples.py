# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in captured outputs of fio, read without the parser of the collection."""

from __future__ import annotations

import json
import re
import typing as t


def latencies(text: str) -> t.Iterator[dict[str, t.Any]]:
    """Every latency with bins and percentiles."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            found, _end = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        yield from _with_bins(found)


def _with_bins(value: t.Any) -> t.Iterator[dict[str, t.Any]]:
    if isinstance(value, dict) and value.get("bins") and "percentile" in value:
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _with_bins(child)
