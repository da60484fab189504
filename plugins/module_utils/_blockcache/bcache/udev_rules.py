# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that no superblock holds, kept over a reboot by a udev rules file of our own: one line per device.

Sources: udev(7); 69-bcache.rules of bcache-tools. A bcache is registered by a program that this rule file runs after all rules
were read, and what is under ``bcache/`` in sysfs is there when it ends. RUN lists are carried out in order, so a program of a
later file finds it there; writing through ``ATTR`` would come too early. No event follows in which it could be done: the one of
``/dev/bcache0`` comes before its ``bcache/`` directory. A backing device is matched by the UUID of its superblock, and so is a
cache device, through which the settings of its set are reached.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import SET, SETTINGS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file

RULES_FILE = "etc/udev/rules.d/99-cachefleet-bcache.rules"
HEADER = (
    "# Written by cachefleet.storage.bcache, one line per backing device and per cache device, so that the settings that no superblock",
    "# of bcache holds are what was asked for after a reboot. Lines are replaced device by device: change the inventory, not this file.",
)

#: By the UUID of a device: its settings, spelled as the kernel takes them.
Rules = t.Mapping[str, t.Mapping[str, str]]

_LINE = re.compile(r'ENV\{ID_FS_UUID\}=="([0-9a-f-]{36})"')
_WRITE = re.compile(r"echo ([0-9a-z-]+) >([a-z_]+);")
_UUID = re.compile(r"[0-9a-f-]{36}")
_VALUE = re.compile(r"[0-9a-z-]{1,64}")


def parse(text: str) -> dict[str, dict[str, str]]:
    """The settings in the text of the file, by device."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        match = _LINE.search(line)
        if match and not line.lstrip().startswith("#"):
            found.setdefault(match.group(1), {}).update({key: value for value, key in _WRITE.findall(line)})
    return found


def render(rules: Rules) -> str:
    """The text of the file; empty if there is nothing to keep.

    :raises BadInput: if something could not stand in a rule.
    """
    lines = [_line(uuid, settings) for uuid, settings in sorted(rules.items()) if settings]
    return "\n".join((*HEADER, *lines)) + "\n" if lines else ""


def _line(uuid: str, settings: t.Mapping[str, str]) -> str:
    # Nothing of a host goes into the words of a shell but what is made of digits, small letters and hyphens.
    if not _UUID.fullmatch(uuid) or any(key not in SETTINGS or not _VALUE.fullmatch(value) for key, value in settings.items()):
        raise BadInput(f"The settings of the bcache device {uuid} cannot be written into a udev rule: {dict(settings)}.", item=uuid)
    # Settings of the set are reached through the cache device.
    folder = "bcache/set" if SETTINGS[next(iter(settings))].place == SET else "bcache"
    writes = " ".join(f"echo {value} >{key};" for key, value in sorted(settings.items()))
    return (
        f'ACTION!="remove", SUBSYSTEM=="block", ENV{{ID_FS_TYPE}}=="bcache", ENV{{ID_FS_UUID}}=="{uuid}",'
        f" RUN+=\"/bin/sh -c 'cd /sys%p/{folder} && {{ {writes} }}'\""
    )


def kept(settings: t.Mapping[str, int | str], place: str, earlier: t.Mapping[str, str]) -> dict[str, str]:
    """What the line of a device should hold: what it held, with the wanted settings, without those that the kernel begins with.

    :param place: ``backing`` or ``set``.
    """
    result = dict(earlier)
    for key, value in settings.items():
        known = SETTINGS[key]
        if known.place != place or known.stored:
            continue
        result[key] = str(value)
        if value == known.default:
            del result[key]
    return result


def read_rules(root: Path = Path("/")) -> dict[str, dict[str, str]]:
    """The settings that are kept, by device.

    :raises CommandFailed: if the file is there and cannot be read.
    """
    return parse(read_file(root / RULES_FILE))


def write_rules(rules: Rules, root: Path = Path("/")) -> None:
    """Replace the file; take it away when nothing is kept.

    :raises CommandFailed: if it cannot be written.
    """
    replace_file(root / RULES_FILE, render(rules))
