# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a udev rule of the user keeps what is on an origin from everything that an event of udev starts.

60-persistent-storage.rules sets ``ID_FS_TYPE``, which the rules of MD (64), btrfs (64) and LVM (69) read; a rule in between may overwrite it. Accepted is only
what is proven: udev's database has the overwritten type now, and a file that is there at every boot assigns it to this device by a name that stays, under
no other condition.

Source: udev(7).
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import IDENTIFYING

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

#: A file takes the place of those of the same name in the folders after its own.
_FOLDERS = ("etc/udev/rules.d", "usr/local/lib/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
_AFTER, _BEFORE = "60-persistent-storage.rules", "64-"
_TOKEN = re.compile(r'\s*([A-Z]+(?:\{[^}]+\})?)\s*(==|!=|\+=|-=|:=|=)\s*"([^"]*)"\s*(?:,|$)')
_TYPE = "ENV{ID_FS_TYPE}"
#: Conditions that every event of a disk but its last one meets.
_ALWAYS = frozenset({("ACTION", "!=", "remove"), ("ACTION", "==", "add|change"), ("SUBSYSTEM", "==", "block")})
_ASSIGNS = ("=", ":=")
#: Keys that are conditions with any operator.
_ASKING = ("PROGRAM", "IMPORT", "RESULT", "TEST")


def is_hidden(device: BlockDevice, types: str, root: Path = Path("/")) -> bool:
    """Whether udev takes what is on a device for something else, and will at the next boot.

    :param types: what it really is, as a pattern for the word of libblkid.
    """
    shown = (device.signature.type if device.signature is not None else None) or ""
    # Without an entry nothing is overwritten, but not known.
    if not device.properties or re.fullmatch(types, shown):
        return False
    return any(_hides(line, device, shown) for line in _lines(root))


def _lines(root: Path) -> t.Iterator[str]:
    files: dict[str, Path] = {}
    for folder in _FOLDERS:
        for place in sorted((root / folder).glob("*.rules")):
            files.setdefault(place.name, place)
    for name, place in files.items():
        text = read_file(place).replace("\\\n", "") if _AFTER < name < _BEFORE else ""
        # A jump is a condition that is in other lines.
        yield from () if "GOTO" in text else (line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _hides(line: str, device: BlockDevice, shown: str) -> bool:
    tokens = _TOKEN.findall(line)
    if not tokens or _TOKEN.sub("", line).strip():
        return False
    conditions = [token for token in tokens if (token[1] in ("==", "!=") or token[0].startswith(_ASKING)) and token not in _ALWAYS]
    assigned = [value for key, operator, value in tokens if key == _TYPE and operator in _ASSIGNS]
    return assigned == [shown] and bool(conditions) and all(_names(condition, device) for condition in conditions)


def _names(condition: tuple[str, str, str], device: BlockDevice) -> bool:
    key, operator, value = condition
    if operator != "==":
        return False
    if key == "SYMLINK":
        return any(f"/dev/{one}" in (*device.by_id, *device.links) and one.startswith("disk/by-") for one in value.split("|"))
    return key in {f"ENV{{{name}}}" for name in IDENTIFYING} and device.properties.get(key[4:-1]) == value
