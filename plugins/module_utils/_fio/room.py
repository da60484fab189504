# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room for the files of all cells together: each fits alone, and two of them can fill their file system."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import extent

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts

#: What a file takes besides its data: block maps of ext2 and ext3 have 4 bytes for each block of 4 KiB; and what fio writes beside it.
_METADATA_SHARE = 1024
_RESERVE = MIB
_BLOCK = 4096


@dataclass
class _FileSystem:
    """The files that grow on it, in bytes, and the least free space that was read."""

    free: int
    growth: dict[str, int] = field(default_factory=dict)

    def add(self, path: str, growth: int, free: int) -> None:
        self.free = min(self.free, free)
        self.growth[path] = max(growth, self.growth.get(path, 0))

    @property
    def needed(self) -> int:
        total = sum(self.growth.values())
        return total + total // _METADATA_SHARE + _RESERVE if total else 0


def growth(cell: Cell, facts: TargetFacts) -> int:
    """Bytes by which a cell makes its file or files longer."""
    if facts.target.kind == "directory":
        return _growth_of(extent.files_of(cell.job), facts)
    if facts.target.kind != "file":
        return 0
    size = facts.size if facts.target.size is None else facts.target.size
    end = extent.end_of_io(cell.job, size=size, device_size=facts.size, is_file=True)
    return max(0, end - facts.size)


def _growth_of(files: t.Mapping[str, int], facts: TargetFacts) -> int:
    """Of files in a folder; each takes whole blocks."""
    return sum(max(0, -(-size // _BLOCK) * _BLOCK - facts.files.get(name, 0)) for name, size in files.items() if size > facts.files.get(name, -1))


def require_room(pairs: t.Iterable[tuple[Cell, TargetFacts]]) -> None:
    """Whether the files of all cells fit at once; a file that several cells use counts once, with its largest need.

    Files stay after their cells, so that also cells that run one after the other need their room together.

    :raises Refused: naming the files, what they need and what is free.
    """
    systems: dict[str, _FileSystem] = {}
    folders: dict[str, dict[str, int]] = {}
    for cell, facts in pairs:
        if facts.target.kind == "directory":
            # Cells find the files of others, as large as the largest of them needs them.
            files = folders.setdefault(facts.path, {})
            files.update({name: max(size, files.get(name, 0)) for name, size in extent.files_of(cell.job).items()})
            more = len(files.keys() - facts.files.keys())
            if facts.inodes is not None and more > facts.inodes:
                raise Refused(
                    f"fio will not write in {facts.target.path}: {more} more files are needed, and its file system has inodes for {facts.inodes}. "
                    "Set a smaller nrfiles or choose another file system.",
                    item=facts.target.path,
                )
            if facts.free is not None:
                systems.setdefault(facts.file_system or facts.path, _FileSystem(facts.free)).add(facts.path, _growth_of(files, facts), facts.free)
            continue
        grows = growth(cell, facts)
        if grows and facts.free is not None:
            # Without the number of its file system a file is counted alone.
            key = facts.file_system or facts.path
            systems.setdefault(key, _FileSystem(facts.free)).add(facts.path, grows, facts.free)
    for system in systems.values():
        if system.needed > system.free:
            raise _no_room(system)


def _no_room(system: _FileSystem) -> Refused:
    names = ", ".join(sorted(system.growth)[:10]) + (f" and {len(system.growth) - 10} more" if len(system.growth) > 10 else "")
    return Refused(
        f"fio will not write to {names}: with metadata this needs {format_size(system.needed)} ({system.needed} bytes) more on one file system, "
        f"and {format_size(system.free)} ({system.free} bytes) are free there. Give the targets smaller sizes or choose another file system.",
        item=sorted(system.growth)[0],
        needed=system.needed,
        free=system.free,
    )
