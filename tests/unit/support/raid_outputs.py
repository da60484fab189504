# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader of each RAID tool, and the captured outputs of the corpus that it has to read."""

from __future__ import annotations

import pathlib
import sys
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS

Parse = t.Callable[[str], Reading]

#: The reader of each tool, which is the ``parse`` beside its provider.
READERS: dict[str, Parse] = {name: sys.modules[tool.provider().__module__].parse for name, tool in TOOLS.items()}
#: One tool for each reader: rebranded tools share theirs.
PARSERS = {name: parse for name, parse in READERS.items() if parse not in [READERS[other] for other in list(READERS)[: list(READERS).index(name)]]}
#: The folders of the corpus that are not called like a tool.
_TRANSCRIBED = {"storcli": ("transcribed",)}


def folders_of(tool: str) -> tuple[str, ...]:
    """The folders of the corpus with outputs for the reader of a tool."""
    return (*(name for name, parse in READERS.items() if parse is READERS[tool]), *_TRANSCRIBED.get(tool, ()))


def text_of(path: pathlib.Path) -> str:
    """A captured output as the runner would hand it over: line ends kept, strange bytes replaced."""
    return path.read_bytes().decode("utf-8", errors="replace")


def outputs_of(corpus: pathlib.Path, tool: str, largest: int, *, transcribed: bool = False) -> dict[pathlib.Path, str]:
    """The captured outputs for a reader, without those of more bytes."""
    folders = [name for name in folders_of(tool) if (corpus / name).is_dir() and (transcribed or name in TOOLS)]
    return {path: text_of(path) for folder in folders for path in sorted((corpus / folder).iterdir()) if path.stat().st_size <= largest}
