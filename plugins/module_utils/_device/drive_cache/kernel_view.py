# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's view of the write cache of a drive: ``queue/write_cache`` and ``cache_type``."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DISABLED, ENABLED, KERNEL_WORD, WRITE_BACK, WRITE_THROUGH
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute


def parse_cache_type(text: str) -> str:
    """A word of ``scsi_disk/*/cache_type``, virtio's ``cache_type`` or ``queue/write_cache`` as ``enabled`` or ``disabled``.

    The SCSI driver supports ``write through``, ``none``, ``write back`` and ``write back, no read (daft)`` (drivers/scsi/sd.c).

    :raises NotUnderstood: for any other word.
    """
    words = {WRITE_THROUGH: DISABLED, "none": DISABLED, WRITE_BACK: ENABLED, "write back, no read (daft)": ENABLED}
    try:
        return words[text.strip()]
    except KeyError:
        raise NotUnderstood(f"The kernel calls a write cache '{text.strip()}', which is unknown here.") from None


def cache_type_for(value: str, current: str | None) -> str:
    """What to write into ``cache_type`` so that only the write cache changes and the read cache stays as it is. Never ``temporary``."""
    without_read_cache = current in ("none", "write back, no read (daft)")
    if value == ENABLED:
        return "write back, no read (daft)" if without_read_cache else WRITE_BACK
    return "none" if without_read_cache else WRITE_THROUGH


def cache_type_files(name: str, root: Path = Path("/")) -> list[Path]:
    """``/sys/class/block/<name>/device/scsi_disk/<address>/cache_type``; none for a disk of another driver."""
    return sorted((root / "sys/class/block" / name / "device/scsi_disk").glob("*/cache_type"))


def read_kernel(name: str, root: Path = Path("/")) -> str | None:
    """The kernel's view: ``queue/write_cache`` and the SCSI driver's ``cache_type``, joined by a comma if they differ."""
    texts = [read_attribute(root / "sys/class/block" / name / "queue/write_cache"), *(read_attribute(path) for path in cache_type_files(name, root))]
    return ", ".join(sorted({_kernel_word(text) for text in texts if text})) or None


def _kernel_word(text: str) -> str:
    """``none`` and ``write back, no read (daft)`` differ only in the read cache; a word unknown here is shown as it is."""
    try:
        return KERNEL_WORD[parse_cache_type(text)]
    except NotUnderstood:
        return text
