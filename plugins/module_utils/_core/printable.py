# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text that came from elsewhere, without what acts on a terminal or hides what follows."""

from __future__ import annotations

import re
import typing as t

#: Escape sequences of terminals as a whole (ECMA-48): CSI, OSC, and those of two characters.
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")

#: What stands for a character that is not printable (U+FFFD).
REPLACEMENT = "\ufffd"


def printable(text: str) -> str:
    """The same text, in which every character that is not printable is replaced, except line feeds and tabs.

    Control characters act on a terminal. Format characters, for example those that reverse the direction of writing, and separators of
    lines other than the line feed make a text look like another one.
    """
    if text.isprintable():
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return "".join(char if char.isprintable() or char in "\n\t" else REPLACEMENT for char in text)


def plain(text: t.Any, longest: int = 200) -> str:
    """Any value as text in one line of limited length: no escape sequences, no control characters."""
    cleaned = _SEQUENCE.sub("", str(text))
    cleaned = "".join(char if char.isprintable() else " " for char in cleaned)
    cleaned = " ".join(cleaned.split())
    return cleaned if len(cleaned) <= longest else cleaned[: longest - 3] + "..."
