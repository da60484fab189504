# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partition table of a drive, as ``sfdisk`` reads it and makes it.

Source: sfdisk(8), ``--json`` and the script format on standard input; sizes with a suffix do not depend on the size of a sector.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: The GPT name of a partition that was made to keep the rest of a drive free.
NAME = "cachefleet-usable"
#: Where it begins, and what the second copy of the table takes at the end at most.
ALIGNMENT = MIB


@frozen
class Partition:
    """One partition; start and size in bytes."""

    start: int
    size: int
    name: str = ""


@frozen
class Table:
    """A partition table; ``label`` is ``gpt`` or ``dos``."""

    label: str
    partitions: tuple[Partition, ...] = ()

    @property
    def ours(self) -> Partition | None:
        """The one partition, if this table was made by :func:`make`."""
        alone = self.partitions[0] if len(self.partitions) == 1 and self.label == "gpt" else None
        return alone if alone is not None and alone.name == NAME else None


def parse_table(text: str) -> Table:
    """The output of ``sfdisk --json``.

    :raises NotUnderstood: if it is none.
    """
    try:
        found = json.loads(text)["partitiontable"]
        sector = int(found.get("sectorsize", 512))
        rows = found.get("partitions", [])
        return Table(str(found["label"]), tuple(Partition(int(row["start"]) * sector, int(row["size"]) * sector, str(row.get("name", ""))) for row in rows))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotUnderstood("The output of sfdisk --json could not be parsed.", item="sfdisk") from None


def read_table(runner: Runner, path: str) -> Table | None:
    """The table on a drive, read from the drive and not from the kernel; None if there is none.

    :raises CommandFailed: if sfdisk fails for another reason.
    """
    completed = runner.run(["sfdisk", "--json", path], ok=None, item=path)
    if completed.rc == 0:
        return parse_table(completed.stdout)
    if "does not contain a recognized partition table" in completed.stderr:
        return None
    raise CommandFailed(f"{path}: sfdisk cannot read its partition table: {completed.last_words}", item=path, completed=completed)


def make(runner: Runner, path: str, size: int) -> None:
    """A new GPT with one partition of ``size`` bytes, a multiple of :data:`ALIGNMENT`; the drive must be empty."""
    script = f'label: gpt\nstart={ALIGNMENT // MIB}MiB, size={size // MIB}MiB, name="{NAME}"\n'
    runner.run(["sfdisk", "--quiet", "--wipe", "never", path], stdin=script, item=path)
