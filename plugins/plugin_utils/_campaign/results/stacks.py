# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts of a measurement in its ``stack.json``: which stack it ran on, and on which drives. Pure."""

from __future__ import annotations

import functools
import hashlib
import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, optional_text

SIDES = ("before", "after")

#: What is different at every reading, and would make every stack one of its own.
NOT_OF_THE_STACK = frozenset({"read_at"})


def stack_name(side: t.Any) -> str | None:
    """What one side of a ``stack.json`` is called, the same for equal stacks; ``None`` if it is empty."""
    raw = mapping(side)
    if not raw:
        return None
    return _name_of(json.dumps({name: value for name, value in raw.items() if name not in NOT_OF_THE_STACK}))


@functools.lru_cache(maxsize=64)
def _name_of(content: str) -> str:
    """A host has few stacks, and each of them at dozens of measurements."""
    return hashlib.sha256(json.dumps(json.loads(content), sort_keys=True).encode()).hexdigest()[:16]


def objects(value: t.Any) -> list[t.Mapping[str, t.Any]]:
    """The objects of a list of JSON; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def is_drive(layer: t.Mapping[str, t.Any]) -> bool:
    """Whether nothing is below it, so that it is what keeps the data."""
    return not layer.get("below")


def drives_of(side: t.Any) -> list[t.Mapping[str, t.Any]]:
    """The layers at the bottom of one side of a ``stack.json``."""
    return [layer for layer in objects(mapping(side).get("layers")) if is_drive(layer)]


def common_text(drives: t.Iterable[t.Mapping[str, t.Any]], name: str) -> str | None:
    """What the drives below a target are, each answer once."""
    found = sorted({raw for drive in drives if (raw := optional_text(drive.get(name)))})
    return ", ".join(found) or None


#: What the transport of a disk is called; of ``raid``, what its controller reports decides.
ATTACHMENTS = {
    "sata": "SATA", "sas": "SAS", "scsi": "SCSI", "fc": "Fibre Channel", "iscsi": "iSCSI", "nvme": "NVMe", "nvme_fabrics": "NVMe over fabrics",
    "virtio": "virtio", "usb": "USB", "aoe": "AoE", "nbd": "NBD", "rbd": "RBD", "virtual": "virtual",
}  # fmt: skip

VOLUME, JBOD, UNKNOWN = "RAID volume", "JBOD", "unknown"


def attachment_of(drives: t.Sequence[t.Mapping[str, t.Any]]) -> str | None:
    """How drives are reached, each answer once; ``None`` without a drive."""
    return ", ".join(sorted({_attachment(drive) for drive in drives})) or None


def _attachment(drive: t.Mapping[str, t.Any]) -> str:
    transport = optional_text(drive.get("transport")) or ""
    volume = _volume_of(drive)
    if volume is not None:
        return VOLUME
    if transport == "raid":
        # A disk that its controller passes through reports the cache of its drive; of others without a volume it is not known what they are.
        layers = {optional_text(one.get("layer")) for one in objects(drive.get("caches"))}
        return JBOD if "drive" in layers and "controller" not in layers else UNKNOWN
    return ATTACHMENTS.get(transport, UNKNOWN)


def _volume_of(drive: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any] | None:
    return next((one for one in objects(drive.get("caches")) if one.get("layer") == "controller" and one.get("raid_level")), None)


def serial_of(drives: t.Sequence[t.Mapping[str, t.Any]]) -> str | None:
    """The serial number of the only drive; a RAID volume has one of its own, which is not that of its drive."""
    if len(drives) != 1:
        return None
    volume = _volume_of(drives[0])
    if volume is None:
        return optional_text(drives[0].get("serial")) if _attachment(drives[0]) != UNKNOWN else None
    serials = volume.get("drive_serials")
    return optional_text(serials[0]) if isinstance(serials, list) and len(serials) == 1 else None
