# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What below a device keeps acknowledged writes in volatile memory: for layers that pass no flush down."""

from __future__ import annotations

import types
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import is_declared
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import Stack, read_stack

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

#: No drive of which the write cache will be another one.
NO_DRIVES: t.Mapping[str, str] = types.MappingProxyType({})


class VolatileBelow:
    """A function from a path to what is volatile below it. The stack is read at the first call, and once.

    :param protected: serials, WWNs or models of drives whose cache is known to survive a power cut; ``flushed``: of virtual disks whose flushes reach media.
    """

    def __init__(self, runner: Runner, protected: t.Sequence[str] = (), root: Path = Path("/"), flushed: t.Sequence[str] = ()) -> None:
        self.runner = runner
        self.protected = protected
        self.flushed = flushed
        self.root = root
        self._stack: Stack | None = None

    def __call__(self, path: str, drives: t.Mapping[str, str] = NO_DRIVES) -> list[str]:
        """Each as a clause, for example ``/dev/sda has its volatile write cache on``; none for a path that is not there.

        :param drives: what is planned for them, as :meth:`Stack.with_drives` takes it.
        """
        if self._stack is None:
            self._stack = read_stack(self.runner, self.root, self.protected, flushed=self.flushed)
        return volatile_below(self._stack.with_drives(drives), path)


def volatile_below(stack: Stack, path: str) -> list[str]:
    """What is volatile below a path, in a stack that was read; what is unknown counts, because nothing is left to save it."""
    try:
        device = stack.devices.resolve(path)
    except DeviceMissing:
        return []
    below = (device, *stack.devices.parents(device))
    return [clause for one in below if not is_declared(stack.devices, one, stack.protected) for clause in _clauses(stack, one)]


def _clauses(stack: Stack, device: BlockDevice) -> t.Iterator[str]:
    facts = stack.facts.get(device.name, ())
    doubtful = next((found for found in facts if found.volatile), None) or next((found for found in facts if found.volatile is None), None)
    if doubtful is not None:
        yield f"{device.path} {doubtful.why}"
    elif not facts and not device.slaves and device.parent is None:
        yield f"nothing is known about the write cache of {device.path}"
