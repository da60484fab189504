# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users ask of the write caches of drives."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: Options of one drive, as a module takes them.
DRIVE_OPTIONS: t.Mapping[str, t.Any] = {
    "device": {"type": "str", "required": True},
    "write_cache": {"type": "str", "required": True, "choices": ["enabled", "disabled"]},
    "provider": {"type": "str", "default": "auto", "choices": ["auto", "ata", "scsi", "nvme", "virtio"]},
    "persistent": {"type": "bool", "default": True},
    "allow_ignored_flushes": {"type": "bool", "default": False},
}


@frozen
class DriveSpec:
    """What is wanted of one drive; the options of one list entry."""

    device: str
    write_cache: str
    provider: str = "auto"
    persistent: bool = True
    allow_ignored_flushes: bool = False


def read_specs(drives: t.Sequence[t.Mapping[str, t.Any]]) -> list[DriveSpec]:
    """The parameter ``drives`` of a module."""
    return [DriveSpec(**drive) for drive in drives]
