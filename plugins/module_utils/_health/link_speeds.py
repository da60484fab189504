# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How fast the links of a host are now: those of its drives, and network interfaces that are up. A cable or a slot may have made them slower.

Sources: sysfs of Linux: ``speed`` of an interface in Mbit/s, -1 if it is not known (testing/sysfs-class-net); ``sata_spd`` of a link of libata;
``negotiated_linkrate`` of a SAS phy; ``current_link_speed`` and ``current_link_width`` of a PCI device. PCI Express 1 and 2 send 8 bits as 10, later
generations 128 as 130.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

NETWORK, DRIVE = "network", "drive"

_SPEED = re.compile(r"^(\d+(?:\.\d+)?) G(?:T/s|b)")
_OLD_GENERATIONS = 5.0


@frozen
class LinkSpeed:
    """One link. :param kind: :data:`NETWORK` or :data:`DRIVE`. :param name: of the interface, or the stable path of the drive.
    :param speed: bits per second; ``None`` if it is not known."""

    kind: str
    name: str
    speed: float | None


def read_links(drives: t.Iterable[BlockDevice], root: Path) -> tuple[LinkSpeed, ...]:
    """Those of interfaces and of drives that have one: a volume of a controller and a virtual disk have none."""
    found = [LinkSpeed(NETWORK, one.name, _positive(read_number(one / "speed"), 1e6)) for one in _interfaces(root)]
    for drive in drives:
        place = (root / "sys/block" / drive.name).resolve()
        reader = next((reader for part, reader in _READERS if re.search(part, str(place))), None)
        if reader is not None:
            found.append(LinkSpeed(DRIVE, drive.stable_path or drive.path, reader(place, root)))
    return tuple(found)


def _interfaces(root: Path) -> list[Path]:
    """Of hardware or on others (VLAN, bond, bridge), and up."""
    folder = root / "sys/class/net"
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [one for one in found if read_attribute(one / "operstate") == "up" and ((one / "device").exists() or any(one.glob("lower_*")))]


def _positive(value: int | None, unit: float) -> float | None:
    return value * unit if value is not None and value > 0 else None


def _sata(place: Path, root: Path) -> float | None:
    port = next(part for part in place.parts if re.match(r"^ata\d+$", part))
    return _gigabits(root / f"sys/class/ata_link/link{port[3:]}/sata_spd")


def _sas(place: Path, root: Path) -> float | None:
    """The slowest phy of the drive's port."""
    port = next(part for part in reversed(place.parts) if part.startswith("port-"))
    phys = (root / f"sys/class/sas_port/{port}/device").glob("phy-*/sas_phy/phy-*/negotiated_linkrate")
    return min(filter(None, map(_gigabits, phys)), default=None)


def _pci(place: Path, _root: Path) -> float | None:
    """Of an NVMe controller: all of its lanes."""
    slot = next((one for one in place.parents if (one / "current_link_width").exists()), place)
    lane, lanes = _gigabits(slot / "current_link_speed"), read_number(slot / "current_link_width")
    return lane * lanes * (0.8 if lane <= _OLD_GENERATIONS * 1e9 else 128 / 130) if lane and lanes else None


def _gigabits(path: Path) -> float | None:
    match = _SPEED.match(read_attribute(path) or "")
    return float(match.group(1)) * 1e9 if match else None


#: By what the place of a drive in sysfs contains. Drives of a RAID controller are not at a port of the host.
_READERS: tuple[tuple[str, t.Callable[[Path, Path], float | None]], ...] = ((r"/ata\d+/", _sata), (r"/port-[\d:]+/end_device", _sas), (r"/nvme\d+/", _pci))
