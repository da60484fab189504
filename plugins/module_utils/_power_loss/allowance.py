# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the writer of a run may send to its witness: the writes that its load can have made by then, and no more than the log has room for.

The host under test has the secret of its run, so without a limit it could fill the disk of the witness.
"""

from __future__ import annotations

import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import LOG_LIMIT

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec

#: Writes of one lane in a second. Each is two system calls and a checksum in Python: writes to memory, without a sync, were measured at 136,000.
LANE_RATE = 500_000
#: Seconds for the writes that were under way at the end of the load.
_AFTER = 60.0
#: The share of the free space on the disk of the log that one run may use.
_SHARE = 4


class Allowance:
    """What one connection of the writer of a run may send.

    :param logged: bytes that the log of the run has.
    :param free: bytes that are free on its disk.
    """

    def __init__(self, spec: RunSpec, logged: int, free: int, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._spec = spec
        self._clock = clock
        self._began = clock()
        self._room = min(LOG_LIMIT - logged, free // _SHARE)
        self._acknowledged = 0
        self._progress = 0

    def use(self, size: int) -> None:
        """Use so many bytes of the log.

        :raises Refused: if there are not as many left.
        """
        self._room -= size
        if self._room < 0:
            raise Refused("The log of the run is full.")

    def take(self, message: messages.Message) -> None:
        """:raises Refused: if the load of the run cannot have sent the message by now."""
        seconds = min(self._clock() - self._began, self._spec.seconds + _AFTER) + 1
        possible = True
        if message.kind == messages.PROGRESS:
            # At most one for each write of a bulk load.
            self._progress += 1
            possible = self._progress <= self._most(seconds)
        elif message.kind == messages.ACKNOWLEDGED:
            self._acknowledged += 1
            possible = self._acknowledged <= self._most(seconds) and self._is_block(message)
        if not possible:
            raise Refused("The writer sent what its load cannot have written.")

    def _most(self, seconds: float) -> float:
        made = LANE_RATE * self._spec.depth * seconds
        return min(made, self._spec.places) if self._spec.layout == "append" else made

    def _is_block(self, message: messages.Message) -> bool:
        size = self._spec.block_size
        return message.length == size and message.offset % size == 0 and message.offset < self._spec.places * size and message.sequence > 0
