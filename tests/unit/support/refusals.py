# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of what must be refused, as one test that reports every case that was not."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput


def not_refused(call: t.Callable[..., t.Any], cases: t.Iterable[tuple[t.Any, str]], error: type[Exception] = BadInput) -> list[str]:
    """The cases, pairs of an argument and a pattern, that ``call`` took or refused with another message."""
    found = []
    for argument, reason in cases:
        try:
            message = f"accepted: {call(argument)!r}"
        except error as refusal:
            message = str(refusal)
            if re.search(reason, message):
                continue
        found.append(f"{argument!r}: {message}, expected: {reason}")
    return found
