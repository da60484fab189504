# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one run of the power-loss test writes to, and how: the options of the writer, which it also sends to its witness, so that whoever has
the log of a run can verify it.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen, has_types
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import LAYOUTS, SYNCS, InPlace, Medium, Renamed
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Load

#: Blocks behind the range that are written and synced before the run, and never again.
FENCE = 64
DEFAULT_SIZE = 64 * 1024**2
_MOST_BLOCK = 1024**2
#: The id of each block is read into memory by the verifier.
_MOST_PLACES = 2**22


@frozen
class RunSpec:
    """How a run writes.

    :param path: of the device, of the file, or with the layout ``rename`` of the folder.
    :param kind: ``device`` or ``file``.
    :param identity: of the device, as it was found.
    :param size: bytes of the range; the fence lies behind it.
    """

    path: str
    kind: str
    identity: str | None
    size: int
    block_size: int = 4096
    layout: str = "in_place"
    sync: str = "fsync"
    direct: bool = True
    order: str = "random"
    depth: int = 1
    bulk: bool = False
    seconds: float = 900.0

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise BadInput(f"'{self.layout}' is not a supported layout: use one of {', '.join(LAYOUTS)}.", item="layout")
        if self.sync not in SYNCS:
            raise BadInput(f"'{self.sync}' is not a supported sync: use one of {', '.join(SYNCS)}.", item="sync")
        if self.kind == "device" and self.layout != "in_place":
            raise BadInput(f"The layout {self.layout} needs a target with file, not a device.", item="layout")
        if self.layout == "rename" and self.sync not in ("fsync", "fdatasync", "none"):
            raise BadInput(f"With layout rename, sync must be fsync, fdatasync or none, not {self.sync}.", item="sync")
        if self.layout == "rename" and self.bulk:
            raise BadInput("A bulk load needs the layout in_place or append.", item="bulk")
        if not 512 <= self.block_size <= _MOST_BLOCK or self.block_size % 512:
            raise BadInput("block_size must be a multiple of 512 bytes, up to 1 MiB.", item="block_size")
        if not 0 < self.seconds <= 86400:
            raise BadInput("seconds must be between 0 and 86400.", item="seconds")
        if self.places > _MOST_PLACES:
            raise BadInput(f"The range has {self.places} blocks; at most {_MOST_PLACES} are supported: give the target a smaller size.", item="size")
        self.load()

    @property
    def places(self) -> int:
        return self.size // self.block_size

    @property
    def fence(self) -> int:
        """How many blocks behind the range have to stay as they are."""
        return FENCE if self.layout == "in_place" else 0

    @property
    def extent(self) -> int:
        """Bytes of the target that the run may write."""
        return (self.places + self.fence) * self.block_size

    def load(self) -> Load:
        """:raises BadInput: if the options contradict each other."""
        once = self.layout == "append"
        order = "sequential" if once or self.bulk else self.order
        return Load(self.block_size, self.places, order=order, depth=self.depth, seconds=self.seconds, bulk=self.bulk, once=once)

    def medium(self, descriptor: int | None = None, *, readable: bool = False) -> Medium:
        """What is written to, or read.

        :param descriptor: of the target, whatever its path leads to by now.
        :raises CommandFailed: if the target cannot be opened.
        """
        path = Path(self.path)
        if self.layout == "rename":
            return Renamed(path, self.block_size, self.sync, descriptor=descriptor)
        # A bulk load is synced once at its end.
        sync = "none" if readable or self.bulk else self.sync
        return InPlace(path, self.block_size, sync, direct=self.direct and not readable, readable=readable, descriptor=descriptor)

    def to_dict(self) -> dict[str, t.Any]:
        return asdict(self)


def size_of(text: str | None) -> int:
    """The size of the range in bytes.

    :raises BadInput: if it is not a size.
    """
    return DEFAULT_SIZE if text is None else parse_size(text, item="size")


def spec_of(greeting: t.Mapping[str, t.Any]) -> RunSpec:
    """The options of the run that a log is of.

    :raises NotUnderstood: if they are not there.
    """
    try:
        spec = RunSpec(**greeting["spec"])
        if has_types(spec):
            return spec
    except (KeyError, TypeError, BadInput):
        pass
    raise NotUnderstood("The log of the witness does not say how the run wrote: it is not a log of cachefleet.storage.power_loss_writer.")
