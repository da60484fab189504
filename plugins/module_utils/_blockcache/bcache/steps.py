# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a plan of bcaches do: one class for each operation.

``origin`` and ``path`` are paths as the user wrote them, ``device`` is a kernel name, ``set`` the UUID of a cache set; sizes are bytes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

# -- backing devices


@frozen
class MakeBacking(Operation):
    """Make an empty device a backing device, and register it."""

    needs_commands = ("make-bcache", "bcache-super-show", "udevadm")
    needs_modules = ("bcache",)
    origin: str
    block_size: int


@frozen
class RegisterBacking(Operation):
    """Register a backing device with the kernel."""

    needs_commands = ("udevadm",)
    needs_modules = ("bcache",)
    origin: str


@frozen
class SetLabel(Operation):
    """Set the label in the superblock of the backing device."""

    origin: str
    label: str


# -- cache sets


@frozen
class MakeSet(Operation):
    """Make an empty device the cache device of a new set, and register it.

    :param origin: the backing device that will be attached to it first.
    """

    needs_commands = ("make-bcache", "bcache-super-show", "udevadm")
    needs_modules = ("bcache",)
    origin: str
    path: str
    set: str
    bucket_size: int
    block_size: int


@frozen
class RegisterSet(Operation):
    """Register a cache device with the kernel, which starts its set."""

    needs_commands = ("udevadm",)
    needs_modules = ("bcache",)
    device: str
    set: str


@frozen
class UnregisterSet(Operation):
    """Stop a set that nothing is attached to and that holds nothing dirty."""

    device: str
    set: str


@frozen
class Wipe(Operation):
    """Make a cache device empty, if it still carries that set."""

    needs_commands = ("wipefs", "bcache-super-show", "udevadm")
    path: str
    set: str


# -- caches


@frozen
class Attach(Operation):
    """Attach a backing device to a set."""

    origin: str
    set: str


@frozen
class Detach(Operation):
    """Detach a backing device from a set, once nothing of it is dirty there."""

    needs_commands = ("sync",)
    origin: str
    set: str


@frozen
class SetMode(Operation):
    """Change the mode of a cache, without a flush."""

    origin: str
    mode: str


@frozen
class Flush(Operation):
    """Leave writeback and write everything back.

    :param flush_timeout: seconds that it may take, or None.
    :param mode: the mode afterwards; None for writethrough in place of writeback, and any other as it is.
    :param leaving: whether the next step is to detach it.
    """

    needs_commands = ("sync",)
    origin: str
    flush_timeout: t.Optional[int]
    mode: t.Optional[str] = None
    leaving: bool = False


@frozen
class EndFlush(Operation):
    """Restore the settings that an interrupted flush changed."""

    origin: str


@frozen
class SetSetting(Operation):
    """Change one setting now.

    :param place: whose it is, as in :data:`settings.SETTINGS`.
    """

    origin: str
    key: str
    value: t.Union[int, str]
    place: str
    set: str


@frozen
class WriteRules(Operation):
    """Keep settings in the udev rules.

    :param settings: of the backing device; None removes what is kept of it.
    :param set: the set whose settings are kept too, or None.
    """

    origin: str
    settings: t.Optional[t.Mapping[str, t.Union[int, str]]] = None
    set: t.Optional[str] = None

    @property
    def needs_commands(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("bcache-super-show",) if self.set is not None else ()
