# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files below the root of a host that is made of files, and its processes in ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path


def write(root: Path, path: str, text: str = "") -> Path:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def process(root: Path, number: int, namespace: int | None = None, **files: str) -> Path:
    """A process without open files; ``namespace`` is that of its mounts."""
    folder = root / "proc" / str(number)
    for name in ("fd", "fdinfo", "ns"):
        (folder / name).mkdir(parents=True)
    if namespace:
        (folder / "ns/mnt").symlink_to(f"mnt:[{namespace}]")
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def opened(process: Path, number: int, target: Path, mode: int = os.O_RDWR) -> None:
    """Let a process have a file open under that number."""
    (process / "fd" / str(number)).symlink_to(target)
    (process / "fdinfo" / str(number)).write_text(f"flags:\t{mode:o}\n")
