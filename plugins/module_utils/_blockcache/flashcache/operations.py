# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a flashcache device do. The item of a step is the name of the device."""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class WriteUnit(Operation):
    """Write the unit that brings the cache up at boot; an empty text removes it."""

    needs_commands = ("systemctl",)
    text: str


@frozen
class StartUnit(Operation):
    """Start the unit of a cache that is up, so that systemd takes it down at shutdown."""

    needs_commands = ("systemctl",)


@frozen
class CreateCache(Operation):
    """Create a cache on an empty SSD.

    :param ssd: path of the SSD, or of its mirror.
    :param command: ``flashcache_create`` with all its options.
    """

    needs_commands = ("blockdev", "dmsetup", "udevadm")
    ssd: str
    command: tuple[str, ...]


@frozen
class LoadCache(Operation):
    """Load a write-back cache from its SSD."""

    needs_commands = ("blockdev", "dmsetup", "udevadm")
    ssd: str


@frozen
class SetSysctl(Operation):
    """Set one sysctl of a cache that runs."""

    key: str
    value: int


@frozen
class FlushCache(Operation):
    """Let nothing more become dirty, and write back until nothing is.

    :param flush_timeout: seconds, or None for as long as it makes progress.
    """

    flush_timeout: int | None


@frozen
class RemoveCache(Operation):
    """Remove a cache that runs.

    :param ssd: the path of the SSD in its table; ``disk`` that of its origin.
    :param mode: of the cache that runs.
    :param lasting: a path that names the SSD after a reboot too; empty if there is none.
    """

    needs_commands = ("dmsetup", "udevadm")
    ssd: str
    disk: str
    mode: str
    lasting: str


@frozen
class ClearDevice(Operation):
    """Prove that an SSD holds nothing that its origin does not have, and make it empty.

    :param lasting: as of :class:`RemoveCache`.
    """

    needs_commands = ("blockdev", "dmsetup", "wipefs", "udevadm")
    ssd: str
    lasting: str


@frozen
class ForgetRemains(Operation):
    """Delete the note that an SSD was to be made empty."""
