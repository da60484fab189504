# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of /etc/fstab, and whether what they name is a device.

Sources: fstab(5), getmntent(3) (octal escapes), mount(8) (tags, quotes); udev names the links of tags as ``/dev/disk/by-…``
with ``\\x20`` and the like for what does not belong into a path.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

FSTAB = "etc/fstab"

#: The links that udev makes for a tag; UUIDs are taken in either case.
_TAG_LINKS = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel", "ID": "by-id"}
_UUIDS = frozenset({"UUID", "PARTUUID"})
_TAG = re.compile(r"^([A-Z]+)=(.*)$", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-7]{3})")
_NOT_IN_LINKS = re.compile(r"[^\w#+.:=@-]")


@frozen
class Line:
    """One line of fstab.

    :param number: counted from 1.
    :param source: the first field, without escapes.
    :param target: where it is mounted; ``none`` for swap space.
    :param options: the fourth field.
    """

    number: int
    source: str
    target: str
    options: tuple[str, ...] = ()


def parse_fstab(text: str) -> tuple[Line, ...]:
    """The lines of fstab(5) that name something; what is no such line is passed over."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        words = [_ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), word) for word in line.split()]
        if len(words) >= 2 and not words[0].startswith("#"):
            lines.append(Line(number, words[0], words[1], tuple(words[3].split(",")) if len(words) > 3 else ()))
    return tuple(lines)


def mounts_at_boot(fstab_text: str, device: BlockDevice) -> list[Line]:
    """The lines by which a boot mounts a device."""
    paths = _paths_of(device)
    return [line for line in parse_fstab(fstab_text) if line.target.startswith("/") and "noauto" not in line.options and _names(line.source, device, paths)]


def names(source: str, device: BlockDevice, *, without: str = "") -> bool:
    """Whether the first field of a line names a device, by a path or by a tag.

    :param without: a path that names something else.
    """
    return _names(source, device, _paths_of(device) - {without})


def names_content(source: str, device: BlockDevice) -> bool:
    """Whether it is a tag of what stands on a device, which every device with the same content has too."""
    if not is_tag_of_content(source):
        return False
    paths, content = _paths_of(device), device.signature
    if content is not None:
        tags = (("by-uuid", content.uuid), ("by-label", content.label))
        paths |= {f"/dev/disk/{folder}/{_as_link(value)}" for folder, value in tags if value}
    return _names(source, device, paths)


def is_tag_of_content(source: str) -> bool:
    """Whether the first field of a line is a tag of what stands on a device."""
    return source.startswith(("UUID=", "LABEL=", "/dev/disk/by-uuid/", "/dev/disk/by-label/"))


def _paths_of(device: BlockDevice) -> set[str]:
    return {device.path, *device.by_id, *device.links, *([f"/dev/mapper/{device.dm_name}"] if device.dm_name else [])}


def _names(source: str, device: BlockDevice, paths: t.AbstractSet[str]) -> bool:
    tag = _TAG.match(source)
    if tag is None:
        return os.path.normpath(source) in paths
    key, value = tag.group(1), _unquoted(tag.group(2))
    if not value or key not in _TAG_LINKS:
        return False
    own = _values(key, device)
    if key in _UUIDS:
        return value.lower() in {one.lower() for one in own} or f"/dev/disk/{_TAG_LINKS[key]}/{value}".lower() in {path.lower() for path in paths}
    return value in own or f"/dev/disk/{_TAG_LINKS[key]}/{_as_link(value)}" in paths


def _values(key: str, device: BlockDevice) -> set[str]:
    """The value of that tag on the device itself."""
    signature = device.signature
    known = {
        "UUID": signature.uuid if signature is not None else None,
        "LABEL": signature.label if signature is not None else None,
        "PARTUUID": device.properties.get("ID_PART_ENTRY_UUID"),
    }.get(key)
    return {known} if known else set()


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" else value


def _as_link(value: str) -> str:
    return _NOT_IN_LINKS.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match.group(0).encode()), value)
