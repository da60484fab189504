# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data that tell where and when they were written, so that every lost, old or misplaced block is seen."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import random
import signal
import time
import typing as t

#: What dm-cache takes into an empty cache at once, being a whole block of it; the chunk size of every cache here.
BLOCK = 64 * 1024
_PIECE = 16


class Ledger:
    """What has been written to a device: the number of the last writing of each block.

    :param blocks: how many blocks of :data:`BLOCK` bytes.
    :param first: the first of them on the device.
    """

    def __init__(self, blocks: int, seed: int, first: int = 0) -> None:
        self.first = first
        # Shared with the application: one number for each block, and behind them which block is being written (from 1).
        self._shared = memoryview(mmap.mmap(-1, 4 * (blocks + 1))).cast("I")
        self.versions = self._shared[:blocks]
        self.seed = seed
        self.chance = random.Random(seed)
        self._write = mmap.mmap(-1, BLOCK)
        self._read = mmap.mmap(-1, BLOCK * _PIECE)

    def fill(self, device: str) -> None:
        """Write every block once."""
        self.write(device, range(len(self.versions)))

    def some(self, count: int) -> list[int]:
        """Blocks for the next writing: most of them in a small hot part, so that they are in the cache already."""
        hot = max(len(self.versions) // 8, 1)
        return [self.chance.randrange(hot if number % 4 else len(self.versions)) for number in range(count)]

    def write(self, device: str, blocks: t.Iterable[int]) -> None:
        """Write whole blocks anew, past the page cache; each is acknowledged when this returns."""
        handle = os.open(device, os.O_WRONLY | os.O_DIRECT)
        try:
            for block in blocks:
                self._shared[-1] = block + 1
                self._write[:] = self._content(block, self.versions[block] + 1)
                done = os.pwritev(handle, [self._write], (self.first + block) * BLOCK)
                if done != BLOCK:
                    raise OSError(f"{device}: {done} of {BLOCK} bytes were written at block {block}")
                self.versions[block] += 1
                self._shared[-1] = 0
        finally:
            os.close(handle)

    def wrong(self, device: str, offset: int = 0) -> list[str]:
        """Compare all blocks with what was written last; a sentence for each that differs.

        :param offset: bytes before the first block, as the superblock of a backing device takes them.
        """
        found = []
        handle = os.open(device, os.O_RDONLY | os.O_DIRECT)
        try:
            for first in range(0, len(self.versions), _PIECE):
                count = min(_PIECE, len(self.versions) - first)
                with memoryview(self._read)[: count * BLOCK] as view:
                    if os.preadv(handle, [view], offset + (self.first + first) * BLOCK) != count * BLOCK:
                        return [f"{device} ends before block {first + count}"]
                    expected_now = b"".join(self._content(block) for block in range(first, first + count))
                    if view != expected_now:
                        found += [self._difference(first + place, bytes(view[place * BLOCK : (place + 1) * BLOCK])) for place in range(count)]
        finally:
            os.close(handle)
        return [text for text in found if text]

    def _content(self, block: int, version: int | None = None) -> bytes:
        return self._mark(block, self.versions[block] if version is None else version) * (BLOCK // 64)

    def _mark(self, block: int, version: int) -> bytes:
        text = f"{self.seed} {block} {version} "
        return (text + hashlib.sha256(text.encode()).hexdigest())[:64].ljust(64, ".").encode()

    def _difference(self, block: int, found: bytes) -> str:
        expected_now = self._content(block)
        if found == expected_now:
            return ""
        if self._shared[-1] == block + 1 and found == self._content(block, self.versions[block] + 1):
            # Its writing was never acknowledged, and happened.
            self.versions[block] += 1
            return ""
        place = next(place for place in range(0, BLOCK, 64) if found[place : place + 64] != expected_now[place : place + 64])
        words = found[place : place + 64].split(b" ")
        seen = b" ".join(words[:3]).decode("ascii", "replace") if len(words) > 3 else found[place : place + 16].hex()
        return f"block {block} at byte {place} should be '{self.seed} {block} {self.versions[block]}' and is '{seen}'"


class Application:
    """A process that writes to a device all the time, as if nothing happened to the devices below it."""

    def __init__(self, device: str, ledger: Ledger) -> None:
        self.device = device
        self._ending = mmap.mmap(-1, 1)
        read, write = os.pipe()
        seed = ledger.chance.random()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os._exit(self._go_on(ledger, write, seed))
        os.close(write)
        self._complaint = read

    def _go_on(self, ledger: Ledger, complaint: int, seed: float) -> int:
        ledger.chance.seed(seed)
        try:
            while True:
                ledger.write(self.device, ledger.some(16))
                if self._ending[0]:
                    return 0
                # The machines of the rack are emulated: the rest of the processor is for those who are tested.
                time.sleep(0.1)
        except OSError as error:
            os.write(complaint, f"writing to {self.device} failed: {error}".encode())
            return 1

    def stop(self, patience: float = 60.0) -> str:
        """End it after the write it is at; what it has to complain about."""
        self._ending[0] = 1
        deadline = time.monotonic() + patience
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
                return f"a write to {self.device} has not ended for {patience:g} seconds"
            time.sleep(0.05)
        complaint = os.read(self._complaint, 4096).decode()
        os.close(self._complaint)
        return complaint
