# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write-back caches of which the kernel does not count what is dirty: SSD caches of RAID controllers (maxCache), and ZFS.

The tool of a controller takes seconds, and has one word and no amount: it is asked before a cell, and seldom while the cache is dirty. ZFS writes
out what it holds when it is told to (zpool-sync(8)); a log device then has nothing that the pool lacks, and a read cache never has.
"""

from __future__ import annotations

import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.draining import NOT_CLEAN, NOT_KNOWN
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import CLEAN, DIRTY, DISABLED, ENABLED, UNKNOWN, WRITETHROUGH
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import PREFIX, is_in_pool

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import Status
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.snapshots import Snapshots
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter

#: Seconds between two questions to the tool of a controller, and of such a wait at most: a word does not show whether the amount falls.
_ASK, _MOST = 60.0, 300.0
#: Seconds in which a pool must have written out what it held.
_LONGEST_SYNC = 600.0

_NOT_KNOWN = "It is not known whether {cache} was clean before this cell"
_SSD_CACHE = "the SSD cache of the RAID controller"

#: Kernel names of a target, and of a disk below it.
_Key = t.Tuple[str, str]


@frozen
class Settled:
    """What is known of such caches before a cell.

    :param sentences: for its notes.
    :param not_deciding: why it does not decide, as a clause; empty if it does.
    :param waited: whether anything was waited for.
    """

    sentences: tuple[str, ...] = ()
    not_deciding: str = ""
    waited: bool = False


class OtherCaches:
    """Those of one runner."""

    def __init__(self, host: MeasuredHost, snapshots: Snapshots, status: Status, waiter: Waiter) -> None:
        self.host = host
        self.snapshots = snapshots
        self.status = status
        self.waiter = waiter
        #: Those whose tool said at some time whether they are dirty, and those that were waited for in vain.
        self._reported: set[_Key] = set()
        self._kept: set[_Key] = set()

    def settle(self, tops: t.Collection[str], most: float) -> Settled:
        """Have the caches below some targets written back within so many seconds, as far as that is possible."""
        found = [self._write_out(tops, most), self._wait_for_controllers(tops, most)]
        reasons = [one.not_deciding for one in found]
        return Settled(
            tuple(sentence for one in found for sentence in one.sentences),
            NOT_CLEAN if NOT_CLEAN in reasons else next(filter(None, reasons), ""),
            any(one.waited for one in found),
        )

    # -- ZFS

    def _write_out(self, tops: t.Collection[str], most: float) -> Settled:
        names = {*tops, *(str(layer.get("name")) for layer in self._layers(tops))}
        if not any(map(is_in_pool, names)):
            return Settled()
        pools = sorted(name[len(PREFIX) :] for name in names if name.startswith(PREFIX))
        not_known = _NOT_KNOWN.format(cache="ZFS")
        try:
            for pool in pools:
                self.host.runner.run(["zpool", "sync", "--", pool], timeout=min(most, _LONGEST_SYNC), item=pool)
        except ToolMissing:
            pools = []
        except StorageError as error:
            return Settled((f"{not_known}: {error.message}",), NOT_KNOWN, waited=True)
        # It does so by itself every few seconds (zfs_txg_timeout).
        return Settled((f"{not_known}: the command zpool cannot be used, which would write out what it holds.",) if not pools else (), waited=True)

    # -- controllers

    def _wait_for_controllers(self, tops: t.Collection[str], most: float) -> Settled:
        caches = self._ssd_caches(tops)
        gone = {key for key in self._reported if key[0] in tops and key not in caches}
        keys = gone | {key for key, ssd in caches.items() if ssd.get("dirty") == DIRTY or _writes_back(ssd)}
        if not keys:
            return Settled()
        began, limit = time.monotonic(), min(most, _MOST)
        while True:
            self.snapshots.read()
            words = {key: _word(ssd) for key, ssd in self._ssd_caches(tops).items()}
            dirty = {key for key in keys if words.get(key) == DIRTY}
            self._kept -= {key for key in keys if words.get(key) == CLEAN}
            seconds = time.monotonic() - began
            if not dirty or dirty <= self._kept or seconds >= limit or self.waiter.stopping:
                break
            self.status.update(state="pausing", cell=None, target=None, until=self.status.clock() + limit - seconds, message=f"{_SSD_CACHE} is dirty")
            self.waiter.for_seconds(min(_ASK, limit - seconds))
        self.status.update(message="")
        return self._judged({key: words.get(key, UNKNOWN) for key in keys}, dirty, seconds)

    def _judged(self, words: t.Mapping[_Key, str], dirty: t.AbstractSet[_Key], seconds: float) -> Settled:
        unknown = {key for key, word in words.items() if word == UNKNOWN}
        unreadable = unknown & self._reported
        self._reported |= words.keys() - unknown
        if dirty:
            why = "it was so before an earlier cell too, and is not waited for again" if dirty <= self._kept else f"{seconds:.0f} seconds were waited for it"
            self._kept |= dirty
            return Settled((f"The SSD cache of the RAID controller was dirty before this cell: {why}.",), NOT_CLEAN, waited=True)
        if not unknown:
            return Settled(waited=True)
        why = "its state could not be read" if unreadable else "its tool does not report that"
        return Settled((f"{_NOT_KNOWN.format(cache=_SSD_CACHE)}: {why}.",), NOT_KNOWN if unreadable else "", waited=True)

    def _ssd_caches(self, tops: t.Collection[str]) -> dict[_Key, t.Mapping[str, t.Any]]:
        """The SSD caches of controllers in the last snapshot."""
        return {
            (top, str(layer.get("name"))): cache["ssd_cache"]
            for top in tops
            for layer in self._layers([top])
            for cache in layer.get("caches") or ()
            if cache.get("layer") == "controller" and isinstance(cache.get("ssd_cache"), dict)
        }

    def _layers(self, tops: t.Collection[str]) -> list[t.Mapping[str, t.Any]]:
        return [layer for top in tops for layer in self.snapshots.last.stacks.get(top, {}).get("layers") or ()]


def _word(ssd: t.Mapping[str, t.Any]) -> str:
    """Whether an SSD cache of a controller is clean: what nothing was written to is, unless it is reported to be dirty."""
    return str(ssd["dirty"]) if ssd.get("dirty") in (CLEAN, DIRTY) else UNKNOWN if _writes_back(ssd) else CLEAN


def _writes_back(ssd: t.Mapping[str, t.Any]) -> bool:
    """Whether it may hold what its volume lacks, as it is set."""
    write, policy = ssd.get("write"), ssd.get("write_policy")
    if write == DISABLED or policy == WRITETHROUGH:
        return False
    return (write, policy) != (UNKNOWN, UNKNOWN) or ssd.get("read") == ENABLED or ssd.get("cache_volume") is not None
