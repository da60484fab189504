# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot rules by ``match``: they disable the write cache of every drive that is like those of an entry, also of one that comes later.

A rule never enables a cache: of a drive that was not examined it is not known what lies above it, and below flashcache, an AoE target or a
table that was loaded while its cache was disabled it would lose what was flushed.

What udev can compare is the transport (by the place in sysfs), the model and whether the drive rotates. An entry that matches by anything else has
a rule for each of its drives instead. udev(7): values are shell patterns, ``|`` separates alternatives, letters are compared as they are.
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import Match, fits_any, read_match
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

#: Characters of a model that mean the same in a pattern of udev.
_MODEL = re.compile(r"[0-9A-Za-z_.:+=@,/() *?-]+")
#: What udev keeps of a model; anything else may have become ``_``.
_KEPT = re.compile(r"[0-9_.:+=@*?-]")
_MARK_IN_LINE = re.compile(rf'ENV\{{{udev_rule.BY_MATCH}\}}="([^"]*)"')
_EXCEPTION = re.compile(rf'ENV\{{({"|".join(udev_rule.KEY_NAMES)})\}}!="([^"]*)", ')
_EVERY_DISK = "every disk"


@frozen
class Reach:
    """What a rule by match sees of one drive, and does to it.

    :param head: the conditions that all drives of this kind meet at their place.
    :param model: what udev calls it.
    :param effect: what disables its cache.
    :param key: what a rule excepts it by; ``None`` if there is nothing.
    """

    head: str
    model: str
    rotational: bool | None
    transport: str
    effect: str
    key: udev_rule.RuleKey | None

    def meets(self, match: Match) -> bool:
        """Whether udev finds that the drive meets a match that it can compare."""
        return (
            (not match.transport or self.transport in match.transport)
            and (match.rotational is None or match.rotational == self.rotational)
            and (not match.model or fits_any(match.model, (self.model, self.model.replace("_", " "))))
        )

    def fits(self, line: str) -> bool:
        """Whether a rule is for drives like this one."""
        return line.startswith(self.head) and self.meets(read_match(match_of(line), 0))

    def disabled_by(self, line: str) -> bool:
        """Whether a rule disables it: one that is for drives like it, and does not except it."""
        return self.fits(line) and self.key not in exceptions_of(line)


def place_of(device: BlockDevice, root: Path = Path("/")) -> str | None:
    """The conditions of udev that only drives with the transport of this one meet; ``None`` if there are none."""
    place = os.path.realpath(root / "sys/class/block" / device.name)
    vendor = read_attribute(root / "sys/class/block" / device.name / "device/vendor")
    if device.transport == "sata" and re.search(r"/ata\d+/", place):
        return 'DEVPATH=="*/ata[0-9]*", DEVPATH!="*/usb[0-9]*"'
    if device.transport in ("sata", "sas") and "/end_device-" in place:
        return f'DEVPATH=="*/end_device-*", ATTR{{device/vendor}}{"==" if vendor == "ATA" else "!="}"ATA"'
    if device.transport == "nvme" and read_attribute(root / "sys/class/block" / device.name / "device/transport") == "pcie":
        return 'ATTR{device/transport}=="pcie"'
    return 'DEVPATH=="*/virtio[0-9]*"' if device.transport == "virtio" else None


def conditions_of(match: Match) -> str | None:
    """What of a match goes into each of its rules; ``None`` if udev cannot compare it."""
    if (
        match.driver
        or match.vendor
        or match.serial
        or match.wwn
        or match.size_min is not None
        or match.size_max is not None
        or match.kind not in ((), ("disk",))
    ):
        return None
    if not all(_MODEL.fullmatch(pattern) for pattern in match.model):
        return None
    found = [f'ENV{{ID_MODEL}}=="{"|".join(_of_udev(pattern) for pattern in match.model)}"'] if match.model else []
    found += [] if match.rotational is None else [f'ATTR{{queue/rotational}}=="{int(match.rotational)}"']
    return ", ".join(found)


def _of_udev(pattern: str) -> str:
    """A pattern that udev compares with the model as it writes it, whatever the case."""
    return "".join(one if _KEPT.match(one) else f"[{one.upper()}{one.lower()}]" if one.isalpha() else f"[{one}_]" for one in pattern)


def mark_of(match: Match) -> str:
    """A match as its rules carry it."""
    found = [f"{key}={text}" for key in ("transport", "model") for text in getattr(match, key)]
    return ";".join(found + ([] if match.rotational is None else [f"rotational={str(match.rotational).lower()}"])) or _EVERY_DISK


def match_of(line: str) -> dict[str, t.Any]:
    """The option ``match`` of a rule; the reverse of :func:`mark_of`."""
    found = _MARK_IN_LINE.search(line)
    values: dict[str, t.Any] = {}
    for part in found.group(1).split(";") if found and found.group(1) != _EVERY_DISK else ():
        key, _equals, text = part.partition("=")
        if key == "rotational":
            values[key] = text == "true"
        else:
            values.setdefault(key, []).append(text)
    return values


def rules_by_match(text: str) -> list[str]:
    """The rules of a file that choose drives by match."""
    return [line for line in udev_rule.rules_in(text) if _MARK_IN_LINE.search(line)]


def rules_with_mark(lines: t.Iterable[str], match: Match) -> list[str]:
    """Those of one match."""
    return [line for line in lines if _MARK_IN_LINE.findall(line) == [mark_of(match)]]


def rules_for(match: Match, drives: t.Sequence[Reach]) -> list[str]:
    """The rules of one entry: one for each kind of drive that it chose, without exceptions."""
    # A drive without a read cache is written to in other words (cache_type); both disable the write cache.
    effects: dict[str, str] = {}
    for drive in drives:
        effects[drive.head] = max(effects.get(drive.head, ""), drive.effect)
    mark = f'ENV{{{udev_rule.BY_MATCH}}}="{mark_of(match)}"'
    return [", ".join(part for part in (head, conditions_of(match), mark, effect) if part) for head, effect in effects.items()]


def exceptions_of(line: str) -> set[udev_rule.RuleKey]:
    return {udev_rule.RuleKey(name, value) for name, values in _EXCEPTION.findall(line) for value in values.split("|")}


def with_exceptions(line: str, included: t.Iterable[Reach], excepted: t.Iterable[Reach], label: str) -> str:
    """A rule by match that excepts these drives, not those, and otherwise the same as before.

    :param label: how messages name what the rule comes from.
    :raises BadInput: for a drive that a rule cannot except.
    """
    values: dict[str, set[str]] = {}
    keys = exceptions_of(line) - {one.key for one in included}
    for one in excepted:
        if one.key is None:
            raise BadInput(
                f"{label} has a boot rule that would disable the cache of a drive that another entry sets ({one.model or one.transport}) and that has no"
                " unique serial number or WWN to except it by: set persistent: false for the entry with match, or choose fewer drives."
            )
        keys.add(one.key)
    for key in keys:
        values.setdefault(key.name, set()).add(key.value)
    exceptions = "".join(f'ENV{{{name}}}!="{"|".join(sorted(found))}", ' for name, found in sorted(values.items()))
    return _EXCEPTION.sub("", line).replace(f"ENV{{{udev_rule.BY_MATCH}}}", f"{exceptions}ENV{{{udev_rule.BY_MATCH}}}")


def head_of(kernel: str, events: str, place: str) -> str:
    """The conditions that all drives of a kind meet."""
    return f'ACTION=="{events}", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", KERNEL=="{kernel}", {place}'
