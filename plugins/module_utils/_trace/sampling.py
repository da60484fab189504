# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sampled requests of a trace, in a file that stays below a limit: whenever it is reached, half of the regions are given up."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import new_file
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.format import HASHES, RECORD, REGION_SECTORS, REQUESTS_FILE, region_hash

if t.TYPE_CHECKING:
    from pathlib import Path

#: What a rewriting that was killed leaves.
DRAFT = f".{REQUESTS_FILE}.new"
#: Regions whose hashes are kept, and regions of one request that are looked at: a discard may have millions.
_REMEMBERED, _REGIONS = 32768, 64
#: Below this share a sample says nothing of the load.
_LEAST = HASHES >> 16
_LONG, _PIECE = (1 << 32) - 1, RECORD.size * 16384


class Sample:
    """The file of sampled requests.

    :param limit_bytes: of the file.
    :param halved: called with the new limit of hashes before the file has fewer records.
    :raises OSError: as every method, if it cannot be written.
    """

    def __init__(self, folder: Path, limit_bytes: int, halved: t.Callable[[int], None]) -> None:
        self.folder, self.limit_bytes, self.limit = folder, limit_bytes, HASHES
        self._halved = halved
        self._file = os.fdopen(new_file(folder / REQUESTS_FILE), "wb")
        self._bytes = 0
        self._hashes: dict[tuple[int, int], int] = {}

    def has(self, device: int, sector: int, sectors: int) -> bool:
        """Whether a request is sampled. One without sectors has no region, and is part of the sample while everything is."""
        if self.limit == HASHES or not sectors:
            return self.limit == HASHES
        first = sector // REGION_SECTORS
        last = min((sector + sectors - 1) // REGION_SECTORS, first + _REGIONS - 1)
        return any(self._hash(device, region) < self.limit for region in range(first, last + 1))

    def _hash(self, device: int, region: int) -> int:
        found = self._hashes.get((device, region))
        if found is None:
            if len(self._hashes) >= _REMEMBERED:
                self._hashes.clear()
            found = self._hashes[device, region] = region_hash(device, region)
        return found

    def add(self, time: int, sector: int, sectors: int, stream: int, process: int, device: int, operation: int, flags: int) -> None:
        """Write a request that is sampled; it is in the file after :meth:`flush`."""
        self._file.write(RECORD.pack(time, sector, min(sectors, _LONG), min(stream, _LONG), process & _LONG, device, operation, flags))
        self._bytes += RECORD.size

    def flush(self) -> bool:
        """Write what was added, and halve the sample as often as its limit requires.

        :returns: whether the sample is still of use: if few regions have nearly all requests, it cannot be made smaller.
        """
        self._file.flush()
        while self._bytes > self.limit_bytes:
            if self.limit <= _LEAST:
                return False
            self.limit //= 2
            # A reader applies the limit of the description: it is never above that of the file.
            self._halved(self.limit)
            self._rewrite()
        return True

    def _rewrite(self) -> None:
        path = self.folder / DRAFT
        with open(self.folder / REQUESTS_FILE, "rb") as old, os.fdopen(new_file(path), "wb") as new:
            for piece in iter(lambda: old.read(_PIECE), b""):
                kept = (record for record in RECORD.iter_unpack(piece) if self.has(record[5], record[1], record[2]))
                new.write(b"".join(RECORD.pack(*record) for record in kept))
            self._bytes = new.tell()
        path.replace(self.folder / REQUESTS_FILE)
        self._file.close()
        self._file = os.fdopen(os.open(self.folder / REQUESTS_FILE, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), "ab")

    def close(self) -> None:
        self._file.close()
