# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of an EnhanceIO cache do. The item of a step is the name of the cache; ``origin`` is its path, as the user wrote it."""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class CreateCache(Operation):
    """Create a cache on an empty device.

    :param path: of the cache device.
    :param block_size: bytes.
    """

    needs_commands = ("eio_cli",)
    origin: str
    path: str
    mode: str
    policy: str
    block_size: int


@frozen
class EnableCache(Operation):
    """Start a cache with what the superblock on its device holds.

    :param path: of the cache device.
    """

    needs_commands = ("eio_cli",)
    origin: str
    path: str
    mode: str
    policy: str


@frozen
class FlushCache(Operation):
    """Have everything written back, with nothing becoming dirty meanwhile.

    :param flush_timeout: seconds, or None for as long as it makes progress.
    """

    needs_commands = ("sysctl",)
    origin: str
    flush_timeout: int | None


@frozen
class StopCleaning(Operation):
    """Let blocks become dirty again after an interrupted flush."""

    needs_commands = ("sysctl",)


@frozen
class SetMode(Operation):
    """Change the mode of a cache that runs; it leaves ``writeback`` only while it is clean."""

    needs_commands = ("eio_cli",)
    origin: str
    mode: str


@frozen
class SetSetting(Operation):
    """Set one sysctl of a cache that runs."""

    needs_commands = ("sysctl",)
    key: str
    value: int


@frozen
class ResumeCache(Operation):
    """Give a degraded cache its device back, empty.

    :param path: of the cache device.
    """

    needs_commands = ("eio_cli",)
    path: str


@frozen
class ProveClean(Operation):
    """Prove that no block is dirty and none can become so."""

    origin: str


@frozen
class DeleteCache(Operation):
    """Delete a cache that is proven to be clean."""

    needs_commands = ("eio_cli",)
    origin: str


@frozen
class WipeSuperblock(Operation):
    """Overwrite the superblock of a cache that does not run and in which nothing is dirty.

    :param path: of the cache device.
    """

    needs_commands = ("wipefs",)
    path: str


@frozen
class WriteBootFiles(Operation):
    """Write the files that bring the cache back at boot; empty texts remove them.

    :param unit: the text of the systemd unit.
    :param rule: the text of the udev rule that hides the origin.
    """

    needs_commands = ("systemctl",)
    unit: str
    rule: str
