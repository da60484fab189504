# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Why a task failed, as one line. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain

_LONGEST, _LONGEST_LINE = 1000, 200

#: What Ansible puts before the reason: names of tasks and options of this collection, which are not what the user wrote.
_INTERNAL = re.compile(
    r"(?:Task failed: |Error while evaluating conditional: |Finalization of task args for '\S+' failed: |Error while resolving value for '\w+': )*"
)

#: Where a result has what a module that ended without an answer, or a command, has written last. With a terminal stdout has both outputs.
_OUTPUTS = {"module_stderr": "stderr", "stderr": "stderr", "module_stdout": "the output"}


def failure_reason(result: t.Mapping[str, t.Any]) -> str:
    """The message of a failed task or of an unreachable host, and the last line of stderr if that is not part of the message.

    Modules of this collection report stderr in their message. It is missing where a module ended without an answer: its process was
    killed, or the host has no such Python. Of a loop it is the reason of the first item that failed, because the loop only has "One or more items failed".
    """
    items = result.get("results")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, t.Mapping) and (item.get("failed") or item.get("unreachable")):
            return failure_reason({**item, "results": None})
    message = _INTERNAL.sub("", plain(result.get("msg") or "no reason was reported", _LONGEST), count=1)
    for key, output in _OUTPUTS.items():
        lines = str(result.get(key) or "").strip().splitlines()
        if lines:
            last = plain(lines[-1], _LONGEST_LINE)
            return message if last in message else f"{message.rstrip('.')}. The last line of {output} is '{last}'."
    return message
