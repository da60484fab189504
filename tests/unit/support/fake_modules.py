# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel modules of a host made of files."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

#: What caches of every type need of the kernel.
CACHES = ("bcache", "dm_cache", "dm_writecache", "dm_raid", "raid1")


def load_modules(root: Path, names: t.Iterable[str] = CACHES) -> None:
    """As after modprobe."""
    for name in names:
        (root / "sys/module" / name).mkdir(parents=True, exist_ok=True)


def remove_modules(root: Path, names: t.Iterable[str] = CACHES, release: str = "6.1.0-test") -> None:
    """A kernel whose modules are installed, and that has none of these."""
    for name in names:
        shutil.rmtree(root / "sys/module" / name, ignore_errors=True)
    (root / "lib/modules" / release).mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/kernel").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/kernel/osrelease").write_text(release + "\n")
