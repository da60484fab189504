# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volatile write cache inside a drive: its states, what the kernel calls them, and what a drive is to be set to."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import MATCH_OPTIONS, Match, check_entry, read_match

VARIABLE = "drive_write_cache_drives"
#: Options of one entry, as a module takes them.
DRIVE_OPTIONS: t.Mapping[str, t.Any] = {
    "device": {"type": "str"},
    "match": {"type": "dict", "options": MATCH_OPTIONS},
    "write_cache": {"type": "str", "required": True, "choices": ["enabled", "disabled"]},
    "provider": {"type": "str", "default": "auto", "choices": ["auto", "ata", "scsi", "nvme", "virtio"]},
    "persistent": {"type": "bool", "default": True},
    "allow_ignored_flushes": {"type": "bool", "default": False},
}


@frozen
class DriveSpec:
    """What is wanted of one drive, or of those that a match chooses; the options of one list entry.

    :param device: its path; of an entry with ``match`` that of the drive that it was chosen for, or empty.
    :param number: that of the entry.
    """

    device: str
    write_cache: str
    provider: str = "auto"
    persistent: bool = True
    allow_ignored_flushes: bool = False
    match: Match | None = None
    number: int = 0

    @property
    def label(self) -> str:
        """How messages name an entry with ``match``."""
        return f"the match of entry {self.number}"


def read_specs(drives: t.Sequence[t.Mapping[str, t.Any]]) -> list[DriveSpec]:
    """The parameter ``drives`` of a module.

    :raises BadInput: for an entry that is not for one device or a match, a permission in one with ``match``, and a size that is none.
    """
    return [_read_spec(number, drive) for number, drive in enumerate(drives, 1)]


def _read_spec(number: int, drive: t.Mapping[str, t.Any]) -> DriveSpec:
    check_entry(VARIABLE, number, drive)
    match = drive.get("match")
    return DriveSpec(**{**drive, "device": drive.get("device") or "", "match": None if match is None else read_match(match, number), "number": number})


ENABLED = "enabled"
DISABLED = "disabled"
#: The drive has no volatile write cache at all: treated as ``disabled``, and nothing can be enabled.
ABSENT = "absent"

WRITE_BACK = "write back"
WRITE_THROUGH = "write through"
#: The required view of the kernel while the drive's cache is in a state. It sends flushes only for ``write back``.
KERNEL_WORD = {ENABLED: WRITE_BACK, DISABLED: WRITE_THROUGH}


@frozen
class DriveCache:
    """The write cache of one drive.

    :param provider: which provider was used; ``None`` if none can be.
    :param drive: as the drive reports: ``enabled``, ``disabled``, ``absent``; ``None`` if it did not, with the ``reason``.
    :param kernel: as the kernel reports: ``write back``, ``write through``, both if its parts disagree, ``None`` if nothing.
    :param changeable: whether the drive lets it be changed.
    """

    name: str
    provider: str | None
    drive: str | None
    kernel: str | None
    changeable: bool = True
    reason: str | None = None

    @property
    def kernel_agrees(self) -> bool:
        """Whether the kernel's view matches the drive's report."""
        return self.drive is None or kernel_agrees(self.provider, self.drive, self.kernel)


def kernel_agrees(provider: str | None, drive: str, kernel: str | None) -> bool:
    """Whether the kernel's belief fits a state of the drive.

    The NVMe driver checks only the presence of a cache, so the kernel stays at ``write back`` when the cache of an NVMe drive
    is off: superfluous flushes, no harm, no difference.
    """
    if kernel is None or drive == ABSENT or (provider == "nvme" and drive == DISABLED):
        return True
    return kernel == KERNEL_WORD[drive]


@frozen
class DriveCacheSetting:
    """What one drive should be set to.

    :param name: kernel name; ``node`` is its path in /dev.
    :param value: ``enabled`` or ``disabled``.
    :param item: how the user named the drive.
    :param save: whether the drive should save it, if it can.
    """

    name: str
    node: str
    value: str
    item: str
    save: bool = False

    @property
    def digit(self) -> int:
        return 1 if self.value == ENABLED else 0

    @property
    def kernel_word(self) -> str:
        return KERNEL_WORD[self.value]
