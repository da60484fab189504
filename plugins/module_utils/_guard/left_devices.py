# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that were free when fio wrote them, and what it left there: that may be overwritten again.

What fio writes appears as data and carries no signature. So the host keeps a record: before the first write that a device is given to a
campaign, and when fio is done with it, the SHA-256 of all places that ``_device/contents.py`` reads: of a small device all of it. As long as
all of these places are as they were left, the device has nothing else on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t
from dataclasses import asdict
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents, users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import part_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.contents import Extent

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts

#: Beside the campaigns, whose own folders go when their results are collected.
FILE = ".left_devices.json"
#: Of it: each of hundreds of devices has a thousand values.
_LIMITS = json_text.Limits(size=16 * MIB, depth=8, values=1_000_000, containers=300_000)


@frozen
class _Left:
    """One device.

    :param campaign: the last that wrote it.
    :param places: offset, length and SHA-256 of what was left at each place; empty while fio writes it.
    """

    campaign: str
    places: tuple[tuple[int, int, str], ...] = ()


class LeftDevices:
    """Devices that a campaign may write again: its own, also after its runner was killed, and those that have not been changed since.

    :param folder: beside the folders of the campaigns.
    """

    def __init__(self, folder: Path, campaign: str) -> None:
        self._journal = Journal(folder / FILE, _rows_of, counts_as_none, limits=_LIMITS, own=True)
        self.campaign = campaign

    def is_unchanged(self, facts: TargetFacts, root: Path = Path("/")) -> bool:
        """Whether everything on a device is what fio left there, as far as it is read."""
        left = self._read().get(_key(facts) or "")
        if left is None:
            return False
        if not left.places:
            return left.campaign == self.campaign
        known = {Extent(offset, length): sha256 for offset, length, sha256 in left.places}
        try:
            return contents.are_all(known, facts.size) and contents.digests(root / facts.path.lstrip("/"), known) == known
        except OSError:
            return False

    def is_claimed(self, facts: TargetFacts) -> bool:
        """Whether this campaign has begun to write a device and has not left it: from the record alone, nothing of the device is read."""
        left = self._read().get(_key(facts) or "")
        return left is not None and not left.places and left.campaign == self.campaign

    def begin(self, facts: TargetFacts) -> None:
        """Before fio writes a device: it is this campaign's from now on, whatever becomes of it.

        :raises CommandFailed: if that cannot be recorded.
        """
        key = _key(facts)
        if key is not None:
            self._keep(key, _Left(self.campaign), durable=True)

    def leave(self, facts: TargetFacts, root: Path = Path("/")) -> None:
        """After fio is done with a device. If this is lost another campaign requires a permission, and nothing else happens."""
        key = _key(facts)
        if key is None:
            return
        with contextlib.suppress(OSError, CommandFailed):
            found = contents.digests(root / facts.path.lstrip("/"), contents.places_of(facts.size))
            places = tuple((place.offset, place.length, sha256) for place, sha256 in found.items())
            self._keep(key, _Left(self.campaign, places), durable=False)

    def _keep(self, key: str, left: _Left, *, durable: bool) -> None:
        rows = {name: asdict(one) for name, one in {**self._read(), key: left}.items()}
        self._journal.write(rows, durable=durable)

    def _read(self) -> dict[str, _Left]:
        return self._journal.read() or {}


def _rows_of(found: t.Any) -> dict[str, _Left]:
    return {
        name: _Left(str(row["campaign"]), tuple((int(offset), int(length), str(sha256)) for offset, length, sha256 in row["places"]))
        for name, row in found.items()
    }


def _key(facts: TargetFacts) -> str | None:
    """What distinguishes a device from every other one, also from a later one of the same name; ``None`` if nothing does."""
    device = facts.device
    if device is None or facts.identity is None:
        return None
    # Of two devices with one key, what was written to one would permit to overwrite the other; so would the key of one that had the name before.
    return None if facts.indistinct or facts.unsettled else json.dumps(_marks(device, facts.identity, facts.size))


def _marks(device: BlockDevice, identity: str | None, size: int) -> list[t.Any]:
    """The serial numbers of some drives and adapters are all the same: the WWN, or else the place, and the number of a partition distinguish those."""
    partition = device.name[len(device.parent) :] if device.parent and device.name.startswith(device.parent) else None
    return [identity, device.dm_uuid, device.properties.get("ID_PART_ENTRY_UUID"), size, device.wwn or device.properties.get("ID_PATH"), partition]


def indistinct_from(devices: Devices, device: BlockDevice, root: Path = Path("/")) -> tuple[str, ...]:
    """The paths of other devices that nothing in a record would distinguish from this one."""
    own = _marks(device, identity_of(devices, device, root), device.size)
    return tuple(one.path for one in devices if one.name != device.name and _marks(one, identity_of(devices, one, root), one.size) == own)


def identity_of(devices: Devices, device: BlockDevice, root: Path = Path("/")) -> str | None:
    """What a user writes to identify a device: of a partition without a UUID that of its disk with its number, of a loop device the path of its file."""
    if device.identity or device.kind != "partition":
        return device.identity or backing_file(device.name, root)
    disk = devices.get(device.parent or "")
    whole = identity_of(devices, disk, root) if disk is not None else None
    return part_of(whole, device.partition) if whole else None


def backing_file(loop: str, root: Path = Path("/")) -> str | None:
    """The real path of what a loop device lies on; ``None`` if it is no loop device."""
    text = users.backing_path(root, loop)
    return None if text is None else os.path.realpath(text)
