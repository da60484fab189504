# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a raw cache do. The item of a step is the device-mapper name; tables are texts as ``dmsetup`` takes them."""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import Record
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class WriteUnit(Operation):
    """Write the unit that brings the cache up at boot; None removes it."""

    needs_commands = ("systemctl",)
    record: Record | None


@frozen
class PrepareDevice(Operation):
    """Make the mappings on the cache device, with nothing in them.

    :param device: path of the cache device.
    :param helpers: role and table of each mapping, in the order in which they are made.
    :param new: whether the device must be empty; it need not be where this very cache was on it.
    """

    needs_commands = ("udevadm",)
    device: str
    helpers: tuple[tuple[str, str], ...]
    new: bool


@frozen
class LoadTable(Operation):
    """Give what is mounted a table, or make it with that table."""

    table: str

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return dm.MODULES.get(self.table.split(" ")[2], ())


@frozen
class EnterPassthrough(Operation):
    """Load the table of a cache in mode passthrough, which the kernel takes only while no block is dirty.

    :param table: the table in mode passthrough.
    :param through: the same in mode writethrough, which is loaded first.
    """

    table: str
    through: str


@frozen
class ResumeMapping(Operation):
    """Let a mapping go on with the table in effect, and drop one that waits."""


@frozen
class StartUnit(Operation):
    """Start the unit of a cache that is known and does not run.

    :param kind: the target of its table.
    """

    needs_commands = ("systemctl",)
    kind: str

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return dm.MODULES[self.kind]


@frozen
class FlushCache(Operation):
    """Write back until nothing is dirty.

    :param clean: the table with which nothing becomes dirty.
    :param flush_timeout: seconds, or None for as long as it makes progress.
    """

    clean: str
    flush_timeout: int | None


@frozen
class ProveClean(Operation):
    """Prove that no block is dirty and none can become so, and have the origin write out what it keeps in volatile memory."""

    needs_commands = ("sync",)


@frozen
class ClearDevice(Operation):
    """Make a cache device empty that nothing goes through any more, and remove its mappings.

    :param device: path of the cache device; empty if it is not known.
    :param erase: whether its superblock is overwritten.
    :param must: whether it is a failure if that is not possible.
    """

    needs_commands = ("udevadm",)
    device: str
    erase: bool
    must: bool


@frozen
class RemoveMapping(Operation):
    """Remove what is mounted, once it is unused."""
