# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making a bcache clean while it is used, and proving it.

A change of the mode flushes nothing (Linux 6.1). The kernel writes back at full speed while ``writeback_percent`` is 0, begins
only when the pause it is in has ended (``writeback_delay``), and sets the state to clean when it has scanned everything and
found nothing. In a mode other than writeback no block becomes dirty then: the state is set to dirty before a write goes to the
cache, under the lock that the kernel's scan holds.

After a power cut the state can be clean while blocks are dirty: the superblock of the backing device is written at once, and the
journal, which marks the last blocks clean, up to ``journal_delay_ms`` later. The kernel writes nothing back while the state is clean
(``bch_writeback_thread``, drivers/md/bcache/writeback.c of Linux 6.1), but a detachment writes back whatever is dirty before it ends.
"""

from __future__ import annotations

import abc
import contextlib
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal as bcache_journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import CLEAN, NO_CACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import chosen, parse_printed
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.steps import EndFlush, Flush
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, StorageError

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: What makes the kernel write back as fast as it can.
_HASTE = {"writeback_delay": "0", "writeback_percent": "0", "writeback_running": "1"}
#: Seconds between two readings while the kernel detaches.
PAUSE = 0.5
#: Readings in a row, :data:`INTERVAL` apart, of the state clean with dirty blocks, until it is no coincidence.
_READINGS = 5


class FlushOperations(abc.ABC):
    """Carries out :class:`Flush` and :class:`EndFlush`, for a layer that has ``runner``, ``sysfs``, ``root``, ``clock`` and ``sleep``."""

    runner: Runner
    sysfs: Sysfs
    root: Path
    clock: t.Callable[[], float]
    sleep: t.Callable[[float], None]

    @abc.abstractmethod
    def _backing(self, origin: str) -> str:
        """The folder of the cached device in sysfs."""

    @abc.abstractmethod
    def _set_of(self, folder: str) -> str | None:
        """The UUID of the set that a backing device is attached to."""

    @abc.abstractmethod
    def _attach_to(self, origin: str, cset: str, step: Step) -> None:
        """Attach a backing device to a set."""

    @abc.abstractmethod
    def _uuid(self, origin: str, step: Step) -> str:
        """The UUID of the backing device."""

    @abc.abstractmethod
    def _write(self, step: Step, path: str, value: str, took_effect: t.Callable[[], bool]) -> None:
        """Write a file of sysfs and wait until it is in effect."""

    def _flush(self, operation: Flush, step: Step) -> None:
        folder = self._backing(operation.origin)
        before = chosen(self.sysfs.read(f"{folder}/cache_mode"))
        mode = operation.mode or ("writethrough" if before == "writeback" else before)
        if before != mode:
            self._write(step, f"{folder}/cache_mode", mode, lambda: chosen(self.sysfs.read(f"{folder}/cache_mode")) == mode)
        if self.sysfs.read(f"{folder}/state") != NO_CACHE:
            self._drain(operation, step, folder)
            self._require_clean(operation.origin, step, folder)
            write_out(self.runner, str(step.item), operation.origin)
        self._put_back(operation.origin, step)

    def _end_flush(self, operation: EndFlush, step: Step) -> None:
        self._put_back(operation.origin, step)

    def _drain(self, operation: Flush, step: Step, folder: str) -> None:
        uuid = self._uuid(operation.origin, step)
        if uuid not in bcache_journal.read_journal(self.root).flushing:
            found = {key: self.sysfs.read(f"{folder}/{key}") for key in _HASTE}
            bcache_journal.note_flushing(uuid, {key: text for key, text in found.items() if text is not None}, self.root)

        def dirty() -> int | None:
            if self._is_clean(folder):
                return 0
            # A udev rule that sets the settings of a device again may come in between.
            self._hurry(step, folder)
            return max(parse_printed(self.sysfs.read(f"{folder}/dirty_data")) or 0, 1)

        watch = FlushWatch(str(step.item), operation.origin, dirty, unit="bytes", limit=operation.flush_timeout, clock=self.clock)
        try:
            idle = 0
            while watch() != 0:
                idle = idle + 1 if self._is_clean_with_dirty_blocks(folder) else 0
                if idle == _READINGS:
                    self._drain_by_detaching(operation, step, folder, watch)
                    return
                self.sleep(INTERVAL)
        except BaseException:
            with contextlib.suppress(StorageError):
                self._put_back(operation.origin, step)
            raise

    def _is_clean_with_dirty_blocks(self, folder: str) -> bool:
        """Whether the kernel has nothing to do although blocks are dirty, and none can become so."""
        mode = chosen(self.sysfs.read(f"{folder}/cache_mode"))
        return mode != "writeback" and self.sysfs.read(f"{folder}/state") == CLEAN and bool(parse_printed(self.sysfs.read(f"{folder}/dirty_data")))

    def _drain_by_detaching(self, operation: Flush, step: Step, folder: str, watch: FlushWatch) -> None:
        """Detach the cache, which writes back what is dirty, and attach it again, empty, unless the next step is to detach it."""
        cset = self._set_of(folder)
        self._write(step, f"{folder}/detach", "1", lambda: self._set_of(folder) is None)
        while self._set_of(folder) is not None:
            watch()
            self.sleep(PAUSE)
        # The sooner the less is only in the memory of a disk: what was written back is no longer read from the cache.
        write_out(self.runner, str(step.item), operation.origin)
        if cset is not None and not operation.leaving:
            self._attach_to(operation.origin, cset, step)

    def _hurry(self, step: Step, folder: str) -> None:
        for key, value in _HASTE.items():
            if self.sysfs.read(f"{folder}/{key}") not in (None, value):
                self.sysfs.write(f"{folder}/{key}", value, str(step.item))

    def _put_back(self, origin: str, step: Step) -> None:
        """Restore the settings that a flush changed."""
        folder, uuid = self._backing(origin), self._uuid(origin, step)
        noted = bcache_journal.read_journal(self.root).flushing.get(uuid)
        if noted is None:
            return
        for key, value in noted.items():
            if key in _HASTE and value.isdigit() and self.sysfs.read(f"{folder}/{key}") not in (None, value):
                self.sysfs.write(f"{folder}/{key}", value, str(step.item))
        bcache_journal.note_flushing(uuid, None, self.root)

    def _is_clean(self, folder: str) -> bool:
        """The kernel's two figures: nothing was dirty at its last scan, and nothing became so since."""
        return self.sysfs.read(f"{folder}/state") in (CLEAN, NO_CACHE) and parse_printed(self.sysfs.read(f"{folder}/dirty_data")) == 0

    def _require_clean(self, origin: str, step: Step, folder: str) -> None:
        """No block may be dirty and none may become so; required before anything is removed."""
        mode = chosen(self.sysfs.read(f"{folder}/cache_mode"))
        if mode in ("writethrough", "writearound", "none") and self._is_clean(folder):
            return
        state, dirty = self.sysfs.read(f"{folder}/state"), self.sysfs.read(f"{folder}/dirty_data")
        raise NotEffective(
            f"{step.item}: it could not be verified that the cache of {origin} holds nothing that the origin does not have (found mode {mode},"
            f" state {state}, {dirty} dirty); the cache stays attached and nothing is lost: check dmesg and run again.",
            item=step.item,
        )
