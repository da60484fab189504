# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's view of the write cache of a drive: ``queue/write_cache`` and ``cache_type``."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.kernel_modules import kernel_release
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DISABLED, ENABLED, KERNEL_WORD, WRITE_BACK, WRITE_THROUGH
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

_FLAG_SINCE = (6, 11)


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


def drops_flushes(name: str, root: Path = Path("/")) -> bool:
    """Whether the kernel sends no flush to a drive, whatever its driver knows of the cache of the drive."""
    return read_attribute(root / "sys/class/block" / name / "queue/write_cache") == WRITE_THROUGH


def driver_sees_cache(name: str, root: Path = Path("/")) -> bool:
    """Whether the driver of a disk has a ``cache_type``, and takes the cache for enabled."""
    places = (*cache_type_files(name, root), root / "sys/class/block" / name / "cache_type")
    return any(KERNEL_WORD[ENABLED] == _kernel_word(text) for text in map(read_attribute, places) if text)


def stays_written(root: Path = Path("/")) -> bool:
    """Whether what was written to ``queue/write_cache`` stays, whatever the driver finds later: BLK_FLAG_WRITE_CACHE_DISABLED since Linux 6.11."""
    version = tuple(int(number) for number in re.findall(r"\d+", kernel_release(root))[:2])
    return version >= _FLAG_SINCE


def dropping_sentence(item: str, name: str) -> str:
    """That the kernel drops the flushes to a drive, and the command that ends it."""
    return (
        f"{item}: the kernel sends no flush to {name}, because its queue/write_cache is 'write through', which no rescan changes if it was written there"
        f" (Linux 6.11 and newer): run echo 'write back' > /sys/block/{name}/queue/write_cache, remove what wrote it (a udev rule, a unit), and run again."
    )


def _kernel_word(text: str) -> str:
    """``none`` and ``write back, no read (daft)`` differ only in the read cache; a word unknown here is shown as it is."""
    try:
        return KERNEL_WORD[parse_cache_type(text)]
    except NotUnderstood:
        return text
