# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that this collection has given back, and what was left on them: that is no data of anyone, and may be overwritten.

A cache whose superblock is wiped leaves copies of blocks of its origin that carry no signature. So the host keeps the SHA-256 of the places that
``_device/contents.py`` reads: as long as all of them are as they were left, the device has nothing else on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents
from ansible_collections.cachefleet.storage.plugins.module_utils._device.contents import EDGE, Extent

FOLDER = "var/lib/cachefleet/released"
_PIECE = 64 * KIB


@contextlib.contextmanager
def releasing(paths: t.Iterable[str], root: Path = Path("/")) -> t.Iterator[None]:
    """Around the commands that wipe the metadata of a cache of ours, once it is proven that nothing on it is needed.

    Metadata lie at the ends: what is between them is recorded first, for a run that is killed before the end.

    :param paths: stable paths of the devices.
    :raises CommandFailed: if that cannot be recorded; before anything is wiped, unless the file system has become full in between.
    """
    paths = tuple(paths)
    for path in paths:
        keep(path, root, ends=False)
    yield
    for path in paths:
        keep(path, root)


def is_as_left(node: Path, root: Path = Path("/")) -> bool:
    """Whether everything on a device is what was left there, as far as it is read."""
    try:
        size = contents.size_of(node)
        # A run that was killed has recorded what lies between the ends.
        return any(_agrees(node, places) for found, places in _records(root) if found == size and contents.are_all(places, size - 2 * EDGE))
    except OSError:
        return False


def _agrees(node: Path, places: t.Mapping[Extent, str]) -> bool:
    # What has become zeros since is empty: a discard may have been interrupted. Of most records the first place differs already.
    for part in (list(places)[:1], places):
        found = contents.samples(node, part)
        if not found or any(sample.byte != 0 and sample.sha256 != places[place] for place, sample in found.items()):
            return False
    return True


def keep(path: str, root: Path = Path("/"), *, ends: bool = True) -> None:
    """Record what is on a device that is free. Of a device that cannot be read nothing is recorded: it has to be made empty by hand.

    :param ends: whether both ends are recorded too.
    :raises CommandFailed: if the record cannot be written.
    """
    node = root / path.lstrip("/")
    size, rows = 0, []
    with contextlib.suppress(OSError, CommandFailed):
        size = contents.size_of(node)
        pieces = [piece for place in contents.places_of(size) for piece in _pieces(place)]
        places = [piece for piece in pieces if ends or (piece.offset >= EDGE and piece.offset + piece.length <= size - EDGE)]
        rows = [[place.offset, place.length, sha256] for place, sha256 in contents.digests(node, places).items()] if places else []
    if rows:
        name = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        _journal(root / FOLDER / f"{name}.json").write({"device": path, "size": size, "places": rows})


def _pieces(place: Extent) -> t.Iterator[Extent]:
    """A place in parts that are zeros or as they were, also where a discard was interrupted."""
    for offset in range(0, place.length, _PIECE):
        yield Extent(place.offset + offset, min(_PIECE, place.length - offset))


def _records(root: Path) -> t.Iterator[tuple[int, dict[Extent, str]]]:
    for file in sorted((root / FOLDER).glob("*.json")):
        record = _journal(file).read()
        if record is not None:
            yield record


def _journal(file: Path) -> Journal[tuple[int, dict[Extent, str]]]:
    return Journal(file, _content, counts_as_none)


def _content(found: t.Any) -> tuple[int, dict[Extent, str]]:
    return int(found["size"]), {Extent(int(offset), int(length)): str(sha256) for offset, length, sha256 in found["places"]}
