# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A key that is not supported, as a sentence with the most similar one that is. Pure."""

from __future__ import annotations

import re

#: The message of Ansible's validator: the paths of the keys, and the supported ones, with aliases in brackets.
_UNKNOWN_KEY = re.compile(r"(?P<path>[^()]+)\. Supported parameters include: (?P<known>[^()]*?)(?: \([^)]*\))?\.?")


def unknown_key(text: str) -> str | None:
    """What is wrong with keys, in one line; ``None`` if the message of Ansible is about something else."""
    found = _UNKNOWN_KEY.fullmatch(text)
    if found is None:
        return None
    import difflib

    known = found["known"].split(", ")
    sentences = []
    for path in found["path"].split(", "):
        key = path.rpartition(".")[2]
        near = difflib.get_close_matches(key, known, 1, 0.6)
        sentences.append(f"there is no key {key}: {f'did you mean {near[0]}?' if near else 'give one of ' + ', '.join(known) + '.'}")
    return " ".join(sentences)
